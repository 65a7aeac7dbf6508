//! One phase of work on a key-value store, ours or redb: prints one JSON object. `bench/kv.py` runs it beside RocksDB's `db_bench`.
//!
//! `kv_speed openvsl|redb PATH fill|churn|put|read KEYS VALUE_BYTES THREADS SECONDS`
//!
//! - `fill` puts each key once, in an order by chance, a hundred in a durable transaction;
//! - `churn` puts keys by chance, as many as there are twice over, a hundred in a durable transaction;
//! - `put` puts one key by chance a durable transaction, for so many seconds;
//! - `read` reads one key by chance after another, for so many seconds.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use openvsl::Device;
use openvsl::kv::{Change, Options, Pool, Store};
use random::SplitMix64;
use redb::{Database, ReadableDatabase, TableDefinition};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("t");
/// As `bench/kv.py` gives it to `db_bench`.
const CACHE_BYTES: usize = 64 << 20;
const BATCH: usize = 100;
/// A step through all keys: a prime, so that it meets each of them once.
const STEP: u64 = 15_485_863;

enum Kept {
    Openvsl(Box<Store>, Pool),
    Redb(Database),
}

impl Kept {
    fn open(store: &str, path: &Path, value_bytes: usize) -> Result<Kept, Failure> {
        if store == "redb" {
            let database = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
            return Ok(Kept::Redb(database));
        }
        let device = Device::open(path)?;
        let store = match Store::open(device) {
            Ok(store) => store,
            Err(_) => Store::create(Device::open(path)?, &Options { max_value_bytes: value_bytes })?,
        };
        let pool = store.default_pool();
        Ok(Kept::Openvsl(Box::new(store), pool))
    }

    /// Puts all of them, or none; durable when it returns.
    fn put(&self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Failure> {
        match self {
            Kept::Openvsl(store, pool) => {
                let changes: Vec<_> = records.iter().map(|(key, value)| Change::put(pool, key, value)).collect();
                store.change(&changes)?;
            }
            Kept::Redb(database) => {
                let transaction = database.begin_write()?;
                {
                    let mut table = transaction.open_table(TABLE)?;
                    for (key, value) in records {
                        table.insert(&key[..], &value[..])?;
                    }
                }
                transaction.commit()?;
            }
        }
        Ok(())
    }

    /// Bytes of the value.
    fn get(&self, key: &[u8]) -> Result<usize, Failure> {
        let found = match self {
            Kept::Openvsl(store, pool) => store.get(pool, key)?.map(|value| value.len()),
            Kept::Redb(database) => {
                let table = database.begin_read()?.open_table(TABLE)?;
                table.get(key)?.map(|value| value.value().len())
            }
        };
        found.ok_or_else(|| format!("key {} is not there", String::from_utf8_lossy(key)).into())
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, path, phase, keys, value_bytes, threads, seconds] = &arguments[..] else {
        return Err("usage: kv_speed openvsl|redb PATH fill|churn|put|read KEYS VALUE_BYTES THREADS SECONDS".into());
    };
    let (keys, value_bytes): (u64, usize) = (keys.parse()?, value_bytes.parse()?);
    let kept = Kept::open(store, Path::new(path), value_bytes)?;
    let (threads, length): (u64, Duration) = (threads.parse()?, Duration::from_secs_f64(seconds.parse()?));
    let before = written()?;
    let began = Instant::now();
    let times = match phase.as_str() {
        "fill" => in_batches(&kept, value_bytes, (0..keys).map(|n| n.wrapping_mul(STEP) % keys))?,
        "churn" => {
            let mut rng = SplitMix64::new(1);
            in_batches(&kept, value_bytes, (0..2 * keys).map(|_| rng.below(keys)))?
        }
        _ => in_threads(&kept, threads, length, keys, (phase == "put").then_some(value_bytes))?,
    };
    let took = began.elapsed().as_secs_f64();
    drop(kept);
    report(times, took, written()? - before);
    Ok(())
}

/// Puts keys, a hundred at a time; gives how long each of them took.
fn in_batches(kept: &Kept, value_bytes: usize, mut keys: impl Iterator<Item = u64>) -> Result<Vec<Duration>, Failure> {
    let (mut rng, mut times) = (SplitMix64::new(2), Vec::new());
    loop {
        let records: Vec<_> = keys.by_ref().take(BATCH).map(|n| (key(n), value(&mut rng, value_bytes))).collect();
        if records.is_empty() {
            return Ok(times);
        }
        let one = Instant::now();
        kept.put(&records)?;
        let each = one.elapsed() / records.len() as u32;
        times.extend(std::iter::repeat_n(each, records.len()));
    }
}

/// Puts or gets keys by chance, each thread one after another; gives how long each took.
fn in_threads(
    kept: &Kept,
    threads: u64,
    length: Duration,
    keys: u64,
    value_bytes: Option<usize>,
) -> Result<Vec<Duration>, Failure> {
    let all = Mutex::new(Ok(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let all = &all;
            scope.spawn(move || {
                let times = until(length, || {
                    let mut rng = SplitMix64::new(thread + 3);
                    move || match value_bytes {
                        Some(bytes) => kept.put(&[(key(rng.below(keys)), value(&mut rng, bytes))]),
                        None => kept.get(&key(rng.below(keys))).map(drop),
                    }
                });
                let mut all = all.lock().expect("nobody panics");
                match (times, &mut *all) {
                    (Ok(times), Ok(all)) => all.extend(times),
                    (Err(error), all) => *all = Err(error),
                    _ => {}
                }
            });
        }
    });
    all.into_inner().expect("nobody panics")
}

/// Does something over and over, and gives how long each took.
fn until<W: FnMut() -> Result<(), Failure>>(
    length: Duration,
    make: impl FnOnce() -> W,
) -> Result<Vec<Duration>, Failure> {
    let (mut work, mut times, began) = (make(), Vec::new(), Instant::now());
    while began.elapsed() < length {
        let one = Instant::now();
        work()?;
        times.push(one.elapsed());
    }
    Ok(times)
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

/// Bytes that nothing compresses.
fn value(rng: &mut SplitMix64, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    for chunk in value.chunks_mut(8) {
        let random = rng.bits().to_le_bytes();
        chunk.copy_from_slice(&random[..chunk.len()]);
    }
    value
}

fn report(mut times: Vec<Duration>, took: f64, written: u64) {
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).map_or(0, Duration::as_nanos) as f64 / 1e3;
    let line = serde_json::json!({
        "operations": times.len(), "operations_per_s": (times.len() as f64 / took).round(),
        "p50_us": at(50), "p99_us": at(99), "written_bytes": written,
    });
    println!("{line}");
}

/// Bytes that this process sent to the disk.
fn written() -> Result<u64, Failure> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).ok_or("no write_bytes")?;
    Ok(line.parse()?)
}
