//! The table of devices: how each stands, and whether another may come in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use device::{Place, PowerCut, State};

use super::log::Log;
use super::stand_by::StandBy;
use crate::api::Opener;
use crate::handle::Handle;
use crate::state::{Remembered, RememberedArray, RememberedCache, RememberedMove, StateFile};
use crate::{Failure, Target};

/// The table.
pub(super) struct Table {
    pub devices: BTreeMap<String, Entry>,
    pub state: StateFile,
    /// Whether the devices to attach at start have been tried.
    pub ready: bool,
    /// Whether the service is on its way out.
    pub closing: bool,
}

pub(super) struct Entry {
    pub target: Target,
    pub read_only: bool,
    pub key: Key,
    pub witness: Option<PathBuf>,
    pub phase: Phase,
    pub log: Arc<Log>,
    /// Where its objects lie, where it is a device on objects.
    pub store: Option<Place>,
}

/// How a device stands.
pub(super) enum Standing<'a> {
    Attaching,
    Attached(&'a Handle),
    /// A drill cut its power.
    PoweredOff(&'a PowerCut),
    Detaching,
    Erasing,
    Failed(&'a Failure),
    /// Another host has it.
    StandsBy(&'a StandBy),
}

impl Entry {
    /// How it is to be attached when the service starts again.
    pub fn remembered(&self, name: &str) -> Remembered {
        Remembered {
            name: name.into(),
            path: self.target.to_string(),
            read_only: self.read_only,
            key_file: self.key.file.clone(),
            witness: self.witness.clone(),
            erasing: false,
            stand_by: None,
            endpoint: None,
        }
    }

    pub fn standing(&self) -> Standing<'_> {
        match &self.phase {
            Phase::Attaching => Standing::Attaching,
            Phase::Attached(handle) => handle.power_cut().map_or(Standing::Attached(handle), Standing::PoweredOff),
            Phase::Detaching => Standing::Detaching,
            Phase::Erasing => Standing::Erasing,
            Phase::Failed(failure) => Standing::Failed(failure),
            Phase::StandsBy(one) => Standing::StandsBy(one),
        }
    }

    /// In words. How an attached device does its thread says.
    pub fn in_words(&self) -> (State, String) {
        match self.standing() {
            Standing::Attaching => (State::Scanning, "attaching".into()),
            Standing::Attached(_) => (State::Attached, String::new()),
            Standing::PoweredOff(cut) => (State::PoweredOff, format!("a drill has cut its power; {cut}")),
            Standing::Detaching => (State::Detaching, "waiting for outstanding requests".into()),
            Standing::Erasing => (State::Formatting, "being erased".into()),
            Standing::Failed(failure) => (State::Error, failure.to_string()),
            Standing::StandsBy(one) => (State::StandBy, one.in_words()),
        }
    }
}

/// How an encrypted device is opened.
#[derive(Clone, Default)]
pub(super) struct Key {
    /// The file that its key is read from, which may be remembered.
    pub file: Option<PathBuf>,
    /// It was opened with a passphrase, which is kept nowhere.
    pub typed: bool,
}

impl Key {
    /// Of what a request gave.
    pub fn of(opener: Option<&Opener>) -> Key {
        opener.map_or_else(Key::default, |opener| Key {
            file: opener.key_file.clone(),
            typed: opener.passphrase.is_some(),
        })
    }
}

pub(super) enum Phase {
    Attaching,
    Attached(Handle),
    Detaching,
    /// A job erases it.
    Erasing,
    /// It could not be attached at start, for this reason.
    Failed(Failure),
    /// Another host has it, and this one takes it over when that one is gone.
    StandsBy(Arc<StandBy>),
}

impl Table {
    pub fn entry(&mut self, name: &str) -> Result<&mut Entry, Failure> {
        let known: Vec<&str> = self.devices.keys().map(String::as_str).collect();
        let help = match known.as_slice() {
            [] => "nothing is attached; `vsl attach PATH` attaches a device".to_string(),
            known => format!("attached are: {}", known.join(", ")),
        };
        self.devices
            .get_mut(name)
            .ok_or_else(|| Failure::not_found(format!("no attached device is called '{name}'")).help(help))
    }

    /// An array that is remembered.
    pub fn array(&self, name: &str) -> Result<&RememberedArray, Failure> {
        let known: Vec<&str> = self.state.arrays().iter().map(|array| array.name.as_str()).collect();
        let help = match known.as_slice() {
            [] => "there are no arrays; `vsl array create` makes one".to_string(),
            known => format!("arrays are: {}", known.join(", ")),
        };
        let found = self.state.arrays().iter().find(|array| array.name == name);
        found.ok_or_else(|| Failure::not_found(format!("no array is called '{name}'")).help(help))
    }

    /// A cached volume that is remembered.
    pub fn cache(&self, name: &str) -> Result<&RememberedCache, Failure> {
        let known: Vec<&str> = self.state.caches().iter().map(|cache| cache.name.as_str()).collect();
        let help = match known.as_slice() {
            [] => "there are no cached volumes; `vsl cache create` makes one".to_string(),
            known => format!("cached volumes are: {}", known.join(", ")),
        };
        let found = self.state.caches().iter().find(|cache| cache.name == name);
        found.ok_or_else(|| Failure::not_found(format!("no cached volume is called '{name}'")).help(help))
    }

    /// Refuses what an array must not notice on one of its members, a cached volume on its devices, nor a move on either of its.
    pub fn not_a_member(&self, name: &str) -> Result<(), Failure> {
        if let Some(cache) = self.state.cache_of(name) {
            let part = if cache.cache == name { "caches" } else { "stands behind" };
            return Err(Failure::conflict(format!("{name} {part} the volume {}", cache.name))
                .help(format!("ask the volume, or delete it first: `vsl cache delete {}`", cache.name)));
        }
        if let Some(array) = self.state.array_of(name) {
            return Err(Failure::conflict(format!("{name} is a member of the array {}", array.name))
                .help(format!("ask the array, or delete it first: `vsl array delete {}`", array.name)));
        }
        let Some(RememberedMove { device, to, .. }) = self.state.move_of(name) else { return Ok(()) };
        let what = match name == device {
            true => format!("{name} is being moved to {to}"),
            false => format!("{name} is about to take the place of {device}, which is being moved"),
        };
        Err(Failure::conflict(what)
            .help(format!("wait until the move is done, or cancel it: `vsl migrate {device} --cancel`")))
    }

    /// Whether a device is served to clients: members of arrays, those of cached volumes and new devices of moves are not.
    pub fn is_served(&self, name: &str) -> bool {
        self.state.array_of(name).is_none()
            && self.state.cache_of(name).is_none()
            && !self.state.moves().iter().any(|one| one.target == name)
    }

    /// An attached device that belongs to nothing.
    pub fn free(&mut self, name: &str) -> Result<Handle, Failure> {
        self.not_a_member(name)?;
        self.attached(name)
    }

    pub fn attached(&mut self, name: &str) -> Result<Handle, Failure> {
        let entry = self.entry(name)?;
        match entry.standing() {
            Standing::PoweredOff(_) => Err(Failure::conflict(format!("a drill has cut the power of {name}"))
                .help(format!("`vsl drill {name} power-on` switches it on"))),
            Standing::Attached(handle) => Ok(handle.clone()),
            Standing::StandsBy(_) => {
                Err(Failure::conflict(format!("{name} is not attached here: this host stands by for it"))
                    .help("`vsl hosts` shows which host has it"))
            }
            _ => Err(Failure::conflict(format!("{name} is not attached just now")).help("see `vsl status`")),
        }
    }

    /// Whether a device may come in under this name.
    pub fn admit(&mut self, name: &str, target: &Target) -> Result<(), Failure> {
        if self.closing {
            return Err(Failure::conflict("the service is stopping").help("start it again with `vsl up`"));
        }
        // Whoever stands by takes its own place.
        let stands_by = |entry: &Entry| matches!(entry.phase, Phase::StandsBy(_)) && entry.target == *target;
        let taken = |entry: &Entry| !matches!(entry.phase, Phase::Failed(_)) && !stands_by(entry);
        let shares = |entry: &Entry| {
            let (ours, theirs) = (target.paths().unwrap_or_default(), entry.target.paths().unwrap_or_default());
            ours.iter().any(|path| theirs.contains(path))
        };
        if let Some((other, _)) = self.devices.iter().find(|(_, entry)| taken(entry) && shares(entry)) {
            return Err(Failure::conflict(format!("{target}: attached already, as {other}"))
                .help(format!("`vsl detach {other}` detaches it")));
        }
        if let Some(entry) = self.devices.get(name).filter(|entry| taken(entry)) {
            return Err(Failure::conflict(format!("the name '{name}' is taken by {}", entry.target))
                .help("choose another with --name"));
        }
        Ok(())
    }
}
