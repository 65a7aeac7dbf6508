//! One sequence: carried out, and cut at every moment of its last operation.

use std::hash::{DefaultHasher, Hash, Hasher};

use device::{Device, Io, MediaFormat, SnapshotChange, SnapshotError, SnapshotId, Staging, Submitted};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::Media;
use media::flashback::media_geometry;
use media::sim::{Knobs, LabelFault, SimMedia, SimStore};
use media::staged::Left;
use uuid::Uuid;

use super::moments::{Legacy, Moment, Moments};
use super::operations::{Operation, SECTORS};
use super::{Scope, Seen};
use crate::Failure;
use crate::model::{Model, OpId};
use crate::payload;
use crate::requests::Answer;
use crate::tapped::Tapped;

const SECTOR: usize = 512;

/// Polls after which nothing more is to be expected.
const PATIENCE: u32 = 10_000;
/// Times that a request is submitted again before it counts as not taken.
const ATTEMPTS: u32 = 200;
/// The tag of the first of flushes that overlap.
const FLUSHES: u64 = 1;

/// The module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Both dies hold data.
    Plain,
    /// One die holds the parity of the other.
    Parity,
}

impl Shape {
    fn geometry(self) -> Geometry {
        // With parity pages are so large that a flush leaves one open: then its parity goes to the journal.
        let (parity, slots_per_page) = if self == Shape::Plain { (0, 1) } else { (1, 4) };
        Geometry {
            dies: 2,
            parity,
            blocks: 4,
            pages_per_block: 4,
            slots_per_page,
            sector_bytes: SECTOR as u32,
            trailer_bytes: TRAILER_BYTES,
            unit_bytes: 512,
        }
    }

    fn store(self) -> SimStore {
        let geometry = self.geometry();
        SimStore::new(if geometry.parity > 0 { media_geometry(&geometry) } else { geometry })
    }
}

/// What is to be run.
pub(super) struct Run<'a> {
    pub shape: Shape,
    /// After each operation everything under way is waited for.
    pub patient: bool,
    pub sequence: &'a [Operation],
    /// Recoveries are cut too.
    pub recovered: bool,
    pub seen: &'a Seen,
}

/// Runs it; a panic is a failure like others.
pub(super) fn caught(run: Run<'_>, scope: &mut Scope) -> Result<(), Failure> {
    Failure::caught(|| run.all(scope))
}

fn knobs() -> Knobs {
    Knobs { spread_polls: 0, must_erase: false, ..Knobs::default() }
}

fn wrong(what: impl Into<String>) -> Failure {
    Failure::Wrong(what.into())
}

