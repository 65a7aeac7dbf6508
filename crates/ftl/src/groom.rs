//! The groomer: takes a LEB, moves its live sectors to the groom stream, and lets the LEB go.
//!
//! A LEB may be groomed only when the last checkpoint is newer than everything in it: recovery then never needs
//! it, so neither trim records nor half of an atomic batch can be lost with it.

use std::collections::{BTreeSet, VecDeque};

use crate::ahead::Ahead;
use crate::append::Writer;
use crate::evict::Evict;
use crate::layer::{Config, Ftl};
use crate::leb::{DATA_STREAMS, Leb, LebState, Lebs, Stream, Times, ZONE_STREAMS};
use crate::optimise::Optimiser;
use crate::pace::{Pace, Pacing};
use crate::placement::Reclaimed;
use crate::policy::{Destination, GroomPolicy, Moved as MovedSector, Old, Policy, Shape, Write};
use crate::read::MediaRead;
use crate::rent::Rent;
use crate::slots::UNNOTED;
use crate::types::{Command, Header, Kind, LebId, NO_SLOT, ReadFor, Slot, Source};

/// Groom reads under way at once, for each die.
const READS_PER_DIE: usize = 2;
/// The fewest groom reads under way at once.
const READS_MIN: usize = 4;

pub(crate) struct Victim {
    pub leb: LebId,
    /// Live slots when it was taken.
    live: u32,
    /// Next data page to read.
    page: u32,
    reads: usize,
    /// It was taken ahead of need, and waits while requests come.
    pub ahead: bool,
    /// Sectors moved so far, and the first of them.
    pub moved: u32,
    pub first: u64,
}

/// A page that was read and waits to be moved.
struct Moved {
    id: u64,
    /// In-page slot and host sector of what was live when it came.
    live: Vec<(u32, u64)>,
    /// How many of them were dealt with.
    done: usize,
    /// Where the next one goes, once the policy said so.
    destination: Option<Destination>,
    /// Number of the page's first slot.
    slot: u32,
    /// In-page slot that the read's buffer begins with.
    at: u32,
    /// Not for the sake of space: a sector that is to be written elsewhere.
    relocated: bool,
}

pub(crate) struct Groomer {
    pub pace: Pace,
    pub policy: Box<dyn GroomPolicy>,
    /// Streams that host writes go to, from the first on.
    pub host_streams: u8,
    /// Streams of host sectors in use.
    pub streams: u8,
    /// The policy wants to hear of everything.
    pub learns: bool,
    /// What is known of the sectors of the write at hand, the first ones of these.
    olds: Box<[Option<Old>]>,
    /// What the policy notes of them.
    notes: Box<[u8]>,
    pub victim: Option<Victim>,
    moved: VecDeque<Moved>,
    /// Slots whose sectors are to be written elsewhere.
    relocations: BTreeSet<Slot>,
    /// What was durable when none of them was ready; `None` when they were not looked through since one was added.
    relocations_wait: Option<u64>,
    relocating: u32,
    /// LEBs to be groomed for the sake of their redundancy.
    pub evacuations: Vec<LebId>,
    /// Lists of moved pages, to be used again.
    lists: Vec<Vec<(u32, u64)>>,
    /// Grooming in quiet times, to give space back: LEBs still to be taken.
    pub idle_lebs: u32,
    pub ahead: Ahead,
    pub optimiser: Optimiser,
    pub evict: Evict,
    /// The latest LEBs whose live sectors were moved, where the host says what belongs together.
    pub reclaimed: VecDeque<Reclaimed>,
    /// What LEBs cost, where they are paid for.
    pub rent: Option<Box<Rent>>,
}

impl Groomer {
    pub fn new(config: &Config) -> Groomer {
        let policy = config.policy.build(&shape(config));
        Groomer {
            pace: Pace::new(config),
            host_streams: policy.host_streams(),
            streams: policy.streams(),
            learns: policy.learns(),
            policy,
            olds: vec![None; config.max_request as usize].into(),
            notes: vec![UNNOTED; config.max_request as usize].into(),
            victim: None,
            moved: VecDeque::new(),
            relocations: BTreeSet::new(),
            relocations_wait: None,
            relocating: 0,
            evacuations: Vec::new(),
            lists: Vec::new(),
            idle_lebs: 0,
            ahead: Ahead::default(),
            optimiser: Optimiser::default(),
            evict: Evict::default(),
            reclaimed: VecDeque::new(),
            rent: None,
        }
    }

