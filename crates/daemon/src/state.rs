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
    /// The address of the store from which the device is to be taken over when its owner is gone: the journal is not there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_by: Option<String>,
    /// The store's endpoint, where it is not the one that the address implies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
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
    /// A device that is just being added. Whether it is a member the array says when it is assembled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adding: Option<String>,
}

impl RememberedArray {
    /// Members, and behind them one that is just being added.
    pub fn places(&self) -> Vec<String> {
        self.members.iter().chain(&self.adding).cloned().collect()
    }
}

/// A cached volume to open at start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedCache {
    /// The volume's name in the service.
    pub name: String,
    /// Its identity.
    pub uuid: Uuid,
    /// The cache device's name in the service.
    pub cache: String,
    /// What stands behind.
    pub behind: RememberedBehind,
    /// What becomes of writes, by name.
    pub mode: String,
    /// Its weight among the volumes of the cache device.
    #[serde(default = "usual_share", skip_serializing_if = "is_usual_share")]
    pub share: u32,
    /// Bytes that it may hold there at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
}

/// The share of a volume for which none was given.
pub const USUAL_SHARE: u32 = 100;

fn usual_share() -> u32 {
    USUAL_SHARE
}

fn is_usual_share(share: &u32) -> bool {
    *share == USUAL_SHARE
}

/// What stands behind a cached volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RememberedBehind {
    /// A device, by its name in the service.
    Device(String),
    /// A file or block device as it is, by its absolute path.
    Path(PathBuf),
    /// An export of an NBD server, or a namespace of an NVMe subsystem.
    Address(String),
}

impl RememberedBehind {
    /// In words.
    pub fn name(&self) -> String {
        match self {
            RememberedBehind::Device(name) | RememberedBehind::Address(name) => name.clone(),
            RememberedBehind::Path(path) => path.display().to_string(),
        }
    }
}

impl RememberedCache {
    /// Whether a device of this name caches it, or stands behind.
    pub fn uses(&self, device: &str) -> bool {
        self.cache == device || self.behind == RememberedBehind::Device(device.to_owned())
    }
}

/// A move that goes on when the service starts again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedMove {
    /// The name of the device that is being moved.
    pub device: String,
    /// Its identity, which the new device gets with the hand-over.
    pub identity: Uuid,
    /// Where the device lies.
    pub from: String,
    /// The name of the new device for as long as the move takes.
    pub target: String,
    /// Where the new device lies.
    pub to: String,
    /// The identity that the new device has until then.
    pub to_identity: Uuid,
    /// Where the key of the new device is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_key_file: Option<PathBuf>,
    /// The move made the new device, and removes its file when it is cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
}

