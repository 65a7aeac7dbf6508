//! The numbers behind a chart, in columns: for the table beside it, for CSV, for zooming.

use serde::Serialize;

use crate::axis::Axis;
use crate::model::{Chart, Mark, Plot, Steps};
use crate::number::Unit;
use crate::range::usable;

/// Why text is no table.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// It is no CSV with rows of one length.
    #[error("not a table: {0}")]
    Shape(#[from] csv::Error),
    /// There is no heading.
    #[error("the table is empty; expected a line of column names")]
    Empty,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Values {
    /// Numbers in base units; what is no number is a gap.
    Numbers(Vec<f64>),
    /// Names.
    Names(Vec<String>),
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataColumn {
    /// What it holds.
    pub name: String,
    /// In what.
    #[serde(skip)]
    pub unit: Unit,
    /// One value a row.
    pub values: Values,
}

/// Columns of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DataTable {
    /// The columns, the first of them what the others stand against.
    pub columns: Vec<DataColumn>,
}

/// Which columns of the table a series came to: its values, and its band if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) value: usize,
    pub(crate) band: Option<(usize, usize)>,
}

/// Where the series of a line chart are in its table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Drawn {
    /// The place of each row along the x axis.
    pub(crate) xs: Vec<f64>,
    /// One for each series.
    pub(crate) spans: Vec<Span>,
}

impl Chart {
    /// The numbers behind the chart.
    pub fn table(&self) -> DataTable {
        self.columns().0
    }

    /// The table, and where the series of a line chart are in it.
    pub(crate) fn columns(&self) -> (DataTable, Drawn) {
        match &self.plot {
            Plot::Lines(series) if functions_of_x(series) => lines(self, series),
            Plot::Lines(series) => (pairs(self, series), Drawn::default()),
            Plot::Bars(series) => {
                let mut columns = vec![names(&self.x, &self.x.names)];
                for one in series {
                    let name = if one.published { format!("{} (published)", one.name) } else { one.name.clone() };
                    let padded = |values: &[f64]| {
                        (0..self.x.names.len()).map(|at| values.get(at).copied().unwrap_or(f64::NAN)).collect()
                    };
                    columns.push(numbers(name, &self.y.unit, padded(&one.values)));
                    if !one.error.is_empty() {
                        columns.push(numbers(format!("{} ±", one.name), &self.y.unit, padded(&one.error)));
                    }
                }
                (DataTable { columns }, Drawn::default())
            }
            Plot::Heat(heat) => {
                let places = |steps: &Steps, axis: &Axis, count: usize| match steps {
                    Steps::Names => axis.names.clone(),
                    Steps::Edges(edges) => edges.iter().take(count).map(|edge| axis.unit.one(*edge)).collect(),
                };
                let across = heat.cells.iter().map(Vec::len).max().unwrap_or(0);
                let rows = places(&heat.rows, &self.y, heat.cells.len());
                let above = places(&heat.columns, &self.x, across);
                let mut columns = vec![names(&self.y, &rows)];
                for (at, name) in above.into_iter().enumerate() {
                    let cell =
                        |row: usize| heat.cells.get(row).and_then(|cells| cells.get(at)).copied().unwrap_or(f64::NAN);
                    let values = (0..rows.len()).map(cell).collect();
                    columns.push(numbers(name, &heat.unit, values));
                }
                (DataTable { columns }, Drawn::default())
            }
        }
    }
}

/// Whether each series has at most one value for each x, in order: then all of them can share a column of x.
fn functions_of_x(series: &[crate::model::Series]) -> bool {
    series.iter().all(|one| one.points.windows(2).all(|pair| pair[0].0 < pair[1].0))
}

fn names(axis: &Axis, names: &[String]) -> DataColumn {
    DataColumn { name: axis.label.clone(), unit: Unit::Plain, values: Values::Names(names.to_vec()) }
}

fn numbers(name: String, unit: &Unit, values: Vec<f64>) -> DataColumn {
    DataColumn { name, unit: unit.clone(), values: Values::Numbers(values) }
}

/// The places on the x axis: as names if it has them.
fn x_column(axis: &Axis, xs: &[f64]) -> DataColumn {
    if axis.names.is_empty() {
        return numbers(axis.label.clone(), &axis.unit, xs.to_vec());
    }
    let name = |x: &f64| axis.names.get(x.max(0.0) as usize).cloned().unwrap_or_else(|| axis.unit.one(*x));
    DataColumn { name: axis.label.clone(), unit: Unit::Plain, values: Values::Names(xs.iter().map(name).collect()) }
}

