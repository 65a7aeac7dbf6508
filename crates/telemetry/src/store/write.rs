//! Seconds come in; minutes and hours follow.

use std::ops::Range;
use std::sync::LazyLock;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::schema::COLUMNS;
use super::{Error, History, Open, Resolution, SeriesKey};
use crate::second::{Second, Values};
use crate::span::{Span, Sum, together};
use crate::table::Of;

/// How often a minute in the making is written, seconds; an hour at every fifth minute.
const MINUTE_WRITTEN: u64 = 10;
const HOUR_WRITTEN: u64 = 300;

impl History {
    /// One second of some series, at `at` seconds since 1970, in one transaction.
    ///
    /// # Errors
    /// The file does not take it. What is in the making is kept.
    pub fn add(&mut self, at: u64, seconds: &[(SeriesKey, String, Second)]) -> Result<(), Error> {
        let result = self.try_add(at, seconds);
        let result = self.check(result);
        if at >= self.pruned + 60 {
            self.pruned = at;
            self.prune(at)?;
        }
        result
    }

    fn try_add(&mut self, at: u64, seconds: &[(SeriesKey, String, Second)]) -> rusqlite::Result<()> {
        // Outside the transaction: a number that it took back would be given to another series next.
        for (key, name, _) in seconds {
            if !self.series.contains_key(key) {
                let id = series(&self.connection, key, name)?;
                self.series.insert(key.clone(), Open { id, name: String::new(), minute: None, hour: None });
            }
        }
        let transaction = self.connection.unchecked_transaction()?;
        for (key, name, second) in seconds {
            let Some(open) = self.series.get_mut(key) else { continue };
            if open.name != *name {
                transaction.execute("UPDATE series SET name = ?1 WHERE id = ?2", (name, open.id))?;
                open.name.clone_from(name);
            }
            let sum = Sum { seconds: 1, values: second.values.clone() };
            put(&transaction, Resolution::Second, open.id, at, &sum)?;
            let spans = [
                (Resolution::Minute, &mut open.minute, MINUTE_WRITTEN),
                (Resolution::Hour, &mut open.hour, HOUR_WRITTEN),
            ];
            for (resolution, span, written) in spans {
                let begin = at - at % resolution.seconds();
                if let Some(old) = span.take_if(|span| span.at != begin) {
                    put(&transaction, resolution, open.id, old.at, &old.sum())?;
                }
                if span.is_none() {
                    complete(&transaction, key.of, resolution, open.id, begin)?;
                    *span =
                        Some(Span::new(key.of, begin, before(&transaction, key.of, resolution, open.id, begin..at)?));
                }
                if let Some(span) = span {
                    span.add(second);
                    if at % written == written - 1 {
                        put(&transaction, resolution, open.id, begin, &span.sum())?;
                    }
                }
            }
        }
        transaction.commit()
    }

    /// Writes what is in the making, before the service stops.
    ///
    /// # Errors
    /// The file does not take it.
    pub fn close(self) -> Result<(), Error> {
        let write = || {
            let transaction = self.connection.unchecked_transaction()?;
            for open in self.series.values() {
                for (resolution, span) in [(Resolution::Minute, &open.minute), (Resolution::Hour, &open.hour)] {
                    if let Some(span) = span {
                        put(&transaction, resolution, open.id, span.at, &span.sum())?;
                    }
                }
            }
            transaction.commit()
        };
        self.check(write())
    }

    /// A series gets no more seconds for now.
    ///
    /// # Errors
    /// The file does not take what is in the making.
    pub fn end(&mut self, key: &SeriesKey) -> Result<(), Error> {
        let Some(open) = self.series.remove(key) else { return Ok(()) };
        let write = || {
            for (resolution, span) in [(Resolution::Minute, &open.minute), (Resolution::Hour, &open.hour)] {
                if let Some(span) = span {
                    put(&self.connection, resolution, open.id, span.at, &span.sum())?;
                }
            }
            Ok(())
        };
        self.check(write())
    }
}

/// The number of a series, which is made where there is none.
fn series(connection: &Connection, key: &SeriesKey, name: &str) -> rusqlite::Result<i64> {
    connection.execute(
        "INSERT OR IGNORE INTO series (of, uuid, name) VALUES (?1, ?2, ?3)",
        (key.of as u8, &key.uuid, name),
    )?;
    connection
        .query_row("SELECT id FROM series WHERE of = ?1 AND uuid = ?2", (key.of as u8, &key.uuid), |row| row.get(0))
}

