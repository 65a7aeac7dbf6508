//! Devices on objects: hosts that come, die, wake up again and take over from each other, on one store that misbehaves.
//!
//! What is checked: with the journal, everything that was flushed is there, and all else as a whole or not at all. After a take-over the device
//! holds exactly what the log held below the mark that the store's anchor had then. A host that was taken over from is fenced as soon as it writes
//! an anchor, and changes nothing that the new owner reads. And the store itself watches that no anchor names what is not there, that nothing is
//! deleted that the anchor names, and that marks, commits and owners only grow.
//!
//! With [`Wish::leases`](crate::Wish::leases) the device has a lease besides, and a host stands by: see [`standby`].

mod history;
mod host;
mod plan;
mod price;
mod standby;

use std::collections::HashSet;

use device::{Device, Durability, Io, IoError, Setting, Submitted};
use media::object::sim::{Bucket, Knobs};
use media::object::{Anchor, AnchorId, Claim, Limits};
use random::SplitMix64;

use crate::run::PATIENCE;
use crate::{Failure, Report, payload};
use history::History;
use host::{Attached, Host};
use plan::ObjectsPlan;
use price::Priced;
use standby::{LeasePlan, StandBy};

/// How often a read may fail once the store answers everything.
const READ_TRIES: u32 = 3;

/// How long a write may wait for a store that says nothing, milliseconds: until the cut under way is given up, and what was in front of that.
const SILENCE_MS: u64 = 45_000;

/// A bound on what only the journal may have that nothing reaches.
const WIDE: u64 = 1 << 30;

/// A zombie is given so many rounds in which to notice that it was taken over from.
const ROUNDS: u32 = 4000;

struct Simulation {
    plan: ObjectsPlan,
    random: SplitMix64,
    bucket: Bucket,
    /// The owner.
    host: Host,
    /// Owners before that are not dead: they went on for a while, and may write again.
    zombies: Vec<Host>,
    history: History,
    /// Flushes under way: tag, and how many changes were made before.
    flushes: Vec<(u64, usize)>,
    /// The log's end when it was last looked at.
    log_end: u64,
    tag: u64,
    report: Report,
    /// Flushes wait for the store.
    remote: bool,
    /// The device has a lease.
    leases: Option<LeasePlan>,
    /// Whoever stands by.
    standby: Option<StandBy>,
    /// What it may replace.
    lapsed: Option<AnchorId>,
    /// A client's request is under way, which may be given up for a take-over.
    on_duty: bool,
}

/// Runs the simulation of a seed.
///
/// # Errors
/// The first broken promise.
pub fn run(seed: u64, leases: bool) -> Result<Report, Failure> {
    let mut random = SplitMix64::new(seed);
    let mut plan = ObjectsPlan::new(&mut random);
    let leases = leases.then(|| LeasePlan::new(&mut random));
    if let Some(leases) = &leases {
        plan.limits.lease_ms = leases.lease_ms;
    }
    plan.priced = Priced::new(seed);
    let bucket = Bucket::new(random.bits(), plan.store);
    let mut host = Host::new(&plan, "host 1", random.bits());
    let standby = leases.as_ref().map(|_| StandBy::new(&bucket, &mut random));
    if leases.is_some() {
        host.rate = standby::rate(&mut random);
    }
    host.create(&plan, &bucket)?;
    let mut simulation = Simulation {
        history: History::new(plan.format.sectors),
        random,
        bucket,
        host,
        zombies: Vec::new(),
        flushes: Vec::new(),
        log_end: 0,
        tag: 0,
        report: Report { hash: 0xcbf2_9ce4_8422_2325, ..Report::default() },
        plan,
        remote: seed % 5 == 2,
        leases,
        standby,
        lapsed: None,
        on_duty: false,
    };
    simulation.attach(Claim::Own)?;
    for _ in 0..simulation.plan.requests {
        simulation.step()?;
        simulation.watch()?;
    }
    simulation.finish()?;
    let (commits, deleted) = simulation.bucket.counts();
    simulation.report.object_commits = commits;
    simulation.report.objects_deleted = deleted;
    Ok(simulation.report)
}

/// The plan of a seed, for people.
pub fn describe(seed: u64) -> String {
    format!("{:?}", ObjectsPlan::new(&mut SplitMix64::new(seed)))
}

impl Simulation {
    fn wrong<T>(&self, what: impl Into<String>) -> Result<T, Failure> {
        Err(Failure::Wrong(format!("{} (of {})", what.into(), self.host.name)))
    }

