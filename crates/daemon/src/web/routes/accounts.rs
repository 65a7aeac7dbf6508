//! Accounts, and who changed what.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{AccountChange, AccountView, Audit, MadeKey, NewAccount, NewKey};
use crate::web::answer::{Ask, At, Body, Page, Service, administrators, blocking, created, done, operators};

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
    blocking(move || service.access.accounts().add(&new)).await.map(created)
}

/// Changes an account; a new password ends its sessions.
#[utoipa::path(patch, path = "/accounts/{name}", tag = "access", params(("name" = String, Path, description = "an account")),
    request_body = AccountChange, responses((status = OK, body = AccountView), (status = "default", body = Failure)))]
async fn change_account(
    State(service): State<Service>,
    At(name): At<String>,
    Body(change): Body<AccountChange>,
) -> Result<Json<AccountView>, Failure> {
    blocking(move || service.access.change_account(&name, &change)).await.map(Json)
}

/// Removes an account, with its keys and sessions.
#[utoipa::path(delete, path = "/accounts/{name}", tag = "access", params(("name" = String, Path, description = "an account")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn remove_account(State(service): State<Service>, At(name): At<String>) -> Result<StatusCode, Failure> {
    blocking(move || service.access.remove_account(&name)).await.map(done)
}

/// A new access key: the answer is the only time that it is shown.
#[utoipa::path(post, path = "/accounts/{name}/keys", tag = "access", params(("name" = String, Path, description = "an account")),
    request_body = NewKey, responses((status = CREATED, body = MadeKey), (status = "default", body = Failure)))]
async fn add_key(
    State(service): State<Service>,
    At(name): At<String>,
    Body(new): Body<NewKey>,
) -> Result<(StatusCode, Json<MadeKey>), Failure> {
    blocking(move || service.access.accounts().add_key(&name, &new.note)).await.map(created)
}

/// Removes an access key; the sessions of its account end.
#[utoipa::path(delete, path = "/accounts/{name}/keys/{id}", tag = "access",
    params(("name" = String, Path, description = "an account"), ("id" = String, Path, description = "a key's number")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn remove_key(
    State(service): State<Service>,
    At((name, id)): At<(String, String)>,
) -> Result<StatusCode, Failure> {
    blocking(move || service.access.remove_key(&name, &id)).await.map(done)
}

/// Who changed what, the newest first.
#[utoipa::path(get, path = "/audit", tag = "access", params(Page),
    responses((status = OK, body = Audit), (status = "default", body = Failure)))]
async fn audit(State(service): State<Service>, Ask(page): Ask<Page>) -> Json<Audit> {
    Json(Audit { entries: service.audit.before(page.before(), page.limit()) })
}
