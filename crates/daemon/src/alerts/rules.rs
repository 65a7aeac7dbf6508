//! The rules: those that come with the service, and what people made of them.

use std::path::PathBuf;

use telemetry::{Of, table};

use crate::api::{Comparison, Rule, Severity};
use crate::{Failure, names, stored};

/// Rules at most.
const MOST: usize = 256;
/// Bytes.
const GIB: f64 = (1_u64 << 30) as f64;
/// Longest time that something may have to last, seconds: a day.
const LONGEST: u32 = 86_400;

/// The rules, and the file of those that differ from what comes with the service.
pub struct Rules {
    path: PathBuf,
    /// All of them.
    rules: Vec<Rule>,
}

impl Rules {
    /// Those that come with the service, with what the file says.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn open(path: PathBuf) -> Result<Rules, Failure> {
        let changed: Vec<Rule> = stored::read(&path)?;
        let mut rules = built_in();
        for rule in changed {
            // A rule over a metric that is gone is left out.
            if table::find(Of::Device, &rule.metric).is_some() {
                put(&mut rules, rule);
            }
        }
        Ok(Rules { path, rules })
    }

    /// All.
    pub fn all(&self) -> Vec<Rule> {
        self.rules.clone()
    }

    /// Those that are looked at for a device.
    pub fn applying<'a>(&'a self, device: &'a str) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(move |rule| rule.enabled && rule.device.as_ref().is_none_or(|only| only == device))
    }

    fn save(&mut self, rules: Vec<Rule>) -> Result<(), Failure> {
        let own = built_in();
        let changed: Vec<&Rule> = rules.iter().filter(|rule| !own.contains(rule)).collect();
        stored::write(&self.path, &changed)?;
        self.rules = rules;
        Ok(())
    }

    /// A rule of this name.
    ///
    /// # Errors
    /// It makes no sense, there are too many, or the file cannot be written.
    pub fn set(&mut self, name: &str, mut rule: Rule) -> Result<Rule, Failure> {
        let old = self.rules.iter().find(|rule| rule.name == name);
        rule.name = name.into();
        rule.built_in = old.is_some_and(|old| old.built_in);
        if rule.meaning.is_empty() {
            rule.meaning = old.map(|old| old.meaning.clone()).unwrap_or_default();
        }
        check(&rule)?;
        if old.is_none() && self.rules.len() >= MOST {
            return Err(Failure::conflict(format!("there are {MOST} rules already")).help("remove one first"));
        }
        let mut rules = self.rules.clone();
        put(&mut rules, rule.clone());
        self.save(rules)?;
        Ok(rule)
    }

    /// It goes.
    ///
    /// # Errors
    /// There is none, it came with the service, or the file cannot be written.
    pub fn remove(&mut self, name: &str) -> Result<(), Failure> {
        match self.rules.iter().find(|rule| rule.name == name) {
            None => {
                Err(Failure::not_found(format!("there is no rule '{name}'")).help("`vsl alerts --rules` lists them"))
            }
            Some(rule) if rule.built_in => Err(Failure::conflict(format!("the rule '{name}' came with the service"))
                .help("switch it off instead: set enabled to false")),
            Some(_) => {
                let rules = self.rules.iter().filter(|rule| rule.name != name).cloned().collect();
                self.save(rules)
            }
        }
    }
}

fn put(rules: &mut Vec<Rule>, rule: Rule) {
    match rules.iter_mut().find(|old| old.name == rule.name) {
        Some(old) => *old = rule,
        None => rules.push(rule),
    }
}

fn check(rule: &Rule) -> Result<(), Failure> {
    names::check("rule", &rule.name)?;
    if table::find(Of::Device, &rule.metric).is_none() {
        return Err(Failure::invalid(format!("metric: there is no '{}' of devices", rule.metric.escape_debug()))
            .help("`GET /api/v1/telemetry/metrics` lists them"));
    }
    let clear = rule.clear.unwrap_or(rule.threshold);
    if !rule.threshold.is_finite() || !clear.is_finite() {
        return Err(Failure::invalid("threshold: it is not a number").help("choose a number"));
    }
    let (wrong, side) = match rule.comparison {
        Comparison::Above => (clear > rule.threshold, "at most"),
        Comparison::Below => (clear < rule.threshold, "at least"),
    };
    if wrong {
        return Err(Failure::invalid(format!(
            "clear: {clear} is beyond the threshold {}: it would never end",
            rule.threshold
        ))
        .help(format!("choose {side} {}", rule.threshold)));
    }
    if rule.for_s > LONGEST || rule.meaning.len() > 2000 {
        return Err(Failure::invalid(format!("for_s: {} seconds", rule.for_s))
            .help(format!("choose at most {LONGEST}, and at most 2000 characters of meaning")));
    }
    Ok(())
}

