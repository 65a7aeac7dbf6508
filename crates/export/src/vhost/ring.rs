//! One queue of a guest: its rings, how the two sides wake each other, and what of it is in flight.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress};

use super::config::MAX_QUEUE_SIZE;
use super::inflight::{Inflight, InflightError, Part};
use super::memory::Memory;
use super::proto::NO_INTERRUPT;

/// Where a queue's rings stand, in the front end's own addresses.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Descriptor table.
    pub descriptors: u64,
    /// Available ring.
    pub available: u64,
    /// Used ring.
    pub used: u64,
}

/// Why a queue cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// Its rings are not in the guest's memory, or not aligned.
    #[error("queue {0}: its rings are not in the guest's memory, or not aligned")]
    Place(usize),
    /// A size that a queue cannot have.
    #[error("queue {0}: {1} descriptors; expected a power of two up to {MAX_QUEUE_SIZE}")]
    Size(usize, u32),
    /// The available ring says what cannot be.
    #[error("queue {0}: more requests available than it has descriptors")]
    Available(usize),
    /// A head that is no descriptor.
    #[error("queue {0}: descriptor {1} is made available, which it does not have")]
    Head(usize, u16),
    /// A head whose request is not answered yet.
    #[error("queue {0}: descriptor {1} is made available twice")]
    Twice(usize, u16),
    /// The used ring cannot be written.
    #[error("queue {0}: its used ring cannot be written")]
    Used(usize),
    /// See [`InflightError`].
    #[error(transparent)]
    Inflight(#[from] InflightError),
}

/// A queue.
pub struct Ring {
    index: usize,
    queue: Queue,
    /// Descriptors, once the front end has said how many.
    size: Option<u16>,
    places: Option<Places>,
    /// Where the available ring goes on, as the front end said.
    base: u16,
    /// Written by the guest when there is something to do.
    pub kick: Option<Arc<OwnedFd>>,
    /// Under what number the worker listens to [`Ring::kick`].
    pub armed: Option<usize>,
    /// Written by us when something is done.
    pub call: Option<OwnedFd>,
    /// Written by us when the queue is given up.
    pub err: Option<OwnedFd>,
    /// The front end lets it be served.
    pub enabled: bool,
    running: bool,
    /// The guest is to kick when there is something to do.
    listening: bool,
    /// Heads whose requests are not answered.
    held: Vec<bool>,
    in_flight: u16,
    /// What the back end before had taken, by its number.
    replay: VecDeque<(u64, u16)>,
    part: Option<Part>,
    /// Something was answered since the guest was called.
    untold: bool,
    /// Who waits for the queue to come to rest.
    stopping: Option<SyncSender<u16>>,
}

impl Ring {
    /// One that nothing is known of.
    pub fn new(index: usize) -> Ring {
        Ring {
            index,
            queue: Queue::default(),
            size: None,
            places: None,
            base: 0,
            kick: None,
            armed: None,
            call: None,
            err: None,
            enabled: false,
            running: false,
            listening: false,
            held: Vec::new(),
            in_flight: 0,
            replay: VecDeque::new(),
            part: None,
            untold: false,
            stopping: None,
        }
    }

    /// Sets how many descriptors it has.
    ///
    /// # Errors
    /// It cannot have so many, or it runs.
    pub fn set_size(&mut self, size: u32) -> Result<(), RingError> {
        let refused = RingError::Size(self.index, size);
        match u16::try_from(size) {
            Ok(size) if size.is_power_of_two() && size <= MAX_QUEUE_SIZE && !self.running => {
                self.size = Some(size);
                Ok(())
            }
            _ => Err(refused),
        }
    }

    /// Sets where its rings stand.
    ///
    /// # Errors
    /// It runs, and they are not in the guest's memory.
    pub fn set_places(&mut self, places: Places, memory: &Memory) -> Result<(), RingError> {
        self.places = Some(places);
        if self.running { self.find(memory) } else { Ok(()) }
    }

    /// Sets where its available ring goes on, which a queue that runs knows by itself.
    pub fn set_base(&mut self, base: u16) {
        self.base = base;
    }

    /// Whether it is served.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Whether new requests are taken from it.
    #[inline]
    fn takes(&self) -> bool {
        self.running && self.enabled && self.stopping.is_none()
    }

    /// Finds its rings in the guest's memory, anew after each change of that.
    ///
    /// # Errors
    /// They are not there.
    pub fn find(&mut self, memory: &Memory) -> Result<(), RingError> {
        let lost = || RingError::Place(self.index);
        let places = self.places.ok_or_else(lost)?;
        let find = |user| memory.guest_address(user).map(GuestAddress).ok_or_else(lost);
        let (descriptors, available, used) = (find(places.descriptors)?, find(places.available)?, find(places.used)?);
        let placed = self.queue.try_set_desc_table_address(descriptors).is_ok()
            && self.queue.try_set_avail_ring_address(available).is_ok()
            && self.queue.try_set_used_ring_address(used).is_ok();
        if placed && self.queue.is_valid(memory.guest()) { Ok(()) } else { Err(lost()) }
    }

