//! What an emulated device is made with.

use std::path::Path;

use card::{Format, layout};
use profile::{Flash, Profile, Zones};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::format::{check_label, create_with, now_s};
use crate::geometry::MAX_REQUEST_BYTES;
use crate::superblock::Superblock;
use crate::{Capacity, CreateError, FormatError, FormatOptions, Info, zones};

/// How a device emulates the card of its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emulation {
    /// About how many times smaller than the card it is.
    pub scale: u32,
    /// Seed of everything that varies.
    pub seed: u64,
}

/// What a new emulated device is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulateOptions {
    /// Name of the data sheet.
    pub profile: String,
    /// How it is emulated.
    pub emulation: Emulation,
    /// The first format. A capacity is that of a whole module, before scaling.
    pub format: FormatOptions,
}

/// Makes a new device file (sparse) that emulates one module of a flash card. A file in memory (`/dev/shm`) keeps it in memory.
///
/// # Errors
/// The file exists, there is no such card or drive, the options do not fit it, or the operating system failed.
pub fn create_emulated(path: &Path, options: &EmulateOptions) -> Result<Info, CreateError> {
    create_with(&[path], superblock(&options.profile, options.emulation, &options.format)?)
}

/// The flash card of a profile.
pub(crate) fn flash_card(name: &str) -> Result<(Profile, Flash), String> {
    let profile = profile::find(name).map_err(|error| error.to_string())?;
    match profile.flash().cloned() {
        Some(flash) => Ok((profile, flash)),
        None => Err(format!("{name} is a {}: what can be emulated is flash without a bridge in front", profile.kind())),
    }
}

/// The superblock of an empty emulated device.
pub(crate) fn superblock(name: &str, emulation: Emulation, options: &FormatOptions) -> Result<Superblock, FormatError> {
    check_label("label", &options.label)?;
    let invalid = |name, value: String, expected| FormatError::Invalid { name, value, expected };
    let (profile, flash) =
        flash_card(name).map_err(|why| invalid("profile", name.into(), format!("a flash card or a drive: {why}")))?;
    card::check_scale(&profile, emulation.scale)
        .map_err(|why| invalid("scale", emulation.scale.to_string(), format!("one that is possible: {why}")))?;
    let format = Format::from(options.capacity);
    let bytes = format
        .bytes(&flash.module)
        .ok_or_else(|| invalid("capacity", options.capacity.to_string(), format!("a format of {}", profile.name)))?;
    let layout = layout(&flash.module, bytes, options.sector_bytes, emulation.scale)
        .map_err(|error| invalid("format", profile.name.clone(), format!("one that the card takes: {error}")))?;
    let geometry = layout.geometry;
    let sector = u64::from(options.sector_bytes);
    // A write is atomic, so two of the largest fit into a LEB.
    let leb_bytes = u64::from(geometry.slots_per_leb()) * sector;
    let largest = u64::from(flash.module.format.max_request_bytes.min(MAX_REQUEST_BYTES)).min(leb_bytes / 2);
    let advertised = flash.module.advertised_bytes as f64 / layout.scaled_by;
    let empty = match (&flash.module.zones, options.capacity) {
        (Some(Zones { active, .. }), _) => {
            zones::formatted(geometry, zones::of_drive(layout.sectors, *active, &geometry))
        }
        (None, Capacity::Zones(_)) => {
            let expected = format!("{} as it is: no drive of zones", profile.name);
            return Err(invalid("zones", "on an emulated drive".into(), expected));
        }
        (None, _) => {
            Superblock { policy: layout.policy.code(), ..Superblock::empty(Uuid::new_v4(), geometry, layout.sectors) }
        }
    };
    let held = empty.zones.map_or(layout.sectors, |zones| u64::from(zones.count) * zones.capacity);
    Ok(Superblock {
        max_request_bytes: (largest / sector * sector) as u32,
        advertised_bytes: advertised as u64,
        formatted: now_s(),
        // The card's capacitors spare it checkpoints. Here they are needed after a crash of the process, and kept rare.
        checkpoint_interval: ((geometry.slots() - held) / 4).max(1),
        label: options.label.clone(),
        profile: profile.name,
        emulation: Some(emulation),
        // The card keeps its dies' states itself.
        dies: Vec::new(),
        ..empty
    })
}
