//! What makes a protocol sensible, whatever the target.

use std::collections::HashSet;

use toml::Spanned;

use super::{ChartKind, Protocol, Role, Stage, Test};
use crate::published;
use crate::workload::{self, Load};

/// Where in the text, and what is wrong there.
type Fault = (usize, String);

impl Protocol {
    /// Checks everything that does not depend on the target.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let at = self.name.span().start;
        let name = self.name();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err((at, format!("name '{name}': expected letters, digits and hyphens, as in \"my-protocol\"")));
        }
        for (what, list) in [("formats", &self.formats), ("arrays", &self.arrays)] {
            if list.get_ref().is_empty() {
                return Err((list.span().start, format!("{what} is empty; expected at least one, or leave it out")));
            }
        }
        for format in self.formats.get_ref() {
            format.parse::<card::Format>().map_err(|problem| (self.formats.span().start, problem))?;
        }
        for array in self.arrays.get_ref() {
            array.parse::<card::Arrangement>().map_err(|problem| (self.arrays.span().start, problem))?;
        }
        if let Some(source) = &self.published {
            known_source(source)?;
        }
        for (what, form) in [("full", &self.full), ("quick", &self.quick)] {
            for (field, times) in [("times", form.times), ("disk_times", form.disk_times.unwrap_or(1.0))] {
                if !(1.0..=1e6).contains(&times) {
                    return Err((at, format!("{what}.{field} = {times}; expected 1 to 1000000")));
                }
            }
            if form.scale == 0 || form.scale > 65_536 {
                return Err((at, format!("{what}.scale = {}; expected 1 to 65536", form.scale)));
            }
            for format in form.formats.iter().flatten() {
                format.parse::<card::Format>().map_err(|problem| (at, format!("{what}.formats: {problem}")))?;
            }
            for array in form.arrays.iter().flatten() {
                array.parse::<card::Arrangement>().map_err(|problem| (at, format!("{what}.arrays: {problem}")))?;
            }
        }
        let rule = &self.steady;
        let sound = |percent: f64| percent > 0.0 && percent <= 100.0;
        if rule.window < 2 || rule.at_most < rule.window || !sound(rule.range_percent) || !sound(rule.slope_percent) {
            return Err((at, "steady: expected a window of 2 rounds or more, at_most not below it, and percentages above 0 and at most 100".into()));
        }
        if self.tests.is_empty() {
            return Err((at, "there is no [[test]]".into()));
        }
        let mut names = HashSet::new();
        for test in &self.tests {
            unique(&test.name, "test", &mut names)?;
            test.check()?;
        }
        self.check_charts()
    }

    fn check_charts(&self) -> Result<(), Fault> {
        for chart in &self.charts {
            let fail = |problem: String| {
                Err((chart.title.span().start, format!("chart '{}': {problem}", chart.title.get_ref())))
            };
            for name in &chart.tests {
                if !self.tests.iter().any(|test| test.name() == name) {
                    return fail(format!("there is no test '{name}'"));
                }
            }
            if chart.kind == ChartKind::Quotients && chart.over.is_none() {
                return fail("quotients need 'over': the device, format, array or driver to compare with".into());
            }
            if let Some(stage) = &chart.stage {
                let mut drawn = self
                    .tests
                    .iter()
                    .filter(|test| chart.tests.is_empty() || chart.tests.iter().any(|name| name == test.name()));
                if !drawn.any(|test| test.stages.iter().any(|it| it.name() == stage) || test.prepared_as.is_some()) {
                    return fail(format!("no test of it has a stage '{stage}'"));
                }
            }
        }
        Ok(())
    }
}

/// Each name once, and one that fits a path.
fn unique(name: &Spanned<String>, what: &str, names: &mut HashSet<String>) -> Result<(), Fault> {
    let text = name.get_ref();
    let at = name.span().start;
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err((at, format!("{what} '{text}': expected letters, digits and hyphens")));
    }
    if !names.insert(text.clone()) {
        return Err((at, format!("{what} '{text}' is there twice; expected a name of its own for each")));
    }
    Ok(())
}

fn known_source(source: &Spanned<String>) -> Result<(), Fault> {
    let sources = published::sources().map_err(|error| (source.span().start, error.to_string()))?;
    if sources.iter().any(|it| it.name == *source.get_ref()) {
        return Ok(());
    }
    let known: Vec<&str> = sources.iter().map(|it| it.name.as_str()).collect();
    let text = source.get_ref();
    Err((source.span().start, format!("no published source is called '{text}'; there are: {}", known.join(", "))))
}

/// The first measured load of a named workload.
pub(crate) fn named_load(name: &Spanned<String>) -> Result<Load, Fault> {
    let fail = |problem: String| (name.span().start, problem);
    let text = name.get_ref();
    let workload = match workload::find(text) {
        Some(workload) => workload.map_err(|error| fail(error.to_string()))?,
        None => return Err(fail(format!("no workload is called '{text}'; `vsl sim --list` lists them"))),
    };
    let mut measured = workload.phases.into_iter().filter(|phase| phase.measured);
    let load = measured.find_map(|phase| phase.loads.into_iter().next());
    load.ok_or_else(|| fail(format!("workload '{text}' measures no load")))
}

