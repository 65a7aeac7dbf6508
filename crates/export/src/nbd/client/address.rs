//! Where an NBD server serves an export, as the NBD project writes it (`doc/uri.md` of its repository).

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::{Host, Url};

use super::stream::Stream;

/// The port that the NBD project was given.
const PORT: u16 = 10809;
/// What is escaped in the name of an export.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'@');
/// How long a connection may take to come about.
const PATIENCE: Duration = Duration::from_secs(10);

/// An export's address: `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    place: Place,
    /// The export's name; the server's default one where it is empty.
    pub export: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// Text that is no address of an export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\": {what}; expected nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH")]
pub struct BadAddress {
    text: String,
    what: &'static str,
}

impl Address {
    /// An export of the server on a Unix socket.
    pub fn unix(socket: impl Into<PathBuf>, export: &str) -> Address {
        Address { place: Place::Unix(socket.into()), export: export.into() }
    }

    pub(super) fn connect(&self) -> io::Result<Stream> {
        match &self.place {
            Place::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
            Place::Tcp(host, port) => {
                let mut failed = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, PATIENCE) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
        }
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = |what| BadAddress { text: text.to_string(), what };
        let url = Url::parse(text).map_err(|_| bad("it is no URI"))?;
        let export = percent_decode_str(url.path().strip_prefix('/').unwrap_or_default());
        let export = export.decode_utf8().map_err(|_| bad("the export's name is not UTF-8"))?.into_owned();
        let socket = url.query_pairs().find(|(key, _)| key == "socket").map(|(_, path)| PathBuf::from(path.as_ref()));
        let place = match (url.scheme(), url.host(), socket) {
            ("nbd", Some(host), None) => {
                let host = match host {
                    Host::Ipv6(address) => address.to_string(),
                    host => host.to_string(),
                };
                Place::Tcp(host, url.port().unwrap_or(PORT))
            }
            ("nbd", _, _) => return Err(bad("it names no host")),
            ("nbd+unix", None, Some(path)) if path.is_absolute() => Place::Unix(path),
            ("nbd+unix", None, Some(_)) => return Err(bad("the socket's path is not absolute")),
            ("nbd+unix", ..) => return Err(bad("it names no socket, or a host beside it")),
            ("nbds" | "nbds+unix", ..) => return Err(bad("connections with TLS are not made")),
            _ => return Err(bad("its scheme is neither nbd nor nbd+unix")),
        };
        Ok(Address { place, export })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let export = utf8_percent_encode(&self.export, ESCAPED);
        match &self.place {
            Place::Unix(path) => write!(f, "nbd+unix:///{export}?socket={}", path.display()),
            Place::Tcp(host, port) if host.contains(':') => write!(f, "nbd://[{host}]:{port}/{export}"),
            Place::Tcp(host, port) => write!(f, "nbd://{host}:{port}/{export}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_servers_print_them() {
        let unix: Address = "nbd+unix:///a%20disk?socket=/run/nbd.sock".parse().expect("an address");
        assert_eq!(unix, Address::unix("/run/nbd.sock", "a disk"));
        for (text, shown) in [
            ("nbd://store/", "nbd://store:10809/"),
            ("nbd://store:1/a@b", "nbd://store:1/a@b"),
            ("nbd://[::1]:2", "nbd://[::1]:2/"),
            ("nbd+unix:///?socket=/s", "nbd+unix:///?socket=/s"),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.to_string().parse(), Ok(address), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "disk",
            "nbd:///a",
            "nbd+unix:///a",
            "nbd+unix:///a?socket=b",
            "nbds://h/a",
            "http://h/a",
            "nbd://h/%ff",
        ] {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.to_string().contains("expected nbd://HOST"), "{error}");
        }
    }
}
