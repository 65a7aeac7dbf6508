//! A witness: how far a device has come, kept in a file elsewhere.
//!
//! A log ends where it ends: nothing on the device can say that its newest entries are missing, or that the whole of it was put
//! back to an earlier state, checksums and all. A number that only grows can, if it is kept where the same fault does not reach
//! it. With a witness every sync of the medium is followed by one of this file, and only then are flushes answered; an attach
//! refuses a device that does not come as far as its witness.
//!
//! The file holds two records, written in turn, 4096 bytes apart. A record is a magic number, the format's UUID, the sequence
//! number below which everything was durable, and a CRC-32C of these; integers are little-endian. The larger number counts.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::ring::{Entry, Owner, SharedRing};
use crate::{Done, MediaError};

const MAGIC: [u8; 8] = *b"VSLWITNS";
const RECORD_BYTES: usize = 8 + 16 + 8 + 4;
const PLACES_APART: u64 = 4096;

/// What an entry of the ring was for.
const WRITTEN: u64 = 0;
const SYNCED: u64 = 1;

/// Why a witness cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// The operating system refused it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It holds neither a record nor nothing.
    #[error("it holds something else than a witness; name another file")]
    Foreign,
    /// It saw another device.
    #[error("it is the witness of another device; name another file, or remove this one to begin anew")]
    Stranger,
}

/// A witness in use.
pub struct Witness {
    path: PathBuf,
    file: File,
    ring: SharedRing,
    owner: Owner,
    /// Whose witness it is.
    device: [u8; 16],
    /// Which place is written next.
    place: u64,
    /// What the kernel writes: neither moves nor changes while an entry is under way.
    record: Box<[u8; RECORD_BYTES]>,
    /// The sync that waits until its number is kept.
    held: Option<Done>,
}

impl Witness {
    /// Opens a device's witness, or makes a new one, and says how far it saw the device come.
    ///
    /// # Errors
    /// It cannot be opened, is no witness, or is that of another device.
    pub fn open(path: &Path, device: [u8; 16], ring: &SharedRing) -> Result<(Witness, Option<u64>), WitnessError> {
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let records = [read(&file, 0)?, read(&file, 1)?];
        let newest =
            (0..).zip(records).filter_map(|(place, record)| record.map(|(device, seq)| (seq, place, device))).max();
        let (seen, place) = match newest {
            Some((_, _, other)) if other != device => return Err(WitnessError::Stranger),
            Some((seq, place, _)) => (Some(seq), 1 - place),
            None if file.metadata()?.len() == 0 => (None, 0),
            None => return Err(WitnessError::Foreign),
        };
        let (ring, owner) = (ring.clone(), ring.borrow_mut().register());
        let (path, record) = (path.into(), Box::new([0; RECORD_BYTES]));
        Ok((Witness { path, file, ring, owner, device, place, record, held: None }, seen))
    }

    /// A sync was done: everything below `seq` is durable on the medium. It is given back, here or by [`Witness::poll`], when that
    /// is on record, and as failed where it cannot be.
    pub fn keep(&mut self, seq: u64, done: Done) -> Option<Done> {
        debug_assert!(self.held.is_none(), "one sync at a time");
        self.held = Some(done);
        self.record.copy_from_slice(&record(self.device, seq));
        let (fd, address, bytes) = (self.file.as_raw_fd(), self.record.as_ptr(), RECORD_BYTES as u32);
        let position = self.place * PLACES_APART;
        self.place = 1 - self.place;
        self.push(WRITTEN, Entry::Write { fd, address, bytes, position })
    }

    /// The sync that waited, once its number is on record.
    pub fn poll(&mut self) -> Option<Done> {
        self.held.as_ref()?;
        let completion = self.ring.borrow_mut().next(self.owner)?;
        match (completion.token, completion.result) {
            (WRITTEN, written) if written == RECORD_BYTES as i32 => {
                self.push(SYNCED, Entry::SyncData { fd: self.file.as_raw_fd() })
            }
            (SYNCED, 0) => self.held.take(),
            (_, result) => self.fail(&if result < 0 { Errno::from_raw_os_error(-result) } else { Errno::NOSPC }.into()),
        }
    }

