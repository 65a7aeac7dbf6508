//! The groomer: takes a LEB, moves its live sectors to the groom stream, and lets the LEB go.
//!
//! A LEB may be groomed only when the last checkpoint is newer than everything in it: recovery then never needs
//! it, so neither trim records nor half of an atomic batch can be lost with it.

use std::collections::VecDeque;

use crate::layer::{Config, Ftl, MediaRead};
use crate::leb::{LebState, Stream};
use crate::pace::Pace;
use crate::policy::{Candidate, GroomPolicy, Policy};
use crate::types::{Command, Header, Kind, LebId, NO_SLOT, ReadFor, Source};

/// Groom reads under way at once, for each die.
const READS_PER_DIE: usize = 2;
/// The fewest groom reads under way at once.
const READS_MIN: usize = 4;

struct Victim {
    leb: LebId,
    /// Live slots when it was taken.
    live: u32,
    /// Next data page to read.
    page: u32,
    reads: usize,
}

/// A page that was read and waits to be moved.
struct Moved {
    id: u64,
    /// In-page slot and host sector of what was live when it came.
    live: Vec<(u32, u64)>,
    /// Number of the page's first slot.
    slot: u32,
    /// In-page slot that the read's buffer begins with.
    at: u32,
}

/// State of the groomer.
pub(crate) struct Groomer {
    pub pace: Pace,
    policy: Box<dyn GroomPolicy>,
    victim: Option<Victim>,
    moved: VecDeque<Moved>,
    /// Grooming in quiet times, to give space back: LEBs still to be taken.
    idle_lebs: u32,
}

impl Groomer {
    pub fn new(policy: Policy, config: &Config) -> Groomer {
        Groomer {
            pace: Pace::new(&config.geometry, config.max_request),
            policy: policy.build(),
            victim: None,
            moved: VecDeque::new(),
            idle_lebs: 0,
        }
    }

    pub fn is_busy(&self) -> bool {
        self.victim.is_some()
    }

    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy.build();
    }

    pub fn policy_name(&self) -> &'static str {
        self.policy.name()
    }
}

impl Ftl {
    /// Goes on grooming as far as it can.
    pub(crate) fn groom(&mut self) {
        if !self.emptied.is_empty() {
            self.reclaim();
        }
        let geometry = self.config.geometry;
        let free = u64::from(self.free_lebs()) * u64::from(geometry.slots_per_leb());
        self.groomer.pace.set_free(free + u64::from(self.left_in_open(Stream::Host)));
        if self.groomer.victim.is_none() && !self.wants_victim() {
            return;
        }
        self.move_pages();
        if self.groomer.victim.is_none() {
            self.take_victim();
        }
        self.read_victim();
    }

    fn wants_victim(&self) -> bool {
        // Until the checkpoint that ends a recovery counts, another recovery would look at the old log only, and
        // miss what was moved.
        if self.checkpointer.is_closing() || (!self.is_started() && !crate::mutant!(GroomBeforeStart)) {
            return false;
        }
        self.groomer.pace.is_short() || self.groomer.idle_lebs > 0
    }

    /// One round in quiet times: when the log takes much more room than its data needs, groom a LEB to give
    /// the space back to whoever lent it.
    pub(crate) fn idle_round(&mut self) -> bool {
        let geometry = &self.config.geometry;
        let used = self.lebs.len() - self.free_lebs();
        let share = geometry.slots() as f64 / self.map.sectors() as f64;
        let fair = (self.map.mapped() as f64 * share / f64::from(geometry.slots_per_leb())).ceil() as u32 + 8;
        if used <= fair {
            return false;
        }
        if self.best_victim().is_some() {
            self.groomer.idle_lebs = 1;
            return true;
        }
        self.want_eligible()
    }

    /// The LEB that the policy wants most; none when nothing can be gained.
    fn best_victim(&self) -> Option<LebId> {
        let slots = self.config.geometry.slots_per_leb();
        let begin = self.groomable_before();
        // Moving nearly a whole LEB to gain a handful of slots would go on for ever.
        let gain_min = slots / 128 + 2;
        let mut best = None;
        let mut best_score = f64::NEG_INFINITY;
        for (id, leb) in self.lebs.iter() {
            let eligible = leb.state == LebState::Closed
                && (leb.closed <= begin || crate::mutant!(GroomTheWindow))
                && leb.stream != Stream::Checkpoint
                && leb.live + gain_min <= slots
                && (!leb.damaged || leb.live == 0);
            if !eligible {
                continue;
            }
            let candidate = Candidate {
                utilisation: f64::from(leb.live) / f64::from(slots),
                age: self.seq.saturating_sub(leb.closed),
                erases: leb.erases,
            };
            let score = if leb.live == 0 { f64::INFINITY } else { self.groomer.policy.score(&candidate) };
            if score > best_score {
                (best, best_score) = (Some(id), score);
            }
        }
        best
    }

    fn take_victim(&mut self) {
        while self.wants_victim() {
            let Some(leb) = self.best_victim() else {
                self.groomer.idle_lebs = 0;
                self.groomer.pace.end_round();
                if self.groomer.pace.is_short() {
                    self.want_eligible();
                }
                return;
            };
            self.groomer.idle_lebs = self.groomer.idle_lebs.saturating_sub(1);
            let live = self.lebs[leb].live;
            if live > 0 {
                self.lebs[leb].state = LebState::Grooming;
                self.groomer.victim = Some(Victim { leb, live, page: 0, reads: 0 });
                return;
            }
            let slots = self.config.geometry.slots_per_leb();
            self.groomer.pace.earn(0, 0, slots);
            self.empty_leb(leb);
            if self.emptied.len() > 8 {
                return;
            }
        }
    }

