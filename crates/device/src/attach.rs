//! From a medium to a running device: superblock, checkpoint, replay.

use std::collections::VecDeque;

use ftl::{Anchor, Config, LebHeader, LebId, Policy, Recovery};
use media::{Done, Media, MediaError, Slice, Stack};

use crate::checksum::Checker;
use crate::core::{Core, label_command};
use crate::crypt::{NoKey, Secret};
use crate::refusal::Refusal;
use crate::staging::{Staging, write_back};
use crate::superblock::Superblock;

/// Reads under way at once while recovering.
const READS: usize = 16;
/// Requests that a device takes at once.
const REQUESTS: u32 = 1024;
/// Page buffers beyond those that the largest request needs.
const EXTRA_BUFFERS: u32 = 24;
/// Pages in a row of which nothing was written since the LEB was opened, after which it counts as read, at most: what
/// was flushed stands in front of what was not, so only damage to all of them could hide something.
const GAP_PAGES: u32 = 64;

/// Makes a superblock ready to attach with: refuses a device that is being erased, and unlocks one that is encrypted.
pub(crate) fn admit(superblock: &mut Superblock, secret: Option<&Secret>) -> Result<(), Refusal> {
    if let Some(erasing) = superblock.erase {
        return Err(Refusal::BeingErased(erasing.level));
    }
    let unlocked = match (&mut superblock.encryption, secret) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(NoKey::NotEncrypted),
        (Some(_), None) => Err(NoKey::Missing),
        (Some(encryption), Some(secret)) => encryption.unlock(&superblock.uuid, secret),
    };
    unlocked.map_err(Refusal::Key)
}

/// What the layer is configured with, from the superblock.
pub(crate) fn layer_config(superblock: &Superblock, erase_before_program: bool) -> Config {
    let geometry = superblock.geometry;
    let max_request = superblock.max_request_bytes / geometry.sector_bytes;
    let mut config = Config {
        geometry,
        sectors: superblock.sectors,
        max_request,
        buffers: 0,
        requests: REQUESTS,
        checkpoint_interval: superblock.checkpoint_interval,
        erase_before_program,
        power_protected: false,
        policy: Policy::from_code(superblock.policy).unwrap_or_else(|| {
            tracing::warn!(
                code = superblock.policy,
                "this version does not know its groomer's policy, and takes the default"
            );
            Policy::default()
        }),
    };
    config.buffers = config.min_buffers() + EXTRA_BUFFERS;
    config
}

/// Attaches with a layer configured like this. To be read only, nothing is written, not even the superblock.
pub(crate) fn attach(
    media: Stack,
    superblock: Superblock,
    config: Config,
    read_only: bool,
    mut staging: Option<Staging>,
) -> Result<Core, Refusal> {
    ready(&superblock)?;
    let mut opening = Opening::new(media, superblock);
    if !read_only && let Some(left) = staging.as_ref().and_then(|staging| staging.left_by(&opening.superblock)) {
        write_back(&mut opening.media, &opening.superblock, left)?;
    }
    let mut recovery = Recovery::new(config.clone(), opening.superblock.anchor.clone())?;
    opening.load_checkpoint(&mut recovery)?;
    let epoch = opening.newest_epoch(&mut recovery)? + 1;
    if !read_only {
        // The new epoch is on media before anything carries it: no sequence number is ever given out twice.
        opening.superblock.epoch = epoch;
        let unsafe_shutdowns = &mut opening.superblock.unsafe_shutdowns;
        *unsafe_shutdowns = unsafe_shutdowns.saturating_add(u32::from(!opening.superblock.anchor.clean));
        opening.superblock.anchor = recovery.anchor_for(epoch);
        opening.write_superblock()?;
    }
    if !recovery.is_clean() {
        if !read_only {
            opening.settle_parity(&recovery)?;
        }
        opening.replay_log(&mut recovery)?;
    }
    if read_only {
        let mut core = Core::new(recovery.finish(epoch)?, opening.media, opening.superblock);
        core.leave_chips_out(true);
        return Ok(core);
    }
    recovery.replay(epoch)?;
    if recovery.should_forget_moves() {
        recovery = opening.forget_moves(config.clone(), epoch)?;
    }
    opening.prepare_parity()?;
    let ftl = recovery.finish(epoch)?;
    // What was left is part of the log now, and the log is read.
    staging.iter_mut().for_each(|staging| staging.begin(&opening.superblock, &config));
    let mut core = Core::new(ftl, opening.media, opening.superblock);
    core.staging = staging;
    core.leave_chips_out(false);
    core.ftl.start();
    core.run_until(|core| core.ftl.is_started())?;
    core.resume_jobs();
    Ok(core)
}

