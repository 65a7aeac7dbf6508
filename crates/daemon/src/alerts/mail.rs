//! Alerts by mail.

use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use crate::api::{Alert, Security, Smtp};
use crate::{Failure, clock, remote};

/// How it is called in lists.
pub fn name(smtp: &Smtp) -> String {
    format!("{}:{}", smtp.host, smtp.port)
}

fn mailbox(field: &str, address: &str) -> Result<Mailbox, Failure> {
    address.parse().map_err(|error| {
        Failure::invalid(format!("smtp.{field}: '{}': {error}", address.escape_debug()))
            .help("write it like ops@example.org")
    })
}

/// Whether mail could be sent with this at all.
pub fn check(smtp: &Smtp) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
    if smtp.host.is_empty() || !smtp.host.chars().all(plain) || smtp.port == 0 {
        return Err(Failure::invalid(format!(
            "smtp: '{}' port {} is no mail server",
            smtp.host.escape_debug(),
            smtp.port
        ))
        .help("give its host name or address, and a port such as 587"));
    }
    if smtp.password.is_some() && smtp.security == Security::None && !remote::is_near(&smtp.host) {
        return Err(Failure::invalid("smtp: a password would go over the network in the clear")
            .help("choose the security starttls or tls"));
    }
    if smtp.to.is_empty() {
        return Err(Failure::invalid("smtp.to: nobody").help("say who gets mail"));
    }
    mailbox("from", &smtp.from)?;
    smtp.to.iter().try_for_each(|address| mailbox("to", address).map(drop))
}

/// The mail.
fn message(smtp: &Smtp, alert: &Alert) -> Result<Message, String> {
    let state = if alert.cleared_ms.is_some() { "over" } else { alert.severity.name() };
    let subject = format!("[OpenVSL] {}: {} {}", alert.device, alert.rule, state);
    let time = |ms: u64| clock::show(ms / 1000).unwrap_or_else(|| format!("{ms} ms since 1970"));
    let mut text = format!(
        "device    {}\nalert     {} (number {})\nseverity  {}\nwhat      {}\nraised    {}\n",
        alert.device,
        alert.rule,
        alert.id,
        alert.severity.name(),
        alert.what,
        time(alert.raised_ms),
    );
    if let Some(cleared) = alert.cleared_ms {
        text.push_str(&format!("cleared   {}\n", time(cleared)));
    }
    let mut builder = Message::builder()
        .from(smtp.from.parse().map_err(|error| format!("{}: {error}", smtp.from))?)
        .subject(subject)
        .header(ContentType::TEXT_PLAIN);
    for to in &smtp.to {
        builder = builder.to(to.parse().map_err(|error| format!("{to}: {error}"))?);
    }
    builder.body(text).map_err(|error| error.to_string())
}

/// Sends it.
pub async fn send(smtp: &Smtp, alert: &Alert) -> Result<(), String> {
    let message = message(smtp, alert)?;
    let parameters = || TlsParameters::new(smtp.host.clone()).map_err(|error| error.to_string());
    let tls = match smtp.security {
        Security::None => Tls::None,
        Security::Starttls => Tls::Required(parameters()?),
        Security::Tls => Tls::Wrapper(parameters()?),
    };
    let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&smtp.host).port(smtp.port).tls(tls);
    if let Some(user) = &smtp.user {
        let password = smtp.password.clone().unwrap_or_default();
        transport = transport.credentials(Credentials::new(user.clone(), password));
    }
    transport.build().send(message).await.map(drop).map_err(|error| {
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            words.push_str(&format!(": {error}"));
            cause = error.source();
        }
        words
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::notify::trial;

    fn smtp() -> Smtp {
        Smtp {
            host: "127.0.0.1".into(),
            port: 25,
            security: Security::None,
            user: None,
            password: None,
            from: "vsl@example.org".into(),
            to: vec!["ops@example.org".into()],
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(check(&smtp()), Ok(()));
        let bad = [
            Smtp { host: String::new(), ..smtp() },
            Smtp { host: "a b".into(), ..smtp() },
            Smtp { port: 0, ..smtp() },
            Smtp { to: vec![], ..smtp() },
            Smtp { to: vec!["nobody".into()], ..smtp() },
            Smtp { from: "a@b\r\nBcc: c@d".into(), ..smtp() },
            Smtp { host: "mail.example.org".into(), password: Some("p".into()), ..smtp() },
        ];
        for smtp in bad {
            assert!(check(&smtp).is_err(), "{} {} {:?}", smtp.host, smtp.from, smtp.to);
        }
    }

    #[test]
    fn the_mail_says_what_happened() {
        let alert = Alert { device: "fct0".into(), rule: "reserve".into(), cleared_ms: Some(60_000), ..trial(1000) };
        let text = String::from_utf8(message(&smtp(), &alert).expect("a mail").formatted()).expect("text");
        assert!(text.contains("Subject: [OpenVSL] fct0: reserve over"), "{text}");
        assert!(
            text.contains("raised    1970-01-01T00:00:01Z") && text.contains("cleared   1970-01-01T00:01:00Z"),
            "{text}"
        );
    }
}
