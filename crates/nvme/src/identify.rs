//! Identify: the data structures by which a controller and its namespace describe themselves.
//!
//! Source: NVM Express Base Specification 2.0, 5.17, figures 274 (CNS values) and 275 (controller); NVM Command Set Specification
//! 1.0, 4.1.5, figures 97 (namespace) and 99 (limits of commands).

use crate::bytes::{put, put_text};
use crate::command::{ALL_NAMESPACES, SQE_BYTES};
use crate::namespace::Namespace;
use crate::pdu::IN_CAPSULE_BYTES;
use crate::property::{QUEUE_ENTRIES, VERSION};
use crate::{Sqe, Status, zoned};

/// Bytes of every structure.
pub const BYTES: usize = 4096;
/// The one namespace of a subsystem.
pub const NAMESPACE: u32 = 1;
/// Asynchronous event requests that a controller holds at most.
pub const EVENT_REQUESTS: u8 = 4;
/// Entries of the error log.
pub const ERROR_ENTRIES: u8 = 64;
/// Where a namespace says which snapshot it shows, 8 bytes; 0 for none. Identify Namespace leaves what is there to vendors.
pub const SNAPSHOT_AT: usize = 384;
/// Keep alive timers count in so many milliseconds (KAS is in 100 ms).
pub const KEEP_ALIVE_GRAIN_MS: u32 = 1000;
/// Ranges of one copy at most.
pub const COPY_RANGES: u8 = 128;
/// Ranges of one deallocation at most (NVM Command Set Specification 1.0, figure 36).
pub const DEALLOCATE_RANGES: usize = 256;
/// The one endurance group.
pub const ENDURANCE_GROUP: u16 = 1;
/// Temperatures, in kelvin, from which on a device is too warm, and much too warm: 70 and 80 degrees Celsius, as an ioDrive throttles.
pub const WARM_KELVIN: [u16; 2] = [343, 353];

/// Which structure is asked for (CNS).
pub(crate) mod cns {
    pub const NAMESPACE: u8 = 0x00;
    pub const CONTROLLER: u8 = 0x01;
    pub const ACTIVE_NAMESPACES: u8 = 0x02;
    pub const DESCRIPTORS: u8 = 0x03;
    pub const SET_NAMESPACE: u8 = 0x05;
    pub const SET_CONTROLLER: u8 = 0x06;
    pub const SET_ACTIVE_NAMESPACES: u8 = 0x07;
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    pub const ALLOCATED_NAMESPACES: u8 = 0x10;
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    pub const COMMAND_SETS: u8 = 0x1c;
}

/// What a controller says of itself besides its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its number within the subsystem.
    pub controller: u16,
    /// The subsystem's name.
    pub subsystem: &'a str,
}

