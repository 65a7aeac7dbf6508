//! What snapshots cost in virtual time: more of them never write less, and none is none.

use card::{Every, Failure, Module, Op, Report, Request, Schedule, VirtualDevice};
use random::SplitMix64;

use crate::common::{config, fill, small};

/// What a module did whose host writes so many sectors at random, after it was filled.
fn written(schedule: Option<Schedule>, percent: u64, writes: u64) -> (Report, Option<Failure>) {
    let profile = small();
    let mut module = Module::new(&config(&profile, percent)).expect("a module");
    let mut now = fill(&mut module, 0);
    if let Some(schedule) = schedule {
        assert!(module.keep_snapshots(now, schedule));
    }
    let mut random = SplitMix64::new(3);
    let sectors = module.bytes() / 4096;
    for _ in 0..writes {
        // Most of it to a part that is written again and again.
        let lba = if random.one_in(4) { random.below(sectors) } else { random.below(sectors / 16) };
        module.submit(now, 0, Request::new(Op::Write, lba * 4096, 4096));
        let answer = loop {
            now = module.next_event().expect("a write is under way");
            now = module.advance_to_answer(now);
            if let Some(answer) = module.answer() {
                break answer;
            }
        };
        if let Err(failure) = answer.result {
            return (module.report(), Some(failure));
        }
    }
    module.verify().expect("its books agree");
    (module.report(), None)
}

fn media_written(report: &Report) -> u64 {
    report.host_written_bytes
        + report.groomed_bytes
        + report.parity_bytes
        + report.padding_bytes
        + report.metadata_bytes
}

#[test]
fn more_snapshots_never_write_less_and_none_is_none() {
    const WRITES: u64 = 60_000;
    let (without, _) = written(None, 40, WRITES);
    for every in [Every::Bytes(16 << 20), Every::Time(400_000_000)] {
        let (none, _) = written(Some(Schedule { every, keep: 0 }), 40, WRITES);
        assert_eq!(none.snapshots.map(|snapshots| (snapshots.made, snapshots.kept)), Some((0, 0)));
        assert_eq!(Report { snapshots: None, ..none }, without, "a schedule that keeps none is none");
        let mut before = media_written(&without);
        let mut held = 0;
        for keep in [1, 2, 4, 8] {
            let (report, failure) = written(Some(Schedule { every, keep }), 40, WRITES);
            assert_eq!(failure, None, "{every:?}, {keep} kept");
            let snapshots = report.snapshots.expect("a schedule");
            eprintln!("{every:?} {keep}: {snapshots:?} {} {}", snapshots.room_percent(), media_written(&report));
            assert!(snapshots.made > 8 && snapshots.kept == keep, "{snapshots:?}");
            assert!(snapshots.held_bytes > held && snapshots.room_percent() < 100.0, "{snapshots:?}");
            held = snapshots.held_bytes;
            let media = media_written(&report);
            assert!(media >= before, "{every:?}: {keep} kept wrote {media} bytes, fewer {before}");
            before = media;
        }
        assert!(before > media_written(&without) * 105 / 100, "eight of them cost something");
    }
}

/// A module full of yesterday refuses writes, and says why.
#[test]
fn what_does_not_fit_is_refused() {
    let schedule = Schedule { every: Every::Bytes(8 << 20), keep: 4096 };
    let (report, failure) = written(Some(schedule), 80, 400_000);
    assert_eq!(failure, Some(Failure::Full));
    assert!(report.snapshots.is_some_and(|snapshots| snapshots.room_percent() > 95.0), "{:?}", report.snapshots);
}
