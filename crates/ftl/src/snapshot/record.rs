//! Snapshots on media: the record of each change in the log, and the list in a checkpoint.

use super::clones::{Clones, SnapshotClone, is_window};
use super::views::{SNAPSHOT_BYTES, Views};
use super::{SNAPSHOT_NAME_MAX, Snapshot, SnapshotChange, SnapshotId};

/// A change in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Create { name: String, created: u64, mapped: u64 },
    Delete(SnapshotId),
    Rename(SnapshotId, String),
    Hold(SnapshotId, bool),
    RollBack { to: SnapshotId, delete_newer: bool },
    Clone { name: String, created: u64, of: SnapshotId, window: u64 },
    DeleteClone(SnapshotId),
    Promote(SnapshotId),
}

impl Record {
    /// With the sectors that hold data, and the window of a clone.
    pub fn of(change: &SnapshotChange, mapped: u64, window: u64) -> Record {
        match change {
            SnapshotChange::Create { name, created } => {
                Record::Create { name: name.clone(), created: *created, mapped }
            }
            SnapshotChange::Delete(id) => Record::Delete(*id),
            SnapshotChange::Rename(id, name) => Record::Rename(*id, name.clone()),
            SnapshotChange::Hold(id, on) => Record::Hold(*id, *on),
            SnapshotChange::RollBack { to, delete_newer } => Record::RollBack { to: *to, delete_newer: *delete_newer },
            SnapshotChange::Clone { of, name, created } => {
                Record::Clone { name: name.clone(), created: *created, of: *of, window }
            }
            SnapshotChange::DeleteClone(id) => Record::DeleteClone(*id),
            SnapshotChange::Promote(id) => Record::Promote(*id),
        }
    }

    /// Changes the lists of snapshots and clones; `seq` is the record's number. What a roll back does to the head is another matter.
    pub fn apply(&self, views: &mut Views, clones: &mut Clones, seq: u64) {
        match self {
            Record::Create { name, created, mapped } => {
                views.add(Snapshot { id: seq, name: name.clone(), created: *created, held: false, mapped: *mapped })
            }
            Record::Delete(id) => views.remove(|other| other == *id),
            Record::Rename(id, name) => {
                views.find(*id).into_iter().for_each(|snapshot| snapshot.name.clone_from(name));
                clones.find_mut(*id).into_iter().for_each(|clone| clone.name.clone_from(name));
            }
            Record::Hold(id, on) => views.find(*id).into_iter().for_each(|snapshot| snapshot.held = *on),
            Record::RollBack { to, delete_newer: true } => views.remove(|other| other > *to),
            Record::RollBack { delete_newer: false, .. } => {}
            Record::Clone { name, created, of, window } => {
                clones.add(SnapshotClone { id: seq, name: name.clone(), created: *created, of: *of, window: *window });
            }
            Record::DeleteClone(id) | Record::Promote(id) => _ = clones.remove(*id, seq),
        }
    }

    /// Bytes on media: what u8, length of the name u8, 6 reserved, snapshot or clone u64, created u64, mapped or window u64, name.
    pub fn encode(&self) -> Vec<u8> {
        let (what, id, name, numbers) = match self {
            Record::Create { name, created, mapped } => (1, 0, name.as_str(), [*created, *mapped]),
            Record::Delete(id) => (2, *id, "", [0; 2]),
            Record::Rename(id, name) => (3, *id, name.as_str(), [0; 2]),
            Record::Hold(id, true) => (4, *id, "", [0; 2]),
            Record::Hold(id, false) => (5, *id, "", [0; 2]),
            Record::RollBack { to, delete_newer: false } => (6, *to, "", [0; 2]),
            Record::RollBack { to, delete_newer: true } => (7, *to, "", [0; 2]),
            Record::Clone { name, created, of, window } => (8, *of, name.as_str(), [*created, *window]),
            Record::DeleteClone(id) => (9, *id, "", [0; 2]),
            Record::Promote(id) => (10, *id, "", [0; 2]),
        };
        let mut bytes = vec![what, name.len() as u8, 0, 0, 0, 0, 0, 0];
        [id, numbers[0], numbers[1]].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.extend(name.as_bytes());
        bytes
    }

    /// The opposite of [`Record::encode`]; `None` when the bytes make no sense.
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let (id, created, mapped) = (word(bytes, 8)?, word(bytes, 16)?, word(bytes, 24)?);
        let name = || name(bytes, *bytes.get(1)?, 32);
        Some(match bytes.first()? {
            1 => Record::Create { name: name()?, created, mapped },
            2 => Record::Delete(id),
            3 => Record::Rename(id, name()?),
            4 => Record::Hold(id, true),
            5 => Record::Hold(id, false),
            6 => Record::RollBack { to: id, delete_newer: false },
            7 => Record::RollBack { to: id, delete_newer: true },
            8 if is_window(mapped) => Record::Clone { name: name()?, created, of: id, window: mapped },
            9 => Record::DeleteClone(id),
            10 => Record::Promote(id),
            _ => return None,
        })
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

pub(super) fn name(bytes: &[u8], len: u8, at: usize) -> Option<String> {
    let len = usize::from(len);
    let bytes = bytes.get(at..at + len).filter(|_| (1..=SNAPSHOT_NAME_MAX).contains(&len))?;
    Some(std::str::from_utf8(bytes).ok()?.to_owned())
}

/// A snapshot in a checkpoint: its number, created and mapped u64 each, held u8, length of the name u8, name, and zeros up to [`SNAPSHOT_BYTES`].
pub(crate) fn encode_snapshot(snapshot: &Snapshot) -> [u8; SNAPSHOT_BYTES] {
    let mut bytes = [0; SNAPSHOT_BYTES];
    let numbers = [snapshot.id, snapshot.created, snapshot.mapped];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    (bytes[24], bytes[25]) = (snapshot.held.into(), snapshot.name.len() as u8);
    bytes[26..26 + snapshot.name.len()].copy_from_slice(snapshot.name.as_bytes());
    bytes
}

/// The opposite of [`encode_snapshot`]; `None` when the bytes make no sense.
pub(crate) fn decode_snapshot(bytes: &[u8]) -> Option<Snapshot> {
    let (id, created, mapped) = (word(bytes, 0)?, word(bytes, 8)?, word(bytes, 16)?);
    let held = *bytes.get(24)? & 1 == 1;
    Some(Snapshot { id, created, mapped, held, name: name(bytes, *bytes.get(25)?, 26)? })
}
