//! From a stream to a device.

use std::collections::VecDeque;
use std::io::Read;

use openvsl::{Device, Pending};

use crate::{BackupError, Header, Moment, Piece, Progress, Reader};

/// Outstanding writes.
const WRITES: usize = 8;
/// The largest write of zeros, bytes.
const ZEROS_MAX: usize = 1 << 20;

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
    check_fits(&header, device)?;
    let target = capabilities.sector_bytes;
    let target_bytes = capabilities.sectors * u64::from(target);
    let (whole, source) = (header.since.is_none(), u64::from(header.sector_bytes));
    let mut writes = Writes {
        device,
        sector: target.into(),
        most: capabilities.max_write_bytes as usize,
        under_way: VecDeque::new(),
    };
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
        check_fits(header, device)?;
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

/// Checks that a device can take what a stream holds.
fn check_fits(header: &Header, device: &Device) -> Result<(), BackupError> {
    let (target, source) = (device.capabilities().sector_bytes, header.sector_bytes);
    let target_bytes = device.capabilities().sectors * u64::from(target);
    if target_bytes < header.bytes() {
        return Err(BackupError::TooSmall { target: target_bytes, source_bytes: header.bytes() });
    }
    if !target.max(source).is_multiple_of(target.min(source)) {
        return Err(BackupError::SectorSize { target, source_bytes: source });
    }
    Ok(())
}

/// Changes of a device, by bytes.
struct Writes<'a> {
    device: &'a Device,
    sector: u64,
    most: usize,
    under_way: VecDeque<Pending<Vec<u8>>>,
}

impl Writes<'_> {
    /// Writes bytes at any offset. The sectors at both ends are read, changed and written back where they are covered in part.
    fn put(&mut self, at: u64, data: &[u8]) -> Result<(), BackupError> {
        let lead = (at.next_multiple_of(self.sector) - at).min(data.len() as u64) as usize;
        let (lead, rest) = data.split_at(lead);
        self.put_part(at, lead)?;
        let at = at + lead.len() as u64;
        let (aligned, tail) = rest.split_at(rest.len() - rest.len() % self.sector as usize);
        let most = self.most - self.most % self.sector as usize;
        let mut lba = at / self.sector;
        for part in aligned.chunks(most) {
            if self.under_way.len() == WRITES
                && let Some(first) = self.under_way.pop_front()
            {
                first.wait()?;
            }
            self.under_way.push_back(self.device.begin_write(lba, part.to_vec()));
            lba += part.len() as u64 / self.sector;
        }
        self.put_part(lba * self.sector, tail)
    }

    /// Changes a part of one sector.
    fn put_part(&mut self, at: u64, data: &[u8]) -> Result<(), BackupError> {
        if data.is_empty() {
            return Ok(());
        }
        self.wait()?;
        let (lba, within) = (at / self.sector, (at % self.sector) as usize);
        let mut sector = self.device.read(lba, 1)?;
        sector[within..within + data.len()].copy_from_slice(data);
        Ok(self.device.write(lba, &sector)?)
    }

    /// Makes a range of bytes read as zeros, by a trim where it covers whole sectors.
    fn clear(&mut self, from: u64, to: u64) -> Result<(), BackupError> {
        let (first, end) = (from.next_multiple_of(self.sector), to - to % self.sector);
        if first >= end {
            // All in one sector, or the ends of two that touch.
            let middle = first.clamp(from, to);
            self.put_part(from, &vec![0; (middle - from) as usize])?;
            return self.put_part(middle, &vec![0; (to - middle) as usize]);
        }
        self.put_part(from, &vec![0; (first - from) as usize])?;
        let (lba, end_lba) = (first / self.sector, end / self.sector);
        self.device.trim(lba, end_lba - lba)?;
        // A device whose setting `trim` is off keeps the data, so they are overwritten.
        for range in self.device.ranges(lba..end_lba) {
            let range = range?;
            let (mut at, end) = (range.start * self.sector, range.end * self.sector);
            let zeros = vec![0; ZEROS_MAX.min((end - at) as usize)];
            while at < end {
                let part = &zeros[..zeros.len().min((end - at) as usize)];
                self.put(at, part)?;
                at += part.len() as u64;
            }
        }
        self.put_part(end, &vec![0; (to - end) as usize])
    }

    /// Waits for what is under way.
    fn wait(&mut self) -> Result<(), BackupError> {
        for write in self.under_way.drain(..) {
            write.wait()?;
        }
        Ok(())
    }
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
