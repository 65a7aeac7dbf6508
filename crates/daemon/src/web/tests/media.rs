//! Devices as a whole: made, erased, encrypted, given other keys; and what they leave behind.

use super::*;

struct Place {
    api: Api,
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { api: owner(), directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.api.ask(method, &format!("/api/v1{path}"), &body.to_string()).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    async fn fails(&self, method: &str, path: &str, body: Value, status: u16, words: &str) {
        self.api.fails(method, &format!("/api/v1{path}"), &body.to_string(), status, words).await;
    }

    /// A device of 64 MiB, attached, with these fields besides.
    async fn made(&self, name: &str, with: Value) -> Value {
        let mut body = json!({ "paths": [self.path(&format!("{name}.vsl"))], "size_bytes": 64 << 20, "attach": true });
        body.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        self.ok("POST", "/create", body).await
    }

    /// A job once it has ended.
    async fn ended(&self, job: &Value) -> Value {
        for _ in 0..3000 {
            let job = self.ok("GET", &format!("/jobs/{}", job["id"]), json!({})).await;
            if job["state"] != "running" {
                return job;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the job never ends: {job}");
    }

    fn audit(&self) -> String {
        let entries = self.api.service.audit.before(u64::MAX, 100);
        entries.into_iter().map(|entry| format!("{} {} {}\n", entry.method, entry.path, entry.what)).collect()
    }
}

#[tokio::test]
async fn devices_are_made_and_nothing_is_overwritten() {
    let place = Place::new();
    let made = place.made("a", json!({ "label": "first", "sector_bytes": 512, "remember": true })).await;
    let [device] = made.as_array().expect("a list").as_slice() else { panic!("{made}") };
    assert_eq!(device["name"], "a");
    assert_eq!(
        (&device["state"], &device["label"], &device["sector_bytes"]),
        (&json!("attached"), &json!("first"), &json!(512))
    );
    assert_eq!(device["config"]["attach-at-start"], "on");
    let path = place.path("a.vsl");
    place
        .fails("POST", "/create", json!({ "paths": [path], "size_bytes": 1 << 26 }), 409, "in use by this process")
        .await;
    std::fs::write(place.path("mine"), "a letter").expect("written");
    place.fails("POST", "/create", json!({ "paths": [place.path("mine")], "size_bytes": 1 << 26 }), 409, "mine").await;
    assert_eq!(std::fs::read(place.path("mine")).expect("there"), b"a letter");
    for (body, words) in [
        (json!({ "paths": [], "size_bytes": 1 << 26 }), "no path was given"),
        (json!({ "paths": ["b.vsl"], "size_bytes": 1 << 26 }), "must be absolute"),
        (json!({ "paths": [place.path("b,c.vsl")], "size_bytes": 1 << 26 }), "a comma"),
        (json!({ "paths": [place.path("b.vsl")] }), "one of size, profile and emulate"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": 1 << 26, "profile": "iodrive-320-mlc" }), "one of size"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": 1 << 26, "parity": 3 }), "parity: 3"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": 1 << 26, "raw_bytes": 5 }), "is less than the size"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": 1 << 26, "capacity": "all" }), "capacity: 'all'"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": 1 << 26, "sector_bytes": 1000 }), "sector size: 1000"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": 1 << 26, "name": "a/b" }), "cannot be the name"),
        (json!({ "paths": [place.path("b.vsl")], "emulate": "no-card" }), "no-card"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": 1 << 26, "encrypt": {} }), "neither a passphrase nor"),
        (json!({ "paths": [place.path("b.vsl")], "size_bytes": i64::MAX }), "expected less than"),
    ] {
        place.fails("POST", "/create", body, 400, words).await;
        assert!(!place.path("b.vsl").exists(), "a refused request left a file");
    }
    let made = place.ok("POST", "/create", json!({ "paths": [place.path("d0.vsl"), place.path("d1.vsl"), place.path("d2.vsl")], "size_bytes": 1 << 27 })).await;
    assert_eq!(
        (&made[0]["state"], &made[0]["files"], &made[0]["parity_files"]),
        (&json!("detached"), &json!(3), &json!(1)),
        "{made}"
    );
    let made = place
        .ok(
            "POST",
            "/create",
            json!({ "paths": [place.path("card")], "emulate": "iodrive-duo-640-mlc", "scale": 64, "attach": true }),
        )
        .await;
    let names: Vec<_> = made.as_array().expect("a list").iter().map(|device| device["name"].clone()).collect();
    assert_eq!(names, ["card0", "card1"], "one for each module");
}

