//! What stands in front of every request: where it comes from, who asks, how often, and the audit log behind it.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::{Peer, ROLE};
use crate::api::{PREFIX, Role, Session, Via};
use crate::net::Standing;
use crate::service::Service;
use crate::{Failure, audit};

/// The largest body that is taken, bytes.
pub const BODY_LIMIT: usize = 64 << 10;

/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Who asks, if anybody is known to; and with which cookie.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    /// Who.
    pub session: Option<Session>,
    /// The cookie of their session.
    pub cookie: Option<String>,
}

impl Asker {
    /// With no more than the role for which another host says that it asks. Whoever says so can only take from what they may.
    fn on_behalf_of(mut self, request: &Request) -> Asker {
        if let Some(said) = request.headers().get(ROLE) {
            let role = said.to_str().ok().and_then(Role::of_name).unwrap_or(Role::Viewer);
            if let Some(session) = &mut self.session {
                session.role = session.role.min(role);
            }
        }
        self
    }

    /// Whether they may do everything, and so choose where on this machine files are made.
    pub fn is_administrator(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.role == Role::Administrator)
    }
}

/// Lets a request through that comes from where it may, and finds out whose it is.
pub async fn check(
    State(service): State<Service>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    service.monitor.count_request();
    if let Err(failure) = admit(&service, &peer, &request) {
        return failure.into_response();
    }
    let asker = identify(&service, &peer, &request).map(|asker| asker.on_behalf_of(&request));
    let who = asker.as_ref().ok().and_then(|asker| asker.session.as_ref());
    if service.access.is_too_fast(&peer, who) {
        let whose = if who.is_some() { "account" } else { "address" };
        return Failure::too_many(format!("too many requests from this {whose}"))
            .help("ask less often")
            .into_response();
    }
    let asker = match asker {
        Ok(asker) => asker,
        Err(failure) => return failure.into_response(),
    };
    if asker.session.is_some()
        && let Some(standing) = request.extensions().get::<Standing>()
    {
        standing.is_known();
    }
    request.extensions_mut().insert(asker.clone());
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    match asker.session {
        Some(who) => audited(&service, &peer, Some(who), request, next).await,
        None if request.uri().path() == SIGN_IN => audited(&service, &peer, None, request, next).await,
        // Nobody's: it is refused by its route, and its body is not waited for.
        None => {
            let response = next.run(request).await;
            service.monitor.count_refused();
            response
        }
    }
}

/// Where strangers sign in.
const SIGN_IN: &str = "/api/v1/session";

/// A body as a whole, which may not be too long, nor take too long.
///
/// # Errors
/// It is, or does.
pub async fn read_body(body: Body) -> Result<Bytes, Failure> {
    match tokio::time::timeout(BODY_TIME, to_bytes(body, BODY_LIMIT)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Failure::invalid(format!("the request's body: it is over the limit of {BODY_LIMIT} bytes"))
            .help("send less")),
        Err(_) => Err(Failure::invalid(format!("the request's body: it took more than {} s", BODY_TIME.as_secs()))
            .help("send it at once")),
    }
}

/// Whether anybody from there may ask anything.
fn admit(service: &Service, peer: &Peer, request: &Request) -> Result<(), Failure> {
    let owner = rustix::process::geteuid().as_raw();
    if let Peer::Unix { .. } = peer {
        if peer.is_owner(owner) {
            return Ok(());
        }
        tracing::warn!(%peer, "refused a connection to the API");
        let help = match owner {
            0 => "run vsl as root".into(),
            owner => format!("run vsl as user {owner} or as root"),
        };
        return Err(Failure::forbidden(format!("{peer} may not use this service")).help(help));
    }
    let path = request.uri().path();
    let page = *request.method() == Method::GET && !path.starts_with("/api") && !path.starts_with("/metrics");
    service.access.origins.check(request.headers(), page)
}

fn identify(service: &Service, peer: &Peer, request: &Request) -> Result<Asker, Failure> {
    if let Peer::Unix { .. } = peer {
        let session = Session { name: peer.to_string(), role: Role::Administrator, via: Via::Socket };
        return Ok(Asker { session: Some(session), cookie: None });
    }
    if let Some(given) = request.headers().get(header::AUTHORIZATION) {
        let key = given.to_str().ok().and_then(|given| given.strip_prefix("Bearer ")).ok_or_else(|| {
            Failure::unauthenticated("the Authorization header is not understood")
                .help("send Authorization: Bearer KEY")
        })?;
        return Ok(Asker { session: Some(service.access.bearer(key.trim(), peer)?), cookie: None });
    }
    let cookie = cookie(request, service.access.cookie_name()).map(str::to_string);
    Ok(Asker { session: cookie.as_deref().and_then(|cookie| service.access.session(cookie)), cookie })
}

/// The session's cookie, if the request has one.
fn cookie<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let cookies = request.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Carries out what could change something, and notes it.
async fn audited(service: &Service, peer: &Peer, who: Option<Session>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let (method, path) = (parts.method.clone(), parts.uri.path().to_string());
    let (body, response): (Bytes, Response) = match read_body(body).await {
        Ok(body) => {
            let response = next.run(Request::from_parts(parts, Body::from(body.clone()))).await;
            (body, response)
        }
        Err(failure) => (Bytes::new(), failure.into_response()),
    };
    if who.is_none() && !response.status().is_success() {
        service.monitor.count_refused();
        return response;
    }
    let path = path.strip_prefix(PREFIX).unwrap_or(&path);
    service.audit.note(audit::entry(peer, who.as_ref(), &method, path, response.status().as_u16(), &body));
    response
}

/// Lets those through who have this role.
pub async fn require(State(role): State<Role>, request: Request, next: Next) -> Response {
    let session = request.extensions().get::<Asker>().and_then(|asker| asker.session.clone());
    match session {
        Some(session) if session.role >= role => next.run(request).await,
        Some(session) => {
            let failure =
                Failure::forbidden(format!("{} is {} and may not do that", session.name, session.role.name()));
            failure.help(format!("it needs the role {}", role.name())).into_response()
        }
        None => Failure::unauthenticated("nobody has signed in")
            .help("sign in, or send Authorization: Bearer KEY; `vsl console` prints an address that signs in")
            .into_response(),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let too_many = self.kind == crate::Kind::TooMany;
        let mut response = (self.kind.status(), Json(self)).into_response();
        if too_many {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("2"));
        }
        response
    }
}
