//! Brings a device back to order: what was written at random, and is read in order, is written once more by address.
//!
//! It goes window by window ([`Ftl::optimise`]): reads what is mapped there, wherever it lies, and appends it in the order of the sectors.
//! Each copy stands by itself, as those of the groomer do, so only what is durable is moved. The LEBs that it leaves empty are the
//! groomer's to free. Nothing is done while free space is short, and what lies in order already is left alone.

use crate::layer::{Ftl, id};
use crate::leb::{LebState, Stream};
use crate::read::MediaRead;
use crate::snapshot::clones::sector_of;
use crate::types::{Command, Header, LebId, NO_SLOT, ReadFor, Slot};

/// Sectors of a window that lie in so many times as few pieces as they could are in order.
const IN_ORDER: u32 = 2;
/// Sectors looked at to say in how many pieces the others lie.
const SAMPLE: u64 = 4096;
/// Sectors that are looked at in a row: more would say less of the rest of the device.
const SAMPLE_RUN: u64 = 128;

/// What became of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimised {
    /// It is in order, or holds nothing.
    InOrder,
    /// It is being moved, but for so many sectors that cannot be moved yet.
    Begun {
        /// Sectors that stay where they are.
        left: u32,
    },
    /// Another one is under way, or free space is short.
    NotNow,
}

/// A sector that was read.
struct Sector {
    lba: u64,
    slot: Slot,
    read: u64,
    /// Its place in the read.
    first: u32,
}

/// The window at hand.
#[derive(Default)]
pub(crate) struct Optimiser {
    reads: u32,
    /// What came, by address once all of it has.
    sectors: Vec<Sector>,
    moved: usize,
    /// Reads that are kept, with the LEB each was read from, which stays as it is: a slot that was used again could hold another version of
    /// the same sector.
    kept: Vec<(u64, LebId)>,
    stream: Option<u8>,
}

impl Optimiser {
    pub fn is_busy(&self) -> bool {
        self.reads > 0 || !self.kept.is_empty()
    }
}

impl Ftl {
    /// Begins to bring a window of sectors into order.
    pub fn optimise(&mut self, lba: u64, count: u32) -> Optimised {
        if self.groomer.optimiser.is_busy()
            || self.groomer.pace.is_short()
            || !self.has_spare_lebs()
            || !self.is_started()
            || self.checkpointer.is_closing()
            || self.durability.broken.is_some()
        {
            return Optimised::NotNow;
        }
        let end = (lba + u64::from(count)).min(self.map.sectors());
        let mapped = (lba..end).map(|lba| self.map.get(lba)).filter(|slot| *slot != NO_SLOT);
        let mut slots: Vec<Slot> = mapped.collect();
        let page = self.config.geometry.slots_per_page;
        let fewest = (slots.len() as u32).div_ceil(page) + 1;
        if self.pieces(lba, end - lba).0 <= u64::from(IN_ORDER * fewest) {
            return Optimised::InOrder;
        }
        let durable = self.durable();
        let all = slots.len();
        slots.retain(|slot| {
            let leb = &self.lebs[self.lebs.place(*slot).0];
            leb.state == LebState::Closed && leb.closed <= durable && leb.buffered == 0
        });
        let left = (all - slots.len()) as u32;
        if left > 0 {
            self.want_durable(self.seq);
        }
        slots.sort_unstable();
        let mut at = 0;
        while at < slots.len() {
            let first = slots[at];
            let mut run = 1;
            while slots.get(at + run) == Some(&(first + run as u32)) && !(first + run as u32).is_multiple_of(page) {
                run += 1;
            }
            at += run;
            self.groomer.optimiser.reads += 1;
            self.read_media(first, run as u32, ReadFor::Optimise);
        }
        self.work();
        Optimised::Begun { left }
    }

    /// Whether a window is being moved.
    pub fn is_optimising(&self) -> bool {
        self.groomer.optimiser.is_busy()
    }

