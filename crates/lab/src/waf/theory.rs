//! What theory says of uniform traffic under greedy.

/// Write amplification of uniform writes under greedy with `block` slots to a LEB and so many slots in use for each sector. P. Desnoyers,
/// "Analytic Models of SSD Write Performance" (ACM TOS 2014, section 4): the victim holds v live slots where slots a sector = (b / (b - v)) Σ 1/i for
/// i from v + 1 to b, and amplification is b / (b - v).
pub fn uniform_greedy(slots_a_sector: f64, block: u32) -> f64 {
    let b = f64::from(block);
    let (mut sum, mut above) = (0.0, 1.0);
    for live in (0..block).rev() {
        sum += 1.0 / f64::from(live + 1);
        let here = b / (b - f64::from(live)) * sum;
        if here >= slots_a_sector {
            let share = (here - slots_a_sector) / (here - above);
            return b / (b - (f64::from(live) + share));
        }
        above = here;
    }
    1.0
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_as_published() {
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let at = [0.07, 0.15, 0.28].map(|over| rounded(super::uniform_greedy(1.0 + over, 256)));
        assert_eq!(at, [7.60, 3.96, 2.46]);
    }
}
