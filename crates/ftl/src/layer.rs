//! The state machine itself: requests in, commands out. Start reading here.
//!
//! [`Ftl::submit`] answers or queues a request and leaves [`Command`]s behind, which the device fetches with
//! [`Ftl::commands`] and carries out in order. What a medium finished comes back through [`Ftl::complete`].
//! The parts of the layer are `impl Ftl` blocks of their own: `read`, `write`, `trims` and `batch` (requests), `append` (where bytes go), `durability`
//! (flushes), `groom`, `checkpoint`, `space` and `fill` (free LEBs).

use std::collections::VecDeque;

use crate::Geometry;
use crate::append::{Append, Buffers};
use crate::checkpoint::{Anchor, Checkpointer, checkpoint_lebs};
use crate::durability::Durability;
use crate::fill::Filling;
use crate::groom::Groomer;
use crate::leb::{ALL_STREAMS, LebState, Lebs, Stream};
use crate::map::Map;
use crate::narrow::Narrow;
use crate::policy::Policy;
use crate::read::{MediaRead, PendingRead};
use crate::snapshot::clones::Clones;
use crate::snapshot::views::Views;
use crate::space::{READY, base_room, is_sparse, room};
use crate::stats::Stats;
use crate::trims::OpenTrims;
use crate::types::{Admission, Command, Completion, Error, LebId, NO_SLOT, Request, Tag};
use crate::wear::Wear;

/// What a layer is made with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The media's shape.
    pub geometry: Geometry,
    /// Host sectors: as many as may hold data at once, or more than there are slots.
    pub sectors: u64,
    /// Largest write, sectors; at most 65,536.
    pub max_request: u32,
    /// Page buffers that the device gives; at least [`Config::min_buffers`].
    pub buffers: u32,
    /// Requests that may be pending at once.
    pub requests: u32,
    /// Slots appended between two checkpoints. The layer takes less where the spare space is small, and more
    /// where the map is large: at least sixteen times what a checkpoint writes.
    pub checkpoint_interval: u64,
    /// The media must be erased before it is programmed again (flash); files and memory need not.
    pub erase_before_program: bool,
    /// Medium and layer have power left to write down what they hold when it is cut (capacitors): everything taken is
    /// durable at once, and no checkpoint is needed but the last.
    pub power_protected: bool,
    /// Which LEB the groomer takes.
    pub policy: Policy,
}

impl Config {
    /// The most sectors that may hold data at once.
    pub fn room(&self) -> u64 {
        room(&self.geometry, self.sectors)
    }

    /// Whether the host can address more sectors than there are slots.
    pub fn is_sparse(&self) -> bool {
        is_sparse(&self.geometry, self.sectors)
    }

    /// The fewest buffers that let the largest request and the groomer go on at the same time.
    pub fn min_buffers(&self) -> u32 {
        self.max_request.div_ceil(self.geometry.slots_per_page) + 8 + u32::from(self.policy.streams().saturating_sub(2))
    }
}

/// Ids of asynchronous commands: what they are for in the upper byte, which one below.
pub(crate) mod id {
    pub const READ: u64 = 1 << 56;
    /// Of a read whose bytes are kept beyond those of later ones: no other of the groomer's has its id meanwhile.
    pub const KEPT: u64 = 1 << 40;
    pub const PROGRAM: u64 = 2 << 56;
    pub const ALLOCATE: u64 = 3 << 56;
    pub const ERASE: u64 = 4 << 56;
    pub const SYNC: u64 = 5 << 56;
    pub const ANCHOR: u64 = 6 << 56;

    pub const fn split(id: u64) -> (u64, u64) {
        (id & 0xff << 56, id & ((1 << 56) - 1))
    }
}

/// Whether an asynchronous command with this id is a [`Command::Read`].
pub const fn is_read(command: u64) -> bool {
    id::split(command).0 == id::READ
}

/// Whether an asynchronous command with this id is a [`Command::Sync`].
pub const fn is_sync(command: u64) -> bool {
    id::split(command).0 == id::SYNC
}

