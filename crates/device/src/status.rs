//! What a device tells about itself. [`Figures`] are numbers and names of one moment, and taking them allocates nothing: the device's
//! thread does so each second. [`Status`] adds the words and lists that people read, and is made when somebody asks.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::core::Core;
use crate::{Durability, Io, Pacing, ZoneCounts};

/// From so many per cent of the room on, a sparse address space is nearly full.
const NEARLY_FULL: u64 = 95;

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
    /// Another host has it, and this one waits until that one is gone.
    StandBy,
}

impl State {
    /// Its name, as the API has it.
    pub fn name(self) -> &'static str {
        match self {
            State::Detached => "detached",
            State::Attached => "attached",
            State::AttachedReadOnly => "attached-read-only",
            State::Detaching => "detaching",
            State::Scanning => "scanning",
            State::Formatting => "formatting",
            State::Error => "error",
            State::PoweredOff => "powered-off",
            State::StandBy => "stand-by",
        }
    }
}

/// Requests taken since attach.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Trims and zeroings.
    pub trims: u64,
    /// Batches of writes and trims, each counted once.
    pub batches: u64,
}

impl Counts {
    /// The counter of a request's kind.
    pub(crate) fn of(&mut self, io: &Io) -> &mut u64 {
        match io {
            Io::Read { .. } | Io::ReadSnapshot { .. } => &mut self.reads,
            Io::Write { .. } => &mut self.writes,
            Io::Flush => &mut self.flushes,
            Io::Trim { .. } | Io::WriteZeroes { .. } => &mut self.trims,
            Io::Batch { .. } => &mut self.batches,
        }
    }
}

/// What is wrong with a device. `Device::status` says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The store had no room for a recovery, so the device takes no writes.
    NoRoomToRecover,
    /// Another host has taken the device over.
    Fenced,
    /// The object store fails, or is so far behind that writes wait for it.
    ObjectsBehind,
    /// The store has no room for what is written.
    StoreFull,
    /// The store gives no space for another reason.
    StoreFails(ftl::Error),
    /// Writes fail.
    WritesFail(ftl::Error),
    /// Dies are out of service.
    Degraded,
    /// Sectors cannot be read.
    Unreadable,
    /// Nearly as much holds data, for the host or for snapshots, as there is room for.
    NearlyFull,
    /// A file in use was deleted, moved or replaced.
    Vanished,
    /// What the model of an emulated card says.
    Card(&'static str),
    /// Memory for a page file could not be taken.
    PageFile,
}

