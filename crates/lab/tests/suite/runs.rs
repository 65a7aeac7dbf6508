//! Runs: what is killed goes on to the same results, wherever it was killed.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use lab::cached::{CachePlan, Mode};
use lab::protocol::from_toml;
use lab::run::{Ended, Options, Run, Session, Status, Watch, compare, compare_text, report_text};
use lab::stats::Pool;

const PROTOCOL: &str = r#"
name = "small"
title = "Small"
description = "Two tests with rounds"
follows = "Nobody"
devices = ["iodrive-320-mlc"]
[[test]]
name = "writes"
title = "Writes"
workload = "random-write-4k"
[[test.stage]]
name = "precondition"
role = "precondition"
duration = "30ms"
intervals = 30
[[test.stage]]
name = "loop"
role = "measure"
duration = "10ms"
intervals = 4
vary = { read_percent = [50, 0], size = ["8KiB", "4KiB"] }
steady = [{ metric = "iops", size = "4KiB", read_percent = 0 }]
[[test]]
name = "mix"
title = "Mix"
workload = "storagereview-file-server"
[[test.stage]]
name = "measure"
role = "measure"
pause = "1ms"
duration = "10ms"
ramp = "2ms"
vary = { depth = [1, 4] }
"#;

struct Nobody;

impl Watch for Nobody {
    fn at(&self, _: &Status) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn options() -> Options {
    Options {
        target: "virtual".into(),
        devices: vec!["iodrive-320-mlc".into()],
        quick: false,
        formats: None,
        arrays: None,
        drivers: None,
        groomer: None,
        tests: Vec::new(),
        repeat: 1,
        seed: 1,
        scale: Some(64),
        trace: None,
        cache: None,
        size: None,
        engine: None,
        buffered: false,
    }
}

fn begin(path: &Path, options: Options) -> Session {
    let protocol = from_toml("small.toml", PROTOCOL).expect("sound");
    Session::begin(path, protocol, PROTOCOL, options, vec!["vsl".into()], 2).expect("begun")
}

/// A run as it stands, without what depends on the day and on how often it was begun.
fn results(path: &Path) -> String {
    let run = Run::open(path).expect("a run");
    assert!(run.finished);
    let mut text = String::new();
    for mut part in run.parts {
        assert!(part.complete, "{}", part.plan.part);
        part.wall_seconds = None;
        part.begin.iter_mut().for_each(|begin| begin.attempt = 0);
        part.steps.iter_mut().for_each(|step| step.attempt = 0);
        part.verdicts.iter_mut().for_each(|verdict| verdict.attempt = 0);
        text.push_str(&format!("{part:?}\n"));
    }
    text
}

#[test]
fn a_run_killed_at_any_line_comes_to_the_same_results() {
    let directory = tempfile::tempdir().expect("a directory");
    let whole = directory.path().join("whole");
    assert_eq!(begin(&whole, options()).conduct(&Nobody).expect("run"), Ended::Complete);
    let expected = results(&whole);
    assert!(expected.contains("loop/round-5/r0-4KiB"), "rounds of a window");
    let journal = std::fs::read(whole.join("journal.jsonl")).expect("a journal");
    let lines: Vec<usize> = (0..journal.len()).filter(|at| journal[*at] == b'\n').map(|at| at + 1).collect();
    assert!(lines.len() > 20);
    // Before the first line, after every line, and in the middle of some.
    let middle = lines.windows(2).step_by(5).map(|pair| (pair[0] + pair[1]) / 2);
    for end in [0].into_iter().chain(lines.iter().copied()).chain(middle) {
        let killed = directory.path().join(format!("killed-at-{end}"));
        std::fs::create_dir(&killed).expect("a directory");
        for name in ["run.toml", "protocol.toml"] {
            std::fs::copy(whole.join(name), killed.join(name)).expect("copied");
        }
        std::fs::write(killed.join("journal.jsonl"), &journal[..end]).expect("written");
        let ended = Session::resume(&killed, 2).expect("resumed").conduct(&Nobody).expect("run");
        assert_eq!(ended, Ended::Complete);
        assert_eq!(results(&killed), expected, "killed at byte {end}");
        std::fs::remove_dir_all(&killed).expect("removed");
    }
}

/// Ends the run after so many looks.
struct Impatient(AtomicU32);

impl Watch for Impatient {
    fn at(&self, status: &Status) -> ControlFlow<()> {
        assert!((0.0..=1.0).contains(&status.done) && status.parts_done <= status.parts);
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn an_interrupted_run_is_shown_as_such_and_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    let long = PROTOCOL.replace("duration = \"30ms\"", "duration = \"3s\"");
    let protocol = from_toml("small.toml", &long).expect("sound");
    let session = Session::begin(&path, protocol, &long, options(), Vec::new(), 1).expect("begun");
    assert_eq!(session.conduct(&Impatient(AtomicU32::new(0))).expect("run"), Ended::Interrupted);
    let run = Run::open(&path).expect("a run");
    assert!(!run.finished && report_text(&run).contains("the run is not finished"));
    // Nobody may begin another run in its place, and two may not go on with it at once.
    let again = from_toml("small.toml", &long).expect("sound");
    let refused = Session::begin(&path, again, &long, options(), Vec::new(), 1).err().expect("refused").to_string();
    assert!(refused.contains("is there already"), "{refused}");
    let first = Session::resume(&path, 1).expect("resumed");
    let refused = Session::resume(&path, 1).err().expect("refused").to_string();
    assert!(refused.contains("another process is running or resuming this run"), "{refused}");
    drop(first);
}

#[test]
fn a_journal_of_another_plan_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    assert_eq!(begin(&path, options()).conduct(&Nobody).expect("run"), Ended::Complete);
    let text = std::fs::read_to_string(path.join("protocol.toml")).expect("read");
    std::fs::write(path.join("protocol.toml"), text.replace("depth = [1, 4]", "depth = [1]")).expect("written");
    let refused = Session::resume(&path, 1).expect("resumed").conduct(&Nobody).expect_err("refused").to_string();
    assert!(refused.contains("journal.jsonl:1: expected the plan"), "{refused}");
}

#[test]
fn histograms_over_time_add_up_to_those_of_the_step() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    begin(&path, options()).conduct(&Nobody).expect("run");
    let run = Run::open(&path).expect("a run");
    let mut sizes = 0;
    for step in run.parts.iter().flat_map(|part| &part.steps) {
        let total = step.pool(None).expect("sound");
        let series = Pool::of(step.series.iter().flat_map(|interval| &interval.cells)).expect("sound");
        assert_eq!((series.bins(), series.bytes()), (total.bins(), total.bytes()), "{}", step.step);
        assert_eq!(total.requests(), step.total.all.requests);
        assert_eq!(total.latency().percentiles, step.total.all.latency.percentiles);
        assert!((step.series.iter().map(|it| it.seconds).sum::<f64>() - step.seconds).abs() < 1e-6);
        sizes = sizes.max(step.cells.len());
    }
    assert!(sizes > 10, "reads and writes of eight sizes: {sizes}");
}

