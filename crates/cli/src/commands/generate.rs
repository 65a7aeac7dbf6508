//! `vsl completions`.

use clap_complete::Shell;
use clap_complete::env::Shells;
use daemon::Failure;

use crate::complete::VARIABLE;
use crate::output;

/// A script that asks this program what can stand where, so that devices, data sheets, settings and policies are completed too.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let shell = shell.to_string();
    let mut text = Vec::new();
    let written = match Shells::builtins().completer(&shell) {
        Some(completer) => completer.write_registration(VARIABLE, "vsl", "vsl", "vsl", &mut text),
        None => return Err(Failure::invalid(format!("no completions are known for {shell}"))),
    };
    written.map_err(|error| Failure::failed(format!("the completions: {error}")))?;
    output::raw(&text)
}
