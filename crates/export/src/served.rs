//! What a device thread serves: a device, one that is being moved to another device, or a composite of devices that have threads of
//! their own: an array, or a cached volume.
//!
//! Whatever is asked of a device only, a composite answers as a device without it would: it has no clones, no drills and no model of a
//! card. An array has snapshots, a cached volume has none.

use std::time::Duration;

use device::{
    Background, Completion, Condition, Device, Extent, Figures, Info, Io, IoError, PowerCut, Settings, Shown, Snapshot,
    SnapshotChange, SnapshotClone, SnapshotError, SnapshotId, Status, Submitted, ZoneAction, ZoneError, Zones,
};

use crate::composite::Composite;
use crate::moving::Moving;

/// What clients use.
#[allow(clippy::large_enum_variant, reason = "there is one a thread, and a device is what it mostly is")]
pub enum Served {
    /// A device, and the way to another one to which it is being moved.
    Device(Device, Option<Box<Moving>>),
    /// An array, or a cached volume.
    Composite(Box<Composite>),
}

impl From<Composite> for Served {
    fn from(composite: Composite) -> Served {
        Served::Composite(Box::new(composite))
    }
}

impl From<Device> for Served {
    fn from(device: Device) -> Served {
        Served::Device(device, None)
    }
}

/// Takes the answer from whichever it is.
macro_rules! either {
    ($served:expr, $one:ident => $call:expr) => {
        match $served {
            Served::Device($one, _) => $call,
            Served::Composite($one) => $call,
        }
    };
}

impl Served {
    /// The device, if it is one.
    pub fn device(&mut self) -> Option<&mut Device> {
        match self {
            Served::Device(device, _) => Some(device),
            Served::Composite(_) => None,
        }
    }

    /// The array or cached volume, if it is one.
    pub fn composite(&mut self) -> Option<&mut Composite> {
        match self {
            Served::Device(..) => None,
            Served::Composite(one) => Some(one),
        }
    }

    /// The move of it that is under way, if there is one.
    pub(crate) fn moving(&mut self) -> Option<&mut Moving> {
        match self {
            Served::Device(_, moving) => moving.as_deref_mut(),
            Served::Composite(_) => None,
        }
    }

