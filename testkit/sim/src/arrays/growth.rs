//! Arrays that grow: devices are added in the middle of requests, while all lose power, the service dies, or what is being added goes.

use array::{Condition, Level, MemberState};

use super::member::Node;
use super::plan::MemberPlan;
use super::run::Simulation;
use crate::run::Failure;

impl Simulation {
    /// What may happen to an array that grows, between two requests.
    pub fn grow_on(&mut self) -> Result<(), Failure> {
        let growth = &mut self.plan.growth;
        let kill = growth.kill_once_in > 0 && growth.random.one_in(growth.kill_once_in);
        let grow = growth.devices > 0 && growth.random.one_in(growth.once_in);
        if kill {
            self.die()?;
        }
        if grow {
            self.grow()?;
        }
        if !self.is_growing() {
            return Ok(());
        }
        let being_added = self.array.as_ref().is_some_and(|array| array.places() > array.status().members.len());
        let growth = &mut self.plan.growth;
        if being_added && growth.lose_once_in > 0 && growth.random.one_in(growth.lose_once_in) {
            self.lose_the_new_one()?;
        }
        let growth = &mut self.plan.growth;
        if growth.cut_once_in > 0 && growth.random.one_in(growth.cut_once_in) {
            let store = &self.nodes[growth.random.below(self.nodes.len() as u64) as usize].store;
            store.cut_at(store.commands() + 1 + growth.random.below(40));
        }
        Ok(())
    }

    /// Whether a member is being added, gets what the others have, or stripes are laid out over it.
    fn is_growing(&self) -> bool {
        let Some(array) = &self.array else { return false };
        let status = array.status();
        array.places() > status.members.len()
            || status.reshape_percent.is_some()
            || (self.report.grown > 0 && status.members.contains(&MemberState::Rebuilding))
    }

    /// The service dies. What devices had taken by then they carry out; what stood in queues is lost.
    fn die(&mut self) -> Result<(), Failure> {
        if self.any_off() {
            return Ok(());
        }
        self.report.kills += 1;
        self.forget_array();
        // No two copies are damaged at once.
        self.nodes.iter_mut().for_each(|node| node.unreadable.clear());
        self.nodes.iter_mut().for_each(Node::forget);
        for node in self.nodes.iter_mut().filter(|node| node.device.is_some()) {
            node.settle()?;
        }
        self.assemble()
    }

    /// Adds a device.
    fn grow(&mut self) -> Result<(), Failure> {
        let random = &mut self.plan.growth.random;
        let mut plan = match random.one_in(2) {
            true => self.plan.members[random.below(self.plan.members.len() as u64) as usize].clone(),
            false if self.snapshots.once_in > 0 => MemberPlan::new(random).with_room(),
            false => MemberPlan::new(random),
        };
        plan.format.uuid = uuid::Uuid::from_u128(u128::from(random.bits()) << 64 | u128::from(random.bits()));
        let Some(array) = &mut self.array else { return Ok(()) };
        let known = (array.shape().clone(), array.places(), array.status().events);
        let member = plan.member();
        if array.can_grow(&member).is_err() {
            // What is refused changes nothing.
            let refused = array.grow(member).is_err();
            let same = known == (array.shape().clone(), array.places(), array.status().events);
            let said = "a device that cannot be added changed something".to_owned();
            return if refused && same { Ok(()) } else { Err(Failure::Wrong(said)) };
        }
        let mut node = Node::format(plan, &mut self.plan.growth.random)?;
        node.attach(&mut self.plan.growth.random)?;
        self.nodes.push(node);
        self.in_sync.push(false);
        self.plan.growth.devices -= 1;
        let Some(array) = &mut self.array else { return Ok(()) };
        array.grow(member).map_err(|error| Failure::Wrong(format!("a device that fits is not added: {error}")))
    }

    /// The device that is being added loses power before it is a member: the array goes on without it, unless it is just becoming one.
    fn lose_the_new_one(&mut self) -> Result<(), Failure> {
        let Some(array) = &mut self.array else { return Ok(()) };
        let position = array.places() - 1;
        self.nodes[position].cut(&mut self.plan.growth.random);
        array.lost(position);
        match array.status().condition {
            Condition::Failed => self.begin_anew(),
            _ => self.look_at_members(),
        }
    }

    /// A device that came to nothing as a member is free again; one that is a member stays one.
    pub fn look_at_members(&mut self) -> Result<(), Failure> {
        let Some(array) = &self.array else { return Ok(()) };
        let members = array.status().members.len();
        if members < self.members {
            return Err(Failure::Wrong(format!("an array of {} members has {members}", self.members)));
        }
        self.report.grown += (members - self.members) as u64;
        self.members = members;
        let places = array.places();
        self.report.not_grown += self.nodes.len().saturating_sub(places) as u64;
        self.nodes.truncate(places);
        self.in_sync.truncate(places);
        Ok(())
    }

    /// The array may have become larger, never smaller. What is new holds nothing.
    pub fn look_at_size(&mut self) -> Result<(), Failure> {
        let Some(array) = &self.array else { return Ok(()) };
        let (sectors, known) = (array.sectors(), self.model.len());
        if sectors < known {
            return Err(Failure::Wrong(format!("an array of {known} sectors has {sectors}")));
        }
        if sectors > known {
            self.model.resize(sectors);
            self.report.resizes += 1;
            if self.plan.growth.random.one_in(2) {
                // Requests go on where what is new begins.
                self.plan.first = (known - self.plan.span / 2).min(sectors - self.plan.span);
            }
        }
        if self.plan.shape.level == Level::Raid1 && sectors != self.plan.shape.sectors() {
            return Err(Failure::Wrong("a mirror has another size".into()));
        }
        Ok(())
    }
}
