//! The journal's notes: a small file beside it that says which life of each LEB it holds, and what was claimed in the store.
//!
//! The file is a head and then records of 32 bytes, each with a checksum. A record counts when all before it do, so a torn end is cut off. Each
//! attach writes the file anew.

use std::collections::BTreeMap;

use super::Life;
use super::anchor::{In, Limits, NotAnchor, Out};
use super::lease::LEASE_MS;

const MAGIC: [u8; 8] = *b"VSLNOTES";

/// The newest version that this program reads and writes: that of devices with a lease.
pub const NOTES_VERSION: u32 = 2;

/// The version of devices without a lease.
const WITHOUT_LEASE: u32 = 1;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 32;

/// Longest address of a store, bytes.
pub const URL_MAX: usize = 2048;

/// What does not change while a device is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotesHead {
    /// Identity of the device's format.
    pub device: [u8; 16],
    /// Identity of the journal.
    pub journal: [u8; 16],
    /// Where its objects lie.
    pub url: String,
    /// The endpoint of the store, where it is not the one that the address implies; otherwise empty.
    pub endpoint: String,
    /// What the user set.
    pub limits: Limits,
}

/// One thing noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// From now on the journal holds this life of the LEB.
    Life {
        /// Which LEB.
        leb: u32,
        /// Which life.
        life: Life,
    },
    /// The journal holds this LEB no more, the store does.
    Gone {
        /// Which LEB.
        leb: u32,
        /// In which life.
        life: Life,
    },
    /// An anchor of this owner epoch and commit is about to be written.
    Begun {
        /// The owner epoch.
        epoch: u32,
        /// The commit.
        commit: u64,
    },
}

/// What the notes come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes {
    /// The head.
    pub head: NotesHead,
    /// The life of each LEB that had one, and whether it is in the journal.
    pub lebs: BTreeMap<u32, (Life, bool)>,
    /// The newest owner epoch that was claimed or about to be.
    pub epoch: u32,
    /// The newest commit that was written or about to be.
    pub commit: u64,
}

impl Note {
    /// Its record.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let (kind, small, large) = match *self {
            Note::Life { leb, life } => (1, leb, life),
            Note::Gone { leb, life } => (2, leb, life),
            Note::Begun { epoch, commit } => (3, epoch, commit),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&u32::to_le_bytes(kind));
        bytes[4..8].copy_from_slice(&u32::to_le_bytes(small));
        bytes[8..16].copy_from_slice(&u64::to_le_bytes(large));
        let sum = crc_fast::crc32_iscsi(&bytes[..RECORD_BYTES - 4]);
        bytes[RECORD_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Note> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if u32_at(RECORD_BYTES - 4) != crc_fast::crc32_iscsi(&bytes[..RECORD_BYTES - 4]) {
            return None;
        }
        let (small, large) = (u32_at(4), u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")));
        match u32_at(0) {
            1 => Some(Note::Life { leb: small, life: large }),
            2 => Some(Note::Gone { leb: small, life: large }),
            3 => Some(Note::Begun { epoch: small, commit: large }),
            _ => None,
        }
    }
}

impl Notes {
    /// Notes of a journal that holds nothing yet.
    pub fn new(head: NotesHead) -> Notes {
        Notes { head, lebs: BTreeMap::new(), epoch: 0, commit: 0 }
    }

    /// Takes one more into account.
    pub fn add(&mut self, note: Note) {
        match note {
            Note::Life { leb, life } => {
                self.lebs.insert(leb, (life, true));
            }
            Note::Gone { leb, life } => {
                if let Some((_, local)) = self.lebs.get_mut(&leb).filter(|(known, _)| *known == life) {
                    *local = false;
                }
            }
            Note::Begun { epoch, commit } => {
                self.epoch = self.epoch.max(epoch);
                self.commit = self.commit.max(commit);
            }
        }
    }

