//! Protocols of the lab, whose parts may run anywhere.

use std::ops::ControlFlow;
use std::path::PathBuf;

use lab::protocol::{self, Protocol};
use lab::run::{Apart, Directory, Line, Options, RunError, Session, run_part};
use pyo3::exceptions::{PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::SimulationError;

/// What Python asks for: the words of `vsl lab run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// A name, or a file's path.
    protocol: String,
    directory: PathBuf,
    /// Without devices those of the protocol.
    options: Options,
}

/// Fills in the protocol's devices where none are named, and checks that each can be built so.
fn check_devices(options: &mut Options, protocol: &Protocol) -> Result<(), String> {
    if options.devices.is_empty() {
        options.devices.clone_from(&protocol.devices);
    }
    for name in &options.devices {
        let sheet = profile::find(name).map_err(|error| format!("devices: {error}"))?;
        let scale = options.scale.map_or(Ok(()), |scale| card::check_scale(&sheet, scale));
        scale.map_err(|error| format!("scale: {error}"))?;
    }
    Ok(())
}

fn error(error: RunError) -> PyErr {
    match error {
        RunError::NoPlan(_) | RunError::Trace(_) => PyValueError::new_err(error.to_string()),
        RunError::Directory(_) => PyOSError::new_err(error.to_string()),
        RunError::Target(_) => SimulationError::new_err(error.to_string()),
    }
}

fn invalid(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A run of a protocol in a directory of its own.
#[pyclass(module = "openvsl")]
pub(crate) struct ProtocolRun {
    apart: Apart,
    /// What every part needs, in JSON.
    shared: String,
}

#[pymethods]
impl ProtocolRun {
    /// Begins a run, or goes on with the one that is in the directory.
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<ProtocolRun> {
        let Request { protocol: name, directory, mut options } = serde_json::from_str(request).map_err(invalid)?;
        let found = protocol::named(&name);
        let found = found.ok_or_else(|| invalid(format!("'{name}' is neither a protocol's name nor a file")))?;
        let (protocol, text) = found.map_err(invalid)?;
        check_devices(&mut options, &protocol).map_err(invalid)?;
        let directory = std::path::absolute(directory)?;
        let shared = serde_json::json!({ "protocol": text, "options": options, "directory": directory }).to_string();
        let is_begun = match Directory::open(&directory) {
            Ok(known) => {
                let header = known.header().map_err(|damage| error(damage.into()))?;
                if header.protocol != protocol.name() || header.options != options {
                    let words =
                        format!("{} holds a run of another protocol or with other options", directory.display());
                    return Err(PyFileExistsError::new_err(words));
                }
                true
            }
            Err(_) => false,
        };
        let command = vec!["openvsl.run_protocol".into(), name];
        let apart = py.detach(|| {
            let session = match is_begun {
                true => Session::resume(&directory, 1),
                false => Session::begin(&directory, protocol, &text, options, command, 1),
            };
            session?.apart()
        });
        let apart = apart.map_err(error)?;
        Ok(ProtocolRun { apart, shared })
    }

    /// What every part needs.
    #[getter]
    fn shared(&self) -> &str {
        &self.shared
    }

    /// How many parts there are.
    #[getter]
    fn parts(&self) -> usize {
        self.apart.parts()
    }

    /// Parts that are not done, and which attempt at each is next.
    fn pending(&self) -> Vec<(String, u32)> {
        self.apart.pending()
    }

    /// Writes down what a part came to.
    fn add(&mut self, lines: &str) -> PyResult<()> {
        let lines: Vec<Line> = serde_json::from_str(lines).map_err(invalid)?;
        self.apart.add(lines).map_err(|damage| error(damage.into()))
    }

    /// Writes down that all is done; whether it is.
    fn finish(&mut self) -> PyResult<bool> {
        self.apart.finish().map_err(|damage| error(damage.into()))
    }
}

/// What parts of a run have in common.
#[derive(Deserialize)]
struct Shared {
    protocol: String,
    options: Options,
    directory: PathBuf,
}

/// Runs a part. `shared` is the run's.
#[pyfunction]
pub(crate) fn protocol_part(py: Python<'_>, shared: &str, part: &str, attempt: u32) -> PyResult<String> {
    let shared: Shared = serde_json::from_str(shared).map_err(invalid)?;
    let protocol = protocol::from_toml("protocol.toml", &shared.protocol).map_err(invalid)?;
    let mut raised = None;
    let mut watch = |_: f64| match Python::attach(|py| py.check_signals()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(signal) => {
            raised = Some(signal);
            ControlFlow::Break(())
        }
    };
    let ran = py.detach(|| run_part(&protocol, &shared.options, &shared.directory, (part, attempt), &mut watch));
    match (raised, ran) {
        (Some(signal), _) => Err(signal),
        (None, Ok(lines)) => serde_json::to_string(&lines).map_err(invalid),
        (None, Err(problem)) => Err(error(problem)),
    }
}

/// The names of the protocols that come with the package.
#[pyfunction]
pub(crate) fn protocols() -> Vec<&'static str> {
    protocol::shipped().iter().map(|shipped| shipped.name).collect()
}
