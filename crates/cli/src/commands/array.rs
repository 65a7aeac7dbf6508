//! `vsl array`.

use std::fmt::Write;

use daemon::Failure;
use daemon::api::{
    AddMemberRequest, ArrayRequest, ArrayView, Arrays, AssembleRequest, DeleteArrayRequest, ReplaceRequest,
};
use hyper::Method;

use crate::args::array::{Array, What};
use crate::confirm;
use crate::output::Output;

pub fn array(args: &Array, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let shown = |view: &ArrayView| output.result(view, || words(view));
    match &args.what {
        What::List => {
            let listed: Arrays = client.get("/arrays")?;
            output.result(&listed, || table(&listed))
        }
        What::Status { name } => shown(&client.get(&format!("/arrays/{name}"))?),
        What::Create { name, level, stripe, force, members } => {
            let request = ArrayRequest {
                name: name.clone(),
                level: level.name().into(),
                members: members.clone(),
                stripe_bytes: *stripe,
                force: *force,
            };
            shown(&client.send(Method::POST, "/arrays", &request)?)
        }
        What::Assemble { name, degraded, force } => {
            let request = AssembleRequest { degraded: *degraded, force: *force };
            shown(&client.send(Method::POST, &format!("/arrays/{name}/assemble"), &request)?)
        }
        What::Add { name, device, force } => {
            let request = AddMemberRequest { device: device.clone(), force: *force };
            shown(&client.send(Method::POST, &format!("/arrays/{name}/add"), &request)?)
        }
        What::Replace { name, member, with, force } => {
            let request = ReplaceRequest { member: member.clone(), with: with.clone(), force: *force };
            shown(&client.send(Method::POST, &format!("/arrays/{name}/replace"), &request)?)
        }
        What::Delete { name, force, yes } => {
            if !yes {
                confirm::ask_before(&format!("delete the array {name}"), "Delete it? Type yes:", "yes")?;
            }
            let request = DeleteArrayRequest { confirm: name.clone(), force: *force };
            let left: Arrays = client.send(Method::POST, &format!("/arrays/{name}/delete"), &request)?;
            output.result(&left, || format!("deleted {name}\n"))
        }
    }
}

fn words(view: &ArrayView) -> String {
    let mut text = format!("{}: {}, {}\n", view.name, view.level, view.health);
    // A string takes whatever is written to it.
    if let Some(bytes) = view.bytes {
        let _ = writeln!(text, "  capacity   {}", size::show(bytes));
    }
    if let Some(bytes) = view.stripe_bytes {
        let _ = writeln!(text, "  stripe     {}", size::show(bytes));
    }
    if let Some(bytes) = view.max_request_bytes {
        let _ = writeln!(text, "  untorn     writes of up to {}", size::show(u64::from(bytes)));
    }
    if let Some(percent) = view.resync_percent {
        let _ = writeln!(text, "  copying    {percent} % done, {} copied", size::short(view.copied_bytes));
    }
    if let Some(percent) = view.reshape_percent {
        let _ = writeln!(text, "  reshaping  {percent} % done, {} copied", size::short(view.copied_bytes));
    }
    if view.repaired_bytes > 0 {
        let _ = writeln!(text, "  repaired   {}, which a copy could not read", size::short(view.repaired_bytes));
    }
    for member in &view.members {
        let _ = writeln!(text, "  {:<10} {}", member.state, member.name);
    }
    text
}

fn table(listed: &Arrays) -> String {
    let mut text = format!("{:<20} {:<8} {:<12} {:>9}  {}\n", "name", "level", "state", "capacity", "members");
    for view in &listed.arrays {
        let members: Vec<&str> = view.members.iter().map(|member| member.name.as_str()).collect();
        let bytes = view.bytes.map_or_else(|| "-".into(), size::short);
        // A string takes whatever is written to it.
        let _ =
            writeln!(text, "{:<20} {:<8} {:<12} {bytes:>9}  {}", view.name, view.level, view.state, members.join(", "));
    }
    text
}
