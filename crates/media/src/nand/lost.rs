//! Dies that answer nothing any more: what stood on them is made again of the rest of its parity group.
//!
//! A stripe is a page on every die. Its pages form as many *parity groups* as a chip has dies, each with one die of every chip: on a card
//! of 24 + 1 chips with four dies each, four groups of 24 data pages and one of parity. So a chip may fail as a whole, or one die of each
//! group, and two dies of one group may not.
//!
//! A read of a lost page takes a read of as many other pages of its group as there are data pages in it. They go over their channels to the
//! controller, which has them all before the one page goes on over the data path. A program of such a page ends in the controller, where
//! the group's parity is made of it.
//!
//! A card with *adaptive* Flashback gives a lost chip up: blocks that are erased from then on are laid out over the others, a chip less
//! in each group. The layer then leaves the last lanes of each stripe empty, see [`ftl::Ftl::narrow`]. It addresses pages as ever; where
//! the lanes of such a block lie is decided here.

use super::{Class, Kind, Line, Nand, Nanos, Operation};
use crate::PageAddr;

/// A read of a lost page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gather {
    /// The id of the read.
    id: u64,
    bytes: u32,
    /// It pays the cost of the request.
    first: bool,
    host: bool,
    /// Pages that are still to come.
    left: u32,
}

impl Nand {
    /// From now on a die answers nothing, or does again: then with what parity gives of it, as a chip that was replaced. What it is at work
    /// on is done all the same.
    pub fn set_lost(&mut self, die: u32, lost: bool) {
        self.lost.retain(|other| *other != die);
        if lost {
            self.lost.push(die);
        }
    }

    /// Dies that answer nothing.
    pub fn lost(&self) -> &[u32] {
        &self.lost
    }

    /// The parity group of a die. Dies are numbered across the chips first, and lanes turn by one die a stripe, so that neighbours in
    /// either order are in different groups.
    const fn group_of(&self, die: u32) -> u32 {
        die % self.groups
    }

    /// Gives a chip up, which is lost: blocks that hold nothing now, and all others once they are erased, do without it.
    pub fn give_up(&mut self, chip: u32, holds: impl Fn(u32) -> bool) {
        (chip..self.geometry.dies).step_by(self.chips as usize).for_each(|die| self.set_lost(die, true));
        let chips = self.narrow.last().cloned().unwrap_or_else(|| (0..self.chips).collect());
        self.narrow.push(chips.into_iter().filter(|other| *other != chip).collect());
        self.layouts.resize(self.geometry.blocks as usize, 0);
        let newest = self.narrow.len() as u8;
        for (block, layout) in (0..).zip(&mut self.layouts) {
            if !holds(block) {
                *layout = newest;
            }
        }
    }

    /// Dies of each chip.
    pub fn dies_per_chip(&self) -> u32 {
        self.geometry.dies / self.chips
    }

    /// Whether a chip was given up.
    pub fn is_given_up(&self, chip: u32) -> bool {
        self.narrow.last().is_some_and(|chips| !chips.contains(&chip))
    }

    /// The chips over which a block is laid out; `None` for all of them.
    fn chips_of(&self, block: u32) -> Option<&[u32]> {
        let layout = usize::from(*self.layouts.get(block as usize)?);
        self.narrow.get(layout.checked_sub(1)?).map(Vec::as_slice)
    }

    /// Chips of parity in each group.
    const fn parity_chips(&self) -> u32 {
        self.geometry.parity / self.groups
    }

    /// Where a page that the layer names lies.
    pub(super) fn seat(&self, at: PageAddr) -> PageAddr {
        let Some(chips) = self.chips_of(at.block) else { return at };
        let lane = self.geometry.lane_of(at.page, at.die);
        let (all, parity) = (chips.len() as u32, self.parity_chips());
        let (row, place) = (lane / (all - parity), lane % (all - parity));
        // Parity turns by one chip for every stripe. The lanes that stay empty have no row; an attach reads them all the same.
        let chip = chips[((at.page + parity + place) % all) as usize];
        PageAddr { die: row % self.groups * self.chips + chip, ..at }
    }

    /// The dies that hold the parity of a stripe.
    pub(super) fn parity_dies(&self, block: u32, page: u32) -> Vec<u32> {
        let Some(chips) = self.chips_of(block) else {
            return (0..self.geometry.parity).map(|which| self.geometry.parity_die(page, which)).collect();
        };
        let all = chips.len() as u32;
        let held = (0..self.parity_chips()).map(|which| chips[((page + which) % all) as usize]);
        held.flat_map(|chip| (0..self.groups).map(move |row| (row, chip)))
            .map(|(row, chip)| row * self.chips + chip)
            .collect()
    }

    /// Whether a page is the last one of its stripe that holds data.
    fn is_last_of_stripe(&self, at: PageAddr) -> bool {
        let data = match self.chips_of(at.block) {
            Some(chips) => self.groups * (chips.len() as u32 - self.parity_chips()),
            None => self.geometry.data_dies(),
        };
        at.die == self.geometry.die_of(at.page, data - 1)
    }

