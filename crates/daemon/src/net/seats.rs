//! Who holds a connection of the API: so many at once, fewer from one address, and where there is no room a stranger makes some.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Connections at once.
const SEATS: usize = 256;
/// Of one address: a browser keeps six, and a few programs may share a machine with it.
const OF_ONE: usize = 64;

/// The seats of a service.
#[derive(Clone, Default)]
pub struct Seats(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    next: u64,
    taken: HashMap<u64, Taken>,
}

struct Taken {
    address: IpAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    known: AtomicBool,
    leave: Notify,
}

/// A connection's seat. Whoever has it gives it back by dropping it.
pub struct Seat {
    number: u64,
    shared: Arc<Shared>,
    seats: Seats,
}

/// What a connection's requests may say of it.
#[derive(Clone)]
pub struct Standing(Arc<Shared>);

impl Standing {
    /// Somebody asked who has signed in, or has a key: the connection is a stranger's no more.
    pub fn is_known(&self) {
        self.0.known.store(true, Ordering::Relaxed);
    }
}

impl Seats {
    /// A seat for a new connection. Where all are taken, or all of its address, the stranger who came first leaves; where there is none,
    /// there is no seat.
    pub fn take(&self, address: IpAddr) -> Option<Seat> {
        let mut table = self.table();
        let same = table.taken.values().filter(|taken| taken.address == address).count();
        if same >= OF_ONE || table.taken.len() >= SEATS {
            let strangers = table
                .taken
                .iter()
                .filter(|(_, taken)| same < OF_ONE || taken.address == address)
                .filter(|(_, taken)| !taken.shared.known.load(Ordering::Relaxed));
            let oldest = strangers.map(|(number, _)| *number).min()?;
            let gone = table.taken.remove(&oldest)?;
            gone.shared.leave.notify_one();
        }
        let number = table.next;
        table.next += 1;
        let shared = Arc::<Shared>::default();
        table.taken.insert(number, Taken { address, shared: Arc::clone(&shared) });
        drop(table);
        Some(Seat { number, shared, seats: self.clone() })
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        // Whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// For the connection's requests.
    pub fn standing(&self) -> Standing {
        Standing(Arc::clone(&self.shared))
    }

    /// Comes to its end when another needs the seat.
    pub async fn must_leave(&self) {
        self.shared.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.table().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn leaves(seat: &Seat) -> bool {
        seat.must_leave().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_stranger_makes_room() {
        let seats = Seats::default();
        let held: Vec<Seat> =
            (0..SEATS).map(|number| seats.take(address((number / OF_ONE) as u8)).expect("room")).collect();
        held[0].standing().is_known();
        let new = seats.take(address(99)).expect("a stranger makes room");
        assert!(!leaves(&held[0]) && leaves(&held[1]) && !leaves(&held[2]) && !leaves(&new));
        drop(held);
        drop(new);
        assert!(seats.table().taken.is_empty());
    }

    #[test]
    fn an_address_takes_seats_from_itself_only() {
        let seats = Seats::default();
        let other = seats.take(address(1)).expect("room");
        let held: Vec<Seat> = (0..OF_ONE).map(|_| seats.take(address(2)).expect("room")).collect();
        let one_more = seats.take(address(2)).expect("room");
        assert!(leaves(&held[0]) && !leaves(&other) && !leaves(&one_more));
    }

    #[test]
    fn who_has_signed_in_is_not_sent_away() {
        let seats = Seats::default();
        let held: Vec<Seat> = (0..OF_ONE).map(|_| seats.take(address(2)).expect("room")).collect();
        held.iter().for_each(|seat| seat.standing().is_known());
        assert!(seats.take(address(2)).is_none());
        assert!(held.iter().all(|seat| !leaves(seat)));
    }
}
