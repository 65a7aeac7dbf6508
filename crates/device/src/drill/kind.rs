//! What can go wrong by command.

use std::fmt;

use media::drill::Unsynced;
use serde::{Deserialize, Serialize};

/// Something that goes wrong by command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "drill", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Drill {
    /// The power goes: now, or when the device or its medium has been written to so often.
    PowerCut {
        /// With this write, trim or zeroing request from now on; it is not answered.
        #[serde(default)]
        at_write: Option<u64>,
        /// While the medium is told to write for this time from now on: a program, a label or a sync.
        #[serde(default)]
        at_program: Option<u64>,
        /// What becomes of what no sync covers.
        #[serde(default, with = "UnsyncedText")]
        unsynced: Unsynced,
        /// Where chance decides; drawn, and told, when none is given.
        #[serde(default)]
        seed: Option<u64>,
    },
    /// A die answers nothing any more.
    KillDie {
        /// Which.
        die: u32,
    },
    /// A chip of an emulated card answers nothing any more, with all its dies.
    KillChip {
        /// Which.
        chip: u32,
    },
    /// A die takes longer for everything.
    StallDie {
        /// Which.
        die: u32,
        /// How much longer, milliseconds.
        ms: u64,
    },
    /// A bit of each sector flips where it lies on the medium.
    Rot {
        /// The first.
        lba: u64,
        /// How many.
        count: u64,
    },
    /// The medium fails reads of sectors where they lie now, until they are written anew.
    FailReads {
        /// The first.
        lba: u64,
        /// How many.
        count: u64,
    },
    /// Flushes, and FUA, are answered at once and make nothing durable.
    IgnoreFlushes,
    /// An emulated card's reserve is used up.
    FillReserve {
        /// So far that it takes no writes any more; otherwise it takes them slowly.
        #[serde(default)]
        read_only: bool,
    },
    /// An emulated card is too hot.
    Overheat {
        /// Inside, degrees Celsius; just above the temperature at which it throttles, if nothing is said.
        #[serde(default)]
        celsius: Option<f64>,
    },
    /// What stands on an emulated card is older than it is, so that it is read again and again until it is right.
    Age {
        /// By so many days.
        days: u32,
    },
}

/// [`Unsynced`] as text.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Unsynced", rename_all = "kebab-case")]
enum UnsyncedText {
    Random,
    Drop,
    Keep,
    Torn,
}

impl Drill {
    /// Names of all drills.
    pub const NAMES: [&'static str; 10] = [
        "power-cut",
        "kill-die",
        "kill-chip",
        "stall-die",
        "rot",
        "fail-reads",
        "ignore-flushes",
        "fill-reserve",
        "overheat",
        "age",
    ];

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Drill::PowerCut { .. } => "power-cut",
            Drill::KillDie { .. } => "kill-die",
            Drill::KillChip { .. } => "kill-chip",
            Drill::StallDie { .. } => "stall-die",
            Drill::Rot { .. } => "rot",
            Drill::FailReads { .. } => "fail-reads",
            Drill::IgnoreFlushes => "ignore-flushes",
            Drill::FillReserve { .. } => "fill-reserve",
            Drill::Overheat { .. } => "overheat",
            Drill::Age { .. } => "age",
        }
    }

    /// Whether the two cannot be on together.
    pub(super) fn excludes(&self, other: &Drill) -> bool {
        match (self, other) {
            (Drill::KillDie { die }, Drill::KillDie { die: other }) => die == other,
            (Drill::KillChip { chip }, Drill::KillChip { chip: other }) => chip == other,
            (Drill::StallDie { die, .. }, Drill::StallDie { die: other, .. }) => die == other,
            (Drill::Rot { lba, count }, Drill::Rot { lba: other, count: others })
            | (Drill::FailReads { lba, count }, Drill::FailReads { lba: other, count: others }) => {
                *lba < other.saturating_add(*others) && *other < lba.saturating_add(*count)
            }
            _ => self.name() == other.name(),
        }
    }
}

impl fmt::Display for Drill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Drill::PowerCut { at_write: Some(n), .. } => write!(f, " at write {n}"),
            Drill::PowerCut { at_program: Some(n), .. } => write!(f, " at program {n}"),
            Drill::KillDie { die } => write!(f, " {die}"),
            Drill::KillChip { chip } => write!(f, " {chip}"),
            Drill::StallDie { die, ms } => write!(f, " {die} by {ms} ms"),
            Drill::Rot { lba, count } | Drill::FailReads { lba, count } => write!(f, " {lba}+{count}"),
            Drill::FillReserve { read_only: true } => f.write_str(" until it is read-only"),
            Drill::Overheat { celsius: Some(celsius) } => write!(f, " to {celsius} degrees Celsius"),
            Drill::Age { days } => write!(f, " by {days} days"),
            _ => Ok(()),
        }
    }
}
