//! Low-level format: what a device is made with.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ftl::Stats;
use media::file::backing_bytes;
use media::nand::inner_geometry;
use media::{Backing, OpenError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::assemble::medium_geometry;
use crate::copies::decode;
use crate::crypt::{CIPHER_NAME, Encryption, SEALED_TRAILER_BYTES, Secret};
use crate::refusal::{BLANK, Refusal, refused};
use crate::store::{Store, heir};
use crate::superblock::{LABEL_MAX, Superblock};
use crate::zones::{self, ZoneInfo};
use crate::{AttachError, Capacity, CreateError, Emulation, EraseLevel, FormatError, emulated, geometry};

/// What a format sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FormatOptions {
    /// 512, 1024, 2048 or 4096 bytes.
    pub sector_bytes: u32,
    /// Host capacity.
    pub capacity: Capacity,
    /// A name for people, at most 63 bytes.
    pub label: String,
}

/// What a new device is made with: the store's size, then the format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateOptions {
    /// Advertised capacity, bytes.
    pub advertised_bytes: u64,
    /// Raw capacity, bytes: advertised plus over-provisioning.
    pub raw_bytes: u64,
    /// Name of the data sheet it was made from, if any.
    pub profile: Option<String>,
    /// How many of its files hold parity in every stripe: 0, 1 or 2.
    #[serde(default)]
    pub parity: u32,
    /// The first format.
    pub format: FormatOptions,
}

/// What is known of a device without attaching it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Backing files, one a die.
    pub paths: Vec<PathBuf>,
    /// Backing files that it has.
    pub files: u32,
    /// How many of them hold parity in every stripe.
    pub parity_files: u32,
    /// Chips of data and of parity in each of its stripes, on an emulated card that has parity: as many chips as the second number may
    /// be lost.
    pub parity_chips: Option<String>,
    /// Which of them was looked at, from 0; of an attached device the first.
    pub file_number: u32,
    /// What it is known by: made by the format, or given to a copy since.
    pub uuid: Uuid,
    /// The UUID that it is about to have: a new identity was cut while it was written to the files of the device.
    #[serde(skip)]
    pub next_uuid: Option<Uuid>,
    /// For people.
    pub label: String,
    /// On-media format version.
    pub format_version: u32,
    /// Name of the data sheet it was made from, if any.
    pub profile: Option<String>,
    /// Bytes in a sector.
    pub sector_bytes: u32,
    /// Sectors that the host sees.
    pub sectors: u64,
    /// Its zones, if it has some.
    #[serde(flatten)]
    pub zones: Option<ZoneInfo>,
    /// Advertised capacity, bytes.
    pub advertised_bytes: u64,
    /// Raw capacity, bytes.
    pub raw_bytes: u64,
    /// The largest request, bytes; a write up to it is never torn.
    pub max_request_bytes: u32,
    /// Seconds since 1970 when it was formatted.
    pub formatted: u64,
    /// Times it was attached since.
    pub attaches: u32,
    /// Attaches that found it not detached: after the death of the service, or a power cut.
    #[serde(default)]
    pub unsafe_shutdowns: u32,
    /// Whether the last detach was clean.
    pub clean: bool,
    /// How it emulates the card of its profile, if it does.
    pub emulation: Option<Emulation>,
    /// The cipher that its sectors are sealed with, if it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// What each key slot in use takes, if it is encrypted: `0: passphrase`, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_slots: Option<Vec<String>>,
    /// It is marked for drills: faults may be put on it by command.
    #[serde(default)]
    pub drill_device: bool,
    /// It is being erased, at this level: no device until that is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erasing: Option<EraseLevel>,
}

impl Info {
    /// Whether both are parts of one device, also where a new identity of it was cut between them.
    pub fn is_same_device(&self, other: &Info) -> bool {
        self.uuid == other.uuid || self.next_uuid == Some(other.uuid) || other.next_uuid == Some(self.uuid)
    }

    /// Whether what it holds was moved to another device, which has its name.
    pub fn is_moved_away(&self) -> bool {
        self.next_uuid == Some(self.uuid)
    }

