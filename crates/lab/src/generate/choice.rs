//! Choosing one of a few by weight.

/// Something that is chosen with a weight: a random 32-bit number falls below the first bound that is above it.
#[derive(Clone, Debug)]
pub struct Choice<T> {
    entries: Vec<(u64, T)>,
}

impl<T> Choice<T> {
    /// Of these, by weight. At least one weight is above zero.
    pub fn new(weighted: Vec<(f64, T)>) -> Choice<T> {
        let total: f64 = weighted.iter().map(|(weight, _)| weight).sum();
        let mut sum = 0.0;
        let mut entries: Vec<(u64, T)> = weighted
            .into_iter()
            .filter(|(weight, _)| *weight > 0.0)
            .map(|(weight, value)| {
                sum += weight;
                ((sum / total * 4_294_967_296.0).round() as u64, value)
            })
            .collect();
        // Rounding must not leave a gap at the end.
        if let Some(last) = entries.last_mut() {
            last.0 = 1 << 32;
        }
        Choice { entries }
    }

    /// What a random number chooses.
    #[inline]
    pub fn pick(&self, random: u32) -> &T {
        let random = u64::from(random);
        let mut at = 0;
        while at + 1 < self.entries.len() && random >= self.entries[at].0 {
            at += 1;
        }
        &self.entries[at].1
    }

    /// Everything that can be chosen.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_kept() {
        let choice = Choice::new(vec![(10.0, 'a'), (0.0, 'b'), (30.0, 'c')]);
        assert_eq!(choice.values().collect::<String>(), "ac");
        let share = (0..1000u32).filter(|step| *choice.pick(step * 4_294_967) == 'a').count();
        assert_eq!(share, 251);
        assert_eq!(*choice.pick(u32::MAX), 'c');
        assert_eq!(*choice.pick(0), 'a');
    }
}
