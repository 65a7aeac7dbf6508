//! What is shown while something takes its time, and what Ctrl-C does meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use daemon::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::SIGINT;

use crate::output::Output;

/// Exit status after Ctrl-C: 128 and the signal's number.
pub const INTERRUPTED: u8 = 130;

/// A progress bar of this template on standard error; nothing where that is no terminal, or with JSON.
///
/// # Errors
/// The template is none.
pub fn bar(output: Output, template: &str) -> Result<ProgressBar, Failure> {
    let target = if output.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template(template)
        .map_err(|error| Failure::failed(format!("the progress bar: {error}")))?;
    Ok(ProgressBar::with_draw_target(Some(0), target).with_style(style.progress_chars("=> ")))
}

/// Whether Ctrl-C was pressed. A first one is told here, so that what was measured can be printed; a second one ends the program.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from the first call on. Every call gives the same answer, so that a command of several steps misses none between them.
    ///
    /// # Errors
    /// The operating system refuses the handler.
    pub fn listen() -> Result<Interrupt, Failure> {
        static LISTENING: OnceLock<Interrupt> = OnceLock::new();
        if let Some(listening) = LISTENING.get() {
            return Ok(listening.clone());
        }
        let told = Arc::new(AtomicBool::new(false));
        let failed = |error: std::io::Error| Failure::failed(format!("signals: {error}"));
        signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&told))
            .map_err(failed)?;
        signal_hook::flag::register(SIGINT, Arc::clone(&told)).map_err(failed)?;
        Ok(LISTENING.get_or_init(|| Interrupt(told)).clone())
    }

    /// Whether it came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two steps of a command nobody looks; the next step must know all the same.
    #[test]
    fn ctrl_c_between_two_steps_is_told_to_the_second() {
        let first = Interrupt::listen().unwrap();
        assert!(!first.came());
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert!(Interrupt::listen().unwrap().came());
        assert!(first.came());
    }
}
