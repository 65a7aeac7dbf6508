//! Another size while clients go on: more raw capacity, and more or less host capacity.
//!
//! What the layer uses is never more than what every superblock names. A device that grows has longer files first, then superblocks that
//! say so, one copy durably before the other, and only then uses them. One that shrinks takes nothing beyond its new end any more, writes a checkpoint
//! that begins behind all that ever was there, and only then its superblocks. So a cut leaves the old size or the new one.

use std::path::PathBuf;

use ftl::{Beyond, Ftl};
use media::{Growing, LABEL_AREA_BYTES, MediaError};

use crate::attach::layer_config;
use crate::core::{Core, SIZE_ID};
use crate::geometry::{max_sectors, sectors_within};
use crate::superblock::Superblock;
use crate::{Device, IoError};

/// LEBs of a checkpoint at most: its superblock lists them.
const CHECKPOINT_LEBS: u64 = 2048;

/// What is asked for; at least one of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resize {
    /// Host capacity, bytes.
    pub bytes: Option<u64>,
    /// Raw capacity, bytes. Without it, it grows with the host capacity: files so that over-provisioning stays what it is, block devices to all that
    /// they have become.
    pub raw_bytes: Option<u64>,
}

/// Why a device does not get another size.
#[derive(Debug, thiserror::Error)]
pub enum ResizeError {
    /// Of such a device.
    #[error("{what} keeps its size: {why}")]
    Unsupported {
        /// What kind of device.
        what: &'static str,
        /// Why, or what to do.
        why: &'static str,
    },
    /// A size that cannot be.
    #[error("{name}: {value}: expected {expected}")]
    Invalid {
        /// Which size.
        name: &'static str,
        /// What was asked for.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// Data lie beyond the new end.
    #[error("byte {byte} holds data, beyond the new end of {end} bytes: trim what lies there first")]
    Mapped {
        /// The first of them.
        byte: u64,
        /// Where the device would end.
        end: u64,
    },
    /// A snapshot reaches beyond the new end.
    #[error(
        "the snapshot \"{name}\" keeps what stood at byte {byte}, beyond the new end of {end} bytes: delete it first"
    )]
    Kept {
        /// Its name.
        name: String,
        /// The first byte.
        byte: u64,
        /// Where the device would end.
        end: u64,
    },
    /// A deleted one did a moment ago, or a deleted clone holds something still.
    #[error("a deleted snapshot or clone still gives back what it held: try again in a moment")]
    Purging,
    /// There is another one.
    #[error("another resize is under way: wait until it is done")]
    UnderWay,
    /// A backing file does not become longer.
    #[error("{path}: {what}")]
    Store {
        /// Which.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// It could not be put on record; the device goes on with the size that it has.
    #[error("the new size could not be put on record: {0}")]
    Failed(IoError),
}

/// A size that a device can have, and its files to be made longer for it.
#[derive(Debug)]
pub struct ResizePlan {
    sectors: u64,
    blocks: u32,
    files: Vec<Growing>,
    file_bytes: u64,
}

impl ResizePlan {
    /// Makes the files as long as they must be, which survives a power cut when this returns. For a thread that may wait.
    ///
    /// # Errors
    /// A file does not become longer.
    pub fn extend(&self) -> Result<(), ResizeError> {
        let failed = |file: &Growing, error: media::OpenError| ResizeError::Store {
            path: file.path().into(),
            what: error.to_string(),
        };
        self.files.iter().try_for_each(|file| file.extend(self.file_bytes).map_err(|error| failed(file, error)))
    }
}

/// How it stands with another size.
#[derive(Debug, Default)]
pub(crate) struct Resizing {
    step: Option<Step>,
    outcome: Option<Result<(), IoError>>,
    /// What the superblock says of the size has changed.
    news: bool,
}

#[derive(Debug)]
enum Step {
    /// Nothing beyond is taken any more; waits for a checkpoint that begins at this number or later.
    Checkpoint { sectors: u64, from: u64 },
    /// The superblocks are being written; this is what they said before.
    Record { sectors: u64, blocks: u32 },
}

