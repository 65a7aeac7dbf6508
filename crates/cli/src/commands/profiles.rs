//! `vsl profiles`.

use daemon::Failure;
use profile::{Device, Profile};
use serde_json::json;

use crate::output::Output;

pub fn list(output: Output) -> Result<(), Failure> {
    let profiles = profile::all().map_err(|error| Failure::failed(error.to_string()))?;
    output.result(&json!({ "profiles": profiles }), || {
        let blocks = profiles.iter().map(|profile| {
            let Profile { name, vendor, product, .. } = profile;
            format!("{name}\n  {vendor} {product}\n  {}: {}\n", profile.kind(), layout(&profile.device))
        });
        blocks.collect()
    })
}

fn layout(device: &Device) -> String {
    match device {
        Device::Flash(flash) => {
            let (advertised, raw) = (size::show(flash.module.advertised_bytes), size::show(flash.module.raw_bytes));
            format!("{} x {advertised}, raw {raw} each", flash.modules)
        }
        Device::Bridged(drive) => {
            let (advertised, raw) = (size::show(drive.module.advertised_bytes), size::show(drive.module.raw_bytes));
            format!("{} x {advertised}, raw {raw} each", drive.modules)
        }
        Device::Disk(disk) => format!("{}, {} rpm", size::show(disk.bytes), disk.rpm),
        Device::Array(array) => format!("{} x {}, {}", array.count, array.member, array.level),
    }
}
