//! What the open LEBs are filled with, and of what kind they are then: what the tally promised of their sectors, in octaves of lifetime, what the host
//! writes and what was moved apart.

use crate::leb::DATA_STREAMS;
use crate::policy::Shape;
use crate::policy::victims::Row;

/// Octaves of lifetime.
const CLASSES: usize = 17;
/// That of what lives for a drive write.
const DRIVE_WRITE: u32 = 12;

/// What was placed in an open LEB.
#[derive(Clone, Copy, Default)]
struct Placed {
    /// Sum of the logarithms of the hazards.
    logs: f32,
    count: u32,
}

/// The open LEBs, by stream.
pub struct Filling {
    open: [Placed; DATA_STREAMS as usize],
    /// Streams from this one on are for what was moved.
    moved: u8,
    sectors: f32,
}

impl Filling {
    pub fn new(shape: &Shape) -> Filling {
        Filling { open: Default::default(), moved: shape.streams / 2, sectors: (shape.sectors as f32).max(1.0) }
    }

    /// The lifetimes that the kinds of LEBs stand for.
    pub fn said(&self) -> Vec<f32> {
        let class = |row: usize| (((row % CLASSES) as f32) - DRIVE_WRITE as f32).exp2() * self.sectors;
        (0..2 * CLASSES).map(class).collect()
    }

    /// The kind of LEBs whose sectors are said to live so long.
    pub fn row(&self, moved: bool, lifetime: f32) -> Row {
        let octaves = (lifetime / self.sectors).max(f32::MIN_POSITIVE).log2() + DRIVE_WRITE as f32;
        let class = octaves.round().clamp(0.0, (CLASSES - 1) as f32) as u8;
        Row(class + if moved { CLASSES as u8 } else { 0 })
    }

    pub fn opened(&mut self, stream: u8) {
        self.open[usize::from(stream)] = Placed::default();
    }

    /// A sector that dies at a rate of this logarithm was placed in the LEB that the stream has open. Where it has none nothing comes of it.
    #[inline]
    pub fn placed(&mut self, stream: u8, log_hazard: f32) {
        let placed = &mut self.open[usize::from(stream)];
        placed.logs += log_hazard;
        placed.count += 1;
    }

    /// The LEB of a stream is full: of what kind it is, and how many sectors were placed there, if there were any.
    pub fn closed(&mut self, stream: u8) -> Option<(Row, u32)> {
        let placed = std::mem::take(&mut self.open[usize::from(stream)]);
        let lifetime = (-placed.logs / placed.count as f32).exp();
        (placed.count > 0).then(|| (self.row(stream >= self.moved, lifetime), placed.count))
    }
}
