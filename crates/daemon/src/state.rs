//! What the service remembers across restarts: the devices to attach. Settings are kept on the devices themselves.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Failure, stored};

/// What the file begins with, for whoever looks into it.
const HEAD: &str = "# Kept by the OpenVSL service: devices to attach when it starts.\n";

/// A device to attach at start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// Its name in the service.
    pub name: String,
    /// Its file, absolute, or its files with commas in between.
    pub path: String,
    /// Take no writes.
    #[serde(default)]
    pub read_only: bool,
    /// Where the key of an encrypted device is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Where its witness is: from then on it is attached with it only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<PathBuf>,
    /// Only until its erase is done: who stops the service meanwhile finds it named afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erasing: bool,
}

/// An array to assemble at start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedArray {
    /// Its name in the service.
    pub name: String,
    /// Its identity.
    pub uuid: Uuid,
    /// How members make one device.
    pub level: array::Level,
    /// Of RAID 0, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_bytes: Option<u64>,
    /// Its members' names in the service, by position.
    pub members: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default, rename = "device", skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Remembered>,
    #[serde(default, rename = "array", skip_serializing_if = "Vec::is_empty")]
    arrays: Vec<RememberedArray>,
}

/// The file, and what it says.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    contents: Contents,
}

impl StateFile {
    /// Reads the file; a missing one remembers nothing.
    ///
    /// # Errors
    /// It cannot be read, or somebody edited it into something else.
    pub fn open(path: PathBuf) -> Result<StateFile, Failure> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::io(&path, &error)),
        };
        let contents = parse(&text).map_err(|what| {
            Failure::failed(format!("{}: {what}", path.display()))
                .help("correct the file, or remove it to start with no devices")
        })?;
        Ok(StateFile { path, contents })
    }

    /// Where else something is kept that outlives the service.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The devices to attach at start.
    pub fn devices(&self) -> &[Remembered] {
        &self.contents.devices
    }

    /// The arrays to assemble at start.
    pub fn arrays(&self) -> &[RememberedArray] {
        &self.contents.arrays
    }

    /// The array that a device of this name is a member of.
    pub fn array_of(&self, member: &str) -> Option<&RememberedArray> {
        self.contents.arrays.iter().find(|array| array.members.iter().any(|name| name == member))
    }

    /// Remembers an array, in place of one of the same name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remember_array(&mut self, array: RememberedArray) -> Result<(), Failure> {
        self.contents.arrays.retain(|other| other.name != array.name);
        self.contents.arrays.push(array);
        self.save()
    }

    /// Forgets an array.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget_array(&mut self, name: &str) -> Result<(), Failure> {
        self.contents.arrays.retain(|array| array.name != name);
        self.save()
    }

    /// Whether a device of this name is attached at start.
    pub fn remembers(&self, name: &str) -> bool {
        self.contents.devices.iter().any(|device| device.name == name && !device.erasing)
    }

    /// Remembers a device that is being erased, unless it is remembered anyway.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn erase_begins(&mut self, name: &str, path: String) -> Result<(), Failure> {
        if self.contents.devices.iter().any(|device| device.name == name) {
            return Ok(());
        }
        let (read_only, key_file, witness) = (false, None, None);
        self.remember(Remembered { name: name.into(), path, read_only, key_file, witness, erasing: true })
    }

    /// Forgets a device that was remembered because it was being erased.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn erase_ends(&mut self, name: &str) -> Result<(), Failure> {
        if self.contents.devices.iter().any(|device| device.name == name && device.erasing) {
            return self.forget(name);
        }
        Ok(())
    }

    /// Remembers a device, in place of one of the same name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remember(&mut self, device: Remembered) -> Result<(), Failure> {
        self.contents.devices.retain(|other| other.name != device.name);
        self.contents.devices.push(device);
        self.save()
    }

    /// Forgets a device.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget(&mut self, name: &str) -> Result<(), Failure> {
        let before = self.contents.devices.len();
        self.contents.devices.retain(|device| device.name != name);
        if self.contents.devices.len() == before { Ok(()) } else { self.save() }
    }

    fn save(&self) -> Result<(), Failure> {
        let fail = |error: &std::io::Error| {
            Failure::failed(format!("{}: cannot be written: {error}", self.path.display()))
                .help("what was changed holds until the service stops; make the directory writable to keep it")
        };
        let text = toml::to_string(&self.contents).map_err(|error| fail(&std::io::Error::other(error)))?;
        stored::replace(&self.path, format!("{HEAD}{text}").as_bytes()).map_err(|error| fail(&error))
    }
}

fn parse(text: &str) -> Result<Contents, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned())
}

/// The devices that such a file's text remembers.
///
/// # Errors
/// It is something else, and where.
pub fn remembered(text: &str) -> Result<Vec<Remembered>, String> {
    parse(text).map(|contents| contents.devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, path: &str) -> Remembered {
        let (name, path, read_only) = (name.to_string(), path.into(), name == "b");
        Remembered { name, path, read_only, key_file: None, witness: None, erasing: false }
    }

    #[test]
    fn what_is_remembered_comes_back() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("devices.toml");
        let mut state = StateFile::open(path.clone()).expect("missing is empty");
        assert!(state.devices().is_empty());
        state.remember(device("a", "/a.vsl")).expect("saved");
        state.remember(device("b", "/b.vsl")).expect("saved");
        state.remember(device("a", "/c.vsl")).expect("saved");
        let mut state = StateFile::open(path.clone()).expect("parsed");
        assert_eq!(state.devices(), [device("b", "/b.vsl"), device("a", "/c.vsl")]);
        assert!(state.remembers("b"));
        state.forget("b").expect("saved");
        let state = StateFile::open(path).expect("parsed");
        assert_eq!(state.devices(), [device("a", "/c.vsl")]);
    }

    #[test]
    fn an_erase_is_remembered_until_it_is_done() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("devices.toml");
        let mut state = StateFile::open(path.clone()).expect("missing is empty");
        state.remember(device("a", "/a.vsl")).expect("saved");
        for name in ["a", "e"] {
            state.erase_begins(name, format!("/{name}.vsl")).expect("saved");
        }
        let mut state = StateFile::open(path).expect("parsed");
        assert_eq!(state.devices().iter().map(|device| device.erasing).collect::<Vec<_>>(), [false, true]);
        assert!(state.remembers("a") && !state.remembers("e"), "it is not for every start");
        for name in ["a", "e"] {
            state.erase_ends(name).expect("saved");
        }
        assert_eq!(state.devices(), [device("a", "/a.vsl")]);
    }

    #[test]
    fn a_damaged_file_is_named() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("devices.toml");
        for text in ["device = 3", "[[device]]\nname = \"a\"", "[[device]]\nname=\"a\"\npath=\"/a\"\ncolour=1", "\u{0}"]
        {
            std::fs::write(&path, text).expect("written");
            let failure = StateFile::open(path.clone()).expect_err(text);
            assert!(failure.error.contains("devices.toml"), "{}", failure.error);
            assert!(failure.help.contains("remove it"), "{}", failure.help);
        }
    }

    #[test]
    fn a_directory_that_is_gone_is_an_error() {
        let directory = tempfile::tempdir().expect("tempdir");
        let mut state = StateFile::open(directory.path().join("gone/devices.toml")).expect("empty");
        let failure = state.remember(device("a", "/a")).expect_err("cannot be written");
        assert!(failure.error.contains("gone/devices.toml: cannot be written"), "{}", failure.error);
    }
}
