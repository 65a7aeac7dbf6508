//! What a device did since it was made, and several devices as one.

use serde::{Deserialize, Serialize};

use crate::objects::ObjectsReport;
use crate::snapshots::SnapshotUse;
use media::nand::Nanos;

/// What a device did since it was made. What a kind of device cannot tell is zero, or `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Bytes that the host wrote.
    pub host_written_bytes: u64,
    /// Of these, bytes of each placement, where the device tells some apart.
    pub placed_bytes: Vec<u64>,
    /// Bytes that the groomer moved.
    pub groomed_bytes: u64,
    /// Bytes of parity.
    pub parity_bytes: u64,
    /// Bytes left empty so that a flush could be programmed.
    pub padding_bytes: u64,
    /// Bytes of headers, trim records and checkpoints.
    pub metadata_bytes: u64,
    /// Times that a page was read again, because its data are old.
    pub read_retries: u64,
    /// Pages of its own map that it read from flash.
    pub map_reads: u64,
    /// Erase blocks erased.
    pub erases: u64,
    /// Fewest, mean and most erases of a block so far.
    pub erase_counts: Option<EraseCounts>,
    /// Busy time of every die added up, and how many dies there are.
    pub dies: Busy,
    /// Busy time of the controller's data path.
    pub data_path: Busy,
    /// Busy time of the link to the host.
    pub link: Busy,
    /// Energy taken, joules.
    pub joules: f64,
    /// Temperature inside, degrees Celsius.
    pub celsius: Option<f64>,
    /// Reserve of spare blocks that is left, per cent.
    pub reserve_percent: Option<f64>,
    /// State of health.
    pub health: Option<Health>,
    /// Program and erase cycles that a block is rated for.
    pub rated_cycles: Option<u32>,
    /// Raw flash that wears, bytes.
    pub raw_bytes: u64,
    /// What its snapshots came to, where it makes some.
    pub snapshots: Option<SnapshotUse>,
    /// What became of chips that failed.
    pub chips: Vec<ChipEvent>,
    /// What the cache in front of it did, where there is one. The rest is then about the device behind, but for the host's own bytes.
    pub cache: Option<CacheReport>,
    /// What a device on objects did to its store.
    pub objects: Option<ObjectsReport>,
}

/// What a cache in front of a device did since it was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheReport {
    /// What it has room for, bytes.
    pub room_bytes: u64,
    /// Bytes that the host read from it.
    pub hit_bytes: u64,
    /// Bytes that the host read from behind.
    pub missed_bytes: u64,
    /// Bytes copied into it.
    pub filled_bytes: u64,
    /// Bytes written behind from it.
    pub written_back_bytes: u64,
    /// Bytes that are not behind yet.
    pub dirty_bytes: u64,
    /// The most that ever were not.
    pub dirty_peak_bytes: u64,
    /// The most that may be held for that, bytes.
    pub dirty_limit_bytes: u64,
    /// What the flash did.
    pub module: Box<Report>,
}

/// Something that happened because a flash chip failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChipEvent {
    /// When, nanoseconds of the device's time.
    pub at: Nanos,
    /// What.
    pub what: ChipChange,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChipChange {
    /// A chip failed, and the layout shrinks: so many are left.
    Lost {
        /// Its number.
        chip: u32,
        /// Chips that are left.
        left: u32,
    },
    /// A chip failed, and the layout does not shrink: another one more is one too many.
    Degraded {
        /// Its number.
        chip: u32,
    },
    /// So much of what stood on the chip lies on the others, per cent.
    Rebuilt {
        /// In steps of a quarter.
        percent: u32,
    },
    /// Everything does, so that another chip may fail.
    Protected {
        /// Chips of data and of parity.
        left: u32,
    },
}

impl std::fmt::Display for ChipChange {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            ChipChange::Lost { chip, left } => write!(out, "chip {chip} fails: the layout shrinks to {left} chips"),
            ChipChange::Degraded { chip } => {
                write!(out, "chip {chip} fails: the layout does not shrink, so the card stays degraded")
            }
            ChipChange::Rebuilt { percent } => write!(out, "{percent} % rebuilt"),
            ChipChange::Protected { left } => write!(out, "protected again: everything lies on {left} chips"),
        }
    }
}

