//! Devices and the service: each path, what it takes and what it gives.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{
    AttachRequest, Beacon, Config, DetachRequest, DeviceView, Drills, EndedRecording, Events, Health, LookRequest,
    ObjectsDevice, OptimiseRequest, Owner, PowerOnRequest, RebuildRequest, RecordRequest, RecordStatus, ResizeRequest,
    Role, ScrubRequest, Version,
};
use crate::registry::objects::look;
use crate::web::answer::{
    At, Body, Service, administrators, blocking, created, done, operators, viewers, wait, wait_shared,
};
use crate::web::description::{DeviceFields, DrillBody};
use crate::web::guard::Asker;

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new()
        .routes(routes!(version))
        .routes(routes!(health))
        .routes(routes!(devices))
        .routes(routes!(device))
        .routes(routes!(config))
        .routes(routes!(drills))
        .routes(routes!(events))
        .routes(routes!(recording))
        .routes(routes!(recordings))
        .routes(routes!(objects));
    let use_them = OpenApiRouter::new()
        .routes(routes!(attach))
        .routes(routes!(detach))
        .routes(routes!(beacon))
        .routes(routes!(set_config))
        .routes(routes!(scrub))
        .routes(routes!(optimise))
        .routes(routes!(rebuild))
        .routes(routes!(resize))
        .routes(routes!(drill))
        .routes(routes!(undo_drill))
        .routes(routes!(power_on))
        .routes(routes!(record))
        .routes(routes!(stop_recording))
        .routes(routes!(look_at_objects));
    viewers(read).merge(operators(use_them)).merge(administrators(OpenApiRouter::new().routes(routes!(shutdown))))
}

/// The program.
#[utoipa::path(get, path = "/version", tag = "devices", responses((status = OK, body = Version), (status = "default", body = Failure)))]
async fn version() -> Json<Version> {
    Json(Version { version: env!("CARGO_PKG_VERSION").into(), api: 1, pid: std::process::id() })
}

/// Whether the service is ready.
#[utoipa::path(get, path = "/health", tag = "devices", responses((status = OK, body = Health), (status = "default", body = Failure)))]
async fn health(State(service): State<Service>) -> Json<Health> {
    Json(service.registry.health())
}

/// Every device.
#[utoipa::path(get, path = "/devices", tag = "devices", responses((status = OK, body = Vec<DeviceFields>), (status = "default", body = Failure)))]
async fn devices(State(service): State<Service>) -> Result<Json<Vec<DeviceView>>, Failure> {
    wait(&service, |registry| Ok(registry.views())).await.map(Json)
}

/// One device.
#[utoipa::path(get, path = "/devices/{name}", tag = "devices", params(("name" = String, Path, description = "a device")), responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn device(State(service): State<Service>, At(name): At<String>) -> Result<Json<DeviceView>, Failure> {
    wait(&service, move |registry| registry.view(&name)).await.map(Json)
}

/// Attaches a device.
#[utoipa::path(post, path = "/devices", tag = "devices", request_body = AttachRequest, responses((status = CREATED, body = DeviceFields), (status = "default", body = Failure)))]
async fn attach(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    Body(request): Body<AttachRequest>,
) -> Result<(StatusCode, Json<DeviceView>), Failure> {
    if request.witness.is_some() && !asker.is_administrator() {
        return Err(Failure::forbidden("a witness is a file that is made where the request says")
            .help(format!("it needs the role {}", Role::Administrator.name())));
    }
    let anywhere = asker.is_administrator();
    wait_shared(&service, move |registry| match request.objects.clone() {
        None => registry.attach(&request),
        Some(from) => {
            let request = AttachRequest { path: registry.journal(&request.path, anywhere)?, ..request };
            if from.stand_by { registry.stand_by(&request, &from) } else { registry.attach(&request) }
        }
    })
    .await
    .map(created)
}

/// Devices on objects, and those that the service stands by for.
#[utoipa::path(get, path = "/objects", tag = "devices", responses((status = OK, body = Vec<ObjectsDevice>), (status = "default", body = Failure)))]
async fn objects(State(service): State<Service>) -> Result<Json<Vec<ObjectsDevice>>, Failure> {
    wait(&service, |registry| Ok(registry.on_objects())).await.map(Json)
}

