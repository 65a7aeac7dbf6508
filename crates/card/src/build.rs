//! From a data sheet to devices.

use ftl::{Pacing, Policy};
use profile::{Bridged, Device, Driver, Flash, Level, Profile};

use crate::array::{Array, Raid5, WriteBack};
use crate::bridge::Bridge;
use crate::device::VirtualDevice;
use crate::disk::Disk;
use crate::format::Format;
use crate::governor::Surroundings;
use crate::layout::{LayoutError, largest_scale};
use crate::moderated::Moderated;
use crate::module::{Module, ModuleConfig};

/// What stands before the modules of a card, or several cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Arrangement {
    /// One module, or the drive, disk or array that the sheet describes.
    #[default]
    Single,
    /// Every module of the card as a device of its own.
    BothModules,
    /// Two modules, striped by the operating system: those of one card, or of two cards with one each.
    Raid0,
    /// So many modules of as many cards as it takes, striped by the operating system.
    Raid0Of(u32),
    /// Two modules, mirrored by the operating system.
    Raid1,
}

/// Modules that one host had at most.
const MODULES: u32 = 8;

impl Arrangement {
    /// Devices that what is written is spread over: what the whole holds is as many times what each of them does.
    pub fn spread_over(self) -> u64 {
        match self {
            Self::Single | Self::BothModules | Self::Raid1 => 1,
            Self::Raid0 => 2,
            Self::Raid0Of(count) => u64::from(count),
        }
    }
}

impl std::str::FromStr for Arrangement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "single" => Ok(Self::Single),
            "both-modules" => Ok(Self::BothModules),
            "raid0" => Ok(Self::Raid0),
            "raid1" => Ok(Self::Raid1),
            _ => match text.strip_prefix("raid0-").and_then(|count| count.parse().ok()) {
                Some(count) if (2..=MODULES).contains(&count) => Ok(Self::Raid0Of(count)),
                _ => Err(format!(
                    "'{text}' is no arrangement; there are: single, both-modules, raid0, raid1, and raid0-2 to raid0-{MODULES}"
                )),
            },
        }
    }
}

/// What to build.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many devices, and what stands before them.
    pub arrangement: Arrangement,
    /// The low-level format of flash.
    pub format: Format,
    /// Sector size of the format, bytes; the largest that the sheet allows where `None`.
    pub sector_bytes: Option<u32>,
    /// About how many times smaller than the sheet says flash is built; 1 is full scale. Disks are never scaled.
    pub scale: u32,
    /// Consecutive bytes on one member of a RAID 0 that the operating system makes.
    pub stripe_bytes: u64,
    /// Overrides whether a disk answers writes from its memory.
    pub write_cache: Option<bool>,
    /// What surrounds a card.
    pub surroundings: Surroundings,
    /// The groomer's policy of flash modules; as the data sheet says where `None`.
    pub policy: Option<Policy>,
    /// How the groomer and host writes share a flash module; as its data sheet says where `None`.
    pub pacing: Option<Pacing>,
    /// Whether flash modules groom ahead of need in quiet times.
    pub grooms_ahead: bool,
    /// The host's driver, as far as devices know of it: what a read takes of its thread for each card, how it has flash modules hold their
    /// interrupts back, and what its RAID costs.
    pub driver: Driver,
    /// Seed of everything that varies.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            arrangement: Arrangement::default(),
            format: Format::default(),
            sector_bytes: None,
            scale: 1,
            stripe_bytes: 65_536,
            write_cache: None,
            surroundings: Surroundings::default(),
            policy: None,
            pacing: None,
            grooms_ahead: true,
            driver: Driver::default(),
            seed: 1,
        }
    }
}

/// What was built.
pub struct Built {
    /// One or more devices that the host sees.
    pub devices: Vec<Box<dyn VirtualDevice>>,
    /// How far from full scale, where something was scaled.
    pub scaling: Option<Scaling>,
}

/// What a scaled-down device differs in from the real one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Scaling {
    /// Full scale is so many times larger.
    pub by: f64,
    /// What was scaled, in words.
    pub what: String,
}

