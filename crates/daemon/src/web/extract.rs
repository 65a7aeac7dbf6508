//! What a request asks: in its body, behind the question mark, in its path. What is refused of it is a [`Failure`] like any other.

use axum::Json;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Path, Query, RawPathParams, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::bounds::{self, Operation};
use crate::Failure;
use crate::api::PREFIX;

/// The numbers that a request may bring, by the API's description.
fn numbers(parts: &Parts) -> Option<&'static Operation> {
    let path = parts.extensions.get::<MatchedPath>()?.as_str();
    bounds::of(&parts.method, path.strip_prefix(PREFIX)?)
}

/// A JSON body.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Failure> {
        let refused = |why: String| {
            Failure::invalid(format!("the request's body: {why}"))
                .help("send a JSON object with the Content-Type application/json")
        };
        let (parts, body) = request.into_parts();
        let numbers = numbers(&parts);
        let body = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let body = body.map_err(|rejection| refused(rejection.body_text()))?;
        let whole = Request::from_parts(parts, HttpBody::from(body.clone()));
        numbers.map_or(Ok(()), |numbers| numbers.check_body(&body))?;
        match Json::from_request(whole, state).await {
            // A list would be taken for the fields in their order.
            Ok(Json(_)) if body.trim_ascii_start().starts_with(b"[") => {
                Err(refused("a list, expected an object".into()))
            }
            Ok(Json(value)) => Ok(Body(value)),
            Err(rejection) => Err(refused(rejection.body_text())),
        }
    }
}

/// What stands behind the question mark.
pub struct Ask<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Ask<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Ask<T>, Failure> {
        if let (Some(numbers), Ok(Query(pairs))) =
            (numbers(parts), Query::<Vec<(String, String)>>::from_request_parts(parts, state).await)
        {
            numbers.check_query(pairs.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
        }
        match Query::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Ask(value)),
            Err(rejection) => Err(Failure::invalid(format!("the question: {}", rejection.body_text()))
                .help("`GET /api/v1/openapi.json` says what may be asked")),
        }
    }
}

/// What stands in the path.
pub struct At<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for At<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<At<T>, Failure> {
        if let (Some(numbers), Ok(pairs)) = (numbers(parts), RawPathParams::from_request_parts(parts, state).await) {
            numbers.check_path(&pairs)?;
        }
        match Path::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(At(value)),
            Err(rejection) => Err(Failure::invalid(format!("the path: {}", rejection.body_text()))),
        }
    }
}
