//! Checkpoints: the whole forward map and the LEB table, written beside the traffic.
//!
//! A checkpoint *begins* at a sequence number; the map is then written piece by piece while requests go on. It
//! counts from the moment its *anchor* is durable, which is written only after everything that the pieces may point to is
//! durable. Recovery loads the pieces and replays everything appended since the beginning; a piece that was written late
//! holds some of that already, and replaying it again changes nothing.
//!
//! Where there are snapshots, their list and the index of what they see follow. Whether something was changed for the first time since a snapshot
//! is no question that can be answered twice: recovery takes of the index what each slot shows, and adds to it only what is newer than that
//! slot. What removes from the index waits until the checkpoint is done.

use std::collections::VecDeque;

use crate::append::Writer;
use crate::geometry::Geometry;
use crate::layer::{Config, Ftl, id};
use crate::leb::{LebState, Stream};
use crate::snapshot::encode_snapshot;
use crate::snapshot::views::{Key, PIECE_HEAD, SNAPSHOT_BYTES};
use crate::stats::Stats;
use crate::types::{Command, Error, Kind, LebId, NO_SLOT};

/// What stands at the root of a device: where its checkpoint is. The device keeps it in the superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Everything appended before is in the checkpoint; everything from here on must be replayed.
    pub begin: u64,
    /// Sequence numbers below were in use when the anchor was written.
    pub next: u64,
    /// A sync failed since: nothing that has this number or a higher one counts, whatever can still be read of it.
    pub doubted_from: Option<u64>,
    /// Nothing was appended since `begin`.
    pub clean: bool,
    /// Where the checkpoint began: its slots are newer. Older than `begin` after a clean detach and attach.
    pub checkpoint_begin: u64,
    /// The checkpoint's LEBs, in order.
    pub checkpoint: Vec<LebId>,
    /// Slots of the checkpoint.
    pub checkpoint_slots: u32,
    /// LEBs that were open at `begin`: replay looks at these, and at LEBs opened later.
    pub open: Vec<LebId>,
    /// Counters when the anchor was written.
    pub stats: Stats,
}

/// Bytes in front of the entries of a checkpoint slot: kind u16, count u16, 4 reserved.
pub(crate) const PIECE_BYTES: usize = 8;
/// A run of map entries: first sector u48, count u16; then count slots u32, 0 for none.
pub(crate) const RUN_BYTES: usize = 8;
/// A LEB: opened u64, closed u64, erases u32, stream u8, 3 reserved.
pub(crate) const LEB_BYTES: usize = 24;
/// The kind of a slot of map runs; `count` is the number of runs.
pub(crate) const PIECE_MAP: u16 = 1;
/// The kind of a slot of LEBs; the first LEB's number stands in front of them (u32, 4 reserved).
pub(crate) const PIECE_LEBS: u16 = 2;
/// The kind of a slot of snapshots; in front of them stands the number from which on records are newer than the list (u64).
pub(crate) const PIECE_SNAPSHOTS: u16 = 3;
/// The kind of a slot of what snapshots see; `count` is the number of pieces. A piece: run of sectors u64, snapshot u64, entries u64, holes u64; then a
/// u32 for each entry that is no hole.
pub(crate) const PIECE_VIEWS: u16 = 4;
/// The kind of a slot of clones; 8 reserved bytes stand in front of them. It comes behind those of snapshots, as of the same moment.
pub(crate) const PIECE_CLONES: u16 = 5;

enum Phase {
    Map {
        next: u64,
    },
    Lebs {
        next: LebId,
    },
    /// Slots of the list of snapshots, all as of one moment.
    Snapshots {
        slots: VecDeque<Vec<u8>>,
    },
    Views {
        next: Key,
    },
    /// Waits until everything below is durable.
    Durable {
        seq: u64,
    },
    /// The anchor is being written.
    Anchor(Box<Anchor>),
}

struct Running {
    begin: u64,
    phase: Phase,
    lebs: Vec<LebId>,
    slots: u32,
    open: Vec<LebId>,
    clean: bool,
    /// Slots in all, estimated at the beginning, for the pace.
    estimate: u64,
    /// The interval that it keeps pace with is no longer than this.
    interval: u64,
}

