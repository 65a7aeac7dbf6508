//! Other sizes in a simulation: a device grows and shrinks among everything else.

use device::{Device, Info, Io, Resize, ResizeError, max_sectors};
use ftl::Geometry;

use crate::model::Part;
use crate::requests::owned;
use crate::run::{Failure, Simulation};

/// The fewest sectors that a device is left.
const LEAST: u64 = 8;
/// As many times as large as it was at first a device becomes at most.
const MOST: u64 = 3;

/// A size that the device may have by now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// Sectors.
    pub sectors: u64,
    /// LEBs.
    blocks: u32,
}

impl Simulation {
    /// Sectors that requests may go to: those that a device has whose size is about to change, whatever becomes of that.
    pub(crate) fn limit(&self) -> u64 {
        self.pending_size.map_or(self.model.len(), |pending| pending.sectors.min(self.model.len()))
    }

    /// Begins to give the device another size, or sees what became of the last one.
    pub(crate) fn resize_request(&mut self, tag: u64) -> Result<(), Failure> {
        if self.pending_size.is_some() {
            return self.look_at_size();
        }
        let (blocks, sector) = (self.plan.geometry.blocks, u64::from(self.plan.geometry.sector_bytes));
        // Redundancy keeps its raw capacity.
        let grows = self.plan.geometry.parity == 0 && self.random.one_in(3);
        let blocks = if grows { blocks + self.random.below(12) as u32 } else { blocks };
        let blocks = blocks.min(MOST as u32 * self.plan.first_blocks);
        let geometry = Geometry { blocks, ..self.plan.geometry };
        let most = if self.plan.sparse { MOST * geometry.slots() } else { max_sectors(&geometry) };
        let least = if self.plan.sparse { geometry.slots() + 1 } else { LEAST };
        if most < least {
            return Ok(());
        }
        let sectors = match self.random.below(4) {
            0 => most,
            1 => self.model.len().clamp(least, most),
            _ => least + self.random.below(most - least + 1),
        };
        if sectors < self.model.len() && self.random.one_in(2) {
            // What lies there is let go of, and that may not be durable when the device shrinks.
            let part = Part { lba: sectors, count: self.model.len() - sectors, zeros: true };
            let submitted = owned(self.device().submit(tag, Io::Trim { lba: part.lba, count: part.count, fua: false }));
            self.change(tag, part, false, submitted)?;
        }
        if self.store.is_off() {
            return Ok(());
        }
        let wanted = Resize { bytes: Some(sectors * sector), raw_bytes: Some(geometry.raw_bytes()) };
        let begun = self.device().plan_resize(&wanted).and_then(|plan| {
            plan.extend()?;
            self.device.as_mut().expect("attached").begin_resize(&plan)
        });
        let nothing = |lba: u64, model: &crate::model::Model| lba >= model.len() || model.current(lba) == 0;
        match begun {
            Ok(()) => {
                self.plan.geometry.blocks = blocks;
                self.pending_size = Some(Pending { sectors, blocks });
                self.plan.span = self.plan.span.min(sectors);
                self.look_at_size()
            }
            Err(_) if self.store.is_off() => Ok(()),
            Err(ResizeError::Mapped { byte, .. }) if nothing(byte / sector, &self.model) => Err(Failure::Wrong(
                format!("sector {} was never written, and keeps the device from shrinking", byte / sector),
            )),
            Err(ResizeError::Mapped { .. }) => Ok(()),
            Err(ResizeError::Kept { .. } | ResizeError::Purging) if self.plan.snapshot_once_in > 0 => Ok(()),
            Err(ResizeError::Failed(_)) if self.plan.errors || self.may_lack_space => Ok(()),
            Err(error) => Err(Failure::Wrong(format!("{sectors} sectors and {blocks} LEBs: {error}"))),
        }
    }

    /// Whether the device has its new size by now.
    pub(crate) fn look_at_size(&mut self) -> Result<(), Failure> {
        let Some(pending) = self.pending_size else { return Ok(()) };
        let resized = self.device().resized();
        if self.store.is_off() {
            return Ok(());
        }
        match resized {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.pending_size = None;
                self.sure_blocks = pending.blocks;
                self.report.resizes += 1;
                self.has_size(pending.sectors);
                match self.device().info().sectors == pending.sectors {
                    true => Ok(()),
                    false => {
                        Err(Failure::Wrong(format!("resized to {} sectors, and does not have them", pending.sectors)))
                    }
                }
            }
            Err(_) if self.plan.errors || self.may_lack_space => {
                // Only the next attach can tell.
                self.store.switch_off();
                Ok(())
            }
            Err(error) => Err(Failure::Wrong(format!("resize: {error}"))),
        }
    }

    fn has_size(&mut self, sectors: u64) {
        let grows = sectors > self.model.len();
        self.model.resize(sectors);
        self.plan.span = match grows && self.random.one_in(2) {
            true => sectors,
            false => self.plan.span.min(sectors),
        };
        self.read_up_to = 0;
    }

    /// After an attach the device has its old size or the one that was on its way, and nothing else.
    pub(crate) fn settle_size(&mut self) -> Result<(), Failure> {
        let Some(Info { sectors: found, raw_bytes, .. }) = self.device.as_ref().map(Device::info).cloned() else {
            return Ok(());
        };
        let pending = self.pending_size.take();
        self.report.resize_cuts += u64::from(pending.is_some());
        if found == self.model.len() {
            self.plan.span = self.plan.span.min(found);
        } else if pending.is_some_and(|pending| pending.sectors == found) {
            self.has_size(found);
        } else {
            return Err(Failure::Wrong(format!(
                "it had {} sectors, was to have {pending:?}, and has {found}",
                self.model.len()
            )));
        }
        let slots = raw_bytes / u64::from(self.plan.geometry.sector_bytes);
        let blocks = (slots / u64::from(self.plan.geometry.slots_per_leb())) as u32;
        let either = [self.plan.geometry.blocks, self.sure_blocks];
        if !either.contains(&blocks) {
            return Err(Failure::Wrong(format!("it had {either:?} LEBs and has {blocks}")));
        }
        (self.plan.geometry.blocks, self.sure_blocks) = (blocks, blocks);
        Ok(())
    }
}
