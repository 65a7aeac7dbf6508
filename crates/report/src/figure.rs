//! One figure of one point of a test, over the rounds that count and over repeats.

use lab::protocol::{Metric, Role};
use lab::run::{PartResults, Step};
use lab::stats::{Mean, Pool};

use crate::ReportError;
use crate::metric::base;
use crate::view::{Variant, distinct, key};

/// What is reported of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    /// In base units.
    pub(crate) value: f64,
    /// Half the width of its interval with 95 % confidence, where there are repeats.
    pub(crate) half_width: Option<f64>,
}

/// A point of a variant: a step in all the rounds that count, in each repeat.
pub(crate) struct Place<'a> {
    /// One of its steps, for its settings.
    pub(crate) step: &'a Step,
    rounds: Vec<Vec<&'a Step>>,
}

/// The points of a stage, in order; of those that measure where none is named.
pub(crate) fn places<'a>(variant: &Variant<'a>, stage: Option<&str>) -> Vec<Place<'a>> {
    places_of(variant, stage, false)
}

/// The same with every round as a point of its own: a device's course, where nothing is judged to be steady.
pub(crate) fn course<'a>(variant: &Variant<'a>, stage: Option<&str>) -> Vec<Place<'a>> {
    places_of(variant, stage, true)
}

fn places_of<'a>(variant: &Variant<'a>, stage: Option<&str>, each_round: bool) -> Vec<Place<'a>> {
    let wanted = |step: &&Step| stage.map_or(step.role == Role::Measure, |name| step.stage == name);
    // Where each point has a part of its own, steps of the same name are different points.
    let steps = |parts: &[&'a PartResults]| -> Vec<(String, &'a Step)> {
        let own = |part: &&'a PartResults| {
            let (part, point) = (*part, part.plan.point.clone().unwrap_or_default());
            let steps = part.steps.iter().filter(wanted).filter(move |step| each_round || counts(part, step));
            let name = move |step: &Step| if each_round { step.step.clone() } else { key(step) };
            steps.map(move |step| (format!("{point}/{}", name(step)), step)).collect::<Vec<_>>()
        };
        parts.iter().flat_map(own).collect()
    };
    let repeats: Vec<Vec<(String, &'a Step)>> = variant.repeats.iter().map(|parts| steps(parts)).collect();
    let keys = distinct(repeats.iter().flatten().map(|(key, _)| key.clone()));
    let place = |wanted: &String| {
        let rounds: Vec<Vec<&Step>> = repeats
            .iter()
            .map(|steps| steps.iter().filter(|(key, _)| key == wanted).map(|(_, step)| *step).collect::<Vec<_>>())
            .filter(|steps: &Vec<&Step>| !steps.is_empty())
            .collect();
        let step = *rounds.first()?.last()?;
        Some(Place { step, rounds })
    };
    keys.iter().filter_map(place).collect()
}

/// Whether a step's round counts: those of the window that was judged, or the last.
fn counts(part: &PartResults, step: &Step) -> bool {
    let Some(round) = step.round else { return true };
    let window = part.verdicts.iter().filter(|verdict| verdict.stage == step.stage && verdict.rounds > 0);
    match window.filter_map(|verdict| verdict.window.as_ref()).next_back() {
        Some(window) => round >= window.first_round,
        None => part.last_round(&step.stage) == Some(round),
    }
}

impl Place<'_> {
    /// A figure; `None` where it was not measured or the samples cannot carry it.
    pub(crate) fn figure(&self, metric: Metric) -> Result<Option<Figure>, ReportError> {
        let mut values = Vec::new();
        for steps in &self.rounds {
            values.extend(of_rounds(steps, metric)?);
        }
        Ok(Mean::of(&values).map(|mean| Figure {
            value: mean.mean * base(metric),
            half_width: mean.half_width().map(|half| half * base(metric)),
        }))
    }

    /// All requests of the first repeat.
    pub(crate) fn pool(&self) -> Result<Pool, ReportError> {
        pool(&self.rounds[0])
    }
}

/// Rates are means of rounds; latencies are those of all their requests together, for a mean of percentiles is none.
fn of_rounds(steps: &[&Step], metric: Metric) -> Result<Option<f64>, ReportError> {
    let percent = match metric {
        Metric::P50 => Some(50.0),
        Metric::P99 => Some(99.0),
        Metric::P999 => Some(99.9),
        Metric::P9999 => Some(99.99),
        Metric::P99999 => Some(99.999),
        _ => None,
    };
    let latency = percent.is_some() || matches!(metric, Metric::Mean | Metric::Max | Metric::Deviation);
    if steps.len() > 1 && latency {
        let latency = pool(steps)?.latency();
        let some = latency.samples > 0;
        let ns = match (metric, percent) {
            (_, Some(percent)) => latency.percentile(percent).map(|ns| ns as f64),
            (Metric::Max, _) => some.then_some(latency.max_ns as f64),
            (Metric::Deviation, _) => some.then_some(latency.stddev_ns),
            _ => some.then_some(latency.mean_ns),
        };
        return Ok(ns.map(|ns| ns / 1e6));
    }
    let values: Vec<f64> = steps.iter().filter_map(|step| step.metric(metric)).collect();
    Ok(Mean::of(&values).map(|mean| mean.mean))
}

/// The requests of several steps.
pub(crate) fn pool(steps: &[&Step]) -> Result<Pool, ReportError> {
    let mut pool = Pool::default();
    for step in steps {
        for cell in &step.cells {
            pool.add(cell).map_err(|problem| damaged(step, problem))?;
        }
    }
    Ok(pool)
}

/// A histogram of this step cannot be read.
pub(crate) fn damaged(step: &Step, problem: lab::stats::Damaged) -> ReportError {
    ReportError::Damaged { part: step.part.clone(), step: step.step.clone(), problem }
}
