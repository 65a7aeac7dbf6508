//! Arrays: several devices as one.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{
    AddMemberRequest, ArrayRequest, ArrayView, Arrays, AssembleRequest, DeleteArrayRequest, ReplaceRequest,
};
use crate::web::answer::{At, Body, Service, administrators, created, operators, viewers, wait};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new().routes(routes!(arrays)).routes(routes!(array));
    let use_them = OpenApiRouter::new().routes(routes!(assemble_array));
    let change = OpenApiRouter::new()
        .routes(routes!(create_array))
        .routes(routes!(add_member))
        .routes(routes!(replace_member))
        .routes(routes!(delete_array));
    viewers(read).merge(operators(use_them)).merge(administrators(change))
}

/// Every array.
#[utoipa::path(get, path = "/arrays", tag = "arrays", responses((status = OK, body = Arrays), (status = "default", body = Failure)))]
async fn arrays(State(service): State<Service>) -> Result<Json<Arrays>, Failure> {
    wait(&service, |registry| Ok(registry.arrays())).await.map(Json)
}

/// One array and its members.
#[utoipa::path(get, path = "/arrays/{name}", tag = "arrays", params(("name" = String, Path, description = "an array")), responses((status = OK, body = ArrayView), (status = "default", body = Failure)))]
async fn array(State(service): State<Service>, At(name): At<String>) -> Result<Json<ArrayView>, Failure> {
    wait(&service, move |registry| registry.array(&name)).await.map(Json)
}

/// Makes an array of attached devices. What they hold is lost.
#[utoipa::path(post, path = "/arrays", tag = "arrays", request_body = ArrayRequest, responses((status = CREATED, body = ArrayView), (status = "default", body = Failure)))]
async fn create_array(
    State(service): State<Service>,
    Body(request): Body<ArrayRequest>,
) -> Result<(StatusCode, Json<ArrayView>), Failure> {
    wait(&service, move |registry| registry.create_array(&request)).await.map(created)
}

/// Puts an array together that was stopped, or could not be assembled.
#[utoipa::path(post, path = "/arrays/{name}/assemble", tag = "arrays", params(("name" = String, Path, description = "an array")), request_body = AssembleRequest, responses((status = OK, body = ArrayView), (status = "default", body = Failure)))]
async fn assemble_array(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<AssembleRequest>,
) -> Result<Json<ArrayView>, Failure> {
    wait(&service, move |registry| registry.assemble_array(&name, request)).await.map(Json)
}

/// Adds a device to an array as one more member, while the array is in use.
#[utoipa::path(post, path = "/arrays/{name}/add", tag = "arrays", params(("name" = String, Path, description = "an array")), request_body = AddMemberRequest, responses((status = OK, body = ArrayView), (status = "default", body = Failure)))]
async fn add_member(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<AddMemberRequest>,
) -> Result<Json<ArrayView>, Failure> {
    wait(&service, move |registry| registry.add_member(&name, &request)).await.map(Json)
}

/// Gives a mirror another device in the place of a member that is missing.
#[utoipa::path(post, path = "/arrays/{name}/replace", tag = "arrays", params(("name" = String, Path, description = "an array")), request_body = ReplaceRequest, responses((status = OK, body = ArrayView), (status = "default", body = Failure)))]
async fn replace_member(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<ReplaceRequest>,
) -> Result<Json<ArrayView>, Failure> {
    wait(&service, move |registry| registry.replace_member(&name, &request)).await.map(Json)
}

/// Stops an array and forgets it; its members are devices of their own again.
#[utoipa::path(post, path = "/arrays/{name}/delete", tag = "arrays", params(("name" = String, Path, description = "an array")), request_body = DeleteArrayRequest, responses((status = OK, body = Arrays), (status = "default", body = Failure)))]
async fn delete_array(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<DeleteArrayRequest>,
) -> Result<Json<Arrays>, Failure> {
    wait(&service, move |registry| registry.delete_array(&name, &request)).await.map(Json)
}
