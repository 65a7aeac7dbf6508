//! What `vsl` does with device files while no service runs.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use serde_json::json;

use crate::common::Place;

#[test]
fn create_makes_what_was_asked_for() {
    let place = Place::new();
    let made = place
        .vsl(&[
            "create",
            "a.vsl",
            "--size",
            "64MiB",
            "--raw",
            "256MiB",
            "--sector",
            "512",
            "--capacity",
            "50%",
            "--json",
        ])
        .json();
    let device = &made["devices"][0];
    assert_eq!((&device["sector_bytes"], &device["bytes"]), (&json!(512), &json!(32 << 20)));
    assert_eq!((&device["advertised_bytes"], &device["raw_bytes"]), (&json!(64 << 20), &json!(256 << 20)));
    assert_eq!((&device["label"], &device["state"]), (&json!("a"), &json!("detached")));
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "uuid"]).ok().trim(), device["uuid"]);
}

#[test]
fn create_says_what_it_holds_back() {
    let place = Place::new();
    let said = place.vsl(&["create", "a.vsl", "--size", "1GiB"]);
    assert!(said.err.contains("28 %"), "{}", said.err);
    let raw: u64 = place.vsl(&["status", "a.vsl", "--field", "raw_bytes"]).ok().trim().parse().expect("a number");
    let wanted = (1u64 << 30) * 128 / 100;
    assert!((wanted..wanted + (4 << 20)).contains(&raw), "{raw}");
}

#[test]
fn a_profile_makes_a_device_for_each_module() {
    let place = Place::new();
    let made = place.vsl(&["create", "fct", "--profile", "iodrive-duo-640-mlc", "--json"]).json();
    let devices = made["devices"].as_array().expect("a list");
    assert_eq!(devices.len(), 2);
    for (module, device) in devices.iter().enumerate() {
        assert_eq!(device["path"], json!(format!("fct{module}.vsl")));
        assert_eq!((&device["bytes"], &device["profile"]), (&json!(320_000_000_000u64), &json!("iodrive-duo-640-mlc")));
        assert!(device["raw_bytes"].as_u64() >= Some(400_000_000_000));
    }
    assert_ne!(devices[0]["uuid"], devices[1]["uuid"]);
    // One module in the way: nothing is made, nothing is touched.
    std::fs::remove_file(place.path("fct0.vsl")).expect("removed");
    place.vsl(&["create", "fct", "--profile", "iodrive-duo-640-mlc"]).fails(4, &["fct1.vsl: exists already"]);
    assert!(!place.path("fct0.vsl").exists());
    place.vsl(&["create", "one.vsl", "--profile", "iodrive-duo-640-mlc", "--module", "1"]).ok();
    place
        .vsl(&["create", "two.vsl", "--profile", "iodrive-duo-640-mlc", "--module", "2"])
        .fails(2, &["module 2: iodrive-duo-640-mlc has 2 modules", "0 to 1"]);
    place
        .vsl(&["create", "x.vsl", "--profile", "nothing"])
        .fails(2, &["no profile is called 'nothing'", "vsl profiles"]);
}

#[test]
fn create_destroys_nothing() {
    let place = Place::new();
    std::fs::write(place.path("precious"), "data").expect("written");
    place.vsl(&["create", "precious", "--size", "16MiB", "--yes"]).fails(4, &["precious: exists already"]);
    assert_eq!(std::fs::read_to_string(place.path("precious")).expect("read"), "data");
    place.create("a.vsl");
    place.vsl(&["create", "a.vsl", "--size", "16MiB"]).fails(4, &["a.vsl: exists already", "vsl format"]);
    place.vsl(&["create", "nowhere/a.vsl", "--size", "16MiB"]).fails(3, &["nowhere/a.vsl: No such file"]);
    place
        .vsl(&["create", "b.vsl", "--size", "1GiB", "--raw", "1MiB"])
        .fails(2, &["the raw capacity, 1.05 MB (1.00 MiB), is less than the size, 1.07 GB"]);
    place.vsl(&["create", "b.vsl", "--size", "16383PiB"]).fails(2, &[]);
    place.vsl(&["create", "b.vsl", "--size", "16MiB", "--label", &"x".repeat(64)]).fails(2, &["label", "63"]);
    // What is remarked comes after success only, and the help is that of the command.
    let refused = place.vsl(&["create", "b.vsl", "--size", "0"]);
    assert!(!refused.err.contains("over-provisioning:"), "{}", refused.err);
    refused.fails(2, &["capacity: 0 bytes", "see `vsl create --help`"]);
    assert!(!place.path("b.vsl").exists());
}

