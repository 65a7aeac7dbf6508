//! What takes long: jobs, and predictions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use device::Capacity;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{Job, PredictionRequest};
use crate::jobs::prediction;
use crate::web::answer::{At, Body, Service, accepted, done, operators, viewers, wait};
use crate::web::guard::Asker;

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new().routes(routes!(jobs)).routes(routes!(job));
    let begin = OpenApiRouter::new().routes(routes!(cancel)).routes(routes!(predict));
    viewers(read).merge(operators(begin))
}

/// Every job, the newest first.
#[utoipa::path(get, path = "/jobs", tag = "jobs", responses((status = OK, body = Vec<Job>), (status = "default", body = Failure)))]
async fn jobs(State(service): State<Service>) -> Json<Vec<Job>> {
    Json(service.jobs.all())
}

/// One job.
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path, description = "its number")),
    responses((status = OK, body = Job), (status = "default", body = Failure)))]
async fn job(State(service): State<Service>, At(id): At<u64>) -> Result<Json<Job>, Failure> {
    service.jobs.get(id).map(Json)
}

/// Ends a job, or forgets one that has ended.
#[utoipa::path(delete, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path, description = "its number")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn cancel(State(service): State<Service>, At(id): At<u64>) -> Result<StatusCode, Failure> {
    service.jobs.cancel(id).map(done)
}

/// What each capacity of a format would do to a workload: a job.
#[utoipa::path(post, path = "/predictions", tag = "jobs", request_body = PredictionRequest,
    responses((status = ACCEPTED, body = Job), (status = "default", body = Failure)))]
async fn predict(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    Body(request): Body<PredictionRequest>,
) -> Result<(StatusCode, Json<Job>), Failure> {
    let (jobs, program) = (Arc::clone(&service.jobs), service.program);
    wait(&service, move |registry| {
        // A data sheet that is named is asked about as such.
        let device = request.device.as_ref().filter(|_| request.profile.is_none());
        let device = device.map(|device| registry.handle(device)).transpose()?;
        let (about, of_device) = match device {
            Some(handle) => {
                let (info, status) = (handle.info()?, handle.status()?);
                let emulated = info.emulation.is_some();
                let card = info.profile.clone().filter(|_| emulated).unwrap_or_else(|| prediction::STAND_IN.into());
                let about = prediction::About {
                    advertised_bytes: info.advertised_bytes,
                    raw_bytes: info.raw_bytes,
                    sector_bytes: info.sector_bytes,
                    groomer: status.groomer.into(),
                    emulated,
                };
                (Some(about), Some(card))
            }
            None => (None, None),
        };
        let profile = request.profile.clone().or(of_device).ok_or_else(|| {
            Failure::invalid("neither a device nor a data sheet is given")
                .help("send device, or one of `GET /api/v1/lab/profiles` as profile")
        })?;
        let profile = profile::find(&profile)
            .map_err(|error| Failure::invalid(error.to_string()).help("`GET /api/v1/lab/profiles` lists them"))?;
        let trace = match (request.workload.as_str(), &request.trace, &request.device) {
            ("recorded", Some(path), _) if path.is_absolute() => {
                if !asker.is_administrator() && !registry.has_recorded(path) {
                    return Err(Failure::forbidden(format!("{}: it is no recording of this service", path.display()))
                        .help("leave it out for the device's last recording; an administrator may name any file"));
                }
                Some(path.clone())
            }
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
        for capacity in &capacities {
            let wrong = |what| Failure::invalid(format!("capacities: '{}': {what}", capacity.escape_debug()));
            capacity.parse::<Capacity>().map_err(wrong)?;
        }
        let named = request.workload.clone();
        if trace.is_none() && !(program.workloads)().iter().any(|known| known.name == named) {
            return Err(Failure::invalid(format!("workload: there is no '{}'", named.escape_debug()))
                .help("`GET /api/v1/lab/workloads` lists them; `recorded` takes what was recorded of the device"));
        }
        let question = prediction::Question { profile: profile.name, about, named, trace, capacities };
        jobs.start("prediction", request.device.clone(), "begins", move |task| prediction::predict(&question, task))
    })
    .await
    .map(accepted)
}