    /// Host capacity, bytes.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(self.sector_bytes)
    }

    pub(crate) fn of(superblock: &Superblock, paths: &[PathBuf]) -> Info {
        Info {
            paths: paths.to_vec(),
            files: superblock.files(),
            parity_files: if superblock.dies.is_empty() { 0 } else { superblock.geometry.parity },
            parity_chips: emulated::parity_chips(superblock),
            file_number: superblock.die,
            uuid: superblock.identity(),
            next_uuid: superblock.identity.next,
            label: superblock.label.clone(),
            format_version: superblock.version(),
            profile: (!superblock.profile.is_empty()).then(|| superblock.profile.clone()),
            sector_bytes: superblock.geometry.sector_bytes,
            sectors: superblock.host_sectors(),
            zones: superblock.zones.map(|zones| ZoneInfo::of(&zones, superblock.geometry.sector_bytes)),
            advertised_bytes: superblock.advertised_bytes,
            raw_bytes: superblock.geometry.raw_bytes(),
            max_request_bytes: superblock.max_request_bytes,
            formatted: superblock.formatted,
            attaches: superblock.epoch,
            unsafe_shutdowns: superblock.unsafe_shutdowns,
            clean: superblock.anchor.clean,
            emulation: superblock.emulation,
            encryption: superblock.encryption.as_ref().map(|_| CIPHER_NAME.into()),
            key_slots: superblock.encryption.as_ref().map(|encryption| {
                let used = encryption.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.as_ref()?)));
                used.map(|(at, slot)| format!("{at}: {}", slot.kind.name())).collect()
            }),
            drill_device: superblock.drills,
            erasing: superblock.erase.map(|erasing| erasing.level),
        }
    }
}

/// A format for a medium whose geometry stands already: flash, or a simulated medium.
#[derive(Clone, Copy, Debug)]
pub struct MediaFormat {
    /// Sectors that the host sees.
    pub sectors: u64,
    /// The largest request, bytes.
    pub max_request_bytes: u32,
    /// Slots appended between two checkpoints.
    pub checkpoint_interval: u64,
    /// The groomer's policy.
    pub policy: ftl::Policy,
    /// Identity of the format.
    pub uuid: Uuid,
    /// What the key of its sectors is wrapped with, if they are encrypted; the medium's geometry then has room for it.
    pub key: Option<[u8; 32]>,
}

/// The superblock of a medium whose geometry stands already.
pub(crate) fn media_superblock(layout: ftl::Geometry, format: &MediaFormat) -> Result<Superblock, FormatError> {
    let max = geometry::max_sectors(&layout);
    if !geometry::are_sectors(format.sectors, &layout, format.policy) {
        return Err(FormatError::Invalid {
            name: "sectors",
            value: format.sectors.to_string(),
            expected: format!("1 to {max}, or more than the medium has slots and a policy that keeps nothing of each"),
        });
    }
    Ok(Superblock {
        max_request_bytes: format.max_request_bytes,
        policy: format.policy.code(),
        checkpoint_interval: format.checkpoint_interval,
        ..Superblock::empty(format.uuid, layout, format.sectors)
    })
}

/// Encrypts an empty format: makes a data key, and wraps it with this secret.
pub(crate) fn encrypt(superblock: &mut Superblock, secret: &Secret) -> Result<(), FormatError> {
    if superblock.emulation.is_some() {
        return Err(FormatError::Invalid {
            name: "encryption",
            value: "on an emulated device".into(),
            expected: "a device that is not emulated: what a card does is measured without".into(),
        });
    }
    let encryption = Encryption::new(&superblock.uuid, secret)
        .map_err(|why| FormatError::Attach(refused(Refusal::Key(why), &PathBuf::from("encryption"))))?;
    superblock.encryption = Some(encryption);
    superblock.geometry.trailer_bytes = SEALED_TRAILER_BYTES;
    Ok(())
}

/// Checks the options and lays the device out.
pub(crate) fn superblock(
    advertised_bytes: u64,
    raw_bytes: u64,
    profile: &str,
    (dies, parity): (u32, u32),
    options: &FormatOptions,
) -> Result<Superblock, FormatError> {
    check_label("label", &options.label)?;
    let layout = geometry::layout(raw_bytes, options.sector_bytes, dies, parity)?;
    let formatted = match options.capacity {
        Capacity::Zones(bytes) => zones::formatted(layout, zones::shape(bytes, advertised_bytes, &layout)?),
        capacity => Superblock::empty(Uuid::new_v4(), layout, geometry::sectors(capacity, advertised_bytes, &layout)?),
    };
    Ok(Superblock {
        advertised_bytes,
        formatted: now_s(),
        label: options.label.clone(),
        profile: profile.into(),
        ..formatted
    })
}

