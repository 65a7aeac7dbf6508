//! A record of every nonce that sectors were sealed with, for the simulator: a repeat is a find.
//!
//! The attach's random part of the nonce is left out, so what is proved is that sequence numbers alone suffice.

use std::cell::RefCell;
use std::collections::HashMap;

use uuid::Uuid;

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Sectors sealed.
    pub sealed: u64,
    /// The first sequence number that sealed two different things under one key.
    pub repeated: Option<u64>,
}

#[derive(Default)]
struct Record {
    /// By format and sequence number, a checksum of what was sealed.
    sums: HashMap<(Uuid, u64), u32>,
    seen: Seen,
}

thread_local! {
    static RECORD: RefCell<Option<Record>> = const { RefCell::new(None) };
}

/// Begins a new record on this thread.
pub fn watch() {
    RECORD.set(Some(Record::default()));
}

/// What was seen since; empty where nobody watches.
pub fn seen() -> Seen {
    RECORD.with_borrow(|record| record.as_ref().map(|record| record.seen.clone()).unwrap_or_default())
}

/// A sector is sealed with a nonce.
pub(super) fn note(uuid: &Uuid, nonce: &[u8; 12], fields: &[u8], sector: &[u8]) {
    RECORD.with_borrow_mut(|record| {
        let Some(record) = record else { return };
        let seq = u64::from_le_bytes(nonce[..8].try_into().expect("eight bytes"));
        // Without the attach's part: that differs where the same is sealed twice.
        let sum = crc_fast::crc32_iscsi(sector) ^ crc_fast::crc32_iscsi(&fields[..28]).rotate_left(1);
        record.seen.sealed += 1;
        let before = record.sums.insert((*uuid, seq), sum);
        if before.is_some_and(|before| before != sum) {
            record.seen.repeated.get_or_insert(seq);
        }
    });
}
