//! A file system for tests. It loses what was not synced when its power is cut, and fails on command.
//!
//! It is one flat directory of regular files, mounted with FUSE. What is written stays in a volatile cache until a sync
//! covers it; a [cut](Disk::cut) throws the cache away, or lets pieces of it reach the store, by a seed. [Rules](rules)
//! make operations fail, stop short, take their time or go wrong without a word. Both are steered by JSON lines on a
//! [socket](control).

pub mod control;
mod dice;
mod disk;
mod inode;
mod mount;
mod names;
pub mod rules;
mod store;

pub use dice::Cut;
pub use disk::{Damage, Disk};
pub use mount::FaultFs;
