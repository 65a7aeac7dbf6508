//! What all clients of a server may hold together: memory is bounded over all of them, and shared fairly.
//!
//! A client that does not read its answers keeps them in our memory. Each has room of its own for a request and some more, which
//! nobody takes from it. What it has under way or unsent beyond that comes out of one pot for all, of which each may take its
//! share. Besides, each has a receive buffer that holds one request, see [`crate::input`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all of them together may hold beyond what each has of its own, bytes, unless configured.
const BYTES: usize = 256 << 20;
/// The most that one may hold, bytes.
const MOST: usize = 8 << 20;
/// A device's largest request, bytes.
const REQUEST: usize = 1 << 20;
/// What each has of its own, bytes: such a request, and a few small ones before it.
const OWN: usize = REQUEST + (256 << 10);
/// By how much a client draws from the pot, bytes: seldom, since all devices' threads share it.
const GRAIN: usize = 1 << 20;

/// All clients of a server.
#[derive(Debug)]
pub struct Clients {
    /// The pot, bytes. Reads that are larger than a device's requests are held as a whole: all of them together in as much
    /// again, and not in the pot, so that those who do not read keep out nobody.
    bytes: usize,
    count: AtomicUsize,
    /// What each may hold now, bytes.
    share: AtomicUsize,
    /// What is drawn from the pot, bytes.
    drawn: AtomicUsize,
    /// What large reads hold, bytes.
    large: AtomicUsize,
}

/// Takes more of something that has a bound; false when there is not so much left.
fn take(of: &AtomicUsize, more: usize, bound: usize) -> bool {
    let within = |taken: usize| (taken + more <= bound).then_some(taken + more);
    of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
}

impl Default for Clients {
    /// With the usual pot.
    fn default() -> Clients {
        Clients::new(BYTES)
    }
}