    /// Begins to serve it, once everything is known. True if it did.
    ///
    /// # Errors
    /// What is known does not fit together.
    pub fn start(
        &mut self,
        memory: &Memory,
        event_idx: bool,
        region: Option<&Arc<Inflight>>,
    ) -> Result<bool, RingError> {
        let Some(size) = self.size else { return Ok(false) };
        if self.running || !self.enabled || self.kick.is_none() || self.places.is_none() {
            return Ok(false);
        }
        let wrong = RingError::Size(self.index, u32::from(size));
        self.queue = Queue::new(MAX_QUEUE_SIZE).map_err(|_| wrong)?;
        self.queue.set_size(size);
        self.queue.set_event_idx(event_idx);
        self.queue.set_ready(true);
        self.find(memory)?;
        let used = self.queue.used_idx(memory.guest(), Ordering::Acquire).map_err(|_| RingError::Used(self.index))?.0;
        self.held = vec![false; usize::from(size)];
        self.in_flight = 0;
        self.replay.clear();
        self.part = region.map(|region| Part::new(region, self.index, size)).transpose()?;
        let mut next = self.base;
        if let Some(part) = &self.part {
            let taken = part.take_over(size, used)?;
            // Everything that was taken is told or in the region; what the front end says may be older.
            next = used.wrapping_add(taken.len() as u16);
            self.replay.extend(taken);
        }
        self.queue.set_next_avail(next);
        self.queue.set_next_used(used);
        self.running = true;
        self.listening = false;
        if let Some(call) = &self.call {
            // See `Session::set_call`: which of the two the front end says last is up to it.
            signal(call);
        }
        Ok(true)
    }

    /// Comes to rest: takes nothing more, and says where the available ring goes on once everything is answered.
    pub fn stop(&mut self, answer: SyncSender<u16>) {
        self.stopping = Some(answer);
        self.note_rest();
    }

    fn note_rest(&mut self) {
        if self.stopping.is_none() || self.in_flight > 0 || !self.replay.is_empty() {
            return;
        }
        let next = if self.running { self.queue.next_avail() } else { self.base };
        (self.running, self.kick, self.base) = (false, None, next);
        if let Some(answer) = self.stopping.take() {
            // An asker that went away needs no answer.
            let _ = answer.send(next);
        }
    }

    /// The number of what is to be carried out again next.
    #[inline]
    pub fn next_replay(&self) -> Option<u64> {
        self.replay.front().map(|(counter, _)| *counter)
    }

    /// The highest number of what is to be carried out again.
    pub fn last_replay(&self) -> u64 {
        self.replay.iter().map(|(counter, _)| *counter).max().unwrap_or(0)
    }

    /// Takes what is to be carried out again next.
    pub fn take_replay(&mut self) -> Option<u16> {
        let (_, head) = self.replay.pop_front()?;
        self.hold(head);
        Some(head)
    }

    fn hold(&mut self, head: u16) {
        self.held[usize::from(head)] = true;
        self.in_flight += 1;
    }

    /// Takes the next request from the guest, as the one of this number.
    ///
    /// # Errors
    /// The guest lies.
    #[inline]
    pub fn take(&mut self, memory: &Memory, counter: u64) -> Result<Option<u16>, RingError> {
        if !self.takes() {
            return Ok(None);
        }
        let available = self.queue.iter(memory.guest()).map_err(|_| RingError::Available(self.index))?.next();
        let Some(head) = available.map(|chain| chain.head_index()) else { return Ok(None) };
        match self.held.get(usize::from(head)) {
            None => return Err(RingError::Head(self.index, head)),
            Some(true) => return Err(RingError::Twice(self.index, head)),
            Some(false) => {}
        }
        if self.listening {
            // It says so by itself where both sides name an index.
            let _ = self.queue.disable_notification(memory.guest());
            self.listening = false;
        }
        if let Some(part) = &self.part {
            part.taken(head, counter);
        }
        self.hold(head);
        Ok(Some(head))
    }

    /// Lets the guest kick when there is something to do. True if there is already.
    ///
    /// # Errors
    /// Its rings cannot be written or read.
    pub fn listen(&mut self, memory: &Memory) -> Result<bool, RingError> {
        if !self.takes() {
            return Ok(false);
        }
        self.listening = true;
        self.queue.enable_notification(memory.guest()).map_err(|_| RingError::Used(self.index))
    }

    /// Where its descriptors are, and how many.
    pub fn table(&self) -> (GuestAddress, u16) {
        (GuestAddress(self.queue.desc_table()), self.queue.size())
    }

    /// A request is answered, with so many bytes written for the guest.
    ///
    /// # Errors
    /// The used ring cannot be written.
    #[inline]
    pub fn answered(&mut self, memory: &Memory, head: u16, written: u32) -> Result<(), RingError> {
        if let Some(part) = &self.part {
            part.telling(head);
        }
        self.queue.add_used(memory.guest(), head, written).map_err(|_| RingError::Used(self.index))?;
        if let Some(part) = &self.part {
            part.told(head, self.queue.next_used());
        }
        self.held[usize::from(head)] = false;
        self.in_flight -= 1;
        self.untold = true;
        self.note_rest();
        Ok(())
    }

    /// Calls the guest if something was answered and it wants to be called.
    pub fn tell(&mut self, memory: &Memory) {
        if !std::mem::take(&mut self.untold) {
            return;
        }
        let Some(call) = &self.call else { return };
        let wants = if self.queue.event_idx_enabled() {
            self.queue.needs_notification(memory.guest()).unwrap_or(true)
        } else {
            std::sync::atomic::fence(Ordering::SeqCst);
            let flags: u16 = memory.guest().read_obj(GuestAddress(self.queue.avail_ring())).unwrap_or(0);
            u16::from_le(flags) & NO_INTERRUPT == 0
        };
        if wants {
            signal(call);
        }
    }

    /// Says that it is given up.
    pub fn fail(&self) {
        if let Some(err) = &self.err {
            signal(err);
        }
    }
}

/// Adds one to an eventfd that does not block.
pub(super) fn signal(fd: &OwnedFd) {
    // It fails only when the counter is full, and then the other side has enough to wake up for.
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}
