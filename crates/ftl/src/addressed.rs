//! The layer without bytes: where a real device keeps a sector with its trailer, this one keeps the sector's address, four bytes a
//! slot, which is all that the groomer asks for.

use std::ops::Range;

use crate::engine::{Engine, SlotRead};
use crate::layer::Ftl;
use crate::types::{Admission, BufId, Command, Error, Header, Kind, LebId, PageAddr, ReadFor, Request, Slot, Source};
use words::Words;

/// Slots whose places in the map are fetched into the cache together: where pages of the host's memory are small, each takes a walk
/// through page tables, and these go on side by side.
const SLOTS_TOGETHER: u32 = 32;
/// So far ahead of a groom read they are; the groomer goes through a LEB from end to end.
const SLOTS_AHEAD: u32 = 64;

/// What operations cost, for a layer whose bytes are kept nowhere. Each function says whether the operation is done on the spot;
/// otherwise whoever owns the medium says so later with [`Addressed::done`].
pub trait Medium {
    /// Reads so many bytes of a page.
    fn read(&mut self, _id: u64, _page: PageAddr, _bytes: u32, _purpose: &ReadFor) -> bool {
        true
    }

    /// Reads these slots. Without a word as their bytes, wherever they stand in the page.
    fn read_slots(&mut self, id: u64, read: &SlotRead, bytes: u32) -> bool {
        self.read(id, read.page, bytes, &read.purpose)
    }

    /// Programs this part of a page. Without a word as if it were all of its bytes.
    fn program_part(&mut self, id: u64, page: PageAddr, _part: Range<u32>, bytes: u32) -> bool {
        self.program(id, page, bytes)
    }

    /// Nothing more is programmed in a LEB.
    fn finish(&mut self, _leb: LebId) {}

    /// Programs so many bytes of a page.
    fn program(&mut self, _id: u64, _page: PageAddr, _bytes: u32) -> bool {
        true
    }

    /// Erases a LEB.
    fn erase(&mut self, _id: u64, _leb: LebId) -> bool {
        true
    }
}

/// A medium that takes no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtOnce;

impl Medium for AtOnce {}

/// So often a request is offered to a layer on a medium that takes no time: each offer lets the groomer go on.
const OFFERS: u32 = 1000;

impl Addressed<AtOnce> {
    /// Carries a request out; what the layer said to it last.
    pub fn submit(&mut self, request: Request) -> Admission {
        let mut admission = Admission::Busy;
        for _ in 0..OFFERS {
            admission = self.ftl.submit(0, request);
            self.carry_out(());
            if admission != Admission::Busy {
                break;
            }
        }
        admission
    }
}

/// A groom read under way, by its number.
#[derive(Clone, Copy, Default)]
struct GroomRead {
    slot: Slot,
    count: u32,
}

/// The layer on such a medium.
pub struct Addressed<M> {
    /// The layer.
    pub ftl: Ftl,
    /// The medium.
    pub medium: M,
    /// Host sector + 1 of every slot; 0 for what is not a host sector.
    owners: Words,
    headers: Vec<Option<Header>>,
    groom_reads: Vec<GroomRead>,
    /// Where the slots begin for which the map was fetched last.
    fetched: Slot,
}

impl<M: Medium> Addressed<M> {
    /// A new and empty layer on such a medium: it is started.
    pub fn new(mut ftl: Ftl, medium: M) -> Addressed<M> {
        ftl.start();
        let owners = Words::huge(ftl.config().geometry.slots() as usize);
        let mut this = Addressed { ftl, medium, owners, headers: Vec::new(), groom_reads: Vec::new(), fetched: 0 };
        this.carry_out(());
        this
    }

