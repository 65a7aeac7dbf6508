//! Data sheets of real devices: the files of `profiles/`, typed and built into the program.
//!
//! The files are the truth; this crate only gives them types. A sheet with an unknown or missing
//! field does not parse, so a figure cannot be silently ignored. What products have in common stands once, in
//! [`parts`].

use std::sync::LazyLock;

mod array;
mod bridge;
mod card;
mod check;
mod disk;
mod driver;
mod flash;
pub mod parts;
mod sheet;

pub use array::{Array, Level};
pub use bridge::Bridge;
pub use card::{Card, Link, Power, Thermal};
pub use disk::Disk;
pub use driver::{Driver, Interrupts};
pub use flash::{
    Chips, Controller, Energy, FormatLimits, MapCache, Module, Nand, Retry, SlcCache, Suspend, WhenFull, Zones,
};
pub use sheet::{Bridged, Device, Flash, Profile, Published};

/// The text of every data sheet, in the order in which they are listed.
const SHEETS: &[&str] = &[
    include_str!("../profiles/iodrive-320-mlc.toml"),
    include_str!("../profiles/iodrive-640-mlc.toml"),
    include_str!("../profiles/iodrive-duo-320-slc.toml"),
    include_str!("../profiles/iodrive-duo-640-slc.toml"),
    include_str!("../profiles/iodrive-duo-640-mlc.toml"),
    include_str!("../profiles/iodrive-duo-1280-mlc.toml"),
    include_str!("../profiles/iodrive2-400-slc.toml"),
    include_str!("../profiles/iodrive2-600-slc.toml"),
    include_str!("../profiles/iodrive2-365-mlc.toml"),
    include_str!("../profiles/iodrive2-785-mlc.toml"),
    include_str!("../profiles/iodrive2-1200-mlc.toml"),
    include_str!("../profiles/lsi-warpdrive-slp300.toml"),
    include_str!("../profiles/ocz-zdrive-r4.toml"),
    include_str!("../profiles/intel-x25m-160.toml"),
    include_str!("../profiles/intel-320-160.toml"),
    include_str!("../profiles/sata-ssd-64.toml"),
    include_str!("../profiles/sas-ssd-400.toml"),
    include_str!("../profiles/atp-velocity-sii.toml"),
    include_str!("../profiles/sata-ssd-raid5.toml"),
    include_str!("../profiles/sas-hdd-600-15k.toml"),
    include_str!("../profiles/wd-re3.toml"),
    include_str!("../profiles/hitachi-15k600.toml"),
    include_str!("../profiles/hitachi-15k600-raid5.toml"),
    include_str!("../profiles/samsung-970-pro-512.toml"),
    include_str!("../profiles/samsung-980-pro-1tb.toml"),
    include_str!("../profiles/samsung-980-1tb.toml"),
    include_str!("../profiles/kioxia-bg4-1tb.toml"),
    include_str!("../profiles/kioxia-bg4-1tb-no-hmb.toml"),
    include_str!("../profiles/samsung-840-evo-120.toml"),
    include_str!("../profiles/samsung-pm9a3-960.toml"),
    include_str!("../profiles/solidigm-p5520-1920.toml"),
    include_str!("../profiles/wd-zn540-1tb.toml"),
    include_str!("../profiles/hp-fx700-2tb.toml"),
    include_str!("../profiles/samsung-pm9d3a-1920.toml"),
    include_str!("../profiles/mqsim-reference.toml"),
];

/// Why there is no such profile.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProfileError {
    /// No sheet has the name.
    #[error("no profile is called '{name}'; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A sheet extends what is not there, or what extends itself.
    #[error("data sheet: it extends '{name}', and no part is called so, or that extends itself")]
    Part {
        /// The part.
        name: String,
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
    PROFILES.clone()
}

static PROFILES: LazyLock<Result<Vec<Profile>, ProfileError>> =
    LazyLock::new(|| SHEETS.iter().map(|text| Ok(parts::whole(text, &parts::part)?.try_into()?)).collect());