/// Now, seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(crate) fn check_label(name: &'static str, label: &str) -> Result<(), FormatError> {
    if label.len() <= LABEL_MAX && !label.chars().any(char::is_control) {
        return Ok(());
    }
    let expected = format!("at most {LABEL_MAX} bytes without control characters");
    Err(FormatError::Invalid { name, value: label.escape_debug().to_string(), expected })
}

/// Makes a new device on sparse files, one for each path, and formats it. An existing block device is taken when it is blank.
///
/// # Errors
/// One exists, the options do not fit together, or the operating system failed; then nothing was made.
pub fn create<P: AsRef<Path>>(paths: &[P], options: &CreateOptions) -> Result<Info, CreateError> {
    let profile = options.profile.clone().unwrap_or_default();
    let dies = (paths.len() as u32, options.parity);
    create_with(paths, superblock(options.advertised_bytes, options.raw_bytes, &profile, dies, &options.format)?)
}

/// Like [`create`], with sectors encrypted under a new key that `secret` opens.
///
/// # Errors
/// As [`create`].
pub fn create_encrypted<P: AsRef<Path>>(
    paths: &[P],
    options: &CreateOptions,
    secret: &Secret,
) -> Result<Info, CreateError> {
    let profile = options.profile.clone().unwrap_or_default();
    let dies = (paths.len() as u32, options.parity);
    let mut superblock = superblock(options.advertised_bytes, options.raw_bytes, &profile, dies, &options.format)?;
    encrypt(&mut superblock, secret)?;
    create_with(paths, superblock)
}

/// Makes new device files of this format.
pub(crate) fn create_with<P: AsRef<Path>>(paths: &[P], superblock: Superblock) -> Result<Info, CreateError> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.as_ref().to_path_buf()).collect();
    let mut made: Vec<Made> = Vec::new();
    for (die, path) in (0..).zip(&paths) {
        let one = make_die(path, &superblock).and_then(|one| {
            made.push(one);
            let backing = &made[made.len() - 1].backing;
            write_both(backing, &Superblock { die, ..superblock.clone() }).map_err(CreateError::from)
        });
        if let Err(error) = one {
            // All or none; those made just now hold nothing. The first failure is the one worth telling.
            made.into_iter().for_each(Made::undo);
            return Err(error);
        }
    }
    Ok(Info::of(&superblock, &paths))
}

/// What a device is about to be made on.
struct Made {
    backing: Backing,
    /// It is a file that was not there before; otherwise a block device that was blank.
    is_new: bool,
}

impl Made {
    /// Leaves it as it was found.
    fn undo(self) {
        let path = self.backing.path();
        let undone = match self.is_new {
            true => std::fs::remove_file(path).map_err(|error| error.to_string()),
            false => (0..2).try_for_each(|copy| self.backing.write_label(copy, &[])).map_err(|error| error.to_string()),
        };
        if let Err(error) = undone {
            tracing::error!("{}: not left as it was found: {error}", path.display());
        }
    }
}

/// A new file for a device, or a blank block device.
fn make_die(path: &Path, superblock: &Superblock) -> Result<Made, CreateError> {
    let bytes = store_bytes(superblock);
    match Backing::create(path, bytes) {
        Ok(backing) => Ok(Made { backing, is_new: true }),
        Err(OpenError::Io { error, .. }) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let backing = Backing::open(path, false).map_err(FormatError::from)?;
            let what = match decode(&backing, path) {
                Ok(found) => format!("an OpenVSL device, label \"{}\", {}", found.label, found.identity()),
                Err(AttachError::Foreign { found, .. }) if backing.is_block_device() && found == BLANK => {
                    check_size(&backing, bytes)?;
                    return Ok(Made { backing, is_new: false });
                }
                Err(AttachError::Foreign { found, .. }) => found,
                Err(_) => "a damaged or newer OpenVSL device".into(),
            };
            Err(CreateError::Exists { path: path.into(), what })
        }
        Err(error) => Err(FormatError::from(error).into()),
    }
}

