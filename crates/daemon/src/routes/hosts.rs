//! Other hosts: which there are, and requests that are passed on to them.

use axum::body::{Body as HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{At, Body, Service, administrators, blocking, created, done, viewers};
use crate::Failure;
use crate::access::guard::{Asker, BODY_LIMIT};
use crate::api::{HostView, NewHost, PREFIX, Role};

/// Headers of an answer that are passed back.
const PASSED: [header::HeaderName; 3] = [header::CONTENT_TYPE, header::CACHE_CONTROL, header::RETRY_AFTER];

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

/// Which role a request needs that is passed on: it is what it would be here, or more.
pub(super) fn needed(method: &Method, path: &str) -> Role {
    let first = path.split('/').next().unwrap_or_default();
    // Wherever it stands: rather too much is asked for than too little.
    let destroys = path.split('/').any(|part| matches!(part, "create" | "erase" | "format" | "keys"));
    // What that host would pass on again it does with its own key, of which nobody here knows what it may.
    let further = first == "hosts" && path.contains('/');
    match *method {
        _ if further => Role::Administrator,
        Method::GET | Method::HEAD if matches!(first, "accounts" | "bugreport" | "notifications") => {
            Role::Administrator
        }
        Method::GET | Method::HEAD if first == "audit" => Role::Operator,
        Method::GET | Method::HEAD => Role::Viewer,
        _ if destroys => Role::Administrator,
        _ if matches!(first, "accounts" | "alert-rules" | "hosts" | "notifications" | "session" | "shutdown") => {
            Role::Administrator
        }
        _ => Role::Operator,
    }
}

async fn pass_on(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    At((host, path)): At<(String, String)>,
    request: Request,
) -> Result<Response, Failure> {
    let role = needed(request.method(), &path);
    if asker.session.is_none_or(|session| session.role < role) {
        return Err(Failure::forbidden("that may not be asked of another host with this role")
            .help(format!("it needs the role {}", role.name())));
    }
    let way = service.hosts.way(&host)?;
    // As it came, so that what was escaped stays so.
    let uri = request.uri().clone();
    let tail = uri.path().splitn(4, '/').nth(3).unwrap_or_default();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_LIMIT).await.map_err(|_| Failure::invalid("the request's body is too long"))?;
    let mut headers = vec![(header::AUTHORIZATION.to_string(), format!("Bearer {}", way.key))];
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
    for name in PASSED {
        if let Some(value) = answer.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    *response.body_mut() = HttpBody::new(answer.into_body());
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_reach_to_other_hosts() {
        for (method, path, role) in [
            (Method::GET, "devices", Role::Viewer),
            (Method::GET, "audit", Role::Operator),
            (Method::GET, "accounts", Role::Administrator),
            (Method::GET, "notifications", Role::Administrator),
            (Method::POST, "devices/a/detach", Role::Operator),
            (Method::POST, "devices/a/format", Role::Administrator),
            (Method::POST, "devices/a/keys/remove", Role::Administrator),
            (Method::POST, "create", Role::Administrator),
            (Method::PUT, "notifications", Role::Administrator),
            (Method::DELETE, "alert-rules/x", Role::Administrator),
            (Method::POST, "shutdown", Role::Administrator),
            (Method::POST, "hosts", Role::Administrator),
            (Method::GET, "hosts", Role::Viewer),
            (Method::GET, "hosts/b/accounts", Role::Administrator),
        ] {
            assert_eq!(needed(&method, path), role, "{method} {path}");
        }
    }
}
