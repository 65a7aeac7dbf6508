//! Every medium against the contract of `Media`, and what is particular to each.

mod backing;
mod common;
mod conformance;
mod flashback;
mod object_store;
mod paced;
mod ring;
mod simulation;
