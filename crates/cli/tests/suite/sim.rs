//! `vsl sim`: what it takes, what it prints, and what it says to nonsense.

use crate::common::Place;

#[test]
fn a_run_prints_its_figures_and_the_same_again() {
    let place = Place::new();
    let run = |extra: &[&str]| {
        let common = [
            "sim",
            "iodrive-320-mlc",
            "--rw",
            "randrw",
            "--rwmixread",
            "70",
            "--iodepth",
            "8",
            "--runtime",
            "200ms",
            "--scale",
            "64",
        ];
        place.vsl(&[&common, extra].concat())
    };
    let text = run(&[]).ok();
    for part in [
        "(iodrive-320-mlc), single",
        "filled",
        "scaled down",
        "read ",
        "write ",
        "IOPS",
        "p50",
        "write amplification",
        "outstanding  8.0",
    ] {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
    let once = run(&["--json"]).ok();
    assert_eq!(once, run(&["--json"]).ok());
    let json: serde_json::Value = serde_json::from_str(&once).expect("JSON");
    let read = &json["jobs"][0]["read"];
    let samples = read["lat_ns"]["N"].as_u64().expect("samples");
    let bins: u64 =
        read["lat_ns"]["bins"].as_object().expect("bins").values().filter_map(serde_json::Value::as_u64).sum();
    assert!(samples > 100);
    assert_eq!((bins, read["total_ios"].as_u64()), (samples, Some(samples)));
    assert_eq!(json["openvsl"]["setting"]["profile"], "iodrive-320-mlc");
    assert_ne!(once, run(&["--json", "--seed", "2"]).ok());
}

#[test]
fn workloads_and_job_files_are_read() {
    let place = Place::new();
    let list = place.vsl(&["sim", "--list"]).ok();
    assert!(list.lines().count() >= 20 && list.contains("storagereview-file-server"), "{list}");
    let toml = place.vsl(&["sim", "wd-re3", "--workload", "fujitsu-database", "--iodepth", "4", "--dry-run"]).ok();
    assert!(toml.contains("depth = 4") && toml.contains("name = \"fill\""), "{toml}");
    std::fs::write(place.path("own.toml"), &toml).expect("written");
    let again = place.vsl(&["sim", "wd-re3", "--workload", "own.toml", "--dry-run"]).ok();
    assert_eq!(again, toml, "a workload that is printed is read back");
    std::fs::write(place.path("j.fio"), "[global]\nioengine=libaio\n[a]\nrw=randread\nbs=4k\nruntime=1\ntime_based\n")
        .expect("written");
    let said = place.vsl(&["sim", "wd-re3", "--job", "j.fio"]);
    assert!(said.err.contains("note: ioengine: makes no difference here"), "{}", said.err);
    assert!(said.ok().contains("fresh"));
}

#[test]
fn a_disk_has_a_cache_in_front() {
    let place = Place::new();
    let common = "sim wd-re3 --rw randrw --rwmixread 80 --iodepth 8 --size 64MiB --ramp-time 20 --runtime 10";
    let run = |extra: &str| place.vsl(&common.split(' ').chain(extra.split(' ')).collect::<Vec<_>>());
    let text = run("--cache iodrive-320-mlc --cache-size 1GiB --cache-mode write-back").ok();
    for part in [
        "behind a cache, Fusion-io ioDrive 320 GB MLC (iodrive-320-mlc): ",
        ", write-back",
        "fresh",
        "cache        hit ratio 0.",
        "dirty        at most ",
        "of the cache's flash:\n  write amplification 1.",
    ] {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
    let json = run("--cache iodrive-320-mlc --cache-size 1GiB --json").ok();
    assert_eq!(json, run("--cache iodrive-320-mlc --cache-size 1GiB --json").ok());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let own = &json["openvsl"];
    let cache = &own["phases"][0]["device_use"]["cache"];
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let ratio = number(&cache["hit_bytes"]) / (number(&cache["hit_bytes"]) + number(&cache["missed_bytes"]));
    assert!((ratio - number(&cache["hit_ratio"])).abs() < 1e-9 && ratio > 0.5, "{cache}");
    assert_eq!((&cache["dirty_peak_bytes"], &own["setting"]["cache"]["mode"]), (&0.into(), &"write-through".into()));
    assert!(number(&cache["module"]["write_amplification"]["total"]) >= 1.0, "{cache}");
}

#[test]
fn nonsense_is_named() {
    let place = Place::new();
    std::fs::write(place.path("bad.fio"), "[a]\nrw=randread\nthinktime=5\n").expect("written");
    std::fs::write(place.path("bad.toml"), "name = \"w\"\nfaze = 1\n").expect("written");
    for (arguments, parts) in [
        (&["nope", "--rw", "read"][..], &["no profile is called 'nope'", "vsl profiles"][..]),
        (&["wd-re3"], &["nothing says what to run", "vsl sim --list"]),
        (&["wd-re3", "--workload", "nope"], &["'nope' is neither a workload's name nor a file"]),
        (&["wd-re3", "--job", "bad.fio"], &["bad.fio:3: thinktime: is not understood"]),
        (&["wd-re3", "--workload", "bad.toml"], &["bad.toml", "unknown field `faze`"]),
        (&["wd-re3", "--rw", "fast"], &["--rw: rw: 'fast' is not known"]),
        (&["wd-re3", "--rw", "read", "--driver", "dos"], &["has no driver 'dos'", "there are: "]),
        (&["wd-re3", "--rw", "read", "--format", "80%"], &["has no low-level format"]),
        (
            &["iodrive-320-mlc", "--rw", "randread", "--bs", "512", "--sector", "4096"],
            &["requests of 512", "--sector 512"],
        ),
        (&["iodrive-320-mlc", "--rw", "randread", "--scale", "0"], &["expected full, or a whole number"]),
        (&["wd-re3", "--rw", "read", "--cache", "nope"], &["--cache: no profile is called 'nope'", "vsl profiles"]),
        (&["wd-re3", "--rw", "read", "--cache", "wd-re3"], &["is a spinning disk: it cannot be a cache"]),
        (
            &["iodrive-320-mlc", "--rw", "read", "--cache", "iodrive-320-mlc"],
            &["is a flash card: a cache stands in front of a disk"],
        ),
        (
            &["wd-re3", "--rw", "read", "--cache", "iodrive-320-mlc", "--cache-size", "1MiB"],
            &["a cache of 1.05 MB", "of this device one can be made of "],
        ),
        (
            &["wd-re3", "--rw", "read", "--cache", "iodrive-320-mlc", "--cache-mode", "on"],
            &["write-around, write-through"],
        ),
        (&["wd-re3", "--rw", "read", "--cache-size", "1GiB"], &["--cache <PROFILE>"]),
    ] {
        place.vsl(&[&["sim"], arguments].concat()).fails(2, parts);
    }
}