/// Why a device cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// The format does not fit.
    #[error("{device}: {error}")]
    Layout {
        /// The profile.
        device: String,
        /// Why.
        error: LayoutError,
    },
    /// A format was asked of something that has none.
    #[error("{device} is a {kind}: it has no low-level format; leave the format at its default")]
    NoFormat {
        /// The profile.
        device: String,
        /// What it is.
        kind: &'static str,
    },
    /// The card has no such format.
    #[error("{device} has no format '{format}'; choose another, or a percentage or bytes")]
    NoSuchFormat {
        /// The profile.
        device: String,
        /// The format.
        format: String,
    },
    /// The arrangement makes no sense here.
    #[error("{device} is a {kind}: it cannot be arranged as {arrangement:?}; choose single, raid0 or raid1")]
    Arrangement {
        /// The profile.
        device: String,
        /// What it is.
        kind: &'static str,
        /// What was asked for.
        arrangement: Arrangement,
    },
    /// It cannot be built so small.
    #[error(
        "{device} cannot be built {scale} times smaller: below 16 pages a block and 384 blocks a die nothing is as it was; at most {largest}"
    )]
    Scale {
        /// The profile.
        device: String,
        /// What was asked for.
        scale: u32,
        /// The largest that there is.
        largest: u32,
    },
    /// It is no single module.
    #[error("{device} is a {kind}: it cannot be a cache; choose a flash card, or a drive with one flash controller")]
    NoCache {
        /// The profile.
        device: String,
        /// What it is.
        kind: &'static str,
    },
    /// The member's sheet is missing or an array itself.
    #[error("{device}: its member '{member}' is no device that can be a member")]
    Member {
        /// The profile.
        device: String,
        /// The member.
        member: String,
    },
}

/// Builds what a data sheet describes.
///
/// # Errors
/// The options do not fit the device; the message says which and what would.
pub fn build(profile: &Profile, options: &Options) -> Result<Built, BuildError> {
    let mut scaled = 1.0f64;
    let count = match (options.arrangement, &profile.device) {
        (Arrangement::Single, _) => 1,
        (Arrangement::BothModules, Device::Flash(flash)) => flash.modules,
        // A drive behind a bridge shows all its controllers as one device.
        (Arrangement::BothModules, Device::Bridged(_)) => 1,
        (Arrangement::BothModules, _) => {
            return Err(BuildError::Arrangement {
                device: profile.name.clone(),
                kind: profile.kind(),
                arrangement: options.arrangement,
            });
        }
        (Arrangement::Raid0 | Arrangement::Raid1, _) => 2,
        (Arrangement::Raid0Of(count), _) => count,
    };
    let mut devices = Vec::new();
    for at in 0..count {
        let (device, by) = one(profile, options, options.seed.wrapping_add(u64::from(at) * 1_000))?;
        scaled = scaled.max(by);
        devices.push(device);
    }
    let by_the_system = |array: Array| vec![Box::new(array.taking(options.driver.raid_us)) as Box<dyn VirtualDevice>];
    let devices = match options.arrangement {
        Arrangement::Single | Arrangement::BothModules => devices,
        Arrangement::Raid0 | Arrangement::Raid0Of(_) => by_the_system(Array::striped(devices, options.stripe_bytes)),
        Arrangement::Raid1 => by_the_system(Array::mirrored(devices)),
    };
    let scaling = (scaled > 1.0).then(|| Scaling {
        by: scaled,
        what: "capacity, erase blocks and the length of an erase; over-provisioning, rates and the times of reads and programs are those of full scale"
            .into(),
    });
    Ok(Built { devices, scaling })
}

/// Up to this scale a device is built *about* so many times smaller, as small as it can be.
const ABOUT: u32 = 64;

