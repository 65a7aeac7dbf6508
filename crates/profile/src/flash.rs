//! The shape of the flash in a data sheet: chips, their timing, the controller in front of them, and the energy they take.

use serde::{Deserialize, Serialize};

/// One module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// NAND in all, bytes.
    pub raw_bytes: u64,
    /// Capacity of the stock format, bytes.
    pub advertised_bytes: u64,
    /// Capacity of the vendor's high-performance format, bytes, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_performance_bytes: Option<u64>,
    /// Erase-block stripes of the stock format, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_block_stripes: Option<u32>,
    /// Its chips.
    pub chips: Chips,
    /// What a low-level format may choose.
    pub format: FormatLimits,
    /// Geometry and timing of the chips.
    pub nand: Nand,
    /// Its zones, each an erase block of all dies, where it is a drive of zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Zones>,
    /// Memory for a part of its map, where the rest of that lies on the flash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_cache: Option<MapCache>,
    /// What stands in front of them.
    pub controller: Controller,
    /// What they take.
    pub energy: Energy,
}

/// The zones of a drive. A zone is finished by programming what is left of it, which takes as long as the chips do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zones {
    /// How many may be active at once.
    pub active: u8,
    /// A reset, microseconds, of a zone with hardly anything in it.
    pub reset_us: f64,
    /// What it takes longer for each GiB that was written to the zone, microseconds.
    pub reset_us_per_gib: f64,
}

/// Memory for a part of a drive's map: its own, or the host's that NVMe lends it (host memory buffer).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapCache {
    /// How large it is, bytes.
    pub bytes: u64,
    /// What is read from flash at once when something is not in it, bytes.
    pub page_bytes: u32,
    /// Bytes of the map for each sector.
    pub entry_bytes: u32,
}

/// The NAND chips of a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chips {
    /// How many, parity included.
    pub count: u32,
    /// How many of them hold parity.
    pub parity: u32,
    /// Adaptive Flashback: the layout shrinks by a chip that is lost, and what it held is written anew over the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adaptive: bool,
    /// Bytes in one.
    pub bytes: u64,
}

/// What a low-level format may choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatLimits {
    /// Sector sizes, bytes.
    pub sector_bytes: Vec<u32>,
    /// The largest capacity, per cent of the advertised.
    pub maximum_percent: u32,
    /// Capacity of "improved write performance", per cent of the advertised.
    pub improved_write_percent: u32,
    /// Capacity of "maximum write performance", per cent of the advertised.
    pub maximum_write_percent: u32,
    /// The largest request, bytes.
    pub max_request_bytes: u32,
}

/// The NAND of a module. A program fills one page on every plane of a die at once, an erase clears one block on every plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nand {
    /// Dies in a chip.
    pub dies_per_chip: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Data bytes of a page on one plane, without its spare area.
    pub page_bytes: u32,
    /// Pages in an erase block.
    pub pages_per_block: u32,
    /// From cells to the page register, microseconds (tR).
    pub read_us: f64,
    /// From the page register to cells, microseconds (tPROG), for each kind of page in turn: one figure for SLC, lower and upper page for MLC.
    /// Where all pages of a word line are programmed in one shot, as in TLC and QLC, all but the last take 0: they stay in the die's latches.
    pub program_us: Vec<f64>,
    /// Erase, microseconds (tBERS).
    pub erase_us: f64,
    /// How far reads, programs and erases vary: uniformly by so much above and below, per cent.
    pub variation_percent: f64,
    /// Program and erase cycles that a block is rated for.
    pub endurance_cycles: u32,
    /// Blocks that are bad from the factory, per cent.
    pub factory_bad_percent: f64,
    /// Channels between controller and chips; chips are dealt out to them in turn.
    pub channels: u32,
    /// Rate of one channel from a chip's register, bytes a second.
    pub channel_read_bytes_per_s: u64,
    /// Rate of one channel to a chip's register, bytes a second.
    pub channel_write_bytes_per_s: u64,
    /// A die does host reads on different planes at once, rather than one after another (independent plane reads).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub independent_plane_reads: bool,
    /// Programs and erases let host reads pass, where dies can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<Suspend>,
    /// Flash that is programmed one bit a cell at first, where the drive does so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
    /// How often old data are read again, where reads depend on age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// Read retry: pages that are read again with other reference voltages, because their cells lost charge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Up to this age data on new cells are read at once, days.
    pub first_days: f64,
    /// Steps more for each doubling of that age.
    pub steps_per_doubling: f64,
    /// Steps in the chip's table.
    pub most: u32,
    /// One step, microseconds: other voltages, cells to register, out to the decoder.
    pub step_us: f64,
}

