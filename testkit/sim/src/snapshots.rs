//! Snapshots in a simulation: made, read, compared, renamed, held, deleted and rolled back to, among everything else. So are clones of them.

use std::collections::BTreeMap;

use device::{Device, Io, SnapshotChange, SnapshotError, SnapshotId};

use crate::model::Model;
use crate::payload;
use crate::requests::{Asked, owned};
use crate::run::{Failure, PATIENCE, Simulation};

/// The most at a time.
const MOST: usize = 8;
/// The most clones at a time.
const MOST_CLONES: usize = 5;

impl Simulation {
    /// Whether a change may be refused because as much holds data as there is room for.
    pub(crate) fn may_be_full(&self) -> bool {
        self.plan.sparse || self.plan.snapshot_once_in > 0
    }

    /// The snapshot of the model, as the device knows it.
    fn snapshot_id(&mut self, at: usize) -> SnapshotId {
        let name = self.model.snaps[at].label().0.clone();
        self.device().snapshot_named(&name).map_or(0, |snapshot| snapshot.id)
    }

    /// Changes the snapshots. Gives whether that was done; nothing was, or nobody knows, when it was not.
    fn change_snapshots(&mut self, change: &SnapshotChange) -> Result<bool, Failure> {
        Ok(self.told(change, |device| device.change_snapshots(change))?.is_some())
    }

    /// What a change of the snapshots gave; nothing where it was not made, or nobody knows.
    fn told<T>(
        &mut self,
        change: &SnapshotChange,
        call: impl FnOnce(&mut Device) -> Result<T, SnapshotError>,
    ) -> Result<Option<T>, Failure> {
        let result = call(self.device());
        if self.store.is_off() {
            return Ok(None);
        }
        match result {
            Ok(given) => Ok(Some(given)),
            Err(SnapshotError::Full) => Ok(None),
            Err(SnapshotError::Failed(_)) if self.plan.errors || self.may_lack_space => {
                // Only the next attach can tell.
                self.store.switch_off();
                Ok(None)
            }
            Err(error) => Err(Failure::Wrong(format!("{change:?}: {error}"))),
        }
    }

    /// Something with snapshots.
    pub(crate) fn snapshot_request(&mut self, tag: u64) -> Result<(), Failure> {
        let count = self.model.snaps.len();
        if count == 0 || (count < MOST && self.random.one_in(5)) {
            return self.make_snapshot();
        }
        let at = self.random.below(count as u64) as usize;
        if self.plan.clone_once_in > 0 && self.random.one_in(self.plan.clone_once_in) {
            return self.clone_request(at);
        }
        match self.random.below(12) {
            0 | 1 => self.delete_snapshot(at),
            2 => self.roll_back(at),
            3 => self.label_snapshot(at),
            4..=6 => self.compare_moments(at),
            _ => {
                let (lba, count) = self.range();
                let expected = (lba..lba + count).map(|lba| self.model.snaps[at].shows(lba));
                let expected = expected.map(|op| (op, Model::is_zero(op))).collect();
                let (id, buf) =
                    (self.snapshot_id(at), vec![0xee; count as usize * self.plan.geometry.sector_bytes as usize]);
                let submitted = self.device().submit(tag, Io::ReadSnapshot { id, lba, buf });
                self.submitted(tag, Asked::Read { lba, expected, since: Vec::new() }, owned(submitted))
            }
        }
    }

    fn make_snapshot(&mut self) -> Result<(), Failure> {
        let name = format!("s{}", self.model.next_op());
        let change = SnapshotChange::Create { name: name.clone(), created: 7 };
        let op = self.model.snap_asked(&name);
        // The service has the next flush make it durable, and serves others meanwhile.
        let durable = self.random.one_in(2);
        let made = match durable {
            true => self.change_snapshots(&change)?,
            false => self.told(&change, |device| device.begin_snapshot_change(&change))?.is_some_and(|begun| begun),
        };
        match made {
            true => {
                self.model.answered(op, durable);
                self.report.snapshots += 1;
            }
            // The power may have failed behind it.
            false if self.store.is_off() => {}
            false => self.model.snap_refused(),
        }
        Ok(())
    }

    /// Something with clones of a snapshot.
    fn clone_request(&mut self, of: usize) -> Result<(), Failure> {
        let count = self.model.clones.len();
        if count < MOST_CLONES && (count == 0 || self.random.one_in(3)) {
            return self.make_clone(of);
        }
        if count > 0 && self.random.one_in(3) {
            let at = self.random.below(count as u64) as usize;
            return if self.random.one_in(2) { self.promote_clone(at) } else { self.delete_clone(at) };
        }
        Ok(())
    }

    fn promote_clone(&mut self, at: usize) -> Result<(), Failure> {
        let id = self.clone_id(at);
        let before = self.model.clone();
        let op = self.model.promoted(at);
        match self.change_snapshots(&SnapshotChange::Promote(id))? {
            true => {
                self.report.promoted += 1;
                self.model.answered(op, true);
                self.model.clones_gone();
            }
            false if self.store.is_off() => {}
            false => self.model = before,
        }
        Ok(())
    }

