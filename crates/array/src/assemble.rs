//! Puts an array together from its members, and takes in one that comes later.
//!
//! **Which copy counts.** Each change of roles raises the event count on all members that count. The superblock with the highest count
//! says who had everything; a member that is behind it by more than the change under way missed something. Whoever goes on without
//! another notes at which count that left: two that are both beyond what the other notes went on apart.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use device::BatchOp;
use uuid::Uuid;

use crate::Damage;
use crate::array::{Array, Job, Life, Seat};
use crate::command::What;
use crate::geometry::{Level, Member, Piece, Shape};
use crate::holes::Holes;
use crate::log::Log;
use crate::meta::{Meta, Stage};
use crate::regions::Regions;
use crate::reshape::Reshape;
use crate::resync::Sync;
use crate::snapshots::Snapshots;
use crate::wire::{LogRecord, Role, Superblock, decode_marks};

/// So many events a copy may be behind that is not noted as gone.
const UNFINISHED: u64 = 12;

/// A member that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    pub position: usize,
    pub member: Member,
    /// It has been here before and lacks only what is marked.
    pub returns: bool,
    /// It is one more, in a place that the array did not have before.
    pub grows: bool,
    asked: bool,
}

impl Joining {
    /// One more member, which holds nothing.
    pub fn behind_the_others(position: usize, member: Member) -> Joining {
        Joining { position, member, returns: false, grows: true, asked: false }
    }
}

/// A record to be carried out on a member that lacks its part.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    slot: usize,
    /// Whose log has the data.
    holder: usize,
    member: usize,
    record: LogRecord,
}

/// What is known of a member that is there.
struct Found {
    member: Member,
    superblock: Superblock,
}

impl Array {
    /// The superblocks, one for each member, of a new array; what the array keeps of each member must read as zeros before they are
    /// written, and all members must hold the same if it is a mirror.
    pub fn format(uuid: Uuid, name: &str, shape: &Shape, members: &[Member]) -> Vec<Superblock> {
        let superblock = |position| Superblock {
            array: uuid,
            name: name.into(),
            position,
            events: 1,
            shape: shape.clone(),
            uuids: members.iter().map(|member| member.uuid).collect(),
            roles: vec![Role::Active; members.len()],
        };
        (0..members.len()).map(superblock).collect()
    }

    /// Puts an array together from its members, by position, each with what its superblock's sector holds. See [`Array::is_ready`].
    /// The last one given may be a device that was just being added: [`Array::places`] says whether it is a member. With `degraded` a mirror
    /// does without members that are not there; with `force` it also takes a copy that was not finished, where no other is there.
    ///
    /// # Errors
    /// They are not the members of this array, not enough, or not of one time.
    pub fn assemble(
        uuid: Uuid,
        members: &[Option<(Member, Vec<u8>)>],
        degraded: bool,
        force: bool,
    ) -> Result<Array, Damage> {
        let mut found: BTreeMap<usize, Found> = BTreeMap::new();
        let of = Array::count_of(uuid, members)?;
        for (position, given) in members[..of].iter().enumerate() {
            let Some((member, sector)) = given else { continue };
            let superblock = Superblock::decode(sector, position)?;
            let is_it = superblock.array == uuid
                && superblock.position == position
                && superblock.shape.members[position] == member.sectors
                && superblock.shape.sector_bytes == member.sector_bytes
                && superblock.uuids[position] == member.uuid;
            if !is_it {
                return Err(Damage::Foreign(position));
            }
            found.insert(position, Found { member: *member, superblock });
        }
        let missing = of - found.len();
        let newest = found.values().filter(|found| found.superblock.shape.count() == of);
        let newest = newest.max_by_key(|found| (found.superblock.events, of - found.superblock.position));
        let Some(newest) = newest.map(|found| found.superblock.clone()) else {
            return Err(Damage::Missing { missing, of, why: "attach them first" });
        };
        if newest.shape.level == Level::Raid1 {
            // Those that the newest notes as gone are not missed.
            let is_missed = |position: &usize| !matches!(newest.roles[*position], Role::Left(_));
            let missing = (0..of).filter(|position| !found.contains_key(position)).filter(is_missed).count();
            if missing > 0 && !degraded {
                let why = "attach them, or assemble the array with --degraded without them";
                return Err(Damage::Missing { missing, of, why });
            }
            return Array::assemble_mirror(newest, &found, force);
        }
        if missing > 0 {
            return Err(Damage::Missing { missing, of, why: "it needs all of them: attach them first" });
        }
        if let Some((position, _)) =
            found.iter().find(|(position, found)| newest.uuids[**position] != found.member.uuid)
        {
            return Err(Damage::Foreign(*position));
        }
        if let Some(late) = found.values().find(|found| found.superblock.events + 1 < newest.events) {
            return Err(Damage::OutOfStep(late.superblock.position));
        }
        let mut array = Array::of(&newest, &found);
        if found.values().any(|found| found.superblock.events != newest.events) {
            // The last assembly did not come to its end. This one is not counted, so that none is behind by more than one.
            array.events -= 1;
        }
        array.begin_log();
        Ok(array)
    }

