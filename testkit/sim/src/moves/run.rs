//! One simulation of moves.

use std::collections::BTreeSet;
use std::ops::Range;

use array::{MoveCondition, Mover, SOURCE, TARGET, What};
use device::BatchOp;
use random::SplitMix64;

use super::requests::{Asked, Mix};
use crate::arrays::{MemberPlan, Node, SECTOR};
use crate::model::Model;
use crate::payload;
use crate::run::{Failure, Report};

/// Rounds until something counts as never coming to its end.
const PATIENCE: u32 = 400_000;

pub(super) struct Simulation {
    pub random: SplitMix64,
    pub nodes: Vec<Node>,
    /// The node that counts: what the service remembers.
    place: usize,
    /// Gone when the service is.
    pub mover: Option<Mover>,
    pub model: Model,
    pub mix: Mix,
    pub asked: Vec<Option<Asked>>,
    /// Sectors of changes that the device refused: what they hold is not known any more.
    pub doubtful: BTreeSet<u64>,
    pub report: Report,
    /// Both lose power once in so many requests; 0 for never.
    cut_once_in: u64,
    /// The new device is lost once in so many requests; 0 for never.
    lose_once_in: u64,
    /// The old device refuses a change once in so many rounds; 0 for never.
    refuse_once_in: u64,
}

/// Runs one seed.
///
/// # Errors
/// A promise was broken.
pub(crate) fn run(seed: u64) -> Result<Report, Failure> {
    let mut random = SplitMix64::new(seed);
    let mut plans = [MemberPlan::new(&mut random), MemberPlan::new(&mut random)];
    let sectors = plans.iter().map(|plan| plan.format.sectors).min().expect("two");
    plans.iter_mut().for_each(|plan| plan.format.sectors = sectors);
    let largest = plans.iter().map(|plan| plan.format.max_request_bytes).min().expect("two") / SECTOR as u32;
    let nodes = plans.into_iter().map(|plan| Node::format(plan, &mut random)).collect::<Result<_, _>>()?;
    let rarely = |random: &mut SplitMix64, never: u64, least: u64, more: u64| {
        if random.one_in(never) { 0 } else { least + random.below(more) }
    };
    let depth = 1 + random.below(12) as usize;
    let mut simulation = Simulation {
        model: Model::new(sectors),
        mix: Mix::new(&mut random, sectors, u64::from(largest)),
        asked: (0..depth).map(|_| None).collect(),
        doubtful: BTreeSet::new(),
        report: Report { hash: 0xcbf2_9ce4_8422_2325, ..Report::default() },
        nodes,
        place: 0,
        mover: None,
        cut_once_in: rarely(&mut random, 3, 20, 400),
        lose_once_in: rarely(&mut random, 2, 50, 500),
        refuse_once_in: rarely(&mut random, 2, 20, 600),
        random,
    };
    simulation.start()?;
    let requests = 150 + simulation.random.below(900);
    for _ in 0..requests {
        simulation.round()?;
    }
    simulation.finish()?;
    Ok(simulation.report)
}

impl Simulation {
    /// The node that stands for a device of the move.
    fn node(&self, member: usize) -> usize {
        if member == SOURCE { self.place } else { 1 - self.place }
    }

    fn any_off(&self) -> bool {
        self.nodes.iter().any(|node| node.store.is_off())
    }

    fn new_mover(&self) -> Mover {
        let largest = self.mix.largest as u32 * SECTOR as u32;
        Mover::new(self.model.len(), SECTOR as u32, largest)
    }

    /// The service starts: attaches both devices, however often the power fails, and begins to move the one that counts.
    fn start(&mut self) -> Result<(), Failure> {
        for _ in 0..80 {
            if self.cut_once_in > 0 && self.random.one_in(4) {
                let store = &self.nodes[self.random.below(2) as usize].store;
                store.cut_at(store.commands() + 1 + self.random.below(60));
            }
            if self.try_to_start()? {
                self.mover = Some(self.new_mover());
                return Ok(());
            }
            self.cut();
            self.report.recovery_cuts += 1;
        }
        Err(Failure::Stuck("eighty starts in a row were cut".into()))
    }

