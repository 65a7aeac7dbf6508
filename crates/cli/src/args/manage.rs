//! The command line of what watches and manages the service.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::Opener;

/// `vsl account`.
#[derive(Debug, Subcommand)]
pub enum Account {
    /// List accounts and their access keys.
    List,
    /// Add an account. Its password is asked for on the terminal.
    Add {
        /// Its name.
        name: String,
        /// What it may do.
        #[arg(long, value_enum)]
        role: RoleName,
        /// File whose one line is its password.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        password_file: Option<PathBuf>,
        /// It has no password, only access keys.
        #[arg(long, conflicts_with = "password_file")]
        no_password: bool,
    },
    /// Change what an account may do, or its password.
    Change {
        /// Its name.
        name: String,
        /// What it may do.
        #[arg(long, value_enum)]
        role: Option<RoleName>,
        /// File whose one line is its new password.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        password_file: Option<PathBuf>,
    },
    /// Remove an account, with its keys and sessions.
    Remove {
        /// Its name.
        name: String,
    },
    /// Make an access key, and print it. It is shown only this time.
    Key {
        /// Whose.
        name: String,
        /// What it is for.
        #[arg(long, default_value = "")]
        note: String,
    },
    /// Remove an access key.
    RemoveKey {
        /// Whose.
        name: String,
        /// Which, as `vsl account list` shows it.
        id: String,
    },
}

/// What an account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// Read everything but accounts and the audit log.
    Viewer,
    /// Use devices without destroying what they hold.
    Operator,
    /// Everything.
    Administrator,
}

/// `vsl alerts`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  vsl alerts
  vsl alerts --history
  vsl alerts acknowledge 7 --note 'disk ordered'
  vsl alerts rule warm --metric celsius --above 60 --clear 55 --for 30
  vsl alerts rule reserve --off
  vsl alerts notify mail smtp.example.org --from vsl@example.org --to ops@example.org")]
pub struct Alerts {
    /// Those that are over, the newest first.
    #[arg(long, conflicts_with = "rules")]
    pub history: bool,
    /// The rules.
    #[arg(long)]
    pub rules: bool,
    /// What to do.
    #[command(subcommand)]
    pub what: Option<AlertsDo>,
}

/// What to do with alerts.
#[derive(Debug, Subcommand)]
pub enum AlertsDo {
    /// Say that an alert was seen.
    Acknowledge {
        /// Its number.
        id: u64,
        /// What to note.
        #[arg(long)]
        note: Option<String>,
    },
    /// Make a rule, or change one.
    Rule(AlertRule),
    /// Say who gets alerts; without a word more, show it.
    Notify(Notify),
    /// Send a trial alert to everybody who gets alerts.
    Test,
}

/// `vsl alerts notify`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Passwords and secrets are read from files, and never shown. `vsl alerts test` tries what was set.

Examples:
  vsl alerts notify
  vsl alerts notify mail smtp.example.org --from vsl@example.org --to ops@example.org,night@example.org
  vsl alerts notify mail --user vsl --password-file /etc/openvsl/mail-password
  vsl alerts notify webhook https://example.org/hook --secret-file /etc/openvsl/hook-secret
  vsl alerts notify severity critical
  vsl alerts notify mail --remove")]
pub struct Notify {
    /// What to set.
    #[command(subcommand)]
    pub what: Option<NotifyDo>,
}

/// What is set of who gets alerts.
#[derive(Debug, Subcommand)]
pub enum NotifyDo {
    /// Send alerts by mail, or change how.
    Mail(NotifyMail),
    /// Post alerts to an address, or do so no longer.
    Webhook {
        /// http:// or https://.
        url: String,
        /// File whose one line is the secret that signs what is posted.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        secret_file: Option<PathBuf>,
        /// Post nothing there any more.
        #[arg(long, conflicts_with = "secret_file")]
        remove: bool,
    },
    /// Send alerts of this severity and above.
    Severity {
        /// The least.
        #[arg(value_enum)]
        least: SeverityName,
    },
}

/// `vsl alerts notify mail`.
#[derive(Debug, Args)]
pub struct NotifyMail {
    /// Host name or address of the mail server. What is left out stays as it was.
    pub host: Option<String>,
    /// Its port [default: 587].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// How the connection is secured [default: starttls].
    #[arg(long, value_enum)]
    pub security: Option<SecurityName>,
    /// With whose name to sign in.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// File whose one line is the password.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub password_file: Option<PathBuf>,
    /// The sender's address.
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
    /// Who gets mail, with commas in between.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub to: Option<Vec<String>>,
    /// Send no mail any more.
    #[arg(long, conflicts_with_all = ["host", "port", "security", "user", "password_file", "from", "to"])]
    pub remove: bool,
}

/// How a connection to a mail server is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SecurityName {
    /// Not at all.
    None,
    /// With STARTTLS, or not used.
    Starttls,
    /// TLS from the first byte.
    Tls,
}

