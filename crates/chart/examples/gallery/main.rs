//! Every kind of chart with data as they come, on one page: `cargo run -p openvsl-chart --example gallery -- OUT.html [PNG-DIRECTORY]`.

mod data;

use std::error::Error;
use std::path::Path;

use chart::{
    Axis, BarSeries, Block, Cell, Chart, Column, Heat, Mark, Note, Page, Plot, Section, Series, Size, Steps, Table,
    Theme, Unit,
};
use data::Noise;

fn context() -> Vec<String> {
    vec![
        "Example device 640 GB · stock format · virtual, scaled 1:64".to_string(),
        "Preconditioned 6 h with the same workload at 16T/16Q · steady after round 7".to_string(),
    ]
}

fn iops_over_time(noise: &mut Noise) -> Chart {
    let points = |start: f64, end: f64, fall: f64, noise: &mut Noise| -> Vec<(f64, f64)> {
        (0..3600)
            .map(|at| {
                let time = f64::from(at) * 6.0;
                let level = end + (start - end) / (1.0 + ((time - fall) / 400.0).exp());
                (time, level * (1.0 + 0.04 * noise.normal()))
            })
            .collect()
    };
    Chart {
        id: "iops-over-time".into(),
        title: "4K random write: IOPS over preconditioning".into(),
        sees:
            "How many writes a second the device takes while it is filled and then overwritten at random for six hours."
                .into(),
        context: context(),
        x: Axis::new("Time", Unit::Elapsed),
        y: Axis::new("Writes", Unit::count("IO/s")),
        plot: Plot::Lines(vec![
            Series::line("stock format", points(182_000.0, 41_000.0, 2600.0, noise)),
            Series::line("high-performance format", points(190_000.0, 118_000.0, 3900.0, noise)),
            Series::line("published, stock", vec![(21_000.0, 39_500.0)]).mark(Mark::Published).hue(0),
            Series::line("published, high performance", vec![(21_000.0, 121_000.0)]).mark(Mark::Published).hue(1),
        ]),
        notes: vec![Note::Span { from: 18_000.0, to: 21_594.0, text: "steady-state window".into() }],
        wide: true,
    }
}

fn latency_over_time(noise: &mut Noise) -> Chart {
    let mut mean = Vec::new();
    let (mut low, mut high, mut worst) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..1200 {
        let time = f64::from(at);
        let level = if time < 300.0 { 1.4e-3 } else { 1.4e-3 + 4.6e-3 * (1.0 - (-(time - 300.0) / 200.0).exp()) };
        let value = level * (1.0 + 0.05 * noise.normal());
        mean.push((time, value));
        low.push(value * 0.55);
        high.push(value * (2.4 + 0.3 * noise.normal().abs()));
        worst.push((time, value * (6.0 + 6.0 * noise.unit().powi(3) * 4.0)));
    }
    Chart {
        id: "latency-over-time".into(),
        title: "8K 70/30: latency over time".into(),
        sees: "The mean of each second, the range that holds all but the slowest one in a thousand, and the slowest request.".into(),
        context: context(),
        x: Axis::new("Time", Unit::Elapsed),
        y: Axis::new("Latency", Unit::Seconds).log(),
        plot: Plot::Lines(vec![
            Series::line("mean", mean).band("median to 99.9 %", low, high),
            Series::line("maximum of each second", worst).mark(Mark::Dots),
        ]),
        ..Chart::default()
    }
}

fn latency_against_load() -> Chart {
    let threads = [2, 4, 8, 16];
    let pairs: Vec<(i32, i32)> = threads.iter().flat_map(|t| threads.iter().map(move |q| (*t, *q))).collect();
    let names = pairs.iter().map(|(t, q)| format!("{t}T/{q}Q"));
    let line = |scale: f64| -> Vec<(f64, f64)> {
        pairs.iter().enumerate().map(|(at, (t, q))| (at as f64, 60e-6 + f64::from(t * q) / scale)).collect()
    };
    Chart {
        id: "latency-against-load".into(),
        title: "File server: average latency against load".into(),
        sees: "How long a request takes on average the more of them are outstanding, threads times queue.".into(),
        context: context(),
        x: Axis::named("Threads and queue", names),
        y: Axis::new("Average latency", Unit::Seconds),
        plot: Plot::Lines(vec![
            Series::line("stock", line(38_000.0)).mark(Mark::Marked),
            Series::line("high performance", line(61_000.0)).mark(Mark::Marked),
            Series::line("single module", line(22_000.0)).mark(Mark::Marked),
            Series::line("published, stock", vec![(0.0, 0.16e-3), (15.0, 6.4e-3)]).mark(Mark::Published).hue(0),
        ]),
        ..Chart::default()
    }
}

