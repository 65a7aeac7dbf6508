//! A device that is being moved to another one, on its thread: hands the state machine's requests (`array::Mover`) to the device
//! here and, over a [`Lane`], to the one on its own thread; and lets the new one take the old one's place.
//!
//! Clients keep their connections: they belong to the thread, not to the device that it serves.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use array::{Command, Handed, Member, MoveCondition, MoveStatus, Mover, SOURCE};
use device::{AttachError, Completion, Device, Io, Submitted};
use media::ring::SharedRing;

use crate::array::{ArrayError, Claimant};
use crate::composite::lane::Lane;
use crate::handle::{Gone, WorkerHandle};
use crate::jobs::Slot;
use crate::served::Served;
use crate::worker::Worker;

/// Marks what the move asks of the device here, apart from what was under way when it began.
const OWN: u64 = 1 << 63;

/// Bytes that are copied in one step.
const STEP_BYTES: u64 = 1 << 20;
/// What a piece costs besides its bytes: where data lie scattered, pieces are small.
const PIECE_COST: u64 = 16 << 10;

/// Why a device is not moved. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// Clients use the new device.
    #[error("{target}: {clients} client(s) connected; a move has the new device for itself: disconnect them first")]
    Clients {
        /// The new device.
        target: String,
        /// How many.
        clients: usize,
    },
    /// The new device belongs to an array, or another move.
    #[error("{target}: belongs to {owner}; choose another device")]
    Taken {
        /// The new device.
        target: String,
        /// The array, or the device that is being moved there.
        owner: String,
    },
    /// The new device does not take what the old one is given.
    #[error(
        "{target}: cannot take another device's place; expected a device that is attached for writing, whose durability is not 'unsafe', and without zones"
    )]
    UnfitTarget {
        /// The new device.
        target: String,
    },
    /// The new device holds something.
    #[error("{target}: holds data, which the move would destroy; add --force if that is meant")]
    NotEmpty {
        /// The new device.
        target: String,
    },
    /// The new device failed, or is gone.
    #[error("{target}: {why}")]
    Target {
        /// The new device.
        target: String,
        /// What happened.
        why: String,
    },
    /// Its sectors differ in size.
    #[error("{target}: has sectors of {found} bytes; expected {expected}, as {device} has")]
    Sectors {
        /// What is moved.
        device: String,
        /// The new device.
        target: String,
        /// Its sector size, bytes.
        found: u32,
        /// That of the device, bytes.
        expected: u32,
    },
    /// It has another size.
    #[error("{target}: has {found} bytes; expected {expected}, as {device} has: resize it first")]
    Size {
        /// What is moved.
        device: String,
        /// The new device.
        target: String,
        /// Its capacity, bytes.
        found: u64,
        /// That of the device, bytes.
        expected: u64,
    },
    /// It takes smaller requests, so that writes could be torn which are whole now.
    #[error("{target}: takes requests of up to {found} bytes; expected at least {expected}, as {device} takes")]
    Requests {
        /// What is moved.
        device: String,
        /// The new device.
        target: String,
        /// Its largest request, bytes.
        found: u32,
        /// That of the device, bytes.
        expected: u32,
    },
    /// The device cannot be moved.
    #[error(
        "{device}: cannot be moved now; expected a device that is attached for writing, is not being moved already, and has no zones"
    )]
    Unfit {
        /// What is to be moved.
        device: String,
    },
    /// The device's thread has ended.
    #[error(transparent)]
    Gone(#[from] Gone),
}

impl MoveError {
    /// Why the new device could not be claimed.
    fn of_target(target: &str, error: ArrayError) -> MoveError {
        let target = target.to_owned();
        match error {
            ArrayError::Clients { clients, .. } => MoveError::Clients { target, clients },
            ArrayError::Taken { array: owner, .. } => MoveError::Taken { target, owner },
            ArrayError::Unfit { .. } => MoveError::UnfitTarget { target },
            ArrayError::NotEmpty { .. } => MoveError::NotEmpty { target },
            ArrayError::Gone { .. } => MoveError::Target { target, why: "is not attached any more".into() },
            ArrayError::Member { error, .. } => MoveError::Target { target, why: error.to_string() },
            other => MoveError::Target { target, why: other.to_string() },
        }
    }
}

