//! Moves: the real state machine of a move (`array::Mover`) over two real devices on simulated media, to and fro.
//!
//! **What it promises.** What [`crate::run`] promises of a device holds while it is moved, whatever happens: both devices lose power at
//! once, in traffic or in the middle of handing over; the new one fails; the old one refuses something. When the move is to be handed
//! over, both devices hold the same, and from then on the new one alone has everything that was flushed.

mod requests;
mod run;

pub(crate) use run::run;
