//! A host: its disk with the journal, the notes beside it, and the device while it is attached.

use std::path::Path;

use device::{Device, Io, Submitted, taken_over_labels};
use media::object::claim::{self, ClaimError, Claimant};
use media::object::notes::Note;
use media::object::sim::{Bucket, SimNotes};
use media::object::{Anchor, Claim, Notes, NotesHead, ObjectMedia};
use media::sim::{Cut, SimMedia, SimStore};
use media::{Command, Media};
use random::SplitMix64;

use super::plan::ObjectsPlan;
use super::price::Priced;
use crate::Failure;

pub struct Host {
    pub name: String,
    pub disk: SimStore,
    notes: SimNotes,
    journal: [u8; 16],
    pub device: Option<Device>,
    /// How fast its clock runs, parts per thousand of the right speed.
    pub rate: u64,
    /// Another host took the device when its lease was over: it must answer nothing any more.
    pub silenced: bool,
    tag: u64,
}

/// How an attach ended.
pub enum Attached {
    /// It is attached, from this anchor.
    Yes(Box<Anchor>),
    /// The device was claimed, with this anchor, and then the power failed.
    Claimed(Box<Anchor>),
    /// The store did not answer.
    Unanswered,
    /// The owner renewed its lease meanwhile.
    Renewed,
}

impl Host {
    pub fn new(plan: &ObjectsPlan, name: &str, seed: u64) -> Host {
        let mut journal = [0; 16];
        journal[..8].copy_from_slice(&seed.to_le_bytes());
        let head = head(plan, journal);
        Host {
            name: name.into(),
            disk: SimStore::new(plan.geometry),
            notes: SimNotes::new(Notes::new(head).encode()),
            journal,
            device: None,
            rate: 1000,
            silenced: false,
            tag: 0,
        }
    }

    /// Formats the journal, and puts the device into the store.
    pub fn create(&mut self, plan: &ObjectsPlan, bucket: &Bucket) -> Result<(), Failure> {
        let mut media = SimMedia::new(&self.disk, 1, plan.disk);
        let stuck = |what: String| Failure::Stuck(format!("create: {what}"));
        Device::format_media(&mut media, &plan.format).map_err(|error| stuck(error.to_string()))?;
        let mut label = |copy| media.read_label(0, copy).map_err(|error| stuck(error.to_string()));
        let anchor = Anchor {
            device: *plan.format.uuid.as_bytes(),
            journal: self.journal,
            attach: 0,
            epoch: 0,
            commit: 0,
            renewal: 0,
            released: false,
            written_ms: bucket.now_ms(),
            mark: 0,
            ahead_bytes: 0,
            host: self.name.clone(),
            geometry: plan.geometry,
            labels: [label(0)?, label(1)?],
            limits: plan.limits,
            lebs: Vec::new(),
            garbage: Vec::new(),
        };
        for _ in 0..20 {
            match claim::found(&mut bucket.client(&self.notes), &anchor) {
                Ok(()) => return Ok(()),
                // An attempt whose answer was lost.
                Err(ClaimError::Exists) if bucket.anchor() == Some(anchor.clone()) => return Ok(()),
                Err(ClaimError::Store(_)) => bucket.pass(20_000),
                Err(error) => return Err(Failure::Wrong(format!("create: {error}"))),
            }
        }
        Err(stuck("the store does not answer".into()))
    }