/// The translation layer of one module.
pub struct Ftl {
    pub(crate) config: Config,
    pub(crate) map: Map,
    pub(crate) views: Views,
    pub(crate) clones: Clones,
    /// There are snapshots or clones, or something is left of some.
    pub(crate) has_views: bool,
    pub(crate) lebs: Lebs,
    pub(crate) narrow: Narrow,
    pub(crate) free: VecDeque<LebId>,
    pub(crate) ready: VecDeque<LebId>,
    pub(crate) preparing: u32,
    /// LEBs that are being erased because one must be ready; those that the groomer emptied are not among them.
    pub(crate) cleaning: Vec<LebId>,
    pub(crate) no_space: Option<Error>,
    /// Why the LEB that was asked for last could not be had. Asking once more does not change it, the answer does.
    pub(crate) full: Option<Error>,
    /// Free LEBs that were not tried yet since the backing store was found full.
    pub(crate) untried: u32,
    /// Every free LEB was tried once.
    pub(crate) tried_all: bool,
    /// The backing store was asked for room once more on behalf of the request that finds none.
    pub(crate) asked_again: bool,
    /// The power was cut, and there was not enough free space for the host since.
    pub(crate) recovers_space: bool,
    /// A free LEB's space is being given back.
    pub(crate) giving_back: bool,
    pub(crate) filling: Filling,
    pub(crate) emptied: VecDeque<(LebId, u64)>,
    pub(crate) appends: [Append; ALL_STREAMS],
    pub(crate) buffers: Buffers,
    pub(crate) trims: Option<OpenTrims>,
    pub(crate) seq: u64,
    /// Slots left in the open LEBs that host writes go to.
    pub(crate) host_left: u64,
    /// The most sectors that may be mapped, where the host can address more; otherwise no limit.
    pub(crate) room: u64,
    /// Sectors that were unmapped: the number from which on durability covers that, and how many. Nothing where there is no limit.
    pub(crate) leaving: VecDeque<(u64, u64)>,
    pub(crate) leaving_sectors: u64,
    /// First sequence number of the write, or batch of writes and trims, that is being appended.
    pub(crate) batch: Option<u64>,
    /// What the host says that the request at hand belongs together with.
    pub(crate) placement: u8,
    pub(crate) durability: Durability,
    pub(crate) groomer: Groomer,
    /// Sectors that were moved to bring them into order.
    pub(crate) optimised: u64,
    pub(crate) checkpointer: Checkpointer,
    /// The LEB that the groomer staked, see `stake.rs`.
    pub(crate) staked: Option<LebId>,
    pub(crate) stats: Stats,
    pub(crate) wear: Wear,
    pub(crate) commands: Vec<Command>,
    /// Room for commands, while others are carried out.
    spare: Vec<Command>,
    completions: VecDeque<Completion>,
    pub(crate) pending_reads: Vec<PendingRead>,
    pub(crate) media_reads: Vec<Option<MediaRead>>,
    pub(crate) free_reads: Vec<u32>,
}

