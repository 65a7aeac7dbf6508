//! The anchor: one small object that says what the device is as of its last commit, and whose it is. `docs/objects.md` gives every byte.

use ftl::Geometry;

use super::lease::LEASE_MS;
use super::{AnchorId, Life};
use crate::LABEL_BYTES;

const MAGIC: [u8; 8] = *b"VSLANCHR";

/// The newest version that this program reads and writes: that of devices with a lease, which an older program must not own.
pub const ANCHOR_VERSION: u32 = 2;

/// The version of devices without a lease.
const WITHOUT_LEASE: u32 = 1;

/// The anchor's name below the prefix.
pub const ANCHOR_NAME: &str = "anchor";

/// Longest name of an owner, bytes.
const HOST_MAX: usize = 255;

/// What an object is called: unique for ever, since an owner epoch is claimed once and numbers in it only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// The owner epoch in which it was uploaded.
    pub epoch: u32,
    /// Which LEB it holds a part of.
    pub leb: u32,
    /// Counts the objects of the epoch.
    pub number: u32,
}

impl ObjectId {
    /// Its name below the prefix.
    pub fn name(&self, device: &[u8; 16]) -> String {
        format!("{}/{:08x}-{:08x}-{:08x}", directory(device), self.epoch, self.leb, self.number)
    }

    /// The opposite of [`ObjectId::name`].
    pub fn parse(name: &str, device: &[u8; 16]) -> Option<ObjectId> {
        let rest = name.strip_prefix(&directory(device))?.strip_prefix('/')?;
        let mut parts = rest.split('-').map(|part| (part.len() == 8).then(|| u32::from_str_radix(part, 16).ok())?);
        let id = ObjectId { epoch: parts.next()??, leb: parts.next()??, number: parts.next()?? };
        (parts.next().is_none() && id.name(device) == name).then_some(id)
    }
}

/// Below the prefix, where a device's objects lie: its UUID in its text form.
pub fn directory(device: &[u8; 16]) -> String {
    let hex: String = device.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A part of a LEB, in an object of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The object.
    pub id: ObjectId,
    /// Bytes of the LEB that it holds, behind those of the segment before.
    pub len: u32,
}

/// What the store holds of a LEB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LebEntry {
    /// Which LEB.
    pub leb: u32,
    /// In which of its lives.
    pub life: Life,
    /// Its parts from byte 0 on.
    pub segments: Vec<Segment>,
}

impl LebEntry {
    /// Bytes that the store holds of it.
    pub fn bytes(&self) -> u32 {
        self.segments.iter().map(|segment| segment.len).sum()
    }
}

/// An object that no anchor needs since some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// The object.
    pub id: ObjectId,
    /// Since when, milliseconds since 1970.
    pub since_ms: u64,
}

/// What the user set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Writes are slowed down from half of this on, and held at it: bytes that are in the journal and not in the store.
    pub behind_bytes: u64,
    /// Writes are held while something has waited for the store for longer, milliseconds; 0 for no such limit.
    pub behind_ms: u64,
    /// Bytes of LEBs in the journal above which closed LEBs that are in the store are given back; 0 for no limit.
    pub local_bytes: u64,
    /// How long an object that nothing needs is kept, milliseconds.
    pub grace_ms: u64,
    /// The least time between two cuts, milliseconds.
    pub commit_ms: u64,
    /// The owner answers nothing when it has not written the anchor for about so long, and then another host may take the device over by itself,
    /// milliseconds; 0 for neither.
    pub lease_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { behind_bytes: 1 << 30, behind_ms: 0, local_bytes: 0, grace_ms: 600_000, commit_ms: 1000, lease_ms: 0 }
    }
}

