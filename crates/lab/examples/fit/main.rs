//! Fits data sheets to published rows, and says what they predict of rows that they were not fitted to. The sheets are read from
//! `crates/profile/profiles/` as they stand there, so nothing is built anew between two tries.
//!
//! ```text
//! cargo run --release -p openvsl-lab --example fit -- --device iodrive-320-mlc --set iodrive-first-mlc:module.controller.read_request_us=9
//! cargo run --release -p openvsl-lab --example fit -- --source fujitsu-pcie-ssd-2013 --rounds 2
//! cargo run --release -p openvsl-lab --example fit -- --leave-out format --leave-out array
//! ```
//!
//! Without `--rounds` and `--leave-out` the rows are run once. `--set SHEET:PATH=VALUE` changes a figure of a sheet or part.
//!
//! `--rounds N` moves all figures that are marked `[fitted]` (or those that contain the text of a `--figure`) towards smaller errors: it measures
//! how each row follows each figure, takes the best step on these straight lines, a third of a figure at most, and as much of it as
//! makes the errors smaller. It prints the new values; writing them into the sheets, with a word on why they are physically
//! sensible, is left to a person.
//!
//! `--leave-out COLUMN` (`format`, `array`, `source`, `workload` or `outstanding`) does the same without the rows of one value of that column after another, and
//! says how far off these are then.
//!
//! `--rows TEXT` keeps rows whose line contains the text, `--source NAME` those of a source. `--sources FILE` reads what is assumed of
//! sources from a file like `crates/lab/data/sources.toml`; `--held SIZE`, `--age TIMES`, `--same TIMES` and `--overwrite TIMES` change it.

mod linear;
mod sheets;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;

use lab::published::{
    Measured, Row, Settings, Source, measure, rows, sources, sources_from, summary, summary_text, table,
};

use sheets::{Changes, Figure, Sheets};

type Error = Box<dyn std::error::Error>;

/// By how much a figure is changed to see what follows it, as a logarithm. Small changes drown in what is random in a run.
const TRIED: f64 = 0.12;

/// The furthest that a figure goes in a round, as a logarithm.
const MOST: f64 = 0.3;

/// What rows are grouped by.
const COLUMNS: &str = "format, array, source, workload or outstanding";

/// A figure is known from a group alone if so much of what tells of it (the sum of the squared slopes) is in the group.
const ALONE: f64 = 0.9;

/// A row that cannot be run counts as one that is so far off, as a logarithm; so do those that are further.
const FURTHEST: f64 = 1.0;

struct Fit {
    sheets: Sheets,
    rows: Vec<Row>,
    sources: Vec<Source>,
    settings: Settings,
}

fn main() -> Result<(), Error> {
    let (mut devices, mut figures, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    let (mut named, mut contains, mut changes, mut rounds) = (Vec::new(), Vec::new(), Changes::new(), 0);
    let (mut settings, mut sources) = (Settings::default(), sources()?);
    let (mut held, mut overwrite, mut age, mut same) = (None, None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--device" => devices.push(value),
            "--source" => named.push(value),
            "--sources" => sources = sources_from(&std::fs::read_to_string(&value)?)?,
            "--rows" => contains.push(value),
            "--held" => held = Some(value.parse()?),
            "--overwrite" => overwrite = Some(value.parse()?),
            "--age" => age = Some(value.parse()?),
            "--same" => same = Some(value.parse()?),
            "--scale" => settings.scale = value.parse()?,
            "--set" => {
                let (figure, value) = value.split_once('=').ok_or("--set wants SHEET:PATH=VALUE")?;
                let (sheet, path) = figure.split_once(':').ok_or("--set wants SHEET:PATH=VALUE")?;
                changes.insert(Figure { sheet: sheet.into(), path: path.into() }, value_of(value)?);
            }
            "--figure" => figures.push(value),
            "--rounds" => rounds = value.parse()?,
            "--leave-out" => groups.push(value),
            _ => return Err(format!("{option} is no option of this tool; see its source").into()),
        }
    }
    let rows = rows()?
        .into_iter()
        .filter(|row| devices.is_empty() || devices.contains(&row.device))
        .filter(|row| named.is_empty() || named.contains(&row.source))
        .filter(|row| contains.iter().all(|text| row.line().contains(text.as_str())))
        .filter(|row| !row.is_kept_apart())
        .collect();
    for source in &mut sources {
        source.held = held.or(source.held);
        source.overwrite_held = age.unwrap_or(source.overwrite_held);
        source.precondition_capacities = same.unwrap_or(source.precondition_capacities);
        source.overwrite_file = overwrite.unwrap_or(source.overwrite_file);
    }
    let fit = Fit { sheets: Sheets::read()?, rows, sources, settings };
    let began = Instant::now();
    let mut now = fit.run(&fit.rows, &changes)?;
    print!("{}", table(&now));
    print!("{}", summary_text(&summary::summaries(&now), &[]));
    println!("{} rows in {:.0} s", now.len(), began.elapsed().as_secs_f64());
    if rounds == 0 && groups.is_empty() {
        return Ok(());
    }
    let figures = fit.figures(&figures)?;
    for round in 0..rounds {
        let slopes = fit.slopes(&figures, &changes, &now)?;
        let all = vec![true; now.len()];
        let before = cost(&now, &all);
        (changes, now) = fit.step(&figures, &slopes, &changes, &now, &all)?;
        println!("round {round}: {before:.2} -> {:.2}", cost(&now, &all));
        print!("{}", summary_text(&summary::summaries(&now), &[]));
        fit.print(&changes)?;
    }
    if !groups.is_empty() {
        let slopes = fit.slopes(&figures, &changes, &now)?;
        for column in &groups {
            fit.leave_out(column, &figures, &slopes, &changes, &now)?;
        }
    }
    Ok(())
}

