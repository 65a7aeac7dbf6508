//! How long a run still takes, from what its steps took so far.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::plan::{Part, StagePlan, StepPlan};
use crate::protocol::Role;
use crate::steady::Rule;

/// Where a run stands.
#[derive(Clone, Debug)]
pub struct Status {
    /// Parts that are done, those of earlier sittings included.
    pub parts_done: usize,
    /// All parts.
    pub parts: usize,
    /// What is going on just now, one entry for each part.
    pub now: Vec<String>,
    /// Share of the work that is done, 0 to 1.
    pub done: f64,
    /// How long it still takes; `None` while too little is known.
    pub remaining: Option<Duration>,
}

/// Requests a second that a virtual device is taken to do before anything is known of it.
const GUESSED_IOPS: f64 = 50_000.0;
/// The same of bytes a second of a real one, while it is filled.
const GUESSED_BYTES: f64 = 200e6;
/// Requests of a trace, and seconds that it takes on a real device, before anything is known of it.
const TRACE_REQUESTS: f64 = 1e6;
const TRACE_SECONDS: f64 = 60.0;
/// Seconds of work after which an estimate is worth something.
const ENOUGH: f64 = 3.0;

/// What kind of work a step is: those of one kind take alike.
type Sort = (String, Role);

/// The work of a run: each step has a weight, and what a weight takes is learned for each sort of step.
#[derive(Debug)]
pub struct Work {
    /// Weight that is left of each sort.
    left: HashMap<Sort, f64>,
    /// Seconds and weight that are done of each sort.
    learned: HashMap<Sort, (f64, f64)>,
    began: Instant,
}

