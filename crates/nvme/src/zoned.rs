//! Zoned namespaces: blocks that are written in order, zone by zone, and forgotten a zone at a time.
//!
//! Source: NVM Express Zoned Namespace Command Set Specification 1.1, 3.4 (commands), 4.1.5 (Identify).

use crate::bytes::put;
use crate::command::zone;
use crate::identify::BYTES;
use crate::namespace::Namespace;
use crate::nvm::{Command, How, Range};
use crate::{Sqe, Status};

/// The command set's identifier.
pub const COMMAND_SET: u32 = 2;
/// Bytes of a zone in a report, and of what stands in front of them.
const ZONE_BYTES: usize = 64;
/// Dword 13: an action on all zones.
const SELECT_ALL: u32 = 1 << 8;
/// Dword 13 of a report: its count is that of the zones that it has room for.
const PARTIAL: u32 = 1 << 16;

/// What there is to say of a namespace's zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    /// From the first byte of a zone to that of the next: a power of two.
    pub size_bytes: u64,
    /// How many of them can be written.
    pub capacity_bytes: u64,
    /// Zones that may be active at once, and open.
    pub most_active: u32,
}

/// How a zone stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is written.
    Empty = 1,
    /// A write opened it.
    ImplicitlyOpen = 2,
    /// The host opened it.
    ExplicitlyOpen = 3,
    /// Written in part, and not open.
    Closed = 4,
    /// Nothing more can be written.
    Full = 14,
}

/// What a host does with zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Closes it.
    Close = 1,
    /// Makes it full.
    Finish = 2,
    /// Opens it.
    Open = 3,
    /// Forgets what it holds.
    Reset = 4,
}

/// A zone, as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// How it stands.
    pub state: State,
    /// Its first byte.
    pub start: u64,
    /// The byte where the next write goes.
    pub pointer: u64,
}

/// What a report is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// From the zone of this byte on.
    pub from: u64,
    /// Zones in this state only.
    pub state: Option<State>,
    /// It counts those that it has room for, not all.
    pub partial: bool,
    /// Bytes that the host wants.
    pub bytes: usize,
}

impl Namespace {
    /// Takes one of the command set's own commands apart. Data that travel with it are those of an append.
    ///
    /// # Errors
    /// What is wrong with it, or the namespace has no zones.
    pub(crate) fn zone_command(&self, entry: &Sqe) -> Result<Command, Status> {
        if self.zones.is_none() {
            return Err(Status::INVALID_OPCODE);
        }
        let place = self.range(entry.dwords(10), 1)?.offset;
        match entry.opcode() {
            zone::APPEND => {
                let blocks = u64::from(entry.dword(12) & 0xffff) + 1;
                let range = Range { offset: place, len: blocks << self.block_shift };
                if range.len > u64::from(self.max_request_bytes) || entry.dword(12) & crate::nvm::PROTECTION != 0 {
                    return Err(Status::INVALID_FIELD);
                }
                let durable = entry.dword(12) & crate::nvm::FORCE_UNIT_ACCESS != 0;
                Ok(Command::Append(range, How { durable, placement: 0 }))
            }
            zone::MANAGEMENT_SEND => {
                let action = match entry.dword(13) & 0xff {
                    1 => Action::Close,
                    2 => Action::Finish,
                    3 => Action::Open,
                    4 => Action::Reset,
                    _ => return Err(Status::INVALID_FIELD),
                };
                let zone = (entry.dword(13) & SELECT_ALL == 0).then_some(place);
                Ok(Command::Zone { action, zone })
            }
            _ => {
                let state = match entry.dword(13) >> 8 & 0xff {
                    0 => None,
                    1 => Some(State::Empty),
                    2 => Some(State::ImplicitlyOpen),
                    3 => Some(State::ExplicitlyOpen),
                    4 => Some(State::Closed),
                    5 => Some(State::Full),
                    _ => return Err(Status::INVALID_FIELD),
                };
                let bytes = 4 * (u64::from(entry.dword(12)) + 1);
                // Extensions of descriptors there are none of.
                if entry.dword(13) & 0xff != 0 || bytes > u64::from(self.max_request_bytes) {
                    return Err(Status::INVALID_FIELD);
                }
                let partial = entry.dword(13) & PARTIAL != 0;
                Ok(Command::ZoneReport(Wanted { from: place, state, partial, bytes: bytes as usize }))
            }
        }
    }

    /// A report of the zones from the one asked for on.
    pub fn zone_report(&self, wanted: &Wanted, zones: impl Iterator<Item = Zone>) -> Vec<u8> {
        let mut report = vec![0; wanted.bytes];
        let room = (wanted.bytes / ZONE_BYTES).saturating_sub(1);
        let capacity = self.zones.map_or(0, |zones| zones.capacity_bytes >> self.block_shift);
        let mut count = 0;
        for zone in zones.filter(|zone| wanted.state.is_none_or(|state| zone.state == state)) {
            if count < room {
                let at = ZONE_BYTES * (1 + count);
                // Sequential writes are required.
                report[at] = 2;
                report[at + 1] = (zone.state as u8) << 4;
                // Of a full zone the pointer says nothing.
                let pointer = if zone.state == State::Full { u64::MAX } else { zone.pointer >> self.block_shift };
                for (field, value) in [(8, capacity), (16, zone.start >> self.block_shift), (24, pointer)] {
                    put(&mut report, at + field, &value.to_le_bytes());
                }
            } else if wanted.partial {
                break;
            }
            count += 1;
        }
        let header = (count as u64).to_le_bytes();
        let seen = header.len().min(report.len());
        put(&mut report, 0, &header[..seen]);
        report
    }
}

