//! `vsl drill` and `vsl events`.

use daemon::api::{DeviceView, Drills, PowerOnRequest};
use daemon::fields::Unit;
use daemon::{Failure, fields};
use device::Drill;
use hyper::Method;
use serde_json::json;

use super::opener;
use crate::args::drill::{Drill as Args, What};
use crate::args::{Events, Opener};
use crate::client::Client;
use crate::output::Output;

pub fn drill(args: &Args, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let view = client.attached(&args.device)?;
    let path = format!("/devices/{}/drills", view.text("name"));
    let drill = match &args.what {
        What::PowerOn { opener } => return power_on(&client, &view, opener, output),
        What::List => {
            let drills: Drills = client.get(&path)?;
            return output.result(&drills, || list(&drills));
        }
        What::Undo { name } => {
            let drills: Drills = client.send(Method::DELETE, &format!("{path}/{}", plain(name)?), &())?;
            return output.result(&drills, || said(view.text("name"), &drills));
        }
        &What::PowerCut { at_write, at_program, unsynced, seed } => {
            Drill::PowerCut { at_write, at_program, unsynced, seed }
        }
        &What::KillDie { die } => Drill::KillDie { die },
        &What::KillChip { chip } => Drill::KillChip { chip },
        &What::StallDie { die, ms } => Drill::StallDie { die, ms },
        &What::Rot { sectors: (lba, count) } => Drill::Rot { lba, count },
        &What::FailReads { sectors: (lba, count) } => Drill::FailReads { lba, count },
        What::IgnoreFlushes => Drill::IgnoreFlushes,
        &What::FillReserve { read_only } => Drill::FillReserve { read_only },
        &What::Overheat { celsius } => Drill::Overheat { celsius },
        &What::Age { days } => Drill::Age { days },
    };
    let drills: Drills = client.send(Method::POST, &path, &drill)?;
    output.result(&drills, || said(view.text("name"), &drills))
}

/// A name that can stand in a path; whether there is such a drill, the service says.
fn plain(name: &str) -> Result<&str, Failure> {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Ok(name);
    }
    let names = Drill::NAMES.join(", ");
    Err(Failure::invalid(format!("no drill is called '{name}'"))
        .help(format!("there are: {names}; all ends every one")))
}

fn power_on(client: &Client, view: &DeviceView, named: &Opener, output: Output) -> Result<(), Failure> {
    // Nothing is asked for: the service knows the key file that the device was attached with.
    let (passphrase, key_file) = opener::for_service(view.text("path"), false, named)?;
    let request = PowerOnRequest { passphrase, key_file };
    let view: DeviceView = client.send(Method::POST, &format!("/devices/{}/power-on", view.text("name")), &request)?;
    output.result(&view, || format!("{}\n", view.text("uri")))
}

fn said(name: &str, drills: &Drills) -> String {
    format!("{name}: {}\n", drills.said)
}

fn list(drills: &Drills) -> String {
    let mut lines: Vec<String> = drills.drills.iter().map(|drill| format!("{drill}\n")).collect();
    if drills.powered_off {
        lines.insert(0, "power-cut\n".into());
    }
    if lines.is_empty() { "no drill is on\n".into() } else { lines.concat() }
}

pub fn events(args: &Events, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let name = client.attached(&args.device)?.text("name").to_string();
    let events: daemon::api::Events = client.get(&format!("/devices/{name}/events"))?;
    output.result(&events, || {
        let lines = events.events.iter().map(|event| {
            let at = fields::show(Unit::Time, &json!(event.at_ms / 1000));
            format!("{}\n", format!("{at}  {:<15}  {}", event.event, event.what).trim_end())
        });
        lines.collect()
    })
}
