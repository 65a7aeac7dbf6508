//! Programs and erases that let host reads pass.
//!
//! A host read that finds its die programming or erasing has it suspended, unless it is nearly done; with no more reads in line, or
//! [`READS_IN_A_ROW`](super::READS_IN_A_ROW) of them done, the die goes on. What goes on does so for the sheet's least time before it can be suspended again, so that it
//! ends however many reads come.
//!
//! Source: MQSim (Tavakkol et al., FAST 2018) suspends in favour of reads by the same two figures.

use super::{Kind, NONE, Nand, Nanos, Stage};

/// What the cells of a die are at, and what they were at before a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// The operation.
    which: u32,
    /// Since when, or from when on, and up to when.
    from: Nanos,
    to: Nanos,
    /// What was suspended, and how long it still takes.
    suspended: u32,
    left: Nanos,
}

impl Default for Running {
    fn default() -> Running {
        Running { which: NONE, from: 0, to: 0, suspended: NONE, left: 0 }
    }
}

impl Running {
    /// The cells are at this.
    #[inline]
    pub fn at(&mut self, which: u32, from: Nanos, to: Nanos) {
        (self.which, self.from, self.to) = (which, from, to);
    }

    /// Since when, or from when on, the cells are at what was begun last.
    #[inline]
    pub fn from(&self) -> Nanos {
        self.from
    }

    /// Whether something is to go on.
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.suspended != NONE
    }
}

impl Nand {
    /// Suspends what a busy die is at. Gives the moment from which it can read, or `None` where it cannot or it is not worth it.
    #[inline]
    pub(super) fn suspend(&mut self, now: Nanos, die: u32) -> Option<Nanos> {
        let times = self.timing.suspend?;
        let running = self.dies[die as usize].running;
        let operation = *self.operations.get(running.which as usize)?;
        let can = operation.stage == Stage::Cells
            && operation.die == die
            && matches!(operation.kind, Kind::Program | Kind::Parity | Kind::Erase | Kind::Fold);
        let from = now.max(running.from + times.least_run);
        let free = from + times.after;
        if !can || running.is_suspended() || running.to <= free {
            return None;
        }
        // Its event cannot be taken back: it goes on under another number.
        let other = self.put(operation);
        self.operations[running.which as usize].kind = Kind::Stale;
        self.aside += 1;
        let left = running.to - from;
        self.counts.die_busy -= left;
        self.counts.suspended += 1;
        let entry = &mut self.dies[die as usize];
        entry.running = Running { suspended: other, left, ..running };
        entry.in_a_row = 1;
        Some(free)
    }

    /// Lets a die go on with what was suspended, if anything was.
    #[inline]
    pub(super) fn resume(&mut self, now: Nanos, die: u32) -> bool {
        let entry = &mut self.dies[die as usize];
        if !entry.running.is_suspended() {
            return false;
        }
        let (which, left) = (entry.running.suspended, entry.running.left);
        entry.running.suspended = NONE;
        entry.in_a_row = 0;
        entry.busy = true;
        self.cells(now, which, left);
        self.let_reads_pass(now, die);
        true
    }

    /// A die began with something that can be suspended while host reads wait already: the first of them passes it.
    #[inline]
    pub(super) fn let_reads_pass(&mut self, now: Nanos, die: u32) {
        let waits = self.dies[die as usize].lines[0].first != NONE;
        if waits && let Some(from) = self.suspend(now, die) {
            self.dies[die as usize].in_a_row = 0;
            self.start_waiting(from, die, 0);
            if self.independent {
                self.read_beside(from, die);
            }
        }
    }

    /// An operation that nobody waits for is over.
    pub(super) fn put_aside(&mut self, which: u32) {
        self.unused.push(which);
        self.aside -= 1;
    }
}
