//! Events of flexible data placement: which a host wants noted of a handle, and the latest that were.
//!
//! Source: NVM Express Base Specification 2.1, 5.1.12.1.31 (log page 23h), 5.1.25.1.21 (feature 1Eh). By default nothing is noted.

use std::collections::VecDeque;

use super::HANDLES_MAX;
use crate::bytes::put;
use crate::feature::Value;
use crate::identify::NAMESPACE;
use crate::namespace::Namespace;
use crate::{Sqe, Status};

/// Events that a log page has room for.
const KEPT: usize = 63;
/// Bytes of an event, and of what stands in front of the first.
const EVENT_BYTES: usize = 64;
/// Fields of an event that hold something: its placement identifier, its namespace, its place.
const HAS_IDENTIFIER: u8 = 1;
const HAS_NAMESPACE: u8 = 1 << 1;
const HAS_PLACE: u8 = 1 << 2;
/// Of a move: the block is told.
const HAS_BLOCK: u8 = 1;
/// Where the time of an event comes from, byte 6 of it: a clock that was set.
const CLOCK_SET: u8 = 1 << 1;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A handle was given another reclaim unit before its old one was full.
    NotFullyWritten = 0x00,
    /// A write named a handle that is not there.
    InvalidIdentifier = 0x03,
    /// The groomer moved what was live in a reclaim unit.
    Reallocated = 0x80,
}

/// All of them.
const KINDS: [Kind; 3] = [Kind::NotFullyWritten, Kind::InvalidIdentifier, Kind::Reallocated];

impl Kind {
    /// Whether a host caused it; otherwise the controller did.
    fn is_of_host(self) -> bool {
        (self as u8) < 0x80
    }

    fn bit(self) -> u8 {
        match self {
            Kind::NotFullyWritten => 1,
            Kind::InvalidIdentifier => 1 << 1,
            Kind::Reallocated => 1 << 2,
        }
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub kind: Kind,
    /// The placement identifier that it is about, which is as the host gave it.
    pub identifier: Option<u16>,
    /// Bytes that were moved, and the first of them.
    pub moved: Option<(u64, u64)>,
    /// When, milliseconds since 1970.
    pub ms: u64,
}

impl Event {
    /// The handle whose identifier that is. Nothing where it is of none.
    fn handle(&self) -> Option<u16> {
        self.identifier.filter(|_| self.kind != Kind::InvalidIdentifier)
    }

    /// As it stands in the log of a namespace with such blocks.
    fn encode(&self, block_shift: u8) -> [u8; EVENT_BYTES] {
        let mut event = [0; EVENT_BYTES];
        event[0] = self.kind as u8;
        event[1] = HAS_NAMESPACE;
        if let Some(identifier) = self.identifier {
            event[1] |= HAS_IDENTIFIER;
            put(&mut event, 2, &identifier.to_le_bytes());
        }
        if let Some(handle) = self.handle() {
            // The one reclaim group, and the handle.
            event[1] |= HAS_PLACE;
            put(&mut event, 34, &handle.to_le_bytes());
        }
        put(&mut event, 4, &self.ms.to_le_bytes()[..6]);
        event[10] = CLOCK_SET;
        put(&mut event, 12, &NAMESPACE.to_le_bytes());
        if let Some((bytes, first)) = self.moved {
            event[16] = HAS_BLOCK;
            // More than can be told count as all that can.
            put(&mut event, 18, &u16::try_from(bytes >> block_shift).unwrap_or(u16::MAX).to_le_bytes());
            put(&mut event, 20, &(first >> block_shift).to_le_bytes());
        }
        event
    }
}

/// The events of a device: all its controllers share them.
#[derive(Debug, Default)]
pub struct Events {
    /// Kinds that are noted of each handle.
    wanted: [u8; HANDLES_MAX],
    of_hosts: VecDeque<Event>,
    of_controller: VecDeque<Event>,
}

impl Events {
    /// Something happened: it is noted if a host wants that of the handle. What no handle of ours is to blame for counts as of the first
    /// one, where such writes go and whose settings hold for them.
    pub fn note(&mut self, event: Event) {
        let wanted = self.wanted.get(usize::from(event.handle().unwrap_or(0))).copied().unwrap_or(0);
        if wanted & event.kind.bit() == 0 {
            return;
        }
        let log = if event.kind.is_of_host() { &mut self.of_hosts } else { &mut self.of_controller };
        if log.len() == KEPT {
            log.pop_front();
        }
        log.push_back(event);
    }

