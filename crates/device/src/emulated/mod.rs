//! Emulated devices: a module that answers when the flash card of its data sheet would have.
//!
//! The layer and the engine that carries it out are those of every other device. What is different: the medium is
//! [`media::nand::Paced`], and [`Engine`] stands before the layer as link and controller do on the card. It is told the time
//! by a [`Clock`] and never knows whether that is the wall's.

mod clock;
mod engine;
mod format;
mod hooks;
mod open;
mod pacing;
mod path_time;

pub use clock::{Clock, WallClock};
pub(crate) use engine::Engine;
pub(crate) use format::superblock;
pub use format::{EmulateOptions, Emulation, create_emulated};
pub(crate) use hooks::Hooks;
pub(crate) use open::{open, open_media};
pub use pacing::Pacing;
