//! Room on the backing store: a full one is noticed, said once in the log, and over as soon as there is room.

use std::path::PathBuf;

use ftl::{Error, Ftl};
use media::{FileSystem, MediaError};

use crate::assemble::medium_geometry;
use crate::attach::layer_config;
use crate::refusal::Refusal;
use crate::status::Trouble;
use crate::superblock::Superblock;
use crate::{AttachError, Device};

/// What was last noticed of the store.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// That it is full was logged.
    full: bool,
    /// Bytes that were left on it then, where known.
    left: Option<u64>,
    /// Why a device that was to be written is attached to be read only.
    pub missing: Option<AttachError>,
}

impl Device {
    /// To be called about once a second: finds out that a full store has room again although nobody writes.
    pub fn look_at_store(&mut self) {
        if self.room.full
            && let Some(free) = self.core.media.free_bytes()
            // Where a quota or a fault is what refuses, the file system has the same room as before.
            && self.room.left.is_some_and(|left| free > left)
        {
            let geometry = self.core.superblock.geometry;
            if free >= geometry.block_bytes() * u64::from(geometry.dies) {
                self.core.ftl.has_room_again();
                self.core.carry_out(&[]);
            }
        }
        self.note_store();
    }

    /// Logs that the store became full, or has room again.
    pub(crate) fn note_store(&mut self) {
        let full = is_full(&self.core.ftl);
        if full == self.room.full {
            return;
        }
        self.room.full = full;
        let path = self.info().paths[0].clone();
        match self.store_trouble() {
            Some(trouble) => {
                self.room.left = self.core.media.free_bytes();
                tracing::error!(path = %path.display(), "{}", self.store_in_words(trouble));
            }
            // Where something worse took its place, that has lines of its own.
            None if self.core.ftl.failure().is_some() => {}
            None => tracing::info!(path = %path.display(), "the store has room again"),
        }
    }

    /// What is wrong with the store, if it gives no more space.
    pub(crate) fn store_trouble(&self) -> Option<Trouble> {
        if self.room.missing.is_some() {
            return Some(Trouble::NoRoomToRecover);
        }
        if self.core.ftl.failure() == Some(Error::Media) {
            // That is worse, and room would not help.
            return None;
        }
        if is_full(&self.core.ftl) {
            return Some(Trouble::StoreFull);
        }
        self.core.ftl.store_failure().map(Trouble::StoreFails)
    }

    /// The same in words.
    pub(crate) fn store_in_words(&self, trouble: Trouble) -> String {
        if let (Trouble::NoRoomToRecover, Some(missing)) = (trouble, &self.room.missing) {
            return format!("read-only: {missing}");
        }
        if let Trouble::StoreFails(error) = trouble {
            return format!("writes fail: the store gives no more space: {error}; look at it");
        }
        let systems = file_systems(&self.info().paths);
        let place = match systems.iter().min_by_key(|(system, _)| system.free_bytes) {
            Some((system, _)) => {
                let free = size::show(system.free_bytes);
                format!("{free} left on the file system at {}; make room there", system.mount.display())
            }
            None => "make room on what lies under it".into(),
        };
        format!("writes fail: the store is full: {place}, and it goes on")
    }

    /// Whether the store has no room for what is written, or had none for the attach.
    pub(crate) fn is_store_full(&self) -> bool {
        self.room.missing.is_some() || is_full(&self.core.ftl)
    }
}

fn is_full(ftl: &Ftl) -> bool {
    match ftl.failure() {
        Some(error) => error == Error::NoSpace,
        None => ftl.store_failure() == Some(Error::NoSpace),
    }
}

/// The file systems under some files, and how many of the files lie on each.
fn file_systems(paths: &[PathBuf]) -> Vec<(FileSystem, u64)> {
    let mut systems: Vec<(FileSystem, u64)> = Vec::new();
    for system in paths.iter().filter_map(|path| FileSystem::of(path)) {
        match systems.iter_mut().find(|(known, _)| known.dev == system.dev) {
            Some((_, files)) => *files += 1,
            None => systems.push((system, 1)),
        }
    }
    systems
}

/// What an attach for writing takes of each file at most, bytes.
pub(crate) fn needed(superblock: &Superblock) -> u64 {
    let geometry = superblock.geometry;
    let journal = u64::from(medium_geometry(superblock).blocks - geometry.blocks) * geometry.block_bytes();
    Ftl::recovery_bytes(&layer_config(superblock, false)) + journal
}

/// A refusal for want of space, in words that say how much is needed where; `None` for every other one.
pub(crate) fn no_room(refusal: &Refusal, needed: u64, unclean: bool, paths: &[PathBuf]) -> Option<AttachError> {
    if !matches!(refusal, Refusal::NoRoom | Refusal::Media(MediaError::NoSpace)) {
        return None;
    }
    let systems = file_systems(paths);
    let short = |(system, files): &&(FileSystem, u64)| system.free_bytes < needed * files;
    // Where a quota refuses, none of them is short.
    let any_short = systems.iter().any(|system| short(&system));
    let places = systems.iter().filter(|system| !any_short || short(system)).map(|(system, files)| {
        let (needed, free) = (size::show(needed * files), size::show(system.free_bytes));
        format!("up to {needed} on the file system at {}, which has {free} left", system.mount.display())
    });
    let places: Vec<String> = places.collect();
    let wanted = match places.is_empty() {
        true => format!("up to {} on each of its files", size::show(needed)),
        false => places.join(", and "),
    };
    Some(AttachError::NoRoom { path: paths[0].clone(), wanted, unclean })
}
