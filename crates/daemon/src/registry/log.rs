//! What happened to a device, as far as people should know: the last of it, in memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use device::{Figures, Status};

use super::changes::Changes;
use crate::api::Event;
use crate::clock::now_ms;

/// Events that are remembered for a device.
const REMEMBERED: usize = 1000;

/// The log of an attach.
pub(super) struct Log {
    /// No two logs of a process have the same number.
    pub id: u64,
    contents: Mutex<Contents>,
}

impl Default for Log {
    fn default() -> Log {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Log { id: NEXT.fetch_add(1, Ordering::Relaxed), contents: Mutex::default() }
    }
}

#[derive(Default)]
struct Contents {
    events: VecDeque<Event>,
    next: u64,
    changes: Changes,
}

impl Log {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        // Whole between any two statements.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened.
    pub fn note(&self, event: &str, what: impl Into<String>) {
        let mut contents = self.contents();
        contents.note(event, what.into());
    }

    /// What the device's figures tell, beside those of the last look.
    pub fn look(&self, figures: &Figures, status: Option<&Status>) {
        let mut contents = self.contents();
        for (event, what) in contents.changes.look(figures, status) {
            contents.note(event, what);
        }
    }

    /// What happened, from a number on, the oldest first.
    pub fn events(&self, from: u64) -> Vec<Event> {
        let contents = self.contents();
        let begin = contents.events.partition_point(|event| event.number < from);
        contents.events.range(begin..).cloned().collect()
    }
}

impl Contents {
    fn note(&mut self, event: &str, what: String) {
        if self.events.len() == REMEMBERED {
            self.events.pop_front();
        }
        self.events.push_back(Event { number: self.next, at_ms: now_ms(), event: event.into(), what });
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
        let events = log.events(0);
        assert_eq!((events.len(), events[0].number, events[0].what.as_str()), (REMEMBERED, 5, "5"));
        assert_eq!(events[REMEMBERED - 1].number, REMEMBERED as u64 + 4);
        let last: Vec<u64> = log.events(REMEMBERED as u64 + 3).iter().map(|event| event.number).collect();
        assert_eq!(last, [REMEMBERED as u64 + 3, REMEMBERED as u64 + 4]);
        assert!(log.events(u64::MAX).is_empty());
    }
}
