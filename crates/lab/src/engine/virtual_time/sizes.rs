//! Requests told apart by load, by what they do, and by size.

use crate::results::OPS;
use crate::stats::{Cell, Kind, Samples};
use crate::workload::Load;

/// Numbers for classes of requests: for each load in turn reads, writes and trims, and of each of those the sizes, smallest first.
#[derive(Debug)]
pub struct SizeClasses {
    /// The first class of each load.
    first: Vec<usize>,
    /// Sizes of each load, bytes; none where they are not told apart.
    sizes: Vec<Vec<u32>>,
    /// What each class does, and of what size.
    classes: Vec<(usize, u32)>,
    apart: bool,
}

impl SizeClasses {
    /// Of these loads; sizes are told apart only if asked for.
    pub fn new(loads: &[Load], apart: bool) -> SizeClasses {
        let mut new = SizeClasses { first: Vec::new(), sizes: Vec::new(), classes: Vec::new(), apart };
        for load in loads {
            let mut sizes = Vec::new();
            if apart {
                let (reads, writes) = load.sizes();
                let used = reads.iter().chain(&writes).filter(|entry| entry.weight > 0.0);
                sizes.extend(used.map(|entry| u32::try_from(entry.size.0).unwrap_or(u32::MAX)));
                sizes.sort_unstable();
                sizes.dedup();
            }
            new.first.push(new.classes.len());
            for op in 0..OPS.len() {
                let each: &[u32] = if sizes.is_empty() { &[0] } else { &sizes };
                new.classes.extend(each.iter().map(|size| (op, *size)));
            }
            new.sizes.push(sizes);
        }
        new
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.classes.len()
    }

    /// That of a request. The last piece of a sequential region may be of any size: it counts with the next larger one.
    #[inline]
    pub fn of(&self, load: usize, op: usize, bytes: u32) -> usize {
        let sizes = &self.sizes[load];
        if sizes.len() <= 1 {
            return self.first[load] + op;
        }
        let at = sizes.partition_point(|size| *size < bytes).min(sizes.len() - 1);
        self.first[load] + op * sizes.len() + at
    }

    /// What a class does.
    pub fn op(&self, class: usize) -> usize {
        self.classes[class].0
    }

    /// Reads, writes and trims of each load.
    pub fn loads(&self, samples: &[Samples]) -> Vec<Vec<Samples>> {
        let mut loads = Vec::with_capacity(self.first.len());
        for (at, first) in self.first.iter().enumerate() {
            let end = self.first.get(at + 1).copied().unwrap_or(self.classes.len());
            let mut ops: Vec<Samples> = OPS.iter().map(|_| Samples::new()).collect();
            for class in *first..end {
                ops[self.classes[class].0].add(&samples[class]);
            }
            loads.push(ops);
        }
        loads
    }

    /// One cell for each kind and size that there was, of all loads together; none where sizes are not told apart.
    pub fn cells(&self, samples: &[Samples]) -> Vec<Cell> {
        if !self.apart {
            return Vec::new();
        }
        let mut order: Vec<usize> = (0..self.classes.len()).filter(|class| samples[*class].count() > 0).collect();
        order.sort_by_key(|class| self.classes[*class]);
        let same = order.chunk_by(|one, two| self.classes[*one] == self.classes[*two]);
        same.filter_map(|group| {
            let (op, size) = self.classes[group[0]];
            if let [only] = group {
                return Cell::new(Kind::ALL[op], u64::from(size), &samples[*only]);
            }
            let mut sum = Samples::new();
            group.iter().for_each(|class| sum.add(&samples[*class]));
            Cell::new(Kind::ALL[op], u64::from(size), &sum)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::from_toml;

    fn loads() -> Vec<Load> {
        let text = "name = \"w\"\n[[phase]]\nname = \"p\"\nstop = { duration = 1 }\n\
            [[phase.load]]\nread_percent = 50\nsize = [{ size = 512, weight = 1 }, { size = 8192, weight = 1 }]\nwrite_size = 4096\n\
            [[phase.load]]\nread_percent = 100\nsize = 4096\n";
        from_toml(text).expect("a workload").phases[0].loads.clone()
    }

    #[test]
    fn every_request_has_its_class_and_cells_join_loads() {
        let classes = SizeClasses::new(&loads(), true);
        assert_eq!(classes.count(), 3 * 3 + 3);
        let mut samples: Vec<Samples> = (0..classes.count()).map(|_| Samples::new()).collect();
        for (load, op, bytes) in [(0, 0, 512), (0, 0, 8192), (0, 1, 4096), (0, 1, 100), (1, 0, 4096), (1, 0, 4096)] {
            samples[classes.of(load, op, bytes)].record(1000, bytes);
        }
        let cells: Vec<_> =
            classes.cells(&samples).into_iter().map(|cell| (cell.op, cell.size, cell.requests)).collect();
        let expected = [
            (Kind::Read, 512, 1),
            (Kind::Read, 4096, 2),
            (Kind::Read, 8192, 1),
            (Kind::Write, 512, 1),
            (Kind::Write, 4096, 1),
        ];
        assert_eq!(cells, expected);
        let loads = classes.loads(&samples);
        assert_eq!(
            loads.iter().map(|ops| ops.iter().map(Samples::count).collect()).collect::<Vec<Vec<_>>>(),
            [[2, 2, 0], [2, 0, 0]]
        );
    }

    #[test]
    fn without_sizes_there_is_a_class_for_each_kind() {
        let classes = SizeClasses::new(&loads(), false);
        assert_eq!((classes.count(), classes.of(0, 2, 512), classes.of(1, 1, 8192)), (6, 2, 4));
        let samples: Vec<Samples> = (0..6).map(|_| Samples::new()).collect();
        assert!(classes.cells(&samples).is_empty());
    }
}