impl Device {
    /// What a device needs for another size. Changes nothing.
    ///
    /// # Errors
    /// It cannot have that size.
    pub fn plan_resize(&mut self, wanted: &Resize) -> Result<ResizePlan, ResizeError> {
        self.may_be_resized()?;
        let superblock = &self.core.superblock;
        let geometry = superblock.geometry;
        let sector = u64::from(geometry.sector_bytes);
        let sectors = wanted.bytes.map_or(self.info().sectors, |bytes| bytes / sector);
        let mut files = self.core.media.growing().map_err(|error| ResizeError::Store {
            path: self.info().paths.first().cloned().unwrap_or_default(),
            what: error.to_string(),
        })?;
        let mut disk = None;
        for file in &mut files {
            let room = file
                .room()
                .map_err(|error| ResizeError::Store { path: file.path().into(), what: error.to_string() })?;
            let blocks = room.map(|bytes| bytes / geometry.block_bytes());
            disk = [disk, blocks].into_iter().flatten().min();
        }
        let blocks = self.blocks_for(sectors, wanted, disk)?;
        let plan = ResizePlan {
            sectors,
            blocks,
            file_bytes: LABEL_AREA_BYTES + u64::from(blocks) * geometry.block_bytes(),
            files: if blocks > geometry.blocks { files } else { Vec::new() },
        };
        self.check_plan(&plan)?;
        Ok(plan)
    }

    /// Begins to give the device the size of a plan whose files are long enough. Clients are served meanwhile; see [`Device::resized`].
    ///
    /// # Errors
    /// It cannot have that size any more.
    pub fn begin_resize(&mut self, plan: &ResizePlan) -> Result<(), ResizeError> {
        self.may_be_resized()?;
        self.check_plan(plan)?;
        let (sectors, blocks) = (self.info().sectors, self.core.superblock.geometry.blocks);
        if plan.blocks > blocks {
            self.core.media.grow(plan.blocks).map_err(|error| ResizeError::Store {
                path: self.info().paths.first().cloned().unwrap_or_default(),
                what: error.to_string(),
            })?;
        }
        self.core.resizing.outcome = None;
        if plan.sectors < sectors {
            // Nobody is told of it before it is on record; but what is taken beyond would have to go.
            self.core.set_sectors(plan.sectors);
            let from = self.core.ftl.checkpoint_all();
            self.core.superblock.geometry.blocks = plan.blocks;
            self.core.resizing.step = Some(Step::Checkpoint { sectors: plan.sectors, from });
            self.core.carry_out(&[]);
            self.core.go_on_resizing();
        } else {
            self.core.record_size(plan.sectors, plan.blocks, (sectors, blocks));
        }
        self.core.carry_out(&[]);
        self.renew_size();
        self.mark_dirty();
        Ok(())
    }

    /// Whether the last resize that was begun is done: from then on no power cut takes it back.
    ///
    /// # Errors
    /// It failed.
    pub fn resized(&mut self) -> Result<bool, ResizeError> {
        self.core.go_on_resizing();
        self.renew_size();
        match (&self.core.resizing.step, &self.core.resizing.outcome) {
            (Some(_), _) => Ok(false),
            (None, Some(Err(error))) => Err(ResizeError::Failed(*error)),
            (None, _) => Ok(true),
        }
    }

    /// What the device is follows its size.
    #[inline]
    pub(crate) fn renew_size(&mut self) {
        if std::mem::take(&mut self.core.resizing.news) {
            self.renew_info();
        }
    }

    /// Whether another size is on its way.
    pub(crate) fn is_resizing(&self) -> bool {
        self.core.resizing.step.is_some()
    }

