//! The HTTP API: each path, what it takes and what it gives.

use std::sync::Arc;

use axum::extract::connect_info::MockConnectInfo;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::api::{
    AttachRequest, Beacon, Config, DetachRequest, Drills, Events, Health, PREFIX, PowerOnRequest, RebuildRequest,
    RecordRequest, RecordStatus, ScrubRequest, Version,
};
use crate::exports::{Exports, Listen};
use crate::peer::Peer;
use crate::registry::Registry;
use crate::state::StateFile;
use crate::{Failure, Kind, fields, peer};

/// The largest body that is taken, bytes.
const BODY_LIMIT: usize = 64 << 10;

/// What every route may use.
#[derive(Clone)]
pub struct Service {
    /// The devices.
    pub registry: Arc<Registry>,
    /// Set to stop the service.
    pub stop: watch::Sender<bool>,
}

/// Every route.
pub fn router(service: Service) -> Router {
    let api = Router::new()
        .route("/version", get(version))
        .route("/health", get(health))
        .route("/devices", get(devices).post(attach))
        .route("/devices/{name}", get(device))
        .route("/devices/{name}/detach", post(detach))
        .route("/devices/{name}/beacon", put(beacon))
        .route("/devices/{name}/config", get(config).patch(set_config))
        .route("/devices/{name}/scrub", post(scrub))
        .route("/devices/{name}/rebuild", post(rebuild))
        .route("/devices/{name}/drills", get(drills).post(drill))
        .route("/devices/{name}/drills/{drill}", delete(undo_drill))
        .route("/devices/{name}/power-on", post(power_on))
        .route("/devices/{name}/events", get(events))
        .route("/devices/{name}/record", get(recording).post(record))
        .route("/devices/{name}/record/stop", post(stop_recording))
        .route("/shutdown", post(shutdown));
    Router::new()
        .nest(PREFIX, api)
        .fallback(async || Failure::not_found("no such path in the API").help("the paths begin with /api/v1"))
        .method_not_allowed_fallback(async || Failure::invalid("the path does not take this method"))
        .layer(axum::middleware::from_fn(peer::check))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(service)
}

/// The API as the service's owner uses it, without a socket: for whoever sends it anything at all to see that it holds.
/// Its NBD socket and what it remembers are kept in `directory`.
///
/// # Errors
/// The directory cannot be used.
pub fn in_process(directory: &std::path::Path) -> Result<Router, Failure> {
    let exports = Exports::start(&directory.join("nbd.sock"), Vec::new(), &Listen::default())?;
    let state = StateFile::open(directory.join("devices.toml"))?;
    let (stop, _) = watch::channel(false);
    let service = Service { registry: Arc::new(Registry::new(exports, state)), stop };
    let owner = Peer { uid: Some(rustix::process::geteuid().as_raw()) };
    Ok(router(service).layer(MockConnectInfo(owner)))
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self.kind {
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Conflict => StatusCode::CONFLICT,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, Json(self)).into_response()
    }
}

/// A JSON body whose refusal is a [`Failure`] like any other.
struct Body<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Failure> {
        match Json::from_request(request, state).await {
            Ok(Json(value)) => Ok(Body(value)),
            Err(rejection) => Err(Failure::invalid(format!("the request's body: {}", rejection.body_text()))
                .help("send a JSON object with the Content-Type application/json")),
        }
    }
}

/// A device as the API shows it: see [`crate::fields`].
type Fields = serde_json::Map<String, serde_json::Value>;
type Name = Result<Path<String>, PathRejection>;

fn name(name: Name) -> Result<String, Failure> {
    name.map(|Path(name)| name).map_err(|rejection| Failure::invalid(format!("the path: {}", rejection.body_text())))
}

/// Runs what may wait for a device where waiting is allowed.
async fn wait<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&Registry) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let registry = Arc::clone(&service.registry);
    tokio::task::spawn_blocking(move || work(&registry)).await.unwrap_or_else(|error| {
        tracing::error!("a request to the API failed: {error}");
        Err(Failure::failed("the service made a mistake").help("its log says more; please report it"))
    })
}

