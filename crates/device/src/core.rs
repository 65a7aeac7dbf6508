//! The engine of a module: carries out what the layer asks for, on any medium.
//!
//! The layer says where bytes go; here they are copied, once, sealed and checked. A request goes down through
//! [`Core::submit`] and, unless it was answered there, comes up through [`Core::poll`].

mod ahead;
mod commands;
mod heal;
mod jobs;
mod labels;
mod merge;

use std::collections::VecDeque;
use std::ops::Range;

use ftl::{Admission, BatchOp, BufId, Engine, Ftl, Header, ReadFor, Request, Slot, SlotRead, Tag, sector_of};
use media::staged::Stage;
use media::{DieState, Done, MediaError, Page, Slice, Stack, Witness};

use crate::checksum::Checker;
use crate::resize::Resizing;
use crate::staging::Staging;
use crate::superblock::Superblock;
use crate::{Completion, Durability, Io, IoError, Submitted};

pub(crate) use ahead::ReadAhead;
use heal::{Healed, Healing};
pub use jobs::Background;
use jobs::{Jobs, is_job};
pub(crate) use labels::News;
use labels::Raised;
pub(crate) use labels::{SIZE_ID, label_command};
pub(crate) use merge::Merging;

/// A request that is not answered yet.
#[derive(Default)]
struct Pending {
    tag: u64,
    buf: Option<Vec<u8>>,
    /// Some of it could not be had.
    failed: bool,
    /// No client asked for it, it is read ahead: the tag says which piece.
    ahead: bool,
    /// It is answered when the store has it, too.
    remote: bool,
}

/// A media read under way, by the low bits of its command's id.
#[derive(Clone, Copy)]
pub(crate) struct MediaRead {
    pub asked: SlotRead,
    /// It is being rebuilt from the rest of its stripe.
    pub rebuilding: bool,
}

/// Sectors on their way from one LEB to another.
enum Groomed {
    /// In their slots, as they stand on media.
    Slots(Slice),
    /// Opened, one after another: what stands on media is sealed for its place.
    Sectors(Vec<u8>),
}

/// Slots of an open page.
pub(crate) struct OpenSlots {
    buf: BufId,
    /// Where one of them belongs on media.
    first: Slot,
    slots: Range<u32>,
}

pub(crate) struct Core {
    /// Where the page buffers lie, if they outlive the process. It goes first, so that it stays as it is when the others go.
    pub staging: Option<Staging>,
    pub ftl: Ftl,
    pub media: Stack,
    pub checker: Checker,
    pub superblock: Superblock,
    sector: usize,
    buffers: Vec<Option<Page>>,
    pending: Vec<Pending>,
    free_tags: Vec<Tag>,
    pub reads: Vec<Option<MediaRead>>,
    groomed: Vec<(u64, Groomed)>,
    completions: VecDeque<Completion>,
    /// Zeros to write where space must be taken.
    zeros: Vec<u8>,
    /// Superblock writes that wait, by the id they answer to; the first is under way. One at a time, so that an older
    /// copy can never overtake a newer one.
    labels: VecDeque<u64>,
    /// The first copy of the one under way is on media.
    second_copy: bool,
    /// One of the superblocks with settings that were to be written lately could not be.
    settings_lost: bool,
    /// Whether the superblocks on media say that there may be batches, snapshots and clones.
    batches: Raised,
    snapshots: Raised,
    clones: Raised,
    /// Media commands under way.
    pub in_flight: usize,
    /// Sectors that failed their check, and what became of them.
    pub healing: Healing,
    /// How the dies stand according to the superblock on media.
    recorded: Vec<DieState>,
    /// Rebuilds and scrubs.
    pub jobs: Jobs,
    /// What the medium finished on the spot for them.
    pub(crate) jobs_early: Vec<Done>,
    /// Where it is kept elsewhere how far this device has come.
    pub witness: Option<Witness>,
    /// On an emulated device the pages that were not programmed yet, each with what was staged since it was last kept.
    pub open_pages: Option<Vec<OpenSlots>>,
    /// What is read ahead of clients, where that is of use.
    pub ahead: Option<Box<ReadAhead>>,
    /// Reads of clients, where several of them may go to the medium as one.
    pub merging: Option<Merging>,
    /// Another size that is on its way.
    pub(crate) resizing: Resizing,
    /// Another host has taken the device over.
    pub fenced: bool,
    /// The device has a lease: where that is over nothing is answered.
    pub leased: bool,
    /// It is about to be detached, and nothing waits for a lease any more.
    pub ending: bool,
    /// Requests that wait until the store has everything below a sequence number, and their tags.
    remote: VecDeque<(u64, u64)>,
}

