//! One simulation of an array.

use array::{Array, Condition, Level, Member, MemberState};
use device::Io;
use random::SplitMix64;
use uuid::Uuid;

use super::member::Node;
use super::plan::{MemberPlan, Plan, SECTOR};
use super::requests::Asked;
use super::snapshots::Snapshots;
use crate::model::Model;
use crate::payload;
use crate::run::{Failure, Report};

/// Rounds until something counts as never coming to its end.
const PATIENCE: u32 = 400_000;
/// Tag of a read of everything.
const IMAGE: u64 = u64::MAX - 1;

pub(super) struct Simulation {
    pub plan: Plan,
    pub random: SplitMix64,
    pub uuid: Uuid,
    pub nodes: Vec<Node>,
    pub array: Option<Array>,
    pub model: Model,
    pub snapshots: Snapshots,
    pub asked: Vec<Option<Asked>>,
    pub report: Report,
    /// Members that had everything when the array was last seen.
    pub in_sync: Vec<bool>,
    /// The one whose requests fail now and then.
    flaky: usize,
    /// Members that the array is known to have: it never has fewer again.
    pub members: usize,
    /// Sectors that this array had repaired when it was last looked at.
    repaired: u64,
    /// What the read of everything gave.
    image: Option<Vec<u8>>,
}

/// Runs one seed.
///
/// # Errors
/// A promise was broken.
pub(crate) fn run(seed: u64, with_snapshots: bool) -> Result<Report, Failure> {
    let mut random = SplitMix64::new(seed);
    let snapshots = Snapshots::new(seed, with_snapshots);
    let plan = Plan::new(seed, snapshots.once_in > 0, &mut random);
    let nodes = plan.members.iter().map(|member| Node::format(member.clone(), &mut random));
    let nodes: Vec<Node> = nodes.collect::<Result<_, _>>()?;
    let uuid = Uuid::from_u128(u128::from(random.bits()));
    let mut simulation = Simulation {
        model: Model::new(plan.shape.sectors()),
        snapshots,
        asked: (0..plan.depth).map(|_| None).collect(),
        in_sync: vec![true; nodes.len()],
        members: nodes.len(),
        flaky: random.below(nodes.len() as u64) as usize,
        report: Report { hash: 0xcbf2_9ce4_8422_2325, ..Report::default() },
        uuid,
        nodes,
        array: None,
        random,
        plan,
        repaired: 0,
        image: None,
    };
    simulation.make()?;
    simulation.assemble()?;
    simulation.traffic()?;
    simulation.finish()?;
    Ok(simulation.report)
}

impl Simulation {
    /// Makes the array.
    fn make(&mut self) -> Result<(), Failure> {
        let members: Vec<Member> = self.plan.members.iter().map(MemberPlan::member).collect();
        let superblocks = Array::format(self.uuid, "simulated", &self.plan.shape, &members);
        for (node, superblock) in self.nodes.iter_mut().zip(superblocks) {
            node.attach(&mut self.random)?;
            node.write_superblock(&superblock.encode())?;
        }
        Ok(())
    }

    pub fn any_off(&self) -> bool {
        self.nodes.iter().any(|node| node.store.is_off())
    }

    /// All lose power.
    pub fn cut(&mut self) {
        self.report.cuts += 1;
        self.forget_array();
        for node in &mut self.nodes {
            if node.device.is_some() || node.store.is_off() {
                node.cut(&mut self.random);
            }
        }
    }

    /// The array is no more, and nobody is answered.
    pub fn forget_array(&mut self) {
        if let Some(array) = self.array.take() {
            self.in_sync = array.status().members.iter().map(|state| *state == MemberState::InSync).collect();
            // One that is just being added may be a member, or none.
            self.in_sync.resize(self.nodes.len(), false);
        }
        self.asked.iter_mut().for_each(|asked| *asked = None);
        self.snapshots.forget();
    }

    /// Attaches members and puts the array together, however often the power fails.
    pub fn assemble(&mut self) -> Result<(), Failure> {
        for _ in 0..80 {
            if self.plan.cut_once_in > 0 && self.random.one_in(4) {
                let node = self.random.below(self.nodes.len() as u64) as usize;
                let store = &self.nodes[node].store;
                store.cut_at(store.commands() + 1 + self.random.below(60));
            }
            if self.try_to_assemble()? {
                return Ok(());
            }
            self.cut();
            self.report.recovery_cuts += 1;
        }
        Err(Failure::Stuck("eighty assemblies in a row were cut".into()))
    }

