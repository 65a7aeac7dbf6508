//! Flushes: waiters share syncs of the media, and the programs that a sync covers are done before it begins.
//!
//! Several syncs may be under way, each with the number below which it covers everything. One counts only when it and all that
//! were begun before it have succeeded: what a sync failed to write, a later one may report as clean.

use std::collections::VecDeque;

use crate::append::Program;
use crate::layer::{Ftl, id};
use crate::types::{Admission, Command, Error, Tag};

/// Syncs under way at once. While as many are, flushes gather for the next one.
const SYNCS: usize = 4;

/// The next sync: it waits until every program below `programs` is done; then everything below `seq` is on media.
#[derive(Clone, Copy)]
struct Next {
    seq: u64,
    programs: u64,
}

/// A sync of the media: everything below `seq` is durable when it is done.
struct Sync {
    seq: u64,
    done: bool,
}

/// What is durable, and who waits for it.
pub(crate) struct Durability {
    /// Everything appended with a lower sequence number was synced.
    pub durable: u64,
    /// The layer itself wants everything below this durable.
    wanted: u64,
    next: Option<Next>,
    /// Syncs under way from number `first` on, in the order in which they began.
    syncs: VecDeque<Sync>,
    first: u64,
    /// How many may be under way.
    most: usize,
    waiters: VecDeque<(u64, Tag)>,
    /// Programs under way from number `base` on; `None` are done.
    programs: VecDeque<Option<Program>>,
    base: u64,
    /// Programs that failed and wait to be tried again.
    failed: Vec<u64>,
    /// Programs that failed and did not succeed since.
    unwell: u32,
    stalled: Option<Error>,
    /// The media lost its word: a sync or an anchor failed, so nothing newer can be promised any more.
    pub broken: Option<Error>,
}

impl Durability {
    pub fn new(seq: u64) -> Durability {
        Durability {
            durable: seq,
            wanted: seq,
            next: None,
            syncs: VecDeque::new(),
            first: 0,
            most: SYNCS,
            waiters: VecDeque::new(),
            programs: VecDeque::new(),
            base: 0,
            failed: Vec::new(),
            unwell: 0,
            stalled: None,
            broken: None,
        }
    }

    /// Why programs fail at present, if they do. They are kept and tried again.
    pub fn stalled(&self) -> Option<Error> {
        self.stalled
    }

    pub fn is_busy(&self) -> bool {
        !self.programs.is_empty() || !self.waiters.is_empty() || self.next.is_some() || !self.syncs.is_empty()
    }

    /// What will be durable without another sync.
    fn covered(&self) -> u64 {
        let newest = self.next.map(|next| next.seq).or(self.syncs.back().map(|sync| sync.seq));
        newest.unwrap_or(self.durable).max(self.durable)
    }

    /// Numbers a program that begins.
    pub fn begin_program(&mut self, program: Program) -> u64 {
        self.programs.push_back(Some(program));
        self.base + self.programs.len() as u64 - 1
    }

    /// A program ended; gives it back when it succeeded.
    pub fn end_program(&mut self, number: u64, result: Result<(), Error>) -> Option<Program> {
        let entry = &mut self.programs[(number - self.base) as usize];
        match result {
            Ok(()) => {
                let program = entry.take().expect("a program that is under way");
                while let Some(None) = self.programs.front() {
                    self.programs.pop_front();
                    self.base += 1;
                }
                self.unwell -= u32::from(program.failed);
                if self.unwell == 0 {
                    self.stalled = None;
                }
                Some(program)
            }
            Err(error) => {
                let program = entry.as_mut().expect("a program that is under way");
                self.unwell += u32::from(!program.failed);
                program.failed = true;
                self.failed.push(number);
                self.stalled = Some(error);
                None
            }
        }
    }
}

impl Ftl {
    /// Everything appended with a lower sequence number survives a power cut.
    pub fn durable(&self) -> u64 {
        if self.config.power_protected { self.seq } else { self.durability.durable }
    }

    pub(crate) fn flush(&mut self, tag: Tag) -> Admission {
        if self.durability.broken.is_some() {
            return Admission::Refused(Error::Media);
        }
        self.retry_programs();
        self.wait_durable(tag)
    }

    /// Why no write can be taken now, if so.
    pub(crate) fn refusal(&mut self) -> Option<Error> {
        if let Some(error) = self.durability.broken {
            return Some(error);
        }
        let stalled = self.durability.stalled();
        if stalled.is_some() {
            self.retry_programs();
        }
        stalled
    }

