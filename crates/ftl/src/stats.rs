//! Counters over the life of a format, in sectors (slots). They are kept in the anchor.

/// What went in and what was written. Write amplification is the sum of the appended over `host_written`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sectors that the host read.
    pub host_read_sectors: u64,
    /// Sectors that the host wrote.
    pub host_written_sectors: u64,
    /// Sectors that the host trimmed.
    pub host_trimmed_sectors: u64,
    /// Sectors that the groomer moved.
    pub groomed_sectors: u64,
    /// Slots left empty so that a flush could be programmed.
    pub padding_slots: u64,
    /// Slots of headers, trim records and checkpoints.
    pub metadata_slots: u64,
    /// Bytes programmed.
    pub programmed_bytes: u64,
    /// LEBs erased or given up for reuse.
    pub erased_lebs: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Sectors that the groomer found unreadable.
    pub damaged_sectors: u64,
}

impl Stats {
    /// The counters in the order in which the anchor keeps them.
    pub fn to_array(&self) -> [u64; 10] {
        [
            self.host_read_sectors,
            self.host_written_sectors,
            self.host_trimmed_sectors,
            self.groomed_sectors,
            self.padding_slots,
            self.metadata_slots,
            self.programmed_bytes,
            self.erased_lebs,
            self.read_errors,
            self.damaged_sectors,
        ]
    }

    /// The opposite of [`Stats::to_array`].
    pub fn from_array(values: [u64; 10]) -> Stats {
        let [read, written, trimmed, groomed, padding, metadata, programmed, erased, errors, damaged] = values;
        Stats {
            host_read_sectors: read,
            host_written_sectors: written,
            host_trimmed_sectors: trimmed,
            groomed_sectors: groomed,
            padding_slots: padding,
            metadata_slots: metadata,
            programmed_bytes: programmed,
            erased_lebs: erased,
            read_errors: errors,
            damaged_sectors: damaged,
        }
    }

    /// Write amplification: everything appended, padding included, over what the host wrote.
    /// `None` before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        let appended = self.host_written_sectors + self.groomed_sectors + self.padding_slots + self.metadata_slots;
        (self.host_written_sectors > 0).then(|| appended as f64 / self.host_written_sectors as f64)
    }
}
