//! How an array's thread begins: claims the members, makes the array or puts it together.

use std::sync::Arc;

use array::{Answer, Array, Command, Level, Member, Shape, Superblock, What, superblock_sector};
use device::{Extent, IoError, Snapshot};
use media::ring::mailbox::Sender;
use uuid::Uuid;

use super::error::ArrayError;
use crate::composite::claim::{Claimed, Purpose};
use crate::composite::lane::{Bell, Lane, extent};
use crate::composite::{Composite, Machine, composite_info};
use crate::handle::{Call, WorkerHandle};

/// The smallest region of a mirror that is kept in step by itself, bytes.
const REGION_BYTES: u64 = 4 << 20;

/// A member, by position.
#[derive(Clone)]
pub struct ArrayMember {
    /// What it is called.
    pub name: String,
    /// Its thread; nothing where it is not there.
    pub handle: Option<WorkerHandle>,
}

/// What is to become of the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayPlan {
    /// A new array.
    Make {
        /// Its identity.
        uuid: Uuid,
        /// How members make one device.
        level: Level,
        /// Of RAID 0, bytes.
        stripe_bytes: u64,
        /// Destroy what members hold.
        force: bool,
    },
    /// One that was made before. The last of the members may be a device that was just being added, and does not become one.
    Assemble {
        /// Its identity.
        uuid: Uuid,
        /// A mirror does without members that are not there.
        degraded: bool,
        /// A copy that was not finished is taken where there is no other.
        force: bool,
    },
}

/// A member's snapshot, with what stands there where its superblock belongs.
pub(crate) type Part = (Snapshot, Vec<u8>);

/// A member that was claimed.
pub(crate) struct Claimant {
    pub name: String,
    pub lane: Arc<Lane>,
    pub member: Member,
    /// Its snapshots when it was claimed; nobody else makes any from then on.
    snapshots: Vec<Snapshot>,
}

impl Claimant {
    /// Claims a device for an array, a move, or to be behind a cache.
    pub fn claim(owner: &str, name: &str, handle: &WorkerHandle, back: &Sender<Call>) -> Result<Claimant, ArrayError> {
        Claimant::claim_for(Purpose::Member, owner, name, handle, back)
    }

    /// Claims a device.
    pub fn claim_for(
        purpose: Purpose,
        owner: &str,
        name: &str,
        handle: &WorkerHandle,
        back: &Sender<Call>,
    ) -> Result<Claimant, ArrayError> {
        let member = name.to_owned();
        let gone = || ArrayError::Gone { member: name.to_owned() };
        let lane = Lane::new(owner, Bell::Worker(handle.sender().clone()), back.clone());
        let theirs = Arc::clone(&lane);
        match handle.ask(move |worker| worker.claim(theirs, purpose)).map_err(|_| gone())? {
            Ok(()) => {}
            Err(Claimed::By(array)) => return Err(ArrayError::Taken { member, array }),
            Err(Claimed::Clients(clients)) => return Err(ArrayError::Clients { member, clients }),
            Err(Claimed::Unfit) => return Err(ArrayError::Unfit { member }),
        }
        let seen = handle.with_device(|device| (device.info().clone(), device.snapshots().to_vec()));
        let (info, snapshots) = match seen {
            Ok(seen) => seen,
            Err(_) => {
                lane.close();
                return Err(gone());
            }
        };
        let member = Member {
            uuid: info.uuid,
            sectors: info.sectors,
            sector_bytes: info.sector_bytes,
            max_request_bytes: info.max_request_bytes,
        };
        Ok(Claimant { name: name.into(), lane, member, snapshots })
    }

    fn call(&self, what: What) -> Result<Answer, ArrayError> {
        let failed = |error: IoError| ArrayError::Member { member: self.name.clone(), error };
        self.lane.call(Command { member: 0, tag: 1, what }).map_err(failed)
    }

    /// What stands where its superblock belongs.
    pub fn superblock(&self) -> Result<Vec<u8>, ArrayError> {
        self.read_superblock(|lba, buf| What::Read { lba, buf })
    }

    fn read_superblock(&self, what: impl FnOnce(u64, Vec<u8>) -> What) -> Result<Vec<u8>, ArrayError> {
        let buf = vec![0; self.member.sector_bytes as usize];
        match self.call(what(superblock_sector(self.member.sectors), buf))? {
            Answer::Done(Some(buf)) => Ok(buf),
            _ => Err(ArrayError::Member { member: self.name.clone(), error: IoError::Media }),
        }
    }

