//! Attach: from what stands on media back to a running layer.
//!
//! The device reads, this decides. First the checkpoint's slots, then, unless the last detach was clean, the first slot of
//! every LEB, then every slot of the LEBs that may hold something newer than the checkpoint. What is newer is replayed
//! in the order of its sequence numbers, whole writes and batches only.
//!
//! A missing number is a write that was never flushed, and legitimately gone, unless something newer
//! says that it was durable: then the log is damaged, and recovery stops rather than bring older data back.

mod forget;
mod snapshots;

use std::collections::BTreeMap;

use crate::append::LebHeader;
use crate::checkpoint::{
    Anchor, LEB_BYTES, PIECE_BYTES, PIECE_CLONES, PIECE_LEBS, PIECE_MAP, PIECE_SNAPSHOTS, PIECE_VIEWS, RUN_BYTES,
};
use crate::groom::Groomer;
use crate::layer::{Config, Ftl};
use crate::leb::{LebState, Lebs, Stream};
use crate::map::Map;
use crate::slots::UNNOTED;
use crate::snapshot::Record;
use crate::snapshot::clones::{Clones, is_inside, is_windowed};
use crate::snapshot::views::{CHUNK, Views};
use crate::trims::{self, TrimRecord};
use crate::types::{Header, Kind, LebId, NO_SLOT, Slot};
use snapshots::Loaded;

/// Low bits of a sequence number that count within one attach; the bits above are the attach epoch, so that
/// no number is ever used twice, whatever was lost.
pub const EPOCH_SHIFT: u32 = 40;

/// The first sequence number of an attach epoch.
pub const fn first_seq(epoch: u32) -> u64 {
    (epoch as u64) << EPOCH_SHIFT
}

/// A sequence number for people.
fn number(seq: u64) -> String {
    format!("number {} of attach {}", seq & ((1 << EPOCH_SHIFT) - 1), seq >> EPOCH_SHIFT)
}

/// Why a device cannot be recovered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The checkpoint is not complete.
    #[error("the checkpoint has {found} readable slots of {expected}")]
    Checkpoint {
        /// Slots that were read.
        found: u32,
        /// Slots that the anchor names.
        expected: u32,
    },
    /// The checkpoint contradicts itself or the format.
    #[error("the checkpoint makes no sense: {0}")]
    Nonsense(&'static str),
    /// Something that was flushed is missing from the log.
    #[error("{missing} flushed entries are missing from the log (the first has sequence number {first})")]
    Hole {
        /// How many.
        missing: u64,
        /// The first one's sequence number.
        first: u64,
    },
    /// A witness saw the device further on than it is now.
    #[error(
        "it is older than its witness, which saw everything durable up to {}; here the log ends at {}", number(*.witnessed), number(*.end)
    )]
    Older {
        /// Everything below was durable once.
        witnessed: u64,
        /// What can be had ends here.
        end: u64,
    },
    /// The log goes on behind what the anchor says, so the anchor is an old one and the newer ones are lost.
    #[error(
        "the log was written in attach {found}, and the superblock knows of none behind attach {known}: its newer copies are lost"
    )]
    Behind {
        /// The newest attach epoch in the log.
        found: u32,
        /// The newest that the anchor knows.
        known: u32,
    },
}

/// A host sector found in the log, or a slot of a batch's trims.
#[derive(Clone, Copy)]
struct Entry {
    seq: u64,
    lba: u64,
    /// [`NO_SLOT`] for trims, whose records stand elsewhere.
    slot: u32,
    index: u16,
    remaining: u16,
}

/// What stands in the log between writes.
enum Event {
    Trim(TrimRecord),
    /// A sector was moved from one slot to another, for everybody who referred to it.
    Moved {
        seq: u64,
        lba: u64,
        from: Slot,
        to: Slot,
    },
    /// The snapshots changed.
    Change {
        seq: u64,
        record: Record,
    },
}

impl Event {
    /// The slot that a sector was moved out of, if that is what happened.
    fn moved_from(&self) -> Option<Slot> {
        match self {
            Event::Moved { from, .. } => Some(*from),
            Event::Trim(_) | Event::Change { .. } => None,
        }
    }

    fn seq(&self) -> u64 {
        match self {
            Event::Trim(trim) => trim.seq,
            Event::Moved { seq, .. } | Event::Change { seq, .. } => *seq,
        }
    }
}

