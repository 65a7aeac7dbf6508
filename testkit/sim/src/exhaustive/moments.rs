//! How the store stood after each command that changes something.

use std::cell::RefCell;
use std::rc::Rc;

use device::Keeper;
use media::sim::SimStore;
use media::staged::Left;

/// How the store stood after a command, and what a process that is killed then leaves.
pub(super) struct Moment {
    pub store: SimStore,
    pub left: Option<Left>,
}

/// One for each command that changes something.
pub(super) type Moments = Rc<RefCell<Vec<Moment>>>;

/// Where it can be seen what a process leaves.
#[derive(Clone)]
pub(super) struct Legacy {
    pub store: SimStore,
    pub keeper: Keeper,
    /// What it found itself, and has not written back yet.
    pub found: Option<Left>,
}

impl Legacy {
    /// Of a process that finds this.
    pub fn of(store: &SimStore, found: Option<Left>) -> Legacy {
        Legacy { store: store.clone(), keeper: Keeper::default(), found }
    }

    /// How it stands now.
    pub fn moment(&self) -> Moment {
        let stage = self.keeper.borrow();
        let left = match stage.as_ref() {
            Some(stage) => stage.left().ok(),
            None => self.found.clone(),
        };
        Moment { store: self.store.fork(), left }
    }
}
