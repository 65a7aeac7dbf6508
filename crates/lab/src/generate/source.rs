//! The requests of one thread, one after the other.

use std::collections::VecDeque;

use card::Op;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::place::Round;
use super::plan::{Objects, Plan};
use crate::workload::Streams;

/// One request to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What to do.
    pub op: Op,
    /// First byte on the device.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u32,
}

/// Where a sequence stands within its region, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence(u64);

/// The requests of one thread.
#[derive(Clone, Debug)]
pub struct Source {
    random: Xoshiro256PlusPlus,
    own: Sequence,
    /// How far it is through the places of which each comes once.
    round: Round,
    /// What of the present object was not asked for yet, bytes.
    object_left: u64,
    /// Requests made up already, so that the device hears of them before they come.
    ahead: VecDeque<Item>,
    /// How many are made up ahead.
    distance: usize,
    /// What the thread may still ask for, bytes.
    left: u64,
}

impl Source {
    /// Thread `number` of `threads`, which may ask for `left` bytes. `distance` requests are made up ahead of time where
    /// the order among threads does not matter.
    pub fn new(plan: &Plan, seed: u64, number: u32, threads: u32, left: u64, distance: usize) -> Source {
        let begin = match plan.streams {
            Streams::Apart => {
                let share = (u128::from(plan.bytes) * u128::from(number) / u128::from(threads.max(1))) as u64;
                let unit = plan.reads.values().chain(plan.writes.values()).map(|sized| u64::from(sized.bytes)).max();
                share - share % unit.unwrap_or(1)
            }
            Streams::Shared | Streams::Same => 0,
        };
        // A shared sequence is dealt out when a request is made: made up ahead, it would be out of order.
        let distance = if plan.random_below == 0 { 0 } else { distance };
        Source {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            own: Sequence(begin),
            round: Round::default(),
            object_left: 0,
            ahead: VecDeque::with_capacity(distance + 1),
            distance,
            left,
        }
    }

    /// Where this thread's random numbers come from, for things beside requests.
    pub fn random(&mut self) -> &mut Xoshiro256PlusPlus {
        &mut self.random
    }

    /// The next request. `shared` is where the threads' common sequence stands, `budget` what all threads of the device may still
    /// ask for. `hint` hears of requests as they are made up. `None`: nothing more, ever.
    #[inline]
    pub fn next(
        &mut self,
        plan: &Plan,
        shared: &mut Sequence,
        budget: &mut u64,
        mut hint: impl FnMut(u64),
    ) -> Option<Item> {
        while self.ahead.len() <= self.distance {
            match self.make(plan, shared, budget) {
                Some(item) => {
                    if self.distance > 0 {
                        hint(item.offset);
                    }
                    self.ahead.push_back(item);
                }
                None => break,
            }
        }
        self.ahead.pop_front()
    }

    #[inline]
    fn make(&mut self, plan: &Plan, shared: &mut Sequence, budget: &mut u64) -> Option<Item> {
        if self.left == 0 || *budget == 0 {
            return None;
        }
        let chosen = self.random.next_u64();
        let kind = chosen & 0xffff_ffff;
        let op = if kind < plan.reads_below {
            Op::Read
        } else if kind < plan.trims_below {
            Op::Trim
        } else {
            Op::Write
        };
        let sizes = if op == Op::Read { &plan.reads } else { &plan.writes };
        let sized = sizes.pick((chosen >> 32) as u32);
        let random = match plan.random_below {
            0 => false,
            0x1_0000_0000 => true,
            below => self.random.next_u64() >> 32 < below,
        };
        let together = plan.random_below == 0 && plan.streams == Streams::Shared;
        let (place, bytes) = if let Some(objects) = &plan.objects {
            self.piece(objects, sized.bytes)
        } else if random {
            (sized.places.draw(&mut self.random, &mut self.round), sized.bytes)
        } else {
            let Sequence(at) = if together { *shared } else { self.own };
            // The last piece of the region is what is left of it, so that a pass covers all of it.
            let place = if at >= plan.bytes { 0 } else { at };
            (place, u64::from(sized.bytes).min(plan.bytes - place) as u32)
        };
        let end = Sequence(place + u64::from(bytes));
        if together {
            *shared = end;
        } else {
            self.own = end;
        }
        self.left = self.left.saturating_sub(u64::from(bytes));
        *budget = budget.saturating_sub(u64::from(bytes));
        Some(Item { op, offset: plan.start + place, bytes })
    }
}

