//! Traces played by the engine: at their times, scaled, and as fast as a depth allows.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use card::Nanos;
use lab::results::{Ended, Results};
use profile::Driver;
use tempfile::NamedTempFile;

use crate::common::{Servers, close, run, try_run, workload};

const US: Nanos = 1000;

/// A trace in fio's format: times in µs, what is done, offset and length.
fn trace(lines: impl IntoIterator<Item = (u64, &'static str, u64, u64)>) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    writeln!(file, "fio version 3 iolog\n0 /d add\n0 /d open").expect("written");
    for (time, action, offset, bytes) in lines {
        writeln!(file, "{time} /d {action} {offset} {bytes}").expect("written");
    }
    file.flush().expect("written");
    file
}

fn play(file: &NamedTempFile, stop: &str, options: &str, device: Servers) -> Results {
    let load = format!("trace = {{ file = {:?}{options} }}", file.path());
    run(&workload(stop, &load), device, Driver::default())
}

#[test]
fn latency_at_recorded_times_counts_from_the_time_at_which_a_request_was_due() {
    let file = trace([
        (5_000, "read", 0, 4096),
        (5_010, "read", 4096, 4096),
        (5_020, "sync", 0, 0),
        (1_005_000, "write", 1 << 40, 512),
    ]);
    // One server, 100 µs each: the second waits for the first, the flush for both.
    let results = play(&file, "", "", Servers::new(1, 100 * US, 0));
    let phase = &results.phases[0];
    assert_eq!((phase.submitted, phase.completed, phase.not_started), (4, 4, 0));
    assert_eq!((phase.total.read.requests, phase.total.write.requests), (2, 1), "a flush is neither");
    close("reads", phase.total.read.latency.mean_ns, (100.0 + 190.0) / 2.0 * 1000.0, 0.002);
    close("write", phase.total.write.latency.mean_ns, 100_000.0, 0.002);
    close("duration", phase.seconds, 1.0001, 1e-6);
    assert_eq!(results.ended, Ended::Complete);
    let twice = play(&file, "", ", pace = \"scaled:2\"", Servers::new(1, 100 * US, 0));
    close("half the time", twice.phases[0].seconds, 0.5001, 1e-6);
    close("ten became five", twice.phases[0].total.read.latency.max_ns as f64, 195_000.0, 0.002);
}

#[test]
fn at_a_depth_it_goes_as_fast_as_the_device() {
    let file = trace((0..10_000).map(|at| (at * 1_000_000, "read", at * 4096, 4096)));
    for depth in [1, 8] {
        let load = format!("depth = {depth}\ntrace = {{ file = {:?}, pace = \"depth\" }}", file.path());
        let results = run(&workload("", &load), Servers::new(4, 50 * US, 0), Driver::default());
        let phase = &results.phases[0];
        assert_eq!(phase.completed, 10_000);
        close("rate", phase.total.all.iops, f64::from(depth.min(4)) * 20_000.0, 0.001);
        close("outstanding", phase.outstanding, f64::from(depth), 0.001);
    }
}

#[test]
fn a_phase_that_ends_before_its_trace_says_what_was_due() {
    // Twice as fast as the device can.
    let file = trace((0..40_000).map(|at| (at * 50, "write", at * 4096, 4096)));
    let load = format!("depth = 16\ntrace = {{ file = {:?} }}", file.path());
    let results = run(&workload("duration = 1", &load), Servers::new(1, 100 * US, 0), Driver::default());
    let phase = &results.phases[0];
    close("rate", phase.total.all.iops, 10_000.0, 0.01);
    close("not started", phase.not_started as f64, 10_000.0, 0.01);
    let results = play(&file, "bytes = 409600", "", Servers::new(1, 100 * US, 0));
    assert_eq!(results.phases[0].completed, 100);
}

#[test]
fn places_are_on_the_device_and_on_its_sectors() {
    // `Servers` asserts both of every request.
    let file =
        trace((0..5_000).map(|at| (at, ["read", "write", "trim"][at as usize % 3], at * 987_654_321, 512 + at * 100)));
    for map in ["wrap", "scale"] {
        let mut device = Servers::new(1, US, 0);
        device.sector = 4096;
        let phase = &play(&file, "", &format!(", map = \"{map}\""), device).phases[0];
        assert!(phase.completed >= 3_333, "{map}: {}", phase.completed);
    }
    let file = trace((0..5_000).map(|at| (at, ["read", "trim"][at as usize % 2], (at / 2 % 100) << 30, 4096)));
    assert_eq!(play(&file, "", ", map = \"compact\"", Servers::new(1, US, 0)).phases[0].completed, 5_000);
}

#[test]
fn what_cannot_be_played_is_said_before_anything_runs() {
    let fails = |file: &NamedTempFile, options: &str| {
        let load = format!("trace = {{ file = {:?}{options} }}", file.path());
        try_run(&workload("", &load), Servers::new(1, US, 0), Driver::default()).expect_err("it cannot").to_string()
    };
    let file = trace([(0, "read", 0, 4096), (1, "scribble", 0, 4096)]);
    let message = fails(&file, "");
    assert!(
        message.contains("phase 'measure', load 1: ") && message.contains("line 5: the action is 'scribble'"),
        "{message}"
    );
    let file = trace((0..40_000).map(|at| (at, "read", at << 16, 4096)));
    let message = fails(&file, ", map = \"compact\"");
    assert!(message.contains("it touches 2.62 GB") && message.contains("wrap or scale"), "{message}");
    let message = fails(&file, ", volume = \"7\"");
    assert!(message.contains("no request of volume 7"), "{message}");
    assert!(fails(&trace([]), "").contains("no request in it"));
    let mut missing = workload("", "trace = { file = \"/nonexistent/t.csv\" }");
    missing.phases[0].name = "p".into();
    let message = try_run(&missing, Servers::new(1, US, 0), Driver::default()).expect_err("no file").to_string();
    assert!(message.contains("phase 'p', load 1: /nonexistent/t.csv: No such file"), "{message}");
}

#[test]
fn a_jump_in_time_ends_the_run_and_keeps_what_was_measured() {
    let file = trace([(0, "read", 0, 4096), (100_000_000_000_000, "read", 0, 4096)]);
    let results = play(&file, "", "", Servers::new(1, US, 0));
    match &results.ended {
        Ended::Failed(reason) => assert!(reason.contains("1157 days after the first; expected 400"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(results.phases[0].completed, 1);
    assert_eq!(play(&file, "", ", pace = \"depth\"", Servers::new(1, US, 0)).phases[0].completed, 2);
}

/// Two devices share a trace as stripes of 64 KiB: each request is made once, where it belongs, and the depth is shared too.
#[test]
fn several_devices_share_a_trace() {
    let mut lines: Vec<(u64, &str, u64, u64)> =
        (0..4_000u64).map(|at| (at, "read", at * 12_345 % 64 * (1 << 16) + at % 8 * 4096, 4096)).collect();
    lines.push((4_000, "sync", 0, 0));
    let file = trace(lines.clone());
    let load = format!("depth = 8\ntrace = {{ file = {:?}, pace = \"depth\" }}", file.path());
    let logs = [0, 1].map(|_| Rc::new(RefCell::new(Vec::new())));
    let mut devices: Vec<Box<dyn card::VirtualDevice>> = logs
        .iter()
        .map(|log| {
            let mut device = Servers::new(64, 50 * US, 0);
            device.shared_log = Some(log.clone());
            Box::new(device) as Box<_>
        })
        .collect();
    let options = lab::engine::virtual_time::Options::default();
    let (results, _) =
        lab::engine::virtual_time::run(&workload("", &load), &mut devices, &options, &mut ()).expect("run");
    let phase = &results.phases[0];
    assert_eq!(phase.total.read.requests, 4_000);
    close("outstanding", phase.outstanding, 8.0, 0.05);
    for (device, log) in (0u64..).zip(&logs) {
        let own = lines.iter().filter(|(_, action, offset, _)| *action == "read" && (offset >> 16) % 2 == device);
        let mut expected: Vec<u64> = own.map(|(.., offset, _)| (offset >> 17 << 16) + offset % (1 << 16)).collect();
        let log = log.borrow();
        let mut made: Vec<u64> =
            log.iter().filter(|request| request.op == card::Op::Read).map(|request| request.offset).collect();
        expected.sort_unstable();
        made.sort_unstable();
        assert_eq!(made, expected, "device {device}");
        assert_eq!(log.len(), made.len() + 1, "a flush goes to each");
    }
}
