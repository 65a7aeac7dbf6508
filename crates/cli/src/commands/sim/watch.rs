//! Progress of a run, and Ctrl-C.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use daemon::Failure;
use indicatif::ProgressBar;
use lab::engine::{Position, Progress};
use lab::results::clock;

use crate::output::Output;
use crate::progress::{Interrupt, bar};

/// Steps of the bar in a phase.
const STEPS: u64 = 10_000;
/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(200);

/// Shows where a run stands, and ends it on Ctrl-C.
pub struct Watch {
    bar: ProgressBar,
    interrupt: Interrupt,
    phase: usize,
    phase_began: Instant,
    drawn: Instant,
}

impl Watch {
    /// A first Ctrl-C ends the run and prints its results, a second one ends the program.
    pub fn new(output: Output) -> Result<Watch, Failure> {
        let interrupt = Interrupt::listen()?;
        let bar = bar(output, "{prefix} [{wide_bar}] {percent} % {msg}")?;
        bar.set_length(STEPS);
        let now = Instant::now();
        Ok(Watch { bar, interrupt, phase: usize::MAX, phase_began: now, drawn: now })
    }

    /// The run is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Watch {
    fn at(&mut self, position: &Position<'_>) -> ControlFlow<()> {
        if self.interrupt.came() {
            return ControlFlow::Break(());
        }
        let now = Instant::now();
        let begun = self.phase != position.phase;
        if begun {
            (self.phase, self.phase_began) = (position.phase, now);
        }
        if begun || now - self.drawn >= TICK {
            self.drawn = now;
            self.bar.set_prefix(format!("{} ({}/{})", position.name, position.phase + 1, position.phases));
            self.bar.set_message(format!(
                "at {}{}",
                clock(position.now),
                remaining(now - self.phase_began, position.done)
            ));
            self.bar.set_position((position.done * STEPS as f64) as u64);
        }
        ControlFlow::Continue(())
    }
}

/// How long the phase takes on, once enough of it is done to tell.
fn remaining(spent: Duration, done: f64) -> String {
    if done < 0.01 || spent < Duration::from_secs(1) {
        return String::new();
    }
    let seconds = spent.as_secs_f64() * (1.0 - done) / done;
    format!(", {:.0} s to go in this phase", seconds.ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_told_from_what_is_done() {
        assert_eq!(remaining(Duration::from_secs(10), 0.001), "");
        assert_eq!(remaining(Duration::from_secs(10), 0.25), ", 30 s to go in this phase");
    }
}
