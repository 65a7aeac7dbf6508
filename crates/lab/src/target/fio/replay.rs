//! A trace as a log that fio replays.

use std::path::Path;

use trace::{OutputFormat, Record, Writer};

use super::job::Place;
use crate::generate::{Plan, Shape};
use crate::workload::Load;

/// The log, in the directory in which fio runs.
pub const LOG: &str = "trace.iolog";

/// What a log of requests calls an NBD export: fio's engine for those has no file names.
const EXPORT: &str = "nbd";

/// Writes the requests of a load's trace into a directory, placed on the device and due when they are to be made.
///
/// # Errors
/// The trace makes no sense or does not fit the device, or the log cannot be written.
pub fn write(load: &Load, shape: Shape, place: &Place, directory: &Path) -> Result<(), String> {
    let Some(trace) = Plan::new(load, shape)?.trace else { return Ok(()) };
    let name = match place {
        Place::Path(path) => path.clone(),
        Place::Nbd(_) => EXPORT.to_string(),
    };
    let fail = |error: trace::TraceError| error.to_string();
    let mut writer =
        Writer::create(&directory.join(LOG), OutputFormat::Fio3, move |_| name.clone()).map_err(fail)?.from_epoch(0);
    for item in trace.requests()? {
        let item = item.map_err(fail)?;
        let record = Record {
            time_ns: item.due_ns,
            offset: item.offset,
            bytes: u64::from(item.bytes),
            op: item.op,
            ..Record::default()
        };
        writer.write(&record).map_err(fail)?;
    }
    writer.finish().map(drop).map_err(fail)
}
