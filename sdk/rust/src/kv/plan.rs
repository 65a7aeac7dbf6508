//! A change of slots, made up in memory until it is carried out as one batch.

use std::collections::BTreeMap;
use std::ops::Range;

use super::KvError;
use super::layout::{Held, Layout, Record, held};
use super::space::{Space, SpaceChange};

/// Records of trims that share a sector of a batch, at the least: those of sectors of 512 bytes.
const TRIMS_OF_A_SECTOR: u64 = 20;

/// What a slot is to hold.
enum Planned {
    Nothing,
    Gone,
    Record(Vec<u8>),
}

/// Where a key's record lies, or may lie.
pub(crate) enum Place {
    /// It is there.
    Found(u64),
    /// It is not there; a record may be put into this slot.
    Free(Option<u64>),
}

/// The store as it will be.
pub(crate) struct Plan<'a, S> {
    pub(crate) space: &'a S,
    pub(crate) layout: &'a Layout,
    planned: BTreeMap<u64, Planned>,
}

impl<'a, S: Space> Plan<'a, S> {
    pub(crate) fn new(space: &'a S, layout: &'a Layout) -> Plan<'a, S> {
        Plan { space, layout, planned: BTreeMap::new() }
    }

    /// Looks for a key's record.
    pub(crate) fn find(&self, pool: u64, key: &[u8]) -> Result<Place, KvError> {
        let window = self.layout.window(pool, key);
        let mapped = Mapped::look(self.space, self.layout, window.clone())?;
        let mut free = None;
        for slot in window {
            let matches = match self.planned.get(&slot) {
                Some(Planned::Nothing) => return Ok(Place::Free(free.or(Some(slot)))),
                Some(Planned::Gone) => None,
                Some(Planned::Record(bytes)) => Some(is_of(bytes, pool, key)),
                None if mapped.sectors(slot) == 0 => return Ok(Place::Free(free.or(Some(slot)))),
                None => match self.read(slot, mapped.sectors(slot))? {
                    Slot::Gone => None,
                    Slot::Record(bytes) => Some(is_of(&bytes, pool, key)),
                },
            };
            match matches {
                Some(true) => return Ok(Place::Found(slot)),
                Some(false) => {}
                None => free = free.or(Some(slot)),
            }
        }
        Ok(Place::Free(free))
    }

    /// Reads the mapped sectors of a slot.
    pub(crate) fn read(&self, slot: u64, sectors: u32) -> Result<Slot, KvError> {
        let lba = self.layout.lba(slot);
        let bytes = self.space.read(lba, sectors)?;
        match held(&bytes) {
            Some(Held::Gone) => Ok(Slot::Gone),
            Some(Held::Record(_)) => Ok(Slot::Record(bytes)),
            None => Err(KvError::Corrupt { lba }),
        }
    }

    pub(crate) fn put(&mut self, slot: u64, record: &Record<'_>) {
        self.planned.insert(slot, Planned::Record(self.layout.record(record)));
    }

    /// Empties a slot; where a search may have to go on behind it, a mark stays.
    pub(crate) fn delete(&mut self, slot: u64) -> Result<(), KvError> {
        if self.is_taken(slot + 1)? {
            self.planned.insert(slot, Planned::Gone);
            return Ok(());
        }
        self.planned.insert(slot, Planned::Nothing);
        // Marks in front of it lead nowhere any more.
        let mut before = slot;
        while before > 0 && self.is_gone(before - 1)? {
            before -= 1;
            self.planned.insert(before, Planned::Nothing);
        }
        Ok(())
    }

    fn is_taken(&self, slot: u64) -> Result<bool, KvError> {
        Ok(match self.planned.get(&slot) {
            Some(planned) => !matches!(planned, Planned::Nothing),
            None => {
                slot < self.layout.slots && Mapped::look(self.space, self.layout, slot..slot + 1)?.sectors(slot) > 0
            }
        })
    }

    fn is_gone(&self, slot: u64) -> Result<bool, KvError> {
        match self.planned.get(&slot) {
            Some(planned) => Ok(matches!(planned, Planned::Gone)),
            None => {
                let mapped = Mapped::look(self.space, self.layout, slot..slot + 1)?.sectors(slot);
                // A mark has one sector.
                Ok(mapped == 1 && matches!(self.read(slot, 1)?, Slot::Gone))
            }
        }
    }

    /// Whether nothing is to be changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// Sectors of the device's batch that carries the plan out, at most.
    pub(crate) fn sectors(&self) -> u64 {
        let sector = u64::from(self.layout.sector_bytes);
        let written: u64 = self
            .planned
            .values()
            .map(|planned| match planned {
                Planned::Nothing => 0,
                Planned::Gone => 1,
                Planned::Record(bytes) => bytes.len() as u64 / sector,
            })
            .sum();
        written + (self.planned.len() as u64).div_ceil(TRIMS_OF_A_SECTOR)
    }

    /// Carries it out: all of it, or nothing.
    pub(crate) fn carry_out(self) -> Result<(), KvError> {
        let (sectors, max) = (self.sectors(), self.space.max_sectors());
        if sectors > max {
            return Err(KvError::TooLarge { sectors, max });
        }
        let Plan { space, layout, planned } = self;
        let mut changes = Vec::new();
        for (slot, planned) in planned {
            let lba = layout.lba(slot);
            let before = u64::from(Mapped::look(space, layout, slot..slot + 1)?.sectors(slot));
            let data = match planned {
                Planned::Nothing => Vec::new(),
                Planned::Gone => layout.gone(),
                Planned::Record(bytes) => bytes,
            };
            let written = data.len() as u64 / u64::from(layout.sector_bytes);
            if written > 0 {
                changes.push(SpaceChange::Write { lba, data });
            }
            if before > written {
                changes.push(SpaceChange::Trim { lba: lba + written, count: before - written });
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        space.change(changes).map_err(KvError::from)
    }
}

/// What a slot that is mapped holds.
pub(crate) enum Slot {
    Gone,
    Record(Vec<u8>),
}

fn is_of(bytes: &[u8], pool: u64, key: &[u8]) -> bool {
    matches!(held(bytes), Some(Held::Record(record)) if record.pool == pool && record.key == key)
}

/// How much of each slot of some is mapped, from its start.
pub(crate) struct Mapped {
    first: u64,
    sectors: Vec<u32>,
}

impl Mapped {
    pub(crate) fn look(space: &impl Space, layout: &Layout, slots: Range<u64>) -> Result<Mapped, KvError> {
        let mut sectors = vec![0; (slots.end - slots.start) as usize];
        let within = layout.lba(slots.start)..layout.lba(slots.end);
        for range in space.mapped(within, usize::MAX)? {
            let (mut slot, at_start) = layout.slot_of(range.start);
            if !at_start {
                return Err(KvError::Corrupt { lba: range.start });
            }
            while layout.lba(slot) < range.end && slot < slots.end {
                let end = range.end.min(layout.lba(slot + 1));
                sectors[(slot - slots.start) as usize] = (end - layout.lba(slot)) as u32;
                slot += 1;
            }
        }
        Ok(Mapped { first: slots.start, sectors })
    }

    pub(crate) fn sectors(&self, slot: u64) -> u32 {
        self.sectors.get((slot - self.first) as usize).copied().unwrap_or(0)
    }
}
