//! Writes what is dirty behind, in the order in which it became dirty, and lets go of what is held for nothing but reads.
//!
//! A round takes some of it. First the cache device makes durable what it holds: what stands behind must never be newer than what a power
//! cut leaves on the cache device. It stays held, and is let go when room is needed.

use std::collections::VecDeque;

use array::{Answer, What};

use crate::busy::Kind;
use crate::layout::{BEHIND, CACHE, Range};
use crate::status::Failure;
use crate::volume::{Job, Life, Outcome, Volume};

/// Runs of sectors of one round at most.
const RUNS_MAX: usize = 128;
/// While so many runs are being let go, no more are.
const RELEASES_MAX: usize = 64;
/// Sectors of one round at most, in requests of the largest size.
const REQUESTS_MAX: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    FlushCache,
    Copy,
    FlushBehind,
}

#[derive(Debug)]
struct Round {
    step: Step,
    job: u64,
    runs: Vec<Range>,
    /// Their numbers among what is under way.
    busy: Vec<u64>,
    left: usize,
    failed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Back {
    /// What became dirty, first things first; some of it may be dirty no more.
    pub order: VecDeque<Range>,
    /// What is behind and still held, first things first.
    kept: VecDeque<Range>,
    round: Option<Round>,
    /// So many of `order` are due.
    due: usize,
    /// Everything is.
    hurry: bool,
    /// Room is needed.
    short: bool,
    /// Releases under way.
    releasing: usize,
    /// The store behind failed: nothing is tried before the next tick.
    resting: bool,
    /// Sectors of writes that are about to be held.
    pub coming: u64,
    /// Writes that found no room.
    pub starved: VecDeque<u64>,
    /// Changes that went behind without being held, and those of them that a flush covers.
    pub direct: u64,
    pub direct_flushed: u64,
}

impl Back {
    /// Whether the store behind has changes that no flush covers.
    pub fn behind_is_volatile(&self) -> bool {
        self.direct > self.direct_flushed
    }

    /// What is dirty by now is due.
    pub fn tick(&mut self, any: bool) {
        self.resting = false;
        if any {
            self.due = self.order.len();
        }
    }

    /// Everything is due.
    pub fn hurry(&mut self) {
        self.hurry = true;
        self.resting = false;
    }

    /// Room is needed.
    pub fn make_room(&mut self) {
        self.short = true;
    }

    pub fn is_busy(&self) -> bool {
        self.round.is_some() || self.releasing > 0
    }

    /// Whether the store behind failed, and is tried again with the next tick.
    pub fn is_resting(&self) -> bool {
        self.resting
    }
}

impl Volume {
    /// Begins the next round, or lets go of something, where that is wanted.
    pub(crate) fn back_go_on(&mut self) {
        if self.back.short {
            self.release();
        }
        self.back.hurry &= self.dirty.count() > 0;
        let wanted =
            self.back.hurry || self.back.short || self.back.due > 0 || self.dirty.count() > self.dirty_limit / 2;
        let may =
            self.back.round.is_none() && !self.back.resting && self.present[BEHIND] && self.life != Life::Stopping;
        let nothing_to_free = (self.back.kept.is_empty() && self.dirty.count() == 0) || !self.present[BEHIND];
        if !self.back.starved.is_empty() && !self.back.is_busy() && nothing_to_free {
            self.feed();
        }
        if self.dirty.count() == 0 {
            self.back.due = 0;
        }
        if !wanted || !may || self.dirty.count() == 0 {
            return;
        }
        let runs = self.next_runs();
        if runs.is_empty() {
            return;
        }
        let busy = runs.iter().map(|run| self.busy.begin(run, Kind::Back)).collect();
        let job = self.job(Job::Back);
        self.back.round = Some(Round { step: Step::FlushCache, job, runs, busy, left: 1, failed: false });
        self.ask(job, 0, CACHE, What::Flush);
    }

    /// Takes what is written behind next out of what is dirty, in the order of its addresses.
    fn next_runs(&mut self) -> Vec<Range> {
        let most = REQUESTS_MAX * u64::from(self.max_request);
        let (mut taken, mut count) = (crate::sectors::Sectors::default(), 0);
        let mut pieces = 0;
        while let Some(sectors) = self.back.order.front().cloned() {
            // What a change of the store behind is about goes when that is over.
            let dirty: Vec<Range> =
                self.dirty.runs(&sectors).into_iter().filter(|(_, dirty)| *dirty).map(|(run, _)| run).collect();
            if pieces + dirty.len() > RUNS_MAX || count >= most {
                break;
            }
            if self.busy.any(&sectors, |kind| kind == Kind::Change) && pieces > 0 {
                break;
            }
            if self.busy.any(&sectors, |kind| kind == Kind::Change) {
                return Vec::new();
            }
            self.back.order.pop_front();
            self.back.due = self.back.due.saturating_sub(1);
            for run in dirty {
                self.dirty.remove(&run);
                count += run.end - run.start;
                pieces += 1;
                taken.insert(&run);
            }
        }
        let largest = u64::from(self.max_request);
        let mut runs = Vec::new();
        for run in taken.all() {
            let mut from = run.start;
            while from < run.end {
                runs.push(from..run.end.min(from + largest));
                from += largest;
            }
        }
        runs
    }

