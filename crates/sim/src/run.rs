//! One simulation.

use device::{Completion, Device, Io, IoError, Secret, Submitted};
use ftl::SplitMix64;
use media::PageAddr;
use media::sim::{Cut, SimMedia, SimStore};

use crate::model::{Model, OpId};
use crate::payload;
use crate::plan::Plan;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Data is wrong, lost or torn, or the books do not agree.
    Wrong(String),
    /// A request was never answered, or the device does not come back.
    Stuck(String),
}

/// What a simulation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests answered.
    pub requests: u64,
    /// Power cuts, those during recovery included.
    pub cuts: u64,
    /// Power cuts during recovery.
    pub recovery_cuts: u64,
    /// Things that happened to dies and sectors.
    pub faults: u64,
    /// Sectors that were rebuilt and written elsewhere.
    pub healed: u64,
    /// Sectors that scrubs checked.
    pub scrubbed: u64,
    /// Sectors that were read while their die was out of service.
    pub degraded_reads: u64,
    /// Dies that were replaced.
    pub rebuilds: u64,
    /// LEBs that the groomer freed.
    pub freed_lebs: u64,
    /// Sectors sealed on encrypted formats, each with a nonce of its own.
    pub sealed: u64,
    /// Power cuts on encrypted formats.
    pub sealed_cuts: u64,
    /// FNV-1a over every answer: the same seed must give the same.
    pub hash: u64,
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Report) {
        // Taken apart, so that a figure that is new here cannot be forgotten.
        let Report {
            requests,
            cuts,
            recovery_cuts,
            faults,
            healed,
            scrubbed,
            degraded_reads,
            rebuilds,
            freed_lebs,
            sealed,
            sealed_cuts,
            hash,
        } = other;
        self.requests += requests;
        self.cuts += cuts;
        self.recovery_cuts += recovery_cuts;
        self.faults += faults;
        self.healed += healed;
        self.scrubbed += scrubbed;
        self.degraded_reads += degraded_reads;
        self.rebuilds += rebuilds;
        self.freed_lebs += freed_lebs;
        self.sealed += sealed;
        self.sealed_cuts += sealed_cuts;
        // In order, like the answers of one run.
        self.hash = self.hash.rotate_left(1) ^ hash;
    }
}

/// A request under way.
enum Asked {
    Read { lba: u64, expected: Vec<(OpId, bool)> },
    Change { op: OpId, fua: bool },
    Flush { covers: Vec<OpId> },
}

/// Polls after which a request that was not answered counts as lost.
const PATIENCE: u32 = 400_000;

/// The tag of requests that are waited for.
const CALL: u64 = u64::MAX;

struct Simulation {
    plan: Plan,
    random: SplitMix64,
    cutter: SplitMix64,
    store: SimStore,
    device: Option<Device>,
    model: Model,
    asked: Vec<Option<Asked>>,
    /// Dies that were replaced and may be on their way.
    replaced: Vec<u32>,
    /// What scrubs found wrong.
    scrub_errors: u64,
    /// The backing store may be full at times.
    may_lack_space: bool,
    report: Report,
}

/// Runs the simulation of a seed.
///
/// # Errors
/// The first broken promise.
pub fn run(seed: u64) -> Result<Report, Failure> {
    run_as(seed, false)
}

/// Like [`run`], on an encrypted format whatever the seed says.
///
/// # Errors
/// As [`run`].
pub fn run_encrypted(seed: u64) -> Result<Report, Failure> {
    run_as(seed, true)
}

fn run_as(seed: u64, encrypted: bool) -> Result<Report, Failure> {
    device::seed_entropy(seed);
    device::nonces::watch();
    let mut random = SplitMix64::new(seed);
    let mut plan = Plan::new(&mut random);
    if encrypted {
        plan.encrypt();
    }
    let store = SimStore::new(plan.media_geometry());
    let mut media = SimMedia::new(&store, random.bits(), plan.knobs);
    Device::format_media(&mut media, &plan.format).map_err(|error| Failure::Stuck(format!("format: {error}")))?;
    drop(media);
    let mut simulation = Simulation {
        model: Model::new(plan.format.sectors),
        asked: (0..plan.depth).map(|_| None).collect(),
        replaced: Vec::new(),
        scrub_errors: 0,
        may_lack_space: plan.knobs.no_space > 0,
        cutter: SplitMix64::from_state(random.bits()),
        plan,
        random,
        store,
        device: None,
        report: Report { hash: 0xcbf2_9ce4_8422_2325, ..Report::default() },
    };
    simulation.attach()?;
    simulation.traffic()?;
    simulation.finish()?;
    simulation.check_nonces()?;
    Ok(simulation.report)
}

