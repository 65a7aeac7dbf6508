//! Flexible data placement: a host says of its writes which belong together, and they go to reclaim units of their own.
//!
//! There is one reclaim group, and a placement identifier is the number of a placement handle. A handle's reclaim unit is the erase block
//! that its writes go to. What the groomer moves is put together whatever handle it came by: *initially isolated*.
//!
//! Source: NVM Express Base Specification 2.1, 3.2.4, 5.1.12.1.28 to 31 (log pages 20h to 23h), 5.1.25.1.20 and 21 (features 1Dh and
//! 1Eh), 7.3 and 7.4 (I/O management), 8.1.8.3 and 8.1.10 (directives).

mod events;

pub use events::{Event, Events, Kind};

use crate::bytes::{put, u16_at};
use crate::feature::{Unsupported, Value, is_not_saved};
use crate::identify::ENDURANCE_GROUP;
use crate::log::{Wanted, page};
use crate::namespace::{Health, Namespace, Wear};
use crate::{Sqe, Status};

/// Handles that a device may have.
const HANDLES_MAX: usize = 16;
/// The directive of a write that names a handle (DTYPE), and the one that describes directives.
const DATA_PLACEMENT: u8 = 2;
/// Dword 12 of a write: the directive type, bits 23:20.
const DIRECTIVE_SHIFT: u32 = 20;
/// Handles whose writes stay apart until the groomer moves them.
const INITIALLY_ISOLATED: u8 = 1;
/// Bytes in front of the descriptors of a log page or status: configurations, usage, status.
const HEADERS: [usize; 3] = [16, 8, 16];
/// Bytes of a configuration without its handles.
const CONFIGURATION_BYTES: usize = 64;
/// Bytes of a handle in the status.
const STATUS_BYTES: usize = 32;
/// Bytes of a placement identifier in an update of handles.
pub const IDENTIFIER_BYTES: usize = 2;

/// Features.
pub mod feature {
    /// Flexible data placement.
    pub const PLACEMENT: u8 = 0x1d;
    /// Which of its events are recorded.
    pub const EVENTS: u8 = 0x1e;
}

/// Operations of I/O management, in bits 7:0 of dword 10.
pub mod operation {
    /// Receive: how the handles stand.
    pub const STATUS: u8 = 1;
    /// Send: handles refer to empty reclaim units from now on.
    pub const UPDATE: u8 = 1;
}

impl Namespace {
    /// Whether hosts may say what belongs together.
    pub fn places(&self) -> bool {
        self.placements > 1
    }

