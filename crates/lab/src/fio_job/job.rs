//! One job: fio's options as a load.

use std::time::Duration;

use super::placed::Placed;
use super::sections::Assignment;
use super::value;
use crate::workload::{Access, Arrivals, Bytes, Extent, Load, Rate, Region, Sizes, Streams};

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is called.
    pub name: String,
    /// Where its section begins.
    pub line: usize,
    /// What it does.
    pub load: Load,
    /// How long, without the ramp.
    pub runtime: Option<Duration>,
    /// Time before anything is counted.
    pub ramp: Duration,
    /// It waits for the jobs before it.
    pub waits: bool,
    /// Where its random choices come from.
    pub seed: Option<u64>,
}

/// Options that make no difference to which requests are made, or none in virtual time.
const PASSED_OVER: &[&str] = &[
    "ioengine",
    "direct",
    "buffered",
    "filename",
    "directory",
    "filename_format",
    "name",
    "description",
    "group_reporting",
    "new_group",
    "thread",
    "invalidate",
    "fallocate",
    "allow_mounted_write",
    "norandommap",
    "softrandommap",
    "random_generator",
    "randrepeat",
    "allrandrepeat",
    "refill_buffers",
    "scramble_buffers",
    "zero_buffers",
    "buffer_pattern",
    "buffer_compress_percentage",
    "dedupe_percentage",
    "mem",
    "iomem",
    "cpus_allowed",
    "cpus_allowed_policy",
    "cpumask",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "nice",
    "prio",
    "prioclass",
    "hipri",
    "registerfiles",
    "fixedbufs",
    "sqthread_poll",
    "nonvectored",
    "uncached",
    "nowait",
    "force_async",
    "gtod_reduce",
    "gtod_cpu",
    "clocksource",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "disable_bw",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "percentile_list",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "log_avg_msec",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "per_job_logs",
    "bwavgtime",
    "iopsavgtime",
    "significant_figures",
    "unified_rw_reporting",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "iodepth_low",
    "uri",
    "kb_base",
    "unit_base",
    "stats",
    "status_interval",
    "eta",
    "create_serialize",
    "create_fsync",
    "overwrite",
    "unlink",
    "exitall",
    "disk_util",
    "serialize_overlap",
];

/// Options that are harmless when they are switched off.
const HARMLESS_OFF: &[&str] = &[
    "fsync",
    "fdatasync",
    "end_fsync",
    "fsync_on_close",
    "sync",
    "verify",
    "do_verify",
    "thinktime",
    "startdelay",
    "zonemode",
    "loops",
];

/// What is said so far.
#[derive(Default)]
struct Options {
    rw: Option<(f64, f64, bool)>,
    /// Requests in order from each random place on.
    run: Option<u64>,
    placed: Placed,
    mix: Option<f64>,
    one: (Option<Sizes>, Option<Sizes>),
    align: Option<u64>,
    depth: u32,
    jobs: u32,
    size: Option<Extent>,
    amount: Option<Extent>,
    offset: Option<Extent>,
    runtime: Option<Duration>,
    time_based: bool,
    ramp: Duration,
    access: Option<Access>,
    random_share: Option<f64>,
    rate: Option<f64>,
    poisson: bool,
    waits: bool,
    seed: Option<u64>,
}

impl Job {
    /// A job of these options.
    ///
    /// # Errors
    /// The line and what is wrong in it.
    pub fn new(name: &str, line: usize, all: &[Assignment], notes: &mut Vec<String>) -> Result<Job, (usize, String)> {
        let mut options = Options { depth: 1, jobs: 1, ..Options::default() };
        for assignment in all {
            options
                .set(assignment, notes)
                .map_err(|problem| (assignment.line, format!("{}: {problem}", assignment.key)))?;
        }
        options.job(name, line).map_err(|problem| (line, problem))
    }
}

impl Options {
    fn set(&mut self, assignment: &Assignment, notes: &mut Vec<String>) -> Result<(), String> {
        let given = assignment.value.as_deref();
        let key = assignment.key.as_str();
        let text = || given.filter(|text| !text.is_empty()).ok_or_else(|| "has no value".to_owned());
        match key {
            "rw" | "readwrite" => (self.rw, self.run) = kind(text()?).map(|(kind, run)| (Some(kind), run))?,
            "rwmixread" => self.mix = Some(value::percent(text()?)?),
            "rwmixwrite" => self.mix = Some(100.0 - value::percent(text()?)?),
            "bs" | "blocksize" => {
                self.one = value::directions(text()?, |part| value::bytes(part).map(|size| Sizes::One(Bytes(size))))?;
            }
            "bsrange" | "blocksize_range" => self.one = value::directions(text()?, value::range)?,
            "bssplit" => self.one = value::directions(text()?, value::split)?,
            "ba" | "blockalign" => self.align = Some(value::bytes(text()?)?),
            "iodepth" => self.depth = value::number(text()?)?,
            "numjobs" => self.jobs = value::number(text()?)?,
            "size" => self.size = Some(value::extent(text()?)?),
            "io_size" | "io_limit" => self.amount = Some(value::extent(text()?)?),
            "offset" => self.offset = Some(value::extent(text()?)?),
            "runtime" | "timeout" => self.runtime = Some(value::time(text()?)?),
            "time_based" => self.time_based = value::switch(given)?,
            "ramp_time" => self.ramp = value::time(text()?)?,
            "random_distribution" => self.access = Some(distribution(text()?)?),
            "percentage_random" => self.random_share = Some(value::percent(text()?)?),
            "rate_iops" => self.rate = Some(value::number::<u32>(text()?)?.into()),
            "rate_process" => {
                self.poisson = match text()? {
                    "linear" => false,
                    "poisson" => true,
                    other => return Err(format!("'{other}' is not known; expected linear or poisson")),
                }
            }
            "stonewall" | "wait_for_previous" => self.waits = value::switch(given)?,
            "randseed" => self.seed = Some(value::number(text()?)?),
            key if self.placed.set(key, given)? => {}
            key if PASSED_OVER.contains(&key) => notes.push(format!("{key}: makes no difference here")),
            key if HARMLESS_OFF.contains(&key) && matches!(given, Some("0" | "none") | None) && (key != "loops") => {}
            "loops" if given == Some("1") => {}
            _ => {
                return Err("is not understood, and may change the I/O; take it out, or say it with the options of docs/workload.md".into());
            }
        }
        Ok(())
    }

