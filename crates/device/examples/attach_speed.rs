//! How long an attach takes after a crash, on a device full of random 4 KiB writes.
//!
//! `cargo run --release -p openvsl-device --example attach_speed FILE [GiB] [over-provisioning %] [DIRECTORY]` makes the device, writes every
//! sector once in random order, goes on for a while, lets go of the file without a detach, and attaches it again. With a directory in
//! memory the page buffers lie there, and the attach writes them back.

use std::path::PathBuf;
use std::time::Instant;

use device::{AttachOptions, Capacity, CreateOptions, Device, FormatOptions, Io, Submitted};
use media::ring::Ring;
use random::SplitMix64;

const SECTOR: u32 = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let path =
        PathBuf::from(arguments.next().ok_or("usage: attach_speed FILE [GiB] [over-provisioning %] [DIRECTORY]")?);
    let gib: u64 = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let spare: u64 = arguments.next().map_or(Ok(28), |text| text.parse())?;
    let options = AttachOptions { staging: arguments.next().map(PathBuf::from), ..AttachOptions::default() };
    let bytes = gib << 30;
    device::create(
        &[&path],
        &CreateOptions {
            advertised_bytes: bytes,
            raw_bytes: bytes / 100 * (100 + spare),
            profile: None,
            parity: 0,
            format: FormatOptions { sector_bytes: SECTOR, capacity: Capacity::Advertised, label: "attach".into() },
        },
    )?;
    let ring = Ring::new(256)?;
    let mut device = Device::attach(&[&path], &options, &ring)?;
    let sectors = device.info().sectors;
    let mut random = SplitMix64::new(7);
    // A permutation without a table: steps that can be undone modulo the next power of two, skipping what lies outside.
    let mask = sectors.next_power_of_two() - 1;
    let half = mask.count_ones() / 2;
    let odd = random.bits() | 1;
    let scattered = |i: u64| {
        let once = i.wrapping_mul(odd) & mask;
        let once = (once ^ once >> half).wrapping_mul(odd) & mask;
        once ^ once >> half
    };
    let start = Instant::now();
    let mut data = vec![0u8; SECTOR as usize];
    for i in 0..=mask {
        let lba = scattered(i);
        if lba < sectors {
            write(&mut device, lba, &mut data);
        }
    }
    // Some more, so that the log goes on after the last checkpoint.
    for _ in 0..sectors / 64 {
        let lba = random.below(sectors);
        write(&mut device, lba, &mut data);
    }
    let status = device.status();
    println!(
        "filled in {:.1} s: {} sectors mapped of {sectors}, write amplification {:.2}, {:.2} bytes of map a sector",
        start.elapsed().as_secs_f64(),
        status.mapped_sectors,
        status.layer.write_amplification().unwrap_or(0.0),
        status.map_memory_per_sector().unwrap_or(0.0)
    );
    drop(device);

    let start = Instant::now();
    let device = Device::attach(&[&path], &options, &ring)?;
    println!("attach after a crash: {:.2} s", start.elapsed().as_secs_f64());
    device.verify()?;
    let start = Instant::now();
    device.detach()?;
    println!("detach: {:.2} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let device = Device::attach(&[&path], &options, &ring)?;
    println!("attach after a clean detach: {:.2} s", start.elapsed().as_secs_f64());
    device.detach()?;
    std::fs::remove_file(&path)?;
    Ok(())
}

fn write(device: &mut Device, lba: u64, data: &mut [u8]) {
    data[..8].copy_from_slice(&lba.to_le_bytes());
    loop {
        match device.submit(0, Io::Write { lba, data, fua: false }) {
            Submitted::Done(result) => {
                result.expect("the file takes it");
                return;
            }
            Submitted::Pending => unreachable!("a write without FUA is answered at once"),
            Submitted::Busy(_) => {
                device.wait();
                while device.poll().is_some() {}
            }
        }
    }
}