/// Whether a superblock was made ready to attach with.
fn ready(superblock: &Superblock) -> Result<(), Refusal> {
    let locked = superblock.encryption.as_ref().is_some_and(|encryption| encryption.unlocked.0.is_none());
    match superblock.erase {
        Some(erasing) => Err(Refusal::BeingErased(erasing.level)),
        _ if locked => Err(Refusal::Key(NoKey::Missing)),
        _ => Ok(()),
    }
}

impl Core {
    /// Runs until `done`, waiting for the medium.
    pub fn run_until(&mut self, done: impl Fn(&Core) -> bool) -> Result<(), Refusal> {
        loop {
            self.carry_out(&[]);
            while let Some(finished) = self.next_done() {
                self.finish_media(finished);
            }
            self.carry_out(&[]);
            self.note_losses();
            self.tell_objects();
            if done(self) {
                return Ok(());
            }
            if let Some(error) = self.ftl.failure() {
                return Err(Refusal::Media(match error {
                    ftl::Error::NoSpace => MediaError::NoSpace,
                    ftl::Error::Full | ftl::Error::NoSnapshot | ftl::Error::Media => {
                        MediaError::Os(rustix::io::Errno::IO)
                    }
                }));
            }
            if self.in_flight == 0 {
                return Err(Refusal::NoRoom);
            }
            self.wait();
        }
    }
}

/// Writes both copies of a superblock on a medium that does nothing else at the time, the first durably before the second:
/// whichever of them is lost later, the other says the same.
pub(crate) fn write_superblock(media: &mut dyn Media, superblock: &mut Superblock) -> Result<(), Refusal> {
    for _ in 0..2 {
        superblock.generation += 1;
        let done = match media.submit(0, label_command(superblock)) {
            Some(done) => done,
            None => loop {
                match media.poll() {
                    Some(done) => break done,
                    None => media.wait(),
                }
            },
        };
        done.result?;
    }
    Ok(())
}

/// A medium being looked through.
struct Opening {
    media: Stack,
    superblock: Superblock,
    next_id: u64,
    /// What fails its check may be rebuilt.
    redundant: bool,
}

impl Opening {
    fn new(mut media: Stack, superblock: Superblock) -> Opening {
        let redundant = media.flashback().is_some();
        let believed = superblock.anchor.clean && superblock.in_step;
        if let Some(flashback) = media.flashback().filter(|_| !believed) {
            flashback.find_journal();
        }
        Opening { media, superblock, next_id: 0, redundant }
    }

    /// Gives what may be replayed the parity that the crash may have left incomplete: before it is read, so that nothing is
    /// taken for written that a rotten sector could still take away.
    fn settle_parity(&mut self, recovery: &Recovery) -> Result<(), Refusal> {
        let Some(flashback) = self.media.flashback() else { return Ok(()) };
        for leb in recovery.lebs_to_scan() {
            flashback.settle(leb, recovery.opened(leb))?;
        }
        Ok(flashback.settled()?)
    }

    /// Makes ready for the first program: the journal has its space, and dies that failed meanwhile are on record.
    fn prepare_parity(&mut self) -> Result<(), Refusal> {
        let Some(flashback) = self.media.flashback() else { return Ok(()) };
        flashback.prepare()?;
        if !flashback.is_recorded() {
            self.superblock.dies = flashback.dies().to_vec();
            self.write_superblock()?;
        }
        let states = self.superblock.dies.clone();
        if let Some(flashback) = self.media.flashback() {
            flashback.recorded(&states);
        }
        Ok(())
    }

    /// Whether some slot of a page does not hold what it should, as far as that can be told: nothing in it is older than
    /// `opened`.
    fn is_doubtful(&self, at: media::PageAddr, bytes: &[u8], opened: u64) -> bool {
        let geometry = self.superblock.geometry;
        let lane = geometry.lane_of(at.page, at.die);
        let first = geometry.lane_slot(at.block, at.page, lane);
        let checker = self.checker();
        let mut room = Vec::new();
        (first..).zip(bytes.chunks_exact(checker.slot_bytes())).any(|(number, slot)| {
            let header = checker.check(slot, number);
            header.is_none_or(|header| header.seq < opened) || checker.sector(slot, &mut room).is_none()
        })
    }

