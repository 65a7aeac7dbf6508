//! The forward map: from a host sector to the slot that holds it.
//!
//! A tree of two levels over *leaves* of [`LEAF_SECTORS`] sectors. A leaf takes one of three forms, by how many of
//! its sectors are mapped, so that memory follows the data and not the capacity:
//!
//! | mapped in the leaf | form | bytes a mapped sector |
//! |---|---|---|
//! | 1 to 48 | sorted keys and slots | 4 + 140 / n |
//! | 49 to 823 | bitmap and slots in order | 4 + 128 / n |
//! | 824 and more | one slot for every sector | 4096 / n |
//!
//! From one sector in five on that is at most 5 bytes each, and nothing for leaves never written. Leaves of the last form, the usual one of
//! a device in use, stand beside the tree in one table (`dense.rs`), where a sector's slot is found without asking the tree.

mod preallocated;

use crate::dense::Dense;
use crate::types::{NO_SLOT, Slot};

/// Sectors that one leaf covers.
pub const LEAF_SECTORS: usize = 1024;
/// Leaves in one directory page.
const DIR_LEAVES: usize = 256;
/// Largest leaf kept as sorted keys.
const KEYS_MAX: usize = 48;
/// Smallest leaf kept dense: 4096 / 824 is just under 5 bytes a sector.
const DENSE_MIN: usize = 824;
/// Slots that a bitmap leaf's storage grows by.
const GROWTH: usize = 8;

type Dir = [Leaf; DIR_LEAVES];

#[derive(Default)]
enum Leaf {
    #[default]
    Empty,
    Keys(Box<Keys>),
    Packed(Box<Packed>),
    /// In [`Map::dense`]; how many of its sectors are mapped.
    Dense(u32),
}

struct Keys {
    len: u16,
    keys: [u16; KEYS_MAX],
    slots: Vec<Slot>,
}

struct Packed {
    bits: [u64; LEAF_SECTORS / 64],
    slots: Vec<Slot>,
}

impl Packed {
    fn new() -> Packed {
        let mut slots = Vec::new();
        slots.reserve_exact(KEYS_MAX + GROWTH);
        Packed { bits: [0; LEAF_SECTORS / 64], slots }
    }

    /// Adds a sector behind all others.
    fn push(&mut self, index: usize, slot: Slot) {
        self.bits[index / 64] |= 1 << (index % 64);
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(GROWTH);
        }
        self.slots.push(slot);
    }

    /// Where the sector's slot stands, and whether it is mapped.
    fn rank(&self, index: usize) -> (usize, bool) {
        let (word, bit) = (index / 64, index % 64);
        let before: u32 = self.bits[..word].iter().map(|w| w.count_ones()).sum();
        let below = self.bits[word] & ((1 << bit) - 1);
        ((before + below.count_ones()) as usize, self.bits[word] >> bit & 1 == 1)
    }
}

fn insert_exact(slots: &mut Vec<Slot>, at: usize, slot: Slot, growth: usize) {
    if slots.len() == slots.capacity() {
        slots.reserve_exact(growth);
    }
    slots.insert(at, slot);
}

impl Leaf {
    /// The slot of a sector of a leaf that is not dense.
    fn get(&self, index: usize) -> Slot {
        match self {
            Leaf::Packed(packed) => match packed.rank(index) {
                (at, true) => packed.slots[at],
                (_, false) => NO_SLOT,
            },
            Leaf::Keys(keys) => match keys.keys[..keys.len as usize].binary_search(&(index as u16)) {
                Ok(at) => keys.slots[at],
                Err(_) => NO_SLOT,
            },
            Leaf::Empty | Leaf::Dense(_) => NO_SLOT,
        }
    }

    /// The first sector from one on, in a leaf that is not dense, which is not mapped where `mapped`, or is where not; the leaf's end if none.
    fn run_end(&self, index: usize, mapped: bool) -> usize {
        match self {
            Leaf::Empty | Leaf::Dense(_) => {
                if mapped {
                    index
                } else {
                    LEAF_SECTORS
                }
            }
            Leaf::Keys(keys) => {
                let keys = &keys.keys[..keys.len as usize];
                let from = keys.partition_point(|key| usize::from(*key) < index);
                let mut keys = keys[from..].iter().map(|key| usize::from(*key));
                match mapped {
                    true => index + keys.zip(index..).take_while(|(key, at)| key == at).count(),
                    false => keys.next().unwrap_or(LEAF_SECTORS),
                }
            }
            Leaf::Packed(packed) => {
                // Ones where the run ends.
                let ends = |word: usize| if mapped { !packed.bits[word] } else { packed.bits[word] };
                let (word, bit) = (index / 64, index % 64);
                let first = ends(word) & (u64::MAX << bit);
                let rest = (word + 1..packed.bits.len()).map(|word| (word, ends(word)));
                let found = std::iter::once((word, first)).chain(rest).find(|(_, ends)| *ends != 0);
                found.map_or(LEAF_SECTORS, |(word, ends)| word * 64 + ends.trailing_zeros() as usize)
            }
        }
    }

