//! Writes of any bytes to a device, several at a time.

use std::collections::VecDeque;

use openvsl::{Device, Pending};

use crate::BackupError;

/// Outstanding writes.
const WRITES: usize = 8;
/// The largest write of zeros, bytes.
const ZEROS_MAX: usize = 1 << 20;

/// Checks that a device can take what another one holds.
///
/// # Errors
/// [`BackupError::TooSmall`] or [`BackupError::SectorSize`].
pub(crate) fn check_fits(source: u32, sectors: u64, device: &Device) -> Result<(), BackupError> {
    let target = device.capabilities().sector_bytes;
    let target_bytes = device.capabilities().sectors * u64::from(target);
    let source_bytes = sectors * u64::from(source);
    if target_bytes < source_bytes {
        return Err(BackupError::TooSmall { target: target_bytes, source_bytes });
    }
    if !target.max(source).is_multiple_of(target.min(source)) {
        return Err(BackupError::SectorSize { target, source_bytes: source });
    }
    Ok(())
}

/// Changes of a device, by bytes.
pub(crate) struct Writes<'a> {
    device: &'a Device,
    sector: u64,
    most: usize,
    under_way: VecDeque<Pending<Vec<u8>>>,
}

impl<'a> Writes<'a> {
    /// Changes of this device.
    pub(crate) fn to(device: &'a Device) -> Writes<'a> {
        let capabilities = device.capabilities();
        Writes {
            device,
            sector: capabilities.sector_bytes.into(),
            most: capabilities.max_write_bytes as usize,
            under_way: VecDeque::new(),
        }
    }

    /// Writes bytes at any offset. The sectors at both ends are read, changed and written back where they are covered in part.
    pub(crate) fn put(&mut self, at: u64, data: &[u8]) -> Result<(), BackupError> {
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
    pub(crate) fn clear(&mut self, from: u64, to: u64) -> Result<(), BackupError> {
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
    pub(crate) fn wait(&mut self) -> Result<(), BackupError> {
        for write in self.under_way.drain(..) {
            write.wait()?;
        }
        Ok(())
    }
}
