//! Devices as a whole: made, formatted, erased, given other keys. What carries a secret goes where every request goes: the owner's Unix socket, loopback,
//! and TLS elsewhere.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use device::{Erased, KeyChange};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{
    CreateRequest, DeviceView, EraseRequest, FormatRequest, Job, JobResult, KeyRequest, KeySlots, RemoveKeyRequest,
};
use crate::jobs::Task;
use crate::web::answer::{At, Body, Service, accepted, administrators, blocking, created, wait};
use crate::web::description::DeviceFields;

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    administrators(
        OpenApiRouter::new()
            .routes(routes!(create))
            .routes(routes!(format))
            .routes(routes!(erase))
            .routes(routes!(add_device_key, change_device_key))
            .routes(routes!(remove_device_key)),
    )
}

/// Makes a new device, or one for each module of a card. It destroys nothing: where something exists it is refused.
#[utoipa::path(post, path = "/create", tag = "devices", request_body = CreateRequest,
    responses((status = CREATED, body = Vec<DeviceFields>), (status = "default", body = Failure)))]
async fn create(
    State(service): State<Service>,
    Body(request): Body<CreateRequest>,
) -> Result<(StatusCode, Json<Vec<DeviceView>>), Failure> {
    wait(&service, move |registry| registry.create(&request)).await.map(created)
}

/// Formats a device: everything on it is lost.
#[utoipa::path(post, path = "/devices/{name}/format", tag = "devices", params(("name" = String, Path, description = "a device")),
    request_body = FormatRequest, responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn format(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<FormatRequest>,
) -> Result<Json<DeviceView>, Failure> {
    wait(&service, move |registry| registry.format(&name, &request)).await.map(Json)
}

/// Erases a device: everything that it ever held is made unreadable, for good. A job; an erase that was cut leaves no device until it is run again.
#[utoipa::path(post, path = "/devices/{name}/erase", tag = "devices", params(("name" = String, Path, description = "a device")),
    request_body = EraseRequest, responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn erase(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<EraseRequest>,
) -> Result<(StatusCode, Json<Job>), Failure> {
    blocking(move || begin_erase(&service, &name, &request)).await.map(accepted)
}

fn begin_erase(service: &Service, name: &str, request: &EraseRequest) -> Result<Job, Failure> {
    let registry = Arc::clone(&service.registry);
    let erasure = Arc::new(registry.begin_erase(name, request)?);
    let (for_job, owner) = (Arc::clone(&erasure), Arc::clone(&registry));
    let begun = service.jobs.start("erase", Some(name.into()), "begins", move |task| {
        let certificate = owner.erase(&for_job, &mut |erased| told(task, erased))?;
        Ok(Some(JobResult::Erased(certificate)))
    });
    // Nothing was destroyed yet, but it is not attached: it can be erased, or detached and attached.
    begun.inspect_err(|failure| registry.give_up_erase(&erasure, failure))
}

/// Tells how far an erase is; whether it goes on.
fn told(task: &Task, erased: Erased) -> bool {
    let share = if erased.total == 0 { 0.0 } else { erased.done as f64 / erased.total as f64 };
    // Everything is gone over twice.
    let progress = match erased.step {
        "verify" => 0.5 + share / 2.0,
        "discard" => 1.0,
        _ => share / 2.0,
    };
    task.at(progress, erased.step);
    !task.is_cancelled()
}

/// Adds what opens an encrypted device besides. It goes on serving meanwhile.
#[utoipa::path(post, path = "/devices/{name}/keys", tag = "devices", params(("name" = String, Path, description = "a device")),
    request_body = KeyRequest, responses((status = CREATED, body = KeySlots), (status = "default", body = Failure)))]
async fn add_device_key(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<KeyRequest>,
) -> Result<(StatusCode, Json<KeySlots>), Failure> {
    let change = move |registry: &crate::registry::Registry| {
        let change = KeyChange::Add(request.new.secret()?);
        registry.change_keys(&name, request.with.as_ref(), &change, None)
    };
    wait(&service, change).await.map(created)
}

/// Puts another passphrase or key file in the place of one.
#[utoipa::path(put, path = "/devices/{name}/keys", tag = "devices", params(("name" = String, Path, description = "a device")),
    request_body = KeyRequest, responses((status = OK, body = KeySlots), (status = "default", body = Failure)))]
async fn change_device_key(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<KeyRequest>,
) -> Result<Json<KeySlots>, Failure> {
    let change = move |registry: &crate::registry::Registry| {
        let change = KeyChange::Change(request.new.secret()?);
        registry.change_keys(&name, request.with.as_ref(), &change, Some(&request.new))
    };
    wait(&service, change).await.map(Json)
}

/// Empties a key slot; the last one stays.
#[utoipa::path(post, path = "/devices/{name}/keys/remove", tag = "devices", params(("name" = String, Path, description = "a device")),
    request_body = RemoveKeyRequest, responses((status = OK, body = KeySlots), (status = "default", body = Failure)))]
async fn remove_device_key(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<RemoveKeyRequest>,
) -> Result<Json<KeySlots>, Failure> {
    let change = move |registry: &crate::registry::Registry| {
        registry.change_keys(&name, request.with.as_ref(), &KeyChange::Remove(request.slot), None)
    };
    wait(&service, change).await.map(Json)
}
