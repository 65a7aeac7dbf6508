//! How even latency is while the groomer works, and how a module recovers in quiet times.

use card::{Module, ModuleConfig, Op, Pacing, Policy, Request, VirtualDevice};
use profile::Profile;
use random::SplitMix64;

use crate::common::{config, fill, small};

/// Requests outstanding.
const DEPTH: u32 = 32;
/// Per cent of the data flash that leave a quarter more than the host sees: 95 are in use.
const QUARTER: u64 = 76;

/// Writes at some depth to places of the host's choice, and how long each took.
struct Writer {
    now: u64,
    random: SplitMix64,
    /// Share of the writes, per cent, that goes to the first fifth.
    hot_percent: u64,
    /// When each write was answered, and after what time.
    lived: Vec<(u64, u64)>,
}

impl Writer {
    fn new(now: u64, hot_percent: u64) -> Writer {
        Writer { now, random: SplitMix64::new(5), hot_percent, lived: Vec::new() }
    }

    fn offset(&mut self, module: &Module) -> u64 {
        let sectors = module.bytes() / 4096;
        let hot = sectors / 5;
        let at = match self.random.below(100) < self.hot_percent {
            true => self.random.below(hot),
            false if self.hot_percent > 0 => hot + self.random.below(sectors - hot),
            false => self.random.below(sectors),
        };
        at * 4096
    }

    /// So many writes; gives requests a second.
    fn write(&mut self, module: &mut Module, count: u64) -> f64 {
        let began = self.now;
        let mut submitted = [0; DEPTH as usize];
        let (mut left, mut open) = (count, 0);
        for tag in 0..DEPTH {
            let offset = self.offset(module);
            module.submit(self.now, tag, Request::new(Op::Write, offset, 4096));
            submitted[tag as usize] = self.now;
            (left, open) = (left - 1, open + 1);
        }
        while open > 0 {
            self.now = module.advance_to_answer(self.now + 1_000_000_000);
            while let Some(answer) = module.answer() {
                answer.result.expect("taken");
                self.lived.push((answer.at, answer.at - submitted[answer.tag as usize]));
                open -= 1;
                if left > 0 {
                    let offset = self.offset(module);
                    module.submit(self.now, answer.tag, Request::new(Op::Write, offset, 4096));
                    submitted[answer.tag as usize] = self.now;
                    (left, open) = (left - 1, open + 1);
                }
            }
        }
        count as f64 * 1e9 / (self.now - began) as f64
    }

    /// Nobody asks anything for some seconds.
    fn pause(&mut self, module: &mut Module, seconds: u64) {
        self.now += seconds * 1_000_000_000;
        module.advance(self.now);
    }

    /// Mean latency of each span of time in which so many writes are answered in the mean.
    fn windows(&self, writes: u64) -> Vec<f64> {
        let (first, last) = (self.lived[0].0, self.lived[self.lived.len() - 1].0);
        let span = (last - first) / (self.lived.len() as u64 / writes);
        let mut sums = vec![(0.0, 0u32); ((last - first) / span) as usize + 1];
        for (at, nanos) in &self.lived {
            let window = &mut sums[((at - first) / span) as usize];
            *window = (window.0 + *nanos as f64, window.1 + 1);
        }
        sums.pop();
        sums.iter().map(|(sum, count)| sum / f64::from((*count).max(1))).collect()
    }

    /// The latency that all but one in a thousand stay below.
    fn longest_but_one_in_a_thousand(&self) -> u64 {
        let mut nanos: Vec<u64> = self.lived.iter().map(|(_, nanos)| *nanos).collect();
        nanos.sort_unstable();
        nanos[nanos.len() - 1 - nanos.len() / 1000]
    }
}

/// A full module in steady grooming.
fn steady(config: &ModuleConfig, hot_percent: u64) -> (Module, Writer) {
    let mut module = Module::new(config).expect("a module");
    let now = fill(&mut module, 0);
    let mut writer = Writer::new(now, hot_percent);
    let sectors = module.bytes() / 4096;
    writer.write(&mut module, 3 * sectors);
    writer.lived.clear();
    (module, writer)
}