/// The device as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Identity of the device's format.
    pub device: [u8; 16],
    /// Identity of the owner's journal.
    pub journal: [u8; 16],
    /// Identity of the owner's attach, drawn anew by each.
    pub attach: u64,
    /// Grows with every attach: who owns the device.
    pub epoch: u32,
    /// Grows with every anchor, but for those that only renew the lease.
    pub commit: u64,
    /// How often the lease was renewed since that commit.
    pub renewal: u64,
    /// The owner detached with everything uploaded: another may take it without losing anything.
    pub released: bool,
    /// When it was written, milliseconds since 1970 by the owner's clock.
    pub written_ms: u64,
    /// Everything in the log below this sequence number is in the store.
    pub mark: u64,
    /// Bytes that the owner's journal was ahead when it wrote this.
    pub ahead_bytes: u64,
    /// What the owner's host is called.
    pub host: String,
    /// The medium's shape: one die, no parity.
    pub geometry: Geometry,
    /// Both label copies (the superblock), without zeros at their ends.
    pub labels: [Vec<u8>; 2],
    /// What the user set.
    pub limits: Limits,
    /// LEBs that hold something, in order.
    pub lebs: Vec<LebEntry>,
    /// Objects that wait for their deletion.
    pub garbage: Vec<Garbage>,
}

/// Why bytes are not an anchor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnchor {
    /// Another magic number.
    #[error("it is no anchor of an OpenVSL device")]
    Foreign,
    /// Ours, but newer.
    #[error("it has version {0}, and this program knows versions up to {ANCHOR_VERSION}")]
    Version(u32),
    /// The checksum or a field is wrong.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

