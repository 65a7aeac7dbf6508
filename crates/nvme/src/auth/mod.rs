//! DH-HMAC-CHAP: a host proves with a shared secret that it is who it says, and the controller may have to prove it, too.
//!
//! Neither side sends its secret. The controller sends a challenge, the host answers with an HMAC of it under the host's key, and
//! may send a challenge of its own, which the controller answers under the controller's key. With a Diffie-Hellman group the
//! challenge is mixed with a value that both sides agree on, so that who listens cannot try out secrets at leisure.
//!
//! [`Responder`] is the controller's side and [`Requester`] the host's; messages go in and come out, by Authentication Send and
//! Authentication Receive. [`Secret`] reads and writes the form that `nvme gen-dhchap-key` prints.
//!
//! Source: NVM Express Base Specification 2.0, 8.13 (DH-HMAC-CHAP: 8.13.5). Secure channel concatenation (TLS) is not offered.
//!
//! ```
//! use nvme::auth::{Keys, Names, Policy, Requester, Responder, Secret, SystemEntropy};
//!
//! let secret: Secret = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:".parse().unwrap();
//! let keys = Keys { host: secret, controller: None };
//! let names = Names { host: "nqn.2014-08.org.example:host".into(), subsystem: "nqn.2014-08.org.example:disk".into() };
//! let (policy, entropy) = (Policy::default(), SystemEntropy::default());
//! let mut controller = Responder::new(keys.clone(), names.clone(), policy.clone(), Box::new(entropy.clone()));
//! let mut host = Requester::new(keys, names, policy, Box::new(entropy));
//!
//! controller.send(&host.negotiate());
//! let reply = host.challenged(&controller.receive(4096).unwrap()).unwrap();
//! controller.send(&reply);
//! assert!(host.answered(&controller.receive(4096).unwrap()).unwrap().is_none(), "nothing more to say");
//! assert!(controller.is_done());
//! ```

mod group;
mod message;
mod proof;
mod requester;
mod responder;
mod secret;

use std::sync::Arc;

use ring::rand::SecureRandom as _;

pub use group::Group;
pub use proof::Hash;
pub use requester::Requester;
pub use responder::{Responder, TooShort};
pub use secret::{BadSecret, Secret};

/// The longest message of any side, bytes: a reply with a challenge, in the largest group.
pub const MESSAGE_BYTES: usize = 16 + 2 * 64 + 1024;

/// The secrets between a host and a subsystem.
#[derive(Clone, Debug)]
pub struct Keys {
    /// With which the host proves who it is.
    pub host: Secret,
    /// With which the controller does, if it has to.
    pub controller: Option<Secret>,
}

/// Who talks to whom: part of every proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The host's NQN.
    pub host: String,
    /// The subsystem's NQN.
    pub subsystem: String,
}

/// What a side agrees to, the best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Hash functions.
    pub hashes: Vec<Hash>,
    /// Diffie-Hellman groups.
    pub groups: Vec<Group>,
}

impl Default for Policy {
    /// All there are: SHA-256 first, and a group of 3,072 bits; without a group only where the other side has none.
    fn default() -> Policy {
        Policy { hashes: Hash::ALL.to_vec(), groups: Group::BY_PREFERENCE.to_vec() }
    }
}

/// Why an authentication failed (reason code explanations, 8.13.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Failure {
    /// The proof is wrong, or there is no secret to make it with.
    #[error("the other side did not prove that it has the secret")]
    Failed = 0x01,
    /// No common protocol.
    #[error("no authentication protocol in common")]
    ProtocolUnusable = 0x02,
    /// A secure channel is wanted by one side only.
    #[error("secure channel concatenation is not supported")]
    ConcatenationMismatch = 0x03,
    /// No common hash function.
    #[error("no hash function in common")]
    HashUnusable = 0x04,
    /// No common group, or a value that is none of its members.
    #[error("no Diffie-Hellman group in common, or no value of it")]
    GroupUnusable = 0x05,
    /// A message whose parts do not fit.
    #[error("an authentication message is malformed")]
    IncorrectPayload = 0x06,
    /// A message that does not belong here.
    #[error("an authentication message out of order")]
    IncorrectMessage = 0x07,
}

impl Failure {
    /// By its number; those that there are not count as [`Failure::Failed`].
    fn of(number: u8) -> Failure {
        const ALL: [Failure; 7] = [
            Failure::Failed,
            Failure::ProtocolUnusable,
            Failure::ConcatenationMismatch,
            Failure::HashUnusable,
            Failure::GroupUnusable,
            Failure::IncorrectPayload,
            Failure::IncorrectMessage,
        ];
        ALL.into_iter().find(|failure| *failure as u8 == number).unwrap_or(Failure::Failed)
    }
}

/// Where challenges and exponents come from: bytes that nobody can foresee.
pub trait Entropy: Send {
    /// Fills a buffer.
    ///
    /// # Errors
    /// There is no randomness to be had: the authentication fails.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure>;
}

/// The system's own random bytes.
#[derive(Clone, Debug)]
pub struct SystemEntropy(Arc<ring::rand::SystemRandom>);

impl Default for SystemEntropy {
    fn default() -> SystemEntropy {
        SystemEntropy(Arc::new(ring::rand::SystemRandom::new()))
    }
}

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        self.0.fill(bytes).map_err(|_| Failure::Failed)
    }
}

/// A sequence number: never 0, which says that there is no challenge.
fn sequence_number(entropy: &mut dyn Entropy) -> Result<u32, Failure> {
    let mut bytes = [0; 4];
    entropy.fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes).max(1))
}

#[cfg(test)]
mod tests;
