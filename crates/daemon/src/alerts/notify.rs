//! Alerts on their way to people: each is tried a few times.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{Outgoing, mail, webhook};
use crate::Failure;
use crate::api::{Alert, Notifications, Sent, Severity};

/// How long to wait before each further try.
const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(120)];
/// How long one try may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Receivers at most.
const MOST: usize = 32;

/// Whether alerts could be sent there at all.
pub fn check(to: &Notifications) -> Result<(), Failure> {
    if to.webhooks.len() > MOST || to.smtp.as_ref().is_some_and(|smtp| smtp.to.len() > MOST) {
        return Err(Failure::invalid(format!("more than {MOST} receivers")).help("use a mailing list"));
    }
    if let Some(smtp) = &to.smtp {
        mail::check(smtp)?;
    }
    to.webhooks.iter().try_for_each(webhook::check)
}

/// Sends what comes, until the service stops.
pub async fn run(mut waiting: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { alert, to }) = waiting.recv().await {
        // One that cannot be reached keeps no other alert waiting.
        tokio::spawn(async move {
            let mut left = to;
            for pause in PAUSES.into_iter().map(Some).chain([None]) {
                let sent = send_all(&alert, &left).await;
                left = still_to_tell(left, &sent);
                for sent in &sent {
                    if let Some(error) = &sent.error {
                        tracing::warn!(alert = alert.id, to = sent.to, "an alert was not sent: {error}");
                    }
                }
                match pause {
                    Some(pause) if left.smtp.is_some() || !left.webhooks.is_empty() => tokio::time::sleep(pause).await,
                    _ => return,
                }
            }
        });
    }
}

/// Those who were not reached.
fn still_to_tell(mut to: Notifications, sent: &[Sent]) -> Notifications {
    let failed = |to: &str| sent.iter().any(|sent| sent.to == to && sent.error.is_some());
    to.smtp = to.smtp.filter(|smtp| failed(&mail::name(smtp)));
    to.webhooks.retain(|hook| failed(&hook.url));
    to
}

/// Sends an alert to everybody, and says what came of each.
pub async fn send_all(alert: &Alert, to: &Notifications) -> Vec<Sent> {
    let mut sent = Vec::new();
    if let Some(smtp) = &to.smtp {
        let result = tokio::time::timeout(TIMEOUT, mail::send(smtp, alert)).await;
        sent.push(Sent { to: mail::name(smtp), error: flat(result) });
    }
    for hook in &to.webhooks {
        let result = tokio::time::timeout(TIMEOUT, webhook::send(hook, alert)).await;
        sent.push(Sent { to: hook.url.clone(), error: flat(result) });
    }
    sent
}

fn flat(result: Result<Result<(), String>, tokio::time::error::Elapsed>) -> Option<String> {
    match result {
        Ok(result) => result.err(),
        Err(_) => Some(format!("no answer in {} s", TIMEOUT.as_secs())),
    }
}

/// What is sent for a try.
pub fn trial(now_ms: u64) -> Alert {
    Alert {
        id: 0,
        rule: "trial".into(),
        device: "none".into(),
        severity: Severity::Information,
        what: "somebody tries whether alerts arrive".into(),
        value: 0.0,
        threshold: 0.0,
        raised_ms: now_ms,
        cleared_ms: None,
        acknowledged_ms: None,
        acknowledged_by: None,
        note: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Security, Smtp, Webhook};

    #[test]
    fn only_who_was_not_reached_is_told_again() {
        let smtp = Smtp {
            host: "mail".into(),
            port: 25,
            security: Security::None,
            user: None,
            password: None,
            from: "a@example.org".into(),
            to: vec!["b@example.org".into()],
        };
        let hook = |url: &str| Webhook { url: url.into(), secret: None };
        let to = Notifications {
            smtp: Some(smtp),
            webhooks: vec![hook("http://a/"), hook("http://b/")],
            ..Notifications::default()
        };
        let came = |to: &str, error: Option<&str>| Sent { to: to.into(), error: error.map(Into::into) };
        let left = |mail: Option<&str>, a: Option<&str>, b: Option<&str>| {
            let sent = [came("mail:25", mail), came("http://a/", a), came("http://b/", b)];
            let left = still_to_tell(to.clone(), &sent);
            (left.smtp.is_some(), left.webhooks.into_iter().map(|hook| hook.url).collect::<Vec<_>>())
        };
        assert_eq!(left(None, None, Some("it answered 500")), (false, vec!["http://b/".to_string()]));
        assert_eq!(left(Some("no route"), None, None), (true, vec![]));
        assert_eq!(left(None, None, None), (false, vec![]));
    }
}
