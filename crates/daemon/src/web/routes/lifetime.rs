//! How much of a device's life is used up, and how long the rest will do.

use axum::Json;
use axum::extract::State;
use telemetry::{Query, Resolution, SeriesKey};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::Lifetime;
use crate::clock::now_s;
use crate::web::answer::{At, Service, blocking, viewers};

/// Over how long the present rate is looked at, at most: a week.
const LATELY: u64 = 7 * 86_400;

/// It.
pub fn routes() -> OpenApiRouter<Service> {
    viewers(OpenApiRouter::new().routes(routes!(lifetime)))
}

/// Written, erased, left; and when it ends at the present rate.
#[utoipa::path(get, path = "/devices/{name}/lifetime", tag = "devices", params(("name" = String, Path, description = "a device")),
    responses((status = OK, body = Lifetime), (status = "default", body = Failure)))]
async fn lifetime(State(service): State<Service>, At(name): At<String>) -> Result<Json<Lifetime>, Failure> {
    blocking(move || {
        let now = now_s();
        let key = SeriesKey::device(&service.registry.handle(&name)?.facts().uuid);
        let query = Query {
            resolution: Some(Resolution::Minute),
            metrics: vec!["media_written_bytes_per_s"],
            ..Query::of(key, now.saturating_sub(LATELY), now)
        };
        let table = service.monitor.history().query(&query)?;
        let seconds: u64 = table.rows.iter().map(|row| u64::from(row.seconds)).sum();
        let written: f64 = table
            .rows
            .iter()
            .filter_map(|row| Some(f64::from(row.seconds) * row.values.first().copied().flatten()?))
            .sum();
        // Time in which it was not attached counts as well: it wore no more then.
        let span = table.rows.first().map_or(0, |row| now.saturating_sub(row.at)).max(seconds);
        let per_day = (span > 0).then(|| written / span as f64 * 86_400.0);
        service.registry.lifetime(&name, (per_day, span), now)
    })
    .await
    .map(Json)
}
