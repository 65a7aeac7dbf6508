//! What follows on the replacement of a die.

use device::Device;
use media::sim::{Cut, SimStore};
use random::SplitMix64;

/// Lets a rebuild come to its end, and to the device's record.
pub fn finish(device: &mut Device) {
    while !device.status().lost_dies.is_empty() || device.status().rebuilding.is_some() {
        device.background();
        device.poll();
        device.wait();
    }
}

/// Another die and the power fail together, and all that no sync covered is lost.
pub fn lose_die_and_power(device: Device, store: &SimStore, die: u32) {
    drop(device);
    store.fail_die(die);
    store.switch_off();
    store.power_cut_as(&mut SplitMix64::new(3), &Cut::LOSE_ALL);
}
