//! A device whose closed LEBs are objects in a store: made, attached by its journal, and taken over by another host.
//!
//! Which stores there are this crate does not know: whoever uses it says once how they are opened, with [`use_stores`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use media::file::{backing_bytes, check_length};
use media::object::claim::{Claimant, claim, found, look, permits};
use media::object::notes::Note;
use media::object::{
    Anchor, Claim as How, ClaimError, LebEntry, Limits, Look, NoLook, Notes, NotesFile, NotesHead, ObjectMedia,
    Outside, Standing,
};
use media::ring::{Ring, SharedRing};
use media::{Backing, Base, Drilled, FileMedia, FileOptions, Stack};
use ring::rand::{SecureRandom, SystemRandom};

use crate::assemble::{Files, assemble, medium_geometry, read_labels};
use crate::attach::{admit, attach, layer_config};
use crate::copies::choose_superblock;
use crate::core::Core;
use crate::format::{create_with, encrypt, superblock};
use crate::identity::Claim;
use crate::prices;
use crate::refusal::refused;
use crate::staging::Staging;
use crate::superblock::Superblock;
use crate::{AttachError, AttachOptions, CreateError, CreateOptions, Device, FormatError, Info, Secret};

/// Opens the store of a journal, and writes the journal's notes anew. What goes wrong it says in words.
pub type StoreOpener = fn(&Path, &Notes, &SharedRing) -> Result<Box<dyn Outside>, String>;

/// Looks at the anchor at an address and an endpoint, unless it is the version that is known, for so long at most.
pub type StoreLooker = fn(&str, &str, Option<&str>, Duration) -> Result<Look, NoLook>;

static STORES: OnceLock<(StoreOpener, StoreLooker)> = OnceLock::new();

/// From now on devices on objects are attached by stores that are opened, and looked at, like this. The first call counts.
pub fn use_stores(opener: StoreOpener, looker: StoreLooker) {
    let _ = STORES.set((opener, looker));
}

/// What is wrong with a program that knows no stores.
const NO_STORES: &str = "this program knows no object stores; use the service";

/// Entries of the ring of those who wait for a store and have no other.
const RING_ENTRIES: u32 = 8;

/// Where a device's objects lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address, such as `s3://bucket/prefix`.
    pub url: String,
    /// The endpoint, where it is not the one that the address implies.
    pub endpoint: Option<String>,
}

fn refuse(path: &Path, why: impl ToString) -> AttachError {
    AttachError::Objects { path: path.into(), why: why.to_string() }
}

fn open_store(path: &Path, notes: &Notes, ring: &SharedRing) -> Result<Box<dyn Outside>, AttachError> {
    let (opener, _) = STORES.get().ok_or_else(|| refuse(path, NO_STORES))?;
    opener(path, notes, ring).map_err(|why| refuse(path, why))
}

fn random<const N: usize>(path: &Path) -> Result<[u8; N], AttachError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| refuse(path, "the system has no random numbers"))?;
    Ok(bytes)
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// What stands at a place in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No device.
    Nothing,
    /// The version that is known already.
    Same,
    /// A device, with this anchor, and what the store calls its version.
    Device(Box<Anchor>, String),
}

/// Looks at a device in a store, and changes nothing. Waits for the store, for so long at most.
///
/// # Errors
/// The store does not answer, or what stands there is no device.
pub fn look_at(place: &Place, known: Option<&str>, patience: Duration) -> Result<Seen, NoLook> {
    let (_, looker) = STORES.get().ok_or_else(|| NoLook::Wrong(NO_STORES.into()))?;
    match looker(&place.url, place.endpoint.as_deref().unwrap_or_default(), known, patience)? {
        Look::Missing => Ok(Seen::Nothing),
        Look::Same => Ok(Seen::Same),
        Look::Found(bytes, version) => {
            let anchor = Anchor::decode(&bytes).map_err(|error| NoLook::Wrong(format!("its anchor: {error}")))?;
            Ok(Seen::Device(Box::new(anchor), version))
        }
    }
}