    pub fn is_busy(&self) -> bool {
        let works = self.victim.as_ref().is_some_and(|victim| victim.reads > 0 || !self.ahead.resting);
        works || self.relocating > 0 || !self.moved.is_empty() || self.optimiser.is_busy()
    }

    /// Whether host writes go to every stream that the groomer writes to.
    pub fn shares_streams(&self) -> bool {
        self.host_streams == self.streams
    }

    pub fn set_policy(&mut self, policy: Box<dyn GroomPolicy>) {
        self.policy = policy;
        self.streams_changed();
        self.learns = self.policy.learns();
        self.notes.fill(UNNOTED);
    }

    /// The policy uses other streams.
    pub fn streams_changed(&mut self) {
        self.host_streams = self.policy.host_streams();
        self.streams = self.policy.streams();
    }

    /// The module has another shape.
    pub fn reshaped(&mut self, config: &Config) {
        self.policy.reshaped(&shape(config));
    }

    /// A stream of host sectors opened a LEB.
    pub fn opened(&mut self, leb: LebId, stream: u8) {
        self.policy.opened(leb, stream);
    }

    /// Its LEB was closed.
    pub fn closed(&mut self, leb: LebId, stream: u8) {
        self.policy.closed(leb, stream);
    }

    /// What the policy notes of a sector of the write at hand.
    #[inline]
    pub fn note(&self, at: usize) -> u8 {
        self.notes[at]
    }

    /// Sectors were trimmed.
    pub fn trimmed(&mut self, lba: u64, count: u64) {
        if self.learns {
            self.policy.trimmed(lba, count);
        }
    }

    /// One of them was there.
    #[inline]
    pub fn discarded(&mut self, note: u8) {
        if self.learns {
            self.policy.discarded(note);
        }
    }

    /// Slots that are yet to be moved out of the victim, at the most.
    pub fn to_move(&self) -> u32 {
        self.victim.as_ref().map_or(0, |victim| victim.live)
    }

    pub fn preallocate(&mut self) {
        self.policy.preallocate();
    }

    /// Whether LEBs are to be collected for their price.
    pub fn has_due(&self) -> bool {
        self.rent.as_ref().is_some_and(|rent| rent.has_due())
    }

    pub fn memory(&self) -> usize {
        self.policy.memory()
    }

    pub fn policy_name(&self) -> &'static str {
        self.policy.name()
    }
}

/// What the policy is made for. Every stream more keeps a LEB open and a buffer in use: as many as are to spare.
pub(crate) fn shape(config: &Config) -> Shape {
    let geometry = &config.geometry;
    let slots = u64::from(geometry.slots_per_leb());
    let spare = u64::from(geometry.blocks).saturating_sub(config.room().div_ceil(slots));
    let kept = u64::from(crate::pace::start_lebs(geometry.blocks)) + 8;
    let by_space = 2 + spare.saturating_sub(kept) / 3;
    let buffers = config.max_request.div_ceil(geometry.slots_per_page) + 6;
    let by_buffers = u64::from(config.buffers.saturating_sub(buffers));
    let (by_space, most) = match config.policy {
        // Formats of zones leave room for a LEB of each. The parity journal has seats for the open stripes of as many streams as others have.
        Policy::Zones if geometry.parity == 0 => (u64::MAX, ZONE_STREAMS),
        Policy::Zones => (u64::MAX, DATA_STREAMS),
        policy if geometry.parity == 0 => (by_space, policy.streams().max(DATA_STREAMS)),
        _ => (by_space, DATA_STREAMS),
    };
    let streams = by_space.min(by_buffers).clamp(2, most.into()) as u8;
    // Where the host can address more than there is room for, a policy that keeps something of each sector is refused.
    Shape { sectors: config.room(), lebs: geometry.blocks, slots_per_leb: geometry.slots_per_leb(), streams }
}

/// What is known of the sector in a slot of a LEB that is closed.
#[inline]
fn old_at(times: &Times, at: u32, note: u8) -> Old {
    let written = times.filled(at);
    Old { written, moved: times.mean_moved().unwrap_or(written), note }
}

/// What the policy is told of a sector in a slot that the groomer empties.
fn moved_sector(lebs: &Lebs, now: u64, lba: u64, slot: Slot) -> MovedSector<'_> {
    let place = lebs.place(slot);
    let (leb, note) = (place.0, lebs.note(place));
    let Leb { times, stream, .. } = &lebs[leb];
    let stream = match stream {
        Stream::Data(stream) => *stream,
        Stream::Checkpoint => 0,
    };
    MovedSector { lba, now, note, leb, times, stream }
}

