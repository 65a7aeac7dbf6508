//! What a simulation was made on, beside its results.

use card::{Arrangement, Built, ObjectsConfig, Options};
use profile::{Device, Driver, Profile};
use serde::Serialize;
use serde_json::{Value, json};

use super::chips::Happened;
use crate::cached::{CacheBuilt, CachePlan};
use crate::results::{Results, fio_json};
use crate::workload::Precondition;

/// What a run is made on.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    profile: String,
    product: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    precondition: &'static str,
    array: &'static str,
    /// How many devices the host sees.
    pub devices: usize,
    bytes_each: u64,
    /// Smallest unit of address and length, bytes.
    pub sector_bytes: u32,
    driver: String,
    /// What the driver costs.
    pub costs: Driver,
    /// How many times smaller than the real device it is.
    pub scaled_by: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaled: Option<String>,
    /// The cache in front of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheSetting>,
    /// What became of chips that failed, once it has run.
    #[serde(skip)]
    pub chips: Vec<Happened>,
}

/// The cache that a run is made with.
#[derive(Clone, Debug, Serialize)]
pub struct CacheSetting {
    profile: String,
    product: String,
    mode: &'static str,
    room_bytes: u64,
}

impl CacheSetting {
    /// Of what was asked for and what was built.
    pub(super) fn new(plan: &CachePlan, built: CacheBuilt) -> CacheSetting {
        let CacheBuilt { room_bytes, product } = built;
        CacheSetting { profile: plan.profile.clone(), product, mode: plan.mode.name(), room_bytes }
    }
}

impl Setting {
    /// That of what was built.
    pub(super) fn new(
        profile: &Profile,
        options: &Options,
        precondition: Precondition,
        driver: String,
        costs: Driver,
        built: &Built,
    ) -> Setting {
        Setting {
            profile: profile.name.clone(),
            product: format!("{} {}", profile.vendor, profile.product),
            format: matches!(profile.device, Device::Flash(_) | Device::Bridged(_)).then(|| options.format.to_string()),
            precondition: in_words(precondition),
            array: match options.arrangement {
                Arrangement::Single => "single",
                Arrangement::BothModules => "both modules",
                Arrangement::Raid0 | Arrangement::Raid0Of(_) => "RAID 0",
                Arrangement::Raid1 => "RAID 1",
            },
            devices: built.devices.len(),
            bytes_each: built.devices.first().map_or(0, |device| device.bytes()),
            sector_bytes: built.devices.first().map_or(0, |device| device.sector_bytes()),
            driver,
            costs,
            scaled_by: built.scaling.as_ref().map_or(1.0, |scaling| scaling.by),
            scaled: built.scaling.as_ref().map(|scaling| scaling.what.clone()),
            cache: None,
            chips: Vec::new(),
        }
    }

    /// That of a device on objects.
    pub(super) fn on_objects(
        config: &ObjectsConfig,
        precondition: Precondition,
        costs: Driver,
        built: &Built,
    ) -> Setting {
        let ObjectsConfig { spare_percent, prices, by_price, limits, .. } = config;
        let by = if *by_price { "price" } else { "need" };
        let product = format!(
            "Device on objects, {spare_percent} % to spare, prices {prices}, collected by {by}, an anchor each {} ms",
            limits.commit_ms
        );
        Setting {
            profile: "objects".into(),
            product,
            format: None,
            precondition: in_words(precondition),
            array: "single",
            devices: built.devices.len(),
            bytes_each: built.devices.first().map_or(0, |device| device.bytes()),
            sector_bytes: built.devices.first().map_or(0, |device| device.sector_bytes()),
            driver: "none".into(),
            costs,
            scaled_by: 1.0,
            scaled: None,
            cache: None,
            chips: Vec::new(),
        }
    }

    /// Results as [`fio_json`] gives them, with this under `openvsl.setting`.
    pub fn beside(&self, results: &Results) -> Value {
        let mut whole = fio_json(results);
        if let Some(own) = whole.get_mut("openvsl").and_then(Value::as_object_mut) {
            own.insert("setting".into(), json!(self));
            if !self.chips.is_empty() {
                own.insert("chips".into(), json!(self.chips));
            }
        }
        whole
    }

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
        if let Some(CacheSetting { profile, product, mode, room_bytes }) = &self.cache {
            text.push_str(&format!("behind a cache, {product} ({profile}): {}, {mode}\n", size::show(*room_bytes)));
        }
        if let Some(what) = &self.scaled {
            text.push_str(&format!("scaled down {:.1} times: {what}\n", self.scaled_by));
        }
        text
    }
}

fn in_words(precondition: Precondition) -> &'static str {
    match precondition {
        Precondition::Fresh => "fresh",
        Precondition::Fill => "filled",
        Precondition::Random => "filled, then 4 KiB random writes of twice the capacity",
        Precondition::Workload => "filled, then twice the capacity of the workload",
    }
}
