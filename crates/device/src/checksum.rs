//! The trailer behind every sector on media: where it belongs, when it was written, and a checksum over all of it.
//!
//! CRC-32C (Castagnoli; RFC 3720 appendix B.4) over sector and trailer, made different for every format by its UUID, so that
//! sectors of an earlier format of the same file do not pass.
//!
//! A CRC is linear: three slots that pass, added up, pass as well. Where slots are solved for with parity that would make sums
//! look right that are not, so formats with parity stir the checksum with a hash of sequence and slot number, which is not linear.
//!
//! Where a format is encrypted the sector is sealed first ([`crate::crypt`]), and the checksum is that of what stands on media: it finds
//! rot without the key's help, and the tag before it in the trailer finds what somebody changed on purpose.

use std::sync::Arc;

use ftl::{Header, Kind, TRAILER_BYTES};
use media::flashback::SlotCheck;
use uuid::Uuid;

use crate::crypt::{Cipher, SEALED_TRAILER_BYTES, TAG_BYTES};
use crate::superblock::Superblock;

/// Bytes of a plain trailer that the checksum covers: the fields.
const COVERED: usize = TRAILER_BYTES as usize - 4;

/// Bytes of an encrypted sector's trailer that are authenticated with it: the fields, and the attach's part of the nonce.
const SEALED_FIELDS: usize = COVERED + 4;

/// Bytes of an encrypted sector's trailer that the checksum covers.
const SEALED_COVERED: usize = SEALED_FIELDS + TAG_BYTES;

/// The largest sector.
const SECTOR_MAX: usize = 4096;

/// Seals and checks sectors of one format.
#[derive(Clone)]
pub(crate) struct Checker {
    salt: u32,
    sector: usize,
    trailer: usize,
    stirred: bool,
    cipher: Option<Arc<Cipher>>,
}

impl Checker {
    pub fn new(uuid: &Uuid, sector_bytes: u32, parity: bool) -> Checker {
        Checker {
            salt: crc_fast::crc32_iscsi(uuid.as_bytes()),
            sector: sector_bytes as usize,
            trailer: TRAILER_BYTES as usize,
            stirred: parity,
            cipher: None,
        }
    }

    /// For a format that is encrypted.
    pub fn sealing(self, cipher: Arc<Cipher>) -> Checker {
        Checker { trailer: SEALED_TRAILER_BYTES as usize, cipher: Some(cipher), ..self }
    }

    /// For a format; one that is encrypted was unlocked.
    pub fn of(superblock: &Superblock) -> Checker {
        let checker = Checker::new(&superblock.uuid, superblock.geometry.sector_bytes, !superblock.dies.is_empty());
        let cipher = superblock.encryption.as_ref().map(|encryption| {
            Arc::clone(
                encryption.unlocked.0.as_ref().expect("nobody gets here with an encrypted format that is locked"),
            )
        });
        match cipher {
            Some(cipher) => checker.sealing(cipher),
            None => checker,
        }
    }

    /// What a checksum is stirred with.
    #[inline]
    fn stir(&self, seq: u64, slot: u32) -> u32 {
        if !self.stirred {
            return self.salt;
        }
        // The output function of SplitMix64 (Steele, Lea, Flood, 2014), on both numbers.
        let mut mixed = seq ^ u64::from(slot).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.salt ^ (mixed >> 32) as u32
    }

    /// Bytes of a slot: sector and trailer.
    pub fn slot_bytes(&self) -> usize {
        self.sector + self.trailer
    }

    /// Whether sectors stand on media other than they came.
    pub fn is_sealing(&self) -> bool {
        self.cipher.is_some()
    }

