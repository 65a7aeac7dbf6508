//! The regions of a mirror: which may differ between its members after a crash.
//!
//! A write goes to a region that is not marked in one batch with the sector of marks, on each member: whatever has the data has the
//! mark. Nothing says in which order a member makes batches durable, so every write brings the mark along until a flush has made
//! the mark durable by itself. A mark is taken back when nothing was written for a while and a flush covers what was.

use std::ops::Range;

/// Whether a region is marked on the members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It is not.
    #[default]
    Clean,
    /// It is about to be; once a first write with the mark is done, a flush that begins after the one with this number makes it
    /// durable.
    Volatile(Option<u64>),
    /// It is, durably.
    Durable,
}

/// One region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    pub mark: Mark,
    /// Changes under way.
    pub writing: u32,
    /// Flushes that had begun when the last change was done.
    pub stamp: u64,
    /// It was written since somebody looked last.
    pub touched: bool,
    /// Members that are being rebuilt may lack something of it.
    pub unsynced: bool,
    /// It could not be copied.
    pub stuck: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    all: Vec<Region>,
    /// Sectors of one, as a power of two.
    shift: u32,
    unsynced: usize,
    stuck: usize,
    /// Those whose mark is not durable yet.
    volatile: Vec<usize>,
}

impl Regions {
    pub fn new(count: usize, shift: u32) -> Regions {
        Regions { all: vec![Region::default(); count], shift, ..Regions::default() }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, region: usize) -> &Region {
        &self.all[region]
    }

    /// The regions that sectors lie in.
    pub fn of(&self, sectors: &Range<u64>) -> Range<usize> {
        if sectors.is_empty() {
            return 0..0;
        }
        (sectors.start >> self.shift) as usize..((sectors.end - 1) >> self.shift) as usize + 1
    }

    /// The sectors of a region, of so many in all.
    pub fn sectors(&self, region: usize, all: u64) -> Range<u64> {
        let from = (region as u64) << self.shift;
        from..(from + (1 << self.shift)).min(all)
    }

    /// A change begins; the regions whose mark must go with it.
    pub fn begin(&mut self, regions: Range<usize>) -> Vec<usize> {
        let mut carried = Vec::new();
        for (number, region) in regions.clone().zip(&mut self.all[regions]) {
            region.writing += 1;
            region.touched = true;
            if region.mark == Mark::Clean {
                region.mark = Mark::Volatile(None);
                self.volatile.push(number);
            }
            if region.mark != Mark::Durable {
                carried.push(number);
            }
        }
        carried
    }

    /// It is done, when so many flushes had begun; `marked` says that it brought the marks along, to every member. Whether a flush
    /// is wanted.
    pub fn end(&mut self, regions: Range<usize>, begun: u64, marked: bool) -> bool {
        let mut wanted = false;
        for region in &mut self.all[regions] {
            region.writing -= 1;
            region.stamp = begun;
            if marked && region.mark == Mark::Volatile(None) {
                region.mark = Mark::Volatile(Some(begun));
                wanted = true;
            }
        }
        wanted
    }

    /// Flushes up to this one cover what was done before each.
    pub fn flushed(&mut self, durable: u64) {
        let all = &mut self.all;
        self.volatile.retain(|number| {
            let region = &mut all[*number];
            match region.mark {
                Mark::Volatile(Some(begun)) if begun < durable => region.mark = Mark::Durable,
                _ => {}
            }
            matches!(region.mark, Mark::Volatile(_))
        });
    }

    /// It stands on every member by now.
    pub fn is_marked(&mut self, region: usize) {
        self.all[region].mark = Mark::Durable;
    }

    pub fn is_dirty(&self, region: usize) -> bool {
        self.all.get(region).is_some_and(|region| region.mark != Mark::Clean)
    }

    pub fn dirty(&self) -> usize {
        self.all.iter().filter(|region| region.mark != Mark::Clean).count()
    }

