//! Figures as a table of Apache Arrow, which data frames and databases take without a copy.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table that others read through Arrow's PyCapsule interface.
#[pyclass(frozen, module = "openvsl._openvsl")]
pub(crate) struct Table(RecordBatch);

/// The values of a column. Whole numbers are tried first, so that they stay whole.
#[derive(FromPyObject)]
enum Column {
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
}

#[pymethods]
impl Table {
    /// Of columns, each a name and its values: whole numbers, real numbers or texts, any of them `None`.
    #[new]
    fn new(columns: Vec<(String, Column)>) -> PyResult<Table> {
        let columns = columns.into_iter().map(|(name, column)| {
            let values: ArrayRef = match column {
                Column::Whole(values) => Arc::new(Int64Array::from(values)),
                Column::Real(values) => Arc::new(Float64Array::from(values)),
                Column::Text(values) => Arc::new(StringArray::from(values)),
            };
            (name, values)
        });
        let batch = RecordBatch::try_from_iter(columns).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table(batch))
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The table as a stream in C. Other types than its own are not made: who asks for them casts.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let rows = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        // The capsule's end releases the stream, unless whoever took it has.
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(rows)), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<openvsl.Table {} x {}>", self.0.num_rows(), self.column_names().join(", "))
    }
}