    /// Puts a sector into its slot and writes the trailer behind it.
    pub fn place(&self, slot: &mut [u8], sector: &[u8], header: &Header) {
        let Some(cipher) = &self.cipher else {
            let (place, trailer) = slot.split_at_mut(self.sector);
            // From where the sector is, not from where it goes: the copy's stores can then take their time.
            let sum = crc_fast::crc32_iscsi(sector);
            words::copy_past_caches(place, sector);
            write_fields(trailer, header);
            let sum = continued::<COVERED>(sum, &trailer[..COVERED]) ^ self.stir(header.seq, header.slot);
            trailer[COVERED..].copy_from_slice(&sum.to_le_bytes());
            return;
        };
        let (place, trailer) = slot.split_at_mut(self.sector);
        write_fields(trailer, header);
        trailer[COVERED..SEALED_FIELDS].copy_from_slice(&cipher.attach);
        // Sealed beside and then copied: sealing in the slot would wait for the slot's memory at every step.
        let mut room = [0; SECTOR_MAX];
        let room = &mut room[..self.sector];
        room.copy_from_slice(sector);
        let tag = cipher.seal(room, trailer[..SEALED_FIELDS].try_into().expect("the fields have one length"));
        trailer[SEALED_FIELDS..SEALED_COVERED].copy_from_slice(&tag);
        let sum = crc_fast::crc32_iscsi(room);
        words::copy_past_caches(place, room);
        let sum = continued::<SEALED_COVERED>(sum, &trailer[..SEALED_COVERED]) ^ self.stir(header.seq, header.slot);
        trailer[SEALED_COVERED..].copy_from_slice(&sum.to_le_bytes());
    }

    /// Takes the sector out of a slot that passed its check. `false`, and nothing of use in `out`, when somebody changed it.
    pub fn open(&self, slot: &[u8], out: &mut [u8]) -> bool {
        let (sector, trailer) = slot.split_at(self.sector);
        out.copy_from_slice(sector);
        let Some(cipher) = &self.cipher else { return true };
        let (fields, rest) = trailer.split_at(SEALED_FIELDS);
        let fields = fields.try_into().expect("the fields have one length");
        let tag = rest[..TAG_BYTES].try_into().expect("a tag has one length");
        cipher.open(out, fields, tag)
    }

    /// The sector in a slot that passed its check, in place where it stands there as it is.
    pub fn sector<'a>(&self, slot: &'a [u8], room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if self.cipher.is_none() {
            return Some(&slot[..self.sector]);
        }
        room.resize(self.sector, 0);
        self.open(slot, room).then_some(&room[..])
    }

    /// The header behind a sector, when the checksum holds and it was written to this very slot.
    pub fn check(&self, slot: &[u8], number: u32) -> Option<Header> {
        let trailer = &slot[self.sector..];
        let word = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().expect("four bytes"));
        if word(24) != number {
            return None;
        }
        let seq = u64::from_le_bytes(trailer[0..8].try_into().expect("eight bytes"));
        let covered = self.trailer - 4;
        let sum = crc_fast::crc32_iscsi(&slot[..self.sector + covered]) ^ self.stir(seq, number);
        if sum != word(covered) {
            return None;
        }
        let place = u64::from_le_bytes(trailer[8..16].try_into().expect("eight bytes"));
        Some(Header {
            slot: number,
            seq,
            kind: Kind::try_from((place >> 48) as u8).ok()?,
            lba: place & ((1 << 48) - 1),
            index: u16::from_le_bytes([trailer[16], trailer[17]]),
            remaining: u16::from_le_bytes([trailer[18], trailer[19]]),
            lag: word(20),
        })
    }
}

impl SlotCheck for Checker {
    fn seq(&self, slot: &[u8], number: u32) -> Option<u64> {
        let header = self.check(slot, number)?;
        // Only asked where something is being rebuilt: then a sector that somebody changed is as bad as a rotten one.
        if self.is_sealing() && !self.open(slot, &mut vec![0; self.sector]) {
            return None;
        }
        Some(header.seq)
    }

    fn number_at(&self) -> std::ops::Range<usize> {
        self.sector + 24..self.sector + 28
    }
}

/// Writes the fields of a trailer.
#[inline]
fn write_fields(trailer: &mut [u8], header: &Header) {
    trailer[0..8].copy_from_slice(&header.seq.to_le_bytes());
    // 48 bits of address, then the kind; the eighth byte is reserved.
    let place = header.lba | (header.kind as u64) << 48;
    trailer[8..16].copy_from_slice(&place.to_le_bytes());
    trailer[16..18].copy_from_slice(&header.index.to_le_bytes());
    trailer[18..20].copy_from_slice(&header.remaining.to_le_bytes());
    trailer[20..24].copy_from_slice(&header.lag.to_le_bytes());
    trailer[24..28].copy_from_slice(&header.slot.to_le_bytes());
}

