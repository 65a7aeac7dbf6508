//! A medium that remembers how the store stood after each command that changes something.

use std::cell::RefCell;
use std::rc::Rc;

use device::Keeper;
use media::sim::{SimMedia, SimStore};
use media::staged::Left;
use media::{Command, Done, Geometry, Media, MediaError, Page};

/// How the store stood after a command, and what a process that is killed then leaves.
pub(super) struct Moment {
    pub store: SimStore,
    pub left: Option<Left>,
}

/// One for each command that changes something.
pub(super) type Moments = Rc<RefCell<Vec<Moment>>>;

pub(super) struct Spy {
    pub inner: SimMedia,
    pub legacy: Legacy,
    pub moments: Moments,
}

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

impl Media for Spy {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn page(&mut self) -> Page {
        self.inner.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        let changes = !matches!(command, Command::Read { .. } | Command::Allocate { .. } | Command::Rebuild { .. });
        let done = self.inner.submit(id, command);
        if changes {
            self.moments.borrow_mut().push(self.legacy.moment());
        }
        done
    }

    fn poll(&mut self) -> Option<Done> {
        self.inner.poll()
    }

    fn wait(&mut self) {
        self.inner.wait();
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        self.inner.read_label(die, copy)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }

    fn leave_out(&mut self, die: u32) {
        self.inner.leave_out(die);
    }

    fn take_back(&mut self, die: u32) {
        self.inner.take_back(die);
    }
}