    /// How many members the array has, of those that are given: the last of them may be one that was about to be added.
    fn count_of(uuid: Uuid, members: &[Option<(Member, Vec<u8>)>]) -> Result<usize, Damage> {
        let known = members.iter().enumerate().filter_map(|(position, given)| {
            let superblock = Superblock::decode(&given.as_ref()?.1, position).ok()?;
            let of = superblock.shape.count();
            // The last one's own word counts only where it has had everything since: the others know it then.
            let is_copy =
                superblock.shape.level == Level::Raid1 && superblock.roles[superblock.position] == Role::Active;
            let is_known = superblock.position + 1 < of || is_copy;
            let is_ours = superblock.array == uuid && superblock.position == position;
            (is_ours && is_known).then_some((superblock.events, of))
        });
        match known.max() {
            Some((_, of)) if of > members.len() => Err(Damage::Few { named: members.len(), of }),
            Some((_, of)) => Ok(of),
            None => Ok(members.len()),
        }
    }

    fn of(newest: &Superblock, found: &BTreeMap<usize, Found>) -> Array {
        let shape = newest.shape.clone();
        let seat = |(position, uuid): (usize, &Uuid)| Seat {
            uuid: *uuid,
            role: newest.roles[position],
            present: found.contains_key(&position),
            load: 0,
            writing: 0,
            room: None,
        };
        Array {
            uuid: newest.array,
            name: newest.name.clone(),
            events: newest.events,
            seats: newest.uuids.iter().enumerate().map(seat).collect(),
            life: Life::Assembling,
            jobs: BTreeMap::new(),
            parts: BTreeMap::new(),
            next: 0,
            commands: VecDeque::new(),
            done: VecDeque::new(),
            held: Vec::new(),
            leaving: 0,
            meta: Meta::default(),
            regions: Regions::new(shape.regions(), shape.region_shift),
            log: Log::new(shape.log_slots as usize, 1),
            sync: Sync::default(),
            reshape: Reshape::default(),
            holes: Holes::new(shape.sectors()),
            snapshots: Snapshots::default(),
            begun: 0,
            durable: 0,
            own_flush: false,
            flush_wanted: false,
            pinned: false,
            doubts: false,
            turn: 0,
            retried_reads: 0,
            half_asked: 0,
            logged_writes: 0,
            replayed: 0,
            shape,
        }
    }

    /// Who has everything, and who must be brought into step.
    fn assemble_mirror(newest: Superblock, found: &BTreeMap<usize, Found>, force: bool) -> Result<Array, Damage> {
        let alone = |one: &Found, other: &Found| match one.superblock.roles.get(other.superblock.position) {
            Some(Role::Left(left)) => other.superblock.events > *left,
            // One that was added since then is not known there.
            Some(Role::Active | Role::Rebuilding) | None => false,
        };
        // Each says since when others are gone: two that both went on since then did so apart. A copy that is not finished went on
        // with nothing of its own.
        let whole = |found: &Found| found.superblock.roles[found.superblock.position] == Role::Active;
        for (position, one) in found.iter().filter(|(_, one)| whole(one)) {
            if let Some((other, _)) =
                found.iter().find(|(_, other)| whole(other) && alone(one, other) && alone(other, one))
            {
                return Err(Damage::Split((*position).min(*other), (*position).max(*other)));
            }
        }
        let mut array = Array::of(&newest, found);
        let mut all_regions = false;
        for (position, one) in found {
            let events = one.superblock.events;
            let role = array.seats[*position].role;
            // Whoever goes on without a member notes that it left. One that is not noted as gone and is behind missed no more than
            // the notes of assemblies that did not come to their end, unless it is an old copy.
            let in_step = match role {
                Role::Active | Role::Rebuilding => events + UNFINISHED >= newest.events,
                Role::Left(left) => events + 1 >= left,
            };
            // A replacement that did not get far enough for the others to know it.
            let in_step = in_step && array.seats[*position].uuid == one.member.uuid;
            array.seats[*position].uuid = one.member.uuid;
            array.shape.members[*position] = one.member.sectors;
            all_regions |= !in_step;
            if role != Role::Active || !in_step {
                array.seats[*position].role = Role::Rebuilding;
            }
        }
        let counts = |found: &&Found| !matches!(newest.roles[found.superblock.position], Role::Left(_));
        if found.values().filter(counts).any(|found| found.superblock.events != newest.events) {
            // The last change of roles did not come to its end. This one is not counted.
            array.events -= 1;
        }
        for seat in array.seats.iter_mut().filter(|seat| !seat.present && !matches!(seat.role, Role::Left(_))) {
            // The last change of roles may have reached it and none of these, or these and not it. Should it be assembled without
            // these, its count exceeds this one all the same.
            seat.role = Role::Left(newest.events + 1);
            array.events = newest.events + 3;
        }
        if array.primary().is_none() {
            let best = found.values().max_by_key(|found| found.superblock.events).filter(|_| force);
            let Some(best) = best else { return Err(Damage::Unfinished) };
            array.seats[best.superblock.position].role = Role::Active;
        }
        if all_regions {
            (0..array.regions.len()).for_each(|region| array.needs_copy(region));
        }
        let job = array.begin_stage(Stage::OpenMarks);
        for member in found.keys() {
            array.ask_for_marks(job, *member);
        }
        array.asked(job);
        Ok(array)
    }

