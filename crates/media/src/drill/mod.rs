//! Faults on command: a medium that stands between the layer and the real one on devices that are marked for drills.
//!
//! On native devices it is a disk with a *volatile write cache*: programs stay in memory until a sync, or until the cache is full,
//! so that a power cut can lose them ([`Cache`], [`cut`](self::cut)). Behind capacitors there is none. Besides, dies can be dead or slow,
//! and places on them unreadable or rotten.
//!
//! Once the power is cut, nothing is answered but errors, and nothing changes any more: whoever drives the device drops it.

mod cache;
mod cut;
mod faults;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use self::cache::{Cache, Stage};
use self::cut::Armed;
use crate::{Base, Command, Done, Geometry, Media, MediaError, Page, PageAddr, PageBuf, Slice};

pub use self::cut::{CutReport, Unsynced};
pub use self::faults::{Faults, Rot};

/// Marks the ids of commands of our own.
const OWN: u64 = 0x7b << 56;
/// The sync behind what the cache wrote out.
const OWN_SYNC: u64 = OWN | u32::MAX as u64;

/// What is to be done when the medium has done a command.
#[derive(Default)]
struct UnderWay {
    /// Its answer comes so much later.
    delay: Duration,
    /// It failed on these dies, whatever the medium says.
    dead: Vec<u32>,
    /// Parts of a read that the cache holds: which bytes of the page, and where they are.
    newer: Vec<(Range<u32>, Page)>,
    /// Which bytes of the page were asked for.
    bytes: Range<u32>,
}

/// A medium with faults on command.
pub struct DrillMedia {
    inner: Base,
    geometry: Geometry,
    /// The medium has chips of its own, with parity of its own: it is told which of them are dead.
    has_chips: bool,
    faults: Faults,
    left_out: BTreeSet<u32>,
    /// `None` where capacitors stand behind every program.
    cache: Option<Cache>,
    under_way: HashMap<u64, UnderWay>,
    /// Commands that the inner medium works at, our own included.
    inner_busy: usize,
    early: VecDeque<Done>,
    late: Vec<(Instant, Done)>,
    armed: Option<Armed>,
    cut: Option<CutReport>,
}

impl DrillMedia {
    /// Faults in front of a medium, `volatile` with a cache that a power cut can empty.
    pub fn new(inner: Base, volatile: bool) -> DrillMedia {
        DrillMedia {
            geometry: *inner.geometry(),
            has_chips: inner.nand().is_some(),
            inner,
            faults: Faults::default(),
            left_out: BTreeSet::new(),
            cache: volatile.then(Cache::default),
            under_way: HashMap::new(),
            inner_busy: 0,
            early: VecDeque::new(),
            late: Vec::new(),
            armed: None,
            cut: None,
        }
    }

    /// What it stands in front of.
    pub(crate) fn base(&self) -> &Base {
        &self.inner
    }

    pub(crate) fn base_mut(&mut self) -> &mut Base {
        &mut self.inner
    }

    /// The faults that are on.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Takes over faults from before a power cut.
    pub fn set_faults(&mut self, faults: Faults) {
        let before = std::mem::replace(&mut self.faults, faults);
        for die in 0..self.geometry.dies {
            let dead = self.faults.dead.contains(&die);
            if dead != before.dead.contains(&die) {
                self.tell_chips(die, dead);
            }
        }
    }

    /// A die answers nothing any more, or does again.
    pub fn set_dead(&mut self, die: u32, dead: bool) {
        match dead {
            true => self.faults.dead.insert(die),
            false => self.faults.dead.remove(&die),
        };
        self.tell_chips(die, dead);
    }

    fn tell_chips(&mut self, die: u32, dead: bool) {
        if let Some(paced) = self.inner.paced() {
            paced.nand_mut().set_lost(die, dead);
        }
    }

    /// What a die answers comes so much later; or at its own time again.
    pub fn set_stall(&mut self, die: u32, stall: Option<Duration>) {
        match stall {
            Some(stall) => self.faults.stalled.insert(die, stall),
            None => self.faults.stalled.remove(&die),
        };
    }

    /// Reads of a place fail until it is programmed anew.
    pub fn make_unreadable(&mut self, at: PageAddr, bytes: Range<u32>) {
        self.faults.unreadable.push((at, bytes));
    }

    /// Places can be read again that could not.
    pub fn make_readable(&mut self) {
        self.faults.unreadable.clear();
    }

