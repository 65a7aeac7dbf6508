//! Brings copies of a mirror into step: region by region from a copy that has everything, in pieces of one request. A repair
//! (`repair.rs`) is such a piece for copies that could not read it; it comes before what is copied.
//!
//! What is mapped there is copied; what is not is unmapped on the others. While a piece is copied, changes of its region wait: a
//! change would otherwise be overwritten by what was read before it.

use std::ops::Range;
use std::sync::Arc;

use crate::array::{Array, Job, Life, Mask, bit};
use crate::command::{Answer, Outcome, What};
use crate::geometry::Piece;
use crate::repair::Repairs;
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
    /// The region whose changes wait.
    held: Option<usize>,
    /// The region that is copied.
    region: Option<usize>,
    /// How far in it.
    at: u64,
    /// Copies that have everything and could not read what is to be copied next.
    tried: Mask,
    /// Regions that were to be copied at most.
    most: usize,
    pub copied: u64,
    pub unmapped: u64,
    pub repairs: Repairs,
}

impl Sync {
    /// Whether a change of these regions must wait.
    pub fn holds(&self, regions: &Range<usize>) -> bool {
        self.step != Step::None && self.held.is_some_and(|region| regions.contains(&region))
    }

    pub fn end(&mut self) {
        (self.step, self.held, self.region, self.most) = (Step::None, None, None, 0);
        self.repairs.end();
    }

    /// Whether a piece is being copied.
    pub fn is_busy(&self) -> bool {
        self.step != Step::None
    }

    /// Begins with the first region again: there is one more copy.
    pub fn restart(&mut self) {
        (self.region, self.tried) = (None, 0);
    }

    /// How much is done, per cent, when so many regions are left.
    pub fn percent(&self, left: usize) -> Option<u32> {
        let most = self.most.max(left);
        (left > 0).then(|| ((most - left) * 100 / most) as u32)
    }
}

impl Array {
    /// Whether copying or laying out could go on, or members could be asked where they hold nothing; then [`Array::background`] does a step.
    pub fn has_background(&self) -> bool {
        self.life == Life::Active && (self.has_question() || self.has_to_copy() || self.has_to_move())
    }

    fn has_to_copy(&self) -> bool {
        self.has_targets() && self.regions.next_unsynced(0).is_some()
    }

