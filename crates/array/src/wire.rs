//! What stands on a member, byte for byte; `docs/array-format.md` specifies it. Numbers are little-endian; a CRC-32C over the whole,
//! with the checksum's own bytes zero, says whether it is what was written.

use uuid::Uuid;

use crate::{Damage, Level, MEMBERS_MAX, Shape};

/// What a superblock begins with.
const MAGIC: [u8; 8] = *b"OpenVSLa";
/// What a sector of marks begins with.
const BITMAP_MAGIC: [u8; 4] = *b"VSLm";
/// What the head of a record begins with.
const RECORD_MAGIC: [u8; 4] = *b"VSLr";
/// Version of this format: what superblocks say of an array in which every stripe lies where it stays.
pub(crate) const VERSION: u32 = 1;
/// The version of one whose stripes are being laid out over one more member, which older programs must not assemble.
pub(crate) const VERSION_MOVING: u32 = 2;
/// The role, there only, of the member over which they are laid out; how many are stands beside it.
const ROLE_MOVING: u64 = 4;
/// Bytes before the marks.
pub(crate) const BITMAP_HEAD: usize = 32;
/// Bytes of a name at most.
const NAME_BYTES: usize = 64;
/// Bytes of a superblock; the rest of its sector is zero.
pub(crate) const SUPERBLOCK_BYTES: usize =
    8 + 4 + 4 + 16 + 4 + 4 + 8 + 4 + 4 + 8 + MEMBERS_MAX * (16 + 8 + 8 + 16) + NAME_BYTES;
/// Where each checksum stands.
const CRC_AT: usize = 8;

/// Where the superblock of a member of so many sectors lies.
pub fn superblock_sector(sectors: u64) -> u64 {
    sectors.saturating_sub(1)
}

/// What a member is to its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has everything.
    Active,
    /// What is marked is being copied to it; it has the rest.
    Rebuilding,
    /// It is not there, and missed what was written since this event.
    Left(u64),
}

/// What each member says of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The array's identity.
    pub array: Uuid,
    /// Its name.
    pub name: String,
    /// Which of the members this is.
    pub position: usize,
    /// Raised with each change of the members' roles, and with each assembly.
    pub events: u64,
    /// The array's shape.
    pub shape: Shape,
    /// Each member's identity.
    pub uuids: Vec<Uuid>,
    /// Each member's role.
    pub roles: Vec<Role>,
}

/// Reads numbers one behind the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn uuid(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }
}

