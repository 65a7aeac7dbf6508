//! What a controller says of itself and its namespaces, as far as a host needs it.
//!
//! Source: NVM Express Base Specification 2.0, 5.17.2.1 (Identify Controller) and 5.16.1.23 (Discovery); NVM Command Set
//! Specification 1.0, 4.1.5.1 (Identify Namespace).

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::identify::SNAPSHOT_AT;
use crate::pdu::COMMAND_BYTES;

/// What Identify says of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerInfo {
    /// Serial number.
    pub serial: String,
    /// Model number.
    pub model: String,
    /// Firmware revision.
    pub firmware: String,
    /// The controller's identifier.
    pub cntlid: u16,
    /// Data of one command at most, in bytes where the smallest page is 4 KiB; nothing where there is no limit.
    pub max_transfer_bytes: Option<u64>,
    /// Namespaces at most.
    pub namespaces: u32,
    /// Optional NVM commands (ONCS).
    pub optional_commands: u16,
    /// Whether Compare and Write may be fused.
    pub fuses_compare_and_write: bool,
    /// Whether there is a volatile write cache: what was written is durable after a flush only.
    pub has_volatile_cache: bool,
    /// Data that a capsule of an I/O queue takes, bytes.
    pub in_capsule_bytes: u32,
    /// Units of the keep alive timer, ms; 0 where there is none.
    pub keep_alive_unit_ms: u32,
    /// Asynchronous Event Requests at a time.
    pub event_requests: u16,
}

impl ControllerInfo {
    /// Takes what Identify gave back apart.
    pub fn decode(bytes: &[u8]) -> ControllerInfo {
        let mdts = u32::from(bytes.get(77).copied().unwrap_or(0));
        // IOCCSZ counts the entry, too, in units of 16 bytes.
        let capsule = u32_at(bytes, 1792).saturating_mul(16);
        ControllerInfo {
            serial: text(bytes, 4, 20),
            model: text(bytes, 24, 40),
            firmware: text(bytes, 64, 8),
            cntlid: u16_at(bytes, 78),
            max_transfer_bytes: (mdts > 0).then(|| 4096u64.checked_shl(mdts).filter(|max| *max > 0)).flatten(),
            namespaces: u32_at(bytes, 516),
            optional_commands: u16_at(bytes, 520),
            fuses_compare_and_write: u16_at(bytes, 522) & 1 != 0,
            has_volatile_cache: bytes.get(525).is_some_and(|cache| cache & 1 != 0),
            in_capsule_bytes: capsule.saturating_sub((COMMAND_BYTES - crate::pdu::COMMON_BYTES) as u32),
            keep_alive_unit_ms: u32::from(u16_at(bytes, 320)) * 100,
            event_requests: u16::from(bytes.get(259).copied().unwrap_or(0)) + 1,
        }
    }
}

/// What Identify says of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its number.
    pub nsid: u32,
    /// How many blocks it has.
    pub blocks: u64,
    /// Bytes of a block, at least 512.
    pub block_bytes: u32,
    /// Blocks that are mapped (NUSE).
    pub used_blocks: u64,
    /// Namespace features.
    pub features: u8,
    /// Blocks of a write that are not torn by a power failure (NAWUPF), where the namespace says it.
    pub atomic_blocks: Option<u32>,
    /// It takes no writes (NSATTR, bit 0).
    pub read_only: bool,
    /// Globally unique identifier.
    pub nguid: [u8; 16],
    /// Of a device of OpenVSL: the number of the snapshot that it shows.
    pub snapshot: Option<u64>,
}