impl Clients {
    /// None yet, with a pot of so many bytes.
    pub fn new(bytes: usize) -> Clients {
        let none = || AtomicUsize::new(0);
        Clients { bytes, count: none(), share: AtomicUsize::new(MOST), drawn: none(), large: none() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn changed(&self, count: usize) {
        self.share.store((self.bytes / count.max(1)).clamp(OWN, MOST), Ordering::Relaxed);
    }
}

/// One client's part in them, for as long as it lives.
#[derive(Debug)]
pub struct Ticket {
    clients: Arc<Clients>,
    /// Drawn from the pot, bytes.
    drawn: usize,
    /// Bytes of large reads.
    large: usize,
    /// Dropped with the connection, for one who waits for that.
    _gone: Option<std::sync::mpsc::Sender<()>>,
}

impl Ticket {
    /// Counts one more.
    pub fn new(clients: &Arc<Clients>) -> Ticket {
        clients.changed(clients.count.fetch_add(1, Ordering::Relaxed) + 1);
        Ticket { clients: Arc::clone(clients), drawn: 0, large: 0, _gone: None }
    }

    /// Lets somebody wait for the connection's end: the channel's other end then hangs up.
    pub fn until_dropped(mut self, gone: std::sync::mpsc::Sender<()>) -> Ticket {
        self._gone = Some(gone);
        self
    }

    /// Whether there is room for one more request beside the bytes that it holds. With none held there always is.
    #[inline]
    pub fn has_room(&mut self, held: usize) -> bool {
        let needed = (held + REQUEST).saturating_sub(OWN);
        needed <= self.drawn || (held < self.clients.share.load(Ordering::Relaxed) && self.draw(needed - self.drawn))
    }

    fn draw(&mut self, bytes: usize) -> bool {
        let bytes = bytes.next_multiple_of(GRAIN);
        let drawn = take(&self.clients.drawn, bytes, self.clients.bytes);
        self.drawn += if drawn { bytes } else { 0 };
        drawn
    }

    /// Has room for large reads up to so many bytes that it holds, the next one among them; false when there is none just now. Asked again
    /// for the same read it takes nothing more, and what it holds no more it gives back.
    pub fn has_large_room(&mut self, held: usize) -> bool {
        if let Some(more) = held.checked_sub(self.large) {
            if !take(&self.clients.large, more, self.clients.bytes) {
                return false;
            }
        } else {
            self.clients.large.fetch_sub(self.large - held, Ordering::Relaxed);
        }
        self.large = held;
        true
    }

    /// Everything that it held was sent.
    #[inline]
    pub fn give_back(&mut self) {
        for (mine, all) in [(&mut self.drawn, &self.clients.drawn), (&mut self.large, &self.clients.large)] {
            if *mine > 0 {
                all.fetch_sub(std::mem::take(mine), Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.give_back();
        self.clients.changed(self.clients.count.fetch_sub(1, Ordering::Relaxed) - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes requests of 1 MiB until there is room for no more; what it holds then.
    fn fill(ticket: &mut Ticket) -> usize {
        let mut held = 0;
        while ticket.has_room(held) {
            held += REQUEST;
        }
        held
    }

    #[test]
    fn what_all_hold_is_bounded_and_each_has_its_own() {
        let clients = Arc::new(Clients::new(BYTES));
        let (mut tickets, mut all) = (Vec::new(), 0);
        for _ in 0..1024 {
            let mut ticket = Ticket::new(&clients);
            let held = fill(&mut ticket);
            assert!((REQUEST..=MOST + REQUEST).contains(&held), "{held}");
            all += held;
            tickets.push(ticket);
        }
        assert!(all <= BYTES + 1024 * OWN, "{all}");
        assert!(tickets.iter_mut().all(|ticket| ticket.has_room(0)), "whoever reads is served");
        tickets.iter_mut().for_each(Ticket::give_back);
        // Beside so many nobody has more than a share.
        assert!(fill(&mut tickets[0]) <= 2 * OWN);
        tickets.truncate(1);
        tickets[0].give_back();
        assert!(fill(&mut tickets[0]) >= MOST);
        assert_eq!(clients.count(), 1);
    }

    #[test]
    fn without_a_pot_each_has_its_own() {
        let clients = Arc::new(Clients::new(0));
        let mut ticket = Ticket::new(&clients);
        assert!((REQUEST..=2 * REQUEST).contains(&fill(&mut ticket)));
        assert!(!ticket.has_large_room(1));
    }

    #[test]
    fn small_requests_never_touch_the_pot() {
        let clients = Arc::new(Clients::new(BYTES));
        let mut ticket = Ticket::new(&clients);
        assert!((0..64).all(|number| ticket.has_room(number * 4096)));
        assert_eq!(ticket.drawn, 0);
    }

    #[test]
    fn large_reads_have_one_bound_and_give_it_back() {
        let clients = Arc::new(Clients::new(BYTES));
        let [mut one, mut other] = [0; 2].map(|_| Ticket::new(&clients));
        let most = BYTES / (32 << 20);
        assert_eq!((1..100).filter(|count| one.has_large_room(count * (32 << 20))).count(), most);
        assert!(!other.has_large_room(1));
        one.give_back();
        assert!(other.has_large_room(BYTES));
        drop(other);
        assert!(one.has_large_room(BYTES));
    }

    #[test]
    fn a_stream_of_large_reads_holds_no_more_than_is_under_way() {
        let clients = Arc::new(Clients::new(BYTES));
        let mut ticket = Ticket::new(&clients);
        let read = 4 << 20;
        // Seven of them are under way at any time, and each waits for the device now and then.
        for _ in 0..10 * BYTES / read {
            assert!((0..3).all(|_| ticket.has_large_room(8 * read)));
        }
        assert_eq!(clients.large.load(Ordering::Relaxed), 8 * read);
        assert!(ticket.has_large_room(read));
        assert_eq!(clients.large.load(Ordering::Relaxed), read, "the others were sent");
    }
}