impl Ftl {
    /// A layer over the state that [`crate::Recovery`] found (or an empty one).
    pub(crate) fn with_state(
        config: Config,
        (map, views, clones): (Map, Views, Clones),
        mut lebs: Lebs,
        groomer: Groomer,
        seq: u64,
        anchor: Anchor,
    ) -> Ftl {
        let geometry = config.geometry;
        assert!(config.max_request <= 1 << 16 && config.max_request + 1 < geometry.slots_per_leb());
        assert!(config.buffers >= config.min_buffers());
        assert!(geometry.slots() < u64::from(u32::MAX));
        let mut free = VecDeque::new();
        free.extend(lebs.iter().filter(|(_, leb)| leb.state == LebState::Free).map(|(leb, _)| leb));
        let buffers = Buffers::new(config.buffers);
        lebs.guess_times(anchor.stats.host_written_sectors);
        let wear = Wear::new(config.erase_before_program, &lebs);
        let pending_reads = vec![PendingRead::default(); config.requests as usize];
        let stats = anchor.stats;
        let mut ftl = Ftl {
            map,
            has_views: false,
            views,
            clones,
            lebs,
            narrow: Narrow::new(&geometry),
            free,
            ready: VecDeque::new(),
            preparing: 0,
            cleaning: Vec::new(),
            no_space: None,
            full: None,
            untried: 0,
            tried_all: false,
            asked_again: false,
            recovers_space: false,
            giving_back: false,
            filling: Filling::default(),
            emptied: VecDeque::new(),
            appends: Default::default(),
            buffers,
            trims: None,
            seq,
            host_left: 0,
            room: base_room(&config),
            leaving: VecDeque::new(),
            leaving_sectors: 0,
            batch: None,
            placement: 0,
            durability: Durability::new(seq),
            groomer,
            optimised: 0,
            checkpointer: Checkpointer::new(anchor, &config),
            staked: None,
            stats,
            wear,
            commands: Vec::with_capacity(256),
            spare: Vec::new(),
            completions: VecDeque::with_capacity(64),
            pending_reads,
            media_reads: Vec::new(),
            free_reads: Vec::new(),
            config,
        };
        if ftl.views.is_active() || !ftl.clones.is_empty() {
            ftl.resize();
        }
        ftl
    }

    /// Takes a request. The range must lie inside the device; `tag` must be free.
    ///
    /// # Panics
    /// When the range or the size breaks that contract: the device checks what comes from outside.
    pub fn submit(&mut self, tag: Tag, request: Request<'_>) -> Admission {
        self.groomer.ahead.quiet = false;
        let frees = self.groomer.makes_losable(&request);
        let admission = self.take(tag, request);
        if frees && matches!(admission, Admission::Done | Admission::Pending) {
            self.groomer.note_losable();
        }
        admission
    }

    #[inline]
    fn take(&mut self, tag: Tag, request: Request<'_>) -> Admission {
        match request {
            Request::Read { lba, count } => self.read(tag, lba, count),
            Request::ReadSnapshot { id, lba, count } => self.read_snapshot(tag, id, lba, count),
            Request::Write { lba, count, fua } => self.write(tag, lba, count, fua),
            Request::Trim { lba, count, fua } => self.trim(tag, lba, count, fua),
            Request::Batch { ops, fua } => self.write_batch(tag, ops, fua),
            Request::Flush => self.flush(tag),
        }
    }

    /// All commands that are to be carried out, in order. What is reported meanwhile makes further ones, which come after these.
    #[inline]
    pub fn commands(&mut self) -> Option<Vec<Command>> {
        match self.commands.is_empty() {
            true => None,
            false => Some(std::mem::replace(&mut self.commands, std::mem::take(&mut self.spare))),
        }
    }

    /// The commands were carried out: their room serves the next ones.
    #[inline]
    pub fn carried_out(&mut self, mut commands: Vec<Command>) {
        commands.clear();
        self.spare = commands;
    }

    /// The next answer to a pending request.
    #[inline]
    pub fn completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    pub(crate) fn answer(&mut self, tag: Tag, result: Result<(), Error>) {
        self.completions.push_back(Completion { tag, result });
    }

    /// An asynchronous command is done. A failed *host* read is reported here too; groom reads that the medium
    /// answered come through [`Ftl::groomed`].
    pub fn complete(&mut self, command: u64, result: Result<(), Error>) {
        let (kind, which) = id::split(command);
        match kind {
            id::READ => {
                self.read_done(which as u32, result);
                // A read moves nothing else on, but that an emptied LEB may have waited for it.
                if self.emptied.is_empty() && !self.groomer.is_busy() {
                    return;
                }
            }
            id::PROGRAM => self.program_done(which, result),
            id::ALLOCATE => self.allocate_done(which as LebId, result),
            id::ERASE => self.erase_done(which as LebId, result),
            id::SYNC => self.sync_done(which, result),
            id::ANCHOR => self.anchor_done(result),
            _ => unreachable!("an id that the layer never gave"),
        }
        self.work();
    }