    fn may_be_resized(&self) -> Result<(), ResizeError> {
        let unsupported = |what, why| Err(ResizeError::Unsupported { what, why });
        if self.is_read_only() {
            return unsupported("a device that is attached read-only", "attach it for writing");
        }
        if self.card.is_some() {
            return unsupported(
                "an emulated card",
                "its data sheet says how large it is; `vsl format` gives it another capacity",
            );
        }
        if self.zoned.is_some() {
            return unsupported("a device of zones", "their number is part of its format; `vsl format` makes others");
        }
        if self.page_file.is_locked() {
            return unsupported(
                "a device with page-file support",
                "its memory is locked; set `page-file` to off, resize, and set it again",
            );
        }
        if !self.clones().is_empty() {
            return unsupported("a device with clones", "each of them has its size; delete or promote them first");
        }
        if self.core.ftl.cloned_sectors() > 0 {
            return Err(ResizeError::Purging);
        }
        if let Some(error) = self.core.ftl.failure() {
            return Err(ResizeError::Failed(crate::core::io_error(error)));
        }
        if self.is_resizing() { Err(ResizeError::UnderWay) } else { Ok(()) }
    }

    /// LEBs for so many sectors. `disk` is how many fit on block devices.
    fn blocks_for(&self, sectors: u64, wanted: &Resize, disk: Option<u64>) -> Result<u32, ResizeError> {
        let superblock = &self.core.superblock;
        let (geometry, before) = (superblock.geometry, u64::from(superblock.geometry.blocks));
        let leb_bytes = u64::from(geometry.slots_per_leb()) * u64::from(geometry.sector_bytes);
        let asked = match wanted.raw_bytes {
            Some(raw) if raw < geometry.raw_bytes() => {
                return Err(ResizeError::Invalid {
                    name: "raw capacity",
                    value: format!("{raw} bytes"),
                    expected: format!(
                        "at least the {} bytes that it has: raw capacity only grows",
                        geometry.raw_bytes()
                    ),
                });
            }
            Some(raw) => raw.div_ceil(leb_bytes),
            None if geometry.parity > 0 || superblock.is_sparse() || sectors <= self.info().sectors => before,
            None => match disk {
                Some(blocks) => blocks.max(before),
                None => {
                    let share = u128::from(before) * u128::from(sectors);
                    u64::try_from(share.div_ceil(u128::from(self.info().sectors))).unwrap_or(u64::MAX)
                }
            },
        };
        if asked > before && geometry.parity > 0 {
            let why = "the journal of its parity lies behind it; within the raw capacity the host's may change";
            return Err(ResizeError::Unsupported { what: "the raw capacity of a device with parity", why });
        }
        if let Some(most) = disk.filter(|most| asked > *most) {
            return Err(ResizeError::Invalid {
                name: "raw capacity",
                value: format!("{} bytes", asked.saturating_mul(leb_bytes)),
                expected: format!("at most {} bytes, which is what its block devices have room for", most * leb_bytes),
            });
        }
        u32::try_from(asked).map_err(|_| too_large(superblock))
    }

    fn check_plan(&self, plan: &ResizePlan) -> Result<(), ResizeError> {
        let superblock = &self.core.superblock;
        let mut larger = superblock.clone();
        larger.geometry.blocks = plan.blocks;
        let sector = u64::from(superblock.geometry.sector_bytes);
        if plan.blocks > superblock.geometry.blocks {
            larger.sectors = max_sectors(&larger.geometry);
            let config = layer_config(&Superblock { sectors: plan.sectors, ..larger.clone() }, false);
            let lebs = Ftl::recovery_bytes(&config) / superblock.geometry.block_bytes();
            if larger.validate().is_err() || lebs > CHECKPOINT_LEBS {
                return Err(too_large(superblock));
            }
        }
        larger.sectors = plan.sectors;
        let block = u64::from(self.settings().nvme_block_bytes);
        let fits =
            larger.validate().is_ok() && larger.is_sparse() == superblock.is_sparse() && plan.sectors * sector >= block;
        if !fits {
            let (least, most) = match superblock.is_sparse() {
                true => sectors_within(&larger.geometry),
                false => (1, max_sectors(&larger.geometry)),
            };
            return Err(ResizeError::Invalid {
                name: "host capacity",
                value: format!("{} bytes", plan.sectors.saturating_mul(sector)),
                expected: format!(
                    "{} to {} bytes on a raw capacity of {} bytes{}",
                    (least * sector).max(block),
                    most * sector,
                    larger.geometry.raw_bytes(),
                    if superblock.geometry.parity > 0 {
                        ", which is fixed with parity"
                    } else {
                        " (--raw gives it more)"
                    }
                ),
            });
        }
        let (end, byte) = (plan.sectors * sector, |lba: u64| lba * sector);
        match self.core.ftl.beyond(plan.sectors) {
            None => Ok(()),
            Some(Beyond::Mapped(lba)) => Err(ResizeError::Mapped { byte: byte(lba), end }),
            Some(Beyond::Kept(lba, id)) => match id.and_then(|id| self.snapshot(id)) {
                Some(snapshot) => Err(ResizeError::Kept { name: snapshot.name.clone(), byte: byte(lba), end }),
                None => Err(ResizeError::Purging),
            },
        }
    }
}

