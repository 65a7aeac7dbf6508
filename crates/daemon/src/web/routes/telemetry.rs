//! What is measured: which metrics there are, what each field means, and the last second.

use axum::Json;
use axum::extract::State;
use telemetry::Of;
use telemetry::table::{self, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{FieldView, MetricView, Sample};
use crate::web::answer::{Service, viewers};

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    viewers(OpenApiRouter::new().routes(routes!(metrics)).routes(routes!(latest)).routes(routes!(fields)))
}

/// Every metric.
#[utoipa::path(get, path = "/telemetry/metrics", tag = "telemetry",
    responses((status = OK, body = Vec<MetricView>), (status = "default", body = Failure)))]
async fn metrics() -> Json<Vec<MetricView>> {
    let view = |row: &Row| MetricView {
        name: row.name.into(),
        of: if row.of == Some(Of::Service) { "service" } else { "device" }.into(),
        label: row.label.into(),
        unit: row.unit.name().into(),
        source: row.source.name().into(),
        over_time: row.over_time.name().into(),
        meaning: row.meaning.into(),
    };
    Json(table::metrics().map(view).collect())
}

/// The last second of everything.
#[utoipa::path(get, path = "/telemetry", tag = "telemetry",
    responses((status = OK, body = Sample), (status = "default", body = Failure)))]
async fn latest(State(service): State<Service>) -> Json<Sample> {
    Json(service.monitor.latest().as_ref().clone())
}

/// Every field of a device.
#[utoipa::path(get, path = "/fields", tag = "devices",
    responses((status = OK, body = Vec<FieldView>), (status = "default", body = Failure)))]
async fn fields() -> Json<Vec<FieldView>> {
    let view = |row: &Row| FieldView {
        name: row.name.into(),
        label: row.label.into(),
        unit: row.unit.of_field().into(),
        group: row.group().into(),
        brief: row.brief,
        meaning: row.meaning.into(),
        source: row.source.name().into(),
    };
    Json(table::fields().map(view).collect())
}