    /// Everything that goes on beside requests: grooming, checkpoints, free LEBs. Cheap when there is nothing to do.
    pub fn work(&mut self) {
        self.prepare_lebs();
        self.groom();
        if self.has_views {
            self.purge();
        }
        self.checkpoint();
        self.advance_sync();
    }

    /// Whether commands are under way or work is left that needs no request to go on.
    pub fn is_busy(&self) -> bool {
        !self.commands.is_empty()
            || !self.completions.is_empty()
            || self.durability.is_busy()
            || self.free_reads.len() < self.media_reads.len()
            || self.preparing > 0
            || self.groomer.is_busy()
            || self.checkpointer.is_running()
    }

    /// For quiet times: makes everything taken so far durable, and grooms a LEB where the log takes much more room
    /// than its data needs. Returns whether there is more to do.
    pub fn idle(&mut self) -> bool {
        self.background_flush();
        self.groomer.ahead.quiet = true;
        let more = self.idle_round();
        if self.is_purging() {
            // What deleted snapshots left waits for the checkpoint that is under way, which waits for requests otherwise.
            self.checkpointer.hurry();
        }
        self.work();
        let (gives, fills) = (self.give_space_back(), self.fill_ahead());
        gives || fills || more || self.is_purging()
    }

    /// Changes [`Config::checkpoint_interval`].
    pub fn set_checkpoint_interval(&mut self, slots: u64) {
        self.config.checkpoint_interval = slots;
        self.checkpointer.interval_changed();
    }

    /// Begins the final checkpoint. When [`Ftl::is_closed`] says so, the device may let go of the medium.
    pub fn close(&mut self) {
        // Somebody may have made room since it was last found missing.
        self.no_space = None;
        self.checkpointer.close();
        self.work();
    }

    /// Whether the final checkpoint is on media, or cannot be written (`Some(Err)`).
    pub fn is_closed(&self) -> Option<Result<(), Error>> {
        match self.durability.broken.or(self.durability.stalled()) {
            Some(error) => Some(Err(error)),
            None => (self.checkpointer.is_closed() && !self.is_busy()).then_some(Ok(())),
        }
    }

    /// Whether a write of `count` sectors would be taken now. While it would not, asking costs less than submitting it.
    #[inline]
    pub fn takes(&self, count: u32) -> bool {
        self.groomer.pace.admits() && self.host_room(count)
    }

    /// Says that a sector is asked for soon: its place in the map is fetched into the cache.
    #[inline]
    pub fn hint(&self, lba: u64) {
        self.map.prefetch(lba);
    }

    /// Keeps a LEB as it is until [`Ftl::unpin`]: it is not erased or used again. False when it holds nothing that is needed. One
    /// that was emptied still does: what emptied it may not be durable yet, or a read may be under way there.
    pub fn pin(&mut self, leb: LebId) -> bool {
        let entry = &mut self.lebs[leb];
        let holds = matches!(entry.state, LebState::Emptied | LebState::Closed | LebState::Grooming);
        entry.readers += u32::from(holds);
        holds
    }

    /// The LEB may be erased again.
    pub fn unpin(&mut self, leb: LebId) {
        self.lebs[leb].readers -= 1;
        self.work();
    }

    /// The next sequence number: what is appended from now on has it or a higher one.
    pub fn next_seq(&self) -> u64 {
        self.seq
    }

    /// Closes every LEB that is open, where it stands.
    pub fn close_open_lebs(&mut self) {
        for stream in Stream::all() {
            self.give_up(stream);
        }
    }

