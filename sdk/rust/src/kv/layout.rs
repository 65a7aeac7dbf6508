//! How a store lies on its device: the sector that describes it, slots, and records.

use std::hash::Hasher;
use std::ops::Range;

use siphasher::sip::SipHasher24;

use super::KvError;
use super::slots::Slot;

/// The longest key, bytes.
pub const MAX_KEY_BYTES: usize = 128;
/// The longest name of a pool, bytes.
pub const MAX_POOL_NAME_BYTES: usize = MAX_KEY_BYTES;
/// The longest value of any store, bytes.
pub(crate) const MAX_VALUE_BYTES: usize = (1 << 20) - 1;

const MAGIC: [u8; 8] = *b"VSLKV\0\r\n";
const VERSION: u32 = 1;
const RECORD_MAGIC: [u8; 4] = *b"VKVR";
/// Bytes of a record in front of its key.
pub(crate) const RECORD_HEAD: usize = 32;
const KIND_RECORD: u8 = 1;
const KIND_GONE: u8 = 2;
/// Slots in which a record may lie, from the one that its hash names.
const WINDOW: u64 = 64;

/// What sector 0 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) sector_bytes: u32,
    /// Sectors of a slot.
    pub(crate) slot_sectors: u32,
    /// How many slots there are.
    pub(crate) slots: u64,
    /// So that nobody can choose keys that meet in one slot.
    pub(crate) hash_key: [u64; 2],
}

impl Layout {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut sector = vec![0; self.sector_bytes as usize];
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..12].copy_from_slice(&VERSION.to_le_bytes());
        sector[12..16].copy_from_slice(&self.slot_sectors.to_le_bytes());
        sector[16..24].copy_from_slice(&self.slots.to_le_bytes());
        sector[24..32].copy_from_slice(&self.hash_key[0].to_le_bytes());
        sector[32..40].copy_from_slice(&self.hash_key[1].to_le_bytes());
        sector[40..44].copy_from_slice(&self.sector_bytes.to_le_bytes());
        sector
    }

    /// Takes sector 0 of a device of so many sectors apart.
    pub(crate) fn decode(sector: &[u8], sectors: u64) -> Result<Layout, KvError> {
        if sector.get(..8) != Some(&MAGIC[..]) {
            return Err(KvError::NoStore);
        }
        let found = u32_at(sector, 8);
        if found != VERSION {
            return Err(KvError::Version { found, known: VERSION });
        }
        let sector_bytes = u32_at(sector, 40);
        if u32::try_from(sector.len()) != Ok(sector_bytes) {
            // A service may show a device with blocks of another size.
            let expected = format!("{sector_bytes}, with which the store was made");
            return Err(KvError::Invalid { name: "sector_bytes", value: sector.len() as u64, expected });
        }
        let layout = Layout {
            sector_bytes,
            slot_sectors: u32_at(sector, 12),
            slots: u64_at(sector, 16),
            hash_key: [u64_at(sector, 24), u64_at(sector, 32)],
        };
        let fits = layout.slots.checked_mul(layout.slot_sectors.into()).is_some_and(|taken| taken < sectors);
        if layout.slots == 0 || layout.slot_sectors == 0 || !fits {
            return Err(KvError::Corrupt { lba: 0 });
        }
        Ok(layout)
    }

    /// The longest value that a slot has room for, with the longest key.
    pub(crate) fn max_value_bytes(&self) -> usize {
        let room = self.slot_sectors as usize * self.sector_bytes as usize;
        room.saturating_sub(RECORD_HEAD + MAX_KEY_BYTES).min(MAX_VALUE_BYTES)
    }

    /// Sectors of a record.
    pub(crate) fn record_sectors(&self, key: usize, value: usize) -> u64 {
        (RECORD_HEAD + key + value).div_ceil(self.sector_bytes as usize) as u64
    }

    /// Slots in which a key's record may lie, in the order in which they are tried.
    pub(crate) fn window(&self, pool: u64, key: &[u8]) -> Range<u64> {
        let mut hasher = SipHasher24::new_with_keys(self.hash_key[0], self.hash_key[1]);
        hasher.write(&pool.to_le_bytes());
        hasher.write(key);
        let window = WINDOW.min(self.slots);
        let homes = self.slots - window + 1;
        let home = ((u128::from(hasher.finish()) * u128::from(homes)) >> 64) as u64;
        home..home + window
    }

    /// Where a slot begins.
    pub(crate) fn lba(&self, slot: u64) -> u64 {
        1 + slot * u64::from(self.slot_sectors)
    }

    /// The slot of a sector, and whether it begins there.
    pub(crate) fn slot_of(&self, lba: u64) -> (u64, bool) {
        let at = lba - 1;
        (at / u64::from(self.slot_sectors), at.is_multiple_of(self.slot_sectors.into()))
    }

    /// A record as it lies on the device.
    pub(crate) fn record(&self, record: &Record<'_>) -> Vec<u8> {
        let sectors = self.record_sectors(record.key.len(), record.value.len()) as usize;
        let mut bytes = Vec::with_capacity(sectors * self.sector_bytes as usize);
        bytes.extend(RECORD_MAGIC);
        bytes.extend([KIND_RECORD, record.key.len() as u8, 0, 0]);
        bytes.extend((record.value.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(record.pool.to_le_bytes());
        bytes.extend(record.expires.to_le_bytes());
        bytes.extend(record.key);
        bytes.extend(record.value);
        bytes.resize(sectors * self.sector_bytes as usize, 0);
        bytes
    }

    /// The mark of a record that was deleted in front of another.
    pub(crate) fn gone(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.sector_bytes as usize];
        bytes[..4].copy_from_slice(&RECORD_MAGIC);
        bytes[4] = KIND_GONE;
        bytes
    }
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) pool: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Seconds since 1970; 0 for never.
    pub(crate) expires: u64,
}

/// What the first sector of a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) pool: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) value_bytes: usize,
    /// Seconds since 1970; 0 for never.
    pub(crate) expires: u64,
}

impl Head {
    pub(crate) fn is_of(&self, pool: u64, key: &[u8]) -> bool {
        self.pool == pool && self.key == key
    }

    /// Where in the record its value lies.
    pub(crate) fn value(&self) -> Range<usize> {
        let start = RECORD_HEAD + self.key.len();
        start..start + self.value_bytes
    }
}

/// Takes the first sector of a slot apart; nothing where something else wrote to it.
pub(crate) fn decode(sector: &[u8]) -> Option<Slot> {
    // What is not mapped reads as zeros.
    if sector.get(..RECORD_HEAD)?.iter().all(|byte| *byte == 0) {
        return Some(Slot::Empty);
    }
    if sector.get(..4)? != RECORD_MAGIC {
        return None;
    }
    match *sector.get(4)? {
        KIND_GONE => Some(Slot::Gone),
        KIND_RECORD => {
            let (key, value_bytes) = (usize::from(*sector.get(5)?), u32_at(sector, 8) as usize);
            if key == 0 || key > MAX_KEY_BYTES || value_bytes > MAX_VALUE_BYTES {
                return None;
            }
            let (pool, expires) = (u64_at(sector, 16), u64_at(sector, 24));
            let key = sector.get(RECORD_HEAD..RECORD_HEAD + key)?.to_vec();
            Some(Slot::Record(Head { pool, key, value_bytes, expires }))
        }
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|field| field.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|field| field.try_into().ok()).map_or(0, u64::from_le_bytes)
}
