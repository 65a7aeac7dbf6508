//! Files that are written from the table of figures: the console's charts, the Grafana dashboard, and the tables in docs/metrics.md.
//! `DERIVE=write cargo test -p openvsl-telemetry --test derived` writes a row that was added or changed into them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use telemetry::table::{self, CHARTS, Row};
use telemetry::{Of, Source, Unit};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Compares a file with what the table says, or writes it.
fn holds(path: &str, wanted: &str) {
    if std::env::var_os("DERIVE").is_some() {
        std::fs::write(file(path), wanted).expect("written");
    }
    let found = std::fs::read_to_string(file(path)).expect("read");
    assert!(
        found == wanted,
        "{path} is not what the table says: DERIVE=write cargo test -p openvsl-telemetry --test derived"
    );
}

fn pretty(value: &impl serde::Serialize) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).expect("plain values"))
}

/// The rows that are drawn in a chart.
fn drawn(chart: &str) -> Vec<&'static Row> {
    table::metrics().filter(|row| row.line.is_some_and(|line| line.chart == chart)).collect()
}

#[test]
fn charts_of_the_console() {
    let plan = |chart: &table::Chart| {
        let rows = drawn(chart.title);
        let line = |row: &&Row| {
            let line = row.line.expect("a line");
            let mut shown = json!({ "metric": row.name, "label": line.label, "tone": line.tone });
            if line.limit {
                shown["limit"] = true.into();
            }
            shown
        };
        let lines: Vec<Value> = rows.iter().map(line).collect();
        let mut plan = json!({ "title": chart.title, "unit": chart.unit.name(), "lines": lines });
        if chart.logarithmic {
            plan["logarithmic"] = true.into();
        }
        if chart.at_least > 0 {
            plan["atLeast"] = chart.at_least.into();
        }
        if rows.iter().all(|row| row.of == Some(Of::Service)) {
            plan["of"] = "service".into();
        }
        plan
    };
    holds("console/src/pages/live/plans.json", &pretty(&CHARTS.iter().map(plan).collect::<Vec<_>>()));
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// A question to Prometheus.
fn target(at: usize, question: &str, legend: &str) -> Value {
    let letter = char::from(b'A' + at as u8).to_string();
    json!({ "refId": letter, "expr": question, "legendFormat": legend, "datasource": source() })
}

fn panel(at: usize, title: &str, unit: &str, targets: &[Value]) -> Value {
    json!({
        "id": at + 1,
        "type": "timeseries",
        "title": title,
        "gridPos": { "x": at % 2 * 12, "y": at / 2 * 8, "w": 12, "h": 8 },
        "datasource": source(),
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "min": 0,
                "custom": { "lineWidth": 1, "fillOpacity": 8, "showPoints": "never" },
            },
            "overrides": [],
        },
        "options": {
            "legend": { "showLegend": true, "displayMode": "list", "placement": "bottom", "calcs": [] },
            "tooltip": { "mode": "multi", "sort": "desc" },
        },
        "targets": targets,
    })
}

/// A line of a panel.
fn line((at, row): (usize, &&Row)) -> Value {
    let (series, label) = (row.prometheus().0, row.line.expect("a line").label);
    let device = "{device=~\"$device\"}";
    match (row.name, row.of) {
        // Over minutes: a second's quotient means little beside other seconds'.
        ("write_amplification", _) => {
            let rate = |counter: &str| format!("rate(openvsl_device_{counter}_bytes_total{device}[5m])");
            let question = format!("{} / {}", rate("media_written"), rate("host_written"));
            target(at, &question, &format!("{{{{device}}}} {label}"))
        }
        (_, Some(Of::Service)) => target(at, &series, label),
        _ => target(at, &format!("{series}{device}"), &format!("{{{{device}}}} {label}")),
    }
}

