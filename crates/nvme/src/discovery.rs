//! The discovery log: which subsystems there are, and where.
//!
//! Source: NVM Express Base Specification 2.0, 5.16.1.23, figures 263 and 264 (discovery log page and its entries).

use crate::bytes::{put, put_text};
use crate::fabrics::{ANY_CONTROLLER, NQN_MAX};
use crate::property::ADMIN_QUEUE_ENTRIES;

/// Bytes of the page's head, and of each entry.
const ENTRY_BYTES: usize = 1024;

/// Where a subsystem listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The address as text.
    pub address: std::net::IpAddr,
    /// The TCP port.
    pub port: u16,
}

/// What a discovery controller knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Raised with each change.
    pub generation: u64,
    /// Names of subsystems.
    pub subsystems: Vec<String>,
    /// Where each of them is to be had.
    pub ports: Vec<Port>,
    /// Firmware revision of the discovery controller.
    pub firmware: String,
}

impl Directory {
    /// The page.
    pub fn page(&self) -> Vec<u8> {
        let pairs = || self.subsystems.iter().flat_map(|name| self.ports.iter().enumerate().map(move |at| (name, at)));
        let mut page = vec![0; ENTRY_BYTES];
        put(&mut page, 0, &self.generation.to_le_bytes());
        put(&mut page, 8, &(pairs().count() as u64).to_le_bytes());
        for (name, (number, port)) in pairs() {
            let mut entry = [0; ENTRY_BYTES];
            // TCP, IPv4 or IPv6, an NVM subsystem, no secure channel required.
            entry[..4].copy_from_slice(&[3, if port.address.is_ipv4() { 1 } else { 2 }, 2, 0]);
            put(&mut entry, 4, &(number as u16).to_le_bytes());
            put(&mut entry, 6, &ANY_CONTROLLER.to_le_bytes());
            put(&mut entry, 8, &ADMIN_QUEUE_ENTRIES.to_le_bytes());
            put_text(&mut entry, 32, 32, &port.port.to_string());
            put(&mut entry, 256, &name.as_bytes()[..name.len().min(NQN_MAX)]);
            put_text(&mut entry, 512, 256, &port.address.to_string());
            page.extend(entry);
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::u64_at;

    #[test]
    fn each_subsystem_is_listed_at_each_port() {
        let port = |address: &str| Port { address: address.parse().expect("an address"), port: 4420 };
        let directory = Directory {
            generation: 9,
            subsystems: vec!["nqn.a".into(), "nqn.b".into()],
            ports: vec![port("127.0.0.1"), port("::1")],
            ..Directory::default()
        };
        let page = directory.page();
        assert_eq!((u64_at(&page, 0), u64_at(&page, 8), page.len()), (9, 4, 5 * 1024));
        assert_eq!(page[1024..1032], [3, 1, 2, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(&page[1024 + 32..1024 + 37], b"4420 ");
        assert_eq!(&page[1024 + 512..1024 + 522], b"127.0.0.1 ");
        assert_eq!(&page[4 * 1024 + 256..4 * 1024 + 262], b"nqn.b\0");
        assert_eq!(page[4 * 1024 + 1], 2);
    }
}