    /// Its snapshots, each with what stands there where its superblock belongs.
    pub fn snapshots(&self) -> Result<Vec<Part>, ArrayError> {
        let found = |snapshot: &Snapshot| {
            let sector = self.read_superblock(|lba, buf| What::ReadSnapshot { id: snapshot.id, lba, buf })?;
            Ok((snapshot.clone(), sector))
        };
        self.snapshots.iter().map(found).collect()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> Result<bool, ArrayError> {
        let answer = self.call(What::Extent { lba: 0, max: self.member.sectors })?;
        Ok(matches!(extent(&answer), Some(Extent { count, mapped: false }) if count >= self.member.sectors))
    }

    /// Makes it read as zeros.
    pub fn clear(&self) -> Result<(), ArrayError> {
        self.call(What::Zeroes { lba: 0, count: self.member.sectors, fua: false })?;
        self.call(What::Flush).map(drop)
    }

    /// It was about to become a member of this array, and did not: what it keeps for it goes. The rest of it is empty.
    fn leave(&self, array: Uuid) -> Result<(), ArrayError> {
        let Ok(superblock) = Superblock::decode(&self.superblock()?, 0) else { return Ok(()) };
        if superblock.array != array {
            return Ok(());
        }
        let lba = superblock.shape.own_from(superblock.position);
        self.call(What::Zeroes { lba, count: self.member.sectors.saturating_sub(lba), fua: false })?;
        self.call(What::Flush).map(drop)
    }

    fn write_superblock(&self, superblock: &Superblock) -> Result<(), ArrayError> {
        let data: Arc<[u8]> = superblock.encode().into();
        let (lba, part) = (superblock_sector(self.member.sectors), 0..data.len());
        self.call(What::Write { lba, data, part, fua: true }).map(drop)
    }
}

/// Gives members back where no array came of them.
struct Release<'a>(&'a [Option<Claimant>]);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.iter().flatten().for_each(|claimant| claimant.lane.close());
    }
}

impl Composite {
    /// Claims the members of an array, makes it or puts it together, and waits until it serves.
    pub(crate) fn start_array(
        name: &str,
        members: &[ArrayMember],
        plan: &ArrayPlan,
        back: &Sender<Call>,
    ) -> Result<Composite, ArrayError> {
        let mut claimed: Vec<Option<Claimant>> = Vec::new();
        for member in members {
            let claimant = member.handle.as_ref().map(|handle| Claimant::claim(name, &member.name, handle, back));
            match claimant.transpose() {
                Ok(claimant) => claimed.push(claimant),
                Err(error) => {
                    drop(Release(&claimed));
                    // A device that was named twice is claimed by this array, which says too little.
                    let twice = matches!(&error, ArrayError::Taken { array, .. } if array == name);
                    let first = members.iter().position(|other| other.name == member.name);
                    return Err(match first.filter(|_| twice) {
                        Some(first) => array::ShapeError::Twice { first, second: claimed.len() }.into(),
                        None => error,
                    });
                }
            }
        }
        let release = Release(&claimed);
        let mut array = match plan {
            ArrayPlan::Make { uuid, level, stripe_bytes, force } => {
                make(name, &claimed, (*uuid, *level, *stripe_bytes, *force))?
            }
            ArrayPlan::Assemble { uuid, degraded, force } => assemble(&claimed, *uuid, *degraded, *force)?,
        };
        let places = array.places();
        for claimant in claimed[places..].iter().flatten() {
            if let Err(error) = claimant.leave(array.uuid()) {
                tracing::warn!(array = name, member = %claimant.name, %error, "still has the superblock of an array that it did not join");
            }
            claimant.lane.close();
        }
        let claimed = &claimed[..places];
        let lanes: Vec<Option<Arc<Lane>>> =
            claimed.iter().map(|claimant| claimant.as_ref().map(|claimant| Arc::clone(&claimant.lane))).collect();
        array.tick();
        let names = members[..places].iter().map(|member| member.name.clone()).collect();
        let shape = (array.sectors(), array.shape().sector_bytes, array.max_request_bytes());
        let raw = array.shape().raw_bytes();
        let info = composite_info(name, array.uuid(), shape, raw);
        let composite = Composite::new(Machine::Array(Box::new(array)), info, lanes, names);
        std::mem::forget(release);
        composite.until(|machine| match machine {
            Machine::Array(array) => Ok(array.is_ready()?),
            Machine::Cached(_) => Ok(true),
        })
    }
}

fn make(
    name: &str,
    claimed: &[Option<Claimant>],
    (uuid, level, stripe_bytes, force): (Uuid, Level, u64, bool),
) -> Result<Array, ArrayError> {
    let members: Vec<Member> = claimed.iter().flatten().map(|claimant| claimant.member).collect();
    let shape = Shape::new(level, &members, stripe_bytes, REGION_BYTES)?;
    for claimant in claimed.iter().flatten() {
        if !force && !claimant.is_empty()? {
            return Err(ArrayError::NotEmpty { member: claimant.name.clone() });
        }
    }
    let superblocks = Array::format(uuid, name, &shape, &members);
    for claimant in claimed.iter().flatten() {
        claimant.clear()?;
    }
    for (claimant, superblock) in claimed.iter().flatten().zip(&superblocks) {
        claimant.write_superblock(superblock)?;
    }
    assemble(claimed, uuid, false, false)
}

fn assemble(claimed: &[Option<Claimant>], uuid: Uuid, degraded: bool, force: bool) -> Result<Array, ArrayError> {
    let mut given = Vec::new();
    for claimant in claimed {
        given.push(match claimant {
            None => None,
            Some(claimant) => Some((claimant.member, claimant.superblock()?)),
        });
    }
    let mut array = Array::assemble(uuid, &given, degraded, force)?;
    for (position, claimant) in claimed[..array.places()].iter().enumerate() {
        for (snapshot, sector) in claimant.as_ref().map_or(Ok(Vec::new()), Claimant::snapshots)? {
            array.brought(position, &snapshot, &sector);
        }
    }
    Ok(array)
}