pub(crate) struct Checkpointer {
    committed: Anchor,
    /// See [`further_lebs`].
    further: usize,
    /// There may be a recovery.
    recovers: bool,
    running: Option<Running>,
    /// As fast as can be: space is short, or the device is idle or closing.
    urgent: bool,
    /// Somebody waits for the next one.
    awaited: bool,
    wanted: bool,
    closing: bool,
    closed: bool,
    /// Sequence number before which no checkpoint can be due: saves working the interval out at every write.
    not_before: u64,
    /// Sectors that were unmapped since the last one began.
    unmapped: u64,
}

impl Checkpointer {
    pub fn new(committed: Anchor, config: &Config) -> Checkpointer {
        Checkpointer {
            committed,
            further: further_lebs(config, 0) as usize,
            recovers: !config.power_protected,
            running: None,
            urgent: false,
            awaited: false,
            wanted: false,
            closing: false,
            closed: false,
            not_before: 0,
            unmapped: 0,
        }
    }

    /// The checkpoint that counts.
    pub fn committed(&self) -> &Anchor {
        &self.committed
    }

    /// Where the checkpoint that counts begins.
    pub fn begin(&self) -> u64 {
        self.committed.begin
    }

    /// Asks for a checkpoint now.
    pub fn want(&mut self) {
        self.wanted = true;
        self.urgent = true;
    }

    /// The same, and somebody waits until it counts, also where one is under way and nothing else goes on.
    pub fn await_next(&mut self) {
        self.want();
        self.awaited = true;
    }

    /// The configured interval is another one.
    pub fn interval_changed(&mut self) {
        self.not_before = 0;
    }

    /// So many sectors were unmapped.
    pub fn unmapped(&mut self, count: u64) {
        self.unmapped += count;
    }

    /// Asks for the last checkpoint.
    pub fn close(&mut self) {
        self.closing = true;
        self.urgent = true;
    }

    /// LEBs of the checkpoint that counts.
    pub fn lebs(&self) -> &[LebId] {
        &self.committed.checkpoint
    }

    pub fn is_closing(&self) -> bool {
        self.closing
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Free LEBs that host writes leave besides the usual ones, where a checkpoint takes more than one: for the next checkpoint, or the rest
    /// of the one under way, and for that of a recovery.
    pub fn reserve(&self) -> usize {
        (2 * self.further).saturating_sub(self.taken().unwrap_or(0))
    }

    /// Free LEBs that the groomer leaves. A recovery can begin at any moment, and writes a checkpoint before anything can be groomed; what
    /// the one under way took is part of the log by then, and not free.
    pub fn groom_reserve(&self) -> usize {
        let recovery = self.further + 1;
        recovery + self.taken().map_or(0, |taken| recovery.saturating_sub(taken) * usize::from(self.recovers))
    }

    /// A checkpoint takes so many LEBs beyond its first from now on. Returns whether that is news.
    pub fn set_further(&mut self, further: usize) -> bool {
        std::mem::replace(&mut self.further, further) != further
    }

    /// Whether one is under way.
    pub fn has_begun(&self) -> bool {
        self.running.is_some()
    }

    /// Whether there may be a recovery, and no checkpoint is under way or was the last.
    pub fn rests(&self) -> bool {
        self.recovers && self.running.is_none() && !self.closed
    }

    /// Whether nothing but the checkpoint that counts was appended since it began, the next number being this.
    pub fn says_everything(&self, seq: u64) -> bool {
        let Anchor { begin, next, checkpoint_slots, ref checkpoint, .. } = self.committed;
        seq == begin || (seq == next && next - begin == u64::from(checkpoint_slots) + checkpoint.len() as u64)
    }

    /// Ends the one under way as soon as it can be. Returns whether there is one.
    pub fn hurry(&mut self) -> bool {
        self.urgent |= self.has_begun();
        self.has_begun()
    }

    /// LEBs of the checkpoint under way.
    fn taken(&self) -> Option<usize> {
        self.running.as_ref().map(|running| running.lebs.len())
    }

    /// Whether an urgent checkpoint is under way.
    pub fn is_running(&self) -> bool {
        self.urgent && self.running.is_some()
    }

    /// The checkpoint stream opened a LEB.
    pub fn opened(&mut self, leb: LebId) {
        self.running.as_mut().expect("only a checkpoint appends to its stream").lebs.push(leb);
    }
}

/// So many times its own size lies between two checkpoints, at least.
const APART: u64 = 16;

/// LEBs whose sectors must have been unmapped before a checkpoint comes early for their sake.
const WORTH_LEBS: u64 = 8;

/// Slots of a checkpoint with so many sectors mapped and so many bytes of what snapshots see, at most. In a sparse address space each sector may be a
/// run of its own.
fn checkpoint_slots(geometry: &Geometry, mapped: u64, sparse: bool, views: u64) -> u64 {
    let room = u64::from(geometry.sector_bytes) - 64;
    let run = if sparse { RUN_BYTES as u64 } else { 0 };
    let map = mapped * (run + 4) + mapped / 64;
    let lebs = u64::from(geometry.blocks) * LEB_BYTES as u64;
    // A piece, a snapshot or a clone stands in one slot.
    let views = if views > 0 { views.div_ceil(room + 32 - (PIECE_HEAD + 256) as u64) + 3 } else { 0 };
    map.div_ceil(room) + lebs.div_ceil(room) + 1 + views
}

/// LEBs that they fill; each begins with a header.
pub(crate) fn checkpoint_lebs(geometry: &Geometry, mapped: u64, sparse: bool, views: u64) -> u32 {
    checkpoint_slots(geometry, mapped, sparse, views).div_ceil(u64::from(geometry.slots_per_leb() - 1)) as u32
}

/// LEBs that a recovery's checkpoint takes at most, beyond its first: trims that are not durable come back, so the map may be full. With
/// capacitors there is no recovery.
pub(crate) fn further_lebs(config: &Config, views: u64) -> u32 {
    if config.power_protected {
        return 0;
    }
    checkpoint_lebs(&config.geometry, config.room(), config.is_sparse(), views) - 1
}

impl Ftl {
    /// LEBs closed up to this number may be groomed: no recovery needs them.
    pub(crate) fn groomable_before(&self) -> u64 {
        if self.config.power_protected { u64::MAX } else { self.checkpointer.begin() }
    }

