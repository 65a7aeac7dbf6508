//! `/metrics`: the last second and the counters, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use telemetry::{Of, Source, Unit, catalogue};

use super::{Service, wait};
use crate::access::guard;
use crate::api::{Role, Sample};
use crate::{Failure, fields};

/// It. Not part of the API's description: its format is Prometheus's own.
pub fn routes() -> Router<Service> {
    let role = axum::middleware::from_fn_with_state(Role::Viewer, guard::require);
    Router::new().route("/metrics", get(metrics)).route_layer(role)
}

/// Counters that only grow, from a device's fields: name, unit at the end of the metric's name, meaning.
const COUNTERS: &[(&str, &str, &str)] = &[
    ("host_read_bytes", "host_read_bytes_total", "Bytes read by hosts since the format."),
    ("host_written_bytes", "host_written_bytes_total", "Bytes written by hosts since the format."),
    ("host_trimmed_bytes", "host_trimmed_bytes_total", "Bytes trimmed by hosts since the format."),
    ("media_written_bytes", "media_written_bytes_total", "Bytes written to media since the format."),
    ("groomed_bytes", "groomed_bytes_total", "Bytes moved by the groomer since the format."),
    ("metadata_bytes", "metadata_bytes_total", "Bytes of headers, trim records and checkpoints since the format."),
    ("padding_bytes", "padding_bytes_total", "Bytes left empty so that flushes could be programmed, since the format."),
    ("erased_lebs", "erased_blocks_total", "Logical erase blocks erased or given up for reuse, since the format."),
    ("reads", "reads_total", "Read requests since the attach."),
    ("writes", "writes_total", "Write requests since the attach."),
    ("flushes", "flushes_total", "Flush requests since the attach."),
    ("trims", "trims_total", "Trim and zeroing requests since the attach."),
    ("read_errors", "read_errors_total", "Reads that failed, since the format."),
    ("healed_sectors", "healed_sectors_total", "Sectors that failed their check and were rebuilt, since the attach."),
    ("scrub_errors", "scrub_errors_total", "Sectors and stripes that scrubs found wrong, since the attach."),
];

