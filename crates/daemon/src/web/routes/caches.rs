//! Cached volumes: a device as the cache of slower storage.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{CacheRequest, CacheSettingsRequest, CacheView, Caches, DeleteCacheRequest, OpenRequest};
use crate::web::answer::{At, Body, Service, administrators, created, operators, viewers, wait};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new().routes(routes!(caches)).routes(routes!(cache));
    let use_them = OpenApiRouter::new().routes(routes!(open_cache)).routes(routes!(flush_cache));
    let change = OpenApiRouter::new().routes(routes!(create_cache)).routes(routes!(delete_cache));
    let change = change.routes(routes!(set_cache));
    viewers(read).merge(operators(use_them)).merge(administrators(change))
}

/// Every cached volume.
#[utoipa::path(get, path = "/caches", tag = "caches", responses((status = OK, body = Caches), (status = "default", body = Failure)))]
async fn caches(State(service): State<Service>) -> Result<Json<Caches>, Failure> {
    wait(&service, |registry| Ok(registry.caches())).await.map(Json)
}

/// One cached volume.
#[utoipa::path(get, path = "/caches/{name}", tag = "caches", params(("name" = String, Path, description = "a cached volume")), responses((status = OK, body = CacheView), (status = "default", body = Failure)))]
async fn cache(State(service): State<Service>, At(name): At<String>) -> Result<Json<CacheView>, Failure> {
    wait(&service, move |registry| registry.cache(&name)).await.map(Json)
}

/// Puts an attached device in front of slower storage. What stands behind stays as it is.
#[utoipa::path(post, path = "/caches", tag = "caches", request_body = CacheRequest, responses((status = CREATED, body = CacheView), (status = "default", body = Failure)))]
async fn create_cache(
    State(service): State<Service>,
    Body(request): Body<CacheRequest>,
) -> Result<(StatusCode, Json<CacheView>), Failure> {
    wait(&service, move |registry| registry.create_cache(&request)).await.map(created)
}

/// Opens a cached volume that was stopped or could not be opened, or has writes go another way.
#[utoipa::path(post, path = "/caches/{name}/open", tag = "caches", params(("name" = String, Path, description = "a cached volume")), request_body = OpenRequest, responses((status = OK, body = CacheView), (status = "default", body = Failure)))]
async fn open_cache(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<OpenRequest>,
) -> Result<Json<CacheView>, Failure> {
    wait(&service, move |registry| registry.open_cache(&name, &request)).await.map(Json)
}

/// Gives a cached volume another share of its cache device, or another limit.
#[utoipa::path(post, path = "/caches/{name}/settings", tag = "caches", params(("name" = String, Path, description = "a cached volume")), request_body = CacheSettingsRequest, responses((status = OK, body = CacheView), (status = "default", body = Failure)))]
async fn set_cache(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<CacheSettingsRequest>,
) -> Result<Json<CacheView>, Failure> {
    wait(&service, move |registry| registry.set_cache(&name, &request)).await.map(Json)
}

/// Writes behind what is not there yet; the answer comes when it is.
#[utoipa::path(post, path = "/caches/{name}/flush", tag = "caches", params(("name" = String, Path, description = "a cached volume")), responses((status = OK, body = CacheView), (status = "default", body = Failure)))]
async fn flush_cache(State(service): State<Service>, At(name): At<String>) -> Result<Json<CacheView>, Failure> {
    wait(&service, move |registry| registry.flush_cache(&name)).await.map(Json)
}

/// Writes behind what is not there yet, stops the volume and forgets it. What stands behind holds everything.
#[utoipa::path(post, path = "/caches/{name}/delete", tag = "caches", params(("name" = String, Path, description = "a cached volume")), request_body = DeleteCacheRequest, responses((status = OK, body = Caches), (status = "default", body = Failure)))]
async fn delete_cache(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<DeleteCacheRequest>,
) -> Result<Json<Caches>, Failure> {
    wait(&service, move |registry| registry.delete_cache(&name, &request)).await.map(Json)
}
