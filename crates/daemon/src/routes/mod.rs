//! The HTTP API: which paths there are, and who may use them.

mod accounts;
mod alerts;
mod assets;
mod bugreport;
mod demo;
mod devices;
mod extract;
mod history;
mod hosts;
mod jobs;
mod lab;
mod lifetime;
mod media;
mod prometheus;
mod session;
mod stream;
mod telemetry;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::extract::connect_info::MockConnectInfo;
use axum::http::StatusCode;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

use crate::access::content;
use crate::access::guard::{self, BODY_LIMIT};
use crate::access::{Access, Origins, Peer};
use crate::alerts::{Alerting, Outgoing};
use crate::api::{PREFIX, Role};
use crate::audit::Audit;
use crate::exports::{Exports, Listen};
use crate::hosts::Hosts;
use crate::jobs::Jobs;
use crate::monitor::Monitor;
use crate::registry::Registry;
use crate::state::StateFile;
use crate::{Failure, openapi};

pub use assets::{Asset, Assets};
use extract::{Ask, At, Body};

/// What every route may use.
#[derive(Clone)]
pub struct Service {
    /// The devices.
    pub registry: Arc<Registry>,
    /// Who may ask.
    pub access: Arc<Access>,
    /// Who changed what.
    pub audit: Arc<Audit>,
    /// What is measured.
    pub monitor: Arc<Monitor>,
    /// What is wrong.
    pub alerting: Arc<Alerting>,
    /// Other hosts' services.
    pub hosts: Arc<Hosts>,
    /// What takes long.
    pub jobs: Arc<Jobs>,
    /// Where lab runs are kept.
    pub lab: PathBuf,
    /// Where everything is kept that is remembered.
    pub state: PathBuf,
    /// The console's files.
    pub assets: Assets,
    /// Set to stop the service.
    pub stop: watch::Sender<bool>,
}

impl Service {
    /// With what is kept in a directory; and alerts that wait to be sent.
    ///
    /// # Errors
    /// Something in it is damaged.
    pub fn open(
        registry: Arc<Registry>,
        directory: &std::path::Path,
        origins: Origins,
        assets: Assets,
    ) -> Result<(Service, mpsc::Receiver<Outgoing>), Failure> {
        let (alerting, outgoing) = Alerting::open(directory)?;
        let (stop, _) = watch::channel(false);
        let monitor = Arc::new(Monitor::open(&directory.join("history.db"))?);
        let service = Service {
            registry,
            access: Arc::new(Access::open(directory, origins)?),
            audit: Arc::new(Audit::open(directory.join("audit.jsonl"))?),
            jobs: Arc::new(Jobs::new(Arc::clone(&monitor))),
            lab: directory.join("lab"),
            state: directory.into(),
            monitor,
            alerting: Arc::new(alerting),
            hosts: Arc::new(Hosts::open(directory)?),
            assets,
            stop,
        };
        Ok((service, outgoing))
    }
}

/// Every route, without what stands in front of them.
fn api() -> OpenApiRouter<Service> {
    devices::routes()
        .merge(media::routes())
        .merge(session::routes())
        .merge(accounts::routes())
        .merge(telemetry::routes())
        .merge(stream::routes())
        .merge(history::routes())
        .merge(lifetime::routes())
        .merge(alerts::routes())
        .merge(hosts::routes())
        .merge(jobs::routes())
        .merge(lab::routes())
        .merge(demo::routes())
        .merge(bugreport::routes())
        .merge(openapi::routes())
}

/// Every route.
pub fn router(service: Service) -> Router {
    let (api, _) = api().split_for_parts();
    Router::new()
        .nest(PREFIX, api)
        .merge(prometheus::routes())
        .fallback(assets::serve)
        .method_not_allowed_fallback(async || Failure::method())
        .layer(axum::middleware::from_fn_with_state(service.clone(), guard::check))
        .layer(axum::middleware::from_fn(content::confine))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(service)
}

/// What the API is, as OpenAPI has it, with the name of the session's cookie.
pub fn description(cookie: &str) -> utoipa::openapi::OpenApi {
    openapi::complete(api().split_for_parts().1, cookie)
}

/// The API as the service's owner uses it, without a socket: for whoever sends it anything at all to see that it holds.
/// Its NBD socket and what it remembers are kept in `directory`.
///
/// # Errors
/// The directory cannot be used.
pub fn in_process(directory: &std::path::Path) -> Result<Router, Failure> {
    let exports = Exports::start(&directory.join("nbd.sock"), None, Vec::new(), &Listen::default())?;
    let state = StateFile::open(directory.join("devices.toml"))?;
    let registry = Arc::new(Registry::new(exports, state, None)?);
    let (service, _) = Service::open(registry, directory, Origins::default(), assets::none)?;
    let owner = Peer::Unix { uid: Some(rustix::process::geteuid().as_raw()) };
    Ok(router(service).layer(MockConnectInfo(owner)))
}

/// Routes for whoever may read.
fn viewers(routes: OpenApiRouter<Service>) -> OpenApiRouter<Service> {
    routes.route_layer(axum::middleware::from_fn_with_state(Role::Viewer, guard::require))
}

/// Routes for whoever may use devices.
fn operators(routes: OpenApiRouter<Service>) -> OpenApiRouter<Service> {
    routes.route_layer(axum::middleware::from_fn_with_state(Role::Operator, guard::require))
}

/// Routes for whoever may do everything.
fn administrators(routes: OpenApiRouter<Service>) -> OpenApiRouter<Service> {
    routes.route_layer(axum::middleware::from_fn_with_state(Role::Administrator, guard::require))
}

/// Which part of a list that is shown with the newest first.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Page {
    /// At most so many; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only those with a smaller number.
    before: Option<u64>,
}

impl Page {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(100)
    }

    fn before(&self) -> u64 {
        self.before.unwrap_or(u64::MAX)
    }
}

fn done((): ()) -> StatusCode {
    StatusCode::NO_CONTENT
}

fn created<T>(made: T) -> (StatusCode, Json<T>) {
    (StatusCode::CREATED, Json(made))
}

fn accepted<T>(begun: T) -> (StatusCode, Json<T>) {
    (StatusCode::ACCEPTED, Json(begun))
}

/// Runs what may wait for a device where waiting is allowed.
async fn wait<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&Registry) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let registry = Arc::clone(&service.registry);
    blocking(move || work(&registry)).await
}

/// Runs what may wait, such as for a disk, where waiting is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!("a request to the API failed: {error}");
        Err(Failure::failed("the service made a mistake").help("its log says more; please report it"))
    })
}
