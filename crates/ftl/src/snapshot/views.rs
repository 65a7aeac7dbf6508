//! What snapshots see, where that differs from what stands behind them.
//!
//! One ordered index holds it for all of them: `(sector, snapshot)` to a slot, or to a hole. The first write or trim of a sector after
//! the newest snapshot puts there what the sector held. A snapshot sees the first entry of a sector that belongs to it or to a later
//! snapshot, and where there is none what the head sees. So a snapshot costs nothing when it is made, and every old slot stands in
//! one entry, however many snapshots see it.
//!
//! Entries of 64 sectors and one snapshot share a *piece*: a bit for each entry, a bit for each hole, and four bytes for each slot.
//! What a deleted snapshot leaves is still looked through by older ones; [`Views::purge`] gives it to the one before, or frees it.

use std::collections::BTreeMap;
use std::ops::{Range, RangeBounds, RangeInclusive};

use super::{Snapshot, SnapshotId, run_of};
use crate::map::Map;
use crate::types::{NO_SLOT, Slot};

/// Sectors of one piece.
pub(crate) const CHUNK: u64 = 64;
/// Bytes of a piece in a checkpoint, without its slots.
pub(crate) const PIECE_HEAD: usize = 32;
/// Bytes of a snapshot in a checkpoint.
pub(crate) const SNAPSHOT_BYTES: usize = 96;

/// Pieces without what is looked for that are looked at in one go.
const LOOKED_AT: usize = 1024;

/// Which piece: a run of [`CHUNK`] sectors, and the snapshot.
pub(crate) type Key = (u64, SnapshotId);

/// Every piece of these sectors.
fn all_of(chunk: u64) -> RangeInclusive<Key> {
    (chunk, 0)..=(chunk, SnapshotId::MAX)
}

/// The entries of one snapshot in a run of sectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub present: u64,
    /// Of those the ones that held nothing.
    pub holes: u64,
    /// Of the others, in order.
    pub slots: Vec<Slot>,
}

impl Piece {
    fn rank(&self, bit: u64) -> usize {
        (self.present & !self.holes & ((1 << bit) - 1)).count_ones() as usize
    }

    /// What a sector held; [`NO_SLOT`] for nothing. `None` where there is no entry.
    pub fn get(&self, bit: u64) -> Option<Slot> {
        if self.present >> bit & 1 == 0 {
            return None;
        }
        Some(if self.holes >> bit & 1 == 1 { NO_SLOT } else { self.slots[self.rank(bit)] })
    }

    fn insert(&mut self, bit: u64, slot: Slot) {
        debug_assert!(self.get(bit).is_none());
        if slot == NO_SLOT {
            self.holes |= 1 << bit;
        } else {
            let at = self.rank(bit);
            if self.slots.len() == self.slots.capacity() {
                self.slots.reserve_exact(4.max(self.slots.len() / 4));
            }
            self.slots.insert(at, slot);
        }
        self.present |= 1 << bit;
    }

    fn replace(&mut self, bit: u64, slot: Slot) {
        let at = self.rank(bit);
        self.slots[at] = slot;
    }

    /// Takes an entry away.
    fn remove(&mut self, bit: u64) {
        match self.get(bit) {
            None => return,
            Some(NO_SLOT) => self.holes &= !(1 << bit),
            Some(_) => _ = self.slots.remove(self.rank(bit)),
        }
        self.present &= !(1 << bit);
    }

    /// Bytes in a checkpoint.
    pub fn bytes(&self) -> usize {
        PIECE_HEAD + size_of::<Slot>() * self.slots.len()
    }

    fn memory(&self) -> usize {
        // With what a tree keeps of it.
        3 * size_of::<Key>() / 2 + 3 * size_of::<Piece>() / 2 + self.slots.capacity() * size_of::<Slot>()
    }

    /// Its entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = (u64, Slot)> {
        (0..CHUNK).filter_map(|bit| Some((bit, self.get(bit)?)))
    }
}

/// Pieces, in order, and what all of them take.
#[derive(Default)]
pub(crate) struct Pieces {
    pieces: BTreeMap<Key, Piece>,
    /// Entries with a slot.
    pub held: u64,
    /// In a checkpoint.
    pub bytes: u64,
    pub memory: usize,
}

impl Pieces {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Those of a range of keys, in order.
    pub fn range(&self, keys: impl RangeBounds<Key>) -> impl Iterator<Item = (Key, &Piece)> {
        self.pieces.range(keys).map(|(key, piece)| (*key, piece))
    }

    /// What an entry says; nothing where there is none.
    pub fn get(&self, lba: u64, id: SnapshotId) -> Option<Slot> {
        self.pieces.get(&(lba / CHUNK, id))?.get(lba % CHUNK)
    }

