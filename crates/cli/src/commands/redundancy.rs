//! `vsl scrub`, `vsl optimise` and `vsl rebuild`.

use std::process::ExitCode;
use std::time::Duration;

use daemon::Failure;
use daemon::api::{DeviceView, OptimiseRequest, RebuildRequest, ScrubRequest};
use hyper::Method;
use serde_json::json;

use crate::args::{Optimise, Rebuild, Scrub};
use crate::client::Client;
use crate::output::Output;
use crate::progress::bar;

/// How often the device is asked how far it is.
const POLL: Duration = Duration::from_millis(100);

pub fn scrub(args: &Scrub, output: Output) -> Result<ExitCode, Failure> {
    let client = super::client()?;
    let before = client.attached(&args.device)?;
    let name = before.text("name").to_string();
    let request = ScrubRequest { on: !args.stop };
    let mut view: DeviceView = client.send(Method::POST, &format!("/devices/{name}/scrub"), &request)?;
    if args.wait {
        view = wait(&client, &name, output, "scrubbing", |view| view.field("scrub_percent"))?;
    }
    is_attached(&view)?;
    let counted = |field| {
        let count = |view: &DeviceView| view.field::<u64>(field).unwrap_or_default();
        count(&view).saturating_sub(count(&before))
    };
    let unreadable: Vec<u64> = view.field("unreadable").unwrap_or_default();
    let code = if args.wait && !unreadable.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    output.result(&json!({ "devices": [view] }), || match (view.field::<f64>("scrub_percent"), args.stop) {
        (Some(percent), _) => format!("scrubbing {name}: {percent:.0} % done; `vsl status` shows how far it is\n"),
        (None, true) => format!("not scrubbing {name}\n"),
        (None, false) => format!(
            "scrubbed {name}: {} sectors checked, {} found wrong, {} cannot be read\n{}",
            counted("scrubbed_sectors"),
            counted("scrub_errors"),
            unreadable.len(),
            unreadable.iter().map(|lba| format!("  sector {lba}\n")).collect::<String>()
        ),
    })?;
    Ok(code)
}

pub fn optimise(args: &Optimise, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let name = client.attached(&args.device)?.text("name").to_string();
    let request = OptimiseRequest { on: !args.stop, rate_mib: args.rate };
    let mut view: DeviceView = client.send(Method::POST, &format!("/devices/{name}/optimise"), &request)?;
    if args.wait {
        view = wait(&client, &name, output, "optimising", |view| view.field("optimise_percent"))?;
    }
    is_attached(&view)?;
    output.result(&json!({ "devices": [view] }), || match (view.field::<f64>("optimise_percent"), args.stop) {
        (Some(percent), _) => format!("optimising {name}: {percent:.0} % done; `vsl status` shows how far it is\n"),
        (None, true) => format!("not optimising {name}\n"),
        (None, false) => match view.field::<f64>("pieces_per_mib") {
            Some(pieces) => format!("optimised {name}: its data lie in {pieces:.0} pieces a MiB\n"),
            None => format!("optimised {name}: it holds no data\n"),
        },
    })
}

pub fn rebuild(args: &Rebuild, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let name = client.attached(&args.device)?.text("name").to_string();
    let onto = args.onto.as_ref().map(|path| std::path::absolute(path).map_err(|error| Failure::io(path, &error)));
    let request = RebuildRequest { die: args.die, onto: onto.transpose()? };
    let mut view: DeviceView = client.send(Method::POST, &format!("/devices/{name}/rebuild"), &request)?;
    if args.wait {
        view = wait(&client, &name, output, "rebuilding", |view| {
            let lost: Vec<u32> = view.field("lost_dies").unwrap_or_default();
            // Done is what is on record.
            view.field("rebuild_percent").or(lost.contains(&args.die).then_some(100.0))
        })?;
    }
    is_attached(&view)?;
    output.result(&json!({ "devices": [view] }), || match view.field::<f64>("rebuild_percent") {
        Some(percent) => {
            format!("rebuilding die {} of {name}: {percent:.0} % done; `vsl status` shows how far it is\n", args.die)
        }
        None => format!("die {} of {name}: {}\n", args.die, view.text("health")),
    })
}

/// Waits until `percent` gives nothing any more.
fn wait(
    client: &Client,
    name: &str,
    output: Output,
    what: &str,
    percent: impl Fn(&DeviceView) -> Option<f64>,
) -> Result<DeviceView, Failure> {
    let bar = bar(output, &format!("{what} [{{wide_bar}}] {{percent}} %, {{eta}} left"))?;
    bar.set_length(1000);
    loop {
        let view: DeviceView = client.get(&format!("/devices/{name}"))?;
        is_attached(&view)?;
        let Some(percent) = percent(&view) else {
            bar.finish_and_clear();
            return Ok(view);
        };
        bar.set_position((percent * 10.0) as u64);
        std::thread::sleep(POLL);
    }
}

fn is_attached(view: &DeviceView) -> Result<(), Failure> {
    if view.is_attached() {
        return Ok(());
    }
    Err(Failure::conflict(format!("{} is not attached: {}", view.text("name"), view.text("health")))
        .help("see `vsl status`"))
}
