//! `vsl alerts notify`.

use daemon::Failure;
use daemon::api::{Notifications, Security, Severity, Smtp, Webhook};
use hyper::Method;

use super::access::secret;
use crate::args::manage::{Notify, NotifyDo, NotifyMail, SecurityName};
use crate::client::Client;
use crate::output::Output;

/// Where mail is handed in.
const PORT: u16 = 587;

pub const NOBODY: &str = "nobody gets alerts; `vsl alerts notify --help` says how somebody does\n";

pub fn notify(client: &Client, args: &Notify, output: Output) -> Result<(), Failure> {
    let mut to: Notifications = client.get("/notifications")?;
    match &args.what {
        None => return output.result(&to, || text(&to)),
        Some(NotifyDo::Severity { least }) => to.least_severity = Severity::from(*least),
        Some(NotifyDo::Mail(mail)) if mail.remove => to.smtp = None,
        Some(NotifyDo::Mail(mail)) => to.smtp = Some(smtp(to.smtp, mail)?),
        Some(NotifyDo::Webhook { url, remove: true, .. }) => {
            let before = to.webhooks.len();
            to.webhooks.retain(|hook| hook.url != *url);
            if to.webhooks.len() == before {
                return Err(Failure::not_found(format!("alerts are not posted to '{}'", url.escape_debug()))
                    .help("`vsl alerts notify` shows where they are"));
            }
        }
        Some(NotifyDo::Webhook { url, secret_file, .. }) => {
            let secret = secret_file.as_deref().map(|file| secret(Some(file), "secret")).transpose()?;
            match to.webhooks.iter_mut().find(|hook| hook.url == *url) {
                Some(hook) => hook.secret = secret,
                None => to.webhooks.push(Webhook { url: url.clone(), secret }),
            }
        }
    }
    let set: Notifications = client.send(Method::PUT, "/notifications", &to)?;
    output.result(&set, || text(&set))
}

/// The mail server as it was, with what is given. The service keeps a password that is not given anew.
fn smtp(old: Option<Smtp>, args: &NotifyMail) -> Result<Smtp, Failure> {
    let mut smtp = match (old, &args.host, &args.from, &args.to) {
        (Some(old), ..) => old,
        (None, Some(host), Some(from), Some(to)) => Smtp {
            host: host.clone(),
            port: PORT,
            security: Security::Starttls,
            user: None,
            password: None,
            from: from.clone(),
            to: to.clone(),
        },
        (None, ..) => {
            return Err(Failure::invalid("no mail is sent yet").help("give the mail server's host, --from and --to"));
        }
    };
    smtp.host = args.host.clone().unwrap_or(smtp.host);
    smtp.port = args.port.unwrap_or(smtp.port);
    smtp.security = args.security.map_or(smtp.security, Security::from);
    smtp.user = args.user.clone().or(smtp.user);
    smtp.password = args.password_file.as_deref().map(|file| secret(Some(file), "password")).transpose()?;
    smtp.from = args.from.clone().unwrap_or(smtp.from);
    smtp.to = args.to.clone().unwrap_or(smtp.to).iter().map(|one| one.trim().to_string()).collect();
    Ok(smtp)
}

impl From<SecurityName> for Security {
    fn from(name: SecurityName) -> Security {
        match name {
            SecurityName::None => Security::None,
            SecurityName::Starttls => Security::Starttls,
            SecurityName::Tls => Security::Tls,
        }
    }
}

fn text(to: &Notifications) -> String {
    if to.smtp.is_none() && to.webhooks.is_empty() {
        return NOBODY.into();
    }
    let mut text = format!("severity  {} and above\n", to.least_severity.name());
    if let Some(smtp) = &to.smtp {
        let security = match smtp.security {
            Security::None => "in the clear",
            Security::Starttls => "starttls",
            Security::Tls => "tls",
        };
        let user = smtp.user.as_ref().map(|user| format!(", as {user}")).unwrap_or_default();
        let receivers = smtp.to.join(", ");
        text.push_str(&format!(
            "mail      {}:{}, {security}{user}, from {} to {receivers}\n",
            smtp.host, smtp.port, smtp.from
        ));
    }
    for hook in &to.webhooks {
        text.push_str(&format!("webhook   {}\n", hook.url));
    }
    text
}
