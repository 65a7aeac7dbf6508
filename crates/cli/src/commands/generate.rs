//! `vsl completions` and `vsl man`, from the one definition of the command line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use daemon::Failure;

use crate::args::Cli;
use crate::output;

pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "vsl", &mut text);
    output::raw(&text)
}

pub fn man(directory: Option<&Path>) -> Result<(), Failure> {
    match directory {
        Some(directory) => std::fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
            .map_err(|error| Failure::io(directory, &error)),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(|error| Failure::failed(format!("the man page: {error}")))?;
            output::raw(&page)
        }
    }
}
