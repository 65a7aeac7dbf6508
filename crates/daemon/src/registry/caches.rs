//! Cached volumes. One is in the table like a device, on a thread of its own; the device that caches it and the one behind, if it is one,
//! stay in the table too, and nobody else uses them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cache::Mode;
use export::{Behind, CacheError, CachePlan, CacheShare};

use super::composites::Coming;
use super::table::{Entry, Standing};
use super::{Refused, Registry};
use crate::api::{
    CacheEstimates, CacheRequest, CacheSettingsRequest, CacheView, Caches, DeleteCacheRequest, OpenRequest,
    RoomEstimate,
};
use crate::handle::Handle;
use crate::state::{RememberedBehind, RememberedCache, USUAL_SHARE};
use crate::{Failure, Target, behind, names};

/// How often stores are looked for that volumes wait for, seconds.
const LOOK_S: u64 = 5;
/// How often it is looked whether everything stands behind.
const PAUSE: Duration = Duration::from_millis(20);

/// What a volume may have of its cache device.
fn share_of(volume: &RememberedCache) -> CacheShare {
    CacheShare { share: volume.share, limit_bytes: volume.limit_bytes }
}

fn checked_share(share: u32) -> Result<u32, Failure> {
    let refused = || Failure::invalid(format!("{share} is no share of a cache")).help("choose 1 to 1000; 100 is usual");
    (1..=1000).contains(&share).then_some(share).ok_or_else(refused)
}

fn mode_named(name: &str) -> Result<Mode, Failure> {
    Mode::from_name(name).ok_or_else(|| {
        Failure::invalid(format!("'{name}' is no mode of a cache"))
            .help("choose write-around, write-through or write-back")
    })
}

fn estimates_of(found: &cache::Estimates, sector_bytes: u32) -> CacheEstimates {
    let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
    let room = |room: &cache::Estimate| RoomEstimate {
        room_bytes: bytes(room.room_sectors),
        hit_ratio: room.hit_ratio,
        full: room.full,
    };
    CacheEstimates {
        read_bytes: bytes(found.read_sectors),
        hit_ratio: found.hit_ratio,
        rooms: found.rooms.iter().map(room).collect(),
    }
}

impl Registry {
    /// Every cached volume that the service remembers.
    pub fn caches(&self) -> Caches {
        let names: Vec<String> = self.table().state.caches().iter().map(|cache| cache.name.clone()).collect();
        // One that was deleted in between is simply not there.
        Caches { caches: names.iter().filter_map(|name| self.cache(name).ok()).collect() }
    }

