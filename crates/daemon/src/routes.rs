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
    ScrubRequest, Version,
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
}