    pub(crate) fn optimise_read_done(&mut self, command: u64, read: &MediaRead, headers: &[Option<Header>]) {
        let first = self.config.geometry.first_slot(read.leb, read.page) + read.at;
        self.lebs[read.leb].readers += 1;
        let (lebs, map) = (&self.lebs, &self.map);
        let optimiser = &mut self.groomer.optimiser;
        optimiser.reads -= 1;
        optimiser.kept.push((command, read.leb));
        for (at, header) in (0..).zip(headers) {
            let Some(header) = header else { continue };
            let (slot, lba) = (first + at, sector_of(header.lba));
            // What cannot be read stays where it is.
            if lebs.is_live(slot) && header.kind.is_sector() && lba < map.sectors() && map.get(lba) == slot {
                optimiser.sectors.push(Sector { lba, slot, read: command, first: at });
            }
        }
        if optimiser.reads == 0 {
            optimiser.sectors.sort_unstable_by_key(|sector| sector.lba);
        }
    }

    /// Appends what was read, as far as there is room.
    pub(crate) fn move_optimised(&mut self) {
        if self.groomer.optimiser.reads > 0 || self.groomer.optimiser.kept.is_empty() {
            return;
        }
        let mut optimiser = std::mem::take(&mut self.groomer.optimiser);
        // The last checkpoint waits for nobody.
        let mut gives_up = self.checkpointer.is_closing();
        while let Some(sector) = optimiser.sectors.get(optimiser.moved).filter(|_| !gives_up) {
            // The host may have written or trimmed it while it was read.
            if self.map.get(sector.lba) == sector.slot {
                let destination = self.place_moved(sector.lba, sector.slot);
                // All of the window goes one way, or it would not lie in order.
                let stream = *optimiser.stream.get_or_insert(destination.stream);
                let opens = self.open_leb_of(Stream::Data(stream)).is_none();
                // The LEBs that it is read from cannot be freed meanwhile, so it does not wait for space.
                gives_up = opens && (self.groomer.pace.is_short() || !self.has_spare_lebs());
                let Some(stream) = self.groom_stream(stream).filter(|_| !gives_up) else {
                    self.lebs.set_note(self.lebs.place(sector.slot), destination.note);
                    break;
                };
                self.move_sector((sector.read, sector.first), (sector.lba, sector.slot), stream, &destination);
                self.stats.groomed_sectors += 1;
                self.optimised += 1;
            }
            optimiser.moved += 1;
        }
        if optimiser.moved < optimiser.sectors.len() && !gives_up {
            self.groomer.optimiser = optimiser;
            return;
        }
        for (read, leb) in optimiser.kept {
            self.lebs[leb].readers -= 1;
            self.free_reads.push(id::split(read).1 as u32);
            self.commands.push(Command::Forget { id: read });
        }
    }

    /// Sectors that were moved since the attach to bring the device into order.
    pub fn optimised_sectors(&self) -> u64 {
        self.optimised
    }

    /// In how many pieces the sectors of a range lie that hold data, and how many sectors those are. A piece is read in one.
    fn pieces(&self, lba: u64, count: u64) -> (u64, u64) {
        let page = self.config.geometry.slots_per_page;
        let (mut pieces, mut mapped, mut last) = (0, 0, NO_SLOT);
        for lba in lba..lba + count {
            let slot = self.map.get(lba);
            if slot != NO_SLOT {
                mapped += 1;
                pieces += u64::from(last == NO_SLOT || slot != last + 1 || slot.is_multiple_of(page));
            }
            last = slot;
        }
        (pieces, mapped)
    }

    /// The same of the whole device, from a sample of a few thousand sectors where it has more.
    pub fn pieces_of_all(&self) -> (u64, u64) {
        let sectors = self.map.sectors();
        if sectors <= SAMPLE {
            return self.pieces(0, sectors);
        }
        let runs = SAMPLE / SAMPLE_RUN;
        let each = (0..runs).map(|run| {
            let (from, to) = (sectors / runs * run, sectors / runs * (run + 1));
            // Not always at the same place of what repeats.
            let place = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            self.pieces(from + place % (to - from - SAMPLE_RUN + 1).max(1), SAMPLE_RUN.min(to - from))
        });
        each.fold((0, 0), |(pieces, mapped), run| (pieces + run.0, mapped + run.1))
    }

    /// Asks for everything to become durable, and closes what is open, so that it can be moved. Under traffic LEBs are closed soon enough,
    /// and more of them unfinished at once would need more buffers than there are.
    pub fn begin_to_optimise(&mut self) {
        if !self.durability.is_busy() {
            Stream::data().for_each(|stream| self.give_up(stream));
        }
        self.background_flush();
        self.work();
    }
}
