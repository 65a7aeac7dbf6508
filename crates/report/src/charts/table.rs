//! All results in rows and columns, published figures in brackets beside the measured, and how many times another's they are: the tables
//! of Fujitsu's paper. They are shaded by size, or by what is gained over another format.

use chart::{Block, Cell, Column, Table, Unit};
use lab::protocol::{self, ChartKind, Metric};
use lab::published::Row;
use lab::run::Step;

use super::bars::{label, settings};
use super::stage;
use crate::ReportError;
use crate::context::{load, mix, size};
use crate::figure::{course, places};
use crate::metric::{less_is_better, name, unit};
use crate::published::{When, of_part};
use crate::view::{View, distinct};

/// One field.
struct Field {
    variant: String,
    row: String,
    column: (String, String),
    value: f64,
    published: Option<f64>,
    /// The variant that it is compared with.
    base: Option<String>,
    /// How many times as good as there it is, measured and published.
    gain: Option<(f64, Option<f64>)>,
}

/// From these gains on a field is shaded more and more, as Fujitsu's are.
const GAINS: [f64; 3] = [1.3, 1.6, 2.2];

/// A table for each figure.
pub(super) fn tables(
    views: &[&View],
    asked: &protocol::Chart,
    metrics: &[Metric],
    rows: &[Row],
) -> Result<Vec<Block>, ReportError> {
    let mut blocks = Vec::new();
    for metric in metrics {
        let mut fields = fields(views, asked, *metric, rows)?;
        if asked.kind == ChartKind::Quotients {
            let quotient = |field: Field| field.gain.map(|(value, published)| Field { value, published, ..field });
            fields = fields.into_iter().filter_map(quotient).collect();
            if let (Some(over), false) = (&asked.over, fields.is_empty()) {
                let caption = format!("{}: {} over {over}", asked.title.get_ref(), name(*metric).to_lowercase());
                blocks.push(Block::Table(table(caption, asked, &Unit::Plain, &fields)));
            }
        } else if !fields.is_empty() {
            let prefixed = unit(*metric).prefixed(fields.iter().map(|field| field.value).fold(0.0, f64::max)).name;
            let prefixed = if prefixed.is_empty() { prefixed } else { format!(" ({prefixed})") };
            let caption = format!("{}: {}{prefixed}", asked.title.get_ref(), name(*metric).to_lowercase());
            blocks.push(Block::Table(table(caption, asked, &unit(*metric), &fields)));
        }
    }
    Ok(blocks)
}

/// Columns are tests and what was varied beside load, or the stages that a device goes through; rows are variants and loads.
fn fields(views: &[&View], asked: &protocol::Chart, metric: Metric, rows: &[Row]) -> Result<Vec<Field>, ReportError> {
    let mut fields = Vec::new();
    for view in views {
        for variant in &view.variants {
            let beside = of_part(view, variant.part(), rows);
            let base = asked.over.as_ref().and_then(|over| variant.base(over, &view.variants));
            let staged = distinct(variant.stage(stage(asked)).iter().map(|step| &step.stage)).len() > 1;
            let places = if staged { course(variant, stage(asked)) } else { places(variant, stage(asked)) };
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
                let (row, column) = if staged {
                    // What the device had been through runs from left to right.
                    let round = place.step.round.map(|round| format!(", {round}")).unwrap_or_default();
                    (settings(place.step, &steps), format!("{}{round}", place.step.stage))
                } else if matrix {
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
                    base: base.map(|base| base.name.clone()),
                    gain: None,
                });
            }
        }
    }
    let times = |own: f64, other: f64| if less_is_better(metric) { other / own } else { own / other };
    let gains: Vec<_> = fields
        .iter()
        .map(|field| {
            let same = |other: &&Field| other.row == field.row && other.column == field.column;
            let base = fields.iter().filter(|other| Some(&other.variant) == field.base.as_ref()).find(same)?;
            let published = field.published.zip(base.published).map(|(own, other)| times(own, other));
            Some((times(field.value, base.value), published))
        })
        .collect();
    fields.iter_mut().zip(gains).for_each(|(field, gain)| field.gain = gain);
    Ok(fields)
}

fn table(caption: String, asked: &protocol::Chart, unit: &Unit, fields: &[Field]) -> Table {
    let most = fields.iter().map(|field| field.value).fold(0.0, f64::max);
    let prefixed = unit.prefixed(most);
    let shown = |value: f64| chart::digits(value / prefixed.factor, if *unit == Unit::Plain { 3 } else { 4 });
    let over = asked.over.as_ref().filter(|_| asked.kind == ChartKind::Table);
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
                    let share = match (over, field.gain) {
                        (Some(_), Some((gain, _))) => {
                            GAINS.iter().filter(|from| gain >= **from).count() as f64 / GAINS.len() as f64
                        }
                        (Some(_), None) => 0.0,
                        (None, _) if high > low => (field.value - low) / (high - low),
                        (None, _) => 0.0,
                    };
                    Cell::new(format!("{}{beside}", shown(field.value))).shaded(share)
                }
            });
        }
        cells
    };
    let brackets =
        if fields.iter().any(|field| field.published.is_some()) { "; published figures in brackets" } else { "" };
    Table {
        caption: match over {
            Some(over) => format!("{caption}{brackets}. Shaded by what is gained over {over}: from 30, 60 and 120 %."),
            None => format!("{caption}{brackets}. Shaded from the lowest to the highest of each test."),
        },
        columns: heads,
        rows: rows.iter().map(row).collect(),
        ..Table::default()
    }
}
