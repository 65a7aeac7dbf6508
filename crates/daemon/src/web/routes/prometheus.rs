//! `/metrics`: the last second and the counters, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use telemetry::{Of, Source, table};

use crate::Failure;
use crate::api::{DeviceView, Role, Sample};
use crate::web::answer::{Service, wait};
use crate::web::guard;

/// It. Not part of the API's description: its format is Prometheus's own.
pub fn routes() -> Router<Service> {
    let role = axum::middleware::from_fn_with_state(Role::Viewer, guard::require);
    Router::new().route("/metrics", get(metrics)).route_layer(role)
}

async fn metrics(State(service): State<Service>) -> Result<Response, Failure> {
    let devices = wait(&service, |registry| Ok(registry.views())).await?;
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

fn gauges(sample: &Sample) -> String {
    let mut text = String::new();
    for metric in table::metrics() {
        let (name, factor) = metric.prometheus();
        let modelled = if metric.source == Source::Modelled { " Said by the model of an emulated card." } else { "" };
        let meaning = format!("{}: {}.{modelled}", metric.label, metric.meaning);
        match metric.of {
            Some(Of::Service) => {
                if let Some(value) = sample.service.get(metric.name) {
                    head(&mut text, &name, "gauge", &meaning);
                    let _ = writeln!(text, "{name} {}", value * factor);
                }
            }
            _ => {
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

fn counters(text: &mut String, devices: &[DeviceView]) {
    let label = |device: &DeviceView, key: &str| escaped(device.text(key));
    for (row, name) in table::rows().filter_map(|row| Some((row, row.counter?))) {
        let name = format!("openvsl_device_{name}");
        for (at, (device, value)) in numbers(devices, row.name).enumerate() {
            if at == 0 {
                head(text, &name, "counter", &format!("{}: {}.", row.label, row.meaning));
            }
            let _ = writeln!(text, "{name}{{device=\"{}\"}} {value}", label(device, "name"));
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
    for (at, (device, bytes)) in numbers(devices, "bytes").enumerate() {
        if at == 0 {
            head(text, "openvsl_device_capacity_bytes", "gauge", "What the host sees.");
        }
        let _ = writeln!(text, "openvsl_device_capacity_bytes{{device=\"{}\"}} {bytes}", label(device, "name"));
    }
}

/// The devices that know a whole number, and what it is.
fn numbers<'a>(devices: &'a [DeviceView], field: &'a str) -> impl Iterator<Item = (&'a DeviceView, u64)> {
    devices.iter().filter_map(move |device| Some((device, device.get(field)?.as_u64()?)))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DeviceSample;

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
