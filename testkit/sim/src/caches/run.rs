//! One simulation of a cached volume.

use array::{Command, What};
use cache::{BEHIND, CACHE, Condition, Config, Header, Layout, Mode, Volume};
use device::Io;
use random::SplitMix64;

use super::plan::Plan;
use super::requests::Asked;
use crate::arrays::{Node, SECTOR};
use crate::model::{Model, OpId};
use crate::payload;
use crate::run::{Failure, Report};

/// Rounds until something counts as never coming to its end.
const PATIENCE: u32 = 4_000_000;
/// Tag of a read of everything.
const IMAGE: u64 = u64::MAX - 1;
/// Tag of what the simulation itself asks of the cache device.
const OURS: u64 = u64::MAX - 2;
/// What the store behind looks like whenever the volume was stopped.
const WITNESS: [u8; 32] = [7; 32];

/// Whether a flush fails though everything is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    No,
    May,
    /// What was answered is lost.
    Must,
}

pub(super) struct Simulation {
    pub plan: Plan,
    pub random: SplitMix64,
    /// The cache device, and the store behind.
    pub nodes: Vec<Node>,
    pub volume: Option<Volume>,
    pub model: Model,
    /// For each sector the newest version whose change was answered.
    pub answered: Vec<OpId>,
    /// For each sector the versions that it was given since the last crash.
    pub given: Vec<Vec<OpId>>,
    pub asked: Vec<Option<Asked>>,
    pub report: Report,
    /// A member is gone: requests fail.
    pub lost: bool,
    /// Whether the next flush fails, since the store behind went and came back.
    pub owed: Owed,
    image: Option<Vec<u8>>,
}

/// Runs one seed.
///
/// # Errors
/// A promise was broken.
pub(crate) fn run(seed: u64) -> Result<Report, Failure> {
    let mut random = SplitMix64::new(seed);
    let plan = Plan::new(&mut random);
    let nodes = [&plan.cache, &plan.behind].map(|member| Node::format(member.clone(), &mut random));
    let nodes: Vec<Node> = nodes.into_iter().collect::<Result<_, _>>()?;
    let sectors = plan.header.layout.sectors;
    let mut simulation = Simulation {
        model: Model::new(sectors),
        answered: vec![0; sectors as usize],
        given: vec![vec![0]; sectors as usize],
        asked: (0..plan.depth).map(|_| None).collect(),
        report: Report { hash: 0xcbf2_9ce4_8422_2325, ..Report::default() },
        nodes,
        volume: None,
        random,
        plan,
        lost: false,
        owed: Owed::No,
        image: None,
    };
    simulation.make()?;
    simulation.open()?;
    simulation.traffic()?;
    simulation.finish()?;
    Ok(simulation.report)
}

impl Simulation {
    fn header_sector(&self) -> u64 {
        Layout::header(self.plan.header.layout.half, self.plan.number)
    }

    /// Makes the volume.
    fn make(&mut self) -> Result<(), Failure> {
        self.nodes[CACHE].attach(&mut self.random)?;
        self.nodes[BEHIND].attach(&mut self.random)?;
        let (lba, header) = (self.header_sector(), self.plan.header.encode());
        self.nodes[CACHE].write(lba, &header)
    }

    fn any_off(&self) -> bool {
        self.nodes.iter().any(|node| node.store.is_off())
    }

    /// The service is no more; members that lost power, or were to, are cut.
    fn cut(&mut self, which: [bool; 2]) -> Result<(), Failure> {
        self.volume = None;
        self.asked.iter_mut().for_each(|asked| *asked = None);
        for (node, cut) in self.nodes.iter_mut().zip(which) {
            if cut || node.store.is_off() {
                self.report.cuts += 1;
                node.cut(&mut self.random);
            } else {
                node.settle()?;
            }
        }
        // One may have failed while the other one settled.
        for node in self.nodes.iter_mut().filter(|node| node.store.is_off() && node.device.is_some()) {
            self.report.cuts += 1;
            node.cut(&mut self.random);
        }
        Ok(())
    }

    /// Attaches members and opens the volume, however often the power fails.
    fn open(&mut self) -> Result<(), Failure> {
        for _ in 0..80 {
            if self.plan.cut_once_in > 0 && self.random.one_in(4) {
                let node = self.random.below(2) as usize;
                let store = &self.nodes[node].store;
                store.cut_at(store.commands() + 1 + self.random.below(60));
            }
            if self.try_to_open()? {
                return Ok(());
            }
            self.report.recovery_cuts += 1;
            let both = self.random.one_in(2);
            self.cut([both; 2])?;
        }
        Err(Failure::Stuck("eighty attempts in a row were cut".into()))
    }

