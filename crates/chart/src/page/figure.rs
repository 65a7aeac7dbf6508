//! A chart in a page: its heading, its drawings for phone and desk, and the numbers behind it.

use maud::{Markup, PreEscaped, html};

use super::{Cell, Column, Table};
use crate::model::Chart;
use crate::number::significant;
use crate::svg::Size;
use crate::table::{DataColumn, DataTable, Values};

/// Rows of numbers that are shown beside a chart; what has more shows so many, evenly spread.
const ROWS: usize = 48;

/// The figure. What it was measured on is part of what is saved; it is shown where the page has not said it already.
pub(super) fn figure(chart: &Chart, with_context: bool) -> Markup {
    let narrow = chart.inline_svg(Size::Narrow);
    let normal = chart.inline_svg(Size::Normal);
    let wide = chart.wide.then(|| chart.inline_svg(Size::Wide));
    html! {
        figure id=(chart.id) .chart .whole[chart.wide] data-chart=(chart.id) {
            figcaption {
                h3 .title { a href={ "#" (chart.id) } { (chart.title) } }
                p .sees { (chart.sees) }
                @if with_context { @for line in &chart.context { p .context { (line) } } }
            }
            div .drawing {
                (PreEscaped(narrow))
                (PreEscaped(normal))
                @if let Some(wide) = wide { (PreEscaped(wide)) }
            }
            div .tools hidden {
                button type="button" data-do="zoom" hidden { "Zoom" }
                span { "Save " }
                @for (kind, name) in [("csv", "CSV"), ("json", "JSON"), ("svg", "SVG"), ("png", "PNG")] {
                    button type="button" data-do=(kind) aria-label={ "Save " (chart.title) " as " (name) } { (name) }
                }
            }
            (numbers(&chart.table()))
        }
    }
}

/// The numbers, folded away.
fn numbers(data: &DataTable) -> Markup {
    let rows = data.rows();
    if rows == 0 {
        return html! { details { summary { "Numbers" } p { "no data" } } };
    }
    let shown: Vec<usize> =
        if rows <= ROWS { (0..rows).collect() } else { (0..ROWS).map(|at| at * (rows - 1) / (ROWS - 1)).collect() };
    let columns: Vec<(Column, Vec<String>)> = data.columns.iter().map(|column| shown_column(column, &shown)).collect();
    let table = Table {
        stacks: false,
        caption: String::new(),
        rows: (0..shown.len())
            .map(|row| {
                columns
                    .iter()
                    .enumerate()
                    .map(|(at, (_, texts))| if at == 0 { Cell::head(&texts[row]) } else { Cell::new(&texts[row]) })
                    .collect()
            })
            .collect(),
        columns: columns.into_iter().map(|(column, _)| column).collect(),
    };
    html! {
        details {
            summary { "Numbers" }
            @if rows > ROWS {
                p .context { (shown.len()) " of " (significant(rows as f64, 12)) " rows, evenly spread; single values, no averages." }
            }
            (table_markup(&table))
        }
    }
}

/// A column with one prefix for all its values.
fn shown_column(column: &DataColumn, rows: &[usize]) -> (Column, Vec<String>) {
    match &column.values {
        Values::Names(names) => (Column::text(&column.name), rows.iter().map(|row| names[*row].clone()).collect()),
        Values::Numbers(numbers) => {
            let most =
                numbers.iter().filter(|value| value.is_finite()).fold(0.0, |most, value| f64::max(most, value.abs()));
            let prefixed = column.unit.prefixed(most);
            let name = if prefixed.name.is_empty() {
                column.name.clone()
            } else {
                format!("{} ({})", column.name, prefixed.name)
            };
            (Column::number(name), rows.iter().map(|row| significant(numbers[*row] / prefixed.factor, 4)).collect())
        }
    }
}

/// A table in a box of its own that scrolls when there is no room.
pub(super) fn table_markup(table: &Table) -> Markup {
    let groups: Vec<(&str, usize)> = table
        .columns
        .chunk_by(|one, other| one.group == other.group)
        .map(|columns| (columns[0].group.as_str(), columns.len()))
        .collect();
    let grouped = groups.iter().any(|(name, _)| !name.is_empty());
    html! {
        div .scroll .stacks[table.stacks] tabindex="0" role="group" aria-label=(if table.caption.is_empty() { "Table of numbers" } else { &table.caption }) {
            table {
                @if !table.caption.is_empty() { caption { span { (table.caption) } } }
                thead {
                    @if grouped {
                        tr {
                            @for (name, span) in &groups {
                                @if name.is_empty() { td colspan=(span) {} } @else { th colspan=(span) scope="colgroup" { (name) } }
                            }
                        }
                    }
                    tr {
                        @for column in &table.columns {
                            @if column.name.is_empty() { td {} } @else { th scope="col" .n[column.number] { (column.name) } }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @let number = table.columns.get(at).is_some_and(|column| column.number);
                                @if cell.head {
                                    th scope="row" .n[number] { (cell.text) }
                                } @else if let Some(shade) = cell.shade {
                                    td class=(format!("shade sh{}{}", shade_class(shade), if number { " n" } else { "" })) { (cell.text) }
                                } @else {
                                    td .n[number] data-label=[table.stacks.then(|| table.columns.get(at).map(|column| &column.name)).flatten()] { (cell.text) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shade_class(share: f64) -> usize {
    ((share.clamp(0.0, 1.0) * crate::theme::STEPS as f64) as usize).min(crate::theme::STEPS - 1)
}
