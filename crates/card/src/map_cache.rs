//! The part of a drive's map that is in memory, where not all of it is: the rest lies on the flash, and whoever asks for what it tells of
//! waits until a page of it was read from there.
//!
//! Drives without memory of their own borrow some of the host's (NVMe's host memory buffer). Which page makes room is found as a clock
//! does it: the hand gives every page that was used since it passed a second chance. Changed pages are written back by the drive when it
//! likes; that takes nothing here.

use std::ops::RangeInclusive;

use ftl::{Geometry, PageAddr};
use profile::Module as Sheet;

use crate::device::Request;

/// A page of the map that is not in memory.
const AWAY: u32 = u32::MAX;
/// One that is being read.
const COMING: u32 = u32::MAX - 1;

/// The fewest pages that are in memory.
const PAGES_MIN: u64 = 4;

/// A read that waits for a page of the map.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    page: u32,
    /// The last one that it needs.
    last: u32,
    tag: u32,
    request: Request,
}

/// Which pages of the map are in memory.
#[derive(Debug)]
pub(crate) struct MapCache {
    /// Sectors that a page tells of.
    sectors: u64,
    page_bytes: u32,
    /// Of each page: its place in memory, or where else it is.
    places: Vec<u32>,
    /// Of each place: its page, and whether it was used since the hand passed.
    held: Vec<(u32, bool)>,
    /// Of each page: writes that wait to change it, until which it stays.
    writes: Vec<u32>,
    most: usize,
    hand: usize,
    /// Pages read so far.
    reads: u64,
    waiting: Vec<Waiting>,
}

impl MapCache {
    /// As the data sheet has it, empty; nothing where all of the map is in memory. On flash that is smaller than the sheet says it
    /// holds the same share of the map.
    pub fn new(sheet: &Sheet, geometry: &Geometry, sectors: u64) -> Option<MapCache> {
        let cache = sheet.map_cache.as_ref()?;
        let of_page = u64::from(cache.page_bytes / cache.entry_bytes).max(1);
        let pages = sectors.div_ceil(of_page);
        let share = geometry.raw_bytes() as f64 / sheet.raw_bytes as f64;
        let most = (cache.bytes as f64 * share / f64::from(cache.page_bytes)) as u64;
        let most = most.max(PAGES_MIN).min(pages);
        Some(MapCache {
            sectors: of_page,
            page_bytes: cache.page_bytes,
            places: vec![AWAY; pages as usize],
            held: Vec::with_capacity(most as usize),
            writes: vec![0; pages as usize],
            most: most as usize,
            hand: 0,
            reads: 0,
            waiting: Vec::new(),
        })
    }

    /// Pages that were read from flash so far.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Where on the flash a page lies: they are spread over all dies.
    pub fn place(&self, page: u32, geometry: &Geometry) -> PageAddr {
        PageAddr { die: page % geometry.dies, block: page / geometry.dies % geometry.blocks, page: 0 }
    }

    /// The pages that tell of these sectors.
    pub fn pages(&self, lba: u64, sectors: u64) -> RangeInclusive<u32> {
        (lba / self.sectors) as u32..=((lba + sectors.max(1) - 1) / self.sectors) as u32
    }

    /// The first of these pages that is not in memory; those in front of it count as used.
    pub fn missing(&mut self, mut pages: RangeInclusive<u32>) -> Option<u32> {
        pages.find(|page| match self.places.get(*page as usize) {
            Some(&(AWAY | COMING)) => true,
            Some(&place) => {
                self.held[place as usize].1 = true;
                false
            }
            None => false,
        })
    }

    /// Notes that a page is to be read. False where it is being read already.
    pub fn ask(&mut self, page: u32) -> bool {
        let asks = self.places[page as usize] == AWAY;
        self.places[page as usize] = COMING;
        self.reads += u64::from(asks);
        asks
    }

    /// A read waits for the first of the pages that it needs still.
    pub fn wait(&mut self, pages: RangeInclusive<u32>, tag: u32, request: Request) {
        self.waiting.push(Waiting { page: *pages.start(), last: *pages.end(), tag, request });
    }

    /// Whether reads wait.
    pub fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A write comes that changes these pages: what of them is in memory, or comes, stays until it is taken.
    pub fn keep(&mut self, pages: RangeInclusive<u32>) {
        self.writes_of(pages).for_each(|writes| *writes += 1);
    }

    /// It was taken, or refused.
    pub fn let_go(&mut self, pages: RangeInclusive<u32>) {
        self.writes_of(pages).for_each(|writes| *writes -= 1);
    }