#[test]
fn repeats_tell_noise_from_difference() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |name: &str, change: fn(&mut Options)| {
        let path = directory.path().join(name);
        let mut options = Options { tests: vec!["mix".into()], repeat: 4, ..options() };
        change(&mut options);
        begin(&path, options).conduct(&Nobody).expect("run");
        Run::open(&path).expect("a run")
    };
    let one = run("one", |_| {});
    let other = run("other", |options| options.seed = 100);
    let slower = run("slower", |options| options.devices = vec!["wd-re3".into()]);
    let rows = compare(&[one, other, slower]);
    let text = compare_text(&["one".into(), "other".into(), "slower".into()], &rows, false);
    for row in rows.iter().filter(|row| row.metric == lab::protocol::Metric::Iops) {
        assert!(
            row.runs.iter().all(|run| run.is_some_and(|figure| figure.repeats == 4 && figure.half_width.is_some()))
        );
        assert!(!matches!(row.verdicts[0], lab::run::Compared::Differs(percent) if percent.abs() > 20.0), "{row:?}");
        assert!(matches!(row.verdicts[1], lab::run::Compared::Differs(percent) if percent < -50.0), "{row:?}");
    }
    assert!(text.contains("differ by more than noise") && text.contains("C -"), "{text}");
}

#[test]
fn the_example_in_the_documentation_is_readable() {
    let run = Run::open(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/run"))).expect("a run");
    assert!(run.finished);
    let (part, step) = run.measured().next().expect("a step");
    assert_eq!((part.plan.test.as_str(), step.step.as_str()), ("4k-write", "measure"));
    assert!(step.pool(None).expect("sound").requests() == step.total.all.requests);
}

const PLAYED: &str = r#"
name = "played"
title = "Played"
description = "A trace"
follows = "Nobody"
devices = ["iodrive-duo-640-mlc"]
arrays = ["both-modules"]
[[test]]
name = "mail"
title = "Mail"
[[test.stage]]
name = "measure"
role = "measure"
trace = { made = "mail-server", requests = 3000, size = "64GiB", pace = "depth" }
vary = { depth = [4, 16] }
"#;

fn play(path: &Path, change: impl Fn(&mut Options)) -> Run {
    let protocol = from_toml("played.toml", PLAYED).expect("sound");
    let mut options = Options { devices: vec!["iodrive-duo-640-mlc".into()], ..options() };
    change(&mut options);
    let session = Session::begin(path, protocol, PLAYED, options, Vec::new(), 1).expect("begun");
    assert_eq!(session.conduct(&Nobody).expect("run"), Ended::Complete);
    Run::open(path).expect("a run")
}

#[test]
fn a_made_trace_is_played_request_by_request_and_anew_for_each_repeat() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    let run = play(&path, |options| options.repeat = 2);
    for part in &run.parts {
        for (step, depth) in part.steps.iter().zip([4, 16]) {
            assert_eq!(step.total.all.requests, 3000, "{}", step.step);
            assert_eq!((step.point.outstanding(), step.point.access.as_str()), (depth, "trace"));
            assert!((93.0..97.0).contains(&step.point.read_percent), "{:?}", step.point);
            assert!(step.point.trace.as_ref().is_some_and(|text| text.contains("mail server, 3000 requests")));
            // Both modules take part, and what is outstanding is shared.
            assert!((step.outstanding / f64::from(depth) - 1.0).abs() < 0.1, "{}", step.outstanding);
        }
    }
    let made: Vec<_> =
        std::fs::read_dir(path.join("traces")).expect("traces").map(|it| it.expect("one").path()).collect();
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(
        made.iter().all(|path| path.to_string_lossy().contains("-of-1GiB-")),
        "as much smaller as the device: {made:?}"
    );
    // Gone and made again, it is the same one.
    let expected = results(&path);
    std::fs::remove_dir_all(path.join("traces")).expect("removed");
    std::fs::write(path.join("journal.jsonl"), "").expect("emptied");
    assert_eq!(Session::resume(&path, 1).expect("resumed").conduct(&Nobody).expect("run"), Ended::Complete);
    assert_eq!(results(&path), expected);
}

