//! The API as its clients see it.

mod bounds;
mod media;
mod snapshots;

use axum::body::Body as HttpBody;
use axum::extract::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt;

use super::*;
use crate::api::{NewAccount, Role};
use crate::hosts::passing;

struct Api {
    router: Router,
    service: Service,
    stop: watch::Receiver<bool>,
    directory: tempfile::TempDir,
}

fn at(peer: Peer) -> Api {
    let directory = tempfile::tempdir().expect("tempdir");
    let exports =
        Exports::start(&directory.path().join("nbd.sock"), None, Vec::new(), &Listen::default()).expect("listens");
    let state = StateFile::open(directory.path().join("devices.toml")).expect("empty");
    let registry = Arc::new(Registry::new(exports, state, None).expect("opened"));
    let (service, _) =
        Service::open(registry, directory.path(), Origins::default(), Program::default()).expect("opened");
    let stop = service.stop.subscribe();
    let router = router(service.clone()).layer(MockConnectInfo(peer));
    Api { router, service, stop, directory }
}

fn api(uid: Option<u32>) -> Api {
    at(Peer::Unix { uid })
}

fn owner() -> Api {
    api(Some(rustix::process::geteuid().as_raw()))
}

impl Api {
    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(HttpBody::from(body.to_string()))
            .expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&bytes);
        (status, serde_json::from_str(&text).unwrap_or_else(|_| json!(text)))
    }

    async fn fails(&self, method: &str, path: &str, body: &str, status: u16, words: &str) {
        let (found, answer) = self.ask(method, path, body).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(words)), "{method} {path}: {answer}");
    }
}

#[tokio::test]
async fn strangers_are_refused_everything() {
    let me = rustix::process::geteuid().as_raw();
    for uid in [Some(me.wrapping_add(1).max(1)), None] {
        let stranger = api(uid);
        for (method, path) in [
            ("GET", "/api/v1/version"),
            ("GET", "/api/v1/devices"),
            ("POST", "/api/v1/shutdown"),
            ("GET", "/elsewhere"),
        ] {
            stranger.fails(method, path, "{}", 403, "may not use this service").await;
        }
        assert!(!*stranger.stop.borrow());
    }
    let root = api(Some(0));
    assert_eq!(root.ask("GET", "/api/v1/version", "").await.0, 200);
}

