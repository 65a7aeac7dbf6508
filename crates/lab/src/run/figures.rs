//! Figures of steps and intervals, by name.

use super::record::{Interval, Step};
use crate::protocol::Metric;
use crate::results::{DeviceUse, Flow};
use crate::stats::{Cell, Damaged, Kind, Latency, Pool};

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

impl Step {
    /// A figure, in the unit of [`Metric::label`]; `None` where it was not measured, or the samples cannot carry it.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let all = &self.total.all;
        let rate = |flow: &Flow| flow.iops;
        match metric {
            Metric::Iops => Some(rate(all)),
            Metric::ReadIops => Some(rate(&self.total.read)),
            Metric::WriteIops => Some(rate(&self.total.write)),
            Metric::Megabytes => Some(all.bytes_per_second / 1e6),
            Metric::WriteAmplification => {
                self.device_use.as_ref().and_then(|used| used.write_amplification).map(|it| it.total)
            }
            Metric::CpuPerIo => self.cpu_us_per_io,
            Metric::Power => self.device_use.as_ref().filter(|used| used.joules > 0.0).map(|used| used.watts),
            Metric::Temperature => self.device_use.as_ref().and_then(|used: &DeviceUse| used.celsius),
            latency => of_latency(latency, &all.latency),
        }
    }

    /// Requests of a kind, or all of them, of all sizes.
    ///
    /// # Errors
    /// A histogram is damaged.
    pub fn pool(&self, kind: Option<Kind>) -> Result<Pool, Damaged> {
        pooled(&self.cells, kind)
    }
}

impl Interval {
    /// Requests of a kind, or all of them, of all sizes.
    ///
    /// # Errors
    /// A histogram is damaged.
    pub fn pool(&self, kind: Option<Kind>) -> Result<Pool, Damaged> {
        pooled(&self.cells, kind)
    }

    /// Requests a second, of a kind or all of them.
    pub fn iops(&self, kind: Option<Kind>) -> f64 {
        if self.seconds > 0.0 { self.requests(kind) as f64 / self.seconds } else { 0.0 }
    }

    /// Requests of a kind, or all of them.
    pub fn requests(&self, kind: Option<Kind>) -> u64 {
        self.cells.iter().filter(|cell| kind.is_none_or(|kind| cell.op == kind)).map(|cell| cell.requests).sum()
    }

    /// A figure, in the unit of [`Metric::label`]; `None` where it was not measured, or the samples cannot carry it.
    ///
    /// # Errors
    /// A histogram is damaged.
    pub fn metric(&self, metric: Metric) -> Result<Option<f64>, Damaged> {
        let seconds = self.seconds;
        let bytes: u64 = self.cells.iter().map(|cell| cell.bytes).sum();
        Ok(match metric {
            Metric::Iops => Some(self.iops(None)),
            Metric::ReadIops => Some(self.iops(Some(Kind::Read))),
            Metric::WriteIops => Some(self.iops(Some(Kind::Write))),
            Metric::Megabytes => (seconds > 0.0).then(|| bytes as f64 / seconds / 1e6),
            Metric::WriteAmplification => self
                .device
                .filter(|device| device.host_written_bytes > 0 && device.media_written_bytes > 0)
                .map(|device| device.media_written_bytes as f64 / device.host_written_bytes as f64),
            Metric::CpuPerIo => None,
            Metric::Power => {
                self.device.filter(|device| device.joules > 0.0 && seconds > 0.0).map(|device| device.joules / seconds)
            }
            Metric::Temperature => self.device.and_then(|device| device.celsius),
            latency => of_latency(latency, &self.pool(None)?.latency()),
        })
    }
}

fn pooled(cells: &[Cell], kind: Option<Kind>) -> Result<Pool, Damaged> {
    Pool::of(cells.iter().filter(|cell| kind.is_none_or(|kind| cell.op == kind)))
}

fn of_latency(metric: Metric, latency: &Latency) -> Option<f64> {
    let percentile = |percent: f64| latency.percentile(percent).map(|ns| ns as f64 / MS);
    let some = latency.samples > 0;
    match metric {
        Metric::Mean => some.then_some(latency.mean_ns / MS),
        Metric::Max => some.then_some(latency.max_ns as f64 / MS),
        Metric::Deviation => some.then_some(latency.stddev_ns / MS),
        Metric::P50 => percentile(50.0),
        Metric::P99 => percentile(99.0),
        Metric::P999 => percentile(99.9),
        Metric::P9999 => percentile(99.99),
        Metric::P99999 => percentile(99.999),
        _ => None,
    }
}
