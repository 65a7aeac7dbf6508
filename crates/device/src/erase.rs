//! Sure-erase: everything that a detached device ever held is made unreadable, for good, and that is checked.
//!
//! First a superblock that says what is under way goes over every copy of the old one, and with it goes every wrapped copy of a data
//! key. From then on nobody attaches the device; an erase that was cut is run again, and goes on where the marker says. At the end
//! stands a raw scan, and only then a superblock of an empty device.

use std::path::PathBuf;

use ftl::{Anchor, TRAILER_BYTES};
use media::{DieState, LABEL_BYTES};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::crypt::Secret;
use crate::format::{check_size, encrypt, now_s, store_bytes};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::superblock::{Erasing, Identity, Superblock};
use crate::{AttachError, FormatError, Info};

/// Behind the two label copies begins what is overwritten, bytes.
const BASE: u64 = 2 * LABEL_BYTES as u64;

/// Written and read at once, bytes.
const CHUNK: u64 = 4 << 20;

/// After so many bytes written it is put on record how far it came.
const MARK_BYTES: u64 = 64 << 20;

/// How thoroughly a device is erased, in the words of NIST SP 800-88.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
pub enum EraseLevel {
    /// The data key of an encrypted device is destroyed, and nothing else done: at once, whatever its size.
    Crypto = 1,
    /// Every byte that was ever written is overwritten.
    Clear = 2,
    /// The data key is destroyed where there is one, every byte overwritten, and the space given back.
    Purge = 3,
}

impl EraseLevel {
    /// Its name, as options and certificates have it.
    pub fn name(self) -> &'static str {
        match self {
            EraseLevel::Crypto => "crypto",
            EraseLevel::Clear => "clear",
            EraseLevel::Purge => "purge",
        }
    }

    pub(crate) fn from_code(code: u32) -> Option<EraseLevel> {
        [EraseLevel::Crypto, EraseLevel::Clear, EraseLevel::Purge].into_iter().find(|level| *level as u32 == code)
    }
}

/// How far an erase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    /// What it does, in a word or two.
    pub step: &'static str,
    /// Bytes overwritten, or read back.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// What was done to a device, for the files of whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Its backing files.
    pub paths: Vec<PathBuf>,
    /// The level.
    pub level: EraseLevel,
    /// UUID of the format that was erased.
    pub erased_uuid: Uuid,
    /// UUID of the empty format that took its place.
    pub uuid: Uuid,
    /// Its label, which stays.
    pub label: String,
    /// Wrapped copies of a data key that were destroyed: 0 where it was not encrypted.
    pub keys_destroyed: u32,
    /// Bytes of the backing files behind their labels that hold nothing but zeros now, or that the files hold no space for.
    pub zeroed_bytes: u64,
    /// Whether the store was told that it need not keep the space any more.
    pub discarded: bool,
    /// Bytes read back by the scan at the end; what takes no space on the store is known to read as zeros.
    pub verified_bytes: u64,
    /// How often it was run until it was done: more than 1 where it was cut.
    pub runs: u32,
    /// When it began, seconds since 1970.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
}

/// Erases a detached device, and leaves an empty one with a new UUID: same capacity, sectors, label and settings; encrypted
/// under a new key when there is a `secret` for it, and otherwise not. `watch` is told how far it is, and ends it early with `false`.
///
/// # Errors
/// See [`FormatError`]. An erase that was cut is no device any more: run it again, at the same level or a higher one.
pub fn sure_erase(
    paths: &[PathBuf],
    level: EraseLevel,
    secret: Option<&Secret>,
    watch: &mut dyn FnMut(Erased) -> bool,
) -> Result<(Info, Certificate), FormatError> {
    erase(paths, level, secret, MARK_BYTES, watch)
}

