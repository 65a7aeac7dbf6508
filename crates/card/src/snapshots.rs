//! Snapshots that a module makes by itself, to see what they cost.

use ftl::{Ftl, SnapshotChange, SnapshotError};
use serde::{Deserialize, Serialize};

use crate::device::Nanos;

/// How far one snapshot is from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Every {
    /// In virtual time, nanoseconds.
    Time(Nanos),
    /// In bytes that the host writes to the device.
    Bytes(u64),
}

/// Which snapshots are made and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// How far one is from the next; more than nothing.
    pub every: Every,
    /// So many of the newest are kept; with none, none is made.
    pub keep: u32,
}

/// What came of it, since the schedule began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotUse {
    /// Snapshots made.
    pub made: u64,
    /// Snapshots there are.
    pub kept: u32,
    /// What they held beside what the host sees, at the most, bytes.
    pub held_bytes: u64,
    /// What held data, for the host or for snapshots, at the most, bytes.
    pub used_bytes: u64,
    /// What may hold data then, bytes.
    pub room_bytes: u64,
}

impl SnapshotUse {
    /// How much of the room was used at the most, per cent.
    pub fn room_percent(&self) -> f64 {
        100.0 * self.used_bytes as f64 / self.room_bytes.max(1) as f64
    }

    /// Two devices together.
    #[must_use]
    pub fn with(self, other: SnapshotUse) -> SnapshotUse {
        SnapshotUse {
            made: self.made + other.made,
            kept: self.kept + other.kept,
            held_bytes: self.held_bytes + other.held_bytes,
            used_bytes: self.used_bytes + other.used_bytes,
            room_bytes: self.room_bytes + other.room_bytes,
        }
    }
}

/// A schedule under way.
pub(crate) struct Snapshots {
    schedule: Schedule,
    /// When the next one is made, by the schedule's measure; never where none is kept.
    due: u64,
    number: u64,
    used: SnapshotUse,
}

impl Snapshots {
    /// One that begins now.
    pub fn new(schedule: Schedule, now: Nanos, ftl: &Ftl) -> Snapshots {
        let mut snapshots = Snapshots { schedule, due: u64::MAX, number: 0, used: SnapshotUse::default() };
        if schedule.keep > 0 {
            snapshots.due = snapshots.measure(now, ftl).saturating_add(snapshots.step());
        }
        snapshots
    }

    fn step(&self) -> u64 {
        match self.schedule.every {
            Every::Time(step) | Every::Bytes(step) => step.max(1),
        }
    }

    fn measure(&self, now: Nanos, ftl: &Ftl) -> u64 {
        match self.schedule.every {
            Every::Time(_) => now,
            Every::Bytes(_) => ftl.stats().host_written_sectors * u64::from(ftl.config().geometry.sector_bytes),
        }
    }

    /// Whether the next one is due, or one is to go.
    #[inline]
    pub fn is_due(&self, now: Nanos, ftl: &Ftl) -> bool {
        self.due < u64::MAX
            && (self.measure(now, ftl) >= self.due || ftl.snapshots().len() > self.schedule.keep as usize)
    }

    /// Makes those that are due, and deletes the oldest that are too many. What the layer cannot take now is made in a moment. Where many came due
    /// while nothing happened, those that would be deleted at once are left out.
    #[cold]
    pub fn make(&mut self, now: Nanos, ftl: &mut Ftl) {
        let (measure, step) = (self.measure(now, ftl), self.step());
        let missed = measure.saturating_sub(self.due) / step;
        self.due += missed.saturating_sub(u64::from(self.schedule.keep)) * step;
        loop {
            while ftl.snapshots().len() > self.schedule.keep as usize {
                let oldest = ftl.snapshots()[0].id;
                if !change_now(ftl, &SnapshotChange::Delete(oldest)) {
                    return;
                }
            }
            self.used.kept = ftl.snapshots().len() as u32;
            if self.due > measure {
                return;
            }
            self.count(ftl);
            let change = SnapshotChange::Create { name: format!("s{}", self.number), created: self.number };
            if !change_now(ftl, &change) {
                return;
            }
            self.number += 1;
            self.used.made += 1;
            self.due += step;
        }
    }

    /// Takes down what holds data, where that was never more: just before the oldest goes.
    fn count(&mut self, ftl: &Ftl) {
        self.used = self.used_by(ftl);
    }

    /// What came of it so far.
    pub fn used_by(&self, ftl: &Ftl) -> SnapshotUse {
        let bytes = |sectors: u64| sectors * u64::from(ftl.config().geometry.sector_bytes);
        let Some(limit) = ftl.live_limit().map(bytes) else { return self.used };
        let used = bytes(ftl.map().mapped() + ftl.kept_sectors());
        let held_bytes = self.used.held_bytes.max(bytes(ftl.kept_sectors()));
        let (used_bytes, room_bytes) =
            if used >= self.used.used_bytes { (used, limit) } else { (self.used.used_bytes, self.used.room_bytes) };
        SnapshotUse { held_bytes, used_bytes, room_bytes, ..self.used }
    }
}

/// Changes the snapshots, where the layer takes that now.
fn change_now(ftl: &mut Ftl, change: &SnapshotChange) -> bool {
    match ftl.change_snapshots(change) {
        Ok(Some(_)) => true,
        // Names are new, and nothing is held: only room can be missing.
        Ok(None) | Err(SnapshotError::Full | SnapshotError::Failed(_) | SnapshotError::TooMany) => false,
        Err(error) => {
            debug_assert!(false, "{error}");
            false
        }
    }
}