/// `vsl alerts rule`.
#[derive(Debug, Args)]
pub struct AlertRule {
    /// Its name.
    pub name: String,
    /// Which metric of devices; `vsl top --metrics` lists them.
    #[arg(long)]
    pub metric: Option<String>,
    /// Only of this device.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Raise it at this value and above.
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true, conflicts_with = "below")]
    pub above: Option<f64>,
    /// Raise it at this value and below.
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    pub below: Option<f64>,
    /// The value at which it is over [default: the threshold].
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    pub clear: Option<f64>,
    /// How long it must be so, seconds.
    #[arg(long = "for", value_name = "SECONDS")]
    pub for_s: Option<u32>,
    /// How bad it is.
    #[arg(long, value_enum)]
    pub severity: Option<SeverityName>,
    /// Look at it.
    #[arg(long, conflicts_with = "off")]
    pub on: bool,
    /// Do not look at it.
    #[arg(long)]
    pub off: bool,
    /// Remove it.
    #[arg(long, conflicts_with_all = ["metric", "device", "above", "below", "clear", "for_s", "severity", "on", "off"])]
    pub remove: bool,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SeverityName {
    /// Worth knowing.
    Information,
    /// Should be looked at.
    Warning,
    /// Should be looked at now.
    Critical,
}

/// `vsl audit`.
#[derive(Debug, Args)]
pub struct Audit {
    /// At most so many, 1 to 1000.
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
}

/// `vsl history`.
#[derive(Debug, Subcommand)]
pub enum History {
    /// List the devices of which there is history, attached or not.
    List,
    /// Print what was measured of a device.
    Export(HistoryExport),
}

/// `vsl history export`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Seconds are kept for six hours, minutes for 30 days, hours for two years.

Examples:
  vsl history export fct0 --last 10m > fct0.csv
  vsl history export fct0 --last 7d --resolution 1h --metrics read_iops,write_iops
  vsl history export service --last 1h --json")]
pub struct HistoryExport {
    /// A device's name or UUID; `service` for the service itself.
    pub device: String,
    /// How far back, such as 90s, 10m, 6h or 30d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    pub last: u64,
    /// How long each line's span is; by default the finest that is kept so long.
    #[arg(long, value_enum)]
    pub resolution: Option<ResolutionName>,
    /// Which metrics, with commas in between [default: all].
    #[arg(long, value_name = "NAMES")]
    pub metrics: Option<String>,
    /// Write into this file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// How long a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResolutionName {
    /// Seconds.
    #[value(name = "1s")]
    Second,
    /// Minutes.
    #[value(name = "1m")]
    Minute,
    /// Hours.
    #[value(name = "1h")]
    Hour,
}

/// `vsl top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Print the last second once, and end.
    #[arg(long)]
    pub once: bool,
    /// List what is measured, with units and meanings.
    #[arg(long)]
    pub metrics: bool,
}

/// `vsl hosts`.
#[derive(Debug, Args)]
pub struct Hosts {
    /// What to do; without it hosts are listed, and which of them has which device on objects.
    #[command(subcommand)]
    pub what: Option<HostsDo>,
    /// Also look below this address of an object store for devices that no watched host knows, with the credentials of this command.
    #[arg(long, value_name = "ADDRESS", value_parser = super::values::store_or_bucket)]
    pub store: Option<bucket::Address>,
    /// The store's endpoint, where it is not the one that the address implies.
    #[arg(long, value_name = "URL", requires = "store")]
    pub endpoint: Option<String>,
}

/// What to do with hosts.
#[derive(Debug, Subcommand)]
pub enum HostsDo {
    /// Add another host's service to this one's console.
    Add {
        /// What to call it.
        name: String,
        /// https://HOST:PORT, or http:// on loopback.
        address: String,
        /// File whose one line is an access key there. Without it the key is asked for on the terminal.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        key_file: Option<PathBuf>,
        /// The certificate that it shows, or that of who signed it, in PEM form.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        certificate: Option<PathBuf>,
    },
    /// Remove a host.
    Remove {
        /// Which.
        name: String,
    },
    /// Move a device on objects to another host: nothing is copied.
    Move(HostsMove),
}

/// `vsl hosts move`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The host that has the device detaches it, with everything in the store, and the other one attaches it with a new journal. Where \
the other one refuses, the first one attaches it again. This service is called `here`.

Examples:
  vsl hosts move db --to db2
  vsl hosts move db --to here --journal /var/lib/openvsl/db.vsl
  vsl hosts move db --from db1 --to db2 --force")]
pub struct HostsMove {
    /// The device's name on the host that has it.
    pub device: String,
    /// The host that gets it.
    #[arg(long, value_name = "HOST")]
    pub to: String,
    /// The host that has it; without it the one that does.
    #[arg(long, value_name = "HOST")]
    pub from: Option<String>,
    /// The new journal on the other host: an absolute path, or a name for a file in `journals` below its service's state directory.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Close connections of clients once what they asked for is done.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub opener: Opener,
}

/// `vsl bugreport`.
#[derive(Debug, Args)]
pub struct BugReport {
    /// The file to write.
    #[arg(short, long, value_name = "FILE", default_value = "openvsl-bugreport.tar.gz", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
}

/// Seconds in words such as 90s, 10m, 6h or 30d.
pub(super) fn parse_span(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no time; write it like 90s, 10m, 6h or 30d");
    let (number, factor) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        Some(b'd') => (&text[..text.len() - 1], 86_400),
        _ => (text, 1),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)?;
    if (1..=10 * 366 * 86_400).contains(&seconds) { Ok(seconds) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_parse() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("6h", 21_600), ("30d", 2_592_000)] {
            assert_eq!(parse_span(text), Ok(seconds), "{text}");
        }
        for text in ["", "s", "0", "-1", "1w", "1.5h", "99999999999d", "ä"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }
}
