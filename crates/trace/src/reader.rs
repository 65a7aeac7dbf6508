//! A trace as a stream of records.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::formats::recognise::recognise;
use crate::formats::{Aside, Decode, Format};
use crate::input::Buffer;
use crate::input::buffer::Broken;
use crate::input::compression::{Compression, decoded};
use crate::record::Record;

/// What of a trace is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its format; without it, it is recognised.
    pub format: Option<Format>,
    /// Only this volume.
    pub volume: Option<u32>,
}

/// Reads a trace: records come in the order of the file, one batch in memory at a time.
pub struct Reader {
    path: PathBuf,
    format: Format,
    compression: Compression,
    input: Buffer,
    decoder: Box<dyn Decode>,
    volume: Option<u32>,
    batch: Vec<Record>,
    next: usize,
    /// What comes after the batch.
    then: Then,
    other_volumes: u64,
}

enum Then {
    More,
    End,
    Error(TraceError),
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).field("format", &self.format).finish_non_exhaustive()
    }
}

impl Reader {
    /// Of a file.
    ///
    /// # Errors
    /// It cannot be read, or is of no format that is known.
    pub fn open(path: &Path, wanted: &Wanted) -> Result<Reader, TraceError> {
        let failed = |error| TraceError::File { path: path.into(), error };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        Reader::new(file, path, wanted)
    }

    /// Of anything that can be read; `path` is what errors call it.
    ///
    /// # Errors
    /// As of [`Reader::open`].
    pub fn new(input: impl Read + Send + 'static, path: &Path, wanted: &Wanted) -> Result<Reader, TraceError> {
        let failed = |error| TraceError::File { path: path.into(), error };
        let (input, compression) = decoded(input).map_err(failed)?;
        let mut input = Buffer::new(input);
        let beginning = input.beginning().map_err(|broken| because(broken, path, compression))?;
        let format = match wanted.format {
            Some(format) => format,
            None => recognise(beginning).map_err(|problem| TraceError::Unrecognised { path: path.into(), problem })?,
        };
        Ok(Reader {
            path: path.into(),
            format,
            compression,
            input,
            decoder: format.decoder(),
            volume: wanted.volume,
            batch: Vec::new(),
            next: 0,
            then: Then::More,
            other_volumes: 0,
        })
    }

    /// The format, recognised or as it was named.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// What errors call it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was read up to now and is no record.
    pub fn aside(&self) -> Aside {
        self.decoder.aside()
    }

    /// Records of other volumes than the one that was asked for, up to now.
    pub fn other_volumes(&self) -> u64 {
        self.other_volumes
    }

    /// How a volume is called: the name of its file where the format has names, else its number as the format writes it.
    pub fn volume_name(&self, volume: u32) -> String {
        self.decoder.files().get(volume as usize).cloned().unwrap_or_else(|| self.format.volumes().show(volume))
    }

    #[cold]
    fn fill(&mut self) {
        self.batch.clear();
        self.next = 0;
        while self.batch.is_empty() && matches!(self.then, Then::More) {
            match self.decoder.fill(&mut self.input, &mut self.batch) {
                Ok(true) => {}
                Ok(false) => self.then = Then::End,
                Err(broken) => self.then = Then::Error(because(broken, &self.path, self.compression)),
            }
            if let Some(volume) = self.volume {
                let all = self.batch.len();
                self.batch.retain(|record| record.volume == volume);
                self.other_volumes += (all - self.batch.len()) as u64;
            }
        }
    }
}

fn because(broken: Broken, path: &Path, compression: Compression) -> TraceError {
    match broken {
        Broken::Malformed(place, problem) => TraceError::Malformed { path: path.into(), place, problem },
        Broken::Io(error) => {
            // Decoders tell the end of a file that was cut off in many words; say at least which one it was.
            let error = match compression.name() {
                Some(name) => std::io::Error::new(error.kind(), format!("damaged or cut off {name} data: {error}")),
                None => error,
            };
            TraceError::File { path: path.into(), error }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Record, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Result<Record, TraceError>> {
        loop {
            if let Some(record) = self.batch.get(self.next) {
                self.next += 1;
                return Some(Ok(*record));
            }
            match std::mem::replace(&mut self.then, Then::End) {
                Then::More => {
                    self.then = Then::More;
                    self.fill();
                }
                Then::End => return None,
                Then::Error(error) => return Some(Err(error)),
            }
        }
    }
}
