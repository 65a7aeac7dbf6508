//! SQLite on the VFS: what it writes, and that no power cut loses or damages anything.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openvsl::{Device, Drill, Unsynced};
use openvsl_files::{Files, ROOT, sqlite};
use random::SplitMix64 as Rng;
use rusqlite::{Connection, OpenFlags};

use crate::common::{MIB, drill_device};

/// A VFS stays until the process ends, so each has a name of its own.
fn register(files: &Arc<Files>) -> &'static CStr {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("vfs{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let name: &'static CStr = Box::leak(std::ffi::CString::new(name).expect("no zero").into_boxed_c_str());
    sqlite::register(name, files.clone()).expect("registered");
    name
}

fn open(vfs: &CStr, name: &str) -> rusqlite::Result<Connection> {
    let database = Connection::open_with_flags_and_vfs(name, OpenFlags::default(), vfs)?;
    database.busy_timeout(Duration::from_secs(10))?;
    Ok(database)
}

fn text(database: &Connection, sql: &str) -> String {
    database.query_row(sql, [], |row| row.get(0)).expect("a row")
}

fn number(database: &Connection, sql: &str) -> i64 {
    database.query_row(sql, [], |row| row.get(0)).expect("a row")
}

#[test]
fn databases_share_a_device_and_have_no_journal() {
    let device = Device::memory(128 * MIB, 4096).expect("a device");
    let files = Arc::new(Files::create(device, 20).expect("made"));
    let vfs = register(&files);
    let (one, two) = (open(vfs, "one.db").expect("opened"), open(vfs, "two.db").expect("opened"));
    for database in [&one, &two] {
        database.execute_batch("CREATE TABLE t(n INTEGER PRIMARY KEY, x BLOB);").expect("created");
    }
    one.execute_batch("BEGIN; INSERT INTO t VALUES (1, randomblob(20000)); INSERT INTO t VALUES (2, 'b');")
        .expect("ok");
    let names = |files: &Files| files.list(ROOT).expect("a list").into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&files), [b"one.db".to_vec(), b"two.db".to_vec()]);
    one.execute_batch("COMMIT").expect("committed");
    assert_eq!(number(&one, "SELECT count(*) FROM t"), 2);
    assert_eq!(number(&two, "SELECT count(*) FROM t"), 0);
    // More than the device makes atomic: SQLite writes its journal, and deletes it.
    one.execute("INSERT INTO t VALUES (3, randomblob(3000000))", []).expect("inserted");
    assert_eq!(text(&one, "PRAGMA integrity_check"), "ok");
    one.execute_batch("DELETE FROM t; VACUUM").expect("made smaller");
    assert_eq!(names(&files), [b"one.db".to_vec(), b"two.db".to_vec()]);
    assert_eq!(files.attributes(files.lookup(ROOT, b"one.db").expect("there")).expect("there").size, 8192);
    // An index over much data sorts in a temporary file.
    two.execute_batch(
        "PRAGMA cache_size = 10; WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
         INSERT INTO t SELECT n, randomblob(50) FROM c; CREATE INDEX i ON t(x);",
    )
    .expect("filled");
    assert_eq!(text(&two, "PRAGMA integrity_check"), "ok");
    for mode in ["WAL", "PERSIST", "TRUNCATE", "MEMORY", "DELETE"] {
        two.execute_batch(&format!("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = {mode};")).expect("set");
        assert_eq!(text(&two, "PRAGMA journal_mode"), mode.to_lowercase());
        two.execute("UPDATE t SET x = 'y' WHERE n % 7 = 3", []).expect("updated");
        assert_eq!(text(&two, "PRAGMA integrity_check"), "ok", "{mode}");
    }
    drop((one, two));
    let two = open(vfs, "two.db").expect("opened again");
    assert_eq!(number(&two, "SELECT count(*) FROM t"), 20000);
}

