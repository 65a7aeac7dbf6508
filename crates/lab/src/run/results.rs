//! What came of a run, read from its directory.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::directory::{Directory, DirectoryError, Header};
use super::journal;
use super::record::{Begin, Line, PartPlan, Step, Verdict};
use crate::protocol::{Protocol, Role};

/// A run as it stands on disk, finished or not.
#[derive(Debug)]
pub struct Run {
    /// What was asked.
    pub header: Header,
    /// The protocol as it was run.
    pub protocol: Protocol,
    /// Its parts, in the order of the plan; those that were not begun have no steps.
    pub parts: Vec<PartResults>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// All of it is done.
    pub finished: bool,
}

/// What came of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartResults {
    /// What was to be done.
    pub plan: PartPlan,
    /// How it began; `None` where it was not begun.
    pub begin: Option<Begin>,
    /// Its steps in order.
    pub steps: Vec<Step>,
    /// What the steady-state rule says of its stages.
    pub verdicts: Vec<Verdict>,
    /// It was done to its end.
    pub complete: bool,
    /// Why it broke off, where it did.
    pub broke: Option<String>,
    /// How long it took to run, seconds of the clock on the wall.
    pub wall_seconds: Option<f64>,
}

impl PartResults {
    /// The last round of a stage; of a stage that became steady, the last of its steady window.
    pub fn last_round(&self, stage: &str) -> Option<u32> {
        self.steps.iter().filter(|step| step.stage == stage).filter_map(|step| step.round).max()
    }
}

impl Run {
    /// Reads it.
    ///
    /// # Errors
    /// The directory is no run's, or damaged.
    pub fn open(path: &Path) -> Result<Run, DirectoryError> {
        let directory = Directory::open(path)?;
        let lines = if directory.journal().exists() { journal::read(&directory.journal())? } else { Vec::new() };
        let (parts, left_out, finished) = parts(&lines);
        Ok(Run { header: directory.header()?, protocol: directory.protocol()?, parts, left_out, finished })
    }

    /// All of it as JSON, without histograms and results over time: those are in the journal.
    pub fn json(&self) -> Value {
        let mut parts = json!(self.parts);
        let steps = parts.as_array_mut().into_iter().flatten().filter_map(|part| part.get_mut("steps")?.as_array_mut());
        for step in steps.flatten().filter_map(Value::as_object_mut) {
            step.remove("cells");
            step.remove("series");
        }
        json!({ "header": self.header, "finished": self.finished, "left_out": self.left_out, "parts": parts })
    }

    /// Steps whose results count, with their parts.
    pub fn measured(&self) -> impl Iterator<Item = (&PartResults, &Step)> {
        self.parts
            .iter()
            .flat_map(|part| part.steps.iter().map(move |step| (part, step)))
            .filter(|(_, step)| step.role == Role::Measure)
    }
}

/// The parts of a journal, what was left out, and whether it is finished. Of a part that was begun several times the attempt counts that
/// came to its end; without one, that with the most steps, the later of two alike.
pub(super) fn parts(lines: &[Line]) -> (Vec<PartResults>, Vec<String>, bool) {
    let plan = lines.iter().find_map(|line| match line {
        Line::Plan(plan) => Some(plan),
        _ => None,
    });
    let Some(plan) = plan else { return (Vec::new(), Vec::new(), false) };
    let parts = plan.parts.iter().map(|plan| part(plan, lines)).collect();
    let finished = lines.iter().any(|line| matches!(line, Line::Finished { .. }));
    (parts, plan.left_out.clone(), finished)
}

fn part(plan: &PartPlan, lines: &[Line]) -> PartResults {
    let empty = PartResults {
        plan: plan.clone(),
        begin: None,
        steps: Vec::new(),
        verdicts: Vec::new(),
        complete: false,
        broke: None,
        wall_seconds: None,
    };
    let mut attempts: Vec<PartResults> = Vec::new();
    // A part whose device could not even be made ready breaks off without having begun.
    let mut unready = empty.clone();
    let at = |attempt: u32| attempt.checked_sub(1).map(|at| at as usize);
    // In order: what breaks off before it has begun leaves its number to the attempt that begins later.
    for line in lines {
        if let Line::Begin(begin) = line
            && begin.part == plan.part
        {
            attempts.push(PartResults { begin: Some(begin.clone()), ..empty.clone() });
        }
        let (name, attempt) = match line {
            Line::Step(step) => (&step.part, step.attempt),
            Line::Verdict(verdict) => (&verdict.part, verdict.attempt),
            Line::End(end) => (&end.part, end.attempt),
            Line::Broke(broke) => (&broke.part, broke.attempt),
            _ => continue,
        };
        if *name != plan.part {
            continue;
        }
        let Some(results) = at(attempt).and_then(|at| attempts.get_mut(at)) else {
            if let Line::Broke(broke) = line {
                unready.broke = Some(broke.reason.clone());
            }
            continue;
        };
        match line {
            Line::Step(step) => results.steps.push((**step).clone()),
            Line::Verdict(verdict) => results.verdicts.push(verdict.clone()),
            Line::End(end) => (results.complete, results.wall_seconds) = (true, Some(end.wall_seconds)),
            Line::Broke(broke) => results.broke = Some(broke.reason.clone()),
            _ => {}
        }
    }
    attempts.into_iter().max_by_key(|results| (results.complete, results.steps.len())).unwrap_or(unready)
}
