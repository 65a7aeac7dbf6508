//! What the engine itself costs: a device that does next to nothing, driven at several depths.
//!
//! `cargo run --release -p openvsl-lab --example engine_speed`

use std::collections::VecDeque;
use std::time::Instant;

use card::{Answer, Nanos, Report, Request, VirtualDevice};
use lab::engine::virtual_time::{self, Options};
use lab::workload::from_toml;
use profile::Driver;

/// Answers every request after the same time.
struct Instantly {
    pending: VecDeque<(Nanos, u32)>,
    now: Nanos,
}

impl VirtualDevice for Instantly {
    fn sector_bytes(&self) -> u32 {
        4096
    }

    fn bytes(&self) -> u64 {
        320_000_000_000 / 4096 * 4096
    }

    fn submit(&mut self, now: Nanos, tag: u32, _: Request) {
        self.pending.push_back((now + 50_000, tag));
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.pending.front().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Nanos) {
        self.now = now;
    }

    fn answer(&mut self) -> Option<Answer> {
        let (at, tag) = self.pending.pop_front_if(|(at, _)| *at <= self.now)?;
        Some(Answer { tag, at, result: Ok(()) })
    }

    fn report(&self) -> Report {
        Report::default()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let costly = Driver {
        submit_us: 2.0,
        complete_us: 2.0,
        serial_us: 0.3,
        latency_us: 5.0,
        queue_limit: Some(255),
        interrupts: None,
        card_read_us: 0.0,
        raid_us: 0.0,
    };
    for (name, driver) in [("no driver", Driver::default()), ("driver with costs", costly)] {
        for (access, threads, depth) in [
            ("\"random\"", 1, 1),
            ("\"random\"", 1, 32),
            ("\"random\"", 16, 16),
            ("\"random\"", 8, 64),
            ("{ zipf = 1.2 }", 16, 16),
        ] {
            let text = format!(
                "name = \"speed\"\n[[phase]]\nname = \"measure\"\nstop = {{ bytes = \"20GiB\" }}\n[[phase.load]]\nread_percent = 50\nsize = 4096\naccess = {access}\nthreads = {threads}\ndepth = {depth}\n"
            );
            let workload = from_toml(&text)?;
            let mut devices: Vec<Box<dyn VirtualDevice>> =
                vec![Box::new(Instantly { pending: VecDeque::new(), now: 0 })];
            let begin = Instant::now();
            let (results, _) =
                virtual_time::run(&workload, &mut devices, &Options { driver, ..Options::default() }, &mut ())?;
            let requests = results.phases[0].completed;
            println!(
                "{name}, {access}, {threads} x {depth}: {:.0} ns a request",
                begin.elapsed().as_nanos() as f64 / requests as f64
            );
        }
    }
    Ok(())
}
