//! NBD as a hostile client writes it: options and requests that are right but for what is chosen to be wrong.

use crate::choices::Choices;

pub const IHAVEOPT: &[u8] = b"IHAVEOPT";
pub use export::nbd::proto::{command, option, reply};

const OPTIONS: &[u32] = &[
    option::EXPORT_NAME,
    option::ABORT,
    option::LIST,
    option::STARTTLS,
    option::INFO,
    option::GO,
    option::STRUCTURED_REPLY,
    option::LIST_META_CONTEXT,
    option::SET_META_CONTEXT,
    4,
    11,
];

/// Names: those that exist, and others.
pub const NAMES: &[&str] = &["", "disk", "ro", "nothing", "disk\0", "dïsk", "../disk", "x"];
const CONTEXTS: &[&str] = &[
    "base:allocation",
    "base:",
    "base",
    ":",
    "",
    "qemu:dirty-bitmap:x",
    "base:allocation\0",
    "openvsl:",
    "openvsl:changed:s:",
    "openvsl:changed:s:7",
];

/// A string of the protocol, whose length may lie.
fn string(choices: &mut Choices, bytes: &mut Vec<u8>, text: &[u8]) {
    let len = text.len() as u64;
    let told = if choices.one_in(12) { choices.hostile(len) } else { len };
    bytes.extend((told as u32).to_be_bytes());
    bytes.extend(text);
}

fn name(choices: &mut Choices) -> Vec<u8> {
    match choices.below(16) {
        0 => vec![b'a'; 4096 + choices.below(3) - 1],
        1 => choices.raw(64).to_vec(),
        _ => choices.pick(NAMES).into(),
    }
}

/// What belongs to an option, more or less.
fn body(choices: &mut Choices, code: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    match code {
        option::EXPORT_NAME => bytes = name(choices),
        option::INFO | option::GO => {
            let name = name(choices);
            string(choices, &mut bytes, &name);
            let count = choices.below(6) as u64;
            let told = if choices.one_in(12) { choices.hostile(count) } else { count };
            bytes.extend((told as u16).to_be_bytes());
            for _ in 0..count {
                bytes.extend((choices.below(5) as u16).to_be_bytes());
            }
        }
        option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
            let name = name(choices);
            string(choices, &mut bytes, &name);
            let count = choices.below(5) as u64;
            let told = if choices.one_in(12) { choices.hostile(count) } else { count };
            bytes.extend((told as u32).to_be_bytes());
            for _ in 0..count {
                let context = choices.pick(CONTEXTS);
                string(choices, &mut bytes, context.as_bytes());
            }
        }
        _ => {}
    }
    if choices.one_in(10) {
        bytes.extend(choices.raw(32));
    }
    if choices.one_in(12) {
        bytes.truncate(choices.below(bytes.len() + 1));
    }
    bytes
}

/// One option; its code.
pub fn option(choices: &mut Choices, bytes: &mut Vec<u8>) -> u32 {
    let code = if choices.one_in(40) { choices.u32() } else { choices.pick(OPTIONS) };
    let body = match choices.below(60) {
        0 => vec![0x41; (64 << 10) + choices.below(3) - 1],
        _ => body(choices, code),
    };
    if choices.one_in(60) {
        bytes.extend(choices.u64().to_be_bytes());
    } else {
        bytes.extend(IHAVEOPT);
    }
    let len = body.len() as u64;
    let told = if choices.one_in(30) { choices.hostile(len) } else { len };
    bytes.extend(code.to_be_bytes());
    bytes.extend((told as u32).to_be_bytes());
    bytes.extend(body);
    code
}

/// An option as it should be.
pub fn plain(bytes: &mut Vec<u8>, code: u32, body: &[u8]) {
    bytes.extend(IHAVEOPT);
    bytes.extend(code.to_be_bytes());
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
}

/// What the server says, taken apart; `None` when it ends early.
pub struct Answers<'a>(pub &'a [u8]);

impl<'a> Answers<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A reply to an option: its code and kind.
    pub fn option_reply(&mut self) -> Option<(u32, u32)> {
        let magic = self.u64()?;
        assert_eq!(magic, 0x0003_e889_0455_65a9, "the magic of a reply to an option");
        let (code, kind, len) = (self.u32()?, self.u32()?, self.u32()?);
        assert!(len <= 5000, "a reply of {len} bytes to option {code}");
        self.take(len as usize)?;
        Some((code, kind))
    }
}