fn seal(mut bytes: Vec<u8>, sector: usize) -> Vec<u8> {
    bytes.resize(sector, 0);
    let sum = crc_fast::crc32_iscsi(&bytes);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Whether it is what was sealed.
fn is_sealed(sector: &[u8]) -> bool {
    let Some(sum) = sector.get(CRC_AT..CRC_AT + 4) else { return false };
    let mut plain = sector.to_vec();
    plain[CRC_AT..CRC_AT + 4].fill(0);
    crc_fast::crc32_iscsi(&plain).to_le_bytes() == *sum
}

impl Superblock {
    /// As it stands in a sector.
    pub fn encode(&self) -> Vec<u8> {
        let shape = &self.shape;
        let mut out = MAGIC.to_vec();
        out.extend([0; 4]);
        out.extend(if shape.moved.is_some() { VERSION_MOVING } else { VERSION }.to_le_bytes());
        out.extend(self.array.as_bytes());
        let level = match shape.level {
            Level::Raid0 => 0,
            Level::Raid1 => 1,
            Level::Concat => 2,
        };
        out.extend([level, shape.count() as u8, self.position as u8, 0]);
        out.extend(shape.sector_bytes.to_le_bytes());
        out.extend(shape.stripe.to_le_bytes());
        out.extend(shape.largest.to_le_bytes());
        out.extend([shape.region_shift as u8, shape.log_slots as u8, 0, 0]);
        out.extend(self.events.to_le_bytes());
        for at in 0..MEMBERS_MAX {
            let (role, beside) = match (self.roles.get(at), shape.moved) {
                (None, _) => (0, 0),
                (Some(_), Some(moved)) if at + 1 == shape.count() => (ROLE_MOVING, moved),
                (Some(Role::Active), _) => (1, 0),
                (Some(Role::Rebuilding), _) => (2, 0),
                (Some(Role::Left(events)), _) => (3, *events),
            };
            out.extend(self.uuids.get(at).copied().unwrap_or_default().as_bytes());
            out.extend(shape.members.get(at).copied().unwrap_or(0).to_le_bytes());
            out.extend(shape.data.get(at).copied().unwrap_or(0).to_le_bytes());
            out.extend(u64::to_le_bytes(role));
            out.extend(u64::to_le_bytes(beside));
        }
        let mut name = self.name.clone().into_bytes();
        name.resize(NAME_BYTES, 0);
        out.extend(name);
        seal(out, shape.sector_bytes as usize)
    }

    /// From a sector; `member` is what it is called in an error.
    ///
    /// # Errors
    /// It is none, or one of a newer program.
    pub fn decode(sector: &[u8], member: usize) -> Result<Superblock, Damage> {
        let none = Damage::NoSuperblock(member);
        if !sector.starts_with(&MAGIC) || !is_sealed(sector) {
            return Err(none);
        }
        let mut from = Reader(&sector[CRC_AT + 4..]);
        let found = from.u32().ok_or_else(|| none.clone())?;
        if found != VERSION && found != VERSION_MOVING {
            return Err(Damage::Version { member, found, known: VERSION_MOVING });
        }
        let is_moving = |superblock: &Superblock| superblock.shape.moved.is_some() == (found == VERSION_MOVING);
        Superblock::body(from).filter(is_moving).filter(|superblock| superblock.shape.is_sound()).ok_or(none)
    }

    fn body(mut from: Reader<'_>) -> Option<Superblock> {
        let array = from.uuid()?;
        let [level, count, position, _] = from.array()?;
        let level = [Level::Raid0, Level::Raid1, Level::Concat].get(usize::from(level)).copied()?;
        let (count, position) = (usize::from(count), usize::from(position));
        if count > MEMBERS_MAX || position >= count {
            return None;
        }
        let (sector_bytes, stripe, largest) = (from.u32()?, from.u64()?, from.u32()?);
        let [region_shift, log_slots, ..] = from.array::<4>()?;
        let events = from.u64()?;
        let (mut uuids, mut members, mut data, mut roles) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut moved = None;
        for at in 0..MEMBERS_MAX {
            let (uuid, sectors, holds, role, beside) =
                (from.uuid()?, from.u64()?, from.u64()?, from.u64()?, from.u64()?);
            if at >= count {
                continue;
            }
            uuids.push(uuid);
            members.push(sectors);
            data.push(holds);
            roles.push(match role {
                1 => Role::Active,
                2 => Role::Rebuilding,
                3 => Role::Left(beside),
                ROLE_MOVING if at + 1 == count => {
                    moved = Some(beside);
                    Role::Active
                }
                _ => return None,
            });
        }
        let name = from.take(NAME_BYTES)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8(name.to_vec()).ok()?;
        let (region_shift, log_slots) = (u32::from(region_shift), u32::from(log_slots));
        let shape = Shape { level, sector_bytes, stripe, largest, data, members, region_shift, log_slots, moved };
        Some(Superblock { array, name, position, events, shape, uuids, roles })
    }
}

impl Shape {
    /// Whether nothing that is calculated from it overflows: a checksum proves that it was written, not by whom.
    fn is_sound(&self) -> bool {
        let (least, most) = self.level.members();
        let limit = 1u64 << 52;
        let sane = (least..=most).contains(&self.count())
            && (512..=65_536).contains(&self.sector_bytes)
            && self.sector_bytes.is_power_of_two()
            && self.largest > 0
            && self.largest <= 1 << 20
            && self.region_shift < 52
            && self.stripe <= limit
            && (self.stripe > 0) == (self.level == Level::Raid0)
            && (self.log_slots > 0) == (self.level != Level::Raid1)
            && self
                .members
                .iter()
                .zip(&self.data)
                .all(|(sectors, data)| *sectors <= limit && data <= sectors && *data > 0);
        // Nothing of this overflows by now.
        let is_moving_soundly = |moved| {
            self.level == Level::Raid0
                && self.count() > least
                && self.data.windows(2).all(|two| two[0] == two[1])
                && moved <= self.stripes()
        };
        sane && self.moved.is_none_or(is_moving_soundly)
            && self.regions() <= 1 << 20
            && (0..self.count()).all(|member| {
                let own = 1 + self.bitmap_sectors() + u64::from(self.log_slots) * (1 + u64::from(self.largest));
                self.data[member].checked_add(own).is_some_and(|end| end <= self.members[member])
            })
    }
}

/// A sector of marks: `is_marked` says which of its regions are, counted from the first in this sector.
pub(crate) fn encode_marks(array: Uuid, index: u64, sector: usize, is_marked: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut out = BITMAP_MAGIC.to_vec();
    out.extend((index as u32).to_le_bytes());
    out.extend([0; 4]);
    out.extend([0; 4]);
    out.extend(array.as_bytes());
    debug_assert_eq!(out.len(), BITMAP_HEAD);
    out.extend(
        (0..sector - BITMAP_HEAD)
            .map(|byte| (0..8).fold(0, |bits, bit| bits | u8::from(is_marked(byte * 8 + bit)) << bit)),
    );
    seal(out, sector)
}

/// Which regions a sector marks; nothing where it was never written, or not by this array.
pub(crate) fn decode_marks(sector: &[u8], array: Uuid, index: u64) -> Option<impl Iterator<Item = usize> + '_> {
    let mut from = Reader(sector);
    let is_ours = from.array() == Some(BITMAP_MAGIC) && from.u32() == Some(index as u32);
    let (_, _) = (from.u32(), from.u32());
    if !is_ours || from.uuid() != Some(array) || !is_sealed(sector) {
        return None;
    }
    let bits = from.0.iter().enumerate();
    Some(bits.flat_map(|(at, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit)))
}

