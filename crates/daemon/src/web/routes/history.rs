//! What was measured.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use telemetry::{Of, Query, Resolution, SeriesKey, Table, table, write_csv};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::{Histories, HistoryView, SeriesView};
use crate::clock::now_s;
use crate::web::answer::{Ask, At, Service, blocking, viewers};

/// Points that are given at most where nobody says how many.
const POINTS: u64 = 1000;

/// They.
pub fn routes() -> OpenApiRouter<Service> {
    viewers(OpenApiRouter::new().routes(routes!(of_device)).routes(routes!(of_service)).routes(routes!(histories)))
}

/// Which part of it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Part {
    /// From when on, seconds since 1970; below 0 counts back from now. The last hour by default.
    from: Option<i64>,
    /// Until when, alike; until now by default.
    to: Option<i64>,
    /// Metrics with commas in between; all by default.
    metrics: Option<String>,
    /// `1s`, `1m`, `1h`, or `auto`: the finest that reaches back far enough and gives no more points than are wanted.
    resolution: Option<String>,
    /// How many points are wanted at most with `auto`; 1000 by default.
    #[param(minimum = 1, maximum = 20_000)]
    points: Option<u64>,
    /// `json` or `csv`.
    format: Option<String>,
}

impl Part {
    fn query(&self, key: SeriesKey, now: u64) -> Result<Query, Failure> {
        let moment = |seconds: i64| match u64::try_from(seconds) {
            Ok(seconds) => seconds,
            Err(_) => now.saturating_sub(seconds.unsigned_abs()),
        };
        let (from, to) = (moment(self.from.unwrap_or(-3600)), self.to.map_or(now + 1, moment));
        if from >= to {
            return Err(Failure::invalid(format!("from {from} to {to}: nothing is in between"))
                .help("from must be before to; both are seconds since 1970, or negative to count back from now"));
        }
        let resolution = match self.resolution.as_deref() {
            None | Some("auto") => None,
            Some(text) => Some(Resolution::parse(text).ok_or_else(|| {
                Failure::invalid(format!("resolution: there is no '{}'", text.escape_debug()))
                    .help("choose auto, 1s, 1m or 1h")
            })?),
        };
        let mut metrics = Vec::new();
        for name in self.metrics.as_deref().unwrap_or_default().split(',').filter(|name| !name.is_empty()) {
            let metric = table::find(key.of, name).ok_or_else(|| {
                Failure::invalid(format!("metrics: there is no '{}'", name.escape_debug()))
                    .help("`GET /api/v1/telemetry/metrics` lists them")
            })?;
            metrics.push(metric.name);
        }
        let points = self.points.unwrap_or(POINTS);
        Ok(Query { key, from, to, resolution, points, metrics })
    }
}

/// A device's history, attached or not.
#[utoipa::path(get, path = "/devices/{name}/history", tag = "telemetry",
    params(("name" = String, Path, description = "a device, or its UUID"), Part),
    responses((status = OK, body = HistoryView), (status = "default", body = Failure)))]
async fn of_device(
    State(service): State<Service>,
    At(name): At<String>,
    Ask(part): Ask<Part>,
) -> Result<Response, Failure> {
    blocking(move || {
        let attached = service.registry.handle(&name).ok().map(|handle| SeriesKey::device(&handle.facts().uuid));
        let found = match attached {
            Some(key) => Some(key),
            None => service.monitor.history().find(&name)?,
        };
        let key = found.ok_or_else(|| {
            Failure::not_found(format!("there is no history of a device '{}'", name.escape_debug()))
                .help("`GET /api/v1/history` lists the devices of which there is any")
        })?;
        answer(&service, name, key, &part)
    })
    .await
}

/// The service's own history.
#[utoipa::path(get, path = "/service/history", tag = "telemetry", params(Part),
    responses((status = OK, body = HistoryView), (status = "default", body = Failure)))]
async fn of_service(State(service): State<Service>, Ask(part): Ask<Part>) -> Result<Response, Failure> {
    blocking(move || answer(&service, "service".into(), SeriesKey::service(), &part)).await
}

fn answer(service: &Service, name: String, key: SeriesKey, part: &Part) -> Result<Response, Failure> {
    let query = part.query(key.clone(), now_s())?;
    let table = service.monitor.history().query(&query)?;
    match part.format.as_deref() {
        None | Some("json") => Ok(Json(columns(name, &key, &query, &table)).into_response()),
        Some("csv") => Ok(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], write_csv(&table)).into_response()),
        Some(other) => {
            Err(Failure::invalid(format!("format: there is no '{}'", other.escape_debug())).help("choose json or csv"))
        }
    }
}

fn columns(device: String, key: &SeriesKey, query: &Query, table: &Table) -> HistoryView {
    let column = |index: usize| table.rows.iter().map(|row| row.values.get(index).copied().flatten()).collect();
    let values: BTreeMap<String, Vec<Option<f64>>> =
        table.metrics.iter().enumerate().map(|(index, name)| ((*name).to_string(), column(index))).collect();
    HistoryView {
        device,
        uuid: key.uuid.clone(),
        resolution_s: table.resolution.seconds(),
        from: query.from,
        to: query.to,
        at: table.rows.iter().map(|row| row.at).collect(),
        values,
    }
}

/// Of what there is history.
#[utoipa::path(get, path = "/history", tag = "telemetry",
    responses((status = OK, body = Histories), (status = "default", body = Failure)))]
async fn histories(State(service): State<Service>) -> Result<Json<Histories>, Failure> {
    blocking(move || {
        let history = service.monitor.history();
        let view = |series: telemetry::Series| SeriesView {
            of: if series.of == Of::Service { "service" } else { "device" }.into(),
            uuid: series.uuid,
            name: series.name,
            first: series.first,
            last: series.last,
            rows: series.rows,
        };
        let series = history.series()?.into_iter().map(view).collect();
        Ok(Json(Histories { file_bytes: history.file_bytes(), series }))
    })
    .await
}