    /// The placement identifier that a write names, if it names one.
    #[inline]
    fn named_placement(&self, write: &Sqe) -> Result<Option<u16>, Status> {
        match (write.dword(12) >> DIRECTIVE_SHIFT & 0xf) as u8 {
            0 => Ok(None),
            DATA_PLACEMENT if self.places() => Ok(Some((write.dword(13) >> 16) as u16)),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// The handle that a write goes to: 0 where it names none, or one that is not there.
    #[inline]
    pub(crate) fn placement(&self, write: &Sqe) -> Result<u8, Status> {
        let known = |identifier: &u16| *identifier < u16::from(self.placements);
        Ok(self.named_placement(write)?.filter(known).unwrap_or(0) as u8)
    }

    /// The identifier that a write names, where it is of no handle that is there.
    #[inline]
    pub fn unknown_placement(&self, write: &Sqe) -> Option<u16> {
        self.named_placement(write).ok()?.filter(|identifier| *identifier >= u16::from(self.placements))
    }

    /// The handles that an update names.
    ///
    /// # Errors
    /// There is no such handle.
    pub fn updated(&self, data: &[u8]) -> Result<Vec<u8>, Status> {
        let known = |handle: u16| handle < u16::from(self.placements);
        let handles = data.chunks_exact(IDENTIFIER_BYTES).map(|handle| u16_at(handle, 0));
        handles.map(|handle| if known(handle) { Ok(handle as u8) } else { Err(Status::INVALID_FIELD) }).collect()
    }
}

/// A log page; nothing where it is another one, or hosts may not say what belongs together.
///
/// # Errors
/// There is no such endurance group.
pub fn log(
    wanted: &Wanted,
    namespace: &Namespace,
    (health, wear): (&Health, &Wear),
    events: &Events,
) -> Result<Option<Vec<u8>>, Status> {
    if !namespace.places() {
        return Ok(None);
    }
    let log = match wanted.page {
        page::PLACEMENT_CONFIGURATIONS => configurations(namespace),
        page::HANDLE_USAGE => usage(namespace),
        page::PLACEMENT_STATISTICS => statistics(namespace, health, wear),
        page::PLACEMENT_EVENTS => events.page(wanted.specific & 1 != 0, namespace.block_shift),
        _ => return Ok(None),
    };
    if wanted.subject == ENDURANCE_GROUP { Ok(Some(log)) } else { Err(Status::INVALID_FIELD) }
}

/// The one configuration: one reclaim group, and the device's handles.
fn configurations(namespace: &Namespace) -> Vec<u8> {
    let handles = usize::from(namespace.placements);
    let bytes = (CONFIGURATION_BYTES + 4 * handles).next_multiple_of(8);
    let mut log = vec![0; HEADERS[0] + bytes];
    let size = log.len() as u32;
    put(&mut log, 4, &size.to_le_bytes());
    let at = HEADERS[0];
    put(&mut log, at, &(bytes as u16).to_le_bytes());
    // Bit 7: it is valid. Bit 4: there is a volatile write cache. Bits 3:0: an identifier has no bits for a group.
    log[at + 2] = 1 << 7 | u8::from(namespace.volatile_cache) << 4;
    put(&mut log, at + 4, &1u32.to_le_bytes());
    put(&mut log, at + 8, &(handles as u16).to_le_bytes());
    // Identifiers of a namespace, less one.
    put(&mut log, at + 10, &(handles as u16 - 1).to_le_bytes());
    put(&mut log, at + 12, &1u32.to_le_bytes());
    put(&mut log, at + 16, &namespace.reclaim_unit_bytes.to_le_bytes());
    for handle in 0..handles {
        log[at + CONFIGURATION_BYTES + 4 * handle] = INITIALLY_ISOLATED;
    }
    log
}

/// Who uses the handles: the host all of them.
fn usage(namespace: &Namespace) -> Vec<u8> {
    let handles = usize::from(namespace.placements);
    let mut log = vec![0; HEADERS[1] + 8 * handles];
    put(&mut log, 0, &(handles as u16).to_le_bytes());
    for handle in 0..handles {
        log[HEADERS[1] + 8 * handle] = 1;
    }
    log
}

/// Bytes that the host wrote, that the media were written, and that were erased.
fn statistics(namespace: &Namespace, health: &Health, wear: &Wear) -> Vec<u8> {
    let mut log = vec![0; 64];
    let erased = u128::from(wear.erased_blocks) * u128::from(namespace.reclaim_unit_bytes);
    let figures = [u128::from(health.written_bytes), u128::from(health.media_written_bytes), erased];
    for (number, figure) in figures.into_iter().enumerate() {
        put(&mut log, 16 * number, &figure.to_le_bytes());
    }
    log
}

/// How the handles stand, cut to so many bytes: of each, how many bytes are left in its reclaim unit.
pub fn status(namespace: &Namespace, left_bytes: impl Fn(u8) -> u64, bytes: usize) -> Vec<u8> {
    let handles = usize::from(namespace.placements);
    let mut status = vec![0; HEADERS[2] + STATUS_BYTES * handles];
    put(&mut status, 14, &(handles as u16).to_le_bytes());
    for handle in 0..namespace.placements {
        let at = HEADERS[2] + STATUS_BYTES * usize::from(handle);
        for field in [0, 2] {
            put(&mut status, at + field, &u16::from(handle).to_le_bytes());
        }
        put(&mut status, at + 8, &(left_bytes(handle) >> namespace.block_shift).to_le_bytes());
    }
    status.resize(bytes, 0);
    status
}

/// Answers Get Features; nothing where it is no feature of placement.
pub(crate) fn value(entry: &Sqe, namespace: &Namespace, events: &Events) -> Option<Result<Value, Status>> {
    let known = entry.dword(11) & 0xffff == u32::from(ENDURANCE_GROUP);
    match (entry.dword(10) & 0xff) as u8 {
        // Enabled, with configuration 0.
        feature::PLACEMENT if namespace.places() && known => Some(Ok(Value { result: 1, data: Vec::new() })),
        feature::PLACEMENT if namespace.places() => Some(Err(Status::INVALID_FIELD)),
        feature::EVENTS if namespace.places() => Some(events.get(entry, namespace)),
        _ => None,
    }
}

/// Carries out Set Features; nothing where it is no feature of placement that can be set.
pub(crate) fn set(
    (entry, data): (&Sqe, &[u8]),
    namespace: &Namespace,
    events: &mut Events,
) -> Option<Result<u32, Status>> {
    let is_ours = namespace.places() && (entry.dword(10) & 0xff) as u8 == feature::EVENTS;
    is_ours.then(|| {
        is_not_saved(entry).map_err(Unsupported::status)?;
        events.set(entry, data, namespace).map(|()| 0)
    })
}

/// Answers Directive Receive: the directives that are there, that are enabled, and that stay so. Each in 32 bytes.
///
/// # Errors
/// Something else is asked for.
pub(crate) fn directives(entry: &Sqe, namespace: &Namespace) -> Result<Vec<u8>, Status> {
    let (operation, directive) = (entry.dword(11) & 0xff, entry.dword(11) >> 8 & 0xff);
    if (operation, directive) != (1, 0) || !namespace.places() {
        return Err(Status::INVALID_FIELD);
    }
    let mut page = vec![0; 4096];
    for at in [0, 32, 64] {
        page[at] = 1 | 1 << DATA_PLACEMENT;
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{u32_at, u64_at};
    use crate::command::{admin, nvm};
    use crate::identify::tests::namespace;

    fn placing() -> Namespace {
        Namespace { placements: 5, reclaim_unit_bytes: 4 << 20, ..namespace() }
    }

    fn asked(page: u8, group: u16, namespace: &Namespace) -> Result<Option<Vec<u8>>, Status> {
        let health = Health { written_bytes: 7, media_written_bytes: 9, ..Health::default() };
        let wanted = Sqe::new(admin::GET_LOG_PAGE, 1, 0).with(10, page.into()).with(11, u32::from(group) << 16);
        let wear = Wear { erased_blocks: 3, ..Wear::default() };
        log(&Wanted::decode(&wanted)?, namespace, (&health, &wear), &Events::default())
    }

    #[test]
    fn the_configuration_is_as_a_host_reads_it() {
        let log = asked(page::PLACEMENT_CONFIGURATIONS, 1, &placing()).expect("ours").expect("there");
        assert_eq!((u16_at(&log, 0), u32_at(&log, 4) as usize), (0, log.len()), "one configuration");
        let one = &log[16..];
        assert_eq!((usize::from(u16_at(one, 0)), one[2]), (one.len(), 0x90));
        assert_eq!((u32_at(one, 4), u16_at(one, 8), u16_at(one, 10), u64_at(one, 16)), (1, 5, 4, 4 << 20));
        assert!((0..5).all(|handle| one[64 + 4 * handle] == INITIALLY_ISOLATED));
        let usage = asked(page::HANDLE_USAGE, 1, &placing()).expect("ours").expect("there");
        assert_eq!((u16_at(&usage, 0), usage.len()), (5, 48));
        let figures = asked(page::PLACEMENT_STATISTICS, 1, &placing()).expect("ours").expect("there");
        assert_eq!([0, 16, 32].map(|at| u64_at(&figures, at)), [7, 9, 12 << 20]);
    }

    #[test]
    fn where_nothing_is_placed_there_is_nothing_of_it() {
        assert_eq!(asked(page::PLACEMENT_CONFIGURATIONS, 1, &namespace()), Ok(None));
        assert_eq!(asked(page::PLACEMENT_CONFIGURATIONS, 2, &placing()), Err(Status::INVALID_FIELD));
        assert_eq!(asked(page::HEALTH, 1, &placing()), Ok(None));
        let value = |namespace: &Namespace, group: u32| {
            let entry = Sqe::new(admin::GET_FEATURES, 1, 0).with(10, feature::PLACEMENT.into()).with(11, group);
            value(&entry, namespace, &Events::default())
        };
        assert_eq!(value(&namespace(), 1), None);
        assert_eq!(value(&placing(), 1), Some(Ok(Value { result: 1, data: Vec::new() })));
        assert_eq!(value(&placing(), 2), Some(Err(Status::INVALID_FIELD)));
    }

    #[test]
    fn a_write_goes_where_it_says_or_to_the_first_handle() {
        let write = |directive: u32, handle: u32| {
            Sqe::new(nvm::WRITE, 1, 1).with(12, directive << DIRECTIVE_SHIFT).with(13, handle << 16)
        };
        let placing = placing();
        let handles = [(0, 3), (2, 3), (2, 5), (2, 0xffff)]
            .map(|(directive, handle)| placing.placement(&write(directive, handle)));
        assert_eq!(handles, [Ok(0), Ok(3), Ok(0), Ok(0)]);
        let unknown =
            [(0, 7), (2, 4), (2, 5), (2, 0xffff)].map(|(how, handle)| placing.unknown_placement(&write(how, handle)));
        assert_eq!(unknown, [None, None, Some(5), Some(0xffff)]);
        assert_eq!(namespace().unknown_placement(&write(2, 9)), None, "nothing is placed");
        assert_eq!(placing.placement(&write(1, 3)), Err(Status::INVALID_FIELD), "streams");
        assert_eq!(namespace().placement(&write(2, 0)), Err(Status::INVALID_FIELD));
        assert_eq!(placing.updated(&[4, 0, 1, 0]), Ok(vec![4, 1]));
        assert_eq!(placing.updated(&[4, 0, 5, 0]), Err(Status::INVALID_FIELD));
        assert_eq!(placing.updated(&[1, 1]), Err(Status::INVALID_FIELD));
    }

    #[test]
    fn the_status_tells_what_is_left_in_blocks_of_the_namespace() {
        let all = status(&placing(), |handle| u64::from(handle) << 20, 4096);
        assert_eq!((u16_at(&all, 14), all.len()), (5, 4096));
        let last = &all[16 + 4 * 32..];
        assert_eq!((u16_at(last, 0), u16_at(last, 2), u64_at(last, 8)), (4, 4, 256));
        assert_eq!(status(&placing(), |_| 0, 16).len(), 16);
    }
}
