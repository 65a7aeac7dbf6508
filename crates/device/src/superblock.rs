//! The superblock: what a device is, and where its checkpoint is. Two copies, both written each time; the newer valid one counts.
//!
//! All numbers are little-endian. The byte layout stands in `docs/format.md`.

mod check;
mod wire;

use ftl::{Anchor, Geometry, Stats, TRAILER_BYTES, ZoneShape};
use media::DieState;
use uuid::Uuid;

use crate::crypt::{Encryption, KEY_SLOTS, KeySlot, SEALED_TRAILER_BYTES, SLOT_BYTES};
use crate::geometry::MAX_REQUEST_BYTES;
use crate::{Durability, Emulation, EraseLevel};
use wire::{AES_256_GCM, Reader, Writer};

/// First bytes of every copy.
pub(crate) const MAGIC: [u8; 8] = *b"OPENVSL\0";

/// The newest format version that this program reads and writes: that of devices of zones. An older program would write them anywhere.
pub const FORMAT_VERSION: u32 = 11;

/// The version of journals of devices on objects, and nothing newer. An older program would take what was given back for lost, and change what the
/// store does not hear of.
const OBJECTS_VERSION: u32 = 10;

/// The version of formats on which there was a clone, and nothing newer. An older program would reuse what it holds.
const CLONES_VERSION: u32 = 9;

/// The version of emulated cards that gave a chip up, and nothing newer. An older program would take its dies for good ones.
const GIVEN_UP_VERSION: u32 = 8;

/// The version of formats on which there was a snapshot, and nothing newer. An older program would reuse what it sees.
const SNAPSHOTS_VERSION: u32 = 7;

/// The version of formats on which there was a batch, and nothing newer. An older program would take none of what belongs to one, so it must keep
/// off.
const BATCHES_VERSION: u32 = 6;

/// The version of copies with an identity of their own, and nothing newer. An older program would write superblocks without it.
const IDENTITY_VERSION: u32 = 5;

/// The version of devices that are encrypted, or being erased, and nothing newer. From here on a superblock says which sections
/// it has; the older ones have one or none.
const SECTIONS_VERSION: u32 = 4;

/// The version of devices with parity, and nothing newer.
const PARITY_VERSION: u32 = 3;

/// The version of emulated devices.
const EMULATED_VERSION: u32 = 2;

/// The version of every other device: programs that know neither emulation nor parity can read it.
const PLAIN_VERSION: u32 = 1;

/// Bits that say which sections a superblock of the newest version has, in the order in which they stand.
mod section {
    pub const EMULATION: u32 = 1;
    pub const PARITY: u32 = 2;
    pub const ENCRYPTION: u32 = 4;
    pub const ERASE: u32 = 8;
    pub const IDENTITY: u32 = 16;
    /// Nothing stands there: batches may be in the log.
    pub const BATCHES: u32 = 32;
    /// Nothing stands there: snapshots may be in checkpoint and log.
    pub const SNAPSHOTS: u32 = 64;
    pub const GIVEN_UP: u32 = 128;
    /// Nothing stands there: clones may be in checkpoint and log.
    pub const CLONES: u32 = 256;
    /// Nothing stands there: it is a journal, and the rest lies in an object store.
    pub const OBJECTS: u32 = 512;
    pub const ZONES: u32 = 1024;
    pub const ALL: u32 = 2047;
}

/// Longest label, bytes.
pub(crate) const LABEL_MAX: usize = 63;

/// Most dies of a module.
pub(crate) const DIES_MAX: u32 = 1024;

/// Most LEBs of one checkpoint that a superblock can name.
const CHECKPOINT_MAX: usize = 4096;

/// Bytes appended between two checkpoints, by default: about half a second of reading at attach after a crash.
const CHECKPOINT_INTERVAL_BYTES: u64 = 512 << 20;

