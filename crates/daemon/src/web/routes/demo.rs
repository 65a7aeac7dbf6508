//! Demo loads, and the first look: a device in memory that lives.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{AttachRequest, Demo, DemoRequest, Job};
use crate::jobs::demo;
use crate::web::answer::{At, Body, Service, accepted, blocking, done, operators, viewers};

/// The device that a first look makes.
const FIRST: &str = "demo";
/// What it is: enough for the load's working set, and for the groomer to have something to do.
const FIRST_TARGET: &str = "memory:256MiB";

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let begin = OpenApiRouter::new().routes(routes!(start_demo, stop_demo)).routes(routes!(first_look, end_first_look));
    viewers(OpenApiRouter::new().routes(routes!(demo))).merge(operators(begin))
}

/// How a demo load stands.
#[utoipa::path(get, path = "/devices/{name}/demo", tag = "jobs", params(("name" = String, Path, description = "a device")),
    responses((status = OK, body = Demo), (status = "default", body = Failure)))]
async fn demo(State(service): State<Service>, At(name): At<String>) -> Result<Json<Demo>, Failure> {
    let job = service.jobs.running("demo", &name);
    Ok(Json(Demo { running: job.is_some(), job }))
}

/// Starts a moderate mixed load, which overwrites what the device holds.
#[utoipa::path(post, path = "/devices/{name}/demo", tag = "jobs", params(("name" = String, Path, description = "a device")),
    request_body = DemoRequest, responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn start_demo(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<DemoRequest>,
) -> Result<(StatusCode, Json<Job>), Failure> {
    blocking(move || begin_demo(&service, name, &request)).await.map(accepted)
}

fn begin_demo(service: &Service, name: String, request: &DemoRequest) -> Result<Job, Failure> {
    let handle = service.registry.handle(&name)?;
    if service.jobs.running("demo", &name).is_some() {
        return Err(Failure::conflict(format!("a demo load runs on {name} already")).help("stop it first"));
    }
    let clients = handle.client_count();
    if clients > 0 {
        return Err(Failure::conflict(format!(
            "{name}: {clients} client(s) connected; the load would overwrite what they use"
        ))
        .help("disconnect them first"));
    }
    let held = handle.status()?.mapped_sectors;
    if held > 0 && request.confirm.as_deref() != Some(name.as_str()) {
        return Err(Failure::invalid(format!("the load would overwrite what {name} holds, and that is not confirmed"))
            .help("send the device's name as confirm if that is meant"));
    }
    let socket = service.registry.nbd_socket()?;
    service.jobs.start("demo", Some(name.clone()), "begins", move |task| {
        demo::load(&socket, &name, task)?;
        Ok(None)
    })
}

/// Stops a demo load.
#[utoipa::path(delete, path = "/devices/{name}/demo", tag = "jobs", params(("name" = String, Path, description = "a device")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn stop_demo(State(service): State<Service>, At(name): At<String>) -> Result<StatusCode, Failure> {
    service.jobs.running("demo", &name).map_or(Ok(()), |job| service.jobs.cancel(job.id)).map(done)
}

/// For a first look: a device in memory that lives.
#[utoipa::path(post, path = "/demo", tag = "jobs",
    responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn first_look(State(service): State<Service>) -> Result<(StatusCode, Json<Job>), Failure> {
    blocking(move || {
        if service.registry.handle(FIRST).is_err() {
            let request =
                AttachRequest { path: FIRST_TARGET.into(), name: Some(FIRST.into()), ..AttachRequest::default() };
            service.registry.attach(&request)?;
        }
        begin_demo(&service, FIRST.into(), &DemoRequest { confirm: Some(FIRST.into()) })
    })
    .await
    .map(accepted)
}

/// The first look is over: the load ends, and its device in memory goes.
#[utoipa::path(delete, path = "/demo", tag = "jobs",
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn end_first_look(State(service): State<Service>) -> Result<StatusCode, Failure> {
    blocking(move || {
        if let Some(job) = service.jobs.running("demo", FIRST) {
            service.jobs.cancel(job.id)?;
        }
        // Somebody's own device of this name is theirs.
        match service.registry.view(FIRST) {
            Ok(view) if view.text("path").starts_with("memory:") => service.registry.detach(FIRST, true),
            Ok(_) => {
                Err(Failure::conflict(format!("{FIRST} is a device that somebody made")).help("detach it by its name"))
            }
            Err(_) => Ok(()),
        }
    })
    .await
    .map(done)
}
