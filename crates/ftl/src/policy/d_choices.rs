//! d-choices: the emptiest of a few LEBs that are drawn at random (Van Houdt, "A mean field model for a class of garbage collection
//! algorithms in flash-based solid state drives", SIGMETRICS 2013). With ten or more it comes near greedy without a look at every LEB.

use super::{Eligible, GroomPolicy, LebView};
use crate::types::LebId;
use random::SplitMix64;

/// LEBs that are drawn.
const CHOICES: u32 = 10;
/// Draws for each of them until one is found that may be groomed.
const DRAWS: u32 = 16;

/// The d-choices policy.
pub struct DChoices {
    /// Of a fixed seed: the layer stays deterministic.
    random: SplitMix64,
}

impl DChoices {
    pub(super) fn new() -> DChoices {
        DChoices { random: SplitMix64::new(CHOICES.into()) }
    }
}

impl GroomPolicy for DChoices {
    fn name(&self) -> &'static str {
        "d-choices"
    }

    fn score(&self, leb: &LebView) -> f64 {
        -f64::from(leb.live)
    }

    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        let mut best: Option<LebView> = None;
        for _ in 0..CHOICES {
            let mut draws = (0..DRAWS).map(|_| self.random.below(eligible.lebs().into()) as LebId);
            let drawn = draws.find_map(|id| eligible.get(id));
            best = drawn.into_iter().chain(best).min_by_key(|leb| leb.live);
        }
        // Hardly anything may be groomed: then all are looked at.
        best.or_else(|| eligible.iter().min_by_key(|leb| leb.live)).map(|leb| leb.id)
    }
}
