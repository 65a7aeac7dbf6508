//! What a run promises: every request completes and is counted once, the same seed gives the same bytes, and a device that breaks its
//! promises is found out.

use std::ops::ControlFlow;

use lab::engine::virtual_time::{self, Options};
use lab::engine::{Position, Progress, RunError};
use lab::results::{Ended, fio_json};
use lab::workload::from_toml;
use profile::Driver;
use proptest::prelude::*;

use crate::common::{Servers, close, run, try_run, workload};

const WINDOWS_LIKE: Driver = Driver {
    submit_us: 3.1,
    complete_us: 4.2,
    serial_us: 1.7,
    latency_us: 11.3,
    queue_limit: Some(7),
    interrupts: None,
    card_read_us: 0.0,
    raid_us: 0.0,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_completes(
        seed in any::<u64>(),
        read in 0.0..=100.0f64,
        threads in 1u32..20,
        depth in 1u32..40,
        servers in 1usize..40,
        service in 1u64..100_000,
        limit in proptest::option::of(1u32..40),
        rate in proptest::option::of(1000.0..100_000.0f64),
    ) {
        let rate = rate.map(|rate| format!("rate = {{ per_second = {rate} }}\n")).unwrap_or_default();
        let load = format!("read_percent = {read:.3}\nsize = [{{ size = 512, weight = 1 }}, {{ size = 8192, weight = 2 }}]\nthreads = {threads}\ndepth = {depth}\n{rate}");
        let mut workload = workload("bytes = \"8MiB\"", &load);
        workload.seed = seed;
        let driver = Driver { queue_limit: limit, ..WINDOWS_LIKE };
        let results = run(&workload, Servers::new(servers, service, service / 3), driver);
        let phase = &results.phases[0];
        prop_assert_eq!(phase.submitted, phase.completed);
        prop_assert_eq!(phase.submitted, phase.total.all.requests);
        prop_assert_eq!(&results.ended, &Ended::Complete);
        // A request may go beyond the end of the budget, and no more than one for each device does.
        prop_assert!((8 << 20..(8 << 20) + 8192).contains(&phase.total.all.bytes), "{}", phase.total.all.bytes);
        let little = phase.total.all.iops * phase.total.all.latency.mean_ns / 1e9;
        prop_assert!((little - phase.outstanding).abs() < 1e-6 * phase.outstanding, "{} {}", little, phase.outstanding);
        prop_assert_eq!(phase.series.iter().map(|row| row.ops.all.requests).sum::<u64>(), phase.total.all.requests);
    }
}

/// Several phases and loads, and every kind of choice that is made at random.
const MIXED: &str = r#"
name = "mixed"
seed = 42
[[phase]]
name = "fill"
measured = false
stop = { capacities = 1.0 }
[[phase.load]]
read_percent = 0
size = "1MiB"
access = "sequential"
threads = 2
depth = 4
[[phase]]
name = "idle"
stop = { duration = "2s" }
[[phase]]
name = "measure"
ramp = "1s"
stop = { duration = "3.5s" }
[[phase.load]]
name = "hot"
read_percent = 70
trim_percent = 5
size = [{ size = 4096, weight = 3 }, { size = 65536, weight = 1 }]
access = { zipf = 1.1 }
threads = 5
depth = 3
[[phase.load]]
name = "steady"
read_percent = 0
size = 4096
rate = { per_second = 900 }
"#;

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let workload = from_toml(MIXED).expect("a workload");
    let text = |workload: &_| {
        let results = run(workload, Servers::new(6, 70_000, 20_000), WINDOWS_LIKE);
        serde_json::to_string(&fio_json(&results)).expect("JSON") + &serde_json::to_string(&results).expect("JSON")
    };
    let once = text(&workload);
    assert!(once.contains("\"jobname\":\"measure hot\""));
    assert_eq!(once, text(&workload));
    let mut other = workload.clone();
    other.seed = 43;
    assert_ne!(once.replace("\"seed\":42", ""), text(&other).replace("\"seed\":43", ""));
}

