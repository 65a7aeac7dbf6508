//! Reports as files: the page, CSV, pictures.

use std::path::{Path, PathBuf};

use chart::{Chart, Page, Size, Theme};
use daemon::Failure;
use lab::run::Run;

use crate::args::lab::Report;

/// The page within a run's directory.
const PAGE: &str = "report.html";
/// Pixels of a picture for each unit of the drawing: sharp on screens and in print.
const SCALE: f32 = 2.0;

/// Writes what was asked for; returns what was written.
pub fn write(run: &Run, args: &Report) -> Result<Vec<PathBuf>, Failure> {
    let page = page(run)?;
    let mut written = Vec::new();
    if let Some(directory) = &args.csv {
        written.extend(report::write_csv(&page, directory).map_err(|error| Failure::failed(error.to_string()))?);
    }
    if let Some(path) = &args.ioblazer {
        let csv = report::ioblazer_csv(run).map_err(|error| Failure::failed(error.to_string()))?;
        save(path, csv.as_bytes())?;
        written.push(path.clone());
    }
    if let Some(name) = &args.png {
        let path = args.out.clone().unwrap_or_else(|| format!("{name}.png").into());
        let theme = if args.dark { Theme::Dark } else { Theme::Light };
        let chart = chart(&page, name)?;
        let size = if chart.wide { Size::Wide } else { Size::Normal };
        let png = chart.png(size, theme, SCALE).map_err(|error| Failure::failed(error.to_string()))?;
        save(&path, &png)?;
        written.push(path);
    } else if let Some(name) = &args.svg {
        let path = args.out.clone().unwrap_or_else(|| format!("{name}.svg").into());
        let chart = chart(&page, name)?;
        let size = if chart.wide { Size::Wide } else { Size::Normal };
        save(&path, chart.svg(size).as_bytes())?;
        written.push(path);
    } else {
        let path = args.out.clone().unwrap_or_else(|| args.run.join(PAGE));
        save(&path, page.html().as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// Writes the page of a run that has just ended into its directory.
pub fn write_beside(directory: &Path) -> Result<PathBuf, Failure> {
    let run = Run::open(directory).map_err(|error| Failure::failed(error.to_string()))?;
    let path = directory.join(PAGE);
    save(&path, page(&run)?.html().as_bytes())?;
    Ok(path)
}

/// Everything that is charted, for programs.
pub fn json(run: &Run) -> Result<serde_json::Value, Failure> {
    Ok(report::json(&page(run)?))
}

/// Writes a file whole.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

fn page(run: &Run) -> Result<Page, Failure> {
    report::page(run).map_err(|error| Failure::failed(error.to_string()))
}

fn chart<'a>(page: &'a Page, name: &str) -> Result<&'a Chart, Failure> {
    page.charts().find(|chart| chart.key() == name).ok_or_else(|| {
        let names: Vec<String> = page.charts().map(Chart::key).collect();
        Failure::invalid(format!("the report has no chart '{name}'")).help(format!("it has: {}", names.join(", ")))
    })
}
