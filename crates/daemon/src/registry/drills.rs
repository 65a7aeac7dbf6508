//! Fault drills on attached devices, and the events that tell of them.

use std::sync::Arc;

use device::{AttachOptions, Drill};

use super::log::Log;
use super::{Phase, Registry, Standing, Table, secret};
use crate::Failure;
use crate::api::{DeviceView, Drills, Events, PowerOnRequest};
use crate::handle::Handle;

impl Registry {
    /// The drills that are on.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn drills(&self, name: &str) -> Result<Drills, Failure> {
        if let Some(off) = self.drills_without_power(name)? {
            return Ok(off);
        }
        let handle = self.table().attached(name)?;
        match handle.with_device(|device| device.drills().to_vec()) {
            Ok(drills) => Ok(Drills { said: String::new(), powered_off: false, drills }),
            // The power may have gone just now.
            Err(gone) => self.drills_without_power(name)?.ok_or_else(|| gone.into()),
        }
    }

    fn drills_without_power(&self, name: &str) -> Result<Option<Drills>, Failure> {
        Ok(match self.table().entry(name)?.standing() {
            Standing::PoweredOff(cut) => {
                Some(Drills { said: cut.to_string(), powered_off: true, drills: cut.drills.active().to_vec() })
            }
            _ => None,
        })
    }

    /// Of a failure: it is that the power went just now, where it did.
    pub(super) fn told(&self, name: &str, failure: Failure) -> Failure {
        self.table().attached(name).err().unwrap_or(failure)
    }

    /// Begins a drill.
    ///
    /// # Errors
    /// There is no such device, it is not marked for drills, or does not take this one.
    pub fn drill(&self, name: &str, drill: Drill) -> Result<Drills, Failure> {
        let (handle, log) = self.table().attached_with_log(name)?;
        if matches!(drill, Drill::Rot { .. } | Drill::FailReads { .. }) {
            // What is not on the medium cannot go wrong there; whether it could be put there shows below.
            let _ = handle.flush();
        }
        let cuts_now = matches!(drill, Drill::PowerCut { at_write: None, at_program: None, .. });
        let words = drill.to_string();
        let device = name.to_string();
        let call = move |of: &mut device::Device| of.drill(drill).map_err(|error| Failure::drill(&device, &error));
        let said = handle.ask(call).map_err(|failure| self.told(name, failure))?;
        if cuts_now {
            handle.wait_until_gone();
        } else {
            log.note("drill-begins", format!("{words}: {said}"));
            tracing::info!(device = name, drill = words, "drill begins: {said}");
        }
        Ok(Drills { said, ..self.drills(name)? })
    }

    /// Ends the drills of a name, or `all`.
    ///
    /// # Errors
    /// There is no such device, or no such drill is on.
    pub fn undo_drill(&self, name: &str, drill: &str) -> Result<Drills, Failure> {
        let off = matches!(self.table().entry(name)?.standing(), Standing::PoweredOff(_));
        if off && matches!(drill, "power-cut" | "all") {
            self.power_on(name, &PowerOnRequest::default())?;
            if drill == "power-cut" {
                return Ok(Drills { said: "the power is on".into(), ..self.drills(name)? });
            }
        }
        let (handle, log) = self.table().attached_with_log(name)?;
        let (device, which) = (name.to_string(), drill.to_string());
        let call =
            move |of: &mut device::Device| of.undo_drill(&which).map_err(|error| Failure::drill(&device, &error));
        let ended = handle.ask(call).map_err(|failure| self.told(name, failure))?;
        for drill in &ended {
            log.note("drill-ends", drill.to_string());
            tracing::info!(device = name, %drill, "drill ends");
        }
        let words: Vec<String> = ended.iter().map(ToString::to_string).collect();
        let said = match words.as_slice() {
            [] if off => "the power is on".into(),
            [] => "no drill was on".into(),
            words => format!("ended: {}", words.join(", ")),
        };
        Ok(Drills { said, ..self.drills(name)? })
    }

    /// Switches a device on again whose power a drill cut: attaches it anew from what lies on its files, as after any crash.
    ///
    /// # Errors
    /// Its power is not cut, or it cannot be attached: then the power stays off.
    pub fn power_on(&self, name: &str, request: &PowerOnRequest) -> Result<DeviceView, Failure> {
        let (target, options, log, handle) = {
            let mut table = self.table();
            if table.closing {
                return Err(Failure::conflict("the service is stopping").help("start it again with `vsl up`"));
            }
            let entry = table.entry(name)?;
            let (Phase::Attached(handle), Standing::PoweredOff(cut)) = (&entry.phase, entry.standing()) else {
                return Err(Failure::conflict(format!("the power of {name} is not cut"))
                    .help(format!("`vsl drill {name} list` shows which drills are on")));
            };
            let key_file = match request.passphrase {
                Some(_) => request.key_file.clone(),
                None => request.key_file.clone().or_else(|| entry.key.file.clone()),
            };
            let secret = secret(request.passphrase.as_ref(), key_file.as_deref())?;
            let (drills, witness) = (cut.drills.clone(), entry.witness.clone());
            let options =
                AttachOptions { read_only: entry.read_only, secret, drills, witness, ..AttachOptions::default() };
            let taken = (entry.target.clone(), options, Arc::clone(&entry.log), handle.clone());
            entry.phase = Phase::Attaching;
            taken
        };
        // The files are let go with the last of the device's thread.
        handle.wait_until_gone();
        let started = self.start(name, &target, options, &log);
        let mut table = self.table();
        let entry = table.entry(name)?;
        let result = match started {
            Ok(handle) => {
                entry.phase = Phase::Attached(handle);
                log.note("power-on", "");
                tracing::info!(device = name, "the power is on");
                Ok(())
            }
            Err(failure) => {
                entry.phase = Phase::Attached(handle);
                log.note("power-on-failed", failure.to_string());
                Err(failure)
            }
        };
        drop(table);
        self.settled.notify_all();
        result?;
        self.view(name)
    }

    /// What happened to a device.
    ///
    /// # Errors
    /// There is no such device.
    pub fn events(&self, name: &str) -> Result<Events, Failure> {
        Ok(Events { events: self.table().entry(name)?.log.events(0) })
    }
}

impl Table {
    pub(super) fn attached_with_log(&mut self, name: &str) -> Result<(Handle, Arc<Log>), Failure> {
        let handle = self.attached(name)?;
        Ok((handle, Arc::clone(&self.entry(name)?.log)))
    }
}
