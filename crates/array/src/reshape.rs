//! Lays the stripes of RAID 0 out over one more member, while requests go on.
//!
//! **Stripe n goes from (n mod N, n div N) to (n mod (N+1), n div (N+1)), in order of n.** A mark, [`Shape::moved`], stands durably in
//! the superblocks: stripes below it lie at their new places, the others at their old ones.
//!
//! **Between two marks nothing is overwritten that a crash would need.** Only stripes are copied whose new places hold old stripes below
//! the mark ([`Shape::window_end`]). Then all members are flushed, and only then is the mark raised, durably on all members. Whichever
//! superblocks a power cut leaves behind, the highest mark among them is right.
//!
//! **Nothing changes a stripe from before it is copied until the mark is above it.** Such changes wait, as they do where a mirror
//! copies. The flush before the mark also closes every record of the intent log that names an old place of these stripes. Reads that
//! were asked of old places come to their end before anything is copied there.
//!
//! At the end the places are trimmed where only old stripes stand, and the last superblocks say that all members hold their stripes for
//! good: then the array has its new size.

use std::ops::Range;
use std::sync::Arc;

use device::IoError;

use crate::array::{Array, Job, Life};
use crate::command::{Answer, Outcome, What};
use crate::geometry::{Piece, Shape};
use crate::holes::Holes;
use crate::wire::superblock_sector;

/// Stripes that are copied at once at most.
const STRIPES_AT_ONCE: u64 = 16;
/// Bytes of them at most, unless a single stripe is larger.
const BYTES_AT_ONCE: u64 = 1 << 20;
/// Bytes that are copied between two marks at most: changes of them wait for the second one.
const WINDOW_BYTES: u64 = 2 << 20;

/// What is being done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    None,
    /// Changes of the next stripes come to their end, and reads of what stands at their new places.
    Drain,
    /// So many of them are being copied.
    Copy { left: u32 },
    /// What stands behind the last stripe is trimmed, on so many members.
    Tail { left: u32 },
    /// What was copied is durable once this flush is done.
    Settle { flush: u64 },
    /// The superblocks are written with the mark raised; so many are left.
    Mark { left: u32, failed: bool },
    /// Some of them could not be. Others may have the mark, so that nothing else may be done before all have it.
    MarkAgain,
}

/// How far it is.
#[derive(Debug)]
pub(crate) struct Reshape {
    step: Step,
    /// Stripes from the mark to here are copied.
    at: u64,
    /// Changes of stripes from the mark to here wait.
    held: u64,
    /// Stripes that are copied at once: one after the other where something failed.
    at_once: u64,
    /// Sectors copied since the mark.
    copied: u64,
    /// What stands behind the last stripe is trimmed.
    trimmed: bool,
    /// The newest job when the mark was raised: reads up to it may be of old places.
    raised: u64,
    /// Something failed: it goes on when some time has passed.
    waits: bool,
    /// What failed last: a member, and how.
    trouble: Option<(usize, IoError)>,
}

impl Default for Reshape {
    fn default() -> Reshape {
        Reshape {
            step: Step::None,
            at: 0,
            held: 0,
            at_once: STRIPES_AT_ONCE,
            copied: 0,
            trimmed: false,
            raised: 0,
            waits: false,
            trouble: None,
        }
    }
}

impl Reshape {
    /// It comes to nothing any more.
    pub fn end(&mut self) {
        *self = Reshape::default();
    }

    /// What holds it up: a member, and how that failed.
    pub fn trouble(&self) -> Option<(usize, IoError)> {
        self.trouble
    }
}

/// A stripe that is being copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripeMove {
    stripe: u64,
    /// Sectors of it that are done.
    done: u64,
    /// Sectors that are being written or trimmed; 0 while the old place is asked and read.
    writing: u64,
}

impl Array {
    /// How many of its stripes have their new places, per cent; nothing where no stripe is to get one.
    pub(crate) fn reshape_percent(&self) -> Option<u32> {
        let moved = u128::from(self.shape.moved?);
        Some((moved * 100 / u128::from(self.shape.stripes().max(1))) as u32)
    }

