//! The command line as it is shown: commands in groups, and what all of them share, for help, man pages and completions.

use clap::CommandFactory;

use crate::args::Cli;
use crate::complete;

/// The commands, by what they are for.
const GROUPS: &[(&str, &[&str])] = &[
    ("Service", &["up", "down", "console", "account", "hosts", "audit", "doctor", "bugreport"]),
    (
        "Devices",
        &[
            "create",
            "attach",
            "detach",
            "connect",
            "disconnect",
            "scan",
            "config",
            "trim",
            "beacon",
            "format",
            "resize",
            "migrate",
            "cache",
            "serve",
            "kv",
        ],
    ),
    ("State", &["status", "top", "history", "events", "alerts"]),
    (
        "Safety of data",
        &[
            "array",
            "objects",
            "snapshot",
            "clone",
            "backup",
            "restore",
            "scrub",
            "optimise",
            "rebuild",
            "key",
            "sure-erase",
            "drill",
        ],
    ),
    ("Models and tests", &["sim", "profiles", "published", "lab", "trace"]),
    ("Help", &["help", "completions", "man"]),
];

/// Variables of the environment that count, with their meanings.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("OPENVSL_RUNTIME_DIR", "sockets and lock [default: /run/openvsl, or in XDG_RUNTIME_DIR]"),
    ("OPENVSL_STATE_DIR", "what is remembered [default: /var/lib/openvsl, or in XDG_STATE_HOME]"),
    ("OPENVSL_STAGING_DIR", "memory for what is answered and not on media [default: beside the sockets]"),
    ("OPENVSL_IO", "`threads` does without io_uring, as is done by itself where that is forbidden"),
    ("RUST_LOG", "what to log where --log does not say it"),
    ("NO_COLOR", "no colours; TERM=dumb says the same"),
];

/// Files that the program uses, with their meanings.
pub const FILES: &[(&str, &str)] = &[
    ("/run/openvsl/api.sock", "the service's API; only its user and group, and root, may use it"),
    ("/run/openvsl/nbd.sock", "the NBD server"),
    ("/var/lib/openvsl/devices.toml", "devices to attach at start"),
    ("/var/lib/openvsl/openvsl.log", "the log of a service that `vsl up` started"),
    ("/etc/default/openvsl", "VSL_OPTIONS, the options of the service under systemd"),
];

/// What exit statuses say.
pub const EXIT_STATUS: &[(u8, &str)] = &[
    (0, "done"),
    (1, "failed"),
    (2, "the command line, or what it asks for, makes no sense"),
    (3, "missing: no such device, file or run, or no service"),
    (4, "busy: in use, connected, there already, or not confirmed"),
    (5, "denied: no permission, or a wrong key"),
    (130, "ended by Ctrl-C"),
];

/// The definition of the command line, with everything that is shown of it.
pub fn command() -> clap::Command {
    let command = complete::with_candidates(Cli::command());
    let template = template(&command);
    command.version(env!("VSL_VERSION")).help_template(template).after_long_help(after())
}

/// Lines of names and meanings below each other.
pub fn pairs<'a>(pairs: impl Iterator<Item = (String, &'a str)> + Clone) -> String {
    let width = pairs.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    pairs.map(|(name, meaning)| format!("  {name:width$}  {meaning}\n")).collect()
}

fn after() -> String {
    let named = |list: &'static [(&str, &'static str)]| list.iter().map(|(name, meaning)| ((*name).into(), *meaning));
    let status = pairs(EXIT_STATUS.iter().map(|(code, meaning)| (code.to_string(), *meaning)));
    format!("Environment:\n{}\nExit status:\n{status}", pairs(named(ENVIRONMENT)))
}

/// The program's own help: its commands in groups.
fn template(command: &clap::Command) -> String {
    let about = |name: &str| match command.find_subcommand(name) {
        Some(found) => found.get_about().map(ToString::to_string).unwrap_or_default(),
        None => "Show the help of a command".into(),
    };
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let mut commands = String::new();
    for (group, names) in GROUPS {
        commands.push_str(&format!("\n{group}:\n"));
        for name in *names {
            commands.push_str(&format!("  {name:width$}  {}\n", about(name).trim_end_matches('.')));
        }
    }
    format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{commands}\nOptions:\n{{options}}{{after-help}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let mut there: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        there.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(there, grouped);
    }

    #[test]
    fn every_kind_of_failure_has_an_exit_status() {
        use daemon::Kind;
        for kind in [
            Kind::Invalid,
            Kind::NotFound,
            Kind::Conflict,
            Kind::Forbidden,
            Kind::Failed,
            Kind::Method,
            Kind::Unauthenticated,
            Kind::TooMany,
            Kind::Unreachable,
        ] {
            let status = crate::output::exit_status(kind);
            assert!(status > 0 && EXIT_STATUS.iter().any(|(known, _)| *known == status), "{kind:?}");
        }
    }
}
