//! From a medium to a running engine: superblock, checkpoint, replay.

use std::collections::VecDeque;

use ftl::{Config, Damage, LebHeader, LebId, Policy, Recovery};
use media::{Done, Media, MediaError, Slice};

use crate::checksum::Checker;
use crate::core::{Core, address, label_command};
use crate::superblock::{NotSuperblock, Superblock};

/// Reads under way at once while recovering.
const READS: usize = 16;
/// Requests that a device takes at once.
const REQUESTS: u32 = 1024;
/// Page buffers beyond those that the largest request needs.
const EXTRA_BUFFERS: u32 = 24;
/// Pages in a row of which nothing was written since the LEB was opened, after which it counts as read, at most: what
/// was flushed stands in front of what was not, so only damage to all of them could hide something.
const GAP_PAGES: u32 = 64;

/// Why a medium cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0}")]
    Media(#[from] MediaError),
    #[error("no valid superblock")]
    NoSuperblock(NotSuperblock),
    #[error("no room for a checkpoint")]
    NoRoom,
    #[error("{0}")]
    Damage(#[from] Damage),
}

/// The newest valid superblock of a medium.
pub(crate) fn read_superblock(media: &mut dyn Media) -> Result<Superblock, Refusal> {
    choose_superblock([media.read_label(0, 0)?, media.read_label(0, 1)?])
}

/// The newer valid one of two copies.
pub(crate) fn choose_superblock(copies: [Vec<u8>; 2]) -> Result<Superblock, Refusal> {
    let [first, second] = copies.map(|bytes| Superblock::decode(&bytes));
    match (first, second) {
        // A copy from a newer program means that older ones must keep off, whatever the other copy says.
        (Err(NotSuperblock::Version(version)), _) | (_, Err(NotSuperblock::Version(version))) => {
            Err(Refusal::NoSuperblock(NotSuperblock::Version(version)))
        }
        (Ok(first), Ok(second)) => Ok(if first.generation > second.generation { first } else { second }),
        (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(only),
        (Err(NotSuperblock::Damaged(what)), _) | (_, Err(NotSuperblock::Damaged(what))) => {
            Err(Refusal::NoSuperblock(NotSuperblock::Damaged(what)))
        }
        (Err(first), Err(_)) => Err(Refusal::NoSuperblock(first)),
    }
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
        policy: Policy::from_code(superblock.policy).unwrap_or_default(),
    };
    config.buffers = config.min_buffers() + EXTRA_BUFFERS;
    config
}

/// Attaches for reading and writing.
pub(crate) fn attach(
    media: Box<dyn Media>,
    superblock: Superblock,
    erase_before_program: bool,
) -> Result<Core, Refusal> {
    let config = layer_config(&superblock, erase_before_program);
    attach_with(media, superblock, config)
}

/// Attaches for reading and writing, with a layer configured like this.
pub(crate) fn attach_with(media: Box<dyn Media>, superblock: Superblock, config: Config) -> Result<Core, Refusal> {
    let mut opening = Opening { media, superblock, next_id: 0 };
    // The new epoch is on media before anything carries it: no sequence number is ever given out twice.
    opening.superblock.epoch += 1;
    let epoch = opening.superblock.epoch;
    let mut recovery = Recovery::new(config, opening.superblock.anchor.clone())?;
    opening.load_checkpoint(&mut recovery)?;
    opening.superblock.anchor = recovery.anchor_for(epoch);
    opening.write_superblock()?;
    if !recovery.is_clean() {
        opening.replay_log(&mut recovery)?;
    }
    let ftl = recovery.finish(epoch)?;
    let mut core = Core::new(ftl, opening.media, opening.superblock);
    core.ftl.start();
    core.run_until(|core| core.ftl.is_started())?;
    Ok(core)
}

/// Attaches for reading only: nothing is written, not even the superblock.
pub(crate) fn attach_read_only(media: Box<dyn Media>, superblock: Superblock) -> Result<Core, Refusal> {
    let config = layer_config(&superblock, false);
    open_read_only(media, superblock, config)
}

/// Attaches for reading only, with a layer configured like this.
pub(crate) fn open_read_only(media: Box<dyn Media>, superblock: Superblock, config: Config) -> Result<Core, Refusal> {
    let mut opening = Opening { media, superblock, next_id: 0 };
    let mut recovery = Recovery::new(config, opening.superblock.anchor.clone())?;
    opening.load_checkpoint(&mut recovery)?;
    if !recovery.is_clean() {
        opening.replay_log(&mut recovery)?;
    }
    let ftl = recovery.finish(opening.superblock.epoch + 1)?;
    Ok(Core::new(ftl, opening.media, opening.superblock))
}

impl Core {
    /// Runs until `done`, waiting for the medium.
    pub fn run_until(&mut self, done: impl Fn(&Core) -> bool) -> Result<(), Refusal> {
        loop {
            self.carry_out(0, &[]);
            while let Some(finished) = self.media.poll() {
                self.finish_media(finished);
            }
            self.carry_out(0, &[]);
            if done(self) {
                return Ok(());
            }
            if let Some(error) = self.ftl.failure() {
                return Err(Refusal::Media(match error {
                    ftl::Error::NoSpace => MediaError::NoSpace,
                    ftl::Error::Media => MediaError::Os(rustix::io::Errno::IO),
                }));
            }
            if self.in_flight == 0 {
                return Err(Refusal::NoRoom);
            }
            self.media.wait();
        }
    }
}

/// Writes a superblock's copy on a medium that does nothing else at the time, and waits for it.
pub(crate) fn write_label(media: &mut dyn Media, superblock: &Superblock) -> Result<(), Refusal> {
    write_label_with(media, label_command(superblock))
}

/// Carries such a command out.
pub(crate) fn write_label_with(media: &mut dyn Media, command: media::Command) -> Result<(), Refusal> {
    let done = match media.submit(0, command) {
        Some(done) => done,
        None => loop {
            match media.poll() {
                Some(done) => break done,
                None => media.wait(),
            }
        },
    };
    done.result?;
    Ok(())
}

/// A medium being looked through.
struct Opening {
    media: Box<dyn Media>,
    superblock: Superblock,
    next_id: u64,
}

impl Opening {
    fn write_superblock(&mut self) -> Result<(), Refusal> {
        self.superblock.generation += 1;
        write_label(&mut *self.media, &self.superblock)
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
        self.read_leb_headers(recovery)?;
        for leb in recovery.lebs_to_scan() {
            self.read_leb(leb, recovery, |_| false)?;
            recovery.scanned(leb);
        }
        Ok(())
    }

    fn checker(&self) -> Checker {
        Checker::new(&self.superblock.uuid, self.superblock.geometry.sector_bytes)
    }

    /// Reads the first slot of every LEB, many at a time.
    fn read_leb_headers(&mut self, recovery: &mut Recovery) -> Result<(), Refusal> {
        let geometry = self.superblock.geometry;
        let checker = self.checker();
        let reads = (0..geometry.blocks).map(|leb| (address(geometry.page_at(leb, 0)), 0..geometry.slot_bytes()));
        self.read_all(reads, 8 * READS, |leb, result| {
            let header = result.ok().and_then(|slice| {
                let number = geometry.first_slot(leb as LebId, 0);
                let header = checker.check(slice.bytes(), number)?;
                (header.kind == ftl::Kind::LebHeader).then(|| LebHeader::decode(slice.bytes()))?
            });
            recovery.leb_header(leb as LebId, header);
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
        let most = (geometry.pages_per_leb() / 4).clamp(1, GAP_PAGES);
        let checker = self.checker();
        let slot_bytes = geometry.slot_bytes();
        let page_bytes = geometry.slots_per_page * slot_bytes;
        let reads = (0..geometry.pages_per_leb()).map(|page| (address(geometry.page_at(leb, page)), 0..page_bytes));
        let mut gap = 0;
        self.read_all(reads, READS, |page, result| {
            // A page that cannot be read counts as holding nothing: if something flushed stood there, it will be missed.
            let first = geometry.first_slot(leb, page as u32);
            gap += 1;
            if let Err(error) = &result {
                tracing::warn!(leb, page, %error, "a page of the log cannot be read");
            }
            if let Ok(slice) = result {
                for (number, slot) in (first..).zip(slice.bytes().chunks_exact(slot_bytes as usize)) {
                    if let Some(header) = checker.check(slot, number) {
                        recovery.slot(&header, &slot[..geometry.sector_bytes as usize])?;
                        if header.seq >= opened {
                            gap = 0;
                        }
                    }
                }
            }
            Ok(gap <= most && !enough(recovery))
        })
    }

    /// Reads in order, `depth` at a time, until `take` has enough.
    fn read_all(
        &mut self,
        reads: impl Iterator<Item = (media::PageAddr, std::ops::Range<u32>)>,
        depth: usize,
        mut take: impl FnMut(u64, Result<Slice, MediaError>) -> Result<bool, Refusal>,
    ) -> Result<(), Refusal> {
        let mut next = self.next_id;
        let base = next;
        let mut reads = reads.fuse();
        // Answers in the order of the reads; `None` is still under way.
        let mut answers: VecDeque<Option<Done>> = VecDeque::new();
        let (mut wanted, mut result) = (true, Ok(()));
        loop {
            while wanted && answers.len() < depth {
                let Some((at, bytes)) = reads.next() else { break };
                let id = self.next_id;
                self.next_id += 1;
                let answer = self.media.submit(id, media::Command::Read { at, bytes });
                answers.push_back(answer);
            }
            while let Some(done) = self.media.poll() {
                let at = (done.id - next) as usize;
                answers[at] = Some(done);
            }
            if answers.is_empty() {
                return result;
            }
            if matches!(answers.front(), Some(None)) {
                self.media.wait();
            }
            while let Some(Some(done)) = answers.pop_front_if(|answer| answer.is_some()) {
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