/// Who has a device in a store, asked with the service's credentials. Nothing is changed.
#[utoipa::path(post, path = "/objects/look", tag = "devices", request_body = LookRequest, responses((status = OK, body = Owner), (status = "default", body = Failure)))]
async fn look_at_objects(Body(request): Body<LookRequest>) -> Result<Json<Owner>, Failure> {
    blocking(move || look(&request)).await.map(Json)
}

/// Detaches a device once what is under way is done.
#[utoipa::path(post, path = "/devices/{name}/detach", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = DetachRequest, responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn detach(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<DetachRequest>,
) -> Result<StatusCode, Failure> {
    wait(&service, move |registry| registry.detach(&name, request.force)).await.map(done)
}

/// Lights or darkens the beacon.
#[utoipa::path(put, path = "/devices/{name}/beacon", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = Beacon, responses((status = OK, body = Beacon), (status = "default", body = Failure)))]
async fn beacon(
    State(service): State<Service>,
    At(name): At<String>,
    Body(beacon): Body<Beacon>,
) -> Result<Json<Beacon>, Failure> {
    let change = Config::from([("beacon".to_string(), if beacon.on { "on" } else { "off" }.to_string())]);
    wait(&service, move |registry| registry.set_config(&name, &change)).await?;
    Ok(Json(beacon))
}

/// Settings, by name.
#[utoipa::path(get, path = "/devices/{name}/config", tag = "devices", params(("name" = String, Path, description = "a device")), responses((status = OK, body = BTreeMap<String, String>), (status = "default", body = Failure)))]
async fn config(State(service): State<Service>, At(name): At<String>) -> Result<Json<Config>, Failure> {
    wait(&service, move |registry| registry.config(&name)).await.map(Json)
}

/// Changes settings, all or none.
#[utoipa::path(patch, path = "/devices/{name}/config", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = BTreeMap<String, String>, responses((status = OK, body = BTreeMap<String, String>), (status = "default", body = Failure)))]
async fn set_config(
    State(service): State<Service>,
    At(name): At<String>,
    Body(changes): Body<Config>,
) -> Result<Json<Config>, Failure> {
    wait(&service, move |registry| registry.set_config(&name, &changes)).await.map(Json)
}

/// Begins or ends reading and checking everything.
#[utoipa::path(post, path = "/devices/{name}/scrub", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = ScrubRequest, responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn scrub(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<ScrubRequest>,
) -> Result<Json<DeviceView>, Failure> {
    wait(&service, move |registry| registry.scrub(&name, request.on)).await.map(Json)
}

/// Begins or ends writing what lies scattered once more by address.
#[utoipa::path(post, path = "/devices/{name}/optimise", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = OptimiseRequest, responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn optimise(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<OptimiseRequest>,
) -> Result<Json<DeviceView>, Failure> {
    wait(&service, move |registry| registry.optimise(&name, request)).await.map(Json)
}

/// Rebuilds a lost die.
#[utoipa::path(post, path = "/devices/{name}/rebuild", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = RebuildRequest, responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn rebuild(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    At(name): At<String>,
    Body(request): Body<RebuildRequest>,
) -> Result<Json<DeviceView>, Failure> {
    wait(&service, move |registry| registry.rebuild(&name, &request, asker.is_administrator())).await.map(Json)
}

/// Gives a device another size while it is used.
#[utoipa::path(post, path = "/devices/{name}/resize", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = ResizeRequest, responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn resize(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<ResizeRequest>,
) -> Result<Json<DeviceView>, Failure> {
    wait(&service, move |registry| registry.resize(&name, request)).await.map(Json)
}

/// Fault drills that are on.
#[utoipa::path(get, path = "/devices/{name}/drills", tag = "devices", params(("name" = String, Path, description = "a device")), responses((status = OK, body = Drills), (status = "default", body = Failure)))]
async fn drills(State(service): State<Service>, At(name): At<String>) -> Result<Json<Drills>, Failure> {
    wait(&service, move |registry| registry.drills(&name)).await.map(Json)
}

