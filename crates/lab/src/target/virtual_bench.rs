//! Virtual devices: made from data sheets, in virtual time.

use std::ops::ControlFlow;

use card::{Built, Nanos, Options, Policy, Surroundings, build};
use profile::Driver;

use super::{Bench, Outcome, Problem, Target, Watch};
use crate::cached::CachePlan;
use crate::engine::{Position, Progress, virtual_time};
use crate::host::Costs;
use crate::published::fitted;
use crate::results::{Ended, Phase, Row};
use crate::run::{Activity, Interval, LoopKind, Machine, Part, StepPlan, coarsen};
use crate::workload::{self, Stop, Workload};

/// Virtual devices as a target.
#[derive(Clone, Debug)]
pub struct Virtual {
    /// They are built about so many times smaller.
    pub scale: u32,
    /// The driver that the protocol or the user names.
    pub driver: Option<String>,
    /// Parts that are run at once.
    pub at_once: usize,
    /// The groomer's policy in place of the data sheets'.
    pub groomer: Option<Policy>,
    /// The cache in front of the devices of parts that are planned with it.
    pub cache: Option<CachePlan>,
}

impl Target for Virtual {
    fn bench(&self, part: &Part) -> Result<Box<dyn Bench>, Problem> {
        Ok(Box::new(VirtualBench::new(self, part).map_err(Problem::Failed)?))
    }

    fn at_once(&self) -> usize {
        self.at_once.max(1)
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn program(&self) -> Option<String> {
        None
    }

    fn holds(&self) -> Option<u64> {
        None
    }

    fn bytes(&self, part: &Part) -> u64 {
        let bytes = profile::find(&part.plan.device).ok().map_or(0, |profile| match &profile.device {
            profile::Device::Flash(flash) => flash.module.advertised_bytes * u64::from(flash.modules),
            profile::Device::Bridged(bridged) => bridged.module.advertised_bytes * u64::from(bridged.modules),
            profile::Device::Disk(_) | profile::Device::Array(_) => 1 << 40,
        });
        bytes / u64::from(self.scale.max(1))
    }
}

struct VirtualBench {
    built: Built,
    driver: Driver,
    machine: Machine,
    /// How much smaller it is.
    by: f64,
    /// Capacity of the smallest device.
    capacity: u64,
    now: card::Nanos,
    began: card::Nanos,
}

impl VirtualBench {
    fn new(target: &Virtual, part: &Part) -> Result<VirtualBench, String> {
        let plan = &part.plan;
        let profile = profile::find(&plan.device).map_err(|error| error.to_string())?;
        let (driver_name, driver) = driver(&profile, part.driver.as_deref().or(target.driver.as_deref()))?;
        let format = plan.format.as_deref().unwrap_or("stock").parse()?;
        let options = Options {
            arrangement: plan.array.as_deref().unwrap_or("single").parse()?,
            format,
            sector_bytes: profile.largest_sector(&|sector| takes(part, sector)),
            scale: target.scale,
            write_cache: plan.write_cache,
            // Reviewers plug the external power in, or override the slot's limit.
            surroundings: Surroundings { power_unlimited: true, ..Surroundings::default() },
            driver,
            policy: target.groomer,
            seed: plan.seed,
            ..Options::default()
        };
        let mut built = build(&profile, &options).map_err(|error| error.to_string())?;
        let mut product = format!("{} {}", profile.vendor, profile.product);
        if let Some(cache) = target.cache.as_ref().filter(|_| plan.cache.is_some()) {
            let takes = |sector| takes(part, sector);
            let flash = cache.put_before(&mut built, &profile, &options, &takes).map_err(|error| error.to_string())?;
            let (size, mode) = (size::show(flash.room_bytes), cache.mode.name());
            product.push_str(&format!(" behind a cache, {}: {size}, {mode}", flash.product));
        }
        let first = built.devices.first().ok_or_else(|| format!("{}: nothing was built", plan.device))?;
        let machine = Machine {
            target: "virtual".into(),
            device: profile.name.clone(),
            product,
            format: plan.format.clone(),
            array: plan.array.clone(),
            driver: driver_name,
            groomer: target.groomer.map(|policy| policy.name().to_string()),
            devices: built.devices.len() as u32,
            bytes: first.bytes(),
            sector_bytes: first.sector_bytes(),
            scaled_by: built.scaling.as_ref().map_or(1.0, |scaling| scaling.by),
            scaled: built.scaling.as_ref().map(|scaling| scaling.what.clone()),
        };
        let capacity = built.devices.iter().map(|device| device.bytes()).min().unwrap_or(0);
        Ok(VirtualBench { by: machine.scaled_by, built, driver, machine, capacity, now: 0, began: 0 })
    }
}

/// The driver of a name, or the usual one.
fn driver(profile: &profile::Profile, asked: Option<&str>) -> Result<(String, Driver), String> {
    let drivers = &profile.drivers;
    let usual = || drivers.get_key_value("linux").or_else(|| drivers.iter().next());
    let chosen = match asked {
        // What a protocol asks for need not be in every sheet: a disk has no driver of its own.
        Some(name) => drivers.get_key_value(name).or_else(usual),
        None => usual(),
    };
    Ok(chosen.map_or_else(|| ("none".into(), Driver::default()), |(name, driver)| (name.clone(), *driver)))
}

/// Whether every request of a part is a multiple of a sector.
fn takes(part: &Part, sector: u32) -> bool {
    let loads = part.stages.iter().flat_map(|stage| &stage.steps).flat_map(|step| &step.phase.loads);
    loads.into_iter().all(|load| load.is_multiple_of(sector))
}

impl Bench for VirtualBench {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn purge(&self) -> &str {
        "built anew: nothing was ever written"
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn run(&mut self, step: &StepPlan, seed: u64, watch: Watch<'_>) -> Result<Outcome, Problem> {
        let mut phases = Vec::new();
        if step.pause.nanos() > 0 {
            let stop = Stop { duration: Some(step.pause), ..Stop::default() };
            let name = "pause".into();
            phases.push(workload::Phase { name, measured: false, ramp: Default::default(), stop, loads: Vec::new() });
        }
        phases.push(step.phase.clone());
        let workload = Workload { name: step.phase.name.clone(), description: String::new(), seed, phases };
        let workload = fitted(&workload, self.by, self.capacity);
        let options = virtual_time::Options {
            driver: self.driver,
            interval: interval(&workload, step, self.capacity * u64::from(self.machine.devices)),
            snapshots: None,
            now: self.now,
            scaled_by: self.by,
            cells: true,
        };
        let last = workload.phases.len() - 1;
        let run = virtual_time::run(&workload, &mut self.built.devices, &options, &mut Forward { watch, last });
        let (mut results, now) = run.map_err(|error| Problem::Failed(error.to_string()))?;
        self.now = now;
        match results.ended {
            Ended::Complete => {}
            Ended::Interrupted => return Err(Problem::Interrupted),
            Ended::Failed(reason) => return Err(Problem::Failed(reason)),
        }
        let Some(phase) = results.phases.pop() else {
            return Err(Problem::Failed("the engine gave no results".into()));
        };
        let began = self.began as f64 / 1e9;
        let cpu = Costs::new(&self.driver).cpu();
        outcome(phase, step, began, cpu).map_err(|error| Problem::Failed(error.to_string()))
    }
}

/// Tells whoever watches a step of the phase that counts.
struct Forward<'a> {
    watch: Watch<'a>,
    last: usize,
}

impl Progress for Forward<'_> {
    fn at(&mut self, position: &Position<'_>) -> ControlFlow<()> {
        (self.watch)(if position.phase == self.last { position.done } else { 0.0 })
    }
}

