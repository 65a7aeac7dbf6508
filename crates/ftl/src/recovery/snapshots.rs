//! Snapshots in a recovery: their list and index out of the checkpoint, and what the log does to them.
//!
//! Each slot of the index shows a part of it as of the slot's own number. What is older is in it already, or undone in it already; only what is
//! newer may change that part. The map is written before the index, so what a sector held at such a moment is known.

use super::{CHUNK, Damage, NO_SLOT, PIECE_BYTES, Record, Recovery, TrimRecord, UNNOTED};
use crate::snapshot::clones::{SnapshotClone, is_inside, is_windowed, sector_of};
use crate::snapshot::views::{Key, PIECE_HEAD, Piece, SNAPSHOT_BYTES};
use crate::snapshot::{Snapshot, SnapshotId, decode_snapshot};
use crate::types::Slot;

const SHORT: Damage = Damage::Nonsense("a slot ends early");

/// What the checkpoint says of snapshots.
#[derive(Default)]
pub(super) struct Loaded {
    /// Records below are in the list.
    listed: u64,
    snapshots: Vec<Snapshot>,
    clones: Vec<SnapshotClone>,
    /// Slots of the index, each with its number.
    slots: Vec<(u64, Vec<(Key, Piece)>)>,
    /// The last piece of each slot of the index, and from which number on what happens is not in it.
    ends: Vec<(Key, u64)>,
}

impl Loaded {
    /// From which number on what happens to a piece is not in it yet.
    fn known(&self, key: Key) -> u64 {
        let at = self.ends.partition_point(|(end, _)| *end < key);
        self.ends.get(at).or(self.ends.last()).map_or(0, |(_, seq)| *seq)
    }
}

impl Recovery {
    /// A slot of the list.
    pub(super) fn load_snapshots(&mut self, count: u16, bytes: &[u8]) -> Result<(), Damage> {
        let listed = bytes.get(PIECE_BYTES..PIECE_BYTES + 8).ok_or(SHORT)?;
        self.loaded.listed = u64::from_le_bytes(listed.try_into().expect("eight bytes"));
        let entries = bytes.get(PIECE_BYTES + 8..).unwrap_or_default().chunks_exact(SNAPSHOT_BYTES);
        let before = self.loaded.snapshots.len();
        for entry in entries.take(count.into()) {
            let snapshot = decode_snapshot(entry).filter(|snapshot| snapshot.id < self.loaded.listed);
            self.loaded.snapshots.push(snapshot.ok_or(Damage::Nonsense("a snapshot in the checkpoint"))?);
        }
        if self.loaded.snapshots.len() - before < count.into() { Err(SHORT) } else { Ok(()) }
    }

    /// A slot of the list of clones.
    pub(super) fn load_clones(&mut self, count: u16, bytes: &[u8]) -> Result<(), Damage> {
        let entries = bytes.get(PIECE_BYTES + 8..).unwrap_or_default().chunks_exact(SNAPSHOT_BYTES);
        let found: Option<Vec<SnapshotClone>> = entries.take(count.into()).map(SnapshotClone::decode).collect();
        let found = found.ok_or(Damage::Nonsense("a clone in the checkpoint"))?;
        if found.len() < count.into() {
            return Err(SHORT);
        }
        self.loaded.clones.extend(found);
        Ok(())
    }

