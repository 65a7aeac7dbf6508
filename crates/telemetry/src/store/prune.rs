//! What is too old goes, and what is too much.

use super::{Error, History, KEEP, Resolution};

impl History {
    /// Lets go of what is older than it is kept, as seen at `now`; and of the oldest if the file is too large all the same.
    pub(super) fn prune(&mut self, now: u64) -> Result<(), Error> {
        let result = self.try_prune(now);
        self.check(result)
    }

    fn try_prune(&mut self, now: u64) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        for (resolution, kept) in Resolution::ALL.into_iter().zip(KEEP) {
            let until = now.saturating_sub(kept) as i64;
            transaction.execute(
                "DELETE FROM point WHERE series IN (SELECT id FROM series) AND resolution = ?1 AND at < ?2",
                (resolution as i64, until),
            )?;
        }
        let used = |pages: &str| transaction.query_row(pages, [], |row| row.get::<_, i64>(0));
        let bytes = (used("PRAGMA page_count")? - used("PRAGMA freelist_count")?) * used("PRAGMA page_size")?;
        if u64::try_from(bytes).unwrap_or(0) > self.largest {
            for resolution in Resolution::ALL {
                transaction.execute(
                    "DELETE FROM point WHERE series IN (SELECT id FROM series) AND resolution = ?1 AND at <= (SELECT min(at) + (max(at) - min(at)) / 8 FROM point
                         WHERE series IN (SELECT id FROM series) AND resolution = ?1)",
                    [resolution as i64],
                )?;
            }
        }
        transaction
            .execute("DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM point WHERE series = series.id)", [])?;
        transaction.commit()?;
        // One whose rows are all gone gets a new number when it comes again.
        let mut ids = Vec::new();
        let mut statement = self.connection.prepare_cached("SELECT id FROM series")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            ids.push(row.get::<_, i64>(0)?);
        }
        drop(rows);
        drop(statement);
        self.series.retain(|_, open| ids.contains(&open.id));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::second::Second;
    use crate::{Query, SeriesKey};

    fn second(value: f64) -> Second {
        Second { values: [("read_iops", value)].into(), ..Second::default() }
    }

    #[test]
    fn seconds_go_after_hours_and_minutes_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&directory.path().join("h.db")).expect("made");
        let key = SeriesKey::device("a");
        let begin = 1_700_000_040;
        for at in begin..begin + 120 {
            history.add(at, &[(key.clone(), "a".into(), second(1.0))]).expect("added");
        }
        let late = begin + KEEP[0] + 90;
        history.add(late, &[(key.clone(), "a".into(), second(2.0))]).expect("added");
        let seconds = Query { resolution: Some(Resolution::Second), ..Query::of(key.clone(), begin, late + 1) };
        let left = history.query(&seconds).expect("read").rows;
        assert_eq!((left.len(), left[0].at), (31, begin + 90));
        let minutes = Query { resolution: Some(Resolution::Minute), ..Query::of(key, begin, late) };
        assert_eq!(history.query(&minutes).expect("read").rows.len(), 2);
    }

    /// Two seconds of different values, twice a day, for more than two years.
    #[test]
    fn a_year_ago_is_known_by_the_hour() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&directory.path().join("h.db")).expect("made");
        let key = SeriesKey::device("a");
        let (begin, step) = (1_700_006_400, 12 * 3600);
        let end = begin + KEEP[2] + 60 * 86_400;
        for hour in (begin..end).step_by(step) {
            for at in 0..2 {
                let value = if at == 0 { 1.0 } else { 2.0 };
                history.add(hour + at, &[(key.clone(), "a".into(), second(value))]).expect("added");
            }
        }
        history.end(&key).expect("written");
        let rows = |resolution: Resolution| {
            let metrics = vec!["read_iops"];
            let query = Query { resolution: Some(resolution), metrics, ..Query::of(key.clone(), begin, end) };
            history.query(&query).expect("read").rows
        };
        let (minutes, hours) = (rows(Resolution::Minute), rows(Resolution::Hour));
        // What is old goes at the latest an hour after its time; here at the next seconds that are added.
        let most = |kept: u64| (kept / step as u64 + 1) as usize;
        assert!((most(KEEP[1]) - 2..=most(KEEP[1])).contains(&minutes.len()), "{}", minutes.len());
        assert!((most(KEEP[2]) - 2..=most(KEEP[2])).contains(&hours.len()), "{}", hours.len());
        assert!(hours.iter().all(|hour| hour.seconds == 2 && hour.values == [Some(1.5)]));
        assert_eq!(hours[0].at % 3600, 0);
    }

    #[test]
    fn a_series_that_was_let_go_begins_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&directory.path().join("h.db")).expect("made");
        let row = |name: &str| (SeriesKey::device(name), name.to_string(), second(1.0));
        let begin = 1_700_000_000;
        history.add(begin, &[row("a")]).expect("added");
        // So much later that nothing of the first is kept; it was never said that it would get no more seconds.
        let late = begin + KEEP[2] + 7200;
        history.add(late, &[row("b")]).expect("added");
        assert_eq!(history.find("a").expect("read"), None);
        history.add(late + 1, &[row("a")]).expect("added");
        let query = Query { resolution: Some(Resolution::Second), ..Query::of(SeriesKey::device("a"), late, late + 9) };
        assert_eq!(history.query(&query).expect("read").rows.len(), 1);
    }

    #[test]
    fn the_file_stays_within_its_bounds_and_the_newest_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("h.db");
        let limit = 1 << 20;
        let mut history = History::with_limit(&path, limit).expect("made");
        let begin = 1_700_000_000;
        let end = begin + 3600;
        for at in begin..end {
            let key =
                |number: u32| (SeriesKey::device(format!("{number}")), format!("{number}"), second(f64::from(number)));
            history.add(at, &(0..10).map(key).collect::<Vec<_>>()).expect("added");
        }
        // Without the limit it would be some five times as large.
        assert!(history.file_bytes() < 4 * limit + (4 << 20), "{}", history.file_bytes());
        let key = SeriesKey::device("3");
        let query = Query { resolution: Some(Resolution::Second), ..Query::of(key, begin, end) };
        let rows = history.query(&query).expect("read").rows;
        assert_eq!(rows.last().map(|row| row.at), Some(end - 1));
        assert!(rows[0].at > begin, "nothing was let go");
    }
}
