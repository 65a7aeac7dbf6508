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

use crate::policy::{LebView, Shape};
use crate::types::LebId;

/// Deaths that the tally's word is worth.
const PRIOR: f32 = 8.0;
/// Steps of the table over shares of live sectors.
const STEPS: usize = 1024;

#[derive(Clone, Copy, Default)]
struct Placed {
    /// Sum of the logarithms of the hazards.
    logs: f32,
    count: u32,
    /// Lifetime that follows, once it is closed.
    lifetime: f32,
}

/// What is known of the LEBs.
pub(super) struct Victims {
    lebs: Vec<Placed>,
    /// For each share: (1 - u)² / u, and deaths over -ln u: with the age, sectors times time.
    table: Vec<(f32, f32)>,
    unknown: f32,
}

impl Victims {
    pub fn new(shape: &Shape) -> Victims {
        let unknown = shape.sectors as f32;
        let slots = f64::from(shape.slots_per_leb);
        let table = (0..=STEPS).map(|step| {
            let u = (step as f64).clamp(0.5, STEPS as f64 - 0.5) / STEPS as f64;
            (((1.0 - u) * (1.0 - u) / u) as f32, (slots * (1.0 - u) / -u.ln()) as f32)
        });
        let placed = Placed { lifetime: unknown, ..Placed::default() };
        Victims { lebs: vec![placed; shape.lebs as usize], table: table.collect(), unknown }
    }

    pub fn opened(&mut self, leb: LebId) {
        self.lebs[leb as usize] = Placed { lifetime: self.unknown, ..Placed::default() };
    }

    /// A sector that dies at a rate of this logarithm was placed.
    #[inline]
    pub fn placed(&mut self, leb: LebId, log_hazard: f32) {
        let placed = &mut self.lebs[leb as usize];
        placed.logs += log_hazard;
        placed.count += 1;
    }

    pub fn closed(&mut self, leb: LebId) {
        let placed = &mut self.lebs[leb as usize];
        if placed.count > 0 {
            placed.lifetime = (-placed.logs / placed.count as f32).exp();
        }
    }

    #[inline]
    pub fn score(&self, leb: &LebView) -> f64 {
        let dead = (leb.slots - leb.live) as f32;
        let (gain, exposed) = self.table[(leb.live as usize * STEPS / leb.slots as usize).min(STEPS)];
        let lifetime = self.lebs[leb.id as usize].lifetime;
        let waited = (PRIOR * lifetime + exposed * leb.host_age() as f32) / (PRIOR + dead);
        f64::from(gain * waited.min(2.0 * leb.host_age() as f32))
    }

    pub fn memory(&self) -> usize {
        self.lebs.capacity() * size_of::<Placed>() + self.table.capacity() * size_of::<(f32, f32)>()
    }
}
