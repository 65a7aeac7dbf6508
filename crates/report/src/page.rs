//! The report of a run.

use chart::{Block, Page, Section};
use lab::protocol::{ChartKind, Role};
use lab::run::Run;

use crate::ReportError;
use crate::charts;
use crate::context;
use crate::glance;
use crate::published::rows;
use crate::view::{MANY, View, distinct, views};

/// Makes the report of a run, finished or not.
///
/// # Errors
/// A histogram of the journal is damaged.
pub fn page(run: &Run) -> Result<Page, ReportError> {
    let rows = rows()?;
    let views = views(run);
    let mut sections = vec![Section {
        id: "at-a-glance".into(),
        title: "At a glance".into(),
        facts: Vec::new(),
        blocks: glance::blocks(run, &views, &rows)?,
    }];
    for asked in run.protocol.charts.iter().filter(|asked| charts::is_of_all(asked.kind)) {
        sections[0].blocks.extend(charts::of_all(asked, &views, &rows)?);
    }
    for view in &views {
        sections.push(section(view, run, &rows)?);
    }
    sections.push(how(run));
    let header = &run.header;
    let caveat = if header.differs.is_empty() {
        String::new()
    } else {
        format!("{} form, not as published: {}.", crate::metric::capital(&header.form), header.differs)
    };
    let page = Page {
        title: format!("{}: {}", run.protocol.title, devices(run).join(", ")),
        summary: format!(
            "Follows {}.{}",
            run.protocol.follows,
            if run.finished { "" } else { " The run is not finished." }
        ),
        caveat,
        facts: vec![
            ("Platform".into(), context::platform(header)),
            ("Begun".into(), header.started.clone()),
            ("Form".into(), header.form.clone()),
            ("Target".into(), header.options.target.clone()),
        ],
        sections,
        made_by: format!("Made by OpenVSL, vsl {}", header.environment.vsl),
    };
    Ok(page.with_keys())
}

fn devices(run: &Run) -> Vec<String> {
    let product = |part: &lab::run::PartResults| Some(part.begin.as_ref()?.machine.product.clone());
    let products = distinct(run.parts.iter().filter_map(product));
    if products.is_empty() { run.header.options.devices.clone() } else { products }
}

fn section(view: &View, run: &Run, rows: &[lab::published::Row]) -> Result<Section, ReportError> {
    let mut blocks = glance::verdicts(view);
    let asked: Vec<_> = run.protocol.charts.iter().filter(|asked| charts::wants(asked, view)).collect();
    for asked in asked.iter().filter(|asked| !charts::is_of_all(asked.kind)) {
        blocks.extend(charts::of_test(asked, view, rows)?);
    }
    let has = |kind: ChartKind| asked.iter().any(|asked| asked.kind == kind);
    // Charts of single variants: not for dozens of them, nor where each point was prepared anew.
    let single = view.variants.len() <= MANY && !view.test.each_anew;
    if let Some(stage) = longest(view).filter(|_| single) {
        let mut own = charts::with_band(view, &stage)?;
        if !has(ChartKind::LatencyHeatMap) {
            own.extend(charts::field(view, Some(&stage))?);
        }
        let amplification =
            asked.iter().any(|asked| asked.metrics.contains(&lab::protocol::Metric::WriteAmplification));
        if !amplification {
            own.extend(charts::amplification(view, &stage)?);
        }
        blocks.extend(own.into_iter().filter(|chart| !chart.is_empty()).map(Block::from));
    }
    if !has(ChartKind::Exceedance) {
        blocks.extend(charts::exceedances(view, None)?.into_iter().filter(|chart| !chart.is_empty()).map(Block::from));
    }
    if !has(ChartKind::SteadyWindow) && single {
        for variant in &view.variants {
            let verdicts = variant.part().verdicts.iter();
            blocks.extend(verdicts.filter_map(|verdict| charts::window_chart(view, variant, verdict)).map(Block::from));
        }
    }
    blocks.extend(charts::window_table(view).map(Block::Table));
    blocks.extend(glance::figures(view)?.map(Block::Table));
    Ok(Section {
        id: view.test.name().to_string(),
        title: view.test.title.clone(),
        facts: context::facts(view),
        blocks,
    })
}

/// The stage whose course is worth seeing: the one that took longest, with all that was asked the same.
fn longest(view: &View) -> Option<String> {
    let steps = view.variants[0].steps().filter(|step| step.role != Role::Fill);
    let steps: Vec<_> = steps.collect();
    let stages = distinct(steps.iter().map(|step| step.stage.clone()));
    let uniform = |stage: &String| {
        distinct(steps.iter().filter(|step| step.stage == *stage).map(|step| crate::view::key(step))).len() == 1
    };
    let course = |stage: &String| {
        steps.iter().filter(|step| step.stage == *stage).map(|step| step.series.len()).sum::<usize>() > 3
    };
    let seconds =
        |stage: &String| -> f64 { steps.iter().filter(|step| step.stage == *stage).map(|step| step.seconds).sum() };
    stages
        .into_iter()
        .filter(|stage| uniform(stage) && course(stage))
        .max_by(|one, other| seconds(one).total_cmp(&seconds(other)))
}

/// What is needed to do it again, and to know what figures mean.
fn how(run: &Run) -> Section {
    let header = &run.header;
    let mut blocks = vec![
        Block::Text(format!("Command: {}", header.command.join(" "))),
        Block::Text(format!("Protocol: {}, in the run's directory as protocol.toml. Steady state: {}.", run.protocol.name(), run.protocol.steady.text())),
        Block::Text(
            "Latencies are kept as histograms with three digits for each interval, kind and size, and added up without loss; percentiles come from these histograms only. \
             A percentile is shown when at least ten requests lie beyond it. Intervals written with ± hold the mean over repeats with 95 % confidence."
                .into(),
        ),
    ];
    if !run.protocol.assumes.is_empty() {
        blocks.insert(1, Block::Text(format!("Assumed: {}", run.protocol.assumes)));
    }
    if let Some(source) = &run.protocol.published {
        blocks.push(Block::Text(format!(
            "Published figures are those of {}; hollow diamonds and bars are theirs.",
            source.get_ref()
        )));
    }
    Section { id: "how".into(), title: "How this was measured".into(), facts: Vec::new(), blocks }
}
