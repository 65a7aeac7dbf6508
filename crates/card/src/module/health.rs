//! How a module does, and by how much its writes are held back for it.

use ftl::Geometry;
use profile::Module as Sheet;

use super::Module;
use crate::device::Nanos;
use crate::governor::Governor;
use crate::report::Health;

/// In reduced-write mode, so much of the rate at which the flash can be programmed is left for host writes. The original's figure is
/// not published.
const REDUCED_SHARE: f64 = 0.1;
/// At this much reserve the one-time warning is due, per cent.
const WARNING_PERCENT: f64 = 10.0;

impl Module {
    /// Nanoseconds by which each written byte is held back.
    pub(super) fn hold(&self) -> f64 {
        hold(self.governor.as_ref(), self.health, self.reduced_hold)
    }

    pub(super) fn update_health(&mut self) {
        let wear = self.flash.medium.nand.wear();
        let geometry = &self.layout.geometry;
        let left = geometry.blocks - wear.retired_lebs();
        let needed = self.layout.sectors.div_ceil(u64::from(geometry.slots_per_leb() - 1)) as u32;
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

    #[inline]
    pub(super) fn govern(&mut self, now: Nanos) {
        let Some(governor) = self.governor.as_mut().filter(|governor| governor.is_due(now)) else { return };
        let written = self.flash.ftl.stats().host_written_sectors * u64::from(self.layout.geometry.sector_bytes);
        governor.update(now, self.flash.medium.nand.joules(), written);
    }
}

/// Nanoseconds by which each written byte is held back: by power and heat, and once the reserve is used up by at least `reduced_hold`.
pub fn hold(governor: Option<&Governor>, health: Health, reduced_hold: f64) -> f64 {
    let governed = governor.map_or(0.0, Governor::hold);
    if health == Health::ReducedWrite { governed.max(reduced_hold) } else { governed }
}

/// Nanoseconds by which each written byte is held back in reduced-write mode.
pub fn reduced_hold(sheet: &Sheet, geometry: &Geometry) -> f64 {
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
