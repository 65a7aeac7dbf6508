//! Arrays and bridges of real models: going from answer to answer is the same as going from event to event.

use card::{Arrangement, Nanos, Op, Options, Request, Surroundings, VirtualDevice, build};
use profile::{Driver, Interrupts};
use random::SplitMix64;

/// How a device comes to the next moment.
type Advance = fn(&mut dyn VirtualDevice) -> Nanos;

fn event_by_event(device: &mut dyn VirtualDevice) -> Nanos {
    let next = device.next_event().expect("something is under way");
    device.advance(next);
    next
}

fn to_the_answer(device: &mut dyn VirtualDevice) -> Nanos {
    device.advance_to_answer(Nanos::MAX)
}

/// When each of some hundred random requests is answered, with up to eight of them under way.
fn answers(device: &mut dyn VirtualDevice, seed: u64, advance: Advance) -> Vec<(u32, Nanos)> {
    let mut random = SplitMix64::new(seed);
    let (mut now, mut tag, mut answered) = (0, 0, Vec::new());
    let span = (device.bytes() / 2).min(64 << 20);
    while answered.len() < 600 {
        while tag < 600 && tag - (answered.len() as u32) < 8 {
            let op = if random.below(3) == 0 { Op::Read } else { Op::Write };
            let bytes = 4096 << random.below(7);
            device.submit(now, tag, Request::new(op, random.below(span / bytes) * bytes, bytes as u32));
            tag += 1;
        }
        now = now.max(advance(device));
        while let Some(answer) = device.answer() {
            answer.result.expect("done");
            answered.push((answer.tag, answer.at));
        }
    }
    answered
}

#[test]
fn leaps_from_answer_to_answer_miss_nothing_on_the_way() {
    let held_back = Driver { interrupts: Some(Interrupts { answers: 4, wait_us: 50.0 }), ..Driver::default() };
    for (name, arrangement) in [
        ("iodrive-320-mlc", Arrangement::Raid0),
        ("iodrive-320-mlc", Arrangement::Raid0Of(5)),
        ("iodrive-320-mlc", Arrangement::Raid1),
        ("iodrive-duo-1280-mlc", Arrangement::Raid0),
        ("sata-ssd-raid5", Arrangement::Single),
        ("hitachi-15k600-raid5", Arrangement::Single),
        ("ocz-zdrive-r4", Arrangement::Single),
        ("lsi-warpdrive-slp300", Arrangement::Single),
    ] {
        let profile = profile::find(name).expect("a sheet");
        for (seed, driver) in [(1, Driver::default()), (2, held_back)] {
            let surroundings = Surroundings { power_unlimited: true, ..Surroundings::default() };
            let options = Options { scale: 1000, arrangement, driver, surroundings, ..Options::default() };
            let [events, leaps] = [event_by_event as Advance, to_the_answer].map(|advance| {
                let mut built = build(&profile, &options).expect("built");
                answers(&mut *built.devices[0], seed, advance)
            });
            assert_eq!(events, leaps, "{name}, {arrangement:?}, seed {seed}");
        }
    }
}
