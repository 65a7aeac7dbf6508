//! The data path between the channels and the host's side of the controller: one transfer at a time.
//!
//! Host reads and everything else wait in two lines that are served in turn while both have somebody, so that neither a
//! burst of reads nor the groomer keeps the other waiting for long.

use std::collections::VecDeque;

use super::Nanos;

/// Which line a transfer waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Host reads.
    Reads = 0,
    /// Programs and groom reads.
    Rest = 1,
}

/// The data path.
#[derive(Debug, Default)]
pub struct Path {
    /// When the transfer under way ends.
    pub free_at: Nanos,
    /// Time that it was taken, added up.
    pub busy: Nanos,
    lines: [VecDeque<u32>; 2],
    /// Transfers in both lines.
    waiting: u32,
    turn: usize,
}

impl Path {
    /// Whether a transfer can start now without passing anybody.
    #[inline]
    pub fn is_free(&self, now: Nanos) -> bool {
        self.free_at <= now && self.waiting == 0
    }

    /// When the next one in line can start; never where nobody waits.
    #[inline]
    pub fn next_start(&self) -> Nanos {
        if self.waiting > 0 { self.free_at } else { Nanos::MAX }
    }

    /// Puts a transfer in line.
    #[inline]
    pub fn queue(&mut self, line: Line, op: u32) {
        self.lines[line as usize].push_back(op);
        self.waiting += 1;
    }

    /// Who is next.
    #[inline]
    pub fn next(&mut self) -> Option<u32> {
        self.turn ^= 1;
        let turn = self.turn;
        let next = self.lines[turn].pop_front().or_else(|| self.lines[turn ^ 1].pop_front())?;
        self.waiting -= 1;
        Some(next)
    }

    /// Takes the path from `now` on; gives the end.
    #[inline]
    pub fn take(&mut self, now: Nanos, time: Nanos) -> Nanos {
        debug_assert!(self.free_at <= now);
        self.free_at = now + time;
        self.busy += time;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_served_in_turn() {
        let mut path = Path::default();
        for op in 0..4 {
            path.queue(Line::Reads, op);
        }
        path.queue(Line::Rest, 10);
        path.queue(Line::Rest, 11);
        let order: Vec<u32> = std::iter::from_fn(|| path.next()).collect();
        assert_eq!(order, [10, 0, 11, 1, 2, 3]);
        assert!(path.next_start() == Nanos::MAX && path.is_free(0));
    }
}
