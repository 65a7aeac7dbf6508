//! Adaptive Flashback: an emulated card goes on without a chip that it lost.
//!
//! The chip is put on record, with the sequence number from which on LEBs are laid out over the others. From that everything else follows
//! after an attach: which LEBs are laid out how, and what is still to be moved. The card is protected again when no LEB from before is in
//! use.

use ftl::{Geometry, max_sectors};
use profile::Module;

use super::format::flash_card;
use crate::core::Core;
use crate::superblock::{GivenUp, Superblock};

/// What becomes of a card that lost a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It goes on without: what the chip held is rebuilt over the others.
    GivenUp,
    /// It did so before.
    Known,
    /// Its layout does not shrink.
    Rigid,
    /// With a chip less its capacity would have no room.
    NoRoom,
    /// Another one is lost that is not rebuilt yet.
    Another,
}

/// Chips of data and of parity in each stripe that is written, of an emulated card that has parity.
pub(crate) fn parity_chips(superblock: &Superblock) -> Option<String> {
    superblock.emulation?;
    let (_, flash) = flash_card(&superblock.profile).ok()?;
    let chips = &flash.module.chips;
    let left = chips.count.checked_sub(chips.parity + superblock.given_up.len() as u32)?;
    (chips.parity > 0).then(|| format!("{left} + {}", chips.parity))
}

/// Whether a card of this sheet can have given up what its superblock says.
///
/// # Errors
/// Why not.
pub(crate) fn check_given_up(superblock: &Superblock, sheet: &Module) -> Result<(), String> {
    let geometry = superblock.geometry;
    let (gone, chips) = (&superblock.given_up, &sheet.chips);
    if let Some(gone) = gone.iter().find(|gone| gone.chip >= chips.count) {
        return Err(format!("it gave up chip {} of {}", gone.chip, chips.count));
    }
    let lanes = gone.len() as u32 * sheet.nand.dies_per_chip;
    let narrow = Geometry { parity: geometry.parity + lanes, ..geometry };
    if lanes > 0 && (narrow.parity >= geometry.dies || superblock.sectors > max_sectors(&narrow)) {
        return Err(format!(
            "it gave up {} of {} chips, and the others have no room for its capacity",
            gone.len(),
            chips.count
        ));
    }
    Ok(())
}

impl Core {
    /// Goes on without the chips that were given up, before anything is written. For an attach.
    pub fn leave_chips_out(&mut self, read_only: bool) {
        let (ftl, given_up) = (&mut self.ftl, &self.superblock.given_up);
        let (Some(paced), Some(last)) = (self.media.paced(), given_up.last()) else { return };
        let nand = paced.nand_mut();
        for GivenUp { chip, since } in given_up {
            nand.give_up(*chip, |leb| ftl.is_from_before(leb, *since));
        }
        if !read_only {
            ftl.narrow(given_up.len() as u32 * nand.dies_per_chip(), last.since);
        }
    }

    /// A chip is lost: the card gives it up, if it can.
    pub fn lose_chip(&mut self, chip: u32) -> Loss {
        let Ok((_, flash)) = flash_card(&self.superblock.profile) else { return Loss::Rigid };
        let Some(nand) = self.media.nand() else { return Loss::Rigid };
        let lanes = (self.superblock.given_up.len() as u32 + 1) * nand.dies_per_chip();
        match () {
            () if !flash.module.chips.adaptive => return Loss::Rigid,
            () if nand.is_given_up(chip) => return Loss::Known,
            () if self.ftl.narrowing().is_some() => return Loss::Another,
            () if !self.ftl.can_narrow(lanes) => return Loss::NoRoom,
            () => {}
        }
        self.ftl.close_open_lebs();
        self.carry_out(&[]);
        let since = self.ftl.next_seq();
        self.superblock.given_up.push(GivenUp { chip, since });
        let ftl = &mut self.ftl;
        if let Some(paced) = self.media.paced() {
            paced.nand_mut().give_up(chip, |leb| ftl.is_from_before(leb, since));
        }
        ftl.narrow(lanes, since);
        self.save_settings();
        self.ftl.work();
        self.carry_out(&[]);
        Loss::GivenUp
    }

    /// A chip answers again, which is not one of those that were given up: what could not be moved for want of it is tried again.
    pub fn chip_answers(&mut self) {
        let (Some(nand), Some(last)) = (self.media.nand(), self.superblock.given_up.last()) else { return };
        if self.ftl.narrowing().is_some() {
            let lanes = self.superblock.given_up.len() as u32 * nand.dies_per_chip();
            self.ftl.narrow(lanes, last.since);
            self.ftl.work();
            self.carry_out(&[]);
        }
    }

    /// The chip that was given up last, and how much of what stood on it lies elsewhere, per cent, while that is under way.
    pub fn narrowing(&self) -> Option<(u32, f64)> {
        let (left, of) = self.ftl.narrowing()?;
        let chip = self.superblock.given_up.last()?.chip;
        Some((chip, 100.0 * f64::from(of.saturating_sub(left)) / f64::from(of.max(1))))
    }
}
