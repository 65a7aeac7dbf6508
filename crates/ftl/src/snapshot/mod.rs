//! Snapshots: what a device held at a moment, kept while the head goes on.
//!
//! Making, deleting, renaming, holding and rolling back are records in the log, each a slot of its own, in order with writes and trims.
//! Recovery replays them at their place, so a snapshot has every write answered before it, and a roll back is there as a whole or
//! not at all. What snapshots see that the head does not is kept in an index (`views.rs`), which checkpoints write behind the map.
//!
//! The groomer moves a slot once, whoever refers to it. A copy says which slot it came from ([`Kind::Moved`]): recovery can then tell
//! what it is a copy of without knowing which snapshots saw it.

pub(crate) mod clones;
mod record;
pub(crate) mod views;

use std::ops::RangeInclusive;

use clones::{is_windowed, sector_of};
pub(crate) use record::{Record, decode_snapshot, encode_snapshot};
use views::CHUNK;

use crate::checkpoint::further_lebs;
use crate::layer::Ftl;
use crate::slots::UNNOTED;
use crate::space::{base_room, room_beside};
use crate::types::{Admission, Command, Error, Kind, NO_SLOT, Slot, Source};

/// A snapshot: the number of its record in the log. Newer ones have higher numbers.
pub type SnapshotId = u64;

/// The most snapshots of a device.
pub const SNAPSHOTS_MAX: usize = 4096;

/// Longest name, bytes.
pub const SNAPSHOT_NAME_MAX: usize = 63;

/// Pieces that one step of purging looks at.
const PURGED_AT_ONCE: usize = 64;

/// A snapshot of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Which.
    pub id: SnapshotId,
    /// What people call it.
    pub name: String,
    /// When it was made, seconds since 1970, as whoever made it said.
    pub created: u64,
    /// It may not be deleted.
    pub held: bool,
    /// Sectors that hold data in it.
    pub mapped: u64,
}

/// A change of a device's snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotChange {
    /// Make one of what the head holds now.
    Create {
        /// See [`Snapshot::name`].
        name: String,
        /// See [`Snapshot::created`].
        created: u64,
    },
    /// Delete it. What only it needed becomes free space, bit by bit.
    Delete(SnapshotId),
    /// Call it something else.
    Rename(SnapshotId, String),
    /// Keep it from being deleted, or let it be.
    Hold(SnapshotId, bool),
    /// Have the head hold what the snapshot does.
    RollBack {
        /// Which.
        to: SnapshotId,
        /// Delete the snapshots that are newer.
        delete_newer: bool,
    },
    /// Make a clone of a snapshot, to be written.
    Clone {
        /// Which snapshot.
        of: SnapshotId,
        /// See [`clones::SnapshotClone::name`].
        name: String,
        /// See [`clones::SnapshotClone::created`].
        created: u64,
    },
    /// Delete a clone.
    DeleteClone(SnapshotId),
    /// Have the head hold what the clone does, which is none any more.
    Promote(SnapshotId),
}

/// Why a change of snapshots was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// There is no such snapshot.
    #[error("there is no such snapshot")]
    Unknown,
    /// There is no such clone.
    #[error("there is no such clone")]
    UnknownClone,
    /// Another one has this name.
    #[error("there is a snapshot or a clone of the name \"{0}\" already; expected another name")]
    Taken(String),
    /// No snapshot can be called so.
    #[error(
        "\"{0}\" is no name for a snapshot; expected 1 to 63 letters, digits and any of . _ : + -, beginning with a letter or digit"
    )]
    Name(String),
    /// It is held.
    #[error("the snapshot \"{0}\" is held; release it first")]
    Held(String),
    /// There are too many.
    #[error("there are {SNAPSHOTS_MAX} snapshots, and a device has no more; delete some first")]
    TooMany,
    /// A clone stands on it.
    #[error("the clone \"{1}\" stands on the snapshot \"{0}\"; delete the clone first")]
    Cloned(String, String),
    /// There are too many clones.
    #[error("there are {} clones, and a device has no more; delete some first", clones::CLONES_MAX)]
    TooManyClones,
    /// The device takes no clones.
    #[error("this device takes no clones: {0}")]
    Unclonable(&'static str),
    /// What snapshots hold leaves no room.
    #[error("there is no room for what the snapshots would hold; delete some first")]
    Full,
    /// The device takes none.
    #[error("this device takes no snapshots: {0}")]
    Unsupported(&'static str),
    /// The media failed, or the store is full.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Sectors in a row that are alike in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// First sector.
    pub lba: u64,
    /// How many.
    pub count: u64,
    /// Whether they hold data in the second of what was compared.
    pub mapped: bool,
}

/// What snapshots take that nothing else does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Sectors of each snapshot that are freed when it alone is deleted.
    pub alone: Vec<(SnapshotId, u64)>,
    /// Where to go on counting; nothing when all was counted.
    pub next: Option<u64>,
}

