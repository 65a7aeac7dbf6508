//! The store: its pools, and what may be asked of it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::changing::Changing;
use super::iter::{Iter, next_taken};
use super::layout::{Head, Layout, MAX_KEY_BYTES, MAX_POOL_NAME_BYTES, MAX_VALUE_BYTES, RECORD_HEAD, Record, u64_at};
use super::plan::{Place, Plan};
use super::slots::{Slot, Slots};
use super::{KvError, Space, SpaceChange};
use crate::Device;

/// The pool of pools: their names, and the numbers behind them.
const POOLS: u64 = 0;
/// The pool that is always there.
const DEFAULT: u64 = 1;
/// Slots that a sweep looks at before it lets others go on.
const SWEPT: usize = 16;

/// What a new store is like.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The longest value, bytes. It sets the length of the slots: the longer, the fewer there are.
    pub max_value_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_value_bytes: 4096 }
    }
}

/// A part of a store with keys of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub(super) id: u64,
    name: String,
}

impl Pool {
    /// Its name; empty for the pool that is always there.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// From when on it is not seen any more.
    pub expires: Option<SystemTime>,
}

impl Entry {
    pub(super) fn of(head: Head, value: Vec<u8>) -> Entry {
        let expires = (head.expires > 0).then(|| UNIX_EPOCH.checked_add(Duration::from_secs(head.expires))).flatten();
        Entry { key: head.key, value, expires }
    }
}

/// One of several changes that are made together.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pool: &'a Pool,
    key: &'a [u8],
    /// The value, and when it expires; nothing to delete the key.
    value: Option<(&'a [u8], Option<SystemTime>)>,
}

impl<'a> Change<'a> {
    /// Puts a value behind a key, whether there is one or not.
    pub fn put(pool: &'a Pool, key: &'a [u8], value: &'a [u8]) -> Change<'a> {
        Change { pool, key, value: Some((value, None)) }
    }

    /// Like [`Change::put`], with a moment from which on the record is not seen. It counts in whole seconds.
    pub fn put_until(pool: &'a Pool, key: &'a [u8], value: &'a [u8], expires: SystemTime) -> Change<'a> {
        Change { pool, key, value: Some((value, Some(expires))) }
    }

    /// Deletes a key, if it is there.
    pub fn delete(pool: &'a Pool, key: &'a [u8]) -> Change<'a> {
        Change { pool, key, value: None }
    }
}

/// A key-value store on a device: see [the module's page](super).
pub struct Store<S = Device> {
    space: S,
    layout: Layout,
    changing: Changing,
    /// Pools that were made since the store was opened.
    made: Mutex<BTreeSet<u64>>,
    clock: fn() -> SystemTime,
}

impl<S: Space> Store<S> {
    /// Makes a store on a device that holds nothing.
    ///
    /// # Errors
    /// The device is not empty or too small, or values of that length would not be atomic.
    pub fn create(space: S, options: &Options) -> Result<Store<S>, KvError> {
        let (sector, sectors) = (space.sector_bytes(), space.sectors());
        let slot_bytes = options.max_value_bytes.saturating_add(RECORD_HEAD + MAX_KEY_BYTES);
        let slot_sectors = slot_bytes.div_ceil(sector as usize) as u64;
        // A record that takes the place of a longer one takes a sector more, for the trim.
        let most = (space.max_sectors().saturating_sub(1) as usize).saturating_mul(sector as usize);
        let most = most.saturating_sub(RECORD_HEAD + MAX_KEY_BYTES).min(MAX_VALUE_BYTES);
        if options.max_value_bytes > most {
            let expected = format!("at most {most}, so that a change is atomic on this device");
            return Err(KvError::Invalid { name: "max_value_bytes", value: options.max_value_bytes as u64, expected });
        }
        let slots = sectors.saturating_sub(1) / slot_sectors;
        if slots == 0 {
            let expected = format!("at least {} for values of this length", slot_sectors + 1);
            return Err(KvError::Invalid { name: "sectors", value: sectors, expected });
        }
        if !space.mapped(0..sectors, 1)?.is_empty() {
            return Err(KvError::NotEmpty);
        }
        let (one, other) = Uuid::new_v4().as_u64_pair();
        let layout = Layout { sector_bytes: sector, slot_sectors: slot_sectors as u32, slots, hash_key: [one, other] };
        space.begin(vec![SpaceChange::Write { lba: 0, data: layout.encode() }])()?;
        Ok(Store { space, layout, changing: Changing::default(), made: Mutex::default(), clock: SystemTime::now })
    }

    /// Opens the store on a device.
    ///
    /// # Errors
    /// There is none, or none of a version that is known.
    pub fn open(space: S) -> Result<Store<S>, KvError> {
        let sector = space.read(&[(0, 1)])?.pop().unwrap_or_default();
        let layout = Layout::decode(&sector, space.sectors())?;
        Ok(Store { space, layout, changing: Changing::default(), made: Mutex::default(), clock: SystemTime::now })
    }

