//! The lights on a module's bracket, as the original's guide lists their states.

use serde::Serialize;

use crate::device::Nanos;

/// How long a light shows one request.
const GLOW: Nanos = 50_000_000;

/// What the lights say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leds {
    /// The module switched itself off.
    Off,
    /// Attached, and nobody asks anything.
    Attached,
    /// Reads.
    Reading,
    /// Writes, with or without reads.
    Writing,
    /// All lit, so that it can be found.
    Beacon,
}

/// When something was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    pub read: Option<Nanos>,
    pub write: Option<Nanos>,
    pub beacon: bool,
}

impl Activity {
    /// What the lights say at `now`.
    pub fn leds(&self, now: Nanos, shut_down: bool) -> Leds {
        let lately = |at: Option<Nanos>| at.is_some_and(|at| now.saturating_sub(at) <= GLOW);
        match () {
            () if shut_down => Leds::Off,
            () if self.beacon => Leds::Beacon,
            () if lately(self.write) => Leds::Writing,
            () if lately(self.read) => Leds::Reading,
            () => Leds::Attached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lights_follow_what_is_asked() {
        let mut activity = Activity::default();
        assert_eq!(activity.leds(0, false), Leds::Attached);
        activity.read = Some(1000);
        assert_eq!(activity.leds(2000, false), Leds::Reading);
        activity.write = Some(3000);
        assert_eq!(activity.leds(4000, false), Leds::Writing);
        assert_eq!(activity.leds(4000 + 2 * GLOW, false), Leds::Attached);
        activity.beacon = true;
        assert_eq!(activity.leds(4000, false), Leds::Beacon);
        assert_eq!(activity.leds(4000, true), Leds::Off);
    }
}
