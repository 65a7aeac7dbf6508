//! Estimates beside caches that follow every block.

use std::collections::{HashMap, VecDeque};

use super::*;

/// S3-FIFO as it is written down, with a tenth for the small queue. A ghost is what was left behind of it.
#[derive(Default)]
struct Exact {
    room: usize,
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    ghosts: VecDeque<u64>,
    uses: HashMap<u64, u8>,
    was_full: bool,
    hits: u64,
}

impl Exact {
    fn read(&mut self, block: u64) {
        if let Some(uses) = self.uses.get_mut(&block) {
            *uses = (*uses + 1).min(3);
            self.hits += 1;
            return;
        }
        let ghost = self.ghosts.iter().position(|ghost| *ghost == block);
        ghost.map(|at| self.ghosts.remove(at));
        while self.uses.len() >= self.room {
            self.was_full = true;
            self.evict();
        }
        let fills_up = !self.was_full && self.small.len() >= self.room.div_ceil(10);
        let queue = if ghost.is_some() || fills_up { &mut self.main } else { &mut self.small };
        queue.push_back(block);
        self.uses.insert(block, 0);
    }

    fn evict(&mut self) {
        if self.small.len() >= self.room.div_ceil(10) || self.main.is_empty() {
            while let Some(block) = self.small.pop_front() {
                if self.uses[&block] < 2 {
                    self.uses.remove(&block);
                    self.ghosts.push_back(block);
                    if self.ghosts.len() > self.room - self.room / 10 {
                        self.ghosts.pop_front();
                    }
                    return;
                }
                self.uses.insert(block, 0);
                self.main.push_back(block);
            }
        }
        while let Some(block) = self.main.pop_front() {
            let uses = self.uses[&block];
            if uses == 0 {
                self.uses.remove(&block);
                return;
            }
            self.uses.insert(block, uses - 1);
            self.main.push_back(block);
        }
    }
}

/// Blocks by a power law, with a run through blocks that never come again in between.
fn blocks(count: u64) -> impl Iterator<Item = u64> {
    let mut random = SplitMix64::new(9);
    let mut scanned = 1 << 20;
    (0..count).map(move |at| {
        if at % 1000 < 250 {
            scanned += 1;
            return scanned;
        }
        let drawn = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        // Neighbours are not alike: the hottest blocks are spread over all chunks.
        ((drawn.powi(4) * 60_000.0) as u64).wrapping_mul(48_271) % 60_013
    })
}

fn read_all(estimator: &mut Estimator, blocks: impl Iterator<Item = u64>) {
    blocks.for_each(|block| estimator.read(&(block..block + 1), [0; 2]));
}

/// The hit ratio with each room.
fn ratios(estimator: &Estimator) -> Vec<f64> {
    estimator.estimates([0; 2]).rooms.iter().map(|room| room.hit_ratio.expect("something was read")).collect()
}

fn exact(room: u64, blocks: impl Iterator<Item = u64>) -> f64 {
    let mut exact = Exact { room: room as usize, ..Exact::default() };
    let mut count = 0;
    blocks.for_each(|block| {
        exact.read(block);
        count += 1;
    });
    exact.hits as f64 / f64::from(count)
}

#[test]
fn small_rooms_are_followed_whole_and_exactly() {
    let mut estimator = Estimator::new(400, 0, 4096).with_window(u64::MAX);
    read_all(&mut estimator, blocks(40_000));
    for (room, ratio) in [100, 200, 400, 800, 1600, 3200].into_iter().zip(ratios(&estimator)) {
        assert_eq!(ratio, exact(room, blocks(40_000)), "with room for {room}");
    }
}

#[test]
fn a_sample_tells_of_large_rooms() {
    let mut estimator = Estimator::new(8000, 0, 4096).with_window(u64::MAX);
    read_all(&mut estimator, blocks(400_000));
    let found = ratios(&estimator);
    for (room, ratio) in [8000, 16_000].into_iter().zip(&found[2..]) {
        let expected = exact(room, blocks(400_000));
        assert!((ratio - expected).abs() < 0.02, "with room for {room}: {ratio}, expected {expected}");
    }
    assert!(found.is_sorted(), "{found:?}");
    assert!(found[3] - found[0] > 0.05, "the rooms make a difference: {found:?}");
}