impl Simulation {
    fn device(&mut self) -> &mut Device {
        self.device.as_mut().expect("attached")
    }

    fn attach(&mut self) -> Result<(), Failure> {
        for _ in 0..50 {
            if self.plan.cut_once_in > 0 && self.random.one_in(4) {
                self.store.cut_at(self.store.commands() + 1 + self.random.below(60));
            }
            self.trouble(10);
            let media = SimMedia::new(&self.store, self.random.bits(), self.plan.knobs);
            let secret = self.plan.format.key.map(|key| Secret::key(&key));
            let attached = Device::on_media_with(Box::new(media), self.plan.flash, secret.as_ref());
            self.check_nonces()?;
            match attached {
                Ok(device) => {
                    self.device = Some(device);
                    return Ok(());
                }
                Err(_) if self.store.is_off() => {
                    self.report.recovery_cuts += 1;
                    self.cut_power();
                }
                // A full backing store is no power cut: it must be able to come back all the same.
                Err(_) if self.plan.knobs.no_space > 0 => self.plan.knobs.no_space = 0,
                Err(error) => return Err(Failure::Wrong(format!("attach: {error}"))),
            }
        }
        Err(Failure::Stuck("fifty attaches in a row were cut".into()))
    }

    /// No sequence number seals two different things, whatever was cut.
    fn check_nonces(&mut self) -> Result<(), Failure> {
        let seen = device::nonces::seen();
        self.report.sealed = seen.sealed;
        match seen.repeated {
            None => Ok(()),
            Some(seq) => Err(Failure::Wrong(format!("sequence number {seq:#x} sealed two different sectors"))),
        }
    }

    fn cut_power(&mut self) {
        self.report.cuts += 1;
        self.report.sealed_cuts += u64::from(self.plan.format.key.is_some());
        self.note_healing();
        self.device = None;
        self.asked.iter_mut().for_each(|asked| *asked = None);
        self.store.switch_off();
        let cut = match self.random.below(4) {
            0 => Cut::LOSE_ALL,
            1 => Cut { whole: 500_000, torn: 300_000, flipped: 100_000 },
            _ => Cut::default(),
        };
        self.store.power_cut_as(&mut self.cutter, &cut);
    }

    fn traffic(&mut self) -> Result<(), Failure> {
        for _ in 0..self.plan.requests {
            if self.plan.cut_once_in > 0 && self.random.one_in(self.plan.cut_once_in) {
                // Now, or in the middle of what comes.
                match self.random.one_in(2) {
                    true => self.store.switch_off(),
                    false => self.store.cut_at(self.store.commands() + 1 + self.random.below(30)),
                }
            }
            if self.store.is_off() {
                self.crash()?;
            }
            if self.plan.detach_once_in > 0 && self.random.one_in(self.plan.detach_once_in) {
                self.clean_detach()?;
            }
            self.trouble(1);
            self.request()?;
            for _ in 0..self.random.below(6) {
                self.poll()?;
            }
            if self.random.one_in(2) {
                self.device().background();
            }
            // What a scrub finds while the power fails says nothing.
            if !self.store.is_off() && self.random.one_in(8) {
                self.scrub_errors = self.scrub_errors.max(self.device().status().scrub_errors);
            }
        }
        Ok(())
    }

    fn note_healing(&mut self) {
        if let Some(status) = self.device.as_ref().map(Device::status) {
            self.report.healed += status.healed_sectors;
            self.report.degraded_reads += status.degraded_reads;
            self.report.scrubbed += status.scrubbed_sectors;
        }
    }

