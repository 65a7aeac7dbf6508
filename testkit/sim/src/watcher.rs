//! Whoever called `vsl-sim`: a bar on the terminal, a time after which it is enough, and Ctrl-C.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::SIGINT;
use sim::Watch;

/// Exit status after Ctrl-C: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

pub struct Watcher {
    bar: ProgressBar,
    until: Option<Instant>,
    interrupted: Arc<AtomicBool>,
}

impl Watcher {
    /// Ends what it watches after that time, or when Ctrl-C is pressed; pressed again, it ends the program.
    ///
    /// # Errors
    /// The operating system refuses the handler.
    pub fn new(at_most: Option<Duration>) -> std::io::Result<Watcher> {
        let interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&interrupted))?;
        signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;
        let until = at_most.and_then(|most| Instant::now().checked_add(most));
        Ok(Watcher { bar: ProgressBar::hidden(), until, interrupted })
    }

    /// What is counted, and which are the first and the last of it.
    pub fn expect(&self, what: &'static str, first: u64, last: u64) {
        let style = ProgressStyle::with_template("{prefix} {pos} of {len} [{bar:40}] {elapsed}, {eta} to go");
        self.bar.set_style(style.expect("the template is one").progress_chars("=> "));
        self.bar.set_prefix(what);
        self.bar.set_length(last);
        // What was done before is no measure of what there is to do.
        self.bar.set_position(first);
        self.bar.reset_eta();
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
    }

    /// It is over; `next` would be the next one, unless all are done.
    pub fn end(&self, next: u64, done: bool) -> ExitCode {
        self.bar.finish_and_clear();
        if !done {
            println!("ended before all were done; the rest with: --from {next}");
        }
        if self.interrupted.load(Ordering::Relaxed) { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS }
    }
}

impl Watch for Watcher {
    fn begins(&self, number: u64) {
        self.bar.set_position(number);
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