#[test]
fn phases_follow_each_other_and_only_what_is_asked_is_counted() {
    let results = run(&from_toml(MIXED).expect("a workload"), Servers::new(6, 70_000, 20_000), WINDOWS_LIKE);
    let [fill, idle, measure] = &results.phases[..] else { panic!("three phases") };
    assert_eq!(fill.total.write.bytes, 1 << 30);
    assert_eq!((idle.submitted, idle.seconds), (0, 2.0));
    assert!((idle.from_seconds - fill.seconds).abs() < 1e-9);
    assert_eq!(measure.seconds, 3.5);
    assert!((measure.from_seconds - (idle.from_seconds + 3.0)).abs() < 1e-9);
    assert_eq!(measure.series.iter().map(|row| row.seconds).collect::<Vec<_>>(), [1.0, 1.0, 1.0, 0.5]);
    assert!(measure.submitted > measure.total.all.requests, "requests of the ramp are not counted");
    let rows: u64 = measure.series.iter().map(|row| row.ops.all.requests).sum();
    let loads: u64 = measure.loads.iter().map(|load| load.ops.all.requests).sum();
    assert_eq!((rows, loads), (measure.total.all.requests, measure.total.all.requests));
    close("steady", measure.loads[1].ops.write.iops, 900.0, 0.05);
    let hot = &measure.loads[0].ops;
    close("reads", hot.read.requests as f64 / hot.all.requests as f64, 0.70, 0.03);
    close("trims", hot.trim.requests as f64 / hot.all.requests as f64, 0.05, 0.15);
}

#[test]
fn a_device_that_loses_a_request_is_found_out() {
    for number in [1, 500, 2048] {
        let mut device = Servers::new(4, 1000, 0);
        device.lose = Some(number);
        let error =
            try_run(&workload("bytes = \"8MiB\"", "read_percent = 50\nsize = 4096\ndepth = 8"), device, WINDOWS_LIKE)
                .expect_err("a request was lost");
        assert!(matches!(error, RunError::Lost { count: 1, .. }), "{error}");
        assert!(error.to_string().contains("were never answered"), "{error}");
    }
}

#[test]
fn a_lost_request_is_found_out_in_a_timed_phase_too() {
    let mut device = Servers::new(4, 1000, 0);
    device.lose = Some(77);
    let error = try_run(
        &workload("duration = \"10ms\"", "read_percent = 50\nsize = 4096\ndepth = 8"),
        device,
        Driver::default(),
    );
    assert!(matches!(error, Err(RunError::Lost { count: 1, .. })), "{error:?}");
}

#[test]
fn a_device_that_answers_twice_is_found_out() {
    let mut device = Servers::new(4, 1000, 0);
    device.repeat = Some(100);
    let error = try_run(&workload("bytes = \"1MiB\"", "read_percent = 50\nsize = 4096"), device, WINDOWS_LIKE);
    assert!(matches!(error, Err(RunError::Unasked { .. })), "{error:?}");
}

#[test]
fn time_that_stands_still_is_found_out() {
    let load = "read_percent = 50\nsize = 4096";
    let error = try_run(&workload("duration = 1", load), Servers::new(1, 0, 0), Driver::default());
    assert!(matches!(error, Err(RunError::TimeStandsStill(_))), "{error:?}");
    // It may stand still while bytes are counted.
    let results = run(&workload("bytes = \"1MiB\"", load), Servers::new(1, 0, 0), Driver::default());
    assert_eq!(results.phases[0].completed, 256);
}

#[test]
fn a_failed_request_ends_the_run_with_what_was_measured() {
    let mut device = Servers::new(1, 100_000, 0);
    device.fail_from = Some(15_000);
    let text = MIXED.replace("capacities = 1.0", "bytes = \"100MiB\"");
    let results = run(&from_toml(&text).expect("a workload"), device, Driver::default());
    let Ended::Failed(reason) = &results.ended else { panic!("{:?}", results.ended) };
    assert!(reason.contains("read-only: its reserve is used up"), "{reason}");
    let last = results.phases.last().expect("phases");
    assert_eq!(last.name, "measure");
    assert!(last.seconds < 3.5 && last.total.all.requests > 0);
    assert_eq!(last.submitted, last.completed);
}

