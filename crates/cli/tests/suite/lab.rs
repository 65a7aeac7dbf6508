//! `vsl lab`: what it takes, what it prints, and what it says to nonsense.

use crate::common::Place;

const PROTOCOL: &str = "
name = \"small\"
title = \"Small\"
description = \"One test\"
follows = \"Nobody\"
devices = [\"iodrive-320-mlc\"]
[[test]]
name = \"mix\"
title = \"Mix\"
workload = \"random-8k-70-30\"
[[test.stage]]
name = \"measure\"
role = \"measure\"
duration = \"5ms\"
vary = { depth = [1, 8] }
";

#[test]
fn a_protocol_is_run_reported_and_compared() {
    let place = Place::new();
    std::fs::write(place.path("small.toml"), PROTOCOL).expect("written");
    let run = |out: &str, extra: &[&str]| {
        place.vsl(&[&["lab", "run", "small.toml", "--full", "--scale", "64", "--out", out], extra].concat())
    };
    assert!(run("one", &["--repeat", "3"]).ok().contains("`vsl lab report one`"));
    assert!(run("two", &["--repeat", "3", "--device", "wd-re3"]).ok().contains("done: two"));
    let report = place.vsl(&["lab", "report", "one"]).ok();
    for part in
        ["Small (full form)", "mix/iodrive-320-mlc/stock/single/repeat-3", "measure/q8", "built anew", "over 3 repeats"]
    {
        assert!(report.contains(part), "no '{part}' in: {report}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&place.vsl(&["lab", "report", "one", "--json"]).ok()).expect("JSON");
    assert_eq!(json["parts"][2]["steps"][1]["step"], "measure/q8");
    let page = std::fs::read_to_string(place.path("one/report.html")).expect("the page of a run that ended");
    assert!(page.contains("<h1>Small: Fusion-io ioDrive 320 GB MLC</h1>"), "its heading");
    let charts = place.vsl(&["lab", "report", "one", "--json", "--charts", "--csv", "figures"]).ok();
    let charts: serde_json::Value = serde_json::from_str(&charts).expect("JSON");
    let chart = charts["charts"][0]["id"].as_str().expect("a chart's name").to_string();
    assert!(place.path("figures").join(format!("{chart}.csv")).exists());
    place.vsl(&["lab", "report", "one", "--png", &chart, "--dark", "--out", "chart.png"]).ok();
    assert!(std::fs::read(place.path("chart.png")).expect("a picture").starts_with(b"\x89PNG"));
    place.vsl(&["lab", "report", "one", "--svg", &chart, "--out", "chart.svg"]).ok();
    let drawing = std::fs::read_to_string(place.path("chart.svg")).expect("a drawing");
    assert!(drawing.contains("<svg") && drawing.contains("prefers-color-scheme"), "{}", &drawing[..200]);
    place.vsl(&["lab", "report", "one", "--png", "nonsense"]).fails(2, &["no chart 'nonsense'", &chart]);
    place.vsl(&["lab", "compare", "one", "two", "--out", "both.html"]).ok();
    let page = std::fs::read_to_string(place.path("both.html")).expect("the page of both");
    assert!(page.contains("<h1>Runs side by side: one, two</h1>"), "its heading");
    let compared = place.vsl(&["lab", "compare", "one", "two"]).ok();
    assert!(compared.contains("A: one") && compared.contains("differs"), "{compared}");
    let json: serde_json::Value =
        serde_json::from_str(&place.vsl(&["lab", "compare", "one", "two", "--json"]).ok()).expect("JSON");
    assert_eq!(json["rows"][0]["what"], "mix/single/measure/q1");
    assert_eq!(json["rows"][0]["runs"][0]["repeats"], 3);
    run("one", &[]).fails(1, &["one: is there already", "vsl lab resume"]);
    // A finished run has nothing left to do.
    assert!(place.vsl(&["lab", "resume", "one"]).ok().contains("done: one"));
}

#[test]
fn amplification_is_measured_and_scarce_space_is_told() {
    let place = Place::new();
    let small = ["lab", "waf", "--sectors", "16384", "--policy", "greedy", "--workload", "uniform", "--drive-writes"];
    let waf = |percent: &str| place.vsl(&[&small[..], &["2", "--over-provisioning", percent]].concat()).ok();
    let (scarce, ample) = (waf("28"), waf("100"));
    assert!(scarce.contains("uniform") && scarce.contains("Of the 28 % beyond the sectors only"), "{scarce}");
    assert!(ample.contains("uniform") && !ample.contains("Of the"), "{ample}");
}

#[test]
fn protocols_are_listed_and_shown() {
    let place = Place::new();
    let list = place.vsl(&["lab", "list"]).ok();
    assert!(list.contains("storagereview-enterprise") && list.contains("snia-pts-iops"), "{list}");
    let plan = place.vsl(&["lab", "show", "snia-pts-iops", "--device", "iodrive-320-mlc"]).ok();
    for part in
        ["window of 5 rounds, at most 25", "56 steps", "until steady: requests of 4KiB, 0 % read", "form: quick"]
    {
        assert!(plan.contains(part), "no '{part}' in: {plan}");
    }
    let text = place.vsl(&["lab", "show", "snia-pts-iops", "--text"]).ok();
    std::fs::write(place.path("mine.toml"), &text).expect("written");
    assert_eq!(place.vsl(&["lab", "show", "mine.toml", "--device", "iodrive-320-mlc"]).ok(), plan);
}

#[test]
fn nonsense_is_named() {
    let place = Place::new();
    std::fs::write(place.path("bad.toml"), PROTOCOL.replace("duration = \"5ms\"", "")).expect("written");
    std::fs::write(place.path("small.toml"), PROTOCOL).expect("written");
    std::fs::write(place.path("data"), "precious").expect("written");
    for (arguments, parts) in [
        (&["run", "nope"][..], &["'nope' is neither a protocol's name nor a file", "vsl lab list"][..]),
        (&["run", "bad.toml"], &["bad.toml:12: test 'mix', stage 'measure': nothing ends it"]),
        (&["run", "small.toml", "--device", "nope"], &["'nope' is no device", "fio:PATH"]),
        (&["run", "small.toml", "--test", "other"], &["small has no test 'other'; there are: mix"]),
        (
            &["run", "small.toml", "--device", "wd-re3", "--device", "fio:x"],
            &["is a virtual device and fio:x a fio one"],
        ),
        (&["run", "snia-pts-iops"], &["is for any device; name one with --device"]),
        (
            &["run", "small.toml", "--device", "fio:data", "--cache", "iodrive-320-mlc"],
            &["--cache iodrive-320-mlc with a fio"],
        ),
        (&["run", "small.toml", "--cache", "iodrive-320-mlc"], &["a cache stands in front of a disk"]),
        (&["run", "small.toml", "--scale", "0"], &["expected full, or a whole number"]),
        (&["report", "nowhere"], &["nowhere: is no run's directory"]),
        (&["compare", "one"], &["2 values required"]),
    ] {
        place.vsl(&[&["lab"], arguments].concat()).fails(2, parts);
    }
    place.vsl(&["lab", "run", "small.toml", "--device", "fio:data"]).fails(4, &["the file data, 8 B", "--yes"]);
    assert_eq!(std::fs::read(place.path("data")).expect("read"), b"precious");
    place.vsl(&["lab", "resume", "nowhere"]).fails(1, &["nowhere: is no run's directory"]);
}
