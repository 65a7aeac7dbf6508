//! The controllers of one device: who may connect, and which queue belongs to whom.

use std::collections::BTreeMap;

use crate::controller::Controller;
use crate::fabrics::{ANY_CONTROLLER, Connect, DISABLE_FLOW_CONTROL};
use crate::feature::QUEUES;
use crate::placement::Events;
use crate::property::QUEUE_ENTRIES;
use crate::{Cqe, Status};

/// Hosts that are connected to a device at a time.
const CONTROLLERS: usize = 64;
/// Controllers have numbers up to this one; those above are reserved.
const LAST_CONTROLLER: u16 = 0xffef;

/// The controllers of a device.
#[derive(Debug, Default)]
pub struct Subsystem {
    /// Events of placement.
    pub events: Events,
    controllers: BTreeMap<u16, Controller>,
    next: u16,
}

/// A queue that was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its controller.
    pub controller: u16,
    /// Its number; 0 for the admin queue.
    pub queue: u16,
    /// Its entries.
    pub entries: u16,
    /// The submission queue's head is not told.
    pub no_flow_control: bool,
    /// How often the controller had been reset: a queue from before a reset is none of those after it.
    pub resets: u32,
}

impl Subsystem {
    /// Lets a queue in: the admin queue makes a controller, an I/O queue joins one. `taken` says whether the controller has a
    /// queue of that number already.
    ///
    /// # Errors
    /// The completion that refuses it.
    pub fn connect(
        &mut self,
        cid: u16,
        connect: &Connect,
        taken: impl Fn(u16, u16) -> bool,
        now_ms: u64,
    ) -> Result<Admitted, Cqe> {
        let refused = |status| Err(Cqe::new(cid, status));
        // Where the parameter stands: in the command or, with bit 16, in its data.
        let invalid = |at: u64| Err(Cqe { result: at, ..Cqe::new(cid, Status::CONNECT_INVALID) });
        let Ok(entries @ 2..=QUEUE_ENTRIES) = u16::try_from(connect.entries) else { return invalid(44) };
        let admitted = |controller, resets| Admitted {
            controller,
            resets,
            queue: connect.queue,
            entries,
            no_flow_control: connect.attributes & DISABLE_FLOW_CONTROL != 0,
        };
        if connect.queue == 0 {
            if connect.controller != ANY_CONTROLLER {
                return invalid(1 << 16 | 16);
            }
            if self.controllers.len() >= CONTROLLERS {
                return refused(Status::CONNECT_BUSY);
            }
            let id = self.free_number();
            self.controllers.insert(id, Controller::new(id, connect, now_ms));
            return Ok(admitted(id, 0));
        }
        let Some(controller) = self.controllers.get(&connect.controller) else { return invalid(1 << 16 | 16) };
        if controller.host != connect.host || controller.host_id != connect.host_id {
            return refused(Status::HOST_ID_INCONSISTENT);
        }
        if controller.subsystem != connect.subsystem {
            return invalid(1 << 16 | 256);
        }
        if !controller.is_ready() {
            return refused(Status::SEQUENCE_ERROR);
        }
        if connect.queue > QUEUES || taken(connect.controller, connect.queue) {
            return invalid(42);
        }
        Ok(admitted(connect.controller, controller.resets))
    }

    fn free_number(&mut self) -> u16 {
        // Numbers come again as late as may be: a stray queue of a host that was thrown out then finds nobody.
        loop {
            self.next = if self.next >= LAST_CONTROLLER { 1 } else { self.next + 1 };
            if !self.controllers.contains_key(&self.next) {
                return self.next;
            }
        }
    }

    /// Whether a queue that was let in still belongs to a controller: its host may have reset it, or come again, meanwhile.
    pub fn is_current(&self, admitted: &Admitted) -> bool {
        let controller = self.controllers.get(&admitted.controller);
        controller.is_some_and(|controller| admitted.queue == 0 || controller.resets == admitted.resets)
    }

    /// A controller.
    #[inline]
    pub fn controller(&mut self, id: u16) -> Option<&mut Controller> {
        self.controllers.get_mut(&id)
    }

    /// A controller, and the events that it shares with the others.
    pub fn controller_with_events(&mut self, id: u16) -> Option<(&mut Controller, &mut Events)> {
        Some((self.controllers.get_mut(&id)?, &mut self.events))
    }

    /// All of them.
    pub fn controllers(&mut self) -> impl Iterator<Item = &mut Controller> {
        self.controllers.values_mut()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.controllers.is_empty()
    }

