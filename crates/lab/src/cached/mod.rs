//! A flash module as the cache of disks, in virtual time: what `vsl cache` would be worth before it is bought.
//!
//! **What it is for.** [`CachePlan::put_before`] puts a module in front of a disk or an array of disks; what comes of it is a
//! [`card::VirtualDevice`] like others, so every workload, trace and protocol runs on it.
//!
//! **What it promises.** The rules are not written down a second time: [`cache::Volume`] itself decides what is read and written where
//! and when, with the layer and its groomer on the NAND model below it. The times are those of the two models. No bytes are kept: a
//! sector's content stands for itself in [`PLACEHOLDER`] bytes.

mod volume;

use card::{BuildError, Built, build_cache};
use profile::Profile;
use serde::{Deserialize, Serialize};

pub use cache::Mode;
pub use volume::Cached;

use crate::published::is_disk;

/// Bytes that stand for the content of a sector, which nobody reads.
const PLACEHOLDER: u32 = 16;

/// A cache in front of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachePlan {
    /// The data sheet of the cache.
    pub profile: String,
    /// What it has room for, bytes; all that its flash holds where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What becomes of writes.
    #[serde(with = "mode")]
    pub mode: Mode,
}

/// A mode by its name.
mod mode {
    use cache::Mode;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(mode: &Mode, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(mode.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Mode, D::Error> {
        let name = String::deserialize(from)?;
        Mode::from_name(&name).ok_or_else(|| serde::de::Error::custom(super::no_mode(&name)))
    }
}

fn no_mode(name: &str) -> String {
    let names: Vec<&str> = Mode::ALL.into_iter().map(Mode::name).collect();
    format!("'{name}' is no mode of a cache; there are: {}", names.join(", "))
}

/// Why there is no cache in front of a device.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CacheError {
    /// There is no such data sheet.
    #[error("the cache: {0}")]
    Profile(String),
    /// What stands behind is not slower.
    #[error("{device} is a {kind}: a cache stands in front of a disk, or of an array of disks")]
    Behind {
        /// The data sheet.
        device: String,
        /// What it is.
        kind: &'static str,
    },
    /// It cannot be built.
    #[error("the cache: {0}")]
    Build(#[from] BuildError),
    /// Its sectors hold those of the disk in no whole number.
    #[error(
        "the cache: {profile} has sectors of {sector} bytes, and {device} of {expected}, of which no whole number fits"
    )]
    Sectors {
        /// The data sheet of the cache.
        profile: String,
        /// Its sectors, bytes.
        sector: u32,
        /// That of what stands behind.
        device: String,
        /// Its sectors, bytes.
        expected: u32,
    },
}

/// A cache as it was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheBuilt {
    /// What it has room for, bytes.
    pub room_bytes: u64,
    /// Vendor and product.
    pub product: String,
}

impl CachePlan {
    /// Whether it can stand in front of a device.
    ///
    /// # Errors
    /// That is none of disks.
    pub fn check(&self, device: &Profile) -> Result<Profile, CacheError> {
        if !is_disk(device) {
            return Err(CacheError::Behind { device: device.name.clone(), kind: device.kind() });
        }
        profile::find(&self.profile).map_err(|error| CacheError::Profile(error.to_string()))
    }

    /// Puts the cache in front of what was built of a data sheet, in its place. `options` are those of the device; `takes` says whether all requests are
    /// multiples of a sector size.
    ///
    /// # Errors
    /// The data sheets do not go together, or the cache cannot be so small or large.
    pub fn put_before(
        &self,
        built: &mut Built,
        device: &Profile,
        options: &card::Options,
        takes: &dyn Fn(u32) -> bool,
    ) -> Result<CacheBuilt, CacheError> {
        let profile = self.check(device)?;
        // Where none fits, the engine says what does not.
        let fitting = || profile.largest_sector(takes).or_else(|| profile.largest_sector(&|_| true));
        let sector_bytes = options.sector_bytes.or_else(fitting);
        let options = card::Options { sector_bytes, ..options.clone() };
        // A disk, or an array of them, is one device in every arrangement.
        let Some(behind) = built.devices.pop() else {
            return Err(CacheError::Behind { device: device.name.clone(), kind: device.kind() });
        };
        let sectors = volume::addresses(behind.bytes() / u64::from(sector_bytes.unwrap_or(512)));
        let (module, room_bytes) = build_cache(&profile, &options, self.bytes, sectors)?;
        let (sector, expected) = (module.sector_bytes(), behind.sector_bytes());
        if !sector.is_multiple_of(expected) {
            return Err(CacheError::Sectors { profile: profile.name, sector, device: device.name.clone(), expected });
        }
        let product = format!("{} {}", profile.vendor, profile.product);
        built.devices.push(Box::new(Cached::new(module, behind, room_bytes, self.mode)));
        Ok(CacheBuilt { room_bytes, product })
    }
}

impl std::fmt::Display for CachePlan {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let size = self.bytes.map(|bytes| format!("-{}", size::exact(bytes))).unwrap_or_default();
        write!(out, "{}{size}-{}", self.profile, self.mode.name())
    }
}

#[cfg(test)]
mod tests;
