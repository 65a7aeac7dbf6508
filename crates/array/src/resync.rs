//! Brings copies of a mirror into step: region by region from the copy that has everything, in pieces of one request.
//!
//! What is mapped there is copied; what is not is unmapped on the others. While a piece is copied, changes of its region wait: a
//! change would otherwise be overwritten by what was read before it.

use std::ops::Range;
use std::sync::Arc;

use crate::array::{Array, Job, Life};
use crate::command::{Answer, Outcome, What};
use crate::geometry::Piece;
use crate::wire::Role;

/// What is being done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    None,
    /// Changes of the region come to their end.
    Hold,
    /// The source says what is mapped.
    Map,
    /// The source reads.
    Read,
    /// The others write, or unmap.
    Write { count: u64, left: u32 },
}

/// How far the copying is.
#[derive(Debug, Default)]
pub(crate) struct Sync {
    step: Step,
    region: Option<usize>,
    /// How far in it.
    at: u64,
    /// Regions that were to be copied at most.
    most: usize,
    pub copied: u64,
    pub unmapped: u64,
}

impl Sync {
    /// Whether a change of these regions must wait.
    pub fn holds(&self, regions: &Range<usize>) -> bool {
        self.step != Step::None && self.region.is_some_and(|region| regions.contains(&region))
    }

    pub fn end(&mut self) {
        (self.step, self.region, self.most) = (Step::None, None, 0);
    }

    /// Whether a piece is being copied.
    pub fn is_busy(&self) -> bool {
        self.step != Step::None
    }

    /// Begins with the first region again: there is one more copy.
    pub fn restart(&mut self) {
        self.region = None;
    }

    /// How much is done, per cent, when so many regions are left.
    pub fn percent(&self, left: usize) -> Option<u32> {
        let most = self.most.max(left);
        (left > 0).then(|| ((most - left) * 100 / most) as u32)
    }
}

impl Array {
    /// Whether copying could go on; then [`Array::background`] does a step.
    pub fn has_background(&self) -> bool {
        self.life == Life::Active && self.has_targets() && self.regions.next_unsynced(0).is_some()
    }

    /// Begins the next step of copying, if none is under way.
    pub fn background(&mut self) {
        if self.sync.step != Step::None || self.is_frozen() || !self.has_background() {
            return;
        }
        let region = self.sync.region.filter(|region| {
            let region = self.regions.get(*region);
            region.unsynced && !region.stuck
        });
        if region.is_none() {
            let from = self.sync.region.map_or(0, |region| region + 1);
            let Some(next) = self.regions.next_unsynced(from) else { return };
            self.sync.region = Some(next);
            self.sync.at = self.regions.sectors(next, self.sectors()).start;
        }
        self.sync.most = self.sync.most.max(self.regions.unsynced());
        self.sync.step = Step::Hold;
        self.sync_go_on();
    }

    /// Asks the source, once no change of the region is under way.
    pub(crate) fn sync_go_on(&mut self) {
        let (Step::Hold, Some(region)) = (self.sync.step, self.sync.region) else { return };
        if self.regions.get(region).writing > 0 {
            return;
        }
        let Some(source) = self.primary() else { return };
        if self.is_frozen() || !self.has_targets() {
            self.sync.step = Step::None;
            return;
        }
        let end = self.regions.sectors(region, self.sectors()).end;
        let (lba, max) = (self.sync.at, end - self.sync.at);
        self.sync.step = Step::Map;
        let job = self.job(Job::Sync);
        self.send(job, Piece { member: source, lba, before: 0, count: max }, 0, What::Extent { lba, max });
    }

    pub(crate) fn sync_part(&mut self, job: u64, member: usize, piece: Piece, outcome: Outcome) {
        match (self.sync.step, outcome) {
            (Step::Map, Ok(Answer::Extent(extent))) => {
                self.jobs.remove(&job);
                let run = extent.count.clamp(1, piece.count);
                if extent.mapped {
                    let count = run.min(u64::from(self.shape.largest));
                    self.sync.step = Step::Read;
                    let buf = vec![0; count as usize * self.shape.sector_bytes as usize];
                    let job = self.job(Job::Sync);
                    self.send(job, Piece { count, ..piece }, 0, What::Read { lba: piece.lba, buf });
                } else {
                    self.sync.unmapped += run;
                    let lba = piece.lba;
                    self.sync_write(run, |_| What::Zeroes { lba, count: run, fua: false });
                }
            }
            (Step::Read, Ok(Answer::Done(Some(buf)))) => {
                self.jobs.remove(&job);
                self.sync.copied += piece.count;
                let (lba, data): (u64, Arc<[u8]>) = (piece.lba, buf.into());
                self.sync_write(piece.count, |_| What::Write {
                    lba,
                    data: Arc::clone(&data),
                    part: 0..data.len(),
                    fua: false,
                });
            }
            (Step::Write { count, left }, outcome) => {
                if outcome.is_err() {
                    self.give_up(member);
                }
                self.sync.step = Step::Write { count, left: left - 1 };
                if left == 1 {
                    self.jobs.remove(&job);
                    self.sync_written(count);
                }
            }
            // The source cannot read it.
            (_, outcome) => {
                self.jobs.remove(&job);
                self.sync.step = Step::None;
                let still_there = self.serves(member);
                if let (Some(region), true, Err(_)) = (self.sync.region, still_there, outcome) {
                    self.regions.stuck(region);
                    self.sync.region = None;
                }
            }
        }
    }

    fn sync_write(&mut self, count: u64, what: impl Fn(usize) -> What) {
        let targets: Vec<usize> =
            self.serving().into_iter().filter(|member| self.seats[*member].role == Role::Rebuilding).collect();
        let Some(left) = Some(targets.len() as u32).filter(|left| *left > 0) else {
            self.sync.step = Step::None;
            return;
        };
        let job = self.job(Job::Sync);
        self.sync.step = Step::Write { count, left };
        for member in targets {
            self.send(job, Piece { member, lba: 0, before: 0, count: 0 }, 0, what(member));
        }
    }

    /// A piece is on every copy that is still there.
    fn sync_written(&mut self, count: u64) {
        self.sync.step = Step::None;
        let Some(region) = self.sync.region else { return };
        self.sync.at += count;
        if self.sync.at < self.regions.sectors(region, self.sectors()).end || !self.has_targets() {
            return;
        }
        self.regions.synced(region, self.begun);
        self.sync.region = self.regions.next_unsynced(region + 1);
        if let Some(next) = self.sync.region {
            self.sync.at = self.regions.sectors(next, self.sectors()).start;
        }
        if self.regions.unsynced() == 0 {
            self.sync.most = 0;
        }
    }
}