    pub(crate) fn back_part(&mut self, job: u64, member: usize, at: usize, outcome: Outcome) {
        let layout = self.layout();
        let Some(round) = self.back.round.as_mut().filter(|round| round.job == job) else { return };
        match (round.step, member, outcome) {
            (Step::FlushCache, _, Ok(_)) => {
                (round.step, round.left) = (Step::Copy, round.runs.len());
                for (at, run) in round.runs.clone().into_iter().enumerate() {
                    let buf = vec![0; self.bytes(run.end - run.start)];
                    self.ask(job, at, CACHE, What::Read { lba: layout.held(run.start), buf });
                }
                return;
            }
            (Step::FlushCache, ..) => return self.fail(Failure::Cache),
            (Step::Copy, CACHE, Ok(Answer::Done(Some(buf)))) if !round.failed => {
                let lba = round.runs[at].start;
                let part = 0..buf.len();
                return self.ask(job, at, BEHIND, What::Write { lba, data: buf.into(), part, fua: false });
            }
            (Step::Copy, _, outcome) => {
                round.failed |= outcome.is_err();
                round.left -= 1;
                if round.left > 0 {
                    return;
                }
                if !round.failed {
                    (round.step, round.left) = (Step::FlushBehind, 1);
                    return self.ask(job, 0, BEHIND, What::Flush);
                }
            }
            (Step::FlushBehind, _, outcome) => round.failed |= outcome.is_err(),
        }
        self.round_ends();
    }

    fn round_ends(&mut self) {
        let Some(Round { runs, busy, failed, job, .. }) = self.back.round.take() else { return };
        self.jobs.remove(&job);
        busy.into_iter().for_each(|busy| _ = self.busy.end(busy));
        for run in runs {
            if failed {
                self.dirty.insert(&run);
                self.back.order.push_front(run);
            } else {
                self.status.written_back_sectors += run.end - run.start;
                self.back.kept.push_back(run);
            }
        }
        self.back.resting |= failed;
    }

    /// Sectors that are on their way behind, and were not written again meanwhile.
    pub(crate) fn going_behind(&self) -> u64 {
        let runs = self.back.round.iter().flat_map(|round| &round.runs);
        runs.map(|run| run.end - run.start - self.dirty.count_in(run)).sum()
    }

    /// Lets go of the oldest of what is behind by now.
    pub(crate) fn release(&mut self) {
        // Whoever waits for room asks again and again.
        if self.life == Life::Active && self.back.releasing >= RELEASES_MAX {
            return;
        }
        let room = u64::from(self.max_request) * 4;
        let mut left = if self.life == Life::Active { room } else { u64::MAX };
        let mut tried = self.back.kept.len();
        while left > 0 && tried > 0 {
            tried -= 1;
            let Some(sectors) = self.back.kept.pop_front() else { break };
            let kinds = |kind| matches!(kind, Kind::Held | Kind::Back | Kind::Change | Kind::Release);
            if self.busy.any(&sectors, kinds) {
                // Somebody reads it just now.
                self.back.kept.push_back(sectors);
                continue;
            }
            for (run, held) in self.held.runs(&sectors) {
                for (run, dirty) in self.dirty.runs(&run) {
                    if !held || dirty {
                        continue;
                    }
                    let count = self.held.remove(&run);
                    left = left.saturating_sub(count);
                    let busy = self.busy.begin(&run, Kind::Release);
                    let job = self.job(Job::Release(busy));
                    self.back.releasing += 1;
                    self.ask(job, 0, CACHE, What::Zeroes { lba: self.layout().held(run.start), count, fua: false });
                }
            }
        }
        self.back.short = false;
    }

    pub(crate) fn release_part(&mut self, job: u64, outcome: &Outcome) {
        let Some(Job::Release(busy)) = self.jobs.remove(&job) else { return };
        self.busy.end(busy);
        self.back.releasing -= 1;
        if outcome.is_err() {
            // Held or not, nobody knows.
            return self.fail(Failure::Cache);
        }
        self.feed();
    }

    /// Whether anything is held that is behind by now.
    pub(crate) fn has_kept(&self) -> bool {
        !self.back.kept.is_empty()
    }
}
