//! NVMe over TCP, each side against the bytes of a hostile other.

pub mod auth;
pub mod host;
pub mod queue;
pub mod session;

use nvme::pdu::{self, Digests, Head};

use crate::choices::Choices;

/// A unit with data, and their digest where there is one.
fn unit(head: &Head, data: &[u8], digests: Digests) -> Vec<u8> {
    let mut unit = [head.as_bytes(), data].concat();
    if digests.data && !data.is_empty() {
        unit.extend(pdu::digest(data));
    }
    unit
}

fn digests(choices: &mut Choices) -> Digests {
    let bits = if choices.one_in(2) { choices.below(4) } else { 0 };
    Digests { header: bits & 1 != 0, data: bits & 2 != 0 }
}

/// Changes a byte of a unit, or where it ends; rarely. Whether it did.
fn garble(choices: &mut Choices, bytes: &mut Vec<u8>, rarely: usize) -> bool {
    if bytes.is_empty() || !choices.one_in(rarely) {
        return false;
    }
    match choices.below(4) {
        0 => bytes.truncate(choices.below(bytes.len())),
        1 => bytes.extend(choices.raw(32)),
        // Headers matter more than data.
        2 => {
            let at = choices.below(bytes.len().min(24));
            bytes[at] = choices.hostile(bytes[at].into()) as u8;
        }
        _ => {
            let at = choices.below(bytes.len());
            bytes[at] ^= 1 << choices.below(8);
        }
    }
    true
}