    fn try_to_assemble(&mut self) -> Result<bool, Failure> {
        let mut given: Vec<Option<(Member, Vec<u8>)>> = Vec::new();
        for node in &mut self.nodes {
            if node.device.is_none() && !node.attach(&mut self.random)? {
                return Ok(false);
            }
            let Some(sector) = node.superblock()? else { return Ok(false) };
            given.push(Some((node.plan.member(), sector)));
        }
        self.refuses_what_is_stale(&given)?;
        // A replacement that did not get as far as its superblock is none yet.
        let is_blank = |given: &Option<(Member, Vec<u8>)>| {
            given.as_ref().is_some_and(|(_, sector)| sector.iter().all(|byte| *byte == 0))
        };
        let mut degraded = given.iter().any(is_blank);
        given.iter_mut().filter(|given| is_blank(given)).for_each(|given| *given = None);
        let whole = given.clone();
        if self.plan.shape.level == Level::Raid1 && self.random.one_in(4) {
            // Some of them do not come along; one that has everything does.
            let kept: Vec<usize> = (0..given.len()).filter(|node| self.in_sync[*node]).collect();
            let kept = kept[self.random.below(kept.len() as u64) as usize];
            degraded = true;
            for (position, given) in given.iter_mut().enumerate() {
                if position != kept && self.random.one_in(2) {
                    *given = None;
                }
            }
        }
        let mut was_given: Vec<bool> = given.iter().map(Option::is_some).collect();
        let array = match Array::assemble(self.uuid, &given, degraded, false) {
            Ok(array) => array,
            // A copy that was just about to count does not say so itself yet.
            Err(_) if degraded => {
                was_given = whole.iter().map(Option::is_some).collect();
                Array::assemble(self.uuid, &whole, true, false)
                    .map_err(|damage| Failure::Wrong(format!("not assembled: {damage}")))?
            }
            Err(damage) => {
                let seen = whole.iter().flatten().filter_map(|(_, sector)| array::Superblock::decode(sector, 0).ok());
                let seen: Vec<String> =
                    seen.map(|one| format!("{}: events {} {:?}", one.position, one.events, one.roles)).collect();
                return Err(Failure::Wrong(format!("not assembled: {damage}; {}", seen.join("; "))));
            }
        };
        self.array = Some(array);
        self.repaired = 0;
        for (position, given) in was_given.iter().enumerate() {
            if *given && !self.bring_snapshots(position)? {
                return Ok(false);
            }
        }
        self.look_at_members()?;
        for _ in 0..PATIENCE {
            if self.any_off() {
                return Ok(false);
            }
            match self.array.as_ref().map(Array::is_ready) {
                Some(Ok(true)) => {
                    let moving = self.array.as_ref().is_some_and(|array| array.status().reshape_percent.is_some());
                    self.report.resize_cuts += u64::from(moving);
                    self.report.replayed += self.array.as_ref().map_or(0, |array| array.status().replayed);
                    return self.compare();
                }
                Some(Err(damage)) => return Err(Failure::Wrong(format!("not assembled: {damage}"))),
                _ => self.pump()?,
            }
        }
        Err(Failure::Stuck("an assembly never came to its end".into()))
    }

    /// Members that missed something must not become an array by themselves.
    fn refuses_what_is_stale(&mut self, given: &[Option<(Member, Vec<u8>)>]) -> Result<(), Failure> {
        if self.plan.shape.level != Level::Raid1 || self.in_sync.iter().all(|all| *all) {
            return Ok(());
        }
        let stale: Vec<_> =
            given.iter().zip(&self.in_sync).map(|(given, in_sync)| given.clone().filter(|_| !in_sync)).collect();
        if stale.iter().any(Option::is_some) && Array::assemble(self.uuid, &stale, false, false).is_ok() {
            return Err(Failure::Wrong("members that missed something were taken for an array".into()));
        }
        Ok(())
    }

    /// Everything is what it may be after a crash; false when the power failed meanwhile.
    fn compare(&mut self) -> Result<bool, Failure> {
        let Some(image) = self.read_all()? else { return Ok(false) };
        let crash = self.report.cuts;
        let holds = |lba: u64, op, zero| payload::holds(&image[lba as usize * SECTOR..][..SECTOR], lba, op, zero);
        self.model.crashed(holds).map_err(|wrong| Failure::Wrong(format!("after power cut {crash}: {wrong}")))?;
        if self.snapshots.once_in == 0 {
            return Ok(true);
        }
        // Only one copy may have a snapshot: while all of them are looked at, none refuses anything.
        let refusing = std::mem::take(&mut self.plan.error_once_in);
        let compared = self.compare_snapshots();
        self.plan.error_once_in = refusing;
        compared
    }

