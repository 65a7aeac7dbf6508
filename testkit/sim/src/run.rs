//! One simulation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use device::{Device, Io, IoError, Secret, Submitted};
use media::sim::{Cut, Knobs, SimMedia, SimStore};
use random::SplitMix64;

use crate::model::Model;
use crate::mortal::Mortal;
use crate::payload;
use crate::plan::{Plan, Wish};
use crate::requests::{Answer, Asked};
use crate::resizes::Pending;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Data is wrong, lost or torn, or the books do not agree.
    Wrong(String),
    /// A request was never answered, or the device does not come back.
    Stuck(String),
    /// Something panicked.
    Crash(String),
}

impl Failure {
    /// Does something in which a panic is a failure like others.
    pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let what = panic.downcast_ref::<String>().cloned();
            let what = what.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Failure::Crash(what.unwrap_or_default()))
        })
    }

    /// With something said about it.
    pub(crate) fn map(self, say: impl FnOnce(String) -> String) -> Failure {
        match self {
            Failure::Wrong(what) => Failure::Wrong(say(what)),
            Failure::Stuck(what) => Failure::Stuck(say(what)),
            Failure::Crash(what) => Failure::Crash(say(what)),
        }
    }
}

/// What a simulation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests answered.
    pub requests: u64,
    /// Requests that were refused because the raw space of a sparse address space was full.
    pub full: u64,
    /// Batches taken or refused.
    pub batches: u64,
    /// Snapshots made.
    pub snapshots: u64,
    /// Snapshots rolled back to.
    pub roll_backs: u64,
    /// Other sizes that the device was given.
    pub resizes: u64,
    /// Attaches while it was about to get one.
    pub resize_cuts: u64,
    /// Clones made.
    pub clones: u64,
    /// Clones promoted.
    pub promoted: u64,
    /// Comparisons of two snapshots, or one with the present.
    pub diffs: u64,
    /// Power cuts, those during recovery included.
    pub cuts: u64,
    /// Power cuts during recovery.
    pub recovery_cuts: u64,
    /// Deaths of the process, those during recovery included.
    pub kills: u64,
    /// Deaths of the process during recovery.
    pub recovery_kills: u64,
    /// Pages that it left and that were written back.
    pub left_pages: u64,
    /// Syncs that began while another one was under way.
    pub overlapping_syncs: u64,
    /// Things that happened to dies and sectors.
    pub faults: u64,
    /// Dies that failed as a whole.
    pub die_losses: u64,
    /// Sectors that could not be read, where more was damaged than redundancy makes up for.
    pub unreadable: u64,
    /// Sectors of which an array said that they hold nothing.
    pub holes: u64,
    /// Attaches refused for that reason.
    pub refused: u64,
    /// Sectors that were rebuilt and written elsewhere.
    pub healed: u64,
    /// Sectors that scrubs checked.
    pub scrubbed: u64,
    /// Sectors that were read while their die was out of service.
    pub degraded_reads: u64,
    /// Dies that were replaced.
    pub rebuilds: u64,
    /// Superblock copies that rotted, went blank or turned out never to have been written.
    pub spoilt_labels: u64,
    /// LEBs that the groomer freed.
    pub freed_lebs: u64,
    /// Sectors sealed on encrypted formats, each with a nonce of its own.
    pub sealed: u64,
    /// Power cuts on encrypted formats.
    pub sealed_cuts: u64,
    /// Hosts that took a device on objects over from another.
    pub take_overs: u64,
    /// Hosts that noticed that they were taken over from.
    pub fenced: u64,
    /// Detaches of such a device that released it.
    pub moves: u64,
    /// Hosts that stood by and took a device over whose lease was over.
    pub lapses: u64,
    /// Such hosts that were too late, because the owner had renewed its lease.
    pub renewed: u64,
    /// Owners that slept for a while.
    pub sleeps: u64,
    /// Anchors in the store.
    pub object_commits: u64,
    /// Objects that were deleted.
    pub objects_deleted: u64,
    /// LEBs that were collected by price, in the attaches that came to their end.
    pub collected: u64,
    /// Devices that were moved to another one.
    pub moved: u64,
    /// Members of arrays, or new devices of moves, that were lost by themselves.
    pub losses: u64,
    /// Members that came back, or were replaced.
    pub returns: u64,
    /// Members that were added to arrays.
    pub grown: u64,
    /// Devices that were about to be, and were not.
    pub not_grown: u64,
    /// Times that the copies of a mirror, or a cached volume and the store behind, were compared at the end.
    pub compared: u64,
    /// Sectors read that a cache had.
    pub hits: u64,
    /// Sectors copied into a cache.
    pub fills: u64,
    /// Sectors that a cache wrote behind.
    pub written_back: u64,
    /// Regions whose copies a cache dropped.
    pub dropped: u64,
    /// Copies that the groomer of a cache left behind.
    pub evicted: u64,
    /// Records of intent logs that assemblies carried out.
    pub replayed: u64,
    /// FNV-1a over every answer: the same seed must give the same.
    pub hash: u64,
    /// A hash of what stands on the medium at the end, with [`Wish::digest`].
    pub state: u64,
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Report) {
        // Taken apart, so that a figure that is new here cannot be forgotten.
        let Report {
            requests,
            batches,
            snapshots,
            roll_backs,
            clones,
            promoted,
            diffs,
            resizes,
            resize_cuts,
            full,
            cuts,
            recovery_cuts,
            kills,
            recovery_kills,
            left_pages,
            overlapping_syncs,
            faults,
            die_losses,
            unreadable,
            holes,
            refused,
            healed,
            scrubbed,
            degraded_reads,
            rebuilds,
            spoilt_labels,
            freed_lebs,
            sealed,
            sealed_cuts,
            take_overs,
            fenced,
            moves,
            lapses,
            renewed,
            sleeps,
            object_commits,
            objects_deleted,
            collected,
            losses,
            moved,
            returns,
            grown,
            not_grown,
            compared,
            hits,
            fills,
            written_back,
            dropped,
            evicted,
            replayed,
            hash,
            state,
        } = other;
        self.requests += requests;
        self.batches += batches;
        self.snapshots += snapshots;
        self.roll_backs += roll_backs;
        self.clones += clones;
        self.promoted += promoted;
        self.diffs += diffs;
        self.resizes += resizes;
        self.resize_cuts += resize_cuts;
        self.full += full;
        self.cuts += cuts;
        self.recovery_cuts += recovery_cuts;
        self.kills += kills;
        self.recovery_kills += recovery_kills;
        self.left_pages += left_pages;
        self.overlapping_syncs += overlapping_syncs;
        self.faults += faults;
        self.die_losses += die_losses;
        self.unreadable += unreadable;
        self.holes += holes;
        self.refused += refused;
        self.healed += healed;
        self.scrubbed += scrubbed;
        self.degraded_reads += degraded_reads;
        self.rebuilds += rebuilds;
        self.spoilt_labels += spoilt_labels;
        self.freed_lebs += freed_lebs;
        self.sealed += sealed;
        self.sealed_cuts += sealed_cuts;
        self.take_overs += take_overs;
        self.fenced += fenced;
        self.moves += moves;
        self.lapses += lapses;
        self.renewed += renewed;
        self.sleeps += sleeps;
        self.object_commits += object_commits;
        self.objects_deleted += objects_deleted;
        self.collected += collected;
        self.losses += losses;
        self.moved += moved;
        self.returns += returns;
        self.grown += grown;
        self.not_grown += not_grown;
        self.compared += compared;
        self.hits += hits;
        self.fills += fills;
        self.written_back += written_back;
        self.dropped += dropped;
        self.evicted += evicted;
        self.replayed += replayed;
        // In whatever order seeds come to their end.
        self.hash = self.hash.wrapping_add(hash);
        self.state = self.state.wrapping_add(state);
    }
}

