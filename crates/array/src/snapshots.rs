//! Snapshots of an array: one moment on all members.
//!
//! **How one is made.** No change is begun until those under way are done. Then the members that have everything note a higher event
//! count, and each makes a snapshot of its own, in which its superblock stands as well. The array's snapshot is told once those are
//! durable. The event count is its number: it says which snapshots of members belong together. The superblock says how the array's
//! sectors lay on members at that moment.
//!
//! **What a crash leaves.** Of RAID 0 and a concatenation a snapshot counts if each member that the array had has its part; what does
//! not count is deleted after the next assembly. Of a mirror it counts while a copy that is there has it. So one that was deleted while
//! a copy was away is there again when that comes back, under another name if that is taken by then: rather once too often than lost.
//! A snapshot of a member that is none of this array is left alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use device::{Completion, LayerError, SNAPSHOT_NAME_MAX, Snapshot, SnapshotChange, SnapshotError, SnapshotId};

use crate::Role;
use crate::array::{Array, Job, Life, Mask, ReadJob, bit};
use crate::command::What;
use crate::geometry::{Level, Piece, Shape};
use crate::meta::{Stage, whole};
use crate::wire::Superblock;

/// Where a snapshot lies.
#[derive(Debug)]
struct View {
    /// Of the array at that moment.
    shape: Arc<Shape>,
    /// Members' own numbers of it, by position.
    on: Vec<Option<SnapshotId>>,
}

/// A member's snapshot that it brought along.
#[derive(Debug)]
struct Brought {
    id: SnapshotId,
    member: usize,
    /// The member has everything, so its word counts first.
    counts: bool,
    snapshot: Snapshot,
    shape: Shape,
}

/// How far a change is.
#[derive(Debug)]
enum Step {
    /// It waits for changes under way.
    Waits,
    /// Members note the event count that is to be its number.
    Noted,
    /// Members do it.
    Made,
    /// Members that did it undo it, because another one could not.
    Undone(SnapshotError),
    /// What these members did is made durable.
    Durable(Result<(), SnapshotError>, Mask),
    /// It is done, and nobody asked yet how it ended.
    Done(Result<(), SnapshotError>),
}

#[derive(Debug)]
struct Asked {
    change: SnapshotChange,
    step: Step,
}

/// What an array knows of its snapshots.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// From the oldest to the newest.
    listed: Vec<Snapshot>,
    /// In the same order.
    views: Vec<View>,
    brought: Vec<Brought>,
    /// What members are to do so that they have the same.
    mending: Vec<(usize, SnapshotChange)>,
    asked: Option<Asked>,
    /// What members answered, by position.
    answers: Vec<(usize, Result<Option<Snapshot>, SnapshotError>)>,
}

impl Snapshots {
    /// Whether changes must wait until one is made.
    pub fn holds_changes(&self) -> bool {
        let Some(Asked { change, step }) = &self.asked else { return false };
        matches!((change, step), (SnapshotChange::Create { .. }, Step::Waits | Step::Noted))
    }

    pub fn answered(&mut self, member: usize, answer: Result<Option<Snapshot>, SnapshotError>) {
        self.answers.push((member, answer));
    }

    /// The array serves nobody any more.
    pub fn fail(&mut self) {
        if let Some(asked) = &mut self.asked
            && !matches!(asked.step, Step::Done(_))
        {
            asked.step = Step::Done(Err(SnapshotError::Failed(LayerError::Media)));
        }
        self.mending.clear();
    }

    fn at(&self, id: SnapshotId) -> Option<usize> {
        self.listed.binary_search_by_key(&id, |snapshot| snapshot.id).ok()
    }