    /// Lets happen to the faulty dies what the plan has for them, `often` times as likely as it says.
    fn trouble(&mut self, often: u64) {
        let geometry = self.plan.media_geometry();
        for faulty in self.plan.faulty.clone() {
            if !self.random.one_in((faulty.once_in / often).max(1)) {
                continue;
            }
            self.report.faults += 1;
            let die = faulty.die;
            if faulty.dies {
                if self.try_rebuild(die) {
                    continue;
                }
                match self.store.failed_dies().contains(&die) {
                    // It comes back with what it held, and must not be believed.
                    true => self.store.revive_die(die),
                    false => self.store.fail_die_at(self.store.commands() + 1 + self.random.below(60), die),
                }
                continue;
            }
            let mut somewhere = |blocks: u32| PageAddr {
                die,
                block: self.random.below(u64::from(blocks)) as u32,
                page: self.random.below(u64::from(geometry.pages_per_block)) as u32,
            };
            let (at, to) = (somewhere(geometry.blocks), somewhere(self.plan.geometry.blocks));
            self.store.astray_only_on(die);
            match self.random.below(8) {
                0 => self.store.fail_page(at),
                1 => self.store.lose_next_program(),
                2 => self.store.misdirect_next_program(to),
                _ => {
                    let byte = self.random.below(u64::from(geometry.page_bytes())) as u32;
                    self.store.rot(at, byte, 1 << self.random.below(8));
                }
            }
        }
    }

    /// Puts a blank die in the place of one that the device knows to be lost; another one may fail once it is rebuilt.
    fn try_rebuild(&mut self, die: u32) -> bool {
        if self.store.is_off() || self.random.one_in(2) {
            return false;
        }
        let Some(device) = &mut self.device else { return false };
        let status = device.status();
        if status.lost_dies.contains(&die) && status.rebuilding_die.is_none() {
            self.store.replace_die(die);
            self.report.rebuilds += u64::from(device.die_replaced(die).is_ok());
            self.replaced.push(die);
            return true;
        }
        // Nobody may hold on to what the die did before it was replaced.
        let rebuilt = !status.lost_dies.contains(&die) && !self.store.may_fail(die);
        if rebuilt && self.replaced.contains(&die) {
            self.replaced.retain(|replaced| *replaced != die);
            let others: Vec<u32> = (0..self.plan.geometry.dies)
                .filter(|other| self.plan.faulty.iter().all(|faulty| faulty.die != *other))
                .collect();
            if !others.is_empty() {
                let other = others[self.random.below(others.len() as u64) as usize];
                self.plan.faulty.iter_mut().filter(|faulty| faulty.die == die).for_each(|faulty| faulty.die = other);
                return true;
            }
        }
        false
    }

    fn crash(&mut self) -> Result<(), Failure> {
        self.cut_power();
        self.attach()?;
        if self.store.is_off() {
            return Ok(());
        }
        let image = match self.read_everything()? {
            Some(image) => image,
            None => return Ok(()),
        };
        let sector = self.plan.geometry.sector_bytes as usize;
        self.model
            .crashed(|lba, op, zero| payload::holds(&image[lba as usize * sector..][..sector], lba, op, zero))
            .map_err(|wrong| Failure::Wrong(format!("after power cut {}: {wrong}", self.report.cuts)))?;
        self.verify()
    }

    fn verify(&mut self) -> Result<(), Failure> {
        self.device().verify().map_err(Failure::Wrong)
    }

    /// The whole device, or `None` when the power failed meanwhile.
    fn read_everything(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let sector = self.plan.geometry.sector_bytes as usize;
        let mut image = Vec::new();
        let mut lba = 0;
        while lba < self.model.len() {
            let count = u64::from(self.plan.largest).min(self.model.len() - lba);
            let buf = vec![0xee; count as usize * sector];
            match self.call(Io::Read { lba, buf })? {
                Some(Ok(buf)) => image.extend(buf.expect("a read gives its buffer")),
                Some(Err(error)) => return Err(Failure::Wrong(format!("read of sector {lba}: {error}"))),
                None => return Ok(None),
            }
            lba += count;
        }
        Ok(Some(image))
    }