    /// What could be groomed is newer than the last checkpoint: asks for one. Returns whether that helps.
    fn want_eligible(&mut self) -> bool {
        let begin = self.groomable_before();
        let slots = self.config.geometry.slots_per_leb();
        let newer = |leb: &crate::leb::Leb| {
            leb.state == LebState::Closed && leb.closed > begin && leb.live < slots - slots / 128 - 2
        };
        let any = self.lebs.iter().any(|(_, leb)| newer(leb));
        if any {
            self.checkpointer.want();
        }
        any
    }

    fn read_victim(&mut self) {
        let geometry = self.config.geometry;
        let window = READS_MIN.max(READS_PER_DIE * geometry.dies as usize);
        while let Some(victim) = &mut self.groomer.victim {
            if victim.reads + self.groomer.moved.len() >= window {
                return;
            }
            if victim.page == geometry.pages_per_leb() {
                if victim.reads == 0 && self.groomer.moved.is_empty() {
                    self.finish_victim();
                    self.take_victim();
                    continue;
                }
                return;
            }
            let first = geometry.first_slot(victim.leb, victim.page);
            victim.page += 1;
            let lebs = &self.lebs;
            let mut live = (first..first + geometry.slots_per_page).filter(|slot| lebs.is_live(*slot));
            let Some(from) = live.next() else { continue };
            let to = live.next_back().unwrap_or(from);
            victim.reads += 1;
            self.read_media(from, to - from + 1, ReadFor::Groom);
        }
    }

    pub(crate) fn groom_read_done(&mut self, command: u64, read: &MediaRead, headers: &[Option<Header>]) {
        let geometry = &self.config.geometry;
        let slot = geometry.first_slot(read.leb, read.page);
        let mut live = Vec::with_capacity(headers.len());
        for (i, header) in (0..).zip(headers) {
            let at = read.at + i;
            if !self.lebs.is_live(slot + at) {
                continue;
            }
            match header {
                Some(header) if header.kind == Kind::Data && self.map.get(header.lba) == slot + at => {
                    live.push((at, header.lba));
                }
                // It stays where it is, mapped and unreadable, until the host writes or trims it.
                _ => {
                    self.stats.damaged_sectors += u64::from(!self.lebs[read.leb].damaged);
                    self.lebs[read.leb].damaged = true;
                }
            }
        }
        self.groomer.victim.as_mut().expect("groom reads belong to the victim").reads -= 1;
        self.groomer.moved.push_back(Moved { id: command, live, slot, at: read.at });
    }

    fn move_pages(&mut self) {
        while let Some(page) = self.groomer.moved.front() {
            if !self.room(Stream::Groom, page.live.len() as u32, 0) {
                return;
            }
            let page = self.groomer.moved.pop_front().expect("just seen");
            let victim = self.groomer.victim.as_ref().expect("pages belong to the victim").live;
            let mut moved = 0;
            for (at, lba) in page.live {
                // The host may have written or trimmed it while it was read.
                if self.map.get(lba) != page.slot + at && !crate::mutant!(GroomOverwrites) {
                    continue;
                }
                self.move_sector(page.id, at - page.at, lba);
                moved += 1;
            }
            self.stats.groomed_sectors += u64::from(moved);
            self.groomer.pace.earn(moved, victim, self.config.geometry.slots_per_leb());
            self.commands.push_back(Command::Forget { id: page.id });
        }
    }

    fn move_sector(&mut self, read: u64, first: u32, lba: u64) {
        let run = self.reserve(Stream::Groom, 1);
        let (seq, lag) = (self.seq, self.lag_of(self.seq));
        self.seq += 1;
        let header = Header { slot: run.slot, seq, kind: Kind::Data, lba, index: 0, remaining: 0, lag };
        let source = Source::Groom { id: read, first };
        self.commands.push_back(Command::Stage { buf: run.buf, at: run.at, count: 1, header, source });
        let old = self.map.set(lba, run.slot);
        if old != NO_SLOT {
            self.lebs.set_dead(old);
        }
        self.lebs.set_live(run.slot);
        self.commit(Stream::Groom, run);
    }

    fn finish_victim(&mut self) {
        let victim = self.groomer.victim.take().expect("there is one");
        if self.lebs[victim.leb].live == 0 {
            self.empty_leb(victim.leb);
        } else {
            debug_assert!(self.lebs[victim.leb].damaged);
            self.lebs[victim.leb].state = LebState::Closed;
        }
    }

    /// The groomer's policy, by name.
    pub fn policy_name(&self) -> &'static str {
        self.groomer.policy_name()
    }

    /// Makes the groomer work in rounds of so many bytes, as some cards do: host writes wait until it has made room for them, then run
    /// unhindered until that is used up. 0: they are slowed down evenly.
    pub fn groom_in_rounds(&mut self, bytes: u64) {
        let sectors = bytes / u64::from(self.config.geometry.sector_bytes);
        self.groomer.pace.set_round(sectors);
    }

    /// Whether free space is short, so that the groomer works and host writes are paced.
    pub fn is_short(&self) -> bool {
        self.groomer.pace.is_short()
    }
}
