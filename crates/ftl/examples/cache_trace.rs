//! A trace of block requests through the layer as a cache: how many hit, and what the cache writes for it.
//!
//! `cargo run --release -p openvsl-ftl --example cache_trace TRACE SIZE...` prints a line for each size. `bench/cache_hits.py` sets other
//! policies beside it.

use std::collections::HashMap;

use ftl::{Addressed, Admission, Anchor, AtOnce, Config, Geometry, Policy, Recovery, Request, Stats};

const HELP: &str = "\
Runs a trace of block requests through the translation layer as a cache, and prints hit ratio and write amplification.

    cache_trace [--leb SLOTS] TRACE SIZE...

TRACE   A text file with a request on each line: the number of a 4 KiB block, or `block,count` for several blocks in a row.
        Each block of a request is looked up by itself. Reads and writes are not told apart: a block that is cached is a hit,
        another one is written to the cache.
SIZE    Blocks that the cache may hold, or with a percent sign the share of the trace's footprint, say 10%.
--leb   Slots of a LEB for cached blocks; one more holds its header. Without it, a 200th of the cache, from 64 to 512.

A line is printed for each size, its columns separated by tabs: the footprint, blocks asked for, blocks that the cache may hold
(the size rounded down to whole LEBs), slots of a LEB, blocks that it held in the mean, hits, and since the cache was full for
the first time: blocks filled in, blocks that the groomer moved, slots of padding, slots of metadata, and write amplification,
which is the sum of the last four over the first of them. The last column is what the policy keeps in memory for each block that the
cache may hold, in bytes.";

/// LEBs that the cache is divided into, where each then has neither too many slots nor too few.
const LEBS: u64 = 200;
const SLOTS_MIN: u64 = 64;
const SLOTS_MAX: u64 = 512;

/// A trace: its blocks, numbered from 0 in the order in which they come for the first time.
struct Trace {
    blocks: Vec<u32>,
    footprint: u64,
}

impl Trace {
    /// # Errors
    /// A line that is no request.
    fn parse(text: &str) -> Result<Trace, String> {
        let (mut numbers, mut blocks) = (HashMap::new(), Vec::new());
        for (line, number) in text.lines().zip(1..) {
            let wrong = || format!("line {number}: {line:?} is no request; expected `block` or `block,count`");
            let (first, count) = line.split_once(',').unwrap_or((line, "1"));
            let first: u64 = first.trim().parse().map_err(|_| wrong())?;
            let count: u64 = count.trim().parse().map_err(|_| wrong())?;
            for block in first..first.checked_add(count).ok_or_else(wrong)? {
                let next = numbers.len() as u32;
                blocks.push(*numbers.entry(block).or_insert(next));
            }
        }
        Ok(Trace { blocks, footprint: numbers.len() as u64 })
    }
}

/// An empty cache that may hold so many sectors, rounded down to whole LEBs, of a store with so many.
fn cache(size: u64, slots: u64, store: u64) -> Addressed<AtOnce> {
    let geometry = |lebs: u64| Geometry {
        dies: 1,
        parity: 0,
        blocks: lebs as u32,
        pages_per_block: slots as u32 + 1,
        slots_per_page: 1,
        sector_bytes: 4096,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4128,
    };
    let mut lebs = size / slots;
    // How many LEBs are spare depends on how many there are.
    while ftl::room(&geometry(lebs + 1), u64::MAX) <= size.max(slots) {
        lebs += 1;
    }
    let geometry = geometry(lebs);
    let mut config = Config {
        geometry,
        // More than there are slots: the address space is sparse.
        sectors: store.max(geometry.slots() + 1),
        max_request: 1,
        buffers: 0,
        requests: 1,
        checkpoint_interval: 1 << 30,
        erase_before_program: true,
        power_protected: true,
        policy: Policy::default(),
    };
    config.buffers = config.min_buffers();
    let recovered = Recovery::new(config, Anchor::default()).and_then(|recovery| recovery.finish(1));
    let mut device = Addressed::new(recovered.expect("an empty layer"), AtOnce);
    device.ftl.set_evictable(store);
    device
}

/// What came of a trace.
struct Outcome {
    hits: u64,
    /// Sums of how much was cached, over all blocks that were asked for since the cache was full.
    held: u64,
    full_for: u64,
    /// What was written when the cache was full for the first time, and in the end.
    full: Option<Stats>,
    end: Stats,
}

fn run(trace: &Trace, device: &mut Addressed<AtOnce>) -> Outcome {
    let (mut hits, mut held, mut full_for, mut full) = (0, 0, 0, None);
    for block in &trace.blocks {
        let lba = u64::from(*block);
        let hit = device.ftl.map().mapped_in(lba, 1) == 1;
        let request = match hit {
            true => Request::Read { lba, count: 1 },
            false => Request::Write { lba, count: 1, fua: false },
        };
        let admission = device.submit(request);
        assert!(matches!(admission, Admission::Done | Admission::Pending), "block {block}: {admission:?}");
        hits += u64::from(hit);
        if full.is_none() && device.ftl.evicted_sectors() > 0 {
            full = Some(*device.ftl.stats());
        }
        if full.is_some() {
            (held, full_for) = (held + device.ftl.map().mapped(), full_for + 1);
        }
    }
    device.verify().expect("the books agree");
    Outcome { hits, held, full_for, full, end: *device.ftl.stats() }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let mut slots = None;
    if let Some(at) = words.iter().position(|word| word == "--leb") {
        let value = words.get(at + 1).ok_or("--leb needs a number of slots")?;
        slots = Some(value.parse::<u64>().ok().filter(|slots| *slots > 1).ok_or("--leb needs a number above 1")?);
        words.drain(at..at + 2);
    }
    let [path, sizes @ ..] = &words[..] else { return Err(HELP.into()) };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let trace = Trace::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    println!("footprint\tasked\troom\tslots\theld\thits\tfilled\tmoved\tpadding\tmetadata\tamplification\tmemory");
    for size in sizes {
        let (number, share) = size.strip_suffix('%').map_or((size.as_str(), false), |number| (number, true));
        let number: f64 = number.parse().map_err(|_| format!("{size:?} is no number of blocks, and no share"))?;
        let size = if share { (trace.footprint as f64 * number / 100.0) as u64 } else { number as u64 };
        let slots = slots.unwrap_or_else(|| (size / LEBS).next_power_of_two().clamp(SLOTS_MIN, SLOTS_MAX));
        let mut device = cache(size, slots, trace.footprint);
        let Outcome { hits, held, full_for, full, end } = run(&trace, &mut device);
        let (footprint, asked, room) = (trace.footprint, trace.blocks.len(), device.ftl.config().room());
        let full = full.unwrap_or(end);
        let filled = end.host_written_sectors - full.host_written_sectors;
        let moved = end.groomed_sectors - full.groomed_sectors;
        let padding = end.padding_slots - full.padding_slots;
        let metadata = end.metadata_slots - full.metadata_slots;
        let held = held.checked_div(full_for).unwrap_or_else(|| device.ftl.map().mapped());
        let amplification = (filled + moved + padding + metadata) as f64 / filled as f64;
        let memory = device.ftl.policy_memory() as f64 / room as f64;
        println!(
            "{footprint}\t{asked}\t{room}\t{slots}\t{held}\t{hits}\t{filled}\t{moved}\t{padding}\t{metadata}\t{amplification:.3}\t{memory:.2}"
        );
    }
    Ok(())
}