/// A recovery under way.
pub struct Recovery {
    config: Config,
    anchor: Anchor,
    map: Map,
    lebs: Lebs,
    pieces: u32,
    /// What snapshots see.
    views: Views,
    /// What clones hold.
    clones: Clones,
    /// What the checkpoint says of that.
    loaded: Loaded,
    entries: Vec<Entry>,
    events: Vec<Event>,
    /// Records of batches, by the number of their slot.
    batch_trims: BTreeMap<u64, Vec<TrimRecord>>,
    /// Sequence numbers seen that are neither entries nor trims.
    others: Vec<u64>,
    durable: u64,
    scanned: Vec<bool>,
    /// What was replayed, once it was, see [`Recovery::only_moves`].
    moved_from: Option<Vec<LebId>>,
    /// [`Recovery::replay`] was done.
    replayed: bool,
    /// The newest attach epoch that opened a LEB.
    newest_epoch: u32,
    /// The newest that opened one for the host or the groomer: only an attach that took requests does.
    newest_host_epoch: u32,
}

impl Recovery {
    /// A recovery from this anchor.
    ///
    /// # Errors
    /// The anchor names LEBs that do not exist.
    pub fn new(config: Config, anchor: Anchor) -> Result<Recovery, Damage> {
        let blocks = config.geometry.blocks;
        if anchor.checkpoint.iter().chain(&anchor.open).any(|leb| *leb >= blocks) {
            return Err(Damage::Nonsense("the anchor names a LEB that does not exist"));
        }
        let mut named = anchor.checkpoint.clone();
        named.sort_unstable();
        if named.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Damage::Nonsense("the anchor names a LEB twice"));
        }
        Ok(Recovery {
            map: Map::new(config.sectors),
            lebs: Lebs::new(blocks, config.geometry.slots_per_leb()),
            pieces: 0,
            views: Views::default(),
            clones: Clones::default(),
            loaded: Loaded::default(),
            entries: Vec::new(),
            events: Vec::new(),
            batch_trims: BTreeMap::new(),
            others: Vec::new(),
            durable: anchor.begin,
            scanned: vec![false; blocks as usize],
            moved_from: None,
            replayed: false,
            newest_epoch: 0,
            newest_host_epoch: 0,
            config,
            anchor,
        })
    }

    /// The LEBs of the checkpoint, to be read in this order, and each to be given to [`Recovery::slot`].
    pub fn checkpoint_lebs(&self) -> Vec<LebId> {
        self.anchor.checkpoint.clone()
    }

    /// Whether every slot of the checkpoint was read.
    pub fn has_checkpoint(&self) -> bool {
        self.pieces >= self.anchor.checkpoint_slots
    }

    /// Whether there is nothing to replay.
    pub fn is_clean(&self) -> bool {
        self.anchor.clean
    }

    /// The anchor that must be on media before the layer of this attach epoch writes anything: after a clean detach
    /// it says that from now on there may be something to replay.
    pub fn anchor_for(&self, epoch: u32) -> Anchor {
        let mut anchor = self.anchor.clone();
        if anchor.clean {
            anchor.begin = first_seq(epoch);
            anchor.clean = false;
            anchor.doubted_from = None;
            anchor.open.clear();
        }
        anchor
    }

    /// What the first slot of a LEB says, if it can be read.
    pub fn leb_header(&mut self, leb: LebId, header: Option<LebHeader>) {
        let Some(header) = header.filter(|header| header.leb == leb) else { return };
        self.opened_in(header.opened, header.stream != Stream::Checkpoint);
        let entry = &mut self.lebs[leb];
        if header.opened >= entry.opened {
            entry.opened = header.opened;
            entry.erases = header.erases;
            entry.stream = header.stream;
        }
    }

    /// The first slot of a LEB cannot be believed, and the one behind it passed its check: without a header the LEB would be
    /// left out of the log, and what it holds would be missed only if something newer said that it was durable.
    pub fn headless(&mut self, leb: LebId, second: &Header) {
        let entry = &mut self.lebs[leb];
        if second.seq > entry.opened && second.seq >= self.anchor.begin {
            // Nothing of this life is older: slots are filled in the order of their numbers.
            entry.opened = second.seq;
            self.opened_in(second.seq, second.kind != Kind::Checkpoint);
        }
    }

    fn opened_in(&mut self, seq: u64, by_host: bool) {
        let epoch = (seq >> EPOCH_SHIFT) as u32;
        self.newest_epoch = self.newest_epoch.max(epoch);
        if by_host {
            self.newest_host_epoch = self.newest_host_epoch.max(epoch);
        }
    }

    /// Holds the anchor against the headers of all LEBs, which must have been given before, where the superblock knows of attach
    /// epochs up to `epoch`. Where a clean anchor turns out to be that of one attach earlier, what that attach wrote is to be
    /// replayed. Gives the newest epoch that was in use.
    ///
    /// # Errors
    /// The log is newer than the anchor can explain. A newer attach's checkpoint alone is no such thing: its recovery was cut.
    pub fn catch_up(&mut self, epoch: u32) -> Result<u32, Damage> {
        let begun = (self.anchor.begin >> EPOCH_SHIFT) as u32;
        let opened_since = self.anchor.clean && self.newest_host_epoch == begun + 1;
        if self.newest_epoch > epoch + 1 || (self.newest_host_epoch > begun && !opened_since) {
            return Err(Damage::Behind { found: self.newest_epoch, known: epoch });
        }
        if opened_since {
            // What was read so far is the checkpoint, which is older.
            self.anchor = self.anchor_for(self.newest_host_epoch);
            self.durable = self.anchor.begin;
            self.others.clear();
            self.entries.clear();
            self.events.clear();
            self.batch_trims.clear();
        }
        Ok(epoch.max(self.newest_epoch))
    }

    /// Everything below `seq` was durable once, as somebody says who saw it: it must be found. To be told behind
    /// [`Recovery::catch_up`].
    ///
    /// # Errors
    /// The device cannot have come that far.
    pub fn witnessed(&mut self, seq: u64) -> Result<(), Damage> {
        let same_attach = seq >> EPOCH_SHIFT == self.anchor.begin >> EPOCH_SHIFT;
        let end =
            if self.anchor.clean { self.anchor.next } else { first_seq((self.anchor.begin >> EPOCH_SHIFT) as u32 + 1) };
        if seq > end {
            return Err(Damage::Older { witnessed: seq, end: self.anchor.next });
        }
        if same_attach && !self.anchor.clean {
            self.durable = self.durable.max(seq);
        }
        Ok(())
    }

    /// Sequence number when a LEB was opened, as far as it is known by now: 0 before its header or the checkpoint told.
    pub fn opened(&self, leb: LebId) -> u64 {
        self.lebs[leb].opened
    }

    /// LEBs that may hold something newer than the checkpoint: all their slots must be given to [`Recovery::slot`].
    pub fn lebs_to_scan(&self) -> Vec<LebId> {
        let was_open = |leb: &LebId| self.anchor.open.contains(leb);
        (0..self.lebs.len())
            .filter(|leb| !self.scanned[*leb as usize])
            .filter(|leb| self.lebs[*leb].opened >= self.anchor.begin.max(1) || was_open(leb))
            .collect()
    }

    /// The LEB was read as far as it goes.
    pub fn scanned(&mut self, leb: LebId) {
        self.scanned[leb as usize] = true;
    }

    /// A slot that passed its check.
    ///
    /// # Errors
    /// A checkpoint slot that makes no sense.
    pub fn slot(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Damage> {
        let leb = header.slot / self.config.geometry.slots_per_leb();
        if header.kind == Kind::Checkpoint
            && header.seq >= self.anchor.checkpoint_begin
            && self.anchor.checkpoint.contains(&leb)
            && !self.has_checkpoint()
        {
            self.pieces += 1;
            self.piece(header.seq, bytes)?;
        }
        if header.seq < self.anchor.begin {
            return Ok(());
        }
        // Attaches that never got as far as an anchor of their own leave nothing but pieces of checkpoints.
        if header.seq >> EPOCH_SHIFT != self.anchor.begin >> EPOCH_SHIFT {
            return Ok(());
        }
        // What a sync that failed should have covered may be in a cache that no later sync empties.
        let counts = |seq: u64| self.anchor.doubted_from.is_none_or(|from| seq < from);
        if !counts(header.seq) {
            return Ok(());
        }
        if header.lag != u32::MAX {
            let durable = header.seq.checked_sub(u64::from(header.lag));
            self.durable = self.durable.max(durable.ok_or(Damage::Nonsense("a lag before the first number"))?);
        }
        // What a LEB held in an earlier life is of no account: an attach that came to nothing may have used it again.
        if header.seq < self.lebs[leb].opened {
            return Ok(());
        }
        if header.kind.is_sector() && header.slot.is_multiple_of(self.config.geometry.slots_per_leb()) {
            // No writer of ours puts one there, and slot 0 stands for "not mapped".
            return Err(Damage::Nonsense("a host sector in the place of a LEB's header"));
        }
        let Header { seq, lba, slot, index, remaining, .. } = *header;
        match header.kind {
            Kind::Data => self.entries.push(Entry { seq, lba, slot, index, remaining }),
            Kind::BatchTrims => {
                let trims = trims::decode(bytes).ok_or(Damage::Nonsense("a slot of a batch's trim records"))?;
                self.batch_trims.insert(seq, trims);
                self.entries.push(Entry { seq, lba, slot: NO_SLOT, index, remaining });
            }
            Kind::Trims => {
                self.others.push(header.seq);
                let trims = trims::decode(bytes).ok_or(Damage::Nonsense("a slot of trim records"))?;
                if trims.iter().any(|trim| trim.seq <= header.seq) {
                    return Err(Damage::Nonsense("a trim that is older than its slot"));
                }
                self.events.extend(trims.into_iter().filter(|trim| counts(trim.seq)).map(Event::Trim));
            }
            Kind::Moved => {
                if !is_inside(self.map.sectors(), lba, 1) || header.moved_from() == NO_SLOT {
                    return Err(Damage::Nonsense("a moved sector that is none of the device's"));
                }
                self.others.push(seq);
                self.events.push(Event::Moved { seq, lba, from: header.moved_from(), to: slot });
            }
            Kind::Snapshot => {
                let record = Record::decode(bytes).ok_or(Damage::Nonsense("a change of the snapshots"))?;
                self.others.push(seq);
                self.events.push(Event::Change { seq, record });
            }
            Kind::LebHeader | Kind::Checkpoint => self.others.push(header.seq),
        }
        Ok(())
    }

    fn piece(&mut self, seq: u64, bytes: &[u8]) -> Result<(), Damage> {
        let short = Damage::Nonsense("a slot ends early");
        let u16_at = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]])).ok_or(short.clone());
        let (kind, count) = (u16_at(0)?, u16_at(2)?);
        let mut at = PIECE_BYTES;
        match kind {
            PIECE_MAP => {
                for _ in 0..count {
                    let run = bytes.get(at..at + RUN_BYTES).ok_or(short.clone())?;
                    let mut first = [0; 8];
                    first[..6].copy_from_slice(&run[..6]);
                    let first = u64::from_le_bytes(first);
                    let slots = usize::from(u16_at(at + 6)?);
                    at += RUN_BYTES;
                    if first + slots as u64 > self.map.sectors() {
                        return Err(Damage::Nonsense("a sector outside the device"));
                    }
                    let slots_bytes = bytes.get(at..at + 4 * slots).ok_or(short.clone())?;
                    for (lba, slot) in (first..).zip(slots_bytes.chunks_exact(4)) {
                        let slot = u32::from_le_bytes(slot.try_into().expect("four bytes"));
                        if u64::from(slot) >= self.config.geometry.slots() {
                            return Err(Damage::Nonsense("a slot outside the media"));
                        }
                        if slot != NO_SLOT {
                            self.map.set(lba, slot);
                        }
                    }
                    at += 4 * slots;
                }
            }
            PIECE_LEBS => {
                let first = u32::from(u16_at(at)?) | u32::from(u16_at(at + 2)?) << 16;
                if u64::from(first) + u64::from(count) > u64::from(self.lebs.len()) {
                    return Err(Damage::Nonsense("a LEB that does not exist"));
                }
                let table = bytes.get(at + 8..at + 8 + usize::from(count) * LEB_BYTES).ok_or(short)?;
                for (leb, entry) in (first..).zip(table.chunks_exact(LEB_BYTES)) {
                    let word = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes"));
                    let leb = &mut self.lebs[leb];
                    (leb.opened, leb.closed) = (word(0), word(8));
                    leb.erases = u32::from_le_bytes(entry[16..20].try_into().expect("four bytes"));
                    leb.stream = Stream::from_code(entry[20]).unwrap_or(Stream::Checkpoint);
                }
            }
            PIECE_SNAPSHOTS => self.load_snapshots(count, bytes)?,
            PIECE_VIEWS => self.load_views(seq, count, bytes)?,
            PIECE_CLONES => self.load_clones(count, bytes)?,
            _ => return Err(Damage::Nonsense("a slot of an unknown kind")),
        }
        Ok(())
    }

    /// Replays what is newer than the checkpoint, for attach epoch `epoch`.
    ///
    /// # Errors
    /// The checkpoint is not complete, or something that was flushed is missing.
    pub fn replay(&mut self, epoch: u32) -> Result<(), Damage> {
        if !self.has_checkpoint() {
            return Err(Damage::Checkpoint { found: self.pieces, expected: self.anchor.checkpoint_slots });
        }
        let seq = first_seq(epoch);
        if seq < self.anchor.begin {
            return Err(Damage::Nonsense("the anchor begins in a later attach"));
        }
        self.take_loaded()?;
        if !self.anchor.clean {
            self.check_holes()?;
            self.moved_from = self.only_moves();
            self.replay_log()?;
        }
        // Room for notes comes before live slots do: afterwards all of them would have to be gone through.
        self.lebs.set_note_bits(Groomer::new(&self.config).policy.note_bits());
        self.rebuild_lebs(seq)?;
        self.replayed = true;
        Ok(())
    }

    /// Gives the layer, which goes on in attach epoch `epoch`, after [`Recovery::replay`] for that, which is done now if it was not yet.
    /// Unless it is only read from, call [`Ftl::start`] before the first request.
    ///
    /// # Errors
    /// As those of a replay.
    pub fn finish(mut self, epoch: u32) -> Result<Ftl, Damage> {
        if !self.replayed {
            self.replay(epoch)?;
        }
        let (groomer, anchor) = (Groomer::new(&self.config), self.anchor_for(epoch));
        let state = (self.map, self.views, self.clones);
        Ok(Ftl::with_state(self.config, state, self.lebs, groomer, first_seq(epoch), anchor))
    }

    /// Every sequence number from the checkpoint's beginning to the newest that is known durable must be there.
    fn check_holes(&mut self) -> Result<(), Damage> {
        let mut seen: Vec<u64> = self.others.clone();
        seen.extend(self.entries.iter().map(|entry| entry.seq));
        seen.extend(self.events.iter().map(Event::seq));
        seen.retain(|seq| *seq < self.durable);
        seen.sort_unstable();
        seen.dedup();
        let missing = self.durable - self.anchor.begin - seen.len() as u64;
        if missing == 0 {
            return Ok(());
        }
        let first = (self.anchor.begin..).zip(&seen).find(|(expected, seq)| expected != *seq);
        let first = first.map_or(self.anchor.begin + seen.len() as u64, |(expected, _)| expected);
        Err(Damage::Hole { missing, first })
    }

    fn replay_log(&mut self) -> Result<(), Damage> {
        self.entries.sort_unstable_by_key(|entry| entry.seq);
        self.entries.dedup_by_key(|entry| entry.seq);
        self.events.sort_by_key(Event::seq);
        self.events.dedup_by_key(|event| event.seq());
        let mut events = std::mem::take(&mut self.events).into_iter().peekable();
        let entries = std::mem::take(&mut self.entries);
        let sectors = self.map.sectors();
        let mut at = 0;
        while at < entries.len() {
            let first = entries[at];
            let count = usize::from(first.index) + usize::from(first.remaining) + 1;
            let batch = entries.get(at..at + count).unwrap_or(&[]);
            let whole = first.index == 0
                && !batch.is_empty()
                && (0..).zip(batch).all(|(i, entry)| {
                    let behind = usize::from(entry.index) + usize::from(entry.remaining) + 1;
                    entry.seq == first.seq + i && u64::from(entry.index) == i && behind == count
                });
            if !whole {
                if first.seq < self.durable {
                    return Err(Damage::Nonsense("a flushed write is not whole"));
                }
                at += 1;
                continue;
            }
            while let Some(event) = events.next_if(|event| event.seq() < first.seq) {
                self.replay_event(event)?;
            }
            for entry in batch {
                if entry.slot == NO_SLOT {
                    let trims = self.batch_trims.remove(&entry.seq).unwrap_or_default();
                    trims.into_iter().try_for_each(|trim| self.replay_trim(trim))?;
                    continue;
                }
                if !is_inside(sectors, entry.lba, 1) {
                    return Err(Damage::Nonsense("the log names a sector outside the device"));
                }
                if is_windowed(entry.lba) {
                    self.replay_in_clone(entry.lba, entry.slot);
                    continue;
                }
                let old = self.map.set(entry.lba, entry.slot);
                self.keep(entry.seq, entry.lba, old);
            }
            at += batch.len();
        }
        events.try_for_each(|event| self.replay_event(event))
    }

    fn replay_event(&mut self, event: Event) -> Result<(), Damage> {
        match event {
            Event::Trim(trim) => self.replay_trim(trim)?,
            Event::Moved { seq, lba, from, to } => self.replay_moved(seq, lba, from, to),
            Event::Change { seq, record } => self.replay_change(seq, &record)?,
        }
        Ok(())
    }

    fn replay_trim(&mut self, trim: TrimRecord) -> Result<(), Damage> {
        if !is_inside(self.map.sectors(), trim.lba, trim.count) {
            return Err(Damage::Nonsense("the log trims outside the device"));
        }
        if is_windowed(trim.lba) {
            self.clones.trim((&self.map, &self.views), trim.lba, trim.count, |_| {});
            return Ok(());
        }
        self.keep_range(&trim);
        self.map.clear(trim.lba, trim.count, |_| {});
        Ok(())
    }

    /// Which slots are live follows from the map, and from that which LEBs are free.
    fn rebuild_lebs(&mut self, seq: u64) -> Result<(), Damage> {
        let lebs = &mut self.lebs;
        let mut shared = false;
        self.map.for_each(|_, slot| {
            shared |= lebs.is_live(slot);
            if !shared {
                lebs.set_live(slot, UNNOTED);
            }
        });
        if shared {
            return Err(Damage::Nonsense("two sectors in one slot"));
        }
        self.mark_seen()?;
        let lebs = &mut self.lebs;
        for id in 0..lebs.len() {
            let leb = &mut lebs[id];
            if leb.opened >= seq {
                return Err(Damage::Nonsense("a LEB that was opened in a later attach"));
            }
            // Whether an erase survived is not known: a LEB may have been written to and have no header.
            leb.dirty = true;
            if leb.closed < leb.opened || leb.closed > seq || leb.opened >= self.anchor.begin {
                leb.closed = seq;
            }
            let kept = self.anchor.checkpoint.contains(&id);
            if kept && leb.live > 0 {
                return Err(Damage::Nonsense("a host sector in a LEB of the checkpoint"));
            }
            // What was replayed is needed until the next checkpoint counts, also where none of it is live any more.
            // What an attach left that never got that far is not.
            let replayed = !self.anchor.clean
                && (self.anchor.open.contains(&id)
                    || leb.opened >= self.anchor.begin.max(1)
                        && leb.opened >> EPOCH_SHIFT == self.anchor.begin >> EPOCH_SHIFT);
            leb.state = if leb.live > 0 || kept || replayed { LebState::Closed } else { LebState::Free };
            if kept {
                leb.stream = Stream::Checkpoint;
            } else if leb.stream == Stream::Checkpoint {
                // An old checkpoint: nothing but room to be had.
                leb.stream = Stream::FIRST;
            }
        }
        Ok(())
    }
}

