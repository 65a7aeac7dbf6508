//! `vsl lab`.

mod asked;
mod list;
mod overwrite;
mod page;
mod predict;
mod run;
mod show;
mod waf;
mod watch;

use std::process::ExitCode;

use daemon::Failure;

use crate::args::lab::Lab;
use crate::output::Output;

pub fn lab(args: &Lab, output: Output) -> Result<ExitCode, Failure> {
    match args {
        Lab::List => list::list(output).map(|()| ExitCode::SUCCESS),
        Lab::Show(args) => show::show(args, output).map(|()| ExitCode::SUCCESS),
        Lab::Run(args) => run::run(args, output),
        Lab::Resume(args) => run::resume(args, output),
        Lab::Compare(args) => show::compare(args, output).map(|()| ExitCode::SUCCESS),
        Lab::Predict => predict::predict().map(|()| ExitCode::SUCCESS),
        Lab::Waf(args) => waf::waf(args, output),
        Lab::Report(args) => show::report(args, output).map(|()| ExitCode::SUCCESS),
    }
}