#[test]
fn what_was_never_synced_is_there_after_a_clean_end() {
    let device = Device::memory(128 * MIB, 4096).expect("a device");
    let files = Arc::new(Files::create(device.clone(), 20).expect("made"));
    let database = open(register(&files), "t.db").expect("opened");
    database
        .execute_batch(
            "PRAGMA openvsl_batch = 0; PRAGMA synchronous = OFF; CREATE TABLE t(x); INSERT INTO t VALUES (7)",
        )
        .expect("created");
    drop(database);
    let again = Arc::new(Files::open(device).expect("opened"));
    assert_eq!(number(&open(register(&again), "t.db").expect("opened"), "SELECT x FROM t"), 7);
}

#[test]
fn threads_use_a_database_together() {
    let device = Device::memory(128 * MIB, 4096).expect("a device");
    let files = Arc::new(Files::create(device, 20).expect("made"));
    let vfs = register(&files);
    open(vfs, "t.db").expect("opened").execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (0)").expect("created");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let database = open(vfs, "t.db").expect("opened");
                for _ in 0..50 {
                    database.execute_batch("BEGIN IMMEDIATE; UPDATE t SET x = x + 1; COMMIT").expect("updated");
                }
            });
        }
    });
    assert_eq!(number(&open(vfs, "t.db").expect("opened"), "SELECT x FROM t"), 200);
}

/// Bytes of an account, so that a transaction of all of them is a batch, or is more than one takes.
const SMALL: usize = 1500;
const LARGE: usize = 8000;

/// What power cuts did to a database.
#[derive(Debug, Default)]
struct Outcome {
    commits: u64,
    /// Commits that were not acknowledged before the cut, and are there.
    doubtful: u64,
    /// Cuts after which SQLite's own check found damage, or could not open the database.
    damaged: u32,
    /// Cuts after which an acknowledged commit was not there, or a part of another one.
    lost: u32,
}

/// Transfers between accounts, a row of a log with each: several pages change together. The power goes at a write of the media that
/// chance picks, and a ledger outside of the database knows what was acknowledged. What is damaged is made anew.
fn cut_power(cuts: u32, seed: u64, pragmas: &str, pad: usize) -> Outcome {
    let look = |database: &Connection, pragmas: &str| look(database, pragmas, pad);
    let (_directory, device) = drill_device();
    let mut rng = Rng::new(seed);
    let mut files = Arc::new(Files::create(device.clone(), 100).expect("made"));
    let (mut outcome, mut ledger) = (Outcome::default(), 0i64);
    for cut in 0..cuts {
        let vfs = register(&files);
        let found = open(vfs, "bank.db").and_then(|database| look(&database, pragmas).map(|found| (database, found)));
        let database = match found {
            Ok((database, Some((last, sum)))) if sum == 0 && (last == ledger || last == ledger + 1) => {
                outcome.doubtful += (last - ledger) as u64;
                ledger = last;
                database
            }
            found => {
                match found {
                    Ok((_, Some(_))) => outcome.lost += 1,
                    _ => outcome.damaged += 1,
                }
                let _ = files.remove(ROOT, b"bank.db", false);
                let _ = files.remove(ROOT, b"bank.db-journal", false);
                files.sync(ROOT).expect("synced");
                ledger = 0;
                let database = open(vfs, "bank.db").expect("opened");
                let empty = look(&database, pragmas).expect("an empty database");
                assert_eq!(empty, Some((0, 0)), "cut {cut}");
                database
            }
        };
        let drill = Drill::PowerCut {
            at_write: Some(1 + rng.below(40)),
            at_program: None,
            unsynced: Unsynced::Random,
            seed: Some(seed * 1_000_003 + u64::from(cut)),
        };
        device.drill(drill).expect("a cut at a write");
        loop {
            let note = "n".repeat(rng.below(600) as usize);
            let (from, to) = (rng.below(500), rng.below(500));
            // A transfer of two accounts is a few pages; one of all accounts is most of what a batch takes, and many writes of the media.
            let change = match rng.below(4) {
                0 => "UPDATE account SET sum = sum + (CASE WHEN n < 250 THEN 1 ELSE -1 END)".to_string(),
                _ => format!(
                    "UPDATE account SET sum = sum - 1 WHERE n = {from}; UPDATE account SET sum = sum + 1 WHERE n = {to}"
                ),
            };
            let transfer = format!(
                "BEGIN; {change}; INSERT INTO log VALUES ({}, '{note}'); DELETE FROM log WHERE n < {}; COMMIT",
                ledger + 1,
                ledger - 50
            );
            let done = match rng.below(10) {
                0 => database.execute_batch("BEGIN; UPDATE account SET sum = 7; ROLLBACK"),
                // More than a batch takes, now and then.
                1 if cut % 10 == 0 => database.execute_batch("UPDATE account SET pad = zeroblob(3000)"),
                _ => database.execute_batch(&transfer).map(|()| {
                    ledger += 1;
                    outcome.commits += 1;
                }),
            };
            if done.is_err() {
                break;
            }
        }
        drop(database);
        device.power_on().expect("on");
        files = Arc::new(Files::open(device.clone()).expect("opened after the cut"));
    }
    outcome
}

