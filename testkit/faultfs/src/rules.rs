//! Faults by rule: which operations, when, and what happens to them.

use std::ops::Range;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::dice::Cut;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Bytes read.
    Read,
    /// Bytes written.
    Write,
    /// Space made sure of.
    Allocate,
    /// A hole punched.
    Punch,
    /// The size set.
    Resize,
    /// A file synced.
    Sync,
    /// A file created, renamed or unlinked.
    Name,
    /// The directory synced.
    SyncNames,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] =
        [Kind::Read, Kind::Write, Kind::Allocate, Kind::Punch, Kind::Resize, Kind::Sync, Kind::Name, Kind::SyncNames];
}

/// An error that an operation can be made to fail with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Error {
    /// Input or output failed.
    Eio,
    /// No space is left.
    Enospc,
    /// The quota is used up.
    Edquot,
    /// It was interrupted.
    Eintr,
    /// It should be tried again.
    Eagain,
    /// The file system turned read-only.
    Erofs,
    /// Not supported.
    Eopnotsupp,
}

impl From<Error> for Errno {
    fn from(error: Error) -> Errno {
        match error {
            Error::Eio => Errno::IO,
            Error::Enospc => Errno::NOSPC,
            Error::Edquot => Errno::DQUOT,
            Error::Eintr => Errno::INTR,
            Error::Eagain => Errno::AGAIN,
            Error::Erofs => Errno::ROFS,
            Error::Eopnotsupp => Errno::OPNOTSUPP,
        }
    }
}

/// What becomes of the changes that a failed sync should have made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dirty {
    /// They stay pending, and another sync may make them durable.
    #[default]
    Keep,
    /// They count as clean: everybody sees them until the power is cut, and no sync makes them durable.
    Clean,
    /// They are thrown away: everybody sees the old content.
    Evict,
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// It fails and changes nothing.
    Fail {
        /// With this error.
        error: Error,
        /// What it means for what is pending, when it is a sync.
        #[serde(default)]
        dirty: Dirty,
    },
    /// At most so many bytes are read or written. Who writes through `io_uring` gets EIO then: the kernel's FUSE makes it.
    Short(u32),
    /// It waits so many milliseconds before it is done.
    Delay(u32),
    /// One bit of what is read or written is flipped: counted from the first byte, and again from there behind the last.
    Flip(u64),
    /// It is answered as if it were done, and is not: a write, an allocation, a punch or a sync.
    Lost,
    /// It is written so many bytes further on.
    Misdirect(i64),
    /// The power is cut instead.
    Cut(Cut),
    /// The power is cut as soon as it is done and answered.
    CutAfter(Cut),
}

/// Which operations something happens to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Kinds of operations that it counts.
    pub on: Vec<Kind>,
    /// The file; any without.
    #[serde(default)]
    pub file: Option<String>,
    /// Bytes of the file that the operation must touch, from and to; any without.
    #[serde(default)]
    pub range: Option<[u64; 2]>,
    /// How many go by before the first that it happens to.
    #[serde(default)]
    pub after: u64,
    /// It happens to each so-manyth from there on.
    #[serde(default = "one")]
    pub every: u64,
    /// How many it happens to; all without.
    #[serde(default)]
    pub times: Option<u64>,
    /// What happens.
    pub effect: Effect,
}

fn one() -> u64 {
    1
}

impl Rule {
    /// Why it makes no sense, if it does not.
    pub fn nonsense(&self) -> Option<&'static str> {
        match self {
            Rule { on, .. } if on.is_empty() => Some("`on` is empty: name kinds of operations"),
            Rule { every: 0, .. } => Some("`every` is 0: expected 1 or more"),
            Rule { range: Some([from, to]), .. } if from >= to => Some("`range` is empty: expected [from, to]"),
            Rule { effect: Effect::Delay(60_001..), .. } => Some("`delay` is above 60000 ms"),
            Rule { effect: Effect::Short(0), .. } => Some("`short` is 0: expected 1 or more bytes"),
            _ => None,
        }
    }

    fn matches(&self, kind: Kind, file: Option<&str>, range: &Range<u64>) -> bool {
        self.on.contains(&kind)
            && self.file.as_ref().is_none_or(|wanted| Some(wanted.as_str()) == file)
            && self.range.is_none_or(|[from, to]| range.start < to && from < range.end)
    }
}

