//! A change of slots, made up in memory until it is carried out as one batch.

use std::collections::BTreeMap;

use super::KvError;
use super::layout::Record;
use super::slots::{Slot, Slots};
use super::space::{Space, SpaceChange};

/// Records of trims that share a sector of a batch, at the least: those of sectors of 512 bytes.
const TRIMS_OF_A_SECTOR: u64 = 20;

/// What a slot is to hold.
enum Planned {
    Nothing,
    Gone,
    Record { pool: u64, key: Vec<u8>, bytes: Vec<u8> },
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
    pub(crate) slots: Slots<'a, S>,
    planned: BTreeMap<u64, Planned>,
}

impl<'a, S: Space> Plan<'a, S> {
    pub(crate) fn new(slots: Slots<'a, S>) -> Plan<'a, S> {
        Plan { slots, planned: BTreeMap::new() }
    }

    /// Looks for a key's record.
    pub(crate) fn find(&mut self, pool: u64, key: &[u8]) -> Result<Place, KvError> {
        let mut free = None;
        for slot in self.slots.layout().window(pool, key) {
            let matches = match self.planned.get(&slot) {
                Some(Planned::Nothing) => return Ok(Place::Free(free.or(Some(slot)))),
                Some(Planned::Gone) => None,
                Some(Planned::Record { pool: of, key: is, .. }) => Some(*of == pool && is == key),
                None => match self.slots.slot(slot)? {
                    Slot::Empty => return Ok(Place::Free(free.or(Some(slot)))),
                    Slot::Gone => None,
                    Slot::Record(head) => Some(head.is_of(pool, key)),
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

    pub(crate) fn put(&mut self, slot: u64, record: &Record<'_>) {
        let bytes = self.slots.layout().record(record);
        self.planned.insert(slot, Planned::Record { pool: record.pool, key: record.key.to_vec(), bytes });
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

    fn is_taken(&mut self, slot: u64) -> Result<bool, KvError> {
        Ok(match self.planned.get(&slot) {
            Some(planned) => !matches!(planned, Planned::Nothing),
            None => slot < self.slots.layout().slots && *self.slots.slot(slot)? != Slot::Empty,
        })
    }

    fn is_gone(&mut self, slot: u64) -> Result<bool, KvError> {
        match self.planned.get(&slot) {
            Some(planned) => Ok(matches!(planned, Planned::Gone)),
            None => Ok(*self.slots.slot(slot)? == Slot::Gone),
        }
    }

    /// Sectors of the device's batch that carries the plan out, at most.
    fn sectors(&self) -> u64 {
        let sector = u64::from(self.slots.layout().sector_bytes);
        let written: u64 = self
            .planned
            .values()
            .map(|planned| match planned {
                Planned::Nothing => 0,
                Planned::Gone => 1,
                Planned::Record { bytes, .. } => bytes.len() as u64 / sector,
            })
            .sum();
        written + (self.planned.len() as u64).div_ceil(TRIMS_OF_A_SECTOR)
    }

    /// The slots that it changes.
    pub(crate) fn changed(&self) -> Vec<u64> {
        self.planned.keys().copied().collect()
    }

    /// What is to be done on the device.
    pub(crate) fn changes(&mut self) -> Result<Vec<SpaceChange>, KvError> {
        let (sectors, max) = (self.sectors(), self.slots.space().max_sectors());
        if sectors > max {
            return Err(KvError::TooLarge { sectors, max });
        }
        let layout = self.slots.layout();
        let mut changes = Vec::new();
        for (slot, planned) in &mut self.planned {
            let lba = layout.lba(*slot);
            let before = self.slots.mapped(*slot)?;
            let data = match planned {
                Planned::Nothing => Vec::new(),
                Planned::Gone => layout.gone(),
                Planned::Record { bytes, .. } => std::mem::take(bytes),
            };
            let written = data.len() as u64 / u64::from(layout.sector_bytes);
            if written > 0 {
                changes.push(SpaceChange::Write { lba, data });
            }
            if before > written {
                changes.push(SpaceChange::Trim { lba: lba + written, count: before - written });
            }
        }
        Ok(changes)
    }
}
