//! Reports of the runs in `crates/lab/tests/data`, and of what is left of them when they are damaged.

use std::path::{Path, PathBuf};

use chart::Block;
use lab::run::Run;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/tests/data/run")
}

fn run() -> Run {
    Run::open(&data()).expect("the run of the lab's tests")
}

#[test]
fn a_report_says_on_what_it_was_measured_and_whether_it_was_steady() {
    let page = report::page(&run()).expect("a report");
    let charts: Vec<_> = page.charts().collect();
    assert!(charts.len() >= 8, "{} charts", charts.len());
    for chart in &charts {
        assert!(!chart.is_empty(), "{}", chart.title);
        let context = chart.context.join(" ");
        for word in ["ioDrive", "purged", "Steady state:", "form"] {
            assert!(context.contains(word), "{}: {context}", chart.title);
        }
    }
    for section in page.sections.iter().filter(|section| !section.facts.is_empty()) {
        let names: Vec<&str> = section.facts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Platform", "Device", "Set-up", "Measured", "Steady state"]);
        assert!(section.facts.iter().all(|(_, value)| !value.is_empty()));
    }
    assert!(page.caveat.contains("not as published"), "{}", page.caveat);
    let keys: std::collections::HashSet<String> = charts.iter().map(|chart| chart.key()).collect();
    assert_eq!(keys.len(), charts.len(), "names twice");
}

#[test]
fn what_was_measured_stands_in_ioblazers_columns() {
    let run = run();
    let csv = report::ioblazer_csv(&run).expect("sound histograms");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + run.measured().count());
    assert!(lines.iter().all(|line| line.len() == 9), "{csv}");
    for (line, (part, step)) in lines[1..].iter().zip(run.measured()) {
        let number = |at: usize| line[at].parse::<f64>().unwrap_or_else(|_| panic!("{} is no number", line[at]));
        assert_eq!((number(1), number(2)), (step.total.all.requests as f64, step.total.all.bytes as f64));
        assert!((number(3) - number(1) / number(0)).abs() < number(3) / 100.0, "{line:?}");
        assert!(number(5) <= number(6) && number(7) <= number(1), "{line:?}");
        assert_eq!(number(7) > 0.0, number(6) > 50_000.0, "long ones take longer than 50 ms: {line:?}");
        assert_eq!(line[8], format!("{}/{}", part.plan.part, step.step));
    }
}

#[test]
fn what_holds_for_all_is_said_once_and_what_one_decides_by_first() {
    let page = report::page(&run()).expect("a report");
    let html = page.html();
    assert_eq!(html.matches("not as published").count(), 1, "one notice of the form");
    assert!(!html.contains("<h4"), "no heading is passed over");
    assert!(!html.contains("role=\"region\""), "no two regions of one name");
    assert!(!html.contains("></th>"), "no empty heading");
    // The sections of tests have the set-up at their heads.
    let section = page.sections.iter().find(|section| !section.facts.is_empty()).expect("a test");
    let own = html.split(&format!("id=\"{}\"", section.id)).nth(1).expect("its section");
    let own = own.split("</section>").next().unwrap_or_default();
    assert_eq!(own.matches("class=\"context\">Steady state").count(), 0, "captions repeat nothing");
    assert!(matches!(page.sections[0].blocks[0], Block::Verdict(..)), "{:?}", page.sections[0].blocks[0]);
}

#[test]
fn what_one_always_wants_to_see_is_there() {
    let page = report::page(&run()).expect("a report");
    let titles: Vec<&str> = page.charts().map(|chart| chart.title.as_str()).collect();
    for wanted in [
        "over preconditioning",
        "latency over time",
        "every latency over time",
        "write amplification",
        "share of requests",
        "steady-state window",
    ] {
        assert!(titles.iter().any(|title| title.contains(wanted)), "{wanted}: {titles:?}");
    }
    let tables: Vec<&chart::Table> = page
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None })
        .collect();
    for wanted in ["Window determination", "Every point in figures"] {
        assert!(tables.iter().any(|table| table.caption.contains(wanted)), "{wanted}");
    }
    for table in tables {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
    }
}

#[test]
fn a_run_that_has_only_begun_has_a_report_that_says_so() {
    let mut run = run();
    run.finished = false;
    for part in &mut run.parts {
        part.steps.clear();
        part.complete = false;
    }
    let page = report::page(&run).expect("a report");
    assert!(page.summary.contains("not finished"), "{}", page.summary);
    assert_eq!(page.charts().count(), 0);
    assert!(page.html().contains("is not finished"));
    run.parts.clear();
    assert!(report::page(&run).is_ok());
}

/// Where each point is measured on a device of its own, steps of all parts have the same name.
#[test]
fn points_with_parts_of_their_own_are_points_of_their_own() {
    let mut run = run();
    let mut more = run.parts[0].clone();
    run.parts[0].plan.point = Some("q1".into());
    more.plan.point = Some("q4".into());
    for step in &mut more.steps {
        step.point.depth *= 4;
        step.total.all.iops *= 2.0;
    }
    run.parts.push(more);
    let page = report::page(&run).expect("a report");
    let tables = page.sections.iter().flat_map(|section| &section.blocks);
    let figures = tables
        .filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None })
        .find(|table| table.caption.contains("Every point"))
        .expect("the figures");
    assert_eq!(figures.rows.len(), 2, "a row for each point");
    assert_ne!(figures.rows[0][2], figures.rows[1][2]);
}

