//! A card in memory.

use device::{Capacity, Device, EmulateOptions, Emulation, FormatOptions, WallClock};
use media::Memory;

/// A 64th of an ioDrive 320, in memory.
pub fn emulated_in_memory() -> Device {
    let format = FormatOptions { sector_bytes: 4096, capacity: Capacity::Advertised, label: String::new() };
    let emulation = Emulation { scale: 64, seed: 1 };
    let options = EmulateOptions { profile: "iodrive-320-mlc".into(), emulation, format };
    let medium = Device::format_emulated(&options, |geometry| Box::new(Memory::new(geometry))).expect("made");
    Device::emulated(medium, Box::new(WallClock::default())).expect("attached")
}