    /// Flips a bit of what lies on the medium at a place; `bit` counts from the beginning of `bytes`.
    ///
    /// # Errors
    /// The medium failed, or cannot do this.
    pub fn rot(&mut self, at: PageAddr, bytes: Range<u32>, bit: u32) -> Result<(), MediaError> {
        self.settle_page(at)?;
        let mut after = Vec::new();
        self.inner.tamper(at, bytes.clone(), &mut |place| {
            if let Some(byte) = place.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
            after = place.to_vec();
        })?;
        self.faults.rotten.push(Rot { at, bytes, bit, after });
        Ok(())
    }

    /// Places that are rotten.
    pub fn rotten(&self) -> usize {
        self.faults.rotten.len()
    }

    /// Flips rotten bits back until only the first `keep` are left, except where something else was written since. Gives the number of
    /// places mended.
    ///
    /// # Errors
    /// The medium failed: what is still rotten stays known.
    pub fn mend(&mut self, keep: usize) -> Result<usize, MediaError> {
        let mut mended = 0;
        while let Some(rot) = self.faults.rotten[keep..].last().cloned() {
            self.settle_page(rot.at)?;
            self.inner.tamper(rot.at, rot.bytes, &mut |place| {
                if place == rot.after {
                    place[(rot.bit / 8) as usize] ^= 1 << (rot.bit % 8);
                    mended += 1;
                }
            })?;
            self.faults.rotten.pop();
        }
        Ok(mended)
    }

    /// How long until an answer that was held back is due.
    pub fn time_left(&self) -> Option<Duration> {
        if !self.early.is_empty() {
            return Some(Duration::ZERO);
        }
        self.late.iter().map(|(at, _)| at.saturating_duration_since(Instant::now())).min()
    }

    /// By how much a command on these dies is held back.
    fn stall(&self, dies: impl Iterator<Item = u32>) -> Duration {
        let here = dies.filter(|die| !self.left_out.contains(die));
        here.filter_map(|die| self.faults.stalled.get(&die)).max().copied().unwrap_or_default()
    }

    /// Dies that fail what goes to all of them.
    fn dead(&self) -> Vec<u32> {
        self.faults.dead.iter().copied().filter(|die| self.fails(*die)).collect()
    }

    /// Whether what goes to a die fails.
    fn fails(&self, die: u32) -> bool {
        self.faults.dead.contains(&die) && !self.left_out.contains(&die) && !self.has_chips
    }

    fn submit_inner(&mut self, id: u64, command: Command) {
        self.inner_busy += 1;
        if let Some(done) = self.inner.submit(id, command) {
            self.finished(done);
        }
    }

    /// Hands a command on, and remembers what is to be done with its answer.
    fn pass(&mut self, id: u64, command: Command, under_way: UnderWay) -> Option<Done> {
        self.under_way.insert(id, under_way);
        self.submit_inner(id, command);
        None
    }

    /// An answer that is known at once; `None` where its die takes longer.
    fn answer_now(&mut self, done: Done, delay: Duration) -> Option<Done> {
        if delay.is_zero() {
            return Some(done);
        }
        self.answer(done, delay);
        None
    }

    /// Answers a command with the next poll, or when its die is not so slow any more.
    fn answer(&mut self, done: Done, delay: Duration) {
        match delay.is_zero() {
            true => self.early.push_back(done),
            false => self.late.push((Instant::now() + delay, done)),
        }
    }

    /// The medium did something.
    fn finished(&mut self, done: Done) {
        self.inner_busy -= 1;
        if done.id >> 56 == OWN >> 56 {
            return self.finished_own(done.id, done.result);
        }
        // What was under way when the power went has been answered.
        let Some(UnderWay { delay, dead, newer, bytes }) = self.under_way.remove(&done.id) else { return };
        let result = match done.result {
            Ok(_) if !dead.is_empty() => Err(MediaError::Dies { dies: dead, error: Errno::IO }),
            Ok(Some(slice)) if !newer.is_empty() => Ok(Some(overlaid(&slice, &bytes, &newer))),
            result => result,
        };
        self.answer(Done { id: done.id, result }, delay);
    }

    fn finished_own(&mut self, id: u64, result: Result<Option<Slice>, MediaError>) {
        let (dead, Some(cache)) = (self.dead(), &mut self.cache) else {
            return;
        };
        match id {
            OWN_SYNC => {
                let result = cache.synced(result.map(|_| ()), dead);
                let slow = self.stall(0..self.geometry.dies);
                for (id, result) in result {
                    self.under_way.remove(&id);
                    self.answer(Done { id, result: result.map(|()| None) }, slow);
                }
            }
            id => cache.written((id & 0xffff_ffff) as usize, result.err()),
        }
        self.write_out();
    }

