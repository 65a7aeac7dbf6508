//! The disk against times worked out by hand.

use super::*;
use crate::device::Failure;
use crate::testing::{bytes_per_s, mean, random, run, sequential};

fn sheet(write_cache: bool) -> profile::Disk {
    let Ok(profile::Profile { device: profile::Device::Disk(sheet), .. }) = profile::find("hitachi-15k600") else {
        panic!("a disk's sheet");
    };
    profile::Disk { write_cache, ..sheet }
}

#[test]
fn a_random_read_takes_a_seek_half_a_turn_and_its_transfer() {
    let sheet = sheet(false);
    let mut disk = Disk::new(&sheet);
    let lived = run(&mut disk, 1, random(Op::Read, 20_000, 4096, sheet.bytes, 3));
    let turn = 60e3 / sheet.rpm;
    let rate = (sheet.outer_bytes_per_s + sheet.inner_bytes_per_s) as f64 / 2.0;
    let expected = sheet.request_us / 1e3
        + sheet.average_seek_ms
        + turn / 2.0
        + 4096.0 * 1e3 / rate
        + 4096.0 * 1e3 / sheet.link_bytes_per_s as f64;
    let measured = mean(&lived) / 1e6;
    assert!((measured / expected - 1.0).abs() < 0.02, "{measured} ms instead of {expected}");
}

#[test]
fn a_random_write_without_cache_settles_longer() {
    let sheet = sheet(false);
    let time = |op| mean(&run(&mut Disk::new(&sheet), 1, random(op, 20_000, 4096, sheet.bytes, 3))) / 1e6;
    let more = time(Op::Write) - time(Op::Read);
    assert!((more - sheet.write_settle_ms).abs() < 0.1, "{more}");
}

#[test]
fn a_queue_lets_the_drive_choose() {
    let sheet = sheet(false);
    let rate = |outstanding| {
        let lived = run(&mut Disk::new(&sheet), outstanding, random(Op::Read, 5_000, 4096, sheet.bytes, 5));
        bytes_per_s(&lived) / 4096.0
    };
    let (alone, deep) = (rate(1), rate(64));
    assert!((170.0..190.0).contains(&alone), "{alone}");
    assert!(deep > 2.0 * alone, "{deep} instead of {alone}");
}

#[test]
fn streams_run_at_the_rate_of_their_zone() {
    let sheet = sheet(false);
    for (op, outstanding, size) in [
        (Op::Read, 1, 65_536),
        (Op::Read, 1, 1 << 20),
        (Op::Read, 16, 65_536),
        (Op::Read, 32, 1 << 20),
        (Op::Write, 16, 65_536),
    ] {
        let stream = |from| {
            let requests = sequential(op, (1_310_720_000 / size) as usize, size, from);
            bytes_per_s(&run(&mut Disk::new(&sheet), outstanding, requests))
        };
        let outer = stream(0);
        assert!((outer / sheet.outer_bytes_per_s as f64 - 1.0).abs() < 0.03, "{op:?} x {outstanding}: {outer}");
        let inner = stream((sheet.bytes - 1_310_720_000) >> 20 << 20);
        assert!((inner / sheet.inner_bytes_per_s as f64 - 1.0).abs() < 0.03, "{op:?} x {outstanding}: {inner}");
    }
}

#[test]
fn single_sequential_writes_without_cache_miss_a_turn_each() {
    let sheet = sheet(false);
    let time = mean(&run(&mut Disk::new(&sheet), 1, sequential(Op::Write, 1_000, 65_536, 0))) / 1e6;
    let turn = 60e3 / sheet.rpm;
    assert!((time / turn - 1.0).abs() < 0.15, "{time} ms; a turn is {turn}");
}

#[test]
fn the_write_cache_answers_at_once_until_it_is_full() {
    let sheet = sheet(true);
    let requests = random(Op::Write, 40_000, 4096, sheet.bytes, 9);
    let lived = run(&mut Disk::new(&sheet), 1, requests.clone());
    let early = mean(&lived[..1_000]) / 1e3;
    assert!(early < sheet.request_us + 20.0, "{early} us");
    // Then it is the platter that counts, better sorted than any queue.
    let late = mean(&lived[30_000..]) / 1e6;
    let without = mean(&run(&mut Disk::new(&self::sheet(false)), 1, requests.into_iter().take(2_000))) / 1e6;
    assert!((1.0..without / 1.5).contains(&late), "{late} ms, {without} without");
}

#[test]
fn a_flush_waits_for_what_was_answered() {
    let sheet = sheet(true);
    let mut disk = Disk::new(&sheet);
    let mut requests = random(Op::Write, 100, 4096, sheet.bytes, 9);
    requests.push(Request::new(Op::Flush, 0, 0));
    let lived = run(&mut disk, 1, requests);
    let flush = lived.last().expect("answered");
    assert!(flush.nanos() > 100_000_000, "a hundred seeks, not {} ns", flush.nanos());
    assert!(disk.dirty.is_empty());
    let again = disk.answers.next_at();
    assert_eq!(again, None);
}

#[test]
fn what_is_cached_is_read_from_memory() {
    let sheet = sheet(true);
    let mut disk = Disk::new(&sheet);
    let at = |op| Request::new(op, 300 << 30, 4096);
    let lived = run(&mut disk, 1, [at(Op::Write), at(Op::Read)]);
    assert!(lived[1].nanos() < 100_000, "{:?}", lived[1]);
}

#[test]
fn a_bad_request_is_refused() {
    let mut disk = Disk::new(&sheet(false));
    for (tag, offset, bytes) in [(0, 600 << 40, 512), (1, 1, 512), (2, 0, 100), (3, 0, 0), (4, u64::MAX - 511, 1024)] {
        disk.submit(0, tag, Request::new(Op::Read, offset, bytes));
    }
    let refused = std::iter::from_fn(|| disk.answer()).filter(|it| it.result == Err(Failure::OutOfRange)).count();
    assert_eq!(refused, 5);
}

#[test]
fn the_same_requests_give_the_same_times() {
    let sheet = sheet(true);
    let lived = || run(&mut Disk::new(&sheet), 8, random(Op::Read, 1_000, 8192, sheet.bytes, 1));
    assert_eq!(lived(), lived());
}
