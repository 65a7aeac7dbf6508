//! Filling LEBs that were never written, before they are used.
//!
//! A file system notes with every sync which blocks were written for the first time. Where flushes cut a LEB into many pieces it costs less to write all of
//! it once beforehand. While clients wait for flushes that competes with them for the disk: so in quiet times as many LEBs are filled as the last burst
//! of flushes used and a few more, at most half of the spare space, and the next burst finds them. LEBs that were written before need none of this and go first.

use crate::layer::{Ftl, id};
use crate::leb::{Leb, LebState};
use crate::types::{Command, Error, LebId};

/// Programs that flushes cut short, for each page of a LEB, from which on a new LEB is filled before it is used.
const FILL_FROM: u32 = 4;

/// Bursts that use one part in so many more than the last find filled LEBs, too.
const SLACK: u32 = 4;

/// What is known of how LEBs are used.
#[derive(Default)]
pub(crate) struct Filling {
    /// Programs that flushes cut short since a LEB was made ready.
    cut_short: u32,
    /// LEBs that flushes cut into pieces since the last quiet time, of those that held nothing before.
    used: u32,
    /// So many of the free LEBs are to have been written.
    stock: u32,
    /// The one that is being filled ahead of need.
    leb: Option<LebId>,
}

impl Filling {
    /// A flush cut a program short.
    #[inline]
    pub fn cut_short(&mut self) {
        self.cut_short = self.cut_short.saturating_add(1);
    }

    /// A LEB is made ready: whether flushes cut the last one into so many pieces that this one is better filled.
    pub fn next_is_cut(&mut self, pages_per_leb: u32) -> bool {
        std::mem::take(&mut self.cut_short) >= FILL_FROM * pages_per_leb
    }

    /// A LEB is taken that flushes cut into pieces and that held nothing before.
    pub fn used_blank(&mut self) {
        self.used += 1;
    }

    /// Free LEBs that are to have been written.
    pub fn stock(&self) -> usize {
        self.stock as usize
    }

    /// No requests come: the next burst may be as large as this one was, or a little larger. One that was larger is forgotten by halves.
    fn learn(&mut self, most: u32) {
        match std::mem::take(&mut self.used) {
            0 => {}
            used => self.stock = (used + used / SLACK + 1).max(self.stock / 2).min(most),
        }
    }
}

/// Whether a free LEB holds what was written to it: its space can be given back.
pub(crate) fn holds_waste(leb: &Leb) -> bool {
    leb.dirty && leb.opened > 0
}

impl Ftl {
    /// In quiet times: fills one LEB more ahead of need. Returns whether there may be more to do.
    pub(crate) fn fill_ahead(&mut self) -> bool {
        let most = self.most_ahead() / f64::from(self.config.geometry.slots_per_leb());
        self.filling.learn(most as u32);
        if self.filling.leb.is_some() {
            return true;
        }
        if self.config.erase_before_program || self.no_space.is_some() || !self.has_spare_lebs() {
            return false;
        }
        let written = self.free.iter().filter(|leb| self.lebs[**leb].allocated).count();
        if written >= self.filling.stock() {
            return false;
        }
        let blank = self.free.iter().position(|leb| !self.lebs[*leb].allocated);
        let Some(leb) = blank.and_then(|at| self.free.remove(at)) else { return false };
        self.lebs[leb].state = LebState::Preparing;
        self.preparing += 1;
        self.filling.leb = Some(leb);
        self.commands.push(Command::Allocate { id: id::ALLOCATE | u64::from(leb), leb, fill: true });
        true
    }

    /// Whether the LEB that was just filled, or could not be, was filled ahead of need: then it waits among the free ones.
    pub(crate) fn filled_ahead(&mut self, leb: LebId, result: Result<(), Error>) -> bool {
        if self.filling.leb.take_if(|filled| *filled == leb).is_none() {
            return false;
        }
        self.lebs[leb].state = LebState::Free;
        match result {
            Ok(()) => {
                self.lebs[leb].allocated = true;
                self.free.push_front(leb);
            }
            // Nobody asked for it: the backing store is as full as before.
            Err(_) => {
                self.filling.stock = 0;
                self.free.push_back(leb);
            }
        }
        self.prepare_lebs();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Config, small};

