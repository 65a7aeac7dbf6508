//! Where things are on a disk, and how long the arm and the platter take to bring the head there.

use profile::Disk;

use crate::device::Nanos;

/// Being late by less than this is rounding, not a missed sector, nanoseconds.
const ROUNDING: f64 = 5_000.0;

/// Arm and platter.
#[derive(Clone, Debug)]
pub struct Mechanics {
    period: f64,
    seek: SeekCurve,
    write_settle: f64,
    zones: Vec<Zone>,
    cylinders_in_zone: f64,
}

/// Cylinders of one rate.
#[derive(Clone, Copy, Debug)]
struct Zone {
    start: u64,
    end: u64,
    bytes_per_s: u64,
    /// Bytes that pass the head in a turn.
    track_bytes: f64,
    /// Bytes under all heads in one place of the arm.
    cylinder_bytes: f64,
}

/// Seek time over distance: a + b·√d + c·d, through the data sheet's track-to-track and full-stroke times, and so that the mean over
/// random pairs of places is its average. The distance x of random places on a stroke of 1 has the density 2·(1 − x), so that √x is 8/15 and x 1/3 in
/// the mean.
#[derive(Clone, Copy, Debug)]
struct SeekCurve {
    a: f64,
    b: f64,
    c: f64,
    least: f64,
}

impl SeekCurve {
    fn new(sheet: &Disk) -> Self {
        let stroke = f64::from(sheet.cylinders - 1);
        // Each point: √d, d, time.
        let points = [
            (1.0, 1.0, sheet.track_to_track_ms),
            (stroke.sqrt() * 8.0 / 15.0, stroke / 3.0, sheet.average_seek_ms),
            (stroke.sqrt(), stroke, sheet.full_stroke_ms),
        ];
        let [(s0, d0, t0), (s1, d1, t1), (s2, d2, t2)] = points.map(|(s, d, ms)| (s, d, ms * 1e6));
        // Two equations are left when the first is taken from the others.
        let b = ((t1 - t0) * (d2 - d0) - (t2 - t0) * (d1 - d0)) / ((s1 - s0) * (d2 - d0) - (s2 - s0) * (d1 - d0));
        let c = ((t2 - t0) - b * (s2 - s0)) / (d2 - d0);
        SeekCurve { a: t0 - b * s0 - c * d0, b, c, least: t0 }
    }

    fn time(&self, cylinders: f64) -> f64 {
        if cylinders < 0.5 {
            return 0.0;
        }
        (self.a + self.b * cylinders.sqrt() + self.c * cylinders).max(self.least)
    }
}

impl Mechanics {
    /// From a data sheet.
    pub fn new(sheet: &Disk) -> Self {
        let period = 60e9 / sheet.rpm;
        let count = sheet.zones;
        let rates: Vec<f64> = (0..count)
            .map(|zone| {
                let inwards = if count == 1 { 0.5 } else { f64::from(zone) / f64::from(count - 1) };
                sheet.outer_bytes_per_s as f64 * (1.0 - inwards) + sheet.inner_bytes_per_s as f64 * inwards
            })
            .collect();
        let all: f64 = rates.iter().sum();
        let cylinders_in_zone = f64::from(sheet.cylinders) / f64::from(count);
        let mut zones = Vec::with_capacity(rates.len());
        let mut start = 0;
        let mut so_far = 0.0;
        for rate in rates {
            so_far += rate;
            let end = ((sheet.bytes as f64 * so_far / all) as u64).min(sheet.bytes);
            zones.push(Zone {
                start,
                end,
                bytes_per_s: rate as u64,
                track_bytes: rate * period / 1e9,
                cylinder_bytes: ((end - start) as f64 / cylinders_in_zone).max(1.0),
            });
            start = end;
        }
        if let Some(last) = zones.last_mut() {
            last.end = sheet.bytes;
        }
        Mechanics {
            period,
            seek: SeekCurve::new(sheet),
            write_settle: sheet.write_settle_ms * 1e6,
            zones,
            cylinders_in_zone,
        }
    }

    fn zone(&self, offset: u64) -> (usize, &Zone) {
        let at = self.zones.partition_point(|zone| zone.end <= offset).min(self.zones.len() - 1);
        (at, &self.zones[at])
    }

