//! Running a plan: parts one after the other, or several at once where nothing but their seeds decides them.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::directory::DirectoryError;
use super::journal::{Journal, JournalError};
use super::part::{self, Listener};
use super::plan::{Part, Plan, StagePlan, StepPlan};
use super::record::{Broke, End, Line};
use super::remaining::{Status, Work, weight};
use crate::steady::Rule;
use crate::target::{self, Problem, Target};

/// Hears now and then where a run stands, and may end it: what is finished by then stands.
pub trait Watch: Sync {
    /// Where it stands.
    fn at(&self, status: &Status) -> ControlFlow<()>;
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it is done.
    Complete,
    /// It was interrupted; it can be resumed.
    Interrupted,
    /// Some of its parts broke off: which, and why.
    Broke(Vec<String>),
}

/// How often somebody is told.
const TELL: Duration = Duration::from_millis(100);

/// Runs what is not done yet of a plan; `lines` is what the journal holds already.
///
/// # Errors
/// The journal cannot be written, or belongs to another plan.
pub fn conduct(
    plan: &Plan,
    rule: &Rule,
    target: &dyn Target,
    journal: Journal,
    lines: &[Line],
    watch: &dyn Watch,
) -> Result<Ended, DirectoryError> {
    let mut journal = journal;
    check_plan(plan, &mut journal, lines)?;
    let attempts: Vec<u32> = plan.parts.iter().map(|part| attempts(part, lines)).collect();
    let mut pending: Vec<usize> =
        (0..plan.parts.len()).filter(|at| !is_done(&plan.parts[*at].plan.part, lines)).collect();
    let load = |at: &usize| {
        let part = &plan.parts[*at];
        let steps = part.stages.iter().flat_map(|stage| stage.steps.iter().map(move |step| (stage, step)));
        let bytes = target.bytes(part);
        steps
            .map(|(stage, step)| weight(step, bytes, target.is_virtual()) * f64::from(stage.most_rounds(rule)))
            .sum::<f64>()
    };
    if target.at_once() > 1 {
        // The longest first, so that no processor waits for another at the end.
        pending.sort_by(|one, two| load(two).total_cmp(&load(one)));
    }
    let bytes = plan.parts.first().map_or(0, |part| target.bytes(part));
    let work = Work::new(pending.iter().map(|at| &plan.parts[*at]), rule, bytes, target.is_virtual());
    let workers = target.at_once().clamp(1, pending.len().max(1));
    let run = Conductor {
        plan,
        rule,
        target,
        watch,
        bytes,
        workers,
        stopped: AtomicBool::new(false),
        next: AtomicUsize::new(0),
        shared: Mutex::new(Shared {
            journal,
            work,
            parts_done: plan.parts.len() - pending.len(),
            under_way: vec![None; plan.parts.len()],
            broke: Vec::new(),
            failed: None,
        }),
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| run.worker(&pending, &attempts));
        }
    });
    let mut shared = run.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = shared.failed {
        return Err(error.into());
    }
    if !shared.broke.is_empty() {
        return Ok(Ended::Broke(shared.broke));
    }
    if run.stopped.load(Ordering::Relaxed) {
        return Ok(Ended::Interrupted);
    }
    if !lines.iter().any(|line| matches!(line, Line::Finished { .. })) {
        shared.journal.add(&finished())?;
    }
    Ok(Ended::Complete)
}

/// A new journal begins with its plan; one that is gone on with is of the same one.
pub(super) fn check_plan(plan: &Plan, journal: &mut Journal, lines: &[Line]) -> Result<(), DirectoryError> {
    if lines.is_empty() {
        journal.add(&Line::Plan(plan.line()))?;
    } else if lines.first() != Some(&Line::Plan(plan.line())) {
        return Err(DirectoryError::Journal(JournalError::Line {
            path: journal.path().into(),
            line: 1,
            problem:
                "expected the plan that the protocol, the options and this version of the program give; run it anew"
                    .into(),
        }));
    }
    Ok(())
}

/// All is done, now.
pub(super) fn finished() -> Line {
    Line::Finished { at: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string() }
}

/// How often a part was begun.
pub(super) fn attempts(part: &Part, lines: &[Line]) -> u32 {
    lines.iter().filter(|line| matches!(line, Line::Begin(begin) if begin.part == part.plan.part)).count() as u32
}

/// Whether the part of a name is done.
pub(super) fn is_done(name: &str, lines: &[Line]) -> bool {
    lines.iter().any(|line| matches!(line, Line::End(end) if end.part == name))
}

struct Shared {
    journal: Journal,
    work: Work,
    parts_done: usize,
    /// Of each part, what is going on in it and how much of that is done.
    under_way: Vec<Option<(String, f64)>>,
    broke: Vec<String>,
    failed: Option<JournalError>,
}

