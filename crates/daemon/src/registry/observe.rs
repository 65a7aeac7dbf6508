//! What the monitor asks of every device, once a second.

use device::State;

use super::{Phase, Registry};
use crate::api::Event;
use crate::exports::Handle;

/// A device as the monitor sees it.
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Its thread, where it is attached.
    pub handle: Option<Handle>,
    /// What it is doing, where it is not.
    pub state: State,
    /// In words.
    pub health: String,
    /// Which attach it is: another one begins to number its events anew.
    pub attach: usize,
    /// What happened to it, from a number on.
    pub events: Vec<Event>,
}

impl Registry {
    /// Every device; with its events from the number on that `from` gives for its name and attach.
    pub fn seen(&self, from: impl Fn(&str, usize) -> u64) -> Vec<Seen> {
        let table = self.table();
        let seen = table.devices.iter().map(|(name, entry)| {
            let (handle, state, health) = match &entry.phase {
                Phase::Attaching => (None, State::Scanning, "attaching".to_string()),
                Phase::Attached(_) if entry.power_cut().is_some() => {
                    (None, State::PoweredOff, "a drill has cut its power".into())
                }
                Phase::Attached(handle) => (Some(handle.clone()), State::Attached, String::new()),
                Phase::Detaching => (None, State::Detaching, "waiting for outstanding requests".into()),
                Phase::Failed(failure) => (None, State::Error, failure.to_string()),
            };
            let attach = std::sync::Arc::as_ptr(&entry.log) as usize;
            let from = from(name, attach);
            let mut events = entry.log.events();
            events.retain(|event| event.number >= from);
            Seen { name: name.clone(), handle, state, health, attach, events }
        });
        seen.collect()
    }

    /// The Unix socket of the NBD server, for a client of our own.
    ///
    /// # Errors
    /// It takes clients with TLS only.
    pub fn nbd_socket(&self) -> Result<std::path::PathBuf, crate::Failure> {
        self.exports.plain_socket().map(Into::into).ok_or_else(|| {
            crate::Failure::conflict("NBD clients need TLS here, which the demo load does not speak")
                .help("start the service with --tls on instead of --tls require")
        })
    }

    /// The thread of an attached device.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn handle(&self, name: &str) -> Result<Handle, crate::Failure> {
        self.table().attached(name)
    }
}
