//! What every sector may hold: the promises of the device, kept as a list of versions.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use device::BatchOp;

/// A version of a sector: the number of the change that made it, an even one from 2 on in the order of submission; one more where the
/// change made it zeros. 0 stands for "never written".
pub type OpId = u64;

/// Sectors that a change touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// First sector.
    pub lba: u64,
    /// How many.
    pub count: u64,
    /// They are zeros then.
    pub zeros: bool,
}

impl Part {
    /// Those of an operation of a batch.
    pub fn of(op: &BatchOp) -> Part {
        let sectors = op.sectors();
        Part { lba: sectors.start, count: sectors.end - sectors.start, zeros: matches!(op, BatchOp::Trim { .. }) }
    }

    fn sectors(&self) -> Range<usize> {
        self.lba as usize..(self.lba + self.count) as usize
    }
}

/// One submitted change.
#[derive(Clone, Debug, Hash)]
struct Op {
    parts: Vec<Part>,
    /// All or nothing.
    atomic: bool,
    answered: bool,
}

/// A snapshot, and what it may show.
#[derive(Clone, Debug, Hash)]
pub struct Snap {
    /// The change that made it.
    op: OpId,
    /// Its name when it was made, by which it is known here.
    pub name: String,
    /// The newest name and whether it is held, and what may still be so after a crash.
    labels: Vec<(String, bool)>,
    /// For each sector what it may show, resolved; the last is what it shows if it was made in good order.
    sectors: Vec<Vec<OpId>>,
    /// It is durable.
    pub sure: bool,
    /// That it be deleted was asked.
    going: bool,
}

impl Snap {
    /// What it shows.
    pub fn shows(&self, lba: u64) -> OpId {
        *self.sectors[lba as usize].last().expect("a sector always holds something")
    }

    /// What it is called and whether it is held, and what may still be so after a crash.
    pub fn labels(&self) -> &[(String, bool)] {
        &self.labels
    }

    /// What it is called, and whether it is held.
    pub fn label(&self) -> &(String, bool) {
        self.labels.last().expect("it has a name")
    }
}

/// A clone of a snapshot. Its sectors stand behind those of the device, and of clones before it.
#[derive(Clone, Debug, Hash)]
pub struct Copy {
    /// The change that made it.
    op: OpId,
    /// Its name.
    pub name: String,
    /// The name, when that was made, of the snapshot that it stands on.
    pub of: String,
    /// Where its sectors begin in the model.
    pub base: u64,
    /// It is durable.
    sure: bool,
    /// That it be deleted was asked.
    going: bool,
    /// The change that promotes it.
    promoting: Option<OpId>,
}

/// The model of one device.
#[derive(Clone)]
pub struct Model {
    /// In the order in which they were made.
    pub clones: Vec<Copy>,
    /// Sectors of the device, and of each clone.
    len: u64,
    /// From the oldest to the newest.
    pub snaps: Vec<Snap>,
    /// Of changes that roll back, whose sectors are older versions: which ones.
    origins: BTreeMap<(OpId, u64), OpId>,
    /// For each sector the versions that it may show after a crash, oldest first; the last is what a read shows.
    sectors: Vec<Vec<OpId>>,
    /// Changes that some sector may still show or lose.
    ops: BTreeMap<OpId, Op>,
    next: OpId,
}

impl Model {
    /// A device that was never written.
    pub fn new(sectors: u64) -> Model {
        Model {
            clones: Vec::new(),
            len: sectors,
            snaps: Vec::new(),
            origins: BTreeMap::new(),
            sectors: vec![vec![0]; sectors as usize],
            ops: BTreeMap::new(),
            next: 2,
        }
    }

    /// How many sectors.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// So many sectors from now on. New ones were never written, whatever once lay there; what changes did to those that are gone is of no account.
    /// There are no clones: a device that has some keeps its size.
    pub fn resize(&mut self, sectors: u64) {
        debug_assert!(self.clones.is_empty());
        self.len = sectors;
        self.sectors.resize(sectors as usize, vec![0]);
        self.snaps.iter_mut().for_each(|snap| snap.sectors.resize(sectors as usize, vec![0]));
        for part in self.ops.values_mut().flat_map(|op| &mut op.parts) {
            part.count = part.count.min(sectors.saturating_sub(part.lba));
            part.lba = part.lba.min(sectors);
        }
    }

    /// A change is about to be submitted: its number, should the device take it.
    pub fn next_op(&self) -> OpId {
        self.next
    }

    /// The device took the change (answered or not).
    pub fn took(&mut self, lba: u64, count: u64, zeros: bool) -> OpId {
        self.took_all(&[Part { lba, count, zeros }], !zeros)
    }

