//! The shape of a data sheet. Where a figure comes from stands in the sheet itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::bridge::Bridge;
use crate::card::Card;
use crate::disk::Disk;
use crate::driver::Driver;
use crate::flash::Module;

/// One product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Sheet", into = "Sheet")]
pub struct Profile {
    /// What `--profile` takes: the file's name without its ending.
    pub name: String,
    /// Other names of the same product.
    pub aliases: Vec<String>,
    /// Who made it.
    pub vendor: String,
    /// What they called it.
    pub product: String,
    /// What it is made of.
    pub device: Device,
    /// What the host does for each request, for each driver: `linux`, `windows`, `esxi`.
    pub drivers: BTreeMap<String, Driver>,
    /// The vendor's specification of the whole product, where it is known.
    pub published: Option<Published>,
}

/// What a product is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Device {
    /// A flash card whose modules are devices of their own.
    Flash(Flash),
    /// A spinning disk.
    Disk(Disk),
    /// Flash behind a SATA or SAS bridge, one controller or several in hardware RAID 0: one device for the host.
    Bridged(Bridged),
    /// Several of another product behind a RAID controller.
    Array(Array),
}

/// A flash card.
#[derive(Clone, Debug, PartialEq)]
pub struct Flash {
    /// Modules on the card.
    pub modules: u32,
    /// One module.
    pub module: Module,
    /// What the modules of the card share; a bare module has none.
    pub card: Option<Card>,
}

/// Flash behind a bridge.
#[derive(Clone, Debug, PartialEq)]
pub struct Bridged {
    /// Flash controllers behind the bridge, striped over when there are several.
    pub modules: u32,
    /// One controller and its flash.
    pub module: Module,
    /// The bridge.
    pub bridge: Bridge,
}

/// The vendor's specification of a whole product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// 64 KiB sequential reads, bytes a second.
    pub read_bandwidth_bytes_per_s: u64,
    /// 64 KiB sequential writes, bytes a second.
    pub write_bandwidth_bytes_per_s: u64,
    /// 512 B random reads a second.
    pub read_512_per_s: u64,
    /// 512 B random writes a second.
    pub write_512_per_s: u64,
    /// 512 B read latency, seconds.
    pub latency_seconds: f64,
}

impl Profile {
    /// The flash card that this is, or `None` for another kind of device.
    pub fn flash(&self) -> Option<&Flash> {
        match &self.device {
            Device::Flash(flash) => Some(flash),
            _ => None,
        }
    }

    /// The largest sector size of those that a format can choose from and that `fits`; `None` where none does or the device
    /// has no choice. An array has its members' choice.
    pub fn largest_sector(&self, fits: &dyn Fn(u32) -> bool) -> Option<u32> {
        let module = match &self.device {
            Device::Flash(flash) => &flash.module,
            Device::Bridged(bridged) => &bridged.module,
            Device::Disk(_) => return None,
            Device::Array(array) => {
                return crate::find(&array.member).ok()?.largest_sector(fits);
            }
        };
        module.format.sector_bytes.iter().copied().filter(|sector| fits(*sector)).max()
    }

    /// What kind of device this is, in words.
    pub fn kind(&self) -> &'static str {
        match &self.device {
            Device::Flash(flash) if flash.module.controller.map_in_drive => "solid-state drive",
            Device::Flash(_) => "flash card",
            Device::Disk(_) => "spinning disk",
            Device::Bridged(_) => "solid-state drive behind a bridge",
            Device::Array(_) => "array",
        }
    }

    /// Whether this is what the name means.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The tables as they stand in the file: which of them are there says what kind of device it is.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    vendor: String,
    product: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    modules: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<Module>,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<Card>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bridge: Option<Bridge>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<Array>,
    #[serde(default)]
    drivers: BTreeMap<String, Driver>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<Published>,
}

impl TryFrom<Sheet> for Profile {
    type Error = String;

    fn try_from(sheet: Sheet) -> Result<Self, String> {
        let device = match (sheet.modules, sheet.module, sheet.card, sheet.disk, sheet.bridge, sheet.array) {
            (Some(modules), Some(module), card, None, None, None) => Device::Flash(Flash { modules, module, card }),
            (Some(modules), Some(module), None, None, Some(bridge), None) => {
                Device::Bridged(Bridged { modules, module, bridge })
            }
            (None, None, None, Some(disk), None, None) => Device::Disk(disk),
            (None, None, None, None, None, Some(array)) => Device::Array(array),
            _ => {
                return Err(format!(
                    "'{}' must be exactly one of: a flash card (modules, [module] and perhaps [card]), a drive behind a bridge \
                     (modules, [module] and [bridge]), a disk ([disk]), an array ([array])",
                    sheet.name
                ));
            }
        };
        let profile = Profile {
            name: sheet.name,
            aliases: sheet.aliases,
            vendor: sheet.vendor,
            product: sheet.product,
            device,
            drivers: sheet.drivers,
            published: sheet.published,
        };
        crate::check::check(&profile)?;
        Ok(profile)
    }
}

impl From<Profile> for Sheet {
    fn from(profile: Profile) -> Self {
        let mut sheet = Sheet {
            name: profile.name,
            aliases: profile.aliases,
            vendor: profile.vendor,
            product: profile.product,
            modules: None,
            module: None,
            card: None,
            disk: None,
            bridge: None,
            array: None,
            drivers: profile.drivers,
            published: profile.published,
        };
        match profile.device {
            Device::Flash(Flash { modules, module, card }) => {
                (sheet.modules, sheet.module, sheet.card) = (Some(modules), Some(module), card);
            }
            Device::Bridged(Bridged { modules, module, bridge }) => {
                (sheet.modules, sheet.module, sheet.bridge) = (Some(modules), Some(module), Some(bridge));
            }
            Device::Disk(disk) => sheet.disk = Some(disk),
            Device::Array(array) => sheet.array = Some(array),
        }
        sheet
    }
}
