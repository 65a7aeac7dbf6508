//! The books of the layer held against each other. For tests: every sector is looked at.

use crate::layer::Ftl;
use crate::leb::{LebState, Stream};
use crate::slots::NOTE_BITS;
use crate::snapshot::views::CHUNK;
use crate::types::NO_SLOT;

impl Ftl {
    /// Checks what must always hold.
    ///
    /// # Errors
    /// What does not, in words.
    pub fn verify(&self) -> Result<(), String> {
        let geometry = self.config.geometry;
        let mut live = vec![0u32; self.lebs.len() as usize];
        let mut noted = [0; 1 << NOTE_BITS];
        let mut wrong = None;
        self.map.for_each(|lba, slot| {
            let leb = slot / geometry.slots_per_leb();
            live[leb as usize] += 1;
            noted[usize::from(self.lebs.note(self.lebs.place(slot)))] += 1;
            if !self.lebs.is_live(slot) {
                wrong = Some(format!("sector {lba} is mapped to slot {slot}, which is not live"));
            }
            if matches!(self.lebs[leb].state, LebState::Free | LebState::Ready | LebState::Erasing | LebState::Retired)
            {
                wrong = Some(format!("sector {lba} lies in LEB {leb}, which is {:?}", self.lebs[leb].state));
            }
        });
        let mut counted = self.map.mapped();
        for (key, piece) in self.views.pieces((0, 0)) {
            for (bit, slot) in piece.entries().filter(|(_, slot)| *slot != NO_SLOT) {
                let lba = key.0 * CHUNK + bit;
                let earlier = self.views.pieces((key.0, 0)).take_while(|(other, _)| *other < key);
                if self.map.get(lba) == slot || earlier.into_iter().any(|(_, piece)| piece.get(bit) == Some(slot)) {
                    continue;
                }
                counted += 1;
                let leb = slot / geometry.slots_per_leb();
                live[leb as usize] += 1;
                if !self.lebs.is_live(slot) {
                    wrong = Some(format!("snapshot {} sees sector {lba} in slot {slot}, which is not live", key.1));
                }
            }
        }
        for (key, piece) in self.clones.pieces((0, 0)) {
            for slot in &piece.slots {
                counted += 1;
                live[(*slot / geometry.slots_per_leb()) as usize] += 1;
                noted[usize::from(self.lebs.note(self.lebs.place(*slot)))] += 1;
                if !self.lebs.is_live(*slot) {
                    wrong = Some(format!("a clone holds something of {key:?} in slot {slot}, which is not live"));
                }
            }
        }
        self.clones.verify()?;
        if counted != self.live_sectors() {
            wrong = Some(format!("{counted} sectors hold data, and {} are counted", self.live_sectors()));
        }
        self.views.verify()?;
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        for (id, leb) in self.lebs.iter() {
            if leb.live != live[id as usize] {
                return Err(format!("LEB {id} counts {} live slots, the map {}", leb.live, live[id as usize]));
            }
            let listed = self.free.iter().filter(|other| **other == id).count()
                + self.ready.iter().filter(|other| **other == id).count();
            let free = usize::from(matches!(leb.state, LebState::Free | LebState::Ready));
            if listed != free {
                return Err(format!("LEB {id} is {:?} and listed as free {listed} times", leb.state));
            }
        }
        if !self.has_views && self.map.mapped() > self.room {
            return Err(format!("{} sectors are mapped, and there is room for {}", self.map.mapped(), self.room));
        }
        self.groomer.policy.verify(&noted)?;
        self.verify_owners()?;
        let open = self.lebs.iter().filter(|(_, leb)| leb.state == LebState::Open).count();
        let points = Stream::all().filter(|stream| self.open_leb_of(*stream).is_some()).count();
        if open != points {
            return Err(format!("{open} LEBs are open for {points} append points"));
        }
        Ok(())
    }
}
