//! Files, block devices and NBD exports, through fio.

mod histogram;
mod job;
mod output;
mod process;
mod replay;

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use self::job::Site;
use super::{Bench, Outcome, Problem, Target, Watch};
use crate::generate::{self, Shape};
use crate::published::fitted;
use crate::run::{LoopKind, Machine, Part, StepPlan, coarsen, version_of};
use crate::workload::{Load, Workload};

pub use job::Place;

/// The shortest interval that fio's logs are asked for: shorter ones are not kept to.
const SHORTEST_INTERVAL_MS: u64 = 100;
/// Intervals where only an amount ends a step.
const INTERVAL_MS: u64 = 1000;
/// Bytes that are trimmed at once where a device is emptied.
const TRIM_BYTES: &str = "16m";

/// A file, block device or NBD export, through fio.
#[derive(Clone, Debug)]
pub struct Fio {
    /// What the run calls it: its path or address.
    pub name: String,
    /// What it is: file, block-device, native, emulated or nbd.
    pub kind: String,
    /// Where it is.
    pub place: Place,
    /// Its capacity, bytes.
    pub bytes: u64,
    /// Smallest unit of address and length, bytes.
    pub sector_bytes: u32,
    /// fio's program.
    pub program: String,
    /// fio's version.
    pub version: String,
    /// fio's engine.
    pub engine: String,
    /// Go through the page cache.
    pub buffered: bool,
}

/// The engine for files and block devices where none is asked for.
const ENGINE: &str = "libaio";

impl Fio {
    /// A file or block device. A file that is not there is made, of this size.
    ///
    /// # Errors
    /// fio or the file is missing, or cannot be used.
    pub fn file(path: &str, size: Option<u64>, engine: Option<&str>, buffered: bool) -> Result<Fio, Problem> {
        let fail = |error: std::io::Error| Problem::Failed(format!("{path}: {error}"));
        let (program, version) = program()?;
        if !Path::new(path).exists() {
            let Some(size) = size else {
                return Err(Problem::Failed(format!("{path}: there is no such file; --size makes one of that size")));
            };
            File::create_new(path).and_then(|file| file.set_len(size)).map_err(fail)?;
        }
        let kind = std::fs::metadata(path).map_err(fail)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(Problem::Failed(format!("{path}: expected a file or a block device")));
        }
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(fail)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(fail)?;
        if bytes == 0 {
            return Err(Problem::Failed(format!("{path}: it is empty; make it as large as what is to be tested")));
        }
        Ok(Fio {
            name: path.into(),
            kind: if kind.is_file() { "file" } else { "block-device" }.into(),
            place: Place::Path(path.into()),
            bytes,
            sector_bytes: if kind.is_file() { 512 } else { logical_sector(path) },
            program,
            version,
            engine: engine.unwrap_or(ENGINE).into(),
            buffered,
        })
    }

    /// An NBD export; `kind` says what is behind it.
    ///
    /// # Errors
    /// fio is missing or knows no NBD, or nobody answers at the address.
    pub fn nbd(uri: &str, kind: &str) -> Result<Fio, Problem> {
        let (program, version) = program()?;
        let output = Command::new("nbdinfo").args(["--json", uri]).output().map_err(|error| {
            Problem::Failed(format!("nbdinfo: {error}; it tells the size of an export: install the package libnbd-bin"))
        })?;
        let said = String::from_utf8_lossy(&output.stdout);
        let known = serde_json::from_str::<Exports>(&said).ok().and_then(|exports| exports.exports.into_iter().next());
        let Some(export) = known.filter(|export| output.status.success() && export.bytes > 0) else {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(Problem::Failed(format!("{uri}: nbdinfo says: {} {}", said.trim(), words.trim())));
        };
        Ok(Fio {
            name: uri.into(),
            kind: kind.into(),
            place: Place::Nbd(uri.into()),
            bytes: export.bytes,
            sector_bytes: export.smallest.unwrap_or(1).max(512),
            program,
            version,
            engine: "nbd".into(),
            buffered: false,
        })
    }
}

/// What nbdinfo says of a server.
#[derive(Deserialize)]
struct Exports {
    exports: Vec<Export>,
}

