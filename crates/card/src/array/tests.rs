//! Arrays of devices whose times are known.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::device::Failure;
use crate::testing::{Fixed, bytes_per_s, mean, random, run, sequential};

const SIZE: u64 = 1 << 34;
const STRIPE: u64 = 65_536;
const TIME: Nanos = 100_000;

type Logs = Vec<Rc<RefCell<Vec<(Nanos, Request)>>>>;

fn members(count: usize) -> (Vec<Box<dyn VirtualDevice>>, Logs) {
    let fixed: Vec<Fixed> = (0..count).map(|_| Fixed::new(TIME, SIZE)).collect();
    let logs = fixed.iter().map(|it| Rc::clone(&it.log)).collect();
    (fixed.into_iter().map(|it| Box::new(it) as Box<dyn VirtualDevice>).collect(), logs)
}

/// How many requests of a kind each member got.
fn counts(logs: &Logs, op: Op) -> Vec<usize> {
    logs.iter().map(|log| log.borrow().iter().filter(|(_, it)| it.op == op).count()).collect()
}

#[test]
fn stripes_lie_on_the_members_in_turn_and_every_byte_is_asked_for_once() {
    let (devices, logs) = members(3);
    let mut array = Array::striped(devices, STRIPE);
    assert_eq!(array.bytes(), SIZE / STRIPE * STRIPE * 3);
    // From the middle of stripe 1 to the middle of stripe 5.
    let request = Request::new(Op::Read, STRIPE + 4096, (4 * STRIPE) as u32);
    run(&mut array, 1, [request]);
    let asked: Vec<Vec<(u64, u32)>> =
        logs.iter().map(|log| log.borrow().iter().map(|(_, it)| (it.offset, it.bytes)).collect()).collect();
    let s = STRIPE as u32;
    assert_eq!(asked[0], [(STRIPE, s)], "stripe 3");
    assert_eq!(asked[1], [(4096, s - 4096 + s)], "stripes 1 and 4, joined");
    assert_eq!(asked[2], [(0, s + 4096)], "stripes 2 and 5, joined");
}

#[test]
fn what_software_takes_of_a_request_any_number_wait_at_the_same_time() {
    for outstanding in [1, 8] {
        let rate = |array: Array| {
            let lived = run(&mut { array }, outstanding, random(Op::Read, 2000, 4096, SIZE, 1));
            bytes_per_s(&lived) / 4096.0
        };
        let (with, without) = (Array::striped(members(2).0, STRIPE).taking(25.0), Array::striped(members(2).0, STRIPE));
        let more_ns = f64::from(outstanding as u32) * 1e9 * (rate(with).recip() - rate(without).recip());
        assert!((more_ns - 25_000.0).abs() < 250.0, "{outstanding} outstanding: {more_ns} ns");
    }
}

#[test]
fn large_parts_are_cut() {
    let (devices, logs) = members(2);
    run(&mut Array::striped(devices, STRIPE), 1, [Request::new(Op::Write, 0, 8 << 20)]);
    assert_eq!(counts(&logs, Op::Write), [4, 4]);
}

#[test]
fn a_mirror_balances_reads_and_writes_everywhere() {
    let (devices, logs) = members(2);
    let mut array = Array::mirrored(devices);
    assert_eq!(array.bytes(), SIZE);
    let mut requests = random(Op::Read, 1_000, 4096, 1 << 30, 1);
    requests.extend(random(Op::Write, 500, 4096, 1 << 30, 2));
    run(&mut array, 16, requests);
    assert_eq!(counts(&logs, Op::Write), [500, 500]);
    let reads = counts(&logs, Op::Read);
    assert!(reads[0].abs_diff(500) <= 8 && reads[0] + reads[1] == 1_000, "{reads:?}");
}

