//! What an emulated device notes of the layer's commands on their way: what stands in open pages.

use std::ops::Range;

use ftl::{BufId, Geometry, Header, PageAt};

/// Slots of an open page.
#[derive(Clone, Debug)]
pub(crate) struct OpenSlots {
    pub buf: BufId,
    pub at: PageAt,
    pub slots: Range<u32>,
}

/// The notes.
pub(crate) struct Hooks {
    geometry: Geometry,
    /// Pages that were not programmed yet, each with what was staged since it was last kept.
    open: Vec<OpenSlots>,
}

impl Hooks {
    pub fn new(geometry: Geometry) -> Hooks {
        Hooks { geometry, open: Vec::new() }
    }

    /// Slots of a buffer are filled.
    pub fn staged(&mut self, buf: BufId, slots: Range<u32>, header: &Header) {
        match self.open.iter_mut().find(|open| open.buf == buf) {
            // The records of trims are staged last, into a slot in between.
            Some(open) => open.slots = open.slots.start.min(slots.start)..open.slots.end.max(slots.end),
            None => self.open.push(OpenSlots { buf, at: self.geometry.locate(header.slot).0, slots }),
        }
    }

    /// A buffer is on its way to its page.
    pub fn programmed(&mut self, buf: BufId) {
        self.open.retain(|open| open.buf != buf);
    }

    /// What was staged in an open page and not kept since.
    pub fn take_open(&mut self) -> Option<OpenSlots> {
        self.open.pop()
    }
}