/// The profile of a name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<Profile, ProfileError> {
    let profiles = PROFILES.as_ref().map_err(Clone::clone)?;
    match profiles.iter().find(|profile| profile.is_called(name)) {
        Some(profile) => Ok(profile.clone()),
        None => {
            let known = profiles.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>().join(", ");
            Err(ProfileError::Unknown { name: name.into(), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a sheet with its parts laid under it.
    fn text(sheet: &str) -> String {
        toml::to_string(&parts::whole(sheet, &parts::part).expect("whole")).expect("written")
    }

    #[test]
    fn every_sheet_parses_and_is_found_by_all_its_names() {
        for profile in all().expect("every sheet parses") {
            for name in profile.aliases.iter().chain([&profile.name]) {
                assert_eq!(find(name).expect("found by its name"), profile);
            }
        }
    }

    #[test]
    fn no_name_means_two_products() {
        let profiles = all().expect("every sheet parses");
        let mut names: Vec<&String> = profiles.iter().flat_map(|p| p.aliases.iter().chain([&p.name])).collect();
        names.sort();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }

    #[test]
    fn members_of_arrays_exist_and_are_no_arrays() {
        for profile in all().expect("every sheet parses") {
            if let Device::Array(array) = &profile.device {
                let member = find(&array.member).expect("the member has a sheet");
                assert!(!matches!(member.device, Device::Array(_)), "{}", profile.name);
            }
        }
    }

    #[test]
    fn a_profile_survives_being_written_and_read() {
        for profile in all().expect("every sheet parses") {
            let text = toml::to_string(&profile).expect("written");
            assert_eq!(toml::from_str::<Profile>(&text).expect("read"), profile);
        }
    }

    #[test]
    fn a_sheet_that_is_two_things_is_refused() {
        let text = format!(
            "{}\n[array]\nlevel = \"raid0\"\nmember = \"wd-re3\"\ncount = 2\nstripe_bytes = 65536\nrequest_us = 0.0\nwrite_cache_bytes = 0\nmember_write_cache = true\n",
            text(SHEETS[0])
        );
        let message = toml::from_str::<Profile>(&text).expect_err("two things").to_string();
        assert!(message.contains("must be exactly one of"), "{message}");
    }

    #[test]
    fn a_figure_against_physics_is_refused() {
        let text = text(SHEETS[0]).replacen("\nread_us = ", "\nread_us = -", 1);
        let message = toml::from_str::<Profile>(&text).expect_err("negative time").to_string();
        assert!(message.contains("nand.read_us"), "{message}");
    }

    #[test]
    fn a_published_figure_that_is_no_number_is_refused() {
        let mut sheets = SHEETS.iter().filter(|sheet| sheet.contains("latency_seconds = "));
        let sheet = sheets.next().expect("one has published figures");
        let text = text(sheet).replacen("latency_seconds = ", "latency_seconds = nan # ", 1);
        let message = toml::from_str::<Profile>(&text).expect_err("not a number").to_string();
        assert!(message.contains("published.latency_seconds is NaN"), "{message}");
    }

    #[test]
    fn names_are_unique_and_those_of_the_files() {
        let mut names: Vec<String> = all().expect("every sheet parses").into_iter().map(|p| p.name).collect();
        names.sort();
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
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
        let flash = duo.flash().expect("a flash card");
        assert_eq!(
            (flash.modules, flash.module.raw_bytes, flash.module.advertised_bytes),
            (2, 400_000_000_000, 320_000_000_000)
        );
        assert_eq!((flash.module.chips.count, flash.module.chips.parity), (25, 1));
    }

    #[test]
    fn the_largest_sector_that_fits_is_the_members_of_an_array() {
        let largest = |name: &str, bytes: u32| {
            find(name).expect("built in").largest_sector(&|sector| bytes.is_multiple_of(sector))
        };
        assert_eq!(
            [8192, 2048, 512, 100].map(|bytes| largest("iodrive-320-mlc", bytes)),
            [Some(4096), Some(2048), Some(512), None]
        );
        assert_eq!(largest("sata-ssd-raid5", 8192), largest("atp-velocity-sii", 8192));
        assert!(largest("sata-ssd-raid5", 8192).is_some());
        assert_eq!((largest("wd-re3", 8192), largest("hitachi-15k600-raid5", 8192)), (None, None));
    }

    #[test]
    fn an_unknown_name_tells_what_there_is() {
        let message = find("iodrive-9000").expect_err("unknown").to_string();
        assert!(message.starts_with("no profile is called 'iodrive-9000'; there are: "), "{message}");
        assert!(message.contains("iodrive-duo-640-mlc, "), "{message}");
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = text(SHEETS[0]).replacen("vendor =", "colour = \"green\"\nvendor =", 1);
        let message = toml::from_str::<Profile>(&text).expect_err("unknown field").to_string();
        assert!(message.contains("colour"), "{message}");
    }
}
