//! How fast sectors of each label die: counted, not assumed. On uniform traffic all labels die alike, whatever their levels say.

use super::label::{BINS, Label};

/// Deaths at the mean rate that every bin is taken to have seen: few sectors say little.
const PRIOR: f64 = 16.0;
/// Drive writes in which what was counted fades to a third: what changes within one is followed.
const WINDOW: f64 = 0.3;

#[derive(Clone, Copy, Default)]
struct Bin {
    /// Live sectors.
    live: i64,
    /// Deaths since the last advance.
    deaths: u32,
    /// Deaths in the window.
    fading: f64,
    /// Live sectors times time, in the window.
    exposure: f64,
    /// Deaths per live sector and sector that the host writes.
    hazard: f64,
    log_hazard: f32,
}

/// The count of deaths.
pub(super) struct Tally {
    bins: [Bin; BINS],
    window: f64,
    sectors: f64,
    last: u64,
}

impl Tally {
    pub fn new(sectors: u64) -> Tally {
        let hazard = 1.0 / sectors as f64;
        let bin = Bin { hazard, log_hazard: hazard.ln() as f32, ..Bin::default() };
        Tally { bins: [bin; BINS], window: sectors as f64 * WINDOW, sectors: sectors as f64, last: 0 }
    }

    pub fn born(&mut self, label: Label) {
        self.bins[label.bin()].live += 1;
    }

    pub fn died(&mut self, label: Label) {
        if !label.is_unknown() {
            let bin = &mut self.bins[label.bin()];
            bin.live -= i64::from(!crate::mutant!(TalliedTwice));
            bin.deaths += 1;
        }
    }

    pub fn relabelled(&mut self, from: Label, to: Label) {
        if from.bin() == to.bin() {
            return;
        }
        if !from.is_unknown() {
            self.bins[from.bin()].live -= 1;
        }
        self.bins[to.bin()].live += 1;
    }

    /// Works the hazards out anew.
    pub fn advance(&mut self, now: u64) {
        let span = now.saturating_sub(self.last) as f64;
        self.last = now;
        let keep = (-span / self.window).exp();
        let (mut deaths, mut exposure) = (1.0, self.sectors);
        for bin in &mut self.bins {
            bin.fading = bin.fading * keep + f64::from(std::mem::take(&mut bin.deaths));
            bin.exposure = bin.exposure * keep + bin.live as f64 * span;
            deaths += bin.fading;
            exposure += bin.exposure;
        }
        let prior = PRIOR * exposure / deaths;
        for bin in &mut self.bins {
            bin.hazard = (bin.fading + PRIOR) / (bin.exposure + prior);
            bin.log_hazard = bin.hazard.ln() as f32;
        }
    }

    /// Live sectors of a bin.
    pub fn live(&self, bin: usize) -> f64 {
        self.bins[bin].live as f64
    }

    /// Deaths for each live sector of a bin and each sector that the host writes.
    pub fn hazard(&self, bin: usize) -> f64 {
        self.bins[bin].hazard
    }

    /// The natural logarithm of a label's hazard.
    pub fn log_hazard(&self, label: Label) -> f32 {
        self.bins[label.bin()].log_hazard
    }
}