#[test]
fn a_small_write_on_raid_5_is_two_reads_and_two_writes() {
    let (devices, logs) = members(4);
    let mut array = Raid5::new(devices, STRIPE, 0.0);
    assert_eq!(array.bytes(), SIZE * 3);
    let lived = run(&mut array, 1, random(Op::Write, 1_000, 4096, 1 << 34, 1));
    assert_eq!(counts(&logs, Op::Read).iter().sum::<usize>(), 2_000);
    assert_eq!(counts(&logs, Op::Write).iter().sum::<usize>(), 2_000);
    assert_eq!(mean(&lived), 2.0 * TIME as f64, "the reads at once, then the writes");
    // Data and parity on different members, the same range.
    let mut all: Vec<(Nanos, u64, usize)> = Vec::new();
    for (member, log) in logs.iter().enumerate() {
        all.extend(log.borrow().iter().filter(|(_, it)| it.op == Op::Write).map(|(at, it)| (*at, it.offset, member)));
    }
    all.sort();
    for pair in all.chunks(2) {
        assert_eq!((pair[0].0, pair[0].1), (pair[1].0, pair[1].1));
        assert_ne!(pair[0].2, pair[1].2);
    }
}

#[test]
fn a_whole_row_needs_no_reads_and_most_of_a_row_few() {
    let (devices, logs) = members(4);
    let mut array = Raid5::new(devices, STRIPE, 0.0);
    let row = 3 * STRIPE as u32;
    run(&mut array, 4, sequential(Op::Write, 100, row, 0));
    assert_eq!(counts(&logs, Op::Read), [0; 4]);
    assert_eq!(counts(&logs, Op::Write), [100; 4]);
    // Two of three stripes: the third is read, rather than two and the parity.
    run(&mut array, 1, [Request::new(Op::Write, 0, 2 * STRIPE as u32)]);
    assert_eq!(counts(&logs, Op::Read).iter().sum::<usize>(), 1);
    assert_eq!(counts(&logs, Op::Write).iter().sum::<usize>(), 403);
}

#[test]
fn parity_goes_round_all_members_and_reads_leave_it_alone() {
    let (devices, logs) = members(4);
    run(&mut Raid5::new(devices, STRIPE, 0.0), 8, sequential(Op::Read, 1_200, 65_536, 0));
    assert_eq!(counts(&logs, Op::Read), [300; 4]);
}

#[test]
fn writes_to_one_row_wait_for_each_other() {
    let (devices, _) = members(4);
    let same = [Request::new(Op::Write, 0, 4096); 5];
    let lived = run(&mut Raid5::new(devices, STRIPE, 0.0), 5, same);
    let times: Vec<Nanos> = lived.iter().map(|it| it.nanos()).collect();
    assert_eq!(times, [2, 4, 6, 8, 10].map(|n| n * TIME));
}

#[test]
fn the_controllers_cost_is_one_after_the_other() {
    let (devices, _) = members(3);
    let lived = run(&mut Raid5::new(devices, STRIPE, 200.0), 10, random(Op::Read, 10, 4096, 1 << 30, 1));
    let last = lived.iter().map(|it| it.answered).max();
    assert_eq!(last, Some(10 * 200_000 + TIME));
}

#[test]
fn memory_answers_writes_and_writes_whole_rows() {
    let (devices, logs) = members(4);
    let array = Raid5::new(devices, STRIPE, 0.0);
    let mut cached = WriteBack::new(Box::new(array), 1 << 30, 3 * STRIPE);
    let lived = run(&mut cached, 1, sequential(Op::Write, 600, 32_768, 0));
    assert_eq!(mean(&lived), 0.0);
    let flush = Request::new(Op::Flush, 0, 0);
    run(&mut cached, 1, [flush]);
    let written: u64 = logs
        .iter()
        .flat_map(|log| {
            log.borrow()
                .iter()
                .filter(|(_, it)| it.op == Op::Write)
                .map(|(_, it)| u64::from(it.bytes))
                .collect::<Vec<_>>()
        })
        .sum();
    assert!(written >= 600 * 32_768 * 4 / 3, "{written}");
    assert!(cached.is_clean());
    assert_eq!(cached.report().host_written_bytes, 600 * 32_768);
}