async fn metrics(State(service): State<Service>) -> Result<Response, Failure> {
    let devices =
        wait(&service, |registry| Ok(registry.views().iter().map(fields::values).collect::<Vec<_>>())).await?;
    let alerts = service.alerting.active();
    let mut text = gauges(&service.monitor.latest());
    counters(&mut text, &devices);
    head(&mut text, "openvsl_alerts", "gauge", "Active alerts, by severity.");
    for severity in ["information", "warning", "critical"] {
        let count = alerts.iter().filter(|alert| alert.severity.name() == severity).count();
        let _ = writeln!(text, "openvsl_alerts{{severity=\"{severity}\"}} {count}");
    }
    head(&mut text, "openvsl_build_info", "gauge", "The program; always 1.");
    let _ = writeln!(text, "openvsl_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

fn head(text: &mut String, name: &str, kind: &str, meaning: &str) {
    // Writing to a string cannot fail, here and below.
    let _ = write!(text, "# HELP {name} {meaning}\n# TYPE {name} {kind}\n");
}

/// A metric's name for Prometheus, and by what its value is multiplied: base units, said at the end.
fn named(metric: &telemetry::Metric) -> (String, f64) {
    let scope = if metric.of == Of::Device { "device" } else { "service" };
    let stem = metric.name;
    let (stem, end, factor) = match metric.unit {
        Unit::Microseconds => (stem.trim_end_matches("_us"), "_seconds", 1e-6),
        Unit::Percent => (stem.trim_end_matches("_percent"), "_ratio", 0.01),
        Unit::BytesPerSecond => (stem.trim_end_matches("_bytes_per_s"), "_bytes_per_second", 1.0),
        Unit::NanosecondsPerByte => (stem.trim_end_matches("_ns_per_byte"), "_seconds_per_byte", 1e-9),
        Unit::Hours => (stem.trim_end_matches("_hours"), "_seconds", 3600.0),
        Unit::Celsius => ("temperature", "_celsius", 1.0),
        Unit::Watts if stem == "watts" => ("power", "_watts", 1.0),
        Unit::Watts => (stem.trim_end_matches("_watts"), "_watts", 1.0),
        _ => (stem, "", 1.0),
    };
    (format!("openvsl_{scope}_{stem}{end}"), factor)
}

fn gauges(sample: &Sample) -> String {
    let mut text = String::new();
    for metric in catalogue::METRICS {
        let (name, factor) = named(metric);
        let modelled = if metric.source == Source::Modelled { " Said by the model of an emulated card." } else { "" };
        let meaning = format!("{}: {}.{modelled}", metric.label, metric.meaning);
        match metric.of {
            Of::Service => {
                if let Some(value) = sample.service.get(metric.name) {
                    head(&mut text, &name, "gauge", &meaning);
                    let _ = writeln!(text, "{name} {}", value * factor);
                }
            }
            Of::Device => {
                let values: BTreeMap<&String, f64> = sample
                    .devices
                    .iter()
                    .filter_map(|(device, one)| Some((device, *one.values.get(metric.name)?)))
                    .collect();
                if !values.is_empty() {
                    head(&mut text, &name, "gauge", &meaning);
                }
                for (device, value) in values {
                    let _ = writeln!(text, "{name}{{device=\"{}\"}} {}", escaped(device), value * factor);
                }
            }
        }
    }
    text
}

fn counters(text: &mut String, devices: &[serde_json::Map<String, Value>]) {
    let label = |device: &serde_json::Map<String, Value>, key: &str| {
        escaped(device.get(key).and_then(Value::as_str).unwrap_or_default())
    };
    for (field, name, meaning) in COUNTERS {
        let name = format!("openvsl_device_{name}");
        let mut said = false;
        for device in devices {
            if let Some(value) = device.get(*field).and_then(Value::as_u64) {
                if !std::mem::replace(&mut said, true) {
                    head(text, &name, "counter", meaning);
                }
                let _ = writeln!(text, "{name}{{device=\"{}\"}} {value}", label(device, "name"));
            }
        }
    }
    if !devices.is_empty() {
        head(text, "openvsl_device_info", "gauge", "What a device is and does; always 1.");
    }
    for device in devices {
        let labels: Vec<String> =
            [("device", "name"), ("uuid", "uuid"), ("state", "state"), ("label", "label"), ("profile", "profile")]
                .iter()
                .map(|(name, key)| format!("{name}=\"{}\"", label(device, key)))
                .collect();
        let _ = writeln!(text, "openvsl_device_info{{{}}} 1", labels.join(","));
    }
    let bytes = devices.iter().filter_map(|device| Some((label(device, "name"), device.get("bytes")?.as_u64()?)));
    for (at, (device, bytes)) in bytes.enumerate() {
        if at == 0 {
            head(text, "openvsl_device_capacity_bytes", "gauge", "What the host sees.");
        }
        let _ = writeln!(text, "openvsl_device_capacity_bytes{{device=\"{device}\"}} {bytes}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DeviceSample;

    #[test]
    fn units_are_the_base_ones() {
        let name = |of, name| named(catalogue::find(of, name).expect(name));
        assert_eq!(name(Of::Device, "read_p99_us"), ("openvsl_device_read_p99_seconds".into(), 1e-6));
        assert_eq!(name(Of::Device, "store_left_hours"), ("openvsl_device_store_left_seconds".into(), 3600.0));
        assert_eq!(name(Of::Device, "celsius").0, "openvsl_device_temperature_celsius");
        assert_eq!(name(Of::Device, "watts").0, "openvsl_device_power_watts");
        assert_eq!(name(Of::Device, "power_limit_watts").0, "openvsl_device_power_limit_watts");
        assert_eq!(name(Of::Device, "free_percent").0, "openvsl_device_free_ratio");
        assert_eq!(name(Of::Device, "write_bytes_per_s").0, "openvsl_device_write_bytes_per_second");
        assert_eq!(name(Of::Service, "cpu_percent").0, "openvsl_service_cpu_ratio");
        let mut names: Vec<String> = catalogue::METRICS.iter().map(|metric| named(metric).0).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "two metrics have one name");
    }

    #[test]
    fn names_are_escaped() {
        let mut sample = Sample::default();
        let values = [("read_iops".to_string(), 2.5)].into();
        sample.devices.insert("a\"b".into(), DeviceSample { values, ..DeviceSample::default() });
        let text = gauges(&sample);
        assert!(text.contains("openvsl_device_read_iops{device=\"a\\\"b\"} 2.5\n"), "{text}");
        assert!(text.starts_with("# HELP openvsl_device_read_iops Reads: "), "{text}");
    }
}