    fn job(self, name: &str, line: usize) -> Result<Job, String> {
        let (mut read_percent, trim_percent, random) = self.rw.unwrap_or((100.0, 0.0, false));
        if read_percent == 50.0
            && let Some(mix) = self.mix
        {
            read_percent = mix;
        }
        let (read_size, write_size) = self.one;
        let four = || Sizes::One(Bytes(4096));
        let (read_size, write_size) = (read_size.unwrap_or_else(four), write_size.unwrap_or_else(four));
        // fio aligns random offsets to the smallest size.
        let mut smallest: Vec<u64> = Vec::new();
        if read_percent > 0.0 {
            smallest.extend(read_size.list().iter().map(|entry| entry.size.0));
        }
        if read_percent < 100.0 {
            smallest.extend(write_size.list().iter().map(|entry| entry.size.0));
        }
        let sizes = if read_percent > 0.0 { &read_size } else { &write_size };
        let object = match (self.run, sizes, self.align) {
            (None, _, _) => None,
            (Some(run), Sizes::One(Bytes(size)), Some(align)) if size.checked_mul(run) == Some(align) => {
                Some(Bytes(align))
            }
            (Some(run), _, _) => {
                return Err(format!(
                    "job '{name}': rw=...:{run} is understood as whole objects of {run} requests; give one bs, and blockalign as {run} times that"
                ));
            }
        };
        let align = match object {
            Some(_) => None,
            None => self.align.or_else(|| if random { smallest.iter().min().copied() } else { None }),
        };
        let access = match (random, self.random_share, self.access) {
            (false, None | Some(0.0), None) => Access::Sequential,
            (false, _, _) => {
                return Err(format!("job '{name}': percentage_random and random_distribution need a random rw"));
            }
            (true, None | Some(100.0), access) => access.unwrap_or_default(),
            (true, Some(share), None | Some(Access::Random)) => Access::Mixed(share),
            (true, Some(_), Some(_)) => {
                return Err(format!(
                    "job '{name}': percentage_random with another random_distribution is not known here"
                ));
            }
        };
        let whole = Extent::Percent(100.0);
        let thread_bytes = match (self.time_based, self.runtime, self.amount) {
            (true, None, _) => return Err(format!("job '{name}': time_based needs runtime")),
            (true, Some(_), _) => None,
            (false, _, Some(amount)) => Some(amount),
            (false, _, None) => Some(self.size.unwrap_or(whole)),
        };
        let arrivals = if self.poisson { Arrivals::Poisson } else { Arrivals::Fixed };
        let load = Load {
            name: name.into(),
            read_percent,
            trim_percent,
            write_size: (write_size != read_size && read_percent > 0.0).then(|| write_size.clone()),
            size: if read_percent > 0.0 { read_size } else { write_size },
            access,
            streams: if random { Streams::Shared } else { Streams::Same },
            object,
            align: align.map(Bytes),
            region: Region { offset: self.offset.unwrap_or(Extent::Bytes(0)), size: self.size },
            placement: self.placed.placement(),
            threads: self.jobs,
            depth: Some(self.depth),
            rate: self.rate.map(|rate| Rate { per_second: rate * f64::from(self.jobs), arrivals }),
            thread_bytes,
            trace: None,
        };
        Ok(Job {
            name: name.into(),
            line,
            load,
            runtime: self.runtime,
            ramp: self.ramp,
            waits: self.waits,
            seed: self.seed,
        })
    }
}

/// Reads and trims in per cent, and whether they are at random; then how many requests follow each other from each random place on.
#[allow(clippy::type_complexity)]
fn kind(text: &str) -> Result<((f64, f64, bool), Option<u64>), String> {
    let (name, run) = match text.split_once(':').map(|(name, run)| (name, run.parse::<u64>())) {
        Some((name, Ok(run))) if run > 0 && name.starts_with("rand") => (name, Some(run).filter(|run| *run > 1)),
        _ => (text, None),
    };
    let kind = match name {
        "read" => (100.0, 0.0, false),
        "write" => (0.0, 0.0, false),
        "trim" => (0.0, 100.0, false),
        "rw" | "readwrite" => (50.0, 0.0, false),
        "randread" => (100.0, 0.0, true),
        "randwrite" => (0.0, 0.0, true),
        "randtrim" => (0.0, 100.0, true),
        "randrw" => (50.0, 0.0, true),
        _ => {
            return Err(format!(
                "'{text}' is not known; expected read, write, trim, rw, randread, randwrite, randtrim or randrw, the last four perhaps with such as :32"
            ));
        }
    };
    Ok((kind, run))
}

fn distribution(text: &str) -> Result<Access, String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "random" => Ok(Access::Random),
        "zipf" => {
            let theta = if rest.is_empty() { Ok(1.1) } else { rest.parse::<f64>() };
            theta.map(Access::Zipf).map_err(|_| format!("'{rest}' is no theta; expected such as zipf:1.2"))
        }
        "zoned" => value::zones(rest).map(Access::Zones),
        other => Err(format!("'{other}' is not known; expected random, zipf:theta or zoned:accesses/space:…")),
    }
}
