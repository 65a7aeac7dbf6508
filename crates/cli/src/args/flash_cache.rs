//! Arguments of a cache in front of virtual disks.

use clap::Args;
use daemon::Failure;
use lab::cached::{self, CachePlan};

use super::cache::Mode;

/// A cache in front of virtual disks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cache in front of disks")]
pub struct FlashCache {
    /// Put a module of this data sheet as a cache in front of the device, which must be a disk or an array of disks: see docs/cache.md.
    #[arg(long, value_name = "PROFILE")]
    pub cache: Option<String>,
    /// What the cache has room for, such as 32GiB: a module with so much flash, as fast as the whole one. [default: all of its flash]
    #[arg(long, value_name = "SIZE", requires = "cache", value_parser = super::values::size)]
    pub cache_size: Option<u64>,
    /// What becomes of writes.
    #[arg(long, value_name = "MODE", requires = "cache", value_enum, default_value_t = Mode::Through)]
    pub cache_mode: Mode,
}

impl FlashCache {
    /// The cache that is asked for.
    ///
    /// # Errors
    /// There is no such data sheet.
    pub fn plan(&self) -> Result<Option<CachePlan>, Failure> {
        let Some(name) = &self.cache else { return Ok(None) };
        let profile = profile::find(name)
            .map_err(|error| Failure::invalid(format!("--cache: {error}")).help("`vsl profiles` lists them"))?;
        let mode = match self.cache_mode {
            Mode::Around => cached::Mode::Around,
            Mode::Through => cached::Mode::Through,
            Mode::Back => cached::Mode::Back,
        };
        Ok(Some(CachePlan { profile: profile.name, bytes: self.cache_size, mode }))
    }
}