/// Opens what is to take the place of a device's lost die: a new file, a blank block device, or what was that die before.
pub(crate) fn open_replacement(path: &Path, superblock: &Superblock, die: u32) -> Result<Backing, CreateError> {
    let bytes = store_bytes(superblock);
    match Backing::create(path, bytes) {
        Ok(backing) => return Ok(backing),
        Err(OpenError::Io { error, .. }) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(FormatError::from(error).into()),
    }
    let backing = Backing::open(path, false).map_err(FormatError::from)?;
    match decode(&backing, path) {
        Ok(found) if found.is_of(superblock) && found.die == die => {}
        Err(AttachError::Foreign { found, .. }) if found == BLANK => {}
        Ok(found) => {
            let what =
                format!("die {} of an OpenVSL device, label \"{}\", {}", found.die, found.label, found.identity());
            return Err(CreateError::Exists { path: path.into(), what });
        }
        Err(AttachError::Foreign { found, .. }) => return Err(CreateError::Exists { path: path.into(), what: found }),
        Err(_) => {
            let what = "a damaged or newer OpenVSL device".into();
            return Err(CreateError::Exists { path: path.into(), what });
        }
    }
    if !backing.is_block_device() {
        backing.resize(bytes).map_err(FormatError::from)?;
    }
    check_size(&backing, bytes)?;
    Ok(backing)
}

/// Bytes that the backing file of a format has.
pub(crate) fn store_bytes(superblock: &Superblock) -> u64 {
    match superblock.emulation {
        None => backing_bytes(&medium_geometry(superblock)),
        Some(_) => backing_bytes(&inner_geometry(&superblock.geometry)),
    }
}

/// A new format of a device that stays what it is.
fn renewed(old: &Superblock, options: &FormatOptions) -> Result<Superblock, FormatError> {
    match old.emulation {
        None => superblock(
            old.advertised_bytes,
            old.geometry.raw_bytes(),
            &old.profile,
            (old.geometry.dies, old.geometry.parity),
            options,
        ),
        Some(emulation) => emulated::superblock(&old.profile, emulation, options),
    }
}

/// Refuses a block device that is too small.
pub(crate) fn check_size(backing: &Backing, expected: u64) -> Result<(), FormatError> {
    let found = backing.bytes()?;
    if found < expected {
        return Err(FormatError::Invalid {
            name: "raw size",
            value: format!("{expected} bytes with its metadata"),
            expected: format!("at most the block device's {found} bytes"),
        });
    }
    Ok(())
}

/// Formats a detached device anew, of which these are all the files: everything on it is lost. Its sectors are encrypted when there
/// is a `secret` to open the new format with, and only then. A format of several files that was cut in between is run again.
///
/// # Errors
/// See [`FormatError`].
pub fn format<P: AsRef<Path>>(
    paths: &[P],
    options: &FormatOptions,
    secret: Option<&Secret>,
) -> Result<Info, FormatError> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.as_ref().to_path_buf()).collect();
    let mut store = Store::open_to_format(&paths)?;
    let old = &store.superblock;
    if let Some(erasing) = old.erase {
        return Err(FormatError::Attach(store.refused(Refusal::BeingErased(erasing.level))));
    }
    let mut new = renewed(old, options)?;
    if store.dies.len() > 1 {
        new.uuid = heir(&old.uuid, new.formatted);
    }
    if let Some(secret) = secret {
        encrypt(&mut new, secret)?;
    }
    // What the medium went through stays on record; the host's counters begin anew with the format.
    new.anchor.stats = Stats { erased_lebs: old.anchor.stats.erased_lebs, ..Stats::default() };
    new.generation = old.generation;
    let bytes = store_bytes(&new);
    for die in &store.dies {
        match die.backing.is_block_device() {
            true => check_size(&die.backing, bytes)?,
            false => die.backing.resize(bytes)?,
        }
    }
    // Before anything is done to the blocks: a format that is cut leaves a device that is empty, never half of an old one.
    store.write(&mut new, &mut || true)?;
    store.dies.iter().try_for_each(|die| die.backing.discard_blocks())?;
    Ok(Info::of(&new, &store.paths()))
}

/// Writes both copies, so that nothing of an older superblock can come back.
fn write_both(backing: &Backing, superblock: &Superblock) -> Result<(), FormatError> {
    let mut superblock = superblock.clone();
    for _ in 0..2 {
        superblock.generation += 1;
        backing.write_label((superblock.generation % 2) as u8, &superblock.encode(superblock.die))?;
    }
    Ok(())
}

/// Reads what a detached (or attached elsewhere) device is.
///
/// # Errors
/// See [`AttachError`].
pub fn inspect(path: &Path) -> Result<Info, AttachError> {
    let backing = Backing::peek(path)?;
    Ok(Info::of(&decode(&backing, path)?, &[path.into()]))
}
