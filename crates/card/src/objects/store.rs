//! The model of a store: how long a request takes, what is there, and what all of it costs.

use std::collections::HashMap;

use media::object::{HEAD_BYTES, MONTH_MS, ObjectId, Prices};

use super::report::Bill;
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
    /// Bytes of objects and of the anchor, and since when it is so many.
    pub stored: u64,
    pub anchor: u64,
    since: Nanos,
    /// Bytes times seconds until then.
    pub byte_seconds: f64,
    pub puts: u64,
    pub anchors: u64,
    pub gets: u64,
    pub deletes: u64,
    pub put_bytes: u64,
    pub anchor_bytes: u64,
    pub get_bytes: u64,
}

impl Books {
    pub fn new(prices: Prices) -> Books {
        Books {
            prices,
            objects: HashMap::new(),
            stored: 0,
            anchor: 0,
            since: 0,
            byte_seconds: 0.0,
            puts: 0,
            anchors: 0,
            gets: 0,
            deletes: 0,
            put_bytes: 0,
            anchor_bytes: 0,
            get_bytes: 0,
        }
    }

    /// Bytes times seconds until now.
    pub fn byte_seconds(&self, now: Nanos) -> f64 {
        self.byte_seconds + (self.stored + self.anchor) as f64 * (now - self.since) as f64 / 1e9
    }

    fn settle(&mut self, now: Nanos) {
        (self.byte_seconds, self.since) = (self.byte_seconds(now), now);
    }

    pub fn put(&mut self, now: Nanos, id: ObjectId, bytes: u32) {
        self.settle(now);
        let bytes = bytes + HEAD_BYTES;
        (self.puts, self.put_bytes) = (self.puts + 1, self.put_bytes + u64::from(bytes));
        self.stored += u64::from(bytes);
        self.objects.insert(id, bytes);
    }

    pub fn swapped(&mut self, now: Nanos, bytes: u64) {
        self.settle(now);
        (self.anchors, self.anchor_bytes, self.anchor) = (self.anchors + 1, self.anchor_bytes + bytes, bytes);
    }

    pub fn got(&mut self, bytes: u64) {
        (self.gets, self.get_bytes) = (self.gets + 1, self.get_bytes + bytes);
    }

    pub fn deleted(&mut self, now: Nanos, id: ObjectId) {
        self.settle(now);
        self.deletes += 1;
        self.stored -= u64::from(self.objects.remove(&id).unwrap_or(0));
    }

    /// What all of it cost until now.
    pub fn bill(&self, now: Nanos) -> Bill {
        let Prices { puts, gets, month, egress } = self.prices;
        Bill {
            stored: self.byte_seconds(now) / GIB / (MONTH_MS / 1000.0) * month,
            puts: self.puts as f64 * puts / 1000.0,
            anchors: self.anchors as f64 * puts / 1000.0,
            gets: self.gets as f64 * gets / 1000.0,
            egress: self.get_bytes as f64 / GIB * egress,
        }
    }
}
