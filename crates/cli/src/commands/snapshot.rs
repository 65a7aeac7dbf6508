//! `vsl snapshot`.

use std::fmt::Write;

use daemon::Failure;
use daemon::api::{Diff, RollBackRequest, Schedule, SnapshotPatch, SnapshotRequest, SnapshotView, Snapshots};
use daemon::fields;
use hyper::Method;
use serde_json::json;
use telemetry::Unit;

use crate::args::snapshot::{Named, Snapshot, What};
use crate::client::Client;
use crate::confirm;
use crate::freeze::{self, Frozen};
use crate::output::Output;

pub fn snapshot(args: &Snapshot, output: Output) -> Result<(), Failure> {
    if let What::Frozen { target } = &args.what {
        return freeze::keep(target);
    }
    let client = super::client()?;
    let path = |device: &str| Ok::<_, Failure>(format!("/devices/{}/snapshots", client.attached(device)?.text("name")));
    let of = |named: &Named| Ok::<_, Failure>(format!("{}/{}", path(&named.device)?, named.name));
    match &args.what {
        What::List { device } => {
            let listed: Snapshots = client.get(&path(device)?)?;
            output.result(&listed, || table(&listed))
        }
        What::Create { which: Named { device, name }, freeze } => {
            let path = path(device)?;
            let frozen = freeze.as_deref().map(Frozen::begin).transpose()?;
            let request = SnapshotRequest { name: name.clone() };
            let made = client.send::<SnapshotView>(Method::POST, &path, &request);
            let in_time = frozen.map_or(Ok(true), Frozen::end);
            let made = made?;
            if let (false, Some(target)) = (in_time?, freeze) {
                // It is not what was asked for.
                client.send::<Snapshots>(Method::DELETE, &format!("{path}/{name}"), &())?;
                return Err(freeze::late(target));
            }
            output.result(&made, || format!("made {name}\n"))
        }
        What::Frozen { .. } => Ok(()),
        What::Delete(named) => {
            let listed = client.send(Method::DELETE, &of(named)?, &())?;
            told(output, &listed, &named.name, "deleted")
        }
        What::Rename { which, new } => {
            let patch = SnapshotPatch { name: Some(new.clone()), held: None };
            let listed = client.send(Method::PATCH, &of(which)?, &patch)?;
            told(output, &listed, new, "named")
        }
        What::Hold(named) => hold(&client, &of(named)?, named, true, output),
        What::Release(named) => hold(&client, &of(named)?, named, false, output),
        What::Rollback { which, delete_newer, yes } => {
            let device = client.attached(&which.device)?.text("name").to_string();
            if !yes {
                let deed = format!("have {device} hold again what the snapshot {} shows", which.name);
                confirm::ask_before(&deed, "Roll it back? Type yes:", "yes")?;
            }
            let request = RollBackRequest { confirm: device, delete_newer: *delete_newer };
            let listed = client.send(Method::POST, &format!("{}/roll-back", of(which)?), &request)?;
            told(output, &listed, &which.name, "rolled back to")
        }
        What::Schedule { device, hourly: None, daily: None, weekly: None, off: false } => {
            let listed: Snapshots = client.get(&path(device)?)?;
            output.result(&listed.schedule, || scheduled(&listed))
        }
        What::Schedule { device, hourly, daily, weekly, .. } => {
            let count = |option: &Option<u32>| option.unwrap_or(0);
            let keep = Schedule { hourly: count(hourly), daily: count(daily), weekly: count(weekly) };
            // Its sibling, since any name may be that of a snapshot.
            let path = path(device)?.trim_end_matches('s').to_owned() + "-schedule";
            let listed: Snapshots = client.send(Method::PUT, &path, &keep)?;
            output.result(&listed.schedule, || scheduled(&listed))
        }
        What::Diff { which, other } => diff(&client, &of(which)?, other.as_deref(), output),
    }
}

fn hold(client: &Client, path: &str, named: &Named, held: bool, output: Output) -> Result<(), Failure> {
    let listed = client.send(Method::PATCH, path, &SnapshotPatch { name: None, held: Some(held) })?;
    told(output, &listed, &named.name, if held { "held" } else { "released" })
}

fn told(output: Output, listed: &Snapshots, name: &str, what: &str) -> Result<(), Failure> {
    output.result(listed, || format!("{what} {name}\n"))
}

fn table(listed: &Snapshots) -> String {
    let size = |bytes: u64| size::short(bytes);
    let mut text = format!("{:<24} {:<20} {:>9} {:>9}  held\n", "name", "made", "shows", "alone");
    for SnapshotView { name, created, held, mapped_bytes, alone_bytes, clones: _ } in &listed.snapshots {
        let made = fields::show(Unit::Time, &json!(created));
        let held = if *held { "yes" } else { "" };
        let line = format!("{name:<24} {made:<20} {:>9} {:>9}  {held}", size(*mapped_bytes), size(*alone_bytes));
        // A string takes whatever is written to it.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if listed.schedule.is_some() {
        text += &scheduled(listed);
    }
    let (held, room) = (size(listed.held_bytes), size(listed.room_bytes));
    text + &format!("{held} held by snapshots only; room for {room} more\n")
}

fn scheduled(listed: &Snapshots) -> String {
    let Some(schedule) = &listed.schedule else { return "no schedule\n".into() };
    let last = schedule.last.map(|last| format!("; made last: {}", fields::show(Unit::Time, &json!(last))));
    let failure = schedule.failure.as_ref().map(|why| format!("; none since: {why}"));
    format!("schedule: keeps {}{}{}\n", schedule.keep, last.unwrap_or_default(), failure.unwrap_or_default())
}

fn diff(client: &Client, path: &str, other: Option<&str>, output: Output) -> Result<(), Failure> {
    let mut whole = Diff::default();
    let mut from = Some(0);
    while let Some(at) = from {
        // A plus sign would be read as a space.
        let with = other.map(|other| format!("&with={}", other.replace('+', "%2B"))).unwrap_or_default();
        let part: Diff = client.get(&format!("{path}/diff?from={at}{with}"))?;
        whole.block_size_bytes = part.block_size_bytes;
        whole.blocks.extend(part.blocks);
        from = part.next;
    }
    output.result(&whole, || {
        let line = |block: &daemon::api::DiffBlock| {
            format!("{} {} {}\n", block.byte_offset, block.size_bytes, if block.mapped { "data" } else { "zero" })
        };
        whole.blocks.iter().map(line).collect()
    })
}
