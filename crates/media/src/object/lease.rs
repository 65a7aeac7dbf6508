//! Leases: how long an owner may answer without having written to the store, and when another host may take the device over by itself.
//!
//! Both sides measure spans with a clock of their own and never compare the two. The owner counts from the moment at which it *asked* for an anchor
//! to be written; a host that stands by counts from the moment at which it had *seen* that anchor, which is later. The owner stops at
//! four fifths of the lease, the other one waits for all of it, so clocks may run up to a quarter faster or slower than each other.

use super::Anchor;

/// The shortest lease and the longest, milliseconds: an anchor must be written several times in one, and a span must mean something.
pub const LEASE_MS: std::ops::RangeInclusive<u64> = 2_000..=3_600_000;

/// A lease as its owner keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// How long it is, milliseconds; 0 for a device without one.
    span_ms: u64,
    /// When the newest anchor that is known to be in the store was asked for, by the owner's own clock.
    from_ms: u64,
}

impl Lease {
    /// Of this length, from this moment on.
    pub fn new(span_ms: u64, from_ms: u64) -> Lease {
        Lease { span_ms, from_ms }
    }

    /// Whether there is one.
    pub fn is_on(&self) -> bool {
        self.span_ms > 0
    }

    /// An anchor that was first asked for at this moment is in the store.
    pub fn renewed(&mut self, asked_ms: u64) {
        self.from_ms = self.from_ms.max(asked_ms);
    }

    /// Whether the owner may answer nothing now: another host may have the device.
    #[inline]
    pub fn is_out(&self, steady_ms: u64) -> bool {
        self.is_on() && steady_ms >= self.from_ms + self.span_ms / 5 * 4
    }

    /// How long after an anchor was asked for the next one is, milliseconds: so that two attempts may fail.
    pub fn step_ms(&self) -> u64 {
        self.span_ms / 4
    }

    /// Whether it is time to renew it.
    pub fn is_due(&self, steady_ms: u64) -> bool {
        self.is_on() && steady_ms >= self.from_ms + self.step_ms()
    }

    /// How long from now until it is to be renewed, milliseconds.
    pub fn due_in_ms(&self, steady_ms: u64) -> Option<u64> {
        self.is_on().then(|| (self.from_ms + self.step_ms()).saturating_sub(steady_ms))
    }
}

/// Which anchor exactly: no two that were ever in the store are alike in this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnchorId {
    /// The owner epoch.
    pub epoch: u32,
    /// The commit.
    pub commit: u64,
    /// How often that commit's lease was renewed.
    pub renewal: u64,
}

/// What a host that stands by knows of the owner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    seen: Option<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    id: AnchorId,
    span_ms: u64,
    /// When it was seen first, by the clock of whoever watches.
    at_ms: u64,
}

impl Watch {
    /// This anchor was in the store, and its answer was here at this moment.
    pub fn saw(&mut self, anchor: &Anchor, steady_ms: u64) {
        let (id, span_ms) = (anchor.id(), anchor.limits.lease_ms);
        if self.seen.is_none_or(|seen| seen.id != id) {
            self.seen = Some(Seen { id, span_ms, at_ms: steady_ms });
        }
    }

    /// The anchor that may be replaced now: it has stood there for a whole lease, and whoever wrote it answers nothing any more.
    pub fn lapsed(&self, steady_ms: u64) -> Option<AnchorId> {
        self.seen.filter(|seen| seen.span_ms > 0 && steady_ms >= seen.at_ms + seen.span_ms).map(|seen| seen.id)
    }

    /// How long until that is so if nothing changes, milliseconds; nothing where there is no lease.
    pub fn lapses_in_ms(&self, steady_ms: u64) -> Option<u64> {
        self.seen.filter(|seen| seen.span_ms > 0).map(|seen| (seen.at_ms + seen.span_ms).saturating_sub(steady_ms))
    }

    /// How often the store is looked at, milliseconds.
    pub fn period_ms(&self) -> u64 {
        self.seen.map_or(1000, |seen| (seen.span_ms / 8).clamp(200, 5000))
    }
}

#[cfg(test)]
mod tests {
    use super::super::anchor::tests::sample;
    use super::*;

    #[test]
    fn an_owner_stops_before_anybody_may_take_over() {
        // Clocks that run as differently as may be: the owner's slow, the other one's fast.
        for (span_ms, asked_ms, took_ms) in [(2000, 7, 0), (30_000, 100, 450), (3_600_000, 0, 59_000)] {
            let (mut lease, mut watch) = (Lease::new(span_ms, 0), Watch::default());
            lease.renewed(asked_ms);
            let mut anchor = sample();
            anchor.limits.lease_ms = span_ms;
            let owner = |real: u64| asked_ms + (real * 9 / 10);
            let other = |real: u64| real * 11 / 10;
            watch.saw(&anchor, other(took_ms));
            let lapsed = (0..).map(|step| step * 10).find(|real| watch.lapsed(other(*real)).is_some());
            let lapsed = lapsed.expect("it lapses");
            assert!(lease.is_out(owner(lapsed)), "after {lapsed} ms of {span_ms}");
            assert!(!lease.is_out(owner(span_ms / 2)) && lease.is_due(owner(span_ms / 2)));
        }
    }

    #[test]
    fn whoever_watches_begins_anew_with_each_anchor() {
        let mut watch = Watch::default();
        assert_eq!(watch.lapsed(u64::MAX), None, "nothing was seen");
        let mut anchor = sample();
        watch.saw(&anchor, 5);
        assert_eq!(watch.lapsed(u64::MAX), None, "a device without a lease is nobody's to take");
        anchor.limits.lease_ms = 2000;
        anchor.renewal += 1;
        watch.saw(&anchor, 1000);
        watch.saw(&anchor, 2500);
        assert_eq!((watch.lapsed(2999), watch.lapsed(3000)), (None, Some(anchor.id())));
        let old = anchor.id();
        anchor.renewal += 1;
        watch.saw(&anchor, 3000);
        assert_eq!(watch.lapsed(4999), None, "it was renewed");
        assert!(watch.lapsed(5000).is_some_and(|id| id > old));
    }
}
