//! Which hosts may connect, from a file of one line a host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nvme::auth::Secret;
use nvme::fabrics::is_name;

/// The hosts that may connect.
#[derive(Clone, Debug, Default)]
pub enum Hosts {
    /// Whoever reaches the address.
    #[default]
    Anybody,
    /// These, by name.
    Listed(BTreeMap<String, Secrets>),
}

/// What a host has to know.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// The secret by which the host proves who it is (DH-HMAC-CHAP), as `nvme gen-dhchap-key` prints it.
    pub host: Option<Secret>,
    /// The secret by which we prove who we are to it.
    pub controller: Option<Secret>,
}

/// Why a file of hosts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// It cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A line is not what it should be.
    #[error("{path}: line {line}: {what}; expected HOST-NQN, or HOST-NQN SECRET, or HOST-NQN SECRET CONTROLLER-SECRET")]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl Hosts {
    /// Reads a file: a host's name a line, its secret behind it, and behind that the controller's. Empty lines and those that
    /// begin with `#` do not count.
    ///
    /// # Errors
    /// See [`HostsError`].
    pub fn load(path: &Path) -> Result<Hosts, HostsError> {
        let text = std::fs::read_to_string(path).map_err(|error| HostsError::Read { path: path.to_owned(), error })?;
        let mut hosts = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |what: String| HostsError::Line { path: path.to_owned(), line: number + 1, what };
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            if !is_name(name) {
                return Err(wrong(format!("'{name}' is no NQN")));
            }
            let [host, controller] = [words.next(), words.next()];
            if let Some(rest) = words.next() {
                return Err(wrong(format!("'{rest}' is one word too many")));
            }
            let secret =
                |word: Option<&str>| word.map(str::parse::<Secret>).transpose().map_err(|it| wrong(it.to_string()));
            hosts.insert(name.to_owned(), Secrets { host: secret(host)?, controller: secret(controller)? });
        }
        Ok(Hosts::Listed(hosts))
    }

    /// What a host has to know; nothing where it may not connect at all.
    pub fn find(&self, name: &str) -> Option<Secrets> {
        match self {
            Hosts::Anybody => Some(Secrets::default()),
            Hosts::Listed(hosts) => hosts.get(name).cloned(),
        }
    }

    /// Whether every host that may connect is known by a secret.
    pub fn are_known(&self) -> bool {
        matches!(self, Hosts::Listed(hosts) if hosts.values().all(|secrets| secrets.host.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn load(text: &str) -> Result<Hosts, HostsError> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text.as_bytes()).expect("room");
        Hosts::load(file.path())
    }

    const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

    #[test]
    fn only_listed_hosts_may_connect() {
        let hosts = load(&format!("# mine\n\nnqn.a\nnqn.b {SECRET} {SECRET}\n")).expect("sound");
        assert!(hosts.find("nqn.a").is_some_and(|secrets| secrets.host.is_none()));
        let known = hosts.find("nqn.b").and_then(|secrets| secrets.controller);
        assert_eq!(known.map(|secret| secret.to_string()).as_deref(), Some(SECRET));
        assert!(hosts.find("nqn.c").is_none());
        assert!(!hosts.are_known(), "the first has no secret");
        assert!(load(&format!("nqn.a {SECRET}")).expect("sound").are_known());
        assert!(Hosts::Anybody.find("nqn.c").is_some());
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let four = format!("nqn.a {SECRET} {SECRET} d");
        let wrong = [
            ("nqn.a\nuuid:b", "line 2: 'uuid:b' is no NQN"),
            (&four, "'d' is one word"),
            ("nqn.a DHHC-1:00:AAEC:", "line 1: the secret's key"),
        ];
        for (text, expected) in wrong {
            let error = load(text).expect_err("no host").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