    /// The log page of what hosts caused, or of the rest, for a namespace with such blocks: the oldest first.
    pub(super) fn page(&self, of_hosts: bool, block_shift: u8) -> Vec<u8> {
        let events = if of_hosts { &self.of_hosts } else { &self.of_controller };
        let mut page = vec![0; EVENT_BYTES];
        put(&mut page, 0, &(events.len() as u32).to_le_bytes());
        page.extend(events.iter().flat_map(|event| event.encode(block_shift)));
        page
    }

    /// Answers Get Features: which kinds there are, and whether each is noted of the handle. Two bytes each.
    ///
    /// # Errors
    /// There is no such handle.
    pub(super) fn get(&self, entry: &Sqe, namespace: &Namespace) -> Result<Value, Status> {
        let handle = handle(entry, namespace)?;
        let most = (entry.dword(11) >> 16 & 0xff) as usize;
        let wanted = self.wanted[handle];
        let data = KINDS.iter().take(most).flat_map(|kind| [*kind as u8, u8::from(wanted & kind.bit() != 0)]).collect();
        Ok(Value { result: most.min(KINDS.len()) as u32, data })
    }

    /// Carries out Set Features: from now on these kinds, a byte each, are noted of a handle, or are not.
    ///
    /// # Errors
    /// There is no such handle or kind, or the list is shorter than announced.
    pub(super) fn set(&mut self, entry: &Sqe, data: &[u8], namespace: &Namespace) -> Result<(), Status> {
        let handle = handle(entry, namespace)?;
        let count = (entry.dword(11) >> 16 & 0xff) as usize;
        let listed = data.get(..count).ok_or(Status::SGL_LENGTH_INVALID)?;
        let known = |number: &u8| KINDS.iter().find(|kind| **kind as u8 == *number).map(|kind| kind.bit());
        let kinds = listed.iter().map(|number| known(number).ok_or(Status::INVALID_FIELD));
        let bits = kinds.collect::<Result<Vec<u8>, Status>>()?.into_iter().fold(0, |all, bit| all | bit);
        match entry.dword(12) & 1 {
            0 => self.wanted[handle] &= !bits,
            _ => self.wanted[handle] |= bits,
        }
        Ok(())
    }
}

/// The handle that a feature is about.
fn handle(entry: &Sqe, namespace: &Namespace) -> Result<usize, Status> {
    let handle = (entry.dword(11) & 0xffff) as usize;
    if handle < usize::from(namespace.placements).min(HANDLES_MAX) { Ok(handle) } else { Err(Status::INVALID_FIELD) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{u16_at, u32_at, u64_at};
    use crate::command::admin;
    use crate::identify::tests::namespace;

    fn placing() -> Namespace {
        Namespace { placements: 5, ..namespace() }
    }

    fn feature(handle: u32, kinds: u32, enable: u32) -> Sqe {
        Sqe::new(admin::SET_FEATURES, 1, 1).with(10, 0x1e).with(11, kinds << 16 | handle).with(12, enable)
    }

    #[test]
    fn only_what_a_host_asks_for_of_a_handle_is_noted_the_oldest_first() {
        let mut events = Events::default();
        let moved = |identifier, ms| Event {
            kind: Kind::Reallocated,
            identifier: Some(identifier),
            moved: Some((7 << 12, 99 << 12)),
            ms,
        };
        events.note(moved(2, 1));
        assert_eq!(u32_at(&events.page(false, 12), 0), 0, "nothing by default");
        assert_eq!(events.set(&feature(2, 2, 1), &[0x80, 0x00], &placing()), Ok(()));
        events.note(moved(1, 2));
        assert_eq!(u32_at(&events.page(false, 12), 0), 0, "nothing of another handle");
        (3..70).for_each(|ms| events.note(moved(2, ms)));
        events.note(Event { kind: Kind::NotFullyWritten, identifier: Some(2), moved: None, ms: 70 });
        let page = events.page(false, 12);
        assert_eq!((u32_at(&page, 0), page.len()), (63, 64 * 64));
        let first = &page[64..128];
        assert_eq!((first[0], first[1], u16_at(first, 2), u64_at(first, 4)), (0x80, 7, 2, 7 | 2 << 48));
        assert_eq!((u32_at(first, 12), first[16], u16_at(first, 18), u64_at(first, 20)), (NAMESPACE, 1, 7, 99));
        assert_eq!((u16_at(first, 32), u16_at(first, 34)), (0, 2), "group and handle");
        let of_hosts = events.page(true, 12);
        assert_eq!((u32_at(&of_hosts, 0), of_hosts[64], of_hosts[65], of_hosts[80]), (1, 0, 7, 0));
        assert_eq!(events.set(&feature(2, 1, 0), &[0x80], &placing()), Ok(()));
        events.note(moved(2, 71));
        assert_eq!(events.page(false, 12), page, "not noted any more");
    }

    #[test]
    fn an_identifier_that_is_not_there_counts_as_of_the_first_handle() {
        let mut events = Events::default();
        let unknown =
            |identifier| Event { kind: Kind::InvalidIdentifier, identifier: Some(identifier), moved: None, ms: 0 };
        events.set(&feature(3, 1, 1), &[3], &placing()).expect("there is a fourth");
        events.note(unknown(77));
        assert_eq!(u32_at(&events.page(true, 12), 0), 0);
        events.set(&feature(0, 1, 1), &[3], &placing()).expect("there is a first");
        events.note(unknown(77));
        // The first one that is not there.
        events.note(unknown(5));
        let page = events.page(true, 12);
        assert_eq!((u16_at(&page, 130), u32_at(&page, 0)), (5, 2));
        assert_eq!(
            (u32_at(&page, 0), page[64], page[65], u16_at(&page, 66)),
            (2, 3, 3, 77),
            "as it was given, without a place"
        );
        let many = Event { kind: Kind::Reallocated, identifier: None, moved: Some((70_000 << 12, 5 << 12)), ms: 0 };
        events.set(&feature(0, 1, 1), &[0x80], &placing()).expect("there is a first");
        events.note(many);
        let page = events.page(false, 12);
        assert_eq!((page[65], u16_at(&page, 64 + 18)), (HAS_NAMESPACE, u16::MAX));
    }

    #[test]
    fn what_is_noted_can_be_asked_and_what_cannot_be_is_refused() {
        let mut events = Events::default();
        events.set(&feature(4, 2, 1), &[3, 0x80], &placing()).expect("the last one");
        let asked = |handle, most| events.get(&feature(handle, most, 0), &placing());
        assert_eq!(asked(4, 255), Ok(Value { result: 3, data: vec![0, 0, 3, 1, 0x80, 1] }));
        assert_eq!(asked(1, 2), Ok(Value { result: 2, data: vec![0, 0, 3, 0] }));
        assert_eq!(asked(5, 2), Err(Status::INVALID_FIELD));
        let mut events = Events::default();
        assert_eq!(events.set(&feature(5, 1, 1), &[3], &placing()), Err(Status::INVALID_FIELD));
        assert_eq!(events.set(&feature(0, 2, 1), &[3, 1], &placing()), Err(Status::INVALID_FIELD), "time limits");
        assert_eq!(events.set(&feature(0, 2, 1), &[3], &placing()), Err(Status::SGL_LENGTH_INVALID));
        assert_eq!(events.wanted, [0; HANDLES_MAX], "nothing of a list that is not sound");
    }
}
