//! A map that has all the memory that it can ever need.

use super::{DENSE_MIN, DIR_LEAVES, Dir, LEAF_SECTORS, Leaf, Map, mapped};

impl Map {
    /// Whether it has all the memory that it can ever need: see [`Map::preallocate`].
    pub fn is_preallocated(&self) -> bool {
        self.preallocated
    }

    /// Takes the memory for every sector now and locks it, so that no write takes any later: every leaf becomes dense, and stays so.
    ///
    /// # Errors
    /// There is not so much memory, or the process may not lock it; then nothing has changed.
    pub fn preallocate(&mut self) -> std::io::Result<()> {
        if self.preallocated {
            return Ok(());
        }
        self.dense.lock()?;
        self.preallocated = true;
        for number in 0..self.leaves() {
            let dir =
                self.top[number / DIR_LEAVES].get_or_insert_with(|| Box::new(std::array::from_fn(|_| Leaf::Empty)));
            let leaf = &mut dir[number % DIR_LEAVES];
            if !matches!(leaf, Leaf::Dense(_)) {
                let sparse = std::mem::replace(leaf, Leaf::Dense(leaf.count() as u32));
                let slots = self.dense.keep(number);
                sparse.for_each(|index, slot| slots[index] = slot);
            }
        }
        self.count_memory();
        Ok(())
    }

    /// Memory follows what is mapped again.
    pub fn release(&mut self) {
        if !std::mem::take(&mut self.preallocated) {
            return;
        }
        self.dense.unlock();
        for number in 0..self.leaves() {
            let Some(dir) = &mut self.top[number / DIR_LEAVES] else { continue };
            let leaf = &mut dir[number % DIR_LEAVES];
            if leaf.count() >= DENSE_MIN {
                continue;
            }
            let mut sparse = Leaf::Empty;
            for (index, slot) in mapped(self.dense.leaf(number)) {
                sparse.set(index, slot);
            }
            *leaf = sparse;
            self.dense.remove(number);
        }
        for dir in &mut self.top {
            if dir.as_ref().is_some_and(|dir| dir.iter().all(|leaf| matches!(leaf, Leaf::Empty))) {
                *dir = None;
            }
        }
        self.count_memory();
    }

    fn leaves(&self) -> usize {
        (self.sectors as usize).div_ceil(LEAF_SECTORS)
    }

    /// Counts the memory anew.
    fn count_memory(&mut self) {
        let dirs = self.top.iter().flatten();
        let leaves: usize = dirs.map(|dir| size_of::<Dir>() + dir.iter().map(Leaf::memory).sum::<usize>()).sum();
        self.memory = self.top.len() * size_of::<Option<Box<Dir>>>() + self.dense.memory() + leaves;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::types::{NO_SLOT, Slot};

    /// With all memory taken beforehand it behaves the same, and its memory does not change any more.
    #[test]
    fn a_preallocated_map_behaves_the_same_and_stays_as_large() {
        for seed in 0..12u64 {
            let mut random = random::SplitMix64::new(seed);
            let sectors = 1 + random.below(600_000);
            let (mut map, mut model) = (Map::new(sectors), BTreeMap::new());
            let spread = 1 + random.below(sectors.min(6000));
            let mut memory = None;
            for step in 0..4000 {
                if step == 1000 {
                    map.preallocate().expect("memory that may be locked");
                    memory = Some(map.memory());
                    assert!(map.memory() as u64 >= sectors * size_of::<Slot>() as u64);
                }
                if step == 3000 {
                    map.release();
                    assert!(!map.is_preallocated() && Some(map.memory()) < memory);
                    memory = None;
                }
                let lba = random.below(spread);
                if random.below(100) < 85 {
                    let slot = 1 + step as Slot;
                    assert_eq!(map.set(lba, slot), model.insert(lba, slot).unwrap_or(NO_SLOT), "seed {seed}");
                } else {
                    let whole = random.below(10) == 0;
                    let (lba, count) =
                        if whole { (0, sectors) } else { (lba, 1 + random.below((spread - lba).min(4000))) };
                    let mut freed = Vec::new();
                    map.clear(lba, count, |slot| freed.push(slot));
                    let expected: Vec<_> = (lba..lba + count).filter_map(|lba| model.remove(&lba)).collect();
                    assert_eq!(freed, expected, "seed {seed}");
                }
                assert_eq!(map.mapped(), model.len() as u64);
                assert_eq!(map.next_mapped(0), model.keys().next().copied());
                assert!(memory.is_none_or(|memory| map.memory() == memory), "its memory changed, seed {seed}");
            }
            let mut seen = Vec::new();
            map.for_each(|lba, slot| seen.push((lba, slot)));
            assert_eq!(seen, model.into_iter().collect::<Vec<_>>());
        }
    }
}
