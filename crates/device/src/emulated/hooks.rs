//! What an emulated device notes of the layer's commands on their way: whom a read is for, and what stands in open pages.

use std::ops::Range;

use ftl::{BufId, Command, Geometry, PageAt, ReadFor, Tag};
use media::Media;
use media::nand::Class;

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
    /// By tag: no part of the read went to the flash yet.
    fresh: Vec<bool>,
    /// Pages that were not programmed yet, each with what was staged since it was last kept.
    open: Vec<OpenSlots>,
}

impl Hooks {
    pub fn new(geometry: Geometry, requests: u32) -> Hooks {
        Hooks { geometry, fresh: vec![false; requests as usize], open: Vec::new() }
    }

    /// A read request begins.
    pub fn read_begins(&mut self, tag: Tag) {
        self.fresh[tag as usize] = true;
    }

    /// A command of the layer is about to be carried out.
    #[inline]
    pub fn see(&mut self, command: &Command, media: &mut dyn Media) {
        match command {
            Command::Read { purpose, .. } => {
                let class = match purpose {
                    ReadFor::Request { tag, .. } => {
                        Class::Host { first: std::mem::take(&mut self.fresh[*tag as usize]) }
                    }
                    ReadFor::Groom | ReadFor::Relocate => Class::Groom,
                };
                if let Some(paced) = media.paced() {
                    paced.reads_are(class);
                }
            }
            Command::Stage { buf, at, count, header, .. } => {
                let end = at + count;
                match self.open.iter_mut().find(|open| open.buf == *buf) {
                    // The records of trims are staged last, into a slot in between.
                    Some(open) => open.slots = open.slots.start.min(*at)..open.slots.end.max(end),
                    None => {
                        let (page, _) = self.geometry.locate(header.slot);
                        self.open.push(OpenSlots { buf: *buf, at: page, slots: *at..end });
                    }
                }
            }
            Command::Program { buf, .. } => self.open.retain(|open| open.buf != *buf),
            _ => {}
        }
    }

    /// What was staged in an open page and not kept since.
    pub fn take_open(&mut self) -> Option<OpenSlots> {
        self.open.pop()
    }
}