impl Anchor {
    /// Which one it is.
    pub fn id(&self) -> AnchorId {
        AnchorId { epoch: self.epoch, commit: self.commit, renewal: self.renewal }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(Vec::with_capacity(4096 + self.lebs.len() * 48));
        out.0.extend(MAGIC);
        out.u32(if self.limits.lease_ms > 0 { ANCHOR_VERSION } else { WITHOUT_LEASE });
        out.u32(u32::from(self.released));
        out.0.extend(self.device);
        out.0.extend(self.journal);
        out.u64(self.attach);
        out.u32(self.epoch);
        out.u64(self.commit);
        out.u64(self.written_ms);
        out.u64(self.mark);
        out.u64(self.ahead_bytes);
        let Limits { behind_bytes, behind_ms, local_bytes, grace_ms, commit_ms, lease_ms } = self.limits;
        [behind_bytes, behind_ms, local_bytes, grace_ms, commit_ms].into_iter().for_each(|limit| out.u64(limit));
        if lease_ms > 0 {
            out.u64(lease_ms);
            out.u64(self.renewal);
        }
        let Geometry { dies, parity, blocks, pages_per_block, slots_per_page, sector_bytes, trailer_bytes, unit_bytes } =
            self.geometry;
        [dies, parity, blocks, pages_per_block, slots_per_page, sector_bytes, trailer_bytes, unit_bytes]
            .into_iter()
            .for_each(|value| out.u32(value));
        let host = &self.host.as_bytes()[..self.host.floor_char_boundary(HOST_MAX)];
        out.bytes(host);
        self.labels.iter().for_each(|label| out.bytes(label));
        out.u32(self.lebs.len() as u32);
        for entry in &self.lebs {
            out.u32(entry.leb);
            out.u64(entry.life);
            out.u32(entry.segments.len() as u32);
            for segment in &entry.segments {
                out.u32(segment.id.epoch);
                out.u32(segment.id.number);
                out.u32(segment.len);
            }
        }
        out.u32(self.garbage.len() as u32);
        for Garbage { id, since_ms } in &self.garbage {
            [id.epoch, id.leb, id.number].into_iter().for_each(|part| out.u32(part));
            out.u64(*since_ms);
        }
        let sum = crc_fast::crc32_iscsi(&out.0);
        out.u32(sum);
        out.0
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none, newer, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Anchor, NotAnchor> {
        if bytes.get(..8) != Some(&MAGIC) {
            return Err(NotAnchor::Foreign);
        }
        let body = bytes.len().checked_sub(4).filter(|len| *len >= 16).map(|len| bytes.split_at(len));
        let (body, sum) = body.ok_or(NotAnchor::Damaged("it ends early"))?;
        if crc_fast::crc32_iscsi(body).to_le_bytes() != sum {
            return Err(NotAnchor::Damaged("its checksum"));
        }
        let mut input = In(&body[8..]);
        let version = input.u32()?;
        if version > ANCHOR_VERSION {
            return Err(NotAnchor::Version(version));
        }
        let flags = input.u32()?;
        let (device, journal) = (input.take()?, input.take()?);
        let (attach, epoch, commit) = (input.u64()?, input.u32()?, input.u64()?);
        let (written_ms, mark, ahead_bytes) = (input.u64()?, input.u64()?, input.u64()?);
        let mut limits = Limits {
            behind_bytes: input.u64()?,
            behind_ms: input.u64()?,
            local_bytes: input.u64()?,
            grace_ms: input.u64()?,
            commit_ms: input.u64()?,
            lease_ms: 0,
        };
        let mut renewal = 0;
        if version > WITHOUT_LEASE {
            (limits.lease_ms, renewal) = (input.u64()?, input.u64()?);
            if !LEASE_MS.contains(&limits.lease_ms) {
                return Err(NotAnchor::Damaged("its lease"));
            }
        }
        let geometry = Geometry {
            dies: input.u32()?,
            parity: input.u32()?,
            blocks: input.u32()?,
            pages_per_block: input.u32()?,
            slots_per_page: input.u32()?,
            sector_bytes: input.u32()?,
            trailer_bytes: input.u32()?,
            unit_bytes: input.u32()?,
        };
        let block_bytes = sound(&geometry).ok_or(NotAnchor::Damaged("its geometry"))?;
        let host = String::from_utf8(input.bytes(HOST_MAX)?).map_err(|_| NotAnchor::Damaged("its owner's name"))?;
        let labels = [input.bytes(LABEL_BYTES as usize)?, input.bytes(LABEL_BYTES as usize)?];
        let mut lebs: Vec<LebEntry> = Vec::new();
        for _ in 0..input.u32()? {
            let (leb, life) = (input.u32()?, input.u64()?);
            let in_order = lebs.last().is_none_or(|last| last.leb < leb);
            let mut segments = Vec::new();
            let mut left = block_bytes;
            for _ in 0..input.u32()? {
                let id = ObjectId { epoch: input.u32()?, leb, number: input.u32()? };
                let len = input.u32()?;
                left = left.checked_sub(len).filter(|_| len > 0).ok_or(NotAnchor::Damaged("a LEB's parts"))?;
                segments.push(Segment { id, len });
            }
            if leb >= geometry.blocks || !in_order {
                return Err(NotAnchor::Damaged("its list of LEBs"));
            }
            lebs.push(LebEntry { leb, life, segments });
        }
        let mut garbage = Vec::new();
        for _ in 0..input.u32()? {
            let id = ObjectId { epoch: input.u32()?, leb: input.u32()?, number: input.u32()? };
            garbage.push(Garbage { id, since_ms: input.u64()? });
        }
        if !input.0.is_empty() {
            return Err(NotAnchor::Damaged("something stands behind its end"));
        }
        let released = flags & 1 != 0;
        Ok(Anchor {
            device,
            journal,
            attach,
            epoch,
            commit,
            renewal,
            released,
            written_ms,
            mark,
            ahead_bytes,
            host,
            geometry,
            labels,
            limits,
            lebs,
            garbage,
        })
    }

    /// Every object that it names as part of the device.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.lebs.iter().flat_map(|entry| entry.segments.iter().map(|segment| segment.id))
    }
}

/// Bytes of a LEB, where the shape makes sense for a device on objects.
pub fn sound(geometry: &Geometry) -> Option<u32> {
    let Geometry { dies, parity, blocks, pages_per_block, slots_per_page, sector_bytes, trailer_bytes, unit_bytes } =
        *geometry;
    let page = u64::from(slots_per_page)
        .checked_mul(u64::from(sector_bytes) + u64::from(trailer_bytes))?
        .checked_next_multiple_of(u64::from(unit_bytes).max(1))?;
    let block = u32::try_from(page.checked_mul(u64::from(pages_per_block))?).ok()?;
    let counts = [blocks, pages_per_block, slots_per_page, sector_bytes, unit_bytes];
    (dies == 1 && parity == 0 && counts.iter().all(|count| *count > 0)).then_some(block)
}

/// Bytes in the making.
pub(super) struct Out(pub Vec<u8>);

impl Out {
    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// Length, then the bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
    }
}

/// Bytes that are being read.
pub(super) struct In<'a>(pub &'a [u8]);