/// Answers Identify of a controller with one namespace.
///
/// # Errors
/// There is no such structure, or no such namespace.
pub fn identify(entry: &Sqe, who: Identity<'_>, namespace: &Namespace) -> Result<[u8; BYTES], Status> {
    let which = (entry.dword(10) & 0xff) as u8;
    // The command set that some structures are of: 0 is the NVM command set.
    let set = entry.dword(11) >> 24;
    let nsid = entry.nsid();
    let ours = || match nsid {
        NAMESPACE => Ok(()),
        _ => Err(Status::INVALID_NAMESPACE),
    };
    let mut page = [0; BYTES];
    match which {
        cns::CONTROLLER => page = controller(who, namespace),
        // All namespaces: what they have in common.
        cns::NAMESPACE if nsid == ALL_NAMESPACES => page = common(namespace),
        cns::NAMESPACE | cns::ALLOCATED_NAMESPACE => {
            ours()?;
            page = blocks(namespace);
        }
        cns::ACTIVE_NAMESPACES | cns::ALLOCATED_NAMESPACES | cns::SET_ACTIVE_NAMESPACES => {
            if nsid >= ALL_NAMESPACES - 1 {
                return Err(Status::INVALID_NAMESPACE);
            }
            if nsid < NAMESPACE && (which != cns::SET_ACTIVE_NAMESPACES || set == namespace.command_set()) {
                put(&mut page, 0, &NAMESPACE.to_le_bytes());
            }
        }
        cns::DESCRIPTORS => {
            ours()?;
            page = descriptors(namespace);
        }
        cns::SET_NAMESPACE if set == 0 => ours()?,
        cns::SET_NAMESPACE if let (zoned::COMMAND_SET, Some(zones)) = (set, &namespace.zones) => {
            ours()?;
            page = zoned::namespace(namespace, zones);
        }
        // Verify, Write Zeroes, deallocations and appends of any size: zeros.
        cns::SET_CONTROLLER if set == 0 || set == namespace.command_set() => {}
        cns::INDEPENDENT_NAMESPACE => {
            ours()?;
            page = independent(namespace);
        }
        // One combination of command sets: the NVM command set, and the namespace's.
        cns::COMMAND_SETS => page[0] = 1 | 1 << namespace.command_set(),
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(page)
}

/// A number of blocks as the specification counts them there: one less, and 16 bits.
fn less_one(blocks: u32) -> u16 {
    u16::try_from(blocks.saturating_sub(1)).unwrap_or(u16::MAX)
}

/// What every controller says of itself.
fn any_controller(who: Identity<'_>, serial: &str, model: &str, firmware: &str) -> [u8; BYTES] {
    let mut page = [0; BYTES];
    put_text(&mut page, 4, 20, serial);
    put_text(&mut page, 24, 40, model);
    put_text(&mut page, 64, 8, firmware);
    put(&mut page, 78, &who.controller.to_le_bytes());
    put(&mut page, 80, &VERSION.to_le_bytes());
    // Event requests at a time, less one.
    page[259] = EVENT_REQUESTS - 1;
    // Log pages: any part of one.
    page[261] = 1 << 2;
    page[262] = ERROR_ENTRIES - 1;
    put(&mut page, 320, &((KEEP_ALIVE_GRAIN_MS / 100) as u16).to_le_bytes());
    // Entries of 64 and of 16 bytes, required and maximum.
    page[512] = 0x66;
    page[513] = 0x44;
    put(&mut page, 514, &QUEUE_ENTRIES.to_le_bytes());
    // Scatter gather lists: taken, longer than needed, as offsets in the capsule, and as transport descriptors.
    put(&mut page, 536, &(1u32 | 1 << 18 | 1 << 20 | 1 << 21).to_le_bytes());
    put(&mut page, 768, &who.subsystem.as_bytes()[..who.subsystem.len().min(255)]);
    // One data descriptor a command.
    page[1803] = 1;
    page
}

/// Answers Identify of a discovery controller, which has no namespace.
///
/// # Errors
/// There is no such structure.
pub fn identify_discovery(entry: &Sqe, who: Identity<'_>, firmware: &str) -> Result<[u8; BYTES], Status> {
    if (entry.dword(10) & 0xff) as u8 != cns::CONTROLLER {
        return Err(Status::INVALID_FIELD);
    }
    let mut page = any_controller(who, "discovery", "OpenVSL discovery", firmware);
    // The largest transfer: 1 MiB.
    page[77] = 8;
    // Events: the discovery log changed.
    put(&mut page, 92, &(1u32 << 31).to_le_bytes());
    // A discovery controller.
    page[111] = 2;
    put(&mut page, 1792, &(SQE_BYTES as u32 / 16).to_le_bytes());
    put(&mut page, 1796, &1u32.to_le_bytes());
    Ok(page)
}

fn controller(who: Identity<'_>, namespace: &Namespace) -> [u8; BYTES] {
    let mut page = any_controller(who, &namespace.serial, &namespace.model, &namespace.firmware);
    // Several controllers, each for a host (CMIC bit 1). Linux's multipath layer, which this turns on, keeps requests over a restart of ours;
    // without it they fail after five tries to send.
    page[76] = 1 << 1;
    // The largest transfer, as a power of two of 4 KiB pages.
    page[77] = (namespace.max_request_bytes.max(4096).ilog2() - 12) as u8;
    // Events: namespace attributes changed.
    put(&mut page, 92, &(1u32 << 8).to_le_bytes());
    // A host identifier of 128 bits, endurance groups, keep alive by traffic, and flexible data placement.
    put(&mut page, 96, &(1u32 | 1 << 4 | 1 << 6 | u32::from(namespace.places()) << 19).to_le_bytes());
    // An I/O controller.
    page[111] = 1;
    // Aborts at a time, less one.
    page[258] = 3;
    // Directives.
    put(&mut page, 256, &(u16::from(namespace.places()) << 5).to_le_bytes());
    // Firmware: one slot, read only.
    page[260] = 1 << 1 | 1;
    // Log pages: commands and their effects, and any part of a page.
    page[261] = 1 << 1 | 1 << 2;
    for (at, kelvin) in [(266, WARM_KELVIN[0]), (268, WARM_KELVIN[1])] {
        put(&mut page, at, &kelvin.to_le_bytes());
    }
    put(&mut page, 280, &namespace.capacity_bytes().to_le_bytes());
    put(&mut page, 340, &ENDURANCE_GROUP.to_le_bytes());
    put(&mut page, 516, &NAMESPACE.to_le_bytes());
    // Compare, dataset management, write zeroes, verify, copy.
    put(&mut page, 520, &(1u16 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8).to_le_bytes());
    // Compare and write, fused.
    put(&mut page, 522, &1u16.to_le_bytes());
    // A volatile cache, if there is one; flush takes the namespace of all.
    page[525] = u8::from(namespace.volatile_cache) | 3 << 1;
    // Atomic while nothing fails; over failures the namespace says more. Both count in the largest blocks that there are.
    put(&mut page, 526, &less_one(namespace.max_blocks()).to_le_bytes());
    put(&mut page, 532, &less_one(namespace.max_blocks()).to_le_bytes());
    // Copy descriptors of format 0.
    put(&mut page, 534, &1u16.to_le_bytes());
    // Capsules, in units of 16 bytes: a command with its data, a completion.
    put(&mut page, 1792, &((SQE_BYTES as u32 + IN_CAPSULE_BYTES) / 16).to_le_bytes());
    put(&mut page, 1796, &1u32.to_le_bytes());
    // An I/O queue may be ended alone, by Disconnect (OFCS).
    put(&mut page, 1804, &1u16.to_le_bytes());
    page
}

/// The sizes of blocks that a namespace could have.
fn formats(namespace: &Namespace, page: &mut [u8; BYTES]) -> u8 {
    // Each as a power of two, behind the size of the metadata, and how well it performs: all the same.
    page[128..132].copy_from_slice(&[0, 0, namespace.block_shift, 0]);
    1
}

fn blocks(namespace: &Namespace) -> [u8; BYTES] {
    let mut page = common(namespace);
    let size = namespace.blocks();
    let used = (namespace.used_bytes >> namespace.block_shift).min(size);
    for (at, blocks) in [(0, size), (8, namespace.capacity_bytes() >> namespace.block_shift), (16, used)] {
        put(&mut page, at, &blocks.to_le_bytes());
    }
    put(&mut page, 48, &namespace.capacity_bytes().to_le_bytes());
    put(&mut page, 104, &namespace.identifier());
    put(&mut page, SNAPSHOT_AT, &namespace.snapshot.unwrap_or(0).to_le_bytes());
    page
}

/// What holds of every namespace.
fn common(namespace: &Namespace) -> [u8; BYTES] {
    let mut page = [0; BYTES];
    let atomic = less_one(namespace.max_blocks());
    // Thin, with atomic units of its own, and preferred sizes of writes.
    page[24] = 1 | 1 << 1 | 1 << 4;
    page[25] = formats(namespace, &mut page) - 1;
    // Several controllers may use it.
    page[30] = 1;
    // Deallocated blocks read as zeros; Write Zeroes may deallocate.
    page[33] = 1 | 1 << 3;
    // Atomic units: normally, over a power failure, of compare and write. No boundaries.
    for at in [34, 36, 38] {
        put(&mut page, at, &atomic.to_le_bytes());
    }
    // What is best written and deallocated: whole sectors of the layer, 4 KiB.
    let preferred = less_one((4096u32 >> namespace.block_shift.min(12)).max(1));
    for at in [64, 66, 68, 70] {
        put(&mut page, at, &preferred.to_le_bytes());
    }
    put(&mut page, 72, &less_one(namespace.max_blocks() + 1).to_le_bytes());
    // Copy: blocks of one range, of all, and how many ranges (one less).
    put(&mut page, 74, &u16::try_from(namespace.max_blocks()).unwrap_or(u16::MAX).to_le_bytes());
    put(&mut page, 76, &namespace.max_blocks().to_le_bytes());
    page[80] = COPY_RANGES - 1;
    // Write protected.
    page[99] = u8::from(namespace.read_only);
    put(&mut page, 102, &ENDURANCE_GROUP.to_le_bytes());
    page
}

fn descriptors(namespace: &Namespace) -> [u8; BYTES] {
    let mut page = [0; BYTES];
    // NGUID (2), UUID (3), command set (4): type, length, two reserved bytes, then the identifier.
    page[..4].copy_from_slice(&[2, 16, 0, 0]);
    put(&mut page, 4, &namespace.identifier());
    page[20..24].copy_from_slice(&[3, 16, 0, 0]);
    put(&mut page, 24, &namespace.identifier());
    page[40..44].copy_from_slice(&[4, 1, 0, 0]);
    page[44] = namespace.command_set() as u8;
    page
}

fn independent(namespace: &Namespace) -> [u8; BYTES] {
    let mut page = [0; BYTES];
    page[1] = 1;
    page[8] = u8::from(namespace.read_only);
    put(&mut page, 12, &ENDURANCE_GROUP.to_le_bytes());
    // Ready.
    page[14] = 1;
    page
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bytes::{u16_at, u32_at, u64_at};
    use crate::command::admin;

    /// 1 GiB in blocks of 16 KiB over sectors of 4 KiB.
    pub fn namespace() -> Namespace {
        Namespace {
            uuid: [0xab; 16],
            serial: "abab".into(),
            model: "OpenVSL flash".into(),
            firmware: "0.1.0".into(),
            block_shift: 14,
            sector_shift: 12,
            bytes: 1 << 30,
            used_bytes: 1 << 20,
            max_request_bytes: 1 << 20,
            read_only: false,
            snapshot: None,
            volatile_cache: true,
            placements: 1,
            reclaim_unit_bytes: 1 << 20,
            zones: None,
        }
    }

    const WHO: Identity<'static> = Identity { controller: 3, subsystem: "nqn.x" };

    fn ask(which: u8, nsid: u32) -> Result<[u8; BYTES], Status> {
        identify(&Sqe::new(admin::IDENTIFY, 0, nsid).with(10, u32::from(which)), WHO, &namespace())
    }

    #[test]
    fn a_controller_says_what_it_can_do() {
        let page = ask(cns::CONTROLLER, 0).expect("there");
        assert_eq!((&page[4..10], page[77]), (&b"abab  "[..], 8));
        assert_eq!((u16_at(&page, 78), u32_at(&page, 80)), (3, 0x2_0000));
        assert_eq!(u32_at(&page, 1792), (64 + (128 << 10)) / 16, "128 KiB in a capsule");
        assert_eq!(page[525] & 1, 1);
        assert_eq!(&page[768..774], b"nqn.x\0");
    }

    #[test]
    fn a_namespace_says_how_large_it_is_and_what_is_never_torn() {
        let page = ask(cns::NAMESPACE, 1).expect("there");
        assert_eq!((u64_at(&page, 0), u64_at(&page, 16)), (65_536, 64));
        // 1 MiB is 64 blocks of 16 KiB.
        assert_eq!((u16_at(&page, 34), u16_at(&page, 36), page[130]), (63, 63, 14));
        assert_eq!(page[24] & 3, 3, "thin, and those units count");
        assert_eq!(page[104..120], [0xab; 16]);
        assert_eq!(ask(cns::NAMESPACE, 2), Err(Status::INVALID_NAMESPACE));
        assert_eq!(u64_at(&ask(cns::NAMESPACE, ALL_NAMESPACES).expect("there"), 0), 0);
    }

    #[test]
    fn lists_hold_the_one_namespace() {
        assert_eq!(u32_at(&ask(cns::ACTIVE_NAMESPACES, 0).expect("there"), 0), 1);
        assert_eq!(u32_at(&ask(cns::ACTIVE_NAMESPACES, 1).expect("there"), 0), 0);
        assert_eq!(ask(cns::ACTIVE_NAMESPACES, ALL_NAMESPACES), Err(Status::INVALID_NAMESPACE));
        assert_eq!(ask(0x30, 0), Err(Status::INVALID_FIELD));
        assert_eq!(ask(cns::DESCRIPTORS, 1).expect("there")[20..28], [3, 16, 0, 0, 0xab, 0xab, 0xab, 0xab]);
    }
}
