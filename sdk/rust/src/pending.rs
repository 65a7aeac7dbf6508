//! A request that is under way, and who completes it.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Error;

/// Sectors, and whether they hold data.
pub(crate) type Found = (Range<u64>, bool);

/// What a request gives back.
pub(crate) enum Answer {
    /// Nothing but that it is done.
    Done,
    /// The buffer: filled by what read, unchanged from what wrote.
    Buffer(Vec<u8>),
    /// Sectors that were looked for, whether they hold data, and where to go on.
    Ranges(Vec<Found>, u64),
    /// What was done, in words.
    Said(String),
}

impl Answer {
    pub(crate) fn nothing(self) {}

    pub(crate) fn buffer(self) -> Vec<u8> {
        if let Answer::Buffer(buffer) = self { buffer } else { Vec::new() }
    }

    pub(crate) fn ranges(self) -> (Vec<Found>, u64) {
        if let Answer::Ranges(ranges, next) = self { (ranges, next) } else { (Vec::new(), u64::MAX) }
    }

    pub(crate) fn said(self) -> String {
        if let Answer::Said(words) = self { words } else { String::new() }
    }
}

/// The answer to a request that may still be under way.
///
/// It is a [`Future`] that the device's thread completes, so any executor may poll it; [`Pending::wait`] blocks instead. Whoever drops
/// it gives up the answer, not the request.
#[must_use = "a request that nobody waits for may fail unseen"]
pub struct Pending<T> {
    shared: Arc<Shared>,
    /// What the answer is to whoever asked.
    take: fn(Answer) -> T,
}

/// The device's end of it. When it goes without having completed the request, the request failed: the device's thread is gone.
pub(crate) struct Completer(Option<Arc<Shared>>);

struct Shared {
    state: Mutex<State>,
    done: Condvar,
}

enum State {
    UnderWay(Option<Waker>),
    Done(Result<Answer, Error>),
    Taken,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment: no panic leaves it half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, result: Result<Answer, Error>) {
        let before = std::mem::replace(&mut *self.state(), State::Done(result));
        self.done.notify_one();
        if let State::UnderWay(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// The two ends of a request.
pub(crate) fn pending<T>(take: fn(Answer) -> T) -> (Completer, Pending<T>) {
    let shared = Arc::new(Shared { state: Mutex::new(State::UnderWay(None)), done: Condvar::new() });
    (Completer(Some(Arc::clone(&shared))), Pending { shared, take })
}

/// A request that failed before it began.
pub(crate) fn failed<T>(error: Error, take: fn(Answer) -> T) -> Pending<T> {
    let (done, pending) = pending(take);
    done.complete(Err(error));
    pending
}

impl Completer {
    pub(crate) fn complete(mut self, result: Result<Answer, Error>) {
        if let Some(shared) = self.0.take() {
            shared.complete(result);
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.complete(Err(Error::Gone));
        }
    }
}

impl<T> Pending<T> {
    /// Blocks until the request is answered.
    ///
    /// # Errors
    /// The request failed.
    pub fn wait(self) -> Result<T, Error> {
        let mut state = self.shared.state();
        loop {
            match std::mem::replace(&mut *state, State::Taken) {
                State::Done(result) => return result.map(self.take),
                State::Taken => return Err(Error::Gone),
                under_way => *state = under_way,
            }
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether [`Pending::wait`] would return at once.
    pub fn is_done(&self) -> bool {
        !matches!(*self.shared.state(), State::UnderWay(_))
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.state();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(result) => Poll::Ready(result.map(self.take)),
            State::Taken => Poll::Pending,
            State::UnderWay(_) => {
                *state = State::UnderWay(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}
