//! A medium that is looked at after each command.

use media::sim::SimMedia;
use media::{Command, Done, Geometry, Media, MediaError, Page};

/// The simulated medium, and who looks: told whether the command may have changed something.
pub(crate) struct Tapped<F> {
    pub inner: SimMedia,
    pub after: F,
}

impl<F: FnMut(bool)> Media for Tapped<F> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn page(&mut self) -> Page {
        self.inner.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        let changes = !matches!(command, Command::Read { .. } | Command::Allocate { .. } | Command::Rebuild { .. });
        let done = self.inner.submit(id, command);
        (self.after)(changes);
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

    fn free_bytes(&self) -> Option<u64> {
        self.inner.free_bytes()
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        Some(&mut self.inner)
    }

    fn grow(&mut self, blocks: u32) -> Result<(), MediaError> {
        self.inner.grow(blocks)
    }
}
