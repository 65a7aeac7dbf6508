//! Dynamic data clustering (Chiang, Lee, Chang: "Using data clustering to improve cleaning performance for flash memory",
//! Software: Practice and Experience, 1999): regions from cold to hot. A sector that the host writes again goes to the next hotter region, one that the
//! groomer moves to the next colder one. Victims by cost and benefit. It takes a byte a sector.

use super::{Destination, GroomPolicy, LebView, Moved, Shape, Write, cost_benefit};
use words::touch;

/// The policy of dynamic data clustering.
pub struct Dac {
    /// Region of every sector, 0 the coldest.
    regions: Vec<u8>,
    count: u8,
}

impl Dac {
    pub(super) fn new(shape: &Shape) -> Dac {
        Dac { regions: vec![0; shape.sectors as usize], count: shape.streams }
    }

    fn after_write(&self, write: &Write, at: usize) -> u8 {
        let region = self.regions[write.lba as usize + at];
        if write.olds[at].is_some() { (region + 1).min(self.count - 1) } else { region }
    }
}

impl GroomPolicy for Dac {
    fn name(&self) -> &'static str {
        "dac"
    }

    fn reshaped(&mut self, shape: &Shape) {
        self.regions.resize(shape.sectors as usize, 0);
    }

    fn host_streams(&self) -> u8 {
        self.count
    }

    fn streams(&self) -> u8 {
        self.count
    }

    fn learns(&self) -> bool {
        true
    }

    fn place(&mut self, write: &Write) -> u8 {
        self.after_write(write, 0)
    }

    fn wrote(&mut self, write: &Write, _: &mut [u8]) {
        for at in 0..write.olds.len() {
            self.regions[write.lba as usize + at] = self.after_write(write, at);
        }
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        let region = &mut self.regions[moved.lba as usize];
        *region = region.saturating_sub(1);
        Destination::of(*region)
    }

    fn trimmed(&mut self, lba: u64, count: u64) {
        self.regions[lba as usize..(lba + count) as usize].fill(0);
    }

    fn score(&self, leb: &LebView) -> f64 {
        cost_benefit::worth(leb)
    }

    fn preallocate(&mut self) {
        touch(&mut self.regions);
    }

    fn memory(&self) -> usize {
        self.regions.len()
    }
}
