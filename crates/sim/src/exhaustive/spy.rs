//! A medium that remembers how the store stood after each command that changes something.

use std::cell::RefCell;
use std::rc::Rc;

use media::sim::{SimMedia, SimStore};
use media::{Command, Done, Geometry, Media, MediaError, Page};

/// How the store stood after each command.
pub(super) type Moments = Rc<RefCell<Vec<SimStore>>>;

pub(super) struct Spy {
    pub inner: SimMedia,
    pub store: SimStore,
    pub moments: Moments,
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
            self.moments.borrow_mut().push(self.store.fork());
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