    /// The first of these names that no other snapshot has.
    fn free_name<'a>(&self, id: SnapshotId, names: impl Iterator<Item = &'a String> + Clone) -> String {
        let is_free = |name: &&String| self.listed.iter().all(|other| other.name != **name);
        let first = names.clone().next().map_or("", String::as_str);
        let room = SNAPSHOT_NAME_MAX - "-18446744073709551615".len();
        let other = || format!("{}-{id}", first.get(..room).unwrap_or(first));
        names.clone().find(is_free).cloned().unwrap_or_else(other)
    }

    fn remove(&mut self, id: SnapshotId) {
        if let Some(at) = self.at(id) {
            self.listed.remove(at);
            self.views.remove(at);
        }
    }

    /// What members do for a change, each with its own number of the snapshot.
    fn on_members(&self, change: &SnapshotChange) -> Vec<(usize, SnapshotChange)> {
        let (SnapshotChange::Delete(id) | SnapshotChange::Rename(id, _) | SnapshotChange::Hold(id, _)) = change else {
            return Vec::new();
        };
        let Some(at) = self.at(*id) else { return Vec::new() };
        let theirs = |own: SnapshotId| match change {
            SnapshotChange::Rename(_, name) => SnapshotChange::Rename(own, name.clone()),
            SnapshotChange::Hold(_, held) => SnapshotChange::Hold(own, *held),
            _ => SnapshotChange::Delete(own),
        };
        let own = self.views[at].on.iter().enumerate();
        own.filter_map(|(member, own)| Some((member, theirs((*own)?)))).collect()
    }

    /// A change that members made.
    fn apply(&mut self, change: &SnapshotChange) {
        match change {
            SnapshotChange::Delete(id) => self.remove(*id),
            SnapshotChange::Rename(id, name) => {
                if let Some(at) = self.at(*id) {
                    self.listed[at].name.clone_from(name);
                }
            }
            SnapshotChange::Hold(id, held) => {
                if let Some(at) = self.at(*id) {
                    self.listed[at].held = *held;
                }
            }
            _ => {}
        }
    }
}

/// Whether somebody asks for the same: when they do may differ.
fn is_like(one: &SnapshotChange, other: &SnapshotChange) -> bool {
    match (one, other) {
        (SnapshotChange::Create { name, .. }, SnapshotChange::Create { name: other, .. }) => name == other,
        _ => one == other,
    }
}

