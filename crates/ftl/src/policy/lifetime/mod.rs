//! Lifetime groups: the layer's own policy, and the default. `docs/groomer.md` explains it with its figures.
//!
//! Four steps, each with a file of its own. A *label* of one byte keeps for every sector how long it lives between writes, and whether
//! the groomer has moved it since (`label.rs`). The *tally* counts how fast the sectors of each label really die (`tally.rs`). From that follows which labels
//! share a stream, and how many streams pay for themselves (`groups.rs`). Which LEB to groom is decided by how fast it empties by itself
//! (`victims.rs`).

mod groups;
mod label;
mod labels;
mod tally;
mod victims;

use groups::Groups;
use label::{Label, Scale};
use labels::Labels;
use tally::Tally;
use victims::Victims;

use super::{GroomPolicy, LebView, Moved, Old, Shape, Write};
use crate::leb::DATA_STREAMS;
use crate::types::LebId;

/// So often in a drive write the labels are grouped anew.
const REGROUPED: u64 = 32;
/// At the least so many sectors are written in between.
const REGROUPED_AFTER: u64 = 256;

/// The lifetime policy.
pub struct Lifetime {
    shape: Shape,
    scale: Scale,
    labels: Labels,
    tally: Tally,
    /// Of what the host writes.
    groups: Groups,
    /// Of what the groomer moved.
    moved: Groups,
    victims: Victims,
    /// Whether each stream has a LEB open.
    open: [bool; DATA_STREAMS as usize],
    /// When the labels are grouped next.
    due: u64,
    /// The label of the first sector of the write that was asked about last.
    asked: Label,
}

impl Lifetime {
    pub(super) fn new(shape: &Shape) -> Lifetime {
        Lifetime {
            shape: *shape,
            scale: Scale::new(shape.sectors),
            labels: Labels::new(shape.sectors),
            tally: Tally::new(shape.sectors),
            groups: Groups::default(),
            moved: Groups::default(),
            victims: Victims::new(shape),
            open: [false; DATA_STREAMS as usize],
            due: 0,
            asked: Label(0),
        }
    }

    fn label(&self, lba: u64) -> Label {
        self.labels.get(lba)
    }

    /// The label of a sector that the host writes.
    fn after_write(&self, lba: u64, now: u64, old: Option<Old>) -> Label {
        let label = self.label(lba);
        match old {
            None => self.scale.first(),
            Some(old) => self.scale.overwritten(label, now.saturating_sub(written(label, &old)), lba ^ now),
        }
    }

    /// The stream of what has this label.
    fn stream(&self, label: Label) -> u8 {
        let half = self.shape.streams / 2;
        let (groups, first, end) = match label.is_moved() {
            false => (&self.groups, 0, half),
            true => (&self.moved, half, self.shape.streams),
        };
        let (group, count) = (first + groups.of(label), first + groups.count());
        if group + 1 < count {
            return group;
        }
        // A LEB that was left open by a group that is no more is filled with the coldest.
        let left = (count..end).find(|stream| self.open[usize::from(*stream)]);
        left.unwrap_or(group)
    }

    /// Something with this label goes to a stream.
    fn placed(&mut self, stream: u8, label: Label) {
        if self.open[usize::from(stream)] {
            self.victims.placed(stream, self.tally.log_hazard(label));
        }
    }
}

/// When the host wrote a sector.
fn written(label: Label, old: &Old) -> u64 {
    if label.is_moved() && !crate::mutant!(MovedAge) { old.moved.unwrap_or(old.written) } else { old.written }
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
        self.asked = self.after_write(write.lba, write.now, write.olds[0]);
        self.stream(self.asked)
    }

    fn wrote(&mut self, write: &Write) {
        // A request is written in one piece: where its first sector goes.
        let (mut label, stream) = (self.asked, self.stream(self.asked));
        for (lba, old) in (write.lba..).zip(write.olds) {
            if lba > write.lba {
                label = self.after_write(lba, write.now, *old);
            }
            let before = self.labels.set(lba, label);
            self.tally.died(before);
            self.tally.born(label);
            self.placed(stream, label);
        }
        if write.now >= self.due {
            self.due = write.now + (self.shape.sectors / REGROUPED).max(REGROUPED_AFTER);
            self.tally.advance(write.now);
            let (half, middle) = (self.shape.streams / 2, label::BINS / 2);
            self.groups.choose(&self.tally, &self.shape, 0..middle, half);
            self.moved.choose(&self.tally, &self.shape, middle..label::BINS, self.shape.streams - half);
        }
    }

    fn place_moved(&mut self, moved: &Moved) -> (u8, u64) {
        let before = self.label(moved.lba);
        let written = written(before, &moved.old);
        let label = self.scale.moved(before, moved.now.saturating_sub(written), moved.lba ^ moved.now);
        self.labels.set(moved.lba, label);
        self.tally.relabelled(before, label);
        let stream = self.stream(label);
        self.placed(stream, label);
        (stream, written)
    }

    fn trimmed(&mut self, lba: u64, count: u64) {
        let tally = &mut self.tally;
        self.labels.forget(lba, count, |label| tally.died(label));
    }

    fn opened(&mut self, leb: LebId, stream: u8) {
        self.victims.opened(leb, stream);
        self.open[usize::from(stream)] = true;
    }

    fn closed(&mut self, leb: LebId, stream: u8) {
        self.victims.closed(leb, stream);
        self.open[usize::from(stream)] = false;
    }

    fn score(&self, leb: &LebView) -> f64 {
        self.victims.score(leb)
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
        overwrite(&mut policy, 3, 1000, Old { written: 0, moved: None, leb: 0 });
        let old = Old { written: 1000, moved: None, leb: 0 };
        let (_, written) = policy.place_moved(&Moved { lba: 3, now: 9000, old, stream: 0 });
        assert_eq!(written, 1000, "it stood where the host wrote it");
        // Where it lies now was filled at 9000, with what is from 1200 in the mean.
        let old = Old { written: 9000, moved: Some(1200), leb: 1 };
        let (_, written) = policy.place_moved(&Moved { lba: 3, now: 20_000, old, stream: 0 });
        assert_eq!(written, 1200);
    }

    #[test]
    fn every_living_sector_is_counted_once() {
        let mut policy = Lifetime::new(&SHAPE);
        let living = |policy: &Lifetime| (0..label::BINS).map(|bin| policy.tally.live(bin)).sum::<f64>();
        write(&mut policy, &Write { lba: 0, now: 0, olds: &[None; 100] });
        for now in 1..50 {
            overwrite(&mut policy, now, 100 + now * 3, Old { written: 2 * now, moved: None, leb: 0 });
            let old = Old { written: 0, moved: Some(0), leb: 0 };
            policy.place_moved(&Moved { lba: now + 1, now: 300, old, stream: 0 });
        }
        assert_eq!(living(&policy), 100.0);
        policy.trimmed(10, 200);
        assert_eq!(living(&policy), 10.0);
        // After an attach nothing is known of what is there.
        overwrite(&mut policy, 500, 400, Old { written: 0, moved: None, leb: 0 });
        policy.place_moved(&Moved { lba: 501, now: 400, old: Old { written: 0, moved: None, leb: 0 }, stream: 0 });
        assert_eq!(living(&policy), 12.0);
    }

    #[test]
    fn a_byte_a_sector_is_enough() {
        let policy = Lifetime::new(&Shape { sectors: 1 << 20, lebs: 4500, slots_per_leb: 256, streams: 6 });
        assert!(policy.memory() < (1 << 20) + (1 << 20) / 32, "{}", policy.memory());
    }
}
