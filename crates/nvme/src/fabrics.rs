//! Connect: how a host joins a queue to a controller.
//!
//! Source: NVM Express Base Specification 2.0, 6.3 (Connect command and response), figures 382 to 386; 4.5 (NQNs).

use crate::bytes::{put, text_at, u16_at, u32_at};
use crate::command::fabrics;
use crate::{Cqe, Data, Sqe, Status};

/// Bytes of Connect's data.
pub const CONNECT_DATA_BYTES: usize = 1024;
/// Bytes that a qualified name takes, its zero included.
pub const NQN_BYTES: usize = 256;
/// The longest qualified name, bytes (4.5).
pub const NQN_MAX: usize = 223;
/// The name of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The controller that a host asks for when any will do.
pub const ANY_CONTROLLER: u16 = 0xffff;
/// Connect asks that the submission queue's head need not be told (CATTR bit 2).
pub const DISABLE_FLOW_CONTROL: u8 = 1 << 2;
/// Result of Connect: the host has to authenticate (AUTHREQ: ATR in bit 17, ASCR in bit 18).
pub const AUTHENTICATION_REQUIRED: u64 = 3 << 17;
/// The one of them that a subsystem of ours sets: authentication without a secure channel.
pub const AUTHENTICATE: u64 = 1 << 17;

/// What a host asks for with Connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The queue: 0 for the admin queue of a new association.
    pub queue: u16,
    /// Entries of the queue.
    pub entries: u32,
    /// See [`DISABLE_FLOW_CONTROL`].
    pub attributes: u8,
    /// Milliseconds after which the host counts as gone if it is silent; 0 for never.
    pub keep_alive_ms: u32,
    /// The host's identifier.
    pub host_id: [u8; 16],
    /// The controller, or [`ANY_CONTROLLER`].
    pub controller: u16,
    /// The subsystem.
    pub subsystem: String,
    /// The host.
    pub host: String,
}

impl Connect {
    /// The command.
    pub fn entry(&self, cid: u16) -> Sqe {
        let size = self.entries.saturating_sub(1) & 0xffff;
        Sqe::fabrics(fabrics::CONNECT, cid)
            .with(10, u32::from(self.queue) << 16)
            .with(11, size | u32::from(self.attributes) << 16)
            .with(12, self.keep_alive_ms)
            .with_data(Data::InCapsule(CONNECT_DATA_BYTES as u32))
    }

    /// Its data.
    pub fn data(&self) -> [u8; CONNECT_DATA_BYTES] {
        let mut data = [0; CONNECT_DATA_BYTES];
        put(&mut data, 0, &self.host_id);
        put(&mut data, 16, &self.controller.to_le_bytes());
        for (at, name) in [(256, &self.subsystem), (512, &self.host)] {
            put(&mut data, at, &name.as_bytes()[..name.len().min(NQN_MAX)]);
        }
        data
    }

    /// Takes a command and its data apart.
    ///
    /// # Errors
    /// It is of a format that we do not know, or a name is none; which dword or which byte of the data, for the completion.
    pub fn decode(entry: &Sqe, data: &[u8; CONNECT_DATA_BYTES]) -> Result<Connect, Cqe> {
        let refused = |status: Status, result: u64| Cqe { result, ..Cqe::new(entry.cid(), status) };
        let invalid = |in_data: bool, at: u64| refused(Status::CONNECT_INVALID, at | u64::from(in_data) << 16);
        // Record format 0 is the one that there is.
        if u16_at(&entry.0, 40) != 0 {
            return Err(refused(Status::CONNECT_FORMAT, 0));
        }
        let name = |at: usize| match text_at(data, at, NQN_BYTES) {
            Some(name) if is_name(name) => Ok(name.to_owned()),
            _ => Err(invalid(true, at as u64)),
        };
        let mut host_id = [0; 16];
        host_id.copy_from_slice(&data[..16]);
        Ok(Connect {
            queue: u16_at(&entry.0, 42),
            entries: u32::from(u16_at(&entry.0, 44)) + 1,
            attributes: entry.0[46],
            keep_alive_ms: u32_at(&entry.0, 48),
            host_id,
            controller: u16_at(data, 16),
            subsystem: name(256)?,
            host: name(512)?,
        })
    }
}

/// Whether text may be a qualified name.
pub fn is_name(text: &str) -> bool {
    text.starts_with("nqn.") && text.len() <= NQN_MAX && !text.chars().any(char::is_control)
}

/// The name of a subsystem whose one namespace has this UUID. The year and month are those of the project's first release.
pub fn subsystem_name(uuid: &str) -> String {
    format!("nqn.2026-11.org.openvsl:uuid:{uuid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect() -> Connect {
        Connect {
            queue: 2,
            entries: 128,
            attributes: DISABLE_FLOW_CONTROL,
            keep_alive_ms: 5000,
            host_id: [7; 16],
            controller: ANY_CONTROLLER,
            subsystem: subsystem_name("x"),
            host: "nqn.2014-08.org.nvmexpress:uuid:h".into(),
        }
    }

    #[test]
    fn what_a_host_asks_for_comes_out_as_it_went_in() {
        let (sent, entry) = (connect(), connect().entry(3));
        assert_eq!(entry.0[40..52], [0, 0, 2, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0]);
        assert_eq!(Connect::decode(&entry, &sent.data()), Ok(sent));
    }

    #[test]
    fn what_is_no_name_is_refused_and_told_where() {
        for (at, cut) in [(256, "nqm."), (512, "nqn.\u{7}")] {
            let mut data = connect().data();
            put(&mut data, at, cut.as_bytes());
            let refused = Connect::decode(&connect().entry(3), &data).expect_err("no name");
            assert_eq!((refused.status, refused.result), (Status::CONNECT_INVALID, 1 << 16 | at as u64));
        }
        let mut data = connect().data();
        data[256..512].fill(b'n');
        assert!(Connect::decode(&connect().entry(3), &data).is_err(), "no end");
    }
}
