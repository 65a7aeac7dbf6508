//! Reading ahead of clients that read in order. What was written at random lies scattered, so that a read of it waits for many small ones of
//! the medium; asked for before its turn, they are there when it comes.
//!
//! What was read ahead is given to a client only if nothing in its range was changed since it was asked of the layer: a change drops it.
//! Memory is bounded: [`Bounds`] for each reader, [`TOTAL`] for a device, and none in quiet times.

use std::collections::VecDeque;
use std::ops::Range;

use ftl::Admission;

use super::{Core, Pending, To};
use crate::{Completion, Io, IoError, Submitted};

/// Readers in order that are told apart.
const READERS: usize = 16;
/// Reads in order after which more of them are expected.
const PROVEN: u32 = 2;
/// The least that is read ahead at once, bytes.
const CHUNK: u64 = 128 << 10;
/// The most that is read ahead of one reader, bytes.
const WINDOW: u64 = 2 << 20;
/// The most that is read ahead of all readers of a device, bytes.
const TOTAL: usize = 8 << 20;
/// What was read ahead for a reader that was silent while others read so often is dropped for theirs.
const PATIENCE: u64 = 256;

/// How much is read ahead on a device of this size, sectors.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    chunk: u64,
    window: u64,
}

/// Somebody who reads in order.
#[derive(Clone, Copy, Default)]
struct Reader {
    /// The sector behind the last read.
    next: u64,
    /// The sector behind what was read ahead.
    end: u64,
    /// Reads in order so far.
    proven: u32,
    /// How far is read ahead at present, sectors.
    window: u64,
    /// When it read last, in reads of all.
    read: u64,
}

/// A piece that is read ahead.
struct Chunk {
    key: u64,
    reader: usize,
    sectors: Range<u64>,
    /// What was read, once it was.
    bytes: Option<Vec<u8>>,
    /// Not to be given to reads that come from now on: its sectors were changed, or its reader is past it.
    over: bool,
}

/// A client's read of what is on its way.
struct Waiting {
    tag: u64,
    lba: u64,
    buf: Vec<u8>,
    /// Chunks that it waits for.
    on: Vec<u64>,
    /// One of them could not be read.
    failed: bool,
}

/// What is read ahead on a device.
pub(crate) struct ReadAhead {
    bounds: Bounds,
    sector: usize,
    sectors: u64,
    readers: Vec<Reader>,
    chunks: Vec<Chunk>,
    waiting: Vec<Waiting>,
    /// Reads whose chunk failed: they are carried out by themselves.
    again: VecDeque<(u64, u64, Vec<u8>)>,
    /// A buffer that may serve once more.
    spare: Vec<u8>,
    bytes: usize,
    reads: u64,
    keys: u64,
    /// Sectors that were read ahead, and those of them that clients got.
    pub read_sectors: u64,
    pub used_sectors: u64,
}

impl ReadAhead {
    /// For a device of so many sectors of so many bytes.
    pub fn new(sectors: u64, sector: usize) -> ReadAhead {
        let of = |bytes: u64, share: u64| (bytes / sector as u64).min(sectors / share).max(1);
        ReadAhead {
            bounds: Bounds { chunk: of(CHUNK, 32), window: of(WINDOW, 4) },
            sector,
            sectors,
            readers: Vec::new(),
            chunks: Vec::new(),
            waiting: Vec::new(),
            again: VecDeque::new(),
            spare: Vec::new(),
            bytes: 0,
            reads: 0,
            keys: 0,
            read_sectors: 0,
            used_sectors: 0,
        }
    }

    /// The device has so many sectors from now on.
    pub fn resized(&mut self, sectors: u64) {
        self.sectors = sectors;
    }

    /// Bytes that it holds.
    pub fn memory(&self) -> usize {
        self.bytes + self.spare.capacity()
    }

    /// Whether reads wait to be carried out by themselves.
    pub fn has_more(&self) -> bool {
        !self.again.is_empty()
    }

