//! A cache in front of a disk: what hits, what is dropped, what is held and when it goes behind.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use card::{Answer, Nanos, Op, Options, Report, Request, VirtualDevice, build};

const MIB: u64 = 1 << 20;

/// A disk, which answers writes when they are on its platter, behind a cache of so many bytes.
fn cached(mode: Mode, bytes: u64, seed: u64) -> Box<dyn VirtualDevice> {
    let disk = profile::find("wd-re3").expect("a sheet");
    let plan = CachePlan { profile: "sata-ssd-64".into(), bytes: Some(bytes), mode };
    let options = Options { seed, write_cache: Some(false), ..Options::default() };
    let mut built = build(&disk, &options).expect("built");
    let flash = plan.put_before(&mut built, &disk, &options, &|sector| sector <= 4096).expect("put before");
    assert!(flash.room_bytes >= bytes, "{}", flash.room_bytes);
    built.devices.remove(0)
}

fn request(op: Op, sector: u64, sectors: u32) -> Request {
    Request::new(op, sector * 4096, sectors * 4096)
}

/// Asks one thing after another, from the moment `now` on; how long each took, and when the last was answered.
fn one_by_one(
    device: &mut dyn VirtualDevice,
    now: &mut Nanos,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Nanos> {
    let mut took = Vec::new();
    for request in requests {
        let began = *now;
        device.submit(began, 7, request);
        let answer = loop {
            if let Some(answer) = device.answer() {
                break answer;
            }
            *now = device.advance_to_answer(Nanos::MAX);
        };
        assert_eq!((answer.tag, answer.result), (7, Ok(())), "{request:?}");
        took.push(answer.at - began);
    }
    took
}

/// Sectors all over the first 64 GiB, each another one.
fn scattered(count: u64) -> impl Iterator<Item = u64> + Clone {
    (0..count).map(|at| at * 7_919 % 2_048 * 8_192)
}

fn cache_of(device: &dyn VirtualDevice) -> card::CacheReport {
    device.report().cache.expect("a cache")
}

#[test]
fn a_read_hits_after_it_missed_and_is_much_faster() {
    let (mut device, mut now) = (cached(Mode::Through, 512 * MIB, 1), 0);
    let reads = || scattered(500).map(|sector| request(Op::Read, sector, 2));
    let cold = one_by_one(&mut *device, &mut now, reads());
    let first = cache_of(&*device);
    assert_eq!((first.hit_bytes, first.missed_bytes), (0, 500 * 8192));
    let warm = one_by_one(&mut *device, &mut now, reads());
    let second = cache_of(&*device);
    assert_eq!((second.hit_bytes, second.missed_bytes, second.filled_bytes), (500 * 8192, 500 * 8192, 500 * 8192));
    // Each copy was written to the flash once, and nothing else was but the volume's header.
    assert_eq!((second.module.host_written_bytes, second.module.host_read_bytes), (500 * 8192 + 4096, 500 * 8192));
    let mean = |took: &[Nanos]| took.iter().sum::<u64>() / took.len() as u64;
    assert!(mean(&cold) > 20 * mean(&warm), "{} {}", mean(&cold), mean(&warm));
}

#[test]
fn a_copy_is_written_outside_the_request() {
    let (mut device, mut now) = (cached(Mode::Through, 512 * MIB, 1), 0);
    let disk = profile::find("wd-re3").expect("a sheet");
    let mut bare = build(&disk, &Options::default()).expect("built").devices.remove(0);
    let begun = one_by_one(&mut *device, &mut now, [request(Op::Read, 0, 1)])[0];
    let mut alone = 0;
    let bare = one_by_one(&mut *bare, &mut alone, [request(Op::Read, 0, 1)])[0];
    // Opening takes a moment; a program of flash would take longer.
    assert!(begun < bare + 2_000_000, "{begun} {bare}");
}

#[test]
fn each_mode_does_with_a_write_what_it_says() {
    for (mode, hits) in [(Mode::Around, 0), (Mode::Through, 4096), (Mode::Back, 4096)] {
        let (mut device, mut now) = (cached(mode, 512 * MIB, 1), 0);
        one_by_one(&mut *device, &mut now, [request(Op::Read, 5, 1)]);
        let took = one_by_one(&mut *device, &mut now, [request(Op::Write, 5, 1)])[0];
        let dirty = cache_of(&*device).dirty_bytes;
        assert_eq!(dirty, if mode == Mode::Back { 4096 } else { 0 }, "{mode:?}");
        assert!((took < 1_000_000) == (mode == Mode::Back), "{mode:?}: {took}");
        device.advance(now + 20_000_000_000);
        now += 20_000_000_000;
        one_by_one(&mut *device, &mut now, [request(Op::Read, 5, 1)]);
        let cache = cache_of(&*device);
        assert_eq!((cache.hit_bytes, cache.dirty_bytes), (hits, 0), "{mode:?}");
        assert_eq!(cache.written_back_bytes, if mode == Mode::Back { 4096 } else { 0 }, "{mode:?}");
    }
}

#[test]
fn what_is_dirty_is_bounded_and_goes_behind() {
    let (mut device, mut now) = (cached(Mode::Back, 512 * MIB, 1), 0);
    let writes = (0..800u64).map(|at| request(Op::Write, at * 7_919 % 800 * 128, 64));
    let took = one_by_one(&mut *device, &mut now, writes);
    let cache = cache_of(&*device);
    assert!(
        cache.dirty_limit_bytes <= cache.room_bytes / 5 && cache.dirty_peak_bytes <= cache.dirty_limit_bytes,
        "{cache:?}"
    );
    assert!(cache.dirty_peak_bytes > cache.dirty_limit_bytes / 4, "{cache:?}");
    // Twice the bound was written: later writes wait for the disk, the first ones do not.
    let mean = |took: &[Nanos]| took.iter().sum::<u64>() / took.len() as u64;
    assert!(mean(&took[700..]) > 2 * mean(&took[..200]), "{} {}", mean(&took[700..]), mean(&took[..200]));
    device.advance(now + 60_000_000_000);
    let cache = cache_of(&*device);
    assert_eq!((cache.dirty_bytes, cache.written_back_bytes), (0, 800 * 64 * 4096));
}

/// A device that keeps what it was asked.
struct Logged {
    inner: Box<dyn VirtualDevice>,
    log: Rc<RefCell<Vec<Request>>>,
}

impl VirtualDevice for Logged {
    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        self.log.borrow_mut().push(request);
        self.inner.submit(now, tag, request);
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.inner.next_event()
    }

    fn advance(&mut self, now: Nanos) {
        self.inner.advance(now);
    }

    fn answer(&mut self) -> Option<Answer> {
        self.inner.answer()
    }

    fn report(&self) -> Report {
        self.inner.report()
    }
}