/// Every figure of an attached device. Counters over the format's life are kept with each checkpoint: a crash loses what was counted
/// since the last. `telemetry::table` says what each figure means, and derives the rest from them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each is described where it is counted, and in the table of metrics")]
pub struct Figures {
    pub state: State,
    pub trouble: Option<Trouble>,
    pub requests: Counts,
    pub layer: ftl::Stats,
    pub sector_bytes: u32,
    pub dies: u32,
    pub lost: u32,
    pub vanished_files: u32,
    pub healed_sectors: u64,
    pub degraded_reads: u64,
    /// Of an emulated device.
    pub read_retries: Option<u64>,
    pub unreadable_sectors: u32,
    /// Which die is being rebuilt, and how much of it is, per cent.
    pub rebuilding: Option<(u32, f64)>,
    /// Of an emulated card with chips of parity.
    pub chips: Option<Chips>,
    pub scrub_percent: Option<f64>,
    pub scrubbed_sectors: u64,
    pub scrub_errors: u64,
    pub scrubs: u64,
    /// How much of the device was gone over to bring it into order, while that is under way.
    pub optimise_percent: Option<f64>,
    pub optimised_sectors: u64,
    pub optimises: u64,
    /// Pieces that a MiB of what holds data lies in; a piece is read in one. Of a sample.
    pub pieces_per_mib: Option<f64>,
    pub read_ahead_sectors: u64,
    pub read_ahead_used_sectors: u64,
    pub celsius: Option<f64>,
    pub peak_celsius: Option<f64>,
    /// What may be programmed before every block has been erased as often as it is rated for.
    pub rated_written_bytes: Option<u64>,
    /// Reads, and writes, came lately: what the activity lights show.
    pub reading: bool,
    pub writing: bool,
    pub hold_ns_per_byte: Option<f64>,
    pub watts: Option<f64>,
    pub power_limit_watts: Option<f64>,
    pub power_override: Option<bool>,
    pub durability: Option<Durability>,
    pub page_file: bool,
    pub without_io_uring: Option<&'static str>,
    pub reserve_percent: Option<f64>,
    pub write_reduced: Option<bool>,
    pub worn_out: Option<bool>,
    pub mapped_sectors: u64,
    pub snapshots: u32,
    /// Clones of snapshots.
    pub clones: u32,
    /// Sectors that clones hold.
    pub cloned_sectors: u64,
    /// Sectors that hold data for snapshots and clones only.
    pub kept_sectors: u64,
    /// How many may hold data at once, where the host can address more or there are snapshots.
    pub room_sectors: Option<u64>,
    pub sectors: u64,
    pub map_memory_bytes: u64,
    pub worst_memory_bytes: u64,
    pub memory_bytes: u64,
    pub free_lebs: u32,
    pub lebs: u32,
    pub leb_bytes: u64,
    pub groomer: &'static str,
    pub grooming: bool,
    pub over_provisioning_percent: f64,
    pub allocated_bytes: Option<u64>,
    pub store_free_bytes: Option<u64>,
    pub store_full: bool,
    pub pacing: Option<Pacing>,
    /// How it stands with its object store, where it has one.
    pub objects: Option<ObjectsFigures>,
    /// How its zones stand, and how many were reset since the attach, where it has some.
    pub zones: Option<(ZoneCounts, u64)>,
    /// Of a volume with a cache in front of its store.
    pub cache: Option<CacheFigures>,
}

/// What the cache of a volume did since the volume was opened, in sectors, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Read, and in the cache.
    pub hit: u64,
    /// Read from the store behind.
    pub missed: u64,
    /// Written to the store behind from the cache.
    pub written_back: u64,
    /// Not behind yet.
    pub dirty: u64,
}

/// How a device on objects stands with its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the last ones are described together")]
pub struct ObjectsFigures {
    /// Everything below this sequence number is durable in the journal.
    pub durable: u64,
    /// Everything below this one is in the store.
    pub remote: u64,
    /// Bytes that would be lost with the journal.
    pub ahead_bytes: u64,
    /// How long the oldest of them has waited for the store, milliseconds.
    pub behind_ms: u64,
    /// Bytes of LEBs in the journal.
    pub local_bytes: u64,
    /// Writes wait for the store.
    pub holding: bool,
    /// Another host has taken the device over.
    pub fenced: bool,
    /// Nothing is answered, because the lease is over.
    pub lapsed: bool,
    /// How long the lease is, milliseconds; 0 without one.
    pub lease_ms: u64,
    /// The newest request to the store failed.
    pub failing: bool,
    /// The owner epoch of this attach.
    pub owner: u32,
    /// Anchors, objects and bytes that were put there since the attach, and requests that failed.
    pub commits: u64,
    pub uploads: u64,
    pub uploaded_bytes: u64,
    pub errors: u64,
    /// Requests that read objects.
    pub gets: u64,
    /// Bytes of objects in the store.
    pub stored_bytes: u64,
    /// LEBs that were collected because their garbage had cost as much, since the attach, and bytes that were live in them.
    pub collected: u64,
    pub collected_bytes: u64,
}

