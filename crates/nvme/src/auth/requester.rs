//! The host's side.

use super::group::Exchange;
use super::message::Message;
use super::proof::{Proof, Whose};
use super::{Entropy, Failure, Keys, Names, Policy, sequence_number};

/// The proof that a controller owes.
struct Owed {
    hash_len: usize,
    /// The proof itself, where the controller has to make one.
    proof: Option<Expected>,
}

struct Expected {
    hash: super::Hash,
    sequence: u32,
    value: Vec<u8>,
    shared: Option<zeroize::Zeroizing<Vec<u8>>>,
}

/// The host's side of an authentication of one queue: [`Requester::negotiate`], [`Requester::challenged`], [`Requester::answered`].
pub struct Requester {
    keys: Keys,
    names: Names,
    policy: Policy,
    entropy: Box<dyn Entropy>,
    transaction: u16,
    owed: Option<Owed>,
}

impl Requester {
    /// A side that begins. The controller has to prove itself where the keys have its secret.
    pub fn new(keys: Keys, names: Names, policy: Policy, entropy: Box<dyn Entropy>) -> Requester {
        Requester { keys, names, policy, entropy, transaction: 0, owed: None }
    }

    /// The first message to send.
    pub fn negotiate(&mut self) -> Vec<u8> {
        self.transaction = self.transaction.wrapping_add(1);
        let Policy { hashes, groups } = self.policy.clone();
        Message::Negotiate { transaction: self.transaction, hashes, groups }.encode()
    }

    /// Takes the challenge, and gives the reply to send.
    ///
    /// # Errors
    /// The controller refuses, or chose what was not offered.
    pub fn challenged(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let (transaction, hash, group, sequence, challenge, public) = match Message::decode(bytes)? {
            Message::Challenge { transaction, hash, group, sequence, challenge, public } => {
                (transaction, hash, group, sequence, challenge, public)
            }
            Message::Failure1 { failure, .. } => return Err(failure),
            _ => return Err(Failure::IncorrectMessage),
        };
        if transaction != self.transaction {
            return Err(Failure::IncorrectMessage);
        }
        if !self.policy.hashes.contains(&hash) {
            return Err(Failure::HashUnusable);
        }
        if !self.policy.groups.contains(&group) {
            return Err(Failure::GroupUnusable);
        }
        let exchange = Exchange::new(group, &mut *self.entropy)?;
        let shared = exchange.agree(&public)?;
        let proof = Proof {
            hash,
            challenge: &challenge,
            shared: shared.as_deref().map(Vec::as_slice),
            sequence,
            transaction,
            names: &self.names,
            whose: Whose::Host,
        };
        let proof = proof.make(&self.keys.host.key_for(&self.names.host));
        let ours = if self.keys.controller.is_some() {
            let mut value = vec![0; hash.bytes()];
            self.entropy.fill(&mut value)?;
            Some((sequence_number(&mut *self.entropy)?, value))
        } else {
            None
        };
        let expected = ours.clone().map(|(sequence, value)| Expected { hash, sequence, value, shared });
        self.owed = Some(Owed { hash_len: hash.bytes(), proof: expected });
        Ok(Message::Reply { transaction, proof, challenge: ours, public: exchange.public }.encode())
    }

    /// Takes the controller's answer to the reply, and gives the last message to send, if there is one.
    ///
    /// # Errors
    /// The controller refuses, or did not prove itself. [`Requester::give_up`] makes the message that tells it so.
    pub fn answered(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let (transaction, hash_len, proof) = match Message::decode(bytes)? {
            Message::Success1 { transaction, hash_len, proof } => (transaction, hash_len, proof),
            Message::Failure1 { failure, .. } => return Err(failure),
            _ => return Err(Failure::IncorrectMessage),
        };
        let owed = self.owed.take().ok_or(Failure::IncorrectMessage)?;
        if transaction != self.transaction || hash_len != owed.hash_len {
            return Err(Failure::IncorrectPayload);
        }
        let (Some(expected), Some(secret)) = (owed.proof, &self.keys.controller) else { return Ok(None) };
        let about = Proof {
            hash: expected.hash,
            challenge: &expected.value,
            shared: expected.shared.as_deref().map(Vec::as_slice),
            sequence: expected.sequence,
            transaction,
            names: &self.names,
            whose: Whose::Controller,
        };
        let key = secret.key_for(&self.names.subsystem);
        if !proof.is_some_and(|proof| about.is_right(&key, &proof)) {
            return Err(Failure::Failed);
        }
        Ok(Some(Message::Success2 { transaction }.encode()))
    }

    /// The message that tells the controller why the host gives up.
    pub fn give_up(&self, failure: Failure) -> Vec<u8> {
        Message::Failure2 { transaction: self.transaction, failure }.encode()
    }
}
