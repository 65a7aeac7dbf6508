//! A figure over sizes and mixes: as a field, and as bars beside each other (what SNIA's report pages draw in three dimensions).

use chart::{Axis, BarSeries, Chart, Heat, Plot, Steps};
use lab::protocol::{self, Metric};

use super::{stage, title};
use crate::ReportError;
use crate::context::size;
use crate::figure::{Place, places};
use crate::metric::{asks, axis, name, unit};
use crate::view::{Variant, View, distinct};

/// A field and bars for each variant.
pub(super) fn heat_maps(view: &View, asked: &protocol::Chart, metric: Metric) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for variant in &view.variants {
        charts.extend(of_variant(view, variant, asked, metric)?);
    }
    Ok(charts)
}

fn of_variant(
    view: &View,
    variant: &Variant,
    asked: &protocol::Chart,
    metric: Metric,
) -> Result<Vec<Chart>, ReportError> {
    let places: Vec<Place> = places(variant, stage(asked));
    let mut sizes = distinct(places.iter().map(|place| (place.step.point.size_bytes, size(place.step))));
    sizes.sort();
    let mut mixes = distinct(places.iter().map(|place| place.step.point.read_percent));
    mixes.sort_by(f64::total_cmp);
    let mut cells = vec![vec![f64::NAN; mixes.len()]; sizes.len()];
    for place in &places {
        let row = sizes.iter().position(|(_, own)| *own == size(place.step));
        let column = mixes.iter().position(|mix| *mix == place.step.point.read_percent);
        if let (Some(row), Some(column), Some(figure)) = (row, column, place.figure(metric)?) {
            cells[row][column] = figure.value;
        }
    }
    let size_names: Vec<String> = sizes.into_iter().map(|(_, size)| size).collect();
    let mix_names: Vec<String> = mixes.iter().map(|mix| format!("{mix}/{}", 100.0 - mix)).collect();
    let bars = mix_names
        .iter()
        .enumerate()
        .map(|(column, mix)| BarSeries::new(format!("{mix} R/W"), cells.iter().map(|row| row[column]).collect()))
        .collect();
    let heading = title(view, asked, metric, &variant.name);
    let x = Axis::named("Reads/writes, %", mix_names);
    let y = Axis::named("Size of requests", size_names.clone());
    let heat =
        Heat { columns: Steps::Names, rows: Steps::Names, cells, label: name(metric), unit: unit(metric), log: true };
    let sees = format!("how {}, for each size and mix in the steady state.", asks(metric));
    let field = super::chart(view, heading.clone(), &sees, (x, y), Plot::Heat(heat));
    let sees = format!("how {}, for each size, a bar for each mix.", asks(metric));
    let axes = (Axis::named("Size of requests", size_names), axis(metric));
    let side_by_side = Chart {
        wide: true,
        ..super::chart(view, format!("{}, as bars", heading.replace(", as a field", "")), &sees, axes, Plot::Bars(bars))
    };
    Ok(vec![field, side_by_side])
}
