//! The medium: the journal in front, the store behind it, and the plan between them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use rustix::io::Errno;
use slab::Slab;

use super::hedge::Hedge;
use super::later::Later;
use super::notes::Note;
use super::plan::{Action, Fence, Plan, Tally};
use super::{Anchor, Answer, Ask, Claimed, Failure, HEAD_BYTES, Life, Notes, ObjectHead, ObjectId, Outside, Prices};
use crate::{Command, Done, Geometry, LABEL_BYTES, Media, MediaError, Page, PageAddr, Slice};

/// How long a read tries to get what only the store has, milliseconds.
const READ_PATIENCE_MS: u64 = 60_000;

/// How often it tries, however long that takes: one request may last as long as the patience does.
const READ_ATTEMPTS: u32 = 4;

/// How a device on objects stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Everything below this sequence number is durable in the journal.
    pub durable: u64,
    /// Everything below this one is in the store.
    pub remote: u64,
    /// Bytes that would be lost with the journal.
    pub ahead_bytes: u64,
    /// How long the oldest of them has waited for the store, milliseconds.
    pub behind_ms: u64,
    /// Bytes of LEBs in the journal.
    pub local_bytes: u64,
    /// Bytes of objects that hold parts of LEBs.
    pub stored_bytes: u64,
    /// Writes are held or slowed down because the store is too far behind.
    pub holding: bool,
    /// Nothing is answered, because the lease is over and the store does not take a new one.
    pub lapsed: bool,
    /// How long the lease is, milliseconds; 0 without one.
    pub lease_ms: u64,
    /// The owner epoch of this attach.
    pub epoch: u32,
    /// Who has the device, if it is somebody else.
    pub fence: Option<Fence>,
    /// What happened so far.
    pub tally: Tally,
    /// Requests for reads.
    pub gets: u64,
    /// Those of them that were sent again, because the answer took unusually long.
    pub hedged: u64,
}

/// What the journal works at.
enum Purpose {
    Pass {
        id: u64,
    },
    Program {
        id: u64,
        leb: u32,
        start: u32,
        len: u32,
    },
    Read {
        id: u64,
        leb: u32,
    },
    Sync {
        id: u64,
    },
    Label {
        id: u64,
        copy: u8,
        bytes: Vec<u8>,
    },
    CutSync,
    Erase {
        leb: u32,
    },
    Punch {
        leb: u32,
    },
    /// A page of a part that is to be uploaded: which part, and where in its object.
    Gather {
        upload: usize,
        at: usize,
    },
}

/// What the store works at.
enum Asked {
    Put {
        leb: u32,
        id: ObjectId,
    },
    Note(Note),
    /// For the replacement of the anchor with this number.
    Swap(u64),
    Fetch(u64),
    Delete(ObjectId),
    /// A part of a read, by its number in `fetching`.
    Get(u64),
}

/// A part of a read, in one object.
#[derive(Clone, Copy)]
struct Piece {
    read: usize,
    id: ObjectId,
    /// Where in the object's content.
    from: u32,
    /// Where in the read.
    at: u32,
    len: u32,
    failures: u32,
}

/// A part of a read that the store was asked for.
struct Fetching {
    piece: Piece,
    asked_ms: u64,
    /// Requests for it that are not answered.
    under_way: u32,
}

/// Bytes that are collected for an upload.
struct Gathering {
    leb: u32,
    life: Life,
    id: ObjectId,
    start: u32,
    /// The object in the making: its head is written when all of its content is here.
    bytes: Vec<u8>,
    left: u32,
    failure: Option<MediaError>,
}

/// A read of what only the store has.
struct RemoteRead {
    id: u64,
    page: Page,
    len: u32,
    left: u32,
    failed: bool,
    began_ms: u64,
}

