//! A simulated medium for seeded tests: it answers late and out of order, loses what no sync
//! covered when the power goes, fails on command, and panics when its user breaks the protocol.
//!
//! [`SimStore`] is the disk and outlives the [`SimMedia`] on it. The same seeds give the same run.

mod cut;
mod image;
mod states;
mod store;

pub use cut::Cut;
pub use image::LabelFault;
pub use states::CrashStates;
pub use store::SimStore;

use std::collections::BTreeSet;
use std::rc::Rc;

use random::SplitMix64;

use rustix::io::Errno;

use self::image::PIECE_BYTES;
use self::store::{Astray, Flight, State, Work};
use crate::arena::Arena;
use crate::{Command, Done, Geometry, LABEL_BYTES, Media, MediaError, Page, PageAddr, Slice};

/// What a [`SimMedia`] does to its user. Chances in parts per million.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// A command is done this many polls after its submission at the earliest.
    pub least_polls: u32,
    /// And may take up to this many more.
    pub spread_polls: u32,
    /// A command takes a thousand times as long, so that nearly everything else overtakes it.
    pub slow: u32,
    /// An [`Command::Allocate`] finds no space.
    pub no_space: u32,
    /// A read breaks its page: it and all later ones fail with `EIO`, until the block is erased.
    pub read_error: u32,
    /// A program fails with `EIO`, any of its pieces written.
    pub program_error: u32,
    /// A sync fails with `EIO`, having made nothing durable; any of what it should have covered no later sync covers either. Where an
    /// older one is under way, that one may be told instead.
    pub sync_error: u32,
    /// A label's write fails with `EIO`, done on any of the dies.
    pub label_error: u32,
    /// Programming a block that was not allocated since its last erase breaks the protocol.
    pub must_allocate: bool,
    /// Programming what was programmed before since the last erase breaks the protocol, as on flash; files take it.
    pub must_erase: bool,
}

impl Default for Knobs {
    /// Late and out of order, and nothing fails.
    fn default() -> Knobs {
        Knobs {
            least_polls: 0,
            spread_polls: 8,
            slow: 0,
            no_space: 0,
            read_error: 0,
            program_error: 0,
            sync_error: 0,
            label_error: 0,
            must_allocate: true,
            must_erase: true,
        }
    }
}

/// A medium on a [`SimStore`].
///
/// # Panics
/// When its user breaks the protocol of [`Media`]: programs a unit twice or in part, uses a block
/// before its allocation or erase is done, changes a buffer under way, reuses the id of a command
/// under way, writes a label that is too large, or addresses what is not there.
pub struct SimMedia {
    geometry: Geometry,
    store: SimStore,
    knobs: Knobs,
    rng: SplitMix64,
    polls: u64,
    /// Power cuts that the store had seen when this medium was made.
    cuts: u64,
    /// The commands under way; those that the power failed under have their error still to come.
    ids: Vec<u64>,
    pages: Arena,
    /// Dies that nothing is asked of.
    left_out: BTreeSet<u32>,
}

impl SimMedia {
    /// A medium on what the store holds. What an earlier medium left under way is done first.
    ///
    /// # Panics
    /// When the power is off.
    pub fn new(store: &SimStore, seed: u64, knobs: Knobs) -> SimMedia {
        assert!(!store.is_off(), "the power is off: SimStore::power_cut switches it on again");
        store.settle();
        let geometry = store.geometry();
        SimMedia {
            geometry,
            store: store.clone(),
            knobs,
            rng: SplitMix64::from_state(seed),
            polls: 0,
            cuts: store.0.borrow().cuts,
            ids: Vec::new(),
            pages: Arena::kept(geometry.page_bytes() as usize),
            left_out: BTreeSet::new(),
        }
    }

    /// What it does to its user from now on.
    pub fn set_knobs(&mut self, knobs: Knobs) {
        self.knobs = knobs;
    }

    /// The power failed at some time since this medium was made.
    fn is_dead(&self) -> bool {
        let state = self.store.0.borrow();
        state.off || state.cuts != self.cuts
    }