    /// A region that is marked everywhere, or about to be.
    fn needs_copy(&mut self, region: usize) {
        if region < self.regions.len() {
            self.regions.is_marked(region);
            self.regions.set_unsynced(region);
        }
    }

    fn ask_for_marks(&mut self, job: u64, member: usize) {
        for index in 0..self.shape.bitmap_sectors() {
            let lba = self.shape.bitmap_at(member, index);
            let buf = vec![0; self.shape.sector_bytes as usize];
            self.ask(job, Piece { member, lba, before: index, count: 1 }, What::Read { lba, buf });
        }
    }

    /// Regions that any member that was asked marks; all of a sector that could not be read.
    fn marked_regions(&mut self) -> Vec<usize> {
        let bits = self.shape.bits_in_sector() as usize;
        let mut marked = Vec::new();
        for (_, piece, buf) in std::mem::take(&mut self.meta.gathered) {
            let first = piece.before as usize * bits;
            match buf {
                Some(buf) => {
                    let regions = decode_marks(&buf, self.uuid, piece.before);
                    marked.extend(regions.into_iter().flatten().map(|at| first + at));
                }
                None => marked.extend(first..first + bits),
            }
        }
        let len = self.regions.len();
        marked.retain(|region| *region < len);
        marked.sort_unstable();
        marked.dedup();
        marked
    }

    pub(crate) fn marks_are_read(&mut self) {
        for region in self.marked_regions() {
            self.needs_copy(region);
        }
        let primary = self.primary();
        let clean = self.regions.unsynced() == 0;
        for member in self.serving() {
            if clean {
                self.seats[member].role = Role::Active;
            } else if Some(member) != primary {
                // What was written last may be on one of them only; the first one's state counts.
                self.seats[member].role = Role::Rebuilding;
            }
        }
        if !self.has_targets() {
            self.regions.forget_unsynced();
        }
        if clean {
            return self.begin_superblocks();
        }
        let members = self.serving();
        let job = self.begin_stage(Stage::OpenWriteMarks);
        self.ask_marks(job, &members);
        self.asked(job);
    }

    fn begin_log(&mut self) {
        let job = self.begin_stage(Stage::OpenLog);
        for member in 0..self.shape.count() {
            for slot in 0..self.shape.log_slots as usize {
                let (lba, buf) = (self.shape.slot_at(member, slot), vec![0; self.shape.sector_bytes as usize]);
                self.ask(job, Piece { member, lba, before: slot as u64, count: 1 }, What::Read { lba, buf });
            }
        }
        self.asked(job);
    }

