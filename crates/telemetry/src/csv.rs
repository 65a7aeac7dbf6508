//! A table as text that spreadsheets read.

use std::fmt::Write;

use crate::Table;

/// One line with the names, then one a row: time, seconds, values. What is not known is empty.
pub fn write_csv(table: &Table) -> String {
    let mut text = format!("at,seconds,{}\n", table.metrics.join(","));
    for row in &table.rows {
        // Writing to a string cannot fail.
        let _ = write!(text, "{},{}", row.at, row.seconds);
        for value in &row.values {
            text.push(',');
            if let Some(value) = value {
                let _ = write!(text, "{value}");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Resolution, Row};

    #[test]
    fn a_line_for_each_row() {
        let table = Table {
            resolution: Resolution::Minute,
            metrics: vec!["read_iops", "celsius"],
            rows: vec![Row { at: 60, seconds: 59, values: vec![Some(1.5), None] }],
        };
        assert_eq!(write_csv(&table), "at,seconds,read_iops,celsius\n60,59,1.5,\n");
    }
}
