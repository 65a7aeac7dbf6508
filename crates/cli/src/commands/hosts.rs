//! `vsl hosts` and `vsl bugreport`.

use std::time::Duration;

use bucket::Store;
use daemon::Failure;
use daemon::api::{FleetDevice, FleetMove, FleetMoveRequest, HostView, NewHost, ObjectsDevice};
use hyper::Method;
use media::object::Anchor;
use serde_json::json;

use super::access::{plain, secret};
use super::opener;
use crate::args::manage::{BugReport, Hosts, HostsDo, HostsMove};
use crate::client::Client;
use crate::output::Output;

/// How often it is looked how far a move is.
const LOOK: Duration = Duration::from_millis(200);

pub fn hosts(args: &Hosts, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    match &args.what {
        None => list(&client, args, output),
        Some(HostsDo::Add { name, address, key_file, certificate }) => {
            let key = secret(key_file.as_deref(), "access key")?;
            let certificate = match certificate {
                Some(file) => Some(std::fs::read_to_string(file).map_err(|error| Failure::io(file, &error))?),
                None => None,
            };
            let new = NewHost { name: name.clone(), address: address.clone(), key, certificate };
            let host: HostView = client.send(Method::POST, "/hosts", &new)?;
            output.result(&host, || format!("added {name}; `vsl hosts` shows in a few seconds whether it answers\n"))
        }
        Some(HostsDo::Remove { name }) => {
            client.send::<()>(Method::DELETE, &format!("/hosts/{}", plain(name)?), &json!({}))?;
            output.result(&json!({ "removed": name }), || format!("removed {name}\n"))
        }
        Some(HostsDo::Move(args)) => move_device(&client, args, output),
    }
}

/// The hosts, and who has which device.
fn list(client: &Client, args: &Hosts, output: Output) -> Result<(), Failure> {
    let hosts: Vec<HostView> = client.get("/hosts")?;
    let mut devices: Vec<FleetDevice> = client.get("/fleet")?;
    if let Some(address) = &args.store {
        devices.extend(below(address, args.endpoint.as_deref(), &devices)?);
    }
    output.result(&json!({ "hosts": hosts, "devices": devices }), || {
        let mut text: String = match hosts.as_slice() {
            [] => "there is no other host; `vsl hosts add NAME ADDRESS` adds one\n".into(),
            hosts => hosts.iter().map(line).collect(),
        };
        if !devices.is_empty() {
            text.push_str("\ndevices on objects:\n");
            text.extend(devices.iter().map(device_line));
        }
        text
    })
}

/// Devices below an address that nobody is known to have.
fn below(
    address: &bucket::Address,
    endpoint: Option<&str>,
    known: &[FleetDevice],
) -> Result<Vec<FleetDevice>, Failure> {
    let failed = |why: String| Failure::invalid(format!("{address}: {why}"));
    let store = Store::open(address, endpoint).map_err(|error| failed(error.to_string()))?;
    let found = store.devices().map_err(|failure| failed(failure.to_string()))?;
    let mut devices = Vec::new();
    for (prefix, bytes) in found {
        let address = address.below(&prefix).to_string();
        if known.iter().any(|one| one.device.address == address) {
            continue;
        }
        let name = prefix.rsplit('/').next().unwrap_or_default().to_owned();
        let endpoint = endpoint.map(str::to_owned);
        let device = ObjectsDevice { name, address, endpoint, ..ObjectsDevice::default() };
        let device = match Anchor::decode(&bytes) {
            Ok(anchor) => {
                let role = if anchor.released { "released" } else { "elsewhere" }.to_owned();
                let health = match anchor.released {
                    true => format!("host `{}` has released it: any host may attach it", anchor.host),
                    false => format!("host `{}` has it, which is not watched", anchor.host),
                };
                let (epoch, lease_s) = (Some(anchor.epoch), Some(anchor.limits.lease_ms / 1000));
                ObjectsDevice { role, epoch, lease_s, health, ..device }
            }
            Err(error) => ObjectsDevice { role: "unknown".into(), health: error.to_string(), ..device },
        };
        devices.push(FleetDevice { host: None, device });
    }
    Ok(devices)
}

fn device_line(one: &FleetDevice) -> String {
    let ObjectsDevice { name, address, role, epoch, health, .. } = &one.device;
    let host = one.host.as_deref().unwrap_or("-");
    let epoch = epoch.map_or(String::new(), |epoch| format!(" {epoch}"));
    format!("{name:<16}  {host:<16}  {:<12}  {address}  {health}\n", format!("{role}{epoch}"))
}

fn move_device(client: &Client, args: &HostsMove, output: Output) -> Result<(), Failure> {
    let (passphrase, key_file) = opener::for_service(&args.device, false, &args.opener)?;
    let request = FleetMoveRequest {
        device: args.device.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        path: args.journal.clone(),
        force: args.force,
        passphrase,
        key_file,
    };
    let mut one: FleetMove = client.send(Method::POST, "/fleet/moves", &request)?;
    let mut said = String::new();
    while one.ended_ms.is_none() {
        if one.state != said {
            said.clone_from(&one.state);
            let what = match said.as_str() {
                "detaching" => format!("{} detaches {}", one.from, one.device),
                "attaching" => format!("{} attaches {}", one.to, one.device),
                _ => format!("{} attaches {} again", one.from, one.device),
            };
            output.note(&what);
        }
        std::thread::sleep(LOOK);
        one = client.get(&format!("/fleet/moves/{}", one.id))?;
    }
    if let Some(why) = &one.error {
        return Err(Failure::conflict(format!("{}: {why}", one.device)).help("`vsl hosts` shows which host has it"));
    }
    output.result(&one, || {
        format!(
            "moved {} from {} to {}, journal {}; the old journal {} on {} is of no use any more\n",
            one.device, one.from, one.to, one.journal, one.old_journal, one.from
        )
    })
}

fn line(host: &HostView) -> String {
    let count = |count: Option<u64>| count.map_or("?".into(), |count| count.to_string());
    let state = match (&host.error, host.reachable) {
        (_, true) => format!(
            "answers; version {}, devices attached: {}, failed: {}, alerts: {}",
            host.version.as_deref().unwrap_or("?"),
            count(host.attached),
            count(host.failed),
            count(host.alerts)
        ),
        (Some(error), false) => format!("does not answer: {error}"),
        (None, false) => "not asked yet".into(),
    };
    format!("{:<16}  {}  {state}\n", host.name, host.address)
}

pub fn bug_report(args: &BugReport, output: Output) -> Result<(), Failure> {
    let report = super::client()?.fetch("/bugreport")?;
    std::fs::write(&args.output, &report).map_err(|error| Failure::io(&args.output, &error))?;
    let value = json!({ "path": args.output, "bytes": report.len() });
    output.result(&value, || format!("wrote {}, {}\n", args.output.display(), size::show(report.len() as u64)))
}
