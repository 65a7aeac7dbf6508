//! The service through its command line: a real one for each test, with real NBD clients.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use crate::common::{NbdClient, Place};

#[test]
fn a_device_is_attached_used_and_detached() {
    let place = Place::new();
    place.create("a.vsl");
    let up = place.vsl(&["up", "--json"]).json();
    assert_eq!((&up["attached"], &up["failed"]), (&json!(0), &json!(0)));
    let attached = place.vsl(&["attach", "a.vsl", "--json"]).json();
    let device = &attached["devices"][0];
    assert_eq!(
        (&device["name"], &device["state"], &device["bytes"]),
        (&json!("a"), &json!("attached"), &json!(16 << 20))
    );
    let uri = format!("nbd+unix:///a?socket={}", place.path("run/nbd.sock").display());
    assert_eq!(device["uri"], json!(uri));

    let mut client = place.client("a");
    client.write(8192, &[7; 4096]);
    assert_eq!(client.read(4096, 8192), [vec![0; 4096], vec![7; 4096]].concat());
    let status = &place.devices()[0];
    assert_eq!((&status["writes"], &status["mapped_sectors"]), (&json!(1), &json!(1)));
    assert_eq!(status["clients"].as_array().map(Vec::len), Some(1));

    place.vsl(&["detach", "a"]).fails(4, &["error: a: 1 client(s) connected", "help: ", "--force"]);
    assert_eq!(client.read(8192, 4096), [7; 4096], "the client goes on after the refusal");
    place.vsl(&["detach", "a", "--force"]).ok();
    client.wait_until_closed();
    assert!(place.devices().is_empty());
    place.vsl(&["detach", "a"]).fails(3, &["a is not attached"]);

    place.vsl(&["attach", "a.vsl"]).ok();
    assert_eq!(place.client("a").read(8192, 4096), [7; 4096]);
}

#[test]
fn status_is_a_line_for_each_device_and_more_for_one_that_is_named() {
    let place = Place::new();
    place.vsl(&["create", "d0.vsl", "d1.vsl", "d2.vsl", "--size", "16MiB"]).ok();
    place.create("a.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "d0.vsl", "a.vsl"]).ok();
    let all = place.vsl(&["status"]).ok();
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 3, "{all}");
    assert!(lines[0].starts_with("DEVICE") && lines[1].starts_with("a ") && lines[2].ends_with("healthy"), "{all}");
    let one = place.vsl(&["status", "d0"]).ok();
    for figure in ["Parity                1", "Encryption            none", "Durability            write-back"] {
        assert!(one.contains(figure), "no '{figure}' in: {one}");
    }
    assert_eq!(place.vsl(&["status", "--long"]).ok().matches("  Parity ").count(), 2);
    assert!(place.vsl(&["status", "-a", "d0"]).ok().contains(" Files and redundancy\n"));
    place.vsl(&["rebuild", "d0", "1"]).fails(2, &["none is", "vsl status DEVICE"]);
    let config = place.vsl(&["config", "d0", "--json"]).json();
    assert_eq!((&config["trim"], &config["durability"]), (&json!(true), &json!("write-back")));
    let formatted = place.vsl(&["status", "d0", "--json"]).json()["devices"][0]["formatted"].clone();
    assert!(formatted.as_str().is_some_and(|at| at.ends_with('Z')), "{formatted}");
}