#[test]
fn a_damaged_histogram_is_named() {
    let mut run = run();
    let part = run.parts.iter_mut().find(|part| part.steps.iter().any(|step| !step.cells.is_empty())).expect("a part");
    let name = part.plan.part.clone();
    for step in &mut part.steps {
        for cell in &mut step.cells {
            cell.hdr = "no histogram".into();
        }
    }
    let error = report::page(&run).expect_err("damaged").to_string();
    assert!(error.contains(&name) && error.contains("damaged"), "{error}");
}

#[test]
fn a_run_beside_itself_differs_in_nothing() {
    let names = ["one".to_string(), "other".to_string()];
    let page = report::compare_page(&names, &[run(), run()]);
    let html = page.html();
    assert!(html.contains("0 of them differ"), "no difference");
    assert!(html.contains("the same"));
    assert!(page.charts().count() > 0);
}

#[test]
fn data_of_every_chart_can_be_taken_out() {
    let page = report::page(&run()).expect("a report");
    let json = report::json(&page);
    let charts = json["charts"].as_array().expect("charts");
    assert_eq!(charts.len(), page.charts().count());
    assert!(charts.iter().all(|chart| chart["columns"].as_array().is_some_and(|columns| columns.len() > 1)));
    let directory = tempfile::tempdir().expect("a directory");
    let written = report::write_csv(&page, &directory.path().join("csv")).expect("written");
    assert_eq!(written.len(), charts.len());
    for path in written {
        let text = std::fs::read_to_string(&path).expect("a file");
        let (headings, rows) = chart::DataTable::read_csv(&text).expect("a table");
        assert!(headings.len() > 1 && !rows.is_empty(), "{}", path.display());
    }
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("written");
    let error = report::write_csv(&page, &file).expect_err("no directory").to_string();
    assert!(error.contains("file"), "{error}");
}

/// What stands beside published figures, first measured, then published.
fn beside(run: &Run) -> Vec<[String; 3]> {
    let page = report::page(run).expect("a report");
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let tables = blocks.filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None });
    let rows = tables.filter(|table| table.caption == "Measured beside published").flat_map(|table| &table.rows);
    rows.map(|row| [1, 2, 3].map(|at| row[at].text.clone())).collect()
}

#[test]
fn places_of_a_device_stand_beside_each_other() {
    let mut run = run();
    for part in &mut run.parts {
        let Some(at) = part.steps.iter().position(|step| step.stage == "precondition") else { continue };
        let mut other = part.steps[at].clone();
        (part.steps[at].point.region, other.point.region) = (Some("0%+10%".into()), Some("90%+10%".into()));
        other.step = format!("{}/elsewhere", other.step);
        part.steps.insert(at + 1, other);
    }
    let page = report::page(&run).expect("a report");
    let beside: Vec<_> = page.charts().filter(|chart| chart.sees.contains("places beside each other")).collect();
    assert!(!beside.is_empty(), "the protocol charts something over time");
    for chart in beside {
        let chart::Plot::Lines(series) = &chart.plot else { panic!("lines") };
        // What is drawn of one place ends before the next begins.
        let ends = |one: &chart::Series| one.points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        let begins = |one: &chart::Series| one.points.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
        assert!(series.len() > 1, "{}", chart.title);
        assert!(series.windows(2).all(|pair| ends(&pair[0]) <= begins(&pair[1])), "{}", chart.title);
    }
}

#[test]
fn published_figures_stand_beside_what_was_asked_alike_and_nothing_else() {
    let mut run = run();
    assert_eq!(beside(&run), Vec::<[String; 3]>::new(), "nothing was published of this device");
    for part in &mut run.parts {
        (part.plan.device, part.plan.array) = ("iodrive-duo-640-mlc".into(), Some("both-modules".into()));
    }
    let rows = beside(&run);
    let measured = ["Requests", "27,068\u{a0}IO/s", "42,644\u{a0}IO/s"].map(String::from);
    assert!(rows.contains(&measured), "{rows:?}");
    assert!(rows.iter().any(|[what, ..]| what.contains("at the end of preconditioning")), "{rows:?}");
    let page = report::page(&run).expect("a report");
    let Block::Verdict(close, text) = &page.sections[0].blocks[0] else { panic!("no verdict first") };
    let count = rows.len();
    assert!(text.contains(&format!("Of {count} published figures the median error is ")), "{text}");
    assert!(!close && text.contains("lie within 10 %") && text.contains("Furthest off: "), "{text}");
    assert!(page.html().contains("data-label=\"published\""), "each row is a card on a narrow screen");
    // The same at another depth: nothing was published of that.
    for step in run.parts.iter_mut().flat_map(|part| &mut part.steps) {
        step.point.depth = 8;
    }
    assert_eq!(beside(&run), Vec::<[String; 3]>::new());
}
