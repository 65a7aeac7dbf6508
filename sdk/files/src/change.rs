//! Data: read, written, cut off, and made durable.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use openvsl::Batch;

use crate::files::Node;
use crate::layout::Record;
use crate::{Files, FilesError};

/// Whole sectors of a change, by their numbers within the file.
type Sectors = BTreeMap<u64, Vec<u8>>;

impl Files {
    /// Reads up to so many bytes; fewer at the end of the file.
    ///
    /// # Errors
    /// The file is not there, or cannot be read.
    pub fn read(&self, number: u64, offset: u64, bytes: usize) -> Result<Vec<u8>, FilesError> {
        let node = self.node(number)?;
        let record = node.reading();
        let end = record.size.min(offset.saturating_add(bytes as u64));
        if end <= offset {
            return Ok(Vec::new());
        }
        self.read_range(&node, offset..end)
    }

    fn read_range(&self, node: &Node, range: Range<u64>) -> Result<Vec<u8>, FilesError> {
        let sector = u64::from(self.layout.sector_bytes);
        let (first, end) = (range.start / sector, self.layout.sectors(range.end));
        let most = u64::from(self.device.capabilities().max_write_bytes) / sector;
        let mut data = Vec::new();
        for start in (first..end).step_by(most as usize) {
            let piece = self.device.read(self.layout.data(node.number) + start, most.min(end - start) as u32)?;
            if data.is_empty() { data = piece } else { data.extend(piece) }
        }
        data.truncate((range.end - first * sector) as usize);
        let before = (range.start - first * sector) as usize;
        if before > 0 {
            data.drain(..before);
        }
        Ok(data)
    }

    /// Writes data anywhere, and makes the file longer where they reach beyond its end.
    ///
    /// # Errors
    /// The file is not there, would be too long, or the device takes no more.
    pub fn write(&self, number: u64, offset: u64, data: &[u8]) -> Result<(), FilesError> {
        self.write_with(number, offset, data, false)
    }

    /// Like [`Files::write`], and durable when it returns, with the file's size and name.
    ///
    /// # Errors
    /// As [`Files::write`].
    pub fn write_durable(&self, number: u64, offset: u64, data: &[u8]) -> Result<(), FilesError> {
        self.write_with(number, offset, data, true)
    }

    fn write_with(&self, number: u64, offset: u64, data: &[u8], durable: bool) -> Result<(), FilesError> {
        let node = self.node(number)?;
        if data.is_empty() {
            return if durable { self.sync(number) } else { Ok(()) };
        }
        let end = offset.saturating_add(data.len() as u64);
        self.check_end(end)?;
        let sector = u64::from(self.layout.sector_bytes);
        let whole = offset.is_multiple_of(sector) && (data.len() as u64).is_multiple_of(sector);
        let most = self.device.capabilities().max_write_bytes as usize;
        if whole && data.len() <= most {
            let record = node.reading();
            // Others may write beside it: nothing but these sectors changes.
            if end <= record.size {
                let lba = self.layout.data(number) + offset / sector;
                match durable {
                    true => self.device.write_durable(lba, data)?,
                    false => self.device.write(lba, data)?,
                }
                *node.touched() = Some(SystemTime::now());
                drop(record);
                // The record is dirty where somebody made the file longer before.
                return if durable && node.dirty.load(Ordering::Acquire) { self.sync(number) } else { Ok(()) };
            }
        }
        let mut record = node.writing();
        // A piece takes a sector more where it begins within one, so that it ends where a page does.
        let mut at = 0;
        while at < data.len() {
            let within = ((offset + at as u64) % sector) as usize;
            let piece = &data[at..data.len().min(at + most - within)];
            let sectors = self.merged(&node, &record, [(offset + at as u64, piece)])?;
            self.device.batch(self.batch_of(&node, &sectors))?;
            at += piece.len();
        }
        *node.touched() = Some(SystemTime::now());
        if end > record.size {
            record.size = end;
            node.dirty.store(true, Ordering::Release);
        }
        drop(record);
        if durable { self.sync(number) } else { Ok(()) }
    }

