//! `vsl key`.

use std::path::PathBuf;

use daemon::Failure;
use device::Info;
use serde_json::json;

use super::opener;
use crate::args::{Key, Opener};
use crate::output::Output;

pub fn key(args: &Key, output: Output) -> Result<(), Failure> {
    match args {
        Key::Add { device, opener, new } => {
            let (paths, secret) = opened(device, opener)?;
            let (info, slot) = device::add_key(&paths, &secret, &opener::new(new)?)?;
            told(output, &info, slot, "added")
        }
        Key::Change { device, opener, new } => {
            let (paths, secret) = opened(device, opener)?;
            let (info, slot) = device::change_key(&paths, &secret, &opener::new(new)?)?;
            told(output, &info, slot, "changed")
        }
        Key::Remove { device, opener, slot } => {
            let (paths, secret) = opened(device, opener)?;
            let (info, slot) = device::remove_key(&paths, &secret, *slot)?;
            told(output, &info, slot, "removed")
        }
    }
}

/// A detached device, and what opens it.
fn opened(device: &str, opener: &Opener) -> Result<(Vec<PathBuf>, device::Secret), Failure> {
    let (paths, info) = super::detached(device)?;
    if info.encryption.is_none() {
        return Err(Failure::invalid(format!("{device}: it is not encrypted, so it has no keys"))
            .help("`vsl format --encrypt` makes it so; everything on it is lost"));
    }
    let secret = opener::for_device(device, true, opener)?;
    secret.map(|secret| (paths, secret)).ok_or_else(|| Failure::invalid(format!("{device}: nothing opens it")))
}

fn told(output: Output, info: &Info, slot: usize, what: &str) -> Result<(), Failure> {
    let slots = info.key_slots.clone().unwrap_or_default();
    output.result(&json!({ "slot": slot, "key_slots": slots }), || {
        format!("{what} key slot {slot}; in use now: {}\n", slots.join(", "))
    })
}