#[test]
fn a_recorded_trace_is_played_in_place_of_the_made_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("own.csv");
    let lines: String =
        (0..500).map(|at| format!("7,{},{},4096,{at}\n", if at % 4 == 0 { "W" } else { "R" }, at * 8192)).collect();
    std::fs::write(&file, lines).expect("written");
    let protocol = from_toml("played.toml", PLAYED).expect("sound");
    let own = Options { devices: vec!["iodrive-duo-640-mlc".into()], trace: Some(file.clone()), ..options() };
    let path = directory.path().join("run");
    let session = Session::begin(&path, protocol, PLAYED, own.clone(), Vec::new(), 1).expect("begun");
    assert_eq!(session.conduct(&Nobody).expect("run"), Ended::Complete);
    let run = Run::open(&path).expect("a run");
    for step in &run.parts[0].steps {
        assert_eq!((step.total.all.requests, step.point.read_percent), (500, 75.0));
        assert!(step.point.trace.as_ref().is_some_and(|text| text.contains("own.csv")));
    }
    assert!(!path.join("traces").exists());
    // A protocol without a trace has no place for one.
    let small = from_toml("small.toml", PROTOCOL).expect("sound");
    let other = directory.path().join("other");
    let refused = Session::begin(&other, small, PROTOCOL, own, Vec::new(), 1).err().expect("refused").to_string();
    assert!(refused.contains("small plays no trace"), "{refused}");
}

#[test]
fn a_disk_is_run_without_and_with_a_cache_in_front() {
    let directory = tempfile::tempdir().expect("a directory");
    let cached = |options: &mut Options| {
        options.devices = vec!["wd-re3".into()];
        options.arrays = Some(vec!["single".into()]);
        options.cache =
            Some(CachePlan { profile: "iodrive-320-mlc".into(), bytes: Some(1 << 30), mode: Mode::Through });
    };
    let run = play(&directory.path().join("run"), cached);
    let [without, with] = &run.parts[..] else { panic!("{} parts", run.parts.len()) };
    assert_eq!((&without.plan.cache, with.plan.cache.as_deref()), (&None, Some("iodrive-320-mlc-1GiB-write-through")));
    assert!(with.begin.as_ref().is_some_and(|begin| begin.machine.product.contains("behind a cache, Fusion-io")));
    let uses = |step: &lab::run::Step| step.device_use.as_ref().and_then(|used| used.cache.clone());
    assert!(without.steps.iter().all(|step| uses(step).is_none()));
    // The second step plays what the first one has left in the cache.
    let ratios: Vec<f64> = with.steps.iter().filter_map(|step| uses(step)?.hit_ratio).collect();
    assert!(ratios[0] > 0.0 && ratios[1] > 0.9 && ratios.len() == 2, "{ratios:?}");
    let iops = |steps: &[lab::run::Step]| steps[1].total.all.iops;
    assert!(iops(&with.steps) > 5.0 * iops(&without.steps), "{} {}", iops(&with.steps), iops(&without.steps));
    let text = report_text(&run);
    assert!(
        text.contains("single/iodrive-320-mlc-1GiB-write-through\n")
            && text.contains(&format!("  hit ratio {:.3}", ratios[1])),
        "{text}"
    );
    // The same again, to the byte; and flash has no cache in front of it.
    let again = play(&directory.path().join("again"), cached);
    assert_eq!(report_text(&again).replace(&again.header.started, ""), text.replace(&run.header.started, ""));
    let mut flash = options();
    cached(&mut flash);
    flash.devices = vec!["iodrive-duo-640-mlc".into()];
    let protocol = from_toml("played.toml", PLAYED).expect("sound");
    let refused = Session::begin(&directory.path().join("no"), protocol, PLAYED, flash, Vec::new(), 1).err();
    let words = refused.expect("refused").to_string();
    assert!(words.contains("iodrive-duo-640-mlc is a flash card: a cache stands in front of a disk"), "{words}");
}

