//! How fast the layer is in process: memory media, one core, checksums on.
//!
//! `cargo run --release -p openvsl-device --example layer_speed [MiB] [seconds]` prints thousands of random 4 KiB requests a
//! second: writes to a fresh device, reads of it, and writes with the groomer at work on the full device.

use std::time::{Duration, Instant};

use device::{Device, Io, Submitted};
use random::SplitMix64;

const SECTOR: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mib: u64 = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let sectors = (mib << 20) / SECTOR as u64;
    let data: Vec<u8> = (0..SECTOR * 256).map(|i| (i % 251) as u8).collect();
    let mut random = SplitMix64::new(1);

    let mut device = Device::memory(mib << 20, SECTOR as u32)?;
    let mut order: Vec<u64> = (0..sectors).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    // Once through and trimmed again: the operating system's first touch of memory is not what is measured.
    for lba in &order {
        write(&mut device, *lba, &data[..SECTOR]);
    }
    device.submit(0, Io::Trim { lba: 0, count: sectors, fua: false });
    while device.status().free_lebs + 8 < device.status().lebs {
        device.idle();
        device.poll();
    }
    let start = Instant::now();
    for lba in &order {
        write(&mut device, *lba, &data[..SECTOR]);
    }
    report("random write, fresh", sectors, start.elapsed(), &device);

    for depth in [1, 16] {
        let mut bufs = vec![vec![0; SECTOR]; depth];
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < time {
            for _ in 0..256 {
                read(&mut device, &mut bufs, || random.below(sectors));
                count += depth as u64;
            }
        }
        report(&format!("random read, {depth:2} at once"), count, start.elapsed(), &device);
    }

    // Until what was written is several times the spare space: only then the groomer's work is steady.
    for _ in 0..2 * sectors {
        write(&mut device, random.below(sectors), &data[..SECTOR]);
    }
    let before = device.status();
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < 2 * time {
        for _ in 0..4096 {
            write(&mut device, random.below(sectors), &data[..SECTOR]);
        }
        count += 4096;
    }
    report("random write, sustained", count, start.elapsed(), &device);
    let after = device.status();
    let groomed = after.bytes(after.layer.groomed_sectors - before.layer.groomed_sectors);
    println!("  of which groomed: {:.2} times what was written", groomed as f64 / (count * SECTOR as u64) as f64);

    let (start, mut count) = (Instant::now(), 0);
    let mut lba = 0;
    while start.elapsed() < time {
        for _ in 0..64 {
            write(&mut device, lba, &data[..SECTOR * 32]);
            lba = (lba + 32) % (sectors - 32);
        }
        count += 64;
    }
    report("sequential write, 128 KiB", count, start.elapsed(), &device);
    Ok(())
}

fn write(device: &mut Device, lba: u64, data: &[u8]) {
    loop {
        match device.submit(0, Io::Write { lba, data, fua: false }) {
            Submitted::Done(result) => {
                result.expect("memory does not fail");
                return;
            }
            Submitted::Pending => unreachable!("a write without FUA is answered at once"),
            Submitted::Busy(_) => while device.poll().is_some() {},
        }
    }
}

/// As many reads as there are buffers, all under way at once.
fn read(device: &mut Device, bufs: &mut Vec<Vec<u8>>, mut lba: impl FnMut() -> u64) {
    let depth = bufs.len();
    for tag in 0..depth as u64 {
        let buf = bufs.pop().expect("a buffer for each");
        match device.submit(tag, Io::Read { lba: lba(), buf }) {
            Submitted::Done(result) => bufs.insert(0, result.expect("memory does not fail").expect("a buffer")),
            Submitted::Pending => {}
            Submitted::Busy(_) => unreachable!("the device takes more reads than that"),
        }
    }
    while bufs.len() < depth {
        if let Some(completion) = device.poll() {
            bufs.push(completion.result.expect("memory does not fail").expect("a read gives its buffer"));
        }
    }
}

fn report(what: &str, count: u64, time: Duration, device: &Device) {
    let status = device.status();
    println!(
        "{what:26} {:8.0} k/s   {:.2} bytes of map a sector",
        count as f64 / time.as_secs_f64() / 1000.0,
        status.map_memory_per_sector().unwrap_or(0.0)
    );
}