#[test]
fn memory_does_not_grow_with_the_room_nor_the_requests() {
    for room in [1, 5000, 1 << 20, 1 << 40] {
        let mut estimator = Estimator::new(room, room / 5, 512);
        let mut random = SplitMix64::new(3);
        for _ in 0..3000 {
            let from = random.below(1 << 40);
            let sectors = from..from + 1 + random.below(3000);
            match random.below(4) {
                0 => estimator.changed(&sectors, Changed::Held),
                1 => estimator.changed(&sectors, Changed::Copied),
                _ => estimator.read(&sectors, [0; 2]),
            }
        }
        assert!(estimator.memory() < 1_000_000, "{} bytes with room for {room}", estimator.memory());
    }
}

#[test]
fn a_request_hits_as_far_as_it_is_cached() {
    let mut estimator = Estimator::new(100, 0, 4096);
    estimator.read(&(0..4), [0; 2]);
    estimator.read(&(0..8), [0; 2]);
    estimator.read(&(0..8), [0; 2]);
    // 4 and 8 of 20 sectors.
    assert_eq!(ratios(&estimator)[2], 0.6);
}

#[test]
fn what_becomes_of_writes_is_followed() {
    let after = |how: Changed, read: Range| {
        let mut estimator = Estimator::new(400, 200, 4096);
        estimator.changed(&(0..100), how);
        estimator.read(&read, [0; 2]);
        ratios(&estimator)[2]
    };
    assert_eq!(after(Changed::Dropped, 0..16), 0.0);
    assert_eq!(after(Changed::Copied, 0..16), 1.0);
    assert_eq!(after(Changed::Held, 0..16), 1.0);
    let mut estimator = Estimator::new(400, 50, 4096);
    estimator.changed(&(0..100), Changed::Held);
    estimator.read(&(0..16), [0; 2]);
    estimator.read(&(84..100), [0; 2]);
    assert_eq!(ratios(&estimator)[2], 0.5, "no more is held than may be");
    // A trim of much that was copied, and of what was held.
    estimator.changed(&(0..1 << 30), Changed::Dropped);
    estimator.read(&(84..100), [0; 2]);
    assert!((ratios(&estimator)[2] - 1.0 / 3.0).abs() < 1e-9, "{:?}", ratios(&estimator));
}

#[test]
fn figures_follow_what_changes() {
    let mut estimator = Estimator::new(400, 0, 4096);
    read_all(&mut estimator, (0..40).cycle().take(40_000));
    let hot = estimator.estimates([39_960, 40]);
    read_all(&mut estimator, 1000..41_000);
    let cold = estimator.estimates([39_960, 40_040]);
    assert!(hot.rooms[2].hit_ratio > Some(0.99) && hot.hit_ratio > Some(0.99), "{hot:?}");
    assert!(cold.rooms[2].hit_ratio < Some(0.01), "what was long ago counts no more: {cold:?}");
    assert!(hot.read_sectors <= 16 * 400 && cold.read_sectors >= 8 * 400 / 2, "{hot:?} {cold:?}");
    assert!(!hot.rooms[2].full && cold.rooms[2].full);
}

#[test]
fn the_same_requests_give_the_same_figures() {
    let figures = || {
        let mut estimator = Estimator::new(8000, 0, 4096);
        read_all(&mut estimator, blocks(20_000));
        estimator.estimates([1, 2])
    };
    assert_eq!(figures(), figures());
    let nothing = Estimator::new(8000, 0, 4096).estimates([0; 2]);
    assert_eq!((nothing.hit_ratio, nothing.rooms[0].hit_ratio, nothing.rooms.len()), (None, None, 6));
}