/// One copy of the superblock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Superblock {
    /// Grows with every copy written: copy `generation % 2` holds it.
    pub generation: u64,
    pub uuid: Uuid,
    /// Which die of the module this backing file is.
    pub die: u32,
    pub geometry: Geometry,
    pub sectors: u64,
    pub max_request_bytes: u32,
    pub advertised_bytes: u64,
    /// Attaches so far; the attach under way included.
    pub epoch: u32,
    /// Attaches that found the device not detached. Behind everything else, where older programs do not look.
    pub unsafe_shutdowns: u32,
    /// Seconds since 1970 when it was formatted.
    pub formatted: u64,
    pub trim: bool,
    pub beacon: bool,
    /// Faults may be put on it by command.
    pub drills: bool,
    /// Bytes of a block over NVMe, as a power of two; 0 for the sectors' size.
    pub nvme_block_shift: u8,
    /// Requests that clients may have with the device at once; 0 for as many as it takes.
    pub queue_depth: u8,
    pub durability: Durability,
    /// An emulated card's power budget does not hold it back.
    pub power_override: bool,
    /// Memory for the worst case is taken with the attach.
    pub page_file: bool,
    pub policy: u8,
    /// Slots between checkpoints.
    pub checkpoint_interval: u64,
    pub label: String,
    pub profile: String,
    pub anchor: Anchor,
    /// It behaves as the card of its profile did.
    pub emulation: Option<Emulation>,
    /// How its dies stand, with parity across backing files; otherwise empty.
    pub dies: Vec<DieState>,
    /// One more than the LEB that a scrub goes on with; 0 for no scrub.
    pub scrub_position: u32,
    /// Its sectors are encrypted.
    pub encryption: Option<Encryption>,
    /// It is being erased, and is no device until that is done.
    pub erase: Option<Erasing>,
    /// What a copy is known by beside its original.
    pub identity: Identity,
    /// There may be batches in the log.
    pub batches: bool,
    /// There may be snapshots.
    pub snapshots: bool,
    /// The chips that an emulated card gave up, in order.
    pub given_up: Vec<GivenUp>,
    /// There may be clones.
    pub clones: bool,
    /// It is the journal of a device on objects.
    pub objects: bool,
    /// Its zones, if it has some. Its address space goes on behind them, so far that it is sparse.
    pub zones: Option<ZoneShape>,
    /// Not on media: both copies on every die were as they should be, so that nothing newer than this was ever written. Where
    /// it is false, a clean detach is believed only after a look at the log.
    pub in_step: bool,
    /// Not on media: its witness saw everything below this sequence number durable.
    pub witnessed: Option<u64>,
}

/// The identity of a copy. The format's UUID stays, since every slot's checksum is bound to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its own; nothing where it is known by the UUID of its format.
    pub own: Option<Uuid>,
    /// The identity that it is about to have. It is its own as soon as one file of the device says so. Where it is its own already, what the
    /// device holds has moved to another device.
    pub next: Option<Uuid>,
}

impl Identity {
    /// Of a device that is known by this.
    pub fn of(own: Uuid) -> Identity {
        Identity { own: Some(own), next: None }
    }

    /// Of a device whose name and contents another device has now.
    pub fn moved_away(own: Uuid) -> Identity {
        Identity { own: Some(own), next: Some(own) }
    }

    /// Whether another device has its name and contents.
    pub fn is_moved_away(&self) -> bool {
        self.own.is_some() && self.own == self.next
    }
}

/// A chip that an emulated card with adaptive Flashback goes on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// Its number.
    pub chip: u32,
    /// What is opened from this sequence number on is laid out over the others.
    pub since: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Erasing {
    pub level: EraseLevel,
    /// Everything below this byte of each backing file is erased already.
    pub position: u64,
    /// Copies of the data key that were destroyed when it began.
    pub keys: u32,
    /// How often it was begun or gone on with.
    pub runs: u32,
    /// What was erased.
    pub old: Uuid,
    /// Seconds since 1970 when it began.
    pub began: u64,
}

/// Why a copy is not a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotSuperblock {
    /// All zeros.
    Blank,
    /// Another magic number.
    Foreign,
    /// Ours, but newer.
    Version(u32),
    /// Ours, but the checksum or a field is wrong.
    Damaged(&'static str),
}