fn lines(chart: &Chart, series: &[crate::model::Series]) -> (DataTable, Drawn) {
    let mut xs: Vec<f64> =
        series.iter().flat_map(|one| &one.points).map(|(x, _)| *x).filter(|x| usable(*x, &chart.x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let mut columns = vec![x_column(&chart.x, &xs)];
    let mut spans = Vec::new();
    for one in series {
        let aligned = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let mut next = 0;
            xs.iter()
                .map(|x| {
                    while one.points.get(next).is_some_and(|point| point.0 < *x) {
                        next += 1;
                    }
                    if one.points.get(next).is_some_and(|point| point.0 == *x) { value(next) } else { f64::NAN }
                })
                .collect()
        };
        let value = columns.len();
        let name = if one.name.is_empty() { chart.y.label.clone() } else { spoken(&one.name, one.mark) };
        columns.push(numbers(name, &chart.y.unit, aligned(&|at| one.points[at].1)));
        let band = one.band.as_ref().map(|band| {
            let side = |values: &[f64]| aligned(&|at| values.get(at).copied().unwrap_or(f64::NAN));
            columns.push(numbers(format!("{}: low", band.name), &chart.y.unit, side(&band.low)));
            columns.push(numbers(format!("{}: high", band.name), &chart.y.unit, side(&band.high)));
            (value + 1, value + 2)
        });
        spans.push(Span { value, band });
    }
    (DataTable { columns }, Drawn { xs, spans })
}

/// Clouds and curves that turn back: a row for each point.
fn pairs(chart: &Chart, series: &[crate::model::Series]) -> DataTable {
    let points: Vec<(&str, f64, f64)> =
        series.iter().flat_map(|one| one.points.iter().map(|(x, y)| (one.name.as_str(), *x, *y))).collect();
    let names = points.iter().map(|(name, ..)| (*name).to_string()).collect();
    let xs: Vec<f64> = points.iter().map(|(_, x, _)| *x).collect();
    DataTable {
        columns: vec![
            DataColumn { name: "Series".to_string(), unit: Unit::Plain, values: Values::Names(names) },
            x_column(&chart.x, &xs),
            numbers(chart.y.label.clone(), &chart.y.unit, points.iter().map(|(_, _, y)| *y).collect()),
        ],
    }
}

impl DataColumn {
    /// Its name with the base unit.
    pub fn heading(&self) -> String {
        match self.unit.base() {
            "" => self.name.clone(),
            unit => format!("{} ({unit})", self.name),
        }
    }
}

impl DataTable {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(|column| column.values.len()).max().unwrap_or(0)
    }

    /// The table as CSV with headings, numbers in base units with all their digits, gaps empty.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let headings = self.columns.iter().map(DataColumn::heading);
        // Writing to memory has no error but one: rows of different length, which these are not.
        let mut written = writer.write_record(headings);
        for row in 0..self.rows() {
            written =
                written.and_then(|()| writer.write_record(self.columns.iter().map(|column| column.values.text(row))));
        }
        let bytes = written.ok().and_then(|()| writer.into_inner().ok()).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Headings and fields of a table as [`DataTable::csv`] writes it.
    pub fn read_csv(text: &str) -> Result<(Vec<String>, Vec<Vec<String>>), CsvError> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headings: Vec<String> = reader.headers()?.iter().map(str::to_string).collect();
        if headings.is_empty() {
            return Err(CsvError::Empty);
        }
        let rows: Result<Vec<Vec<String>>, csv::Error> =
            reader.records().map(|record| Ok(record?.iter().map(str::to_string).collect())).collect();
        Ok((headings, rows?))
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Numbers(numbers) => numbers.len(),
            Values::Names(names) => names.len(),
        }
    }

    fn text(&self, row: usize) -> String {
        match self {
            Values::Numbers(numbers) => {
                numbers.get(row).filter(|it| it.is_finite()).map_or_else(String::new, f64::to_string)
            }
            Values::Names(names) => names.get(row).cloned().unwrap_or_default(),
        }
    }
}

/// How a published series is called in a table, where it has no diamond.
fn spoken(name: &str, mark: Mark) -> String {
    if mark == Mark::Published && !name.contains("published") {
        format!("{name} (published)")
    } else {
        name.to_string()
    }
}
