//! Other hosts' services: where they are, whether they answer, and requests that are passed on to them.

pub mod fleet;
pub mod moving;
pub mod passing;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Uri;
use serde::{Deserialize, Serialize};

use crate::api::{HERE, HostView, NewHost};
use crate::remote::{self, Remote, Trust};
use crate::{Failure, names, stored};

pub use watch::watch;

/// Hosts at most.
const MOST: usize = 64;

/// A host as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    name: String,
    address: String,
    key: String,
    #[serde(default)]
    certificate: Option<String>,
}

struct Host {
    kept: Kept,
    /// Made once: what is trusted need not be put together for each request, and handshakes go on where the last one ended.
    way: Result<Arc<Way>, Failure>,
    view: HostView,
}

/// How a host is asked.
pub struct Way {
    /// Its service.
    pub remote: Remote,
    /// Our key there.
    pub key: String,
}

/// The hosts.
pub struct Hosts {
    path: PathBuf,
    hosts: Mutex<Vec<Host>>,
    /// What stores said lately of devices that no watched host has.
    looks: fleet::Looks,
    /// Devices on their way from host to host.
    moves: moving::Moves,
}

impl Kept {
    fn way(&self) -> Result<Way, Failure> {
        let uri = address(&self.address)?;
        let trust = self.certificate.clone().map_or(Trust::System, Trust::These);
        Ok(Way { remote: Remote::new(&uri, &trust)?, key: self.key.clone() })
    }

    fn host(self) -> Host {
        let view = HostView { name: self.name.clone(), address: self.address.clone(), ..HostView::default() };
        Host { way: self.way().map(Arc::new), kept: self, view }
    }
}

fn address(text: &str) -> Result<Uri, Failure> {
    let wrong = |what: String| {
        Failure::invalid(format!("address: '{}': {what}", text.escape_debug()))
            .help("write it like https://db1.example.org:7420")
    };
    let uri: Uri = text.parse().map_err(|error| wrong(format!("{error}")))?;
    let (host, _, secure) = remote::parse(&uri)?;
    if !secure && !remote::is_near(&host) {
        return Err(wrong("its key would go over the network in the clear; use https".into()));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("it has a path".into()));
    }
    Ok(uri)
}

impl Hosts {
    /// Those that are kept in a directory.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn open(directory: &Path) -> Result<Hosts, Failure> {
        let path = directory.join("hosts.json");
        let kept: Vec<Kept> = stored::read(&path)?;
        let hosts = Mutex::new(kept.into_iter().map(Kept::host).collect());
        Ok(Hosts { path, hosts, looks: fleet::Looks::default(), moves: moving::Moves::default() })
    }

    fn hosts(&self) -> MutexGuard<'_, Vec<Host>> {
        // Whole between any two statements.
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    pub fn views(&self) -> Vec<HostView> {
        self.hosts().iter().map(|host| host.view.clone()).collect()
    }

    /// How a host is asked.
    ///
    /// # Errors
    /// There is none of this name, or somebody edited its address or certificate into something else.
    pub fn way(&self, name: &str) -> Result<Arc<Way>, Failure> {
        let way = self.hosts().iter().find(|host| host.kept.name == name).map(|host| host.way.clone());
        way.unwrap_or_else(|| Err(unknown(name)))
    }

    /// A new host.
    ///
    /// # Errors
    /// Its name is taken, its address or certificate make no sense, or it cannot be kept.
    pub fn add(&self, new: NewHost) -> Result<HostView, Failure> {
        names::check("host", &new.name)?;
        if new.name == HERE {
            return Err(Failure::invalid(format!("'{HERE}' is what this host is called")).help("choose another name"));
        }
        if new.key.is_empty() || new.key.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(Failure::invalid("key: it is empty or has spaces in it")
                .help("on that host `vsl account key NAME` makes one"));
        }
        let kept = Kept { name: new.name, address: new.address, key: new.key, certificate: new.certificate };
        let host = kept.host();
        host.way.clone()?;
        let kept = &host.kept;
        let mut hosts = self.hosts();
        if hosts.iter().any(|host| host.kept.name == kept.name) {
            return Err(Failure::conflict(format!("there is a host '{}' already", kept.name)).help("remove it first"));
        }
        if hosts.len() >= MOST {
            return Err(Failure::conflict(format!("there are {MOST} hosts already")).help("remove one first"));
        }
        let all: Vec<&Kept> = hosts.iter().map(|host| &host.kept).chain([kept]).collect();
        stored::write(&self.path, &all)?;
        let view = host.view.clone();
        hosts.push(host);
        Ok(view)
    }

    /// A host goes.
    ///
    /// # Errors
    /// There is none of this name, or that cannot be kept.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let mut hosts = self.hosts();
        let left: Vec<&Kept> = hosts.iter().map(|host| &host.kept).filter(|kept| kept.name != name).collect();
        if left.len() == hosts.len() {
            return Err(unknown(name));
        }
        stored::write(&self.path, &left)?;
        hosts.retain(|host| host.kept.name != name);
        Ok(())
    }

    /// What was found out about a host.
    fn found(&self, name: &str, change: impl FnOnce(&mut HostView)) {
        if let Some(host) = self.hosts().iter_mut().find(|host| host.kept.name == name) {
            change(&mut host.view);
        }
    }
}

fn unknown(name: &str) -> Failure {
    Failure::not_found(format!("there is no host '{}'", name.escape_debug())).help("`vsl hosts` lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_kept_and_keys_stay_here() {
        let directory = tempfile::tempdir().expect("a directory");
        let hosts = Hosts::open(directory.path()).expect("none yet");
        let new = |name: &str, address: &str| NewHost {
            name: name.into(),
            address: address.into(),
            key: "k".repeat(64),
            certificate: None,
        };
        hosts.add(new("db1", "http://127.0.0.1:7421")).expect("added");
        hosts.add(new("db1", "http://127.0.0.1:7422")).expect_err("taken");
        for address in ["http://192.0.2.1:7420", "http://db1:7420", "127.0.0.1:7420", "https://db1:7420/x", "ftp://db1"]
        {
            assert!(hosts.add(new("db2", address)).is_err(), "{address}");
        }
        hosts.add(new("a/b", "https://db1:7420")).expect_err("no plain name");
        hosts.add(new("here", "https://db1:7420")).expect_err("this host");
        hosts.add(NewHost { key: "a b".into(), ..new("db2", "https://db1:7420") }).expect_err("no key");
        hosts
            .add(NewHost { certificate: Some("x".into()), ..new("db2", "https://db1:7420") })
            .expect_err("no certificate");
        let hosts = Hosts::open(directory.path()).expect("read");
        assert_eq!(hosts.views().len(), 1);
        assert!(!format!("{:?}", hosts.views()).contains("kkk"));
        assert!(hosts.way("db1").is_ok());
        hosts.remove("db1").expect("removed");
        hosts.remove("db1").expect_err("gone");
    }
}
