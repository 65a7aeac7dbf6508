//! Becoming the owner of a device in a store: by the journal that is the owner's, or by taking over.

use std::time::{Duration, UNIX_EPOCH};

use super::anchor::ANCHOR_NAME;
use super::notes::Note;
use super::{Anchor, AnchorId, Answer, Ask, Failure, Notes, Outside};

/// How often each request is tried before the attach is given up.
const ATTEMPTS: u32 = 12;

/// Who wants the device.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// Identity of the journal.
    pub journal: [u8; 16],
    /// Drawn anew for each attach.
    pub attach: u64,
    /// What the host is called.
    pub host: String,
}

/// Whom the device is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// From nobody: the journal is the owner's.
    Own,
    /// From one who released it.
    Released,
    /// From whoever has it: what the owner's journal is ahead is given up.
    TakeOver,
    /// From an owner whose lease is over: the same, if still this very anchor stands there.
    Lapsed(AnchorId),
}

/// A device that was claimed.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Its anchor now.
    pub anchor: Anchor,
    /// What the store says of it.
    pub version: String,
    /// When it was first asked for, by [`Outside::steady_ms`].
    pub asked_ms: u64,
}

/// The last moment whose year has four digits, milliseconds since 1970: an anchor may say anything.
const LAST_MS: u64 = 253_402_300_799_999;

/// A moment in milliseconds since 1970, for people.
fn moment(ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms.min(LAST_MS))).to_string()
}

/// Why the device cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The store does not answer.
    #[error("the object store does not answer: {0}")]
    Store(String),
    /// There is no device at this place.
    #[error("there is no device in the store at this address")]
    Nothing,
    /// What stands there is no anchor.
    #[error("the object `{ANCHOR_NAME}` in the store cannot be used: {0}")]
    Anchor(#[from] super::anchor::NotAnchor),
    /// Another device stands there.
    #[error("another device stands in the store at this address than the journal belongs to")]
    Stranger,
    /// Another has the device.
    #[error(
        "host `{host}` has the device, as owner {epoch}; its store is as of {} and was then {ahead_bytes} bytes behind its journal",
        moment(*written_ms)
    )]
    Owned {
        /// What the owner's host is called.
        host: String,
        /// The owner epoch.
        epoch: u32,
        /// When it last wrote the anchor, milliseconds since 1970.
        written_ms: u64,
        /// By how much its journal was ahead then.
        ahead_bytes: u64,
    },
    /// The journal is an older copy of itself.
    #[error("the journal is older than the store: it knows commits up to {known}, and the store has commit {found}")]
    OldJournal {
        /// The newest that the journal knows.
        known: u64,
        /// The one in the store.
        found: u64,
    },
    /// The owner wrote its anchor once more.
    #[error("host `{0}` has renewed its lease, or another host has the device by now")]
    Renewed(String),
    /// Somebody else claimed it at the same moment.
    #[error("host `{0}` took the device at the same moment")]
    Lost(String),
    /// There is a device already where a new one is to be made.
    #[error("there is a device in the store at this address already")]
    Exists,
    /// The store replaces the anchor although the condition of the request is not met.
    #[error(
        "the object store ignores the condition `{0}` of a PUT: it replaced the object `{ANCHOR_NAME}` where the answer should have been 412 (Precondition Failed), so two hosts could write to the device at the same time"
    )]
    Careless(&'static str),
    /// The notes cannot be written.
    #[error("the journal's notes: {0}")]
    Notes(String),
}

/// Asks, and waits for the answer.
pub fn call(outside: &mut dyn Outside, ask: Ask) -> Answer {
    outside.ask(u64::MAX, ask);
    loop {
        match outside.answer() {
            Some((u64::MAX, answer)) => return answer,
            Some(_) => {}
            None => outside.wait(),
        }
    }
}

