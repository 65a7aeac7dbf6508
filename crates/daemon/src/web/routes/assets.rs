//! The console's files.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::Failure;
use crate::api::PREFIX;
use crate::web::answer::Service;

/// What pages of ours may do: nothing beyond this service.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self'; object-src 'none'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'self'";

/// A file of the console; the page itself for paths that are pages within it.
pub async fn serve(State(service): State<Service>, request: Request) -> Response {
    let path = request.uri().path();
    if path.starts_with(PREFIX) || path.starts_with("/api/") {
        return Failure::not_found("no such path in the API").help("the paths begin with /api/v1").into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Failure::method().into_response();
    }
    let page = !path.rsplit('/').next().unwrap_or_default().contains('.');
    let found = (service.program.asset)(path).or_else(|| page.then(|| (service.program.asset)("/")).flatten());
    let Some(asset) = found else {
        return Failure::not_found("no such path, and no page either")
            .help("the API's paths begin with /api/v1")
            .into_response();
    };
    let known = request.headers().get_all(header::IF_NONE_MATCH).iter();
    let unchanged = known.filter_map(|value| value.to_str().ok()).any(|value| value.contains(asset.etag));
    let mut response = match unchanged {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => asset.bytes.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    if let Some(encoding) = asset.encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{}\"", asset.etag)) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
