//! A member's side, on its own thread: carries out what its array or the volumes that it caches ask, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use array::{Answer, Command, Handed};
use device::{Device, Durability, IoError, Quota};

use super::lane::{Lane, Reply};
use crate::jobs::Slot;
use crate::worker::Worker;

/// Why a device does not become a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// This array, or cached volume, has it.
    By(String),
    /// So many clients have it.
    Clients(usize),
    /// It takes no writes, is an array, or is being detached.
    Unfit,
}

/// What a device is claimed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// One composite has it for itself.
    Member,
    /// Volumes are cached on it. Its groomer may lose what lies before this sector.
    Cache(u64),
}

/// What a member's thread knows of whoever has it.
pub(crate) struct Claim {
    lane: Arc<Lane>,
    purpose: Purpose,
    /// What a cached volume may have of the device.
    quota: Option<Quota>,
    /// Which claim of this member it is: answers to an earlier array's requests are of no account.
    pub number: u64,
    /// What the device did not take yet.
    waiting: VecDeque<Command>,
    replies: Vec<Reply>,
}

impl Drop for Claim {
    /// However the thread ends, whoever has it learns of it.
    fn drop(&mut self) {
        self.lane.close();
    }
}

impl Claim {
    fn new(lane: Arc<Lane>, purpose: Purpose, number: u64) -> Claim {
        Claim { lane, purpose, quota: None, number, waiting: VecDeque::new(), replies: Vec::new() }
    }

    fn owner(&self) -> &str {
        &self.lane.owner
    }

    /// What the cached volume of this name may have.
    pub fn quota_of(&mut self, volume: &str) -> Option<&mut Quota> {
        self.quota.as_mut().filter(|_| self.lane.owner == volume)
    }

    /// A request is done.
    fn done(&mut self, tag: u64, result: Result<Option<Vec<u8>>, IoError>) {
        self.replies.push((tag, result.map(Answer::Done)));
    }

    /// Hands over what was done in this round, of a device that has so much room now.
    pub fn reply(&mut self, room: Option<u64>) {
        self.lane.saw_room(room);
        self.lane.reply(&mut self.replies);
    }

    /// Whether the device did not take everything.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn saw_mapped(&self, sectors: u64) {
        self.lane.saw_mapped(sectors);
    }
}

/// What a flush does not make durable keeps no copy in step.
fn is_unfit(device: &mut Device) -> bool {
    device.is_read_only() || device.zones().is_some() || device.settings().durability == Some(Durability::Unsafe)
}

impl Worker {
    /// Takes what the array or the volumes ask, and gives the device what that takes. Whether there was anything.
    pub(crate) fn serve_claims(&mut self) -> bool {
        let mut busy = false;
        busy |= self.release_closed();
        for at in 0..self.claims.len() {
            let claim = &mut self.claims[at];
            claim.waiting.extend(claim.lane.requests());
            busy |= claim.is_waiting();
            self.serve_claim(at);
        }
        busy
    }

    fn serve_claim(&mut self, at: usize) {
        let Some(device) = self.core.device.device() else { return };
        let claim = &mut self.claims[at];
        while let Some(mut command) = claim.waiting.pop_front() {
            let tag = self.core.jobs.vacant_key() as u64;
            match command.what.hand_to(device, tag) {
                Handed::Answered(answer) => claim.replies.push((command.tag, answer)),
                Handed::Pending => {
                    self.core.jobs.insert(Slot::Claim { tag: command.tag, claim: claim.number });
                }
                Handed::Busy => {
                    claim.waiting.push_front(command);
                    break;
                }
            }
        }
    }

    /// Becomes a member of a composite, which has it for itself, or caches one more volume.
    ///
    /// # Errors
    /// Who has it already, or nothing where clients have it, or where it goes.
    pub(crate) fn claim(&mut self, lane: Arc<Lane>, purpose: Purpose) -> Result<(), Claimed> {
        // Whoever had it may have given it back just now.
        self.release_closed();
        if let Some(claim) = self.claims.iter().find(|claim| purpose == Purpose::Member || claim.purpose != purpose) {
            return Err(Claimed::By(claim.owner().to_owned()));
        }
        if self.is_detaching() || self.core.device.moving().is_some() || self.core.device.device().is_none_or(is_unfit)
        {
            return Err(Claimed::Unfit);
        }
        if self.claims.is_empty() {
            self.seats.close_if_free().map_err(Claimed::Clients)?;
        }
        if let (Purpose::Cache(half), Some(device), true) = (purpose, self.core.device.device(), self.claims.is_empty())
        {
            device.set_evictable(half);
        }
        self.claimed += 1;
        self.claims.push(Claim::new(lane, purpose, self.claimed));
        Ok(())
    }

    /// What the volume that uses the device through this lane may have of it.
    pub(crate) fn set_quota(&mut self, lane: &Arc<Lane>, quota: Quota) {
        if let Some(claim) = self.claims.iter_mut().find(|claim| Arc::ptr_eq(&claim.lane, lane)) {
            claim.quota = Some(quota);
            self.share_out();
        }
    }

    /// Has the device share its room among the volumes that it caches.
    pub(crate) fn share_out(&mut self) {
        let quotas: Vec<Quota> = self.claims.iter().filter_map(|claim| claim.quota.clone()).collect();
        if let Some(device) = self.core.device.device() {
            device.set_quotas(&quotas);
        }
    }

    /// Ends the claims that were given back. Whether there were any.
    fn release_closed(&mut self) -> bool {
        let before = self.claims.len();
        while let Some(at) = self.claims.iter().position(|claim| claim.lane.is_closed()) {
            self.release(at);
        }
        self.claims.len() < before
    }

    /// Whoever had it gave it back.
    fn release(&mut self, at: usize) {
        let claim = self.claims.swap_remove(at);
        if !self.claims.is_empty() {
            return self.share_out();
        }
        if let (Purpose::Cache(_), Some(device)) = (claim.purpose, self.core.device.device()) {
            device.set_evictable(0);
        }
        if !self.is_detaching() {
            self.seats.open();
            tracing::debug!(device = %self.name, "no member of anything any more");
        }
    }

    /// A request of a claim is done.
    pub(crate) fn claim_done(&mut self, number: u64, tag: u64, result: Result<Option<Vec<u8>>, IoError>) {
        if let Some(claim) = self.claims.iter_mut().find(|claim| claim.number == number) {
            claim.done(tag, result);
        }
    }
}
