//! A client of a device: its socket, and the session of the protocol that it speaks.

use crate::jobs::{Core, Job};
use crate::link::{Arrival, Link, Step};
use crate::{nbd, nvme, vhost};

/// Work of one client before its answers are sent and it is another's turn.
const TURN: u32 = 64;

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It needs more bytes, this many in one piece.
    Receive(usize),
    /// It has more to do, but others are waiting.
    Again,
    /// The device takes no more just now. Whether anything was done in this turn.
    Parked(bool),
    /// It goes on when answers came or were sent.
    Blocked,
    /// It goes on when its bell rings.
    Idle,
    /// Nothing more will be read.
    Over,
}

/// What a client's requests mean, by protocol.
pub enum Session {
    /// Network Block Device.
    Nbd(nbd::Session),
    /// A queue of NVMe over TCP.
    Nvme(Box<nvme::Session>),
    /// The disk of a virtual machine.
    Vhost(Box<vhost::Session>),
}

/// A client on its way from the handshake to its device's thread.
pub struct NewConnection {
    /// Who it is, and its socket.
    pub arrival: Arrival,
    /// What was agreed.
    pub session: Session,
}

/// A client.
pub struct Connection {
    /// Its socket.
    pub link: Link,
    session: Session,
}

impl Connection {
    /// Takes over after the handshake.
    pub fn new(new: NewConnection) -> Connection {
        Connection { link: Link::new(new.arrival), session: new.session }
    }

    /// The protocol that it speaks, in a word.
    pub fn protocol(&self) -> &'static str {
        match self.session {
            Session::Nbd(_) => "nbd",
            Session::Nvme(_) => "nvme",
            Session::Vhost(_) => "vhost",
        }
    }

    /// The queue that it is, over NVMe.
    pub fn nvme(&self) -> Option<&nvme::Session> {
        match &self.session {
            Session::Nvme(session) => Some(session),
            Session::Nbd(_) | Session::Vhost(_) => None,
        }
    }

    /// The session of a virtual machine's disk, with the number that its handshake gave it.
    pub fn vhost(&mut self, id: u64) -> Option<&mut vhost::Session> {
        match &mut self.session {
            Session::Vhost(session) if session.id == id => Some(session),
            _ => None,
        }
    }

    /// The queues of a virtual machine's disk, and those that the worker is to listen to no more.
    pub fn queues(&mut self) -> Option<(&mut [vhost::Ring], &mut Vec<usize>)> {
        match &mut self.session {
            Session::Vhost(session) => Some(session.queues()),
            Session::Nvme(_) => None,
            Session::Nbd(_) => None,
        }
    }

    /// Tells the client what was answered, where that goes by no socket.
    #[inline]
    pub fn tell(&mut self) {
        if let Session::Vhost(session) = &mut self.session {
            session.tell();
        }
    }

    /// The device has another host capacity. NBD cannot say so: a client learns of a larger one when it connects anew.
    pub fn resized(&mut self, bytes: u64) {
        match &mut self.session {
            Session::Nbd(session) => session.resized(bytes),
            Session::Nvme(session) => session.resized(bytes),
            Session::Vhost(session) => session.resized(bytes),
        }
    }

    /// Memory that it holds, bytes.
    pub fn memory(&self) -> usize {
        let own = match &self.session {
            Session::Nbd(_) | Session::Nvme(_) => 0,
            Session::Vhost(session) => session.memory_bytes(),
        };
        self.link.memory() + own
    }

    /// Gives back what it keeps for requests to come.
    pub fn shrink(&mut self) {
        self.link.shrink();
        if let Session::Vhost(session) = &mut self.session {
            session.shrink();
        }
    }

    fn has_begun(&self) -> bool {
        match &self.session {
            Session::Nbd(session) => session.has_part(),
            Session::Nvme(session) => session.has_part(),
            Session::Vhost(session) => session.has_part(),
        }
    }

    /// Whether a request has come in part.
    pub fn has_part(&self) -> bool {
        self.has_begun() || !self.link.input.bytes().is_empty()
    }

    /// What it would give back if the kernel did not wait to receive into it, bytes: nothing in the middle of a request.
    pub fn idle_memory(&self) -> usize {
        if self.has_part() { 0 } else { self.link.idle_memory() }
    }

    /// Whether it can go on although nothing more was received, as far as its own memory goes.
    pub fn can_go_on(&mut self) -> bool {
        match &self.session {
            Session::Nbd(_) | Session::Vhost(_) => !self.link.receiving && self.may_step(),
            Session::Nvme(session) => session.can_go_on(&mut self.link),
        }
    }

    /// Whether it may take the next step. A request that has begun holds its bytes already: it goes on. A queue of NVMe looks
    /// for itself, since data for commands of which we have told the host that we are ready must always come through.
    fn may_step(&mut self) -> bool {
        match &self.session {
            Session::Nbd(_) | Session::Vhost(_) => self.has_begun() || self.link.has_room(),
            Session::Nvme(_) => true,
        }
    }

    /// Carries out requests that are there, as many as one turn allows.
    pub fn serve(&mut self, key: usize, core: &mut Core) -> Turn {
        let mut work = 0;
        loop {
            if !self.link.is_open() {
                let begun = match &mut self.session {
                    Session::Nbd(session) => session.give_up(),
                    Session::Nvme(session) => session.give_up(),
                    Session::Vhost(session) => session.give_up(),
                };
                self.link.abandon(key, core, begun);
                return Turn::Over;
            }
            if work >= TURN {
                return Turn::Again;
            }
            let advanced = match &mut self.session {
                Session::Nbd(_) | Session::Vhost(_) => None,
                Session::Nvme(session) => session.advance(&mut self.link, key, core),
            };
            let step = match advanced {
                Some(step) => step,
                // While the kernel writes into the receive buffer there is nothing new in it.
                None if self.link.receiving || !self.may_step() => return Turn::Blocked,
                None => match &mut self.session {
                    Session::Nbd(session) => session.step(&mut self.link, key, core),
                    Session::Nvme(session) => session.step(&mut self.link, key, core),
                    Session::Vhost(session) => session.step(&mut self.link, key, core),
                },
            };
            match step {
                Step::Done(cost) => work += cost,
                Step::Need(bytes) => return Turn::Receive(bytes),
                Step::Busy => return Turn::Parked(work > 0),
                Step::Idle => return Turn::Idle,
            }
        }
    }

    /// A request that was under way is done.
    pub fn finish(&mut self, core: &mut Core, job: Job) {
        let key = job.connection;
        let Some((request, result)) = self.link.finish(core, job) else { return };
        match &mut self.session {
            Session::Nbd(session) => session.answer(&mut self.link, core, &request, result),
            Session::Nvme(session) => session.answer(&mut self.link, key, core, &request, result),
            Session::Vhost(session) => session.answer(&mut self.link, core, &request, result),
        }
    }
}