    /// Slots between two checkpoints: as configured, more for a large map, less where space is scarce.
    fn checkpoint_interval(&self) -> u64 {
        let spare = self.narrowed().geometry.slots().saturating_sub(self.config.room().max(self.live_sectors()));
        let cost = self.checkpoint_estimate();
        self.config.checkpoint_interval.max(APART * cost).min(spare / 4).max(1)
    }

    fn checkpoint_estimate(&self) -> u64 {
        checkpoint_slots(&self.config.geometry, self.map.mapped(), self.config.is_sparse(), self.index_bytes())
    }

    /// Whether so much was unmapped that a checkpoint comes early: what lived there is free for use only when it counts, and until then writes
    /// go to blocks or memory that nobody has touched, which costs more.
    fn frees_much(&mut self) -> bool {
        let worth = WORTH_LEBS * u64::from(self.config.geometry.slots_per_leb());
        let unmapped = self.checkpointer.unmapped;
        if unmapped < worth || unmapped < APART * self.checkpoint_estimate() {
            return false;
        }
        let waits = !self.config.power_protected && !self.checkpointer.closing;
        let gains = !self.config.erase_before_program && waits && self.any_blank();
        if !gains {
            self.checkpointer.unmapped = 0;
        }
        gains
    }

    /// Begins a checkpoint when one is due, and goes on with the one that is running.
    pub(crate) fn checkpoint(&mut self) {
        if self.checkpointer.running.is_none() {
            if self.has_stake() {
                return;
            }
            let mut due = self.checkpointer.wanted;
            if self.seq >= self.checkpointer.not_before && !self.config.power_protected {
                // A growing map may have put it off meanwhile; a shrinking one makes it late by one interval at most.
                self.checkpointer.not_before = self.checkpointer.committed.begin + self.checkpoint_interval();
                due |= self.seq >= self.checkpointer.not_before;
            }
            let early = !due && self.frees_much();
            due |= early;
            // The last one waits until nothing else moves: it must be the last thing on media.
            let quiet = !self.groomer.is_busy() && self.emptied.is_empty();
            let last = self.checkpointer.closing && !self.checkpointer.closed && quiet;
            if !(due || last) || self.checkpointer.closed || (self.lacks_checkpoint_room() && self.frees_more()) {
                return;
            }
            self.begin_checkpoint(early);
        }
        self.write_pieces();
    }

