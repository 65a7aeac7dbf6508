//! A flash module in virtual time: nothing is lost, the books agree at every step, the same seed gives the same times, and
//! wear, power and heat have the consequences that the data sheet says.

use std::collections::BTreeSet;

use card::{Answer, ChipChange, Failure, Health, Level, Module, Op, Report, Request, Surroundings, VirtualDevice};
use profile::Card;
use random::SplitMix64;

use crate::common::{config, fill, small};

/// Random requests, `depth` at a time; `check` sees the module after every answer. Gives every answer.
fn drive(
    module: &mut Module,
    seed: u64,
    requests: u32,
    depth: u32,
    read_percent: u64,
    mut check: impl FnMut(&Module, u32),
) -> Vec<Answer> {
    let mut random = SplitMix64::new(seed);
    let mut open = BTreeSet::new();
    let mut answers = Vec::new();
    let mut next = 0;
    let mut now = 0;
    while next < requests || !open.is_empty() {
        while next < requests && open.len() < depth as usize {
            let bytes = 4096 * (1 + random.below(16)) as u32;
            let offset = random.below((module.bytes() - u64::from(bytes)) / 4096) * 4096;
            let op = match random.below(100) {
                n if n < read_percent => Op::Read,
                99 => Op::Trim,
                98 => Op::Flush,
                _ => Op::Write,
            };
            let request = if op == Op::Flush { Request::new(op, 0, 0) } else { Request::new(op, offset, bytes) };
            open.insert(next);
            module.submit(now, next, request);
            next += 1;
        }
        let event = module.next_event().expect("who has open requests has a next event");
        assert!(event >= now, "time goes forward");
        now = event;
        module.advance(now);
        while let Some(answer) = module.answer() {
            assert!(open.remove(&answer.tag), "request {} is answered once", answer.tag);
            assert!(answer.at <= now);
            answers.push(answer);
            check(module, answers.len() as u32);
        }
    }
    assert_eq!(answers.len() as u32, requests);
    answers
}

#[test]
fn every_request_is_answered_once_and_the_books_agree() {
    let profile = small();
    for seed in 0..6 {
        let mut module = Module::new(&config(&profile, 55 + seed * 5)).expect("a module");
        let every = 400;
        let answers = drive(&mut module, seed, 20_000, 1 + seed as u32 * 50, 30, |module, n| {
            if n % every == 0 {
                module.verify().expect("the books agree");
            }
        });
        assert!(answers.iter().all(|answer| answer.result.is_ok()), "seed {seed}");
        module.verify().expect("the books agree");
        let report = module.report();
        assert!(report.groomed_bytes > 0 || seed < 2, "seed {seed} groomed nothing");
    }
}

/// More reads than the layer works on at once, those behind the first of them of trimmed sectors: they need no flash, so nothing but
/// each other wakes them.
#[test]
fn reads_that_wait_are_answered_when_they_need_no_flash() {
    let profile = small();
    let mut module = Module::new(&config(&profile, 60)).expect("a module");
    let mut now = fill(&mut module, 0);
    let half = module.bytes() / 2 / 131_072 * 131_072;
    module.submit(now, 0, Request::new(Op::Trim, half, (module.bytes() - half) as u32));
    for tag in 1..15_000 {
        let offset = u64::from(tag) * 4096 % half;
        module.submit(now, tag, Request::new(Op::Read, if tag < 5000 { offset } else { half }, 4096));
    }
    let mut open: BTreeSet<u32> = (0..15_000).collect();
    while let Some(event) = module.next_event() {
        now = event;
        module.advance(now);
        while let Some(answer) = module.answer() {
            answer.result.expect("answered");
            assert!(open.remove(&answer.tag), "request {} is answered once", answer.tag);
        }
    }
    assert_eq!(open.len(), 0, "reads that nobody answers");
}

/// Map, live slots, owners and the reserve after every single answer, on a full module that grooms.
#[test]
fn the_books_agree_after_every_answer() {
    let profile = small();
    let mut module = Module::new(&config(&profile, 80)).expect("a module");
    let sectors = module.bytes() / 4096;
    fill(&mut module, 0);
    let mut reserve = 100.0;
    drive(&mut module, 5, 2000, 32, 20, |module, n| {
        module.verify().unwrap_or_else(|wrong| panic!("after {n} answers: {wrong}"));
        let report = module.report();
        let left = report.reserve_percent.expect("a card has a reserve");
        assert!(left <= reserve && module.ftl().map().mapped() <= sectors);
        assert!(module.ftl().free_lebs() >= 1, "a LEB is always left to groom into");
        reserve = left;
    });
    assert!(module.report().groomed_bytes > 0);
}

