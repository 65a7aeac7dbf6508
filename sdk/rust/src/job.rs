//! What a handle asks of the device's thread.

use device::{BatchOp, Drill};

use crate::pending::Completer;

/// One request, or a call that is about the device itself.
pub(crate) enum Job {
    Io(Request, Completer),
    /// Begins a drill.
    Drill(Drill, Completer),
    /// Ends drills of a name.
    UndoDrill(String, Completer),
    /// Switches a device on again whose power was cut.
    PowerOn(Completer),
    /// Detaches, or hangs up.
    Close(Completer),
}

/// A request that was checked against the device's capabilities.
pub(crate) enum Request {
    Read {
        lba: u64,
        buf: Vec<u8>,
    },
    Write {
        lba: u64,
        data: Bytes,
        durable: bool,
    },
    Trim {
        lba: u64,
        count: u64,
        durable: bool,
    },
    Flush,
    Batch {
        ops: Vec<BatchOp>,
        data: Vec<u8>,
        durable: bool,
    },
    /// Mapped sectors from `lba` to `end`, or those that differ from the snapshot `since`, as many ranges as are found at once.
    Ranges {
        lba: u64,
        end: u64,
        since: Option<u64>,
    },
}

/// Data on their way to the device.
pub(crate) enum Bytes {
    Owned(Vec<u8>),
    Lent(Lent),
}

/// Data of somebody who blocks until the request is answered.
pub(crate) struct Lent {
    data: *const u8,
    len: usize,
}

// SAFETY: plain bytes that nobody changes while they are lent; see `Lent::new`.
unsafe impl Send for Lent {}

impl Lent {
    /// Lends data to the device's thread.
    ///
    /// # Safety
    /// The data stay valid and unchanged until the request's completer has completed or is gone.
    pub(crate) unsafe fn new(data: &[u8]) -> Lent {
        Lent { data: data.as_ptr(), len: data.len() }
    }
}

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Owned(data) => data,
            // SAFETY: the promise of `Lent::new`; whoever has the request has its completer, too.
            Bytes::Lent(lent) => unsafe { std::slice::from_raw_parts(lent.data, lent.len) },
        }
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Bytes::Owned(data) => data,
            lent @ Bytes::Lent(_) => lent.as_slice().to_vec(),
        }
    }
}
