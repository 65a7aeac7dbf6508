//! Writes and trims. With write-back a write is held, in one batch with the trim of the copy that it makes stale. Everything else changes
//! the store behind, whose region is marked before.

use std::sync::Arc;

use array::What;
use device::{BatchOp, IoError};

use crate::busy::Kind;
use crate::estimate::Changed;
use crate::header::Mode;
use crate::layout::{BEHIND, CACHE, Range};
use crate::status::Failure;
use crate::volume::{Job, Outcome, Volume};

/// What a change does to its sectors.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    Write { data: Arc<[u8]>, fua: bool },
    Zeroes { fua: bool },
}

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is being held.
    Hold,
    /// It waits until something is let go.
    Starved,
    /// Its regions are being marked.
    Mark,
    /// The store behind is changed, and its copy dropped.
    Behind,
    /// That is made durable.
    Flush,
    /// What was held before is let go.
    LetGo,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub tag: u64,
    pub sectors: Range,
    pub effect: Effect,
    pub stage: Stage,
    left: u32,
    /// Its number among what is under way.
    busy: u64,
    error: Option<IoError>,
}

/// Whether a member refused for lack of room, and did nothing.
fn is_full(error: IoError) -> bool {
    matches!(error, IoError::NoSpace | IoError::Full)
}

impl Volume {
    /// Whether a change cannot begin now.
    pub(crate) fn must_wait(&mut self, sectors: &Range, writes: bool) -> bool {
        let held = writes && self.header.mode == Mode::Back;
        let meets = |kind| match kind {
            Kind::Change | Kind::Fill | Kind::Release => true,
            // What goes behind meanwhile was written before.
            Kind::Back => !held,
            Kind::Probe { .. } | Kind::Held | Kind::Miss { .. } => false,
        };
        if self.busy.any(sectors, meets) {
            return true;
        }
        let more = sectors.end - sectors.start - self.held.count_in(sectors);
        if held && self.held.count() + self.back.coming + more > self.dirty_limit {
            self.back.make_room();
            self.go_on();
            return self.held.count() + self.back.coming + more > self.dirty_limit;
        }
        false
    }

    /// Whether a write finds no room, and will find none, since the store behind is gone.
    pub(crate) fn can_never_hold(&self, sectors: &Range) -> bool {
        let more = sectors.end - sectors.start - self.held.count_in(sectors);
        self.header.mode == Mode::Back
            && !self.present[BEHIND]
            && !self.has_kept()
            && self.held.count() + self.back.coming + more > self.dirty_limit
    }

    /// Begins a change. What it meets is over.
    pub(crate) fn change(&mut self, tag: u64, sectors: Range, effect: Effect) {
        self.busy.spoil(&sectors);
        self.status.changed_sectors += sectors.end - sectors.start;
        let kept = match (self.header.mode, &effect) {
            (Mode::Back, Effect::Write { .. }) => Changed::Held,
            (Mode::Through, Effect::Write { .. }) => Changed::Copied,
            (Mode::Around, _) | (_, Effect::Zeroes { .. }) => Changed::Dropped,
        };
        self.estimator.changed(&sectors, kept);
        let busy = self.busy.begin(&sectors, Kind::Change);
        let hold = self.header.mode == Mode::Back && matches!(effect, Effect::Write { .. });
        let stage = if hold { Stage::Hold } else { Stage::Mark };
        let regions = self.layout().regions_of(&sectors);
        if hold {
            self.back.coming += sectors.end - sectors.start;
        }
        let job = self.job(Job::Change(Change { tag, sectors, effect, stage, left: 0, busy, error: None }));
        if hold {
            self.hold(job);
        } else if self.mark(job, &regions) {
            self.change_behind(job);
        } else {
            self.marks_go_on();
        }
    }

    /// Has the cache device hold a write.
    fn hold(&mut self, job: u64) {
        let layout = self.layout();
        let Some(Job::Change(change)) = self.jobs.get_mut(&job) else { return };
        let Effect::Write { data, fua } = &change.effect else { return };
        let (lba, count) = (change.sectors.start, change.sectors.end - change.sectors.start);
        let ops = Arc::new([
            BatchOp::Trim { lba: layout.clean(lba), count },
            BatchOp::Write { lba: layout.held(lba), count: count as u32 },
        ]);
        let what = What::Batch { ops, data: Arc::clone(data), fua: *fua };
        (change.stage, change.left) = (Stage::Hold, 1);
        self.ask(job, 0, CACHE, what);
    }

