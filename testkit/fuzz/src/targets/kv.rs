//! A key-value store: calls with any keys and values, crashes in the middle of changes, and sectors that something else wrote.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openvsl::Error;
use openvsl::kv::{Answer, Change, KvError, Options, Pool, Space, SpaceChange, Store};

use super::Target;
use crate::choices::Choices;
use crate::runner;

pub const TARGET: Target = Target {
    name: "kv",
    about: "calls of a key-value store, crashes, and a device that holds something else",
    weight: 10,
    corpus: super::choices,
    words: &[],
    run,
};

const SECTOR: usize = 512;
/// So few that slots are taken and searches are long.
const SECTORS: u64 = 301;
const CALLS: usize = 64;
const NAMES: [&str; 3] = ["a", "b", "c"];

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1) };
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW.get())
}

/// What happens to the next change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Made,
    /// The power goes before it is made, or after.
    CutBefore,
    CutAfter,
}

/// Sectors in memory, which change as a device's do.
struct Sectors {
    mapped: RefCell<BTreeMap<u64, Vec<u8>>>,
    fate: Cell<Fate>,
}

impl Space for &Sectors {
    fn sector_bytes(&self) -> u32 {
        SECTOR as u32
    }

    fn sectors(&self) -> u64 {
        SECTORS
    }

    fn max_sectors(&self) -> u64 {
        16
    }

    fn read(&self, places: &[(u64, u32)]) -> Result<Vec<Vec<u8>>, Error> {
        let mapped = self.mapped.borrow();
        let sector = |lba| mapped.get(&lba).cloned().unwrap_or_else(|| vec![0; SECTOR]);
        let read = |(lba, sectors): &(u64, u32)| {
            assert!(lba + u64::from(*sectors) <= SECTORS, "it reads beyond the device");
            (*lba..lba + u64::from(*sectors)).flat_map(sector).collect()
        };
        Ok(places.iter().map(read).collect())
    }

    fn mapped(&self, within: Range<u64>, max: usize) -> Result<Vec<Range<u64>>, Error> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for lba in self.mapped.borrow().range(within).map(|(lba, _)| *lba) {
            let count = found.len();
            match found.last_mut() {
                Some(last) if last.end == lba => last.end += 1,
                _ if count == max => break,
                _ => found.push(lba..lba + 1),
            }
        }
        Ok(found)
    }

    fn begin(&self, changes: Vec<SpaceChange>) -> Answer<'_> {
        let mut touched = Vec::new();
        let mut after = self.mapped.borrow().clone();
        let (mut written, mut trims) = (0, 0);
        for change in changes {
            match change {
                SpaceChange::Write { lba, data } => {
                    assert!(!data.is_empty() && data.len().is_multiple_of(SECTOR), "no whole sectors");
                    for (sector, lba) in data.chunks(SECTOR).zip(lba..) {
                        touched.push(lba);
                        after.insert(lba, sector.to_vec());
                        written += 1;
                    }
                }
                SpaceChange::Trim { lba, count } => {
                    assert!(count > 0, "a trim of nothing");
                    trims += 1;
                    (lba..lba + count).for_each(|lba| {
                        touched.push(lba);
                        after.remove(&lba);
                    });
                }
            }
        }
        let count = touched.len();
        touched.sort_unstable();
        touched.dedup();
        assert!(touched.len() == count && touched.iter().all(|lba| *lba < SECTORS), "changes overlap");
        assert!((1..=16).contains(&(written + u64::from(trims > 0))), "more than the device makes atomic");
        let fate = self.fate.replace(Fate::Made);
        if fate != Fate::CutBefore {
            *self.mapped.borrow_mut() = after;
        }
        Box::new(move || if fate == Fate::Made { Ok(()) } else { Err(Error::PowerOff) })
    }
}

/// What the store must hold: by pool and key, the value and when it expires.
type Model = BTreeMap<(String, Vec<u8>), (Vec<u8>, u64)>;

fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    NOW.set(1);
    let sectors = Sectors { mapped: RefCell::default(), fate: Cell::new(Fate::Made) };
    let max_value_bytes = [100, 300, 1500][choices.below(3)];
    let store = Store::create(&sectors, &Options { max_value_bytes }).expect("an empty device");
    let mut store = store.with_clock(now);
    let mut model = Model::new();
    let mut calls = 0;
    while !choices.is_over() && calls < CALLS {
        calls += 1;
        if choices.one_in(200) {
            runner::count(calls as u64, "calls");
            return hostile(&sectors, &mut choices);
        }
        if choices.one_in(8) {
            sectors.fate.set(choices.pick(&[Fate::CutBefore, Fate::CutAfter]));
        }
        let before = model.clone();
        let changed = call(&store, &mut model, &mut choices);
        match changed {
            Ok(()) => {}
            Err(KvError::Device(Error::PowerOff)) => {
                store = Store::open(&sectors).expect("a store after a cut").with_clock(now);
                // All of it, or nothing.
                if !holds(&store, &model) {
                    model = before;
                    assert!(holds(&store, &model), "a change is there in part");
                }
            }
            Err(KvError::Full | KvError::TooLarge { .. } | KvError::Key { .. } | KvError::Value { .. }) => {
                model = before
            }
            Err(error) => panic!("{error}"),
        }
        sectors.fate.set(Fate::Made);
        // Now and then: it reads everything.
        if choices.one_in(16) {
            assert!(holds(&store, &model), "the store holds something else");
        }
    }
    assert!(holds(&store, &model), "the store holds something else at the end");
    runner::count(calls as u64, "calls");
}

