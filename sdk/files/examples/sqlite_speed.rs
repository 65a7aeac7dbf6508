//! Small transactions of SQLite with one of its journals, on a device or on a plain file: prints one JSON object.
//!
//! `sqlite_speed DIRECTORY SECONDS device|file batch|wal|delete ROWS`
//!
//! `DISK_STAT` names the `stat` of a block device, where that counts what is written, with the file system's own.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openvsl::{CreateOptions, Device};
use openvsl_files::{Files, Make, ROOT, sqlite};
use random::SplitMix64;
use rusqlite::{Connection, OpenFlags};

const ROWS: u64 = 20_000;
const MIB: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, seconds, place, journal, rows] = &arguments[..] else {
        return Err("usage: sqlite_speed DIRECTORY SECONDS device|file batch|wal|delete ROWS".into());
    };
    let (directory, length) = (Path::new(directory), Duration::from_secs_f64(seconds.parse()?));
    let database = match place.as_str() {
        "device" => {
            let path = directory.join("sqlite.vsl");
            let mut options = CreateOptions::default();
            options.address_space = Some(1 << 40);
            openvsl::create(&path, 128 * MIB, &options)?;
            let files = Arc::new(Files::create(Device::open(&path)?, 100)?);
            write_once(&files)?;
            sqlite::register(c"files", files)?;
            Connection::open_with_flags_and_vfs("speed.db", OpenFlags::default(), c"files")?
        }
        _ => Connection::open(directory.join("speed.db"))?,
    };
    measure(place, &database, journal, rows.parse()?, length)
}

/// Writes over the device twice, so that its file has all of its blocks: a new file's blocks are a cost of their own.
fn write_once(files: &Files) -> Result<(), Box<dyn std::error::Error>> {
    let number = files.make(ROOT, b"filler", &Make::file(0o600))?;
    for n in 0..400 {
        files.write(number, n % 64 * MIB, &vec![n as u8; MIB as usize])?;
    }
    files.sync(number)?;
    Ok(files.remove(ROOT, b"filler", false)?)
}

/// Updates of so many rows by chance, each transaction durable.
fn measure(
    place: &str,
    database: &Connection,
    journal: &str,
    rows: u32,
    length: Duration,
) -> Result<(), Box<dyn std::error::Error>> {
    // With exclusive locking SQLite keeps a journal that it once had to write: the first large transaction would end all batches.
    let mode = match (journal, place) {
        ("wal", _) => "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;",
        ("delete", "device") => "PRAGMA openvsl_batch = 0;",
        _ => "",
    };
    database.execute_batch(&format!("{mode} PRAGMA synchronous = FULL;"))?;
    database.execute_batch("CREATE TABLE t(n INTEGER PRIMARY KEY, v INT, pad TEXT); BEGIN;")?;
    {
        let mut insert = database.prepare("INSERT INTO t VALUES (?1, 0, ?2)")?;
        for n in 0..ROWS {
            insert.execute((n as i64, "x".repeat(100)))?;
        }
    }
    database.execute_batch("COMMIT;")?;
    let (mut rng, mut times) = (SplitMix64::new(1), Vec::new());
    let (began, before) = (Instant::now(), written()?);
    while began.elapsed() < length {
        let one = Instant::now();
        database.execute_batch("BEGIN IMMEDIATE;")?;
        let mut update = database.prepare_cached("UPDATE t SET v = v + 1 WHERE n = ?1")?;
        for _ in 0..rows {
            update.execute([rng.below(ROWS) as i64])?;
        }
        drop(update);
        database.execute_batch("COMMIT;")?;
        times.push(one.elapsed());
    }
    let (seconds, count) = (began.elapsed().as_secs_f64(), times.len());
    times.sort_unstable();
    let line = serde_json::json!({
        "place": place, "journal": journal, "rows": rows,
        "transactions_per_s": (count as f64 / seconds).round(),
        "p99_us": times[count * 99 / 100].as_micros() as u64,
        "bytes_per_transaction": (written()? - before) / count as u64,
    });
    println!("{line}");
    Ok(())
}

/// Bytes that this process sent to the disk, or that a block device was sent.
fn written() -> Result<u64, Box<dyn std::error::Error>> {
    if let Ok(stat) = std::env::var("DISK_STAT") {
        let text = std::fs::read_to_string(stat)?;
        return Ok(512 * text.split_whitespace().nth(6).ok_or("no sectors written")?.parse::<u64>()?);
    }
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).ok_or("no write_bytes")?;
    Ok(line.parse()?)
}
