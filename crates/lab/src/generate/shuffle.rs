//! A permutation of many numbers that needs no memory: a Feistel network over the smallest square of a power of two that holds them,
//! followed until it falls among them.

/// Rounds after which no order is left to be seen.
const ROUNDS: u64 = 6;

/// Where the `at`-th of `count` numbers comes in the permutation of a key.
pub fn shuffled(at: u64, count: u64, key: u64) -> u64 {
    let half = (u64::BITS - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1 << half) - 1;
    let mut number = at;
    loop {
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (mixed(right ^ key.wrapping_add(round << 56)) & mask));
        }
        number = left << half | right;
        if number < count {
            return number;
        }
    }
}

/// The finaliser of splitmix64.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for count in [1, 2, 3, 4, 5, 16, 17, 1000, 65_536, 65_537] {
            let mut seen: Vec<u64> = (0..count).map(|at| shuffled(at, count, 7)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn nothing_of_the_order_is_left() {
        let count = 10_000;
        let places: Vec<u64> = (0..count).map(|at| shuffled(at, count, 3)).collect();
        let distance = |pair: &[u64]| pair[0].abs_diff(pair[1]) as f64;
        // Two random places are a third of the whole apart.
        let mean = places.windows(2).map(distance).sum::<f64>() / (count - 1) as f64;
        assert!((mean / count as f64 - 1.0 / 3.0).abs() < 0.01, "{mean}");
        let same = (0..count).filter(|at| shuffled(*at, count, 4) == places[*at as usize]).count();
        assert!(same < 10, "{same} stand where another key puts them");
    }
}