#[test]
fn the_same_seed_gives_the_same_answers() {
    let profile = small();
    let run = |seed: u64| {
        let mut config = config(&profile, 80);
        config.seed = seed;
        let mut module = Module::new(&config).expect("a module");
        let answers = drive(&mut module, 1, 8000, 32, 50, |_, _| {});
        (answers, format!("{:?}", module.report()))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0, "times vary with the seed");
}

/// Going from answer to answer in one call is the same as going from event to event.
#[test]
fn advancing_to_answers_is_advancing_from_event_to_event() {
    let profile = small();
    let run = |to_answer: bool| {
        let mut module = Module::new(&config(&profile, 80)).expect("a module");
        let mut random = SplitMix64::new(3);
        let mut answers = Vec::new();
        let mut now = 0;
        let mut submit = |module: &mut Module, now: u64, tag: u32| {
            let op = if random.one_in(3) { Op::Read } else { Op::Write };
            let offset = random.below(module.bytes() / 4096) * 4096;
            module.submit(now, tag, Request::new(op, offset, 4096));
        };
        (0..16).for_each(|tag| submit(&mut module, now, tag));
        while answers.len() < 30_000 {
            if to_answer {
                now = module.advance_to_answer(now + 1_000_000);
            } else {
                now = module.next_event().expect("requests are under way");
                module.advance(now);
            }
            while let Some(answer) = module.answer() {
                answers.push(answer);
                submit(&mut module, now, answer.tag);
            }
        }
        answers
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn parity_takes_its_share_and_books_take_little_memory() {
    let profile = small();
    let mut module = Module::new(&config(&profile, 80)).expect("a module");
    fill(&mut module, 0);
    let report = module.report();
    let programmed = report.host_written_bytes + report.metadata_bytes;
    let share = report.parity_bytes as f64 / programmed as f64;
    // One page in five is parity, so parity is a quarter of the data; what is still in the buffer has none yet.
    assert!((0.24..=0.25).contains(&share), "{share}");
    let pages = module.layout().geometry.slots() as f64;
    let memory = module.memory() as f64 / pages;
    assert!(memory <= 16.0, "{memory} bytes a page");
}

#[test]
fn requests_outside_the_device_are_refused() {
    let profile = small();
    let mut module = Module::new(&config(&profile, 80)).expect("a module");
    let end = module.bytes();
    for (tag, (offset, bytes)) in
        [(end, 4096), (end - 4096, 8192), (512, 4096), (0, 100), (0, 0), (u64::MAX - 5, 4096)].into_iter().enumerate()
    {
        module.submit(0, tag as u32, Request::new(Op::Write, offset, bytes));
        assert_eq!(module.answer().map(|answer| answer.result), Some(Err(Failure::OutOfRange)), "{offset} {bytes}");
    }
}

/// Healthy, warning at 10 % reserve, reduced writes, read-only: in this order, with reads going on to the end.
#[test]
fn a_worn_out_module_goes_the_way_of_the_original() {
    let mut profile = small();
    let profile::Device::Flash(flash) = &mut profile.device else { panic!("a flash card") };
    flash.module.nand.endurance_cycles = 40;
    flash.module.nand.factory_bad_percent = 0.0;
    // 13 spare blocks a die: the warning comes with the last but one.
    flash.module.controller.reserve_percent = 10.0;
    let mut module = Module::new(&config(&profile, 60)).expect("a module");
    let mut now = fill(&mut module, 0);
    let mut random = SplitMix64::new(9);
    let mut seen = vec![Health::Healthy];
    let mut rates = Vec::new();
    for _ in 0..40_000 {
        let began = now;
        for tag in 0..64 {
            let offset = random.below(module.bytes() / 4096) * 4096;
            module.submit(now, tag, Request::new(Op::Write, offset, 4096));
        }
        let mut left = 64;
        let mut refused = 0;
        while left > 0 {
            if let Some(answer) = module.answer() {
                left -= 1;
                refused += u32::from(answer.result == Err(Failure::ReadOnly));
                continue;
            }
            now = module.next_event().expect("writes are under way");
            module.advance(now);
        }
        let report = module.report();
        let health = report.health.expect("a card has a health");
        if Some(&health) != seen.last() {
            assert!(Some(&health) > seen.last(), "it never gets better");
            seen.push(health);
            if health == Health::Warning {
                assert!(report.reserve_percent.is_some_and(|percent| 0.0 < percent && percent <= 10.0));
            }
        }
        rates.push((health, now - began));
        if refused == 64 {
            break;
        }
    }
    assert_eq!(seen, [Health::Healthy, Health::Warning, Health::ReducedWrite, Health::ReadOnly]);
    let mean = |health: Health| {
        let times: Vec<u64> = rates.iter().filter(|(h, _)| *h == health).map(|(_, time)| *time).collect();
        times.iter().sum::<u64>() as f64 / times.len().max(1) as f64
    };
    assert!(mean(Health::ReducedWrite) > 1.5 * mean(Health::Healthy), "writes are held back when the reserve is gone");
    module.submit(now, 1, Request::new(Op::Read, 0, 4096));
    while module.answer().map(|answer| assert_eq!(answer.result, Ok(()))).is_none() {
        now = module.next_event().expect("a read is under way");
        module.advance(now);
    }
    module.verify().expect("the books agree");
}

/// Steady sequential writes for some seconds; gives bytes a second, the report, and how hard writes were held back at the worst.
fn write_for(
    card: &Card,
    energy: f64,
    surroundings: Surroundings,
    seconds: f64,
) -> (f64, Report, Level, Option<Failure>) {
    let mut profile = small();
    let profile::Device::Flash(flash) = &mut profile.device else { panic!("a flash card") };
    flash.module.energy.program_uj *= energy;
    let mut config = config(&profile, 60);
    config.card = Some((card, 1));
    config.surroundings = surroundings;
    let mut module = Module::new(&config).expect("a module");
    let (mut now, mut at, mut failure) = (0, 0, None);
    for tag in 0..16 {
        module.submit(now, tag, Request::new(Op::Write, at, 65_536));
        at += 65_536;
    }
    let mut under_way = 16;
    let mut level = Level::None;
    while under_way > 0 {
        level = level.max(module.governor().expect("it sits on a card").level());
        now = module.next_event().expect("writes are under way");
        module.advance(now);
        while let Some(answer) = module.answer() {
            under_way -= 1;
            failure = failure.or(answer.result.err());
            if now as f64 * 1e-9 < seconds && failure.is_none() {
                at = (at + 65_536) % (module.bytes() / 65_536 * 65_536);
                module.submit(now, answer.tag, Request::new(Op::Write, at, 65_536));
                under_way += 1;
            }
        }
    }
    let report = module.report();
    (report.host_written_bytes as f64 / (now as f64 * 1e-9), report, level, failure)
}

#[test]
fn writes_are_held_to_the_slots_power() {
    let profile = small();
    let card = profile.flash().and_then(|flash| flash.card.clone()).expect("a card");
    let free = Surroundings { power_unlimited: true, ..Surroundings::default() };
    let (unlimited, report, level, _) = write_for(&card, 40.0, free, 8.0);
    let watts = report.joules / 8.0;
    assert!(watts > card.power.throttle_watts * 1.3 && level == Level::None, "{watts} W: too little to be throttled");
    let (held, report, level, _) = write_for(&card, 40.0, Surroundings::default(), 8.0);
    let watts = report.joules / 8.0;
    assert!(held < unlimited * 0.9 && level > Level::None, "{held} of {unlimited}");
    assert!((watts / card.power.throttle_watts - 1.0).abs() < 0.08, "{watts} W");
}

#[test]
fn a_warm_card_slows_down_and_a_hot_one_switches_itself_off() {
    let profile = small();
    let mut card = profile.flash().and_then(|flash| flash.card.clone()).expect("a card");
    card.thermal.time_constant_s = 2.0;
    let surroundings =
        |ambient: f64| Surroundings { ambient_celsius: ambient, power_unlimited: true, airflow_lfm: None };
    let (cool, report, ..) = write_for(&card, 8.0, surroundings(25.0), 20.0);
    let rise = report.celsius.expect("a card has a temperature") - 25.0;
    // Warm enough that full speed would end a little above the limit.
    let (warm, report, level, failure) = write_for(&card, 8.0, surroundings(80.0 - rise), 20.0);
    let celsius = report.celsius.expect("a card has a temperature");
    assert!(warm < cool * 0.99 && level > Level::None && failure.is_none(), "{warm} of {cool}");
    assert!((celsius - card.thermal.throttle_celsius).abs() < 2.0, "{celsius}");
    let (.., failure) = write_for(&card, 8.0, surroundings(90.0), 20.0);
    assert_eq!(failure, Some(Failure::Shutdown));
}

/// A module whose layout shrinks by a chip that fails, or not.
fn with_chips(adaptive: bool) -> profile::Profile {
    let mut profile = small();
    let profile::Device::Flash(flash) = &mut profile.device else { panic!("a flash card") };
    flash.module.chips.adaptive = adaptive;
    profile
}

#[test]
fn a_chip_that_fails_costs_room_where_the_layout_shrinks_and_protection_where_it_does_not() {
    let changes = |module: &Module| module.report().chips.into_iter().map(|event| event.what).collect::<Vec<_>>();
    let profile = with_chips(true);
    let mut module = Module::new(&config(&profile, 40)).expect("it fits");
    let filled = fill(&mut module, 0);
    assert_eq!(module.kill_chip(5, 0), Err("it has chips 0 to 4".into()));
    module.kill_chip(2, filled + 1_000_000).expect("it has one");
    module.kill_chip(0, filled + 20_000_000_000).expect("and another");
    let answers = drive(&mut module, 3, 20_000, 8, 50, |_, _| {});
    assert!(answers.iter().all(|answer| answer.result.is_ok()), "one chip may fail");
    module.advance(filled + 19_000_000_000);
    let Some(at) = module.report().chips.first().map(|event| event.at) else { panic!("a chip failed") };
    assert_eq!(at, filled + 1_000_000, "at its moment");
    let steps = changes(&module);
    assert_eq!(
        (steps[0], steps.last()),
        (ChipChange::Lost { chip: 2, left: 4 }, Some(&ChipChange::Protected { left: 4 }))
    );
    let rebuilt = |change: &ChipChange| matches!(change, ChipChange::Rebuilt { .. });
    assert!(steps[1..steps.len() - 1].iter().all(rebuilt), "{steps:?}");
    module.verify().expect("the books agree");

    let profile = with_chips(false);
    let mut module = Module::new(&config(&profile, 40)).expect("it fits");
    let filled = fill(&mut module, 0);
    module.kill_chip(2, filled).expect("it has one");
    assert!(drive(&mut module, 3, 2_000, 8, 50, |_, _| {}).iter().all(|answer| answer.result.is_ok()));
    assert_eq!(changes(&module), [ChipChange::Degraded { chip: 2 }]);
    // Another one is one too many.
    module.kill_chip(3, 0).expect("and another");
    let failed = |answer: &Answer| answer.result == Err(Failure::Media);
    assert!(drive(&mut module, 4, 2_000, 8, 90, |_, _| {}).iter().any(failed), "two chips of one group are lost");
}

/// A module with memory for `pages` pages of its map, each of 1024 sectors.
fn with_a_part_of_its_map(pages: u64) -> (Module, u64) {
    let mut profile = small();
    let geometry = Module::new(&config(&profile, 60)).expect("a module").layout().geometry;
    let profile::Device::Flash(flash) = &mut profile.device else { panic!("a flash card") };
    let share = geometry.raw_bytes() as f64 / flash.module.raw_bytes as f64;
    let bytes = (4096.0 * (pages as f64 + 0.5) / share) as u64;
    flash.module.map_cache = Some(profile::MapCache { bytes, page_bytes: 4096, entry_bytes: 4 });
    let module = Module::new(&config(&profile, 60)).expect("a module");
    let all = module.bytes().div_ceil(1024 * 4096);
    (module, all)
}

/// How long a read of a sector takes alone.
fn alone(module: &mut Module, now: &mut u64, sector: u64) -> u64 {
    module.submit(*now, 1, Request::new(Op::Read, sector * 4096, 4096));
    let begin = *now;
    loop {
        *now = module.next_event().expect("a read is under way");
        module.advance(*now);
        if let Some(answer) = module.answer() {
            answer.result.expect("read");
            return answer.at - begin;
        }
    }
}

#[test]
fn what_needs_a_page_of_the_map_that_is_away_waits_for_it() {
    let (mut module, all) = with_a_part_of_its_map(4);
    assert!(all > 4, "{all} pages");
    // Until everything is programmed.
    let mut now = fill(&mut module, 0) + 10_000_000_000;
    module.advance(now);
    let mut time = |sector| (alone(&mut module, &mut now, sector), module.report().map_reads);
    let before = time(0).1;
    let (there, reads) = time(700);
    assert_eq!(reads, before, "its page came with the one before");
    let (away, reads) = time(2 * 1024);
    assert_eq!(reads, before + 1);
    assert!(away > there + there / 2, "{away} ns with a read of the map, {there} without");
    // A read across two pages that are away waits for both.
    module.submit(now, 7, Request::new(Op::Read, (4 * 1024 - 1) * 4096, 8192));
    while module.answer().is_none() {
        now = module.next_event().expect("a read is under way");
        module.advance(now);
    }
    assert_eq!(module.report().map_reads, before + 3);
}

#[test]
fn with_a_part_of_the_map_everything_is_answered_once_as_the_seed_has_it() {
    for pages in [4, 6] {
        let run = || {
            let (mut module, _) = with_a_part_of_its_map(pages);
            let answers = drive(&mut module, pages, 10_000, 64, 40, |module, n| {
                if n % 400 == 0 {
                    module.verify().expect("the books agree");
                }
            });
            (answers, module.report().map_reads)
        };
        let (answers, reads) = run();
        assert!(answers.iter().all(|answer| answer.result.is_ok()));
        assert!(reads > 1000, "{reads} pages of the map were read");
        assert!((answers, reads) == run(), "the same seed gives the same times");
    }
}
