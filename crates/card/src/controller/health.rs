//! How a card does, and by how much its writes are held back for it.

use ftl::Geometry;
use media::nand::Nand;
use profile::Module as Sheet;

use super::{Back, Controller};
use crate::device::Nanos;
use crate::governor::Governor;
use crate::report::Health;

/// In reduced-write mode, so much of the rate at which the flash can be programmed is left for host writes. The original's figure is
/// not published.
const REDUCED_SHARE: f64 = 0.1;
/// At this much reserve the one-time warning is due, per cent.
const WARNING_PERCENT: f64 = 10.0;

impl Controller {
    /// How near its end the card is.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Nanoseconds by which each written byte is held back: by power and heat, and once the reserve is used up by at least so much.
    pub fn hold(&self) -> f64 {
        let governed = self.governor.as_ref().map_or(0.0, Governor::hold);
        if self.health == Health::ReducedWrite { governed.max(self.reduced_hold) } else { governed }
    }

    pub(super) fn update_health(&mut self, nand: &Nand) {
        let (wear, geometry) = (nand.wear(), &self.geometry);
        let left = geometry.blocks - wear.retired_lebs();
        let needed = self.sectors.div_ceil(u64::from(geometry.slots_per_leb() - 1)) as u32;
        let spare = ftl::min_spare_lebs(geometry);
        let reserve = wear.reserve_percent();
        let health = match reserve {
            _ if left < needed + spare => Health::ReadOnly,
            reserve if reserve <= 0.0 => Health::ReducedWrite,
            reserve if reserve <= WARNING_PERCENT => Health::Warning,
            _ => Health::Healthy,
        };
        // It never gets better.
        self.health = self.health.max(health);
    }

    /// For fault drills: somebody changed the reserve. It is at least so near its end from now on.
    pub fn reserve_changed(&mut self, nand: &Nand, at_least: Health) {
        self.health = at_least;
        self.update_health(nand);
    }

    #[inline]
    pub(super) fn govern(&mut self, back: &impl Back, now: Nanos) {
        let Some(governor) = self.governor.as_mut().filter(|governor| governor.is_due(now)) else { return };
        let written = back.ftl().stats().host_written_sectors - self.written_before;
        governor.update(now, back.nand().joules(), written * u64::from(self.geometry.sector_bytes));
    }
}

/// Nanoseconds by which each written byte is held back in reduced-write mode.
pub(super) fn reduced_hold(sheet: &Sheet, geometry: &Geometry) -> f64 {
    1e9 / (program_rate(sheet, geometry) * REDUCED_SHARE)
}

/// Bytes a second that can be programmed: by the dies all at once, or over the data path, whichever is less.
fn program_rate(sheet: &Sheet, geometry: &Geometry) -> f64 {
    let times = &sheet.nand.program_us;
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let page = f64::from(geometry.slots_per_page * geometry.sector_bytes);
    let dies = f64::from(geometry.data_dies()) * page / (mean.max(0.001) * 1e-6);
    dies.min(sheet.controller.write_bytes_per_s as f64)
}
