//! The messages, as they travel.
//!
//! Source: NVM Express Base Specification 2.0, 8.13.5.2 to 8.13.5.7. All begin with type, identifier, two reserved bytes, and the
//! transaction.

use super::{Failure, Group, Hash};
use crate::bytes::{put, u16_at, u32_at};

/// Types: common messages, and those of DH-HMAC-CHAP.
const COMMON: u8 = 0x00;
const CHAP: u8 = 0x01;
/// Identifiers.
const NEGOTIATE: u8 = 0x00;
const CHALLENGE: u8 = 0x01;
const REPLY: u8 = 0x02;
const SUCCESS1: u8 = 0x03;
const SUCCESS2: u8 = 0x04;
const FAILURE2: u8 = 0xf0;
const FAILURE1: u8 = 0xf1;
/// Bytes of a negotiation up to its protocols, and of a protocol.
const NEGOTIATE_BYTES: usize = 8;
const PROTOCOL_BYTES: usize = 64;
/// The protocol DH-HMAC-CHAP.
const PROTOCOL_CHAP: u8 = 0x01;
/// Where the lists of a protocol begin, and how long each may be.
const HASHES_AT: usize = 4;
const GROUPS_AT: usize = HASHES_AT + LIST;
const LIST: usize = 30;
/// Bytes of the other messages, before values.
const HEAD_BYTES: usize = 16;
const FAILURE_BYTES: usize = 8;
/// The only reason code: authentication failure.
const REASON: u8 = 0x01;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A host offers what it can do.
    Negotiate { transaction: u16, hashes: Vec<Hash>, groups: Vec<Group> },
    /// A controller chooses of it.
    Challenge { transaction: u16, hash: Hash, group: Group, sequence: u32, challenge: Vec<u8>, public: Vec<u8> },
    /// A host proves itself, with a challenge where the controller has to.
    Reply { transaction: u16, proof: Vec<u8>, challenge: Option<(u32, Vec<u8>)>, public: Vec<u8> },
    /// A controller is satisfied, with its own proof.
    Success1 { transaction: u16, hash_len: usize, proof: Option<Vec<u8>> },
    /// A host is satisfied.
    Success2 { transaction: u16 },
    /// A controller is not.
    Failure1 { transaction: u16, failure: Failure },
    /// A host is not.
    Failure2 { transaction: u16, failure: Failure },
}

fn head(kind: u8, id: u8, transaction: u16, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[..2].copy_from_slice(&[kind, id]);
    put(&mut bytes, 4, &transaction.to_le_bytes());
    bytes
}