    /// Begins the next step of copying, or of laying stripes out anew, if none is under way, and asks members where they hold nothing.
    pub fn background(&mut self) {
        if self.life != Life::Active {
            return;
        }
        self.ask_for_holes();
        if self.shape.moved.is_some() {
            self.move_stripes();
            return self.drive();
        }
        if self.sync.step != Step::None || self.is_frozen() || !self.has_to_copy() {
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
        (self.sync.step, self.sync.held) = (Step::Hold, self.sync.region);
        self.sync_go_on();
    }

    /// Begins the next repair, if nothing is being copied just now.
    pub(crate) fn begin_repair(&mut self) {
        if self.sync.step != Step::None || self.is_frozen() {
            return;
        }
        let Some(repair) = self.sync.repairs.begin_next() else { return };
        let sectors = repair.sectors.clone();
        (self.sync.step, self.sync.held) = (Step::Hold, Some(self.regions.of(&sectors).start));
        self.sync_go_on();
    }

    /// The piece is done, or given up.
    fn piece_ends(&mut self) {
        self.sync.step = Step::None;
        self.sync.repairs.current = None;
    }

    /// Asks the source, once no change of the region is under way.
    pub(crate) fn sync_go_on(&mut self) {
        let (Step::Hold, Some(region)) = (self.sync.step, self.sync.held) else { return };
        if self.regions.get(region).writing > 0 {
            return;
        }
        let repair = self.sync.repairs.current.clone();
        if repair.is_some() && self.regions.get(region).stamp >= self.durable && !self.is_frozen() {
            // A part of a change that a power cut may still take back must not stay by itself.
            self.flush_wanted = true;
            return;
        }
        let source = match &repair {
            Some(repair) => self.repair_source(region, repair.targets),
            None => self.sync_source().filter(|_| self.has_targets()),
        };
        let Some(source) = source.filter(|_| !self.is_frozen()) else {
            self.sync.tried = 0;
            return self.piece_ends();
        };
        let end = repair.as_ref().map_or_else(|| self.regions.sectors(region, self.sectors()).end, |it| it.sectors.end);
        let lba = repair.map_or(self.sync.at, |it| it.sectors.start);
        let max = end - lba;
        self.sync.step = Step::Map;
        let job = self.job(Job::Sync);
        self.send(job, Piece { member: source, lba, before: 0, count: max }, What::Extent { lba, max });
    }

    /// The first copy that has everything and was not asked in vain.
    fn sync_source(&self) -> Option<usize> {
        self.whole_ones().find(|member| self.sync.tried & bit(*member) == 0)
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
                    self.send(job, Piece { count, ..piece }, What::Read { lba: piece.lba, buf });
                } else {
                    if self.sync.repairs.current.is_none() {
                        self.sync.unmapped += run;
                    }
                    let lba = piece.lba;
                    self.sync_write(run, |_| What::Zeroes { lba, count: run, fua: false });
                }
            }
            (Step::Read, Ok(Answer::Done(Some(buf)))) => {
                self.jobs.remove(&job);
                if self.sync.repairs.current.is_none() {
                    self.sync.copied += piece.count;
                }
                let (lba, data): (u64, Arc<[u8]>) = (piece.lba, buf.into());
                self.sync_write(piece.count, |_| What::Write {
                    lba,
                    data: Arc::clone(&data),
                    part: 0..data.len(),
                    fua: false,
                });
            }
            (Step::Write { count, left }, outcome) => {
                match (&self.sync.repairs.current, outcome.is_ok()) {
                    // It can be read there again.
                    (Some(_), true) => self.sync.repairs.sectors += count,
                    // It holds what it held, and another copy has it, too.
                    (Some(_), false) | (None, true) => {}
                    (None, false) => self.give_up(member),
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
                let is_repair = self.sync.repairs.current.is_some();
                self.piece_ends();
                let still_there = self.serves(member) && !is_repair;
                if let (Some(region), true, Err(_)) = (self.sync.region, still_there, outcome) {
                    self.sync.tried |= bit(member);
                    if self.sync_source().is_none() {
                        self.regions.stuck(region);
                        (self.sync.region, self.sync.tried) = (None, 0);
                    }
                }
            }
        }
    }

    fn sync_write(&mut self, count: u64, what: impl Fn(usize) -> What) {
        let repaired = self.sync.repairs.current.as_ref().map(|repair| repair.targets);
        let is_target = |member: &usize| match repaired {
            Some(targets) => targets & bit(*member) != 0,
            None => self.seats[*member].role == Role::Rebuilding,
        };
        let targets: Vec<usize> = self.serving().into_iter().filter(is_target).collect();
        let Some(left) = Some(targets.len() as u32).filter(|left| *left > 0) else {
            return self.piece_ends();
        };
        let job = self.job(Job::Sync);
        self.sync.step = Step::Write { count, left };
        for member in targets {
            self.send(job, Piece { member, lba: 0, before: 0, count: 0 }, what(member));
        }
    }

    /// A piece is on every copy that is still there.
    fn sync_written(&mut self, count: u64) {
        if let Some(repair) = self.sync.repairs.current.take() {
            self.sync.step = Step::None;
            // Of what is unmapped in part the rest follows.
            let rest = Piece { member: 0, lba: repair.sectors.start + count, before: 0, count: 0 };
            let count = repair.sectors.end - rest.lba;
            return self.repair(&Piece { count, ..rest }, repair.targets);
        }
        (self.sync.step, self.sync.tried) = (Step::None, 0);
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
