//! Marks of regions: where the store behind may have changed without the cache.
//!
//! A region is marked, durably, before the store behind is changed there. A mark is taken back when nothing was changed for a while and
//! what was is durable on both members. What a volume finds marked when it is opened may have stale copies.

use array::What;
use device::IoError;

use crate::change::Stage;
use crate::layout::{BEHIND, CACHE, Range};
use crate::volume::{Job, Outcome, Volume};

/// What a mark's sector holds. That it is mapped says everything.
const MARK: u8 = 0x4d;

#[derive(Clone, Copy, Debug, Default)]
struct Region {
    /// The mark is durable.
    marked: bool,
    /// Somebody waits for it.
    wanted: bool,
    /// Changes under way.
    changing: u32,
    /// It was changed since somebody looked last.
    touched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Marks are written, then made durable.
    Write,
    Flush,
    /// Both members make durable what was changed, then marks are taken back.
    Settle,
    Clear,
}

#[derive(Debug)]
struct Round {
    step: Step,
    job: u64,
    regions: Vec<u64>,
    left: usize,
    error: Option<IoError>,
}

#[derive(Debug)]
pub(crate) struct Marks {
    regions: Vec<Region>,
    count: u64,
    wanted: bool,
    /// Changes that wait for marks.
    waiting: Vec<u64>,
    round: Option<Round>,
    /// Marks are to be taken back where it is quiet.
    due: bool,
}

impl Marks {
    pub fn new(regions: u64) -> Marks {
        let regions = vec![Region::default(); regions as usize];
        Marks { regions, count: 0, wanted: false, waiting: Vec::new(), round: None, due: false }
    }

    /// How many are marked.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether all of these are marked.
    fn has(&self, regions: &Range) -> bool {
        self.regions[regions.start as usize..regions.end as usize].iter().all(|region| region.marked)
    }

    /// A change begins.
    fn begin(&mut self, regions: &Range) {
        for region in &mut self.regions[regions.start as usize..regions.end as usize] {
            region.changing += 1;
            region.touched = true;
            region.wanted = !region.marked;
            self.wanted |= region.wanted;
        }
    }

    /// A change is over.
    pub fn end(&mut self, regions: &Range) {
        for region in &mut self.regions[regions.start as usize..regions.end as usize] {
            region.changing -= 1;
            region.touched = true;
        }
    }

    fn set(&mut self, region: u64, marked: bool) {
        let region = &mut self.regions[region as usize];
        if region.marked != marked {
            region.marked = marked;
            self.count = if marked { self.count + 1 } else { self.count - 1 };
        }
        region.wanted &= !marked;
    }

    /// Marks that are there already.
    pub fn found(&mut self, regions: Range) {
        regions.for_each(|region| self.set(region, true));
    }

    /// All marked regions.
    pub fn all(&self) -> Vec<u64> {
        self.those(|region| region.marked)
    }

    fn those(&self, wanted: impl Fn(&Region) -> bool) -> Vec<u64> {
        (0..).zip(&self.regions).filter(|(_, region)| wanted(region)).map(|(number, _)| number).collect()
    }

    /// None is there any more.
    pub fn forget(&mut self) {
        for region in 0..self.regions.len() as u64 {
            self.set(region, false);
        }
    }

    /// Marks are to be taken back where nothing was changed since the last call.
    pub fn tick(&mut self) {
        self.due = true;
    }

    pub fn is_busy(&self) -> bool {
        self.round.is_some()
    }
}

/// Numbers, in order, as runs of at most so many.
fn runs(numbers: &[u64], most: u64) -> Vec<Range> {
    let mut runs: Vec<Range> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == *number && run.end - run.start < most => run.end += 1,
            _ => runs.push(*number..number + 1),
        }
    }
    runs
}

impl Volume {
    /// A change in these regions begins. Whether they are all marked; otherwise it goes on when they are.
    pub(crate) fn mark(&mut self, job: u64, regions: &Range) -> bool {
        self.marks.begin(regions);
        let marked = self.marks.has(regions);
        if !marked {
            self.marks.waiting.push(job);
        }
        marked
    }

