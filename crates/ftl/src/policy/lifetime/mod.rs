//! Lifetime groups: the layer's own policy, and the default. `docs/groomer.md` explains it with its figures.
//!
//! Five steps, each with a file of its own. A *label* of seven bits keeps for every sector how long it lives between writes, and whether
//! the groomer has moved it since (`label.rs`). The *tally* counts how fast the sectors of each label really die (`tally.rs`). From that follows which labels
//! share a stream, and how many streams pay for themselves (`groups.rs`). Which LEB to groom is decided by how fast it empties by itself
//! (`victims.rs`), as LEBs of its class and age did (`life_table.rs`).

mod groups;
mod label;
mod labels;
mod life_table;
mod runs;
mod tally;
mod victims;

use groups::Groups;
use label::{Label, Scale};
use labels::Labels;
use runs::{Member, Runs};
use tally::Tally;
use victims::Victims;

use super::{Eligible, GroomPolicy, LebView, Moved, Old, Shape, Write, highest};
use crate::leb::DATA_STREAMS;
use crate::types::LebId;

/// So often in a drive write the labels are grouped anew.
const REGROUPED: u64 = 32;
/// At the least so many sectors are written in between.
const REGROUPED_AFTER: u64 = 256;

/// The lifetime policy.
pub struct Lifetime {
    labels: Labels,
    scale: Scale,
    /// Of what the groomer moves.
    moved_runs: Runs,
    /// When the labels are grouped next.
    due: u64,
    /// Of what the host writes.
    runs: Runs,
    asked: Asked,
    victims: Victims,
    tally: Tally,
    /// Of what the host writes.
    groups: Groups,
    /// Of what the groomer moved.
    moved: Groups,
    /// Whether each stream has a LEB open.
    open: [bool; DATA_STREAMS as usize],
    shape: Shape,
}

/// The write that was asked about last.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// The labels that its first sector has and would have.
    labels: (Label, Label),
    /// The run that it belongs to.
    run: Member,
    stream: u8,
}

impl Lifetime {
    pub(super) fn new(shape: &Shape) -> Lifetime {
        let mut policy = Lifetime {
            labels: Labels::new(shape.sectors),
            scale: Scale::new(shape.sectors),
            moved_runs: Runs::default(),
            due: 0,
            runs: Runs::default(),
            asked: Asked::default(),
            victims: Victims::new(shape),
            tally: Tally::new(shape.sectors),
            groups: Groups::default(),
            moved: Groups::default(),
            open: [false; DATA_STREAMS as usize],
            shape: *shape,
        };
        policy.assign();
        policy
    }

    #[inline]
    fn label(&self, lba: u64) -> Label {
        self.labels.get(lba)
    }

    /// The labels that a sector has and would have if the host wrote it.
    #[inline]
    fn after_write(&self, lba: u64, now: u64, old: Option<Old>, salt: u64) -> (Label, Label) {
        match old {
            None => (self.label(lba), Label::FIRST),
            Some(old) => {
                let ages = self.ages(now, &old);
                let label = self.label(lba);
                (label, label.overwritten(of(label, ages), salt))
            }
        }
    }

    /// The levels of the ages that a sector has if the host wrote it where it lies, and if it was moved there. Which of them counts the label says: it may
    /// take some time to come from memory, and these are worked out meanwhile.
    #[inline]
    fn ages(&self, now: u64, old: &Old) -> (u64, u64) {
        (self.scale.level(now.saturating_sub(old.written)), self.scale.level(now.saturating_sub(old.moved)))
    }

    /// A sector is written whose label was the first of these and is the second from now on.
    #[inline]
    fn wrote_sector(&mut self, lba: u64, (before, label): (Label, Label), stream: u8) {
        self.labels.set(lba, before, label);
        self.tally.died(before);
        self.tally.born(label);
        self.victims.placed(stream, self.tally.place(label).log_hazard);
    }

    /// All sectors of a write but the first. By itself, so that the code for small ones stays small.
    #[inline(never)]
    fn wrote_rest(&mut self, write: &Write) {
        let Asked { run, stream, .. } = self.asked;
        for (lba, old) in (write.lba..).zip(write.olds).skip(1) {
            let labels = self.after_write(lba, write.now, *old, run.salt);
            self.wrote_sector(lba, labels, stream);
        }
    }

