//! NVMe hosts on a device's thread: who is let in, who has gone, and what they are told.

use std::io;

use ::nvme::controller::Controller;
use ::nvme::fabrics::Connect;
use ::nvme::{Admitted, Cqe, Namespace, Status};
use media::ring::Entry;
use slab::Slab;

use super::{HOSTS, HOSTS_PERIOD, Worker};
use crate::connection::Connection;
use crate::nvme::{Joined, SNAPSHOT, UNKNOWN_SUBSYSTEM, collect_events, describe, warnings};

/// Looks further apart than this mean that the thread was held up, milliseconds; they come each second.
const STOOD_STILL_MS: u64 = 3000;

impl Worker {
    /// Lets a queue in, or says why not.
    pub(crate) fn join(&mut self, cid: u16, connect: &Connect, read_only: bool, at: &str) -> Result<Joined, Cqe> {
        if self.detaching.is_some() {
            return Err(Cqe::new(cid, Status::CONNECT_INVALID));
        }
        let connections = &self.connections;
        let taken = |controller, queue| has_queue(connections, controller, queue);
        let now_ms = self.core.observer.now_ms();
        let device = &self.core.device;
        // A controller shows the same snapshot or clone for as long as it lives, whatever its name comes to stand for.
        let named = connect.subsystem.split_once(SNAPSHOT).filter(|_| connect.queue == 0);
        let named = named.map(|(_, name)| device.view_named(name));
        if let Some(None) = named {
            return Err(Cqe { result: UNKNOWN_SUBSYSTEM, ..Cqe::new(cid, Status::CONNECT_INVALID) });
        }
        let admitted = self.core.nvme.connect(cid, connect, taken, now_ms)?;
        let mut shown = named.flatten().map(|view| view.id);
        if let Some(controller) = self.core.nvme.controller(admitted.controller) {
            if admitted.queue == 0 {
                (controller.at, controller.snapshot) = (at.to_owned(), shown);
            }
            shown = controller.snapshot;
        }
        let clone = shown.and_then(|id| device.find_clone(id));
        let read_only = read_only || device.is_read_only() || (shown.is_some() && clone.is_none());
        let shows = clone.map_or(shown, |clone| Some(clone.of));
        let mapped = shows.and_then(|id| device.snapshot(id)).map(|snapshot| snapshot.mapped);
        let used_bytes = mapped.unwrap_or(0) * u64::from(device.info().sector_bytes);
        let namespace = describe(device.info(), &device.settings(), read_only, used_bytes);
        let (placements, reclaim_unit_bytes) = (device.placements(), device.reclaim_unit_bytes());
        let namespace = Namespace { snapshot: shown, placements, reclaim_unit_bytes, ..namespace };
        Ok(Joined { admitted, namespace })
    }

    /// A host that makes an association at the place where it has one lost that one, or gave it up. What still lies in the old
    /// sockets must never be carried out: the host repeats it on the new one, and may have written something newer since. A host
    /// with several paths has an association at each; two at the same place need two host identifiers.
    ///
    /// Called with the new admin queue's controller, before any of that queue's commands, and not before the host has proven who it
    /// is: otherwise whoever knows a host's name could end its associations.
    fn supersede(&mut self, controller: u16) {
        let Some(fresh) = self.core.nvme.controller(controller) else { return };
        let (host, host_id) = (fresh.host.clone(), fresh.host_id);
        // The device, each of its snapshots and each clone are subsystems of their own.
        let place = (fresh.at.clone(), fresh.subsystem.clone());
        for other in self.core.nvme.of_host(&host, &host_id) {
            let same = |other: &mut Controller| (&other.at, &other.subsystem) == (&place.0, &place.1);
            if other != controller && self.core.nvme.controller(other).is_some_and(same) {
                self.end_association(other, "its host came again");
            }
        }
    }

    /// Whether a queue that comes out of the handshake still belongs to its controller. An admin queue takes the place of those
    /// that its host had.
    pub(super) fn admit(&mut self, session: &crate::nvme::Session) -> bool {
        let admitted = session.admitted();
        // Two may have asked for the same queue before either of them came.
        let is_first = !has_queue(&self.connections, admitted.controller, admitted.queue);
        let is_current = is_first && self.core.nvme.is_current(&admitted);
        if is_current && admitted.queue == 0 {
            self.supersede(admitted.controller);
        }
        is_current
    }

    /// Ends every connection of a controller at once: nothing of what lies in them is carried out any more.
    fn end_association(&mut self, controller: u16, why: &str) {
        self.break_off(why, |queue| queue.controller == controller);
        self.core.nvme.remove(controller);
    }

    fn break_off(&mut self, why: &str, which: impl Fn(&Admitted) -> bool) {
        for key in queues(&self.connections, which) {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.link.break_off(why);
            }
            self.make_ready(key);
        }
    }

    /// A controller's admin queue is gone: so are its other queues.
    pub(crate) fn leave(&mut self, controller: u16) {
        self.end_association(controller, "its admin queue is gone");
    }

    /// Closes the I/O queues of controllers that their hosts reset.
    pub(super) fn close_queues(&mut self) {
        for controller in std::mem::take(&mut self.core.close_queues) {
            self.break_off("its controller was reset", |queue| queue.controller == controller && queue.queue > 0);
        }
    }

    /// Makes sure that the thread looks after hosts as long as there are any.
    pub(super) fn watch_hosts(&mut self) -> io::Result<()> {
        if self.watching_hosts || self.core.nvme.is_empty() {
            return Ok(());
        }
        self.watching_hosts = true;
        let entry = Entry::Timeout(&HOSTS_PERIOD);
        // SAFETY: the entry points to a static.
        unsafe { self.ring.borrow_mut().push(self.owner, HOSTS, entry) }
    }

    /// Throws out hosts that were silent for too long, and tells the others of the device's health.
    pub(super) fn look_at_hosts(&mut self) {
        self.watching_hosts = false;
        let now_ms = self.core.observer.now_ms();
        // Where the thread itself stood still, a hung store for instance, nobody was heard, and nobody is to blame.
        let stood_still = now_ms.saturating_sub(self.looked_at_hosts_ms) > STOOD_STILL_MS;
        self.looked_at_hosts_ms = now_ms;
        let warnings = warnings(&self.core.device.condition());
        collect_events(&mut self.core);
        let mut silent = Vec::new();
        for controller in self.core.nvme.controllers() {
            controller.look_at_health(warnings);
            if stood_still {
                controller.heard(now_ms);
            }
            if controller.is_silent(now_ms) {
                silent.push(controller.id);
            }
        }
        for controller in silent {
            tracing::warn!(device = %self.name, controller, "an NVMe host was silent for too long");
            self.end_association(controller, "its host was silent for too long");
        }
        queues(&self.connections, |queue| queue.queue == 0).into_iter().for_each(|key| self.make_ready(key));
    }
}

/// Keys of the connections that are such queues.
pub(super) fn queues(connections: &Slab<Connection>, which: impl Fn(&Admitted) -> bool) -> Vec<usize> {
    let admitted = connections.iter().filter_map(|(key, connection)| Some((key, connection.nvme()?.admitted())));
    admitted.filter(|(_, queue)| which(queue)).map(|(key, _)| key).collect()
}

fn has_queue(connections: &Slab<Connection>, controller: u16, queue: u16) -> bool {
    !queues(connections, |it| (it.controller, it.queue) == (controller, queue)).is_empty()
}
