//! Snapshots that the service makes by itself: what it keeps of each device's schedule, and how it carries them out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, MutexGuard, PoisonError};

use device::{SnapshotChange, SnapshotError};
use export::Served;
use serde::{Deserialize, Serialize};

use super::table::Standing;
use super::{Handle, Log, Registry};
use crate::Failure;
use crate::api::{Schedule, ScheduleView, Snapshots};
use crate::clock::{self, now_s};
use crate::handle::RETRY;
use crate::schedule::{self, Plan};
use crate::stored::Kept;

/// Devices that have one, at most.
const DEVICES: usize = 4096;

/// Snapshots that are deleted in a row: clients wait meanwhile.
const AT_ONCE: usize = 4;

/// A device's schedule, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// What the device was called when it got it.
    device: String,
    keep: Schedule,
    /// When it made its newest snapshot, seconds since 1970.
    last: Option<u64>,
}

/// All of them, by the UUID of the device's format: one that is detached finds its own again, whatever it is called then.
pub(super) struct Schedules {
    kept: Kept<BTreeMap<String, Entry>>,
    doing: BTreeMap<String, Doing>,
}

/// What goes on for a schedule.
#[derive(Default)]
struct Doing {
    /// Asked of the device and not answered yet; what comes of it is told there.
    asked: Option<(Receiver<Done>, Arc<Log>)>,
    /// What it was not ready to do, or is still at.
    open: Option<Open>,
    /// The minute of the last look. None of them is looked at twice, unless there is more to do.
    minute: Option<u64>,
    /// What went wrong, and in which hour that was told.
    failure: Option<(String, u64)>,
}

/// What a look came to.
#[derive(Debug, Default)]
struct Done {
    at: u64,
    made: Option<String>,
    deleted: Vec<String>,
    failure: Option<SnapshotError>,
    /// There is more to do.
    more: bool,
    /// What is not done yet: the same is to be asked again.
    open: Option<Open>,
}

impl Schedules {
    /// Those that are kept in a directory.
    pub fn open(directory: &Path) -> Result<Schedules, Failure> {
        Ok(Schedules { kept: Kept::open(directory.join("schedules.json"))?, doing: BTreeMap::new() })
    }

    fn view(&self, uuid: &str) -> Option<ScheduleView> {
        let Entry { keep, last, .. } = *self.kept.get(uuid)?;
        let failure = self.doing.get(uuid).and_then(|doing| doing.failure.as_ref()).map(|(words, _)| words.clone());
        Some(ScheduleView { keep, last, failure })
    }

    /// Tells what a look came to.
    fn note(&mut self, uuid: &str, done: &Done, log: &Log) {
        let Some(Entry { device, keep, last }) = self.kept.get(uuid).cloned() else { return };
        if let Some(name) = &done.made {
            self.kept.note(|kept| kept.get_mut(uuid).into_iter().for_each(|entry| entry.last = Some(done.at)));
            let since = last.filter(|last| schedule::has_missed(&keep, *last, done.at)).and_then(clock::show);
            let missed = since.map(|since| format!(", the first since {since}")).unwrap_or_default();
            tracing::info!(device, snapshot = name, "snapshot made by schedule{missed}");
            log.note("snapshot-made", format!("{name}, by schedule{missed}"));
        }
        if !done.deleted.is_empty() {
            let names = done.deleted.join(", ");
            tracing::info!(device, "snapshots deleted by schedule: {names}");
            log.note("snapshot-deleted", format!("{names}, by schedule"));
        }
        let doing = self.doing.entry(uuid.into()).or_default();
        if done.more {
            doing.minute = None;
        }
        doing.open.clone_from(&done.open);
        match &done.failure {
            None => doing.failure = None,
            Some(error) => doing.fails(&device, error.to_string(), done.at, Some(log)),
        }
    }
}