    /// Takes marks back where nothing was written since the last call, and all that was is durable: the regions. `at_once` does not
    /// wait for another call.
    pub fn clear_quiet(&mut self, durable: u64, at_once: bool) -> Vec<usize> {
        let mut cleared = Vec::new();
        for (number, region) in self.all.iter_mut().enumerate() {
            let quiet = at_once || !region.touched;
            region.touched = false;
            if quiet && region.mark == Mark::Durable && region.writing == 0 && region.stamp < durable {
                region.mark = Mark::Clean;
                cleared.push(number);
            }
        }
        cleared
    }

    /// Whether a flush would let marks be taken back.
    pub fn wants_flush(&self, durable: u64) -> bool {
        self.all.iter().any(|region| {
            region.mark != Mark::Clean && region.writing == 0 && !region.touched && region.stamp >= durable
        })
    }

    /// Members that are being rebuilt may lack something of it.
    pub fn set_unsynced(&mut self, region: usize) {
        if !std::mem::replace(&mut self.all[region].unsynced, true) {
            self.unsynced += 1;
        }
    }

    /// It was copied, when so many flushes had begun.
    pub fn synced(&mut self, region: usize, begun: u64) {
        let region = &mut self.all[region];
        if std::mem::replace(&mut region.unsynced, false) {
            self.unsynced -= 1;
        }
        (region.stamp, region.touched) = (begun, true);
    }

    /// It could not be copied: it is left alone.
    pub fn stuck(&mut self, region: usize) {
        if !std::mem::replace(&mut self.all[region].stuck, true) {
            self.stuck += 1;
        }
    }

    /// Nobody is being rebuilt any more.
    pub fn forget_unsynced(&mut self) {
        self.all.iter_mut().for_each(|region| (region.unsynced, region.stuck) = (false, false));
        (self.unsynced, self.stuck) = (0, 0);
    }

    /// Whether any of them is not the same on all members.
    pub fn any_unsynced(&self, regions: Range<usize>) -> bool {
        self.unsynced > 0 && self.all[regions].iter().any(|region| region.unsynced)
    }

    /// How many are to be copied, those that cannot be among them.
    pub fn unsynced(&self) -> usize {
        self.unsynced
    }

    pub fn stuck_count(&self) -> usize {
        self.stuck
    }

    /// The next one to copy, from `from` on and around.
    pub fn next_unsynced(&self, from: usize) -> Option<usize> {
        if self.unsynced == self.stuck {
            return None;
        }
        let wanted = |region: &usize| self.all[*region].unsynced && !self.all[*region].stuck;
        (from..self.len()).find(wanted).or_else(|| (0..from.min(self.len())).find(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_goes_along_until_it_is_durable_and_is_taken_back_when_it_is_quiet() {
        let mut regions = Regions::new(4, 3);
        assert_eq!(regions.of(&(7..9)), 0..2);
        assert_eq!(regions.sectors(3, 30), 24..30);
        assert_eq!(regions.begin(1..2), [1]);
        assert_eq!(regions.begin(1..2), [1], "the first may be lost");
        assert!(regions.end(1..2, 5, true));
        regions.flushed(5);
        assert_eq!(regions.begin(1..2), [1], "that flush had begun before");
        regions.flushed(6);
        assert_eq!(regions.begin(1..2), [0; 0]);
        assert!(regions.clear_quiet(9, true).is_empty(), "writes are under way");
        for _ in 0..3 {
            regions.end(1..2, 6, false);
        }
        assert!(regions.clear_quiet(6, true).is_empty(), "not durable");
        assert!(regions.wants_flush(6));
        assert_eq!(regions.clear_quiet(7, false), [1]);
        assert!(!regions.is_dirty(1));
    }

    #[test]
    fn what_is_to_be_copied_is_found_once() {
        let mut regions = Regions::new(8, 3);
        regions.set_unsynced(2);
        regions.set_unsynced(2);
        regions.set_unsynced(5);
        assert_eq!((regions.next_unsynced(3), regions.next_unsynced(6)), (Some(5), Some(2)));
        regions.synced(5, 0);
        assert_eq!(regions.next_unsynced(3), Some(2));
        regions.stuck(2);
        assert_eq!((regions.next_unsynced(0), regions.unsynced()), (None, 1));
        assert!(regions.any_unsynced(0..3) && !regions.any_unsynced(3..8));
    }
}
