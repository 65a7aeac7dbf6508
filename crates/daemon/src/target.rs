//! What a user may name as a device: a file or block device, several of them with commas in between, or memory.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Failure;

/// Sector size of a memory device, bytes.
const MEMORY_SECTOR_BYTES: u32 = 4096;

/// Where a device's data lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Its device files or block devices.
    Files(Vec<PathBuf>),
    /// A throw-away device in memory, this many bytes large.
    Memory(u64),
    /// An array of attached devices, by their names. Nobody names it so.
    Array(Vec<String>),
    /// A volume that an attached device caches, by its name, and what stands behind. Nobody names it so.
    Cached(String, String),
}

impl Target {
    /// Parses `memory:SIZE`, a path, or paths with commas in between.
    ///
    /// # Errors
    /// The size is none, or not a number of sectors.
    pub fn parse(text: &str) -> Result<Target, Failure> {
        let Some(bytes) = text.strip_prefix("memory:") else {
            if text.is_empty() {
                return Err(Failure::invalid("the device's path is empty").help("name a device file, or memory:SIZE"));
            }
            // A file may have a comma in its name.
            if !text.contains(',') || Path::new(text).exists() {
                return Ok(Target::Files(vec![PathBuf::from(text)]));
            }
            return Ok(Target::Files(text.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect()));
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
            Target::Files(paths) => {
                let alone = paths.len() == 1;
                let full = |path: PathBuf| match std::fs::canonicalize(&path) {
                    Ok(full) => Ok(full),
                    // One of several may be missing: the device goes on without it, where it can.
                    Err(_) if !alone => std::path::absolute(&path).map_err(|error| Failure::io(&path, &error)),
                    Err(error) => Err(Failure::io(&path, &error)),
                };
                Ok(Target::Files(paths.into_iter().map(full).collect::<Result<_, _>>()?))
            }
            other => Ok(other),
        }
    }

    /// The same of a file that is to be made: only its directory must be there.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn absolute_new(self) -> Result<Target, Failure> {
        match self {
            Target::Files(paths) => {
                let full = |path: PathBuf| match (path.parent(), path.file_name()) {
                    (Some(parent), Some(name)) => {
                        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                        let parent = std::fs::canonicalize(parent).map_err(|error| Failure::io(parent, &error))?;
                        Ok(parent.join(name))
                    }
                    _ => Err(Failure::invalid(format!("{}: no path of a file", path.display()))),
                };
                Ok(Target::Files(paths.into_iter().map(full).collect::<Result<_, _>>()?))
            }
            other => Ok(other),
        }
    }

    /// With the files of the device that lie beside those that were named, where it has more. Who wants it `degraded` has named
    /// those that are to be used, if they are enough.
    ///
    /// # Errors
    /// There are copies among them.
    pub fn with_members(mut self, degraded: bool) -> Result<Target, Failure> {
        if let Target::Files(paths) = &mut self {
            let infos = paths.iter().filter_map(|path| device::inspect(path).ok());
            let enough = |info: device::Info| paths.len() >= (info.files - info.parity_files.min(info.files)) as usize;
            if !(degraded && infos.into_iter().next().is_some_and(enough)) {
                paths.extend(device::members::beside(paths)?);
            }
        }
        Ok(self)
    }

    /// The name that it gets when none is asked for.
    pub fn default_name(&self) -> String {
        match self {
            Target::Files(paths) => {
                let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
                path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
            Target::Memory(_) => "memory".into(),
            Target::Array(_) => "array".into(),
            Target::Cached(..) => "cached".into(),
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
            Target::Files(paths) => device::Device::attach(paths, options, ring),
            Target::Memory(bytes) => device::Device::memory(*bytes, MEMORY_SECTOR_BYTES).map_err(|error| match error {
                device::FormatError::Attach(error) => error,
                error => device::AttachError::Media { path: self.to_string().into(), what: error.to_string() },
            }),
            Target::Array(_) | Target::Cached(..) => {
                let what = "an array is assembled and a cached volume opened, not attached".into();
                Err(device::AttachError::Media { path: self.to_string().into(), what })
            }
        }
    }

    /// Its files, unless it is memory.
    pub fn paths(&self) -> Option<&[PathBuf]> {
        match self {
            Target::Files(paths) => Some(paths),
            Target::Memory(_) | Target::Array(_) | Target::Cached(..) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Files(paths) => {
                let words: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
                f.write_str(&words.join(","))
            }
            Target::Memory(bytes) => write!(f, "memory:{bytes}"),
            Target::Array(members) => write!(f, "array of {}", members.join(", ")),
            Target::Cached(cache, behind) => write!(f, "{behind} cached by {cache}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_parse() {
        assert_eq!(Target::parse("memory:1MiB"), Ok(Target::Memory(1 << 20)));
        assert_eq!(Target::parse("./memory:1MiB"), Ok(Target::Files(vec!["./memory:1MiB".into()])));
        assert_eq!(Target::parse("a/fct0.vsl").expect("file").default_name(), "fct0");
        assert_eq!(Target::parse("/dev/sdb").expect("file").default_name(), "sdb");
        let several = Target::parse("a/d0.vsl,b/d1.vsl").expect("files");
        assert_eq!(several, Target::Files(vec!["a/d0.vsl".into(), "b/d1.vsl".into()]));
        assert_eq!((several.default_name(), several.to_string()), ("d0".into(), "a/d0.vsl,b/d1.vsl".into()));
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
        let failure = Target::Files(vec!["/nowhere/x.vsl".into()]).absolute().expect_err("missing");
        assert_eq!(failure.kind, crate::Kind::NotFound);
        assert!(failure.error.starts_with("/nowhere/x.vsl: "), "{}", failure.error);
    }
}
