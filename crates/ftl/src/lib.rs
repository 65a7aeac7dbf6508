//! The translation layer: a deterministic state machine that decides where every sector lives.

pub mod geometry;
pub use geometry::Geometry;
