//! What a slot may have held, from the rest of its stripe: every way to solve for it, tried until one passes the slot's own check.

use std::ops::Range;

use ftl::Slot;

use super::SlotCheck;
use super::parity::{Which, make, solve_one, solve_two};

/// The same bytes of every page of a stripe, where they could be read; `None` for a page that is missing.
pub(super) struct Rows<'a> {
    /// Data lanes.
    pub lanes: Vec<Option<&'a [u8]>>,
    /// Finished parity first, made of all lanes; then what stands in the journal, made of any number of them.
    pub parities: Vec<[Option<&'a [u8]>; 2]>,
}

/// One way to solve for a lane.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Which of [`Rows::parities`].
    set: usize,
    /// It is made of so many lanes.
    made_of: usize,
    by: By,
}

#[derive(Clone, Copy, Debug)]
enum By {
    One(Which),
    /// Both, since another lane is missing or distrusted.
    Both {
        other: usize,
    },
}

impl Rows<'_> {
    /// Every way to solve for `lane`, the likeliest first.
    fn ways(&self, lane: usize) -> Vec<Way> {
        let all = self.lanes.len();
        let mut ways = Vec::new();
        for (set, [p, q]) in self.parities.iter().enumerate() {
            let fewest = if set == 0 { all } else { lane + 1 };
            for made_of in (fewest..=all).rev() {
                let missing: Vec<usize> =
                    (0..made_of).filter(|other| *other != lane && self.lanes[*other].is_none()).collect();
                match (missing.as_slice(), p, q) {
                    ([], ..) => {
                        ways.extend(p.map(|_| Way { set, made_of, by: By::One(Which::P) }));
                        ways.extend(q.map(|_| Way { set, made_of, by: By::One(Which::Q) }));
                        if p.is_some() && q.is_some() {
                            let others = (0..made_of).filter(|other| *other != lane);
                            ways.extend(others.map(|other| Way { set, made_of, by: By::Both { other } }));
                        }
                    }
                    ([other], Some(_), Some(_)) => ways.push(Way { set, made_of, by: By::Both { other: *other } }),
                    _ => {}
                }
            }
        }
        // A page that others cannot vouch for is tried after every way that trusts them.
        ways.sort_by_key(|way| matches!(way.by, By::Both { .. }));
        ways
    }

    /// Solves for some bytes of a lane.
    fn solve(&self, lane: usize, way: Way, bytes: Range<usize>) -> Vec<u8> {
        let blank = vec![0; bytes.len()];
        let part = |row: Option<&'_ [u8]>| row.map(|row| row[bytes.clone()].to_vec()).unwrap_or_default();
        let others = |skip: &[usize]| {
            let lanes = self.lanes[..way.made_of].iter().enumerate();
            let skip = skip.to_vec();
            let range = bytes.clone();
            let blank = &blank;
            lanes.map(move |(i, row)| match row {
                Some(row) if !skip.contains(&i) => &row[range.clone()],
                _ => &blank[..],
            })
        };
        let [p, q] = self.parities[way.set];
        let mut sum = blank.clone();
        match way.by {
            By::One(which) => {
                make(which, &mut sum, others(&[lane]));
                solve_one(which, lane as u32, &mut sum, &part(if which == Which::P { p } else { q }));
            }
            By::Both { other } => {
                let mut weighted = blank.clone();
                make(Which::P, &mut sum, others(&[lane, other]));
                make(Which::Q, &mut weighted, others(&[lane, other]));
                solve_two(lane as u32, other as u32, &mut sum, &mut weighted, [&part(p), &part(q)]);
            }
        }
        sum
    }

    /// The whole of a lane from finished parity, if what is missing can be made up for.
    pub fn lane(&self, lane: usize) -> Option<Vec<u8>> {
        let way = self.ways(lane).into_iter().find(|way| way.set == 0)?;
        let len = self.lanes.iter().chain(self.parities[0].iter()).flatten().next()?.len();
        Some(self.solve(lane, way, 0..len))
    }

    /// The newest content of a slot that passes its check and is not older than `min_seq`; what stands there itself counts too.
    /// `slot` says which bytes of the rows it takes. With `newest` every way is tried, otherwise the first that serves is taken.
    pub fn slot(
        &self,
        check: &dyn SlotCheck,
        (lane, slot, number): (usize, Range<usize>, Slot),
        min_seq: u64,
        newest: bool,
    ) -> Option<Vec<u8>> {
        let serves = |bytes: &[u8]| check.seq(bytes, number).filter(|seq| *seq >= min_seq || ftl::mutant!(StaleSolved));
        let mut best = self.lanes[lane].and_then(|row| Some((serves(&row[slot.clone()])?, row[slot.clone()].to_vec())));
        let at = check.number_at();
        let number_at = slot.start + at.start..slot.start + at.end;
        for way in self.ways(lane) {
            if best.is_some() && !newest {
                break;
            }
            if self.solve(lane, way, number_at.clone()) != number.to_le_bytes() {
                continue;
            }
            let bytes = self.solve(lane, way, slot.clone());
            if let Some(seq) = serves(&bytes)
                && best.as_ref().is_none_or(|(found, _)| seq > *found)
            {
                best = Some((seq, bytes));
            }
        }
        best.map(|(_, bytes)| bytes)
    }
}