#[test]
fn an_emulated_card_tells_what_a_card_does_and_another_device_what_it_lacks() {
    let place = Place::new();
    place.vsl(&["create", "card.vsl", "--emulate", "iodrive-duo-640-mlc", "--module", "0"]).ok();
    place.create("a.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "card.vsl", "a.vsl"]).ok();
    let field = |device: &str, name: &str| place.vsl(&["status", device, "--field", name]);
    assert_eq!(field("card", "product").ok(), "Fusion-io ioDrive Duo 640 GB MLC\n");
    assert_eq!((field("card", "link_lanes").ok(), field("card", "slot_volts").ok()), ("4\n".into(), "12.0\n".into()));
    let devices = place.devices();
    let number = |name: &str| devices[1][name].as_f64().unwrap_or_else(|| panic!("no {name} in {}", devices[1]));
    assert!(number("peak_celsius") >= number("celsius") && number("celsius") > 25.0);
    assert!(number("rated_written_bytes") > 1000.0 * number("bytes"));
    assert!((99.9..=100.0).contains(&number("rated_left_percent")));
    assert_eq!(field("card", "leds").ok(), "attached\n");
    place.vsl(&["beacon", "card", "on"]).ok();
    assert_eq!(field("card", "leds").ok(), "location beacon\n");
    assert!(devices[1]["not_there"].is_null());
    assert_eq!(field("a", "serial_number").ok().trim().len(), 20);
    for name in ["product", "link", "peak_celsius", "rated_left_percent"] {
        field("a", name).fails(1, &["it emulates no card", "not_there"]);
        assert!(devices[0]["not_there"].as_array().is_some_and(|list| list.iter().any(|it| it == name)), "{name}");
    }
    place.vsl(&["detach", "card"]).ok();
    assert_eq!(field("card.vsl", "leds").ok(), "driver loaded, not attached\n");
    assert_eq!(field("card.vsl", "part_number").ok(), "iodrive-duo-640-mlc\n");
}

#[test]
fn a_device_on_several_files_is_found_by_each_of_them() {
    let place = Place::new();
    place.vsl(&["create", "d0.vsl", "d1.vsl", "d2.vsl", "--size", "16MiB"]).ok();
    place.create("other.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "d0.vsl,d1.vsl,d2.vsl", "--name", "three"]).ok();
    for path in ["d0.vsl", "./d1.vsl", "d2.vsl,d1.vsl"] {
        assert_eq!(place.vsl(&["status", path, "--field", "state"]).ok().trim(), "attached", "{path}");
        place.vsl(&["format", path, "--yes"]).fails(4, &["three", "is attached", "vsl detach three"]);
    }
    place.vsl(&["detach", "other.vsl"]).fails(3, &["other.vsl is not attached"]);
    place.vsl(&["detach", "d1.vsl"]).ok();
    assert_eq!(place.devices().len(), 0);
}

#[test]
fn devices_come_back_with_the_service_unless_detached() {
    let place = Place::new();
    for name in ["kept", "gone", "once"] {
        place.create(&format!("{name}.vsl"));
    }
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "kept.vsl", "gone.vsl"]).ok();
    place.vsl(&["attach", "once.vsl", "--once", "--name", "another"]).ok();
    place.vsl(&["attach", "memory:512MiB"]).ok();
    place.client("kept").write(0, &[9; 4096]);
    place.vsl(&["config", "kept", "label", "the one"]).ok();
    place.vsl(&["detach", "gone"]).ok();
    let names: Vec<_> = place.devices().iter().map(|device| device["name"].clone()).collect();
    assert_eq!(names, ["another", "kept", "memory"]);
    place.vsl(&["down", "--force"]).ok();

    let up = place.vsl(&["up", "--json"]).json();
    assert_eq!((&up["attached"], &up["failed"]), (&json!(1), &json!(0)));
    let [device] = &place.devices()[..] else { panic!("one device") };
    assert_eq!((&device["name"], &device["label"]), (&json!("kept"), &json!("the one")));
    assert_eq!(place.client("kept").read(0, 4096), [9; 4096]);
}

#[test]
fn a_device_that_is_gone_is_shown_and_does_not_keep_the_others() {
    let place = Place::new();
    place.create("a.vsl");
    place.create("b.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "a.vsl", "b.vsl"]).ok();
    place.vsl(&["down"]).ok();
    std::fs::remove_file(place.path("a.vsl")).expect("removed");
    let up = place.vsl(&["up", "--json"]).json();
    assert_eq!((&up["attached"], &up["failed"]), (&json!(1), &json!(1)));
    let said = place.vsl(&["status", "--errors"]);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("a.vsl: No such file"), "{}", said.out);
    assert!(!said.out.contains("b.vsl"), "{}", said.out);
    place.vsl(&["config", "a"]).fails(4, &["a is not attached just now"]);
    place.vsl(&["attach", "b.vsl", "--name", "a"]).fails(4, &["attached already, as b"]);
    std::fs::write(place.path("c.vsl"), "no device").expect("written");
    place.vsl(&["attach", "c.vsl", "--name", "a"]).fails(4, &["c.vsl"]);
    assert!(place.vsl(&["status", "--errors"]).out.contains("a.vsl: No such file"), "it is still known");
    // Forgetting it is all that detaching it can mean.
    place.vsl(&["detach", "a"]).ok();
    assert_eq!(place.vsl(&["status", "--errors"]).ok(), "nothing is wrong\n");
}

