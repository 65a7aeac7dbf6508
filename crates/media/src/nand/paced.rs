//! A medium that answers when flash would have: bytes lie in an inner medium, moments come from the NAND model.
//!
//! A command is done when the inner medium has done it *and* the model's time has come. The model's time goes on only when
//! its owner says so ([`Paced::advance`]); whoever merely waits ([`Media::wait`]) makes it jump to the next event, so
//! that an attach or a detach takes no longer than the inner medium.
//!
//! Where the flash has many dies, the inner medium has one: the pages of a LEB lie side by side in it in the order in which they are
//! filled, so that a sequential log stays sequential. Parity pages take time and wear and hold nothing.

use std::collections::VecDeque;
use std::ops::Range;

use rustix::io::Errno;
use slab::Slab;

use super::{Class, ID_KIND, MAP_READS, Nand, Nanos, PASSES};
use crate::{Command, Done, Geometry, Media, MediaError, Page, PageAddr, Slice};

/// What a paced medium keeps its bytes in: the shape of the inner medium of flash of this shape.
pub const fn inner_geometry(flash: &Geometry) -> Geometry {
    Geometry { dies: 1, parity: 0, pages_per_block: flash.pages_per_leb(), ..*flash }
}

/// The inner medium's id of a sync that nobody waits for.
const LAZY_SYNC: u64 = u64::MAX;

struct UnderWay {
    /// Its owner's id; `None` when nobody waits for it.
    id: Option<u64>,
    /// When the model had it done.
    ended: Option<Nanos>,
    /// The model says that the flash failed.
    failed: bool,
    /// What the inner medium said.
    stored: Option<Result<Option<Slice>, MediaError>>,
}

/// Flash in time, with content.
pub struct Paced {
    nand: Nand,
    geometry: Geometry,
    inner: Box<dyn Media>,
    now: Nanos,
    class: Class,
    under_way: Slab<UnderWay>,
    /// What is done, and by how much later than the model had it done.
    done: VecDeque<(Done, Nanos)>,
    lateness: Nanos,
    /// Reads that needed no flash and came through the data path.
    passed: VecDeque<u32>,
    /// Pages of the drive's map that came from flash.
    map_pages: VecDeque<u32>,
    /// Nobody waits for the disk.
    lazy: bool,
    /// The inner medium syncs, and nobody waits for it.
    syncing: bool,
    /// Why something failed that nobody waited for.
    failure: Option<MediaError>,
}

impl Paced {
    /// Flash of this model, with its bytes in a medium of [`inner_geometry`].
    ///
    /// # Panics
    /// The inner medium has another shape.
    pub fn new(nand: Nand, inner: Box<dyn Media>) -> Paced {
        let geometry = *nand.geometry();
        assert_eq!(*inner.geometry(), inner_geometry(&geometry), "the inner medium is made for this flash");
        Paced {
            nand,
            geometry,
            inner,
            now: 0,
            class: Class::Host { first: true },
            under_way: Slab::new(),
            done: VecDeque::new(),
            lateness: 0,
            passed: VecDeque::new(),
            map_pages: VecDeque::new(),
            lazy: false,
            syncing: false,
            failure: None,
        }
    }

    /// The model's time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// When the flash does something next.
    pub fn next_event(&mut self) -> Option<Nanos> {
        self.nand.next_event()
    }

    /// Lets everything happen up to and including `to`. Commands submitted afterwards come at `to`.
    pub fn advance(&mut self, to: Nanos) {
        while self.nand.next_event().is_some_and(|at| at <= to) {
            self.step();
        }
        self.now = self.now.max(to);
    }

    /// Whom the reads submitted from now on are for.
    pub fn reads_are(&mut self, class: Class) {
        self.class = class;
    }

    /// A host read of `bytes` that needs no cells takes the data path, see [`Nand::pass`].
    pub fn pass(&mut self, tag: u32, bytes: u32) {
        self.nand.pass(self.now, PASSES | u64::from(tag), bytes);
    }

    /// The next such read that came through.
    pub fn passed(&mut self) -> Option<u32> {
        self.passed.pop_front()
    }

