//! Alerts: rules over what is measured each second, what they raised, and who is told.

mod book;
mod engine;
mod mail;
mod notify;
mod rules;
#[cfg(test)]
mod tests;
pub mod webhook;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::Failure;
use crate::api::{Alert, Notifications, Rule, Sent, Smtp, Webhook};
use crate::monitor::Monitor;
use crate::stored::Kept;

use book::Book;
use engine::{Change, Watch};
pub use notify::run;
use rules::Rules;

/// Alerts that wait to be sent, at most. Beyond, the newest are not sent; they are in the list all the same.
const WAITING: usize = 256;

/// An alert that was raised or cleared, on its way to people. It holds passwords, so it is never shown.
#[derive(Clone)]
pub struct Outgoing {
    /// The alert.
    pub alert: Alert,
    /// Where it goes.
    pub to: Notifications,
}

/// Rules, alerts and who is told.
pub struct Alerting {
    rules: Mutex<Rules>,
    book: Mutex<Book>,
    /// How each rule stands with each device.
    watches: Mutex<HashMap<(String, String), Watch>>,
    notifications: Mutex<Kept<Notifications>>,
    outgoing: mpsc::Sender<Outgoing>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Alerting {
    /// With what is kept in a directory; and what [`run`] needs to send alerts.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn open(directory: &Path) -> Result<(Alerting, mpsc::Receiver<Outgoing>), Failure> {
        let (outgoing, waiting) = mpsc::channel(WAITING);
        let book = Book::open(directory.join("alerts.json"))?;
        let mut watches = HashMap::new();
        for alert in book.active() {
            watches.insert((alert.rule.clone(), alert.device.clone()), Watch::raised(alert.id));
        }
        let alerting = Alerting {
            rules: Mutex::new(Rules::open(directory.join("alert-rules.json"))?),
            book: Mutex::new(book),
            watches: Mutex::new(watches),
            notifications: Mutex::new(Kept::open(directory.join("notifications.json"))?),
            outgoing,
        };
        Ok((alerting, waiting))
    }

    /// One second of a device.
    pub fn look(&self, device: &str, values: &BTreeMap<String, f64>, now_ms: u64, monitor: &Monitor) {
        let rules: Vec<Rule> = lock(&self.rules).applying(device).cloned().collect();
        for rule in rules {
            // What is not known now says nothing: an alert stays as it is.
            let Some(value) = values.get(&rule.metric).copied() else { continue };
            let key = (rule.name.clone(), device.to_string());
            let change = lock(&self.watches).entry(key).or_default().look(&rule, value, now_ms);
            self.carry_out(change, &rule, device, value, now_ms, monitor);
        }
    }

    fn carry_out(&self, change: Change, rule: &Rule, device: &str, value: f64, now_ms: u64, monitor: &Monitor) {
        let alert = match change {
            Change::None => return,
            Change::Raise => {
                let alert = lock(&self.book).raise(rule, device, value, now_ms);
                if let Some(watch) = lock(&self.watches).get_mut(&(rule.name.clone(), device.to_string())) {
                    *watch = Watch::raised(alert.id);
                }
                tracing::warn!(device, rule = rule.name, "alert: {}", alert.what);
                Some(alert)
            }
            Change::Clear(id) => {
                tracing::info!(device, rule = rule.name, "alert cleared");
                lock(&self.book).clear(id, now_ms)
            }
        };
        if let Some(alert) = alert {
            self.tell(alert, monitor);
        }
    }

    fn tell(&self, alert: Alert, monitor: &Monitor) {
        monitor.tell("alert", &alert);
        let to = Notifications::clone(&lock(&self.notifications));
        if alert.severity >= to.least_severity
            && (to.smtp.is_some() || !to.webhooks.is_empty())
            && self.outgoing.try_send(Outgoing { alert: Alert { sent: Vec::new(), ..alert }, to }).is_err()
        {
            tracing::error!("too many alerts wait to be sent: one is not");
        }
    }

