//! A run by its tests, and each test by what it was done on.

use lab::protocol::{Role, Test};
use lab::run::{PartResults, Run, Step};

/// A test of a run that something is known of.
pub(crate) struct View<'a> {
    pub(crate) run: &'a Run,
    pub(crate) test: &'a Test,
    /// Devices, formats and arrangements that it was done on, in the order of the plan.
    pub(crate) variants: Vec<Variant<'a>>,
}

/// One device in one format and arrangement.
pub(crate) struct Variant<'a> {
    /// What tells it from the other variants of the run; empty where there is only one.
    pub(crate) name: String,
    /// Device, format, arrangement, write cache or cache in front, and driver, as far as each differs within the run.
    pub(crate) words: [String; 5],
    /// Its parts by repeat: one each, or one for each point where each has a part of its own.
    pub(crate) repeats: Vec<Vec<&'a PartResults>>,
}

/// The tests of a run with steps in them.
pub(crate) fn views(run: &Run) -> Vec<View<'_>> {
    let tests = run.protocol.tests.iter();
    tests
        .map(|test| View { run, test, variants: variants(run, test.name()) })
        .filter(|view| !view.variants.is_empty())
        .collect()
}

/// What tells parts apart.
fn identity(part: &PartResults) -> [String; 5] {
    let plan = &part.plan;
    let own = plan.write_cache.map(|on| if on { "write cache on" } else { "write cache off" });
    let cache = [own.unwrap_or_default().into(), plan.cache.clone().unwrap_or_default()];
    [
        plan.device.clone(),
        plan.format.clone().unwrap_or_default(),
        plan.array.clone().unwrap_or_default(),
        joined(&cache),
        plan.driver.clone().unwrap_or_default(),
    ]
}

fn variants<'a>(run: &'a Run, test: &str) -> Vec<Variant<'a>> {
    // A name holds only what differs somewhere in the run, so that a colour means the same in every chart.
    let all: Vec<[String; 5]> = run.parts.iter().map(identity).collect();
    let differs: Vec<bool> = (0..5).map(|at| all.iter().any(|one| one[at] != all[0][at])).collect();
    let mut found: Vec<([String; 5], Variant<'a>)> = Vec::new();
    for part in run.parts.iter().filter(|part| part.plan.test == test && !part.steps.is_empty()) {
        let key = identity(part);
        if !found.iter().any(|(known, _)| *known == key) {
            let words: [String; 5] =
                std::array::from_fn(|at| if differs[at] { key[at].clone() } else { String::new() });
            found.push((key.clone(), Variant { name: joined(&words), words, repeats: Vec::new() }));
        }
        let Some((_, variant)) = found.iter_mut().find(|(known, _)| *known == key) else { continue };
        let repeat = part.plan.repeat as usize;
        match variant.repeats.get_mut(repeat) {
            Some(parts) => parts.push(part),
            // A repeat without steps leaves no empty place.
            None => variant.repeats.push(vec![part]),
        }
    }
    found.into_iter().map(|(_, variant)| variant).collect()
}

/// Words that are there, in a row.
pub(crate) fn joined(words: &[String]) -> String {
    words.iter().filter(|word| !word.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
}

/// Series that one chart can show and one can still tell apart.
pub(crate) const SERIES: usize = 8;

/// Variants of which each still gets charts of its own beside those that the protocol asks for.
pub(crate) const MANY: usize = 4;

/// Variants for one chart, and what they have in common.
pub(crate) struct Group<'v, 'a> {
    /// What tells this group from others; empty where there is one.
    pub(crate) name: String,
    /// Each with its name within the group.
    pub(crate) members: Vec<(String, &'v Variant<'a>)>,
}

/// The variants of a test in groups that fit into a chart: all of them, or one group for each device and arrangement, with its
/// formats as series.
pub(crate) fn groups<'v, 'a>(variants: &'v [Variant<'a>]) -> Vec<Group<'v, 'a>> {
    if variants.len() <= SERIES {
        let members = variants.iter().map(|variant| (variant.name.clone(), variant)).collect();
        return vec![Group { name: String::new(), members }];
    }
    let common = |variant: &Variant| {
        let [device, _, array, cache, driver] = &variant.words;
        joined(&[device.clone(), array.clone(), cache.clone(), driver.clone()])
    };
    let names = distinct(variants.iter().map(common));
    let members = |name: &String| {
        let members = variants.iter().filter(|variant| common(variant) == *name);
        members.map(|variant| (variant.words[1].clone(), variant)).collect()
    };
    names.iter().map(|name| Group { name: name.clone(), members: members(name) }).collect()
}

impl<'a> Variant<'a> {
    /// The variant that differs from this one in nothing but that it has `over`: what this one is compared with.
    pub(crate) fn base<'v>(&self, over: &str, all: &'v [Variant<'a>]) -> Option<&'v Variant<'a>> {
        let is_base = |other: &&Variant| {
            let mut differing = (0..self.words.len()).filter(|at| self.words[*at] != other.words[*at]);
            let one = differing.next();
            one.is_some_and(|at| other.words[at] == over) && differing.next().is_none()
        };
        all.iter().find(is_base)
    }

    /// Steps of the first part of the first repeat: what is shown over time. Where each point has a part, it is that of the first.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &'a Step> + use<'_, 'a> {
        self.part().steps.iter()
    }

    /// Steps of a stage of that part, in order; those that measure where none is named.
    pub(crate) fn stage(&self, stage: Option<&str>) -> Vec<&'a Step> {
        self.steps().filter(|step| stage.map_or(step.role == Role::Measure, |name| step.stage == name)).collect()
    }

    /// The first part, which says what the device is.
    pub(crate) fn part(&self) -> &'a PartResults {
        // A variant is made of at least one part.
        self.repeats[0][0]
    }
}

/// A step's name without its round.
pub(crate) fn key(step: &Step) -> String {
    step.step.split('/').filter(|word| !word.starts_with("round-")).collect::<Vec<_>>().join("/")
}

/// Values in the order in which they first appear.
pub(crate) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}
