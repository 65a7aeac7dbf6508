//! Snapshots of a device: changed in order with requests, and durable when that is answered.

use crate::core::News;
use crate::{Changed, Device, Extent, Held, Snapshot, SnapshotChange, SnapshotClone, SnapshotError, SnapshotId};

/// What a name behind a device's stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The number of the snapshot or clone.
    pub id: SnapshotId,
    /// It is a clone, and may be written.
    pub is_clone: bool,
}

impl Device {
    /// The snapshots, from the oldest to the newest.
    pub fn snapshots(&self) -> &[Snapshot] {
        self.core.ftl.snapshots()
    }

    /// The snapshot of a number.
    pub fn snapshot(&self, id: SnapshotId) -> Option<&Snapshot> {
        let at = self.snapshots().binary_search_by_key(&id, |snapshot| snapshot.id).ok()?;
        self.snapshots().get(at)
    }

    /// The snapshot of a name.
    pub fn snapshot_named(&self, name: &str) -> Option<&Snapshot> {
        self.snapshots().iter().find(|snapshot| snapshot.name == name)
    }

    /// The clones, from the oldest to the newest.
    pub fn clones(&self) -> &[SnapshotClone] {
        self.core.ftl.clones()
    }

    /// The clone of a number.
    pub fn find_clone(&self, id: SnapshotId) -> Option<&SnapshotClone> {
        self.core.ftl.find_clone(id)
    }

    /// The clone of a name.
    pub fn clone_named(&self, name: &str) -> Option<&SnapshotClone> {
        self.clones().iter().find(|clone| clone.name == name)
    }

    /// The snapshot or clone of a name.
    pub fn view_named(&self, name: &str) -> Option<Shown> {
        let snapshot = self.snapshot_named(name).map(|snapshot| Shown { id: snapshot.id, is_clone: false });
        snapshot.or_else(|| self.clone_named(name).map(|clone| Shown { id: clone.id, is_clone: true }))
    }

    /// Sectors that a clone alone holds: those that are freed when it is deleted.
    pub fn own_sectors(&self, clone: &SnapshotClone) -> u64 {
        self.core.ftl.own_sectors(clone)
    }

    /// Makes, deletes or renames a snapshot or a clone, or rolls back to a snapshot. A snapshot has everything that was answered before, and the change survives a
    /// power cut when this returns. The first snapshot of a format raises its version, and so does its first clone: programs before it cannot read it any more.
    ///
    /// # Errors
    /// It cannot be done. Where the media fail or the store is full, it may be there after the next attach, or not.
    pub fn change_snapshots(&mut self, change: &SnapshotChange) -> Result<(), SnapshotError> {
        let seq = loop {
            match self.record_change(change)? {
                Some(seq) => break seq,
                None => self.core.go_on()?,
            }
        };
        while !self.core.ftl.is_durable(seq) {
            self.core.go_on()?;
        }
        Ok(())
    }

    /// The same without waiting: the change takes its place in the order of requests, and survives a power cut once a flush that was asked for later is
    /// answered. False where it must be asked for again, when the medium has finished something.
    ///
    /// # Errors
    /// As above.
    pub fn begin_snapshot_change(&mut self, change: &SnapshotChange) -> Result<bool, SnapshotError> {
        if self.record_change(change)?.is_some() {
            return Ok(true);
        }
        self.core.advance()?;
        Ok(false)
    }

    /// Records a change. Gives the sequence number below which everything must be durable before it is.
    fn record_change(&mut self, change: &SnapshotChange) -> Result<Option<u64>, SnapshotError> {
        if self.is_read_only() {
            return Err(SnapshotError::Unsupported("it is attached read-only"));
        }
        if self.card.is_some() {
            return Err(SnapshotError::Unsupported("it is an emulated card"));
        }
        if self.zoned.is_some() {
            return Err(SnapshotError::Unsupported("it has zones"));
        }
        self.core.ftl.check_change(change)?;
        let failed = |error| match error {
            crate::IoError::NoSpace => SnapshotError::Failed(ftl::Error::NoSpace),
            _ => SnapshotError::Failed(ftl::Error::Media),
        };
        let mut news = vec![News::Snapshots];
        if let SnapshotChange::Clone { .. } = change {
            if self.is_resizing() {
                return Err(SnapshotError::Unclonable("it is getting another size; try again in a moment"));
            }
            news.push(News::Clones);
        }
        for news in news {
            if !self.core.admits(news).map_err(failed)? {
                return Ok(None);
            }
        }
        let begun = self.core.ftl.change_snapshots(change);
        if let Ok(Some(_)) = begun {
            self.mark_dirty();
            if self.info().format_version != self.core.superblock.version() {
                self.renew_info();
            }
            if let SnapshotChange::RollBack { .. } | SnapshotChange::Promote(_) = change {
                self.core.changed(0..self.info().sectors);
            }
        }
        self.core.carry_out(&[]);
        begun
    }

