//! Snapshots of arrays: made, read, renamed, held and deleted among requests, cuts, lost members and growth.

use std::collections::{BTreeMap, BTreeSet};

use array::{Level, MemberState};
use device::{Io, Snapshot, SnapshotChange, SnapshotError, SnapshotId};
use random::SplitMix64;
use uuid::Uuid;

use super::plan::SECTOR;
use super::requests::Asked;
use super::run::Simulation;
use crate::model::Snap;
use crate::payload;
use crate::requests::owned;
use crate::run::Failure;

/// The most at a time: members have room for that many and what the host sees.
const MOST: usize = 2;

/// How snapshots of an array are made. Its choices have a generator of their own, so that all else is the same with and without it.
#[derive(Clone, Debug)]
pub(super) struct Snapshots {
    pub random: SplitMix64,
    /// Something is done with them once in so many requests; 0 for never.
    pub once_in: u64,
    /// A member refused something, and the array may not know yet: no other one may be lost.
    pub doubt: bool,
    /// What is under way.
    changing: Option<Changing>,
    /// Members that have each of them, by the name that the model knows it by.
    holders: BTreeMap<String, BTreeSet<Uuid>>,
    /// What each was called and whether it was held: a copy that was away when that changed may bring it back.
    former: BTreeMap<String, Vec<(String, bool)>>,
    /// Names of those that a copy which is away may bring back: they were deleted without it, or only it has them.
    away: BTreeSet<String>,
}

/// A change that the array was asked for.
#[derive(Clone, Debug)]
struct Changing {
    change: SnapshotChange,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Make {
        op: u64,
    },
    Delete,
    Label {
        at: usize,
    },
    /// Of one that came back.
    Untracked,
}

impl Snapshots {
    /// Of a seed, where snapshots are wanted.
    pub fn new(seed: u64, wanted: bool) -> Snapshots {
        let mut random = SplitMix64::new(seed.rotate_left(32));
        let once_in = if wanted { 2 + random.below(30) } else { 0 };
        let (holders, former, away) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Snapshots { random, once_in, doubt: false, changing: None, holders, former, away }
    }

    /// The array is no more.
    pub fn forget(&mut self) {
        (self.changing, self.doubt) = (None, false);
    }
}

impl Simulation {
    /// What may happen with snapshots between two requests.
    pub fn snapshots_go_on(&mut self) -> Result<(), Failure> {
        if let Some(changing) = self.snapshots.changing.take() {
            return self.go_on_with(changing);
        }
        if self.snapshots.once_in == 0 || !self.snapshots.random.one_in(self.snapshots.once_in) {
            return Ok(());
        }
        if let Some((id, held)) = self.one_that_came_back() {
            let change = if held { SnapshotChange::Hold(id, false) } else { SnapshotChange::Delete(id) };
            return self.go_on_with(Changing { change, what: What::Untracked });
        }
        let count = self.model.snaps.len();
        let there = self.array.as_ref().map_or(0, |array| array.snapshots().len());
        if count == 0 || (there < MOST && self.snapshots.random.one_in(3)) {
            let name = format!("s{}", self.model.next_op());
            let op = self.model.snap_asked(&name);
            let change = SnapshotChange::Create { name, created: 7 };
            return self.go_on_with(Changing { change, what: What::Make { op } });
        }
        let at = self.snapshots.random.below(count as u64) as usize;
        let (name, held) = self.model.snaps[at].label().clone();
        // One that a crash took the holders of.
        let Some(id) = self.id_of(&name) else { return Ok(()) };
        let is_held = self.array.as_ref().and_then(|array| array.snapshot(id)).is_some_and(|snapshot| snapshot.held);
        if held != is_held {
            // The only copy that had it went before that was durable.
            let is_mirror = self.plan.shape.level == Level::Raid1;
            let wrong = || Failure::Wrong(format!("the snapshot {name} is held: {is_held}, expected {held}"));
            return if is_mirror { Ok(()) } else { Err(wrong()) };
        }
        match self.snapshots.random.below(8) {
            0 | 1 => self.delete_snapshot(at, id, held),
            2 => {
                let (change, label) = match self.snapshots.random.one_in(2) {
                    true => (SnapshotChange::Hold(id, !held), (name, !held)),
                    false => {
                        let name = format!("r{}-{}", self.model.next_op(), self.snapshots.random.below(1_000_000));
                        (SnapshotChange::Rename(id, name.clone()), (name, held))
                    }
                };
                let known = self.snapshots.former.entry(self.model.snaps[at].name.clone()).or_default();
                known.extend([self.model.snaps[at].label().clone(), label.clone()]);
                self.model.snap_labelled(at, label);
                self.go_on_with(Changing { change, what: What::Label { at } })
            }
            _ => self.read_snapshot(at, id),
        }
    }