fn put(connection: &Connection, resolution: Resolution, series: i64, at: u64, sum: &Sum) -> rusqlite::Result<()> {
    static STATEMENT: LazyLock<String> = LazyLock::new(|| {
        let (columns, marks) = (COLUMNS.join(", "), ", ?".repeat(COLUMNS.len()));
        format!("INSERT OR REPLACE INTO point (resolution, series, at, seconds, {columns}) VALUES (?, ?, ?, ?{marks})")
    });
    let fixed = [
        Value::Integer(resolution as i64),
        Value::Integer(series),
        Value::Integer(at as i64),
        Value::Integer(i64::from(sum.seconds)),
    ];
    let value = |name: &&str| sum.values.get(*name).map_or(Value::Null, |value| Value::Real(*value));
    let values = fixed.into_iter().chain(COLUMNS.iter().map(value));
    connection.prepare_cached(&STATEMENT)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Writes the last span before `end` anew, with those of its seconds that a kill kept from it.
fn complete(connection: &Connection, of: Of, resolution: Resolution, series: i64, end: u64) -> rusqlite::Result<()> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(at) FROM point WHERE resolution = ? AND series = ? AND at < ?")?
        .query_row((Resolution::Second as i64, series, end as i64), |row| row.get(0))?;
    let Some(last) = last.map(|at| at as u64) else { return Ok(()) };
    let begin = last - last % resolution.seconds();
    match before(connection, of, resolution, series, begin..last + 1)? {
        Some(sum) => put(connection, resolution, series, begin, &sum),
        None => Ok(()),
    }
}

/// What is known of a span from before the service was started. What is stored of it holds its first seconds; where the service was
/// killed, those that came after stand by themselves only.
fn before(
    connection: &Connection,
    of: Of,
    resolution: Resolution,
    series: i64,
    span: Range<u64>,
) -> rusqlite::Result<Option<Sum>> {
    let stored = sums(connection, resolution, series, span.start..span.start + 1, 0)?.pop();
    let counted = stored.as_ref().map_or(0, |sum| sum.seconds);
    let since = sums(connection, Resolution::Second, series, span, counted)?;
    Ok(stored.into_iter().chain(since).reduce(|before, second| together(of, &before, second)))
}

/// What is stored of a time, in order, without the first `skip` rows.
fn sums(
    connection: &Connection,
    resolution: Resolution,
    series: i64,
    at: Range<u64>,
    skip: u32,
) -> rusqlite::Result<Vec<Sum>> {
    static STATEMENT: LazyLock<String> = LazyLock::new(|| {
        let columns = COLUMNS.join(", ");
        format!(
            "SELECT seconds, {columns} FROM point WHERE resolution = ? AND series = ? AND at >= ? AND at < ? ORDER BY at LIMIT -1 OFFSET ?"
        )
    });
    connection
        .prepare_cached(&STATEMENT)?
        .query_map((resolution as i64, series, at.start as i64, at.end as i64, skip), |row| {
            let mut values = Values::new();
            for (index, name) in COLUMNS.iter().enumerate() {
                if let Some(value) = row.get::<_, Option<f64>>(index + 1)? {
                    values.insert(name, value);
                }
            }
            Ok(Sum { seconds: row.get(0)?, values })
        })?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Query;

    #[test]
    fn a_full_disk_mixes_no_series() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&directory.path().join("h.db")).expect("made");
        let row = |number: u64| {
            let second = Second { values: [("read_iops", number as f64)].into(), ..Second::default() };
            (SeriesKey::device(format!("{number}")), format!("{number}"), second)
        };
        let at = 1_700_000_000;
        history.add(at, &[row(0)]).expect("added");
        let limit = |history: &History, pages: i64| {
            let set = history.connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0));
            let _: i64 = set.expect("set");
        };
        // From here on the file does not grow.
        limit(&history, 1);
        let refused = (1..1000).find(|number| history.add(at, &[row(*number)]).is_err()).expect("it is full");
        limit(&history, 1 << 30);
        history.add(at + 1, &[row(refused + 1)]).expect("added");
        history.add(at + 1, &[row(refused)]).expect("added");
        for number in 0..=refused + 1 {
            let query = Query {
                resolution: Some(Resolution::Second),
                metrics: vec!["read_iops"],
                ..Query::of(row(number).0, at, at + 2)
            };
            let found: Vec<_> = history.query(&query).expect("read").rows.into_iter().map(|row| row.values).collect();
            assert_eq!(found, [[Some(number as f64)]], "of {number}");
        }
    }
}
