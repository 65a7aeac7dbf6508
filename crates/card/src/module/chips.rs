//! Chips that fail: what a module with adaptive Flashback does about it, and what becomes of one without.

use std::collections::BTreeMap;

use ftl::Engine;

use super::flash::Flash;
use crate::controller::Back;
use crate::device::Nanos;
use crate::report::{ChipChange, ChipEvent};

/// Steps in which a rebuild is told of, per cent.
const STEP: u32 = 25;

/// The chips of a module that fail.
#[derive(Default)]
pub(super) struct Chips {
    adaptive: bool,
    /// By the moment at which they are to fail.
    failing: BTreeMap<Nanos, Vec<u32>>,
    given_up: u32,
    /// How far a rebuild was when it was told of last.
    rebuilding: Option<u32>,
    pub events: Vec<ChipEvent>,
}

impl Chips {
    pub fn new(adaptive: bool) -> Chips {
        Chips { adaptive, ..Chips::default() }
    }

    /// A chip is to fail.
    pub fn fail(&mut self, chip: u32, at: Nanos) {
        self.failing.entry(at).or_default().push(chip);
    }

    /// When the next one fails.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.failing.first_key_value().map_or(Nanos::MAX, |(at, _)| *at)
    }

    /// Whether there is something to look at.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.rebuilding.is_none() && self.failing.is_empty()
    }

    /// It is the moment `now`: what is due fails, and what a rebuild came to is noted.
    pub fn look(&mut self, flash: &mut Flash, now: Nanos) {
        while let Some(next) = self.failing.first_entry().filter(|next| *next.key() <= now) {
            for chip in next.remove() {
                let what = self.lose(flash, chip);
                self.events.push(ChipEvent { at: now, what });
            }
        }
        let Some(before) = self.rebuilding else { return };
        let left = flash.nand().chips() - self.given_up;
        let Some((wide, of)) = flash.ftl().narrowing() else {
            self.rebuilding = None;
            self.events.push(ChipEvent { at: now, what: ChipChange::Protected { left } });
            return;
        };
        let percent = (of - wide) * 100 / of.max(1) / STEP * STEP;
        if percent > before {
            self.rebuilding = Some(percent);
            self.events.push(ChipEvent { at: now, what: ChipChange::Rebuilt { percent } });
        }
    }

    fn lose(&mut self, flash: &mut Flash, chip: u32) -> ChipChange {
        let (ftl, nand) = flash.parts();
        let chips = nand.chips();
        let lanes = (self.given_up + 1) * nand.dies_per_chip();
        let dies = (chip..nand.geometry().dies).step_by(chips as usize);
        dies.for_each(|die| nand.set_lost(die, true));
        if !self.adaptive || self.rebuilding.is_some() || nand.is_given_up(chip) || !ftl.can_narrow(lanes) {
            return ChipChange::Degraded { chip };
        }
        ftl.close_open_lebs();
        flash.layer.carry_out(());
        let (ftl, nand) = flash.parts();
        let since = ftl.next_seq();
        nand.give_up(chip, |leb| ftl.is_from_before(leb, since));
        ftl.narrow(lanes, since);
        ftl.work();
        flash.layer.carry_out(());
        self.given_up += 1;
        self.rebuilding = Some(0);
        ChipChange::Lost { chip, left: chips - self.given_up }
    }
}