/// A medium whose journal is local and whose LEBs are objects.
pub struct ObjectMedia {
    geometry: Geometry,
    device: [u8; 16],
    journal: Box<dyn Media>,
    outside: Box<dyn Outside>,
    plan: Plan,
    local: Slab<Purpose>,
    asked: Slab<Asked>,
    gathering: Slab<Gathering>,
    reads: Slab<RemoteRead>,
    /// Parts of reads that the store was asked for, in the order in which it was.
    fetching: BTreeMap<u64, Fetching>,
    next_fetch: u64,
    /// Which of them are asked for again.
    hedge: Hedge,
    /// Parts of reads that are tried again.
    again: Later<Piece>,
    /// Erases that the plan holds: LEB, and the id to answer to.
    erases: Vec<(u32, u64)>,
    /// Programs that wait until the store is less far behind.
    held: VecDeque<(u64, PageAddr, Range<u32>, Page)>,
    done: VecDeque<Done>,
    alarm_ms: Option<u64>,
    /// When the layer was last asked to make durable what it took.
    sync_ms: u64,
    /// How often the layer looks at what LEBs cost, milliseconds, and when it does next; nothing where nobody pays for them.
    look: Option<(u64, u64)>,
    prices: Option<Prices>,
    fenced: bool,
}

impl ObjectMedia {
    /// Goes on with a device that was claimed in the store: this is its anchor now, and that anchor's version.
    ///
    /// # Errors
    /// The journal cannot be read, or does not fit what the store says.
    pub fn new(
        mut journal: Box<dyn Media>,
        outside: Box<dyn Outside>,
        claimed: Claimed,
        notes: &Notes,
        seed: u64,
    ) -> Result<ObjectMedia, String> {
        let anchor = &claimed.anchor;
        if *journal.geometry() != anchor.geometry {
            return Err("the journal has another geometry than the device in the store".into());
        }
        let (geometry, device) = (anchor.geometry, anchor.device);
        let mut label = |copy| {
            let label = journal.read_label(0, copy).map_err(|error| format!("the journal's labels: {error}"))?;
            let end = label.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            Ok::<_, String>(label[..end].to_vec())
        };
        let labels = [label(0)?, label(1)?];
        let ends = |leb| u32::try_from(journal.written_end(leb)).unwrap_or(u32::MAX);
        let plan = Plan::new(claimed, notes, labels, (outside.now_ms(), seed), ends)?;
        Ok(ObjectMedia {
            geometry,
            device,
            journal,
            outside,
            plan,
            local: Slab::new(),
            asked: Slab::new(),
            gathering: Slab::new(),
            reads: Slab::new(),
            fetching: BTreeMap::new(),
            next_fetch: 0,
            hedge: Hedge::default(),
            again: Later::new(seed.rotate_left(32)),
            erases: Vec::new(),
            held: VecDeque::new(),
            done: VecDeque::new(),
            alarm_ms: None,
            sync_ms: 0,
            look: None,
            prices: None,
            fenced: false,
        })
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        Standing {
            durable: self.plan.durable(),
            remote: self.plan.anchor().mark,
            ahead_bytes: self.plan.ahead_bytes(),
            behind_ms: self.plan.behind_ms(),
            local_bytes: self.plan.local_bytes(),
            stored_bytes: self.plan.stored_bytes(),
            holding: !self.held.is_empty(),
            lapsed: self.is_lapsed() && self.plan.fence().is_none() && !self.plan.has_left(),
            lease_ms: self.plan.anchor().limits.lease_ms,
            epoch: self.plan.anchor().epoch,
            fence: self.plan.fence().cloned(),
            tally: self.plan.tally().clone(),
            gets: self.next_fetch + self.hedge.count(),
            hedged: self.hedge.count(),
        }
    }

    /// The anchor that is known to be in the store.
    pub fn anchor(&self) -> &Anchor {
        self.plan.anchor()
    }

    /// The layer says that everything below this sequence number is durable here.
    #[inline]
    pub fn durable_below(&mut self, seq: u64) {
        self.plan.durable_below(seq);
    }

    /// Whether another host has taken the device over.
    #[inline]
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// Whether nothing may be answered now: the lease is over, so another host may have the device, and this one does not know yet.
    #[inline]
    pub fn is_lapsed(&self) -> bool {
        self.plan.has_lease() && self.plan.is_lapsed(self.outside.steady_ms())
    }

    /// Whether it is time to make durable what the layer took, so that the store need not wait for a client's flush.
    pub fn wants_sync(&mut self) -> bool {
        let now = self.outside.now_ms();
        let due = now >= self.sync_ms + self.plan.anchor().limits.commit_ms;
        if due {
            self.sync_ms = now;
        }
        due
    }

    /// What the store costs from now on, and how often the layer is to look at what LEBs cost there, milliseconds.
    pub fn set_prices(&mut self, prices: Option<Prices>, look_each_ms: u64) {
        self.prices = prices;
        self.look = prices.map(|_| (look_each_ms, self.outside.steady_ms() + look_each_ms));
        self.pump();
    }

