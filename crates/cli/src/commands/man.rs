//! Man pages, from the one definition of the command line.

use std::fmt::Write;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use daemon::Failure;

use crate::command::{ENVIRONMENT, EXIT_STATUS, FILES, command};
use crate::output;

/// What stands before the examples of a command's help.
const EXAMPLES: &str = "Examples:\n";

pub fn man(directory: Option<&Path>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("the man page: {error}"));
    let mut whole = command().disable_help_subcommand(true);
    whole.build();
    let Some(directory) = directory else { return output::raw(&page(&whole).map_err(failed)?) };
    std::fs::create_dir_all(directory).map_err(|error| Failure::io(directory, &error))?;
    pages(&whole, directory)
}

/// A page for each command, those below it first.
fn pages(command: &Command, directory: &Path) -> Result<(), Failure> {
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| pages(below, directory))?;
    let path = directory.join(Man::new(command.clone()).get_filename());
    page(command).and_then(|page| std::fs::write(&path, page)).map_err(|error| Failure::io(&path, &error))
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = after.split_once(EXAMPLES).unwrap_or((&after, ""));
    // What the help of the program itself says behind its options stands in sections of their own.
    let is_program = command.get_version().is_some();
    if !is_program {
        notes.split("\n\n").filter(|text| !text.trim().is_empty()).for_each(|text| {
            page.extend_from_slice(
                format!(".PP\n{}\n", text.trim().lines().map(line).collect::<Vec<_>>().join("\n.br\n")).as_bytes(),
            );
        });
    }
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend_from_slice(common(examples).as_bytes());
    if is_program {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// Examples that can be copied, and what all commands share.
fn common(examples: &str) -> String {
    let mut text = String::new();
    let mut section = |name: &str, body: &str| {
        if !body.is_empty() {
            // A string takes whatever is written to it.
            let _ = write!(text, ".SH {name}\n{body}");
        }
    };
    let lines: String =
        examples.lines().map(|example| line(example.strip_prefix("  ").unwrap_or(example)) + "\n").collect();
    section("EXAMPLES", &if lines.is_empty() { String::new() } else { format!(".nf\n{lines}.fi\n") });
    let tagged = |name: &str, meaning: &str| format!(".TP\n\\fB{}\\fR\n{}\n", line(name), line(meaning));
    section("ENVIRONMENT", &ENVIRONMENT.iter().map(|(name, meaning)| tagged(name, meaning)).collect::<String>());
    section("FILES", &FILES.iter().map(|(name, meaning)| tagged(name, meaning)).collect::<String>());
    let statuses = EXIT_STATUS.iter().map(|(code, meaning)| tagged(&code.to_string(), meaning));
    section("EXIT STATUS", &statuses.collect::<String>());
    text
}

/// A line of text as roff takes it: a hyphen is one that can be copied, and no line is a request.
fn line(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(names: &[&str]) -> String {
        let mut whole = command();
        whole.build();
        let found = names.iter().try_fold(&whole, |command, name| command.find_subcommand(name)).expect("a command");
        String::from_utf8(page(found).expect("a page")).expect("text")
    }

    #[test]
    fn a_page_has_the_sections_of_a_man_page() {
        let page = page_of(&["create"]);
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        let expected =
            ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "ENVIRONMENT", "FILES", "\"EXIT STATUS\""];
        let same = |section: &&str| section.trim_matches('"').to_string();
        assert_eq!(sections.iter().map(same).collect::<Vec<_>>(), expected.iter().map(same).collect::<Vec<_>>());
        assert!(page.contains(".nf\nvsl create scratch.vsl \\-\\-size 64GiB\n"), "{page}");
        assert!(page_of(&["lab", "report"]).contains("vsl lab report RUN\n"));
        assert!(page_of(&[]).contains(".SH VERSION"));
    }

    #[test]
    fn no_text_is_a_request() {
        assert_eq!(line(".profile"), "\\&.profile");
        assert_eq!(line("a\\b --c"), "a\\eb \\-\\-c");
    }
}