    /// Says that a sector is about to be written: what is known of the slot that it leaves is fetched into the cache. The sector's place in
    /// the map should be there, see [`Ftl::hint`].
    #[inline]
    pub fn hint_write(&self, lba: u64) {
        let old = self.slot_at(lba);
        if old != NO_SLOT {
            self.lebs.prefetch(old);
        }
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The forward map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The last checkpoint: where in the log it begins, and how many slots it takes.
    pub fn last_checkpoint(&self) -> (u64, u32) {
        let anchor = self.checkpointer.committed();
        (anchor.begin, anchor.checkpoint_slots)
    }

    /// Counters over the life of the format.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// A sync or an anchor failed: writes fail until the next attach, and what was not durable then never will be. Gives the first sequence
    /// number that was not.
    pub fn doubted_from(&self) -> Option<u64> {
        self.durability.broken.map(|_| self.durable())
    }

    /// Why writes fail at present, if they do.
    pub fn failure(&self) -> Option<Error> {
        self.durability.broken.or(self.durability.stalled())
    }

    /// Why no further LEB could be had, if so.
    pub fn space_failure(&self) -> Option<Error> {
        self.no_space
    }

    /// Why the backing store gave no space when it was asked last, if so.
    pub fn store_failure(&self) -> Option<Error> {
        self.full
    }

    /// The backing store is known to have room again.
    pub fn has_room_again(&mut self) {
        (self.no_space, self.full) = (None, None);
        self.prepare_lebs();
    }

    /// Bytes that recovery asks of each die at most before a device can be written again: a checkpoint of the whole map, and the LEBs that
    /// are kept ready.
    pub fn recovery_bytes(config: &Config) -> u64 {
        let lebs = checkpoint_lebs(&config.geometry, config.room(), config.is_sparse(), 0) + 1 + READY as u32;
        u64::from(lebs) * config.geometry.block_bytes()
    }

    /// Free LEBs, those made ready included.
    pub fn free_lebs(&self) -> u32 {
        (self.free.len() + self.ready.len()) as u32 + self.preparing
    }

    /// The LEBs.
    pub fn lebs(&self) -> &Lebs {
        &self.lebs
    }

    /// Whether a slot's page still stands in a buffer, from which it is read then.
    pub fn is_buffered(&self, slot: crate::Slot) -> bool {
        let geometry = &self.config.geometry;
        self.lebs[slot / geometry.slots_per_leb()].buffered > 0
            && self.buffers.find(slot / geometry.slots_per_page).is_some()
    }

    /// Heap memory of map, LEB table and books, bytes; buffers belong to the device.
    pub fn memory(&self) -> usize {
        self.map.memory()
            + self.views.memory()
            + self.clones.memory()
            + self.lebs.memory()
            + self.groomer.memory()
            + self.pending_reads.capacity() * size_of::<PendingRead>()
            + self.media_reads.capacity() * size_of::<Option<MediaRead>>()
            + self.commands.capacity() * size_of::<Command>()
    }
}

/// What unit tests of single files begin with.
#[cfg(test)]
pub(crate) mod small {
    use super::{Config, Ftl};
    use crate::checkpoint::Anchor;
    use crate::policy::Policy;
    use crate::{Command, Geometry, Recovery, TRAILER_BYTES, first_seq};

    /// Forty LEBs of sixteen slots.
    pub fn config() -> Config {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 40,
            pages_per_block: 4,
            slots_per_page: 4,
            sector_bytes: 4096,
            trailer_bytes: TRAILER_BYTES,
            unit_bytes: 4096,
        };
        Config {
            geometry,
            sectors: 100,
            max_request: 4,
            buffers: 64,
            requests: 16,
            checkpoint_interval: 1000,
            erase_before_program: false,
            power_protected: false,
            policy: Policy::Fifo,
        }
    }

    /// An empty layer in its second attach; the detach before was in good order.
    pub fn attached(config: Config) -> Ftl {
        let anchor = Anchor { begin: first_seq(1), clean: true, ..Anchor::default() };
        Recovery::new(config, anchor).and_then(|recovery| recovery.finish(2)).expect("a sound anchor")
    }

    /// All LEBs that are being made ready are.
    pub fn make_ready(layer: &mut Ftl) {
        for command in layer.commands().unwrap_or_default() {
            if let Command::Allocate { id, .. } = command {
                layer.complete(id, Ok(()));
            }
        }
    }
}
