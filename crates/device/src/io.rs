//! Requests to a device and their answers.

use ftl::BatchOp;

use crate::IoError;

/// A request. Addresses and counts are in sectors of the device's format.
#[derive(Debug)]
pub enum Io<'a> {
    /// Read into `buf`, whose length is a multiple of the sector size; it comes back filled.
    Read {
        /// First sector.
        lba: u64,
        /// Owned by the device until the read is answered.
        buf: Vec<u8>,
    },
    /// Read as a snapshot sees it, like [`Io::Read`].
    ReadSnapshot {
        /// Which.
        id: ftl::SnapshotId,
        /// First sector.
        lba: u64,
        /// Owned by the device until the read is answered.
        buf: Vec<u8>,
    },
    /// Write `data`. Copied before [`crate::Device::submit`] returns.
    /// Up to [`crate::Info::max_request_bytes`] it is never torn by a crash.
    Write {
        /// First sector.
        lba: u64,
        /// A multiple of the sector size.
        data: &'a [u8],
        /// Durable when answered.
        fua: bool,
    },
    /// Carry out all of these writes and trims or none of them, whatever a crash leaves. Reads see all or none as well. Copied
    /// before [`crate::Device::submit`] returns. What a batch must be, [`crate::BatchError`] says.
    ///
    /// The first one of a format raises its version: programs before it cannot read it any more.
    Batch {
        /// In any order: no two of them may touch the same sector. A trim is carried out whatever `trim` is set to.
        ops: &'a [BatchOp],
        /// What the writes write, one behind another in the order of `ops`.
        data: &'a [u8],
        /// Durable when answered.
        fua: bool,
    },
    /// Everything answered before this was submitted is durable when it is answered.
    Flush,
    /// Forget sectors: they read as zeros, without touching media. `Trim` may be ignored by
    /// configuration (`trim off`); `WriteZeroes` never is.
    Trim {
        /// First sector.
        lba: u64,
        /// How many.
        count: u64,
        /// Durable when answered.
        fua: bool,
    },
    /// Make sectors read as zeros. With `allocate` the zeros are really written, so that
    /// the range keeps its space on media; then the length is at most the maximum request.
    WriteZeroes {
        /// First sector.
        lba: u64,
        /// How many.
        count: u64,
        /// Durable when answered.
        fua: bool,
        /// Take space on media (NBD's NO_HOLE).
        allocate: bool,
    },
}

/// What became of a submitted request.
#[derive(Debug)]
pub enum Submitted<'a> {
    /// Answered on the spot; a read's buffer comes back.
    Done(Result<Option<Vec<u8>>, IoError>),
    /// Answered later by [`crate::Device::poll`], under the same tag.
    Pending,
    /// The device takes no more just now; submit it again after [`crate::Device::poll`] made progress.
    Busy(Io<'a>),
}

/// The answer to a request that was pending.
#[derive(Debug)]
pub struct Completion {
    /// The tag it was submitted with.
    pub tag: u64,
    /// Success, with a read's filled buffer; or why not.
    pub result: Result<Option<Vec<u8>>, IoError>,
}

/// A run of sectors that are all mapped or all not (NBD's `base:allocation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many sectors.
    pub count: u64,
    /// Whether they take space on media; otherwise they read as zeros.
    pub mapped: bool,
}
