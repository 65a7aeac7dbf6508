//! A step as fio's job file.

use crate::run::StepPlan;
use crate::workload::{Access, Arrivals, Bytes, Extent, Load, Phase, Sizes, Streams, Time};

/// Where fio sends its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file or block device.
    Path(String),
    /// An NBD export.
    Nbd(String),
}

/// What a job needs to know of its device.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// Where it is.
    pub place: &'a Place,
    /// Its capacity, bytes.
    pub bytes: u64,
    /// fio's engine.
    pub engine: &'a str,
    /// Go through the page cache.
    pub buffered: bool,
    /// Seed of random choices.
    pub seed: u64,
    /// Where histograms over time go: the beginning of their files' names.
    pub log: &'a str,
    /// Length of an interval of them, milliseconds.
    pub interval_ms: u64,
}

/// What is to be known of open loops.
const LATE: &str = "fio counts the latency of an open loop from when a request was made, not from when it was due";

/// The text of a job file, and what of the step fio does otherwise than it says.
///
/// # Errors
/// fio cannot do what the step asks.
pub fn job(step: &StepPlan, phase: &Phase, site: &Site<'_>) -> Result<(String, Vec<String>), String> {
    let mut notes = Vec::new();
    let [load] = &phase.loads[..] else {
        return Err(format!("{} loads side by side; fio is given one", phase.loads.len()));
    };
    let mut text = String::from("[global]\n");
    let mut set = |key: &str, value: String| text.push_str(&format!("{key}={value}\n"));
    set("ioengine", site.engine.into());
    match site.place {
        Place::Path(path) => {
            // In a file name fio takes a colon for the end of one of several.
            set("filename", path.replace('\\', "\\\\").replace(':', "\\:"));
            set("direct", if site.buffered { "0" } else { "1" }.into());
        }
        Place::Nbd(uri) => set("uri", uri.clone()),
    }
    set("thread", "1".into());
    set("group_reporting", "1".into());
    // fio's seeds are signed.
    set("randseed", (site.seed >> 1).to_string());
    set("random_generator", "tausworthe64".into());
    // With its map of random places fio comes to each once before any comes again.
    if load.access != Access::Shuffled {
        set("norandommap", "1".into());
    }
    set("percentile_list", "50:99".into());
    set("lat_percentiles", "1".into());
    set("clat_percentiles", "1".into());
    set("write_hist_log", site.log.into());
    set("log_hist_msec", site.interval_ms.to_string());
    set("numjobs", load.threads.to_string());
    set("iodepth", load.depth().to_string());
    text.push_str(&format!("\n[{}]\n", step.phase.name));
    text.push_str(&load_lines(load, phase, site, &mut notes)?);
    Ok((text, notes))
}

