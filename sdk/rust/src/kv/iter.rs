//! A walk over the records of a pool.

use super::slots::{Slot, Slots};
use super::{Entry, KvError, Pool, Space, Store};

/// The records of a pool, in no order that means anything: see [`Store::iter`].
pub struct Iter<'a, S> {
    store: &'a Store<S>,
    pool: Pool,
    /// The next slot.
    slot: u64,
}

impl<'a, S: Space> Iter<'a, S> {
    pub(super) fn new(store: &'a Store<S>, pool: Pool) -> Iter<'a, S> {
        Iter { store, pool, slot: 0 }
    }

    fn step(&mut self) -> Result<Option<Entry>, KvError> {
        loop {
            let found = self.store.steady(|slots| {
                let Some(slot) = next_taken(slots, self.slot)? else { return Ok(None) };
                let entry = match slots.slot(slot)?.clone() {
                    Slot::Record(head) if head.pool == self.pool.id && !self.store.is_over(head.expires) => {
                        let value = slots.value(slot)?;
                        Some(Entry::of(head, value))
                    }
                    _ => None,
                };
                Ok(Some((slot, entry)))
            })?;
            let Some((slot, entry)) = found else { return Ok(None) };
            self.slot = slot + 1;
            if entry.is_some() {
                return Ok(entry);
            }
        }
    }
}

/// The first slot from one on that holds something.
pub(super) fn next_taken<S: Space>(slots: &mut Slots<'_, S>, from: u64) -> Result<Option<u64>, KvError> {
    let layout = slots.layout();
    if from >= layout.slots {
        return Ok(None);
    }
    let found = slots.space().mapped(layout.lba(from)..layout.lba(layout.slots), 1)?;
    let Some(range) = found.first() else { return Ok(None) };
    let (slot, at_start) = layout.slot_of(range.start);
    // Mapped it is, so it holds something: unless it is being changed at this moment, which whoever asks will find.
    if *slots.slot(slot)? == Slot::Empty || !at_start {
        return Err(KvError::Corrupt { lba: range.start });
    }
    Ok(Some(slot))
}

impl<S: Space> Iterator for Iter<'_, S> {
    type Item = Result<Entry, KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.slot = self.store.layout().slots;
        }
        step.transpose()
    }
}
