//! What a volume may have of a cache that it shares with others: told to the thread of the cache device, and changed there.

use cache::{DIRTY_PART, Layout};
use device::Quota;

use super::error::CacheError;
use super::open::gone;
use crate::handle::{Gone, WorkerHandle};
use crate::worker::Worker;

/// The smallest limit, bytes, ...
const LIMIT_MIN: u64 = 16 << 20;
/// ... of the room of the cache device one part in so many, since a checkpoint is written for every few erase blocks of a small one, ...
const LIMIT_PART: u64 = 64;
/// ... and so many of the largest requests: four of them may be dirty.
const LIMIT_REQUESTS: u64 = 4 * DIRTY_PART;

/// What a volume may have of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShare {
    /// Its weight among the volumes that want more than they have.
    pub share: u32,
    /// Bytes that it may hold at most.
    pub limit_bytes: Option<u64>,
}

/// What a cache device has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub sectors: u64,
    pub sector_bytes: u32,
    pub max_request_bytes: u32,
}

impl Room {
    /// The smallest limit, bytes.
    fn least(&self) -> u64 {
        let part = self.sectors / LIMIT_PART * u64::from(self.sector_bytes);
        LIMIT_MIN.max(part).max(LIMIT_REQUESTS * u64::from(self.max_request_bytes))
    }

    /// Sectors of a limit; of one that is too small now those of the smallest one.
    fn limit(&self, share: &CacheShare) -> Option<u64> {
        share.limit_bytes.map(|bytes| bytes.max(self.least()) / u64::from(self.sector_bytes))
    }

    /// Sectors that may be dirty.
    pub fn dirty(&self, share: &CacheShare) -> u64 {
        self.limit(share).unwrap_or(u64::MAX).min(self.sectors) / DIRTY_PART
    }

    pub fn quota(&self, layout: &Layout, share: &CacheShare) -> Quota {
        Quota { sectors: layout.base..layout.base + layout.span(), share: share.share, limit: self.limit(share) }
    }

    /// Refuses a limit that is too small.
    pub fn check(&self, cache: &str, share: &CacheShare) -> Result<(), CacheError> {
        let least = self.least();
        match share.limit_bytes {
            Some(found) if found < least => Err(CacheError::Limit { cache: cache.to_owned(), found, least }),
            _ => Ok(()),
        }
    }
}

impl WorkerHandle {
    /// What it has to give as a cache, if its address space is larger than its room.
    pub(crate) fn cache_room(&self) -> Result<Option<Room>, CacheError> {
        let info = self.info().map_err(|_| gone(self))?;
        let (sector_bytes, max_request_bytes) = (info.sector_bytes, info.max_request_bytes);
        let room = self.ask(|worker| worker.served().device().and_then(|device| device.room()));
        Ok(room.map_err(|_| gone(self))?.map(|sectors| Room { sectors, sector_bytes, max_request_bytes }))
    }

    /// Whether this device, as a cache, lets a volume have so much.
    ///
    /// # Errors
    /// The limit is too small, or the device is gone.
    pub fn check_cache_share(&self, share: &CacheShare) -> Result<(), CacheError> {
        self.cache_room()?.map_or(Ok(()), |room| room.check(self.name(), share))
    }

    /// Gives the cached volume, which is served, another share of its cache device.
    ///
    /// # Errors
    /// The limit is too small, or a thread is gone.
    pub fn set_cache_share(&self, cache: &WorkerHandle, share: CacheShare) -> Result<(), CacheError> {
        let Some(room) = cache.cache_room()? else { return Ok(()) };
        room.check(cache.name(), &share)?;
        let (volume, limit, dirty) = (self.name().to_owned(), room.limit(&share), room.dirty(&share));
        let change = move |quota: &mut Quota| (quota.share, quota.limit) = (share.share, limit);
        cache.ask(move |worker| worker.change_quota(&volume, change)).map_err(|_| gone(cache))?;
        let told = self.ask(move |worker| worker.served().composite().map(|one| one.set_dirty_limit(dirty)));
        told.map(drop).map_err(|_| gone(self))
    }

    /// Sectors that this device, as a cache, holds of a volume: copies, and what is held.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn cached_sectors(&self, volume: &str) -> Result<Option<u64>, Gone> {
        let volume = volume.to_owned();
        self.ask(move |worker| worker.cached_sectors(&volume))
    }
}

impl Worker {
    /// Changes what a volume may have, if it is cached here.
    fn change_quota(&mut self, volume: &str, change: impl FnOnce(&mut Quota)) {
        if let Some(quota) = self.claims.iter_mut().find_map(|claim| claim.quota_of(volume)) {
            change(quota);
            self.share_out();
        }
    }

    fn cached_sectors(&mut self, volume: &str) -> Option<u64> {
        let quota = self.claims.iter_mut().find_map(|claim| claim.quota_of(volume))?;
        let sectors = quota.sectors.clone();
        self.served().device().map(|device| device.cached_sectors(sectors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_no_smaller_than_what_the_cache_can_keep() {
        let share = |limit_bytes| CacheShare { share: 100, limit_bytes };
        let small = Room { sectors: 1 << 16, sector_bytes: 4096, max_request_bytes: 512 << 10 };
        assert!(small.check("fast", &share(None)).is_ok() && small.check("fast", &share(Some(16 << 20))).is_ok());
        let refused = CacheError::Limit { cache: "fast".into(), found: (16 << 20) - 1, least: 16 << 20 };
        assert_eq!(small.check("fast", &share(Some((16 << 20) - 1))), Err(refused));
        let large = Room { sectors: 1 << 24, ..small };
        assert!(
            large.check("fast", &share(Some(1 << 30))).is_ok() && large.check("fast", &share(Some(1 << 29))).is_err()
        );
        let requests = Room { max_request_bytes: 4 << 20, ..small };
        assert_eq!(requests.least(), 80 << 20);
    }

    #[test]
    fn a_fifth_of_the_limit_may_be_dirty() {
        let room = Room { sectors: 1 << 20, sector_bytes: 4096, max_request_bytes: 512 << 10 };
        let share = |limit_bytes| CacheShare { share: 100, limit_bytes };
        assert_eq!(room.dirty(&share(None)), (1 << 20) / 5);
        assert_eq!(room.dirty(&share(Some(100 << 20))), (100 << 20) / 4096 / 5);
        assert_eq!(room.dirty(&share(Some(1 << 50))), (1 << 20) / 5, "no more than there is");
        // The device grew since.
        assert_eq!(room.dirty(&share(Some(1 << 20))), (64 << 20) / 4096 / 5);
    }
}