#[test]
fn what_was_written_first_goes_behind_first() {
    let disk = profile::find("wd-re3").expect("a sheet");
    let plan = CachePlan { profile: "sata-ssd-64".into(), bytes: Some(512 * MIB), mode: Mode::Back };
    let mut built = build(&disk, &Options::default()).expect("built");
    let log = Rc::new(RefCell::new(Vec::new()));
    let inner = built.devices.remove(0);
    built.devices.push(Box::new(Logged { inner, log: Rc::clone(&log) }));
    plan.put_before(&mut built, &disk, &Options::default(), &|_| true).expect("put before");
    let (device, mut now) = (&mut *built.devices[0], 0);
    let sectors: Vec<u64> = scattered(300).collect();
    one_by_one(device, &mut now, sectors.iter().map(|sector| request(Op::Write, *sector, 1)));
    assert!(log.borrow().iter().all(|request| request.op != Op::Write), "nothing goes behind at once");
    device.advance(30_000_000_000);
    let behind: Vec<u64> =
        log.borrow().iter().filter(|request| request.op == Op::Write).map(|request| request.offset / 4096).collect();
    // A round takes 128 runs of sectors and writes them in the order of their places; rounds follow the order of the writes.
    let sorted = |sectors: &[u64]| {
        let mut sectors = sectors.to_vec();
        sectors.sort_unstable();
        sectors
    };
    assert_eq!((behind.len(), sorted(&behind[..128])), (300, sorted(&sectors[..128])));
    assert_eq!(sorted(&behind[128..256]), sorted(&sectors[128..256]));
}