    fn try_to_start(&mut self) -> Result<bool, Failure> {
        for node in &mut self.nodes {
            if node.device.is_none() && !node.attach(&mut self.random)? {
                return Ok(false);
            }
        }
        let sectors = self.model.len();
        let Some(image) = self.nodes[self.place].read(0, sectors)? else { return Ok(false) };
        let crash = self.report.cuts;
        let holds = |lba: u64, op, zero| payload::holds(&image[lba as usize * SECTOR..][..SECTOR], lba, op, zero);
        self.model.crashed(holds).map_err(|wrong| Failure::Wrong(format!("after power cut {crash}: {wrong}")))?;
        self.doubtful.clear();
        Ok(true)
    }

    /// Both lose power; the service is gone.
    fn cut(&mut self) {
        self.report.cuts += 1;
        self.mover = None;
        self.asked.iter_mut().for_each(|asked| *asked = None);
        for node in &mut self.nodes {
            if node.device.is_some() || node.store.is_off() {
                node.cut(&mut self.random);
            }
        }
    }

    fn round(&mut self) -> Result<(), Failure> {
        if self.cut_once_in > 0 && self.random.one_in(self.cut_once_in) {
            let store = &self.nodes[self.random.below(2) as usize].store;
            match self.random.one_in(2) {
                true => store.switch_off(),
                false => store.cut_at(store.commands() + 1 + self.random.below(30)),
            }
        }
        if self.any_off() {
            self.cut();
            self.start()?;
        }
        if self.lose_once_in > 0 && self.random.one_in(self.lose_once_in) {
            self.lose_target()?;
        }
        match self.condition() {
            Some(MoveCondition::InSync) if self.random.one_in(8) => self.hand_over(false)?,
            Some(MoveCondition::Failed(_)) if self.random.one_in(20) => self.begin_anew()?,
            _ => {}
        }
        self.request()?;
        for _ in 0..self.random.below(8) {
            if !self.any_off() {
                self.pump()?;
            }
        }
        Ok(())
    }

    fn condition(&self) -> Option<MoveCondition> {
        self.mover.as_ref().map(|mover| mover.status().condition)
    }

    /// The new device loses power alone, or is detached by force.
    fn lose_target(&mut self) -> Result<(), Failure> {
        let target = self.node(TARGET);
        self.report.losses += 1;
        self.nodes[target].cut(&mut self.random);
        if let Some(mover) = &mut self.mover {
            mover.lost();
        }
        if !self.nodes[target].attach(&mut self.random)? {
            return Err(Failure::Wrong("the new device does not attach".into()));
        }
        Ok(())
    }

    /// The move came to nothing: what is under way comes to its end, and another one begins.
    fn begin_anew(&mut self) -> Result<(), Failure> {
        if self.wait_until(|mover| mover.is_idle())? && !self.nodes[self.node(TARGET)].is_busy() {
            self.mover = Some(self.new_mover());
        }
        Ok(())
    }

    /// Waits; false where the power fails meanwhile.
    fn wait_until(&mut self, done: impl Fn(&Mover) -> bool) -> Result<bool, Failure> {
        for _ in 0..PATIENCE {
            if self.any_off() {
                return Ok(false);
            }
            if self.mover.as_ref().is_some_and(&done) {
                return Ok(true);
            }
            self.pump()?;
        }
        let status = self.mover.as_ref().map(Mover::status);
        Err(Failure::Stuck(format!("something is never done: {status:?}")))
    }