#[test]
fn dashboard_for_grafana() {
    let panels = CHARTS.iter().enumerate().map(|(at, chart)| {
        let unit = match chart.unit {
            Unit::BytesPerSecond => "Bps",
            Unit::PerSecond => "iops",
            Unit::Microseconds => "s",
            Unit::Percent => "percentunit",
            Unit::Celsius => "celsius",
            Unit::Watts => "watt",
            Unit::Bytes => "bytes",
            _ => "short",
        };
        panel(at, chart.title, unit, &drawn(chart.title).iter().enumerate().map(line).collect::<Vec<_>>())
    });
    let alerts = panel(CHARTS.len(), "Alerts", "short", &[target(0, "openvsl_alerts", "{{severity}}")]);
    let panels: Vec<Value> = panels.chain([alerts]).collect();
    let dashboard = json!({
        "title": "OpenVSL",
        "uid": "openvsl",
        "tags": ["openvsl", "storage"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "refresh": "10s",
        "time": { "from": "now-1h", "to": "now" },
        "timezone": "browser",
        "templating": { "list": [
            { "name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source" },
            {
                "name": "device",
                "type": "query",
                "label": "Device",
                "datasource": source(),
                "query": { "query": "label_values(openvsl_device_info, device)", "refId": "devices" },
                "includeAll": true,
                "multi": true,
                "refresh": 2,
                "current": { "text": "All", "value": "$__all" },
            },
        ] },
        "annotations": { "list": [] },
        "panels": panels,
    });
    holds("packaging/grafana-openvsl.json", &pretty(&dashboard));
}

#[test]
fn tables_of_the_page() {
    let mut text = String::from("| metric | unit | for Prometheus | what |\n|---|---|---|---|\n");
    for row in table::metrics() {
        let of = if row.of == Some(Of::Service) { " (service)" } else { "" };
        let modelled = if row.source == Source::Modelled { " (modelled)" } else { "" };
        let (name, label, unit) = (row.name, row.label, row.unit.name());
        let (series, meaning) = (row.prometheus().0, row.meaning);
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "| `{name}`{of} | {unit} | `{series}` | {label}: {meaning}{modelled} |");
    }
    text.push_str("\n| counter | field | what |\n|---|---|---|\n");
    for (row, counter) in table::rows().filter_map(|row| Some((row, row.counter?))) {
        let _ = writeln!(text, "| `openvsl_device_{counter}` | `{}` | {}: {} |", row.name, row.label, row.meaning);
    }
    let page = std::fs::read_to_string(file("docs/metrics.md")).expect("read");
    let (begin, end) = ("<!-- from the table of figures -->\n\n", "\n<!-- end -->\n");
    let (before, rest) = page.split_once(begin).expect("where the tables begin");
    let after = rest.rsplit_once(end).expect("where they end").1;
    holds("docs/metrics.md", &format!("{before}{begin}{text}{end}{after}"));
}

/// What other programs rely on stays: names, units, sources, groups and series.
#[test]
fn promised_names() {
    let mut found: Vec<String> = Vec::new();
    for row in table::fields() {
        let (name, unit, source) = (row.name, row.unit.of_field(), row.source.name());
        let shown = if row.brief { "brief" } else { "full" };
        found.push(format!("field {name} {unit} {source} {shown}; {}; {}", row.group(), row.label));
    }
    for row in table::metrics() {
        let of = if row.of == Some(Of::Service) { "service" } else { "device" };
        let (name, unit, source) = (row.name, row.unit.name(), row.source.name());
        found.push(format!("metric {of} {name} {unit} {source} {}", row.over_time.name()));
        found.push(format!("series {} gauge", row.prometheus().0));
    }
    let counters = table::rows().filter_map(|row| row.counter);
    found.extend(counters.map(|name| format!("series openvsl_device_{name} counter")));
    let promised = include_str!("promised.txt").lines().filter(|line| !line.starts_with('#'));
    let missing: Vec<&str> = promised.filter(|line| !found.iter().any(|known| known == line)).collect();
    assert_eq!(missing, [""; 0]);
}
