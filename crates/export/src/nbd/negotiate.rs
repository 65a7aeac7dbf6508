//! The handshake: fixed newstyle option haggling, up to the transmission phase.
//!
//! It reads exactly what belongs to each option, so nothing is ever buffered across STARTTLS: what a
//! man in the middle put behind it in plain text is taken for TLS, and ends the connection.

use std::io::{self, Read};

use super::meta;
use super::proto::{
    BASE_ALLOCATION, CHANGED_SINCE, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, IHAVEOPT, MAX_CONTEXTS, MAX_OPTION,
    MAX_QUERIES, MAX_SKIPPED_OPTION, MAX_STRING, NBDMAGIC, OPTION_REPLY_MAGIC, export_flag, info, option, reply,
};
use super::request::Limits;
use super::status::Context;
use super::stream::Stream;
use super::tls::Tls;
use crate::Shape;

/// Options that one client may send before it must begin.
const MAX_OPTIONS: u32 = 1024;

/// An export as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// For people.
    pub description: String,
    /// No writes.
    pub read_only: bool,
    /// It shows this snapshot or clone; otherwise the device as it is.
    pub view: Option<device::SnapshotId>,
    /// Sizes.
    pub shape: Shape,
}

/// The exports that a client may choose from.
pub trait Catalogue {
    /// Every name.
    fn names(&self) -> Vec<String>;
    /// One export.
    fn offer(&self, name: &str) -> Option<Offer>;
    /// The snapshots that are older than what an export shows.
    fn older_snapshots(&self, name: &str) -> Vec<(String, device::SnapshotId)>;
    /// A promise that an export will be there for one client.
    type Claim;
    /// Claims an export before its client is told that it may begin.
    fn claim(&self, name: &str) -> Option<(Offer, Self::Claim)>;
}

/// What a client chose.
#[derive(Clone, Debug)]
pub struct Agreed<C> {
    /// The export.
    pub export: String,
    /// What its requests are measured against.
    pub limits: Limits,
    /// What its descriptions tell, in the order of their numbers, from 1 on.
    pub contexts: Vec<Context>,
    /// The catalogue's promise.
    pub claim: C,
}

/// Why a handshake ended without a choice.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The client left, properly.
    #[error("the client left")]
    Aborted,
    /// The client does not keep to the protocol, or to our rules.
    #[error("{0}")]
    Refused(String),
    /// The connection broke, or time ran out.
    #[error("{0}")]
    Io(#[from] io::Error),
}

struct Haggling<'a, S, C> {
    stream: &'a mut S,
    catalogue: &'a C,
    tls: &'a Tls,
    encrypted: bool,
    no_zeroes: bool,
    structured: bool,
    /// Chosen contexts, and the export for which they were.
    chosen: Option<(String, Vec<Context>)>,
}

/// What follows an option.
enum Next<C> {
    More,
    Begin(Agreed<C>),
}

