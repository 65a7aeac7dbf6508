//! How a cached volume's thread begins: claims the cache device and what is behind, makes the volume or finds it, and opens it.

use std::sync::{Arc, Condvar};

use array::{Answer, Command, What};
use cache::{CACHE, Config, Header, Layout, Mode, REGION_BYTES, VOLUMES_MAX, Volume};
use device::IoError;
use media::ring::mailbox::Sender;
use uuid::Uuid;

use super::error::CacheError;
use super::quota::CacheShare;
use super::store::{Store, serve};
use crate::array::{ArrayError, Claimant};
use crate::composite::claim::Purpose;
use crate::composite::lane::{Bell, Lane, extent};
use crate::composite::{Composite, Machine, composite_info};
use crate::handle::{Call, WorkerHandle};

/// What stands behind.
#[derive(Clone)]
pub enum Behind {
    /// An attached device.
    Device(WorkerHandle),
    /// Something that threads read and write.
    Store(Arc<dyn Store>),
}

/// What is to become of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// Its identity.
    pub uuid: Uuid,
    /// What becomes of writes.
    pub mode: Mode,
    /// It is made; otherwise it was made before.
    pub make: bool,
    /// The store behind is as it was left, whatever it looks like.
    pub unchanged: bool,
    /// What it may have of the cache device.
    pub share: CacheShare,
}

/// The store behind, once it was opened or claimed.
struct Backing {
    name: String,
    lane: Arc<Lane>,
    sectors: u64,
    max_request: u32,
    witness: [u8; 32],
    later: Box<dyn Fn() -> [u8; 32] + Send>,
}

/// Gives members back where no volume came of them.
struct Release(Vec<Arc<Lane>>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.iter().for_each(|lane| lane.close());
    }
}

impl Composite {
    /// Claims a volume's devices, makes it or finds it, and waits until it serves.
    pub(crate) fn start_cached(
        name: &str,
        cache: &WorkerHandle,
        behind: &Behind,
        plan: &CachePlan,
        back: &Sender<Call>,
    ) -> Result<Composite, CacheError> {
        let info = cache.info().map_err(|_| gone(cache))?;
        let half = Layout::half(info.sectors);
        let claimed = Claimant::claim_for(Purpose::Cache(half), name, cache.name(), cache, back)?;
        let mut release = Release(vec![Arc::clone(&claimed.lane)]);
        let device = OnCache { name: cache.name(), claimed: &claimed, half };
        let Some(room) = cache.cache_room()? else {
            return Err(CacheError::Dense { cache: cache.name().into(), sectors: info.sectors });
        };
        if plan.make {
            room.check(cache.name(), &plan.share)?;
        }
        let backing = Backing::begin(name, behind, claimed.member.sector_bytes, back)?;
        release.0.push(Arc::clone(&backing.lane));
        let (number, header) = match plan.make {
            true => device.make(name, plan, &backing)?,
            false => device.find(plan.uuid)?,
        };
        let bytes = u64::from(header.sector_bytes);
        if backing.sectors < header.layout.sectors {
            let (found, expected) = (backing.sectors * bytes, header.layout.sectors * bytes);
            return Err(CacheError::Shrunk { behind: backing.name, found, expected });
        }
        let (quota, lane) = (room.quota(&header.layout, &plan.share), Arc::clone(&claimed.lane));
        cache.ask(move |worker| worker.set_quota(&lane, quota)).map_err(|_| gone(cache))?;
        let changed = !plan.unchanged && header.witness.is_some_and(|witness| witness != backing.witness);
        // One more for the trims in a batch.
        let largest = claimed.member.max_request_bytes / header.sector_bytes - 1;
        let volume = Volume::open(Config {
            header: Header { mode: plan.mode, ..header },
            number,
            max_request: 1 << largest.min(backing.max_request).ilog2(),
            room: room.sectors,
            dirty_limit: room.dirty(&plan.share),
            changed,
            // The model of a card takes requests in at once and carries them out later.
            looks_at_once: info.emulation.is_none(),
        });
        let names = vec![cache.name().to_owned(), backing.name];
        let lanes = std::mem::take(&mut release.0).into_iter().map(Some).collect();
        let shape = (volume.sectors(), volume.header().sector_bytes, volume.max_request_bytes());
        let info = composite_info(name, plan.uuid, shape, volume.sectors() * bytes);
        let composite = Composite::new(Machine::Cached(Box::new(volume)), info, lanes, names);
        let composite = composite.with_witness(backing.later);
        composite.until(|machine| match machine {
            Machine::Cached(volume) => Ok(volume.is_ready()?),
            Machine::Array(_) => Ok(true),
        })
    }
}