/// Reads the anchor, with its version; `None` where there is none.
///
/// # Errors
/// The store does not answer, or what stands there is no anchor.
pub fn look(outside: &mut dyn Outside) -> Result<Option<(Anchor, Vec<u8>, String)>, ClaimError> {
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        match call(outside, Ask::Fetch) {
            Answer::Anchor(bytes, version) => return Ok(Some((Anchor::decode(&bytes)?, bytes, version))),
            Answer::Failed(Failure::Missing) => return Ok(None),
            Answer::Failed(failure) => last = failure.to_string(),
            _ => last = "an answer that makes no sense".into(),
        }
        rest(outside, attempt);
    }
    Err(ClaimError::Store(last))
}

/// Waits before the next attempt.
fn rest(outside: &mut dyn Outside, attempt: u32) {
    let until = outside.now_ms() + (50 << attempt.min(6));
    while outside.now_ms() < until {
        outside.wait();
    }
}

/// Puts an anchor in the place of the one of this version (or where there is none), and finds out what became of it.
fn put(outside: &mut dyn Outside, anchor: &Anchor, expected: Option<String>) -> Result<String, ClaimError> {
    let bytes = anchor.encode();
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        match call(outside, Ask::Swap { bytes: bytes.clone(), expected: expected.clone() }) {
            Answer::Swapped(version) => return Ok(version),
            Answer::Failed(Failure::Precondition) => {
                // It may be ours: an attempt whose answer was lost.
                return match look(outside)? {
                    Some((_, found, version)) if found == bytes => Ok(version),
                    Some((found, ..)) => Err(ClaimError::Lost(found.host)),
                    None => Err(ClaimError::Nothing),
                };
            }
            // Nothing is where the anchor is to go: no bucket, or somebody deletes what is in it.
            Answer::Failed(Failure::Missing) => return Err(ClaimError::Store("there is no such bucket".into())),
            Answer::Failed(failure) => last = failure.to_string(),
            _ => last = "an answer that makes no sense".into(),
        }
        rest(outside, attempt);
    }
    Err(ClaimError::Store(last))
}

/// Puts the first anchor of a new device, in a store that keeps conditions: nothing else keeps a
/// second owner out.
///
/// # Errors
/// There is an anchor already, the store ignores conditions, or it does not answer. Then nothing is
/// left in the store.
pub fn found(outside: &mut dyn Outside, anchor: &Anchor) -> Result<(), ClaimError> {
    if look(outside)?.is_some() {
        return Err(ClaimError::Exists);
    }
    let version = match put(outside, anchor, None) {
        Ok(version) => version,
        Err(ClaimError::Lost(_)) => return Err(ClaimError::Exists),
        Err(error) => return Err(error),
    };
    let bytes = anchor.encode();
    let probed =
        refuses(outside, &bytes, "If-None-Match", None).and_then(|()| refuses_version(outside, &bytes, &version));
    if probed.is_err() {
        // The anchor is this call's own. Should the deletion fail as well, the first error is the
        // one to report.
        let _ = call(outside, Ask::Delete { name: ANCHOR_NAME.into() });
    }
    probed
}

/// Checks that the store does not replace the anchor, which has these bytes and this version, on the
/// condition that it has another version.
fn refuses_version(outside: &mut dyn Outside, bytes: &[u8], version: &str) -> Result<(), ClaimError> {
    match another(version) {
        Some(other) => refuses(outside, bytes, "If-Match", Some(other)),
        None => Ok(()),
    }
}

/// Checks that the store does not replace the anchor under a condition that is not met. The probe
/// puts the bytes that stand there, so a store that ignores the condition loses nothing by it.
fn refuses(
    outside: &mut dyn Outside,
    bytes: &[u8],
    condition: &'static str,
    expected: Option<String>,
) -> Result<(), ClaimError> {
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        match call(outside, Ask::Swap { bytes: bytes.to_vec(), expected: expected.clone() }) {
            Answer::Failed(Failure::Precondition) => return Ok(()),
            Answer::Swapped(_) => return Err(ClaimError::Careless(condition)),
            Answer::Failed(failure) => last = failure.to_string(),
            _ => last = "an answer that makes no sense".into(),
        }
        rest(outside, attempt);
    }
    Err(ClaimError::Store(last))
}

