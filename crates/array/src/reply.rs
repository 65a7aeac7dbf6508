//! Members' answers: what follows from each, and when a host's request is answered.

use device::{Completion, IoError};

use crate::array::{Array, FlushJob, Job, Life, Part, ReadJob, bit};
use crate::command::{Answer, Outcome};
use crate::geometry::{Level, Piece};
use crate::{Damage, Role};

/// Whether a member refused for lack of room, which says nothing against it.
fn is_full(error: IoError) -> bool {
    matches!(error, IoError::NoSpace | IoError::Full)
}

impl Array {
    /// A member has answered.
    pub fn finish(&mut self, tag: u64, outcome: Result<Answer, IoError>) {
        // What a lost member had was given up; it may answer all the same.
        if let Some(part) = self.parts.remove(&tag) {
            let seat = &mut self.seats[part.member];
            seat.load = seat.load.saturating_sub(1);
            seat.writing = seat.writing.saturating_sub(part.writes);
            self.part_done(part, outcome);
        }
        self.drive();
    }

    /// A member is gone: it answers nothing any more.
    pub fn lost(&mut self, member: usize) {
        self.comes_no_more(member);
        let Some(seat) = self.seats.get_mut(member) else { return };
        let was_there = std::mem::replace(&mut seat.present, false);
        (seat.load, seat.writing, seat.room) = (0, 0, None);
        if was_there && !self.is_unknown(member) {
            self.give_up(member);
        }
        self.commands.retain(|command| command.member != member);
        let tags: Vec<u64> = self.parts.iter().filter(|(_, part)| part.member == member).map(|(tag, _)| *tag).collect();
        for tag in tags {
            if let Some(part) = self.parts.remove(&tag) {
                self.part_done(part, Err(IoError::Media));
            }
        }
        self.drive();
    }

    /// A member counts no more. Of an array that needs all of them, that is the end.
    pub(crate) fn give_up(&mut self, member: usize) {
        match (&self.life, self.shape.level) {
            (Life::Failed(_) | Life::Stopped, _) => {}
            (_, Level::Raid1) => {
                if !matches!(self.seats[member].role, Role::Left(_)) {
                    self.leaving |= bit(member);
                    self.holes.forget();
                }
            }
            (_, Level::Raid0 | Level::Concat) => self.fail(Damage::Failed(member)),
        }
    }

    /// Serves nobody any more: what hosts wait for fails.
    pub(crate) fn fail(&mut self, why: Damage) {
        if matches!(self.life, Life::Failed(_) | Life::Stopped) {
            return;
        }
        self.life = Life::Failed(why);
        self.grows_not();
        self.half_asked = 0;
        let jobs = std::mem::take(&mut self.jobs);
        self.parts.clear();
        self.commands.clear();
        self.seats.iter_mut().for_each(|seat| (seat.load, seat.writing) = (0, 0));
        let tags = jobs.into_values().filter_map(|job| match job {
            Job::Read(ReadJob { tag, .. }) => Some(tag),
            Job::Change(change) => Some(change.tag),
            Job::Flush(flush) => flush.tag,
            Job::Meta | Job::Sync | Job::Holes { .. } | Job::Marks { .. } => None,
            Job::Stripe(_) | Job::Tail | Job::Moved => None,
        });
        self.done.extend(tags.map(|tag| Completion { tag, result: Err(IoError::Media) }));
        for held in std::mem::take(&mut self.held) {
            self.done.push_back(Completion { tag: held.tag, result: Err(IoError::Media) });
        }
        self.meta.end();
        self.snapshots.fail();
        self.sync.end();
        self.reshape.end();
    }

    fn part_done(&mut self, part: Part, outcome: Outcome) {
        let Part { job, member, piece, snapshot, tried, broken, writes: _ } = part;
        match self.jobs.get_mut(&job) {
            None => {}
            Some(Job::Read(_)) => match outcome {
                // It may lack a write that others have: what they give counts.
                Ok(_) if snapshot.is_none() && self.is_doubted(member) && self.reader(&piece, tried).is_some() => {
                    self.retried_reads += 1;
                    let bytes = piece.count as usize * self.shape.sector_bytes as usize;
                    self.read_piece(job, piece, None, (tried, broken), vec![0; bytes]);
                }
                Ok(Answer::Done(Some(buf))) => {
                    if snapshot.is_none() {
                        self.repair(&piece, broken);
                    }
                    self.read_done(job, piece, Ok(buf));
                }
                Err(_) if self.shape.level == Level::Raid1 => {
                    self.retried_reads += 1;
                    let bytes = piece.count as usize * self.shape.sector_bytes as usize;
                    let broken = if self.serves(member) { broken | bit(member) } else { broken };
                    self.read_piece(job, piece, snapshot, (tried, broken), vec![0; bytes]);
                }
                Ok(_) => self.read_done(job, piece, Err(IoError::Media)),
                Err(error) => self.read_done(job, piece, Err(error)),
            },
            Some(Job::Change(change)) => {
                match outcome {
                    Ok(_) => change.done |= bit(member),
                    Err(error) => {
                        change.failed |= bit(member);
                        change.full |= if is_full(error) { bit(member) } else { 0 };
                        self.doubts = true;
                        // What says the most against a member is told.
                        change.error = Some(change.error.filter(|known| !is_full(*known)).unwrap_or(error));
                    }
                }
                change.left -= 1;
                if change.left > 0 {
                    return;
                }
                let then = std::mem::take(&mut change.then);
                self.half_asked -= u32::from(!then.is_empty());
                if change.failed != 0 || then.is_empty() {
                    return self.change_done(job);
                }
                change.left = then.len() as u32;
                then.into_iter().for_each(|(piece, what)| self.send(job, piece, what));
            }
            Some(Job::Flush(flush)) => {
                if let Err(error) = outcome {
                    flush.failed |= bit(member);
                    flush.error = Some(error);
                }
                flush.left -= 1;
                if flush.left == 0
                    && let Some(Job::Flush(flush)) = self.jobs.remove(&job)
                {
                    self.flush_done(&flush);
                }
            }
            Some(Job::Meta) => self.meta_part(job, member, piece, outcome),
            Some(Job::Sync) => self.sync_part(job, member, piece, outcome),
            Some(Job::Holes { .. }) => self.hole_part(job, piece, &outcome),
            Some(Job::Stripe(_)) => self.stripe_part(job, member, piece, outcome),
            Some(Job::Tail) => self.tail_part(job, member, &outcome),
            Some(Job::Moved) => self.mark_part(job, member, &outcome),
            Some(Job::Marks { left }) => {
                *left -= 1;
                if *left == 0 {
                    self.jobs.remove(&job);
                }
                if outcome.is_err() {
                    self.give_up(member);
                }
            }
        }
    }

