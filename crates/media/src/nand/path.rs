//! The data path between the channels and the host's side of the controller: one transfer at a time.
//!
//! A host read is also set up on it, one after the other. That is done from the moment on when the read comes, while it waits for its die
//! and its cells are read, as far as the path stands idle; what is left of it then is done in front of the read's transfer.
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
    /// Time that it was taken, or will be for set-ups, added up.
    pub busy: Nanos,
    /// Time of all set-ups asked for so far, and of those that are done.
    asked: Nanos,
    set_up: Nanos,
    /// Until when idle time was given to set-ups.
    looked: Nanos,
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

    /// Asks for a set-up; gives what [`Path::take`] wants to know of it.
    #[inline]
    pub fn ask(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.idle(now);
        self.asked += time;
        self.busy += time;
        self.asked
    }

    /// Takes the path from `now` on for a transfer, and for what is left of a set-up (0: there is none) and of those before it; gives the end.
    #[inline]
    pub fn take(&mut self, now: Nanos, set_up: Nanos, time: Nanos) -> Nanos {
        debug_assert!(self.free_at <= now);
        self.idle(now);
        let left = set_up.saturating_sub(self.set_up);
        self.set_up += left;
        self.free_at = now + left + time;
        self.busy += time;
        self.free_at
    }

    /// What it stood idle since it was last looked at went into set-ups.
    #[inline]
    fn idle(&mut self, now: Nanos) {
        let idle = now.saturating_sub(self.free_at.max(self.looked));
        self.set_up = (self.set_up + idle).min(self.asked);
        self.looked = self.looked.max(now);
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

    #[test]
    fn set_ups_take_what_is_idle_and_otherwise_their_time() {
        let mut path = Path::default();
        let marks: Vec<Nanos> = (0..3).map(|_| path.ask(100, 8)).collect();
        // 20 were idle: two are set up and a half of the third.
        assert_eq!(path.take(120, marks[0], 5), 125);
        assert_eq!(path.take(125, marks[1], 5), 130);
        assert_eq!(path.take(130, marks[2], 5), 139);
        // What is asked for while the path is taken waits for its end.
        let mark = path.ask(135, 8);
        assert_eq!(path.take(141, 0, 5), 146, "a transfer without a set-up does not wait for others'");
        assert_eq!(path.take(146, mark, 5), 157, "2 were idle, 6 are left");
        assert_eq!((path.ask(200, 8), path.busy), (40, 65));
        assert_eq!(path.take(200, 40, 5), 213, "what comes at this moment has nothing behind it");
    }
}
