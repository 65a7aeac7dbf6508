//! All results in rows and columns, shaded by size, published figures in brackets beside the measured: the table of Fujitsu's paper.

use chart::{Block, Cell, Column, Table};
use lab::protocol::{self, Metric};
use lab::published::Row;
use lab::run::Step;

use super::bars::label;
use super::stage;
use crate::ReportError;
use crate::context::{load, mix, size};
use crate::figure::places;
use crate::metric::{name, unit};
use crate::published::{When, of_part};
use crate::view::{View, distinct};

/// One field.
struct Field {
    variant: String,
    row: String,
    column: (String, String),
    value: f64,
    published: Option<f64>,
}

/// A table for each figure.
pub(super) fn tables(
    views: &[&View],
    asked: &protocol::Chart,
    metrics: &[Metric],
    rows: &[Row],
) -> Result<Vec<Block>, ReportError> {
    let mut blocks = Vec::new();
    for metric in metrics {
        let fields = fields(views, asked, *metric, rows)?;
        if !fields.is_empty() {
            let unit = unit(*metric).prefixed(fields.iter().map(|field| field.value).fold(0.0, f64::max)).name;
            let unit = if unit.is_empty() { unit } else { format!(" ({unit})") };
            let caption = format!("{}: {}{unit}", asked.title.get_ref(), name(*metric).to_lowercase());
            blocks.push(Block::Table(table(caption, *metric, &fields)));
        }
    }
    Ok(blocks)
}

/// Columns are tests and what was varied beside load; rows are variants and loads.
fn fields(views: &[&View], asked: &protocol::Chart, metric: Metric, rows: &[Row]) -> Result<Vec<Field>, ReportError> {
    let mut fields = Vec::new();
    for view in views {
        for variant in &view.variants {
            let beside = of_part(view, variant.part(), rows);
            let places = places(variant, stage(asked));
            let steps: Vec<&Step> = places.iter().map(|place| place.step).collect();
            // Sizes by mixes are a matrix of their own.
            let sizes = distinct(steps.iter().map(|step| size(step))).len();
            let mixes = distinct(steps.iter().map(|step| mix(step.point.read_percent))).len();
            let matrix = sizes > 1 && mixes > 1 && sizes * mixes == steps.len();
            for place in &places {
                let Some(figure) = place.figure(metric)? else { continue };
                let fitting = beside.iter().find(|one| {
                    one.metric == metric && one.when == When::Measured && !one.is_best() && one.fits(place.step)
                });
                let own = label(place.step, &steps);
                let (row, column) = if matrix {
                    (size(place.step), mix(place.step.point.read_percent))
                } else {
                    (if own.is_empty() { load(place.step) } else { own }, String::new())
                };
                fields.push(Field {
                    variant: variant.name.clone(),
                    row,
                    column: (view.test.title.clone(), column),
                    value: figure.value,
                    published: fitting.map(|one| one.value),
                });
            }
        }
    }
    Ok(fields)
}

fn table(caption: String, metric: Metric, fields: &[Field]) -> Table {
    let most = fields.iter().map(|field| field.value).fold(0.0, f64::max);
    let prefixed = unit(metric).prefixed(most);
    let shown = |value: f64| chart::digits(value / prefixed.factor, 4);
    let columns = distinct(fields.iter().map(|field| field.column.clone()));
    let variants = fields.iter().any(|field| !field.variant.is_empty());
    let rows = distinct(fields.iter().map(|field| (field.variant.clone(), field.row.clone())));
    let mut heads = vec![Column::text(if variants { "Device, format, array" } else { "" })];
    if variants {
        heads.push(Column::text(""));
    }
    heads.extend(columns.iter().map(|(test, own)| {
        let name = if own.is_empty() { prefixed.name.clone() } else { own.clone() };
        Column::number(name).under(test.clone())
    }));
    // Tests differ in what is much; the mixes of a matrix are shaded together.
    let shares: Vec<(f64, f64)> = columns
        .iter()
        .map(|(test, _)| {
            let own = fields.iter().filter(|field| field.column.0 == *test).map(|field| field.value);
            own.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)))
        })
        .collect();
    let row = |(variant, own): &(String, String)| {
        let mut cells = if variants { vec![Cell::head(variant)] } else { Vec::new() };
        cells.push(Cell::head(own));
        for (column, (low, high)) in columns.iter().zip(&shares) {
            let field =
                fields.iter().find(|field| field.column == *column && field.variant == *variant && field.row == *own);
            cells.push(match field {
                None => Cell::new(""),
                Some(field) => {
                    let beside = field.published.map(|value| format!(" ({})", shown(value))).unwrap_or_default();
                    let share = if high > low { (field.value - low) / (high - low) } else { 0.0 };
                    Cell::new(format!("{}{beside}", shown(field.value))).shaded(share)
                }
            });
        }
        cells
    };
    let brackets =
        if fields.iter().any(|field| field.published.is_some()) { "; published figures in brackets" } else { "" };
    Table {
        caption: format!("{caption}{brackets}. Shaded from the lowest to the highest of each test."),
        columns: heads,
        rows: rows.iter().map(row).collect(),
        ..Table::default()
    }
}