/// In a read of many slots, how many slots ahead of the check their bytes are fetched into the cache.
const AHEAD: usize = 2;

/// Low bits of a command's id.
pub(crate) fn index(id: u64) -> usize {
    (id & 0xffff_ffff) as usize
}

/// The slots of a read in order, each on its way into the cache before its turn.
fn slots(bytes: &[u8], slot_bytes: usize) -> impl Iterator<Item = &[u8]> {
    let mut ahead = bytes.chunks_exact(slot_bytes).skip(AHEAD);
    bytes.chunks_exact(slot_bytes).inspect(move |_| {
        if let Some(slot) = ahead.next() {
            words::prefetch(slot);
        }
    })
}

pub(crate) fn io_error(error: ftl::Error) -> IoError {
    match error {
        ftl::Error::NoSpace => IoError::NoSpace,
        ftl::Error::Full => IoError::Full,
        ftl::Error::NoSnapshot => IoError::NoSnapshot,
        ftl::Error::Media => IoError::Media,
    }
}

pub(crate) fn layer_error(error: MediaError) -> ftl::Error {
    match error {
        MediaError::NoSpace => ftl::Error::NoSpace,
        // The medium says so once.
        MediaError::Fenced => ftl::Error::Media,
        error => {
            tracing::error!(%error, "media command failed");
            ftl::Error::Media
        }
    }
}

/// Whether a request is answered only when what it covers is durable.
fn asks_for_durability(request: &Request) -> bool {
    match request {
        Request::Flush => true,
        Request::Write { fua, .. } | Request::Trim { fua, .. } | Request::Batch { fua, .. } => *fua,
        _ => false,
    }
}

/// Where what a request writes or trims lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct To {
    /// The first address: that of a clone, or 0.
    pub base: u64,
    /// What the host says that it belongs together with; 0 for nothing.
    pub placement: u8,
}

/// What becomes of answers to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// They are given.
    Given,
    /// They wait: the lease is over, and it is not known yet whether another host has the device.
    Held,
    /// All are errors.
    Failed,
}

impl Core {
    pub fn new(ftl: Ftl, media: Stack, superblock: Superblock) -> Core {
        let config = ftl.config();
        let requests = config.requests;
        let checker = Checker::of(&superblock);
        let mut pending = Vec::new();
        pending.resize_with(requests as usize, Pending::default);
        Core {
            sector: config.geometry.sector_bytes as usize,
            buffers: vec![None; config.buffers as usize],
            pending,
            free_tags: (0..requests).rev().collect(),
            reads: Vec::new(),
            groomed: Vec::new(),
            completions: VecDeque::new(),
            zeros: Vec::new(),
            labels: VecDeque::new(),
            second_copy: false,
            settings_lost: false,
            batches: Raised::new(superblock.batches),
            snapshots: Raised::new(superblock.snapshots),
            clones: Raised::new(superblock.clones),
            in_flight: 0,
            healing: Healing::default(),
            recorded: superblock.dies.clone(),
            jobs: Jobs::default(),
            jobs_early: Vec::new(),
            witness: None,
            open_pages: None,
            ahead: None,
            merging: None,
            resizing: Resizing::default(),
            fenced: false,
            leased: false,
            ending: false,
            remote: VecDeque::new(),
            staging: None,
            ftl,
            media,
            checker,
            superblock,
        }
    }

