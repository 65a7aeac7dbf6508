//! What a device thread serves: a device, one that is being moved to another device, or a composite of devices that have threads of
//! their own: an array, or a cached volume.
//!
//! Whatever is asked of a device only, a composite answers as a device without it would: it has no snapshots, no drills and no model of
//! a card.

use std::time::Duration;

use device::{
    Background, Completion, Condition, Device, Extent, Figures, Info, Io, IoError, PowerCut, Settings, Shown, Snapshot,
    SnapshotClone, SnapshotError, SnapshotId, Status, Submitted,
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
    pub fn moving(&mut self) -> Option<&mut Moving> {
        match self {
            Served::Device(_, moving) => moving.as_deref_mut(),
            Served::Composite(_) => None,
        }
    }

    /// Whether something waits until the device takes it.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        matches!(self, Served::Device(_, Some(moving)) if moving.is_waiting())
    }

    #[inline]
    pub fn info(&self) -> &Info {
        either!(self, one => one.info())
    }

    pub fn settings(&self) -> Settings {
        either!(self, one => one.settings())
    }

    pub fn is_read_only(&self) -> bool {
        match self {
            Served::Device(device, _) => device.is_read_only(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        match self {
            Served::Device(device, None) => device.submit(tag, io),
            Served::Device(_, Some(moving)) => moving.submit(tag, io),
            Served::Composite(one) => one.submit(tag, io),
        }
    }

    #[inline]
    pub fn submit_in<'a>(&mut self, view: Option<SnapshotId>, tag: u64, io: Io<'a>) -> Submitted<'a> {
        match self {
            Served::Device(device, None) => device.submit_in(view, tag, io),
            Served::Composite(_) | Served::Device(..) if view.is_some() => Submitted::Done(Err(IoError::NoSnapshot)),
            Served::Device(_, Some(moving)) => moving.submit(tag, io),
            Served::Composite(one) => one.submit(tag, io),
        }
    }

    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        match self {
            Served::Device(device, None) => device.poll(),
            Served::Device(device, Some(moving)) => moving.poll(device),
            Served::Composite(one) => one.poll(),
        }
    }

    #[inline]
    pub fn queue_depth(&self) -> Option<u8> {
        match self {
            Served::Device(device, _) => device.queue_depth(),
            Served::Composite(_) => None,
        }
    }

    pub fn held_back(&self) -> &'static str {
        match self {
            Served::Device(device, _) => device.held_back(),
            Served::Composite(_) => "it waits for its members",
        }
    }

    #[inline]
    pub fn power_cut(&self) -> Option<&PowerCut> {
        match self {
            Served::Device(device, _) => device.power_cut(),
            Served::Composite(_) => None,
        }
    }

    pub fn drills_in_words(&self) -> String {
        match self {
            Served::Device(device, _) => device.drills_in_words(),
            Served::Composite(_) => String::new(),
        }
    }

    #[inline]
    pub fn time_left(&mut self) -> Option<Duration> {
        match self {
            Served::Device(device, _) => device.time_left(),
            Served::Composite(_) => None,
        }
    }

    #[inline]
    pub fn can_go_on(&self) -> bool {
        match self {
            Served::Device(device, _) => device.can_go_on(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub fn is_idle(&self) -> bool {
        match self {
            Served::Device(device, None) => device.is_idle(),
            Served::Device(device, Some(moving)) => moving.is_idle() && device.is_idle(),
            Served::Composite(one) => one.is_idle(),
        }
    }

    pub fn idle(&mut self) -> bool {
        match self {
            Served::Device(_, Some(moving)) if !moving.is_idle() => true,
            Served::Device(device, _) => device.idle(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub fn is_untidy(&self) -> bool {
        match self {
            Served::Device(device, _) => device.is_untidy(),
            Served::Composite(_) => false,
        }
    }

    #[inline]
    pub fn has_background(&self) -> bool {
        match self {
            Served::Device(device, None) => device.has_background(),
            Served::Device(device, Some(moving)) => moving.has_background() || device.has_background(),
            Served::Composite(one) => one.has_background(),
        }
    }

    pub fn background(&mut self) -> Background {
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

    pub fn figures(&self) -> Figures {
        either!(self, one => one.figures())
    }

    pub fn status(&self) -> Status {
        either!(self, one => one.status())
    }

    pub fn condition(&self) -> Condition {
        either!(self, one => one.condition())
    }

    pub fn wear(&self) -> Option<(Vec<u32>, u32)> {
        match self {
            Served::Device(device, _) => device.wear(),
            Served::Composite(_) => None,
        }
    }

    /// Of an array it says that what its members have not been asked about yet holds data.
    pub fn extent(&self, lba: u64, max: u64) -> Extent {
        match self {
            Served::Device(device, _) => device.extent(lba, max),
            Served::Composite(one) => one.extent(lba, max),
        }
    }

    pub fn extent_in(&self, view: Option<SnapshotId>, lba: u64, max: u64) -> Result<Extent, SnapshotError> {
        match self {
            Served::Device(device, _) => device.extent_in(view, lba, max),
            Served::Composite(_) => Ok(self.extent(lba, max)),
        }
    }

    pub fn compare(
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

    pub fn view_named(&self, name: &str) -> Option<Shown> {
        match self {
            Served::Device(device, _) => device.view_named(name),
            Served::Composite(_) => None,
        }
    }

    pub fn find_clone(&self, id: SnapshotId) -> Option<&SnapshotClone> {
        match self {
            Served::Device(device, _) => device.find_clone(id),
            Served::Composite(_) => None,
        }
    }

    pub fn snapshot(&self, id: SnapshotId) -> Option<&Snapshot> {
        match self {
            Served::Device(device, _) => device.snapshot(id),
            Served::Composite(_) => None,
        }
    }

    pub fn look_at_store(&mut self) {
        if let Served::Device(device, _) = self {
            device.look_at_store();
        }
    }

    /// # Errors
    /// Not everything could be made durable.
    pub fn detach(self) -> Result<(), IoError> {
        match self {
            Served::Device(device, _) => device.detach(),
            Served::Composite(one) => one.detach(),
        }
    }
}