/// The head of a record: a write that lies on two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Raised with each.
    pub number: u64,
    /// The two, and where the piece of each lies there.
    pub pieces: [RecordPiece; 2],
    /// CRC-32C of the data behind the head, which are the other member's piece.
    pub data_crc: u32,
}

/// What such a write does on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPiece {
    pub member: usize,
    pub lba: u64,
    pub count: u32,
}

impl Record {
    /// As it stands in slot `slot` of the log.
    pub fn encode(&self, array: Uuid, slot: usize, sector: usize) -> Vec<u8> {
        let mut out = RECORD_MAGIC.to_vec();
        out.extend((slot as u32).to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.data_crc.to_le_bytes());
        out.extend(array.as_bytes());
        out.extend(self.number.to_le_bytes());
        for piece in &self.pieces {
            out.extend(piece.lba.to_le_bytes());
            out.extend(piece.count.to_le_bytes());
            out.extend((piece.member as u32).to_le_bytes());
        }
        seal(out, sector)
    }

    /// From slot `slot`; nothing where none was ever written by this array.
    pub fn decode(head: &[u8], array: Uuid, slot: usize) -> Option<Record> {
        let mut from = Reader(head);
        if from.array() != Some(RECORD_MAGIC) || from.u32() != Some(slot as u32) {
            return None;
        }
        let (_, data_crc) = (from.u32()?, from.u32()?);
        if from.uuid()? != array || !is_sealed(head) {
            return None;
        }
        let number = from.u64()?;
        let mut piece = || {
            let (lba, count, member) = (from.u64()?, from.u32()?, from.u32()?);
            Some(RecordPiece { member: member as usize, lba, count })
        };
        Some(Record { number, pieces: [piece()?, piece()?], data_crc })
    }

    /// Whether it can be carried out in an array of this shape.
    pub fn fits(&self, shape: &Shape) -> bool {
        let [one, other] = self.pieces;
        one.member != other.member
            && self.pieces.iter().all(|piece| {
                let data = shape.data.get(piece.member).copied().unwrap_or(0);
                (1..=shape.largest).contains(&piece.count)
                    && piece.lba.checked_add(u64::from(piece.count)).is_some_and(|end| end <= data)
            })
    }

