//! Moves of devices to other devices.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{MoveRequest, MoveView};
use crate::web::answer::{At, Body, Service, accepted, administrators, viewers, wait, wait_shared};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let change = OpenApiRouter::new().routes(routes!(begin_move, cancel_move));
    viewers(OpenApiRouter::new().routes(routes!(device_move))).merge(administrators(change))
}

/// The move of a device that is under way, or its last one since the service was started.
#[utoipa::path(get, path = "/devices/{name}/migrate", tag = "devices", params(("name" = String, Path, description = "an attached device")), responses((status = OK, body = MoveView), (status = "default", body = Failure)))]
async fn device_move(State(service): State<Service>, At(name): At<String>) -> Result<Json<MoveView>, Failure> {
    wait(&service, move |registry| registry.device_move(&name)).await.map(Json)
}

/// Begins to move a device to another one while clients use it. The new one takes its name, identity, exports and clients.
#[utoipa::path(post, path = "/devices/{name}/migrate", tag = "devices", params(("name" = String, Path, description = "an attached device")), request_body = MoveRequest, responses((status = ACCEPTED, body = MoveView), (status = "default", body = Failure)))]
async fn begin_move(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<MoveRequest>,
) -> Result<(StatusCode, Json<MoveView>), Failure> {
    wait_shared(&service, move |registry| registry.migrate(&name, &request)).await.map(accepted)
}

/// Cancels the move of a device, which stays where it is.
#[utoipa::path(delete, path = "/devices/{name}/migrate", tag = "devices", params(("name" = String, Path, description = "an attached device")), responses((status = OK, body = MoveView), (status = "default", body = Failure)))]
async fn cancel_move(State(service): State<Service>, At(name): At<String>) -> Result<Json<MoveView>, Failure> {
    wait(&service, move |registry| registry.cancel_move(&name)).await.map(Json)
}
