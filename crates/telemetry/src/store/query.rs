//! Looking back.

use rusqlite::OptionalExtension;
use serde::Serialize;

use super::{Error, History, Resolution, SeriesKey, schema};
use crate::table::{self, Of};

/// The most rows that one question is answered with.
const MOST: u64 = 50_000;

/// A question.
#[derive(Clone, Debug)]
pub struct Query {
    /// Of what.
    pub key: SeriesKey,
    /// From when on, seconds since 1970.
    pub from: u64,
    /// Until when, itself excluded.
    pub to: u64,
    /// The resolution; the finest that suffices where `None`.
    pub resolution: Option<Resolution>,
    /// About how many rows are wanted at most where the resolution is open.
    pub points: u64,
    /// The metrics; all where empty.
    pub metrics: Vec<&'static str>,
}

impl Query {
    /// Everything of a series in a time.
    pub fn of(key: SeriesKey, from: u64, to: u64) -> Query {
        Query { key, from, to, resolution: None, points: 1000, metrics: Vec::new() }
    }

    /// The resolution that answers it, as seen at `now`: the finest that reaches back to its beginning and gives no more rows than are wanted.
    fn choose(&self, now: u64) -> Resolution {
        let span = self.to.saturating_sub(self.from);
        let fits = |resolution: &Resolution| {
            span / resolution.seconds() <= self.points.max(1) && self.from.saturating_add(resolution.kept()) >= now
        };
        self.resolution.or_else(|| Resolution::ALL.into_iter().find(fits)).unwrap_or(Resolution::Hour)
    }
}

/// One span.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When it began, seconds since 1970.
    pub at: u64,
    /// Seconds that are in it.
    pub seconds: u32,
    /// The metrics asked for, in their order.
    pub values: Vec<Option<f64>>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// How long each row's span is.
    pub resolution: Resolution,
    /// The metrics, in the order of the rows' values.
    pub metrics: Vec<&'static str>,
    /// By time.
    pub rows: Vec<Row>,
}

/// A series of which there is something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// `device` or `service`.
    pub of: Of,
    /// A device's UUID; `service`.
    pub uuid: String,
    /// What it was called last.
    pub name: String,
    /// When its oldest span begins, seconds since 1970.
    pub first: u64,
    /// When its newest span begins, seconds since 1970.
    pub last: u64,
    /// Spans of all lengths.
    pub rows: u64,
}

impl History {
    /// The answer to a question. What is in the making is as it was written last: seconds at once, minutes every ten seconds.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn query(&self, query: &Query) -> Result<Table, Error> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |past| past.as_secs());
        let resolution = query.choose(now);
        let metrics: Vec<&'static str> = match query.metrics.as_slice() {
            [] => table::of(query.key.of).map(|metric| metric.name).collect(),
            chosen => chosen.iter().copied().filter(|name| schema::COLUMNS.contains(name)).collect(),
        };
        let columns: String = metrics.iter().map(|name| format!(", {name}")).collect();
        let statement = format!(
            "SELECT at, seconds{columns} FROM point WHERE resolution = ?3
                 AND series = (SELECT id FROM series WHERE of = ?1 AND uuid = ?2) AND at >= ?4 AND at < ?5 ORDER BY at LIMIT ?6"
        );
        // The span in which the time begins belongs to it.
        let from = query.from - query.from % resolution.seconds();
        let read = || {
            let mut statement = self.connection.prepare_cached(&statement)?;
            let mut found = statement.query((
                query.key.of as u8,
                &query.key.uuid,
                resolution as i64,
                clamp(from),
                clamp(query.to),
                MOST as i64,
            ))?;
            let mut rows = Vec::new();
            while let Some(row) = found.next()? {
                let at = u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
                let values = (0..metrics.len()).map(|index| row.get(index + 2)).collect::<rusqlite::Result<_>>()?;
                rows.push(Row { at, seconds: row.get(1)?, values });
            }
            Ok(rows)
        };
        let rows = self.check(read())?;
        Ok(Table { resolution, metrics, rows })
    }

    /// Everything of which there is something.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn series(&self) -> Result<Vec<Series>, Error> {
        let read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT of, uuid, name, min(at), max(at), count(*) FROM series JOIN point ON point.series = series.id GROUP BY series.id ORDER BY name",
            )?;
            let rows = statement.query_map([], |row| {
                let count = |index| row.get::<_, i64>(index).map(|number| u64::try_from(number).unwrap_or(0));
                let of = if row.get::<_, u8>(0)? == Of::Service as u8 { Of::Service } else { Of::Device };
                let (first, last, rows) = (count(3)?, count(4)?, count(5)?);
                Ok(Series { of, uuid: row.get(1)?, name: row.get(2)?, first, last, rows })
            })?;
            rows.collect()
        };
        self.check(read())
    }

    /// The device that was called so last, by its name or its UUID.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<SeriesKey>, Error> {
        let read = || {
            let statement = "SELECT uuid FROM series WHERE of = ?1 AND (uuid = ?2 OR name = ?2) ORDER BY uuid = ?2 DESC, id DESC LIMIT 1";
            self.connection.query_row(statement, (Of::Device as u8, name), |row| row.get::<_, String>(0)).optional()
        };
        Ok(self.check(read())?.map(SeriesKey::device))
    }
}