fn load_lines(load: &Load, phase: &Phase, site: &Site<'_>, notes: &mut Vec<String>) -> Result<String, String> {
    let mut text = String::new();
    let mut set = |key: &str, value: String| text.push_str(&format!("{key}={value}\n"));
    if load.trace.is_some() {
        // Its log has the device's own addresses and the times at which requests are due.
        set("rw", "randrw".into());
        set("read_iolog", super::replay::LOG.into());
        if load.is_open() {
            notes.push(LATE.into());
        } else {
            set("replay_no_stall", "1".into());
        }
        if let Some(duration) = phase.stop.duration {
            set("runtime", time(duration));
        }
        return Ok(text);
    }
    let sequential = matches!(load.access, Access::Sequential);
    let kind = match (load.read_percent, load.trim_percent) {
        (100.0, 0.0) => "read",
        (0.0, 0.0) => "write",
        (_, 0.0) => "rw",
        (0.0, 100.0) => "trim",
        _ => return Err("trims mixed with other requests: fio has no such mix".into()),
    };
    let pieces = match (load.object, &load.size) {
        (None, _) => String::new(),
        (Some(object), Sizes::One(size)) if object.0.is_multiple_of(size.0) => format!(":{}", object.0 / size.0),
        (Some(object), _) => {
            return Err(format!(
                "objects of {}: fio takes a whole number of pieces of one size",
                size::exact(object.0)
            ));
        }
    };
    set("rw", format!("{}{kind}{pieces}", if sequential { "" } else { "rand" }));
    if kind == "rw" {
        if load.read_percent.fract() != 0.0 {
            return Err(format!("{} % reads: fio takes whole percentages", load.read_percent));
        }
        set("rwmixread", load.read_percent.to_string());
    }
    let (reads, writes) = (sizes(&load.size)?, sizes(load.write_size.as_ref().unwrap_or(&load.size))?);
    set("bssplit", format!("{reads},{writes},{writes}"));
    let smallest = load.sizes().0.iter().map(|entry| entry.size).min().unwrap_or(Bytes(4096));
    let align = load.object.or(load.align).unwrap_or(smallest);
    set("blockalign", align.0.to_string());
    match &load.access {
        Access::Random | Access::Shuffled | Access::Sequential => {}
        Access::Mixed(percent) if percent.fract() == 0.0 => set("percentage_random", percent.to_string()),
        Access::Mixed(percent) => return Err(format!("{percent} % random: fio takes whole percentages")),
        Access::Zipf(theta) => set("random_distribution", format!("zipf:{theta}")),
        Access::HotCold(hot) => set(
            "random_distribution",
            format!("zoned:{}/{}:{}/{}", hot.accesses, hot.space, 100.0 - hot.accesses, 100.0 - hot.space),
        ),
        Access::Zones(zones) => {
            let parts: Vec<String> = zones.iter().map(|zone| format!("{}/{}", zone.accesses, zone.space)).collect();
            set("random_distribution", format!("zoned:{}", parts.join(":")));
        }
    }
    let unit = 4096.max(align.0);
    let start = load.region.offset.of(site.bytes) / unit * unit;
    let room = site.bytes.checked_sub(start).filter(|room| *room > 0);
    let room = room.ok_or_else(|| format!("the region begins at {start}, beyond the device of {}", site.bytes))?;
    let mut region = load.region.size.map_or(room, |size: Extent| size.of(site.bytes)).min(room) / unit * unit;
    if sequential && load.threads > 1 && load.streams != Streams::Same {
        // fio's jobs do not share a sequence.
        region = region / u64::from(load.threads) / unit * unit;
        set("offset_increment", region.to_string());
        if load.streams == Streams::Shared {
            notes.push("each of fio's jobs has a sequence of its own, in its own part of the device".into());
        }
    }
    let largest = load.sizes().0.iter().chain(&load.sizes().1).map(|entry| entry.size.0).max().unwrap_or(0);
    if region < largest {
        return Err(format!("a part of {region} B for each job is too small for requests of {largest} B"));
    }
    set("offset", start.to_string());
    set("size", region.to_string());
    let whole = phase.stop.capacities.map(|times| (site.bytes as f64 * times) as u64);
    let amount = [whole, phase.stop.bytes.map(|bytes| bytes.0)].into_iter().flatten().min();
    let each = amount.map(|bytes| (bytes / u64::from(load.threads)).div_ceil(unit) * unit);
    let own = load.thread_bytes.map(|extent| extent.of(site.bytes));
    if let Some(bytes) = [each, own].into_iter().flatten().min() {
        set("io_size", bytes.max(largest).to_string());
    }
    if let Some(duration) = phase.stop.duration {
        set("runtime", time(duration));
        if amount.is_none() && own.is_none() {
            set("time_based", "1".into());
        }
    }
    if phase.ramp.nanos() > 0 {
        set("ramp_time", time(phase.ramp));
    }
    if let Some(rate) = &load.rate {
        set("rate_iops", ((rate.per_second / f64::from(load.threads)).round().max(1.0) as u64).to_string());
        if rate.arrivals == Arrivals::Poisson {
            set("rate_process", "poisson".into());
        }
        notes.push(LATE.into());
    }
    Ok(text)
}

fn time(time: Time) -> String {
    format!("{}us", time.0.as_micros())
}

