//! Write amplification of uniform random writes against theory.
//!
//! First in, first out, and greedy with very large blocks: P. Desnoyers, "Analytic Models of SSD Write Performance" (ACM TOS 2014); R. Agarwal and
//! M. Marrow, "A closed-form expression for write amplification in NAND flash" (2010): A = α / (α + W₀(−α e^−α)), α the slots in
//! use over the sectors of the host. Greedy with b slots a block (Desnoyers, section 4): the victim holds v live slots with
//! α = (b / (b − v)) Σ 1/i for i = v+1..b, and A = b / (b − v).

use ftl::{Addressed, AtOnce, Engine, LebState, Policy};
use random::SplitMix64;

use crate::common::{instant, write};

/// Slots of a LEB that hold host sectors: one more holds the LEB's header.
const BLOCK: u32 = 256;
const LEBS: u32 = 2000;

/// Slots that hold a host sector, live or not.
fn slots_in_use(device: &Addressed<AtOnce>) -> f64 {
    let lebs = device.ftl.lebs();
    let full = lebs.iter().filter(|(_, leb)| matches!(leb.state, LebState::Closed | LebState::Grooming)).count();
    let open = lebs.iter().filter(|(_, leb)| leb.state == LebState::Open).count();
    // An open one is half full in the mean.
    (full as f64 + open as f64 / 2.0) * f64::from(BLOCK)
}

/// Writes all sectors in order, then at random; gives slots in use over sectors, and the write amplification.
fn measure(over_provisioning: f64, policy: Policy, drive_writes: u64) -> (f64, f64) {
    // What the layer keeps free on 2,000 LEBs, so that the slots in use come out near what was asked for.
    let kept_free = 24.0;
    let sectors = (f64::from(BLOCK) * (f64::from(LEBS) - kept_free) / (1.0 + over_provisioning)) as u64;
    let mut device = instant(LEBS, BLOCK, sectors, policy);
    let mut random = SplitMix64::new(sectors);
    for lba in 0..sectors {
        write(&mut device, lba);
    }
    for _ in 0..drive_writes * sectors {
        write(&mut device, random.below(sectors));
    }
    let before = *device.ftl.stats();
    let (mut in_use, mut looks) = (0.0, 0.0);
    for n in 0..sectors {
        write(&mut device, random.below(sectors));
        if n % 1024 == 0 {
            in_use += slots_in_use(&device);
            looks += 1.0;
        }
    }
    let after = device.ftl.stats();
    device.verify().expect("the books agree");
    let written = (after.host_written_sectors - before.host_written_sectors) as f64;
    let moved = (after.groomed_sectors - before.groomed_sectors) as f64;
    (in_use / looks / sectors as f64, 1.0 + moved / written)
}

/// The principal branch of Lambert's W between -1/e and 0, by bisection.
fn lambert(x: f64) -> f64 {
    let (mut low, mut high) = (-1.0, 0.0);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if middle * f64::exp(middle) < x { low = middle } else { high = middle }
    }
    low
}

fn fifo(alpha: f64) -> f64 {
    alpha / (alpha + lambert(-alpha * (-alpha).exp()))
}

fn greedy(alpha: f64) -> f64 {
    let block = f64::from(BLOCK);
    let (mut sum, mut above) = (0.0, 1.0);
    for live in (0..BLOCK).rev() {
        sum += 1.0 / f64::from(live + 1);
        let here = block / (block - f64::from(live)) * sum;
        if here >= alpha {
            let share = (here - alpha) / (here - above);
            return block / (block - (f64::from(live) + share));
        }
        above = here;
    }
    1.0
}

fn compare(policy: Policy, theory: fn(f64) -> f64) {
    // The tighter, the longer it takes until the memory of the sequential fill is gone.
    for (over_provisioning, drive_writes) in [(0.07, 4), (0.15, 3), (0.20, 3), (0.28, 3), (0.36, 3), (0.50, 3)] {
        let (alpha, measured) = measure(over_provisioning, policy, drive_writes);
        let expected = theory(alpha);
        let error = measured / expected - 1.0;
        let is = (alpha - 1.0) * 100.0;
        println!("{policy:?} at {is:.1} %: {measured:.3}, theory {expected:.3}, {:+.2} %", error * 100.0);
        assert!((alpha - 1.0 - over_provisioning).abs() < 0.01, "{alpha} slots a sector, not 1 + {over_provisioning}");
        assert!(error.abs() < 0.02, "{policy:?} at {over_provisioning}: {measured} instead of {expected}");
    }
}

#[test]
fn theory_is_as_published() {
    let rounded = |value: f64| (value * 100.0).round() / 100.0;
    let at = [0.07, 0.15, 0.20, 0.28, 0.36, 0.50].map(|over_provisioning| rounded(greedy(1.0 + over_provisioning)));
    assert_eq!(at, [7.60, 3.96, 3.15, 2.46, 2.08, 1.71]);
    assert!((fifo(1.28) - 2.48).abs() < 0.05, "{}", fifo(1.28));
}

#[test]
fn first_in_first_out_is_as_theory_says() {
    compare(Policy::Fifo, fifo);
}

#[test]
fn greedy_is_as_theory_says() {
    compare(Policy::Greedy, greedy);
}

/// LEBs that streams beyond the first two have open.
fn open_beyond_two(device: &Addressed<AtOnce>) -> usize {
    let lebs = device.ftl.lebs();
    let beyond = |stream| matches!(stream, ftl::Stream::Data(2..));
    lebs.iter().filter(|(_, leb)| leb.state == LebState::Open && beyond(leb.stream)).count()
}

#[test]
fn a_policy_that_is_changed_leaves_no_stream_open() {
    let sectors = 300_000;
    let mut device = instant(LEBS, BLOCK, sectors, Policy::Dac);
    let mut random = SplitMix64::new(5);
    for lba in (0..sectors).chain((0..sectors).map(|_| random.below(1 << 14))) {
        write(&mut device, lba);
    }
    assert!(open_beyond_two(&device) > 0, "the test is worth nothing");
    device.ftl.set_policy(Policy::Greedy);
    device.carry_out(());
    assert_eq!(open_beyond_two(&device), 0);
    device.ftl.set_policy(Policy::Lifetime);
    (0..sectors / 4).for_each(|_| write(&mut device, random.below(sectors)));
    device.verify().expect("the books agree");
}