    /// The medium finished an operation, well or not. The layer is told, and what it wants done next waits to be carried out.
    #[inline]
    pub fn done(&mut self, id: u64, ok: bool) {
        let number = (id & 0xffff_ffff) as usize;
        let groomed = self.groom_reads.get_mut(number).filter(|_| crate::is_read(id)).map(std::mem::take);
        let Some(GroomRead { slot, count: count @ 1.. }) = groomed else {
            return self.ftl.complete(id, if ok { Ok(()) } else { Err(Error::Media) });
        };
        let owners = &self.owners[slot as usize..(slot + count) as usize];
        self.headers.clear();
        self.headers.extend((slot..).zip(owners).map(|(slot, owner)| {
            let lba = u64::from(*owner).checked_sub(1).filter(|_| ok)?;
            Some(Header { slot, seq: 0, kind: Kind::Data, lba, index: 0, remaining: 0, lag: 0 })
        }));
        self.ftl.groomed(id, &self.headers);
    }

    /// Remembers a groom read, and fetches the books of sectors that come soon into the cache.
    fn expect_groomed(&mut self, id: u64, slot: Slot, count: u32) {
        let number = (id & 0xffff_ffff) as usize;
        if self.groom_reads.len() <= number {
            self.groom_reads.resize(number + 1, GroomRead::default());
        }
        self.groom_reads[number] = GroomRead { slot, count };
        let ahead = slot + SLOTS_AHEAD;
        let begin = ahead - ahead % SLOTS_TOGETHER;
        if begin == self.fetched {
            return;
        }
        self.fetched = begin;
        for slot in begin..(begin + SLOTS_TOGETHER).min(self.owners.len() as u32) {
            let owner = self.owners[slot as usize];
            if owner != 0 && self.ftl.lebs().is_live(slot) {
                self.ftl.hint(u64::from(owner) - 1);
            }
        }
        // Owners lie in the order of slots.
        self.owners.prefetch((ahead + 8 * SLOTS_TOGETHER) as usize);
    }

    /// Heap memory, bytes.
    pub fn memory(&self) -> usize {
        self.ftl.memory() + self.owners.len() * size_of::<u32>()
    }

    /// Checks the books against each other. For tests: it looks at every sector.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self) -> Result<(), String> {
        self.ftl.verify()?;
        let mut wrong = None;
        self.ftl.map().for_each(|lba, slot| {
            if u64::from(self.owners[slot as usize]) != lba + 1 {
                wrong = Some(format!("sector {lba} is mapped to slot {slot}, which holds another"));
            }
        });
        wrong.map_or(Ok(()), Err)
    }

    fn sector_bytes(&self) -> u32 {
        self.ftl.config().geometry.sector_bytes
    }
}

impl<M: Medium> Engine for Addressed<M> {
    type Payload<'a> = ();

    #[inline]
    fn layer(&mut self) -> &mut Ftl {
        &mut self.ftl
    }

    #[inline]
    fn stage(&mut self, _: BufId, _: u32, count: u32, header: &Header, source: &Source, (): ()) {
        let slots = header.slot as usize..(header.slot + count) as usize;
        match source {
            Source::Meta(_) => self.owners[slots].fill(0),
            Source::Request { .. } | Source::Groom { .. } => {
                for (owner, lba) in self.owners[slots].iter_mut().zip(header.lba + 1..) {
                    *owner = lba as u32;
                }
            }
        }
    }

    #[inline]
    fn read(&mut self, id: u64, read: SlotRead) {
        if !matches!(read.purpose, ReadFor::Request { .. }) {
            self.expect_groomed(id, read.slot, read.count);
        }
        if self.medium.read_slots(id, &read, read.count * self.sector_bytes()) {
            self.done(id, true);
        }
    }

    #[inline]
    fn program(&mut self, id: u64, page: PageAddr, part: Range<u32>, _: BufId) {
        let bytes = self.ftl.config().geometry.slots_per_page * self.sector_bytes();
        if self.medium.program_part(id, page, part, bytes) {
            self.done(id, true);
        }
    }

    #[inline]
    fn erase(&mut self, id: u64, leb: LebId) {
        if self.medium.erase(id, leb) {
            self.done(id, true);
        }
    }

    #[inline]
    fn handle(&mut self, command: &Command) {
        if let Command::Finish { leb } = command {
            self.medium.finish(*leb);
        }
    }
}
