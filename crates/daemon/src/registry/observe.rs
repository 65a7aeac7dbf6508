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
    /// What happened to it, from a number on.
    pub events: Vec<Event>,
}

impl Registry {
    /// Every device; with its events from the number on that `from` gives for its name.
    pub fn seen(&self, from: impl Fn(&str) -> u64) -> Vec<Seen> {
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
            let from = from(name);
            let mut events = entry.log.events();
            events.retain(|event| event.number >= from);
            Seen { name: name.clone(), handle, state, health, events }
        });
        seen.collect()
    }

    /// The thread of an attached device.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn handle(&self, name: &str) -> Result<Handle, crate::Failure> {
        self.table().attached(name)
    }
}