    /// The dies of a block's parity group to which a die belongs.
    fn group(&self, block: u32, page: u32, die: u32) -> Vec<u32> {
        match self.chips_of(block) {
            Some(chips) => chips.iter().map(|chip| die / self.chips * self.chips + chip).collect(),
            None => {
                let dies = (0..self.geometry.dies).map(|lane| self.geometry.die_of(page, lane));
                dies.filter(|other| self.group_of(*other) == self.group_of(die)).collect()
            }
        }
    }

    /// Whether a page that the layer names can be neither read nor written: its die is lost, and more of its group than parity makes up for.
    #[inline]
    pub fn is_out_of_reach(&self, at: PageAddr) -> bool {
        if self.lost.is_empty() {
            return false;
        }
        let die = self.seat(at).die;
        self.lost.contains(&die) && self.lost_of_group(at.block, at.page, die) > self.parity_chips()
    }

    fn lost_of_group(&self, block: u32, page: u32, die: u32) -> u32 {
        self.group(block, page, die).iter().filter(|die| self.lost.contains(die)).count() as u32
    }

    /// Whether more is lost of what a block lies on than its parity makes up for.
    pub fn is_beyond_parity(&self, block: u32) -> bool {
        self.lost.iter().any(|die| self.lost_of_group(block, 0, *die) > self.parity_chips())
    }

    /// Chips all of whose dies are lost; `None` where dies are lost besides.
    pub fn lost_chips(&self) -> Option<Vec<u32>> {
        let dies_of = |chip| self.lost.iter().filter(move |die| self.chip_of(**die) == chip).count() as u32;
        let lost = (0..self.chips).filter(|chip| dies_of(*chip) > 0).collect::<Vec<_>>();
        lost.iter().all(|chip| dies_of(*chip) == self.geometry.dies / self.chips).then_some(lost)
    }

    /// Reads a page while dies are lost.
    #[cold]
    pub(super) fn read_around(&mut self, now: Nanos, id: u64, at: PageAddr, bytes: u32, class: Class) {
        let at = self.seat(at);
        match self.lost.contains(&at.die) {
            true => self.gather(now, id, at, bytes, class),
            false => self.begin(now, id, Kind::of(class), at, bytes),
        }
    }

    /// Begins the read of a page whose die is lost.
    fn gather(&mut self, now: Nanos, id: u64, at: PageAddr, bytes: u32, class: Class) {
        let mut others = self.group(at.block, at.page, at.die);
        let data = others.len() - self.parity_chips() as usize;
        others.retain(|die| !self.lost.contains(die));
        others.truncate(data);
        let (first, host) = match class {
            Class::Host { first } => (first, true),
            Class::Groom => (false, false),
        };
        let gather = Gather { id, bytes, first, host, left: others.len() as u32 };
        let which = match self.gathers.iter().position(|gather| gather.left == 0) {
            Some(which) => which,
            None => {
                self.gathers.push(Gather::default());
                self.gathers.len() - 1
            }
        };
        self.gathers[which] = gather;
        self.counts.made_up_bytes += u64::from(bytes);
        for die in others {
            self.begin(now, which as u64, Kind::Part { host }, PageAddr { die, ..at }, bytes);
        }
    }

    /// A part of such a read has come to the controller; with the last one the whole page is there.
    #[cold]
    pub(super) fn gathered(&mut self, now: Nanos, which: u32) {
        let number = self.operations[which as usize].id as usize;
        self.unused.push(which);
        self.gathers[number].left -= 1;
        let Gather { id, bytes, first, host, left } = self.gathers[number];
        if left == 0 {
            let line = if host { Line::Reads } else { Line::Rest };
            self.over_the_path(now, line, Kind::Pass { first }, id, bytes);
        }
    }

    /// Programs a page while dies are lost. Where its own is, its data takes the data path, and ends in the stripe's parity.
    #[cold]
    pub(super) fn program_around(&mut self, now: Nanos, id: u64, at: PageAddr, bytes: u32) {
        let seat = self.seat(at);
        match self.lost.contains(&seat.die) {
            true => self.over_the_path(now, Line::Rest, Kind::Absorb, id, bytes),
            false => self.begin(now, id, Kind::Program, seat, bytes),
        }
        if self.geometry.parity == 0 || !self.is_last_of_stripe(at) {
            return;
        }
        for die in self.parity_dies(at.block, at.page) {
            if !self.lost.contains(&die) {
                self.begin(now, 0, Kind::Parity, PageAddr { die, ..at }, bytes);
                self.counts.parity_bytes += u64::from(bytes);
            }
        }
    }

    /// An operation that takes the data path and nothing else.
    pub(super) fn over_the_path(&mut self, now: Nanos, line: Line, kind: Kind, id: u64, bytes: u32) {
        let nowhere = PageAddr { die: 0, block: 0, page: 0 };
        let set_up = self.set_up(now, kind);
        let which = self.put(Operation { id, bytes, set_up, ..Operation::of_its_own(kind, nowhere) });
        self.ask_for_path(now, line, which);
    }
}
