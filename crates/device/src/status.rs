//! What a device tells about itself. Every figure is measured or counted here; field names are the API's.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::Core;
use crate::{Io, Pacing};

/// What a module is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not attached.
    Detached,
    /// Serving requests.
    Attached,
    /// Serving reads only.
    AttachedReadOnly,
    /// Waiting for outstanding requests before it goes.
    Detaching,
    /// Replaying its log.
    Scanning,
    /// Being formatted or erased.
    Formatting,
    /// Failed: see `health`.
    Error,
    /// A drill cut its power.
    PoweredOff,
}

/// The health of a device with nothing wrong.
pub(crate) const HEALTHY: &str = "healthy";

/// Requests taken since attach.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub trims: u64,
    pub batches: u64,
}

impl Counts {
    /// The counter of a request's kind.
    pub fn of(&mut self, io: &Io) -> &mut u64 {
        match io {
            Io::Read { .. } => &mut self.reads,
            Io::Write { .. } => &mut self.writes,
            Io::Flush => &mut self.flushes,
            Io::Trim { .. } | Io::WriteZeroes { .. } => &mut self.trims,
            Io::Batch { .. } => &mut self.batches,
        }
    }
}

/// Every figure of an attached device. Bytes, sectors and counts are exact; rates are left to the reader.
/// Counters over the format's life are kept with each checkpoint: a crash loses what was counted since the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// What it is doing.
    pub state: State,
    /// `healthy`, or what is wrong, in words.
    pub health: String,
    /// Read requests since attach.
    pub reads: u64,
    /// Write requests since attach.
    pub writes: u64,
    /// Flush requests since attach.
    pub flushes: u64,
    /// Trim and write-zeroes requests since attach.
    pub trims: u64,
    /// Batches of writes and trims since attach, each counted once.
    #[serde(default)]
    pub batches: u64,
    /// Bytes read by the host, over the format's life.
    pub host_read_bytes: u64,
    /// Bytes written by the host, over the format's life.
    pub host_written_bytes: u64,
    /// Bytes trimmed by the host, over the format's life.
    pub host_trimmed_bytes: u64,
    /// Bytes that the groomer moved, over the format's life.
    pub groomed_bytes: u64,
    /// Bytes left empty so that flushes could be programmed, over the format's life.
    pub padding_bytes: u64,
    /// Bytes of headers, trim records and checkpoints, over the format's life.
    pub metadata_bytes: u64,
    /// Bytes programmed on media, trailers included, over the format's life.
    pub media_written_bytes: u64,
    /// Everything appended over what the host wrote, over the format's life.
    pub write_amplification: Option<f64>,
    /// Reads that failed, over the format's life.
    pub read_errors: u64,
    /// Sectors that the groomer found unreadable, over the format's life.
    pub damaged_sectors: u64,
    /// Dies: its files, or those of the card that it emulates.
    #[serde(default)]
    pub dies: u32,
    /// Dies out of service or being rebuilt, by number.
    pub lost_dies: Vec<u32>,
    /// Files that were there at the attach and are not used, and why.
    #[serde(default)]
    pub set_aside: Vec<String>,
    /// Files in use that were deleted, moved or replaced since the attach.
    #[serde(default)]
    pub vanished: Vec<PathBuf>,
    /// Sectors that failed their check and were rebuilt from parity, since attach.
    pub healed_sectors: u64,
    /// Sectors that were read with the help of parity because their die is out of service, since attach.
    pub degraded_reads: u64,
    /// Sectors that were asked for since the attach and could not be read at all, nor read or written since; the first thousand or so.
    pub unreadable: Vec<u64>,
    /// The die that is being rebuilt.
    pub rebuilding_die: Option<u32>,
    /// How much of it is rebuilt, per cent.
    pub rebuild_percent: Option<f64>,
    /// How far a scrub is, per cent; nothing when none is under way.
    pub scrub_percent: Option<f64>,
    /// Sectors that scrubs checked, since attach.
    pub scrubbed_sectors: u64,
    /// Sectors and stripes that scrubs found wrong, since attach.
    pub scrub_errors: u64,
    /// Scrubs that came to their end, since attach.
    pub scrubs: u64,
    /// Temperature inside an emulated card, degrees Celsius.
    pub celsius: Option<f64>,
    /// Nanoseconds by which an emulated card holds back each written byte, for heat, power or the end of its life.
    pub hold_ns_per_byte: Option<f64>,
    /// What an emulated card takes, watts.
    pub watts: Option<f64>,
    /// Above it an emulated card holds writes back, watts; nothing where the limit is overridden.
    pub power_limit_watts: Option<f64>,
    /// An emulated card's power limit is overridden.
    pub power_override: Option<bool>,
    /// When what was answered survives a power cut, by the setting's name; nothing on an emulated card, which has capacitors.
    pub durability: Option<String>,
    /// Memory for the worst case is taken and locked, so that a swap file may lie on the device.
    pub page_file: bool,
    /// Why its thread does without `io_uring`, and is slower.
    pub without_io_uring: Option<String>,
    /// Spare blocks that an emulated card has left, per cent of those when it was new.
    pub reserve_percent: Option<f64>,
    /// An emulated card's reserve is used up, and it holds writes back.
    pub write_reduced: Option<bool>,
    /// An emulated card takes no more writes.
    pub worn_out: Option<bool>,
    /// Fault drills that are on, in words; nothing on a device that takes none.
    pub drills: Option<Vec<String>>,
    /// Sectors that hold data.
    pub mapped_sectors: u64,
    /// Sectors that the host sees.
    pub sectors: u64,
    /// Memory of the forward map, bytes.
    pub map_memory_bytes: u64,
    /// Memory that page-file support locks: what the layer takes at most, bytes.
    pub worst_memory_bytes: u64,
    /// The same for each mapped sector.
    pub map_memory_per_sector: Option<f64>,
    /// Memory of the whole layer, buffers included, bytes.
    pub memory_bytes: u64,
    /// Logical erase blocks free.
    pub free_lebs: u32,
    /// Logical erase blocks in all.
    pub lebs: u32,
    /// Bytes of one logical erase block, without trailers.
    pub leb_bytes: u64,
    /// Logical erase blocks erased or given up for reuse, over the format's life.
    pub erased_lebs: u64,
    /// The groomer's policy.
    pub groomer: String,
    /// Free space is short: the groomer works and writes are paced.
    pub grooming: bool,
    /// Over-provisioning: raw over host capacity, minus one, per cent.
    pub over_provisioning_percent: f64,
    /// Bytes the backing store uses now, where known.
    pub allocated_bytes: Option<u64>,
    /// Bytes left on the file systems under it, the least of them, where known.
    #[serde(default)]
    pub store_free_bytes: Option<u64>,
    /// The backing store gave no space when it was asked last, or had none for the attach.
    #[serde(default)]
    pub store_full: bool,
    /// How well an emulated device keeps to its model.
    #[serde(flatten)]
    pub pacing: Option<Pacing>,
}