#[test]
fn full_memory_makes_writes_wait_and_loses_none() {
    let (devices, logs) = members(4);
    let array = Raid5::new(devices, STRIPE, 0.0);
    let mut cached = WriteBack::new(Box::new(array), 1 << 20, 3 * STRIPE);
    let requests = random(Op::Write, 5_000, 4096, 1 << 34, 4);
    let lived = run(&mut cached, 64, requests);
    assert_eq!(lived.len(), 5_000);
    assert!(mean(&lived) > 0.0);
    run(&mut cached, 1, [Request::new(Op::Flush, 0, 0)]);
    assert!(cached.is_clean());
    assert!(counts(&logs, Op::Write).iter().sum::<usize>() >= 9_000);
    assert_eq!(counts(&logs, Op::Flush), [1; 4]);
}

#[test]
fn a_bad_request_is_refused_by_every_kind() {
    let bad = Request::new(Op::Read, u64::MAX - 511, 512);
    let mut kinds: Vec<Box<dyn VirtualDevice>> = vec![
        Box::new(Array::striped(members(2).0, STRIPE)),
        Box::new(Array::mirrored(members(2).0)),
        Box::new(Raid5::new(members(3).0, STRIPE, 0.0)),
        Box::new(WriteBack::new(Box::new(Fixed::new(1, SIZE)), 1 << 20, STRIPE)),
    ];
    for device in &mut kinds {
        device.submit(5, 7, bad);
        device.advance(5);
        let answer = device.answer().expect("answered");
        assert_eq!((answer.tag, answer.result), (7, Err(Failure::OutOfRange)));
        assert!(device.answer().is_none());
    }
}

/// Members, the last of which fails requests of a kind.
fn failing(count: usize, op: Op) -> Vec<Box<dyn VirtualDevice>> {
    let mut bad = Fixed::new(TIME, SIZE);
    bad.fails = Some(op);
    let good = (1..count).map(|_| Box::new(Fixed::new(TIME, SIZE)) as Box<dyn VirtualDevice>);
    good.chain([Box::new(bad) as Box<dyn VirtualDevice>]).collect()
}

/// The result of one request.
fn result(device: &mut dyn VirtualDevice, request: Request) -> Result<(), Failure> {
    device.submit(0, 3, request);
    while let Some(next) = device.next_event() {
        device.advance(next);
        if let Some(answer) = device.answer() {
            assert_eq!(answer.tag, 3);
            return answer.result;
        }
    }
    panic!("no answer");
}

#[test]
fn a_part_that_fails_fails_the_request() {
    let whole = |op| Request::new(op, 0, 4 * STRIPE as u32);
    let mut striped = Array::striped(failing(3, Op::Read), STRIPE);
    assert_eq!(result(&mut striped, whole(Op::Read)), Err(Failure::Media));
    assert_eq!(result(&mut striped, Request { bytes: STRIPE as u32, ..whole(Op::Read) }), Ok(()), "another member");
    assert_eq!(result(&mut Array::mirrored(failing(2, Op::Write)), whole(Op::Write)), Err(Failure::Media));
    // The last member holds the parity of row 0 and data of the next.
    for (op, bytes) in [(Op::Read, 6 * STRIPE), (Op::Write, 4096), (Op::Write, 3 * STRIPE)] {
        let mut array = Raid5::new(failing(4, op), STRIPE, 0.0);
        assert_eq!(result(&mut array, Request::new(op, 0, bytes as u32)), Err(Failure::Media), "{op:?} {bytes}");
    }
    let mut array = Raid5::new(failing(4, Op::Read), STRIPE, 0.0);
    // In row 1 the last member holds the first stripe, which the parity of a write to the second needs.
    let small = Request::new(Op::Write, 4 * STRIPE, 4096);
    assert_eq!(result(&mut array, small), Err(Failure::Media), "what the parity needs could not be read");
}