    /// Whether something waits until the device takes it.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Served::Device(_, Some(moving)) if moving.is_waiting())
    }

    /// Placements of what hosts write that are told apart; 1 where what they say of it counts for nothing.
    pub(crate) fn placements(&self) -> u8 {
        match self {
            Served::Device(device, None) if device.zones().is_none() => device.placements(),
            _ => 1,
        }
    }

    /// Its zones, if it has some.
    pub(crate) fn zones(&self) -> Option<&Zones> {
        match self {
            Served::Device(device, _) => device.zones(),
            Served::Composite(_) => None,
        }
    }

    /// Does something with the zone that begins at a sector.
    pub(crate) fn submit_zone(&mut self, lba: u64, tag: u64, action: ZoneAction) -> Submitted<'static> {
        let zone = self.zones().map_or(Err(ZoneError::Piecemeal), |zones| zones.zone_at(lba));
        match (self, zone) {
            (Served::Device(device, _), Ok(zone)) => device.submit_zone(tag, zone, action),
            (_, Err(error)) => Submitted::Done(Err(error.into())),
            (Served::Composite(_), Ok(_)) => Submitted::Done(Err(ZoneError::Piecemeal.into())),
        }
    }

    /// What is reclaimed at once, bytes.
    pub(crate) fn reclaim_unit_bytes(&self) -> u64 {
        match self {
            Served::Device(device, _) => device.reclaim_unit_bytes(),
            Served::Composite(_) => 0,
        }
    }

    /// Bytes that can be written to a placement until it begins another erase block.
    pub(crate) fn left_in_placement(&self, placement: u8) -> u64 {
        match self {
            Served::Device(device, _) => device.left_in_placement(placement),
            Served::Composite(_) => 0,
        }
    }

    /// What was moved out of an erase block since this was asked last.
    pub(crate) fn next_reclaimed(&mut self) -> Option<device::Reclaimed> {
        match self {
            Served::Device(device, _) => device.next_reclaimed(),
            Served::Composite(_) => None,
        }
    }

    /// A placement is to begin another erase block.
    pub(crate) fn renew_placement(&mut self, placement: u8) {
        if let Served::Device(device, _) = self {
            device.renew_placement(placement);
        }
    }

    #[inline]
    pub(crate) fn info(&self) -> &Info {
        either!(self, one => one.info())
    }

    pub(crate) fn settings(&self) -> Settings {
        either!(self, one => one.settings())
    }

    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Served::Device(device, _) => device.is_read_only(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub(crate) fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        match self {
            Served::Device(device, None) => device.submit(tag, io),
            Served::Device(_, Some(moving)) => moving.submit(tag, io),
            Served::Composite(one) => one.submit(tag, io),
        }
    }

    #[inline]
    pub(crate) fn submit_in<'a>(
        &mut self,
        view: Option<SnapshotId>,
        placement: u8,
        tag: u64,
        io: Io<'a>,
    ) -> Submitted<'a> {
        match self {
            Served::Device(device, None) => device.submit_placed(view, placement, tag, io),
            Served::Device(..) if view.is_some() => Submitted::Done(Err(IoError::NoSnapshot)),
            Served::Device(_, Some(moving)) => moving.submit(tag, io),
            Served::Composite(one) => match (view, io) {
                (Some(_), io @ (Io::ReadSnapshot { .. } | Io::Flush)) | (None, io) => one.submit(tag, io),
                (Some(_), _) => Submitted::Done(Err(IoError::ReadOnly)),
            },
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Completion> {
        match self {
            Served::Device(device, None) => device.poll(),
            Served::Device(device, Some(moving)) => moving.poll(device),
            Served::Composite(one) => one.poll(),
        }
    }

    #[inline]
    pub(crate) fn queue_depth(&self) -> Option<u8> {
        match self {
            Served::Device(device, _) => device.queue_depth(),
            Served::Composite(_) => None,
        }
    }

    pub(crate) fn held_back(&self) -> &'static str {
        match self {
            Served::Device(device, _) => device.held_back(),
            Served::Composite(_) => "it waits for its members",
        }
    }

    #[inline]
    pub(crate) fn power_cut(&self) -> Option<&PowerCut> {
        match self {
            Served::Device(device, _) => device.power_cut(),
            Served::Composite(_) => None,
        }
    }

    pub(crate) fn drills_in_words(&self) -> String {
        match self {
            Served::Device(device, _) => device.drills_in_words(),
            Served::Composite(_) => String::new(),
        }
    }

    #[inline]
    pub(crate) fn time_left(&mut self) -> Option<Duration> {
        match self {
            Served::Device(device, _) => device.time_left(),
            Served::Composite(_) => None,
        }
    }

    #[inline]
    pub(crate) fn can_go_on(&self) -> bool {
        match self {
            Served::Device(device, _) => device.can_go_on(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Served::Device(device, None) => device.is_idle(),
            Served::Device(device, Some(moving)) => moving.is_idle() && device.is_idle(),
            Served::Composite(one) => one.is_idle(),
        }
    }

    pub(crate) fn idle(&mut self) -> bool {
        match self {
            Served::Device(_, Some(moving)) if !moving.is_idle() => true,
            Served::Device(device, _) => device.idle(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub(crate) fn is_untidy(&self) -> bool {
        match self {
            Served::Device(device, _) => device.is_untidy(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub(crate) fn has_background(&self) -> bool {
        match self {
            Served::Device(device, None) => device.has_background(),
            Served::Device(device, Some(moving)) => moving.has_background() || device.has_background(),
            Served::Composite(one) => one.has_background(),
        }
    }

    pub(crate) fn background(&mut self) -> Background {
        match self {
            Served::Device(device, None) => device.background(),
            Served::Device(device, Some(moving)) => {
                moving.background();
                match device.background() {
                    Background::Nothing => Background::GoesOn,
                    goes_on => goes_on,
                }
            }
            Served::Composite(one) => one.background(),
        }
    }

    /// Every figure; what a composite has none of is 0.
    pub fn figures(&self) -> Figures {
        either!(self, one => one.figures())
    }

    pub(crate) fn status(&self) -> Status {
        either!(self, one => one.status())
    }

    pub(crate) fn condition(&self) -> Condition {
        either!(self, one => one.condition())
    }

    pub(crate) fn wear(&self) -> Option<(Vec<u32>, u32)> {
        match self {
            Served::Device(device, _) => device.wear(),
            Served::Composite(_) => None,
        }
    }

    /// Of an array it says that what its members have not been asked about yet holds data.
    pub(crate) fn extent(&self, lba: u64, max: u64) -> Extent {
        match self {
            Served::Device(device, _) => device.extent(lba, max),
            Served::Composite(one) => one.extent(lba, max),
        }
    }

    pub(crate) fn extent_in(&self, view: Option<SnapshotId>, lba: u64, max: u64) -> Result<Extent, SnapshotError> {
        match self {
            Served::Device(device, _) => device.extent_in(view, lba, max),
            Served::Composite(one) => match view {
                None => Ok(one.extent(lba, max)),
                // Members are not asked where it has holes.
                Some(id) if self.snapshot(id).is_some() => Ok(Extent { count: max, mapped: true }),
                Some(_) => Err(SnapshotError::Unknown),
            },
        }
    }

    pub(crate) fn compare(
        &self,
        old: Option<SnapshotId>,
        new: Option<SnapshotId>,
        lba: u64,
        max: u64,
    ) -> Result<(u64, Option<bool>), SnapshotError> {
        match self {
            Served::Device(device, _) => device.compare(old, new, lba, max),
            // Nothing is known of what it held before.
            Served::Composite(_) => Ok((max, Some(true))),
        }
    }

    /// The snapshot or clone of a name.
    pub fn view_named(&self, name: &str) -> Option<Shown> {
        match self {
            Served::Device(device, _) => device.view_named(name),
            Served::Composite(_) => {
                let found = self.snapshots().iter().find(|snapshot| snapshot.name == name)?;
                Some(Shown { id: found.id, is_clone: false })
            }
        }
    }

    /// The snapshots, from the oldest to the newest.
    pub fn snapshots(&self) -> &[Snapshot] {
        either!(self, one => one.snapshots())
    }

    /// Begins to change the snapshots. False where the same is to be asked again: a device has not done anything then, and an array has
    /// begun. A device's change survives a power cut with the next flush, an array's at once.
    ///
    /// # Errors
    /// It cannot be done.
    pub fn begin_snapshot_change(&mut self, change: &SnapshotChange) -> Result<bool, SnapshotError> {
        either!(self, one => one.begin_snapshot_change(change))
    }

    pub(crate) fn find_clone(&self, id: SnapshotId) -> Option<&SnapshotClone> {
        match self {
            Served::Device(device, _) => device.find_clone(id),
            Served::Composite(_) => None,
        }
    }

    pub(crate) fn snapshot(&self, id: SnapshotId) -> Option<&Snapshot> {
        match self {
            Served::Device(device, _) => device.snapshot(id),
            Served::Composite(one) => one.snapshots().iter().find(|snapshot| snapshot.id == id),
        }
    }

    pub(crate) fn look_at_store(&mut self) {
        if let Served::Device(device, _) = self {
            device.look_at_store();
        }
    }

    /// # Errors
    /// Not everything could be made durable.
    pub(crate) fn detach(self) -> Result<(), IoError> {
        match self {
            Served::Device(device, _) => device.detach(),
            Served::Composite(one) => one.detach(),
        }
    }
}
