//! Recording what clients ask of a device.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use export::Recording;
use trace::OutputFormat;
use trace::recorder::{Recorder, Status};

use super::Registry;
use crate::Failure;
use crate::api::{EndedRecording, RecordRequest, RecordStatus};
use crate::clock::now_ms;
use crate::handle::Handle;
use crate::stored::Kept;

/// Where those go that are given a name only, below the state directory.
const RECORDINGS: &str = "recordings";

/// Recordings that are remembered, of all devices.
const REMEMBERED: usize = 500;

/// Recordings that came to their end, the newest last; kept across restarts.
pub(super) struct List(Mutex<Kept<Vec<EndedRecording>>>);

impl List {
    /// Those that are remembered in a directory.
    pub fn open(directory: &Path) -> Result<List, Failure> {
        Kept::open(directory.join("recordings.json")).map(|kept| List(Mutex::new(kept)))
    }

    fn kept(&self) -> MutexGuard<'_, Kept<Vec<EndedRecording>>> {
        // Whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a recording of a device, and notes it.
    ///
    /// # Errors
    /// The file took no more.
    pub fn end(&self, device: &str, uuid: &str, recording: Recording) -> Result<Status, Failure> {
        let before = recording.status();
        let (status, error) = match recording.stop() {
            Ok(status) => (status, None),
            Err(error) => (before, Some(error.to_string())),
        };
        tracing::info!(device, written = status.written, dropped = status.dropped, "recorded");
        let one = EndedRecording {
            uuid: uuid.into(),
            device: device.into(),
            path: status.path.clone(),
            format: status.format.clone(),
            written: status.written,
            dropped: status.dropped,
            ended_ms: now_ms(),
            error: error.clone(),
            exists: false,
        };
        self.kept().note(|ended| {
            ended.retain(|other| other.path != one.path);
            ended.push(one);
            let over = ended.len().saturating_sub(REMEMBERED);
            ended.drain(..over);
        });
        error.map_or(Ok(status), |error| Err(Failure::failed(error)))
    }

    /// Those of a format, the newest first.
    fn of(&self, uuid: &str) -> Vec<EndedRecording> {
        let ended: Vec<EndedRecording> = self.kept().iter().rev().filter(|one| one.uuid == uuid).cloned().collect();
        ended.into_iter().map(|one| EndedRecording { exists: one.path.exists(), ..one }).collect()
    }
}

impl Registry {
    /// Begins to record what clients ask of a device into a new file: below the service's own directory, or `anywhere`.
    ///
    /// # Errors
    /// There is no such device, it is being recorded already, or the file may not or cannot be made.
    pub fn record(&self, name: &str, request: &RecordRequest, anywhere: bool) -> Result<RecordStatus, Failure> {
        let handle = self.table().attached(name)?;
        let path = &self.place_of(&request.path, anywhere)?;
        let format = match &request.format {
            Some(format) => format.parse().map_err(Failure::invalid)?,
            None => OutputFormat::of_name(path).ok_or_else(|| {
                Failure::invalid(format!("{}: its ending names no format", path.display()))
                    .help("give a format: fio3, vscsi2, vscsi-csv or msr")
            })?,
        };
        let recorder = Recorder::start(path, format, 0, name).map_err(|error| Failure::invalid(error.to_string()))?;
        if let Err(recording) = handle.begin_recording(Recording::new(recorder))? {
            // It is empty, and its name is free again for another try.
            drop(recording);
            let _ = std::fs::remove_file(path);
            return Err(Failure::conflict(format!("{name} is being recorded already"))
                .help(format!("`vsl trace record {name} --stop` ends that")));
        }
        tracing::info!(device = name, path = %path.display(), "recording");
        self.recording(name)
    }

    /// Where a recording goes: a name is that of a file of our own, whoever gives it.
    fn place_of(&self, path: &Path, anywhere: bool) -> Result<PathBuf, Failure> {
        let shown = path.display();
        if path.is_absolute() {
            return match anywhere {
                true => Ok(path.to_path_buf()),
                false => {
                    Err(Failure::forbidden(format!("{shown}: only an administrator chooses where files are made"))
                        .help("give a name, such as today.vscsi.zst: the file is made in the service's own directory"))
                }
            };
        }
        let plain =
            path.to_str().filter(|name| !name.chars().any(|c| c == '/' || c.is_control()) && !name.starts_with('.'));
        let Some(name) = plain else {
            return Err(Failure::invalid(format!("{shown}: neither the name of a file nor an absolute path"))
                .help("the service has another working directory than its clients"));
        };
        let directory = self.table().state.directory().join(RECORDINGS);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| Failure::io(&directory, &error))?;
        Ok(directory.join(name))
    }

    /// Ends a recording; everything is in its file then.
    ///
    /// # Errors
    /// There is no such device, it is not being recorded, or the file took no more.
    pub fn stop_recording(&self, name: &str) -> Result<RecordStatus, Failure> {
        let handle = self.table().attached(name)?;
        self.end_recording(name, &handle)?.ok_or_else(|| Failure::conflict(format!("{name} is not being recorded")))
    }

    /// Ends what is being recorded of a device, if anything is, and notes it.
    pub(super) fn end_recording(&self, name: &str, handle: &Handle) -> Result<Option<RecordStatus>, Failure> {
        let Some(recording) = handle.end_recording()? else { return Ok(None) };
        let status = self.recordings.end(name, &handle.facts().uuid, recording)?;
        Ok(Some(record_status(false, Some(status))))
    }

    /// Recordings of a device that came to their end, the newest first.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn ended_recordings(&self, name: &str) -> Result<Vec<EndedRecording>, Failure> {
        let uuid = self.table().attached(name)?.facts().uuid.clone();
        Ok(self.recordings.of(&uuid))
    }

    /// The file of the last recording of a device that came to its end.
    ///
    /// # Errors
    /// There is no such device, or none was recorded.
    pub fn last_recording(&self, name: &str) -> Result<PathBuf, Failure> {
        let whole = self.ended_recordings(name)?.into_iter().find(|one| one.exists && one.error.is_none());
        whole.map(|one| one.path).ok_or_else(|| {
            Failure::conflict(format!("nothing was recorded of {name} since its format")).help(format!(
                "record a while of its use first (`vsl trace record {name} --to FILE`), or choose a workload by name"
            ))
        })
    }

    /// Whether a file is a recording that came to its end.
    pub fn has_recorded(&self, path: &Path) -> bool {
        self.recordings.kept().iter().any(|one| one.path == path)
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