/// Why a device in a store cannot be had, in words that say what to do.
fn claim_refused(path: &Path, place: &NotesHead, error: &ClaimError) -> AttachError {
    let (url, endpoint) = (&place.url, &place.endpoint);
    let at = if endpoint.is_empty() { url.clone() } else { format!("{url} at {endpoint}") };
    let help = match error {
        ClaimError::Owned { .. } => {
            "; if that host is lost for good, `vsl attach NEWFILE --objects ADDRESS --take-over` goes on without what only its journal has".into()
        }
        ClaimError::OldJournal { .. } => {
            "; it is a copy that was put back: take the device over with a new journal instead".into()
        }
        ClaimError::Careless(_) => {
            format!("; {at} is no store for devices, use one that keeps conditional writes")
        }
        ClaimError::Store(_) => format!(" ({at})"),
        _ => String::new(),
    };
    refuse(path, format!("{error}{help}"))
}

/// Makes a device whose journal is this new file, and puts it into the store.
///
/// # Errors
/// Something is there already, the options do not fit, or the store does not answer; then nothing was made.
pub fn create_on_objects(
    path: &Path,
    options: &CreateOptions,
    secret: Option<&Secret>,
    place: &Place,
    limits: Limits,
) -> Result<Info, CreateError> {
    let profile = options.profile.clone().unwrap_or_default();
    let mut new = superblock(options.advertised_bytes, options.raw_bytes, &profile, (1, 0), &options.format)?;
    if new.zones.is_some() {
        return Err(CreateError::Format(FormatError::Invalid {
            name: "zones",
            value: "on a device on objects".into(),
            expected: "a device on files or disks".into(),
        }));
    }
    if let Some(secret) = secret {
        encrypt(&mut new, secret)?;
    }
    new.objects = true;
    let notes_path = NotesFile::path(path);
    for path in [path, &notes_path] {
        if path.exists() {
            return Err(CreateError::Exists { path: path.into(), what: "a file or block device".into() });
        }
    }
    let info = create_with(&[path], new.clone())?;
    let made = put_into_store(path, &new, place, limits);
    if made.is_err() {
        // The first failure is the one worth telling.
        let _ = (std::fs::remove_file(path), std::fs::remove_file(&notes_path));
    }
    made.map(|()| info).map_err(|error| CreateError::Format(FormatError::Attach(error)))
}

fn put_into_store(path: &Path, new: &Superblock, place: &Place, limits: Limits) -> Result<(), AttachError> {
    let ring = Ring::new(RING_ENTRIES).map_err(|error| refuse(path, error))?;
    let notes = Notes::new(head(path, *new.uuid.as_bytes(), place, limits)?);
    let mut outside = open_store(path, &notes, &ring)?;
    let backing = Backing::open(path, true)?;
    let label = |copy| {
        let mut label = backing.read_label(copy).map_err(|error| refuse(path, error))?;
        label.truncate(label.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Ok::<_, AttachError>(label)
    };
    let anchor = Anchor {
        device: notes.head.device,
        journal: notes.head.journal,
        attach: u64::from_le_bytes(random(path)?),
        epoch: 0,
        commit: 0,
        renewal: 0,
        released: false,
        written_ms: outside.now_ms(),
        mark: 0,
        ahead_bytes: 0,
        host: host_name(),
        geometry: new.geometry,
        labels: [label(0)?, label(1)?],
        limits,
        lebs: Vec::new(),
        garbage: Vec::new(),
    };
    found(&mut *outside, &anchor).map_err(|error| claim_refused(path, &notes.head, &error))
}

fn head(path: &Path, device: [u8; 16], place: &Place, limits: Limits) -> Result<NotesHead, AttachError> {
    let endpoint = place.endpoint.clone().unwrap_or_default();
    Ok(NotesHead { device, journal: random(path)?, url: place.url.clone(), endpoint, limits })
}

/// A device that was taken from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The commit as of which the device goes on.
    pub commit: u64,
    /// The owner epoch that it has now.
    pub epoch: u32,
    /// The host that had it before.
    pub from: String,
    /// That host had released it, so that nothing was lost.
    pub released: bool,
}

/// Makes a new journal for a device that stands in a store, and takes the device from whom `how` says. The journal is attached then like any other.
///
/// # Errors
/// There is no such device, another has it, the journal's file exists, or the store does not answer.
pub fn take_device(path: &Path, place: &Place, how: How, secret: Option<&Secret>) -> Result<Taken, AttachError> {
    let notes_path = NotesFile::path(path);
    for path in [path, &notes_path] {
        if path.exists() {
            return Err(refuse(
                path,
                "exists already; the journal of a device that is taken from a store is a new file",
            ));
        }
    }
    let taken = take_with(path, place, how, secret);
    if taken.is_err() {
        let _ = (std::fs::remove_file(path), std::fs::remove_file(&notes_path));
    }
    taken
}

