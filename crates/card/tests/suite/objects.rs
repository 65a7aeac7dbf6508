//! A device on objects in virtual time: the store's books, and what collecting by price saves.

use card::{Answer, Nanos, ObjectDevice, ObjectsConfig, ObjectsReport, Op, Policy, Request, Store, VirtualDevice};
use media::object::{Limits, Prices, S3_STANDARD};
use random::SplitMix64;

const SECOND: Nanos = 1_000_000_000;
const DAY: Nanos = 86_400 * SECOND;

fn config(by_price: bool) -> ObjectsConfig {
    ObjectsConfig {
        bytes: 512 << 20,
        spare_percent: 28.0,
        prices: S3_STANDARD,
        by_price,
        limits: Limits { commit_ms: 60_000, ..Limits::default() },
        store: Store { latency: SECOND / 10, bytes_per_s: 80 << 20 },
        policy: Policy::Lifetime,
        grooms_ahead: true,
        seed: 1,
    }
}

/// Makes requests one after another, each at its moment, and gives the answers.
fn drive(device: &mut ObjectDevice, requests: impl Iterator<Item = (Nanos, Request)>, end: Nanos) -> Vec<Answer> {
    let (mut answers, mut tag) = (Vec::new(), 0);
    for (at, request) in requests {
        device.submit(at, tag, request);
        tag += 1;
        answers.extend(std::iter::from_fn(|| device.answer()));
    }
    device.advance(end);
    answers.extend(std::iter::from_fn(|| device.answer()));
    assert_eq!(answers.len(), tag as usize, "each request has one answer");
    assert!(answers.iter().all(|answer| answer.result.is_ok()));
    answers
}

fn write(sector: u64) -> Request {
    Request::new(Op::Write, sector * 4096, 4096)
}

/// Forty days in which 64 MiB of the device are written again and again, 16 KiB each forty seconds.
fn month(prices: Prices, by_price: bool) -> ObjectsReport {
    let mut device = ObjectDevice::new(&ObjectsConfig { prices, ..config(by_price) }).expect("a device");
    let mut random = SplitMix64::new(7);
    let writes = (0..40 * 2160).map(|at| {
        let request = Request::new(Op::Write, random.below(4096) * 16_384, 16_384);
        (at * 40 * SECOND, request)
    });
    drive(&mut device, writes, 40 * DAY);
    device.verify().expect("the books agree");
    device.report().objects.expect("it has a store")
}

#[test]
fn collecting_by_price_costs_less_where_little_of_the_device_is_used() {
    // The erase blocks of so small a device have a MiB, which costs less in a week than the requests that collect it: the rent is that of larger ones.
    let prices = Prices { month: 10.0 * S3_STANDARD.month, ..S3_STANDARD };
    let (price, need) = (month(prices, true), month(prices, false));
    assert_eq!(price, month(prices, true), "the same seed, the same month");
    assert!(need.collected == 0 && price.collected > 100, "{price:?}");
    assert!(price.stored_bytes * 2 < need.stored_bytes, "{} and {}", price.stored_bytes, need.stored_bytes);
    assert!(price.bill.stored < need.bill.stored * 0.7, "{:?} and {:?}", price.bill, need.bill);
    // What is in the store can never be less than what the device holds.
    assert!(price.stored_bytes > price.mapped_bytes && price.mapped_bytes == 64 << 20);
}

#[test]
fn the_bill_is_what_was_asked_for_at_its_prices() {
    let ObjectsReport { bill, puts, anchors, gets, byte_seconds, .. } = month(S3_STANDARD, true);
    let near = |one: f64, two: f64| (one - two).abs() < 1e-9 * one.max(1.0);
    assert!(near(bill.puts, puts as f64 * 0.005 / 1000.0) && near(bill.anchors, anchors as f64 * 0.005 / 1000.0));
    assert!(near(bill.gets, gets as f64 * 0.0004 / 1000.0) && bill.egress == 0.0);
    assert!(near(bill.stored, byte_seconds / 1_073_741_824.0 / (730.0 * 3600.0) * 0.023));
    // At most an anchor a minute, and at least one each hour, since there are writes in every minute.
    assert!((40 * 24..=40 * 24 * 60).contains(&anchors), "{anchors}");
}

#[test]
fn what_the_journal_gave_back_is_read_from_the_store() {
    let limits = Limits { local_bytes: 32 << 20, ..Limits::default() };
    let mut device = ObjectDevice::new(&ObjectsConfig { limits, ..config(true) }).expect("a device");
    drive(&mut device, (0..32_768).map(|sector| (sector * SECOND / 100, write(sector))), 600 * SECOND);
    let before = device.report().objects.expect("it has a store");
    assert!(before.local_bytes < 64 << 20 && before.gets == 0, "{before:?}");
    let read = Request::new(Op::Read, 0, 4096);
    let at = 700 * SECOND;
    let answers = drive(&mut device, std::iter::once((at, read)), at + 10 * SECOND);
    assert!((SECOND / 10..SECOND / 5).contains(&(answers[0].at - at)), "it takes what the store does");
    assert_eq!(device.report().objects.expect("it has a store").gets, 1);
}

#[test]
fn a_device_that_cannot_be_is_refused_by_its_size() {
    for bytes in [0, 1 << 20, 1 << 50] {
        let error = ObjectDevice::new(&ObjectsConfig { bytes, ..config(true) }).err().expect("too small or too large");
        assert!(error.to_string().contains(&bytes.to_string()), "{error}");
    }
    let error =
        ObjectDevice::new(&ObjectsConfig { spare_percent: 0.1, ..config(true) }).err().expect("nothing to spare");
    assert!(error.to_string().contains("0.1 % to spare"), "{error}");
}
