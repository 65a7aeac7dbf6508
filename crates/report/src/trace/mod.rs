//! What a trace amounts to, as a page.

mod space;
mod tables;
mod time;

use chart::{Block, Chart, Page, Section, Unit};
use trace::info::{Count, Info};

/// Makes the page of a trace that was characterised by the program of this version.
pub fn trace_page(info: &Info, version: &str) -> Page {
    let sections = [
        ("at-a-glance", "At a glance", glance(info)),
        ("sizes", "What is asked", tables::sizes(info)),
        ("time", "When it is asked", time::blocks(info)),
        ("space", "Where it goes", space::blocks(info)),
        ("order", "In which order", tables::order(info)),
    ];
    let section = |(id, title, blocks): (&str, &str, Vec<Block>)| Section {
        id: id.into(),
        title: title.into(),
        facts: Vec::new(),
        blocks,
    };
    let name = info.source.path.rsplit('/').next().unwrap_or_default();
    let page = Page {
        title: format!("Trace {name}"),
        summary: summary(info),
        caveat: String::new(),
        facts: facts(info),
        sections: sections.into_iter().filter(|(.., blocks)| !blocks.is_empty()).map(section).collect(),
        made_by: format!("Made by OpenVSL, vsl {version}"),
    };
    page.with_keys()
}

fn summary(info: &Info) -> String {
    let count = |number: u64| chart::digits(number as f64, 15);
    format!("{} requests in {}.", count(info.records), spoken(&Unit::Elapsed, info.duration_seconds))
}

/// A figure with its unit, for running text.
fn spoken(unit: &Unit, value: f64) -> String {
    unit.one(value).replace('\u{a0}', " ")
}

fn format(info: &Info) -> String {
    let compressed = info.source.compression.map(|name| format!(", {name}")).unwrap_or_default();
    format!("{}{compressed}", info.source.format)
}

fn facts(info: &Info) -> Vec<(String, String)> {
    let footprint = &info.footprint;
    let mut facts = vec![
        ("File".into(), info.source.path.clone()),
        ("Format".into(), format(info)),
        ("Footprint".into(), format!("{}, {}", spoken(&Unit::Bytes, footprint.touched.bytes as f64), counted(info))),
        ("Reaches to".into(), spoken(&Unit::Bytes, footprint.span_bytes as f64)),
    ];
    if info.volumes.len() > 1 {
        facts.push(("Volumes".into(), info.volumes.len().to_string()));
    }
    facts
}

/// How blocks were counted.
fn counted(info: &Info) -> String {
    match info.footprint.sampled_one_in {
        1 => "every block counted".into(),
        times => format!("from one in {times} blocks"),
    }
}

fn glance(info: &Info) -> Vec<Block> {
    let source = &info.source;
    let mut blocks = vec![Block::Table(tables::requests(info))];
    blocks.extend((info.volumes.len() > 1).then(|| Block::Table(tables::volumes(info))));
    for (count, what) in [
        (source.other_commands, "commands that move no data were left out"),
        (source.empty, "requests of nothing were left out"),
        (source.other_volumes, "requests of other volumes were left out"),
        (source.unanswered, "requests have no completion"),
        (info.out_of_order, "requests stand behind a later one"),
    ] {
        if count > 0 {
            blocks.push(Block::Text(format!("{} {what}.", chart::digits(count as f64, 15))));
        }
    }
    if source.last_line_unended {
        blocks.push(Block::Text("The last line has no end: its last number may be cut off.".into()));
    }
    blocks
}

/// A chart with what every chart of the page says about its trace; nothing where there is nothing to draw.
fn drawn(info: &Info, chart: Chart) -> Option<Block> {
    let context = vec![
        format!("{} · {}", info.source.path.rsplit('/').next().unwrap_or_default(), format(info)),
        summary(info).trim_end_matches('.').to_string(),
    ];
    let chart = Chart { id: chart.title.clone(), context, ..chart };
    (!chart.is_empty()).then(|| chart.into())
}

/// Operations that there are, with their names.
fn kinds(info: &Info) -> Vec<(&'static str, &Count)> {
    let ops = &info.requests;
    let all = [("reads", &ops.read), ("writes", &ops.write), ("trims", &ops.trim), ("flushes", &ops.flush)];
    all.into_iter().filter(|(_, count)| count.requests > 0).collect()
}
