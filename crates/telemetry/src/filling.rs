//! How soon something is full, at the rate at which it filled lately: the file system under a device, or its room for data and snapshots.

/// Over how long the rate is a mean, seconds: what fills it for a few minutes only raises no alarm.
const SPAN: f64 = 3600.0;
/// What is said where nothing fills it, and the longest time that is said otherwise: a year.
pub const LONGEST_HOURS: f64 = 8760.0;

/// What is watched. Of a file system whoever writes to it counts, not only the device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Filling {
    free: f64,
    /// Bytes a second by which it fills; negative where it empties.
    rate: f64,
}

impl Filling {
    /// The first look.
    pub fn new(free: u64) -> Filling {
        Filling { free: free as f64, rate: 0.0 }
    }

    /// The next look, so many seconds later.
    pub fn look(&mut self, free: u64, seconds: f64) {
        let free = free as f64;
        let weight = 1.0 - (-seconds / SPAN).exp();
        self.rate += ((self.free - free) / seconds - self.rate) * weight;
        self.free = free;
    }

    /// Hours until it is full.
    pub fn hours(&self) -> f64 {
        match self.rate > 0.0 {
            true => (self.free / self.rate / 3600.0).min(LONGEST_HOURS),
            false if self.free <= 0.0 => 0.0,
            false => LONGEST_HOURS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file system of 100 GB that fills by so many bytes in each of so many seconds.
    fn filled(rates: &[(u64, u32)]) -> Filling {
        let mut free = 100_000_000_000;
        let mut filling = Filling::new(free);
        for (rate, seconds) in rates {
            for _ in 0..*seconds {
                free -= rate;
                filling.look(free, 1.0);
            }
        }
        filling
    }

    #[test]
    fn a_steady_rate_is_found_out() {
        // 1 MB/s for six hours: 78.4 GB are left, and at that rate they last 21.8 hours.
        let hours = filled(&[(1_000_000, 21_600)]).hours();
        assert!((21.5..22.5).contains(&hours), "{hours}");
    }

    #[test]
    fn a_short_burst_is_no_trend() {
        // 20 MB/s for a minute would fill it in 1.4 hours; over the hour it is a sixtieth of that.
        let hours = filled(&[(20_000_000, 60)]).hours();
        assert!(hours > 72.0, "{hours}");
        assert!(filled(&[(20_000_000, 60), (0, 7_200)]).hours() > hours, "it is forgotten");
    }

    #[test]
    fn where_nothing_fills_it_there_is_a_year() {
        assert_eq!(Filling::new(1).hours(), LONGEST_HOURS);
        assert_eq!(filled(&[(0, 100)]).hours(), LONGEST_HOURS);
        let mut filling = filled(&[(1_000_000, 3_600)]);
        filling.look(0, 1.0);
        assert_eq!(filling.hours(), 0.0, "it is full");
        for _ in 0..36_000 {
            filling.look(50_000_000_000, 1.0);
        }
        assert_eq!(filling.hours(), LONGEST_HOURS, "somebody made room");
        assert_eq!(Filling::new(0).hours(), 0.0);
    }
}
