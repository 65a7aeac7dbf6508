//! Devices in virtual time: their times, their books, and how they age.

mod arrays;
mod common;
mod module;
mod module_times;
mod objects;
mod pacing;
mod placement;
mod snapshots;