    /// Sets an entry, or takes it away; gives what it said before.
    pub fn set(&mut self, lba: u64, id: SnapshotId, entry: Option<Slot>) -> Option<Slot> {
        let (key, bit) = ((lba / CHUNK, id), lba % CHUNK);
        let piece = match (self.pieces.get_mut(&key), entry) {
            (Some(piece), _) => piece,
            (None, Some(_)) => self.pieces.entry(key).or_default(),
            (None, None) => return None,
        };
        let old = piece.get(bit);
        if piece.present > 0 {
            (self.bytes, self.memory) = (self.bytes - piece.bytes() as u64, self.memory - piece.memory());
        }
        match (old, entry) {
            (Some(one), Some(other)) if one != NO_SLOT && other != NO_SLOT => piece.replace(bit, other),
            _ => {
                piece.remove(bit);
                entry.into_iter().for_each(|slot| piece.insert(bit, slot));
            }
        }
        self.held += u64::from(entry.is_some_and(|slot| slot != NO_SLOT));
        self.held -= u64::from(old.is_some_and(|slot| slot != NO_SLOT));
        if piece.present == 0 {
            self.pieces.remove(&key);
        } else {
            (self.bytes, self.memory) = (self.bytes + piece.bytes() as u64, self.memory + piece.memory());
        }
        old
    }

    pub fn piece(&self, key: Key) -> Option<&Piece> {
        self.pieces.get(&key)
    }

    /// Takes entries of a piece away, and has some of them say that nothing was there. Gives their slots.
    pub fn cut(&mut self, key: Key, gone: u64, holes: u64) -> Vec<Slot> {
        let old = self.remove(key).unwrap_or_default();
        let mut piece =
            Piece { present: old.present & !gone | holes, holes: old.holes & !gone | holes, slots: Vec::new() };
        let mut freed = Vec::new();
        for (bit, slot) in old.entries().filter(|(_, slot)| *slot != NO_SLOT) {
            let list = if gone >> bit & 1 == 1 { &mut freed } else { &mut piece.slots };
            list.push(slot);
        }
        if piece.present != 0 {
            piece.slots.shrink_to_fit();
            self.bytes += piece.bytes() as u64;
            self.memory += piece.memory();
            self.held += piece.slots.len() as u64;
            self.pieces.insert(key, piece);
        }
        freed
    }

    /// Takes a piece away.
    pub fn remove(&mut self, key: Key) -> Option<Piece> {
        let piece = self.pieces.remove(&key)?;
        self.bytes -= piece.bytes() as u64;
        self.memory -= piece.memory();
        self.held -= piece.slots.len() as u64;
        Some(piece)
    }

    /// Checks what is counted. For tests.
    pub fn verify(&self) -> Result<(), String> {
        let held: usize = self.pieces.values().map(|piece| piece.slots.len()).sum();
        let bytes: usize = self.pieces.values().map(Piece::bytes).sum();
        let memory: usize = self.pieces.values().map(Piece::memory).sum();
        let (counted, found) = ((self.held, self.bytes, self.memory), (held as u64, bytes as u64, memory));
        if counted != found {
            return Err(format!("the index counts {counted:?} slots, bytes and memory, and has {found:?}"));
        }
        match self.pieces.iter().find(|(_, piece)| piece.present == 0 || piece.holes & !piece.present != 0) {
            Some((key, piece)) => Err(format!("the piece {key:?} is {piece:?}")),
            None => Ok(()),
        }
    }
}

/// The snapshots of a device, and what they see.
#[derive(Default)]
pub(crate) struct Views {
    /// From the oldest to the newest.
    snapshots: Vec<Snapshot>,
    index: Pieces,
    /// Slots that more than one entry, or an entry and the head, refer to, since somebody rolled back: how many more.
    shared: BTreeMap<Slot, u32>,
    /// Sum of `shared`.
    extra: u64,
    /// Where purging goes on; nothing where no deleted snapshot left anything.
    purging: Option<Key>,
}

impl Views {
    /// The snapshots, from the oldest to the newest.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// A snapshot.
    pub fn find(&mut self, id: SnapshotId) -> Option<&mut Snapshot> {
        let at = self.snapshots.binary_search_by_key(&id, |snapshot| snapshot.id).ok()?;
        self.snapshots.get_mut(at)
    }

    pub fn exists(&self, id: SnapshotId) -> bool {
        self.snapshots.binary_search_by_key(&id, |snapshot| snapshot.id).is_ok()
    }