    /// Whether a checkpoint that began now would take LEBs that a recovery's takes, should the power fail before it counts. That of a
    /// recovery itself is tried again with the same.
    pub(crate) fn lacks_checkpoint_room(&self) -> bool {
        let recovery = self.checkpointer.further + 1;
        let begun = self.checkpointer.running.is_some() || self.checkpointer.closed;
        if begun {
            return false;
        }
        self.checkpointer.recovers
            && self.is_started()
            && self.no_space.is_none()
            && (self.free_lebs() as usize) < 2 * recovery
    }

    /// Whether the groomer can free LEBs before the next checkpoint.
    fn frees_more(&self) -> bool {
        let room = || self.groom_streams().any(|stream| self.left_in_open(stream) > 0);
        let work = || self.groomer.is_busy() || self.eligible().iter().next().is_some();
        !self.emptied.is_empty() || ((self.can_open(Writer::Groom) || room()) && work())
    }

    /// An early one is for the sake of what it frees, and done soon.
    fn begin_checkpoint(&mut self, early: bool) {
        if self.checkpointer.closing && self.config.geometry.parity > 0 {
            // Nothing is open after a clean detach, so that no redundancy is left incomplete.
            Stream::data().for_each(|stream| self.give_up(stream));
        }
        self.seal_all();
        let open = Stream::data().filter_map(|stream| self.open_leb_of(stream)).collect();
        let estimate = self.checkpoint_estimate();
        let interval = if early { APART * estimate } else { u64::MAX };
        self.checkpointer.unmapped = 0;
        (self.checkpointer.wanted, self.checkpointer.awaited) = (false, false);
        self.checkpointer.running = Some(Running {
            begin: self.seq,
            phase: Phase::Map { next: 0 },
            lebs: Vec::new(),
            slots: 0,
            open,
            clean: self.checkpointer.closing && !self.groomer.is_busy() && self.emptied.is_empty(),
            estimate,
            interval,
        });
    }

    /// Writes as many pieces as the pace asks for and the buffers take.
    fn write_pieces(&mut self) {
        let interval = self.checkpoint_interval();
        while let Some(running) = &self.checkpointer.running {
            match running.phase {
                Phase::Map { .. } | Phase::Lebs { .. } | Phase::Snapshots { .. } | Phase::Views { .. } => {
                    // Done after a quarter of the interval, so that replay stays bounded.
                    let (appended, interval) = (self.seq - running.begin, interval.min(running.interval));
                    let due = running.estimate * (appended - u64::from(running.slots)) * 4 / interval + 1;
                    if (!self.checkpointer.urgent && u64::from(running.slots) >= due)
                        || !self.room(Stream::Checkpoint, Writer::Checkpoint, 1, 0)
                    {
                        return;
                    }
                    self.write_piece();
                }
                Phase::Durable { seq } => {
                    if self.durable() < seq {
                        return;
                    }
                    self.write_anchor();
                }
                Phase::Anchor(_) => return,
            }
        }
    }

    fn write_piece(&mut self) {
        let running = self.checkpointer.running.as_mut().expect("running");
        let room = self.config.geometry.sector_bytes as usize;
        match &mut running.phase {
            Phase::Snapshots { slots } => {
                let (bytes, slots) = (slots.pop_front().unwrap_or_default(), std::mem::take(slots));
                let phase = if slots.is_empty() { Phase::Views { next: (0, 0) } } else { Phase::Snapshots { slots } };
                self.append_piece(bytes, phase);
            }
            Phase::Views { next } => {
                let next = *next;
                match self.views_piece(next, room) {
                    (bytes, Some(next)) => self.append_piece(bytes, Phase::Views { next }),
                    (bytes, None) => self.append_last_piece(bytes),
                }
            }
            Phase::Map { next } => {
                let next = *next;
                let (bytes, next) = self.map_piece(next, room);
                let phase = match next {
                    Some(next) => Phase::Map { next },
                    None => Phase::Lebs { next: 0 },
                };
                self.append_piece(bytes, phase);
                self.groomer.pace.trickle(4);
            }
            Phase::Lebs { next } => {
                let next = *next;
                let (bytes, next) = self.leb_piece(next, room);
                if next < self.lebs.len() {
                    self.append_piece(bytes, Phase::Lebs { next });
                } else if self.has_views {
                    let slots = self.snapshot_pieces(room);
                    self.append_piece(bytes, Phase::Snapshots { slots });
                } else {
                    self.append_last_piece(bytes);
                }
            }
            Phase::Durable { .. } | Phase::Anchor(_) => unreachable!("no pieces in these phases"),
        }
    }