impl Message {
    /// As it travels.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Message::Negotiate { transaction, hashes, groups } => {
                let mut bytes = head(COMMON, NEGOTIATE, *transaction, NEGOTIATE_BYTES + PROTOCOL_BYTES);
                // Byte 6 stays 0: no secure channel. One protocol follows.
                bytes[7] = 1;
                let protocol = &mut bytes[NEGOTIATE_BYTES..];
                protocol[0] = PROTOCOL_CHAP;
                protocol[2] = hashes.len().min(LIST) as u8;
                protocol[3] = groups.len().min(LIST) as u8;
                let hashes = hashes.iter().map(|hash| *hash as u8);
                protocol[HASHES_AT..GROUPS_AT].iter_mut().zip(hashes).for_each(|(byte, hash)| *byte = hash);
                let groups = groups.iter().map(|group| *group as u8);
                protocol[GROUPS_AT..].iter_mut().zip(groups).for_each(|(byte, group)| *byte = group);
                bytes
            }
            Message::Challenge { transaction, hash, group, sequence, challenge, public } => {
                let mut bytes = head(CHAP, CHALLENGE, *transaction, HEAD_BYTES);
                bytes[6] = challenge.len() as u8;
                bytes[8..10].copy_from_slice(&[*hash as u8, *group as u8]);
                put(&mut bytes, 10, &(public.len() as u16).to_le_bytes());
                put(&mut bytes, 12, &sequence.to_le_bytes());
                [&bytes[..], challenge, public].concat()
            }
            Message::Reply { transaction, proof, challenge, public } => {
                let mut bytes = head(CHAP, REPLY, *transaction, HEAD_BYTES);
                let none = (0, vec![0; proof.len()]);
                let (sequence, value) = challenge.as_ref().unwrap_or(&none);
                bytes[6] = proof.len() as u8;
                bytes[8] = challenge.is_some().into();
                put(&mut bytes, 10, &(public.len() as u16).to_le_bytes());
                put(&mut bytes, 12, &sequence.to_le_bytes());
                [&bytes[..], proof, value, public].concat()
            }
            Message::Success1 { transaction, hash_len, proof } => {
                let mut bytes = head(CHAP, SUCCESS1, *transaction, HEAD_BYTES);
                bytes[6] = *hash_len as u8;
                bytes[8] = proof.is_some().into();
                [&bytes[..], proof.as_deref().unwrap_or_default()].concat()
            }
            Message::Success2 { transaction } => head(CHAP, SUCCESS2, *transaction, HEAD_BYTES),
            Message::Failure1 { transaction, failure } => failed(FAILURE1, *transaction, *failure),
            Message::Failure2 { transaction, failure } => failed(FAILURE2, *transaction, *failure),
        }
    }

    /// Takes it apart.
    ///
    /// # Errors
    /// It is none, or its parts do not fit.
    pub(super) fn decode(bytes: &[u8]) -> Result<Message, Failure> {
        let payload = Failure::IncorrectPayload;
        let [kind, id, ..] = *bytes else { return Err(payload) };
        let least = match (kind, id) {
            (COMMON, NEGOTIATE) => NEGOTIATE_BYTES + PROTOCOL_BYTES,
            (COMMON, FAILURE1 | FAILURE2) => FAILURE_BYTES,
            (CHAP, CHALLENGE | REPLY | SUCCESS1 | SUCCESS2) => HEAD_BYTES,
            _ => return Err(Failure::IncorrectMessage),
        };
        if bytes.len() < least {
            return Err(payload);
        }
        let transaction = u16_at(bytes, 4);
        let hash_len = usize::from(bytes[6]);
        // Values behind the head, of these lengths.
        let value = |at: usize, len: usize| {
            bytes.get(HEAD_BYTES + at..HEAD_BYTES + at + len).ok_or(payload).map(<[u8]>::to_vec)
        };
        match (kind, id) {
            (COMMON, NEGOTIATE) => negotiation(bytes, transaction),
            (CHAP, CHALLENGE) => {
                let hash = Hash::of(bytes[8]).filter(|hash| hash.bytes() == hash_len).ok_or(Failure::HashUnusable)?;
                let group = Group::of(bytes[9]).ok_or(Failure::GroupUnusable)?;
                let (challenge, public) = (value(0, hash_len)?, value(hash_len, u16_at(bytes, 10).into())?);
                Ok(Message::Challenge { transaction, hash, group, sequence: u32_at(bytes, 12), challenge, public })
            }
            (CHAP, REPLY) => {
                let (proof, challenge) = (value(0, hash_len)?, value(hash_len, hash_len)?);
                let public = value(2 * hash_len, u16_at(bytes, 10).into())?;
                let challenge = (bytes[8] & 1 != 0).then(|| (u32_at(bytes, 12), challenge));
                Ok(Message::Reply { transaction, proof, challenge, public })
            }
            (CHAP, SUCCESS1) => {
                let proof = if bytes[8] & 1 != 0 { Some(value(0, hash_len)?) } else { None };
                Ok(Message::Success1 { transaction, hash_len, proof })
            }
            (CHAP, SUCCESS2) => Ok(Message::Success2 { transaction }),
            (COMMON, FAILURE1) => Ok(Message::Failure1 { transaction, failure: Failure::of(bytes[7]) }),
            (COMMON, FAILURE2) => Ok(Message::Failure2 { transaction, failure: Failure::of(bytes[7]) }),
            _ => Err(Failure::IncorrectMessage),
        }
    }
}

fn failed(id: u8, transaction: u16, failure: Failure) -> Vec<u8> {
    let mut bytes = head(COMMON, id, transaction, FAILURE_BYTES);
    bytes[6..8].copy_from_slice(&[REASON, failure as u8]);
    bytes
}

/// The first protocol of a negotiation that is ours counts.
fn negotiation(bytes: &[u8], transaction: u16) -> Result<Message, Failure> {
    if bytes[6] != 0 {
        return Err(Failure::ConcatenationMismatch);
    }
    let protocols = bytes[NEGOTIATE_BYTES..].chunks_exact(PROTOCOL_BYTES).take(bytes[7].into());
    let protocol = protocols.clone().find(|protocol| protocol[0] == PROTOCOL_CHAP).ok_or(Failure::ProtocolUnusable)?;
    let (hashes, groups) = (usize::from(protocol[2]), usize::from(protocol[3]));
    if hashes > LIST || groups > LIST {
        return Err(Failure::IncorrectPayload);
    }
    Ok(Message::Negotiate {
        transaction,
        hashes: protocol[HASHES_AT..][..hashes].iter().filter_map(|number| Hash::of(*number)).collect(),
        groups: protocol[GROUPS_AT..][..groups].iter().filter_map(|number| Group::of(*number)).collect(),
    })
}
