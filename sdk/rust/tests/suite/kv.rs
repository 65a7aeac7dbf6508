//! The key-value store on real devices: examples, limits, and power cuts.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openvsl::kv::{Change, KvError, Options, Pool, Store};
use openvsl::{Device, Drill, Error, Unsynced};

use crate::common::drill_device;

const MIB: u64 = 1 << 20;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1000) };
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn now() -> SystemTime {
    at(NOW.get())
}

fn store(max_value_bytes: usize) -> Store {
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    Store::create(device, &Options { max_value_bytes }).expect("a store").with_clock(now)
}

fn keys(store: &Store, pool: &Pool) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = store.iter(pool).map(|entry| entry.expect("an entry").key).collect();
    keys.sort();
    keys
}

#[test]
fn what_was_put_is_there_after_the_store_was_opened_again() {
    let store = store(20_000);
    let pool = store.default_pool();
    let long: Vec<u8> = (0..20_000u32).map(|at| at as u8).collect();
    store.put(&pool, b"long", &long).expect("put");
    store.put(&pool, &[0xff; 128], b"").expect("the longest key, an empty value");
    let store = Store::open(store.into_space()).expect("opened");
    assert_eq!(store.get(&pool, b"long"), Ok(Some(long)));
    assert_eq!(store.get(&pool, &[0xff; 128]), Ok(Some(Vec::new())));
    assert_eq!(store.get(&pool, b"lon"), Ok(None));
    // A shorter value gives back what it does not need.
    store.put(&pool, b"long", b"short").expect("put");
    store.delete(&pool, &[0xff; 128]).expect("deleted");
    store.delete(&pool, b"never there").expect("nothing to do");
    assert_eq!(store.get(&pool, b"long"), Ok(Some(b"short".to_vec())));
    let mapped: u64 =
        store.space().ranges(1..).map(|range| range.expect("a range")).map(|range| range.end - range.start).sum();
    assert_eq!(mapped, 1);
    assert!(matches!(Store::create(store.into_space(), &Options::default()), Err(KvError::NotEmpty)));
    let empty = Device::memory(64 * MIB, 4096).expect("a device");
    assert!(matches!(Store::open(empty), Err(KvError::NoStore)));
}

#[test]
fn pools_have_keys_of_their_own_and_go_at_once() {
    let store = store(100);
    let (one, other) = (store.pool("one").expect("made"), store.pool("other").expect("made"));
    for (pool, value) in [(&one, b"1"), (&other, b"2"), (&store.default_pool(), b"3")] {
        store.put(pool, b"key", value).expect("put");
    }
    assert_eq!(store.get(&one, b"key"), Ok(Some(b"1".to_vec())));
    assert_eq!(store.pools(), Ok(vec!["one".to_string(), "other".to_string()]));
    assert_eq!(store.pool("one"), Ok(one.clone()));
    store.delete_pool("one").expect("deleted");
    assert_eq!(store.delete_pool("one"), Err(KvError::NoPool { name: "one".into() }));
    assert_eq!(store.put(&one, b"key", b"1"), Err(KvError::NoPool { name: "one".into() }));
    let again = store.pool("one").expect("made anew");
    assert_eq!((store.get(&again, b"key"), keys(&store, &again).len()), (Ok(None), 0), "nothing comes back");
    assert_eq!(store.sweep(), Ok(1));
    assert_eq!(store.get(&other, b"key"), Ok(Some(b"2".to_vec())));
    assert_eq!(store.get(&store.default_pool(), b"key"), Ok(Some(b"3".to_vec())));
}

#[test]
fn what_expired_is_not_seen_and_gives_its_space_back() {
    let store = store(100);
    let pool = store.default_pool();
    let changes =
        [Change::put_until(&pool, b"soon", b"1", at(1010)), Change::put_until(&pool, b"late", b"2", at(2000))];
    store.change(&changes).expect("put");
    assert_eq!(store.entry(&pool, b"soon").expect("read").expect("there").expires, Some(at(1010)));
    NOW.set(1010);
    assert_eq!((store.get(&pool, b"soon"), keys(&store, &pool)), (Ok(None), vec![b"late".to_vec()]));
    assert_eq!((store.sweep(), store.sweep()), (Ok(1), Ok(0)));
    store.put(&pool, b"late", b"for ever").expect("put");
    NOW.set(u64::MAX >> 1);
    assert_eq!(store.get(&pool, b"late"), Ok(Some(b"for ever".to_vec())));
}