/// Sizes in the words of `bssplit`. fio takes whole percentages.
fn sizes(sizes: &Sizes) -> Result<String, String> {
    let list = sizes.list();
    let total: f64 = list.iter().map(|entry| entry.weight).sum();
    let mut parts = Vec::new();
    for entry in list.iter().filter(|entry| entry.weight > 0.0) {
        let percent = entry.weight / total * 100.0;
        if (percent - percent.round()).abs() > 0.01 {
            return Err(format!(
                "{percent:.2} % of requests of {}: fio takes whole percentages",
                size::exact(entry.size.0)
            ));
        }
        parts.push(format!("{}/{}", entry.size.0, percent.round()));
    }
    Ok(parts.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Point;
    use crate::workload::{Stop, from_toml};

    fn text(lines: &str, stop: Stop) -> Result<(String, Vec<String>), String> {
        let workload =
            format!("name = \"w\"\n[[phase]]\nname = \"p\"\nstop = {{ duration = 1 }}\n[[phase.load]]\n{lines}");
        let mut phase = from_toml(&workload).expect("a workload").phases.remove(0);
        phase.stop = stop;
        let step = StepPlan {
            label: String::new(),
            point: Point::default(),
            phase: phase.clone(),
            pause: Time::default(),
            intervals: 10,
        };
        let place = Place::Path("/dev/disk/by-id/a:b".into());
        let site = Site {
            place: &place,
            bytes: 1 << 30,
            engine: "libaio",
            buffered: false,
            seed: u64::MAX,
            log: "log",
            interval_ms: 1000,
        };
        job(&step, &phase, &site)
    }

    #[test]
    fn a_step_is_said_in_fios_words() {
        let stop = Stop { capacities: Some(2.0), ..Stop::default() };
        let lines = "read_percent = 70\nsize = [{ size = 512, weight = 1 }, { size = 4096, weight = 3 }]\n\
            write_size = 8192\naccess = { mixed = 80.0 }\nthreads = 4\ndepth = 16\nregion = { offset = \"50%\", size = \"25%\" }";
        let (text, notes) = text(lines, stop).expect("fio can do it");
        for line in [
            "filename=/dev/disk/by-id/a\\:b",
            "direct=1",
            "randseed=9223372036854775807",
            "rw=randrw",
            "rwmixread=70",
            "bssplit=512/25:4096/75,8192/100,8192/100",
            "blockalign=512",
            "percentage_random=80",
            "offset=536870912",
            "size=268435456",
            "io_size=536870912",
            "numjobs=4",
            "iodepth=16",
        ] {
            assert!(text.lines().any(|it| it == line), "no '{line}' in: {text}");
        }
        assert!(!text.contains("time_based") && notes.is_empty());
    }

    #[test]
    fn jobs_that_share_a_sequence_get_a_part_each_and_that_is_said() {
        let stop = Stop { duration: Some(Time(std::time::Duration::from_millis(1500))), ..Stop::default() };
        let (text, notes) = text("read_percent = 0\nsize = \"1MiB\"\naccess = \"sequential\"\nthreads = 4", stop)
            .expect("fio can do it");
        for line in ["rw=write", "offset_increment=268435456", "size=268435456", "runtime=1500000us", "time_based=1"] {
            assert!(text.lines().any(|it| it == line), "no '{line}' in: {text}");
        }
        assert!(notes[0].contains("sequence of its own"));
    }

    #[test]
    fn what_fio_cannot_do_is_refused() {
        let stop = Stop { duration: Some(Time(std::time::Duration::from_secs(1))), ..Stop::default() };
        for (lines, expected) in [
            ("read_percent = 33.3\nsize = 4096", "whole percentages"),
            ("read_percent = 50\ntrim_percent = 10\nsize = 4096", "fio has no such mix"),
            (
                "read_percent = 0\nsize = [{ size = 512, weight = 1 }, { size = 1024, weight = 2 }]",
                "33.33 % of requests of 512",
            ),
            ("read_percent = 0\nsize = \"512MiB\"\naccess = \"sequential\"\nthreads = 4", "too small for requests"),
        ] {
            let message = text(lines, stop).expect_err(lines);
            assert!(message.contains(expected), "{lines}: {message}");
        }
    }
}
