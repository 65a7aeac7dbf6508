//! Clones of devices' snapshots.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{CloneRequest, CloneView, Clones, PromoteRequest};
use crate::web::answer::{At, Body, Service, administrators, created, operators, viewers, wait};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let use_them = OpenApiRouter::new().routes(routes!(create_clone)).routes(routes!(delete_clone));
    let promote = OpenApiRouter::new().routes(routes!(promote_clone));
    viewers(OpenApiRouter::new().routes(routes!(clones))).merge(operators(use_them)).merge(administrators(promote))
}

/// The clones of a device's snapshots, and what they hold.
#[utoipa::path(get, path = "/devices/{name}/clones", tag = "snapshots", params(("name" = String, Path, description = "a device")), responses((status = OK, body = Clones), (status = "default", body = Failure)))]
async fn clones(State(service): State<Service>, At(name): At<String>) -> Result<Json<Clones>, Failure> {
    wait(&service, move |registry| registry.clones(&name)).await.map(Json)
}

/// Makes a clone of a snapshot, to be written.
#[utoipa::path(post, path = "/devices/{name}/clones", tag = "snapshots", params(("name" = String, Path, description = "a device")), request_body = CloneRequest, responses((status = CREATED, body = CloneView), (status = "default", body = Failure)))]
async fn create_clone(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<CloneRequest>,
) -> Result<(StatusCode, Json<CloneView>), Failure> {
    wait(&service, move |registry| registry.create_clone(&name, &request)).await.map(created)
}

/// Deletes a clone.
#[utoipa::path(delete, path = "/devices/{name}/clones/{clone}", tag = "snapshots", params(("name" = String, Path, description = "a device"), ("clone" = String, Path, description = "a clone")), responses((status = OK, body = Clones), (status = "default", body = Failure)))]
async fn delete_clone(
    State(service): State<Service>,
    At((name, clone)): At<(String, String)>,
) -> Result<Json<Clones>, Failure> {
    wait(&service, move |registry| registry.delete_clone(&name, &clone)).await.map(Json)
}

/// Has the device hold what a clone does, which is none any more.
#[utoipa::path(post, path = "/devices/{name}/clones/{clone}/promote", tag = "snapshots", params(("name" = String, Path, description = "a device"), ("clone" = String, Path, description = "a clone")), request_body = PromoteRequest, responses((status = OK, body = Clones), (status = "default", body = Failure)))]
async fn promote_clone(
    State(service): State<Service>,
    At((name, clone)): At<(String, String)>,
    Body(request): Body<PromoteRequest>,
) -> Result<Json<Clones>, Failure> {
    wait(&service, move |registry| registry.promote_clone(&name, &clone, &request)).await.map(Json)
}