fn iops_against_depth() -> Chart {
    let line = |most: f64, knee: f64| -> Vec<(f64, f64)> {
        (0..10).map(|power| f64::from(1 << power)).map(|depth| (depth, most * depth / (depth + knee))).collect()
    };
    Chart {
        id: "iops-against-depth".into(),
        title: "4K random: IOPS against queue depth".into(),
        sees: "How many requests a second are served as more of them are outstanding at once.".into(),
        context: context(),
        x: Axis::new("Outstanding requests", Unit::Plain).log2(),
        y: Axis::new("Requests", Unit::count("IO/s")),
        plot: Plot::Lines(vec![
            Series::line("read", line(196_000.0, 17.0)).mark(Mark::Marked),
            Series::line("write", line(140_000.0, 4.0)).mark(Mark::Marked),
        ]),
        ..Chart::default()
    }
}

fn bars() -> Chart {
    Chart {
        id: "measured-and-published".into(),
        title: "Random 8 KB, 67 % read: measured and published".into(),
        sees: "Transactions a second at three loads, and what the test report of 2013 printed.".into(),
        context: context(),
        x: Axis::named("Outstanding requests", ["1", "16", "512"]),
        y: Axis::new("Transactions", Unit::count("IO/s")),
        plot: Plot::Bars(vec![
            BarSeries {
                error: vec![90.0, 400.0, 900.0],
                ..BarSeries::new("advertised capacity", vec![3990.0, 14_120.0, 20_800.0])
            },
            BarSeries::new("published", vec![3881.0, 14_256.0, 21_327.0]).published_beside(0),
            BarSeries::new("improved write", vec![4310.0, 15_400.0, 28_100.0]),
            BarSeries::new("published", vec![4265.0, 15_159.0, 28_751.0]).published_beside(2),
        ]),
        ..Chart::default()
    }
}

fn many_bars() -> Chart {
    let names = ["512 B", "1 KiB", "2 KiB", "4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB", "1,024 KiB"];
    let values =
        |most: f64| names.iter().enumerate().map(|(at, _)| most / (1.0 + 0.6 * (at as f64).powf(1.6))).collect();
    Chart {
        id: "mixes".into(),
        title: "IOPS by block size and mix".into(),
        sees: "Requests a second for each block size, a bar for each share of reads.".into(),
        context: context(),
        x: Axis::named("Block size", names),
        y: Axis::new("Requests", Unit::count("IO/s")),
        plot: Plot::Bars(
            [(100, 196e3), (95, 170e3), (65, 120e3), (50, 105e3), (35, 96e3), (5, 90e3), (0, 88e3)]
                .map(|(mix, most)| BarSeries::new(format!("{mix} % read"), values(most)))
                .to_vec(),
        ),
        wide: true,
        ..Chart::default()
    }
}

fn exceedance() -> Chart {
    let line = |median: f64, tail: f64| -> Vec<(f64, f64)> {
        (0..=50)
            .map(|at| 10f64.powf(2.0 - f64::from(at) * 0.14))
            .map(|percent| (median * (1.0 + (100.0 / percent).powf(tail) / 4.0), percent))
            .collect()
    };
    Chart {
        id: "exceedance".into(),
        title: "4K random read: how many requests take longer".into(),
        sees: "For each latency the share of requests that took longer; the further right a line ends, the worse the slowest.".into(),
        context: context(),
        x: Axis::new("Latency", Unit::Seconds).log(),
        y: Axis::new("Requests that take longer", Unit::Percent).log(),
        plot: Plot::Lines(vec![
            Series::line("1 outstanding", line(52e-6, 0.28)),
            Series::line("16 outstanding", line(140e-6, 0.36)),
            Series::line("256 outstanding", line(1.3e-3, 0.24)),
        ]),
        notes: vec![Note::AtY { y: 0.1, text: "99.9 %".into() }, Note::AtY { y: 0.001, text: "99.999 %".into() }],
        ..Chart::default()
    }
}