/// Whether a snapshot may have this name: part of an export's name, a path and a command line.
fn is_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|first| first.is_ascii_alphanumeric());
    let rest = name.chars().all(|one| one.is_ascii_alphanumeric() || "._:+-".contains(one));
    first && rest && name.len() <= SNAPSHOT_NAME_MAX
}

/// How many sectors from `lba` on are alike, and how; none from `end` on, and none of another run of [`CHUNK`].
pub(crate) fn run_of<T: PartialEq>(lba: u64, end: u64, how: impl Fn(usize) -> T) -> (u64, T) {
    let bit = (lba % CHUNK) as usize;
    let bits = bit..bit + (end - lba).min(CHUNK - lba % CHUNK) as usize;
    let first = how(bit);
    (bits.take_while(|bit| how(*bit) == first).count() as u64, first)
}

impl Ftl {
    /// The snapshots, from the oldest to the newest.
    pub fn snapshots(&self) -> &[Snapshot] {
        self.views.snapshots()
    }

    /// Changes the snapshots, in order with requests. Gives the sequence number below which everything must be durable ([`Ftl::is_durable`]) before
    /// the change is; nothing where it must be asked for again when some command was completed.
    ///
    /// # Errors
    /// It cannot be done, and nothing was changed.
    pub fn change_snapshots(&mut self, change: &SnapshotChange) -> Result<Option<u64>, SnapshotError> {
        self.check_change(change)?;
        if let Some(error) = self.refusal() {
            return Err(error.into());
        }
        let back_to = match change {
            SnapshotChange::RollBack { to, .. } => Some(*to),
            SnapshotChange::Promote(id) => self.find_clone(*id).map(|clone| clone.of),
            _ => None,
        };
        if let Some(to) = back_to {
            // A checkpoint's pieces show the map at different moments, and a roll back is no change of a single sector that could be made
            // again for those that are behind it.
            if self.checkpointer.hurry() {
                self.work();
                return Ok(None);
            }
            // A promoted clone is there as a whole or not at all: nothing that it holds may be lost and the record found.
            if let SnapshotChange::Promote(_) = change
                && !self.is_durable(self.seq)
            {
                self.background_flush();
                self.work();
                return Ok(None);
            }
            let promoted = match change {
                SnapshotChange::Promote(id) => self.find_clone(*id).map_or(0, |clone| self.clones.bytes_of(clone)),
                _ => 0,
            };
            // What is promoted is live already, and what it takes the place of stays for the newest snapshot.
            match self.lacks_index_room(self.roll_back_bytes(to) + promoted) {
                None => {}
                Some(Admission::Refused(_)) => return Err(SnapshotError::Full),
                Some(_) => return Ok(None),
            }
        }
        if let SnapshotChange::Create { .. } | SnapshotChange::Clone { .. } = change
            && self.lacks_index_room(views::SNAPSHOT_BYTES as u64).is_some()
        {
            // There is room once what was unmapped is durable, or it would have been refused.
            return Ok(None);
        }
        let window = match change {
            SnapshotChange::Clone { .. } => self.clones.free_window(self.durable()),
            _ => Some(0),
        };
        let Some(window) = window else {
            // So many clones were deleted that every window waits for being free.
            while self.clones.is_purging() {
                let freed = self.purge_clones(PURGED_AT_ONCE);
                self.note_leaving(freed);
            }
            self.resize();
            self.background_flush();
            self.work();
            return Ok(None);
        };
        let record = Record::of(change, self.map.mapped(), window);
        let Some(stream) = self.host_stream_with_room(1, 0) else {
            return match self.no_room() {
                Admission::Refused(error) => Err(error.into()),
                _ => Ok(None),
            };
        };
        let run = self.reserve(stream, 1);
        let header = self.meta_header(Kind::Snapshot, run.slot);
        let source = Source::Meta(record.encode());
        self.commands.push(Command::Stage { buf: run.buf, at: run.at, count: 1, header, source });
        self.commit(stream, run);
        if let Record::Promote(id) = record {
            self.promote(id);
        }
        record.apply(&mut self.views, &mut self.clones, header.seq);
        if let Record::RollBack { to, .. } = record {
            self.roll_back(to);
        }
        self.resize();
        // What the work behind it appends is waited for by nobody.
        let seq = self.seq;
        self.background_flush();
        self.work();
        Ok(Some(seq))
    }