#[tokio::test]
async fn malformed_requests_are_told_what_is_wrong() {
    let api = owner();
    api.fails("GET", "/elsewhere", "", 404, "no such path").await;
    api.fails("GET", "/api/v1/elsewhere", "", 404, "no such path in the API").await;
    api.fails("DELETE", "/api/v1/version", "", 405, "does not take this method").await;
    api.fails("POST", "/api/v1/devices", "no json", 400, "the request's body").await;
    api.fails("POST", "/api/v1/devices", "{}", 400, "missing field `path`").await;
    api.fails("POST", "/api/v1/devices", r#"{"path":"/x","colour":1}"#, 400, "unknown field `colour`").await;
    api.fails("POST", "/api/v1/devices", r#"{"path":""}"#, 400, "path is empty").await;
    api.fails("POST", "/api/v1/devices", r#"{"path":"/nowhere/x"}"#, 404, "/nowhere/x: No such file").await;
    api.fails("POST", "/api/v1/devices", &format!(r#"{{"path":"{}"}}"#, "x".repeat(BODY_LIMIT)), 400, "limit").await;
    api.fails("GET", "/api/v1/devices/x", "", 404, "no attached device is called 'x'").await;
    api.fails("GET", "/api/v1/devices/%ff", "", 400, "the path").await;
    api.fails("POST", "/api/v1/devices/x/detach", "{}", 404, "no attached device").await;
    api.fails("PUT", "/api/v1/devices/x/beacon", r#"{"on":"yes"}"#, 400, "the request's body").await;
    api.fails("PATCH", "/api/v1/devices/x/config", r#"{"turbo":"on"}"#, 400, "no setting is called 'turbo'").await;
}

#[tokio::test]
async fn a_recording_begins_and_ends_through_the_api() {
    let api = owner();
    let directory = tempfile::tempdir().expect("a directory");
    let path = "/api/v1/devices/m/record";
    api.fails("POST", path, r#"{"path":"/x.csv"}"#, 404, "no attached device is called 'm'").await;
    assert_eq!(api.ask("POST", "/api/v1/devices", r#"{"path":"memory:512MiB","name":"m"}"#).await.0, 201);
    let file = |name: &str| directory.path().join(name);
    let body = |name: &str| json!({ "path": file(name) }).to_string();
    api.fails("POST", path, r#"{"path":"a/t.csv"}"#, 400, "a/t.csv: neither the name of a file nor an absolute path")
        .await;
    api.fails("POST", path, &body("t.xyz"), 400, "its ending names no format").await;
    api.fails("POST", path, r#"{"path":"/t","format":"dtrace"}"#, 400, "no format that is written").await;
    api.fails("POST", path, r#"{"path":"/nowhere/t.csv"}"#, 400, "/nowhere/t.csv: No such file").await;
    assert_eq!(api.ask("GET", path, "").await.1, json!({ "recording": false, "written": 0, "dropped": 0 }));
    api.fails("POST", "/api/v1/devices/m/record/stop", "{}", 409, "m is not being recorded").await;
    let (status, answer) = api.ask("POST", path, &body("t.vscsi")).await;
    assert_eq!((status, &answer["recording"], &answer["format"]), (200, &json!(true), &json!("vscsi2")), "{answer}");
    api.fails("POST", path, &body("u.csv"), 409, "m is being recorded already").await;
    assert!(!file("u.csv").exists(), "what was refused left a file");
    let (status, answer) = api.ask("POST", "/api/v1/devices/m/record/stop", "{}").await;
    assert_eq!((status, &answer["recording"], &answer["written"]), (200, &json!(false), &json!(0)), "{answer}");
    api.fails("POST", path, &body("t.vscsi"), 400, "File exists").await;
    assert_eq!(api.ask("POST", "/api/v1/devices/m/detach", "{}").await.0, 204);
}

#[tokio::test]
async fn a_device_lives_through_the_api() {
    let api = owner();
    let (status, device) = api.ask("POST", "/api/v1/devices", r#"{"path":"memory:512MiB","name":"m"}"#).await;
    assert_eq!((status, &device["name"], &device["state"]), (201, &json!("m"), &json!("attached")), "{device}");
    assert_eq!(api.ask("GET", "/api/v1/devices/m", "").await.1["bytes"], json!(512 << 20));
    assert_eq!(api.ask("PUT", "/api/v1/devices/m/beacon", r#"{"on":true}"#).await, (200, json!({ "on": true })));
    let (_, config) = api.ask("PATCH", "/api/v1/devices/m/config", r#"{"trim":"off","groomer":"greedy"}"#).await;
    assert_eq!(
        (&config["trim"], &config["groomer"], &config["beacon"]),
        (&json!("off"), &json!("greedy"), &json!("on"))
    );
    // One bad change among good ones: none of them holds.
    let changes = r#"{"groomer":"lazy","beacon":"off","label":"x"}"#;
    api.fails("PATCH", "/api/v1/devices/m/config", changes, 400, "groomer: lazy").await;
    assert_eq!(api.ask("GET", "/api/v1/devices/m/config", "").await.1, config);
    api.fails("PATCH", "/api/v1/devices/m/config", r#"{"attach-at-start":"on"}"#, 400, "lives in memory").await;
    let (_, health) = api.ask("GET", "/api/v1/health", "").await;
    assert_eq!((&health["attached"], &health["ready"]), (&json!(1), &json!(false)));
    assert_eq!(api.ask("POST", "/api/v1/devices/m/detach", "{}").await.0, 204);
    assert_eq!(api.ask("GET", "/api/v1/devices", "").await, (200, json!([])));
    assert_eq!(api.ask("POST", "/api/v1/shutdown", "{}").await.0, 202);
    assert!(*api.stop.borrow());
    api.fails("POST", "/api/v1/devices", r#"{"path":"memory:512MiB"}"#, 409, "the service is stopping").await;
}

/// A drill device in a file, attached as `d`.
async fn drill_device(api: &Api) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("tempdir");
    let path = directory.path().join("d.vsl");
    let format =
        device::FormatOptions { sector_bytes: 4096, capacity: device::Capacity::Advertised, label: String::new() };
    let options =
        device::CreateOptions { advertised_bytes: 64 << 20, raw_bytes: 192 << 20, profile: None, parity: 0, format };
    device::create(&[&path], &options).expect("made");
    device::mark_for_drills(std::slice::from_ref(&path), true).expect("marked");
    let body = json!({ "path": path, "name": "d" }).to_string();
    assert_eq!(api.ask("POST", "/api/v1/devices", &body).await.0, 201);
    directory
}

#[tokio::test]
async fn power_goes_and_comes_through_the_api() {
    let api = owner();
    let files = drill_device(&api).await;
    let drills = "/api/v1/devices/d/drills";
    let trace = json!({ "path": files.path().join("t.csv") }).to_string();
    assert_eq!(api.ask("POST", "/api/v1/devices/d/record", &trace).await.0, 200);
    assert_eq!(api.ask("GET", drills, "").await.1["drills"], json!([]));
    let armed = api.ask("POST", drills, r#"{"drill":"power-cut","at_write":7,"unsynced":"torn","seed":5}"#).await;
    assert_eq!(armed.1["said"], json!("the power goes with write 7 from now; seed 5"));
    assert_eq!(armed.1["drills"][0]["drill"], json!("power-cut"));
    api.fails("POST", drills, r#"{"drill":"power-cut"}"#, 409, "power-cut at write 7 is on already").await;
    assert_eq!(api.ask("DELETE", "/api/v1/devices/d/drills/all", "").await.1["drills"], json!([]));
    let (status, cut) = api.ask("POST", drills, r#"{"drill":"power-cut","seed":9}"#).await;
    assert_eq!((status, &cut["powered_off"]), (200, &json!(true)), "{cut}");
    let (_, device) = api.ask("GET", "/api/v1/devices/d", "").await;
    assert_eq!((&device["state"], device.get("uri")), (&json!("powered-off"), None), "{device}");
    for (method, path, body) in [
        ("POST", "/api/v1/devices/d/scrub", r#"{"on":true}"#),
        ("POST", drills, r#"{"drill":"ignore-flushes"}"#),
        ("DELETE", "/api/v1/devices/d/drills/rot", ""),
        ("GET", "/api/v1/devices/d/config", ""),
    ] {
        api.fails(method, path, body, 409, "a drill has cut the power of d").await;
    }
    let (status, device) = api.ask("POST", "/api/v1/devices/d/power-on", "{}").await;
    assert_eq!((status, &device["state"]), (200, &json!("attached")), "{device}");
    api.fails("POST", "/api/v1/devices/d/power-on", "{}", 409, "the power of d is not cut").await;
    // What was recorded until then is a whole trace, and listed as one.
    let (_, recordings) = api.ask("GET", "/api/v1/devices/d/recordings", "").await;
    let one = &recordings[0];
    assert_eq!(
        (&one["exists"], &one["error"], &one["written"]),
        (&json!(true), &Value::Null, &json!(0)),
        "{recordings}"
    );
    let (_, events) = api.ask("GET", "/api/v1/devices/d/events", "").await;
    let events = events["events"].as_array().expect("a list").iter().map(|event| event["event"].clone());
    let expected = ["attached", "drill-begins", "drill-ends", "power-cut", "power-on"];
    assert_eq!(events.collect::<Vec<_>>(), expected.map(|event| json!(event)));
    // Without power it can be detached, and the service can stop.
    assert_eq!(api.ask("POST", drills, r#"{"drill":"power-cut"}"#).await.0, 200);
    assert_eq!(api.ask("POST", "/api/v1/devices/d/detach", "{}").await.0, 204);
    api.fails("GET", drills, "", 404, "no attached device").await;
}

#[tokio::test]
async fn drills_are_refused_with_reasons() {
    let api = owner();
    let _files = drill_device(&api).await;
    assert_eq!(api.ask("POST", "/api/v1/devices", r#"{"path":"memory:512MiB","name":"m"}"#).await.0, 201);
    let memory = "/api/v1/devices/m/drills";
    api.fails("POST", memory, r#"{"drill":"power-cut"}"#, 409, "is not marked for drills").await;
    api.fails("DELETE", "/api/v1/devices/m/drills/all", "", 409, "is not marked for drills").await;
    api.fails("PATCH", "/api/v1/devices/m/config", r#"{"drills":"on"}"#, 400, "m lives in memory").await;
    let drills = "/api/v1/devices/d/drills";
    for (body, status, words) in [
        ("{}", 400, "missing field `drill`"),
        (r#"{"drill":"fire"}"#, 400, "unknown variant `fire`"),
        (r#"{"drill":"kill-die"}"#, 400, "missing field `die`"),
        (r#"{"drill":"kill-die","die":-1}"#, 400, "the request's body"),
        (r#"{"drill":"kill-die","die":0,"lba":1}"#, 400, "unknown field `lba`"),
        (r#"{"drill":"kill-die","die":1}"#, 400, "die: 1: expected 0: it has one die"),
        (r#"{"drill":"power-cut","unsynced":"maybe"}"#, 400, "unknown variant `maybe`"),
        (r#"{"drill":"power-cut","at_write":0}"#, 400, "at_write: 0: expected 1"),
        (r#"{"drill":"rot","lba":0,"count":1}"#, 409, "rot: none of the sectors 0 to 0 lies on the medium"),
        (r#"{"drill":"overheat"}"#, 400, "overheat: it has no temperature"),
    ] {
        api.fails("POST", drills, body, status, words).await;
    }
    api.fails("DELETE", "/api/v1/devices/d/drills/fire", "", 400, "no drill is called 'fire'").await;
    api.fails("DELETE", "/api/v1/devices/d/drills/rot", "", 409, "rot is not on").await;
    api.fails("POST", "/api/v1/devices/nobody/drills", r#"{"drill":"rot","lba":0,"count":1}"#, 404, "nobody").await;
    api.fails("GET", "/api/v1/devices/nobody/events", "", 404, "nobody").await;
    api.fails("PATCH", "/api/v1/devices/d/config", r#"{"drills":"perhaps"}"#, 400, "'perhaps' is not a value").await;
}

/// The API over TCP on loopback, and its token.
fn over_tcp() -> (Api, String) {
    let api = at(Peer::Tcp { address: "127.0.0.1:50000".parse().expect("an address"), secure: false });
    let token = std::fs::read_to_string(api.directory.path().join("token")).expect("a token");
    (api, token.trim().to_string())
}

impl Api {
    /// Asks with these headers; gives status, cookie and answer.
    async fn show(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in [("host", "127.0.0.1:7420"), ("content-type", "application/json")] {
            if !headers.iter().any(|(given, _)| *given == name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(HttpBody::from(body.to_string())).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let status = response.status().as_u16();
        let cookie = response.headers().get("set-cookie").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let cookie = cookie.split(';').next().unwrap_or_default().to_string();
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&bytes);
        (status, cookie, serde_json::from_str(&text).unwrap_or_else(|_| json!(text)))
    }
}

#[tokio::test]
async fn over_tcp_somebody_must_be_known() {
    let (api, token) = over_tcp();
    for (method, path) in
        [("GET", "/api/v1/devices"), ("POST", "/api/v1/shutdown"), ("GET", "/api/v1/accounts"), ("GET", "/metrics")]
    {
        let (status, _, answer) = api.show(method, path, &[], "{}").await;
        assert_eq!((status, &answer["kind"]), (401, &json!("unauthenticated")), "{method} {path}");
    }
    let bearer = format!("Bearer {token}");
    let (status, _, answer) = api.show("GET", "/api/v1/session", &[("authorization", &bearer)], "").await;
    assert_eq!((status, &answer["role"], &answer["via"]), (200, &json!("administrator"), &json!("token")));
    assert_eq!(api.show("GET", "/metrics", &[("authorization", &bearer)], "").await.0, 200);
    assert_eq!(api.show("GET", "/api/v1/version", &[("authorization", "Bearer wrong")], "").await.0, 401);
    assert_eq!(api.show("GET", "/api/v1/version", &[("authorization", "Basic eDp5")], "").await.0, 401);
}

#[tokio::test]
async fn pages_of_others_are_refused() {
    let (api, token) = over_tcp();
    let bearer = format!("Bearer {token}");
    for foreign in
        [("host", "evil.example.org"), ("origin", "http://evil.example.org"), ("sec-fetch-site", "cross-site")]
    {
        let headers = [("authorization", bearer.as_str()), foreign];
        let (status, _, answer) = api.show("GET", "/api/v1/devices", &headers, "").await;
        assert_eq!(status, 403, "{foreign:?}: {answer}");
    }
    // A form of another page can send no JSON, and no other type is taken.
    let headers = [("authorization", bearer.as_str()), ("content-type", "text/plain")];
    let (status, _, answer) = api.show("POST", "/api/v1/shutdown", &headers, "{}").await;
    assert_eq!(status, 400, "{answer}");
    assert!(!*api.stop.borrow());
}

#[tokio::test]
async fn services_of_one_host_do_not_sign_each_other_out() {
    let services = [over_tcp(), over_tcp()];
    let mut cookies = Vec::new();
    for (api, token) in &services {
        let (status, cookie, who) =
            api.show("POST", "/api/v1/session", &[], &json!({ "token": token }).to_string()).await;
        assert_eq!(status, 200, "{who}");
        cookies.push(cookie);
    }
    let names: Vec<_> = cookies.iter().map(|cookie| cookie.split_once('=').expect("a cookie").0).collect();
    assert_ne!(names[0], names[1]);
    // A browser keeps one jar for all ports of a host, and shows each of them all that is in it.
    let jar = cookies.join("; ");
    for (api, _) in &services {
        let (status, _, who) = api.show("GET", "/api/v1/session", &[("cookie", &jar)], "").await;
        assert_eq!((status, &who["role"]), (200, &json!("administrator")), "{who}");
    }
}

#[tokio::test]
async fn sessions_and_roles() {
    let (api, token) = over_tcp();
    let bearer = [("authorization", format!("Bearer {token}"))];
    let as_token: Vec<(&str, &str)> = bearer.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let account = r#"{"name":"vera","role":"viewer","password":"looks only"}"#;
    assert_eq!(api.show("POST", "/api/v1/accounts", &as_token, account).await.0, 201);
    let wrong = api.show("POST", "/api/v1/session", &[], r#"{"name":"vera","password":"looks away"}"#).await;
    assert_eq!((wrong.0, wrong.1.as_str()), (401, ""));
    let (status, cookie, who) =
        api.show("POST", "/api/v1/session", &[], r#"{"name":"vera","password":"looks only"}"#).await;
    assert_eq!((status, &who["role"]), (200, &json!("viewer")), "{who}");
    let as_vera = [("cookie", cookie.as_str())];
    assert_eq!(api.show("GET", "/api/v1/devices", &as_vera, "").await.0, 200);
    for (method, path, body) in [
        ("POST", "/api/v1/devices", r#"{"path":"memory:512MiB"}"#),
        ("GET", "/api/v1/audit", ""),
        ("GET", "/api/v1/accounts", ""),
        ("PUT", "/api/v1/notifications", "{}"),
        ("POST", "/api/v1/shutdown", "{}"),
    ] {
        let (status, _, answer) = api.show(method, path, &as_vera, body).await;
        assert_eq!((status, &answer["kind"]), (403, &json!("forbidden")), "{method} {path}: {answer}");
    }
    let operator = r#"{"role":"operator"}"#;
    assert_eq!(api.show("PATCH", "/api/v1/accounts/vera", &as_token, operator).await.0, 200);
    let (status, _, device) =
        api.show("POST", "/api/v1/devices", &as_vera, r#"{"path":"memory:64MiB","name":"m"}"#).await;
    assert_eq!(status, 201, "{device}");
    let (_, _, audit) = api.show("GET", "/api/v1/audit", &as_vera, "").await;
    let newest = &audit["entries"][0];
    assert_eq!(
        (&newest["who"], &newest["method"], &newest["path"], &newest["status"]),
        (&json!("vera"), &json!("POST"), &json!("/devices"), &json!(201)),
        "{audit}"
    );
    assert!(!audit.to_string().contains("looks only"), "{audit}");
    let (_, _, made) = api.show("POST", "/api/v1/accounts/vera/keys", &as_token, r#"{"note":"t"}"#).await;
    let key = format!("Bearer {}", made["key"].as_str().expect("a key"));
    let (_, _, who) = api.show("GET", "/api/v1/session", &[("authorization", &key)], "").await;
    assert_eq!((&who["name"], &who["via"]), (&json!("vera"), &json!("key")));
    assert_eq!(api.show("DELETE", "/api/v1/session", &as_vera, "").await.0, 204);
    assert_eq!(api.show("GET", "/api/v1/devices", &as_vera, "").await.0, 401);
}

/// What docs/api.md says of each path: method, path, and the least role.
fn documented() -> Vec<(String, String, Role)> {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md")).expect("the document");
    let role = |name: &str| [Role::Viewer, Role::Operator, Role::Administrator].into_iter().find(|r| r.name() == name);
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.split(" | ");
        let (paths, roles) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        let roles: Option<Vec<Role>> = roles.trim_end_matches([' ', '|']).split(", ").map(role).collect();
        let Some((first, last)) = roles.as_deref().and_then(|roles| roles.first().zip(roles.last())) else { continue };
        let (mut method, mut path) = (String::new(), String::new());
        for code in paths.split('`').skip(1).step_by(2) {
            match code.split_once(' ') {
                Some((one, other)) => (method, path) = (one.into(), other.split('?').next().unwrap_or_default().into()),
                None if code.starts_with('/') => {
                    path = format!("{}{code}", path.rsplit_once('/').map_or("", |(head, _)| head))
                }
                None => method = code.into(),
            }
            found.push((method.clone(), path.clone(), if method == "GET" { *first } else { *last }));
        }
    }
    found
}

#[tokio::test]
async fn every_path_asks_for_the_role_that_is_documented() {
    let (api, _) = over_tcp();
    // What would change something is to fail behind the question of who may.
    api.service.registry.close(true).expect("nothing is attached");
    let mut keys = Vec::new();
    for role in [Role::Viewer, Role::Operator] {
        let account = NewAccount { name: role.name().into(), role, password: None };
        api.service.access.accounts().add(&account).expect("added");
        let made = api.service.access.accounts().add_key(role.name(), "").expect("made");
        keys.push((role, format!("Bearer {}", made.key)));
    }
    let documented = documented();
    assert!(documented.len() > 50, "{documented:?}");
    for (number, (method, path, least)) in documented.iter().enumerate() {
        let path: String = path
            .split('/')
            .map(|part| if part.chars().any(|c| c.is_ascii_uppercase()) { "7" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        let verb = axum::http::Method::from_bytes(method.as_bytes()).expect("a method");
        let parts = passing::parts(path.trim_start_matches('/')).expect("a plain path");
        let there = passing::needed(&verb, &parts);
        assert!(there >= *least, "{method} {path} of another host");
        // Each from another address, since so many are more than one may ask.
        let address = std::net::SocketAddr::from(([127, 0, 1, number as u8], 50_000));
        let router = router(api.service.clone()).layer(MockConnectInfo(Peer::Tcp { address, secure: false }));
        let ask = async |path: String, key: &str| {
            let request = Request::builder()
                .method(method.as_str())
                .uri(path)
                .header("host", "127.0.0.1:7420")
                .header("authorization", key)
                .header("content-type", "application/json")
                .body(HttpBody::from("{}"))
                .expect("a request");
            router.clone().oneshot(request).await.expect("an answer").status().as_u16()
        };
        for (role, key) in keys.iter().filter(|(role, _)| *role <= *least) {
            let status = ask(format!("{PREFIX}{path}"), key).await;
            assert_eq!(status == 403, role < least, "{method} {path} as {}: {status}", role.name());
            assert!(!matches!(status, 401 | 429), "{method} {path} as {}: {status}", role.name());
        }
        for (role, key) in &keys {
            let status = ask(format!("{PREFIX}/hosts/nobody{path}"), key).await;
            let expected = if *role < there { 403 } else { 404 };
            assert_eq!(status, expected, "{method} {path} of another host as {}", role.name());
        }
    }
    api.service.jobs.end_all(std::time::Duration::from_secs(60));
}

#[tokio::test]
async fn too_many_requests_are_refused_and_told_when_to_come_again() {
    let (api, token) = over_tcp();
    let bearer = format!("Bearer {token}");
    let mut refused = 0;
    for _ in 0..400 {
        let (status, _, _) = api.show("GET", "/api/v1/version", &[("authorization", &bearer)], "").await;
        assert!(status == 200 || status == 429, "{status}");
        refused += u32::from(status == 429);
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn questions_about_history_are_checked() {
    let api = owner();
    api.fails("GET", "/api/v1/devices/x/history", "", 404, "no history of a device 'x'").await;
    api.fails("GET", "/api/v1/service/history?from=5&to=4", "", 400, "nothing is in between").await;
    api.fails("GET", "/api/v1/service/history?resolution=2s", "", 400, "resolution: there is no '2s'").await;
    api.fails("GET", "/api/v1/service/history?metrics=read_iops", "", 400, "metrics: there is no 'read_iops'").await;
    api.fails("GET", "/api/v1/service/history?colour=1", "", 400, "the question").await;
    api.fails("GET", "/api/v1/service/history?format=xml", "", 400, "format: there is no 'xml'").await;
    let (status, answer) = api.ask("GET", "/api/v1/service/history?from=-60", "").await;
    assert_eq!((status, &answer["at"], &answer["resolution_s"]), (200, &json!([]), &json!(1)), "{answer}");
}

#[tokio::test]
async fn rules_and_notifications_are_checked_and_hide_secrets() {
    let api = owner();
    let rule = r#"{"metric":"write_iops","comparison":"above","threshold":1,"clear":0,"for_s":0,"severity":"warning"}"#;
    assert_eq!(api.ask("PUT", "/api/v1/alert-rules/busy", rule).await.0, 200);
    api.fails("PUT", "/api/v1/alert-rules/busy", &rule.replace("write_iops", "nothing"), 400, "metric: there is no")
        .await;
    api.fails("DELETE", "/api/v1/alert-rules/reserve", "", 409, "came with the service").await;
    assert_eq!(api.ask("DELETE", "/api/v1/alert-rules/busy", "").await.0, 204);
    api.fails("POST", "/api/v1/alerts/7/acknowledge", "{}", 404, "no alert 7").await;
    let smtp = r#"{"smtp":{"host":"127.0.0.1","port":2525,"security":"none","user":"u","password":"hush","from":"a@b.example","to":["c@d.example"]}}"#;
    let (status, shown) = api.ask("PUT", "/api/v1/notifications", smtp).await;
    assert_eq!((status, &shown["smtp"]["password"]), (200, &Value::Null), "{shown}");
    assert!(!api.ask("GET", "/api/v1/notifications", "").await.1.to_string().contains("hush"));
    assert!(!api.ask("GET", "/api/v1/audit", "").await.1.to_string().contains("hush"));
    api.fails("PUT", "/api/v1/notifications", r#"{"webhooks":[{"url":"ftp://x"}]}"#, 400, "is no address").await;
}
