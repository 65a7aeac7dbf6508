//! What the page's script needs of a chart: its columns and, for line charts, how they are drawn.

use serde_json::{Map, Value, json};

use crate::axis::{Axis, Scale};
use crate::model::{Chart, Mark, Plot, Series};
use crate::number::Unit;
use crate::svg::lines_hue;
use crate::table::Values;

/// Digits of a number in the page; files written by the command have all of them.
const DIGITS: i32 = 7;

fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value == 0.0 {
        return json!(0);
    }
    let text = format!("{value:.*e}", DIGITS as usize - 1);
    let rounded: f64 = text.parse().unwrap_or(value);
    // Whole numbers are shorter without a point.
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 { json!(rounded as i64) } else { json!(rounded) }
}

fn unit(unit: &Unit) -> &'static str {
    match unit {
        Unit::Count(_) | Unit::Plain => "count",
        Unit::Seconds => "latency",
        Unit::Elapsed => "elapsed",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "rate",
        Unit::Percent => "percent",
    }
}

fn axis(axis: &Axis) -> Value {
    json!({
        "label": axis.label,
        "unit": unit(&axis.unit),
        "name": axis.unit.base(),
        "scale": match axis.scale { Scale::Linear => 1, Scale::Log => 10, Scale::Log2 => 2 },
        "names": axis.names,
        "zero": !axis.from_data,
        "bounds": axis.bounds,
    })
}

fn mark(mark: Mark) -> &'static str {
    match mark {
        Mark::Line => "line",
        Mark::Marked => "marked",
        Mark::Dots => "dots",
        Mark::Points => "points",
        Mark::Published => "published",
        Mark::Dashed => "dashed",
    }
}

/// The chart as its script reads it.
pub(super) fn payload(chart: &Chart) -> Value {
    let (table, drawn) = chart.columns();
    let mut columns: Vec<Value> = Vec::new();
    for column in &table.columns {
        let values = match &column.values {
            Values::Numbers(numbers) => numbers.iter().map(|value| number(*value)).collect(),
            Values::Names(names) => names.iter().map(|name| json!(name)).collect::<Vec<Value>>(),
        };
        columns.push(json!({ "name": column.heading(), "values": values }));
    }
    let mut all = Map::new();
    all.insert("id".into(), json!(chart.id));
    all.insert("title".into(), json!(chart.title));
    all.insert("sees".into(), json!(chart.sees));
    all.insert("context".into(), json!(chart.context));
    all.insert("columns".into(), Value::Array(columns));
    if let Plot::Lines(series) = &chart.plot
        && !drawn.spans.is_empty()
        && !chart.is_empty()
    {
        let plotted: Vec<Value> = series
            .iter()
            .zip(&drawn.spans)
            .enumerate()
            .map(|(place, (one, span))| {
                one_series(series, place, (span.value, span.band), one.points.len() < table.rows())
            })
            .collect();
        all.insert("plot".into(), json!({ "x": axis(&chart.x), "y": axis(&chart.y), "series": plotted }));
        if !chart.x.names.is_empty() {
            let places: Vec<Value> = drawn.xs.iter().map(|x| number(*x)).collect();
            all.insert("places".into(), Value::Array(places));
        }
    }
    Value::Object(all)
}

/// `sparse` says that rows without a value are those of other series, not gaps.
fn one_series(all: &[Series], place: usize, (value, band): (usize, Option<(usize, usize)>), sparse: bool) -> Value {
    let one = &all[place];
    json!({
        "name": one.name,
        "column": value,
        "band": band.map(|(low, high)| [low, high]),
        "bandName": one.band.as_ref().map(|band| band.name.clone()),
        "hue": lines_hue(all, place),
        "mark": mark(one.mark),
        "sparse": sparse,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_called_the_same_stay_apart() {
        let loads = ["16", "mixed", "16", "mixed"];
        let points = vec![(0.0, 5.0), (1.0, 6.0), (3.0, 7.0)];
        let chart = Chart {
            id: "loads".into(),
            title: String::new(),
            sees: String::new(),
            context: Vec::new(),
            x: Axis::named("load", loads),
            y: Axis::new("rate", Unit::Plain),
            plot: Plot::Lines(vec![Series::line("one", points)]),
            notes: Vec::new(),
            wide: false,
        };
        assert_eq!(payload(&chart)["places"], json!([0, 1, 3]));
    }
}