    /// Reads a page of the drive's own map, of so many bytes, which lies there.
    pub fn read_map(&mut self, page: u32, at: PageAddr, bytes: u32) {
        self.nand.read_map(self.now, page, at, bytes);
    }

    /// The next page of the map that came.
    pub fn map_page(&mut self) -> Option<u32> {
        self.map_pages.pop_front()
    }

    /// By how much later than the model had it done the last command from [`Media::poll`] was done: the inner medium was slower.
    pub fn lateness(&self) -> Nanos {
        self.lateness
    }

    /// The model.
    pub fn nand(&self) -> &Nand {
        &self.nand
    }

    /// The model, to be changed: for fault drills.
    pub fn nand_mut(&mut self) -> &mut Nand {
        &mut self.nand
    }

    /// Puts bytes of a page that is not programmed yet where they would survive the end of this process. Takes no time in the
    /// model: it stands for capacitors, which program what is in the buffers when the power goes.
    pub fn keep(&mut self, at: PageAddr, bytes: Range<u32>, page: Page) {
        let unit = self.geometry.unit_bytes;
        let bytes = bytes.start / unit * unit..bytes.end.next_multiple_of(unit);
        let command = Command::Program { at: self.inner_address(at), bytes, page };
        let key = self.under_way.insert(UnderWay { id: None, ended: Some(self.now), failed: false, stored: None });
        self.store(key, command);
    }

    /// Whether syncs and labels are answered before the inner medium has them on its disk, as a card with capacitors answers: what is
    /// programmed then survives the end of this process, and a power cut of the machine only once the inner medium got that far.
    /// A failure is told with the next one.
    pub fn be_lazy(&mut self, lazy: bool) {
        self.lazy = lazy;
    }

    fn step(&mut self) {
        let Some(at) = self.nand.step() else { return };
        self.now = self.now.max(at);
        while let Some(done) = self.nand.done() {
            match done.id & ID_KIND {
                PASSES => self.passed.push_back(done.id as u32),
                MAP_READS => self.map_pages.push_back(done.id as u32),
                _ => self.ended(done, at),
            }
        }
    }

    /// The model is done with a command.
    fn ended(&mut self, done: super::Done, at: Nanos) {
        if let Some(entry) = self.under_way.get_mut(done.id as usize) {
            entry.ended = Some(at);
            entry.failed = !done.ok;
        }
        self.finish(done.id as usize);
    }

    /// Hands a command to the inner medium.
    fn store(&mut self, key: usize, command: Command) {
        if let Some(done) = self.inner.submit(key as u64, command) {
            self.stored(done);
        }
    }

    fn stored(&mut self, done: Done) {
        if done.id == LAZY_SYNC {
            self.syncing = false;
            self.failure = self.failure.take().or(done.result.err());
            return;
        }
        if let Some(entry) = self.under_way.get_mut(done.id as usize) {
            entry.stored = Some(done.result);
        }
        self.finish(done.id as usize);
    }

    /// Ends a command that both are done with.
    fn finish(&mut self, key: usize) {
        let Some(entry) = self.under_way.get_mut(key) else { return };
        let (Some(ended), Some(_)) = (entry.ended, &entry.stored) else { return };
        let Some(UnderWay { id, failed, stored: Some(result), .. }) = self.under_way.try_remove(key) else { return };
        let result = if failed { Err(MediaError::Os(Errno::IO)) } else { result };
        match id {
            Some(id) => self.done.push_back((Done { id, result }, self.now - ended)),
            None => self.failure = self.failure.take().or(result.err()),
        }
    }