#[test]
fn names_and_devices_are_taken_once() {
    let place = Place::new();
    std::fs::create_dir(place.path("other")).expect("made");
    place.create("a.vsl");
    place.create("other/a.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "a.vsl"]).ok();
    place.vsl(&["attach", "./a.vsl"]).fails(4, &["a.vsl: attached already, as a", "vsl detach a"]);
    place.vsl(&["attach", "other/a.vsl"]).fails(4, &["the name 'a' is taken by", "--name"]);
    place.vsl(&["attach", "other/a.vsl", "--name", "no spaces"]).fails(2, &["'no spaces' cannot be the name"]);
    place.vsl(&["attach", "other/a.vsl", "--name", "b"]).ok();
    place.vsl(&["attach", "x.vsl", "y.vsl", "--name", "c"]).fails(2, &["--name is for one device"]);
    place.vsl(&["attach", "nowhere.vsl"]).fails(3, &["nowhere.vsl: No such file", "vsl create"]);
    place.vsl(&["attach", "memory:lots"]).fails(2, &["memory:lots: 'lots' is not a size"]);
    std::fs::write(place.path("text"), "no device".repeat(1000)).expect("written");
    place.vsl(&["attach", "text"]).fails(4, &["text: ", "vsl create"]);
    // By path, a device is known as well as by name.
    assert_eq!(place.vsl(&["status", "other/a.vsl", "--field", "name"]).ok(), "b\n");
    for command in ["format", "sure-erase"] {
        place.vsl(&[command, "a.vsl", "--yes"]).fails(4, &["a (", "is attached", "vsl detach a"]);
        place.vsl(&[command, "b", "--yes"]).fails(4, &["b (", "is attached", "vsl detach b"]);
    }
}

#[test]
fn settings_are_shown_set_and_kept_on_the_device() {
    let place = Place::new();
    place.create("a.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "a.vsl"]).ok();
    assert_eq!(place.vsl(&["trim", "a"]).ok(), "on\n");
    assert_eq!(place.vsl(&["trim", "a", "off"]).ok(), "off\n");
    assert_eq!(place.vsl(&["beacon", "a", "on", "--json"]).json(), json!({ "beacon": true }));
    assert_eq!(place.vsl(&["config", "a", "groomer", "greedy"]).ok(), "greedy\n");
    place.vsl(&["config", "a", "groomer", "lazy"]).fails(2, &["groomer: lazy: expected", "greedy"]);
    place.vsl(&["config", "a", "checkpoint-interval", "1"]).fails(2, &["checkpoint interval: 1 bytes: expected"]);
    place.vsl(&["config", "a", "colour", "red"]).fails(2, &["no setting is called 'colour'", "checkpoint-interval"]);
    place.vsl(&["config", "a", "colour"]).fails(2, &["no setting is called 'colour'"]);
    assert_eq!(place.vsl(&["config", "a", "durability", "write-through"]).ok(), "write-through\n");
    assert_eq!(place.vsl(&["status", "a", "--field", "durability"]).ok(), "write-through\n");
    place.vsl(&["config", "a", "durability", "none"]).fails(2, &["durability: 'none' is not a value", "write-through"]);
    place.vsl(&["config", "a", "power-override", "on"]).fails(2, &["power override: on: expected an emulated card"]);
    place.vsl(&["config", "a", "power-override"]).fails(1, &["the device has no setting power-override"]);
    place.vsl(&["config", "a", "trim", "maybe"]).fails(2, &["trim: 'maybe' is not a value", "on or off"]);
    let kept = json!({
        "attach-at-start": true, "beacon": true, "checkpoint-interval": "512MiB", "drills": false,
        "durability": "write-through", "groomer": "greedy", "label": "a", "nvme-block": "4KiB",
        "page-file": false, "queue-depth": "none", "trim": false
    });
    assert_eq!(place.vsl(&["config", "a", "--json"]).json(), kept);
    place.vsl(&["detach", "a"]).ok();
    place.vsl(&["attach", "a.vsl"]).ok();
    assert_eq!(place.vsl(&["config", "a", "--json"]).json(), kept);

    place.vsl(&["config", "a", "attach-at-start", "off"]).ok();
    place.vsl(&["down"]).ok();
    place.vsl(&["up"]).ok();
    assert!(place.devices().is_empty());
}

#[test]
fn the_service_is_one_and_stops_in_order() {
    let place = Place::new();
    place.create("a.vsl");
    place.vsl(&["status"]).fails(3, &["the service is not running", "vsl up", "vsl status PATH"]);
    let first = place.vsl(&["up", "--json"]).json();
    assert_eq!(place.vsl(&["up", "--json"]).json()["pid"], first["pid"]);
    place.vsl(&["up", "--foreground"]).fails(4, &["a service is running already: process", "vsl down"]);
    place.vsl(&["attach", "a.vsl"]).ok();
    let mut client = place.client("a");
    client.write(0, &[3; 4096]);
    place.vsl(&["down"]).fails(4, &["clients are connected: a (1)", "--force"]);
    assert_eq!(client.read(0, 4096), [3; 4096]);
    place.vsl(&["down", "--force"]).ok();
    client.wait_until_closed();
    for socket in ["run/api.sock", "run/nbd.sock"] {
        assert!(!place.path(socket).exists(), "{socket} is left behind");
    }
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "clean"]).ok(), "true\n");
    assert_eq!(place.vsl(&["down", "--json"]).json(), json!({ "stopped": false }));
}