    /// Whether there is, or was, any: only then there is anything to be done for them.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.snapshots.is_empty() || !self.index.is_empty()
    }

    /// The newest that is older than this number.
    pub fn newest_below(&self, seq: u64) -> Option<SnapshotId> {
        let at = self.snapshots.partition_point(|snapshot| snapshot.id < seq);
        Some(self.snapshots.get(at.checked_sub(1)?)?.id)
    }

    /// Adds a snapshot, which is newer than all others.
    pub fn add(&mut self, snapshot: Snapshot) {
        debug_assert!(self.snapshots.last().is_none_or(|last| last.id < snapshot.id));
        self.snapshots.push(snapshot);
    }

    /// All of them, by number.
    pub fn set_snapshots(&mut self, snapshots: Vec<Snapshot>) {
        self.snapshots = snapshots;
    }

    /// Takes snapshots away; what they held is purged later.
    pub fn remove(&mut self, gone: impl Fn(SnapshotId) -> bool) {
        self.snapshots.retain(|snapshot| !gone(snapshot.id));
        self.purging = Some((0, 0));
    }

    /// Slots that only snapshots need.
    pub fn kept(&self) -> u64 {
        self.index.held - self.extra
    }

    /// Bytes that all of it takes in a checkpoint.
    pub fn bytes(&self) -> u64 {
        self.index.bytes + (self.snapshots.len() * SNAPSHOT_BYTES) as u64
    }

    /// Heap memory, bytes; about.
    pub fn memory(&self) -> usize {
        self.index.memory + self.snapshots.capacity() * size_of::<Snapshot>() + self.shared.len() * 12
    }

    /// Whether a snapshot from `from` to `to` has an entry of the sector.
    pub fn covers(&self, lba: u64, ids: RangeInclusive<SnapshotId>) -> bool {
        let (chunk, bit) = (lba / CHUNK, lba % CHUNK);
        self.index.range((chunk, *ids.start())..=(chunk, *ids.end())).any(|(_, piece)| piece.present >> bit & 1 == 1)
    }

    /// Notes what a sector held when it was changed for the first time after this snapshot.
    pub fn push(&mut self, lba: u64, id: SnapshotId, slot: Slot) {
        let before = self.index.set(lba, id, Some(slot));
        debug_assert!(before.is_none());
    }

    /// A piece of a checkpoint.
    pub fn load(&mut self, key: Key, piece: Piece) {
        for (bit, slot) in piece.entries() {
            self.push(key.0 * CHUNK + bit, key.1, slot);
        }
    }

    /// What a snapshot sees of a sector, of which the head sees `head`.
    pub fn see(&self, id: SnapshotId, lba: u64, head: Slot) -> Slot {
        let (chunk, bit) = (lba / CHUNK, lba % CHUNK);
        self.index.range((chunk, id)..=(chunk, SnapshotId::MAX)).find_map(|(_, piece)| piece.get(bit)).unwrap_or(head)
    }

    /// Whether an entry of the sector, of a snapshot from `since` on, refers to the slot.
    pub fn holds(&self, lba: u64, slot: Slot, since: SnapshotId) -> bool {
        let (chunk, bit) = (lba / CHUNK, lba % CHUNK);
        self.index.range((chunk, since)..=(chunk, SnapshotId::MAX)).any(|(_, piece)| piece.get(bit) == Some(slot))
    }

    /// Entries of the sector, of snapshots from `since` on, refer to another slot instead of this one from now on.
    pub fn redirect(&mut self, lba: u64, (from, to): (Slot, Slot), since: SnapshotId) {
        let (chunk, bit) = (lba / CHUNK, lba % CHUNK);
        let one = !self.is_shared(from);
        for (_, piece) in self.index.pieces.range_mut((chunk, since)..=(chunk, SnapshotId::MAX)) {
            if piece.get(bit) == Some(from) {
                piece.replace(bit, to);
                if one {
                    return;
                }
            }
        }
    }

    /// The same for all entries in pieces that `known` names, while nothing is known of what is shared.
    pub fn replay_redirect(&mut self, lba: u64, (from, to): (Slot, Slot), known: impl Fn(Key) -> bool) {
        let (chunk, bit) = (lba / CHUNK, lba % CHUNK);
        for (key, piece) in self.index.pieces.range_mut(all_of(chunk)) {
            if piece.get(bit) == Some(from) && known(*key) {
                piece.replace(bit, to);
            }
        }
    }

    /// The sharers of one slot share another one.
    pub fn move_shared(&mut self, from: Slot, to: Slot) {
        if let Some(more) = self.shared.remove(&from) {
            self.shared.insert(to, more);
        }
    }

    /// One more refers to the slot.
    pub fn share(&mut self, slot: Slot) {
        *self.shared.entry(slot).or_default() += 1;
        self.extra += 1;
    }

    /// Whether more than one refers to the slot.
    pub fn is_shared(&self, slot: Slot) -> bool {
        self.shared.contains_key(&slot)
    }

    /// One less refers to the slot; false when that was the last.
    pub fn unshare(&mut self, slot: Slot) -> bool {
        let Some(more) = self.shared.get_mut(&slot) else { return false };
        *more -= 1;
        self.extra -= 1;
        if *more == 0 {
            self.shared.remove(&slot);
        }
        true
    }

    /// The first of these runs of sectors of which these snapshots have entries, with a bit for each. Where it looked at many pieces and
    /// found none, a run that has none either: nothing before it has any.
    pub fn next_changed(&self, chunks: Range<u64>, ids: &RangeInclusive<SnapshotId>) -> Option<(u64, u64)> {
        let (mut at, mut bits) = (chunks.start, 0);
        for (looked, ((chunk, id), piece)) in self.index.pieces.range((chunks.start, 0)..(chunks.end, 0)).enumerate() {
            if *chunk != at {
                if bits != 0 {
                    break;
                }
                if looked >= LOOKED_AT {
                    return Some((*chunk - 1, 0));
                }
            }
            at = *chunk;
            bits |= if ids.contains(id) { piece.present } else { 0 };
        }
        (bits != 0).then_some((at, bits))
    }

    /// What a snapshot sees of a run of sectors: nothing said of those of which it sees what the head does.
    pub fn seen(&self, id: SnapshotId, chunk: u64) -> [Option<Slot>; CHUNK as usize] {
        let mut seen = [None; CHUNK as usize];
        for (_, piece) in self.index.range((chunk, id)..=(chunk, SnapshotId::MAX)) {
            for (bit, slot) in piece.entries() {
                seen[bit as usize].get_or_insert(slot);
            }
        }
        seen
    }

    /// How many sectors from `lba` on, at most `max`, all hold data in a snapshot or all do not, and which. The next may be alike.
    pub fn run_in(&self, map: &Map, id: SnapshotId, lba: u64, max: u64) -> (u64, bool) {
        let end = (lba + max).min(map.sectors());
        let changed = self.next_changed(lba / CHUNK..end.div_ceil(CHUNK), &(id..=SnapshotId::MAX));
        let changed = changed.map_or(end, |(chunk, _)| (chunk * CHUNK).clamp(lba, end));
        if lba < changed {
            return map.run(lba, changed - lba);
        }
        let (seen, first) = (self.seen(id, lba / CHUNK), lba - lba % CHUNK);
        run_of(lba, end, |bit| seen[bit].unwrap_or_else(|| map.get(first + bit as u64)) != NO_SLOT)
    }

    /// The pieces from a key on.
    pub fn pieces(&self, from: Key) -> impl Iterator<Item = (Key, &Piece)> {
        self.index.range(from..)
    }

    /// Whether deleted snapshots left something.
    pub fn is_purging(&self) -> bool {
        self.purging.is_some()
    }

    /// Looks through so many pieces for what deleted snapshots left: the snapshot before gets what it lacks, and `freed` is told of the slots
    /// that nobody refers to any more.
    pub fn purge(&mut self, most: usize, mut freed: impl FnMut(Slot)) {
        let Some(from) = self.purging else { return };
        let (mut left, mut next) = (Vec::new(), None);
        for (number, (key, _)) in self.index.range(from..).enumerate() {
            if number == most {
                next = Some(key);
                break;
            }
            if !self.exists(key.1) {
                left.push(key);
            }
        }
        self.purging = next;
        for key in left {
            let Some(piece) = self.index.remove(key) else { continue };
            let before = self.newest_below(key.1);
            for (bit, slot) in piece.entries() {
                let lba = key.0 * CHUNK + bit;
                match before {
                    Some(before) if !self.covers(lba, before..=key.1) => self.push(lba, before, slot),
                    _ if slot != NO_SLOT && !self.unshare(slot) => freed(slot),
                    _ => {}
                }
            }
        }
    }

    /// What is left of deleted snapshots is to be looked for from the beginning.
    pub fn purge_all(&mut self) {
        self.purging = self.is_active().then_some((0, 0));
    }

    /// Checks what is counted. For tests.
    ///
    /// # Errors
    /// What does not agree.
    pub fn verify(&self) -> Result<(), String> {
        let extra: u64 = self.shared.values().map(|more| u64::from(*more)).sum();
        match self.extra == extra {
            true => self.index.verify(),
            false => Err(format!("snapshots count {} shares, and have {extra}", self.extra)),
        }
    }
}