impl In<'_> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], NotAnchor> {
        let (head, tail) = self.0.split_first_chunk().ok_or(NotAnchor::Damaged("it ends early"))?;
        self.0 = tail;
        Ok(*head)
    }

    pub fn u32(&mut self) -> Result<u32, NotAnchor> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub fn u64(&mut self) -> Result<u64, NotAnchor> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub fn bytes(&mut self, most: usize) -> Result<Vec<u8>, NotAnchor> {
        let len = self.u32()? as usize;
        let (head, tail) = self.0.split_at_checked(len).ok_or(NotAnchor::Damaged("it ends early"))?;
        if len > most {
            return Err(NotAnchor::Damaged("a field is too long"));
        }
        self.0 = tail;
        Ok(head.to_vec())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use random::SplitMix64;

    use super::*;

    pub fn sample() -> Anchor {
        let id = |number| ObjectId { epoch: 2, leb: 1, number };
        Anchor {
            device: [3; 16],
            journal: [4; 16],
            attach: 5,
            epoch: 2,
            commit: 77,
            renewal: 0,
            released: true,
            written_ms: 1_700_000_000_000,
            mark: 9 << 40 | 8,
            ahead_bytes: 4096,
            host: "one".into(),
            geometry: Geometry {
                dies: 1,
                parity: 0,
                blocks: 40,
                pages_per_block: 2,
                slots_per_page: 4,
                sector_bytes: 4096,
                trailer_bytes: 32,
                unit_bytes: 4096,
            },
            labels: [vec![1; 300], vec![2; 301]],
            limits: Limits::default(),
            lebs: vec![
                LebEntry { leb: 1, life: 6, segments: vec![Segment { id: id(1), len: 4096 }] },
                LebEntry { leb: 3, life: 7, segments: Vec::new() },
            ],
            garbage: vec![Garbage { id: id(0), since_ms: 1 }],
        }
    }

    #[test]
    fn every_byte_counts() {
        let leased = Anchor { renewal: 3, limits: Limits { lease_ms: 30_000, ..Limits::default() }, ..sample() };
        for anchor in [sample(), leased] {
            let bytes = anchor.encode();
            assert_eq!(Anchor::decode(&bytes), Ok(anchor));
            for at in 0..bytes.len() {
                assert!(Anchor::decode(&bytes[..at]).is_err());
                let mut changed = bytes.clone();
                changed[at] ^= 0x55;
                assert!(Anchor::decode(&changed).is_err(), "byte {at}");
            }
        }
    }

    /// A device without a lease stays one that an older program can own, and one with a lease is none.
    #[test]
    fn a_lease_raises_the_version() {
        assert_eq!(sample().encode()[8], 1);
        let leased = Anchor { limits: Limits { lease_ms: 2000, ..Limits::default() }, ..sample() };
        assert_eq!(leased.encode()[8], 2);
    }

    /// Random fields under a valid checksum are refused or make sense, but never panic.
    #[test]
    fn nonsense_is_refused() {
        let mut random = SplitMix64::new(1);
        let sample = sample().encode();
        for _ in 0..20_000 {
            let mut bytes = sample.clone();
            let end = bytes.len() - 4;
            for _ in 0..1 + random.below(4) {
                let at = 8 + random.below(end as u64 - 8) as usize;
                bytes[at] = random.bits() as u8;
            }
            let sum = crc_fast::crc32_iscsi(&bytes[..end]);
            bytes[end..].copy_from_slice(&sum.to_le_bytes());
            let _ = Anchor::decode(&bytes);
        }
    }

    #[test]
    fn names_lead_back() {
        let id = ObjectId { epoch: 1, leb: 0xabc, number: u32::MAX };
        let name = id.name(&[0x12; 16]);
        assert_eq!(name, "12121212-1212-1212-1212-121212121212/00000001-00000abc-ffffffff");
        assert_eq!(ObjectId::parse(&name, &[0x12; 16]), Some(id));
        for wrong in
            ["anchor", "12121212-1212-1212-1212-121212121212/1-2-3", &name[..name.len() - 1], &name.to_uppercase()]
        {
            assert_eq!(ObjectId::parse(wrong, &[0x12; 16]), None, "{wrong}");
        }
    }
}
