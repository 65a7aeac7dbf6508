//! Flushes: every waiter shares the next sync of the media, and programs are known done before it begins.

use std::collections::VecDeque;

use crate::append::Program;
use crate::layer::{Ftl, id};
use crate::types::{Admission, Command, Error, Tag};

enum Sync {
    Idle,
    /// Waits until every program below `programs` is done; then everything below `seq` is on media.
    Waiting {
        seq: u64,
        programs: u64,
    },
    /// The media's sync is under way.
    Issued {
        seq: u64,
    },
}

/// What is durable, and who waits for it.
pub(crate) struct Durability {
    /// Everything appended with a lower sequence number was synced.
    pub durable: u64,
    /// The layer itself wants everything below this durable.
    wanted: u64,
    sync: Sync,
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
            sync: Sync::Idle,
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
        !self.programs.is_empty() || !self.waiters.is_empty() || !matches!(self.sync, Sync::Idle)
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
    pub(crate) fn durable(&self) -> u64 {
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
        self.advance_sync();
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

    /// Everything below this number will be durable when the sync that is under way is done.
    pub fn syncs_below(&self) -> Option<u64> {
        match self.durability.sync {
            Sync::Issued { seq } => Some(seq),
            _ => None,
        }
    }

    /// Takes the sync one step further when it can.
    pub(crate) fn advance_sync(&mut self) {
        if self.durability.broken.is_some() || self.durability.stalled.is_some() {
            return;
        }
        if let Sync::Idle = self.durability.sync {
            let last = self.durability.waiters.back().map_or(0, |(seq, _)| *seq);
            if self.durability.wanted.max(last) <= self.durable() {
                return;
            }
            self.seal_all();
            let programs = self.durability.base + self.durability.programs.len() as u64;
            self.durability.sync = Sync::Waiting { seq: self.seq, programs };
        }
        if let Sync::Waiting { seq, programs } = self.durability.sync
            && self.durability.base >= programs
        {
            self.durability.sync = Sync::Issued { seq };
            self.commands.push(Command::Sync { id: id::SYNC });
        }
    }

    pub(crate) fn sync_done(&mut self, result: Result<(), Error>) {
        let Sync::Issued { seq } = std::mem::replace(&mut self.durability.sync, Sync::Idle) else {
            unreachable!("one sync at a time")
        };
        if let Err(error) = result {
            // What the media did with the programs since the last sync is unknown: no later sync can make it good.
            self.durability.broken = Some(error);
            return self.fail_waiters();
        }
        self.durability.durable = seq;
        while let Some((_, tag)) = self.durability.waiters.pop_front_if(|(needed, _)| *needed <= seq) {
            self.answer(tag, Ok(()));
        }
    }

    /// Tells everyone who waits that durability cannot be had now.
    pub(crate) fn fail_waiters(&mut self) {
        let Some(error) = self.durability.broken.or(self.durability.stalled) else { return };
        if !matches!(self.durability.sync, Sync::Issued { .. }) {
            self.durability.sync = Sync::Idle;
        }
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
