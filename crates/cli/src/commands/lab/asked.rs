//! What `vsl lab` is asked for: a protocol, and devices.

use std::path::Path;

use daemon::Failure;
use lab::protocol::{self, Protocol};
use lab::run::Options;

use crate::args::lab::Choice;

/// The protocol of a name or a file, with its text.
pub fn protocol(name: &str) -> Result<(Protocol, String), Failure> {
    if let Some(found) = protocol::find(name) {
        let (protocol, text) = found.map_err(|error| Failure::failed(error.to_string()))?;
        return Ok((protocol, text.into()));
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(Failure::invalid(format!("'{name}' is neither a protocol's name nor a file"))
            .help("`vsl lab list` lists the names"));
    }
    protocol::read(path).map_err(|error| Failure::invalid(error.to_string()))
}

/// What is asked of it. Devices are data sheets.
pub fn options(choice: &Choice, protocol: &Protocol) -> Options {
    let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    Options {
        target: "virtual".into(),
        devices: if choice.device.is_empty() { protocol.devices.clone() } else { choice.device.clone() },
        quick: !choice.full,
        formats: some(&choice.format),
        arrays: some(&choice.array),
        tests: choice.test.clone(),
        repeat: choice.repeat,
        seed: choice.seed,
        scale: choice.scale,
        size: None,
        engine: None,
        buffered: false,
    }
}
