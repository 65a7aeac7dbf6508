//! Clones: devices of their own that began as what a snapshot shows, and are written.
//!
//! A clone owns a *window* of addresses, far above the host's. A write there is a write like others in log, checkpoint and recovery, and the
//! groomer moves what it wrote like everything else. What a clone wrote or trimmed stands in an index of its own, in the same pieces as
//! what snapshots see, a trim as a hole; of everything else it sees what its snapshot does, which stays for as long. So making one is a
//! record in the log, and nothing else is paid for before it is written.
//!
//! To promote a clone is to roll back to its snapshot and to give the host's addresses what the clone's had, in one record. The slots keep the clone's
//! address until they are moved.
//!
//! An entry says what a clone holds now, as one of the map does: replaying what is newer in order ends at the same, whatever moment a
//! checkpoint showed. What a deleted clone held is freed in steps. Its window is another one's only when that is over and the delete is
//! durable: until then a write to the old clone could be found in the log without the delete behind it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::views::{CHUNK, Key, PIECE_HEAD, Piece, Pieces, SNAPSHOT_BYTES, Views};
use super::{Snapshot, SnapshotChange, SnapshotError, SnapshotId, run_of};
use crate::layer::Ftl;
use crate::map::Map;
use crate::types::{NO_SLOT, Slot};

/// The most clones of a device.
pub const CLONES_MAX: usize = 1024;

/// The most sectors of a device with clones, as a power of two: those of a window.
const WINDOW_SHIFT: u32 = 37;
/// The first window. Below lies every address that a host can have.
const FIRST_WINDOW: u64 = 2;
/// Windows end here: an address has 48 bits on media.
const WINDOWS: u64 = 1 << (48 - WINDOW_SHIFT);

/// Whether an address is one of a clone.
#[inline]
pub(crate) const fn is_windowed(lba: u64) -> bool {
    lba >> WINDOW_SHIFT >= FIRST_WINDOW
}

/// The sector of the device that an address stands for: a clone's address differs from it by the clone's window.
#[inline]
pub const fn sector_of(lba: u64) -> u64 {
    if is_windowed(lba) { lba & ((1 << WINDOW_SHIFT) - 1) } else { lba }
}

/// Whether addresses may be those of a device of so many sectors, or of one of its clones.
pub fn is_inside(sectors: u64, lba: u64, count: u64) -> bool {
    lba >> 48 == 0 && sector_of(lba).checked_add(count).is_some_and(|end| end <= sectors)
}

/// A clone of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotClone {
    /// Which, among clones and snapshots: the number of its record in the log.
    pub id: SnapshotId,
    /// What people call it; no snapshot has the same name.
    pub name: String,
    /// When it was made, seconds since 1970, as whoever made it said.
    pub created: u64,
    /// The snapshot that it stands on.
    pub of: SnapshotId,
    pub(crate) window: u64,
}

impl SnapshotClone {
    /// The address at which a sector of the clone is written and trimmed.
    #[inline]
    pub fn address(&self, lba: u64) -> u64 {
        self.window << WINDOW_SHIFT | lba
    }

    /// Its pieces.
    fn keys(&self) -> RangeInclusive<Key> {
        keys_of(self.window)
    }