    /// What the store costs, where anybody pays for it.
    pub fn prices(&self) -> Option<Prices> {
        self.prices
    }

    /// The steady clock, if it is time to look at what LEBs cost.
    pub fn wants_look(&mut self) -> Option<u64> {
        let (each, due) = self.look.as_mut().filter(|_| !self.fenced)?;
        let now = self.outside.steady_ms();
        (now >= *due).then(|| {
            *due = now + *each;
            now
        })
    }

    /// Whether a LEB is read from the journal, and not from the store.
    pub fn is_local(&self, leb: u32) -> bool {
        self.plan.is_local(leb)
    }

    /// Nothing more is appended to a LEB.
    pub fn finish(&mut self, leb: u32) {
        self.plan.finished(leb);
    }

    /// Somebody waits until the store has what [`ObjectMedia::durable_below`] was told last: the next anchor is written as soon as may be.
    pub fn hurry(&mut self) {
        self.plan.hurry();
        self.pump();
    }

    /// Whether the journal failed: what is not in the store yet will never be.
    pub fn is_broken(&self) -> bool {
        self.plan.is_broken()
    }

    /// Brings everything into the store and releases the device, for `patience_ms` at most. Gives whether that was done; the medium
    /// takes no more commands.
    pub fn leave(&mut self, patience_ms: u64) -> bool {
        let until = self.outside.now_ms() + patience_ms;
        self.plan.leave();
        loop {
            self.pump();
            let never = self.plan.fence().is_some() || self.plan.is_broken();
            if self.plan.has_left() || never || self.outside.now_ms() > until {
                return self.plan.has_left();
            }
            self.wait_for_anything();
        }
    }

    fn page_bytes(&self) -> u32 {
        self.geometry.page_bytes()
    }

    fn submit_local(&mut self, purpose: Purpose, command: Command) {
        let token = self.local.insert(purpose);
        if let Some(done) = self.journal.submit(token as u64, command) {
            self.local_done(done);
        }
    }

    fn ask(&mut self, what: Asked, ask: Ask) {
        let id = self.asked.insert(what);
        self.outside.ask(id as u64, ask);
    }

    fn finish_command(&mut self, id: u64, result: Result<Option<Slice>, MediaError>) {
        self.done.push_back(Done { id, result });
    }

    /// Takes what happened, and does what follows from it.
    fn pump(&mut self) {
        loop {
            let mut idle = true;
            while let Some(done) = self.journal.poll() {
                idle = false;
                self.local_done(done);
            }
            while let Some((id, answer)) = self.outside.answer() {
                idle = false;
                if let Some(asked) = self.asked.try_remove(id as usize) {
                    self.answered(asked, answer);
                }
            }
            let now = self.outside.now_ms();
            self.plan.step(now, self.outside.steady_ms());
            while let Some(action) = self.plan.action() {
                idle = false;
                self.carry_out(action);
            }
            while let Some(piece) = self.again.due(now) {
                idle = false;
                self.get(piece);
            }
            while let Some(number) = self.hedge.due(now) {
                idle = false;
                self.get_again(number);
            }
            while let Some((_, _, bytes, _)) = self.held.front() {
                if !self.plan.admits(bytes.end - bytes.start) {
                    break;
                }
                idle = false;
                if let Some((id, at, bytes, page)) = self.held.pop_front() {
                    self.plan.program_let_go(at.block);
                    self.program(id, at, bytes, page);
                }
            }
            if self.plan.fence().is_some() && !self.fenced {
                idle = false;
                self.become_fenced();
            }
            if idle {
                break;
            }
        }
        let (now, set) = (self.outside.now_ms(), self.alarm_ms);
        let look = self.look.filter(|_| !self.fenced);
        let look = look.map(|(_, due)| now + due.saturating_sub(self.outside.steady_ms()));
        let alarm =
            [self.plan.wakes_ms(), self.again.next_ms(), self.hedge.next_ms(), look].into_iter().flatten().min();
        // An alarm that is set stays: it may ring too early, and then the next one is set.
        if let Some(at) = alarm.filter(|at| set.is_none_or(|set| set <= now || *at < set)) {
            self.outside.alarm(at);
            self.alarm_ms = alarm;
        }
    }