/// Why the new device did not take the old one's place.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError<E> {
    /// Both do not hold the same yet, or nothing is being moved.
    #[error("not everything is on the new device")]
    NotSettled,
    /// The new device cannot be attached in the old one's place.
    #[error("the new device cannot be attached: {0}")]
    Attach(AttachError),
    /// The new device takes no writes.
    #[error("the new device takes no writes: {0}")]
    ReadOnly(String),
    /// What was to be done before the new one serves failed.
    #[error("{0}")]
    Commit(E),
}

/// A move under way.
pub struct Moving {
    mover: Mover,
    sector_bytes: u32,
    lane: Arc<Lane>,
    /// What the device here did not take yet.
    waiting: VecDeque<Command>,
    outbox: Vec<Command>,
    /// Requests that the device had when the move began, by their tags.
    before: BTreeSet<u64>,
    /// Requests are held back, and what is under way comes to its end.
    ending: bool,
    /// What may still be copied before the thread is asked again.
    budget: Budget,
}

/// How much is copied in one step, so that clients keep most of both devices' time.
#[derive(Default)]
struct Budget {
    /// Pieces that were begun, and sectors that had been copied before.
    pieces: u32,
    copied: u64,
    /// A step is under way.
    open: bool,
}

impl Budget {
    /// Whether another piece belongs to the step.
    fn has_room(&self, copied: u64, sector_bytes: u32) -> bool {
        let bytes = (copied - self.copied) * u64::from(sector_bytes) + u64::from(self.pieces) * PIECE_COST;
        self.open && bytes < STEP_BYTES
    }
}

impl Drop for Moving {
    /// However it ends, the new device is free.
    fn drop(&mut self) {
        self.lane.close();
    }
}

impl Moving {
    /// How it stands.
    pub fn status(&self) -> MoveStatus {
        self.mover.status()
    }

    pub(crate) fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        if self.ending { Submitted::Busy(io) } else { self.mover.submit(tag, io) }
    }

    /// The next answer; before it, both devices are heard and asked.
    pub(crate) fn poll(&mut self, device: &mut Device) -> Option<Completion> {
        loop {
            if let Some(done) = self.mover.poll() {
                return Some(done);
            }
            self.hear();
            self.ask(device);
            let Some(done) = device.poll() else {
                if self.copy_on() {
                    continue;
                }
                return self.mover.poll();
            };
            if done.tag & OWN == 0 {
                self.before.remove(&done.tag);
                return Some(done);
            }
            self.mover.finish(done.tag ^ OWN, done.result.map(array::Answer::Done));
        }
    }

    /// Hears the new device.
    fn hear(&mut self) {
        let (replies, closed) = self.lane.replies();
        for (tag, answer) in replies {
            self.mover.finish(tag, answer);
        }
        if closed && !matches!(self.mover.status().condition, MoveCondition::Failed(_) | MoveCondition::Settled) {
            self.mover.lost();
        }
    }

    /// Asks both devices.
    fn ask(&mut self, device: &mut Device) {
        loop {
            while let Some(command) = self.mover.next_command() {
                if command.member == SOURCE { self.waiting.push_back(command) } else { self.outbox.push(command) }
            }
            let Some(mut command) = self.waiting.pop_front() else { break };
            match command.what.hand_to(device, command.tag | OWN) {
                Handed::Answered(answer) => self.mover.finish(command.tag, answer),
                Handed::Pending => {}
                Handed::Busy => {
                    self.waiting.push_front(command);
                    break;
                }
            }
        }
        self.lane.ask(&mut self.outbox);
    }

    /// Whether both hold the same durably, and everybody has an answer.
    fn is_settled(&self) -> bool {
        self.mover.status().condition == MoveCondition::Settled && self.is_idle()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.mover.is_idle() && self.before.is_empty()
    }

    pub(crate) fn has_background(&self) -> bool {
        // What was under way before is not known to the state machine, which must not copy what changes.
        self.before.is_empty() && !self.ending && self.mover.has_background()
    }

    /// Begins a step of copying.
    pub(crate) fn background(&mut self) {
        self.budget = Budget { pieces: 0, copied: self.mover.status().copied, open: true };
        self.copy_on();
    }

    /// Begins the next piece of the step under way.
    fn copy_on(&mut self) -> bool {
        let goes_on = self.has_background() && self.budget.has_room(self.mover.status().copied, self.sector_bytes);
        if goes_on {
            self.budget.pieces += 1;
            self.mover.background();
        }
        goes_on
    }
}

