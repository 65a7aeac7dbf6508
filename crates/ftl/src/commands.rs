//! The commands that wait for the device.

use crate::types::Command;

/// Commands in the order in which they are to be carried out.
///
/// They are put in and looked at where they lie: a command is copied neither in nor out when an [`crate::Engine`] takes a batch at a time.
#[derive(Default)]
pub(crate) struct Commands {
    /// What was taken out already is `None`.
    items: Vec<Option<Command>>,
    next: usize,
}

impl Commands {
    /// None, with room for so many.
    pub(crate) fn with_capacity(room: usize) -> Commands {
        Commands { items: Vec::with_capacity(room), next: 0 }
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, command: Command) {
        self.items.push(Some(command));
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<Command> {
        let command = self.items.get_mut(self.next)?.take();
        self.next += 1;
        if self.next == self.items.len() {
            self.clear();
        }
        command
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.items.capacity()
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.next = 0;
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Command> {
        self.items[self.next..].iter().flatten()
    }
}
