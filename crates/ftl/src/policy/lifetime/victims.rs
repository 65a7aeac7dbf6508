//! Which LEB to groom: the one that gains least by waiting.
//!
//! Grooming a LEB whose share u is live costs u / (1 - u) moves for each slot gained. That falls while it waits, the faster the sooner its sectors die; the one to
//! take is where it falls slowest (Lomet and Luo, "Efficiently Reclaiming Space in a Log Structured Store", ICDE 2021, there for estimated rates of
//! update): where (1 - u)² / (u h) is greatest, h the rate at which its live sectors die. On uniform traffic h is the same for all, and this is greedy.
//!
//! Where sectors die all at once, as those of a log or of a file that is written anew, a LEB that has lost nothing yet says nothing: 1 / h counts as no more
//! than twice the LEB's age, so that young ones wait.
//!
//! h is what the tally said of the sectors placed there, corrected by how many of them did die since: as if [`PRIOR`] deaths had been seen at the rate said.

use crate::leb::DATA_STREAMS;
use crate::policy::{LebView, Shape};
use crate::types::LebId;

/// Deaths that the tally's word is worth.
const PRIOR: f32 = 8.0;
/// The most steps of the table over shares of live sectors.
const STEPS: u32 = 1024;

/// What was placed in an open LEB.
#[derive(Clone, Copy, Default)]
struct Placed {
    /// Sum of the logarithms of the hazards.
    logs: f32,
    count: u32,
}

/// What is known of the LEBs.
pub(super) struct Victims {
    /// The lifetime of what was placed in each, once it is closed.
    lifetimes: Vec<f32>,
    /// By stream.
    open: [Placed; DATA_STREAMS as usize],
    /// For each share: (1 - u)² / u, and deaths over -ln u: with the age, sectors times time.
    table: Vec<(f32, f32)>,
    unknown: f32,
}

impl Victims {
    pub fn new(shape: &Shape) -> Victims {
        let unknown = shape.sectors as f32;
        let slots = f64::from(shape.slots_per_leb);
        let steps = STEPS.min(shape.slots_per_leb);
        let table = (0..=steps).map(|step| {
            let u = f64::from(step).clamp(0.5, f64::from(steps) - 0.5) / f64::from(steps);
            (((1.0 - u) * (1.0 - u) / u) as f32, (slots * (1.0 - u) / -u.ln()) as f32)
        });
        let lifetimes = vec![unknown; shape.lebs as usize];
        Victims { lifetimes, open: Default::default(), table: table.collect(), unknown }
    }

    pub fn opened(&mut self, leb: LebId, stream: u8) {
        self.lifetimes[leb as usize] = self.unknown;
        self.open[usize::from(stream)] = Placed::default();
    }

    /// A sector that dies at a rate of this logarithm was placed in the LEB that the stream has open.
    #[inline]
    pub fn placed(&mut self, stream: u8, log_hazard: f32) {
        let placed = &mut self.open[usize::from(stream)];
        placed.logs += log_hazard;
        placed.count += 1;
    }

    pub fn closed(&mut self, leb: LebId, stream: u8) {
        let placed = std::mem::take(&mut self.open[usize::from(stream)]);
        if placed.count > 0 {
            self.lifetimes[leb as usize] = (-placed.logs / placed.count as f32).exp();
        }
    }

    #[inline]
    pub fn score(&self, leb: &LebView) -> f64 {
        let dead = (leb.slots - leb.live) as f32;
        let steps = self.table.len() - 1;
        let (gain, exposed) = self.table[(leb.live as usize * steps / leb.slots as usize).min(steps)];
        let lifetime = self.lifetimes[leb.id as usize];
        let waited = (PRIOR * lifetime + exposed * leb.host_age() as f32) / (PRIOR + dead);
        f64::from(gain * waited.min(2.0 * leb.host_age() as f32))
    }

    pub fn memory(&self) -> usize {
        self.lifetimes.capacity() * size_of::<f32>() + self.table.capacity() * size_of::<(f32, f32)>()
    }
}
