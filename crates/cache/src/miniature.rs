//! A small S3-FIFO that stands for a large cache: it follows a share of the blocks and has that share of the large one's room.
//!
//! S3-FIFO is by Yang, Zhang, Qiu, Yue and Rashmi: "FIFO Queues Are All You Need for Cache Eviction", SOSP 2023. While the cache fills for the
//! first time, newcomers beyond the small queue's share go to the main queue, as in libCacheSim. Written blocks that are not behind yet stand
//! in a queue of their own, since the cache device never loses them. What was copied anew leaves its old place dead: a log-structured cache device
//! gets that room back only when its turn comes.

use crate::layout::Range;

/// No entry.
const NONE: u16 = u16::MAX;
/// Uses that are counted.
const USES_MAX: u8 = 3;
/// Uses with which a block leaves the small queue for the main one.
const USES_KEPT: u8 = 2;
/// The small queue's share is one part in so many.
const SMALL_PART: usize = 10;

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Small,
    Main,
    /// Written, and maybe not behind yet.
    Held,
    /// Not cached any more, but remembered.
    Ghost,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u32,
    /// Neighbours in the queue.
    before: u16,
    after: u16,
    /// The next one of the same bucket.
    chain: u16,
    uses: u8,
    place: Place,
    /// It takes room without a block until its turn comes.
    dead: bool,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    oldest: u16,
    newest: u16,
    len: usize,
}

/// A miniature. Keys are numbers of blocks, without their upper bits.
#[derive(Debug)]
pub(crate) struct Miniature {
    room: usize,
    /// Blocks that may be held at most.
    held_max: usize,
    entries: Vec<Entry>,
    /// Entries that are used for nothing, linked by `chain`.
    free: u16,
    /// First entries of the buckets.
    buckets: Box<[u16]>,
    queues: [Queue; 4],
    /// Something had to go already.
    was_full: bool,
}

impl Miniature {
    /// Blocks that one can have at most: entries and ghosts have numbers of 16 bits.
    pub const ROOM_MAX: usize = 1 << 14;

    /// An empty one with room for so many blocks, of which so many may be held.
    pub fn new(room: usize, held_max: usize) -> Miniature {
        let room = room.clamp(1, Miniature::ROOM_MAX);
        let entries = room + Miniature::ghosts_max(room) + 1;
        let empty = Queue { oldest: NONE, newest: NONE, len: 0 };
        Miniature {
            room,
            held_max: held_max.min(room),
            entries: Vec::with_capacity(entries),
            free: NONE,
            buckets: vec![NONE; (entries / 2).next_power_of_two()].into(),
            queues: [empty; 4],
            was_full: false,
        }
    }

    /// As many as the main queue has room for.
    fn ghosts_max(room: usize) -> usize {
        room - room / SMALL_PART
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.buckets.len() * size_of::<u16>()
    }

    /// Whether it was ever full.
    pub fn was_full(&self) -> bool {
        self.was_full
    }

    /// Whether a block is cached.
    pub fn has(&self, key: u32) -> bool {
        self.find(key).is_some_and(|at| self.entries[at as usize].place != Place::Ghost)
    }

    /// A block is read; afterwards it is cached.
    pub fn read(&mut self, key: u32) {
        let Some(at) = self.find(key) else { return self.insert(key, false) };
        let entry = &mut self.entries[at as usize];
        match entry.place {
            Place::Small | Place::Main => entry.uses = (entry.uses + 1).min(USES_MAX),
            Place::Held => {}
            Place::Ghost => {
                self.remove(at);
                self.insert(key, true);
            }
        }
    }

    /// A block is written, and what was copied of it is replaced by a new copy.
    pub fn copy(&mut self, key: u32) {
        if let Some(at) = self.find(key) {
            match self.entries[at as usize].place {
                Place::Small | Place::Main => self.kill(at),
                Place::Held => self.remove(at),
                Place::Ghost => {}
            }
        }
        self.read(key);
    }

    /// A block is written and held; the oldest that is held goes where there are too many.
    pub fn hold(&mut self, key: u32) {
        self.forget(key);
        if let Some(ghost) = self.find(key) {
            self.remove(ghost);
        }
        self.make_room();
        self.add(key, Place::Held);
        while self.queue(Place::Held).len > self.held_max {
            self.was_full = true;
            self.remove(self.queue(Place::Held).oldest);
        }
    }

    /// What is cached of a block is dropped, and its room is free at once: where much is dropped, the groomer finds it first. Ghosts stay.
    pub fn forget(&mut self, key: u32) {
        if let Some(at) = self.find(key)
            && self.entries[at as usize].place != Place::Ghost
        {
            self.remove(at);
        }
    }

    /// Drops what is cached of a run of blocks, however long it is.
    pub fn forget_all(&mut self, blocks: &Range) {
        let within = |key: u32| u64::from(key.wrapping_sub(blocks.start as u32)) < blocks.end - blocks.start;
        for place in [Place::Small, Place::Main, Place::Held] {
            let mut next = self.queue(place).oldest;
            while next != NONE {
                let at = next;
                let Entry { key, after, dead, .. } = self.entries[at as usize];
                if !dead && within(key) {
                    self.remove(at);
                }
                next = after;
            }
        }
    }

