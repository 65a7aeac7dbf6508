//! A trace over time, and how bursty it is.

use chart::{Axis, Block, Chart, Mark, Plot, Series, Unit};
use trace::info::{Info, Row};

use super::drawn;

/// Something that is counted in an interval, and what it is called.
type Counted = (&'static str, fn(&Row) -> u64);

/// Charts over time.
pub(super) fn blocks(info: &Info) -> Vec<Block> {
    let requests: [Counted; 4] = [
        ("reads", |row| row.reads),
        ("writes", |row| row.writes),
        ("trims", |row| row.trims),
        ("flushes", |row| row.flushes),
    ];
    let bytes: [Counted; 2] = [("reads", |row| row.read_bytes), ("writes", |row| row.written_bytes)];
    let rate = |title: &str, sees: &str, axis: Axis, of: &[Counted]| Chart {
        title: title.into(),
        sees: sees.into(),
        x: Axis::new("Time", Unit::Elapsed),
        y: axis,
        plot: Plot::Lines(rates(info, of)),
        wide: true,
        ..Chart::default()
    };
    let charts = [
        rate(
            "Requests over time",
            "How many requests a second come, on average over each interval.",
            Axis::new("Requests", Unit::count("IO/s")),
            &requests,
        ),
        rate(
            "Throughput over time",
            "How many bytes a second are read and written, on average over each interval.",
            Axis::new("Throughput", Unit::BytesPerSecond),
            &bytes,
        ),
        bursts(info),
        responses(info),
    ];
    charts.into_iter().filter_map(|chart| drawn(info, chart)).collect()
}

/// What happens in each interval, a second. What never happens has no line.
fn rates(info: &Info, of: &[Counted]) -> Vec<Series> {
    let width = info.timeline.interval_seconds;
    let there = of.iter().filter(|(_, count)| info.timeline.rows.iter().any(|row| count(row) > 0));
    there
        .map(|(name, count)| {
            let point = |row: &Row| (row.start_seconds + width / 2.0, count(row) as f64 / width);
            Series::line(*name, info.timeline.rows.iter().map(point).collect())
        })
        .collect()
}

fn bursts(info: &Info) -> Chart {
    let names = info.bursts.iter().map(|window| super::spoken(&Unit::Seconds, window.seconds));
    let line = |name: &str, of: fn(&trace::info::Window) -> f64| {
        let points = info.bursts.iter().enumerate().map(|(at, window)| (at as f64, of(window)));
        Series::line(name, points.collect()).mark(Mark::Marked)
    };
    Chart {
        title: "Burstiness".into(),
        sees: "How unevenly requests come, seen through windows of each length. A dispersion of 1 is what requests have that come independently of each other; more is burstier."
            .into(),
        x: Axis::named("Window", names),
        y: Axis::new("Ratio", Unit::Plain).log(),
        plot: Plot::Lines(vec![
            line("variance by mean (dispersion)", |window| window.dispersion),
            line("busiest window by mean", |window| window.peak_to_mean),
        ]),
        ..Chart::default()
    }
}

/// How long requests took when the trace was recorded.
fn responses(info: &Info) -> Chart {
    let all = super::kinds(info);
    let spreads: Vec<_> =
        all.iter().filter_map(|(name, count)| Some((*name, count.response_seconds.as_ref()?))).collect();
    let percents =
        crate::view::distinct(spreads.iter().flat_map(|(_, spread)| &spread.percentiles).map(|it| it.percent));
    let series = spreads.iter().map(|(name, spread)| {
        let points = percents.iter().enumerate().map(|(at, percent)| {
            let value = spread.percentile(*percent);
            (at as f64, value.unwrap_or(f64::NAN))
        });
        Series::line(*name, points.collect()).mark(Mark::Marked)
    });
    Chart {
        title: "Response times of the traced device".into(),
        sees: "How long requests took when the trace was recorded: so many per cent of them took at most so long."
            .into(),
        x: Axis::named("Requests", percents.iter().map(|percent| format!("{percent} %"))),
        y: Axis::new("Response time", Unit::Seconds).log(),
        plot: Plot::Lines(series.collect()),
        ..Chart::default()
    }
}
