//! The state machine itself: requests in, commands out. Start reading here.
//!
//! [`Ftl::submit`] answers or queues a request and leaves [`Command`]s behind, which the device fetches with
//! [`Ftl::poll`] and carries out in order. What a medium finished comes back through [`Ftl::complete`].
//! The parts of the layer are `impl Ftl` blocks of their own: `append` (where bytes go), `durability`
//! (flushes), `groom`, `checkpoint`, `space` (free LEBs).

use std::collections::VecDeque;

use crate::Geometry;
use crate::append::{Append, Buffers};
use crate::checkpoint::{Anchor, Checkpointer};
use crate::commands::Commands;
use crate::durability::Durability;
use crate::groom::Groomer;
use crate::leb::{LebState, Lebs, STREAMS, Stream};
use crate::map::Map;
use crate::policy::Policy;
use crate::stats::Stats;
use crate::trims::OpenTrims;
use crate::types::{
    Admission, Command, Completion, Error, Header, Kind, LebId, NO_SLOT, ReadFor, Request, Source, Tag,
};
use crate::wear::Wear;

/// What a layer is made with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The media's shape.
    pub geometry: Geometry,
    /// Host sectors.
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
    /// The fewest buffers that let the largest request and the groomer go on at the same time.
    pub fn min_buffers(&self) -> u32 {
        self.max_request.div_ceil(self.geometry.slots_per_page) + 8 + u32::from(self.policy.streams().saturating_sub(2))
    }
}

/// Ids of asynchronous commands: what they are for in the upper byte, which one below.
pub(crate) mod id {
    pub const READ: u64 = 1 << 56;
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

/// A read request that waits for media.
#[derive(Clone, Copy, Default)]
pub(crate) struct PendingRead {
    pub parts: u32,
    pub error: Option<Error>,
}

/// A media read under way.
#[derive(Clone, Copy)]
pub(crate) struct MediaRead {
    pub leb: LebId,
    pub purpose: ReadFor,
    pub page: u32,
    pub at: u32,
    pub count: u32,
}

/// The translation layer of one module.
pub struct Ftl {
    pub(crate) config: Config,
    pub(crate) map: Map,
    pub(crate) lebs: Lebs,
    pub(crate) free: VecDeque<LebId>,
    pub(crate) ready: VecDeque<LebId>,
    pub(crate) preparing: u32,
    /// LEBs that are being erased because one must be ready; those that the groomer emptied are not among them.
    pub(crate) cleaning: Vec<LebId>,
    pub(crate) no_space: Option<Error>,
    /// Free LEBs that were not tried yet since the backing store was found full.
    pub(crate) untried: u32,
    /// Every free LEB was tried once.
    pub(crate) tried_all: bool,
    /// The backing store was asked for room once more on behalf of the request that finds none.
    pub(crate) asked_again: bool,
    /// A free LEB's space is being given back.
    pub(crate) giving_back: bool,
    pub(crate) emptied: VecDeque<(LebId, u64)>,
    pub(crate) appends: [Append; STREAMS],
    pub(crate) buffers: Buffers,
    pub(crate) trims: Option<OpenTrims>,
    pub(crate) seq: u64,
    /// First sequence number of the batch that is being appended.
    pub(crate) batch: Option<u64>,
    pub(crate) durability: Durability,
    pub(crate) groomer: Groomer,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) stats: Stats,
    pub(crate) wear: Wear,
    /// In a box of its own, so that handing all of them over moves one word.
    pub(crate) commands: Box<Commands>,
    completions: VecDeque<Completion>,
    pending_reads: Vec<PendingRead>,
    media_reads: Vec<Option<MediaRead>>,
    free_reads: Vec<u32>,
}

impl Ftl {
    /// A layer over the state that [`crate::Recovery`] found (or an empty one).
    pub(crate) fn with_state(config: Config, map: Map, lebs: Lebs, seq: u64, anchor: Anchor) -> Ftl {
        let geometry = config.geometry;
        assert!(config.max_request <= 1 << 16 && config.max_request + 1 < geometry.slots_per_leb());
        assert!(config.buffers >= config.min_buffers());
        assert!(geometry.slots() < u64::from(u32::MAX));
        let mut free = VecDeque::new();
        free.extend(lebs.iter().filter(|(_, leb)| leb.state == LebState::Free).map(|(leb, _)| leb));
        let buffers = Buffers::new(config.buffers);
        let mut lebs = lebs;
        lebs.guess_times(anchor.stats.host_written_sectors);
        let groomer = Groomer::new(&config);
        let wear = Wear::new(config.erase_before_program, &lebs);
        let pending_reads = vec![PendingRead::default(); config.requests as usize];
        let stats = anchor.stats;
        Ftl {
            map,
            lebs,
            free,
            ready: VecDeque::new(),
            preparing: 0,
            cleaning: Vec::new(),
            no_space: None,
            untried: 0,
            tried_all: false,
            asked_again: false,
            giving_back: false,
            emptied: VecDeque::new(),
            appends: Default::default(),
            buffers,
            trims: None,
            seq,
            batch: None,
            durability: Durability::new(seq),
            groomer,
            checkpointer: Checkpointer::new(anchor, &config),
            stats,
            wear,
            commands: Box::new(Commands::with_capacity(256)),
            completions: VecDeque::with_capacity(64),
            pending_reads,
            media_reads: Vec::new(),
            free_reads: Vec::new(),
            config,
        }
    }