/// Polls after which a request that was not answered counts as lost.
pub(crate) const PATIENCE: u32 = 400_000;

/// The tag of requests that are waited for.
pub(crate) const CALL: u64 = u64::MAX;

pub(crate) struct Simulation {
    pub plan: Plan,
    pub random: SplitMix64,
    cutter: SplitMix64,
    /// What dies, and what outlives it.
    pub(crate) mortal: Mortal,
    pub store: SimStore,
    /// `None` once an attach was refused because of what was damaged beyond redundancy.
    pub device: Option<Device>,
    pub model: Model,
    pub asked: Vec<Option<Asked>>,
    /// A size that the device may have by now.
    pub(crate) pending_size: Option<Pending>,
    /// LEBs that it has for sure.
    pub sure_blocks: u32,
    /// The sector behind the last read.
    pub read_up_to: u64,
    /// Dies that were replaced and may be on their way.
    pub replaced: Vec<u32>,
    /// What scrubs found wrong.
    scrub_errors: u64,
    /// A superblock copy may be bad, and was not written anew since: the other one must not go too.
    pub label_is_bad: bool,
    /// The backing store may be full at times.
    pub may_lack_space: bool,
    /// More may be damaged than redundancy makes up for.
    pub may_be_unreadable: bool,
    pub report: Report,
}

