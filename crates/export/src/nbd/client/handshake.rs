//! How a client chooses an export: the fixed newstyle handshake, without TLS.

use std::io::{self, Read, Write};

use crate::nbd::proto::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, IHAVEOPT, MAX_PAYLOAD, NBDMAGIC, OPTION_REPLY_MAGIC, info, option, reply,
};

/// The longest option's reply that is read, bytes.
const REPLY: u32 = 64 << 10;

/// What a server says of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Its size.
    pub bytes: u64,
    /// What it can do: [`export_flag`](crate::nbd::proto::export_flag).
    pub flags: u16,
    /// Requests begin and end at multiples of this, bytes.
    pub block_bytes: u32,
    /// The most that one request carries, bytes.
    pub payload_bytes: u32,
}

pub(super) fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the NBD server: {what}"))
}

/// Chooses an export; the next bytes on the stream are requests and replies.
///
/// # Errors
/// The server says no, or something else than NBD.
pub fn choose<S: Read + Write>(stream: &mut S, export: &str) -> io::Result<ExportInfo> {
    if number::<8>(stream)? != NBDMAGIC || number::<8>(stream)? != IHAVEOPT {
        return Err(wrong("it is none, or one from before 2013"));
    }
    let flags = number::<2>(stream)? as u16;
    if flags & FLAG_FIXED_NEWSTYLE == 0 {
        return Err(wrong("it does not know the fixed newstyle handshake"));
    }
    stream.write_all(&u32::from(flags & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES)).to_be_bytes())?;
    let mut go = Vec::new();
    go.extend(IHAVEOPT.to_be_bytes());
    go.extend(option::GO.to_be_bytes());
    go.extend((export.len() as u32 + 8).to_be_bytes());
    go.extend((export.len() as u32).to_be_bytes());
    go.extend(export.as_bytes());
    go.extend(1u16.to_be_bytes());
    go.extend(info::BLOCK_SIZE.to_be_bytes());
    stream.write_all(&go)?;
    let mut found = ExportInfo { bytes: 0, flags: 0, block_bytes: 1, payload_bytes: MAX_PAYLOAD };
    loop {
        if number::<8>(stream)? != OPTION_REPLY_MAGIC {
            return Err(wrong("its reply to an option is none"));
        }
        let (_, kind, length) = (number::<4>(stream)?, number::<4>(stream)? as u32, number::<4>(stream)? as u32);
        if length > REPLY {
            return Err(wrong("its reply to an option is too long"));
        }
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body)?;
        match (kind, body.split_at_checked(2)) {
            (reply::ACK, _) => return Ok(found),
            (reply::INFO, Some((kind, body))) if kind == info::EXPORT.to_be_bytes() && body.len() == 10 => {
                found.bytes = number::<8>(&mut &body[..8])?;
                found.flags = number::<2>(&mut &body[8..])? as u16;
            }
            (reply::INFO, Some((kind, body))) if kind == info::BLOCK_SIZE.to_be_bytes() && body.len() == 12 => {
                found.block_bytes = number::<4>(&mut &body[..4])? as u32;
                found.payload_bytes = number::<4>(&mut &body[8..])? as u32;
            }
            (reply::INFO, _) => {}
            (reply::ERR_UNKNOWN, _) => return Err(wrong(&format!("it has no export called '{export}'"))),
            (reply::ERR_TLS_REQD, _) => return Err(wrong("it wants TLS first")),
            (other, _) => {
                let why = String::from_utf8_lossy(&body);
                return Err(wrong(&format!("it refuses the export '{export}' (reply {other:#x}) {why}")));
            }
        }
    }
}

/// The next number on the wire, of so many bytes.
///
/// # Errors
/// The connection is over.
pub fn number<const BYTES: usize>(stream: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