    fn watch(&self) -> Result<(), Failure> {
        self.bucket.broken().map_or(Ok(()), |what| Err(Failure::Wrong(format!("the store: {what}"))))
    }

    /// Attaches the owner-to-be, again and again while the power fails or the store does not answer.
    ///
    /// Gives the anchor that it claimed the device with first: the state that it found.
    fn attach(&mut self, mut how: Claim) -> Result<Anchor, Failure> {
        let mut first = None;
        for _ in 0..60 {
            let seed = self.random.bits();
            if self.plan.cut_once_in > 0 && self.random.one_in(5) {
                let disk = &self.host.disk;
                disk.cut_at(disk.commands() + 1 + self.random.below(60));
            }
            let attached = self.host.attach(&self.plan, &self.bucket, how, seed)?;
            self.watch()?;
            match attached {
                Attached::Yes(anchor) => {
                    self.choose_durability()?;
                    return Ok(first.unwrap_or(*anchor));
                }
                Attached::Claimed(anchor) => {
                    first.get_or_insert(*anchor);
                    how = Claim::Own;
                    self.report.recovery_cuts += 1;
                    self.cut_disk();
                }
                Attached::Unanswered => self.bucket.pass(20_000),
                Attached::Renewed => return self.wrong("a claim of a lapsed device that nobody made"),
            }
        }
        Err(Failure::Stuck("sixty attaches in a row came to nothing".into()))
    }

    /// In every fifth seed flushes wait for the store.
    fn choose_durability(&mut self) -> Result<(), Failure> {
        if !self.remote || self.device().settings().durability == Some(Durability::Remote) {
            return Ok(());
        }
        match self.device().set(&[Setting::Durability(Durability::Remote)]) {
            Err(error) if !self.host.disk.is_off() => self.wrong(format!("flushes cannot wait for the store: {error}")),
            _ => Ok(()),
        }
    }

    /// A flush was answered.
    fn flushed(&mut self, covers: usize) {
        match self.remote {
            true => self.history.flushed_remote(covers),
            false => self.history.flushed(covers),
        }
    }

    fn cut_disk(&mut self) {
        self.report.cuts += 1;
        self.host.cut(&mut self.random);
    }

    fn step(&mut self) -> Result<(), Failure> {
        let plan = &self.plan;
        let once_in = |random: &mut SplitMix64, often: u64| often > 0 && random.one_in(often);
        if once_in(&mut self.random, plan.cut_once_in) {
            match self.random.one_in(2) {
                true => self.host.disk.switch_off(),
                false => self.host.disk.cut_at(self.host.disk.commands() + 1 + self.random.below(30)),
            }
        }
        if self.host.disk.is_off() {
            return self.crash();
        }
        if once_in(&mut self.random, self.plan.loss_once_in) {
            return self.take_over();
        }
        if once_in(&mut self.random, self.plan.move_once_in) {
            return self.move_on();
        }
        if self.leases.is_some() && self.stand_by()? {
            return Ok(());
        }
        self.on_duty = self.standby.is_some();
        let requested = self.request();
        self.on_duty = false;
        requested?;
        for _ in 0..self.random.below(8) {
            self.poll()?;
        }
        self.bucket.pass(self.random.below(self.plan.pace_ms));
        if !self.zombies.is_empty() && self.random.one_in(2) {
            let at = self.random.below(self.zombies.len() as u64) as usize;
            self.zombies[at].wander(&mut self.random, self.plan.format.sectors)?;
        }
        Ok(())
    }

    fn device(&mut self) -> &mut Device {
        self.host.device.as_mut().expect("attached")
    }

    fn poll(&mut self) -> Result<(), Failure> {
        if let Some(done) = self.device().poll()
            && let Some(at) = self.flushes.iter().position(|(tag, _)| *tag == done.tag)
        {
            let (_, covers) = self.flushes.swap_remove(at);
            match done.result {
                Ok(_) => self.flushed(covers),
                Err(_) if self.host.disk.is_off() => {}
                Err(error) => return self.wrong(format!("a flush failed: {error}")),
            }
            self.report.requests += 1;
        }
        self.check_spent()?;
        let log_end = self.device().log_end();
        let Some(standing) = self.device().objects() else { return self.wrong("there is no store behind it") };
        if standing.fence.is_some() {
            return self.wrong("the owner says that it is fenced");
        }
        if standing.remote > standing.durable || standing.durable > log_end {
            return self
                .wrong(format!("the store is at {:#x}, and the journal at {:#x}", standing.remote, standing.durable));
        }
        Ok(())
    }