/// Those that come with the service: what the original warned of, and what has no place in a card.
pub fn built_in() -> Vec<Rule> {
    use Comparison::{Above, Below};
    use Severity::{Critical, Information, Warning};
    let rule = |name: &str, metric: &str, comparison, (threshold, clear), for_s, severity, meaning: &str| Rule {
        name: name.into(),
        meaning: meaning.into(),
        metric: metric.into(),
        device: None,
        comparison,
        threshold,
        clear: Some(clear),
        for_s,
        severity,
        enabled: true,
        built_in: true,
    };
    let on = (1.0, 0.5);
    vec![
        rule(
            "reserve",
            "reserve_percent",
            Below,
            (10.0, 12.0),
            0,
            Warning,
            "spare blocks run out; plan for another device",
        ),
        rule(
            "write-reduced",
            "write_reduced",
            Above,
            on,
            0,
            Critical,
            "the reserve is used up, and writes are held back; copy what the device holds",
        ),
        rule(
            "read-only",
            "worn_out",
            Above,
            on,
            0,
            Critical,
            "the device is worn out and takes no more writes; copy what it holds",
        ),
        rule(
            "temperature",
            "celsius",
            Above,
            (75.0, 72.0),
            5,
            Warning,
            "near the temperature at which writes are held back; look at the airflow",
        ),
        rule(
            "temperature-critical",
            "celsius",
            Above,
            (80.0, 78.0),
            2,
            Critical,
            "writes are held back, and a little warmer the device switches itself off; look at the airflow now",
        ),
        rule("power-limited", "power_limited", Above, on, 10, Information, "writes are held back at the power limit"),
        rule(
            "degraded",
            "lost_dies",
            Above,
            on,
            0,
            Critical,
            "a file or disk is out of service; the data is safe as long as no more fail; `vsl rebuild` puts another in its place",
        ),
        rule(
            "unreadable",
            "unreadable_sectors",
            Above,
            on,
            0,
            Critical,
            "sectors cannot be read; copy what can, and look at the store underneath",
        ),
        rule(
            "damaged",
            "damaged_sectors",
            Above,
            on,
            0,
            Warning,
            "the groomer found sectors that it cannot read; look at the store underneath",
        ),
        rule(
            "vanished",
            "vanished_files",
            Above,
            on,
            0,
            Critical,
            "a file in use was deleted, moved or replaced, and is lost when the device is detached; with parity, rebuild it after the next attach; without, copy the device's content first",
        ),
        rule(
            "store-full",
            "store_full",
            Above,
            on,
            0,
            Critical,
            "the store under the device is full, and writes fail; the device's health says where room is needed",
        ),
        rule(
            "store-low",
            "store_free_bytes",
            Below,
            (GIB, 1.5 * GIB),
            10,
            Warning,
            "the file system under the device is nearly full, and writes fail once it is; make room on it",
        ),
        rule(
            "store-filling",
            "store_left_hours",
            Below,
            (24.0, 48.0),
            300,
            Warning,
            "the file system under the device is full within a day at this rate; make room on it",
        ),
        rule(
            "room-low",
            "room_used_percent",
            Above,
            (92.0, 89.0),
            10,
            Warning,
            "data and snapshots nearly fill the device, and writes are refused once they do; delete snapshots, or trim what is not needed",
        ),
        rule(
            "room-filling",
            "room_left_hours",
            Below,
            (24.0, 48.0),
            300,
            Warning,
            "data and snapshots fill the device within a day at this rate; delete snapshots, or have the schedule keep fewer",
        ),
        rule(
            "failed",
            "failed",
            Above,
            on,
            0,
            Critical,
            "the device could not be attached, or its writes fail; its health says why",
        ),
        rule(
            "unclean-attach",
            "unclean_attach",
            Above,
            on,
            0,
            Information,
            "it was not detached cleanly; what was flushed is there",
        ),
        rule(
            "errors",
            "failed_iops",
            Above,
            (1.0, 0.5),
            5,
            Warning,
            "requests are answered with errors; the service's log says which",
        ),
        rule(
            "slow-reads",
            "read_p99_us",
            Above,
            (1_000_000.0, 500_000.0),
            30,
            Warning,
            "one read in a hundred takes a second and longer",
        ),
        rule(
            "slow-writes",
            "write_p99_us",
            Above,
            (1_000_000.0, 500_000.0),
            30,
            Warning,
            "one write in a hundred takes a second and longer",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_service_makes_sense() {
        for rule in built_in() {
            assert_eq!(check(&rule), Ok(()), "{rule:?}");
        }
    }

    #[test]
    fn changes_are_kept_and_nonsense_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rules.json");
        let mut rules = Rules::open(path.clone()).expect("opened");
        let busy = Rule {
            name: String::new(),
            metric: "write_iops".into(),
            threshold: 100.0,
            clear: Some(50.0),
            built_in: true,
            device: Some("a".into()),
            ..built_in()[0].clone()
        };
        rules.set("busy", busy.clone()).expect_err("below 100, clear at 50: it would never end");
        let busy = Rule { comparison: Comparison::Above, ..busy };
        assert!(!rules.set("busy", busy.clone()).expect("fine").built_in);
        rules.set("busy", Rule { metric: "nothing".into(), ..busy.clone() }).expect_err("no such metric");
        rules.set("b/d", busy.clone()).expect_err("no plain name");
        rules.set("nan", Rule { threshold: f64::NAN, ..busy.clone() }).expect_err("no number");
        let off = Rule { enabled: false, ..built_in()[0].clone() };
        rules.set("reserve", off).expect("switched off");
        rules.remove("reserve").expect_err("came with the service");
        let mut rules = Rules::open(path).expect("read");
        assert!(rules.all().iter().any(|rule| rule.name == "reserve" && !rule.enabled && rule.built_in));
        assert!(rules.applying("a").any(|rule| rule.name == "busy"));
        assert!(!rules.applying("b").any(|rule| rule.name == "busy" || rule.name == "reserve"));
        rules.remove("busy").expect("removed");
        rules.remove("busy").expect_err("gone");
    }
}
