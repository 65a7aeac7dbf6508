//! How well answers keep to the moments that the model gives, and whether the machine keeps up.

use hdrhistogram::Histogram;
use media::nand::Nanos;

/// An answer later than this is counted as late, nanoseconds.
const LATE: Nanos = 20_000;
/// An answer later than this share of the request's time is counted as off.
const OFF: f64 = 0.1;
/// The machine keeps up while at most so much of the last minute's answers were off.
const OFF_SHARE: f64 = 0.01;
/// Errors beyond this are counted as this, nanoseconds.
const MOST: u64 = 60_000_000_000;
const SECOND: Nanos = 1_000_000_000;

/// Whether figures measured on an emulated device are those of the card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keeping {
    /// Nothing was asked yet.
    Unknown,
    /// They are.
    Up,
    /// They are slower.
    Behind {
        /// Answers of the last minute that took more than a tenth longer than the card's, per cent.
        off_percent: f64,
        /// Those that came more than 20 us late, per cent.
        late_percent: f64,
    },
}

impl std::fmt::Display for Keeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Keeping::Unknown => f.write_str("nothing was asked yet"),
            Keeping::Up => f.write_str("keeps up with the card"),
            Keeping::Behind { off_percent, late_percent } => write!(
                f,
                "does not keep up: in the last minute {off_percent:.1} % of the answers took more than 10 % longer than the card's, \
                 {late_percent:.1} % came more than 20 us late; what is measured now is slower than the card"
            ),
        }
    }
}

/// How well an emulated device keeps to its model, since the attach. The error of an answer is the time between the moment at which
/// the card would have given it and the moment at which it was given, earlier or later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// Whether figures measured on it are those of the card.
    pub keeping: Keeping,
    /// Median error, microseconds.
    pub p50_us: f64,
    /// 99th percentile, microseconds.
    pub p99_us: f64,
    /// The largest, microseconds.
    pub max_us: f64,
    /// 99th percentile of the error in per cent of the request's time.
    pub p99_percent: f64,
    /// Answers more than 20 us late, per cent of all.
    pub late_percent: f64,
    /// The same over the last minute.
    pub late_minute_percent: f64,
}

#[derive(Clone, Copy, Default)]
struct Second {
    number: u64,
    answers: u64,
    late: u64,
    off: u64,
}

pub(crate) struct Books {
    errors: Histogram<u64>,
    /// Errors in thousandths of the request's time.
    shares: Histogram<u64>,
    late: u64,
    /// The last minute, a slot a second.
    minute: [Second; 60],
}

impl Books {
    pub fn new() -> Books {
        let books = |most| Histogram::new_with_bounds(1, most, 2).expect("bounds and digits that it takes");
        Books { errors: books(MOST), shares: books(1_000_000), late: 0, minute: [Second::default(); 60] }
    }

    /// A request that came at `arrived` was due at `due` and is answered at `now`.
    #[inline]
    pub fn answered(&mut self, arrived: Nanos, due: Nanos, now: Nanos) {
        let error = now.abs_diff(due);
        let share = error as f64 / due.saturating_sub(arrived).max(1) as f64;
        self.errors.saturating_record(error.min(MOST));
        self.shares.saturating_record((share * 1000.0) as u64);
        let number = now / SECOND;
        let second = &mut self.minute[(number % 60) as usize];
        if second.number != number {
            *second = Second { number, ..Second::default() };
        }
        second.answers += 1;
        second.late += u64::from(error > LATE);
        second.off += u64::from(share > OFF);
        self.late += u64::from(error > LATE);
    }

    pub fn report(&self, now: Nanos) -> Pacing {
        let number = now / SECOND;
        let recent = self.minute.iter().filter(|second| second.answers > 0 && second.number + 60 > number);
        let (mut answers, mut late, mut off) = (0, 0, 0);
        for second in recent {
            answers += second.answers;
            late += second.late;
            off += second.off;
        }
        let percent = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 };
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        let keeps_up = late * 2 <= answers && off as f64 <= answers as f64 * OFF_SHARE;
        let keeping = match (self.errors.is_empty(), keeps_up) {
            (true, _) => Keeping::Unknown,
            (_, true) => Keeping::Up,
            (_, false) => Keeping::Behind { off_percent: percent(off, answers), late_percent: percent(late, answers) },
        };
        Pacing {
            keeping,
            p50_us: micros(self.errors.value_at_quantile(0.5)),
            p99_us: micros(self.errors.value_at_quantile(0.99)),
            max_us: micros(self.errors.max()),
            p99_percent: self.shares.value_at_quantile(0.99) as f64 / 10.0,
            late_percent: percent(self.late, self.errors.len()),
            late_minute_percent: percent(late, answers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_answers_are_told_and_forgotten_after_a_minute() {
        let mut books = Books::new();
        assert_eq!(books.report(0).keeping, Keeping::Unknown);
        for at in 0..1000 {
            books.answered(at * 100_000, at * 100_000 + 80_000, at * 100_000 + 81_000);
        }
        let report = books.report(SECOND / 10);
        assert_eq!(report.keeping, Keeping::Up);
        // Two digits are exact.
        assert_eq!((report.p50_us.round(), report.p99_us.round()), (1.0, 1.0));
        assert!((report.p99_percent - 1.2).abs() < 0.1, "{}", report.p99_percent);
        for at in 0..100 {
            books.answered(SECOND, 2 * SECOND + at, 2 * SECOND + 90_000_000 + at);
        }
        let report = books.report(2 * SECOND);
        assert!((report.late_percent - 9.09).abs() < 0.01, "{}", report.late_percent);
        assert_eq!(report.keeping, Keeping::Up, "90 ms on a second are less than a tenth");
        for _ in 0..100 {
            books.answered(3 * SECOND, 3 * SECOND + 50_000, 3 * SECOND + 150_000);
        }
        let report = books.report(3 * SECOND);
        let words = report.keeping.to_string();
        assert!(words.starts_with("does not keep up: in the last minute 8.3 % of"), "{words}");
        let report = books.report(100 * SECOND);
        assert_eq!((report.late_minute_percent, report.keeping), (0.0, Keeping::Up));
        assert!(report.late_percent > 0.0);
    }
}
