//! From a device to a stream.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use device::Secret;
use openvsl::{Device, Error};
use uuid::Uuid;

use crate::stream::DATA_MAX;
use crate::{BackupError, Header, Moment, Piece, Progress, Reader, Writer};

/// Outstanding reads, and bytes of all of them.
const READS: usize = 64;
const READ_BYTES: u64 = 8 << 20;

/// What is backed up, beside the device itself.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// What the device is called, for people.
    pub name: String,
    /// What opens the backup; without it, it is not encrypted.
    pub secret: Option<Secret>,
    /// What the snapshot is called that the device shows, if it does.
    pub snapshot: String,
    /// Only what changed since this older snapshot.
    pub since: Option<Moment>,
}

impl Source {
    /// Checks that [`Source::since`] is older than the snapshot that the device shows.
    ///
    /// # Errors
    /// [`BackupError::NotOlder`].
    pub fn check(&self, device: &Device) -> Result<(), BackupError> {
        let is_older = |since: &&Moment| device.capabilities().snapshot.is_some_and(|shown| since.number < shown);
        match &self.since {
            Some(since) if !is_older(&since) => Err(BackupError::NotOlder { since: since.to_string() }),
            _ => Ok(()),
        }
    }

    fn header(&self, device: &Device) -> Header {
        let capabilities = device.capabilities();
        Header {
            id: Uuid::new_v4(),
            device: capabilities.uuid.clone(),
            name: self.name.clone(),
            sector_bytes: capabilities.sector_bytes,
            sectors: capabilities.sectors,
            taken_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            snapshot: capabilities.snapshot.map(|number| Moment { number, name: self.snapshot.clone() }),
            since: self.since.clone(),
            key: None,
        }
    }
}

/// Writes everything on a device as a stream, or what changed since a snapshot. The stream shows one moment only if the device shows a snapshot, or
/// nobody writes to it meanwhile. `progress` is called after each piece, and stops the backup by returning false.
///
/// # Errors
/// The device cannot be read, the stream cannot be written, or `progress` returned false. A stream in a file can be resumed.
/// [`Source::since`] is not older than the snapshot that the device shows; then nothing was written.
pub fn backup<W: Write>(
    device: &Device,
    source: &Source,
    output: W,
    progress: impl FnMut(Progress) -> bool,
) -> Result<W, BackupError> {
    source.check(device)?;
    let writer = Writer::create(output, source.header(device), source.secret.as_ref())?;
    write_from(device, writer, 0, progress)
}

/// Resumes a stream that was interrupted. The device must be the same and unchanged since. [`Writer::resume`] says what `extend` does;
/// [`extend_file`] does it for files.
///
/// # Errors
/// As [`backup`]; or the stream is complete, or of something else.
pub fn resume<R: Read, W: Write>(
    device: &Device,
    source: &Source,
    input: R,
    extend: impl FnOnce(R, u64) -> io::Result<W>,
    progress: impl FnMut(Progress) -> bool,
) -> Result<W, BackupError> {
    let reader = Reader::open(BufReader::with_capacity(1 << 20, input), source.secret.as_ref())?;
    let (begun, found) = (reader.header().clone(), source.header(device));
    let number = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.number);
    let moments = |header: &Header| (number(&header.snapshot), number(&header.since));
    let same = |header: &Header| (header.device.clone(), moments(header), header.sectors, header.sector_bytes);
    if same(&begun) != same(&found) {
        let words = |header: &Header| {
            let since =
                header.since.as_ref().map(|since| format!("what changed since {since} in ")).unwrap_or_default();
            let shown = header.snapshot.as_ref().map(|shown| format!("{shown} of ")).unwrap_or_default();
            format!("{since}{shown}device {}", header.device)
        };
        return Err(BackupError::OtherSource { begun: words(&begun), found: words(&found) });
    }
    // Not before it is known to be the same: it drops what is not sound.
    let (writer, lba) = Writer::resume(reader, |input, sound| extend(input.into_inner(), sound))?;
    write_from(device, writer, lba, progress)
}

/// Has a stream in a file, which was opened to read and write, end behind so many bytes.
///
/// # Errors
/// The file cannot be changed.
pub fn extend_file(mut file: File, bytes: u64) -> io::Result<File> {
    file.set_len(bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

fn write_from<W: Write>(
    device: &Device,
    mut writer: Writer<W>,
    from: u64,
    mut progress: impl FnMut(Progress) -> bool,
) -> Result<W, BackupError> {
    let sectors = device.capabilities().sectors;
    let ranges: Box<dyn Iterator<Item = Found>> = match &writer.header().since {
        Some(since) => Box::new(device.changes(since.number, from..)),
        None => Box::new(device.ranges(from..).map(|range| range.map(|range| (range, true)))),
    };
    read(device, ranges, |piece, data| {
        match data {
            Some(data) => writer.held(piece.lba(), &data)?,
            None => writer.trimmed(piece.lba(), piece.end() - piece.lba())?,
        }
        if !progress(Progress { lba: piece.end(), sectors, data_bytes: writer.data_bytes() }) {
            writer.flush()?;
            return Err(BackupError::Stopped);
        }
        Ok(())
    })?;
    progress(Progress { lba: sectors, sectors, data_bytes: writer.data_bytes() });
    writer.finish()
}

/// Reads ranges in pieces, in order and several at a time, and hands on each with its data, or without where it holds none.
pub(crate) fn read(
    device: &Device,
    ranges: impl Iterator<Item = Found>,
    mut each: impl FnMut(Piece, Option<Vec<u8>>) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let capabilities = device.capabilities();
    let sector_bytes = u64::from(capabilities.sector_bytes);
    let most = u64::from(capabilities.max_write_bytes.min(DATA_MAX as u32) / capabilities.sector_bytes).max(1);
    let mut pieces = ranges.flat_map(|range| pieces_of(range, most));
    let (mut reads, mut reading) = (VecDeque::new(), 0);
    loop {
        while reads.len() < READS && reading < READ_BYTES {
            let Some(piece) = pieces.next() else { break };
            let piece = piece?;
            let read = match piece {
                Piece::Held { lba, sectors } => Some(device.begin_read(lba, sectors as u32)),
                Piece::Trimmed { .. } => None,
            };
            reading += read.as_ref().map_or(0, |_| (piece.end() - piece.lba()) * sector_bytes);
            reads.push_back((piece, read));
        }
        let Some((piece, read)) = reads.pop_front() else { return Ok(()) };
        let data = read.map(|read| read.wait()).transpose()?;
        reading -= data.as_ref().map_or(0, |data| data.len() as u64);
        each(piece, data)?;
    }
}

/// A range of sectors, and whether it holds data.
pub(crate) type Found = Result<(Range<u64>, bool), Error>;

/// A range in pieces: of `most` sectors where it holds data, and one where it does not.
fn pieces_of(found: Found, most: u64) -> impl Iterator<Item = Result<Piece, Error>> {
    let (range, holds, error) = match found {
        Ok((range, holds)) => (range, holds, None),
        Err(error) => (0..0, true, Some(Err(error))),
    };
    let (end, most) = (range.end, if holds { most } else { u64::MAX });
    let piece = move |lba: u64| {
        let sectors = most.min(end - lba);
        if holds { Piece::Held { lba, sectors } } else { Piece::Trimmed { lba, sectors } }
    };
    let pieces = range.step_by(usize::try_from(most).unwrap_or(usize::MAX));
    error.into_iter().chain(pieces.map(move |lba| Ok(piece(lba))))
}