    /// Maps a sector of a leaf that is not dense; gives what it was mapped to.
    fn set(&mut self, index: usize, slot: Slot) -> Slot {
        match self {
            Leaf::Packed(packed) => match packed.rank(index) {
                (at, true) => std::mem::replace(&mut packed.slots[at], slot),
                (at, false) => {
                    packed.bits[index / 64] |= 1 << (index % 64);
                    insert_exact(&mut packed.slots, at, slot, GROWTH);
                    NO_SLOT
                }
            },
            Leaf::Keys(keys) => {
                let len = keys.len as usize;
                match keys.keys[..len].binary_search(&(index as u16)) {
                    Ok(at) => std::mem::replace(&mut keys.slots[at], slot),
                    Err(_) if len == KEYS_MAX => {
                        self.make_packed();
                        self.set(index, slot)
                    }
                    Err(at) => {
                        keys.keys.copy_within(at..len, at + 1);
                        keys.keys[at] = index as u16;
                        keys.len += 1;
                        insert_exact(&mut keys.slots, at, slot, 4);
                        NO_SLOT
                    }
                }
            }
            Leaf::Empty | Leaf::Dense(_) => {
                *self = Leaf::Keys(Box::new(Keys { len: 0, keys: [0; KEYS_MAX], slots: Vec::new() }));
                self.set(index, slot)
            }
        }
    }

    /// Unmaps a sector of a leaf that is not dense; gives what it was mapped to.
    fn clear(&mut self, index: usize) -> Slot {
        match self {
            Leaf::Empty | Leaf::Dense(_) => NO_SLOT,
            Leaf::Packed(packed) => match packed.rank(index) {
                (at, true) => {
                    packed.bits[index / 64] &= !(1 << (index % 64));
                    let old = packed.slots.remove(at);
                    if packed.slots.capacity() - packed.slots.len() >= 2 * GROWTH {
                        packed.slots.shrink_to(packed.slots.len() + GROWTH);
                    }
                    if packed.slots.is_empty() {
                        *self = Leaf::Empty;
                    }
                    old
                }
                (_, false) => NO_SLOT,
            },
            Leaf::Keys(keys) => {
                let len = keys.len as usize;
                let Ok(at) = keys.keys[..len].binary_search(&(index as u16)) else { return NO_SLOT };
                keys.keys.copy_within(at + 1..len, at);
                keys.len -= 1;
                let old = keys.slots.remove(at);
                if keys.len == 0 {
                    *self = Leaf::Empty;
                }
                old
            }
        }
    }

    fn make_packed(&mut self) {
        let mut packed = Packed::new();
        self.for_each(|index, slot| packed.push(index, slot));
        *self = Leaf::Packed(Box::new(packed));
    }

    /// Every mapped sector of a leaf that is not dense, in order.
    fn for_each(&self, mut visit: impl FnMut(usize, Slot)) {
        match self {
            Leaf::Empty | Leaf::Dense(_) => {}
            Leaf::Keys(keys) => {
                for (key, slot) in keys.keys.iter().zip(&keys.slots) {
                    visit(usize::from(*key), *slot);
                }
            }
            Leaf::Packed(packed) => {
                let mut slots = packed.slots.iter();
                for (word, bits) in packed.bits.iter().enumerate() {
                    let mut bits = *bits;
                    while bits != 0 {
                        let index = word * 64 + bits.trailing_zeros() as usize;
                        visit(index, *slots.next().expect("a slot for every bit"));
                        bits &= bits - 1;
                    }
                }
            }
        }
    }

    fn count(&self) -> usize {
        match self {
            Leaf::Empty => 0,
            Leaf::Keys(keys) => keys.len as usize,
            Leaf::Packed(packed) => packed.slots.len(),
            Leaf::Dense(count) => *count as usize,
        }
    }

