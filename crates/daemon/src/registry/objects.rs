//! Devices on objects: taking one from its store, and what this service knows of who has which.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use device::{Place, Secret, Seen, Taken};
use media::object::{Claim, NoLook, NotesFile};

use super::Registry;
use super::table::Standing;
use crate::api::{FromStore, LookRequest, ObjectsDevice, Owner};
use crate::handle::Handle;
use crate::{Failure, Target};

/// Below the directory of what is remembered: journals of devices for which nobody named a path.
const JOURNALS: &str = "journals";
/// How long a store may take to say who has a device.
const PATIENCE: Duration = Duration::from_secs(10);

/// A device's thread; or its role without one, and how it does in words.
type Found = Result<Handle, (&'static str, String)>;

/// Where the objects of a device lie whose journal this is; nothing where it is no journal.
pub(super) fn place_of(target: &Target) -> Option<Place> {
    let [path] = target.paths()? else { return None };
    let head = NotesFile::read(path).ok()?.head;
    Some(Place { url: head.url, endpoint: Some(head.endpoint).filter(|endpoint| !endpoint.is_empty()) })
}

/// The place that a request names.
pub(super) fn place(address: &str, endpoint: Option<&String>) -> Result<Place, Failure> {
    if address.is_empty() || address.chars().any(char::is_control) {
        return Err(Failure::invalid(format!("objects: '{}' is no address of a store", address.escape_debug()))
            .help("write it like s3://BUCKET/PREFIX or file:///DIRECTORY"));
    }
    Ok(Place { url: address.into(), endpoint: endpoint.cloned().filter(|endpoint| !endpoint.is_empty()) })
}

/// Looks at a device in a store, and changes nothing.
///
/// # Errors
/// There is none, or the store does not answer.
pub fn look(request: &LookRequest) -> Result<Owner, Failure> {
    let place = place(&request.address, request.endpoint.as_ref())?;
    let failed = |why: NoLook| match why {
        NoLook::Wrong(_) => Failure::invalid(format!("{}: {why}", place.url))
            .help("write it like s3://BUCKET/PREFIX or file:///DIRECTORY"),
        NoLook::Silent(_) => Failure::unreachable(format!("{}: {why}", place.url))
            .help("the service takes credentials from its own environment: see `systemctl edit openvsl`"),
    };
    match device::look_at(&place, None, PATIENCE).map_err(failed)? {
        Seen::Device(anchor, _) => Ok(Owner {
            host: anchor.host,
            epoch: anchor.epoch,
            released: anchor.released,
            written_ms: anchor.written_ms,
            ahead_bytes: anchor.ahead_bytes,
            lease_s: anchor.limits.lease_ms / 1000,
        }),
        Seen::Nothing | Seen::Same => {
            Err(Failure::not_found(format!("{}: there is no device here", place.url)).help("see `vsl objects`"))
        }
    }
}

/// Where a device came from, in words.
fn taken_in_words(taken: &Taken) -> String {
    let how = if taken.released { "which had released it" } else { "which is fenced from now on" };
    format!("from host `{}`, {how}; as owner {}, as of commit {}", taken.from, taken.epoch, taken.commit)
}

impl Registry {
    /// Where a journal goes: a name is that of a file of our own, whoever gives it.
    ///
    /// # Errors
    /// It is neither, or not theirs to choose.
    pub fn journal(&self, path: &str, anywhere: bool) -> Result<String, Failure> {
        let refused =
            |failure: fn(String) -> Failure, why: &str| Err(failure(format!("{}: {why}", path.escape_debug())));
        if path.contains([',', '\0']) {
            return refused(Failure::invalid, "a device on objects has one journal, whose path has no commas");
        }
        if Path::new(path).is_absolute() {
            return match anywhere {
                true => Ok(path.into()),
                false => refused(Failure::forbidden, "only an administrator chooses where files are made").map_err(
                    |failure: Failure| failure.help("give a name: the file is made in the service's own directory"),
                ),
            };
        }
        if path.contains('/') || path.chars().any(char::is_control) || path.starts_with('.') || path.is_empty() {
            return refused(Failure::invalid, "neither the name of a file nor an absolute path").map_err(
                |failure: Failure| failure.help("the service has another working directory than its clients"),
            );
        }
        let directory = self.table().state.directory().join(JOURNALS);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| Failure::io(&directory, &error))?;
        let directory = std::path::absolute(&directory).map_err(|error| Failure::io(&directory, &error))?;
        Ok(directory.join(path).display().to_string())
    }

    /// Takes a device from a store into a new journal, from its owner that released it or, where the request says so, from any.
    pub(super) fn take(
        &self,
        name: &str,
        target: &Target,
        from: &FromStore,
        secret: Option<&Secret>,
    ) -> Result<String, Failure> {
        let place = place(&from.address, from.endpoint.as_ref())?;
        let path = journal_path(target)?;
        // Whatever would refuse the attach does so before the device is taken.
        self.table().admit(name, target)?;
        let how = if from.take_over { Claim::TakeOver } else { Claim::Released };
        let taken = device::take_device(&path, &place, how, secret)?;
        let words = taken_in_words(&taken);
        tracing::info!(device = name, address = place.url, "taken {words}");
        Ok(words)
    }

    /// The devices on objects of this service.
    pub fn on_objects(&self) -> Vec<ObjectsDevice> {
        let standing: Vec<(String, Place, Found)> = {
            let table = self.table();
            let known = table.devices.iter().filter_map(|(name, entry)| {
                let place = entry.store.clone()?;
                let how = match entry.standing() {
                    Standing::Attached(handle) => Ok(handle.clone()),
                    Standing::StandsBy(_) => Err(("stand-by", entry.in_words().1)),
                    Standing::Failed(_) => Err(("failed", entry.in_words().1)),
                    _ => Err(("owner", entry.in_words().1)),
                };
                Some((name.clone(), place, how))
            });
            known.collect()
        };
        standing.into_iter().map(|(name, place, how)| shown(name, place, how)).collect()
    }
}

fn shown(name: String, place: Place, how: Found) -> ObjectsDevice {
    let Place { url: address, endpoint } = place;
    let device = ObjectsDevice { name, address, endpoint, ..ObjectsDevice::default() };
    match how.map(|handle| handle.status()) {
        Ok(Ok(status)) => {
            let objects = status.figures.objects.unwrap_or_default();
            let role = if objects.fenced { "fenced" } else { "owner" }.into();
            let lease_s = Some(objects.lease_ms / 1000);
            ObjectsDevice { role, epoch: Some(objects.owner), lease_s, health: status.health, ..device }
        }
        Ok(Err(gone)) => ObjectsDevice { role: "failed".into(), health: Failure::from(gone).to_string(), ..device },
        Err((role, health)) => ObjectsDevice { role: role.into(), health, ..device },
    }
}

/// The one file of a device on objects.
pub(super) fn journal_path(target: &Target) -> Result<PathBuf, Failure> {
    match target.paths() {
        Some([path]) => Ok(path.clone()),
        _ => Err(Failure::invalid("a device from an object store has one journal").help("name one new file")),
    }
}
