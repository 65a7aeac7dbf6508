//! The devices that the service owns. Every call may wait for a device; none holds the table's lock meanwhile.

mod arrays;
mod caches;
mod changes;
mod clones;
mod composites;
mod create;
mod drills;
mod erase;
mod format;
mod keys;
mod lifetime;
mod log;
mod moves;
pub mod objects;
pub mod observe;
mod recording;
mod resize;
mod schedules;
mod snapshots;
mod stand_by;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use device::{AttachOptions, Durability, Secret, Setting, State};

use crate::api::{AttachRequest, Config, DeviceView, Health, NvmeTarget, OptimiseRequest, Passphrase, RebuildRequest};
use crate::exports::{self, Exports};
use crate::handle::{CLIENTS_HINDER, Handle, Refused, refused};
use crate::settings::{self, Change};
use crate::state::StateFile;
use crate::{Failure, Target, names};

/// The most that is moved to bring a device into order where nobody says more, MiB/s.
const OPTIMISE_MIB: u32 = 50;

use log::Log;
use table::{Entry, Key, Phase, Standing, Table};

/// The devices, by name.
pub struct Registry {
    exports: Arc<Exports>,
    /// Where the console is.
    web: OnceLock<Vec<String>>,
    table: Mutex<Table>,
    /// Recordings that came to their end.
    recordings: Arc<recording::List>,
    /// Snapshots that are made by themselves.
    schedules: Mutex<schedules::Schedules>,
    /// The moves that are under way, and the last one of each device.
    moves: moves::Moves,
    /// Cached volumes that are not open because their store was not there.
    missed: Mutex<BTreeSet<String>>,
    /// Somebody is looking for stores.
    looking: AtomicBool,
    /// Told when a device has come or gone.
    settled: Condvar,
    /// Where page buffers outlive this process.
    staging: Option<PathBuf>,
}

impl Registry {
    /// An empty table.
    ///
    /// # Errors
    /// What was remembered of recordings or schedules is damaged.
    pub fn new(exports: Exports, state: StateFile, staging: Option<PathBuf>) -> Result<Registry, Failure> {
        let recordings = Arc::new(recording::List::open(state.directory())?);
        let schedules = Mutex::new(schedules::Schedules::open(state.directory())?);
        let table = Table { devices: BTreeMap::new(), state, ready: false, closing: false };
        let (web, settled) = (OnceLock::new(), Condvar::new());
        Ok(Registry {
            exports: Arc::new(exports),
            web,
            table: Mutex::new(table),
            recordings,
            schedules,
            moves: moves::Moves::default(),
            missed: Mutex::default(),
            looking: AtomicBool::new(false),
            settled,
            staging,
        })
    }

