//! Alerts, their rules, and where they are sent.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{Acknowledge, Alert, Alerts, Notifications, Rule, Sent};
use crate::clock::now_ms;
use crate::web::answer::{Ask, At, Body, Page, Service, administrators, blocking, done, operators, viewers};
use crate::web::guard::Asker;

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    let read = OpenApiRouter::new().routes(routes!(active)).routes(routes!(past)).routes(routes!(rules));
    // The address of a webhook is a secret of its own with many services.
    let change = OpenApiRouter::new()
        .routes(routes!(set_rule, remove_rule))
        .routes(routes!(notifications, set_notifications))
        .routes(routes!(try_sending));
    viewers(read).merge(operators(OpenApiRouter::new().routes(routes!(acknowledge)))).merge(administrators(change))
}

/// Those that are active, the most severe first.
#[utoipa::path(get, path = "/alerts", tag = "alerts",
    responses((status = OK, body = Alerts), (status = "default", body = Failure)))]
async fn active(State(service): State<Service>) -> Json<Alerts> {
    Json(Alerts { alerts: service.alerting.active() })
}

/// Those that are over, the newest first.
#[utoipa::path(get, path = "/alerts/history", tag = "alerts", params(Page),
    responses((status = OK, body = Alerts), (status = "default", body = Failure)))]
async fn past(State(service): State<Service>, Ask(page): Ask<Page>) -> Json<Alerts> {
    Json(Alerts { alerts: service.alerting.past(page.before(), page.limit()) })
}

/// Somebody has seen an alert.
#[utoipa::path(post, path = "/alerts/{id}/acknowledge", tag = "alerts", params(("id" = u64, Path, description = "its number")),
    request_body = Acknowledge, responses((status = OK, body = Alert), (status = "default", body = Failure)))]
async fn acknowledge(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    At(id): At<u64>,
    Body(request): Body<Acknowledge>,
) -> Result<Json<Alert>, Failure> {
    let who = asker.session.map(|session| session.name).unwrap_or_default();
    blocking(move || service.alerting.acknowledge(id, &who, request.note, now_ms(), &service.monitor)).await.map(Json)
}

/// Every rule.
#[utoipa::path(get, path = "/alert-rules", tag = "alerts",
    responses((status = OK, body = Vec<Rule>), (status = "default", body = Failure)))]
async fn rules(State(service): State<Service>) -> Json<Vec<Rule>> {
    Json(service.alerting.rules())
}

/// A rule, new or changed.
#[utoipa::path(put, path = "/alert-rules/{name}", tag = "alerts", params(("name" = String, Path, description = "its name")),
    request_body = Rule, responses((status = OK, body = Rule), (status = "default", body = Failure)))]
async fn set_rule(
    State(service): State<Service>,
    At(name): At<String>,
    Body(rule): Body<Rule>,
) -> Result<Json<Rule>, Failure> {
    blocking(move || service.alerting.set_rule(&name, rule)).await.map(Json)
}

/// A rule goes.
#[utoipa::path(delete, path = "/alert-rules/{name}", tag = "alerts", params(("name" = String, Path, description = "its name")),
    responses((status = NO_CONTENT, description = "done"), (status = "default", body = Failure)))]
async fn remove_rule(State(service): State<Service>, At(name): At<String>) -> Result<StatusCode, Failure> {
    blocking(move || service.alerting.remove_rule(&name)).await.map(done)
}

/// Where alerts are sent, without what is secret.
#[utoipa::path(get, path = "/notifications", tag = "alerts",
    responses((status = OK, body = Notifications), (status = "default", body = Failure)))]
async fn notifications(State(service): State<Service>) -> Json<Notifications> {
    Json(service.alerting.notifications())
}

/// Sends alerts there from now on.
#[utoipa::path(put, path = "/notifications", tag = "alerts", request_body = Notifications,
    responses((status = OK, body = Notifications), (status = "default", body = Failure)))]
async fn set_notifications(
    State(service): State<Service>,
    Body(new): Body<Notifications>,
) -> Result<Json<Notifications>, Failure> {
    blocking(move || service.alerting.set_notifications(new)).await.map(Json)
}

/// Sends one for a try, and says what came of it.
#[utoipa::path(post, path = "/notifications/test", tag = "alerts",
    responses((status = OK, body = Vec<Sent>), (status = "default", body = Failure)))]
async fn try_sending(State(service): State<Service>) -> Json<Vec<Sent>> {
    Json(service.alerting.try_sending(now_ms()).await)
}