    fn read_all(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        self.read_everything(|lba, buf| Io::Read { lba, buf })
    }

    /// Every sector, of the present or of a snapshot; nothing when the power failed meanwhile.
    pub fn read_everything(&mut self, io: impl Fn(u64, Vec<u8>) -> Io<'static>) -> Result<Option<Vec<u8>>, Failure> {
        self.image = None;
        self.look_at_size()?;
        let Some(array) = &mut self.array else { return Ok(None) };
        let buf = vec![0xee; self.model.len() as usize * SECTOR];
        if !matches!(array.submit(IMAGE, io(0, buf)), device::Submitted::Pending) {
            return Err(Failure::Wrong("a read of everything is not taken".into()));
        }
        for _ in 0..PATIENCE {
            if self.any_off() {
                return Ok(None);
            }
            if let Some(image) = self.image.take() {
                // It may have grown meanwhile.
                let is_all = image.len() as u64 == self.model.len() * SECTOR as u64;
                return if is_all { Ok(Some(image)) } else { self.read_everything(io) };
            }
            self.pump()?;
        }
        Err(Failure::Stuck("a read of everything was never answered".into()))
    }

    /// Lets a member do something, and the array hear of it.
    pub fn pump(&mut self) -> Result<(), Failure> {
        let Some(array) = &mut self.array else { return Ok(()) };
        while let Some(command) = array.next_command() {
            self.nodes[command.member].queue.push_back(command);
        }
        let at = self.random.below(self.nodes.len() as u64) as usize;
        let fails = self.plan.error_once_in > 0
            && at == self.flaky
            && array.status().condition == Condition::Healthy
            && self.random.one_in(self.plan.error_once_in);
        let most = self.random.below(5);
        let mut left = u32::from(fails);
        let mut told = self.nodes[at].step(most, |_| std::mem::take(&mut left) > 0);
        if self.snapshots.once_in > 0 {
            told = self.nodes[at].hold_back(told, &mut self.snapshots.random);
        }
        if self.nodes[at].store.is_off() {
            return Ok(());
        }
        self.report.faults += u64::from(fails && left == 0);
        self.snapshots.doubt |= self.snapshots.once_in > 0 && fails && left == 0;
        array.has_room(at, self.nodes[at].device.as_ref().and_then(device::Device::room_left));
        for (tag, outcome) in told {
            array.finish(tag, outcome);
        }
        if self.random.one_in(3) {
            array.background();
        }
        self.look_at_members()?;
        self.look_at_size()?;
        let Some(array) = &mut self.array else { return Ok(()) };
        let repaired = array.status().repaired_sectors;
        self.report.healed += repaired - std::mem::replace(&mut self.repaired, repaired);
        while let Some(completion) = self.array.as_mut().and_then(Array::poll) {
            if completion.tag == IMAGE {
                let Ok(Some(image)) = completion.result else {
                    return Err(Failure::Wrong(format!(
                        "not everything can be read: {:?}, {:?}",
                        completion.result.err(),
                        self.array.as_ref().map(Array::status)
                    )));
                };
                self.image = Some(image);
            } else {
                self.answer(completion)?;
            }
        }
        Ok(())
    }

    fn traffic(&mut self) -> Result<(), Failure> {
        for _ in 0..self.plan.requests {
            if self.plan.cut_once_in > 0 && self.random.one_in(self.plan.cut_once_in) {
                // Now, or in the middle of what comes.
                let node = self.random.below(self.nodes.len() as u64) as usize;
                let store = &self.nodes[node].store;
                match self.random.one_in(2) {
                    true => store.switch_off(),
                    false => store.cut_at(store.commands() + 1 + self.random.below(30)),
                }
            }
            if self.any_off() {
                self.cut();
                self.assemble()?;
            }
            self.grow_on()?;
            self.snapshots_go_on()?;
            if self.plan.lose_once_in > 0 && self.random.one_in(self.plan.lose_once_in) {
                self.lose()?;
            }
            if self.random.one_in(self.plan.return_once_in) {
                self.come_back()?;
            }
            if self.plan.stop_once_in > 0 && self.random.one_in(self.plan.stop_once_in) {
                self.stop()?;
            }
            if self.plan.spoil_once_in > 0 && self.random.one_in(self.plan.spoil_once_in) {
                self.spoil();
            }
            self.request()?;
            for _ in 0..self.random.below(8) {
                if !self.any_off() {
                    self.pump()?;
                }
            }
        }
        Ok(())
    }

