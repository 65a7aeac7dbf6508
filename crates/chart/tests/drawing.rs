//! Every kind of chart, with data as they should and as they should not be: what comes out is well formed, says what it shows, and
//! asks nothing of anybody else.

use chart::{
    Axis, BarSeries, Block, Cell, Chart, Column, DataTable, Heat, Mark, Note, Page, Plot, Section, Series, Size, Steps,
    Table, Theme, Unit,
};
use proptest::prelude::*;

const SIZES: [Size; 3] = [Size::Narrow, Size::Normal, Size::Wide];

fn chart(id: &str, x: Axis, y: Axis, plot: Plot) -> Chart {
    Chart {
        id: id.into(),
        title: format!("Title of {id} & <others>"),
        sees: "What one sees.".into(),
        context: vec!["device · format".into(), "preconditioned · steady".into()],
        x,
        y,
        plot,
        notes: vec![
            Note::AtX { x: 1.0, text: "here".into() },
            Note::AtY { y: 2.0, text: "limit".into() },
            Note::Span { from: 0.0, to: f64::NAN, text: "window".into() },
        ],
        wide: false,
    }
}

/// A chart of each kind from the same values, wherever they come from.
fn kinds(values: &[f64]) -> Vec<Chart> {
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
    let turned: Vec<(f64, f64)> = values.iter().map(|value| (*value, -value)).collect();
    let names: Vec<String> = (0..values.len()).map(|at| format!("{}T/{}Q", at, at * 2)).collect();
    let count = || Unit::count("IO/s");
    let heat = |columns, rows| {
        let cells = values.chunks(3).map(<[f64]>::to_vec).collect();
        Plot::Heat(Heat { columns, rows, cells, label: "Requests".into(), unit: Unit::Plain, log: true })
    };
    let marks = [Mark::Line, Mark::Marked, Mark::Dots, Mark::Points, Mark::Published, Mark::Dashed];
    let lines = || {
        Plot::Lines(marks.iter().map(|mark| Series::line(format!("{mark:?}"), points.clone()).mark(*mark)).collect())
    };
    vec![
        chart("time", Axis::new("Time", Unit::Elapsed), Axis::new("Rate", count()), lines()),
        chart(
            "band",
            Axis::new("Time", Unit::Elapsed).log2(),
            Axis::new("Latency", Unit::Seconds).log(),
            Plot::Lines(vec![Series::line("mean", points.clone()).band(
                "all",
                values.to_vec(),
                values.iter().rev().copied().collect(),
            )]),
        ),
        chart("load", Axis::named("Load", names.clone()), Axis::new("Latency", Unit::Seconds), lines()),
        chart(
            "cloud",
            Axis::new("Rate", Unit::BytesPerSecond),
            Axis::new("Latency", Unit::Seconds),
            Plot::Lines(vec![Series::line("all", turned)]),
        ),
        chart(
            "bars",
            Axis::named("Load", names.clone()),
            Axis::new("Size", Unit::Bytes),
            Plot::Bars(vec![
                BarSeries { error: values.to_vec(), ..BarSeries::new("measured", values.to_vec()) },
                BarSeries::new("published", values.to_vec()).published_beside(0),
            ]),
        ),
        chart(
            "matrix",
            Axis::named("Mix", ["a", "b", "c"]),
            Axis::named("Size", names),
            heat(Steps::Names, Steps::Names),
        ),
        chart(
            "field",
            Axis::new("Time", Unit::Elapsed),
            Axis::new("Latency", Unit::Seconds).log(),
            heat(Steps::Edges(values.to_vec()), Steps::Edges(vec![1e-6, 1e-5, 1e-4, 1e-3])),
        ),
    ]
}

fn good() -> Vec<Chart> {
    kinds(&[3.0, 1.5, 7.25, 40.0, 12.0, 9.0, 2.0])
}

/// Reads a drawing as XML and checks what every drawing has.
fn check(chart: &Chart, svg: &str) {
    let tree = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{}: {error}\n{svg}", chart.id));
    let root = tree.root_element();
    assert_eq!(root.attribute("role"), Some("img"), "{}", chart.id);
    let labelled = root.attribute("aria-labelledby").expect("a label");
    for (id, tag) in labelled.split(' ').zip(["title", "desc"]) {
        let node = root.children().find(|node| node.attribute("id") == Some(id)).expect("what the label names");
        assert_eq!(node.tag_name().name(), tag);
        assert!(node.text().is_some_and(|text| !text.is_empty()), "{}: {tag} is empty", chart.id);
    }
    for node in tree.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{}: {}={value}", chart.id, attribute.name());
        }
    }
    let ids: Vec<&str> = tree.descendants().filter_map(|node| node.attribute("id")).collect();
    let different: std::collections::HashSet<&&str> = ids.iter().collect();
    assert_eq!(ids.len(), different.len(), "{}: identifiers twice", chart.id);
}

