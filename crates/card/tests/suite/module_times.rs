//! A flash module's times and counts, worked out by hand.

use card::{Answer, Leds, Module, Op, Request, VirtualDevice};
use profile::{Module as Sheet, Profile};

use crate::common::{config, fill, small};

const KIB: u32 = 1024;

/// The small module with times that do not vary, changed as asked.
fn steady(change: impl FnOnce(&mut Sheet)) -> Profile {
    let mut profile = small();
    let profile::Device::Flash(flash) = &mut profile.device else { panic!("a flash card") };
    flash.module.nand.variation_percent = 0.0;
    change(&mut flash.module);
    profile
}

/// A new module that has erased what it keeps ready, and the moment then.
fn rested(profile: &Profile) -> (Module, u64) {
    let mut module = Module::new(&config(profile, 60)).expect("a module");
    module.advance(1_000_000_000);
    (module, 1_000_000_000)
}

fn request(op: Op, offset: u64, bytes: u32) -> Request {
    Request::new(op, offset, bytes)
}

/// Submits all at one moment; gives the answers in the order in which they come.
fn all(module: &mut Module, now: u64, requests: impl IntoIterator<Item = Request>) -> Vec<Answer> {
    let mut left = 0;
    for (tag, request) in (0..).zip(requests) {
        module.submit(now, tag, request);
        left += 1;
    }
    let mut answers = Vec::new();
    while answers.len() < left {
        match module.answer() {
            Some(answer) => answers.push(answer),
            None => {
                let next = module.next_event().expect("requests are under way");
                module.advance(next);
            }
        }
    }
    answers
}

/// How long one request takes on an idle module.
fn alone(module: &mut Module, now: u64, one: Request) -> u64 {
    let answers = all(module, now, [one]);
    assert_eq!(answers[0].result, Ok(()));
    answers[0].at - now
}

#[test]
fn a_write_takes_link_or_front_end_and_a_trim_no_link() {
    let profile = steady(|sheet| {
        sheet.controller.write_request_us = 5.0;
        sheet.controller.write_latency_us = 7.0;
        sheet.controller.link_bytes_per_s = 1_000_000_000;
    });
    let (mut module, now) = rested(&profile);
    assert_eq!(
        alone(&mut module, now + 1_000_000, request(Op::Write, 0, 4 * KIB)),
        5_000 + 7_000,
        "the front end is slower"
    );
    assert_eq!(
        alone(&mut module, now + 2_000_000, request(Op::Write, 0, 64 * KIB)),
        65_536 + 7_000,
        "the link is slower"
    );
    let link = module.report().link.nanos;
    assert_eq!(link, 4_096 + 65_536);
    assert_eq!(alone(&mut module, now + 3_000_000, request(Op::Trim, 0, 64 * KIB)), 5_000 + 7_000);
    assert_eq!(alone(&mut module, now + 4_000_000, request(Op::Flush, 0, 0)), 7_000, "everything is behind capacitors");
    assert_eq!(module.report().link.nanos, link);
}

#[test]
fn a_read_of_many_pages_pays_for_one_request() {
    let time = |read_request_us: f64| {
        let profile = steady(|sheet| sheet.controller.read_request_us = read_request_us);
        let mut module = Module::new(&config(&profile, 60)).expect("a module");
        let now = fill(&mut module, 0) + 1_000_000_000;
        alone(&mut module, now, request(Op::Read, 0, 64 * KIB))
    };
    assert_eq!(time(300.0) - time(200.0), 100_000);
    assert_eq!(time(10.0), time(0.0), "it is set up while its cells are read");
}

#[test]
fn what_is_not_mapped_or_still_in_the_buffer_needs_no_flash() {
    let profile = steady(|sheet| {
        sheet.controller.read_latency_us = 3.0;
        sheet.controller.link_bytes_per_s = 1_000_000_000;
    });
    let (mut module, now) = rested(&profile);
    assert_eq!(alone(&mut module, now, request(Op::Read, 0, 4 * KIB)), 4_096 + 3_000);
    alone(&mut module, now + 1_000_000, request(Op::Write, 0, 4 * KIB));
    assert_eq!(alone(&mut module, now + 2_000_000, request(Op::Read, 0, 4 * KIB)), 4_096 + 3_000);
    // All of a large one is there at once, and goes over the link then.
    assert_eq!(alone(&mut module, now + 3_000_000, request(Op::Read, 1 << 20, 64 * KIB)), 65_536 + 3_000);
}