    /// Forgets a controller, whose admin queue is gone.
    pub fn remove(&mut self, id: u16) {
        self.controllers.remove(&id);
    }

    /// Controllers of a host.
    pub fn of_host(&self, host: &str, host_id: &[u8; 16]) -> Vec<u16> {
        let same = |controller: &&Controller| controller.host == host && controller.host_id == *host_id;
        self.controllers.values().filter(same).map(|controller| controller.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sqe;
    use crate::command::fabrics;
    use crate::controller::Behind;
    use crate::discovery::Directory;
    use crate::property;

    fn connect(queue: u16, controller: u16) -> Connect {
        Connect {
            queue,
            entries: 32,
            attributes: 0,
            keep_alive_ms: 0,
            host_id: [1; 16],
            controller,
            subsystem: "nqn.s".into(),
            host: "nqn.h".into(),
        }
    }

    const ENABLED: u32 = property::configuration::ENABLE | property::configuration::ENTRY_SIZES;

    fn enable(subsystem: &mut Subsystem, id: u16) {
        set(subsystem, id, ENABLED);
    }

    fn set(subsystem: &mut Subsystem, id: u16, configuration: u32) {
        let entry = Sqe::fabrics(fabrics::PROPERTY_SET, 1).with(11, property::CC).with(12, configuration);
        let controller = subsystem.controller(id).expect("connected");
        controller.admin((&entry, &[]), "", Behind::Directory(&Directory::default()));
    }

    #[test]
    fn a_queue_joins_its_own_hosts_controller_and_no_other() {
        let mut subsystem = Subsystem::default();
        let nobody = |_, _| false;
        let join = |subsystem: &mut Subsystem, connect: &Connect| {
            subsystem.connect(1, connect, nobody, 0).map_err(|refused| refused.status)
        };
        assert_eq!(join(&mut subsystem, &connect(0, 5)), Err(Status::CONNECT_INVALID));
        let admitted = join(&mut subsystem, &connect(0, ANY_CONTROLLER)).expect("a controller");
        assert_eq!((admitted.controller, admitted.queue), (1, 0));
        assert_eq!(join(&mut subsystem, &connect(1, 1)), Err(Status::SEQUENCE_ERROR), "not enabled yet");
        enable(&mut subsystem, 1);
        assert!(join(&mut subsystem, &connect(1, 1)).is_ok());
        assert_eq!(join(&mut subsystem, &connect(1, 2)), Err(Status::CONNECT_INVALID));
        let stranger = Connect { host_id: [2; 16], ..connect(1, 1) };
        assert_eq!(join(&mut subsystem, &stranger), Err(Status::HOST_ID_INCONSISTENT));
        let other = Connect { subsystem: "nqn.s@monday".into(), ..connect(1, 1) };
        assert_eq!(join(&mut subsystem, &other), Err(Status::CONNECT_INVALID), "the admin queue shows something else");
        assert_eq!(join(&mut subsystem, &Connect { entries: 1, ..connect(1, 1) }), Err(Status::CONNECT_INVALID));
        assert_eq!(join(&mut subsystem, &connect(QUEUES + 1, 1)), Err(Status::CONNECT_INVALID));
        let queue = join(&mut subsystem, &connect(1, 1)).expect("let in");
        assert!(subsystem.is_current(&queue) && subsystem.is_current(&admitted));
        set(&mut subsystem, 1, 0);
        set(&mut subsystem, 1, ENABLED);
        assert!(!subsystem.is_current(&queue) && subsystem.is_current(&admitted), "reset meanwhile");
        assert!(!subsystem.is_current(&Admitted { controller: 9, ..admitted }));
        let twice = subsystem.connect(1, &connect(1, 1), |id, queue| (id, queue) == (1, 1), 0);
        assert_eq!(twice.map_err(|refused| refused.result), Err(42));
    }

    #[test]
    fn numbers_are_not_given_out_again_soon_and_controllers_are_bounded() {
        let mut subsystem = Subsystem::default();
        let join = |subsystem: &mut Subsystem| subsystem.connect(1, &connect(0, ANY_CONTROLLER), |_, _| false, 0);
        let first = join(&mut subsystem).expect("a controller").controller;
        subsystem.remove(first);
        assert_ne!(join(&mut subsystem).expect("a controller").controller, first);
        (1..CONTROLLERS).for_each(|_| assert!(join(&mut subsystem).is_ok()));
        assert_eq!(join(&mut subsystem).map_err(|refused| refused.status), Err(Status::CONNECT_BUSY));
    }
}
