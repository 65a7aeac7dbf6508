//! Where an array holds nothing, which clients ask for: they copy, back up and check only what is there.
//!
//! The members know, but have threads of their own, and a client's question is answered at once. So the array asks them beforehand, while
//! nothing else is to do, and keeps a map in pieces. Of a piece that it has not asked about yet it says that it holds data, which is
//! always right.

use std::ops::Range;

use device::{BatchOp, Extent, Io};

use crate::array::{Array, Job, Life};
use crate::command::{Answer, Outcome, What};
use crate::geometry::{Level, Piece};

/// Pieces at most: a byte of memory for each.
const PIECES_MAX: u64 = 1 << 16;
/// The smallest piece, sectors, as a power of two.
const LEAST_SHIFT: u32 = 4;

/// What is known of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Data,
    Hole,
}

/// The map.
#[derive(Debug)]
pub(crate) struct Holes {
    shift: u32,
    pieces: Vec<Known>,
    /// Pieces of which nothing is known.
    unknown: usize,
    /// No piece before it is to be asked about.
    next: usize,
    /// The question that is under way, by its job.
    asked: Option<(u64, usize)>,
}

impl Holes {
    pub fn new(sectors: u64) -> Holes {
        let shift = sectors.div_ceil(PIECES_MAX).next_power_of_two().ilog2().max(LEAST_SHIFT);
        let unknown = sectors.div_ceil(1 << shift) as usize;
        Holes { shift, pieces: vec![Known::Nothing; unknown], unknown, next: 0, asked: None }
    }

    /// Forgets everything: other members may answer now.
    pub fn forget(&mut self) {
        self.pieces.fill(Known::Nothing);
        (self.unknown, self.next, self.asked) = (self.pieces.len(), 0, None);
    }

    fn of(&self, sectors: &Range<u64>) -> Range<usize> {
        (sectors.start >> self.shift) as usize..sectors.end.div_ceil(1 << self.shift) as usize
    }

    fn set(&mut self, piece: usize, known: Known) {
        let before = std::mem::replace(&mut self.pieces[piece], known);
        self.unknown += usize::from(known == Known::Nothing);
        self.unknown -= usize::from(before == Known::Nothing);
    }

    /// The pieces of sectors that change. A question about one of them may be answered as it was before.
    fn changed(&mut self, sectors: &Range<u64>) -> Range<usize> {
        let pieces = self.of(sectors);
        if self.asked.is_some_and(|(_, piece)| pieces.contains(&piece)) {
            self.asked = None;
        }
        pieces
    }

    fn written(&mut self, sectors: &Range<u64>) {
        for piece in self.changed(sectors) {
            self.set(piece, Known::Data);
        }
    }

    fn trimmed(&mut self, sectors: &Range<u64>) {
        let pieces = self.changed(sectors);
        self.next = self.next.min(pieces.start);
        for piece in pieces {
            if self.pieces[piece] == Known::Data {
                self.set(piece, Known::Nothing);
            }
        }
    }

    /// The first piece to be asked about.
    fn wanted(&self) -> Option<usize> {
        let left = self.pieces.get(self.next..)?;
        left.iter().position(|known| *known == Known::Nothing).map(|at| self.next + at)
    }

    fn sectors(&self, piece: usize, all: u64) -> Range<u64> {
        let start = (piece as u64) << self.shift;
        start..all.min(start + (1 << self.shift))
    }

    /// How far the sectors from `lba` on, `max` at most, all hold data as far as is known, or all hold none.
    fn extent(&self, lba: u64, max: u64) -> Extent {
        let hole = |piece: &Known| *piece == Known::Hole;
        let (first, end) = ((lba >> self.shift) as usize, lba.saturating_add(max));
        let Some(is_hole) = self.pieces.get(first).map(hole) else { return Extent { count: max, mapped: true } };
        let same = self.pieces[first..].iter().take_while(|piece| hole(piece) == is_hole).count();
        let until = end.min(((first + same) as u64) << self.shift);
        Extent { count: until - lba, mapped: !is_hole }
    }
}

