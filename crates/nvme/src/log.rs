//! Log pages: errors, health, firmware, endurance, commands and their effects, and the layer's own figures.
//!
//! Source: NVM Express Base Specification 2.0, 5.16, figures 202 (identifiers), 206 (errors), 207 (SMART), 209 (firmware), 210
//! (effects), 218 (endurance group). The page of the vendor, C0h, is specified here and in docs/nvme.md.

use crate::bytes::{put, put_text};
use crate::command::{admin, nvm, zone};
use crate::identify::{ENDURANCE_GROUP, NAMESPACE};
use crate::namespace::{Health, Namespace, Wear, warning};
use crate::{Sqe, Status, vendor, zoned};

/// Identifiers.
pub mod page {
    /// Errors.
    pub const ERRORS: u8 = 0x01;
    /// SMART and health.
    pub const HEALTH: u8 = 0x02;
    /// Firmware slots.
    pub const FIRMWARE: u8 = 0x03;
    /// Namespaces that changed.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// Commands and their effects.
    pub const EFFECTS: u8 = 0x05;
    /// An endurance group.
    pub const ENDURANCE: u8 = 0x09;
    /// Configurations of flexible data placement.
    pub const PLACEMENT_CONFIGURATIONS: u8 = 0x20;
    /// Who uses its handles.
    pub const HANDLE_USAGE: u8 = 0x21;
    /// What was written, and erased.
    pub const PLACEMENT_STATISTICS: u8 = 0x22;
    /// Its events.
    pub const PLACEMENT_EVENTS: u8 = 0x23;
    /// What a discovery controller knows.
    pub const DISCOVERY: u8 = 0x70;
    /// The layer's own figures.
    pub const WEAR: u8 = 0xc0;
}

/// Bytes of an entry of the error log.
pub const ERROR_BYTES: usize = 64;
/// One data unit of the health log, bytes: a thousand times 512.
const UNIT: u64 = 512_000;
/// One data unit of the endurance log, bytes.
const BILLION: u64 = 1_000_000_000;
/// The version of the layout of the vendor's page.
const WEAR_VERSION: u16 = 1;

/// What Get Log Page asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// See [`page`].
    pub page: u8,
    /// From this byte on.
    pub offset: u64,
    /// So many bytes.
    pub len: u32,
    /// The event that told of the page may be raised again.
    pub clears_event: bool,
    /// The command set that it is about, where that matters.
    pub command_set: u32,
    /// What the page is about, where that is to be said.
    pub subject: u16,
    /// Which form of the page, bits 14:8 of dword 10.
    pub specific: u8,
}

impl Wanted {
    /// Takes the command apart.
    ///
    /// # Errors
    /// Lengths that do not fit.
    pub fn decode(entry: &Sqe) -> Result<Wanted, Status> {
        let dwords = u64::from(entry.dword(10) >> 16) | u64::from(entry.dword(11) & 0xffff) << 16;
        let offset = entry.dwords(12);
        let len = u32::try_from(4 * (dwords + 1)).map_err(|_| Status::INVALID_FIELD)?;
        if !offset.is_multiple_of(4) {
            return Err(Status::INVALID_FIELD);
        }
        Ok(Wanted {
            page: (entry.dword(10) & 0xff) as u8,
            offset,
            len,
            clears_event: entry.dword(10) & 1 << 15 == 0,
            command_set: entry.dword(14) >> 24,
            subject: (entry.dword(11) >> 16) as u16,
            specific: (entry.dword(10) >> 8 & 0x7f) as u8,
        })
    }

    /// The bytes wanted of a page; zeros behind its end.
    ///
    /// # Errors
    /// The page ends before they begin.
    pub fn cut(&self, page: &[u8], most: u32) -> Result<Vec<u8>, Status> {
        if self.len > most {
            return Err(Status::INVALID_FIELD);
        }
        let from = usize::try_from(self.offset).map_err(|_| Status::INVALID_FIELD)?;
        let rest = page.get(from..).ok_or(Status::INVALID_FIELD)?;
        let mut part = rest[..rest.len().min(self.len as usize)].to_vec();
        part.resize(self.len as usize, 0);
        Ok(part)
    }
}

