//! Runs side by side.

use chart::{Axis, BarSeries, Block, Cell, Chart, Column, Page, Plot, Section, Table};
use lab::protocol::Metric;
use lab::run::{Compared, Figure, Row, Run, compare};

use crate::context;
use crate::metric::{asks, axis, base, capital, name, unit};
use crate::view::distinct;

/// Points of a chart at most; more become several charts.
const POINTS: usize = 16;

/// A page that sets runs side by side, the first being what the others are compared with. Each run has its name in `names`.
pub fn compare_page(names: &[String], runs: &[Run]) -> Page {
    let rows = compare(runs);
    let differing =
        rows.iter().filter(|row| row.verdicts.iter().any(|verdict| matches!(verdict, Compared::Differs(_)))).count();
    let unknown = rows.iter().any(|row| row.verdicts.iter().any(|verdict| matches!(verdict, Compared::Unknown(_))));
    let mut first = vec![Block::Text(format!(
        "{} figures are in more than one run; {differing} of them differ by more than noise explains.",
        rows.len()
    ))];
    if unknown {
        first.push(Block::Verdict(
            false,
            "Some figures were measured once only, so nothing is known of their noise: repeat the runs to learn more."
                .to_string(),
        ));
    }
    first.push(Block::Table(runs_table(names, runs)));
    let mut sections =
        vec![Section { id: "runs".into(), title: "What is compared".into(), facts: Vec::new(), blocks: first }];
    let tests = distinct(rows.iter().map(|row| test(row).to_string()));
    for test_name in &tests {
        let own: Vec<&Row> = rows.iter().filter(|row| test(row) == test_name).collect();
        let title = runs
            .iter()
            .flat_map(|run| &run.protocol.tests)
            .find(|one| one.name() == test_name)
            .map_or(test_name.as_str(), |one| one.title.as_str());
        let mut blocks = Vec::new();
        for metric in distinct(own.iter().map(|row| row.metric)) {
            let rows: Vec<&Row> = own.iter().copied().filter(|row| row.metric == metric).collect();
            blocks.extend(
                rows.chunks(POINTS)
                    .enumerate()
                    .map(|(at, rows)| Block::from(bars(title, test_name, metric, rows, names, runs, at))),
            );
        }
        blocks.push(Block::Table(table(&own, names)));
        sections.push(Section { id: test_name.clone(), title: title.to_string(), facts: Vec::new(), blocks });
    }
    let caveats =
        distinct(
            names.iter().zip(runs).filter(|(_, run)| !run.header.differs.is_empty()).map(|(name, run)| {
                format!("{name}: {} form, not as published ({})", run.header.form, run.header.differs)
            }),
        );
    let page = Page {
        title: format!("Runs side by side: {}", names.join(", ")),
        summary: "Differences are those from the first run. Intervals hold the mean with 95 % confidence; a difference is called real when Welch's test says so.".into(),
        caveat: caveats.join("; "),
        facts: Vec::new(),
        sections,
        made_by: format!("Made by OpenVSL, vsl {}", runs.first().map_or("", |run| run.header.environment.vsl.as_str())),
    };
    page.with_keys()
}

fn test(row: &Row) -> &str {
    row.what.split('/').next().unwrap_or_default()
}

/// The point without its test.
fn point(row: &Row) -> &str {
    row.what.split_once('/').map_or(row.what.as_str(), |(_, point)| point)
}

fn runs_table(names: &[String], runs: &[Run]) -> Table {
    let device = |run: &Run| {
        let words = run.parts.iter().map(|part| {
            let plan = &part.plan;
            [Some(&plan.device), plan.format.as_ref(), plan.array.as_ref()]
                .into_iter()
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join(" · ")
        });
        distinct(words).join("; ")
    };
    let row = |(name, run): (&String, &Run)| {
        vec![
            Cell::head(name),
            Cell::new(&run.protocol.title),
            Cell::new(&run.header.form),
            Cell::new(device(run)),
            Cell::new(run.header.options.repeat.to_string()),
            Cell::new(&run.header.started),
            Cell::new(context::platform(&run.header)),
        ]
    };
    Table {
        caption: "The runs".to_string(),
        columns: ["Run", "Protocol", "Form", "Devices", "Repeats", "Begun", "Platform"].map(Column::text).to_vec(),
        rows: names.iter().zip(runs).map(row).collect(),
        ..Table::default()
    }
}

fn bars(title: &str, test: &str, metric: Metric, rows: &[&Row], names: &[String], runs: &[Run], part: usize) -> Chart {
    let value = |figure: &Option<Figure>| figure.map_or(f64::NAN, |figure| figure.mean * base(metric));
    let half = |figure: &Option<Figure>| {
        figure.and_then(|figure| figure.half_width).map_or(f64::NAN, |half| half * base(metric))
    };
    let series = names.iter().enumerate().map(|(at, run)| {
        let error: Vec<f64> = rows.iter().map(|row| half(&row.runs[at])).collect();
        BarSeries {
            error: if error.iter().any(|half| half.is_finite()) { error } else { Vec::new() },
            ..BarSeries::new(run.clone(), rows.iter().map(|row| value(&row.runs[at])).collect())
        }
    });
    let series: Vec<BarSeries> = series.collect();
    let more = if part > 0 { format!(" ({})", part + 1) } else { String::new() };
    let title = format!("{title}: {}{more}", name(metric).to_lowercase());
    Chart {
        id: format!("{test}-{}-{part}", name(metric)),
        title,
        sees: capital(&format!("how {}, a colour for each run; whiskers are 95 % confidence.", asks(metric))),
        context: names
            .iter()
            .zip(runs)
            .map(|(name, run)| format!("{name}: {} form, {}", run.header.form, run.header.options.devices.join(", ")))
            .collect(),
        x: Axis::named("", rows.iter().map(|row| point(row).to_string())),
        y: axis(metric),
        wide: rows.len() * series.len() > 12,
        plot: Plot::Bars(series),
        ..Chart::default()
    }
}

fn table(rows: &[&Row], names: &[String]) -> Table {
    let mut columns = vec![Column::text("Point"), Column::text("Figure")];
    columns.extend(names.iter().map(|name| Column::number(name.clone())));
    columns.extend(names.iter().skip(1).map(|name| Column::text(format!("{name}, difference"))));
    let row = |row: &&Row| {
        let unit = unit(row.metric);
        let shown = |value: f64| unit.one(value * base(row.metric));
        let mut cells = vec![Cell::head(point(row)), Cell::new(name(row.metric))];
        cells.extend(row.runs.iter().map(|figure| {
            Cell::new(match figure {
                None => "–".to_string(),
                Some(Figure { mean, half_width: Some(half), .. }) => format!("{} ± {}", shown(*mean), shown(*half)),
                Some(Figure { mean, .. }) => shown(*mean),
            })
        }));
        cells.extend(row.verdicts.iter().map(|verdict| Cell::new(said(verdict))));
        cells
    };
    Table { caption: "Every figure".to_string(), columns, rows: rows.iter().map(row).collect(), ..Table::default() }
}

fn said(verdict: &Compared) -> String {
    let signed = |percent: &f64| format!("{}{:.1} %", if *percent < 0.0 { "−" } else { "+" }, percent.abs());
    match verdict {
        Compared::Differs(percent) => format!("{}, differs", signed(percent)),
        Compared::Noise(percent) => format!("{}, noise", signed(percent)),
        Compared::Unknown(percent) => format!("{}, noise unknown", signed(percent)),
        Compared::Same => "the same".to_string(),
        Compared::Missing => "missing".to_string(),
    }
}
