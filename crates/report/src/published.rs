//! Which published figure stands beside which measured one.

use lab::protocol::Metric;
use lab::published::Row;
use lab::run::{PartResults, Step};

use crate::ReportError;
use crate::metric::base;
use crate::view::View;

/// A published figure for a figure of a test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Published {
    pub(crate) row: Row,
    pub(crate) metric: Metric,
    /// In base units.
    pub(crate) value: f64,
    /// Which part of the test it is of.
    pub(crate) when: When,
    /// Stages of the test that it may be of.
    stages: Vec<String>,
}

/// Which part of a test a published figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// The beginning of preconditioning.
    Burst,
    /// The end of preconditioning.
    Steady,
    /// What is measured.
    Measured,
}

/// All rows that come with the program.
pub(crate) fn rows() -> Result<Vec<Row>, ReportError> {
    lab::published::rows().map_err(|error| ReportError::Published(error.to_string()))
}

/// What was published of this test on the device of a part.
pub(crate) fn of_part(view: &View, part: &PartResults, rows: &[Row]) -> Vec<Published> {
    let (Some(source), Some(prefix)) = (view.run.protocol.published.as_ref(), view.test.published.as_ref()) else {
        return Vec::new();
    };
    let plan = &part.plan;
    let same = |published: &str, own: Option<&String>| published.is_empty() || own.is_none_or(|own| own == published);
    // Rows may call a device by another of its names.
    let is_of = |row: &Row| {
        row.device == plan.device || profile::find(&row.device).is_ok_and(|profile| profile.name == plan.device)
    };
    let stages = || view.test.stages.iter().filter(|stage| stage.published);
    let stages: Vec<String> = stages().map(|stage| stage.name().to_string()).collect();
    rows.iter()
        .filter(|row| row.source == *source.get_ref() && row.workload.starts_with(prefix.as_str()))
        .filter(|row| is_of(row) && same(&row.format, plan.format.as_ref()) && same(&row.array, plan.array.as_ref()))
        .filter(|row| driver_fits(row, part))
        .filter_map(|row| published(row, &stages))
        .collect()
}

/// Figures of another driver than the part's are not beside it.
fn driver_fits(row: &Row, part: &PartResults) -> bool {
    let Some(begin) = &part.begin else { return true };
    let named: Vec<(&str, usize)> = ["linux", "windows"]
        .into_iter()
        .filter_map(|name| row.note.to_lowercase().find(name).map(|at| (name, at)))
        .collect();
    let first = named.iter().min_by_key(|(_, at)| *at);
    first.is_none_or(|(name, _)| *name == begin.machine.driver)
}

fn published(row: &Row, stages: &[String]) -> Option<Published> {
    let (when, what) = match row.metric.split_once(' ') {
        Some(("burst", what)) => (When::Burst, what),
        Some(("steady", what)) => (When::Steady, what),
        _ => (When::Measured, row.metric.as_str()),
    };
    let metric = match (what, row.unit.as_str()) {
        ("transactions" | "iops", "IO/s") => Metric::Iops,
        ("throughput", "MB/s") => Metric::Megabytes,
        ("avg latency" | "latency", "ms") => Metric::Mean,
        ("max latency", "ms") => Metric::Max,
        ("latency stddev" | "stddev", "ms") => Metric::Deviation,
        _ => return None,
    };
    Some(Published { row: row.clone(), metric, value: row.value * base(metric), when, stages: stages.to_vec() })
}

impl Published {
    /// Whether it was measured with these settings.
    pub(crate) fn fits(&self, step: &Step) -> bool {
        let point = &step.point;
        let outstanding = self.row.outstanding.split(',').next().unwrap_or_default().trim();
        // A word such as "max" stands for the best of all loads.
        let load = outstanding.parse::<u32>().map_or(true, |number| number == point.outstanding());
        let size = match (self.row.block_kib.parse::<f64>(), point.size_bytes) {
            (Ok(kib), Some(bytes)) => (kib * 1024.0 - bytes as f64).abs() < 0.5,
            (Ok(_), None) => false,
            // A mix, or a size that was not printed: which test it is of says enough.
            (Err(_), _) => true,
        };
        let stage = self.stages.contains(&step.stage);
        stage && load && size && (self.row.read_pct - point.read_percent).abs() < 0.5
    }

    /// Whether it is the best of several loads.
    pub(crate) fn is_best(&self) -> bool {
        self.row.outstanding.contains("max")
    }
}
