//! What a user may name as a device: a file or block device, or memory.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Failure;

/// Sector size of a memory device, bytes.
const MEMORY_SECTOR_BYTES: u32 = 4096;

/// Where a device's data lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A device file or block device.
    File(PathBuf),
    /// A throw-away device in memory, this many bytes large.
    Memory(u64),
}

impl Target {
    /// Parses `memory:SIZE` or a path.
    ///
    /// # Errors
    /// The size is none, or not a number of sectors.
    pub fn parse(text: &str) -> Result<Target, Failure> {
        let Some(bytes) = text.strip_prefix("memory:") else {
            if text.is_empty() {
                return Err(Failure::invalid("the device's path is empty").help("name a device file, or memory:SIZE"));
            }
            return Ok(Target::File(PathBuf::from(text)));
        };
        let bytes = size::parse(bytes).map_err(|error| {
            Failure::invalid(format!("{text}: {error}")).help("write a file called so as ./memory:...")
        })?;
        if bytes == 0 || !bytes.is_multiple_of(u64::from(MEMORY_SECTOR_BYTES)) {
            return Err(Failure::invalid(format!(
                "{text}: {bytes} bytes are not a number of {MEMORY_SECTOR_BYTES}-byte sectors"
            ))
            .help("choose a multiple of 4KiB"));
        }
        Ok(Target::Memory(bytes))
    }

    /// The same whatever the working directory is, and whichever link leads there.
    ///
    /// # Errors
    /// There is no such file.
    pub fn absolute(self) -> Result<Target, Failure> {
        match self {
            Target::File(path) => {
                let full = std::fs::canonicalize(&path).map_err(|error| Failure::io(&path, &error))?;
                Ok(Target::File(full))
            }
            memory => Ok(memory),
        }
    }

    /// The name that it gets when none is asked for.
    pub fn default_name(&self) -> String {
        match self {
            Target::File(path) => path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            Target::Memory(_) => "memory".into(),
        }
    }

    /// Opens it on the calling thread.
    ///
    /// # Errors
    /// See [`device::AttachError`].
    pub fn attach(
        &self,
        options: &device::AttachOptions,
        ring: &media::ring::SharedRing,
    ) -> Result<device::Device, device::AttachError> {
        match self {
            Target::File(path) => device::Device::attach(path, options, ring),
            Target::Memory(bytes) => device::Device::memory(*bytes, MEMORY_SECTOR_BYTES).map_err(|error| match error {
                device::FormatError::Attach(error) => error,
                error => device::AttachError::Media { path: self.to_string().into(), what: error.to_string() },
            }),
        }
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Target::File(path) => Some(path),
            Target::Memory(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File(path) => write!(f, "{}", path.display()),
            Target::Memory(bytes) => write!(f, "memory:{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_parse() {
        assert_eq!(Target::parse("memory:1MiB"), Ok(Target::Memory(1 << 20)));
        assert_eq!(Target::parse("./memory:1MiB"), Ok(Target::File("./memory:1MiB".into())));
        assert_eq!(Target::parse("a/fct0.vsl").expect("file").default_name(), "fct0");
        assert_eq!(Target::parse("/dev/sdb").expect("file").default_name(), "sdb");
    }

    #[test]
    fn bad_targets_are_named() {
        for (text, message) in [
            ("", "is empty"),
            ("memory:", "memory:: '' is not a size"),
            ("memory:1000", "memory:1000: 1000 bytes are not a number of 4096-byte sectors"),
            ("memory:0", "memory:0: 0 bytes"),
        ] {
            let failure = Target::parse(text).expect_err(text);
            assert!(failure.error.contains(message), "{}", failure.error);
            assert!(!failure.help.is_empty());
        }
    }

    #[test]
    fn a_missing_file_is_not_found() {
        let failure = Target::File("/nowhere/x.vsl".into()).absolute().expect_err("missing");
        assert_eq!(failure.kind, crate::Kind::NotFound);
        assert!(failure.error.starts_with("/nowhere/x.vsl: "), "{}", failure.error);
    }
}
