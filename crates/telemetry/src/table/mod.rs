//! The one table of what can be told about a device and the service.
//!
//! A row says what a figure is called, its unit, where it comes from, what it means and how to read it. All else derives from the rows:
//! the API's JSON and its description, `vsl status` with `--field` and `--fields`, the columns of `vsl top`, the history's columns, the
//! metrics that alert rules may name, Prometheus, the console's charts, the Grafana dashboard and the tables in docs/.

mod kinds;
pub(crate) mod moment;
mod rows;

use serde_json::{Map, Value};

use device::{Figures, Status};

pub use kinds::{Of, OverTime, Source, Unit};
pub use moment::Moment;
pub use rows::{CHARTS, TABLE};

/// How a field of a device is read.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// From the figures.
    Figures(fn(&Figures) -> Value),
    /// From the lists and words beside them.
    Status(fn(&Status) -> Value),
    /// The service says it.
    Service,
}

/// How a metric's second is read.
#[derive(Clone, Copy, Debug)]
enum Second {
    /// As the field of the same row is.
    Field,
    /// From what happened in the second.
    Moment(fn(&Moment) -> Option<f64>),
    /// A percentile of the latencies of reads, writes or flushes, by number.
    Latency(usize, f64),
    /// The service says it.
    Service,
}

/// A line of a chart of the console's live page, and of the dashboard's panel of the same title.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The chart's title.
    pub chart: &'static str,
    /// What the line is called there.
    pub label: &'static str,
    /// Which of the theme's colours.
    pub tone: u8,
    /// A limit rather than something measured.
    pub limit: bool,
}

/// A chart.
#[derive(Clone, Copy, Debug)]
pub struct Chart {
    /// Its title, which is its name in [`Line::chart`].
    pub title: &'static str,
    /// Its axis' unit.
    pub unit: Unit,
    /// Its axis is logarithmic.
    pub logarithmic: bool,
    /// Its axis reaches at least so far; 0 where nothing is said.
    pub at_least: u32,
}

/// A column of `vsl top`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// What stands above it.
    pub head: &'static str,
    /// Characters.
    pub width: usize,
    /// Digits behind the point.
    pub digits: usize,
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its key in JSON, and its column in the history.
    pub name: &'static str,
    /// What stands in front of it in text.
    pub label: &'static str,
    /// How its value is read by people.
    pub unit: Unit,
    /// Where it comes from.
    pub source: Source,
    /// What it means.
    pub meaning: &'static str,
    /// `vsl status` shows it without being asked for everything.
    pub brief: bool,
    /// Text leaves it out where this field has a value.
    pub unless: Option<&'static str>,
    /// It is a field of a device.
    field: Option<Read>,
    /// It is a metric, of a device or of the service.
    pub of: Option<Of>,
    second: Second,
    /// What a longer span's value is made of.
    pub over_time: OverTime,
    /// A counter's name for Prometheus, behind `openvsl_device_`.
    pub counter: Option<&'static str>,
    /// Where it is drawn.
    pub line: Option<Line>,
    /// Its column in `vsl top`.
    pub column: Option<Column>,
}

const fn row(name: &'static str, label: &'static str, unit: Unit, meaning: &'static str) -> Row {
    Row {
        name,
        label,
        unit,
        source: Source::Measured,
        meaning,
        brief: false,
        unless: None,
        field: None,
        of: None,
        second: Second::Field,
        over_time: OverTime::Last,
        counter: None,
        line: None,
        column: None,
    }
}

/// A field that the service says.
const fn field(name: &'static str, label: &'static str, unit: Unit, meaning: &'static str) -> Row {
    Row { field: Some(Read::Service), ..row(name, label, unit, meaning) }
}

/// A field that somebody chose.
const fn set(name: &'static str, label: &'static str, unit: Unit, meaning: &'static str) -> Row {
    Row { source: Source::Set, ..field(name, label, unit, meaning) }
}