/// The checksum of some bytes followed by a trailer, from the checksum of those bytes alone.
///
/// A CRC-32 goes on by adding its state to the next four bytes; a fresh one begins with all ones, and its result is
/// inverted, so the two inversions cancel out.
fn continued<const N: usize>(sum: u32, trailer: &[u8]) -> u32 {
    let mut bytes: [u8; N] = trailer.try_into().expect("a trailer has one length");
    for (byte, sum) in bytes.iter_mut().zip(sum.to_le_bytes()) {
        *byte ^= sum;
    }
    crc_fast::crc32_iscsi(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every single flipped bit, another slot and another format are found.
    #[test]
    fn finds_every_single_bit() {
        for parity in [false, true] {
            single_bits(Checker::new(&Uuid::from_u128(1), 512, parity), parity);
        }
    }

    /// Where slots are solved for, the sum of three right ones is wrong.
    #[test]
    fn sums_of_slots_do_not_pass() {
        for parity in [false, true] {
            let checker = Checker::new(&Uuid::from_u128(1), 512, parity);
            let mut sum = vec![0; 544];
            // 64 ^ 65 ^ 66 = 67.
            for number in 64..67 {
                let header = Header {
                    slot: number,
                    seq: 900 + u64::from(number),
                    kind: Kind::Data,
                    lba: 5,
                    index: 0,
                    remaining: 0,
                    lag: 9,
                };
                let mut slot = vec![0; 544];
                checker.place(&mut slot, &[number as u8; 512], &header);
                sum.iter_mut().zip(&slot).for_each(|(sum, byte)| *sum ^= byte);
            }
            assert_eq!(checker.check(&sum, 67).is_some(), !parity);
        }
    }

    /// A sealed sector opens as it was; a changed bit is found by the checksum, and a changed slot whose checksum was made
    /// right again by the tag, all but the address of the slot itself, which is compared.
    #[test]
    fn a_sealed_sector_cannot_be_forged() {
        let uuid = Uuid::from_u128(1);
        let cipher = Arc::new(Cipher::new(&uuid, &crate::crypt::DataKey::new([3; 32])).expect("a cipher"));
        let checker = Checker::new(&uuid, 512, false).sealing(cipher);
        let header = Header { slot: 77, seq: 1 << 41, kind: Kind::Data, lba: 5, index: 1, remaining: 2, lag: 9 };
        let sector = [0x5a; 512];
        let mut slot = vec![0; checker.slot_bytes()];
        checker.place(&mut slot, &sector, &header);
        assert!(!slot.windows(4).any(|window| window == [0x5a; 4]), "nothing of it stands there");
        assert_eq!(checker.check(&slot, 77), Some(header));
        let mut out = [0; 512];
        assert!(checker.open(&slot, &mut out));
        assert_eq!(out, sector);
        assert_eq!(checker.seq(&slot, 77), Some(header.seq));
        let covered = slot.len() - 4;
        for bit in 0..covered * 8 {
            let mut forged = slot.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(checker.check(&forged, 77), None, "bit {bit}");
            let seq = u64::from_le_bytes(forged[512..520].try_into().expect("eight bytes"));
            let sum = crc_fast::crc32_iscsi(&forged[..covered]) ^ checker.stir(seq, 77);
            forged[covered..].copy_from_slice(&sum.to_le_bytes());
            assert!(!checker.open(&forged, &mut out), "bit {bit}");
            assert_eq!(checker.seq(&forged, 77), None, "bit {bit}");
        }
    }

    fn single_bits(checker: Checker, parity: bool) {
        let header = Header { slot: 77, seq: 1 << 41, kind: Kind::Data, lba: 5, index: 1, remaining: 2, lag: 9 };
        let sector: Vec<u8> = (0..512u32).map(|i| i as u8).collect();
        let mut slot = vec![0; 544];
        checker.place(&mut slot, &sector, &header);
        assert_eq!(slot[..512], sector);
        assert_eq!(checker.check(&slot, 77), Some(header));
        assert_eq!(checker.check(&slot, 78), None);
        assert_eq!(Checker::new(&Uuid::from_u128(2), 512, parity).check(&slot, 77), None);
        for bit in 0..slot.len() * 8 {
            slot[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(checker.check(&slot, 77), None, "bit {bit}");
            slot[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