    /// Changes the store behind, whose regions are marked.
    pub(crate) fn change_behind(&mut self, job: u64) {
        let layout = self.layout();
        let Some(Job::Change(change)) = self.jobs.get_mut(&job) else { return };
        let (lba, count) = (change.sectors.start, change.sectors.end - change.sectors.start);
        let what = match &change.effect {
            Effect::Write { data, fua } => What::Write { lba, data: Arc::clone(data), part: 0..data.len(), fua: *fua },
            Effect::Zeroes { fua } => What::Zeroes { lba, count, fua: *fua },
        };
        (change.stage, change.left) = (Stage::Behind, 2);
        self.back.direct += 1;
        self.ask(job, 0, BEHIND, what);
        self.ask(job, 0, CACHE, What::Zeroes { lba: layout.clean(lba), count, fua: false });
    }

    pub(crate) fn change_part(&mut self, job: u64, member: usize, outcome: &Outcome) {
        let back = self.header.mode == Mode::Back;
        let Some(Job::Change(change)) = self.jobs.get_mut(&job) else { return };
        change.left -= 1;
        if let Err(error) = outcome {
            match (change.stage, *error) {
                (Stage::Hold, error) if is_full(error) => {
                    change.stage = Stage::Starved;
                    self.back.make_room();
                    return self.back.starved.push_back(job);
                }
                (Stage::Hold, error @ IoError::ReadOnly) => return self.change_fails(job, error),
                // Whether it was done nobody knows; it must not come to light some day.
                _ if member == CACHE => return self.fail(Failure::Cache),
                (_, error) => change.error = Some(error),
            }
        }
        if change.left > 0 {
            return;
        }
        let (sectors, error) = (change.sectors.clone(), change.error);
        match change.stage {
            Stage::Hold => {
                self.back.coming -= sectors.end - sectors.start;
                self.held.insert(&sectors);
                self.dirty.insert(&sectors);
                self.back.order.push_back(sectors);
                self.change_done(job, None);
            }
            _ if error.is_some() => {
                // What is held there may not be what stands behind any more.
                let held = self.held.runs(&sectors).into_iter().filter(|(_, held)| *held).map(|(run, _)| run);
                for run in held.collect::<Vec<_>>() {
                    self.dirty.insert(&run);
                    self.back.order.push_back(run);
                }
                self.change_done(job, error);
            }
            // What was written before is held until its successor is durable: a power cut would bring back what was before both.
            Stage::Behind if back => {
                (change.stage, change.left) = (Stage::Flush, 1);
                self.ask(job, 0, BEHIND, What::Flush);
            }
            Stage::Flush => {
                let fua = matches!(change.effect, Effect::Zeroes { fua: true } | Effect::Write { fua: true, .. });
                (change.stage, change.left) = (Stage::LetGo, 1);
                self.held.remove(&sectors);
                self.dirty.remove(&sectors);
                let (lba, count) = (self.layout().held(sectors.start), sectors.end - sectors.start);
                self.ask(job, 0, CACHE, What::Zeroes { lba, count, fua });
            }
            Stage::Behind | Stage::LetGo => self.change_done(job, None),
            Stage::Starved | Stage::Mark => {}
        }
    }

    /// Tries once more to hold what found no room. Where there is nothing to let go, it is refused.
    pub(crate) fn feed(&mut self) {
        for job in std::mem::take(&mut self.back.starved) {
            if self.held.count() == 0 || !self.present[BEHIND] {
                self.change_fails(job, IoError::NoSpace);
            } else {
                self.hold(job);
            }
        }
    }

    /// Nothing was changed.
    pub(crate) fn change_fails(&mut self, job: u64, error: IoError) {
        if let Some(Job::Change(change)) = self.jobs.get(&job)
            && matches!(change.stage, Stage::Hold | Stage::Starved)
        {
            self.back.coming -= change.sectors.end - change.sectors.start;
        }
        self.change_done(job, Some(error));
    }

    fn change_done(&mut self, job: u64, error: Option<IoError>) {
        let Some(Job::Change(change)) = self.jobs.remove(&job) else { return };
        self.busy.end(change.busy);
        let Change { tag, sectors, effect, stage, .. } = change;
        if !matches!(stage, Stage::Hold | Stage::Starved) {
            let regions = self.layout().regions_of(&sectors);
            self.marks.end(&regions);
        }
        // A copy may be written where nobody is just finding out whether there is one.
        let in_the_way = |kind| matches!(kind, Kind::Probe { .. } | Kind::Fill | Kind::Release | Kind::Change);
        match effect {
            Effect::Write { data, .. }
                if self.header.mode == Mode::Through && error.is_none() && !self.busy.any(&sectors, in_the_way) =>
            {
                self.fill(&sectors, data);
            }
            _ => {}
        }
        self.answer(tag, error.map_or(Ok(None), Err));
    }
}
