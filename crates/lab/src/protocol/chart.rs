//! What is charted of a run, by name: reports know how.

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// A chart that a protocol asks for. There is one for each device, format and arrangement of a run, or one for all of them, as its kind
/// and the report see fit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Its heading.
    pub title: Spanned<String>,
    /// What is drawn.
    pub kind: ChartKind,
    /// Tests whose steps are drawn; all where none is named.
    #[serde(default)]
    pub tests: Vec<String>,
    /// The stage whose steps are drawn; those that measure where none is named.
    #[serde(default)]
    pub stage: Option<String>,
    /// What is drawn of them.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Device, format, array or driver that tables compare others with, each with what differs in nothing else.
    #[serde(default)]
    pub over: Option<String>,
}

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Figures over time.
    OverTime,
    /// Figures over the rounds of a stage, up to where they are steady.
    Convergence,
    /// The window of rounds in which a stage was steady, with its fit and bounds.
    SteadyWindow,
    /// Figures over threads times depth.
    AgainstLoad,
    /// Latency over requests a second, one point for each load.
    LatencyAgainstThroughput,
    /// A figure for each size.
    BySize,
    /// A figure as a field of sizes by mixes.
    HeatMap,
    /// Latencies over time as a field of buckets.
    LatencyHeatMap,
    /// How many requests took how long.
    Histogram,
    /// Which share of requests took longer, both axes logarithmic.
    Exceedance,
    /// Figures in rows and columns.
    Table,
    /// The same as quotients over what [`Chart::over`] names.
    Quotients,
    /// One bar for each device, format and arrangement.
    Bars,
}

/// A figure of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Requests a second.
    Iops,
    /// Reads a second.
    ReadIops,
    /// Writes a second.
    WriteIops,
    /// Millions of bytes a second.
    Megabytes,
    /// Mean latency.
    Mean,
    /// Longest latency.
    Max,
    /// Standard deviation of latency.
    Deviation,
    /// Median of latency.
    P50,
    /// 99th percentile of latency.
    P99,
    /// 99.9th percentile of latency.
    P999,
    /// 99.99th percentile of latency.
    P9999,
    /// 99.999th percentile of latency.
    P99999,
    /// Bytes on media for each byte of the host.
    WriteAmplification,
    /// Processor time of the host for each request.
    CpuPerIo,
    /// Watts.
    Power,
    /// Degrees Celsius.
    Temperature,
}

impl Metric {
    /// Its name and unit.
    pub fn label(self) -> (&'static str, &'static str) {
        match self {
            Metric::Iops => ("requests", "IO/s"),
            Metric::ReadIops => ("reads", "IO/s"),
            Metric::WriteIops => ("writes", "IO/s"),
            Metric::Megabytes => ("throughput", "MB/s"),
            Metric::Mean => ("mean latency", "ms"),
            Metric::Max => ("maximum latency", "ms"),
            Metric::Deviation => ("standard deviation of latency", "ms"),
            Metric::P50 => ("median latency", "ms"),
            Metric::P99 => ("p99 latency", "ms"),
            Metric::P999 => ("p99.9 latency", "ms"),
            Metric::P9999 => ("p99.99 latency", "ms"),
            Metric::P99999 => ("p99.999 latency", "ms"),
            Metric::WriteAmplification => ("write amplification", ""),
            Metric::CpuPerIo => ("processor time of a request", "µs"),
            Metric::Power => ("power", "W"),
            Metric::Temperature => ("temperature", "°C"),
        }
    }
}