impl Worker {
    /// Begins to move the device to another one, which has been claimed.
    pub(crate) fn begin_move(&mut self, lane: Arc<Lane>) -> bool {
        let is_fit = !self.is_detaching() && self.claims.is_empty() && !self.core.device.is_read_only();
        let before = self.core.asked();
        let Served::Device(device, moving @ None) = &mut self.core.device else { return false };
        if is_fit {
            let info = device.info();
            let mover = Mover::new(info.sectors, info.sector_bytes, info.max_request_bytes);
            *moving = Some(Box::new(Moving {
                mover,
                sector_bytes: info.sector_bytes,
                lane,
                waiting: VecDeque::new(),
                outbox: Vec::new(),
                before,
                ending: false,
                budget: Budget::default(),
            }));
        }
        is_fit
    }

    /// Ends the move: the device goes on alone. Whether that is so; requests are held back until what is under way is done.
    pub(crate) fn end_move(&mut self) -> bool {
        let Served::Device(_, slot) = &mut self.core.device else { return true };
        let Some(moving) = slot else { return true };
        moving.ending = true;
        // Nothing is waited for that the new device has under way.
        moving.mover.lost();
        let is_over = moving.is_idle();
        if is_over {
            *slot = None;
        }
        is_over
    }

    /// Holds requests back, so that both devices come to hold the same.
    pub(crate) fn settle_move(&mut self) {
        if let Some(moving) = self.core.device.moving() {
            moving.mover.settle();
        }
    }

    /// Takes requests again without handing over.
    pub(crate) fn release_move(&mut self) {
        if let Some(moving) = self.core.device.moving() {
            moving.mover.release();
        }
    }

    /// Serves the new device instead of the old one. `new` attaches it on this thread; `commit` is carried out once it is attached, before
    /// it serves anybody. Where one of the two fails, `old` attaches the old device again, and where that fails too, this thread ends.
    pub(crate) fn hand_over<E>(
        &mut self,
        new: impl FnOnce(&SharedRing) -> Result<Device, AttachError>,
        commit: impl FnOnce() -> Result<(), E>,
        old: impl FnOnce(&SharedRing) -> Result<Device, AttachError>,
    ) -> Result<(), HandOverError<E>> {
        match &mut self.core.device {
            Served::Device(device, Some(moving)) if moving.is_settled() => {
                // The new device is known by the old one's identity, which only one has at a time.
                if let Err(error) = device.retire() {
                    // Everything is on the new device, and what was flushed on the old one.
                    tracing::error!(device = %self.name, %error, "the old device was detached without a checkpoint");
                }
            }
            _ => return Err(HandOverError::NotSettled),
        }
        let error = match self.take_over(new, commit) {
            Ok(device) => {
                self.serve_instead(device);
                return Ok(());
            }
            Err(error) => error,
        };
        match old(&self.ring) {
            Ok(device) => self.serve_instead(device),
            Err(again) => {
                tracing::error!(device = %self.name, "the old device cannot be attached again: {again}");
                self.begin_detach(None);
            }
        }
        Err(error)
    }

