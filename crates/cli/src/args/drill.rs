//! The command line of `vsl drill`.

use clap::{Args, Subcommand};
use device::Unsynced;

use super::Opener;

/// `vsl drill`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_long_help = "\
Only for devices that are marked: `vsl create --drills`, or `vsl config DEVICE drills on` and another attach. A drill lasts until it \
is undone, also over a power cut; a detach ends it. What was done shows in `vsl status` and `vsl events`.

Examples:
  vsl drill db power-cut --at-write 1000
  vsl drill db power-on
  vsl drill d0 kill-die 2
  vsl drill db rot 4096+16
  vsl drill db undo all"
)]
pub struct Drill {
    /// An attached device.
    pub device: String,
    /// What is to happen.
    #[command(subcommand)]
    pub what: What,
}

/// What is to happen.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Cut the power: now, or at a write to come. Clients lose their connections.
    PowerCut {
        /// Cut it with this write, trim or zeroing request from now on, counted as the device takes them: at most 1 MiB each.
        #[arg(long, value_name = "N", conflicts_with = "at_program")]
        at_write: Option<u64>,
        /// Cut it while the medium is told to write for this time from now on: a program, a label or a sync.
        #[arg(long, value_name = "N")]
        at_program: Option<u64>,
        /// What becomes of what no sync covers: random (each program absent, whole or torn), drop, keep or torn.
        #[arg(long, value_name = "HOW", value_parser = parse_unsynced, default_value = "random")]
        unsynced: Unsynced,
        /// Seed of what chance decides, as an earlier cut told it [default: another each time].
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
    /// Switch the power on again: the device is attached anew, from what lies on its files.
    PowerOn {
        #[command(flatten)]
        opener: Opener,
    },
    /// A die (file) answers nothing any more.
    KillDie {
        /// Which, from 0.
        die: u32,
    },
    /// A chip of an emulated card answers nothing any more, with all its dies.
    KillChip {
        /// Which, from 0.
        chip: u32,
    },
    /// A die answers everything later.
    StallDie {
        /// Which, from 0.
        die: u32,
        /// By how many milliseconds.
        #[arg(long, value_name = "N")]
        ms: u64,
    },
    /// Flip a bit in sectors where they lie on the medium.
    Rot {
        /// The first sector, or a range of them.
        #[arg(value_name = "LBA[+COUNT]", value_parser = parse_sectors)]
        sectors: (u64, u64),
    },
    /// The medium fails reads of sectors where they lie now, until they are written anew.
    FailReads {
        /// The first sector, or a range of them.
        #[arg(value_name = "LBA[+COUNT]", value_parser = parse_sectors)]
        sectors: (u64, u64),
    },
    /// Flushes and FUA are answered at once and make nothing durable: the cache that lies.
    IgnoreFlushes,
    /// An emulated card's reserve is used up: it holds writes back.
    FillReserve {
        /// It is worn out, and refuses writes.
        #[arg(long)]
        read_only: bool,
    },
    /// An emulated card is too hot: it holds writes back, or switches itself off.
    Overheat {
        /// Inside, degrees Celsius [default: one more than where it begins to hold writes back].
        #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = parse_celsius)]
        celsius: Option<f64>,
    },
    /// What stands on an emulated card is older than it is: reads take retries, until it is written anew.
    Age {
        /// By so many days.
        #[arg(long, value_name = "DAYS")]
        days: u32,
    },
    /// List the drills that are on.
    List,
    /// End drills.
    Undo {
        /// The drill's name, or all.
        name: String,
    },
}

fn parse_unsynced(text: &str) -> Result<Unsynced, String> {
    let names: Vec<&str> = Unsynced::ALL.iter().map(|how| how.name()).collect();
    let found = Unsynced::ALL.into_iter().find(|how| how.name() == text);
    found.ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

fn parse_celsius(text: &str) -> Result<f64, String> {
    let celsius = text.parse().ok().filter(|celsius: &f64| celsius.is_finite());
    celsius.ok_or_else(|| "expected degrees, such as 80 or 82.5".into())
}

fn parse_sectors(text: &str) -> Result<(u64, u64), String> {
    let (lba, count) = text.split_once('+').unwrap_or((text, "1"));
    match (lba.parse(), count.parse()) {
        (Ok(lba), Ok(count)) if count > 0 => Ok((lba, count)),
        _ => Err("expected a sector's number such as 4096, or a range such as 4096+16".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_parse() {
        assert_eq!(parse_sectors("7"), Ok((7, 1)));
        assert_eq!(parse_sectors("7+16"), Ok((7, 16)));
        for text in ["", "+", "7+", "+7", "7+0", "7-9", "-7", "x", "99999999999999999999"] {
            assert!(parse_sectors(text).is_err(), "{text}");
        }
    }

    #[test]
    fn temperatures_parse() {
        assert_eq!((parse_celsius("82.5"), parse_celsius("-5")), (Ok(82.5), Ok(-5.0)));
        for text in ["", "warm", "nan", "inf", "80C"] {
            assert!(parse_celsius(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fates_parse() {
        for how in Unsynced::ALL {
            assert_eq!(parse_unsynced(how.name()), Ok(how));
        }
        assert!(parse_unsynced("maybe").is_err());
    }
}