impl Doing {
    /// Tells why a snapshot could not be made: what goes on to fail for the same reason, once an hour.
    fn fails(&mut self, device: &str, why: String, now: u64, log: Option<&Log>) {
        let told = Some((why, now / 3600));
        if self.failure != told {
            self.failure = told;
            let why = self.failure.as_ref().map_or("", |(why, _)| why);
            tracing::warn!(device, "no snapshot by schedule: {why}");
            log.iter().for_each(|log| log.note("snapshot-failed", format!("by schedule: {why}")));
        }
    }
}

/// A change that was begun, and the name of its snapshot.
type Open = (SnapshotChange, String);

impl Done {
    /// Makes a change; false where the same is to be asked again.
    fn make(&mut self, device: &mut Served, (change, name): Open) -> Result<bool, SnapshotError> {
        if !device.begin_snapshot_change(&change)? {
            (self.more, self.open) = (true, Some((change, name)));
            return Ok(false);
        }
        match change {
            SnapshotChange::Create { .. } => self.made = Some(name),
            _ => self.deleted.push(name),
        }
        Ok(true)
    }

    fn carry_out(
        &mut self,
        device: &mut Served,
        keep: &Schedule,
        last: Option<u64>,
        open: Option<Open>,
    ) -> Result<(), SnapshotError> {
        if let Some(open) = open
            && !self.make(device, open)?
        {
            return Ok(());
        }
        let Plan { make, delete } = schedule::plan(device.snapshots(), keep, last, self.at);
        self.more = delete.len() > AT_ONCE;
        let mut failed = None;
        if let Some(name) = make {
            let create = SnapshotChange::Create { name: name.clone(), created: self.at };
            match self.make(device, (create, name)) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // Where there is no room for one more, the oldest goes first, so that the next look can make it.
                Err(error @ (SnapshotError::Full | SnapshotError::TooMany)) => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        for id in delete.into_iter().take(AT_ONCE) {
            let found = device.snapshots().iter().find(|snapshot| snapshot.id == id);
            let name = found.map(|snapshot| snapshot.name.clone()).unwrap_or_default();
            match self.make(device, (SnapshotChange::Delete(id), name)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(failed.unwrap_or(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Carries out what a schedule asks for now, on the device's thread, which waits for nothing: a device makes it durable by itself, soon. First
/// it goes on with what the last look left `open`.
fn carry_out(device: &mut Served, keep: &Schedule, last: Option<u64>, open: Option<Open>, now: u64) -> Done {
    let mut done = Done { at: now, ..Done::default() };
    done.failure = done.carry_out(device, keep, last, open).err();
    done
}

/// Where a device is that has a schedule.
enum Place {
    Attached(Handle, Arc<Log>),
    /// It is there, and not attached, for this reason.
    Away(Arc<Log>, String),
    Nowhere,
}

impl Registry {
    fn schedules(&self) -> MutexGuard<'_, Schedules> {
        // Whole between any two statements.
        self.schedules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device's schedule.
    pub(super) fn schedule(&self, uuid: &str) -> Option<ScheduleView> {
        self.schedules().view(uuid)
    }

    /// Has the service make and delete snapshots of a device by itself, or no more. The first is made at once: a device that takes none gets no
    /// schedule.
    ///
    /// # Errors
    /// There is no such device, it is not attached, no snapshot can be made, or the schedule cannot be kept.
    pub fn set_schedule(&self, name: &str, keep: Schedule) -> Result<Snapshots, Failure> {
        self.table().not_a_member(name)?;
        let (handle, log) = self.table().attached_with_log(name)?;
        let uuid = handle.facts().uuid.clone();
        if keep == Schedule::default() {
            if self.schedules().kept.change(|kept| Ok(kept.remove(&uuid)))?.is_some() {
                self.schedules().doing.remove(&uuid);
                log.note("snapshot-schedule", "ended");
            }
            return self.snapshots(name);
        }
        let last = self.schedules().kept.get(&uuid).and_then(|entry| entry.last);
        let now = now_s();
        let mut open = None;
        let done = loop {
            let going_on = open.take();
            let done = handle.with_served(move |device| carry_out(device, &keep, last, going_on, now))?;
            if let Some(error) = done.failure {
                return Err(self.told(name, error.into()));
            }
            // A device may have to write down first that its format has snapshots, and an array waits for its members.
            if done.open.is_none() {
                break done;
            }
            open.clone_from(&done.open);
            std::thread::sleep(RETRY);
        };
        handle.flush()?;
        let mut schedules = self.schedules();
        schedules.kept.change(|kept| {
            if kept.len() >= DEVICES && !kept.contains_key(&uuid) {
                return Err(Failure::conflict(format!("{DEVICES} devices have schedules already"))
                    .help("end some with `vsl snapshot schedule DEVICE --off`"));
            }
            kept.insert(uuid.clone(), Entry { device: name.into(), keep, last });
            Ok(())
        })?;
        log.note("snapshot-schedule", format!("keeps {keep}"));
        schedules.note(&uuid, &done, &log);
        drop(schedules);
        self.snapshots(name)
    }

    /// Forgets the schedule of a format that is gone.
    pub(super) fn forget_schedule(&self, uuid: &str) {
        let mut schedules = self.schedules();
        if schedules.kept.contains_key(uuid) {
            schedules.kept.note(|kept| drop(kept.remove(uuid)));
            schedules.doing.remove(uuid);
        }
    }

    /// Sees to every schedule: once a second, with the time in seconds since 1970. Waits for no device; what one answers is told the next time.
    pub fn keep_schedules(&self, now: u64) {
        let mut schedules = self.schedules();
        let all: Vec<(String, Entry)> =
            schedules.kept.iter().map(|(uuid, entry)| (uuid.clone(), entry.clone())).collect();
        for (uuid, Entry { device, keep, last }) in all {
            let doing = schedules.doing.entry(uuid.clone()).or_default();
            if let Some((asked, log)) = doing.asked.take() {
                match asked.try_recv() {
                    Ok(done) => schedules.note(&uuid, &done, &log),
                    Err(TryRecvError::Empty) => doing.asked = Some((asked, log)),
                    // It went just now.
                    Err(TryRecvError::Disconnected) => {}
                }
            } else if doing.minute != Some(now / 60) {
                let Some(place) = self.place(&uuid, &device) else { continue };
                doing.minute = Some(now / 60);
                match place {
                    Place::Attached(handle, log) => {
                        let open = doing.open.take();
                        let asked = handle.begin(move |device| carry_out(device, &keep, last, open, now));
                        doing.asked = asked.ok().map(|asked| (asked, log));
                    }
                    // Nothing is known of its snapshots, but when the last was made.
                    _ if schedule::plan(&[], &keep, last, now).make.is_none() => {}
                    Place::Away(log, why) => doing.fails(&device, why, now, Some(&log)),
                    // Somebody detached it, and needs no reminder.
                    Place::Nowhere => doing.fails(&device, "it is not attached".into(), 0, None),
                }
            }
        }
    }

    /// Where a device is; nothing while it comes or goes.
    fn place(&self, uuid: &str, name: &str) -> Option<Place> {
        let table = self.table();
        let attached = table.devices.values().find_map(|entry| match entry.standing() {
            Standing::Attached(handle) if handle.facts().uuid == uuid => {
                Some(Place::Attached(handle.clone(), Arc::clone(&entry.log)))
            }
            _ => None,
        });
        let Some(entry) = table.devices.get(name).filter(|_| attached.is_none()) else {
            return attached.or(table.ready.then_some(Place::Nowhere));
        };
        match entry.standing() {
            Standing::Attaching | Standing::Detaching | Standing::Erasing => None,
            // Another device has its name.
            Standing::Attached(_) => Some(Place::Nowhere),
            Standing::PoweredOff(_) | Standing::Failed(_) | Standing::StandsBy(_) => {
                Some(Place::Away(Arc::clone(&entry.log), format!("not attached: {}", entry.in_words().1)))
            }
        }
    }
}
