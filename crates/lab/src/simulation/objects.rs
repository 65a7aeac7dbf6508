//! A workload on a device on objects: the layer and the uploads of a real one before a model of its store.

use card::{Built, Nanos, ObjectDevice, ObjectsConfig, VirtualDevice};
use profile::Driver;

use super::{Ready, Setting, SetupError};
use crate::workload::{Precondition, Workload};

/// A device on objects, and what it is to do.
#[derive(Clone, Debug)]
pub struct OnObjects {
    /// The device and its store.
    pub config: ObjectsConfig,
    /// What the device has been through before.
    pub precondition: Precondition,
    /// What it is to do.
    pub workload: Workload,
    /// Length of an interval of the series, nanoseconds.
    pub interval: Nanos,
}

impl OnObjects {
    /// Builds the device.
    ///
    /// # Errors
    /// It cannot be so small or so large.
    pub fn build(self) -> Result<Ready, SetupError> {
        let OnObjects { config, precondition, workload, interval } = self;
        let device = ObjectDevice::new(&config)?;
        let sector_bytes = device.sector_bytes();
        let built = Built { devices: vec![Box::new(device)], scaling: None };
        let setting = Setting::on_objects(&config, precondition, Driver::default(), &built);
        let workload = workload.preconditioned(precondition, 1, sector_bytes);
        Ok(Ready { setting, workload, built, interval, snapshots: None, kills: Vec::new() })
    }
}
