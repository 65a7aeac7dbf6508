//! What composites' hosts ask, drawn from a seed.

use random::SplitMix64;

/// One of several, as likely as its weight.
pub(crate) fn pick(random: &mut SplitMix64, weights: &[u64]) -> usize {
    let mut at = random.below(weights.iter().sum());
    let here = |weight: &u64| {
        let here = at < *weight;
        at = at.saturating_sub(*weight);
        here
    };
    weights.iter().position(here).expect("below the total")
}

/// First sector and count of a request: up to `most` sectors, of the `span` sectors from `first` on.
pub(crate) fn range(random: &mut SplitMix64, (first, span): (u64, u64), most: u64) -> (u64, u64) {
    let count = if random.one_in(3) { 1 } else { 1 + random.below(most) };
    let count = count.min(span);
    (first + random.below(span - count + 1), count)
}