#[test]
fn a_failure_within_the_ramp_ends_the_run_with_nothing_counted() {
    let mut device = Servers::new(1, 100_000, 0);
    device.fail_from = Some(150);
    let text = MIXED.replace("capacities = 1.0", "bytes = \"100MiB\"");
    let results = run(&from_toml(&text).expect("a workload"), device, Driver::default());
    let last = results.phases.last().expect("phases");
    assert!(matches!(results.ended, Ended::Failed(_)), "{:?}", results.ended);
    assert_eq!((last.name.as_str(), last.seconds, last.total.all.requests), ("measure", 0.0, 0));
}

/// Ends a run at its second look.
struct Impatient(u32);

impl Progress for Impatient {
    fn at(&mut self, position: &Position<'_>) -> ControlFlow<()> {
        assert!(position.done >= 0.0 && position.done <= 1.0);
        self.0 += 1;
        if self.0 == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn an_interrupted_run_gives_what_was_measured() {
    let workload = workload("duration = 3600", "read_percent = 50\nsize = 4096\ndepth = 4");
    let mut devices = Servers::new(4, 10_000, 0).boxed();
    let (results, _) =
        virtual_time::run(&workload, &mut devices, &Options::default(), &mut Impatient(0)).expect("results");
    assert_eq!(results.ended, Ended::Interrupted);
    let phase = &results.phases[0];
    assert!(phase.seconds < 1.0 && phase.total.all.requests > 10_000);
    assert_eq!(phase.submitted, phase.completed);
    close("iops", phase.total.all.iops, 400_000.0, 0.01);
}

#[test]
fn threads_are_dealt_out_to_devices() {
    let text = MIXED.replace("threads = 5", "threads = 8");
    let workload = from_toml(&text).expect("a workload");
    let mut devices = Servers::new(1, 50_000, 0).boxed();
    devices.extend(Servers::new(1, 50_000, 0).boxed());
    let (results, now) = virtual_time::run(&workload, &mut devices, &Options::default(), &mut ()).expect("results");
    assert_eq!(results.phases[0].total.write.bytes, 2 << 30);
    for device in &devices {
        assert!(device.report().host_written_bytes >= 1 << 30, "every device is filled");
    }
    close("two servers", results.phases[2].total.all.iops, 40_000.0, 0.01);
    // The devices go on where they are.
    let options = Options { now, ..Options::default() };
    let (again, later) = virtual_time::run(&workload, &mut devices, &options, &mut ()).expect("results");
    assert!(later > now);
    assert!((again.phases[0].from_seconds - now as f64 / 1e9).abs() < 1e-6);
}

/// A device that has done its part waits where it is: the next phase begins when the slower one is done, not at some later moment.
#[test]
fn devices_of_unequal_speed_begin_a_phase_together() {
    let text = MIXED.replace("threads = 5", "threads = 8");
    let workload = from_toml(&text).expect("a workload");
    let run = |fast: u64| {
        let mut devices = Servers::new(1, fast, 0).boxed();
        devices.extend(Servers::new(1, 50_000, 0).boxed());
        virtual_time::run(&workload, &mut devices, &Options::default(), &mut ()).expect("results").0
    };
    let (equal, unequal) = (run(50_000), run(10_000));
    let begin = |results: &lab::results::Results| results.phases[1].from_seconds;
    close("the slower one decides", begin(&unequal), begin(&equal), 0.001);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_runs() {
    let mut workload = from_toml(MIXED).expect("a workload");
    let mut devices = Servers::new(1, 50_000, 0).boxed();
    for _ in 0..2 {
        devices.extend(Servers::new(1, 50_000, 0).boxed());
    }
    let error = virtual_time::run(&workload, &mut devices, &Options::default(), &mut ()).expect_err("three devices");
    assert!(error.to_string().contains("2 threads cannot cover 3 devices"), "{error}");
    workload.phases.remove(0);
    let mut device = Servers::new(1, 50_000, 0);
    device.sector = 65_536;
    let error = try_run(&workload, device, Driver::default()).expect_err("sectors");
    assert!(error.to_string().contains("phase 'measure', load 'hot': requests of 4KiB"), "{error}");
    assert!(matches!(virtual_time::run(&workload, &mut [], &Options::default(), &mut ()), Err(RunError::NoDevice)));
}
