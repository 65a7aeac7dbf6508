//! Which formats and arrangements make sense for which device.

use profile::{Device, Profile};

/// What a device can be tested as.
pub struct Choices<'a> {
    profile: &'a Profile,
    /// It has low-level formats.
    pub has_formats: bool,
    /// It has a write cache that can be switched.
    pub has_write_cache: bool,
}

impl<'a> Choices<'a> {
    /// Those of a data sheet.
    pub fn of(profile: &'a Profile) -> Choices<'a> {
        Choices {
            profile,
            has_formats: matches!(profile.device, Device::Flash(_) | Device::Bridged(_)),
            has_write_cache: match &profile.device {
                Device::Disk(_) => true,
                Device::Array(array) => {
                    profile::find(&array.member).is_ok_and(|member| matches!(member.device, Device::Disk(_)))
                }
                Device::Flash(_) | Device::Bridged(_) => false,
            },
        }
    }

    /// The arrangement as it is meant here: what has no second module is itself.
    pub fn array(&self, asked: &'a str) -> &'a str {
        let modules = match &self.profile.device {
            Device::Flash(flash) => flash.modules,
            _ => 1,
        };
        if asked == "both-modules" && modules < 2 { "single" } else { asked }
    }

    /// Why a combination is left out, if it is. A device that knows no formats is tested once, in the first of them.
    pub fn refuses(&self, format: &str, array: &str, formats: &[String], arrays: &[String]) -> Option<String> {
        if !self.has_formats {
            let first = formats.first().is_some_and(|first| first == format);
            return (!first).then(|| format!("a {} has no format '{format}'", self.profile.kind()));
        }
        if self.array(array) != array && arrays.iter().any(|other| other == self.array(array)) {
            return Some(format!("it has one module, so '{array}' is the same as '{}'", self.array(array)));
        }
        let module = match &self.profile.device {
            Device::Flash(flash) => &flash.module,
            Device::Bridged(bridged) => &bridged.module,
            Device::Disk(_) | Device::Array(_) => return None,
        };
        match format.parse::<card::Format>() {
            Ok(parsed) if parsed.bytes(module).is_none() => Some(format!("there is no format '{format}' of it")),
            Ok(_) => None,
            Err(problem) => Some(problem),
        }
    }
}