fn histogram(noise: &mut Noise) -> Chart {
    let rows: Vec<f64> = (0..=60).map(|row| 50e-6 * 10f64.powf(f64::from(row) / 15.0)).collect();
    let columns: Vec<f64> = (0..=180).map(|column| f64::from(column) * 10.0).collect();
    let mut cells = vec![vec![f64::NAN; 180]; 60];
    let levels = (0..180).map(|column| 18.0 + 9.0 * (1.0 - (-f64::max(f64::from(column) - 50.0, 0.0) / 25.0).exp()));
    for (column, level) in levels.enumerate() {
        for _ in 0..3000 {
            let spread = if noise.unit() < 0.03 { 9.0 } else { 1.6 };
            let row = (level + noise.normal() * spread).clamp(0.0, 59.0) as usize;
            let cell = &mut cells[row][column];
            *cell = if cell.is_nan() { 40.0 } else { *cell + 40.0 };
        }
    }
    Chart {
        id: "histogram-over-time".into(),
        title: "4K random write: every latency over time".into(),
        sees: "How many requests took how long in each ten seconds: dark is many, a second dark band is a second way of being slow.".into(),
        context: context(),
        x: Axis::new("Time", Unit::Elapsed),
        y: Axis::new("Latency", Unit::Seconds).log(),
        plot: Plot::Heat(Heat {
            columns: Steps::Edges(columns),
            rows: Steps::Edges(rows),
            cells,
            label: "Requests".into(),
            unit: Unit::Plain,
            log: true,
        }),
        wide: true,
        ..Chart::default()
    }
}

fn matrix() -> Chart {
    let mixes = ["0/100", "5/95", "35/65", "50/50", "65/35", "95/5", "100/0"];
    let sizes = ["0.5K", "4K", "8K", "16K", "32K", "64K", "128K", "1024K"];
    let cells = (0..sizes.len())
        .map(|size| {
            (0..mixes.len())
                .map(|mix| {
                    (88e3 + 16e3 * mix as f64 + 900.0 * (mix as f64).powi(3)) / (1.0 + 0.7 * (size as f64).powf(1.9))
                })
                .collect()
        })
        .collect();
    Chart {
        id: "mix-and-size".into(),
        title: "IOPS by mix and block size".into(),
        sees: "Requests a second in steady state for each block size and share of reads.".into(),
        context: context(),
        x: Axis::named("Read/write mix (%)", mixes),
        y: Axis::named("Block size", sizes),
        plot: Plot::Heat(Heat {
            columns: Steps::Names,
            rows: Steps::Names,
            cells,
            label: "Requests".into(),
            unit: Unit::count("IO/s"),
            log: true,
        }),
        ..Chart::default()
    }
}

fn scatter(noise: &mut Noise) -> Chart {
    let cloud = |most: f64, noise: &mut Noise| -> Vec<(f64, f64)> {
        (0..240)
            .map(|_| {
                let iops = most * (0.2 + 0.75 * noise.unit());
                (iops, 80e-6 / (1.02 - iops / most) * (1.0 + 0.1 * noise.normal()))
            })
            .collect()
    };
    Chart {
        id: "latency-and-iops".into(),
        title: "Latency against IOPS".into(),
        sees: "Each dot is one second: how many requests were served, and how long they took on average.".into(),
        context: context(),
        x: Axis::new("Requests", Unit::count("IO/s")),
        y: Axis::new("Average latency", Unit::Seconds),
        plot: Plot::Lines(vec![
            Series::line("stock", cloud(120_000.0, noise)).mark(Mark::Dots),
            Series::line("high performance", cloud(190_000.0, noise)).mark(Mark::Dots),
        ]),
        ..Chart::default()
    }
}

fn window() -> Chart {
    let rounds = [61_200.0, 48_000.0, 42_900.0, 41_800.0, 41_350.0, 41_020.0, 40_700.0, 40_910.0];
    let points: Vec<(f64, f64)> = rounds.iter().enumerate().map(|(at, value)| (at as f64 + 1.0, *value)).collect();
    let mean = rounds[3..].iter().sum::<f64>() / 5.0;
    let flat = |share: f64| vec![(4.0, mean * share), (8.0, mean * share)];
    Chart {
        id: "window".into(),
        title: "Steady-state window, 4K random write".into(),
        sees:
            "The five rounds that count, within a tenth of their mean on either side, and the line fitted through them."
                .into(),
        context: context(),
        x: Axis::new("Round", Unit::Plain),
        y: Axis::new("Writes", Unit::count("IO/s")).from_data(),
        plot: Plot::Lines(vec![
            Series::line("rounds", points).mark(Mark::Marked),
            Series::line("mean of the window", flat(1.0)).mark(Mark::Dashed),
            Series::line("110 % and 90 % of it", flat(1.1)).mark(Mark::Dashed).hue(6),
            Series::line("", flat(0.9)).mark(Mark::Dashed).hue(6),
            Series::line("fit", vec![(4.0, 41_700.0), (8.0, 40_600.0)]).mark(Mark::Dashed).hue(2),
        ]),
        notes: vec![Note::Span { from: 4.0, to: 8.0, text: "measurement window".into() }],
        ..Chart::default()
    }
}

