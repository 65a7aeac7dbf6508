//! What a device on objects does next: a state machine without I/O, clock or threads.
//!
//! It is told what happened in the journal and in the store, and says what is to be done. Its owner carries out each [`Action`] and reports it
//! back; an action that failed comes again, later each time. Three rules make it safe:
//!
//! - An anchor is written when every object that it names is in the store, and what it describes is durable in the journal.
//! - Until it is known what became of an anchor, the very same bytes are written again, under the same condition: whichever attempt
//!   succeeds, the store holds the same.
//! - An object is deleted only when the anchor that is known to be in the store names it as garbage, and has for as long as the grace period says.
//!
//! Where the device has a lease, an anchor that says the same is written when there has been none for a while. It renews the lease as of the moment
//! at which it was first asked for, however late it is known to be there.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use super::jobs::{Cut, Job, Piece, Progress};
use super::later::Later;
use super::lease::Lease;
use super::lebs::{Giving, LebPlan};
use super::notes::Note;
use super::{Anchor, Claimed, Failure, Garbage, HEAD_BYTES, LebEntry, Life, Notes, ObjectId};

/// Uploads under way at once.
pub const UPLOADS: usize = 4;
/// How long a store may take no upload before a cut that an erase waits for is given up, milliseconds: where its requests fail, and where it says
/// nothing, as one does that takes large uploads over a slow line.
const FAILING_MS: u64 = 2_000;
const SILENT_MS: u64 = 20_000;
/// How long after a cut that could not be read the next one is taken, milliseconds.
const UNREADABLE_MS: u64 = 2000;
/// Deletions under way at once.
const DELETIONS: usize = 4;
/// Attempts to write an anchor that are under way at once, where the store leaves them unanswered and a lease runs out.
const ATTEMPTS: u32 = 4;

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make everything durable in the journal that is done there; [`Plan::cut_synced`].
    SyncCut,
    /// Upload a part of a LEB; [`Plan::read_ended`] when it was read from the journal, and [`Plan::uploaded`].
    Upload {
        /// Which LEB.
        leb: u32,
        /// In which life.
        life: Life,
        /// The object's name.
        id: ObjectId,
        /// Where the part begins, bytes.
        start: u32,
        /// How long it is, bytes.
        len: u32,
    },
    /// Append to the notes, durably; [`Plan::noted`].
    Note(Note),
    /// Replace the anchor; [`Plan::swapped`].
    Swap {
        /// Which replacement this is an attempt of.
        number: u64,
        /// The new one.
        bytes: Vec<u8>,
        /// The version of the one that must still be there.
        expected: Option<String>,
    },
    /// Read the anchor; [`Plan::fetched`].
    Fetch {
        /// Which replacement's end is to be found out.
        number: u64,
    },
    /// The LEB may be erased in the journal now.
    Erase {
        /// Which LEB.
        leb: u32,
    },
    /// Give the LEB's place in the journal back; [`Plan::punched`].
    Punch {
        /// Which LEB.
        leb: u32,
    },
    /// Delete an object; [`Plan::deleted`].
    Delete(ObjectId),
}

/// Somebody else has the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// What the other's host is called.
    pub host: String,
    /// The other's owner epoch.
    pub epoch: u32,
}

/// What happened so far, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Anchors that were written.
    pub commits: u64,
    /// Objects that were uploaded.
    pub uploads: u64,
    /// Bytes of their content.
    pub uploaded_bytes: u64,
    /// Requests that failed, each attempt counted.
    pub errors: u64,
    /// Objects that were deleted.
    pub deleted: u64,
    /// The newest error, until the same kind of request succeeds.
    pub trouble: Option<String>,
}

/// Something that is tried again.
#[derive(Clone, Copy, Debug)]
enum Again {
    Upload {
        leb: u32,
        id: ObjectId,
    },
    Note(Note),
    /// Of the replacement with this number.
    Swap(u64),
    Fetch(u64),
    Delete(ObjectId),
}

/// How far the anchor under way is.
struct Swapping {
    /// No two have the same: answers that come late are not taken for those of another one.
    number: u64,
    anchor: Anchor,
    bytes: Vec<u8>,
    failures: u32,
    /// It says nothing new, and no cut goes with it.
    renews: bool,
    /// When it was first asked for, and last, by the steady clock.
    first_ms: u64,
    last_ms: u64,
    /// Requests for it that are not answered.
    asked: u32,
}