/// One call, and what it does to the model if it succeeds.
fn call(store: &Store<&Sectors>, model: &mut Model, choices: &mut Choices<'_>) -> Result<(), KvError> {
    match choices.below(12) {
        0 => {
            let name = choices.pick(&NAMES);
            model.retain(|(pool, _), _| pool != name);
            match store.delete_pool(name) {
                Err(KvError::NoPool { .. }) => Ok(()),
                other => other,
            }
        }
        1 => {
            NOW.set(NOW.get() + 1 + choices.below(5) as u64);
            model.retain(|_, (_, expires)| *expires == 0 || *expires > NOW.get());
            store.sweep().map(drop)
        }
        2 => {
            let (pool, key) = (pool(store, choices)?, key(choices));
            let found = store.get(&pool, &key)?;
            let expected =
                model.get(&(pool.name().into(), key)).filter(|(_, expires)| *expires == 0 || *expires > NOW.get());
            assert_eq!(found.as_ref(), expected.map(|(value, _)| value));
            Ok(())
        }
        _ => {
            let count = 1 + choices.below(3);
            let mut made = Vec::new();
            for _ in 0..count {
                let pool = pool(store, choices)?;
                let (key, deletes, expires) = (key(choices), choices.one_in(3), choices.one_in(4));
                let expires = if expires { NOW.get() + choices.below(4) as u64 } else { 0 };
                let value = if choices.one_in(8) { vec![7; choices.below(1700)] } else { choices.raw(40).to_vec() };
                made.push((pool, key, (!deletes).then_some((value, expires))));
            }
            for (pool, key, value) in &made {
                let place = (pool.name().to_string(), key.clone());
                match value {
                    Some(value) => drop(model.insert(place, value.clone())),
                    None => drop(model.remove(&place)),
                }
            }
            let changes: Vec<Change<'_>> = made
                .iter()
                .map(|(pool, key, value)| match value {
                    Some((value, 0)) => Change::put(pool, key, value),
                    Some((value, expires)) => {
                        Change::put_until(pool, key, value, UNIX_EPOCH + Duration::from_secs(*expires))
                    }
                    None => Change::delete(pool, key),
                })
                .collect();
            store.change(&changes)
        }
    }
}

fn pool(store: &Store<&Sectors>, choices: &mut Choices<'_>) -> Result<Pool, KvError> {
    if choices.one_in(2) { store.pool(choices.pick(&NAMES)) } else { Ok(store.default_pool()) }
}

fn key(choices: &mut Choices<'_>) -> Vec<u8> {
    if choices.one_in(32) { vec![b'k'; choices.below(140)] } else { vec![b'k', choices.below(24) as u8] }
}

/// Whether the store has what the model has, and nothing else.
fn holds(store: &Store<&Sectors>, model: &Model) -> bool {
    let mut found = Model::new();
    let names = store.pools().expect("pools");
    // A pool that was deleted is not made again by looking.
    let pools = names.iter().map(|name| store.pool(name).expect("it is there")).chain([store.default_pool()]);
    for pool in pools {
        for entry in store.iter(&pool) {
            let entry = entry.expect("an entry");
            let expires = entry.expires.map_or(0, |at| at.duration_since(UNIX_EPOCH).expect("later").as_secs());
            assert!(found.insert((pool.name().into(), entry.key), (entry.value, expires)).is_none(), "twice");
        }
    }
    let alive = model.iter().filter(|(_, (_, expires))| *expires == 0 || *expires > NOW.get());
    found.iter().eq(alive)
}

/// Something else wrote to the device: errors are well, panics and endless loops are not.
fn hostile(sectors: &Sectors, choices: &mut Choices<'_>) {
    for _ in 0..1 + choices.below(4) {
        let lba = choices.below(SECTORS as usize) as u64;
        let mut mapped = sectors.mapped.borrow_mut();
        let sector = mapped.entry(lba).or_insert_with(|| vec![0; SECTOR]);
        for _ in 0..choices.below(4) {
            let at = choices.below(64);
            sector[at] = choices.byte();
        }
    }
    // Whatever it says, it comes back; what it changes stays on the device.
    let Ok(store) = Store::open(sectors) else { return };
    let store = store.with_clock(now);
    for _ in 0..8 {
        let _ = hostile_call(&store, choices);
    }
    let _ = store.iter(&store.default_pool()).count();
    let _ = store.sweep();
}

fn hostile_call(store: &Store<&Sectors>, choices: &mut Choices<'_>) -> Result<(), KvError> {
    let (pool, key) = (pool(store, choices)?, key(choices));
    store.get(&pool, &key)?;
    store.put(&pool, &key, choices.raw(600))?;
    store.delete(&pool, &key)
}
