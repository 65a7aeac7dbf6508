//! Every command that a message, a help text or a page recommends is one that there is.

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ErrorKind};
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

/// What stands in backquotes and begins with the program's name, or behind a prompt.
fn recommended(text: &str) -> Vec<String> {
    let quoted = text.split('`').filter(|piece| piece.starts_with("vsl ") && !piece.contains('\n'));
    let joined = text.replace("\\\n", " ");
    let typed = joined.lines().filter_map(|line| line.trim_start().strip_prefix("$ "));
    quoted.map(str::to_string).chain(typed.filter(|line| line.starts_with("vsl ")).map(str::to_string)).collect()
}

/// What is wrong with a command, as the program itself would say. Names in capitals or braces stand for something; what is left
/// out, behind the words that are there, is the reader's to add.
fn wrong(command: &Command, words: &str) -> Option<String> {
    let end = words.find([';', '|', '>', '<', '#', '&', '$']).unwrap_or(words.len());
    let in_capitals = |word: &str| word.contains(char::is_uppercase) && !word.contains(char::is_lowercase);
    let stands_for = |word: &str| word.contains(['{', '}', '…']) || word.contains("...") || in_capitals(word);
    let words = words[..end].replace(['[', ']'], " ");
    let words = shlex::split(&words)?
        .into_iter()
        .filter(|word| !["...", "\\"].contains(&word.as_str()) && !word.starts_with("--{"));
    // A word in braces in the place of the subcommand stands for any.
    let words: Vec<String> = words.map(|word| word.trim_end_matches([',', '.', ':', '\\']).to_string()).collect();
    if words.get(1).is_none_or(|word| stands_for(word)) {
        return None;
    }
    let error = command.clone().try_get_matches_from(&words).err()?;
    // A word that wants a value ends the command where the text goes on.
    if error.get(ContextKind::InvalidValue).is_some_and(|value| value.to_string().is_empty()) {
        return None;
    }
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand | ErrorKind::ArgumentConflict => {}
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if !words.iter().any(|word| stands_for(word)) => {}
        _ => return None,
    }
    Some(error.to_string().lines().next().unwrap_or_default().to_string())
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
    for words in [
        "vsl lab waf --no-such-option",
        "vsl atach x.vsl",
        "vsl status --fielt uri",
        "vsl lab waff",
        "vsl create x --size big",
        "vsl rebuild disk 1x",
    ] {
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
