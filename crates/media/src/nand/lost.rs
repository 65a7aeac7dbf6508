//! Dies that answer nothing any more: what stood on them is made again of the rest of its parity group.
//!
//! A stripe is a page on every die. Its pages form as many *parity groups* as a chip has dies, each with one die of every chip: on a card
//! of 24 + 1 chips with four dies each, four groups of 24 data pages and one of parity. So a chip may fail as a whole, or one die of each
//! group, and two dies of one group may not.
//!
//! A read of a lost page takes a read of as many other pages of its group as there are data pages in it. They go over their channels to the
//! controller, which has them all before the one page goes on over the data path. A program of such a page ends in the controller, where
//! the group's parity is made of it.

use super::{Class, Kind, Line, NONE, Nand, Nanos, Operation, Stage};
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

    /// Whether nothing can be read from a die, nor written to it: it is lost, and more of its group than parity makes up for.
    pub fn is_out_of_reach(&self, die: u32) -> bool {
        let group = self.group_of(die);
        let lost = self.lost.iter().filter(|lost| self.group_of(**lost) == group).count();
        lost as u32 > self.geometry.parity / self.groups && self.lost.contains(&die)
    }

    /// Chips all of whose dies are lost; `None` where dies are lost besides.
    pub fn lost_chips(&self) -> Option<Vec<u32>> {
        let dies_of = |chip| self.lost.iter().filter(move |die| self.chip_of(**die) == chip).count() as u32;
        let lost = (0..self.chips).filter(|chip| dies_of(*chip) > 0).collect::<Vec<_>>();
        lost.iter().all(|chip| dies_of(*chip) == self.geometry.dies / self.chips).then_some(lost)
    }

    /// Begins the read of a page whose die is lost.
    #[cold]
    pub(super) fn gather(&mut self, now: Nanos, id: u64, at: PageAddr, bytes: u32, class: Class) {
        let lanes = 0..self.geometry.dies;
        let dies = lanes.map(|lane| self.geometry.die_of(at.page, lane));
        let others = dies.filter(|die| self.group_of(*die) == self.group_of(at.die) && !self.lost.contains(die));
        let others: Vec<u32> = others.take((self.geometry.data_dies() / self.groups) as usize).collect();
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
            self.begin(now, which as u64, Kind::Part { host }, die, at.page, bytes);
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

    /// A program of a page whose die is lost: its data takes the data path, and ends in the stripe's parity.
    #[cold]
    pub(super) fn absorb(&mut self, now: Nanos, id: u64, bytes: u32) {
        self.over_the_path(now, Line::Rest, Kind::Absorb, id, bytes);
    }

    /// An operation that takes the data path and nothing else.
    pub(super) fn over_the_path(&mut self, now: Nanos, line: Line, kind: Kind, id: u64, bytes: u32) {
        let which = self.put(Operation { id, kind, die: 0, page: 0, bytes, next: NONE, stage: Stage::Waiting });
        self.ask_for_path(now, line, which);
    }
}
