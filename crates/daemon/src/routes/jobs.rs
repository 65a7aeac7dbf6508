//! What takes long: jobs, predictions, lab runs, demo loads; and formatting, which takes a moment.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Ask, Body, Name, Service, administrators, blocking, name, operators, viewers, wait};
use crate::api::{
    AttachRequest, Demo, DemoRequest, FormatRequest, Job, LabRun, LabRunRequest, Named, PredictionRequest,
};
use crate::jobs::{demo, lab, prediction};
use crate::openapi::DeviceFields;
use crate::{Failure, fields};

/// The device that a first look makes.
const FIRST: &str = "demo";
/// What it is: enough for the load's working set, and for the groomer to have something to do.
const FIRST_TARGET: &str = "memory:256MiB";

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new()
        .routes(routes!(jobs))
        .routes(routes!(job))
        .routes(routes!(protocols))
        .routes(routes!(workloads))
        .routes(routes!(profiles))
        .routes(routes!(runs))
        .routes(routes!(report))
        .routes(routes!(compare))
        .routes(routes!(demo));
    let begin = OpenApiRouter::new()
        .routes(routes!(cancel))
        .routes(routes!(predict))
        .routes(routes!(run))
        .routes(routes!(remove_run))
        .routes(routes!(start_demo, stop_demo))
        .routes(routes!(first_look, end_first_look));
    viewers(read).merge(operators(begin)).merge(administrators(OpenApiRouter::new().routes(routes!(format))))
}

type Id = Result<Path<u64>, PathRejection>;

fn id(path: Id) -> Result<u64, Failure> {
    path.map(|Path(id)| id).map_err(|rejection| Failure::invalid(format!("the path: {}", rejection.body_text())))
}

/// Every job, the newest first.
#[utoipa::path(get, path = "/jobs", tag = "jobs", responses((status = OK, body = Vec<Job>), (status = "default", body = Failure)))]
async fn jobs(State(service): State<Service>) -> Json<Vec<Job>> {
    Json(service.jobs.all())
}

/// One job.
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path, description = "its number")),
    responses((status = OK, body = Job), (status = "default", body = Failure)))]
async fn job(State(service): State<Service>, path: Id) -> Result<Json<Job>, Failure> {
    service.jobs.get(id(path)?).map(Json)
}

