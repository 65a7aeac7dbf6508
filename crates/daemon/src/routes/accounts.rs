//! Accounts, and who changed what.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Ask, Body, Name, Service, administrators, blocking, name, operators};
use crate::Failure;
use crate::api::{AccountChange, AccountView, Audit, MadeKey, NewAccount, NewKey};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let accounts = OpenApiRouter::new()
        .routes(routes!(accounts, add_account))
        .routes(routes!(change_account, remove_account))
        .routes(routes!(add_key))
        .routes(routes!(remove_key));
    administrators(accounts).merge(operators(OpenApiRouter::new().routes(routes!(audit))))
}

/// Every account.
#[utoipa::path(get, path = "/accounts", tag = "access",
    responses((status = OK, body = Vec<AccountView>), (status = "default", body = Failure)))]
async fn accounts(State(service): State<Service>) -> Json<Vec<AccountView>> {
    Json(service.access.accounts().views())
}

/// A new account.
#[utoipa::path(post, path = "/accounts", tag = "access", request_body = NewAccount,
    responses((status = CREATED, body = AccountView), (status = "default", body = Failure)))]
async fn add_account(
    State(service): State<Service>,
    Body(new): Body<NewAccount>,
) -> Result<(StatusCode, Json<AccountView>), Failure> {
    let view = blocking(move || service.access.accounts().add(&new)).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

/// Changes an account.
#[utoipa::path(patch, path = "/accounts/{name}", tag = "access", params(("name" = String, Path, description = "an account")),
    request_body = AccountChange, responses((status = OK, body = AccountView), (status = "default", body = Failure)))]
async fn change_account(
    State(service): State<Service>,
    path: Name,
    Body(change): Body<AccountChange>,
) -> Result<Json<AccountView>, Failure> {
    let name = name(path)?;
    blocking(move || service.access.accounts().change(&name, &change)).await.map(Json)
}

/// Removes an account, with its keys and sessions.
#[utoipa::path(delete, path = "/accounts/{name}", tag = "access", params(("name" = String, Path, description = "an account")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn remove_account(State(service): State<Service>, path: Name) -> Result<StatusCode, Failure> {
    let name = name(path)?;
    blocking(move || service.access.accounts().remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A new access key: the answer is the only time that it is shown.
#[utoipa::path(post, path = "/accounts/{name}/keys", tag = "access", params(("name" = String, Path, description = "an account")),
    request_body = NewKey, responses((status = CREATED, body = MadeKey), (status = "default", body = Failure)))]
async fn add_key(
    State(service): State<Service>,
    path: Name,
    Body(new): Body<NewKey>,
) -> Result<(StatusCode, Json<MadeKey>), Failure> {
    let name = name(path)?;
    let made = blocking(move || service.access.accounts().add_key(&name, &new.note)).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Removes an access key.
#[utoipa::path(delete, path = "/accounts/{name}/keys/{id}", tag = "access",
    params(("name" = String, Path, description = "an account"), ("id" = String, Path, description = "a key's number")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn remove_key(
    State(service): State<Service>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, Failure> {
    let Path((name, id)) =
        path.map_err(|rejection| Failure::invalid(format!("the path: {}", rejection.body_text())))?;
    blocking(move || service.access.accounts().remove_key(&name, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Page {
    /// At most so many, up to 1000; 100 by default.
    limit: Option<usize>,
    /// Only those with a smaller number.
    before: Option<u64>,
}

/// Who changed what, the newest first.
#[utoipa::path(get, path = "/audit", tag = "access", params(Page),
    responses((status = OK, body = Audit), (status = "default", body = Failure)))]
async fn audit(State(service): State<Service>, Ask(page): Ask<Page>) -> Json<Audit> {
    let limit = page.limit.unwrap_or(100).min(1000);
    Json(Audit { entries: service.audit.before(page.before.unwrap_or(u64::MAX), limit) })
}
