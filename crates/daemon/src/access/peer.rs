//! Who is on the other end of a connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use tokio::net::UnixListener;

/// The other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// On the Unix socket: the user, as the kernel tells; nothing when it could not.
    Unix {
        /// Their number.
        uid: Option<u32>,
    },
    /// Over TCP.
    Tcp {
        /// Where from.
        address: SocketAddr,
        /// With TLS.
        secure: bool,
    },
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Peer {
        Peer::Unix { uid: stream.io().peer_cred().ok().map(|credentials| credentials.uid()) }
    }
}

impl Connected<Peer> for Peer {
    fn connect_info(peer: Peer) -> Peer {
        peer
    }
}

impl Peer {
    /// Its address; the Unix socket has none.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Peer::Unix { .. } => None,
            Peer::Tcp { address, .. } => Some(address.ip()),
        }
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.address().is_none_or(|address| address.to_canonical().is_loopback())
    }

    /// Whether it is on the Unix socket as the service's owner, or root.
    pub fn is_owner(&self, owner: u32) -> bool {
        matches!(self, Peer::Unix { uid: Some(uid) } if *uid == 0 || *uid == owner)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Unix { uid: Some(uid) } => write!(f, "user {uid}"),
            Peer::Unix { uid: None } => f.write_str("an unknown user"),
            Peer::Tcp { address, .. } => write!(f, "{}", address.ip()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_root_pass() {
        let unix = |uid| Peer::Unix { uid };
        assert!(unix(Some(1000)).is_owner(1000));
        assert!(unix(Some(0)).is_owner(1000));
        assert!(!unix(Some(1001)).is_owner(1000));
        assert!(!unix(Some(1001)).is_owner(0));
        assert!(!unix(None).is_owner(0));
        let tcp = Peer::Tcp { address: "127.0.0.1:1".parse().expect("an address"), secure: true };
        assert!(!tcp.is_owner(0) && tcp.is_loopback());
    }
}
