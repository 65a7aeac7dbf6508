//! A host's requests: which requests to members follow from each.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use device::{BatchOp, Completion, Io, IoError, SnapshotId, Submitted, check_batch};
use uuid::Uuid;

use crate::command::{Command, What};
use crate::geometry::{Level, Piece, Shape};
use crate::holes::Holes;
use crate::log::Log;
use crate::meta::Meta;
use crate::regions::Regions;
use crate::reshape::{Reshape, StripeMove};
use crate::resync::Sync;
use crate::snapshots::Snapshots;
use crate::wire::{Record, RecordPiece, Role, encode_marks};
use crate::{Damage, MEMBERS_MAX};

/// Requests under way at most, of hosts and of the array itself.
const DEPTH: usize = 512;
/// Sectors that a member must have room for beside a change: its record's head, marks and superblocks.
const ROOM_BESIDE: u64 = 8;

/// A set of members, by position.
pub(crate) type Mask = u8;

pub(crate) fn bit(member: usize) -> Mask {
    1 << member
}

/// A member's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub uuid: Uuid,
    pub role: Role,
    /// It takes requests.
    pub present: bool,
    /// Requests that it has.
    pub load: u32,
    /// Sectors that these write.
    pub writing: u64,
    /// Sectors that it takes for certain, where that is a limit; those that it is writing may be among them or not.
    pub room: Option<u64>,
}

/// Where an array is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Assembling,
    Active,
    Failed(Damage),
    Stopped,
}

/// A request that went to members.
#[derive(Debug)]
pub(crate) struct Part {
    pub job: u64,
    pub member: usize,
    /// What of the request it is.
    pub piece: Piece,
    /// The array's snapshot that is read.
    pub snapshot: Option<SnapshotId>,
    /// Sectors that it writes.
    pub writes: u64,
    /// Members that were asked to read it.
    pub tried: Mask,
    /// Those of them that are there and could not.
    pub broken: Mask,
}

/// What parts belong to.
#[derive(Debug)]
pub(crate) enum Job {
    Read(ReadJob),
    Change(ChangeJob),
    Flush(FlushJob),
    /// Of the state machine in `meta.rs`.
    Meta,
    /// Of the copying in `resync.rs`.
    Sync,
    /// Of the map in `holes.rs`: members that have not answered, and whether the others have nothing there.
    Holes {
        left: usize,
        empty: bool,
    },
    /// Marks that are taken back.
    Marks {
        left: u32,
    },
    /// A stripe that gets its new place.
    Stripe(StripeMove),
    /// The places of old stripes that nothing stands at any more.
    Tail,
    /// How many stripes have their new places, for the superblocks.
    Moved,
}

#[derive(Debug)]
pub(crate) struct ReadJob {
    pub tag: u64,
    /// What is given back; empty where one part brings all of it.
    pub buf: Vec<u8>,
    pub left: u32,
    pub error: Option<IoError>,
}

#[derive(Debug)]
pub(crate) struct ChangeJob {
    pub tag: u64,
    pub left: u32,
    /// Members that did it.
    pub done: Mask,
    /// Members that did not.
    pub failed: Mask,
    /// Those of them that had no room for it, and changed nothing.
    pub full: Mask,
    pub error: Option<IoError>,
    /// What it touches lies in here.
    pub sectors: Range<u64>,
    /// Of a mirror: what it touches, and whether the marks went along.
    pub regions: Vec<Range<usize>>,
    pub marked: bool,
    /// Its record.
    pub slot: Option<usize>,
    /// What members are asked once those that were asked first have done it.
    pub then: Vec<(Piece, What)>,
}

#[derive(Debug)]
pub(crate) struct FlushJob {
    /// Of the host's, its tag.
    pub tag: Option<u64>,
    /// Which flush it is, counted from 1.
    pub number: u64,
    pub left: u32,
    /// Members that it went to.
    pub asked: Mask,
    pub failed: Mask,
    pub error: Option<IoError>,
}