/// Begins a fault drill.
#[utoipa::path(post, path = "/devices/{name}/drills", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = DrillBody, responses((status = OK, body = Drills), (status = "default", body = Failure)))]
async fn drill(
    State(service): State<Service>,
    At(name): At<String>,
    Body(drill): Body<device::Drill>,
) -> Result<Json<Drills>, Failure> {
    wait(&service, move |registry| registry.drill(&name, drill)).await.map(Json)
}

/// Ends a fault drill, or `all`.
#[utoipa::path(delete, path = "/devices/{name}/drills/{drill}", tag = "devices", params(("name" = String, Path, description = "a device"), ("drill" = String, Path, description = "a drill, or all")), responses((status = OK, body = Drills), (status = "default", body = Failure)))]
async fn undo_drill(
    State(service): State<Service>,
    At((name, drill)): At<(String, String)>,
) -> Result<Json<Drills>, Failure> {
    wait(&service, move |registry| registry.undo_drill(&name, &drill)).await.map(Json)
}

/// Switches a device on whose power a drill cut.
#[utoipa::path(post, path = "/devices/{name}/power-on", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = PowerOnRequest, responses((status = OK, body = DeviceFields), (status = "default", body = Failure)))]
async fn power_on(
    State(service): State<Service>,
    At(name): At<String>,
    Body(request): Body<PowerOnRequest>,
) -> Result<Json<DeviceView>, Failure> {
    wait(&service, move |registry| registry.power_on(&name, &request)).await.map(Json)
}

/// What happened to a device.
#[utoipa::path(get, path = "/devices/{name}/events", tag = "devices", params(("name" = String, Path, description = "a device")), responses((status = OK, body = Events), (status = "default", body = Failure)))]
async fn events(State(service): State<Service>, At(name): At<String>) -> Result<Json<Events>, Failure> {
    wait(&service, move |registry| registry.events(&name)).await.map(Json)
}

/// How a recording stands.
#[utoipa::path(get, path = "/devices/{name}/record", tag = "devices", params(("name" = String, Path, description = "a device")), responses((status = OK, body = RecordStatus), (status = "default", body = Failure)))]
async fn recording(State(service): State<Service>, At(name): At<String>) -> Result<Json<RecordStatus>, Failure> {
    wait(&service, move |registry| registry.recording(&name)).await.map(Json)
}

/// Recordings that came to their end, the newest first.
#[utoipa::path(get, path = "/devices/{name}/recordings", tag = "devices", params(("name" = String, Path, description = "a device")), responses((status = OK, body = Vec<EndedRecording>), (status = "default", body = Failure)))]
async fn recordings(
    State(service): State<Service>,
    At(name): At<String>,
) -> Result<Json<Vec<EndedRecording>>, Failure> {
    wait(&service, move |registry| registry.ended_recordings(&name)).await.map(Json)
}

/// Begins to record what clients ask.
#[utoipa::path(post, path = "/devices/{name}/record", tag = "devices", params(("name" = String, Path, description = "a device")), request_body = RecordRequest, responses((status = OK, body = RecordStatus), (status = "default", body = Failure)))]
async fn record(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    At(name): At<String>,
    Body(request): Body<RecordRequest>,
) -> Result<Json<RecordStatus>, Failure> {
    wait(&service, move |registry| registry.record(&name, &request, asker.is_administrator())).await.map(Json)
}

/// Ends a recording.
#[utoipa::path(post, path = "/devices/{name}/record/stop", tag = "devices", params(("name" = String, Path, description = "a device")), responses((status = OK, body = RecordStatus), (status = "default", body = Failure)))]
async fn stop_recording(State(service): State<Service>, At(name): At<String>) -> Result<Json<RecordStatus>, Failure> {
    wait(&service, move |registry| registry.stop_recording(&name)).await.map(Json)
}

/// Detaches every device and stops the service.
#[utoipa::path(post, path = "/shutdown", tag = "devices", request_body = DetachRequest, responses((status = ACCEPTED, description = "it stops"), (status = "default", body = Failure)))]
async fn shutdown(State(service): State<Service>, Body(request): Body<DetachRequest>) -> Result<StatusCode, Failure> {
    wait(&service, move |registry| registry.close(request.force)).await?;
    tracing::info!("asked to stop");
    service.stop.send_replace(true);
    Ok(StatusCode::ACCEPTED)
}
