//! What the monitor asks of every device, once a second; and how jobs reach one.

use device::{Figures, State, Status};

use super::{Registry, Standing};
use crate::api::Event;
use crate::handle::Handle;

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
    pub attach: u64,
    /// What happened to it, from a number on.
    pub events: Vec<Event>,
}

impl Registry {
    /// Every device; with its events from the number on that `from` gives for its name and attach.
    pub fn seen(&self, from: impl Fn(&str, u64) -> u64) -> Vec<Seen> {
        let table = self.table();
        let seen = table.devices.iter().map(|(name, entry)| {
            let handle = if let Standing::Attached(handle) = entry.standing() { Some(handle.clone()) } else { None };
            let (state, health) = entry.in_words();
            let attach = entry.log.id;
            let from = from(name, attach);
            let events = entry.log.events(from);
            Seen { name: name.clone(), handle, state, health, attach, events }
        });
        seen.collect()
    }

    /// A device's figures of a second, with the words while something is wrong: what they tell is noted, if it is still in the same attach.
    pub fn look(&self, name: &str, attach: u64, figures: &Figures, status: Option<&Status>) {
        let table = self.table();
        if let Some(entry) = table.devices.get(name).filter(|entry| entry.log.id == attach) {
            entry.log.look(figures, status);
        }
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