/// Bytes a second that a device is taken to move where only an amount ends a step: the intervals are put together afterwards.
const FAST: f64 = 1e9;

/// Length of an interval, so that there are about as many as the step asks for, or more.
fn interval(workload: &Workload, step: &StepPlan, bytes: u64) -> card::Nanos {
    let stop = workload.phases.last().map(|phase| phase.stop).unwrap_or_default();
    let seconds = match (stop.duration, stop.capacities) {
        (Some(duration), _) => duration.0.as_secs_f64(),
        (None, Some(times)) => times * bytes as f64 / FAST,
        (None, None) => 1.0,
    };
    ((seconds * 1e9 / f64::from(step.intervals.max(1))) as card::Nanos).max(1_000_000)
}

/// `cpu` is what the host's driver costs for each request, by its sheet.
fn outcome(phase: Phase, step: &StepPlan, began: f64, cpu: Nanos) -> Result<Outcome, crate::stats::Damaged> {
    let load = step.phase.loads.first();
    let loop_kind = match load {
        None => LoopKind::Idle,
        Some(load) if load.is_open() => LoopKind::Open,
        Some(_) => LoopKind::Closed,
    };
    let cpu_us_per_io = (cpu > 0 && phase.total.all.requests > 0).then_some(cpu as f64 / 1e3);
    let series = phase.series.into_iter().map(of_row).collect();
    Ok(Outcome {
        loop_kind,
        from_seconds: phase.from_seconds - began,
        seconds: phase.seconds,
        total: phase.total,
        outstanding: phase.outstanding,
        not_started: phase.not_started,
        device_use: Some(phase.device_use),
        cpu_us_per_io,
        notes: Vec::new(),
        cells: phase.cells,
        // The last interval of a step that ends after an amount may be short: one more than asked for.
        series: coarsen(series, step.intervals as usize + 1)?,
    })
}

fn of_row(row: Row) -> Interval {
    let used = &row.device_use;
    let device = Some(Activity {
        host_written_bytes: used.host_written_bytes,
        media_written_bytes: used.media_written_bytes,
        joules: used.joules,
        celsius: used.celsius,
    });
    Interval { end_seconds: row.end_seconds, seconds: row.seconds, cells: row.cells, device }
}
