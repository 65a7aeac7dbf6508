//! The service's HTTP API without its socket: requests with any path, method and body, and bytes that are no HTTP at all.

use std::cell::RefCell;
use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tower::ServiceExt;

use super::Target;
use crate::choices::Choices;

pub const REQUESTS: Target = Target {
    name: "api",
    about: "the HTTP API: methods, paths, JSON bodies, devices that come and go",
    weight: 20,
    corpus: super::choices,
    words: &[],
    run: requests,
};

pub const BYTES: Target = Target {
    name: "http",
    about: "bytes on the API's socket",
    weight: 20,
    corpus: || {
        let get = "GET /api/v1/devices HTTP/1.1\r\nhost: x\r\n\r\n";
        let attach = "POST /api/v1/devices HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 28\r\n\r\n{\"path\":\"/nowhere\",\"x\":true}";
        let chunked = "PATCH /api/v1/devices/x/config HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{\"trim\":\"off\"   \r\n1\r\n}\r\n0\r\n\r\n";
        vec![get.into(), attach.into(), chunked.into(), format!("{get}{chunked}{get}").into_bytes()]
    },
    words: &[
        "GET ",
        "POST ",
        "PUT ",
        "HTTP/1.1",
        "HTTP/1.0",
        "HTTP/2.0",
        "\r\n\r\n",
        "content-length: ",
        "transfer-encoding: chunked",
        "expect: 100-continue",
        "connection: upgrade",
        "/api/v1/",
        "%ff",
        "%00",
        "..",
        "?",
        "ffffffffffffffff\r\n",
    ],
    run: bytes,
};

struct Api {
    runtime: Runtime,
    router: Router,
    directory: tempfile::TempDir,
}

fn start() -> Api {
    let directory = tempfile::tempdir().expect("a directory");
    let router = daemon::in_process(directory.path()).expect("a service");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    Api { runtime, router, directory }
}

thread_local! {
    static API: RefCell<Option<Api>> = const { RefCell::new(None) };
}

fn with_api(run: impl FnOnce(&Api)) {
    API.with_borrow_mut(|api| run(api.get_or_insert_with(start)));
}

impl Api {
    /// What is recorded goes there.
    fn recording(&self) -> PathBuf {
        self.directory.path().join("recording")
    }

    async fn ask(&self, method: &str, path: &str, body: Vec<u8>, kind: &str) -> u16 {
        let Ok(request) =
            Request::builder().method(method).uri(path).header("content-type", kind).body(Body::from(body))
        else {
            return 0;
        };
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert!(
            status < 500 || !body.windows(7).any(|window| window == b"mistake"),
            "{}",
            String::from_utf8_lossy(&body)
        );
        if !body.is_empty() && status != 405 {
            serde_json::from_slice::<serde_json::Value>(&body).expect("JSON");
        }
        status
    }
}

const PATHS: &[&str] = &[
    "version",
    "health",
    "devices",
    "shutdown",
    "devices/m",
    "devices/m/detach",
    "devices/m/beacon",
    "devices/m/config",
    "devices/m/scrub",
    "devices/m/optimise",
    "devices/m/rebuild",
    "devices/m/record",
    "devices/m/record/stop",
    "devices/m/drills",
    "devices/m/drills/all",
    "devices/m/drills/rot",
    "devices/m/power-on",
    "devices/m/events",
];
const FIELDS: &[&str] = &[
    "path",
    "name",
    "read_only",
    "remember",
    "degraded",
    "new_identity",
    "passphrase",
    "key_file",
    "force",
    "on",
    "trim",
    "label",
    "groomer",
    "checkpoint-interval",
    "attach-at-start",
    "drills",
    "drill",
    "die",
    "onto",
    "format",
    "lba",
    "count",
    "at_write",
    "unsynced",
    "x",
];
const STRINGS: &[&str] = &[
    "m",
    "power-cut",
    "kill-die",
    "kill-chip",
    "rot",
    "memory:1MiB",
    "memory:16MiB",
    "memory:0",
    "memory:18446744073709547520",
    "memory:1PiB",
    "memory:99999TiB",
    "memory:",
    "/nowhere/x",
    "",
    "/",
    "/dev/null",
    "/dev/zero",
    "/proc/self/status",
    ".",
    "on",
    "off",
    "greedy",
    "1MiB",
    "1TiB",
    "0",
    "\u{0}",
    "a/b",
];

