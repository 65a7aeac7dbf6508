//! The simulated disk itself: it outlives the [`super::SimMedia`] that use it, and loses power.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;

use super::image::{Image, LabelFault};
use crate::{Geometry, Page, PageAddr};

/// A simulated disk. Clones of the handle are the same disk; [`SimStore::fork`] makes another.
#[derive(Clone, Debug)]
pub struct SimStore(pub(super) Rc<RefCell<State>>);

#[derive(Clone, Debug)]
pub(super) struct State {
    pub geometry: Geometry,
    /// What reads see.
    pub current: Image,
    /// What is safe from a power cut whatever happens.
    pub durable: Image,
    /// What is done but not durable, in the order in which it was done.
    pub volatile: Vec<Effect>,
    /// What is under way, in the order in which it was submitted.
    pub under_way: Vec<Flight>,
    /// How many effects were done ever; their numbers count up from 0.
    pub effects_done: u64,
    /// Commands submitted ever.
    pub commands: u64,
    /// Syncs that began while another one was under way.
    pub overlaps: u64,
    /// The command with which the power fails.
    pub cut_at: Option<u64>,
    /// The power is off: nothing is done any more.
    pub off: bool,
    /// Power cuts so far.
    pub cuts: u64,
    pub unreadable: BTreeSet<(u32, u32, u32)>,
    pub astray: Astray,
    /// Only programs of this die go astray, if one is named.
    pub astray_die: Option<u32>,
    /// Dies that answer nothing any more.
    pub dead: BTreeSet<u32>,
    /// The command with which a die fails.
    pub die_fails_at: Option<(u64, u32)>,
}

/// Where the next program really goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Astray {
    #[default]
    No,
    Lost,
    To(PageAddr),
}

/// A change to the media.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    /// Its number among all that are done.
    pub number: u64,
    pub change: Change,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Program { at: PageAddr, start: usize, bytes: Rc<Vec<u8>> },
    Erase { block: u32 },
    Allocate { block: u32 },
}

/// A command under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub id: u64,
    /// The poll at which it may be done.
    pub due: u64,
    pub work: Work,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Read {
        at: PageAddr,
        bytes: Range<u32>,
    },
    /// There is no redundancy here.
    Rebuild,
    /// `bytes` is what the buffer held at submission; `to` is `None` for a write that gets lost.
    Program {
        at: PageAddr,
        to: Option<PageAddr>,
        range: Range<u32>,
        bytes: Rc<Vec<u8>>,
        page: Page,
    },
    Erase {
        block: u32,
    },
    Allocate {
        block: u32,
        fill: bool,
    },
    /// Covers the effects numbered below `covers`.
    Sync {
        covers: u64,
        /// Some of these are lost already; it is yet to be told.
        failed: bool,
    },
    WriteLabel {
        copy: u8,
        bytes: Vec<Vec<u8>>,
    },
}

impl SimStore {
    /// An erased disk.
    pub fn new(geometry: Geometry) -> SimStore {
        SimStore::holding(Image::new(geometry))
    }

    /// A disk that holds this, durably.
    pub(super) fn holding(image: Image) -> SimStore {
        SimStore(Rc::new(RefCell::new(State {
            geometry: image.geometry,
            current: image.clone(),
            durable: image,
            volatile: Vec::new(),
            under_way: Vec::new(),
            effects_done: 0,
            commands: 0,
            overlaps: 0,
            cut_at: None,
            off: false,
            cuts: 0,
            unreadable: BTreeSet::new(),
            astray: Astray::No,
            astray_die: None,
            dead: BTreeSet::new(),
            die_fails_at: None,
        })))
    }

