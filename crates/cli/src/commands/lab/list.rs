//! `vsl lab list`.

use daemon::Failure;
use lab::protocol::{from_toml, shipped};
use serde_json::json;

use crate::output::Output;

pub fn list(output: Output) -> Result<(), Failure> {
    let mut protocols = Vec::new();
    for file in shipped() {
        let protocol = from_toml(file.name, file.text).map_err(|error| Failure::failed(error.to_string()))?;
        protocols.push((file.name, protocol));
    }
    let value: Vec<_> = protocols
        .iter()
        .map(|(name, protocol)| {
            json!({
                "name": name,
                "title": protocol.title,
                "description": protocol.description,
                "follows": protocol.follows,
                "devices": protocol.devices,
            })
        })
        .collect();
    output.result(&json!({ "protocols": value }), || {
        let line = |(name, protocol): &(&str, lab::protocol::Protocol)| format!("{name:<28} {}\n", protocol.title);
        protocols.iter().map(line).collect()
    })
}
