//! One file: as everybody sees it, as it would be found after a power cut, and what lies between the two.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

use crate::dice::Dice;

/// How much is copied in one piece.
const COPY_BYTES: usize = 1 << 20;

/// Something that changes a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Bytes written.
    Write { at: u64, data: Vec<u8> },
    /// A hole punched.
    Punch(Range<u64>),
    /// Space made sure of; the size grows with it unless it is kept.
    Allocate { range: Range<u64>, keep_size: bool },
    /// The size set.
    Resize(u64),
}

impl Change {
    /// The bytes it is about.
    pub fn range(&self) -> Range<u64> {
        match self {
            Change::Write { at, data } => *at..*at + data.len() as u64,
            Change::Punch(range) | Change::Allocate { range, .. } => range.clone(),
            Change::Resize(size) => *size..u64::MAX,
        }
    }

    fn apply(&self, file: &File) -> io::Result<()> {
        let allocate = |range: &Range<u64>, flags| {
            rustix::fs::fallocate(file, flags, range.start, range.end - range.start).map_err(io::Error::from)
        };
        match self {
            Change::Write { at, data } => file.write_all_at(data, *at),
            Change::Punch(range) => allocate(range, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE),
            Change::Allocate { range, keep_size: true } => allocate(range, FallocateFlags::KEEP_SIZE),
            Change::Allocate { range, keep_size: false } => allocate(range, FallocateFlags::empty()),
            Change::Resize(size) => file.set_len(*size),
        }
    }

    /// What is left of it outside of a range of bytes.
    fn outside(self, range: &Range<u64>) -> Vec<Change> {
        let own = self.range();
        let (before, after) = (own.start..own.end.min(range.start), own.start.max(range.end)..own.end);
        let cut = |part: Range<u64>| match &self {
            Change::Write { at, data } => Change::Write {
                at: part.start,
                data: data[(part.start - at) as usize..(part.end - at) as usize].to_vec(),
            },
            Change::Punch(_) => Change::Punch(part),
            Change::Allocate { keep_size, .. } => Change::Allocate { range: part, keep_size: *keep_size },
            Change::Resize(size) => Change::Resize(*size),
        };
        [before, after].into_iter().filter(|part| part.start < part.end).map(cut).collect()
    }
}

/// A file.
pub struct Inode {
    /// As everybody sees it.
    view: File,
    /// As it would be found after a power cut.
    durable: File,
    /// What the view has and the durable file has not, in order.
    pending: Vec<Change>,
    /// Where the view may differ from the durable file though nothing is pending there: a failed sync gave it up.
    given_up: Vec<Range<u64>>,
    /// Permission bits.
    pub mode: u32,
}

impl Inode {
    /// A file that begins as its durable content says.
    pub fn new(view: File, durable: File, mode: u32) -> io::Result<Inode> {
        let inode = Inode { view, durable, pending: Vec::new(), given_up: Vec::new(), mode };
        inode.restore(0..u64::MAX)?;
        Ok(inode)
    }

