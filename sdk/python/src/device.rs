//! A device as a Python object.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use openvsl::{Batch, Drill, Error, OpenOptions, Unsynced};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyRange};

use crate::buffer::{Sectors, bytes, bytes_mut};
use crate::errors::{InvalidRequest, open, request};

/// A device that is open: in this process, or in a service.
#[pyclass(frozen, module = "openvsl")]
pub(crate) struct Device {
    device: openvsl::Device,
}

/// Mapped ranges, one after the other.
#[pyclass(frozen, module = "openvsl._openvsl")]
struct Ranges(Mutex<openvsl::Ranges>);

#[pymethods]
impl Ranges {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyRange>>> {
        let next = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).next());
        let Some(range) = next.transpose().map_err(request)? else { return Ok(None) };
        // Sectors are fewer than 2^48.
        PyRange::new(py, range.start as isize, range.end as isize).map(Some)
    }
}

#[pymethods]
impl Device {
    #[staticmethod]
    #[pyo3(signature = (*paths, read_only = false, degraded = false))]
    fn open(py: Python<'_>, paths: Vec<PathBuf>, read_only: bool, degraded: bool) -> PyResult<Device> {
        let mut options = OpenOptions::default();
        options.read_only = read_only;
        options.degraded = degraded;
        let device = py.detach(|| openvsl::Device::open_with(&paths, &options)).map_err(open)?;
        Ok(Device { device })
    }

    #[staticmethod]
    fn connect(py: Python<'_>, address: &str) -> PyResult<Device> {
        let device = py.detach(|| openvsl::Device::connect(address)).map_err(open)?;
        Ok(Device { device })
    }

    #[staticmethod]
    #[pyo3(signature = (bytes, *, sector_bytes = 4096))]
    fn memory(py: Python<'_>, bytes: u64, sector_bytes: u32) -> PyResult<Device> {
        let device = py.detach(|| openvsl::Device::memory(bytes, sector_bytes)).map_err(open)?;
        Ok(Device { device })
    }

    #[getter]
    fn uuid(&self) -> &str {
        &self.device.capabilities().uuid
    }

    #[getter]
    fn sector_bytes(&self) -> u32 {
        self.device.capabilities().sector_bytes
    }

    #[getter]
    fn sectors(&self) -> u64 {
        self.device.capabilities().sectors
    }

    #[getter]
    fn max_write_bytes(&self) -> u32 {
        self.device.capabilities().max_write_bytes
    }

    #[getter]
    fn read_only(&self) -> bool {
        self.device.capabilities().read_only
    }

    #[pyo3(signature = (lba, sectors = 1))]
    fn read<'py>(&self, py: Python<'py>, lba: u64, sectors: u32) -> PyResult<Bound<'py, PyMemoryView>> {
        let data = py.detach(|| self.device.read(lba, sectors)).map_err(request)?;
        Sectors::view(py, data)
    }

    fn read_into(&self, py: Python<'_>, lba: u64, mut buffer: PyBuffer<u8>) -> PyResult<()> {
        let data = bytes_mut(&mut buffer)?;
        py.detach(|| self.device.read_into(lba, data)).map_err(request)
    }

    #[pyo3(signature = (lba, data, *, durable = false))]
    fn write(&self, py: Python<'_>, lba: u64, data: PyBuffer<u8>, durable: bool) -> PyResult<()> {
        let data = bytes(&data)?;
        let written = py.detach(|| match durable {
            true => self.device.write_durable(lba, data),
            false => self.device.write(lba, data),
        });
        written.map_err(request)
    }

    #[pyo3(signature = (lba, sectors = 1, *, durable = false))]
    fn trim(&self, py: Python<'_>, lba: u64, sectors: u64, durable: bool) -> PyResult<()> {
        let trimmed = py.detach(|| match durable {
            true => self.device.trim_durable(lba, sectors),
            false => self.device.trim(lba, sectors),
        });
        trimmed.map_err(request)
    }

    #[pyo3(signature = (writes = Vec::new(), *, trims = Vec::new(), durable = false))]
    fn batch(
        &self,
        py: Python<'_>,
        writes: Vec<(u64, PyBuffer<u8>)>,
        trims: Vec<(u64, u64)>,
        durable: bool,
    ) -> PyResult<()> {
        let mut batch = if durable { Batch::new().durable() } else { Batch::new() };
        for (lba, data) in &writes {
            batch = batch.write(*lba, bytes(data)?);
        }
        for (lba, sectors) in trims {
            batch = batch.trim(lba, sectors);
        }
        py.detach(|| self.device.batch(batch)).map_err(request)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.device.flush()).map_err(request)
    }

    fn exists(&self, py: Python<'_>, lba: u64) -> PyResult<bool> {
        py.detach(|| self.device.exists(lba)).map_err(request)
    }

    #[pyo3(signature = (start = 0, stop = None))]
    fn ranges(&self, start: u64, stop: Option<u64>) -> Ranges {
        Ranges(Mutex::new(self.device.ranges(start..stop.unwrap_or(u64::MAX))))
    }

    #[pyo3(signature = (*, at_write = None, at_program = None, unsynced = "random", seed = None))]
    fn cut_power(
        &self,
        py: Python<'_>,
        at_write: Option<u64>,
        at_program: Option<u64>,
        unsynced: &str,
        seed: Option<u64>,
    ) -> PyResult<String> {
        let Some(unsynced) = Unsynced::ALL.into_iter().find(|one| one.name() == unsynced) else {
            let names = Unsynced::ALL.map(Unsynced::name).join(", ");
            return Err(InvalidRequest::new_err(format!("unsynced: '{unsynced}': expected one of {names}")));
        };
        let drill = Drill::PowerCut { at_write, at_program, unsynced, seed };
        py.detach(|| self.device.drill(drill)).map_err(request)
    }

    fn power_on(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.device.power_on()).map_err(request)
    }

    fn power_cycle(&self, py: Python<'_>) -> PyResult<String> {
        let cycled = py.detach(|| {
            let said = match self.device.cut_power() {
                // It went before, with a write that was named.
                Err(Error::PowerOff) => String::new(),
                other => other?,
            };
            self.device.power_on()?;
            Ok(said)
        });
        cycled.map_err(request)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| self.device.clone().close());
        // Who closes twice has closed.
        if closed == Err(Error::Gone) { Ok(()) } else { closed.map_err(request) }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: Vec<Py<PyAny>>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<openvsl.Device {}>", self.device.capabilities().uuid)
    }
}
