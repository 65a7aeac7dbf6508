//! Snapshots of devices.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{Diff, DiffQuery, RollBackRequest, Schedule, SnapshotPatch, SnapshotRequest, SnapshotView, Snapshots};
use crate::web::answer::{Ask, At, Body, Service, administrators, created, operators, viewers, wait};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new().routes(routes!(snapshots)).routes(routes!(diff));
    let use_them = OpenApiRouter::new()
        .routes(routes!(create_snapshot))
        .routes(routes!(delete_snapshot))
        .routes(routes!(change_snapshot))
        .routes(routes!(set_schedule));
    viewers(read).merge(operators(use_them)).merge(administrators(OpenApiRouter::new().routes(routes!(roll_back))))
}

/// The snapshots of a device, and what they hold.
#[utoipa::path(get, path = "/devices/{name}/snapshots", tag = "snapshots", params(("name" = String, Path, description = "a device")), responses((status = OK, body = Snapshots), (status = "default", body = Failure)))]
async fn snapshots(State(service): State<Service>, At(name): At<String>) -> Result<Json<Snapshots>, Failure> {
    wait(&service, move |registry| registry.snapshots(&name)).await.map(Json)
}

/// Makes a snapshot.
#[utoipa::path(post, path = "/devices/{name}/snapshots", tag = "snapshots", params(("name" = String, Path, description = "a device")), request_body = SnapshotRequest, responses((status = CREATED, body = SnapshotView), (status = "default", body = Failure)))]
async fn create_snapshot(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<SnapshotRequest>,
) -> Result<(StatusCode, Json<SnapshotView>), Failure> {
    wait(&service, move |registry| registry.create_snapshot(&name, &request.name)).await.map(created)
}

/// Deletes a snapshot.
#[utoipa::path(delete, path = "/devices/{name}/snapshots/{snapshot}", tag = "snapshots", params(("name" = String, Path, description = "a device"), ("snapshot" = String, Path, description = "a snapshot")), responses((status = OK, body = Snapshots), (status = "default", body = Failure)))]
async fn delete_snapshot(
    State(service): State<Service>,
    At((name, snapshot)): At<(String, String)>,
) -> Result<Json<Snapshots>, Failure> {
    wait(&service, move |registry| registry.delete_snapshot(&name, &snapshot)).await.map(Json)
}

/// Gives a snapshot another name, holds it, or lets it go.
#[utoipa::path(patch, path = "/devices/{name}/snapshots/{snapshot}", tag = "snapshots", params(("name" = String, Path, description = "a device"), ("snapshot" = String, Path, description = "a snapshot")), request_body = SnapshotPatch, responses((status = OK, body = Snapshots), (status = "default", body = Failure)))]
async fn change_snapshot(
    State(service): State<Service>,
    At((name, snapshot)): At<(String, String)>,
    Body(patch): Body<SnapshotPatch>,
) -> Result<Json<Snapshots>, Failure> {
    wait(&service, move |registry| registry.change_snapshot(&name, &snapshot, &patch)).await.map(Json)
}

/// Has the service make snapshots of a device by itself and delete the oldest, or no more where none are to be kept. The first is made at once.
#[utoipa::path(put, path = "/devices/{name}/snapshot-schedule", tag = "snapshots", params(("name" = String, Path, description = "a device")), request_body = Schedule, responses((status = OK, body = Snapshots), (status = "default", body = Failure)))]
async fn set_schedule(
    State(service): State<Service>,
    At(name): At<String>,
    Body(schedule): Body<Schedule>,
) -> Result<Json<Snapshots>, Failure> {
    wait(&service, move |registry| registry.set_schedule(&name, schedule)).await.map(Json)
}

/// Has the device hold again what a snapshot shows.
#[utoipa::path(post, path = "/devices/{name}/snapshots/{snapshot}/roll-back", tag = "snapshots", params(("name" = String, Path, description = "a device"), ("snapshot" = String, Path, description = "a snapshot")), request_body = RollBackRequest, responses((status = OK, body = Snapshots), (status = "default", body = Failure)))]
async fn roll_back(
    State(service): State<Service>,
    At((name, snapshot)): At<(String, String)>,
    Body(request): Body<RollBackRequest>,
) -> Result<Json<Snapshots>, Failure> {
    wait(&service, move |registry| registry.roll_back(&name, &snapshot, &request)).await.map(Json)
}

/// What differs between a snapshot and another one, or the device as it is: some of it, and where to go on.
#[utoipa::path(get, path = "/devices/{name}/snapshots/{snapshot}/diff", tag = "snapshots", params(("name" = String, Path, description = "a device"), ("snapshot" = String, Path, description = "a snapshot"), DiffQuery), responses((status = OK, body = Diff), (status = "default", body = Failure)))]
async fn diff(
    State(service): State<Service>,
    At((name, snapshot)): At<(String, String)>,
    Ask(query): Ask<DiffQuery>,
) -> Result<Json<Diff>, Failure> {
    let from = query.from.unwrap_or(0);
    wait(&service, move |registry| registry.diff(&name, &snapshot, query.with.as_deref(), from)).await.map(Json)
}