    /// Whether everything below a sequence number survives a power cut.
    pub fn is_durable(&self, seq: u64) -> bool {
        self.durable() >= seq
    }

    /// Whether a change can be made.
    ///
    /// # Errors
    /// It cannot be.
    pub fn check_change(&self, change: &SnapshotChange) -> Result<(), SnapshotError> {
        let find =
            |id: SnapshotId| self.snapshots().iter().find(|snapshot| snapshot.id == id).ok_or(SnapshotError::Unknown);
        let named = |name: &String, id: Option<SnapshotId>| match is_name(name) {
            false => Err(SnapshotError::Name(name.clone())),
            true => {
                let snapshots = self.snapshots().iter().map(|snapshot| (snapshot.id, &snapshot.name));
                let mut all = snapshots.chain(self.clones().iter().map(|clone| (clone.id, &clone.name)));
                match all.any(|other| other.1 == name && Some(other.0) != id) {
                    true => Err(SnapshotError::Taken(name.clone())),
                    false => Ok(()),
                }
            }
        };
        let free = |snapshot: &Snapshot| match snapshot.held {
            true => Err(SnapshotError::Held(snapshot.name.clone())),
            false => self.check_uncloned(snapshot),
        };
        match change {
            SnapshotChange::Create { name, .. } => {
                named(name, None)?;
                if self.map.is_preallocated() {
                    return Err(SnapshotError::Unsupported("its memory is taken beforehand for a page file"));
                }
                if self.snapshots().len() >= SNAPSHOTS_MAX {
                    return Err(SnapshotError::TooMany);
                }
                match self.fits_index(views::SNAPSHOT_BYTES as u64) {
                    true => Ok(()),
                    false => Err(SnapshotError::Full),
                }
            }
            SnapshotChange::Delete(id) => free(find(*id)?),
            SnapshotChange::Rename(id, name) => match self.find_clone(*id) {
                Some(_) => named(name, Some(*id)),
                None => find(*id).and_then(|_| named(name, Some(*id))),
            },
            SnapshotChange::Hold(id, _) => find(*id).map(|_| ()),
            SnapshotChange::RollBack { to, delete_newer } => {
                find(*to)?;
                let newer = self.snapshots().iter().filter(|snapshot| *delete_newer && snapshot.id > *to);
                newer.into_iter().try_for_each(free)
            }
            SnapshotChange::Clone { name, .. } => named(name, None).and_then(|()| self.check_clone_change(change)),
            SnapshotChange::DeleteClone(_) | SnapshotChange::Promote(_) => self.check_clone_change(change),
        }
    }

    /// What the head sees of a sector is something else from now on: keeps what it saw for the newest snapshot, where that does not have it
    /// yet, or lets go of it.
    #[cold]
    #[inline(never)]
    pub(crate) fn supersede(&mut self, lba: u64, old: Slot) {
        if let Some(newest) = self.views.newest_below(self.seq)
            && !self.has_changed(lba, old, newest)
        {
            self.views.push(lba, newest, old);
        } else if old == NO_SLOT {
            return;
        } else if !self.views.unshare(old) {
            return self.lebs.set_dead(old);
        }
        if old != NO_SLOT {
            // The policy counts what the host can still overwrite.
            self.lebs.set_note(self.lebs.place(old), UNNOTED);
        }
    }

    /// Whether the head was changed at a sector, where it sees `old`, after the newest snapshot. Mostly where `old` lies says so, and the index, of
    /// which hardly anything is in the processor's caches, is not asked.
    fn has_changed(&self, lba: u64, old: Slot, newest: SnapshotId) -> bool {
        (old != NO_SLOT && self.written_since(old) > newest) || self.views.covers(lba, newest..=SnapshotId::MAX)
    }