/// Something that went wrong, for the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The how-manieth it is.
    pub number: u64,
    /// The queue.
    pub queue: u16,
    /// The command.
    pub cid: u16,
    /// How it ended.
    pub status: Status,
    /// The first block, of an I/O command.
    pub lba: u64,
}

impl Failure {
    /// As it stands in the log.
    pub fn encode(&self) -> [u8; ERROR_BYTES] {
        let mut entry = [0; ERROR_BYTES];
        put(&mut entry, 0, &self.number.to_le_bytes());
        put(&mut entry, 8, &self.queue.to_le_bytes());
        put(&mut entry, 10, &self.cid.to_le_bytes());
        put(&mut entry, 12, &(self.status.0 << 1).to_le_bytes());
        // Which parameter: not told.
        put(&mut entry, 14, &u16::MAX.to_le_bytes());
        put(&mut entry, 16, &self.lba.to_le_bytes());
        put(&mut entry, 24, &NAMESPACE.to_le_bytes());
        // The transport: TCP.
        entry[29] = 3;
        entry
    }
}

/// The health page. `errors` is how many entries the error log had.
pub fn health(health: &Health, errors: u64) -> [u8; 512] {
    let mut page = [0; 512];
    page[0] = health.warnings;
    put(&mut page, 1, &health.kelvin.to_le_bytes());
    page[3] = health.spare_percent;
    page[4] = health.spare_threshold;
    page[5] = health.used_percent;
    page[6] = group_warnings(health);
    let figures = [
        (32, health.read_bytes.div_ceil(UNIT)),
        (48, health.written_bytes.div_ceil(UNIT)),
        (64, health.reads),
        (80, health.writes),
        (112, health.power_cycles),
        (128, health.power_on_hours),
        (144, health.unsafe_shutdowns),
        (160, health.media_errors),
        (176, errors),
    ];
    for (at, figure) in figures {
        put(&mut page, at, &u128::from(figure).to_le_bytes());
    }
    // The first sensor is the one that there is.
    put(&mut page, 200, &health.kelvin.to_le_bytes());
    page
}

/// Warnings that hold of the endurance group.
fn group_warnings(health: &Health) -> u8 {
    health.warnings & (warning::SPARE | warning::DEGRADED | warning::READ_ONLY)
}

/// The endurance group's page.
///
/// # Errors
/// There is no such group.
pub fn endurance(group: u16, health: &Health, errors: u64) -> Result<[u8; 512], Status> {
    if group != ENDURANCE_GROUP {
        return Err(Status::INVALID_FIELD);
    }
    let mut page = [0; 512];
    page[0] = group_warnings(health);
    page[3] = health.spare_percent;
    page[4] = health.spare_threshold;
    page[5] = health.used_percent;
    let figures = [
        (48, health.read_bytes.div_ceil(BILLION)),
        (64, health.written_bytes.div_ceil(BILLION)),
        (80, health.media_written_bytes.div_ceil(BILLION)),
        (96, health.reads),
        (112, health.writes),
        (128, health.media_errors),
        (144, errors),
    ];
    for (at, figure) in figures {
        put(&mut page, at, &u128::from(figure).to_le_bytes());
    }
    Ok(page)
}

/// The firmware page: one slot, in use.
pub fn firmware(namespace: &Namespace) -> [u8; 512] {
    let mut page = [0; 512];
    page[0] = 1;
    put_text(&mut page, 8, 8, &namespace.firmware);
    page
}