#[tokio::test]
async fn an_erased_device_is_empty_and_comes_back_under_its_name() {
    let place = Place::new();
    let before = place.made("a", json!({ "remember": true })).await[0].clone();
    place.fails("POST", "/devices/a/erase", json!({ "confirm": "b" }), 400, "is not confirmed").await;
    place
        .fails("POST", "/devices/a/erase", json!({ "confirm": "a", "level": "crypto" }), 400, "no key to destroy")
        .await;
    place
        .fails("POST", "/devices/a/erase", json!({ "confirm": "a", "level": "burn" }), 400, "the request's body")
        .await;
    place.fails("POST", "/devices/b/erase", json!({ "confirm": "b" }), 404, "no attached device").await;
    assert_eq!(
        place.ok("GET", "/devices/a", json!({})).await["uuid"],
        before["uuid"],
        "what was refused changed nothing"
    );
    let job = place.ok("POST", "/devices/a/erase", json!({ "confirm": "a", "level": "purge" })).await;
    assert_eq!((&job["kind"], &job["device"]), (&json!("erase"), &json!("a")));
    let job = place.ended(&job).await;
    assert_eq!(job["state"], "done", "{job}");
    let certificate = &job["result"];
    let after = place.ok("GET", "/devices/a", json!({})).await;
    assert_eq!((&certificate["erased_uuid"], &certificate["uuid"]), (&before["uuid"], &after["uuid"]));
    assert_eq!(
        (&certificate["level"], &certificate["runs"], &after["state"]),
        (&json!("purge"), &json!(1), &json!("attached"))
    );
    assert_eq!(after["config"]["attach-at-start"], "on");
    let events = place.ok("GET", "/devices/a/events", json!({})).await;
    assert!(events.to_string().contains("erased"), "{events}");
    place.ok("POST", "/devices", json!({ "path": "memory:64MiB", "name": "m" })).await;
    place.fails("POST", "/devices/m/erase", json!({ "confirm": "m" }), 400, "lives in memory").await;
}

#[tokio::test]
async fn an_erase_that_was_cancelled_leaves_no_device_until_it_is_run_again() {
    let place = Place::new();
    place.made("a", json!({})).await;
    let registry = &place.api.service.registry;
    let request = crate::api::EraseRequest { confirm: "a".into(), ..Default::default() };
    let erasure = registry.begin_erase("a", &request).expect("begun");
    let state = place.ok("GET", "/devices/a", json!({})).await;
    assert_eq!((&state["state"], &state["health"]), (&json!("formatting"), &json!("being erased")));
    place.fails("POST", "/devices/a/detach", json!({}), 409, "is being erased").await;
    place.fails("POST", "/devices/a/erase", json!({ "confirm": "a" }), 409, "not attached just now").await;
    place.fails("POST", "/devices", json!({ "path": place.path("a.vsl"), "name": "z" }), 409, "attached already").await;
    let mut steps = 0;
    let cut = registry.erase(&erasure, &mut |_| {
        steps += 1;
        steps < 3
    });
    assert!(cut.expect_err("cut").error.contains("erase"), "it says what it is");
    let state = place.ok("GET", "/devices/a", json!({})).await;
    assert_eq!(state["state"], "error", "{state}");
    place
        .fails("POST", "/devices", json!({ "path": place.path("a.vsl"), "name": "z" }), 409, "an erase of it was cut")
        .await;
    // A service that starts anew knows of it, though it was not to attach the device, and can go on.
    let remembered = place.api.directory.path().join("devices.toml");
    let state = || StateFile::open(remembered.clone()).expect("parsed");
    let exports = Exports::start(&place.path("other.sock"), None, Vec::new(), &Listen::default()).expect("listens");
    let later = Arc::new(Registry::new(exports, state(), None).expect("opened"));
    later.attach_remembered();
    let view = later.view("a").expect("listed");
    assert_eq!((later.health().failed, view.text("state")), (1, "error"));
    assert!(view.text("health").contains("an erase of it was cut"), "{view:?}");
    drop(later);
    let job = place.ok("POST", "/devices/a/erase", json!({ "confirm": "a" })).await;
    let job = place.ended(&job).await;
    assert_eq!((&job["state"], &job["result"]["runs"]), (&json!("done"), &json!(2)), "{job}");
    assert_eq!(state().devices(), []);
    assert_eq!(place.ok("GET", "/devices/a", json!({})).await["state"], "attached");
}

