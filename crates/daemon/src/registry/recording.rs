//! Recording what clients ask of a device.

use std::path::PathBuf;

use export::Recording;
use trace::OutputFormat;
use trace::recorder::{Recorder, Status};

use super::Registry;
use crate::Failure;
use crate::api::{RecordRequest, RecordStatus};

impl Registry {
    /// Begins to record what clients ask of a device into a new file.
    ///
    /// # Errors
    /// There is no such device, it is being recorded already, or the file cannot be made.
    pub fn record(&self, name: &str, request: &RecordRequest) -> Result<RecordStatus, Failure> {
        let handle = self.table().attached(name)?;
        let path = &request.path;
        if path.is_relative() {
            return Err(Failure::invalid(format!("{}: the path of a recording must be absolute", path.display()))
                .help("the service has another working directory than its clients"));
        }
        let format = match &request.format {
            Some(format) => format.parse().map_err(Failure::invalid)?,
            None => OutputFormat::of_name(path).ok_or_else(|| {
                Failure::invalid(format!("{}: its ending names no format", path.display()))
                    .help("give a format: fio3, vscsi2, vscsi-csv or msr")
            })?,
        };
        let recorder = Recorder::start(path, format, 0, name).map_err(|error| Failure::invalid(error.to_string()))?;
        handle.begin_recording(Recording::new(recorder))?;
        tracing::info!(device = name, path = %path.display(), "recording");
        self.recording(name)
    }

    /// Ends a recording; everything is in its file then.
    ///
    /// # Errors
    /// There is no such device, it is not being recorded, or the file took no more.
    pub fn stop_recording(&self, name: &str) -> Result<RecordStatus, Failure> {
        let handle = self.table().attached(name)?;
        let recording =
            handle.end_recording()?.ok_or_else(|| Failure::conflict(format!("{name} is not being recorded")))?;
        let status = recording.stop().map_err(|error| Failure::failed(error.to_string()))?;
        tracing::info!(device = name, written = status.written, dropped = status.dropped, "recorded");
        self.table().entry(name)?.recorded = Some(status.path.clone());
        Ok(record_status(false, Some(status)))
    }

    /// The file of the last recording of a device that came to its end since it was attached.
    ///
    /// # Errors
    /// There is no such device, or none was recorded.
    pub fn last_recording(&self, name: &str) -> Result<PathBuf, Failure> {
        self.table().entry(name)?.recorded.clone().ok_or_else(|| {
            Failure::conflict(format!("nothing was recorded of {name} since it was attached"))
                .help("record a while of its use first, or choose a workload by name")
        })
    }

    /// How a recording stands.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn recording(&self, name: &str) -> Result<RecordStatus, Failure> {
        let handle = self.table().attached(name)?;
        let status = handle.recording()?;
        Ok(record_status(status.is_some(), status))
    }
}

/// A recording in the API's words.
fn record_status(recording: bool, status: Option<Status>) -> RecordStatus {
    match status {
        None => RecordStatus::default(),
        Some(status) => RecordStatus {
            recording,
            path: Some(status.path),
            format: Some(status.format),
            written: status.written,
            dropped: status.dropped,
        },
    }
}