    /// Whether stripes are to be laid out anew, and nothing holds that up.
    pub(crate) fn has_to_move(&self) -> bool {
        self.shape.moved.is_some() && !self.reshape.waits
    }

    /// Whether a change of these sectors must wait for the next mark.
    pub(crate) fn is_being_moved(&self, sectors: &Range<u64>) -> bool {
        let Some(mark) = self.shape.moved else { return false };
        let held = mark * self.shape.stripe..self.reshape.held * self.shape.stripe;
        // A write over the mark itself need not wait where nothing is held.
        !held.is_empty() && sectors.start < held.end && held.start < sectors.end
    }

    /// Some time has passed: tries again what failed.
    pub(crate) fn reshape_tick(&mut self) {
        self.reshape.waits = false;
        if self.reshape.step == Step::MarkAgain {
            self.write_mark();
        }
    }

    /// Begins with the next stripes, if nothing is being done.
    pub(crate) fn move_stripes(&mut self) {
        let Some(mark) = self.shape.moved else { return };
        if self.reshape.step != Step::None || self.is_frozen() || !self.has_to_move() {
            return;
        }
        self.reshape.at = self.reshape.at.max(mark);
        let end = self.batch_end(mark);
        if end == self.reshape.at && end < self.shape.stripes() {
            // The window has come to its end where something failed before.
            return self.settle();
        }
        (self.reshape.held, self.reshape.step) = (end, Step::Drain);
        self.reshape_go_on();
    }

    /// Up to where the next stripes are copied.
    fn batch_end(&self, mark: u64) -> u64 {
        let at_once = (BYTES_AT_ONCE / (self.shape.stripe * u64::from(self.shape.sector_bytes))).max(1);
        (self.reshape.at + at_once.min(self.reshape.at_once)).min(self.shape.window_end(mark))
    }

    /// Goes on where only an answer was waited for.
    pub(crate) fn reshape_go_on(&mut self) {
        if self.life != Life::Active || self.shape.moved.is_none() {
            return;
        }
        match self.reshape.step {
            // It is to stop, and has touched nothing of these stripes.
            Step::Drain if self.is_frozen() => (self.reshape.step, self.reshape.held) = (Step::None, self.reshape.at),
            Step::Drain if self.is_quiet() => self.copy_stripes(),
            Step::Settle { flush } if flush <= self.durable => self.raise_mark(),
            _ => {}
        }
    }

    /// Whether no change of the next stripes is under way, and no read of an old place where a stripe may go from here on.
    fn is_quiet(&self) -> bool {
        let sectors = self.reshape.at * self.shape.stripe..self.reshape.held * self.shape.stripe;
        let meets = |change: &Range<u64>| change.start < sectors.end && sectors.start < change.end;
        let old_read = self.jobs.range(..=self.reshape.raised).any(|(_, job)| matches!(job, Job::Read(_)));
        !old_read && !self.jobs.values().any(|job| matches!(job, Job::Change(change) if meets(&change.sectors)))
    }

    fn copy_stripes(&mut self) {
        self.reshape.trouble = None;
        if self.reshape.at == self.shape.stripes() {
            return self.trim_tail();
        }
        let (new, old) = (self.shape.count() as u64, self.shape.count() as u64 - 1);
        // The first row stays where it is.
        let goes = |stripe: &u64| self.shape.stripe_at(*stripe, new) != self.shape.stripe_at(*stripe, old);
        let stripes: Vec<u64> = (self.reshape.at..self.reshape.held).filter(goes).collect();
        self.reshape.step = Step::Copy { left: stripes.len() as u32 };
        if stripes.is_empty() {
            return self.stripes_are_copied();
        }
        for stripe in stripes {
            let job = self.job(Job::Stripe(StripeMove { stripe, done: 0, writing: 0 }));
            self.ask_stripe(job, StripeMove { stripe, done: 0, writing: 0 });
        }
    }