/// Ends a job, or forgets one that has ended.
#[utoipa::path(delete, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path, description = "its number")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn cancel(State(service): State<Service>, path: Id) -> Result<StatusCode, Failure> {
    service.jobs.cancel(id(path)?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// What each capacity of a format would do to a workload: a job.
#[utoipa::path(post, path = "/predictions", tag = "jobs", request_body = PredictionRequest,
    responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn predict(
    State(service): State<Service>,
    Body(request): Body<PredictionRequest>,
) -> Result<(StatusCode, Json<Job>), Failure> {
    let jobs = Arc::clone(&service.jobs);
    let job = wait(&service, move |registry| {
        let info = request.device.as_ref().map(|device| registry.handle(device)?.info()).transpose()?;
        let of_device = info.as_ref().and_then(|info| info.profile.clone());
        let profile = request.profile.clone().or(of_device).ok_or_else(|| {
            Failure::invalid("no data sheet is known of the card")
                .help("send one of `GET /api/v1/lab/profiles` as profile")
        })?;
        let profile = profile::find(&profile)
            .map_err(|error| Failure::invalid(error.to_string()).help("`GET /api/v1/lab/profiles` lists them"))?;
        let trace = match (request.workload.as_str(), &request.trace, &request.device) {
            ("recorded", Some(path), _) if path.is_absolute() => Some(path.clone()),
            ("recorded", Some(path), _) => {
                return Err(Failure::invalid(format!("{}: the path of a recording must be absolute", path.display())));
            }
            ("recorded", None, Some(device)) => Some(registry.last_recording(device)?),
            ("recorded", None, None) => {
                return Err(Failure::invalid("neither a recording nor a device is given").help("send device, or trace"));
            }
            _ => None,
        };
        let capacities = request.capacities.clone();
        let capacities = capacities.unwrap_or_else(|| prediction::CAPACITIES.iter().map(ToString::to_string).collect());
        if capacities.is_empty() || capacities.len() > 16 {
            return Err(Failure::invalid(format!("capacities: {} of them", capacities.len())).help("try 1 to 16"));
        }
        capacities.iter().try_for_each(|capacity| prediction::format_of(capacity).map(drop))?;
        let sector_bytes = None;
        let question =
            prediction::Question { profile, named: request.workload.clone(), trace, capacities, sector_bytes };
        prediction::workload_of(&question)?;
        jobs.start("prediction", request.device.clone(), "begins", move |task| prediction::predict(&question, task))
    })
    .await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// The test protocols.
#[utoipa::path(get, path = "/lab/protocols", tag = "lab", responses((status = OK, body = Vec<Named>), (status = "default", body = Failure)))]
async fn protocols() -> Json<Vec<Named>> {
    let named = ::lab::protocol::shipped().iter().map(|shipped| {
        let found = ::lab::protocol::find(shipped.name).and_then(Result::ok);
        let description = found.map(|(protocol, _)| protocol.description).unwrap_or_default();
        Named { name: shipped.name.into(), description, kind: None }
    });
    Json(named.collect())
}

/// The workloads.
#[utoipa::path(get, path = "/lab/workloads", tag = "lab", responses((status = OK, body = Vec<Named>), (status = "default", body = Failure)))]
async fn workloads() -> Json<Vec<Named>> {
    let named = ::lab::workload::names().iter().map(|named| {
        let found = ::lab::workload::find(named.name).and_then(Result::ok);
        Named {
            name: named.name.into(),
            description: found.map(|found| found.description).unwrap_or_default(),
            kind: None,
        }
    });
    Json(named.collect())
}

/// The data sheets.
#[utoipa::path(get, path = "/lab/profiles", tag = "lab", responses((status = OK, body = Vec<Named>), (status = "default", body = Failure)))]
async fn profiles() -> Result<Json<Vec<Named>>, Failure> {
    let all = profile::all().map_err(|error| Failure::failed(error.to_string()))?;
    let named = all.iter().map(|profile| Named {
        name: profile.name.clone(),
        description: format!("{} {}", profile.vendor, profile.product),
        kind: Some(
            match profile.device {
                profile::Device::Flash(_) => "flash",
                profile::Device::Bridged(_) => "bridged",
                profile::Device::Disk(_) => "disk",
                profile::Device::Array(_) => "array",
            }
            .into(),
        ),
    });
    Ok(Json(named.collect()))
}

/// Runs a protocol: a job.
#[utoipa::path(post, path = "/lab/runs", tag = "lab", request_body = LabRunRequest,
    responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn run(
    State(service): State<Service>,
    Body(request): Body<LabRunRequest>,
) -> Result<(StatusCode, Json<Job>), Failure> {
    let (jobs, directory) = (Arc::clone(&service.jobs), service.lab.clone());
    let job = wait(&service, move |registry| {
        lab::check_name(&request.name)?;
        if ::lab::protocol::find(&request.protocol).is_none() {
            return Err(Failure::invalid(format!("protocol: there is no '{}'", request.protocol.escape_debug()))
                .help("`GET /api/v1/lab/protocols` lists them"));
        }
        let virtual_device = profile::find(&request.device).is_ok();
        if !virtual_device {
            registry.handle(&request.device)?;
            if request.confirm.as_ref() != Some(&request.device) {
                return Err(Failure::invalid(format!("this would overwrite {}, and is not confirmed", request.device))
                    .help("send the device's name as confirm if that is meant"));
            }
        }
        let path: PathBuf = directory.join(&request.name);
        if path.exists() {
            return Err(
                Failure::conflict(format!("there is a run '{}' already", request.name)).help("choose another name")
            );
        }
        std::fs::create_dir_all(&directory).map_err(|error| Failure::io(&directory, &error))?;
        let asked = lab::Asked {
            protocol: request.protocol.clone(),
            device: request.device.clone(),
            name: request.name.clone(),
            full: request.full,
            scale: request.scale.map(|scale| scale.clamp(1, 65_536)),
            repeat: request.repeat.clamp(1, 1000),
            seed: request.seed,
        };
        let device = (!virtual_device).then(|| request.device.clone());
        jobs.start("lab", device, "begins", move |task| lab::run(&asked, &path, task))
    })
    .await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// Runs, finished and under way.
#[utoipa::path(get, path = "/lab/runs", tag = "lab", responses((status = OK, body = Vec<LabRun>), (status = "default", body = Failure)))]
async fn runs(State(service): State<Service>) -> Result<Json<Vec<LabRun>>, Failure> {
    blocking(move || Ok(lab::runs(&service.lab))).await.map(Json)
}

fn page(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], bytes).into_response()
}

/// A run's report.
#[utoipa::path(get, path = "/lab/runs/{name}/report", tag = "lab", params(("name" = String, Path, description = "a run")),
    responses((status = OK, content_type = "text/html", body = String), (status = "default", body = Failure)))]
