//! The page of `make demo-databases`: `databases_page FIGURES.json PAGE.html`.

use std::collections::BTreeMap;

use chart::{Axis, BarSeries, Block, Cell, Chart, Column, Page, Plot, Section, Table, Unit};
use serde::Deserialize;

#[derive(Deserialize)]
struct Figures {
    facts: BTreeMap<String, String>,
    databases: Vec<Database>,
    cuts: Vec<Cuts>,
}

#[derive(Deserialize)]
struct Database {
    name: String,
    load: String,
    arms: Vec<Arm>,
}

/// A database in one place; each list has a value a round.
#[derive(Deserialize)]
struct Arm {
    place: String,
    transactions_per_s: Vec<f64>,
    p99_s: Vec<f64>,
    bytes_per_transaction: Vec<f64>,
    more: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Cuts {
    database: String,
    place: String,
    cuts: u32,
    commits: u64,
    damage: Vec<String>,
    must_fail: bool,
}

/// A figure of an arm: its chart's identity, title, axis, unit, and what one sees.
struct Figure {
    id: &'static str,
    title: &'static str,
    sees: &'static str,
    unit: fn() -> Unit,
    of: fn(&Arm) -> &[f64],
}

const FIGURES: [Figure; 3] = [
    Figure {
        id: "transactions",
        title: "Transactions a second",
        sees: "How many transactions a second each database commits in each place. Higher bars are better.",
        unit: || Unit::count("tx/s"),
        of: |arm| &arm.transactions_per_s,
    },
    Figure {
        id: "p99",
        title: "99th percentile of a transaction's time",
        sees: "Of a hundred transactions one takes longer than this. Lower bars are better.",
        unit: || Unit::Seconds,
        of: |arm| &arm.p99_s,
    },
    Figure {
        id: "bytes",
        title: "Bytes to the disk a transaction",
        sees: "What the disk is given to write for each transaction: wear. Lower bars are better.",
        unit: || Unit::Bytes,
        of: |arm| &arm.bytes_per_transaction,
    },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [figures, page] = &arguments[..] else {
        return Err("usage: databases_page FIGURES.json PAGE.html".into());
    };
    let text = std::fs::read_to_string(figures).map_err(|error| format!("{figures}: {error}"))?;
    let figures: Figures = serde_json::from_str(&text).map_err(|error| format!("{figures}: {error}"))?;
    Ok(std::fs::write(page, drawn(&figures).html()).map_err(|error| format!("{page}: {error}"))?)
}

fn drawn(figures: &Figures) -> Page {
    let mut blocks = vec![Block::Text(
        "A device of OpenVSL tears no write of up to 1 MiB, so a database on it need not write its pages twice. Each database \
         ran in three places on one disk: on a plain file with ext4, with its double writes; on a device, with its double writes; and on \
         the device without them. The last two differ in nothing else."
            .into(),
    )];
    blocks.extend(FIGURES.iter().map(|figure| chart(figures, figure).into()));
    blocks.push(Block::Table(table(figures)));
    let measured = Section { id: "speed".into(), title: "Speed and wear".into(), facts: Vec::new(), blocks };
    Page {
        title: "Databases without double writes".into(),
        summary: summary(figures),
        facts: figures.facts.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        sections: vec![measured, cuts(&figures.cuts)],
        made_by: "Made by make demo-databases.".into(),
        ..Page::default()
    }
}

/// What the device with double writes and without them makes of each database.
fn summary(figures: &Figures) -> String {
    let each = figures.databases.iter().filter_map(|database| {
        let [_, twice, once] = &database.arms[..] else { return None };
        let (speed, bytes) = (ratio(once, twice, &FIGURES[0]), ratio(once, twice, &FIGURES[2]));
        Some(format!("{} {speed:.2} × the transactions with {bytes:.2} × the bytes", database.name))
    });
    format!("Without double writes, beside the same device with them: {}.", each.collect::<Vec<_>>().join("; "))
}

fn ratio(one: &Arm, other: &Arm, figure: &Figure) -> f64 {
    median((figure.of)(one)) / median((figure.of)(other))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn chart(figures: &Figures, figure: &Figure) -> Chart {
    let places = figures.databases.first().map(|database| &database.arms[..]).unwrap_or_default();
    let bars = places.iter().enumerate().map(|(at, arm)| {
        let of = |database: &Database| database.arms.get(at).map_or(f64::NAN, |arm| median((figure.of)(arm)));
        BarSeries::new(arm.place.clone(), figures.databases.iter().map(of).collect())
    });
    Chart {
        id: figure.id.into(),
        title: figure.title.into(),
        sees: figure.sees.into(),
        context: figures.databases.iter().map(|database| format!("{}: {}.", database.name, database.load)).collect(),
        x: Axis::named("Database", figures.databases.iter().map(|database| database.name.clone())),
        y: Axis::new(figure.title, (figure.unit)()),
        plot: Plot::Bars(bars.collect()),
        wide: true,
        ..Chart::default()
    }
}

fn table(figures: &Figures) -> Table {
    let rows = figures.databases.iter().flat_map(|database| {
        database.arms.iter().map(|arm| {
            let more: Vec<String> = arm.more.iter().map(|(name, value)| format!("{value:.1} {name}")).collect();
            let spread = arm.transactions_per_s.iter().map(|rate| format!("{rate:.0}"));
            vec![
                Cell::head(database.name.clone()),
                Cell::new(arm.place.clone()),
                Cell::new(format!("{:.0}", median(&arm.transactions_per_s))),
                Cell::new(spread.collect::<Vec<_>>().join(", ")),
                Cell::new(format!("{:.2} ms", median(&arm.p99_s) * 1e3)),
                Cell::new(format!("{:.0}", median(&arm.bytes_per_transaction))),
                Cell::new(more.join("; ")),
            ]
        })
    });
    Table {
        caption: "All figures: medians, and the rounds' transactions a second".into(),
        columns: vec![
            Column::text("Database"),
            Column::text("Place"),
            Column::number("Transactions/s"),
            Column::text("Rounds"),
            Column::number("p99"),
            Column::number("Bytes a transaction"),
            Column::text("Also"),
        ],
        rows: rows.collect(),
        stacks: true,
    }
}

fn cuts(all: &[Cuts]) -> Section {
    let mut blocks = vec![Block::Text(
        "The power went at a write that chance picked, while clients committed. After each cut the database recovered, its own \
         checker looked at every page, and what it holds was compared with a ledger of acknowledged commits outside of the \
         device. The control writes pages once where a disk tears writes: it must fail, or the cuts show nothing."
            .into(),
    )];
    for cuts in all {
        let Cuts { database, place, cuts: count, commits, .. } = cuts;
        let said = match (cuts.damage.first(), cuts.must_fail) {
            (None, false) => "no damage, nothing lost".to_string(),
            (None, true) => "no damage: the control did not fail".to_string(),
            (Some(damage), true) => format!("damaged at cut {count}, as it must be: {damage}"),
            (Some(damage), false) => format!("DAMAGED: {damage}"),
        };
        let held = cuts.damage.is_empty() != cuts.must_fail;
        blocks.push(Block::Verdict(held, format!("{database}, {place}: {count} cuts, {commits} commits: {said}")));
    }
    Section { id: "cuts".into(), title: "Power cuts".into(), facts: Vec::new(), blocks }
}
