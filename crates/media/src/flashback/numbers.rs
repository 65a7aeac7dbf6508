//! Which ways to solve for a slot can be right, told by its number alone.
//!
//! There are many ways, above all after a crash, and nearly all of them give nonsense. A slot says in four bytes which it is. With the sums of
//! the other lanes' same four bytes at hand it takes a few operations to see that a way does not give that number, and nothing is solved for.

use super::parity::{Which, weigh};

/// The same bytes of every page of a stripe, where they could be read; `None` for a page that is missing.
pub(super) struct Rows<'a> {
    /// Data lanes.
    pub lanes: Vec<Option<&'a [u8]>>,
    /// Finished parity first, made of all lanes; then what stands in the journal, made of any number of them.
    pub parities: Vec<[Option<&'a [u8]>; 2]>,
}

/// One way to solve for a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Which of [`Rows::parities`].
    pub set: usize,
    /// It is made of so many lanes.
    pub made_of: usize,
    pub by: By,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    One(Which),
    /// Both, since another lane is missing or distrusted.
    Both {
        other: usize,
    },
}

/// The four bytes at one place of every page of a stripe.
pub(super) struct Numbers {
    /// What must come out, and the same with its lane's weight.
    number: [u32; 2],
    /// Of each lane; 0 for what is missing, and for the one that is solved for.
    lanes: Vec<u32>,
    /// P and Q of the first so many lanes.
    sums: Vec<[u32; 2]>,
    parities: Vec<[u32; 2]>,
}

impl Numbers {
    /// For the slot `number`, which says so at byte `at` of the rows, in a lane.
    pub fn new(rows: &Rows<'_>, lane: usize, number: u32, at: usize) -> Numbers {
        let read = |row: &[u8]| row[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let value = |(i, row): (usize, &Option<&[u8]>)| row.filter(|_| i != lane).map_or(0, read);
        let lanes: Vec<u32> = rows.lanes.iter().enumerate().map(value).collect();
        let mut sums = vec![[0; 2]];
        let (mut p, mut q) = (0, 0);
        for (i, value) in (0..).zip(&lanes) {
            (p, q) = (p ^ value, q ^ weigh(*value, i));
            sums.push([p, q]);
        }
        let parities = rows.parities.iter().map(|set| set.map(|row| row.map_or(0, read))).collect();
        Numbers { number: [number, weigh(number, lane as u32)], lanes, sums, parities }
    }

    /// Whether a way gives the number.
    pub fn fit(&self, way: Way) -> bool {
        let [number, weighted] = self.number;
        let [p, q] = self.parities[way.set];
        let [p, q] = [p ^ self.sums[way.made_of][0], q ^ self.sums[way.made_of][1]];
        match way.by {
            By::One(Which::P) => p == number,
            By::One(Which::Q) => q == weighted,
            By::Both { other } => {
                // What the other lane must hold by P, it must hold by Q too.
                let there = self.lanes[other];
                let missing = p ^ there ^ number;
                q ^ weigh(there, other as u32) ^ weighted == weigh(missing, other as u32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flashback::parity::make;
    use random::SplitMix64;

    /// For every way, what is told from the sums is what solving gives: with lanes missing and wrong, and with parity of fewer lanes.
    #[test]
    fn it_is_what_solving_would_give() {
        let mut random = SplitMix64::new(5);
        let mut hits = 0;
        for _ in 0..400 {
            let count = 1 + random.below(6) as usize;
            let mut lanes: Vec<[u8; 8]> = (0..count).map(|_| random.bits().to_le_bytes()).collect();
            let parity_of = |lanes: &[[u8; 8]]| {
                [Which::P, Which::Q].map(|which| {
                    let mut sum = [0; 8];
                    make(which, &mut sum, lanes.iter().map(|lane| &lane[..]));
                    sum
                })
            };
            let sets = [parity_of(&lanes), parity_of(&lanes[..1 + random.below(count as u64) as usize])];
            let lane = random.below(count as u64) as usize;
            let number = u32::from_le_bytes(lanes[lane][2..6].try_into().expect("four bytes"));
            // One that is wrong, and some that are missing.
            lanes[random.below(count as u64) as usize] = random.bits().to_le_bytes();
            let rows = Rows {
                lanes: lanes.iter().map(|lane| (!random.one_in(5)).then_some(&lane[..])).collect(),
                parities: sets
                    .iter()
                    .map(|set| set.each_ref().map(|row| (!random.one_in(5)).then_some(&row[..])))
                    .collect(),
            };
            let numbers = Numbers::new(&rows, lane, number, 2);
            for way in rows.ways(lane) {
                let solved = rows.solve(lane, way, 2..6) == number.to_le_bytes();
                assert_eq!(numbers.fit(way), solved, "{way:?} of lane {lane} of {count}");
                hits += u32::from(solved);
            }
        }
        assert!(hits > 100, "{hits} ways were right");
    }
}