/// A JSON value, right or wrong for its place.
fn value(choices: &mut Choices, depth: u32) -> serde_json::Value {
    use serde_json::{Value, json};
    match choices.below(12) {
        0..5 => Value::from(choices.pick(STRINGS)),
        5 | 6 => Value::Bool(choices.below(2) == 0),
        7 => json!(choices.u64()),
        8 => Value::Null,
        9 => Value::from("x".repeat(choices.below(300))),
        10 => Value::from(String::from_utf8_lossy(choices.raw(40)).into_owned()),
        _ if depth == 0 => json!(-1.5e300),
        _ if choices.below(2) == 0 => json!([value(choices, depth - 1), value(choices, depth - 1)]),
        _ => json!({ choices.pick(FIELDS): value(choices, depth - 1) }),
    }
}

fn body(choices: &mut Choices) -> Vec<u8> {
    match choices.below(16) {
        0 => choices.raw(200).to_vec(),
        1 => b"[".repeat(choices.below(5000)),
        2 => vec![b' '; (64 << 10) + choices.below(3) - 1],
        _ => {
            let mut fields = serde_json::Map::new();
            for _ in 0..choices.below(4) {
                fields.insert(choices.pick(FIELDS).into(), value(choices, 2));
            }
            let mut bytes = serde_json::Value::from(fields).to_string().into_bytes();
            if choices.one_in(20) {
                bytes.truncate(choices.below(bytes.len() + 1));
            }
            bytes
        }
    }
}

fn requests(input: &[u8]) {
    with_api(|api| {
        let choices = &mut Choices::new(input);
        api.runtime.block_on(async {
            for _ in 0..8 {
                if choices.is_over() {
                    break;
                }
                let method = choices.pick(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]);
                let mut path = format!("/api/v1/{}", choices.pick(PATHS));
                if path.ends_with("shutdown") && !choices.one_in(16) {
                    path.truncate(choices.below(path.len()));
                }
                if choices.one_in(16) {
                    path.push_str(choices.pick(&["%ff", "%00", "/", "?x=%zz", "//..", "%2e%2e/", "\u{7f}"]));
                }
                let kind = if choices.one_in(20) { "text/plain" } else { "application/json" };
                let body = if method == "POST" && path.ends_with("devices") && choices.below(2) == 0 {
                    // A device most of the time, so that the routes behind one are reached.
                    br#"{"path":"memory:1MiB","name":"m"}"#.to_vec()
                } else if method == "POST" && path.ends_with("record") && choices.below(2) == 0 {
                    // A file that can be made: any other format and path would put files all over the system.
                    format!(r#"{{"path":"{}","format":"msr"}}"#, api.recording().display()).into_bytes()
                } else {
                    body(choices)
                };
                api.ask(method, &path, body, kind).await;
            }
            // Nothing that was attached stays.
            let list = Request::get("/api/v1/devices").body(Body::empty()).expect("a request");
            let list = api.router.clone().oneshot(list).await.expect("an answer");
            let list = list.into_body().collect().await.expect("a body").to_bytes();
            let list: Vec<serde_json::Value> = serde_json::from_slice(&list).expect("a list");
            for device in list {
                let path = format!("/api/v1/devices/{}/detach", device["name"].as_str().expect("a name"));
                let status = api.ask("POST", &path, br#"{"force":true}"#.to_vec(), "application/json").await;
                assert_eq!(status, 204, "{path}");
            }
            // There is one when something was recorded.
            let _ = std::fs::remove_file(api.recording());
        });
    });
    restart_if_closed();
}

/// A service that was asked to stop takes no devices any more: begin anew.
fn restart_if_closed() {
    API.with_borrow_mut(|slot| {
        if let Some(api) = slot {
            let attach = br#"{"path":"/nowhere"}"#.to_vec();
            let closed = api.runtime.block_on(api.ask("POST", "/api/v1/devices", attach, "application/json")) == 409;
            if closed {
                *slot = None;
            }
        }
    });
}

fn bytes(input: &[u8]) {
    with_api(|api| {
        api.runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(64 << 10);
            let service = TowerToHyperService::new(api.router.clone());
            let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(server), service);
            let talking = async {
                // The server may hang up before all is said.
                let _ = client.write_all(input).await;
                let _ = client.shutdown().await;
                let mut answer = Vec::new();
                let _ = client.read_to_end(&mut answer).await;
                assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(&answer));
            };
            // An error ends the connection, which is all that bytes may do.
            let (_, ()) = tokio::join!(serving, talking);
        });
        assert!(api.directory.path().exists());
    });
}
