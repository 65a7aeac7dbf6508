//! Sectors sealed with AES-256-GCM.
//!
//! The nonce of 96 bits is the sector's sequence number, of which none is ever given out twice under one key, and four bytes that are
//! drawn anew for each attach: should somebody copy a device file and attach both, the two that go on
//! from the same number still have nonces of their own. The trailer's fields and the format's UUID are authenticated beside the sector,
//! so a sector that was moved, or given another address or age, does not open.

use std::mem::MaybeUninit;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{DataKey, NoKey, entropy};

/// Bytes of an authentication tag.
pub(crate) const TAG_BYTES: usize = 16;

/// Trailer of a sealed sector: the plain one's, the attach's part of the nonce, and the tag.
pub const SEALED_TRAILER_BYTES: u32 = ftl::TRAILER_BYTES + 4 + TAG_BYTES as u32;

/// Bytes of the trailer that are authenticated with the sector: all fields, and the attach's part of the nonce.
pub(crate) const FIELDS: usize = 32;

/// Seals and opens the sectors of one format.
pub(crate) struct Cipher {
    key: Expanded,
    uuid: Uuid,
    /// The attach's part of the nonce.
    pub attach: [u8; 4],
}

/// An expanded key that leaves nothing behind in memory.
struct Expanded(Box<MaybeUninit<LessSafeKey>>);

const _: () = assert!(!std::mem::needs_drop::<LessSafeKey>(), "overwriting it is all there is to do");

impl Expanded {
    fn get(&self) -> &LessSafeKey {
        // SAFETY: it is made initialised, and stays so until it is dropped.
        unsafe { self.0.assume_init_ref() }
    }
}

impl Drop for Expanded {
    fn drop(&mut self) {
        let bytes = self.0.as_mut_ptr().cast::<MaybeUninit<u8>>();
        for at in 0..size_of::<LessSafeKey>() {
            // SAFETY: inside the box, which nobody looks at any more; volatile, so that it is not left out.
            unsafe { bytes.add(at).write_volatile(MaybeUninit::new(0)) };
        }
    }
}

impl Cipher {
    /// The cipher of a format, for one attach.
    pub fn new(uuid: &Uuid, key: &DataKey) -> Result<Cipher, NoKey> {
        let failed = || NoKey::Failed("the key of the sectors could not be derived");
        let mut expanded = Zeroizing::new([0; 32]);
        Prk::new_less_safe(HKDF_SHA256, &**key)
            .expand(&[b"OpenVSL sectors", uuid.as_bytes()], HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut *expanded))
            .map_err(|_| failed())?;
        let key = UnboundKey::new(&AES_256_GCM, &*expanded).map_err(|_| failed())?;
        let mut attach = [0; 4];
        entropy::fill(&mut attach)?;
        let key = Expanded(Box::new(MaybeUninit::new(LessSafeKey::new(key))));
        Ok(Cipher { key, uuid: *uuid, attach })
    }

    /// Seals a sector in its place; gives the tag.
    #[inline]
    pub fn seal(&self, sector: &mut [u8], fields: &[u8; FIELDS]) -> [u8; TAG_BYTES] {
        #[cfg(feature = "simulation")]
        super::nonces::note(&self.uuid, &nonce_bytes(fields), fields, sector);
        let sealed = self.key.get().seal_in_place_separate_tag(nonce(fields), self.context(fields), sector);
        let tag = sealed.expect("a sector is far shorter than what AES-GCM takes");
        tag.as_ref().try_into().expect("a tag has sixteen bytes")
    }

    /// Opens a sector in its place; `false`, and nothing of use in it, when it is not what was sealed.
    #[inline]
    pub fn open(&self, sector: &mut [u8], fields: &[u8; FIELDS], tag: [u8; TAG_BYTES]) -> bool {
        let key = self.key.get();
        key.open_in_place_separate_tag(nonce(fields), self.context(fields), Tag::from(tag), sector, 0..).is_ok()
    }

    #[inline]
    fn context(&self, fields: &[u8; FIELDS]) -> Aad<[u8; 16 + FIELDS]> {
        let mut context = [0; 16 + FIELDS];
        context[..16].copy_from_slice(self.uuid.as_bytes());
        context[16..].copy_from_slice(fields);
        Aad::from(context)
    }
}

/// Sequence number and the attach's part, as they stand in the trailer.
#[inline]
fn nonce(fields: &[u8; FIELDS]) -> Nonce {
    Nonce::assume_unique_for_key(nonce_bytes(fields))
}

#[inline]
fn nonce_bytes(fields: &[u8; FIELDS]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&fields[..8]);
    nonce[8..].copy_from_slice(&fields[28..]);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_only_as_it_was() {
        let uuid = Uuid::from_u128(3);
        let key = DataKey::new([1; 32]);
        let cipher = Cipher::new(&uuid, &key).expect("a cipher");
        let fields: [u8; FIELDS] = std::array::from_fn(|i| i as u8);
        let plain = [7; 512];
        let mut sealed = plain;
        let tag = cipher.seal(&mut sealed, &fields);
        assert_ne!(sealed, plain);
        let opens = |cipher: &Cipher, fields: &[u8; FIELDS], tag, expected: &[u8; 512]| {
            let mut sector = sealed;
            cipher.open(&mut sector, fields, tag) && sector == *expected
        };
        assert!(opens(&cipher, &fields, tag, &plain));
        assert!(opens(&Cipher::new(&uuid, &key).expect("a cipher"), &fields, tag, &plain), "a later attach");
        assert!(!opens(&Cipher::new(&Uuid::from_u128(4), &key).expect("a cipher"), &fields, tag, &plain));
        assert!(!opens(&Cipher::new(&uuid, &DataKey::new([2; 32])).expect("a cipher"), &fields, tag, &plain));
        for bit in 0..FIELDS * 8 {
            let mut other = fields;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(&cipher, &other, tag, &plain), "bit {bit} of the fields");
        }
        for bit in 0..TAG_BYTES * 8 {
            let mut other = tag;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(&cipher, &fields, other, &plain), "bit {bit} of the tag");
        }
    }
}