impl ObjectsFigures {
    fn of(core: &Core) -> Option<ObjectsFigures> {
        let objects = core.media.store_behind()?;
        let (standing, collected) = (&objects.standing(), core.ftl.collected());
        Some(ObjectsFigures {
            gets: standing.gets,
            stored_bytes: standing.stored_bytes,
            collected: collected.lebs,
            collected_bytes: collected.moved * u64::from(core.ftl.config().geometry.sector_bytes),
            ..ObjectsFigures::of_store(standing)
        })
    }

    fn of_store(standing: &media::object::Standing) -> ObjectsFigures {
        ObjectsFigures {
            durable: standing.durable,
            remote: standing.remote,
            ahead_bytes: standing.ahead_bytes,
            behind_ms: standing.behind_ms,
            local_bytes: standing.local_bytes,
            holding: standing.holding,
            fenced: standing.fence.is_some(),
            lapsed: standing.lapsed,
            lease_ms: standing.lease_ms,
            failing: standing.tally.trouble.is_some(),
            owner: standing.epoch,
            commits: standing.tally.commits,
            uploads: standing.tally.uploads,
            uploaded_bytes: standing.tally.uploaded_bytes,
            errors: standing.tally.errors,
            ..ObjectsFigures::default()
        }
    }
}

fn rated_bytes(rated: u32, lebs: u32, leb_bytes: u64) -> u64 {
    let whole = u128::from(rated) * u128::from(lebs) * u128::from(leb_bytes);
    u64::try_from(whole).unwrap_or(u64::MAX)
}

/// The chips of an emulated card, some of them for parity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chips {
    /// How many it was made with.
    pub count: u32,
    /// How many of them it gave up, see adaptive Flashback.
    pub given_up: u32,
    /// Which of them last.
    pub last: Option<u32>,
    /// How much of what stood on that lies on the others, per cent, while that is under way.
    pub rebuilt_percent: Option<f64>,
}

impl Chips {
    fn of(core: &Core) -> Option<Chips> {
        let nand = core.media.nand().filter(|nand| nand.geometry().parity > 0)?;
        let given_up = &core.superblock.given_up;
        Some(Chips {
            count: nand.chips(),
            given_up: given_up.len() as u32,
            last: given_up.last().map(|gone| gone.chip),
            rebuilt_percent: core.narrowing().map(|(_, percent)| percent),
        })
    }
}

/// What the activity lights show: whether requests came in the last half second or so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    since: Instant,
    before: Counts,
    reading: bool,
    writing: bool,
}

/// The lights are looked at so often at most.
const GLANCE: Duration = Duration::from_millis(500);

impl Activity {
    pub fn new() -> Activity {
        Activity { since: Instant::now(), before: Counts::default(), reading: false, writing: false }
    }

    /// Whether reads, and writes, came lately.
    pub fn look(&mut self, counts: &Counts) -> (bool, bool) {
        let changes = |counts: &Counts| counts.writes + counts.trims + counts.batches;
        let (reads, writes) = (counts.reads != self.before.reads, changes(counts) != changes(&self.before));
        if self.since.elapsed() >= GLANCE {
            *self = Activity { since: Instant::now(), before: *counts, reading: reads, writing: writes };
        }
        (self.reading || reads, self.writing || writes)
    }
}