impl Ftl {
    /// Goes on grooming as far as it can.
    pub(crate) fn groom(&mut self) {
        self.move_optimised();
        if !self.emptied.is_empty() {
            self.reclaim();
        }
        self.tell_pace();
        if self.groomer.evict.is_on() {
            self.settle_leaving();
        }
        let idle = self.groomer.victim.is_none() && self.groomer.moved.is_empty();
        if idle && self.groomer.relocations.is_empty() && !self.wants_victim() {
            return;
        }
        self.relocate_next();
        self.move_pages();
        if self.groomer.victim.is_none() {
            self.take_victim();
        }
        self.read_victim();
        if !self.emptied.is_empty() {
            // What was emptied just now may hold nothing that is not durable: then no sync comes that would call again.
            self.reclaim();
        }
    }

    /// Tells the governor of host writes how much is free, or left in the open LEBs that they go to.
    #[inline]
    fn tell_pace(&mut self) {
        debug_assert_eq!(self.host_left, self.left_for_host());
        let free = u64::from(self.free_lebs()) * u64::from(self.narrow.leb_slots);
        self.groomer.pace.set_free(free + self.host_left);
        // Many open LEBs may have much left and none of them enough for a request.
        if !self.groomer.pace.is_short() && self.free_lebs() as usize <= self.host_reserve() {
            self.groomer.pace.set_free(free);
        }
    }

    /// Slots left in the open LEBs that host writes go to.
    fn left_for_host(&self) -> u64 {
        (0..self.groomer.host_streams).map(|stream| u64::from(self.left_in_open(Stream::Data(stream)))).sum()
    }

    /// What is known of the sector in a slot of a LEB that is being filled.
    #[cold]
    fn old_in_open(&self, entry: &Leb, at: u32, note: u8) -> Old {
        let used = self.narrow.leb_slots - self.left_in_open(entry.stream);
        // As if it were closed now.
        let mut times = entry.times;
        times.close(self.stats.host_written_sectors, used);
        old_at(&times, at.min(used), note)
    }

    /// Finds out what is known of a sector of the write at hand. What the policy asks for in a moment goes where it will look for it field by field: put
    /// together elsewhere and copied it would have to wait for the copy.
    #[inline]
    fn recall(&mut self, at: usize, lba: u64) {
        let slot = self.slot_at(lba);
        if slot == NO_SLOT {
            self.groomer.olds[at] = None;
            return;
        }
        let place = self.lebs.place(slot);
        let (entry, note) = (&self.lebs[place.0], self.lebs.note(place));
        if entry.state == LebState::Open {
            self.groomer.olds[at] = Some(self.old_in_open(entry, place.1, note));
            return;
        }
        self.groomer.olds[at] = Some(old_at(&entry.times, place.1, note));
    }

    /// The stream that the policy wants for a write.
    pub(crate) fn place_write(&mut self, lba: u64, count: u32) -> u8 {
        if !self.groomer.learns {
            return 0;
        }
        (0..count).for_each(|at| self.recall(at as usize, lba + u64::from(at)));
        let now = self.stats.host_written_sectors;
        let placement = self.placement;
        let Groomer { policy, olds, .. } = &mut self.groomer;
        policy.place(&Write { lba, now, placement, olds: &olds[..count as usize] })
    }

    /// The write that [`Ftl::place_write`] was asked about last is taken.
    pub(crate) fn note_write(&mut self, lba: u64, count: u32) {
        if self.groomer.learns {
            let now = self.stats.host_written_sectors;
            let placement = self.placement;
            let Groomer { policy, olds, notes, .. } = &mut self.groomer;
            let count = count as usize;
            policy.wrote(&Write { lba, now, placement, olds: &olds[..count] }, &mut notes[..count]);
        }
    }

    /// Where the policy wants a sector that is moved out of a slot.
    pub(crate) fn place_moved(&mut self, lba: u64, slot: Slot) -> Destination {
        let Ftl { groomer, lebs, stats, .. } = self;
        groomer.policy.place_moved(&moved_sector(lebs, stats.host_written_sectors, lba, slot))
    }

    /// Whether the policy wants a sector that may be lost left behind.
    pub(crate) fn leaves_behind(&self, lba: u64, slot: Slot) -> bool {
        self.groomer.policy.leaves_behind(&moved_sector(&self.lebs, self.stats.host_written_sectors, lba, slot))
    }