    /// Asks the old place what is mapped there.
    fn ask_stripe(&mut self, job: u64, it: StripeMove) {
        let (member, lba) = self.shape.stripe_at(it.stripe, self.shape.count() as u64 - 1);
        let (lba, max) = (lba + it.done, self.shape.stripe - it.done);
        self.send(job, Piece { member, lba, before: 0, count: max }, What::Extent { lba, max });
    }

    pub(crate) fn stripe_part(&mut self, job: u64, member: usize, piece: Piece, outcome: Outcome) {
        let Some(Job::Stripe(it)) = self.jobs.get_mut(&job) else { return };
        match outcome {
            Ok(Answer::Extent(extent)) => {
                let run = extent.count.clamp(1, piece.count);
                if extent.mapped {
                    let count = run.min(u64::from(self.shape.largest));
                    let buf = vec![0; count as usize * self.shape.sector_bytes as usize];
                    self.send(job, Piece { count, ..piece }, What::Read { lba: piece.lba, buf });
                } else {
                    it.writing = run;
                    let it = *it;
                    self.sync.unmapped += run;
                    self.send_to_new_place(job, it, |lba| What::Zeroes { lba, count: run, fua: false });
                }
            }
            Ok(Answer::Done(Some(buf))) if it.writing == 0 => {
                it.writing = piece.count;
                let it = *it;
                self.sync.copied += piece.count;
                self.reshape.copied += piece.count;
                let data: Arc<[u8]> = buf.into();
                let part = 0..data.len();
                self.send_to_new_place(job, it, |lba| What::Write { lba, data, part, fua: false });
            }
            Ok(Answer::Done(_) | Answer::Snapshot(_)) => {
                it.done += std::mem::take(&mut it.writing);
                let it = *it;
                if it.done < self.shape.stripe {
                    return self.ask_stripe(job, it);
                }
                self.stripe_ends(job, None);
            }
            Err(error) => self.stripe_ends(job, Some((member, error))),
        }
    }

    fn send_to_new_place(&mut self, job: u64, it: StripeMove, what: impl FnOnce(u64) -> What) {
        let (member, lba) = self.shape.stripe_at(it.stripe, self.shape.count() as u64);
        let lba = lba + it.done;
        self.send(job, Piece { member, lba, before: 0, count: it.writing }, what(lba));
    }

    fn stripe_ends(&mut self, job: u64, trouble: Option<(usize, IoError)>) {
        self.jobs.remove(&job);
        self.reshape.trouble = trouble.or(self.reshape.trouble);
        let Step::Copy { left } = &mut self.reshape.step else { return };
        *left -= 1;
        if *left == 0 {
            self.stripes_are_copied();
        }
    }

    /// All of them are at their new places, or something failed.
    fn stripes_are_copied(&mut self) {
        let Some(mark) = self.shape.moved else { return };
        let Reshape { at, held, at_once, .. } = self.reshape;
        self.reshape.step = Step::None;
        if self.reshape.trouble.is_some() {
            // One by one, up to the one that fails; what comes before it need not wait.
            self.reshape.held = at;
            (self.reshape.at_once, self.reshape.waits) = (1, held - at == 1);
            if self.reshape.waits && at > mark {
                self.settle();
            } else if !self.reshape.waits {
                self.reshape.trouble = None;
            }
            return;
        }
        (self.reshape.at, self.reshape.at_once) = (held, STRIPES_AT_ONCE.min(2 * at_once));
        if held == self.shape.window_end(mark)
            || self.reshape.copied * u64::from(self.shape.sector_bytes) >= WINDOW_BYTES
        {
            self.settle();
        }
    }

    /// Makes what was copied durable. Changes of it wait from here on until the mark is above it.
    fn settle(&mut self) {
        self.reshape.held = self.reshape.at;
        self.reshape.step = Step::Settle { flush: self.begun + 1 };
        self.flush_wanted = true;
    }

