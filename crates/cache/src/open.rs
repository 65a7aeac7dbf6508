//! How a volume is opened and stopped.
//!
//! Opened: it is found out what is held, all of which counts as dirty, and which regions are marked; their clean copies are dropped.
//! Stopped: what is held and behind is let go, and when all is durable marks are taken back.

use array::{Answer, What};

use crate::header::Mode;
use crate::layout::{BEHIND, CACHE, Layout};
use crate::status::Failure;
use crate::volume::{Job, Life, Outcome, Volume};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    None,
    /// Marks are looked for, from this region on.
    Marks(u64),
    /// What is held is, from this sector on.
    Held(u64),
    /// The header says that the volume is in use.
    InUse,
    /// Stale copies are dropped.
    Drop,
    /// What the volume shows from now on is made durable: somebody may have been killed before.
    Shown,
    Unmark,
    /// What is held goes behind: the mode is not write-back any more.
    Drain,
    DrainFlush,
    /// Everything is made durable.
    Settle,
    /// Marks are taken back.
    StopUnmark,
    /// It is waited for what the store behind looks like, now that nobody changes it.
    Settled,
    /// The header says so.
    Goodbye,
}

#[derive(Debug, Default)]
pub(crate) struct Opening {
    step: Step,
    job: u64,
    left: usize,
    failed: bool,
}

impl Volume {
    fn begin_step(&mut self, step: Step, left: usize) -> u64 {
        self.jobs.remove(&self.opening.job);
        let job = self.job(Job::Open);
        (self.opening.step, self.opening.job, self.opening.left, self.opening.failed) = (step, job, left, false);
        job
    }

    /// Begins.
    pub(crate) fn open_step(&mut self) {
        self.scan(Step::Marks(0));
    }

    /// Asks for the next run of marks or of what is held.
    fn scan(&mut self, step: Step) {
        let layout = self.layout();
        let (lba, max) = match step {
            Step::Marks(region) if region < layout.regions() => (layout.mark(region), layout.regions() - region),
            Step::Marks(_) => return self.scan(Step::Held(0)),
            Step::Held(sector) if sector < layout.sectors => (layout.held(sector), layout.sectors - sector),
            _ => return self.scanned(),
        };
        let job = self.begin_step(step, 1);
        self.ask(job, 0, CACHE, What::Extent { lba, max });
    }

    /// It is known what the cache holds.
    fn scanned(&mut self) {
        if self.changed && self.held.count() > 0 {
            return self.fail(Failure::Changed { held: self.held.count() });
        }
        self.write_header(Step::InUse, None);
    }

    fn write_header(&mut self, step: Step, witness: Option<[u8; 32]>) {
        self.header.witness = witness;
        let data = self.header.encode();
        let part = 0..data.len();
        let job = self.begin_step(step, 1);
        let lba = Layout::header(self.layout().half, self.number);
        self.ask(job, 0, CACHE, What::Write { lba, data: data.into(), part, fua: true });
    }

    /// Drops copies that may be stale.
    fn drop_stale(&mut self) {
        let layout = self.layout();
        let marked = self.marks.all();
        self.status.dropped_regions = if self.changed { layout.regions() } else { marked.len() as u64 };
        let ranges: Vec<_> = match self.changed {
            true => std::iter::once(0..layout.sectors).collect(),
            false => marked.into_iter().map(|region| layout.region(region)).collect(),
        };
        if ranges.is_empty() {
            return self.settle();
        }
        let job = self.begin_step(Step::Drop, ranges.len());
        for sectors in ranges {
            let (lba, count) = (layout.clean(sectors.start), sectors.end - sectors.start);
            self.ask(job, 0, CACHE, What::Zeroes { lba, count, fua: false });
        }
    }

    fn settle(&mut self) {
        let job = self.begin_step(Step::Shown, 2);
        self.ask(job, 0, CACHE, What::Flush);
        self.ask(job, 0, BEHIND, What::Flush);
    }

    /// What is held goes behind before the volume is used in another mode: a write that is not held would be torn by one that is.
    fn drain(&mut self) {
        if self.header.mode == Mode::Back || self.held.count() == 0 {
            return self.open_ends();
        }
        self.jobs.remove(&self.opening.job);
        self.opening.step = Step::Drain;
        self.back.hurry();
        self.drain_step();
    }

