//! Where a service serves a device.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use nvme::fabrics::{is_name, subsystem_name};

/// Where a service serves a device, as `vsl status DEVICE --field nvme_uri` prints it:
///
/// - `nvme+unix:///SUBSYSTEM?socket=PATH`, on this machine, for those who may use the service's socket;
/// - `nvme+tcp://HOST:PORT/SUBSYSTEM`, where it listens with `--nvme-listen`.
///
/// `SUBSYSTEM` is the device's NVMe qualified name, or its UUID; with `@` and a name behind it a snapshot of the device, to be read, or a clone. Over TCP it may be left out where the service has one device.
///
/// ```
/// use openvsl::Address;
///
/// let address: Address = "nvme+tcp://localhost:4420/3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11".parse()?;
/// assert!(address.to_string().ends_with("/nqn.2026-11.org.openvsl:uuid:3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11"));
/// assert!("tcp://localhost:4420".parse::<Address>().is_err());
/// # Ok::<(), openvsl::BadAddress>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) place: Place,
    /// The subsystem's name.
    pub(crate) subsystem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Unix(PathBuf),
    Tcp(String),
}

/// Text that is no address of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\": {what}; expected nvme+unix:///SUBSYSTEM?socket=PATH or nvme+tcp://HOST:PORT/SUBSYSTEM")]
pub struct BadAddress {
    text: String,
    what: &'static str,
}

impl Address {
    /// A device on the Unix socket of a service, by its UUID or its subsystem's name.
    pub fn unix(socket: impl Into<PathBuf>, device: &str) -> Address {
        Address { place: Place::Unix(socket.into()), subsystem: Some(named(device)) }
    }

    /// A snapshot of the device at this address, to be read, or a clone. An address that names no device is left as it is.
    #[must_use]
    pub fn at_snapshot(self, name: &str) -> Address {
        Address { subsystem: self.subsystem.map(|device| format!("{device}@{name}")), ..self }
    }
}

/// A device's subsystem, by its name or its UUID.
fn named(device: &str) -> String {
    if device.starts_with("nqn.") {
        return device.to_string();
    }
    let (uuid, snapshot) = device.split_at(device.find('@').unwrap_or(device.len()));
    subsystem_name(&uuid.to_lowercase()) + snapshot
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = |what| BadAddress { text: text.to_string(), what };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad("it has no scheme"))?;
        let (place, device) = match scheme {
            "nvme+unix" => {
                let rest = rest.strip_prefix('/').ok_or_else(|| bad("a Unix socket has no host"))?;
                let (device, query) = rest.split_once('?').ok_or_else(|| bad("it names no socket"))?;
                let path = query.strip_prefix("socket=").ok_or_else(|| bad("it names no socket"))?;
                let path = unescaped(path).ok_or_else(|| bad("an escape is not two hexadecimal digits"))?;
                if device.is_empty() {
                    return Err(bad("it names no device"));
                }
                (Place::Unix(path), device)
            }
            "nvme+tcp" => {
                let (host, device) = rest.split_once('/').unwrap_or((rest, ""));
                let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
                if !matches!(port, Some(Ok(_))) {
                    return Err(bad("it names no port"));
                }
                (Place::Tcp(host.to_string()), device)
            }
            _ => return Err(bad("its scheme is neither nvme+unix nor nvme+tcp")),
        };
        let subsystem = (!device.is_empty()).then(|| named(device));
        if subsystem.as_deref().is_some_and(|name| !is_name(name)) {
            return Err(bad("the device's name is longer than names may be"));
        }
        Ok(Address { place, subsystem })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.subsystem.as_deref().unwrap_or_default();
        match &self.place {
            Place::Unix(path) => write!(f, "nvme+unix:///{device}?socket={}", path.display()),
            Place::Tcp(host) => write!(f, "nvme+tcp://{host}/{device}"),
        }
    }
}

/// A path whose bytes may be written as `%` and two hexadecimal digits.
fn unescaped(text: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_service_prints_them() {
        let uuid = "3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11";
        let text = format!("nvme+unix:///{}?socket=/run/a%20b/nvme.sock", subsystem_name(uuid));
        assert_eq!(text.parse(), Ok(Address::unix("/run/a b/nvme.sock", uuid)));
        let shown = Address::unix("/s", &format!("{}@Monday", uuid.to_uppercase()));
        assert_eq!(shown.subsystem, Some(subsystem_name(uuid) + "@Monday"));
        let address: Address = text.parse().expect("an address");
        assert_eq!(
            address.at_snapshot("a").to_string(),
            format!("nvme+unix:///{}@a?socket=/run/a b/nvme.sock", subsystem_name(uuid))
        );
        let any: Address = "nvme+tcp://[::1]:4420".parse().expect("an address");
        assert_eq!((any.place, any.subsystem), (Place::Tcp("[::1]:4420".into()), None));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("nvme+tcp://h:1/nqn.{}", "x".repeat(300));
        for text in [
            "",
            "a",
            "nbd+unix:///a?socket=/b",
            "nvme+unix:///?socket=/b",
            "nvme+unix:///a",
            "nvme+unix://h/a?socket=/b",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
        for text in [
            "nvme+tcp://host/a",
            "nvme+tcp://h:70000/a",
            "nvme+unix:///a?socket=/%+1",
            "nvme+unix:///a?socket=%4",
            &long,
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