    /// These sectors were changed, or are about to be.
    pub fn changed(&mut self, sectors: &Range<u64>) {
        for chunk in &mut self.chunks {
            chunk.over |= chunk.sectors.start < sectors.end && sectors.start < chunk.sectors.end;
        }
        self.drop_chunks();
    }

    /// Nobody reads: the memory goes back.
    pub fn rest(&mut self) {
        self.chunks.iter_mut().for_each(|chunk| chunk.over = true);
        self.drop_chunks();
        self.readers.clear();
        self.spare = Vec::new();
    }

    /// Drops chunks that are over; those under way when they are done.
    fn drop_chunks(&mut self) {
        let bytes = &mut self.bytes;
        self.chunks.retain_mut(|chunk| {
            let Some(held) = chunk.bytes.take_if(|_| chunk.over) else { return true };
            *bytes -= held.len();
            false
        });
    }

    /// A client reads so many sectors: whose turn this is, if a reader in order is known by it.
    fn note(&mut self, lba: u64, count: u64) -> Option<usize> {
        self.reads += 1;
        let reads = self.reads;
        // Several requests of one reader may come in another order.
        let near = |reader: &Reader| {
            let slack = if reader.proven < PROVEN { 0 } else { 4 * count };
            lba <= reader.next + slack && reader.next <= lba + slack
        };
        let Some(at) = self.readers.iter().position(near) else {
            let reader = Reader { next: lba + count, read: reads, ..Reader::default() };
            if self.readers.len() < READERS {
                self.readers.push(reader);
            } else {
                let value = |at: &usize| (self.readers[*at].proven.min(PROVEN), self.readers[*at].read);
                let at = (0..READERS).min_by_key(value).unwrap_or(0);
                self.leave(at);
                self.readers[at] = reader;
            }
            return None;
        };
        let reader = &mut self.readers[at];
        reader.read = reads;
        if lba + count > reader.next {
            reader.next = lba + count;
            reader.proven = reader.proven.saturating_add(1);
        }
        (reader.proven >= PROVEN).then_some(at)
    }

    /// What was read ahead for a reader is over.
    fn leave(&mut self, reader: usize) {
        self.chunks.iter_mut().filter(|chunk| chunk.reader == reader).for_each(|chunk| chunk.over = true);
        self.drop_chunks();
    }