    /// Gives every bin its stream: whenever groups or open LEBs changed.
    #[cold]
    fn assign(&mut self) {
        let half = self.shape.streams / 2;
        for (groups, bins, first, end) in [
            (&self.groups, 0..label::MOVED_BINS, 0, half),
            (&self.moved, label::MOVED_BINS..label::BINS, half, self.shape.streams),
        ] {
            let count = first + groups.count();
            // A LEB that was left open by a group that is no more is filled with the coldest.
            let left = (count..end).find(|stream| self.open[usize::from(*stream)]);
            for bin in bins {
                let group = first + groups.of(bin);
                self.tally.assign(bin, if group + 1 < count { group } else { left.unwrap_or(group) });
            }
        }
    }

    /// Now and then the labels are grouped anew.
    #[cold]
    fn regroup(&mut self, now: u64) {
        self.due = now + (self.shape.sectors / REGROUPED).max(REGROUPED_AFTER);
        self.tally.advance(now);
        let half = self.shape.streams / 2;
        self.groups.choose(&self.tally, &self.shape, 0..label::MOVED_BINS, half);
        self.moved.choose(&self.tally, &self.shape, label::MOVED_BINS..label::BINS, self.shape.streams - half);
        self.assign();
    }
}

/// What counts for a sector with this label: the first where the host wrote it where it lies, the second where it was moved there.
#[inline]
fn of<T>(label: Label, (written, moved): (T, T)) -> T {
    if label.is_moved() && !crate::mutant!(MovedAge) { moved } else { written }
}