    /// Takes a request. The range must lie inside the device; `tag` must be free.
    ///
    /// # Panics
    /// When the range or the size breaks that contract: the device checks what comes from outside.
    pub fn submit(&mut self, tag: Tag, request: Request) -> Admission {
        self.groomer.ahead.quiet = false;
        match request {
            Request::Read { lba, count } => self.read(tag, lba, count),
            Request::Write { lba, count, fua } => self.write(tag, lba, count, fua),
            Request::Trim { lba, count, fua } => self.trim(tag, lba, count, fua),
            Request::Flush => self.flush(tag),
        }
    }

    /// The next command to carry out.
    #[inline]
    pub fn poll(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// All commands there are, in place of what `batch` held: the same as [`Ftl::poll`] until there are no more, without copying each.
    /// Returns whether there are any. What is reported meanwhile makes further ones, which come after these.
    #[inline]
    pub fn take_commands(&mut self, batch: &mut Box<Commands>) -> bool {
        if self.commands.is_empty() {
            return false;
        }
        batch.clear();
        std::mem::swap(&mut self.commands, batch);
        true
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
            id::SYNC => self.sync_done(result),
            id::ANCHOR => self.anchor_done(result),
            _ => unreachable!("an id that the layer never gave"),
        }
        self.work();
    }

