//! Memory that Python and a device share.

use std::ffi::c_int;
use std::slice;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

/// What a device read: the memory that it was read into, which Python sees through a view.
#[pyclass(frozen, module = "openvsl._openvsl")]
pub(crate) struct Sectors(Vec<u8>);

impl Sectors {
    /// A view of it, which keeps it.
    pub(crate) fn view(py: Python<'_>, data: Vec<u8>) -> PyResult<Bound<'_, PyMemoryView>> {
        PyMemoryView::from(Bound::new(py, Sectors(data))?.as_any())
    }
}

#[pymethods]
impl Sectors {
    /// Gives a view that can only be read.
    ///
    /// # Safety
    /// As Python's interpreter calls it.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("a view is needed"));
        }
        let data = &slf.get().0;
        let (address, len) = (data.as_ptr().cast_mut().cast(), data.len() as isize);
        // SAFETY: the memory is this object's, which the view keeps, and neither moves nor changes.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, len, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// The bytes of an object that has them in a row.
pub(crate) fn bytes(buffer: &PyBuffer<u8>) -> PyResult<&[u8]> {
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the data must lie in a row"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is held, so the memory stays; that nobody writes to it meanwhile is asked of the caller.
    Ok(unsafe { slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}

/// The same, to be written to.
pub(crate) fn bytes_mut(buffer: &mut PyBuffer<u8>) -> PyResult<&mut [u8]> {
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the memory must be writable and lie in a row"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as above.
    Ok(unsafe { slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}
