//! A device, as the API shows it.

use std::net::IpAddr;
use std::path::PathBuf;

use device::{Info, State};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use telemetry::table;

use super::card;
use crate::{Failure, Target};

/// Where a device is to be had over NVMe over TCP. Its text is the command by which `nvme-cli` connects there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmeTarget {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// The subsystem's name.
    pub subsystem: String,
}

impl std::fmt::Display for NvmeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nvme connect -t tcp -a {} -s {} -n {}", self.address, self.port, self.subsystem)
    }
}

/// One device: the fields of [`telemetry::table`] that are known of it, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceView(Map<String, Value>);

impl std::ops::Deref for DeviceView {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl DeviceView {
    /// A device of this name, and how it does.
    pub fn new(name: &str, path: &Target, state: State, health: &str) -> DeviceView {
        let mut view = DeviceView::default();
        view.set("name", name);
        view.set("path", path.to_string());
        view.set("state", state.name());
        view.set("health", health);
        // The driver is there, and the card is not attached.
        view.set("leds", ["driver loaded, not attached"]);
        view
    }

    /// A device that is not attached, as far as we know.
    pub fn detached(paths: &[PathBuf], info: Result<Info, Failure>) -> DeviceView {
        let (state, health) = match &info {
            Ok(Info { erasing: Some(level), .. }) => {
                (State::Error, format!("an erase of it was cut: `vsl sure-erase --{}` finishes it", level.name()))
            }
            Ok(info) if info.is_moved_away() => {
                (State::Detached, "what it held was moved to another device, which has its name".into())
            }
            Ok(info) if info.clean => (State::Detached, "healthy".into()),
            Ok(_) => (State::Detached, "not detached cleanly: the next attach recovers it".into()),
            Err(failure) => (State::Error, failure.to_string()),
        };
        let target = Target::Files(paths.to_vec());
        let mut view = DeviceView::new(&target.default_name(), &target, state, &health);
        if let Ok(info) = &info {
            view.describe(info);
        }
        view
    }

    /// What its format says.
    pub fn describe(&mut self, info: &Info) {
        if let Ok(Value::Object(fields)) = serde_json::to_value(info) {
            self.0.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.set("bytes", info.bytes());
        card::identify(self, info);
    }

    /// What it counts and measures, as it is attached.
    pub fn measure(&mut self, status: &device::Status) {
        self.0.extend(table::values(status));
    }

    /// A field; none where there is no value.
    pub fn set(&mut self, field: &str, value: impl Serialize) {
        debug_assert!(table::find_field(field).is_some(), "the table has no {field}");
        // Fields are plain values, which JSON takes all of.
        if let Some(value) = serde_json::to_value(value).ok().filter(|value| !value.is_null()) {
            self.0.insert(field.into(), value);
        }
    }

    /// A field's value, if it is known and of this type.
    pub fn field<T: DeserializeOwned>(&self, field: &str) -> Option<T> {
        debug_assert!(table::find_field(field).is_some(), "the table has no {field}");
        serde_json::from_value(self.0.get(field)?.clone()).ok()
    }

    /// A field that is a text; empty where it is not known.
    pub fn text(&self, field: &str) -> &str {
        debug_assert!(table::find_field(field).is_some(), "the table has no {field}");
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// What the device is doing.
    pub fn state(&self) -> Option<State> {
        self.field("state")
    }

    /// Whether it tells its figures.
    pub fn is_attached(&self) -> bool {
        self.0.contains_key("mapped_sectors")
    }

    /// Whether its format could be read.
    pub fn is_known(&self) -> bool {
        self.0.contains_key("uuid")
    }
}
