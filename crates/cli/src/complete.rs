//! What can stand in the place of an argument, for shells that complete it: devices that are attached, data sheets, settings, policies.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use daemon::api::DeviceView;
use daemon::{Paths, settings};
use device::Durability;

use crate::client::Client;

/// The variable that a shell's script sets to ask for completions.
pub const VARIABLE: &str = "VSL_COMPLETE";

/// Gives the arguments of every command their candidates, by their names.
pub fn with_candidates(command: Command) -> Command {
    let name = command.get_name().to_string();
    let command = command.mut_args(|argument| match candidates(&name, argument.get_id().as_str()) {
        Some(completer) => Arg::add(argument, completer),
        None => argument,
    });
    let below: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_string()).collect();
    below.into_iter().fold(command, |command, below| command.mut_subcommand(below, with_candidates))
}

fn candidates(command: &str, argument: &str) -> Option<ArgValueCompleter> {
    let of = |list: fn() -> Vec<String>| Some(ArgValueCompleter::new(move |current: &OsStr| fitting(&list(), current)));
    match (command, argument) {
        ("sim" | "published", "device") | (_, "profile" | "emulate") => of(sheets),
        (_, "device" | "devices") => Some(ArgValueCompleter::new(devices_and_files)),
        (_, "setting") => of(|| settings::MEANINGS.iter().map(|(name, _)| (*name).into()).collect()),
        ("config", "value") => of(values),
        (_, "groomer" | "policy") => of(policies),
        (_, "field") => of(|| telemetry::table::fields().map(|field| field.name.into()).collect()),
        (_, "workload") => of(|| lab::workload::names().iter().map(|named| named.name.into()).collect()),
        (_, "protocol") => of(|| lab::protocol::shipped().iter().map(|file| file.name.into()).collect()),
        _ => None,
    }
}

fn fitting(list: &[String], current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy();
    list.iter().filter(|name| name.starts_with(begun.as_ref())).map(CompletionCandidate::new).collect()
}

/// A service that does not answer has no devices.
fn devices_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let asked = Client::new(&Paths::from_environment()).and_then(|client| client.get::<Vec<DeviceView>>("/devices"));
    let names: Vec<String> = asked.unwrap_or_default().into_iter().map(|view| view.text("name").to_string()).collect();
    let mut found = fitting(&names, current);
    found.extend(PathCompleter::any().complete(current));
    found
}

fn sheets() -> Vec<String> {
    profile::all().unwrap_or_default().into_iter().map(|profile| profile.name).collect()
}

fn policies() -> Vec<String> {
    card::Policy::ALL.iter().map(|policy| policy.name().to_string()).collect()
}

/// Values of every setting: which one it is, the shell does not say.
fn values() -> Vec<String> {
    let durability = Durability::ALL.iter().map(|mode| mode.name().to_string());
    ["on", "off"].map(String::from).into_iter().chain(durability).chain(policies()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        let complete = |command: &str, argument: &str, begun: &str| -> Vec<String> {
            let found = candidates(command, argument).expect("candidates").complete(OsStr::new(begun));
            found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(complete("create", "profile", "iodrive2-1"), ["iodrive2-1200-mlc"]);
        assert_eq!(complete("config", "setting", "tr"), ["trim"]);
        assert_eq!(complete("config", "value", "cost"), ["cost-benefit"]);
        assert_eq!(complete("waf", "policy", "fi"), ["fifo"]);
        assert_eq!(complete("status", "field", "write_amp"), ["write_amplification"]);
        assert!(complete("run", "protocol", "snia-pts-l").contains(&"snia-pts-latency".to_string()));
        assert!(candidates("up", "foreground").is_none());
    }
}
