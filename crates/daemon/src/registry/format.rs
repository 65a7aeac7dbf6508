//! Formatting an attached device: detach, format, attach again under its name.

use device::{AttachOptions, Capacity, FormatOptions};

use super::table::Key;
use super::{Registry, secret};
use crate::Failure;
use crate::api::{DeviceView, FormatRequest, Opener};
use crate::create;
use crate::handle::Refused;

impl Registry {
    /// Formats an attached device that has no clients: everything on it is lost.
    ///
    /// # Errors
    /// It is not confirmed, has clients, lives in memory, or cannot be formatted so: then it is attached as it was.
    pub fn format(&self, name: &str, request: &FormatRequest) -> Result<DeviceView, Failure> {
        if request.confirm != name {
            return Err(Failure::invalid(format!("this would destroy everything on {name}, and is not confirmed"))
                .help("send the device's name as confirm if that is meant"));
        }
        let capacity = request.capacity.as_deref().map_or(Ok(Capacity::Advertised), create::capacity)?;
        // What is to open it afterwards is looked at before anything is destroyed.
        let new_secret = request.encrypt.as_ref().map(Opener::secret).transpose()?;
        self.table().not_a_member(name)?;
        let handle = self.handle(name)?;
        let info = handle.info()?;
        let (target, key, witness) = {
            let mut table = self.table();
            let entry = table.entry(name)?;
            if entry.read_only {
                return Err(Failure::conflict(format!("{name} is attached to be read only"))
                    .help("attach it without that, then format it"));
            }
            (entry.target.clone(), entry.key.clone(), entry.witness.clone())
        };
        let Some(paths) = target.paths().map(<[_]>::to_vec) else {
            return Err(Failure::invalid(format!("{name} lives in memory and has no format"))
                .help("detach it, and attach memory of another size"));
        };
        match (&request.encrypt, request.plain, info.encryption.is_some()) {
            (None, false, true) => {
                return Err(Failure::conflict(format!("{name} is encrypted"))
                    .help("send encrypt with what is to open it, or plain to store what comes as it is"));
            }
            (Some(_), true, _) => {
                return Err(Failure::invalid("both encrypt and plain were given").help("choose one of them"));
            }
            _ => {}
        }
        let options = FormatOptions {
            sector_bytes: request.sector_bytes.unwrap_or(info.sector_bytes),
            capacity,
            label: request.label.clone().unwrap_or(info.label),
        };
        // Where it cannot be formatted so, it is attached as it was; what a passphrase opened can then not be.
        let before = match key.typed {
            true => None,
            false => {
                let secret = secret(None, key.file.as_deref())?;
                Some(AttachOptions { secret, witness, ..AttachOptions::default() })
            }
        };
        // It also waits for what is under way, and refuses while there are clients.
        match self.let_go(name, false) {
            Err(Refused::StillAttached(failure)) => return Err(failure),
            // What it held goes anyway.
            Err(Refused::Gone(failure)) => tracing::warn!(device = name, "before a format: {failure}"),
            Ok(()) => {}
        }
        self.forget_staged(&paths);
        if let Err(error) = device::format(&paths, &options, new_secret.as_ref()) {
            let failure = Failure::from(error);
            return Err(match before.map(|before| self.attach_target(name, target, before, key)) {
                Some(Ok(())) => failure,
                Some(Err(second)) => Failure { error: format!("{}; {}", failure.error, second.error), ..failure },
                None => failure.help("it is detached now: attach it with its passphrase"),
            });
        }
        self.forget_schedule(&info.uuid.to_string());
        let key = Key::of(request.encrypt.as_ref());
        let attach = AttachOptions { secret: new_secret, ..AttachOptions::default() };
        self.attach_target(name, target, attach, key.clone())?;
        self.remember_key(name, key)?;
        let view = self.view(name)?;
        self.table().entry(name)?.log.note("formatted", size::show(view.field("bytes").unwrap_or(0)));
        Ok(view)
    }
}
