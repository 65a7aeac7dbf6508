//! A figure for each size of requests.

use chart::{Axis, Chart, Mark, Plot, Series};
use lab::protocol::{self, Metric};
use lab::published::Row;

use super::{stage, title};
use crate::ReportError;
use crate::context::{mix, size};
use crate::figure::{Place, places};
use crate::metric::{asks, axis};
use crate::published::{When, of_part};
use crate::view::{View, distinct, groups};

/// A figure over sizes, a line for each mix.
pub(super) fn by_size(
    view: &View,
    asked: &protocol::Chart,
    metric: Metric,
    rows: &[Row],
) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for group in groups(&view.variants) {
        let all: Vec<Vec<Place>> = group.members.iter().map(|(_, variant)| places(variant, stage(asked))).collect();
        let mut sizes = distinct(all.iter().flatten().map(|place| (place.step.point.size_bytes, size(place.step))));
        sizes.sort();
        let mixes = distinct(all.iter().flatten().map(|place| mix(place.step.point.read_percent)));
        let mut series: Vec<Series> = Vec::new();
        for ((own, variant), places) in group.members.iter().zip(&all) {
            let published = of_part(view, variant.part(), rows);
            for wanted in &mixes {
                let (mut points, mut beside) = (Vec::new(), Vec::new());
                for place in places.iter().filter(|place| mix(place.step.point.read_percent) == *wanted) {
                    let Some(at) = sizes.iter().position(|(_, wanted)| *wanted == size(place.step)) else { continue };
                    points.push((at as f64, place.figure(metric)?.map_or(f64::NAN, |figure| figure.value)));
                    let fitting = published
                        .iter()
                        .filter(|one| one.metric == metric && one.when == When::Measured && one.fits(place.step));
                    let access = |one: &&crate::published::Published| one.row.access == place.step.point.access;
                    beside.extend(fitting.filter(access).map(|one| (at as f64, one.value)));
                }
                points.sort_by(|one: &(f64, f64), other| one.0.total_cmp(&other.0));
                let own_mix = if mixes.len() > 1 { wanted.clone() } else { String::new() };
                super::add(&mut series, &[own.clone(), own_mix], "measured", Mark::Marked, points, beside);
            }
        }
        let x = Axis::named("Size of requests", sizes.into_iter().map(|(_, size)| size));
        let sees = format!("how {}, from small requests to large ones.", asks(metric));
        charts.push(super::chart(
            view,
            title(view, asked, metric, &group.name),
            &sees,
            (x, super::spread(axis(metric), &series)),
            Plot::Lines(series),
        ));
    }
    Ok(charts)
}