    /// The device took several changes at once (answered or not), of which no two touch the same sector.
    pub fn took_all(&mut self, parts: &[Part], atomic: bool) -> OpId {
        let op = self.next;
        self.next += 2;
        for part in parts {
            for sector in &mut self.sectors[part.sectors()] {
                sector.push(op | u64::from(part.zeros));
            }
        }
        self.ops.insert(op, Op { parts: parts.to_vec(), atomic, answered: false });
        op
    }

    /// The change was answered with success; with `durable` it was FUA.
    pub fn answered(&mut self, op: OpId, durable: bool) {
        if let Some(entry) = self.ops.get_mut(&op) {
            entry.answered = true;
        }
        if durable {
            self.make_durable(op);
        }
    }

    /// The changes that a flush submitted now must cover.
    pub fn flush_covers(&self) -> Vec<OpId> {
        self.ops.iter().filter(|(_, op)| op.answered).map(|(id, _)| *id).collect()
    }

    /// A flush that covers these was answered with success.
    pub fn flushed(&mut self, covered: &[OpId]) {
        for op in covered {
            self.make_durable(*op);
        }
    }

    fn make_durable(&mut self, op: OpId) {
        let Some(entry) = self.ops.remove(&op) else { return };
        for copy in &mut self.clones {
            // What it holds is durable with it.
            let own = copy.base..copy.base + self.len;
            copy.sure |= copy.op == op || entry.parts.iter().any(|part| own.contains(&part.lba));
        }
        for sector in entry.parts.iter().flat_map(Part::sectors) {
            // Nothing older than this may come back.
            self.sectors[sector].retain(|version| *version >= op);
        }
        if let Some(snap) = self.snaps.iter_mut().find(|snap| snap.op == op) {
            snap.sure = true;
            snap.sectors.iter_mut().for_each(|versions| _ = versions.drain(..versions.len() - 1));
        }
    }

