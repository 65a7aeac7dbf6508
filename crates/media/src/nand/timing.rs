//! How long things take: a data sheet's figures as whole nanoseconds.

use profile::{Controller, Nand as Sheet};

use super::Nanos;

/// Times and rates of one module.
#[derive(Clone, Debug)]
pub struct Timing {
    /// From cells to the register.
    pub read: Nanos,
    /// From the register to cells, by kind of page in turn.
    pub program: Vec<Nanos>,
    /// Erase of one block on all planes.
    pub erase: Nanos,
    /// How far each of them varies up and down, in 1/65,536 of the time.
    pub variation: u64,
    /// One channel from a register.
    pub channel_read: Rate,
    /// One channel to a register.
    pub channel_write: Rate,
    /// The shared data path from the channels.
    pub path_read: Rate,
    /// The shared data path to the channels.
    pub path_write: Rate,
    /// What every host read takes of the data path on top.
    pub read_request: Nanos,
    /// How programs and erases let host reads pass, where they do.
    pub suspend: Option<Suspend>,
}

/// How a die suspends what it is at.
#[derive(Clone, Copy, Debug)]
pub struct Suspend {
    /// From asking to the die's being free.
    pub after: Nanos,
    /// What was begun or resumed goes on for so long at least.
    pub least_run: Nanos,
}

/// A rate, kept as picoseconds a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(u64);

impl Rate {
    /// So many bytes a second; at least 1 kB/s.
    pub fn bytes_per_s(bytes: u64) -> Rate {
        Rate(1_000_000_000_000 / bytes.clamp(1_000, 1_000_000_000_000))
    }

    /// How long `bytes` take.
    #[inline]
    pub fn of(self, bytes: u32) -> Nanos {
        self.0 * u64::from(bytes) / 1000
    }
}

/// Microseconds of a data sheet as whole nanoseconds; what is negative or no number counts as nothing.
pub fn micros(us: f64) -> Nanos {
    (us.max(0.0) * 1000.0).round() as Nanos
}

impl Timing {
    /// The times of a data sheet.
    pub fn new(nand: &Sheet, controller: &Controller) -> Timing {
        Timing {
            read: micros(nand.read_us),
            program: nand.program_us.iter().copied().map(micros).collect(),
            erase: micros(nand.erase_us),
            variation: (nand.variation_percent.clamp(0.0, 100.0) * 655.36) as u64,
            channel_read: Rate::bytes_per_s(nand.channel_read_bytes_per_s),
            channel_write: Rate::bytes_per_s(nand.channel_write_bytes_per_s),
            path_read: Rate::bytes_per_s(controller.read_bytes_per_s),
            path_write: Rate::bytes_per_s(controller.write_bytes_per_s),
            read_request: micros(controller.read_request_us),
            suspend: nand
                .suspend
                .as_ref()
                .map(|suspend| Suspend { after: micros(suspend.after_us), least_run: micros(suspend.least_run_us) }),
        }
    }

    /// Program of a page into dense cells.
    #[inline]
    pub fn program_of(&self, page: u32) -> Nanos {
        self.program[page as usize % self.program.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_give_times() {
        assert_eq!(Rate::bytes_per_s(1_000_000_000).of(4096), 4096);
        assert_eq!(Rate::bytes_per_s(40_000_000).of(8192), 204_800);
        assert_eq!(micros(1.5), 1500);
        assert_eq!((micros(-1.0), micros(f64::NAN)), (0, 0));
    }
}
