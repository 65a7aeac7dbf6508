//! From a device to a stream.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use device::Secret;
use openvsl::{Device, Error, Pending};
use uuid::Uuid;

use crate::stream::DATA_MAX;
use crate::{BackupError, Header, Piece, Progress, Writer};

/// Outstanding reads.
const READS: usize = 8;

/// What is backed up, beside the device itself.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// What the device is called, for people.
    pub name: String,
    /// What opens the backup; without it, it is not encrypted.
    pub secret: Option<Secret>,
    /// The snapshot that the device shows.
    pub snapshot: Option<String>,
}

impl Source {
    fn header(&self, device: &Device) -> Header {
        let capabilities = device.capabilities();
        Header {
            id: Uuid::new_v4(),
            device: capabilities.uuid.clone(),
            name: self.name.clone(),
            sector_bytes: capabilities.sector_bytes,
            sectors: capabilities.sectors,
            taken_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            snapshot: self.snapshot.clone(),
            since: None,
            key: None,
        }
    }
}

/// Writes everything on a device as a stream. The stream shows one moment only if nobody writes to the device meanwhile. `progress` is
/// called after each piece, and stops the backup by returning false.
///
/// # Errors
/// The device cannot be read, the stream cannot be written, or `progress` returned false. A stream in a file can be resumed.
pub fn backup<W: Write>(
    device: &Device,
    source: &Source,
    output: W,
    progress: impl FnMut(Progress) -> bool,
) -> Result<W, BackupError> {
    let writer = Writer::create(output, source.header(device), source.secret.as_ref())?;
    write_from(device, writer, 0, progress)
}

/// Resumes a stream that was interrupted. The device must be the same and unchanged since.
///
/// # Errors
/// As [`backup`]; or the stream is complete, or of something else.
pub fn resume(
    device: &Device,
    source: &Source,
    file: File,
    progress: impl FnMut(Progress) -> bool,
) -> Result<File, BackupError> {
    let (writer, lba) = Writer::resume(file, source.secret.as_ref())?;
    let (begun, found) = (writer.header().clone(), source.header(device));
    let same = |header: &Header| (header.device.clone(), header.snapshot.clone(), header.sectors, header.sector_bytes);
    if same(&begun) != same(&found) {
        let words = |header: &Header| match &header.snapshot {
            Some(snapshot) => format!("snapshot '{snapshot}' of device {}", header.device),
            None => format!("device {}", header.device),
        };
        return Err(BackupError::OtherSource { begun: words(&begun), found: words(&found) });
    }
    write_from(device, writer, lba, progress)
}

fn write_from<W: Write>(
    device: &Device,
    mut writer: Writer<W>,
    from: u64,
    mut progress: impl FnMut(Progress) -> bool,
) -> Result<W, BackupError> {
    let capabilities = device.capabilities();
    let sectors = capabilities.sectors;
    let most = u64::from(capabilities.max_write_bytes.min(DATA_MAX as u32) / capabilities.sector_bytes).max(1);
    let mut pieces = device.ranges(from..).flat_map(|range| pieces_of(range, most));
    let mut reads: VecDeque<(u64, Pending<Vec<u8>>)> = VecDeque::new();
    loop {
        while reads.len() < READS {
            let Some(piece) = pieces.next() else { break };
            let piece = piece?;
            reads.push_back((piece.lba(), device.begin_read(piece.lba(), (piece.end() - piece.lba()) as u32)));
        }
        let Some((lba, read)) = reads.pop_front() else { break };
        let data = read.wait()?;
        writer.held(lba, &data)?;
        let lba = lba + data.len() as u64 / u64::from(capabilities.sector_bytes);
        if !progress(Progress { lba, sectors, data_bytes: writer.data_bytes() }) {
            writer.flush()?;
            return Err(BackupError::Stopped);
        }
    }
    progress(Progress { lba: sectors, sectors, data_bytes: writer.data_bytes() });
    writer.finish()
}

/// A range in pieces of `most` sectors.
fn pieces_of(range: Result<std::ops::Range<u64>, Error>, most: u64) -> impl Iterator<Item = Result<Piece, Error>> {
    let (range, error) = match range {
        Ok(range) => (range, None),
        Err(error) => (0..0, Some(Err(error))),
    };
    let end = range.end;
    let pieces = range.step_by(most as usize);
    error.into_iter().chain(pieces.map(move |lba| Ok(Piece::Held { lba, sectors: most.min(end - lba) })))
}