    /// Goes on with that.
    pub(crate) fn drain_step(&mut self) {
        if self.opening.step != Step::Drain {
            return;
        }
        self.back_go_on();
        if self.back.is_resting() {
            return self.fail(Failure::Behind);
        }
        if self.dirty.count() > 0 || self.back.is_busy() {
            return;
        }
        self.release();
        if self.back.is_busy() {
            return;
        }
        // What is let go stays so.
        let job = self.begin_step(Step::DrainFlush, 1);
        self.ask(job, 0, CACHE, What::Flush);
    }

    fn open_ends(&mut self) {
        self.returned = false;
        self.jobs.remove(&self.opening.job);
        self.opening.step = Step::None;
        self.life = Life::Active;
        self.go_on();
    }

    pub(crate) fn open_part(&mut self, job: u64, member: usize, outcome: &Outcome) {
        if self.opening.job != job {
            return;
        }
        if outcome.is_err() && member == BEHIND && self.returned && self.life == Life::Opening {
            // It went again.
            self.present[BEHIND] = false;
            return self.open_ends();
        }
        if outcome.is_err() && (member == CACHE || self.life == Life::Opening) {
            return self.fail(if member == CACHE { Failure::Cache } else { Failure::Behind });
        }
        self.opening.failed |= outcome.is_err();
        self.opening.left -= 1;
        if self.opening.left > 0 {
            return;
        }
        let layout = self.layout();
        match (self.opening.step, outcome) {
            (Step::Marks(region), Ok(Answer::Extent(extent))) => {
                let end = (region + extent.count.max(1)).min(layout.regions());
                if extent.mapped {
                    self.marks.found(region..end);
                }
                self.scan(Step::Marks(end));
            }
            (Step::Held(sector), Ok(Answer::Extent(extent))) => {
                let end = (sector + extent.count.max(1)).min(layout.sectors);
                if extent.mapped {
                    self.held.insert(&(sector..end));
                    self.dirty.insert(&(sector..end));
                    let step = u64::from(self.max_request);
                    (sector..end)
                        .step_by(step as usize)
                        .for_each(|at| self.back.order.push_back(at..end.min(at + step)));
                }
                self.scan(Step::Held(end));
            }
            (Step::InUse, _) => self.drop_stale(),
            (Step::Drop, _) => self.settle(),
            (Step::Shown, _) if self.marks.count() == 0 => self.drain(),
            (Step::Shown, _) => {
                self.marks.forget();
                let job = self.begin_step(Step::Unmark, 1);
                self.ask(job, 0, CACHE, What::Zeroes { lba: layout.mark(0), count: layout.regions(), fua: false });
            }
            (Step::Unmark, _) => self.drain(),
            (Step::DrainFlush, _) => self.open_ends(),
            (Step::Settle, _) if self.opening.failed || !self.present[BEHIND] => self.stopped(),
            (Step::Settle, _) => {
                self.marks.forget();
                let job = self.begin_step(Step::StopUnmark, 1);
                self.ask(job, 0, CACHE, What::Zeroes { lba: layout.mark(0), count: layout.regions(), fua: false });
            }
            (Step::StopUnmark, _) => {
                self.jobs.remove(&job);
                self.opening.step = Step::Settled;
            }
            (Step::Goodbye, _) => self.stopped(),
            (Step::Marks(_) | Step::Held(_) | Step::Drain | Step::Settled | Step::None, _) => self.fail(Failure::Cache),
        }
    }

    /// Whether it is about to stop, and only [`Volume::say_goodbye`] is missing.
    pub fn is_settled(&self) -> bool {
        self.life == Life::Stopping && self.opening.step == Step::Settled
    }

    /// Says what the store behind looks like, which is remembered; without a word nobody can tell next time whether it changed meanwhile.
    pub fn say_goodbye(&mut self, witness: Option<[u8; 32]>) {
        if self.is_settled() {
            match witness {
                Some(witness) => self.write_header(Step::Goodbye, Some(witness)),
                None => self.stopped(),
            }
        }
    }

    fn stopped(&mut self) {
        self.jobs.remove(&self.opening.job);
        self.life = Life::Stopped;
    }

    /// Goes on stopping, once what was under way is over.
    pub(crate) fn stop_step(&mut self) {
        if self.opening.step != Step::None || self.marks.is_busy() || self.back.is_busy() {
            return;
        }
        self.release();
        if !self.jobs.is_empty() {
            return;
        }
        let job = self.begin_step(Step::Settle, 2);
        self.ask(job, 0, CACHE, What::Flush);
        self.ask(job, 0, BEHIND, What::Flush);
    }
}
