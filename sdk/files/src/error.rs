//! What can go wrong, in types.

use rustix::io::Errno;

/// Why nothing was done. Unless it says otherwise, nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The device holds something else, or nothing.
    #[error("the device holds no files: {why}")]
    NoFiles {
        /// What was found.
        why: String,
    },
    /// A directory of files can only be made on a device that holds nothing.
    #[error("the device is not empty; format it first")]
    NotEmpty,
    /// A number that cannot be.
    #[error("{name} cannot be {value}; expected {expected}")]
    Invalid {
        /// What.
        name: &'static str,
        /// What it was.
        value: u64,
        /// What is possible.
        expected: String,
    },
    /// A name, or a file, that is not there.
    #[error("there is no such file")]
    NotFound,
    /// The name is taken.
    #[error("the name is taken")]
    Exists,
    /// A directory that holds something.
    #[error("the directory is not empty")]
    DirectoryNotEmpty,
    /// A directory is wanted.
    #[error("not a directory")]
    NotADirectory,
    /// A file is wanted.
    #[error("a directory")]
    IsADirectory,
    /// A name that no file can have.
    #[error("a name of {len} bytes: 1 to 255 are possible, without a slash")]
    Name {
        /// How long it was.
        len: usize,
    },
    /// No number is left for another file.
    #[error("the device holds {max} files, which is the most")]
    TooMany {
        /// How many there can be.
        max: u64,
    },
    /// A file would reach beyond its range.
    #[error("a file ends at {max} bytes at most; {end} were asked for")]
    TooLong {
        /// Where it would end.
        end: u64,
        /// Where it may end.
        max: u64,
    },
    /// A directory cannot be moved into itself.
    #[error("a directory cannot be moved into itself")]
    Loop,
    /// A change of several parts of a file is more than the device makes atomic.
    #[error("a change of {bytes} bytes is more than the {max} that the device makes atomic")]
    NotAtomic {
        /// How long it was.
        bytes: u64,
        /// How long it may be.
        max: u64,
    },
    /// The device failed or refused.
    #[error(transparent)]
    Device(#[from] openvsl::Error),
}

impl FilesError {
    /// What a system call says of it.
    pub fn errno(&self) -> Errno {
        match self {
            FilesError::NotFound => Errno::NOENT,
            FilesError::Exists => Errno::EXIST,
            FilesError::DirectoryNotEmpty => Errno::NOTEMPTY,
            FilesError::NotADirectory => Errno::NOTDIR,
            FilesError::IsADirectory => Errno::ISDIR,
            FilesError::Name { len: 256.. } => Errno::NAMETOOLONG,
            FilesError::TooMany { .. } | FilesError::Device(openvsl::Error::NoSpace) => Errno::NOSPC,
            FilesError::TooLong { .. } => Errno::FBIG,
            FilesError::Device(openvsl::Error::ReadOnly) => Errno::ROFS,
            FilesError::Device(_) => Errno::IO,
            _ => Errno::INVAL,
        }
    }
}
