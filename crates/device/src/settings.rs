//! What can be configured on a device, kept in its superblock.

use serde::{Deserialize, Serialize};

use crate::format::check_label;
use crate::{Device, Durability, FormatError, IoError};

/// The largest block over NVMe, bytes: what current kernels take.
const NVME_BLOCK_MAX: u32 = 64 << 10;

/// The settings of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// A name for people.
    pub label: String,
    /// Whether trims are carried out.
    pub trim: bool,
    /// The location beacon.
    pub beacon: bool,
    /// Whether faults may be put on it by command.
    pub drills: bool,
    /// When writes are durable; nothing on an emulated card, whose capacitors keep what it took.
    pub durability: Option<Durability>,
    /// Bytes of a block over NVMe.
    pub nvme_block_bytes: u32,
    /// Requests that clients may have with it at once; nothing for as many as it takes.
    pub queue_depth: Option<u8>,
    /// Whether an emulated card's power budget is overridden; nothing on a device that has none.
    pub power_override: Option<bool>,
    /// Whether memory for the worst case is taken and locked.
    pub page_file: bool,
    /// The groomer's policy, by the name that `ftl::Policy` has for it.
    pub groomer: String,
    /// Bytes appended between two checkpoints: bounds what an attach after a crash must read.
    pub checkpoint_interval_bytes: u64,
    /// What its object store costs; nothing on a device that has none. Kept beside the journal.
    pub object_prices: Option<String>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// See [`Settings::label`].
    Label(String),
    /// See [`Settings::trim`].
    Trim(bool),
    /// See [`Settings::beacon`].
    Beacon(bool),
    /// See [`Settings::drills`]. Holds with the next attach.
    Drills(bool),
    /// See [`Settings::durability`].
    Durability(Durability),
    /// See [`Settings::nvme_block_bytes`]. Holds with the next attach.
    NvmeBlock(u32),
    /// See [`Settings::queue_depth`].
    QueueDepth(Option<u8>),
    /// See [`Settings::power_override`].
    PowerOverride(bool),
    /// See [`Settings::page_file`].
    PageFile(bool),
    /// See [`Settings::groomer`].
    Groomer(String),
    /// See [`Settings::checkpoint_interval_bytes`].
    CheckpointInterval(u64),
    /// See [`Settings::object_prices`].
    ObjectPrices(String),
}

impl Device {
    /// The settings kept on media.
    pub fn settings(&self) -> Settings {
        let superblock = &self.core.superblock;
        Settings {
            label: superblock.label.clone(),
            trim: superblock.trim,
            beacon: superblock.beacon,
            drills: superblock.drills,
            durability: self.durability(),
            nvme_block_bytes: 1 << superblock.nvme_block_shift.max(self.info().sector_bytes.trailing_zeros() as u8),
            queue_depth: self.queue_depth(),
            power_override: self.power_override(),
            page_file: superblock.page_file,
            groomer: self.core.ftl.policy_name().into(),
            checkpoint_interval_bytes: superblock.checkpoint_interval * u64::from(self.info().sector_bytes),
            object_prices: self.object_prices(),
        }
    }

    /// Changes settings, all or none. They hold at once; their way to the media begins at once too.
    ///
    /// # Errors
    /// A value is out of range, or the device is attached read-only.
    pub fn set(&mut self, settings: &[Setting]) -> Result<(), FormatError> {
        self.check_writable()?;
        settings.iter().try_for_each(|setting| self.check_setting(setting))?;
        // Those that may fail come first.
        if let Some(Setting::PageFile(on)) = settings.iter().rfind(|setting| matches!(setting, Setting::PageFile(_))) {
            self.set_page_file(*on)?;
        }
        for setting in settings {
            if let Setting::ObjectPrices(text) = setting {
                self.set_prices(text)?;
            }
        }
        settings.iter().for_each(|setting| self.apply(setting));
        self.core.save_settings();
        self.renew_info();
        Ok(())
    }

    /// When writes are durable; nothing on an emulated card.
    pub(crate) fn durability(&self) -> Option<Durability> {
        self.card.is_none().then_some(self.core.superblock.durability)
    }

    /// Requests that clients may have with it at once; nothing for as many as it takes.
    #[inline]
    pub fn queue_depth(&self) -> Option<u8> {
        Some(self.core.superblock.queue_depth).filter(|depth| *depth > 0)
    }

    /// Whether the power budget is overridden; nothing where there is none.
    pub(crate) fn power_override(&self) -> Option<bool> {
        let budgeted = self.card.as_ref().is_some_and(|card| card.controller.governor.is_some());
        budgeted.then_some(self.core.superblock.power_override)
    }

    /// Whether what was set is on the medium.
    ///
    /// # Errors
    /// It could not be written.
    pub fn is_saved(&self) -> Result<bool, IoError> {
        self.core.settings_saved()
    }

