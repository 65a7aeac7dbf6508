//! Services that start again after they were killed at the moments of a hand-over that no test can hit by chance.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use device::{AttachOptions, Capacity, CreateOptions, Device, FormatOptions};
use media::ring::Ring;
use uuid::Uuid;

use super::*;
use crate::exports::{Exports, Listen};
use crate::state::{Remembered, StateFile};

struct Place {
    directory: tempfile::TempDir,
    identity: Uuid,
    to_identity: Uuid,
}

impl Place {
    /// Two devices; the old one is remembered as `db`, and a move of it to the new one.
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        let made = |name: &str| {
            let format = FormatOptions { sector_bytes: 4096, capacity: Capacity::Advertised, label: name.into() };
            let (advertised_bytes, raw_bytes) = (16 << 20, 128 << 20);
            let options = CreateOptions { advertised_bytes, raw_bytes, profile: None, parity: 0, format };
            device::create(&[directory.path().join(name)], &options).expect("made").uuid
        };
        let (identity, to_identity) = (made("old.vsl"), made("new.vsl"));
        Place { directory, identity, to_identity }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn state(&self) -> StateFile {
        StateFile::open(self.path("devices.toml")).expect("parsed")
    }

    fn remembered(&self, path: &str) -> Remembered {
        let (name, path) = ("db".into(), self.text(path));
        let (key_file, witness, stand_by, endpoint) = (None, None, None, None);
        Remembered { name, path, read_only: false, key_file, witness, erasing: false, stand_by, endpoint }
    }

    fn begun(&self) -> RememberedMove {
        RememberedMove {
            device: "db".into(),
            identity: self.identity,
            from: self.text("old.vsl"),
            target: "db-new".into(),
            to: self.text("new.vsl"),
            to_identity: self.to_identity,
            to_key_file: None,
            made: true,
        }
    }

    /// The new device is attached in the old one's place, as at a hand-over, and detached.
    fn take_identity(&self) {
        let options = AttachOptions { identity: Some(self.identity), ..AttachOptions::default() };
        let ring = Ring::new(64).expect("a ring");
        let device = Device::attach(&[self.path("new.vsl")], &options, &ring).expect("attached");
        device.detach().expect("detached");
    }

    fn start(&self) -> Arc<Registry> {
        let exports = Exports::start(&self.path("nbd.sock"), None, Vec::new(), &Listen::default()).expect("listens");
        let registry = Arc::new(Registry::new(exports, self.state(), None).expect("opened"));
        registry.attach_remembered();
        registry
    }
}

fn uuid(path: &Path) -> Uuid {
    device::inspect(path).expect("a device").uuid
}

fn until_moved(registry: &Registry) {
    let end = Instant::now() + Duration::from_secs(60);
    while registry.device_move("db").expect("it is being moved").state != "moved" {
        assert!(Instant::now() < end, "{:?}", registry.device_move("db"));
        std::thread::sleep(LOOK);
    }
}

/// Killed once the new device had the identity, and before the state file said so: the old one is the device, and the move goes on.
#[test]
fn a_hand_over_that_was_not_committed_is_taken_back_and_done_again() {
    let place = Place::new();
    let mut state = place.state();
    state.remember(place.remembered("old.vsl")).expect("saved");
    state.move_begins(place.begun()).expect("saved");
    place.take_identity();
    assert_eq!((uuid(&place.path("old.vsl")), uuid(&place.path("new.vsl"))), (place.identity, place.identity));

    let registry = place.start();
    until_moved(&registry);
    let view = registry.view("db").expect("attached");
    assert_eq!((view.text("path"), view.text("state")), (&*place.text("new.vsl"), "attached"));
    assert!(device::inspect(&place.path("old.vsl")).expect("a device").is_moved_away());
    let state = place.state();
    assert_eq!(state.devices(), [place.remembered("new.vsl")]);
    assert!(state.moves().is_empty() && state.moved_away().is_empty());
    assert!(registry.stop_all().is_empty());
}

