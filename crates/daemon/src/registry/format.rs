//! Formatting an attached device: detach, format, attach again under its name.

use device::{AttachOptions, Capacity, FormatOptions};

use super::{Registry, secret};
use crate::Failure;
use crate::api::{DeviceView, FormatRequest};
use crate::exports::Refused;

impl Registry {
    /// Formats an attached device that has no clients: everything on it is lost.
    ///
    /// # Errors
    /// It is not confirmed, has clients, is encrypted or in memory, or cannot be formatted so: then it is attached as it was.
    pub fn format(&self, name: &str, request: &FormatRequest) -> Result<DeviceView, Failure> {
        if request.confirm != name {
            return Err(Failure::invalid(format!("this would destroy everything on {name}, and is not confirmed"))
                .help("send the device's name as confirm if that is meant"));
        }
        let capacity = request.capacity.as_deref().map_or(Ok(Capacity::Advertised), |text| {
            let wrong = |what| Failure::invalid(format!("capacity: '{}': {what}", text.escape_debug()));
            text.parse().map_err(wrong)
        })?;
        let handle = self.handle(name)?;
        let info = handle.info()?;
        let (target, key) = {
            let mut table = self.table();
            let entry = table.entry(name)?;
            if entry.read_only {
                return Err(Failure::conflict(format!("{name} is attached to be read only"))
                    .help("attach it without that, then format it"));
            }
            (entry.target.clone(), entry.key.clone())
        };
        let Some(paths) = target.paths().map(<[_]>::to_vec) else {
            return Err(Failure::invalid(format!("{name} lives in memory and has no format"))
                .help("detach it, and attach memory of another size"));
        };
        if info.encryption.is_some() {
            return Err(
                Failure::conflict(format!("{name} is encrypted")).help("`vsl format` asks for what is to open it")
            );
        }
        let options = FormatOptions {
            sector_bytes: request.sector_bytes.unwrap_or(info.sector_bytes),
            capacity,
            label: request.label.clone().unwrap_or(info.label),
        };
        let attach = AttachOptions { secret: secret(None, key.file.as_deref())?, ..AttachOptions::default() };
        // It also waits for what is under way, and refuses while there are clients.
        match self.let_go(name, false) {
            Err(Refused::StillAttached(failure)) => return Err(failure),
            // What it held goes anyway.
            Err(Refused::Gone(failure)) => tracing::warn!(device = name, "before a format: {failure}"),
            Ok(()) => {}
        }
        let formatted = device::format(&paths, &options, None);
        let attached = self.attach_target(name, target, attach, key);
        formatted?;
        attached?;
        let view = self.view(name)?;
        self.table().entry(name)?.log.note("formatted", size::show(view.derived.bytes.unwrap_or(0)));
        Ok(view)
    }
}