impl Array {
    /// How far the sectors from `lba` on, `max` at most, all hold data, or all hold none. What is not known yet counts as data.
    pub fn extent(&self, lba: u64, max: u64) -> Extent {
        match self.life {
            Life::Active => self.holes.extent(lba, max),
            _ => Extent { count: max, mapped: true },
        }
    }

    /// A change is on its way to the members.
    pub(crate) fn note_holes(&mut self, io: &Io) {
        match io {
            Io::Write { .. } | Io::WriteZeroes { allocate: true, .. } => {
                self.ranges(io).iter().for_each(|range| self.holes.written(range));
            }
            // A piece of which one part is trimmed and another written holds data, in whichever order they stand.
            Io::Batch { ops, .. } => {
                let is_write = |op: &&BatchOp| matches!(op, BatchOp::Write { .. });
                ops.iter().filter(|op| !is_write(op)).for_each(|op| self.holes.trimmed(&op.sectors()));
                ops.iter().filter(is_write).for_each(|op| self.holes.written(&op.sectors()));
            }
            _ => self.ranges(io).iter().for_each(|range| self.holes.trimmed(range)),
        }
    }

    /// Whether there is a piece to ask about, and no question under way.
    pub(crate) fn has_question(&self) -> bool {
        self.holes.asked.is_none() && self.holes.unknown > 0
    }

    /// Asks the members about the next piece, if they are not being asked.
    pub(crate) fn ask_for_holes(&mut self) {
        // Of a batch on its way a member may know nothing yet.
        if self.holes.asked.is_some() || self.is_frozen() || self.half_asked > 0 {
            return;
        }
        let Some(piece) = self.holes.wanted() else { return };
        self.holes.next = piece;
        let sectors = self.holes.sectors(piece, self.sectors());
        let mut runs = self.shape.runs(sectors.start, sectors.end - sectors.start);
        if self.shape.level == Level::Raid1 {
            // The copy that counts.
            let Some(member) = self.primary() else { return };
            runs.retain(|run| run.member == member);
        }
        let job = self.job(Job::Holes { left: runs.len(), empty: true });
        self.holes.asked = Some((job, piece));
        for run in runs {
            self.send(job, run, What::Extent { lba: run.lba, max: run.count });
        }
    }

    /// A member has said what it holds of a piece.
    pub(crate) fn hole_part(&mut self, job: u64, run: Piece, outcome: &Outcome) {
        let Some(Job::Holes { left, empty }) = self.jobs.get_mut(&job) else { return };
        *empty &= matches!(outcome, Ok(Answer::Extent(extent)) if !extent.mapped && extent.count >= run.count);
        *left -= 1;
        if *left > 0 {
            return;
        }
        let known = if *empty { Known::Hole } else { Known::Data };
        self.jobs.remove(&job);
        // Something may have been written meanwhile.
        if let Some((_, piece)) = self.holes.asked.take_if(|(asked, _)| *asked == job) {
            self.holes.set(piece, known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_pieces_are_told_as_one() {
        let mut holes = Holes::new(100);
        assert_eq!(holes.extent(0, 100), Extent { count: 100, mapped: true });
        (0..7).for_each(|piece| holes.set(piece, Known::Hole));
        assert_eq!((holes.unknown, holes.wanted()), (0, None));
        assert_eq!(holes.extent(3, 90), Extent { count: 90, mapped: false });
        holes.written(&(20..21));
        assert_eq!(holes.extent(3, 97), Extent { count: 13, mapped: false });
        assert_eq!(holes.extent(16, 84), Extent { count: 16, mapped: true });
        assert_eq!(holes.extent(99, 1), Extent { count: 1, mapped: false });
        // A part of a piece may be all that it held.
        holes.trimmed(&(20..21));
        assert_eq!((holes.unknown, holes.wanted()), (1, Some(1)));
        // What is asked about it is of no use once it changes.
        for change in [Holes::trimmed, Holes::written] {
            holes.asked = Some((1, 1));
            change(&mut holes, &(0..16));
            assert_eq!(holes.asked, Some((1, 1)));
            change(&mut holes, &(31..32));
            assert_eq!(holes.asked, None);
        }
        assert_eq!(Holes::new(1 << 32).pieces.len(), 1 << 16);
    }
}
