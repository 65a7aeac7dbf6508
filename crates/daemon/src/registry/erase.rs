//! Erasing a device: detached, erased by a job, attached again under its name.

use std::path::PathBuf;
use std::sync::Arc;

use device::{AttachOptions, EraseLevel, Erased};

use super::log::Log;
use super::table::{Entry, Key};
use super::{Phase, Registry, Standing};
use crate::api::{Certificate, EraseRequest, Opener};
use crate::handle::Refused;
use crate::{Failure, Target};

/// An erase that may begin: the device is out of service.
pub struct Erasure {
    name: String,
    target: Target,
    paths: Vec<PathBuf>,
    level: EraseLevel,
    opener: Option<Opener>,
}

impl Registry {
    /// Takes a device out of service to be erased: one that is attached and has no clients, or one whose erase was cut.
    ///
    /// # Errors
    /// It is not confirmed, has clients, lives in memory, or cannot be erased so: then it is attached as it was.
    pub fn begin_erase(&self, name: &str, request: &EraseRequest) -> Result<Erasure, Failure> {
        if request.confirm != name {
            return Err(Failure::invalid(format!("this would destroy everything on {name}, and is not confirmed"))
                .help("send the device's name as confirm if that is meant"));
        }
        let level = EraseLevel::from(request.level);
        // What is to open it afterwards is looked at before anything is destroyed.
        let secret = request.encrypt.as_ref().map(Opener::secret).transpose()?;
        let (target, attached) = {
            let mut table = self.table();
            table.not_a_member(name)?;
            let entry = table.entry(name)?;
            let attached = match entry.standing() {
                Standing::Attached(handle) => Some(handle.clone()),
                Standing::Failed(_) => None,
                _ => {
                    // It says what is in the way.
                    table.attached(name)?;
                    return Err(Failure::conflict(format!("{name} is not ready to be erased")).help("try again"));
                }
            };
            if entry.read_only && attached.is_some() {
                return Err(Failure::conflict(format!("{name} is attached to be read only"))
                    .help("attach it without that, then erase it"));
            }
            (entry.target.clone(), attached)
        };
        let Some(paths) = target.paths().map(<[_]>::to_vec) else {
            return Err(Failure::invalid(format!("{name} lives in memory")).help("detach it: nothing of it stays"));
        };
        if let Some(handle) = attached {
            let info = handle.info()?;
            if level == EraseLevel::Crypto && info.encryption.is_none() {
                return Err(Failure::invalid(format!("{name} is not encrypted, so there is no key to destroy"))
                    .help("choose the level clear or purge"));
            }
            if secret.is_some() && info.emulation.is_some() {
                return Err(Failure::invalid(
                    "an emulated device is not encrypted: what a card does is measured without",
                )
                .help("leave encrypt out"));
            }
        }
        match self.let_go(name, false) {
            Err(Refused::StillAttached(failure)) => return Err(failure),
            // What it held goes anyway.
            Err(Refused::Gone(failure)) => tracing::warn!(device = name, "before an erase: {failure}"),
            Ok(()) => {}
        }
        let mut table = self.table();
        table.admit(name, &target)?;
        let log: Arc<Log> = Arc::default();
        log.note("erase-begins", level.name());
        let (key, read_only) = (Key::default(), false);
        let (witness, phase) = (None, Phase::Erasing);
        let store = None;
        let entry = Entry { target: target.clone(), read_only, key, witness, phase, log, store };
        table.devices.insert(name.into(), entry);
        if let Err(failure) = table.state.erase_begins(name, target.to_string()) {
            // It is erased all the same; if it is cut, it is `vsl sure-erase` that goes on.
            tracing::warn!(device = name, "{failure}");
        }
        drop(table);
        Ok(Erasure { name: name.into(), target, paths, level, opener: request.encrypt.clone() })
    }

    /// Erases it, and attaches the empty device that is left. `watch` is told how far it is, and ends it early with `false`: then it is no device until
    /// the erase is run again.
    ///
    /// # Errors
    /// It was ended early, its store failed, or what is left cannot be attached.
    pub fn erase(&self, erasure: &Erasure, watch: &mut dyn FnMut(Erased) -> bool) -> Result<Certificate, Failure> {
        let Erasure { name, target, paths, level, opener } = erasure;
        self.forget_staged(paths);
        let erased = opener.as_ref().map(Opener::secret).transpose().and_then(|secret| {
            let (_, certificate) = device::sure_erase(paths, *level, secret.as_ref(), watch)?;
            Ok((secret, certificate))
        });
        let (secret, certificate) = match erased {
            Ok(erased) => erased,
            Err(failure) => {
                self.erase_ended(name, Some(failure.clone()));
                return Err(failure);
            }
        };
        tracing::info!(device = name, level = level.name(), "erased");
        self.forget_schedule(&certificate.erased_uuid.to_string());
        self.erase_ended(name, None);
        self.forget_erase(name);
        let key = Key::of(opener.as_ref());
        let options = AttachOptions { secret, ..AttachOptions::default() };
        self.attach_target(name, target.clone(), options, key.clone())?;
        self.remember_key(name, key)?;
        self.table().entry(name)?.log.note("erased", level.name());
        Ok(certificate.into())
    }

    /// Nothing that a killed process left of a device may outlive what it held.
    pub(super) fn forget_staged(&self, paths: &[PathBuf]) {
        let (Some(directory), Some(Ok(info))) = (&self.staging, paths.first().map(|path| device::inspect(path))) else {
            return;
        };
        if let Err(error) = device::forget_staged(directory, &info.uuid) {
            tracing::error!("{}: {error}", device::staging_file(directory, &info.uuid).display());
        }
    }

    /// An erase that was begun is not carried out after all.
    pub fn give_up_erase(&self, erasure: &Erasure, failure: &Failure) {
        self.erase_ended(&erasure.name, Some(failure.clone()));
        self.forget_erase(&erasure.name);
    }

    /// Nothing is left of it that would have to go on when the service starts.
    pub(super) fn forget_erase(&self, name: &str) {
        if let Err(failure) = self.table().state.erase_ends(name) {
            tracing::warn!(device = name, "{failure}");
        }
    }

    fn erase_ended(&self, name: &str, failure: Option<Failure>) {
        let mut table = self.table();
        match (table.devices.get_mut(name), failure) {
            (Some(entry), Some(failure)) => {
                entry.log.note("erase-cut", failure.to_string());
                entry.phase = Phase::Failed(failure);
            }
            (Some(_), None) => drop(table.devices.remove(name)),
            (None, _) => {}
        }
        drop(table);
        self.settled.notify_all();
    }
}
