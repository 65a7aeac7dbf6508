//! The power cut: what becomes of everything that no sync covers.

use std::ops::Range;

use random::SplitMix64;
use rustix::io::Errno;

use super::DrillMedia;
use crate::{Command, Done, MediaError, Page, PageAddr};

/// What a disk writes whole or not at all, bytes.
const PIECE_BYTES: usize = 512;

/// What becomes of programs and labels that no sync covers when the power goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsynced {
    /// Each for itself: absent, whole or torn.
    #[default]
    Random,
    /// All are absent.
    Drop,
    /// All are there.
    Keep,
    /// All are torn.
    Torn,
}

impl Unsynced {
    /// All of them.
    pub const ALL: [Unsynced; 4] = [Unsynced::Random, Unsynced::Drop, Unsynced::Keep, Unsynced::Torn];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Unsynced::Random => "random",
            Unsynced::Drop => "drop",
            Unsynced::Keep => "keep",
            Unsynced::Torn => "torn",
        }
    }
}

/// What became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutReport {
    /// How it was chosen.
    pub unsynced: Unsynced,
    /// From which seed.
    pub seed: u64,
    /// Programs that are absent.
    pub dropped: u64,
    /// Programs that are there.
    pub kept: u64,
    /// Programs of which a part is there.
    pub torn: u64,
}

/// A cut to come.
pub(super) struct Armed {
    /// Programs, labels and syncs until then; with the last of them the power goes.
    left: u64,
    unsynced: Unsynced,
    seed: u64,
}

/// What is left of a program.
enum Left {
    Nothing,
    All,
    /// Of its pieces, those for which this says so.
    Some(Vec<bool>),
}

impl DrillMedia {
    /// Cuts the power when the medium is told to write for the `at`-th time from now: a program, a label or a sync.
    pub fn cut_power_at(&mut self, at: u64, unsynced: Unsynced, seed: u64) {
        self.armed = Some(Armed { left: at.max(1), unsynced, seed });
    }

    /// Calls a cut off that has not come yet.
    pub fn disarm(&mut self) {
        self.armed = None;
    }

    /// What the cut left, once the power is cut.
    pub fn cut_report(&self) -> Option<CutReport> {
        self.cut
    }

    /// Cuts the power now. From here on everything fails.
    pub fn cut_power(&mut self, unsynced: Unsynced, seed: u64) -> CutReport {
        if let Some(report) = self.cut {
            return report;
        }
        self.armed = None;
        self.cut = Some(CutReport { unsynced, seed, ..CutReport::default() });
        // The kernel finishes what it has; nobody is told.
        let mut waiting: Vec<u64> = self.under_way.drain().map(|(id, _)| id).collect();
        self.quiesce();
        waiting.extend(self.late.drain(..).map(|(_, done)| done.id));
        // Sorted, so that the same seed gives the same run.
        waiting.sort_unstable();
        let held = self.cache.as_mut().map(|cache| cache.take_all()).unwrap_or_default();
        let mut random = SplitMix64::new(seed);
        for program in held {
            let left = self.leave(&mut random, program.bytes.len());
            self.write_what_is_left(program.at, program.bytes, &program.page, &left);
        }
        self.early.clear();
        self.early.extend(waiting.into_iter().map(|id| Done { id, result: Err(MediaError::Os(Errno::IO)) }));
        let report = self.cut.unwrap_or_default();
        tracing::info!(
            dropped = report.dropped,
            kept = report.kept,
            torn = report.torn,
            seed,
            "the power is cut: what no sync covered"
        );
        report
    }

    /// Counts a command; whether the power goes with it.
    pub(super) fn is_last(&mut self, command: &Command) -> bool {
        let writes = matches!(command, Command::Program { .. } | Command::WriteLabel { .. } | Command::Sync);
        let Some(armed) = self.armed.as_mut().filter(|_| writes) else { return false };
        armed.left -= 1;
        armed.left == 0
    }

    /// The power goes while this command is carried out.
    pub(super) fn cut_at(&mut self, id: u64, command: Command) -> Option<Done> {
        let Armed { unsynced, seed, .. } = self.armed.take()?;
        match command {
            Command::Program { at, bytes, page } if self.cache.is_some() => {
                // It is under way, so its fate is that of the others.
                self.program(id, at, bytes, page);
                self.cut_power(unsynced, seed);
            }
            Command::WriteLabel { copy, bytes } if self.cache.is_some() => {
                self.cut_power(unsynced, seed);
                self.tear_label(copy, bytes, seed);
            }
            command => {
                self.cut_power(unsynced, seed);
                return self.submit_without_power(id, command);
            }
        }
        self.early.retain(|done| done.id != id);
        Some(Done { id, result: Err(MediaError::Os(Errno::IO)) })
    }

    /// What is left of a program or label of so many bytes.
    fn leave(&mut self, random: &mut SplitMix64, bytes: usize) -> Left {
        let Some(report) = &mut self.cut else { return Left::Nothing };
        let pieces = bytes.div_ceil(PIECE_BYTES) as u64;
        let lot = match report.unsynced {
            Unsynced::Drop => 0,
            Unsynced::Keep => 1,
            Unsynced::Torn => 2,
            Unsynced::Random => random.below(3),
        };
        match lot {
            0 => {
                report.dropped += 1;
                Left::Nothing
            }
            1 => {
                report.kept += 1;
                Left::All
            }
            _ => {
                report.torn += 1;
                // A first part, or any pieces: a disk need not write in order.
                let first = random.below(pieces);
                let any = random.chance(500_000);
                Left::Some((0..pieces).map(|n| if any { random.chance(500_000) } else { n < first }).collect())
            }
        }
    }

    fn write_what_is_left(&mut self, at: PageAddr, bytes: Range<u32>, page: &Page, left: &Left) {
        if matches!(left, Left::Nothing) || self.faults.dead.contains(&at.die) {
            return;
        }
        let from = page.bytes(bytes.start as usize..bytes.end as usize);
        let wrote = self.inner.tamper(at, bytes, &mut |place| merge(place, from, left));
        if let Err(error) = wrote {
            tracing::error!(?at, %error, "what a power cut leaves could not be written: it counts as absent");
        }
    }

    /// A label was being written on every die.
    fn tear_label(&mut self, copy: u8, mut bytes: Vec<Vec<u8>>, seed: u64) {
        let mut random = SplitMix64::from_state(seed);
        for (die, new) in (0..).zip(&mut bytes) {
            let left = self.leave(&mut random, new.len());
            let old = match (&left, self.faults.dead.contains(&die) || self.left_out.contains(&die)) {
                (Left::Nothing, _) | (_, true) => None,
                _ => self.inner.read_label(die, copy).ok(),
            };
            *new = old.map_or_else(Vec::new, |mut old| {
                old.truncate(new.len());
                merge(&mut old, new, &left);
                old
            });
        }
        self.submit_inner(0, Command::WriteLabel { copy, bytes });
        self.quiesce();
    }
}

/// Puts what is left of `from` into its place.
fn merge(place: &mut [u8], from: &[u8], left: &Left) {
    for (n, (place, from)) in place.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)).enumerate() {
        let written = match left {
            Left::Nothing => false,
            Left::All => true,
            Left::Some(pieces) => pieces.get(n).copied().unwrap_or(false),
        };
        if written && place.len() == from.len() {
            place.copy_from_slice(from);
        }
    }
}