    /// Everything that goes on beside requests: grooming, checkpoints, free LEBs. Cheap when there is nothing to do.
    pub fn work(&mut self) {
        self.prepare_lebs();
        self.groom();
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

    fn read(&mut self, tag: Tag, lba: u64, count: u32) -> Admission {
        assert!(lba + u64::from(count) <= self.map.sectors() && count > 0);
        self.stats.host_read_sectors += u64::from(count);
        let geometry = self.config.geometry;
        let mut parts = 0;
        let mut first = 0;
        while first < count {
            let slot = self.map.get(lba + u64::from(first));
            let mut run = 1;
            if slot == NO_SLOT {
                while first + run < count && self.map.get(lba + u64::from(first + run)) == NO_SLOT {
                    run += 1;
                }
                self.commands.push_back(Command::Zero { tag, first, count: run });
                first += run;
                continue;
            }
            let at = slot % geometry.slots_per_page;
            while first + run < count
                && at + run < geometry.slots_per_page
                && self.map.get(lba + u64::from(first + run)) == slot + run
            {
                run += 1;
            }
            let leb = slot / geometry.slots_per_leb();
            let buffered = match self.lebs[leb].buffered {
                0 => None,
                _ => self.buffers.find(slot / geometry.slots_per_page),
            };
            match buffered {
                Some(buf) => self.commands.push_back(Command::Copy { tag, first, count: run, buf, at }),
                None => {
                    let lba = lba + u64::from(first);
                    self.read_media(slot, run, ReadFor::Request { tag, first, lba });
                    parts += 1;
                }
            }
            first += run;
        }
        if parts == 0 {
            return Admission::Done;
        }
        self.pending_reads[tag as usize] = PendingRead { parts, error: None };
        Admission::Pending
    }

    pub(crate) fn read_media(&mut self, slot: u32, count: u32, purpose: ReadFor) {
        let geometry = &self.config.geometry;
        let (page, at) = geometry.locate(slot);
        let min_seq = if crate::mutant!(StalePasses) { 0 } else { self.lebs[page.leb].opened };
        self.lebs[page.leb].readers += 1;
        let n = slot % geometry.slots_per_leb() / geometry.slots_per_page;
        let read = Some(MediaRead { leb: page.leb, purpose, page: n, at, count });
        let which = match self.free_reads.pop() {
            Some(which) => {
                self.media_reads[which as usize] = read;
                which
            }
            None => {
                self.media_reads.push(read);
                self.media_reads.len() as u32 - 1
            }
        };
        let id = id::READ | u64::from(which);
        self.commands.push_back(Command::Read { id, page, at, count, slot, min_seq, purpose });
    }

    /// Ends a media read's book-keeping.
    pub(crate) fn take_read(&mut self, which: u32) -> MediaRead {
        let read = self.media_reads[which as usize].take().expect("a read that is under way");
        self.free_reads.push(which);
        self.lebs[read.leb].readers -= 1;
        read
    }

    fn read_done(&mut self, which: u32, result: Result<(), Error>) {
        let read = self.take_read(which);
        let ReadFor::Request { tag, .. } = read.purpose else {
            // The medium failed it as a whole: none of its sectors can be moved.
            let unreadable = vec![None; read.count as usize];
            self.groom_read_done(id::READ | u64::from(which), &read, &unreadable);
            return;
        };
        let pending = &mut self.pending_reads[tag as usize];
        pending.parts -= 1;
        pending.error = pending.error.or(result.err());
        if pending.parts == 0 {
            let result = pending.error.map_or(Ok(()), Err);
            self.stats.read_errors += u64::from(result.is_err());
            self.answer(tag, result);
        }
    }

    /// A groom read is done: for each of its slots the header that stands there, `None` where the check failed.
    pub fn groomed(&mut self, command: u64, headers: &[Option<Header>]) {
        let (_, which) = id::split(command);
        let read = self.take_read(which as u32);
        assert_eq!(headers.len(), read.count as usize);
        self.groom_read_done(command, &read, headers);
        self.work();
    }

    fn write(&mut self, tag: Tag, lba: u64, count: u32, fua: bool) -> Admission {
        assert!(lba + u64::from(count) <= self.map.sectors() && (1..=self.config.max_request).contains(&count));
        if let Some(error) = self.refusal() {
            return Admission::Refused(error);
        }
        let wanted = self.place_write(lba, count);
        let Some(stream) = self.host_stream(wanted, count) else { return self.no_room() };
        if !self.groomer.pace.admits() {
            self.work();
            return Admission::Busy;
        }
        self.groomer.pace.charge(count);
        self.note_write(lba);
        self.append_batch(tag, lba, count, stream);
        self.stats.host_written_sectors += u64::from(count);
        self.after_append(tag, fua)
    }

    /// Appends a batch to a stream and maps it.
    fn append_batch(&mut self, tag: Tag, lba: u64, count: u32, stream: Stream) {
        // The batch's numbers follow each other, also where a LEB is opened in the middle of it.
        let seq = self.seq;
        self.batch = Some(seq);
        self.seq += u64::from(count);
        let mut first = 0;
        while first < count {
            let run = self.reserve(stream, count - first);
            let header = Header {
                slot: run.slot,
                seq: seq + u64::from(first),
                kind: Kind::Data,
                lba: lba + u64::from(first),
                index: first as u16,
                remaining: (count - first - 1) as u16,
                lag: self.lag_of(seq + u64::from(first)),
            };
            let source = Source::Request { tag, first };
            self.commands.push_back(Command::Stage { buf: run.buf, at: run.at, count: run.count, header, source });
            for i in 0..run.count {
                let old = self.map.set(header.lba + u64::from(i), run.slot + i);
                if old != NO_SLOT && !crate::mutant!(StaleLiveCount) {
                    self.lebs.set_dead(old);
                }
                self.lebs.set_live(run.slot + i);
            }
            first += run.count;
            self.commit(stream, run);
        }
        self.batch = None;
    }

    /// Answers what was just appended: at once, or when it is durable.
    fn after_append(&mut self, tag: Tag, fua: bool) -> Admission {
        self.work();
        if !fua || crate::mutant!(DroppedFua) {
            return Admission::Done;
        }
        self.wait_durable(tag)
    }

    fn trim(&mut self, tag: Tag, lba: u64, count: u64, fua: bool) -> Admission {
        assert!(lba + count <= self.map.sectors() && count > 0);
        if let Some(error) = self.refusal() {
            return Admission::Refused(error);
        }
        // Nothing mapped there: nothing to remember. What is durable of it follows from older records.
        if self.map.run(lba, count) != (count, false) {
            if !self.record_trim(lba, count) {
                return self.no_room();
            }
            let lebs = &mut self.lebs;
            self.map.clear(lba, count, |slot| match crate::mutant!(TrimKeepsLive) {
                true => {}
                false => lebs.set_dead(slot),
            });
            self.groomer.trimmed(lba, count);
        }
        self.stats.host_trimmed_sectors += count;
        self.after_append(tag, fua)
    }

    fn flush(&mut self, tag: Tag) -> Admission {
        if self.durability.broken.is_some() {
            return Admission::Refused(Error::Media);
        }
        self.retry_programs();
        self.wait_durable(tag)
    }

    /// Why no write can be taken now, if so.
    fn refusal(&mut self) -> Option<Error> {
        if let Some(error) = self.durability.broken {
            return Some(error);
        }
        let stalled = self.durability.stalled();
        if stalled.is_some() {
            self.retry_programs();
        }
        stalled
    }

    /// For quiet times: makes everything taken so far durable, and grooms a LEB where the log takes much more room
    /// than its data needs. Returns whether there is more to do.
    pub fn idle(&mut self) -> bool {
        self.background_flush();
        self.groomer.ahead.quiet = true;
        let more = self.idle_round();
        self.work();
        self.give_space_back() || more
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
        self.groomer.hint(lba);
    }

    /// Keeps a LEB as it is until [`Ftl::unpin`]: it is not erased or used again. False when it holds nothing that is needed.
    pub fn pin(&mut self, leb: LebId) -> bool {
        let entry = &mut self.lebs[leb];
        let holds = matches!(entry.state, LebState::Closed | LebState::Grooming);
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
        let old = self.map.get(lba);
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
            + self.lebs.memory()
            + self.groomer.memory()
            + self.pending_reads.capacity() * size_of::<PendingRead>()
            + self.media_reads.capacity() * size_of::<Option<MediaRead>>()
            + self.commands.capacity() * size_of::<Command>()
    }
}
