//! A member: a device on a medium of its own, and what the array has asked of it.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use array::{Answer, Command, Handed, What, superblock_sector};
use device::{Device, Io, IoError, Snapshot, Submitted};
use media::sim::{Cut, SimMedia, SimStore};
use random::SplitMix64;

use super::plan::{MemberPlan, SECTOR};
use crate::run::Failure;

/// Tag of a request that is waited for; the array's are counted from 1.
const CALL: u64 = u64::MAX;
/// Polls until a request counts as never answered.
const PATIENCE: u32 = 200_000;

pub(crate) struct Node {
    pub plan: MemberPlan,
    pub store: SimStore,
    pub device: Option<Device>,
    /// Not given to the device yet.
    pub queue: VecDeque<Command>,
    /// Sectors that cannot be read until something is written to them.
    pub unreadable: BTreeSet<u64>,
    /// What it told while something else was waited for.
    told: Vec<Told>,
    /// What it told, and the array has not heard yet.
    late: Vec<Told>,
}

/// A snapshot, with what stands there where the superblock belongs.
pub(crate) type Part = (Snapshot, Vec<u8>);

/// What a member told, under the array's tag.
pub(crate) type Told = (u64, Result<Answer, IoError>);

impl Node {
    /// A blank device.
    pub fn format(plan: MemberPlan, random: &mut SplitMix64) -> Result<Node, Failure> {
        let store = SimStore::new(plan.geometry);
        let mut media = SimMedia::new(&store, random.bits(), plan.knobs);
        Device::format_media(&mut media, &plan.format).map_err(|error| Failure::Stuck(format!("format: {error}")))?;
        let (told, late) = (Vec::new(), Vec::new());
        Ok(Node { plan, store, device: None, queue: VecDeque::new(), unreadable: BTreeSet::new(), told, late })
    }

    /// Attaches it; false when its power failed meanwhile.
    pub fn attach(&mut self, random: &mut SplitMix64) -> Result<bool, Failure> {
        self.forget();
        let media = SimMedia::new(&self.store, random.bits(), self.plan.knobs);
        match Device::on_media(Box::new(media), false) {
            Ok(device) => {
                self.device = Some(device);
                Ok(true)
            }
            Err(_) if self.store.is_off() => Ok(false),
            Err(error) => Err(Failure::Wrong(format!("a member does not attach: {error}"))),
        }
    }

    /// What an array that is no more asked is of no account.
    pub fn forget(&mut self) {
        self.queue.clear();
        self.told.clear();
        self.late.clear();
    }

    /// Has some of what it told heard later than what it tells after that; not that it failed, or two copies could fail at once.
    pub fn hold_back(&mut self, told: Vec<Told>, random: &mut SplitMix64) -> Vec<Told> {
        let (mut now, late) = std::mem::take(&mut self.late).into_iter().partition(|_| random.one_in(2));
        self.late = late;
        for one in told {
            if one.1.is_ok() && random.one_in(4) { self.late.push(one) } else { now.push(one) }
        }
        now
    }

    /// Whether it has not answered everything.
    pub fn is_busy(&self) -> bool {
        !self.queue.is_empty()
            || !self.told.is_empty()
            || !self.late.is_empty()
            || self.device.as_ref().is_some_and(|device| !device.is_idle())
    }

    /// Its power fails.
    pub fn cut(&mut self, random: &mut SplitMix64) {
        self.device = None;
        self.forget();
        self.unreadable.clear();
        self.store.switch_off();
        let cut = match random.below(4) {
            0 => Cut::LOSE_ALL,
            1 => Cut { whole: 500_000, torn: 300_000, flipped: 100_000 },
            _ => Cut::default(),
        };
        self.store.power_cut_as(random, &cut);
    }

    /// Gives the device what it takes of its queue, at most so many, and hears it. `refuse` says whether it fails to carry something
    /// out.
    pub fn step(&mut self, most: u64, mut refuse: impl FnMut(&What) -> bool) -> Vec<Told> {
        let mut told = std::mem::take(&mut self.told);
        if self.device.is_none() {
            return told;
        }
        for _ in 0..most {
            let Some(mut command) = self.queue.pop_front() else { break };
            if refuse(&command.what) {
                told.push((command.tag, Err(IoError::Media)));
                continue;
            }
            if self.hits_unreadable(&command.what) {
                told.push((command.tag, Err(IoError::Media)));
                continue;
            }
            let Some(device) = &mut self.device else { break };
            match command.what.hand_to(device, command.tag) {
                Handed::Answered(answer) => told.push((command.tag, answer)),
                Handed::Pending => {}
                Handed::Busy => {
                    self.queue.push_front(command);
                    break;
                }
            }
        }
        let Some(device) = &mut self.device else { return told };
        for _ in 0..4 {
            match device.poll() {
                Some(done) if done.tag != CALL => told.push((done.tag, done.result.map(Answer::Done))),
                _ => {}
            }
        }
        told
    }