    /// Where the console is served; said once.
    pub fn set_web(&self, addresses: Vec<String>) {
        // A second time nothing changes.
        let _ = self.web.set(addresses);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole between any two statements that could panic, so a poisoned lock is as good.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches what the state file remembers, each device on a thread of its own: a slow recovery keeps nobody waiting.
    pub fn attach_remembered(self: &Arc<Self>) {
        self.settle_identities();
        let remembered = self.table().state.devices().to_vec();
        std::thread::scope(|scope| {
            for device in &remembered {
                scope.spawn(|| {
                    if device.stand_by.is_some() {
                        if let Err(failure) = self.begin_stand_by(device) {
                            tracing::error!(device = device.name, "{failure}");
                        }
                        return;
                    }
                    let target = match Target::parse(&device.path) {
                        Ok(target) => target,
                        Err(failure) => return tracing::error!(device = device.name, "not attached: {failure}"),
                    };
                    let key = Key { file: device.key_file.clone(), typed: false };
                    let attached = secret(None, key.file.as_deref()).and_then(|secret| {
                        let (read_only, witness) = (device.read_only, device.witness.clone());
                        witness.as_deref().map_or(Ok(()), must_be_there)?;
                        let options = AttachOptions { read_only, secret, witness, ..AttachOptions::default() };
                        self.attach_target(&device.name, target.clone(), options, key.clone())
                    });
                    if attached.is_ok() {
                        // Of an erase that was begun nothing had been destroyed, or it was finished by hand.
                        self.forget_erase(&device.name);
                    }
                    if let Err(failure) = attached {
                        tracing::error!(device = device.name, "not attached: {failure}");
                        let store = target.clone();
                        self.table().devices.entry(device.name.clone()).or_insert(Entry {
                            target,
                            read_only: device.read_only,
                            key,
                            witness: device.witness.clone(),
                            phase: Phase::Failed(failure),
                            log: Arc::default(),
                            store: objects::place_of(&store),
                        });
                    }
                });
            }
        });
        self.assemble_remembered();
        self.open_remembered();
        self.go_on_with_moves();
        self.table().ready = true;
    }

    /// Attaches a device.
    ///
    /// # Errors
    /// The name or the device is taken, or it cannot be attached.
    pub fn attach(&self, request: &AttachRequest) -> Result<DeviceView, Failure> {
        let target = Target::parse(&request.path)?;
        let target = if request.objects.is_some() { target.absolute_new()? } else { target.absolute()? };
        // What gets a new identity is written to, so it is named.
        let as_named = request.new_identity || request.objects.is_some();
        let target = if as_named { target } else { target.with_members(request.degraded)? };
        let name = request.name.clone().unwrap_or_else(|| target.default_name());
        names::check("device", &name)?;
        self.not_moved_away(&target)?;
        let key = Key { file: request.key_file.clone(), typed: request.passphrase.is_some() };
        let secret = secret(request.passphrase.as_ref(), key.file.as_deref())?;
        let AttachRequest { read_only, degraded, new_identity, ref witness, .. } = *request;
        if new_identity && target.paths().is_none() {
            return Err(Failure::invalid(format!("{target}: it lives in memory and has no copy beside it"))
                .help("leave the new identity out"));
        }
        if witness.as_deref().is_some_and(|path| !path.is_absolute() || target.paths().is_none()) {
            return Err(Failure::invalid("a witness is an absolute path, for a device that lies on files"));
        }
        let options = AttachOptions {
            read_only,
            degraded,
            new_identity,
            secret,
            witness: witness.clone(),
            lease_ms: request.lease_seconds.map(lease_ms).transpose()?,
            ..AttachOptions::default()
        };
        let taken = match &request.objects {
            None => None,
            Some(_) if read_only || degraded || new_identity || witness.is_some() => {
                return Err(Failure::invalid(
                    "a device is taken from a store for writing, as it is, and without a witness",
                )
                .help("leave the other options out"));
            }
            Some(from) => Some(self.take(&name, &target, from, options.secret.as_ref())?),
        };
        self.attach_target(&name, target.clone(), options, key.clone())?;
        if let Some(words) = taken {
            self.table().entry(&name)?.log.note("taken", words);
        }
        if request.remember && !key.typed && target.paths().is_some() {
            let mut table = self.table();
            let remembered = table.entry(&name)?.remembered(&name);
            table.state.remember(remembered)?;
        }
        self.view(&name)
    }

    fn attach_target(&self, name: &str, target: Target, options: AttachOptions, key: Key) -> Result<(), Failure> {
        let (read_only, witness) = (options.read_only, options.witness.clone());
        let log: Arc<Log> = Arc::default();
        let before = {
            let mut table = self.table();
            table.admit(name, &target)?;
            let (phase, log) = (Phase::Attaching, Arc::clone(&log));
            let store = objects::place_of(&target);
            let entry = Entry { target: target.clone(), read_only, key, witness, phase, log, store };
            table.devices.insert(name.into(), entry)
        };
        let result = self.start(name, &target, options, &log);
        let first = result.as_ref().ok().and_then(|handle| handle.status().ok());
        let mut table = self.table();
        let result = match result {
            Ok(handle) => {
                if let Some(entry) = table.devices.get_mut(name) {
                    entry.phase = Phase::Attached(handle);
                }
                tracing::debug!(device = name, path = %target, read_only, "attached");
                log.note("attached", if read_only { "to be read only" } else { "" });
                first.iter().for_each(|status| log.look(status, Some(status)));
                Ok(())
            }
            Err(failure) => {
                table.devices.remove(name);
                // One that failed before is still one that failed.
                table.devices.extend(before.map(|entry| (name.to_string(), entry)));
                Err(failure)
            }
        };
        drop(table);
        self.settled.notify_all();
        if result.is_ok() {
            self.member_came(name);
            self.device_of_cache_came(name);
        }
        result
    }

    fn start(&self, name: &str, target: &Target, options: AttachOptions, log: &Arc<Log>) -> Result<Handle, Failure> {
        let read_only = options.read_only;
        let options = AttachOptions { staging: self.staging.clone(), ..options };
        let handle = Handle::start(name, target.clone(), options)?;
        let (exports, device, log) = (Arc::clone(&self.exports), name.to_string(), Arc::clone(log));
        let (recordings, uuid) = (Arc::clone(&self.recordings), handle.facts().uuid.clone());
        handle.on_power_cut(move |cut, recording| {
            exports.remove(&device);
            log.note("power-cut", cut.to_string());
            if let Some(recording) = recording
                && let Err(failure) = recordings.end(&device, &uuid, recording)
            {
                tracing::error!(device, "what was recorded: {failure}");
            }
        })?;
        // A member of an array is the array's alone, and the new device of a move is the move's.
        if !self.table().is_served(name) {
            return Ok(handle);
        }
        if let Err(failure) = self.exports.add(name, &handle, read_only) {
            // Nobody can reach it, so it has no clients to wait for.
            if let Err(second) = handle.detach(true) {
                let (Refused::StillAttached(second) | Refused::Gone(second)) = second;
                tracing::error!(device = name, "after a failed attach: {second}");
            }
            return Err(failure);
        }
        Ok(handle)
    }

    /// Detaches a device once what is under way is done, and forgets it.
    ///
    /// # Errors
    /// It has clients and `force` is not set, or its last checkpoint failed.
    pub fn detach(&self, name: &str, force: bool) -> Result<(), Failure> {
        if !force {
            let table = self.table();
            table.not_a_member(name).map_err(|failure| {
                match (table.state.array_of(name), table.state.cache_of(name)) {
                    (Some(_), _) => failure
                        .help("delete the array first, or add --force to have it go on without this member, if it can"),
                    (None, Some(cache)) => failure.help(format!(
                        "detach the volume first: `vsl detach {}`, or add --force to take it away from under it",
                        cache.name
                    )),
                    (None, None) => failure,
                }
            })?;
        }
        let result = match self.let_go(name, force) {
            Err(Refused::StillAttached(failure)) => return Err(failure),
            Err(Refused::Gone(failure)) => Err(failure),
            Ok(()) => Ok(()),
        };
        let forgotten = self.table().state.forget(name);
        result.and(forgotten)
    }

    /// Detaches a device once what is under way is done. Whether it is attached at start stays as it is.
    fn let_go(&self, name: &str, force: bool) -> Result<(), Refused> {
        let handle = {
            let mut table = self.table();
            let entry = table.entry(name).map_err(Refused::StillAttached)?;
            match entry.standing() {
                Standing::Attaching => {
                    let failure = Failure::conflict(format!("{name} is being attached"));
                    return Err(Refused::StillAttached(failure.help("try again when it is done")));
                }
                Standing::Detaching => {
                    let failure = Failure::conflict(format!("{name} is being detached"));
                    return Err(Refused::StillAttached(failure.help("wait until it is done")));
                }
                Standing::Erasing => {
                    let failure = Failure::conflict(format!("{name} is being erased"));
                    return Err(Refused::StillAttached(failure.help("wait for its job, or cancel it")));
                }
                Standing::Failed(_) | Standing::PoweredOff(_) => None,
                Standing::StandsBy(one) => {
                    one.end().map_err(Refused::StillAttached)?;
                    None
                }
                Standing::Attached(handle) => {
                    let handle = handle.clone();
                    entry.phase = Phase::Detaching;
                    Some(handle)
                }
            }
        };
        let result = handle.as_ref().map_or(Ok(()), |handle| self.stop(name, handle, force));
        let mut table = self.table();
        match (handle, &result) {
            (Some(handle), Err(Refused::StillAttached(_))) => {
                if let Some(entry) = table.devices.get_mut(name) {
                    entry.phase = Phase::Attached(handle);
                }
            }
            _ => drop(table.devices.remove(name)),
        }
        drop(table);
        self.settled.notify_all();
        result
    }

    fn stop(&self, name: &str, handle: &Handle, force: bool) -> Result<(), Refused> {
        // A detach that would be refused ends no recording.
        if (force || handle.client_count() == 0)
            && let Err(failure) = self.end_recording(name, handle)
        {
            tracing::error!(device = name, "what was recorded: {failure}");
        }
        let result = handle.detach(force);
        if !matches!(result, Err(Refused::StillAttached(_))) {
            self.exports.remove(name);
        }
        result
    }

    /// Every device.
    pub fn views(&self) -> Vec<DeviceView> {
        let names: Vec<String> = self.table().devices.keys().cloned().collect();
        // One that was detached in between is simply not there.
        names.iter().filter_map(|name| self.view(name).ok()).collect()
    }

    /// One device.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn view(&self, name: &str) -> Result<DeviceView, Failure> {
        let (mut view, handle) = {
            let mut table = self.table();
            let remembered = table.state.remembers(name);
            let entry = table.entry(name)?;
            let handle = if let Standing::Attached(handle) = entry.standing() { Some(handle.clone()) } else { None };
            // What is attached is asked below, which may take a while.
            let (state, health) = entry.in_words();
            let mut view = DeviceView::new(name, &entry.target, state, &health);
            view.set("read_only", entry.read_only);
            if let Some(place) = &entry.store {
                view.set("objects_address", &place.url);
                view.set("objects_endpoint", &place.endpoint);
            }
            (view, handle.map(|handle| (handle, remembered)))
        };
        if let Some((handle, remembered)) = handle {
            match handle.view() {
                Ok(seen) => {
                    view.describe(&seen.info);
                    view.measure(&seen.status);
                    if let Some(words) = self.move_in_words(name) {
                        view.set("health", format!("{}; {words}", seen.status.health));
                    }
                    view.set("uri", self.exports.uri(name));
                    view.set("tcp_uri", self.exports.tcp_uri(name));
                    let nvme = self.exports.nvme_target(&seen.info.uuid.to_string());
                    view.set("nvme_uri", self.exports.nvme_uri(&seen.info.uuid.to_string()));
                    view.set("nvme_command", nvme.as_ref().map(NvmeTarget::to_string));
                    view.set("nvme", nvme);
                    view.set("vhost_socket", self.exports.vhost_socket(name));
                    view.set("clients", seen.clients.into_iter().map(exports::client).collect::<Vec<_>>());
                    view.set("beacon", seen.settings.beacon);
                    // The beacon lights all of them.
                    let leds = seen.status.leds();
                    view.set("leds", if seen.settings.beacon { vec!["location beacon"] } else { leds });
                    view.set("config", settings::show(&seen.settings, remembered));
                    // Without room for a recovery it is read only, whatever was asked for.
                    if seen.status.state == State::AttachedReadOnly {
                        view.set("read_only", true);
                    }
                }
                Err(gone) => {
                    // It may have gone just now.
                    let (state, health) = match self.table().entry(name)?.in_words() {
                        (State::Attached, _) => (State::Error, Failure::from(gone).to_string()),
                        other => other,
                    };
                    view.set("state", state.name());
                    view.set("health", health);
                }
            }
        }
        Ok(view)
    }

