//! Emulated devices: a module that answers when the flash card of its data sheet would have.
//!
//! The layer and the core that carries out its commands are those of every other device, and the controller before it is that of the
//! card in virtual time. What is different: the medium is [`media::nand::Paced`], and [`Card`] lets the controller's time follow a
//! [`Clock`], of which it never knows whether it is the wall's.

mod back;
mod card;
mod chips;
mod clock;
mod format;
mod open;
mod pacing;
mod path_time;
mod zone_times;

pub(crate) use card::Card;
pub(crate) use chips::{Loss, parity_chips};
pub use clock::{Clock, WallClock};

pub(crate) use format::superblock;
pub use format::{EmulateOptions, Emulation, create_emulated};
pub(crate) use open::{open, open_media};
pub use pacing::{Keeping, Pacing};
