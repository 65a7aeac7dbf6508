//! Lifetime groups: the layer's own policy, and the default. `docs/groomer.md` explains it with its figures.
//!
//! Five steps. A *label* of six bits keeps for every sector how long it lives between writes, and whether
//! the groomer has moved it since: the layer keeps it as the note of the slot (`label.rs`). The *tally* counts how fast the sectors of each label really die (`tally.rs`). From that follows which labels
//! share a stream, and how many streams pay for themselves (`groups.rs`). Which LEB to groom is decided by how fast it empties by itself, as
//! LEBs did that were filled with the like (`filling.rs`, and `victims.rs` beside this directory).

mod filling;
mod groups;
mod label;
mod runs;
mod shortlist;
mod tally;

use std::hint::{cold_path, select_unpredictable};

use filling::Filling;
use groups::Groups;
use label::{Label, Scale};
use runs::{Member, Runs};
use shortlist::Shortlist;
use tally::{Place, Tally};

use super::victims::Victims;
use super::{Destination, Eligible, GroomPolicy, LebView, Moved, Old, Shape, Write};
use crate::leb::DATA_STREAMS;
use crate::slots::NOTE_BITS;
use crate::types::LebId;

/// So often in a drive write the labels are grouped anew.
const REGROUPED: u64 = 32;
/// At the least so many sectors are written in between.
const REGROUPED_AFTER: u64 = 256;

/// The lifetime policy.
pub struct Lifetime {
    scale: Scale,
    /// Of what the groomer moves.
    moved_runs: Runs,
    /// When the labels are grouped next.
    due: u64,
    /// Of what the host writes.
    runs: Runs,
    asked: Asked,
    filling: Filling,
    victims: Victims,
    shortlist: Shortlist,
    tally: Tally,
    /// Of what the host writes.
    groups: Groups,
    /// Of what the groomer moved.
    moved: Groups,
    leaving: Leaving,
    /// The stream of all that the host writes, and of all that is moved, where there is but one.
    only: [Option<u8>; 2],
    /// Whether each stream has a LEB open.
    open: [bool; DATA_STREAMS as usize],
    shape: Shape,
}

/// The write that was asked about last.
#[derive(Clone, Copy)]
struct Asked {
    /// The labels that its first sector has and would have.
    labels: (Label, Label),
    /// The run that it belongs to.
    run: Member,
    stream: u8,
}

/// The LEB that sectors were moved out of last. They are about of one age: worked out once for many.
struct Leaving {
    leb: LebId,
    /// Until when that holds.
    until: u64,
    /// When the host wrote what it wrote there, in the mean, and what was moved there.
    written: [u64; 2],
    /// The levels of those ages.
    ages: [u64; 2],
}

/// Ages are worked out anew when they have grown by this part.
const AGED: u64 = 64;

impl Lifetime {
    pub(super) fn new(shape: &Shape) -> Lifetime {
        let filling = Filling::new(shape);
        let mut policy = Lifetime {
            scale: Scale::new(shape.sectors, u64::from(shape.lebs) * u64::from(shape.slots_per_leb)),
            moved_runs: Runs::default(),
            due: 0,
            runs: Runs::default(),
            asked: Asked { labels: (Label::UNKNOWN, Label::FIRST), run: Member::default(), stream: 0 },
            victims: Victims::new(shape, filling.said(), filling.row(true, shape.sectors as f32)),
            filling,
            shortlist: Shortlist::new(shape.sectors),
            tally: Tally::new(shape.sectors),
            groups: Groups::default(),
            moved: Groups::default(),
            leaving: Leaving { leb: 0, until: 0, written: [0; 2], ages: [0; 2] },
            only: [None; 2],
            open: [false; DATA_STREAMS as usize],
            shape: *shape,
        };
        policy.assign();
        policy
    }

    /// The labels that a sector has and would have if the host wrote it.
    #[inline]
    fn after_write(&self, now: u64, old: Option<Old>, salt: u64) -> (Label, Label) {
        old.map_or((Label::UNKNOWN, Label::FIRST), |old| {
            let label = Label(old.note);
            let written = select_unpredictable(came_moved(label), old.moved, old.written);
            (label, label.overwritten(self.scale.level(now.saturating_sub(written)), salt))
        })
    }