/// What the rows that take part cost.
fn cost(measured: &[Measured], with: &[bool]) -> f64 {
    errors(measured).iter().zip(with).filter(|(_, with)| **with).map(|(error, _)| linear::loss(*error)).sum()
}

/// The figures that only rows tell of that do not take part.
fn alone(figures: &[Figure], slopes: &[Vec<f64>], with: &[bool]) -> Vec<String> {
    let told = |slopes: &[f64], by: bool| -> f64 {
        slopes.iter().zip(with).filter(|(_, with)| **with == by).map(|(slope, _)| slope * slope).sum()
    };
    let only = |slopes: &[f64]| {
        let (left_out, given) = (told(slopes, false), told(slopes, true));
        left_out > 0.0 && left_out > ALONE * (left_out + given)
    };
    figures.iter().zip(slopes).filter(|(_, slopes)| only(slopes)).map(|(figure, _)| figure.to_string()).collect()
}

/// Model over published of each row, as logarithms.
fn errors(measured: &[Measured]) -> Vec<f64> {
    let error = |row: &Measured| row.value.map_or(FURTHEST, |value| (value / row.row.value).ln());
    measured.iter().map(|row| error(row).clamp(-FURTHEST, FURTHEST)).collect()
}

fn value_of(text: &str) -> Result<toml::Value, toml::de::Error> {
    Ok(toml::from_str::<toml::Table>(&format!("value = {text}"))?
        .remove("value")
        .unwrap_or(toml::Value::Boolean(false)))
}

impl Fit {
    fn run(&self, rows: &[Row], changes: &Changes) -> Result<Vec<Measured>, Error> {
        let profile_of = |name: &str| self.sheets.profile(name, changes).map_err(|error| error.to_string());
        Ok(measure(rows, &self.sources, &self.settings, &profile_of, &|_, _| ControlFlow::Continue(())))
    }

    /// The fitted figures of all devices with rows, whose names contain one of the texts, if there are any.
    fn figures(&self, texts: &[String]) -> Result<Vec<Figure>, Error> {
        let mut sheets = BTreeSet::new();
        for row in &self.rows {
            sheets.extend(self.sheets.parts_of(&row.device)?);
        }
        let mut figures = Vec::new();
        for sheet in &sheets {
            figures.extend(self.sheets.fitted(sheet)?);
        }
        figures
            .retain(|figure| texts.is_empty() || texts.iter().any(|text| figure.to_string().contains(text.as_str())));
        Ok(figures)
    }

    /// How each row's error follows each figure: a list a figure.
    fn slopes(&self, figures: &[Figure], changes: &Changes, now: &[Measured]) -> Result<Vec<Vec<f64>>, Error> {
        let now = errors(now);
        let mut all = Vec::new();
        for (at, figure) in figures.iter().enumerate() {
            let mut concerned = Vec::new();
            for (at, row) in self.rows.iter().enumerate() {
                if self.sheets.parts_of(&row.device)?.contains(&figure.sheet) {
                    concerned.push(at);
                }
            }
            let rows: Vec<Row> = concerned.iter().map(|at| self.rows[*at].clone()).collect();
            let mut slopes = vec![0.0; self.rows.len()];
            let changed = self.moved(std::slice::from_ref(figure), &[TRIED], changes)?;
            for (at, error) in concerned.iter().zip(errors(&self.run(&rows, &changed)?)) {
                slopes[*at] = (error - now[*at]) / TRIED;
            }
            let steepest = slopes.iter().fold(0.0_f64, |most, slope| most.max(slope.abs()));
            eprintln!(
                "{} of {}: {figure}, {} rows, at most {steepest:.2} of its change",
                at + 1,
                figures.len(),
                rows.len()
            );
            all.push(slopes);
        }
        Ok(all)
    }

