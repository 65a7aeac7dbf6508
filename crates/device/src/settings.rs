//! What can be configured on a device, kept in its superblock.

use serde::{Deserialize, Serialize};

use crate::format::check_label;
use crate::{Device, FormatError};

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
    /// The groomer's policy, by the name that `ftl::Policy` has for it.
    pub groomer: String,
    /// Bytes appended between two checkpoints: bounds what an attach after a crash must read.
    pub checkpoint_interval_bytes: u64,
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
    /// See [`Settings::groomer`].
    Groomer(String),
    /// See [`Settings::checkpoint_interval_bytes`].
    CheckpointInterval(u64),
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
            groomer: self.core.ftl.policy_name().into(),
            checkpoint_interval_bytes: superblock.checkpoint_interval * u64::from(self.info().sector_bytes),
        }
    }

    /// Changes settings, all or none. They hold at once; their way to the media begins at once too.
    ///
    /// # Errors
    /// A value is out of range, or the device is attached read-only.
    pub fn set(&mut self, settings: &[Setting]) -> Result<(), FormatError> {
        self.check_writable()?;
        settings.iter().try_for_each(|setting| self.check_setting(setting))?;
        settings.iter().for_each(|setting| self.apply(setting));
        self.core.save_settings();
        self.renew_info();
        Ok(())
    }

    fn check_setting(&self, setting: &Setting) -> Result<(), FormatError> {
        let invalid = |name, value: String, expected: String| Err(FormatError::Invalid { name, value, expected });
        match setting {
            Setting::Label(label) => check_label("label", label),
            Setting::Groomer(name) if ftl::Policy::from_name(name).is_none() => {
                let names: Vec<_> = ftl::Policy::ALL.iter().map(|policy| policy.name()).collect();
                invalid("groomer", name.clone(), names.join(" or "))
            }
            Setting::CheckpointInterval(bytes) if !(1 << 20..=1 << 40).contains(bytes) => {
                invalid("checkpoint interval", format!("{bytes} bytes"), "1 MiB to 1 TiB".into())
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
        }
    }
}