    fn try_to_open(&mut self) -> Result<bool, Failure> {
        for node in &mut self.nodes {
            if node.device.is_none() && !node.attach(&mut self.random)? {
                return Ok(false);
            }
        }
        let lba = self.header_sector();
        let Some(sector) = self.nodes[CACHE].read(lba, 1)? else { return Ok(false) };
        let mut header = match Header::decode(&sector) {
            Ok(Some(header)) => header,
            other => return Err(Failure::Wrong(format!("no header: {other:?}"))),
        };
        if self.random.one_in(4) {
            header.mode = Mode::ALL[self.random.below(3) as usize];
        }
        let changed = header.witness.is_some_and(|witness| witness != WITNESS);
        if let Some(device) = &mut self.nodes[CACHE].device {
            device.set_evictable(header.layout.half);
            device.set_quotas(&self.plan.quotas());
        }
        let Plan { number, max_request, room, dirty_limit, looks_at_once, .. } = self.plan;
        let config = Config { header, number, max_request, room, dirty_limit, changed, looks_at_once };
        self.volume = Some(Volume::open(config));
        (self.lost, self.owed) = (false, Owed::No);
        for _ in 0..PATIENCE {
            if self.any_off() {
                return Ok(false);
            }
            match self.volume.as_ref().map(Volume::is_ready) {
                Some(Ok(true)) => return self.compare(),
                Some(Err(failure)) => return Err(Failure::Wrong(format!("not opened: {failure}"))),
                _ => self.pump()?,
            }
        }
        Err(Failure::Stuck("a volume was never opened".into()))
    }

    /// Everything is what it may be after a crash; false when the power failed meanwhile.
    fn compare(&mut self) -> Result<bool, Failure> {
        let Some(image) = self.read_all()? else { return Ok(false) };
        let crash = self.report.cuts;
        let holds = |lba: u64, op, zero| payload::holds(&image[lba as usize * SECTOR..][..SECTOR], lba, op, zero);
        self.model.crashed(holds).map_err(|wrong| Failure::Wrong(format!("after power cut {crash}: {wrong}")))?;
        self.answered = (0..self.model.len()).map(|lba| self.model.current(lba)).collect();
        self.given = self.answered.iter().map(|version| vec![*version]).collect();
        self.report.dropped += self.volume.as_ref().map_or(0, |volume| volume.status().dropped_regions);
        Ok(true)
    }

    fn read_all(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(volume) = &mut self.volume else { return Ok(None) };
        self.image = None;
        let buf = vec![0xee; self.model.len() as usize * SECTOR];
        if !matches!(volume.submit(IMAGE, Io::Read { lba: 0, buf }), device::Submitted::Pending) {
            return Err(Failure::Wrong("a read of everything is not taken".into()));
        }
        for _ in 0..PATIENCE {
            if self.any_off() {
                return Ok(None);
            }
            if let Some(image) = self.image.take() {
                return Ok(Some(image));
            }
            self.pump()?;
        }
        Err(Failure::Stuck("a read of everything was never answered".into()))
    }