#[derive(Deserialize)]
struct Export {
    #[serde(rename = "export-size")]
    bytes: u64,
    /// Smallest request, bytes, where the server says.
    #[serde(default, rename = "block_size_minimum")]
    smallest: Option<u32>,
}

/// fio's program and version.
fn program() -> Result<(String, String), Problem> {
    // Another fio than the first of the path, for those who built one.
    let program = std::env::var("OPENVSL_FIO").unwrap_or_else(|_| "fio".into());
    let version = version_of(&program).map_err(|problem| {
        Problem::Failed(format!("{problem}; install the package fio, or name another with OPENVSL_FIO"))
    })?;
    Ok((program, version))
}

/// Smallest unit that a block device takes, bytes.
fn logical_sector(path: &str) -> u32 {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let class = Path::new("/sys/class/block").join(&name);
    // A partition's queue is its disk's.
    let queues = [class.join("queue"), class.join("..").join("queue")];
    let sector = queues.iter().find_map(|queue| std::fs::read_to_string(queue.join("logical_block_size")).ok());
    sector.and_then(|text| text.trim().parse().ok()).unwrap_or(512)
}

impl Target for Fio {
    fn bench(&self, part: &Part) -> Result<Box<dyn Bench>, Problem> {
        // What does not fit is found before hours are spent on the steps in front of it.
        for load in part.stages.iter().flat_map(|stage| &stage.steps).flat_map(|step| &step.phase.loads) {
            generate::Plan::new(load, self.shape()).map_err(Problem::Failed)?;
        }
        let purge = self.purge()?;
        let machine = Machine {
            target: self.kind.clone(),
            device: self.name.clone(),
            product: product(&self.place, &self.kind),
            format: None,
            array: None,
            driver: format!("{}, engine {}", self.version, self.engine),
            groomer: None,
            devices: 1,
            bytes: self.bytes,
            sector_bytes: self.sector_bytes,
            scaled_by: 1.0,
            scaled: None,
        };
        Ok(Box::new(FioBench { fio: self.clone(), machine, purge, began: Instant::now() }))
    }

    fn at_once(&self) -> usize {
        1
    }

    fn is_virtual(&self) -> bool {
        false
    }

    fn program(&self) -> Option<String> {
        Some(self.version.clone())
    }

    fn holds(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn bytes(&self, _part: &Part) -> u64 {
        self.bytes
    }
}

impl Fio {
    fn shape(&self) -> Shape {
        // fio names placements only through io_uring_cmd, to a character device of NVMe.
        Shape { bytes: self.bytes, sector_bytes: self.sector_bytes, placements: 1 }
    }

    /// Empties it, as far as that can be done, and says how.
    fn purge(&self) -> Result<String, Problem> {
        let path = match &self.place {
            Place::Path(path) if self.kind == "file" => {
                let file = OpenOptions::new().write(true).open(path);
                let emptied = file.and_then(|file| file.set_len(0).and_then(|()| file.set_len(self.bytes)));
                emptied.map_err(|error| Problem::Failed(format!("{path}: {error}")))?;
                return Ok("the file was cut to nothing and made as long as before: its blocks were given back".into());
            }
            Place::Path(path) => format!("filename={}\nioengine=psync", path.replace(':', "\\:")),
            Place::Nbd(uri) => format!("uri={uri}\nioengine=nbd"),
        };
        let job = format!("[trim]\n{path}\nrw=trim\nbs={TRIM_BYTES}\nsize={}\nthread=1\n", self.bytes);
        let directory = temporary()?;
        Ok(
            match process::run(
                &self.program,
                directory.path(),
                &job,
                None,
                &mut |_| std::ops::ControlFlow::Continue(()),
            ) {
                Ok(_) => "all of it was trimmed".into(),
                Err(problem) => format!("NOT purged, it cannot be trimmed: {problem}"),
            },
        )
    }
}

fn temporary() -> Result<tempfile::TempDir, Problem> {
    tempfile::Builder::new()
        .prefix("vsl-lab.")
        .tempdir()
        .map_err(|error| Problem::Failed(format!("a temporary directory: {error}")))
}

/// What a device says that it is.
fn product(place: &Place, kind: &str) -> String {
    let Place::Path(path) = place else { return format!("{kind} NBD export") };
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let model = std::fs::read_to_string(format!("/sys/class/block/{name}/device/model")).unwrap_or_default();
    match model.trim() {
        "" => format!("{kind} {}", real.display()),
        model => format!("{model} ({})", real.display()),
    }
}

struct FioBench {
    fio: Fio,
    machine: Machine,
    purge: String,
    began: Instant,
}

impl Bench for FioBench {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn purge(&self) -> &str {
        &self.purge
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "results over time are from submission to completion, in fio's buckets of 1.6 %; totals are whole latencies".into(),
        ];
        if self.fio.buffered {
            notes.push("through the page cache".into());
        }
        notes
    }