    fn id_of(&self, name: &str) -> Option<SnapshotId> {
        self.array.as_ref()?.snapshots().iter().find(|snapshot| snapshot.name == name).map(|snapshot| snapshot.id)
    }

    fn one_that_came_back(&self) -> Option<(SnapshotId, bool)> {
        let known = |name: &String| {
            let is_it = |snap: &Snap| {
                let former = self.snapshots.former.get(&snap.name).into_iter().flatten();
                snap.labels().iter().chain(former).any(|(one, _)| one == name)
            };
            self.model.snaps.iter().any(is_it)
        };
        let mut found = self.array.as_ref()?.snapshots().iter();
        found.find(|snapshot| !known(&snapshot.name)).map(|snapshot| (snapshot.id, snapshot.held))
    }

    fn go_on_with(&mut self, changing: Changing) -> Result<(), Failure> {
        let Some(array) = &mut self.array else { return Ok(()) };
        let result = array.begin_snapshot_change(&changing.change);
        let failed = array.status().failure.is_some();
        match result {
            Ok(false) => {
                self.snapshots.changing = Some(changing);
                return Ok(());
            }
            // Nobody knows, until it is assembled again.
            _ if self.any_off() || failed => return Ok(()),
            Ok(true) => self.report.snapshots += u64::from(matches!(changing.what, What::Make { .. })),
            Err(SnapshotError::Full | SnapshotError::Unsupported(_)) => {}
            // The only copy that had it went, and nobody knows whether it did it.
            Err(SnapshotError::Unknown | SnapshotError::Failed(_)) if self.plan.shape.level == Level::Raid1 => {
                return Ok(());
            }
            Err(error) => return Err(Failure::Wrong(format!("{:?}: {error}", changing.change))),
        }
        match (changing.what, result.is_ok()) {
            (What::Make { op }, true) => {
                self.model.answered(op, true);
                self.note_holders(self.model.snaps.len() - 1);
            }
            (What::Make { .. }, false) => self.model.snap_refused(),
            (What::Delete, true) => {
                // A copy that is away does not know.
                self.snaps_are_gone();
            }
            (What::Delete, false) => self.model.none_goes(),
            (What::Label { at }, true) => self.model.snap_label_answered(at),
            (What::Label { at }, false) => self.model.snap_label_refused(at),
            (What::Untracked, _) => {}
        }
        Ok(())
    }

    fn snaps_are_gone(&mut self) {
        let before = self.model.snaps.clone();
        self.model.snaps_gone();
        for snap in before {
            if self.model.snaps.iter().all(|other| other.name != snap.name) {
                self.snapshots.holders.remove(&snap.name);
                let former = self.snapshots.former.get(&snap.name).into_iter().flatten();
                self.snapshots.away.extend(snap.labels().iter().chain(former).map(|(name, _)| name.clone()));
            }
        }
    }

    fn delete_snapshot(&mut self, at: usize, id: SnapshotId, held: bool) -> Result<(), Failure> {
        // Whoever reads it would be told that it is gone.
        if self.asked.iter().flatten().any(|asked| matches!(asked, Asked::Snapshot { .. })) {
            return Ok(());
        }
        let change = SnapshotChange::Delete(id);
        if held {
            let Some(array) = &mut self.array else { return Ok(()) };
            return match array.begin_snapshot_change(&change) {
                Err(SnapshotError::Held(_) | SnapshotError::Unsupported(_) | SnapshotError::Failed(_)) => Ok(()),
                other => Err(Failure::Wrong(format!("a snapshot is held, and a delete gives {other:?}"))),
            };
        }
        self.model.snaps_going(|other| other == at);
        self.go_on_with(Changing { change, what: What::Delete })
    }

    fn read_snapshot(&mut self, at: usize, id: SnapshotId) -> Result<(), Failure> {
        let Some(free) = self.asked.iter().position(Option::is_none) else { return Ok(()) };
        let len = self.model.len();
        let count = 1 + self.snapshots.random.below(u64::from(self.plan.shape.largest) * 2).min(len - 1);
        let lba = self.snapshots.random.below(len - count + 1);
        let expected = (lba..lba + count).map(|lba| self.model.snaps[at].shows(lba)).collect();
        let (losses, sure) = (self.report.losses, self.model.snaps[at].sure);
        let Some(array) = &mut self.array else { return Ok(()) };
        let states = array.status().members;
        let on = array.snapshot_on(id).iter().zip(&states);
        let copies = on.filter(|(own, state)| own.is_some() && **state != MemberState::Missing).count();
        let submitted =
            owned(array.submit(free as u64, Io::ReadSnapshot { id, lba, buf: vec![0xee; count as usize * SECTOR] }));
        // Until it is durable it may lack what is not.
        let asked = Asked::Snapshot { lba, expected: if sure { expected } else { Vec::new() }, losses, copies };
        self.submitted(free as u64, asked, submitted)
    }

