//! Object stores as a device on objects needs them: S3 and what speaks it, Azure, Google Cloud, and directories.
//!
//! **What it is for.** [`media::object`] decides what is uploaded and when, and knows no network. This crate carries it out, on threads of its
//! own: [`Client`] takes requests from a device's thread and rings that thread's bell when it has answers.
//!
//! **What it promises.** Each request is tried once, with a deadline: what is tried again, and when, the plan decides, which is tested against a
//! store that misbehaves. The anchor is replaced under a condition that the store checks. Memory is bounded, because the plan bounds what is under
//! way.
//!
//! **Where to start.** [`Store::open`], then [`Client::new`]. Streams such as backups are an [`Archive`], which asks again by itself.

mod address;
mod archive;
mod client;
mod directory;
mod remote;

pub use address::{Address, AddressError};
pub use archive::{Archive, Download, Upload};
pub use client::Client;

use std::path::Path;
use std::time::Duration;

use media::object::{Answer, Ask, Failure, Look, NoLook, Notes, NotesFile, Outside};
use media::ring::SharedRing;

/// Opens the store of a journal, and writes its notes anew: what `device::use_stores` takes.
///
/// # Errors
/// The address makes no sense, or the notes cannot be written, in words.
pub fn open(journal: &Path, notes: &Notes, ring: &SharedRing) -> Result<Box<dyn Outside>, String> {
    let address = Address::parse(&notes.head.url).map_err(|error| error.to_string())?;
    let store = || Store::open(&address, Some(&notes.head.endpoint)).map_err(|error| error.to_string());
    let stores = [store()?, store()?];
    let path = NotesFile::path(journal);
    let file = NotesFile::write(journal, notes).map_err(|error| format!("{}: {error}", path.display()))?;
    let client = Client::new(stores, file, ring).map_err(|error| error.to_string())?;
    Ok(Box::new(client))
}

/// Looks at the anchor of a device, for so long at most: what `device::use_stores` takes, too.
///
/// # Errors
/// The address makes no sense, or the store does not answer.
pub fn look(url: &str, endpoint: &str, known: Option<&str>, patience: Duration) -> Result<Look, NoLook> {
    let wrong = |error: AddressError| NoLook::Wrong(error.to_string());
    let address = Address::parse(url).map_err(wrong)?;
    let store = Store::open(&address, Some(endpoint)).map_err(wrong)?;
    let runtime = client::runtime().map_err(|error| NoLook::Silent(error.to_string()))?;
    // The timer belongs to the runtime.
    let looked = runtime.block_on(async { tokio::time::timeout(patience, store.look(known)).await });
    let looked = looked.map_err(|_| NoLook::Silent(format!("nothing came in {} s", patience.as_secs_f32())))?;
    looked.map_err(|failure| NoLook::Silent(failure.to_string()))
}

/// How deep devices are looked for below a prefix, and how many are looked at.
const DEPTH: usize = 4;
const DEVICES: usize = 1000;

/// A store, opened.
#[derive(Clone, Debug)]
pub enum Store {
    /// Over the network.
    Remote(remote::Remote),
    /// A directory.
    Directory(directory::Directory),
}

impl Store {
    /// The store at an address, at the endpoint that is named, or else the one that the address and the environment imply. Credentials come from
    /// the environment.
    ///
    /// # Errors
    /// The address, the endpoint or the environment make no sense.
    pub fn open(address: &Address, endpoint: Option<&str>) -> Result<Store, AddressError> {
        match address {
            Address::Directory(path) => Ok(Store::Directory(directory::Directory::new(path))),
            Address::Remote(url) => remote::Remote::open(url, endpoint).map(Store::Remote),
        }
    }

    /// Reads the anchor. Waits for the store.
    ///
    /// # Errors
    /// The store does not answer, or there is none.
    pub fn anchor(&self) -> Result<Vec<u8>, Failure> {
        let runtime = client::runtime().map_err(|error| Failure::Other(error.to_string()))?;
        match runtime.block_on(self.perform(Ask::Fetch)) {
            Answer::Anchor(bytes, _) => Ok(bytes),
            Answer::Failed(failure) => Err(failure),
            _ => Err(Failure::Other("an answer that makes no sense".into())),
        }
    }

    /// Looks at the anchor, whose content is sent only where it is not the version that is known.
    async fn look(&self, known: Option<&str>) -> Result<Look, Failure> {
        match self {
            Store::Remote(remote) => remote.look(known).await,
            Store::Directory(_) => match self.perform(Ask::Fetch).await {
                Answer::Anchor(_, version) if known == Some(&version) => Ok(Look::Same),
                Answer::Anchor(bytes, version) => Ok(Look::Found(bytes, version)),
                Answer::Failed(Failure::Missing) => Ok(Look::Missing),
                Answer::Failed(failure) => Err(failure),
                _ => Err(Failure::Other("an answer that makes no sense".into())),
            },
        }
    }

    /// Does one thing. Notes are none of a store's.
    async fn perform(&self, ask: Ask) -> Answer {
        match self {
            Store::Remote(remote) => remote.perform(ask).await,
            Store::Directory(directory) => {
                let directory = directory.clone();
                let done = tokio::task::spawn_blocking(move || directory.perform(ask)).await;
                done.unwrap_or_else(|error| Answer::Failed(Failure::Other(error.to_string())))
            }
        }
    }

    /// Makes an object, and says whether it was made: where one of that name is there already, it stays.
    async fn put_new(&self, name: String, bytes: Vec<u8>) -> Result<bool, Failure> {
        match self {
            Store::Remote(remote) => remote.put_new(&name, bytes).await,
            Store::Directory(directory) => {
                let directory = directory.clone();
                let done = tokio::task::spawn_blocking(move || directory.put_new(&name, &bytes)).await;
                done.map_err(|error| Failure::Other(error.to_string()))?
            }
        }
    }

    /// The names of all objects below the prefix. Waits for the store.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn list(&self) -> Result<Vec<String>, Failure> {
        let runtime = client::runtime().map_err(|error| Failure::Other(error.to_string()))?;
        runtime.block_on(self.names())
    }

    /// The devices below the prefix: each by its path there, with its anchor. Waits for the store.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn devices(&self) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let runtime = client::runtime().map_err(|error| Failure::Other(error.to_string()))?;
        runtime.block_on(async {
            let (mut found, mut left) = (Vec::new(), vec![String::new()]);
            while let Some(path) = left.pop().filter(|_| found.len() < DEVICES) {
                let (has_anchor, below) = match self {
                    Store::Remote(remote) => remote.level(&path).await?,
                    Store::Directory(directory) => directory.level(&path)?,
                };
                if !has_anchor {
                    // A device holds no other one.
                    left.extend(below.into_iter().filter(|path| path.split('/').count() <= DEPTH));
                    continue;
                }
                if let Answer::Anchor(bytes, _) = self.below(&path).perform(Ask::Fetch).await {
                    found.push((path, bytes));
                }
            }
            found.sort();
            Ok(found)
        })
    }

    fn below(&self, path: &str) -> Store {
        match self {
            Store::Remote(remote) => Store::Remote(remote.below(path)),
            Store::Directory(directory) => Store::Directory(directory.below(path)),
        }
    }

    async fn names(&self) -> Result<Vec<String>, Failure> {
        match self {
            Store::Remote(remote) => remote.names().await,
            Store::Directory(directory) => directory.names(),
        }
    }
}
