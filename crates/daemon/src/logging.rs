//! Where log lines go: standard error, which systemd hands to the journal.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::Failure;

/// Starts logging. `filter` is what `--log` says, in the words of `RUST_LOG`, which counts when it is absent,
/// and `otherwise` when that is absent too.
///
/// # Errors
/// The filter does not parse.
pub fn start(filter: Option<&str>, otherwise: &str) -> Result<(), Failure> {
    let text = match filter {
        Some(filter) => filter.to_string(),
        None => std::env::var("RUST_LOG").unwrap_or_else(|_| otherwise.into()),
    };
    let filter = EnvFilter::try_new(&text).map_err(|error| {
        Failure::invalid(format!("'{text}' is not a log filter: {error}"))
            .help("write a level (error, warn, info, debug, trace), or part=level with commas between")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // The journal stamps each line itself. A second subscriber in one process changes nothing.
    let _ = if std::env::var_os("JOURNAL_STREAM").is_some() {
        builder.without_time().try_init()
    } else {
        builder.try_init()
    };
    Ok(())
}