impl Ftl {
    /// Makes ready for writing. After an unclean detach this begins the checkpoint that must be on media before the first
    /// request is taken.
    pub fn start(&mut self) {
        if !self.is_started() {
            self.checkpointer.want();
        }
        self.recovers_space = true;
        self.work();
    }

    /// Whether the checkpoint of [`Ftl::start`] is on media.
    pub fn is_started(&self) -> bool {
        self.checkpointer.begin() >> EPOCH_SHIFT == self.seq >> EPOCH_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::small;

    /// A LEB that an attach which came to nothing used again still holds what it held before: that is no part of the log.
    #[test]
    fn an_earlier_life_is_not_replayed() {
        let config = small::config();
        let geometry = config.geometry;
        for (opened, found) in [(first_seq(1) + 2, true), (first_seq(2), false)] {
            let anchor = Anchor { begin: first_seq(1), ..Anchor::default() };
            let mut recovery = Recovery::new(config.clone(), anchor).expect("a sound anchor");
            recovery.leb_header(5, Some(LebHeader { leb: 5, stream: Stream::FIRST, erases: 1, opened }));
            let slot = 5 * geometry.slots_per_leb() + 3;
            let header =
                Header { slot, seq: first_seq(1) + 4, kind: Kind::Data, lba: 7, index: 0, remaining: 0, lag: u32::MAX };
            recovery.slot(&header, &[]).expect("a sound slot");
            let layer = recovery.finish(3).expect("recovered");
            assert_eq!(layer.map().get(7), if found { slot } else { NO_SLOT });
        }
    }
}
