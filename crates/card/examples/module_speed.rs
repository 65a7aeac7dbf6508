//! How fast a module is simulated: 4 KiB random writes in steady grooming, then reads, per CPU second.
//!
//! `module_speed [PROFILE] [OVER-PROVISIONING %] [SCALE] [SECONDS] [DRIVE WRITES BEFORE] [DEPTH] [POLICY,…]`
//!
//! With several policies a module of each runs, in turn and a twentieth of a second at a time, so that whatever else the machine does
//! falls on all of them alike; medians of those spans are told.

use card::{Module, ModuleConfig, Op, Policy, Request, Surroundings, VirtualDevice};
use profile::Profile;
use random::SplitMix64;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

const AHEAD: usize = 16;

/// Runs for so many CPU seconds from a moment of virtual time on: requests, CPU seconds, and the moment at which the last was answered.
fn run(
    module: &mut Module,
    mut now: u64,
    op: Op,
    depth: u32,
    seconds: f64,
    random: &mut SplitMix64,
) -> (u64, f64, u64) {
    let sectors = module.bytes() / 4096;
    let mut next: std::collections::VecDeque<u64> = (0..AHEAD).map(|_| random.below(sectors) * 4096).collect();
    let begin = cpu_seconds();
    let mut done = 0u64;
    for tag in 0..depth {
        let offset = random.below(sectors) * 4096;
        module.submit(now, tag, Request::new(op, offset, 4096));
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
            module.submit(now, answer.tag, Request::new(op, offset, 4096));
        }
        if done.is_multiple_of(256) && cpu_seconds() - begin > seconds {
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
    (done, cpu, now)
}

/// CPU seconds of a span, before the next policy has its turn.
const SPAN: f64 = 0.05;

/// A module under one policy, and what its spans measured.
struct Racer {
    name: String,
    module: Module,
    random: SplitMix64,
    now: u64,        // virtual nanoseconds
    since: u64,      // of the spans
    spans: Vec<f64>, // CPU seconds a request
    requests: u64,
}

impl Racer {
    /// A module that was filled and then written over at random, so that its log is mixed.
    fn new(policy: &str, number: &impl Fn(usize, f64) -> f64, profile: &Profile) -> Self {
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
            policy: Some(policy).filter(|name| !name.is_empty()).map(|name| Policy::from_name(name).expect("a policy")),
            pacing: None,
            grooms_ahead: true,
            seed: 1,
        };
        let mut module = Module::new(&config).expect("a module");
        let mut random = SplitMix64::new(1);
        let mut now = 0;
        for offset in (0..module.bytes() / 131_072).map(|n| n * 131_072) {
            module.submit(now, 0, Request::new(Op::Write, offset, 131_072));
            while module.answer().is_none() {
                now = module.next_event().expect("a write is under way");
                module.advance(now);
            }
        }
        let mut written = 0;
        while written < (number(4, 4.0) * module.bytes() as f64 / 4096.0) as u64 {
            let (done, _, end) = run(&mut module, now, Op::Write, number(5, 32.0) as u32, 0.5, &mut random);
            (written, now) = (written + done, end);
        }
        let name = if policy.is_empty() { "default" } else { policy }.to_owned();
        Self { name, module, random, now, since: now, spans: Vec::new(), requests: 0 }
    }

    /// Another span.
    fn go_on(&mut self, op: Op, depth: u32) {
        let (done, cpu, end) = run(&mut self.module, self.now, op, depth, SPAN, &mut self.random);
        self.spans.push(cpu / done as f64);
        self.requests += done;
        self.now = end;
    }

    /// CPU seconds a request in the median span, and requests a second of virtual time; then all of it begins anew.
    fn result(&mut self) -> (f64, f64) {
        self.spans.sort_by(f64::total_cmp);
        let each = self.spans[self.spans.len() / 2];
        let rate = self.requests as f64 * 1e9 / (self.now - self.since) as f64;
        (self.spans, self.requests, self.since) = (Vec::new(), 0, self.now);
        (each, rate)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: f64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let name = arguments.first().map_or("mqsim-reference", String::as_str);
    let profile = profile::find(name).expect("a profile");
    let policies = arguments.get(6).map_or("", String::as_str);
    let mut racers: Vec<Racer> = policies.split(',').map(|policy| Racer::new(policy, &number, &profile)).collect();
    let spans = (number(3, 3.0) / SPAN).ceil() as u32;
    let depth = number(5, 32.0) as u32;
    for op in [Op::Write, Op::Read] {
        let before: Vec<_> = racers.iter().map(|racer| racer.module.report()).collect();
        for _ in 0..spans {
            for racer in &mut racers {
                racer.go_on(op, depth);
            }
        }
        for (racer, before) in racers.iter_mut().zip(before) {
            let report = racer.module.report();
            let moved = report.groomed_bytes - before.groomed_bytes + report.metadata_bytes - before.metadata_bytes;
            let waf = match report.host_written_bytes - before.host_written_bytes {
                0 => String::new(),
                written => format!(", {:.2} moved a write", moved as f64 / written as f64),
            };
            let (each, rate) = racer.result();
            println!(
                "{}: {op:?}: {:.0} simulated a CPU second ({:.0} ns each), {rate:.0} IOPS in virtual time{waf}",
                racer.name,
                1.0 / each,
                each * 1e9,
            );
        }
    }
    for racer in &racers {
        let pages = (racer.module.layout().geometry.slots()) as f64;
        println!("{}: {:.1} bytes of books a 4 KiB page", racer.name, racer.module.memory() as f64 / pages);
        racer.module.verify().expect("the books agree");
    }
}