    /// One cached volume.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn cache(&self, name: &str) -> Result<CacheView, Failure> {
        let (remembered, handle, health) = {
            let table = self.table();
            let remembered = table.cache(name)?.clone();
            match table.devices.get(name).map(Entry::standing) {
                Some(Standing::Attached(handle)) => (remembered, Some(handle.clone()), String::new()),
                Some(Standing::Failed(failure)) => (remembered, None, failure.to_string()),
                Some(_) => (remembered, None, "it is being opened or stopped".into()),
                None => (remembered, None, format!("stopped; `vsl cache open {name}` opens it")),
            }
        };
        let mut view = CacheView {
            name: remembered.name,
            uuid: remembered.uuid.to_string(),
            cache: remembered.cache,
            behind: remembered.behind.name(),
            mode: remembered.mode,
            share: remembered.share,
            limit_bytes: remembered.limit_bytes,
            state: "stopped".into(),
            health,
            ..CacheView::default()
        };
        if let Some(handle) = handle
            && let (Ok(Some((status, sector_bytes))), Ok(seen)) = (handle.cache_status(), handle.view())
        {
            let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
            view.state = status.condition.name().into();
            view.health = seen.status.health.clone();
            view.bytes = Some(seen.info.bytes());
            view.cached_bytes = bytes(self.cached_sectors(&view.cache, name));
            view.hit_bytes = bytes(status.hit_sectors);
            view.missed_bytes = bytes(status.missed_sectors);
            view.filled_bytes = bytes(status.filled_sectors);
            view.changed_bytes = bytes(status.changed_sectors);
            view.written_back_bytes = bytes(status.written_back_sectors);
            view.dirty_bytes = bytes(status.dirty_sectors);
            view.dirty_limit_bytes = bytes(status.dirty_limit);
            view.marked_regions = status.marked_regions;
            view.dropped_regions = status.dropped_regions;
            view.failed_copies = status.failed_copies;
            view.estimates = handle.cache_estimates().ok().flatten().map(|found| estimates_of(&found, sector_bytes));
        }
        Ok(view)
    }

    /// What a cache device holds of a volume; nothing where it is gone.
    fn cached_sectors(&self, cache: &str, volume: &str) -> u64 {
        let Ok(cache) = self.table().attached(cache) else { return 0 };
        cache.worker().cached_sectors(volume).ok().flatten().unwrap_or(0)
    }

    /// Gives a cached volume another share of its cache device, or another limit.
    ///
    /// # Errors
    /// There is none of that name, or the share or the limit cannot be.
    pub fn set_cache(&self, name: &str, request: &CacheSettingsRequest) -> Result<CacheView, Failure> {
        let (mut remembered, volume, cache) = {
            let mut table = self.table();
            let remembered = table.cache(name)?.clone();
            let cache = table.attached(&remembered.cache).ok();
            (remembered, table.attached(name).ok(), cache)
        };
        remembered.share = request.share.map_or(Ok(remembered.share), checked_share)?;
        if let Some(limit) = request.limit_bytes {
            remembered.limit_bytes = Some(limit).filter(|limit| *limit > 0);
        }
        let share = share_of(&remembered);
        match (&volume, &cache) {
            (Some(volume), Some(cache)) => volume.worker().set_cache_share(cache.worker(), share),
            (None, Some(cache)) => cache.worker().check_cache_share(&share),
            // It is checked when the volume is opened.
            (_, None) => Ok(()),
        }
        .map_err(|error| failure(name, &error))?;
        tracing::info!(volume = name, share = share.share, limit_bytes = share.limit_bytes, "has another share");
        self.table().state.remember_cache(remembered)?;
        self.cache(name)
    }

    /// Puts an attached device in front of slower storage, and serves the volume.
    ///
    /// # Errors
    /// The name is taken, or the devices cannot be used so; then nothing has changed.
    pub fn create_cache(&self, request: &CacheRequest) -> Result<CacheView, Failure> {
        let CacheRequest { name, cache, device, path, address, mode, share, limit_bytes } = request;
        names::check("volume", name)?;
        let share = checked_share(share.unwrap_or(USUAL_SHARE))?;
        let mode = mode.as_deref().map_or(Ok(Mode::Through), mode_named)?;
        let behind = match (device, path, address) {
            (Some(device), None, None) => RememberedBehind::Device(device.clone()),
            (None, None, Some(text)) => RememberedBehind::Address(behind::address(text)?),
            (None, Some(path), None) if path.is_absolute() => {
                RememberedBehind::Path(std::fs::canonicalize(path).map_err(|error| Failure::io(path, &error))?)
            }
            (None, Some(path), None) => {
                return Err(Failure::invalid(format!(
                    "{}: the path of what stands behind must be absolute",
                    path.display()
                ))
                .help("the service may run in another directory than its clients"));
            }
            _ => {
                return Err(
                    Failure::invalid("a volume has one store behind it").help("name one device, path or address")
                );
            }
        };
        let remembered = RememberedCache {
            name: name.clone(),
            uuid: uuid::Uuid::new_v4(),
            cache: cache.clone(),
            behind,
            mode: mode.name().into(),
            share,
            limit_bytes: *limit_bytes,
        };
        self.may_be_cached(&remembered)?;
        self.start_cache(&remembered, true, false)?;
        let devices = [Some(cache), device.as_ref()];
        for member in devices.into_iter().flatten() {
            self.exports.remove(member);
        }
        {
            let mut table = self.table();
            table.state.remember_cache(remembered)?;
            table.remember_parts(devices.into_iter().flatten())?;
        }
        self.cache(name)
    }

    /// Refuses what cannot be a cached volume, before anything is done.
    fn may_be_cached(&self, wanted: &RememberedCache) -> Result<(), Failure> {
        let mut table = self.table();
        let RememberedCache { name, cache, behind, .. } = wanted;
        if table.state.caches().iter().any(|cache| cache.name == *name) {
            return Err(
                Failure::conflict(format!("the name '{name}' is taken by a cached volume")).help("choose another")
            );
        }
        if *behind == RememberedBehind::Device(cache.clone()) {
            return Err(Failure::invalid(format!("{cache} cannot be the cache of itself")).help("name another device"));
        }
        let same = |other: &RememberedCache| other.behind == *behind && !matches!(behind, RememberedBehind::Device(_));
        if let Some(other) = table.state.caches().iter().find(|other| same(other)) {
            return Err(Failure::conflict(format!("{} stands behind the volume {}", behind.name(), other.name))
                .help(format!("delete that one first: `vsl cache delete {}`", other.name)));
        }
        let device = match behind {
            RememberedBehind::Device(device) => Some(device),
            RememberedBehind::Address(_) => None,
            RememberedBehind::Path(path) => {
                let uses = |entry: &Entry| entry.target.paths().is_some_and(|paths| paths.contains(path));
                if let Some((user, _)) = table.devices.iter().find(|(_, entry)| uses(entry)) {
                    return Err(Failure::conflict(format!("{} is attached as {user}", path.display()))
                        .help(format!("put that device behind: `--behind {user}`")));
                }
                None
            }
        };
        for member in [Some(cache), device].into_iter().flatten() {
            // Several volumes may share a cache device.
            let shares = member == cache && table.state.caches().iter().any(|other| other.cache == *cache);
            if shares {
                table.attached(member)?;
            } else {
                table.free(member)?;
            }
            let is_composite = matches!(table.entry(member)?.target, Target::Array(_) | Target::Cached(..));
            if is_composite {
                return Err(Failure::invalid(format!(
                    "{member} is no device of its own, and is neither a cache nor behind one"
                ))
                .help("name a device, or a path"));
            }
        }
        Ok(())
    }

    /// Opens a volume that was stopped or could not be opened; one that serves is stopped before.
    ///
    /// # Errors
    /// There is none of that name, clients use it, or its devices are not there.
    pub fn open_cache(&self, name: &str, request: &OpenRequest) -> Result<CacheView, Failure> {
        let mut remembered = self.table().cache(name)?.clone();
        if let Some(mode) = &request.mode {
            remembered.mode = mode_named(mode)?.name().into();
        }
        let serves = {
            let table = self.table();
            table.devices.get(name).is_some_and(|entry| matches!(entry.standing(), Standing::Attached(_)))
        };
        let state = self.cache(name)?.state;
        if serves && state == "degraded" && request.mode.is_none() {
            return self.give_back(&remembered).and_then(|()| self.cache(name));
        }
        if serves {
            let failed = state == "failed";
            match self.let_go(name, failed) {
                Ok(()) => {}
                Err(Refused::Gone(failure)) if !failed => return Err(failure),
                // It could not be stopped in order, which is why it is opened anew.
                Err(Refused::Gone(_)) => {}
                Err(Refused::StillAttached(failure)) => return Err(failure),
            }
        }
        self.start_cache(&remembered, false, request.unchanged)?;
        self.table().state.remember_cache(remembered)?;
        self.cache(name)
    }

    fn open_behind(&self, volume: &RememberedCache) -> Result<Behind, Failure> {
        if let RememberedBehind::Device(device) = &volume.behind {
            return Ok(Behind::Device(self.table().attached(device)?.worker().clone()));
        }
        let opened = behind::open(&volume.behind);
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        match opened {
            Ok(Some(store)) => {
                missed.remove(&volume.name);
                Ok(Behind::Store(store))
            }
            Ok(None) => Err(Failure::failed("what stands behind is a device of another service")),
            Err(failure) => {
                missed.insert(volume.name.clone());
                Err(failure)
            }
        }
    }

    /// Gives a volume that serves without its store that store back.
    fn give_back(&self, volume: &RememberedCache) -> Result<(), Failure> {
        let handle = self.table().attached(&volume.name)?;
        let behind = self.open_behind(volume)?;
        handle.worker().behind_returns(&behind).map_err(|error| failure(&volume.name, &error))?;
        tracing::info!(volume = volume.name, behind = volume.behind.name(), "the store behind is back");
        Ok(())
    }

    /// Looks for stores that volumes wait for, now and then; on a thread of its own, since a store may take long to answer.
    pub fn look_for_stores(self: &Arc<Self>, now_s: u64) {
        let waiting: Vec<RememberedCache> = {
            let table = self.table();
            if !now_s.is_multiple_of(LOOK_S) || !table.ready || table.closing {
                return;
            }
            table.state.caches().iter().filter(|cache| table.devices.contains_key(&cache.name)).cloned().collect()
        };
        if waiting.is_empty() || self.looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let registry = Arc::clone(self);
        let look = move || {
            for volume in &waiting {
                registry.look_for_store(volume);
            }
            registry.looking.store(false, Ordering::Release);
        };
        if let Err(error) = std::thread::Builder::new().name("stores".into()).spawn(look) {
            self.looking.store(false, Ordering::Release);
            tracing::error!("stores behind caches are not looked for: {error}");
        }
    }

    fn look_for_store(&self, volume: &RememberedCache) {
        let is_missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner).contains(&volume.name);
        let state = self.cache(&volume.name).map(|view| view.state).unwrap_or_default();
        let result = match state.as_str() {
            "degraded" => self.give_back(volume),
            "stopped" if is_missed => self.open_cache(&volume.name, &OpenRequest::default()).map(drop),
            _ => return,
        };
        if let Err(failure) = result {
            tracing::debug!(volume = volume.name, "its store is not back: {failure}");
        }
    }

    /// Starts a volume's thread, and serves it.
    fn start_cache(&self, volume: &RememberedCache, make: bool, unchanged: bool) -> Result<(), Failure> {
        let name = &volume.name;
        let target = Target::Cached(volume.cache.clone(), volume.behind.name());
        let mode = mode_named(&volume.mode)?;
        let behind = self.open_behind(volume)?;
        let (cache, coming) = {
            let mut table = self.table();
            (table.attached(&volume.cache)?.worker().clone(), Coming::new(&mut table, name, target)?)
        };
        let plan = CachePlan { uuid: volume.uuid, mode, make, unchanged, share: share_of(volume) };
        let started = Handle::start_cached(name, cache, behind, plan).map_err(|error| failure(name, &error));
        let words = format!("{}, cached by {}", mode.name(), volume.cache);
        self.serve_composite(name, coming, started, ("opened", words))?;
        tracing::info!(volume = name, mode = mode.name(), cache = volume.cache, "opened");
        Ok(())
    }

    /// Opens what the state file remembers, once the devices are attached and arrays are assembled.
    pub(super) fn open_remembered(&self) {
        let remembered = self.table().state.caches().to_vec();
        for volume in remembered {
            if let Err(failure) = self.start_cache(&volume, false, false) {
                tracing::error!(volume = volume.name, "not opened: {failure}");
                let target = Target::Cached(volume.cache, volume.behind.name());
                self.failed_composite(volume.name, target, failure);
            }
        }
    }

    /// A device was attached: volumes that failed for want of it are opened.
    pub(super) fn device_of_cache_came(&self, device: &str) {
        let volumes: Vec<RememberedCache> = {
            let table = self.table();
            let waits = |volume: &&RememberedCache| {
                table.ready && volume.uses(device) && table.devices.contains_key(&volume.name)
            };
            table.state.caches().iter().filter(waits).cloned().collect()
        };
        for volume in volumes {
            if self.cache(&volume.name).is_ok_and(|view| view.state == "healthy") {
                continue;
            }
            // One that serves without what came is given that back.
            if let Err(failure) = self.open_cache(&volume.name, &OpenRequest::default()) {
                tracing::error!(volume = volume.name, device, "not opened: {failure}");
            }
        }
    }

    /// Writes behind what is not there yet, and waits until it is.
    ///
    /// # Errors
    /// There is no such volume that serves, or the store behind fails.
    pub fn flush_cache(&self, name: &str) -> Result<CacheView, Failure> {
        let handle = {
            let mut table = self.table();
            table.cache(name)?;
            table.attached(name)?
        };
        let mut left = u64::MAX;
        let mut stuck = 0;
        loop {
            handle.write_back()?;
            let view = self.cache(name)?;
            if view.dirty_bytes == 0 && view.state == "healthy" {
                return Ok(view);
            }
            stuck = if view.dirty_bytes < left { 0 } else { stuck + 1 };
            left = left.min(view.dirty_bytes);
            if view.state != "healthy" || stuck > 1500 {
                return Err(Failure::failed(format!(
                    "{name}: {} bytes are not behind: {}",
                    view.dirty_bytes, view.health
                ))
                .help("what is not behind stays in the cache; see the service's log for what failed"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Writes everything behind, stops a volume and forgets it. Its devices are devices of their own again.
    ///
    /// # Errors
    /// There is none of that name, it is not confirmed, clients are connected and `force` is not set, or not everything can be written behind
    /// and `discard` is not set.
    pub fn delete_cache(&self, name: &str, request: &DeleteCacheRequest) -> Result<Caches, Failure> {
        let volume = self.table().cache(name)?.clone();
        if request.confirm != name {
            return Err(Failure::conflict(format!("{name}: deleting the cached volume was not confirmed"))
                .help(format!("repeat the volume's name: \"confirm\": \"{name}\"")));
        }
        let attached = self.table().attached(name).is_ok();
        if !request.discard {
            let lost =
                |failure: Failure| failure.help("open the volume first, or lose what is not behind: add --discard");
            if !attached {
                let stopped =
                    Failure::conflict(format!("{name} is not open: what its cache holds may not be behind yet"));
                return Err(lost(stopped));
            }
            self.flush_cache(name).map_err(lost)?;
        }
        if self.table().devices.contains_key(name) {
            match self.let_go(name, request.force) {
                Ok(()) | Err(Refused::Gone(_)) => {}
                Err(Refused::StillAttached(failure)) => return Err(failure),
            }
        }
        let cache = self.table().attached(&volume.cache);
        if let Ok(cache) = &cache
            && let Err(error) = cache.worker().forget_cached(volume.uuid, request.discard)
            && !matches!(error, CacheError::Unknown { .. })
        {
            return Err(failure(name, &error));
        }
        self.table().state.forget_cache(name)?;
        let behind = match &volume.behind {
            RememberedBehind::Device(device) => Some(device),
            RememberedBehind::Path(_) | RememberedBehind::Address(_) => None,
        };
        for member in [Some(&volume.cache), behind].into_iter().flatten() {
            let found = {
                let mut table = self.table();
                if table.is_served(member) { table.attached(member).ok() } else { None }
            };
            if let Some(handle) = found
                && let Err(failure) = self.exports.add(member, &handle, false)
            {
                tracing::error!(device = member, "not served again: {failure}");
            }
        }
        Ok(self.caches())
    }
}

fn failure(volume: &str, error: &CacheError) -> Failure {
    let said = format!("{volume}: {error}");
    let (what, help) = said.split_once("; ").unwrap_or((&said, ""));
    let failure = match error {
        CacheError::Dense { .. }
        | CacheError::Sectors { .. }
        | CacheError::NoPlace { .. }
        | CacheError::Limit { .. } => Failure::invalid(what),
        CacheError::Thread(_) | CacheError::Header { .. } => Failure::failed(what),
        _ => Failure::conflict(what),
    };
    let help = match error {
        CacheError::Failure(cache::Failure::Changed { .. }) => {
            "bring the store back as it was; if it is, `vsl cache open --unchanged` says so"
        }
        _ => help,
    };
    failure.help(help)
}