    pub(crate) fn marks_go_on(&mut self) {
        if self.marks.round.is_some() {
            return;
        }
        if std::mem::take(&mut self.marks.wanted) {
            let regions = self.marks.those(|region| region.wanted && !region.marked);
            if regions.is_empty() {
                return;
            }
            let most = u64::from(self.max_request);
            let job = self.job(Job::Marks);
            let runs = runs(&regions, most);
            self.marks.round = Some(Round { step: Step::Write, job, regions, left: runs.len(), error: None });
            for run in runs {
                let data = vec![MARK; self.bytes(run.end - run.start)].into();
                let part = 0..self.bytes(run.end - run.start);
                self.ask(job, 0, CACHE, What::Write { lba: self.layout().mark(run.start), data, part, fua: false });
            }
            return;
        }
        if std::mem::take(&mut self.marks.due) && self.marks.count > 0 {
            let regions = self.marks.those(|region| region.marked && region.changing == 0 && !region.touched);
            self.marks.regions.iter_mut().for_each(|region| region.touched = false);
            if !regions.is_empty() {
                let job = self.job(Job::Marks);
                self.marks.round = Some(Round { step: Step::Settle, job, regions, left: 2, error: None });
                self.ask(job, 0, CACHE, What::Flush);
                self.ask(job, 0, BEHIND, What::Flush);
            }
        }
    }

    pub(crate) fn marks_part(&mut self, job: u64, outcome: &Outcome) {
        let Some(round) = self.marks.round.as_mut().filter(|round| round.job == job) else { return };
        round.error = outcome.as_ref().err().copied().or(round.error);
        round.left -= 1;
        if round.left > 0 {
            return;
        }
        match round.step {
            _ if round.error.is_some() => self.marks_fail(),
            Step::Write => {
                (round.step, round.left) = (Step::Flush, 1);
                self.ask(job, 0, CACHE, What::Flush);
            }
            Step::Flush => {
                let regions = self.marks_end();
                regions.into_iter().for_each(|region| self.marks.set(region, true));
                self.wake();
            }
            Step::Settle => self.marks_clear(job),
            Step::Clear => _ = self.marks_end(),
        }
    }

    /// The round is over.
    fn marks_end(&mut self) -> Vec<u64> {
        let Some(round) = self.marks.round.take() else { return Vec::new() };
        self.jobs.remove(&round.job);
        round.regions
    }

    /// Takes back the marks of regions in which nothing was changed while members made all durable.
    fn marks_clear(&mut self, job: u64) {
        let marks = &mut self.marks;
        let Some(round) = &mut marks.round else { return };
        let quiet = |number: &u64| {
            let region = &marks.regions[*number as usize];
            region.changing == 0 && !region.touched
        };
        round.regions.retain(quiet);
        let regions = round.regions.clone();
        if regions.is_empty() {
            self.marks_end();
            return;
        }
        let runs = runs(&regions, u64::MAX);
        (round.step, round.left) = (Step::Clear, runs.len());
        regions.into_iter().for_each(|region| self.marks.set(region, false));
        for run in runs {
            let (lba, count) = (self.layout().mark(run.start), run.end - run.start);
            self.ask(job, 0, CACHE, What::Zeroes { lba, count, fua: false });
        }
    }

    /// Marks could not be written, which fails what waits for them, or not be taken back, which does no harm.
    fn marks_fail(&mut self) {
        let setting = self.marks.round.as_ref().is_some_and(|round| matches!(round.step, Step::Write | Step::Flush));
        let error = self.marks.round.as_ref().and_then(|round| round.error).unwrap_or(IoError::Media);
        let regions = self.marks_end();
        if !setting {
            return;
        }
        for region in regions {
            self.marks.regions[region as usize].wanted = false;
        }
        for job in std::mem::take(&mut self.marks.waiting) {
            self.change_fails(job, error);
        }
    }

    fn wake(&mut self) {
        for job in std::mem::take(&mut self.marks.waiting) {
            let Some(Job::Change(change)) = self.jobs.get(&job) else { continue };
            debug_assert_eq!(change.stage, Stage::Mark);
            let regions = self.layout().regions_of(&change.sectors);
            if self.marks.has(&regions) {
                self.change_behind(job);
            } else {
                self.marks.waiting.push(job);
                for region in &mut self.marks.regions[regions.start as usize..regions.end as usize] {
                    region.wanted = !region.marked;
                }
                self.marks.wanted = true;
            }
        }
    }
}
