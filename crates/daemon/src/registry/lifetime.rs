//! How much of a device's life is used up.

use super::Registry;
use crate::Failure;
use crate::api::{EraseBin, Erases, Lifetime};

/// Bins of the histogram of erases, at most.
const BINS: u32 = 24;
/// Over how long writing must have been looked at before an end is projected from it, seconds: an hour.
const ENOUGH_S: u64 = 3600;

impl Registry {
    /// Figures over the life of a device's format. `per_day` is what was programmed a day lately, and over how long that was looked at.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn lifetime(&self, name: &str, per_day: (Option<f64>, u64), now: u64) -> Result<Lifetime, Failure> {
        let handle = self.handle(name)?;
        let (info, status) = (handle.info()?, handle.status()?);
        let wear = handle.with_device(|device| device.wear())?;
        let lebs = f64::from(status.lebs.max(1));
        let mut lifetime = Lifetime {
            host_written_bytes: status.bytes(status.layer.host_written_sectors),
            host_read_bytes: status.bytes(status.layer.host_read_sectors),
            media_written_bytes: status.layer.programmed_bytes,
            write_amplification: status.layer.write_amplification(),
            since: info.formatted,
            erases: Erases {
                total: status.layer.erased_lebs,
                average: status.layer.erased_lebs as f64 / lebs,
                source: "measured".into(),
                ..Erases::default()
            },
            reserve_percent: status.reserve_percent,
            active_media_percent: 100.0 * (1.0 - f64::from(status.lost) / f64::from(status.dies.max(1))),
            written_per_day_bytes: per_day.0,
            rate_over_s: per_day.1,
            source: "none".into(),
            ..Lifetime::default()
        };
        if let (Some((erases, _)), Some(rated_bytes)) = (wear, status.rated_written_bytes) {
            lifetime.erases = spread(&erases);
            let rate = per_day.0.filter(|_| per_day.1 >= ENOUGH_S);
            lifetime.rated_written_bytes = Some(rated_bytes);
            lifetime.rated_left_percent = status.rated_left_percent();
            lifetime.source = "modelled".into();
            lifetime.ends = ends(rated_bytes, status.layer.programmed_bytes, rate, now);
        }
        Ok(lifetime)
    }
}

/// When a rated life ends at a rate, seconds since 1970.
fn ends(rated_bytes: u64, written: u64, per_day: Option<f64>, now: u64) -> Option<u64> {
    let left = rated_bytes.saturating_sub(written) as f64;
    let rate = per_day.filter(|rate| *rate > 0.0)?;
    Some(now.saturating_add((left / rate * 86_400.0) as u64))
}

/// Erases of each block, those before the device was attached included.
fn spread(erases: &[u32]) -> Erases {
    let (min, max) = (erases.iter().copied().min(), erases.iter().copied().max());
    let (low, high) = (min.unwrap_or(0), max.unwrap_or(0));
    let width = (high - low) / BINS + 1;
    let mut histogram: Vec<EraseBin> = (0..=(high - low) / width)
        .map(|bin| EraseBin { from: low + bin * width, to: (low + (bin + 1) * width - 1).min(high), blocks: 0 })
        .collect();
    for count in erases {
        if let Some(bin) = histogram.get_mut(((count - low) / width) as usize) {
            bin.blocks += 1;
        }
    }
    let sum: u64 = erases.iter().map(|count| u64::from(*count)).sum();
    let average = sum as f64 / (erases.len().max(1)) as f64;
    Erases { total: sum, min, max, average, histogram, source: "modelled".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rated_life_is_used_up_byte_by_byte() {
        let rated = 3_000_000 << 20;
        let a_day = rated as f64 / 100.0;
        assert_eq!(ends(rated, 0, Some(a_day), 1000), Some(1000 + 100 * 86_400));
        assert_eq!(ends(rated, rated / 4, Some(a_day), 1000), Some(1000 + 75 * 86_400));
        assert_eq!(ends(rated, rated / 4, None, 1000), None);
        assert_eq!(ends(rated, rated / 4, Some(0.0), 1000), None, "at rest it lasts for ever");
        assert_eq!(ends(rated, rated * 2, Some(a_day), 1000), Some(1000), "beyond what it is rated for");
    }

    #[test]
    fn every_block_is_in_one_bin() {
        let erases: Vec<u32> = (0..1000).map(|leb| 100 + leb % 77).collect();
        let spread = spread(&erases);
        assert_eq!(spread.histogram.iter().map(|bin| bin.blocks).sum::<u32>(), 1000);
        assert!(spread.histogram.len() as u32 <= BINS);
        assert_eq!(
            (spread.min, spread.max, spread.total),
            (Some(100), Some(176), erases.iter().map(|count| u64::from(*count)).sum())
        );
        assert_eq!(spread.histogram.last().map(|bin| bin.to), Some(176));
        assert!(super::spread(&[]).histogram.iter().all(|bin| bin.blocks == 0));
        assert_eq!(super::spread(&[5, 5]).histogram, [EraseBin { from: 5, to: 5, blocks: 2 }]);
    }
}
