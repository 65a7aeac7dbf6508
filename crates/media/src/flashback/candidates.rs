//! What a slot may have held, from the rest of its stripe: every way to solve for it, tried until one passes the slot's own check.

use std::ops::Range;

use ftl::Slot;

use super::SlotCheck;
use super::numbers::{By, Numbers, Rows, Way};
use super::parity::{Which, make, solve_one, solve_two};

impl Rows<'_> {
    /// Every way to solve for `lane`, the likeliest first: a page that others cannot vouch for is tried after every way that trusts them.
    pub fn ways(&self, lane: usize) -> impl Iterator<Item = Way> {
        let all = self.lanes.len();
        let missing: Vec<usize> = (0..all).filter(|other| *other != lane && self.lanes[*other].is_none()).collect();
        let made_of = move |set: usize| (if set == 0 { all } else { lane + 1 }..=all).rev();
        let cases = |(set, parities): (usize, &[Option<&[u8]>; 2])| {
            let has = parities.map(|parity| parity.is_some());
            made_of(set).map(move |made_of| (set, made_of, has))
        };
        let cases: Vec<_> = self.parities.iter().enumerate().flat_map(cases).collect();
        let alone = cases.clone().into_iter().zip(std::iter::repeat(missing.clone()));
        let alone = alone.filter(|((_, made_of, _), missing)| missing.iter().all(|other| other >= made_of));
        let alone = alone.flat_map(|((set, made_of, [p, q]), _)| {
            let by = [p.then_some(Which::P), q.then_some(Which::Q)].into_iter().flatten();
            by.map(move |which| Way { set, made_of, by: By::One(which) })
        });
        let both = cases.into_iter().filter(|(_, _, has)| *has == [true; 2]);
        let both = both.flat_map(move |(set, made_of, _)| {
            let gone: Vec<usize> = missing.iter().copied().filter(|other| *other < made_of).collect();
            let others = match gone.as_slice() {
                [] => 0..made_of,
                [only] => *only..*only + 1,
                _ => 0..0,
            };
            others.filter(move |other| *other != lane).map(move |other| Way { set, made_of, by: By::Both { other } })
        });
        alone.chain(both)
    }

    /// Solves for some bytes of a lane.
    pub fn solve(&self, lane: usize, way: Way, bytes: Range<usize>) -> Vec<u8> {
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
        let way = self.ways(lane).find(|way| way.set == 0)?;
        let len = self.lanes.iter().chain(self.parities[0].iter()).flatten().next()?.len();
        Some(self.solve(lane, way, 0..len))
    }

    /// Whether the other pages and the parities hold nothing but zeros where slots have their numbers: no number but 0 comes of them.
    /// Most of what a crash leaves open was never written.
    fn is_blank(&self, lane: usize, at: usize) -> bool {
        let others = self.lanes.iter().enumerate().filter(|(other, _)| *other != lane).map(|(_, row)| row);
        others.chain(self.parities.iter().flatten()).flatten().all(|row| row[at..].first_chunk() == Some(&[0; 4]))
    }

    /// Zeros, where a way gives nothing else: what was never written, or filled up, passes no check.
    pub fn blank(&self, lane: usize, slot: &Range<usize>) -> Option<Vec<u8>> {
        let mut ways = self.ways(lane).filter(|way| way.set == 0);
        ways.find_map(|way| {
            Some(self.solve(lane, way, slot.clone())).filter(|bytes| bytes.iter().all(|byte| *byte == 0))
        })
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
        let serves = |bytes: &[u8]| check.seq(bytes, number).filter(|seq| *seq >= min_seq);
        let mut best = self.lanes[lane].and_then(|row| Some((serves(&row[slot.clone()])?, row[slot.clone()].to_vec())));
        let at = slot.start + check.number_at().start;
        if (best.is_some() && !newest) || (number != 0 && self.is_blank(lane, at)) {
            return best.map(|(_, bytes)| bytes);
        }
        let numbers = Numbers::new(self, lane, number, at);
        for way in self.ways(lane) {
            if best.is_some() && !newest {
                break;
            }
            if !numbers.fit(way) {
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