    fn work(&mut self, state: &mut State, command: Command) -> Work {
        let fill = matches!(command, Command::Fill { .. });
        match command {
            Command::Read { at, bytes } => {
                let inside = bytes.start <= bytes.end && bytes.end <= self.geometry.page_bytes();
                assert!(inside, "read of {bytes:?}, a page has {} bytes", self.geometry.page_bytes());
                Work::Read { at, bytes }
            }
            Command::Program { at, bytes: range, page } => {
                state.check_program(at, &range, &page, &self.knobs);
                let bytes = Rc::new(page.bytes(range.start as usize..range.end as usize).to_vec());
                let astray = match state.astray_die.is_none_or(|die| die == at.die) {
                    true => std::mem::take(&mut state.astray),
                    false => Astray::No,
                };
                let to = match astray {
                    Astray::No => Some(at),
                    Astray::Lost => None,
                    Astray::To(other) => Some(other),
                };
                Work::Program { at, to, range, bytes, page }
            }
            Command::Rebuild { .. } => Work::Rebuild,
            Command::Erase { block } => {
                assert!(block < self.geometry.blocks, "erase of block {block} of {}", self.geometry.blocks);
                let busy = state.under_way.iter().find(|flight| flight.work.block() == Some(block));
                assert!(busy.is_none(), "erase of block {block} while {busy:?} is under way");
                Work::Erase { block }
            }
            Command::Allocate { block } | Command::Fill { block } => {
                assert!(block < self.geometry.blocks, "allocation of block {block} of {}", self.geometry.blocks);
                Work::Allocate { block, fill }
            }
            Command::Sync => {
                let overlaps = state.under_way.iter().any(|flight| matches!(flight.work, Work::Sync { .. }));
                state.overlaps += u64::from(overlaps);
                Work::Sync { covers: state.effects_done, failed: false }
            }
            Command::WriteLabel { copy, bytes } => {
                let busy =
                    |flight: &Flight| matches!(flight.work, Work::WriteLabel { copy: other, .. } if other == copy);
                assert!(!state.under_way.iter().any(busy), "label copy {copy} is being written already");
                Work::WriteLabel { copy, bytes }
            }
        }
    }

    /// Does a command that is due.
    fn finish(&mut self, state: &mut State, mut flight: Flight) -> Done {
        let io_error = || MediaError::Os(Errno::IO);
        let result = match &mut flight.work {
            Work::Read { at, bytes } => self.read(state, *at, bytes.start as usize..bytes.end as usize),
            Work::Rebuild => Err(MediaError::Lost),
            Work::Program { at, to, range, bytes, page } => {
                let unchanged = page.bytes(range.start as usize..range.end as usize) == bytes.as_slice();
                assert!(unchanged, "command {}: the buffer of the program at {at:?} changed under way", flight.id);
                if state.dead.contains(&at.die) {
                    Err(io_error())
                } else if self.rng.chance(self.knobs.program_error) {
                    let kept: Vec<bool> = bytes.chunks(PIECE_BYTES).map(|_| self.rng.chance(500_000)).collect();
                    for image in [&mut state.current, &mut state.durable] {
                        image
                            .write(to.unwrap_or(*at), range.start as usize, bytes, |piece| to.is_some() && kept[piece]);
                    }
                    Err(io_error())
                } else {
                    Ok(None)
                }
            }
            Work::Allocate { .. } if self.rng.chance(self.knobs.no_space) => Err(MediaError::NoSpace),
            Work::Sync { failed: true, .. } => Err(io_error()),
            Work::Sync { covers, .. } => {
                // Of syncs that overlap an older one may be who is told.
                let at = state.under_way.iter().position(|flight| matches!(flight.work, Work::Sync { .. }));
                let older = at.map(|at| &mut state.under_way[at].work);
                match older {
                    _ if !self.rng.chance(self.knobs.sync_error) => Ok(None),
                    Some(Work::Sync { covers: older, failed }) if *older < *covers && self.rng.chance(500_000) => {
                        *failed = true;
                        let covered = *older;
                        self.lose(state, covered);
                        Ok(None)
                    }
                    _ => {
                        self.lose(state, *covers);
                        Err(io_error())
                    }
                }
            }
            Work::WriteLabel { bytes, .. } if self.rng.chance(self.knobs.label_error) => {
                let failed = |_: &&mut Vec<u8>| self.rng.chance(500_000);
                bytes.iter_mut().filter(failed).for_each(Vec::clear);
                state.take_effect(&flight.work);
                Err(io_error())
            }
            _ => Ok(None),
        };
        if result.is_ok() {
            state.take_effect(&flight.work);
        }
        // The other dies did their part.
        let failed = || state.dead.iter().copied().filter(|die| !self.left_out.contains(die)).collect::<Vec<u32>>();
        let for_all = matches!(
            flight.work,
            Work::Allocate { .. } | Work::Erase { .. } | Work::Sync { .. } | Work::WriteLabel { .. }
        );
        let result = match result {
            Ok(_) if for_all && !failed().is_empty() => Err(MediaError::Dies { dies: failed(), error: Errno::IO }),
            result => result,
        };
        Done { id: flight.id, result }
    }

