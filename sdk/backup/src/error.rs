//! What can go wrong.

use std::io;

use openvsl::Error;

/// Why a stream cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It is something else.
    #[error("this is no backup of OpenVSL")]
    Foreign,
    /// It was made by another version.
    #[error("a backup of format {found}; this version reads format {known}")]
    Version {
        /// What it says.
        found: u16,
        /// What is known here.
        known: u16,
    },
    /// It ends before its end.
    #[error("the backup was interrupted: it holds sectors below {lba} of {sectors}, and no end")]
    Interrupted {
        /// Everything below is there.
        lba: u64,
        /// Sectors of the device.
        sectors: u64,
    },
    /// It ends within its header, before there is anything.
    #[error("the backup was interrupted before its first sector")]
    Empty,
    /// A frame is not what was written there.
    #[error("frame {number} of the backup is damaged: {what}")]
    Damaged {
        /// Which one, from 0 on.
        number: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The header is not what was written there.
    #[error("the header of the backup is damaged: {what}")]
    Header {
        /// What is wrong.
        what: String,
    },
    /// Bytes behind the end.
    #[error("something stands behind the end of the backup")]
    Trailing,
    /// It is encrypted.
    #[error("the backup is encrypted; say what opens it")]
    NeedsSecret,
    /// It is encrypted with another secret.
    #[error("this secret does not open the backup")]
    WrongSecret,
    /// The secret could not be used.
    #[error("{0}")]
    Secret(&'static str),
    /// The file or pipe that it comes from.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Why a backup could not be made, or not restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The stream.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The device.
    #[error(transparent)]
    Device(#[from] Error),
    /// The stream could not be written.
    #[error("{0}")]
    Write(io::Error),
    /// Whoever asked for it has had enough.
    #[error("interrupted")]
    Stopped,
    /// The device is too small.
    #[error("the device holds {target} bytes, and the backup is of one with {source_bytes}")]
    TooSmall {
        /// Bytes of the device.
        target: u64,
        /// Bytes of the device that was backed up.
        source_bytes: u64,
    },
    /// Neither sector size divides the other.
    #[error("the device has sectors of {target} bytes and the backup of {source_bytes}: one must divide the other")]
    SectorSize {
        /// Of the device.
        target: u32,
        /// Of the backup.
        source_bytes: u32,
    },
    /// Another device, or another state of it, than the one whose backup was begun.
    #[error("the backup that was begun is of {begun}, and this is {found}; begin a new one")]
    OtherSource {
        /// What the header says.
        begun: String,
        /// What is to be backed up.
        found: String,
    },
    /// A stream that does not follow the one before it, of those to restore.
    #[error("it holds what changed since {expected}, and {found}")]
    Base {
        /// Which of the streams, from 0 on.
        index: usize,
        /// What it builds on.
        expected: String,
        /// What stands before it.
        found: String,
    },
    /// A whole stream behind another.
    #[error("it is whole: nothing stands before it; name it first, or alone")]
    Whole {
        /// Which of the streams, from 0 on.
        index: usize,
    },
    /// The snapshots are no older and a newer one.
    #[error("{since} is not older than what is backed up")]
    NotOlder {
        /// What it should build on.
        since: String,
    },
    /// What is replicated shows no moment.
    #[error("only a snapshot can be replicated")]
    NoSnapshot,
    /// There is nothing to go on with.
    #[error("the backup is complete already")]
    Complete,
}