/// Leads a client through the handshake.
///
/// # Errors
/// See [`Ended`]; the connection is to be closed.
pub fn negotiate<S: Stream, C: Catalogue>(stream: &mut S, catalogue: &C, tls: &Tls) -> Result<Agreed<C::Claim>, Ended> {
    let mut greeting = Vec::with_capacity(18);
    greeting.extend(NBDMAGIC.to_be_bytes());
    greeting.extend(IHAVEOPT.to_be_bytes());
    greeting.extend((FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
    stream.write_all(&greeting)?;
    stream.flush()?;
    let flags = read_u32(stream)?;
    let known = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
    if flags & !known != 0 {
        return Err(Ended::Refused(format!("client flags {flags:#x}, expected at most {known:#x}")));
    }
    let no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
    let mut haggling =
        Haggling { stream, catalogue, tls, encrypted: false, no_zeroes, structured: false, chosen: None };
    for _ in 0..MAX_OPTIONS {
        if let Next::Begin(agreed) = haggling.option()? {
            return Ok(agreed);
        }
    }
    Err(Ended::Refused(format!("more than {MAX_OPTIONS} options")))
}

fn read_array<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_u32(stream: &mut impl Read) -> io::Result<u32> {
    Ok(u32::from_be_bytes(read_array(stream)?))
}

impl<S: Stream, C: Catalogue> Haggling<'_, S, C> {
    fn option(&mut self) -> Result<Next<C::Claim>, Ended> {
        let magic = u64::from_be_bytes(read_array(self.stream)?);
        if magic != IHAVEOPT {
            return Err(Ended::Refused(format!("option magic {magic:#018x}, expected {IHAVEOPT:#018x}")));
        }
        let code = read_u32(self.stream)?;
        let len = read_u32(self.stream)?;
        if len > MAX_OPTION {
            return self.too_big(code, len);
        }
        let mut body = vec![0; len as usize];
        self.stream.read_exact(&mut body)?;
        if matches!(self.tls, Tls::Require(_)) && !self.encrypted && !matches!(code, option::STARTTLS | option::ABORT) {
            if code == option::EXPORT_NAME {
                return Err(Ended::Refused("EXPORT_NAME without TLS, which is required".into()));
            }
            return self.error(code, reply::ERR_TLS_REQD, "this server requires TLS: send STARTTLS first");
        }
        match code {
            option::EXPORT_NAME => self.export_name(&body),
            option::ABORT => {
                // The client may be gone before it reads this.
                let _ = self.reply(code, reply::ACK, &[]);
                Err(Ended::Aborted)
            }
            option::LIST => self.list(&body),
            option::STARTTLS => self.start_tls(&body),
            option::INFO | option::GO => self.info(code, &body),
            option::STRUCTURED_REPLY => {
                if !body.is_empty() {
                    return self.error(code, reply::ERR_INVALID, "STRUCTURED_REPLY takes no data");
                }
                self.structured = true;
                self.ack(code)
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(code, &body),
            _ => self.error(code, reply::ERR_UNSUP, "unknown option"),
        }
    }

    fn too_big(&mut self, code: u32, len: u32) -> Result<Next<C::Claim>, Ended> {
        // An export name is at most MAX_STRING long, and its option has no way to say no.
        if len > MAX_SKIPPED_OPTION || code == option::EXPORT_NAME {
            return Err(Ended::Refused(format!("option {code} of {len} bytes, expected at most {MAX_OPTION}")));
        }
        let skipped = io::copy(&mut Read::by_ref(self.stream).take(u64::from(len)), &mut io::sink())?;
        if skipped < u64::from(len) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if matches!(self.tls, Tls::Require(_)) && !self.encrypted {
            return self.error(code, reply::ERR_TLS_REQD, "this server requires TLS: send STARTTLS first");
        }
        self.error(code, reply::ERR_TOO_BIG, "option too large")
    }

    fn reply(&mut self, code: u32, kind: u32, body: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(20 + body.len());
        bytes.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        bytes.extend(code.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        self.stream.write_all(&bytes)?;
        self.stream.flush()
    }

    fn ack(&mut self, code: u32) -> Result<Next<C::Claim>, Ended> {
        self.reply(code, reply::ACK, &[])?;
        Ok(Next::More)
    }

    fn error(&mut self, code: u32, kind: u32, message: &str) -> Result<Next<C::Claim>, Ended> {
        self.reply(code, kind, message.as_bytes())?;
        Ok(Next::More)
    }

    fn agreed(&self, export: &str, offer: &Offer, claim: C::Claim) -> Agreed<C::Claim> {
        // Contexts hold for the export that they were chosen for.
        let chosen = self.chosen.as_ref().filter(|(name, _)| self.structured && name == export);
        let contexts = chosen.map(|(_, contexts)| contexts.clone()).unwrap_or_default();
        Agreed {
            export: export.to_owned(),
            limits: Limits {
                bytes: offer.shape.bytes,
                sector_bytes: offer.shape.sector_bytes,
                max_request_bytes: offer.shape.max_request_bytes,
                read_only: offer.read_only,
                view: offer.view,
                structured: self.structured,
                has_contexts: !contexts.is_empty(),
            },
            contexts,
            claim,
        }
    }

    fn export_name(&mut self, body: &[u8]) -> Result<Next<C::Claim>, Ended> {
        let name = match std::str::from_utf8(body) {
            Ok(name) if name.len() <= MAX_STRING => name,
            _ => return Err(Ended::Refused("an export name that is no string of the protocol".into())),
        };
        let Some((offer, claim)) = self.catalogue.claim(name) else {
            return Err(Ended::Refused(format!("no export {name:?}")));
        };
        let mut bytes = Vec::with_capacity(134);
        bytes.extend(offer.shape.bytes.to_be_bytes());
        bytes.extend(self.flags(&offer).to_be_bytes());
        if !self.no_zeroes {
            bytes.extend([0; 124]);
        }
        self.stream.write_all(&bytes)?;
        self.stream.flush()?;
        Ok(Next::Begin(self.agreed(name, &offer, claim)))
    }

    fn flags(&self, offer: &Offer) -> u16 {
        let mut flags = export_flag::HAS_FLAGS
            | export_flag::SEND_FLUSH
            | export_flag::SEND_FUA
            | export_flag::SEND_CACHE
            | export_flag::CAN_MULTI_CONN;
        if self.structured {
            flags |= export_flag::SEND_DF;
        }
        if offer.read_only {
            flags |= export_flag::READ_ONLY;
        } else {
            flags |= export_flag::SEND_TRIM | export_flag::SEND_WRITE_ZEROES | export_flag::SEND_FAST_ZERO;
        }
        flags
    }

    fn list(&mut self, body: &[u8]) -> Result<Next<C::Claim>, Ended> {
        if !body.is_empty() {
            return self.error(option::LIST, reply::ERR_INVALID, "LIST takes no data");
        }
        for name in self.catalogue.names() {
            let mut entry = (name.len() as u32).to_be_bytes().to_vec();
            entry.extend(name.as_bytes());
            self.reply(option::LIST, reply::SERVER, &entry)?;
        }
        self.ack(option::LIST)
    }

    fn start_tls(&mut self, body: &[u8]) -> Result<Next<C::Claim>, Ended> {
        let code = option::STARTTLS;
        let config = match self.tls {
            Tls::Off => return self.error(code, reply::ERR_POLICY, "TLS is not set up on this server"),
            Tls::On(config) | Tls::Require(config) => config,
        };
        if !body.is_empty() || self.encrypted {
            return self.error(code, reply::ERR_INVALID, "STARTTLS takes no data and works once");
        }
        self.reply(code, reply::ACK, &[])?;
        self.stream.start_tls(config)?;
        self.encrypted = true;
        // Whatever was agreed in plain text may have been somebody else's doing.
        self.structured = false;
        self.chosen = None;
        Ok(Next::More)
    }

    fn info(&mut self, code: u32, body: &[u8]) -> Result<Next<C::Claim>, Ended> {
        let Some((name, wanted)) = parse_info(body) else {
            return self.error(code, reply::ERR_INVALID, "malformed INFO or GO");
        };
        let found = if code == option::GO {
            self.catalogue.claim(name).map(|(offer, claim)| (offer, Some(claim)))
        } else {
            self.catalogue.offer(name).map(|offer| (offer, None))
        };
        let Some((offer, claim)) = found else {
            return self.error(code, reply::ERR_UNKNOWN, "no such export");
        };
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend(offer.shape.bytes.to_be_bytes());
        export.extend(self.flags(&offer).to_be_bytes());
        self.reply(code, reply::INFO, &export)?;
        // Sizes matter to every client, asked for or not.
        let preferred = offer.shape.sector_bytes.max(4096);
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [offer.shape.sector_bytes, preferred, offer.shape.max_request_bytes] {
            sizes.extend(size.to_be_bytes());
        }
        self.reply(code, reply::INFO, &sizes)?;
        for (kind, text) in [(info::NAME, name), (info::DESCRIPTION, offer.description.as_str())] {
            if wanted.contains(&kind) {
                let mut bytes = kind.to_be_bytes().to_vec();
                bytes.extend(text.as_bytes());
                self.reply(code, reply::INFO, &bytes)?;
            }
        }
        self.reply(code, reply::ACK, &[])?;
        Ok(match claim {
            Some(claim) => Next::Begin(self.agreed(name, &offer, claim)),
            None => Next::More,
        })
    }

    fn meta_context(&mut self, code: u32, body: &[u8]) -> Result<Next<C::Claim>, Ended> {
        let set = code == option::SET_META_CONTEXT;
        if set {
            // A new choice, even a failed one, undoes the last.
            self.chosen = None;
        }
        if !self.structured {
            return self.error(code, reply::ERR_INVALID, "negotiate structured replies first");
        }
        let Some(asked) = meta::parse(body) else {
            return self.error(code, reply::ERR_INVALID, "malformed metadata context query");
        };
        if self.catalogue.offer(asked.export).is_none() {
            return self.error(code, reply::ERR_UNKNOWN, "no such export");
        }
        if asked.queries.len() > MAX_QUERIES {
            return self.error(code, reply::ERR_TOO_BIG, "too many metadata context queries");
        }
        let every = !set && asked.queries.is_empty();
        let mut offered = vec![(BASE_ALLOCATION.to_owned(), Context::Allocation)];
        // Only who asks for it waits for the device.
        let ours = CHANGED_SINCE.as_bytes().split_inclusive(|byte| *byte == b':').next().unwrap_or_default();
        if every || asked.queries.iter().any(|query| query.starts_with(ours)) {
            let older = self.catalogue.older_snapshots(asked.export).into_iter();
            offered.extend(older.map(|(name, id)| (format!("{CHANGED_SINCE}{name}"), Context::ChangedSince(id))));
        }
        offered.retain(|(name, _)| every || asked.queries.iter().any(|query| meta::matches(query, name, !set)));
        if set {
            offered.truncate(MAX_CONTEXTS);
        }
        for (number, (name, _)) in offered.iter().enumerate() {
            let mut context = if set { number as u32 + 1 } else { 0 }.to_be_bytes().to_vec();
            context.extend(name.as_bytes());
            self.reply(code, reply::META_CONTEXT, &context)?;
        }
        if set {
            self.chosen = Some((asked.export.to_owned(), offered.into_iter().map(|(_, context)| context).collect()));
        }
        self.ack(code)
    }
}

/// The body of INFO and GO: an export's name and the kinds of information wanted.
fn parse_info(mut body: &[u8]) -> Option<(&str, Vec<u16>)> {
    let name = meta::take_string(&mut body)?;
    let (count, kinds) = body.split_first_chunk::<2>()?;
    let count = usize::from(u16::from_be_bytes(*count));
    if kinds.len() != 2 * count {
        return None;
    }
    Some((name, kinds.chunks_exact(2).map(|kind| u16::from_be_bytes([kind[0], kind[1]])).collect()))
}