    /// A flush of the array's own failed. What was copied counts for nothing, and is copied again later.
    pub(crate) fn reshape_flush_failed(&mut self, member: usize, error: IoError) {
        if let (Step::Settle { .. }, Some(mark)) = (self.reshape.step, self.shape.moved) {
            self.reshape = Reshape {
                trouble: Some((member, error)),
                waits: true,
                raised: self.reshape.raised,
                ..Reshape::default()
            };
            (self.reshape.at, self.reshape.held) = (mark, mark);
        }
    }

    /// Behind the last stripe nothing stands in the new layout: what old stripes left there goes.
    fn trim_tail(&mut self) {
        let all: u64 = self.shape.data.iter().sum();
        let runs = self.shape.runs_over(self.shape.count(), self.sectors(), all - self.sectors());
        self.reshape.step = Step::Tail { left: runs.len() as u32 };
        let job = self.job(Job::Tail);
        for run in runs {
            self.send(job, run, What::Zeroes { lba: run.lba, count: run.count, fua: false });
        }
    }

    pub(crate) fn tail_part(&mut self, job: u64, member: usize, outcome: &Outcome) {
        if let Err(error) = outcome {
            self.reshape.trouble = Some((member, *error));
        }
        let Step::Tail { left } = &mut self.reshape.step else { return };
        *left -= 1;
        if *left > 0 {
            return;
        }
        self.jobs.remove(&job);
        self.reshape.step = Step::None;
        if self.reshape.trouble.is_some() {
            self.reshape.waits = true;
        } else {
            self.reshape.trimmed = true;
            self.settle();
        }
    }

    /// What was copied is durable: says so in the superblocks.
    fn raise_mark(&mut self) {
        let sectors = self.shape.moved.unwrap_or(0) * self.shape.stripe..self.reshape.at * self.shape.stripe;
        if self.log.covers(&sectors) {
            // A record names old places of these stripes, and another flush closes it.
            return self.settle();
        }
        self.events += 1;
        self.write_mark();
    }

    /// The shape as the next superblocks have it.
    fn raised(&self) -> Shape {
        let moved = (!self.reshape.trimmed).then_some(self.reshape.at);
        Shape { moved, ..self.shape.clone() }
    }

    fn write_mark(&mut self) {
        if !self.reshape.waits {
            self.reshape.trouble = None;
        }
        let (shape, roles) = (self.raised(), self.roles());
        self.reshape.step = Step::Mark { left: shape.count() as u32, failed: false };
        let job = self.job(Job::Moved);
        for member in 0..shape.count() {
            let data: Arc<[u8]> = self.superblock(member, &shape, &roles).encode().into();
            let (lba, part) = (superblock_sector(shape.members[member]), 0..data.len());
            let piece = Piece { member, lba, before: 0, count: 0 };
            self.send(job, piece, What::Write { lba, data, part, fua: true });
        }
    }

    pub(crate) fn mark_part(&mut self, job: u64, member: usize, outcome: &Outcome) {
        if let Err(error) = outcome {
            self.reshape.trouble = Some((member, *error));
        }
        let Step::Mark { left, failed } = &mut self.reshape.step else { return };
        *failed |= outcome.is_err();
        *left -= 1;
        if *left > 0 {
            return;
        }
        let failed = *failed;
        self.jobs.remove(&job);
        if failed {
            (self.reshape.step, self.reshape.waits) = (Step::MarkAgain, true);
            return;
        }
        self.shape = self.raised();
        let (at, raised, waits) = (self.reshape.at, self.next, self.reshape.waits);
        let (at_once, trouble) = (self.reshape.at_once, self.reshape.trouble.filter(|_| waits));
        self.reshape = Reshape { at, held: at, raised, waits, at_once, trouble, ..Reshape::default() };
        if self.shape.moved.is_none() {
            self.reshape.end();
            self.holes = Holes::new(self.sectors());
        }
    }
}