impl Work {
    /// Of these parts; `bytes` is about what a device holds. A stage that goes on until it is steady counts with all the rounds that
    /// `rule` allows it.
    pub fn new<'a>(parts: impl Iterator<Item = &'a Part>, rule: &Rule, bytes: u64, is_virtual: bool) -> Work {
        let mut work = Work { left: HashMap::new(), learned: HashMap::new(), began: Instant::now() };
        for part in parts {
            for stage in &part.stages {
                for step in &stage.steps {
                    let weight = weight(step, bytes, is_virtual) * f64::from(stage.most_rounds(rule));
                    *work.left.entry(sort(part, stage)).or_default() += weight;
                }
            }
        }
        work
    }

    /// A step is done.
    pub fn done(&mut self, part: &Part, stage: &StagePlan, weight: f64, took: Duration) {
        let sort = sort(part, stage);
        let learned = self.learned.entry(sort.clone()).or_default();
        *learned = (learned.0 + took.as_secs_f64(), learned.1 + weight);
        self.drop(part, stage, weight);
    }

    /// A step is not done any more: its stage was steady before.
    pub fn drop(&mut self, part: &Part, stage: &StagePlan, weight: f64) {
        if let Some(left) = self.left.get_mut(&sort(part, stage)) {
            *left = (*left - weight).max(0.0);
        }
    }

    /// Share that is done of what was done and what is left; rounds that turned out not to be needed are neither. `under_way` is the
    /// weight that is done of unfinished steps.
    pub fn share(&self, under_way: f64) -> f64 {
        let left: f64 = self.left.values().sum();
        let done: f64 = self.learned.values().map(|(_, weight)| weight).sum();
        let all = done + left;
        if all > 0.0 { ((done + under_way) / all).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// How long it still takes when so many parts run at once.
    pub fn remaining(&self, under_way: f64, at_once: usize) -> Option<Duration> {
        let (seconds, weight) =
            self.learned.values().fold((0.0, 0.0), |(seconds, weight), each| (seconds + each.0, weight + each.1));
        if self.began.elapsed().as_secs_f64() < ENOUGH || weight <= 0.0 || seconds <= 0.0 {
            return None;
        }
        let overall = seconds / weight;
        let of_role = |role: Role| {
            let same = self.learned.iter().filter(|((_, it), _)| *it == role);
            let (seconds, weight) = same.fold((0.0, 0.0), |sum, (_, each)| (sum.0 + each.0, sum.1 + each.1));
            (weight > 0.0).then(|| seconds / weight)
        };
        let left: f64 = self
            .left
            .iter()
            .map(|(sort, left)| {
                let own = self.learned.get(sort).filter(|each| each.1 > 0.0).map(|each| each.0 / each.1);
                left * own.or_else(|| of_role(sort.1)).unwrap_or(overall)
            })
            .sum();
        let left = (left - under_way * overall).max(0.0);
        Some(Duration::from_secs_f64(left / at_once.max(1) as f64))
    }
}

fn sort(part: &Part, stage: &StagePlan) -> Sort {
    (part.plan.test.clone(), stage.role)
}

/// About how much work a step is: requests in virtual time, seconds on a real device.
pub fn weight(step: &StepPlan, bytes: u64, is_virtual: bool) -> f64 {
    let stop = &step.phase.stop;
    let seconds = step.phase.ramp.0.as_secs_f64() + stop.duration.map_or(0.0, |time| time.0.as_secs_f64());
    let pause = step.pause.0.as_secs_f64();
    let moved = stop.capacities.unwrap_or(0.0) * bytes as f64;
    let size = step.point.size_bytes.unwrap_or(16_384).max(512) as f64;
    if step.point.trace.is_some() && seconds == 0.0 {
        // How long a trace takes is not known before.
        return if is_virtual { TRACE_REQUESTS } else { TRACE_SECONDS + pause };
    }
    if is_virtual {
        // Sectors, since long requests are that much more work.
        let idle = step.phase.loads.is_empty();
        moved / size.min(4096.0) + if idle { 1.0 } else { seconds * GUESSED_IOPS }
    } else {
        moved / GUESSED_BYTES + seconds + pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;
    use crate::run::{Plan, Wanted};

    #[test]
    fn what_was_learned_of_a_sort_of_step_is_used_for_it() {
        let (protocol, _) = protocol::find("storagereview-enterprise").expect("shipped").expect("sound");
        let wanted = Wanted { quick: true, is_virtual: true, repeat: 1, seed: 1, ..Wanted::default() };
        let plan = Plan::new(&protocol, &wanted).expect("a plan");
        let mut work = Work::new(plan.parts.iter(), &Rule::default(), 1 << 30, true);
        assert_eq!((work.share(0.0), work.remaining(0.0, 1)), (0.0, None));
        work.began -= Duration::from_secs(10);
        let mut share = 0.0;
        for part in &plan.parts {
            for stage in &part.stages {
                for step in &stage.steps {
                    let each = weight(step, 1 << 30, true);
                    // Preconditioning is ten times as slow as measuring.
                    let pace = if stage.role == Role::Precondition { 1e-5 } else { 1e-6 };
                    work.done(part, stage, each, Duration::from_secs_f64(each * pace));
                    assert!(work.share(0.0) > share);
                    share = work.share(0.0);
                }
            }
        }
        assert!((share - 1.0).abs() < 1e-9);
        assert!(work.remaining(0.0, 2).expect("known") < Duration::from_millis(1));
    }

    #[test]
    fn rounds_until_the_steady_state_count_until_they_are_not_needed() {
        let (protocol, _) = protocol::find("snia-pts-iops").expect("shipped").expect("sound");
        let devices = vec!["iodrive-320-mlc".to_string()];
        let wanted = Wanted { quick: true, is_virtual: true, repeat: 1, seed: 1, devices, ..Wanted::default() };
        let plan = Plan::new(&protocol, &wanted).expect("a plan");
        let rule = Rule { at_most: 25, ..Rule::default() };
        let mut work = Work::new(plan.parts.iter(), &rule, 1 << 30, true);
        let mut shares = Vec::new();
        for part in &plan.parts {
            for stage in &part.stages {
                let open_ended = stage.rounds == 0;
                for round in 1..=stage.most_rounds(&rule) {
                    for step in &stage.steps {
                        let each = weight(step, 1 << 30, true);
                        // Steady after ten rounds.
                        match open_ended && round > 10 {
                            true => work.drop(part, stage, each),
                            false => work.done(part, stage, each, Duration::from_secs(1)),
                        }
                    }
                    if open_ended && round <= 10 {
                        shares.push(work.share(0.0));
                    }
                }
            }
        }
        assert!(shares.len() == 10 && shares.is_sorted(), "{shares:?}");
        assert!(shares[1] < 0.2 && shares[9] < 0.6, "two and ten of 25 rounds: {shares:?}");
        assert!((work.share(0.0) - 1.0).abs() < 1e-9);
    }
}