    /// Submits, and polls while the device is busy. `None` when the power failed.
    fn submit<'a>(&mut self, mut make: impl FnMut() -> Io<'a>) -> Result<Option<Submitted<'a>>, Failure> {
        let tag = self.tag;
        for _ in 0..PATIENCE {
            if self.host.disk.is_off() {
                return Ok(None);
            }
            match self.device().submit(tag, make()) {
                Submitted::Busy(_) => {}
                other => return Ok(Some(other)),
            }
            self.poll()?;
            self.device().wait();
            self.bucket.pass(1);
            // It waits for a lease, and whoever stands by may be faster.
            if self.on_duty {
                self.lapsed = self.standby.as_mut().and_then(StandBy::look);
            }
            if self.on_duty && self.lapsed.is_some() {
                return Ok(Some(Submitted::Busy(make())));
            }
        }
        self.bucket.set_knobs(Knobs::default());
        Err(Failure::Stuck("the device stays busy".into()))
    }

    fn write(&mut self, lba: u64, count: u64) -> Result<(), Failure> {
        let sector = self.plan.geometry.sector_bytes as usize;
        let op = self.history.next();
        let mut data = vec![0; count as usize * sector];
        for (at, bytes) in (lba..).zip(data.chunks_exact_mut(sector)) {
            payload::fill(bytes, at, op, false);
        }
        match self.submit(|| Io::Write { lba, data: &data, fua: false })? {
            None => self.history.took(lba, count, false, u64::MAX),
            Some(Submitted::Busy(_) | Submitted::Done(Err(IoError::Full))) => {}
            Some(Submitted::Done(Err(_))) if self.host.disk.is_off() => self.history.took(lba, count, false, u64::MAX),
            Some(Submitted::Done(Err(error))) => return self.wrong(format!("a write failed: {error}")),
            Some(_) => {
                let end = self.device().log_end();
                self.log_end = end;
                self.history.took(lba, count, false, end);
            }
        }
        Ok(())
    }

    fn request(&mut self) -> Result<(), Failure> {
        self.tag += 1;
        let (span, largest) = (self.plan.span, self.plan.largest);
        let lba = self.random.below(span);
        let count = (1 + self.random.below(largest)).min(self.plan.format.sectors - lba);
        match self.random.below(20) {
            0..10 => self.write(lba, count)?,
            10..12 => match self.submit(|| Io::Trim { lba, count, fua: false })? {
                None => self.history.took(lba, count, true, u64::MAX),
                Some(Submitted::Busy(_)) => {}
                Some(Submitted::Done(Err(error))) if !self.host.disk.is_off() => {
                    return self.wrong(format!("a trim failed: {error}"));
                }
                Some(_) => {
                    let end = self.device().log_end();
                    self.history.took(lba, count, true, end);
                }
            },
            12..15 => {
                let covers = self.history.len();
                match self.submit(|| Io::Flush)? {
                    Some(Submitted::Pending) => self.flushes.push((self.tag, covers)),
                    Some(Submitted::Done(Ok(_))) => self.flushed(covers),
                    _ => {}
                }
            }
            15..18 => {
                if let Some(found) = self.read(lba, count)? {
                    self.compare(lba, &found)?;
                }
            }
            _ => {
                self.device().idle();
            }
        }
        self.report.requests += 1;
        Ok(())
    }

    /// Reads, and waits for it. `None` when the power failed.
    fn read(&mut self, lba: u64, count: u64) -> Result<Option<Vec<u8>>, Failure> {
        self.tag += 1;
        let tag = self.tag;
        let bytes = count as usize * self.plan.geometry.sector_bytes as usize;
        let answer = match self.submit(|| Io::Read { lba, buf: vec![0xee; bytes] })? {
            None | Some(Submitted::Busy(_)) => return Ok(None),
            Some(Submitted::Done(result)) => result,
            Some(_) => 'answered: {
                for _ in 0..PATIENCE {
                    while let Some(done) = self.device().poll() {
                        if done.tag == tag {
                            break 'answered done.result;
                        }
                        if let Some(at) = self.flushes.iter().position(|(tag, _)| *tag == done.tag) {
                            let (_, covers) = self.flushes.swap_remove(at);
                            if done.result.is_ok() {
                                self.flushed(covers);
                            }
                        }
                    }
                    if self.host.disk.is_off() {
                        return Ok(None);
                    }
                    self.device().wait();
                    self.bucket.pass(1);
                }
                return Err(Failure::Stuck("a read is not answered".into()));
            }
        };
        match answer {
            Ok(buf) => Ok(buf),
            Err(_) if self.host.disk.is_off() => Ok(None),
            // The store may have been silent for longer than a read has patience.
            Err(_) if self.plan.store.hangs > 0 => {
                self.report.refused += 1;
                Ok(None)
            }
            Err(error) => self.wrong(format!("a read of sector {lba} failed: {error}")),
        }
    }

    fn compare(&self, lba: u64, found: &[u8]) -> Result<(), Failure> {
        let sector = self.plan.geometry.sector_bytes as usize;
        for (at, bytes) in (lba..).zip(found.chunks_exact(sector)) {
            let op = self.history.current(at);
            if !payload::holds(bytes, at, op, op == 0) {
                return self.wrong(format!("sector {at} does not hold what change {op} put there"));
            }
        }
        Ok(())
    }

    /// The whole device. `None` when the power failed.
    fn read_all(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let (mut image, mut lba, mut tries) = (Vec::new(), 0, 0);
        while lba < self.plan.format.sectors {
            let count = self.plan.largest.min(self.plan.format.sectors - lba);
            match self.read(lba, count)? {
                Some(bytes) => image.extend(bytes),
                None if self.host.disk.is_off() => return Ok(None),
                // The store answers from now on, so a read that fails again has no excuse.
                None if tries < READ_TRIES => {
                    self.bucket.set_knobs(Knobs::default());
                    tries += 1;
                    continue;
                }
                None => return self.wrong(format!("a read of sector {lba} fails, and the store answers")),
            }
            (lba, tries) = (lba + count, 0);
        }
        Ok(Some(image))
    }

    /// The power failed, and the journal is there.
    fn crash(&mut self) -> Result<(), Failure> {
        self.flushes.clear();
        self.cut_disk();
        let found = self.attach(Claim::Own)?;
        self.settle(found.mark)
    }

    /// The power failed before what the last crash left was looked at.
    fn crash_again(&mut self, mark: u64) -> Result<(), Failure> {
        self.flushes.clear();
        self.cut_disk();
        self.attach(Claim::Own)?;
        self.settle(mark)
    }

    /// Whatever a crash left is what counts from now on, if it may be so. What lies below `mark` must be there.
    fn settle(&mut self, mark: u64) -> Result<(), Failure> {
        // What the first attach behind the crash found is the same as what later ones do, where the store has it.
        let begin = ((self.log_end >> ftl::EPOCH_SHIFT) + 1) << ftl::EPOCH_SHIFT;
        let Some(image) = self.read_all()? else { return self.crash_again(mark) };
        let sector = self.plan.geometry.sector_bytes as usize;
        let holds = |lba: u64, op: u64| payload::holds(&image[lba as usize * sector..][..sector], lba, op, op == 0);
        if let Err(what) = self.history.crashed(mark, begin, holds) {
            return self.wrong(format!("after power cut {}: {what}", self.report.cuts));
        }
        self.verify()
    }

    fn verify(&mut self) -> Result<(), Failure> {
        self.log_end = self.device().log_end();
        let found = self.device().verify();
        found.or_else(|what| self.wrong(what))
    }

    /// Whoever stands by looks at the store, and the owner sleeps now and then. Gives whether the device was taken over.
    fn stand_by(&mut self) -> Result<bool, Failure> {
        let Some(LeasePlan { lease_ms, sleep_once_in, hang_once_in }) = self.leases.clone() else { return Ok(false) };
        if self.random.one_in(hang_once_in) {
            self.bucket.hang(self.random.below(3 * lease_ms));
        }
        if self.random.one_in(sleep_once_in) {
            self.report.sleeps += 1;
            let span = self.random.below(3 * lease_ms);
            let mut left = span;
            while left > 0 && self.lapsed.is_none() {
                let step = left.min(1 + self.random.below(lease_ms / 8));
                self.bucket.pass(step);
                left -= step;
                self.lapsed = self.standby.as_mut().and_then(StandBy::look);
            }
        }
        let seen = self.standby.as_mut().and_then(StandBy::look);
        match self.lapsed.take().or(seen) {
            Some(id) => self.fail_over(id),
            None => Ok(false),
        }
    }

    /// The lease is over: the host that stands by takes the device over, if the owner has not written meanwhile.
    fn fail_over(&mut self, id: AnchorId) -> Result<bool, Failure> {
        let rate = self.standby.as_ref().map_or(1000, |standby| standby.rate);
        let name = format!("heir {}", self.report.lapses + 1);
        let mut next = Host::new(&self.plan, &name, self.random.bits());
        next.rate = rate;
        for _ in 0..60 {
            let seed = self.random.bits();
            let attached = next.attach(&self.plan, &self.bucket, Claim::Lapsed(id), seed)?;
            self.watch()?;
            match attached {
                Attached::Yes(anchor) => {
                    self.report.lapses += 1;
                    self.flushes.clear();
                    let mut old = std::mem::replace(&mut self.host, next);
                    old.silenced = true;
                    // It wakes up before the heir has done anything.
                    for _ in 0..4 {
                        old.wander(&mut self.random, self.plan.format.sectors)?;
                    }
                    self.zombies.push(old);
                    self.standby = Some(StandBy::new(&self.bucket, &mut self.random));
                    self.arrived(&anchor)?;
                    self.choose_durability()?;
                    return Ok(true);
                }
                Attached::Renewed => {
                    self.report.renewed += 1;
                    return Ok(false);
                }
                // Nobody cuts the power of this host's disk.
                Attached::Claimed(_) => return self.wrong("an heir lost its power"),
                Attached::Unanswered => self.bucket.pass(20_000),
            }
        }
        Err(Failure::Stuck("sixty take-overs in a row came to nothing".into()))
    }

    /// Another host takes the device over; the owner is dead, or goes on without knowing it.
    fn take_over(&mut self) -> Result<(), Failure> {
        let mut next = Host::new(&self.plan, &format!("host {}", self.report.take_overs + 2), self.random.bits());
        next.rate = self.host.rate;
        self.flushes.clear();
        let mut old = std::mem::replace(&mut self.host, next);
        self.report.take_overs += 1;
        if self.random.one_in(3) {
            old.disk.switch_off();
            old.device = None;
        } else {
            self.zombies.push(old);
        }
        let anchor = self.attach(Claim::TakeOver)?;
        self.arrived(&anchor)
    }

    /// Compares what a host finds that took the device with what the log held below the mark.
    fn arrived(&mut self, anchor: &Anchor) -> Result<(), Failure> {
        let Some(image) = self.read_all()? else {
            self.cut_disk();
            self.attach(Claim::Own)?;
            return self.arrived(anchor);
        };
        let mark = if anchor.released { u64::MAX } else { anchor.mark };
        if self.history.remote > mark {
            let flushed = self.history.remote;
            return self
                .wrong(format!("a flush was answered up to {flushed:#x}, and the store has the log up to {mark:#x}"));
        }
        let all: Vec<String> = if self.plan.format.sectors < 4000 {
            (0..self.plan.format.sectors).map(|lba| self.history.of(lba)).collect()
        } else {
            Vec::new()
        };
        self.history.cut_back(mark);
        let sector = self.plan.geometry.sector_bytes as usize;
        for (lba, bytes) in (0..).zip(image.chunks_exact(sector)) {
            let op = self.history.current(lba);
            if !payload::holds(bytes, lba, op, op == 0) {
                let found = (0..=self.history.next()).find(|op| payload::holds(bytes, lba, *op, *op == 0));
                let why = format!(
                    "behind a take-over at {mark:#x} sector {lba} holds change {found:?}, not {op}; before: {}",
                    all[lba as usize]
                );
                return self.wrong(why);
            }
        }
        self.history.begin_again(anchor.mark);
        self.verify()
    }

    /// The owner detaches, and it or another host attaches.
    fn move_on(&mut self) -> Result<(), Failure> {
        self.flushes.clear();
        let Some(device) = self.host.device.take() else { return Ok(()) };
        let all = self.history.len();
        let left = device.detach_and_release(600_000);
        if self.host.disk.is_off() {
            return self.crash();
        }
        self.report.moves += 1;
        self.history.flushed(all);
        match left {
            Err(error) => return self.wrong(format!("it could not be detached: {error}")),
            Ok(true) if self.random.one_in(2) => {
                let mut next = Host::new(&self.plan, &format!("mover {}", self.report.moves), self.random.bits());
                next.rate = self.host.rate;
                self.host = next;
                let anchor = self.attach(Claim::Released)?;
                return self.arrived(&Anchor { released: true, ..anchor });
            }
            Ok(_) => {}
        }
        self.attach(Claim::Own)?;
        self.settle(u64::MAX)
    }

    /// Whether everything is in the journal, and nothing bounds what only the journal may have.
    fn is_all_here(&self) -> bool {
        let (report, limits) = (&self.report, &self.plan.limits);
        let moved = report.take_overs + report.moves + report.lapses > 0;
        !moved
            && !self.remote
            && self.leases.is_none()
            && limits.behind_bytes == WIDE
            && (limits.behind_ms, limits.local_bytes) == (0, 0)
    }

    /// The store says nothing for an hour, and somebody writes the device over and over: it waits for the store a moment, and then no more.
    fn silence(&mut self) -> Result<(), Failure> {
        let (sectors, largest) = (self.plan.format.sectors, self.plan.largest);
        let (mut lba, mut longest) = (0, 0);
        for number in 0..3 * sectors.div_ceil(largest) {
            if number == sectors.div_ceil(largest) / 2 {
                self.bucket.hang(3_600_000);
            }
            self.tag += 1;
            let before = self.bucket.now_ms();
            self.write(lba, largest.min(sectors - lba))?;
            if self.host.disk.is_off() {
                return self.crash();
            }
            longest = longest.max(self.bucket.now_ms() - before);
            lba = (lba + largest) % sectors;
        }
        self.bucket.set_knobs(Knobs { latency_ms: 20, ..Knobs::default() });
        match longest > SILENCE_MS {
            true => self.wrong(format!("a write waited {longest} ms for a store that says nothing")),
            false => self.rest(),
        }
    }

    /// Where no owner died and nothing was done behind its back, the store has no object that the anchor neither needs nor calls garbage.
    fn no_orphans(&self) -> Result<(), Failure> {
        let (report, store) = (&self.report, &self.plan.store);
        if report.cuts + report.take_overs + report.lapses > 0 || store.delayed + store.doubled > 0 {
            return Ok(());
        }
        self.bucket.pass(120_000);
        let Some(anchor) = self.bucket.anchor() else { return self.wrong("there is no anchor") };
        let known = anchor.objects().chain(anchor.garbage.iter().map(|garbage| garbage.id));
        let known: HashSet<String> = known.map(|id| id.name(&anchor.device)).collect();
        match self.bucket.names().into_iter().find(|name| !known.contains(name)) {
            Some(name) => self.wrong(format!("the object {name} is an orphan")),
            None => Ok(()),
        }
    }

    /// The store behaves at last: everything gets there, every zombie learns its lot, and the device is what it should be.
    fn finish(&mut self) -> Result<(), Failure> {
        self.bucket.set_knobs(Knobs { latency_ms: 20, ..Knobs::default() });
        self.bucket.pass(120_000);
        if self.host.disk.is_off() {
            self.crash()?;
        }
        for mut zombie in std::mem::take(&mut self.zombies) {
            for _ in 0..ROUNDS {
                if zombie.is_fenced() || zombie.disk.is_off() {
                    break;
                }
                zombie.wander(&mut self.random, self.plan.format.sectors)?;
                self.bucket.pass(20);
            }
            self.watch()?;
            if zombie.disk.is_off() {
                continue;
            }
            match zombie.is_fenced() {
                true => self.report.fenced += 1,
                false => {
                    return Err(Failure::Wrong(format!("{} does not notice that it was taken over from", zombie.name)));
                }
            }
            if zombie.takes_anything() {
                return Err(Failure::Wrong(format!("{} is fenced and takes requests", zombie.name)));
            }
        }
        self.rest()?;
        if self.is_all_here() && !self.host.disk.is_off() {
            self.silence()?;
        }
        loop {
            let Some(image) = self.read_all()? else {
                self.crash()?;
                continue;
            };
            self.compare(0, &image)?;
            break;
        }
        let Some(device) = self.host.device.take() else { return Ok(()) };
        match device.detach_and_release(600_000) {
            Ok(true) => self.no_orphans()?,
            _ if self.host.disk.is_off() => {}
            Ok(false) => return Err(Failure::Stuck("the store has not got everything".into())),
            Err(error) => return self.wrong(format!("it could not be detached: {error}")),
        }
        self.watch()
    }
}

/// Limits that a seed draws: mostly tight, since that is where things go wrong.
fn limits(random: &mut SplitMix64, leb_bytes: u64) -> Limits {
    Limits {
        behind_bytes: if random.one_in(3) { leb_bytes * (2 + random.below(6)) } else { WIDE },
        behind_ms: if random.one_in(6) { 30_000 } else { 0 },
        local_bytes: if random.one_in(2) { leb_bytes * random.below(8) } else { 0 },
        grace_ms: random.below(3) * 5000,
        commit_ms: 1 + random.below(400),
        lease_ms: 0,
    }
}