fn page(charts: Vec<Chart>) -> Page {
    Page {
        title: "A report </title><script>alert(1)</script>".into(),
        summary: "About it.".into(),
        caveat: "Scaled 1:64.".into(),
        facts: vec![("Platform".into(), "2 cores".into())],
        sections: vec![Section {
            id: "all of it".into(),
            title: "All of it".into(),
            facts: vec![("Device".into(), "a card".into())],
            blocks: charts
                .into_iter()
                .map(Block::from)
                .chain([Block::Table(Table {
                    caption: "Shaded".into(),
                    columns: vec![Column::text("load"), Column::number("IO/s").under("advertised")],
                    rows: vec![vec![Cell::head("1"), Cell::new("3,881").shaded(0.9)]],
                    ..Table::default()
                })])
                .collect(),
        }],
        made_by: "a test".into(),
    }
}

#[test]
fn drawings_are_well_formed_and_say_what_they_show() {
    for chart in good() {
        for size in SIZES {
            check(&chart, &chart.svg(size));
            check(&chart, &chart.svg_in(size, Theme::Dark));
            assert!(!chart.svg(size).contains("no data"), "{} has data", chart.id);
        }
    }
}

#[test]
fn charts_without_data_say_so_and_none_makes_us_fall() {
    let nothing: [&[f64]; 3] = [&[], &[f64::NAN, f64::NAN, f64::INFINITY], &[f64::NEG_INFINITY]];
    for values in nothing {
        for chart in kinds(values) {
            assert!(chart.is_empty(), "{}", chart.id);
            for size in SIZES {
                let svg = chart.svg(size);
                check(&chart, &svg);
                assert!(svg.contains("no data"), "{}", chart.id);
            }
        }
    }
    let odd: [&[f64]; 6] = [
        &[5.0],
        &[0.0],
        &[f64::MAX, f64::MIN],
        &[f64::MIN_POSITIVE, 1e299],
        &[1e15, 1e15 + 0.25],
        &[-3.0, f64::NAN, -3.0],
    ];
    for values in odd {
        for chart in kinds(values) {
            for size in SIZES {
                check(&chart, &chart.svg(size));
            }
        }
    }
}

#[test]
fn hundreds_of_thousands_of_points_make_a_small_drawing() {
    let points = (0..400_000).map(|at| (f64::from(at), f64::from(at * 31 % 1009))).collect();
    let chart = chart(
        "many",
        Axis::new("Time", Unit::Elapsed),
        Axis::new("", Unit::Plain),
        Plot::Lines(vec![Series::line("", points)]),
    );
    let svg = chart.svg(Size::Normal);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
}

#[test]
fn the_page_asks_nothing_of_anybody() {
    let html = page(good()).html();
    for scheme in ["http:", "https:", "ws:", "wss:", "ftp:"] {
        assert!(!html.contains(&format!("{scheme}//")), "{scheme}");
    }
    for word in ["@import", "<link", "<img", "<iframe", "src=\"", "url(\"", "eval(", "style=\""] {
        assert!(!html.contains(word), "{word}");
    }
    let policy = html
        .split("Content-Security-Policy\" content=\"")
        .nth(1)
        .expect("a policy")
        .split('"')
        .next()
        .expect("its end");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    // What a name says is text, wherever it stands.
    assert!(!html.contains("<script>alert"), "markup from a title");
}

#[test]
fn each_chart_of_a_page_has_its_words_and_its_numbers() {
    let mut charts = good();
    charts.extend(good());
    let count = charts.len();
    let html = page(charts).html();
    let body = html.split("<main>").nth(1).expect("a main part").split("</main>").next().expect("its end");
    let figures: Vec<&str> = body.split("<figure ").skip(1).collect();
    assert_eq!(figures.len(), count);
    let mut ids = std::collections::HashSet::new();
    for figure in figures {
        let (figure, _) = figure.split_once("</figure>").expect("its end");
        let id = figure.split(" id=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id");
        assert!(ids.insert(id.to_string()), "{id} twice");
        assert!(figure.contains("What one sees.") && figure.contains("device · format"), "{id}");
        assert!(figure.contains("<details><summary>Numbers</summary>") && figure.contains("<td"), "{id}");
        for svg in figure.split("<svg ").skip(1) {
            let (svg, _) = svg.split_once("</svg>").expect("its end");
            let title = svg.split_once("<title id=").and_then(|(_, rest)| rest.split('>').nth(1));
            assert!(title.is_some_and(|text| text.starts_with("Title of")), "{id}");
            assert!(svg.contains("<desc id="), "{id}");
            roxmltree::Document::parse(&format!("<svg {svg}</svg>")).unwrap_or_else(|error| panic!("{id}: {error}"));
        }
    }
    assert!(body.contains("class=\"shade sh8 n\""), "shaded cells");
}

