//! What a trace amounts to, in one pass and in memory that is the same for every trace.

mod bins;
mod blocks;
mod bursts;
mod distinct;
mod hot_spots;
mod result;
mod sequences;
mod sizes;
mod spread;
mod text;
mod timeline;

use std::collections::BTreeMap;

pub use bursts::Window;
pub use hot_spots::{HotSpots, Share};
pub use result::{Addresses, Blocks, Count, Footprint, Info, Ops, Overwrites, Part, Source, Timeline, Volume};
pub use sequences::Sequential;
pub use sizes::{Aligned, Size};
pub use spread::{Point, Spread};
pub use text::table;
pub use timeline::Row;

use self::blocks::BLOCK;
use self::spread::Values;
use self::timeline::{Interval, Region, index};
use crate::error::TraceError;
use crate::reader::Reader;
use crate::record::{LARGEST_OFFSET, Op, Record};

/// Volumes whose counts are kept apart. Of more, the others are counted together.
const MOST_VOLUMES: usize = 4096;

/// Takes records, and says what they amount to.
#[derive(Debug)]
pub struct Characteriser {
    first_ns: Option<u64>,
    last_ns: u64,
    previous_ns: u64,
    out_of_order: u64,
    counts: [Total; 4],
    volumes: BTreeMap<u32, Volume>,
    other_volumes: Volume,
    sizes: sizes::Sizes,
    blocks: blocks::Blocks,
    /// Blocks written up to now, each time counted.
    written_blocks: u64,
    /// Blocks of reads and writes up to now, each time counted.
    touched_blocks: u64,
    rewrite_ns: Values,
    rewrite_blocks: Values,
    intervals: bins::Bins<Interval>,
    regions: bins::Bins<Region>,
    bursts: bursts::Bursts,
    sequences: sequences::Sequences,
    gaps: Values,
}

#[derive(Clone, Debug, Default)]
struct Total {
    requests: u64,
    bytes: u128,
    response: Option<Box<Values>>,
}

impl Default for Characteriser {
    fn default() -> Characteriser {
        Characteriser {
            first_ns: None,
            last_ns: 0,
            previous_ns: 0,
            out_of_order: 0,
            counts: Default::default(),
            volumes: BTreeMap::new(),
            other_volumes: Volume::default(),
            sizes: sizes::Sizes::default(),
            blocks: blocks::Blocks::default(),
            written_blocks: 0,
            touched_blocks: 0,
            rewrite_ns: Values::default(),
            rewrite_blocks: Values::default(),
            // A millisecond and a megabyte: less than anybody wants to see, so that what is seen is at least half as fine as can be.
            intervals: bins::Bins::new(1_000_000),
            regions: bins::Bins::new(1 << 20),
            bursts: bursts::Bursts::default(),
            sequences: sequences::Sequences::default(),
            gaps: Values::default(),
        }
    }
}

impl Characteriser {
    /// One more record.
    pub fn add(&mut self, record: &Record) {
        let first = *self.first_ns.get_or_insert(record.time_ns);
        if self.records() > 0 {
            self.gaps.add(record.time_ns.saturating_sub(self.previous_ns));
            self.out_of_order += u64::from(record.time_ns < self.previous_ns);
        }
        self.previous_ns = record.time_ns;
        self.last_ns = self.last_ns.max(record.time_ns);
        // One that is out of order and before the first counts as if it came with it.
        let since = record.time_ns.saturating_sub(first);
        self.bursts.add(since);
        let total = &mut self.counts[index(record.op)];
        total.requests += 1;
        total.bytes += u128::from(record.bytes);
        if let Some(response) = record.response_ns {
            total.response.get_or_insert_default().add(response);
        }
        let known = self.volumes.len() < MOST_VOLUMES || self.volumes.contains_key(&record.volume);
        let volume = if known { self.volumes.entry(record.volume).or_default() } else { &mut self.other_volumes };
        volume.add(record);
        self.sizes.add(record);
        let interval = self.intervals.at(since);
        interval.add(record);
        if !record.op.has_data() {
            return;
        }
        self.sequences.add(record);
        let region = self.regions.at(record.offset);
        let write = record.op == Op::Write;
        region.reads += u64::from(!write);
        region.writes += u64::from(write);
        for block in record.offset / BLOCK..record.end().div_ceil(BLOCK) {
            let key = blocks::Blocks::key(record.volume, block);
            self.touched_blocks += 1;
            self.written_blocks += u64::from(write);
            interval.touch(key);
            let Some(touched) = self.blocks.touch(key) else { continue };
            if touched.is_new {
                interval.new_blocks += touched.weight;
            }
            let block = touched.block;
            if !write {
                block.reads = block.reads.saturating_add(1);
                continue;
            }
            if block.writes > 0 {
                self.rewrite_ns.add(record.time_ns.saturating_sub(block.written_at_ns));
                self.rewrite_blocks.add(self.written_blocks - block.written_after);
            }
            block.writes = block.writes.saturating_add(1);
            block.written_at_ns = record.time_ns;
            block.written_after = self.written_blocks;
        }
    }