    pub(crate) fn log_is_read(&mut self) {
        let count = self.shape.count();
        let mut records: Vec<Vec<Option<LogRecord>>> = vec![vec![None; count]; self.shape.log_slots as usize];
        for (member, piece, buf) in std::mem::take(&mut self.meta.gathered) {
            let Some(buf) = buf else { return self.fail(Damage::Failed(member)) };
            let slot = piece.before as usize;
            records[slot][member] = LogRecord::decode(&buf, self.uuid, slot);
        }
        let mut replays = Vec::new();
        for (slot, records) in records.iter().enumerate() {
            // A slot is used again only when everything in it is durable: older records have nothing to add.
            let newest = records.iter().enumerate().filter_map(|(member, record)| Some((member, record.as_ref()?)));
            let Some((found, record)) = newest.max_by_key(|(_, record)| record.number()) else { continue };
            self.log.next = self.log.next.max(record.number() + 1);
            let has_it = |member: usize| {
                records.get(member).and_then(Option::as_ref).is_some_and(|other| other.number() >= record.number())
            };
            let parties = match record {
                LogRecord::Write(write) if write.fits(&self.shape) => {
                    write.seen_from(found).map(|(_, theirs)| (found, vec![theirs.member]))
                }
                // Its head stands nowhere before the holder has its data.
                LogRecord::Batch(batch) if batch.fits(&self.shape) && has_it(batch.holder) => {
                    Some((batch.holder, batch.members().collect()))
                }
                LogRecord::Write(_) | LogRecord::Batch(_) => None,
            };
            let Some((holder, others)) = parties else { return self.fail(Damage::Log(found)) };
            let lacking = others.into_iter().filter(|member| !has_it(*member));
            replays.extend(lacking.map(|member| Replay { slot, holder, member, record: record.clone() }));
        }
        self.meta.replays = replays;
        if self.meta.replays.is_empty() {
            return self.begin_superblocks();
        }
        self.flush_all(Stage::OpenSettle);
    }

    fn flush_all(&mut self, stage: Stage) {
        let job = self.begin_stage(stage);
        for member in 0..self.shape.count() {
            self.ask(job, Piece { member, lba: 0, before: 0, count: 0 }, What::Flush);
        }
        self.asked(job);
    }

    /// Reads what the next record has for others.
    pub(crate) fn next_replay(&mut self) {
        let Some(Replay { slot, holder, record, .. }) = self.meta.replays.last() else {
            return self.flush_all(Stage::OpenFlush);
        };
        let sectors = match record {
            LogRecord::Write(write) => write.seen_from(*holder).map_or(0, |(_, theirs)| u64::from(theirs.count)),
            LogRecord::Batch(batch) => batch.data_sectors(),
        };
        let (holder, lba) = (*holder, self.shape.slot_at(*holder, *slot) + 1);
        // A batch of trims alone has no data behind its head; a request for nothing would be none.
        let buf = vec![0; sectors.max(1) as usize * self.shape.sector_bytes as usize];
        let job = self.begin_stage(Stage::ReplayRead);
        self.ask(job, Piece { member: holder, lba, before: 0, count: sectors }, What::Read { lba, buf });
    }

    pub(crate) fn replay_is_read(&mut self) {
        let Some(Replay { slot, holder, member, record }) = self.meta.replays.pop() else { return };
        let sector = self.shape.sector_bytes as usize;
        let Some((_, piece, Some(mut data))) = self.meta.gathered.pop() else { return self.fail(Damage::Log(holder)) };
        data.truncate(piece.count as usize * sector);
        // With the record's head beside it, so that it is not carried out again over something newer.
        let (data_crc, ops, bytes, head) = match &record {
            LogRecord::Write(write) => {
                let Some((_, theirs)) = write.seen_from(holder) else { return self.fail(Damage::Log(holder)) };
                let op = BatchOp::Write { lba: theirs.lba, count: theirs.count };
                (write.data_crc, vec![op], data.clone(), write.encode(self.uuid, slot, sector))
            }
            LogRecord::Batch(batch) => {
                let (ops, bytes) = batch.part(member, &data, sector);
                (batch.data_crc, ops, bytes, batch.encode(self.uuid, slot, sector))
            }
        };
        if crc_fast::crc32_iscsi(&data) != data_crc {
            return self.fail(Damage::Log(holder));
        }
        self.replayed += 1;
        let head_at = BatchOp::Write { lba: self.shape.slot_at(member, slot), count: 1 };
        let ops: Arc<[BatchOp]> = ops.into_iter().chain([head_at]).collect();
        let data: Arc<[u8]> = [bytes, head].concat().into();
        let job = self.begin_stage(Stage::ReplayWrite);
        self.ask(job, Piece { member, lba: 0, before: 0, count: 0 }, What::Batch { ops, data, fua: false });
    }

