//! What encryption costs: the layer in process on memory media, one core, with and without.
//!
//! `cargo run --release -p openvsl-device --example encryption_cost [MiB] [rounds]` prints thousands of 4 KiB requests a second, and the
//! processor time that sealing or opening adds to each: the best of rounds that take turns.

use device::{Device, Io, Secret, Submitted};
use random::SplitMix64;

const SECTOR: usize = 4096;
const LARGE: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mib: u64 = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let sectors = (mib << 20) / SECTOR as u64;
    let secret = Secret::key(&[1; 32]);
    let mut times: [[Vec<f64>; 4]; 2] = Default::default();
    for _ in 0..rounds {
        for (encrypted, times) in [false, true].into_iter().zip(&mut times) {
            let mut device = Device::memory_with(mib << 20, SECTOR as u32, encrypted.then_some(&secret))?;
            for (time, times) in round(&mut device, sectors).into_iter().zip(times) {
                times.push(time);
            }
        }
    }
    println!("{mib} MiB, best of {rounds} rounds");
    println!("{:26} {:>10} {:>10} {:>12}", "", "plain k/s", "sealed k/s", "added ns");
    let what = ["random 4 KiB writes", "random 4 KiB reads", "128 KiB writes in order", "128 KiB reads in order"];
    for (at, what) in what.iter().enumerate() {
        let [plain, sealed] = [0, 1].map(|which: usize| best(&times[which][at]));
        println!("{what:26} {:10.0} {:10.0} {:12.0}", 1e6 / plain, 1e6 / sealed, sealed - plain);
    }
    Ok(())
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Nanoseconds for each request of four kinds.
fn round(device: &mut Device, sectors: u64) -> [f64; 4] {
    let data: Vec<u8> = (0..SECTOR * LARGE).map(|i| (i % 251) as u8).collect();
    let mut random = SplitMix64::new(1);
    let mut order: Vec<u64> = (0..sectors).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let large: Vec<u64> = (0..sectors / LARGE as u64).map(|at| at * LARGE as u64).collect();
    // The first touch of memory is not what is measured.
    for lba in &large {
        write(device, *lba, &data);
    }
    [
        timed(&order, |lba| write(device, lba, &data[..SECTOR])),
        timed(&order, |lba| read(device, lba, 1)),
        timed(&large, |lba| write(device, lba, &data)),
        timed(&large, |lba| read(device, lba, LARGE)),
    ]
}

fn timed(order: &[u64], mut work: impl FnMut(u64)) -> f64 {
    let start = processor_ns();
    order.iter().for_each(|lba| work(*lba));
    (processor_ns() - start) as f64 / order.len() as f64
}

/// Processor time of this thread: what others do on the machine shows less in it than in the time of day.
fn processor_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the kernel counts processor time")
}

fn write(device: &mut Device, lba: u64, data: &[u8]) {
    run(device, Io::Write { lba, data, fua: false });
}

fn read(device: &mut Device, lba: u64, count: usize) {
    run(device, Io::Read { lba, buf: vec![0; SECTOR * count] });
}

fn run(device: &mut Device, io: Io<'_>) {
    let mut io = Some(io);
    loop {
        if let Some(request) = io.take() {
            match device.submit(0, request) {
                Submitted::Done(result) => return drop(result.expect("memory does not fail")),
                Submitted::Pending => {}
                Submitted::Busy(request) => io = Some(request),
            }
        }
        if let Some(completion) = device.poll() {
            return drop(completion.result.expect("memory does not fail"));
        }
    }
}