fn take_with(path: &Path, place: &Place, how: How, secret: Option<&Secret>) -> Result<Taken, AttachError> {
    let ring = Ring::new(RING_ENTRIES).map_err(|error| refuse(path, error))?;
    let mut notes = Notes::new(head(path, [0; 16], place, Limits::default())?);
    let mut outside = open_store(path, &notes, &ring)?;
    let place = notes.head.clone();
    let lost = |error: ClaimError| claim_refused(path, &place, &error);
    let (seen, ..) = look(&mut *outside).map_err(lost)?.ok_or_else(|| lost(ClaimError::Nothing))?;
    (notes.head.device, notes.head.limits) = (seen.device, seen.limits);
    permits(&seen, how, &notes).map_err(lost)?;
    // Everything that can fail here does so before the device is taken.
    let backing = Backing::create(path, backing_bytes(&seen.geometry))?;
    let mut superblock = superblock_of(&seen, path)?;
    admit(&mut superblock, secret).map_err(|refusal| refused(refusal, path))?;
    let _nobody_here = Claim::take(superblock.identity(), &[path.to_path_buf()]).map_err(|error| match error {
        AttachError::Twin { identity, other, .. } => {
            AttachError::TakenHere { path: path.to_path_buf(), identity, other }
        }
        error => error,
    })?;
    let who = claimant(path, &notes)?;
    let anchor = claim(&mut *outside, &who, how, &mut notes).map_err(lost)?.anchor;
    for (copy, label) in (0..).zip(taken_over_labels(&anchor, path)?) {
        backing.write_label(copy, &label).map_err(|error| refuse(path, error))?;
    }
    for LebEntry { leb, life, .. } in &anchor.lebs {
        notes.add(Note::Life { leb: *leb, life: *life });
        notes.add(Note::Gone { leb: *leb, life: *life });
    }
    NotesFile::write(path, &notes).map_err(|error| refuse(path, error))?;
    Ok(Taken { commit: anchor.commit, epoch: anchor.epoch, from: seen.host, released: seen.released })
}

fn superblock_of(anchor: &Anchor, path: &Path) -> Result<Superblock, AttachError> {
    choose_superblock(anchor.labels.clone().map(Ok)).map_err(|refusal| refused(refusal, path))
}

fn claimant(path: &Path, notes: &Notes) -> Result<Claimant, AttachError> {
    let attach = u64::from_le_bytes(random(path)?);
    Ok(Claimant { journal: notes.head.journal, attach, host: host_name() })
}

/// The label copies with which another host goes on, in a journal of its own: what the log holds behind the store's mark does not count. A part
/// of it is in the store, and a part of it was only in the owner's journal.
///
/// # Errors
/// The anchor's copies are no superblock.
pub fn taken_over_labels(anchor: &Anchor, path: &Path) -> Result<[Vec<u8>; 2], AttachError> {
    let mut superblock = superblock_of(anchor, path)?;
    let log = &mut superblock.anchor;
    if !log.clean {
        let mark = anchor.mark.max(log.begin);
        log.doubted_from = Some(log.doubted_from.map_or(mark, |known| known.min(mark)));
    }
    // What a process of the owner's left in memory on this host is of another attach then.
    superblock.epoch += 1;
    let mut labels = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        superblock.generation += 1;
        labels[(superblock.generation % 2) as usize] = superblock.encode(0);
    }
    Ok(labels)
}

