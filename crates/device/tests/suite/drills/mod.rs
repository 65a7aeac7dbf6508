//! Fault drills: each is refused where it was not asked for, has its effect, and ends with its undoing.

mod adaptive;
mod common;
mod dies;
mod durability;
mod emulated;
mod places;
mod power;
mod refusals;
