//! What the metrics of a second are read from.

use device::Figures;
use export::{Observed, Sort};

use crate::filling::Filling;

/// A device's second.
pub struct Moment<'a> {
    /// Its figures at the end.
    pub now: &'a Figures,
    /// Those of the second before. The first time there is nothing that rates could be differences to.
    pub before: Option<&'a Figures>,
    /// What its clients asked.
    pub observed: &'a Observed,
    /// How long it took.
    pub seconds: f64,
    /// Processor time of the device's thread in it, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// How the store fills.
    pub filling: Option<&'a Filling>,
    /// How data and snapshots use up the room that there is for them.
    pub growing: Option<&'a Filling>,
    /// It was not detached cleanly before it was attached.
    pub unclean: bool,
}

impl Moment<'_> {
    /// So many in it, each second.
    pub fn each_second(&self, count: u64) -> Option<f64> {
        Some(count as f64 / self.seconds)
    }

    /// How fast a counter grew.
    pub fn rate(&self, counter: fn(&Figures) -> u64) -> Option<f64> {
        self.each_second(self.grown(counter)?)
    }

    /// By how much a counter grew.
    pub fn grown(&self, counter: fn(&Figures) -> u64) -> Option<u64> {
        Some(counter(self.now).saturating_sub(counter(self.before?)))
    }

    /// The longest latency of a sort of requests, microseconds.
    pub fn longest(&self, sort: &Sort) -> Option<f64> {
        (sort.count() > 0).then(|| sort.max_ns as f64 / 1000.0)
    }

    /// Requests in the service at a time: all latencies together, over the time.
    pub fn depth(&self) -> f64 {
        let Observed { reads, writes, trims, flushes, .. } = self.observed;
        [reads, writes, trims, flushes].iter().map(|sort| sort.sum_ns).sum::<u64>() as f64 / 1e9 / self.seconds
    }

    /// Appended bytes over bytes written by hosts.
    pub fn amplification(&self) -> Option<f64> {
        let (appended, written) = (self.grown(appended)?, self.grown(host_written)?);
        (written > 0).then(|| appended as f64 / written as f64)
    }

    /// Of what was read of a cached volume, what its cache had, per cent.
    pub fn cache_hits(&self) -> Option<f64> {
        self.now.cache?;
        let (hit, missed) = (self.grown(|f| f.cached().hit)?, self.grown(|f| f.cached().missed)?);
        (hit + missed > 0).then(|| 100.0 * hit as f64 / (hit + missed) as f64)
    }

    /// Whether an emulated card holds writes back at its power limit.
    pub fn power_limited(&self) -> Option<bool> {
        let held_back = self.now.hold_ns_per_byte.is_some_and(|hold| hold > 0.0);
        let at_limit = self.now.watts.zip(self.now.power_limit_watts);
        let at_limit = at_limit.map(|(watts, limit)| held_back && watts >= 0.9 * limit);
        // With the limit overridden nothing is limited by it any more: an alert of it is over.
        at_limit.or(self.now.power_override.filter(|on| *on).map(|_| false))
    }
}

/// Everything appended, bytes.
pub fn appended(figures: &Figures) -> u64 {
    let layer = &figures.layer;
    let slots = [layer.host_written_sectors, layer.groomed_sectors, layer.padding_slots, layer.metadata_slots];
    figures.bytes(slots.into_iter().fold(0, u64::saturating_add))
}

/// Bytes written by hosts, as the layer counted them.
pub fn host_written(figures: &Figures) -> u64 {
    figures.bytes(figures.layer.host_written_sectors)
}
