//! `vsl key`: of a detached device on its files, of an attached one through the service.

use std::path::PathBuf;

use daemon::Failure;
use daemon::api::{DeviceView, KeyRequest, KeySlots, Opener as ByService, RemoveKeyRequest};
use device::Info;
use hyper::Method;
use serde_json::json;

use super::opener;
use crate::args::{Key, NewOpener, Opener};
use crate::client::Client;
use crate::output::Output;

pub fn key(args: &Key, output: Output) -> Result<(), Failure> {
    let (device, opener) = match args {
        Key::Add { device, opener, .. } | Key::Change { device, opener, .. } | Key::Remove { device, opener, .. } => {
            (device, opener)
        }
    };
    let client = super::client()?;
    if let Some(view) = super::attached(&client, device) {
        return by_service(&client, &view, args, output);
    }
    let (paths, secret) = opened(device, opener)?;
    match args {
        Key::Add { new, .. } => {
            let (info, slot) = device::add_key(&paths, &secret, &opener::new(new)?)?;
            told(output, &slots(&info, slot), "added")
        }
        Key::Change { new, .. } => {
            let (info, slot) = device::change_key(&paths, &secret, &opener::new(new)?)?;
            told(output, &slots(&info, slot), "changed")
        }
        Key::Remove { slot, .. } => {
            let (info, slot) = device::remove_key(&paths, &secret, *slot)?;
            told(output, &slots(&info, slot), "removed")
        }
    }
}

/// A detached device, and what opens it.
fn opened(device: &str, opener: &Opener) -> Result<(Vec<PathBuf>, device::Secret), Failure> {
    let (paths, info) = super::detached(device)?;
    if info.encryption.is_none() {
        return Err(not_encrypted(device));
    }
    let secret = opener::for_device(device, true, opener)?;
    secret.map(|secret| (paths, secret)).ok_or_else(|| Failure::invalid(format!("{device}: nothing opens it")))
}

/// An attached device goes on serving meanwhile.
fn by_service(client: &Client, view: &DeviceView, args: &Key, output: Output) -> Result<(), Failure> {
    let name = view.text("name");
    if view.is_known() && view.text("encryption").is_empty() {
        return Err(not_encrypted(name));
    }
    let path = format!("/devices/{name}/keys");
    let with = |opener: &Opener| -> Result<Option<ByService>, Failure> {
        let (passphrase, key_file) = opener::for_service(name, true, opener)?;
        Ok((passphrase.is_some() || key_file.is_some()).then_some(ByService { passphrase, key_file }))
    };
    let request = |opener: &Opener, new: &NewOpener| -> Result<KeyRequest, Failure> {
        Ok(KeyRequest { with: with(opener)?, new: opener::new_for_service(new)? })
    };
    match args {
        Key::Add { opener, new, .. } => {
            told(output, &client.send(Method::POST, &path, &request(opener, new)?)?, "added")
        }
        Key::Change { opener, new, .. } => {
            told(output, &client.send(Method::PUT, &path, &request(opener, new)?)?, "changed")
        }
        Key::Remove { opener, slot, .. } => {
            let request = RemoveKeyRequest { with: with(opener)?, slot: *slot };
            told(output, &client.send(Method::POST, &format!("{path}/remove"), &request)?, "removed")
        }
    }
}

fn not_encrypted(device: &str) -> Failure {
    Failure::invalid(format!("{device}: it is not encrypted, so it has no keys"))
        .help("`vsl format --encrypt` makes it so; everything on it is lost")
}

fn slots(info: &Info, slot: usize) -> KeySlots {
    KeySlots { slot, key_slots: info.key_slots.clone().unwrap_or_default() }
}

fn told(output: Output, slots: &KeySlots, what: &str) -> Result<(), Failure> {
    let KeySlots { slot, key_slots } = slots;
    output.result(&json!({ "slot": slot, "key_slots": key_slots }), || {
        format!("{what} key slot {slot}; in use now: {}\n", key_slots.join(", "))
    })
}
