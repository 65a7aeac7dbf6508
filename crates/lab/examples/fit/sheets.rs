//! The data sheets as they stand in the source tree, the figures in them that were fitted, and other values for some of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use profile::Profile;

type Error = Box<dyn std::error::Error>;

/// A figure of a sheet, or of a part that sheets extend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    /// Name of the sheet or part.
    pub sheet: String,
    /// Tables and key, with dots between them.
    pub path: String,
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.sheet, self.path)
    }
}

/// Other values of figures.
pub type Changes = BTreeMap<Figure, toml::Value>;

/// The text of every sheet and part, by name.
pub struct Sheets(BTreeMap<String, String>);

impl Sheets {
    pub fn read() -> Result<Sheets, Error> {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/profiles"));
        let mut texts = BTreeMap::new();
        for folder in [folder.to_path_buf(), folder.join("parts")] {
            for entry in std::fs::read_dir(folder)? {
                let path: PathBuf = entry?.path();
                if let (Some("toml"), Some(name)) = (path.extension().and_then(|it| it.to_str()), path.file_stem()) {
                    texts.insert(name.to_string_lossy().into_owned(), std::fs::read_to_string(&path)?);
                }
            }
        }
        Ok(Sheets(texts))
    }

    fn text(&self, name: &str) -> Result<&str, Error> {
        Ok(self.0.get(name).ok_or_else(|| format!("no sheet {name}"))?)
    }

    /// The sheet of a device as rows name it, and all parts that it extends.
    pub fn parts_of(&self, device: &str) -> Result<Vec<String>, Error> {
        let name = profile::find(device)?.name;
        let names = RefCell::new(vec![name.clone()]);
        let part = |part: &str| {
            names.borrow_mut().push(part.into());
            self.0.get(part).cloned()
        };
        profile::parts::whole(self.text(&name)?, &part)?;
        Ok(names.into_inner())
    }

    /// The figures of a sheet or part that are marked as fitted. A factor of a figure that is 0 is nothing, so such a one is left out.
    pub fn fitted(&self, sheet: &str) -> Result<Vec<Figure>, Error> {
        let text = self.text(sheet)?;
        let mut table = String::new();
        let mut figures = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|it| it.split_once(']')) {
                table = format!("{}.", name.0);
            } else if let Some((key, _)) = line.split_once(" = ").filter(|_| line.contains("# [fitted]")) {
                let figure = Figure { sheet: sheet.into(), path: format!("{table}{key}") };
                if self.value(&figure, &Changes::new())?.is_some_and(|value| value > 0.0) {
                    figures.push(figure);
                }
            }
        }
        Ok(figures)
    }

    /// A figure as the changes have it, or else the sheet.
    fn current(&self, figure: &Figure, changes: &Changes) -> Result<toml::Value, Error> {
        let mut table: toml::Table = toml::from_str(self.text(&figure.sheet)?)?;
        let own = place(&mut table, &figure.path).ok_or_else(|| format!("there is no {figure}"))?;
        Ok(changes.get(figure).unwrap_or(own).clone())
    }

    /// A figure's value, where it is a number.
    pub fn value(&self, figure: &Figure, changes: &Changes) -> Result<Option<f64>, Error> {
        let value = self.current(figure, changes)?;
        Ok(value.as_float().or_else(|| value.as_integer().map(|it| it as f64)))
    }

    /// A figure times a factor, as the sheet would write it: a whole number stays one.
    pub fn scaled(&self, figure: &Figure, factor: f64, changes: &Changes) -> Result<toml::Value, Error> {
        Ok(match self.current(figure, changes)? {
            toml::Value::Integer(value) => toml::Value::Integer((value as f64 * factor).round() as i64),
            toml::Value::Float(value) => toml::Value::Float(value * factor),
            _ => return Err(format!("{figure} is no number").into()),
        })
    }

    /// The device's profile, with some figures of its sheet and parts changed.
    pub fn profile(&self, device: &str, changes: &Changes) -> Result<Profile, Error> {
        let text = |name: &str| -> Option<String> {
            let text = self.0.get(name)?;
            let mut own = changes.iter().filter(|(figure, _)| figure.sheet == name).peekable();
            if own.peek().is_none() {
                return Some(text.clone());
            }
            let mut table: toml::Table = toml::from_str(text).ok()?;
            for (figure, value) in own {
                *place(&mut table, &figure.path)? = value.clone();
            }
            toml::to_string(&table).ok()
        };
        let name = &profile::find(device)?.name;
        let sheet = text(name).ok_or_else(|| format!("a change does not fit the sheet {name}"))?;
        Ok(profile::parts::whole(&sheet, &text)?.try_into()?)
    }
}

/// Where a path such as `module.nand.read_us` leads; a number picks from a list.
fn place<'a>(table: &'a mut toml::Table, path: &str) -> Option<&'a mut toml::Value> {
    let mut keys = path.split('.');
    let mut value = table.get_mut(keys.next()?)?;
    for key in keys {
        value = match value {
            toml::Value::Table(table) => table.get_mut(key)?,
            toml::Value::Array(list) => list.get_mut(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}
