//! Reads of neighbouring slots, handed to the medium as one: a gap of a few slots takes less time to read than to skip.

use std::ops::Range;

use media::{Command, Done, PageAddr, Slice};
use slab::Slab;

use super::Core;

/// The id of a merged read; its low bits say which.
const MERGED: u64 = 0x7c << 56;
/// Bytes between two reads of a page up to which they are merged. A disk that reads 1 GB a second and answers 70,000 small reads in that
/// time reads 14 KiB in what one of them takes.
const GAP: u32 = 13 << 10;

/// A read of slots that the layer asked for.
struct Part {
    id: u64,
    at: PageAddr,
    bytes: Range<u32>,
}

/// Reads of clients on their way to the medium.
#[derive(Default)]
pub(crate) struct Merging {
    /// Not handed over yet.
    parts: Vec<Part>,
    under_way: Slab<Vec<Part>>,
}

impl Merging {
    /// Takes a read, until [`Core::submit_reads`].
    pub fn push(&mut self, id: u64, at: PageAddr, bytes: Range<u32>) {
        self.parts.push(Part { id, at, bytes });
    }

    /// Whether reads wait to be handed over.
    pub fn waits(&self) -> bool {
        !self.parts.is_empty()
    }
}

impl Core {
    /// Hands the reads that were gathered to the medium, neighbours together.
    pub fn submit_reads(&mut self) {
        let Some(merging) = &mut self.merging else { return };
        let mut parts = std::mem::take(&mut merging.parts);
        if parts.len() > 1 {
            parts.sort_unstable_by_key(|part| (part.at, part.bytes.start));
        }
        let mut parts = parts.into_iter().peekable();
        while let Some(first) = parts.next() {
            let (at, mut bytes) = (first.at, first.bytes.clone());
            let mut others = Vec::new();
            while let Some(next) = parts.next_if(|next| next.at == at && next.bytes.start <= bytes.end + GAP) {
                bytes.end = bytes.end.max(next.bytes.end);
                others.push(next);
            }
            let id = match (others.is_empty(), &mut self.merging) {
                (false, Some(merging)) => {
                    others.push(first);
                    MERGED | merging.under_way.insert(others) as u64
                }
                _ => first.id,
            };
            self.media_submit(id, Command::Read { at, bytes });
        }
    }

    /// Ends the reads that a merged one stands for. False when it is another command.
    pub fn merged_done(&mut self, done: &Done) -> bool {
        if done.id & 0xff << 56 != MERGED {
            return false;
        }
        let key = super::index(done.id);
        let Some(parts) = self.merging.as_mut().and_then(|merging| merging.under_way.try_remove(key)) else {
            return false;
        };
        match &done.result {
            Ok(Some(whole)) => {
                let start = parts.iter().map(|part| part.bytes.start).min().unwrap_or(0);
                for Part { id, bytes, .. } in parts {
                    let offset = whole.offset + (bytes.start - start) as usize;
                    let slice = Slice { page: whole.page.clone(), offset, len: (bytes.end - bytes.start) as usize };
                    self.in_flight += 1;
                    self.finish(Done { id, result: Ok(Some(slice)) });
                }
            }
            // Not all of them need be at fault.
            _ => {
                parts.into_iter().for_each(|Part { id, at, bytes }| self.media_submit(id, Command::Read { at, bytes }))
            }
        }
        true
    }
}