    /// What stands in a slot was written at this sequence number or later, so only entries of snapshots that are newer can refer to it.
    fn written_since(&self, slot: Slot) -> u64 {
        let leb = &self.lebs[self.lebs.place(slot).0];
        if leb.host_only { leb.opened } else { 0 }
    }

    /// Whether anybody refers to a slot as that of this sector.
    #[inline]
    pub(crate) fn is_used(&self, lba: u64, slot: Slot) -> bool {
        // What was promoted has the address of the clone that wrote it, until it is moved.
        let sector = sector_of(lba);
        let is_host = self.slot_at(lba) == slot || (sector != lba && self.map.get(sector) == slot);
        is_host || (self.has_views && self.views.holds(sector, slot, self.written_since(slot)))
    }

    /// The address under which a slot is known: the host's, where what has a clone's was promoted.
    pub(crate) fn home_of(&self, lba: u64, slot: Slot) -> u64 {
        if is_windowed(lba) && self.clones.slot(lba) != slot { sector_of(lba) } else { lba }
    }

    /// Whether a slot holds this sector, for the host, for a snapshot or for a clone.
    pub fn holds(&self, lba: u64, slot: Slot) -> bool {
        sector_of(lba) < self.map.sectors() && self.is_used(lba, slot)
    }

    /// Has everybody who refers to a slot refer to another one.
    pub(crate) fn redirect(&mut self, lba: u64, from: Slot, to: Slot) {
        if is_windowed(lba) {
            self.clones.redirect(lba, from, to);
        }
        let lba = sector_of(lba);
        if self.map.get(lba) == from {
            self.map.set(lba, to);
        }
        let since = self.written_since(from);
        self.views.redirect(lba, (from, to), since);
        self.views.move_shared(from, to);
    }

    /// The head sees what a snapshot sees. What it saw is kept for snapshots that are newer.
    pub(crate) fn roll_back(&mut self, to: SnapshotId) {
        let before = self.live_sectors();
        let mut chunk = 0;
        while let Some((found, mut bits)) = self.views.next_changed(chunk..u64::MAX, &(to..=SnapshotId::MAX)) {
            while bits != 0 {
                let lba = found * CHUNK + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                let old = self.map.get(lba);
                let new = self.views.see(to, lba, old);
                if new == old {
                    continue;
                }
                self.replace(lba, new);
                if new != NO_SLOT {
                    self.views.share(new);
                }
            }
            chunk = found + 1;
        }
        self.note_leaving(before.saturating_sub(self.live_sectors()));
    }

    /// The head sees another slot of a sector from now on.
    pub(crate) fn replace(&mut self, lba: u64, new: Slot) {
        let old = self.map.get(lba);
        if old != NO_SLOT {
            self.groomer.discarded(self.lebs.note(self.lebs.place(old)));
        }
        self.groomer.trimmed(lba, 1);
        self.supersede(lba, old);
        match new {
            NO_SLOT => self.map.clear(lba, 1, |_| {}),
            new => _ = self.map.set(lba, new),
        }
    }

    /// What a roll back may add to the index, at most.
    fn roll_back_bytes(&self, to: SnapshotId) -> u64 {
        let pieces = self.views.pieces((0, 0)).filter(|(key, _)| key.1 >= to);
        pieces
            .map(|(_, piece)| (views::PIECE_HEAD + piece.present.count_ones() as usize * size_of::<Slot>()) as u64)
            .sum()
    }

    /// Sectors that hold data, for the host, for a snapshot or for a clone.
    pub(crate) fn live_sectors(&self) -> u64 {
        self.map.mapped() + self.kept_sectors()
    }

    /// Sectors that hold data for snapshots and clones only.
    pub fn kept_sectors(&self) -> u64 {
        self.views.kept() + self.clones.held()
    }