    /// The chunks that together have all of these sectors; nothing where some are missing.
    fn find(&self, sectors: &Range<u64>) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        let mut at = sectors.start;
        while at < sectors.end {
            let chunk = self.chunks.iter().position(|chunk| !chunk.over && chunk.sectors.contains(&at))?;
            at = self.chunks[chunk].sectors.end;
            found.push(chunk);
        }
        Some(found)
    }

    /// Gives a client what was read ahead, if all of it was; `None` where it must wait for some.
    fn serve(&mut self, tag: u64, lba: u64, mut buf: Vec<u8>) -> Result<Option<Vec<u8>>, Vec<u8>> {
        let sectors = lba..lba + (buf.len() / self.sector) as u64;
        let Some(found) = self.find(&sectors) else { return Err(buf) };
        self.used_sectors += sectors.end - sectors.start;
        let mut on = Vec::new();
        for at in found {
            let chunk = &mut self.chunks[at];
            match &mut chunk.bytes {
                None => on.push(chunk.key),
                // All of it and nothing else: the buffers change places.
                Some(bytes) if chunk.sectors == sectors => std::mem::swap(bytes, &mut buf),
                Some(bytes) => copy_common(self.sector, (&chunk.sectors, bytes), (&sectors, &mut buf)),
            }
            chunk.over |= chunk.sectors.end <= sectors.end;
        }
        if let Some(at) = self.chunks.iter().position(|chunk| chunk.over && chunk.bytes.is_some()) {
            let chunk = self.chunks.swap_remove(at);
            self.spare = chunk.bytes.unwrap_or_default();
            self.bytes -= self.spare.len();
        }
        self.drop_chunks();
        if on.is_empty() {
            return Ok(Some(buf));
        }
        self.waiting.push(Waiting { tag, lba, buf, on, failed: false });
        Ok(None)
    }

    /// The next piece to be read ahead of a reader, if there is to be one.
    fn next_chunk(&mut self, at: usize, count: u64) -> Option<Range<u64>> {
        let Bounds { chunk, window } = self.bounds;
        let len = chunk.max(count);
        let reader = self.readers.get_mut(at)?;
        let most = window.max(2 * len);
        reader.window = reader.window.clamp(len.min(most), most);
        reader.end = reader.end.max(reader.next);
        let start = reader.end;
        if start >= (reader.next + reader.window).min(self.sectors) {
            return None;
        }
        let end = (start + len).min(self.sectors);
        let bytes = (end - start) as usize * self.sector;
        if self.bytes + bytes > TOTAL {
            let reads = self.reads;
            let silent = (0..self.readers.len()).find(|other| {
                reads > self.readers[*other].read + PATIENCE && self.chunks.iter().any(|chunk| chunk.reader == *other)
            })?;
            self.leave(silent);
            self.readers[silent].end = 0;
            if self.bytes + bytes > TOTAL {
                return None;
            }
        }
        Some(start..end)
    }

    /// A piece was read, or could not be. Gives the answers of those who waited for it.
    fn done(&mut self, key: u64, result: Result<Vec<u8>, IoError>, answers: &mut VecDeque<Completion>) {
        let Some(at) = self.chunks.iter().position(|chunk| chunk.key == key) else { return };
        let sectors = self.chunks[at].sectors.clone();
        let mut bytes = result.ok();
        if bytes.is_none() {
            // It is not tried again and again.
            let reader = self.chunks[at].reader;
            if let Some(reader) = self.readers.get_mut(reader) {
                reader.proven = 0;
            }
        }
        // Who is the only one to wait for it may have the buffer itself.
        let only = self.waiting.iter().filter(|waiting| waiting.on.contains(&key)).count() == 1 && self.chunks[at].over;
        let mut i = 0;
        while let Some(waiting) = self.waiting.get_mut(i) {
            let Some(on) = waiting.on.iter().position(|on| *on == key) else {
                i += 1;
                continue;
            };
            waiting.on.swap_remove(on);
            let wanted = waiting.lba..waiting.lba + (waiting.buf.len() / self.sector) as u64;
            match &mut bytes {
                None => waiting.failed = true,
                Some(bytes) if only && wanted == sectors => std::mem::swap(bytes, &mut waiting.buf),
                Some(bytes) => copy_common(self.sector, (&sectors, bytes), (&wanted, &mut waiting.buf)),
            }
            if !waiting.on.is_empty() {
                i += 1;
                continue;
            }
            let Waiting { tag, lba, buf, failed, .. } = self.waiting.swap_remove(i);
            match failed {
                true => self.again.push_back((tag, lba, buf)),
                false => answers.push_back(Completion { tag, result: Ok(Some(buf)) }),
            }
        }
        let chunk = &mut self.chunks[at];
        match bytes.filter(|_| !chunk.over) {
            Some(bytes) => chunk.bytes = Some(bytes),
            None => {
                let sectors = self.chunks.swap_remove(at).sectors;
                self.bytes -= (sectors.end - sectors.start) as usize * self.sector;
            }
        }
    }
}

/// Copies the sectors that two ranges have in common, from the first to the second.
fn copy_common(sector: usize, (from, bytes): (&Range<u64>, &[u8]), (to, out): (&Range<u64>, &mut [u8])) {
    let (start, end) = (from.start.max(to.start), from.end.min(to.end));
    let len = (end - start) as usize * sector;
    let (source, target) = ((start - from.start) as usize * sector, (start - to.start) as usize * sector);
    out[target..target + len].copy_from_slice(&bytes[source..source + len]);
}