    fn check_setting(&self, setting: &Setting) -> Result<(), FormatError> {
        let invalid = |name, value: String, expected: String| Err(FormatError::Invalid { name, value, expected });
        match setting {
            Setting::Label(label) => check_label("label", label),
            Setting::Groomer(name) if ftl::Policy::from_name(name).is_none() => {
                let names: Vec<_> = ftl::Policy::ALL.iter().map(|policy| policy.name()).collect();
                invalid("groomer", name.clone(), names.join(" or "))
            }
            Setting::Groomer(name) if (name == ftl::Policy::Zones.name()) != self.zoned.is_some() => {
                let expected = if self.zoned.is_some() {
                    "zones, the policy of devices of zones".into()
                } else {
                    "another one: this policy is that of devices of zones (`vsl format --zones`)".into()
                };
                invalid("groomer", name.clone(), expected)
            }
            Setting::Groomer(name)
                if self.core.superblock.is_sparse()
                    && ftl::Policy::from_name(name).is_some_and(ftl::Policy::keeps_each_sector) =>
            {
                let expected = "a policy that keeps nothing of each sector, since the address space is sparse".into();
                invalid("groomer", name.clone(), expected)
            }
            Setting::Groomer(name)
                if !self.clones().is_empty()
                    && ftl::Policy::from_name(name).is_some_and(ftl::Policy::keeps_each_sector) =>
            {
                let expected = "a policy that keeps nothing of each sector, since there are clones".into();
                invalid("groomer", name.clone(), expected)
            }
            Setting::PageFile(true) if self.core.superblock.is_sparse() => {
                invalid("page-file", "on".into(), "a device whose address space is not sparse".into())
            }
            Setting::PageFile(true) if !self.snapshots().is_empty() => invalid(
                "page-file",
                "on".into(),
                "a device without snapshots, whose memory grows with what they hold".into(),
            ),
            Setting::CheckpointInterval(bytes) if !(1 << 20..=1 << 40).contains(bytes) => {
                invalid("checkpoint interval", format!("{bytes} bytes"), "1 MiB to 1 TiB".into())
            }
            Setting::Durability(Durability::Remote) if self.core.media.store_behind().is_none() => invalid(
                "durability",
                "remote".into(),
                "a device on objects: this one has no object store behind it".into(),
            ),
            Setting::Durability(mode) if self.durability().is_none() => invalid(
                "durability",
                mode.name().into(),
                "a device that is not emulated: a card's capacitors keep what it took".into(),
            ),
            Setting::NvmeBlock(bytes) => {
                let sector = self.info().sector_bytes;
                if self.zoned.is_some() && *bytes != sector {
                    let expected = format!("{sector} bytes, the sector size: zones end at any sector");
                    return invalid("nvme-block", format!("{bytes} bytes"), expected);
                }
                let sound = bytes.is_power_of_two() && (sector..=NVME_BLOCK_MAX).contains(bytes);
                match sound && u64::from(*bytes) <= self.info().bytes() {
                    true => Ok(()),
                    false => invalid(
                        "nvme-block",
                        format!("{bytes} bytes"),
                        format!("a power of two from the sector size, {sector}, to {NVME_BLOCK_MAX} bytes"),
                    ),
                }
            }
            Setting::PowerOverride(on) if self.power_override().is_none() => {
                let value = if *on { "on" } else { "off" };
                invalid(
                    "power override",
                    value.into(),
                    "an emulated card, whose data sheet knows its slot's power budget".into(),
                )
            }
            Setting::Drills(false) => match self.drills().first() {
                Some(first) => {
                    let expected = format!("no drill to be on, and {first} is: `vsl drill DEVICE undo all`");
                    invalid("drills", "off".into(), expected)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Puts a setting in force that was checked.
    fn apply(&mut self, setting: &Setting) {
        let sector_bytes = u64::from(self.info().sector_bytes);
        let superblock = &mut self.core.superblock;
        match setting {
            Setting::Label(label) => superblock.label.clone_from(label),
            Setting::Trim(on) => superblock.trim = *on,
            Setting::Beacon(on) => superblock.beacon = *on,
            Setting::Drills(on) => superblock.drills = *on,
            Setting::Durability(mode) => {
                superblock.durability = *mode;
                // What was answered before is made durable too, as soon as may be.
                self.core.ftl.make_durable();
                self.core.carry_out(&[]);
            }
            Setting::QueueDepth(depth) => superblock.queue_depth = depth.unwrap_or(0),
            Setting::NvmeBlock(bytes) => superblock.nvme_block_shift = bytes.trailing_zeros() as u8,
            Setting::PowerOverride(on) => {
                superblock.power_override = *on;
                if let Some(governor) = self.card.as_mut().and_then(|card| card.controller.governor.as_mut()) {
                    governor.override_limit(*on);
                }
            }
            Setting::PageFile(on) => superblock.page_file = *on,
            Setting::Groomer(name) => {
                if let Some(policy) = ftl::Policy::from_name(name) {
                    superblock.policy = policy.code();
                    // One that is in force already keeps what it has learnt.
                    if policy.name() != self.core.ftl.policy_name() {
                        self.core.ftl.set_policy(policy);
                    }
                }
            }
            Setting::CheckpointInterval(bytes) => {
                superblock.checkpoint_interval = bytes / sector_bytes;
                self.core.ftl.set_checkpoint_interval(superblock.checkpoint_interval);
            }
            // They do not stand on the medium, and hold already.
            Setting::ObjectPrices(_) => {}
        }
    }
}
