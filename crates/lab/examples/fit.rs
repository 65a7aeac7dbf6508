//! Fits a data sheet to published rows: runs the rows of a device with some of the sheet's figures changed, and says how far off
//! they are. The sheets are read from `crates/profile/profiles/` as they stand there, so nothing is built anew between two tries.
//!
//! ```text
//! cargo run --release -p openvsl-lab --example fit -- --device iodrive-320-mlc \
//!     --set module.controller.read_request_us=11 --descend module.controller.read_bytes_per_s,drivers.windows.submit_us
//! ```
//!
//! `--set PATH=VALUE` changes a figure, `--descend PATH,PATH` then looks for better values of some by coordinate descent and prints
//! them; writing them into the sheet, with a word on why they are physically sensible, is left to a person. `--rows TEXT` keeps
//! rows whose line contains the text, `--source NAME` those of a source. `--sources FILE` reads what is assumed of sources from a file like
//! `crates/lab/data/sources.toml`; `--held SIZE`, `--age TIMES`, `--same TIMES` and `--overwrite TIMES` change it.

use std::ops::ControlFlow;
use std::path::Path;

use lab::published::{
    Measured, Row, Settings, Source, measure, rows, sources, sources_from, summary, summary_text, table,
};
use profile::Profile;

struct Fit {
    rows: Vec<Row>,
    sources: Vec<Source>,
    settings: Settings,
}

/// Changes of a sheet: path and value.
type Changes = Vec<(String, toml::Value)>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut devices: Vec<String> = Vec::new();
    let (mut source, mut contains, mut changes, mut descend) = (None, Vec::new(), Changes::new(), Vec::new());
    let (mut settings, mut sources) = (Settings::default(), sources()?);
    let (mut held, mut overwrite, mut age, mut same) = (None, None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--device" => devices.push(value),
            "--source" => source = Some(value),
            "--sources" => sources = sources_from(&std::fs::read_to_string(&value)?)?,
            "--rows" => contains.push(value),
            "--held" => held = Some(value.parse()?),
            "--overwrite" => overwrite = Some(value.parse()?),
            "--age" => age = Some(value.parse()?),
            "--same" => same = Some(value.parse()?),
            "--scale" => settings.scale = value.parse()?,
            "--set" => {
                let (path, value) = value.split_once('=').ok_or("--set wants PATH=VALUE")?;
                changes.push((path.into(), value_of(value)?));
            }
            "--descend" => descend.extend(value.split(',').map(String::from)),
            _ => return Err(format!("{option} is no option of this tool; see its source").into()),
        }
    }
    let rows = rows()?
        .into_iter()
        .filter(|row| devices.is_empty() || devices.contains(&row.device))
        .filter(|row| source.as_ref().is_none_or(|source| row.source == *source))
        .filter(|row| contains.iter().all(|text| row.line().contains(text.as_str())))
        .collect();
    for source in &mut sources {
        source.held = held.or(source.held);
        source.overwrite_held = age.unwrap_or(source.overwrite_held);
        source.precondition_capacities = same.unwrap_or(source.precondition_capacities);
        source.overwrite_file = overwrite.unwrap_or(source.overwrite_file);
    }
    let fit = Fit { rows, sources, settings };
    let mut best = fit.run(&changes)?;
    print!("{}", table(&best));
    print!("{}", summary_text(&summary::summaries(&best), &[]));
    for round in 0..3 {
        let before = cost(&best);
        for path in &descend {
            let device = devices.first().ok_or("--descend wants a --device")?;
            for factor in [1.25, 0.8, 1.08, 0.93] {
                while let Some(value) = scaled(&fit.value(device, path, &changes)?, factor) {
                    let mut tried: Changes = changes.iter().filter(|(it, _)| it != path).cloned().collect();
                    tried.push((path.clone(), value.clone()));
                    let measured = fit.run(&tried)?;
                    if cost(&measured) >= cost(&best) * 0.999 {
                        break;
                    }
                    println!("{path} = {value}: {:.2} -> {:.2}", cost(&best), cost(&measured));
                    (best, changes) = (measured, tried);
                }
            }
        }
        println!("round {round}: {before:.2} -> {:.2}", cost(&best));
        if descend.is_empty() || cost(&best) > before * 0.995 {
            break;
        }
    }
    if !descend.is_empty() {
        print!("{}", table(&best));
        for (path, value) in &changes {
            println!("{path} = {value}");
        }
    }
    Ok(())
}

/// Mean absolute error, per cent; beyond 60 % a row is not what the fit is for.
fn cost(measured: &[Measured]) -> f64 {
    let errors = measured.iter().map(|row| row.error_percent.map_or(60.0, |error| error.abs().min(60.0)));
    errors.sum::<f64>() / measured.len().max(1) as f64
}

fn value_of(text: &str) -> Result<toml::Value, toml::de::Error> {
    Ok(toml::from_str::<toml::Table>(&format!("value = {text}"))?
        .remove("value")
        .unwrap_or(toml::Value::Boolean(false)))
}

fn scaled(value: &toml::Value, factor: f64) -> Option<toml::Value> {
    match value {
        toml::Value::Integer(value) => Some(toml::Value::Integer((*value as f64 * factor).round() as i64)),
        toml::Value::Float(value) if *value > 0.0 => {
            Some(toml::Value::Float((value * factor * 1000.0).round() / 1000.0))
        }
        _ => None,
    }
}

impl Fit {
    fn run(&self, changes: &Changes) -> Result<Vec<Measured>, Box<dyn std::error::Error>> {
        let profile_of = |name: &str| sheet(name, changes).map_err(|error| error.to_string());
        Ok(measure(&self.rows, &self.sources, &self.settings, &profile_of, &|_, _| ControlFlow::Continue(())))
    }

    fn value(&self, device: &str, path: &str, changes: &Changes) -> Result<toml::Value, Box<dyn std::error::Error>> {
        if let Some((_, value)) = changes.iter().find(|(it, _)| it == path) {
            return Ok(value.clone());
        }
        let mut table = text(device)?;
        Ok(place(&mut table, path).ok_or_else(|| format!("{device} has no {path}"))?.clone())
    }
}

fn text(name: &str) -> Result<toml::Table, Box<dyn std::error::Error>> {
    let sheets = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/profiles"));
    let part = |part: &str| std::fs::read_to_string(sheets.join("parts").join(format!("{part}.toml"))).ok();
    let sheet = std::fs::read_to_string(sheets.join(format!("{}.toml", profile::find(name)?.name)))?;
    Ok(profile::parts::whole(&sheet, &part)?)
}

fn sheet(name: &str, changes: &Changes) -> Result<Profile, Box<dyn std::error::Error>> {
    let mut table = text(name)?;
    for (path, value) in changes {
        if let Some(place) = place(&mut table, path) {
            *place = value.clone();
        }
    }
    Ok(table.try_into()?)
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
