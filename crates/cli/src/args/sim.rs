//! Arguments of `vsl sim`.

use std::path::PathBuf;

use card::{Arrangement, Every, Format, Pacing, Policy, Schedule};
use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use device::Capacity;
use lab::simulation::Kill;
use lab::simulation::words::{self, AIRFLOW_LFM, AMBIENT_CELSIUS, SCALES, SHORTEST_INTERVAL};
use lab::workload::{self, Time};

/// `vsl sim`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["workload", "job", "rw", "trace"]))]
#[command(after_long_help = "\
The workload is one of --workload, --job, --trace, or --rw with fio's options. --iodepth, --numjobs, --bs, --rwmixread, \
--rate-iops, --runtime and --ramp-time also change what a workload or a job file says for its measured phases.

A scaled device is as fast as the real one and has less of everything that takes space; what a workload gives in \
bytes shrinks with it, times do not. Memory for the full scale: about 5 bytes for each sector of 4 KiB that is written.

Results go to standard output, with --json in the shape of fio's json+. Ctrl-C ends the run and prints what was \
measured until then (exit status 130).

Examples:
  vsl sim iodrive-duo-640-mlc --rw randwrite --bs 4k --iodepth 16 --numjobs 16 --runtime 60
  vsl sim iodrive-320-mlc --workload fujitsu-database --iodepth 64 --precondition random --driver windows
  vsl sim iodrive2-1200-mlc --job night.fio --format 80% --json | jq '.jobs[].write.iops'
  vsl sim iodrive-320-mlc --rw randwrite --bs 4k --rate-iops 5000 --snapshot-every 1h --keep-snapshots 24
  vsl sim iodrive-320-mlc --trace usr_0.csv.gz --map compact --pace scaled:4
  vsl sim wd-re3 --trace usr_0.csv.gz --cache iodrive-320-mlc --cache-size 32GiB --cache-mode write-back
  vsl sim --objects s3-standard --format 64GiB --rw randwrite --rate-iops 20 --runtime 30d --interval 1d
  vsl sim --list")]
pub struct Sim {
    /// A device of `vsl profiles`.
    #[arg(required_unless_present_any = ["list", "objects"])]
    pub device: Option<String>,
    /// List the workloads that --workload knows by name.
    #[arg(long, exclusive = true)]
    pub list: bool,
    #[command(flatten)]
    pub machine: Machine,
    #[command(flatten)]
    pub cache: super::flash_cache::FlashCache,
    #[command(flatten)]
    pub store: super::object_store::ObjectStore,
    /// A workload by name, a TOML or JSON file of one, or an .icf file of Iometer; docs/workload.md describes it.
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath, help_heading = "Workload")]
    pub workload: Option<String>,
    /// A job file of fio.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Workload")]
    pub job: Option<PathBuf>,
    #[command(flatten)]
    pub trace: TraceOptions,
    #[command(flatten)]
    pub load: Load,
    /// What the device has been through before. [default: fill with --rw and named workloads, fresh with files and with --cache]
    #[arg(long, value_enum, help_heading = "Workload")]
    pub precondition: Option<Precondition>,
    /// Seed of every random choice, in the workload and in the device.
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub seed: Option<u64>,
    /// Have the loads name no placement, whatever the workload says: with and without show what placements are worth.
    #[arg(long, help_heading = "Workload")]
    pub unplaced: bool,
    /// Length of an interval of the results over time.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval, help_heading = "Results")]
    pub interval: Time,
    /// Print the results of every interval too; with --json they are always there.
    #[arg(long, help_heading = "Results")]
    pub over_time: bool,
    /// Print the workload as TOML and run nothing.
    #[arg(long, help_heading = "Results")]
    pub dry_run: bool,
}

