//! The rows of the published measurements.

use serde::{Deserialize, Serialize};

/// The rows that come with the program.
const ROWS: &str = include_str!("../../data/published.csv");

/// One published figure. Text stands as in the file; what it means is found out when the row is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Who published it.
    pub source: String,
    /// Name of the device's profile.
    pub device: String,
    /// `single`, `both-modules`, `raid0` or `raid1`.
    pub array: String,
    /// Name of the format; empty where there is none.
    pub format: String,
    /// What the source calls the workload.
    pub workload: String,
    /// Share of reads, per cent.
    pub read_pct: f64,
    /// `random`, `sequential`, `trace`, or Zipf's law such as `zipf 0.8`.
    pub access: String,
    /// Size of requests, KiB, or what stands for several.
    pub block_kib: String,
    /// Requests outstanding, or what stands for several. `1 beside 40000/s`: one, beside so many random writes a second of the same size.
    pub outstanding: String,
    /// What was measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The published value.
    pub value: f64,
    /// What else is said.
    pub note: String,
    /// The device's data sheet was made without it, so it tells how well the model predicts.
    #[serde(default)]
    pub kept_apart: Option<bool>,
}

impl Row {
    /// Whether the device's data sheet was made without it.
    pub fn is_kept_apart(&self) -> bool {
        self.kept_apart == Some(true)
    }

    /// All of its columns in one line.
    pub fn line(&self) -> String {
        let Row { source, device, array, format, workload, read_pct, access, block_kib, outstanding, metric, .. } =
            self;
        format!(
            "{source},{device},{array},{format},{workload},{read_pct},{access},{block_kib},{outstanding},{metric},{},{},{}",
            self.unit, self.value, self.note
        )
    }
}

/// Why a list of rows cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}; expected a line 'source,device,array,format,workload,read_pct,access,block_kib,outstanding,metric,unit,value,note' (and perhaps 'kept_apart', true or nothing) and one line for each row"
)]
pub struct RowError(#[from] csv::Error);

/// The rows that come with the program.
///
/// # Errors
/// The built-in file is damaged; the tests of this crate rule that out.
pub fn rows() -> Result<Vec<Row>, RowError> {
    rows_from(ROWS)
}

/// Rows of another file of the same form.
///
/// # Errors
/// A line is not a row.
pub fn rows_from(text: &str) -> Result<Vec<Row>, RowError> {
    Ok(csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        let rows = rows().expect("the built-in rows");
        assert_eq!(rows.len(), ROWS.lines().count() - 1);
        assert!(rows.iter().all(|row| row.value > 0.0 && !row.metric.is_empty()));
        let quoted = rows.iter().find(|row| row.outstanding == "48, device queue 32").expect("a quoted column");
        assert_eq!(quoted.device, "iodrive2-1200-mlc");
    }

    #[test]
    fn a_damaged_row_is_refused() {
        let header = ROWS.lines().next().expect("a header");
        let message = rows_from(&format!("{header}\na,b,c\n")).expect_err("too short").to_string();
        assert!(message.contains("expected a line 'source,device"), "{message}");
        assert!(rows_from(&format!("{header}\ns,d,single,,w,many,random,4,1,m,u,1,\n")).is_err());
    }
}
