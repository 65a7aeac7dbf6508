//! What a report of a bug needs, in one file, without anything secret.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::json;
use telemetry::{Query, SeriesKey, write_csv};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::clock::now_s;
use crate::web::answer::{Service, administrators, blocking};

/// How much of the log's end is taken, bytes.
const LOG: u64 = 1 << 20;

/// It.
pub fn routes() -> OpenApiRouter<Service> {
    administrators(OpenApiRouter::new().routes(routes!(bug_report)))
}

/// A `.tar.gz` for a report of a bug, without anything secret.
#[utoipa::path(get, path = "/bugreport", tag = "service",
    responses((status = OK, content_type = "application/gzip", body = String), (status = "default", body = Failure)))]
async fn bug_report(State(service): State<Service>) -> Result<Response, Failure> {
    let bytes = blocking(move || gather(&service)).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/gzip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"openvsl-bugreport.tar.gz\""),
    ];
    Ok((headers, bytes).into_response())
}

struct Bundle {
    archive: tar::Builder<GzEncoder<Vec<u8>>>,
    now: u64,
}

impl Bundle {
    fn add(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.now);
        self.archive.append_data(&mut header, Path::new("openvsl-bugreport").join(name), bytes)
    }

    fn json(&mut self, name: &str, value: &impl Serialize) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(value)?;
        self.add(name, &text)
    }
}

fn gather(service: &Service) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("the bug report: {error}"));
    let archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut bundle = Bundle { archive, now: now_s() };
    write(service, &mut bundle).map_err(failed)?;
    bundle.archive.into_inner().and_then(GzEncoder::finish).map_err(failed)
}

fn write(service: &Service, bundle: &mut Bundle) -> std::io::Result<()> {
    let views = service.registry.views();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    bundle.json(
        "about.json",
        &json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "health": service.registry.health(),
            "kernel": read("/proc/version").trim(),
            "processors": std::thread::available_parallelism().map_or(0, usize::from),
            "memory": read("/proc/meminfo").lines().take(3).collect::<Vec<_>>(),
            "limits": read("/proc/self/limits"),
        }),
    )?;
    bundle.json("devices.json", &views)?;
    for view in &views {
        let name = view.text("name");
        if let Ok(events) = service.registry.events(name) {
            bundle.json(&format!("events-{name}.json"), &events)?;
        }
        if view.is_known() {
            let now = bundle.now;
            let query = Query {
                points: 3600,
                ..Query::of(SeriesKey::device(view.text("uuid")), now.saturating_sub(3600), now)
            };
            match service.monitor.history().query(&query) {
                Ok(table) => bundle.add(&format!("history-{name}.csv"), write_csv(&table).as_bytes())?,
                Err(error) => bundle.add(&format!("history-{name}.txt"), error.to_string().as_bytes())?,
            }
        }
    }
    bundle.json("telemetry.json", service.monitor.latest().as_ref())?;
    bundle.json("alerts.json", &service.alerting.active())?;
    bundle.json("alerts-past.json", &service.alerting.past(u64::MAX, 100))?;
    bundle.json("alert-rules.json", &service.alerting.rules())?;
    bundle.json("jobs.json", &service.jobs.all())?;
    // What was asked for, of whom and what came of it; bodies are there without what is secret.
    bundle.json("audit.json", &service.audit.before(u64::MAX, 200))?;
    let log = service.state.join("openvsl.log");
    bundle.add("openvsl.log", &tail(&log).unwrap_or_default())
}

fn tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG)))?;
    let mut bytes = Vec::new();
    file.take(LOG).read_to_end(&mut bytes)?;
    Ok(bytes)
}
