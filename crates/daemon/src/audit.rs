//! Who changed what: every request that could change anything, a line of JSON each, in a file that is put aside when it is large.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use axum::http::Method;
use serde_json::Value;

use crate::Failure;
use crate::access::Peer;
use crate::alerts::webhook::without_path;
use crate::api::{AuditEntry, Session};
use crate::clock::now_ms;

/// How large the file may become, bytes, before it is put aside; the one that was put aside before goes.
const LARGEST: u64 = 16 << 20;
/// Entries that are remembered for `GET /audit`.
const REMEMBERED: usize = 2000;
/// Characters of a body that are kept.
const BODY: usize = 1000;
/// Keys of bodies whose values are secret.
const SECRET: &[&str] = &["passphrase", "password", "token", "key", "secret"];

/// The log.
pub struct Audit(Mutex<Contents>);

struct Contents {
    path: PathBuf,
    /// The file is put aside when it has become so large, bytes.
    largest: u64,
    file: Option<File>,
    size: u64,
    next: u64,
    last: VecDeque<AuditEntry>,
}

impl Audit {
    /// The log in a file, which goes on where it ended.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: PathBuf) -> Result<Audit, Failure> {
        Audit::with_limit(path, LARGEST)
    }

    fn with_limit(path: PathBuf, largest: u64) -> Result<Audit, Failure> {
        let mut last = VecDeque::new();
        for path in [aside(&path), path.clone()] {
            if let Ok(file) = File::open(&path) {
                // The last line of a crash may be cut; whatever is no entry is left out.
                let lines = BufReader::new(file).lines().map_while(Result::ok);
                for entry in lines.filter_map(|line| serde_json::from_str::<AuditEntry>(&line).ok()) {
                    remember(&mut last, entry);
                }
            }
        }
        let next = last.back().map_or(0, |entry| entry.number + 1);
        let (file, size) = append_to(&path).map_err(|error| Failure::io(&path, &error))?;
        Ok(Audit(Mutex::new(Contents { path, largest, file: Some(file), size, next, last })))
    }

    /// Something was asked for; its number and time are filled in.
    pub fn note(&self, mut entry: AuditEntry) {
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entry.number = contents.next;
        contents.next += 1;
        entry.at_ms = now_ms();
        if let Err(error) = contents.write(&entry) {
            // A line that was cut is ended when the file is opened again.
            contents.file = None;
            tracing::error!("{}: the audit log cannot be written: {error}", contents.path.display());
        }
        remember(&mut contents.last, entry);
    }

    /// At most so many entries before a number, the newest first.
    pub fn before(&self, number: u64, limit: usize) -> Vec<AuditEntry> {
        let contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contents.last.iter().rev().filter(|entry| entry.number < number).take(limit).cloned().collect()
    }
}

impl Contents {
    fn write(&mut self, entry: &AuditEntry) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        if self.file.is_some() && self.size + line.len() as u64 > self.largest {
            // Also where it cannot be put aside, it is better too large than without its newest entries.
            self.file = None;
            if let Err(error) = std::fs::rename(&self.path, aside(&self.path)) {
                tracing::warn!("{}: the audit log cannot be put aside: {error}", self.path.display());
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let (file, size) = append_to(&self.path)?;
                self.size = size;
                none.insert(file)
            }
        };
        file.write_all(&line)?;
        self.size += line.len() as u64;
        Ok(())
    }
}

fn remember(last: &mut VecDeque<AuditEntry>, entry: AuditEntry) {
    if last.len() >= REMEMBERED {
        last.pop_front();
    }
    last.push_back(entry);
}

fn append_to(path: &Path) -> std::io::Result<(File, u64)> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut size = file.metadata()?.len();
    let mut last = [b'\n'];
    if size > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        // A crash cut its last line.
        file.write_all(b"\n")?;
        size += 1;
    }
    Ok((file, size))
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("1.jsonl")
}

/// The entry of a request.
pub fn entry(peer: &Peer, who: Option<&Session>, method: &Method, path: &str, status: u16, body: &[u8]) -> AuditEntry {
    AuditEntry {
        who: who.map(|who| who.name.clone()).unwrap_or_default(),
        role: who.map(|who| who.role),
        via: who.map(|who| who.via),
        peer: peer.to_string(),
        method: method.to_string(),
        path: path.chars().take(BODY).collect(),
        status,
        what: without_secrets(body),
        ..AuditEntry::default()
    }
}

/// A body as text, without what is secret. One that is no JSON may hold anything, so nothing of it is kept.
fn without_secrets(body: &[u8]) -> String {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return String::new() };
    hide(&mut value);
    if value.is_object() || value.is_array() { value.to_string().chars().take(BODY).collect() } else { String::new() }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if SECRET.contains(&key.to_ascii_lowercase().as_str()) && !value.is_null() {
                    *value = Value::String("(hidden)".into());
                } else if key == "url"
                    && let Value::String(url) = value
                {
                    // A webhook's path is often the only secret that it has.
                    *url = without_path(url);
                } else {
                    hide(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_are() {
        let body =
            br#"{"path":"/x","passphrase":"p","smtp":{"password":"q","user":"u"},"hooks":[{"url":"https://a.example.org/t?k","secret":"s","key":null}]}"#;
        let text = without_secrets(body);
        assert!(text.contains("/x") && text.contains("\"u\"") && text.contains("null"), "{text}");
        for secret in ["\"p\"", "\"q\"", "\"s\""] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("\"https://a.example.org\""), "{text}");
        assert_eq!(without_secrets(b"passphrase=p"), "");
        assert_eq!(without_secrets(b"\"p\""), "");
    }

    #[test]
    fn entries_outlive_the_service() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.jsonl");
        let audit = Audit::open(path.clone()).expect("made");
        for number in 0..3 {
            audit.note(AuditEntry { path: format!("/{number}"), ..AuditEntry::default() });
        }
        drop(audit);
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"{\"number\":3,\"cut").expect("written");
        let audit = Audit::open(path.clone()).expect("opened");
        audit.note(AuditEntry { path: "/new".into(), ..AuditEntry::default() });
        drop(audit);
        let audit = Audit::open(path).expect("opened again");
        let paths: Vec<String> = audit.before(u64::MAX, 3).into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["/new", "/2", "/1"]);
        assert_eq!(audit.before(1, 9).len(), 1);
    }

    #[test]
    fn a_large_file_is_put_aside_and_nothing_is_lost() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.jsonl");
        let note = |audit: &Audit, number: u64| {
            audit.note(AuditEntry { path: format!("/{number}"), ..AuditEntry::default() });
        };
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        note(&Audit::open(path.clone()).expect("made"), 0);
        // Room for some ten entries.
        let largest = 10 * size(&path) + 50;
        let audit = Audit::with_limit(path.clone(), largest).expect("opened");
        (1..15).for_each(|number| note(&audit, number));
        let (now, before) = (size(&path), size(&aside(&path)));
        assert!((1..largest).contains(&now) && (1..largest).contains(&before), "{now} bytes, and {before} aside");
        drop(audit);
        let audit = Audit::with_limit(path.clone(), largest).expect("opened");
        let numbers: Vec<u64> = audit.before(u64::MAX, 99).iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, (0..15).rev().collect::<Vec<_>>());
        // Somebody else moved it away.
        std::fs::remove_file(&path).expect("removed");
        (15..30).for_each(|number| note(&audit, number));
        let audit = Audit::with_limit(path, largest).expect("opened");
        assert_eq!(audit.before(u64::MAX, 1)[0].path, "/29");
    }
}