impl Superblock {
    /// A format that holds nothing yet, of no name and no card.
    pub fn empty(uuid: Uuid, geometry: Geometry, sectors: u64) -> Superblock {
        Superblock {
            generation: 1,
            uuid,
            die: 0,
            geometry,
            sectors,
            max_request_bytes: MAX_REQUEST_BYTES,
            advertised_bytes: sectors * u64::from(geometry.sector_bytes),
            epoch: 0,
            unsafe_shutdowns: 0,
            formatted: 0,
            trim: true,
            beacon: false,
            drills: false,
            nvme_block_shift: 0,
            queue_depth: 0,
            durability: Durability::default(),
            power_override: false,
            page_file: false,
            policy: ftl::Policy::default().code(),
            checkpoint_interval: CHECKPOINT_INTERVAL_BYTES / u64::from(geometry.sector_bytes),
            label: String::new(),
            profile: String::new(),
            anchor: Anchor { clean: true, ..Anchor::default() },
            emulation: None,
            // All dies serve; none need a state where there is no parity.
            dies: vec![DieState::Good; if geometry.parity > 0 { geometry.dies as usize } else { 0 }],
            scrub_position: 0,
            encryption: None,
            erase: None,
            in_step: true,
            witnessed: None,
            identity: Identity::default(),
            batches: false,
            snapshots: false,
            given_up: Vec::new(),
            clones: false,
            objects: false,
            zones: None,
        }
    }

    /// What the device is known by: no two devices have the same.
    pub fn identity(&self) -> Uuid {
        self.identity.own.unwrap_or(self.uuid)
    }

    /// Sectors that the host sees.
    pub fn host_sectors(&self) -> u64 {
        self.zones.map_or(self.sectors, |zones| zones.sectors())
    }

    /// Whether the host can address more sectors than there are slots.
    pub fn is_sparse(&self) -> bool {
        ftl::is_sparse(&self.geometry, self.sectors)
    }

    /// Whether this is the superblock of a file of the device that `newest` describes.
    pub fn is_of(&self, newest: &Superblock) -> bool {
        let identity = newest.identity();
        self.uuid == newest.uuid && (self.identity() == identity || self.identity.next == Some(identity))
    }

    /// The format version that it is written in.
    pub fn version(&self) -> u32 {
        if self.zones.is_some() {
            return FORMAT_VERSION;
        }
        if self.objects {
            return OBJECTS_VERSION;
        }
        if self.clones {
            return CLONES_VERSION;
        }
        if !self.given_up.is_empty() {
            return GIVEN_UP_VERSION;
        }
        if self.snapshots {
            return SNAPSHOTS_VERSION;
        }
        if self.batches || self.is_sparse() {
            return BATCHES_VERSION;
        }
        if self.identity != Identity::default() {
            return IDENTITY_VERSION;
        }
        if self.encryption.is_some() || self.erase.is_some() {
            return SECTIONS_VERSION;
        }
        match (self.emulation, self.dies.is_empty()) {
            (None, true) => PLAIN_VERSION,
            (Some(_), _) => EMULATED_VERSION,
            (None, false) => PARITY_VERSION,
        }
    }

    /// How many backing files it lies on.
    pub fn files(&self) -> u32 {
        if self.emulation.is_some() { 1 } else { self.geometry.dies }
    }

    /// Which sections it has.
    fn sections(&self) -> u32 {
        let bit = |bit: u32, here: bool| if here { bit } else { 0 };
        bit(section::EMULATION, self.emulation.is_some())
            | bit(section::PARITY, !self.dies.is_empty())
            | bit(section::ENCRYPTION, self.encryption.is_some())
            | bit(section::ERASE, self.erase.is_some())
            | bit(section::IDENTITY, self.identity != Identity::default())
            | bit(section::BATCHES, self.batches)
            | bit(section::SNAPSHOTS, self.snapshots)
            | bit(section::GIVEN_UP, !self.given_up.is_empty())
            | bit(section::CLONES, self.clones)
            | bit(section::OBJECTS, self.objects)
            | bit(section::ZONES, self.zones.is_some())
    }

