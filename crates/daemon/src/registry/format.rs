//! Formatting an attached device: detach, format, attach again under its name.

use device::{AttachOptions, Capacity, FormatOptions};

use super::{Registry, secret};
use crate::Failure;
use crate::api::{DeviceView, FormatRequest};
use crate::exports::Refused;

/// A capacity as people write it.
///
/// # Errors
/// It is none.
pub fn capacity(text: &str) -> Result<Capacity, Failure> {
    match text {
        "advertised" => Ok(Capacity::Advertised),
        "maximum" => Ok(Capacity::Maximum),
        "improved-write" => Ok(Capacity::ImprovedWrite),
        "maximum-write" => Ok(Capacity::MaximumWrite),
        text => {
            let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
            match percent.filter(|percent| percent.is_finite() && *percent > 0.0) {
                Some(percent) => Ok(Capacity::Percent(percent)),
                None => size::parse(text).map(Capacity::Bytes).map_err(|_| {
                    Failure::invalid(format!("capacity: '{}' is none", text.escape_debug())).help(
                        "choose advertised, maximum, improved-write, maximum-write, a percentage such as 80%, or a size such as 10GiB",
                    )
                }),
            }
        }
    }
}

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
        let capacity = capacity(request.capacity.as_deref().unwrap_or("advertised"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_parse() {
        assert_eq!(capacity("80%"), Ok(Capacity::Percent(80.0)));
        assert_eq!(capacity("10GiB"), Ok(Capacity::Bytes(10 << 30)));
        assert_eq!(capacity("maximum"), Ok(Capacity::Maximum));
        for text in ["", "all", "-5%", "NaN%", "0%"] {
            assert!(capacity(text).is_err(), "{text}");
        }
    }
}