    /// Bytes behind the leaf.
    fn memory(&self) -> usize {
        match self {
            Leaf::Empty => 0,
            Leaf::Keys(keys) => size_of::<Keys>() + keys.slots.capacity() * size_of::<Slot>(),
            Leaf::Packed(packed) => size_of::<Packed>() + packed.slots.capacity() * size_of::<Slot>(),
            Leaf::Dense(_) => LEAF_SECTORS * size_of::<Slot>(),
        }
    }
}

/// The forward map of one module.
pub struct Map {
    top: Vec<Option<Box<Dir>>>,
    dense: Dense,
    sectors: u64,
    mapped: u64,
    memory: usize,
    /// Every leaf is dense and stays so.
    preallocated: bool,
}

impl Map {
    /// An empty map over `sectors` host sectors.
    pub fn new(sectors: u64) -> Map {
        let pages = sectors.div_ceil((LEAF_SECTORS * DIR_LEAVES) as u64) as usize;
        let mut top = Vec::new();
        top.resize_with(pages, || None);
        let dense = Dense::new(sectors);
        let memory = pages * size_of::<Option<Box<Dir>>>() + dense.memory();
        Map { top, dense, sectors, mapped: 0, memory, preallocated: false }
    }

    /// So many host sectors from now on. Those beyond the new end must not be mapped; the tables stay as large as they were once.
    pub fn resize(&mut self, sectors: u64) {
        debug_assert!(sectors >= self.sectors || self.next_mapped(sectors).is_none());
        let memory = |map: &Map| map.top.len() * size_of::<Option<Box<Dir>>>() + map.dense.memory();
        let before = memory(self);
        let pages = sectors.div_ceil((LEAF_SECTORS * DIR_LEAVES) as u64) as usize;
        self.top.resize_with(pages.max(self.top.len()), || None);
        self.dense.grow(sectors);
        self.sectors = sectors;
        self.memory = self.memory - before + memory(self);
    }

