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

/// Sends what comes, until the service stops, and notes after each try what came of it.
pub async fn run(mut waiting: mpsc::Receiver<Outgoing>, note: impl Fn(&Alert, &[Sent]) + Clone + Send + 'static) {
    while let Some(Outgoing { alert, to }) = waiting.recv().await {
        let note = note.clone();
        // One that cannot be reached keeps no other alert waiting.
        tokio::spawn(async move {
            let mut sent: Vec<Sent> = Vec::new();
            for pause in PAUSES.into_iter().map(Some).chain([None]) {
                sent = send_where(&alert, &to, &sent).await;
                let (note, about, came) = (note.clone(), alert.clone(), sent.clone());
                // It goes to the disk, which the others that wait for this thread need not wait for.
                if let Err(error) = tokio::task::spawn_blocking(move || note(&about, &came)).await {
                    tracing::error!(alert = alert.id, "what came of sending an alert is not kept: {error}");
                }
                for Sent { to, error } in &sent {
                    if let Some(error) = error {
                        tracing::warn!(alert = alert.id, to, "an alert was not sent: {error}");
                    }
                }
                match pause {
                    Some(pause) if sent.iter().any(|sent| sent.error.is_some()) => tokio::time::sleep(pause).await,
                    _ => return,
                }
            }
        });
    }
}

/// Sends an alert to everybody, and says what came of each.
pub async fn send_all(alert: &Alert, to: &Notifications) -> Vec<Sent> {
    send_where(alert, to, &[]).await
}

/// Sends an alert to everybody who did not get it before, and says what came of each now or then.
async fn send_where(alert: &Alert, to: &Notifications, before: &[Sent]) -> Vec<Sent> {
    let mut sent = Vec::new();
    let reached = |at: usize| before.get(at).is_some_and(|sent| sent.error.is_none());
    if let Some(smtp) = &to.smtp {
        let error = if reached(0) { None } else { in_time(mail::send(smtp, alert)).await };
        sent.push(Sent { to: mail::name(smtp), error });
    }
    for hook in &to.webhooks {
        let error = if reached(sent.len()) { None } else { in_time(webhook::send(hook, alert)).await };
        sent.push(Sent { to: webhook::name(hook), error });
    }
    sent
}

/// What went wrong, if anything.
async fn in_time(sending: impl Future<Output = Result<(), String>>) -> Option<String> {
    match tokio::time::timeout(TIMEOUT, sending).await {
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
        sent: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::api::Webhook;

    /// A webhook that answers each request in turn with the status given, then no more.
    fn hook(statuses: &'static [u16]) -> (Webhook, std::thread::JoinHandle<()>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/secret-path", listener.local_addr().expect("bound"));
        let asked = std::thread::spawn(move || {
            for status in statuses {
                let (mut stream, _) = listener.accept().expect("asked");
                let mut request = [0; 4096];
                let mut got = 0;
                while !request[..got].ends_with(b"}") {
                    let more = stream.read(&mut request[got..]).expect("a request");
                    assert_ne!(more, 0);
                    got += more;
                }
                write!(stream, "HTTP/1.1 {status} so\r\ncontent-length: 0\r\n\r\n").expect("answered");
            }
        });
        (Webhook { url, secret: None }, asked)
    }

    #[tokio::test]
    async fn only_who_was_not_reached_is_told_again() {
        let (good, told_good) = hook(&[204]);
        let (bad, told_bad) = hook(&[500, 200]);
        let names = [webhook::name(&good), webhook::name(&bad)];
        assert!(names.iter().all(|name| !name.contains("secret-path")), "{names:?}");
        let to = Notifications { webhooks: vec![good, bad], ..Notifications::default() };
        let came = |error: Option<&str>| -> Vec<Sent> {
            let errors = [None, error.map(String::from)];
            names.iter().zip(errors).map(|(to, error)| Sent { to: to.clone(), error }).collect()
        };
        let first = send_all(&trial(0), &to).await;
        assert_eq!(first, came(Some("it answered 500 Internal Server Error")));
        assert_eq!(send_where(&trial(0), &to, &first).await, came(None));
        told_good.join().expect("told once");
        told_bad.join().expect("told twice");
    }
}
