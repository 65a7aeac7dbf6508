//! The layer over media in memory: what it writes, what it wears, and in which order things happen.

mod cache;
mod cache_shares;
mod common;
mod narrow;
mod order;
mod placement;
mod rent;
mod wear;
mod write_amplification;
