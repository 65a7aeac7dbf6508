//! Power cuts by drill under writes of 1 MiB: each write is there as a whole or not at all.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;

use device::{Drill, PowerCut, Unsynced};
use nvme::initiator::Command;
use random::SplitMix64;

use super::harness::*;

const PLACES: u64 = SIZE / MIB as u64;
const BLOCKS: u64 = MIB as u64 / 4096;
/// Writes that are under way together, each to a place of its own.
const TOGETHER: u64 = 4;

/// What a write puts there: its number, over and over.
fn content(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(MIB / 8)
}

/// The number of the one write that all of this is of.
fn written_by(data: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(*data.first_chunk()?);
    (data == content(number)).then_some(number)
}

/// The writes that a place may show: the durable one, and whatever was sent since.
type Possible = Vec<BTreeSet<u64>>;

/// Reads what may have changed, and from time to time all of it. What a place shows is durable from then on.
fn check(host: &mut Connected, possible: &mut Possible, all: bool) {
    for (place, possible) in (0..).zip(possible).filter(|(_, possible)| all || possible.len() > 1) {
        let data = host.queue.read(&host.namespace, place * BLOCKS, BLOCKS as u32).expect("read");
        let number = written_by(&data).unwrap_or_else(|| panic!("a torn write at {place} MiB, one of {possible:?}"));
        assert!(possible.contains(&number), "{number} at {place} MiB, not one of {possible:?}");
        *possible = BTreeSet::from([number]);
    }
}

/// Writes until the power goes, and flushes now and then.
fn write(host: &mut Connected, possible: &mut Possible, random: &mut SplitMix64, last: &mut u64) {
    let namespace = host.namespace;
    loop {
        let first = random.below(PLACES);
        let link = host.queue.link();
        let sent = (0..TOGETHER).map(|n| {
            let place = (first + n) % PLACES;
            *last += 1;
            possible[place as usize].insert(*last);
            link.submit(Command::write(&namespace, place * BLOCKS, content(*last)))
        });
        if !sent.collect::<Vec<_>>().iter().all(Result::is_ok) {
            return;
        }
        for _ in 0..TOGETHER {
            match link.wait() {
                Ok(done) => assert!(done.status.is_success(), "{:?}", done.status),
                Err(_) => return,
            }
        }
        if random.one_in(4) {
            if host.queue.flush(&namespace).is_err() {
                return;
            }
            possible.iter_mut().for_each(|possible| *possible = possible.last().copied().into_iter().collect());
        }
    }
}

/// `OPENVSL_CUTS` says how many; without it, a few.
#[test]
fn no_power_cut_tears_a_write_of_1_mib() {
    let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let (cuts, seed) = (asked("OPENVSL_CUTS").unwrap_or(30), asked("OPENVSL_SEED").unwrap_or(1));
    let mut random = SplitMix64::new(seed);
    let drilled = Drilled::new();
    let mut possible = vec![BTreeSet::from([0]); PLACES as usize];
    let (mut last, mut programs, mut torn) = (0, 0, 0);
    for cut in 0..=cuts {
        let target = drilled.serve();
        let mut host = target.connect();
        check(&mut host, &mut possible, cut % 64 == 0 || cut == cuts);
        if cut == cuts {
            break;
        }
        let (tell, told) = channel();
        let on_cut = move |cut: PowerCut, _| tell.send(cut.report).expect("somebody listens");
        target.device.on_power_cut(on_cut).expect("a device");
        target.drill(Drill::PowerCut {
            at_write: None,
            at_program: Some(1 + random.below(40)),
            unsynced: Unsynced::ALL[random.below(4) as usize],
            seed: Some(random.bits()),
        });
        write(&mut host, &mut possible, &mut random, &mut last);
        target.device.wait_until_gone();
        let report = told.recv().expect("the power went");
        programs += report.dropped + report.kept + report.torn;
        torn += report.torn;
    }
    println!(
        "power cuts under writes of 1 MiB: {cuts}, writes: {last}, torn: 0 (of {programs} programs under way, {torn} were torn)"
    );
    assert!(cuts < 10 || torn > 0, "no cut met a program under way");
}
