//! What slots hold, as it is read from the device.

use std::collections::BTreeMap;

use super::KvError;
use super::layout::{Head, Layout, decode};
use super::space::Space;

/// What is known of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Empty,
    /// A mark: the search goes on behind it.
    Gone,
    Record(Head),
}

/// Slots, each read once, from the first sector on. What was looked at is what must not be changing meanwhile.
pub(crate) struct Slots<'a, S> {
    space: &'a S,
    layout: &'a Layout,
    /// Sectors that are read of each at first.
    sectors: u32,
    seen: BTreeMap<u64, Slot>,
    /// The sectors that were read of those that hold records.
    bytes: BTreeMap<u64, Vec<u8>>,
}

impl<'a, S: Space> Slots<'a, S> {
    /// For whoever asks for heads only.
    pub(crate) fn heads(space: &'a S, layout: &'a Layout) -> Slots<'a, S> {
        Slots { space, layout, sectors: 1, seen: BTreeMap::new(), bytes: BTreeMap::new() }
    }

    /// For whoever asks for values: records of up to 4 KiB are read at once.
    pub(crate) fn values(space: &'a S, layout: &'a Layout) -> Slots<'a, S> {
        let sectors = (4096 / layout.sector_bytes).clamp(1, layout.slot_sectors.max(1));
        Slots { sectors, ..Slots::heads(space, layout) }
    }

    pub(crate) fn layout(&self) -> &'a Layout {
        self.layout
    }

    pub(crate) fn space(&self) -> &'a S {
        self.space
    }

    /// Those that were looked at.
    pub(crate) fn looked_at(&self) -> Vec<u64> {
        self.seen.keys().copied().collect()
    }

    /// Reads slots, all at once; those that were read before are left out.
    pub(crate) fn look(&mut self, slots: impl IntoIterator<Item = u64>) -> Result<(), KvError> {
        let mut new: Vec<u64> = slots.into_iter().filter(|slot| !self.seen.contains_key(slot)).collect();
        new.sort_unstable();
        new.dedup();
        let ranges: Vec<(u64, u32)> = new.iter().map(|slot| (self.layout.lba(*slot), self.sectors)).collect();
        for (slot, bytes) in new.into_iter().zip(self.space.read(&ranges)?) {
            let found = decode(&bytes).ok_or(KvError::Corrupt { lba: self.layout.lba(slot) })?;
            if matches!(found, Slot::Record(_)) {
                self.bytes.insert(slot, bytes);
            }
            self.seen.insert(slot, found);
        }
        Ok(())
    }

    /// What a slot holds.
    pub(crate) fn slot(&mut self, slot: u64) -> Result<&Slot, KvError> {
        self.look([slot])?;
        Ok(&self.seen[&slot])
    }

    /// How many sectors of a slot are mapped.
    pub(crate) fn mapped(&mut self, slot: u64) -> Result<u64, KvError> {
        let layout = self.layout;
        let sectors = match self.slot(slot)? {
            Slot::Empty => 0,
            Slot::Gone => 1,
            Slot::Record(head) => layout.record_sectors(head.key.len(), head.value_bytes),
        };
        if sectors > u64::from(layout.slot_sectors) {
            return Err(KvError::Corrupt { lba: layout.lba(slot) });
        }
        Ok(sectors)
    }

    /// The value of the record in a slot.
    pub(crate) fn value(&mut self, slot: u64) -> Result<Vec<u8>, KvError> {
        let corrupt = KvError::Corrupt { lba: self.layout.lba(slot) };
        let sectors = self.mapped(slot)? as u32;
        let (Some(Slot::Record(head)), Some(bytes)) = (self.seen.get(&slot), self.bytes.get_mut(&slot)) else {
            return Err(corrupt);
        };
        if sectors > self.sectors {
            let rest = (self.layout.lba(slot) + u64::from(self.sectors), sectors - self.sectors);
            bytes.truncate(self.sectors as usize * self.layout.sector_bytes as usize);
            self.space.read(&[rest])?.iter().for_each(|rest| bytes.extend(rest));
        }
        Ok(bytes.get(head.value()).ok_or(corrupt)?.to_vec())
    }
}