    /// One request, waited for; `None` when the power failed.
    fn call(&mut self, io: Io<'_>) -> Result<Option<Answer>, Failure> {
        let tag = CALL;
        let mut io = Some(io);
        for _ in 0..PATIENCE {
            if self.store.is_off() {
                return Ok(None);
            }
            if let Some(request) = io.take() {
                match self.device().submit(tag, request) {
                    Submitted::Done(result) => return Ok((!self.store.is_off()).then_some(result)),
                    Submitted::Pending => {}
                    Submitted::Busy(request) => io = Some(request),
                }
            }
            match self.device().poll() {
                Some(completion) if completion.tag == tag => {
                    return Ok((!self.store.is_off()).then_some(completion.result));
                }
                Some(completion) => self.answer(completion)?,
                None => {}
            }
        }
        Err(Failure::Stuck("a request was never answered".into()))
    }

    fn clean_detach(&mut self) -> Result<(), Failure> {
        for _ in 0..PATIENCE {
            if self.asked.iter().all(Option::is_none) || self.store.is_off() {
                break;
            }
            self.poll()?;
        }
        if self.store.is_off() {
            return self.crash();
        }
        if self.asked.iter().any(Option::is_some) {
            return Err(Failure::Stuck("a request was never answered before a detach".into()));
        }
        self.note_healing();
        let detached = self.device.take().expect("attached").detach();
        if self.store.is_off() {
            return self.crash();
        }
        match detached {
            Ok(()) => {}
            Err(IoError::NoSpace) if self.may_lack_space => {}
            Err(error) => return Err(Failure::Wrong(format!("detach: {error}"))),
        }
        // After a clean detach everything is durable: losing all that no sync covered loses nothing.
        let covered = self.model.flush_covers();
        if detached.is_ok() {
            self.model.flushed(&covered);
        }
        self.crash()
    }

    fn pick(&mut self) -> usize {
        let total: u64 = self.plan.mix.iter().sum();
        let mut at = self.random.below(total);
        self.plan
            .mix
            .iter()
            .position(|weight| {
                let here = at < *weight;
                at = at.saturating_sub(*weight);
                here
            })
            .expect("below the total")
    }

    fn range(&mut self) -> (u64, u64) {
        let count = match self.random.one_in(3) {
            true => 1 + self.random.below(u64::from(self.plan.largest)),
            false => 1,
        };
        let count = count.min(self.plan.span);
        (self.random.below(self.plan.span - count + 1), count)
    }

    fn request(&mut self) -> Result<(), Failure> {
        let Some(free) = self.asked.iter().position(Option::is_none) else { return self.poll() };
        let sector = self.plan.geometry.sector_bytes as usize;
        let fua = self.plan.fua_once_in > 0 && self.random.one_in(self.plan.fua_once_in);
        let (lba, count) = self.range();
        let tag = free as u64;
        match self.pick() {
            0 => {
                let expected = (lba..lba + count).map(|lba| self.model.current(lba));
                let expected = expected.map(|op| (op, self.model.is_zero(op))).collect();
                let buf = vec![0xee; count as usize * sector];
                let submitted = self.device().submit(tag, Io::Read { lba, buf });
                self.submitted(tag, Asked::Read { lba, expected }, owned(submitted))
            }
            1 => {
                let op = self.model.next_op();
                let mut data = vec![0; count as usize * sector];
                for (lba, sector) in (lba..).zip(data.chunks_exact_mut(sector)) {
                    payload::fill(sector, lba, op, false);
                }
                let submitted = owned(self.device().submit(tag, Io::Write { lba, data: &data, fua }));
                self.change(tag, lba, count, fua, false, submitted)
            }
            2 => {
                // Now and then everything at once.
                let (lba, count) = if self.random.one_in(30) { (0, self.model.len()) } else { (lba, count) };
                let submitted = owned(self.device().submit(tag, Io::Trim { lba, count, fua }));
                self.change(tag, lba, count, fua, true, submitted)
            }
            3 => {
                let covers = self.model.flush_covers();
                let submitted = owned(self.device().submit(tag, Io::Flush));
                self.submitted(tag, Asked::Flush { covers }, submitted)
            }
            _ => {
                self.device().idle();
                if self.random.one_in(4) {
                    let on = !self.random.one_in(4);
                    self.device().scrub(on).expect("a device attached for writing");
                }
                Ok(())
            }
        }
    }