    /// Attaches once.
    pub fn attach(&mut self, plan: &ObjectsPlan, bucket: &Bucket, how: Claim, seed: u64) -> Result<Attached, Failure> {
        let mut outside = bucket.client_at(&self.notes, self.rate);
        let mut notes =
            Notes::decode(&self.notes.bytes()).map_err(|error| Failure::Wrong(format!("the notes: {error}")))?;
        self.notes.replace(notes.encode());
        let who = Claimant { journal: self.journal, attach: seed, host: self.name.clone() };
        let claimed = match claim::claim(&mut outside, &who, how, &mut notes) {
            Ok(claimed) => claimed,
            Err(ClaimError::Store(_) | ClaimError::Lost(_)) => return Ok(Attached::Unanswered),
            // A claim of this very journal whose end nobody knew.
            Err(ClaimError::Owned { .. } | ClaimError::Renewed(_))
                if matches!(how, Claim::Released | Claim::Lapsed(_)) && self.is_owner(bucket) =>
            {
                return self.attach(plan, bucket, Claim::TakeOver, seed);
            }
            Err(ClaimError::Renewed(_)) => return Ok(Attached::Renewed),
            Err(error) => return Err(Failure::Wrong(format!("{} cannot attach: {error}", self.name))),
        };
        let anchor = claimed.anchor.clone();
        let attached = Box::new(anchor.clone());
        let mut journal = SimMedia::new(&self.disk, seed, plan.disk);
        if how != Claim::Own {
            // A journal that holds nothing: all of it is in the store.
            let labels = taken_over_labels(&anchor, Path::new("store"))
                .map_err(|error| Failure::Wrong(format!("the anchor's labels: {error}")))?;
            // An attach that was cut before leaves nothing that counts.
            self.disk.switch_off();
            self.disk = SimStore::new(plan.geometry);
            journal = SimMedia::new(&self.disk, seed, plan.disk);
            for (copy, label) in (0..).zip(labels) {
                journal.submit(0, Command::WriteLabel { copy, bytes: vec![label] });
                while journal.poll().is_none() {
                    journal.wait();
                }
            }
            for entry in &anchor.lebs {
                notes.add(Note::Life { leb: entry.leb, life: entry.life });
                notes.add(Note::Gone { leb: entry.leb, life: entry.life });
            }
            self.notes.replace(notes.encode());
        }
        let media = ObjectMedia::new(Box::new(journal), Box::new(outside), claimed, &notes, seed)
            .map_err(|what| Failure::Wrong(format!("{}: {what}", self.name)))?;
        match Device::on_objects(media, None) {
            Ok(mut device) => {
                if let Some(Priced { prices, look_ms }) = plan.priced {
                    device.collect_by(Some(prices), look_ms);
                }
                self.device = Some(device);
                Ok(Attached::Yes(attached))
            }
            Err(_) if self.disk.is_off() => Ok(Attached::Claimed(attached)),
            Err(error) => Err(Failure::Wrong(format!("{} cannot attach: {error}", self.name))),
        }
    }

    fn is_owner(&self, bucket: &Bucket) -> bool {
        bucket.anchor().is_some_and(|anchor| anchor.journal == self.journal)
    }

    /// The power goes, and comes back.
    pub fn cut(&mut self, random: &mut SplitMix64) {
        self.device = None;
        self.disk.switch_off();
        let cut = match random.below(4) {
            0 => Cut::LOSE_ALL,
            1 => Cut { whole: 500_000, torn: 300_000, flipped: 0 },
            2 => Cut::KEEP_ALL,
            _ => Cut::default(),
        };
        self.disk.power_cut_as(random, &cut);
    }

    /// It goes on without knowing that another has the device.
    pub fn wander(&mut self, random: &mut SplitMix64, sectors: u64) -> Result<(), Failure> {
        let Some(device) = &mut self.device else { return Ok(()) };
        self.tag += 1;
        let lba = random.below(sectors);
        let submitted = match random.below(4) {
            0 => Some(device.submit(self.tag, Io::Write { lba, data: &[0xbb; 512], fua: false })),
            1 => Some(device.submit(self.tag, Io::Flush)),
            2 if self.silenced => Some(device.submit(self.tag, Io::Read { lba, buf: vec![0; 512] })),
            _ => None,
        };
        let mut answered = matches!(submitted, Some(Submitted::Done(Ok(_))));
        for _ in 0..random.below(20) {
            answered |= device.poll().is_some_and(|done| done.result.is_ok());
        }
        device.wait();
        match answered && self.silenced {
            true => Err(Failure::Wrong(format!("{} answers, and another host has taken the device over", self.name))),
            false => Ok(()),
        }
    }

    pub fn is_fenced(&mut self) -> bool {
        self.device.as_mut().is_none_or(|device| device.objects().is_some_and(|standing| standing.fence.is_some()))
    }

    /// Whether a fenced device takes a write, a read or a flush.
    pub fn takes_anything(&mut self) -> bool {
        let Some(device) = &mut self.device else { return false };
        for _ in 0..100 {
            let _ = device.poll();
        }
        let requests =
            [Io::Write { lba: 0, data: &[0xcc; 512], fua: false }, Io::Read { lba: 0, buf: vec![0; 512] }, Io::Flush];
        requests.into_iter().any(|io| !matches!(device.submit(u64::MAX - 1, io), Submitted::Done(Err(_))))
    }
}

fn head(plan: &ObjectsPlan, journal: [u8; 16]) -> NotesHead {
    let (url, endpoint) = ("memory:".into(), String::new());
    NotesHead { device: *plan.format.uuid.as_bytes(), journal, url, endpoint, limits: plan.limits }
}