    /// The copy for one die.
    pub fn encode(&self, die: u32) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(4096));
        out.0.extend(MAGIC);
        out.u32(self.version());
        out.u32(0); // length, below
        out.u64(self.generation);
        out.0.extend(self.uuid.as_bytes());
        out.u32(die);
        let Geometry { dies, parity, blocks, pages_per_block, slots_per_page, sector_bytes, unit_bytes, .. } =
            self.geometry;
        for value in [dies, parity, blocks, pages_per_block, slots_per_page, sector_bytes, unit_bytes] {
            out.u32(value);
        }
        out.u32(self.max_request_bytes);
        out.u32(self.epoch);
        out.u64(self.sectors);
        out.u64(self.advertised_bytes);
        out.u64(self.formatted);
        out.u64(self.checkpoint_interval);
        let doubted = self.anchor.doubted_from.is_some();
        let [low, high] = [1, 2].map(|bit| self.durability as u8 & bit != 0);
        let flags = [self.trim, self.beacon, doubted, self.drills, low, high, self.power_override, self.page_file];
        out.u8((0..).zip(flags).map(|(bit, on)| u8::from(on) << bit).sum());
        out.u8(self.policy);
        out.u32(self.scrub_position);
        out.u8(self.nvme_block_shift);
        out.u8(self.queue_depth);
        out.text(&self.label);
        out.text(&self.profile);
        out.u64(self.anchor.begin);
        out.u64(self.anchor.doubted_from.unwrap_or(self.anchor.next));
        out.u64(self.anchor.checkpoint_begin);
        out.u32(u32::from(self.anchor.clean));
        out.u32(self.anchor.checkpoint_slots);
        self.anchor.stats.to_array().into_iter().for_each(|counter| out.u64(counter));
        out.list(&self.anchor.checkpoint);
        out.list(&self.anchor.open);
        if self.version() >= SECTIONS_VERSION {
            out.u32(self.sections());
        }
        if let Some(Emulation { scale, seed }) = self.emulation {
            out.u32(scale);
            out.u64(seed);
        }
        if !self.dies.is_empty() {
            self.dies.iter().for_each(|state| out.u8(*state as u8));
        }
        if let Some(encryption) = &self.encryption {
            out.u32(AES_256_GCM);
            out.u32(KEY_SLOTS as u32);
            for slot in &encryption.slots {
                out.0.extend(slot.as_ref().map_or([0; SLOT_BYTES], KeySlot::encode));
            }
        }
        if let Some(Erasing { level, position, keys, runs, old, began }) = &self.erase {
            out.u32(*level as u32);
            out.u32(*keys);
            out.u32(*runs);
            out.u64(*position);
            out.0.extend(old.as_bytes());
            out.u64(*began);
        }
        if self.identity != Identity::default() {
            for identity in [self.identity.own, self.identity.next] {
                out.0.extend(identity.unwrap_or_default().as_bytes());
            }
        }
        if !self.given_up.is_empty() {
            out.u32(self.given_up.len() as u32);
            for GivenUp { chip, since } in &self.given_up {
                out.u32(*chip);
                out.u64(*since);
            }
        }
        if let Some(ZoneShape { size, capacity, count, active }) = self.zones {
            out.u64(size);
            out.u64(capacity);
            out.u32(count);
            out.u32(active.into());
        }
        out.u32(self.unsafe_shutdowns);
        let len = out.0.len() as u32 + 4;
        out.0[12..16].copy_from_slice(&len.to_le_bytes());
        let sum = crc_fast::crc32_iscsi(&out.0);
        out.u32(sum);
        out.0
    }

    /// Reads one copy.
    pub fn decode(bytes: &[u8]) -> Result<Superblock, NotSuperblock> {
        let mut input = Reader(bytes);
        let magic = input.take::<8>()?;
        if magic != MAGIC {
            let blank = bytes.iter().all(|byte| *byte == 0);
            return Err(if blank { NotSuperblock::Blank } else { NotSuperblock::Foreign });
        }
        let version = input.u32()?;
        let len = input.u32()? as usize;
        let body = len.checked_sub(4).and_then(|end| bytes.get(..end)).ok_or(NotSuperblock::Damaged("its length"))?;
        let sum = bytes.get(len - 4..len).ok_or(NotSuperblock::Damaged("its length"))?;
        if crc_fast::crc32_iscsi(body).to_le_bytes() != sum {
            return Err(NotSuperblock::Damaged("its checksum"));
        }
        // Believed only now: length and checksum stand in the same places in every version.
        if version > FORMAT_VERSION {
            return Err(NotSuperblock::Version(version));
        }
        let generation = input.u64()?;
        let uuid = Uuid::from_bytes(input.take()?);
        let die = input.u32()?;
        let mut geometry = Geometry {
            trailer_bytes: TRAILER_BYTES,
            dies: input.u32()?,
            parity: input.u32()?,
            blocks: input.u32()?,
            pages_per_block: input.u32()?,
            slots_per_page: input.u32()?,
            sector_bytes: input.u32()?,
            unit_bytes: input.u32()?,
        };
        let (max_request_bytes, epoch) = (input.u32()?, input.u32()?);
        let (sectors, advertised_bytes) = (input.u64()?, input.u64()?);
        let (formatted, checkpoint_interval) = (input.u64()?, input.u64()?);
        let flags = input.u8()?;
        let policy = input.u8()?;
        let scrub_position = input.u32()?;
        let [nvme_block_shift, queue_depth] = input.take::<2>()?;
        let (label, profile) = (input.text()?, input.text()?);
        let (begin, next) = (input.u64()?, input.u64()?);
        let checkpoint_begin = input.u64()?;
        let clean = input.u32()? != 0;
        let checkpoint_slots = input.u32()?;
        let mut counters = [0; 10];
        for counter in &mut counters {
            *counter = input.u64()?;
        }
        let (checkpoint, open) = (input.list()?, input.list()?);
        let sections = match version {
            EMULATED_VERSION => section::EMULATION,
            PARITY_VERSION => section::PARITY,
            SECTIONS_VERSION..=FORMAT_VERSION => input.u32()?,
            _ => 0,
        };
        if sections & !section::ALL != 0 {
            return Err(NotSuperblock::Damaged("its sections"));
        }
        let emulation = match sections & section::EMULATION {
            0 => None,
            _ => Some(Emulation { scale: input.u32()?, seed: input.u64()? }),
        };
        let mut dies = Vec::new();
        if sections & section::PARITY != 0 {
            for _ in 0..geometry.dies.min(DIES_MAX) {
                let state = DieState::try_from(input.u8()?);
                dies.push(state.map_err(|_| NotSuperblock::Damaged("a die's state"))?);
            }
        }
        let mut encryption = None;
        if sections & section::ENCRYPTION != 0 {
            geometry.trailer_bytes = SEALED_TRAILER_BYTES;
            encryption = Some(input.encryption()?);
        }
        let erase = match sections & section::ERASE {
            0 => None,
            _ => Some(input.erasing()?),
        };
        let identity = match sections & section::IDENTITY {
            0 => Identity::default(),
            _ => Identity { own: input.identity()?, next: input.identity()? },
        };
        let given_up = match sections & section::GIVEN_UP {
            0 => Vec::new(),
            _ => input.given_up()?,
        };
        let zones = match sections & section::ZONES {
            0 => None,
            _ => Some(input.zones()?),
        };
        // Older programs end before it.
        let read = bytes.len() - input.0.len();
        let unsafe_shutdowns = if read + 4 <= body.len() { input.u32()? } else { 0 };
        let anchor = Anchor {
            begin,
            next,
            doubted_from: (flags & 4 != 0).then_some(next),
            clean,
            checkpoint_begin,
            checkpoint,
            checkpoint_slots,
            open,
            stats: Stats::from_array(counters),
        };
        let superblock = Superblock {
            generation,
            uuid,
            die,
            geometry,
            sectors,
            max_request_bytes,
            advertised_bytes,
            epoch,
            unsafe_shutdowns,
            formatted,
            trim: flags & 1 != 0,
            beacon: flags & 2 != 0,
            drills: flags & 8 != 0,
            nvme_block_shift,
            queue_depth,
            durability: Durability::from_code(flags >> 4 & 3).ok_or(NotSuperblock::Damaged("its durability"))?,
            power_override: flags & 64 != 0,
            page_file: flags & 128 != 0,
            policy,
            checkpoint_interval,
            label,
            profile,
            anchor,
            emulation,
            dies,
            scrub_position,
            encryption,
            erase,
            in_step: true,
            witnessed: None,
            identity,
            batches: sections & section::BATCHES != 0,
            snapshots: sections & section::SNAPSHOTS != 0,
            given_up,
            clones: sections & section::CLONES != 0,
            objects: sections & section::OBJECTS != 0,
            zones,
        };
        superblock.validate()?;
        superblock.check_given_up()?;
        superblock.check_numbers()?;
        Ok(superblock)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Superblock {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 100,
            pages_per_block: 8,
            slots_per_page: 64,
            sector_bytes: 4096,
            trailer_bytes: TRAILER_BYTES,
            unit_bytes: 4096,
        };
        let anchor =
            Anchor { begin: 7, next: 9, clean: true, checkpoint: vec![3, 4], checkpoint_slots: 5, ..Anchor::default() };
        Superblock {
            generation: 3,
            epoch: 9,
            unsafe_shutdowns: 5,
            formatted: 1_700_000_000,
            drills: true,
            nvme_block_shift: 14,
            queue_depth: 32,
            durability: Durability::WriteThrough,
            page_file: true,
            policy: 1,
            checkpoint_interval: 65536,
            label: "fct0".into(),
            anchor,
            ..Superblock::empty(Uuid::from_u128(0x1234), geometry, 40_000)
        }
    }

    fn encrypted() -> Superblock {
        let mut superblock = redundant();
        let secret = crate::crypt::Secret::key(&[7; 32]);
        superblock.encryption = Some(Encryption::new(&superblock.uuid, &secret).expect("random bytes"));
        superblock.geometry.trailer_bytes = SEALED_TRAILER_BYTES;
        superblock
    }

    fn erasing() -> Superblock {
        let mut superblock = emulated();
        let (position, began) = (5 << 30, 1_700_000_000);
        let old = Uuid::from_u128(77);
        superblock.erase = Some(Erasing { level: EraseLevel::Purge, position, keys: 1, runs: 2, old, began });
        superblock
    }

    fn copied() -> Superblock {
        let identity = Identity { own: Some(Uuid::from_u128(5)), next: Some(Uuid::from_u128(6)) };
        Superblock { identity, ..encrypted() }
    }

    /// One that has room for the checkpoints of a sparse address space.
    fn large() -> Superblock {
        let mut superblock = sample();
        superblock.geometry.blocks = 1000;
        superblock
    }

    #[test]
    fn an_address_space_has_bounds() {
        let sparse =
            Superblock { sectors: 1 << 38, policy: ftl::Policy::default().code(), page_file: false, ..large() };
        let room = ftl::room(&sparse.geometry, sparse.sectors);
        assert!(room > 0 && room < ftl::max_sectors(&sparse.geometry), "checkpoints of scattered sectors are larger");
        let slots = sparse.geometry.slots();
        for wrong in [
            Superblock { sectors: (1 << 38) + 1, ..sparse.clone() },
            Superblock { sectors: slots, ..sparse.clone() },
            Superblock { policy: ftl::Policy::SepBit.code(), ..sparse.clone() },
            Superblock { page_file: true, ..sparse.clone() },
            Superblock { sectors: 1 << 38, policy: ftl::Policy::default().code(), ..emulated() },
        ] {
            assert_eq!(Superblock::decode(&wrong.encode(0)), Err(NotSuperblock::Damaged("its geometry")));
        }
    }

    fn cloned() -> Superblock {
        Superblock { clones: true, ..snapped() }
    }

    fn snapped() -> Superblock {
        Superblock { snapshots: true, ..batched() }
    }

    fn without_chips() -> Superblock {
        let given_up =
            vec![GivenUp { chip: 24, since: 3 << ftl::EPOCH_SHIFT }, GivenUp { chip: 0, since: 9 << ftl::EPOCH_SHIFT }];
        Superblock { given_up, ..emulated() }
    }

    fn batched() -> Superblock {
        Superblock { batches: true, ..copied() }
    }

    fn redundant() -> Superblock {
        let mut superblock = sample();
        superblock.geometry.dies = 4;
        superblock.geometry.parity = 1;
        superblock.dies = vec![DieState::Good, DieState::Lost, DieState::Good, DieState::Good];
        superblock.scrub_position = 17;
        superblock.anchor.doubted_from = Some(superblock.anchor.next);
        superblock
    }

    fn emulated() -> Superblock {
        let mut superblock = sample();
        superblock.geometry.dies = 25;
        superblock.geometry.parity = 1;
        superblock.geometry.unit_bytes = 8256;
        superblock.profile = "iodrive-320-mlc".into();
        superblock.emulation = Some(Emulation { scale: 64, seed: u64::MAX });
        superblock.durability = Durability::Unsafe;
        superblock.power_override = true;
        superblock
    }

    #[test]
    fn round_trip() {
        let bytes = sample().encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(sample()));
        assert!(bytes.len() < 4096);
        assert_eq!(bytes[8], 1, "older programs can read it");
        let bytes = emulated().encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(emulated()));
        assert_eq!(bytes[8], 2, "older programs must keep off");
        let bytes = redundant().encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(redundant()));
        assert_eq!(bytes[8], 3, "older programs must keep off");
        for superblock in [encrypted(), erasing()] {
            let bytes = superblock.encode(0);
            assert_eq!(Superblock::decode(&bytes), Ok(superblock));
            assert_eq!(bytes[8], 4, "older programs must keep off");
        }
        let plain = Superblock { identity: Identity { own: None, next: Some(Uuid::from_u128(6)) }, ..sample() };
        for superblock in [copied(), plain] {
            let bytes = superblock.encode(0);
            assert_eq!(Superblock::decode(&bytes), Ok(superblock));
            assert_eq!(bytes[8], 5, "older programs must keep off");
        }
        let sparse =
            Superblock { sectors: 1 << 38, policy: ftl::Policy::default().code(), page_file: false, ..large() };
        for superblock in [batched(), Superblock { batches: true, ..emulated() }, sparse] {
            let bytes = superblock.encode(0);
            assert_eq!(Superblock::decode(&bytes), Ok(superblock));
            assert_eq!(bytes[8], 6, "older programs must keep off");
        }
        let snapped = snapped();
        let bytes = snapped.encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(snapped));
        assert_eq!(bytes[8], 7, "older programs must keep off");
        let bytes = without_chips().encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(without_chips()));
        assert_eq!(bytes[8], 8, "older programs must keep off");
    }

    /// Zones of two LEBs each, so many that a LEB for each that is active is left.
    fn zoned() -> Superblock {
        let geometry = Geometry { blocks: 400, ..sample().geometry };
        let capacity = 2 * (u64::from(geometry.slots_per_leb()) - 1);
        let shape = ZoneShape { size: 1024, capacity, count: 150, active: 14 };
        let formatted = crate::zones::formatted(geometry, shape);
        Superblock { uuid: sample().uuid, label: "zns".into(), ..formatted }
    }

    #[test]
    fn zones_stand_in_a_section_and_must_fit() {
        let bytes = zoned().encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(zoned()));
        assert_eq!(bytes[8], 11, "older programs must keep off");
        assert_eq!(zoned().host_sectors(), 150 * 1024);
        let shape = zoned().zones.expect("it has zones");
        for wrong in [
            ZoneShape { size: 1023, ..shape },
            ZoneShape { size: 1 << 63, ..shape },
            ZoneShape { capacity: 0, ..shape },
            ZoneShape { capacity: 1024, ..shape },
            ZoneShape { count: 0, ..shape },
            ZoneShape { count: 300, ..shape },
            ZoneShape { count: u32::MAX, ..shape },
            ZoneShape { active: 0, ..shape },
            ZoneShape { active: 15, ..shape },
        ] {
            let bytes = Superblock { zones: Some(wrong), ..zoned() }.encode(0);
            assert_eq!(Superblock::decode(&bytes), Err(NotSuperblock::Damaged("its geometry")), "{wrong:?}");
        }
        for wrong in [
            Superblock { policy: ftl::Policy::default().code(), ..zoned() },
            Superblock { snapshots: true, ..zoned() },
            Superblock { objects: true, ..zoned() },
        ] {
            assert_eq!(Superblock::decode(&wrong.encode(0)), Err(NotSuperblock::Damaged("its geometry")));
        }
    }

    #[test]
    fn chips_are_given_up_once_and_in_order() {
        let [first, second] = [0, 1].map(|at| without_chips().given_up[at]);
        for wrong in [
            vec![second, first],
            vec![first, first],
            vec![GivenUp { chip: 25, ..first }],
            vec![GivenUp { since: 10 << ftl::EPOCH_SHIFT, ..first }],
        ] {
            let bytes = Superblock { given_up: wrong, ..emulated() }.encode(0);
            assert_eq!(Superblock::decode(&bytes), Err(NotSuperblock::Damaged("the chips that it gave up")));
        }
        let native = Superblock { given_up: vec![first], ..sample() };
        assert_eq!(Superblock::decode(&native.encode(0)), Err(NotSuperblock::Damaged("the chips that it gave up")));
    }

    #[test]
    fn a_clone_raises_the_version() {
        let cloned = cloned();
        let bytes = cloned.encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(cloned));
        assert_eq!(bytes[8], 9, "older programs must keep off");
    }

    #[test]
    fn a_journal_of_a_device_on_objects_raises_the_version() {
        let journal = Superblock { objects: true, ..sample() };
        let bytes = journal.encode(0);
        assert_eq!(Superblock::decode(&bytes), Ok(journal));
        assert_eq!(bytes[8], 10, "older programs must keep off");
    }

    #[test]
    fn what_a_program_wrote_that_counted_no_unsafe_shutdowns_is_read() {
        let mut bytes = redundant().encode(0);
        bytes.truncate(bytes.len() - 8);
        let len = bytes.len() as u32 + 4;
        bytes[12..16].copy_from_slice(&len.to_le_bytes());
        let sum = crc_fast::crc32_iscsi(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes.resize(4096, 0xee);
        assert_eq!(Superblock::decode(&bytes), Ok(Superblock { unsafe_shutdowns: 0, ..redundant() }));
    }

    #[test]
    fn parity_needs_dies_that_stand_somehow() {
        let plain = Superblock { emulation: None, ..emulated() };
        assert_eq!(Superblock::decode(&plain.encode(0)), Err(NotSuperblock::Damaged("its geometry")));
    }

    /// No byte can change, and no length can be cut, without being noticed; nothing panics.
    #[test]
    fn every_byte_counts() {
        for bytes in [
            emulated().encode(0),
            redundant().encode(1),
            encrypted().encode(0),
            erasing().encode(0),
            copied().encode(0),
            batched().encode(0),
            snapped().encode(0),
            without_chips().encode(0),
            cloned().encode(0),
            zoned().encode(0),
        ] {
            for at in 0..bytes.len() {
                assert!(Superblock::decode(&bytes[..at]).is_err());
                let mut changed = bytes.clone();
                changed[at] ^= 0x55;
                assert!(Superblock::decode(&changed).is_err(), "byte {at}");
            }
        }
    }

    /// Random fields under a valid checksum are refused or make sense, but never panic.
    #[test]
    fn nonsense_is_refused() {
        let mut random = random::SplitMix64::new(1);
        let samples = [
            sample(),
            emulated(),
            redundant(),
            encrypted(),
            erasing(),
            zoned(),
            copied(),
            batched(),
            snapped(),
            without_chips(),
            cloned(),
        ]
        .map(|superblock| superblock.encode(0));
        for _ in 0..20_000 {
            let mut bytes = samples[random.below(samples.len() as u64) as usize].clone();
            let end = bytes.len() - 4;
            for _ in 0..1 + random.below(4) {
                let at = 16 + random.below(end as u64 - 16) as usize;
                bytes[at] = random.bits() as u8;
            }
            let sum = crc_fast::crc32_iscsi(&bytes[..end]);
            bytes[end..].copy_from_slice(&sum.to_le_bytes());
            let _ = Superblock::decode(&bytes);
        }
    }
}
