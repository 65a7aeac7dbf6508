//! The shape of a data sheet. Where a figure comes from stands in the sheet itself.

use serde::{Deserialize, Serialize};

/// One product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What `--profile` takes: the file's name without its ending.
    pub name: String,
    /// Who made it.
    pub vendor: String,
    /// What they called it.
    pub product: String,
    /// Modules on a card; each is a device of its own.
    pub modules: u32,
    /// One module.
    pub module: Module,
    /// What the modules of a card share.
    pub card: Card,
    /// The vendor's specification of the whole card.
    pub published: Published,
}

/// One module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// NAND in all, bytes.
    pub raw_bytes: u64,
    /// Capacity of the stock format, bytes.
    pub advertised_bytes: u64,
    /// Capacity of the vendor's high-performance format, bytes.
    pub high_performance_bytes: u64,
    /// Erase-block stripes of the stock format.
    pub erase_block_stripes: u32,
    /// Its chips.
    pub chips: Chips,
    /// What a low-level format may choose.
    pub format: FormatLimits,
}

/// The NAND chips of a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chips {
    /// How many, parity included.
    pub count: u32,
    /// How many of them hold parity.
    pub parity: u32,
    /// Bytes in one.
    pub bytes: u64,
}

/// What a low-level format may choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatLimits {
    /// Sector sizes, bytes.
    pub sector_bytes: Vec<u32>,
    /// The largest capacity, per cent of the advertised.
    pub maximum_percent: u32,
    /// Capacity of "improved write performance", per cent of the advertised.
    pub improved_write_percent: u32,
    /// Capacity of "maximum write performance", per cent of the advertised.
    pub maximum_write_percent: u32,
    /// The largest request, bytes.
    pub max_request_bytes: u32,
}

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
}

/// The vendor's specification of a whole card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// 64 KiB sequential reads, bytes a second.
    pub read_bandwidth_bytes_per_s: u64,
    /// 64 KiB sequential writes, bytes a second.
    pub write_bandwidth_bytes_per_s: u64,
    /// 512 B random reads a second.
    pub read_512_per_s: u64,
    /// 512 B random writes a second.
    pub write_512_per_s: u64,
    /// 512 B read latency, seconds.
    pub latency_seconds: f64,
}
