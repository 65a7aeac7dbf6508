//! Figures as charts show them: in base units, with a name for headings and one for axes.

use chart::{Axis, Unit};
use lab::protocol::Metric;

/// Whether it is of the latency of requests.
fn is_latency(metric: Metric) -> bool {
    use Metric::{Deviation, Max, Mean, P50, P99, P999, P9999, P99999};
    matches!(metric, Mean | Max | Deviation | P50 | P99 | P999 | P9999 | P99999)
}

/// From the unit of [`Metric::label`] to the base unit.
pub(crate) fn base(metric: Metric) -> f64 {
    match metric {
        Metric::Megabytes => 1e6,
        Metric::CpuPerIo => 1e-6,
        latency if is_latency(latency) => 1e-3,
        _ => 1.0,
    }
}

/// The unit as axes print it.
pub(crate) fn unit(metric: Metric) -> Unit {
    match metric {
        Metric::Iops | Metric::ReadIops | Metric::WriteIops => Unit::count("IO/s"),
        Metric::Megabytes => Unit::BytesPerSecond,
        Metric::Power => Unit::count("W"),
        Metric::Temperature => Unit::count("°C"),
        time if is_latency(time) || time == Metric::CpuPerIo => Unit::Seconds,
        _ => Unit::Plain,
    }
}

/// Its name with a capital letter.
pub(crate) fn name(metric: Metric) -> String {
    capital(metric.label().0)
}

/// An axis for it.
pub(crate) fn axis(metric: Metric) -> Axis {
    Axis::new(name(metric), unit(metric))
}

/// What one learns from it, to follow "How".
pub(crate) fn asks(metric: Metric) -> &'static str {
    match metric {
        Metric::Iops => "many requests are served a second",
        Metric::ReadIops => "many reads are served a second",
        Metric::WriteIops => "many writes are served a second",
        Metric::Megabytes => "many bytes are moved a second",
        Metric::Mean => "long a request takes on average",
        Metric::Max => "long the slowest request takes",
        Metric::Deviation => "much latencies differ from their mean",
        Metric::P50 => "long the faster half of requests takes at most",
        Metric::P99 => "long all but the slowest 1 % of requests take at most",
        Metric::P999 => "long all but the slowest 0.1 % of requests take at most",
        Metric::P9999 => "long all but the slowest 0.01 % of requests take at most",
        Metric::P99999 => "long all but the slowest 0.001 % of requests take at most",
        Metric::WriteAmplification => "many bytes are written to flash for each byte of the host",
        Metric::CpuPerIo => "much processor time of the host a request takes",
        Metric::Power => "much power the device takes",
        Metric::Temperature => "warm the device is",
    }
}

/// Latency or time: better if it is less.
pub(crate) fn less_is_better(metric: Metric) -> bool {
    unit(metric) == Unit::Seconds || matches!(metric, Metric::WriteAmplification | Metric::Power | Metric::Temperature)
}

/// The first letter as a capital.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
