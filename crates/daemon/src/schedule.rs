//! Which snapshots a schedule makes and deletes. All of it follows from the snapshots that there are, the schedule and the time: nothing here
//! does anything.

use device::{Snapshot, SnapshotId};

use crate::api::Schedule;
use crate::clock;

/// A length of time of which a schedule keeps snapshots, by the calendar of UTC. Weeks begin on Mondays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    Hour,
    Day,
    Week,
}

/// The longest first: a snapshot is called after the longest period whose first it is.
const PERIODS: [Period; 3] = [Period::Week, Period::Day, Period::Hour];

impl Period {
    /// What its snapshots' names begin with.
    fn word(self) -> &'static str {
        match self {
            Period::Hour => "hourly",
            Period::Day => "daily",
            Period::Week => "weekly",
        }
    }

    /// How many of its snapshots a schedule keeps.
    fn keeps(self, schedule: &Schedule) -> u32 {
        match self {
            Period::Hour => schedule.hourly,
            Period::Day => schedule.daily,
            Period::Week => schedule.weekly,
        }
    }

    /// The number of the one that a moment lies in. 1970 began on a Thursday.
    fn of(self, seconds: u64) -> u64 {
        match self {
            Period::Hour => seconds / 3600,
            Period::Day => seconds / 86_400,
            Period::Week => (seconds / 86_400 + 3) / 7,
        }
    }

    /// What its snapshot of a moment is called. Nothing where a year would have more than four digits.
    fn name(self, seconds: u64) -> Option<String> {
        let moment = clock::show(seconds)?;
        Some(format!("{}-{}Z", self.word(), moment.get(..MINUTES)?))
    }
}

/// Characters of a moment down to its minutes.
const MINUTES: usize = "2026-11-25T04:00".len();

/// Whether a name is one that only schedules give, so that nothing is deleted that somebody made by hand.
pub fn is_reserved(name: &str) -> bool {
    let rest = PERIODS.iter().find_map(|period| name.strip_prefix(period.word())?.strip_prefix('-'));
    let moment = rest.and_then(|rest| rest.strip_suffix('Z')).filter(|moment| moment.len() == MINUTES);
    moment.is_some_and(|moment| humantime::parse_rfc3339(&format!("{moment}:00Z")).is_ok())
}

/// Whether a schedule made it, and nobody has renamed it since.
fn is_scheduled(snapshot: &Snapshot) -> bool {
    PERIODS.iter().any(|period| period.name(snapshot.created).as_ref() == Some(&snapshot.name))
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The snapshot to make.
    pub make: Option<String>,
    /// Those to delete, once it is made.
    pub delete: Vec<SnapshotId>,
}

/// What a schedule asks for now, seconds since 1970. `last` is when it made its newest snapshot, which may be gone: nobody who deletes one by hand
/// finds it made again.
///
/// The first snapshot of an hour is that of the hour, and may be that of the day and the week, too. Of each period the newest that have snapshots
/// count, however long ago they are: while nothing is made, nothing goes. A snapshot of a time to come, from before the clock was set back, neither
/// counts nor goes until that time has come.
pub fn plan(snapshots: &[Snapshot], schedule: &Schedule, last: Option<u64>, now: u64) -> Plan {
    let mut made: Vec<&Snapshot> = snapshots.iter().filter(|snapshot| is_scheduled(snapshot)).collect();
    made.sort_by_key(|snapshot| snapshot.created);
    let is_due = |period: &Period| {
        let mut moments = made.iter().map(|snapshot| snapshot.created).chain(last);
        period.keeps(schedule) > 0 && !moments.any(|moment| period.of(moment) == period.of(now))
    };
    let make = PERIODS.into_iter().find(is_due).and_then(|period| period.name(now));
    made.retain(|snapshot| snapshot.created <= now);
    let moments = || made.iter().map(|snapshot| snapshot.created).chain(make.as_ref().map(|_| now));
    // The first moment of each period that is kept.
    let mut kept = Vec::new();
    for period in PERIODS {
        let mut firsts: Vec<u64> = moments().collect();
        firsts.dedup_by_key(|moment| period.of(*moment));
        let over = firsts.len().saturating_sub(period.keeps(schedule) as usize);
        kept.extend(firsts.drain(over..));
    }
    let goes = |snapshot: &&&Snapshot| !snapshot.held && !kept.contains(&snapshot.created);
    let delete = made.iter().filter(goes).map(|snapshot| snapshot.id).collect();
    Plan { make, delete }
}

