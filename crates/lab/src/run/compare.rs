//! Runs side by side.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::record::Step;
use super::results::{PartResults, Run};
use crate::protocol::{Metric, Role};
use crate::stats::{Difference, Mean};

/// Figures that are compared.
const METRICS: [Metric; 5] = [Metric::Iops, Metric::Megabytes, Metric::Mean, Metric::P99, Metric::WriteAmplification];

/// One figure of one step in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The part without what differs between the runs, and the step.
    pub what: String,
    /// Which figure.
    pub metric: Metric,
    /// What each run has of it.
    pub runs: Vec<Option<Figure>>,
    /// How each run but the first differs from the first, in the same order.
    pub verdicts: Vec<Verdict>,
}

/// A figure over the repeats of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its mean.
    pub mean: f64,
    /// Half the width of its interval with 95 % confidence, where there are repeats.
    pub half_width: Option<f64>,
    /// How often it was measured.
    pub repeats: usize,
}

/// How a figure differs from that of the first run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// By so many per cent, more than noise explains.
    Differs(f64),
    /// By so many per cent, which noise explains.
    Noise(f64),
    /// By so many per cent; there is only one measurement on a side, so nothing is known of the noise.
    Unknown(f64),
    /// The figures are the same.
    Same,
    /// One of the runs does not have it.
    Missing,
}

/// Sets runs side by side, the first being what the others are compared with.
pub fn compare(runs: &[Run]) -> Vec<Row> {
    let tables: Vec<BTreeMap<Key, BTreeMap<usize, Vec<f64>>>> = {
        let names: Vec<Names> = runs.iter().map(Names::of).collect();
        let differing = Names::differing(&names);
        runs.iter().map(|run| table(run, &differing)).collect()
    };
    let mut keys: Vec<&Key> = tables.iter().flat_map(BTreeMap::keys).collect();
    keys.sort();
    keys.dedup();
    let mut rows = Vec::new();
    for key in keys {
        for (at, metric) in METRICS.into_iter().enumerate() {
            let means: Vec<Option<Mean>> = tables
                .iter()
                .map(|table| table.get(key).and_then(|metrics| metrics.get(&at)).and_then(|values| Mean::of(values)))
                .collect();
            if means.iter().all(Option::is_none) {
                continue;
            }
            let figure = |mean: &Option<Mean>| {
                mean.map(|mean| Figure { mean: mean.mean, half_width: mean.half_width(), repeats: mean.count })
            };
            rows.push(Row {
                what: key.text(),
                metric,
                runs: means.iter().map(figure).collect(),
                verdicts: means[1..].iter().map(|other| verdict(means[0].as_ref(), other.as_ref())).collect(),
            });
        }
    }
    rows
}

fn verdict(one: Option<&Mean>, other: Option<&Mean>) -> Verdict {
    let (Some(one), Some(other)) = (one, other) else { return Verdict::Missing };
    if one.mean == other.mean {
        return Verdict::Same;
    }
    let percent = (other.mean / one.mean - 1.0) * 100.0;
    match Difference::between(one, other) {
        None => Verdict::Unknown(percent),
        Some(difference) if difference.is_real() => Verdict::Differs(percent),
        Some(_) => Verdict::Noise(percent),
    }
}

/// What identifies a figure in every run: the order is that of the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    part: usize,
    test: String,
    setup: String,
    number: u32,
    step: String,
}

impl Key {
    fn text(&self) -> String {
        let parts = [&self.test, &self.setup, &self.step];
        parts.into_iter().filter(|text| !text.is_empty()).map(String::as_str).collect::<Vec<_>>().join("/")
    }
}

/// The devices, formats, arrangements and drivers of a run.
struct Names([Vec<String>; 4]);

impl Names {
    fn of(run: &Run) -> Names {
        let plans = || run.parts.iter().map(|part| &part.plan);
        let list = |mut all: Vec<String>| {
            all.sort();
            all.dedup();
            all
        };
        Names([
            list(plans().map(|plan| plan.device.clone()).collect()),
            list(plans().filter_map(|plan| plan.format.clone()).collect()),
            list(plans().filter_map(|plan| plan.array.clone()).collect()),
            list(plans().filter_map(|plan| plan.driver.clone()).collect()),
        ])
    }

    /// What the runs differ in while each has but one of it: that is what is being compared, and no part of a figure's identity.
    fn differing(all: &[Names]) -> [bool; 4] {
        std::array::from_fn(|at| {
            all.iter().all(|names| names.0[at].len() <= 1) && all.iter().any(|names| names.0[at] != all[0].0[at])
        })
    }
}

fn table(run: &Run, differing: &[bool; 4]) -> BTreeMap<Key, BTreeMap<usize, Vec<f64>>> {
    let mut table: BTreeMap<Key, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
    for part in &run.parts {
        for step in shown(part) {
            let plan = &part.plan;
            let setup = [Some(&plan.device), plan.format.as_ref(), plan.array.as_ref(), plan.driver.as_ref()];
            let setup = setup.into_iter().zip(differing).filter(|(_, differs)| !**differs).filter_map(|(name, _)| name);
            let mut setup: Vec<&str> = setup.map(String::as_str).collect();
            setup.extend(plan.write_cache.map(|on| if on { "cache-on" } else { "cache-off" }));
            setup.extend(plan.cache.as_deref());
            setup.extend(plan.point.as_deref());
            let test = run.protocol.tests.iter().position(|test| test.name() == plan.test).unwrap_or(usize::MAX);
            let key = Key {
                part: test,
                test: plan.test.clone(),
                setup: setup.join("/"),
                number: if step.round.is_some() { 0 } else { step.number },
                step: step_key(step),
            };
            let metrics = table.entry(key).or_default();
            for (at, metric) in METRICS.into_iter().enumerate() {
                metrics.entry(at).or_default().extend(step.metric(metric));
            }
        }
    }
    table
}

