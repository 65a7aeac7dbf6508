//! Signing in and out.

use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::access::{LIFE, Peer};
use crate::api::{Session, SignIn};
use crate::web::answer::{Body, Service, blocking, viewers};
use crate::web::guard::Asker;

/// They. Signing in needs nobody to be known.
pub fn routes() -> OpenApiRouter<Service> {
    viewers(OpenApiRouter::new().routes(routes!(session)))
        .merge(OpenApiRouter::new().routes(routes!(sign_in, sign_out)))
}

/// Who I am.
#[utoipa::path(get, path = "/session", tag = "access",
    responses((status = OK, body = Session), (status = "default", body = Failure)))]
async fn session(Extension(asker): Extension<Asker>) -> Result<Json<Session>, Failure> {
    asker.session.map(Json).ok_or_else(|| Failure::unauthenticated("nobody has signed in"))
}

/// Signs in; the answer sets a cookie.
#[utoipa::path(post, path = "/session", tag = "access", request_body = SignIn,
    responses((status = OK, body = Session), (status = "default", body = Failure)))]
async fn sign_in(
    State(service): State<Service>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<SignIn>,
) -> Result<Response, Failure> {
    let access = Arc::clone(&service.access);
    let (session, cookie) = blocking(move || access.sign_in(&request, &peer)).await?;
    Ok(service.with_cookie(Json(session).into_response(), &peer, &cookie, LIFE.as_secs()))
}

/// Signs out.
#[utoipa::path(delete, path = "/session", tag = "access",
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn sign_out(
    State(service): State<Service>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(asker): Extension<Asker>,
) -> Response {
    if let Some(cookie) = asker.cookie {
        service.access.sign_out(&cookie);
    }
    service.with_cookie(StatusCode::NO_CONTENT.into_response(), &peer, "", 0)
}

impl Service {
    fn with_cookie(&self, mut response: Response, peer: &Peer, cookie: &str, seconds: u64) -> Response {
        let name = self.access.cookie_name();
        let secure = if matches!(peer, Peer::Tcp { secure: true, .. }) { "; Secure" } else { "" };
        let text = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
        // A cookie of ours is hexadecimal.
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(header::SET_COOKIE, value);
        }
        response
    }
}