    /// A file that says the same, and nothing more.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(Vec::new());
        out.0.extend(MAGIC);
        let Limits { behind_bytes, behind_ms, local_bytes, grace_ms, commit_ms, lease_ms } = self.head.limits;
        out.u32(if lease_ms > 0 { NOTES_VERSION } else { WITHOUT_LEASE });
        out.u32(0); // length of the head, below
        out.0.extend(self.head.device);
        out.0.extend(self.head.journal);
        [behind_bytes, behind_ms, local_bytes, grace_ms, commit_ms].into_iter().for_each(|limit| out.u64(limit));
        if lease_ms > 0 {
            out.u64(lease_ms);
        }
        out.bytes(self.head.url.as_bytes());
        out.bytes(self.head.endpoint.as_bytes());
        let len = out.0.len() as u32 + 4;
        out.0[12..16].copy_from_slice(&len.to_le_bytes());
        let sum = crc_fast::crc32_iscsi(&out.0);
        out.u32(sum);
        let mut push = |note: Note| out.0.extend(note.encode());
        push(Note::Begun { epoch: self.epoch, commit: self.commit });
        for (&leb, &(life, local)) in &self.lebs {
            push(Note::Life { leb, life });
            if !local {
                push(Note::Gone { leb, life });
            }
        }
        out.0
    }

    /// Reads a file of notes.
    ///
    /// # Errors
    /// Its head is none, newer, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Notes, NotAnchor> {
        let mut input = In(bytes);
        if input.take()? != MAGIC {
            return Err(NotAnchor::Foreign);
        }
        let version = input.u32()?;
        let len = input.u32()? as usize;
        let head = len.checked_sub(4).and_then(|end| Some((bytes.get(..end)?, bytes.get(end..len)?)));
        let (head, sum) = head.ok_or(NotAnchor::Damaged("its length"))?;
        if crc_fast::crc32_iscsi(head).to_le_bytes() != sum {
            return Err(NotAnchor::Damaged("its checksum"));
        }
        if version > NOTES_VERSION {
            return Err(NotAnchor::Version(version));
        }
        let mut input = In(head.get(16..).ok_or(NotAnchor::Damaged("its length"))?);
        let (device, journal) = (input.take()?, input.take()?);
        let mut limits = Limits {
            behind_bytes: input.u64()?,
            behind_ms: input.u64()?,
            local_bytes: input.u64()?,
            grace_ms: input.u64()?,
            commit_ms: input.u64()?,
            lease_ms: 0,
        };
        if version > WITHOUT_LEASE {
            limits.lease_ms = input.u64()?;
            if !LEASE_MS.contains(&limits.lease_ms) {
                return Err(NotAnchor::Damaged("its lease"));
            }
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| NotAnchor::Damaged("a text is not UTF-8"));
        let (url, endpoint) = (text(input.bytes(URL_MAX)?)?, text(input.bytes(URL_MAX)?)?);
        let mut notes = Notes::new(NotesHead { device, journal, url, endpoint, limits });
        for record in bytes[len..].chunks_exact(RECORD_BYTES) {
            let Some(note) = Note::decode(record.try_into().expect("a record")) else { break };
            notes.add(note);
        }
        Ok(notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> NotesHead {
        let url = "s3://bucket/prefix".into();
        NotesHead { device: [1; 16], journal: [2; 16], url, endpoint: String::new(), limits: Limits::default() }
    }

    #[test]
    fn a_torn_end_is_cut_off_and_the_rest_counts() {
        let mut notes = Notes::new(head());
        let mut file = notes.encode();
        let written = [
            Note::Begun { epoch: 3, commit: 9 },
            Note::Life { leb: 5, life: 1 },
            Note::Gone { leb: 5, life: 1 },
            Note::Life { leb: 5, life: 2 },
            Note::Gone { leb: 6, life: 7 },
        ];
        for note in written {
            assert_eq!(Notes::decode(&file), Ok(notes.clone()));
            let record = note.encode();
            for torn in 0..RECORD_BYTES {
                let cut = [file.as_slice(), &record[..torn]].concat();
                assert_eq!(Notes::decode(&cut), Ok(notes.clone()));
            }
            file.extend(record);
            notes.add(note);
        }
        assert_eq!(notes.lebs, BTreeMap::from([(5, (2, true))]), "of a life that it has not, nothing is gone");
        assert_eq!(Notes::decode(&notes.encode()), Ok(notes), "written anew it says the same");
    }

    #[test]
    fn a_head_that_is_damaged_is_refused() {
        let limits = Limits { lease_ms: 2000, ..Limits::default() };
        let leased = Notes::new(NotesHead { limits, ..head() });
        let file = leased.encode();
        assert_eq!(Notes::decode(&file), Ok(leased));
        let len = file.len() - RECORD_BYTES;
        for at in 0..len {
            let mut changed = file.clone();
            changed[at] ^= 4;
            assert!(Notes::decode(&changed).is_err(), "byte {at}");
            assert!(Notes::decode(&file[..at]).is_err());
        }
    }
}
