//! Every command that a message, a help text or a page recommends is one that there is.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use super::Cli;

/// Files of the tree that people read something from.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    const LEFT_OUT: [&str; 5] = ["target", "node_modules", "dist", ".git", "run"];
    for entry in std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
            sources(&entry, found);
        } else if [".rs", ".ts", ".tsx", ".md"].iter().any(|end| name.ends_with(end)) {
            found.push(entry);
        }
    }
}

/// What stands in backquotes and begins with the program's name.
fn recommended(text: &str) -> Vec<String> {
    let pieces = text.split('`').skip(1).step_by(2);
    pieces.filter(|piece| piece.starts_with("vsl ") && !piece.contains('\n')).map(str::to_string).collect()
}

/// What is wrong with a command: a word that is no subcommand where there must be one, or an option that it lacks.
fn wrong(command: &Command, words: &str) -> Option<String> {
    let mut at = command;
    let mut path = vec!["vsl"];
    let mut begun = false;
    for word in words.split_whitespace().skip(1) {
        let word = word.trim_matches(|c: char| matches!(c, '[' | ']' | ',' | '(' | ')' | '"' | '\''));
        let option = word.split('=').next().unwrap_or_default();
        if let Some(long) = option.strip_prefix("--").filter(|long| !long.is_empty() && !long.contains(['{', '<'])) {
            let known = |command: &Command| {
                let mut arguments = command.get_arguments();
                arguments.any(|argument| {
                    let aliases = argument.get_all_aliases().unwrap_or_default();
                    argument.get_long() == Some(long) || aliases.contains(&long)
                })
            };
            if !known(at) && !known(command) && !matches!(long, "help" | "version") {
                return Some(format!("{} has no --{long}", path.join(" ")));
            }
        } else if let Some(next) = at.find_subcommand(word) {
            path.push(next.get_name());
            at = next;
        } else if !begun
            && path.len() == 1
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
            && !word.starts_with('-')
        {
            return Some(format!("there is no vsl {word}"));
        }
        begun = true;
    }
    None
}

#[test]
fn every_recommended_command_exists() {
    let mut command = Cli::command();
    command.build();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for directory in ["crates", "console/src", "docs"] {
        sources(&root.join(directory), &mut files);
    }
    files.push(root.join("README.md"));
    let (mut count, mut mistakes) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("read");
        // Escaped where a program writes another's text.
        for words in recommended(&text.replace("\\`", "`")) {
            count += 1;
            if let Some(what) = wrong(&command, &words) {
                mistakes.push(format!("{}: `{words}`: {what}", file.display()));
            }
        }
    }
    assert!(count > 150, "only {count} commands were found");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn what_does_not_exist_is_found() {
    let mut command = Cli::command();
    command.build();
    for words in ["vsl lab waf --no-such-option", "vsl atach x.vsl", "vsl status --fielt uri"] {
        assert!(wrong(&command, words).is_some(), "{words}");
    }
    for words in [
        "vsl attach --witness FILE",
        "vsl status -a",
        "vsl drill {name} undo NAME",
        "vsl rebuild DEVICE DIE --onto FILE",
    ] {
        assert_eq!(wrong(&command, words), None, "{words}");
    }
}
