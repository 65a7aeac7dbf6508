//! How one rule stands with one device: threshold, duration, hysteresis.

use crate::api::{Comparison, Rule};

/// What a second changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// The alert is raised.
    Raise,
    /// The alert of this number is over.
    Clear(u64),
}

/// A rule's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The alert that is raised.
    alert: Option<u64>,
    /// Since when the value has been on the other side, milliseconds since 1970.
    since: Option<u64>,
}

impl Watch {
    /// With an alert raised.
    pub fn raised(alert: u64) -> Watch {
        Watch { alert: Some(alert), since: None }
    }

    /// The alert that is raised.
    pub fn alert(&self) -> Option<u64> {
        self.alert
    }

    /// One more second.
    pub fn look(&mut self, rule: &Rule, value: f64, now_ms: u64) -> Change {
        let clear = rule.clear.unwrap_or(rule.threshold);
        let other_side = match (rule.comparison, self.alert) {
            (Comparison::Above, None) => value >= rule.threshold,
            (Comparison::Below, None) => value <= rule.threshold,
            // What equals the threshold itself is still beyond it.
            (Comparison::Above, Some(_)) => value < rule.threshold && value <= clear,
            (Comparison::Below, Some(_)) => value > rule.threshold && value >= clear,
        };
        if !other_side {
            self.since = None;
            return Change::None;
        }
        let since = *self.since.get_or_insert(now_ms);
        if now_ms.saturating_sub(since) < u64::from(rule.for_s) * 1000 {
            return Change::None;
        }
        self.since = None;
        match self.alert.take() {
            None => Change::Raise,
            Some(id) => Change::Clear(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::rules::built_in;

    fn rule(comparison: Comparison, threshold: f64, clear: Option<f64>, for_s: u32) -> Rule {
        Rule { comparison, threshold, clear, for_s, ..built_in()[0].clone() }
    }

    /// What each second changes; a raised alert gets the number 1.
    fn changes(rule: &Rule, values: &[f64]) -> Vec<Change> {
        let mut watch = Watch::default();
        let look = |(second, value): (usize, &f64)| {
            let change = watch.look(rule, *value, second as u64 * 1000);
            if change == Change::Raise {
                watch = Watch::raised(1);
            }
            change
        };
        values.iter().enumerate().map(look).collect()
    }

    use Change::{Clear, None as Same, Raise};

    #[test]
    fn it_must_last_and_hysteresis_holds_it() {
        let rule = rule(Comparison::Above, 78.0, Some(75.0), 2);
        let values = [80.0, 70.0, 78.0, 79.0, 78.0, 76.0, 76.0, 76.0, 74.0, 76.0, 75.0, 74.0, 73.0, 73.0];
        assert_eq!(
            changes(&rule, &values),
            [Same, Same, Same, Same, Raise, Same, Same, Same, Same, Same, Same, Same, Clear(1), Same]
        );
    }

    #[test]
    fn without_duration_it_is_at_once() {
        let rule = rule(Comparison::Below, 10.0, Some(12.0), 0);
        assert_eq!(changes(&rule, &[11.0, 10.0, 11.0, 12.0, 9.0]), [Same, Raise, Same, Clear(1), Raise]);
        // Without hysteresis the threshold itself belongs to the alert.
        let rule = self::rule(Comparison::Above, 1.0, None, 0);
        assert_eq!(changes(&rule, &[1.0, 1.0, 0.0]), [Raise, Same, Clear(1)]);
    }
}