impl Figures {
    /// The lights of a card, as the state has them: `attached`, and what it is doing.
    pub fn leds(&self) -> Vec<&'static str> {
        let lit = |on: bool, what| on.then_some(what);
        let lights = [Some("attached"), lit(self.writing, "write activity"), lit(self.reading, "read activity")];
        lights.into_iter().flatten().collect()
    }

    /// What its cache did; zeros where it has none.
    pub fn cached(&self) -> CacheFigures {
        self.cache.unwrap_or_default()
    }

    /// What the layer and its medium say. The rest is the device's.
    pub(crate) fn of(core: &Core, requests: Counts, state: State) -> Figures {
        let ftl = &core.ftl;
        let (layer, geometry) = (ftl.stats(), ftl.config().geometry);
        let (sectors, sector_bytes, lebs) = (ftl.map().sectors(), geometry.sector_bytes, ftl.lebs().len());
        // One that may lose copies is as full as it can be, and refuses nothing for that.
        let room = ftl.live_limit().filter(|_| !ftl.is_cache());
        let kept_sectors = ftl.kept_sectors();
        let made_up = core.media.nand().map_or(0, |nand| nand.counts().made_up_bytes);
        let lost = core.lost_dies().count() as u32;
        let unreadable_sectors = core.healing.unreadable.len() as u32;
        let (pieces, mapped) = ftl.pieces_of_all();
        let objects = ObjectsFigures::of(core);
        let trouble = match ftl.failure() {
            _ if objects.is_some_and(|objects| objects.fenced) => Some(Trouble::Fenced),
            Some(error) => Some(Trouble::WritesFail(error)),
            None if objects.is_some_and(|objects| objects.holding || objects.failing || objects.lapsed) => {
                Some(Trouble::ObjectsBehind)
            }
            None if lost > 0 => Some(Trouble::Degraded),
            None if unreadable_sectors > 0 => Some(Trouble::Unreadable),
            None => room
                .filter(|room| ftl.map().mapped() + kept_sectors >= room / 100 * NEARLY_FULL)
                .map(|_| Trouble::NearlyFull),
        };
        Figures {
            state: if ftl.failure().is_some() || core.fenced { State::Error } else { state },
            trouble,
            requests,
            layer: *layer,
            sector_bytes,
            dies: geometry.dies,
            lost,
            vanished_files: 0,
            healed_sectors: core.healing.healed,
            degraded_reads: core.healing.degraded_reads + made_up / u64::from(sector_bytes),
            read_retries: core.media.nand().map(|nand| nand.counts().retries),
            unreadable_sectors,
            rebuilding: core.jobs.rebuilding(lebs),
            chips: Chips::of(core),
            scrub_percent: core.jobs.scrubbing(lebs),
            scrubbed_sectors: core.jobs.scrubbed_sectors,
            scrub_errors: core.jobs.scrub_errors,
            scrubs: core.jobs.scrubs,
            optimise_percent: core.jobs.optimising(sectors),
            optimised_sectors: ftl.optimised_sectors(),
            optimises: core.jobs.optimised,
            pieces_per_mib: (mapped > 0)
                .then(|| pieces as f64 * f64::from(1 << 20) / (mapped as f64 * f64::from(sector_bytes))),
            read_ahead_sectors: core.ahead.as_ref().map_or(0, |ahead| ahead.read_sectors),
            read_ahead_used_sectors: core.ahead.as_ref().map_or(0, |ahead| ahead.used_sectors),
            celsius: None,
            peak_celsius: None,
            rated_written_bytes: core.media.nand().map(|nand| {
                let leb_bytes = u64::from(geometry.slots_per_leb()) * u64::from(sector_bytes);
                rated_bytes(nand.wear().rated(), lebs, leb_bytes)
            }),
            reading: false,
            writing: false,
            hold_ns_per_byte: None,
            watts: None,
            power_limit_watts: None,
            power_override: None,
            durability: None,
            page_file: false,
            without_io_uring: media::ring::without_io_uring(),
            reserve_percent: core.media.nand().map(|nand| nand.wear().reserve_percent()),
            write_reduced: None,
            worn_out: None,
            mapped_sectors: ftl.map().mapped(),
            snapshots: ftl.snapshots().len() as u32,
            kept_sectors,
            clones: ftl.clones().len() as u32,
            cloned_sectors: ftl.cloned_sectors(),
            room_sectors: room,
            sectors,
            map_memory_bytes: ftl.map().memory() as u64,
            worst_memory_bytes: ftl.worst_memory(),
            memory_bytes: ftl.memory() as u64 + core.buffer_memory(),
            free_lebs: ftl.free_lebs(),
            lebs,
            leb_bytes: u64::from(geometry.slots_per_leb()) * u64::from(sector_bytes),
            groomer: ftl.policy_name(),
            grooming: ftl.is_short(),
            over_provisioning_percent: 100.0 * (geometry.slots() as f64 / ftl.config().room() as f64 - 1.0),
            allocated_bytes: core.media.allocated_bytes(),
            store_free_bytes: core.media.free_bytes(),
            store_full: false,
            pacing: None,
            objects,
            zones: None,
            cache: None,
        }
    }

    /// What may be written before writes are refused for lack of room, bytes, where that is a limit.
    pub fn room_left_bytes(&self) -> Option<u64> {
        let used = self.mapped_sectors + self.kept_sectors;
        self.room_sectors.map(|room| self.bytes(room.saturating_sub(used)))
    }

    /// So many sectors in bytes.
    pub fn bytes(&self, sectors: u64) -> u64 {
        sectors * u64::from(self.sector_bytes)
    }

    /// What is left of the rated life, per cent.
    pub fn rated_left_percent(&self) -> Option<f64> {
        let used = self.layer.programmed_bytes as f64 / (self.rated_written_bytes? as f64).max(1.0);
        Some((100.0 * (1.0 - used)).max(0.0))
    }

    /// Bytes of the map for each sector that holds data.
    pub fn map_memory_per_sector(&self) -> Option<f64> {
        (self.mapped_sectors > 0).then(|| self.map_memory_bytes as f64 / self.mapped_sectors as f64)
    }
}