    fn wants_victim(&self) -> bool {
        // Until the checkpoint that ends a recovery counts, another recovery would look at the old log only, and
        // miss what was moved.
        if !self.is_started() {
            return false;
        }
        // The last checkpoint, too, leaves room for a recovery.
        if self.checkpointer.is_closing() && !self.lacks_checkpoint_room() {
            return false;
        }
        self.groomer.pace.is_short()
            || self.groomer.idle_lebs > 0
            || self.wants_eviction()
            || self.groomer.ahead.leb.is_some()
            || self.groomer.has_due()
            || !self.groomer.evacuations.is_empty()
    }

    /// Has a sector that could be read only with help written elsewhere, if it still lies in that slot.
    pub fn relocate(&mut self, slot: Slot) {
        if self.lebs.is_live(slot) && self.groomer.relocations.insert(slot) {
            self.groomer.relocations_wait = None;
            self.work();
        }
    }

    /// Whether the sector in a slot is to be written elsewhere, but not yet on its way.
    pub fn will_relocate(&self, slot: Slot) -> bool {
        self.groomer.relocations.contains(&slot)
    }

    fn relocate_next(&mut self) {
        if self.checkpointer.is_closing() || !self.is_started() || !self.has_spare_lebs() {
            return;
        }
        // A copy stands by itself. Of a write that is not durable yet it would be the one sector that a power cut leaves.
        let durable = self.durable();
        if self.groomer.relocations_wait == Some(durable) {
            return;
        }
        let mut from = 0;
        while self.groomer.relocating < READS_MIN as u32 {
            let Some(slot) = self.groomer.relocations.range(from..).next().copied() else {
                self.groomer.relocations_wait = Some(durable);
                return;
            };
            from = slot + 1;
            let leb = &self.lebs[slot / self.config.geometry.slots_per_leb()];
            let ready = leb.state == LebState::Closed && leb.closed <= durable && leb.buffered == 0;
            if self.lebs.is_live(slot) && !ready {
                continue;
            }
            self.groomer.relocations.remove(&slot);
            if self.lebs.is_live(slot) {
                self.groomer.relocating += 1;
                self.read_media(slot, 1, ReadFor::Relocate);
            }
        }
    }

    fn take_victim(&mut self) {
        while self.wants_victim() {
            let next = self.next_victim();
            let ahead = self.groomer.ahead.leb.take().is_some_and(|leb| Some(leb) == next);
            let Some(leb) = next else {
                self.groomer.idle_lebs = 0;
                self.groomer.pace.end_round();
                if self.groomer.pace.is_short() || self.wants_eviction() {
                    self.want_eligible();
                }
                self.found_none();
                return;
            };
            self.groomer.idle_lebs = self.groomer.idle_lebs.saturating_sub(1);
            let live = self.lebs[leb].live;
            if live > 0 {
                self.lebs[leb].state = LebState::Grooming;
                self.groomer.victim = Some(Victim { leb, live, page: 0, reads: 0, ahead, moved: 0, first: 0 });
                return;
            }
            self.groomer.pace.earn(0, 0, self.narrow.leb_slots);
            self.empty_leb(leb);
            if self.emptied.len() > 8 {
                return;
            }
        }
    }

    fn read_victim(&mut self) {
        let geometry = self.config.geometry;
        let window = READS_MIN.max(READS_PER_DIE * geometry.dies as usize);
        if self.rests() {
            return;
        }
        while let Some(victim) = &mut self.groomer.victim {
            if victim.reads + self.groomer.moved.len() >= window {
                return;
            }
            if victim.page == geometry.pages_per_leb() {
                if victim.reads == 0 && self.groomer.moved.is_empty() {
                    if !self.leave_chosen() {
                        return self.hurry_for_room();
                    }
                    self.finish_victim();
                    // It may be all that was short.
                    self.reclaim();
                    self.tell_pace();
                    self.take_victim();
                    continue;
                }
                return;
            }
            let first = geometry.first_slot(victim.leb, victim.page);
            victim.page += 1;
            let lebs = &self.lebs;
            let mut live = (first..first + geometry.slots_per_page).filter(|slot| lebs.is_live(*slot));
            let Some(from) = live.next() else { continue };
            let to = live.next_back().unwrap_or(from);
            victim.reads += 1;
            self.read_media(from, to - from + 1, ReadFor::Groom);
        }
    }

