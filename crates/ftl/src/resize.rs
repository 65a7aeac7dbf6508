//! Another size while requests go on: more LEBs, and more or fewer host sectors.
//!
//! The device sees to what stands on media. The layer never uses what a superblock does not name yet: it grows behind it, and shrinks, with a
//! checkpoint that knows nothing of what lies beyond the new end, before it.

use crate::checkpoint::further_lebs;
use crate::layer::Ftl;
use crate::snapshot::SnapshotId;
use crate::snapshot::views::CHUNK;

/// What stands beyond a new end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// This sector holds data.
    Mapped(u64),
    /// What this sector held is kept for a snapshot; nothing for one that was deleted a moment ago.
    Kept(u64, Option<SnapshotId>),
}

impl Ftl {
    /// So many LEBs from now on, no fewer than before: the medium has them, and every superblock names them.
    pub fn grow(&mut self, blocks: u32) {
        let before = self.lebs.len();
        debug_assert!(blocks >= before);
        self.config.geometry.blocks = blocks;
        self.lebs.grow(blocks);
        self.free.extend(before..blocks);
        self.reshaped();
        // The new ones may be had where the others could not.
        self.has_room_again();
        self.work();
    }

    /// The host has so many sectors from now on. What lies beyond must be free: see [`Ftl::beyond`].
    pub fn set_sectors(&mut self, sectors: u64) {
        self.config.sectors = sectors;
        self.map.resize(sectors);
        self.reshaped();
    }

    /// Asks for a checkpoint of everything as it is now, and says from which number on it begins: see [`Ftl::has_checkpoint_from`].
    pub fn checkpoint_all(&mut self) -> u64 {
        self.checkpointer.await_next();
        let seq = self.seq;
        self.work();
        seq
    }

    /// Whether recovery begins at this number or behind it.
    pub fn has_checkpoint_from(&self, seq: u64) -> bool {
        self.checkpointer.begin() >= seq
    }

    /// The first of the sectors from one on that keeps the device from ending there. That it held nothing when a snapshot was made counts, too:
    /// the index has an entry of it.
    pub fn beyond(&self, sectors: u64) -> Option<Beyond> {
        if let Some(lba) = self.map.next_mapped(sectors) {
            return Some(Beyond::Mapped(lba));
        }
        let pieces = self.views.pieces((sectors / CHUNK, 0));
        let mut entries =
            pieces.flat_map(|(key, piece)| piece.entries().map(move |(bit, _)| (key.0 * CHUNK + bit, key.1)));
        let (lba, id) = entries.find(|(lba, _)| *lba >= sectors)?;
        Some(Beyond::Kept(lba, self.views.exists(id).then_some(id)))
    }

    /// The configuration has another shape: everything that was worked out from it is worked out anew.
    fn reshaped(&mut self) {
        self.groomer.reshaped(&self.config);
        self.groomer.pace.set_further(&self.config, further_lebs(&self.config, self.index_bytes()));
        self.checkpointer.interval_changed();
        self.resize();
    }
}