    fn clone_id(&mut self, at: usize) -> SnapshotId {
        let name = self.model.clones[at].name.clone();
        self.device().clone_named(&name).map_or(0, |clone| clone.id)
    }

    /// Where a request goes: to the device, or to one of its clones, with where that begins in the model.
    pub(crate) fn target(&mut self) -> (Option<SnapshotId>, u64) {
        let count = self.model.clones.len() as u64;
        if count == 0 || self.random.one_in(2) {
            return (None, 0);
        }
        let at = self.random.below(count) as usize;
        (Some(self.clone_id(at)), self.model.clones[at].base)
    }

    fn make_clone(&mut self, of: usize) -> Result<(), Failure> {
        // What it begins with could be one of several versions.
        if !self.model.snaps[of].sure {
            return Ok(());
        }
        let name = format!("c{}", self.model.next_op());
        let change = SnapshotChange::Clone { of: self.snapshot_id(of), name: name.clone(), created: 7 };
        let op = self.model.clone_asked(&name, of);
        let durable = self.random.one_in(2);
        let made = match durable {
            true => self.change_snapshots(&change)?,
            false => self.told(&change, |device| device.begin_snapshot_change(&change))?.is_some_and(|begun| begun),
        };
        match made {
            true => {
                self.model.answered(op, durable);
                self.report.clones += 1;
            }
            false if self.store.is_off() => {}
            false => self.model.clone_refused(),
        }
        Ok(())
    }

    fn delete_clone(&mut self, at: usize) -> Result<(), Failure> {
        let id = self.clone_id(at);
        self.model.clone_going(at);
        match self.change_snapshots(&SnapshotChange::DeleteClone(id))? {
            true => self.model.clones_gone(),
            false if self.store.is_off() => {}
            false => self.model.none_goes(),
        }
        Ok(())
    }

    /// After a crash: every sector of the device and of each clone, those being the ones that must be there. Nothing when the power failed meanwhile.
    pub(crate) fn read_all(&mut self) -> Result<Option<BTreeMap<u64, Vec<u8>>>, Failure> {
        let found: Vec<String> = self.device().clones().iter().map(|clone| clone.name.clone()).collect();
        let Some(image) = self.read_everything()? else { return Ok(None) };
        let mut images = BTreeMap::from([(0, image)]);
        self.model.clones_after(&found).map_err(Failure::Wrong)?;
        for at in 0..self.model.clones.len() {
            let id = self.clone_id(at);
            let Some(image) = self.read_snapshot(id)? else { return Ok(None) };
            images.insert(self.model.clones[at].base, image);
        }
        Ok(Some(images))
    }

    fn delete_snapshot(&mut self, at: usize) -> Result<(), Failure> {
        let id = self.snapshot_id(at);
        if self.model.has_clones(at) {
            return match self.device().change_snapshots(&SnapshotChange::Delete(id)) {
                Err(SnapshotError::Held(_) | SnapshotError::Cloned(..)) => Ok(()),
                other => Err(Failure::Wrong(format!("a clone stands on a snapshot, and a delete gives {other:?}"))),
            };
        }
        if self.model.snaps[at].label().1 {
            return match self.device().change_snapshots(&SnapshotChange::Delete(id)) {
                Err(SnapshotError::Held(_)) => Ok(()),
                other => Err(Failure::Wrong(format!("a snapshot is held, and a delete gives {other:?}"))),
            };
        }
        self.model.snaps_going(|other| other == at);
        match self.change_snapshots(&SnapshotChange::Delete(id))? {
            true => self.model.snaps_gone(),
            false if self.store.is_off() => {}
            false => self.model.none_goes(),
        }
        Ok(())
    }

    fn roll_back(&mut self, at: usize) -> Result<(), Failure> {
        // What it brings back could be one of several versions.
        if !self.model.snaps[at].sure {
            return Ok(());
        }
        let (to, held) = (self.snapshot_id(at), self.model.snaps[at + 1..].iter().any(|snap| snap.label().1));
        let cloned = (at + 1..self.model.snaps.len()).any(|newer| self.model.has_clones(newer));
        let delete_newer = !held && !cloned && self.random.one_in(2);
        let before = self.model.clone();
        if delete_newer {
            self.model.snaps_going(|other| other > at);
        }
        let op = self.model.rolled_back(at);
        match self.change_snapshots(&SnapshotChange::RollBack { to, delete_newer })? {
            true => {
                self.report.roll_backs += 1;
                self.model.answered(op, true);
                self.model.snaps_gone();
            }
            false if self.store.is_off() => {}
            false => self.model = before,
        }
        Ok(())
    }

