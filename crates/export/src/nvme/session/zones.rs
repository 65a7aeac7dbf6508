//! Zones of the device as NVMe has them.

use device::{ZoneAction, ZoneError, ZoneState};
use nvme::zoned::{Action, State, Wanted, Zone};
use nvme::{Namespace, Status};

use crate::request::Command;
use crate::served::Served;

/// What is asked of the device for an action, with the first byte of each zone: of the one that a host names, or of all those that an action on all
/// is about.
pub(super) fn wanted(device: &Served, action: Action, zone: Option<u64>) -> Vec<(Command, u64)> {
    let action = match action {
        Action::Close => ZoneAction::Close,
        Action::Finish => ZoneAction::Finish,
        Action::Open => ZoneAction::Open,
        Action::Reset => ZoneAction::Reset,
    };
    let command = Command::Zone(action);
    match (zone, device.zones()) {
        (Some(start), _) => vec![(command, start)],
        (None, None) => Vec::new(),
        (None, Some(zones)) => {
            let shift = device.info().sector_bytes.trailing_zeros();
            let meant = (0..zones.shape().count).filter(|zone| zones.is_meant(*zone, action));
            meant.map(|zone| (command, zones.shape().start(zone) << shift)).collect()
        }
    }
}

/// How zones stand, as a host wants to be told.
pub(super) fn report(device: &Served, wanted: &Wanted, namespace: &Namespace) -> Vec<u8> {
    let Some(zones) = device.zones() else { return vec![0; wanted.bytes] };
    let shift = device.info().sector_bytes.trailing_zeros();
    let first = zones.shape().zone_of(wanted.from >> shift).unwrap_or(zones.shape().count);
    let views = (first..zones.shape().count).map(|zone| {
        let view = zones.view(zone);
        let state = match view.state {
            ZoneState::Empty => State::Empty,
            ZoneState::ImplicitlyOpen => State::ImplicitlyOpen,
            ZoneState::ExplicitlyOpen => State::ExplicitlyOpen,
            ZoneState::Closed => State::Closed,
            ZoneState::Full => State::Full,
        };
        Zone { state, start: view.start << shift, pointer: view.pointer << shift }
    });
    namespace.zone_report(wanted, views)
}

/// Why a zone does not take something, in the words of the specification.
pub(super) fn status_of(error: ZoneError) -> Status {
    match error {
        ZoneError::Boundary => Status::ZONE_BOUNDARY,
        ZoneError::Full => Status::ZONE_FULL,
        ZoneError::NotAtPointer => Status::ZONE_INVALID_WRITE,
        ZoneError::TooManyActive => Status::TOO_MANY_ACTIVE_ZONES,
        ZoneError::Transition => Status::ZONE_TRANSITION,
        ZoneError::Piecemeal => Status::INVALID_FIELD,
    }
}
