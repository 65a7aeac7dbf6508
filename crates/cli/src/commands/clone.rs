//! `vsl clone`.

use std::fmt::Write;

use daemon::Failure;
use daemon::api::{CloneRequest, CloneView, Clones, PromoteRequest};
use daemon::fields;
use hyper::Method;
use serde_json::json;
use telemetry::Unit;

use crate::args::clone::{Clone, Named, What};
use crate::confirm;
use crate::output::Output;

pub fn clone(args: &Clone, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let path = |device: &str| Ok::<_, Failure>(format!("/devices/{}/clones", client.attached(device)?.text("name")));
    let of = |named: &Named| Ok::<_, Failure>(format!("{}/{}", path(&named.device)?, named.name));
    match &args.what {
        What::List { device } => {
            let listed: Clones = client.get(&path(device)?)?;
            output.result(&listed, || table(&listed))
        }
        What::Create { device, snapshot, name } => {
            let request = CloneRequest { name: name.clone(), snapshot: snapshot.clone() };
            let made: CloneView = client.send(Method::POST, &path(device)?, &request)?;
            output.result(&made, || format!("made {name}\n"))
        }
        What::Delete(named) => {
            let listed: Clones = client.send(Method::DELETE, &of(named)?, &())?;
            output.result(&listed, || format!("deleted {}\n", named.name))
        }
        What::Promote { which, yes } => {
            let device = client.attached(&which.device)?.text("name").to_string();
            if !yes {
                let deed = format!("have {device} hold what its clone {} does", which.name);
                confirm::ask_before(&deed, "Promote it? Type yes:", "yes")?;
            }
            let request = PromoteRequest { confirm: device };
            let listed: Clones = client.send(Method::POST, &format!("{}/promote", of(which)?), &request)?;
            output.result(&listed, || format!("promoted {}\n", which.name))
        }
    }
}

fn table(listed: &Clones) -> String {
    let mut text = format!("{:<24} {:<24} {:<20} {:>9}\n", "name", "of", "made", "own");
    for CloneView { name, snapshot, created, own_bytes } in &listed.clones {
        let made = fields::show(Unit::Time, &json!(created));
        // A string takes whatever is written to it.
        let _ = writeln!(text, "{name:<24} {snapshot:<24} {made:<20} {:>9}", size::short(*own_bytes));
    }
    text
}
