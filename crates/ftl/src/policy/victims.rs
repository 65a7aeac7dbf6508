//! Which LEB to groom: the one that gains least by waiting.
//!
//! Grooming a LEB whose share u is live costs u / (1 - u) moves for each slot gained. That falls while it waits, the faster the sooner its sectors die; the one to
//! take is where it falls slowest (Lomet and Luo, "Efficiently Reclaiming Space in a Log Structured Store", ICDE 2021, there for estimated rates of
//! update): where (1 - u)² / (u h) is greatest, h the rate at which its live sectors die. On uniform traffic h is the same for all, and this is greedy.
//!
//! h is what LEBs of its kind and age lost before (`life_table.rs`), corrected by how many of its own sectors did die since it was filled: as if [`PRIOR`] deaths had
//! been seen at the rate of its kind. What a kind is the policy says.

mod life_table;

pub use life_table::Row;

use super::{Eligible, LebView, Shape};
use life_table::LifeTable;

use crate::types::LebId;

/// Deaths that the word of the kind is worth.
const PRIOR: f32 = 16.0;
/// The most steps of the table over shares of live sectors.
const STEPS: u32 = 1024;
/// So often in a drive write the LEBs are looked through for what died.
const SURVEYS: u64 = 32;
/// At the least so many sectors are written in between.
const SURVEYED_AFTER: u64 = 256;

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
pub struct Victims {
    lebs: Vec<Known>,
    table: ShareTable,
    lives: LifeTable,
    unknown: Known,
    every: u64,
    surveyed: u64,
}

impl Victims {
    /// There are as many kinds as lifetimes are said: what to expect as long as nothing was seen. `unknown` is the kind of LEBs that were filled before.
    pub fn new(shape: &Shape, said: Vec<f32>, unknown: Row) -> Victims {
        let unknown = Known::new(unknown, Known::UNCOUNTED);
        Victims {
            lebs: vec![unknown; shape.lebs as usize],
            table: ShareTable::new(shape.slots_per_leb),
            lives: LifeTable::new(shape.sectors, said),
            unknown,
            every: (shape.sectors / SURVEYS).max(SURVEYED_AFTER),
            surveyed: 0,
        }
    }

    /// There are so many LEBs.
    pub fn grow(&mut self, lebs: u32) {
        self.lebs.resize(lebs as usize, self.unknown);
    }

    pub fn opened(&mut self, leb: LebId) {
        self.lebs[leb as usize] = self.unknown;
    }

    /// A LEB is full, or was given up: of what kind it is, and how many sectors were put there, if that is known.
    pub fn closed(&mut self, leb: LebId, row: Row, count: Option<u32>) {
        self.lebs[leb as usize] = Known::new(row, count.unwrap_or(Known::UNCOUNTED));
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