/// Whether a scale that somebody asked for by its number can be had. Disks are as large as they are at every scale.
///
/// # Errors
/// It is larger than what the device can be built in.
pub fn check_scale(profile: &Profile, scale: u32) -> Result<(), BuildError> {
    let module = match &profile.device {
        Device::Flash(flash) => &flash.module,
        Device::Bridged(bridged) => &bridged.module,
        Device::Disk(_) => return Ok(()),
        Device::Array(array) => {
            let missing = |_| BuildError::Member { device: profile.name.clone(), member: array.member.clone() };
            let member = profile::find(&array.member).map_err(missing)?;
            return match member.device {
                Device::Array(_) => Ok(()),
                _ => check_scale(&member, scale),
            };
        }
    };
    let largest = largest_scale(module);
    if scale > ABOUT.max(largest) {
        return Err(BuildError::Scale { device: profile.name.clone(), scale, largest });
    }
    Ok(())
}

/// One device that the sheet describes, and how much smaller it is.
fn one(profile: &Profile, options: &Options, seed: u64) -> Result<(Box<dyn VirtualDevice>, f64), BuildError> {
    match &profile.device {
        Device::Flash(flash) => flash_module(profile, flash, options, seed),
        Device::Bridged(bridged) => drive(profile, bridged, options, seed),
        Device::Disk(sheet) => {
            no_format(profile, options)?;
            let write_cache = options.write_cache.unwrap_or(sheet.write_cache);
            Ok((Box::new(Disk::new(&profile::Disk { write_cache, ..sheet.clone() })), 1.0))
        }
        Device::Array(sheet) => {
            no_format(profile, options)?;
            let missing = || BuildError::Member { device: profile.name.clone(), member: sheet.member.clone() };
            let member = profile::find(&sheet.member).map_err(|_| missing())?;
            if matches!(member.device, Device::Array(_)) {
                return Err(missing());
            }
            let write_cache = Some(options.write_cache.unwrap_or(sheet.member_write_cache));
            let options = Options { write_cache, ..options.clone() };
            let mut members = Vec::new();
            let mut scaled = 1.0f64;
            for at in 0..sheet.count {
                let (device, by) = one(&member, &options, seed.wrapping_add(u64::from(at) + 1))?;
                scaled = scaled.max(by);
                members.push(device);
            }
            Ok((array(sheet, members, scaled), scaled))
        }
    }
}

/// Builds one module of a data sheet as a cache, see [`Module::caching`]; of the options its surroundings, its pacing, its sector size and
/// the seed count. Gives what it has room for too, bytes.
///
/// # Errors
/// The sheet is none of a single module, or the cache does not fit it.
pub fn build_cache(
    profile: &Profile,
    options: &Options,
    room_bytes: Option<u64>,
    sectors: u64,
) -> Result<(Box<dyn VirtualDevice>, u64), BuildError> {
    let (sheet, card, bridge) = match &profile.device {
        Device::Flash(flash) => (&flash.module, flash.card.as_ref().map(|card| (card, flash.modules)), None),
        Device::Bridged(bridged) if bridged.modules == 1 => (&bridged.module, None, Some(&bridged.bridge)),
        Device::Bridged(_) => {
            let kind = "drive with several flash controllers";
            return Err(BuildError::NoCache { device: profile.name.clone(), kind });
        }
        Device::Disk(_) | Device::Array(_) => {
            return Err(BuildError::NoCache { device: profile.name.clone(), kind: profile.kind() });
        }
    };
    let config = config(sheet, card, options, options.seed, sheet.advertised_bytes);
    let module = Module::caching(&config, room_bytes, sectors)
        .map_err(|error| BuildError::Layout { device: profile.name.clone(), error })?;
    let room = module.ftl().config().room() * u64::from(config.sector_bytes);
    let module: Box<dyn VirtualDevice> = Box::new(module);
    Ok(match bridge {
        Some(bridge) => (Box::new(Bridge::new(module, bridge)), room),
        None => (module, room),
    })
}