    pub(crate) fn groom_read_done(&mut self, command: u64, read: &MediaRead, headers: &[Option<Header>]) {
        if read.purpose == ReadFor::Optimise {
            return self.optimise_read_done(command, read, headers);
        }
        let geometry = &self.config.geometry;
        let slot = geometry.first_slot(read.leb, read.page);
        let mut live = self.groomer.lists.pop().unwrap_or_default();
        for (i, header) in (0..).zip(headers) {
            let at = read.at + i;
            if !self.lebs.is_live(slot + at) {
                continue;
            }
            match header {
                Some(header) if header.kind.is_sector() && self.holds(header.lba, slot + at) => {
                    live.push((at, self.home_of(header.lba, slot + at)));
                }
                // It stays where it is, mapped and unreadable, until the host writes or trims it.
                _ => {
                    self.stats.damaged_sectors += u64::from(!self.lebs[read.leb].damaged);
                    self.lebs[read.leb].damaged = true;
                }
            }
        }
        let relocated = read.purpose == ReadFor::Relocate;
        match &mut self.groomer.victim {
            Some(victim) if !relocated => victim.reads -= 1,
            _ => self.groomer.relocating -= 1,
        }
        let moved = Moved { id: command, live, done: 0, destination: None, slot, at: read.at, relocated };
        self.groomer.moved.push_back(moved);
    }

    fn move_pages(&mut self) {
        while let Some(mut page) = self.groomer.moved.pop_front() {
            let whole = self.move_page(&mut page);
            if !whole {
                self.groomer.moved.push_front(page);
                self.hurry_for_room();
                return;
            }
            page.live.clear();
            self.groomer.lists.push(page.live);
            self.commands.push(Command::Forget { id: page.id });
        }
    }

    /// Where the groomer can open no LEB, host writes can open none either. The checkpoint under way keeps LEBs in reserve and frees those of
    /// the one before, and without host writes its pace would never end it.
    fn hurry_for_room(&mut self) {
        if !self.can_open(Writer::Groom) {
            self.checkpointer.hurry();
        }
    }

    /// Moves what is live of a page; false when there is no room for all of it.
    fn move_page(&mut self, page: &mut Moved) -> bool {
        let victim = self.groomer.victim.as_ref().map_or(0, |victim| victim.live);
        let (mut moved, mut first, evicts) = (0, None, self.evicts() && !page.relocated);
        while let Some((at, lba)) = page.live.get(page.done).copied() {
            let slot = page.slot + at;
            if evicts && page.destination.is_none() && self.chose_to_leave(lba, slot) {
                page.done += 1;
                continue;
            }
            // The host may have written or trimmed it while it was read. Whose it is was looked at then.
            if self.lebs.is_live(slot) {
                let destination = match page.destination {
                    Some(destination) => destination,
                    None if self.slot_at(lba) != slot => Destination::of(self.groomer.streams - 1),
                    None => self.place_moved(lba, slot),
                };
                let Some(stream) = self.groom_stream(destination.stream) else {
                    if page.destination.is_none() {
                        // The host may give it up while it waits, and the policy is told then what it notes of it now.
                        self.lebs.set_note(self.lebs.place(slot), destination.note);
                        page.destination = Some(destination);
                    }
                    break;
                };
                self.move_sector((page.id, at - page.at), (lba, slot), stream, &destination);
                first = first.or(Some(lba));
                moved += 1;
            }
            page.destination = None;
            page.done += 1;
        }
        self.stats.groomed_sectors += u64::from(moved);
        if let Some(victim) = self.groomer.victim.as_mut().filter(|_| !page.relocated) {
            if victim.moved == 0 {
                victim.first = first.unwrap_or(0);
            }
            victim.moved += moved;
        }
        if evicts {
            self.groomer.note_fruitless(moved);
        } else if !page.relocated {
            // A LEB from before the layout shrank may hold more than fits into another.
            self.groomer.pace.earn(moved, victim, self.narrow.leb_slots.max(victim));
        }
        page.done == page.live.len()
    }