    /// Waits for it, or for anything else on the ring, if a sync waits for it; returns whether one does.
    pub fn wait(&mut self) -> bool {
        // What the ring refuses now it refuses with the next entry, too, and there it is told.
        self.held.is_some() && self.ring.borrow_mut().wait(None).is_ok()
    }

    fn push(&mut self, token: u64, entry: Entry) -> Option<Done> {
        // SAFETY: the record is boxed, and changed only when no entry is under way; the file stays open until then as well,
        // since `drop` waits for it.
        let pushed = unsafe { self.ring.borrow_mut().push(self.owner, token, entry) };
        pushed.err().and_then(|error| self.fail(&error))
    }

    fn fail(&mut self, error: &io::Error) -> Option<Done> {
        tracing::error!(witness = %self.path.display(), %error, "the witness cannot be written");
        self.held.take().map(|done| Done { id: done.id, result: Err(MediaError::Os(Errno::IO)) })
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let mut ring = self.ring.borrow_mut();
        while ring.under_way(self.owner) > 0 {
            if ring.wait_for(self.owner).is_err() {
                // The kernel may still read the record: it must outlive the ring's last entry.
                std::mem::forget(std::mem::replace(&mut self.record, Box::new([0; RECORD_BYTES])));
                break;
            }
            while ring.next(self.owner).is_some() {}
        }
        ring.unregister(self.owner);
    }
}

fn record(device: [u8; 16], seq: u64) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..24].copy_from_slice(&device);
    bytes[24..32].copy_from_slice(&seq.to_le_bytes());
    let sum = crc_fast::crc32_iscsi(&bytes[..32]);
    bytes[32..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What a place holds: the device and its number, or nothing that can be believed.
fn read(file: &File, place: u64) -> io::Result<Option<([u8; 16], u64)>> {
    let mut bytes = [0; RECORD_BYTES];
    match file.read_exact_at(&mut bytes, place * PLACES_APART) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let device = bytes[8..24].try_into().expect("16 bytes");
    let seq = u64::from_le_bytes(bytes[24..32].try_into().expect("8 bytes"));
    Ok((bytes == record(device, seq)).then_some((device, seq)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Ring;

    fn kept(witness: &mut Witness, seq: u64) -> Done {
        if let Some(done) = witness.keep(seq, Done { id: 7, result: Ok(None) }) {
            return done;
        }
        loop {
            if let Some(done) = witness.poll() {
                return done;
            }
            witness.ring.borrow_mut().wait_for(witness.owner).expect("the ring works");
        }
    }

    #[test]
    fn it_remembers_the_newest_number_that_can_be_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("witness");
        let ring = Ring::new(8).expect("io_uring");
        let open = || Witness::open(&path, [1; 16], &ring);
        assert!(matches!(open(), Ok((_, None))), "made new");
        for seq in 5..9 {
            let (mut witness, _) = open().expect("opened");
            assert!(matches!(kept(&mut witness, seq), Done { id: 7, result: Ok(None) }));
            assert!(matches!(open(), Ok((_, Some(seen))) if seen == seq));
        }
        assert!(matches!(Witness::open(&path, [2; 16], &ring), Err(WitnessError::Stranger)));
        // The newest record stands at the second place.
        let file = File::options().write(true).open(&path).expect("opened");
        file.write_all_at(&[0xff], PLACES_APART + 30).expect("written");
        assert!(matches!(open(), Ok((_, Some(7)))));
        file.write_all_at(&[0xff], 30).expect("written");
        assert!(matches!(open(), Err(WitnessError::Foreign)), "what it said is lost, and not that it said nothing");
    }

    #[test]
    fn a_sync_fails_where_the_witness_does() {
        let ring = Ring::new(8).expect("io_uring");
        let (mut witness, seen) = Witness::open(Path::new("/dev/full"), [1; 16], &ring).expect("opened");
        assert_eq!(seen, None);
        assert!(matches!(kept(&mut witness, 5).result, Err(MediaError::Os(Errno::IO))));
    }
}
