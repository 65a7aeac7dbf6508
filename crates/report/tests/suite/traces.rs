//! Pages of traces.

use chart::{Block, Page};
use trace::generate::MailServer;
use trace::info::{Characteriser, Info, Source};
use trace::{Op, Record};

fn info(records: impl IntoIterator<Item = Record>) -> Info {
    let mut characteriser = Characteriser::default();
    records.into_iter().for_each(|record| characteriser.add(&record));
    characteriser.finish(Source {
        path: "/somewhere/a <b> trace.csv".into(),
        format: "msr".into(),
        ..Source::default()
    })
}

fn titles(page: &Page) -> Vec<&str> {
    page.charts().map(|chart| chart.title.as_str()).collect()
}

#[test]
fn a_trace_is_charted_from_every_side() {
    let server = MailServer { bytes: 1 << 30, ..MailServer::default() };
    let answered = |(at, record): (u64, Record)| Record { response_ns: Some(100_000 + at % 1000 * 1000), ..record };
    let info = info((0..).zip(server.requests().expect("sound")).map(answered).take(50_000));
    let page = report::trace_page(&info, "1.2.3");
    let expected = [
        "Sizes of requests",
        "Requests over time",
        "Throughput over time",
        "Burstiness",
        "Response times of the traced device",
        "Requests over the address space",
        "Footprint and working set",
        "Hot spots",
    ];
    assert_eq!(titles(&page), expected);
    for chart in page.charts() {
        assert!(!chart.is_empty() && !chart.sees.is_empty(), "{}", chart.title);
        assert!(chart.context.join(" ").contains("50,000 requests"), "{:?}", chart.context);
    }
    // What the charts show adds up to the trace.
    let column = |title: &str, at: usize| -> f64 {
        let chart = page.charts().find(|chart| chart.title == title).expect(title);
        let chart::Values::Numbers(numbers) = &chart.table().columns[at].values else { panic!("no numbers: {title}") };
        numbers.iter().filter(|value| value.is_finite()).sum()
    };
    let requests = column("Requests over the address space", 1) + column("Requests over the address space", 2);
    assert_eq!(requests, 50_000.0);
    assert!((column("Sizes of requests", 1) + column("Sizes of requests", 2) - 100.0).abs() < 1e-9);
    let a_second = column("Requests over time", 1) + column("Requests over time", 2);
    assert!((a_second * info.timeline.interval_seconds - 50_000.0).abs() < 1e-6);
    let html = page.html();
    assert!(html.contains("a &lt;b&gt; trace.csv") && !html.contains("a <b> trace"), "a name is text");
    assert!(html.contains("vsl 1.2.3"));
}

#[test]
fn a_trace_of_next_to_nothing_has_a_page_too() {
    let one = Record { op: Op::Write, bytes: 4096, ..Record::default() };
    for (records, charts) in [(vec![], 0), (vec![one], 2), (vec![Record { op: Op::Flush, ..Record::default() }], 0)] {
        let page = report::trace_page(&info(records.clone()), "1");
        assert!(page.charts().count() >= charts, "{records:?}: {:?}", titles(&page));
        assert!(page.charts().all(|chart| !chart.is_empty()), "{records:?}");
        let tables = page.sections.iter().flat_map(|section| &section.blocks);
        let tables = tables.filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None });
        for table in tables {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
        }
        assert!(page.html().contains("Trace a &lt;b&gt; trace.csv"));
    }
}
