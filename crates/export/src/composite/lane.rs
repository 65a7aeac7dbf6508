//! The way between a composite's thread and a member's: requests one way, answers the other. Each side takes all that is there at once,
//! so a lock is taken once a round, and rings the other's bell. How much can lie there the composite bounds, which has so many
//! requests under way at most.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use array::{Answer, Command};
use device::{Extent, IoError};
use media::ring::mailbox::Sender;

use crate::handle::Call;

/// How often a side looks again that cannot wait for its bell.
pub(crate) const PAUSE: Duration = Duration::from_micros(200);

/// A member's answer, under the composite's tag.
pub(crate) type Reply = (u64, Result<Answer, IoError>);

#[derive(Default)]
struct State {
    requests: Vec<Command>,
    replies: Vec<Reply>,
    /// The member is gone, or was given back.
    closed: bool,
}

/// What wakes a member.
pub(crate) enum Bell {
    /// A device's thread.
    Worker(Sender<Call>),
    /// Threads that wait for it.
    Threads(Condvar),
}

impl Bell {
    fn ring(&self) {
        match self {
            Bell::Worker(sender) => sender.ring(),
            Bell::Threads(condvar) => condvar.notify_all(),
        }
    }
}

/// The way.
pub(crate) struct Lane {
    state: Mutex<State>,
    /// Of the composite.
    pub owner: String,
    /// The member's bell, and the composite's.
    member: Bell,
    back: Sender<Call>,
    /// Sectors that the member holds data in, when somebody looked last.
    mapped: AtomicU64,
    /// Sectors that it has room for after what it answered; the most there is where that is no limit.
    room: AtomicU64,
}

impl Lane {
    pub fn new(owner: &str, member: Bell, back: Sender<Call>) -> Arc<Lane> {
        let (state, mapped, room) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Arc::new(Lane { state, owner: owner.into(), member, back, mapped, room })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands requests to the member.
    pub fn ask(&self, requests: &mut Vec<Command>) {
        if requests.is_empty() {
            return;
        }
        self.state().requests.append(requests);
        self.member.ring();
    }

    /// What is asked.
    pub fn requests(&self) -> Vec<Command> {
        std::mem::take(&mut self.state().requests)
    }

    /// The next thing asked, for threads that wait for it; nothing once the lane is closed.
    pub fn wait_for_one(&self) -> Option<Command> {
        let Bell::Threads(condvar) = &self.member else { return None };
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if !state.requests.is_empty() {
                return Some(state.requests.remove(0));
            }
            state = condvar.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands answers to the composite.
    pub fn reply(&self, replies: &mut Vec<Reply>) {
        if replies.is_empty() {
            return;
        }
        self.state().replies.append(replies);
        self.back.ring();
    }

    /// What the member answered, and whether it is gone.
    pub fn replies(&self) -> (Vec<Reply>, bool) {
        let mut state = self.state();
        (std::mem::take(&mut state.replies), state.closed)
    }

    /// No side asks or answers any more.
    pub fn close(&self) {
        self.state().closed = true;
        self.member.ring();
        self.back.ring();
    }

    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub fn saw_mapped(&self, sectors: u64) {
        self.mapped.store(sectors, Ordering::Relaxed);
    }

    /// Told before the answers to what took the room.
    pub fn saw_room(&self, sectors: Option<u64>) {
        self.room.store(sectors.unwrap_or(u64::MAX), Ordering::Release);
    }

    pub fn room(&self) -> Option<u64> {
        Some(self.room.load(Ordering::Acquire)).filter(|room| *room < u64::MAX)
    }

    pub fn mapped(&self) -> u64 {
        self.mapped.load(Ordering::Relaxed)
    }

    /// One request that is waited for, before there is a composite.
    ///
    /// # Errors
    /// The member refuses it, or is gone.
    pub fn call(&self, command: Command) -> Result<Answer, IoError> {
        self.ask(&mut vec![command]);
        loop {
            let (mut replies, closed) = self.replies();
            if let Some((_, answer)) = replies.pop() {
                return answer;
            }
            if closed {
                return Err(IoError::Media);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// What a run of sectors is, from an answer.
pub(crate) fn extent(answer: &Answer) -> Option<Extent> {
    match answer {
        Answer::Extent(extent) => Some(*extent),
        Answer::Done(_) | Answer::Snapshot(_) => None,
    }
}
