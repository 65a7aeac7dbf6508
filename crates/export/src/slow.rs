//! Requests that waited long, and what for: told in the log, the worst of each second.

use crate::request::{Command, Request};

/// From here on a wait is long, nanoseconds.
const LONG: u64 = 50_000_000;
/// How often the log tells of them at most, nanoseconds.
const TOLD_EVERY: u64 = 1_000_000_000;

/// What a request waited for before the device took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// Nothing but its turn.
    #[default]
    Turn,
    /// The device took nothing, for this reason.
    Device(&'static str),
    /// As many reads as the device has at once were before it.
    Reads,
    /// The data that its client has announced.
    Client,
    /// Clients have as many requests with the device as its setting allows.
    Depth,
    /// Another client reads and writes some of its sectors as one step.
    Reserved,
}

/// When a request came how far, by the clock of the observer, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Its header was read.
    pub arrived: u64,
    /// The device took it.
    pub taken: u64,
    /// What it waited for in between.
    pub held: Held,
}

impl Way {
    /// The request waited so long for its client's data: before the device took it, or between the pieces of a large one. That
    /// time is not the device's.
    pub fn client_was_late(&mut self, ns: u64) {
        if ns >= LONG / 2 {
            self.held = Held::Client;
        }
        // Before the device has taken anything, the wait shows in when it will.
        if self.taken > 0 {
            self.taken += ns;
        }
    }
}

/// Requests that waited long and were not told of yet.
#[derive(Debug, Default)]
pub struct Slow {
    count: u64,
    worst: Option<Wait>,
    told: Option<u64>,
    emulated: bool,
}

/// A request's wait.
#[derive(Clone, Debug)]
pub struct Wait {
    /// From its header to its answer, nanoseconds.
    pub ns: u64,
    /// Who asked.
    pub peer: String,
    /// What was asked.
    pub request: Request,
    /// What most of the time was spent on.
    pub why: &'static str,
}

impl Slow {
    /// None yet, of a device that may emulate a card.
    pub fn of(emulated: bool) -> Slow {
        Slow { emulated, ..Slow::default() }
    }

    /// A request was answered `now`. Returns whether it had waited long.
    #[inline]
    pub fn answered(&mut self, peer: &str, way: Way, now: u64, request: &Request) -> bool {
        let ns = now.saturating_sub(way.arrived);
        let long = ns >= LONG;
        if long {
            self.note(peer, way, ns, request);
        }
        long
    }

    #[cold]
    fn note(&mut self, peer: &str, way: Way, ns: u64, request: &Request) {
        self.count += 1;
        if self.worst.as_ref().is_none_or(|worst| ns > worst.ns) {
            let before = way.taken.saturating_sub(way.arrived);
            let why = if 2 * before >= ns {
                before_the_device(way.held)
            } else {
                in_the_device(request.command, self.emulated)
            };
            self.worst = Some(Wait { ns, peer: peer.to_owned(), request: *request, why });
        }
    }

    /// What there is to tell `now`: how many, and the worst of them.
    pub fn take(&mut self, now: u64) -> Option<(u64, Wait)> {
        if self.told.is_some_and(|told| now.saturating_sub(told) < TOLD_EVERY) {
            return None;
        }
        let (worst, count) = (self.worst.take()?, self.count);
        *self = Slow { told: Some(now), ..Slow::of(self.emulated) };
        Some((count, worst))
    }
}

fn before_the_device(held: Held) -> &'static str {
    match held {
        Held::Turn => "its turn came late: the device's thread was busy with others",
        Held::Device(why) => why,
        Held::Client => "the client sent the data late",
        Held::Depth => "clients had as many requests with the device as its queue-depth allows",
        Held::Reserved => "another client was comparing and writing the same sectors",
        Held::Reads => "other reads were before it: the device has 64 MiB of them at once",
    }
}

fn in_the_device(command: Command, emulated: bool) -> &'static str {
    match command {
        _ if emulated => "the card that the device emulates takes so long",
        Command::Read => "the store took so long to read it",
        // A device has taken what need not be durable as soon as it can.
        _ => "the store took so long to make it durable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: Command, offset: u64) -> Request {
        Request { command, offset, len: 4096, cookie: 0, view: None }
    }

    #[test]
    fn the_worst_of_a_second_is_told_with_what_it_waited_for() {
        let mut slow = Slow::default();
        let at = |arrived, taken, held| Way { arrived, taken, held };
        assert!(!slow.answered("", at(0, 0, Held::Turn), LONG - 1, &asked(Command::Read, 1)));
        assert!(slow.take(LONG).is_none(), "a short wait");
        assert!(slow.answered(
            "",
            at(0, LONG, Held::Device("no room")),
            2 * LONG,
            &asked(Command::Write { fua: true, placement: 0 }, 2)
        ));
        let (count, wait) = slow.take(2 * LONG).expect("a long one");
        assert_eq!((count, wait.request.offset, wait.why), (1, 2, "no room"));
        slow.answered("", at(0, 1, Held::Reads), 3 * LONG, &asked(Command::Flush, 3));
        slow.answered("", at(0, 1, Held::Reads), 4 * LONG, &asked(Command::Flush, 4));
        assert!(slow.take(5 * LONG).is_none(), "within a second of the last");
        let (count, wait) = slow.take(2 * LONG + TOLD_EVERY).expect("later");
        assert_eq!((count, wait.request.offset), (2, 4));
        assert!(wait.why.contains("durable"), "{}", wait.why);
        assert!(slow.take(u64::MAX).is_none(), "nothing since");
    }

    #[test]
    fn a_client_that_sends_late_is_told_from_a_slow_store() {
        let mut way = Way { arrived: 10, taken: 20, held: Held::Turn };
        way.client_was_late(LONG);
        let mut slow = Slow::default();
        slow.answered("7", way, LONG + 100, &asked(Command::Write { fua: false, placement: 0 }, 1));
        let (_, wait) = slow.take(LONG + 100).expect("a long one");
        assert!(wait.why.contains("client"), "{}", wait.why);
        assert_eq!(wait.peer, "7");
    }
}