    /// Nothing that is asked from now on is done, and nothing that waits for the store ever will be.
    fn become_fenced(&mut self) {
        self.fenced = true;
        if let Some(fence) = self.plan.fence() {
            tracing::error!(host = fence.host, epoch = fence.epoch, "another host has taken the device over");
        }
        let erases = std::mem::take(&mut self.erases).into_iter().map(|(_, id)| id);
        let held = std::mem::take(&mut self.held).into_iter().map(|(id, ..)| id);
        self.fetching.clear();
        self.hedge.forget();
        let reads = self.reads.drain().map(|read| read.id);
        let ids: Vec<u64> = erases.chain(held).chain(reads).collect();
        ids.into_iter().for_each(|id| self.finish_command(id, Err(MediaError::Fenced)));
    }

    fn program(&mut self, id: u64, at: PageAddr, bytes: Range<u32>, page: Page) {
        let (start, len) = (at.page * self.page_bytes() + bytes.start, bytes.end - bytes.start);
        if !self.plan.is_local(at.block) {
            tracing::error!(leb = at.block, "a LEB that is in the store only is not written to");
            return self.finish_command(id, Err(MediaError::Os(Errno::IO)));
        }
        self.plan.program_begins(at.block, start, len);
        let purpose = Purpose::Program { id, leb: at.block, start, len };
        self.submit_local(purpose, Command::Program { at, bytes, page });
    }

    fn read(&mut self, id: u64, at: PageAddr, bytes: Range<u32>) {
        if self.plan.is_local(at.block) {
            self.plan.read_begins(at.block);
            return self.submit_local(Purpose::Read { id, leb: at.block }, Command::Read { at, bytes });
        }
        let start = at.page * self.page_bytes() + bytes.start;
        let len = bytes.end - bytes.start;
        let page = self.journal.page();
        // SAFETY: the journal just handed the buffer out, nobody else knows it.
        unsafe { page.bytes_mut(0..len as usize) }.fill(0);
        let places = self.plan.places(at.block, start, start + len);
        let read =
            RemoteRead { id, page, len, left: places.len() as u32, failed: false, began_ms: self.outside.now_ms() };
        let read = self.reads.insert(read);
        let mut at = 0;
        for (id, from, len) in places {
            self.get(Piece { read, id, from, at, len, failures: 0 });
            at += len;
        }
        self.read_goes_on(read);
    }

    fn get(&mut self, piece: Piece) {
        if !self.reads.contains(piece.read) {
            return;
        }
        let now = self.outside.now_ms();
        let number = self.next_fetch;
        self.next_fetch += 1;
        self.fetching.insert(number, Fetching { piece, asked_ms: now, under_way: 1 });
        self.hedge.asked(number, now);
        self.ask(Asked::Get(number), self.ask_for(&piece));
    }

    fn ask_for(&self, piece: &Piece) -> Ask {
        let from = u64::from(HEAD_BYTES) + u64::from(piece.from);
        Ask::Get { name: piece.id.name(&self.device), range: from..from + u64::from(piece.len) }
    }

    /// Asks again for a part whose answer takes unusually long: the first answer counts.
    fn get_again(&mut self, number: u64) {
        let Some(fetching) = self.fetching.get_mut(&number) else { return };
        fetching.under_way += 1;
        let piece = fetching.piece;
        self.ask(Asked::Get(number), self.ask_for(&piece));
    }

    fn got(&mut self, number: u64, answer: Answer) {
        let now = self.outside.now_ms();
        // Another request for this part was answered before.
        let Some(fetching) = self.fetching.get_mut(&number) else { return };
        fetching.under_way -= 1;
        let Piece { read, len, .. } = fetching.piece;
        let arrived = matches!(&answer, Answer::Bytes(bytes) if bytes.len() == len as usize);
        if !arrived && fetching.under_way > 0 {
            return;
        }
        let (mut piece, took_ms) = (fetching.piece, now.saturating_sub(fetching.asked_ms));
        self.fetching.remove(&number);
        self.hedge.answered(number, arrived.then_some(took_ms));
        let Some(read) = self.reads.get_mut(read) else { return };
        match answer {
            Answer::Bytes(bytes) if arrived => {
                let at = piece.at as usize;
                // SAFETY: the read is not answered yet, so nobody else knows the buffer.
                unsafe { read.page.bytes_mut(at..at + bytes.len()) }.copy_from_slice(&bytes);
                read.left -= 1;
            }
            answer => {
                piece.failures += 1;
                if piece.failures < READ_ATTEMPTS || now.saturating_sub(read.began_ms) < READ_PATIENCE_MS {
                    return self.again.put(now, piece.failures, piece);
                }
                let name = piece.id.name(&self.device);
                let why = match answer {
                    Answer::Failed(failure) => failure.to_string(),
                    _ => "it is shorter than it should be".into(),
                };
                tracing::error!(object = name, "an object cannot be read: {why}");
                (read.left, read.failed) = (read.left - 1, true);
            }
        }
        self.read_goes_on(piece.read);
    }

