//! A member's side, on its own thread: carries out what its array asks, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use array::{Answer, Command, What};
use device::{Device, Durability, IoError, Submitted};

use super::error::Claimed;
use super::lane::{Lane, Reply};
use crate::jobs::Slot;
use crate::worker::Worker;

/// What a member's thread knows of its array.
pub(crate) struct Claim {
    lane: Arc<Lane>,
    /// Which claim of this member it is: answers to an earlier array's requests are of no account.
    pub number: u64,
    /// What the device did not take yet.
    waiting: VecDeque<Command>,
    replies: Vec<Reply>,
}

impl Drop for Claim {
    /// However the thread ends, the array learns of it.
    fn drop(&mut self) {
        self.lane.close();
    }
}

impl Claim {
    pub fn new(lane: Arc<Lane>, number: u64) -> Claim {
        Claim { lane, number, waiting: VecDeque::new(), replies: Vec::new() }
    }

    pub fn array(&self) -> &str {
        &self.lane.array
    }

    /// A request is done.
    pub fn done(&mut self, tag: u64, result: Result<Option<Vec<u8>>, IoError>) {
        self.replies.push((tag, result.map(Answer::Done)));
    }

    /// Hands over what was done in this round.
    pub fn reply(&mut self) {
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
    device.is_read_only() || device.settings().durability == Some(Durability::Unsafe)
}

impl Worker {
    /// Takes what the array asks, and gives the device what that takes. Whether there was anything.
    pub(crate) fn serve_array(&mut self) -> bool {
        let Some(claim) = &mut self.claim else { return false };
        claim.waiting.extend(claim.lane.requests());
        if claim.lane.is_closed() {
            self.release();
            return true;
        }
        let busy = claim.is_waiting();
        let Some(device) = self.core.device.device() else { return false };
        while let Some(mut command) = claim.waiting.pop_front() {
            if let What::Extent { lba, max } = command.what {
                claim.replies.push((command.tag, Ok(Answer::Extent(device.extent(lba, max)))));
                continue;
            }
            let tag = self.core.jobs.vacant_key() as u64;
            let Some(io) = command.what.io() else { continue };
            let busy = match device.submit(tag, io) {
                Submitted::Done(result) => {
                    claim.replies.push((command.tag, result.map(Answer::Done)));
                    None
                }
                Submitted::Pending => {
                    self.core.jobs.insert(Slot::Array { tag: command.tag, claim: claim.number });
                    None
                }
                Submitted::Busy(device::Io::Read { buf, .. }) => Some(Some(buf)),
                Submitted::Busy(_) => Some(None),
            };
            if let Some(buf) = busy {
                if let Some(buf) = buf {
                    command.what.give_back(device::Io::Read { lba: 0, buf });
                }
                claim.waiting.push_front(command);
                break;
            }
        }
        busy
    }

    /// Becomes a member of an array, which has it for itself.
    ///
    /// # Errors
    /// The array that has it already, or nothing where clients have it, or where it goes.
    pub(crate) fn claim(&mut self, lane: Arc<Lane>) -> Result<(), Claimed> {
        if let Some(claim) = &self.claim {
            return Err(Claimed::By(claim.array().to_owned()));
        }
        if self.is_detaching() || self.core.device.moving().is_some() || self.core.device.device().is_none_or(is_unfit)
        {
            return Err(Claimed::Unfit);
        }
        self.seats.close_if_free().map_err(Claimed::Clients)?;
        self.claims += 1;
        self.claim = Some(Claim::new(lane, self.claims));
        Ok(())
    }

    /// The array gave it back, or it goes.
    pub(crate) fn release(&mut self) {
        if self.claim.take().is_some() && !self.is_detaching() {
            self.seats.open();
            tracing::debug!(device = %self.name, "no member of an array any more");
        }
    }
}
