//! What can go wrong, in types; each message names the thing, what was expected and what to do.

use std::path::PathBuf;

use media::OpenError;

/// Why a request was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IoError {
    /// The range does not lie inside the device, or is not a multiple of the sector size.
    #[error("range outside the device, or not a multiple of its sector size")]
    OutOfRange,
    /// A write larger than the maximum request.
    #[error("larger than the maximum request")]
    TooLarge,
    /// The device is attached read-only, or has become so.
    #[error("the device is read-only")]
    ReadOnly,
    /// The backing store is full.
    #[error("no space left on the backing store")]
    NoSpace,
    /// As much of a sparse address space, or of snapshots, holds data as there is room for; nothing of the request was carried out.
    #[error("the raw space is full: trim what is not needed any more, or delete snapshots")]
    Full,
    /// The snapshot was deleted.
    #[error("there is no such snapshot")]
    NoSnapshot,
    /// A batch that is none; nothing of it was carried out.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A batch that cannot be carried out as a whole, by an array or a cached volume; nothing of it was.
    #[error(
        "the batch cannot be one here: it lies in too many pieces on several members of an array, or the volume has a cache; expected fewer operations, or single ones"
    )]
    Scattered,
    /// Its zone does not take it; nothing was carried out.
    #[error(transparent)]
    Zone(#[from] ftl::ZoneError),
    /// The media failed, or a sector failed its check.
    #[error("media error")]
    Media,
}

/// Why a batch cannot be carried out. Operations are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// No operations.
    #[error("the batch has no operations; expected at least one write or trim")]
    Empty,
    /// An operation of no sectors.
    #[error("operation {0} of the batch has no sectors; expected at least one")]
    NoSectors(u32),
    /// An operation beyond the last sector.
    #[error("operation {0} of the batch reaches beyond the device's last sector")]
    OutOfRange(u32),
    /// Two operations on one sector.
    #[error("operations {0} and {1} of the batch overlap; expected each sector in one of them")]
    Overlap(u32, u32),
    /// The data are not what the writes want.
    #[error("the data of the batch are {found} bytes long; its writes take {expected}")]
    Data {
        /// Bytes that came.
        found: u32,
        /// Bytes that the writes name.
        expected: u32,
    },
    /// More than the maximum request.
    #[error("the batch takes {sectors} sectors, its trims included; a batch takes at most {most}")]
    TooLarge {
        /// What it takes: see [`crate::batch_slots`].
        sectors: u32,
        /// The maximum request.
        most: u32,
    },
}

/// Why a device could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Something is there already.
    #[error("{path}: exists already ({what}); to destroy what it holds use `vsl format`, or remove the file")]
    Exists {
        /// The target.
        path: PathBuf,
        /// What it holds.
        what: String,
    },
    /// The options do not fit together, or the operating system failed.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Why a device could not be formatted.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// A bad parameter.
    #[error("{name}: {value}: expected {expected}")]
    Invalid {
        /// Which parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// The device cannot be opened.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The operating system failed.
    #[error("{path}: {error}")]
    Io {
        /// The target.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl From<OpenError> for FormatError {
    fn from(error: OpenError) -> FormatError {
        FormatError::Attach(error.into())
    }
}

fn listed(paths: &[PathBuf], between: &str) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(between)
}

