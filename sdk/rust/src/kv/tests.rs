//! Threads that share a store, on sectors that carry changes out late and in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use random::SplitMix64;

use super::{Answer, Change, KvError, Options, Space, SpaceChange, Store};
use crate::Error;

const SECTOR: usize = 512;
/// So few that the threads' records lie among each other, and searches go on behind the first slot: 72 slots for 48 keys, 12 records that
/// take the place of others, and those that are on their way out.
const SECTORS: u64 = 145;
const THREADS: u64 = 6;
const KEYS: u64 = 8;
const STEPS: usize = 150;

#[derive(Default)]
struct Late {
    mapped: Mutex<BTreeMap<u64, Vec<u8>>>,
    under_way: Mutex<BTreeSet<u64>>,
}

impl Space for &Late {
    fn sector_bytes(&self) -> u32 {
        SECTOR as u32
    }

    fn sectors(&self) -> u64 {
        SECTORS
    }

    fn max_sectors(&self) -> u64 {
        64
    }

    fn read(&self, places: &[(u64, u32)]) -> Result<Vec<Vec<u8>>, Error> {
        let read = |place: &(u64, u32)| {
            let mapped = self.mapped.lock().expect("mapped");
            let sectors = place.0..place.0 + u64::from(place.1);
            sectors.flat_map(|lba| mapped.get(&lba).cloned().unwrap_or_else(|| vec![0; SECTOR])).collect()
        };
        Ok(places.iter().map(read).collect())
    }

    fn mapped(&self, within: Range<u64>, max: usize) -> Result<Vec<Range<u64>>, Error> {
        let mapped = self.mapped.lock().expect("mapped");
        Ok(mapped.range(within).take(max).map(|(lba, _)| *lba..*lba + 1).collect())
    }

    fn begin(&self, changes: Vec<SpaceChange>) -> Answer<'_> {
        let sectors = |change: &SpaceChange| match change {
            SpaceChange::Write { lba, data } => *lba..*lba + (data.len() / SECTOR) as u64,
            SpaceChange::Trim { lba, count } => *lba..*lba + count,
        };
        let touched: Vec<u64> = changes.iter().flat_map(sectors).collect();
        let mut under_way = self.under_way.lock().expect("under way");
        let apart = touched.iter().all(|lba| under_way.insert(*lba));
        drop(under_way);
        assert!(apart, "two changes of a sector are under way");
        Box::new(move || {
            std::thread::sleep(Duration::from_micros(touched[0] % 7 * 50));
            let mut mapped = self.mapped.lock().expect("mapped");
            for change in changes {
                match change {
                    SpaceChange::Write { lba, data } => {
                        mapped.extend((lba..).zip(data.chunks(SECTOR).map(<[u8]>::to_vec)));
                    }
                    SpaceChange::Trim { lba, count } => mapped.retain(|at, _| !(lba..lba + count).contains(at)),
                }
            }
            let mut under_way = self.under_way.lock().expect("under way");
            under_way.retain(|lba| !touched.contains(lba));
            Ok(())
        })
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Changes keys of its own, one or two at a time, and looks whether they are as it left them.
fn work(store: &Store<&Late>, thread: u64) -> Result<Model, KvError> {
    let (pool, mut rng, mut model) = (store.default_pool(), SplitMix64::new(thread), Model::new());
    for step in 0..STEPS {
        let keys: Vec<Vec<u8>> = (0..1 + rng.below(2)).map(|_| vec![thread as u8, rng.below(KEYS) as u8]).collect();
        let value = vec![step as u8; 1 + rng.below(900) as usize];
        let deletes = rng.below(3) == 0;
        let changes: Vec<Change<'_>> = keys
            .iter()
            .map(|key| if deletes { Change::delete(&pool, key) } else { Change::put(&pool, key, &value) })
            .collect();
        store.change(&changes)?;
        for key in keys {
            let _ = if deletes { model.remove(&key) } else { model.insert(key, value.clone()) };
        }
        let key = vec![thread as u8, rng.below(KEYS) as u8];
        assert_eq!(store.get(&pool, &key)?, model.get(&key).cloned(), "thread {thread}, step {step}");
    }
    Ok(model)
}

#[test]
fn threads_share_a_store_and_none_loses_what_another_changes() {
    let space = Late::default();
    let store = Store::create(&space, &Options { max_value_bytes: 900 }).expect("a store");
    let models: Vec<Model> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let store = &store;
                    move || work(store, thread)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic").expect("no error")).collect()
    });
    let all: Model = models.into_iter().flatten().collect();
    let mut found = Model::new();
    for entry in store.iter(&store.default_pool()) {
        let entry = entry.expect("an entry");
        assert!(found.insert(entry.key, entry.value).is_none(), "a key is there twice");
    }
    assert_eq!(found, all);
}
