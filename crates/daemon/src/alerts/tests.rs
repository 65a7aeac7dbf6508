//! Rules, alerts and who is told, together.

use super::*;
use crate::api::{Comparison, Security, Severity};

struct World {
    directory: tempfile::TempDir,
    alerting: Alerting,
    outgoing: mpsc::Receiver<Outgoing>,
    monitor: Monitor,
    now_ms: u64,
}

/// With one rule: `busy`, from 100 writes a second on, until there are 50 or fewer.
fn world(severity: Severity) -> World {
    let directory = tempfile::tempdir().expect("a directory");
    let monitor = Monitor::open(&directory.path().join("h.db")).expect("opened");
    let (alerting, outgoing) = Alerting::open(directory.path()).expect("opened");
    let world = World { directory, alerting, outgoing, monitor, now_ms: 1_700_000_000_000 };
    world.alerting.set_rule("busy", busy(severity)).expect("a rule");
    world
}

fn busy(severity: Severity) -> Rule {
    Rule {
        name: "busy".into(),
        meaning: "many writes".into(),
        metric: "write_iops".into(),
        device: None,
        comparison: Comparison::Above,
        threshold: 100.0,
        clear: Some(50.0),
        for_s: 0,
        severity,
        enabled: true,
        built_in: false,
    }
}

impl World {
    /// One second with so many writes.
    fn second(&mut self, device: &str, writes: f64) {
        self.now_ms += 1000;
        let values = BTreeMap::from([("write_iops".to_string(), writes)]);
        self.alerting.look(device, &values, self.now_ms, &self.monitor);
    }

    /// The devices with an active alert, in the order of its number.
    fn active(&self) -> Vec<String> {
        let mut active = self.alerting.active();
        active.sort_by_key(|alert| alert.id);
        active.into_iter().map(|alert| alert.device).collect()
    }
}

#[test]
fn an_alert_is_raised_once_and_outlives_the_service() {
    let mut world = world(Severity::Critical);
    for writes in [99.0, 200.0, 300.0, 60.0] {
        world.second("a", writes);
    }
    assert_eq!(world.active(), ["a"]);
    let (alerting, outgoing) = Alerting::open(world.directory.path()).expect("opened again");
    (world.alerting, world.outgoing) = (alerting, outgoing);
    world.second("a", 200.0);
    assert_eq!(world.active(), ["a"], "the next service raised it once more");
    world.second("a", 40.0);
    assert_eq!(world.active(), [""; 0]);
    let past = world.alerting.past(u64::MAX, 9);
    assert_eq!(past.len(), 1);
    assert_eq!(past[0].cleared_ms, Some(world.now_ms));
}

#[test]
fn alerts_end_with_their_device_and_their_rule() {
    let mut world = world(Severity::Critical);
    for device in ["a", "b"] {
        world.second(device, 200.0);
    }
    world.alerting.forget_others(|device| device == "b", world.now_ms, &world.monitor);
    assert_eq!(world.active(), ["b"]);
    // A rule that is changed begins anew, but what it raised is still raised.
    let higher = Rule { threshold: 250.0, ..busy(Severity::Critical) };
    world.alerting.set_rule("busy", higher).expect("changed");
    world.second("b", 200.0);
    assert_eq!(world.active(), ["b"]);
    world.alerting.set_rule("busy", Rule { enabled: false, ..busy(Severity::Critical) }).expect("switched off");
    world.alerting.forget_others(|_| true, world.now_ms, &world.monitor);
    assert_eq!(world.active(), [""; 0]);
    world.second("b", 200.0);
    assert_eq!(world.active(), [""; 0], "a rule that is off raises nothing");
}

#[test]
fn only_what_is_severe_enough_is_sent_and_its_end_too() {
    let hook = || Webhook { url: "http://127.0.0.1:9/hook".into(), secret: None };
    let to = |least| Notifications { webhooks: vec![hook()], least_severity: least, ..Notifications::default() };
    for (severity, least, sent) in [
        (Severity::Warning, Severity::Warning, 2),
        (Severity::Warning, Severity::Critical, 0),
        (Severity::Information, Severity::Warning, 0),
    ] {
        let mut world = world(severity);
        world.alerting.set_notifications(to(least)).expect("an address");
        world.second("a", 200.0);
        world.second("a", 0.0);
        let cleared: Vec<bool> =
            std::iter::from_fn(|| world.outgoing.try_recv().ok()).map(|sent| sent.alert.cleared_ms.is_some()).collect();
        assert_eq!(cleared, [false, true][..sent], "{severity:?}, at least {least:?}");
    }
    // Nobody to tell.
    let mut world = world(Severity::Critical);
    world.second("a", 200.0);
    assert!(world.outgoing.try_recv().is_err());
}

#[test]
fn secrets_stay_with_the_server_that_they_are_for() {
    let world = world(Severity::Critical);
    let smtp = |host: &str, password: Option<&str>| Smtp {
        host: host.into(),
        port: 587,
        security: Security::Starttls,
        user: Some("vsl".into()),
        password: password.map(Into::into),
        from: "vsl@example.org".into(),
        to: vec!["ops@example.org".into()],
    };
    let hook = |url: &str, secret: Option<&str>| Webhook { url: url.into(), secret: secret.map(Into::into) };
    let set = |smtp: Smtp, hook: Webhook| {
        let new = Notifications { smtp: Some(smtp), webhooks: vec![hook], ..Notifications::default() };
        let shown = world.alerting.set_notifications(new)?;
        assert!(shown.smtp.is_some_and(|smtp| smtp.password.is_none()) && shown.webhooks[0].secret.is_none());
        let kept = Notifications::clone(&lock(&world.alerting.notifications));
        Ok::<_, Failure>((kept.smtp.and_then(|smtp| smtp.password), kept.webhooks[0].secret.clone()))
    };
    let (one, other) = ("https://example.org/one", "https://example.org/other");
    let both = Ok((Some("hush".into()), Some("quiet".into())));
    assert_eq!(set(smtp("mail.example.org", Some("hush")), hook(one, Some("quiet"))), both);
    assert_eq!(set(smtp("mail.example.org", None), hook(one, None)), both, "what is left out stays");
    let clear = Smtp { security: Security::None, ..smtp("mail.example.org", None) };
    let refused = set(clear, hook(one, None)).expect_err("the password that stays would go in the clear");
    assert!(refused.error.contains("in the clear"), "{refused}");
    assert_eq!(set(smtp("evil.example.org", None), hook(other, None)), Ok((None, None)), "somebody else got them");
}