impl GroomPolicy for Lifetime {
    fn name(&self) -> &'static str {
        "lifetime"
    }

    fn host_streams(&self) -> u8 {
        self.shape.streams / 2
    }

    fn streams(&self) -> u8 {
        self.shape.streams
    }

    fn learns(&self) -> bool {
        true
    }

    #[inline]
    fn hint(&self, lba: u64) {
        self.labels.prefetch(lba);
    }

    fn place(&mut self, write: &Write) -> u8 {
        let run = self.runs.of(write.lba, write.now);
        let labels = self.after_write(write.lba, write.now, write.olds[0], run.salt);
        let stream = self.tally.place(labels.1).stream;
        self.asked = Asked { labels, run, stream };
        stream
    }

    fn wrote(&mut self, write: &Write) {
        // A request is written in one piece: where its first sector goes.
        let Asked { labels, run, stream } = self.asked;
        self.runs.wrote(run, write.lba + write.olds.len() as u64);
        self.wrote_sector(write.lba, labels, stream);
        if write.olds.len() > 1 {
            self.wrote_rest(write);
        }
        if write.now >= self.due {
            self.regroup(write.now);
        }
    }

    fn place_moved(&mut self, moved: &Moved) -> (u8, u64) {
        let run = self.moved_runs.of(moved.lba, moved.now);
        self.moved_runs.wrote(run, moved.lba + 1);
        let ages = self.ages(moved.now, &moved.old);
        let before = self.label(moved.lba);
        let label = before.moved(of(before, ages), run.salt);
        self.labels.set(moved.lba, before, label);
        self.tally.relabelled(before, label);
        let place = self.tally.place(label);
        self.victims.placed(place.stream, place.log_hazard);
        (place.stream, of(before, (moved.old.written, moved.old.moved)))
    }

    fn trimmed(&mut self, lba: u64, count: u64) {
        let tally = &mut self.tally;
        self.labels.forget(lba, count, |label| tally.died(label));
    }

    fn opened(&mut self, leb: LebId, stream: u8) {
        self.victims.opened(leb, stream);
        self.open[usize::from(stream)] = true;
        self.assign();
    }

    fn closed(&mut self, leb: LebId, stream: u8) {
        self.victims.closed(leb, stream);
        self.open[usize::from(stream)] = false;
        self.assign();
    }

    fn took(&mut self, victim: &LebView) {
        self.victims.took(victim);
    }

    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        self.victims.survey(eligible);
        highest(self, eligible)
    }

    #[inline]
    fn score(&self, leb: &LebView) -> f64 {
        self.victims.score(leb)
    }

    fn preallocate(&mut self) {
        self.labels.preallocate();
    }

    fn memory(&self) -> usize {
        self.labels.memory() + self.victims.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { sectors: 1000, lebs: 20, slots_per_leb: 64, streams: 6 };

    fn write(policy: &mut Lifetime, write: &Write) {
        policy.place(write);
        policy.wrote(write);
    }

    fn overwrite(policy: &mut Lifetime, lba: u64, now: u64, old: Old) {
        write(policy, &Write { lba, now, olds: &[Some(old)] });
    }

    #[test]
    fn what_was_moved_is_as_old_as_before() {
        let mut policy = Lifetime::new(&SHAPE);
        overwrite(&mut policy, 3, 1000, Old { written: 0, moved: 0 });
        let old = Old { written: 1000, moved: 1000 };
        let (_, written) = policy.place_moved(&Moved { lba: 3, now: 9000, old, stream: 0 });
        assert_eq!(written, 1000, "it stood where the host wrote it");
        // Where it lies now was filled at 9000, with what is from 1200 in the mean.
        let old = Old { written: 9000, moved: 1200 };
        let (_, written) = policy.place_moved(&Moved { lba: 3, now: 14_000, old, stream: 0 });
        assert_eq!(written, 1200);
        // And so its label says; levels are rounded by chance.
        let age = policy.scale.level(14_000 - 1200) / 64;
        assert!(u64::from(policy.label(3).0 & 63).abs_diff(age) <= 1, "{:?} {age}", policy.label(3));
    }

    /// Requests of a file one after the other, again and again, and its sectors moved in between.
    #[test]
    fn a_file_keeps_one_label() {
        let mut policy = Lifetime::new(&SHAPE);
        let labels = |policy: &Lifetime| (100..164).map(|lba| policy.label(lba)).collect::<Vec<_>>();
        let mut before = 0;
        for round in 1..40 {
            let now = before + 3000 + 70 * round;
            for lba in (100..164).step_by(16) {
                let old = (round > 1).then_some(Old { written: before, moved: before });
                let request = Write { lba, now, olds: &[old; 16] };
                // As if it had to wait: it comes again and again, more often than there are runs to be forgotten.
                (0..9).for_each(|_| _ = policy.place(&request));
                write(&mut policy, &request);
            }
            assert_eq!(labels(&policy), [policy.label(100); 64], "written in round {round}");
            for lba in 100..164 {
                let old = Old { written: now, moved: now };
                policy.place_moved(&Moved { lba, now: now + 2900 + 61 * round, old, stream: 0 });
            }
            assert_eq!(labels(&policy), [policy.label(100); 64], "moved in round {round}");
            before = now;
        }
    }

    #[test]
    fn every_living_sector_is_counted_once() {
        let mut policy = Lifetime::new(&SHAPE);
        let living = |policy: &Lifetime| (0..label::BINS).map(|bin| policy.tally.live(bin)).sum::<f64>();
        write(&mut policy, &Write { lba: 0, now: 0, olds: &[None; 100] });
        for now in 1..50 {
            overwrite(&mut policy, now, 100 + now * 3, Old { written: 2 * now, moved: 2 * now });
            let old = Old { written: 0, moved: 0 };
            policy.place_moved(&Moved { lba: now + 1, now: 300, old, stream: 0 });
        }
        assert_eq!(living(&policy), 100.0);
        policy.trimmed(10, 200);
        assert_eq!(living(&policy), 10.0);
        // After an attach nothing is known of what is there.
        overwrite(&mut policy, 500, 400, Old { written: 0, moved: 0 });
        policy.place_moved(&Moved { lba: 501, now: 400, old: Old { written: 0, moved: 0 }, stream: 0 });
        assert_eq!(living(&policy), 12.0);
    }

    #[test]
    fn a_byte_a_sector_is_enough() {
        let shape = Shape { sectors: 1 << 18, lebs: 1200, slots_per_leb: 256, streams: 6 };
        let mut policy = Lifetime::new(&shape);
        assert!(policy.memory() < 1 << 15, "what was not written takes nothing: {}", policy.memory());
        for lba in 0..shape.sectors {
            write(&mut policy, &Write { lba, now: lba, olds: &[None] });
        }
        assert!(policy.memory() <= 1 << 18, "{}", policy.memory());
    }
}
