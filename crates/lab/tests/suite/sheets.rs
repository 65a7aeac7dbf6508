//! What every data sheet's device keeps to, whatever it is: larger requests are not slower in bytes, a fresh device is not slower than a
//! worn one, a deeper queue does not lower throughput, and no host is so even that its latencies do not vary.

use std::collections::BTreeMap;

use card::{Options, Surroundings, build};
use lab::engine::virtual_time::{self, run};
use lab::workload::from_toml;
use profile::{Device, Profile};

/// What noise of a short run may take from the larger of two figures.
const NOISE: f64 = 0.03;
/// The same on a worn device: how many rounds of its groomer fall into a run is a matter of luck.
const WEAR: f64 = 0.10;
/// What a deeper queue may cost: a tenth.
const DEEPER: f64 = 0.10;
/// Flash is built about so many times smaller: worn down in no time.
const SCALE: u32 = 1_000;

const KINDS: [(&str, u32, &str); 4] =
    [("read", 100, "sequential"), ("randread", 100, "random"), ("write", 0, "sequential"), ("randwrite", 0, "random")];
const SIZES: [u32; 3] = [4 << 10, 64 << 10, 1 << 20];
const DEPTHS: [u32; 3] = [1, 4, 32];

/// Kind, size and depth.
type Cell = (usize, u32, u32);
/// What each came to: MB/s and the deviation of its latencies, ns.
type Figures = BTreeMap<Cell, (f64, f64)>;

fn cells(kinds: &[usize]) -> Vec<Cell> {
    let sizes = |kind| SIZES.map(|size| DEPTHS.map(|depth| (kind, size, depth)));
    kinds.iter().flat_map(|kind| sizes(*kind)).flatten().collect()
}

/// A workload, phase by phase.
struct Plan(String);

impl Plan {
    fn new() -> Plan {
        Plan("name = \"sheet\"\n".into())
    }

    fn phase(mut self, name: &str, stop: &str, reads: u32, size: u32, access: &str, depth: u32) -> Plan {
        let measured = !name.is_empty();
        let name = if measured { name } else { "before" };
        self.0 += &format!(
            "[[phase]]\nname = \"{name}\"\nmeasured = {measured}\nstop = {{ {stop} }}\n[[phase.load]]\nread_percent = {reads}\n\
             size = {size}\naccess = \"{access}\"\nthreads = 1\ndepth = {depth}\n"
        );
        self
    }

    fn fill(self) -> Plan {
        self.phase("", "capacities = 1.0", 0, 128 << 10, "sequential", 16)
    }

    fn cell(self, (kind, size, depth): Cell, stop: &str) -> Plan {
        let (_, reads, access) = KINDS[kind];
        self.phase(&format!("{kind} {size} {depth}"), stop, reads, size, access, depth)
    }

    /// Does it on a new device.
    fn run(self, profile: &Profile, figures: &mut Figures) {
        let mut built = build(profile, &options()).expect("built");
        let options = virtual_time::Options { driver: profile.drivers["linux"], ..virtual_time::Options::default() };
        let workload = from_toml(&self.0).expect("sound");
        let (results, _) = run(&workload, &mut built.devices, &options, &mut ()).expect("runs");
        for phase in results.measured() {
            let mut words = phase.name.split(' ').map(|word| word.parse::<u32>().expect("a number"));
            let mut word = || words.next().expect("three of them");
            let cell = (word() as usize, word(), word());
            let all = &phase.total.all;
            figures.insert(cell, (all.bytes_per_second / 1e6, all.latency.stddev_ns));
        }
    }
}

/// How the models are built.
fn options() -> Options {
    let surroundings = Surroundings { power_unlimited: true, ..Surroundings::default() };
    Options { scale: SCALE, surroundings, grooms_ahead: false, ..Options::default() }
}

/// What a model holds.
fn bytes(profile: &Profile) -> u64 {
    build(profile, &options()).expect("built").devices.iter().map(|device| device.bytes()).sum()
}

/// Requests that suffice where nothing that came before matters.
fn some((_, size, _): Cell) -> String {
    format!("bytes = {}", (u64::from(size) * 2_000).min(128 << 20))
}

/// Reads of a device that was filled, and writes each to an erased one.
fn fresh(profile: &Profile) -> Figures {
    let mut figures = Figures::new();
    let reads = cells(&[0, 1]).into_iter().fold(Plan::new().fill(), |plan, cell| plan.cell(cell, &some(cell)));
    reads.run(profile, &mut figures);
    for cell in cells(&[2, 3]) {
        Plan::new().cell(cell, "bytes = \"128MiB\"").run(profile, &mut figures);
    }
    figures
}

/// Random writes and reads of a device that was overwritten at random. Sequential writes would make it a fresh one again.
fn worn(profile: &Profile) -> Figures {
    let mut figures = Figures::new();
    // An array is of drives, which cannot be built as small as cards: less of one is more than all of a card.
    let (large, small) = if matches!(profile.device, Device::Array(_)) { (0.3, 0.1) } else { (0.8, 0.3) };
    let capacities = |count: f64| format!("capacities = {count}");
    // Of a large one more, so that more than a few erase blocks are groomed.
    let measured = format!("bytes = {}", (bytes(profile) / 24).max(128 << 20));
    let overwritten = Plan::new().fill().phase("", &capacities(large), 0, 16 << 10, "random", 64);
    let mut plan = overwritten.phase("", &capacities(small), 0, 4096, "random", 64);
    for cell in cells(&[3, 0, 1]) {
        let (kind, size, depth) = cell;
        plan = match kind {
            3 => plan.phase("", "bytes = \"48MiB\"", 0, size, "random", depth).cell(cell, &measured),
            _ => plan.cell(cell, &some(cell)),
        };
    }
    plan.run(profile, &mut figures);
    figures
}

