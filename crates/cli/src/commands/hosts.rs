//! `vsl hosts` and `vsl bugreport`.

use daemon::Failure;
use daemon::api::{HostView, NewHost};
use hyper::Method;
use serde_json::json;

use super::access::{plain, secret};
use crate::args::manage::{BugReport, Hosts, HostsDo};
use crate::output::Output;

pub fn hosts(args: &Hosts, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    match &args.what {
        None => {
            let hosts: Vec<HostView> = client.get("/hosts")?;
            output.result(&hosts, || match hosts.as_slice() {
                [] => "there is no other host; `vsl hosts add NAME ADDRESS` adds one\n".into(),
                hosts => hosts.iter().map(line).collect(),
            })
        }
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
    }
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
