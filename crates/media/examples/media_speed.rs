//! What a file medium costs on the disk under a directory: `media_speed DIR [die bytes]`.
//!
//! One line a step: rate or time per command, and processor time per command (kernel workers
//! included), which shows what the kernel could not do without handing it to a worker.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use media::file::backing_bytes;
use media::{Backing, Command, FileMedia, FileOptions, Geometry, Media, PageAddr, ring::Ring};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: media_speed DIR [die bytes]")?);
    let bytes: u64 = args.next().map_or(Ok(2 << 30), |bytes| bytes.parse())?;
    let mut geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: 1,
        pages_per_block: 252,
        slots_per_page: 64,
        sector_bytes: 4096,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4096,
    };
    geometry.blocks = (bytes / geometry.block_bytes()).max(1) as u32;
    let path = dir.join(format!("media_speed.{}", std::process::id()));
    let backing = Backing::create(&path, backing_bytes(&geometry))?;
    println!("{:?}, direct I/O alignment {:?}", geometry, backing.direct_alignment());
    let media = FileMedia::new(vec![Some(backing)], geometry, Ring::new(256)?, FileOptions::default());
    std::fs::remove_file(&path)?; // gone when the medium is dropped
    let mut bench = Bench { media: media?, geometry };
    bench.programs("program, holes, QD8", 8);
    bench.each_block("erase written", |block| Command::Erase { block });
    bench.each_block("allocate", |block| Command::Allocate { block });
    bench.programs("program, allocated, QD8", 8);
    bench.programs("program, written before, QD8", 8);
    bench.programs("program, written before, QD1", 1);
    bench.syncs("written before");
    for depth in [1, 32] {
        bench.reads(&format!("read 4128 at slots, QD{depth}"), depth);
    }
    bench.reads_beside("nothing", |_| Command::Sync, 0);
    bench.reads_beside("erase written", |block| Command::Erase { block }, 8);
    bench.reads_beside("allocate", |block| Command::Allocate { block }, 8);
    bench.reads_beside("sync", |_| Command::Sync, 8);
    bench.each_block("erase written", |block| Command::Erase { block });
    bench.syncs("holes");
    bench.each_block("allocate", |block| Command::Allocate { block });
    bench.syncs("allocated");
    bench.each_block("erase", |block| Command::Erase { block });
    Ok(())
}

struct Bench {
    media: FileMedia,
    geometry: Geometry,
}

impl Bench {
    /// Runs commands at a queue depth, in order; returns when all are done.
    fn run(&mut self, depth: usize, commands: impl Iterator<Item = Command>) {
        let mut under_way = 0;
        for command in commands {
            while under_way == depth {
                self.media.wait();
                while let Some(done) = self.media.poll() {
                    done.result.expect("a media command");
                    under_way -= 1;
                }
            }
            match self.media.submit(0, command) {
                Some(done) => drop(done.result.expect("a media command")),
                None => under_way += 1,
            }
        }
        while under_way > 0 {
            self.media.wait();
            while let Some(done) = self.media.poll() {
                done.result.expect("a media command");
                under_way -= 1;
            }
        }
    }

    fn timed(&mut self, name: &str, count: u64, bytes: u64, depth: usize, commands: impl Iterator<Item = Command>) {
        let (start, cpu) = (Instant::now(), processor_time());
        self.run(depth, commands);
        let (wall, cpu) = (start.elapsed(), processor_time() - cpu);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
        let rate = (bytes * count) as f64 / wall.as_secs_f64() / 1e6;
        println!("{name:36} {:9.1} us each  {:8.1} us processor each  {rate:8.0} MB/s", each(wall), each(cpu));
    }

    fn programs(&mut self, name: &str, depth: usize) {
        let geometry = self.geometry;
        let page = self.media.page();
        // SAFETY: no command under way uses the buffer.
        unsafe { page.bytes_mut(0..page.len()) }.fill(0x5a);
        let at = move |block| (0..geometry.pages_per_block).map(move |page| PageAddr { die: 0, block, page });
        let commands = (0..geometry.blocks).flat_map(at).map(|at| Command::Program {
            at,
            bytes: 0..geometry.page_bytes(),
            page: page.clone(),
        });
        let count = u64::from(geometry.blocks * geometry.pages_per_block);
        self.timed(name, count, geometry.page_bytes().into(), depth, commands);
        self.timed("  sync after it", 1, 0, 1, std::iter::once(Command::Sync));
    }

    /// A sync after each partial program of 16 KiB, as a log under FLUSH does it.
    fn syncs(&mut self, what: &str) {
        let page = self.media.page();
        let at = |page| PageAddr { die: 0, block: 1.min(self.geometry.blocks - 1), page };
        let commands =
            (0..200).map(|n| Command::Program { at: at(n), bytes: 0..16384, page: page.clone() }).collect::<Vec<_>>();
        let both = commands.into_iter().flat_map(|command| [command, Command::Sync]);
        self.timed(&format!("program 16 KiB + sync, {what}"), 200, 16384, 1, both);
    }

    fn each_block(&mut self, name: &str, command: impl Fn(u32) -> Command) {
        let (blocks, bytes) = (self.geometry.blocks, self.geometry.block_bytes());
        self.timed(name, blocks.into(), bytes, 1, (0..blocks).map(command));
        self.timed("  sync after it", 1, 0, 1, std::iter::once(Command::Sync));
    }

    /// Latency of reads in the last blocks, one at a time, while another command runs beside every 300th.
    fn reads_beside(&mut self, name: &str, command: impl Fn(u32) -> Command, beside: u32) {
        const BESIDE: u64 = 1;
        let geometry = self.geometry;
        let mut latencies = Vec::new();
        for n in 0..300 * beside.max(8) {
            if n % 300 == 0 && n / 300 < beside {
                let _ = self.media.submit(BESIDE, command(n / 300));
            }
            let at = PageAddr { die: 0, block: geometry.blocks - 1, page: n % geometry.pages_per_block };
            let start = Instant::now();
            let _ = self.media.submit(0, Command::Read { at, bytes: 4128..8256 });
            loop {
                self.media.wait();
                let Some(done) = self.media.poll() else { continue };
                done.result.expect("a media command");
                if done.id != BESIDE {
                    break;
                }
            }
            latencies.push(start.elapsed());
        }
        while self.media.submit(BESIDE, Command::Sync).is_none() && {
            self.media.wait();
            self.media.poll().is_none()
        } {}
        latencies.sort();
        let at = |part: f64| latencies[(part * (latencies.len() - 1) as f64) as usize];
        println!("read QD1 beside {name:20} median {:?}, 99 % {:?}, worst {:?}", at(0.5), at(0.99), at(1.0));
    }

    fn reads(&mut self, name: &str, depth: usize) {
        const COUNT: u64 = 50_000;
        let geometry = self.geometry;
        let commands = (0..COUNT).map(|n| {
            let spread = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let slot = (spread % u64::from(geometry.slots_per_page)) as u32 * geometry.slot_bytes();
            let page = (spread >> 8) as u32 % geometry.pages_per_block;
            let at = PageAddr { die: 0, block: (spread >> 20) as u32 % geometry.blocks, page };
            Command::Read { at, bytes: slot..slot + geometry.slot_bytes() }
        });
        self.timed(name, COUNT, geometry.slot_bytes().into(), depth, commands);
    }
}

/// User and system time of this process so far, the kernel's workers for it included.
fn processor_time() -> Duration {
    let times = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields behind the command's closing parenthesis: utime and stime are numbers 14 and 15 of all.
    let ticks = times.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Duration::from_millis(ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10)
}
