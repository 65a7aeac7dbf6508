//! What a cached volume says that larger and smaller caches would do, of a trace of block requests.
//!
//! `bench/cache_hits.py --estimates` sets beside it what the layer does with each room (`cache_trace` of the crate `ftl`).

use cache::Estimator;

const HELP: &str = "\
Runs a trace of block requests through the estimator of cached volumes, and prints the hit ratios that it gives.

    estimate_trace TRACE ROOM

TRACE   A text file with a request on each line: the number of a 4 KiB block, or `block,count` for several blocks in a row.
ROOM    Blocks that the cache has room for.

A line is printed for each room that the estimator looks at, from a quarter of ROOM on, its columns separated by tabs: blocks, the hit ratio
of the whole trace, and whether the cache was ever full. Then come bytes of memory and nanoseconds for each block asked for.";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, room] = &words[..] else { return Err(HELP.into()) };
    let room: u64 = room.parse().map_err(|_| format!("{room:?} is no number of blocks"))?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let mut requests = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let wrong = || format!("{path}: line {number}: {line:?} is no request; expected `block` or `block,count`");
        let (first, count) = line.split_once(',').unwrap_or((line, "1"));
        let first: u64 = first.trim().parse().map_err(|_| wrong())?;
        let count: u64 = count.trim().parse().map_err(|_| wrong())?;
        requests.push(first..first.checked_add(count).ok_or_else(wrong)?);
    }
    let mut estimator = Estimator::new(room, 0, 4096).with_window(u64::MAX);
    let began = std::time::Instant::now();
    requests.iter().for_each(|request| estimator.read(request, [0; 2]));
    let took = began.elapsed();
    let estimates = estimator.estimates([0; 2]);
    println!("room\tratio\tfull");
    for size in &estimates.rooms {
        println!("{}\t{:.4}\t{}", size.room_sectors, size.hit_ratio.unwrap_or_default(), u8::from(size.full));
    }
    let each = took.as_nanos() as f64 / estimates.read_sectors.max(1) as f64;
    println!("memory\t{}\nnanoseconds\t{each:.1}", estimator.memory());
    Ok(())
}
