//! Whether an emulated device, on a clock that jumps, behaves as the same card does in virtual time: 4 KiB requests in closed loop.
//!
//! `emulated_parity [PROFILE] [SCALE] [DATA MiB] [REQUESTS]` prints IOPS and mean latency of both and their ratio.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use card::{Module, ModuleConfig, Op, Request, Surroundings, VirtualDevice};
use device::{Capacity, Device, EmulateOptions, Emulation, FormatOptions, Io, Submitted};
use ftl::SplitMix64;
use media::Memory;

const SECTOR: u64 = 4096;

/// One of the two, driven alike: requests in, answers out, each with its moment in nanoseconds.
trait Card {
    fn submit(&mut self, tag: u64, op: Op, lba: u64, sectors: u32);
    /// Goes on to the next answer; its tag and moment.
    fn answer(&mut self) -> (u64, u64);
    fn now(&self) -> u64;
}

struct Virtual {
    module: Module,
    now: u64,
}

impl Card for Virtual {
    fn submit(&mut self, tag: u64, op: Op, lba: u64, sectors: u32) {
        let request = Request { op, offset: lba * SECTOR, bytes: sectors * SECTOR as u32 };
        self.module.submit(self.now, tag as u32, request);
    }

    fn answer(&mut self) -> (u64, u64) {
        loop {
            if let Some(answer) = self.module.answer() {
                answer.result.expect("no faults");
                return (u64::from(answer.tag), answer.at);
            }
            self.now = self.module.next_event().expect("requests are under way");
            self.module.advance(self.now);
        }
    }

    fn now(&self) -> u64 {
        self.now
    }
}

struct Emulated {
    device: Device,
    clock: Rc<Cell<u64>>,
    payload: Vec<u8>,
}

impl Card for Emulated {
    fn submit(&mut self, tag: u64, op: Op, lba: u64, sectors: u32) {
        let bytes = sectors as usize * SECTOR as usize;
        let io = match op {
            Op::Read => Io::Read { lba, buf: vec![0; bytes] },
            _ => Io::Write { lba, data: &self.payload[..bytes], fua: false },
        };
        assert!(matches!(self.device.submit(tag, io), Submitted::Pending));
    }

    fn answer(&mut self) -> (u64, u64) {
        loop {
            if let Some(completion) = self.device.poll() {
                completion.result.expect("no faults");
                return (completion.tag, self.clock.get());
            }
            self.device.wait();
        }
    }

    fn now(&self) -> u64 {
        self.clock.get()
    }
}

/// IOPS and mean latency in microseconds.
fn run(card: &mut dyn Card, op: Op, depth: u64, sectors: u64, requests: u64, seed: u64) -> (f64, f64) {
    let mut random = SplitMix64::new(seed);
    let (begin, mut since, mut waited) = (card.now(), HashMap::new(), 0);
    for tag in 0..depth {
        since.insert(tag, card.now());
        card.submit(tag, op, random.below(sectors), 1);
    }
    let (mut left, mut under_way, mut last) = (requests - depth, depth, begin);
    while under_way > 0 {
        let (tag, at) = card.answer();
        waited += at - since[&tag];
        last = at;
        if left > 0 {
            left -= 1;
            since.insert(tag, at);
            card.submit(tag, op, random.below(sectors), 1);
        } else {
            under_way -= 1;
        }
    }
    (requests as f64 * 1e9 / (last - begin) as f64, waited as f64 / requests as f64 / 1e3)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let name = arguments.first().map_or("iodrive-320-mlc", String::as_str);
    let (scale, mebibytes, requests) = (number(1, 64) as u32, number(2, 512), number(3, 100_000));
    let profile = profile::find(name).expect("a profile");
    let flash = profile.flash().expect("a flash card");
    let module = Module::new(&ModuleConfig {
        module: &flash.module,
        card: flash.card.as_ref().map(|card| (card, flash.modules)),
        capacity_bytes: flash.module.advertised_bytes,
        sector_bytes: SECTOR as u32,
        scale,
        surroundings: Surroundings::default(),
        policy: None,
        pacing: None,
        grooms_ahead: true,
        seed: 1,
    })
    .expect("a module");
    let options = EmulateOptions {
        profile: name.into(),
        emulation: Emulation { scale, seed: 1 },
        format: FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: String::new() },
    };
    let inner = Device::format_emulated(&options, |geometry| Box::new(Memory::new(geometry))).expect("formatted");
    let clock = Rc::new(Cell::new(0));
    let device = Device::emulated(inner, Box::new(Rc::clone(&clock))).expect("attached");
    let payload = vec![7; 128 << 10];
    let mut cards: [Box<dyn Card>; 2] =
        [Box::new(Virtual { module, now: 0 }), Box::new(Emulated { device, clock, payload })];
    let sectors = mebibytes << 8;
    for card in &mut cards {
        for lba in (0..sectors).step_by(32) {
            card.submit(0, Op::Write, lba, 32);
            card.answer();
        }
    }
    for op in [Op::Read, Op::Write] {
        for depth in [1, 4, 16, 32] {
            let [virt, emulated] = cards.each_mut().map(|card| {
                let begin = Instant::now();
                let (iops, mean) = run(&mut **card, op, depth, sectors, requests, depth);
                (iops, mean, begin.elapsed().as_nanos() as f64 / requests as f64)
            });
            println!(
                "{op:?} QD{depth}: virtual {:.0} IOPS, {:.1} us; emulated {:.0} IOPS, {:.1} us; ratio {:.3}, {:.3}; {:.0} and {:.0} ns of work each",
                virt.0,
                virt.1,
                emulated.0,
                emulated.1,
                emulated.0 / virt.0,
                emulated.1 / virt.1,
                virt.2,
                emulated.2
            );
        }
    }
}
