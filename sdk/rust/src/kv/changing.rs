//! Which slots are changing, so that threads look at slots and change them at the same time.
//!
//! Nobody holds a lock while he waits for the device. Whoever looked at slots asks afterwards whether one of them changed meanwhile, or is
//! changing still, and looks again if so. Changes that are under way have no slot in common, and none has looked at a slot of another: so
//! the device may carry them out in any order, and all threads share its syncs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// So many slots are remembered before it is asked which of them still matter.
const REMEMBERED: usize = 1024;

/// What the threads of a store tell each other.
#[derive(Default)]
pub(super) struct Changing {
    state: Mutex<State>,
    moved: Condvar,
}

/// When somebody began to look.
pub(super) struct Look(u64);

#[derive(Default)]
struct State {
    /// Counts beginnings and ends of changes.
    now: u64,
    /// Slots of changes that have begun and not ended.
    under_way: BTreeSet<u64>,
    /// When slots changed last, at least as far back as somebody looks.
    changed: HashMap<u64, u64>,
    /// How many began to look when.
    looks: BTreeMap<u64, usize>,
    /// Slots in `changed` when it was last asked which of them matter.
    mattered: usize,
}

impl State {
    fn change(&mut self, slots: &[u64]) {
        self.now += 1;
        let now = self.now;
        self.changed.extend(slots.iter().map(|slot| (*slot, now)));
        if self.changed.len() > 2 * self.mattered.max(REMEMBERED) {
            let first = self.looks.keys().next().copied().unwrap_or(now);
            self.changed.retain(|_, changed| *changed > first);
            self.mattered = self.changed.len();
        }
    }

    fn end_look(&mut self, look: u64) {
        if let Some(count) = self.looks.get_mut(&look) {
            *count -= 1;
            if *count == 0 {
                self.looks.remove(&look);
            }
        }
    }
}

impl Changing {
    /// Somebody begins to look at slots.
    pub(super) fn look(&self) -> Look {
        let mut state = self.state();
        let now = state.now;
        *state.looks.entry(now).or_default() += 1;
        Look(now)
    }

    /// Ends a look, and begins to change some of the slots that were looked at; or gives false if what was seen of them no longer holds.
    /// It waits if one of them is changing.
    pub(super) fn begin(&self, look: Look, seen: &[u64], slots: &[u64]) -> bool {
        let mut state = self.state();
        state.end_look(look.0);
        if !state.under_way.is_empty() && seen.iter().any(|slot| state.under_way.contains(slot)) {
            let now = state.now;
            while state.now == now {
                state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            return false;
        }
        if seen.iter().any(|slot| state.changed.get(slot).is_some_and(|changed| *changed > look.0)) {
            return false;
        }
        if !slots.is_empty() {
            state.under_way.extend(slots);
            state.change(slots);
        }
        true
    }

    /// Ends a change of these slots.
    pub(super) fn end(&self, slots: &[u64]) {
        let mut state = self.state();
        for slot in slots {
            state.under_way.remove(slot);
        }
        state.change(slots);
        self.moved.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looked_before_a_change_looks_again() {
        let changing = Changing::default();
        let (early, elsewhere) = (changing.look(), changing.look());
        assert!(changing.begin(changing.look(), &[3], &[3]));
        changing.end(&[3]);
        assert!(!changing.begin(early, &[2, 3], &[2]), "one of them changed meanwhile");
        assert!(changing.begin(elsewhere, &[2], &[2]), "another one did");
        changing.end(&[2]);
        assert!(changing.begin(changing.look(), &[2, 3], &[3]), "nothing changed since");
    }
}