    fn label_snapshot(&mut self, at: usize) -> Result<(), Failure> {
        let (id, (name, held)) = (self.snapshot_id(at), self.model.snaps[at].label().clone());
        let (change, label) = match self.random.one_in(2) {
            true => (SnapshotChange::Hold(id, !held), (name, !held)),
            false => {
                let name = format!("r{}-{}", self.model.next_op(), self.random.below(1000));
                (SnapshotChange::Rename(id, name.clone()), (name, held))
            }
        };
        self.model.snap_labelled(at, label);
        match self.change_snapshots(&change)? {
            true => self.model.snap_label_answered(at),
            false if self.store.is_off() => {}
            false => self.model.snap_label_refused(at),
        }
        Ok(())
    }

    /// Every sector that differs between two moments is in their difference.
    fn compare_moments(&mut self, at: usize) -> Result<(), Failure> {
        let other = self.random.below(self.model.snaps.len() as u64 + 1) as usize;
        let other = (other < self.model.snaps.len()).then_some(other);
        let one = Some(self.snapshot_id(at));
        let (with, most) = (other.map(|other| self.snapshot_id(other)), 1 + self.random.below(40) as usize);
        let mut named = vec![false; self.model.len() as usize];
        let mut from = Some(0);
        while let Some(lba) = from {
            let found = self.device().diff(one, with, lba, most).map_err(|error| Failure::Wrong(error.to_string()))?;
            for run in found.0 {
                named[run.lba as usize..(run.lba + run.count) as usize].fill(true);
            }
            from = found.1;
        }
        self.report.diffs += 1;
        for lba in 0..self.model.len() {
            let now = other.map_or_else(|| self.model.current(lba), |other| self.model.snaps[other].shows(lba));
            let then = self.model.snaps[at].shows(lba);
            let differs = now != then && !(Model::is_zero(now) && Model::is_zero(then));
            if differs && !named[lba as usize] {
                return Err(Failure::Wrong(format!(
                    "sector {lba} was {then} and is {now}, and no difference names it"
                )));
            }
        }
        Ok(())
    }

    /// After a crash the snapshots are those that must be, and show what they must; false when the power failed meanwhile.
    pub(crate) fn compare_snapshots(&mut self) -> Result<bool, Failure> {
        let found = self.device().snapshots().iter().map(|snapshot| (snapshot.name.clone(), snapshot.held));
        let found: Vec<_> = found.collect();
        self.model.snaps_after(&found).map_err(Failure::Wrong)?;
        for at in 0..self.model.snaps.len() {
            // Those that were made in good order are looked at now and then.
            if self.model.snaps[at].sure && !self.random.one_in(3) {
                continue;
            }
            let id = self.snapshot_id(at);
            let Some(image) = self.read_snapshot(id)? else { return Ok(false) };
            let sector = self.plan.geometry.sector_bytes as usize;
            self.model
                .snap_shows(at, |lba, op, zero| {
                    payload::holds(&image[lba as usize * sector..][..sector], lba, op, zero)
                })
                .map_err(Failure::Wrong)?;
        }
        Ok(true)
    }

    fn read_snapshot(&mut self, id: SnapshotId) -> Result<Option<Vec<u8>>, Failure> {
        let sector = self.plan.geometry.sector_bytes as usize;
        let mut image = Vec::new();
        while (image.len() / sector) < self.model.len() as usize {
            let lba = (image.len() / sector) as u64;
            let count = u64::from(self.plan.largest).min(self.model.len() - lba);
            match self.call(Io::ReadSnapshot { id, lba, buf: vec![0xee; count as usize * sector] })? {
                Some(Ok(buf)) => image.extend(buf.expect("a read gives its buffer")),
                Some(Err(error)) => return Err(Failure::Wrong(format!("read of snapshot {id}: {error}"))),
                None => return Ok(None),
            }
        }
        Ok(Some(image))
    }

    /// Deletes all of them, and waits until nothing is left of them.
    pub(crate) fn delete_all_snapshots(&mut self) -> Result<(), Failure> {
        while !self.model.clones.is_empty() {
            let left = self.model.clones.len();
            self.delete_clone(0)?;
            if self.model.clones.len() == left {
                return Err(Failure::Stuck("a clone cannot be deleted".into()));
            }
        }
        while !self.model.snaps.is_empty() {
            let id = self.snapshot_id(0);
            let free = self.change_snapshots(&SnapshotChange::Hold(id, false))?;
            self.model.snaps_going(|at| at == 0);
            if !free || !self.change_snapshots(&SnapshotChange::Delete(id))? {
                return Err(Failure::Stuck("a snapshot cannot be deleted".into()));
            }
            self.model.snaps_gone();
        }
        for _ in 0..PATIENCE {
            if self.device().kept_sectors() == 0 {
                return Ok(());
            }
            self.device().idle();
            self.poll()?;
        }
        Err(Failure::Stuck("what deleted snapshots held is never freed".into()))
    }
}