/// Runs the simulation of a seed.
///
/// # Errors
/// The first broken promise.
pub fn run(seed: u64, wish: &Wish) -> Result<Report, Failure> {
    if wish.objects {
        return crate::objects::run(seed, wish.leases);
    }
    if wish.moves {
        return crate::moves::run(seed);
    }
    if wish.caches {
        return crate::caches::run(seed);
    }
    if wish.zones {
        return crate::zones::run(seed);
    }
    if wish.arrays {
        return crate::arrays::run(seed, wish.snapshots);
    }
    device::seed_entropy(seed);
    device::nonces::watch();
    let mut random = SplitMix64::new(seed);
    let plan = Plan::new(&mut random, wish);
    let store = SimStore::new(plan.media_geometry());
    let mut media = SimMedia::new(&store, random.bits(), Knobs { label_error: 0, ..plan.knobs });
    Device::format_media(&mut media, &plan.format).map_err(|error| Failure::Stuck(format!("format: {error}")))?;
    drop(media);
    let mut simulation = Simulation {
        model: Model::new(plan.format.sectors),
        asked: (0..plan.depth).map(|_| None).collect(),
        pending_size: None,
        sure_blocks: plan.geometry.blocks,
        read_up_to: 0,
        replaced: Vec::new(),
        scrub_errors: 0,
        label_is_bad: false,
        may_lack_space: plan.knobs.no_space > 0,
        may_be_unreadable: plan.beyond > 0,
        cutter: SplitMix64::from_state(random.bits()),
        mortal: Mortal::new(plan.kills, plan.format.uuid.as_u128() as u64),
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
    simulation.report.overlapping_syncs = simulation.store.overlapping_syncs();
    if wish.digest {
        simulation.report.state = simulation.store.digest();
    }
    Ok(simulation.report)
}

impl Simulation {
    pub fn device(&mut self) -> &mut Device {
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
            let (media, staging) = self.mortal.attach(media, &self.store);
            let attached = Device::on_media_staged(media, self.plan.flash, secret.as_ref(), staging);
            self.check_nonces()?;
            match attached {
                Ok(device) => {
                    self.device = Some(device);
                    self.label_is_bad = false;
                    self.report.left_pages += self.mortal.attached();
                    return Ok(());
                }
                Err(_) if self.store.is_off() => match self.cut() {
                    true => self.report.recovery_kills += 1,
                    false => self.report.recovery_cuts += 1,
                },
                Err(_) if self.may_be_unreadable => {
                    self.report.refused += 1;
                    return Ok(());
                }
                // A full backing store is no power cut: it must be able to come back all the same.
                Err(_) if self.plan.knobs.no_space > 0 => self.plan.knobs.no_space = 0,
                Err(_) if self.plan.errors => {}
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

    /// What the end of the power was: the process dies, which gives true, or the power is cut.
    fn cut(&mut self) -> bool {
        if !self.mortal.dies() {
            self.mortal.power_cut();
            self.cut_power();
            return false;
        }
        self.report.kills += 1;
        self.note_healing();
        self.mortal.killed();
        self.device = None;
        self.asked.iter_mut().for_each(|asked| *asked = None);
        self.label_is_bad |= self.store.writes_label();
        self.store.kill(&mut self.cutter);
        true
    }

    fn cut_power(&mut self) {
        self.report.cuts += 1;
        self.report.sealed_cuts += u64::from(self.plan.format.key.is_some());
        self.note_healing();
        self.device = None;
        self.asked.iter_mut().for_each(|asked| *asked = None);
        self.store.switch_off();
        // One that the power cut tears is bad as well.
        self.label_is_bad |= self.store.writes_label();
        let cut = match self.random.below(4) {
            0 => Cut::LOSE_ALL,
            1 => Cut { whole: 500_000, torn: 300_000, flipped: 100_000 },
            _ => Cut::default(),
        };
        self.store.power_cut_as(&mut self.cutter, &cut);
        self.spoil_label();
        // A die may come back with the power.
        for die in self.store.failed_dies() {
            if self.random.one_in(3) {
                self.store.revive_die(die);
            }
        }
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
            if self.device.is_some() && self.plan.detach_once_in > 0 && self.random.one_in(self.plan.detach_once_in) {
                self.clean_detach()?;
            }
            // The power failed once more before everything was compared: until it was, the model does not know what is there.
            while self.store.is_off() && self.device.is_some() {
                self.crash()?;
            }
            if self.device.is_none() {
                return Ok(());
            }
            self.trouble(1);
            if self.pending_size.is_some() && self.random.one_in(3) {
                self.look_at_size()?;
            }
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

    fn crash(&mut self) -> Result<(), Failure> {
        self.cut();
        self.attach()?;
        self.settle_size()?;
        if self.store.is_off() || self.device.is_none() {
            return Ok(());
        }
        if self.may_be_unreadable {
            return self.compare_sectors();
        }
        if self.mortal.lost_nothing() {
            // Only the process died, so what was answered is there.
            self.model.flushed(&self.model.flush_covers());
        }
        if self.random.one_in(3) && !self.write_at_once()? {
            return self.crash();
        }
        let Some(images) = self.read_all()? else { return Ok(()) };
        let (sector, len) = (self.plan.geometry.sector_bytes as usize, self.model.len());
        self.model
            .crashed(|at, op, zero| {
                let lba = at % len;
                payload::holds(&images[&(at - lba)][lba as usize * sector..][..sector], lba, op, zero)
            })
            .map_err(|wrong| {
                let (cuts, kills) = (self.report.cuts, self.report.kills);
                Failure::Wrong(format!("after power cut {cuts} and death {kills}: {wrong}"))
            })?;
        if !self.compare_snapshots()? {
            return Ok(());
        }
        self.mortal.compared();
        self.verify()
    }

    /// Durable writes right behind an attach, before anything else could come to its end; false when the power fails then.
    fn write_at_once(&mut self) -> Result<bool, Failure> {
        if self.plan.errors || self.may_lack_space || self.plan.cut_once_in == 0 {
            return Ok(true);
        }
        for _ in 0..1 + self.random.below(4) {
            let lba = self.random.below(self.plan.span);
            let op = self.model.next_op();
            let mut data = vec![0; self.plan.geometry.sector_bytes as usize];
            payload::fill(&mut data, lba, op, false);
            // Should the power fail, nobody knows whether it was taken.
            self.model.took(lba, 1, false);
            match self.call(Io::Write { lba, data: &data, fua: true })? {
                Some(Ok(_)) => self.model.answered(op, true),
                // It counts as one that nobody was told of.
                Some(Err(IoError::Full)) if self.may_be_full() => return Ok(true),
                Some(Err(error)) => return Err(Failure::Wrong(format!("a write behind an attach failed: {error}"))),
                None => return Ok(false),
            }
        }
        Ok(!self.random.one_in(3))
    }

    fn verify(&mut self) -> Result<(), Failure> {
        self.device().verify().map_err(Failure::Wrong)
    }

    /// Every sector by itself, where some may be lost for good: the others are what they were.
    fn compare_sectors(&mut self) -> Result<(), Failure> {
        for lba in 0..self.model.len() {
            let buf = vec![0xee; self.plan.geometry.sector_bytes as usize];
            let op = self.model.current(lba);
            match self.call(Io::Read { lba, buf })? {
                Some(Ok(Some(buf))) if payload::holds(&buf, lba, op, Model::is_zero(op)) => {}
                Some(Err(IoError::Media)) => self.report.unreadable += 1,
                None => return Ok(()),
                Some(other) => {
                    let found = other.map_or_else(|error| error.to_string(), |_| "other data".into());
                    return Err(Failure::Wrong(format!("sector {lba}, of version {op}, gives {found}")));
                }
            }
        }
        self.verify()
    }

    /// The whole device, or `None` when the power failed meanwhile.
    pub(crate) fn read_everything(&mut self) -> Result<Option<Vec<u8>>, Failure> {
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
    pub(crate) fn call(&mut self, io: Io<'_>) -> Result<Option<Answer>, Failure> {
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
            Err(IoError::Media) if self.plan.errors => {}
            Err(error) => return Err(Failure::Wrong(format!("detach: {error}"))),
        }
        // After a clean detach everything is durable: losing all that no sync covered loses nothing.
        let covered = self.model.flush_covers();
        if detached.is_ok() {
            self.model.flushed(&covered);
        }
        self.crash()
    }

    /// The end: everything asked is answered, and everything is there, now and after a clean detach.
    fn finish(&mut self) -> Result<(), Failure> {
        self.plan.cut_once_in = 0;
        // Those of the medium that is in use stay as they are.
        let Knobs { no_space, program_error, sync_error, label_error, .. } = &mut self.plan.knobs;
        for knob in [no_space, program_error, sync_error, label_error] {
            *knob = 0;
        }
        if self.device.is_none() {
            return Ok(());
        }
        if self.store.is_off() {
            self.crash()?;
        }
        self.report.freed_lebs = self.device().status().layer.erased_lebs;
        self.verify()?;
        self.clean_detach()?;
        self.plan.errors = false;
        self.last_write()?;
        if self.device.is_none() {
            return Ok(());
        }
        self.clean_detach()?;
        if self.scrub_errors > 0 && self.plan.faulty.is_empty() && !self.may_be_unreadable {
            return Err(Failure::Wrong(format!("scrubs found {} things wrong", self.scrub_errors)));
        }
        Ok(())
    }

    /// However full the device is, a write is taken in the end.
    fn last_write(&mut self) -> Result<(), Failure> {
        if self.may_be_unreadable {
            return Ok(());
        }
        self.delete_all_snapshots()?;
        let op = self.model.next_op();
        let mut data = vec![0; self.plan.geometry.sector_bytes as usize];
        payload::fill(&mut data, 0, op, false);
        match self.call(Io::Write { lba: 0, data: &data, fua: false })? {
            Some(Ok(_)) => {
                self.model.took(0, 1, false);
                self.model.answered(op, false);
            }
            Some(Err(IoError::NoSpace)) if self.may_lack_space => {}
            Some(Err(IoError::Full)) if self.plan.sparse => {}
            Some(Err(error)) => return Err(Failure::Wrong(format!("the last write failed: {error}"))),
            None => {}
        }
        Ok(())
    }
}