    /// Figures moved by so much, as logarithms, from where they are.
    fn moved(&self, figures: &[Figure], by: &[f64], changes: &Changes) -> Result<Changes, Error> {
        let mut moved = changes.clone();
        for (figure, by) in figures.iter().zip(by).filter(|(_, by)| **by != 0.0) {
            moved.insert(figure.clone(), self.sheets.scaled(figure, by.exp(), changes)?);
        }
        Ok(moved)
    }

    /// The best step for the rows that take part, or as much of it as makes their errors smaller, and all rows behind it.
    fn step(
        &self,
        figures: &[Figure],
        slopes: &[Vec<f64>],
        changes: &Changes,
        now: &[Measured],
        with: &[bool],
    ) -> Result<(Changes, Vec<Measured>), Error> {
        let taken = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(with).filter(|(_, with)| **with).map(|(value, _)| *value).collect()
        };
        let slopes: Vec<Vec<f64>> = slopes.iter().map(|slopes| taken(slopes)).collect();
        let moves = linear::step(&taken(&errors(now)), &slopes, MOST);
        for part in [1.0, 0.5, 0.25, 0.125] {
            let by: Vec<f64> = moves.iter().map(|by| by * part).collect();
            let moved = self.moved(figures, &by, changes)?;
            let measured = self.run(&self.rows, &moved)?;
            if cost(&measured, with) < cost(now, with) {
                return Ok((moved, measured));
            }
        }
        Ok((changes.clone(), now.to_vec()))
    }

    /// For each value of a column: fits without its rows, and says how far off they are before and after.
    fn leave_out(
        &self,
        column: &str,
        figures: &[Figure],
        slopes: &[Vec<f64>],
        changes: &Changes,
        now: &[Measured],
    ) -> Result<(), Error> {
        let group = |row: &Row| -> Result<String, Error> {
            Ok(match column {
                "format" => row.format.clone(),
                "array" => row.array.clone(),
                "source" => row.source.clone(),
                "workload" => row.workload.clone(),
                "outstanding" => row.outstanding.clone(),
                _ => return Err(format!("--leave-out {column}; expected {COLUMNS}").into()),
            })
        };
        let groups = self.rows.iter().map(group).collect::<Result<Vec<_>, _>>()?;
        let mut names = groups.clone();
        names.sort();
        names.dedup();
        // No low-level format, or the one that a card came with: these are not the rows of one thing.
        names.retain(|name| !(name.is_empty() || name == "stock"));
        let mut predicted: Vec<Measured> = Vec::new();
        for name in names {
            let with: Vec<bool> = groups.iter().map(|group| *group != name).collect();
            let (moved, measured) = self.step(figures, slopes, changes, now, &with)?;
            let without = |rows: &[Measured]| -> Vec<Measured> {
                rows.iter().zip(&with).filter(|(_, with)| !**with).map(|(row, _)| row.clone()).collect()
            };
            let (given, left_out) =
                (summary::Summary::of("given", &without(now)), summary::Summary::of("left out", &without(&measured)));
            println!(
                "{column} {name}: {} rows, given {:.1} % and {:.1} %, left out {:.1} % and {:.1} %; {} figures moved by more than 5 %, known from these rows alone: {}",
                left_out.rows,
                given.median_percent,
                given.p90_percent,
                left_out.median_percent,
                left_out.p90_percent,
                self.far(&moved, changes)?,
                alone(figures, slopes, &with).join(" "),
            );
            predicted.extend(without(&measured));
        }
        print!("{}", table(&predicted));
        let all = summary::Summary::of(&format!("left out by {column}"), &predicted);
        print!("{}", summary_text(&[all], &[]));
        Ok(())
    }

    /// How many figures differ by more than a twentieth.
    fn far(&self, moved: &Changes, from: &Changes) -> Result<usize, Error> {
        let mut far = 0;
        for figure in moved.keys() {
            let (Some(to), Some(from)) = (self.sheets.value(figure, moved)?, self.sheets.value(figure, from)?) else {
                continue;
            };
            far += usize::from((to / from - 1.0).abs() > 0.05);
        }
        Ok(far)
    }

    fn print(&self, changes: &Changes) -> Result<(), Error> {
        for (figure, value) in changes {
            println!("{figure} = {value}   (was {})", self.sheets.value(figure, &Changes::new())?.unwrap_or(0.0));
        }
        Ok(())
    }
}