    /// Alerts of devices that are gone, and of rules that are gone or off, are over.
    pub fn forget_others(&self, is_there: impl Fn(&str) -> bool, now_ms: u64, monitor: &Monitor) {
        let gone: Vec<Option<u64>> = {
            let rules = lock(&self.rules);
            let mut gone = Vec::new();
            lock(&self.watches).retain(|(rule, device), watch| {
                let stays = is_there(device) && rules.applying(device).any(|one| one.name == *rule);
                if !stays {
                    gone.push(watch.alert());
                }
                stays
            });
            gone
        };
        for id in gone.into_iter().flatten() {
            if let Some(alert) = lock(&self.book).clear(id, now_ms) {
                self.tell(alert, monitor);
            }
        }
    }

    /// Those that are active, the most severe first.
    pub fn active(&self) -> Vec<Alert> {
        let mut alerts = lock(&self.book).active().cloned().collect::<Vec<_>>();
        alerts.sort_by_key(|alert| (std::cmp::Reverse(alert.severity), std::cmp::Reverse(alert.raised_ms)));
        alerts
    }

    /// Those that are over, the newest first: at most so many with a smaller number.
    pub fn past(&self, before: u64, limit: usize) -> Vec<Alert> {
        lock(&self.book).past(before, limit)
    }

    /// Somebody has seen an alert.
    ///
    /// # Errors
    /// There is none of this number, or it cannot be kept.
    pub fn acknowledge(
        &self,
        id: u64,
        who: &str,
        note: Option<String>,
        now_ms: u64,
        monitor: &Monitor,
    ) -> Result<Alert, Failure> {
        let alert = lock(&self.book).acknowledge(id, who, note, now_ms)?;
        monitor.tell("alert", &alert);
        Ok(alert)
    }

    /// Notes what came of telling people of an alert.
    pub fn note_sent(&self, alert: &Alert, sent: &[Sent], monitor: &Monitor) {
        if let Some(alert) = lock(&self.book).note_sent(alert.id, alert.cleared_ms.is_some(), sent) {
            monitor.tell("alert", &alert);
        }
    }

    /// Every rule.
    pub fn rules(&self) -> Vec<Rule> {
        lock(&self.rules).all()
    }

    /// A rule, new or changed.
    ///
    /// # Errors
    /// It makes no sense, or cannot be kept.
    pub fn set_rule(&self, name: &str, rule: Rule) -> Result<Rule, Failure> {
        let rule = lock(&self.rules).set(name, rule)?;
        // It begins anew, but what it raised is still raised.
        lock(&self.watches).retain(|(rule, _), watch| rule != name || watch.alert().is_some());
        Ok(rule)
    }

    /// A rule goes.
    ///
    /// # Errors
    /// There is none, or it came with the service.
    pub fn remove_rule(&self, name: &str) -> Result<(), Failure> {
        lock(&self.rules).remove(name)
    }

    /// Where alerts are sent, without what is secret.
    pub fn notifications(&self) -> Notifications {
        let kept = Notifications::clone(&lock(&self.notifications));
        Notifications {
            smtp: kept.smtp.map(|smtp| Smtp { password: None, ..smtp }),
            webhooks: kept.webhooks.into_iter().map(|hook| Webhook { secret: None, ..hook }).collect(),
            ..kept
        }
    }

    /// Sends alerts elsewhere from now on. Secrets that are left out stay.
    ///
    /// # Errors
    /// An address makes no sense, or it cannot be kept.
    pub fn set_notifications(&self, mut new: Notifications) -> Result<Notifications, Failure> {
        lock(&self.notifications).change(|kept| {
            if let (Some(new), Some(old)) = (&mut new.smtp, &kept.smtp)
                && (&new.host, new.port, &new.user) == (&old.host, old.port, &old.user)
            {
                new.password = new.password.take().or_else(|| old.password.clone());
            }
            for hook in &mut new.webhooks {
                let old = kept.webhooks.iter().find(|old| old.url == hook.url);
                hook.secret = hook.secret.take().or_else(|| old.and_then(|old| old.secret.clone()));
            }
            // With what stays of the old ones: a password that stays must not go out in the clear either.
            notify::check(&new)?;
            *kept = new;
            Ok(())
        })?;
        Ok(self.notifications())
    }

    /// Sends something for a try, and says what came of it.
    pub async fn try_sending(&self, now_ms: u64) -> Vec<Sent> {
        let to = Notifications::clone(&lock(&self.notifications));
        notify::send_all(&notify::trial(now_ms), &to).await
    }
}
