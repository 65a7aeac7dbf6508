//! The lab: what can be run, runs, and their reports.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{Job, LabRun, LabRunRequest, Named};
use crate::jobs::lab;
use crate::web::answer::{Ask, At, Body, Service, accepted, blocking, done, operators, viewers, wait};
use crate::{Failure, names};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new()
        .routes(routes!(protocols))
        .routes(routes!(workloads))
        .routes(routes!(profiles))
        .routes(routes!(runs))
        .routes(routes!(report))
        .routes(routes!(compare));
    let begin = OpenApiRouter::new().routes(routes!(run)).routes(routes!(remove_run));
    viewers(read).merge(operators(begin))
}

/// The test protocols.
#[utoipa::path(get, path = "/lab/protocols", tag = "lab", responses((status = OK, body = Vec<Named>), (status = "default", body = Failure)))]
async fn protocols(State(service): State<Service>) -> Json<Vec<Named>> {
    Json((service.program.protocols)())
}

/// The workloads.
#[utoipa::path(get, path = "/lab/workloads", tag = "lab", responses((status = OK, body = Vec<Named>), (status = "default", body = Failure)))]
async fn workloads(State(service): State<Service>) -> Json<Vec<Named>> {
    Json((service.program.workloads)())
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
    let (jobs, directory, program) = (Arc::clone(&service.jobs), service.lab.clone(), service.program);
    wait(&service, move |registry| {
        names::check(lab::RUN, &request.name)?;
        if !(program.protocols)().iter().any(|known| known.name == request.protocol) {
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
            scale: request.scale,
            repeat: request.repeat,
            seed: request.seed,
        };
        let device = (!virtual_device).then(|| request.device.clone());
        jobs.start("lab", device, "begins", move |task| lab::run(&asked, &path, task))
    })
    .await
    .map(accepted)
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
async fn report(State(service): State<Service>, At(name): At<String>) -> Result<Response, Failure> {
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
async fn remove_run(State(service): State<Service>, At(name): At<String>) -> Result<StatusCode, Failure> {
    blocking(move || lab::remove(&service.lab, &name)).await.map(done)
}