#[test]
fn pictures_have_the_size_asked_for_and_are_not_empty() {
    for chart in good() {
        let png = chart.png(Size::Normal, Theme::Light, 1.0).expect("a picture");
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n", "{}", chart.id);
        let width = u32::from_be_bytes(png[16..20].try_into().expect("four bytes"));
        assert_eq!(width, 564, "{}", chart.id);
        let blank =
            Chart { plot: Plot::default(), ..chart.clone() }.png(Size::Normal, Theme::Light, 1.0).expect("a picture");
        assert!(png != blank, "{}", chart.id);
    }
    let error = good()[0].png(Size::Normal, Theme::Light, 1000.0).expect_err("too large");
    assert!(error.to_string().contains("scale of 0.25 to 8"), "{error}");
}

#[test]
fn a_small_chart_is_drawn_like_this() {
    let mut chart = chart(
        "small",
        Axis::named("Queue", ["1", "2", "4"]),
        Axis::new("Reads", Unit::count("IO/s")),
        Plot::Lines(vec![
            Series::line("measured", vec![(0.0, 900.0), (1.0, 1700.0), (2.0, 2400.0)]).mark(Mark::Marked),
        ]),
    );
    chart.notes.clear();
    let svg = chart.svg(Size::Narrow);
    let drawn = svg.split("</style>").nth(1).expect("what follows the styles");
    // One element a line, so that a difference shows.
    assert_eq!(drawn.replace("><", ">\n<").trim(), include_str!("small.svg.txt").trim());
}

proptest! {
    #[test]
    fn a_table_survives_its_way_through_csv(
        values in prop::collection::vec(prop_oneof![any::<f64>(), Just(f64::NAN), -1e6..1e6], 1..40),
        name in "[a-z,\"\n ]{0,12}",
    ) {
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
        let chart = chart("csv", Axis::new("Time", Unit::Elapsed), Axis::new("Rate", Unit::Plain), Plot::Lines(vec![Series::line(format!("a{name}"), points)]));
        let (headings, rows) = DataTable::read_csv(&chart.table().csv()).expect("our own CSV");
        prop_assert_eq!(&headings, &["Time (s)".to_string(), format!("a{name}")]);
        prop_assert_eq!(rows.len(), values.len());
        for (row, value) in rows.iter().zip(&values) {
            if value.is_finite() {
                prop_assert_eq!(row[1].parse::<f64>().expect("a number"), *value);
            } else {
                prop_assert_eq!(&row[1], "");
            }
        }
    }

    #[test]
    fn whatever_the_values_a_drawing_is_well_formed(values in prop::collection::vec(any::<f64>(), 0..12)) {
        for chart in kinds(&values) {
            check(&chart, &chart.svg(Size::Narrow));
        }
    }

    #[test]
    fn linear_ticks_are_round_even_and_inside(low in -1e9..1e9f64, span in 1e-3..1e9f64, most in 2usize..20) {
        let high = low + span;
        let ticks = chart::linear(low, high, most);
        prop_assert!(ticks.len() <= most, "{} of {}", ticks.len(), most);
        prop_assert!(!ticks.is_empty() || most < 4);
        let slack = span * 1e-6;
        prop_assert!(ticks.iter().all(|tick| *tick >= low - slack && *tick <= high + slack));
        for three in ticks.windows(3) {
            prop_assert!(((three[2] - three[1]) - (three[1] - three[0])).abs() <= (three[2] - three[0]) * 1e-6);
        }
        if let [one, other, ..] = ticks[..] {
            let step = other - one;
            let lead = step / 10f64.powf(step.log10().floor());
            prop_assert!([1.0, 2.0, 2.5, 5.0, 10.0].iter().any(|nice| (lead - nice).abs() < 1e-3), "step {}", step);
        }
    }

    #[test]
    fn logarithmic_ticks_rise_and_are_inside(exponent in -9.0..6.0f64, decades in 0.4..12.0f64, most in 2usize..16, base in prop_oneof![Just(2u32), Just(10)]) {
        let (low, high) = (10f64.powf(exponent), 10f64.powf(exponent + decades));
        let ticks = chart::logarithmic(low, high, base, most);
        prop_assert!(ticks.len() <= most, "{} of {}", ticks.len(), most);
        prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(ticks.iter().all(|tick| *tick >= low * 0.999_999 && *tick <= high * 1.000_001));
    }
}