#[test]
fn format_asks_and_then_does_as_told() {
    let place = Place::new();
    place.vsl(&["create", "a.vsl", "--size", "64MiB", "--label", "old"]).ok();
    let uuid = place.vsl(&["status", "a.vsl", "--field", "uuid"]).ok();
    place
        .vsl(&["format", "a.vsl"])
        .fails(4, &["everything on a.vsl (label \"old\"", "taken on disk", uuid.trim(), "--yes"]);
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "uuid"]).ok(), uuid, "nothing happened");
    let made =
        place.vsl(&["format", "a.vsl", "--capacity", "maximum-write", "--sector", "1024", "--yes", "--json"]).json();
    let device = &made["devices"][0];
    assert_eq!((&device["bytes"], &device["sector_bytes"]), (&json!(32 << 20), &json!(1024)));
    assert_eq!(device["label"], json!("old"), "what is not said stays");
    assert_ne!(device["uuid"], json!(uuid.trim()));
    place.vsl(&["format", "a.vsl", "--capacity", "900%", "--yes"]).fails(2, &["capacity: ", "expected"]);
    place.vsl(&["format", "nowhere", "--yes"]).fails(3, &["nowhere: No such file"]);
    std::fs::write(place.path("text"), "x".repeat(1 << 20)).expect("written");
    place.vsl(&["format", "text", "--yes"]).fails(4, &["text: ", "vsl create"]);
}

#[test]
fn sure_erase_leaves_nothing() {
    let place = Place::new();
    place.create("a.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "a.vsl"]).ok();
    let secret = b"a secret that must not survive..".repeat(128);
    place.client("a").write(0, &secret);
    place.vsl(&["down", "--force"]).ok();
    let holds = |place: &Place| {
        let bytes = std::fs::read(place.path("a.vsl")).expect("read");
        bytes.windows(32).any(|window| window == &secret[..32])
    };
    assert!(holds(&place), "the device holds what was written");
    place.vsl(&["sure-erase", "a.vsl"]).fails(4, &["everything on a.vsl", "--yes"]);
    assert!(holds(&place), "nothing happened");
    place.vsl(&["sure-erase", "a.vsl", "--crypto", "--yes"]).fails(2, &["not encrypted", "vsl sure-erase --clear"]);
    assert!(holds(&place), "nothing happened");
    let erased = place.vsl(&["sure-erase", "a.vsl", "--yes", "--json"]).json();
    assert_eq!((&erased["devices"][0]["bytes"], &erased["devices"][0]["clean"]), (&json!(16 << 20), &json!(true)));
    assert!(!holds(&place), "it is gone");
    let certificate = &erased["certificate"];
    assert_eq!((&certificate["level"], &certificate["uuid"]), (&json!("clear"), &erased["devices"][0]["uuid"]));
    assert!(certificate["verified_bytes"].as_u64() >= Some(128 << 10), "{certificate}");
    let text = place.vsl(&["sure-erase", "a.vsl", "--purge", "--yes"]).ok();
    for part in ["NIST SP 800-88  purge: overwritten with zeros", "encrypted now   no", "runs            1"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Killed again and again, wherever it happens to be: in the end it is finished, and nothing is left.
#[test]
fn a_killed_erase_is_finished_by_the_next() {
    let place = Place::new();
    place.create("a.vsl");
    let file = std::fs::File::options().write(true).open(place.path("a.vsl")).expect("opened");
    let trace = b"a trace of what was written here".repeat(32 << 10);
    for mib in 1..300 {
        std::os::unix::fs::FileExt::write_all_at(&file, &trace, mib << 20).expect("written");
    }
    drop(file);
    let erasing = || place.vsl(&["status", "a.vsl", "--field", "erasing"]).out.contains("clear");
    let mut cuts = 0;
    for _ in 0..40 {
        let mut erase = place.command().args(["sure-erase", "a.vsl", "--clear", "--yes"]).spawn().expect("vsl runs");
        // The first is killed as soon as it shows that it has begun, those that go on after it a little later.
        erasing();
        while !erasing() && erase.try_wait().expect("a child").is_none() {}
        erase.kill().expect("killed or gone");
        erase.wait().expect("waited for");
        if erasing() {
            cuts += 1;
            place.vsl(&["format", "a.vsl", "--yes"]).fails(4, &["an erase of it was cut", "vsl sure-erase --clear"]);
            if cuts >= 3 {
                break;
            }
        }
    }
    assert!(cuts >= 3, "no erase was cut midway");
    let erased = place.vsl(&["sure-erase", "a.vsl", "--yes", "--json"]).json();
    assert!(erased["certificate"]["runs"].as_u64() >= Some(2), "{erased}");
    let bytes = std::fs::read(place.path("a.vsl")).expect("read");
    assert!(bytes[128 << 10..].chunks(4096).all(|unit| *unit == [0; 4096][..unit.len()]), "something is left");
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "state"]).ok().trim(), "detached");
}

