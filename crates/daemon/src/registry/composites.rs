//! What arrays and cached volumes have in common: each is in the table like a device, on a thread of its own, beside the devices that it
//! is made of.

use std::sync::Arc;

use super::Registry;
use super::log::Log;
use super::table::{Entry, Key, Phase, Table};
use crate::handle::Handle;
use crate::{Failure, Target};

/// A composite that is about to be served.
pub(super) struct Coming {
    log: Arc<Log>,
    /// What was in its place: one that failed.
    before: Option<Entry>,
}

fn entry(target: Target, phase: Phase, log: Arc<Log>) -> Entry {
    Entry { target, read_only: false, key: Key::default(), witness: None, phase, log, store: None }
}

impl Coming {
    /// Takes a composite in that is not served yet.
    pub fn new(table: &mut Table, name: &str, target: Target) -> Result<Coming, Failure> {
        table.admit(name, &target)?;
        let log: Arc<Log> = Arc::default();
        let coming = entry(target, Phase::Attaching, Arc::clone(&log));
        Ok(Coming { log, before: table.devices.insert(name.to_owned(), coming) })
    }
}

impl Registry {
    /// Serves a composite whose thread has started, or takes it out again. `note` goes into its log: what happened, and in words.
    pub(super) fn serve_composite(
        &self,
        name: &str,
        coming: Coming,
        started: Result<Handle, Failure>,
        (kind, words): (&'static str, String),
    ) -> Result<(), Failure> {
        let started = started.and_then(|handle| match self.exports.add(name, &handle, false) {
            Ok(()) => Ok(handle),
            Err(failure) => {
                // Nobody can reach it, so it has no clients to wait for.
                drop(handle.detach(true));
                Err(failure)
            }
        });
        let first = started.as_ref().ok().and_then(|handle| handle.status().ok());
        let Coming { log, before } = coming;
        let mut table = self.table();
        let result = match started {
            Ok(handle) => {
                if let Some(entry) = table.devices.get_mut(name) {
                    entry.phase = Phase::Attached(handle);
                }
                log.note(kind, words);
                // What happens before the monitor looks is news already.
                first.iter().for_each(|status| log.look(status, Some(status)));
                Ok(())
            }
            Err(failure) => {
                table.devices.remove(name);
                // One that failed before is still one that failed.
                table.devices.extend(before.map(|entry| (name.to_owned(), entry)));
                Err(failure)
            }
        };
        drop(table);
        self.settled.notify_all();
        result
    }

    /// One that is remembered, and could not be served at start.
    pub(super) fn failed_composite(&self, name: String, target: Target, failure: Failure) {
        let failed = entry(target, Phase::Failed(failure), Arc::default());
        self.table().devices.entry(name).or_insert(failed);
    }
}

impl Table {
    /// Devices became parts of a composite that is remembered: they are attached at start, too.
    pub(super) fn remember_parts<'a>(&mut self, names: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
        for name in names {
            let kept = self.entry(name).ok().filter(|entry| entry.target.paths().is_some() && !entry.key.typed);
            if let Some(kept) = kept.map(|entry| entry.remembered(name)) {
                self.state.remember(kept)?;
            }
        }
        Ok(())
    }
}
