//! Writes a stream.

use std::io::{self, Read, Write};

use device::Secret;

use crate::reader::Counts;
use crate::seal::{Chain, digest, new_key, session};
use crate::stream::{
    COMPRESSED, DATA, DATA_MAX, END, HELD, Head, Header, MAGIC, PIECE, PIECES_MAX, Piece, TRIMMED, VERSION,
};
use crate::{BackupError, Reader, StreamError};

/// Zstandard's level: twice as small as nothing on most data, at more than a disk writes.
const LEVEL: i32 = 1;

/// A stream that is being written.
pub struct Writer<W> {
    output: W,
    header: Header,
    chain: Chain,
    session: u32,
    counts: Counts,
    pieces: Vec<Piece>,
    data: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a stream, encrypted where there is a secret.
    ///
    /// # Errors
    /// The header could not be written, or the secret not be used.
    pub fn create(mut output: W, mut header: Header, secret: Option<&Secret>) -> Result<Writer<W>, BackupError> {
        if let Some(what) = header.problem() {
            return Err(StreamError::Header { what }.into());
        }
        let key = secret.map(|secret| new_key(&mut header, secret)).transpose()?;
        let json = serde_json::to_vec(&header).map_err(|error| StreamError::Header { what: error.to_string() })?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend((json.len() as u32).to_le_bytes());
        bytes.extend(json);
        let chain = Chain::new(&bytes, key);
        bytes.extend(digest(&[&bytes]));
        output.write_all(&bytes).map_err(BackupError::Write)?;
        let (counts, pieces, data) = Default::default();
        Ok(Writer { output, header, chain, session: session()?, counts, pieces, data })
    }

    /// What the stream says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of data so far.
    pub fn data_bytes(&self) -> u64 {
        self.counts.data_bytes + self.data.len() as u64
    }

    /// Adds sectors that hold something, behind all that came before. At most 1 MiB.
    ///
    /// # Errors
    /// The stream could not be written.
    ///
    /// # Panics
    /// The data are no whole sectors, or more than 1 MiB.
    pub fn held(&mut self, lba: u64, data: &[u8]) -> Result<(), BackupError> {
        let sector_bytes = self.header.sector_bytes as usize;
        assert!(data.len().is_multiple_of(sector_bytes) && data.len() <= DATA_MAX, "at most 1 MiB of whole sectors");
        let sectors = (data.len() / sector_bytes) as u64;
        if sectors == 0 {
            return Ok(());
        }
        self.make_room(data.len())?;
        self.data.extend_from_slice(data);
        match self.pieces.last_mut() {
            Some(Piece::Held { lba: first, sectors: known }) if *first + *known == lba => *known += sectors,
            _ => self.pieces.push(Piece::Held { lba, sectors }),
        }
        Ok(())
    }

    /// Adds sectors that were trimmed since the snapshot that the stream builds on.
    ///
    /// # Errors
    /// The stream could not be written.
    pub fn trimmed(&mut self, lba: u64, sectors: u64) -> Result<(), BackupError> {
        if sectors == 0 {
            return Ok(());
        }
        self.make_room(0)?;
        self.pieces.push(Piece::Trimmed { lba, sectors });
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), BackupError> {
        match self.data.len() + bytes > DATA_MAX || self.pieces.len() == PIECES_MAX {
            true => self.gathered(),
            false => Ok(()),
        }
    }

    /// Writes all that was added. The stream lacks its end still: it can be [resumed](Writer::resume) behind that.
    ///
    /// # Errors
    /// The stream could not be written.
    pub fn flush(&mut self) -> Result<(), BackupError> {
        self.gathered()?;
        self.output.flush().map_err(BackupError::Write)
    }

    /// Writes the pieces at hand as a frame.
    fn gathered(&mut self) -> Result<(), BackupError> {
        if !self.pieces.is_empty() {
            let mut body = Vec::with_capacity(8 + self.pieces.len() * PIECE + self.data.len());
            body.extend((self.pieces.len() as u64).to_le_bytes());
            for piece in &self.pieces {
                let kind = if matches!(piece, Piece::Held { .. }) { HELD } else { TRIMMED };
                let words = [piece.lba(), piece.end() - piece.lba(), kind];
                body.extend(words.map(u64::to_le_bytes).concat());
            }
            body.append(&mut self.data);
            self.counts.pieces += self.pieces.len() as u64;
            self.counts.data_bytes += (body.len() - 8 - self.pieces.len() * PIECE) as u64;
            self.pieces.clear();
            self.frame(DATA, body)?;
        }
        Ok(())
    }

    /// Says that the stream is whole, and gives the output back.
    ///
    /// # Errors
    /// The stream could not be written.
    pub fn finish(mut self) -> Result<W, BackupError> {
        self.gathered()?;
        let counts = [self.chain.number, self.counts.pieces, self.counts.data_bytes];
        self.frame(END, counts.map(u64::to_le_bytes).concat())?;
        self.output.flush().map_err(BackupError::Write)?;
        Ok(self.output)
    }

    fn frame(&mut self, kind: u8, body: Vec<u8>) -> Result<(), BackupError> {
        let packed = zstd::bulk::compress(&body, LEVEL).ok().filter(|packed| packed.len() < body.len());
        let flags = if packed.is_some() { COMPRESSED } else { 0 };
        let mut body = packed.unwrap_or(body);
        let (number, session) = (self.chain.number, self.session);
        let head = Head { kind, flags, stored: body.len() as u32, number, session };
        let tag = self.chain.seal(&head, &mut body)?;
        // One write, so that what is there of a frame after an interruption is its beginning.
        let bytes = [&head.encode()[..], &body, &tag].concat();
        self.output.write_all(&bytes).map_err(BackupError::Write)
    }
}

impl<W: Write> Writer<W> {
    /// Goes on with a stream that was interrupted, behind the last frame up to which all is sound. Gives the sector that comes next, too.
    ///
    /// `extend` gets what the stream was read from and how many of its bytes are sound. It drops what stands behind them, and gives what is to be
    /// written to.
    ///
    /// # Errors
    /// The stream is complete, or cannot be read; or `extend` fails.
    pub fn resume<R: Read>(
        mut reader: Reader<R>,
        extend: impl FnOnce(R, u64) -> io::Result<W>,
    ) -> Result<(Writer<W>, u64), BackupError> {
        loop {
            match reader.next_frame() {
                Ok(Some(_)) => {}
                Ok(None) => return Err(BackupError::Complete),
                // What a power cut left of the last frames may be anything.
                Err(StreamError::Interrupted { .. } | StreamError::Damaged { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let (counts, lba, sound) = (reader.counts, reader.lba, reader.sound);
        let (input, header, chain) = reader.into_parts();
        let output = extend(input, sound).map_err(BackupError::Write)?;
        let (pieces, data) = Default::default();
        Ok((Writer { output, header, chain, session: session()?, counts, pieces, data }, lba))
    }
}
