//! Faults that last until they are undone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use crate::PageAddr;

/// A flipped bit on the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rot {
    /// The page.
    pub at: PageAddr,
    /// Which of its bytes were looked at.
    pub bytes: Range<u32>,
    /// Which bit of them was flipped.
    pub bit: u32,
    /// What they were afterwards: anything else was written later.
    pub after: Vec<u8>,
}

/// Everything that is wrong with a medium on command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Dies that answer nothing.
    pub dead: BTreeSet<u32>,
    /// Dies that answer so much later.
    pub stalled: BTreeMap<u32, Duration>,
    /// Places that cannot be read.
    pub unreadable: Vec<(PageAddr, Range<u32>)>,
    /// Bits that were flipped.
    pub rotten: Vec<Rot>,
}