/// Whether whole periods went by without a snapshot.
pub fn has_missed(schedule: &Schedule, last: u64, now: u64) -> bool {
    let shortest = PERIODS.into_iter().rev().find(|period| period.keeps(schedule) > 0);
    shortest.is_some_and(|period| period.of(now) > period.of(last) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;

    fn at(moment: &str) -> u64 {
        let moment = humantime::parse_rfc3339(moment).expect(moment);
        moment.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs()
    }

    /// A device's snapshots, as a service looks after them.
    #[derive(Default)]
    struct Kept {
        snapshots: Vec<Snapshot>,
        last: Option<u64>,
        made: Vec<String>,
    }

    impl Kept {
        fn look(&mut self, schedule: &Schedule, now: u64) -> Plan {
            let plan = plan(&self.snapshots, schedule, self.last, now);
            if let Some(name) = &plan.make {
                assert!(is_reserved(name), "{name}");
                self.add(name, now);
                self.made.push(name.clone());
                self.last = Some(now);
            }
            self.snapshots.retain(|snapshot| !plan.delete.contains(&snapshot.id));
            let again = super::plan(&self.snapshots, schedule, self.last, now);
            assert_eq!(again, Plan::default(), "a second look at once has nothing to do");
            plan
        }

        fn run(&mut self, schedule: &Schedule, from: u64, to: u64) {
            (from..to).step_by(60).for_each(|now| drop(self.look(schedule, now)));
        }

        fn add(&mut self, name: &str, created: u64) {
            let id = self.snapshots.iter().map(|snapshot| snapshot.id).max().unwrap_or(0) + 1;
            self.snapshots.push(Snapshot { id, name: name.into(), created, held: false, mapped: 0 });
        }

        fn names(&self) -> Vec<&str> {
            self.snapshots.iter().map(|snapshot| snapshot.name.as_str()).collect()
        }

        fn get(&mut self, name: &str) -> &mut Snapshot {
            self.snapshots.iter_mut().find(|snapshot| snapshot.name == name).expect(name)
        }
    }

    const USUAL: Schedule = Schedule { hourly: 24, daily: 7, weekly: 4 };

    #[test]
    fn the_first_of_a_period_is_called_after_it_and_kept_for_it() {
        let mut kept = Kept::default();
        // A Monday, in the middle of an hour.
        let begin = at("2026-11-23T10:37:05Z");
        kept.run(&USUAL, begin, begin + 2 * HOUR);
        assert_eq!(kept.names(), ["weekly-2026-11-23T10:37Z", "hourly-2026-11-23T11:00Z", "hourly-2026-11-23T12:00Z"]);
        kept.run(&USUAL, begin + 2 * HOUR, at("2026-12-31T23:59:05Z"));
        let names = kept.names();
        assert_eq!(names.iter().filter(|name| name.starts_with("hourly")).count(), 23, "{names:?}");
        assert_eq!(names.iter().filter(|name| name.starts_with("daily")).count(), 6, "{names:?}");
        assert_eq!(
            names[..4],
            [
                "weekly-2026-12-07T00:00Z",
                "weekly-2026-12-14T00:00Z",
                "weekly-2026-12-21T00:00Z",
                // The oldest of seven days, and no Monday: its week's first is the fourth of four.
                "daily-2026-12-25T00:00Z"
            ]
        );
        assert_eq!(names[names.len() - 1], "hourly-2026-12-31T23:00Z");
    }

    #[test]
    fn no_period_has_two_and_what_was_missed_is_made_up_once() {
        let mut kept = Kept::default();
        let begin = at("2026-11-25T04:00:00Z");
        kept.run(&USUAL, begin, begin + 3 * HOUR);
        assert_eq!(kept.made.len(), 3);
        // The service was down for two days and a half.
        let later = begin + 60 * HOUR + 90;
        kept.run(&USUAL, later, later + HOUR / 2);
        assert_eq!(kept.made[3..], ["daily-2026-11-27T16:01Z"]);
        assert_eq!(kept.names().len(), 4, "nothing went while nothing was made: {:?}", kept.names());
        assert!(has_missed(&USUAL, begin, later) && !has_missed(&USUAL, begin, begin + HOUR));
        let weekly = Schedule { weekly: 4, ..Schedule::default() };
        assert!(!has_missed(&weekly, begin, later) && has_missed(&weekly, begin, begin + 15 * DAY));
    }

    #[test]
    fn what_somebody_deleted_or_renamed_is_not_made_again_in_its_period() {
        let mut kept = Kept::default();
        let begin = at("2026-11-25T04:00:00Z");
        kept.run(&USUAL, begin, begin + HOUR / 2);
        kept.get("weekly-2026-11-25T04:00Z").name = "mine".into();
        kept.run(&USUAL, begin + HOUR / 2, begin + HOUR);
        assert_eq!(kept.names(), ["mine"]);
        kept.run(&Schedule { hourly: 1, ..Schedule::default() }, begin + HOUR, begin + 5 * HOUR);
        assert_eq!(kept.names(), ["mine", "hourly-2026-11-25T08:00Z"], "it is nobody's but mine");
        kept.snapshots.pop();
        kept.run(&USUAL, begin + 5 * HOUR - 60, begin + 5 * HOUR);
        assert_eq!(kept.names(), ["mine"]);
    }

    #[test]
    fn only_its_own_go_and_held_ones_stay() {
        let mut kept = Kept::default();
        let begin = at("2026-11-25T04:00:00Z");
        for name in ["before-upgrade", "hourly-mine", "hourly-2026-11-25T01:00Z", "daily-2026-11-25"] {
            kept.add(name, begin - DAY);
        }
        let two = Schedule { hourly: 2, ..Schedule::default() };
        kept.run(&two, begin, begin + 2 * HOUR);
        kept.get("hourly-2026-11-25T04:00Z").held = true;
        kept.run(&two, begin + 2 * HOUR, begin + 6 * HOUR);
        let last = ["hourly-2026-11-25T04:00Z", "hourly-2026-11-25T08:00Z", "hourly-2026-11-25T09:00Z"];
        assert_eq!(kept.names()[4..], last);
        kept.get("hourly-2026-11-25T04:00Z").held = false;
        let plan = kept.look(&two, begin + 6 * HOUR - 1);
        assert_eq!(plan.delete.len(), 1, "it may go now");
        assert_eq!(kept.names().len(), 6);
    }

    #[test]
    fn fewer_are_kept_as_soon_as_the_schedule_says_so() {
        let mut kept = Kept::default();
        let begin = at("2026-11-23T00:00:00Z");
        kept.run(&USUAL, begin, begin + 10 * DAY);
        let days = Schedule { daily: 3, ..Schedule::default() };
        kept.look(&days, begin + 10 * DAY - 1);
        let firsts = ["weekly-2026-11-30T00:00Z", "daily-2026-12-01T00:00Z", "daily-2026-12-02T00:00Z"];
        assert_eq!(kept.names(), firsts, "the week's first is its day's, too");
    }

    #[test]
    fn a_clock_that_is_set_back_loses_nothing() {
        let mut kept = Kept::default();
        let begin = at("2026-11-25T04:00:00Z");
        let two = Schedule { hourly: 2, ..Schedule::default() };
        kept.run(&two, begin, begin + 2 * HOUR);
        // Back by an hour: it has its snapshot already.
        kept.run(&two, begin + HOUR / 2, begin + HOUR);
        assert_eq!(kept.made.len(), 2);
        // A year too late for some hours: those of before are older ones, as they should be.
        kept.run(&two, begin + 365 * DAY, begin + 365 * DAY + 3 * HOUR);
        let of_later = ["hourly-2027-11-25T05:00Z", "hourly-2027-11-25T06:00Z"];
        assert_eq!(kept.names(), of_later);
        // Set right again: it goes on, those of a time to come neither go nor crowd others out.
        kept.run(&two, begin + 2 * HOUR, begin + 6 * HOUR);
        let right = ["hourly-2026-11-25T08:00Z", "hourly-2026-11-25T09:00Z"];
        assert_eq!(kept.names(), [of_later, right].concat());
        // 1970, as a machine without a clock of its own begins: one is made, and goes later as the oldest.
        kept.run(&two, 90, 200);
        assert_eq!(kept.names().last(), Some(&"hourly-1970-01-01T00:01Z"));
        kept.run(&two, begin + 6 * HOUR, begin + 7 * HOUR);
        assert_eq!(kept.names(), [of_later, ["hourly-2026-11-25T09:00Z", "hourly-2026-11-25T10:00Z"]].concat());
    }

    #[test]
    fn days_and_weeks_are_those_of_the_calendar() {
        let week = |moment| Period::Week.of(at(moment));
        assert_eq!(week("2026-11-29T23:59:59Z") + 1, week("2026-11-30T00:00:00Z"), "a Monday");
        assert_eq!(week("2027-01-03T23:59:59Z"), week("2026-12-28T00:00:00Z"), "over the year's end");
        assert_eq!(Period::Week.of(0), Period::Week.of(3 * DAY));
        // 29 February is a day as any other.
        let mut kept = Kept::default();
        let daily = Schedule { daily: 3, ..Schedule::default() };
        kept.run(&daily, at("2028-02-27T00:00:00Z"), at("2028-03-01T12:00:00Z"));
        assert_eq!(kept.made.len(), 4);
        assert_eq!(kept.names(), ["daily-2028-02-28T00:00Z", "daily-2028-02-29T00:00Z", "daily-2028-03-01T00:00Z"]);
        assert_eq!(Period::Hour.name(u64::MAX), None, "no name, and so no snapshot");
        assert_eq!(plan(&[], &USUAL, None, u64::MAX), Plan::default());
    }

    #[test]
    fn names_of_schedules_are_told_from_others() {
        for name in ["hourly-2026-11-25T04:00Z", "daily-1970-01-01T00:00Z", "weekly-2028-02-29T23:59Z"] {
            assert!(is_reserved(name), "{name}");
        }
        let others = ["hourly", "hourly-", "hourly-mine", "hourly-2026-11-25T04:00", "hourly-2026-13-25T04:00Z"];
        for name in others.into_iter().chain(["yearly-2026-11-25T04:00Z", "hourly-2026-11-25T04:00:00Z", "", "daily-é"])
        {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
