//! A short cut of every target, what was found before, and the runner's own eyes.

use std::path::Path;

use fuzz::{TARGETS, Target, find, runner};

/// Inputs in all: some seconds of the development build.
const EXECUTIONS: u64 = 30_000;

/// One after the other: a panic on any thread, and all memory, belong to the target that runs.
#[test]
fn targets_hold() {
    replay_what_was_found();
    // Each is rounded up.
    let sum: u64 = TARGETS.iter().map(|target| target.share(EXECUTIONS)).sum();
    assert!((EXECUTIONS..EXECUTIONS + TARGETS.len() as u64).contains(&sum), "{sum} executions instead of {EXECUTIONS}");
    for target in TARGETS {
        match runner::run(target, target.share(EXECUTIONS), 1) {
            Ok(report) => println!("{}: {report}", target.name),
            Err(finding) => fail(&finding),
        }
    }
    the_runner_sees_what_goes_wrong();
}

/// The panic hook is the runner's: say what it found.
fn fail(finding: &runner::Finding) -> ! {
    println!("{}: {finding}", finding.target);
    panic!("{finding}");
}

fn replay_what_was_found() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut inputs = 0;
    for entry in std::fs::read_dir(directory).expect("regressions") {
        let entry = entry.expect("an entry");
        let target = find(&entry.file_name().to_string_lossy()).expect("a directory is called like its target");
        for input in std::fs::read_dir(entry.path()).expect("a directory") {
            let path = input.expect("an entry").path();
            if let Err(finding) = runner::execute(target, &std::fs::read(&path).expect("a file")) {
                println!("{}", path.display());
                fail(&finding);
            }
            inputs += 1;
        }
    }
    assert!(inputs > 0, "there are some");
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, about: "", weight: 0, corpus: Vec::new, words: &[], run }
}

static PANICS: Target = target("panics", |input| assert!(input.first() != Some(&7), "a seven"));
static PANICS_ELSEWHERE: Target = target("elsewhere", |input| {
    let seven = input.first() == Some(&7);
    // The thread that serves a client tells nobody how it ended.
    let _ = std::thread::spawn(move || assert!(!seven, "a seven")).join();
});
static LEAKS: Target = target("leaks", |input| std::mem::forget(vec![1u8; (10 * input.len()) << 10]));

fn the_runner_sees_what_goes_wrong() {
    for target in [&PANICS, &PANICS_ELSEWHERE] {
        assert!(runner::execute(target, &[6]).is_ok());
        let finding = runner::execute(target, &[7]).expect_err("it panics");
        assert!(finding.what.contains("a seven"), "{finding}");
        assert_eq!(std::fs::read(&finding.input).expect("its input is kept"), [7]);
        let finding = runner::run(target, 20_000, 3).expect_err("one in 256 panics");
        assert_eq!(std::fs::read(&finding.input).expect("its input is kept")[0], 7);
        std::fs::remove_file(&finding.input).expect("it was made here");
    }
    let finding = runner::run(&LEAKS, 60, 1).expect_err("it leaks");
    assert!(finding.what.starts_with("memory grew by"), "{finding}");
}