    /// In a checkpoint: number, created and snapshot u64 each, window u16, length of the name u8, name, and zeros.
    pub(crate) fn encode(&self) -> [u8; SNAPSHOT_BYTES] {
        let mut bytes = [0; SNAPSHOT_BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip([self.id, self.created, self.of]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[24..26].copy_from_slice(&(self.window as u16).to_le_bytes());
        bytes[26] = self.name.len() as u8;
        bytes[27..27 + self.name.len()].copy_from_slice(self.name.as_bytes());
        bytes
    }

    /// The opposite; `None` when the bytes make no sense.
    pub(crate) fn decode(bytes: &[u8]) -> Option<SnapshotClone> {
        let word = |at: usize| super::record::word(bytes, at);
        let window = u64::from(u16::from_le_bytes([*bytes.get(24)?, *bytes.get(25)?]));
        let name = super::record::name(bytes, *bytes.get(26)?, 27)?;
        let clone = SnapshotClone { id: word(0)?, name, created: word(8)?, of: word(16)?, window };
        is_window(window).then_some(clone)
    }
}

pub(crate) fn is_window(window: u64) -> bool {
    (FIRST_WINDOW..WINDOWS).contains(&window)
}

fn keys_of(window: u64) -> RangeInclusive<Key> {
    let chunks = (1 << WINDOW_SHIFT) / CHUNK;
    (window * chunks, 0)..=((window + 1) * chunks - 1, 0)
}

/// A clone's window.
struct Window {
    id: SnapshotId,
    /// Sectors that only the clone holds.
    own: u64,
}

/// The clones of a device, and what they hold.
#[derive(Default)]
pub(crate) struct Clones {
    /// By number.
    list: Vec<SnapshotClone>,
    windows: BTreeMap<u64, Window>,
    /// By address; the second half of each key is 0.
    index: Pieces,
    /// Windows that clones left, and from which sequence number on durability covers that.
    left: BTreeMap<u64, u64>,
    /// Of some of them there may be pieces.
    purging: bool,
    /// The window that was given last.
    last: u64,
}

impl Clones {
    pub fn list(&self) -> &[SnapshotClone] {
        &self.list
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.index.is_empty()
    }

    pub fn find(&self, id: SnapshotId) -> Option<&SnapshotClone> {
        self.list.get(self.list.binary_search_by_key(&id, |clone| clone.id).ok()?)
    }

    pub fn find_mut(&mut self, id: SnapshotId) -> Option<&mut SnapshotClone> {
        let at = self.list.binary_search_by_key(&id, |clone| clone.id).ok()?;
        self.list.get_mut(at)
    }

    /// The clone of an address.
    pub fn at(&self, lba: u64) -> Option<&SnapshotClone> {
        self.find(self.windows.get(&(lba >> WINDOW_SHIFT))?.id)
    }

    /// Whether a clone has this window.
    pub fn has_window(&self, window: u64) -> bool {
        self.windows.contains_key(&window)
    }

    /// Sectors that clones hold.
    pub fn held(&self) -> u64 {
        self.index.held
    }

    /// Sectors that one of them holds, and that are freed with it.
    pub fn own(&self, clone: &SnapshotClone) -> u64 {
        self.windows.get(&clone.window).map_or(0, |window| window.own)
    }

    /// Bytes that what one of them holds takes in a checkpoint.
    pub fn bytes_of(&self, clone: &SnapshotClone) -> u64 {
        self.index.range(clone.keys()).map(|(_, piece)| piece.bytes() as u64).sum()
    }

    /// Takes what a clone holds: each sector with its slot, or [`NO_SLOT`] where it trimmed.
    pub fn take(&mut self, clone: &SnapshotClone) -> Vec<(u64, Slot)> {
        let keys: Vec<Key> = self.index.range(clone.keys()).map(|(key, _)| key).collect();
        let mut taken = Vec::new();
        for key in keys {
            let piece = self.index.remove(key).unwrap_or_default();
            taken.extend(piece.entries().map(|(bit, slot)| (sector_of(key.0 * CHUNK + bit), slot)));
        }
        if let Some(window) = self.windows.get_mut(&clone.window) {
            window.own = 0;
        }
        taken
    }

    /// Bytes that all of it takes in a checkpoint.
    pub fn bytes(&self) -> u64 {
        self.index.bytes + (self.list.len() * SNAPSHOT_BYTES) as u64
    }

    /// Heap memory, bytes; about.
    pub fn memory(&self) -> usize {
        self.index.memory
            + self.list.capacity() * size_of::<SnapshotClone>()
            + (self.windows.len() + self.left.len()) * 48
    }

    /// The pieces from a key on.
    pub fn pieces(&self, from: Key) -> impl Iterator<Item = (Key, &Piece)> {
        self.index.range(from..)
    }

    /// What a clone itself holds at an address: [`NO_SLOT`] where it trimmed, nothing where it sees what its snapshot does.
    pub fn get(&self, lba: u64) -> Option<Slot> {
        self.index.get(lba, 0)
    }

    /// The same as a slot; [`NO_SLOT`] for both.
    pub fn slot(&self, lba: u64) -> Slot {
        self.get(lba).unwrap_or(NO_SLOT)
    }

    /// A clone's sector lies there; gives where it lay.
    pub fn set(&mut self, lba: u64, slot: Slot) -> Slot {
        let old = self.index.set(lba, 0, Some(slot)).unwrap_or(NO_SLOT);
        if let Some(window) = self.windows.get_mut(&(lba >> WINDOW_SHIFT)) {
            window.own = window.own + u64::from(slot != NO_SLOT) - u64::from(old != NO_SLOT);
        }
        old
    }

    /// Has a clone that refers to one slot refer to another one.
    pub fn redirect(&mut self, lba: u64, from: Slot, to: Slot) {
        if self.slot(lba) == from {
            self.set(lba, to);
        }
    }

    /// A piece of a checkpoint.
    pub fn load(&mut self, key: Key, piece: &Piece) {
        piece.entries().for_each(|(bit, slot)| _ = self.set(key.0 * CHUNK + bit, slot));
    }

    /// Sectors of a clone show zeros: tells `freed` each slot that it gave up. What its snapshot sees there is covered.
    pub fn trim(&mut self, (map, views): (&Map, &Views), lba: u64, count: u64, mut freed: impl FnMut(Slot)) {
        let Some(of) = self.at(lba).map(|clone| clone.of) else { return };
        let end = lba + count;
        let known: Vec<u64> =
            self.index.range((lba / CHUNK, 0)..(end.div_ceil(CHUNK), 0)).map(|(key, _)| key.0).collect();
        for chunk in known {
            self.cut(chunk, bits_of(chunk, lba, end), 0, &mut freed);
        }
        let (base, mut at) = (lba - sector_of(lba), lba);
        while at < end {
            let (run, mapped) = views.run_in(map, of, at - base, end - at);
            let behind = at + run;
            while mapped && at < behind {
                let chunk = at / CHUNK;
                let bits = bits_of(chunk, at, behind);
                self.cut(chunk, bits, bits, &mut freed);
                at = behind.min((chunk + 1) * CHUNK);
            }
            at = behind;
        }
    }

    /// Takes entries of a piece away, and has some of them say that nothing is there.
    fn cut(&mut self, chunk: u64, gone: u64, holes: u64, freed: &mut impl FnMut(Slot)) {
        let slots = self.index.cut((chunk, 0), gone, holes);
        if let Some(window) = self.windows.get_mut(&((chunk * CHUNK) >> WINDOW_SHIFT)) {
            window.own -= slots.len() as u64;
        }
        slots.into_iter().for_each(freed);
    }

    /// Whether sectors of a clone show data, and bytes that a trim of them may add to the index, at most.
    pub fn shows(&self, (map, views): (&Map, &Views), lba: u64, count: u64) -> (bool, u64) {
        let Some(of) = self.at(lba).map(|clone| clone.of) else { return (false, 0) };
        let end = lba + count;
        let pieces = self.index.range((lba / CHUNK, 0)..(end.div_ceil(CHUNK), 0));
        let mut shows = { pieces }.any(|(key, piece)| piece.present & !piece.holes & bits_of(key.0, lba, end) != 0);
        let (base, mut at, mut bytes) = (lba - sector_of(lba), lba, 0);
        while at < end {
            let (run, mapped) = views.run_in(map, of, at - base, end - at);
            if mapped {
                let behind = at + run;
                bytes += ((behind - 1) / CHUNK - at / CHUNK + 1) * PIECE_HEAD as u64;
                shows = shows
                    || (at / CHUNK..=(behind - 1) / CHUNK).any(|chunk| {
                        let present = self.index.piece((chunk, 0)).map_or(0, |piece| piece.present);
                        bits_of(chunk, at, behind) & !present != 0
                    });
            }
            at += run;
        }
        (shows, bytes)
    }

    /// Adds a clone, which is newer than all others.
    pub fn add(&mut self, clone: SnapshotClone) {
        debug_assert!(self.list.last().is_none_or(|last| last.id < clone.id));
        self.last = clone.window;
        self.left.remove(&clone.window);
        self.windows.insert(clone.window, Window { id: clone.id, own: 0 });
        self.list.push(clone);
    }

    /// Takes a clone away by what has this number; what it held is purged later.
    pub fn remove(&mut self, id: SnapshotId, seq: u64) -> Option<SnapshotClone> {
        let at = self.list.binary_search_by_key(&id, |clone| clone.id).ok()?;
        let clone = self.list.remove(at);
        self.windows.remove(&clone.window);
        self.left.insert(clone.window, seq);
        self.purging = true;
        Some(clone)
    }

    /// A window that nobody has, and of which nothing can come back.
    pub fn free_window(&self, durable: u64) -> Option<u64> {
        let windows = (self.last + 1..WINDOWS).chain(FIRST_WINDOW..self.last + 1).filter(|window| is_window(*window));
        let is_free = |window: &u64| {
            let left = self.left.get(window).is_none_or(|seq| *seq < durable);
            left && !self.has_window(*window) && self.index.range(keys_of(*window)).next().is_none()
        };
        { windows }.find(is_free)
    }

    /// Everything that a window holds is no more.
    pub fn clear_window(&mut self, window: u64, freed: impl FnMut(Slot)) {
        self.purge_window(window, usize::MAX, freed);
        if let Some(window) = self.windows.get_mut(&window) {
            window.own = 0;
        }
    }

    fn purge_window(&mut self, window: u64, most: usize, mut freed: impl FnMut(Slot)) -> usize {
        let keys: Vec<Key> = self.index.range(keys_of(window)).map(|(key, _)| key).take(most).collect();
        for key in &keys {
            let piece = self.index.remove(*key);
            piece.into_iter().flat_map(|piece| piece.slots).for_each(&mut freed);
        }
        keys.len()
    }

    /// Whether deleted clones left something.
    pub fn is_purging(&self) -> bool {
        self.purging
    }

    /// Frees so many pieces of what deleted clones left.
    pub fn purge(&mut self, most: usize, mut freed: impl FnMut(Slot)) {
        if !self.purging {
            return;
        }
        let windows: Vec<u64> = self.left.keys().copied().collect();
        let mut looked = 0;
        for window in windows {
            looked += self.purge_window(window, most - looked, &mut freed);
            if looked >= most {
                return;
            }
        }
        self.purging = false;
    }

    /// At the end of a recovery: no clone stands on a snapshot that is not there, and nothing is held by clones that are not.
    pub fn settle(&mut self, views: &Views) {
        let lost: Vec<SnapshotId> =
            self.list.iter().filter(|clone| !views.exists(clone.of)).map(|clone| clone.id).collect();
        lost.into_iter().for_each(|id| _ = self.remove(id, 0));
        for window in FIRST_WINDOW..WINDOWS {
            if !self.has_window(window) {
                self.clear_window(window, |_| {});
            }
        }
        (self.left, self.purging) = (BTreeMap::new(), false);
    }

    /// Checks what is counted. For tests.
    ///
    /// # Errors
    /// What does not agree.
    pub fn verify(&self) -> Result<(), String> {
        self.index.verify()?;
        for clone in &self.list {
            let own: usize = self.index.range(clone.keys()).map(|(_, piece)| piece.slots.len()).sum();
            if own as u64 != self.own(clone) {
                return Err(format!("the clone {} counts {} sectors, and has {own}", clone.name, self.own(clone)));
            }
        }
        Ok(())
    }
}

/// A bit for each sector of a piece from `lba` to `end`.
fn bits_of(chunk: u64, lba: u64, end: u64) -> u64 {
    let from = lba.saturating_sub(chunk * CHUNK).min(CHUNK);
    let to = end.saturating_sub(chunk * CHUNK).min(CHUNK);
    let below = |bit: u64| if bit == CHUNK { u64::MAX } else { (1 << bit) - 1 };
    below(to) & !below(from)
}

impl Ftl {
    /// The clones, from the oldest to the newest.
    pub fn clones(&self) -> &[SnapshotClone] {
        self.clones.list()
    }

    /// The clone of a number.
    pub fn find_clone(&self, id: SnapshotId) -> Option<&SnapshotClone> {
        self.clones.find(id)
    }

    /// Sectors that a clone alone holds: those that are freed when it is deleted.
    pub fn own_sectors(&self, clone: &SnapshotClone) -> u64 {
        self.clones.own(clone)
    }

    /// Sectors that clones hold data in.
    pub fn cloned_sectors(&self) -> u64 {
        self.clones.held()
    }

    /// Whether all of these are sectors of the host, or of one clone that is there.
    pub fn has_sectors(&self, lba: u64, count: u64) -> bool {
        is_inside(self.map.sectors(), lba, count) && self.has_address(lba)
    }

    /// Whether an address is that of no deleted clone.
    #[inline]
    pub fn has_address(&self, lba: u64) -> bool {
        !is_windowed(lba) || self.clones.at(lba).is_some()
    }

    /// What the host, or a clone itself, holds at an address.
    #[inline]
    pub(crate) fn slot_at(&self, lba: u64) -> Slot {
        if is_windowed(lba) { self.clones.slot(lba) } else { self.map.get(lba) }
    }

    /// What a clone sees.
    pub(crate) fn see_in_clone(&self, address: u64, of: SnapshotId, lba: u64) -> Slot {
        self.clones.get(address | lba).unwrap_or_else(|| self.see(of, lba))
    }

    /// Like [`Ftl::run_in`], in a clone.
    pub(crate) fn run_in_clone(&self, clone: &SnapshotClone, lba: u64, max: u64) -> (u64, bool) {
        let end = (lba + max).min(self.map.sectors());
        let base = clone.address(0);
        let mut pieces = self.clones.index.range(((base + lba) / CHUNK, 0)..((base + end).div_ceil(CHUNK), 0));
        let next = pieces.next().map_or(end, |(key, _)| key.0 * CHUNK - base);
        if lba < next {
            return self.run_in(clone.of, lba, next.min(end) - lba);
        }
        let first = lba - lba % CHUNK;
        run_of(lba, end, |bit| self.see_in_clone(base, clone.of, first + bit as u64) != NO_SLOT)
    }

    /// A sector of the host, beside snapshots, or of a clone lies there from now on.
    #[cold]
    #[inline(never)]
    pub(crate) fn set_beside_views(&mut self, lba: u64, slot: Slot) {
        if !is_windowed(lba) {
            let old = self.map.set(lba, slot);
            return self.supersede(lba, old);
        }
        let old = self.clones.set(lba, slot);
        if old != NO_SLOT {
            self.lebs.set_dead(old);
        }
    }

    /// Forgets sectors of a clone whose trim is recorded.
    pub(crate) fn unmap_in_clone(&mut self, lba: u64, count: u64) {
        let Ftl { clones, map, views, lebs, groomer, .. } = self;
        clones.trim((map, views), lba, count, |slot| {
            groomer.discarded(lebs.note(lebs.place(slot)));
            lebs.set_dead(slot);
        });
    }

    /// The head sees what a clone does, and the clone nothing any more. What the head saw is kept for snapshots.
    pub(crate) fn promote(&mut self, id: SnapshotId) {
        let Some(clone) = self.find_clone(id).cloned() else { return };
        self.roll_back(clone.of);
        let before = self.live_sectors();
        for (lba, slot) in self.clones.take(&clone) {
            self.replace(lba, slot);
        }
        self.note_leaving(before.saturating_sub(self.live_sectors()));
    }

    /// Frees some of what deleted clones left; gives how many sectors.
    pub(crate) fn purge_clones(&mut self, most: usize) -> u64 {
        let (lebs, groomer, mut freed) = (&mut self.lebs, &mut self.groomer, 0);
        self.clones.purge(most, |slot| {
            groomer.discarded(lebs.note(lebs.place(slot)));
            lebs.set_dead(slot);
            freed += 1;
        });
        freed
    }

    /// Whether a change of clones can be made.
    pub(crate) fn check_clone_change(&self, change: &SnapshotChange) -> Result<(), SnapshotError> {
        match change {
            SnapshotChange::Clone { of, .. } => {
                if !self.views.exists(*of) {
                    return Err(SnapshotError::Unknown);
                }
                if self.map.sectors() > 1 << WINDOW_SHIFT {
                    return Err(SnapshotError::Unclonable("its address space is larger than 2^37 sectors"));
                }
                if self.config.policy.keeps_each_sector() {
                    return Err(SnapshotError::Unclonable("its groomer's policy keeps something of each sector"));
                }
                if self.clones().len() >= CLONES_MAX {
                    return Err(SnapshotError::TooManyClones);
                }
                match self.fits_index(SNAPSHOT_BYTES as u64) {
                    true => Ok(()),
                    false => Err(SnapshotError::Full),
                }
            }
            SnapshotChange::DeleteClone(id) | SnapshotChange::Promote(id) => {
                self.find_clone(*id).map(|_| ()).ok_or(SnapshotError::UnknownClone)
            }
            _ => Ok(()),
        }
    }

    /// A snapshot on which a clone stands stays.
    pub(crate) fn check_uncloned(&self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        match self.clones().iter().find(|clone| clone.of == snapshot.id) {
            Some(clone) => Err(SnapshotError::Cloned(snapshot.name.clone(), clone.name.clone())),
            None => Ok(()),
        }
    }
}
