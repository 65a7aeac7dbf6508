//! Numbers of the NBD protocol, named as its specification names them.

/// First bytes of every server greeting.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
/// Announces option haggling, and begins every option.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// Begins every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Begins every request of the transmission phase.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins every simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Begins every chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag, both directions: fixed newstyle.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag, both directions: EXPORT_NAME is answered without 124 zeros.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Options a client may send.
pub mod option {
    /// Choose an export and begin; errors close the connection.
    pub const EXPORT_NAME: u32 = 1;
    /// Leave.
    pub const ABORT: u32 = 2;
    /// Name every export.
    pub const LIST: u32 = 3;
    /// Begin TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export, choose it and begin.
    pub const GO: u32 = 7;
    /// Answer reads in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name the metadata contexts that match.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of a reply to an option.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export's name.
    pub const SERVER: u32 = 2;
    /// A piece of information on an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Unknown option.
    pub const ERR_UNSUP: u32 = 0x8000_0001;
    /// Forbidden by the server's configuration.
    pub const ERR_POLICY: u32 = 0x8000_0002;
    /// Malformed, or not now.
    pub const ERR_INVALID: u32 = 0x8000_0003;
    /// TLS must come first.
    pub const ERR_TLS_REQD: u32 = 0x8000_0005;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = 0x8000_0006;
    /// The option is too large to look at.
    pub const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// Kinds of information in an INFO reply.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The canonical name.
    pub const NAME: u16 = 1;
    /// A description for people.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum request size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: what an export can do.
pub mod export_flag {
    /// The flags mean something.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// No writes.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH works.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// FUA works.
    pub const SEND_FUA: u16 = 1 << 3;
    /// TRIM works.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES works.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// DF works.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush covers the writes of every connection.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE works.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// FAST_ZERO works.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Request types.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write; the payload follows the header.
    pub const WRITE: u16 = 1;
    /// Leave once everything is answered.
    pub const DISC: u16 = 2;
    /// Make answered writes durable.
    pub const FLUSH: u16 = 3;
    /// Forget a range.
    pub const TRIM: u16 = 4;
    /// Prefetch.
    pub const CACHE: u16 = 5;
    /// Make a range read as zeros.
    pub const WRITE_ZEROES: u16 = 6;
    /// Describe a range.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Request flags.
pub mod command_flag {
    /// Durable when answered.
    pub const FUA: u16 = 1 << 0;
    /// Zeros keep their space.
    pub const NO_HOLE: u16 = 1 << 1;
    /// One chunk only.
    pub const DF: u16 = 1 << 2;
    /// One extent only.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Fail rather than be slow.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Structured replies.
pub mod chunk {
    /// Flag: the last chunk of this reply.
    pub const DONE: u16 = 1 << 0;
    /// No content.
    pub const NONE: u16 = 0;
    /// Offset and data.
    pub const OFFSET_DATA: u16 = 1;
    /// A context's id and extents.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error number and a message.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Extent flags of `base:allocation`.
pub mod allocation {
    /// Takes no space.
    pub const HOLE: u32 = 1 << 0;
    /// Reads as zeros.
    pub const ZERO: u32 = 1 << 1;
}

/// The metadata context that every export has.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The metadata contexts of an export that tell what has changed since a snapshot, whose name stands behind this.
pub const CHANGED_SINCE: &str = "openvsl:changed:";
/// Extent flag of those contexts: it differs. The same bit as in QEMU's `qemu:dirty-bitmap:` contexts.
pub const CHANGED: u32 = 1 << 0;
/// Metadata contexts that one client may choose.
pub const MAX_CONTEXTS: usize = 16;
/// Queries of one option for metadata contexts.
pub const MAX_QUERIES: usize = 256;

/// Longest string of the protocol (names, descriptions, contexts), bytes.
pub const MAX_STRING: usize = 4096;
/// Longest option we read, bytes; a longer one is skipped and answered with ERR_TOO_BIG.
pub const MAX_OPTION: u32 = 64 << 10;
/// An option longer than this is not worth skipping: the connection is closed.
pub const MAX_SKIPPED_OPTION: u32 = 32 << 20;
/// Largest payload of a READ or WRITE, bytes.
pub const MAX_PAYLOAD: u32 = 32 << 20;
/// Bytes of a request header.
pub const REQUEST_BYTES: usize = 28;

/// Error numbers of the transmission phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// Not permitted: the export is read-only.
    Perm = 1,
    /// The medium failed.
    Io = 5,
    /// No memory for the answer just now.
    NoMem = 12,
    /// Invalid request.
    Inval = 22,
    /// No space: also a write beyond the end.
    NoSpc = 28,
    /// Not supported: a zeroing that could not be fast.
    NotSup = 95,
}
