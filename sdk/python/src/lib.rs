//! The Python package's compiled part. `python/openvsl/_openvsl.pyi` says what it is to Python.

mod buffer;
mod device;
mod errors;
mod protocol;
mod simulate;
mod table;

use std::path::PathBuf;

use openvsl::CreateOptions;
use pyo3::prelude::*;

/// Makes a device of so many bytes in a new file.
#[pyfunction]
#[pyo3(signature = (path, bytes, *, sector_bytes = 4096, label = "", drills = false))]
fn create(py: Python<'_>, path: PathBuf, bytes: u64, sector_bytes: u32, label: &str, drills: bool) -> PyResult<()> {
    let mut options = CreateOptions::default();
    options.sector_bytes = sector_bytes;
    options.label = label.to_string();
    options.drills = drills;
    py.detach(|| openvsl::create(path, bytes, &options)).map_err(errors::open)
}

#[pymodule]
fn _openvsl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(create, module)?)?;
    module.add_class::<device::Device>()?;
    for function in [
        wrap_pyfunction!(simulate::run, module)?,
        wrap_pyfunction!(simulate::data_sheet, module)?,
        wrap_pyfunction!(simulate::data_sheets, module)?,
        wrap_pyfunction!(simulate::named_workload, module)?,
        wrap_pyfunction!(simulate::named_workloads, module)?,
        wrap_pyfunction!(protocol::protocol_part, module)?,
        wrap_pyfunction!(protocol::protocols, module)?,
    ] {
        module.add_function(function)?;
    }
    module.add_class::<protocol::ProtocolRun>()?;
    module.add_class::<table::Table>()?;
    errors::add(module)
}