/// Killed right behind the change of the state file: the new one is the device, and the old one says that it is not.
#[test]
fn a_hand_over_that_was_committed_stands() {
    let place = Place::new();
    let mut state = place.state();
    state.remember(place.remembered("old.vsl")).expect("saved");
    state.move_begins(place.begun()).expect("saved");
    place.take_identity();
    state.hand_over(&place.begun(), Some(place.remembered("new.vsl"))).expect("saved");

    let registry = place.start();
    let view = registry.view("db").expect("attached");
    assert_eq!((view.text("path"), view.text("state")), (&*place.text("new.vsl"), "attached"));
    assert_eq!(uuid(&place.path("new.vsl")), place.identity);
    assert!(device::inspect(&place.path("old.vsl")).expect("a device").is_moved_away());
    assert!(place.state().moved_away().is_empty());
    assert!(registry.stop_all().is_empty());
}

/// An old device that could not be marked, since it was not there, is refused as soon as it is.
#[test]
fn an_old_device_that_comes_back_is_marked_before_it_is_attached() {
    let place = Place::new();
    let mut state = place.state();
    state.remember(place.remembered("old.vsl")).expect("saved");
    state.move_begins(place.begun()).expect("saved");
    place.take_identity();
    state.hand_over(&place.begun(), Some(place.remembered("new.vsl"))).expect("saved");
    std::fs::rename(place.path("old.vsl"), place.path("aside.vsl")).expect("moved");

    let registry = place.start();
    assert_eq!(place.state().moved_away().len(), 1, "it is not forgotten");
    registry.detach("db", false).expect("detached");
    std::fs::rename(place.path("aside.vsl"), place.path("old.vsl")).expect("moved back");
    let request = crate::api::AttachRequest { path: place.text("old.vsl"), ..Default::default() };
    let refused = registry.attach(&request).expect_err("refused");
    assert!(refused.error.contains("was moved to another device"), "{refused}");
    assert!(place.state().moved_away().is_empty());
    assert!(registry.stop_all().is_empty());
}

/// Killed while it copied, and the new device is gone: the old one serves, and there is no move any more.
#[test]
fn a_move_whose_new_device_is_gone_is_over_after_a_restart() {
    let place = Place::new();
    let mut state = place.state();
    state.remember(place.remembered("old.vsl")).expect("saved");
    state.move_begins(place.begun()).expect("saved");
    std::fs::remove_file(place.path("new.vsl")).expect("removed");

    let registry = place.start();
    let view = registry.view("db").expect("attached");
    assert_eq!((view.text("path"), view.text("state")), (&*place.text("old.vsl"), "attached"));
    assert!(place.state().moves().is_empty());
    assert_eq!(uuid(&place.path("old.vsl")), place.identity);
    assert!(registry.stop_all().is_empty());
}

/// The state file cannot be written at the hand-over: the device stays where it is, and what the move made is gone.
#[test]
fn a_hand_over_that_cannot_be_noted_does_not_happen() {
    let place = Place::new();
    let mut state = place.state();
    state.remember(place.remembered("old.vsl")).expect("saved");
    state.move_begins(place.begun()).expect("saved");
    let registry = place.start();
    until_moved(&registry);
    // The next one fails: a directory stands in the way of the file's successor.
    let handle = registry.handle("db").expect("attached");
    let before = handle.info().expect("the thread is there").paths;
    let one = registry.moves().get("db").cloned().expect("known");
    std::fs::create_dir_all(place.path("devices.toml.new/in-the-way")).expect("made");
    let back = RememberedMove { from: place.text("new.vsl"), to: place.text("old.vsl"), ..one.remembered.clone() };
    let target = Target::parse(&back.to).expect("a path");
    registry.commit(&back, target, Key::default()).expect_err("it cannot be noted");
    assert_eq!(registry.view("db").expect("attached").text("path"), before[0].display().to_string());
    assert_eq!(registry.table().state.devices(), [place.remembered("new.vsl")]);
    // Nor does one begin that could not be remembered.
    let request = MoveRequest { path: Some(place.path("other.vsl")), ..MoveRequest::default() };
    registry.migrate("db", &request).expect_err("it cannot be noted");
    assert!(!place.path("other.vsl").exists(), "what it made is gone");
    assert!(registry.stop_all().is_empty());
}