/// What may be wrong with a device. It is in [`Status`], too, but costs next to nothing and asks nothing of the store: for
/// whoever looks all the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// See [`Status::reserve_percent`].
    pub reserve_percent: Option<f64>,
    /// See [`Status::celsius`].
    pub celsius: Option<f64>,
    /// Dies are out of service, sectors cannot be read, or the store is full.
    pub degraded: bool,
    /// It takes no writes, because they failed or because an emulated card is worn out.
    pub read_only: bool,
}

/// What it means that dies are lost.
fn lost_dies(core: &Core, lost: &[u32]) -> String {
    let dies = core.ftl.config().geometry.dies;
    let nand = core.media.nand();
    let out = match nand.and_then(|nand| Some((nand.lost_chips()?, nand.chips()))) {
        Some((chips, of)) if chips.len() == 1 => format!("chip {} of {of} out of service", chips[0]),
        Some((chips, of)) => format!("{} of {of} chips out of service", chips.len()),
        None => format!("{} of {dies} dies out of service", lost.len()),
    };
    match nand.is_some_and(|nand| lost.iter().any(|die| nand.is_out_of_reach(*die))) {
        true => format!("failed: {out}, more than its parity makes up for"),
        false => format!("degraded: {out}"),
    }
}

impl Status {
    pub(crate) fn of(core: &Core, counts: &Counts, state: State) -> Status {
        let ftl = &core.ftl;
        let (stats, geometry) = (ftl.stats(), ftl.config().geometry);
        let sector = u64::from(geometry.sector_bytes);
        let mapped = ftl.map().mapped();
        let map_memory = ftl.map().memory() as u64;
        let lost = core.lost_dies();
        let made_up = core.media.nand().map_or(0, |nand| nand.counts().made_up_bytes);
        let health = match ftl.failure() {
            Some(error) => format!("writes fail: {error}"),
            None if !lost.is_empty() => lost_dies(core, &lost),
            None if !core.healing.unreadable.is_empty() => {
                format!("{} sectors cannot be read", core.healing.unreadable.len())
            }
            None => HEALTHY.into(),
        };
        Status {
            state: if ftl.failure().is_some() { State::Error } else { state },
            health,
            reads: counts.reads,
            writes: counts.writes,
            flushes: counts.flushes,
            trims: counts.trims,
            batches: counts.batches,
            host_read_bytes: stats.host_read_sectors * sector,
            host_written_bytes: stats.host_written_sectors * sector,
            host_trimmed_bytes: stats.host_trimmed_sectors * sector,
            groomed_bytes: stats.groomed_sectors * sector,
            padding_bytes: stats.padding_slots * sector,
            metadata_bytes: stats.metadata_slots * sector,
            media_written_bytes: stats.programmed_bytes,
            write_amplification: stats.write_amplification(),
            read_errors: stats.read_errors,
            damaged_sectors: stats.damaged_sectors,
            dies: geometry.dies,
            lost_dies: lost,
            set_aside: Vec::new(),
            vanished: Vec::new(),
            healed_sectors: core.healing.healed,
            degraded_reads: core.healing.degraded_reads + made_up / sector,
            rebuilding_die: core.jobs.rebuilding(ftl.lebs().len()).map(|(die, _)| die),
            rebuild_percent: core.jobs.rebuilding(ftl.lebs().len()).map(|(_, percent)| percent),
            scrub_percent: core.jobs.scrubbing(ftl.lebs().len()),
            scrubbed_sectors: core.jobs.scrubbed_sectors,
            scrub_errors: core.jobs.scrub_errors,
            scrubs: core.jobs.scrubs,
            unreadable: core.healing.unreadable.iter().copied().collect(),
            celsius: None,
            hold_ns_per_byte: None,
            watts: None,
            power_limit_watts: None,
            power_override: None,
            durability: None,
            page_file: false,
            without_io_uring: media::ring::without_io_uring().map(Into::into),
            reserve_percent: None,
            write_reduced: None,
            worn_out: None,
            drills: None,
            mapped_sectors: mapped,
            sectors: ftl.map().sectors(),
            map_memory_bytes: map_memory,
            worst_memory_bytes: ftl.worst_memory(),
            map_memory_per_sector: (mapped > 0).then(|| map_memory as f64 / mapped as f64),
            memory_bytes: ftl.memory() as u64 + core.buffer_memory(),
            free_lebs: ftl.free_lebs(),
            lebs: ftl.lebs().len(),
            leb_bytes: u64::from(geometry.slots_per_leb()) * sector,
            erased_lebs: stats.erased_lebs,
            groomer: ftl.policy_name().into(),
            grooming: ftl.is_short(),
            over_provisioning_percent: 100.0 * (geometry.slots() as f64 / ftl.map().sectors() as f64 - 1.0),
            allocated_bytes: core.media.allocated_bytes(),
            store_free_bytes: core.media.free_bytes(),
            store_full: false,
            pacing: None,
        }
    }
}
