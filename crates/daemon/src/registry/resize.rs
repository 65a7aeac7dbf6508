//! Devices get another size while they are used.

use std::time::{Duration, Instant};

use device::{Resize, ResizeError};

use super::Registry;
use crate::Failure;
use crate::api::{DeviceView, ResizeRequest};
use crate::handle::RETRY;

/// So long a device may take to put another size on record. One that shrinks writes a checkpoint first.
const RESIZED_WITHIN: Duration = Duration::from_secs(120);

impl Registry {
    /// Gives a device another size. Its clients are served meanwhile; when this returns, no power cut takes the size back.
    ///
    /// # Errors
    /// There is no such device, it is not attached, or it cannot have that size.
    pub fn resize(&self, name: &str, request: ResizeRequest) -> Result<DeviceView, Failure> {
        let wanted = Resize { bytes: request.size_bytes, raw_bytes: request.raw_bytes };
        if wanted == Resize::default() {
            return Err(Failure::invalid(format!("{name}: no size was given"))
                .help("name a host capacity, a raw capacity, or both"));
        }
        self.table().not_a_member(name)?;
        let (handle, log) = self.table().attached_with_log(name)?;
        let before = handle.shape().bytes;
        let plan = handle.ask(move |device| device.plan_resize(&wanted)).map_err(|failure| self.told(name, failure))?;
        // The file system may take its time: the device's thread does not wait for it.
        plan.extend()?;
        handle.ask(move |device| device.begin_resize(&plan)).map_err(|failure| self.told(name, failure))?;
        let end = Instant::now() + RESIZED_WITHIN;
        while !handle.ask(|device| device.resized())? {
            if Instant::now() >= end {
                return Err(Failure::failed(format!("{name}: its size is still on its way to the backing store"))
                    .help("`vsl status` shows which size it has; its backing store may be full or fail"));
            }
            std::thread::sleep(RETRY);
        }
        let bytes = handle.info()?.bytes();
        log.note("resized", format!("from {} to {}", size::show(before), size::show(bytes)));
        tracing::info!(device = name, before, bytes, "resized");
        self.view(name)
    }
}

impl From<ResizeError> for Failure {
    fn from(error: ResizeError) -> Failure {
        let said = error.to_string();
        match error {
            ResizeError::Unsupported { .. } | ResizeError::Invalid { .. } => {
                Failure::invalid(said).help("see `vsl resize --help` for what can be chosen")
            }
            ResizeError::Mapped { .. } | ResizeError::Kept { .. } => {
                Failure::conflict(said).help("shrink the file system on it first: nothing is ever cut off")
            }
            ResizeError::Purging | ResizeError::UnderWay => Failure::conflict(said).help("ask again in a moment"),
            ResizeError::Store { .. } => {
                Failure::failed(said).help("make room on its file system, or enlarge the disk")
            }
            ResizeError::Failed(_) => Failure::failed(said).help("see `vsl status`: its backing store may have failed"),
        }
    }
}