/// Several devices as one.
pub struct Array {
    pub(crate) shape: Shape,
    pub(crate) uuid: Uuid,
    pub(crate) name: String,
    pub(crate) events: u64,
    pub(crate) seats: Vec<Seat>,
    pub(crate) life: Life,
    pub(crate) jobs: BTreeMap<u64, Job>,
    pub(crate) parts: BTreeMap<u64, Part>,
    pub(crate) next: u64,
    pub(crate) commands: VecDeque<Command>,
    pub(crate) done: VecDeque<Completion>,
    /// Answers that wait until the members say who is there.
    pub(crate) held: Vec<Completion>,
    /// Members to be left out as soon as that can be noted.
    pub(crate) leaving: Mask,
    pub(crate) meta: Meta,
    pub(crate) regions: Regions,
    pub(crate) log: Log,
    pub(crate) sync: Sync,
    pub(crate) reshape: Reshape,
    pub(crate) holes: Holes,
    pub(crate) snapshots: Snapshots,
    /// Flushes begun so far.
    pub(crate) begun: u64,
    /// What was done before this flush began is durable.
    pub(crate) durable: u64,
    /// A flush of the array's own is under way.
    pub(crate) own_flush: bool,
    /// One is wanted.
    pub(crate) flush_wanted: bool,
    /// No copy takes writes any more: one of them answers all reads.
    pub(crate) pinned: bool,
    /// A change failed somewhere: members that refused one are asked last.
    pub(crate) doubts: bool,
    /// Turns between copies that are equally busy.
    pub(crate) turn: usize,
    pub(crate) retried_reads: u64,
    /// Changes whose members have not all been asked yet.
    pub(crate) half_asked: u32,
    pub(crate) logged_writes: u64,
    pub(crate) replayed: u64,
}

impl Array {
    /// Identity of the array.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Where everything lies.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Host capacity, sectors.
    pub fn sectors(&self) -> u64 {
        match self.meta.added {
            // Only once all members have noted it what is new is there to stay.
            Some(added) if self.shape.level == Level::Concat => self.shape.data[..added].iter().sum(),
            _ => self.shape.sectors(),
        }
    }

    /// The largest request, bytes; a write up to it is never torn.
    pub fn max_request_bytes(&self) -> u32 {
        self.shape.largest * self.shape.sector_bytes
    }

