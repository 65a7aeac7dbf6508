//! Errors as exceptions.

use openvsl::OpenError as NotOpened;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(openvsl, Error, PyException, "What a device answered instead of success.");
create_exception!(openvsl, OpenError, Error, "There is no device to use.");
create_exception!(openvsl, InvalidRequest, Error, "A request that cannot be: nothing was changed.");
create_exception!(openvsl, ReadOnly, Error, "The device takes no writes.");
create_exception!(openvsl, NoSpace, Error, "No space is left under the device.");
create_exception!(openvsl, PowerOff, Error, "A drill has cut the device's power.");
create_exception!(openvsl, Closed, Error, "The device is not open any more, or the connection ended.");
create_exception!(openvsl, SimulationError, Error, "A model failed a request, and the run ended.");

pub(crate) fn request(error: openvsl::Error) -> PyErr {
    use openvsl::Error as E;
    let text = error.to_string();
    match error {
        E::OutOfRange { .. } | E::Misaligned { .. } | E::TooLarge { .. } | E::Batch(_) | E::Drill(_) => {
            InvalidRequest::new_err(text)
        }
        E::ReadOnly => ReadOnly::new_err(text),
        E::NoSpace => NoSpace::new_err(text),
        E::PowerOff => PowerOff::new_err(text),
        E::Gone | E::Disconnected { .. } => Closed::new_err(text),
        _ => Error::new_err(text),
    }
}

pub(crate) fn open(error: NotOpened) -> PyErr {
    OpenError::new_err(error.to_string())
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("OpenError", py.get_type::<OpenError>())?;
    module.add("InvalidRequest", py.get_type::<InvalidRequest>())?;
    module.add("ReadOnly", py.get_type::<ReadOnly>())?;
    module.add("NoSpace", py.get_type::<NoSpace>())?;
    module.add("PowerOff", py.get_type::<PowerOff>())?;
    module.add("Closed", py.get_type::<Closed>())?;
    module.add("SimulationError", py.get_type::<SimulationError>())
}