#[test]
fn a_signal_ends_the_service_cleanly_and_a_kill_leaves_no_obstacle() {
    let place = Place::new();
    place.create("a.vsl");
    let pid = |up: serde_json::Value| {
        rustix::process::Pid::from_raw(up["pid"].as_i64().expect("a pid") as i32).expect("a pid")
    };
    let lock = place.path("run/lock");

    let first = pid(place.vsl(&["up", "--json"]).json());
    place.vsl(&["attach", "a.vsl"]).ok();
    let mut client = place.client("a");
    client.write(0, &[5; 4096]);
    rustix::process::kill_process(first, rustix::process::Signal::TERM).expect("a signal");
    daemon::serve::Lock::wait_until_free(&lock).expect("it ends");
    client.wait_until_closed();
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "clean"]).ok(), "true\n");

    let second = pid(place.vsl(&["up", "--json"]).json());
    rustix::process::kill_process(second, rustix::process::Signal::KILL).expect("a signal");
    daemon::serve::Lock::wait_until_free(&lock).expect("it ends");
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "clean"]).ok(), "false\n");
    place.vsl(&["up"]).ok();
    assert_eq!(place.client("a").read(0, 4096), [5; 4096]);
}

#[test]
fn what_keeps_the_service_from_starting_is_told() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    place.vsl(&["up", "--nbd-listen", &address]).fails(1, &["the service did not start", &address, "in use"]);
    place.vsl(&["up", "--nbd-listen", "somewhere"]).fails(2, &["invalid value 'somewhere'", "--nbd-listen"]);
    place.vsl(&["up", "--tls", "on"]).fails(2, &["TLS needs certificates", "--tls-certificates DIR"]);
    place.vsl(&["up", "--tls", "on", "--tls-certificates", "."]).fails(2, &["server-cert.pem"]);
    place.vsl(&["up", "--tls-certificates", "."]).fails(2, &["--tls-certificates without TLS"]);
    place.vsl(&["up", "--foreground", "--log", "a=b=c"]).fails(2, &["'a=b=c' is not a log filter"]);
    std::fs::create_dir_all(place.path("state")).expect("made");
    std::fs::write(place.path("state/devices.toml"), "device = 1").expect("written");
    place.vsl(&["up"]).fails(1, &["devices.toml", "remove it to start with no devices"]);
}

#[test]
fn tcp_is_served_on_request() {
    let place = Place::new();
    let up = place.vsl(&["up", "--nbd-listen", "127.0.0.1:0", "--json"]).json();
    let addresses = up["addresses"].as_array().expect("addresses");
    assert_eq!(addresses.len(), 2);
    place.vsl(&["attach", "memory:512MiB"]).ok();
    let uri = place.devices()[0]["tcp_uri"].as_str().expect("an address").to_string();
    let authority = uri.strip_prefix("nbd://").and_then(|rest| rest.strip_suffix("/memory")).expect("an address");
    std::net::TcpStream::connect(authority).expect("somebody listens");
}