#[test]
fn what_cannot_be_is_refused_by_name_and_changes_nothing() {
    let store = store(10_000);
    let pool = store.default_pool();
    store.put(&pool, b"key", b"before").expect("put");
    assert_eq!(store.put(&pool, b"", b""), Err(KvError::Key { len: 0 }));
    assert_eq!(store.put(&pool, &[1; 129], b""), Err(KvError::Key { len: 129 }));
    let max = store.max_value_bytes();
    assert!(max >= 10_000);
    assert_eq!(store.put(&pool, b"key", &vec![0; max + 1]), Err(KvError::Value { len: max + 1, max }));
    assert_eq!(store.pool(""), Err(KvError::PoolName { len: 0 }));
    let large = vec![1; max];
    let many: Vec<[u8; 1]> = (0..200).map(|key| [key]).collect();
    let changes: Vec<Change<'_>> = many.iter().map(|key| Change::put(&pool, key, &large)).collect();
    assert!(matches!(store.change(&changes), Err(KvError::TooLarge { max: 256, .. })));
    let mixed = [Change::put(&pool, b"key", b"after"), Change::put(&pool, &[0; 200], b"")];
    assert_eq!(store.change(&mixed), Err(KvError::Key { len: 200 }));
    assert_eq!(store.get(&pool, b"key"), Ok(Some(b"before".to_vec())));
    assert_eq!(keys(&store, &pool), [b"key".to_vec()]);
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    let longest = Store::create(device, &Options { max_value_bytes: 1 << 20 });
    assert!(matches!(longest, Err(KvError::Invalid { name: "max_value_bytes", .. })));
}

#[test]
fn a_store_that_is_full_says_so_and_goes_on() {
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    let store = Store::create(device, &Options { max_value_bytes: 1_000_000 }).expect("a store");
    let pool = store.default_pool();
    let mut put = 0u32;
    while store.put(&pool, &put.to_le_bytes(), b"value").is_ok() {
        put += 1;
    }
    assert_eq!(store.put(&pool, &put.to_le_bytes(), b"value"), Err(KvError::Full));
    assert!(put >= 32, "{put} of 66 slots");
    // A key's record may lie in any slot but two, so one of three that become free will do.
    let deleted = (0..3u32).find(|key| {
        store.delete(&pool, &key.to_le_bytes()).expect("deleted");
        store.put(&pool, &put.to_le_bytes(), b"value").is_ok()
    });
    assert_eq!(keys(&store, &pool).len(), (put - deleted.expect("there is room again")) as usize);
}

/// What each key may hold: what it held when that was last known, and what a change in doubt was to make of it.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[test]
fn every_change_is_there_or_not_whatever_the_power_does() {
    let (_directory, device) = drill_device();
    drop(Store::create(device.clone(), &Options { max_value_bytes: 9000 }).expect("a store"));
    let mut model = Model::new();
    let mut dice = dice_of(7);
    let (mut in_doubt, mut made) = (0, 0);
    for round in 0..20u64 {
        let store = Store::open(device.clone()).expect("opened");
        let pool = store.default_pool();
        check(&store, &pool, &model);
        let cut = Drill::PowerCut {
            at_write: None,
            at_program: Some(1 + dice(60)),
            unsynced: Unsynced::ALL[dice(4) as usize],
            seed: Some(round),
        };
        device.drill(cut).expect("armed");
        loop {
            let changes: Vec<(Vec<u8>, Option<Vec<u8>>)> = (0..1 + dice(4))
                .map(|_| {
                    let key = format!("key {}", dice(120)).into_bytes();
                    let most = if dice(5) == 0 { 9000 } else { 50 };
                    let len = dice(most) as usize;
                    let value = vec![dice(256) as u8; len];
                    (key, (dice(3) > 0).then_some(value))
                })
                .collect();
            let mut after = model.clone();
            for (key, value) in &changes {
                match value {
                    Some(value) => drop(after.insert(key.clone(), value.clone())),
                    None => drop(after.remove(key)),
                }
            }
            let asked: Vec<Change<'_>> = changes
                .iter()
                .map(|(key, value)| match value {
                    Some(value) => Change::put(&pool, key, value),
                    None => Change::delete(&pool, key),
                })
                .collect();
            match store.change(&asked) {
                Ok(()) => model = after,
                Err(KvError::Device(Error::PowerOff)) => {
                    device.power_on().expect("it comes back");
                    let store = Store::open(device.clone()).expect("opened");
                    if contents(&store, &pool) == after {
                        model = after;
                        made += 1;
                    }
                    in_doubt += 1;
                    check(&store, &pool, &model);
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(in_doubt == 20 && made < 20, "{made} of {in_doubt} changes in doubt were made");
}

fn contents(store: &Store, pool: &Pool) -> Model {
    store.iter(pool).map(|entry| entry.expect("an entry")).map(|entry| (entry.key, entry.value)).collect()
}

fn check(store: &Store, pool: &Pool, model: &Model) {
    assert_eq!(contents(store, pool), *model, "a change is there in part, or lost");
    for (key, value) in model {
        assert_eq!(store.get(pool, key).as_ref(), Ok(&Some(value.clone())));
    }
}

/// Numbers below a limit, from a seed.
fn dice_of(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    }
}