    /// A sync failed. As the page cache does it: what could not be written counts as clean from then on.
    fn lose(&mut self, state: &mut State, covered: u64) {
        state.volatile.retain(|effect| effect.number >= covered || self.rng.chance(500_000));
    }

    fn read(
        &mut self,
        state: &mut State,
        at: PageAddr,
        bytes: std::ops::Range<usize>,
    ) -> Result<Option<Slice>, MediaError> {
        if state.dead.contains(&at.die) {
            return Err(MediaError::Os(Errno::IO));
        }
        if self.rng.chance(self.knobs.read_error) {
            state.unreadable.insert((at.die, at.block, at.page));
        }
        if state.unreadable.contains(&(at.die, at.block, at.page)) {
            return Err(MediaError::Os(Errno::IO));
        }
        let page = self.pages.page();
        // As direct I/O does it: the bytes lie somewhere in a buffer.
        let offset = bytes.start % PIECE_BYTES;
        let offset = if offset + bytes.len() <= page.len() { offset } else { 0 };
        // SAFETY: the arena just handed the buffer out, nobody else knows it.
        let target = unsafe { page.bytes_mut(offset..offset + bytes.len()) };
        state.current.read(at, bytes.clone(), target);
        for flight in &state.under_way {
            match &flight.work {
                // Of a program under way some pieces can be seen already.
                Work::Program { to: Some(to), range, bytes: new, .. } if *to == at => {
                    let start = range.start as usize;
                    for (number, piece) in new.chunks(PIECE_BYTES).enumerate() {
                        let from = start + number * PIECE_BYTES;
                        let overlap = from.max(bytes.start)..(from + piece.len()).min(bytes.end);
                        if overlap.start < overlap.end && self.rng.chance(500_000) {
                            target[overlap.start - bytes.start..overlap.end - bytes.start]
                                .copy_from_slice(&piece[overlap.start - from..overlap.end - from]);
                        }
                    }
                }
                Work::Erase { block } if *block == at.block && self.rng.chance(500_000) => target.fill(0),
                _ => {}
            }
        }
        Ok(Some(Slice { page, offset, len: bytes.len() }))
    }
}

impl Work {
    /// The block that it changes.
    fn block(&self) -> Option<u32> {
        match self {
            Work::Program { at, .. } => Some(at.block),
            Work::Erase { block } | Work::Allocate { block, .. } => Some(*block),
            Work::Read { .. } | Work::Rebuild | Work::Sync { .. } | Work::WriteLabel { .. } => None,
        }
    }
}

impl State {
    fn check_program(&mut self, at: PageAddr, range: &std::ops::Range<u32>, page: &Page, knobs: &Knobs) {
        let must_allocate = knobs.must_allocate;
        let (unit, bytes) = (self.geometry.unit_bytes, self.geometry.page_bytes());
        let whole = range.start.is_multiple_of(unit) && range.end.is_multiple_of(unit);
        assert!(whole && range.start < range.end && range.end <= bytes, "program of {range:?}: units are {unit} bytes");
        assert_eq!(page.len(), bytes as usize, "program from a buffer that is no page");
        let busy = |flight: &&Flight| match flight.work {
            Work::Erase { block } => block == at.block,
            Work::Allocate { block, .. } => must_allocate && block == at.block,
            _ => false,
        };
        let busy = self.under_way.iter().find(busy);
        assert!(busy.is_none(), "program at {at:?} while {busy:?} is under way");
        let fresh = self.current.begin_program(at, range.clone());
        assert!(fresh || !knobs.must_erase, "program of {range:?} at {at:?}: programmed before since the last erase");
        let allocated = self.current.allocated[at.block as usize];
        assert!(allocated || !must_allocate, "program at {at:?}: the block is not allocated");
    }
}

