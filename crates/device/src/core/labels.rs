//! Superblocks on their way to the media: the layer's anchors, and what goes on record besides.
//!
//! Each is written to both copies, one after the other, and counts when both are durable. A copy that rots later, or whose
//! write the medium lost, takes nothing with it then: not the checkpoint, since the space of the one before is freed only
//! behind both, and not the word that there is a log to replay.

use media::{DieState, Done, Flashback, MediaError};

use super::Core;
use crate::superblock::Superblock;
use crate::{FormatError, IoError};

/// The id of a superblock write that the layer did not ask for.
const SETTINGS_ID: u64 = u64::MAX;
/// The id of a superblock write that records which dies are lost.
const LOSSES_ID: u64 = u64::MAX - 1;
/// The id of a superblock write that records that a sync failed.
const DOUBT_ID: u64 = u64::MAX - 2;
/// The ids of superblock writes that raise the version of a format: for its first batch, its first snapshot, and its first clone.
const BATCHES_ID: u64 = u64::MAX - 3;
const SNAPSHOTS_ID: u64 = u64::MAX - 4;
const CLONES_ID: u64 = u64::MAX - 5;

/// The id of a superblock write that records another size.
pub(crate) const SIZE_ID: u64 = u64::MAX - 9;

/// What an older program does not know, and must keep off from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Batches,
    Snapshots,
    Clones,
}

impl News {
    fn id(self) -> u64 {
        match self {
            News::Batches => BATCHES_ID,
            News::Snapshots => SNAPSHOTS_ID,
            News::Clones => CLONES_ID,
        }
    }

    fn of_id(id: u64) -> Option<News> {
        [News::Batches, News::Snapshots, News::Clones].into_iter().find(|news| news.id() == id)
    }
}

/// Whether the superblocks on media say that there may be some: an older program must keep off before there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Raised {
    /// They do not, or not for sure.
    Unknown,
    /// They are being written.
    Announced,
    /// They could not be written.
    Failed,
    /// They do.
    Admitted,
}

impl Raised {
    pub fn new(admitted: bool) -> Raised {
        if admitted { Raised::Admitted } else { Raised::Unknown }
    }
}

impl Core {
    /// Writes the superblock, after those that wait already.
    pub(crate) fn write_superblock(&mut self, id: u64) {
        self.labels.push_back(id);
        if self.labels.len() == 1 {
            self.write_next_copy();
        }
    }

    fn write_next_copy(&mut self) {
        let Some(id) = self.labels.front().copied() else { return };
        self.superblock.generation += 1;
        // What an anchor says is durable, so the store's mark covers it as soon as the store has the label.
        self.tell_objects();
        let command = label_command(&self.superblock);
        self.media_submit(id, command);
    }

    /// Writes the superblock with changed settings. Nothing waits for it: its id is one that the layer never gives.
    pub fn save_settings(&mut self) {
        if !self.labels.contains(&SETTINGS_ID) {
            self.settings_lost = false;
        }
        self.write_superblock(SETTINGS_ID);
    }

    /// Whether every superblock with settings that was to be written is on media.
    pub fn settings_saved(&self) -> Result<bool, IoError> {
        match self.labels.contains(&SETTINGS_ID) {
            true => Ok(false),
            false if self.settings_lost => Err(IoError::Media),
            false => Ok(true),
        }
    }

    /// Whether a batch, a snapshot or a clone may be taken: has the superblocks say that there may be some, which it waits for, or fails with.
    pub(crate) fn admits(&mut self, news: News) -> Result<bool, IoError> {
        if *self.raised(news) == Raised::Unknown {
            *self.raised(news) = Raised::Announced;
            let flag = match news {
                News::Batches => &mut self.superblock.batches,
                News::Snapshots => &mut self.superblock.snapshots,
                News::Clones => &mut self.superblock.clones,
            };
            *flag = true;
            // On some media that is done on the spot.
            self.write_superblock(news.id());
        }
        if *self.raised(news) == Raised::Failed {
            *self.raised(news) = Raised::Unknown;
            return Err(IoError::Media);
        }
        Ok(*self.raised(news) == Raised::Admitted)
    }

    fn raised(&mut self, news: News) -> &mut Raised {
        match news {
            News::Batches => &mut self.batches,
            News::Snapshots => &mut self.snapshots,
            News::Clones => &mut self.clones,
        }
    }

    /// Whether a die holds what it should.
    pub fn serves(&self, die: u32) -> bool {
        self.superblock.dies.get(die as usize).is_none_or(|state| *state == DieState::Good)
    }