    /// Writes several parts of a file and sets its size, all of it or nothing, durably.
    ///
    /// Later parts go over earlier ones. What lies behind `size` is cut off.
    ///
    /// # Errors
    /// The parts are more than the device makes atomic; or as [`Files::write`].
    pub fn change(&self, number: u64, parts: &[(u64, &[u8])], size: Option<u64>) -> Result<(), FilesError> {
        let node = self.node(number)?;
        let mut record = node.writing();
        let parts = parts.iter().filter(|(_, data)| !data.is_empty()).copied();
        let end = parts.clone().map(|(offset, data)| offset.saturating_add(data.len() as u64)).max().unwrap_or(0);
        self.check_end(end)?;
        let size = size.unwrap_or(record.size.max(end));
        self.check_end(size)?;
        let mut sectors = self.merged(&node, &record, parts)?;
        sectors.retain(|&index, _| index < self.layout.sectors(size));
        let tail = self.tail(&node, record.size, size, &mut sectors)?;
        let bytes = (sectors.len() as u64 + 2) * u64::from(self.layout.sector_bytes);
        let max = u64::from(self.device.capabilities().max_write_bytes);
        if bytes > max {
            return Err(FilesError::NotAtomic { bytes, max });
        }
        let changed = size != record.size || node.dirty.load(Ordering::Acquire);
        if sectors.is_empty() && !changed {
            return Ok(self.device.flush()?);
        }
        let now = Record { size, modified: SystemTime::now(), ..record.clone() };
        let batch = self.resizing(&node, &sectors, changed.then_some(&now), tail);
        self.device.batch(batch.durable())?;
        node.dirty.store(false, Ordering::Release);
        *node.touched() = Some(SystemTime::now());
        record.size = size;
        Ok(())
    }

    /// Sets a file's size: what is behind is cut off, what is new reads as zeros.
    ///
    /// # Errors
    /// As [`Files::write`].
    pub fn truncate(&self, number: u64, size: u64) -> Result<(), FilesError> {
        let node = self.node(number)?;
        let mut record = node.writing();
        self.check_end(size)?;
        let mut sectors = Sectors::new();
        let tail = self.tail(&node, record.size, size, &mut sectors)?;
        let now = Record { size, modified: SystemTime::now(), ..record.clone() };
        self.device.batch(self.resizing(&node, &sectors, Some(&now), tail))?;
        node.dirty.store(false, Ordering::Release);
        *node.touched() = None;
        *record = now;
        Ok(())
    }

    /// Makes a part of a file read as zeros, and gives its whole sectors back. The size stays.
    ///
    /// # Errors
    /// As [`Files::write`].
    pub fn punch(&self, number: u64, range: Range<u64>) -> Result<(), FilesError> {
        let node = self.node(number)?;
        let record = node.writing();
        let range = range.start..range.end.min(record.size);
        if range.is_empty() {
            return Ok(());
        }
        let sector = u64::from(self.layout.sector_bytes);
        let whole = range.start.div_ceil(sector)..if range.end == record.size {
            self.layout.sectors(range.end)
        } else {
            range.end / sector
        };
        let mut parts = Vec::new();
        let zeros = vec![0; sector as usize];
        if whole.start >= whole.end {
            // Within a sector, or over the edge of two.
            parts.push((range.start, &zeros[..(range.end - range.start).min(sector) as usize]));
            let rest = (range.end - range.start).saturating_sub(sector);
            parts.push((range.end - rest, &zeros[..rest as usize]));
        } else {
            parts.push((range.start, &zeros[..(whole.start * sector - range.start) as usize]));
            let end = (whole.end * sector).min(range.end);
            parts.push((end, &zeros[..(range.end - end) as usize]));
        }
        let sectors = self.merged(&node, &record, parts.into_iter().filter(|(_, data)| !data.is_empty()))?;
        let mut batch = self.batch_of(&node, &sectors);
        if whole.start < whole.end {
            batch = batch.trim(self.layout.data(number) + whole.start, whole.end - whole.start);
        }
        self.device.batch(batch)?;
        *node.touched() = Some(SystemTime::now());
        Ok(())
    }