    /// Goes on with what the cache has to write.
    fn write_out(&mut self) {
        loop {
            let Some(cache) = self.cache.as_mut().filter(|_| self.cut.is_none()) else { return };
            match cache.next() {
                Stage::Nothing => return,
                Stage::Write(programs) => {
                    for (number, (at, bytes, page)) in programs.into_iter().enumerate() {
                        self.submit_inner(OWN | number as u64, Command::Program { at, bytes, page });
                    }
                }
                Stage::Sync => self.submit_inner(OWN_SYNC, Command::Sync),
            }
        }
    }

    /// Has what is cached of a page written, so that it lies on the medium.
    fn settle_page(&mut self, at: PageAddr) -> Result<(), MediaError> {
        if self.cache.as_ref().is_some_and(|cache| cache.is_flying(at)) {
            self.quiesce();
        }
        let held = self.cache.as_mut().map(|cache| cache.take_page(at)).unwrap_or_default();
        for (bytes, page) in held {
            let all = bytes.start as usize..bytes.end as usize;
            self.inner.tamper(at, bytes, &mut |place| place.copy_from_slice(page.bytes(all.clone())))?;
        }
        Ok(())
    }

    /// Waits until the inner medium works at nothing.
    fn quiesce(&mut self) {
        // A ring that fails does not wait: then whatever it still holds stays where it is.
        for _ in 0..100_000 {
            if self.inner_busy == 0 {
                return;
            }
            self.inner.wait();
            while let Some(done) = self.inner.poll() {
                self.finished(done);
            }
        }
        tracing::error!(left = self.inner_busy, "the medium does not finish what was asked of it");
    }

    fn read(&mut self, id: u64, at: PageAddr, bytes: Range<u32>) -> Option<Done> {
        let failing = |(place, range): &(PageAddr, Range<u32>)| *place == at && overlap(range, &bytes);
        let delay = self.stall(std::iter::once(at.die));
        if self.fails(at.die) || self.faults.unreadable.iter().any(failing) {
            return self.answer_now(Done { id, result: Err(MediaError::Os(Errno::IO)) }, delay);
        }
        let newer = self.cache.as_ref().map(|cache| cache.newer(at, &bytes)).unwrap_or_default();
        if let Some((_, page)) = newer.last().filter(|(range, _)| range.start <= bytes.start && bytes.end <= range.end)
        {
            let slice = Slice { page: page.clone(), offset: bytes.start as usize, len: bytes.len() };
            return self.answer_now(Done { id, result: Ok(Some(slice)) }, delay);
        }
        self.pass(id, Command::Read { at, bytes: bytes.clone() }, UnderWay { delay, newer, bytes, dead: Vec::new() })
    }

    fn program(&mut self, id: u64, at: PageAddr, bytes: Range<u32>, page: Page) -> Option<Done> {
        let delay = self.stall(std::iter::once(at.die));
        if self.fails(at.die) {
            return self.answer_now(Done { id, result: Err(MediaError::Os(Errno::IO)) }, delay);
        }
        // A place that could not be read is mended by writing it, as on a disk that has another one for it.
        self.faults.unreadable.retain(|(place, range)| *place != at || !overlap(range, &bytes));
        let Some(cache) = self.cache.as_mut().filter(|_| !self.left_out.contains(&at.die)) else {
            return self.pass(id, Command::Program { at, bytes, page }, UnderWay { delay, ..UnderWay::default() });
        };
        let stranded = cache.hold(at, bytes, page);
        for (bytes, page) in stranded {
            // Older bytes that are covered in part: they go to the medium, as any cached program may at any time.
            let all = bytes.start as usize..bytes.end as usize;
            let wrote = self.inner.tamper(at, bytes, &mut |place| place.copy_from_slice(page.bytes(all.clone())));
            if let (Err(error), Some(cache)) = (wrote, &mut self.cache) {
                cache.fail(at.die, error);
            }
        }
        self.write_out();
        self.answer_now(Done { id, result: Ok(None) }, delay)
    }

    fn sync(&mut self, id: u64) -> Option<Done> {
        let (delay, dead) = (self.stall(0..self.geometry.dies), self.dead());
        match &mut self.cache {
            None => self.pass(id, Command::Sync, UnderWay { delay, dead, ..UnderWay::default() }),
            Some(cache) => {
                cache.wants_sync(id);
                self.under_way.insert(id, UnderWay::default());
                self.write_out();
                None
            }
        }
    }