/// How far the mean latencies of spans are from that of all, at the most, and the latency of one in a thousand.
fn evenness(pacing: Pacing, policy: Policy, hot_percent: u64) -> (f64, u64) {
    let profile = small();
    let config = ModuleConfig { pacing: Some(pacing), policy: Some(policy), ..config(&profile, QUARTER) };
    let (mut module, mut writer) = steady(&config, hot_percent);
    let sectors = module.bytes() / 4096;
    writer.write(&mut module, sectors * 3 / 2);
    module.verify().expect("the books agree");
    // A span in which a few LEBs are groomed, as in a second of a full-sized card.
    let windows = writer.windows(u64::from(module.layout().geometry.slots_per_leb()) * 4);
    let mean = windows.iter().sum::<f64>() / windows.len() as f64;
    let worst = windows.iter().map(|window| (window / mean - 1.0).abs()).fold(0.0, f64::max);
    (worst, writer.longest_but_one_in_a_thousand())
}

#[test]
fn paced_latency_is_even_and_its_tail_half_of_what_grooming_on_demand_gives() {
    for (policy, hot_percent, most) in [(Policy::Fifo, 0, 0.1), (Policy::Lifetime, 0, 0.1), (Policy::Lifetime, 80, 0.2)]
    {
        let (worst, tail) = evenness(Pacing::Steady, policy, hot_percent);
        let (_, on_demand) = evenness(Pacing::OnDemand, policy, hot_percent);
        println!("{policy:?} {hot_percent} %: {:.1} % off the mean, {tail} of {on_demand} ns", worst * 100.0);
        assert!(worst <= most, "{policy:?} {hot_percent} %: a mean of a span is {:.1} % off", worst * 100.0);
        assert!(tail * 2 <= on_demand, "{policy:?} {hot_percent} %: {tail} of {on_demand} ns");
    }
}

/// The small module with more and smaller LEBs, so that the reserves of a full-sized one are small beside the spare space.
fn fine() -> Profile {
    let mut profile = small();
    let profile::Device::Flash(flash) = &mut profile.device else { panic!("a flash card") };
    flash.module.nand.pages_per_block = 8;
    profile
}

#[test]
fn a_pause_restores_the_speed_of_a_burst() {
    let profile = fine();
    let rates = |grooms_ahead: bool| {
        let policy = Some(Policy::Lifetime);
        let config = ModuleConfig { grooms_ahead, policy, ..config(&profile, QUARTER) };
        let (mut module, mut writer) = steady(&config, 100);
        let loaded = writer.write(&mut module, 10_000);
        writer.pause(&mut module, 30);
        (loaded, writer.write(&mut module, 2000))
    };
    let ((loaded, rested), (_, alone)) = (rates(true), rates(false));
    println!("{loaded:.0} under load, {rested:.0} after a pause, {alone:.0} without grooming in it");
    assert!(rested > 1.7 * loaded, "{rested} after {loaded} a second");
    assert!(alone < 1.4 * loaded, "the test is worth nothing");
}

/// Bursts of a thirtieth of the device with pauses in between: what is written for each sector of the host.
#[test]
fn grooming_ahead_costs_what_bursts_are_worth() {
    let profile = fine();
    for hot_percent in [0, 80] {
        let amplification = |grooms_ahead: bool| {
            let policy = Some(Policy::Lifetime);
            let config = ModuleConfig { grooms_ahead, policy, ..config(&profile, QUARTER) };
            let (mut module, mut writer) = steady(&config, hot_percent);
            let before = module.report();
            for _ in 0..60 {
                let sectors = module.bytes() / 4096;
                writer.write(&mut module, sectors / 30);
                writer.pause(&mut module, 10);
            }
            let after = module.report();
            let written = after.host_written_bytes - before.host_written_bytes;
            1.0 + (after.groomed_bytes - before.groomed_bytes) as f64 / written as f64
        };
        let (with, without) = (amplification(true), amplification(false));
        println!("{hot_percent} %: write amplification {with:.3} with grooming in pauses, {without:.3} without");
        assert!(with < without * 1.15, "{with} {without}");
    }
}

#[test]
fn a_longer_pause_is_never_worse_whatever_came_before() {
    let profile = fine();
    for policy in [Policy::Lifetime, Policy::Fifo] {
        let config = ModuleConfig { policy: Some(policy), ..config(&profile, QUARTER) };
        let (mut module, mut writer) = steady(&config, 0);
        let sectors = module.bytes() / 4096;
        let mut best = 0.0_f64;
        for seconds in [0, 1, 10, 100, 100, 1000, 1000, 10_000] {
            writer.pause(&mut module, seconds);
            let rate = writer.write(&mut module, sectors / 20);
            println!("{policy:?}: {rate:.0} a second after {seconds} s");
            assert!(rate > best * 0.95, "{policy:?}: {rate} a second after {seconds} s, and {best} after less");
            best = best.max(rate);
        }
        assert!(best > 3.0 * writer.write(&mut module, sectors), "{policy:?}: {best} a second");
    }
}