fn erase(
    paths: &[PathBuf],
    level: EraseLevel,
    secret: Option<&Secret>,
    mark_bytes: u64,
    watch: &mut dyn FnMut(Erased) -> bool,
) -> Result<(Info, Certificate), FormatError> {
    let mut store = Store::open(paths)?;
    let mut marked = begun(&store, level)?;
    if let Some(secret) = secret {
        make_room(&store, &marked, secret)?;
    }
    let mut run = Run { total: total(&store)?, mark_bytes, watch };
    let cut = || FormatError::Attach(AttachError::BeingErased { path: paths[0].clone(), level: level.name() });
    if !run.label(&mut store, &mut marked)? {
        return Err(cut());
    }
    let mut verified = 0;
    let overwrites = level > EraseLevel::Crypto;
    if overwrites {
        if !run.overwrite(&mut store, &mut marked)? {
            return Err(cut());
        }
        match run.scan(&store)? {
            Some(bytes) => verified += bytes,
            None => return Err(cut()),
        }
        for die in &store.dies {
            if !run.tell("discard", run.total) {
                return Err(cut());
            }
            die.backing.discard_behind(BASE)?;
        }
    }
    verified += check_labels(&store, &marked)?;
    let erasing = marked.erase.take().expect("it is being erased");
    let mut empty = marked;
    if let Some(secret) = secret {
        encrypt(&mut empty, secret)?;
    }
    if !run.label(&mut store, &mut empty)? {
        return Err(cut());
    }
    let certificate = Certificate {
        paths: store.paths(),
        level,
        erased_uuid: erasing.old,
        uuid: empty.uuid,
        label: empty.label.clone(),
        keys_destroyed: erasing.keys,
        zeroed_bytes: if overwrites { run.total } else { 0 },
        discarded: overwrites,
        verified_bytes: verified,
        runs: erasing.runs,
        began: erasing.began,
        ended: now_s(),
    };
    Ok((Info::of(&empty, &store.paths()), certificate))
}

/// The superblock of a device that is being erased, whether that begins now or goes on.
fn begun(store: &Store, level: EraseLevel) -> Result<Superblock, FormatError> {
    let old = &store.superblock;
    if let Some(erasing) = old.erase {
        if level < erasing.level {
            return Err(FormatError::Attach(store.refused(Refusal::BeingErased(erasing.level))));
        }
        let position = if level == erasing.level { erasing.position } else { 0 };
        let erasing = Erasing { level, position, runs: erasing.runs + 1, ..erasing };
        return Ok(Superblock { erase: Some(erasing), ..old.clone() });
    }
    let keys = old.encryption.as_ref().map_or(0, |encryption| encryption.slots.iter().flatten().count() as u32);
    if level == EraseLevel::Crypto && old.encryption.is_none() {
        return Err(FormatError::Invalid {
            name: "level",
            value: "crypto".into(),
            expected: "--clear or --purge: the device is not encrypted, so there is no key to destroy".into(),
        });
    }
    let mut new = old.clone();
    new.uuid = Uuid::new_v4();
    (new.identity, new.batches) = (Identity::default(), false);
    (new.snapshots, new.clones) = (false, false);
    (new.epoch, new.unsafe_shutdowns) = (0, 0);
    new.formatted = now_s();
    // What the medium went through stays on record.
    new.anchor = Anchor { clean: true, stats: old.anchor.stats, ..Anchor::default() };
    new.dies.iter_mut().for_each(|state| *state = DieState::Good);
    new.scrub_position = 0;
    new.encryption = None;
    new.geometry.trailer_bytes = TRAILER_BYTES;
    new.erase = Some(Erasing { level, position: 0, keys, runs: 1, old: old.uuid, began: now_s() });
    Ok(new)
}

/// Whether the empty device can be encrypted, before anything is destroyed; its pages may take more room than those of a plain one.
fn make_room(store: &Store, marked: &Superblock, secret: &Secret) -> Result<(), FormatError> {
    let mut sealed = marked.clone();
    encrypt(&mut sealed, secret)?;
    let bytes = store_bytes(&sealed);
    for die in &store.dies {
        if die.backing.is_block_device() {
            check_size(&die.backing, bytes)?;
        } else if die.backing.bytes()? < bytes {
            die.backing.resize(bytes)?;
        }
    }
    Ok(())
}

/// Bytes behind the labels, over all backing files.
fn total(store: &Store) -> Result<u64, FormatError> {
    let mut total = 0;
    for die in &store.dies {
        total += die.backing.bytes()?.saturating_sub(BASE);
    }
    Ok(total)
}