async fn report(State(service): State<Service>, path: Name) -> Result<Response, Failure> {
    let name = name(path)?;
    blocking(move || lab::report(&service.lab, &name)).await.map(page)
}

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Names with commas in between; the others are compared with the first.
    runs: String,
}

/// Runs side by side.
#[utoipa::path(get, path = "/lab/compare", tag = "lab", params(Which),
    responses((status = OK, content_type = "text/html", body = String), (status = "default", body = Failure)))]
async fn compare(State(service): State<Service>, Ask(which): Ask<Which>) -> Result<Response, Failure> {
    let names: Vec<String> = which.runs.split(',').map(str::to_string).collect();
    blocking(move || lab::compare(&service.lab, &names)).await.map(page)
}

/// A run goes.
#[utoipa::path(delete, path = "/lab/runs/{name}", tag = "lab", params(("name" = String, Path, description = "a run")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn remove_run(State(service): State<Service>, path: Name) -> Result<StatusCode, Failure> {
    let name = name(path)?;
    blocking(move || lab::remove(&service.lab, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How a demo load stands.
#[utoipa::path(get, path = "/devices/{name}/demo", tag = "jobs", params(("name" = String, Path, description = "a device")),
    responses((status = OK, body = Demo), (status = "default", body = Failure)))]
async fn demo(State(service): State<Service>, path: Name) -> Result<Json<Demo>, Failure> {
    let job = service.jobs.running("demo", &name(path)?);
    Ok(Json(Demo { running: job.is_some(), job }))
}

/// Starts a moderate mixed load, which overwrites what the device holds.
#[utoipa::path(post, path = "/devices/{name}/demo", tag = "jobs", params(("name" = String, Path, description = "a device")),
    request_body = DemoRequest, responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn start_demo(
    State(service): State<Service>,
    path: Name,
    Body(request): Body<DemoRequest>,
) -> Result<(StatusCode, Json<Job>), Failure> {
    let name = name(path)?;
    let job = blocking(move || begin_demo(&service, name, &request)).await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

fn begin_demo(service: &Service, name: String, request: &DemoRequest) -> Result<Job, Failure> {
    let handle = service.registry.handle(&name)?;
    if service.jobs.running("demo", &name).is_some() {
        return Err(Failure::conflict(format!("a demo load runs on {name} already")).help("stop it first"));
    }
    let clients = handle.clients().len();
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
async fn stop_demo(State(service): State<Service>, path: Name) -> Result<StatusCode, Failure> {
    if let Some(job) = service.jobs.running("demo", &name(path)?) {
        service.jobs.cancel(job.id)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// For a first look: a device in memory that lives.
#[utoipa::path(post, path = "/demo", tag = "jobs",
    responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn first_look(State(service): State<Service>) -> Result<(StatusCode, Json<Job>), Failure> {
    let job = blocking(move || {
        if service.registry.handle(FIRST).is_err() {
            let request =
                AttachRequest { path: FIRST_TARGET.into(), name: Some(FIRST.into()), ..AttachRequest::default() };
            service.registry.attach(&request)?;
        }
        begin_demo(&service, FIRST.into(), &DemoRequest { confirm: Some(FIRST.into()) })
    })
    .await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
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
            Ok(view) if view.path.starts_with("memory:") => service.registry.detach(FIRST, true),
            Ok(_) => {
                Err(Failure::conflict(format!("{FIRST} is a device that somebody made")).help("detach it by its name"))
            }
            Err(_) => Ok(()),
        }
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Formats a device: everything on it is lost.
#[utoipa::path(post, path = "/devices/{name}/format", tag = "devices", params(("name" = String, Path, description = "a device")),
    request_body = FormatRequest, responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn format(
    State(service): State<Service>,
    path: Name,
    Body(request): Body<FormatRequest>,
) -> Result<Json<serde_json::Map<String, serde_json::Value>>, Failure> {
    let name = name(path)?;
    wait(&service, move |registry| registry.format(&name, &request)).await.map(|view| Json(fields::values(&view)))
}
