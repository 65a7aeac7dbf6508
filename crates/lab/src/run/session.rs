//! A run from its options on: begun anew, or gone on with.

use std::path::Path;

use super::apart::Apart;
use super::conduct::{Ended, Watch, check_plan, conduct};
use super::directory::{Directory, DirectoryError, Header, Options};
use super::environment::Environment;
use super::journal::Journal;
use super::plan::{NoPlan, Plan, Wanted};
use super::record::{Line, VERSION};
use crate::protocol::{Protocol, Quick};
use crate::target::{Fio, Problem, Target, Virtual};
use card::Policy;
use trace::TraceError;

/// Why a run could not be done.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its directory or journal.
    #[error("{0}")]
    Directory(#[from] DirectoryError),
    /// There is nothing to be done like that.
    #[error("{0}")]
    NoPlan(#[from] NoPlan),
    /// The target cannot be used.
    #[error("{0}")]
    Target(Problem),
    /// A trace cannot be made or read.
    #[error("{0}")]
    Trace(#[from] TraceError),
}

/// A run that is ready to go on.
pub struct Session {
    directory: Directory,
    protocol: Protocol,
    plan: Plan,
    target: Box<dyn Target>,
    journal: Journal,
    lines: Vec<Line>,
}

impl Session {
    /// A new run in a new directory. Nothing has been done to the device yet.
    ///
    /// # Errors
    /// Protocol, options and target do not go together, or the directory cannot be made.
    pub fn begin(
        path: &Path,
        protocol: Protocol,
        text: &str,
        options: Options,
        command: Vec<String>,
        at_once: usize,
    ) -> Result<Session, RunError> {
        let (plan, target) = ready(&protocol, &options, path, at_once)?;
        let header = Header {
            version: VERSION,
            protocol: protocol.name().into(),
            form: if options.quick { "quick" } else { "full" }.into(),
            differs: differs(&protocol, &options),
            started: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            command,
            environment: Environment::here(target.program()),
            options,
        };
        let (directory, journal) = Directory::create(path, &header, text)?;
        Ok(Session { directory, protocol, plan, target, journal, lines: Vec::new() })
    }

    /// A run that was not finished.
    ///
    /// # Errors
    /// It cannot be read, or somebody else is at it.
    pub fn resume(path: &Path, at_once: usize) -> Result<Session, RunError> {
        let directory = Directory::open(path)?;
        let (header, protocol) = (directory.header()?, directory.protocol()?);
        let (journal, lines) = directory.resume()?;
        let (plan, target) = ready(&protocol, &header.options, path, at_once)?;
        Ok(Session { directory, protocol, plan, target, journal, lines })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What is to be done.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Makes the traces that are to be played.
    fn make_traces(&self) -> Result<(), RunError> {
        Ok(self.plan.parts.iter().flat_map(|part| &part.made).try_for_each(|made| made.make())?)
    }

    /// Has what is not done yet done elsewhere.
    ///
    /// # Errors
    /// The journal cannot be written, or belongs to another plan; or a trace that is to be played cannot be made; or the device is a real
    /// one, which is here and nowhere else.
    pub fn apart(mut self) -> Result<Apart, RunError> {
        if !self.target.is_virtual() {
            return Err(RunError::Target(Problem::Failed("only data sheets can be run elsewhere".into())));
        }
        self.make_traces()?;
        check_plan(&self.plan, &mut self.journal, &self.lines)?;
        Ok(Apart::new(self.plan, self.journal, self.lines))
    }

    /// Does what is not done yet.
    ///
    /// # Errors
    /// The journal cannot be written, or belongs to another plan; or a trace that is to be played cannot be made.
    pub fn conduct(self, watch: &dyn Watch) -> Result<Ended, RunError> {
        self.make_traces()?;
        Ok(conduct(&self.plan, &self.protocol.steady, self.target.as_ref(), self.journal, &self.lines, watch)?)
    }
}

/// What is to be done, and on what, by a run in this directory.
///
/// # Errors
/// Protocol, options and target do not go together.
pub fn ready(
    protocol: &Protocol,
    options: &Options,
    directory: &Path,
    at_once: usize,
) -> Result<(Plan, Box<dyn Target>), RunError> {
    let target = target(protocol, options, at_once)?;
    let is_virtual = target.is_virtual();
    let wanted = Wanted {
        quick: options.quick,
        devices: options.devices.clone(),
        is_virtual,
        formats: options.formats.clone(),
        arrays: options.arrays.clone(),
        drivers: options.drivers.clone(),
        tests: options.tests.clone(),
        repeat: options.repeat,
        seed: options.seed,
        trace: options.trace.clone(),
        scale: if is_virtual { scale(protocol, options) } else { 1 },
        holds: target.holds(),
        cache: options.cache.clone().filter(|_| is_virtual),
        directory: directory.into(),
    };
    Ok((Plan::new(protocol, &wanted)?, target))
}

/// How many times smaller virtual devices are built, about.
fn scale(protocol: &Protocol, options: &Options) -> u32 {
    options.scale.unwrap_or(protocol.form(options.quick).scale)
}

fn policy(name: &str) -> Result<Policy, RunError> {
    let known = || Policy::ALL.map(Policy::name).join(", ");
    Policy::from_name(name)
        .ok_or_else(|| RunError::Target(Problem::Failed(format!("'{name}' is no groomer; there are: {}", known()))))
}

fn target(protocol: &Protocol, options: &Options, at_once: usize) -> Result<Box<dyn Target>, RunError> {
    let scale = scale(protocol, options);
    let fio = |made: Result<Fio, Problem>| Ok(Box::new(made.map_err(RunError::Target)?) as Box<dyn Target>);
    let one = || match &options.devices[..] {
        [one] => Ok(one.as_str()),
        several => Err(RunError::Target(Problem::Failed(format!(
            "{} devices; a real one is tested alone, so name one",
            several.len()
        )))),
    };
    match options.target.as_str() {
        "virtual" => {
            let (driver, cache) = (protocol.driver.clone(), options.cache.clone());
            let groomer = options.groomer.as_deref().map(policy).transpose()?;
            Ok(Box::new(Virtual { scale, driver, groomer, at_once, cache }))
        }
        "fio" => fio(Fio::file(one()?, options.size, options.engine.as_deref(), options.buffered)),
        "nbd" | "native" | "emulated" => fio(Fio::nbd(one()?, &options.target)),
        other => Err(RunError::Target(Problem::Failed(format!(
            "'{other}' is no target; there are: virtual, fio, nbd, native, emulated"
        )))),
    }
}

/// What the quick form of a stage differs in, beside its times.
fn quick_words(quick: &Quick) -> String {
    let mut own = Vec::new();
    own.extend(quick.duration.map(|time| humantime::format_duration(time.0).to_string()));
    own.extend(quick.written.map(|times| format!("{times} times the capacity written")));
    own.extend(quick.rounds.map(|rounds| format!("{rounds} rounds")));
    own.extend(quick.until_written.map(|times| format!("until {times} times the capacity is written")));
    own.extend(quick.pause.map(|time| format!("pauses of {}", humantime::format_duration(time.0))));
    own.extend(quick.requests.map(|requests| format!("{requests} requests of the trace")));
    own.extend(quick.vary.as_ref().map(|_| "fewer steps".to_string()));
    own.join(", ")
}

/// What a form differs in from the protocol as it was published, in words.
fn differs(protocol: &Protocol, options: &Options) -> String {
    let form = protocol.form(options.quick);
    let wanted = |name: &str| options.tests.is_empty() || options.tests.iter().any(|test| test == name);
    let tests = || protocol.tests.iter().filter(|test| wanted(test.name()));
    let mut parts = Vec::new();
    if options.quick {
        if form.times > 1.0 {
            parts.push(format!(
                "times are {} times shorter, none that is measured below {}",
                form.times,
                humantime::format_duration(form.least.0)
            ));
            let disks = form.disk_times.filter(|_| options.target == "virtual");
            parts.extend(disks.map(|times| format!("on disks {times} times shorter")));
        }
        // What is the same in several tests is said once, with their names where others differ.
        let mut amounts: Vec<(&str, String, Vec<&str>)> = Vec::new();
        for test in tests() {
            for stage in &test.stages {
                let Some(quick) = &stage.quick else { continue };
                let own = quick_words(quick);
                match amounts.iter_mut().find(|(name, words, _)| *name == stage.name() && *words == own) {
                    Some((.., of)) => of.push(test.name()),
                    None => amounts.push((stage.name(), own, vec![test.name()])),
                }
            }
        }
        let with_stage = |name: &str| tests().filter(|it| it.stages.iter().any(|stage| stage.name() == name)).count();
        let amounts = amounts.iter().map(|(name, own, of)| match of.len() == with_stage(name) {
            true => format!("{name}: {own}"),
            false => format!("{name} of {}: {own}", of.join(", ")),
        });
        parts.extend(amounts);
    }
    let scale = scale(protocol, options);
    if options.target == "virtual" && scale > 1 {
        parts.push(format!("flash is built up to {scale} times smaller, as each device says"));
    }
    if !options.tests.is_empty() {
        parts.push(format!("only {}", options.tests.join(", ")));
    }
    parts.join("; ")
}