impl Array {
    /// The snapshots, from the oldest to the newest.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots.listed
    }

    /// The snapshot of a number.
    pub fn snapshot(&self, id: SnapshotId) -> Option<&Snapshot> {
        self.snapshots.at(id).map(|at| &self.snapshots.listed[at])
    }

    /// Members' own numbers of a snapshot, by position.
    pub fn snapshot_on(&self, id: SnapshotId) -> &[Option<SnapshotId>] {
        self.snapshots.at(id).map_or(&[], |at| &self.snapshots.views[at].on)
    }

    /// A snapshot that a member has, and what its superblock's sector holds in it. To be told of all that a member has when the array was
    /// assembled or [`Array::join`] took the member in, before anything else is done with the array.
    pub fn brought(&mut self, member: usize, snapshot: &Snapshot, sector: &[u8]) {
        let Ok(superblock) = Superblock::decode(sector, member) else { return };
        let (id, shape, snapshot) = (superblock.events, superblock.shape, snapshot.clone());
        // An array only grows.
        let fits = shape.level == self.shape.level
            && shape.sector_bytes == self.shape.sector_bytes
            && shape.count() <= self.seats.len();
        let is_ours = superblock.array == self.uuid && superblock.position == member && fits;
        let Some(seat) = self.seats.get(member).filter(|_| is_ours) else { return };
        let counts = seat.role == Role::Active && self.meta.join.is_none_or(|join| join.position != member);
        self.snapshots.brought.push(Brought { id, member, counts, snapshot, shape });
    }

    /// A member left: what only it has is none of the array's snapshots until it comes back.
    pub(crate) fn forget_snapshots_on(&mut self, member: usize) {
        let on = self.snapshots.views.iter_mut().filter_map(|view| view.on.get_mut(member));
        on.for_each(|own| *own = None);
        let lost = |view: &View| view.on.iter().all(Option::is_none);
        while let Some(at) = self.snapshots.views.iter().position(lost) {
            self.snapshots.views.remove(at);
            self.snapshots.listed.remove(at);
        }
    }

    /// Begins to change the snapshots, or goes on with it. True once it is done and no power cut takes it back; until then the same is
    /// to be asked again. One change goes on at a time.
    ///
    /// # Errors
    /// It cannot be done. Where members failed, it may be done after the next assembly, or not.
    pub fn begin_snapshot_change(&mut self, change: &SnapshotChange) -> Result<bool, SnapshotError> {
        if let Some(asked) = self.snapshots.asked.take() {
            match (asked.step, is_like(&asked.change, change)) {
                (Step::Done(result), true) => return result.map(|()| true),
                // Whoever asked for that does not want to know any more.
                (Step::Done(_), false) => {}
                (step, _) => {
                    self.snapshots.asked = Some(Asked { step, ..asked });
                    return Ok(false);
                }
            }
        }
        self.check_snapshot_change(change)?;
        self.snapshots.asked = Some(Asked { change: change.clone(), step: Step::Waits });
        self.drive();
        Ok(false)
    }

    fn check_snapshot_change(&self, change: &SnapshotChange) -> Result<(), SnapshotError> {
        match self.life {
            Life::Active if !self.is_stopping() => {}
            Life::Assembling | Life::Active => return Err(SnapshotError::Unsupported("it does not serve now")),
            Life::Failed(_) | Life::Stopped => return Err(SnapshotError::Failed(LayerError::Media)),
        }
        let known = |id: &SnapshotId| self.snapshot(*id).ok_or(SnapshotError::Unknown);
        let is_free = |name: &str| match self.snapshots().iter().any(|snapshot| snapshot.name == name) {
            true => Err(SnapshotError::Taken(name.into())),
            false => Ok(()),
        };
        match change {
            SnapshotChange::Create { .. } if self.pinned => Err(SnapshotError::Unsupported("it takes no writes")),
            SnapshotChange::Create { .. } if self.shape.moved.is_some() => {
                Err(SnapshotError::Unsupported("its stripes are being laid out anew; wait for that"))
            }
            SnapshotChange::Create { name, .. } => is_free(name),
            SnapshotChange::Rename(id, name) => known(id).and_then(|_| is_free(name)),
            SnapshotChange::Hold(id, _) => known(id).map(drop),
            SnapshotChange::Delete(id) => match known(id)? {
                snapshot if snapshot.held => Err(SnapshotError::Held(snapshot.name.clone())),
                _ => Ok(()),
            },
            SnapshotChange::RollBack { .. } => Err(SnapshotError::Unsupported("an array does not roll back")),
            SnapshotChange::Clone { .. } | SnapshotChange::DeleteClone(_) | SnapshotChange::Promote(_) => {
                Err(SnapshotError::Unclonable("it is an array"))
            }
        }
    }

    /// Does what is due with snapshots. Whether it asked members for something.
    pub(crate) fn snapshots_go_on(&mut self) -> bool {
        self.settle_brought();
        if !self.snapshots.mending.is_empty() {
            let mending = std::mem::take(&mut self.snapshots.mending);
            self.ask_for_snapshots(mending);
            return true;
        }
        let Some(Asked { change, step }) = &mut self.snapshots.asked else { return false };
        match (&step, &change) {
            (Step::Waits, SnapshotChange::Create { .. }) => {
                if self.jobs.values().any(|job| matches!(job, Job::Change(_))) {
                    return false;
                }
                *step = Step::Noted;
                self.begin_superblocks();
            }
            (Step::Noted, _) => {
                *step = Step::Made;
                let change = change.clone();
                let members: Vec<usize> = self.whole_ones().collect();
                self.ask_for_snapshots(members.into_iter().map(|member| (member, change.clone())).collect());
            }
            (Step::Waits, _) => {
                *step = Step::Made;
                let change = change.clone();
                let theirs = self.snapshots.on_members(&change);
                self.ask_for_snapshots(theirs);
            }
            _ => return false,
        }
        true
    }

    fn ask_for_snapshots(&mut self, changes: Vec<(usize, SnapshotChange)>) {
        self.snapshots.answers.clear();
        let job = self.begin_stage(Stage::Snapshots);
        for (member, change) in changes {
            if self.serves(member) {
                self.ask(job, whole(member), What::Snapshot(change));
            }
        }
        self.asked(job);
    }

    /// Members did what they were asked, or could not.
    pub(crate) fn snapshots_are_changed(&mut self) {
        let answers = std::mem::take(&mut self.snapshots.answers);
        let Some(Asked { change, step }) = &mut self.snapshots.asked else { return };
        let failed = answers.iter().find_map(|(_, answer)| answer.as_ref().err().cloned());
        let did = answers.iter().filter(|(_, answer)| answer.is_ok()).fold(0, |mask, (member, _)| mask | bit(*member));
        match (std::mem::replace(step, Step::Waits), failed) {
            (Step::Made, Some(error)) if matches!(change, SnapshotChange::Create { .. }) => {
                *step = Step::Undone(error);
                let made = answers.into_iter().filter_map(|(member, answer)| Some((member, answer.ok()??.id)));
                let undo = made.map(|(member, own)| (member, SnapshotChange::Delete(own))).collect();
                return self.ask_for_snapshots(undo);
            }
            (Step::Made, None) if matches!(change, SnapshotChange::Create { .. }) => {
                *step = Step::Durable(Ok(()), did);
                self.snapshot_is_made(answers);
            }
            // What some members did is done; the others follow after the next assembly.
            (Step::Made, failed) => {
                // With the last copy that had it the snapshot is gone.
                let failed = if did != 0 { None } else { Some(failed.unwrap_or(SnapshotError::Unknown)) };
                let change = change.clone();
                if failed.is_none() {
                    self.snapshots.apply(&change);
                }
                if let Some(asked) = &mut self.snapshots.asked {
                    asked.step = Step::Durable(failed.map_or(Ok(()), Err), did);
                }
            }
            (Step::Undone(error), _) => *step = Step::Durable(Err(error), did),
            // That was mending.
            (before, _) => {
                *step = before;
                return;
            }
        }
        let job = self.begin_stage(Stage::SnapshotsFlush);
        for member in self.serving() {
            self.ask(job, whole(member), What::Flush);
        }
        self.asked(job);
    }

    fn snapshot_is_made(&mut self, answers: Vec<(usize, Result<Option<Snapshot>, SnapshotError>)>) {
        let mut on = vec![None; self.seats.len()];
        let mut made: Option<Snapshot> = None;
        for (member, snapshot) in answers.into_iter().filter_map(|(member, answer)| Some((member, answer.ok()??))) {
            on[member] = Some(snapshot.id);
            match &mut made {
                Some(made) if self.shape.level == Level::Raid1 => made.mapped = made.mapped.max(snapshot.mapped),
                Some(made) => made.mapped += snapshot.mapped,
                None => made = Some(snapshot),
            }
        }
        let Some(made) = made else { return };
        self.snapshots.listed.push(Snapshot { id: self.events, ..made });
        self.snapshots.views.push(View { shape: Arc::new(self.shape.clone()), on });
    }

    /// What members did is durable.
    pub(crate) fn snapshots_are_durable(&mut self) {
        let serving = self.serving().into_iter().fold(0, |mask, member| mask | bit(member));
        let Some(Asked { step, .. }) = &mut self.snapshots.asked else { return };
        *step = match std::mem::replace(step, Step::Waits) {
            // Those that did it left before it was durable.
            Step::Durable(Ok(()), did) if did & serving == 0 => {
                Step::Done(Err(SnapshotError::Failed(LayerError::Media)))
            }
            Step::Durable(result, _) => Step::Done(result),
            step => step,
        };
    }

    /// Takes in what members brought along, and has them delete what does not count.
    fn settle_brought(&mut self) {
        let mut brought = std::mem::take(&mut self.snapshots.brought);
        if brought.is_empty() {
            return;
        }
        brought.sort_by_key(|one| (one.id, !one.counts, one.member));
        brought.dedup_by_key(|one| (one.id, one.member));
        let all = self.shape.level != Level::Raid1;
        let mut by_id: BTreeMap<SnapshotId, Vec<Brought>> = BTreeMap::new();
        brought.into_iter().for_each(|one| by_id.entry(one.id).or_default().push(one));
        let (mut deletes, mut labels) = (Vec::new(), Vec::new());
        for (id, parts) in by_id.into_iter().rev() {
            let needed = if all { parts[0].shape.count() } else { 1 };
            let first = &parts[0];
            if self.snapshots.at(id).is_none() && parts.len() >= needed {
                let mapped = parts.iter().map(|part| part.snapshot.mapped);
                let mapped = if all { mapped.sum() } else { first.snapshot.mapped };
                let at = self.snapshots.listed.partition_point(|other| other.id < id);
                let name = self.snapshots.free_name(id, parts.iter().map(|part| &part.snapshot.name));
                self.snapshots.listed.insert(at, Snapshot { id, mapped, name, ..first.snapshot.clone() });
                let view = View { shape: Arc::new(first.shape.clone()), on: vec![None; self.seats.len()] };
                self.snapshots.views.insert(at, view);
            }
            let known = self.snapshots.at(id);
            for Brought { member, snapshot, .. } in parts {
                let own = snapshot.id;
                let Some(at) = known else {
                    if snapshot.held {
                        deletes.push((member, SnapshotChange::Hold(own, false)));
                    }
                    deletes.push((member, SnapshotChange::Delete(own)));
                    continue;
                };
                let on = &mut self.snapshots.views[at].on;
                on.resize(on.len().max(member + 1), None);
                on[member] = Some(own);
                let Snapshot { name, held, .. } = &self.snapshots.listed[at];
                if *held != snapshot.held {
                    labels.push((member, SnapshotChange::Hold(own, *held)));
                }
                if *name != snapshot.name {
                    labels.push((member, SnapshotChange::Rename(own, name.clone())));
                }
            }
        }
        self.snapshots.mending.extend(deletes);
        self.snapshots.mending.extend(labels);
    }

    /// Reads what the array held when a snapshot was made. What it has got since then reads as zeros.
    pub(crate) fn read_snapshot(&mut self, tag: u64, id: SnapshotId, lba: u64, mut buf: Vec<u8>) {
        let Some(at) = self.snapshots.at(id) else { return };
        let shape = Arc::clone(&self.snapshots.views[at].shape);
        let sector = shape.sector_bytes as usize;
        let count = (buf.len() / sector) as u64;
        let there = count.min(shape.sectors().saturating_sub(lba));
        let pieces = shape.pieces(lba, there);
        let left = pieces.len() as u32;
        if let ([piece], true) = (&pieces[..], there == count) {
            let job = self.job(Job::Read(ReadJob { tag, buf: Vec::new(), left, error: None }));
            return self.read_piece(job, *piece, Some(id), (0, 0), buf);
        }
        buf[there as usize * sector..].fill(0);
        if pieces.is_empty() {
            return self.done.push_back(Completion { tag, result: Ok(Some(buf)) });
        }
        let job = self.job(Job::Read(ReadJob { tag, buf, left, error: None }));
        for piece in pieces {
            self.read_piece(job, piece, Some(id), (0, 0), vec![0; piece.count as usize * sector]);
        }
    }

    /// The member that is to read a piece of a snapshot, and its own number of it.
    pub(crate) fn snapshot_reader(&self, id: SnapshotId, piece: &Piece, tried: Mask) -> Option<(usize, SnapshotId)> {
        let on = &self.snapshots.views[self.snapshots.at(id)?].on;
        let may = |member: &usize| self.serves(*member) && tried & bit(*member) == 0;
        let member = match self.shape.level {
            Level::Raid1 => {
                let copies = (0..on.len()).filter(|member| on[*member].is_some() && may(member));
                copies.min_by_key(|member| self.seats[*member].load)
            }
            Level::Raid0 | Level::Concat => Some(piece.member).filter(may),
        }?;
        Some((member, on.get(member).copied().flatten()?))
    }
}
