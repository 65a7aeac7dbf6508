//! Planes that read on their own.
//!
//! Dies since about 2019 do host reads on different planes at once (independent plane reads). The layer tells the model which page is
//! read, on all planes, and not which part of it; random reads are on any of them, so the plane is drawn.

use super::{Kind, NONE, Nand, Nanos, READS_IN_A_ROW};

impl Nand {
    /// The plane of a new operation, as a bit; 0 where planes do not read on their own, or it takes all of them.
    #[inline]
    pub(super) fn plane_for(&mut self, kind: Kind) -> u32 {
        match kind {
            Kind::HostRead { .. } if self.independent => 1 << self.random.below(u64::from(self.planes)),
            _ => 0,
        }
    }

    /// Whether the next host read of a die may begin before what else waits for it.
    #[inline]
    pub(super) fn reads_first(&self, die: u32) -> bool {
        let entry = &self.dies[die as usize];
        entry.in_a_row < READS_IN_A_ROW || (entry.lines[1].first == NONE && !entry.running.is_suspended())
    }

    /// Whether a busy die can begin with a read on this plane beside what it is reading on others.
    #[inline]
    pub(super) fn can_read_beside(&self, die: u32, plane: u32) -> bool {
        let entry = &self.dies[die as usize];
        plane != 0
            && entry.reading != 0
            && entry.reading & plane == 0
            && entry.lines[0].first == NONE
            && self.reads_first(die)
    }

    /// The cells of a read are done on its plane. False when its die reads on no other.
    pub(super) fn reads_on(&mut self, now: Nanos, die: u32, plane: u32) -> bool {
        let entry = &mut self.dies[die as usize];
        entry.reading &= !plane;
        if plane == 0 || entry.reading == 0 {
            return false;
        }
        self.read_beside(now, die);
        true
    }

    /// Reads that wait begin beside those under way, as far as their planes are free.
    #[inline]
    pub(super) fn read_beside(&mut self, now: Nanos, die: u32) {
        while let Some(first) = self.operations.get(self.dies[die as usize].lines[0].first as usize)
            && first.plane != 0
            && self.dies[die as usize].reading & first.plane == 0
            && self.reads_first(die)
        {
            self.start_waiting(now, die, 0);
        }
    }
}
