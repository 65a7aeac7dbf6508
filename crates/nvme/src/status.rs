//! How a command ended: status code type and status code, and whether it is of any use to try again.
//!
//! Source: NVM Express Base Specification 2.0, 3.3.3.2.1 (generic, command specific, media and data integrity errors); NVMe over
//! Fabrics values in its chapter 6; NVM Command Set Specification 1.0, chapter 3; Zoned Namespace Command Set Specification 1.1, figure 7.

/// The 15 bits of a completion's status field: status code in bits 7:0, type in 10:8, DNR in bit 14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    /// Done.
    pub const SUCCESS: Status = Status(0x000);
    /// The opcode is not one of ours.
    pub const INVALID_OPCODE: Status = Status(0x001 | Status::DNR);
    /// A field has a value that is reserved or not supported.
    pub const INVALID_FIELD: Status = Status(0x002 | Status::DNR);
    /// The command identifier is in use.
    pub const ID_CONFLICT: Status = Status(0x003);
    /// The data did not come as announced, or with a wrong digest.
    pub const DATA_TRANSFER_ERROR: Status = Status(0x004);
    /// Something within the controller failed.
    pub const INTERNAL: Status = Status(0x006);
    /// Aborted as asked.
    pub const ABORTED: Status = Status(0x007);
    /// The first of two fused commands failed, so the second was not carried out.
    pub const FUSED_FAILED: Status = Status(0x009);
    /// The other of two fused commands did not come.
    pub const FUSED_MISSING: Status = Status(0x00a);
    /// There is no such namespace.
    pub const INVALID_NAMESPACE: Status = Status(0x00b | Status::DNR);
    /// The command cannot be carried out in the controller's state.
    pub const SEQUENCE_ERROR: Status = Status(0x00c | Status::DNR);
    /// A data pointer's length is not what the command needs.
    pub const SGL_LENGTH_INVALID: Status = Status(0x00f | Status::DNR);
    /// A data pointer is of a type that is not taken here.
    pub const SGL_TYPE_INVALID: Status = Status(0x011 | Status::DNR);
    /// In-capsule data lie at an offset that is not taken.
    pub const SGL_OFFSET_INVALID: Status = Status(0x016 | Status::DNR);
    /// The host identifier is not consistent with the association's.
    pub const HOST_ID_INCONSISTENT: Status = Status(0x018 | Status::DNR);
    /// The keep alive timeout is not taken.
    pub const KEEP_ALIVE_INVALID: Status = Status(0x01a | Status::DNR);
    /// The namespace takes no writes.
    pub const WRITE_PROTECTED: Status = Status(0x020 | Status::DNR);
    /// The command was not carried out, and is to be tried again.
    pub const INTERRUPTED: Status = Status(0x021);
    /// The transport broke the command's data; to be tried again.
    pub const TRANSPORT_ERROR: Status = Status(0x022);
    /// A block beyond the namespace's end.
    pub const LBA_RANGE: Status = Status(0x080 | Status::DNR);
    /// No space is left under a thin namespace.
    pub const CAPACITY_EXCEEDED: Status = Status(0x081);
    /// More asynchronous event requests than announced.
    pub const EVENT_LIMIT: Status = Status(0x105);
    /// There is no such log page.
    pub const INVALID_LOG_PAGE: Status = Status(0x109 | Status::DNR);
    /// The feature cannot be saved.
    pub const NOT_SAVEABLE: Status = Status(0x10d | Status::DNR);
    /// The feature cannot be changed.
    pub const NOT_CHANGEABLE: Status = Status(0x10e | Status::DNR);
    /// The transport's record format is not taken (Connect).
    pub const CONNECT_FORMAT: Status = Status(0x180 | Status::DNR);
    /// The controller takes no connection now (Connect).
    pub const CONNECT_BUSY: Status = Status(0x181);
    /// A parameter of Connect does not fit. May be tried again: the subsystem may be back then.
    pub const CONNECT_INVALID: Status = Status(0x182);
    /// The host may not connect to the subsystem.
    pub const CONNECT_HOST: Status = Status(0x184 | Status::DNR);
    /// The discovery log changed while it was read.
    pub const DISCOVER_RESTART: Status = Status(0x190);
    /// The host has to authenticate first.
    pub const AUTHENTICATION_REQUIRED: Status = Status(0x191);
    /// Ranges of a copy are too many, or too long.
    pub const SIZE_LIMIT: Status = Status(0x183 | Status::DNR);
    /// A write, or an append, beyond the end of its zone, or a place where none begins.
    pub const ZONE_BOUNDARY: Status = Status(0x1b8 | Status::DNR);
    /// The zone is full.
    pub const ZONE_FULL: Status = Status(0x1b9 | Status::DNR);
    /// A write elsewhere than at the write pointer.
    pub const ZONE_INVALID_WRITE: Status = Status(0x1bc | Status::DNR);
    /// As many zones are active as may be.
    pub const TOO_MANY_ACTIVE_ZONES: Status = Status(0x1bd | Status::DNR);
    /// A zone in this state does not take the action.
    pub const ZONE_TRANSITION: Status = Status(0x1bf | Status::DNR);
    /// Operations of a batch overlap (of the vendor, type 7h).
    pub const BATCH_OVERLAP: Status = Status(0x701 | Status::DNR);
    /// The media failed to take a write.
    pub const WRITE_FAULT: Status = Status(0x280);
    /// The media hold no sound copy of a block.
    pub const READ_ERROR: Status = Status(0x281);
    /// The data differ from what is stored.
    pub const COMPARE_FAILED: Status = Status(0x285 | Status::DNR);
    /// Do not retry: the same command would fail again.
    pub const DNR: u16 = 1 << 14;

    /// Status code type and status code, without the hints.
    pub fn code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Whether the command was carried out.
    pub fn is_success(self) -> bool {
        self.code() == 0
    }
}
