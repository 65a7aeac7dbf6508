//! How fast a module is simulated: 4 KiB random writes in steady grooming, then reads, per CPU second.
//!
//! `module_speed [PROFILE] [OVER-PROVISIONING %] [SCALE] [SECONDS] [DRIVE WRITES BEFORE] [DEPTH] [POLICY]`

use card::{Module, ModuleConfig, Op, Policy, Request, Surroundings, VirtualDevice};
use ftl::SplitMix64;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

const AHEAD: usize = 16;

fn run(module: &mut Module, op: Op, depth: u32, seconds: f64, random: &mut SplitMix64) -> (u64, f64, u64) {
    let sectors = module.bytes() / 4096;
    let mut next: std::collections::VecDeque<u64> = (0..AHEAD).map(|_| random.below(sectors) * 4096).collect();
    let mut now = module.next_event().unwrap_or(0);
    let start_virtual = now;
    let begin = cpu_seconds();
    let mut done = 0u64;
    for tag in 0..depth {
        let offset = random.below(sectors) * 4096;
        module.submit(now, tag, Request { op, offset, bytes: 4096 });
    }
    loop {
        now = module.advance_to_answer(u64::MAX / 2);
        while let Some(answer) = module.answer() {
            answer.result.expect("no faults");
            done += 1;
            let ahead = random.below(sectors) * 4096;
            module.hint(ahead);
            next.push_back(ahead);
            let offset = next.pop_front().expect("filled");
            module.submit(now, answer.tag, Request { op, offset, bytes: 4096 });
        }
        if done.is_multiple_of(1024) && cpu_seconds() - begin > seconds {
            break;
        }
    }
    let cpu = cpu_seconds() - begin;
    let mut left = depth;
    while left > 0 {
        now = module.next_event().expect("requests are under way");
        module.advance(now);
        left -= std::iter::from_fn(|| module.answer()).count() as u32;
    }
    (done, cpu, now - start_virtual)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: f64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let name = arguments.first().map_or("mqsim-reference", String::as_str);
    let profile = profile::find(name).expect("a profile");
    let sheet = &profile.flash().expect("a flash card").module;
    let usable = sheet.raw_bytes as f64 * (1.0 - f64::from(sheet.chips.parity) / f64::from(sheet.chips.count));
    let usable = usable * (1.0 - sheet.controller.reserve_percent / 100.0);
    let config = ModuleConfig {
        module: sheet,
        card: None,
        capacity_bytes: (usable / (1.0 + number(1, 25.0) / 100.0)) as u64,
        sector_bytes: 4096,
        scale: number(2, 1.0) as u32,
        surroundings: Surroundings::default(),
        policy: arguments.get(6).and_then(|name| Policy::from_name(name)),
        pacing: None,
        grooms_ahead: true,
        seed: 1,
    };
    let mut module = Module::new(&config).expect("a module");
    let mut random = SplitMix64::new(1);
    let mut now = 0;
    for offset in (0..module.bytes() / 131_072).map(|n| n * 131_072) {
        module.submit(now, 0, Request { op: Op::Write, offset, bytes: 131_072 });
        while module.answer().is_none() {
            now = module.next_event().expect("a write is under way");
            module.advance(now);
        }
    }
    let seconds = number(3, 3.0);
    let depth = number(5, 32.0) as u32;
    // Several drive writes until the log is mixed.
    let mut written = 0;
    while written < (number(4, 4.0) * module.bytes() as f64 / 4096.0) as u64 {
        written += run(&mut module, Op::Write, depth, 0.5, &mut random).0;
    }
    for op in [Op::Write, Op::Read] {
        let before = module.report();
        let (done, cpu, time) = run(&mut module, op, depth, seconds, &mut random);
        let report = module.report();
        let moved = report.groomed_bytes - before.groomed_bytes + report.metadata_bytes - before.metadata_bytes;
        let waf = match report.host_written_bytes - before.host_written_bytes {
            0 => String::new(),
            written => format!(", {:.2} moved a write", moved as f64 / written as f64),
        };
        println!(
            "{op:?}: {:.0} simulated a CPU second ({:.0} ns each), {:.0} IOPS in virtual time{waf}",
            done as f64 / cpu,
            cpu * 1e9 / done as f64,
            done as f64 * 1e9 / time as f64
        );
    }
    let pages = (module.layout().geometry.slots()) as f64;
    println!("{:.1} bytes of books a 4 KiB page", module.memory() as f64 / pages);
    module.verify().expect("the books agree");
}
