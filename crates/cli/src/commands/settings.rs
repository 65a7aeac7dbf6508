//! `vsl config`, `vsl beacon` and `vsl trim`.

use daemon::Failure;
use daemon::api::Config as Values;
use daemon::settings::{MEANINGS, parse, unknown};
use hyper::Method;
use serde_json::{Value, json};

use crate::args::{Beacon, Config, Switch, Trim};
use crate::confirm;
use crate::output::Output;

pub fn config(args: &Config, output: Output) -> Result<(), Failure> {
    // What is wrong is said before a service is asked for.
    if let Some(setting) = &args.setting {
        match &args.value {
            Some(value) => drop(parse(setting, value)?),
            None if MEANINGS.iter().any(|(name, _)| name == setting) => {}
            None => return Err(unknown(setting)),
        }
    }
    if args.setting.as_deref() == Some("page-file") && args.value.as_deref() == Some("on") && !args.yes {
        ask_for_memory(&args.device)?;
    }
    let values = exchange(&args.device, args.setting.as_deref(), args.value.as_deref())?;
    match &args.setting {
        Some(setting) => one(&values, setting, output),
        None => output.result(&values, || {
            let width = MEANINGS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            let lines = MEANINGS.iter().filter_map(|(name, meaning)| {
                let value = values.get(*name)?;
                Some(format!("{name:width$}  {value:12}  {meaning}\n"))
            });
            lines.collect()
        }),
    }
}

/// Page-file support locks memory for the worst case, which is much more than a device takes in use.
fn ask_for_memory(device: &str) -> Result<(), Failure> {
    let view = super::client()?.attached(device)?;
    if view.field("page_file") == Some(true) {
        return Ok(());
    }
    let memory = size::show(view.field("worst_memory_bytes").unwrap_or_default());
    let deed = format!("lock {memory} of memory, as long as {} is attached", view.text("name"));
    confirm::ask_before(&deed, "Lock it? Type yes:", "yes")
}

pub fn beacon(args: &Beacon, output: Output) -> Result<(), Failure> {
    switch(&args.device, "beacon", args.switch, output)
}

pub fn trim(args: &Trim, output: Output) -> Result<(), Failure> {
    switch(&args.device, "trim", args.switch, output)
}

fn switch(device: &str, setting: &str, switch: Option<Switch>, output: Output) -> Result<(), Failure> {
    let value = switch.map(|switch| if switch == Switch::On { "on" } else { "off" });
    let values = exchange(device, Some(setting), value)?;
    one(&values, setting, output)
}

/// Sets a value if there is one; gives all values that hold then.
fn exchange(device: &str, setting: Option<&str>, value: Option<&str>) -> Result<Values, Failure> {
    let client = super::client()?;
    let path = format!("/devices/{}/config", client.attached(device)?.text("name"));
    match (setting, value) {
        (Some(setting), Some(value)) => {
            client.send(Method::PATCH, &path, &Values::from([(setting.to_string(), value.to_string())]))
        }
        _ => client.get(&path),
    }
}

fn one(values: &Values, setting: &str, output: Output) -> Result<(), Failure> {
    let value = values.get(setting).ok_or_else(|| {
        Failure::failed(format!("the device has no setting {setting}"))
            .help("`vsl config DEVICE` shows those that it has: durability is of devices that are not emulated, power-override of emulated cards")
    })?;
    let object = Value::Object([(setting.to_string(), json!(value))].into_iter().collect());
    output.result(&object, || format!("{value}\n"))
}
