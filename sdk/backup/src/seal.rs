//! The chain of tags: each frame is sealed together with everything before it.

use device::{Secret, unwrap_key, wrap_key};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::StreamError;
use crate::stream::{HEAD, Head, Header, TAG};

/// Where a stream has come to.
pub(crate) struct Chain {
    key: Option<LessSafeKey>,
    last: [u8; TAG],
    /// Frames so far.
    pub number: u64,
}

impl Chain {
    /// Behind the header, whose bytes are these.
    pub fn new(header: &[u8], key: Option<LessSafeKey>) -> Chain {
        Chain { key, last: digest(&[header]), number: 0 }
    }

    /// Seals a body, in place, and gives the frame's tag.
    pub fn seal(&mut self, head: &Head, body: &mut [u8]) -> Result<[u8; TAG], StreamError> {
        let bytes = head.encode();
        self.last = match &self.key {
            None => digest(&[&self.last, &bytes, body]),
            Some(key) => {
                let sealed = key.seal_in_place_separate_tag(nonce(head), Aad::from(self.context(&bytes)), body);
                let tag = sealed.map_err(|_| StreamError::Secret("a frame could not be encrypted"))?;
                tag.as_ref().try_into().expect("a tag has 16 bytes")
            }
        };
        self.number += 1;
        Ok(self.last)
    }

    /// Opens a body that stands before its tag; `None` where it is not the one that was sealed, with every bit of this head.
    pub fn open<'a>(&mut self, bytes: &[u8; HEAD], sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let head = &Head::decode(bytes);
        let (body, tag) = sealed.split_at(sealed.len().checked_sub(TAG)?);
        let tag: [u8; TAG] = tag.try_into().ok()?;
        let body = match &self.key {
            None if digest(&[&self.last, bytes, body]) == tag => &sealed[..sealed.len() - TAG],
            None => return None,
            Some(key) => &*key.open_in_place(nonce(head), Aad::from(self.context(bytes)), sealed).ok()?,
        };
        self.last = tag;
        self.number += 1;
        Some(body)
    }

    fn context(&self, head: &[u8; HEAD]) -> [u8; TAG + HEAD] {
        let mut context = [0; TAG + HEAD];
        context[..TAG].copy_from_slice(&self.last);
        context[TAG..].copy_from_slice(head);
        context
    }
}

/// The first 16 bytes of SHA-256.
pub(crate) fn digest(parts: &[&[u8]]) -> [u8; TAG] {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let digest = context.finish();
    digest.as_ref()[..TAG].try_into().expect("SHA-256 has 32 bytes")
}

fn nonce(head: &Head) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..4].copy_from_slice(&head.session.to_le_bytes());
    nonce[4..].copy_from_slice(&head.number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// A random number for a run's frames.
pub(crate) fn session() -> Result<u32, StreamError> {
    let mut bytes = [0; 4];
    random(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn random(bytes: &mut [u8]) -> Result<(), StreamError> {
    SystemRandom::new().fill(bytes).map_err(|_| StreamError::Secret("the operating system gives no random bytes"))
}

/// A new key for a stream, and it wrapped in the header.
pub(crate) fn new_key(header: &mut Header, secret: &Secret) -> Result<LessSafeKey, StreamError> {
    let mut key = Zeroizing::new([0; 32]);
    random(&mut *key)?;
    let wrapped = wrap_key(&header.id, &key, secret).map_err(StreamError::Secret)?;
    header.key = Some(wrapped.iter().map(|byte| format!("{byte:02x}")).collect());
    cipher(&key)
}

/// The key of a stream; none where it is not encrypted.
pub(crate) fn key_of(header: &Header, secret: Option<&Secret>) -> Result<Option<LessSafeKey>, StreamError> {
    let Some(digits) = &header.key else { return Ok(None) };
    let damaged = || StreamError::Header { what: "the key".into() };
    let secret = secret.ok_or(StreamError::NeedsSecret)?;
    let bytes: Option<Vec<u8>> =
        digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let wrapped = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)?;
    let key = unwrap_key(&header.id, &wrapped, secret).map_err(StreamError::Secret)?.ok_or(StreamError::WrongSecret)?;
    cipher(&key).map(Some)
}

fn cipher(key: &[u8; 32]) -> Result<LessSafeKey, StreamError> {
    let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| StreamError::Secret("the key could not be used"))?;
    Ok(LessSafeKey::new(key))
}
