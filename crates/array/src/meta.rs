//! What an array does with its members besides carrying out requests: it notes who left and who came, and stops. One stage after the
//! other, each a few requests to members.
//!
//! **A member that missed something is noted before anybody is told.** When a copy fails, answers to changes and flushes wait
//! until the others say durably, with a higher event count, that it left. After that nothing takes it for current.

use std::sync::Arc;

use device::IoError;

use crate::array::{Array, Job, Life, Mask, Seat, bit};
use crate::assemble::{Joining, Replay};
use crate::command::{Answer, Outcome, What};
use crate::geometry::{Level, Piece, Shape};
use crate::wire::{Role, Superblock, superblock_sector};
use crate::{Condition, Damage, MemberState, Status};

/// What it is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Idle,
    /// Superblocks are written.
    Superblocks,
    /// Marks are read while it is assembled.
    OpenMarks,
    /// Marks of all are written to all while it is assembled.
    OpenWriteMarks,
    /// The log is read.
    OpenLog,
    /// What the log says is made durable before it is acted upon.
    OpenSettle,
    /// The data of a record are read.
    ReplayRead,
    /// And written where they are missing.
    ReplayWrite,
    /// What was carried out is made durable.
    OpenFlush,
    /// Marks of a member that comes are read.
    JoinMarks,
    /// Marks of all are written to all, and to it.
    JoinWriteMarks,
    /// The superblock of a member that is added is written, before any other member knows it.
    GrowFirst,
    /// Members change their snapshots.
    Snapshots,
    /// That is made durable.
    SnapshotsFlush,
    /// Everything is made durable before it stops.
    StopFlush,
    /// Marks are taken back.
    StopMarks,
    /// That is made durable, too.
    StopEnd,
}

/// How far it is.
#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub stage: Stage,
    left: u32,
    pub failed: Mask,
    /// What members gave, by member and by what was asked.
    pub gathered: Vec<(usize, Piece, Option<Vec<u8>>)>,
    /// A member that comes.
    pub join: Option<Joining>,
    /// A member that is added, until all others have noted it.
    pub added: Option<usize>,
    /// Records to carry out.
    pub replays: Vec<Replay>,
    /// Copies are as good as the others once this flush is done.
    pub promote: Option<u64>,
    /// It is to stop.
    stop: bool,
}

impl Meta {
    pub fn end(&mut self) {
        *self = Meta::default();
    }
}

/// A part that is about a member as a whole.
pub(crate) fn whole(member: usize) -> Piece {
    Piece { member, lba: 0, before: 0, count: 0 }
}

impl Array {
    /// Whether changes must wait.
    pub(crate) fn is_frozen(&self) -> bool {
        let in_between = self.meta.stage != Stage::Idle || self.meta.stop || self.meta.join.is_some();
        self.leaving != 0 || in_between || self.snapshots.holds_changes()
    }

