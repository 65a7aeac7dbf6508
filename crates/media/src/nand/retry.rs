//! Read retry: cells lose charge while they hold data, and a page that comes out wrong is read again with other reference voltages.
//!
//! What is lost grows with the logarithm of time, so the steps that a read takes grow with the doublings of the age of its data, from the
//! age up to which it is read at once to the last entry of the chip's table. Worn cells lose charge faster: at the rated cycles data
//! keep for a tenth of the time that they do on new cells (a year and ten: JESD218, JESD47), and in between the factor is taken to grow evenly
//! in its logarithm. Cells with a single bit have room to spare, so a cache of them needs no retries.
//!
//! An erase block is as old as the first program since its last erase.

use profile::Retry as Sheet;

use super::{Nand, Nanos, micros};

/// One day.
pub const DAY: Nanos = 86_400_000_000_000;
/// How many times as fast charge is lost at the rated cycles.
const AT_RATED_CYCLES: f64 = 10.0;

/// A moment of the model's time, and what had passed besides by then.
#[derive(Clone, Copy, Default)]
struct Moment {
    now: Nanos,
    lain: Nanos,
}

/// How old the data of a module are.
pub(super) struct Retry {
    first_days: f64,
    /// Data so young are read at once, however worn the cells are.
    young: Nanos,
    steps_per_doubling: f64,
    most: f64,
    step: Nanos,
    /// By block: when it was first programmed since it was erased.
    programmed: Vec<Option<Moment>>,
    /// Time that passed besides the model's own.
    lain: Nanos,
}

impl Retry {
    pub fn new(sheet: &Sheet, blocks: u32) -> Retry {
        Retry {
            first_days: sheet.first_days,
            // Nothing lives for twice the rated cycles.
            young: (sheet.first_days * DAY as f64 / AT_RATED_CYCLES.powi(2)) as Nanos,
            steps_per_doubling: sheet.steps_per_doubling,
            most: f64::from(sheet.most),
            step: micros(sheet.step_us),
            programmed: vec![None; blocks as usize],
            lain: 0,
        }
    }

    /// Steps that a read of this block takes on average, of cells that saw this share of their rated cycles.
    fn steps(&self, now: Nanos, block: u32, worn: f64) -> f64 {
        // What stood there before the model began is as old as it.
        let programmed = self.programmed[block as usize].unwrap_or_default();
        let age = now.saturating_sub(programmed.now).saturating_add(self.lain - programmed.lain);
        if age <= self.young {
            return 0.0;
        }
        let days = age as f64 / DAY as f64 * AT_RATED_CYCLES.powf(worn);
        (self.steps_per_doubling * (days / self.first_days).log2()).clamp(0.0, self.most)
    }

    /// Something is programmed in a block.
    #[inline]
    pub fn programmed(&mut self, now: Nanos, block: u32) {
        self.programmed[block as usize].get_or_insert(Moment { now, lain: self.lain });
    }

    /// A block was erased.
    pub fn erased(&mut self, block: u32) {
        self.programmed[block as usize] = None;
    }
}

impl Nand {
    /// What a read of a block of dense cells takes longer because of its age.
    #[inline]
    pub(super) fn retries(&mut self, now: Nanos, block: u32) -> Nanos {
        let Some(retry) = &self.retry else { return 0 };
        let steps = retry.steps(now, block, self.wear.share(block));
        if steps == 0.0 {
            return 0;
        }
        let more = self.random.below(1 << 16) < (steps.fract() * 65536.0) as u64;
        let (steps, step) = (steps as u64 + u64::from(more), retry.step);
        self.counts.retries += steps;
        steps * step
    }

    /// Everything that is programmed grows older by so much at once, as if it had lain there without power. Returns whether reads depend
    /// on the age of data.
    pub fn grow_older(&mut self, by: Nanos) -> bool {
        let Some(retry) = &mut self.retry else { return false };
        retry.lain = retry.lain.saturating_add(by);
        true
    }

    /// What grew older by so much has its own age again.
    pub fn grow_younger(&mut self, by: Nanos) {
        let Some(retry) = &mut self.retry else { return };
        retry.lain = retry.lain.saturating_sub(by);
        for programmed in retry.programmed.iter_mut().flatten() {
            programmed.lain = programmed.lain.min(retry.lain);
        }
    }
}