    /// The piece of this member, and the other's.
    pub fn seen_from(&self, member: usize) -> Option<(RecordPiece, RecordPiece)> {
        let [one, other] = self.pieces;
        match member {
            _ if member == one.member => Some((one, other)),
            _ if member == other.member => Some((other, one)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Member;

    fn superblock() -> Superblock {
        let member = |number| Member {
            uuid: Uuid::from_u128(number),
            sectors: 5_000 + number as u64,
            sector_bytes: 512,
            max_request_bytes: 1 << 20,
        };
        let members = [member(1), member(2), member(3)];
        let shape = Shape::new(Level::Raid1, &members, 0, 64 << 10).expect("fits");
        Superblock {
            array: Uuid::from_u128(77),
            name: "mirror".into(),
            position: 1,
            events: 12,
            shape,
            uuids: members.iter().map(|member| member.uuid).collect(),
            roles: vec![Role::Active, Role::Rebuilding, Role::Left(9)],
        }
    }

    #[test]
    fn a_superblock_comes_back_and_any_changed_byte_is_noticed() {
        let superblock = superblock();
        let sector = superblock.encode();
        assert_eq!(sector.len(), 512);
        assert_eq!(Superblock::decode(&sector, 0), Ok(superblock));
        for at in 0..sector.len() {
            let mut other = sector.clone();
            other[at] ^= 0x10;
            assert!(Superblock::decode(&other, 0).is_err(), "byte {at}");
        }
        assert_eq!(Superblock::decode(&[0; 512], 4), Err(Damage::NoSuperblock(4)));
    }

    #[test]
    fn how_many_stripes_are_laid_out_anew_comes_back_under_a_version_of_its_own() {
        let member = |number| Member {
            uuid: Uuid::from_u128(number),
            sectors: 5_000,
            sector_bytes: 512,
            max_request_bytes: 1 << 20,
        };
        let shape = Shape::new(Level::Raid0, &[member(1), member(2)], 4096, 64 << 10).expect("fits");
        let mut shape = shape.grown(&member(3)).expect("fits");
        for moved in [0, 7, shape.stripes()] {
            shape.moved = Some(moved);
            let superblock = Superblock {
                array: Uuid::from_u128(77),
                name: "wide".into(),
                position: 1,
                events: 3,
                shape: shape.clone(),
                uuids: (1..=3).map(Uuid::from_u128).collect(),
                roles: vec![Role::Active; 3],
            };
            let sector = superblock.encode();
            assert_eq!(sector[12], 2);
            assert_eq!(Superblock::decode(&sector, 0), Ok(superblock.clone()));
            let mut beyond = superblock.clone();
            beyond.shape.moved = Some(shape.stripes() + 1);
            assert_eq!(Superblock::decode(&beyond.encode(), 0), Err(Damage::NoSuperblock(0)));
            let mut settled = superblock;
            settled.shape.moved = None;
            assert_eq!(settled.encode()[12], 1);
        }
    }

    #[test]
    fn a_superblock_that_was_made_up_overflows_nothing() {
        let good = superblock();
        let with = |change: fn(&mut Superblock)| {
            let mut other = good.clone();
            change(&mut other);
            Superblock::decode(&other.encode(), 0)
        };
        let changed = [
            with(|it| it.shape.data[0] = u64::MAX),
            with(|it| it.shape.members[1] = 3),
            with(|it| it.shape.region_shift = 63),
            with(|it| it.shape.largest = 0),
            with(|it| it.shape.region_shift = 0),
            with(|it| it.shape.stripe = 8),
        ];
        // Where it is taken, everything can be calculated with it.
        for it in changed.into_iter().flatten() {
            assert!(it.shape.own_from(0) >= it.shape.data[0]);
        }
    }

    #[test]
    fn marks_and_records_come_back() {
        let array = Uuid::from_u128(5);
        let marks = encode_marks(array, 2, 512, |region| region % 7 == 3);
        let seen: Vec<usize> = decode_marks(&marks, array, 2).expect("ours").collect();
        assert_eq!(seen, (0..480 * 8).filter(|region| region % 7 == 3).collect::<Vec<_>>());
        assert!(decode_marks(&marks, array, 1).is_none());
        assert!(decode_marks(&marks, Uuid::from_u128(6), 2).is_none());
        let piece = |member, lba| RecordPiece { member, lba, count: 3 };
        let record = Record { number: 9, pieces: [piece(1, 70), piece(2, 0)], data_crc: 4 };
        let head = record.encode(array, 6, 512);
        assert_eq!(Record::decode(&head, array, 6), Some(record));
        assert_eq!(Record::decode(&head, array, 5), None);
        assert_eq!(record.seen_from(2), Some((piece(2, 0), piece(1, 70))));
        assert_eq!(record.seen_from(0), None);
    }
}
