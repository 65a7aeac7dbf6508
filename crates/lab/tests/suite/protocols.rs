//! Protocols: every shipped one plans and runs, and what is wrong with one is named with its line.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use lab::protocol::{Role, find, from_toml, shipped};
use lab::run::{Ended, Journal, Line, Plan, Status, Wanted, Watch, conduct};
use lab::target::Virtual;
use lab::workload::{Stop, Time};

struct Nobody;

impl Watch for Nobody {
    fn at(&self, _: &Status) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn wanted(quick: bool) -> Wanted {
    Wanted { quick, is_virtual: true, repeat: 1, seed: 1, ..Wanted::default() }
}

/// The plan of a protocol with every step cut to milliseconds, at most two rounds, and one part of each test.
fn tiny(plan: Plan) -> Plan {
    let mut seen = HashSet::new();
    let mut parts: Vec<_> = plan.parts.into_iter().filter(|part| seen.insert(part.plan.test.clone())).collect();
    for part in &mut parts {
        for stage in &mut part.stages {
            stage.rounds = stage.rounds.clamp(1, 2);
            for step in &mut stage.steps {
                step.phase.stop = Stop { duration: Some(Time(Duration::from_millis(4))), ..Stop::default() };
                step.phase.ramp = Time::default();
                step.pause = Time(step.pause.0.min(Duration::from_millis(1)));
            }
        }
    }
    Plan { parts, left_out: plan.left_out }
}

#[test]
fn every_protocol_plans_in_both_forms_and_runs_in_a_tiny_one() {
    for file in shipped() {
        let (protocol, _) = find(file.name).expect("shipped").unwrap_or_else(|error| panic!("{error}"));
        let devices = if protocol.devices.is_empty() { vec!["iodrive-320-mlc".to_string()] } else { Vec::new() };
        let directory = tempfile::tempdir().expect("a directory");
        let mut plans = [false, true].map(|quick| {
            let (devices, directory) = (devices.clone(), directory.path().into());
            let wanted = Wanted { devices, directory, scale: 64, ..wanted(quick) };
            Plan::new(&protocol, &wanted).unwrap_or_else(|error| panic!("{}: {error}", file.name))
        });
        for plan in &plans {
            let names: HashSet<&str> = plan.parts.iter().map(|part| part.plan.part.as_str()).collect();
            assert_eq!(names.len(), plan.parts.len(), "{}: parts are called alike", file.name);
            for part in &plan.parts {
                assert!(part.stages.iter().any(|stage| stage.role == Role::Measure), "{}", part.plan.part);
            }
        }
        let plan = tiny(plans[1].clone());
        plans[1].parts.clear();
        plan.parts.iter().flat_map(|part| &part.made).for_each(|made| made.make().expect("a trace"));
        let path = directory.path().join("journal.jsonl");
        let target = Virtual { scale: 64, driver: protocol.driver.clone(), groomer: None, at_once: 2, cache: None };
        let journal = Journal::create(&path).expect("a journal");
        let ended = conduct(&plan, &protocol.steady, &target, journal, &[], &Nobody).expect("a journal");
        assert_eq!(ended, Ended::Complete, "{}", file.name);
        let (_, lines) = Journal::resume(&path).expect("sound");
        let steps = lines.iter().filter(|line| matches!(line, Line::Step(_))).count();
        let expected: usize = plan
            .parts
            .iter()
            .flat_map(|part| &part.stages)
            .map(|stage| stage.steps.len() * stage.rounds as usize)
            .sum();
        assert_eq!(steps, expected, "{}", file.name);
        let verdicts: Vec<_> = lines.iter().filter(|line| matches!(line, Line::Verdict(_))).collect();
        let tracked = plan.parts.iter().flat_map(|part| &part.stages).any(|stage| !stage.tracked.is_empty());
        assert!(!tracked || !verdicts.is_empty(), "{}: no verdict", file.name);
    }
}

#[test]
fn the_counts_are_those_of_the_publications() {
    let count = |name: &str, quick: bool| {
        let (protocol, _) = find(name).expect("shipped").expect("sound");
        let plan = Plan::new(&protocol, &wanted(quick)).expect("a plan");
        let steps: u32 = plan
            .parts
            .iter()
            .flat_map(|part| &part.stages)
            .filter(|stage| stage.role == Role::Measure)
            .map(|stage| stage.steps.len() as u32)
            .sum();
        (plan.parts.len(), steps)
    };
    // 5 profiles x 9 loads x 4 formats x 3 arrangements x 2 capacities.
    assert_eq!(count("fujitsu-primergy", false), (1_080, 1_080));
    // 5 workloads x 2 formats; 4K once, the others in 4 x 4 pairs.
    assert_eq!(count("storagereview-enterprise", false), (10, 2 * (2 + 3 * 16)));
    // 7 mixes x 8 sizes need a device, which the protocol leaves open.
    let (protocol, _) = find("snia-pts-iops").expect("shipped").expect("sound");
    assert!(Plan::new(&protocol, &wanted(false)).expect_err("no device").to_string().contains("--device"));
    let devices = vec!["iodrive-320-mlc".to_string()];
    let plan = Plan::new(&protocol, &Wanted { devices, ..wanted(false) }).expect("a plan");
    assert_eq!(plan.parts[0].stages[1].steps.len(), 56);
    assert_eq!(plan.parts[0].stages[1].rounds, 0);
}

#[test]
fn what_does_not_apply_to_a_device_is_left_out_and_said() {
    let (protocol, _) = find("storagereview-enterprise").expect("shipped").expect("sound");
    let plan =
        |device: &str| Plan::new(&protocol, &Wanted { devices: vec![device.into()], ..wanted(true) }).expect("a plan");
    let disk = plan("wd-re3");
    assert_eq!(disk.parts.len(), 5);
    assert!(disk.left_out.iter().any(|text| text.contains("no format 'high-performance'")), "{:?}", disk.left_out);
    assert!(disk.parts.iter().all(|part| part.stages.iter().all(|stage| stage.role == Role::Measure)));
    assert_eq!(disk.parts[0].plan.array.as_deref(), Some("single"));
}

const SOUND: &str = r#"
name = "mine"
title = "Mine"
description = "Something"
follows = "Nobody"
[[test]]
name = "a"
title = "A"
workload = "random-read-4k"
[[test.stage]]
name = "measure"
role = "measure"
duration = "1s"
"#;

#[test]
fn what_is_wrong_is_named_with_its_line() {
    from_toml("mine.toml", SOUND).expect("sound");
    for (from, to, expected) in [
        ("name = \"mine\"", "name = \"my protocol\"", "mine.toml:2: name 'my protocol': expected letters"),
        (
            "workload = \"random-read-4k\"",
            "workload = \"random\"",
            "mine.toml:9: test 'a', stage 'measure': no workload is called 'random'",
        ),
        (
            "duration = \"1s\"",
            "",
            "mine.toml:11: test 'a', stage 'measure': nothing ends it; expected duration or written",
        ),
        ("duration = \"1s\"", "duration = \"soon\"", "line 13"),
        ("duration = \"1s\"", "duration = \"1s\"\nlength = 3", "unknown field `length`"),
        (
            "role = \"measure\"",
            "role = \"dance\"",
            "unknown variant `dance`, expected one of `fill`, `precondition`, `measure`, `idle`",
        ),
        (
            "role = \"measure\"",
            "role = \"fill\"",
            "mine.toml:7: test 'a' measures nothing; expected a stage with role = \"measure\"",
        ),
        (
            "duration = \"1s\"",
            "duration = \"1s\"\nthreads = 0",
            "mine.toml:11: test 'a', stage 'measure': threads = 0; expected 1 or more",
        ),
        (
            "duration = \"1s\"",
            "duration = \"1s\"\nsteady = [{ metric = \"iops\", size = 512 }]",
            "steady names a size or read_percent that no step of it has",
        ),
        ("duration = \"1s\"", "written = 0", "written is how many times the capacity; expected more than 0"),
        (
            "duration = \"1s\"",
            "duration = \"1s\"\n[[chart]]\ntitle = \"c\"\nkind = \"bars\"\ntests = [\"b\"]",
            "mine.toml:15: chart 'c': there is no test 'b'",
        ),
        ("duration = \"1s\"", "trace = {}", "mine.toml:11: test 'a', stage 'measure': trace: expected file, or made"),
        (
            "duration = \"1s\"",
            "trace = { file = \"a\" }\nread_percent = 50",
            "the requests come from a trace; beside it there is no read_percent",
        ),
        (
            "duration = \"1s\"",
            "trace = { file = \"a\" }\nvary = { size = [512] }",
            "beside it there is no vary, but of pause and depth",
        ),
        ("duration = \"1s\"", "trace = { made = \"web\" }", "unknown variant `web`, expected `mail-server`"),
        (
            "follows = \"Nobody\"",
            "follows = \"Nobody\"\nformats = [\"huge\"]",
            "mine.toml:6: 'huge' is no format; there are: ",
        ),
        (
            "follows = \"Nobody\"",
            "follows = \"Nobody\"\npublished = \"elsewhere\"",
            "mine.toml:6: no published source is called 'elsewhere'; there are: ",
        ),
        (
            "follows = \"Nobody\"",
            "follows = \"Nobody\"\nsteady = { window = 1 }",
            "expected a window of 2 rounds or more",
        ),
        (
            "[[test.stage]]",
            "[[test.stage]]\nname = \"measure\"\nrole = \"measure\"\nduration = 1\n[[test.stage]]",
            "stage 'measure' is there twice",
        ),
    ] {
        let text = SOUND.replacen(from, to, 1);
        assert_ne!(text, SOUND, "{from}");
        let message = from_toml("mine.toml", &text).expect_err(to).to_string();
        assert!(message.contains(expected), "{to}: {message}");
        assert!(message.starts_with("mine.toml"), "{message}");
    }
}
