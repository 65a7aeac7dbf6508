//! Progress of a run of a protocol, and Ctrl-C.

use std::ops::ControlFlow;
use std::time::Duration;

use daemon::Failure;
use indicatif::ProgressBar;
use lab::run::{Status, Watch};

use crate::output::Output;
use crate::progress::{Interrupt, bar};

/// Steps of the bar.
const STEPS: u64 = 10_000;

/// Shows where a run stands, and ends it on Ctrl-C.
pub struct Board {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl Board {
    /// A first Ctrl-C ends the run, which can be resumed; a second one ends the program.
    pub fn new(output: Output) -> Result<Board, Failure> {
        let interrupt = Interrupt::listen()?;
        let bar = bar(output, "{prefix} [{bar:30}] {percent} %, {msg}")?;
        bar.set_length(STEPS);
        Ok(Board { bar, interrupt })
    }

    /// The run is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Board {
    fn at(&self, status: &Status) -> ControlFlow<()> {
        if self.interrupt.came() {
            return ControlFlow::Break(());
        }
        self.bar.set_prefix(format!("{}/{} tests", status.parts_done, status.parts));
        self.bar.set_position((status.done * STEPS as f64) as u64);
        self.bar.set_message(format!("{}; {}", remaining(status.remaining), status.now.join(" | ")));
        ControlFlow::Continue(())
    }
}

/// How long it still takes, no more exactly than is known.
fn remaining(time: Option<Duration>) -> String {
    let Some(time) = time else { return "how long it takes is not known yet".into() };
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("about {} s to go", seconds.max(1)),
        60..5_400 => format!("about {} min to go", seconds.div_ceil(60)),
        _ => format!("about {:.1} h to go", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_said_as_exactly_as_it_is_known() {
        assert_eq!(remaining(None), "how long it takes is not known yet");
        assert_eq!(remaining(Some(Duration::from_millis(200))), "about 1 s to go");
        assert_eq!(remaining(Some(Duration::from_secs(90))), "about 2 min to go");
        assert_eq!(remaining(Some(Duration::from_secs(9000))), "about 2.5 h to go");
    }
}