/// A rule that is in force.
#[derive(Clone, Debug, Serialize)]
pub struct InForce {
    /// Its number, to lift it by.
    pub id: u64,
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Operations that it counted.
    pub seen: u64,
    /// Operations that it happened to.
    pub fired: u64,
}

/// All rules.
#[derive(Default)]
pub struct Rules {
    rules: Vec<InForce>,
    last: u64,
}

impl Rules {
    /// Puts a rule in force; gives its number.
    pub fn add(&mut self, rule: Rule) -> u64 {
        self.last += 1;
        self.rules.push(InForce { id: self.last, rule, seen: 0, fired: 0 });
        self.last
    }

    /// Lifts one rule, or all; false when there is none of that number.
    pub fn lift(&mut self, id: Option<u64>) -> bool {
        let before = self.rules.len();
        self.rules.retain(|rule| id.is_some_and(|id| rule.id != id));
        id.is_none() || self.rules.len() < before
    }

    /// Those in force.
    pub fn in_force(&self) -> &[InForce] {
        &self.rules
    }

    /// What happens to an operation, in the order of the rules.
    pub fn decide(&mut self, kind: Kind, file: Option<&str>, range: &Range<u64>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for entry in self.rules.iter_mut().filter(|entry| entry.rule.matches(kind, file, range)) {
            let turn =
                entry.seen >= entry.rule.after && (entry.seen - entry.rule.after).is_multiple_of(entry.rule.every);
            entry.seen += 1;
            if turn && entry.rule.times.is_none_or(|times| entry.fired < times) {
                entry.fired += 1;
                effects.push(entry.rule.effect);
            }
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_rule_counts_what_it_is_about() {
        let mut rules = Rules::default();
        let fail = r#"{"fail": {"error": "ENOSPC"}}"#;
        rules.add(rule(&format!(r#"{{"on": ["write", "allocate"], "file": "a", "after": 2, "effect": {fail}}}"#)));
        rules.add(rule(r#"{"on": ["read"], "range": [4096, 8192], "every": 2, "times": 2, "effect": {"short": 512}}"#));
        let mut decide = |kind, file, range| rules.decide(kind, Some(file), &range);
        let full = vec![Effect::Fail { error: Error::Enospc, dirty: Dirty::Keep }];
        assert_eq!(decide(Kind::Write, "a", 0..1), []);
        assert_eq!(decide(Kind::Write, "b", 0..1), []);
        assert_eq!(decide(Kind::Allocate, "a", 0..1), []);
        assert_eq!(decide(Kind::Write, "a", 0..1), full);
        assert_eq!(decide(Kind::Allocate, "a", 0..1), full);
        let reads: Vec<_> = (0..6).map(|_| decide(Kind::Read, "a", 0..4097).len()).collect();
        assert_eq!(reads, [1, 0, 1, 0, 0, 0]);
        assert_eq!(decide(Kind::Read, "a", 8192..9000), []);
        assert_eq!(rules.in_force()[1].seen, 6);
        assert!(rules.lift(Some(1)) && !rules.lift(Some(1)) && rules.lift(None));
        assert_eq!(rules.decide(Kind::Write, Some("a"), &(0..1)), []);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(serde_json::from_str::<Rule>(r#"{"on": ["wirte"], "effect": "lost"}"#).is_err());
        assert!(rule(r#"{"on": [], "effect": "lost"}"#).nonsense().is_some());
        assert!(rule(r#"{"on": ["read"], "range": [2, 2], "effect": {"flip": 3}}"#).nonsense().is_some());
        assert!(rule(r#"{"on": ["read"], "every": 0, "effect": {"flip": 3}}"#).nonsense().is_some());
    }
}