    /// A layer on media that need no erase, with the LEBs ready that are kept so.
    fn layer() -> Ftl {
        let mut layer = small::attached(Config { erase_before_program: false, ..small::config() });
        layer.work();
        small::make_ready(&mut layer);
        layer
    }

    /// Answers what was asked for; gives the LEBs that were to be filled.
    fn answer(layer: &mut Ftl, result: Result<(), Error>) -> Vec<LebId> {
        let mut filled = Vec::new();
        for command in layer.commands().unwrap_or_default() {
            if let Command::Allocate { id, leb, fill } = command {
                filled.extend(fill.then_some(leb));
                layer.complete(id, result);
            }
        }
        filled
    }

    #[test]
    fn as_many_are_filled_as_a_burst_used_and_they_go_first() {
        let mut layer = layer();
        assert!(!layer.fill_ahead(), "nothing was flushed");
        layer.filling.used = 2;
        let mut filled = Vec::new();
        while layer.fill_ahead() {
            filled.extend(answer(&mut layer, Ok(())));
        }
        assert_eq!(filled.len(), 3);
        assert!(filled.iter().rev().eq(layer.free.iter().take(3)), "{filled:?} of {:?}", layer.free);
        assert!(!layer.fill_ahead(), "they are there already");
    }

    #[test]
    fn larger_bursts_are_forgotten_and_none_takes_more_than_half_of_the_spare_space() {
        let mut filling = Filling::default();
        let mut learn = |used, most| {
            filling.used = used;
            filling.learn(most);
            filling.stock()
        };
        assert_eq!([learn(8, 100), learn(0, 100), learn(3, 100), learn(3, 100)], [11, 11, 5, 4]);
        assert_eq!(learn(500, 100), 100);
    }

    #[test]
    fn a_burst_uses_what_flushes_cut_and_was_blank() {
        let mut layer = layer();
        let mut take = |cuts: u32, waste: bool| {
            let leb = layer.free[0];
            (layer.lebs[leb].allocated, layer.lebs[leb].opened) = (waste, u64::from(waste));
            (0..cuts).for_each(|_| layer.filling.cut_short());
            layer.ready.pop_front();
            layer.prepare_lebs();
            (answer(&mut layer, Ok(())).len(), layer.filling.used)
        };
        let cuts = FILL_FROM * small::config().geometry.pages_per_leb();
        assert_eq!([take(cuts - 1, false), take(cuts, false), take(cuts, true)], [(0, 0), (1, 1), (0, 1)]);
    }

    #[test]
    fn what_the_next_burst_may_use_is_not_given_back() {
        let mut layer = layer();
        for leb in layer.free.clone() {
            (layer.lebs[leb].allocated, layer.lebs[leb].opened) = (true, 1);
        }
        layer.filling.stock = 20;
        while layer.give_space_back() {
            for command in layer.commands().unwrap_or_default() {
                if let Command::Erase { id, .. } = command {
                    layer.complete(id, Ok(()));
                }
            }
        }
        assert_eq!(layer.free.iter().filter(|leb| holds_waste(&layer.lebs[**leb])).count(), 20);
    }

    #[test]
    fn a_full_store_is_nobodys_failure() {
        let mut layer = layer();
        layer.filling.used = 2;
        let free = layer.free_lebs();
        assert!(layer.fill_ahead());
        assert_eq!(answer(&mut layer, Err(Error::NoSpace)).len(), 1);
        assert_eq!((layer.free_lebs(), layer.no_space), (free, None));
        assert!(!layer.fill_ahead(), "not tried again");
    }
}
