//! `vsl alerts`.

use daemon::Failure;
use daemon::api::{Acknowledge, Alert, Alerts as Answer, Comparison, Rule, Sent, Severity};
use daemon::fields::{self, Unit};
use hyper::Method;
use serde_json::json;

use super::access::plain;
use super::notify;
use crate::args::manage::{AlertRule, Alerts, AlertsDo, SeverityName};
use crate::client::Client;
use crate::output::Output;

pub fn alerts(args: &Alerts, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    match &args.what {
        Some(AlertsDo::Acknowledge { id, note }) => {
            let request = Acknowledge { note: note.clone() };
            let alert: Alert = client.send(Method::POST, &format!("/alerts/{id}/acknowledge"), &request)?;
            output.result(&alert, || format!("acknowledged {}\n", line(&alert)))
        }
        Some(AlertsDo::Rule(rule)) => set_rule(&client, rule, output),
        Some(AlertsDo::Notify(args)) => notify::notify(&client, args, output),
        Some(AlertsDo::Test) => try_sending(&client, output),
        None if args.rules => {
            let rules: Vec<Rule> = client.get("/alert-rules")?;
            output.result(&rules, || rules.iter().map(rule_line).collect())
        }
        None => {
            let path = if args.history { "/alerts/history" } else { "/alerts" };
            let answer: Answer = client.get(path)?;
            output.result(&answer, || match answer.alerts.as_slice() {
                [] if args.history => "no alert is over\n".into(),
                [] => "no alert is active\n".into(),
                alerts => alerts.iter().map(|alert| format!("{}\n", line(alert))).collect(),
            })
        }
    }
}

fn line(alert: &Alert) -> String {
    let time = |ms: u64| fields::show(Unit::Time, &json!(ms / 1000));
    let mut line = format!(
        "{:>4}  {:<11}  {:<12}  {}  {}: {}",
        alert.id,
        alert.severity.name(),
        alert.device,
        time(alert.raised_ms),
        alert.rule,
        alert.what
    );
    if let Some(cleared) = alert.cleared_ms {
        line.push_str(&format!("; over at {}", time(cleared)));
    }
    if let Some(who) = &alert.acknowledged_by {
        line.push_str(&format!("; acknowledged by {who}"));
    }
    if let Some(note) = &alert.note {
        line.push_str(&format!(" ({note})"));
    }
    for Sent { to, error } in &alert.sent {
        if let Some(error) = error {
            line.push_str(&format!("\n      not sent to {to}: {error}"));
        }
    }
    line
}

fn rule_line(rule: &Rule) -> String {
    let side = if rule.comparison == Comparison::Above { "above" } else { "below" };
    let clear = rule.clear.map(|clear| format!(", over at {clear}")).unwrap_or_default();
    let lasting = if rule.for_s > 0 { format!(", for {} s", rule.for_s) } else { String::new() };
    let device = rule.device.as_ref().map(|device| format!(" of {device}")).unwrap_or_default();
    let on = if rule.enabled { "" } else { " (off)" };
    format!(
        "{:<22}  {:<11}  {}{device} {side} {}{clear}{lasting}{on}\n",
        rule.name,
        rule.severity.name(),
        rule.metric,
        rule.threshold
    )
}

fn set_rule(client: &Client, args: &AlertRule, output: Output) -> Result<(), Failure> {
    let path = format!("/alert-rules/{}", plain(&args.name)?);
    if args.remove {
        client.send::<()>(Method::DELETE, &path, &json!({}))?;
        return output.result(&json!({ "removed": args.name }), || format!("removed {}\n", args.name));
    }
    let rules: Vec<Rule> = client.get("/alert-rules")?;
    let old = rules.into_iter().find(|rule| rule.name == args.name);
    let given =
        args.above.map(|value| (Comparison::Above, value)).or(args.below.map(|value| (Comparison::Below, value)));
    let mut rule = match (old, &args.metric, given) {
        (Some(old), _, _) => old,
        (None, Some(metric), Some((comparison, threshold))) => Rule {
            name: args.name.clone(),
            meaning: String::new(),
            metric: metric.clone(),
            device: None,
            comparison,
            threshold,
            clear: None,
            for_s: 0,
            severity: Severity::Warning,
            enabled: true,
            built_in: false,
        },
        (None, _, _) => {
            return Err(Failure::invalid(format!("there is no rule '{}' yet", args.name))
                .help("a new one needs --metric and either --above or --below"));
        }
    };
    if let Some((comparison, threshold)) = given {
        (rule.comparison, rule.threshold, rule.clear) = (comparison, threshold, None);
    }
    rule.metric = args.metric.clone().unwrap_or(rule.metric);
    rule.device = args.device.clone().or(rule.device);
    rule.clear = args.clear.or(rule.clear);
    rule.for_s = args.for_s.unwrap_or(rule.for_s);
    rule.severity = args.severity.map_or(rule.severity, Severity::from);
    rule.enabled = (rule.enabled || args.on) && !args.off;
    let set: Rule = client.send(Method::PUT, &path, &rule)?;
    output.result(&set, || rule_line(&set))
}

impl From<SeverityName> for Severity {
    fn from(name: SeverityName) -> Severity {
        match name {
            SeverityName::Information => Severity::Information,
            SeverityName::Warning => Severity::Warning,
            SeverityName::Critical => Severity::Critical,
        }
    }
}

fn try_sending(client: &Client, output: Output) -> Result<(), Failure> {
    let sent: Vec<Sent> = client.send(Method::POST, "/notifications/test", &json!({}))?;
    output.result(&sent, || match sent.as_slice() {
        [] => notify::NOBODY.into(),
        sent => sent.iter().map(|sent| format!("{}: {}\n", sent.to, sent.error.as_deref().unwrap_or("sent"))).collect(),
    })?;
    match sent.iter().filter(|sent| sent.error.is_some()).count() {
        0 => Ok(()),
        count => Err(Failure::failed(format!("{count} of {} were not reached", sent.len())).help("see above why")),
    }
}
