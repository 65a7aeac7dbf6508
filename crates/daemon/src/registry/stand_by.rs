//! Standing by: this service watches a device on objects that another host has, and takes it over when its owner is gone.
//!
//! Each device that it stands by for has a thread, which looks at the anchor again and again. It measures with this machine's steady clock how long
//! the anchor has not changed, and never looks at another machine's. What it takes the device by is the same condition that fences every owner, for
//! the very anchor that it watched: an owner that wrote meanwhile keeps the device.
//!
//! A service that dies in the middle of a take-over finds its own unfinished journal at the next start, and goes on with it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use device::{AttachOptions, Place, Seen};
use media::object::{Anchor, AnchorId, Claim, NotesFile, Watch, steady_ms};

use super::objects::{journal_path, place};
use super::table::{Entry, Key, Phase};
use super::{Registry, secret};
use crate::api::{AttachRequest, DeviceView, FromStore};
use crate::state::Remembered;
use crate::{Failure, Target, names};

/// How long the store may take for one look.
const PATIENCE: Duration = Duration::from_secs(10);

/// A device for which this service stands by.
pub(super) struct StandBy {
    place: Place,
    seen: Mutex<State>,
    told: Condvar,
}

#[derive(Default)]
struct State {
    /// How it stands, in words.
    words: String,
    /// Nobody wants it any more.
    over: bool,
    /// It is just taking the device.
    taking: bool,
}