/// A disk is the same whatever it holds.
fn disk(profile: &Profile) -> Figures {
    let mut figures = Figures::new();
    for cell in cells(&[0, 1, 2, 3]) {
        // More writes than its memory takes.
        let stop = if KINDS[cell.0].1 == 0 { "bytes = \"96MiB\"".into() } else { some(cell) };
        Plan::new().cell(cell, &stop).run(profile, &mut figures);
    }
    figures
}

fn is_disk(profile: &Profile) -> bool {
    match &profile.device {
        Device::Disk(_) => true,
        Device::Array(array) => is_disk(&profile::find(&array.member).expect("a member")),
        _ => false,
    }
}

#[test]
fn every_sheet_is_plausible() {
    let mut wrong = Vec::new();
    let mut profiles = profile::all().expect("every sheet parses");
    // Arrays take longest: begun last, one would keep a single processor busy at the end.
    profiles.sort_by_key(|profile| !matches!(profile.device, Device::Array(_)));
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(&mut wrong);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(profile) = profiles.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let these = implausible(profile);
                    found.lock().expect("nobody panics with it").extend(these);
                }
            });
        }
    });
    assert!(wrong.is_empty(), "{} of what no device does:\n{}", wrong.len(), wrong.join("\n"));
}

/// With two controllers or three members in place of eight: what holds for those holds for all, in a fraction of the time.
fn smaller(mut profile: Profile) -> Profile {
    let disks = is_disk(&profile);
    match &mut profile.device {
        Device::Bridged(bridged) => bridged.modules = bridged.modules.min(2),
        Device::Array(array) if !disks => array.count = array.count.min(3),
        Device::Array(_) => {}
        Device::Flash(_) | Device::Disk(_) => {}
    }
    profile
}

fn implausible(profile: &Profile) -> Vec<String> {
    let profile = &smaller(profile.clone());
    let mut wrong = Vec::new();
    if is_disk(profile) {
        uneven(profile, "", NOISE, &disk(profile), &mut wrong);
        return wrong;
    }
    let (fresh, worn) = (fresh(profile), worn(profile));
    uneven(profile, "fresh ", NOISE, &fresh, &mut wrong);
    uneven(profile, "worn ", WEAR, &worn, &mut wrong);
    // Reads of what was scattered may well be faster: more dies take part in one.
    for (cell, (rate, _)) in worn.iter().filter(|((kind, ..), _)| KINDS[*kind].1 == 0) {
        let before = fresh[cell].0;
        if before < rate * (1.0 - NOISE) {
            wrong.push(format!("{}: worn {}: {rate:.1} MB/s, and {before:.1} fresh", profile.name, name(*cell)));
        }
    }
    wrong
}

fn name((kind, size, depth): Cell) -> String {
    format!("{} {} KiB x {depth}", KINDS[kind].0, size >> 10)
}

fn uneven(profile: &Profile, state: &str, noise: f64, figures: &Figures, wrong: &mut Vec<String>) {
    for (&cell, &(rate, deviation)) in figures {
        let (kind, size, depth) = cell;
        let mut complain = |what: String| wrong.push(format!("{}: {state}{}: {what}", profile.name, name(cell)));
        // MQSim's own configuration is compared with MQSim, which has no host.
        if deviation < 1.0 && profile.name != "mqsim-reference" {
            complain("latencies do not vary at all".into());
        }
        if let Some(smaller) = SIZES.iter().rev().find(|other| **other < size) {
            let before = figures[&(kind, *smaller, depth)].0;
            if rate < before * (1.0 - noise) {
                complain(format!("{rate:.1} MB/s, and {before:.1} with {} KiB", smaller >> 10));
            }
        }
        if let Some(shallower) = DEPTHS.iter().rev().find(|other| **other < depth) {
            let before = figures[&(kind, size, *shallower)].0;
            if rate < before * (1.0 - DEEPER) {
                complain(format!("{rate:.1} MB/s, and {before:.1} with {shallower} outstanding"));
            }
        }
    }
}

/// The bandwidths that are published of each size of the ioDrive2, bytes a second.
#[test]
fn each_size_of_the_second_generation_is_as_fast_as_published() {
    for (name, read, write) in [
        ("iodrive2-400-slc", 1.4e9, 1.3e9),
        ("iodrive2-600-slc", 1.5e9, 1.3e9),
        ("iodrive2-365-mlc", 0.91e9, 0.59e9),
        ("iodrive2-785-mlc", 1.5e9, 1.1e9),
        ("iodrive2-1200-mlc", 1.5e9, 1.3e9),
    ] {
        let profile = profile::find(name).expect("a sheet");
        let mut figures = Figures::new();
        let [reads, writes] = [(0, 1 << 20, 32), (2, 1 << 20, 32)];
        Plan::new().cell(writes, "bytes = \"1GiB\"").run(&profile, &mut figures);
        Plan::new().fill().cell(reads, "bytes = \"1GiB\"").run(&profile, &mut figures);
        for (cell, published) in [(reads, read), (writes, write)] {
            let measured = figures[&cell].0 * 1e6;
            assert!((measured / published - 1.0).abs() < 0.05, "{name}: {measured} where {published} is published");
        }
    }
}