    /// Takes a request under a tag of the caller's choice, as a device does.
    pub fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        match &self.life {
            Life::Assembling => return Submitted::Busy(io),
            Life::Failed(_) | Life::Stopped => return Submitted::Done(Err(IoError::Media)),
            Life::Active => {}
        }
        match self.check(&io) {
            Ok(true) => {}
            Ok(false) => {
                let buf = if let Io::Read { buf, .. } | Io::ReadSnapshot { buf, .. } = io { Some(buf) } else { None };
                return Submitted::Done(Ok(buf));
            }
            Err(error) => return Submitted::Done(Err(error)),
        }
        if self.jobs.len() >= DEPTH {
            return Submitted::Busy(io);
        }
        match io {
            Io::Read { lba, buf }
                if self.is_half_asked(&(lba..lba + buf.len() as u64 / u64::from(self.shape.sector_bytes))) =>
            {
                Submitted::Busy(Io::Read { lba, buf })
            }
            Io::Read { lba, buf } => {
                self.read(tag, lba, buf);
                Submitted::Pending
            }
            Io::ReadSnapshot { id, lba, buf } => {
                self.read_snapshot(tag, id, lba, buf);
                Submitted::Pending
            }
            io if self.is_frozen() => Submitted::Busy(io),
            Io::Flush => {
                self.flush(Some(tag));
                Submitted::Pending
            }
            io if self.must_wait(&io) => {
                self.flush_wanted = true;
                self.drive();
                Submitted::Busy(io)
            }
            io if self.lacks_room(&io) => Submitted::Done(Err(IoError::Full)),
            io => {
                self.change(tag, &io);
                Submitted::Pending
            }
        }
    }

    /// A member has room for so many sectors, where that is a limit. Told with each of its answers, a change that does not fit everywhere is
    /// refused before any member has it.
    pub fn has_room(&mut self, member: usize, sectors: Option<u64>) {
        if let Some(seat) = self.seats.get_mut(member) {
            seat.room = sectors;
        }
    }

    /// Whether a member may be too full for a change, with what the array writes besides.
    fn lacks_room(&self, io: &Io) -> bool {
        if self.seats.iter().all(|seat| seat.room.is_none()) {
            return false;
        }
        let sectors: u64 = match io {
            Io::Write { .. } | Io::WriteZeroes { allocate: true, .. } => {
                self.ranges(io).iter().map(|range| range.end - range.start).sum()
            }
            Io::Batch { ops, .. } => written(ops),
            _ => return false,
        };
        let needed = 2 * sectors + ROOM_BESIDE;
        let is_full = |seat: &Seat| seat.room.is_some_and(|room| room < seat.writing + needed);
        (0..self.seats.len()).any(|member| self.serves(member) && is_full(&self.seats[member]))
    }

    /// Whether a request is to be carried out; `false` where there is nothing to do.
    fn check(&self, io: &Io) -> Result<bool, IoError> {
        let sector = u64::from(self.shape.sector_bytes);
        let in_sectors = |len: usize| match (len as u64).is_multiple_of(sector) {
            true => Ok(len as u64 / sector),
            false => Err(IoError::OutOfRange),
        };
        let (lba, count, sized) = match io {
            Io::Read { lba, buf } => (*lba, in_sectors(buf.len())?, false),
            Io::ReadSnapshot { id, .. } if self.snapshot(*id).is_none() => return Err(IoError::NoSnapshot),
            Io::ReadSnapshot { lba, buf, .. } => (*lba, in_sectors(buf.len())?, false),
            Io::Flush => return Ok(true),
            _ if self.pinned => return Err(IoError::ReadOnly),
            Io::Write { lba, data, .. } => (*lba, in_sectors(data.len())?, true),
            Io::Trim { lba, count, .. } => (*lba, *count, false),
            Io::WriteZeroes { lba, count, allocate, .. } => (*lba, *count, *allocate),
            Io::Batch { ops, data, .. } => {
                let shape = (self.sectors(), self.shape.sector_bytes, self.max_request_bytes());
                check_batch(shape, ops, data.len())?;
                return self.check_parts(ops).map(|()| true);
            }
        };
        if lba.checked_add(count).is_none_or(|end| end > self.sectors()) {
            return Err(IoError::OutOfRange);
        }
        if sized && count > u64::from(self.shape.largest) {
            return Err(IoError::TooLarge);
        }
        Ok(count > 0)
    }

    /// Every range that a change touches.
    pub(crate) fn ranges(&self, io: &Io) -> Vec<Range<u64>> {
        let sector = self.shape.sector_bytes as usize;
        let one = |lba: u64, count: u64| std::iter::once(lba..lba + count).collect();
        match io {
            Io::Write { lba, data, .. } => one(*lba, (data.len() / sector) as u64),
            Io::Trim { lba, count, .. } | Io::WriteZeroes { lba, count, .. } => one(*lba, *count),
            Io::Batch { ops, .. } => ops.iter().map(BatchOp::sectors).collect(),
            Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush => Vec::new(),
        }
    }

    /// Whether a change cannot be taken now.
    fn must_wait(&mut self, io: &Io) -> bool {
        let ranges = self.ranges(io);
        if self.shape.level == Level::Raid1 {
            return ranges.iter().any(|range| self.sync.holds(&self.regions.of(range)));
        }
        if ranges.iter().any(|range| self.log.covers(range)) {
            return true;
        }
        if self.shape.moved.is_some() && ranges.iter().any(|range| self.is_being_moved(range)) {
            return true;
        }
        if !self.log.is_full() {
            return false;
        }
        match io {
            Io::Batch { ops, .. } => self.shape.parts(ops).len() > 1,
            Io::Write { .. } | Io::WriteZeroes { allocate: true, .. } => {
                ranges.iter().any(|range| self.shape.pieces(range.start, range.end - range.start).len() > 1)
            }
            _ => false,
        }
    }

    /// Begins a job.
    pub(crate) fn job(&mut self, job: Job) -> u64 {
        self.next += 1;
        self.jobs.insert(self.next, job);
        self.next
    }

    /// Asks a member for a part of a job.
    pub(crate) fn send(&mut self, job: u64, piece: Piece, what: What) {
        let writes = match &what {
            What::Write { part, .. } => part.len() as u64 / u64::from(self.shape.sector_bytes),
            What::Batch { ops, .. } => written(ops),
            _ => 0,
        };
        self.ask_part(Part { job, member: piece.member, piece, snapshot: None, writes, tried: 0, broken: 0 }, what);
    }

    fn ask_part(&mut self, part: Part, what: What) {
        let member = part.member;
        self.next += 1;
        self.seats[member].load += 1;
        self.seats[member].writing += part.writes;
        self.parts.insert(self.next, part);
        self.commands.push_back(Command { member, tag: self.next, what });
    }

    /// Whether a member has what is written to it, and takes it.
    pub(crate) fn serves(&self, member: usize) -> bool {
        let seat = &self.seats[member];
        seat.present && self.leaving & bit(member) == 0 && !matches!(seat.role, Role::Left(_))
    }

    /// Those that do.
    pub(crate) fn serving(&self) -> Vec<usize> {
        (0..self.seats.len()).filter(|member| self.serves(*member)).collect()
    }

    /// The copies that have everything.
    pub(crate) fn whole_ones(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.seats.len()).filter(|member| self.serves(*member) && self.seats[*member].role == Role::Active)
    }

    /// The first of them.
    pub(crate) fn primary(&self) -> Option<usize> {
        self.whole_ones().next()
    }

    fn read(&mut self, tag: u64, lba: u64, buf: Vec<u8>) {
        let sector = self.shape.sector_bytes as usize;
        let pieces = self.shape.pieces(lba, (buf.len() / sector) as u64);
        let left = pieces.len() as u32;
        if let [piece] = pieces[..] {
            let job = self.job(Job::Read(ReadJob { tag, buf: Vec::new(), left, error: None }));
            self.read_piece(job, piece, None, (0, 0), buf);
            return;
        }
        let job = self.job(Job::Read(ReadJob { tag, buf, left, error: None }));
        for piece in pieces {
            self.read_piece(job, piece, None, (0, 0), vec![0; piece.count as usize * sector]);
        }
    }

    /// Asks for a piece of a read, as it is or as a snapshot shows it: of a mirror the less busy of the copies that have it and were not
    /// `tried`. Without one the read fails. Copies that are there and could not read it are `broken`.
    pub(crate) fn read_piece(
        &mut self,
        job: u64,
        piece: Piece,
        snapshot: Option<SnapshotId>,
        (tried, broken): (Mask, Mask),
        buf: Vec<u8>,
    ) {
        let asked = match snapshot {
            None => self.reader(&piece, tried).map(|member| (member, What::Read { lba: piece.lba, buf })),
            Some(id) => {
                let reader = self.snapshot_reader(id, &piece, tried);
                reader.map(|(member, id)| (member, What::ReadSnapshot { id, lba: piece.lba, buf }))
            }
        };
        let Some((member, what)) = asked else {
            let is_gone = snapshot.is_some_and(|id| self.snapshot(id).is_none());
            return self.read_done(job, piece, Err(if is_gone { IoError::NoSnapshot } else { IoError::Media }));
        };
        let piece = Piece { member, ..piece };
        self.ask_part(Part { job, member, piece, snapshot, writes: 0, tried: tried | bit(member), broken }, what);
    }

    pub(crate) fn reader(&mut self, piece: &Piece, tried: Mask) -> Option<usize> {
        if self.shape.level != Level::Raid1 {
            return (tried & bit(piece.member) == 0).then_some(piece.member);
        }
        let regions = self.regions.of(&(piece.lba..piece.lba + piece.count));
        if self.pinned {
            return self.primary().filter(|member| tried & bit(*member) == 0);
        }
        if self.regions.any_unsynced(regions) {
            return self.whole_ones().find(|member| tried & bit(*member) == 0);
        }
        let count = self.seats.len();
        self.turn = (self.turn + 1) % count;
        let turn = self.turn;
        let members = (0..count).map(|at| (at + turn) % count);
        members
            .filter(|member| self.serves(*member) && tried & bit(*member) == 0)
            .min_by_key(|member| (self.doubts && self.is_doubted(*member), self.seats[*member].load))
    }

    /// Makes what was answered before durable, for the host or for the array itself.
    pub(crate) fn flush(&mut self, tag: Option<u64>) {
        let serving = self.serving();
        self.begun += 1;
        self.own_flush |= tag.is_none();
        let (number, left) = (self.begun, serving.len() as u32);
        let asked = serving.iter().fold(0, |mask, member| mask | bit(*member));
        let job = self.job(Job::Flush(FlushJob { tag, number, left, asked, failed: 0, error: None }));
        for member in serving {
            self.send(job, Piece { member, lba: 0, before: 0, count: 0 }, What::Flush);
        }
    }

    fn change(&mut self, tag: u64, io: &Io) {
        self.note_holes(io);
        match self.shape.level {
            Level::Raid1 => self.mirrored(tag, io),
            _ => self.spread(tag, io),
        }
    }

    /// A change of a mirror: every member that counts takes the same.
    fn mirrored(&mut self, tag: u64, io: &Io) {
        let sector = self.shape.sector_bytes as usize;
        let ranges = self.ranges(io);
        let regions: Vec<Range<usize>> = ranges.iter().map(|range| self.regions.of(range)).collect();
        let mut carried: Vec<usize> = regions.iter().flat_map(|regions| self.regions.begin(regions.clone())).collect();
        carried.sort_unstable();
        let marked = !carried.is_empty();
        let serving = self.serving();
        let left = serving.len() as u32;
        let sectors = hull(&ranges);
        let change = ChangeJob {
            tag,
            left,
            done: 0,
            failed: 0,
            full: 0,
            error: None,
            sectors,
            regions,
            marked,
            slot: None,
            then: Vec::new(),
        };
        let job = self.job(Job::Change(change));
        let zeros;
        let (mut ops, data, fua): (Vec<BatchOp>, &[u8], bool) = match io {
            Io::Write { lba, data, fua } => {
                let count = (data.len() / sector) as u32;
                (vec![BatchOp::Write { lba: *lba, count }], data, *fua)
            }
            Io::WriteZeroes { lba, count, fua, allocate: true } => {
                let op = BatchOp::Write { lba: *lba, count: *count as u32 };
                zeros = vec![0; *count as usize * sector];
                (vec![op], &zeros, *fua)
            }
            Io::Trim { lba, count, fua } | Io::WriteZeroes { lba, count, fua, .. } => {
                (vec![BatchOp::Trim { lba: *lba, count: *count }], &[], *fua)
            }
            Io::Batch { ops, data, fua } => (ops.to_vec(), data, *fua),
            Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush => return,
        };
        let plain = if marked { None } else { ops.first().copied().filter(|_| ops.len() == 1) };
        let marks = self.marks_of(&carried);
        // Most changes bring no marks along: their data are copied once, for all members.
        let data: Arc<[u8]> = if marks.is_empty() {
            data.into()
        } else {
            let mut all = data.to_vec();
            marks.iter().for_each(|(_, sector)| all.extend(sector));
            all.into()
        };
        ops.extend(marks.iter().map(|(index, _)| BatchOp::Write { lba: *index, count: 1 }));
        let own = ops.len() - marks.len();
        let mut shared: Option<(u64, Arc<[BatchOp]>)> = None;
        for member in serving {
            let what = match plain {
                Some(BatchOp::Write { lba, .. }) => {
                    What::Write { lba, data: Arc::clone(&data), part: 0..data.len(), fua }
                }
                Some(BatchOp::Trim { lba, count }) => What::Zeroes { lba, count, fua },
                None => {
                    // Where the marks lie depends on the member's size.
                    let at = self.shape.own_from(member);
                    let ops = match &shared {
                        Some((known, ops)) if *known == at => Arc::clone(ops),
                        _ => {
                            for (op, (index, _)) in ops[own..].iter_mut().zip(&marks) {
                                *op = BatchOp::Write { lba: self.shape.bitmap_at(member, *index), count: 1 };
                            }
                            let ops: Arc<[BatchOp]> = ops.clone().into();
                            shared = Some((at, Arc::clone(&ops)));
                            ops
                        }
                    };
                    What::Batch { ops, data: Arc::clone(&data), fua }
                }
            };
            self.send(job, Piece { member, lba: 0, before: 0, count: 0 }, what);
        }
    }

    /// The sectors of marks in which these regions stand, by their number, as they are to be.
    pub(crate) fn marks_of(&self, regions: &[usize]) -> Vec<(u64, Vec<u8>)> {
        let bits = self.shape.bits_in_sector() as usize;
        let mut indices: Vec<u64> = regions.iter().map(|region| (region / bits) as u64).collect();
        indices.dedup();
        indices.into_iter().map(|index| (index, self.marks(index))).collect()
    }

    /// One such sector.
    pub(crate) fn marks(&self, index: u64) -> Vec<u8> {
        let bits = self.shape.bits_in_sector() as usize;
        let is_marked = |at| self.regions.is_dirty(index as usize * bits + at);
        encode_marks(self.uuid, index, self.shape.sector_bytes as usize, is_marked)
    }

    /// A change of an array whose members hold different things.
    fn spread(&mut self, tag: u64, io: &Io) {
        let sector = self.shape.sector_bytes as usize;
        let touched = hull(&self.ranges(io));
        let zeros;
        let (lba, data, fua) = match io {
            Io::Write { lba, data, fua } => (*lba, *data, *fua),
            Io::WriteZeroes { lba, count, fua, allocate: true } => {
                zeros = vec![0; *count as usize * sector];
                (*lba, &zeros[..], *fua)
            }
            Io::Trim { lba, count, fua } | Io::WriteZeroes { lba, count, fua, .. } => {
                let runs = self.shape.runs(*lba, *count);
                let job = self.change_job(tag, touched, runs.len(), None);
                for run in runs {
                    self.send(job, run, What::Zeroes { lba: run.lba, count: run.count, fua: *fua });
                }
                return;
            }
            Io::Batch { ops, data, fua } => return self.batch(tag, self.ranges(io), ops, data, *fua),
            Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush => return,
        };
        let count = (data.len() / sector) as u64;
        let pieces = self.shape.pieces(lba, count);
        let [one, other] = pieces[..] else {
            let job = self.change_job(tag, touched, pieces.len(), None);
            for piece in pieces {
                let what = What::Write { lba: piece.lba, data: data.into(), part: 0..data.len(), fua };
                self.send(job, piece, what);
            }
            return;
        };
        if one.member == other.member {
            // On both sides of what is laid out anew, one member carries out both or none.
            let ops = [one, other].map(|piece| BatchOp::Write { lba: piece.lba, count: piece.count as u32 });
            let job = self.change_job(tag, touched, 1, None);
            return self.send(job, one, What::Batch { ops: Arc::new(ops), data: data.into(), fua });
        }
        let Some((slot, number)) = self.log.take(std::iter::once(lba..lba + count)) else {
            unreachable!("a write that needs a slot waits for one")
        };
        self.logged_writes += 1;
        let job = self.change_job(tag, touched, 2, Some(slot));
        let (front, back) = data.split_at(one.count as usize * sector);
        for (own, bytes, theirs) in [(one, front, back), (other, back, front)] {
            let pieces = [one, other].map(|piece| RecordPiece {
                member: piece.member,
                lba: piece.lba,
                count: piece.count as u32,
            });
            let record = Record { number, pieces, data_crc: crc_fast::crc32_iscsi(theirs) };
            let head = record.encode(self.uuid, slot, sector);
            let ops = [
                BatchOp::Write { lba: own.lba, count: own.count as u32 },
                BatchOp::Write { lba: self.shape.slot_at(own.member, slot), count: 1 + (theirs.len() / sector) as u32 },
            ];
            let data: Arc<[u8]> = [bytes, &head, theirs].concat().into();
            self.send(job, own, What::Batch { ops: Arc::new(ops), data, fua });
        }
    }

    pub(crate) fn change_job(&mut self, tag: u64, sectors: Range<u64>, left: usize, slot: Option<usize>) -> u64 {
        let (left, regions, then) = (left as u32, Vec::new(), Vec::new());
        let (done, failed, full) = (0, 0, 0);
        let job = ChangeJob { tag, left, done, failed, full, error: None, sectors, regions, marked: false, slot, then };
        self.job(Job::Change(job))
    }

    /// The next request to a member.
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// The next answer to the host.
    pub fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    /// Whether members have requests, or answers wait.
    pub fn is_idle(&self) -> bool {
        self.parts.is_empty() && self.done.is_empty() && self.commands.is_empty()
    }
}

/// Sectors that these write.
fn written(ops: &[BatchOp]) -> u64 {
    let writes = |op: &BatchOp| if let BatchOp::Write { count, .. } = op { u64::from(*count) } else { 0 };
    ops.iter().map(writes).sum()
}

/// The range from the first sector of these to the last.
pub(crate) fn hull(ranges: &[Range<u64>]) -> Range<u64> {
    let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
    start..ranges.iter().map(|range| range.end).max().unwrap_or(start)
}

const _: () = assert!(MEMBERS_MAX <= Mask::BITS as usize, "each member has a bit");
