//! The power cut: what becomes of everything that no sync covered.

use std::collections::BTreeSet;
use std::rc::Rc;

use random::SplitMix64;

use super::image::{Image, PIECE_BYTES};
use super::store::{Change, SimStore, Work};

/// How a power cut treats each program that is done but not durable, or under way; in parts per million.
/// What is left over is absent as a whole. An allocation happened or not, evenly; so did an erase,
/// on each die by itself, and there also in part; a label copy under way is old, new or torn, evenly.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Whole on media.
    pub whole: u32,
    /// Torn: of its pieces of 512 bytes a first part, or any of them, is on media.
    pub torn: u32,
    /// Whole, but one bit is wrong.
    pub flipped: u32,
}

impl Default for Cut {
    fn default() -> Cut {
        Cut { whole: 400_000, torn: 300_000, flipped: 0 }
    }
}

impl Cut {
    /// Only what a sync covered is left.
    pub const LOSE_ALL: Cut = Cut { whole: 0, torn: 0, flipped: 0 };

    /// All that was submitted got through.
    pub const KEEP_ALL: Cut = Cut { whole: 1_000_000, torn: 0, flipped: 0 };

    /// Whether something that is not a program happened.
    fn happened(&self, rng: &mut SplitMix64) -> bool {
        match (self.whole, self.torn, self.flipped) {
            (0, 0, 0) => false,
            (1_000_000, ..) => true,
            _ => rng.chance(500_000),
        }
    }

    /// Writes what is left of `bytes`.
    fn leave(&self, rng: &mut SplitMix64, bytes: &[u8], write: impl FnOnce(&[u8], &mut dyn FnMut(usize) -> bool)) {
        let pieces = bytes.len().div_ceil(PIECE_BYTES) as u64;
        let lot = rng.below(1_000_000) as u32;
        if lot < self.whole {
            write(bytes, &mut |_| true);
        } else if lot - self.whole < self.torn {
            let first = rng.below(pieces + 1) as usize;
            let any = rng.chance(500_000);
            write(bytes, &mut |number| if any { rng.chance(500_000) } else { number < first });
        } else if lot - self.whole - self.torn < self.flipped {
            let mut bytes = bytes.to_vec();
            let bit = rng.below(bytes.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            write(&bytes, &mut |_| true);
        }
    }

    /// Punching a large block takes a file system more than one transaction, from either end.
    fn erase(&self, rng: &mut SplitMix64, image: &mut Image, block: u32, dead: &BTreeSet<u32>) {
        let pages = image.geometry.pages_per_block;
        let mut all = true;
        for die in 0..image.geometry.dies {
            let erased = match (self.happened(rng), self.torn > 0 && rng.chance(250_000)) {
                (true, false) => 0..pages,
                (false, false) => 0..0,
                (true, true) => 0..rng.below(u64::from(pages) + 1) as u32,
                (false, true) => rng.below(u64::from(pages) + 1) as u32..pages,
            };
            all &= erased == (0..pages);
            if !dead.contains(&die) {
                image.erase(die, block, erased);
            }
        }
        if all {
            image.allocated[block as usize] = false;
        }
    }

    fn program(&self, rng: &mut SplitMix64, image: &mut Image, at: crate::PageAddr, start: usize, bytes: &[u8]) {
        self.leave(rng, bytes, |bytes, keep| image.write(at, start, bytes, keep));
    }
}

impl SimStore {
    /// Kills the process that uses it: what was done stays, durable or not, and of what was under way each thing happened or not, a program or a
    /// label also in its first part. The power is on again afterwards, where it was off; a [`super::SimMedia`] of before stays dead.
    pub fn kill(&self, rng: &mut SplitMix64) {
        let state = &mut *self.0.borrow_mut();
        for flight in std::mem::take(&mut state.under_way) {
            let pieces = |bytes: &[u8]| bytes.len().div_ceil(PIECE_BYTES) as u64;
            let work = match (rng.below(3), flight.work) {
                (0, _) => continue,
                (1, Work::Program { at, to, range, bytes, page }) => {
                    let first = (1 + rng.below(pieces(&bytes)) as usize) * PIECE_BYTES;
                    let bytes = Rc::new(bytes[..first.min(bytes.len())].to_vec());
                    Work::Program { at, to, range, bytes, page }
                }
                (1, Work::WriteLabel { copy, bytes }) => {
                    let first = rng.below(bytes.iter().map(|bytes| pieces(bytes)).max().unwrap_or(0) + 1) as usize;
                    for (die, bytes) in (0..).zip(&bytes).filter(|(die, _)| !state.dead.contains(die)) {
                        for image in [&mut state.current, &mut state.durable] {
                            image.write_label(die as usize, copy, bytes, |piece| piece < first);
                        }
                    }
                    continue;
                }
                (_, work) => work,
            };
            state.take_effect(&work);
        }
        state.cut_at = None;
        state.off = false;
        state.cuts += 1;
    }

    /// Cuts the power with the default [`Cut`], and switches it on again.
    pub fn power_cut(&self, rng: &mut SplitMix64) {
        self.power_cut_as(rng, &Cut::default());
    }

    /// Cuts the power, and switches it on again: each thing that no sync covers, done or under way,
    /// survives or not on its own. A [`super::SimMedia`] of before the cut stays dead.
    pub fn power_cut_as(&self, rng: &mut SplitMix64, cut: &Cut) {
        let state = &mut *self.0.borrow_mut();
        let image = &mut state.durable;
        let dead = &state.dead;
        let mut change = |image: &mut Image, change: &Change| match change {
            Change::Program { at, .. } if dead.contains(&at.die) => {}
            Change::Program { at, start, bytes } => cut.program(rng, image, *at, *start, bytes),
            Change::Erase { block } => cut.erase(rng, image, *block, dead),
            Change::Allocate { block } => image.allocated[*block as usize] |= cut.happened(rng),
        };
        for effect in std::mem::take(&mut state.volatile) {
            change(image, &effect.change);
        }
        let under_way = std::mem::take(&mut state.under_way);
        for flight in &under_way {
            match &flight.work {
                Work::Program { to: Some(at), range, bytes, .. } => {
                    change(image, &Change::Program { at: *at, start: range.start as usize, bytes: bytes.clone() });
                }
                Work::Erase { block } => change(image, &Change::Erase { block: *block }),
                Work::Allocate { block, fill } => {
                    if *fill {
                        change(image, &Change::Erase { block: *block });
                    }
                    change(image, &Change::Allocate { block: *block });
                }
                Work::Program { to: None, .. }
                | Work::Read { .. }
                | Work::Rebuild
                | Work::Sync { .. }
                | Work::WriteLabel { .. } => {}
            }
        }
        for flight in under_way {
            let Work::WriteLabel { copy, bytes } = flight.work else { continue };
            for (die, bytes) in bytes.iter().enumerate().filter(|(die, _)| !dead.contains(&(*die as u32))) {
                let label = match (cut.whole, cut.torn, cut.flipped) {
                    (0, 0, 0) | (1_000_000, ..) => *cut,
                    _ => Cut { whole: 333_333, torn: 333_333, flipped: 0 },
                };
                label.leave(rng, bytes, |bytes, keep| image.write_label(die, copy, bytes, keep));
            }
        }
        state.current = state.durable.clone();
        state.cut_at = None;
        state.off = false;
        state.cuts += 1;
    }
}