/// How a die suspends a program or an erase for a host read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// From asking to the die's being free for the read, microseconds.
    pub after_us: f64,
    /// What was begun or resumed goes on for so long at least, microseconds: otherwise reads could keep it from ever ending.
    pub least_run_us: f64,
}

/// Flash that is programmed one bit a cell at first and folded into dense cells later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// The most that it holds, bytes of the host's. It holds less where there is not `bits_per_cell` times as much erased flash.
    pub bytes: u64,
    /// Bits in a dense cell.
    pub bits_per_cell: u32,
    /// Program of a page of it, microseconds.
    pub program_us: f64,
    /// Read of a page of it, microseconds.
    pub read_us: f64,
    /// What is written when it is full.
    pub when_full: WhenFull,
    /// Nobody asks anything for so long before it is folded, milliseconds.
    pub quiet_ms: f64,
}

/// What is written when a cache of single-level cells is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Straight into dense cells.
    Dense,
    /// Into the cache all the same, once its oldest page is folded.
    Fold,
}

/// What stands between the host and the chips of one module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Time that the data path is taken by every host read, whatever its size, microseconds.
    pub read_request_us: f64,
    /// Time that the front end is taken by every host write, whatever its size, microseconds.
    pub write_request_us: f64,
    /// The same on top for a write over what the drive holds already: its controller has to find the old place in its map and mark it.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub overwrite_us: f64,
    /// What a read waits on top, microseconds; any number of reads wait at the same time.
    pub read_latency_us: f64,
    /// What a write waits on top, microseconds; any number of writes wait at the same time.
    pub write_latency_us: f64,
    /// Rate of the data path from the channels, bytes a second: host reads and groomed sectors share it.
    pub read_bytes_per_s: u64,
    /// Rate of the data path to the channels, bytes a second. It is the same path: what writes take, reads wait for.
    pub write_bytes_per_s: u64,
    /// Rate of the link to the host in each direction, bytes a second.
    pub link_bytes_per_s: u64,
    /// Memory for pages that are answered and not programmed yet, held up by capacitors, bytes.
    pub buffer_bytes: u64,
    /// Erase blocks set aside for those that go bad, per cent of all.
    pub reserve_percent: f64,
    /// Groomer's policy: `fifo`, `greedy` or `cost-benefit`.
    pub groomer: String,
    /// The groomer works in rounds: host writes wait until it has made so many bytes free, then run unhindered until these are used
    /// up. 0: it slows them down evenly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub groom_round_bytes: u64,
    /// The map lies in the drive, whose controller works on reads of what was never written as on others, the cells left out.
    /// Otherwise it lies in the host, whose driver answers such reads without asking the card.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub map_in_drive: bool,
}

fn is_nothing(us: &f64) -> bool {
    *us == 0.0
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Energy of one module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Taken all the time, watts.
    pub idle_watts: f64,
    /// A read from cells, microjoules a page of one plane.
    pub read_uj: f64,
    /// A program, microjoules a page of one plane.
    pub program_uj: f64,
    /// An erase, microjoules a block of one plane.
    pub erase_uj: f64,
    /// Moving a byte between host and register, nanojoules.
    pub transfer_nj_per_byte: f64,
}
