//! Every state that a power cut can leave behind at one moment, one after another.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use super::image::{Image, PIECE_BYTES};
use super::store::{Change, SimStore, State, Work};
use crate::PageAddr;

/// Something that the power may have come before, after or between.
enum Open {
    Program { at: PageAddr, start: usize, bytes: Rc<Vec<u8>> },
    Erase { die: u32, block: u32 },
    Label { die: usize, copy: u8, bytes: Vec<u8> },
}

impl Open {
    fn pieces(bytes: &[u8]) -> usize {
        bytes.len().div_ceil(PIECE_BYTES)
    }

    /// In how many ways it can have gone.
    fn ways(&self) -> usize {
        match self {
            Open::Program { bytes, .. } => Self::pieces(bytes) + 1,
            Open::Erase { .. } => 2,
            Open::Label { bytes, .. } => Self::pieces(bytes) + 1,
        }
    }

    fn leave(&self, way: usize, image: &mut Image) {
        match self {
            Open::Program { at, start, bytes } => image.write(*at, *start, bytes, |piece| piece < way),
            Open::Erase { die, block } if way == 1 => image.erase(*die, *block, 0..image.geometry.pages_per_block),
            Open::Erase { .. } => {}
            Open::Label { die, copy, bytes } => image.write_label(*die, *copy, bytes, |piece| piece < way),
        }
    }
}

/// All the states that a power cut can leave at one moment: each program that no sync covers, done or under way, is absent, whole or torn
/// after any of its pieces of 512 bytes by itself, an erase happened or not on each die, a label is torn anywhere. Space that was asked for and not synced is not sure.
pub struct CrashStates {
    durable: Image,
    open: Vec<Open>,
    ways: Vec<usize>,
    /// The next state, as a way for each; `None` when there are no more.
    next: Option<Vec<usize>>,
}

impl CrashStates {
    /// Of a death of the process alone where `kept` says what is on the store then; otherwise of a power cut.
    fn new(state: &State, kept: Option<&Image>) -> CrashStates {
        let dies = state.geometry.dies;
        let mut open = Vec::new();
        let mut labels = Vec::new();
        let erase = |open: &mut Vec<Open>, block| open.extend((0..dies).map(|die| Open::Erase { die, block }));
        for effect in state.volatile.iter().filter(|_| kept.is_none()) {
            match &effect.change {
                Change::Program { at, start, bytes } => {
                    open.push(Open::Program { at: *at, start: *start, bytes: Rc::clone(bytes) });
                }
                Change::Erase { block } => erase(&mut open, *block),
                Change::Allocate { .. } => {}
            }
        }
        for flight in &state.under_way {
            match &flight.work {
                Work::Program { to: Some(at), range, bytes, .. } => {
                    open.push(Open::Program { at: *at, start: range.start as usize, bytes: Rc::clone(bytes) });
                }
                Work::Erase { block } | Work::Allocate { block, fill: true } => erase(&mut open, *block),
                Work::WriteLabel { copy, bytes } => {
                    let each = (0..).zip(bytes);
                    labels.extend(each.map(|(die, bytes)| Open::Label { die, copy: *copy, bytes: bytes.clone() }));
                }
                _ => {}
            }
        }
        open.append(&mut labels);
        let ways: Vec<usize> = open.iter().map(Open::ways).collect();
        let next = Some(vec![0; ways.len()]);
        CrashStates { durable: kept.unwrap_or(&state.durable).clone(), open, ways, next }
    }

    /// How many there are.
    pub fn count_all(&self) -> u64 {
        self.ways.iter().map(|ways| *ways as u64).product()
    }

    /// What they all follow from: two moments with the same digest leave the same states.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.durable.digest().hash(&mut hasher);
        for open in &self.open {
            match open {
                Open::Program { at, start, bytes } => (0, at.die, at.block, at.page, start, bytes).hash(&mut hasher),
                Open::Erase { die, block } => (1, die, block).hash(&mut hasher),
                Open::Label { die, copy, bytes } => (2, die, copy, bytes).hash(&mut hasher),
            }
        }
        hasher.finish()
    }
}

impl Iterator for CrashStates {
    type Item = SimStore;

    fn next(&mut self) -> Option<SimStore> {
        let now = self.next.take()?;
        let mut image = self.durable.clone();
        for (open, way) in self.open.iter().zip(&now) {
            open.leave(*way, &mut image);
        }
        let mut next = now;
        for (way, ways) in next.iter_mut().zip(&self.ways) {
            *way += 1;
            if *way < *ways {
                self.next = Some(next);
                break;
            }
            *way = 0;
        }
        Some(SimStore::holding(image))
    }
}

impl SimStore {
    /// Every state that a power cut can leave now. Each is a store of its own, with the power on again.
    pub fn crash_states(&self) -> CrashStates {
        CrashStates::new(&self.0.borrow(), None)
    }

    /// Every state that the death of the process can leave now: what is done stays, and what is under way is as in a power cut.
    pub fn kill_states(&self) -> CrashStates {
        let state = self.0.borrow();
        CrashStates::new(&state, Some(&state.current))
    }

    /// A hash of what survives a power cut whatever happens; of a store that [`SimStore::crash_states`] gave, of all that stands on it.
    pub fn durable_digest(&self) -> u64 {
        self.0.borrow().durable.digest()
    }
}
