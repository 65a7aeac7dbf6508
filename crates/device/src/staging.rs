//! What a killed process leaves: its page buffers, written back before the log is read.
//!
//! A write is answered when it stands in its page's buffer. A power cut may take it from there, and nobody expects otherwise; the death of
//! this process may not, since a client that comes back knows of no power cut and repeats only what was not answered. So the buffers lie
//! in a [`Stage`], which outlives the process, and the next attach writes back what stands there and not on the medium.
//!
//! Nothing in a stage is believed: a slot counts when it passes its check and belongs to the attach that the superblock names, and
//! where the medium holds something newer, that stays. To write back twice is to write back once.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ftl::{Config, EPOCH_SHIFT, Kind, LebHeader, STREAMS, TrimRecord, encode_trims};
use media::staged::{self, Left, LeftPage, Stage, StageError, StageLabel};
use media::{Command, MediaError, Page, PageAddr, Slice, Stack};
use uuid::Uuid;

use crate::checksum::Checker;
use crate::refusal::Refusal;
use crate::superblock::Superblock;

/// Stripes of each stream whose pages parity holds at a time: the one that is open, and the one that is closing.
const STRIPES: u32 = 2;
/// The same while a die is slow and stripes wait for it to close: as many as there is room to name. Their memory is taken when it is needed.
const STRIPES_SLOW: u32 = 64;

/// Where a simulator finds the stage of an attach.
pub type Keeper = Rc<RefCell<Option<Stage>>>;

/// What the last attach left, and the stage of this one.
pub struct Staging {
    home: Home,
    left: Option<Left>,
    stage: Option<Stage>,
    /// Buffers in use at a time, as a rule.
    usual: u32,
}

enum Home {
    /// A file, open and locked; the stage has it once there is one.
    File { path: PathBuf, file: Option<File> },
    /// Memory of this process.
    Memory(Keeper),
}

/// The file of a device's stage.
pub fn staging_file(directory: &Path, identity: &Uuid) -> PathBuf {
    directory.join(format!("{identity}.stage"))
}

impl Staging {
    /// The stage of a device in a directory. Where it cannot be had the device goes without, and the log says why.
    pub(crate) fn open(directory: &Path, superblock: &Superblock) -> Option<Staging> {
        let path = staging_file(directory, &superblock.identity());
        let file = match staged::open(&path) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(
                    "{}: {error}; what is answered and not flushed will not survive the death of this process",
                    path.display()
                );
                return None;
            }
        };
        let left = match Left::read(&file, superblock.geometry.page_bytes()) {
            Ok(left) => Some(left),
            Err(StageError::Empty) => None,
            Err(error) => {
                tracing::error!("{}: {error}; it is not used, and begun anew", path.display());
                None
            }
        };
        Some(Staging { home: Home::File { path, file: Some(file) }, left, stage: None, usual: 0 })
    }

    /// A stage in memory, for a simulator, which keeps hold of it and says what the last process left.
    pub fn in_memory(left: Option<Left>, keeper: Keeper) -> Staging {
        Staging { home: Home::Memory(keeper), left, stage: None, usual: 0 }
    }

    /// What the last attach left, if it was the last one and did not end in order.
    pub(crate) fn left_by(&self, superblock: &Superblock) -> Option<&Left> {
        let left = self.left.as_ref()?;
        let why = why_not(left, superblock)?;
        if why.is_empty() {
            return Some(left);
        }
        tracing::warn!("{}: {why}; nothing in it counts", self.name());
        None
    }

    fn name(&self) -> String {
        match &self.home {
            Home::File { path, .. } => path.display().to_string(),
            Home::Memory(_) => "the stage".into(),
        }
    }

    /// The attach of this superblock begins: what the last one left is on media.
    pub(crate) fn begin(&mut self, superblock: &Superblock, config: &Config) {
        self.left = None;
        let geometry = &config.geometry;
        // Those of the layer, and with parity those of stripes that are not closed.
        let a_stripe_each = if geometry.parity > 0 { STREAMS as u32 * geometry.dies } else { 0 };
        self.usual = config.buffers + STRIPES * a_stripe_each;
        let most = config.buffers + STRIPES_SLOW * a_stripe_each;
        let device = *superblock.identity().as_bytes();
        let label = StageLabel::new(device, superblock.epoch, geometry, most);
        let file = match &mut self.home {
            Home::File { file, .. } => file.take(),
            Home::Memory(_) => None,
        };
        match Stage::begin(file, label, superblock.generation) {
            Ok(stage) => {
                if let Home::Memory(keeper) = &self.home {
                    keeper.replace(Some(stage.clone()));
                }
                self.stage = Some(stage);
            }
            Err(error) => tracing::error!(
                "{}: {error}; what is answered and not flushed will not survive the death of this process",
                self.name()
            ),
        }
    }

    /// The stage, once it was begun.
    #[inline]
    pub(crate) fn stage(&self) -> Option<&Stage> {
        self.stage.as_ref()
    }

    /// Takes the memory that it needs as a rule.
    pub(crate) fn take_memory(&self) -> std::io::Result<()> {
        self.stage.as_ref().map_or(Ok(()), |stage| stage.take_memory(self.usual))
    }

    /// Nothing in it is needed any more: everything is on media, or a power cut has taken it.
    pub(crate) fn discard(&mut self) {
        if let Home::File { path, .. } = &self.home
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!("{}: {error}", path.display());
        }
        if let Home::Memory(keeper) = &self.home {
            keeper.replace(None);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Whoever drops a device without a detach leaves what a killed process does.
        self.stage.iter().for_each(Stage::freeze);
    }
}