    /// A device's settings.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn config(&self, name: &str) -> Result<Config, Failure> {
        let (handle, remembered) = {
            let mut table = self.table();
            (table.attached(name)?, table.state.remembers(name))
        };
        Ok(settings::show(&handle.with_device(|device| device.settings())?, remembered))
    }

    /// Changes settings, all or none.
    ///
    /// # Errors
    /// There is no such device or setting, a value is wrong, or it cannot be kept.
    pub fn set_config(&self, name: &str, changes: &Config) -> Result<Config, Failure> {
        let (mut on_device, mut remember) = (Vec::new(), None);
        for (key, value) in changes {
            match settings::parse(key, value)? {
                Change::Device(setting) => on_device.push(setting),
                Change::AttachAtStart(on) => remember = Some(on),
            }
        }
        let (handle, target, key) = {
            let mut table = self.table();
            let handle = table.attached(name)?;
            let entry = table.entry(name)?;
            (handle, entry.target.clone(), entry.key.clone())
        };
        if remember == Some(true) && key.typed {
            return Err(Failure::invalid(format!("{name} was opened with a passphrase, which is kept nowhere"))
                .help("give it a key file with `vsl key add`, and attach it with --key-file"));
        }
        if remember == Some(true) && target.paths().is_none() {
            return Err(Failure::invalid(format!("{name} lives in memory and cannot be attached again"))
                .help(format!("leave {} off for it", settings::ATTACH_AT_START)));
        }
        if on_device.contains(&Setting::Drills(true)) && target.paths().is_none() {
            return Err(Failure::invalid(format!("{name} lives in memory: a power cut would leave nothing of it"))
                .help("make a device in a file for drills, in /dev/shm if need be"));
        }
        if !on_device.is_empty() {
            if on_device.contains(&Setting::Durability(Durability::Unsafe)) {
                self.table().not_a_member(name)?;
            }
            let through = on_device.contains(&Setting::Durability(Durability::WriteThrough));
            handle.ask(move |device| device.set(&on_device).map_err(refused))?;
            handle.wait_saved()?;
            if through {
                // The promise holds from this answer on, also for what was answered before.
                handle.flush()?;
            }
        }
        match remember {
            Some(true) => {
                let mut table = self.table();
                let remembered = table.entry(name)?.remembered(name);
                table.state.remember(remembered)?;
            }
            Some(false) => self.table().state.forget(name)?,
            None => {}
        }
        let words: Vec<String> = changes.iter().map(|(key, value)| format!("{key}={value}")).collect();
        tracing::info!(device = name, "settings changed: {}", words.join(" "));
        self.config(name)
    }

    /// Begins or ends reading and checking everything on a device.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn scrub(&self, name: &str, on: bool) -> Result<DeviceView, Failure> {
        let handle = self.table().attached(name)?;
        handle.ask(move |device| device.scrub(on).map_err(refused))?;
        tracing::info!(device = name, on, "scrub");
        self.view(name)
    }

    /// Begins to bring a device into order, or ends that.
    ///
    /// # Errors
    /// There is no such device, it is not attached, or it takes no writes.
    pub fn optimise(&self, name: &str, request: OptimiseRequest) -> Result<DeviceView, Failure> {
        let rate_mib = request.rate_mib.unwrap_or(OPTIMISE_MIB);
        if rate_mib == 0 {
            return Err(Failure::invalid(
                "a rate of 0 MiB/s moves nothing: give at least 1, or end it with `on: false`",
            ));
        }
        let handle = self.table().attached(name)?;
        let rate = request.on.then_some(u64::from(rate_mib) << 20);
        handle.ask(move |device| device.optimise(rate).map_err(refused))?;
        tracing::info!(device = name, on = request.on, rate_mib, "optimise");
        self.view(name)
    }

    /// Rebuilds a lost die of a device, onto a file beside its others, or one that lies `anywhere`.
    ///
    /// # Errors
    /// There is no such device, the die is not lost, or what is to take its place may not or cannot be used.
    pub fn rebuild(&self, name: &str, request: &RebuildRequest, anywhere: bool) -> Result<DeviceView, Failure> {
        let handle = {
            let mut table = self.table();
            if table.state.move_of(name).is_some() {
                table.not_a_member(name)?;
            }
            table.attached(name)?
        };
        if let Some(path) = request.onto.as_ref().filter(|path| path.is_relative()) {
            return Err(Failure::invalid(format!("{}: the path of a replacement must be absolute", path.display()))
                .help("the service has another working directory than its clients"));
        }
        if let Some(path) = request.onto.as_ref().filter(|_| !anywhere) {
            let beside = handle.info()?.paths.iter().any(|known| known.parent() == path.parent());
            if !beside || path.file_name().is_none() || path.starts_with("/dev") {
                let shown = path.display();
                return Err(Failure::forbidden(format!("{shown}: only an administrator chooses where files are made"))
                    .help("name a file in the directory of one of the device's others"));
            }
        }
        let (die, onto) = (request.die, request.onto.clone());
        handle.ask(move |device| device.rebuild(die, onto.as_deref()))?;
        tracing::info!(device = name, die = request.die, "rebuilding");
        let target = Target::Files(handle.info()?.paths);
        let mut table = self.table();
        let entry = table.entry(name)?;
        entry.target = target;
        let remembered = entry.remembered(name);
        if table.state.remembers(name) {
            table.state.remember(remembered)?;
        }
        drop(table);
        self.view(name)
    }

    /// How the service does.
    pub fn health(&self) -> Health {
        let table = self.table();
        let count = |wanted: fn(&Phase) -> bool| table.devices.values().filter(|entry| wanted(&entry.phase)).count();
        Health {
            ready: table.ready,
            attached: count(|phase| matches!(phase, Phase::Attached(_) | Phase::Detaching)),
            failed: count(|phase| matches!(phase, Phase::Failed(_))),
            addresses: self.exports.addresses(),
            web: self.web.get().cloned().unwrap_or_default(),
        }
    }

    /// Makes ready to stop: no device is attached any more.
    ///
    /// # Errors
    /// Clients are connected and `force` is not set; then nothing has changed.
    pub fn close(&self, force: bool) -> Result<(), Failure> {
        let handles: Vec<(String, Handle)> = {
            let table = self.table();
            let attached = table.devices.iter().filter_map(|(name, entry)| match entry.standing() {
                Standing::Attached(handle) => Some((name.clone(), handle.clone())),
                _ => None,
            });
            attached.collect()
        };
        let busy: Vec<String> = handles
            .iter()
            .map(|(name, handle)| (name, handle.client_count()))
            .filter(|(_, clients)| *clients > 0)
            .map(|(name, clients)| format!("{name} ({clients})"))
            .collect();
        if !force && !busy.is_empty() {
            let words = format!("clients are connected: {}", busy.join(", "));
            return Err(Failure::conflict(words).help(CLIENTS_HINDER));
        }
        self.table().closing = true;
        Ok(())
    }

    /// Stops accepting, waits for what is under way, and detaches every device; they stay remembered. Gives what went wrong: the
    /// next attach of such a device must recover it.
    pub fn stop_all(&self) -> Vec<Failure> {
        self.table().closing = true;
        self.end_stand_bys();
        self.exports.stop_accepting();
        let failures = Mutex::new(Vec::new());
        while let Some(attached) = self.take_attached() {
            std::thread::scope(|scope| {
                for (name, handle) in &attached {
                    let failures = &failures;
                    scope.spawn(move || {
                        let stopped = self.stop(name, handle, true);
                        if let Err(Refused::StillAttached(failure) | Refused::Gone(failure)) = stopped {
                            tracing::error!("{failure}");
                            failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                        }
                    });
                }
            });
            attached.iter().for_each(|(name, _)| drop(self.table().devices.remove(name)));
        }
        failures.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The devices that are attached now. Waits for those that are just coming or going; nothing once all are gone.
    fn take_attached(&self) -> Option<Vec<(String, Handle)>> {
        let mut table = self.table();
        loop {
            // Arrays and cached volumes stop before their members.
            let is_composite = |entry: &Entry| {
                let composite = matches!(entry.target, Target::Array(_) | Target::Cached(..));
                composite && matches!(entry.phase, Phase::Attached(_))
            };
            let composites = table.devices.values().any(is_composite);
            let now = table.devices.iter_mut().filter(|(_, entry)| !composites || is_composite(entry));
            let attached = now.filter_map(|(name, entry)| match entry.standing() {
                Standing::Attached(handle) => {
                    let handle = handle.clone();
                    entry.phase = Phase::Detaching;
                    Some((name.clone(), handle))
                }
                _ => None,
            });
            let attached: Vec<(String, Handle)> = attached.collect();
            let moving = |entry: &Entry| matches!(entry.phase, Phase::Attaching | Phase::Detaching);
            match (attached.is_empty(), table.devices.values().any(moving)) {
                (false, _) => return Some(attached),
                (true, false) => return None,
                (true, true) => table = self.settled.wait(table).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// What opens an encrypted device.
pub(crate) fn secret(passphrase: Option<&Passphrase>, key_file: Option<&Path>) -> Result<Option<Secret>, Failure> {
    match (passphrase, key_file) {
        (None, None) => Ok(None),
        (Some(passphrase), None) => Ok(Some(passphrase.secret()?)),
        (None, Some(file)) if file.is_absolute() => Ok(Some(Secret::key_file(file)?)),
        (None, Some(file)) => {
            Err(Failure::invalid(format!("{}: the path of a key file must be absolute", file.display()))
                .help("the service may run in another directory than its clients"))
        }
        (Some(_), Some(_)) => {
            Err(Failure::invalid("a passphrase and a key file were given").help("one of them opens the device"))
        }
    }
}

/// A lease as devices take it.
fn lease_ms(seconds: u32) -> Result<u64, Failure> {
    let ms = u64::from(seconds) * 1000;
    match ms == 0 || media::object::lease::LEASE_MS.contains(&ms) {
        true => Ok(ms),
        false => Err(Failure::invalid(format!("lease_seconds: {seconds} is no lease"))
            .help("choose 2 to 3600 seconds, or 0 for none")),
    }
}

/// A witness that is gone says nothing, and a new one in its place would say that all is well.
fn must_be_there(witness: &Path) -> Result<(), Failure> {
    std::fs::metadata(witness).map(drop).map_err(|error| {
        Failure::io(witness, &error)
            .help("put the witness back, or attach the device with `--witness` to begin a new one")
    })
}
