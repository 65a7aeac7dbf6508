//! The controller's side.

use zeroize::Zeroizing;

use super::group::Exchange;
use super::message::Message;
use super::proof::{Proof, Whose};
use super::{Entropy, Failure, Hash, Keys, Names, Policy, sequence_number};

/// A host's buffer has no room for the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the buffer is shorter than the message")]
pub struct TooShort;

/// What was chosen, and the challenge of it.
struct Challenge {
    hash: Hash,
    exchange: Exchange,
    sequence: u32,
    value: Vec<u8>,
    message: Message,
}

enum State {
    /// Nothing was said yet.
    Start,
    /// A challenge waits to be received.
    Challenging(Challenge),
    /// A reply is to come.
    Challenged(Challenge),
    /// The host is who it says. A success waits to be received.
    Proven { hash_len: usize, proof: Option<Vec<u8>> },
    /// The controller proved itself; the host's word on that is to come.
    Answered,
    /// Both are satisfied.
    Done,
    /// A failure waits to be received.
    Failing(Failure),
    /// It came to nothing.
    Failed(Failure),
}

/// The controller's side of an authentication of one queue.
///
/// Whatever a host sends is answered by a message, if only by that of a failure. Memory is bounded: messages are looked at up to
/// [`MESSAGE_BYTES`](super::MESSAGE_BYTES) at most, and one exponent is kept.
pub struct Responder {
    keys: Keys,
    names: Names,
    policy: Policy,
    entropy: Box<dyn Entropy>,
    transaction: u16,
    state: State,
}

impl Responder {
    /// A side that expects a host to begin.
    pub fn new(keys: Keys, names: Names, policy: Policy, entropy: Box<dyn Entropy>) -> Responder {
        Responder { keys, names, policy, entropy, transaction: 0, state: State::Start }
    }

    /// Takes the data of an Authentication Send. The command itself succeeds: a failure is received as a message.
    pub fn send(&mut self, bytes: &[u8]) {
        let state = std::mem::replace(&mut self.state, State::Failing(Failure::IncorrectMessage));
        self.state = match state {
            // It is over.
            State::Done | State::Failed(_) | State::Failing(_) => state,
            state => self.take(state, bytes).unwrap_or_else(State::Failing),
        };
    }

    fn take(&mut self, state: State, bytes: &[u8]) -> Result<State, Failure> {
        match (state, Message::decode(bytes)?) {
            (State::Start, Message::Negotiate { transaction, hashes, groups }) => {
                self.transaction = transaction;
                let hash = self.policy.hashes.iter().find(|hash| hashes.contains(hash)).ok_or(Failure::HashUnusable)?;
                let group = self.policy.groups.iter().find(|group| groups.contains(group));
                self.challenge(*hash, *group.ok_or(Failure::GroupUnusable)?).map(State::Challenging)
            }
            (State::Challenged(challenge), Message::Reply { transaction, proof, challenge: theirs, public }) => {
                if transaction != self.transaction || proof.len() != challenge.hash.bytes() {
                    return Err(Failure::IncorrectPayload);
                }
                self.check(&challenge, &proof, theirs, &public)
            }
            (State::Answered, Message::Success2 { transaction }) if transaction == self.transaction => Ok(State::Done),
            (_, Message::Failure2 { failure, .. }) => Ok(State::Failed(failure)),
            _ => Err(Failure::IncorrectMessage),
        }
    }

    fn challenge(&mut self, hash: Hash, group: super::Group) -> Result<Challenge, Failure> {
        let exchange = Exchange::new(group, &mut *self.entropy)?;
        let sequence = sequence_number(&mut *self.entropy)?;
        let mut value = vec![0; hash.bytes()];
        self.entropy.fill(&mut value)?;
        let message = Message::Challenge {
            transaction: self.transaction,
            hash,
            group,
            sequence,
            challenge: value.clone(),
            public: exchange.public.clone(),
        };
        Ok(Challenge { hash, exchange, sequence, value, message })
    }

    /// Looks at a host's proof, and makes ours where the host asks for it.
    fn check(
        &self,
        challenge: &Challenge,
        proof: &[u8],
        theirs: Option<(u32, Vec<u8>)>,
        public: &[u8],
    ) -> Result<State, Failure> {
        let shared = challenge.exchange.agree(public)?;
        let about = |sequence, value, whose| Proof {
            hash: challenge.hash,
            challenge: value,
            shared: shared.as_deref().map(Vec::as_slice),
            sequence,
            transaction: self.transaction,
            names: &self.names,
            whose,
        };
        let key = self.keys.host.key_for(&self.names.host);
        if !about(challenge.sequence, &challenge.value, Whose::Host).is_right(&key, proof) {
            return Err(Failure::Failed);
        }
        let hash_len = challenge.hash.bytes();
        let Some((sequence, value)) = theirs else { return Ok(State::Proven { hash_len, proof: None }) };
        let secret = self.keys.controller.as_ref().ok_or(Failure::Failed)?;
        // A host that sends our own challenge back wants us to do its work.
        if value == challenge.value {
            return Err(Failure::Failed);
        }
        let key: Zeroizing<Vec<u8>> = secret.key_for(&self.names.subsystem);
        let proof = about(sequence, &value, Whose::Controller).make(&key);
        Ok(State::Proven { hash_len, proof: Some(proof) })
    }

    /// The data of an Authentication Receive of so many bytes at most.
    ///
    /// # Errors
    /// The message is longer: it stays to be received.
    pub fn receive(&mut self, max: usize) -> Result<Vec<u8>, TooShort> {
        let transaction = self.transaction;
        let failed = |failure| Message::Failure1 { transaction, failure };
        let message = match &self.state {
            State::Challenging(challenge) => challenge.message.encode(),
            State::Proven { hash_len, proof } => {
                Message::Success1 { transaction, hash_len: *hash_len, proof: proof.clone() }.encode()
            }
            State::Failing(failure) | State::Failed(failure) => failed(*failure).encode(),
            State::Start | State::Challenged(_) | State::Answered | State::Done => {
                failed(Failure::IncorrectMessage).encode()
            }
        };
        if message.len() > max {
            return Err(TooShort);
        }
        let state = std::mem::replace(&mut self.state, State::Failed(Failure::IncorrectMessage));
        self.state = match state {
            State::Challenging(challenge) => State::Challenged(challenge),
            State::Proven { proof: None, .. } | State::Done => State::Done,
            State::Proven { proof: Some(_), .. } => State::Answered,
            State::Failing(failure) | State::Failed(failure) => State::Failed(failure),
            State::Start | State::Challenged(_) | State::Answered => State::Failed(Failure::IncorrectMessage),
        };
        Ok(message)
    }

    /// Whether the host has proven who it is, and is satisfied itself: its queue may be used.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Why it came to nothing, once the host was told, or told us: the connection is to be closed.
    pub fn failure(&self) -> Option<Failure> {
        match self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}