impl StandBy {
    fn new(place: Place) -> Arc<StandBy> {
        let state = State { words: "stands by: the store was not asked yet".into(), ..State::default() };
        Arc::new(StandBy { place, seen: Mutex::new(state), told: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole between any two statements.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it stands, in words.
    pub fn in_words(&self) -> String {
        self.state().words.clone()
    }

    fn says(&self, words: String) {
        self.state().words = words;
    }

    /// Ends it, unless it is just taking the device.
    pub fn end(&self) -> Result<(), Failure> {
        let mut state = self.state();
        if state.taking {
            return Err(Failure::conflict("it is just taking the device over").help("try again when that is done"));
        }
        state.over = true;
        drop(state);
        self.told.notify_all();
        Ok(())
    }

    /// Waits for a while; false once it is over.
    fn rest(&self, ms: u64) -> bool {
        let state = self.state();
        let waited = self.told.wait_timeout_while(state, Duration::from_millis(ms), |state| !state.over);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.over
    }

    /// Whether it may take the device now; nothing ends it then before [`StandBy::took`].
    fn begin(&self) -> bool {
        let mut state = self.state();
        state.taking = !state.over;
        state.taking
    }

    fn took(&self) {
        self.state().taking = false;
    }
}

/// What the store says, in words.
fn in_words(anchor: &Anchor, left_ms: Option<u64>) -> String {
    let Anchor { host, epoch, released, .. } = anchor;
    match (left_ms, released) {
        (None, _) => format!(
            "stands by in vain: the device has no lease, and host `{host}` has it as owner {epoch}; attach it there with --lease SECONDS"
        ),
        (Some(ms), false) => format!(
            "stands by: host `{host}` has the device as owner {epoch}; taken over in {} s if its lease is not renewed",
            ms.div_ceil(1000)
        ),
        (Some(ms), true) => format!(
            "stands by: host `{host}` has released the device; attached here in {} s if no host attaches it",
            ms.div_ceil(1000)
        ),
    }
}

impl Registry {
    /// Stands by for a device on objects, also when the service starts again.
    ///
    /// # Errors
    /// The name or the journal's path is taken, or the device is encrypted and no key file opens it.
    pub fn stand_by(self: &Arc<Self>, request: &AttachRequest, from: &FromStore) -> Result<DeviceView, Failure> {
        let target = Target::parse(&request.path)?.absolute_new()?;
        let path = journal_path(&target)?;
        let name = request.name.clone().unwrap_or_else(|| target.default_name());
        names::check("device", &name)?;
        let place = place(&from.address, from.endpoint.as_ref())?;
        if from.take_over {
            return Err(Failure::invalid("take_over takes the device now, stand_by when its owner is gone")
                .help("choose one of them"));
        }
        if request.passphrase.is_some() {
            return Err(Failure::invalid(format!("{name}: a take-over that nobody watches asks for no passphrase"))
                .help("give the device a key file with `vsl key add`, and stand by with --key-file"));
        }
        secret(None, request.key_file.as_deref())?;
        for path in [path.clone(), NotesFile::path(&path)] {
            if path.exists() {
                return Err(Failure::conflict(format!("{}: exists already", path.display()))
                    .help("the journal of a device that is taken from a store is a new file"));
            }
        }
        let remembered = Remembered {
            name: name.clone(),
            path: target.to_string(),
            read_only: false,
            key_file: request.key_file.clone(),
            witness: None,
            erasing: false,
            stand_by: Some(place.url),
            endpoint: place.endpoint,
        };
        self.begin_stand_by(&remembered)?;
        let kept = self.table().state.remember(remembered);
        if let Err(failure) = kept {
            // Nothing was taken yet, so nothing is left of it.
            let _ = self.detach(&name, true);
            return Err(failure);
        }
        self.view(&name)
    }

    /// Begins to stand by for a device that is remembered so.
    pub(super) fn begin_stand_by(self: &Arc<Self>, remembered: &Remembered) -> Result<(), Failure> {
        let Remembered { name, path, key_file, stand_by, endpoint, .. } = remembered;
        let target = Target::parse(path)?;
        let place = place(stand_by.as_deref().unwrap_or_default(), endpoint.as_ref())?;
        let one = StandBy::new(place.clone());
        let entry = Entry {
            target: target.clone(),
            read_only: false,
            key: Key { file: key_file.clone(), typed: false },
            witness: None,
            phase: Phase::StandsBy(Arc::clone(&one)),
            log: Arc::default(),
            store: Some(place),
        };
        entry.log.note("stands-by", one.place.url.clone());
        {
            let mut table = self.table();
            table.admit(name, &target)?;
            table.devices.insert(name.clone(), entry);
        }
        let watch = Watching {
            registry: Arc::clone(self),
            path: journal_path(&target)?,
            name: name.clone(),
            key_file: key_file.clone(),
            target,
            one,
            trouble: String::new(),
        };
        let thread = std::thread::Builder::new().name("stand-by".into()).spawn(move || watch.run());
        thread.map(drop).map_err(|error| {
            self.table().devices.remove(name);
            Failure::failed(format!("{name}: no thread to stand by: {error}"))
        })
    }

    /// No service that stops takes anything over.
    pub(super) fn end_stand_bys(&self) {
        for entry in self.table().devices.values() {
            if let Phase::StandsBy(one) = &entry.phase {
                // One that is taking a device goes on with it at the next start.
                let _ = one.end();
            }
        }
    }
}

/// The thread of a device for which the service stands by.
struct Watching {
    registry: Arc<Registry>,
    name: String,
    target: Target,
    path: PathBuf,
    key_file: Option<PathBuf>,
    one: Arc<StandBy>,
    /// What went wrong last, which is logged once.
    trouble: String,
}

impl Watching {
    fn run(mut self) {
        let (mut watch, mut known): (Watch, Option<(Anchor, String)>) = (Watch::default(), None);
        loop {
            let version = known.as_ref().map(|(_, version)| version.as_str());
            match device::look_at(&self.one.place, version, PATIENCE) {
                Ok(Seen::Device(anchor, version)) => known = Some((*anchor, version)),
                Ok(Seen::Same) => {}
                Ok(Seen::Nothing) => {
                    known = None;
                    self.fails("there is no device in the store at this address");
                }
                Err(why) => {
                    self.fails(&why.to_string());
                    if !self.one.rest(watch.period_ms()) {
                        return;
                    }
                    continue;
                }
            }
            if let Some((anchor, _)) = &known {
                watch.saw(anchor, steady_ms());
                let due = watch.lapsed(steady_ms());
                match self.go_on(anchor, due) {
                    Ok(true) => return,
                    Ok(false) => {
                        self.trouble.clear();
                        self.one.says(in_words(anchor, watch.lapses_in_ms(steady_ms())));
                    }
                    Err(failure) => {
                        // What stands there is to be looked at anew.
                        known = None;
                        self.fails(&failure.to_string());
                    }
                }
            }
            if !self.one.rest(watch.period_ms()) {
                return;
            }
        }
    }

    fn fails(&mut self, why: &str) {
        self.one.says(format!("stands by: {why}"));
        if self.trouble != why {
            tracing::warn!(device = self.name, "stands by: {why}");
            self.trouble = why.into();
        }
    }

    /// Takes the device over where that is due, or goes on with a take-over that was cut. Gives whether the device is attached here.
    fn go_on(&self, anchor: &Anchor, due: Option<AnchorId>) -> Result<bool, Failure> {
        let left = self.left_behind(anchor)?;
        let from = match (left, due) {
            (None, None) => return Ok(false),
            (Some(Left::Whole), _) => None,
            // Nobody else can have claimed it by this journal.
            (Some(Left::Half), _) => Some(anchor.id()),
            (None, Some(id)) => Some(id),
        };
        if !self.one.begin() {
            return Ok(false);
        }
        let done = self.take(from);
        self.one.took();
        done.map(|()| true)
    }

    fn take(&self, from: Option<AnchorId>) -> Result<(), Failure> {
        if self.registry.table().closing {
            return Err(Failure::conflict("the service is stopping"));
        }
        let secret = secret(None, self.key_file.as_deref())?;
        let mut words = "this host had taken it over before it was stopped".to_owned();
        if let Some(id) = from {
            let taken = device::take_device(&self.path, &self.one.place, Claim::Lapsed(id), secret.as_ref())?;
            words = format!("from host `{}`, as owner {}, as of commit {}", taken.from, taken.epoch, taken.commit);
        }
        tracing::warn!(device = self.name, "taken over {words}");
        // From here on it is a device like any other, whatever becomes of this process.
        let key = Key { file: self.key_file.clone(), typed: false };
        let kept = self.registry.table().state.remember(Remembered {
            name: self.name.clone(),
            path: self.target.to_string(),
            read_only: false,
            key_file: self.key_file.clone(),
            witness: None,
            erasing: false,
            stand_by: None,
            endpoint: None,
        });
        if let Err(failure) = kept {
            tracing::error!(device = self.name, "{failure}");
        }
        let options = AttachOptions { secret, ..AttachOptions::default() };
        self.registry.attach_target(&self.name, self.target.clone(), options, key)?;
        if let Ok(entry) = self.registry.table().entry(&self.name) {
            entry.log.note("taken-over", words);
        }
        Ok(())
    }

    /// What a take-over left that was cut. What never became the owner's journal is removed: nobody has written to it.
    fn left_behind(&self, anchor: &Anchor) -> Result<Option<Left>, Failure> {
        let notes_path = NotesFile::path(&self.path);
        if !self.path.exists() && !notes_path.exists() {
            return Ok(None);
        }
        let foreign = || {
            Failure::conflict(format!("{}: exists already, and is no journal of this device", self.path.display()))
                .help("the journal of a device that is taken from a store is a new file")
        };
        let notes = NotesFile::read(&self.path).map_err(|_| foreign())?;
        if notes.head.url != self.one.place.url {
            return Err(foreign());
        }
        if notes.head.journal == anchor.journal
            && notes.head.device == anchor.device
            && device::inspect(&self.path).is_ok()
        {
            return Ok(Some(Left::Whole));
        }
        for path in [self.path.as_path(), notes_path.as_path()] {
            remove(path)?;
        }
        Ok((notes.head.journal == anchor.journal).then_some(Left::Half))
    }
}

/// How far a take-over came that was cut, and whose device is claimed already.
enum Left {
    /// The journal can be attached.
    Whole,
    /// It cannot.
    Half,
}

fn remove(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io(path, &error)),
        _ => Ok(()),
    }
}