    fn writes_of(&mut self, pages: RangeInclusive<u32>) -> impl Iterator<Item = &mut u32> {
        let (first, last) = pages.into_inner();
        self.writes.iter_mut().skip(first as usize).take((last - first + 1) as usize)
    }

    /// A page was read: it is in memory. Gives the reads that waited for it, in order, each with the pages behind it that it needs.
    pub fn came(&mut self, page: u32) -> Vec<(RangeInclusive<u32>, u32, Request)> {
        // Where writes wait for more pages than there is room for, there is room for them all the same.
        while self.held.len() >= self.most
            && let Some(place) = self.least_needed()
        {
            self.places[self.held[place].0 as usize] = AWAY;
            self.held.swap_remove(place);
            if let Some((moved, _)) = self.held.get(place) {
                self.places[*moved as usize] = place as u32;
            }
        }
        self.places[page as usize] = self.held.len() as u32;
        self.held.push((page, true));
        let waited = self.waiting.extract_if(.., |waiting| waiting.page == page);
        waited.map(|it| (page + 1..=it.last, it.tag, it.request)).collect()
    }

    /// The place whose page goes.
    fn least_needed(&mut self) -> Option<usize> {
        for _ in 0..=2 * self.held.len() {
            let at = self.hand % self.held.len();
            self.hand = at + 1;
            let (page, used) = &mut self.held[at];
            if self.writes[*page as usize] == 0 && !std::mem::take(used) {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;

    /// Memory for four pages of ten, each of 1024 sectors.
    fn cache() -> MapCache {
        let mut module = profile::find("samsung-980-1tb").expect("a sheet").flash().expect("flash").module.clone();
        let geometry = crate::layout::shape(&module, 4096, 64).expect("it fits").geometry;
        let bytes = (4.5 * 4096.0 * module.raw_bytes as f64 / geometry.raw_bytes() as f64) as u64;
        module.map_cache = Some(profile::MapCache { bytes, page_bytes: 4096, entry_bytes: 4 });
        MapCache::new(&module, &geometry, 10 * 1024 - 5).expect("one")
    }

    fn fetch(cache: &mut MapCache, page: u32) {
        assert!(cache.ask(page));
        assert!(cache.came(page).is_empty());
    }

    #[test]
    fn what_was_used_since_the_hand_passed_stays() {
        let mut cache = cache();
        assert_eq!((cache.places.len(), cache.most), (10, 4));
        for page in 0..4 {
            assert_eq!(cache.missing(page..=page), Some(page));
            fetch(&mut cache, page);
        }
        assert_eq!(cache.missing(0..=3), None);
        fetch(&mut cache, 4);
        assert_eq!(cache.missing(0..=0), Some(0), "all were used, so the first goes");
        assert_eq!(cache.missing(1..=1), None);
        fetch(&mut cache, 5);
        assert_eq!([1, 2, 3, 4, 5].map(|page| cache.missing(page..=page)), [None, Some(2), None, None, None]);
        assert_eq!((cache.missing(1..=5), cache.reads()), (Some(2), 6), "the first that is away");
    }

    #[test]
    fn what_writes_wait_for_stays_however_many_they_are() {
        let mut cache = cache();
        for page in 0..6 {
            cache.keep(page..=page + 1);
        }
        (0..6).for_each(|page| fetch(&mut cache, page));
        assert_eq!(cache.missing(0..=5), None);
        for page in 0..6 {
            cache.let_go(page..=page + 1);
        }
        fetch(&mut cache, 9);
        assert_eq!((cache.held.len(), cache.missing(9..=9)), (4, None));
        let held = (0..10).filter(|page| cache.missing(*page..=*page).is_none()).count();
        assert_eq!(held, 4, "and every page is known by its place");
    }

    #[test]
    fn sectors_have_their_pages() {
        let cache = cache();
        assert_eq!((cache.pages(0, 1), cache.pages(1023, 2), cache.pages(2048, 1024)), (0..=0, 0..=1, 2..=2));
        assert_eq!(cache.pages(10 * 1024 - 6, 1), 9..=9);
    }

    #[test]
    fn whoever_waits_for_a_page_goes_on_when_it_came() {
        let mut cache = cache();
        let request = Request::new(Op::Read, 0, 4096);
        assert!(cache.ask(5) && !cache.ask(5) && cache.ask(6));
        for (page, tag) in [(5, 1), (6, 2), (5, 3)] {
            cache.wait(page..=7, tag, request);
        }
        assert_eq!(cache.missing(5..=5), Some(5), "it is only coming");
        assert_eq!(cache.came(5), [(6..=7, 1, request), (6..=7, 3, request)]);
        assert!(cache.is_waited_for());
        assert_eq!(cache.came(6), [(7..=7, 2, request)]);
        assert!(!cache.is_waited_for());
    }
}
