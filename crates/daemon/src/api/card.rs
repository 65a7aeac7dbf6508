//! What a card says of itself, whatever it is doing.

use device::Info;
use profile::Profile;

use super::DeviceView;

/// Volts of a slot of PCI Express.
const SLOT_VOLTS: f64 = 12.0;

/// Fields of a card that a device without one lacks.
const OF_CARDS: [&str; 13] = [
    "product",
    "part_number",
    "link",
    "link_lanes",
    "slot_volts",
    "celsius",
    "peak_celsius",
    "watts",
    "power_limit_watts",
    "reserve_percent",
    "rated_written_bytes",
    "rated_left_percent",
    "pacing",
];

/// Sets what the data sheet says of an emulated card, or what a device has none of.
pub(super) fn identify(view: &mut DeviceView, info: &Info) {
    view.set("serial_number", &info.uuid.simple().to_string()[..20]);
    view.set("firmware", env!("CARGO_PKG_VERSION"));
    let sheet = info.emulation.and(info.profile.as_deref()).and_then(|name| profile::find(name).ok());
    let Some((profile, flash)) = sheet.as_ref().and_then(|profile: &Profile| Some((profile, profile.flash()?))) else {
        view.set("not_there", OF_CARDS);
        return;
    };
    view.set("product", format!("{} {}", profile.vendor, profile.product));
    view.set("part_number", &profile.name);
    if let Some(card) = &flash.card {
        let (generation, lanes, speed) = match (card.link.lanes_gen2, card.link.lanes_gen1) {
            (0, lanes) => ("1.1", lanes, "2.5"),
            (lanes, _) => ("2.0", lanes, "5.0"),
        };
        view.set("link", format!("PCI Express {generation} x{lanes}, {speed} GT/s a lane"));
        view.set("link_lanes", lanes);
        view.set("slot_volts", SLOT_VOLTS);
    }
}