pub(super) fn gone(cache: &WorkerHandle) -> CacheError {
    ArrayError::Gone { member: cache.name().to_owned() }.into()
}

impl Backing {
    fn begin(name: &str, behind: &Behind, sector_bytes: u32, back: &Sender<Call>) -> Result<Backing, CacheError> {
        match behind {
            Behind::Device(handle) => Backing::device(name, handle, sector_bytes, back),
            Behind::Store(store) => Backing::store(name, store, sector_bytes, back),
        }
    }

    fn device(name: &str, handle: &WorkerHandle, expected: u32, back: &Sender<Call>) -> Result<Backing, CacheError> {
        let claimed = Claimant::claim(name, handle.name(), handle, back)?;
        let lane = Arc::clone(&claimed.lane);
        let release = Release(vec![Arc::clone(&lane)]);
        let member = claimed.member;
        if member.sector_bytes != expected {
            let found = format!("has sectors of {} bytes", member.sector_bytes);
            return Err(CacheError::Sectors { behind: handle.name().into(), found, expected });
        }
        let look = handle.clone();
        let later = move || look.written_so_far().unwrap_or_default();
        std::mem::forget(release);
        Ok(Backing {
            name: handle.name().to_owned(),
            lane,
            sectors: member.sectors,
            max_request: member.max_request_bytes / expected,
            witness: later(),
            later: Box::new(later),
        })
    }

    fn store(name: &str, store: &Arc<dyn Store>, expected: u32, back: &Sender<Call>) -> Result<Backing, CacheError> {
        let (behind, bytes, sector) = (store.name(), store.bytes(), u64::from(expected));
        if bytes == 0 || !bytes.is_multiple_of(sector) {
            let found = format!("is {bytes} bytes long, which is no number of sectors");
            return Err(CacheError::Sectors { behind, found, expected });
        }
        let (block, most) = (store.block_bytes(), store.request_bytes());
        if !expected.is_multiple_of(block.max(1)) || most < expected {
            let found = format!("takes requests of {block} to {most} bytes");
            return Err(CacheError::Sectors { behind, found, expected });
        }
        let lane = Lane::new(name, Bell::Threads(Condvar::new()), back.clone());
        let later = Arc::clone(store);
        let backing = Backing {
            name: behind,
            lane: Arc::clone(&lane),
            sectors: bytes / sector,
            max_request: most / expected,
            witness: store.witness(),
            later: Box::new(move || later.witness()),
        };
        serve(store, &lane, expected).map_err(|error| CacheError::Thread(error.to_string()))?;
        Ok(backing)
    }
}

/// The cache device, which was claimed.
struct OnCache<'a> {
    name: &'a str,
    claimed: &'a Claimant,
    half: u64,
}

impl OnCache<'_> {
    fn call(&self, what: What) -> Result<Answer, CacheError> {
        let failed = |error: IoError| ArrayError::Member { member: self.name.to_owned(), error };
        Ok(self.claimed.lane.call(Command { member: CACHE, tag: 1, what }).map_err(failed)?)
    }

    /// Every header, by number.
    fn headers(&self) -> Result<Vec<Option<Header>>, CacheError> {
        let sector_bytes = self.claimed.member.sector_bytes as usize;
        let (lba, buf) = (Layout::header(self.half, 0), vec![0; VOLUMES_MAX as usize * sector_bytes]);
        let Answer::Done(Some(sectors)) = self.call(What::Read { lba, buf })? else { return Ok(Vec::new()) };
        let damaged = |error| CacheError::Header { cache: self.name.into(), error };
        sectors.chunks_exact(sector_bytes).map(|sector| Header::decode(sector).map_err(damaged)).collect()
    }

    /// Makes a volume beside those that are there.
    fn make(&self, name: &str, plan: &CachePlan, backing: &Backing) -> Result<(u64, Header), CacheError> {
        let headers = self.headers()?;
        let others: Vec<Layout> = headers.iter().flatten().map(|header| header.layout).collect();
        if others.is_empty() && !self.is_empty()? {
            return Err(CacheError::NotEmpty { cache: self.name.into() });
        }
        let member = self.claimed.member;
        let sectors = backing.sectors;
        let shift = Layout::region_shift(sectors, REGION_BYTES / u64::from(member.sector_bytes));
        let layout = Layout::place(member.sectors, sectors, shift, &others);
        let (Some(number), Some(layout)) = (headers.iter().position(Option::is_none), layout) else {
            return Err(CacheError::NoPlace { cache: self.name.into(), sectors, most: VOLUMES_MAX });
        };
        // What a volume left that was there before.
        for lba in [layout.clean(0), layout.held(0)] {
            self.call(What::Zeroes { lba, count: layout.span(), fua: false })?;
        }
        let header = Header {
            uuid: plan.uuid,
            name: name.to_owned(),
            mode: plan.mode,
            sector_bytes: member.sector_bytes,
            layout,
            witness: None,
        };
        let data: Arc<[u8]> = header.encode().into();
        let (lba, part) = (Layout::header(self.half, number as u64), 0..data.len());
        self.call(What::Write { lba, data, part, fua: true })?;
        Ok((number as u64, header))
    }

    /// Whether the device holds nothing.
    fn is_empty(&self) -> Result<bool, CacheError> {
        let max = self.claimed.member.sectors;
        let answer = self.call(What::Extent { lba: 0, max })?;
        Ok(extent(&answer).is_some_and(|extent| !extent.mapped && extent.count >= max))
    }

    fn find(&self, uuid: Uuid) -> Result<(u64, Header), CacheError> {
        let headers = self.headers()?.into_iter().zip(0..);
        let found =
            headers.filter_map(|(header, number)| Some((number, header?))).find(|(_, header)| header.uuid == uuid);
        found.ok_or_else(|| CacheError::Unknown { cache: self.name.into() })
    }
}