impl Namespace {
    /// Takes what Identify gave back apart; nothing where the block size is none that a command could use, or where there is no such
    /// namespace.
    pub fn decode(nsid: u32, bytes: &[u8]) -> Option<Namespace> {
        let format = usize::from(bytes.get(26)? & 0x0f);
        let shift = u32::from(*bytes.get(128 + 4 * format + 2)?);
        let features = *bytes.get(24)?;
        let mut nguid = [0; 16];
        nguid.copy_from_slice(bytes.get(104..120)?);
        let blocks = u64_at(bytes, 0);
        (blocks > 0 && (9..=24).contains(&shift)).then(|| Namespace {
            nsid,
            blocks,
            block_bytes: 1 << shift,
            used_blocks: u64_at(bytes, 16),
            features,
            atomic_blocks: (features & 1 << 1 != 0).then(|| u32::from(u16_at(bytes, 36)) + 1),
            read_only: bytes.get(99).is_some_and(|attributes| attributes & 1 != 0),
            nguid,
            snapshot: Some(u64_at(bytes, SNAPSHOT_AT)).filter(|snapshot| *snapshot > 0),
        })
    }

    /// Whole blocks in so many bytes.
    pub(super) fn blocks_of(&self, data: &[u8]) -> u32 {
        u32::try_from(data.len()).unwrap_or(u32::MAX) / self.block_bytes
    }
}

/// Bytes of the header, and of each entry, of the discovery log page.
pub(super) const DISCOVERY_BYTES: usize = 1024;

/// A subsystem that a discovery controller names, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryEntry {
    /// Transport: 3 is TCP.
    pub transport: u8,
    /// Address family: 1 is IPv4, 2 is IPv6.
    pub family: u8,
    /// 1 is another discovery service, 2 an NVM subsystem, 3 this discovery service.
    pub kind: u8,
    /// The subsystem's name.
    pub subsystem: String,
    /// Its address.
    pub address: String,
    /// Its service: the port.
    pub service: String,
}

/// The discovery log page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryLog {
    /// Counts changes of the page.
    pub generation: u64,
    /// What it lists.
    pub entries: Vec<DiscoveryEntry>,
}

impl DiscoveryLog {
    /// Takes a page of a header and entries apart; it may be cut after any entry.
    pub fn decode(bytes: &[u8]) -> DiscoveryLog {
        let entry = |bytes: &[u8]| DiscoveryEntry {
            transport: bytes[0],
            family: bytes[1],
            kind: bytes[2],
            subsystem: text(bytes, 256, 256),
            address: text(bytes, 512, 256),
            service: text(bytes, 32, 32),
        };
        let rest = bytes.get(DISCOVERY_BYTES..).unwrap_or_default();
        DiscoveryLog { generation: u64_at(bytes, 0), entries: rest.chunks_exact(DISCOVERY_BYTES).map(entry).collect() }
    }
}

/// Text that is padded with spaces or zeros.
fn text(bytes: &[u8], at: usize, len: usize) -> String {
    let field = bytes.get(at..at + len).unwrap_or_default();
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_says_what_its_blocks_are() {
        let mut bytes = vec![0; 4096];
        bytes[..8].copy_from_slice(&1000u64.to_le_bytes());
        bytes[24] = 1 << 1;
        bytes[26] = 1;
        bytes[36] = 255;
        bytes[128 + 4 + 2] = 12;
        let namespace = Namespace::decode(1, &bytes).expect("a namespace");
        assert_eq!((namespace.block_bytes, namespace.blocks, namespace.atomic_blocks), (4096, 1000, Some(256)));
        assert_eq!(namespace.blocks_of(&[0; 8192]), 2);
        for shift in [0, 8, 25, 255] {
            bytes[128 + 4 + 2] = shift;
            assert_eq!(Namespace::decode(1, &bytes), None, "{shift}");
        }
        assert_eq!(Namespace::decode(1, &[]), None);
    }

    #[test]
    fn a_controller_says_what_it_takes() {
        let mut bytes = vec![0; 4096];
        bytes[24..30].copy_from_slice(b"model ");
        bytes[77] = 8;
        bytes[1792..1796].copy_from_slice(&((64 + 16384) / 16u32).to_le_bytes());
        let info = ControllerInfo::decode(&bytes);
        assert_eq!(
            (info.model.as_str(), info.max_transfer_bytes, info.in_capsule_bytes),
            ("model", Some(1 << 20), 16384)
        );
        bytes[77] = 255;
        assert_eq!(ControllerInfo::decode(&bytes).max_transfer_bytes, None);
        assert_eq!(ControllerInfo::decode(&[]).in_capsule_bytes, 0);
    }
}
