//! Writing traces.

mod fio;
mod msr;
mod vscsi;
mod vscsi_csv;

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::TraceError;
use crate::input::compression::{Compression, Encoder};
use crate::record::{Op, Record};

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// fio's iolog, version 3.
    Fio3,
    /// VMware's vscsiStats in binary, version 2.
    Vscsi2,
    /// VMware's vscsiStats as text.
    VscsiCsv,
    /// MSR Cambridge's text.
    Msr,
}

impl OutputFormat {
    /// All of them.
    pub const ALL: [OutputFormat; 4] =
        [OutputFormat::Fio3, OutputFormat::Vscsi2, OutputFormat::VscsiCsv, OutputFormat::Msr];

    /// Its name on the command line, the same as that of the format that is read.
    pub fn name(self) -> &'static str {
        match self {
            OutputFormat::Fio3 => "fio3",
            OutputFormat::Vscsi2 => "vscsi2",
            OutputFormat::VscsiCsv => "vscsi-csv",
            OutputFormat::Msr => "msr",
        }
    }

    /// What it cannot say.
    pub fn limits(self) -> &'static str {
        match self {
            OutputFormat::Fio3 => "times are cut to µs; no response times; volumes become files",
            OutputFormat::Vscsi2 => {
                "times are cut to µs; addresses are widened to sectors of 512 bytes; no volumes; trims below 4 GiB"
            }
            OutputFormat::VscsiCsv => {
                "times are cut to µs; addresses are widened to sectors of 512 bytes; no volumes, no response times; other programs know no trims and flushes in it"
            }
            OutputFormat::Msr => {
                "times are cut to 100 ns; other programs know no trims and flushes in it; an unknown response time is 0"
            }
        }
    }

    /// The format of a file that is called so: `.iolog`, `.vscsi`, `.csv`, each perhaps with the ending of a compression behind.
    pub fn of_name(path: &Path) -> Option<OutputFormat> {
        let plain = match Compression::of_name(path) {
            Compression::Plain => path.to_owned(),
            _ => path.with_extension(""),
        };
        match plain.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "iolog" | "fio" | "log" => Some(OutputFormat::Fio3),
            "vscsi" => Some(OutputFormat::Vscsi2),
            "csv" => Some(OutputFormat::Msr),
            _ => None,
        }
    }
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<OutputFormat, String> {
        OutputFormat::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let names = OutputFormat::ALL.map(OutputFormat::name).join(", ");
            format!("'{text}' is no format that is written; expected one of {names}")
        })
    }
}

/// What a format could not say of the records that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Records that were left out.
    pub records: u64,
    /// Records whose ends were moved outwards to sectors.
    pub widened: u64,
    /// Records of another volume than the first one's, where all become one.
    pub volumes_merged: u64,
}

/// Turns records into bytes.
pub(crate) trait Encode: Send {
    /// What stands before the first record.
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()>;
    /// A record.
    fn record(&mut self, record: &Record, to: &mut dyn Write, left: &mut Left) -> io::Result<()>;
    /// What stands behind the last.
    fn end(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a trace to a file, compressed as its name says. Half a trace is none: a file that it made and that does not come to its end goes
/// away with it.
pub struct Writer {
    path: PathBuf,
    unfinished: Option<Unfinished>,
    file: Encoder,
    encoder: Box<dyn Encode>,
    /// The time that is written as 0.
    epoch_ns: Option<u64>,
    left: Left,
    written: u64,
}

impl Writer {
    /// To a new file; one that is there is not overwritten. Where it asks for other names than volumes' numbers, `name` gives them.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(
        path: &Path,
        format: OutputFormat,
        name: impl Fn(u32) -> String + Send + 'static,
    ) -> Result<Writer, TraceError> {
        let failed = |error| TraceError::File { path: path.into(), error };
        let file = File::create_new(path).map_err(failed)?;
        let unfinished = Some(Unfinished(path.into()));
        Ok(Writer { unfinished, ..Writer::onto(file, path, format, name)? })
    }

    /// As [`Writer::create`], to a file that is open already and that errors call `path`.
    pub(crate) fn onto(
        file: File,
        path: &Path,
        format: OutputFormat,
        name: impl Fn(u32) -> String + Send + 'static,
    ) -> Result<Writer, TraceError> {
        let failed = |error| TraceError::File { path: path.into(), error };
        let mut file = Encoder::new(file, Compression::of_name(path)).map_err(failed)?;
        let mut encoder: Box<dyn Encode> = match format {
            OutputFormat::Fio3 => Box::new(fio::Fio::new(Box::new(name))),
            OutputFormat::Vscsi2 => Box::new(vscsi::Vscsi::default()),
            OutputFormat::VscsiCsv => Box::new(vscsi_csv::VscsiCsv::default()),
            OutputFormat::Msr => Box::new(msr::Msr),
        };
        encoder.begin(&mut file).map_err(failed)?;
        let left = Left::default();
        Ok(Writer { path: path.into(), unfinished: None, file, encoder, epoch_ns: None, left, written: 0 })
    }

    /// What was written stays, also if no more follows.
    pub(crate) fn kept(mut self) -> Writer {
        if let Some(unfinished) = self.unfinished.take() {
            unfinished.keep();
        }
        self
    }

    /// Counts times from this moment of the records' clock instead of from the first record.
    pub fn from_epoch(mut self, epoch_ns: u64) -> Writer {
        self.epoch_ns = Some(epoch_ns);
        self
    }

    /// Writes a record. Times are counted from the first, and none is before it.
    ///
    /// # Errors
    /// The file takes nothing more.
    #[inline]
    pub fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        let epoch = *self.epoch_ns.get_or_insert(record.time_ns);
        let record = Record { time_ns: record.time_ns.saturating_sub(epoch), ..*record };
        self.written += 1;
        let path = &self.path;
        self.encoder
            .record(&record, &mut self.file, &mut self.left)
            .map_err(|error| TraceError::File { path: path.clone(), error })
    }

    /// Records written, those left out included.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The end of the trace: everything is in the file. Gives what could not be said.
    ///
    /// # Errors
    /// The file takes nothing more.
    pub fn finish(mut self) -> Result<Left, TraceError> {
        let path = self.path;
        let end = self.encoder.end(&mut self.file).and_then(|()| self.file.finish());
        end.map_err(|error| TraceError::File { path, error })?;
        if let Some(unfinished) = self.unfinished {
            unfinished.keep();
        }
        Ok(self.left)
    }
}

/// A file that was made for a trace and is none yet: removed unless it is kept.
struct Unfinished(PathBuf);

impl Unfinished {
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // Why it is not finished is what there is to tell.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// A record in sectors of 512 bytes: first, how many, and whether its ends had to be moved.
fn in_sectors(record: &Record) -> (u64, u64, bool) {
    let (first, end) = (record.offset / 512, record.end().div_ceil(512));
    let exact = record.offset.is_multiple_of(512) && record.end().is_multiple_of(512);
    (first, end - first, !exact)
}

/// What a trim or a flush is called in formats that only know reads and writes.
fn word(op: Op, read: &'static str, write: &'static str) -> &'static str {
    match op {
        Op::Read => read,
        Op::Write => write,
        Op::Trim => "trim",
        Op::Flush => "flush",
    }
}
