//! A device beyond its machine: what is written goes to a local *journal*, and follows into an object store.
//!
//! [`ObjectMedia`] stands in front of the journal, which is an ordinary medium of the full geometry. Programs, syncs and labels go to
//! the journal, so a flush is as fast as that. Behind the traffic a *cut* of the journal is taken again and again: how far each LEB is
//! filled, and what the labels say, at one moment. When all bytes of a cut are in the store, as immutable objects, the *anchor* there
//! is replaced: it names the objects, and from then on the store holds the device as of that moment. So whatever order uploads
//! end in, the store holds a state that a power cut at that moment could have left, and never a mixture of two.
//!
//! The anchor is replaced under the condition that nobody else did so: it is commit point and fence in one. Who finds another one there is
//! *fenced*, fails every command from then on, and touches nothing in the store any more.
//!
//! A device may have a [`lease`]: its owner writes the anchor again and again, also when nothing else changes, and answers nothing once it has not
//! done so for a while. Then a host that stands by takes the device over, under the same condition.
//!
//! [`plan::Plan`] decides and does no I/O; [`medium`] carries out what it decides; [`Outside`] is what both know of the store. The
//! store's client proper stands in the crate `bucket`, and [`sim`] is a store that misbehaves on command.

pub mod anchor;
pub mod claim;
mod hedge;
mod jobs;
mod later;
pub mod lease;
mod lebs;
mod medium;
pub mod notes;
mod notes_file;
mod outside;
pub mod plan;
mod prices;
pub mod sim;

pub use anchor::{Anchor, Garbage, LebEntry, Limits, ObjectId, Segment};
pub use claim::{Claim, ClaimError, Claimant, Claimed};
pub use lease::{AnchorId, Lease, Watch};
pub use medium::{ObjectMedia, Standing};
pub use notes::{Notes, NotesHead};
pub use notes_file::NotesFile;
pub use outside::{Answer, Ask, Failure, Look, NoLook, Outside, steady_ms};
pub use prices::{MONTH_MS, NotPrices, Prices, S3_STANDARD};

/// One life of a LEB, from one erase to the next: the upper half is the owner epoch in which it began, so that no two are alike.
pub type Life = u64;

/// Bytes in front of an object's content.
pub const HEAD_BYTES: u32 = 64;

const MAGIC: [u8; 8] = *b"VSLOBJCT";
const VERSION: u32 = 1;

/// What stands in front of an object's content: whose it is, and a checksum of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectHead {
    /// Identity of the device's format.
    pub device: [u8; 16],
    /// Which LEB the bytes are of.
    pub leb: u32,
    /// In which of its lives.
    pub life: Life,
    /// Where in the LEB they begin, bytes.
    pub start: u32,
}

impl ObjectHead {
    /// The object: head and content.
    pub fn object(&self, content: &[u8]) -> Vec<u8> {
        let mut object = vec![0; HEAD_BYTES as usize];
        object.extend(content);
        self.write(&mut object);
        object
    }

    /// Writes the head of an object whose content stands behind [`HEAD_BYTES`] bytes for the head
    /// already: objects are large, and a copy of each would cost as much as its upload.
    pub fn write(&self, object: &mut [u8]) {
        let (head, content) = object.split_at_mut(HEAD_BYTES as usize);
        let mut out = Vec::with_capacity(HEAD_BYTES as usize);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.leb.to_le_bytes());
        out.extend(self.device);
        out.extend(self.life.to_le_bytes());
        out.extend(self.start.to_le_bytes());
        out.extend((content.len() as u32).to_le_bytes());
        out.extend(crc_fast::crc32_iscsi(content).to_le_bytes());
        out.extend([0; 8]);
        let sum = crc_fast::crc32_iscsi(&out);
        out.extend(sum.to_le_bytes());
        head.copy_from_slice(&out);
    }

    /// Takes an object apart. `None` when a checksum or the length is wrong.
    pub fn parse(object: &[u8]) -> Option<(ObjectHead, &[u8])> {
        let (head, content) = object.split_at_checked(HEAD_BYTES as usize)?;
        let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let sound = head[..8] == MAGIC
            && u32_at(8) == VERSION
            && u32_at(60) == crc_fast::crc32_iscsi(&head[..60])
            && u32_at(44) as usize == content.len()
            && u32_at(48) == crc_fast::crc32_iscsi(content);
        sound.then(|| {
            let head = ObjectHead {
                device: head[16..32].try_into().expect("sixteen bytes"),
                leb: u32_at(12),
                life: u64::from_le_bytes(head[32..40].try_into().expect("eight bytes")),
                start: u32_at(40),
            };
            (head, content)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_an_object_counts() {
        let head = ObjectHead { device: [7; 16], leb: 3, life: 9 << 32 | 4, start: 4096 };
        let object = head.object(b"what the LEB holds");
        assert_eq!(ObjectHead::parse(&object), Some((head, b"what the LEB holds".as_slice())));
        for at in 0..object.len() {
            let mut changed = object.clone();
            changed[at] ^= 1;
            assert_eq!(ObjectHead::parse(&changed), None, "byte {at}");
            assert_eq!(ObjectHead::parse(&object[..at]), None, "cut at {at}");
        }
    }
}
