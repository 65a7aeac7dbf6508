//! What the modules of a flash card share: its link, its power and its cooling.

use serde::{Deserialize, Serialize};

/// What the modules of a card share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Its PCI Express link.
    pub link: Link,
    /// Its power budget.
    pub power: Power,
    /// Its temperatures.
    pub thermal: Thermal,
}

/// A PCI Express link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Lanes used at 2.5 GT/s.
    pub lanes_gen1: u32,
    /// Lanes used at 5 GT/s.
    pub lanes_gen2: u32,
}

/// Power from the slot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// The slot's budget, watts.
    pub slot_watts: f64,
    /// Where writes are held back, watts.
    pub throttle_watts: f64,
    /// Whether the card has a connector for external power, which lifts the slot's budget when it is plugged in.
    pub external_connector: bool,
}

/// Cooling and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thermal {
    /// Airflow it needs, linear feet a minute.
    pub airflow_lfm: f64,
    /// Warmest air around it, degrees Celsius.
    pub ambient_max_celsius: f64,
    /// Inside temperature at which writes are held back, degrees Celsius.
    pub throttle_celsius: f64,
    /// Inside temperature at which it switches itself off, degrees Celsius.
    pub shutdown_celsius: f64,
    /// How much warmer than the air a watt makes the inside at the airflow above, degrees Celsius.
    pub thermal_resistance_c_per_w: f64,
    /// How long the inside takes to come within a third of where it is heading, seconds: one time constant.
    pub time_constant_s: f64,
}