    /// Whether it serves hosts; the driver waits for this after it was assembled.
    ///
    /// # Errors
    /// It cannot, and why.
    pub fn is_ready(&self) -> Result<bool, Damage> {
        match &self.life {
            Life::Assembling => Ok(false),
            Life::Failed(why) => Err(why.clone()),
            Life::Active | Life::Stopped => Ok(true),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.meta.stop
    }

    /// Begins to stop: no request of a host may be under way. See [`Array::is_stopped`].
    pub fn stop(&mut self) {
        self.meta.stop = true;
        self.drive();
    }

    /// Whether it has stopped, or failed.
    pub fn is_stopped(&self) -> bool {
        matches!(self.life, Life::Stopped | Life::Failed(_))
    }

    /// Begins a stage; what it asks is sent with [`Array::ask`].
    pub(crate) fn begin_stage(&mut self, stage: Stage) -> u64 {
        self.meta.stage = stage;
        (self.meta.left, self.meta.failed) = (0, 0);
        self.meta.gathered.clear();
        self.job(Job::Meta)
    }

    /// Asks a member in this stage.
    pub(crate) fn ask(&mut self, job: u64, piece: Piece, what: What) {
        self.meta.left += 1;
        self.send(job, piece, what);
    }

    /// Goes on at once where a stage asked nothing.
    pub(crate) fn asked(&mut self, job: u64) {
        if self.meta.left == 0 {
            self.jobs.remove(&job);
            self.stage_done();
        }
    }

    pub(crate) fn meta_part(&mut self, job: u64, member: usize, piece: Piece, outcome: Outcome) {
        match outcome {
            Ok(Answer::Done(buf)) => self.meta.gathered.push((member, piece, buf)),
            Ok(Answer::Extent(_)) => {}
            Ok(Answer::Snapshot(answer)) => self.snapshots.answered(member, answer),
            Err(_) => {
                self.meta.failed |= bit(member);
                self.meta.gathered.push((member, piece, None));
            }
        }
        self.meta.left -= 1;
        if self.meta.left == 0 {
            self.jobs.remove(&job);
            self.stage_done();
        }
    }

    fn stage_done(&mut self) {
        let stage = std::mem::take(&mut self.meta.stage);
        match stage {
            Stage::Idle => {}
            Stage::Superblocks => {
                self.added_is_noted();
                self.give_up_failed();
                if self.leaving == 0 && self.life == Life::Assembling {
                    self.life = Life::Active;
                }
            }
            Stage::OpenMarks => self.marks_are_read(),
            Stage::OpenWriteMarks => {
                self.give_up_failed();
                self.begin_superblocks();
            }
            Stage::OpenLog => self.log_is_read(),
            Stage::OpenSettle if self.meta.failed == 0 => self.next_replay(),
            Stage::ReplayRead => self.replay_is_read(),
            Stage::ReplayWrite if self.meta.failed == 0 => self.next_replay(),
            Stage::OpenFlush if self.meta.failed == 0 => self.begin_superblocks(),
            Stage::OpenSettle | Stage::ReplayWrite | Stage::OpenFlush => {
                self.fail(Damage::Failed(self.meta.failed.trailing_zeros() as usize));
            }
            Stage::JoinMarks => self.join_marks_are_read(),
            Stage::JoinWriteMarks => self.join_marks_are_written(),
            Stage::GrowFirst => self.first_superblock_is_written(),
            Stage::Snapshots => {
                self.give_up_failed();
                self.snapshots_are_changed();
            }
            Stage::SnapshotsFlush => {
                self.give_up_failed();
                self.snapshots_are_durable();
            }
            Stage::StopFlush | Stage::StopMarks | Stage::StopEnd => {
                self.give_up_failed();
                // Where a member failed, the others note that first, and it begins anew.
                if self.leaving == 0 {
                    self.go_on_to_stop(stage);
                }
            }
        }
    }

    fn go_on_to_stop(&mut self, stage: Stage) {
        match stage {
            Stage::StopFlush => self.clear_all_marks(),
            Stage::StopMarks => self.flush_to_stop(Stage::StopEnd),
            _ => self.life = Life::Stopped,
        }
    }

    fn flush_to_stop(&mut self, stage: Stage) {
        let job = self.begin_stage(stage);
        for member in self.serving() {
            self.ask(job, whole(member), What::Flush);
        }
        self.asked(job);
    }

    fn give_up_failed(&mut self) {
        let failed = self.meta.failed;
        for member in (0..self.seats.len()).filter(|member| failed & bit(*member) != 0) {
            self.give_up(member);
        }
    }

    /// Writes the present state to every member that counts, with a higher event count.
    pub(crate) fn begin_superblocks(&mut self) {
        if matches!(self.life, Life::Failed(_)) {
            return;
        }
        self.events += 1;
        let job = self.begin_stage(Stage::Superblocks);
        let roles = self.roles();
        for member in self.serving() {
            let data: Arc<[u8]> = self.superblock(member, &self.shape, &roles).encode().into();
            let lba = superblock_sector(self.shape.members[member]);
            let part = 0..data.len();
            self.ask(job, whole(member), What::Write { lba, data, part, fua: true });
        }
        self.asked(job);
    }

    pub(crate) fn roles(&self) -> Vec<Role> {
        self.seats.iter().map(|seat| seat.role).collect()
    }

    pub(crate) fn superblock(&self, position: usize, shape: &Shape, roles: &[Role]) -> Superblock {
        Superblock {
            array: self.uuid,
            name: self.name.clone(),
            position,
            events: self.events,
            shape: shape.clone(),
            uuids: self.seats.iter().map(|seat| seat.uuid).collect(),
            roles: roles.to_vec(),
        }
    }

    /// Writes all marks to these members.
    pub(crate) fn ask_marks(&mut self, job: u64, members: &[usize]) {
        for index in 0..self.shape.bitmap_sectors() {
            let data: Arc<[u8]> = self.marks(index).into();
            for member in members {
                let (lba, part) = (self.shape.bitmap_at(*member, index), 0..data.len());
                let what = What::Write { lba, data: Arc::clone(&data), part, fua: true };
                self.ask(job, whole(*member), what);
            }
        }
    }

    /// Does what is due.
    pub(crate) fn drive(&mut self) {
        if matches!(self.life, Life::Failed(_) | Life::Stopped) {
            return;
        }
        self.sync_go_on();
        if self.meta.stage == Stage::Idle && self.leaving != 0 {
            self.leave();
        }
        if self.life != Life::Active {
            return;
        }
        self.begin_repair();
        self.reshape_go_on();
        if self.meta.stage == Stage::Idle && self.leaving == 0 {
            self.done.extend(std::mem::take(&mut self.held));
            if self.meta.join.is_some() {
                if !self.sync.is_busy() {
                    self.begin_join();
                }
            } else if self.meta.promote.is_some_and(|flush| flush <= self.durable) {
                self.promote();
            } else if self.snapshots_go_on() {
                // Nothing else is begun meanwhile.
            } else if self.meta.stop && self.jobs.is_empty() {
                self.flush_to_stop(Stage::StopFlush);
            } else if self.meta.promote.is_none() && self.regions.unsynced() == 0 && self.has_targets() {
                // Everything is there; once it is durable, the copies count.
                self.meta.promote = Some(self.begun + 1);
                self.flush_wanted = true;
            }
        }
        if std::mem::take(&mut self.flush_wanted) && self.life == Life::Active {
            let frozen = self.is_frozen();
            if self.own_flush || frozen {
                self.flush_wanted = true;
            } else {
                self.flush(None);
            }
        }
    }

    /// Notes on the others that members left.
    fn leave(&mut self) {
        let leaving = std::mem::take(&mut self.leaving);
        for member in (0..self.seats.len()).filter(|member| leaving & bit(*member) != 0) {
            // What it holds from here on is old.
            (self.seats[member].role, self.seats[member].present) = (Role::Left(self.events), false);
            self.forget_snapshots_on(member);
        }
        if self.primary().is_none() {
            return self.fail(Damage::Failed(leaving.trailing_zeros() as usize));
        }
        if !self.has_targets() {
            self.regions.forget_unsynced();
            self.meta.promote = None;
        }
        self.begin_superblocks();
    }

    /// Whether copies are being brought into step.
    pub(crate) fn has_targets(&self) -> bool {
        self.serving().into_iter().any(|member| self.seats[member].role == Role::Rebuilding)
    }

    /// The copies are as good as the others.
    fn promote(&mut self) {
        self.meta.promote = None;
        let rebuilt: Vec<usize> =
            self.serving().into_iter().filter(|member| self.seats[*member].role == Role::Rebuilding).collect();
        rebuilt.iter().for_each(|member| self.seats[*member].role = Role::Active);
        if !rebuilt.is_empty() {
            self.begin_superblocks();
        }
    }

    /// Time has passed: takes marks back where nothing was written since the last call.
    pub fn tick(&mut self) {
        if self.shape.moved.is_some() && self.life == Life::Active {
            self.reshape_tick();
            return self.drive();
        }
        let all_there = self.seats.iter().all(|seat| seat.role == Role::Active && seat.present);
        if self.shape.level != Level::Raid1 || self.life != Life::Active || self.is_frozen() || !all_there {
            return;
        }
        if self.regions.wants_flush(self.durable) {
            self.flush_wanted = true;
        }
        let cleared = self.regions.clear_quiet(self.durable, false);
        self.write_marks(&cleared);
        self.drive();
    }

    /// Has the sectors written in which these marks stand. Nothing depends on when: a mark too many costs a copy after a crash.
    fn write_marks(&mut self, regions: &[usize]) {
        let marks = self.marks_of(regions);
        if marks.is_empty() {
            return;
        }
        let serving = self.serving();
        let job = self.job(Job::Marks { left: (marks.len() * serving.len()) as u32 });
        for (index, sector) in marks {
            let data: Arc<[u8]> = sector.into();
            for member in &serving {
                let (lba, part) = (self.shape.bitmap_at(*member, index), 0..data.len());
                let what = What::Write { lba, data: Arc::clone(&data), part, fua: false };
                self.send(job, whole(*member), what);
            }
        }
    }

    fn clear_all_marks(&mut self) {
        let all_there = self.seats.iter().all(|seat| seat.role == Role::Active && seat.present);
        if !all_there || self.pinned {
            return self.flush_to_stop(Stage::StopEnd);
        }
        self.durable = self.begun + 1;
        self.regions.flushed(self.durable);
        let cleared = self.regions.clear_quiet(self.durable, true);
        let marks = self.marks_of(&cleared);
        let job = self.begin_stage(Stage::StopMarks);
        for (index, sector) in marks {
            let data: Arc<[u8]> = sector.into();
            for member in self.serving() {
                let (lba, part) = (self.shape.bitmap_at(member, index), 0..data.len());
                self.ask(job, whole(member), What::Write { lba, data: Arc::clone(&data), part, fua: false });
            }
        }
        self.asked(job);
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        let state = |(member, seat): (usize, &Seat)| seat.role.state(seat.present && self.leaving & bit(member) == 0);
        let known = self.seats.iter().enumerate().filter(|(member, _)| self.meta.added != Some(*member));
        let members: Vec<MemberState> = known.map(state).collect();
        let unsynced = self.regions.unsynced();
        Status {
            level: self.shape.level,
            condition: self.condition(&members),
            members,
            events: self.events,
            regions: self.regions.len() as u64,
            dirty_regions: self.regions.dirty() as u64,
            unsynced_regions: unsynced as u64,
            stuck_regions: self.regions.stuck_count() as u64,
            resync_percent: self.sync.percent(unsynced),
            reshape_percent: self.reshape_percent(),
            reshape_trouble: self.reshape.trouble(),
            copied_sectors: self.sync.copied,
            unmapped_sectors: self.sync.unmapped,
            retried_reads: self.retried_reads,
            repaired_sectors: self.sync.repairs.sectors,
            logged_writes: self.logged_writes,
            replayed: self.replayed,
            failure: if let Life::Failed(why) = &self.life { Some(why.clone()) } else { None },
        }
    }

    fn condition(&self, members: &[MemberState]) -> Condition {
        match &self.life {
            Life::Assembling => Condition::Assembling,
            Life::Failed(_) => Condition::Failed,
            Life::Stopped => Condition::Stopped,
            Life::Active if members.contains(&MemberState::Missing) || self.pinned => Condition::Degraded,
            Life::Active if members.contains(&MemberState::Rebuilding) => Condition::Resyncing,
            Life::Active if self.shape.moved.is_some() => Condition::Reshaping,
            Life::Active => Condition::Healthy,
        }
    }

    /// The error that hosts get for a change now, if there is one.
    pub fn refuses_writes(&self) -> Option<IoError> {
        match self.life {
            Life::Failed(_) => Some(IoError::Media),
            _ => self.pinned.then_some(IoError::ReadOnly),
        }
    }
}
