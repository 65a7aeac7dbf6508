//! The layer without bytes on the NAND model.

use ftl::{Addressed, Admission, Engine, Ftl, LebId, Medium, PageAddr, ReadFor, Tag};
use media::nand::{Class, ID_KIND, MAP_READS, Nand, PASSES};

use crate::controller::{Back, Change, Ended, Fetched, READS};
use crate::device::{Failure, Nanos, Op, Request};

/// Chips, and what time it is for them.
pub(super) struct Chips {
    pub nand: Nand,
    pub now: Nanos,
    /// Commands of pages of which too much is lost.
    failed: Vec<u64>,
}

impl Chips {
    /// Whether a page cannot be had, in which case its command fails.
    #[inline]
    fn fails(&mut self, id: u64, page: PageAddr) -> bool {
        let fails = self.nand.is_out_of_reach(page);
        if fails {
            self.failed.push(id);
        }
        fails
    }
}

impl Medium for Chips {
    #[inline]
    fn read(&mut self, id: u64, page: PageAddr, bytes: u32, purpose: &ReadFor) -> bool {
        if !self.fails(id, page) {
            self.nand.read(self.now, id, page, bytes, Class::of(purpose));
        }
        false
    }

    #[inline]
    fn program(&mut self, id: u64, page: PageAddr, bytes: u32) -> bool {
        if !self.fails(id, page) {
            self.nand.program(self.now, id, page, bytes);
        }
        false
    }

    #[inline]
    fn erase(&mut self, id: u64, leb: LebId) -> bool {
        self.nand.erase(self.now, id, leb);
        false
    }
}

/// A read that the layer works on.
#[derive(Clone, Copy, Default)]
struct Reading {
    tag: u32,
    bytes: u32,
    begin: Nanos,
}

/// The layer on the model of the chips, and the reads that it works on.
pub(super) struct Flash {
    pub layer: Addressed<Chips>,
    reading: Vec<Reading>,
    free_tags: Vec<Tag>,
    /// A read that needed no flash and came through the data path.
    passed: Option<Tag>,
    /// A page of the drive's map that came from flash.
    map_page: Option<u32>,
    /// Host sectors written to each placement; empty where the layer tells none apart.
    pub placed: Vec<u64>,
}

impl Flash {
    /// Layer and chips.
    pub fn parts(&mut self) -> (&mut Ftl, &mut Nand) {
        (&mut self.layer.ftl, &mut self.layer.medium.nand)
    }

    pub fn new(ftl: Ftl, nand: Nand) -> Flash {
        let placements = usize::from(ftl.placements());
        Flash {
            layer: Addressed::new(ftl, Chips { nand, now: 0, failed: Vec::new() }),
            reading: vec![Reading::default(); READS as usize + 1],
            free_tags: (1..=READS).rev().collect(),
            passed: None,
            map_page: None,
            placed: vec![0; if placements > 1 { placements } else { 0 }],
        }
    }
}

impl Flash {
    /// Changes something of the layer besides requests.
    pub fn change(&mut self, change: impl FnOnce(&mut Ftl)) {
        change(&mut self.layer.ftl);
        self.layer.carry_out(());
    }
}

impl Back for Flash {
    #[inline]
    fn ftl(&self) -> &Ftl {
        &self.layer.ftl
    }

    #[inline]
    fn nand(&self) -> &Nand {
        &self.layer.medium.nand
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.layer.medium.now
    }

    #[inline]
    fn set_now(&mut self, now: Nanos) {
        self.layer.medium.now = now;
    }

    #[inline]
    fn next_event(&mut self) -> Option<Nanos> {
        let Chips { nand, now, failed } = &mut self.layer.medium;
        if failed.is_empty() { nand.next_event() } else { Some(*now) }
    }

    #[inline]
    fn run(&mut self, limit: Nanos) -> Option<Nanos> {
        if !self.layer.medium.failed.is_empty() {
            return Some(self.layer.medium.now);
        }
        let at = self.layer.medium.nand.run(limit)?;
        self.layer.medium.now = at;
        Some(at)
    }

    #[inline]
    fn tell(&mut self) -> bool {
        if let Some(id) = self.layer.medium.failed.pop() {
            self.layer.done(id, false);
            self.layer.carry_out(());
            return true;
        }
        let Some(done) = self.layer.medium.nand.done() else { return false };
        match done.id & ID_KIND {
            PASSES => self.passed = Some(done.id as Tag),
            MAP_READS => self.map_page = Some(done.id as u32),
            _ => {
                self.layer.done(done.id, done.ok);
                self.layer.carry_out(());
            }
        }
        true
    }

    fn read_map(&mut self, page: u32, at: PageAddr, bytes: u32) {
        let Chips { nand, now, .. } = &mut self.layer.medium;
        nand.read_map(*now, page, at, bytes);
    }

    #[inline]
    fn map_page(&mut self) -> Option<u32> {
        self.map_page.take()
    }

    #[inline]
    fn read(&mut self, tag: u32, request: &Request, passes: bool) -> Admission {
        let Some(layer_tag) = self.free_tags.pop() else { return Admission::Busy };
        let sector = self.layer.ftl.config().geometry.sector_bytes;
        self.reading[layer_tag as usize] = Reading { tag, bytes: request.bytes, begin: self.layer.medium.now };
        let (lba, count) = (request.offset / u64::from(sector), request.bytes / sector);
        let mut admission = self.layer.ftl.submit(layer_tag, ftl::Request::Read { lba, count });
        if admission == Admission::Done && passes {
            let Chips { nand, now, .. } = &mut self.layer.medium;
            nand.pass(*now, PASSES | u64::from(layer_tag), request.bytes);
            admission = Admission::Pending;
        }
        if admission != Admission::Pending {
            self.free_tags.push(layer_tag);
        }
        self.layer.carry_out(());
        admission
    }

    fn take(&mut self, change: &mut Change) -> Admission {
        let most = self.layer.ftl.config().max_request;
        while change.sectors > 0 {
            let (lba, fua) = (change.lba, false);
            let (count, request) = match change.op {
                Op::Trim => (change.sectors, ftl::Request::Trim { lba, count: u64::from(change.sectors), fua }),
                _ => {
                    let count = change.sectors.min(most);
                    (count, ftl::Request::Write { lba, count, fua })
                }
            };
            let admission = self.layer.ftl.submit_placed(change.placement, 0, request);
            self.layer.carry_out(());
            if matches!(admission, Admission::Busy | Admission::Refused(_)) {
                return admission;
            }
            if change.op == Op::Write
                && let Some(placed) = self.placed.get_mut(usize::from(change.placement))
            {
                *placed += u64::from(count);
            }
            debug_assert_eq!(admission, Admission::Done, "nothing waits for durability behind capacitors");
            change.lba += u64::from(count);
            change.sectors -= count;
        }
        Admission::Done
    }

    #[inline]
    fn ended(&mut self) -> Option<Ended> {
        let (layer_tag, result) = match self.passed.take() {
            Some(tag) => (tag, Ok(())),
            None => self.layer.ftl.completion().map(|completion| (completion.tag, completion.result))?,
        };
        let Reading { tag, bytes, begin } = self.reading[layer_tag as usize];
        self.free_tags.push(layer_tag);
        Some(Ended { tag, read: Some(Fetched { bytes, begin }), result: result.map_err(|_| Failure::Media) })
    }

    fn idle(&mut self) -> bool {
        let more = self.layer.ftl.idle();
        self.layer.carry_out(());
        more
    }
}
