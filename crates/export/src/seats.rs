//! Who counts as a client of a device: everybody from before the handshake's last answer until the connection is gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    taken: usize,
    closed: bool,
}

/// The seats of one device. Shared by its thread and by those that lead handshakes, so that a detach and a client
/// that comes at the same time agree on who was first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Arc<Mutex<State>>);

/// One client's seat; free again when it is dropped.
#[derive(Debug)]
pub struct Seat(Seats);

impl Seats {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat, unless the device is being detached.
    pub fn take(&self) -> Option<Seat> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.taken += 1;
        Some(Seat(self.clone()))
    }

    /// Gives out no more seats, if none is taken.
    ///
    /// # Errors
    /// How many are taken.
    pub fn close_if_free(&self) -> Result<(), usize> {
        let mut state = self.lock();
        if state.taken > 0 {
            return Err(state.taken);
        }
        state.closed = true;
        Ok(())
    }

    /// Gives out seats again.
    pub fn open(&self) {
        self.lock().closed = false;
    }

    /// Gives out no more seats.
    pub fn close(&self) {
        self.lock().closed = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.lock().taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detach_and_a_client_agree_on_who_was_first() {
        let seats = Seats::default();
        let first = seats.take().expect("open");
        let second = seats.take().expect("open");
        assert_eq!(seats.close_if_free(), Err(2));
        drop(first);
        assert_eq!(seats.close_if_free(), Err(1));
        drop(second);
        assert_eq!(seats.close_if_free(), Ok(()));
        assert!(seats.take().is_none());
    }

    #[test]
    fn closing_by_force_leaves_those_who_sit() {
        let seats = Seats::default();
        let seat = seats.take();
        seats.close();
        assert!(seats.take().is_none());
        assert_eq!(seats.close_if_free(), Err(1));
        drop(seat);
        assert_eq!(seats.close_if_free(), Ok(()));
    }
}