    /// Whether a member of a mirror refused a change that others may have carried out, or is not used any more.
    pub fn is_doubted(&self, member: usize) -> bool {
        let failed = |job: &Job| matches!(job, Job::Change(change) if change.failed & bit(member) != 0);
        self.shape.level == Level::Raid1 && (!self.serves(member) || (self.doubts && self.jobs.values().any(failed)))
    }

    /// A piece of a read is there, or cannot be read from anybody.
    pub(crate) fn read_done(&mut self, job: u64, piece: Piece, outcome: Result<Vec<u8>, IoError>) {
        let Some(Job::Read(read)) = self.jobs.get_mut(&job) else { return };
        match outcome {
            Ok(buf) if read.buf.is_empty() => read.buf = buf,
            Ok(buf) => {
                let from = piece.before as usize * self.shape.sector_bytes as usize;
                read.buf[from..from + buf.len()].copy_from_slice(&buf);
            }
            Err(error) => read.error = Some(error),
        }
        read.left -= 1;
        if read.left == 0
            && let Some(Job::Read(ReadJob { tag, buf, error, .. })) = self.jobs.remove(&job)
        {
            self.done.push_back(Completion { tag, result: error.map_or(Ok(Some(buf)), Err) });
        }
    }

    fn change_done(&mut self, job: u64) {
        let Some(Job::Change(change)) = self.jobs.remove(&job) else { return };
        let marked = change.marked && change.failed == 0;
        for regions in change.regions.iter().cloned() {
            self.flush_wanted |= self.regions.end(regions, self.begun, marked);
        }
        let mut result = Ok(None);
        match (change.error, self.shape.level) {
            (None, _) => {}
            (Some(error), Level::Raid1) if !self.serving().iter().any(|member| change.done & bit(*member) != 0) => {
                // None that counts has it; whether all still show the same, nobody knows, unless they had no room.
                let unclear = change.failed & !change.full;
                let pinned = self.serving().iter().any(|member| unclear & bit(*member) != 0);
                self.pinned |= pinned;
                result = Err(if pinned || change.full == 0 { error } else { IoError::Full });
            }
            // Those that have it are still being copied: they are to hold what the others do again.
            (Some(error), Level::Raid1)
                if is_full(error) && !self.whole_ones().any(|member| change.done & bit(member) != 0) =>
            {
                for region in change.regions.iter().cloned().flatten() {
                    self.regions.set_unsynced(region);
                }
                self.sync.restart();
                result = Err(error);
            }
            // The others have it: it is done, as soon as they say who has not.
            (Some(_), Level::Raid1) => self.give_up_all(change.failed),
            (Some(error), _) => {
                result = Err(error);
                if change.slot.is_some() && change.done != 0 {
                    // Half of it is there. The next assembly carries out the other half.
                    let member = change.failed.trailing_zeros() as usize;
                    self.done.push_back(Completion { tag: change.tag, result });
                    return self.fail(Damage::Failed(member));
                }
            }
        }
        if let Some(slot) = change.slot {
            self.log.done(slot, self.begun);
            self.flush_wanted |= self.log.is_filling();
        }
        self.answer(Completion { tag: change.tag, result });
    }

    fn give_up_all(&mut self, members: u8) {
        for member in (0..self.seats.len()).filter(|member| members & bit(*member) != 0) {
            self.give_up(member);
        }
    }

    fn flush_done(&mut self, flush: &FlushJob) {
        if flush.tag.is_none() {
            self.own_flush = false;
        }
        let mut result = Ok(None);
        if let (None, Some(error)) = (flush.tag, flush.error) {
            self.reshape_flush_failed(flush.failed.trailing_zeros() as usize, error);
        }
        if let Some(error) = flush.error {
            let durable_on = |member: &usize| flush.asked & !flush.failed & bit(*member) != 0;
            match self.shape.level {
                // One copy that is durable is enough, once the others are noted as gone.
                Level::Raid1 if self.serving().iter().any(durable_on) => self.give_up_all(flush.failed),
                _ => result = Err(error),
            }
        }
        if flush.error.is_none() {
            self.durable = self.durable.max(flush.number);
            self.regions.flushed(self.durable);
            self.log.flushed(self.durable);
        }
        if let Some(tag) = flush.tag {
            self.answer(Completion { tag, result });
        }
    }

    /// Answers the host; while members that missed something are not noted yet, only then.
    fn answer(&mut self, completion: Completion) {
        if self.is_frozen() {
            self.held.push(completion);
        } else {
            self.done.push_back(completion);
        }
    }
}