/// What decides.
pub struct Plan {
    block_bytes: u32,
    lebs: Vec<LebPlan>,
    labels: [Vec<u8>; 2],
    /// The layer says that everything below is durable in the journal.
    durable: u64,
    /// The anchor that is known to be in the store, and its version.
    anchor: Anchor,
    version: Option<String>,
    cut: Option<Cut>,
    swapping: Option<Swapping>,
    /// How many replacements of the anchor were begun.
    swaps: u64,
    lease: Lease,
    fence: Option<Fence>,
    actions: VecDeque<Action>,
    later: Later<(u32, Again)>,
    /// Erases that wait for an upload.
    erases: BTreeSet<u32>,
    /// Somebody waits for the next cut.
    hurried: bool,
    /// Since when something is to be committed that no cut holds, milliseconds.
    changed_ms: Option<u64>,
    uploading: usize,
    /// Objects whose upload was begun, and that no anchor has named yet: the next one names them, or calls them garbage.
    strays: BTreeSet<ObjectId>,
    /// When the store took an upload last, or could have, milliseconds; `None` while it has nothing to take.
    taken_ms: Option<u64>,
    /// Deletions under way, and objects that are gone and still in the anchor's list.
    deleting: BTreeSet<ObjectId>,
    gone: BTreeSet<ObjectId>,
    next_number: u32,
    next_life: u32,
    now_ms: u64,
    /// By a clock that nobody sets.
    steady_ms: u64,
    /// When the last cut was taken.
    cut_ms: u64,
    /// Bytes in the journal that the anchor does not name, and bytes of programs under way.
    ahead: u64,
    programming: u64,
    /// What may be programmed beyond the bound's half, earned by uploads.
    credit: u64,
    /// A last commit is wanted.
    leaving: bool,
    /// The layer did not say yet how far it is durable. A label that only the journal has may show more than the store's mark, and a part of that
    /// only, so there is no cut before the layer knows its log.
    quiet: bool,
    /// The journal failed.
    broken: bool,
    /// What was to be uploaded last could not be read from the journal: whoever writes shall hear of it, and not wait.
    unreadable: bool,
    /// No cut before this moment, milliseconds.
    tired_ms: u64,
    tally: Tally,
}

impl Plan {
    /// Goes on with a device that was claimed. `written_end` says for a LEB of the journal up to which byte something may stand in it.
    ///
    /// # Errors
    /// What journal and store say does not fit together.
    pub fn new(
        Claimed { anchor, version, asked_ms }: Claimed,
        notes: &Notes,
        labels: [Vec<u8>; 2],
        (now_ms, seed): (u64, u64),
        mut written_end: impl FnMut(u32) -> u32,
    ) -> Result<Plan, String> {
        let block_bytes = super::anchor::sound(&anchor.geometry).ok_or("the anchor's geometry makes no sense")?;
        let mut lebs = vec![LebPlan::empty(); anchor.geometry.blocks as usize];
        for entry in &anchor.lebs {
            let plan = &mut lebs[entry.leb as usize];
            plan.life = entry.life;
            (plan.local, plan.closed) = (false, true);
            plan.segments.clone_from(&entry.segments);
            plan.end = entry.bytes();
            plan.committed = plan.end;
        }
        for (&leb, &(life, local)) in &notes.lebs {
            let plan = lebs.get_mut(leb as usize).ok_or("the notes name a LEB that the device has not")?;
            if !local && plan.life != life {
                return Err(format!("the journal gave LEB {leb} back, and the store has another life of it"));
            }
            if plan.life != life {
                *plan = LebPlan { life, closed: true, ..LebPlan::empty() };
            }
            plan.local = local;
            if local {
                plan.end = plan.end.max(written_end(leb)).min(block_bytes);
            }
        }
        if let Some(leb) = (0..lebs.len() as u32).find(|leb| {
            let plan = &lebs[*leb as usize];
            !plan.local && !notes.lebs.contains_key(leb)
        }) {
            return Err(format!("the store has LEB {leb}, and the journal knows nothing of it"));
        }
        let (ahead, mark) = (lebs.iter().map(LebPlan::ahead).sum(), anchor.mark);
        Ok(Plan {
            block_bytes,
            lebs,
            changed_ms: Some(now_ms),
            labels,
            durable: mark,
            version: Some(version),
            lease: Lease::new(anchor.limits.lease_ms, asked_ms),
            anchor,
            cut: None,
            swapping: None,
            swaps: 0,
            fence: None,
            actions: VecDeque::new(),
            later: Later::new(seed),
            erases: BTreeSet::new(),
            hurried: false,
            uploading: 0,
            strays: BTreeSet::new(),
            taken_ms: None,
            deleting: BTreeSet::new(),
            gone: BTreeSet::new(),
            next_number: 0,
            next_life: 0,
            now_ms,
            steady_ms: asked_ms,
            cut_ms: now_ms,
            ahead,
            programming: 0,
            credit: 0,
            leaving: false,
            quiet: true,
            broken: false,
            unreadable: false,
            tired_ms: 0,
            tally: Tally::default(),
        })
    }

