//! Other hosts: which there are, and requests that are passed on to them.

use axum::body::Body as HttpBody;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::access::ROLE;
use crate::api::{AuditEntry, FleetDevice, FleetMove, FleetMoveRequest, HostView, NewHost, PREFIX, Role};
use crate::hosts::{moving, passing};
use crate::web::answer::{At, Body, Service, accepted, administrators, blocking, created, done, operators, viewers};
use crate::web::guard::{Asker, read_body};

/// They. What is passed on is described by the host's own description.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new()
        .routes(routes!(hosts))
        .routes(routes!(fleet))
        .routes(routes!(fleet_moves))
        .routes(routes!(fleet_move))
        .route("/hosts/{host}/{*path}", any(pass_on));
    let change = OpenApiRouter::new().routes(routes!(add_host)).routes(routes!(remove_host));
    let use_them = OpenApiRouter::new().routes(routes!(move_device));
    viewers(read).merge(operators(use_them)).merge(administrators(change))
}

/// Every host, and whether it answers.
#[utoipa::path(get, path = "/hosts", tag = "hosts",
    responses((status = OK, body = Vec<HostView>), (status = "default", body = Failure)))]
async fn hosts(State(service): State<Service>) -> Json<Vec<HostView>> {
    Json(service.hosts.views())
}

/// A new host.
#[utoipa::path(post, path = "/hosts", tag = "hosts", request_body = NewHost,
    responses((status = CREATED, body = HostView), (status = "default", body = Failure)))]
async fn add_host(
    State(service): State<Service>,
    Body(new): Body<NewHost>,
) -> Result<(StatusCode, Json<HostView>), Failure> {
    blocking(move || service.hosts.add(new)).await.map(created)
}

/// A host goes.
#[utoipa::path(delete, path = "/hosts/{name}", tag = "hosts", params(("name" = String, Path, description = "a host")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn remove_host(State(service): State<Service>, At(name): At<String>) -> Result<StatusCode, Failure> {
    blocking(move || service.hosts.remove(&name)).await.map(done)
}

/// Which host has which device on objects, and which stand by for one.
#[utoipa::path(get, path = "/fleet", tag = "hosts",
    responses((status = OK, body = Vec<FleetDevice>), (status = "default", body = Failure)))]
async fn fleet(State(service): State<Service>) -> Result<Json<Vec<FleetDevice>>, Failure> {
    blocking(move || Ok(service.hosts.fleet(service.registry.on_objects()))).await.map(Json)
}

/// Moves of devices from host to host, the newest first.
#[utoipa::path(get, path = "/fleet/moves", tag = "hosts",
    responses((status = OK, body = Vec<FleetMove>), (status = "default", body = Failure)))]
async fn fleet_moves(State(service): State<Service>) -> Json<Vec<FleetMove>> {
    Json(service.hosts.moves_so_far())
}

/// One of them.
#[utoipa::path(get, path = "/fleet/moves/{id}", tag = "hosts", params(("id" = u64, Path, description = "a move's number")),
    responses((status = OK, body = FleetMove), (status = "default", body = Failure)))]
async fn fleet_move(State(service): State<Service>, At(id): At<u64>) -> Result<Json<FleetMove>, Failure> {
    service.hosts.move_of(id).map(Json)
}

/// Moves a device on objects from one host to another, without a copy.
#[utoipa::path(post, path = "/fleet/moves", tag = "hosts", request_body = FleetMoveRequest,
    responses((status = ACCEPTED, body = FleetMove), (status = "default", body = Failure)))]
async fn move_device(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    Body(request): Body<FleetMoveRequest>,
) -> Result<(StatusCode, Json<FleetMove>), Failure> {
    if moving::is_anywhere(request.path.as_ref()) && !asker.is_administrator() {
        return Err(Failure::forbidden("path: only an administrator chooses where files are made")
            .help("give a name, or leave it out: the file is made in that service's own directory"));
    }
    let role = asker.session.as_ref().map_or(Role::Viewer, |session| session.role);
    let plan = service.hosts.plan_move(&service.registry, role, request).await?;
    let begun = service.hosts.begin_move(&plan);
    let id = begun.id;
    tokio::spawn(async move {
        let ended = service.hosts.carry_out(id, plan).await;
        let who = asker.session.as_ref();
        // The request was noted as it began; this is how it ended.
        service.audit.note(AuditEntry {
            who: who.map(|who| who.name.clone()).unwrap_or_default(),
            role: who.map(|who| who.role),
            via: who.map(|who| who.via),
            method: "POST".into(),
            path: format!("/fleet/moves/{id}"),
            status: if ended.error.is_none() { StatusCode::OK } else { StatusCode::CONFLICT }.as_u16(),
            what: serde_json::to_string(&ended).unwrap_or_default(),
            ..AuditEntry::default()
        });
    });
    Ok(accepted(begun))
}

async fn pass_on(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    At((host, _)): At<(String, String)>,
    request: Request,
) -> Result<Response, Failure> {
    // As it came, so that what was escaped stays so: what is looked at is what is sent.
    let uri = request.uri().clone();
    let tail = uri.path().splitn(4, '/').nth(3).unwrap_or_default();
    let path = passing::parts(tail)?;
    let role = passing::needed(request.method(), &path);
    if asker.session.as_ref().is_none_or(|session| session.role < role) {
        return Err(Failure::forbidden("that may not be asked of another host with this role")
            .help(format!("it needs the role {}", role.name())));
    }
    let way = service.hosts.way(&host)?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let (parts, body) = request.into_parts();
    let body = read_body(body).await?;
    // What may be done there follows from what is in the body, too: so that host is told whom to measure it by.
    let asks = asker.session.map_or(Role::Viewer, |session| session.role);
    let mut headers = vec![
        (header::AUTHORIZATION.to_string(), format!("Bearer {}", way.key)),
        (ROLE.to_string(), asks.name().to_string()),
    ];
    if let Some(kind) = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) {
        headers.push((header::CONTENT_TYPE.to_string(), kind.to_string()));
    }
    let answer = way.remote.send(parts.method, &format!("{PREFIX}/{tail}{query}"), &headers, body).await?;
    // That our key is wrong there says nothing about who asks here.
    if answer.status() == StatusCode::UNAUTHORIZED {
        return Err(Failure::unreachable(format!("{host} does not know our key"))
            .help("remove the host, and add it with a new key"));
    }
    let mut response = answer.status().into_response();
    *response.headers_mut() = passing::headers(answer.headers(), &path)?;
    *response.body_mut() = HttpBody::new(answer.into_body());
    Ok(response)
}