async fn version() -> Json<Version> {
    Json(Version { version: env!("CARGO_PKG_VERSION").into(), api: 1, pid: std::process::id() })
}

async fn health(State(service): State<Service>) -> Json<Health> {
    Json(service.registry.health())
}

async fn devices(State(service): State<Service>) -> Result<Json<Vec<Fields>>, Failure> {
    wait(&service, |registry| Ok(registry.views().iter().map(fields::values).collect())).await.map(Json)
}

async fn device(State(service): State<Service>, path: Name) -> Result<Json<Fields>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.view(&name)).await.map(|view| Json(fields::values(&view)))
}

async fn attach(
    State(service): State<Service>,
    Body(request): Body<AttachRequest>,
) -> Result<(StatusCode, Json<Fields>), Failure> {
    let view = wait(&service, move |registry| registry.attach(&request)).await?;
    Ok((StatusCode::CREATED, Json(fields::values(&view))))
}

async fn detach(
    State(service): State<Service>,
    path: Name,
    Body(request): Body<DetachRequest>,
) -> Result<StatusCode, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.detach(&name, request.force)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn beacon(
    State(service): State<Service>,
    path: Name,
    Body(beacon): Body<Beacon>,
) -> Result<Json<Beacon>, Failure> {
    let name = name(path)?;
    let change = Config::from([("beacon".to_string(), if beacon.on { "on" } else { "off" }.to_string())]);
    wait(&service, move |registry| registry.set_config(&name, &change)).await?;
    Ok(Json(beacon))
}

async fn config(State(service): State<Service>, path: Name) -> Result<Json<Config>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.config(&name)).await.map(Json)
}

async fn set_config(
    State(service): State<Service>,
    path: Name,
    Body(changes): Body<Config>,
) -> Result<Json<Config>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.set_config(&name, &changes)).await.map(Json)
}

async fn scrub(
    State(service): State<Service>,
    path: Name,
    Body(request): Body<ScrubRequest>,
) -> Result<Json<Fields>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.scrub(&name, request.on)).await.map(|view| Json(fields::values(&view)))
}

async fn rebuild(
    State(service): State<Service>,
    path: Name,
    Body(request): Body<RebuildRequest>,
) -> Result<Json<Fields>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.rebuild(&name, &request)).await.map(|view| Json(fields::values(&view)))
}

async fn drills(State(service): State<Service>, path: Name) -> Result<Json<Drills>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.drills(&name)).await.map(Json)
}

async fn drill(
    State(service): State<Service>,
    path: Name,
    Body(drill): Body<device::Drill>,
) -> Result<Json<Drills>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.drill(&name, drill)).await.map(Json)
}

async fn undo_drill(
    State(service): State<Service>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Json<Drills>, Failure> {
    let Path((name, drill)) =
        path.map_err(|rejection| Failure::invalid(format!("the path: {}", rejection.body_text())))?;
    wait(&service, move |registry| registry.undo_drill(&name, &drill)).await.map(Json)
}

async fn power_on(
    State(service): State<Service>,
    path: Name,
    Body(request): Body<PowerOnRequest>,
) -> Result<Json<Fields>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.power_on(&name, &request)).await.map(|view| Json(fields::values(&view)))
}

async fn events(State(service): State<Service>, path: Name) -> Result<Json<Events>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.events(&name)).await.map(Json)
}

async fn recording(State(service): State<Service>, path: Name) -> Result<Json<RecordStatus>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.recording(&name)).await.map(Json)
}

async fn record(
    State(service): State<Service>,
    path: Name,
    Body(request): Body<RecordRequest>,
) -> Result<Json<RecordStatus>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.record(&name, &request)).await.map(Json)
}