impl Test {
    fn check(&self) -> Result<(), Fault> {
        let at = self.name.span().start;
        if self.stages.is_empty() {
            return Err((at, format!("test '{}' has no [[test.stage]]", self.name())));
        }
        if let Some(source) = &self.prepared_as {
            known_source(source)?;
        }
        let mut names = HashSet::new();
        for stage in &self.stages {
            unique(&stage.name, "stage", &mut names)?;
            stage.check(self).map_err(|(at, problem)| {
                (at, format!("test '{}', stage '{}': {problem}", self.name(), stage.name()))
            })?;
        }
        if !self.stages.iter().any(|stage| stage.role == Role::Measure) {
            return Err((
                at,
                format!("test '{}' measures nothing; expected a stage with role = \"measure\"", self.name()),
            ));
        }
        Ok(())
    }

    /// The load that a stage begins from, before its own settings.
    pub(crate) fn base(&self, stage: &Stage) -> Result<Option<Load>, Fault> {
        match (&stage.load, &stage.workload, &self.load, &self.workload) {
            (Some(load), ..) | (None, None, Some(load), _) => Ok(Some(load.clone())),
            (None, Some(name), ..) | (None, None, None, Some(name)) => named_load(name).map(Some),
            (None, None, None, None) => Ok(None),
        }
    }
}

impl Stage {
    /// What a trace decides must not be said beside it.
    fn check_beside_trace(&self) -> Result<(), String> {
        let quick = self.quick.as_ref();
        let varies = [Some(&self.vary), quick.and_then(|quick| quick.vary.as_ref())];
        let varied = varies.into_iter().flatten().any(|vary| {
            let loads = [vary.region.len(), vary.access.len(), vary.read_percent.len(), vary.size.len()];
            loads.iter().any(|count| *count > 0) || !vary.threads.is_empty()
        });
        let said = [
            ("workload", self.workload.is_some()),
            ("load", self.load.is_some()),
            ("mirror", self.mirror),
            ("threads", self.threads.is_some()),
            ("size", self.size.is_some()),
            ("read_percent", self.read_percent.is_some()),
            ("access", self.access.is_some()),
            ("streams", self.streams.is_some()),
            ("region", self.region.is_some()),
            ("rate", self.rate.is_some()),
            ("written", self.written.is_some() || quick.is_some_and(|quick| quick.written.is_some())),
            ("vary, but of pause and depth", varied),
        ];
        match said.iter().find(|(_, said)| *said) {
            Some((name, _)) => Err(format!("the requests come from a trace; beside it there is no {name}")),
            None => Ok(()),
        }
    }

    fn check(&self, test: &Test) -> Result<(), Fault> {
        let at = self.name.span().start;
        let fail = |problem: &str| Err((at, problem.to_string()));
        let ends = [self.duration.is_some(), self.written.is_some()];
        if self.role == Role::Idle {
            return if self.duration.is_some() {
                Ok(())
            } else {
                fail("it is idle, and nothing ends it; expected duration")
            };
        }
        if let Some(played) = &self.trace {
            played.check().map_err(|problem| (at, problem))?;
            self.check_beside_trace().map_err(|problem| (at, problem))?;
        }
        let base = test.base(self)?;
        if base.is_none() && self.trace.is_none() && self.size.is_none() && self.vary.size.is_empty() {
            return fail(
                "it has no load; expected workload or load here or in the test, or size and read_percent, or trace",
            );
        }
        if !ends.contains(&true) && self.trace.is_none() && base.as_ref().is_none_or(|load| load.thread_bytes.is_none())
        {
            return fail("nothing ends it; expected duration or written");
        }
        if self.duration.is_some_and(|time| time.nanos() == 0) {
            return fail("duration = 0 would end it before it began");
        }
        for (name, value) in [("written", self.written), ("until_written", self.until_written)] {
            if value.is_some_and(|times| !(times > 0.0 && times <= 10_000.0)) {
                return Err((
                    at,
                    format!("{name} is how many times the capacity; expected more than 0 and at most 10000"),
                ));
            }
        }
        if self.rounds == Some(0) || self.intervals == Some(0) {
            return fail("rounds and intervals: expected 1 or more");
        }
        if (!self.steady.is_empty() || self.until_written.is_some()) && self.role == Role::Fill {
            return fail("a fill is done once; steady and until_written are for rounds");
        }
        // Every combination makes a sound load, and what is tracked is among them.
        let loads = crate::run::loads(test, self, &self.vary).map_err(|problem| (at, problem))?;
        for tracked in &self.steady {
            if !loads.iter().any(|load| crate::run::is_tracked(tracked, load)) {
                return fail("steady names a size or read_percent that no step of it has");
            }
        }
        if let Some(vary) = self.quick.as_ref().and_then(|quick| quick.vary.as_ref()) {
            crate::run::loads(test, self, vary).map_err(|problem| (at, problem))?;
        }
        Ok(())
    }
}