/// A version that no object has, in the form of this one: each decimal digit is the next one, and
/// so is each hexadecimal letter. `None` where the version has neither.
fn another(version: &str) -> Option<String> {
    let next = |letter: char| match letter {
        '9' => '0',
        'f' => 'a',
        '0'..='8' | 'a'..='e' => char::from(letter as u8 + 1),
        other => other,
    };
    let other: String = version.chars().map(next).collect();
    (other != version).then_some(other)
}

/// Whether this claim is good for this anchor.
///
/// # Errors
/// Why it is not.
pub fn permits(anchor: &Anchor, claim: Claim, notes: &Notes) -> Result<(), ClaimError> {
    if anchor.device != notes.head.device {
        return Err(ClaimError::Stranger);
    }
    let owned = || ClaimError::Owned {
        host: anchor.host.clone(),
        epoch: anchor.epoch,
        written_ms: anchor.written_ms,
        ahead_bytes: anchor.ahead_bytes,
    };
    match claim {
        Claim::Own if anchor.journal != notes.head.journal => Err(owned()),
        Claim::Own if anchor.commit > notes.commit => {
            Err(ClaimError::OldJournal { known: notes.commit, found: anchor.commit })
        }
        Claim::Released if !anchor.released => Err(owned()),
        Claim::Lapsed(id) if anchor.id() != id => Err(ClaimError::Renewed(anchor.host.clone())),
        Claim::Own | Claim::Released | Claim::TakeOver | Claim::Lapsed(_) => Ok(()),
    }
}

/// Makes the claimant the owner of the device that stands in the store, and the notes say so first. What the store holds stays as it is.
///
/// # Errors
/// Another has it, the store ignores conditions, or it does not answer.
pub fn claim(outside: &mut dyn Outside, who: &Claimant, how: Claim, notes: &mut Notes) -> Result<Claimed, ClaimError> {
    let mut lost = ClaimError::Nothing;
    for _ in 0..ATTEMPTS {
        let (old, bytes, version) = look(outside)?.ok_or(ClaimError::Nothing)?;
        permits(&old, how, notes)?;
        // Before anything is changed.
        refuses_version(outside, &bytes, &version)?;
        let anchor = Anchor {
            journal: who.journal,
            attach: who.attach,
            host: who.host.clone(),
            // Above what an attempt of this journal may have claimed of which nobody knows what became.
            epoch: old.epoch.max(notes.epoch) + 1,
            commit: old.commit.max(notes.commit) + 1,
            renewal: 0,
            released: false,
            written_ms: outside.now_ms(),
            ahead_bytes: 0,
            limits: notes.head.limits,
            ..old
        };
        let begun = Note::Begun { epoch: anchor.epoch, commit: anchor.commit };
        if let Answer::Failed(failure) = call(outside, Ask::Note { bytes: begun.encode().to_vec() }) {
            return Err(ClaimError::Notes(failure.to_string()));
        }
        notes.add(begun);
        let asked_ms = outside.steady_ms();
        match put(outside, &anchor, Some(version)) {
            Ok(version) => return Ok(Claimed { anchor, version, asked_ms }),
            // An anchor of the owner before that was under way came first: whether the claim is good for that one is asked again.
            Err(error @ ClaimError::Lost(_)) => lost = error,
            Err(error) => return Err(error),
        }
    }
    Err(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_for_people_whatever_an_anchor_says() {
        assert_eq!((moment(0), moment(u64::MAX)), ("1970-01-01T00:00:00Z".into(), "9999-12-31T23:59:59Z".into()));
    }
}
