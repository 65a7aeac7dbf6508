//! Which LEB to groom: the one that gains least by waiting.
//!
//! Grooming a LEB whose share u is live costs u / (1 - u) moves for each slot gained. That falls while it waits, the faster the sooner its sectors die; the one to
//! take is where it falls slowest (Lomet and Luo, "Efficiently Reclaiming Space in a Log Structured Store", ICDE 2021, there for estimated rates of
//! update): where (1 - u)² / (u h) is greatest, h the rate at which its live sectors die. On uniform traffic h is the same for all, and this is greedy.
//!
//! h is what LEBs of its class and age lost before (`life_table.rs`), corrected by how many of its own sectors did die since it was filled: as if [`PRIOR`] deaths had
//! been seen at the rate of its class.

use super::life_table::{LifeTable, Row};
use crate::leb::DATA_STREAMS;
use crate::policy::{Eligible, LebView, Shape};
use crate::types::LebId;

/// Deaths that the word of the class is worth.
const PRIOR: f32 = 16.0;
/// The most steps of the table over shares of live sectors.
const STEPS: u32 = 1024;
/// So often in a drive write the LEBs are looked through for what died.
const SURVEYS: u64 = 32;
/// At the least so many sectors are written in between.
const SURVEYED_AFTER: u64 = 256;

/// What was placed in an open LEB.
#[derive(Clone, Copy, Default)]
struct Placed {
    /// Sum of the logarithms of the hazards.
    logs: f32,
    count: u32,
}

/// What is known of a LEB, in four bytes.
#[derive(Clone, Copy)]
struct Known(u32);

impl Known {
    /// How many sectors lived when they were counted last is not known.
    const UNCOUNTED: u32 = (1 << 24) - 1;

    fn new(row: Row, live: u32) -> Known {
        Known(live.min(Known::UNCOUNTED) << 8 | u32::from(row.0))
    }

    #[inline]
    fn row(self) -> Row {
        Row(self.0 as u8)
    }

    fn live(self) -> Option<u32> {
        Some(self.0 >> 8).filter(|live| *live != Known::UNCOUNTED)
    }
}

/// What is known of the LEBs.
pub(super) struct Victims {
    lebs: Vec<Known>,
    /// By stream.
    open: [Placed; DATA_STREAMS as usize],
    table: ShareTable,
    lives: LifeTable,
    unknown: Known,
    /// Streams from this one on are for what was moved.
    moved: u8,
    every: u64,
    surveyed: u64,
}

impl Victims {
    pub fn new(shape: &Shape) -> Victims {
        let lives = LifeTable::new(shape.sectors);
        let unknown = Known::new(lives.row(true, shape.sectors as f32), Known::UNCOUNTED);
        Victims {
            lebs: vec![unknown; shape.lebs as usize],
            open: Default::default(),
            table: ShareTable::new(shape.slots_per_leb),
            lives,
            unknown,
            moved: shape.streams / 2,
            every: (shape.sectors / SURVEYS).max(SURVEYED_AFTER),
            surveyed: 0,
        }
    }

    /// There are so many LEBs.
    pub fn grow(&mut self, lebs: u32) {
        self.lebs.resize(lebs as usize, self.unknown);
    }

    pub fn opened(&mut self, leb: LebId, stream: u8) {
        self.lebs[leb as usize] = self.unknown;
        self.open[usize::from(stream)] = Placed::default();
    }

    /// A sector that dies at a rate of this logarithm was placed in the LEB that the stream has open. Where it has none nothing comes of it.
    #[inline]
    pub fn placed(&mut self, stream: u8, log_hazard: f32) {
        let placed = &mut self.open[usize::from(stream)];
        placed.logs += log_hazard;
        placed.count += 1;
    }

    pub fn closed(&mut self, leb: LebId, stream: u8) {
        let placed = std::mem::take(&mut self.open[usize::from(stream)]);
        if placed.count > 0 {
            let lifetime = (-placed.logs / placed.count as f32).exp();
            self.lebs[leb as usize] = Known::new(self.lives.row(stream >= self.moved, lifetime), placed.count);
        }
    }

    /// Counts how many sectors died in the LEBs, now and then.
    pub fn survey(&mut self, lebs: &Eligible) {
        let span = lebs.now().saturating_sub(self.surveyed);
        if span < self.every {
            return;
        }
        for leb in lebs.movable() {
            self.count(&leb);
        }
        self.surveyed = lebs.now();
        self.lives.advance(span as f32);
    }

    /// A LEB is groomed: what died in it since the last survey counts, too.
    pub fn took(&mut self, leb: &LebView) {
        if !leb.damaged {
            self.count(leb);
        }
    }

    fn count(&mut self, leb: &LebView) {
        let known = &mut self.lebs[leb.id as usize];
        let (row, before) = (known.row(), known.live());
        *known = Known::new(row, leb.live);
        if let Some(before) = before {
            let span = leb.now.saturating_sub(self.surveyed).min(leb.host_age()) as f32;
            let (deaths, lived) = (before.saturating_sub(leb.live) as f32, (before + leb.live) as f32 / 2.0);
            self.lives.count(row, leb.host_age() as f32 - span / 2.0, deaths, lived * span);
        }
    }

    #[inline]
    pub fn score(&self, leb: &LebView) -> f32 {
        let at = self.table.at(leb.live);
        let outlook = self.lives.ask(self.lebs[leb.id as usize].row(), leb.host_age() as f32);
        at.gain * outlook.wait * (PRIOR + at.lived * outlook.past)
    }

    pub fn memory(&self) -> usize {
        self.lebs.capacity() * size_of::<Known>()
            + self.table.steps.capacity() * size_of::<Share>()
            + self.lives.memory()
    }
}

/// What follows from the share of live sectors.
#[derive(Clone, Copy)]
struct Share {
    /// (1 - u)² / u, over [`PRIOR`] and the deaths so far.
    gain: f32,
    /// The sectors that lived in the mean: deaths over -ln u.
    lived: f32,
}

/// [`Share`] for shares in steps; nothing is worked out when LEBs are compared.
struct ShareTable {
    steps: Vec<Share>,
    /// Steps for each live sector.
    scale: f32,
}

impl ShareTable {
    fn new(slots_per_leb: u32) -> ShareTable {
        let slots = f64::from(slots_per_leb);
        let last = STEPS.min(slots_per_leb);
        let steps = (0..=last).map(|step| {
            let u = f64::from(step).clamp(0.5, f64::from(last) - 0.5) / f64::from(last);
            let dead = f64::from(last - step) / f64::from(last) * slots;
            let gain = (1.0 - u) * (1.0 - u) / u / (f64::from(PRIOR) + dead);
            Share { gain: gain as f32, lived: (slots * (1.0 - u) / -u.ln()) as f32 }
        });
        ShareTable { steps: steps.collect(), scale: last as f32 / slots_per_leb.max(1) as f32 }
    }

    #[inline]
    fn at(&self, live: u32) -> Share {
        // Half a step to the next whole one.
        let step = (live as f32 * self.scale + 0.5) as usize;
        self.steps[step.min(self.steps.len() - 1)]
    }
}