    /// The new device takes the old one's place, unless the move is ended just then.
    fn hand_over(&mut self, surely: bool) -> Result<(), Failure> {
        if let Some(mover) = &mut self.mover {
            mover.settle();
        }
        let has_settled = |mover: &Mover| mover.status().condition != MoveCondition::Settling;
        if !self.wait_until(has_settled)? || self.condition() != Some(MoveCondition::Settled) {
            return Ok(());
        }
        if !surely && self.random.one_in(5) {
            if let Some(mover) = &mut self.mover {
                mover.release();
            }
            return Ok(());
        }
        let (source, target, sectors) = (self.node(SOURCE), self.node(TARGET), self.model.len());
        let Some(old) = self.nodes[source].read(0, sectors)? else { return Ok(()) };
        let Some(new) = self.nodes[target].read(0, sectors)? else { return Ok(()) };
        let differs = old.chunks_exact(SECTOR).zip(new.chunks_exact(SECTOR)).position(|(old, new)| old != new);
        if let Some(lba) = differs {
            return Err(Failure::Wrong(format!("both devices are to hold the same, and differ in sector {lba}")));
        }
        self.report.compared += 1;
        // Everything was made durable on both.
        let covers = self.model.flush_covers();
        self.model.flushed(&covers);
        if self.random.one_in(4) {
            // Killed before the service has noted the new place, or behind that.
            self.place = if self.random.one_in(2) { self.place } else { 1 - self.place };
            self.cut();
            return self.start();
        }
        self.place = 1 - self.place;
        self.report.moved += 1;
        self.mover = Some(self.new_mover());
        Ok(())
    }

    /// Lets a device do something, and the move hear of it.
    pub fn pump(&mut self) -> Result<(), Failure> {
        let Some(mover) = &mut self.mover else { return Ok(()) };
        while let Some(command) = mover.next_command() {
            let node = if command.member == SOURCE { self.place } else { 1 - self.place };
            self.nodes[node].queue.push_back(command);
        }
        let at = self.random.below(2) as usize;
        let refuses = self.refuse_once_in > 0 && at == self.place && self.random.one_in(self.refuse_once_in);
        let mut left = u32::from(refuses);
        let doubtful = &mut self.doubtful;
        let refuse = |what: &What| {
            let one = |lba: u64, count: u64| std::iter::once(lba..lba + count).collect();
            let changed: Vec<Range<u64>> = match what {
                What::Write { lba, part, .. } => one(*lba, (part.len() / SECTOR) as u64),
                What::Zeroes { lba, count, .. } => one(*lba, *count),
                What::Batch { ops, .. } => ops.iter().map(BatchOp::sectors).collect(),
                What::Read { .. } | What::ReadSnapshot { .. } | What::Flush | What::Extent { .. } => return false,
                What::Snapshot(_) => return false,
            };
            let refused = std::mem::take(&mut left) > 0;
            if refused {
                doubtful.extend(changed.into_iter().flatten());
            }
            refused
        };
        let told = self.nodes[at].step(self.random.below(5), refuse);
        if self.nodes[at].store.is_off() {
            return Ok(());
        }
        self.report.faults += u64::from(refuses && left == 0);
        for (tag, outcome) in told {
            mover.finish(tag, outcome);
        }
        if self.random.one_in(3) {
            mover.background();
        }
        if self.random.one_in(40) {
            self.nodes[at].tidy();
        }
        while let Some(completion) = self.mover.as_mut().and_then(Mover::poll) {
            self.answer(completion)?;
        }
        Ok(())
    }

    /// The end: a last move comes to its end.
    fn finish(&mut self) -> Result<(), Failure> {
        (self.cut_once_in, self.refuse_once_in) = (0, 0);
        for _ in 0..PATIENCE {
            if self.any_off() {
                // It was to fail a while ago.
                self.cut();
                self.start()?;
            }
            match self.condition() {
                Some(MoveCondition::Failed(_)) => self.begin_anew()?,
                Some(MoveCondition::InSync) => {
                    let before = self.report.compared;
                    self.hand_over(true)?;
                    if self.report.compared > before {
                        return Ok(());
                    }
                }
                _ => {}
            }
            self.pump()?;
        }
        let status = self.mover.as_ref().map(Mover::status);
        Err(Failure::Stuck(format!("the move does not come to its end: {status:?}")))
    }

    pub fn note(&mut self, byte: u64) {
        self.report.hash = (self.report.hash ^ byte).wrapping_mul(0x0100_0000_01b3);
    }
}
