//! What happened to a device between two seconds, from its figures: events that nobody asked for.

use std::path::PathBuf;

use device::{Figures, State, Status};

/// What an event is called, and what happened in words.
pub type Event = (&'static str, String);

/// How long healing is not reported again, seconds: a worn disk would push everything else out of the list.
const HEALING_EVERY: u32 = 60;

/// What is known of a device's last second.
#[derive(Debug, Default)]
pub struct Changes {
    before: Option<Figures>,
    lost: Vec<u32>,
    /// What members are called, of an array or a cached volume.
    members: Vec<String>,
    vanished: Vec<PathBuf>,
    /// Sectors that were healed and not reported yet, and for how many seconds more they are not.
    healed: u64,
    quiet: u32,
}

impl Changes {
    /// The events of one more second. The words are there while something is wrong.
    pub fn look(&mut self, now: &Figures, words: Option<&Status>) -> Vec<Event> {
        let before = self.before.replace(*now);
        let mut events = switches(before.as_ref(), now, words.map_or("", |words| &words.health));
        events.extend(self.dies(before.as_ref(), now, words));
        events.extend(chips(before.as_ref(), now));
        if let Some(before) = &before {
            events.extend(sectors(before, now));
            events.extend(self.size(before, now));
            events.extend(self.healing(before, now));
        }
        events
    }

    /// An array that grew. Who resizes a device notes that by itself.
    fn size(&self, before: &Figures, now: &Figures) -> Option<Event> {
        let bytes = |figures: &Figures| figures.sectors * u64::from(figures.sector_bytes);
        let (before, now) = (bytes(before), bytes(now));
        let grew = before != now && !self.members.is_empty();
        grew.then(|| ("resized", format!("from {} to {}", size::show(before), size::show(now))))
    }

    fn dies(&mut self, before: Option<&Figures>, now: &Figures, words: Option<&Status>) -> Vec<Event> {
        if let Some(words) = words {
            self.members.clone_from(&words.members);
        }
        let lost_before = std::mem::replace(&mut self.lost, words.map_or_else(Vec::new, lost));
        let vanished = words.map_or_else(Vec::new, |words| words.vanished.clone());
        let vanished_before = std::mem::replace(&mut self.vanished, vanished);
        let set_aside = words.map_or(&[][..], |words| &words.set_aside);
        let lost = self.lost.iter().filter(|die| !lost_before.contains(die));
        let mut events: Vec<Event> = lost
            .map(|die| {
                if let Some(member) = self.members.get(*die as usize) {
                    return ("member-lost", format!("{member} is out of service"));
                }
                let why = set_aside.iter().find(|why| why.starts_with(&format!("die {die}:")));
                ("die-lost", why.cloned().unwrap_or_else(|| format!("die {die} is out of service")))
            })
            .collect();
        let rebuilt = lost_before.iter().filter(|die| !self.lost.contains(die));
        events.extend(rebuilt.map(|die| match self.members.get(*die as usize) {
            Some(member) => ("member-back", format!("{member} serves again")),
            None => ("rebuild-ends", format!("die {die} serves again")),
        }));
        let rebuilding = |figures: &Figures| figures.rebuilding.map(|(die, _)| die);
        if let Some(die) = rebuilding(now).filter(|die| before.and_then(rebuilding) != Some(*die)) {
            let what = self.members.get(die as usize).cloned().unwrap_or_else(|| format!("die {die}"));
            events.push(("rebuild-begins", what));
        }
        let vanished = self.vanished.iter().filter(|path| !vanished_before.contains(path));
        events.extend(vanished.map(|path| ("file-vanished", path.display().to_string())));
        events
    }

    fn healing(&mut self, before: &Figures, now: &Figures) -> Option<Event> {
        self.healed += now.healed_sectors.saturating_sub(before.healed_sectors);
        self.quiet = self.quiet.saturating_sub(1);
        if self.healed == 0 || self.quiet > 0 {
            return None;
        }
        self.quiet = HEALING_EVERY;
        let healed = std::mem::take(&mut self.healed);
        Some(("healed", format!("{healed} sectors could not be read and were rebuilt from parity or another copy")))
    }
}

/// Dies out of service. Those of a chip that was given up are told of as that chip.
fn lost(words: &Status) -> Vec<u32> {
    let chips = words.chips.map_or(1, |chips| chips.count);
    words.lost_dies.iter().copied().filter(|die| !words.given_up_chips.contains(&(die % chips))).collect()
}

/// Steps in which a rebuild over the chips that are left is told of, per cent.
const STEP: f64 = 25.0;

/// What became of chips that an emulated card gave up.
fn chips(before: Option<&Figures>, now: &Figures) -> Vec<Event> {
    let Some(chips) = now.chips else { return Vec::new() };
    let known = before.and_then(|before| before.chips);
    let left = chips.count - chips.given_up;
    let mut events = Vec::new();
    let gone = known.map_or(0, |known| chips.given_up.saturating_sub(known.given_up));
    if let Some(chip) = chips.last.filter(|_| gone > 0) {
        events.push(("chip-lost", format!("chip {chip} is out of service: the layout shrinks to {left} chips")));
    }
    let goes_on = known.and_then(|known| known.rebuilt_percent).filter(|_| gone == 0);
    match (goes_on, chips.rebuilt_percent) {
        (None, Some(percent)) => {
            events.push(("rebuild-begins", format!("over the {left} chips that are left, {percent:.0} % done")))
        }
        (Some(before), Some(percent)) if (percent / STEP).floor() > (before / STEP).floor() => {
            events.push(("rebuild-goes-on", format!("{percent:.0} % lie on the {left} chips that are left")));
        }
        (before, None) if before.is_some() || gone > 0 => {
            events.push(("protected", format!("everything lies on {left} chips, any of which may fail")));
        }
        _ => {}
    }
    events
}

/// What is on or off, and just turned.
fn switches(before: Option<&Figures>, now: &Figures, health: &str) -> Vec<Event> {
    let turned = |is_on: fn(&Figures) -> bool| (before.is_some_and(is_on), is_on(now));
    let mut events = Vec::new();
    if turned(|status| status.state == State::Error) == (false, true) {
        events.push(("writes-fail", health.into()));
    }
    if turned(|status| status.objects.is_some_and(|objects| objects.fenced)) == (false, true) {
        events.push(("fenced", health.into()));
    }
    match turned(|status| status.objects.is_some_and(|objects| objects.failing)) {
        (false, true) => events.push(("objects-fail", health.into())),
        (true, false) => events.push(("objects-answer", String::new())),
        _ => {}
    }
    match turned(|status| status.objects.is_some_and(|objects| objects.lapsed)) {
        (false, true) => events.push(("lease-over", health.into())),
        (true, false) => events.push(("lease-renewed", String::new())),
        _ => {}
    }
    match turned(|status| status.objects.is_some_and(|objects| objects.holding)) {
        (false, true) => events.push(("writes-held", health.into())),
        (true, false) => events.push(("writes-go-on", String::new())),
        _ => {}
    }
    match turned(|status| status.store_full) {
        (false, true) => events.push(("store-full", health.into())),
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

fn sectors(before: &Figures, now: &Figures) -> Vec<Event> {
    let mut events = Vec::new();
    let unreadable = now.unreadable_sectors;
    if before.scrub_percent.is_none() && now.scrub_percent.is_some() {
        events.push(("scrub-begins", String::new()));
    }
    if now.scrubs > before.scrubs {
        events.push((
            "scrub-ends",
            format!("{} found wrong since the attach, {unreadable} cannot be read", now.scrub_errors),
        ));
    }
    if before.optimise_percent.is_none() && now.optimise_percent.is_some() {
        events.push(("optimise-begins", String::new()));
    }
    if now.optimises > before.optimises {
        events.push(("optimise-ends", format!("{} sectors were moved since the attach", now.optimised_sectors)));
    }
    if unreadable > before.unreadable_sectors {
        events.push(("unreadable", format!("{unreadable} sectors cannot be read")));
    }
    events
}

#[cfg(test)]
mod tests {
    use device::Chips;

    use super::*;

    fn status() -> Status {
        device::Device::memory(1 << 20, 4096).expect("good sizes").status()
    }

    #[test]
    fn a_chip_that_is_given_up_is_told_of_step_by_step() {
        let with_chips = |given_up, rebuilt_percent: Option<f64>| {
            let last = (given_up > 0).then_some(5);
            let lost = if rebuilt_percent.is_some() { vec![5, 30] } else { Vec::new() };
            with(&status(), |status| {
                status.figures.chips = Some(Chips { count: 25, given_up, last, rebuilt_percent });
                status.given_up_chips = last.into_iter().collect();
                status.lost_dies.clone_from(&lost);
            })
        };
        let mut changes = Changes::default();
        let mut seen = |given_up, percent| look(&mut changes, &with_chips(given_up, percent));
        assert_eq!(seen(0, None), []);
        let lost = "chip 5 is out of service: the layout shrinks to 24 chips";
        let begins = "over the 24 chips that are left, 3 % done";
        assert_eq!(seen(1, Some(3.0)), [("chip-lost", lost.into()), ("rebuild-begins", begins.into())]);
        assert_eq!(seen(1, Some(20.0)), []);
        assert_eq!(seen(1, Some(51.0)), [("rebuild-goes-on", "51 % lie on the 24 chips that are left".into())]);
        let protected = ("protected", "everything lies on 24 chips, any of which may fail".into());
        assert_eq!(seen(1, None), [protected]);
        assert_eq!(seen(1, None), []);
        // Rebuilt within a second, and found at a start.
        assert_eq!(names(&seen(2, None)), ["chip-lost", "protected"]);
        assert_eq!(look(&mut Changes::default(), &with_chips(2, None)), []);
        assert_eq!(names(&look(&mut Changes::default(), &with_chips(2, Some(40.0)))), ["rebuild-begins"]);
    }

    fn names(events: &[Event]) -> Vec<&'static str> {
        events.iter().map(|(name, _)| *name).collect()
    }

    fn look(changes: &mut Changes, status: &Status) -> Vec<Event> {
        changes.look(status, Some(status))
    }

    fn with(status: &Status, change: impl Fn(&mut Status)) -> Status {
        let mut status = status.clone();
        change(&mut status);
        status
    }

    #[test]
    fn a_loss_a_rebuild_and_a_scrub_leave_events() {
        let mut changes = Changes::default();
        let healthy = status();
        assert!(changes.look(&healthy, None).is_empty());
        let lost = Status { lost_dies: vec![2], ..healthy.clone() };
        assert_eq!(look(&mut changes, &lost), [("die-lost", "die 2 is out of service".to_string())]);
        assert!(look(&mut changes, &lost).is_empty(), "once");
        let rebuilding = with(&lost, |status| status.figures.rebuilding = Some((2, 1.0)));
        assert_eq!(names(&look(&mut changes, &rebuilding)), ["rebuild-begins"]);
        // All is well again, so nothing is said in words.
        assert_eq!(names(&changes.look(&healthy, None)), ["rebuild-ends"]);
        let scrubbing = with(&healthy, |status| status.figures.scrub_percent = Some(1.0));
        assert_eq!(names(&look(&mut changes, &scrubbing)), ["scrub-begins"]);
        let over = with(&healthy, |status| (status.figures.scrubs, status.figures.unreadable_sectors) = (1, 1));
        assert_eq!(names(&look(&mut changes, &over)), ["scrub-ends", "unreadable"]);
        let optimising = with(&over, |status| status.figures.optimise_percent = Some(1.0));
        assert_eq!(names(&look(&mut changes, &optimising)), ["optimise-begins"]);
        let over = with(&over, |status| status.figures.optimises = 1);
        assert_eq!(names(&look(&mut changes, &over)), ["optimise-ends"]);
        let full = with(&over, |status| (status.figures.store_full, status.figures.state) = (true, State::Error));
        assert_eq!(names(&look(&mut changes, &full)), ["writes-fail", "store-full"]);
        assert_eq!(names(&look(&mut changes, &over)), ["store-has-room"]);
    }

    #[test]
    fn members_of_arrays_and_volumes_are_called_by_their_names() {
        let mut changes = Changes::default();
        let whole = Status { members: vec!["fast".into(), "nbd://store/a".into()], ..status() };
        assert!(look(&mut changes, &whole).is_empty());
        let alone = Status { lost_dies: vec![1], ..whole.clone() };
        assert_eq!(look(&mut changes, &alone), [("member-lost", "nbd://store/a is out of service".to_string())]);
        // Nothing is wrong any more, so there are no words.
        assert_eq!(changes.look(&whole.figures, None), [("member-back", "nbd://store/a serves again".to_string())]);
        let larger = with(&whole, |status| status.figures.sectors += 256);
        let resized = changes.look(&larger.figures, None);
        assert_eq!(names(&resized), ["resized"]);
        // Of a device, who resizes it says so.
        let mut changes = Changes::default();
        changes.look(&status(), None);
        assert_eq!(changes.look(&larger.figures, None), []);
    }

    #[test]
    fn what_was_lost_at_the_attach_is_an_event_with_its_reason() {
        let set_aside = vec!["die 1: /d1: an old copy of what it should hold".to_string()];
        let now = Status { lost_dies: vec![1], set_aside: set_aside.clone(), ..status() };
        assert_eq!(look(&mut Changes::default(), &now), [("die-lost", set_aside[0].clone())]);
    }

    #[test]
    fn healing_is_reported_once_a_minute() {
        let mut changes = Changes::default();
        let mut now = *status();
        changes.look(&now, None);
        let mut told = Vec::new();
        for _ in 0..2 * HEALING_EVERY {
            now.healed_sectors += 3;
            told.extend(changes.look(&now, None));
        }
        assert_eq!(names(&told), ["healed"; 2]);
        assert!(told[1].1.starts_with(&format!("{} sectors", 3 * HEALING_EVERY)), "{}", told[1].1);
    }
}
