//! Snapshots by schedule, with a clock of the test's own.

use super::*;
use crate::clock::now_s;

const SCHEDULE: &str = "/api/v1/devices/m/snapshot-schedule";
const SNAPSHOTS: &str = "/api/v1/devices/m/snapshots";

impl Api {
    async fn scheduled(&self) -> Value {
        self.ask("GET", SNAPSHOTS, "").await.1
    }

    async fn names(&self) -> Vec<String> {
        let listed = self.scheduled().await;
        let names = listed["snapshots"].as_array().expect("a list").iter();
        names.map(|one| one["name"].as_str().expect("a name").to_string()).collect()
    }

    /// The ticker's part, until the device has answered.
    async fn at(&self, now: u64) {
        self.service.registry.keep_schedules(now);
        // An answer that comes behind it is that of the device after it did what it was asked.
        self.scheduled().await;
        self.service.registry.keep_schedules(now);
    }

    async fn events(&self, event: &str) -> Vec<String> {
        let listed = self.ask("GET", "/api/v1/devices/m/events", "").await.1;
        let all = listed["events"].as_array().expect("a list").iter();
        all.filter(|one| one["event"] == event).map(|one| one["what"].as_str().expect("words").to_string()).collect()
    }
}

async fn attached() -> Api {
    let api = owner();
    let (status, device) = api.ask("POST", "/api/v1/devices", r#"{"path":"memory:512MiB","name":"m"}"#).await;
    assert_eq!(status, 201, "{device}");
    api
}

#[tokio::test]
async fn a_schedule_makes_and_deletes_its_own_snapshots() {
    let api = attached().await;
    for (method, path, body) in [
        ("POST", SNAPSHOTS, r#"{"name":"hourly-2026-11-25T04:00Z"}"#),
        ("PATCH", "/api/v1/devices/m/snapshots/mine", r#"{"name":"daily-2026-11-25T04:00Z"}"#),
    ] {
        api.fails(method, path, body, 400, "is a name that schedules give").await;
    }
    api.fails("PUT", SCHEDULE, r#"{"hourly":1001}"#, 400, "hourly: 1001").await;
    api.fails("PUT", SCHEDULE, "[1, 2]", 400, "a list, expected an object").await;
    api.fails("PUT", SCHEDULE, r#"{"yearly":1}"#, 400, "unknown field `yearly`").await;
    assert_eq!(api.ask("POST", SNAPSHOTS, r#"{"name":"mine"}"#).await.0, 201);
    let (status, listed) = api.ask("PUT", SCHEDULE, r#"{"hourly":2,"daily":1}"#).await;
    assert_eq!((status, &listed["schedule"]["keep"]["hourly"]), (200, &json!(2)), "{listed}");
    let first = api.names().await[1].clone();
    assert!(first.starts_with("daily-"), "the first is made at once: {first}");
    let begin = now_s() / 86_400 * 86_400 + 86_400;
    for hour in 0..4 {
        for second in [0, 1, 59, 60, 3599] {
            api.at(begin + hour * 3600 + second).await;
        }
    }
    let names = api.names().await;
    assert_eq!(names.len(), 4, "mine, the day's and those of two hours: {names:?}");
    assert!(names[0] == "mine" && names[1].starts_with("daily-") && names[1] != first, "{names:?}");
    assert!(names[2].ends_with("T02:00Z") && names[3].ends_with("T03:00Z"), "{names:?}");
    assert_eq!(
        api.events("snapshot-deleted").await,
        [format!("{first}, by schedule"), format!("{}, by schedule", names[2].replace("T02", "T01")),]
    );
    assert_eq!(api.events("snapshot-made").await.len(), 6, "mine, the first, and four");
    // Less is kept at once, and nothing goes any more once it ends.
    let (_, listed) = api.ask("PUT", SCHEDULE, r#"{"hourly":1}"#).await;
    assert!(listed["schedule"]["last"].as_u64().is_some_and(|last| last >= now_s() - 60), "{listed}");
    assert_eq!(api.ask("PUT", SCHEDULE, "{}").await.1["schedule"], Value::Null);
    let names = api.names().await;
    api.at(begin + 50 * 3600).await;
    assert_eq!(api.names().await, names);
}

#[tokio::test]
async fn many_go_a_few_at_a_time() {
    let api = attached().await;
    api.ask("PUT", SCHEDULE, r#"{"hourly":20}"#).await;
    let begin = now_s() / 3600 * 3600;
    for hour in 1..20 {
        api.at(begin + hour * 3600).await;
    }
    assert_eq!(api.names().await.len(), 20);
    // The clock of the request is behind those that the test made: the ticker's is not.
    api.ask("PUT", SCHEDULE, r#"{"hourly":3}"#).await;
    assert_eq!(api.names().await.len(), 20);
    for second in 0..5 {
        api.at(begin + 20 * 3600 + second).await;
    }
    assert_eq!(api.names().await.len(), 3);
    assert_eq!(api.events("snapshot-deleted").await.len(), 5, "a line for each look that deleted some");
}

#[tokio::test]
async fn a_failure_is_told_once_an_hour_and_shown() {
    let api = attached().await;
    api.ask("PUT", SCHEDULE, r#"{"hourly":2}"#).await;
    assert_eq!(api.ask("POST", "/api/v1/devices/m/detach", "{}").await.0, 204);
    // It has the schedule under its format's identity: another device of the name has none.
    let (_, other) = api.ask("POST", "/api/v1/devices", r#"{"path":"memory:512MiB","name":"m"}"#).await;
    assert_eq!(other["name"], "m");
    api.at(now_s() + 3600).await;
    assert_eq!((api.names().await.len(), &api.scheduled().await["schedule"]), (0, &Value::Null));
    // Where none can be made, there is none by schedule.
    let handle = api.service.registry.handle("m").expect("attached");
    let fill = |device: &mut device::Device| {
        let named = |number| device::SnapshotChange::Create { name: format!("n{number}"), created: 0 };
        (0..4096).try_for_each(|number| device.change_snapshots(&named(number)))
    };
    handle.ask(fill).expect("made");
    api.fails("PUT", SCHEDULE, r#"{"hourly":2}"#, 409, "4096").await;
    api.service.registry.delete_snapshot("m", "n0").expect("deleted");
    assert_eq!(api.ask("PUT", SCHEDULE, r#"{"hourly":2}"#).await.0, 200);
    let begin = now_s() / 3600 * 3600 + 3600;
    for second in [0, 1, 60, 61, 3540, 3600, 3601, 3660, 5400] {
        api.at(begin + second).await;
    }
    assert_eq!(api.events("snapshot-failed").await.len(), 2, "once in each hour");
    assert!(api.scheduled().await["schedule"]["failure"].as_str().is_some_and(|why| why.contains("4096")));
    let first = api.names().await.pop().expect("the first");
    // Where fewer are to be kept, the oldest makes room.
    api.ask("PUT", SCHEDULE, r#"{"hourly":1}"#).await;
    api.at(begin + 6000).await;
    assert_eq!(api.events("snapshot-deleted").await.last(), Some(&format!("{first}, by schedule")));
    api.at(begin + 2 * 3600 - 60).await;
    let listed = api.scheduled().await;
    assert_eq!(listed["schedule"]["failure"], Value::Null, "it goes on");
    let made = api.events("snapshot-made").await;
    assert!(made.last().is_some_and(|made| made.contains("by schedule, the first since")), "{:?}", made.last());
}

#[tokio::test]
async fn clones_are_made_listed_deleted_and_promoted() {
    const CLONES: &str = "/api/v1/devices/m/clones";
    let api = attached().await;
    assert_eq!(api.ask("POST", SNAPSHOTS, r#"{"name":"base"}"#).await.0, 201);
    let (status, made) = api.ask("POST", CLONES, r#"{"name":"one","snapshot":"base"}"#).await;
    assert_eq!((status, &made["snapshot"], &made["own_bytes"]), (201, &json!("base"), &json!(0)), "{made}");
    assert_eq!(api.ask("POST", CLONES, r#"{"name":"two","snapshot":"base"}"#).await.0, 201);
    let gone = r#"{"name":"three","snapshot":"gone"}"#;
    for (method, path, body, status, says) in [
        ("POST", CLONES, r#"{"name":"base","snapshot":"base"}"#, 409, "of the name \"base\" already"),
        ("POST", CLONES, r#"{"name":"daily-2026-11-25T04:00Z","snapshot":"base"}"#, 400, "a name that schedules give"),
        ("POST", CLONES, gone, 404, "there is no snapshot \"gone\""),
        ("DELETE", "/api/v1/devices/m/clones/base", "", 404, "there is no clone \"base\""),
        ("DELETE", "/api/v1/devices/m/snapshots/base", "", 409, "stands on the snapshot \"base\""),
        ("POST", "/api/v1/devices/m/clones/one/promote", r#"{"confirm":"one"}"#, 409, "not confirmed"),
    ] {
        api.fails(method, path, body, status, says).await;
    }
    let listed = api.scheduled().await;
    assert_eq!(listed["snapshots"][0]["clones"][1]["name"], "two", "{listed}");
    let (status, left) = api.ask("DELETE", "/api/v1/devices/m/clones/one", "").await;
    assert_eq!((status, left["clones"].as_array().map(Vec::len)), (200, Some(1)), "{left}");
    let (status, left) = api.ask("POST", "/api/v1/devices/m/clones/two/promote", r#"{"confirm":"m"}"#).await;
    assert_eq!((status, left["clones"].as_array().map(Vec::len)), (200, Some(0)), "{left}");
    assert_eq!(api.events("clone-promoted").await, ["two"]);
    assert_eq!(api.ask("DELETE", "/api/v1/devices/m/snapshots/base", "").await.0, 200);
}
