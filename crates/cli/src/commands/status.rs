//! `vsl status`.

use std::process::ExitCode;

use daemon::api::DeviceView;
use daemon::{Failure, Kind, Target, fields};
use device::State;
use serde_json::{Value, json};
use telemetry::Source;
use telemetry::table::{self, Row};

use crate::args::Status;
use crate::output::Output;

pub fn status(args: &Status, output: Output) -> Result<ExitCode, Failure> {
    if args.fields {
        list_fields(output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let field = match &args.field {
        Some(name) => Some(table::find_field(name).ok_or_else(|| {
            Failure::invalid(format!("no field is called '{name}'")).help("`vsl status --fields` lists them")
        })?),
        None => None,
    };
    let mut views = views(&args.devices)?;
    if args.errors {
        views.retain(is_wrong);
    }
    match field {
        Some(field) => show_field(&views, field, output)?,
        None => output.result(&json!({ "devices": views }), || text(&views, args))?,
    }
    // A file that was named and cannot be looked at is a failure; a device of the service in trouble is an answer.
    let unreadable =
        views.iter().any(|view| !view.is_known() && args.devices.iter().any(|device| device == view.text("path")));
    Ok(if unreadable || (args.errors && !views.is_empty()) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn views(devices: &[String]) -> Result<Vec<DeviceView>, Failure> {
    let client = super::client()?;
    if devices.is_empty() {
        return client.get("/devices").map_err(|failure| match failure.kind {
            Kind::NotFound => {
                let help = format!("{}; `vsl status PATH` shows a detached device", failure.help);
                failure.help(help)
            }
            _ => failure,
        });
    }
    let one = |device: &String| match client.find(device) {
        Ok(Some(view)) => Ok(view),
        // Not attached, as far as anybody can tell: then it is a file.
        found => match (Target::parse(device)?, found) {
            (Target::Files(paths), found) => match device::inspect(&paths[0]) {
                Ok(info) => Ok(DeviceView::detached(&paths, Ok(info))),
                Err(error) if paths[0].exists() => Ok(DeviceView::detached(&paths, Err(error.into()))),
                // No file either. A service that answers knows its devices; one that does not is the reason.
                Err(_) => Err(found.map_or_else(
                    |failure| failure,
                    |_| {
                        Failure::not_found(format!("{device}: no attached device has this name, and no file this path"))
                            .help("`vsl status` lists attached devices")
                    },
                )),
            },
            (Target::Memory(_) | Target::Array(_) | Target::Cached(..), _) => {
                Err(Failure::invalid(format!("{device}: memory is not a device's name"))
                    .help("`vsl status` lists attached devices"))
            }
        },
    };
    devices.iter().map(one).collect()
}

fn is_wrong(view: &DeviceView) -> bool {
    match view.state() {
        Some(State::Error | State::PoweredOff) => true,
        _ => view.is_attached() && view.text("health") != "healthy",
    }
}

fn list_fields(output: Output) -> Result<(), Failure> {
    let list: Vec<Value> = table::fields()
        .map(|row| json!({ "name": row.name, "unit": row.unit.of_field(), "meaning": row.meaning, "source": row.source.name() }))
        .collect();
    output.result(&json!({ "fields": list }), || {
        let width = table::fields().map(|row| row.name.len()).max().unwrap_or(0);
        let line = |row: &Row| {
            let (unit, source) = (row.unit.of_field(), row.source.name());
            format!("{:width$}  {unit:7}  {source:8}  {}\n", row.name, row.meaning)
        };
        table::fields().map(line).collect()
    })
}

fn show_field(maps: &[DeviceView], field: &Row, output: Output) -> Result<(), Failure> {
    if let Some(map) = maps.iter().find(|map| !map.contains_key(field.name)) {
        let state = map.get("state").map(fields::plain).unwrap_or_default();
        let name = map.get("name").map(fields::plain).unwrap_or_default();
        let lacks =
            map.get("not_there").and_then(Value::as_array).is_some_and(|list| list.iter().any(|it| it == field.name));
        if lacks {
            return Err(Failure::failed(format!("{name} has no {}: it emulates no card", field.name))
                .help("`vsl status --field not_there` lists what only cards have"));
        }
        return Err(Failure::failed(format!("{name} has no value for {} (it is {state})", field.name))
            .help("some figures are known of attached devices only, or not on every kind of store"));
    }
    let list: Vec<Value> = maps.iter().map(|map| json!({ "name": map["name"], field.name: map[field.name] })).collect();
    output.result(&json!({ "devices": list }), || {
        maps.iter().map(|map| format!("{}\n", fields::plain(&map[field.name]))).collect()
    })
}

fn text(maps: &[DeviceView], args: &Status) -> String {
    if maps.is_empty() {
        return match args.errors {
            true => "nothing is wrong\n".into(),
            false => "nothing is attached; `vsl attach PATH` attaches a device\n".into(),
        };
    }
    // Whoever names devices wants to know more of them than that they are well.
    if args.all || args.long || !args.devices.is_empty() {
        let blocks: Vec<String> = maps.iter().map(|map| block(map, args.all)).collect();
        return blocks.join("\n");
    }
    table(maps)
}

/// A device a line.
fn table(maps: &[DeviceView]) -> String {
    let rows = maps.iter().map(|map| {
        let plain = |name: &str| map.get(name).map(fields::plain).unwrap_or_default();
        let size = |name: &str| map.get(name).and_then(Value::as_u64).map_or("-".into(), size::short);
        let ratio = map.get("write_amplification").and_then(Value::as_f64).map_or("-".into(), |of| format!("{of:.2}"));
        let clients = map.get("clients").and_then(Value::as_array).map_or("-".into(), |list| list.len().to_string());
        [plain("name"), plain("state"), size("bytes"), size("mapped_bytes"), ratio, clients, plain("health")]
    });
    let head = ["DEVICE", "STATE", "CAPACITY", "HELD", "WAF", "CLIENTS", "HEALTH"].map(String::from);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let line = |row: &[String; 7]| {
        let [name, state, rest @ .., health] = row;
        let numbers: String = rest.iter().zip(&widths[2..]).map(|(cell, width)| format!("  {cell:>width$}")).collect();
        format!("{name:w0$}  {state:w1$}{numbers}  {health}\n", w0 = widths[0], w1 = widths[1])
    };
    rows.iter().map(line).collect()
}

/// One device: its name and state on a line, then a figure a line.
fn block(map: &DeviceView, all: bool) -> String {
    let plain = |name: &str| map.get(name).map(fields::plain).unwrap_or_default();
    let mut out = format!("{}  {}, {}\n", plain("name"), plain("state"), plain("health"));
    let mut group = "";
    for field in table::fields().filter(|field| all || field.brief) {
        let replaced = field.unless.is_some_and(|other| map.contains_key(other));
        if replaced || matches!(field.name, "name" | "state" | "health") {
            continue;
        }
        // That sectors lie in the clear is worth a line as well.
        let plain = Value::from("none");
        let value = map.get(field.name).or((field.name == "encryption" && map.contains_key("uuid")).then_some(&plain));
        if let Some(value) = value {
            if all && field.group() != group {
                group = field.group();
                out.push_str(&format!(" {group}\n"));
            }
            let modelled = if all && field.source == Source::Modelled { "  (modelled)" } else { "" };
            out.push_str(&format!("  {:<22}{}{modelled}\n", field.label, fields::show(field.unit, value)));
        }
    }
    out
}