    /// A sync or a label that nobody waits for.
    fn submit_lazily(&mut self, command: Command) -> Result<Option<Slice>, MediaError> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        if let Command::WriteLabel { copy, mut bytes } = command {
            bytes.truncate(1);
            let key = self.under_way.insert(UnderWay { id: None, ended: Some(self.now), failed: false, stored: None });
            self.store(key, Command::WriteLabel { copy, bytes });
        } else if !self.syncing {
            self.syncing = true;
            if let Some(done) = self.inner.submit(LAZY_SYNC, Command::Sync) {
                self.stored(done);
            }
        }
        self.failure.take().map_or(Ok(None), Err)
    }

    fn collect(&mut self) {
        while let Some(done) = self.inner.poll() {
            self.stored(done);
        }
    }

    fn inner_address(&self, at: PageAddr) -> PageAddr {
        let lane = self.geometry.lane_of(at.page, at.die);
        debug_assert!(lane < self.geometry.data_dies(), "parity pages hold nothing");
        PageAddr { die: 0, block: at.block, page: at.page * self.geometry.data_dies() + lane }
    }

    /// Bytes of sectors, as the model counts them, in so many bytes with trailers.
    fn sector_bytes(&self, bytes: &Range<u32>) -> u32 {
        (bytes.end - bytes.start).div_ceil(self.geometry.slot_bytes()) * self.geometry.sector_bytes
    }

    /// The layer's command in the words of the inner medium; the model is told.
    fn begin(&mut self, key: usize, command: Command) -> Command {
        let id = key as u64;
        match command {
            Command::Read { at, .. } | Command::Program { at, .. } if self.nand.is_out_of_reach(at) => {
                self.fails_at_once(key);
                Command::Read { at: self.inner_address(at), bytes: 0..self.geometry.unit_bytes }
            }
            Command::Read { at, bytes } => {
                self.nand.read(self.now, id, at, self.sector_bytes(&bytes), self.class);
                Command::Read { at: self.inner_address(at), bytes }
            }
            Command::Program { at, bytes, page } => {
                let sectors = self.geometry.slots_per_page * self.geometry.sector_bytes;
                self.nand.program(self.now, id, at, sectors);
                Command::Program { at: self.inner_address(at), bytes, page }
            }
            Command::Erase { block } => {
                self.nand.erase(self.now, id, block);
                Command::Erase { block }
            }
            // The card's dies all hold a label; here one copy is enough.
            Command::WriteLabel { copy, mut bytes } => {
                bytes.truncate(1);
                self.ended_at_once(key);
                Command::WriteLabel { copy, bytes }
            }
            command @ (Command::Allocate { .. } | Command::Fill { .. } | Command::Sync | Command::Rebuild { .. }) => {
                self.ended_at_once(key);
                command
            }
        }
    }

    fn fails_at_once(&mut self, key: usize) {
        self.ended_at_once(key);
        if let Some(entry) = self.under_way.get_mut(key) {
            entry.failed = true;
        }
    }

    fn ended_at_once(&mut self, key: usize) {
        if let Some(entry) = self.under_way.get_mut(key) {
            entry.ended = Some(self.now);
        }
    }
}

impl Media for Paced {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        self.inner.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        if self.lazy && matches!(command, Command::Sync | Command::WriteLabel { .. }) {
            return Some(Done { id, result: self.submit_lazily(command) });
        }
        if matches!(command, Command::Sync)
            && let Some(error) = self.failure.take()
        {
            return Some(Done { id, result: Err(error) });
        }
        let key = self.under_way.insert(UnderWay { id: Some(id), ended: None, failed: false, stored: None });
        let command = self.begin(key, command);
        self.store(key, command);
        None
    }

    fn poll(&mut self) -> Option<Done> {
        self.collect();
        let (done, lateness) = self.done.pop_front()?;
        self.lateness = lateness;
        Some(done)
    }

    fn wait(&mut self) {
        self.collect();
        while self.done.is_empty() && !self.under_way.is_empty() {
            if self.nand.next_event().is_some() {
                self.step();
            } else {
                self.inner.wait();
            }
            self.collect();
        }
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        if die >= self.geometry.dies {
            return Err(MediaError::Os(Errno::INVAL));
        }
        self.inner.read_label(0, copy)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.inner.free_bytes()
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        Some(&mut *self.inner)
    }

    // The inner medium has one die, whichever of the flash's is meant.
    fn leave_out(&mut self, _: u32) {}

    fn take_back(&mut self, _: u32) {}

    fn let_go(&mut self, _: u32) {}

    fn tamper(&mut self, at: PageAddr, bytes: Range<u32>, change: &mut dyn FnMut(&mut [u8])) -> Result<(), MediaError> {
        self.inner.tamper(self.inner_address(at), bytes, change)
    }
}