    fn take_over<E>(
        &self,
        new: impl FnOnce(&SharedRing) -> Result<Device, AttachError>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Device, HandOverError<E>> {
        let device = new(&self.ring).map_err(HandOverError::Attach)?;
        let done = match device.is_read_only() {
            true => Err(HandOverError::ReadOnly(device.status().health)),
            false => commit().map_err(HandOverError::Commit),
        };
        match done {
            Ok(()) => Ok(device),
            Err(why) => {
                // The old device holds the same.
                if let Err(error) = device.detach() {
                    tracing::warn!(device = %self.name, %error, "the new device was detached without a checkpoint");
                }
                Err(why)
            }
        }
    }
}

impl WorkerHandle {
    /// Begins to move the device to another one while clients use it. What that holds is destroyed with `force`.
    ///
    /// # Errors
    /// See [`MoveError`].
    pub fn begin_move(&self, target: &WorkerHandle, force: bool) -> Result<(), MoveError> {
        let (device, name) = (self.name().to_owned(), target.name().to_owned());
        let info = self.info()?;
        if info.zones.is_some() {
            return Err(MoveError::Unfit { device });
        }
        let of_target = |error| MoveError::of_target(&name, error);
        let claimant = Claimant::claim(&device, &name, target, self.sender()).map_err(of_target)?;
        let refused = |error: MoveError| {
            claimant.lane.close();
            error
        };
        let Member { sectors, sector_bytes, max_request_bytes, .. } = claimant.member;
        if sector_bytes != info.sector_bytes {
            let (found, expected) = (sector_bytes, info.sector_bytes);
            return Err(refused(MoveError::Sectors { device, target: name, found, expected }));
        }
        if sectors != info.sectors {
            let (found, expected) = (sectors * u64::from(sector_bytes), info.bytes());
            return Err(refused(MoveError::Size { device, target: name, found, expected }));
        }
        if max_request_bytes < info.max_request_bytes {
            let (found, expected) = (max_request_bytes, info.max_request_bytes);
            return Err(refused(MoveError::Requests { device, target: name, found, expected }));
        }
        if !force && !claimant.is_empty().map_err(|error| refused(MoveError::of_target(&name, error)))? {
            return Err(refused(MoveError::NotEmpty { target: name }));
        }
        let lane = Arc::clone(&claimant.lane);
        match self.ask(move |worker| worker.begin_move(lane)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(refused(MoveError::Unfit { device })),
            Err(gone) => Err(refused(gone.into())),
        }
    }

    /// How the move stands that is under way, if there is one.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn move_status(&self) -> Result<Option<MoveStatus>, Gone> {
        self.ask(|worker| worker.served().moving().map(|moving| moving.status()))
    }

    /// Ends the move that is under way: the device goes on alone. False while that waits for requests under way: ask again.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn end_move(&self) -> Result<bool, Gone> {
        self.ask(Worker::end_move)
    }

    /// Holds clients' requests back once both devices hold the same, until the move is handed over or released.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn settle_move(&self) -> Result<(), Gone> {
        self.ask(Worker::settle_move)
    }

    /// Takes clients' requests again without handing over.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn release_move(&self) -> Result<(), Gone> {
        self.ask(Worker::release_move)
    }

    /// Lets the new device serve on the thread of the old one, whose clients stay connected. The new one must have been detached on its own
    /// thread. `new` attaches it on this one, with the identity of the old one; `commit` is carried out before it serves. Where that fails,
    /// `old` attaches the old device again, which goes on without a move.
    ///
    /// # Errors
    /// Why not.
    pub fn hand_over<E: Send + 'static>(
        &self,
        new: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static,
        commit: impl FnOnce() -> Result<(), E> + Send + 'static,
        old: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static,
    ) -> Result<Result<(), HandOverError<E>>, Gone> {
        self.ask(move |worker| worker.hand_over(new, commit, old))
    }
}

impl crate::jobs::Core {
    /// Tags under which the device has requests.
    fn asked(&self) -> BTreeSet<u64> {
        let of_parts =
            |key: usize| self.jobs.iter().any(|(_, slot)| matches!(slot, Slot::Part { job, .. } if *job == key));
        let is_asked = |(key, slot): &(usize, &Slot)| match slot {
            // One in pieces is asked under their tags.
            Slot::Job(job) => job.parts > 0 && !of_parts(*key),
            Slot::Part { .. } | Slot::Flush(_) | Slot::Claim { .. } => true,
        };
        self.jobs.iter().filter(is_asked).map(|(key, _)| key as u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::composite::lane::Bell;
    use crate::worker::tests::worker_with;

    /// What the device had before the move is not known to the state machine.
    #[test]
    fn nothing_is_copied_before_earlier_requests_are_done() {
        let (mut worker, _clients, sender) = worker_with(0);
        let write = Io::Write { lba: 3, data: &[7; 4096], fua: false };
        assert!(!matches!(worker.served().submit(0, write), Submitted::Busy(_)));
        let (answer, wait) = sync_channel(1);
        worker.flush(answer);
        worker.start_flushes();
        assert_eq!(worker.core.jobs.len(), 1, "the device has it");
        assert!(worker.begin_move(Lane::new("test", Bell::Worker(sender.clone()), sender)));
        let moving = worker.served().moving().expect("it is being moved");
        assert!(!moving.has_background() && !moving.is_idle());
        worker.poll_device();
        assert_eq!(wait.try_recv().expect("an answer"), Ok(()));
        let moving = worker.served().moving().expect("it is being moved");
        assert!(moving.has_background() && moving.is_idle());
    }
}
