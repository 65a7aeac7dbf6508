//! `vsl objects`, and what other commands have to do with object stores.

use std::collections::BTreeSet;

use bucket::{Address, Store};
use daemon::Failure;
use device::Place;
use media::object::anchor::ANCHOR_NAME;
use media::object::{Anchor, Failure as StoreFailure};
use serde_json::json;

use crate::args::Objects;
use crate::output::Output;

/// A place as the device's crate has it.
pub fn place(address: &Address, endpoint: Option<&str>) -> Place {
    Place { url: address.to_string(), endpoint: endpoint.map(str::to_owned) }
}

pub fn objects(args: &Objects, output: Output) -> Result<(), Failure> {
    let address = &args.address;
    let failed = |why: String| Failure::invalid(format!("{address}: {why}"));
    let store = Store::open(address, args.endpoint.as_deref()).map_err(|error| failed(error.to_string()))?;
    let bytes = store.anchor().map_err(|failure| match failure {
        StoreFailure::Missing => failed("there is no device here".into()),
        failure => failed(failure.to_string()),
    })?;
    let anchor = Anchor::decode(&bytes).map_err(|error| failed(format!("the object `{ANCHOR_NAME}`: {error}")))?;
    let names = store.list().map_err(|failure| failed(failure.to_string()))?;
    let named: BTreeSet<String> = anchor.objects().map(|id| id.name(&anchor.device)).collect();
    let waiting: BTreeSet<String> = anchor.garbage.iter().map(|garbage| garbage.id.name(&anchor.device)).collect();
    let there: BTreeSet<String> = names.into_iter().collect();
    // The list may be older than the anchor or newer: what is said of it is said as of now.
    let missing: Vec<&String> = named.difference(&there).collect();
    let known = |name: &&String| named.contains(*name) || waiting.contains(*name) || *name == ANCHOR_NAME;
    let orphans: Vec<&String> = there.iter().filter(|name| !known(name)).collect();
    let stored: u64 = anchor.lebs.iter().map(|entry| u64::from(entry.bytes())).sum();
    let value = json!({
        "address": address.to_string(),
        "owner": anchor.host,
        "owner_epoch": anchor.epoch,
        "released": anchor.released,
        "commit": anchor.commit,
        "written_ms": anchor.written_ms,
        "mark": anchor.mark,
        "ahead_bytes": anchor.ahead_bytes,
        "stored_bytes": stored,
        "objects": named.len(),
        "waiting": waiting.len(),
        "missing": missing,
        "orphans": orphans,
    });
    output.result(&value, || {
        let owner = if anchor.released { "released by" } else { "owned by" };
        let mut text = format!(
            "{address}: {} in {} objects, {owner} {} as owner {}, commit {}; {} wait for their deletion\n",
            size::show(stored),
            named.len(),
            anchor.host,
            anchor.epoch,
            anchor.commit,
            waiting.len(),
        );
        missing.iter().for_each(|name| text.push_str(&format!("missing: {name}\n")));
        orphans.iter().for_each(|name| text.push_str(&format!("orphan: {name}\n")));
        text
    })
}