    /// The next thing to do.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Who has the device, if it is somebody else.
    pub fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// The anchor that is known to be in the store.
    pub fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// What happened so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Everything below this sequence number is durable in the journal.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Bytes in the journal that would be lost with it.
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead
    }

    /// How long the oldest change has waited for the store, milliseconds.
    pub fn behind_ms(&self) -> u64 {
        let since = self.cut.as_ref().map(|cut| cut.since_ms).or(self.changed_ms);
        since.map_or(0, |since| self.now_ms.saturating_sub(since))
    }

    /// Something happened that the store is to know.
    fn changed(&mut self) {
        self.changed_ms.get_or_insert(self.now_ms);
    }

    /// Bytes of LEBs in the journal.
    pub fn local_bytes(&self) -> u64 {
        self.lebs.iter().map(LebPlan::here).sum()
    }

    /// Bytes of objects that hold parts of LEBs: what the store is paid for, but for those that wait for their deletion.
    pub fn stored_bytes(&self) -> u64 {
        self.lebs.iter().map(|leb| u64::from(leb.uploaded()) + u64::from(HEAD_BYTES) * leb.segments.len() as u64).sum()
    }

    /// Whether a LEB is read from the journal; otherwise from the store.
    pub fn is_local(&self, leb: u32) -> bool {
        self.lebs[leb as usize].local
    }

    /// Where in the store bytes of a LEB stand: object, place in its content, how many. What is missing at the end holds zeros.
    pub fn places(&self, leb: u32, start: u32, end: u32) -> Vec<(ObjectId, u32, u32)> {
        let (mut places, mut at) = (Vec::new(), 0);
        for segment in &self.lebs[leb as usize].segments {
            let (from, to) = (start.max(at), end.min(at + segment.len));
            if from < to {
                places.push((segment.id, from - at, to - from));
            }
            at += segment.len;
        }
        places
    }

    /// When something is to be done next without anything happening, milliseconds.
    pub fn wakes_ms(&self) -> Option<u64> {
        if self.fence.is_some() || self.has_left() {
            return None;
        }
        let cut = (self.cut.is_none() && !self.broken && !self.quiet && self.changed_ms.is_some())
            .then_some((self.cut_ms + self.anchor.limits.commit_ms).max(self.tired_ms));
        // While as many deletions as may be are under way, the end of one of them is what is waited for.
        let old = self.garbage().map(|garbage| garbage.since_ms + self.anchor.limits.grace_ms).next();
        let old = old.filter(|_| self.deleting.len() < DELETIONS);
        let renewal = self.renewal_in_ms().map(|left| self.now_ms + left);
        [cut, old, renewal, self.later.next_ms(), self.gives_up_ms()].into_iter().flatten().min()
    }

    /// When a cut that an erase waits for is given up, unless the store takes something of it before.
    fn gives_up_ms(&self) -> Option<u64> {
        let patience = if self.tally.trouble.is_some() { FAILING_MS } else { SILENT_MS };
        let cut = self.cut.as_ref().filter(|cut| cut.synced && cut.noted)?;
        let is_waited_for = self.erases.iter().any(|leb| cut.jobs.contains_key(leb));
        self.taken_ms.filter(|_| is_waited_for).map(|taken| taken + patience)
    }

    /// How long until something is to be done for the lease, milliseconds.
    fn renewal_in_ms(&self) -> Option<u64> {
        if self.broken || self.has_left() {
            return None;
        }
        let due = self.lease.due_in_ms(self.steady_ms)?;
        match &self.swapping {
            Some(swapping) if swapping.asked >= ATTEMPTS => None,
            Some(swapping) => Some((swapping.last_ms + self.lease.step_ms()).saturating_sub(self.steady_ms)),
            None => Some(due),
        }
    }

    /// Whether the owner may answer nothing now, because it has not written to the store for so long that another host may have the device.
    #[inline]
    pub fn is_lapsed(&self, steady_ms: u64) -> bool {
        self.lease.is_out(steady_ms)
    }

    /// Whether there is a lease.
    #[inline]
    pub fn has_lease(&self) -> bool {
        self.lease.is_on()
    }

    fn garbage(&self) -> impl Iterator<Item = &Garbage> {
        self.anchor
            .garbage
            .iter()
            .filter(|garbage| !self.deleting.contains(&garbage.id) && !self.gone.contains(&garbage.id))
    }

    /// Changes what is known of a LEB, and keeps the sum.
    fn change(&mut self, leb: u32, change: impl FnOnce(&mut LebPlan)) {
        let plan = &mut self.lebs[leb as usize];
        self.ahead -= plan.ahead();
        change(plan);
        self.ahead += plan.ahead();
    }

    /// Whether so many bytes may be programmed now. The bound on what only the journal has slows writes down from its half on to the pace of the
    /// uploads, and holds them when it is reached.
    pub fn admits(&mut self, bytes: u32) -> bool {
        let limits = self.anchor.limits;
        let (bytes, ahead) = (u64::from(bytes), self.ahead + self.programming);
        if self.fence.is_some() || self.quiet || self.broken || self.unreadable || ahead == 0 {
            return true;
        }
        if limits.behind_ms > 0 && self.behind_ms() > limits.behind_ms {
            return false;
        }
        if ahead + bytes <= limits.behind_bytes / 2 {
            return true;
        }
        if ahead + bytes > limits.behind_bytes || self.credit < bytes {
            return false;
        }
        self.credit -= bytes;
        true
    }

    /// A program of the journal begins.
    pub fn program_begins(&mut self, leb: u32, start: u32, len: u32) {
        let plan = &mut self.lebs[leb as usize];
        plan.failed.retain(|failed| *failed != start);
        plan.under_way.push(start);
        self.programming += u64::from(len);
    }

    /// It ended.
    pub fn program_done(&mut self, leb: u32, start: u32, len: u32, done: bool) {
        self.programming -= u64::from(len);
        let block_bytes = self.block_bytes;
        self.change(leb, |plan| {
            if let Some(at) = plan.under_way.iter().position(|begun| *begun == start) {
                plan.under_way.swap_remove(at);
            }
            if done {
                plan.end = plan.end.max(start + len);
                plan.closed |= plan.end == block_bytes;
            } else {
                plan.failed.push(start);
            }
        });
        self.changed();
    }

    /// Nothing more is appended to a LEB.
    pub fn finished(&mut self, leb: u32) {
        self.lebs[leb as usize].closed = true;
    }

    /// A LEB is to be erased: it is when nothing of it is needed for the store any more.
    pub fn erase(&mut self, leb: u32) {
        self.erases.insert(leb);
    }

    /// A label copy was written.
    pub fn label(&mut self, copy: u8, bytes: Vec<u8>) {
        self.labels[usize::from(copy & 1)] = bytes;
        self.changed();
    }

    /// The layer says that everything below is durable.
    pub fn durable_below(&mut self, seq: u64) {
        self.quiet = false;
        if seq > self.durable {
            self.durable = seq;
            self.changed();
        }
    }

    /// A read of a LEB in the journal begins.
    pub fn read_begins(&mut self, leb: u32) {
        self.lebs[leb as usize].readers += 1;
    }

    /// It ended.
    pub fn read_ended(&mut self, leb: u32) {
        self.lebs[leb as usize].readers -= 1;
        self.give_back(leb);
    }

    /// Somebody waits until what is durable in the journal is in the store: the next cut is taken as soon as may be.
    pub fn hurry(&mut self) {
        self.hurried = true;
        self.changed();
    }

    /// The owner detaches: a last commit releases the device.
    pub fn leave(&mut self) {
        self.leaving = true;
        self.changed();
    }

    /// Whether that commit is in the store.
    pub fn has_left(&self) -> bool {
        self.anchor.released
    }

    /// What a cut holds is durable in the journal, or never will be.
    pub fn cut_synced(&mut self, done: bool) {
        match &mut self.cut {
            Some(cut) if done => cut.synced = true,
            _ => self.journal_failed(),
        }
    }

    /// A sync of the journal failed: what it holds is durable or not, no later sync can tell, and the store must not be ahead of it. There are
    /// no more cuts.
    pub fn journal_failed(&mut self) {
        self.broken = true;
        if self.swapping.as_ref().is_none_or(|swapping| swapping.renews) {
            self.cut = None;
        }
    }

    /// Whether the journal failed.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// An upload ended.
    pub fn uploaded(&mut self, leb: u32, id: ObjectId, result: Result<(), Failure>) {
        self.uploading -= 1;
        if result.is_ok() {
            // Also one of a cut that was given up: the store takes something again.
            self.taken_ms = Some(self.now_ms);
            self.succeeded();
        }
        let job = self.cut.as_mut().and_then(|cut| cut.jobs.get_mut(&leb));
        let piece = job.and_then(|job| job.pieces.iter_mut().find(|piece| piece.id == id));
        let Some(piece) = piece else { return };
        match result {
            Ok(()) => {
                piece.progress = Progress::Done;
                self.unreadable = false;
                self.tally.uploads += 1;
                self.tally.uploaded_bytes += u64::from(piece.len);
                self.credit = (self.credit + 2 * u64::from(piece.len)).min(self.anchor.limits.behind_bytes / 2);
                self.job_done(leb);
            }
            Err(failure) => {
                piece.failures += 1;
                piece.progress = Progress::Resting;
                let failures = piece.failures;
                self.failed(failures, Again::Upload { leb, id }, "upload", &failure);
            }
        }
    }

    /// A part could not be read from the journal. The cut comes to nothing, so that what can be read nowhere holds up no erase: by the next cut the
    /// LEB may be gone.
    pub fn journal_unreadable(&mut self, leb: u32, id: ObjectId, why: &str) {
        self.uploading -= 1;
        let is_of = |cut: &mut Cut| cut.jobs.get(&leb).is_some_and(|job| job.pieces.iter().any(|piece| piece.id == id));
        // What is wrong with a part of a cut that was given up is for the next cut to find.
        if self.cut.take_if(is_of).is_none() {
            return;
        }
        self.unreadable = true;
        self.tally.errors += 1;
        self.tally.trouble = Some(format!("LEB {leb} of the journal: {why}"));
        self.changed();
        self.cut_ms = self.now_ms;
        self.tired_ms = self.now_ms + UNREADABLE_MS;
    }

    /// A program waits in front of the journal.
    pub fn program_held(&mut self, leb: u32) {
        self.lebs[leb as usize].held += 1;
    }

    /// It waits no more.
    pub fn program_let_go(&mut self, leb: u32) {
        self.lebs[leb as usize].held -= 1;
    }

    fn job_done(&mut self, leb: u32) {
        let Some(cut) = &mut self.cut else { return };
        let Some(job) = cut.jobs.get(&leb).filter(|job| job.is_done()) else { return };
        let plan = &mut self.lebs[leb as usize];
        plan.segments = job.segments(&plan.segments);
        cut.jobs.remove(&leb);
        cut.lebs.push(LebEntry { leb, life: plan.life, segments: plan.segments.clone() });
    }

    fn succeeded(&mut self) {
        self.tally.trouble = None;
    }

    fn failed(&mut self, failures: u32, again: Again, what: &str, failure: &Failure) {
        self.tally.errors += 1;
        self.tally.trouble = Some(format!("{what}: {failure}"));
        self.later.put(self.now_ms, failures, (failures, again));
    }

    /// A note was written, or could not be.
    pub fn noted(&mut self, note: Note, result: Result<(), Failure>) {
        if let Err(failure) = result {
            return self.failed(1, Again::Note(note), "the journal's notes", &failure);
        }
        match note {
            Note::Life { leb, .. } => self.actions.push_back(Action::Erase { leb }),
            Note::Gone { leb, .. } => {
                let plan = &mut self.lebs[leb as usize];
                // From now on it is read from the store.
                (plan.local, plan.giving) = (false, Giving::Waiting);
                self.give_back(leb);
            }
            Note::Begun { commit, .. } => {
                if let Some(cut) = self.cut.as_mut().filter(|cut| cut.commit == commit) {
                    cut.noted = true;
                }
            }
        }
    }

    fn give_back(&mut self, leb: u32) {
        let plan = &mut self.lebs[leb as usize];
        if plan.giving == Giving::Waiting && plan.readers == 0 {
            self.actions.push_back(Action::Punch { leb });
        }
    }

    /// A LEB's place in the journal was given back.
    pub fn punched(&mut self, leb: u32) {
        self.lebs[leb as usize].giving = Giving::No;
    }

    /// The replacement of this number, if it is still under way, with one request for it less.
    fn answer_to(swapping: &mut Option<Swapping>, number: u64) -> Option<&mut Swapping> {
        let swapping = swapping.as_mut().filter(|swapping| swapping.number == number)?;
        swapping.asked = swapping.asked.saturating_sub(1);
        Some(swapping)
    }

    /// How an attempt to replace the anchor ended.
    pub fn swapped(&mut self, number: u64, result: Result<String, Failure>) {
        let Some(swapping) = Plan::answer_to(&mut self.swapping, number) else { return };
        match result {
            Ok(version) => self.committed(version),
            // Perhaps an attempt of ours came first.
            Err(Failure::Precondition) => self.fetch(),
            Err(failure) => {
                swapping.failures += 1;
                let failures = swapping.failures;
                self.failed(failures, Again::Fetch(number), "the anchor", &failure);
            }
        }
    }

    /// What stands there now, where the anchor's replacement ended nobody knows how.
    pub fn fetched(&mut self, number: u64, result: Result<(Vec<u8>, String), Failure>) {
        let Some(swapping) = Plan::answer_to(&mut self.swapping, number) else { return };
        let (bytes, version) = match result {
            Ok(found) => found,
            Err(failure) => {
                swapping.failures += 1;
                let failures = swapping.failures;
                return self.failed(failures, Again::Fetch(number), "the anchor", &failure);
            }
        };
        if bytes == swapping.bytes {
            return self.committed(version);
        }
        match Anchor::decode(&bytes) {
            Ok(found) if found == self.anchor => {
                self.version = Some(version);
                swapping.failures += 1;
                let failures = swapping.failures;
                self.later.put(self.now_ms, failures, (failures, Again::Swap(number)));
            }
            Ok(found) => self.fenced(Fence { host: found.host, epoch: found.epoch }),
            Err(why) => self.fenced(Fence { host: format!("an anchor that cannot be read: {why}"), epoch: 0 }),
        }
    }

    fn fenced(&mut self, fence: Fence) {
        self.fence = Some(fence);
        (self.cut, self.swapping) = (None, None);
        self.actions.clear();
        self.later.drain().for_each(drop);
        self.erases.clear();
    }

    fn committed(&mut self, version: String) {
        let Some(swapping) = self.swapping.take() else { return };
        self.succeeded();
        self.lease.renewed(swapping.first_ms);
        self.anchor = swapping.anchor;
        self.version = Some(version);
        let Some(cut) = self.cut.take_if(|_| !swapping.renews) else { return };
        self.tally.commits += 1;
        self.taken_ms = None;
        // The anchor names them, and nothing was uploaded since it was begun.
        self.strays.clear();
        self.gone.retain(|id| self.anchor.garbage.iter().any(|garbage| garbage.id == *id));
        let named: BTreeMap<u32, (Life, u32)> =
            self.anchor.lebs.iter().map(|entry| (entry.leb, (entry.life, entry.bytes()))).collect();
        for leb in 0..self.lebs.len() as u32 {
            self.change(leb, |plan| {
                plan.committed = named.get(&leb).filter(|(life, _)| *life == plan.life).map_or(0, |(_, bytes)| *bytes);
            });
        }
        self.leaving &= !cut.last;
        self.make_room();
    }

    /// Gives LEBs' places in the journal back, the oldest first, while it holds more than it should.
    fn make_room(&mut self) {
        let limit = self.anchor.limits.local_bytes;
        let mut here = self.local_bytes();
        if limit == 0 || here <= limit {
            return;
        }
        let mut candidates: Vec<(Life, u32)> = (0..)
            .zip(&self.lebs)
            .filter(|(leb, plan)| plan.can_go() && !self.erases.contains(leb))
            .map(|(leb, plan)| (plan.life, leb))
            .collect();
        candidates.sort_unstable();
        for (life, leb) in candidates {
            if here <= limit {
                break;
            }
            let plan = &mut self.lebs[leb as usize];
            plan.giving = Giving::Noting;
            here -= plan.here();
            self.actions.push_back(Action::Note(Note::Gone { leb, life }));
        }
    }

    /// An object was deleted, or could not be.
    pub fn deleted(&mut self, id: ObjectId, result: Result<(), Failure>) {
        match result {
            Ok(()) => {
                self.deleting.remove(&id);
                self.gone.insert(id);
                self.tally.deleted += 1;
                self.changed();
            }
            Err(failure) => self.failed(3, Again::Delete(id), "a deletion", &failure),
        }
    }

    /// Goes on. To be called after everything that happened, and when its moment has come.
    pub fn step(&mut self, now_ms: u64, steady_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        self.steady_ms = self.steady_ms.max(steady_ms);
        if self.fence.is_some() || self.has_left() {
            // The device is somebody else's, or may be at any moment.
            return;
        }
        while let Some((failures, again)) = self.later.due(self.now_ms) {
            self.again(failures, again);
        }
        if self.cut.is_none() && !self.broken && !self.quiet && self.is_time_for_cut() {
            self.take_cut();
        }
        self.begin_uploads();
        self.begin_swap();
        self.renew();
        self.give_up_cut();
        self.begin_erases();
        self.begin_deletions();
        // Otherwise whoever waits for that moment would wait no time, over and over. An erase just now may be what the next cut is for.
        debug_assert!(
            self.wakes_ms().is_none_or(|at| at > self.now_ms || self.is_time_for_cut()),
            "what is due is not done"
        );
    }

    fn again(&mut self, _failures: u32, again: Again) {
        match again {
            Again::Upload { leb, id } => {
                let job = self.cut.as_mut().and_then(|cut| cut.jobs.get_mut(&leb));
                if let Some(piece) = job.and_then(|job| job.pieces.iter_mut().find(|piece| piece.id == id)) {
                    piece.progress = Progress::Waiting;
                }
            }
            Again::Note(note) => self.actions.push_back(Action::Note(note)),
            Again::Swap(number) if self.is_under_way(number) => self.swap(),
            Again::Fetch(number) if self.is_under_way(number) => self.fetch(),
            Again::Swap(_) | Again::Fetch(_) => {}
            Again::Delete(id) => self.actions.push_back(Action::Delete(id)),
        }
    }

    fn is_time_for_cut(&self) -> bool {
        let due = self.now_ms >= self.cut_ms + self.anchor.limits.commit_ms;
        self.changed_ms.is_some() && self.now_ms >= self.tired_ms && (due || self.leaving || self.hurried)
    }

    /// Takes a cut of the journal as it is now.
    fn take_cut(&mut self) {
        let (mut lebs, mut jobs) = (Vec::new(), BTreeMap::new());
        let (epoch, next) = (self.anchor.epoch, &mut self.next_number);
        let mut name = |leb| {
            *next += 1;
            ObjectId { epoch, leb, number: *next }
        };
        for (leb, plan) in (0..).zip(&self.lebs) {
            let len = plan.settled();
            if len > plan.uploaded() {
                jobs.insert(leb, Job::new(leb, plan, len, &mut name));
            } else if len > 0 {
                lebs.push(LebEntry { leb, life: plan.life, segments: plan.segments.clone() });
            }
        }
        let commit = self.anchor.commit + 1;
        self.cut = Some(Cut {
            commit,
            lebs,
            jobs,
            labels: self.labels.clone(),
            mark: self.durable.max(self.anchor.mark),
            since_ms: self.changed_ms.take().unwrap_or(self.now_ms),
            synced: false,
            noted: false,
            last: self.leaving,
        });
        self.cut_ms = self.now_ms;
        self.hurried = false;
        self.actions.push_back(Action::SyncCut);
        self.actions.push_back(Action::Note(Note::Begun { epoch, commit }));
    }

    fn begin_uploads(&mut self) {
        let Some(cut) = &mut self.cut else { return };
        for (leb, job) in &mut cut.jobs {
            for piece in job.pieces.iter_mut().filter(|piece| piece.progress == Progress::Waiting) {
                if self.uploading >= UPLOADS {
                    return;
                }
                self.uploading += 1;
                piece.progress = Progress::UnderWay;
                self.strays.insert(piece.id);
                self.taken_ms.get_or_insert(self.now_ms);
                let Piece { id, start, len, .. } = *piece;
                let plan = &mut self.lebs[*leb as usize];
                // Until it was read from the journal the LEB is not erased: no object is ever written a second time with something else.
                plan.readers += 1;
                let life = plan.life;
                self.actions.push_back(Action::Upload { leb: *leb, life, id, start, len });
            }
        }
    }

    fn begin_swap(&mut self) {
        if self.swapping.is_some() {
            return;
        }
        let Some(cut) = self.cut.as_ref().filter(|cut| cut.is_ready()) else { return };
        let mut lebs = cut.lebs.clone();
        lebs.sort_unstable_by_key(|entry| entry.leb);
        let named: HashSet<ObjectId> = lebs.iter().flat_map(|entry| entry.segments.iter().map(|it| it.id)).collect();
        let old = self.anchor.garbage.iter().filter(|garbage| !self.gone.contains(&garbage.id)).copied();
        let new = self.anchor.objects().chain(self.strays.iter().copied()).filter(|id| !named.contains(id));
        let garbage = old.chain(new.map(|id| Garbage { id, since_ms: self.now_ms })).collect();
        let anchor = Anchor {
            commit: cut.commit,
            renewal: 0,
            released: cut.last,
            written_ms: self.now_ms,
            mark: cut.mark,
            ahead_bytes: if cut.last { 0 } else { self.ahead_of_cut(&lebs) },
            labels: cut.labels.clone(),
            lebs,
            garbage,
            ..self.anchor.clone()
        };
        self.write_anchor(anchor, false);
    }

    fn write_anchor(&mut self, anchor: Anchor, renews: bool) {
        self.swaps += 1;
        let bytes = anchor.encode();
        let (number, now) = (self.swaps, self.steady_ms);
        let swapping = Swapping { number, anchor, bytes, failures: 0, renews, first_ms: now, last_ms: now, asked: 0 };
        self.swapping = Some(swapping);
        self.swap();
    }

    /// Renews the lease where it is time to: by an anchor that says the same, or by one more attempt to write the one under way, whose requests the
    /// store may have lost.
    fn renew(&mut self) {
        if self.renewal_in_ms() != Some(0) {
            return;
        }
        if self.swapping.is_some() {
            return self.swap();
        }
        let (renewal, ahead_bytes) = (self.anchor.renewal + 1, self.ahead);
        self.write_anchor(Anchor { renewal, ahead_bytes, written_ms: self.now_ms, ..self.anchor.clone() }, true);
    }

    /// Bytes in the journal that a cut does not hold.
    fn ahead_of_cut(&self, lebs: &[LebEntry]) -> u64 {
        let held = lebs.iter().filter(|entry| self.lebs[entry.leb as usize].life == entry.life);
        let held: u64 = held.map(|entry| u64::from(entry.bytes())).sum();
        let all: u64 = self.lebs.iter().map(|plan| u64::from(plan.end)).sum();
        all.saturating_sub(held)
    }

    fn swap(&mut self) {
        let Some(swapping) = &mut self.swapping else { return };
        (swapping.last_ms, swapping.asked) = (self.steady_ms, swapping.asked + 1);
        let (number, bytes) = (swapping.number, swapping.bytes.clone());
        self.actions.push_back(Action::Swap { number, bytes, expected: self.version.clone() });
    }

    fn fetch(&mut self) {
        let Some(swapping) = &mut self.swapping else { return };
        swapping.asked += 1;
        self.actions.push_back(Action::Fetch { number: swapping.number });
    }

    fn is_under_way(&self, number: u64) -> bool {
        self.swapping.as_ref().is_some_and(|swapping| swapping.number == number)
    }

    /// Whether the cut needs something of a LEB that only the journal has.
    fn is_needed(&self, leb: u32) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.jobs.contains_key(&leb))
    }

    /// Where the store takes nothing and an erase waits for the cut, the cut comes to nothing: clients go on, and a later cut holds more. The bound
    /// on what only the journal has is what holds them. A cut whose notes and sync are under way is waited for: no answer to them may be taken for
    /// one to the next cut.
    fn give_up_cut(&mut self) {
        if self.gives_up_ms().is_some_and(|at| at <= self.now_ms)
            && let Some(cut) = self.cut.take()
        {
            self.changed_ms = Some(cut.since_ms);
            self.cut_ms = self.now_ms;
        }
    }

    fn begin_erases(&mut self) {
        let ready: Vec<u32> = self.erases.iter().copied().filter(|leb| self.can_erase(*leb)).collect();
        for leb in ready {
            self.erases.remove(&leb);
            self.next_life += 1;
            let life = u64::from(self.anchor.epoch) << 32 | u64::from(self.next_life);
            self.change(leb, |plan| *plan = LebPlan { life, ..LebPlan::empty() });
            self.changed();
            self.actions.push_back(Action::Note(Note::Life { leb, life }));
        }
    }

    fn can_erase(&self, leb: u32) -> bool {
        let plan = &self.lebs[leb as usize];
        !self.is_needed(leb) && plan.giving == Giving::No && plan.readers == 0
    }

    fn begin_deletions(&mut self) {
        let grace = self.anchor.limits.grace_ms;
        let room = DELETIONS.saturating_sub(self.deleting.len());
        let old = self.garbage().take_while(|garbage| garbage.since_ms + grace <= self.now_ms);
        let old: Vec<ObjectId> = old.map(|garbage| garbage.id).take(room).collect();
        for id in old {
            self.deleting.insert(id);
            self.actions.push_back(Action::Delete(id));
        }
    }
}