impl Core {
    /// Takes a client's read.
    pub(super) fn submit_read<'a>(&mut self, user_tag: u64, lba: u64, buf: Vec<u8>) -> Submitted<'a> {
        let Some(ahead) = &mut self.ahead else {
            return self.submit_itself(To::default(), user_tag, Io::Read { lba, buf });
        };
        let count = (buf.len() / self.sector) as u64;
        let reader = ahead.note(lba, count);
        let served = if ahead.chunks.is_empty() { Err(buf) } else { ahead.serve(user_tag, lba, buf) };
        let submitted = match served {
            Ok(read) => {
                self.ftl.count_read(count as u32);
                if let Some(reader) = reader.and_then(|at| ahead.readers.get_mut(at)) {
                    // It was worth while.
                    reader.window *= 2;
                }
                read.map_or(Submitted::Pending, |buf| Submitted::Done(Ok(Some(buf))))
            }
            Err(buf) => self.submit_itself(To::default(), user_tag, Io::Read { lba, buf }),
        };
        if let Some(reader) = reader {
            self.read_on(reader, count);
        }
        submitted
    }

    /// Reads ahead of a reader as far as there is room.
    fn read_on(&mut self, reader: usize, count: u64) {
        // Requests of clients go first.
        while self.free_tags.len() > self.pending.len() / 2 {
            let Some(ahead) = &mut self.ahead else { return };
            let Some(sectors) = ahead.next_chunk(reader, count) else { return };
            let Some(tag) = self.free_tags.pop() else { return };
            let len = sectors.end - sectors.start;
            let mut buf = std::mem::take(&mut ahead.spare);
            buf.resize(len as usize * self.sector, 0);
            ahead.bytes += buf.len();
            ahead.read_sectors += len;
            ahead.readers[reader].end = sectors.end;
            ahead.keys += 1;
            let key = ahead.keys;
            ahead.chunks.push(Chunk { key, reader, sectors: sectors.clone(), bytes: None, over: false });
            let admission = self.ftl.read_ahead(tag, sectors.start, len as u32);
            self.pending[tag as usize] =
                Pending { tag: key, buf: Some(buf), failed: false, ahead: true, remote: false };
            self.carry_out(&[]);
            if admission != Admission::Pending {
                self.free_tags.push(tag);
                let pending = &mut self.pending[tag as usize];
                let (buf, failed) = (pending.buf.take().unwrap_or_default(), pending.failed);
                self.read_ahead_done(key, if failed { Err(IoError::Media) } else { Ok(buf) });
            }
        }
    }

    /// A piece that was read ahead is there.
    pub(super) fn read_ahead_done(&mut self, key: u64, result: Result<Vec<u8>, IoError>) {
        if let Some(ahead) = &mut self.ahead {
            ahead.done(key, result, &mut self.completions);
        }
    }

    /// Carries out the reads by themselves that were to be served by what could not be read ahead.
    pub(super) fn read_again(&mut self) {
        while let Some((tag, lba, buf)) = self.ahead.as_mut().and_then(|ahead| ahead.again.pop_front()) {
            match self.submit_itself(To::default(), tag, Io::Read { lba, buf }) {
                Submitted::Done(result) => self.completions.push_back(Completion { tag, result }),
                Submitted::Busy(Io::Read { lba, buf }) => {
                    if let Some(ahead) = &mut self.ahead {
                        ahead.again.push_front((tag, lba, buf));
                    }
                    return;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_wait_for_the_same_piece_get_their_part_of_it() {
        let mut ahead = ReadAhead::new(1024, 512);
        ahead.chunks.push(Chunk { key: 1, reader: 0, sectors: 8..12, bytes: None, over: false });
        ahead.bytes = 4 * 512;
        for (tag, sectors) in [(7, 8..9), (8, 9..11), (9, 8..12u64)] {
            let buf = vec![0; (sectors.end - sectors.start) as usize * 512];
            assert!(matches!(ahead.serve(tag, sectors.start, buf), Ok(None)), "it is on its way");
        }
        let mut answers = VecDeque::new();
        ahead.done(1, Ok(vec![3; 4 * 512]), &mut answers);
        for answer in &answers {
            let read = answer.result.as_ref().expect("read").as_ref().expect("a buffer");
            assert!(read.iter().all(|byte| *byte == 3), "what {} gets", answer.tag);
        }
        assert_eq!(answers.len(), 3);
        assert_eq!(ahead.memory(), 0);
    }
}
