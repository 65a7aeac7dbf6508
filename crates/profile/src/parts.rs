//! What several data sheets have in common, and how a sheet lies over it.

use serde::Deserialize;
use toml::{Table, Value};

use crate::ProfileError;

/// The parts that come with the program, by the name under which sheets and parts extend them.
const PARTS: &[(&str, &str)] = &[
    ("drive", include_str!("../profiles/parts/drive.toml")),
    ("flash", include_str!("../profiles/parts/flash.toml")),
    ("iodrive", include_str!("../profiles/parts/iodrive.toml")),
    ("iodrive-duo", include_str!("../profiles/parts/iodrive-duo.toml")),
    ("iodrive-first", include_str!("../profiles/parts/iodrive-first.toml")),
    ("iodrive-first-mlc", include_str!("../profiles/parts/iodrive-first-mlc.toml")),
    ("iodrive-first-slc", include_str!("../profiles/parts/iodrive-first-slc.toml")),
    ("iodrive-second", include_str!("../profiles/parts/iodrive-second.toml")),
    ("iodrive-single", include_str!("../profiles/parts/iodrive-single.toml")),
    ("kioxia-bg4", include_str!("../profiles/parts/kioxia-bg4.toml")),
    ("mlc", include_str!("../profiles/parts/mlc.toml")),
    ("nvme", include_str!("../profiles/parts/nvme.toml")),
    ("sas-host", include_str!("../profiles/parts/sas-host.toml")),
    ("sata-host", include_str!("../profiles/parts/sata-host.toml")),
    ("slc", include_str!("../profiles/parts/slc.toml")),
    ("tlc", include_str!("../profiles/parts/tlc.toml")),
];

/// Parts that extend parts, at most so many: more are a circle.
const DEEPEST: usize = 4;

/// A part that comes with the program.
pub fn part(name: &str) -> Option<String> {
    PARTS.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_string())
}

#[derive(Deserialize)]
struct Extending {
    #[serde(default)]
    extends: Vec<String>,
    #[serde(flatten)]
    own: Table,
}

/// All of a sheet: what it says, over what the parts that it `extends` say, of which the later ones go before the earlier ones. `part` gives the
/// text of a part.
///
/// # Errors
/// The sheet or a part is no TOML, or there is no such part.
pub fn whole(sheet: &str, part: &dyn Fn(&str) -> Option<String>) -> Result<Table, ProfileError> {
    laid(sheet, part, 0)
}

fn laid(sheet: &str, part: &dyn Fn(&str) -> Option<String>, deep: usize) -> Result<Table, ProfileError> {
    let Extending { extends, own } = toml::from_str(sheet)?;
    let mut all = Table::new();
    for name in extends {
        let text = part(&name).filter(|_| deep < DEEPEST).ok_or(ProfileError::Part { name })?;
        lay(laid(&text, part, deep + 1)?, &mut all);
    }
    lay(own, &mut all);
    Ok(all)
}

/// Lays a table over another one.
fn lay(over: Table, under: &mut Table) {
    for (key, value) in over {
        match (value, under.get_mut(&key)) {
            (Value::Table(over), Some(Value::Table(under))) => lay(over, under),
            (value, _) => _ = under.insert(key, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(sheet: &str) -> Result<Table, ProfileError> {
        let part = |name: &str| {
            let text = match name {
                "low" => "a = 1\n[t]\nx = 1\ny = 1\n",
                "high" => "extends = [\"low\"]\n[t]\ny = 2\n",
                "circle" => "extends = [\"circle\"]\n",
                _ => return None,
            };
            Some(text.to_string())
        };
        whole(sheet, &part)
    }

    #[test]
    fn what_a_sheet_says_lies_over_its_parts() {
        let text = "extends = [\"low\", \"high\"]\nb = 3\n[t]\nz = 3\n[t.in]\nw = 3\n";
        let wanted: Table = toml::from_str("a = 1\nb = 3\n[t]\nx = 1\ny = 2\nz = 3\n[t.in]\nw = 3\n").expect("a table");
        assert_eq!(made(text).expect("whole"), wanted);
        let text = "extends = [\"high\", \"low\"]\n";
        assert_eq!(made(text).expect("whole")["t"]["y"], Value::Integer(1), "the later one goes before");
    }

    #[test]
    fn a_part_that_is_missing_or_extends_itself_is_named() {
        for (text, named) in [("extends = [\"none\"]", "none"), ("extends = [\"circle\"]", "circle")] {
            let message = made(text).expect_err("no such part").to_string();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn every_part_is_listed_and_used() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/parts");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .expect("the parts' directory")
            .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
            .collect();
        files.sort();
        assert_eq!(PARTS.iter().map(|(name, _)| (*name).to_string()).collect::<Vec<_>>(), files);
        let texts = || crate::SHEETS.iter().copied().chain(PARTS.iter().map(|(_, text)| *text));
        let extends = |text: &str| toml::from_str::<Extending>(text).expect("a table").extends;
        for (name, _) in PARTS {
            assert!(texts().any(|text| extends(text).iter().any(|part| part == name)), "nothing extends {name}");
        }
    }
}