impl Source {
    /// The next piece of an object: of another one where the one before is done.
    fn piece(&mut self, objects: &Objects, bytes: u32) -> (u64, u32) {
        if self.object_left == 0 {
            self.own = Sequence(objects.places.draw(&mut self.random, &mut self.round));
            self.object_left = objects.bytes;
        }
        let bytes = u64::from(bytes).min(self.object_left);
        self.object_left -= bytes;
        (self.own.0, bytes as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;
    use crate::workload::from_toml;

    fn plan(lines: &str, capacity: u64) -> Plan {
        let text = format!("name = \"w\"\n[[phase]]\nname = \"p\"\nstop = {{ duration = 1 }}\n[[phase.load]]\n{lines}");
        let load = from_toml(&text).expect("a workload").phases[0].loads[0].clone();
        Plan::new(&load, Shape { bytes: capacity, sector_bytes: 512, placements: 1 }).expect("fits")
    }

    fn items(plan: &Plan, number: u32, threads: u32, left: u64) -> Vec<Item> {
        let mut source = Source::new(plan, 1, number, threads, left, 4);
        let (mut shared, mut budget) = (Sequence::default(), u64::MAX);
        std::iter::from_fn(|| source.next(plan, &mut shared, &mut budget, |_| {})).collect()
    }

    #[test]
    fn a_sequential_pass_covers_the_region_exactly() {
        let plan = plan(
            "read_percent = 0\nsize = \"64KiB\"\naccess = \"sequential\"\nregion = { offset = \"4KiB\" }",
            1_000_960,
        );
        let items = items(&plan, 0, 1, 1_000_960 - 4096);
        let mut next = 4096;
        for item in &items {
            assert_eq!((item.op, item.offset), (Op::Write, next));
            next += u64::from(item.bytes);
        }
        assert_eq!(next, 1_000_960);
    }

    #[test]
    fn threads_share_a_sequence_or_have_their_own() {
        let text = "read_percent = 100\nsize = \"4KiB\"\naccess = \"sequential\"\n";
        let shared = plan(text, 1 << 20);
        let (mut sequence, mut budget) = (Sequence::default(), 40960);
        let mut sources = [0, 1].map(|number| Source::new(&shared, 1, number, 2, u64::MAX, 4));
        let mut offsets = Vec::new();
        for turn in 0.. {
            match sources[turn % 2].next(&shared, &mut sequence, &mut budget, |_| {}) {
                Some(item) => offsets.push(item.offset),
                None => break,
            }
        }
        assert_eq!(offsets, (0..10).map(|at| at * 4096).collect::<Vec<_>>());
        let apart = plan(&format!("{text}streams = \"apart\""), 1 << 20);
        assert_eq!(items(&apart, 1, 2, 8192).iter().map(|item| item.offset).collect::<Vec<_>>(), [524_288, 528_384]);
        let same = plan(&format!("{text}streams = \"same\""), 1 << 20);
        assert_eq!(items(&same, 1, 2, 8192).iter().map(|item| item.offset).collect::<Vec<_>>(), [0, 4096]);
    }

    #[test]
    fn operations_and_sizes_come_in_their_shares() {
        let plan = plan(
            "read_percent = 70\ntrim_percent = 10\nsize = [{ size = 512, weight = 1 }, { size = 4096, weight = 3 }]\nwrite_size = 8192",
            1 << 30,
        );
        let items = items(&plan, 0, 1, 600_000_000);
        let share =
            |test: &dyn Fn(&Item) -> bool| items.iter().filter(|item| test(item)).count() as f64 / items.len() as f64;
        assert!(items.len() > 100_000);
        for (name, got, expected) in [
            ("reads", share(&|item| item.op == Op::Read), 0.7),
            ("trims", share(&|item| item.op == Op::Trim), 0.1),
            ("small", share(&|item| item.bytes == 512), 0.7 * 0.25),
            ("large", share(&|item| item.bytes == 8192), 0.3),
        ] {
            assert!((got - expected).abs() < 0.01, "{name}: {got}");
        }
        assert!(items.iter().all(|item| item.offset % u64::from(item.bytes) == 0));
    }

    #[test]
    fn a_mix_of_random_and_sequential_follows_on() {
        let plan = plan("read_percent = 100\nsize = \"8KiB\"\naccess = { mixed = 80.0 }", 1 << 30);
        let items = items(&plan, 0, 1, 100_000 * 8192);
        let follow = items.windows(2).filter(|pair| pair[1].offset == pair[0].offset + 8192).count();
        assert!((19_000..21_000).contains(&follow), "{follow}");
    }

    #[test]
    fn objects_are_asked_for_as_a_whole() {
        let lines = "read_percent = 0\nsize = \"384KiB\"\nobject = \"1MiB\"\nregion = { offset = \"1MiB\", size = \"10.5MiB\" }";
        let pieces = |access: &str| items(&plan(&format!("{lines}\naccess = \"{access}\""), 1 << 30), 0, 1, 100 << 20);
        let mut places = Vec::new();
        for object in pieces("random").chunks(3) {
            let [first, ..] = object else { unreachable!("chunks are not empty") };
            assert_eq!(first.offset % (1 << 20), 0);
            places.push(first.offset >> 20);
            let mut at = first.offset;
            for (piece, kib) in object.iter().zip([384, 384, 256]) {
                assert_eq!((piece.op, piece.offset, piece.bytes), (Op::Write, at, kib << 10));
                at += u64::from(piece.bytes);
            }
        }
        places.sort_unstable();
        places.dedup();
        assert!(places.iter().all(|place| (1..=10).contains(place)) && places.len() > 8, "{places:?}");
        // With each of them once, ten objects are the ten that there are.
        let mut once: Vec<u64> = pieces("shuffled").chunks(3).take(10).map(|object| object[0].offset >> 20).collect();
        once.sort_unstable();
        assert_eq!(once, (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn hints_come_before_their_requests() {
        let plan = plan("read_percent = 100\nsize = \"4KiB\"", 1 << 30);
        let mut source = Source::new(&plan, 1, 0, 1, u64::MAX, 4);
        let (mut shared, mut budget) = (Sequence::default(), u64::MAX);
        let (mut hinted, mut made) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            let item = source.next(&plan, &mut shared, &mut budget, |offset| hinted.push(offset)).expect("endless");
            made.push(item.offset);
            assert_eq!(hinted.len(), made.len() + 4);
        }
        assert_eq!(hinted[..100], made[..]);
    }
}