    /// Makes a file durable: its data, its size and its name. With a directory, all files and names are made durable.
    ///
    /// # Errors
    /// The device fails: what was written since the last sync is in doubt.
    pub fn sync(&self, number: u64) -> Result<(), FilesError> {
        let node = self.node(number)?;
        let directory = node.reading().is_directory();
        match directory {
            true => self.write_records(false)?,
            false => self.write_dirty(&node)?,
        }
        Ok(self.device.flush()?)
    }

    fn check_end(&self, end: u64) -> Result<(), FilesError> {
        let max = self.layout.max_bytes();
        if end > max { Err(FilesError::TooLong { end, max }) } else { Ok(()) }
    }

    /// Whole sectors of what is written in parts: the rest of each is read.
    fn merged<'a>(
        &self,
        node: &Node,
        record: &Record,
        parts: impl IntoIterator<Item = (u64, &'a [u8])>,
    ) -> Result<Sectors, FilesError> {
        let sector = self.layout.sector_bytes as usize;
        let held = self.layout.sectors(record.size);
        let mut sectors = Sectors::new();
        for (mut offset, mut data) in parts {
            while !data.is_empty() {
                let (index, within) = (offset / sector as u64, (offset % sector as u64) as usize);
                let piece = data.len().min(sector - within);
                let found = match sectors.entry(index) {
                    Entry::Occupied(found) => found.into_mut(),
                    // Sectors behind the end hold nothing that anybody wrote.
                    Entry::Vacant(place) => place.insert(match piece < sector && index < held {
                        true => self.device.read(self.layout.data(node.number) + index, 1)?,
                        false => vec![0; sector],
                    }),
                };
                found[within..within + piece].copy_from_slice(&data[..piece]);
                offset += piece as u64;
                data = &data[piece..];
            }
        }
        Ok(sectors)
    }

    /// What a new size leaves behind: sectors to trim; the last that stays is zeroed behind the end.
    fn tail(&self, node: &Node, old: u64, new: u64, sectors: &mut Sectors) -> Result<Option<Range<u64>>, FilesError> {
        let sector = u64::from(self.layout.sector_bytes);
        let (data, within) = (self.layout.data(node.number), (new % sector) as usize);
        if within > 0 {
            match sectors.entry(new / sector) {
                // Also where the file grows: what was given may reach beyond its new end.
                Entry::Occupied(mut last) => last.get_mut()[within..].fill(0),
                Entry::Vacant(place) if new < old => {
                    let mut last = self.device.read(data + new / sector, 1)?;
                    last[within..].fill(0);
                    place.insert(last);
                }
                Entry::Vacant(_) => {}
            }
        }
        if new >= old {
            return Ok(None);
        }
        let (start, end) = (self.layout.sectors(new), self.layout.sectors(old));
        Ok((start < end).then(|| data + start..data + end))
    }

    /// A batch that writes sectors and a record that changed, and trims what a new size leaves behind.
    fn resizing(&self, node: &Node, sectors: &Sectors, changed: Option<&Record>, tail: Option<Range<u64>>) -> Batch {
        let mut batch = self.batch_of(node, sectors);
        // The record of a file without a name is gone, and its data with it.
        if let Some(record) = changed.filter(|record| record.parent != 0) {
            batch = batch.write(node.number, &record.encode(self.layout.sector_bytes));
        }
        match tail {
            Some(range) => batch.trim(range.start, range.end - range.start),
            None => batch,
        }
    }

    /// A batch that writes sectors, neighbours together.
    fn batch_of(&self, node: &Node, sectors: &Sectors) -> Batch {
        let data = self.layout.data(node.number);
        let mut batch = Batch::new();
        let mut run: (u64, Vec<u8>) = (0, Vec::new());
        for (&index, sector) in sectors {
            if run.0 + (run.1.len() / sector.len()) as u64 != index && !run.1.is_empty() {
                batch = batch.write(data + run.0, &run.1);
                run.1.clear();
            }
            if run.1.is_empty() {
                run.0 = index;
            }
            run.1.extend_from_slice(sector);
        }
        if run.1.is_empty() { batch } else { batch.write(data + run.0, &run.1) }
    }
}