#[test]
fn a_flush_reaches_every_member() {
    let flush = Request::new(Op::Flush, 0, 0);
    let (devices, logs) = members(3);
    run(&mut Array::striped(devices, STRIPE), 1, [flush]);
    assert_eq!(counts(&logs, Op::Flush), [1; 3]);
    let (devices, logs) = members(2);
    run(&mut Array::mirrored(devices), 1, [flush]);
    assert_eq!(counts(&logs, Op::Flush), [1; 2]);
}

#[test]
fn a_mirror_reads_from_whoever_has_less_to_do() {
    let (fast, slow) = (Fixed::new(TIME, SIZE), Fixed::new(10 * TIME, SIZE));
    let logs = vec![Rc::clone(&fast.log), Rc::clone(&slow.log)];
    let mut array = Array::mirrored(vec![Box::new(fast), Box::new(slow)]);
    run(&mut array, 8, random(Op::Read, 1_000, 4096, 1 << 30, 1));
    let reads = counts(&logs, Op::Read);
    assert!(reads[0] > 5 * reads[1] && reads[1] > 0, "{reads:?}");
}

#[test]
fn parity_is_counted_when_it_is_written_and_never_taken_back() {
    let (devices, _) = members(4);
    let mut array = Raid5::new(devices, STRIPE, 0.0);
    let mut before = 0;
    // Small writes read before they write, so the host is ahead of the members all the time.
    for (tag, request) in (0..).zip(random(Op::Write, 50, 4096, 60 * STRIPE, 1)) {
        let now = u64::from(tag) * TIME / 4;
        array.advance(now);
        array.submit(now, tag, request);
        let parity = array.report().parity_bytes;
        assert!(parity >= before, "{parity} after {before}");
        before = parity;
    }
    array.advance(100 * TIME);
    assert_eq!(array.report().parity_bytes, 50 * 4096);
}

#[test]
fn trims_leave_the_parity_of_raid_5_alone_and_its_report_counts_it() {
    let (devices, logs) = members(4);
    let mut array = Raid5::new(devices, STRIPE, 0.0);
    run(&mut array, 1, [Request::new(Op::Trim, 0, 4096)]);
    assert!(logs.iter().all(|log| log.borrow().is_empty()));
    run(&mut array, 1, sequential(Op::Write, 10, 3 * STRIPE as u32, 0));
    let report = array.report();
    assert_eq!((report.host_written_bytes, report.parity_bytes), (30 * STRIPE, 10 * STRIPE));
    assert_eq!(report.host_read_bytes, 0);
}

#[test]
fn memory_answers_reads_of_what_it_holds_whole() {
    let inner = Fixed::new(TIME, SIZE);
    let log = Rc::clone(&inner.log);
    // A line is written back as soon as nothing is read: one read under way keeps them in memory.
    let mut cached = WriteBack::new(Box::new(inner), 1 << 30, STRIPE);
    cached.submit(0, 1, Request::new(Op::Read, 1 << 20, 4096));
    cached.submit(0, 2, Request::new(Op::Write, 0, 8192));
    cached.submit(0, 3, Request::new(Op::Read, 4096, 4096));
    cached.submit(0, 4, Request::new(Op::Read, 4096, 8192));
    cached.advance(0);
    let answered: Vec<u32> = std::iter::from_fn(|| cached.answer()).map(|answer| answer.tag).collect();
    assert_eq!(answered, [2, 3], "tag 4 is held in part only");
    let reads = log.borrow().iter().filter(|(_, it)| it.op == Op::Read).count();
    assert_eq!(reads, 2);
}

#[test]
fn a_flush_tells_of_a_write_back_that_failed() {
    let mut inner = Fixed::new(TIME, SIZE);
    inner.fails = Some(Op::Write);
    let mut cached = WriteBack::new(Box::new(inner), 1 << 30, STRIPE);
    assert_eq!(result(&mut cached, Request::new(Op::Write, 0, 4096)), Ok(()));
    let flush = Request::new(Op::Flush, 0, 0);
    assert_eq!(result(&mut cached, flush), Err(Failure::Media));
    assert_eq!(result(&mut cached, flush), Ok(()), "it is told once");
}