    fn append_last_piece(&mut self, bytes: Vec<u8>) {
        self.append_piece(bytes, Phase::Durable { seq: u64::MAX });
        self.give_up(Stream::Checkpoint);
        let seq = self.seq;
        self.checkpointer.running.as_mut().expect("running").phase = Phase::Durable { seq };
        self.want_durable(seq);
    }

    fn append_piece(&mut self, bytes: Vec<u8>, phase: Phase) {
        self.append_meta(Stream::Checkpoint, Kind::Checkpoint, bytes);
        let running = self.checkpointer.running.as_mut().expect("running");
        running.slots += 1;
        running.phase = phase;
    }

    /// Map entries from sector `next` on, as many as fit; and where to go on.
    fn map_piece(&self, mut next: u64, room: usize) -> (Vec<u8>, Option<u64>) {
        let mut bytes = vec![0; PIECE_BYTES];
        let mut runs = 0u16;
        let more = loop {
            if bytes.len() + RUN_BYTES + 4 > room {
                break Some(next);
            }
            let Some(lba) = self.map.next_mapped(next) else { break None };
            let fit = (room - bytes.len() - RUN_BYTES) / 4;
            let max = (fit as u64).min(self.map.sectors() - lba).min(u64::from(u16::MAX));
            let mut slots: Vec<u32> = Vec::with_capacity(fit);
            // A hole of one sector costs less as an entry than as a new run.
            while (slots.len() as u64) < max {
                let slot = self.map.get(lba + slots.len() as u64);
                if slot == NO_SLOT && slots.last() == Some(&NO_SLOT) {
                    break;
                }
                slots.push(slot);
            }
            if slots.last() == Some(&NO_SLOT) {
                slots.pop();
            }
            bytes.extend_from_slice(&lba.to_le_bytes()[..6]);
            bytes.extend_from_slice(&(slots.len() as u16).to_le_bytes());
            bytes.extend(slots.iter().flat_map(|slot| slot.to_le_bytes()));
            runs += 1;
            next = lba + slots.len() as u64;
        };
        bytes[0..2].copy_from_slice(&PIECE_MAP.to_le_bytes());
        bytes[2..4].copy_from_slice(&runs.to_le_bytes());
        (bytes, more)
    }