    /// Bytes that snapshots and clones take in a checkpoint.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.views.bytes() + self.clones.bytes()
    }

    /// Sectors that may hold data at once, for the host and for snapshots, where that is a limit.
    pub fn live_limit(&self) -> Option<u64> {
        match self.has_views {
            true => Some(self.room + self.kept_sectors()),
            false => self.config.is_sparse().then(|| self.config.room()),
        }
    }

    /// Whether the index of snapshots may grow by so many bytes, once what was unmapped is durable.
    pub(crate) fn fits_index(&self, bytes: u64) -> bool {
        self.live_sectors() <= room_beside(&self.config, self.index_bytes() + bytes)
    }

    /// What to answer instead of letting the index grow by so many bytes, where there is no room for that now.
    pub(crate) fn lacks_index_room(&mut self, bytes: u64) -> Option<Admission> {
        self.settle_leaving();
        let room = room_beside(&self.config, self.index_bytes() + bytes);
        if self.live_sectors() + self.leaving_sectors <= room {
            return None;
        }
        Some(match self.leaving.back().filter(|_| self.live_sectors() <= room).copied() {
            Some((seq, _)) => self.busy_until_durable(seq),
            None => Admission::Refused(Error::Full),
        })
    }

    /// Bytes that a trim may add to the index, at most.
    pub(crate) fn trim_bytes(&self, lba: u64, count: u64) -> u64 {
        if !self.has_views {
            return 0;
        }
        if is_windowed(lba) {
            return self.clones.shows((&self.map, &self.views), lba, count).1;
        }
        let mapped = self.map.mapped_in(lba, count);
        let pieces = mapped.min(count / CHUNK + 2);
        pieces * views::PIECE_HEAD as u64 + mapped * size_of::<Slot>() as u64
    }

    /// Sectors of a range that a write would have live beside those that are: new ones, and those of which a snapshot needs what is there.
    pub(crate) fn newly_live(&self, lba: u64, count: u64) -> u64 {
        if !self.has_views {
            return count - self.map.mapped_in(lba, count);
        }
        (lba..lba + count).filter(|lba| self.slot_at(*lba) == NO_SLOT || self.is_seen(*lba)).count() as u64
    }

    /// Sectors of a range that hold data which a trim would free.
    pub(crate) fn freed_by(&self, lba: u64, count: u64) -> u64 {
        if !self.has_views {
            return self.map.mapped_in(lba, count);
        }
        (lba..lba + count).filter(|lba| self.slot_at(*lba) != NO_SLOT && !self.is_seen(*lba)).count() as u64
    }

    /// Whether a snapshot sees what the head sees of a sector.
    fn is_seen(&self, lba: u64) -> bool {
        // Snapshots are of the device, not of its clones.
        let newest = self.views.newest_below(self.seq).filter(|_| !is_windowed(lba));
        newest.is_some_and(|newest| !self.has_changed(lba, self.map.get(lba), newest))
    }

    /// Works out anew what may be live, and what a checkpoint takes: snapshots, or what they see, have changed.
    pub(crate) fn resize(&mut self) {
        self.has_views = self.views.is_active() || !self.clones.is_empty();
        let config = self.narrowed();
        let further = further_lebs(&config, self.index_bytes());
        if self.checkpointer.set_further(further as usize) {
            self.groomer.pace.set_further(&config, further);
        }
        self.room = match self.has_views {
            true => room_beside(&config, self.index_bytes()).saturating_sub(self.kept_sectors()),
            false => base_room(&self.config),
        };
    }

    /// Frees some of what only deleted snapshots needed. Returns whether there is more.
    pub(crate) fn purge(&mut self) -> bool {
        if !self.is_purging() {
            return false;
        }
        // The pieces of a checkpoint show the index at different moments: what moves meanwhile could be in none.
        if !self.is_started() || self.checkpointer.has_begun() {
            return true;
        }
        let (lebs, mut freed) = (&mut self.lebs, 0);
        self.views.purge(PURGED_AT_ONCE, |slot| {
            lebs.set_dead(slot);
            freed += 1;
        });
        freed += self.purge_clones(PURGED_AT_ONCE);
        self.note_leaving(freed);
        self.resize();
        self.is_purging()
    }

    /// Whether deleted snapshots or clones left something.
    pub(crate) fn is_purging(&self) -> bool {
        self.views.is_purging() || self.clones.is_purging()
    }

    /// What a snapshot sees of a sector.
    pub(crate) fn see(&self, id: SnapshotId, lba: u64) -> Slot {
        self.views.see(id, lba, self.map.get(lba))
    }

    /// What a moment sees of [`CHUNK`] sectors; `None` stands for the head.
    fn seen(&self, id: Option<SnapshotId>, chunk: u64) -> [Slot; CHUNK as usize] {
        let seen = id.map(|id| self.views.seen(id, chunk)).unwrap_or([None; CHUNK as usize]);
        let head = |bit: usize| match chunk * CHUNK + bit as u64 {
            lba if lba < self.map.sectors() => self.map.get(lba),
            _ => NO_SLOT,
        };
        std::array::from_fn(|bit| seen[bit].unwrap_or_else(|| head(bit)))
    }

    /// Where the next sectors lie that snapshots have entries of, from `lba` on.
    fn next_changed(&self, lba: u64, end: u64, ids: RangeInclusive<SnapshotId>) -> u64 {
        let next = self.views.next_changed(lba / CHUNK..end.div_ceil(CHUNK), &ids);
        next.map_or(end, |(chunk, _)| (chunk * CHUNK).clamp(lba, end))
    }

    /// How many sectors from `lba` on, at most `max`, all hold data in a snapshot or clone or all do not, and which. The next may be alike.
    pub fn run_in(&self, id: SnapshotId, lba: u64, max: u64) -> (u64, bool) {
        match self.find_clone(id) {
            Some(clone) => self.run_in_clone(clone, lba, max),
            None => self.views.run_in(&self.map, id, lba, max),
        }
    }

    /// How many sectors from `lba` on, at most `max`, compare alike between two moments, and how: whether they hold data in the second, or
    /// nothing where they are the same. `None` stands for the head. The next may be alike.
    pub fn compare(
        &self,
        one: Option<SnapshotId>,
        other: Option<SnapshotId>,
        lba: u64,
        max: u64,
    ) -> (u64, Option<bool>) {
        let end = (lba + max).min(self.map.sectors());
        let moment = |id: Option<SnapshotId>| id.unwrap_or(SnapshotId::MAX);
        let (older, newer) = (moment(one).min(moment(other)), moment(one).max(moment(other)));
        // What lies between them has entries of snapshots from the older one up to the newer one.
        let changed = if older == newer { end } else { self.next_changed(lba, end, older..=newer - 1) };
        if lba < changed {
            return (changed - lba, None);
        }
        let (before, after) = (self.seen(one, lba / CHUNK), self.seen(other, lba / CHUNK));
        run_of(lba, end, |bit| (before[bit] != after[bit]).then_some(after[bit] != NO_SLOT))
    }

    /// The sectors that differ between two moments, from sector `from` on; `None` stands for the head. Gives some of them, and where to go
    /// on, which is nothing when these were the last.
    pub fn diff(
        &self,
        one: Option<SnapshotId>,
        other: Option<SnapshotId>,
        from: u64,
        most: usize,
    ) -> (Vec<Changed>, Option<u64>) {
        let mut found: Vec<Changed> = Vec::new();
        let mut lba = from;
        while lba < self.map.sectors() {
            let (count, differs) = self.compare(one, other, lba, self.map.sectors() - lba);
            if let Some(mapped) = differs {
                let full = found.len() >= most.max(1);
                match found.last_mut() {
                    Some(last) if last.lba + last.count == lba && last.mapped == mapped => last.count += count,
                    _ if full => return (found, Some(lba)),
                    _ => found.push(Changed { lba, count, mapped }),
                }
            }
            lba += count;
        }
        (found, None)
    }

    /// Counts what each snapshot alone needs, from a place on: so many pieces of the index at a time.
    pub fn count_held(&self, from: u64, most: usize) -> Held {
        let mut held = Held::default();
        let mut alone = vec![0; self.snapshots().len()];
        let mut pieces = self.views.pieces((from, 0)).peekable();
        let mut looked = 0;
        while let Some((chunk, _)) = pieces.peek().map(|(key, _)| *key) {
            if looked >= most {
                held.next = Some(chunk);
                break;
            }
            // Up to which snapshot each sector's last entry went.
            let mut last = [0; CHUNK as usize];
            while let Some((key, piece)) = pieces.next_if(|(key, _)| key.0 == chunk) {
                looked += 1;
                for (bit, slot) in piece.entries() {
                    let first = self.snapshots().partition_point(|snapshot| snapshot.id <= last[bit as usize]);
                    let end = self.snapshots().partition_point(|snapshot| snapshot.id <= key.1);
                    if slot != NO_SLOT && end == first + 1 && !self.views.is_shared(slot) {
                        alone[first] += 1;
                    }
                    last[bit as usize] = key.1;
                }
            }
        }
        held.alone = self.snapshots().iter().map(|snapshot| snapshot.id).zip(alone).collect();
        held
    }
}