    /// The place of the arm over a byte, in cylinders.
    pub fn cylinder(&self, offset: u64) -> f64 {
        let (at, zone) = self.zone(offset);
        let within = (offset.saturating_sub(zone.start)) as f64 / zone.cylinder_bytes;
        (at as f64).mul_add(self.cylinders_in_zone, within.floor())
    }

    /// Rate at a byte, bytes a second.
    pub fn rate(&self, offset: u64) -> u64 {
        self.zone(offset).1.bytes_per_s
    }

    /// How long the head takes from the byte it stands over to the first byte of a request: seek, settle, turn. The angle follows
    /// from the time, so the same request at the same moment always waits the same. What follows directly costs no seek: tracks are skewed for that.
    pub fn position(&self, now: Nanos, stands: u64, offset: u64, write: bool) -> Nanos {
        let distance = if offset == stands { 0.0 } else { (self.cylinder(offset) - self.cylinder(stands)).abs() };
        let mut seek = self.seek.time(distance);
        if write && seek > 0.0 {
            seek += self.write_settle;
        }
        let (_, zone) = self.zone(offset);
        let target = ((offset - zone.start) as f64 / zone.track_bytes).fract() * self.period;
        let angle = (now as f64 + seek) % self.period;
        let mut turn = target - angle;
        if turn < 0.0 {
            turn += self.period;
        }
        if turn > self.period - ROUNDING {
            turn = 0.0;
        }
        (seek + turn) as Nanos
    }

    /// How long the platter takes to pass so many bytes from an offset on. Sequential tracks are skewed so that none costs a turn.
    pub fn pass(&self, offset: u64, bytes: u64) -> Nanos {
        let zone = self.zone(offset).1;
        (bytes as f64 / zone.track_bytes * self.period).round() as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mechanics() -> (Disk, Mechanics) {
        let Ok(profile::Profile { device: profile::Device::Disk(sheet), .. }) = profile::find("hitachi-15k600") else {
            panic!("a disk's sheet");
        };
        let mechanics = Mechanics::new(&sheet);
        (sheet, mechanics)
    }

    #[test]
    fn seeks_are_those_of_the_sheet() {
        let (sheet, mechanics) = mechanics();
        let ms = |cylinders: f64| mechanics.seek.time(cylinders) / 1e6;
        assert!((ms(1.0) - sheet.track_to_track_ms).abs() < 1e-6);
        assert!((ms(f64::from(sheet.cylinders - 1)) - sheet.full_stroke_ms).abs() < 1e-6);
        // The mean over random pairs of places is the sheet's average.
        let mut random = random::SplitMix64::new(1);
        let n = 100_000;
        let sum: f64 = (0..n)
            .map(|_| {
                let limit = u64::from(sheet.cylinders);
                ms((random.below(limit) as f64 - random.below(limit) as f64).abs())
            })
            .sum();
        let mean = sum / f64::from(n);
        assert!((mean / sheet.average_seek_ms - 1.0).abs() < 0.03, "{mean}");
        let mut before = 0.0;
        for cylinders in 1..sheet.cylinders {
            let time = ms(f64::from(cylinders));
            assert!(time >= before, "seeks never become shorter with distance");
            before = time;
        }
    }

    #[test]
    fn outer_tracks_are_faster_and_all_bytes_have_a_place() {
        let (sheet, mechanics) = mechanics();
        let last = sheet.bytes - 512;
        assert_eq!(mechanics.rate(0), sheet.outer_bytes_per_s);
        assert_eq!(mechanics.rate(last), sheet.inner_bytes_per_s);
        assert!(mechanics.cylinder(last) <= f64::from(sheet.cylinders));
        assert!(mechanics.cylinder(last) > f64::from(sheet.cylinders) * 0.999);
        assert_eq!(mechanics.cylinder(0), 0.0);
    }

    #[test]
    fn what_follows_on_the_track_needs_no_turn_and_what_was_just_passed_a_whole_one() {
        let (_, mechanics) = mechanics();
        let start = mechanics.position(0, 0, 4096, false);
        let end = start + mechanics.pass(4096, 8192);
        assert!(mechanics.position(end, 4096 + 8192, 4096 + 8192, false) < 100);
        let again = mechanics.position(end, 4096 + 8192, 4096, false) + mechanics.pass(4096, 8192);
        assert!(again.abs_diff(4_000_000) < 100, "{again}");
    }
}
