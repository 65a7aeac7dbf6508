//! `vsl scrub` and `vsl rebuild`.

use std::process::ExitCode;
use std::time::Duration;

use daemon::api::{Condition, DeviceView, RebuildRequest, ScrubRequest};
use daemon::{Failure, fields};
use device::Status;
use hyper::Method;
use serde_json::json;

use crate::args::{Rebuild, Scrub};
use crate::client::Client;
use crate::output::Output;
use crate::progress::bar;

/// How often the device is asked how far it is.
const POLL: Duration = Duration::from_millis(100);

pub fn scrub(args: &Scrub, output: Output) -> Result<ExitCode, Failure> {
    let client = super::client()?;
    let before = client.attached(&args.device)?;
    let counts = attached(&before).map(|status| (status.scrubbed_sectors, status.scrub_errors));
    let (checked_before, wrong_before) = counts.unwrap_or_default();
    let name = before.name;
    let request = ScrubRequest { on: !args.stop };
    let mut view: DeviceView = client.send(Method::POST, &format!("/devices/{name}/scrub"), &request)?;
    if args.wait {
        view = wait(&client, &name, output, "scrubbing", |status| status.scrub_percent)?;
    }
    let status = attached(&view)?;
    let code = if args.wait && !status.unreadable.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    output.result(&json!({ "devices": [fields::values(&view)] }), || match (status.scrub_percent, args.stop) {
        (Some(percent), _) => format!("scrubbing {name}: {percent:.0} % done; `vsl status` shows how far it is\n"),
        (None, true) => format!("not scrubbing {name}\n"),
        (None, false) => format!(
            "scrubbed {name}: {} sectors checked, {} found wrong, {} cannot be read\n{}",
            status.scrubbed_sectors - checked_before.min(status.scrubbed_sectors),
            status.scrub_errors - wrong_before.min(status.scrub_errors),
            status.unreadable.len(),
            status.unreadable.iter().map(|lba| format!("  sector {lba}\n")).collect::<String>()
        ),
    })?;
    Ok(code)
}

pub fn rebuild(args: &Rebuild, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let name = client.attached(&args.device)?.name;
    let onto = args.onto.as_ref().map(|path| std::path::absolute(path).map_err(|error| Failure::io(path, &error)));
    let request = RebuildRequest { die: args.die, onto: onto.transpose()? };
    let mut view: DeviceView = client.send(Method::POST, &format!("/devices/{name}/rebuild"), &request)?;
    if args.wait {
        view = wait(&client, &name, output, "rebuilding", |status| {
            // Done is what is on record.
            status.rebuild_percent.or(status.lost_dies.contains(&args.die).then_some(100.0))
        })?;
    }
    let status = attached(&view)?;
    output.result(&json!({ "devices": [fields::values(&view)] }), || match status.rebuild_percent {
        Some(percent) => {
            format!("rebuilding die {} of {name}: {percent:.0} % done; `vsl status` shows how far it is\n", args.die)
        }
        None => format!("die {} of {name}: {}\n", args.die, status.health),
    })
}

/// Waits until `percent` gives nothing any more.
fn wait(
    client: &Client,
    name: &str,
    output: Output,
    what: &str,
    percent: impl Fn(&Status) -> Option<f64>,
) -> Result<DeviceView, Failure> {
    let bar = bar(output, &format!("{what} [{{wide_bar}}] {{percent}} %, {{eta}} left"))?;
    bar.set_length(1000);
    loop {
        let view: DeviceView = client.get(&format!("/devices/{name}"))?;
        let Some(percent) = percent(attached(&view)?) else {
            bar.finish_and_clear();
            return Ok(view);
        };
        bar.set_position((percent * 10.0) as u64);
        std::thread::sleep(POLL);
    }
}

fn attached(view: &DeviceView) -> Result<&Status, Failure> {
    match &view.condition {
        Condition::Attached(status) => Ok(status),
        Condition::Other { health, .. } => {
            Err(Failure::conflict(format!("{} is not attached: {health}", view.name)).help("see `vsl status`"))
        }
    }
}