    fn read_goes_on(&mut self, key: usize) {
        if self.reads.get(key).is_some_and(|read| read.left == 0) {
            let read = self.reads.remove(key);
            let slice = Slice { page: read.page, offset: 0, len: read.len as usize };
            let result = if read.failed { Err(MediaError::Os(Errno::IO)) } else { Ok(Some(slice)) };
            self.finish_command(read.id, result);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::SyncCut => self.submit_local(Purpose::CutSync, Command::Sync),
            Action::Upload { leb, life, id, start, len } => self.gather(leb, life, id, start, len),
            Action::Note(note) => self.ask(Asked::Note(note), Ask::Note { bytes: note.encode().to_vec() }),
            Action::Swap { number, bytes, expected } => self.ask(Asked::Swap(number), Ask::Swap { bytes, expected }),
            Action::Fetch { number } => self.ask(Asked::Fetch(number), Ask::Fetch),
            Action::Erase { leb } => self.submit_local(Purpose::Erase { leb }, Command::Erase { block: leb }),
            Action::Punch { leb } => self.submit_local(Purpose::Punch { leb }, Command::Erase { block: leb }),
            Action::Delete(id) => self.ask(Asked::Delete(id), Ask::Delete { name: id.name(&self.device) }),
        }
    }

    /// Reads a part of a LEB from the journal, to upload it.
    fn gather(&mut self, leb: u32, life: Life, id: ObjectId, start: u32, len: u32) {
        let page_bytes = self.page_bytes();
        let pieces = start / page_bytes..(start + len).div_ceil(page_bytes);
        let bytes = vec![0; (HEAD_BYTES + len) as usize];
        let upload = Gathering { leb, life, id, start, bytes, left: pieces.len() as u32, failure: None };
        let upload = self.gathering.insert(upload);
        for page in pieces {
            let first = page * page_bytes;
            let (from, to) = (start.max(first), (start + len).min(first + page_bytes));
            let purpose = Purpose::Gather { upload, at: (HEAD_BYTES + from - start) as usize };
            let at = PageAddr { die: 0, block: leb, page };
            self.submit_local(purpose, Command::Read { at, bytes: from - first..to - first });
        }
    }

    fn gathered(&mut self, key: usize, at: usize, result: Result<Option<Slice>, MediaError>) {
        let Some(upload) = self.gathering.get_mut(key) else { return };
        match result {
            Ok(Some(slice)) => upload.bytes[at..at + slice.len].copy_from_slice(slice.bytes()),
            Ok(None) => upload.failure = Some(MediaError::Truncated),
            Err(error) => upload.failure = Some(error),
        }
        upload.left -= 1;
        if upload.left > 0 {
            return;
        }
        let Gathering { leb, life, id, start, mut bytes, failure, .. } = self.gathering.remove(key);
        self.plan.read_ended(leb);
        if let Some(error) = failure {
            return self.plan.journal_unreadable(leb, id, &error.to_string());
        }
        ObjectHead { device: self.device, leb, life, start }.write(&mut bytes);
        self.ask(Asked::Put { leb, id }, Ask::Put { name: id.name(&self.device), bytes });
    }

