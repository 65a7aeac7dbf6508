//! Every sheet can be built, and what does not fit is refused with a reason.

use super::*;
use crate::testing::{mean, random, run, sequential};
use crate::{Op, Request};

fn scaled() -> Options {
    Options { scale: 256, ..Options::default() }
}

fn sheet(name: &str) -> Profile {
    profile::find(name).expect("a sheet")
}

#[test]
fn every_sheet_can_be_built_and_answers() {
    for profile in profile::all().expect("every sheet parses") {
        let mut built = build(&profile, &scaled()).unwrap_or_else(|error| panic!("{}: {error}", profile.name));
        assert_eq!(built.devices.len(), 1, "{}", profile.name);
        let device = &mut *built.devices[0];
        let span = device.bytes().min(1 << 28);
        let mut requests = random(Op::Write, 500, 8192, span, 1);
        requests.extend(random(Op::Read, 500, 8192, span, 2));
        requests.push(Request::new(Op::Flush, 0, 0));
        let lived = run(device, 8, requests);
        assert_eq!(lived.len(), 1_001, "{}", profile.name);
    }
}

#[test]
fn a_card_gives_its_modules_and_arrays_of_them() {
    let duo = sheet("iodrive-duo-640-mlc");
    let with = |arrangement| build(&duo, &Options { arrangement, ..scaled() }).expect("built");
    assert_eq!(with(Arrangement::BothModules).devices.len(), 2);
    let (one, striped, mirrored) = (with(Arrangement::Single), with(Arrangement::Raid0), with(Arrangement::Raid1));
    let bytes = one.devices[0].bytes();
    assert_eq!(striped.devices[0].bytes(), bytes / 65_536 * 65_536 * 2);
    assert_eq!(mirrored.devices[0].bytes(), bytes / 4096 * 4096);
    let eight = "raid0-8".parse().expect("eight modules");
    assert_eq!(with(eight).devices[0].bytes(), bytes / 65_536 * 65_536 * 8);
    for text in ["raid0-1", "raid0-9", "raid0-", "raid5"] {
        assert!(text.parse::<Arrangement>().is_err(), "{text}");
    }
}

#[test]
fn an_array_of_the_system_takes_what_its_driver_says() {
    let read_ns = |arrangement, raid_us| {
        let driver = Driver { raid_us, ..Driver::default() };
        let options = Options { arrangement, driver, ..scaled() };
        let mut built = build(&sheet("iodrive-320-mlc"), &options).expect("built");
        // Of what was never written: nothing varies.
        mean(&run(&mut *built.devices[0], 1, random(Op::Read, 100, 4096, 1 << 28, 1)))
    };
    for (arrangement, more_ns) in [
        (Arrangement::Single, 0.0),
        (Arrangement::Raid0, 27e3),
        (Arrangement::Raid0Of(3), 27e3),
        (Arrangement::Raid1, 27e3),
    ] {
        assert_eq!(read_ns(arrangement, 27.0) - read_ns(arrangement, 0.0), more_ns, "{arrangement:?}");
    }
}

#[test]
fn the_drivers_thread_for_a_card_does_one_read_after_the_other() {
    const OUTSTANDING: usize = 32;
    let each_ns = |card_read_us| {
        let driver = Driver { card_read_us, ..Driver::default() };
        let mut built = build(&sheet("iodrive-320-mlc"), &Options { driver, ..scaled() }).expect("built");
        let device = &mut *built.devices[0];
        run(device, 1, sequential(Op::Write, 2048, 1 << 16, 0));
        mean(&run(device, OUTSTANDING, random(Op::Read, 4000, 4096, 1 << 26, 1))) / OUTSTANDING as f64
    };
    let more_ns = each_ns(200.0) - each_ns(100.0);
    assert!((more_ns / 100e3 - 1.0).abs() < 0.02, "{more_ns}");
}

#[test]
fn a_scaled_device_says_by_how_much() {
    let duo = sheet("iodrive-duo-640-mlc");
    let built = build(&duo, &scaled()).expect("built");
    let scaling = built.scaling.expect("scaled");
    let full = built.devices[0].bytes() as f64 * scaling.by;
    assert!((full / 320e9 - 1.0).abs() < 0.01, "{full}");
    assert_eq!(build(&sheet("wd-re3"), &scaled()).expect("built").scaling, None);
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let error = |name: &str, options: Options| match build(&sheet(name), &options) {
        Ok(_) => panic!("{name} was built"),
        Err(error) => error.to_string(),
    };
    let format = Options { format: Format::ImprovedWrite, ..scaled() };
    assert!(error("wd-re3", format).contains("has no low-level format"));
    assert!(
        error("sata-ssd-64", Options { format: Format::Percent(80.0), ..scaled() }).contains("has no low-level format")
    );
    let both = Options { arrangement: Arrangement::BothModules, ..scaled() };
    assert!(error("wd-re3", both).contains("cannot be arranged"));
    let high = Options { format: Format::HighPerformance, ..scaled() };
    assert!(error("iodrive2-1200-mlc", high).contains("has no format 'high-performance'"));
    let huge = Options { format: Format::Percent(400.0), ..scaled() };
    assert!(error("iodrive-320-mlc", huge).contains("room for"));
}

#[test]
fn a_scale_is_honoured_or_refused() {
    for name in ["iodrive-320-mlc", "intel-x25m-160", "sata-ssd-raid5", "wd-re3"] {
        let by = |scale| build(&sheet(name), &Options { scale, ..Options::default() }).expect("built").scaling;
        assert_eq!(check_scale(&sheet(name), 64), Ok(()), "{name}");
        let Some(largest) = by(u32::MAX).map(|scaling| scaling.by) else { continue };
        let exact = largest as u32;
        if exact > 64 {
            assert_eq!(check_scale(&sheet(name), exact), Ok(()), "{name}");
        }
        let words = check_scale(&sheet(name), exact.max(64) + 2).expect_err("too small").to_string();
        assert!(words.contains("at most"), "{words}");
    }
}