    /// Records up to now.
    pub fn records(&self) -> u64 {
        self.counts.iter().map(|total| total.requests).sum()
    }

    /// What they amount to; `source` says what they are.
    pub fn finish(self, source: Source) -> Info {
        let records = self.records();
        let seconds = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0)) as f64 / 1e9;
        let weight = self.blocks.weight();
        let count = |test: fn(&blocks::Block) -> bool| {
            let number = self.blocks.histories().filter(|block| test(block)).count() as u64 * weight;
            Blocks { blocks: number, bytes: number.saturating_mul(BLOCK) }
        };
        let footprint = Footprint {
            block_bytes: BLOCK,
            sampled_one_in: weight,
            touched: count(|_| true),
            read: count(|block| block.reads > 0),
            written: count(|block| block.writes > 0),
            read_and_written: count(|block| block.reads > 0 && block.writes > 0),
            accesses: self.touched_blocks,
            span_bytes: self.volumes.values().chain([&self.other_volumes]).map(|volume| volume.span_bytes).sum(),
        };
        let again: u64 = self
            .blocks
            .histories()
            .map(|block| u64::from(block.writes).saturating_sub(1))
            .sum::<u64>()
            .saturating_mul(weight);
        let share = |part: u64, of: u64| (of > 0).then(|| 100.0 * part as f64 / of as f64);
        let overwrites = Overwrites {
            written_blocks: self.written_blocks,
            overwritten_percent: share(again.min(self.written_blocks), self.written_blocks),
            interval_seconds: self.rewrite_ns.spread(1e9),
            interval_written_bytes: self.rewrite_blocks.spread(1.0 / BLOCK as f64),
        };
        let (sizes, other_sizes) = self.sizes.sizes();
        let mut before = 0;
        let width = self.intervals.width() as f64 / 1e9;
        let rows = self.intervals.all().iter().enumerate().map(|(at, interval)| {
            let row = interval.row(at as f64 * width, before);
            before = row.footprint_blocks;
            row
        });
        let timeline = Timeline {
            interval_seconds: width,
            working_set_error_percent: distinct::Distinct::ERROR_PERCENT,
            rows: rows.collect(),
        };
        let part_bytes = self.regions.width();
        let parts = self.regions.all().iter().enumerate().filter(|(_, part)| **part != Region::default());
        let parts = parts.map(|(at, region)| Part {
            offset: at as u64 * part_bytes,
            reads: region.reads,
            writes: region.writes,
        });
        let [read, write, trim, flush] = &self.counts;
        let count = |total: &Total| Count {
            requests: total.requests,
            percent: share(total.requests, records).unwrap_or(0.0),
            bytes: u64::try_from(total.bytes).unwrap_or(u64::MAX),
            mean_bytes: total.bytes as f64 / total.requests.max(1) as f64,
            per_second: (seconds > 0.0).then(|| total.requests as f64 / seconds),
            bytes_per_second: (seconds > 0.0).then(|| total.bytes as f64 / seconds),
            response_seconds: total.response.as_ref().and_then(|values| values.spread(1e9)),
        };
        Info {
            source,
            records,
            first_ns: self.first_ns.unwrap_or(0),
            duration_seconds: seconds,
            out_of_order: self.out_of_order,
            requests: Ops { read: count(read), write: count(write), trim: count(trim), flush: count(flush) },
            volumes: self.volumes,
            records_of_other_volumes: self.other_volumes.requests,
            sizes,
            requests_of_other_sizes: other_sizes,
            alignment: self.sizes.alignment(),
            footprint,
            hot_spots: HotSpots::new(&self.blocks),
            overwrites,
            sequential: self.sequences.shares(),
            interarrival_seconds: self.gaps.spread(1e9),
            bursts: self.bursts.windows(),
            timeline,
            addresses: Addresses { part_bytes, parts: parts.collect() },
        }
    }
}

impl Volume {
    fn add(&mut self, record: &Record) {
        self.requests += 1;
        match record.op {
            Op::Read => self.read_bytes += record.bytes,
            Op::Write => self.written_bytes += record.bytes,
            Op::Trim | Op::Flush => {}
        }
        self.span_bytes = self.span_bytes.max(record.end().min(LARGEST_OFFSET));
    }
}

/// Reads a trace to its end and says what it amounts to. `progress` hears of the number of records now and then, and may end it by
/// answering `false`: then what was read up to there is what counts.
///
/// # Errors
/// The trace makes no sense somewhere.
pub fn characterise(mut reader: Reader, mut progress: impl FnMut(u64) -> bool) -> Result<Info, TraceError> {
    let mut characteriser = Characteriser::default();
    let mut count = 0u64;
    for record in reader.by_ref() {
        characteriser.add(&record?);
        count += 1;
        if count.is_multiple_of(1 << 16) && !progress(count) {
            break;
        }
    }
    let mut info = characteriser.finish(Source::of(&reader));
    for (number, volume) in &mut info.volumes {
        volume.name = reader.volume_name(*number);
    }
    Ok(info)
}
