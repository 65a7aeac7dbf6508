//! What came of a run, on one sheet.

use chart::{Block, Cell, Column, Table};
use lab::protocol::Metric;
use lab::published::Row;
use lab::run::{PartResults, Run};

use crate::ReportError;
use crate::context;
use crate::figure::places;
use crate::metric::{base, name, unit};
use crate::published::{Published, When, of_part};
use crate::view::{MANY, Variant, View};

/// Verdicts, what was left out or broke off, and everything published beside what was measured.
pub(crate) fn blocks(run: &Run, views: &[View], rows: &[Row]) -> Result<Vec<Block>, ReportError> {
    let (table, differences) = beside(views, rows)?;
    // What a reader decides by comes first.
    let mut blocks: Vec<Block> = comparison(&differences).into_iter().collect();
    let steady = |part: &&PartResults| part.verdicts.iter().all(|verdict| verdict.steady);
    let judged: Vec<&PartResults> = run.parts.iter().filter(|part| !part.verdicts.is_empty()).collect();
    if !judged.is_empty() {
        let good = judged.iter().filter(|part| steady(part)).count();
        let text = format!("{good} of {} parts became steady.", judged.len());
        blocks.push(Block::Verdict(good == judged.len(), text));
    }
    // What has the same cause is said once.
    let mut causes: Vec<(String, Vec<&str>)> = Vec::new();
    for part in &run.parts {
        let cause = if let Some(broke) = &part.broke {
            format!("broke off: {broke}")
        } else if part.begin.is_none() {
            "not begun".to_string()
        } else if !part.complete {
            format!("not finished, {} of {} steps done", part.steps.len(), part.plan.steps)
        } else {
            continue;
        };
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, parts)) => parts.push(&part.plan.part),
            None => causes.push((cause, vec![&part.plan.part])),
        }
    }
    for (cause, parts) in causes {
        let text = match &parts[..] {
            [one] => format!("{one} {cause}."),
            [first, .., last] => format!("{} parts {cause} (from {first} to {last}).", parts.len()),
            [] => continue,
        };
        blocks.push(Block::Verdict(false, text));
    }
    blocks.push(Block::Text(run.protocol.description.clone()));
    blocks.extend(run.left_out.iter().map(|left_out| Block::Text(format!("Left out: {left_out}."))));
    if !table.rows.is_empty() {
        blocks.push(Block::Table(table));
    }
    Ok(blocks)
}

/// A difference up to which a model is called close, per cent.
const CLOSE: f64 = 10.0;

/// How all that was measured stands to what was published, in a sentence.
fn comparison(differences: &[(String, f64)]) -> Option<Block> {
    let mut sizes: Vec<f64> = differences.iter().map(|(_, percent)| percent.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let median = match sizes.len() {
        0 => return None,
        even if even % 2 == 0 => f64::midpoint(sizes[even / 2 - 1], sizes[even / 2]),
        odd => sizes[odd / 2],
    };
    let close = sizes.iter().filter(|size| **size <= CLOSE).count();
    let (what, furthest) = differences.iter().max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))?;
    let text = match sizes.len() {
        1 => format!("From the one published figure ({what}) it differs by {}.", signed(*furthest)),
        count => format!(
            "Of {count} published figures the median error is {median:.1} %; {close} lie within {CLOSE} %. Furthest off: {what}, {}.",
            signed(*furthest)
        ),
    };
    Some(Block::Verdict(median <= CLOSE, text))
}

fn signed(percent: f64) -> String {
    format!("{}{:.1} %", if percent < 0.0 { "−" } else { "+" }, percent.abs())
}

/// Everything published of what was run, beside what was measured; and by how many per cent each of them differs.
fn beside(views: &[View], rows: &[Row]) -> Result<(Table, Vec<(String, f64)>), ReportError> {
    let mut differences = Vec::new();
    let mut table = Table {
        caption: "Measured beside published".to_string(),
        stacks: true,
        columns: vec![
            Column::text("What"),
            Column::text("Figure"),
            Column::number("measured"),
            Column::number("published"),
            Column::number("difference"),
            Column::text("Note"),
        ],
        rows: Vec::new(),
    };
    for view in views {
        for variant in &view.variants {
            for one in of_part(view, variant.part(), rows) {
                let Some(measured) = measured(variant, &one)? else { continue };
                let unit = unit(one.metric);
                let difference = (measured / one.value - 1.0) * 100.0;
                let what = crate::view::joined(&[view.test.title.clone(), variant.name.clone(), load(&one)]);
                let when = match one.when {
                    When::Burst => ", at first",
                    When::Steady => ", at the end of preconditioning",
                    When::Measured => "",
                };
                let figure = format!("{}{when}", name(one.metric));
                differences.push((format!("{what}, {}", figure.to_lowercase()), difference));
                table.rows.push(vec![
                    Cell::head(what),
                    Cell::new(figure),
                    Cell::new(unit.one(measured)),
                    Cell::new(unit.one(one.value)),
                    Cell::new(signed(difference)),
                    Cell::new(one.row.note.clone()),
                ]);
            }
        }
    }
    Ok((table, differences))
}

