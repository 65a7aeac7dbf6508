//! What routes have in common: who may use them, where they wait, what they answer.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

use super::guard;
use crate::Failure;
use crate::api::Role;
use crate::registry::Registry;

pub use super::extract::{Ask, At, Body};
pub use crate::service::Service;

/// Routes for whoever may read.
pub fn viewers(routes: OpenApiRouter<Service>) -> OpenApiRouter<Service> {
    routes.route_layer(axum::middleware::from_fn_with_state(Role::Viewer, guard::require))
}

/// Routes for whoever may use devices.
pub fn operators(routes: OpenApiRouter<Service>) -> OpenApiRouter<Service> {
    routes.route_layer(axum::middleware::from_fn_with_state(Role::Operator, guard::require))
}

/// Routes for whoever may do everything.
pub fn administrators(routes: OpenApiRouter<Service>) -> OpenApiRouter<Service> {
    routes.route_layer(axum::middleware::from_fn_with_state(Role::Administrator, guard::require))
}

/// Which part of a list that is shown with the newest first.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// At most so many; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only those with a smaller number.
    before: Option<u64>,
}

impl Page {
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(100)
    }

    pub fn before(&self) -> u64 {
        self.before.unwrap_or(u64::MAX)
    }
}

pub fn done((): ()) -> StatusCode {
    StatusCode::NO_CONTENT
}

pub fn created<T>(made: T) -> (StatusCode, Json<T>) {
    (StatusCode::CREATED, Json(made))
}

pub fn accepted<T>(begun: T) -> (StatusCode, Json<T>) {
    (StatusCode::ACCEPTED, Json(begun))
}

/// Runs what may wait for a device where waiting is allowed.
pub async fn wait<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&Registry) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    wait_shared(service, |registry| work(registry)).await
}

/// The same for what starts something that goes on afterwards.
pub async fn wait_shared<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&Arc<Registry>) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let registry = Arc::clone(&service.registry);
    blocking(move || work(&registry)).await
}

/// Runs what may wait, such as for a disk, where waiting is allowed.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!("a request to the API failed: {error}");
        Err(Failure::failed("the service made a mistake").help("its log says more; please report it"))
    })
}