impl Media for SimMedia {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        let page = self.pages.page();
        // SAFETY: the arena just handed the buffer out, nobody else knows it.
        // Its content is unspecified: nobody shall find zeros there by luck.
        unsafe { page.bytes_mut(0..page.len()) }.fill(0xa5);
        page
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        if self.is_dead() {
            return Some(Done { id, result: Err(MediaError::Os(Errno::NODEV)) });
        }
        if let Command::WriteLabel { copy, bytes } = &command {
            let fits = bytes.iter().all(|bytes| bytes.len() <= LABEL_BYTES as usize);
            if *copy > 1 || bytes.len() > self.geometry.dies as usize || !fits {
                return Some(Done { id, result: Err(MediaError::Os(Errno::INVAL)) });
            }
        }
        let store = self.store.clone();
        let state = &mut *store.0.borrow_mut();
        assert!(!self.ids.contains(&id), "command id {id} is under way already");
        let work = self.work(state, command);
        let mut spread = self.rng.below(u64::from(self.knobs.spread_polls) + 1);
        if self.knobs.slow > 0 && self.rng.chance(self.knobs.slow) {
            spread = (spread + 1) * 1000;
        }
        let due = self.polls + u64::from(self.knobs.least_polls) + spread;
        state.under_way.push(Flight { id, due, work });
        state.commands += 1;
        state.off |= state.cut_at == Some(state.commands);
        if let Some((_, die)) = state.die_fails_at.take_if(|(at, _)| *at <= state.commands) {
            state.dead.insert(die);
        }
        self.ids.push(id);
        None
    }

    fn poll(&mut self) -> Option<Done> {
        if self.is_dead() {
            return self.ids.pop().map(|id| Done { id, result: Err(MediaError::Os(Errno::NODEV)) });
        }
        let store = self.store.clone();
        let state = &mut *store.0.borrow_mut();
        self.polls += 1;
        let due = |flight: &Flight| flight.due < self.polls;
        let count = state.under_way.iter().filter(|flight| due(flight)).count() as u64;
        if count == 0 {
            return None;
        }
        let chosen = self.rng.below(count) as usize;
        let (index, _) = state.under_way.iter().enumerate().filter(|(_, flight)| due(flight)).nth(chosen)?;
        let flight = state.under_way.remove(index);
        self.ids.retain(|id| *id != flight.id);
        Some(self.finish(state, flight))
    }

    fn wait(&mut self) {
        if let Some(due) = self.store.0.borrow().under_way.iter().map(|flight| flight.due).min() {
            self.polls = self.polls.max(due);
        }
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        if self.is_dead() {
            return Err(MediaError::Os(Errno::NODEV));
        }
        if die >= self.geometry.dies || copy > 1 {
            return Err(MediaError::Os(Errno::INVAL));
        }
        if self.store.0.borrow().dead.contains(&die) {
            return Err(MediaError::Os(Errno::IO));
        }
        Ok(self.store.0.borrow().current.label(die, copy))
    }

    fn allocated_bytes(&self) -> Option<u64> {
        Some(self.store.0.borrow().current.stored_bytes())
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        None
    }

    /// As files are: longer, durably, before anybody may know.
    fn grow(&mut self, blocks: u32) -> Result<(), MediaError> {
        if self.is_dead() {
            return Err(MediaError::Os(Errno::NODEV));
        }
        let state = &mut *self.store.0.borrow_mut();
        state.current.grow(blocks);
        state.durable.grow(blocks);
        (state.geometry.blocks, self.geometry.blocks) = (blocks, blocks);
        Ok(())
    }

    fn leave_out(&mut self, die: u32) {
        self.left_out.insert(die);
    }

    fn take_back(&mut self, die: u32) {
        self.left_out.remove(&die);
    }
}