    /// Answers `tag` when everything appended so far is durable.
    pub(crate) fn wait_durable(&mut self, tag: Tag) -> Admission {
        if self.durable() >= self.seq {
            return Admission::Done;
        }
        self.durability.waiters.push_back((self.seq, tag));
        // It begins with [`Ftl::share_sync`], so that those who ask at the same time share it.
        Admission::Pending
    }

    /// Asks for durability on the layer's own behalf.
    pub(crate) fn want_durable(&mut self, seq: u64) {
        self.durability.wanted = self.durability.wanted.max(seq);
    }

    /// Asks for everything appended so far to become durable, without a request.
    pub(crate) fn background_flush(&mut self) {
        self.want_durable(self.seq);
    }

    /// Makes everything durable that was taken so far; nobody is told when that is done.
    pub fn make_durable(&mut self) {
        self.background_flush();
        self.advance_sync();
    }

    /// Begins the sync that requests wait for. Those that were taken since the last call share it.
    #[inline]
    pub fn share_sync(&mut self) {
        if !self.durability.waiters.is_empty() {
            self.advance_sync();
        }
    }

    /// Syncs no longer overlap: the medium, or who keeps a record of them, takes one after the other.
    pub fn sync_one_by_one(&mut self) {
        self.durability.most = 1;
    }

    /// Everything below this number will be durable when the oldest sync under way is done.
    pub fn syncs_below(&self) -> Option<u64> {
        self.durability.syncs.front().map(|sync| sync.seq)
    }

    /// Begins the next sync, or takes it one step further, when it can.
    pub(crate) fn advance_sync(&mut self) {
        while self.durability.broken.is_none()
            && self.durability.stalled.is_none()
            && self.durability.syncs.len() < self.durability.most
        {
            let Some(next) = self.durability.next.or_else(|| self.gather()) else { return };
            if self.durability.base < next.programs {
                self.durability.next = Some(next);
                return;
            }
            self.durability.next = None;
            let number = self.durability.first + self.durability.syncs.len() as u64;
            self.durability.syncs.push_back(Sync { seq: next.seq, done: false });
            self.commands.push(Command::Sync { id: id::SYNC | number });
        }
    }

    /// Has the programs begun that the next sync waits for, if anybody wants one.
    fn gather(&mut self) -> Option<Next> {
        let last = self.durability.waiters.back().map_or(0, |(seq, _)| *seq);
        let covered = self.durability.covered().max(self.durable());
        if self.durability.wanted.max(last) <= covered {
            return None;
        }
        self.seal_all();
        let programs = self.durability.base + self.durability.programs.len() as u64;
        Some(Next { seq: self.seq, programs })
    }

    pub(crate) fn sync_done(&mut self, number: u64, result: Result<(), Error>) {
        let durability = &mut self.durability;
        let at = (number - durability.first) as usize;
        durability.syncs[at].done = true;
        if let Err(error) = result {
            // What the media did with the programs since the last sync is unknown: no later sync can make it good.
            durability.broken = Some(error);
        }
        let mut seq = durability.durable;
        while let Some(sync) = durability.syncs.pop_front_if(|sync| sync.done) {
            durability.first += 1;
            seq = seq.max(sync.seq);
        }
        if durability.broken.is_some() {
            return self.fail_waiters();
        }
        durability.durable = durability.durable.max(seq);
        while let Some((_, tag)) = self.durability.waiters.pop_front_if(|(needed, _)| *needed <= seq) {
            self.answer(tag, Ok(()));
        }
    }

    /// Tells everyone who waits that durability cannot be had now.
    pub(crate) fn fail_waiters(&mut self) {
        let Some(error) = self.durability.broken.or(self.durability.stalled) else { return };
        self.durability.next = None;
        while let Some((_, tag)) = self.durability.waiters.pop_front() {
            self.answer(tag, Err(error));
        }
    }

    /// Tries failed programs again, at the same place from the same buffer: nothing acknowledged was dropped.
    pub(crate) fn retry_programs(&mut self) {
        for number in std::mem::take(&mut self.durability.failed) {
            let program = self.durability.programs[(number - self.durability.base) as usize].expect("kept");
            self.commands.push(program.command(number));
        }
    }
}