/// The namespace's page of this command set.
pub(crate) fn namespace(namespace: &Namespace, zones: &Zones) -> [u8; BYTES] {
    let mut page = [0; BYTES];
    // Reads may cross from a zone into the next.
    page[2] = 1;
    // Active and open zones, less one.
    for at in [4, 8] {
        put(&mut page, at, &(zones.most_active - 1).to_le_bytes());
    }
    // The one format: its zone size, and no extensions of descriptors.
    put(&mut page, 2816, &(zones.size_bytes >> namespace.block_shift).to_le_bytes());
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::u64_at;
    use crate::identify::tests::namespace;

    /// 1 GiB in 16 zones of 64 MiB, blocks of 16 KiB.
    fn zoned() -> Namespace {
        let zones = Zones { size_bytes: 64 << 20, capacity_bytes: 60 << 20, most_active: 14 };
        Namespace { zones: Some(zones), ..namespace() }
    }

    fn decode(entry: Sqe) -> Result<Command, Status> {
        Command::decode(&entry, &zoned())
    }

    #[test]
    fn commands_are_those_of_namespaces_with_zones() {
        let send = |value: u32| Sqe::new(zone::MANAGEMENT_SEND, 1, 1).with(10, 4096).with(13, value);
        let zone = Some(64 << 20);
        for (code, action) in [(1, Action::Close), (2, Action::Finish), (3, Action::Open), (4, Action::Reset)] {
            assert_eq!(decode(send(code)), Ok(Command::Zone { action, zone }));
            assert_eq!(decode(send(code | SELECT_ALL)), Ok(Command::Zone { action, zone: None }));
        }
        for code in [0, 5, 0x10, 0xff] {
            assert_eq!(decode(send(code)), Err(Status::INVALID_FIELD));
        }
        assert_eq!(decode(send(4).with(10, 65_536)), Err(Status::LBA_RANGE));
        assert_eq!(Command::decode(&send(4), &namespace()), Err(Status::INVALID_OPCODE));
        let append = Sqe::new(zone::APPEND, 1, 1).with(10, 4096).with(12, 1);
        let range = Range { offset: 64 << 20, len: 2 << 14 };
        assert_eq!(decode(append), Ok(Command::Append(range, How { durable: false, placement: 0 })));
        assert_eq!(decode(append.with(12, 64)), Err(Status::INVALID_FIELD), "larger than a request");
        let fixed = Namespace { read_only: true, ..zoned() };
        for entry in [append, send(4)] {
            assert_eq!(Command::decode(&entry, &fixed), Err(Status::WRITE_PROTECTED));
        }
    }

    #[test]
    fn a_report_as_the_specification_draws_it() {
        let namespace = zoned();
        let state = |zone: u64| if zone < 3 { State::Full } else { State::Empty };
        let zones = || (0..16).map(|zone| Zone { state: state(zone), start: zone << 26, pointer: (zone << 26) + 1 });
        let ask = |bytes: u32, filter: u32, partial: u32| {
            let entry =
                Sqe::new(zone::MANAGEMENT_RECEIVE, 1, 1).with(12, bytes / 4 - 1).with(13, filter << 8 | partial);
            match Command::decode(&entry, &namespace) {
                Ok(Command::ZoneReport(wanted)) => namespace.zone_report(&wanted, zones()),
                other => panic!("{other:?}"),
            }
        };
        let report = ask(64 * 3, 0, 0);
        assert_eq!((report.len(), u64_at(&report, 0)), (192, 16), "all are counted, two are shown");
        assert_eq!((report[64], report[65] >> 4, report[129] >> 4), (2, 14, 14));
        assert_eq!([72, 80, 88, 144].map(|at| u64_at(&report, at)), [3840, 0, u64::MAX, 4096]);
        assert_eq!(u64_at(&ask(64 * 3, 0, PARTIAL), 0), 2);
        let empty = ask(64 * 2, 1, PARTIAL);
        assert_eq!([0, 80, 88].map(|at| u64_at(&empty, at)), [1, 3 * 4096, 3 * 4096]);
        assert_eq!(ask(4, 0, 0), [16, 0, 0, 0], "cut to what is wanted");
        let wrong = Sqe::new(zone::MANAGEMENT_RECEIVE, 1, 1).with(12, 15).with(13, 1);
        assert_eq!(decode(wrong), Err(Status::INVALID_FIELD), "no extended report");
    }
}