impl Run<'_> {
    fn all(&self, scope: &mut Scope) -> Result<(), Failure> {
        let store = self.shape.store();
        let format = MediaFormat {
            sectors: SECTORS,
            max_request_bytes: 2 * SECTOR as u32,
            checkpoint_interval: 16,
            policy: Policy::Greedy,
            uuid: Uuid::from_u128(9),
            key: None,
        };
        Device::format_media(&mut SimMedia::new(&store, 1, knobs()), &format)
            .map_err(|error| Failure::Stuck(format!("format: {error}")))?;
        let moments = Moments::default();
        let legacy = Legacy::of(&store, None);
        let mut device = Some(attach(&legacy, Some(&moments)).map_err(wrong)?);
        let mut model = Model::new(SECTORS);
        for (number, operation) in self.sequence.iter().enumerate() {
            let last = number + 1 == self.sequence.len();
            moments.borrow_mut().clear();
            // What was promised at each moment.
            let mut promised: Vec<Model> = Vec::new();
            if !self.operation(*operation, &legacy, &mut device, &mut model, (&moments, &mut promised))? {
                return Ok(());
            }
            if last {
                moments.borrow_mut().push(legacy.moment());
                promised.push(model.clone());
                let moments = std::mem::take(&mut *moments.borrow_mut());
                for (moment, model) in moments.iter().zip(&promised) {
                    self.cut(&moment.store, model, self.recovered, scope)?;
                    self.kill(moment, model, self.recovered, scope)?;
                }
            }
        }
        Ok(())
    }

    /// Carries one operation out. False when it is not taken.
    fn operation(
        &self,
        operation: Operation,
        legacy: &Legacy,
        device: &mut Option<Device>,
        model: &mut Model,
        (moments, promised): (&Moments, &mut Vec<Model>),
    ) -> Result<bool, Failure> {
        // Moments that came since count under what is promised now.
        let mut note = |model: &Model| promised.resize(moments.borrow().len(), model.clone());
        let here = device.as_mut().expect("attached");
        let op = model.next_op();
        let (mut parts, atomic) = operation.changes();
        let (view, base) = match (operation.is_of_clone(), here.clones().first().map(|clone| clone.id)) {
            (true, None) => return Ok(true),
            (true, view) => (view, model.bases()[1]),
            (false, _) => (None, 0),
        };
        let mut data = Vec::new();
        for lba in parts.iter().filter(|part| !part.zeros).flat_map(|part| part.lba..part.lba + part.count) {
            let at = data.len();
            data.resize(at + SECTOR, 0);
            payload::fill(&mut data[at..], lba, op, false);
        }
        let io = match operation {
            Operation::Write { lba, fua, .. } | Operation::CloneWrite { lba, fua, .. } => {
                Io::Write { lba, data: &data, fua }
            }
            Operation::Trim { lba, count, fua } | Operation::CloneTrim { lba, count, fua } => {
                Io::Trim { lba, count, fua }
            }
            Operation::Zeroes { lba } => Io::WriteZeroes { lba, count: 1, fua: false, allocate: true },
            Operation::Batch { ops, fua } => Io::Batch { ops, data: &data, fua },
            Operation::Flush => Io::Flush,
            Operation::Read => Io::Read { lba: 0, buf: vec![0xee; SECTORS as usize * SECTOR] },
            Operation::Flushes => return self.flushes(here, model, note),
            Operation::Snapshot
            | Operation::RollBack
            | Operation::Delete
            | Operation::Clone
            | Operation::DeleteClone
            | Operation::Promote => {
                let taken = change_snapshot(operation, here, model, &mut note)?;
                if self.patient {
                    self.settle(here)?;
                    note(model);
                }
                return Ok(taken);
            }
            Operation::Idle => {
                here.idle();
                note(model);
                self.settle(here)?;
                note(model);
                return Ok(true);
            }
            Operation::Detach => {
                let detached = device.take().expect("attached").detach();
                note(model);
                detached.map_err(|error| wrong(format!("detach: {error}")))?;
                model.flushed(&model.flush_covers());
                *device = Some(attach(legacy, Some(moments)).map_err(wrong)?);
                note(model);
                return Ok(true);
            }
        };
        let covered = model.flush_covers();
        let mut during = model.clone();
        parts.iter_mut().for_each(|part| part.lba += base);
        if !parts.is_empty() {
            during.took_all(&parts, atomic);
        }
        let Some(result) = request(here, view, io, || note(&during))? else { return Ok(false) };
        let buf = result.map_err(|error| wrong(format!("{operation:?} failed: {error}")))?;
        *model = during;
        match operation {
            Operation::Write { fua, .. }
            | Operation::Trim { fua, .. }
            | Operation::Batch { fua, .. }
            | Operation::CloneWrite { fua, .. }
            | Operation::CloneTrim { fua, .. } => {
                model.answered(op, fua);
            }
            Operation::Zeroes { .. } => model.answered(op, false),
            Operation::Flush => model.flushed(&covered),
            _ => compare(&buf.unwrap_or_default(), model)?,
        }
        if self.patient {
            self.settle(here)?;
            note(model);
        }
        Ok(true)
    }

    /// Writes and flushes that are not waited for before the next ones, so that their syncs overlap.
    fn flushes(&self, device: &mut Device, model: &mut Model, mut note: impl FnMut(&Model)) -> Result<bool, Failure> {
        // What each flush that is not answered must cover.
        let mut waiting: Vec<Option<Vec<OpId>>> = Vec::new();
        let mut lba = 0;
        for _ in 0..PATIENCE {
            if lba < SECTORS {
                let mut data = vec![0; SECTOR];
                payload::fill(&mut data, lba, model.next_op(), false);
                let mut during = model.clone();
                let op = during.took(lba, 1, false);
                let taken = match device.submit(0, Io::Write { lba, data: &data, fua: false }) {
                    Submitted::Done(Ok(_)) => true,
                    Submitted::Busy(_) => false,
                    _ => return Err(wrong("a write is neither taken nor refused")),
                };
                if taken {
                    note(&during);
                    *model = during;
                    model.answered(op, false);
                    waiting.push(Some(model.flush_covers()));
                    let Submitted::Pending = device.submit(FLUSHES + lba, Io::Flush) else {
                        return Err(wrong("a flush of what is not durable is answered at once"));
                    };
                    lba += 1;
                }
            }
            note(model);
            let completion = device.poll();
            note(model);
            if let Some(completion) = completion {
                completion.result.map_err(|error| wrong(format!("a flush failed: {error}")))?;
                let covers = waiting[(completion.tag - FLUSHES) as usize].take();
                model.flushed(&covers.expect("each flush is answered once"));
                note(model);
            }
            if waiting.iter().all(Option::is_none) && (lba == SECTORS || device.is_idle()) {
                return Ok(lba == SECTORS);
            }
        }
        Err(Failure::Stuck("a flush was never answered".into()))
    }

    /// Waits for everything under way. A device that nobody asks anything comes to rest.
    fn settle(&self, device: &mut Device) -> Result<(), Failure> {
        for _ in 0..PATIENCE {
            if device.is_idle() {
                return Ok(());
            }
            let _ = device.poll();
        }
        Err(Failure::Stuck("the device never comes to rest".into()))
    }

    /// Lets the power fail at a moment, in every way.
    fn cut(&self, moment: &SimStore, model: &Model, recovered: bool, scope: &mut Scope) -> Result<(), Failure> {
        let states = moment.crash_states();
        if !self.seen.insert(digest(&(self.shape as u8, recovered, states.digest(), model.digest()))) {
            return Ok(());
        }
        scope.moments += 1;
        let total = states.count_all();
        for (number, state) in (1..).zip(states) {
            let ways: &[Option<u32>] = if self.shape == Shape::Plain { &[None] } else { &[None, Some(0), Some(1)] };
            for lost in ways {
                scope.states += 1;
                let known = (self.shape as u8, recovered, lost, state.durable_digest(), model.digest());
                if !self.seen.insert(digest(&known)) {
                    continue;
                }
                scope.distinct += 1;
                let store = state.fork();
                lost.iter().for_each(|die| store.fail_die(*die));
                let legacy = Legacy::of(&store, None);
                self.recover(&legacy, model, recovered && lost.is_none(), scope).map_err(|failure| {
                    failure.map(|what| format!("state {number} of {total}, without die {lost:?}: {what}"))
                })?;
            }
            // With all and with nothing of what no sync covered: what lies between differs in the log only.
            if (number == 1 || number == total) && !moment.writes_label() {
                self.spoil_labels(&state, model, scope)
                    .map_err(|failure| failure.map(|what| format!("state {number} of {total}, {what}")))?;
            }
        }
        Ok(())
    }

    /// Lets the process die at a moment, and a die with it or none: all that was answered is there.
    fn kill(&self, moment: &Moment, model: &Model, recovered: bool, scope: &mut Scope) -> Result<(), Failure> {
        let Some(left) = &moment.left else { return Ok(()) };
        let states = moment.store.kill_states();
        let about = (self.shape as u8, recovered, digest_of(left), model.digest());
        if !self.seen.insert(digest(&(&about, states.digest()))) {
            return Ok(());
        }
        let total = states.count_all();
        for (number, state) in (1..).zip(states) {
            let ways: &[Option<u32>] = if self.shape == Shape::Plain { &[None] } else { &[None, Some(0), Some(1)] };
            for lost in ways {
                scope.killed += 1;
                if !self.seen.insert(digest(&(&about, lost, state.durable_digest()))) {
                    continue;
                }
                scope.distinct += 1;
                let store = state.fork();
                lost.iter().for_each(|die| store.fail_die(*die));
                let legacy = Legacy::of(&store, Some(left.clone()));
                self.recover(&legacy, model, recovered && lost.is_none(), scope).map_err(|failure| {
                    failure.map(|what| {
                        format!("the process killed, state {number} of {total}, without die {lost:?}: {what}")
                    })
                })?;
            }
        }
        Ok(())
    }

    /// Attaches a state with either copy of the superblock bad, in each way, on one die and on both: the other copy says it all.
    fn spoil_labels(&self, state: &SimStore, model: &Model, scope: &mut Scope) -> Result<(), Failure> {
        let rot = LabelFault::Rot { byte: 200, mask: 4 };
        for fault in [rot, LabelFault::Blank, LabelFault::Stale] {
            for copy in 0..2 {
                for dies in [0..1, 1..2, 0..2] {
                    let store = state.fork();
                    store.spoil_label(dies.clone(), copy, fault);
                    scope.states += 1;
                    if !self.seen.insert(digest(&(self.shape as u8, store.durable_digest(), model.digest()))) {
                        continue;
                    }
                    scope.distinct += 1;
                    self.recover(&Legacy::of(&store, None), model, false, scope).map_err(|failure| {
                        failure.map(|what| format!("superblock copy {copy} of dies {dies:?} {fault:?}: {what}"))
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Attaches what a power cut or a killed process left, and compares; the attach is cut as well where that is wanted.
    fn recover(&self, legacy: &Legacy, model: &Model, cut: bool, scope: &mut Scope) -> Result<(), Failure> {
        let moments = Moments::default();
        let mut device = attach(legacy, cut.then_some(&moments)).map_err(wrong)?;
        let moments = std::mem::take(&mut *moments.borrow_mut());
        let mut after = model.clone();
        if legacy.found.is_some() {
            after.flushed(&after.flush_covers());
        }
        let clones: Vec<_> = device.clones().iter().map(|clone| (clone.name.clone(), clone.id)).collect();
        let names: Vec<String> = clones.iter().map(|(name, _)| name.clone()).collect();
        after.clones_after(&names).map_err(Failure::Wrong)?;
        let mut images = vec![image_of(&mut device, None)?];
        for (_, id) in clones {
            images.push(image_of(&mut device, Some(id))?);
        }
        let bases = after.bases();
        after
            .crashed(|at, op, zero| {
                let lba = at % SECTORS;
                let image = bases.iter().position(|base| *base == at - lba).expect("a clone that is there");
                payload::holds(&images[image][lba as usize * SECTOR..][..SECTOR], lba, op, zero)
            })
            .map_err(Failure::Wrong)?;
        let found = device.snapshots().iter().map(|snapshot| (snapshot.name.clone(), snapshot.held));
        after.snaps_after(&found.collect::<Vec<_>>()).map_err(Failure::Wrong)?;
        let snapshots: Vec<_> = device.snapshots().iter().map(|snapshot| snapshot.id).collect();
        for (at, id) in snapshots.into_iter().enumerate() {
            let image = image_of(&mut device, Some(id))?;
            after
                .snap_shows(at, |lba, op, zero| {
                    payload::holds(&image[lba as usize * SECTOR..][..SECTOR], lba, op, zero)
                })
                .map_err(Failure::Wrong)?;
        }
        device.verify().map_err(Failure::Wrong)?;
        for moment in &moments {
            let before = scope.states;
            self.cut(&moment.store, model, false, scope)?;
            scope.in_recovery += scope.states - before;
            if legacy.found.is_some() {
                self.kill(moment, model, false, scope)?;
            }
        }
        Ok(())
    }
}

/// Everything that the device, a snapshot or a clone shows.
fn image_of(device: &mut Device, view: Option<SnapshotId>) -> Result<Vec<u8>, Failure> {
    let buf = vec![0xee; SECTORS as usize * SECTOR];
    let io = view.map_or(Io::Read { lba: 0, buf: buf.clone() }, |id| Io::ReadSnapshot { id, lba: 0, buf });
    let read = request(device, None, io, || ())?.ok_or(Failure::Stuck("a read is not taken".into()))?;
    Ok(read.map_err(|error| wrong(format!("read of {view:?}: {error}")))?.unwrap_or_default())
}

/// Makes the one snapshot or its clone, rolls back to it, deletes or promotes one. False when there is no room for it.
fn change_snapshot(
    operation: Operation,
    device: &mut Device,
    model: &mut Model,
    mut note: impl FnMut(&Model),
) -> Result<bool, Failure> {
    let mut during = model.clone();
    let known = device.snapshots().first().map(|snapshot| snapshot.id);
    let clone = device.clones().first().map(|clone| clone.id);
    let change = match (operation, known) {
        (Operation::DeleteClone | Operation::Promote, _) if clone.is_none() => return Ok(true),
        (Operation::DeleteClone, _) => {
            during.clone_going(0);
            SnapshotChange::DeleteClone(clone.unwrap_or_default())
        }
        (Operation::Promote, _) => {
            during.promoted(0);
            SnapshotChange::Promote(clone.unwrap_or_default())
        }
        (Operation::Clone, Some(of)) => {
            during.clone_asked("two", 0);
            SnapshotChange::Clone { of, name: "two".into(), created: 7 }
        }
        (Operation::Snapshot, _) => {
            during.snap_asked("one");
            SnapshotChange::Create { name: "one".into(), created: 7 }
        }
        (_, None) => return Ok(true),
        (Operation::RollBack, Some(to)) => {
            during.rolled_back(0);
            SnapshotChange::RollBack { to, delete_newer: false }
        }
        (_, Some(id)) => {
            during.snaps_going(|_| true);
            SnapshotChange::Delete(id)
        }
    };
    let op = model.next_op();
    let result = device.change_snapshots(&change);
    note(&during);
    match result {
        Ok(()) => {}
        Err(SnapshotError::Full) => return Ok(false),
        Err(error) => return Err(wrong(format!("{change:?}: {error}"))),
    }
    *model = during;
    match operation {
        Operation::Snapshot | Operation::RollBack | Operation::Clone => model.answered(op, true),
        Operation::DeleteClone => model.clones_gone(),
        Operation::Promote => {
            model.answered(op, true);
            model.clones_gone();
        }
        _ => model.snaps_gone(),
    }
    note(model);
    Ok(true)
}

fn digest(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A hash of all that was left.
fn digest_of(left: &Left) -> u64 {
    let pages = left.pages.iter().map(|page| (page.at, page.opened, page.page.bytes(0..page.page.len())));
    let trims = left.trims.as_ref().map(|(header, records)| {
        let records: Vec<_> = records.iter().map(|record| (record.seq, record.lba, record.count)).collect();
        (header.slot, header.seq, header.lag, records)
    });
    digest(&(left.label.epoch, left.generation, pages.collect::<Vec<_>>(), trims))
}

fn attach(legacy: &Legacy, moments: Option<&Moments>) -> Result<Device, String> {
    let inner = SimMedia::new(&legacy.store, 1, knobs());
    legacy.keeper.replace(None);
    let staging = Staging::in_memory(legacy.found.clone(), legacy.keeper.clone());
    let media: Box<dyn Media> = match moments {
        None => Box::new(inner),
        Some(moments) => {
            let (legacy, moments) = (legacy.clone(), moments.clone());
            let after = move |changed: bool| {
                if changed {
                    moments.borrow_mut().push(legacy.moment());
                }
            };
            Box::new(Tapped { inner, after })
        }
    };
    let attached = Device::on_media_staged(media, false, None, Some(staging));
    attached.map_err(|error| format!("attach: {error}"))
}

/// One request, waited for; `None` when it is not taken. `note` is called after each step.
fn request(
    device: &mut Device,
    view: Option<SnapshotId>,
    io: Io<'_>,
    mut note: impl FnMut(),
) -> Result<Option<Answer>, Failure> {
    let (mut io, mut attempts) = (Some(io), 0);
    for _ in 0..PATIENCE {
        if let Some(request) = io.take() {
            let submitted = device.submit_in(view, 0, request);
            note();
            match submitted {
                Submitted::Done(result) => return Ok(Some(result)),
                Submitted::Pending => {}
                Submitted::Busy(request) => {
                    attempts += 1;
                    if attempts == ATTEMPTS {
                        return Ok(None);
                    }
                    io = Some(request);
                }
            }
        }
        let completion = device.poll();
        note();
        if let Some(completion) = completion {
            return Ok(Some(completion.result));
        }
    }
    Err(Failure::Stuck("a request was never answered".into()))
}

/// Holds a read of everything against the model.
fn compare(image: &[u8], model: &Model) -> Result<(), Failure> {
    for (lba, sector) in (0..SECTORS).zip(image.chunks_exact(SECTOR)) {
        let op = model.current(lba);
        if !payload::holds(sector, lba, op, Model::is_zero(op)) {
            return Err(wrong(format!("read of sector {lba} does not give version {op}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Garbage that cannot be groomed, in a module that is always short of space.
    #[test]
    fn a_device_short_of_space_comes_to_rest() {
        device::allow_tiny_modules();
        let write = Operation::Write { lba: 0, count: 2, fua: false };
        let sequence = [write, write, write, Operation::Trim { lba: 0, count: 1, fua: false }];
        let (seen, mut scope) = (Seen::new(), Scope::default());
        let run = Run { shape: Shape::Plain, patient: true, sequence: &sequence, recovered: false, seen: &seen };
        caught(run, &mut scope).expect("it holds");
        assert!(scope.distinct > 20, "{scope:?}");
    }
}