/// The device and what is around it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct Machine {
    /// Host capacity: advertised, maximum, improved-write, maximum-write, high-performance, a percentage of the
    /// advertised such as 80%, or a size.
    #[arg(long, value_parser = parse_format, default_value = "advertised")]
    pub format: Format,
    /// How the modules are used: one, both side by side, or two as a RAID of the operating system.
    #[arg(long, value_enum, default_value_t = ArrayKind::Single)]
    pub array: ArrayKind,
    /// What the host's driver costs, by its name in the data sheet, such as linux, windows or esxi. [default: linux]
    #[arg(long, value_name = "NAME")]
    pub driver: Option<String>,
    /// Bytes in a sector. [default: the largest that the device knows and all requests are multiples of]
    #[arg(long, value_name = "BYTES", visible_alias = "sector-size", value_parser = super::values::sector)]
    pub sector: Option<u32>,
    /// Build the device about so many times smaller, or `full`.
    #[arg(long, value_name = "N|full", default_value = "64", value_parser = parse_scale)]
    pub scale: u32,
    /// External power is plugged in: the slot's budget does not hold writes back.
    #[arg(long)]
    pub external_power: bool,
    /// Have a flash chip fail, so long after measuring begins: CHIP or CHIP@TIME. May be given more than once.
    #[arg(long, value_name = "CHIP[@TIME]", value_parser = parse_kill)]
    pub kill_chip: Vec<Kill>,
    /// Air in front of the card, degrees Celsius.
    #[arg(long, value_name = "CELSIUS", default_value_t = 25.0, value_parser = parse_celsius)]
    pub ambient: f64,
    /// Airflow, linear feet a minute. [default: what the data sheet asks for]
    #[arg(long, value_name = "LFM", value_parser = parse_airflow)]
    pub airflow: Option<f64>,
    /// How the groomer and host writes share a flash module when free space is short: steady (every write waits for its share of the work),
    /// on-demand (the groomer begins when nothing is left, and writes wait for it), or rounds:SIZE (writes wait until so much is free, then
    /// run unhindered until it is used up). [default: as the data sheet says]
    #[arg(long, value_name = "HOW", value_parser = words::pacing)]
    pub pacing: Option<Pacing>,
    /// The groomer's policy, such as lifetime, greedy or fifo; docs/groomer.md explains them. [default: as the data sheet says]
    #[arg(long, value_name = "POLICY", value_parser = words::policy)]
    pub groomer: Option<Policy>,
    /// Whether flash grooms ahead of need when no requests come for a tenth of a second.
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub idle_grooming: super::Switch,
    /// Have flash make a snapshot of itself each so much time, such as 1h, or each so many bytes written, such as 10GiB, from the first measured
    /// phase on; and run the same without them before, to see what they cost. A scaled device makes them as many times sooner.
    #[arg(long, value_name = "TIME|SIZE", value_parser = parse_every, requires = "keep_snapshots")]
    pub snapshot_every: Option<Every>,
    /// How many of the newest snapshots are kept.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4096), requires = "snapshot_every")]
    pub keep_snapshots: Option<u32>,
    /// Whether a disk answers writes from its cache. [default: as the data sheet says]
    #[arg(long, value_name = "on|off")]
    pub write_cache: Option<super::Switch>,
}

impl Machine {
    /// The snapshots that flash makes of itself.
    pub fn snapshots(&self) -> Option<Schedule> {
        self.snapshot_every.zip(self.keep_snapshots).map(|(every, keep)| Schedule { every, keep })
    }
}

/// A trace.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload from a trace")]
pub struct TraceOptions {
    /// A block trace, perhaps compressed; docs/traces.md describes formats and rules. Its requests are made until its end, or for
    /// --runtime. --iodepth bounds those outstanding. [default: 65536, and 1 with --pace depth]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Its format, where it is not recognised.
    #[arg(long, value_name = "NAME", requires = "trace", value_parser = super::trace::parse_format)]
    pub trace_format: Option<trace::Format>,
    /// Only this volume of it: a number, or major,minor.
    #[arg(long, value_name = "VOLUME", requires = "trace")]
    pub trace_volume: Option<String>,
    /// How its addresses become those of the device: wrap (modulo), scale, or compact (only what it touches, without gaps).
    /// [default: wrap]
    #[arg(long, value_name = "RULE", requires = "trace", value_parser = parse_map)]
    pub map: Option<trace::playback::Map>,
    /// When its requests are made: recorded, scaled:TIMES such as scaled:2 for twice as fast, or depth: as soon as there is room.
    /// [default: recorded]
    #[arg(long, value_name = "PACE", requires = "trace", value_parser = parse_pace)]
    pub pace: Option<trace::playback::Pace>,
}

/// fio's options.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload, in the words of fio")]
pub struct Load {
    /// read, write, trim, rw, randread, randwrite, randtrim or randrw.
    #[arg(long, value_name = "KIND", visible_alias = "readwrite")]
    pub rw: Option<String>,
    /// Size of requests, such as 4k; reads and writes apart: 4k,64k. [default: 4k]
    #[arg(long, value_name = "SIZE", visible_alias = "blocksize", conflicts_with = "trace")]
    pub bs: Option<String>,
    /// Sizes with percentages, such as 4k/60:64k/40.
    #[arg(long, value_name = "SPLIT", conflicts_with_all = ["bs", "workload", "job", "trace"])]
    pub bssplit: Option<String>,
    /// Share of reads of a mixed workload, per cent.
    #[arg(long, value_name = "PCT", conflicts_with = "trace")]
    pub rwmixread: Option<String>,
    /// Requests that a thread keeps outstanding. [default: 1]
    #[arg(long, value_name = "N")]
    pub iodepth: Option<String>,
    /// Threads. [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "trace")]
    pub numjobs: Option<String>,
    /// How long is measured; seconds without a unit. [default: 10 s]
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<String>,
    /// How long runs before it is measured.
    #[arg(long, value_name = "TIME", alias = "ramp_time")]
    pub ramp_time: Option<String>,
    /// How much of the device is used, as a size or a percentage.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["workload", "job", "trace"])]
    pub size: Option<String>,
    /// Where that begins.
    #[arg(long, value_name = "OFFSET", conflicts_with_all = ["workload", "job", "trace"])]
    pub offset: Option<String>,
    /// Open loop: requests a second of each thread, latency counted from where each was due.
    #[arg(long, value_name = "N", alias = "rate_iops", conflicts_with = "trace")]
    pub rate_iops: Option<String>,
    /// linear or poisson.
    #[arg(long, value_name = "PROCESS", alias = "rate_process", requires = "rate_iops")]
    pub rate_process: Option<String>,
    /// random, zipf:THETA or zoned:ACCESSES/SPACE:…
    #[arg(long, value_name = "DISTRIBUTION", alias = "random_distribution", conflicts_with_all = ["workload", "job", "trace"])]
    pub random_distribution: Option<String>,
    /// Share of requests that are at random, per cent; the others follow the one before.
    #[arg(long, value_name = "PCT", alias = "percentage_random", conflicts_with_all = ["workload", "job", "trace"])]
    pub percentage_random: Option<String>,
}