fn shaded() -> Table {
    let formats = ["advertised", "maximum", "improved write", "maximum write"];
    let loads = [1, 3, 8, 16, 32, 64, 128, 256, 512];
    let mut columns = vec![Column::number("Outstanding")];
    columns.extend(formats.map(|format| Column::number("IO/s").under(format)));
    let rows = loads.iter().map(|load| {
        let mut row = vec![Cell::head(load.to_string())];
        row.extend((0..4).map(|format| {
            let value = 21_000.0 * (1.0 + 0.2 * f64::from(format)) * f64::from(*load) / (f64::from(*load) + 6.0);
            Cell::new(format!("{value:.0}")).shaded(value / 34_000.0)
        }));
        row
    });
    Table {
        caption: "Database profile: transactions by format and load".into(),
        columns,
        rows: rows.collect(),
        ..Table::default()
    }
}

fn page() -> Page {
    let noise = &mut Noise::new(7);
    let facts = |round: &str| {
        vec![
            ("Platform".to_string(), "2 cores, Linux 6.1".to_string()),
            ("Device".to_string(), "Example device 640 GB, stock format".to_string()),
            ("Set-up".to_string(), "purged by format; filled once in order".to_string()),
            ("Parameters".to_string(), "16 threads x 16 outstanding, random data, full range".to_string()),
            ("Steady state".to_string(), round.to_string()),
        ]
    };
    let section = |title: &str, blocks: Vec<Block>| Section {
        id: title.to_lowercase(),
        title: title.to_string(),
        facts: facts("rounds 4 to 8 of 8"),
        blocks,
    };
    Page {
        title: "Gallery of charts".to_string(),
        summary: "Every kind of chart with made-up data as they come from a flash card.".to_string(),
        caveat: "Made-up data: these charts show how charts look.".to_string(),
        facts: vec![("Made for".to_string(), "looking at".to_string())],
        sections: vec![
            section(
                "Over time",
                vec![
                    Block::Verdict(true, "Steady: excursion 4.1 % of 20 %, slope 2.7 % of 10 %.".to_string()),
                    iops_over_time(noise).into(),
                    latency_over_time(noise).into(),
                    window().into(),
                    histogram(noise).into(),
                ],
            ),
            section(
                "Against load",
                vec![
                    latency_against_load().into(),
                    iops_against_depth().into(),
                    scatter(noise).into(),
                    exceedance().into(),
                ],
            ),
            section(
                "Comparisons",
                vec![
                    Block::Verdict(false, "Not steady after 25 rounds: excursion 31 % of 20 %.".to_string()),
                    bars().into(),
                    matrix().into(),
                    many_bars().into(),
                    Block::Heading("Tables".to_string()),
                    Block::Table(shaded()),
                    Block::Text("A chart without data says so:".to_string()),
                    Chart {
                        id: "none".into(),
                        title: "Nothing measured".into(),
                        sees: "What a chart without data looks like.".into(),
                        context: context(),
                        ..Chart::default()
                    }
                    .into(),
                ],
            ),
        ],
        made_by: "OpenVSL".to_string(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("expected where to write the page: gallery OUT.html [PNG-DIRECTORY]")?;
    let page = page();
    let html = page.html();
    std::fs::write(&out, &html)?;
    println!("{out}: {} bytes, {} charts", html.len(), page.charts().count());
    if let Some(directory) = arguments.next() {
        for chart in page.charts() {
            for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
                let path = Path::new(&directory).join(format!("{}-{name}.png", chart.key()));
                let size = if chart.wide { Size::Wide } else { Size::Normal };
                std::fs::write(&path, chart.png(size, theme, 1.5)?)?;
            }
        }
    }
    Ok(())
}