    fn write_superblock(&mut self) -> Result<(), Refusal> {
        write_superblock(&mut *self.media, &mut self.superblock)
    }

    fn load_checkpoint(&mut self, recovery: &mut Recovery) -> Result<(), Refusal> {
        for leb in recovery.checkpoint_lebs() {
            if recovery.has_checkpoint() {
                break;
            }
            self.read_leb(leb, recovery, |recovery| recovery.has_checkpoint())?;
            recovery.scanned(leb);
        }
        Ok(())
    }

    fn replay_log(&mut self, recovery: &mut Recovery) -> Result<(), Refusal> {
        for leb in recovery.lebs_to_scan() {
            self.read_leb(leb, recovery, |_| false)?;
            recovery.scanned(leb);
        }
        Ok(())
    }

    /// Begins anew where the log is to be forgotten, see [`Recovery::should_forget_moves`].
    fn forget_moves(&mut self, config: Config, epoch: u32) -> Result<Recovery, Refusal> {
        tracing::info!("the log holds nothing but what was moved, and is forgotten for the room that it takes");
        let anchor = Anchor { clean: true, ..self.superblock.anchor.clone() };
        let mut recovery = Recovery::new(config, anchor)?;
        self.load_checkpoint(&mut recovery)?;
        self.superblock.anchor = recovery.anchor_for(epoch);
        self.write_superblock()?;
        Ok(recovery)
    }

    /// The newest attach epoch that was in use. After a clean detach the superblock knows, unless one of its copies is bad or
    /// lags behind: the lost one may have been the newer, so the headers of all LEBs are asked then, as after a crash.
    fn newest_epoch(&mut self, recovery: &mut Recovery) -> Result<u32, Refusal> {
        let mut epoch = self.superblock.epoch;
        if !recovery.is_clean() || !self.superblock.in_step {
            self.read_leb_headers(recovery)?;
            epoch = recovery.catch_up(epoch)?;
        }
        self.superblock.witnessed.map_or(Ok(()), |seq| recovery.witnessed(seq))?;
        Ok(epoch)
    }

    fn checker(&self) -> Checker {
        Checker::of(&self.superblock)
    }

    /// Reads the first slot of every LEB, and without parity the one behind it, many LEBs at a time.
    fn read_leb_headers(&mut self, recovery: &mut Recovery) -> Result<(), Refusal> {
        let geometry = self.superblock.geometry;
        let checker = self.checker();
        let slot_bytes = geometry.slot_bytes();
        // With parity a header is rebuilt instead.
        let bytes = if self.redundant { slot_bytes } else { slot_bytes * geometry.slots_per_page.min(2) };
        let reads = (0..geometry.blocks).map(|leb| (geometry.page_at(leb, 0), 0..bytes));
        // A header that was never written looks like that of the LEB's life before: parity is asked about each.
        self.read_all(reads, 8 * READS, u64::MAX, |leb, result| {
            let leb = leb as LebId;
            let Ok(slice) = result else { return Ok(true) };
            let (mut slots, mut room) = (slice.bytes().chunks_exact(slot_bytes as usize), Vec::new());
            let mut next = |number| {
                let slot = slots.next()?;
                Some((checker.check(slot, number)?, checker.sector(slot, &mut room)?.to_vec()))
            };
            let number = geometry.first_slot(leb, 0);
            let header = next(number)
                .filter(|(header, _)| header.kind == ftl::Kind::LebHeader)
                .and_then(|(_, sector)| LebHeader::decode(&sector));
            match (header, next(number + 1)) {
                (None, Some((second, _))) => recovery.headless(leb, &second),
                (header, _) => recovery.leb_header(leb, header),
            }
            Ok(true)
        })
    }