    /// Host sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// How many sectors are mapped.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Heap memory of the map, bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    fn split(lba: u64) -> (usize, usize, usize) {
        let leaf = lba as usize / LEAF_SECTORS;
        (leaf / DIR_LEAVES, leaf % DIR_LEAVES, lba as usize % LEAF_SECTORS)
    }

    /// The slot of a sector, or [`NO_SLOT`].
    #[inline]
    pub fn get(&self, lba: u64) -> Slot {
        if self.dense.holds(lba) {
            return self.dense.get(lba);
        }
        let (page, leaf, index) = Self::split(lba);
        match &self.top[page] {
            Some(dir) => dir[leaf].get(index),
            None => NO_SLOT,
        }
    }

    /// Starts to fetch a sector's entry into the cache, where its leaf is dense.
    #[inline]
    pub fn prefetch(&self, lba: u64) {
        self.dense.prefetch(lba);
    }

    /// Maps a sector; gives what it was mapped to before.
    #[inline]
    pub fn set(&mut self, lba: u64, slot: Slot) -> Slot {
        debug_assert!(lba < self.sectors && slot != NO_SLOT);
        if self.dense.holds(lba) {
            let old = self.dense.set(lba, slot);
            if old == NO_SLOT {
                self.count_dense(lba);
            }
            return old;
        }
        self.set_sparse(lba, slot)
    }

    /// A dense leaf has one mapped sector more.
    #[cold]
    fn count_dense(&mut self, lba: u64) {
        let (page, leaf, _) = Self::split(lba);
        if let Some(dir) = &mut self.top[page]
            && let Leaf::Dense(count) = &mut dir[leaf]
        {
            *count += 1;
        }
        self.mapped += 1;
    }

    fn set_sparse(&mut self, lba: u64, slot: Slot) -> Slot {
        let (page, leaf, index) = Self::split(lba);
        let dir = self.top[page].get_or_insert_with(|| {
            self.memory += size_of::<Dir>();
            Box::new(std::array::from_fn(|_| Leaf::Empty))
        });
        let leaf = &mut dir[leaf];
        self.memory -= leaf.memory();
        let old = leaf.set(index, slot);
        let count = leaf.count();
        if count >= DENSE_MIN {
            let sparse = std::mem::replace(leaf, Leaf::Dense(count as u32));
            self.dense.add(lba as usize / LEAF_SECTORS, |slots| sparse.for_each(|index, slot| slots[index] = slot));
        }
        self.memory += leaf.memory();
        self.mapped += u64::from(old == NO_SLOT);
        old
    }

    /// Unmaps a sector; gives what it was mapped to.
    fn clear_one(dense: &mut Dense, leaf: &mut Leaf, lba: u64, kept: bool) -> Slot {
        let Leaf::Dense(count) = leaf else { return leaf.clear(lba as usize % LEAF_SECTORS) };
        let old = dense.set(lba, NO_SLOT);
        *count -= u32::from(old != NO_SLOT);
        // A little below the way up, so that a sector that comes and goes does not convert each time.
        if (*count as usize) < DENSE_MIN - 32 && !kept {
            let number = lba as usize / LEAF_SECTORS;
            let mut packed = Packed::new();
            mapped(dense.leaf(number)).for_each(|(index, slot)| packed.push(index, slot));
            *leaf = Leaf::Packed(Box::new(packed));
            dense.remove(number);
        }
        old
    }

    /// Unmaps a run of sectors, telling `freed` each slot that was given up.
    pub fn clear(&mut self, lba: u64, count: u64, mut freed: impl FnMut(Slot)) {
        let end = lba + count;
        debug_assert!(end <= self.sectors);
        let mut at = lba;
        while at < end {
            let (page, leaf, index) = Self::split(at);
            let Some(dir) = &mut self.top[page] else {
                at = ((page + 1) * DIR_LEAVES * LEAF_SECTORS) as u64;
                continue;
            };
            let leaf = &mut dir[leaf];
            let stop = LEAF_SECTORS.min(index + (end - at) as usize);
            self.memory -= leaf.memory();
            if index == 0 && stop == LEAF_SECTORS {
                self.mapped -= leaf.count() as u64;
                if let Leaf::Dense(_) = leaf {
                    let number = at as usize / LEAF_SECTORS;
                    mapped(self.dense.leaf(number)).for_each(|(_, slot)| freed(slot));
                    match self.preallocated {
                        true => self.dense.empty(number),
                        false => self.dense.remove(number),
                    }
                } else {
                    leaf.for_each(|_, slot| freed(slot));
                }
                *leaf = if self.preallocated { Leaf::Dense(0) } else { Leaf::Empty };
            } else if !matches!(leaf, Leaf::Empty) {
                for lba in at..at + (stop - index) as u64 {
                    let old = Self::clear_one(&mut self.dense, leaf, lba, self.preallocated);
                    if old != NO_SLOT {
                        self.mapped -= 1;
                        freed(old);
                    }
                }
            }
            self.memory += leaf.memory();
            at += (stop - index) as u64;
            let page_done = at >= end || (at as usize).is_multiple_of(DIR_LEAVES * LEAF_SECTORS);
            if page_done && dir.iter().all(|leaf| matches!(leaf, Leaf::Empty)) {
                self.top[page] = None;
                self.memory -= size_of::<Dir>();
            }
        }
    }

    /// How many sectors from `lba` on, at most `max` (at least 1), are all mapped or all not, and which.
    pub fn run(&self, lba: u64, max: u64) -> (u64, bool) {
        let mapped = self.get(lba) != NO_SLOT;
        let end = (lba + max).min(self.sectors);
        let mut at = lba + 1;
        while at < end {
            let (page, leaf, index) = Self::split(at);
            let Some(dir) = &self.top[page] else {
                if mapped {
                    break;
                }
                at = ((page + 1) * DIR_LEAVES * LEAF_SECTORS) as u64;
                continue;
            };
            let stop = match &dir[leaf] {
                // All leaves of a preallocated map are dense, the empty ones too.
                Leaf::Dense(count) if *count == if mapped { LEAF_SECTORS as u32 } else { 0 } => LEAF_SECTORS,
                Leaf::Dense(_) => {
                    let slots = &self.dense.leaf(page * DIR_LEAVES + leaf)[index..];
                    let same = slots.iter().position(|slot| (*slot != NO_SLOT) != mapped);
                    same.map_or(LEAF_SECTORS, |count| index + count)
                }
                leaf => leaf.run_end(index, mapped),
            };
            at += (stop - index) as u64;
            if stop < LEAF_SECTORS {
                break;
            }
        }
        (at.min(end) - lba, mapped)
    }

    /// How many sectors of a range are mapped.
    pub fn mapped_in(&self, lba: u64, count: u64) -> u64 {
        let (mut at, end, mut found) = (lba, lba + count, 0);
        while at < end {
            let (page, leaf, index) = Self::split(at);
            match &self.top[page] {
                None => at = ((page + 1) * DIR_LEAVES * LEAF_SECTORS) as u64,
                Some(dir) if index == 0 && end - at >= LEAF_SECTORS as u64 => {
                    found += dir[leaf].count() as u64;
                    at += LEAF_SECTORS as u64;
                }
                Some(_) => {
                    let (run, mapped) = self.run(at, (end - at).min((LEAF_SECTORS - index) as u64));
                    found += if mapped { run } else { 0 };
                    at += run;
                }
            }
        }
        found
    }

    /// The first mapped sector at or after `lba`.
    pub fn next_mapped(&self, lba: u64) -> Option<u64> {
        if lba >= self.sectors {
            return None;
        }
        if self.get(lba) != NO_SLOT {
            return Some(lba);
        }
        let (count, _) = self.run(lba, self.sectors - lba);
        (lba + count < self.sectors).then_some(lba + count)
    }

    /// Every mapped sector and its slot, in order.
    pub fn for_each(&self, mut visit: impl FnMut(u64, Slot)) {
        for (page, dir) in self.top.iter().enumerate() {
            let Some(dir) = dir else { continue };
            for (leaf, content) in dir.iter().enumerate() {
                let number = page * DIR_LEAVES + leaf;
                let base = (number * LEAF_SECTORS) as u64;
                if let Leaf::Dense(_) = content {
                    mapped(self.dense.leaf(number)).for_each(|(index, slot)| visit(base + index as u64, slot));
                } else {
                    content.for_each(|index, slot| visit(base + index as u64, slot));
                }
            }
        }
    }
}

