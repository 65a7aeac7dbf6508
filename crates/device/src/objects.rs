//! A device whose closed LEBs are objects in a store: its labels when another host takes over, and the device on such a medium.

use std::path::{Path, PathBuf};

use media::object::{Anchor, ObjectMedia, Standing};
use media::{Base, Drilled, Stack};

use crate::assemble::{assemble, read_labels};
use crate::attach::{admit, attach, layer_config};
use crate::copies::choose_superblock;
use crate::refusal::refused;
use crate::staging::Staging;
use crate::superblock::Superblock;
use crate::{AttachError, Device, Secret};

/// The label copies with which another host goes on, in a journal of its own: what the log holds behind the store's mark does not count. A part
/// of it is in the store, and a part of it was only in the owner's journal.
///
/// # Errors
/// The anchor's copies are no superblock.
pub fn taken_over_labels(anchor: &Anchor, path: &Path) -> Result<[Vec<u8>; 2], AttachError> {
    let copies = anchor.labels.clone().map(Ok);
    let mut superblock = choose_superblock(copies).map_err(|refusal| refused(refusal, path))?;
    let log = &mut superblock.anchor;
    if !log.clean {
        let mark = anchor.mark.max(log.begin);
        log.doubted_from = Some(log.doubted_from.map_or(mark, |known| known.min(mark)));
    }
    let mut labels = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        superblock.generation += 1;
        labels[(superblock.generation % 2) as usize] = superblock.encode(0);
    }
    Ok(labels)
}

/// A device on a journal with a store behind it.
pub(crate) fn open(
    mut media: ObjectMedia,
    secret: Option<&Secret>,
    staging: Option<Staging>,
    path: &Path,
) -> Result<(crate::core::Core, Superblock), AttachError> {
    let failed = |refusal| refused(refusal, path);
    let mut superblock = assemble(read_labels(&mut media), true, false).map_err(failed)?;
    admit(&mut superblock, secret).map_err(failed)?;
    let media = Stack::Plain(Drilled::Plain(Base::Objects(Box::new(media))));
    // So each life of a LEB begins with an erase, and the store knows one from the next.
    let config = layer_config(&superblock, true);
    let core = attach(media, superblock.clone(), config, false, staging).map_err(failed)?;
    Ok((core, superblock))
}

impl Device {
    /// A device on a journal with an object store behind it, both opened already.
    ///
    /// # Errors
    /// There is no valid format, or it cannot be recovered.
    pub fn on_objects(media: ObjectMedia, secret: Option<&Secret>) -> Result<Device, AttachError> {
        let path = PathBuf::from("media");
        let (core, _) = open(media, secret, None, &path)?;
        Ok(Device::on_core(core, vec![path]))
    }

    /// How it stands with its object store, where there is one.
    pub fn objects(&mut self) -> Option<Standing> {
        self.core.media.objects().map(|objects| objects.standing())
    }

    /// The number that the log's next entry gets: what was taken before has lower ones.
    pub fn log_end(&self) -> u64 {
        self.core.ftl.next_seq()
    }
}