    fn note_holders(&mut self, at: usize) {
        let snap = &self.model.snaps[at];
        let has = |node: &&super::member::Node| snap.labels().iter().any(|(name, _)| node.has_snapshot(name));
        let holders = self.nodes.iter().filter(has).map(|node| node.plan.format.uuid).collect();
        self.snapshots.holders.insert(snap.name.clone(), holders);
    }

    /// Members have no other snapshots than the array.
    pub fn no_snapshot_is_left_over(&self) -> Result<(), Failure> {
        let Some(array) = &self.array else { return Ok(()) };
        for (member, node) in self.nodes.iter().enumerate() {
            let own = node.device.iter().flat_map(|device| device.snapshots());
            for one in own {
                let is_on = |snapshot: &Snapshot| array.snapshot_on(snapshot.id).get(member) == Some(&Some(one.id));
                if !array.snapshots().iter().any(is_on) {
                    return Err(Failure::Wrong(format!("member {member} has the snapshot {} for itself", one.name)));
                }
            }
        }
        Ok(())
    }

    /// After a crash the snapshots are those that must be, and show what they must; false when the power failed meanwhile.
    pub fn compare_snapshots(&mut self) -> Result<bool, Failure> {
        let Some(array) = &self.array else { return Ok(false) };
        let states = array.status().members;
        let found: Vec<(String, bool)> =
            array.snapshots().iter().map(|snapshot| (snapshot.name.clone(), snapshot.held)).collect();
        let is_mirror = self.plan.shape.level == Level::Raid1;
        if is_mirror {
            for at in 0..self.model.snaps.len() {
                let former = self.snapshots.former.get(&self.model.snaps[at].name);
                self.model.snap_may_be(at, former.map_or(&[], Vec::as_slice));
            }
            self.forget_what_is_away(&states, &found);
        }
        let is_known =
            |name: &String| self.model.snaps.iter().any(|snap| snap.labels().iter().any(|(one, _)| one == name));
        let away = &self.snapshots.away;
        let found: Vec<(String, bool)> =
            found.into_iter().filter(|(name, _)| is_known(name) || !(is_mirror && away.contains(name))).collect();
        self.model.snaps_after(&found).map_err(Failure::Wrong)?;
        for at in 0..self.model.snaps.len() {
            let Some(id) = self.id_of(&self.model.snaps[at].label().0) else { continue };
            let Some(image) = self.read_everything(|lba, buf| Io::ReadSnapshot { id, lba, buf })? else {
                return Ok(false);
            };
            let holds = |lba: u64, op, zero| payload::holds(&image[lba as usize * SECTOR..][..SECTOR], lba, op, zero);
            self.model.snap_shows(at, holds).map_err(Failure::Wrong)?;
            self.report.diffs += 1;
            self.note_holders(at);
        }
        Ok(true)
    }

    /// Snapshots of a mirror that only copies have which are not there now: those may bring them back.
    fn forget_what_is_away(&mut self, states: &[MemberState], found: &[(String, bool)]) {
        let there: BTreeSet<Uuid> = self
            .nodes
            .iter()
            .zip(states)
            .filter(|(_, state)| **state != MemberState::Missing)
            .map(|(node, _)| node.plan.format.uuid)
            .collect();
        let is_away = |snap: &Snap| {
            let holders = self.snapshots.holders.get(&snap.name);
            let shown = snap.labels().iter().any(|label| found.contains(label));
            !shown && holders.is_some_and(|holders| holders.is_disjoint(&there))
        };
        let gone: Vec<(String, Vec<String>)> = self
            .model
            .snaps
            .iter()
            .filter(|snap| is_away(snap))
            .map(|snap| (snap.name.clone(), snap.labels().iter().map(|(name, _)| name.clone()).collect()))
            .collect();
        for (name, labels) in gone {
            self.model.snaps.retain(|snap| snap.name != name);
            self.snapshots.holders.remove(&name);
            self.snapshots.away.extend(labels);
        }
        // Those whose deletion was under way may be on a copy that is not there.
        let going = self.model.snaps.iter().flat_map(|snap| snap.labels().iter().map(|(name, _)| name.clone()));
        self.snapshots.away.extend(going.collect::<Vec<_>>());
    }
}
