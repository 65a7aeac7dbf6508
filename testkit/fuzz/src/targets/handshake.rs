//! The NBD handshake in memory: any options before and after TLS, under every TLS policy.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

use export::Shape;
use export::nbd::Tls;
use export::nbd::negotiate::{Catalogue, Offer, negotiate};
use export::nbd::stream::Stream;
use rustls::ServerConfig;

use super::wire::{Answers, option, plain, reply};
use super::{Target, choices, wire};
use crate::choices::Choices;

pub const TARGET: Target = Target {
    name: "handshake",
    about: "the NBD handshake: options, names, contexts, lengths, STARTTLS with plain text behind it",
    weight: 200,
    corpus: choices,
    words: &[],
    run,
};

/// What the client sends: one piece in plain text, then one for each TLS session.
struct Client {
    pieces: VecDeque<Vec<u8>>,
    at: usize,
    answers: Vec<u8>,
    /// Where the answers under TLS begin.
    encrypted_from: Option<usize>,
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.pieces.front().map_or(&[][..], |piece| &piece[self.at..]);
        let count = piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&piece[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answers.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Client {
    fn start_tls(&mut self, _: &Arc<ServerConfig>) -> io::Result<()> {
        // Plain text where a TLS record should begin.
        if self.pieces.front().is_some_and(|piece| self.at < piece.len()) || self.pieces.len() < 2 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.pieces.pop_front();
        self.at = 0;
        self.encrypted_from = Some(self.answers.len());
        Ok(())
    }
}

/// The exports, and whether anybody looked at them.
struct Exports {
    asked: Cell<u32>,
}

impl Catalogue for Exports {
    type Claim = ();

    fn names(&self) -> Vec<String> {
        self.asked.set(self.asked.get() + 1);
        vec![String::new(), "disk".into(), "ro".into(), "n".repeat(4096)]
    }

    fn offer(&self, name: &str) -> Option<Offer> {
        self.asked.set(self.asked.get() + 1);
        let shape = Shape { bytes: 1 << 30, sector_bytes: 512, max_request_bytes: 1 << 20, read_only: name == "ro" };
        let known = ["", "disk", "ro"].contains(&name);
        known.then(|| Offer { description: "d".repeat(100), read_only: name == "ro", view: None, shape })
    }

    fn older_snapshots(&self, name: &str) -> Vec<(String, device::SnapshotId)> {
        self.asked.set(self.asked.get() + 1);
        let count = if name == "disk" { 40 } else { 0 };
        (0..count).map(|id| (format!("s:{id}"), id)).collect()
    }

    fn claim(&self, name: &str) -> Option<(Offer, ())> {
        self.offer(name).map(|offer| (offer, ()))
    }
}

fn config() -> Arc<ServerConfig> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let make = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let nobody = Arc::new(rustls::server::ResolvesServerCertUsingSni::new());
        Arc::new(builder.expect("the defaults").with_no_client_auth().with_cert_resolver(nobody))
    };
    Arc::clone(CONFIG.get_or_init(make))
}

fn client(choices: &mut Choices) -> Client {
    let mut pieces = VecDeque::new();
    let mut bytes = Vec::new();
    let flags = if choices.one_in(20) { choices.u32() } else { choices.below(4) as u32 };
    bytes.extend(flags.to_be_bytes());
    while !choices.is_over() {
        let code = wire::option(choices, &mut bytes);
        // Mostly as it should be: behind STARTTLS comes TLS.
        if code == option::STARTTLS && !choices.one_in(6) {
            pieces.push_back(std::mem::take(&mut bytes));
        }
        if choices.one_in(8) {
            plain(&mut bytes, option::STRUCTURED_REPLY, &[]);
        }
        if choices.one_in(40) {
            bytes.truncate(choices.below(bytes.len() + 1));
        }
    }
    pieces.push_back(bytes);
    Client { pieces, at: 0, answers: Vec::new(), encrypted_from: None }
}

fn run(input: &[u8]) {
    let choices = &mut Choices::new(input);
    let tls = match choices.below(3) {
        0 => Tls::Off,
        1 => Tls::On(config()),
        _ => Tls::Require(config()),
    };
    let mut client = client(choices);
    let exports = Exports { asked: Cell::new(0) };
    let agreed = negotiate(&mut client, &exports, &tls);
    if matches!(tls, Tls::Require(_)) && client.encrypted_from.is_none() {
        assert_eq!(exports.asked.get(), 0, "an export was looked at in plain text, though TLS is required");
        assert!(agreed.is_err(), "a client begins in plain text, though TLS is required");
    }
    // Every answer is well-formed, and what was agreed was agreed under TLS.
    let mut answers = Answers(&client.answers);
    assert_eq!(answers.take(18).map(|greeting| &greeting[..16]), Some(&b"NBDMAGICIHAVEOPT"[..]));
    let mut structured = false;
    while answers.0.starts_with(&0x0003_e889_0455_65a9_u64.to_be_bytes()) {
        let at = client.answers.len() - answers.0.len();
        let (code, kind) = answers.option_reply().expect("a whole reply");
        structured |= (code, kind) == (option::STRUCTURED_REPLY, reply::ACK)
            && client.encrypted_from.is_none_or(|from| at >= from);
        if matches!(tls, Tls::Require(_)) && client.encrypted_from.is_none_or(|from| at < from) {
            let harmless = kind == reply::ERR_TLS_REQD || kind == reply::ERR_INVALID || kind == reply::ACK;
            assert!(harmless, "reply {kind:#x} to option {code} in plain text, though TLS is required");
        }
    }
    assert!([0, 10, 134].contains(&answers.0.len()), "{} bytes behind the last reply", answers.0.len());
    if let Ok(agreed) = agreed {
        assert_eq!(agreed.limits.structured, structured, "structured replies");
        assert!(agreed.limits.structured || !agreed.limits.has_contexts, "a context without structured replies");
        assert_eq!(agreed.limits.has_contexts, !agreed.contexts.is_empty());
        assert!(agreed.contexts.len() <= 16, "{} contexts", agreed.contexts.len());
        assert!(agreed.export == "disk" || agreed.contexts.len() < 2, "contexts of another export");
        assert_eq!(agreed.limits.read_only, agreed.export == "ro");
    }
}
