//! What browsers may make of answers: nothing that the API gives is a page of the console.
//!
//! The API shares its origin with the console, so whatever a browser shows from it could act in the name of whoever is signed in. Every
//! answer below the API therefore says what it is, forbids guessing, and is sandboxed: a report has an origin of its own, from which
//! neither cookies nor the API can be reached.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

/// For answers of our own: reports have scripts for their charts, and bring all that they need with them.
const OURS: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; \
                    style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'; \
                    frame-ancestors 'self'";

/// For what another host wrote: it is shown, and does nothing.
const STRANGERS: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; \
                         base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// Puts the rules on an answer that has none of its own, as the console's files do.
pub async fn confine(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if !response.headers().contains_key(header::CONTENT_SECURITY_POLICY) {
        put(response.headers_mut(), OURS);
    }
    response
}

/// Puts the rules for what another host wrote on an answer.
pub fn confine_stranger(headers: &mut HeaderMap) {
    put(headers, STRANGERS);
}

fn put(headers: &mut HeaderMap, policy: &'static str) {
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}