    fn run(&mut self, step: &StepPlan, seed: u64, watch: Watch<'_>) -> Result<Outcome, Problem> {
        pause(step.pause.0, watch)?;
        if step.phase.loads.is_empty() {
            return self.idle(step, watch);
        }
        // Amounts and regions as every target understands them.
        let workload = Workload {
            name: step.phase.name.clone(),
            description: String::new(),
            seed,
            phases: vec![step.phase.clone()],
        };
        let workload = fitted(&workload, 1.0, self.fio.bytes);
        let phase = &workload.phases[0];
        let duration = phase.stop.duration.map(|time| time.0);
        let interval_ms = duration.map_or(INTERVAL_MS, |duration| {
            (duration.as_millis() as u64 / u64::from(step.intervals.max(1))).max(SHORTEST_INTERVAL_MS)
        });
        let site = Site {
            place: &self.fio.place,
            bytes: self.fio.bytes,
            engine: &self.fio.engine,
            buffered: self.fio.buffered,
            seed,
            log: "log",
            interval_ms,
        };
        let (job, notes) = job::job(step, phase, &site).map_err(Problem::Failed)?;
        let directory = temporary()?;
        for load in &phase.loads {
            replay::write(load, self.fio.shape(), &self.fio.place, directory.path()).map_err(Problem::Failed)?;
        }
        let from_seconds = self.began.elapsed().as_secs_f64() + phase.ramp.0.as_secs_f64();
        let expected = duration.map(|duration| duration + phase.ramp.0);
        let report = process::run(&self.fio.program, directory.path(), &job, expected, watch)?;
        let size = step.point.size_bytes;
        let totals = output::totals(&report, size).map_err(Problem::Failed)?;
        let series = histogram::series(directory.path(), "log", interval_ms, size, &totals).map_err(Problem::Failed)?;
        let open = step.phase.loads.iter().any(Load::is_open);
        Ok(Outcome {
            loop_kind: if open { LoopKind::OpenFromSubmission } else { LoopKind::Closed },
            from_seconds,
            seconds: totals.seconds,
            total: totals.ops,
            outstanding: totals.outstanding,
            not_started: 0,
            device_use: None,
            cpu_us_per_io: totals.cpu_us_per_io,
            notes,
            cells: totals.cells,
            series: coarsen(series, step.intervals as usize + 1).map_err(|error| Problem::Failed(error.to_string()))?,
        })
    }
}

impl FioBench {
    fn idle(&self, step: &StepPlan, watch: Watch<'_>) -> Result<Outcome, Problem> {
        let from_seconds = self.began.elapsed().as_secs_f64();
        let duration = step.phase.stop.duration.map_or(Duration::ZERO, |time| time.0);
        pause(duration, watch)?;
        Ok(Outcome {
            loop_kind: LoopKind::Idle,
            from_seconds,
            seconds: duration.as_secs_f64(),
            total: Default::default(),
            outstanding: 0.0,
            not_started: 0,
            device_use: None,
            cpu_us_per_io: None,
            notes: Vec::new(),
            cells: Vec::new(),
            series: Vec::new(),
        })
    }
}

/// Waits, and ends when it is told to.
fn pause(duration: Duration, watch: Watch<'_>) -> Result<(), Problem> {
    const TICK: Duration = Duration::from_millis(50);
    let until = Instant::now() + duration;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if watch(0.0).is_break() {
            return Err(Problem::Interrupted);
        }
        std::thread::sleep(left.min(TICK));
    }
}
