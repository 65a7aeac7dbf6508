//! The engine against theory: servers of fixed service time behind a host of known costs.

use card::Nanos;
use profile::Driver;

use crate::common::{Servers, close, run, workload};

const US: Nanos = 1000;

/// A closed loop of `depth` on `servers`, each `service` long, with `wait` on top: throughput is what the depth or the servers allow.
fn expected(depth: u32, servers: usize, service: Nanos, wait: Nanos) -> f64 {
    let by_depth = f64::from(depth) / (service + wait) as f64;
    let by_servers = servers as f64 / service as f64;
    1e9 * by_depth.min(by_servers)
}

#[test]
fn a_closed_loop_gets_what_depth_or_servers_allow() {
    for (threads, depth) in [(1, 1), (1, 8), (4, 8), (16, 16), (2, 256)] {
        for (servers, wait) in [(1, 0), (4, 100 * US), (16, 0)] {
            let load = format!("read_percent = 50\nsize = 4096\nthreads = {threads}\ndepth = {depth}");
            let results =
                run(&workload("duration = 2", &load), Servers::new(servers, 50 * US, wait), Driver::default());
            let phase = &results.phases[0];
            let all = &phase.total.all;
            let what = format!("{threads} x {depth} on {servers} + {wait}");
            close(&what, all.iops, expected(threads * depth, servers, 50 * US, wait), 0.005);
            // Little's law, with the outstanding requests integrated over time.
            close(&what, phase.outstanding, f64::from(threads * depth), 1e-9);
            close(&what, all.iops * all.latency.mean_ns / 1e9, phase.outstanding, 0.01);
            close(&what, phase.outstanding_at_device, f64::from(threads * depth), 1e-9);
            close(&what, phase.device_latency_ns, all.latency.mean_ns, 0.001);
        }
    }
}

#[test]
fn an_open_loop_waits_as_the_theory_of_queues_says() {
    // M/D/1 at 80 %: the mean wait is rho / (2 (1 - rho)) services, the mean latency three services in all.
    let load = "read_percent = 100\nsize = 4096\nrate = { per_second = 8000 }\ndepth = 4096";
    let results = run(&workload("duration = 100", load), Servers::new(1, 100 * US, 0), Driver::default());
    let phase = &results.phases[0];
    close("rate", phase.total.all.iops, 8000.0, 0.01);
    close("latency", phase.total.all.latency.mean_ns, 300_000.0, 0.03);
    close("Little", phase.outstanding, phase.total.all.iops * phase.total.all.latency.mean_ns / 1e9, 0.001);
    assert_eq!(phase.not_started, 0);
}

#[test]
fn a_fixed_rate_below_the_limit_never_waits() {
    let load = "read_percent = 100\nsize = 4096\nthreads = 4\nrate = { per_second = 9000, arrivals = \"fixed\" }";
    let results = run(&workload("duration = 10", load), Servers::new(1, 100 * US, 0), Driver::default());
    let latency = &results.phases[0].total.all.latency;
    assert_eq!((latency.min_ns, latency.max_ns), (100_000, 100_000));
    close("rate", results.phases[0].total.all.iops, 9000.0, 1e-3);
}

#[test]
fn an_open_loop_that_is_too_fast_says_so_and_counts_from_the_intended_start() {
    let load = "read_percent = 100\nsize = 4096\nrate = { per_second = 20000, arrivals = \"fixed\" }\ndepth = 16";
    let results = run(&workload("duration = 10", load), Servers::new(1, 100 * US, 0), Driver::default());
    let phase = &results.phases[0];
    close("rate", phase.total.all.iops, 10_000.0, 0.001);
    // Half of the arrivals are made, and the last of those is five seconds late.
    close("not started", phase.not_started as f64, 100_000.0, 0.001);
    close("latest", phase.total.all.latency.max_ns as f64, 5e9, 0.001);
}

#[test]
fn the_device_queue_is_limited() {
    let load = "read_percent = 100\nsize = 4096\nthreads = 12\ndepth = 4";
    let driver = Driver { queue_limit: Some(32), ..Driver::default() };
    let results = run(&workload("duration = 2", load), Servers::new(100, 50 * US, 0), driver);
    let phase = &results.phases[0];
    close("iops", phase.total.all.iops, 32.0 / 50e-6, 0.001);
    close("at the device", phase.outstanding_at_device, 32.0, 1e-9);
    close("outstanding", phase.outstanding, 48.0, 1e-9);
    close("latency", phase.total.all.latency.mean_ns, 48.0 / 32.0 * 50_000.0, 0.001);
    close("device latency", phase.device_latency_ns, 50_000.0, 1e-9);
}

#[test]
fn drivers_are_told_apart_by_their_costs() {
    let fast = || Servers::new(1000, 10 * US, 0);
    let phase = |threads: u32, driver: Driver| {
        let load = format!("read_percent = 100\nsize = 4096\nthreads = {threads}\ndepth = 32");
        run(&workload("duration = 1", &load), fast(), driver).phases.remove(0)
    };
    // A thread's processor: 2 + 3 µs a request, whatever the depth.
    let cpu = Driver { submit_us: 2.0, complete_us: 3.0, ..Driver::default() };
    close("one thread", phase(1, cpu).total.all.iops, 200_000.0, 0.001);
    close("four threads", phase(4, cpu).total.all.iops, 800_000.0, 0.001);
    // A lock: 4 µs a request, however many threads there are.
    let lock = Driver { serial_us: 4.0, ..Driver::default() };
    close("lock", phase(4, lock).total.all.iops, 250_000.0, 0.001);
    // A latency: any number wait at the same time.
    let wait = Driver { latency_us: 90.0, ..Driver::default() };
    close("latency", phase(4, wait).total.all.iops, 128.0 / 100e-6, 0.001);
    // One request at a time sees every cost once.
    let all = Driver {
        submit_us: 2.0,
        complete_us: 3.0,
        serial_us: 4.0,
        latency_us: 90.0,
        queue_limit: None,
        interrupts: None,
        card_read_us: 0.0,
        raid_us: 0.0,
    };
    let load = "read_percent = 100\nsize = 4096";
    let results = run(&workload("duration = 1", load), fast(), all);
    let latency = &results.phases[0].total.all.latency;
    close("all costs", latency.mean_ns, 109_000.0, 0.01);
    // No host is even: three quarters of the latency are the least, the rest is chance.
    assert!((86_500..87_000).contains(&latency.min_ns) && latency.stddev_ns > 15_000.0, "{latency:?}");
}