    /// Its length, bytes.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.view.metadata()?.len())
    }

    /// Blocks of 512 bytes that it takes.
    pub fn blocks(&self) -> io::Result<u64> {
        Ok(self.view.metadata()?.blocks())
    }

    /// Reads; less than asked for at the end of the file.
    pub fn read(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut data = vec![0; len];
        let mut read = 0;
        while read < len {
            match self.view.read_at(&mut data[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        data.truncate(read);
        Ok(data)
    }

    /// Changes what everybody sees, until a power cut.
    pub fn change(&mut self, change: Change) -> io::Result<()> {
        change.apply(&self.view)?;
        self.pending.push(change);
        Ok(())
    }

    /// Changes it durably at once, and nothing else: a write with `O_DSYNC`.
    pub fn change_durably(&mut self, change: Change) -> io::Result<()> {
        change.apply(&self.view)?;
        let resized = self.pending.iter().any(|pending| matches!(pending, Change::Resize(_)));
        if resized {
            // The size goes with the data, and what came before a change of the size cannot come after it.
            self.pending.push(change);
            return self.sync();
        }
        change.apply(&self.durable)?;
        // Older changes of these bytes must not come back over it.
        let range = change.range();
        self.pending = self.pending.drain(..).flat_map(|pending| pending.outside(&range)).collect();
        Ok(())
    }

    /// Makes everything durable that is pending.
    pub fn sync(&mut self) -> io::Result<()> {
        self.pending.iter().try_for_each(|change| change.apply(&self.durable))?;
        self.pending.clear();
        Ok(())
    }

    /// Gives up what is pending, as kernels do when it cannot be written: it counts as clean from now on. Everybody still
    /// sees it, unless it is evicted, but no later sync makes it durable.
    pub fn give_up(&mut self, evict: bool) -> io::Result<()> {
        self.given_up.extend(self.pending.drain(..).map(|change| change.range()));
        if evict {
            return self.restore_given_up();
        }
        Ok(())
    }

    /// How many changes are pending.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The power goes: of what is pending, what the dice say reaches the durable file, or nothing without them. Gives the
    /// number of changes that did, at least in part.
    pub fn cut(&mut self, mut dice: Option<&mut Dice>) -> io::Result<usize> {
        let pending = std::mem::take(&mut self.pending);
        let mut kept = 0;
        for change in &pending {
            let remains = dice.as_mut().map(|dice| dice.remains(change)).unwrap_or_default();
            kept += usize::from(!remains.is_empty());
            remains.iter().try_for_each(|remains| remains.apply(&self.durable))?;
        }
        self.given_up.extend(pending.iter().map(Change::range));
        self.restore_given_up()?;
        Ok(kept)
    }

    fn restore_given_up(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.given_up).into_iter().try_for_each(|range| self.restore(range))
    }

    /// Shows a range of the durable file to everybody again.
    fn restore(&self, range: Range<u64>) -> io::Result<()> {
        let size = self.durable.metadata()?.len();
        self.view.set_len(size)?;
        let end = range.end.min(size);
        if range.start >= end {
            return Ok(());
        }
        Change::Punch(range.start..end).apply(&self.view)?;
        let mut at = range.start;
        while at < end {
            let data = match rustix::fs::seek(&self.durable, SeekFrom::Data(at)) {
                Ok(data) if data < end => data,
                // Nothing but a hole is left.
                Ok(_) | Err(Errno::NXIO) => break,
                Err(error) => return Err(error.into()),
            };
            let hole = rustix::fs::seek(&self.durable, SeekFrom::Hole(data))?;
            let mut piece = vec![0; (hole.min(end) - data).min(COPY_BYTES as u64) as usize];
            self.durable.read_exact_at(&mut piece, data)?;
            self.view.write_all_at(&piece, data)?;
            at = data + piece.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inode(bytes: u64) -> Inode {
        let inode = Inode::new(tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap(), 0o600);
        let mut inode = inode.unwrap();
        inode.change(Change::Resize(bytes)).unwrap();
        inode.sync().unwrap();
        inode
    }

    fn write(at: u64, byte: u8, len: usize) -> Change {
        Change::Write { at, data: vec![byte; len] }
    }

    #[test]
    fn what_was_synced_stays_and_the_rest_goes() {
        let mut inode = inode(16384);
        inode.change(write(0, 1, 8192)).unwrap();
        inode.sync().unwrap();
        inode.change(write(4096, 2, 8192)).unwrap();
        assert_eq!(inode.read(8000, 1000).unwrap(), [2; 1000]);
        inode.cut(None).unwrap();
        assert_eq!(inode.read(0, 8192).unwrap(), [1; 8192]);
        assert_eq!(inode.read(8192, 10_000).unwrap(), [0; 8192]);
    }

    #[test]
    fn a_durable_write_is_not_undone_by_older_ones() {
        let mut inode = inode(16384);
        inode.change(write(0, 1, 12288)).unwrap();
        inode.change_durably(write(4096, 2, 4096)).unwrap();
        inode.change(Change::Punch(0..512)).unwrap();
        inode.cut(None).unwrap();
        assert_eq!(inode.read(0, 4096).unwrap(), [0; 4096]);
        assert_eq!(inode.read(4096, 4096).unwrap(), [2; 4096]);
        inode.change(write(0, 1, 12288)).unwrap();
        inode.change_durably(write(4096, 3, 4096)).unwrap();
        inode.sync().unwrap();
        inode.cut(None).unwrap();
        assert_eq!(inode.read(0, 4096).unwrap(), [1; 4096]);
        assert_eq!(inode.read(4096, 4096).unwrap(), [3; 4096]);
        assert_eq!(inode.read(8192, 4096).unwrap(), [1; 4096]);
    }

    #[test]
    fn sizes_and_holes_are_undone_too() {
        let mut inode = inode(8192);
        inode.change(write(0, 1, 8192)).unwrap();
        inode.sync().unwrap();
        inode.change(Change::Punch(0..4096)).unwrap();
        inode.change(Change::Resize(100)).unwrap();
        inode.change(Change::Resize(20_000)).unwrap();
        assert_eq!(inode.read(0, 20_000).unwrap(), [0; 20_000]);
        inode.cut(None).unwrap();
        assert_eq!(inode.read(0, 20_000).unwrap(), [1; 8192]);
    }

    #[test]
    fn what_was_given_up_is_seen_until_the_cut_and_synced_by_nothing() {
        let mut inode = inode(8192);
        inode.change(write(0, 1, 4096)).unwrap();
        inode.give_up(false).unwrap();
        inode.change(write(4096, 2, 4096)).unwrap();
        inode.sync().unwrap();
        assert_eq!(inode.read(0, 4096).unwrap(), [1; 4096]);
        inode.cut(None).unwrap();
        assert_eq!(inode.read(0, 4096).unwrap(), [0; 4096]);
        assert_eq!(inode.read(4096, 4096).unwrap(), [2; 4096]);
        inode.change(write(0, 3, 4096)).unwrap();
        inode.give_up(true).unwrap();
        assert_eq!(inode.read(0, 4096).unwrap(), [0; 4096]);
    }

    #[test]
    fn every_sector_of_a_torn_write_is_old_or_new() {
        let mut torn = 0;
        for seed in 0..64 {
            let mut inode = inode(65536);
            inode.change(write(0, 1, 65536)).unwrap();
            inode.sync().unwrap();
            inode.change(write(0, 2, 65536)).unwrap();
            let mut dice = Dice::new(seed, false);
            inode.cut(Some(&mut dice)).unwrap();
            let data = inode.read(0, 65536).unwrap();
            assert!(data.chunks(512).all(|sector| sector == [1; 512] || sector == [2; 512]));
            torn += usize::from(data.contains(&1) && data.contains(&2));
        }
        assert!(torn > 8, "only {torn} of 64 torn");
    }
}
