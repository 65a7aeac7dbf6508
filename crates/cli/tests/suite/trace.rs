//! `vsl trace`: what it says of a trace, what it writes, and what it says to nonsense.

use serde_json::Value;

use crate::common::Place;

#[test]
fn a_made_up_trace_is_written_read_and_converted() {
    let place = Place::new();
    let path = |name: &str| place.path(name).display().to_string();
    let (first, again, other) = (path("mail.vscsi.zst"), path("again.vscsi"), path("mail.iolog"));
    let make = |to: &str| {
        place
            .vsl(&[
                "trace",
                "generate",
                "mail-server",
                "--records",
                "20000",
                "--seed",
                "7",
                "--size",
                "1GiB",
                "--to",
                to,
            ])
            .ok()
    };
    assert!(make(&first).contains("20000 requests written as vscsi2"));
    make(&again);
    let info = |path: &str| -> Value {
        serde_json::from_str(&place.vsl(&["trace", "info", path, "--json"]).ok()).expect("JSON")
    };
    let (one, two) = (info(&first), info(&again));
    assert_eq!(one["source"]["compression"], "zstd");
    assert_eq!((&one["records"], &one["sizes"], &one["timeline"]), (&two["records"], &two["sizes"], &two["timeline"]));
    let reads = one["requests"]["read"]["percent"].as_f64().expect("a share");
    assert!((94.0..96.0).contains(&reads), "{reads}");
    place.vsl(&["trace", "convert", &first, &other, "--file-name", "/dev/x"]).ok();
    assert_eq!(info(&other)["volumes"]["0"]["name"], "/dev/x");
    let table = place.vsl(&["trace", "info", &other]).ok();
    for part in ["(fio3)", "20000 requests", "footprint", "counted exactly", "hot spots", "sequential", "dispersion"] {
        assert!(table.contains(part), "no '{part}' in: {table}");
    }
    let page = path("mail.html");
    place.vsl(&["trace", "info", &other, "--html", &page]).ok();
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("<h1>Trace mail.iolog</h1>") && html.contains("Hot spots"), "its heading and its charts");
    place.vsl(&["trace", "info", &other, "--html", "/nonexistent/page.html"]).fails(1, &["/nonexistent/page.html"]);
    place.vsl(&["trace", "convert", &first, &other]).fails(2, &["mail.iolog: File exists"]);
}

#[test]
fn nonsense_is_said_with_its_line() {
    let place = Place::new();
    let path = place.path("t.csv");
    std::fs::write(&path, "7,R,0,4096,1\n7,R,4096,4096,2\n7,R,8192,forty,3\n").expect("written");
    let path = path.display().to_string();
    let expected = "t.csv: line 3: the length is 'forty'; expected a whole number";
    place.vsl(&["trace", "info", &path]).fails(2, &[expected]);
    let copy = place.path("copy.vscsi");
    place.vsl(&["trace", "convert", &path, &copy.display().to_string()]).fails(2, &[expected]);
    assert!(!copy.exists(), "half a trace is none");
    let unknown = place.path("copy.xyz").display().to_string();
    place.vsl(&["trace", "convert", &path, &unknown]).fails(2, &["its ending names no format", "--to-format fio3"]);
    let expected = "'dtrace' is no format of traces; expected one of vscsi-csv";
    place.vsl(&["trace", "info", &path, "--format", "dtrace"]).fails(2, &[expected]);
    let list = place.vsl(&["trace", "list-formats"]).ok();
    assert!(list.lines().filter(|line| line.starts_with("fio") || line.starts_with("vscsi")).count() == 5, "{list}");
}