async fn stop_recording(State(service): State<Service>, path: Name) -> Result<Json<RecordStatus>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.stop_recording(&name)).await.map(Json)
}

async fn shutdown(State(service): State<Service>, Body(request): Body<DetachRequest>) -> Result<StatusCode, Failure> {
    wait(&service, move |registry| registry.close(request.force)).await?;
    tracing::info!("asked to stop");
    service.stop.send_replace(true);
    Ok(StatusCode::ACCEPTED)
}

#[cfg(test)]
mod tests {
    use axum::body::Body as HttpBody;
    use http_body_util::BodyExt;
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;

    struct Api {
        router: Router,
        stop: watch::Receiver<bool>,
        _directory: tempfile::TempDir,
    }

    fn api(uid: Option<u32>) -> Api {
        let directory = tempfile::tempdir().expect("tempdir");
        let exports =
            Exports::start(&directory.path().join("nbd.sock"), Vec::new(), &Listen::default()).expect("listens");
        let state = StateFile::open(directory.path().join("devices.toml")).expect("empty");
        let (stop, stopped) = watch::channel(false);
        let service = Service { registry: Arc::new(Registry::new(exports, state)), stop };
        let router = router(service).layer(MockConnectInfo(Peer { uid }));
        Api { router, stop: stopped, _directory: directory }
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
        api.fails("DELETE", "/api/v1/version", "", 400, "does not take this method").await;
        api.fails("POST", "/api/v1/devices", "no json", 400, "the request's body").await;
        api.fails("POST", "/api/v1/devices", "{}", 400, "missing field `path`").await;
        api.fails("POST", "/api/v1/devices", r#"{"path":"/x","colour":1}"#, 400, "unknown field `colour`").await;
        api.fails("POST", "/api/v1/devices", r#"{"path":""}"#, 400, "path is empty").await;
        api.fails("POST", "/api/v1/devices", r#"{"path":"/nowhere/x"}"#, 404, "/nowhere/x: No such file").await;
        api.fails("POST", "/api/v1/devices", &format!(r#"{{"path":"{}"}}"#, "x".repeat(BODY_LIMIT)), 400, "limit")
            .await;
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
        api.fails("POST", path, r#"{"path":"t.csv"}"#, 400, "t.csv: the path of a recording must be absolute").await;
        api.fails("POST", path, &body("t.xyz"), 400, "its ending names no format").await;
        api.fails("POST", path, r#"{"path":"/t","format":"dtrace"}"#, 400, "no format that is written").await;
        api.fails("POST", path, r#"{"path":"/nowhere/t.csv"}"#, 400, "/nowhere/t.csv: No such file").await;
        assert_eq!(api.ask("GET", path, "").await.1, json!({ "recording": false, "written": 0, "dropped": 0 }));
        api.fails("POST", "/api/v1/devices/m/record/stop", "{}", 409, "m is not being recorded").await;
        let (status, answer) = api.ask("POST", path, &body("t.vscsi")).await;
        assert_eq!(
            (status, &answer["recording"], &answer["format"]),
            (200, &json!(true), &json!("vscsi2")),
            "{answer}"
        );
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
        let options = device::CreateOptions {
            advertised_bytes: 64 << 20,
            raw_bytes: 192 << 20,
            profile: None,
            parity: 0,
            format,
        };
        device::create(&[&path], &options).expect("made");
        device::mark_for_drills(std::slice::from_ref(&path), true).expect("marked");
        let body = json!({ "path": path, "name": "d" }).to_string();
        assert_eq!(api.ask("POST", "/api/v1/devices", &body).await.0, 201);
        directory
    }

    #[tokio::test]
    async fn power_goes_and_comes_through_the_api() {
        let api = owner();
        let _files = drill_device(&api).await;
        let drills = "/api/v1/devices/d/drills";
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
        api.fails("PATCH", "/api/v1/devices/d/config", r#"{"drills":"perhaps"}"#, 400, "'perhaps' is not a value")
            .await;
    }
}