    /// LEBs from `next` on, as many as fit; and where to go on.
    fn leb_piece(&self, next: LebId, room: usize) -> (Vec<u8>, LebId) {
        let fit = ((room - PIECE_BYTES - 8) / LEB_BYTES) as u32;
        let end = (next + fit).min(self.lebs.len());
        let mut bytes = vec![0; PIECE_BYTES];
        bytes[0..2].copy_from_slice(&PIECE_LEBS.to_le_bytes());
        bytes[2..4].copy_from_slice(&((end - next) as u16).to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes.extend([0; 4]);
        for leb in next..end {
            let leb = &self.lebs[leb];
            bytes.extend(leb.opened.to_le_bytes());
            bytes.extend(leb.closed.to_le_bytes());
            bytes.extend(leb.erases.to_le_bytes());
            bytes.extend([leb.stream.code(), 0, 0, 0]);
        }
        (bytes, end)
    }

    /// The lists of snapshots, at least one slot, and of clones.
    fn snapshot_pieces(&self, room: usize) -> VecDeque<Vec<u8>> {
        let fit = (room - PIECE_BYTES - size_of::<u64>()) / SNAPSHOT_BYTES;
        let all = self.snapshots();
        let slots = (0..all.len().div_ceil(fit).max(1)).map(|slot| {
            let here = &all[slot * fit..all.len().min((slot + 1) * fit)];
            let mut bytes = vec![0; PIECE_BYTES];
            bytes[0..2].copy_from_slice(&PIECE_SNAPSHOTS.to_le_bytes());
            bytes[2..4].copy_from_slice(&(here.len() as u16).to_le_bytes());
            bytes.extend(self.seq.to_le_bytes());
            here.iter().for_each(|snapshot| bytes.extend(encode_snapshot(snapshot)));
            bytes
        });
        let clones = self.clones().chunks(fit).map(|here| {
            let mut bytes = vec![0; PIECE_BYTES + size_of::<u64>()];
            bytes[0..2].copy_from_slice(&PIECE_CLONES.to_le_bytes());
            bytes[2..4].copy_from_slice(&(here.len() as u16).to_le_bytes());
            here.iter().for_each(|clone| bytes.extend(clone.encode()));
            bytes
        });
        slots.chain(clones).collect()
    }

    /// What snapshots see and clones hold, from a piece on, as much as fits; and where to go on.
    fn views_piece(&self, next: Key, room: usize) -> (Vec<u8>, Option<Key>) {
        let mut bytes = vec![0; PIECE_BYTES];
        let (mut count, mut end, mut more) = (0u16, next, None);
        // Those of clones come behind all others: their addresses are higher.
        for (key, piece) in self.views.pieces(next).chain(self.clones.pieces(next)) {
            if bytes.len() + piece.bytes() > room {
                // Not at the piece that is next now: until then one may come in between, and recovery looks for it there.
                more = Some(end);
                break;
            }
            end = (key.0, key.1 + 1);
            [key.0, key.1, piece.present, piece.holes].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            bytes.extend(piece.slots.iter().flat_map(|slot| slot.to_le_bytes()));
            count += 1;
        }
        bytes[0..2].copy_from_slice(&PIECE_VIEWS.to_le_bytes());
        bytes[2..4].copy_from_slice(&count.to_le_bytes());
        (bytes, more)
    }

    fn write_anchor(&mut self) {
        let running = self.checkpointer.running.as_mut().expect("running");
        let anchor = Box::new(Anchor {
            begin: running.begin,
            next: self.seq,
            doubted_from: None,
            clean: running.clean,
            checkpoint_begin: running.begin,
            checkpoint: running.lebs.clone(),
            checkpoint_slots: running.slots,
            open: running.open.clone(),
            stats: self.stats,
        });
        running.phase = Phase::Anchor(anchor.clone());
        self.commands.push(Command::Anchor { id: id::ANCHOR, anchor });
    }

    pub(crate) fn anchor_done(&mut self, result: Result<(), Error>) {
        let running = self.checkpointer.running.take().expect("an anchor belongs to a checkpoint");
        let Phase::Anchor(anchor) = running.phase else { unreachable!("the anchor is written last") };
        if let Err(error) = result {
            self.durability.broken = Some(error);
            return self.fail_waiters();
        }
        let old = std::mem::replace(&mut self.checkpointer.committed, *anchor);
        self.checkpointer.not_before = 0;
        for leb in old.checkpoint {
            debug_assert_eq!(self.lebs[leb].state, LebState::Closed);
            self.empty_leb(leb);
        }
        self.free_dead();
        self.renew_checkpoint();
        self.checkpointer.closed = running.clean;
        // One may be waited for that was asked for while this one was under way: on a device at rest nothing else would hurry it.
        self.checkpointer.urgent = self.checkpointer.awaited || (self.checkpointer.closing && !running.clean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::small;
    use crate::types::{Admission, Request};

    /// Whether a checkpoint begins with so many LEBs free, and one about to be.
    fn begins(power_protected: bool, free: usize) -> bool {
        let mut layer = small::attached(Config { power_protected, ..small::config() });
        layer.free.truncate(free);
        layer.emptied.push_back((7, u64::MAX));
        layer.checkpointer.want();
        layer.checkpoint();
        layer.checkpointer.running.is_some()
    }

    #[test]
    fn a_checkpoint_leaves_room_for_that_of_a_recovery() {
        assert!(!begins(false, 1), "the power may fail before it counts");
        assert!(begins(false, 2));
        assert!(begins(true, 1), "with capacitors there is no recovery");
    }

    /// Whether a checkpoint begins early when so many sectors were unmapped, with free LEBs that are blank or were written before.
    fn begins_early(config: Config, unmapped: u64, blank: bool) -> bool {
        let mut layer = small::attached(config);
        for leb in layer.free.clone() {
            layer.lebs[leb].allocated = !blank;
        }
        layer.checkpointer.unmapped(unmapped);
        layer.checkpoint();
        layer.checkpointer.running.is_some()
    }

    #[test]
    fn a_checkpoint_comes_early_where_it_frees_much() {
        let flash = Config { erase_before_program: true, ..small::config() };
        let protected = Config { power_protected: true, ..small::config() };
        let worth = WORTH_LEBS * 16;
        assert!(begins_early(small::config(), worth, true));
        assert!(!begins_early(small::config(), worth - 1, true));
        assert!(!begins_early(small::config(), worth, false), "all that are free were written before");
        assert!(!begins_early(flash, worth, true), "flash is erased first");
        assert!(!begins_early(protected, worth, true), "no recovery needs what was unmapped");
    }

    #[test]
    fn what_was_unmapped_brings_one_early_checkpoint() {
        let mut layer = small::attached(small::config());
        layer.checkpointer.unmapped(WORTH_LEBS * 16);
        layer.checkpoint();
        assert!(layer.checkpointer.running.take().is_some());
        layer.checkpoint();
        assert!(layer.checkpointer.running.is_none(), "nothing was unmapped since");
    }

    /// Whether all pieces of a checkpoint are written when so many slots were appended since it began.
    fn is_written(early: bool, appended: u64) -> bool {
        let mut layer = small::attached(small::config());
        layer.work();
        small::make_ready(&mut layer);
        layer.begin_checkpoint(early);
        layer.seq += appended;
        layer.write_pieces();
        matches!(layer.checkpointer.running.as_ref().expect("running").phase, Phase::Durable { .. })
    }

    #[test]
    fn an_early_checkpoint_is_done_soon() {
        let soon = APART * small::attached(small::config()).checkpoint_estimate() / 4;
        assert!(is_written(true, soon) && !is_written(true, 0));
        assert!(!is_written(false, soon) && is_written(false, 250));
    }

    /// What the groomer moved behind the last checkpoint would stand in none.
    #[test]
    fn no_room_is_made_for_a_checkpoint_that_has_begun() {
        let mut layer = small::attached(small::config());
        layer.free.truncate(1);
        assert!(layer.lacks_checkpoint_room(), "another would take what a recovery needs");
        layer.begin_checkpoint(false);
        assert!(!layer.lacks_checkpoint_room());
    }

    /// The last free LEB is kept for a recovery, only the stream of the host's writes has room left, and there is a LEB to groom.
    #[test]
    fn a_checkpoint_waits_for_the_groomer_only_while_that_can_write() {
        let mut layer = small::attached(small::config());
        layer.work();
        small::make_ready(&mut layer);
        assert_eq!(layer.submit(0, Request::Write { lba: 0, count: 1, fua: false }), Admission::Done);
        small::make_ready(&mut layer);
        assert!(layer.left_in_open(Stream::Data(0)) > 0);
        layer.free.clear();
        layer.ready.truncate(1);
        (layer.lebs[9].state, layer.lebs[9].live) = (LebState::Closed, 1);
        assert!(layer.lacks_checkpoint_room());
        assert_eq!((layer.groom_stream(1), layer.frees_more()), (None, false), "what is left is for the host");
        layer.checkpointer.close();
        assert_eq!((layer.groom_stream(1), layer.frees_more()), (Some(Stream::Data(0)), true), "nothing more comes");
    }

    #[test]
    fn the_groomer_leaves_room_for_a_recovery_and_for_the_checkpoint_under_way() {
        let mut layer = small::attached(small::config());
        assert_eq!(layer.checkpointer.groom_reserve(), 1);
        layer.checkpointer.want();
        layer.begin_checkpoint(false);
        assert_eq!(layer.checkpointer.groom_reserve(), 2);
        layer.checkpointer.opened(7);
        assert_eq!(layer.checkpointer.groom_reserve(), 1);
    }
}