/// The last transfer and the sum of all accounts; nothing where SQLite finds damage.
fn look(database: &Connection, pragmas: &str, pad: usize) -> rusqlite::Result<Option<(i64, i64)>> {
    database.execute_batch(pragmas)?;
    database.execute_batch(&format!(
        "BEGIN; CREATE TABLE IF NOT EXISTS log(n INT UNIQUE, note TEXT); CREATE INDEX IF NOT EXISTS i ON log(note);
         CREATE TABLE IF NOT EXISTS account(n INTEGER PRIMARY KEY, sum INT, pad BLOB);
         WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 499)
         INSERT OR IGNORE INTO account SELECT n, 0, randomblob({pad}) FROM c; COMMIT"
    ))?;
    let check: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    let sql = "SELECT (SELECT coalesce(max(n), 0) FROM log), (SELECT sum(sum) FROM account)";
    let found = database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((check == "ok").then_some(found))
}

/// `OPENVSL_CUTS` and `OPENVSL_SEED` make it longer, and other.
fn set(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_commit_is_lost_and_nothing_is_damaged_in_power_cuts() {
    let (cuts, began) = (set("OPENVSL_CUTS", 100) as u32, Instant::now());
    let outcome = cut_power(cuts, set("OPENVSL_SEED", 1), "", SMALL);
    println!("figure: {cuts} cuts in {:.0?}: {outcome:?}", began.elapsed());
    assert_eq!((outcome.damaged, outcome.lost), (0, 0), "{outcome:?}");
    assert!(outcome.commits > u64::from(cuts), "{outcome:?}");
}

/// Transactions that no batch takes write their journal first.
#[test]
fn what_no_batch_takes_survives_power_cuts_by_its_journal() {
    let outcome = cut_power(40, set("OPENVSL_SEED", 1), "", LARGE);
    println!("figure: {outcome:?}");
    assert_eq!((outcome.damaged, outcome.lost), (0, 0), "{outcome:?}");
}

/// The control: without batches and without a journal, the same cuts must be seen to do damage.
#[test]
fn the_same_cuts_do_damage_without_batches_and_without_a_journal() {
    let pragmas = "PRAGMA openvsl_batch = 0; PRAGMA journal_mode = OFF";
    // A cut within a transaction is rare: most fall between two, or the layer has all of it in one write of the media.
    let found = (1..=20).map(|seed| cut_power(40, seed, pragmas, LARGE)).find(|found| found.damaged + found.lost > 0);
    println!("figure: the control: {found:?}");
    assert!(found.is_some(), "the cuts of these tests find nothing");
}