    /// A sector of a copy cannot be read any more. All others have it.
    fn spoil(&mut self) {
        if self.array.as_ref().is_none_or(|array| array.status().condition != Condition::Healthy) {
            return;
        }
        let lba = self.plan.first + self.random.below(self.plan.span);
        self.report.unreadable += u64::from(self.nodes[self.flaky].unreadable.insert(lba));
    }

    /// A member loses power alone, or is detached by force.
    fn lose(&mut self) -> Result<(), Failure> {
        let Some(array) = &mut self.array else { return Ok(()) };
        if self.snapshots.doubt && !array.is_idle() {
            return Ok(());
        }
        self.snapshots.doubt = false;
        let states = array.status().members;
        let position = self.random.below(states.len() as u64) as usize;
        let is_whole = |other: usize| states[other] == MemberState::InSync && !array.is_doubted(other);
        let others = (0..states.len()).any(|other| other != position && is_whole(other));
        if self.nodes[position].device.is_none() || (self.plan.shape.level == Level::Raid1 && !others) {
            return Ok(());
        }
        self.report.losses += 1;
        // No two copies are damaged at once.
        self.nodes.iter_mut().for_each(|node| node.unreadable.clear());
        self.nodes[position].cut(&mut self.random);
        array.lost(position);
        if self.plan.shape.level != Level::Raid1 {
            return self.begin_anew();
        }
        Ok(())
    }

    /// It serves nobody without a member: everything is asked in vain, and it is put together anew.
    pub fn begin_anew(&mut self) -> Result<(), Failure> {
        while let Some(completion) = self.array.as_mut().and_then(Array::poll) {
            self.answer(completion)?;
        }
        self.forget_array();
        self.settle_members()?;
        self.nodes.iter_mut().for_each(Node::forget);
        self.assemble()
    }

    /// What members were asked by an array that is no more comes to its end.
    pub fn settle_members(&mut self) -> Result<(), Failure> {
        self.nodes.iter_mut().try_for_each(Node::settle)
    }

    /// A copy that is gone comes back, or another takes its place.
    fn come_back(&mut self) -> Result<(), Failure> {
        let Some(array) = &self.array else { return Ok(()) };
        let states = array.status().members;
        let Some(position) = states.iter().position(|state| *state == MemberState::Missing) else { return Ok(()) };
        // One comes after the other, and not while it still carries out what it was asked before.
        if !array.can_join(position) || self.nodes[position].is_busy() {
            return Ok(());
        }
        let replaced = self.random.one_in(4);
        if replaced {
            // Whatever it was asked before is never answered.
            if let Some(array) = &mut self.array {
                array.lost(position);
            }
            let mut plan = self.nodes[position].plan.clone();
            plan.format.uuid = Uuid::from_u128(u128::from(self.random.bits()));
            self.nodes[position] = Node::format(plan, &mut self.random)?;
        }
        if self.nodes[position].device.is_none() && !self.nodes[position].attach(&mut self.random)? {
            return Ok(());
        }
        let Some(sector) = self.nodes[position].superblock()? else { return Ok(()) };
        let member = self.nodes[position].plan.member();
        let blank = sector.iter().all(|byte| *byte == 0);
        let sector = if blank { None } else { Some(&sector[..]) };
        let Some(array) = &mut self.array else { return Ok(()) };
        match array.join(position, member, sector) {
            Ok(()) => self.report.returns += 1,
            Err(damage) => return Err(Failure::Wrong(format!("a member does not come back: {damage}"))),
        }
        self.bring_snapshots(position).map(drop)
    }

    /// Tells the array of a member's snapshots; false when the power failed meanwhile.
    fn bring_snapshots(&mut self, position: usize) -> Result<bool, Failure> {
        let Some(snapshots) = self.nodes[position].snapshots()? else { return Ok(false) };
        let Some(array) = &mut self.array else { return Ok(false) };
        snapshots.iter().for_each(|(snapshot, sector)| array.brought(position, snapshot, sector));
        Ok(true)
    }