/// Why what was left does not count; an empty text when it does, and nothing when there is nothing to say.
fn why_not(left: &Left, superblock: &Superblock) -> Option<&'static str> {
    if superblock.anchor.clean {
        return None;
    }
    let StageLabel { device, epoch, page_bytes, .. } = left.label;
    Some(match () {
        () if device != *superblock.identity().as_bytes() => "it belongs to another device",
        () if page_bytes != superblock.geometry.page_bytes() => "its pages are of another size",
        () if epoch != superblock.epoch => "the device was attached since without it",
        // Either of the two newest superblocks says all that counts, and the newer one may have gone bad.
        () if superblock.generation + 1 < left.generation => "the device is an older copy of what it belongs to",
        () => "",
    })
}

/// Removes what a killed process may have left of a device that is no more.
///
/// # Errors
/// It cannot be removed.
pub fn forget_staged(directory: &Path, identity: &Uuid) -> std::io::Result<()> {
    match std::fs::remove_file(staging_file(directory, identity)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes what a killed process left to where it was going.
pub(crate) fn write_back(media: &mut Stack, superblock: &Superblock, left: &Left) -> Result<(), Refusal> {
    let mut back = WriteBack { media, checker: Checker::of(superblock), superblock, left };
    let mut pages: Vec<(PageAddr, u64, Page)> = Vec::new();
    for page in &left.pages {
        if back.belongs(page)? {
            back.add_trims(page);
            pages.push((page.at, page.opened, page.page.clone()));
        }
    }
    tracing::info!(pages = pages.len(), "the process before was killed: what it left is written back");
    match superblock.dies.is_empty() {
        true => pages.iter().try_for_each(|(at, opened, page)| back.page(*at, *opened, page))?,
        false => back.stripes(pages)?,
    }
    // What succeeded in spite of a die that failed just now must not wait until that is on record: nothing is answered yet.
    match back.media.flashback() {
        Some(flashback) => flashback.settled()?,
        None => back.call(Command::Sync).map(|_| ())?,
    }
    Ok(())
}

struct WriteBack<'a> {
    media: &'a mut Stack,
    checker: Checker,
    superblock: &'a Superblock,
    left: &'a Left,
}

impl WriteBack<'_> {
    /// Carries a command out and waits for it; nothing else is under way.
    fn call(&mut self, command: Command) -> Result<Option<Slice>, MediaError> {
        if let Some(done) = self.media.submit(0, command) {
            return done.result;
        }
        loop {
            match self.media.poll() {
                Some(done) => return done.result,
                None => self.media.wait(),
            }
        }
    }

    fn first_slot(&self, at: PageAddr) -> u32 {
        let geometry = &self.superblock.geometry;
        geometry.lane_slot(at.block, at.page, geometry.lane_of(at.page, at.die))
    }

    /// Whether a page names a place of the device, and its LEB was not opened again since.
    fn belongs(&mut self, page: &LeftPage) -> Result<bool, MediaError> {
        let geometry = &self.superblock.geometry;
        let PageAddr { die, block, page: number } = page.at;
        if die >= geometry.dies || block >= geometry.blocks || number >= geometry.pages_per_block {
            return Ok(false);
        }
        if geometry.lane_of(number, die) >= geometry.data_dies() {
            return Ok(false);
        }
        let at = geometry.page_at(block, 0);
        let bytes = 0..geometry.slot_bytes();
        // A header that cannot be read says nothing: its page may be among those that are written back.
        let Ok(Some(slice)) = self.call(Command::Read { at, bytes }) else { return Ok(true) };
        let is_header =
            self.checker.check(slice.bytes(), self.first_slot(at)).filter(|header| header.kind == Kind::LebHeader);
        let mut room = Vec::new();
        let sector = is_header.and_then(|_| self.checker.sector(slice.bytes(), &mut room));
        let header = sector.and_then(LebHeader::decode);
        Ok(header.is_none_or(|header| header.opened <= page.opened))
    }

    /// The sequence number of a slot that counts: it passes its check, and is of this life of the LEB and of the last attach.
    fn sound(&self, slot: &[u8], number: u32, opened: u64) -> Option<u64> {
        let header = self.checker.check(slot, number)?;
        let counts = header.seq >= opened && (header.seq >> EPOCH_SHIFT) as u32 == self.left.label.epoch;
        (counts && self.checker.sector(slot, &mut Vec::new()).is_some()).then_some(header.seq)
    }

    /// Seals the trim records that no page holds yet into the slot that was theirs.
    fn add_trims(&self, page: &LeftPage) {
        let Some((header, records)) = &self.left.trims else { return };
        let geometry = &self.superblock.geometry;
        let Some(at) = header.slot.checked_sub(self.first_slot(page.at)).filter(|at| *at < geometry.slots_per_page)
        else {
            return;
        };
        let of_this_attach = |seq: u64| (seq >> EPOCH_SHIFT) as u32 == self.left.label.epoch;
        let is_ours = |record: &TrimRecord| {
            let inside = ftl::is_inside(self.superblock.sectors, record.lba, record.count);
            inside && record.seq > header.seq && of_this_attach(record.seq)
        };
        if header.kind != Kind::Trims
            || header.seq < page.opened
            || !of_this_attach(header.seq)
            || !records.iter().all(is_ours)
        {
            return;
        }
        let mut sector = encode_trims(records);
        if sector.len() > geometry.sector_bytes as usize {
            return;
        }
        sector.resize(geometry.sector_bytes as usize, 0);
        let slot_bytes = self.checker.slot_bytes();
        let range = at as usize * slot_bytes..(at as usize + 1) * slot_bytes;
        if self.sound(page.page.bytes(range.clone()), header.slot, page.opened).is_some() {
            return;
        }
        // SAFETY: the buffer holds a copy of what was left, and nobody else has it.
        self.checker.place(unsafe { page.page.bytes_mut(range) }, &sector, header);
    }

    /// Writes those units of a page whose slots are not on media. What was flushed shares no unit with them, so nothing that is durable
    /// is written again.
    fn page(&mut self, at: PageAddr, opened: u64, page: &Page) -> Result<(), MediaError> {
        let geometry = self.superblock.geometry;
        let (bytes, slot_bytes) = (geometry.page_bytes(), self.checker.slot_bytes());
        // What cannot be read is as good as nothing.
        let here = self.call(Command::Read { at, bytes: 0..bytes }).ok().flatten();
        let old = here.map_or_else(|| vec![0; bytes as usize], |slice| slice.bytes().to_vec());
        let first = self.first_slot(at);
        let mut new = old.clone();
        for (index, slot) in page.bytes(0..bytes as usize).chunks_exact(slot_bytes).enumerate() {
            let number = first + index as u32;
            if number >= first + geometry.slots_per_page {
                break;
            }
            let Some(seq) = self.sound(slot, number, opened) else { continue };
            let range = index * slot_bytes..(index + 1) * slot_bytes;
            let newer = self.checker.check(&old[range.clone()], number).is_some_and(|header| header.seq >= seq);
            if !newer {
                new[range].copy_from_slice(slot);
            }
        }
        let target = self.media.page();
        // SAFETY: the medium just handed the buffer out, nobody else knows it.
        unsafe { target.bytes_mut(0..bytes as usize) }.copy_from_slice(&new);
        let unit = geometry.unit_bytes as usize;
        for start in
            (0..bytes as usize).step_by(unit).filter(|start| old[*start..start + unit] != new[*start..start + unit])
        {
            let bytes = start as u32..(start + unit) as u32;
            match self.media.paced() {
                // A card's flash knows nothing of it.
                Some(paced) => paced.keep(at, bytes, target.clone()),
                None => self.call(Command::Program { at, bytes, page: target.clone() }).map(drop)?,
            }
        }
        Ok(())
    }

    /// The same with parity, stripe by stripe.
    fn stripes(&mut self, mut pages: Vec<(PageAddr, u64, Page)>) -> Result<(), MediaError> {
        pages.sort_by_key(|(at, opened, _)| (at.block, at.page, *opened, at.die));
        for stripe in pages
            .chunk_by(|(a, a_opened, _), (b, b_opened, _)| (a.block, a.page, a_opened) == (b.block, b.page, b_opened))
        {
            let parts: Vec<(PageAddr, Page)> = stripe.iter().map(|(at, _, page)| (*at, page.clone())).collect();
            if let Some(flashback) = self.media.flashback() {
                flashback.settle_left(&parts, stripe[0].1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::layer_config;
    use ftl::{Geometry, TRAILER_BYTES};

    /// What was left counts for the very attach in which it was left, of the same device, and of no older copy of it.
    #[test]
    fn only_what_the_last_attach_left_counts() {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 40,
            pages_per_block: 2,
            slots_per_page: 4,
            sector_bytes: 4096,
            trailer_bytes: TRAILER_BYTES,
            unit_bytes: 4096,
        };
        let mut superblock = Superblock::empty(Uuid::from_u128(7), geometry, 100);
        (superblock.epoch, superblock.generation, superblock.anchor.clean) = (3, 10, false);
        let label = StageLabel::new(*superblock.uuid.as_bytes(), 3, &geometry, 16);
        let left = Left { label, generation: 10, pages: Vec::new(), trims: None };
        let counts = |left: &Left, superblock: &Superblock| why_not(left, superblock).map(str::is_empty);
        assert_eq!(counts(&left, &superblock), Some(true));
        assert_eq!(
            counts(&Left { generation: 11, ..left.clone() }, &superblock),
            Some(true),
            "its newer copy went bad"
        );
        assert_eq!(counts(&Left { generation: 12, ..left.clone() }, &superblock), Some(false), "an older copy");
        for label in [
            StageLabel { epoch: 2, ..label },
            StageLabel { epoch: 4, ..label },
            StageLabel { device: [1; 16], ..label },
            StageLabel { page_bytes: 4096, ..label },
        ] {
            assert_eq!(counts(&Left { label, ..left.clone() }, &superblock), Some(false), "{label:?}");
        }
        superblock.anchor.clean = true;
        assert_eq!(counts(&left, &superblock), None, "there is nothing to write back");
    }

    #[test]
    fn stripes_that_wait_for_a_slow_die_have_their_place() {
        let geometry = Geometry {
            dies: 3,
            parity: 1,
            blocks: 40,
            pages_per_block: 512,
            slots_per_page: 1,
            sector_bytes: 512,
            trailer_bytes: TRAILER_BYTES,
            unit_bytes: 544,
        };
        let config =
            Config { buffers: 20, ..layer_config(&Superblock::empty(Uuid::from_u128(7), geometry, 100), false) };
        let mut staging = Staging::in_memory(None, Keeper::default());
        staging.begin(&Superblock::empty(Uuid::from_u128(7), geometry, 100), &config);
        let stage = staging.stage().expect("begun");
        let pages = (0..512).flat_map(|page| (0..3).map(move |die| PageAddr { die, block: 1, page }));
        let held: Vec<Page> = pages.map_while(|at| stage.page(at, 1)).collect();
        let a_stripe_each = STREAMS * 3;
        assert!(held.len() > 20 + 10 * a_stripe_each, "{} pages", held.len());
    }
}
