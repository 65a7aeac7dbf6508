//! The arithmetic of parity: P is the exclusive or of a stripe's lanes, Q their sum weighted with powers of 2 in GF(2^8).
//!
//! The field is that of RAID 6, with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and the generator 2; the formulas for
//! one and two erased lanes are those of H. Peter Anvin, "The mathematics of RAID-6" (2004). Lane `i` has weight 2^i, so
//! there can be 255 lanes.

/// Lanes that Q can tell apart.
pub const LANES_MAX: u32 = 255;

/// 0x11d without its highest bit, eight times.
const POLYNOMIAL: u64 = 0x1d1d_1d1d_1d1d_1d1d;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Powers of 2, twice over so that a sum of two logarithms needs no reduction; and logarithms.
const TABLES: ([u8; 510], [u8; 256]) = {
    let (mut powers, mut logs) = ([0; 510], [0; 256]);
    let (mut value, mut i) = (1u32, 0);
    while i < 255 {
        powers[i] = value as u8;
        powers[i + 255] = value as u8;
        logs[value as usize] = i as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= 0x11d;
        }
        i += 1;
    }
    (powers, logs)
};

fn power(exponent: u32) -> u8 {
    TABLES.0[(exponent % 255) as usize]
}

fn multiply(a: u8, b: u8) -> u8 {
    match (a, b) {
        (0, _) | (_, 0) => 0,
        _ => TABLES.0[usize::from(TABLES.1[usize::from(a)]) + usize::from(TABLES.1[usize::from(b)])],
    }
}

/// The inverse of a number other than 0.
fn inverse(a: u8) -> u8 {
    TABLES.0[255 - usize::from(TABLES.1[usize::from(a)])]
}

/// `sum ^= lane`.
pub fn add(sum: &mut [u8], lane: &[u8]) {
    debug_assert_eq!(sum.len(), lane.len());
    let (sums, rest) = sum.as_chunks_mut::<8>();
    let (lanes, tail) = lane.as_chunks::<8>();
    for (sum, lane) in sums.iter_mut().zip(lanes) {
        *sum = (u64::from_ne_bytes(*sum) ^ u64::from_ne_bytes(*lane)).to_ne_bytes();
    }
    rest.iter_mut().zip(tail).for_each(|(sum, lane)| *sum ^= lane);
}

/// `sum = 2 * sum ^ lane`: one step of Horner's rule, from the last lane to the first.
fn double_and_add(sum: &mut [u8], lane: &[u8]) {
    let (sums, rest) = sum.as_chunks_mut::<8>();
    let (lanes, tail) = lane.as_chunks::<8>();
    for (sum, lane) in sums.iter_mut().zip(lanes) {
        let value = u64::from_ne_bytes(*sum);
        let high = value & HIGH;
        // All ones in each byte whose highest bit was set.
        let carried = (high << 1).wrapping_sub(high >> 7);
        *sum = (((value & !HIGH) << 1) ^ (carried & POLYNOMIAL) ^ u64::from_ne_bytes(*lane)).to_ne_bytes();
    }
    rest.iter_mut().zip(tail).for_each(|(sum, lane)| *sum = multiply(*sum, 2) ^ lane);
}

fn scale(bytes: &mut [u8], factor: u8) {
    bytes.iter_mut().for_each(|byte| *byte = multiply(*byte, factor));
}

/// Four bytes of a lane with the weight that they have in Q.
pub fn weigh(bytes: u32, lane: u32) -> u32 {
    let weight = power(lane);
    u32::from_le_bytes(bytes.to_le_bytes().map(|byte| multiply(byte, weight)))
}

/// Which parity: the first of a stripe is P, the second Q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The exclusive or.
    P,
    /// The weighted sum.
    Q,
}

impl Which {
    /// The `n`-th parity of a stripe.
    pub fn nth(n: u32) -> Which {
        if n == 0 { Which::P } else { Which::Q }
    }
}

/// Makes a parity of lanes in order; with none it is zero.
pub fn make<'a>(which: Which, sum: &mut [u8], lanes: impl DoubleEndedIterator<Item = &'a [u8]>) {
    sum.fill(0);
    match which {
        Which::P => lanes.for_each(|lane| add(sum, lane)),
        Which::Q => lanes.rev().for_each(|lane| double_and_add(sum, lane)),
    }
}

/// A lane from one parity and all other lanes: `sum` is that parity made of the others (with zeros in the lane's place), and
/// becomes the lane.
pub fn solve_one(which: Which, lane: u32, sum: &mut [u8], parity: &[u8]) {
    add(sum, parity);
    if which == Which::Q {
        scale(sum, inverse(power(lane)));
    }
}

/// Lane `x` where lane `y` is missing as well: `p` and `q` are the parities made of the others (with zeros in both places);
/// `p` becomes the lane.
pub fn solve_two(x: u32, y: u32, p: &mut [u8], q: &mut [u8], parities: [&[u8]; 2]) {
    add(p, parities[0]);
    add(q, parities[1]);
    // D_x + D_y = p and 2^x D_x + 2^y D_y = q, so D_x = (q + 2^y p) / (2^x + 2^y).
    scale(p, power(y));
    add(p, q);
    scale(p, inverse(power(x) ^ power(y)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::SplitMix64;

    fn lanes(count: usize, len: usize) -> Vec<Vec<u8>> {
        let mut rng = SplitMix64::new(count as u64);
        (0..count).map(|_| (0..len).map(|_| rng.bits() as u8).collect()).collect()
    }

    fn made(which: Which, lanes: &[Vec<u8>], zero: &[usize]) -> Vec<u8> {
        let mut sum = vec![0; lanes[0].len()];
        let blank = vec![0; lanes[0].len()];
        let with_zeros = (0..lanes.len()).map(|i| if zero.contains(&i) { &blank[..] } else { &lanes[i][..] });
        make(which, &mut sum, with_zeros);
        sum
    }

    #[test]
    fn numbers_have_inverses_and_2_is_a_generator() {
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a)), 1);
        }
        let mut seen: Vec<u8> = (0..255).map(power).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 255);
        // From the paper's own example of the field: 2 * 0x80 = 0x1d.
        assert_eq!(multiply(2, 0x80), 0x1d);
    }

    /// Any lane comes back from either parity, any two from both; lengths need not be multiples of a word.
    #[test]
    fn erased_lanes_come_back() {
        for count in [1, 2, 3, 8, 24, 255] {
            let lanes = lanes(count, 37);
            let parities = [made(Which::P, &lanes, &[]), made(Which::Q, &lanes, &[])];
            for x in 0..count {
                for (which, parity) in [Which::P, Which::Q].into_iter().zip(&parities) {
                    let mut lane = made(which, &lanes, &[x]);
                    solve_one(which, x as u32, &mut lane, parity);
                    assert_eq!(lane, lanes[x], "{which:?} of {count}");
                }
                for y in (0..count).filter(|y| *y != x) {
                    let (mut p, mut q) = (made(Which::P, &lanes, &[x, y]), made(Which::Q, &lanes, &[x, y]));
                    solve_two(x as u32, y as u32, &mut p, &mut q, [&parities[0], &parities[1]]);
                    assert_eq!(p, lanes[x], "{x} and {y} of {count}");
                }
            }
        }
    }
}