/// The mapped sectors of a dense leaf, in order.
fn mapped(slots: &[Slot]) -> impl Iterator<Item = (usize, Slot)> {
    slots.iter().copied().enumerate().filter(|(_, slot)| *slot != NO_SLOT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The map against a `BTreeMap`, through all three forms and back, with memory counted right.
    #[test]
    fn behaves_like_a_btree_map() {
        for seed in 0..40u64 {
            let mut random = random::SplitMix64::new(seed);
            let sectors = 1 + random.below(600_000);
            let mut map = Map::new(sectors);
            let mut model = BTreeMap::new();
            let spread = 1 + random.below(sectors.min(6000));
            for step in 0..4000 {
                let lba = random.below(spread);
                match random.below(100) {
                    0..80 => {
                        let slot = 1 + step as Slot;
                        assert_eq!(map.set(lba, slot), model.insert(lba, slot).unwrap_or(NO_SLOT), "seed {seed}");
                    }
                    80..97 => {
                        let count = 1 + random.below((spread - lba).min(40));
                        let mut freed = Vec::new();
                        map.clear(lba, count, |slot| freed.push(slot));
                        let expected: Vec<_> = (lba..lba + count).filter_map(|lba| model.remove(&lba)).collect();
                        assert_eq!(freed, expected, "seed {seed}");
                    }
                    97 => {
                        map.clear(0, sectors, |_| {});
                        model.clear();
                    }
                    _ => {
                        let max = 1 + random.below(sectors - lba);
                        let mapped = model.contains_key(&lba);
                        let change = (lba..lba + max).find(|lba| model.contains_key(lba) != mapped);
                        assert_eq!(map.run(lba, max), (change.unwrap_or(lba + max) - lba, mapped), "seed {seed}");
                        assert_eq!(map.next_mapped(lba), model.range(lba..).next().map(|(lba, _)| *lba));
                    }
                }
                assert_eq!(map.mapped(), model.len() as u64);
            }
            let mut seen = Vec::new();
            map.for_each(|lba, slot| seen.push((lba, slot)));
            assert_eq!(seen, model.into_iter().collect::<Vec<_>>());
            let counted: usize = map.top.iter().flatten().flat_map(|dir| dir.iter()).map(Leaf::memory).sum();
            let dirs = map.top.iter().flatten().count() * size_of::<Dir>();
            let bare = map.top.len() * 8 + map.dense.memory();
            assert_eq!(map.memory(), counted + dirs + bare);
            map.clear(0, sectors, |_| {});
            assert_eq!((map.mapped(), map.memory()), (0, bare));
        }
    }

    /// The promise of the issue: at most 5 bytes a mapped sector, when at least one in five is mapped.
    #[test]
    fn five_bytes_a_mapped_sector() {
        let sectors = 1 << 20;
        for one_in in [1u64, 2, 3, 4, 5] {
            let mut random = random::SplitMix64::new(one_in);
            let mut map = Map::new(sectors);
            for lba in 0..sectors {
                if random.below(one_in) == 0 {
                    map.set(lba, 7);
                }
            }
            let each = map.memory() as f64 / map.mapped() as f64;
            assert!(each <= 5.0 + 0.2, "{each} bytes a sector with one in {one_in} mapped");
        }
    }
}