/// What of a part is compared: what was measured; of rounds the steady window, or the last where there is none.
pub(super) fn shown(part: &PartResults) -> Vec<&Step> {
    let measured = part.steps.iter().filter(|step| step.role == Role::Measure);
    measured.filter(|step| step.round.is_none() || step.round == part.last_round(&step.stage)).collect()
}

/// The step's name without its round: runs may be steady after different numbers of them.
fn step_key(step: &Step) -> String {
    match step.round {
        None => step.step.clone(),
        Some(round) => step.step.replacen(&format!("/round-{round}"), "", 1),
    }
}

/// The comparison as a table: with `all` every figure, otherwise those that differ by more than noise, or of whose noise nothing is known.
pub fn compare_text(names: &[String], rows: &[Row], all: bool) -> String {
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let _ = writeln!(text, "{}: {name}", letter(at));
    }
    let differs = |row: &&Row| row.verdicts.iter().any(|verdict| !matches!(verdict, Verdict::Same | Verdict::Noise(_)));
    let shown: Vec<&Row> = rows.iter().filter(|row| all || differs(row)).collect();
    let mut last = "";
    for row in &shown {
        if row.what != last {
            let _ = writeln!(text, "\n{}", row.what);
            last = &row.what;
        }
        let (label, unit) = row.metric.label();
        let _ = write!(text, "  {:<20} {:<5}", label, unit);
        for (at, figure) in row.runs.iter().enumerate() {
            let value = figure.as_ref().map_or_else(|| "-".into(), figure_text);
            let _ = write!(text, "  {} {value:<22}", letter(at));
        }
        let verdicts: Vec<String> = row.verdicts.iter().enumerate().map(|(at, it)| verdict_text(at + 1, it)).collect();
        let _ = writeln!(text, "  {}", verdicts.join(", "));
    }
    let count =
        |wanted: fn(&Verdict) -> bool| rows.iter().flat_map(|row| &row.verdicts).filter(|it| wanted(it)).count();
    let _ = writeln!(
        text,
        "\n{} figures: {} differ by more than noise, {} within noise, {} the same, {} with too few repeats to say, {} missing on a side",
        count(|_| true),
        count(|it| matches!(it, Verdict::Differs(_))),
        count(|it| matches!(it, Verdict::Noise(_))),
        count(|it| matches!(it, Verdict::Same)),
        count(|it| matches!(it, Verdict::Unknown(_))),
        count(|it| matches!(it, Verdict::Missing)),
    );
    if rows.iter().flat_map(|row| &row.verdicts).any(|it| matches!(it, Verdict::Unknown(_))) {
        text.push_str("noise is known of runs with --repeat 2 or more; confidence is 95 %\n");
    }
    text
}

/// One run's means over its repeats, with their 95 % confidence intervals.
pub(super) fn repeats_text(rows: &[Row], repeats: u32) -> String {
    let mut text = format!("\nover {repeats} repeats, with 95 % confidence:\n");
    for row in rows {
        let (label, unit) = row.metric.label();
        if let Some(Some(figure)) = row.runs.first() {
            let _ = writeln!(text, "  {:<60} {label:<20} {} {unit}", row.what, figure_text(figure));
        }
    }
    text
}

fn letter(at: usize) -> char {
    char::from(b'A' + (at % 26) as u8)
}

fn figure_text(figure: &Figure) -> String {
    let number = |value: f64| match value.abs() {
        value_abs if value_abs >= 1000.0 => format!("{value:.0}"),
        value_abs if value_abs >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    match figure.half_width {
        None => number(figure.mean),
        Some(half) => format!("{} ± {}", number(figure.mean), number(half)),
    }
}

fn verdict_text(at: usize, verdict: &Verdict) -> String {
    let letter = letter(at);
    match verdict {
        Verdict::Differs(percent) => format!("{letter} {percent:+.1} %: differs"),
        Verdict::Noise(percent) => format!("{letter} {percent:+.1} %: noise"),
        Verdict::Unknown(percent) => format!("{letter} {percent:+.1} %"),
        Verdict::Same => format!("{letter} the same"),
        Verdict::Missing => format!("{letter} missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_noise_explains_is_told_from_what_it_does_not() {
        let mean = |values: &[f64]| Mean::of(values);
        let one = mean(&[100.0, 101.0, 99.0]);
        assert!(
            matches!(verdict(one.as_ref(), mean(&[150.0, 151.0, 149.0]).as_ref()), Verdict::Differs(percent) if (percent - 50.0).abs() < 1e-9)
        );
        assert!(matches!(verdict(one.as_ref(), mean(&[100.5, 101.5, 99.0]).as_ref()), Verdict::Noise(_)));
        assert!(matches!(verdict(one.as_ref(), mean(&[150.0]).as_ref()), Verdict::Unknown(_)));
        assert_eq!(verdict(one.as_ref(), None), Verdict::Missing);
        assert_eq!(verdict(one.as_ref(), one.as_ref()), Verdict::Same);
    }
}