/// How modules are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrayKind {
    /// One module, or the drive, disk or array that the data sheet describes.
    Single,
    /// Every module of the card as a device of its own; threads are dealt out to them.
    Both,
    /// Two modules, striped.
    Raid0,
    /// Two modules, mirrored.
    Raid1,
}

impl From<ArrayKind> for Arrangement {
    fn from(kind: ArrayKind) -> Arrangement {
        match kind {
            ArrayKind::Single => Arrangement::Single,
            ArrayKind::Both => Arrangement::BothModules,
            ArrayKind::Raid0 => Arrangement::Raid0,
            ArrayKind::Raid1 => Arrangement::Raid1,
        }
    }
}

/// What the device has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Precondition {
    /// Nothing; reads of sectors that were never written touch no flash.
    Fresh,
    /// Written once from beginning to end.
    Fill,
    /// Filled, then 4 KiB random writes of twice its capacity.
    Random,
    /// Filled, then twice its capacity of the workload itself, or of its mirror that only writes.
    Workload,
}

impl From<Precondition> for workload::Precondition {
    fn from(how: Precondition) -> workload::Precondition {
        match how {
            Precondition::Fresh => workload::Precondition::Fresh,
            Precondition::Fill => workload::Precondition::Fill,
            Precondition::Random => workload::Precondition::Random,
            Precondition::Workload => workload::Precondition::Workload,
        }
    }
}

fn parse_format(text: &str) -> Result<Format, String> {
    text.parse::<Capacity>().map(Format::from)
}

pub fn parse_scale(text: &str) -> Result<u32, String> {
    match text {
        "full" => Ok(1),
        text => text
            .parse()
            .ok()
            .filter(|times| SCALES.contains(times))
            .ok_or_else(|| "expected full, or a whole number from 1 to 65536".into()),
    }
}

fn parse_kill(text: &str) -> Result<Kill, String> {
    let (chip, after) = text.split_once('@').map_or((text, None), |(chip, after)| (chip, Some(after)));
    let chip = chip.parse().map_err(|_| "expected a chip's number, or CHIP@TIME such as 5@2s")?;
    Ok(Kill { chip, after: after.map_or(Ok(Time::default()), str::parse)?.nanos() })
}

fn parse_map(text: &str) -> Result<trace::playback::Map, String> {
    text.parse()
}

fn parse_pace(text: &str) -> Result<trace::playback::Pace, String> {
    text.parse()
}

fn parse_interval(text: &str) -> Result<Time, String> {
    let time: Time = text.parse()?;
    if time.nanos() < SHORTEST_INTERVAL { Err("expected a millisecond or more".into()) } else { Ok(time) }
}

fn parse_every(text: &str) -> Result<Every, String> {
    let time = text.parse::<Time>().map(|time| Every::Time(time.nanos()));
    let every = time.or_else(|_| size::parse(text).map(Every::Bytes));
    match every {
        Ok(Every::Time(1_000_000..) | Every::Bytes(4096..)) => every.map_err(|error| error.to_string()),
        _ => Err("expected a time of a millisecond or more such as 1h, or a size such as 10GiB".into()),
    }
}

fn parse_celsius(text: &str) -> Result<f64, String> {
    let degrees = text.parse::<f64>().ok().filter(|degrees| AMBIENT_CELSIUS.contains(degrees));
    degrees.ok_or_else(|| "expected degrees Celsius from -40 to 85".into())
}

fn parse_airflow(text: &str) -> Result<f64, String> {
    let feet = text.parse::<f64>().ok().filter(|feet| AIRFLOW_LFM.contains(feet));
    feet.ok_or_else(|| "expected linear feet a minute from 0 to 10000".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_scales_parse() {
        assert_eq!(parse_format("80%"), Ok(Format::Percent(80.0)));
        assert_eq!(parse_format("100GB"), Ok(Format::Bytes(100_000_000_000)));
        assert_eq!(parse_format("maximum"), Ok(Format::Maximum));
        assert!(parse_format("huge").is_err());
        assert_eq!(parse_scale("full"), Ok(1));
        assert_eq!(parse_scale("128"), Ok(128));
        for text in ["0", "-1", "half", "1000000"] {
            assert!(parse_scale(text).is_err(), "{text}");
        }
        assert!(parse_interval("0").is_err() && parse_interval("100ms").is_ok());
    }
}
