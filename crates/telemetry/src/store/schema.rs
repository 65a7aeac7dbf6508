//! The tables. Columns of metrics follow from the table: a new one is added to an old file, and one that is gone stays unused.

use std::path::Path;
use std::sync::LazyLock;

use rusqlite::Connection;

use crate::table;

/// Marks our files: "VSLH".
const APPLICATION: i32 = 0x5653_4C48;

/// Columns of metrics, each once: a device and the service may share one.
pub static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names: Vec<&'static str> = table::metrics().map(|metric| metric.name).collect();
    names.sort_unstable();
    names.dedup();
    names
});

/// Opens the file with its tables.
pub fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && tables > 0 {
        let what = "it is a database of something else; move it away".to_string();
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB),
            Some(what),
        ));
    }
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA busy_timeout = 2000;
         PRAGMA cache_size = -1024;
         PRAGMA journal_size_limit = 4194304;
         CREATE TABLE IF NOT EXISTS series (
             id INTEGER PRIMARY KEY, of INTEGER NOT NULL, uuid TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (of, uuid));
         CREATE TABLE IF NOT EXISTS point (
             resolution INTEGER NOT NULL, series INTEGER NOT NULL, at INTEGER NOT NULL, seconds INTEGER NOT NULL,
             PRIMARY KEY (series, resolution, at)) WITHOUT ROWID;",
    )?;
    if application != APPLICATION {
        // Only once: a history that is there already is opened without writing, also where the disk is full.
        connection.pragma_update(None, "application_id", APPLICATION)?;
    }
    let mut known = Vec::new();
    {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info('point')")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            known.push(row.get::<_, String>(0)?);
        }
    }
    for column in COLUMNS.iter() {
        if !known.iter().any(|name| name == column) {
            // Names come from the table, which holds plain ones only.
            connection.execute_batch(&format!("ALTER TABLE point ADD COLUMN {column} REAL"))?;
        }
    }
    Ok(connection)
}