/// A device that was moved away, and does not say so on its files yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedAway {
    /// Where it lies.
    pub path: String,
    /// The identity that another device has now.
    pub identity: Uuid,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default, rename = "device", skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Remembered>,
    #[serde(default, rename = "array", skip_serializing_if = "Vec::is_empty")]
    arrays: Vec<RememberedArray>,
    #[serde(default, rename = "cache", skip_serializing_if = "Vec::is_empty")]
    caches: Vec<RememberedCache>,
    #[serde(default, rename = "move", skip_serializing_if = "Vec::is_empty")]
    moves: Vec<RememberedMove>,
    #[serde(default, rename = "moved-away", skip_serializing_if = "Vec::is_empty")]
    moved_away: Vec<MovedAway>,
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

    /// The array that a device of this name is a member of, or is just being added to.
    pub fn array_of(&self, member: &str) -> Option<&RememberedArray> {
        self.contents.arrays.iter().find(|array| array.members.iter().chain(&array.adding).any(|name| name == member))
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

    /// The cached volumes to open at start.
    pub fn caches(&self) -> &[RememberedCache] {
        &self.contents.caches
    }

    /// A cached volume that a device of this name caches, or stands behind.
    pub fn cache_of(&self, device: &str) -> Option<&RememberedCache> {
        self.contents.caches.iter().find(|cache| cache.uses(device))
    }

    /// Remembers a cached volume, in place of one of the same name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remember_cache(&mut self, cache: RememberedCache) -> Result<(), Failure> {
        self.contents.caches.retain(|other| other.name != cache.name);
        self.contents.caches.push(cache);
        self.save()
    }

    /// Forgets a cached volume.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget_cache(&mut self, name: &str) -> Result<(), Failure> {
        self.contents.caches.retain(|cache| cache.name != name);
        self.save()
    }

    /// The moves that are under way.
    pub fn moves(&self) -> &[RememberedMove] {
        &self.contents.moves
    }

    /// The devices that do not say yet that they were moved away.
    pub fn moved_away(&self) -> &[MovedAway] {
        &self.contents.moved_away
    }

    /// The move that a device of this name has a part in.
    pub fn move_of(&self, name: &str) -> Option<&RememberedMove> {
        self.contents.moves.iter().find(|one| one.device == name || one.target == name)
    }

    /// Remembers a move that begins.
    ///
    /// # Errors
    /// The file cannot be written; then nothing is remembered.
    pub fn move_begins(&mut self, begun: RememberedMove) -> Result<(), Failure> {
        self.change(|contents| contents.moves.push(begun))
    }

    /// Forgets a move that came to nothing.
    ///
    /// # Errors
    /// The file cannot be written; then it is still remembered.
    pub fn move_ends(&mut self, device: &str) -> Result<(), Failure> {
        self.change(|contents| contents.moves.retain(|one| one.device != device))
    }

    /// The new device of a move takes the place of the old one, in one step: `device` is how it is attached at start, if it is.
    ///
    /// # Errors
    /// The file cannot be written; then the old device has its place.
    pub fn hand_over(&mut self, done: &RememberedMove, device: Option<Remembered>) -> Result<(), Failure> {
        self.change(|contents| {
            contents.moves.retain(|one| one.device != done.device);
            contents.devices.retain(|one| one.name != done.target);
            if let Some(device) = device {
                contents.devices.iter_mut().filter(|one| one.name == done.device).for_each(|one| *one = device.clone());
            }
            contents.moved_away.push(MovedAway { path: done.from.clone(), identity: done.identity });
        })
    }

    /// A device that was moved away says so on its files.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn is_marked(&mut self, marked: &MovedAway) -> Result<(), Failure> {
        self.change(|contents| contents.moved_away.retain(|one| one != marked))
    }

    /// Changes it, here and in the file or in neither.
    fn change(&mut self, change: impl FnOnce(&mut Contents)) -> Result<(), Failure> {
        let before = self.contents.clone();
        change(&mut self.contents);
        self.save().inspect_err(|_| {
            self.contents = before;
            // Where the file was put in place and its directory could not be made durable, the file says too much.
            if let Err(again) = self.save() {
                tracing::error!("{again}");
            }
        })
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
        let (stand_by, endpoint, erasing) = (None, None, true);
        let name = name.into();
        self.remember(Remembered { name, path, read_only, key_file, witness, erasing, stand_by, endpoint })
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
        let (key_file, witness, stand_by, endpoint) = (None, None, None, None);
        Remembered { name, path, read_only, key_file, witness, erasing: false, stand_by, endpoint }
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
    fn a_hand_over_changes_everything_or_nothing() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("devices.toml");
        let mut state = StateFile::open(path.clone()).expect("missing is empty");
        state.remember(device("a", "/old.vsl")).expect("saved");
        state.remember(device("new", "/new.vsl")).expect("saved");
        let begun = RememberedMove {
            device: "a".into(),
            identity: Uuid::from_u128(1),
            from: "/old.vsl".into(),
            target: "new".into(),
            to: "/new.vsl".into(),
            to_identity: Uuid::from_u128(2),
            to_key_file: None,
            made: true,
        };
        state.move_begins(begun.clone()).expect("saved");
        let mut state = StateFile::open(path.clone()).expect("parsed");
        assert_eq!(state.moves(), std::slice::from_ref(&begun));
        assert_eq!((state.move_of("a"), state.move_of("new"), state.move_of("b")), (Some(&begun), Some(&begun), None));

        // A directory stands where the file's successor is written.
        let aside = directory.path().join("aside");
        std::fs::rename(directory.path().join("devices.toml"), &aside).expect("moved");
        std::fs::create_dir_all(path.join("in-the-way")).expect("made");
        state.hand_over(&begun, Some(device("a", "/new.vsl"))).expect_err("it cannot be written");
        assert_eq!((state.devices().len(), state.moves().len(), state.moved_away().len()), (2, 1, 0));
        std::fs::remove_dir_all(&path).expect("removed");
        std::fs::rename(&aside, &path).expect("moved back");

        state.hand_over(&begun, Some(device("a", "/new.vsl"))).expect("saved");
        let mut state = StateFile::open(path.clone()).expect("parsed");
        assert_eq!((state.devices(), state.moves()), (&[device("a", "/new.vsl")][..], &[][..]));
        let marked = MovedAway { path: "/old.vsl".into(), identity: Uuid::from_u128(1) };
        assert_eq!(state.moved_away(), std::slice::from_ref(&marked));
        state.is_marked(&marked).expect("saved");
        assert!(StateFile::open(path).expect("parsed").moved_away().is_empty());
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
