//! One part from its purge to its end.

use std::time::{Duration, Instant};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::plan::{Part, StagePlan, StepPlan};
use super::record::{Begin, Line, Step, Verdict};
use crate::protocol::{Metric, Role, Tracked};
use crate::steady::Rule;
use crate::target::{Bench, Outcome, Problem, Target, Watch};

/// Who hears of what a part comes to.
pub trait Listener {
    /// Writes a line down.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&mut self, line: Line) -> Result<(), Problem>;

    /// A step begins: what it is called, and how to be told of it.
    fn begins(&mut self, step: &str, plan: &StepPlan) -> Watch<'_>;

    /// It is done.
    fn done(&mut self, stage: &StagePlan, step: &StepPlan, took: Duration);

    /// It will not be done: the stage ended before.
    fn dropped(&mut self, stage: &StagePlan, step: &StepPlan);
}

/// Runs a part. What it comes to is written line by line.
///
/// # Errors
/// It was interrupted, the device failed, or a line cannot be written.
pub fn run(
    part: &Part,
    attempt: u32,
    rule: &Rule,
    target: &dyn Target,
    listener: &mut dyn Listener,
) -> Result<(), Problem> {
    let mut bench = target.bench(part)?;
    listener.write(Line::Begin(Begin {
        part: part.plan.part.clone(),
        attempt,
        machine: bench.machine().clone(),
        purge: bench.purge().into(),
        notes: bench.notes(),
    }))?;
    let mut number = 0;
    for stage in &part.stages {
        run_stage(part, attempt, stage, rule, bench.as_mut(), &mut number, listener)?;
    }
    Ok(())
}

fn run_stage(
    part: &Part,
    attempt: u32,
    stage: &StagePlan,
    rule: &Rule,
    bench: &mut dyn Bench,
    number: &mut u32,
    listener: &mut dyn Listener,
) -> Result<(), Problem> {
    let rounds = stage.most_rounds(rule);
    let has_rounds = rounds > 1;
    let capacity = bench.machine().bytes.saturating_mul(u64::from(bench.machine().devices));
    let mut written = 0.0;
    let mut tracked: Vec<Vec<f64>> = stage.tracked.iter().map(|_| Vec::new()).collect();
    let mut course = Vec::new();
    let mut last_round = 0;
    for round in 1..=rounds {
        last_round = round;
        for step in &stage.steps {
            let name = step_name(stage, step, has_rounds.then_some(round));
            let began = Instant::now();
            let outcome = bench.run(step, seed(part.plan.seed, *number), listener.begins(&name, step))?;
            written += outcome.total.write.bytes as f64;
            course = outcome.series.iter().map(|interval| (interval.seconds, interval.requests(None) as f64)).collect();
            let record = record(part, attempt, *number, name, stage, step, has_rounds.then_some(round), outcome);
            for (values, tracked) in tracked.iter_mut().zip(&stage.tracked) {
                if is_of(tracked, step) && values.len() < round as usize {
                    values.push(record.metric(tracked.metric).unwrap_or(0.0));
                }
            }
            listener.write(Line::Step(Box::new(record)))?;
            listener.done(stage, step, began.elapsed());
            *number += 1;
        }
        let steady = |values: &Vec<f64>| rule.window(values).is_some_and(|window| window.steady);
        let enough = stage.until_written.is_some_and(|times| written >= times * capacity as f64);
        if enough || (stage.until_steady && !tracked.is_empty() && tracked.iter().all(steady)) {
            break;
        }
    }
    for _ in last_round..rounds {
        stage.steps.iter().for_each(|step| listener.dropped(stage, step));
    }
    let verdict = |what: String, metric, rounds, window: Option<crate::steady::Window>| Verdict {
        part: part.plan.part.clone(),
        attempt,
        stage: stage.name.clone(),
        tracked: what,
        metric,
        rounds,
        steady: window.as_ref().is_some_and(|window| window.steady),
        window,
        rule: rule.text(),
    };
    for (values, tracked) in tracked.iter().zip(&stage.tracked) {
        let window = rule.window(values);
        listener.write(Line::Verdict(verdict(tracked.text(), tracked.metric, last_round, window)))?;
    }
    // Preconditioning that is not done in rounds is judged by its course.
    if stage.role == Role::Precondition && stage.tracked.is_empty() && stage.steps.len() == 1 && rounds == 1 {
        let what = "requests, over the last fifth of its course".into();
        listener.write(Line::Verdict(verdict(what, Metric::Iops, 0, rule.course(&course))))?;
    }
    Ok(())
}

/// Whether a step is what must be steady.
fn is_of(tracked: &Tracked, step: &StepPlan) -> bool {
    step.phase.loads.first().is_some_and(|load| super::combine::is_tracked(tracked, load))
}

fn step_name(stage: &StagePlan, step: &StepPlan, round: Option<u32>) -> String {
    let mut name = stage.name.clone();
    if let Some(round) = round {
        name.push_str(&format!("/round-{round}"));
    }
    if !step.label.is_empty() {
        name.push('/');
        name.push_str(&step.label);
    }
    name
}

/// A seed for each step, far from all others.
fn seed(part: u64, number: u32) -> u64 {
    SplitMix64::seed_from_u64(part ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64()
}

#[allow(clippy::too_many_arguments)]
fn record(
    part: &Part,
    attempt: u32,
    number: u32,
    name: String,
    stage: &StagePlan,
    step: &StepPlan,
    round: Option<u32>,
    outcome: Outcome,
) -> Step {
    let mut point = step.point.clone();
    let (all, read) = (&outcome.total.all, &outcome.total.read);
    if point.trace.is_some() && all.requests > 0 {
        point.read_percent = (read.requests as f64 / all.requests as f64 * 1000.0).round() / 10.0;
    }
    Step {
        part: part.plan.part.clone(),
        attempt,
        number,
        step: name,
        stage: stage.name.clone(),
        role: stage.role,
        round,
        point,
        loop_kind: outcome.loop_kind,
        from_seconds: outcome.from_seconds,
        seconds: outcome.seconds,
        total: outcome.total,
        outstanding: outcome.outstanding,
        not_started: outcome.not_started,
        device_use: outcome.device_use,
        cpu_us_per_io: outcome.cpu_us_per_io,
        notes: outcome.notes,
        cells: outcome.cells,
        series: outcome.series,
    }
}
