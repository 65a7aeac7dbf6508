//! A workload on the device of a data sheet, in virtual time: what `vsl sim` and the Python package share.
//!
//! [`Asked`] says what to run, a [`Simulation`] on what; [`Simulation::build`] makes the device and fits the workload to it, and
//! [`Ready::run`] runs it.

mod asked;
mod chips;
mod objects;
mod setting;
pub mod words;

use card::{BuildError, Built, Nanos, NoObjects, Options, Schedule, build, check_scale};
use profile::{Driver, Profile};

pub use asked::{Asked, AskedError};
pub use chips::{Happened, Kill};
pub use objects::OnObjects;
pub use setting::{CacheSetting, Setting};

use crate::cached::{CacheError, CachePlan};
use crate::engine::virtual_time;
use crate::engine::{Progress, RunError};
use crate::results::Results;
use crate::workload::{Precondition, Workload};

/// A device, what surrounds it, and what it is to do.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The data sheet.
    pub profile: Profile,
    /// What is built of it. The driver decides on interrupts, and where no sector size is given the workload on that.
    pub options: Options,
    /// The driver of the host, by its name in the data sheet; `linux` or the first where `None`.
    pub driver: Option<String>,
    /// What the device has been through before.
    pub precondition: Precondition,
    /// What it is to do.
    pub workload: Workload,
    /// Length of an interval of the series, nanoseconds.
    pub interval: Nanos,
    /// Snapshots that are made meanwhile.
    pub snapshots: Option<Schedule>,
    /// Flash chips that fail meanwhile.
    pub kills: Vec<Kill>,
    /// A cache in front of the device, which must be one of disks.
    pub cache: Option<CachePlan>,
}

/// Why a simulation cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The data sheet has no such driver.
    #[error("{profile} has no driver '{driver}'; there are: {known}")]
    Driver {
        /// The data sheet.
        profile: String,
        /// What was asked for.
        driver: String,
        /// What there is.
        known: String,
    },
    /// The device cannot be built so.
    #[error("{0}")]
    Build(#[from] BuildError),
    /// There is no such device on objects.
    #[error("{0}")]
    Objects(#[from] NoObjects),
    /// There is no such cache in front of it.
    #[error("{0}")]
    Cache(#[from] CacheError),
}

/// Why a simulation gave no result.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The run itself.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A chip that is to fail cannot.
    #[error("chip {chip}: {why}")]
    Chip {
        /// Its number.
        chip: u32,
        /// Why not.
        why: String,
    },
}

/// A simulation that can begin.
pub struct Ready {
    /// What was built.
    pub setting: Setting,
    /// What it is going to do: the workload behind what brings the device into its state, fitted to its size.
    pub workload: Workload,
    built: Built,
    interval: Nanos,
    snapshots: Option<Schedule>,
    kills: Vec<Kill>,
}

impl Simulation {
    /// Builds the device.
    ///
    /// # Errors
    /// The data sheet does not go together with what is asked of it.
    pub fn build(self) -> Result<Ready, SetupError> {
        let Simulation { profile, mut options, driver, precondition, workload, interval, snapshots, kills, cache } =
            self;
        check_scale(&profile, options.scale)?;
        let (driver, costs) = chosen(&profile, driver)?;
        options.driver = costs;
        // Where none fits, the engine says what does not.
        options.sector_bytes =
            options.sector_bytes.or_else(|| profile.largest_sector(&|sector| takes(sector, &workload)));
        if let Some(plan) = &cache {
            plan.check(&profile)?;
        }
        let mut built = build(&profile, &options)?;
        let cached = match &cache {
            Some(plan) => Some(plan.put_before(&mut built, &profile, &options, &|sector| takes(sector, &workload))?),
            None => None,
        };
        let mut setting = Setting::new(&profile, &options, precondition, driver, costs, &built);
        setting.cache = cache.zip(cached).map(|(plan, built)| CacheSetting::new(&plan, built));
        let workload = workload.scaled(setting.scaled_by).preconditioned(
            precondition,
            setting.devices as u32,
            setting.sector_bytes,
        );
        Ok(Ready { setting, workload, built, interval, snapshots, kills })
    }
}

impl Ready {
    /// Runs it.
    ///
    /// # Errors
    /// The workload does not fit the device, there is no chip of a number, or the model breaks its promises.
    pub fn run(&mut self, progress: &mut dyn Progress) -> Result<Results, SimulateError> {
        let options = virtual_time::Options {
            driver: self.setting.costs,
            interval: self.interval,
            scaled_by: self.setting.scaled_by,
            snapshots: self.snapshots,
            ..virtual_time::Options::default()
        };
        if !self.kills.is_empty() {
            return self.run_with_kills(options, progress);
        }
        let (results, _) = virtual_time::run(&self.workload, &mut self.built.devices, &options, progress)?;
        Ok(results)
    }
}

/// The driver of a name, or the usual one.
fn chosen(profile: &Profile, asked: Option<String>) -> Result<(String, Driver), SetupError> {
    let drivers = &profile.drivers;
    let Some(name) = asked else {
        let usual = drivers.get_key_value("linux").or_else(|| drivers.iter().next());
        return Ok(usual.map_or_else(|| ("none".into(), Driver::default()), |(name, driver)| (name.clone(), *driver)));
    };
    match drivers.get(&name) {
        Some(driver) => Ok((name, *driver)),
        None => Err(SetupError::Driver {
            profile: profile.name.clone(),
            driver: name,
            known: drivers.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Whether every request of the workload is a multiple of a sector.
fn takes(sector: u32, workload: &Workload) -> bool {
    workload.phases.iter().flat_map(|phase| &phase.loads).all(|load| load.is_multiple_of(sector))
}