    /// A sector is written whose label was the first of these and is the second from now on. Gives its note.
    #[inline]
    fn wrote_sector(&mut self, (before, label): (Label, Label), stream: u8) -> u8 {
        self.tally.died(before);
        self.tally.born(label);
        self.filling.placed(stream, self.tally.place(label).log_hazard);
        label.0
    }

    /// All sectors of a write but the first. By itself, so that the code for small ones stays small.
    #[inline(never)]
    fn wrote_rest(&mut self, write: &Write, notes: &mut [u8]) {
        let Asked { run, stream, .. } = self.asked;
        for (old, note) in write.olds.iter().zip(notes).skip(1) {
            *note = self.wrote_sector(self.after_write(write.now, *old, run.salt), stream);
        }
    }

    /// Where what the host writes goes, or what is moved. Where there is one stream only the processor need not wait for the label, at the end of all
    /// that is looked up for it, to go on: that was worth a third of what the policy costs the simulation.
    #[inline]
    fn stream(&self, moved: bool, place: Place) -> u8 {
        match self.only[usize::from(moved)] {
            Some(only) => only,
            None => {
                // Otherwise the compiler chooses between the two without a branch, and waits.
                cold_path();
                place.stream
            }
        }
    }

    /// Sectors of another LEB are moved from now on, or it is later.
    #[cold]
    fn leave(&mut self, moved: &Moved) {
        let filled = moved.times.filled(self.shape.slots_per_leb / 2);
        let written = [filled, moved.times.mean_moved().unwrap_or(filled)];
        let ages = written.map(|written| moved.now.saturating_sub(written));
        let until = moved.now + 1 + ages[0].min(ages[1]) / AGED;
        self.leaving = Leaving { leb: moved.leb, until, written, ages: ages.map(|age| self.scale.level(age)) };
    }

    /// Gives every bin its stream: whenever groups or open LEBs changed.
    #[cold]
    fn assign(&mut self) {
        let half = self.shape.streams / 2;
        for (groups, moved, first, end) in
            [(&self.groups, false, 0, half), (&self.moved, true, half, self.shape.streams)]
        {
            let count = first + groups.count();
            // A LEB that was left open by a group that is no more is filled with the coldest.
            let left = (count..end).find(|stream| self.open[usize::from(*stream)]);
            let last = left.unwrap_or(count - 1);
            for bin in (0..label::BINS).filter(|bin| label::is_moved(*bin) == moved) {
                let group = first + groups.of(bin);
                self.tally.assign(bin, if group + 1 < count { group } else { last });
            }
            self.only[usize::from(moved)] = (groups.count() == 1).then_some(last);
        }
    }

    /// Now and then the labels are grouped anew.
    #[cold]
    fn regroup(&mut self, now: u64) {
        self.due = now + (self.shape.sectors / REGROUPED).max(REGROUPED_AFTER);
        self.tally.advance(now);
        let half = self.shape.streams / 2;
        self.groups.choose(&self.tally, &self.shape, false, half);
        self.moved.choose(&self.tally, &self.shape, true, self.shape.streams - half);
        self.assign();
    }
}

/// Whether a sector with this label is as old as what was moved to its LEB, and not as what the host wrote there.
#[inline]
fn came_moved(label: Label) -> bool {
    label.is_moved()
}

