//! What happens to placements, noted where a host wants that.

use std::time::{SystemTime, UNIX_EPOCH};

use nvme::placement::{Event, Kind};
use nvme::{Namespace, Sqe};

use crate::jobs::Core;

/// Notes what the groomer moved since this was called last: before each look at the events, and now and then, so that none is told of late.
pub(crate) fn collect(core: &mut Core) {
    let shift = core.device.info().sector_bytes.trailing_zeros();
    while let Some(reclaimed) = core.device.next_reclaimed() {
        let moved = Some((u64::from(reclaimed.sectors) << shift, reclaimed.lba << shift));
        let identifier = reclaimed.placement.map(u16::from);
        core.nvme.events.note(Event { kind: Kind::Reallocated, identifier, moved, ms: now_ms() });
    }
}

/// Notes that a write names a handle that is not there, if it does.
pub(super) fn note_unknown(core: &mut Core, namespace: &Namespace, write: &Sqe) {
    if let Some(identifier) = namespace.unknown_placement(write) {
        let identifier = Some(identifier);
        core.nvme.events.note(Event { kind: Kind::InvalidIdentifier, identifier, moved: None, ms: now_ms() });
    }
}

/// Notes that a handle is given another reclaim unit, if there was room in its old one. One that nothing was written to stays.
pub(super) fn note_renewed(core: &mut Core, namespace: &Namespace, handle: u8) {
    let left = core.device.left_in_placement(handle);
    if (1..namespace.reclaim_unit_bytes).contains(&left) {
        let identifier = Some(handle.into());
        core.nvme.events.note(Event { kind: Kind::NotFullyWritten, identifier, moved: None, ms: now_ms() });
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