    /// What becomes of a command once the power is cut.
    fn submit_without_power(&mut self, id: u64, command: Command) -> Option<Done> {
        if let (Command::Program { .. }, None) = (&command, &self.cache) {
            // Capacitors program what stands in the buffers. Nobody is left to be told.
            self.submit_inner(id, command);
        }
        Some(Done { id, result: Err(MediaError::Os(Errno::IO)) })
    }
}

/// What a read gave, with what the cache holds in place of it.
fn overlaid(slice: &Slice, bytes: &Range<u32>, newer: &[(Range<u32>, Page)]) -> Slice {
    let page = PageBuf::new(bytes.len().max(1));
    {
        // SAFETY: the buffer was just made, nobody else knows it.
        let target = unsafe { page.bytes_mut(0..bytes.len()) };
        target.copy_from_slice(slice.bytes());
        for (range, from) in newer {
            let (start, end) = (range.start.max(bytes.start), range.end.min(bytes.end));
            target[(start - bytes.start) as usize..(end - bytes.start) as usize]
                .copy_from_slice(from.bytes(start as usize..end as usize));
        }
    }
    Slice { page, offset: 0, len: bytes.len() }
}

/// Whether two ranges have something in common.
fn overlap(one: &Range<u32>, other: &Range<u32>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Media for DrillMedia {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        self.inner.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        if self.cut.is_some() {
            return self.submit_without_power(id, command);
        }
        if self.is_last(&command) {
            return self.cut_at(id, command);
        }
        match command {
            Command::Read { at, bytes } => self.read(id, at, bytes),
            Command::Program { at, bytes, page } => self.program(id, at, bytes, page),
            Command::Sync => self.sync(id),
            Command::WriteLabel { copy, mut bytes } => {
                let (delay, dead) = (self.stall(0..self.geometry.dies), self.dead());
                for die in &dead {
                    if let Some(bytes) = bytes.get_mut(*die as usize) {
                        bytes.clear();
                    }
                }
                let under_way = UnderWay { delay, dead, ..UnderWay::default() };
                self.pass(id, Command::WriteLabel { copy, bytes }, under_way)
            }
            Command::Erase { block } => {
                if let Some(cache) = &mut self.cache {
                    cache.forget(block);
                }
                self.faults.unreadable.retain(|(place, _)| place.block != block);
                self.pass(id, Command::Erase { block }, UnderWay::default())
            }
            // What its cache holds of the block would have to go.
            Command::Fill { block } => self.pass(id, Command::Allocate { block }, UnderWay::default()),
            command @ (Command::Allocate { .. } | Command::Rebuild { .. }) => {
                self.pass(id, command, UnderWay::default())
            }
        }
    }

    fn poll(&mut self) -> Option<Done> {
        loop {
            if let Some(done) = self.early.pop_front() {
                return Some(done);
            }
            if !self.late.is_empty() {
                let now = Instant::now();
                if let Some(due) = self.late.iter().position(|(at, _)| *at <= now) {
                    return Some(self.late.remove(due).1);
                }
            }
            let done = self.inner.poll()?;
            self.finished(done);
        }
    }

    fn wait(&mut self) {
        if !self.early.is_empty() {
            return;
        }
        match self.time_left() {
            Some(left) if self.inner_busy == 0 => std::thread::sleep(left),
            _ => self.inner.wait(),
        }
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        match self.faults.dead.contains(&die) && !self.has_chips || self.cut.is_some() {
            true => Err(MediaError::Os(Errno::IO)),
            false => self.inner.read_label(die, copy),
        }
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

    fn grow(&mut self, blocks: u32) -> Result<(), MediaError> {
        self.inner.grow(blocks)?;
        self.geometry.blocks = blocks;
        Ok(())
    }

    fn leave_out(&mut self, die: u32) {
        self.left_out.insert(die);
        if let Some(cache) = &mut self.cache {
            cache.forget_die(die);
        }
        self.inner.leave_out(die);
    }

    fn take_back(&mut self, die: u32) {
        self.left_out.remove(&die);
        self.inner.take_back(die);
    }

    fn tamper(&mut self, at: PageAddr, bytes: Range<u32>, change: &mut dyn FnMut(&mut [u8])) -> Result<(), MediaError> {
        self.settle_page(at)?;
        self.inner.tamper(at, bytes, change)
    }
}
