//! The HTTP API and the console: which paths there are, who may use them, and how they are described. All of it stands before the
//! service, which knows nothing of it.

mod answer;
mod bounds;
mod description;
mod extract;
mod guard;
mod routes;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::connect_info::MockConnectInfo;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;

use crate::access::{Origins, Peer, content};
use crate::api::PREFIX;
use crate::exports::{Exports, Listen};
use crate::registry::Registry;
use crate::service::Service;
use crate::state::StateFile;
use crate::{Failure, Program};

use guard::BODY_LIMIT;
use routes::{
    accounts, alerts, arrays, assets, bugreport, caches, clones, demo, devices, history, hosts, jobs, lab, lifetime,
    media, moves, prometheus, session, snapshots, stream, telemetry,
};

/// Every route, without what stands in front of them.
fn api() -> OpenApiRouter<Service> {
    devices::routes()
        .merge(media::routes())
        .merge(snapshots::routes())
        .merge(arrays::routes())
        .merge(caches::routes())
        .merge(moves::routes())
        .merge(clones::routes())
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
        // It holds nothing of anybody, so anybody may read it.
        .routes(utoipa_axum::routes!(openapi))
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "description",
    responses((status = OK, content_type = "application/json", body = Object)))]
async fn openapi(State(service): State<Service>) -> impl IntoResponse {
    // It is a tree of plain values.
    let text = serde_json::to_string_pretty(&document(service.access.cookie_name())).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text)
}

/// The API's description as plain values, with what the session's cookie is called, and the bounds of every number that is asked for.
fn document(cookie: &str) -> Value {
    description::document(api().split_for_parts().1, cookie)
}

/// Every route.
pub fn router(service: Service) -> Router {
    bounds::learn(|| document(""));
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

/// The API as the service's owner uses it, without a socket: for whoever sends it anything at all to see that it holds.
/// Its NBD socket and what it remembers are kept in `directory`.
///
/// # Errors
/// The directory cannot be used.
pub fn in_process(directory: &Path) -> Result<Router, Failure> {
    let exports = Exports::start(&directory.join("nbd.sock"), None, Vec::new(), &Listen::default())?;
    let state = StateFile::open(directory.join("devices.toml"))?;
    let registry = Arc::new(Registry::new(exports, state, None)?);
    let (service, _) = Service::open(registry, directory, Origins::default(), Program::default())?;
    let owner = Peer::Unix { uid: Some(rustix::process::geteuid().as_raw()) };
    Ok(router(service).layer(MockConnectInfo(owner)))
}
