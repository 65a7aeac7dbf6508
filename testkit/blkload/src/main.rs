//! `blkload`: drives a vhost-user-blk back end through libblkio, which others wrote: checks what it stores, or measures it.

use std::error::Error;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use blkio::{Blkio, Blkioq, Completion, ReqFlags};
use clap::{Parser, Subcommand, ValueEnum};

/// Drives a vhost-user-blk back end.
#[derive(Parser)]
#[command(name = "blkload", version)]
struct Arguments {
    /// Its socket.
    socket: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Copy, Subcommand)]
enum What {
    /// Writes all of the device, reads it back, discards and zeroes parts of it.
    Check,
    /// Asks at random for some seconds, and prints how often that was done in one.
    Load {
        /// What is asked.
        direction: Direction,
        /// Bytes of a request.
        #[arg(long, default_value_t = 4096)]
        block: usize,
        /// Requests at a time.
        #[arg(long, default_value_t = 32)]
        depth: usize,
        /// How long.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// One after the other instead of at random.
        #[arg(long)]
        sequential: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Direction {
    Read,
    Write,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A connected device, one queue of it, and memory that both sides see.
struct Disk {
    queue: Blkioq,
    bytes: u64,
    sector: u64,
    memory: *mut u8,
    /// Kept for the queue and the memory.
    _blkio: Blkio,
}

fn said(error: blkio::Error) -> Box<dyn Error> {
    error.message().to_string().into()
}

impl Disk {
    fn connect(socket: &str, memory: usize) -> Result<Disk> {
        let mut blkio = Blkio::new("virtio-blk-vhost-user").map_err(said)?;
        blkio.set_str("path", socket).map_err(said)?;
        blkio.connect().map_err(said)?;
        let bytes = blkio.get_u64("capacity").map_err(said)?;
        let sector = u64::try_from(blkio.get_i32("request-alignment").map_err(said)?)?;
        blkio.set_i32("num-queues", 1).map_err(said)?;
        let mut started = blkio.start().map_err(said)?;
        let queue = started.queues.pop().ok_or("no queue")?;
        let region = blkio.alloc_mem_region(memory).map_err(said)?;
        blkio.map_mem_region(&region).map_err(said)?;
        Ok(Disk { queue, bytes, sector, memory: region.addr as *mut u8, _blkio: blkio })
    }

    /// Waits for answers, at least so many; what each of them was asked as.
    fn answers(&mut self, least: usize) -> Result<Vec<usize>> {
        let mut done = [const { MaybeUninit::<Completion>::uninit() }; 64];
        let mut patience = Duration::from_secs(30);
        let count = self.queue.do_io(&mut done, least, Some(&mut patience), None).map_err(said)?;
        let answer = |done: &MaybeUninit<Completion>| {
            // SAFETY: the queue has filled so many.
            let done = unsafe { done.assume_init_ref() };
            if done.ret == 0 { Ok(done.user_data) } else { Err(format!("request {}: {}", done.user_data, done.ret)) }
        };
        Ok(done[..count].iter().map(answer).collect::<std::result::Result<_, _>>()?)
    }

    fn memory(&mut self, bytes: usize) -> &mut [u8] {
        // SAFETY: the region is so large, and nothing is under way whenever this is called.
        unsafe { std::slice::from_raw_parts_mut(self.memory, bytes) }
    }
}

/// What stands in a sector of the device in a round.
fn pattern(offset: u64, round: u8) -> u8 {
    (offset / 4096 % 251) as u8 ^ round
}

fn check(disk: &mut Disk) -> Result<()> {
    const PIECE: u64 = 256 << 10;
    let none = ReqFlags::empty();
    for round in [0x55, 0xaa] {
        for offset in (0..disk.bytes).step_by(PIECE as usize) {
            let len = PIECE.min(disk.bytes - offset) as usize;
            for (at, byte) in disk.memory(len).iter_mut().enumerate() {
                *byte = pattern(offset + at as u64, round);
            }
            disk.queue.write(offset, disk.memory, len, 0, none);
            disk.answers(1)?;
        }
        disk.queue.flush(1, none);
        disk.answers(1)?;
        compare(disk, |offset| pattern(offset, round))?;
    }
    let (half, quarter) = (disk.bytes / 2 / PIECE * PIECE, disk.bytes / 4 / PIECE * PIECE);
    disk.queue.discard(0, quarter, 2, none);
    disk.answers(1)?;
    disk.queue.write_zeroes(quarter, half - quarter, 3, none);
    disk.answers(1)?;
    compare(disk, |offset| if offset < half { 0 } else { pattern(offset, 0xaa) })?;
    println!("{} bytes hold, in sectors of {}", disk.bytes, disk.sector);
    Ok(())
}

fn compare(disk: &mut Disk, expected: impl Fn(u64) -> u8) -> Result<()> {
    const PIECE: u64 = 128 << 10;
    for offset in (0..disk.bytes).step_by(PIECE as usize) {
        let len = PIECE.min(disk.bytes - offset) as usize;
        disk.queue.read(offset, disk.memory, len, 4, ReqFlags::empty());
        disk.answers(1)?;
        let wrong = disk.memory(len).iter().enumerate().find(|(at, byte)| **byte != expected(offset + *at as u64));
        if let Some((at, byte)) = wrong {
            return Err(format!("at {} stands {byte:#04x}", offset + at as u64).into());
        }
    }
    Ok(())
}

fn load(
    disk: &mut Disk,
    direction: Direction,
    block: usize,
    depth: usize,
    seconds: u64,
    sequential: bool,
) -> Result<()> {
    let places = disk.bytes / block as u64;
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = 0;
    let mut place = || {
        next += 1;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if sequential { next % places } else { random % places }
    };
    let mut ask = |disk: &mut Disk, slot: usize| {
        // SAFETY: the region has room for so many blocks.
        let buffer = unsafe { disk.memory.add(slot * block) };
        let start = place() * block as u64;
        match direction {
            Direction::Read => disk.queue.read(start, buffer, block, slot, ReqFlags::empty()),
            Direction::Write => disk.queue.write(start, buffer, block, slot, ReqFlags::empty()),
        }
    };
    disk.memory(block * depth).fill(0x5a);
    (0..depth).for_each(|slot| ask(disk, slot));
    let began = Instant::now();
    let mut done = 0u64;
    while began.elapsed() < Duration::from_secs(seconds) {
        for slot in disk.answers(1)? {
            done += 1;
            ask(disk, slot);
        }
    }
    let took = began.elapsed().as_secs_f64();
    let mut left = depth;
    while left > 0 {
        left -= disk.answers(1)?.len();
    }
    println!(
        "{{\"iops\": {:.0}, \"mib_s\": {:.1}}}",
        done as f64 / took,
        done as f64 * block as f64 / took / 1048576.0
    );
    Ok(())
}

fn run(arguments: &Arguments) -> Result<()> {
    let socket = arguments.socket.to_str().ok_or("the socket's path is no text")?;
    match arguments.what {
        What::Check => check(&mut Disk::connect(socket, 1 << 20)?),
        What::Load { direction, block, depth, seconds, sequential } => {
            let depth = depth.clamp(1, 64);
            let memory = (block * depth).next_multiple_of(2 << 20);
            load(&mut Disk::connect(socket, memory)?, direction, block, depth, seconds, sequential)
        }
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blkload: {error}");
            ExitCode::FAILURE
        }
    }
}
