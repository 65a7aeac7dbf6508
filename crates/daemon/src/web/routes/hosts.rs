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
use crate::api::{HostView, NewHost, PREFIX, Role};
use crate::hosts::passing;
use crate::web::answer::{At, Body, Service, administrators, blocking, created, done, viewers};
use crate::web::guard::{Asker, ROLE, read_body};

/// They. What is passed on is described by the host's own description.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new().routes(routes!(hosts)).route("/hosts/{host}/{*path}", any(pass_on));
    let change = OpenApiRouter::new().routes(routes!(add_host)).routes(routes!(remove_host));
    viewers(read).merge(administrators(change))
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
