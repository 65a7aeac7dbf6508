//! A report's charts as data.

use std::path::{Path, PathBuf};

use chart::{Page, Values};
use serde_json::{Value, json};

use crate::ReportError;

/// Every chart with its words and its columns, numbers in base units.
pub fn json(page: &Page) -> Value {
    let charts: Vec<Value> = page
        .charts()
        .map(|chart| {
            let columns: Vec<Value> = chart
                .table()
                .columns
                .iter()
                .map(|column| {
                    let values = match &column.values {
                        Values::Numbers(numbers) => json!(numbers),
                        Values::Names(names) => json!(names),
                    };
                    json!({ "name": column.name, "unit": column.unit.base(), "values": values })
                })
                .collect();
            json!({ "id": chart.key(), "title": chart.title, "sees": chart.sees, "context": chart.context, "columns": columns })
        })
        .collect();
    json!({ "title": page.title, "summary": page.summary, "caveat": page.caveat, "charts": charts })
}

/// Writes a CSV file for each chart into a directory, which is made if it is not there; returns their names.
///
/// # Errors
/// A file cannot be written.
pub fn write_csv(page: &Page, directory: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let fail = |path: &Path| {
        let path = path.to_path_buf();
        move |error| ReportError::Write { path, error }
    };
    std::fs::create_dir_all(directory).map_err(fail(directory))?;
    let mut written = Vec::new();
    for chart in page.charts() {
        let path = directory.join(format!("{}.csv", chart.key()));
        std::fs::write(&path, chart.table().csv()).map_err(fail(&path))?;
        written.push(path);
    }
    Ok(written)
}
