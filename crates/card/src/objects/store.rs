//! The model of a store: how long a request takes, what is there, and what all of it costs.

use std::collections::HashMap;

use media::object::{HEAD_BYTES, MONTH_MS, ObjectId, Prices};

use super::report::{Bill, ObjectsReport};
use crate::device::Nanos;

const GIB: f64 = (1u64 << 30) as f64;

/// How fast a store is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Store {
    /// What every request takes beside its bytes, nanoseconds.
    pub latency: Nanos,
    /// What one request gets through, bytes a second.
    pub bytes_per_s: u64,
}

impl Store {
    /// How long a request takes that moves so many bytes.
    pub fn takes(&self, bytes: u64) -> Nanos {
        self.latency + (u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s.max(1))) as Nanos
    }
}

/// What was asked of a store, and what it holds.
pub(super) struct Books {
    prices: Prices,
    objects: HashMap<ObjectId, u32>,
    /// Bytes of objects, and since when it and the anchor are so many.
    stored: u64,
    since: Nanos,
    /// What was counted until then. What the layer and the plan know is not in it.
    counted: ObjectsReport,
}

impl Books {
    pub fn new(prices: Prices) -> Books {
        Books { prices, objects: HashMap::new(), stored: 0, since: 0, counted: ObjectsReport::default() }
    }

    /// Bytes times seconds until now.
    fn byte_seconds(&self, now: Nanos) -> f64 {
        let bytes = self.stored + self.counted.anchor_length;
        self.counted.byte_seconds + bytes as f64 * (now - self.since) as f64 / 1e9
    }

    fn settle(&mut self, now: Nanos) {
        (self.counted.byte_seconds, self.since) = (self.byte_seconds(now), now);
    }

    pub fn put(&mut self, now: Nanos, id: ObjectId, bytes: u32) {
        self.settle(now);
        let bytes = bytes + HEAD_BYTES;
        self.counted.puts += 1;
        self.counted.put_bytes += u64::from(bytes);
        self.stored += u64::from(bytes);
        self.objects.insert(id, bytes);
    }

    pub fn swapped(&mut self, now: Nanos, bytes: u64) {
        self.settle(now);
        self.counted.anchors += 1;
        self.counted.anchor_bytes += bytes;
        self.counted.anchor_length = bytes;
    }

    pub fn got(&mut self, bytes: u64) {
        self.counted.gets += 1;
        self.counted.get_bytes += bytes;
    }

    pub fn deleted(&mut self, now: Nanos, id: ObjectId) {
        self.settle(now);
        self.counted.deletes += 1;
        self.stored -= u64::from(self.objects.remove(&id).unwrap_or(0));
    }

    /// Bytes of the anchor.
    pub fn anchor_length(&self) -> u64 {
        self.counted.anchor_length
    }

    /// What was counted and paid until now.
    pub fn report(&self, now: Nanos) -> ObjectsReport {
        ObjectsReport {
            stored_bytes: self.stored + self.counted.anchor_length,
            byte_seconds: self.byte_seconds(now),
            bill: self.bill(now),
            ..self.counted.clone()
        }
    }

    /// What all of it cost until now.
    fn bill(&self, now: Nanos) -> Bill {
        let Prices { puts, gets, month, egress } = self.prices;
        Bill {
            stored: self.byte_seconds(now) / GIB / (MONTH_MS / 1000.0) * month,
            puts: self.counted.puts as f64 * puts / 1000.0,
            anchors: self.counted.anchors as f64 * puts / 1000.0,
            gets: self.counted.gets as f64 * gets / 1000.0,
            egress: self.counted.get_bytes as f64 / GIB * egress,
        }
    }
}
