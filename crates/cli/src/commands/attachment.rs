//! `vsl attach` and `vsl detach`.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use daemon::api::{AttachRequest, DetachRequest, DeviceView, FromStore};
use daemon::{Failure, Target};
use hyper::Method;
use indicatif::ProgressBar;
use serde_json::json;

use super::opener;
use crate::args::{Attach, Detach};
use crate::output::Output;

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

pub fn attach(args: &Attach, output: Output) -> Result<(), Failure> {
    let devices = by_device(&args.paths);
    if args.name.is_some() && devices.len() > 1 {
        return Err(Failure::invalid("--name is for one device, not for several").help("attach them one by one"));
    }
    if args.witness.is_some() && devices.len() > 1 {
        return Err(Failure::invalid("--witness is for one device, not for several").help("attach them one by one"));
    }
    let witness =
        args.witness.as_deref().map(|path| std::path::absolute(path).map_err(|error| Failure::io(path, &error)));
    let witness = witness.transpose()?;
    let client = super::client()?;
    if args.objects.is_some() && devices.len() > 1 {
        return Err(Failure::invalid("a device from an object store has one journal").help("name one new file"));
    }
    let objects = args.objects.as_ref().map(|address| FromStore {
        address: address.to_string(),
        endpoint: args.endpoint.clone(),
        take_over: args.take_over,
        stand_by: args.stand_by,
    });
    let mut views = Vec::new();
    for path in &devices {
        let target = Target::parse(path)?;
        let target = if objects.is_some() { target.absolute_new()? } else { target.absolute()? };
        let encrypted = target.paths().is_some_and(opener::is_encrypted);
        let (passphrase, key_file) = opener::for_service(path, encrypted, &args.opener)?;
        let forgotten = passphrase.is_some() && !args.once;
        let request = AttachRequest {
            path: target.to_string(),
            name: args.name.clone(),
            read_only: args.read_only,
            remember: !args.once && target.paths().is_some(),
            degraded: args.degraded,
            new_identity: args.new_identity,
            passphrase,
            key_file,
            witness: witness.clone(),
            objects: objects.clone(),
            lease_seconds: args.lease.and_then(|lease| u32::try_from(lease).ok()),
        };
        let view: DeviceView =
            waiting(output, &format!("attaching {path}"), || client.send(Method::POST, "/devices", &request))?;
        output.note(&attached(&view));
        if forgotten {
            output.note(
                "it will not be attached by itself when the service starts again: its passphrase is kept nowhere",
            );
        }
        views.push(view);
    }
    output.result(&json!({ "devices": views }), || {
        let addresses = views.iter().flat_map(|view| [view.text("uri"), view.text("nvme_command")]);
        addresses.filter(|address| !address.is_empty()).map(|address| format!("{address}\n")).collect()
    })
}

/// Puts the files of one device together, with commas in between. One that cannot be read goes with them if there is one device
/// only that it can belong to.
fn by_device(paths: &[String]) -> Vec<String> {
    let mut devices: Vec<(Option<device::Info>, String)> = Vec::new();
    let mut unreadable: Vec<&String> = Vec::new();
    for path in paths {
        match device::inspect(Path::new(path)) {
            Ok(info) if info.files > 1 => {
                let known =
                    |known: &Option<device::Info>| known.as_ref().is_some_and(|known| known.is_same_device(&info));
                match devices.iter_mut().find(|(of, _)| known(of)) {
                    Some((_, together)) => *together = format!("{together},{path}"),
                    None => devices.push((Some(info), path.clone())),
                }
            }
            Ok(_) => devices.push((None, path.clone())),
            Err(_) => unreadable.push(path),
        }
    }
    match devices.as_mut_slice() {
        [(Some(_), together)] => unreadable.into_iter().for_each(|path| *together = format!("{together},{path}")),
        _ => devices.extend(unreadable.into_iter().map(|path| (None, path.clone()))),
    }
    devices.into_iter().map(|(_, paths)| paths).collect()
}

fn attached(view: &DeviceView) -> String {
    if view.text("state") == device::State::StandBy.name() {
        return format!("{} {}; `vsl detach {0}` ends that", view.text("name"), view.text("health"));
    }
    let on = |field: &str| view.field(field) == Some(true);
    let (name, health) = (view.text("name"), view.text("health"));
    let capacity = view.field("bytes").map(size::show).unwrap_or_default();
    let read_only = if on("read_only") { ", read-only" } else { "" };
    let drills = if on("drill_device") { ", a drill device: faults may be put on it with `vsl drill`" } else { "" };
    let lost: Vec<u32> = view.field("lost_dies").unwrap_or_default();
    let trouble = match on("store_full") || !lost.is_empty() {
        true => format!("\n{health}"),
        false => String::new(),
    };
    // Why it lacks dies, and what restores them; a store without room comes first.
    let set_aside: Vec<String> = view.field("set_aside").filter(|_| !lost.is_empty()).unwrap_or_default();
    let why = set_aside.iter().map(|why| format!("\n{why}"));
    let cure = lost.iter().map(|die| format!("\nrestore it with: vsl rebuild {name} {die} --onto FILE"));
    let cure: String = why.chain(cure).filter(|_| !on("store_full")).collect();
    format!("attached {name}: {capacity}{read_only}{drills}{trouble}{cure}")
}

pub fn detach(args: &Detach, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let mut names = Vec::new();
    for device in &args.devices {
        let name = client.attached(device)?.text("name").to_string();
        let request = DetachRequest { force: args.force.force };
        let what = format!("detaching {name}: waiting for outstanding requests");
        waiting(output, &what, || client.send::<()>(Method::POST, &format!("/devices/{name}/detach"), &request))?;
        output.note(&format!("detached {name}"));
        names.push(name);
    }
    output.result(&json!({ "detached": names }), String::new)
}

/// Shows what is waited for, on a terminal only.
pub fn waiting<T>(output: Output, what: &str, work: impl FnOnce() -> T) -> T {
    if output.json || !std::io::stderr().is_terminal() {
        return work();
    }
    let spinner = ProgressBar::new_spinner().with_message(what.to_string());
    spinner.enable_steady_tick(TICK);
    let result = work();
    spinner.finish_and_clear();
    result
}