    /// The same store, with another clock: for tests of what expires.
    #[must_use]
    pub fn with_clock(self, clock: fn() -> SystemTime) -> Store<S> {
        Store { clock, ..self }
    }

    /// The longest value, bytes.
    pub fn max_value_bytes(&self) -> usize {
        self.layout.max_value_bytes()
    }

    /// What it lies on.
    pub fn space(&self) -> &S {
        &self.space
    }

    /// The device, when the store is not needed any more.
    pub fn into_space(self) -> S {
        self.space
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Reads slots, and again should one of them have changed meanwhile.
    pub(super) fn steady<T>(
        &self,
        mut read: impl FnMut(&mut Slots<'_, S>) -> Result<T, KvError>,
    ) -> Result<T, KvError> {
        loop {
            let look = self.changing.look();
            let mut slots = Slots::values(&self.space, &self.layout);
            let found = read(&mut slots);
            if self.changing.begin(look, &slots.looked_at(), &[]) {
                return found;
            }
        }
    }

    /// Makes up a change and carries it out: all of it, or nothing. It is made up again should a slot that it looks at have changed meanwhile.
    fn make<T>(&self, mut plan_it: impl FnMut(&mut Plan<'_, S>) -> Result<T, KvError>) -> Result<T, KvError> {
        loop {
            let look = self.changing.look();
            let mut plan = Plan::new(Slots::heads(&self.space, &self.layout));
            let planned = plan_it(&mut plan).and_then(|planned| Ok((planned, plan.changes()?)));
            let slots = if planned.is_ok() { plan.changed() } else { Vec::new() };
            if !self.changing.begin(look, &plan.slots.looked_at(), &slots) {
                continue;
            }
            let (planned, changes) = planned?;
            let answer = if changes.is_empty() { Ok(()) } else { self.space.begin(changes)() };
            self.changing.end(&slots);
            return Ok(answer.map(|()| planned)?);
        }
    }

    fn made(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        // A number is in the set or not: no panic leaves it half-way.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a record that expires then is not seen any more.
    pub(super) fn is_over(&self, expires: u64) -> bool {
        expires > 0 && seconds((self.clock)()) >= expires
    }

    /// The pool that is always there.
    pub fn default_pool(&self) -> Pool {
        Pool { id: DEFAULT, name: String::new() }
    }

    /// The pool of a name, made where there is none.
    ///
    /// # Errors
    /// No pool can have the name, or the store is full.
    pub fn pool(&self, name: &str) -> Result<Pool, KvError> {
        self.make(|plan| {
            if let Some(pool) = self.find_pool(&mut plan.slots, name)? {
                return Ok(pool);
            }
            // Never given out before, so that nothing of a pool that was deleted comes back.
            let id = Uuid::new_v4().as_u64_pair().0.max(DEFAULT + 1);
            self.plan_put(plan, POOLS, name.as_bytes(), &id.to_le_bytes(), 0)?;
            self.made().insert(id);
            Ok(Pool { id, name: name.to_string() })
        })
    }

    /// The names of all pools but the one that is always there.
    ///
    /// # Errors
    /// The device fails.
    pub fn pools(&self) -> Result<Vec<String>, KvError> {
        let names = Iter::new(self, Pool { id: POOLS, name: String::new() })
            .map(|entry| entry.map(|entry| String::from_utf8_lossy(&entry.key).into_owned()));
        let mut names = names.collect::<Result<Vec<_>, _>>()?;
        names.sort();
        Ok(names)
    }

    /// Deletes a pool with all that it holds, at once. The space comes back with [`Store::sweep`].
    ///
    /// # Errors
    /// It is not there.
    pub fn delete_pool(&self, name: &str) -> Result<(), KvError> {
        let id = self.make(|plan| {
            let pool = self.find_pool(&mut plan.slots, name)?;
            let pool = pool.ok_or_else(|| KvError::NoPool { name: name.to_string() })?;
            self.plan_delete(plan, POOLS, name.as_bytes())?;
            Ok(pool.id)
        })?;
        self.made().remove(&id);
        Ok(())
    }

    fn find_pool(&self, slots: &mut Slots<'_, S>, name: &str) -> Result<Option<Pool>, KvError> {
        let len = name.len();
        if len == 0 || len > MAX_POOL_NAME_BYTES {
            return Err(KvError::PoolName { len });
        }
        let found = self.find(slots, POOLS, name.as_bytes())?;
        Ok(found.map(|entry| Pool { id: u64_at(&entry.value, 0), name: name.to_string() }))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The key is none, or the device fails.
    pub fn get(&self, pool: &Pool, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        Ok(self.entry(pool, key)?.map(|entry| entry.value))
    }

    /// The record of a key.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn entry(&self, pool: &Pool, key: &[u8]) -> Result<Option<Entry>, KvError> {
        check_key(key)?;
        self.steady(|slots| self.find(slots, pool.id, key))
    }

    fn find(&self, slots: &mut Slots<'_, S>, pool: u64, key: &[u8]) -> Result<Option<Entry>, KvError> {
        for slot in self.layout.window(pool, key) {
            match slots.slot(slot)?.clone() {
                Slot::Empty => break,
                Slot::Record(head) if head.is_of(pool, key) => {
                    let value = if self.is_over(head.expires) { None } else { Some(slots.value(slot)?) };
                    return Ok(value.map(|value| Entry::of(head, value)));
                }
                Slot::Gone | Slot::Record(_) => {}
            }
        }
        Ok(None)
    }

    /// Puts a value behind a key, whether there is one or not.
    ///
    /// # Errors
    /// Key or value are too long, the pool is not there any more, the store is full, or the device fails.
    pub fn put(&self, pool: &Pool, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        self.change(&[Change::put(pool, key, value)])
    }

    /// Deletes a key, if it is there.
    ///
    /// # Errors
    /// The key is none, or the device fails.
    pub fn delete(&self, pool: &Pool, key: &[u8]) -> Result<(), KvError> {
        self.change(&[Change::delete(pool, key)])
    }

    /// Makes changes, all or none. Of changes of one key the last one counts.
    ///
    /// # Errors
    /// As [`Store::put`]; or the changes are more than the device makes atomic.
    pub fn change(&self, changes: &[Change<'_>]) -> Result<(), KvError> {
        let max = self.max_value_bytes();
        for change in changes {
            check_key(change.key)?;
            let len = change.value.map_or(0, |(value, _)| value.len());
            if len > max {
                return Err(KvError::Value { len, max });
            }
        }
        let mut pools: Vec<&Pool> =
            changes.iter().map(|change| change.pool).filter(|pool| pool.id != DEFAULT).collect();
        pools.sort_unstable_by_key(|pool| pool.id);
        pools.dedup();
        let keys = changes.iter().map(|change| (change.pool.id, change.key));
        let names = pools.iter().map(|pool| (POOLS, pool.name.as_bytes()));
        let homes: Vec<u64> = keys.chain(names).map(|(pool, key)| self.layout.window(pool, key).start).collect();
        self.make(|plan| {
            // Most records lie there, or will.
            plan.slots.look(homes.iter().copied())?;
            // What is put into a pool that was deleted would never be seen.
            for pool in &pools {
                let found = self.find_pool(&mut plan.slots, &pool.name)?.filter(|found| found.id == pool.id);
                found.ok_or_else(|| KvError::NoPool { name: pool.name.clone() })?;
            }
            for Change { pool, key, value } in changes {
                match value {
                    Some((value, expires)) => {
                        let expires = expires.map_or(0, |expires| seconds(expires).max(1));
                        self.plan_put(plan, pool.id, key, value, expires)?;
                    }
                    None => self.plan_delete(plan, pool.id, key)?,
                }
            }
            Ok(())
        })
    }

    fn plan_put(
        &self,
        plan: &mut Plan<'_, S>,
        pool: u64,
        key: &[u8],
        value: &[u8],
        expires: u64,
    ) -> Result<(), KvError> {
        let slot = match plan.find(pool, key)? {
            Place::Found(slot) => slot,
            Place::Free(slot) => slot.ok_or(KvError::Full)?,
        };
        plan.put(slot, &Record { pool, key, value, expires });
        Ok(())
    }

    fn plan_delete(&self, plan: &mut Plan<'_, S>, pool: u64, key: &[u8]) -> Result<(), KvError> {
        match plan.find(pool, key)? {
            Place::Found(slot) => plan.delete(slot),
            Place::Free(_) => Ok(()),
        }
    }

    /// The records of a pool. What is changed meanwhile may be seen or not.
    pub fn iter(&self, pool: &Pool) -> Iter<'_, S> {
        Iter::new(self, pool.clone())
    }

    /// Gives back the space of records that expired and of pools that were deleted, and tells how many records that were.
    ///
    /// # Errors
    /// The device fails; what was given back until then stays so.
    pub fn sweep(&self) -> Result<u64, KvError> {
        let pools = Iter::new(self, Pool { id: POOLS, name: String::new() });
        let mut live = BTreeSet::from([POOLS, DEFAULT]);
        for entry in pools {
            live.insert(u64_at(&entry?.value, 0));
        }
        let (mut swept, mut next) = (0, 0);
        while next < self.layout.slots {
            let (more, on) = self.make(|plan| {
                let (mut found, mut slot) = (0, next);
                for _ in 0..SWEPT {
                    let Some(taken) = next_taken(&mut plan.slots, slot)? else { return Ok((found, self.layout.slots)) };
                    slot = taken + 1;
                    if let Slot::Record(head) = plan.slots.slot(taken)?
                        // A pool that was made since the sweep began is known to us only.
                        && (!(live.contains(&head.pool) || self.made().contains(&head.pool)) || self.is_over(head.expires))
                    {
                        plan.delete(taken)?;
                        found += 1;
                    }
                }
                Ok((found, slot))
            })?;
            (swept, next) = (swept + more, on);
        }
        Ok(swept)
    }
}

fn check_key(key: &[u8]) -> Result<(), KvError> {
    match key.len() {
        1..=MAX_KEY_BYTES => Ok(()),
        len => Err(KvError::Key { len }),
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