/// Attaches a device by the journal that is its owner's.
pub(crate) fn attach_journal(files: Files, options: &AttachOptions, ring: &SharedRing) -> Result<Device, AttachError> {
    let Files { superblock, mut backings, paths, .. } = files;
    let path = paths[0].clone();
    let wishes = [
        (options.read_only, "attached to be read only"),
        (options.new_identity || options.identity.is_some(), "given a new identity"),
        (options.witness.is_some(), "given a witness"),
    ];
    if let Some((_, wish)) = wishes.iter().find(|(wanted, _)| *wanted) {
        return Err(refuse(&path, format!("the journal of a device on objects cannot be {wish}; attach it without")));
    }
    let mut notes = NotesFile::read(&path).map_err(|error| {
        let notes = NotesFile::path(&path);
        match error.kind() {
            ErrorKind::NotFound => {
                refuse(&notes, "is missing: it belongs to the journal and goes where the journal goes")
            }
            _ => refuse(&notes, error),
        }
    })?;
    if let Some(lease_ms) = options.lease_ms {
        notes.head.limits.lease_ms = lease_ms;
    }
    if notes.head.device != *superblock.uuid.as_bytes() {
        return Err(refuse(&NotesFile::path(&path), "these are the notes of another device's journal"));
    }
    let Some(Some(backing)) = backings.pop() else { return Err(refuse(&path, "the journal's file is missing")) };
    if backing.is_block_device() {
        return Err(refuse(&path, "a journal is a file: a block device cannot say which parts of it hold something"));
    }
    let geometry = medium_geometry(&superblock);
    check_length(&backing, &geometry)?;
    let identity = Claim::take(superblock.identity(), &paths)?;
    let staging = options.staging.as_deref().and_then(|directory| Staging::open(directory, &superblock));
    let prices = prices::read(&path, &notes.head.url)?;
    let mut outside = open_store(&path, &notes, ring)?;
    let who = claimant(&path, &notes)?;
    let claimed =
        claim(&mut *outside, &who, How::Own, &mut notes).map_err(|error| claim_refused(&path, &notes.head, &error))?;
    let media = FileMedia::new(vec![Some(backing)], geometry, ring.clone(), FileOptions::default())?;
    let overlaps = media.backings().all(|backing| backing.direct_alignment().is_some());
    let seed = who.attach;
    let media = ObjectMedia::new(Box::new(media), outside, claimed, &notes, seed).map_err(|why| refuse(&path, why))?;
    let core = open(media, options.secret.as_ref(), staging, &path)?;
    let mut device = Device::on_core(core, paths, Some(identity));
    device.have_prices(prices);
    if !overlaps {
        device.core.ftl.sync_one_by_one();
    }
    Ok(device)
}

/// A device on a journal with a store behind it.
fn open(
    mut media: ObjectMedia,
    secret: Option<&Secret>,
    staging: Option<Staging>,
    path: &Path,
) -> Result<Core, AttachError> {
    let failed = |refusal| refused(refusal, path);
    let mut superblock = assemble(read_labels(&mut media), true, false).map_err(failed)?;
    admit(&mut superblock, secret).map_err(failed)?;
    let media = Stack::Plain(Drilled::Plain(Base::Objects(Box::new(media))));
    // So each life of a LEB begins with an erase, and the store knows one from the next.
    let config = layer_config(&superblock, true);
    let mut core = attach(media, superblock, config, false, staging).map_err(failed)?;
    core.leased = core.media.store_behind().is_some_and(|objects| objects.anchor().limits.lease_ms > 0);
    Ok(core)
}

impl Device {
    /// A device on a journal with an object store behind it, both opened already.
    ///
    /// # Errors
    /// There is no valid format, or it cannot be recovered.
    pub fn on_objects(media: ObjectMedia, secret: Option<&Secret>) -> Result<Device, AttachError> {
        let path = PathBuf::from("media");
        let core = open(media, secret, None, &path)?;
        Ok(Device::on_core(core, vec![path], None))
    }

    /// How it stands with its object store, where there is one.
    pub fn objects(&self) -> Option<Standing> {
        self.core.media.store_behind().map(ObjectMedia::standing)
    }

    /// The number that the log's next entry gets: what was taken before has lower ones.
    pub fn log_end(&self) -> u64 {
        self.core.ftl.next_seq()
    }

    /// What is wrong with the store, in words.
    pub(crate) fn objects_in_words(&self) -> String {
        let Some(standing) = self.objects() else { return String::new() };
        if let Some(fence) = &standing.fence {
            return format!(
                "fenced: host {} has taken the device over as owner {}; what only this journal has is lost to the device, and nothing is read or written here any more",
                fence.host, fence.epoch
            );
        }
        if standing.lapsed {
            let why = standing.tally.trouble.unwrap_or_else(|| "its anchor was not written in time".into());
            return format!("its lease is over, so nothing is answered until the object store takes a new one: {why}");
        }
        let behind = format!("{} bytes and {} s behind", standing.ahead_bytes, standing.behind_ms / 1000);
        let held = if standing.holding { "; writes wait for it" } else { "" };
        match &standing.tally.trouble {
            Some(why) => format!("the object store fails ({why}): it is {behind}{held}"),
            None => format!("the object store is {behind}{held}"),
        }
    }
}
