//! How unevenly accesses are spread over blocks.

use serde::Serialize;

use super::blocks::Blocks;

/// Shares of blocks for which the share of accesses is told, per cent.
const SHARES: [f64; 16] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 75.0, 100.0];

/// What the most accessed blocks get.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotSpots {
    /// Of reads and writes together.
    pub accesses: Vec<Share>,
    /// Of reads, among blocks that were read.
    pub reads: Vec<Share>,
    /// Of writes, among blocks that were written.
    pub writes: Vec<Share>,
}

/// A share of blocks, the most accessed, and what they get.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Share of touched blocks, per cent.
    pub blocks_percent: f64,
    /// Share of accesses that go to them, per cent.
    pub accesses_percent: f64,
}

impl HotSpots {
    /// From histories.
    pub fn new(blocks: &Blocks) -> HotSpots {
        let counts = |of: fn(u32, u32) -> u64| {
            let counts = blocks.histories().map(|block| of(block.reads, block.writes)).filter(|count| *count > 0);
            shares(counts.collect())
        };
        HotSpots {
            accesses: counts(|reads, writes| u64::from(reads) + u64::from(writes)),
            reads: counts(|reads, _| u64::from(reads)),
            writes: counts(|_, writes| u64::from(writes)),
        }
    }
}

impl Share {
    /// The share of accesses of a share of blocks.
    pub fn of(shares: &[Share], blocks_percent: f64) -> Option<f64> {
        shares.iter().find(|share| share.blocks_percent == blocks_percent).map(|share| share.accesses_percent)
    }
}

/// Shares that are less than one block are left out.
fn shares(mut counts: Vec<u64>) -> Vec<Share> {
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let total: u64 = counts.iter().sum();
    let (mut taken, mut sum) = (0, 0);
    let mut shares = Vec::new();
    for blocks_percent in SHARES {
        let until = (blocks_percent / 100.0 * counts.len() as f64).round() as usize;
        if until == 0 {
            continue;
        }
        sum += counts[taken..until].iter().sum::<u64>();
        taken = until;
        shares.push(Share { blocks_percent, accesses_percent: 100.0 * sum as f64 / total as f64 });
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_come_first() {
        // One block with half of all accesses, 99 with the rest.
        let mut counts = vec![1; 99];
        counts.push(99);
        let shares = shares(counts);
        assert_eq!(Share::of(&shares, 1.0), Some(50.0));
        assert_eq!(Share::of(&shares, 100.0), Some(100.0));
        assert_eq!(Share::of(&shares, 0.1), None, "less than a block");
        assert!((Share::of(&shares, 20.0).expect("twenty blocks") - 118.0 / 1.98).abs() < 1e-9);
    }
}