    /// Appends a sector that was read out of a slot, for everybody who refers to it.
    pub(crate) fn move_sector(
        &mut self,
        (read, first): (u64, u32),
        (lba, from): (u64, Slot),
        stream: Stream,
        destination: &Destination,
    ) {
        let run = self.reserve(stream, 1);
        let (seq, lag) = (self.seq, self.lag_of(self.seq));
        self.seq += 1;
        let mut header = Header { slot: run.slot, seq, kind: Kind::Data, lba, index: 0, remaining: 0, lag };
        if self.has_views || self.has_stake() {
            (header.kind, header.index, header.remaining) = (Kind::Moved, (from >> 16) as u16, from as u16);
        }
        let source = Source::Groom { id: read, first };
        self.commands.push(Command::Stage { buf: run.buf, at: run.at, count: 1, header, source });
        let (leb, _) = self.lebs.place(run.slot);
        let entry = &mut self.lebs[leb];
        entry.times.count_moved(destination.written);
        entry.host_only = false;
        match self.has_views {
            true => self.redirect(lba, from, run.slot),
            false => _ = self.map.set(lba, run.slot),
        }
        self.lebs.set_dead(from);
        self.lebs.set_live(run.slot, destination.note);
        if let Some(owners) = &mut self.lebs.owners {
            owners.add(lba, run.slot, 1);
        }
        self.commit(stream, run);
    }

    /// Goes through the victim once more.
    pub(crate) fn reread_victim(&mut self) {
        if let Some(victim) = &mut self.groomer.victim {
            victim.page = 0;
        }
    }

    fn finish_victim(&mut self) {
        let victim = self.groomer.victim.take().expect("there is one");
        if self.evicts() {
            self.groomer.pace.earn_slots(self.narrow.leb_slots.saturating_sub(victim.live));
        }
        self.groomer.evict.moves_all = false;
        self.note_reclaimed(&victim);
        if self.lebs[victim.leb].live == 0 {
            self.empty_leb(victim.leb);
        } else {
            debug_assert!(self.lebs[victim.leb].damaged);
            self.lebs[victim.leb].state = LebState::Closed;
        }
    }

    /// Changes the groomer's policy.
    pub fn set_policy(&mut self, policy: Policy) {
        self.config.policy = policy;
        if !self.groomer.evict.is_on() {
            self.install_policy(policy.build(&shape(&self.config)));
        }
    }

    /// Has the groomer decide as this policy says.
    pub(crate) fn install_policy(&mut self, policy: Box<dyn GroomPolicy>) {
        self.groomer.set_policy(policy);
        self.lebs.set_note_bits(self.groomer.policy.note_bits());
        self.streams_changed();
        if self.map.is_preallocated() {
            self.groomer.preallocate();
        }
    }

    /// The policy uses other streams than before.
    pub(crate) fn streams_changed(&mut self) {
        self.groomer.streams_changed();
        self.host_left = self.left_for_host();
        // Streams that it does not use would keep their LEBs open for ever.
        for stream in self.groomer.streams..ZONE_STREAMS {
            self.give_up(Stream::Data(stream));
        }
    }

    /// What the policy holds in memory, bytes.
    pub fn policy_memory(&self) -> usize {
        self.groomer.memory() + self.lebs.note_memory()
    }

    /// The groomer's policy, by name.
    pub fn policy_name(&self) -> &'static str {
        self.groomer.policy_name()
    }

    /// Changes how the groomer and host writes share the device when free space is short.
    pub fn set_pacing(&mut self, pacing: Pacing) {
        let sector = u64::from(self.config.geometry.sector_bytes);
        self.groomer.pace.set_pacing(match pacing {
            Pacing::Rounds(bytes) => Pacing::Rounds(bytes / sector),
            other => other,
        });
    }

    /// Whether free space is short, so that the groomer works and host writes are paced.
    pub fn is_short(&self) -> bool {
        self.groomer.pace.is_short()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::small;
    use crate::space::HOST_RESERVE;
    use crate::types::{Admission, Request};

    #[test]
    fn what_is_left_in_open_lebs_is_no_free_space_where_none_can_be_opened() {
        let mut layer = small::attached(Config { policy: Policy::Zones, ..small::config() });
        for placement in 0..layer.placements() {
            let write = Request::Write { lba: placement.into(), count: 1, fua: false };
            while layer.submit_placed(placement, 0, write) != Admission::Done {
                small::make_ready(&mut layer);
            }
        }
        layer.free.truncate(1);
        layer.tell_pace();
        assert!(!layer.is_short(), "{} slots are left in open LEBs", layer.host_left);
        layer.free.clear();
        layer.ready.truncate(HOST_RESERVE - layer.preparing as usize);
        layer.tell_pace();
        assert!(layer.is_short(), "{} LEBs are free", layer.free_lebs());
    }
}