impl WorkerHandle {
    /// Gives a cached volume that serves without its store that store back.
    ///
    /// # Errors
    /// It is another one, or nobody waits for it.
    pub fn behind_returns(&self, behind: &Behind) -> Result<(), CacheError> {
        let (volume, shape) = (self.name().to_owned(), self.info().map_err(|_| gone(self))?);
        let backing = Backing::begin(&volume, behind, shape.sector_bytes, self.sender())?;
        let release = Release(vec![Arc::clone(&backing.lane)]);
        let Backing { name: behind, sectors, max_request, .. } = &backing;
        if *sectors < shape.sectors {
            let bytes = u64::from(shape.sector_bytes);
            let (found, expected) = (sectors * bytes, shape.sectors * bytes);
            return Err(CacheError::Shrunk { behind: behind.clone(), found, expected });
        }
        let (found, expected) = (max_request * shape.sector_bytes, shape.max_request_bytes);
        if found < expected {
            return Err(CacheError::Smaller { behind: behind.clone(), found, expected });
        }
        let (lane, later) = (Arc::clone(&backing.lane), backing.later);
        let waited = self.ask(move |worker| match worker.served().composite() {
            Some(one) => one.behind_returns(lane, later),
            None => false,
        });
        if !waited.map_err(|_| gone(self))? {
            return Err(CacheError::NotAlone { volume });
        }
        std::mem::forget(release);
        Ok(())
    }

    /// Has the cache device forget a volume that nobody serves, with `discard` also what is not behind yet.
    ///
    /// # Errors
    /// The device cannot be used, does not cache that volume, or holds what is not behind yet.
    pub fn forget_cached(&self, uuid: Uuid, discard: bool) -> Result<(), CacheError> {
        let half = Layout::half(self.info().map_err(|_| gone(self))?.sectors);
        // Nobody waits for the bell of what is called.
        let claimed = Claimant::claim_for(Purpose::Cache(half), "forgetting", self.name(), self, self.sender())?;
        let _release = Release(vec![Arc::clone(&claimed.lane)]);
        let device = OnCache { name: self.name(), claimed: &claimed, half };
        let (number, header) = device.find(uuid)?;
        let layout = header.layout;
        let held = device.call(What::Extent { lba: layout.held(0), max: layout.sectors })?;
        let holds_nothing = extent(&held).is_some_and(|held| !held.mapped && held.count >= layout.sectors);
        if !discard && !holds_nothing {
            return Err(CacheError::Dirty { cache: self.name().into() });
        }
        // The header first: without it the rest belongs to nobody.
        device.call(What::Zeroes { lba: Layout::header(half, number), count: 1, fua: true })?;
        for lba in [layout.clean(0), layout.held(0)] {
            device.call(What::Zeroes { lba, count: layout.span(), fua: false })?;
        }
        device.call(What::Flush).map(drop)
    }

    /// Which device it is and how much was written to it: it changes with each write.
    fn written_so_far(&self) -> Result<[u8; 32], crate::Gone> {
        self.ask(|worker| {
            let layer = worker.served().figures().layer;
            let mut out = [0; 32];
            out[..16].copy_from_slice(worker.served().info().uuid.as_bytes());
            out[16..24].copy_from_slice(&layer.host_written_sectors.to_le_bytes());
            out[24..].copy_from_slice(&layer.host_trimmed_sectors.to_le_bytes());
            out
        })
    }
}