    /// A slot of the index.
    pub(super) fn load_views(&mut self, seq: u64, count: u16, bytes: &[u8]) -> Result<(), Damage> {
        let mut pieces = Vec::with_capacity(count.into());
        let mut at = PIECE_BYTES;
        for _ in 0..count {
            let head = bytes.get(at..at + PIECE_HEAD).ok_or(SHORT)?;
            let word = |at: usize| u64::from_le_bytes(head[8 * at..8 * at + 8].try_into().expect("eight bytes"));
            let (key, present, holes) = ((word(0), word(1)), word(2), word(3));
            at += PIECE_HEAD;
            let len = 4 * (present & !holes).count_ones() as usize;
            let slots: Vec<Slot> = bytes
                .get(at..at + len)
                .ok_or(SHORT)?
                .chunks_exact(4)
                .map(|slot| u32::from_le_bytes(slot.try_into().expect("four bytes")))
                .collect();
            at += len;
            let last = 63 - u64::from(present.leading_zeros().min(63));
            let inside = key.0.checked_mul(CHUNK).is_some_and(|first| is_inside(self.map.sectors(), first, last + 1));
            let sound = |slot: &Slot| *slot != NO_SLOT && u64::from(*slot) < self.config.geometry.slots();
            if present == 0 || holes & !present != 0 || !inside || !slots.iter().all(sound) {
                return Err(Damage::Nonsense("what a snapshot sees"));
            }
            pieces.push((key, Piece { present, holes, slots }));
        }
        self.loaded.slots.push((seq, pieces));
        Ok(())
    }

    /// All slots were read: makes list and index of them.
    pub(super) fn take_loaded(&mut self) -> Result<(), Damage> {
        let mut snapshots = std::mem::take(&mut self.loaded.snapshots);
        snapshots.sort_unstable_by_key(|snapshot| snapshot.id);
        if snapshots.windows(2).any(|pair| pair[0].id == pair[1].id) {
            return Err(Damage::Nonsense("a snapshot twice in the checkpoint"));
        }
        self.views.set_snapshots(snapshots);
        let mut clones = std::mem::take(&mut self.loaded.clones);
        clones.sort_unstable_by_key(|clone| clone.id);
        for clone in clones {
            let is_double = self.clones.list().last().is_some_and(|last| last.id == clone.id);
            if is_double || self.clones.at(clone.address(0)).is_some() {
                return Err(Damage::Nonsense("a clone twice in the checkpoint"));
            }
            self.clones.add(clone);
        }
        let mut slots = std::mem::take(&mut self.loaded.slots);
        slots.sort_unstable_by_key(|(seq, _)| *seq);
        let mut last: Option<Key> = None;
        for (seq, pieces) in slots {
            for (key, piece) in pieces {
                if last.is_some_and(|last| last >= key) {
                    return Err(Damage::Nonsense("what snapshots see is out of order"));
                }
                last = Some(key);
                match is_windowed(key.0 * CHUNK) {
                    true => self.clones.load(key, &piece),
                    false => self.views.load(key, piece),
                }
            }
            self.loaded.ends.push((last.unwrap_or((0, 0)), seq));
        }
        Ok(())
    }

    /// A sector was changed by what has this number: keeps what the head saw for the newest snapshot of the time, unless that has it.
    pub(super) fn keep(&mut self, seq: u64, lba: u64, old: Slot) {
        let Some(newest) = self.views.newest_below(seq) else { return };
        let is_new = seq >= self.loaded.known((lba / CHUNK, newest));
        if is_new && !self.views.covers(lba, newest..=seq) {
            self.views.push(lba, newest, old);
        }
    }

    /// Sectors are about to be unmapped.
    pub(super) fn keep_range(&mut self, trim: &TrimRecord) {
        if self.views.newest_below(trim.seq).is_none() {
            return;
        }
        let (mut at, end) = (trim.lba, trim.lba + trim.count);
        while let Some(lba) = self.map.next_mapped(at).filter(|lba| *lba < end) {
            self.keep(trim.seq, lba, self.map.get(lba));
            at = lba + 1;
        }
    }

    /// A sector of a clone lies there. Of one that is not known at this point the record was lost, or everything that it holds goes with a record to
    /// come.
    pub(super) fn replay_in_clone(&mut self, lba: u64, slot: Slot) {
        if self.clones.at(lba).is_some() {
            self.clones.set(lba, slot);
        }
    }