#[test]
fn nothing_is_dirty_for_long_in_quiet_times() {
    let (mut device, mut now) = (cached(Mode::Back, 512 * MIB, 1), 0);
    one_by_one(&mut *device, &mut now, scattered(50).map(|sector| request(Op::Write, sector, 1)));
    assert_eq!(cache_of(&*device).dirty_bytes, 50 * 4096);
    device.advance(4_900_000_000);
    assert_eq!(cache_of(&*device).dirty_bytes, 50 * 4096, "not before some seconds have passed");
    device.advance(8_000_000_000);
    assert_eq!(cache_of(&*device).dirty_bytes, 0);
    assert_eq!(device.next_event(), None, "nothing goes on for ever");
}

#[test]
fn a_small_cache_evicts_and_hits_what_is_read_often() {
    let (mut device, mut now) = (cached(Mode::Through, 256 * MIB, 1), 0);
    let often = |at: u64| request(Op::Read, at * 9_973 % 8_192, 16);
    let seldom = |at: u64| request(Op::Read, 1_000_000 + at * 16, 16);
    one_by_one(&mut *device, &mut now, (0..16_000).flat_map(|at| [often(at % 512), seldom(at)]));
    let before = cache_of(&*device);
    assert!(before.filled_bytes > 2 * before.room_bytes, "{before:?}");
    one_by_one(&mut *device, &mut now, (0..512).map(often));
    let after = cache_of(&*device);
    assert_eq!(after.hit_bytes - before.hit_bytes, 512 * 16 * 4096, "what is read often stays");
    let flash = &after.module;
    let written = flash.host_written_bytes + flash.groomed_bytes + flash.padding_bytes + flash.metadata_bytes;
    assert!(written < flash.host_written_bytes * 3 / 2, "{flash:?}");
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let lived = |seed| -> (Vec<Nanos>, Report) {
        let (mut device, mut now) = (cached(Mode::Back, 256 * MIB, seed), 0);
        let mixed = (0..4_000u64).map(|at| match at % 3 {
            0 => request(Op::Write, at * 7_919 % 50_000, 4),
            _ => request(Op::Read, at * 104_729 % 50_000, 8),
        });
        let took = one_by_one(&mut *device, &mut now, mixed);
        (took, device.report())
    };
    let (one, other) = (lived(1), lived(1));
    assert!(one == other, "not the same");
    assert!(one.0 != lived(2).0, "the seed has no part in it");
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let sheet = |name: &str| profile::find(name).expect("a sheet");
    let words = |cache: &str, bytes: Option<u64>, device: &str| {
        let (plan, device) = (CachePlan { profile: cache.into(), bytes, mode: Mode::Back }, sheet(device));
        let mut built = build(&device, &Options { scale: 64, ..Options::default() }).expect("built");
        plan.put_before(&mut built, &device, &Options::default(), &|_| true).expect_err("refused").to_string()
    };
    assert!(words("iodrive-320-mlc", None, "iodrive2-1200-mlc").contains("is a flash card"));
    assert!(words("iodrive-320-mlc", None, "sata-ssd-raid5").contains("in front of a disk"));
    assert!(words("wd-re3", None, "hitachi-15k600").contains("cannot be a cache"));
    assert!(words("ocz-zdrive-r4", None, "wd-re3").contains("several flash controllers"));
    assert!(words("nothing", None, "wd-re3").contains("nothing"));
    for bytes in [1 << 20, 1 << 45] {
        assert!(words("iodrive-320-mlc", Some(bytes), "wd-re3").contains("one can be made of"));
    }
    let text = "profile = \"a\"\nmode = \"write-on\"\n";
    assert!(
        toml::from_str::<CachePlan>(text).expect_err("no mode").to_string().contains("write-around, write-through")
    );
}