#[test]
fn a_read_only_device_says_so_and_takes_no_settings() {
    let place = Place::new();
    place.create("a.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "a.vsl", "--read-only"]).ok();
    let device = &place.devices()[0];
    assert_eq!((&device["read_only"], &device["state"]), (&json!(true), &json!("attached-read-only")));
    place.vsl(&["config", "a", "trim", "off"]).fails(2, &["attached read-only"]);
    place.vsl(&["down"]).ok();
    place.vsl(&["up"]).ok();
    assert_eq!(place.devices()[0]["read_only"], json!(true), "it comes back as it was");
}

#[test]
fn directories_and_sockets_are_private() {
    let place = Place::new();
    place.vsl(&["up"]).ok();
    for path in ["run", "state", "run/api.sock", "run/nbd.sock"] {
        let mode = std::fs::metadata(place.path(path)).expect(path).permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}: {mode:o}");
    }
}

#[test]
fn the_log_has_its_lines_and_the_background_service_no_terminal() {
    let place = Place::new();
    place.create("a.vsl");
    place.vsl(&["up", "--log", "debug"]).ok();
    place.vsl(&["attach", "a.vsl"]).ok();
    place.vsl(&["down"]).ok();
    let log = place.log();
    for part in ["ready", "attached", "asked to stop", "stopped"] {
        assert!(log.contains(part), "no '{part}' in: {log}");
    }
}

#[test]
fn serve_needs_no_service() {
    let place = Place::new();
    place.create("a.vsl");
    place.vsl(&["serve", "a.vsl"]).fails(2, &["nothing says where to serve", "--stdio"]);
    let socket = place.path("s.sock");
    let mut server = place
        .command()
        .args(["serve", "a.vsl", "--name", "x", "--socket"])
        .arg(&socket)
        .stderr(Stdio::piped())
        .spawn()
        .expect("vsl runs");
    // The socket appears once it is served; the server ending instead would be a failure.
    while !socket.exists() {
        assert_eq!(server.try_wait().expect("a status"), None, "the server ended");
        std::thread::yield_now();
    }
    let mut client = NbdClient::connect(&socket, "x");
    client.write(4096, &[1; 4096]);
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    assert!(server.wait().expect("a status").success());
    client.wait_until_closed();
    assert!(!socket.exists(), "the socket is left behind");
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "clean"]).ok(), "true\n");
}

#[test]
fn keys_of_an_attached_device_are_changed_while_it_serves() {
    let place = Place::new();
    std::fs::write(place.path("pass"), "correct horse\n").expect("written");
    std::fs::write(place.path("other"), "battery staple\n").expect("written");
    std::fs::write(place.path("safe.key"), [7; 32]).expect("written");
    place.vsl(&["create", "safe.vsl", "--size", "16MiB", "--encrypt", "--passphrase-file", "pass"]).ok();
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "safe.vsl", "--passphrase-file", "pass"]).ok();
    let mut client = place.client("safe");
    client.write(0, &[7; 4096]);
    let added = place.vsl(&["key", "add", "safe", "--passphrase-file", "pass", "--new-key-file", "safe.key"]).ok();
    assert_eq!(added, "added key slot 1; in use now: 0: passphrase, 1: key file\n");
    place.vsl(&["key", "change", "safe", "--passphrase-file", "pass", "--new-passphrase-file", "other"]).ok();
    place.vsl(&["key", "remove", "safe", "--passphrase-file", "pass"]).fails(5, &["passphrase"]);
    assert_eq!(client.read(0, 4096), [7; 4096], "it goes on serving");
    let removed = place.vsl(&["key", "remove", "safe.vsl", "--key-file", "safe.key", "--slot", "0", "--json"]).json();
    assert_eq!(removed, json!({ "slot": 0, "key_slots": ["1: key file"] }));
    place.vsl(&["detach", "safe", "--force"]).ok();
    place.vsl(&["attach", "safe.vsl", "--passphrase-file", "other"]).fails(5, &["passphrase"]);
    place.vsl(&["attach", "safe.vsl", "--key-file", "safe.key"]).ok();
    assert_eq!(place.client("safe").read(0, 4096), [7; 4096]);

    place.vsl(&["trace", "record", "safe", "--to", "t.csv"]).ok();
    place.vsl(&["trace", "record", "safe", "--stop"]).ok();
    let ended = place.vsl(&["trace", "record", "safe", "--ended"]).ok();
    assert!(ended.contains("t.csv  0 requests, 0 left out") && ended.lines().count() == 1, "{ended}");
}