    fn change(
        &mut self,
        tag: u64,
        lba: u64,
        count: u64,
        fua: bool,
        zeros: bool,
        submitted: Outcome,
    ) -> Result<(), Failure> {
        if matches!(submitted, Outcome::Busy | Outcome::Done(Err(_))) {
            return self.submitted(tag, Asked::Change { op: 0, fua }, submitted);
        }
        let op = self.model.took(lba, count, zeros);
        self.submitted(tag, Asked::Change { op, fua }, submitted)
    }

    fn submitted(&mut self, tag: u64, asked: Asked, submitted: Outcome) -> Result<(), Failure> {
        match submitted {
            Outcome::Busy => self.poll(),
            Outcome::Pending => {
                self.asked[tag as usize] = Some(asked);
                Ok(())
            }
            Outcome::Done(result) => {
                self.asked[tag as usize] = Some(asked);
                self.answer(Completion { tag, result })
            }
        }
    }

    fn poll(&mut self) -> Result<(), Failure> {
        match self.device().poll() {
            Some(completion) => self.answer(completion),
            None => Ok(()),
        }
    }

    fn answer(&mut self, completion: Completion) -> Result<(), Failure> {
        if completion.tag == CALL {
            // A call given up when the power failed.
            return Ok(());
        }
        let asked = self.asked[completion.tag as usize].take().expect("an answer to something that was asked");
        self.report.requests += 1;
        self.note(completion.tag, completion.result.is_ok());
        if self.store.is_off() {
            return Ok(());
        }
        match (asked, completion.result) {
            (Asked::Read { lba, expected }, Ok(buf)) => {
                let buf = buf.expect("a read gives its buffer");
                let sectors = buf.chunks_exact(self.plan.geometry.sector_bytes as usize);
                for ((lba, (op, zero)), sector) in (lba..).zip(expected).zip(sectors) {
                    if !payload::holds(sector, lba, op, zero) {
                        return Err(Failure::Wrong(format!("read of sector {lba} does not give version {op}")));
                    }
                }
            }
            (Asked::Change { op, fua }, Ok(_)) => self.model.answered(op, fua),
            (Asked::Flush { covers }, Ok(_)) => self.model.flushed(&covers),
            (Asked::Change { .. } | Asked::Flush { .. }, Err(IoError::NoSpace)) if self.may_lack_space => {}
            (_, Err(error)) => return Err(Failure::Wrong(format!("a request failed: {error}"))),
        }
        Ok(())
    }

    fn note(&mut self, tag: u64, ok: bool) {
        for byte in [tag as u8, u8::from(ok), self.store.commands() as u8] {
            self.report.hash = (self.report.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The end: everything asked is answered, and everything is there, now and after a clean detach.
    fn finish(&mut self) -> Result<(), Failure> {
        self.plan.cut_once_in = 0;
        self.plan.knobs.no_space = 0;
        if self.store.is_off() {
            self.crash()?;
        }
        self.report.freed_lebs = self.device().status().erased_lebs;
        self.verify()?;
        self.clean_detach()?;
        self.clean_detach()?;
        if self.scrub_errors > 0 && self.plan.faulty.is_empty() {
            return Err(Failure::Wrong(format!("scrubs found {} things wrong", self.scrub_errors)));
        }
        Ok(())
    }
}

/// How a request ended: a read's buffer, nothing, or why not.
type Answer = Result<Option<Vec<u8>>, IoError>;

/// A [`Submitted`] without the borrowed request.
enum Outcome {
    Done(Answer),
    Pending,
    Busy,
}

fn owned(submitted: Submitted<'_>) -> Outcome {
    match submitted {
        Submitted::Done(result) => Outcome::Done(result),
        Submitted::Pending => Outcome::Pending,
        Submitted::Busy(_) => Outcome::Busy,
    }
}