struct Run<'a> {
    total: u64,
    mark_bytes: u64,
    watch: &'a mut dyn FnMut(Erased) -> bool,
}

impl Run<'_> {
    fn tell(&mut self, step: &'static str, done: u64) -> bool {
        (self.watch)(Erased { step, done, total: self.total })
    }

    fn label(&mut self, store: &mut Store, superblock: &mut Superblock) -> Result<bool, FormatError> {
        let (watch, total) = (&mut self.watch, self.total);
        let done = superblock.erase.map_or(total, |erasing| erasing.position);
        store.write(superblock, &mut || watch(Erased { step: "label", done, total }))
    }

    /// Overwrites everything from where the marker says on. `false` when it was told to stop.
    fn overwrite(&mut self, store: &mut Store, marked: &mut Superblock) -> Result<bool, FormatError> {
        let from = marked.erase.map_or(0, |erasing| erasing.position);
        let (mut before, mut since_mark) = (0, 0);
        for number in 0..store.dies.len() {
            let end = store.dies[number].backing.bytes()?;
            let mut at = BASE + from.saturating_sub(before);
            while let Some(data) = store.dies[number].backing.next_data(at, end)? {
                at = data.start;
                while at < data.end {
                    let len = (data.end - at).min(CHUNK);
                    if !self.tell("overwrite", before + at - BASE) {
                        return Ok(false);
                    }
                    store.dies[number].backing.write_zeros(at, len)?;
                    at += len;
                    since_mark += len;
                    if since_mark >= self.mark_bytes {
                        since_mark = 0;
                        if !self.mark(store, marked, before + at - BASE)? {
                            return Ok(false);
                        }
                    }
                }
            }
            before += end.saturating_sub(BASE);
        }
        self.mark(store, marked, before)
    }

    /// Puts on record that everything below `position` is erased, once that is durable.
    fn mark(&mut self, store: &mut Store, marked: &mut Superblock, position: u64) -> Result<bool, FormatError> {
        for die in &store.dies {
            if !self.tell("sync", position) {
                return Ok(false);
            }
            die.backing.sync()?;
        }
        if let Some(erasing) = &mut marked.erase {
            erasing.position = position;
        }
        self.label(store, marked)
    }

    /// Reads everything back. Gives the bytes that were read, or nothing when it was told to stop.
    fn scan(&mut self, store: &Store) -> Result<Option<u64>, FormatError> {
        let (mut before, mut read) = (0, 0);
        for die in &store.dies {
            let end = die.backing.bytes()?;
            let mut at = BASE;
            while let Some(data) = die.backing.next_data(at, end)? {
                at = data.start;
                while at < data.end {
                    let len = (data.end - at).min(CHUNK);
                    if !self.tell("verify", before + at - BASE) {
                        return Ok(None);
                    }
                    if let Some(byte) = die.backing.first_nonzero(at, len)? {
                        let what = format!(
                            "byte {byte} is not zero after it was overwritten; the store does not keep what it is told"
                        );
                        return Err(FormatError::Attach(AttachError::Media { path: die.path.clone(), what }));
                    }
                    at += len;
                    read += len;
                }
            }
            before += end.saturating_sub(BASE);
        }
        Ok(Some(read))
    }
}

/// Reads the labels of every die back: nothing but the marker may stand there, and no key slot. Gives the bytes that were read.
fn check_labels(store: &Store, marked: &Superblock) -> Result<u64, FormatError> {
    for die in &store.dies {
        for copy in 0..2 {
            let error = |error: rustix::io::Errno| FormatError::Io { path: die.path.clone(), error: error.into() };
            let bytes = die.backing.read_label(copy).map_err(error)?;
            let holds = Superblock::decode(&bytes);
            let is_marker = holds.is_ok_and(|found| {
                found.uuid == marked.uuid && found.erase.is_some() && found.encryption.is_none() && {
                    let length = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
                    bytes[length..].iter().all(|byte| *byte == 0)
                }
            });
            if !is_marker {
                let what = format!("label copy {copy} does not hold what was written to it");
                return Err(FormatError::Attach(AttachError::Media { path: die.path.clone(), what }));
            }
        }
    }
    Ok(store.dies.len() as u64 * BASE)
}
