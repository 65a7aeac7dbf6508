//! From a stream to a device.

use std::io::Read;

use openvsl::Device;

use crate::writes::{Writes, check_fits};
use crate::{BackupError, Header, Moment, Piece, Progress, Reader};

/// Restores a stream to a device. A full backup replaces everything on the device. An increment ([`crate::Header::since`]) changes only the
/// sectors that it names, so the device must hold the snapshot that it builds on: [`check_chain`] says whether it follows what was restored
/// before. The sector sizes may differ.
///
/// # Errors
/// If the device is too small, or neither sector size divides the other, nothing was changed. If the stream is interrupted or damaged, the
/// device fails, or `progress` returned false, the device holds a part of the backup: restore again before you use it.
pub fn restore<R: Read>(
    reader: &mut Reader<R>,
    device: &Device,
    mut progress: impl FnMut(Progress) -> bool,
) -> Result<(), BackupError> {
    let header = reader.header().clone();
    let capabilities = device.capabilities().clone();
    check_fits(header.sector_bytes, header.sectors, device)?;
    let target_bytes = capabilities.sectors * u64::from(capabilities.sector_bytes);
    let (whole, source) = (header.since.is_none(), u64::from(header.sector_bytes));
    let mut writes = Writes::to(device);
    let mut dealt = 0;
    while let Some(frame) = reader.next_frame()? {
        for (piece, data) in frame.pieces() {
            let (from, to) = (piece.lba() * source, piece.end() * source);
            if whole && from > dealt {
                writes.clear(dealt, from)?;
            }
            match piece {
                Piece::Held { .. } => writes.put(from, data)?,
                Piece::Trimmed { .. } => writes.clear(from, to)?,
            }
            dealt = to;
        }
        let (lba, data_bytes) = (dealt / source, reader.data_bytes());
        if !progress(Progress { lba, sectors: header.sectors, data_bytes }) {
            return Err(BackupError::Stopped);
        }
    }
    if whole && dealt < target_bytes {
        writes.clear(dealt, target_bytes)?;
    }
    writes.wait()?;
    device.flush()?;
    progress(Progress { lba: header.sectors, sectors: header.sectors, data_bytes: reader.data_bytes() });
    Ok(())
}

/// Checks that streams can be restored to a device, one after the other: a whole one, and then increments, each of which builds on the snapshot that
/// the one before it shows.
///
/// # Errors
/// [`BackupError::Base`] or [`BackupError::Whole`] where they do not follow each other; [`BackupError::TooSmall`] or
/// [`BackupError::SectorSize`] where the device does not fit.
pub fn check_chain(headers: &[&Header], device: &Device) -> Result<(), BackupError> {
    let mut before: Option<&Header> = None;
    for (index, header) in headers.iter().enumerate() {
        check_fits(header.sector_bytes, header.sectors, device)?;
        let follows = |before: &Header, since: &Moment| {
            let shown = before.snapshot.as_ref().is_some_and(|shown| shown.number == since.number);
            shown && before.device == header.device && before.bytes() == header.bytes()
        };
        match (before, &header.since) {
            (None, None) => {}
            (Some(_), None) => return Err(BackupError::Whole { index }),
            (Some(before), Some(since)) if follows(before, since) => {}
            (before, Some(since)) => {
                let found = match before.map(|before| (&before.snapshot, before)) {
                    None => "the backups up to that one must stand before it".into(),
                    Some((Some(shown), before)) => {
                        format!("the one before it shows {shown} of device {}", before.device)
                    }
                    Some((None, before)) => format!("the one before it shows no snapshot of device {}", before.device),
                };
                return Err(BackupError::Base {
                    index,
                    expected: format!("{since} of device {}", header.device),
                    found,
                });
            }
        }
        before = Some(header);
    }
    Ok(())
}

impl<R: Read> Reader<R> {
    /// Reads the stream to its end: whether it is whole and sound.
    ///
    /// # Errors
    /// It is not.
    pub fn verify(&mut self, mut progress: impl FnMut(Progress) -> bool) -> Result<(), BackupError> {
        while self.next_frame()?.is_some() {
            let (lba, sectors, data_bytes) = (self.lba, self.header().sectors, self.data_bytes());
            if !progress(Progress { lba, sectors, data_bytes }) {
                return Err(BackupError::Stopped);
            }
        }
        Ok(())
    }
}