    pub(super) fn replay_moved(&mut self, seq: u64, lba: u64, from: Slot, to: Slot) {
        if is_windowed(lba) {
            self.clones.redirect(lba, from, to);
        }
        let lba = sector_of(lba);
        if self.map.get(lba) == from {
            self.map.set(lba, to);
        }
        let loaded = &self.loaded;
        self.views.replay_redirect(lba, (from, to), |key| seq >= loaded.known(key));
    }

    pub(super) fn replay_change(&mut self, seq: u64, record: &Record) -> Result<(), Damage> {
        // Whatever the checkpoint showed of a clone: what comes behind its beginning is replayed, and behind its end nothing is left.
        match record {
            Record::Clone { window, .. } => self.clones.clear_window(*window, |_| {}),
            Record::DeleteClone(id) => {
                let window = self.clones.find(*id).map(|clone| clone.window);
                window.into_iter().for_each(|window| self.clones.clear_window(window, |_| {}));
            }
            _ => {}
        }
        if seq < self.loaded.listed {
            return Ok(());
        }
        if let Record::Clone { window, .. } = record
            && self.clones.has_window(*window)
        {
            return Err(Damage::Nonsense("a clone in the place of another one"));
        }
        if let Record::Promote(id) = record
            && let Some(clone) = self.clones.find(*id).cloned()
        {
            self.replay_roll_back(seq, clone.of);
            for (lba, slot) in self.clones.take(&clone) {
                self.replay_replaced(seq, lba, slot);
            }
        }
        record.apply(&mut self.views, &mut self.clones, seq);
        if let Record::RollBack { to, .. } = record
            && self.views.exists(*to)
        {
            self.replay_roll_back(seq, *to);
        }
        Ok(())
    }

    fn replay_roll_back(&mut self, seq: u64, to: SnapshotId) {
        let mut chunk = 0;
        while let Some((found, mut bits)) = self.views.next_changed(chunk..u64::MAX, &(to..=seq)) {
            while bits != 0 {
                let lba = found * CHUNK + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                let old = self.map.get(lba);
                let new = self.views.see(to, lba, old);
                if new != old {
                    self.replay_replaced(seq, lba, new);
                }
            }
            chunk = found + 1;
        }
    }

    fn replay_replaced(&mut self, seq: u64, lba: u64, new: Slot) {
        self.keep(seq, lba, self.map.get(lba));
        match new {
            NO_SLOT => self.map.clear(lba, 1, |_| {}),
            new => _ = self.map.set(lba, new),
        }
    }

    /// What snapshots see is live, too. A slot may be seen by several, but of one sector only.
    pub(super) fn mark_seen(&mut self) -> Result<(), Damage> {
        // What deleted snapshots left was freed, as a rule, and its slots may hold something else since.
        self.views.purge_all();
        while self.views.is_purging() {
            self.views.purge(usize::MAX, |_| {});
        }
        self.clones.settle(&self.views);
        for (_, piece) in self.clones.pieces((0, 0)) {
            for slot in &piece.slots {
                if self.lebs.is_live(*slot) {
                    return Err(Damage::Nonsense("two sectors in one slot"));
                }
                self.lebs.set_live(*slot, UNNOTED);
            }
        }
        let mut shared = Vec::new();
        for (key, piece) in self.views.pieces((0, 0)) {
            for (bit, slot) in piece.entries().filter(|(_, slot)| *slot != NO_SLOT) {
                let mut earlier = self.views.pieces((key.0, 0)).take_while(|(other, _)| *other < key);
                if self.map.get(key.0 * CHUNK + bit) == slot || earlier.any(|(_, piece)| piece.get(bit) == Some(slot)) {
                    shared.push(slot);
                } else if self.lebs.is_live(slot) {
                    return Err(Damage::Nonsense("two sectors in one slot"));
                } else {
                    self.lebs.set_live(slot, UNNOTED);
                }
            }
        }
        shared.into_iter().for_each(|slot| self.views.share(slot));
        Ok(())
    }
}