    /// The medium takes so long for a read that clients who read in order gain from what is read ahead, and from fewer reads.
    pub fn read_in_order(&mut self) {
        self.ahead = Some(Box::new(ReadAhead::new(self.ftl.map().sectors(), self.sector)));
        self.merging = Some(Merging::default());
    }

    /// Takes a request whose range was checked.
    pub fn submit<'a>(&mut self, to: To, user_tag: u64, io: Io<'a>) -> Submitted<'a> {
        match io {
            Io::Read { lba, buf } => self.submit_read(user_tag, lba, buf),
            io => self.submit_itself(to, user_tag, io),
        }
    }

    /// Takes a request that the layer is to carry out.
    fn submit_itself<'a>(&mut self, To { base, placement }: To, user_tag: u64, io: Io<'a>) -> Submitted<'a> {
        if matches!(io, Io::Batch { .. }) {
            match self.admits(News::Batches) {
                Ok(true) => {}
                Ok(false) => return Submitted::Busy(io),
                Err(error) => return Submitted::Done(Err(error)),
            }
        }
        let Some(tag) = self.free_tags.pop() else { return Submitted::Busy(io) };
        let sectors = |bytes: usize| (bytes / self.sector) as u32;
        let moved: Vec<BatchOp> = match &io {
            Io::Batch { ops, .. } if base > 0 => ops.iter().map(|op| op.behind(base)).collect(),
            _ => Vec::new(),
        };
        let request = match &io {
            Io::Read { lba, buf } => Request::Read { lba: *lba, count: sectors(buf.len()) },
            Io::ReadSnapshot { id, lba, buf } => {
                Request::ReadSnapshot { id: *id, lba: *lba, count: sectors(buf.len()) }
            }
            Io::Write { lba, data, fua } => Request::Write { lba: base + lba, count: sectors(data.len()), fua: *fua },
            Io::Flush => Request::Flush,
            Io::Trim { lba, count, fua } => Request::Trim { lba: base + lba, count: *count, fua: *fua },
            Io::Batch { ops, fua, .. } => Request::Batch { ops: if base > 0 { &moved } else { ops }, fua: *fua },
            Io::WriteZeroes { lba, count, fua, allocate: false } => {
                Request::Trim { lba: base + lba, count: *count, fua: *fua }
            }
            Io::WriteZeroes { lba, count, fua, allocate: true } => {
                Request::Write { lba: base + lba, count: *count as u32, fua: *fua }
            }
        };
        let remote = self.superblock.durability == Durability::Remote && asks_for_durability(&request);
        let admission = self.ftl.submit_placed(placement, tag, request);
        let result = match admission {
            Admission::Busy => {
                self.free_tags.push(tag);
                // The layer may have begun something that makes room.
                self.carry_out(&[]);
                return Submitted::Busy(io);
            }
            Admission::Refused(error) => Err(io_error(error)),
            Admission::Done | Admission::Pending => Ok(()),
        };
        match request {
            Request::Write { lba, count, .. } if result.is_ok() => self.changed(lba..lba + u64::from(count)),
            Request::Trim { lba, count, .. } if result.is_ok() => self.changed(lba..lba + count),
            Request::Batch { ops, .. } if result.is_ok() => ops.iter().for_each(|op| self.changed(op.sectors())),
            _ => {}
        }
        let mut zeros = Vec::new();
        let (buf, data): (_, &[u8]) = match io {
            Io::Read { buf, .. } | Io::ReadSnapshot { buf, .. } => (Some(buf), &[]),
            Io::Write { data, .. } | Io::Batch { data, .. } => (None, data),
            Io::WriteZeroes { count, allocate: true, .. } => {
                zeros = std::mem::take(&mut self.zeros);
                zeros.resize(zeros.len().max(count as usize * self.sector), 0);
                (None, &zeros)
            }
            Io::Flush | Io::Trim { .. } | Io::WriteZeroes { .. } => (None, &[]),
        };
        self.pending[tag as usize] = Pending { tag: user_tag, buf, failed: false, ahead: false, remote };
        self.carry_out(data);
        if !zeros.is_empty() {
            self.zeros = zeros;
        }
        if admission == Admission::Pending {
            return Submitted::Pending;
        }
        self.free_tags.push(tag);
        let pending = &mut self.pending[tag as usize];
        let (buf, failed) = (pending.buf.take(), pending.failed);
        let result = if failed { Err(IoError::Media) } else { result };
        if remote && result.is_ok() && self.wait_for_store(user_tag) {
            return Submitted::Pending;
        }
        Submitted::Done(result.map(|()| buf))
    }

    /// The layer has taken something else for these sectors.
    #[inline]
    pub(crate) fn changed(&mut self, sectors: Range<u64>) {
        if let Some(ahead) = &mut self.ahead {
            ahead.changed(&sectors);
        }
        self.healing.forget(sectors);
    }

    /// Takes what the medium finished and gives the next answer, never waiting.
    pub fn poll(&mut self) -> Option<Completion> {
        if let Some(completion) = self.completion() {
            return Some(completion);
        }
        while let Some(done) = self.next_done() {
            self.finish_media(done);
        }
        self.read_again();
        self.share_sync();
        self.note_losses();
        self.go_on_resizing();
        self.tell_objects();
        self.sync_for_objects();
        self.look_for_objects();
        self.completion()
    }

    /// Tells a medium on objects how far the log is durable.
    pub fn tell_objects(&mut self) {
        let Some(objects) = self.media.objects() else { return };
        objects.durable_below(self.ftl.durable());
        self.fenced = objects.is_fenced();
        let (mark, never) = (objects.anchor().mark, self.fenced || objects.is_broken());
        while let Some((seq, tag)) = self.remote.pop_front_if(|(seq, _)| *seq <= mark || never) {
            let result = if seq <= mark { Ok(None) } else { Err(IoError::Media) };
            self.completions.push_back(Completion { tag, result });
        }
    }

    /// Has a request that is durable in the journal wait for the store. Returns false where the store has it already.
    fn wait_for_store(&mut self, tag: u64) -> bool {
        let durable = self.ftl.durable();
        let Some(objects) = self.media.objects() else { return false };
        if objects.anchor().mark >= durable {
            return false;
        }
        objects.durable_below(durable);
        objects.hurry();
        self.remote.push_back((durable, tag));
        true
    }

    /// Has what the layer took made durable now and then, where clients never flush and a store waits for it.
    fn sync_for_objects(&mut self) {
        let Some(objects) = self.media.objects() else { return };
        if objects.wants_sync() && self.ftl.durable() < self.ftl.next_seq() {
            self.ftl.make_durable();
            self.carry_out(&[]);
        }
    }

    /// Has the groomer look at what LEBs cost in the store now and then, and collect those that are due.
    fn look_for_objects(&mut self) {
        let Some(objects) = self.media.objects() else { return };
        let Some(now) = objects.wants_look() else { return };
        let objects = &*objects;
        self.ftl.look_at_rent(now, |leb| objects.is_local(leb));
        self.carry_out(&[]);
    }

    /// What the medium finished next.
    pub fn next_done(&mut self) -> Option<Done> {
        if let Some(done) = self.witness.as_mut().and_then(Witness::poll) {
            self.finish(done);
        }
        self.jobs_early.pop().or_else(|| self.media.poll())
    }

    /// Waits until the medium, or the witness, has something to say; not at all when nothing is under way.
    pub fn wait(&mut self) {
        if !self.witness.as_mut().is_some_and(Witness::wait) {
            self.media.wait();
        }
    }

    /// The next answer, without asking the medium.
    pub fn completion(&mut self) -> Option<Completion> {
        match self.answers() {
            Answers::Given => self.completions.pop_front(),
            Answers::Held => None,
            // It may be done here, and is not what the device holds.
            Answers::Failed => {
                self.completions.pop_front().map(|done| Completion { result: Err(IoError::Media), ..done })
            }
        }
    }

    /// What becomes of answers now.
    #[inline]
    pub fn answers(&self) -> Answers {
        if self.leased { self.answers_of_lease() } else { Answers::Given }
    }

    fn answers_of_lease(&self) -> Answers {
        let Some(objects) = self.media.store_behind() else { return Answers::Given };
        match (objects.is_fenced(), objects.is_lapsed()) {
            (true, _) => Answers::Failed,
            (false, false) => Answers::Given,
            // Nobody renews it then.
            (false, true) if self.ending || objects.is_broken() => Answers::Failed,
            (false, true) => Answers::Held,
        }
    }

    /// Puts what stands in open pages where it survives the end of this process, on a medium that can.
    pub fn keep_open_pages(&mut self) {
        let (Some(open), Some(paced)) = (&mut self.open_pages, self.media.paced()) else { return };
        let slot_bytes = self.checker.slot_bytes() as u32;
        while let Some(OpenSlots { buf, first, slots }) = open.pop() {
            if let Some(page) = &self.buffers[buf as usize] {
                let (at, _) = self.ftl.config().geometry.locate(first);
                paced.keep(at, slots.start * slot_bytes..slots.end * slot_bytes, page.clone());
            }
        }
    }

    /// Whether answers wait to be taken.
    pub fn has_completions(&self) -> bool {
        let answers = !self.completions.is_empty() && self.answers() != Answers::Held;
        answers || self.ahead.as_ref().is_some_and(|ahead| ahead.has_more())
    }

    /// Carries out every command; `payload` is the data of the write that is being taken.
    pub fn carry_out(&mut self, payload: &[u8]) {
        Engine::carry_out(self, payload);
        while self.merging.as_ref().is_some_and(Merging::waits) {
            self.submit_reads();
            Engine::carry_out(self, &[]);
        }
        while let Some(completion) = self.ftl.completion() {
            let pending = &mut self.pending[completion.tag as usize];
            let (tag, buf, failed, ahead) = (pending.tag, pending.buf.take(), pending.failed, pending.ahead);
            let remote = std::mem::take(&mut pending.remote);
            self.free_tags.push(completion.tag);
            let result = if failed { Err(ftl::Error::Media) } else { completion.result };
            let result = result.map(|()| buf).map_err(io_error);
            if ahead {
                self.read_ahead_done(tag, result.map(Option::unwrap_or_default));
                continue;
            }
            if remote && result.is_ok() && self.wait_for_store(tag) {
                continue;
            }
            self.completions.push_back(Completion { tag, result });
        }
    }

    /// Memory of the page buffers in use, bytes.
    pub fn buffer_memory(&self) -> u64 {
        let buffers: u64 = self.buffers.iter().flatten().map(|page| page.len() as u64).sum();
        // A page of the stage is a part of it.
        let (kept, used) = self.kept().map_or((0, 0), Stage::memory);
        kept + buffers.saturating_sub(used) + self.ahead.as_ref().map_or(0, |ahead| ahead.memory() as u64)
    }

    /// Where page buffers lie that outlive the process.
    #[inline]
    pub(crate) fn kept(&self) -> Option<&Stage> {
        self.staging.as_ref().and_then(Staging::stage)
    }

    /// Begins the sync that requests wait for, and carries out whatever the layer wants.
    pub fn share_sync(&mut self) {
        self.ftl.share_sync();
        self.carry_out(&[]);
    }

    pub fn media_submit(&mut self, id: u64, command: media::Command) {
        self.in_flight += 1;
        if let Some(done) = self.media.submit(id, command) {
            self.finish_media(done);
        }
    }

    /// Tells the layer what the medium finished; of a sync only when its witness knows of it.
    pub fn finish_media(&mut self, done: Done) {
        let done = match (&mut self.witness, self.ftl.syncs_below()) {
            (Some(witness), Some(seq)) if ftl::is_sync(done.id) && done.result.is_ok() => witness.keep(seq, done),
            _ => Some(done),
        };
        if let Some(done) = done {
            self.finish(done);
        }
    }

    fn finish(&mut self, done: Done) {
        self.in_flight -= 1;
        if self.merged_done(&done) || self.label_done(&done) {
            return;
        }
        if is_job(done.id) {
            return self.job_done(done);
        }
        let result = match done.result {
            Ok(None) => Ok(()),
            Ok(Some(slice)) => match self.check_read(done.id, slice) {
                Some(result) => result,
                None => return,
            },
            Err(error) if ftl::is_read(done.id) => match self.read_failed(done.id, error) {
                Some(result) => result,
                None => return,
            },
            Err(error) => Err(layer_error(error)),
        };
        self.ftl.complete(done.id, result);
        self.note_doubt();
    }

    /// Checks what a read gave. `None` when the layer was told already, or will be.
    fn check_read(&mut self, id: u64, slice: Slice) -> Option<Result<(), ftl::Error>> {
        let read = self.reads[index(id)].take().expect("a read that is under way");
        let MediaRead { asked, rebuilding } = read;
        let slot_bytes = self.checker.slot_bytes();
        // Slots that are not what they should be.
        let mut wrong: Vec<Slot> = Vec::new();
        match asked.purpose {
            ReadFor::Request { tag, first, lba, .. } => {
                let out = self.pending[tag as usize].buf.as_mut().expect("a read has a buffer");
                let out = out[first as usize * self.sector..].chunks_exact_mut(self.sector);
                for (i, (slot, out)) in (0..).zip(slots(slice.bytes(), slot_bytes).zip(out)) {
                    let number = asked.slot + i;
                    let right = self.checker.check(slot, number).is_some_and(|header| {
                        // A clone's address is another one than the sector's, and it reads what its snapshot has, too.
                        let is_it = sector_of(header.lba) == lba + u64::from(i);
                        header.kind.is_sector() && is_it && header.seq >= asked.min_seq
                    });
                    if !right || !self.checker.open(slot, out) {
                        wrong.push(number);
                    }
                }
                let sectors = lba..lba + u64::from(asked.count);
                if wrong.is_empty() && !rebuilding {
                    self.healing.forget(sectors);
                    return Some(Ok(()));
                }
                match self.heal(id, read, wrong) {
                    Healed::All => {
                        self.healing.forget(sectors);
                        Some(Ok(()))
                    }
                    Healed::Part => Some(Err(ftl::Error::Media)),
                    Healed::UnderWay => None,
                }
            }
            ReadFor::Groom | ReadFor::Relocate | ReadFor::Optimise => {
                let slots = slots(slice.bytes(), slot_bytes).take(asked.count as usize);
                let mut headers: Vec<Option<Header>> = Vec::with_capacity(asked.count as usize);
                let mut sectors =
                    vec![0; if self.checker.is_sealing() { asked.count as usize * self.sector } else { 0 }];
                let mut room = sectors.chunks_exact_mut(self.sector);
                for (number, slot) in (asked.slot..).zip(slots) {
                    let mut header = self.checker.check(slot, number).filter(|header| header.seq >= asked.min_seq);
                    if let Some(out) = room.next()
                        && !(header.is_some() && self.ftl.lebs().is_live(number) && self.checker.open(slot, out))
                    {
                        // One that is not live was not opened, and nobody moves it.
                        header = header.filter(|_| !self.ftl.lebs().is_live(number));
                    }
                    if header.is_none() && self.ftl.lebs().is_live(number) {
                        wrong.push(number);
                    }
                    headers.push(header);
                }
                if (!wrong.is_empty() || rebuilding) && matches!(self.heal(id, read, wrong), Healed::UnderWay) {
                    return None;
                }
                let sealing = self.checker.is_sealing();
                self.groomed.push((id, if sealing { Groomed::Sectors(sectors) } else { Groomed::Slots(slice) }));
                self.ftl.groomed(id, &headers);
                debug_assert!(asked.at + asked.count <= self.ftl.config().geometry.slots_per_page);
                None
            }
        }
    }
}