    /// Dies that are not in service, or are not on record as being so; on an emulated card those that answer nothing. What a card has
    /// given up and rebuilt over the others is not missing any more.
    pub fn lost_dies(&self) -> impl Iterator<Item = u32> {
        let (nand, rebuilding) = (self.media.nand(), self.narrowing().map(|(chip, _)| chip));
        let serves = move |die: &u32| match nand {
            Some(nand) => {
                let chip = nand.chip_of(*die);
                !nand.lost().contains(die) || (nand.is_given_up(chip) && rebuilding != Some(chip))
            }
            None => [&self.superblock.dies, &self.recorded].iter().all(|dies| dies[*die as usize] == DieState::Good),
        };
        let dies = self.superblock.dies.len().min(self.recorded.len()) as u32;
        let dies = if nand.is_some() { self.superblock.geometry.dies } else { dies };
        (0..dies).filter(move |die| !serves(die))
    }

    /// The redundancy of a device that has lost this die.
    pub fn lost_die(&mut self, die: u32) -> Result<&mut Flashback, FormatError> {
        let states = &self.superblock.dies;
        let lost: Vec<u32> =
            (0..).zip(states).filter(|(_, state)| **state == DieState::Lost).map(|(die, _)| die).collect();
        if !lost.contains(&die) {
            return Err(FormatError::Invalid {
                name: "die",
                value: die.to_string(),
                expected: match lost.as_slice() {
                    [] => "a die that is out of service, and none is".into(),
                    lost => format!("one that is out of service: {}", crate::error::numbers(lost)),
                },
            });
        }
        self.media.flashback().ok_or(FormatError::Invalid {
            name: "device",
            value: "without parity".into(),
            expected: "a device with parity".into(),
        })
    }

    /// Puts on record which dies are lost, where that is news: what succeeded without them waits for it.
    pub fn note_losses(&mut self) {
        let Some(flashback) = self.media.flashback() else { return };
        if !flashback.wants_record() || self.labels.contains(&LOSSES_ID) {
            return;
        }
        self.superblock.dies = flashback.dies().to_vec();
        self.write_superblock(LOSSES_ID);
    }

    fn losses_recorded(&mut self, result: Result<(), &MediaError>) {
        match (result, self.media.flashback()) {
            (Ok(()), Some(flashback)) => {
                flashback.recorded(&self.superblock.dies);
                self.recorded.clone_from(&self.superblock.dies);
            }
            (Err(error), Some(flashback)) => {
                tracing::error!(%error, "the loss of a die could not be recorded");
                flashback.record_failed();
            }
            (_, None) => {}
        }
    }

    /// Puts on record that a sync failed, where that is news: the operating system may count as clean what it could not write, so that reads find
    /// it after the next attach and no later sync makes it durable.
    pub(super) fn note_doubt(&mut self) {
        let doubted = self.ftl.doubted_from();
        if doubted.is_some() && self.superblock.anchor.doubted_from.is_none() {
            self.superblock.anchor.doubted_from = doubted;
            self.write_superblock(DOUBT_ID);
        }
    }

    /// A superblock may have been written. Returns whether that was all that this told of: the layer waits for its anchors itself.
    pub(super) fn label_done(&mut self, done: &Done) -> bool {
        if self.labels.front() == Some(&done.id) {
            if done.result.is_err() {
                // The other copy is the one that is sure to be good: the next one goes where this one should be.
                self.superblock.generation += 1;
            }
            self.second_copy = done.result.is_ok() && !self.second_copy;
            if self.second_copy {
                self.write_next_copy();
                return true;
            }
            self.labels.pop_front();
            if let Some(stage) = self.kept().filter(|_| done.result.is_ok()) {
                stage.set_generation(self.superblock.generation);
            }
            self.write_next_copy();
        }
        let result = done.result.as_ref().map(|_| ());
        if let Some(news) = News::of_id(done.id) {
            *self.raised(news) = match result {
                Ok(()) => Raised::Admitted,
                Err(error) => {
                    tracing::error!(%error, "the format could not be made ready for batches, snapshots or clones");
                    Raised::Failed
                }
            };
            return true;
        }
        match (done.id, result) {
            (SETTINGS_ID, Err(error)) => {
                tracing::error!(%error, "the settings could not be saved");
                self.settings_lost = true;
            }
            (DOUBT_ID, Err(error)) => tracing::error!(%error, "that a sync failed could not be put on record"),
            (SETTINGS_ID | DOUBT_ID, Ok(())) => {}
            (LOSSES_ID, result) => self.losses_recorded(result),
            (SIZE_ID, result) => self.size_recorded(result),
            _ => return false,
        }
        true
    }
}

/// The command that writes a superblock's copy on every backing file.
pub(crate) fn label_command(superblock: &Superblock) -> media::Command {
    let whole = |mut bytes: Vec<u8>| {
        if superblock.encryption.is_some() {
            // So that no key slot of an older copy is left behind the end of a newer one.
            bytes.resize(media::LABEL_BYTES as usize, 0);
        }
        bytes
    };
    let bytes = (0..superblock.files()).map(|die| whole(superblock.encode(die))).collect();
    let copy = (superblock.generation % 2) as u8;
    media::Command::WriteLabel { copy, bytes }
}
