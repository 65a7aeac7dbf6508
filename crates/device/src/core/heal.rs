//! Sectors that fail their check: rebuilt from the rest of their stripe, written elsewhere, counted.

use std::collections::BTreeSet;
use std::ops::Range;

use ftl::{Ftl, ReadFor, Slot, SlotRead};
use media::{Command, MediaError};

use super::{Core, MediaRead, index, layer_error};

/// Most unreadable sectors that are remembered by address.
const REMEMBERED: usize = 1024;

/// What became of a read with wrong slots.
pub(crate) enum Healed {
    /// Every slot is right now.
    All,
    /// Some cannot be had.
    Part,
    /// The answer comes later.
    UnderWay,
}

/// Which sectors failed, since attach.
#[derive(Default)]
pub(crate) struct Healing {
    /// Sectors that were rebuilt although their die serves.
    pub healed: u64,
    /// Sectors that were read with the help of parity because their die is lost.
    pub degraded_reads: u64,
    /// The first sectors that could not be read at all, and were neither read nor written since.
    pub unreadable: BTreeSet<u64>,
    /// Slots that are being rebuilt because they failed, by the read's id.
    under_way: Vec<(u64, Vec<Slot>)>,
}

impl Healing {
    /// Live slots cannot be read: the sectors that lie there, which only the whole map can tell.
    pub fn note_slots(&mut self, ftl: &Ftl, slots: &BTreeSet<Slot>) {
        if slots.is_empty() || self.unreadable.len() >= REMEMBERED {
            return;
        }
        ftl.map().for_each(|lba, slot| {
            if slots.contains(&slot) {
                self.remember(lba);
            }
        });
    }

    /// Sectors were read, or written anew.
    #[inline]
    pub fn forget(&mut self, sectors: Range<u64>) {
        if !self.unreadable.is_empty() {
            self.unreadable.retain(|lba| !sectors.contains(lba));
        }
    }

    fn remember(&mut self, lba: u64) {
        if self.unreadable.len() < REMEMBERED {
            self.unreadable.insert(lba);
        }
    }
}

impl Core {
    /// The bytes of a read in its page.
    pub fn bytes_of(&self, read: &SlotRead) -> Range<u32> {
        let slot_bytes = self.checker.slot_bytes() as u32;
        read.at * slot_bytes..(read.at + read.count) * slot_bytes
    }

    /// The medium failed a read. `None` when its answer comes later.
    pub fn read_failed(&mut self, id: u64, error: MediaError) -> Option<Result<(), ftl::Error>> {
        let read = self.reads[index(id)].take().expect("a read that is under way");
        if read.rebuilding {
            self.give_up_read(id, &read.asked);
            return Some(Err(layer_error(error)));
        }
        let wrong = match error {
            MediaError::Lost => Vec::new(),
            _ => {
                tracing::warn!(page = ?read.asked.page, %error, "a read failed");
                read.asked.slots().collect()
            }
        };
        self.rebuild(id, read.asked, wrong);
        None
    }

    /// A read came with wrong slots, or was rebuilt.
    pub fn heal(&mut self, id: u64, read: MediaRead, wrong: Vec<Slot>) -> Healed {
        let MediaRead { asked: read, rebuilding } = read;
        if !rebuilding {
            tracing::warn!(page = ?read.page, slots = ?wrong, "sectors failed their check");
            self.rebuild(id, read, wrong);
            return Healed::UnderWay;
        }
        let before = self.take_under_way(id);
        self.healing.degraded_reads += u64::from(before.is_empty()) * u64::from(read.count);
        for slot in before.into_iter().filter(|slot| !wrong.contains(slot)) {
            if self.ftl.lebs().is_live(slot) {
                // It is read again until it lies elsewhere, and once more to get there.
                let counted = read.purpose == ReadFor::Relocate || self.ftl.will_relocate(slot);
                self.healing.healed += u64::from(!counted);
                if let ReadFor::Request { .. } = read.purpose {
                    self.ftl.relocate(slot);
                }
            }
        }
        self.note_unreadable(&read, &wrong);
        if wrong.is_empty() { Healed::All } else { Healed::Part }
    }

    fn rebuild(&mut self, id: u64, read: SlotRead, wrong: Vec<Slot>) {
        if !wrong.is_empty() {
            self.healing.under_way.push((id, wrong));
        }
        self.reads[index(id)] = Some(MediaRead { asked: read, rebuilding: true });
        let bytes = self.bytes_of(&read);
        self.media_submit(id, Command::Rebuild { at: read.page, bytes, min_seq: read.min_seq });
    }

    fn give_up_read(&mut self, id: u64, read: &SlotRead) {
        let mut wrong = self.take_under_way(id);
        if wrong.is_empty() {
            wrong = read.slots().collect();
        }
        self.note_unreadable(read, &wrong);
    }

    fn take_under_way(&mut self, id: u64) -> Vec<Slot> {
        let found = self.healing.under_way.iter().position(|(other, _)| *other == id);
        found.map(|at| self.healing.under_way.swap_remove(at).1).unwrap_or_default()
    }

    fn note_unreadable(&mut self, read: &SlotRead, wrong: &[Slot]) {
        let ReadFor::Request { lba, .. } = read.purpose else { return };
        for slot in wrong {
            let lba = lba + u64::from(slot - read.slot);
            tracing::error!(lba, slot, "a sector failed its check and cannot be rebuilt");
            self.healing.remember(lba);
        }
    }
}