    /// A hash of all that is promised: of two that are the same, the same may follow.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.sectors, &self.ops, &self.snaps, &self.clones, &self.origins).hash(&mut hasher);
        hasher.finish()
    }

    /// What a read shows now.
    pub fn current(&self, lba: u64) -> OpId {
        self.resolved(lba, *self.sectors[lba as usize].last().expect("a sector always holds something"))
    }

    /// The version that another one brought back, or itself.
    fn resolved(&self, lba: u64, version: OpId) -> OpId {
        self.origins.get(&(version, lba)).copied().unwrap_or(version)
    }

    /// A snapshot is asked for: until that is durable it may lack what is not.
    pub fn snap_asked(&mut self, name: &str) -> OpId {
        let op = self.took_all(&[], false);
        let resolved = |(lba, versions): (u64, &Vec<OpId>)| versions.iter().map(|op| self.resolved(lba, *op)).collect();
        let sectors = (0..self.len).zip(&self.sectors).map(resolved).collect();
        let labels = vec![(name.to_owned(), false)];
        self.snaps.push(Snap { op, name: name.into(), labels, sectors, sure: false, going: false });
        op
    }

    /// The newest was not made.
    pub fn snap_refused(&mut self) {
        if let Some(snap) = self.snaps.pop() {
            self.ops.remove(&snap.op);
        }
    }

    /// Snapshots are to be deleted.
    pub fn snaps_going(&mut self, which: impl Fn(usize) -> bool) {
        self.snaps.iter_mut().enumerate().filter(|(at, _)| which(*at)).for_each(|(_, snap)| snap.going = true);
    }

    /// A delete was refused.
    pub fn none_goes(&mut self) {
        self.snaps.iter_mut().for_each(|snap| snap.going = false);
        self.clones.iter_mut().for_each(|copy| copy.going = false);
    }

    /// Those are gone.
    pub fn snaps_gone(&mut self) {
        self.snaps.retain(|snap| !snap.going);
    }

    /// After a crash a snapshot may be called and held as it once was.
    pub fn snap_may_be(&mut self, at: usize, former: &[(String, bool)]) {
        self.snaps[at].labels.splice(0..0, former.iter().cloned());
    }

    /// A snapshot is to have another name, or to be held or not.
    pub fn snap_labelled(&mut self, at: usize, label: (String, bool)) {
        self.snaps[at].labels.push(label);
    }

    /// It has.
    pub fn snap_label_answered(&mut self, at: usize) {
        let labels = &mut self.snaps[at].labels;
        labels.drain(..labels.len() - 1);
    }

    /// It stays as it was.
    pub fn snap_label_refused(&mut self, at: usize) {
        self.snaps[at].labels.pop();
    }

    /// The device takes what a snapshot shows for what it holds.
    pub fn rolled_back(&mut self, at: usize) -> OpId {
        let shown = (0..self.len).map(|lba| self.snaps[at].shows(lba)).collect();
        self.became(shown)
    }

    /// The device takes what a clone holds, and the clone is none any more.
    pub fn promoted(&mut self, at: usize) -> OpId {
        let base = self.clones[at].base;
        let op = self.became((0..self.len).map(|lba| self.current(base + lba)).collect());
        (self.clones[at].going, self.clones[at].promoting) = (true, Some(op));
        op
    }

    /// The device takes these older versions for what it holds.
    fn became(&mut self, shown: Vec<OpId>) -> OpId {
        let op = self.next;
        self.next += 2;
        for ((lba, shown), versions) in (0..).zip(shown).zip(&mut self.sectors) {
            self.origins.insert((op, lba), shown);
            versions.push(op);
        }
        let parts = vec![Part { lba: 0, count: self.len(), zeros: false }];
        self.ops.insert(op, Op { parts, atomic: true, answered: false });
        op
    }

    /// A clone of a snapshot is asked for.
    pub fn clone_asked(&mut self, name: &str, at: usize) -> OpId {
        let op = self.took_all(&[], false);
        let base = self.sectors.len() as u64;
        self.sectors.extend((0..self.len).map(|lba| vec![self.snaps[at].shows(lba)]));
        let of = self.snaps[at].name.clone();
        self.clones.push(Copy { op, name: name.into(), of, base, sure: false, going: false, promoting: None });
        op
    }

    /// The newest was not made.
    pub fn clone_refused(&mut self) {
        if let Some(copy) = self.clones.pop() {
            self.ops.remove(&copy.op);
            self.sectors.truncate(copy.base as usize);
        }
    }

    /// Whether a clone stands on a snapshot.
    pub fn has_clones(&self, at: usize) -> bool {
        self.clones.iter().any(|copy| copy.of == self.snaps[at].name)
    }

    /// A clone is to be deleted.
    pub fn clone_going(&mut self, at: usize) {
        self.clones[at].going = true;
    }

    /// It is.
    pub fn clones_gone(&mut self) {
        self.clones.retain(|copy| !copy.going);
    }

    /// After a crash: these clones are there. Checks that they are those that must be, and may be.
    pub fn clones_after(&mut self, found: &[String]) -> Result<(), String> {
        if let Some(name) = found.iter().find(|name| !self.clones.iter().any(|copy| copy.name == **name)) {
            return Err(format!("there is a clone {name}, and none like it was asked for"));
        }
        if let Some(copy) = self.clones.iter().find(|copy| copy.sure && !copy.going && !found.contains(&copy.name)) {
            return Err(format!("the clone {} is missing", copy.name));
        }
        // The device holds what a clone did exactly when the clone is gone. One that was not durable may never have been made: whether it was
        // promoted shows in what the device holds, all of it or nothing.
        let promoting =
            self.clones.iter().filter_map(|copy| Some((copy.promoting?, copy.sure, found.contains(&copy.name))));
        for (op, sure, is_there) in promoting.collect::<Vec<_>>() {
            if is_there {
                self.ops.remove(&op);
                self.sectors[..self.len as usize].iter_mut().for_each(|versions| versions.retain(|one| *one != op));
            } else if sure {
                self.make_durable(op);
            }
        }
        self.clones.retain(|copy| found.contains(&copy.name));
        self.clones.iter_mut().for_each(|copy| {
            (copy.sure, copy.going, copy.promoting) = (true, false, None);
        });
        Ok(())
    }

    /// Where the sectors begin of the device, and of each clone.
    pub fn bases(&self) -> Vec<u64> {
        std::iter::once(0).chain(self.clones.iter().map(|copy| copy.base)).collect()
    }

    /// After a crash: these snapshots are there, with name and whether they are held. Checks that they are those that must be, and may be.
    pub fn snaps_after(&mut self, found: &[(String, bool)]) -> Result<(), String> {
        for label in found {
            if !self.snaps.iter().any(|snap| snap.labels.contains(label)) {
                return Err(format!("there is a snapshot {label:?}, and none like it was asked for"));
            }
        }
        let mut wrong = None;
        self.snaps.retain_mut(|snap| {
            let label = snap.labels.iter().rev().find(|label| found.contains(label)).cloned();
            if label.is_none() && snap.sure && !snap.going {
                wrong = Some(format!("the snapshot {:?} is missing", snap.labels));
            }
            snap.going = false;
            let there = label.is_some();
            snap.labels = label.into_iter().collect();
            there
        });
        wrong.map_or(Ok(()), Err)
    }

    /// After a crash a snapshot shows this.
    pub fn snap_shows(&mut self, at: usize, mut holds: impl FnMut(u64, OpId, bool) -> bool) -> Result<(), String> {
        let snap = &mut self.snaps[at];
        for (lba, versions) in (0..).zip(&mut snap.sectors) {
            let found = versions.iter().rev().find(|version| holds(lba, **version, Model::is_zero(**version))).copied();
            let Some(found) = found else {
                return Err(format!("sector {lba} of snapshot {} holds none of the versions {versions:?}", snap.name));
            };
            *versions = vec![found];
        }
        snap.sure = true;
        Ok(())
    }

    /// Whether that version is zeros.
    pub fn is_zero(op: OpId) -> bool {
        op == 0 || op & 1 == 1
    }

    /// After a crash: `holds` says what a sector holds, the device's and that of each clone, by comparing bytes with a version. Checks every promise,
    /// then goes on from what was seen.
    pub fn crashed(&mut self, mut holds: impl FnMut(u64, OpId, bool) -> bool) -> Result<(), String> {
        let mut seen = Vec::with_capacity(self.sectors.len());
        let bases = self.bases();
        let is_there = |at: u64| bases.contains(&(at - at % self.len));
        for (lba, versions) in (0..).zip(&self.sectors) {
            if !is_there(lba) {
                seen.push(0);
                continue;
            }
            // Newest first: of two versions that look alike (zeros) the newer one explains more.
            let found = versions.iter().rev().find(|version| {
                let shown = self.resolved(lba, **version);
                holds(lba, shown, Model::is_zero(shown))
            });
            let Some(found) = found else {
                return Err(format!("sector {lba} holds none of the versions {versions:?} that it may hold"));
            };
            seen.push(*found);
        }
        let lies_here = |op: &Op| op.parts.iter().all(|part| is_there(part.lba));
        for (id, op) in self.ops.iter().filter(|(_, op)| op.atomic && lies_here(op)) {
            let sectors = || op.parts.iter().flat_map(Part::sectors);
            // What may as well be older, zeros or what was brought back, says nothing.
            let older = |at: usize| {
                let shown = |version: OpId| self.resolved(at as u64, version);
                let like = |one: OpId, other: OpId| one == other || (Model::is_zero(one) && Model::is_zero(other));
                self.sectors[at].iter().any(|version| version < id && like(shown(*version), shown(seen[at])))
            };
            let shows = |at: usize| seen[at] | 1 == *id | 1 && !older(at);
            if let (true, Some(at)) = (sectors().any(shows), sectors().find(|at| seen[*at] < *id)) {
                return Err(format!(
                    "change {id} of {:?} is torn: sector {at} still holds version {}",
                    op.parts, seen[at]
                ));
            }
        }
        self.ops.clear();
        for (sector, seen) in self.sectors.iter_mut().zip(seen) {
            *sector = vec![seen];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a crash in the middle of a promotion makes of a device that then holds these versions in its two sectors, where the clone is
    /// gone. Both were changed since the snapshot; the clone wrote the second.
    fn promoted_then(clone_is_durable: bool, found: fn(Versions) -> [OpId; 2]) -> Result<(), String> {
        let mut model = Model::new(2);
        let old = model.took(0, 2, false);
        model.answered(old, true);
        let snapshot = model.snap_asked("s");
        model.answered(snapshot, true);
        let new = model.took(0, 2, false);
        model.answered(new, true);
        let clone = model.clone_asked("c", 0);
        model.answered(clone, clone_is_durable);
        let own = model.took(model.clones[0].base + 1, 1, false);
        model.promoted(0);
        model.clones_after(&[])?;
        let found = found(Versions { old, new, own });
        model.crashed(|lba, version, _| found[lba as usize] == version)
    }

    /// Of before the snapshot, of behind it, and what the clone wrote.
    struct Versions {
        old: OpId,
        new: OpId,
        own: OpId,
    }

    #[test]
    fn a_clone_that_is_gone_was_promoted_or_never_made() {
        let whole: fn(Versions) -> [OpId; 2] = |versions| [versions.old, versions.own];
        let nothing: fn(Versions) -> [OpId; 2] = |versions| [versions.new, versions.new];
        let half: fn(Versions) -> [OpId; 2] = |versions| [versions.new, versions.own];
        assert_eq!([whole, nothing].map(|found| promoted_then(false, found)), [Ok(()), Ok(())]);
        assert!(promoted_then(false, half).is_err_and(|wrong| wrong.contains("torn")));
        assert_eq!(promoted_then(true, whole), Ok(()));
        assert!(promoted_then(true, nothing).is_err(), "it was durable, so it was there and is promoted");
    }
}