/// What may be wrong with a device. It is in [`Figures`], too, but costs next to nothing and asks nothing of the store: for whoever
/// looks all the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// See [`Figures::reserve_percent`].
    pub reserve_percent: Option<f64>,
    /// See [`Figures::celsius`].
    pub celsius: Option<f64>,
    /// Dies are out of service, sectors cannot be read, or the store is full.
    pub degraded: bool,
    /// It takes no writes, because they failed or because an emulated card is worn out.
    pub read_only: bool,
}

/// [`Figures`], with the lists and words for whoever reads them.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The numbers.
    pub figures: Figures,
    /// `healthy`, or what is wrong, in words.
    pub health: String,
    /// Dies out of service or being rebuilt, by number; of an array or a cached volume its members.
    pub lost_dies: Vec<u32>,
    /// What the members of an array or a cached volume are called; a device has none.
    pub members: Vec<String>,
    /// Chips that an emulated card gave up, by number.
    pub given_up_chips: Vec<u32>,
    /// Files that were there at the attach and are not used, and why.
    pub set_aside: Vec<String>,
    /// Files in use that were deleted, moved or replaced since the attach.
    pub vanished: Vec<PathBuf>,
    /// Sectors that were asked for since the attach and could not be read at all, nor read or written since; the first thousand or so.
    pub unreadable: Vec<u64>,
    /// Fault drills that are on, in words; nothing on a device that takes none.
    pub drills: Option<Vec<String>>,
}

impl std::ops::Deref for Status {
    type Target = Figures;

    fn deref(&self) -> &Figures {
        &self.figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rated_life_is_erases_times_blocks() {
        assert_eq!(rated_bytes(3000, 1000, 1 << 20), 3_000_000 << 20);
        assert_eq!(rated_bytes(u32::MAX, u32::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn lights_stay_on_between_two_glances() {
        let (mut activity, mut counts) = (Activity::new(), Counts::default());
        assert_eq!(activity.look(&counts), (false, false));
        counts.reads = 1;
        assert_eq!(activity.look(&counts), (true, false));
        counts.trims = 1;
        assert_eq!(activity.look(&counts), (true, true));
        activity.since -= GLANCE;
        assert_eq!(activity.look(&counts), (true, true), "lately");
        activity.since -= GLANCE;
        assert_eq!(activity.look(&counts), (false, false), "nothing came since");
    }
}
