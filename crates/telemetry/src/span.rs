//! Seconds added up to a minute or an hour.

use std::collections::BTreeMap;

use crate::second::{Latencies, Second, Values};
use crate::table::{self, Of, OverTime};

/// What a span came to, as it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// Seconds in it.
    pub seconds: u32,
    /// Its metrics.
    pub values: Values,
}

/// A minute or an hour in the making.
#[derive(Clone, Debug)]
pub struct Span {
    of: Of,
    /// When it began, seconds since 1970.
    pub at: u64,
    seconds: u32,
    /// Sum and number of those that a mean is made of.
    means: BTreeMap<&'static str, (f64, u32)>,
    others: Values,
    latencies: Latencies,
    appended: u64,
    host_written: u64,
    /// What is stored of it already, from before the service was last started.
    before: Option<Sum>,
}

impl Span {
    /// A span that begins at `at`. `before` is what is stored of it already.
    pub fn new(of: Of, at: u64, before: Option<Sum>) -> Span {
        Span {
            of,
            at,
            seconds: 0,
            means: BTreeMap::new(),
            others: Values::new(),
            latencies: Latencies::default(),
            appended: 0,
            host_written: 0,
            before,
        }
    }

    /// With one more second.
    pub fn add(&mut self, second: &Second) {
        self.seconds += 1;
        self.appended += second.appended;
        self.host_written += second.host_written;
        self.latencies.add(&second.latencies);
        for (&name, &value) in &second.values {
            match table::find(self.of, name).map(|metric| metric.over_time) {
                Some(OverTime::Mean) => {
                    let (sum, count) = self.means.entry(name).or_default();
                    *sum += value;
                    *count += 1;
                }
                Some(OverTime::Max) => {
                    self.others.entry(name).and_modify(|most| *most = most.max(value)).or_insert(value);
                }
                Some(OverTime::Last) => drop(self.others.insert(name, value)),
                Some(OverTime::Percentile | OverTime::Amplification) | None => {}
            }
        }
    }

    /// What it comes to so far.
    pub fn sum(&self) -> Sum {
        let mut values = self.others.clone();
        values.extend(self.means.iter().map(|(&name, &(sum, count))| (name, sum / f64::from(count.max(1)))));
        values.extend(self.latencies.percentiles());
        if self.host_written > 0 {
            values.insert("write_amplification", self.appended as f64 / self.host_written as f64);
        }
        let sum = Sum { seconds: self.seconds, values };
        match &self.before {
            Some(before) => together(self.of, before, sum),
            None => sum,
        }
    }
}

/// Two parts of a span, one after the other. The parts' requests are not known any more, so of percentiles the worse one counts.
pub fn together(of: Of, before: &Sum, mut now: Sum) -> Sum {
    let whole = f64::from(before.seconds + now.seconds).max(1.0);
    for (&name, &old) in &before.values {
        let Some(&new) = now.values.get(name) else {
            now.values.insert(name, old);
            continue;
        };
        let value = match table::find(of, name).map(|metric| metric.over_time) {
            Some(OverTime::Mean | OverTime::Amplification) => {
                (old * f64::from(before.seconds) + new * f64::from(now.seconds)) / whole
            }
            Some(OverTime::Max | OverTime::Percentile) => old.max(new),
            Some(OverTime::Last) | None => new,
        };
        now.values.insert(name, value);
    }
    now.seconds += before.seconds;
    now
}

#[cfg(test)]
mod tests {
    use export::Observed;

    use super::*;

    fn second(values: &[(&'static str, f64)]) -> Second {
        Second { values: values.iter().copied().collect(), ..Second::default() }
    }

    #[test]
    fn means_maxima_and_last_values() {
        let mut span = Span::new(Of::Device, 0, None);
        span.add(&second(&[("read_iops", 10.0), ("read_max_us", 7.0), ("mapped_bytes", 1.0)]));
        span.add(&second(&[("read_iops", 20.0), ("read_max_us", 3.0), ("mapped_bytes", 2.0)]));
        span.add(&second(&[("mapped_bytes", 3.0)]));
        let sum = span.sum();
        assert_eq!(sum.seconds, 3);
        assert_eq!(sum.values["read_iops"], 15.0);
        assert_eq!((sum.values["read_max_us"], sum.values["mapped_bytes"]), (7.0, 3.0));
    }

    #[test]
    fn percentiles_are_those_of_all_requests_and_not_of_the_seconds() {
        let mut span = Span::new(Of::Device, 0, None);
        // A second with 990 quick requests and one with ten slow ones: the median is quick, however many seconds there are.
        for (latency_ns, count) in [(10_000, 990), (5_000_000, 10)] {
            let mut observed = Observed::default();
            observed.reads.latencies.saturating_record_n(latency_ns, count);
            span.add(&Second { latencies: Latencies::from(observed), ..Second::default() });
        }
        let values = span.sum().values;
        assert!((values["read_p50_us"] - 10.0).abs() < 0.2, "{values:?}");
        assert!((values["read_p999_us"] - 5000.0).abs() < 50.0, "{values:?}");
        assert!(!values.contains_key("write_p50_us"));
    }

    #[test]
    fn amplification_is_that_of_the_bytes() {
        let mut span = Span::new(Of::Device, 0, None);
        span.add(&Second { appended: 100, host_written: 100, ..Second::default() });
        span.add(&Second { appended: 900, host_written: 300, ..Second::default() });
        assert_eq!(span.sum().values["write_amplification"], 2.5);
    }

    #[test]
    fn a_span_that_a_restart_cut_is_put_together() {
        let before = Sum {
            seconds: 30,
            values: [("read_iops", 10.0), ("read_max_us", 9.0), ("mapped_bytes", 5.0), ("celsius", 40.0)].into(),
        };
        let mut span = Span::new(Of::Device, 0, Some(before));
        for _ in 0..10 {
            span.add(&second(&[("read_iops", 50.0), ("read_max_us", 3.0), ("mapped_bytes", 7.0)]));
        }
        let sum = span.sum();
        assert_eq!(sum.seconds, 40);
        assert_eq!(sum.values["read_iops"], 20.0);
        assert_eq!((sum.values["read_max_us"], sum.values["mapped_bytes"], sum.values["celsius"]), (9.0, 7.0, 40.0));
    }
}
