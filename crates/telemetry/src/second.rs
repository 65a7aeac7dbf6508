//! One second of one device, from what its thread counted.

use std::collections::BTreeMap;

use device::Figures;
use export::{Observed, Sort};
use hdrhistogram::Histogram;

use crate::filling::Filling;
use crate::table::{self, Moment, Of, moment};

/// Values by the names of the table. What is not known is not there.
pub type Values = BTreeMap<&'static str, f64>;

/// Latencies of one span by sort, nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Of reads, writes and flushes.
    sorts: [Option<Histogram<u32>>; 3],
}

impl From<Observed> for Latencies {
    fn from(observed: Observed) -> Latencies {
        let some = |sort: Sort| (!sort.latencies.is_empty()).then_some(sort.latencies);
        Latencies { sorts: [some(observed.reads), some(observed.writes), some(observed.flushes)] }
    }
}

impl Latencies {
    /// With those of another span.
    pub fn add(&mut self, other: &Latencies) {
        for (mine, theirs) in self.sorts.iter_mut().zip(&other.sorts) {
            match (mine, theirs) {
                // Both have the same bounds, so nothing is out of range.
                (Some(mine), Some(theirs)) => drop(mine.add(theirs)),
                (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
                (_, None) => {}
            }
        }
    }

    /// The percentiles, as metrics.
    pub fn percentiles(&self) -> impl Iterator<Item = (&'static str, f64)> {
        table::of(Of::Device).filter_map(|row| {
            let (sort, quantile) = row.quantile()?;
            let histogram = self.sorts[sort].as_ref()?;
            Some((row.name, histogram.value_at_quantile(quantile) as f64 / 1000.0))
        })
    }
}

/// What the next second's figures are differences to.
#[derive(Clone, Copy, Debug)]
pub struct Previous {
    figures: Figures,
    cpu_ns: u64,
    filling: Option<Filling>,
    growing: Option<Filling>,
}

/// One second.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Its metrics.
    pub values: Values,
    /// Latencies, for the percentiles of longer spans.
    pub latencies: Latencies,
    /// Bytes appended.
    pub appended: u64,
    /// Bytes written by hosts, as the layer counted them.
    pub host_written: u64,
}

impl Second {
    /// From what a device's thread counted, and its figures.
    pub fn of_device(observed: Observed, now: &Figures, unclean: bool, before: &mut Option<Previous>) -> Second {
        let seconds = observed.seconds.max(1e-3);
        let old = before.take();
        let filling = filling_of(now.store_free_bytes, seconds, old.and_then(|old| old.filling));
        let growing = filling_of(now.room_left_bytes(), seconds, old.and_then(|old| old.growing));
        let moment = Moment {
            now,
            before: old.as_ref().map(|old| &old.figures),
            observed: &observed,
            seconds,
            cpu_ns: old.map(|old| observed.cpu_ns.saturating_sub(old.cpu_ns)),
            filling: filling.as_ref(),
            growing: growing.as_ref(),
            unclean,
        };
        let read = |row: &'static table::Row| Some((row.name, row.second(&moment)?));
        let mut values: Values = table::of(Of::Device).filter_map(read).collect();
        let grown = |counter| moment.grown(counter).unwrap_or(0);
        let (appended, host_written) = (grown(moment::appended), grown(moment::host_written));
        *before = Some(Previous { figures: *now, cpu_ns: observed.cpu_ns, filling, growing });
        let latencies = Latencies::from(observed);
        values.extend(latencies.percentiles());
        Second { values, latencies, appended, host_written }
    }

    /// Of the service itself.
    pub fn of_service(values: Values) -> Second {
        Second { values, ..Second::default() }
    }
}

/// How something fills, after one more look at what is free of it.
fn filling_of(free: Option<u64>, seconds: f64, before: Option<Filling>) -> Option<Filling> {
    let free = free?;
    let Some(mut filling) = before else { return Some(Filling::new(free)) };
    filling.look(free, seconds);
    Some(filling)
}