    /// The sectors that differ between two snapshots, or a snapshot and the present (`None`), from sector `from` on: so many runs at most, and where to
    /// go on.
    ///
    /// # Errors
    /// There is no such snapshot.
    pub fn diff(
        &self,
        one: Option<SnapshotId>,
        other: Option<SnapshotId>,
        from: u64,
        most: usize,
    ) -> Result<(Vec<Changed>, Option<u64>), SnapshotError> {
        self.check_known(one)?;
        self.check_known(other)?;
        Ok(self.core.ftl.diff(one, other, from, most))
    }

    /// How many sectors at `lba`, at most `max`, compare alike between two snapshots, or a snapshot and the present (`None`), and how: whether
    /// they hold data in the second, or nothing where they do not differ. The next may be alike.
    ///
    /// # Errors
    /// There is no such snapshot.
    #[inline]
    pub fn compare(
        &self,
        one: Option<SnapshotId>,
        other: Option<SnapshotId>,
        lba: u64,
        max: u64,
    ) -> Result<(u64, Option<bool>), SnapshotError> {
        self.check_known(one)?;
        self.check_known(other)?;
        if lba >= self.info().sectors {
            return Ok((max, None));
        }
        Ok(self.core.ftl.compare(one, other, lba, max))
    }

    fn check_known(&self, id: Option<SnapshotId>) -> Result<(), SnapshotError> {
        let known = id.is_none_or(|id| self.snapshot(id).is_some());
        if known { Ok(()) } else { Err(SnapshotError::Unknown) }
    }

    /// Sectors that may be written for certain before writes are refused for lack of room, where that is a limit. The list of what
    /// snapshots hold may take an erase block more at any time.
    pub fn room_left(&self) -> Option<u64> {
        let limit = self.core.ftl.live_limit().filter(|_| !self.core.ftl.is_cache())?;
        let leb = u64::from(self.core.superblock.geometry.slots_per_leb());
        Some(limit.saturating_sub(self.core.ftl.map().mapped() + self.core.ftl.kept_sectors() + leb))
    }

    /// Sectors that hold data for snapshots and clones only.
    pub fn kept_sectors(&self) -> u64 {
        self.core.ftl.kept_sectors()
    }

    /// Counts what each snapshot alone needs, see [`Held`].
    pub fn count_held(&self, from: u64, most: usize) -> Held {
        self.core.ftl.count_held(from, most)
    }

    /// A run of sectors at `lba` that all hold data in a snapshot or a clone, or at present (`None`), or all do not, like [`Device::extent`]. In a snapshot the
    /// next may be alike.
    ///
    /// # Errors
    /// There is no such snapshot.
    pub fn extent_in(&self, view: Option<SnapshotId>, lba: u64, max: u64) -> Result<Extent, SnapshotError> {
        let Some(id) = view else { return Ok(self.extent(lba, max)) };
        if self.find_clone(id).is_none() {
            self.check_known(view)?;
        }
        if lba >= self.info().sectors {
            return Ok(Extent { count: max, mapped: false });
        }
        let (count, mapped) = self.core.ftl.run_in(id, lba, max);
        Ok(Extent { count, mapped })
    }
}

impl crate::core::Core {
    /// Goes on until the medium finished something.
    fn go_on(&mut self) -> Result<(), SnapshotError> {
        if !self.advance()? {
            self.wait();
        }
        Ok(())
    }

    /// Takes what the medium finished. Gives whether it did.
    fn advance(&mut self) -> Result<bool, SnapshotError> {
        self.ftl.work();
        self.carry_out(&[]);
        let mut finished = false;
        while let Some(done) = self.next_done() {
            self.finish_media(done);
            finished = true;
        }
        self.share_sync();
        self.note_losses();
        if let Some(error) = self.ftl.failure() {
            return Err(error.into());
        }
        if !finished && self.in_flight == 0 {
            return Err(self.ftl.space_failure().map_or(SnapshotError::Full, SnapshotError::Failed));
        }
        Ok(finished)
    }
}
