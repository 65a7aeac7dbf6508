//! Reads a stream, and believes nothing that it says before it is checked.

use std::io::{ErrorKind, Read};

use device::Secret;

use crate::StreamError;
use crate::seal::{Chain, digest, key_of};
use crate::stream::{
    BODY_MAX, COMPRESSED, DATA, DATA_MAX, END, HEAD, HEADER_MAX, HELD, Head, Header, MAGIC, PIECE, PIECES_MAX, Piece,
    TAG, TRIMMED, VERSION,
};

/// A stream that is being read.
pub struct Reader<R> {
    input: R,
    header: Header,
    pub(crate) chain: Chain,
    pub(crate) counts: Counts,
    /// Sectors below are dealt with.
    pub(crate) lba: u64,
    /// Bytes of the stream that were read and are sound.
    pub(crate) sound: u64,
    ended: bool,
    stored: Vec<u8>,
    frame: Frame,
}

/// What the last frame must agree with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub pieces: u64,
    pub data_bytes: u64,
}

/// Some pieces of a device, and what they hold.
#[derive(Debug, Default)]
pub struct Frame {
    pieces: Vec<Piece>,
    body: Vec<u8>,
    /// Where the data begin in the body.
    data: usize,
    sector_bytes: u64,
}

impl Frame {
    /// The pieces, in order, each with its bytes; none where it was trimmed.
    pub fn pieces(&self) -> impl Iterator<Item = (Piece, &[u8])> {
        let mut data = &self.body[self.data..];
        self.pieces.iter().map(move |piece| {
            let bytes = match piece {
                Piece::Held { sectors, .. } => (sectors * self.sector_bytes) as usize,
                Piece::Trimmed { .. } => 0,
            };
            let (own, rest) = data.split_at(bytes);
            data = rest;
            (*piece, own)
        })
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header of a stream. A secret that it does not need is not used.
    ///
    /// # Errors
    /// It is no stream, of another version, damaged, or encrypted and the secret does not open it.
    pub fn open(mut input: R, secret: Option<&Secret>) -> Result<Reader<R>, StreamError> {
        let mut bytes = Vec::new();
        input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
        if !MAGIC.starts_with(&bytes) {
            return Err(StreamError::Foreign);
        }
        let mut take = |bytes: &mut [u8]| input.read_exact(bytes).map_err(|error| cut_short(error, StreamError::Empty));
        let known = bytes.len();
        bytes.resize(16, 0);
        take(&mut bytes[known..])?;
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(StreamError::Version { found: version, known: VERSION });
        }
        let length = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
        if length > HEADER_MAX {
            return Err(StreamError::Header { what: format!("it says that it has {length} bytes") });
        }
        bytes.resize(16 + length, 0);
        take(&mut bytes[16..])?;
        let mut tag = [0; TAG];
        take(&mut tag)?;
        if digest(&[&bytes]) != tag {
            return Err(StreamError::Header { what: "its checksum".into() });
        }
        let header: Header =
            serde_json::from_slice(&bytes[16..]).map_err(|error| StreamError::Header { what: error.to_string() })?;
        if let Some(what) = header.problem() {
            return Err(StreamError::Header { what });
        }
        let chain = Chain::new(&bytes, key_of(&header, secret)?);
        let sound = (bytes.len() + TAG) as u64;
        let (counts, stored, frame) = Default::default();
        Ok(Reader { input, header, chain, counts, lba: 0, sound, ended: false, stored, frame })
    }

    /// What the stream says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of data so far.
    pub fn data_bytes(&self) -> u64 {
        self.counts.data_bytes
    }

    /// The next frame; `None` when the stream was read to its end and is whole.
    ///
    /// # Errors
    /// The stream ends before its end, is damaged, or cannot be read. Whatever frames came before are sound.
    pub fn next_frame(&mut self) -> Result<Option<&Frame>, StreamError> {
        if self.ended {
            return Ok(None);
        }
        let mut bytes = [0; HEAD];
        let interrupted = StreamError::Interrupted { lba: self.lba, sectors: self.header.sectors };
        let number = self.chain.number;
        let damaged = |what| StreamError::Damaged { number, what };
        if let Err(error) = self.input.read_exact(&mut bytes) {
            return Err(cut_short(error, interrupted));
        }
        let head = Head::decode(&bytes);
        if head.stored as usize > BODY_MAX {
            return Err(damaged("its length"));
        }
        self.stored.resize(head.stored as usize + TAG, 0);
        if let Err(error) = self.input.read_exact(&mut self.stored) {
            return Err(cut_short(error, interrupted));
        }
        if head.number != number {
            return Err(damaged("its number"));
        }
        let body = self.chain.open(&bytes, &mut self.stored).ok_or_else(|| damaged("its checksum"))?;
        self.frame.body.clear();
        if head.flags & COMPRESSED == 0 {
            self.frame.body.extend_from_slice(body);
        } else {
            self.frame.body = zstd::bulk::decompress(body, BODY_MAX).map_err(|_| damaged("its compression"))?;
        }
        self.sound += u64::from(head.stored) + (HEAD + TAG) as u64;
        match head.kind {
            DATA => {
                self.pieces().map_err(damaged)?;
                Ok(Some(&self.frame))
            }
            END => {
                let counts = [number, self.counts.pieces, self.counts.data_bytes];
                if self.frame.body != counts.map(u64::to_le_bytes).concat() {
                    return Err(damaged("its counts"));
                }
                if self.input.read(&mut [0])? > 0 {
                    return Err(StreamError::Trailing);
                }
                self.ended = true;
                Ok(None)
            }
            _ => Err(damaged("its kind")),
        }
    }

    /// Takes the pieces out of a body.
    fn pieces(&mut self) -> Result<(), &'static str> {
        let body = &self.frame.body;
        let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let count = if body.len() < 8 { 0 } else { word(body, 0) };
        if count == 0 || count > PIECES_MAX as u64 {
            return Err("its number of pieces");
        }
        let data = 8 + count as usize * PIECE;
        if body.len() < data || body.len() - data > DATA_MAX {
            return Err("its length");
        }
        self.frame.pieces.clear();
        let mut held = 0u64;
        for piece in body[8..data].chunks_exact(PIECE) {
            let (lba, sectors, kind) = (word(piece, 0), word(piece, 8), word(piece, 16));
            let end = lba.checked_add(sectors).filter(|end| *end <= self.header.sectors);
            let Some(end) = end.filter(|_| sectors > 0 && lba >= self.lba) else { return Err("the place of a piece") };
            let piece = match kind {
                HELD => {
                    held += sectors;
                    Piece::Held { lba, sectors }
                }
                TRIMMED if self.header.since.is_some() => Piece::Trimmed { lba, sectors },
                _ => return Err("the kind of a piece"),
            };
            self.frame.pieces.push(piece);
            self.lba = end;
        }
        let sector_bytes = u64::from(self.header.sector_bytes);
        if held * sector_bytes != (body.len() - data) as u64 {
            return Err("the length of its data");
        }
        (self.frame.data, self.frame.sector_bytes) = (data, sector_bytes);
        self.counts.pieces += count;
        self.counts.data_bytes += held * sector_bytes;
        Ok(())
    }

    pub(crate) fn into_parts(self) -> (R, Header, Chain) {
        (self.input, self.header, self.chain)
    }
}

/// An end that came too soon, told from an input that fails.
fn cut_short(error: std::io::Error, then: StreamError) -> StreamError {
    match error.kind() {
        ErrorKind::UnexpectedEof => then,
        _ => StreamError::Io(error),
    }
}
