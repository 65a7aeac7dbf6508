//! A walk over the records of a pool.

use super::layout::{Held, held};
use super::plan::{Mapped, Plan, Slot};
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
        let _guard = self.store.reading();
        let (space, layout) = (self.store.space(), self.store.layout());
        while self.slot < layout.slots {
            let within = layout.lba(self.slot)..layout.lba(layout.slots);
            let Some(range) = space.mapped(within, 1)?.pop() else { break };
            let (slot, _) = layout.slot_of(range.start);
            self.slot = slot + 1;
            let mapped = Mapped::look(space, layout, slot..slot + 1)?;
            let Slot::Record(bytes) = Plan::new(space, layout).read(slot, mapped.sectors(slot))? else { continue };
            if let Some(Held::Record(record)) = held(&bytes)
                && record.pool == self.pool.id
                && !self.store.is_over(record.expires)
            {
                return Ok(Some(Entry::of(&record)));
            }
        }
        self.slot = layout.slots;
        Ok(None)
    }
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