    /// A disk of its own in the same state, also with what is volatile and under way: to try
    /// several power cuts at one moment. Pages are shared until one of the two changes them.
    pub fn fork(&self) -> SimStore {
        SimStore(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// Its shape.
    pub fn geometry(&self) -> Geometry {
        self.0.borrow().geometry
    }

    /// Commands submitted ever, reads included.
    pub fn commands(&self) -> u64 {
        self.0.borrow().commands
    }

    /// Syncs so far that began while another one was under way.
    pub fn overlapping_syncs(&self) -> u64 {
        self.0.borrow().overlaps
    }

    /// Lets the power fail with command number `command` (as [`SimStore::commands`] counts, so
    /// `commands() + 1` is the next): it is still taken, and then nothing is done any more. What is
    /// under way and every later command fail with `ENODEV`, until [`SimStore::power_cut`].
    pub fn cut_at(&self, command: u64) {
        self.0.borrow_mut().cut_at = Some(command);
    }

    /// Switches the power off now; see [`SimStore::cut_at`].
    pub fn switch_off(&self) {
        self.0.borrow_mut().off = true;
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.0.borrow().off
    }

    /// Whether anything that is done could be lost by a power cut.
    pub fn has_volatile(&self) -> bool {
        !self.0.borrow().volatile.is_empty()
    }

    /// Flips the bits of `mask` in a byte of a page, durably.
    pub fn rot(&self, at: PageAddr, byte: u32, mask: u8) {
        let state = &mut *self.0.borrow_mut();
        for image in [&mut state.current, &mut state.durable] {
            image.rot(at, byte as usize, mask);
        }
    }

    /// Whether a label copy is being written: one that the power cut may tear.
    pub fn writes_label(&self) -> bool {
        self.0.borrow().under_way.iter().any(|flight| matches!(flight.work, Work::WriteLabel { .. }))
    }

    /// Lets something become of a label copy of some dies, durably.
    pub fn spoil_label(&self, dies: Range<u32>, copy: u8, fault: LabelFault) {
        let state = &mut *self.0.borrow_mut();
        for image in [&mut state.current, &mut state.durable] {
            dies.clone().for_each(|die| image.spoil_label(die, copy, fault));
        }
    }

    /// What stands in a page.
    pub fn page(&self, at: PageAddr) -> Vec<u8> {
        let state = self.0.borrow();
        let mut bytes = vec![0; state.geometry.page_bytes() as usize];
        state.current.read(at, 0..bytes.len(), &mut bytes);
        bytes
    }

    /// Puts something else into a page, durably.
    pub fn put_page(&self, at: PageAddr, bytes: &[u8]) {
        let state = &mut *self.0.borrow_mut();
        for image in [&mut state.current, &mut state.durable] {
            image.write(at, 0, bytes, |_| true);
        }
    }

    /// Lets every read of a page fail with `EIO` until its block is erased.
    pub fn fail_page(&self, at: PageAddr) {
        self.0.borrow_mut().unreadable.insert((at.die, at.block, at.page));
    }

    /// Lets a die fail now: everything for it fails with `EIO` from then on. What it held stays as it is.
    pub fn fail_die(&self, die: u32) {
        self.0.borrow_mut().dead.insert(die);
    }

    /// Lets a die fail with command number `command`, as [`SimStore::commands`] counts.
    pub fn fail_die_at(&self, command: u64, die: u32) {
        self.0.borrow_mut().die_fails_at = Some((command, die));
    }

    /// Brings a die that failed back, with what it held then.
    pub fn revive_die(&self, die: u32) {
        self.0.borrow_mut().dead.remove(&die);
    }

    /// Puts a blank die in the place of one. What is under way goes to the old one.
    pub fn replace_die(&self, die: u32) {
        let state = &mut *self.0.borrow_mut();
        for flight in &mut state.under_way {
            match &mut flight.work {
                Work::Program { at, to, .. } if at.die == die => *to = None,
                Work::WriteLabel { bytes, .. } => bytes.get_mut(die as usize).into_iter().for_each(Vec::clear),
                _ => {}
            }
        }
        state.dead.remove(&die);
        state.unreadable.retain(|(bad, ..)| *bad != die);
        state.volatile.retain(|effect| !matches!(effect.change, Change::Program { at, .. } if at.die == die));
        for image in [&mut state.current, &mut state.durable] {
            image.blank(die);
        }
    }

    /// Whether a die failed, or is to fail.
    pub fn may_fail(&self, die: u32) -> bool {
        let state = self.0.borrow();
        state.dead.contains(&die) || state.die_fails_at.is_some_and(|(_, next)| next == die)
    }

    /// Dies that answer nothing.
    pub fn failed_dies(&self) -> Vec<u32> {
        self.0.borrow().dead.iter().copied().collect()
    }

    /// Loses the next program that is submitted: it is done, but nothing was written.
    pub fn lose_next_program(&self) {
        self.0.borrow_mut().astray = Astray::Lost;
    }

    /// Writes the next program that is submitted to another page instead, at the same bytes of it.
    pub fn misdirect_next_program(&self, to: PageAddr) {
        self.0.borrow_mut().astray = Astray::To(to);
    }

    /// Lets only programs of one die go astray.
    pub fn astray_only_on(&self, die: u32) {
        self.0.borrow_mut().astray_die = Some(die);
    }

    /// A hash of everything that stands on it, durable or not.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let state = self.0.borrow();
        (state.current.digest(), state.durable.digest(), state.commands).hash(&mut hasher);
        hasher.finish()
    }

    /// Finishes what is under way, as the kernel does when only the process dies. It stays volatile.
    pub fn settle(&self) {
        let state = &mut *self.0.borrow_mut();
        for flight in std::mem::take(&mut state.under_way) {
            state.take_effect(&flight.work);
        }
    }
}

impl State {
    /// Does what a command does to the media.
    pub(super) fn take_effect(&mut self, work: &Work) {
        let change = match work {
            Work::Read { .. } | Work::Rebuild | Work::Program { to: None, .. } => return,
            Work::Program { to: Some(at), .. } if self.dead.contains(&at.die) => return,
            Work::Program { to: Some(at), range, bytes, .. } => {
                Change::Program { at: *at, start: range.start as usize, bytes: Rc::clone(bytes) }
            }
            Work::Erase { block } => {
                self.unreadable.retain(|(_, bad, _)| bad != block);
                Change::Erase { block: *block }
            }
            Work::Allocate { block, fill: true } => {
                self.take_effect(&Work::Erase { block: *block });
                Change::Allocate { block: *block }
            }
            Work::Allocate { block, .. } => Change::Allocate { block: *block },
            Work::Sync { covers, .. } => {
                let durable = self.volatile.partition_point(|effect| effect.number < *covers);
                for effect in self.volatile.drain(..durable) {
                    effect.change.apply(&mut self.durable, &self.dead);
                }
                return;
            }
            Work::WriteLabel { copy, bytes } => {
                for image in [&mut self.current, &mut self.durable] {
                    for (die, bytes) in bytes.iter().enumerate().filter(|(die, _)| !self.dead.contains(&(*die as u32)))
                    {
                        image.write_label(die, *copy, bytes, |_| true);
                    }
                }
                return;
            }
        };
        change.apply(&mut self.current, &self.dead);
        self.volatile.push(Effect { number: self.effects_done, change });
        self.effects_done += 1;
    }
}

impl Change {
    /// Changes an image as a whole; [`super::Cut`] knows how else.
    fn apply(&self, image: &mut Image, dead: &BTreeSet<u32>) {
        match self {
            Change::Program { at, start, bytes } => image.write(*at, *start, bytes, |_| true),
            Change::Erase { block } => {
                for die in (0..image.geometry.dies).filter(|die| !dead.contains(die)) {
                    image.erase(die, *block, 0..image.geometry.pages_per_block);
                }
                image.allocated[*block as usize] = false;
            }
            Change::Allocate { block } => image.allocated[*block as usize] = true,
        }
    }
}