/// A metric of a device, read from what happened in a second.
const fn metric(
    name: &'static str,
    label: &'static str,
    unit: Unit,
    meaning: &'static str,
    second: fn(&Moment) -> Option<f64>,
) -> Row {
    let second = Second::Moment(second);
    Row { of: Some(Of::Device), second, over_time: OverTime::Mean, ..row(name, label, unit, meaning) }
}

/// A percentile of latencies.
const fn latency(name: &'static str, label: &'static str, sort: usize, quantile: f64) -> Row {
    let row = row(name, label, Unit::Microseconds, rows::REACH);
    let second = Second::Latency(sort, quantile);
    Row { of: Some(Of::Device), second, over_time: OverTime::Percentile, ..row }
}

/// A metric of the service.
const fn service(
    name: &'static str,
    label: &'static str,
    unit: Unit,
    over_time: OverTime,
    meaning: &'static str,
) -> Row {
    Row { of: Some(Of::Service), second: Second::Service, over_time, ..row(name, label, unit, meaning) }
}

impl Row {
    const fn brief(self) -> Row {
        Row { brief: true, ..self }
    }

    /// Of a device that has another field, text shows that one in its place.
    const fn unless(self, name: &'static str) -> Row {
        Row { unless: Some(name), ..self }
    }

    const fn modelled(self) -> Row {
        Row { source: Source::Modelled, ..self }
    }

    const fn read(self, read: fn(&Figures) -> Value) -> Row {
        Row { field: Some(Read::Figures(read)), ..self }
    }

    const fn words(self, read: fn(&Status) -> Value) -> Row {
        Row { field: Some(Read::Status(read)), ..self }
    }

    /// A field whose history is kept.
    const fn kept(self, over_time: OverTime) -> Row {
        Row { of: Some(Of::Device), over_time, ..self }
    }

    const fn over(self, over_time: OverTime) -> Row {
        Row { over_time, ..self }
    }

    const fn counter(self, name: &'static str) -> Row {
        Row { counter: Some(name), ..self }
    }

    const fn line(self, chart: &'static str, label: &'static str, tone: u8) -> Row {
        Row { line: Some(Line { chart, label, tone, limit: false }), ..self }
    }

    const fn limit(self, chart: &'static str, label: &'static str, tone: u8) -> Row {
        Row { line: Some(Line { chart, label, tone, limit: true }), ..self }
    }

    const fn column(self, head: &'static str, width: usize, digits: usize) -> Row {
        Row { column: Some(Column { head, width, digits }), ..self }
    }

    /// What it is about.
    pub fn group(&self) -> &'static str {
        let holds = |rows: &[Row]| rows.iter().any(|row| row.name == self.name && row.field.is_some());
        TABLE.iter().find(|(_, rows)| holds(rows)).map_or("", |(group, _)| group)
    }

    /// The histogram and the quantile that it is the value of.
    pub(crate) fn quantile(&self) -> Option<(usize, f64)> {
        if let Second::Latency(sort, quantile) = self.second { Some((sort, quantile)) } else { None }
    }

    /// Its value in a second of a device. What is not known, or no number, is nothing.
    pub(crate) fn second(&self, moment: &Moment) -> Option<f64> {
        let value = match (self.second, self.field) {
            (Second::Moment(read), _) => read(moment),
            (Second::Field, Some(Read::Figures(read))) => match read(moment.now) {
                Value::Bool(on) => Some(f64::from(u8::from(on))),
                value => value.as_f64(),
            },
            _ => None,
        };
        value.filter(|value| value.is_finite())
    }

    /// Its name for Prometheus as a gauge, and by what its value is multiplied: base units, said at the end.
    pub fn prometheus(&self) -> (String, f64) {
        let scope = if self.of == Some(Of::Service) { "service" } else { "device" };
        let (stem, end, factor) = match self.unit {
            Unit::Microseconds => (self.name.trim_end_matches("_us"), "_seconds", 1e-6),
            Unit::Seconds => (self.name.trim_end_matches("_s"), "_seconds", 1.0),
            Unit::Percent => (self.name.trim_end_matches("_percent"), "_ratio", 0.01),
            Unit::BytesPerSecond => (self.name.trim_end_matches("_bytes_per_s"), "_bytes_per_second", 1.0),
            Unit::NanosecondsPerByte => (self.name.trim_end_matches("_ns_per_byte"), "_seconds_per_byte", 1e-9),
            Unit::Hours => (self.name.trim_end_matches("_hours"), "_seconds", 3600.0),
            Unit::Celsius => ("temperature", "_celsius", 1.0),
            Unit::Watts if self.name == "watts" => ("power", "_watts", 1.0),
            Unit::Watts => (self.name.trim_end_matches("_watts"), "_watts", 1.0),
            _ => (self.name, "", 1.0),
        };
        (format!("openvsl_{scope}_{stem}{end}"), factor)
    }
}

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().flat_map(|(_, rows)| *rows)
}