    /// Lets it tidy up, as its thread does now and then.
    pub fn tidy(&mut self) {
        if let Some(device) = &mut self.device {
            device.idle();
        }
    }

    /// Whether a request reads what cannot be read. What is changed can be read again.
    fn hits_unreadable(&mut self, what: &What) -> bool {
        let mut change = |sectors: Range<u64>| self.unreadable.retain(|lba| !sectors.contains(lba));
        match what {
            What::Read { lba, buf } => {
                return self.unreadable.range(*lba..*lba + (buf.len() / SECTOR) as u64).next().is_some();
            }
            What::Write { lba, part, .. } => change(*lba..*lba + (part.len() / SECTOR) as u64),
            What::Batch { ops, .. } => ops.iter().for_each(|op| change(op.sectors())),
            What::Zeroes { lba, count, .. } => change(*lba..*lba + count),
            What::Flush | What::Extent { .. } | What::ReadSnapshot { .. } | What::Snapshot(_) => {}
        }
        false
    }

    /// A request that is waited for; `None` when the power failed.
    fn call(&mut self, io: Io<'_>) -> Result<Option<Answered>, Failure> {
        let Some(device) = &mut self.device else { return Ok(None) };
        let mut request = Some(io);
        for _ in 0..PATIENCE {
            if self.store.is_off() {
                return Ok(None);
            }
            if let Some(io) = request.take() {
                match device.submit(CALL, io) {
                    Submitted::Done(result) => return Ok(Some(result)),
                    Submitted::Pending => {}
                    Submitted::Busy(io) => request = Some(io),
                }
            }
            match device.poll() {
                Some(done) if done.tag == CALL => return Ok((!self.store.is_off()).then_some(done.result)),
                Some(done) => self.told.push((done.tag, done.result.map(Answer::Done))),
                None => {}
            }
        }
        Err(Failure::Stuck("a member never answered".into()))
    }

    /// A read that is waited for; `None` when the power failed.
    pub fn read(&mut self, lba: u64, count: u64) -> Result<Option<Vec<u8>>, Failure> {
        let buf = vec![0xee; count as usize * SECTOR];
        match self.call(Io::Read { lba, buf })? {
            Some(Ok(buf)) => Ok(buf),
            Some(Err(error)) => Err(Failure::Wrong(format!("a member cannot be read: {error}"))),
            None => Ok(None),
        }
    }

    /// What stands where its superblock belongs.
    pub fn superblock(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        self.read(superblock_sector(self.plan.format.sectors), 1)
    }

    pub fn has_snapshot(&self, name: &str) -> bool {
        self.device.as_ref().is_some_and(|device| device.snapshot_named(name).is_some())
    }

    /// Its snapshots, each with what stands there where its superblock belongs; `None` when the power failed.
    pub fn snapshots(&mut self) -> Result<Option<Vec<Part>>, Failure> {
        let Some(device) = &self.device else { return Ok(None) };
        let mut found = Vec::new();
        for snapshot in device.snapshots().to_vec() {
            let (lba, buf) = (superblock_sector(self.plan.format.sectors), vec![0xee; SECTOR]);
            match self.call(Io::ReadSnapshot { id: snapshot.id, lba, buf })? {
                Some(Ok(Some(sector))) => found.push((snapshot, sector)),
                Some(other) => return Err(Failure::Wrong(format!("a member's snapshot gives {other:?}"))),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// Writes its superblock durably.
    pub fn write_superblock(&mut self, sector: &[u8]) -> Result<(), Failure> {
        self.write(superblock_sector(self.plan.format.sectors), sector)
    }

    /// Writes durably.
    pub fn write(&mut self, lba: u64, data: &[u8]) -> Result<(), Failure> {
        match self.call(Io::Write { lba, data, fua: true })? {
            Some(Err(error)) => Err(Failure::Wrong(format!("a member cannot be written to: {error}"))),
            _ => Ok(()),
        }
    }

    /// What somebody asked who is no more comes to its end.
    pub fn settle(&mut self) -> Result<(), Failure> {
        // A read goes through behind all that was taken.
        self.forget();
        self.superblock()?;
        for _ in 0..PATIENCE {
            if self.device.as_ref().is_none_or(Device::is_idle) || self.store.is_off() {
                break;
            }
            self.step(0, |_| false);
        }
        self.forget();
        Ok(())
    }
}

type Answered = Result<Option<Vec<u8>>, IoError>;
