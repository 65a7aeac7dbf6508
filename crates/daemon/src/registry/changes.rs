//! What happened to a device between two seconds, from its figures: events that nobody asked for.

use device::{State, Status};

/// What an event is called, and what happened in words.
pub type Event = (&'static str, String);

/// How long healing is not reported again, seconds: a worn disk would push everything else out of the list.
const HEALING_EVERY: u32 = 60;

/// What is known of a device's last second.
#[derive(Debug, Default)]
pub struct Changes {
    before: Option<Status>,
    /// Sectors that were healed and not reported yet, and for how many seconds more they are not.
    healed: u64,
    quiet: u32,
}

impl Changes {
    /// The events of one more second.
    pub fn look(&mut self, now: &Status) -> Vec<Event> {
        let before = self.before.take();
        let mut events = switches(before.as_ref(), now);
        events.extend(dies(before.as_ref(), now));
        if let Some(before) = &before {
            events.extend(sectors(before, now));
            events.extend(self.healing(before, now));
        }
        self.before = Some(now.clone());
        events
    }

    fn healing(&mut self, before: &Status, now: &Status) -> Option<Event> {
        self.healed += now.healed_sectors.saturating_sub(before.healed_sectors);
        self.quiet = self.quiet.saturating_sub(1);
        if self.healed == 0 || self.quiet > 0 {
            return None;
        }
        self.quiet = HEALING_EVERY;
        let healed = std::mem::take(&mut self.healed);
        Some(("healed", format!("{healed} sectors failed their check and were rebuilt from parity")))
    }
}

/// What is on or off, and just turned.
fn switches(before: Option<&Status>, now: &Status) -> Vec<Event> {
    let turned = |is_on: fn(&Status) -> bool| (before.is_some_and(is_on), is_on(now));
    let mut events = Vec::new();
    if turned(|status| status.state == State::Error) == (false, true) {
        events.push(("writes-fail", now.health.clone()));
    }
    match turned(|status| status.store_full) {
        (false, true) => events.push(("store-full", now.health.clone())),
        (true, false) => events.push(("store-has-room", String::new())),
        _ => {}
    }
    if turned(|status| status.write_reduced == Some(true)) == (false, true) {
        events.push(("write-reduced", "the reserve is used up: writes are held back".into()));
    }
    if turned(|status| status.worn_out == Some(true)) == (false, true) {
        events.push(("read-only", "worn out: no more writes".into()));
    }
    events
}

fn dies(before: Option<&Status>, now: &Status) -> Vec<Event> {
    let lost_before = before.map_or(&[][..], |before| &before.lost_dies);
    let lost = now.lost_dies.iter().filter(|die| !lost_before.contains(die));
    let mut events: Vec<Event> = lost
        .map(|die| {
            let why = now.set_aside.iter().find(|why| why.starts_with(&format!("die {die}:")));
            ("die-lost", why.cloned().unwrap_or_else(|| format!("die {die} is out of service")))
        })
        .collect();
    let rebuilt = lost_before.iter().filter(|die| !now.lost_dies.contains(die));
    events.extend(rebuilt.map(|die| ("rebuild-ends", format!("die {die} serves again"))));
    let rebuilding = before.and_then(|before| before.rebuilding_die);
    if let Some(die) = now.rebuilding_die.filter(|die| rebuilding != Some(*die)) {
        events.push(("rebuild-begins", format!("die {die}")));
    }
    let vanished_before = before.map_or(&[][..], |before| &before.vanished);
    let vanished = now.vanished.iter().filter(|path| !vanished_before.contains(path));
    events.extend(vanished.map(|path| ("file-vanished", path.display().to_string())));
    events
}

fn sectors(before: &Status, now: &Status) -> Vec<Event> {
    let mut events = Vec::new();
    let unreadable = now.unreadable.len();
    if before.scrub_percent.is_none() && now.scrub_percent.is_some() {
        events.push(("scrub-begins", String::new()));
    }
    if now.scrubs > before.scrubs {
        events.push((
            "scrub-ends",
            format!("{} found wrong since the attach, {unreadable} cannot be read", now.scrub_errors),
        ));
    }
    if unreadable > before.unreadable.len() {
        events.push(("unreadable", format!("{unreadable} sectors cannot be read")));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        device::Device::memory(1 << 20, 4096).expect("good sizes").status()
    }

    fn names(events: &[Event]) -> Vec<&'static str> {
        events.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn a_loss_a_rebuild_and_a_scrub_leave_events() {
        let mut changes = Changes::default();
        let healthy = status();
        assert!(changes.look(&healthy).is_empty());
        let lost = Status { lost_dies: vec![2], ..healthy.clone() };
        assert_eq!(changes.look(&lost), [("die-lost", "die 2 is out of service".to_string())]);
        assert!(changes.look(&lost).is_empty(), "once");
        assert_eq!(names(&changes.look(&Status { rebuilding_die: Some(2), ..lost })), ["rebuild-begins"]);
        assert_eq!(names(&changes.look(&healthy)), ["rebuild-ends"]);
        let scrubbing = Status { scrub_percent: Some(1.0), ..healthy.clone() };
        assert_eq!(names(&changes.look(&scrubbing)), ["scrub-begins"]);
        let over = Status { scrubs: healthy.scrubs + 1, unreadable: vec![7], ..healthy.clone() };
        assert_eq!(names(&changes.look(&over)), ["scrub-ends", "unreadable"]);
        let full = Status { store_full: true, state: State::Error, ..over.clone() };
        assert_eq!(names(&changes.look(&full)), ["writes-fail", "store-full"]);
        assert_eq!(names(&changes.look(&over)), ["store-has-room"]);
    }

    #[test]
    fn what_was_lost_at_the_attach_is_an_event_with_its_reason() {
        let set_aside = vec!["die 1: /d1: an old copy of what it should hold".to_string()];
        let now = Status { lost_dies: vec![1], set_aside: set_aside.clone(), ..status() };
        assert_eq!(Changes::default().look(&now), [("die-lost", set_aside[0].clone())]);
    }

    #[test]
    fn healing_is_reported_once_a_minute() {
        let mut changes = Changes::default();
        let mut now = status();
        changes.look(&now);
        let mut told = Vec::new();
        for _ in 0..2 * HEALING_EVERY {
            now.healed_sectors += 3;
            told.extend(changes.look(&now));
        }
        assert_eq!(names(&told), ["healed"; 2]);
        assert!(told[1].1.starts_with(&format!("{} sectors", 3 * HEALING_EVERY)), "{}", told[1].1);
    }
}