    /// Takes a member in at the place of one that left: one that was there before, with what its superblock's sector holds, or a new
    /// one that gets everything. Copying goes on beside requests, see [`Array::background`].
    ///
    /// # Errors
    /// It is not the one that left, or went on without the others, or does not fit.
    pub fn join(&mut self, position: usize, member: Member, sector: Option<&[u8]>) -> Result<(), Damage> {
        if !self.can_join(position) {
            return Err(Damage::Foreign(position));
        }
        let returns = match (sector, self.seats[position].role) {
            (Some(sector), Role::Left(left)) => {
                let superblock = Superblock::decode(sector, position)?;
                if superblock.array != self.uuid || superblock.position != position {
                    return Err(Damage::Foreign(position));
                }
                // One that was added since then is not known there.
                let alone = |member: &usize| matches!(superblock.roles.get(*member), Some(Role::Left(_)));
                let whole = superblock.roles[position] == Role::Active;
                if whole && superblock.events > left && self.serving().iter().any(alone) {
                    let other = self.primary().unwrap_or(0);
                    return Err(Damage::Split(position.min(other), position.max(other)));
                }
                // A replacement that did not get far enough for the others to know it gets everything.
                let known = self.seats[position].uuid == member.uuid && self.shape.members[position] == member.sectors;
                known && superblock.events + 1 >= left
            }
            _ => false,
        };
        if self.shape.takes(position, &member).is_err() {
            return Err(Damage::Foreign(position));
        }
        self.meta.join = Some(Joining { position, member, returns, grows: false, asked: false });
        self.drive();
        Ok(())
    }

    /// A member that was about to come is gone again.
    pub(crate) fn comes_no_more(&mut self, member: usize) {
        if self.meta.join.is_some_and(|joining| joining.position == member && !joining.asked) {
            self.meta.join = None;
        }
    }

    pub(crate) fn begin_join(&mut self) {
        let Some(joining) = &mut self.meta.join else { return };
        if std::mem::replace(&mut joining.asked, true) {
            return;
        }
        let Joining { position, member, returns, grows, .. } = *joining;
        self.meta.promote = None;
        if grows {
            return self.begin_to_grow(member);
        }
        self.shape.members[position] = member.sectors;
        let role = self.seats[position].role;
        self.seats[position] = Seat { uuid: member.uuid, role, present: true, load: 0, writing: 0, room: None };
        let job = self.begin_stage(Stage::JoinMarks);
        if returns {
            self.ask_for_marks(job, position);
        }
        self.asked(job);
    }

    pub(crate) fn join_marks_are_read(&mut self) {
        let Some(joining) = self.meta.join else { return };
        if !self.seats[joining.position].present {
            // It is gone again.
            return self.joins_not(joining);
        }
        let marked = self.marked_regions();
        marked.into_iter().for_each(|region| self.regions.is_marked(region));
        if !joining.returns {
            (0..self.regions.len()).for_each(|region| self.regions.is_marked(region));
        }
        let mut members = self.serving();
        members.push(joining.position);
        let job = self.begin_stage(Stage::JoinWriteMarks);
        self.ask_marks(job, &members);
        self.asked(job);
    }

    fn joins_not(&mut self, joining: Joining) {
        if joining.grows {
            return self.grows_not();
        }
        self.meta.join = None;
        self.seats[joining.position].present = false;
    }

    pub(crate) fn join_marks_are_written(&mut self) {
        let Some(joining) = self.meta.join else { return };
        let failed = self.meta.failed;
        for member in self.serving().into_iter().filter(|member| failed & crate::array::bit(*member) != 0) {
            self.give_up(member);
        }
        let position = joining.position;
        if failed & crate::array::bit(position) != 0 || !self.seats[position].present {
            return self.joins_not(joining);
        }
        if joining.grows {
            return self.write_first_superblock();
        }
        self.meta.join = None;
        self.copy_what_is_marked();
        self.seats[position].role = Role::Rebuilding;
        self.begin_superblocks();
    }

    /// A copy came that may lack whatever is marked.
    pub(crate) fn copy_what_is_marked(&mut self) {
        for region in 0..self.regions.len() {
            if self.regions.is_dirty(region) {
                self.regions.set_unsynced(region);
            }
        }
        self.sync.restart();
    }

    /// Whether a member may come in this place now: the others have noted that one left it, and no other member is just coming.
    pub fn can_join(&self, position: usize) -> bool {
        let is_free = self.seats.get(position).is_some_and(|seat| matches!(seat.role, Role::Left(_)) && !seat.present);
        self.shape.level == Level::Raid1 && is_free && self.meta.join.is_none() && self.life == Life::Active
    }

    /// Requests of hosts that are under way, and flushes of the array's own.
    pub fn under_way(&self) -> usize {
        self.jobs.values().filter(|job| matches!(job, Job::Read(_) | Job::Change(_) | Job::Flush(_))).count()
    }
}
