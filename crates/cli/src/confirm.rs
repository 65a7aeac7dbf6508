//! Asking before something is destroyed, or more is taken than one would expect.

use std::io::{BufRead, IsTerminal, Write};

use daemon::Failure;

/// Whether somebody can be asked: a script's input or messages go elsewhere, though its terminal may be open to it.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows `what` will be lost and waits for `answer` to be typed.
///
/// # Errors
/// The user says otherwise, or there is no terminal to ask on.
pub fn ask(what: &str, question: &str, answer: &str) -> Result<(), Failure> {
    ask_before(&format!("destroy {what}"), question, answer)
}

/// Shows what this would do and waits for `answer` to be typed.
///
/// # Errors
/// The user says otherwise, or there is no terminal to ask on.
pub fn ask_before(deed: &str, question: &str, answer: &str) -> Result<(), Failure> {
    if !is_possible() {
        return Err(Failure::conflict(format!("this would {deed}; there is no terminal to ask on"))
            .help("add --yes if that is meant"));
    }
    let mut line = String::new();
    let mut err = std::io::stderr();
    let asked = writeln!(err, "This would {deed}.")
        .and_then(|()| write!(err, "{question} "))
        .and_then(|()| err.flush())
        .and_then(|()| std::io::stdin().lock().read_line(&mut line));
    match asked {
        Ok(_) if line.trim() == answer => Ok(()),
        Ok(_) => Err(Failure::conflict("not confirmed: nothing was changed")),
        Err(error) => Err(Failure::failed(format!("the terminal: {error}"))),
    }
}
