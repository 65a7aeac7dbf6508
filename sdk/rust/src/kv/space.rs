//! What a store needs of a device.

use std::ops::Range;

use crate::{Batch, Device, Error, Pending};

/// Waits for a change, and tells what came of it.
pub type Answer<'a> = Box<dyn FnOnce() -> Result<(), Error> + 'a>;

/// A change of a [`Space`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpaceChange {
    /// Whole sectors are written.
    Write {
        /// The first.
        lba: u64,
        /// What they hold then.
        data: Vec<u8>,
    },
    /// Sectors are forgotten.
    Trim {
        /// The first.
        lba: u64,
        /// How many.
        count: u64,
    },
}

/// Sectors that a store may lie on: a [`Device`], or in tests whatever behaves like one.
pub trait Space {
    /// Bytes of a sector.
    fn sector_bytes(&self) -> u32;
    /// How many sectors there are.
    fn sectors(&self) -> u64;
    /// Sectors of one atomic change.
    fn max_sectors(&self) -> u64;
    /// Reads some sectors from each of some places on, all at once; those that are not mapped read as zeros.
    ///
    /// # Errors
    /// Some cannot be read.
    fn read(&self, places: &[(u64, u32)]) -> Result<Vec<Vec<u8>>, Error>;
    /// The ranges of mapped sectors within others, `max` at most.
    ///
    /// # Errors
    /// The space is not there any more.
    fn mapped(&self, within: Range<u64>, max: usize) -> Result<Vec<Range<u64>>, Error>;
    /// Begins to make all of the changes, or none; they are durable when the answer says so. None of them touches what another touches, or
    /// what one that is under way touches.
    ///
    /// # Errors of the answer
    /// None of them is made, or the device says that it is in doubt.
    fn begin(&self, changes: Vec<SpaceChange>) -> Answer<'_>;
}

impl Space for Device {
    fn sector_bytes(&self) -> u32 {
        self.capabilities().sector_bytes
    }

    fn sectors(&self) -> u64 {
        self.capabilities().sectors
    }

    fn max_sectors(&self) -> u64 {
        u64::from(self.capabilities().max_write_bytes / self.capabilities().sector_bytes)
    }

    fn read(&self, places: &[(u64, u32)]) -> Result<Vec<Vec<u8>>, Error> {
        let begun: Vec<_> = places.iter().map(|(lba, sectors)| self.begin_read(*lba, *sectors)).collect();
        begun.into_iter().map(Pending::wait).collect()
    }

    fn mapped(&self, within: Range<u64>, max: usize) -> Result<Vec<Range<u64>>, Error> {
        self.ranges(within).take(max).collect()
    }

    fn begin(&self, changes: Vec<SpaceChange>) -> Answer<'_> {
        let batch = changes.iter().fold(Batch::new(), |batch, change| match change {
            SpaceChange::Write { lba, data } => batch.write(*lba, data),
            SpaceChange::Trim { lba, count } => batch.trim(*lba, *count),
        });
        let begun = self.begin_batch(batch.durable());
        Box::new(|| begun.wait())
    }
}
