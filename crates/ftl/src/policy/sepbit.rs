//! SepBIT (Wang, Gao, Lee, Shi, Tang: "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in
//! Log-Structured Storage", FAST 2022): what overwrites a short-lived sector is short-lived itself (class 1, otherwise 2); what the groomer
//! moves goes by where it comes from and its age (classes 3 to 6). Short is what is shorter than LEBs of class 1 live in the mean. Victims by cost and
//! benefit. As published it keeps the time of each sector's last write: here four bytes a sector, in units of sixteen sectors written.

use super::{Destination, GroomPolicy, LebView, Moved, Shape, Write, cost_benefit};
use words::touch;

/// LEBs of class 1 whose lifespans are averaged.
const LIFESPANS: u32 = 16;

/// The SepBIT policy.
pub struct SepBit {
    /// When each sector was written last, in [`UNIT`]s and one more; 0 never.
    written: Vec<u32>,
    streams: u8,
    /// Mean lifespan of the LEBs of class 1 that were groomed last.
    short: u64,
    lifespans: u64,
    counted: u32,
}

/// Sectors written for each step of the clock.
const UNIT: u64 = 16;

impl SepBit {
    pub(super) fn new(shape: &Shape) -> SepBit {
        SepBit {
            written: vec![0; shape.sectors as usize],
            streams: shape.streams,
            short: u64::MAX,
            lifespans: 0,
            counted: 0,
        }
    }

    /// How long ago the host wrote it.
    fn age(&self, lba: u64, now: u64) -> Option<u64> {
        let written = self.written[lba as usize].checked_sub(1)?;
        Some(u64::from(((now / UNIT) as u32).wrapping_sub(written)) * UNIT)
    }
}

impl GroomPolicy for SepBit {
    fn name(&self) -> &'static str {
        "sepbit"
    }

    fn reshaped(&mut self, shape: &Shape) {
        self.written.resize(shape.sectors as usize, 0);
    }

    fn host_streams(&self) -> u8 {
        2.min(self.streams - 1)
    }

    fn streams(&self) -> u8 {
        self.streams
    }

    fn learns(&self) -> bool {
        true
    }

    fn place(&mut self, write: &Write) -> u8 {
        let lifespan = write.olds[0].and_then(|_| self.age(write.lba, write.now));
        let class = u8::from(lifespan.is_none_or(|lifespan| lifespan >= self.short));
        class.min(self.host_streams() - 1)
    }

    fn wrote(&mut self, write: &Write, _: &mut [u8]) {
        let first = write.lba as usize;
        self.written[first..first + write.olds.len()].fill(((write.now / UNIT) as u32).wrapping_add(1));
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        let age = self.age(moved.lba, moved.now).unwrap_or(u64::MAX);
        let class = if moved.stream == 0 && self.host_streams() > 1 {
            2
        } else if age / 4 < self.short {
            3
        } else if age / 16 < self.short {
            4
        } else {
            5
        };
        Destination::of(class.min(self.streams - 1))
    }

    fn trimmed(&mut self, lba: u64, count: u64) {
        self.written[lba as usize..(lba + count) as usize].fill(0);
    }

    fn took(&mut self, victim: &LebView) {
        if victim.data_stream() != 0 {
            return;
        }
        self.lifespans += victim.now - victim.times.opened;
        self.counted += 1;
        if self.counted == LIFESPANS {
            self.short = self.lifespans / u64::from(LIFESPANS);
            (self.lifespans, self.counted) = (0, 0);
        }
    }

    fn score(&self, leb: &LebView) -> f64 {
        cost_benefit::worth(leb)
    }

    fn preallocate(&mut self) {
        touch(&mut self.written);
    }

    fn memory(&self) -> usize {
        self.written.len() * size_of::<u32>()
    }
}
