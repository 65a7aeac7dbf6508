//! Parts that are run elsewhere: on other machines, in any order, by whoever has the protocol and the options.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use super::conduct::{attempts, finished, is_done};
use super::directory::{DirectoryError, Options};
use super::journal::Journal;
use super::part::{self, Listener};
use super::plan::{Plan, StagePlan, StepPlan};
use super::record::{End, Line};
use super::session::{RunError, ready};
use crate::protocol::Protocol;
use crate::target::{Problem, Watch};

/// A run whose parts are run elsewhere. It holds the journal: nobody else goes on with the run meanwhile.
pub struct Apart {
    plan: Plan,
    journal: Journal,
    lines: Vec<Line>,
}

impl Apart {
    /// Of a plan, and a journal with these lines.
    pub(super) fn new(plan: Plan, journal: Journal, lines: Vec<Line>) -> Apart {
        Apart { plan, journal, lines }
    }

    /// How many parts the run has.
    pub fn parts(&self) -> usize {
        self.plan.parts.len()
    }

    /// Names of the parts that are not done, and which attempt at each is next.
    pub fn pending(&self) -> Vec<(String, u32)> {
        let pending = self.plan.parts.iter().filter(|part| !is_done(&part.plan.part, &self.lines));
        pending.map(|part| (part.plan.part.clone(), attempts(part, &self.lines) + 1)).collect()
    }

    /// Writes down what [`run_part`] gave. A part that is done already stays as it is.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn add(&mut self, lines: Vec<Line>) -> Result<(), DirectoryError> {
        if lines.iter().any(|line| matches!(line, Line::End(end) if is_done(&end.part, &self.lines))) {
            return Ok(());
        }
        for line in lines {
            self.journal.add(&line)?;
            self.lines.push(line);
        }
        Ok(())
    }

    /// Writes down that all is done. Whether it is.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn finish(&mut self) -> Result<bool, DirectoryError> {
        let is_whole = self.pending().is_empty();
        if is_whole && !self.lines.iter().any(|line| matches!(line, Line::Finished { .. })) {
            let line = finished();
            self.journal.add(&line)?;
            self.lines.push(line);
        }
        Ok(is_whole)
    }
}

/// Runs one part of what a protocol and options come to, for the journal of the run that it belongs to. `directory` is that run's: a trace that
/// is played must be there already. Equal arguments give equal lines, but for the time that it took.
///
/// # Errors
/// There is no such part, it was interrupted, or the device failed.
pub fn run_part(
    protocol: &Protocol,
    options: &Options,
    directory: &Path,
    (name, attempt): (&str, u32),
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Vec<Line>, RunError> {
    let (plan, target) = ready(protocol, options, directory, 1)?;
    let part = plan.parts.iter().find(|part| part.plan.part == name);
    let part = part.ok_or_else(|| RunError::Target(Problem::Failed(format!("'{name}' is no part of this run"))))?;
    let began = Instant::now();
    let mut collector = Collector { lines: Vec::new(), watch };
    part::run(part, attempt, &protocol.steady, target.as_ref(), &mut collector).map_err(RunError::Target)?;
    let mut lines = collector.lines;
    lines.push(Line::End(End { part: name.into(), attempt, wall_seconds: began.elapsed().as_secs_f64() }));
    Ok(lines)
}

/// Keeps the lines of a part.
struct Collector<'a> {
    lines: Vec<Line>,
    watch: Watch<'a>,
}

impl Listener for Collector<'_> {
    fn write(&mut self, line: Line) -> Result<(), Problem> {
        self.lines.push(line);
        Ok(())
    }

    fn begins(&mut self, _: &str, _: &StepPlan) -> Watch<'_> {
        self.watch
    }

    fn done(&mut self, _: &StagePlan, _: &StepPlan, _: Duration) {}

    fn dropped(&mut self, _: &StagePlan, _: &StepPlan) {}
}