/// The page of commands of a set: which are there, and which change what is stored.
pub fn effects(command_set: u32) -> Vec<u8> {
    const SUPPORTED: u32 = 1;
    const CHANGES_DATA: u32 = 1 << 1;
    let mut page = vec![0; 4096];
    let admin = [
        admin::GET_LOG_PAGE,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::ASYNC_EVENT_REQUEST,
        admin::KEEP_ALIVE,
        admin::DIRECTIVE_RECEIVE,
    ];
    for opcode in admin {
        put(&mut page, 4 * usize::from(opcode), &SUPPORTED.to_le_bytes());
    }
    let reads = [nvm::READ, nvm::COMPARE, nvm::VERIFY, nvm::IO_MANAGEMENT_RECEIVE, vendor::MAPPED_RANGES];
    for opcode in reads.into_iter().chain([nvm::FLUSH, nvm::IO_MANAGEMENT_SEND]) {
        put(&mut page, 1024 + 4 * usize::from(opcode), &SUPPORTED.to_le_bytes());
    }
    for opcode in [nvm::WRITE, nvm::WRITE_ZEROES, nvm::DATASET_MANAGEMENT, nvm::COPY, vendor::BATCH] {
        put(&mut page, 1024 + 4 * usize::from(opcode), &(SUPPORTED | CHANGES_DATA).to_le_bytes());
    }
    if command_set == zoned::COMMAND_SET {
        let changes = SUPPORTED | CHANGES_DATA;
        for (opcode, effect) in
            [(zone::APPEND, changes), (zone::MANAGEMENT_SEND, changes), (zone::MANAGEMENT_RECEIVE, SUPPORTED)]
        {
            put(&mut page, 1024 + 4 * usize::from(opcode), &effect.to_le_bytes());
        }
    }
    page
}

/// The vendor's page: version, write amplification in thousandths, and eight counters of 64 bits, from byte 8 on.
pub fn wear(wear: &Wear) -> [u8; 512] {
    let mut page = [0; 512];
    put(&mut page, 0, &WEAR_VERSION.to_le_bytes());
    put(&mut page, 4, &((wear.write_amplification * 1000.0) as u32).to_le_bytes());
    let counters = [
        wear.groomed_bytes,
        wear.padding_bytes,
        wear.metadata_bytes,
        wear.erased_blocks,
        wear.free_blocks,
        wear.blocks,
        wear.healed_sectors,
    ];
    for (number, counter) in counters.into_iter().enumerate() {
        put(&mut page, 8 + 8 * number, &counter.to_le_bytes());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{u16_at, u32_at, u64_at};

    #[test]
    fn a_part_of_a_page_is_cut_out_as_asked() {
        let ask = |len: u32, offset: u64| {
            let dwords = len / 4 - 1;
            let entry = Sqe::new(admin::GET_LOG_PAGE, 0, 0)
                .with(10, u32::from(page::HEALTH) | dwords << 16)
                .with(11, dwords >> 16)
                .with(12, offset as u32)
                .with(13, (offset >> 32) as u32);
            Wanted::decode(&entry)?.cut(&[1, 2, 3, 4, 5, 6, 7, 8], 1 << 20)
        };
        assert_eq!(ask(8, 4), Ok(vec![5, 6, 7, 8, 0, 0, 0, 0]));
        assert_eq!(ask(4, 8), Ok(vec![0; 4]));
        assert_eq!(ask(4, 12), Err(Status::INVALID_FIELD));
        assert_eq!(ask(4, 2), Err(Status::INVALID_FIELD));
        assert_eq!(ask(4, u64::MAX - 3), Err(Status::INVALID_FIELD));
        assert_eq!(ask(2 << 20, 0), Err(Status::INVALID_FIELD));
    }

    #[test]
    fn health_counts_in_thousands_of_512_bytes_rounded_up() {
        let page = health(&Health { read_bytes: 512_001, kelvin: 300, media_errors: 7, ..Health::default() }, 9);
        assert_eq!((u16_at(&page, 1), u64_at(&page, 32), u64_at(&page, 160), u64_at(&page, 176)), (300, 2, 7, 9));
    }

    #[test]
    fn the_vendors_page_as_it_is_documented() {
        let page = wear(&Wear { write_amplification: 1.25, groomed_bytes: 5, healed_sectors: 6, ..Wear::default() });
        assert_eq!((u16_at(&page, 0), u32_at(&page, 4), u64_at(&page, 8), u64_at(&page, 56)), (1, 1250, 5, 6));
    }
}