fn too_large(superblock: &Superblock) -> ResizeError {
    ResizeError::Invalid {
        name: "raw capacity",
        value: "more than its erase blocks can be".into(),
        expected: format!(
            "less: its erase blocks stay at {} bytes, and it has {} of them",
            u64::from(superblock.geometry.slots_per_leb()) * u64::from(superblock.geometry.sector_bytes),
            superblock.geometry.blocks
        ),
    }
}

impl Core {
    /// Has the superblocks say another size, which waits for those under way.
    fn record_size(&mut self, sectors: u64, blocks: u32, before: (u64, u32)) {
        let bytes = sectors * u64::from(self.superblock.geometry.sector_bytes);
        if sectors > self.superblock.sectors && !self.superblock.is_sparse() {
            // What named capacities of the next format refer to.
            self.superblock.advertised_bytes = self.superblock.advertised_bytes.max(bytes);
        }
        (self.superblock.sectors, self.superblock.geometry.blocks) = (sectors, blocks);
        self.resizing.step = Some(Step::Record { sectors: before.0, blocks: before.1 });
        self.write_superblock(SIZE_ID);
    }

    /// The superblocks say another size in both copies, or could not be written.
    pub(crate) fn size_recorded(&mut self, result: Result<(), &MediaError>) {
        let Some(Step::Record { sectors, blocks }) = self.resizing.step.take() else { return };
        if let Err(error) = result {
            tracing::error!(%error, "another size could not be put on record");
            // Nothing depends on the new one yet. That of a device that shrinks is recorded with the next superblock: what lies beyond is
            // not taken again.
            self.superblock.sectors = sectors.min(self.ftl.map().sectors());
            self.superblock.geometry.blocks = blocks;
        } else {
            if self.superblock.geometry.blocks > self.ftl.lebs().len() {
                self.ftl.grow(self.superblock.geometry.blocks);
            }
            if self.superblock.sectors > self.ftl.map().sectors() {
                self.set_sectors(self.superblock.sectors);
            }
        }
        self.resizing.outcome = Some(result.map_err(|_| IoError::Media));
        self.resizing.news = true;
    }

    /// Goes on with a device that shrinks.
    #[inline]
    pub(crate) fn go_on_resizing(&mut self) {
        if let Some(Step::Checkpoint { sectors, from }) = self.resizing.step {
            self.shrink(sectors, from);
        }
    }

    #[cold]
    fn shrink(&mut self, sectors: u64, from: u64) {
        if let Some(error) = self.ftl.failure() {
            self.resizing.step = None;
            self.resizing.outcome = Some(Err(crate::core::io_error(error)));
        } else if self.ftl.has_checkpoint_from(from) {
            let blocks = self.superblock.geometry.blocks;
            self.record_size(sectors, blocks, (sectors, blocks));
        }
    }

    /// The host has so many sectors from now on.
    fn set_sectors(&mut self, sectors: u64) {
        self.ftl.set_sectors(sectors);
        if let Some(ahead) = &mut self.ahead {
            ahead.resized(sectors);
        }
        self.resizing.news = true;
    }
}
