//! Data sheets of real devices: the files of `profiles/`, typed and built into the program.
//!
//! The files are the truth; this crate only gives them types. A sheet with an unknown or missing
//! field does not parse, so a figure cannot be silently ignored.

mod flash;
mod sheet;

pub use flash::{Controller, Energy, Nand};
pub use sheet::{Card, Chips, FormatLimits, Link, Module, Power, Profile, Published, Thermal};

/// The text of every data sheet, in the order in which they are listed.
const SHEETS: &[&str] = &[include_str!("../../../profiles/iodrive-duo-640-mlc.toml")];

/// Why there is no such profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No sheet has the name.
    #[error("no profile is called '{name}'; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A sheet is damaged.
    #[error("data sheet: {0}")]
    Parse(#[from] toml::de::Error),
}

/// Every profile.
///
/// # Errors
/// A built-in sheet does not parse; the tests of this crate rule that out.
pub fn all() -> Result<Vec<Profile>, ProfileError> {
    SHEETS.iter().map(|text| Ok(toml::from_str(text)?)).collect()
}

/// The profile of a name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<Profile, ProfileError> {
    let mut profiles = all()?;
    match profiles.iter().position(|profile| profile.name == name) {
        Some(at) => Ok(profiles.swap_remove(at)),
        None => {
            let known = profiles.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>().join(", ");
            Err(ProfileError::Unknown { name: name.into(), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sheet_parses_and_is_consistent() {
        let profiles = all().expect("every sheet parses");
        for profile in &profiles {
            assert_eq!(find(&profile.name).expect("found by its name").product, profile.product);
            let module = &profile.module;
            assert!(profile.modules >= 1, "{}", profile.name);
            assert!(module.advertised_bytes < module.raw_bytes, "{}", profile.name);
            assert!(module.high_performance_bytes < module.advertised_bytes, "{}", profile.name);
            assert_eq!(module.chips.bytes * u64::from(module.chips.count), module.raw_bytes, "{}", profile.name);
            assert!(profile.card.power.throttle_watts < profile.card.power.slot_watts, "{}", profile.name);
            assert!(profile.card.thermal.throttle_celsius < profile.card.thermal.shutdown_celsius, "{}", profile.name);
        }
    }

    #[test]
    fn names_are_unique_and_those_of_the_files() {
        let mut names: Vec<String> = all().expect("every sheet parses").into_iter().map(|p| p.name).collect();
        names.sort();
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .expect("profiles directory")
            .map(|entry| entry.expect("entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| path.file_stem().expect("stem").to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(names, files);
    }

    #[test]
    fn the_duo_is_as_reviewed() {
        let duo = find("iodrive-duo-640-mlc").expect("built in");
        assert_eq!(
            (duo.modules, duo.module.raw_bytes, duo.module.advertised_bytes),
            (2, 400_000_000_000, 320_000_000_000)
        );
        assert_eq!((duo.module.chips.count, duo.module.chips.parity), (25, 1));
    }

    #[test]
    fn an_unknown_name_tells_what_there_is() {
        let message = find("iodrive-9000").expect_err("unknown").to_string();
        assert_eq!(message, "no profile is called 'iodrive-9000'; there are: iodrive-duo-640-mlc");
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = SHEETS[0].replacen("vendor =", "colour = \"green\"\nvendor =", 1);
        let message = toml::from_str::<Profile>(&text).expect_err("unknown field").to_string();
        assert!(message.contains("colour"), "{message}");
    }
}