pub(crate) fn numbers(dies: &[u32]) -> String {
    dies.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Why a device could not be opened or attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The backing file cannot be opened: missing, locked, mounted, truncated.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Not one of ours.
    #[error("{path}: not an OpenVSL device ({found}); `vsl create` makes one")]
    Foreign {
        /// The device file.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// It is the journal of a device on objects, and something about that is wrong.
    #[error("{path}: {why}")]
    Objects {
        /// The journal.
        path: PathBuf,
        /// What, and what to do.
        why: String,
    },
    /// A format from the future.
    #[error("{path}: format version {found}, this program knows up to {known}; use a newer vsl")]
    Version {
        /// The device file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// What was written cannot be read back.
    #[error("{path}: damaged: {what}; restore it from a copy, or `vsl format` it to start anew")]
    Damaged {
        /// The device file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The process that had it was killed, and some of what it answered is not on the device yet.
    #[error(
        "{path}: the process that had it attached was killed, and what it answered last is still to be written back; attach it for writing once"
    )]
    Left {
        /// The device file.
        path: PathBuf,
    },
    /// The backing store has no room for what an attach for writing must write.
    #[error(
        "{path}: no space left to attach it for writing: that takes {wanted}; make room there, and attach it again"
    )]
    NoRoom {
        /// The device file.
        path: PathBuf,
        /// How many bytes, and where.
        wanted: String,
        /// It was not detached cleanly, so there is something to recover.
        unclean: bool,
    },
    /// More dies are out of service than parity can make up for.
    #[error("{path}: {} of its dies are missing or failed ({}); its parity makes up for {parity}: name the missing files", .lost.len(), numbers(.lost))]
    Degraded {
        /// The device file.
        path: PathBuf,
        /// Which dies.
        lost: Vec<u32>,
        /// How many may be lost.
        parity: u32,
    },
    /// Two files beside those that were named say that they are the same one of the device.
    #[error("{} and {} both say that they are file {die} of the device; one is a copy: name the files that belong to it", .paths[0].display(), .paths[1].display())]
    Copies {
        /// Which file of the device.
        die: u32,
        /// The two.
        paths: [PathBuf; 2],
    },
    /// Two files say that they are the same one of a device.
    #[error("{path}: a copy of file {die} of the device, or named twice; expected each file once")]
    Double {
        /// The file.
        path: PathBuf,
        /// Which file of the device it says that it is.
        die: u32,
    },
    /// A file of another device among the files of one.
    #[error("{path}: belongs to device {uuid}; expected the files of device {expected}")]
    Stranger {
        /// The file.
        path: PathBuf,
        /// Its device.
        uuid: uuid::Uuid,
        /// The device of the others.
        expected: uuid::Uuid,
    },
    /// What it is known by is attached already: it is a copy, or the same medium by another way.
    #[error("{}: the device {identity} is attached already, from {}; only if this is a copy, make it a device of its own: `vsl attach --new-identity {}`", .paths[0].display(), listed(.other, ", "), listed(.paths, " "))]
    Twin {
        /// Its files.
        paths: Vec<PathBuf>,
        /// What both are known by.
        identity: uuid::Uuid,
        /// The files of the one that is attached.
        other: Vec<PathBuf>,
    },
    /// A device that is to be taken from a store is attached in this process: to take it over would fence its own clients.
    #[error("{path}: the device {identity} is attached here already, from {}; a device is taken over from another host", listed(.other, ", "))]
    TakenHere {
        /// The journal that was to be made.
        path: PathBuf,
        /// What the device is known by.
        identity: uuid::Uuid,
        /// The journal of the one that is attached.
        other: Vec<PathBuf>,
    },
    /// What it holds was moved to another device, which has its name.
    #[error(
        "{path}: what it held was moved to another device; `vsl format` makes it an empty device, and `vsl attach --new-identity` a device of its own with what it held then"
    )]
    MovedAway {
        /// The device file.
        path: PathBuf,
    },
    /// It cannot be made a device of its own.
    #[error("{path}: it was not given a new identity: {why}")]
    NoNewIdentity {
        /// The device file.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// Not every file of a device was named.
    #[error("{path}: one of {files} files of a device; name all of them (missing: {}), also one that is lost", numbers(.missing))]
    NotAll {
        /// A file that was named.
        path: PathBuf,
        /// How many there are.
        files: u32,
        /// Which were not named.
        missing: Vec<u32>,
    },
    /// More files than parity makes up for hold what they held some time ago, and the others do not.
    #[error("{path}: old copies are in the place of its files {}, more than its parity makes up for; put the current files back, or attach with --read-only to read what is left, some of it old", numbers(.dies))]
    OldCopies {
        /// The device file.
        path: PathBuf,
        /// Which of its files.
        dies: Vec<u32>,
    },
    /// Dies are missing, and what is left may be older than they are.
    #[error("{path}: die {} is missing and not on record as failed: what is here may have fallen behind it; name its file, or attach with `--degraded` if it is gone for good", numbers(.missing))]
    MayBeBehind {
        /// The device file.
        path: PathBuf,
        /// Which dies.
        missing: Vec<u32>,
    },
    /// It is encrypted.
    #[error("{path}: it is encrypted; name its key with --passphrase-file or --key-file")]
    NeedsKey {
        /// The device file.
        path: PathBuf,
    },
    /// Encrypted, and this is not its key.
    #[error("{path}: the {kind} opens none of its key slots; `vsl status` shows which sorts of key it has")]
    WrongKey {
        /// The device file.
        path: PathBuf,
        /// What was given.
        kind: &'static str,
    },
    /// A key for a device that has none.
    #[error("{path}: a key was given, but it is not encrypted; leave the key out if that is meant")]
    NotEncrypted {
        /// The device file.
        path: PathBuf,
    },
    /// An erase was begun and did not end.
    #[error("{path}: an erase of it was cut; run `vsl sure-erase --{level}` again to finish it")]
    BeingErased {
        /// The device file.
        path: PathBuf,
        /// How it is being erased.
        level: &'static str,
    },
    /// Its witness cannot be used.
    #[error("the witness {path}: {what}")]
    Witness {
        /// The witness's file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// The medium failed while it was looked through.
    #[error("{path}: {what}")]
    Media {
        /// The device file.
        path: PathBuf,
        /// Why.
        what: String,
    },
}