#[test]
fn an_encrypted_device_opens_with_its_keys_only() {
    let place = Place::new();
    for (name, content) in [("pass", "open sesame\n"), ("other", "open barley\n"), ("key", &"k".repeat(64))] {
        std::fs::write(place.path(name), content).expect("written");
    }
    fn made<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
        [&["create", "a.vsl", "--size", "16MiB"], arguments].concat()
    }
    place.vsl(&made(&["--encrypt"])).fails(2, &["there is no terminal", "--passphrase-file"]);
    place.vsl(&made(&["--key-file", "key"])).fails(2, &["but not --encrypt"]);
    place.vsl(&made(&["--encrypt", "--key-file", "nowhere"])).fails(3, &["nowhere: "]);
    std::fs::write(place.path("short"), "too short").expect("written");
    place.vsl(&made(&["--encrypt", "--key-file", "short"])).fails(2, &["short: 9 bytes", "expected 32"]);
    place
        .vsl(&["create", "e.vsl", "--emulate", "iodrive-320-mlc", "--encrypt", "--key-file", "key"])
        .fails(2, &["--encrypt", "--emulate"]);
    place.vsl(&made(&["--encrypt", "--key-file", "key"])).ok();
    assert_eq!(place.vsl(&["status", "a.vsl", "--field", "encryption"]).ok().trim(), "aes-256-gcm");
    let change = |arguments: &[&str]| place.vsl(&[&["key"], arguments].concat());
    change(&["add", "a.vsl", "--key-file", "other", "--new-passphrase-file", "pass"]).fails(2, &["other: 12 bytes"]);
    change(&["add", "a.vsl", "--passphrase-file", "other", "--new-passphrase-file", "pass"])
        .fails(5, &["the passphrase opens none of its key slots"]);
    let added = change(&["add", "a.vsl", "--key-file", "key", "--new-passphrase-file", "pass", "--json"]).json();
    assert_eq!(added, json!({ "slot": 1, "key_slots": ["0: key file", "1: passphrase"] }));
    change(&["remove", "a.vsl", "--passphrase-file", "pass", "--slot", "0"]).ok();
    change(&["remove", "a.vsl", "--passphrase-file", "pass"]).fails(4, &["key slot 1 is the last one"]);
    change(&["change", "a.vsl", "--passphrase-file", "pass", "--new-passphrase-file", "other"]).ok();

    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "a.vsl"]).fails(5, &["it is encrypted", "--passphrase-file"]);
    place.vsl(&["attach", "a.vsl", "--passphrase-file", "pass"]).fails(5, &["opens none of its key slots"]);
    let said = place.vsl(&["attach", "a.vsl", "--passphrase-file", "other"]);
    assert!(said.err.contains("its passphrase is kept nowhere"), "{}", said.err);
    assert_eq!(place.devices()[0]["encryption"], json!("aes-256-gcm"));
    place.vsl(&["config", "a", "attach-at-start", "on"]).fails(2, &["passphrase", "--key-file"]);
    let secret = b"a secret that must not be read..".repeat(128);
    place.client("a").write(0, &secret);
    place.vsl(&["detach", "a", "--force"]).ok();
    let bytes = std::fs::read(place.path("a.vsl")).expect("read");
    assert!(!bytes.windows(32).any(|window| window == &secret[..32]), "what was written stands on the store");
    assert!(!place.log().contains("barley"));
    let change = place.vsl(&["key", "change", "a.vsl", "--passphrase-file", "other", "--new-key-file", "key"]);
    change.ok();
    place.vsl(&["attach", "a.vsl", "--key-file", "key"]).ok();
    place.vsl(&["down", "--force"]).ok();
    place.vsl(&["up"]).ok();
    assert_eq!(place.devices()[0]["state"], json!("attached"), "its key file is remembered");
    place.vsl(&["down", "--force"]).ok();

    place.vsl(&["format", "a.vsl", "--yes"]).fails(2, &["a.vsl is encrypted", "--plain"]);
    let erased = place.vsl(&["sure-erase", "a.vsl", "--crypto", "--yes", "--json"]).json();
    assert_eq!(
        (&erased["certificate"]["keys_destroyed"], &erased["certificate"]["level"]),
        (&json!(1), &json!("crypto"))
    );
    assert!(erased["devices"][0]["encryption"].is_null());
    place.vsl(&["format", "a.vsl", "--encrypt", "--key-file", "key", "--yes"]).ok();
    place.vsl(&["format", "a.vsl", "--plain", "--yes"]).ok();
    place.vsl(&["key", "remove", "a.vsl", "--key-file", "key"]).fails(2, &["it is not encrypted"]);
}