/// An array of members that are so many times smaller, and so is its memory: what fits into it is the same share of the array.
fn array(sheet: &profile::Array, members: Vec<Box<dyn VirtualDevice>>, scaled: f64) -> Box<dyn VirtualDevice> {
    let count = u64::from(sheet.count);
    let (array, row): (Box<dyn VirtualDevice>, u64) = match sheet.level {
        Level::Raid0 => (Box::new(Array::striped(members, sheet.stripe_bytes)), count * sheet.stripe_bytes),
        Level::Raid1 => (Box::new(Array::mirrored(members)), sheet.stripe_bytes),
        Level::Raid5 => {
            let array = Raid5::new(members, sheet.stripe_bytes, sheet.request_us);
            (Box::new(array), (count - 1) * sheet.stripe_bytes)
        }
    };
    if sheet.write_cache_bytes == 0 {
        return array;
    }
    let memory = ((sheet.write_cache_bytes as f64 / scaled) as u64).max(row);
    Box::new(WriteBack::new(array, memory, row))
}

fn no_format(profile: &Profile, options: &Options) -> Result<(), BuildError> {
    if options.format == Format::Stock {
        return Ok(());
    }
    Err(BuildError::NoFormat { device: profile.name.clone(), kind: profile.kind() })
}

fn flash_module(
    profile: &Profile,
    flash: &Flash,
    options: &Options,
    seed: u64,
) -> Result<(Box<dyn VirtualDevice>, f64), BuildError> {
    let card = flash.card.as_ref().map(|card| (card, flash.modules));
    let mut sheet = flash.module.clone();
    sheet.controller.read_request_us += options.driver.card_read_us;
    let (module, by) = module(profile, &sheet, card, options, seed)?;
    match &options.driver.interrupts {
        None => Ok((Box::new(module), by)),
        Some(interrupts) => Ok((Box::new(Moderated::new(Box::new(module), interrupts)), by)),
    }
}

fn drive(
    profile: &Profile,
    bridged: &Bridged,
    options: &Options,
    seed: u64,
) -> Result<(Box<dyn VirtualDevice>, f64), BuildError> {
    if options.format.bytes(&bridged.module).is_none() {
        no_format(profile, options)?;
    }
    let mut controllers: Vec<Box<dyn VirtualDevice>> = Vec::new();
    let mut scaled = 1.0f64;
    for at in 0..bridged.modules {
        let (module, by) = module(profile, &bridged.module, None, options, seed.wrapping_add(u64::from(at)))?;
        scaled = scaled.max(by);
        controllers.push(Box::new(module));
    }
    let inner = match controllers.len() {
        1 => controllers.swap_remove(0),
        _ => Box::new(Array::striped(controllers, bridged.bridge.stripe_bytes)),
    };
    Ok((Box::new(Bridge::new(inner, &bridged.bridge)), scaled))
}

fn module(
    profile: &Profile,
    sheet: &profile::Module,
    card: Option<(&profile::Card, u32)>,
    options: &Options,
    seed: u64,
) -> Result<(Module, f64), BuildError> {
    let capacity_bytes = options
        .format
        .bytes(sheet)
        .ok_or_else(|| BuildError::NoSuchFormat { device: profile.name.clone(), format: options.format.to_string() })?;
    let module = Module::new(&config(sheet, card, options, seed, capacity_bytes))
        .map_err(|error| BuildError::Layout { device: profile.name.clone(), error })?;
    let by = module.layout().scaled_by;
    Ok((module, by))
}

fn config<'a>(
    sheet: &'a profile::Module,
    card: Option<(&'a profile::Card, u32)>,
    options: &Options,
    seed: u64,
    capacity_bytes: u64,
) -> ModuleConfig<'a> {
    let largest = sheet.format.sector_bytes.iter().copied().max().unwrap_or(4096);
    ModuleConfig {
        module: sheet,
        card,
        capacity_bytes,
        sector_bytes: options.sector_bytes.unwrap_or(largest),
        scale: options.scale,
        surroundings: options.surroundings.clone(),
        policy: options.policy,
        pacing: options.pacing,
        grooms_ahead: options.grooms_ahead,
        seed,
    }
}

#[cfg(test)]
mod tests;