    /// Reads a LEB page by page, until `enough` or until nothing newer can come.
    fn read_leb(
        &mut self,
        leb: LebId,
        recovery: &mut Recovery,
        enough: impl Fn(&Recovery) -> bool,
    ) -> Result<(), Refusal> {
        let geometry = self.superblock.geometry;
        let opened = recovery.opened(leb);
        let anchor = &self.superblock.anchor;
        let oldest = if anchor.checkpoint.contains(&leb) { opened.max(anchor.checkpoint_begin) } else { opened };
        let most = (geometry.pages_per_leb() / 4).clamp(1, GAP_PAGES);
        let checker = self.checker();
        let slot_bytes = geometry.slot_bytes();
        let page_bytes = geometry.slots_per_page * slot_bytes;
        let reads = (0..geometry.pages_per_leb()).map(|page| (geometry.page_at(leb, page), 0..page_bytes));
        let (mut gap, mut room) = (0, Vec::new());
        self.read_all(reads, READS, oldest, |page, result| {
            // A page that cannot be read counts as holding nothing: if something flushed stood there, it will be missed.
            let first = geometry.first_slot(leb, page as u32);
            gap += 1;
            if let Err(error) = &result {
                tracing::warn!(leb, page, %error, "a page of the log cannot be read");
            }
            if let Ok(slice) = result {
                for (number, slot) in (first..).zip(slice.bytes().chunks_exact(slot_bytes as usize)) {
                    if let Some(header) = checker.check(slot, number)
                        && let Some(sector) = checker.sector(slot, &mut room)
                    {
                        recovery.slot(&header, sector)?;
                        if header.seq >= opened {
                            gap = 0;
                        }
                    }
                }
            }
            Ok(gap <= most && !enough(recovery))
        })
    }

    /// Reads in order, `depth` at a time, until `take` has enough. A page with slots that fail their check, or are older than
    /// `oldest`, is rebuilt as far as there is parity.
    fn read_all(
        &mut self,
        reads: impl Iterator<Item = (media::PageAddr, std::ops::Range<u32>)>,
        depth: usize,
        oldest: u64,
        mut take: impl FnMut(u64, Result<Slice, MediaError>) -> Result<bool, Refusal>,
    ) -> Result<(), Refusal> {
        let mut next = self.next_id;
        let base = next;
        let mut reads = reads.fuse();
        // What was asked for, of answers that are still to come; and what came before a page was rebuilt.
        let mut asked: VecDeque<(media::PageAddr, std::ops::Range<u32>)> = VecDeque::new();
        let mut before: Vec<(u64, Done)> = Vec::new();
        // Answers in the order of the reads; `None` is still under way.
        let mut answers: VecDeque<Option<Done>> = VecDeque::new();
        let mut arrived: Vec<Done> = Vec::new();
        let (mut wanted, mut result) = (true, Ok(()));
        loop {
            while wanted && answers.len() < depth {
                let Some((at, bytes)) = reads.next() else { break };
                let id = self.next_id;
                self.next_id += 1;
                asked.push_back((at, bytes.clone()));
                answers.push_back(None);
                let answer = self.media.submit(id, media::Command::Read { at, bytes });
                if let Some(done) = answer {
                    arrived.push(done);
                }
            }
            while let Some(done) = arrived.pop().or_else(|| self.media.poll()) {
                let place = (done.id - next) as usize;
                if let Some(known) = before.iter().position(|(id, _)| *id == done.id) {
                    let (_, first) = before.swap_remove(known);
                    answers[place] = Some(if done.result.is_ok() { done } else { first });
                    continue;
                }
                let (at, bytes) = asked[place].clone();
                let doubtful = match &done.result {
                    Ok(Some(slice)) => self.redundant && self.is_doubtful(at, slice.bytes(), oldest),
                    _ => self.redundant,
                };
                if doubtful {
                    let id = done.id;
                    before.push((id, done));
                    let min_seq = if oldest == u64::MAX { 0 } else { oldest };
                    if let Some(done) = self.media.submit(id, media::Command::Rebuild { at, bytes, min_seq }) {
                        arrived.push(done);
                    }
                    continue;
                }
                answers[place] = Some(done);
            }
            if answers.is_empty() {
                return result;
            }
            if matches!(answers.front(), Some(None)) {
                self.media.wait();
            }
            while let Some(Some(done)) = answers.pop_front_if(|answer| answer.is_some()) {
                asked.pop_front();
                let number = next - base;
                next += 1;
                if !wanted {
                    continue;
                }
                match take(number, done.result.map(|slice| slice.expect("a read gives a slice"))) {
                    Ok(more) => wanted = more,
                    Err(error) => (wanted, result) = (false, Err(error)),
                }
            }
        }
    }
}