    /// Lets a member do something, and the volume hear of it.
    pub fn pump(&mut self) -> Result<(), Failure> {
        let Some(volume) = &mut self.volume else { return Ok(()) };
        while let Some(command) = volume.next_command() {
            self.nodes[command.member].queue.push_back(command);
        }
        let at = self.random.below(2) as usize;
        let most = self.random.below(5);
        let told = self.nodes[at].step(most, |_| false);
        if self.random.one_in(16) {
            self.nodes[at].tidy();
        }
        if self.nodes[at].store.is_off() {
            return Ok(());
        }
        for (tag, outcome) in told {
            volume.finish(tag, outcome);
        }
        while let Some(completion) = self.volume.as_mut().and_then(Volume::poll) {
            if completion.tag == IMAGE {
                let Ok(Some(image)) = completion.result else {
                    return Err(Failure::Wrong("not everything can be read".into()));
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
                let node = self.random.below(2) as usize;
                let store = &self.nodes[node].store;
                match self.random.one_in(2) {
                    true => store.switch_off(),
                    false => store.cut_at(store.commands() + 1 + self.random.below(30)),
                }
            }
            if self.any_off() {
                let alone = self.random.one_in(2);
                self.reopen([!alone; 2])?;
            }
            if self.plan.lose_once_in > 0 && self.random.one_in(self.plan.lose_once_in) {
                self.lose()?;
            }
            if self.plan.kill_once_in > 0 && self.random.one_in(self.plan.kill_once_in) {
                self.report.kills += 1;
                self.reopen([false; 2])?;
            }
            if self.plan.stop_once_in > 0 && self.random.one_in(self.plan.stop_once_in) {
                self.stop()?;
            }
            if self.plan.evict_once_in > 0 && self.random.one_in(self.plan.evict_once_in) {
                self.evict();
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

    fn reopen(&mut self, cut: [bool; 2]) -> Result<(), Failure> {
        self.gather();
        self.cut(cut)?;
        self.open()
    }

    /// What a volume counted that is no more.
    fn gather(&mut self) {
        let Some(status) = self.volume.as_ref().map(Volume::status) else { return };
        self.report.hits += status.hit_sectors;
        self.report.fills += status.filled_sectors;
        self.report.written_back += status.written_back_sectors;
        let device = self.nodes[CACHE].device.as_ref();
        self.report.evicted += device.map_or(0, device::Device::evicted_sectors);
    }

    /// The groomer loses copies whenever it likes.
    fn evict(&mut self) {
        let layout = self.plan.header.layout;
        let count = 1 + self.random.below(self.plan.span);
        let sector = self.plan.first + self.random.below(self.plan.span - count + 1);
        let what = What::Zeroes { lba: layout.clean(sector), count, fua: false };
        self.nodes[CACHE].queue.push_back(Command { member: CACHE, tag: OURS, what });
    }

    /// A member loses power alone; for a while the volume goes on without it.
    fn lose(&mut self) -> Result<(), Failure> {
        let Some(volume) = &mut self.volume else { return Ok(()) };
        let member = self.random.below(2) as usize;
        self.report.losses += 1;
        self.report.cuts += 1;
        self.nodes[member].cut(&mut self.random);
        self.lost = true;
        volume.lost(member);
        for _ in 0..self.random.below(60) {
            let other = &self.nodes[1 - member];
            if other.store.is_off() {
                break;
            }
            self.pump_one(1 - member)?;
        }
        if member == BEHIND && self.random.one_in(2) && self.comes_back()? {
            return Ok(());
        }
        self.reopen([false; 2])
    }

    /// The store behind comes back to a volume that serves, and may go again meanwhile. False when the power failed.
    fn comes_back(&mut self) -> Result<bool, Failure> {
        loop {
            if self.any_off() || !self.nodes[BEHIND].attach(&mut self.random)? {
                return Ok(false);
            }
            let Some(volume) = &mut self.volume else { return Ok(false) };
            if !volume.behind_returns() {
                return Err(Failure::Wrong(format!("nobody waits for the store behind: {:?}", volume.status())));
            }
            let goes_after = if self.random.one_in(3) { self.random.below(60) } else { u64::MAX };
            let mut rounds = 0;
            while self.volume.as_ref().is_some_and(|volume| volume.status().condition != Condition::Healthy) {
                if self.any_off() {
                    return Ok(false);
                }
                rounds += 1;
                if rounds > u64::from(PATIENCE) {
                    return Err(Failure::Stuck("the store behind is back, and never served".into()));
                }
                if rounds > goes_after {
                    break;
                }
                self.request()?;
                self.pump()?;
            }
            if rounds <= goes_after {
                return self.is_back();
            }
            self.report.losses += 1;
            self.report.cuts += 1;
            self.nodes[BEHIND].cut(&mut self.random);
            self.volume.iter_mut().for_each(|volume| volume.lost(BEHIND));
            for _ in 0..self.random.below(20) {
                if !self.nodes[CACHE].store.is_off() {
                    self.pump_one(CACHE)?;
                }
            }
            // Having got as far as that, it waits again.
            while self.volume.as_ref().is_some_and(|volume| volume.status().condition != Condition::Alone) {
                if self.nodes[CACHE].store.is_off() {
                    return Ok(false);
                }
                self.pump_one(CACHE)?;
            }
        }
    }

    /// What was answered and is lost is what a flush now speaks of.
    fn is_back(&mut self) -> Result<bool, Failure> {
        self.report.returns += 1;
        for _ in 0..PATIENCE {
            if self.any_off() {
                return Ok(false);
            }
            if self.asked.iter().all(Option::is_none) {
                break;
            }
            self.pump()?;
        }
        let answered = std::mem::take(&mut self.answered);
        if !self.compare()? {
            self.answered = answered;
            return Ok(false);
        }
        let less = answered.iter().zip(&self.answered).any(|(before, now)| now < before);
        self.owed = if less { Owed::Must } else { Owed::May };
        self.lost = false;
        Ok(true)
    }

    fn pump_one(&mut self, member: usize) -> Result<(), Failure> {
        let Some(volume) = &mut self.volume else { return Ok(()) };
        while let Some(command) = volume.next_command() {
            self.nodes[command.member].queue.push_back(command);
        }
        let told = self.nodes[member].step(4, |_| false);
        if self.nodes[member].store.is_off() {
            return Ok(());
        }
        for (tag, outcome) in told {
            volume.finish(tag, outcome);
        }
        while let Some(completion) = self.volume.as_mut().and_then(Volume::poll) {
            self.answer(completion)?;
        }
        Ok(())
    }

    /// Stops the volume and opens it again; nothing is lost.
    fn stop(&mut self) -> Result<(), Failure> {
        for _ in 0..PATIENCE {
            if self.any_off() || self.asked.iter().all(Option::is_none) {
                break;
            }
            self.pump()?;
        }
        if let Some(volume) = self.volume.as_mut().filter(|_| !self.nodes.iter().any(|node| node.store.is_off())) {
            volume.stop();
            for _ in 0..PATIENCE {
                self.volume.iter_mut().for_each(|volume| volume.say_goodbye(Some(WITNESS)));
                if self.any_off() || self.volume.as_ref().is_none_or(Volume::is_stopped) {
                    break;
                }
                self.pump()?;
            }
        }
        let status = self.volume.as_ref().map(Volume::status);
        let condition = status.map(|status| status.condition);
        if !self.any_off() && condition != Some(Condition::Stopped) {
            return Err(Failure::Stuck(format!("a volume does not stop: {status:?}")));
        }
        if !self.any_off() {
            // Everything is durable: a power cut takes nothing, and no copy is dropped.
            let covers = self.model.flush_covers();
            self.model.flushed(&covers);
            let dropped = self.report.dropped;
            self.gather();
            let which = [self.random.one_in(2), self.random.one_in(2)];
            self.cut(which)?;
            self.plan.cut_once_in += 1 << 40;
            let opened = self.try_to_open();
            self.plan.cut_once_in -= 1 << 40;
            if !opened? {
                return self.reopen([false; 2]);
            }
            if self.report.dropped != dropped {
                return Err(Failure::Wrong("copies were dropped after a stop in good order".into()));
            }
            return Ok(());
        }
        self.reopen([false; 2])
    }

    /// The end: everything asked is answered, and all of it stands behind.
    fn finish(&mut self) -> Result<(), Failure> {
        self.plan.cut_once_in = 0;
        for _ in 0..PATIENCE {
            if self.any_off() {
                // It was to fail a while ago.
                self.reopen([false; 2])?;
            }
            self.pump()?;
            let Some(volume) = &mut self.volume else { break };
            if !self.asked.iter().all(Option::is_none) {
                continue;
            }
            volume.write_back();
            if volume.is_idle() && volume.status().dirty_sectors == 0 {
                self.stop()?;
                // The power may have failed meanwhile, and brought back what was let go.
                if self.volume.as_ref().is_some_and(|volume| volume.status().dirty_sectors == 0) {
                    return self.all_is_behind();
                }
            }
        }
        let status = self.volume.as_ref().map(Volume::status);
        let left = self.asked.iter().flatten().count();
        Err(Failure::Stuck(format!("not everything is written behind: {left} requests open, {status:?}")))
    }

    fn all_is_behind(&mut self) -> Result<(), Failure> {
        let Some(image) = self.nodes[BEHIND].read(0, self.model.len())? else { return Ok(()) };
        for (lba, sector) in (0..).zip(image.chunks_exact(SECTOR)) {
            let op = self.model.current(lba);
            if !payload::holds(sector, lba, op, Model::is_zero(op)) {
                return Err(Failure::Wrong(format!("version {op} of sector {lba} does not stand behind")));
            }
        }
        self.report.compared += 1;
        Ok(())
    }

    pub fn note(&mut self, byte: u64) {
        self.report.hash = (self.report.hash ^ byte).wrapping_mul(0x0100_0000_01b3);
    }
}