    fn insert(&mut self, key: u32, returns: bool) {
        self.make_room();
        let fills_up = !self.was_full && self.queue(Place::Small).len >= self.small_share();
        self.add(key, if returns || fills_up { Place::Main } else { Place::Small });
    }

    fn small_share(&self) -> usize {
        self.room.div_ceil(SMALL_PART)
    }

    fn make_room(&mut self) {
        let cached = |mini: &Miniature| mini.queues[..3].iter().map(|queue| queue.len).sum::<usize>();
        while cached(self) >= self.room {
            self.was_full = true;
            self.evict();
        }
    }

    /// One block goes.
    fn evict(&mut self) {
        let small = self.queue(Place::Small).len;
        if small >= self.small_share() || self.queue(Place::Main).len == 0 {
            while let Some(at) = self.oldest(Place::Small) {
                if self.entries[at as usize].dead {
                    return self.remove(at);
                }
                let kept = self.entries[at as usize].uses >= USES_KEPT;
                self.put(at, if kept { Place::Main } else { Place::Ghost });
                if !kept {
                    if self.queue(Place::Ghost).len > Miniature::ghosts_max(self.room) {
                        self.remove(self.queue(Place::Ghost).oldest);
                    }
                    return;
                }
            }
        }
        while let Some(at) = self.oldest(Place::Main) {
            let entry = &mut self.entries[at as usize];
            if entry.dead || entry.uses == 0 {
                return self.remove(at);
            }
            entry.uses -= 1;
            self.put(at, Place::Main);
        }
        // Nothing but what is held.
        if let Some(at) = self.oldest(Place::Held) {
            self.remove(at);
        }
    }

    fn queue(&self, place: Place) -> Queue {
        self.queues[place as usize]
    }

    fn oldest(&self, place: Place) -> Option<u16> {
        Some(self.queue(place).oldest).filter(|at| *at != NONE)
    }

    fn bucket(&self, key: u32) -> usize {
        key.wrapping_mul(0x9e37_79b1) as usize >> (32 - self.buckets.len().ilog2()) & (self.buckets.len() - 1)
    }

    fn find(&self, key: u32) -> Option<u16> {
        let mut at = self.buckets[self.bucket(key)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.key == key {
                return Some(at);
            }
            at = entry.chain;
        }
        None
    }

    /// Adds a block that there is no entry of.
    fn add(&mut self, key: u32, place: Place) -> u16 {
        let bucket = self.bucket(key);
        let chain = self.buckets[bucket];
        let entry = Entry { key, before: NONE, after: NONE, chain, uses: 0, place, dead: false };
        let at = match self.free {
            NONE => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u16
            }
            at => {
                self.free = self.entries[at as usize].chain;
                self.entries[at as usize] = entry;
                at
            }
        };
        self.buckets[bucket] = at;
        self.link(at, place);
        at
    }

    /// Puts an entry at the end of a queue. A block that gets there begins anew, but for one that goes round in the main queue.
    fn put(&mut self, at: u16, place: Place) {
        self.unlink(at);
        let entry = &mut self.entries[at as usize];
        if entry.place != place {
            entry.uses = 0;
        }
        entry.place = place;
        self.link(at, place);
    }

    /// Takes an entry away.
    fn remove(&mut self, at: u16) {
        if !self.entries[at as usize].dead {
            self.unchain(at);
        }
        self.unlink(at);
        self.entries[at as usize].chain = self.free;
        self.free = at;
    }

    /// Leaves an entry where it is without its block.
    fn kill(&mut self, at: u16) {
        self.unchain(at);
        self.entries[at as usize].dead = true;
    }

    /// Takes an entry out of its bucket.
    fn unchain(&mut self, at: u16) {
        let Entry { key, chain, .. } = self.entries[at as usize];
        let bucket = self.bucket(key);
        let mut link = self.buckets[bucket];
        if link == at {
            self.buckets[bucket] = chain;
            return;
        }
        while self.entries[link as usize].chain != at {
            link = self.entries[link as usize].chain;
        }
        self.entries[link as usize].chain = chain;
    }

    fn link(&mut self, at: u16, place: Place) {
        let queue = &mut self.queues[place as usize];
        let newest = std::mem::replace(&mut queue.newest, at);
        queue.len += 1;
        match newest {
            NONE => queue.oldest = at,
            newest => self.entries[newest as usize].after = at,
        }
        let entry = &mut self.entries[at as usize];
        (entry.before, entry.after) = (newest, NONE);
    }

    fn unlink(&mut self, at: u16) {
        let Entry { before, after, place, .. } = self.entries[at as usize];
        self.queues[place as usize].len -= 1;
        match before {
            NONE => self.queues[place as usize].oldest = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.queues[place as usize].newest = before,
            after => self.entries[after as usize].before = before,
        }
    }
}
