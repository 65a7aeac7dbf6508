//! What a device on objects asked of its store in a span of time, and what that costs in a month.

use std::fmt::{Result, Write};

use card::{Bill, ObjectsReport};
use serde::{Deserialize, Serialize};

use super::text::{duration, grouped};

/// Seconds of a month, as bills have it.
const MONTH: f64 = card::MONTH_MS / 1000.0;

/// What a device on objects did to its store in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectsUse {
    /// Objects that were written, a second.
    pub puts_per_s: f64,
    /// Anchors that were written, a second.
    pub anchors_per_s: f64,
    /// Objects that were read in part, a second.
    pub gets_per_s: f64,
    /// Objects that were deleted, a second.
    pub deletes_per_s: f64,
    /// Bytes of objects that were written, a second.
    pub put_bytes_per_s: f64,
    /// Bytes of anchors that were written, a second.
    pub anchor_bytes_per_s: f64,
    /// Bytes that were read, a second.
    pub get_bytes_per_s: f64,
    /// Bytes in the store, on average.
    pub mean_stored_bytes: u64,
    /// The same at the end.
    pub stored_bytes: u64,
    /// Bytes of sectors that hold data, at the end.
    pub mapped_bytes: u64,
    /// Bytes of LEBs in the journal, at the end.
    pub local_bytes: u64,
    /// Bytes of the anchor, at the end.
    pub anchor_length: u64,
    /// LEBs that were collected by price.
    pub collected: u64,
    /// Bytes that were moved out of them.
    pub collected_bytes: u64,
    /// Memory of the map, at the end, bytes.
    pub map_memory: u64,
    /// Memory of all the layer's books, at the end, bytes.
    pub memory: u64,
    /// How long another host takes to attach at the end, without the journal, nanoseconds.
    pub take_over_ns: u64,
    /// Requests of that.
    pub take_over_requests: u64,
    /// What a month like this span costs, US dollars.
    pub month_usd: Bill,
}

impl ObjectsUse {
    /// From one report to another, `seconds` later.
    pub(super) fn between(before: &ObjectsReport, after: &ObjectsReport, seconds: f64) -> ObjectsUse {
        let rate = |before: u64, after: u64| if seconds > 0.0 { (after - before) as f64 / seconds } else { 0.0 };
        let months = seconds / MONTH;
        ObjectsUse {
            puts_per_s: rate(before.puts, after.puts),
            anchors_per_s: rate(before.anchors, after.anchors),
            gets_per_s: rate(before.gets, after.gets),
            deletes_per_s: rate(before.deletes, after.deletes),
            put_bytes_per_s: rate(before.put_bytes, after.put_bytes),
            anchor_bytes_per_s: rate(before.anchor_bytes, after.anchor_bytes),
            get_bytes_per_s: rate(before.get_bytes, after.get_bytes),
            mean_stored_bytes: ((after.byte_seconds - before.byte_seconds) / seconds.max(1e-9)) as u64,
            stored_bytes: after.stored_bytes,
            mapped_bytes: after.mapped_bytes,
            local_bytes: after.local_bytes,
            anchor_length: after.anchor_length,
            collected: after.collected - before.collected,
            collected_bytes: after.collected_bytes - before.collected_bytes,
            map_memory: after.map_memory,
            memory: after.memory,
            take_over_ns: after.take_over,
            take_over_requests: after.take_over_requests,
            month_usd: after
                .bill
                .with(before.bill, |after, before| if months > 0.0 { (after - before) / months } else { 0.0 }),
        }
    }

    /// For people.
    pub(super) fn text(&self, out: &mut String) -> Result {
        writeln!(
            out,
            "  store        {:.3} PUT/s of objects ({}/s), {:.3} of anchors ({}/s), {:.3} GET/s ({}/s), {:.3} deletions/s",
            self.puts_per_s,
            size::show(self.put_bytes_per_s as u64),
            self.anchors_per_s,
            size::show(self.anchor_bytes_per_s as u64),
            self.gets_per_s,
            size::show(self.get_bytes_per_s as u64),
            self.deletes_per_s
        )?;
        writeln!(
            out,
            "  stored       {} on average, {} at the end, for {} of data; anchor {}; journal {}",
            size::show(self.mean_stored_bytes),
            size::show(self.stored_bytes),
            size::show(self.mapped_bytes),
            size::show(self.anchor_length),
            size::show(self.local_bytes)
        )?;
        writeln!(
            out,
            "  by price     {} erase blocks collected, {} moved",
            grouped(self.collected as f64),
            size::show(self.collected_bytes)
        )?;
        let Bill { stored, puts, anchors, gets, egress } = self.month_usd;
        writeln!(
            out,
            "  a month      {:.3} USD: stored {stored:.3}, PUTs of objects {puts:.3}, of anchors {anchors:.3}, GETs {gets:.3}, egress {egress:.3}",
            self.month_usd.total()
        )?;
        writeln!(
            out,
            "  memory       map {}, with all books of the layer {}",
            size::show(self.map_memory),
            size::show(self.memory)
        )?;
        writeln!(
            out,
            "  take-over    {} in {} requests",
            duration(self.take_over_ns as f64),
            grouped(self.take_over_requests as f64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_made_a_month() {
        let bill = |stored| Bill { stored, puts: 1.0, ..Bill::default() };
        let before = ObjectsReport { puts: 100, byte_seconds: 50.0, bill: bill(1.0), ..ObjectsReport::default() };
        let after = ObjectsReport { puts: 300, byte_seconds: 250.0, bill: bill(3.0), ..ObjectsReport::default() };
        let used = ObjectsUse::between(&before, &after, MONTH / 10.0);
        assert!((used.month_usd.stored - 20.0).abs() < 1e-9 && used.month_usd.puts == 0.0, "{used:?}");
        let used = ObjectsUse::between(&before, &after, 20.0);
        assert_eq!((used.puts_per_s, used.mean_stored_bytes), (10.0, 10));
    }
}