impl Report {
    /// Several devices as one: what can be added is added, of states the worst counts.
    pub fn combined(reports: impl IntoIterator<Item = Report>) -> Report {
        let mut reports = reports.into_iter();
        let mut sum = reports.next().unwrap_or_default();
        let mut worn = f64::from(u8::from(sum.erase_counts.is_some()));
        for next in reports {
            sum.host_read_bytes += next.host_read_bytes;
            sum.host_written_bytes += next.host_written_bytes;
            add_each(&mut sum.placed_bytes, &next.placed_bytes);
            sum.groomed_bytes += next.groomed_bytes;
            sum.parity_bytes += next.parity_bytes;
            sum.padding_bytes += next.padding_bytes;
            sum.metadata_bytes += next.metadata_bytes;
            sum.read_retries += next.read_retries;
            sum.map_reads += next.map_reads;
            sum.erases += next.erases;
            sum.erase_counts = both(sum.erase_counts, next.erase_counts, |sum, next| sum.with(next, worn));
            worn += f64::from(u8::from(next.erase_counts.is_some()));
            sum.dies.add(next.dies);
            sum.data_path.add(next.data_path);
            sum.link.add(next.link);
            sum.joules += next.joules;
            sum.celsius = both(sum.celsius, next.celsius, f64::max);
            sum.reserve_percent = both(sum.reserve_percent, next.reserve_percent, f64::min);
            sum.health = both(sum.health, next.health, Ord::max);
            sum.rated_cycles = both(sum.rated_cycles, next.rated_cycles, Ord::min);
            sum.raw_bytes += next.raw_bytes;
            sum.snapshots = both(sum.snapshots, next.snapshots, SnapshotUse::with);
            sum.chips.extend(next.chips);
            sum.cache = sum.cache.or(next.cache);
            sum.objects = sum.objects.or(next.objects);
        }
        sum
    }
}

/// Adds what stands at the same place; what one of them lacks is nothing.
fn add_each(sum: &mut Vec<u64>, next: &[u64]) {
    sum.resize(sum.len().max(next.len()), 0);
    for (sum, next) in sum.iter_mut().zip(next) {
        *sum += next;
    }
}

fn both<T>(one: Option<T>, two: Option<T>, with: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(with(one, two)),
        (one, two) => one.or(two),
    }
}

/// Erase counts over all blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EraseCounts {
    /// Fewest.
    pub min: u32,
    /// Most.
    pub max: u32,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

impl EraseCounts {
    /// These of `devices` devices of one size, and those of one more.
    fn with(self, next: EraseCounts, devices: f64) -> EraseCounts {
        let mean = (self.mean * devices + next.mean) / (devices + 1.0);
        let squares = |counts: EraseCounts| counts.deviation.powi(2) + (counts.mean - mean).powi(2);
        EraseCounts {
            min: self.min.min(next.min),
            max: self.max.max(next.max),
            mean,
            deviation: ((squares(self) * devices + squares(next)) / (devices + 1.0)).sqrt(),
        }
    }
}

/// Time that resources of a kind were busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// Added up over all of them.
    pub nanos: Nanos,
    /// How many there are.
    pub count: u32,
}

impl Busy {
    fn add(&mut self, next: Busy) {
        self.nanos += next.nanos;
        self.count += next.count;
    }
}

/// The end-of-life path of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Reserve above the warning.
    Healthy,
    /// Reserve at 10 % or less.
    Warning,
    /// Reserve used up: writes are held back.
    ReducedWrite,
    /// No more writes.
    ReadOnly,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_devices_are_combined() {
        let device = |min, max, mean, deviation, health| Report {
            erase_counts: Some(EraseCounts { min, max, mean, deviation }),
            dies: Busy { nanos: 10, count: 4 },
            celsius: Some(f64::from(max)),
            reserve_percent: Some(f64::from(min)),
            health: Some(health),
            rated_cycles: Some(100 * max),
            raw_bytes: 5,
            ..Report::default()
        };
        let (one, two) = (device(2, 3, 2.0, 0.0, Health::Warning), device(1, 8, 5.0, 3.0, Health::Healthy));
        let sum = Report::combined([one, two, device(4, 8, 8.0, 0.0, Health::Healthy)]);
        let counts = sum.erase_counts.expect("all of them have counts");
        // Each device weighs a third: (2 + 5 + 8) / 3, and the root of (0 + 9 + 9 + 0 + 0 + 9) / 3.
        assert_eq!((counts.min, counts.max), (1, 8));
        assert!((counts.mean - 5.0).abs() < 1e-12 && (counts.deviation - 3.0).abs() < 1e-12, "{counts:?}");
        assert_eq!(sum.dies, Busy { nanos: 30, count: 12 });
        assert_eq!((sum.celsius, sum.reserve_percent, sum.rated_cycles), (Some(8.0), Some(1.0), Some(300)));
        assert_eq!((sum.health, sum.raw_bytes), (Some(Health::Warning), 15));
    }

    #[test]
    fn devices_that_do_not_wear_do_not_weigh() {
        let counts = |mean| Some(EraseCounts { min: 1, max: 9, mean, deviation: 0.0 });
        let worn = |mean| Report { erase_counts: counts(mean), ..Report::default() };
        let sum = Report::combined([Report::default(), worn(2.0), Report::default(), worn(4.0)]);
        assert_eq!(sum.erase_counts.map(|counts| (counts.mean, counts.deviation)), Some((3.0, 1.0)));
        assert_eq!(Report::combined([]), Report::default());
    }
}
