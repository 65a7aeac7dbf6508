//! The device of `vsl sim`, and the host's driver in front of it.

use card::{Arrangement, Built, Options, Surroundings, build, check_scale};
use daemon::Failure;
use lab::workload::{Precondition, Workload};
use profile::{Device, Driver, Profile};
use serde::Serialize;

use crate::args::Switch;
use crate::args::sim::{ArrayKind, Sim};

/// What a run is made on.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    profile: String,
    product: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    precondition: &'static str,
    array: &'static str,
    devices: usize,
    bytes_each: u64,
    /// Smallest unit of address and length.
    pub sector_bytes: u32,
    driver: String,
    /// What the driver costs.
    pub costs: Driver,
    /// How many times smaller than the real device it is.
    pub scaled_by: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaled: Option<String>,
}

impl Setting {
    /// For people, above the results.
    pub fn text(&self) -> String {
        let count = if self.devices > 1 { format!("{} x ", self.devices) } else { String::new() };
        let mut text = format!(
            "{} ({}), {}{}: {count}{}, sectors of {} B, driver {}, {}\n",
            self.product,
            self.profile,
            self.array,
            self.format.as_ref().map(|format| format!(", format {format}")).unwrap_or_default(),
            size::show(self.bytes_each),
            self.sector_bytes,
            self.driver,
            self.precondition
        );
        if let Some(what) = &self.scaled {
            text.push_str(&format!("scaled down {:.1} times: {what}\n", self.scaled_by));
        }
        text
    }
}

/// Builds the device that is asked for, for this workload.
pub fn build_for(name: &str, args: &Sim, how: Precondition, workload: &Workload) -> Result<(Built, Setting), Failure> {
    let machine = &args.machine;
    let profile =
        profile::find(name).map_err(|error| Failure::invalid(error.to_string()).help("`vsl profiles` lists them"))?;
    check_scale(&profile, machine.scale).map_err(|error| Failure::invalid(error.to_string()))?;
    let (driver, costs) = driver(&profile, machine.driver.as_deref())?;
    let options = Options {
        arrangement: Arrangement::from(machine.array),
        format: machine.format,
        // Where none fits, the engine says what does not.
        sector_bytes: machine.sector.or_else(|| profile.largest_sector(&|sector| takes(sector, workload))),
        scale: machine.scale,
        write_cache: machine.write_cache.map(|switch| switch == Switch::On),
        surroundings: Surroundings {
            ambient_celsius: machine.ambient,
            airflow_lfm: machine.airflow,
            power_unlimited: machine.external_power,
        },
        policy: machine.groomer,
        pacing: machine.pacing,
        grooms_ahead: machine.idle_grooming == Switch::On,
        interrupts: costs.interrupts,
        seed: args.seed.unwrap_or(1),
        ..Options::default()
    };
    let built = build(&profile, &options).map_err(|error| Failure::invalid(error.to_string()))?;
    let first = built.devices.first().ok_or_else(|| Failure::failed(format!("{name}: nothing was built")))?;
    let setting = Setting {
        profile: profile.name.clone(),
        product: format!("{} {}", profile.vendor, profile.product),
        format: matches!(profile.device, Device::Flash(_) | Device::Bridged(_)).then(|| machine.format.to_string()),
        precondition: match how {
            Precondition::Fresh => "fresh",
            Precondition::Fill => "filled",
            Precondition::Random => "filled, then 4 KiB random writes of twice the capacity",
            Precondition::Workload => "filled, then twice the capacity of the workload",
        },
        array: match machine.array {
            ArrayKind::Single => "single",
            ArrayKind::Both => "both modules",
            ArrayKind::Raid0 => "RAID 0",
            ArrayKind::Raid1 => "RAID 1",
        },
        devices: built.devices.len(),
        bytes_each: first.bytes(),
        sector_bytes: first.sector_bytes(),
        driver,
        costs,
        scaled_by: built.scaling.as_ref().map_or(1.0, |scaling| scaling.by),
        scaled: built.scaling.as_ref().map(|scaling| scaling.what.clone()),
    };
    Ok((built, setting))
}

/// The driver of a name, or the usual one.
fn driver(profile: &Profile, asked: Option<&str>) -> Result<(String, Driver), Failure> {
    let known = || profile.drivers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let name = match asked {
        Some(name) => name,
        None if profile.drivers.contains_key("linux") => "linux",
        None => match profile.drivers.keys().next() {
            Some(first) => first,
            None => return Ok(("none".into(), Driver::default())),
        },
    };
    match profile.drivers.get(name) {
        Some(driver) => Ok((name.to_owned(), *driver)),
        None => Err(Failure::invalid(format!("{} has no driver '{name}'", profile.name))
            .help(format!("there are: {}", known()))),
    }
}

/// Whether every request of the workload is a multiple of a sector.
fn takes(sector: u32, workload: &Workload) -> bool {
    workload.phases.iter().flat_map(|phase| &phase.loads).all(|load| {
        let (reads, writes) = load.sizes();
        let sizes = reads.iter().chain(&writes).map(|entry| entry.size.0);
        sizes.chain(load.align.map(|align| align.0)).all(|bytes| bytes.is_multiple_of(u64::from(sector)))
    })
}