/// The fields of a device, in the order in which text shows them.
pub fn fields() -> impl Iterator<Item = &'static Row> {
    rows().filter(|row| row.field.is_some())
}

/// The field of a name.
pub fn find_field(name: &str) -> Option<&'static Row> {
    fields().find(|row| row.name == name)
}

/// Every metric.
pub fn metrics() -> impl Iterator<Item = &'static Row> {
    rows().filter(|row| row.of.is_some())
}

/// Those of devices, or of the service.
pub fn of(of: Of) -> impl Iterator<Item = &'static Row> {
    rows().filter(move |row| row.of == Some(of))
}

/// The metric of a name.
pub fn find(kind: Of, name: &str) -> Option<&'static Row> {
    of(kind).find(|row| row.name == name)
}

/// The fields that an attached device says itself, as JSON. What is not known is left out.
pub fn values(status: &Status) -> Map<String, Value> {
    let read = |row: &'static Row| match row.field? {
        Read::Figures(read) => Some((row.name.to_string(), read(status))),
        Read::Status(read) => Some((row.name.to_string(), read(status))),
        Read::Service => None,
    };
    rows().filter_map(read).filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_single() {
        let twice = |all: &[&Row], row: &Row| all.iter().filter(|other| other.name == row.name).count() > 1;
        for all in [fields().collect::<Vec<_>>(), of(Of::Device).collect(), of(Of::Service).collect()] {
            for row in &all {
                let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
                assert!(row.name.bytes().all(plain) && !twice(&all, row), "{row:?}");
            }
        }
        assert!(find(Of::Service, "read_iops").is_none() && find(Of::Device, "read_iops").is_some());
        assert_eq!(find_field("writes").map(|row| row.group()), Some("Requests"));
        assert!(rows().all(|row| row.line.is_none_or(|line| CHARTS.iter().any(|chart| chart.title == line.chart))));
    }

    #[test]
    fn prometheus_has_base_units_and_each_name_once() {
        let name = |of, name| find(of, name).expect(name).prometheus();
        assert_eq!(name(Of::Device, "read_p99_us"), ("openvsl_device_read_p99_seconds".into(), 1e-6));
        assert_eq!(name(Of::Device, "store_left_hours"), ("openvsl_device_store_left_seconds".into(), 3600.0));
        assert_eq!(name(Of::Device, "objects_behind_s").0, "openvsl_device_objects_behind_seconds");
        assert_eq!(name(Of::Device, "celsius").0, "openvsl_device_temperature_celsius");
        assert_eq!(name(Of::Device, "watts").0, "openvsl_device_power_watts");
        assert_eq!(name(Of::Device, "power_limit_watts").0, "openvsl_device_power_limit_watts");
        assert_eq!(name(Of::Device, "free_percent").0, "openvsl_device_free_ratio");
        assert_eq!(name(Of::Device, "write_bytes_per_s").0, "openvsl_device_write_bytes_per_second");
        assert_eq!(name(Of::Service, "cpu_percent").0, "openvsl_service_cpu_ratio");
        let mut names: Vec<String> = metrics().map(|row| row.prometheus().0).collect();
        names.extend(rows().filter_map(|row| row.counter).map(|name| format!("openvsl_device_{name}")));
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "two series have one name");
    }
}