/// However long the link stood idle before.
#[test]
fn a_read_takes_at_least_what_the_link_does() {
    let profile = steady(|sheet| {
        sheet.controller.read_latency_us = 3.0;
        sheet.controller.link_bytes_per_s = 10_000_000;
    });
    let mut module = Module::new(&config(&profile, 60)).expect("a module");
    let now = fill(&mut module, 0) + 1_000_000_000;
    assert_eq!(alone(&mut module, now, request(Op::Read, 0, 64 * KIB)), 6_553_600 + 3_000);
}

#[test]
fn a_burst_that_fits_the_buffer_goes_at_the_speed_of_the_link() {
    let profile = steady(|sheet| {
        sheet.controller.buffer_bytes = 1 << 20;
        (sheet.controller.write_request_us, sheet.controller.write_latency_us) = (0.0, 0.0);
        sheet.controller.link_bytes_per_s = 2_000_000_000;
    });
    let (mut module, now) = rested(&profile);
    let last = |module: &mut Module, now: u64, count: u64| {
        let writes = (0..count).map(|n| request(Op::Write, n * 16_384, 16 * KIB));
        all(module, now, writes).last().map(|answer| answer.at - now)
    };
    assert_eq!(last(&mut module, now, 60), Some(60 * 16_384 / 2), "less than the buffer");
    let long = last(&mut module, now + 1_000_000_000, 600).expect("answered");
    assert!(long > 600 * 16_384, "{long} ns: ten times the buffer goes at the speed of the flash");
}

/// Small writes do not pass large ones that wait for room in the buffer.
#[test]
fn writes_are_answered_in_the_order_in_which_they_came() {
    let profile = steady(|_| ());
    let mut module = Module::new(&config(&profile, 60)).expect("a module");
    let now = fill(&mut module, 0);
    let sizes = [128, 4, 4, 64, 4, 128, 4].map(|kib| kib * KIB);
    let writes = (0..400u64).map(|n| request(Op::Write, n * 128 * 1024, sizes[n as usize % sizes.len()]));
    let answers = all(&mut module, now, writes);
    assert!(answers.last().is_some_and(|last| last.at > now + 50_000_000), "more than the buffer takes at once");
    assert!(answers.iter().map(|answer| answer.tag).eq(0..400));
    assert!(answers.is_sorted_by_key(|answer| answer.at));
}

#[test]
fn more_reads_than_the_layer_works_on_are_all_answered() {
    let profile = steady(|_| ());
    let mut module = Module::new(&config(&profile, 60)).expect("a module");
    let now = fill(&mut module, 0) + 1_000_000_000;
    let before = module.report().host_read_bytes;
    let answers = all(&mut module, now, (0..6_000u64).map(|n| request(Op::Read, n * 4096, 4 * KIB)));
    let mut tags: Vec<u32> = answers.iter().map(|answer| answer.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..6_000));
    assert_eq!(module.report().host_read_bytes - before, 6_000 * 4096);
}

#[test]
fn the_report_counts_all_flash_and_how_evenly_it_wears() {
    let profile = steady(|_| ());
    let sheet = &profile.flash().expect("a flash card").module;
    let mut module = Module::new(&config(&profile, 60)).expect("a module");
    let empty = module.report();
    // 6 of 128 blocks of each die are reserve; parity wears as well.
    assert_eq!(empty.raw_bytes, u64::from(sheet.chips.count) * sheet.chips.bytes / 128 * 122);
    fill(&mut module, 0);
    let counts = module.report().erase_counts.expect("flash counts erases");
    assert_eq!((counts.min, counts.max), (0, 1), "nothing is written twice yet");
    assert!((counts.deviation.powi(2) - counts.mean * (1.0 - counts.mean)).abs() < 1e-9, "{counts:?}");
    let erased = (counts.mean * 122.0).round() as u64;
    assert_eq!(module.report().erases, erased * u64::from(empty.dies.count), "a block on every die each");
}

#[test]
fn lights_follow_the_requests() {
    let profile = steady(|_| ());
    let mut module = Module::new(&config(&profile, 60)).expect("a module");
    assert_eq!(module.leds(), Leds::Attached);
    alone(&mut module, 100_000_000, request(Op::Read, 0, 4 * KIB));
    assert_eq!(module.leds(), Leds::Reading);
    alone(&mut module, 200_000_000, request(Op::Write, 0, 4 * KIB));
    assert_eq!(module.leds(), Leds::Writing);
    module.advance(300_000_000);
    assert_eq!(module.leds(), Leds::Attached);
    module.beacon(true);
    assert_eq!(module.leds(), Leds::Beacon);
}