#[tokio::test]
async fn keys_are_added_changed_and_removed_while_it_serves_and_no_secret_is_kept() {
    let place = Place::new();
    let secrets = ["never to be seen", "nor this one", "and not that"];
    let by = |number: usize| json!({ "passphrase": secrets[number] });
    place.made("a", json!({ "encrypt": by(0) })).await;
    place
        .fails("PATCH", "/devices/a/config", json!({ "attach-at-start": "on" }), 400, "opened with a passphrase")
        .await;
    place.fails("POST", "/devices/a/keys", json!({ "new": by(1) }), 400, "nothing was given that opens a").await;
    place.fails("POST", "/devices/a/keys", json!({ "with": by(1), "new": by(1) }), 403, "opens").await;
    place.fails("POST", "/devices/a/keys", json!({ "with": by(0), "new": {} }), 400, "neither a passphrase").await;
    let added = place.ok("POST", "/devices/a/keys", json!({ "with": by(0), "new": by(1) })).await;
    assert_eq!(added, json!({ "slot": 1, "key_slots": ["0: passphrase", "1: passphrase"] }));
    let changed = place.ok("PUT", "/devices/a/keys", json!({ "with": by(0), "new": by(2) })).await;
    assert_eq!(changed["slot"], 0);
    place.fails("POST", "/devices/a/keys/remove", json!({ "with": by(0) }), 403, "opens").await;
    place.fails("POST", "/devices/a/keys/remove", json!({ "with": by(2), "slot": 3 }), 409, "slot 3 is empty").await;
    let removed = place.ok("POST", "/devices/a/keys/remove", json!({ "with": by(2), "slot": 1 })).await;
    assert_eq!(removed["key_slots"], json!(["0: passphrase"]));
    place.fails("POST", "/devices/a/keys/remove", json!({ "with": by(2) }), 409, "is the last one").await;
    assert_eq!(place.ok("GET", "/devices/a", json!({})).await["key_slots"], json!(["0: passphrase"]));

    // With a key file the service attaches it by itself, and what would end that is refused.
    let file = |name: &str, byte: u8| {
        std::fs::write(place.path(name), [byte; 32]).expect("written");
        json!({ "key_file": place.path(name) })
    };
    let (first, second) = (file("first.key", 1), file("second.key", 2));
    place.ok("POST", "/devices/a/keys", json!({ "with": by(2), "new": first })).await;
    place.ok("POST", "/devices/a/detach", json!({})).await;
    let path = place.path("a.vsl");
    place.fails("POST", "/devices", json!({ "path": path, "passphrase": secrets[0] }), 403, "passphrase").await;
    place.ok("POST", "/devices", json!({ "path": path, "key_file": place.path("first.key"), "remember": true })).await;
    place.fails("PUT", "/devices/a/keys", json!({ "new": by(1) }), 409, "would open it no more").await;
    place
        .fails("POST", "/devices/a/keys/remove", json!({ "with": by(2), "slot": 1 }), 409, "would open it no more")
        .await;
    place.ok("PUT", "/devices/a/keys", json!({ "new": second })).await;
    let kept = std::fs::read_to_string(place.api.directory.path().join("devices.toml")).expect("kept");
    assert!(kept.contains("second.key") && !kept.contains("first.key"), "{kept}");

    // Formatted, it takes encrypt or plain, and nothing by itself.
    place.fails("POST", "/devices/a/format", json!({ "confirm": "a" }), 409, "is encrypted").await;
    let formatted = place.ok("POST", "/devices/a/format", json!({ "confirm": "a", "encrypt": by(1) })).await;
    assert_eq!(
        (&formatted["key_slots"], &formatted["config"]["attach-at-start"]),
        (&json!(["0: passphrase"]), &json!("off"))
    );
    let formatted = place.ok("POST", "/devices/a/format", json!({ "confirm": "a", "plain": true })).await;
    assert_eq!(formatted["key_slots"], Value::Null);
    place.fails("POST", "/devices/a/keys", json!({ "new": by(1) }), 409, "not encrypted").await;
    let formatted = place.ok("POST", "/devices/a/format", json!({ "confirm": "a", "encrypt": by(0) })).await;
    assert_eq!(formatted["encryption"], "aes-256-gcm");
    let job =
        place.ok("POST", "/devices/a/erase", json!({ "confirm": "a", "level": "crypto", "encrypt": by(2) })).await;
    let job = place.ended(&job).await;
    assert_eq!((&job["state"], &job["result"]["keys_destroyed"]), (&json!("done"), &json!(1)), "{job}");
    place.ok("POST", "/devices/a/keys", json!({ "with": by(2), "new": by(1) })).await;

    let jobs = place.ok("GET", "/jobs", json!({})).await.to_string();
    let report = place.api.ask("GET", "/api/v1/bugreport", "").await;
    assert_eq!(report.0, 200);
    let audit = place.audit();
    assert!(audit.contains("/devices/a/keys") && audit.contains("(hidden)") && audit.contains("second.key"), "{audit}");
    for secret in secrets {
        assert!(!audit.contains(secret), "the audit log holds a secret: {audit}");
        assert!(!jobs.contains(secret), "a job holds a secret: {jobs}");
    }
}