struct Conductor<'a> {
    plan: &'a Plan,
    rule: &'a Rule,
    target: &'a dyn Target,
    watch: &'a dyn Watch,
    bytes: u64,
    workers: usize,
    stopped: AtomicBool,
    next: AtomicUsize,
    shared: Mutex<Shared>,
}

impl Conductor<'_> {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn worker(&self, pending: &[usize], attempts: &[u32]) {
        while !self.stopped.load(Ordering::Relaxed) {
            let Some(at) = pending.get(self.next.fetch_add(1, Ordering::Relaxed)).copied() else { return };
            let (part, attempt) = (&self.plan.parts[at], attempts[at] + 1);
            let began = Instant::now();
            let told = Rc::new(Cell::new(Instant::now()));
            let mut observer = Observer { run: self, at, told, tell: None };
            let result = part::run(part, attempt, self.rule, self.target, &mut observer);
            let name = part.plan.part.clone();
            let line = match &result {
                Ok(()) => Line::End(End { part: name, attempt, wall_seconds: began.elapsed().as_secs_f64() }),
                Err(Problem::Interrupted) => {
                    self.stopped.store(true, Ordering::Relaxed);
                    return;
                }
                Err(Problem::Failed(reason)) => Line::Broke(Broke { part: name, attempt, reason: reason.clone() }),
            };
            self.write(&line);
            let mut shared = self.shared();
            shared.under_way[at] = None;
            match result {
                Ok(()) => shared.parts_done += 1,
                Err(problem) => {
                    shared.broke.push(format!("{}: {problem}", part.plan.part));
                    // A real device that fails once is not tried with everything else that was planned.
                    if !self.target.is_virtual() {
                        self.stopped.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Writes a line; when that fails, the run ends.
    fn write(&self, line: &Line) -> bool {
        let mut shared = self.shared();
        if shared.failed.is_none()
            && let Err(error) = shared.journal.add(line)
        {
            shared.failed = Some(error);
            self.stopped.store(true, Ordering::Relaxed);
        }
        shared.failed.is_none()
    }

    fn tell(&self) -> ControlFlow<()> {
        let status = {
            let shared = self.shared();
            let under_way: f64 = shared.under_way.iter().flatten().map(|(_, weight)| weight).sum();
            Status {
                parts_done: shared.parts_done,
                parts: self.plan.parts.len(),
                now: shared.under_way.iter().flatten().map(|(name, _)| name.clone()).collect(),
                done: shared.work.share(under_way),
                remaining: shared.work.remaining(under_way, self.workers),
            }
        };
        self.watch.at(&status)
    }
}

/// Hears of one part.
struct Observer<'a, 'b> {
    run: &'a Conductor<'b>,
    at: usize,
    /// When somebody was last told.
    told: Rc<Cell<Instant>>,
    /// Told of the step that is under way.
    tell: Option<Box<dyn FnMut(f64) -> ControlFlow<()> + 'a>>,
}

impl Listener for Observer<'_, '_> {
    fn write(&mut self, line: Line) -> Result<(), Problem> {
        // What is finished is written even when the run is to end.
        let written = self.run.write(&line);
        if written && !self.run.stopped.load(Ordering::Relaxed) { Ok(()) } else { Err(Problem::Interrupted) }
    }

    fn begins(&mut self, step: &str, plan: &StepPlan) -> target::Watch<'_> {
        let run = self.run;
        let (at, weight) = (self.at, weight(plan, run.bytes, run.target.is_virtual()));
        let name = format!("{} {step}", run.plan.parts[at].plan.part);
        run.shared().under_way[at] = Some((name, 0.0));
        let told = Rc::clone(&self.told);
        let tell = self.tell.insert(Box::new(move |done: f64| {
            if run.stopped.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if told.get().elapsed() < TELL {
                return ControlFlow::Continue(());
            }
            told.set(Instant::now());
            if let Some((_, under_way)) = &mut run.shared().under_way[at] {
                *under_way = done * weight;
            }
            let go_on = run.tell();
            if go_on.is_break() {
                run.stopped.store(true, Ordering::Relaxed);
            }
            go_on
        }));
        // Many steps are too short to be told of in their middle.
        let _ = tell(0.0);
        tell
    }

    fn done(&mut self, stage: &StagePlan, step: &StepPlan, took: Duration) {
        let weight = weight(step, self.run.bytes, self.run.target.is_virtual());
        let mut shared = self.run.shared();
        shared.under_way[self.at] = None;
        shared.work.done(&self.run.plan.parts[self.at], stage, weight, took);
    }

    fn dropped(&mut self, stage: &StagePlan, step: &StepPlan) {
        let weight = weight(step, self.run.bytes, self.run.target.is_virtual());
        self.run.shared().work.drop(&self.run.plan.parts[self.at], stage, weight);
    }
}