    /// Stops the array and puts it together again; nothing is lost, and nothing is to be copied.
    fn stop(&mut self) -> Result<(), Failure> {
        for _ in 0..PATIENCE {
            if self.any_off() || self.asked.iter().all(Option::is_none) {
                break;
            }
            self.pump()?;
        }
        if self.any_off() {
            self.cut();
            return self.assemble();
        }
        let Some(array) = &mut self.array else { return Ok(()) };
        array.stop();
        for _ in 0..PATIENCE {
            if self.any_off() || self.array.as_ref().is_none_or(Array::is_stopped) {
                break;
            }
            self.pump()?;
        }
        let stopped = !self.any_off() && self.array.as_ref().is_some_and(Array::is_stopped);
        if stopped {
            // Everything is durable: a power cut takes nothing.
            let covers = self.model.flush_covers();
            self.model.flushed(&covers);
        } else if !self.any_off() {
            let status = self.array.as_ref().map(Array::status);
            return Err(Failure::Stuck(format!("an array does not stop: {status:?}")));
        }
        self.cut();
        self.assemble()
    }

    /// The end: everything asked is answered, all members are there, and copies are the same.
    fn finish(&mut self) -> Result<(), Failure> {
        self.plan.cut_once_in = 0;
        self.plan.error_once_in = 0;
        self.plan.growth.devices = 0;
        let mut left_to_read = 20;
        if self.any_off() {
            self.cut();
            self.assemble()?;
        }
        for _ in 0..PATIENCE {
            if self.any_off() {
                // It was to fail a while ago.
                self.cut();
                self.assemble()?;
            }
            self.pump()?;
            let Some(array) = &mut self.array else { break };
            let settled = array.places() == array.status().members.len();
            let idle = array.is_idle() && settled && self.asked.iter().all(Option::is_none);
            match array.status().condition {
                Condition::Healthy if idle && !self.nodes[self.flaky].unreadable.is_empty() && left_to_read > 0 => {
                    // Copies take turns: a few reads ask each of them.
                    left_to_read -= 1;
                    let unreadable: Vec<u64> = self.nodes[self.flaky].unreadable.iter().copied().collect();
                    for lba in unreadable {
                        self.read_one(lba)?;
                    }
                }
                Condition::Healthy if idle => {
                    let left = self.nodes[self.flaky].unreadable.len();
                    if left > 0 {
                        return Err(Failure::Wrong(format!("{left} sectors of a copy were read and not repaired")));
                    }
                    self.same_everywhere()?;
                    self.no_snapshot_is_left_over()?;
                    return self.stop();
                }
                Condition::Degraded => self.come_back()?,
                _ => {}
            }
        }
        let status = self.array.as_ref().map(Array::status);
        let left = self.asked.iter().flatten().count();
        Err(Failure::Stuck(format!("the array does not become healthy: {left} requests open, {status:?}")))
    }

    /// Reads a sector, and waits for the answer and for what follows from it.
    fn read_one(&mut self, lba: u64) -> Result<(), Failure> {
        let Some(array) = &mut self.array else { return Ok(()) };
        self.image = None;
        let submitted = array.submit(IMAGE, Io::Read { lba, buf: vec![0xee; SECTOR] });
        if !matches!(submitted, device::Submitted::Pending) {
            return Err(Failure::Wrong("a read is not taken".into()));
        }
        for _ in 0..PATIENCE {
            let idle = self.array.as_ref().is_none_or(Array::is_idle);
            if self.any_off() || (idle && self.image.is_some()) {
                return Ok(());
            }
            self.pump()?;
        }
        Err(Failure::Stuck("a read was never answered".into()))
    }

    /// Each copy holds the same, and what a read gives.
    fn same_everywhere(&mut self) -> Result<(), Failure> {
        if self.plan.shape.level != Level::Raid1 {
            return Ok(());
        }
        let sectors = self.model.len();
        for position in 0..self.nodes.len() {
            let Some(copy) = self.nodes[position].read(0, sectors)? else { return Ok(()) };
            for (lba, sector) in (0..).zip(copy.chunks_exact(SECTOR)) {
                let op = self.model.current(lba);
                if !payload::holds(sector, lba, op, Model::is_zero(op)) {
                    return Err(Failure::Wrong(format!("copy {position} does not hold version {op} of sector {lba}")));
                }
            }
        }
        self.report.compared += 1;
        Ok(())
    }

    pub fn note(&mut self, byte: u64) {
        self.report.hash = (self.report.hash ^ byte).wrapping_mul(0x0100_0000_01b3);
    }
}
