//! Alerts, active and past, in a file that is replaced with each change.

use std::collections::VecDeque;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use telemetry::{Of, table};

use crate::Failure;
use crate::api::{Alert, Comparison, Rule, Sent};
use crate::stored::Kept;

/// Alerts that are remembered once they are over.
const REMEMBERED: usize = 1000;
/// Characters of a note.
const NOTE: usize = 500;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Contents {
    next: u64,
    active: Vec<Alert>,
    past: VecDeque<Alert>,
}

/// The alerts.
pub struct Book(Kept<Contents>);

impl Book {
    /// Those of a file.
    ///
    /// # Errors
    /// It is damaged.
    pub fn open(path: PathBuf) -> Result<Book, Failure> {
        Kept::open(path).map(Book)
    }

    /// Those that are active.
    pub fn active(&self) -> impl Iterator<Item = &Alert> {
        self.0.active.iter()
    }

    /// A new one.
    pub fn raise(&mut self, rule: &Rule, device: &str, value: f64, now_ms: u64) -> Alert {
        let alert = Alert {
            id: self.0.next,
            rule: rule.name.clone(),
            device: device.into(),
            severity: rule.severity,
            what: words(rule, value),
            value,
            threshold: rule.threshold,
            raised_ms: now_ms,
            cleared_ms: None,
            acknowledged_ms: None,
            acknowledged_by: None,
            note: None,
            sent: Vec::new(),
        };
        self.0.note(|contents| {
            contents.next += 1;
            contents.active.push(alert.clone());
        });
        alert
    }

    /// It is over. Nothing where there is none of this number.
    pub fn clear(&mut self, id: u64, now_ms: u64) -> Option<Alert> {
        let at = self.0.active.iter().position(|alert| alert.id == id)?;
        Some(self.0.note(|contents| {
            let alert = Alert { cleared_ms: Some(now_ms), sent: Vec::new(), ..contents.active.remove(at) };
            if contents.past.len() >= REMEMBERED {
                contents.past.pop_front();
            }
            contents.past.push_back(alert.clone());
            alert
        }))
    }

    /// Those that are over, the newest first.
    pub fn past(&self, before: u64, limit: usize) -> Vec<Alert> {
        self.0.past.iter().rev().filter(|alert| alert.id < before).take(limit).cloned().collect()
    }

    /// Somebody has seen it.
    ///
    /// # Errors
    /// There is none of this number, or it cannot be kept.
    pub fn acknowledge(&mut self, id: u64, who: &str, note: Option<String>, now_ms: u64) -> Result<Alert, Failure> {
        self.0.change(|Contents { active, past, .. }| {
            let alert = active.iter_mut().chain(past).find(|alert| alert.id == id).ok_or_else(|| {
                Failure::not_found(format!("there is no alert {id}")).help("`vsl alerts` lists those that are active")
            })?;
            alert.acknowledged_ms = Some(now_ms);
            alert.acknowledged_by = Some(who.into());
            alert.note = note.map(|note| note.chars().take(NOTE).collect());
            Ok(alert.clone())
        })
    }

    /// What came of telling people that it was raised, or that it is over. Nothing where it says nothing new: news of the raised one
    /// may be late.
    pub fn note_sent(&mut self, id: u64, cleared: bool, sent: &[Sent]) -> Option<Alert> {
        let is_it = |alert: &Alert| alert.id == id && alert.cleared_ms.is_some() == cleared && alert.sent != sent;
        self.0.active.iter().chain(&self.0.past).find(|alert| is_it(alert))?;
        self.0.note(|Contents { active, past, .. }| {
            let alert = active.iter_mut().chain(past).find(|alert| is_it(alert))?;
            alert.sent = sent.to_vec();
            Some(alert.clone())
        })
    }
}

/// What an alert says: the meaning of its rule, if the rule has one, and the figure that raised it.
fn words(rule: &Rule, value: f64) -> String {
    let figure = figure(rule, value);
    if rule.meaning.is_empty() { figure } else { format!("{} ({figure})", rule.meaning) }
}

fn figure(rule: &Rule, value: f64) -> String {
    let metric = table::find(Of::Device, &rule.metric);
    let label = metric.map_or(rule.metric.as_str(), |metric| metric.label).to_lowercase();
    let number = |value: f64| format!("{}", (value * 100.0).round() / 100.0);
    match metric.map(|metric| metric.unit) {
        Some(telemetry::Unit::Flag) => label,
        unit => {
            let unit = unit.map_or("", telemetry::Unit::behind);
            let side = if rule.comparison == Comparison::Above { "at or above" } else { "at or below" };
            format!("{label}: {} {unit}, {side} {}", number(value), number(rule.threshold)).replace(" ,", ",")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::rules::built_in;

    #[test]
    fn alerts_outlive_the_service() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("alerts.json");
        let mut book = Book::open(path.clone()).expect("empty");
        let rules = built_in();
        let first = book.raise(&rules[0], "a", 9.876, 1000);
        assert_eq!(first.what, format!("{} (reserve: 9.88 %, at or below 10)", rules[0].meaning));
        let second = book.raise(&rules[1], "b", 1.0, 2000);
        assert_eq!(second.what, format!("{} (writes reduced)", rules[1].meaning));
        let bare = Rule { meaning: String::new(), ..rules[0].clone() };
        assert_eq!(words(&bare, 9.0), "reserve: 9 %, at or below 10");
        book.acknowledge(first.id, "ada", Some("x".repeat(1000)), 3000).expect("there");
        assert_eq!(book.clear(second.id, 4000).and_then(|alert| alert.cleared_ms), Some(4000));
        assert_eq!(book.clear(second.id, 5000), None);
        let mut book = Book::open(path).expect("read");
        let active: Vec<u64> = book.active().map(|alert| alert.id).collect();
        assert_eq!(active, [first.id]);
        assert_eq!(book.past(u64::MAX, 9).len(), 1);
        assert_eq!(book.active().next().and_then(|alert| alert.note.as_ref()).map(String::len), Some(NOTE));
        assert!(book.raise(&rules[2], "a", 1.0, 6000).id > second.id);
        assert!(book.acknowledge(99, "ada", None, 0).is_err());
    }
}
