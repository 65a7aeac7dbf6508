//! What is measured, and its history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A metric, as `GET /telemetry/metrics` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetricView {
    /// Its key.
    pub name: String,
    /// Of what: `device` or `service`.
    pub of: String,
    /// What stands in front of it on a page.
    pub label: String,
    /// How its value is read: `bytes`, `bytes/s`, `1/s`, `us`, `%`, `ratio`, `count`, `celsius`, `watts`, `flag` or `ns/byte`.
    pub unit: String,
    /// Where it comes from: `measured` or `modelled`.
    pub source: String,
    /// What a longer span's value is made of: `mean`, `max`, `last`, `percentile` or `amplification`.
    pub over_time: String,
    /// What it means.
    pub meaning: String,
}

/// One device's last second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceSample {
    /// What the device is doing.
    pub state: String,
    /// `healthy`, or what is wrong, in words.
    pub health: String,
    /// Metrics by name. What is not known is not there.
    pub values: BTreeMap<String, f64>,
}

/// One second of everything: answer of `GET /telemetry`, and the data of the stream's event `sample`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    /// When it ended, milliseconds since 1970.
    pub at_ms: u64,
    /// Metrics of the service.
    pub service: BTreeMap<String, f64>,
    /// Devices by name.
    pub devices: BTreeMap<String, DeviceSample>,
}

/// Data of the stream's event `event`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceEvent {
    /// Which device.
    pub device: String,
    /// What happened.
    #[serde(flatten)]
    pub event: super::Event,
}

/// Answer of `GET /devices/{name}/history` and `GET /service/history`: columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryView {
    /// The device's name as it was asked for; `service`.
    pub device: String,
    /// Its UUID; `service`.
    pub uuid: String,
    /// How long each point's span is, seconds.
    pub resolution_s: u64,
    /// From when on, seconds since 1970.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// When each span began, seconds since 1970, ascending.
    pub at: Vec<u64>,
    /// Metrics by name, a value or `null` for each span.
    pub values: BTreeMap<String, Vec<Option<f64>>>,
}

/// A device, attached or not, of which there is history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeriesView {
    /// `device` or `service`.
    pub of: String,
    /// Its UUID; `service`.
    pub uuid: String,
    /// What it was called last.
    pub name: String,
    /// When its oldest span begins, seconds since 1970.
    pub first: u64,
    /// When its newest span begins, seconds since 1970.
    pub last: u64,
    /// Spans of all lengths.
    pub rows: u64,
}

/// Answer of `GET /history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Histories {
    /// How large the file is, bytes.
    pub file_bytes: u64,
    /// What there is.
    pub series: Vec<SeriesView>,
}

/// A field of `GET /devices`, as `GET /fields` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldView {
    /// Its key.
    pub name: String,
    /// What stands in front of it on a page.
    pub label: String,
    /// How its value is read.
    pub unit: String,
    /// What it is about; fields of a group follow each other.
    pub group: String,
    /// Whether a short listing shows it.
    pub brief: bool,
    /// What it means.
    pub meaning: String,
    /// Where it comes from: `measured`, `modelled` or `set`.
    pub source: String,
}

/// Erase blocks with so many erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EraseBin {
    /// Erases, at least.
    pub from: u32,
    /// Erases, at most.
    pub to: u32,
    /// How many blocks.
    pub blocks: u32,
}

/// Erases of logical erase blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Erases {
    /// All together.
    pub total: u64,
    /// Of the block with the fewest.
    pub min: Option<u32>,
    /// Of the block with the most.
    pub max: Option<u32>,
    /// Of a block on average.
    pub average: f64,
    /// How they spread.
    pub histogram: Vec<EraseBin>,
    /// Where the figures by block come from: `modelled` by an emulated card; `measured` where there is only the total.
    pub source: String,
}

/// Answer of `GET /devices/{name}/lifetime`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lifetime {
    /// Written by hosts since the format, bytes.
    pub host_written_bytes: u64,
    /// Read by hosts since the format, bytes.
    pub host_read_bytes: u64,
    /// Programmed since the format, bytes.
    pub media_written_bytes: u64,
    /// Everything appended over what hosts wrote, since the format.
    pub write_amplification: Option<f64>,
    /// When it was formatted, seconds since 1970.
    pub since: u64,
    /// Erases.
    pub erases: Erases,
    /// Spare blocks left, per cent.
    pub reserve_percent: Option<f64>,
    /// Erase blocks in service, per cent of all.
    pub active_media_percent: f64,
    /// What may be programmed until its blocks are worn out, bytes.
    pub rated_written_bytes: Option<u64>,
    /// How much of that is left, per cent.
    pub rated_left_percent: Option<f64>,
    /// Programmed a day lately, bytes.
    pub written_per_day_bytes: Option<f64>,
    /// Over how long that was looked at, seconds.
    pub rate_over_s: u64,
    /// When it is worn out at that rate, seconds since 1970; nothing before an hour was looked at.
    pub ends: Option<u64>,
    /// Where the rated figures come from: `modelled`, or `none` where a device does not wear.
    pub source: String,
}
