//! Admin and fabrics commands.
//!
//! Source: NVM Express Base Specification 2.0, 5 (admin commands), 6 (fabrics commands).

use super::{Command, Payload};
use crate::command::{ALL_NAMESPACES, admin, fabrics};
use crate::fabrics::Connect;
use crate::{Sqe, identify};

/// Security protocol of NVMe, and its only specific values (8.13.5.1).
const SECURITY_PROTOCOL: u32 = 0xe901_0100;

/// What to read of a log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// Which page.
    pub id: u8,
    /// Of which namespace; all by default.
    pub nsid: u32,
    /// Log specific field.
    pub specific: u8,
    /// Whether an asynchronous event that the page explains stays as it is.
    pub retain_event: bool,
    /// The first byte, a multiple of 4.
    pub offset: u64,
    /// Bytes, a multiple of 4.
    pub len: u32,
}

impl LogPage {
    /// The first bytes of a page.
    pub fn new(id: u8, len: u32) -> LogPage {
        LogPage { id, nsid: ALL_NAMESPACES, specific: 0, retain_event: false, offset: 0, len }
    }
}

impl Command {
    /// Connect: the queue joins a controller.
    pub fn connect(connect: &Connect) -> Command {
        Command::sending(connect.entry(0), connect.data().to_vec())
    }

    /// Property Get: of 4 bytes, or of 8.
    pub fn property_get(offset: u32, is_wide: bool) -> Command {
        Command::bare(Sqe::fabrics(fabrics::PROPERTY_GET, 0).with(10, is_wide.into()).with(11, offset))
    }

    /// Property Set, of 4 bytes.
    pub fn property_set(offset: u32, value: u32) -> Command {
        Command::bare(Sqe::fabrics(fabrics::PROPERTY_SET, 0).with(11, offset).with(12, value))
    }

    /// Disconnect: the controller ends this I/O queue.
    pub fn disconnect() -> Command {
        Command::bare(Sqe::fabrics(fabrics::DISCONNECT, 0))
    }

    /// Authentication Send: a message of an authentication.
    pub fn authentication_send(message: Vec<u8>) -> Command {
        let len = message.len() as u32;
        let entry = Sqe::fabrics(fabrics::AUTHENTICATION_SEND, 0).with(10, SECURITY_PROTOCOL).with(11, len);
        Command::sending(entry, message)
    }

    /// Authentication Receive: the next message, of so many bytes at most.
    pub fn authentication_receive(max: u32) -> Command {
        let entry = Sqe::fabrics(fabrics::AUTHENTICATION_RECEIVE, 0).with(10, SECURITY_PROTOCOL).with(11, max);
        Command { entry, payload: Payload::UpTo(vec![0; max as usize]) }
    }

    /// Identify: a structure of 4,096 bytes, of which kind `cns` says.
    pub fn identify(cns: u8, nsid: u32) -> Command {
        Command::receiving(Sqe::new(admin::IDENTIFY, 0, nsid).with(10, cns.into()), identify::BYTES as u32)
    }

    /// Get Log Page.
    pub fn get_log_page(page: &LogPage) -> Command {
        let dwords = (page.len / 4).saturating_sub(1);
        let retain = u32::from(page.retain_event) << 15;
        let specific = u32::from(page.specific & 0x7f) << 8;
        let entry = Sqe::new(admin::GET_LOG_PAGE, 0, page.nsid)
            .with(10, (dwords & 0xffff) << 16 | retain | specific | u32::from(page.id))
            .with(11, dwords >> 16)
            .with(12, page.offset as u32)
            .with(13, (page.offset >> 32) as u32);
        Command::receiving(entry, page.len)
    }

    /// Set Features: the completion's result is what the feature gives back.
    pub fn set_features(feature: u8, nsid: u32, value: u32) -> Command {
        Command::bare(Sqe::new(admin::SET_FEATURES, 0, nsid).with(10, feature.into()).with(11, value))
    }

    /// Get Features: the completion's result is its value. `select` 0 is the current one, 1 the default, 2 the saved one, 3 what
    /// can be done with it.
    pub fn get_features(feature: u8, nsid: u32, select: u8) -> Command {
        let select = u32::from(select & 7) << 8;
        Command::bare(Sqe::new(admin::GET_FEATURES, 0, nsid).with(10, select | u32::from(feature)))
    }

    /// Asynchronous Event Request: ends when something happens.
    pub fn async_event_request() -> Command {
        Command::bare(Sqe::new(admin::ASYNC_EVENT_REQUEST, 0, 0))
    }

    /// Keep Alive.
    pub fn keep_alive() -> Command {
        Command::bare(Sqe::new(admin::KEEP_ALIVE, 0, 0))
    }

    /// Abort of a command of a queue. Bit 0 of the completion's result is clear where it was aborted.
    pub fn abort(qid: u16, cid: u16) -> Command {
        Command::bare(Sqe::new(admin::ABORT, 0, 0).with(10, u32::from(cid) << 16 | u32::from(qid)))
    }
}