    fn local_done(&mut self, done: Done) {
        let Some(purpose) = self.local.try_remove(done.id as usize) else { return };
        let result = if self.fenced { Err(MediaError::Fenced) } else { done.result };
        match purpose {
            Purpose::Pass { id } => self.finish_command(id, result),
            Purpose::Program { id, leb, start, len } => {
                self.plan.program_done(leb, start, len, result.is_ok());
                self.finish_command(id, result);
            }
            Purpose::Read { id, leb } => {
                self.plan.read_ended(leb);
                self.finish_command(id, result);
            }
            Purpose::Sync { id } => {
                if result.is_err() {
                    self.plan.journal_failed();
                }
                self.finish_command(id, result);
            }
            Purpose::Label { id, copy, bytes } => {
                if result.is_ok() {
                    self.plan.label(copy, bytes);
                }
                self.finish_command(id, result);
            }
            Purpose::CutSync => self.plan.cut_synced(result.is_ok()),
            Purpose::Erase { leb } => {
                if let Some(at) = self.erases.iter().position(|(erased, _)| *erased == leb) {
                    let (_, id) = self.erases.swap_remove(at);
                    self.finish_command(id, result);
                }
            }
            Purpose::Punch { leb } => self.plan.punched(leb),
            Purpose::Gather { upload, at } => self.gathered(upload, at, result),
        }
    }

    fn answered(&mut self, asked: Asked, answer: Answer) {
        if self.fenced {
            return;
        }
        let plain = |answer: Answer| match answer {
            Answer::Failed(failure) => Err(failure),
            _ => Ok(()),
        };
        match asked {
            Asked::Put { leb, id } => self.plan.uploaded(leb, id, plain(answer)),
            Asked::Note(note) => self.plan.noted(note, plain(answer)),
            Asked::Delete(id) => self.plan.deleted(id, plain(answer)),
            Asked::Get(number) => self.got(number, answer),
            Asked::Swap(number) => {
                let result = match answer {
                    Answer::Swapped(version) => Ok(version),
                    Answer::Failed(failure) => Err(failure),
                    _ => Err(Failure::Other("an answer that makes no sense".into())),
                };
                self.plan.swapped(number, result);
            }
            Asked::Fetch(number) => {
                let result = match answer {
                    Answer::Anchor(bytes, version) => Ok((bytes, version)),
                    Answer::Failed(failure) => Err(failure),
                    _ => Err(Failure::Other("an answer that makes no sense".into())),
                };
                self.plan.fetched(number, result);
            }
        }
    }

    fn wait_for_anything(&mut self) {
        match self.local.is_empty() {
            // What the journal does ends soon, and while it does nothing of it the store is all there is to wait for.
            false => self.journal.wait(),
            true => self.outside.wait(),
        }
    }
}

impl Media for ObjectMedia {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        self.journal.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        if self.fenced {
            return Some(Done { id, result: Err(MediaError::Fenced) });
        }
        match command {
            Command::Read { at, bytes } => self.read(id, at, bytes),
            Command::Program { at, bytes, page } => {
                if self.held.is_empty() && self.plan.admits(bytes.end - bytes.start) {
                    self.program(id, at, bytes, page);
                } else {
                    self.plan.program_held(at.block);
                    self.held.push_back((id, at, bytes, page));
                }
            }
            Command::Erase { block } => {
                self.erases.push((block, id));
                self.plan.erase(block);
            }
            // A sync of a cut failed, which is as final as one of the layer's.
            Command::Sync if self.plan.is_broken() => return Some(Done { id, result: Err(MediaError::Os(Errno::IO)) }),
            Command::Sync => self.submit_local(Purpose::Sync { id }, Command::Sync),
            Command::WriteLabel { copy, bytes } => {
                let label = bytes.first().cloned().unwrap_or_default();
                if label.len() > LABEL_BYTES as usize {
                    return Some(Done { id, result: Err(MediaError::Os(Errno::INVAL)) });
                }
                self.submit_local(Purpose::Label { id, copy, bytes: label }, Command::WriteLabel { copy, bytes });
            }
            Command::Allocate { .. } | Command::Fill { .. } | Command::Rebuild { .. } => {
                self.submit_local(Purpose::Pass { id }, command);
            }
        }
        None
    }

    fn poll(&mut self) -> Option<Done> {
        if self.done.is_empty() {
            self.pump();
        }
        self.done.pop_front()
    }

    fn has_done(&self) -> bool {
        !self.done.is_empty() || self.journal.has_done()
    }

    fn wait(&mut self) {
        if self.done.is_empty() {
            self.pump();
        }
        if self.done.is_empty() {
            self.wait_for_anything();
        }
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        self.journal.read_label(die, copy)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.journal.allocated_bytes()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.journal.free_bytes()
    }

    /// Nothing of the journal is reached past the plan: what changes it otherwise is not possible here.
    fn inner(&mut self) -> Option<&mut dyn Media> {
        None
    }
}