/// What comes through a pipe is there once only.
#[test]
fn a_passphrase_comes_through_a_pipe_as_well() {
    let place = Place::new();
    std::fs::write(place.path("pass"), "open sesame\n").expect("written");
    place.vsl(&["create", "a.vsl", "--size", "16MiB", "--encrypt", "--passphrase-file", "pass"]).ok();
    place.vsl(&["up"]).ok();
    let attach = |passphrase: &[u8]| {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        std::io::Write::write_all(&mut writer, passphrase).expect("written");
        drop(writer);
        let mut command = place.command();
        let command = command.args(["attach", "a.vsl", "--passphrase-file", "/dev/stdin"]).stdin(reader);
        let output = command.output().expect("vsl runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (code, err) = attach(b"open s\xffsame\n");
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("/dev/stdin: ") && err.contains("UTF-8"), "{err}");
    let (code, err) = attach(b"open sesame\n");
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(place.devices()[0]["state"], json!("attached"));
}

#[test]
fn a_device_in_use_elsewhere_is_not_touched() {
    let place = Place::new();
    place.create("a.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "a.vsl"]).ok();
    // From here the service is not seen, only its lock on the file.
    let blind = |arguments: &[&str]| {
        let output =
            place.command().args(arguments).env("OPENVSL_RUNTIME_DIR", place.path("other")).output().expect("vsl runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    for arguments in [["format", "a.vsl", "--yes"], ["sure-erase", "a.vsl", "--yes"]] {
        let (code, err) = blind(&arguments);
        assert_eq!(code, Some(4), "{err}");
        assert!(err.contains("a.vsl: in use by") && err.contains("detach it there first"), "{err}");
    }
}

#[test]
fn errors_are_json_when_results_are() {
    let place = Place::new();
    for (arguments, code, kind) in [
        (&["--json", "status", "nowhere.vsl"][..], 3, "not-found"),
        (&["create", "x", "--size", "many", "--json"], 2, "invalid"),
        (&["frobnicate", "--json"], 2, "invalid"),
        (&["status", "--json", "--field", "colour"], 2, "invalid"),
    ] {
        let said = place.vsl(arguments);
        assert_eq!(said.code, Some(code), "{}", said.err);
        let failure: serde_json::Value = serde_json::from_str(&said.err).unwrap_or_else(|_| panic!("{}", said.err));
        assert_eq!(failure["kind"], json!(kind));
        assert!(failure["error"].as_str().is_some_and(|error| !error.is_empty()), "{failure}");
        assert!(failure["help"].as_str().is_some_and(|help| !help.is_empty()), "{failure}");
        assert!(said.out.is_empty(), "{}", said.out);
    }
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = place.command().args(["completions", "bash"]).stdout(writer).output().expect("vsl runs");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_file_that_may_not_be_read_is_denied() {
    if rustix::process::geteuid().is_root() {
        // Root may read everything: somebody else asks.
        let place = Place::new();
        place.create("a.vsl");
        std::fs::set_permissions(place.path("a.vsl"), PermissionsExt::from_mode(0o600)).expect("set");
        std::fs::set_permissions(place.path("."), PermissionsExt::from_mode(0o755)).expect("set");
        let output = place.command().args(["status", "a.vsl"]).uid(65534).gid(65534).output().expect("vsl runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let output =
            place.command().args(["format", "a.vsl", "--yes"]).uid(65534).gid(65534).output().expect("vsl runs");
        assert_eq!(output.status.code(), Some(5), "{output:?}");
    }
}

#[test]
fn names_are_completed_by_the_program() {
    let place = Place::new();
    place.create("flash.vsl");
    place.vsl(&["up"]).ok();
    place.vsl(&["attach", "flash.vsl", "--name", "card0"]).ok();
    let completed = |words: &[&str]| {
        let mut command = place.command();
        command.args(["--", "vsl"]).args(words).env("VSL_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        String::from_utf8(command.output().expect("vsl runs").stdout).expect("UTF-8")
    };
    assert_eq!(completed(&["detach", "car"]).trim(), "card0");
    assert_eq!(completed(&["config", "card0", "chec"]).trim(), "checkpoint-interval");
    assert_eq!(completed(&["create", "x", "--emulate", "iodrive2-1"]).trim(), "iodrive2-1200-mlc");
    place.vsl(&["down"]).ok();
    assert_eq!(completed(&["detach", "car"]).trim(), "", "without a service there are none");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let place = Place::new();
    place.vsl(&["man", "pages"]).ok();
    for command in [
        "create",
        "format",
        "attach",
        "detach",
        "status",
        "config",
        "sure-erase",
        "key",
        "key-add",
        "beacon",
        "trim",
        "up",
        "down",
        "serve",
    ] {
        assert!(place.path(&format!("pages/vsl-{command}.1")).exists(), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let text = place.vsl(&["completions", shell]).ok();
        assert!(text.contains("VSL_COMPLETE"), "{shell}: {text}");
    }
    assert!(place.vsl(&["man"]).ok().contains(".TH vsl"));
    place.vsl(&["completions", "nosuch"]).fails(2, &["nosuch"]);
}