#[test]
fn a_part_that_broke_off_before_it_began_is_whole_once_it_was_done() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    let one = Options { tests: vec!["mix".into()], ..options() };
    assert_eq!(begin(&path, one).conduct(&Nobody).expect("run"), Ended::Complete);
    // As if the device could not be made ready at first: the journal of a run that was resumed after that.
    let journal = path.join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    let (plan, rest) = text.split_once('\n').expect("lines");
    let part = Run::open(&path).expect("a run").parts[0].plan.part.clone();
    let broke = format!("{{\"kind\":\"broke\",\"part\":{part:?},\"attempt\":1,\"reason\":\"no device\"}}");
    std::fs::write(&journal, format!("{plan}\n{broke}\n{rest}")).expect("written");
    let run = Run::open(&path).expect("a run");
    assert_eq!((run.parts[0].complete, &run.parts[0].broke), (true, &None));
    std::fs::write(&journal, format!("{plan}\n{broke}\n")).expect("written");
    let run = Run::open(&path).expect("a run");
    assert_eq!((run.parts[0].complete, run.parts[0].broke.as_deref()), (false, Some("no device")));
}

#[test]
fn a_groomer_takes_the_place_of_the_data_sheets() {
    const WRITTEN_TWICE: &str = r#"
name = "twice"
title = "Twice"
description = "A small device is written over at random"
follows = "Nobody"
devices = ["mqsim-reference"]
[[test]]
name = "writes"
title = "Writes"
workload = "random-write-4k"
[[test.stage]]
name = "over"
role = "measure"
written = 2.0
"#;
    let directory = tempfile::tempdir().expect("a directory");
    let begun = |groomer: Option<&str>| {
        let protocol = from_toml("twice.toml", WRITTEN_TWICE).expect("sound");
        let devices = vec!["mqsim-reference".into()];
        let asked = Options { devices, groomer: groomer.map(String::from), ..options() };
        let path = directory.path().join(groomer.unwrap_or("sheet"));
        (Session::begin(&path, protocol, WRITTEN_TWICE, asked, vec!["vsl".into()], 2), path)
    };
    let written = |groomer| {
        let (session, path) = begun(groomer);
        session.expect("begun").conduct(&Nobody).expect("a journal");
        let part = &Run::open(&path).expect("a run").parts[0];
        assert_eq!(part.begin.as_ref().expect("begun").machine.groomer.as_deref(), groomer);
        part.steps[0].device_use.as_ref().expect("flash").media_written_bytes
    };
    let own = written(None);
    assert_eq!(own, written(Some("greedy")), "the sheet's own");
    assert_ne!(own, written(Some("fifo")));
    let error = begun(Some("lazy")).0.err().expect("no groomer").to_string();
    assert!(error.contains("'lazy' is no groomer; there are: greedy,"), "{error}");
}

#[test]
fn drivers_are_an_axis_and_what_a_sheet_does_not_know_is_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let drivers = ["linux", "windows", "beos"].map(String::from).to_vec();
    let path = directory.path().join("run");
    begin(&path, Options { drivers: Some(drivers), ..options() }).conduct(&Nobody).expect("a journal");
    let run = Run::open(&path).expect("a run");
    let parts: Vec<_> = run.parts.iter().map(|part| (part.plan.driver.as_deref(), &part.plan.part)).collect();
    assert!(parts.len() >= 2 && parts.iter().all(|(driver, part)| part.contains(driver.expect("named"))), "{parts:?}");
    let iops = |driver: &str| {
        let part = run.parts.iter().find(|part| part.plan.driver.as_deref() == Some(driver)).expect("a part of it");
        assert_eq!(part.begin.as_ref().expect("begun").machine.driver, driver);
        part.steps.last().expect("steps").total.all.iops
    };
    assert_ne!(iops("linux"), iops("windows"), "two drivers cost the same");
    assert!(run.left_out.iter().any(|why| why.contains("'beos'")), "{:?}", run.left_out);
}