/// What was asked, so that rows of a test can be told apart.
fn load(one: &Published) -> String {
    let row = &one.row;
    let size = match row.block_kib.parse::<f64>() {
        Ok(kib) if kib < 1.0 => format!("{} B ", kib * 1024.0),
        Ok(kib) => format!("{kib} KiB "),
        Err(_) => String::new(),
    };
    let access = if row.access == "trace" { "" } else { &row.access };
    let words = [size.trim(), access, &context::mix(row.read_pct)].map(str::to_string);
    let asked = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    format!("{asked}, {} outstanding", row.outstanding)
}

/// What was measured of a published figure.
fn measured(variant: &Variant, one: &Published) -> Result<Option<f64>, ReportError> {
    if one.when == When::Measured {
        let mut found: Vec<f64> = Vec::new();
        for place in places(variant, None).iter().filter(|place| one.fits(place.step)) {
            found.extend(place.figure(one.metric)?.map(|figure| figure.value));
        }
        let best =
            found.iter().copied().reduce(if crate::metric::less_is_better(one.metric) { f64::min } else { f64::max });
        return Ok(if one.is_best() { best } else { found.first().copied() });
    }
    let preparing = |step: &&lab::run::Step| step.role == lab::protocol::Role::Precondition && one.fits(step);
    let Some(step) = variant.steps().find(preparing) else { return Ok(None) };
    let mut course = Vec::new();
    for interval in &step.series {
        let value = interval.metric(one.metric).map_err(|problem| crate::figure::damaged(step, problem))?;
        course.extend(value.map(|value| value * base(one.metric)));
    }
    // "Steady" is what the last fifth comes to; "burst" the best of the first.
    let fifth = (course.len() / 5).max(1).min(course.len());
    Ok(match one.when {
        When::Burst => course[..fifth].iter().copied().reduce(f64::max),
        _ if fifth == 0 => None,
        _ => Some(course[course.len() - fifth..].iter().sum::<f64>() / fifth as f64),
    })
}

/// The figures of every point, for the section of a test.
pub(crate) fn figures(view: &View) -> Result<Option<Table>, ReportError> {
    const METRICS: [Metric; 8] = [
        Metric::Iops,
        Metric::Megabytes,
        Metric::Mean,
        Metric::P50,
        Metric::P99,
        Metric::P999,
        Metric::P9999,
        Metric::Max,
    ];
    const MORE: [Metric; 3] = [Metric::Deviation, Metric::WriteAmplification, Metric::CpuPerIo];
    let mut found = Vec::new();
    for variant in &view.variants {
        for place in places(variant, None) {
            let mut values = Vec::new();
            for metric in METRICS.into_iter().chain(MORE) {
                values.push((metric, place.figure(metric)?));
            }
            let own = crate::view::joined(&[crate::view::key(place.step), context::load(place.step)]);
            found.push((crate::view::joined(&[variant.name.clone(), own]), place.pool()?.requests(), values));
        }
    }
    let Some((.., first)) = found.first() else { return Ok(None) };
    let used: Vec<bool> = (0..first.len()).map(|at| found.iter().any(|(.., values)| values[at].1.is_some())).collect();
    let metrics = first.iter().zip(&used).filter(|(_, used)| **used).map(|((metric, _), _)| *metric);
    let mut columns = vec![Column::text("Point"), Column::number("Number")];
    columns.extend(metrics.map(|metric| Column::number(name(metric))));
    let rows = found.iter().map(|(what, requests, values)| {
        let mut cells = vec![Cell::head(what), Cell::new(chart::digits(*requests as f64, 15))];
        let values = values.iter().zip(&used).filter(|(_, used)| **used).map(|(value, _)| value);
        cells.extend(values.map(|(metric, figure)| {
            Cell::new(figure.map_or_else(
                || "–".to_string(),
                |figure| match figure.half_width {
                    Some(half) => format!("{} ± {}", unit(*metric).one(figure.value), unit(*metric).one(half)),
                    None => unit(*metric).one(figure.value),
                },
            ))
        }));
        cells
    });
    let caption =
        "Every point in figures. A dash stands where the samples cannot carry a percentile: ten must lie beyond it.";
    Ok(Some(Table { caption: caption.to_string(), columns, rows: rows.collect(), ..Table::default() }))
}

/// The verdicts of a test as blocks.
pub(crate) fn verdicts(view: &View) -> Vec<Block> {
    let mut blocks = Vec::new();
    // With many variants the table of windows says it better.
    for variant in view.variants.iter().filter(|_| view.variants.len() <= MANY) {
        for verdict in &variant.part().verdicts {
            let what = crate::view::joined(&[variant.name.clone(), verdict.tracked.clone()]);
            blocks.push(Block::Verdict(verdict.steady, format!("{what}: {}", context::verdict(verdict))));
        }
    }
    blocks
}
