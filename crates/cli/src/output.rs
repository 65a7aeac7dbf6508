//! What goes to standard output and standard error.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use daemon::{Failure, Kind};
use serde::Serialize;

mod json;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// As JSON.
    pub json: bool,
}

impl Output {
    /// Prints the result: as JSON or as text, whichever is wanted.
    ///
    /// # Errors
    /// Standard output takes nothing.
    pub fn result(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json {
            let mut line = serde_json::to_value(value)
                .and_then(|value| serde_json::to_string_pretty(&json::shown(value)))
                .map_err(|error| Failure::failed(format!("the result cannot be written as JSON: {error}")))?;
            line.push('\n');
            raw(line.as_bytes())
        } else {
            raw(text().as_bytes())
        }
    }

    /// A remark for people, on standard error; with JSON there is nobody to read it.
    pub fn note(self, text: &str) {
        if !self.json {
            // Nobody listens on standard error: then a remark is lost, and nothing else.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Prints a failure, and gives the exit code that goes with it.
    pub fn failure(self, failure: &Failure) -> ExitCode {
        let text = if self.json {
            serde_json::to_string(failure).unwrap_or_else(|_| failure.to_string())
        } else {
            let (red, bold, plain) = if coloured() { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
            match failure.help.as_str() {
                "" => format!("{red}error:{plain} {}", failure.error),
                help => format!("{red}error:{plain} {}\n{bold}help:{plain} {help}", failure.error),
            }
        };
        // As in `note`.
        let _ = writeln!(std::io::stderr(), "{text}");
        ExitCode::from(exit_status(failure.kind))
    }
}

/// What the program ends with after a failure; [`crate::command::EXIT_STATUS`] says it to people.
pub fn exit_status(kind: Kind) -> u8 {
    match kind {
        Kind::Invalid | Kind::Method => 2,
        Kind::NotFound => 3,
        Kind::Conflict | Kind::TooMany => 4,
        Kind::Forbidden | Kind::Unauthenticated => 5,
        Kind::Failed | Kind::Unreachable => 1,
    }
}

/// Whether standard error is a terminal that shows colours, and nobody asked for none (<https://no-color.org>).
fn coloured() -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    std::io::stderr().is_terminal() && !no_colour && !dumb
}

/// Writes to standard output. A reader that has had enough (`| head`) is no error: the program ends quietly.
///
/// # Errors
/// Anything else, such as a full disk.
pub fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::failed(format!("standard output: {error}"))),
    }
}
