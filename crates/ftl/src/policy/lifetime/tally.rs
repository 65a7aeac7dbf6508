//! How fast sectors of each label die: counted, not assumed. On uniform traffic all labels die alike, whatever their levels say.

use super::label::{BINS, Label};

/// Deaths at the mean rate that every bin is taken to have seen: few sectors say little.
const PRIOR: f64 = 16.0;
/// Drive writes in which what was counted fades to a third: what changes within one is followed.
const WINDOW: f64 = 0.3;

/// Where what has labels of a bin goes, and the natural logarithm of its hazard.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub log_hazard: f32,
    pub stream: u8,
}

/// What every write asks of a bin and counts in it: together, and small, since it competes for the cache with all the rest.
#[derive(Clone, Copy, Default)]
struct Bin {
    place: Place,
    live: u32,
    /// Deaths since the last advance.
    deaths: u32,
}

/// What follows from the counts.
#[derive(Clone, Copy)]
struct Rate {
    /// Deaths in the window.
    fading: f64,
    /// Live sectors times time, in the window.
    exposure: f64,
    /// Deaths per live sector and sector that the host writes.
    hazard: f64,
}

pub(super) struct Tally {
    bins: [Bin; BINS],
    rates: [Rate; BINS],
    window: f64,
    sectors: f64,
    last: u64,
}

impl Tally {
    pub fn new(sectors: u64) -> Tally {
        let hazard = 1.0 / sectors as f64;
        let place = Place { log_hazard: hazard.ln() as f32, stream: 0 };
        Tally {
            bins: [Bin { place, ..Bin::default() }; BINS],
            rates: [Rate { fading: 0.0, exposure: 0.0, hazard }; BINS],
            window: sectors as f64 * WINDOW,
            sectors: sectors as f64,
            last: 0,
        }
    }

    #[inline]
    pub fn born(&mut self, label: Label) {
        self.bins[label.bin()].live += 1;
    }

    #[inline]
    pub fn died(&mut self, label: Label) {
        if !label.is_unknown() {
            let bin = &mut self.bins[label.bin()];
            bin.live -= 1;
            bin.deaths += 1;
        }
    }

    #[inline]
    pub fn relabelled(&mut self, from: Label, to: Label) {
        self.bins[from.bin()].live -= u32::from(!from.is_unknown());
        self.bins[to.bin()].live += 1;
    }

    /// Works the hazards out anew.
    pub fn advance(&mut self, now: u64) {
        let span = now.saturating_sub(self.last) as f64;
        self.last = now;
        let keep = (-span / self.window).exp();
        let (mut deaths, mut exposure) = (1.0, self.sectors);
        for (bin, rate) in self.bins.iter_mut().zip(&mut self.rates) {
            rate.fading = rate.fading * keep + f64::from(std::mem::take(&mut bin.deaths));
            rate.exposure = rate.exposure * keep + f64::from(bin.live) * span;
            deaths += rate.fading;
            exposure += rate.exposure;
        }
        let prior = PRIOR * exposure / deaths;
        for (bin, rate) in self.bins.iter_mut().zip(&mut self.rates) {
            rate.hazard = (rate.fading + PRIOR) / (rate.exposure + prior);
            bin.place.log_hazard = rate.hazard.ln() as f32;
        }
    }

    /// Live sectors of a bin.
    pub fn live(&self, bin: usize) -> f64 {
        f64::from(self.bins[bin].live)
    }

    /// Deaths for each live sector of a bin and each sector that the host writes.
    pub fn hazard(&self, bin: usize) -> f64 {
        self.rates[bin].hazard
    }

    /// What has labels of the bin goes to this stream from now on.
    pub fn assign(&mut self, bin: usize, stream: u8) {
        self.bins[bin].place.stream = stream;
    }

    /// Where what has this label goes.
    #[inline]
    pub fn place(&self, label: Label) -> Place {
        self.bins[label.bin()].place
    }
}
