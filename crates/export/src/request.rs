//! What clients of every protocol ask of a device, in the device's terms.

use device::{SnapshotId, ZoneAction};

/// An operation of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read.
    Read,
    /// Write.
    Write {
        /// Durable when answered.
        fua: bool,
        /// With which other writes it belongs together; 0 where the client says nothing.
        placement: u8,
    },
    /// Write at the end of the zone that begins at the request's offset. Once the device has it, the offset is where it went.
    Append {
        /// Durable when answered.
        fua: bool,
    },
    /// Do something with the zone that begins at the request's offset.
    Zone(ZoneAction),
    /// Make durable what was answered.
    Flush,
    /// Forget.
    Trim {
        /// Durable when answered.
        fua: bool,
    },
    /// Zero.
    WriteZeroes {
        /// Durable when answered.
        fua: bool,
        /// Keep the space.
        allocate: bool,
    },
    /// Writes and trims of which all or none are carried out. They stand beside the request, whose length is that of what they write.
    Batch {
        /// Durable when answered.
        fua: bool,
    },
}

/// A request, checked against its export's limits by the protocol that it came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub command: Command,
    /// Bytes from the start of the device; a multiple of its sectors.
    pub offset: u64,
    /// Bytes; a multiple of the device's sectors.
    pub len: u64,
    /// By what the protocol's session finds the request again when it is answered.
    pub cookie: u64,
    /// Of this snapshot or clone; otherwise of the device as it is.
    pub view: Option<SnapshotId>,
}

impl Command {
    /// Whether the device takes it in pieces of its largest request: such a request carries data, or makes some.
    #[inline]
    pub fn is_sized(self) -> bool {
        matches!(self, Command::Read | Command::Write { .. } | Command::WriteZeroes { allocate: true, .. })
    }

    /// Whether it changes what the device holds.
    #[inline]
    pub fn changes(self) -> bool {
        !matches!(self, Command::Read | Command::Flush)
    }
}

impl Request {
    /// Whether both touch a sector.
    #[inline]
    pub fn overlaps(&self, other: &Request) -> bool {
        let same = self.view == other.view;
        same && self.offset < other.offset + other.len && other.offset < self.offset + self.len
    }
}
