//! Devices in virtual time, made from data sheets.
//!
//! **What it is for.** Answering "how would that card have behaved": the unchanged translation layer on the NAND model, spinning
//! disks, drives behind a bridge, and arrays of them, all behind [`VirtualDevice`].
//!
//! **What it promises.** No clock of its own, no threads, no randomness but from the seed it is given: the same requests at the
//! same moments give the same answers, and every request gets exactly one.
//!
//! **Where to start.** [`VirtualDevice`] in `device.rs`.

mod agenda;
mod array;
mod bridge;
mod build;
mod cache;
mod controller;
mod device;
mod disk;
mod format;
mod governor;
mod layout;
mod leds;
mod map_cache;
mod moderated;
mod module;
mod objects;
mod report;
mod snapshots;
mod steps;
#[cfg(test)]
mod testing;

pub use array::{Array, MemberAnswer, Members, Parents, Raid5, WriteBack};
pub use bridge::Bridge;
pub use build::{Arrangement, BuildError, Built, Options, Scaling, build, build_cache, check_scale};
pub use controller::{Back, Change, Controller, Due, Ended, Fetched};
pub use device::{Answer, Failure, Nanos, Op, Request, VirtualDevice};
pub use disk::Disk;
pub use format::Format;
pub use ftl::{Pacing, Policy};
pub use governor::{Governor, Level, PERIOD, Surroundings};
pub use layout::{Layout, LayoutError, buffer_pages, largest_scale, layout, shape, usable_bytes};
pub use leds::Leds;
pub use media::nand::micros;
pub use media::object::MONTH_MS;
pub use moderated::Moderated;
pub use module::{Module, ModuleConfig};
pub use objects::{Bill, NoObjects, ObjectDevice, ObjectsConfig, ObjectsReport, Store};
pub use report::{Busy, CacheReport, ChipChange, ChipEvent, EraseCounts, Health, Report};
pub use snapshots::{Every, Schedule, SnapshotUse};
