//! The superblock's fields as bytes.

use ftl::ZoneShape;
use uuid::Uuid;

use super::{CHECKPOINT_MAX, DIES_MAX, Erasing, GivenUp, LABEL_MAX, NotSuperblock};
use crate::EraseLevel;
use crate::crypt::{Encryption, KEY_SLOTS, KeySlot, Unlocked};

/// The only cipher.
pub(super) const AES_256_GCM: u32 = 1;

/// Bytes in the making.
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }
    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }
    /// Length in one byte, then 63 bytes padded with zeros.
    pub fn text(&mut self, text: &str) {
        let bytes = &text.as_bytes()[..text.len().min(LABEL_MAX)];
        self.u8(bytes.len() as u8);
        self.0.extend(bytes);
        self.0.extend(std::iter::repeat_n(0, LABEL_MAX - bytes.len()));
    }
    pub fn list(&mut self, list: &[u32]) {
        self.u32(list.len() as u32);
        list.iter().for_each(|item| self.u32(*item));
    }
}

/// Bytes that are being read.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], NotSuperblock> {
        let (head, tail) = self.0.split_first_chunk().ok_or(NotSuperblock::Damaged("it ends early"))?;
        self.0 = tail;
        Ok(*head)
    }
    pub fn u8(&mut self) -> Result<u8, NotSuperblock> {
        Ok(self.take::<1>()?[0])
    }
    pub fn u32(&mut self) -> Result<u32, NotSuperblock> {
        Ok(u32::from_le_bytes(self.take()?))
    }
    pub fn u64(&mut self) -> Result<u64, NotSuperblock> {
        Ok(u64::from_le_bytes(self.take()?))
    }
    pub fn text(&mut self) -> Result<String, NotSuperblock> {
        let len = usize::from(self.u8()?);
        let bytes = self.take::<LABEL_MAX>()?;
        let bytes = bytes.get(..len).ok_or(NotSuperblock::Damaged("a text is too long"))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| NotSuperblock::Damaged("a text is not UTF-8"))
    }
    pub fn encryption(&mut self) -> Result<Encryption, NotSuperblock> {
        if self.u32()? != AES_256_GCM {
            return Err(NotSuperblock::Damaged("its cipher"));
        }
        if self.u32()? as usize != KEY_SLOTS {
            return Err(NotSuperblock::Damaged("its key slots"));
        }
        let mut slots = [None, None, None, None];
        for slot in &mut slots {
            *slot = KeySlot::decode(&self.take()?).map_err(NotSuperblock::Damaged)?;
        }
        Ok(Encryption { slots, unlocked: Unlocked::default() })
    }
    pub fn erasing(&mut self) -> Result<Erasing, NotSuperblock> {
        let level = EraseLevel::from_code(self.u32()?).ok_or(NotSuperblock::Damaged("the level of its erase"))?;
        let (keys, runs) = (self.u32()?, self.u32()?);
        let position = self.u64()?;
        Ok(Erasing { level, position, keys, runs, old: Uuid::from_bytes(self.take()?), began: self.u64()? })
    }
    /// A UUID, or zeros for none.
    pub fn identity(&mut self) -> Result<Option<Uuid>, NotSuperblock> {
        Ok(Some(Uuid::from_bytes(self.take()?)).filter(|uuid| !uuid.is_nil()))
    }
    pub fn zones(&mut self) -> Result<ZoneShape, NotSuperblock> {
        let (size, capacity, count) = (self.u64()?, self.u64()?, self.u32()?);
        let active = u8::try_from(self.u32()?).map_err(|_| NotSuperblock::Damaged("its zones"))?;
        Ok(ZoneShape { size, capacity, count, active })
    }
    pub fn given_up(&mut self) -> Result<Vec<GivenUp>, NotSuperblock> {
        let count = self.u32()?;
        if count > DIES_MAX {
            return Err(NotSuperblock::Damaged("a list is too long"));
        }
        (0..count).map(|_| Ok(GivenUp { chip: self.u32()?, since: self.u64()? })).collect()
    }
    pub fn list(&mut self) -> Result<Vec<u32>, NotSuperblock> {
        let len = self.u32()? as usize;
        if len > CHECKPOINT_MAX {
            return Err(NotSuperblock::Damaged("a list is too long"));
        }
        (0..len).map(|_| self.u32()).collect()
    }
}
