//! How long an emulated drive takes for what is done to its zones.
//!
//! A finish programs what is left of the zone: its time follows from the chips and needs no figure of its own. A reset forgets where the
//! zone's data lie, the more of them the longer; the flash is erased when it is written again.

use ftl::{Geometry, ZoneAction};
use media::nand::{Nanos, micros};
use profile::{Nand, Zones};

const GIB: f64 = (1u64 << 30) as f64;

/// Times of one sheet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneTimes {
    reset: Nanos,
    /// Nanoseconds a sector.
    reset_sector: f64,
    /// Nanoseconds in which all dies together program a sector.
    program_sector: f64,
}

impl ZoneTimes {
    pub fn new(zones: &Zones, nand: &Nand, geometry: &Geometry) -> ZoneTimes {
        let page_us = nand.program_us.iter().sum::<f64>() / nand.program_us.len().max(1) as f64;
        let stripe_sectors = f64::from(geometry.slots_per_page * geometry.dies);
        ZoneTimes {
            reset: micros(zones.reset_us),
            reset_sector: zones.reset_us_per_gib * 1e3 * f64::from(geometry.sector_bytes) / GIB,
            program_sector: page_us * 1e3 / stripe_sectors,
        }
    }

    /// Of an action on a zone with so many sectors of its capacity written.
    pub fn of(&self, action: ZoneAction, written: u64, capacity: u64) -> Nanos {
        match action {
            ZoneAction::Reset => self.reset + (self.reset_sector * written as f64) as Nanos,
            // One that is empty is full by saying so.
            ZoneAction::Finish if written > 0 => (self.program_sector * (capacity - written) as f64) as Nanos,
            ZoneAction::Open | ZoneAction::Close | ZoneAction::Finish => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds of NVMeBenchmarks, by the share of the capacity that was written. Given to the sheet: the reset of a zone with one page, and
    /// of a full one.
    #[test]
    fn a_zn540_takes_the_published_times() {
        let profile = profile::find("wd-zn540-1tb").expect("a sheet");
        let module = &profile.flash().expect("a drive").module;
        let geometry = card::shape(module, 4096, 1).expect("it fits").geometry;
        let times = ZoneTimes::new(module.zones.as_ref().expect("zones"), &module.nand, &geometry);
        let capacity = u64::from(geometry.slots_per_leb() - 1);
        let close = |action, share: f64, published_ms: f64, percent: f64| {
            let written = ((capacity as f64 * share) as u64).max(1);
            let ms = times.of(action, written, capacity) as f64 / 1e6;
            let off = 100.0 * (ms / published_ms - 1.0);
            assert!(off.abs() < percent, "{action:?} at {share}: {ms:.2} ms, published {published_ms}, {off:.1} %");
        };
        close(ZoneAction::Reset, 1.0, 16.2, 1.0);
        // Finished before.
        for (share, ms) in [(1.0, 15.4), (0.5, 8.5), (0.25, 5.1), (0.125, 3.36), (0.0625, 2.5), (0.0, 1.67)] {
            close(ZoneAction::Reset, share, ms, 7.0);
        }
        for (share, ms) in [(0.0, 907.0), (0.0625, 848.0), (0.125, 793.0), (0.25, 681.0), (0.5, 457.0)] {
            close(ZoneAction::Finish, share, ms, 9.0);
        }
        assert_eq!(times.of(ZoneAction::Finish, 0, capacity), 0);
    }
}