#[tokio::test]
async fn ended_recordings_are_listed_whoever_ended_them() {
    let place = Place::new();
    place.made("a", json!({})).await;
    let list = || place.ok("GET", "/devices/a/recordings", json!({}));
    assert_eq!(list().await, json!([]));
    let record = |name: &str| json!({ "path": place.path(name) });
    place.ok("POST", "/devices/a/record", record("1.csv")).await;
    assert_eq!(list().await, json!([]), "one that goes on has not ended");
    place.ok("POST", "/devices/a/record/stop", json!({})).await;
    place.ok("POST", "/devices/a/record", record("2.csv")).await;
    // A detach ends it as well, and what has ended is known to the next attach.
    place.ok("POST", "/devices/a/detach", json!({})).await;
    place.ok("POST", "/devices", json!({ "path": place.path("a.vsl") })).await;
    std::fs::remove_file(place.path("1.csv")).expect("there");
    let ended = list().await;
    let seen: Vec<_> =
        ended.as_array().expect("a list").iter().map(|one| (one["path"].clone(), one["exists"].clone())).collect();
    assert_eq!(seen, [(json!(place.path("2.csv")), json!(true)), (json!(place.path("1.csv")), json!(false))]);
    assert_eq!((&ended[0]["format"], &ended[0]["written"]), (&json!("msr"), &json!(0)));
    place.fails("GET", "/devices/b/recordings", json!({}), 404, "no attached device").await;
}
