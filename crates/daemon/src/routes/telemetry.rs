//! What is measured: which metrics there are, what each field means, and the last second.

use axum::Json;
use axum::extract::State;
use telemetry::catalogue::METRICS;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Service, viewers};
use crate::Failure;
use crate::api::{FieldView, MetricView, Sample, word};
use crate::fields::FIELDS;

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    viewers(OpenApiRouter::new().routes(routes!(metrics)).routes(routes!(latest)).routes(routes!(fields)))
}

/// Every metric.
#[utoipa::path(get, path = "/telemetry/metrics", tag = "telemetry",
    responses((status = OK, body = Vec<MetricView>), (status = "default", body = Failure)))]
async fn metrics() -> Json<Vec<MetricView>> {
    let view = |metric: &telemetry::Metric| MetricView {
        name: metric.name.into(),
        of: word(metric.of),
        label: metric.label.into(),
        unit: word(metric.unit),
        source: word(metric.source),
        over_time: word(metric.over_time),
        meaning: metric.meaning.into(),
    };
    Json(METRICS.iter().map(view).collect())
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
    let view = |field: &crate::fields::Field| FieldView {
        name: field.name.into(),
        label: field.label.into(),
        unit: field.unit.name().into(),
        group: field.group().into(),
        brief: field.brief,
        meaning: field.meaning.into(),
        source: field.source().name().into(),
    };
    Json(FIELDS.iter().map(view).collect())
}
