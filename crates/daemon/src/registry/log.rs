//! What happened to a device, as far as people should know: the last of it, in memory.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use device::PowerCut;

use crate::api::Event;

/// Events that are remembered for a device.
const REMEMBERED: usize = 1000;

/// The log of a device.
#[derive(Default)]
pub(super) struct Log(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    events: VecDeque<Event>,
    next: u64,
    power_cut: Option<PowerCut>,
}

impl Log {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        // Whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened.
    pub fn note(&self, event: &str, what: impl Into<String>) {
        let mut contents = self.contents();
        contents.note(event, what.into());
    }

    /// What happened, the oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.contents().events.iter().cloned().collect()
    }

    /// A drill cut the power.
    pub fn power_went(&self, cut: PowerCut) {
        let mut contents = self.contents();
        contents.note("power-cut", cut.to_string());
        contents.power_cut = Some(cut);
    }

    /// The power is on again.
    pub fn power_came(&self) {
        let mut contents = self.contents();
        contents.power_cut = None;
        contents.note("power-on", String::new());
    }

    /// How the power was cut, while it is.
    pub fn power_cut(&self) -> Option<PowerCut> {
        self.contents().power_cut.clone()
    }
}

impl Contents {
    fn note(&mut self, event: &str, what: String) {
        if self.events.len() == REMEMBERED {
            self.events.pop_front();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        self.events.push_back(Event { number: self.next, at_ms, event: event.into(), what });
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_are_remembered() {
        let log = Log::default();
        (0..REMEMBERED + 5).for_each(|n| log.note("test", n.to_string()));
        let events = log.events();
        assert_eq!((events.len(), events[0].number, events[0].what.as_str()), (REMEMBERED, 5, "5"));
        assert_eq!(events[REMEMBERED - 1].number, REMEMBERED as u64 + 4);
    }
}