fn clamp(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::second::Second;

    fn second(value: f64) -> Second {
        Second { values: [("write_iops", value)].into(), ..Second::default() }
    }

    fn now() -> u64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs()
    }

    #[test]
    fn what_comes_in_comes_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&directory.path().join("h.db")).expect("made");
        let key = SeriesKey::device("u");
        let begin = now() / 3600 * 3600 - 3600;
        for at in 0..180 {
            history.add(begin + at, &[(key.clone(), "fct0".into(), second(at as f64))]).expect("added");
        }
        let fine = history.query(&Query::of(key.clone(), begin, begin + 180)).expect("read");
        assert_eq!((fine.resolution, fine.rows.len()), (Resolution::Second, 180));
        let at = fine.metrics.iter().position(|name| *name == "write_iops").expect("there");
        assert_eq!(fine.rows[7].values[at], Some(7.0));
        assert_eq!(fine.rows[7].values.iter().flatten().count(), 1);
        let few = Query { points: 10, metrics: vec!["write_iops"], ..Query::of(key.clone(), begin, begin + 180) };
        let coarse = history.query(&few).expect("read");
        assert_eq!((coarse.resolution, coarse.rows.len()), (Resolution::Minute, 3));
        assert_eq!((coarse.rows[1].seconds, coarse.rows[1].values.as_slice()), (60, &[Some(89.5)][..]));
        // Older than seconds are kept: minutes answer.
        assert_eq!(Query::of(key.clone(), now() - 7 * 3600, now() - 7 * 3600 + 60).choose(now()), Resolution::Minute);
        assert_eq!(history.find("fct0").expect("read"), Some(key.clone()));
        assert_eq!(history.find("u").expect("read"), Some(key));
        assert_eq!(history.find("nobody").expect("read"), None);
        let series = history.series().expect("read");
        assert_eq!((series.len(), series[0].name.as_str(), series[0].first), (1, "fct0", begin));
    }

    #[test]
    fn the_minute_in_which_a_time_begins_belongs_to_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&directory.path().join("h.db")).expect("made");
        let key = SeriesKey::device("u");
        let begin = now() / 3600 * 3600 - 3600;
        for at in 0..120 {
            history.add(begin + at, &[(key.clone(), "a".into(), second(1.0))]).expect("added");
        }
        let query = Query { resolution: Some(Resolution::Minute), ..Query::of(key, begin + 30, begin + 61) };
        let begins: Vec<u64> = history.query(&query).expect("read").rows.iter().map(|row| row.at).collect();
        assert_eq!(begins, [begin, begin + 60]);
    }

    #[test]
    fn a_restart_in_the_middle_of_a_minute_keeps_its_first_half() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("h.db");
        let key = SeriesKey::device("u");
        let begin = now() / 3600 * 3600 - 3600;
        let mut history = History::open(&path).expect("made");
        for at in 0..30 {
            history.add(begin + at, &[(key.clone(), "a".into(), second(10.0))]).expect("added");
        }
        history.close().expect("closed");
        let mut history = History::open(&path).expect("opened");
        for at in 30..60 {
            history.add(begin + at, &[(key.clone(), "a".into(), second(30.0))]).expect("added");
        }
        history.end(&key).expect("written");
        let query = Query {
            resolution: Some(Resolution::Minute),
            metrics: vec!["write_iops"],
            ..Query::of(key.clone(), begin, begin + 60)
        };
        let rows = history.query(&query).expect("read").rows;
        assert_eq!(rows, [Row { at: begin, seconds: 60, values: vec![Some(20.0)] }]);
        let hour = Query { resolution: Some(Resolution::Hour), ..query };
        assert_eq!(history.query(&hour).expect("read").rows[0].seconds, 60);
    }

    #[test]
    fn a_crash_keeps_every_second_that_was_added() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("h.db");
        let mut history = History::open(&path).expect("made");
        let begin = now() / 3600 * 3600 - 3600;
        for at in 0..55 {
            history.add(begin + at, &[(SeriesKey::service(), "service".into(), second(1.0))]).expect("added");
        }
        // What a kill leaves: the files as they are, with a log that nobody closed.
        let crashed = directory.path().join("crashed.db");
        for end in ["", "-wal"] {
            let name = |base: &str| directory.path().join(format!("{base}{end}"));
            std::fs::copy(name("h.db"), name("crashed.db")).expect("copied");
        }
        let mut found = History::open(&crashed).expect("opened");
        let rows = |history: &History, resolution| {
            let query = Query { resolution: Some(resolution), ..Query::of(SeriesKey::service(), begin, begin + 100) };
            history.query(&query).expect("read").rows
        };
        assert_eq!(rows(&found, Resolution::Second).len(), 55);
        // Their minute and hour have them too, though both were written before the last of them.
        found.add(begin + 58, &[(SeriesKey::service(), "service".into(), second(1.0))]).expect("added");
        found.end(&SeriesKey::service()).expect("written");
        for resolution in [Resolution::Minute, Resolution::Hour] {
            assert_eq!(rows(&found, resolution)[0].seconds, 56, "{resolution:?}");
        }
        // So they have where the service came back in the next.
        let key = SeriesKey::device("u");
        for at in (3600 - 15..3600 - 3).chain([3605]) {
            found.add(begin + at, &[(key.clone(), "a".into(), second(1.0))]).expect("added");
            if at == 3600 - 4 {
                // What a kill forgets.
                found = History::open(&crashed).expect("opened");
            }
        }
        for resolution in [Resolution::Minute, Resolution::Hour] {
            let query = Query { resolution: Some(resolution), ..Query::of(key.clone(), begin, begin + 3600) };
            assert_eq!(found.query(&query).expect("read").rows[0].seconds, 12, "{resolution:?}");
        }
        // A log that was cut in the middle of a transaction loses that one.
        drop(found);
        let log = directory.path().join("h.db-wal");
        let torn = directory.path().join("torn.db");
        std::fs::copy(&path, &torn).expect("copied");
        let bytes = std::fs::read(&log).expect("a log");
        std::fs::write(directory.path().join("torn.db-wal"), &bytes[..bytes.len() - 100]).expect("written");
        let found = History::open(&torn).expect("opened");
        assert_eq!(rows(&found, Resolution::Second).len(), 54);
    }

    #[test]
    fn what_is_no_history_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("other.db");
        rusqlite::Connection::open(&path).and_then(|other| other.execute_batch("CREATE TABLE t (x)")).expect("made");
        let error = History::open(&path).err().expect("refused").to_string();
        assert!(error.contains("other.db") && error.contains("something else"), "{error}");
        std::fs::write(&path, "no database at all, only a text that is long enough to be looked at".repeat(20))
            .expect("written");
        assert!(History::open(&path).is_err());
    }
}