impl GroomPolicy for Lifetime {
    fn name(&self) -> &'static str {
        "lifetime"
    }

    fn reshaped(&mut self, shape: &Shape) {
        self.shape = Shape { streams: self.shape.streams, ..*shape };
        self.victims.grow(shape.lebs);
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

    fn note_bits(&self) -> u32 {
        self.scale.bits()
    }

    fn place(&mut self, write: &Write) -> u8 {
        let run = self.runs.of(write.lba, write.now);
        let labels = self.after_write(write.now, write.olds[0], run.salt);
        let stream = self.stream(false, self.tally.place(labels.1));
        self.asked = Asked { labels, run, stream };
        stream
    }

    fn wrote(&mut self, write: &Write, notes: &mut [u8]) {
        // A request is written in one piece: where its first sector goes.
        let Asked { labels, run, stream } = self.asked;
        self.runs.wrote(run, write.lba + write.olds.len() as u64);
        notes[0] = self.wrote_sector(labels, stream);
        if write.olds.len() > 1 {
            self.wrote_rest(write, notes);
        }
        if write.now >= self.due {
            self.regroup(write.now);
        }
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        let run = self.moved_runs.of(moved.lba, moved.now);
        self.moved_runs.wrote(run, moved.lba + 1);
        if moved.leb != self.leaving.leb || moved.now >= self.leaving.until {
            self.leave(moved);
        }
        let before = Label(moved.note);
        let kind = usize::from(came_moved(before));
        let label = before.moved(self.leaving.ages[kind], run.salt);
        self.tally.relabelled(before, label);
        let place = self.tally.place(label);
        let stream = self.stream(true, place);
        self.filling.placed(stream, place.log_hazard);
        Destination { stream, written: self.leaving.written[kind], note: label.0 }
    }

    fn discarded(&mut self, note: u8) {
        self.tally.died(Label(note));
        self.shortlist.outdate();
    }

    fn opened(&mut self, leb: LebId, stream: u8) {
        self.victims.opened(leb);
        self.filling.opened(stream);
        if self.leaving.leb == leb {
            self.leaving.until = 0;
        }
        self.open[usize::from(stream)] = true;
        self.assign();
    }

    fn closed(&mut self, leb: LebId, stream: u8) {
        if let Some((row, count)) = self.filling.closed(stream) {
            self.victims.closed(leb, row, Some(count));
        }
        self.open[usize::from(stream)] = false;
        self.assign();
    }

    fn took(&mut self, victim: &LebView) {
        self.victims.took(victim);
    }

    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        self.victims.survey(eligible);
        let victims = &self.victims;
        self.shortlist.best(eligible, |leb| victims.score(leb))
    }

    #[inline]
    fn score(&self, leb: &LebView) -> f64 {
        f64::from(self.victims.score(leb))
    }

    fn verify(&self, noted: &[u64; 1 << NOTE_BITS]) -> Result<(), String> {
        // That of the unknown is counted nowhere, and none is zero.
        for (label, noted) in (0..label::BINS as u8).zip(noted).skip(2) {
            let counted = self.tally.live(Label(label).bin());
            if counted != *noted as f64 {
                return Err(format!("label {label} is noted of {noted} live sectors and counted {counted} times"));
            }
        }
        Ok(())
    }

    fn memory(&self) -> usize {
        self.victims.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leb::Times;
    use crate::slots::UNNOTED;

    const SECTORS: u64 = 1000;

    /// The policy, and the notes that the layer keeps for it.
    struct Noted {
        policy: Lifetime,
        /// Of every sector that there is.
        notes: Vec<Option<u8>>,
        /// What the groomer took last.
        leb: LebId,
    }

    impl Noted {
        fn new() -> Noted {
            let shape = Shape { sectors: SECTORS, lebs: 20, slots_per_leb: 64, streams: 6 };
            Noted { policy: Lifetime::new(&shape), notes: vec![None; SECTORS as usize], leb: 0 }
        }

        /// The host writes some sectors; what is there was written, and what was moved there was in the mean, at these moments.
        fn write(&mut self, lba: u64, count: usize, now: u64, (written, moved): (u64, u64)) {
            let range = lba as usize..lba as usize + count;
            let olds: Vec<_> =
                self.notes[range.clone()].iter().map(|note| note.map(|note| Old { written, moved, note })).collect();
            let write = Write { lba, now, placement: 0, olds: &olds };
            // As if it had to wait: it comes again and again, more often than there are runs to be forgotten.
            (0..9).for_each(|_| _ = self.policy.place(&write));
            let mut notes = vec![UNNOTED; count];
            self.policy.wrote(&write, &mut notes);
            self.notes[range].copy_from_slice(&notes.into_iter().map(Some).collect::<Vec<_>>());
        }

        /// The groomer moves one out of the LEB that it took last; gives when the policy says that it was written.
        fn groom(&mut self, lba: u64, now: u64, (written, moved): (u64, u64)) -> u64 {
            let note = self.notes[lba as usize].expect("a sector that is there");
            let mut times = Times::opened(written);
            times.count_moved(moved);
            times.close(written, 64);
            let moved = Moved { lba, now, note, leb: self.leb, times: &times, stream: 0 };
            let destination = self.policy.place_moved(&moved);
            self.notes[lba as usize] = Some(destination.note);
            destination.written
        }

        fn trim(&mut self, lba: u64, count: usize) {
            for note in &mut self.notes[lba as usize..lba as usize + count] {
                note.take().into_iter().for_each(|note| self.policy.discarded(note));
            }
        }

        /// Live sectors, as they were counted.
        fn living(&self) -> f64 {
            (0..label::BINS).map(|bin| self.policy.tally.live(bin)).sum()
        }
    }

    #[test]
    fn what_was_moved_is_as_old_as_before() {
        let mut noted = Noted::new();
        noted.write(3, 1, 1000, (0, 0));
        assert_eq!(noted.groom(3, 9000, (1000, 1000)), 1000, "it stood where the host wrote it");
        // Where it lies now was filled at 9000, with what is from 1200 in the mean.
        noted.leb = 1;
        assert_eq!(noted.groom(3, 14_000, (9000, 1200)), 1200);
        // And so its label says; levels are rounded by chance.
        let age = noted.policy.scale.level(14_000 - 1200) / 64;
        let level = u64::from(noted.notes[3].expect("noted") >> 1);
        assert!(level.abs_diff(age) <= 1, "{level} {age}");
    }

    #[test]
    fn ages_are_those_of_the_leb_and_of_the_moment() {
        let mut noted = Noted::new();
        let level = |noted: &Noted, lba: usize| u64::from(noted.notes[lba].expect("noted") >> 1);
        let age = |noted: &Noted, age| noted.policy.scale.level(age) / 64;
        (0..5).for_each(|lba| noted.write(10 * lba, 1, 1000, (0, 0)));
        noted.groom(0, 1100, (1000, 1000));
        assert!(level(&noted, 0).abs_diff(age(&noted, 100)) <= 1);
        // The rest of the LEB is moved after a long rest.
        noted.groom(10, 50_000, (1000, 1000));
        assert!(level(&noted, 10).abs_diff(age(&noted, 49_000)) <= 1);
        // It is used again, for something younger.
        noted.policy.opened(0, 0);
        assert_eq!(noted.groom(20, 50_000, (49_900, 49_900)), 49_900);
        assert!(level(&noted, 20).abs_diff(age(&noted, 100)) <= 1);
        noted.leb = 1;
        assert_eq!(noted.groom(30, 50_000, (2000, 2000)), 2000);
    }

    /// Requests of a file one after the other, again and again, and its sectors moved in between.
    #[test]
    fn a_file_keeps_one_label() {
        let mut noted = Noted::new();
        let mut before = 0;
        for round in 1..40 {
            let now = before + 3000 + 70 * round;
            for lba in (100..164).step_by(16) {
                noted.write(lba, 16, now, (before, before));
            }
            assert_eq!(noted.notes[100..164], [noted.notes[100]; 64], "written in round {round}");
            noted.leb += 1;
            for lba in 100..164 {
                noted.groom(lba, now + 2900 + 61 * round, (now, now));
            }
            assert_eq!(noted.notes[100..164], [noted.notes[100]; 64], "moved in round {round}");
            before = now;
        }
    }

    #[test]
    fn every_living_sector_is_counted_once() {
        let mut noted = Noted::new();
        noted.write(0, 100, 0, (0, 0));
        for now in 1..50 {
            noted.write(now, 1, 100 + now * 3, (2 * now, 2 * now));
            noted.groom(now + 1, 300, (0, 0));
        }
        assert_eq!(noted.living(), 100.0);
        noted.trim(10, 200);
        assert_eq!(noted.living(), 10.0);
        // After an attach nothing is noted of what is there.
        noted.notes[500..502].fill(Some(UNNOTED));
        noted.write(500, 1, 400, (0, 0));
        noted.groom(501, 400, (0, 0));
        assert_eq!(noted.living(), 12.0);
    }

    #[test]
    fn a_byte_a_sector_is_enough() {
        for lebs in [1100, 1311, 1433, 1434, 1792, 2048, 2700, 3500] {
            let shape = Shape { sectors: 1 << 18, lebs, slots_per_leb: 256, streams: 6 };
            let policy = Lifetime::new(&shape);
            let notes = lebs as usize * 256 * (policy.note_bits() - 1) as usize / 8;
            let books = policy.memory();
            assert!(notes + books <= 1 << 18, "{lebs} LEBs: {notes} for notes, {books} for books");
        }
    }
}
