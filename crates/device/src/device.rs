//! An attached module.

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use card::{Controller, Governor, Health};
use ftl::Quota;
use media::flashback::layer_geometry;
use media::ring::SharedRing;
use media::{Base, Drilled, FileMedia, FileOptions, Media, Memory, Stack, Witness, WitnessError};
use uuid::Uuid;

use crate::assemble::{assemble, medium_geometry, open_files, read_labels, with_parity};
use crate::attach::{admit, attach, layer_config, write_superblock};
use crate::batch::check_batch;
use crate::core::{Answers, Core, To};
use crate::crypt::NoKey;
use crate::drill::{Drills, with_drills};
use crate::emulated::{self, Card, Clock, WallClock};
use crate::format::{MediaFormat, encrypt, media_superblock, open_replacement, superblock};
use crate::identity::{self, Claim};
use crate::objects;
use crate::page_file::PageFile;
use crate::refusal::{Refusal, refused};
use crate::room::{self, Room};
use crate::staging::{Staging, staging_file};
use crate::status::{Activity, Counts, Figures, Trouble};
use crate::superblock::Superblock;
use crate::vanished::Places;
use crate::zones::{self, Zoned};
use crate::{
    AttachError, Background, Capacity, CarriedDrills, Completion, Condition, CreateError, EmulateOptions, Extent,
    FormatError, FormatOptions, Info, Io, IoError, Secret, SnapshotId, State, Status, Submitted, ZoneShape,
};

/// How long a detach waits for an object store, milliseconds.
const RELEASE_PATIENCE_MS: u64 = 30_000;

/// How a device is attached.
#[derive(Clone, Debug, Default)]
pub struct AttachOptions {
    /// Take no writes.
    pub read_only: bool,
    /// Go on without files that nothing says are lost, also where what is left may have fallen behind them.
    pub degraded: bool,
    /// Make a copy a device of its own, so that it can be attached beside its original.
    pub new_identity: bool,
    /// It takes the place of another device and gets the identity by which that one was known.
    pub identity: Option<Uuid>,
    /// What opens it, where it is encrypted.
    pub secret: Option<Secret>,
    /// Drills that go on after a power cut.
    pub drills: CarriedDrills,
    /// A file elsewhere that keeps how far the device has come: it must not be older than that. Made where there is none.
    pub witness: Option<PathBuf>,
    /// A directory in memory where page buffers outlive the process: what is answered is there after its death. Without one, only
    /// what was flushed is.
    pub staging: Option<PathBuf>,
    /// Another lease for a device on objects, milliseconds; 0 for none from now on.
    pub lease_ms: Option<u64>,
}

/// An attached module. Lives on one thread.
pub struct Device {
    pub(crate) core: Core,
    info: Info,
    paths: Vec<PathBuf>,
    read_only: bool,
    counts: Counts,
    activity: Cell<Activity>,
    /// Work was taken since [`Device::idle`] last had everything durable.
    dirty: bool,
    /// What stands before the layer of an emulated device.
    pub(crate) card: Option<Box<Card>>,
    /// Its zones, if it has some.
    pub(crate) zoned: Option<Box<Zoned>>,
    /// Memory that is locked for page-file support.
    pub(crate) page_file: PageFile,
    /// Faults on command, where the device was marked for them when it was attached.
    pub(crate) drills: Option<Box<Drills>>,
    /// Keeps this process from attaching a device of the same identity; nothing where it is not on files.
    _claim: Option<Claim>,
    /// Dies whose file was there and was not used, and why.
    set_aside: Vec<(u32, String)>,
    /// Where the files lay that are in use.
    places: Places,
    /// What was noticed of a full store.
    pub(crate) room: Room,
}

/// Writes an empty format to an erased medium, encrypted where there is a key.
fn put_format(media: &mut dyn Media, mut superblock: Superblock, key: Option<[u8; 32]>) -> Result<(), FormatError> {
    if let Some(key) = &key {
        encrypt(&mut superblock, &Secret::key(key))?;
    }
    write_superblock(media, &mut superblock)
        .map_err(|refusal| FormatError::Attach(refused(refusal, &PathBuf::from("media"))))
}

impl Device {
    /// Attaches a device, of which these are the files in any order: locks them, recovers it if the last detach was not clean.
    /// With parity a file may be missing; it must be named all the same, so that it is not merely forgotten.
    /// Where the store has no room for what a recovery must write, what the device holds can be read, and its health says
    /// what is missing.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach<P: AsRef<Path>>(
        paths: &[P],
        options: &AttachOptions,
        ring: &SharedRing,
    ) -> Result<Device, AttachError> {
        let error = match Device::attach_as_asked(paths, options, ring) {
            Err(error @ AttachError::NoRoom { unclean: true, .. }) if !options.read_only => error,
            result => return result,
        };
        let options = AttachOptions { read_only: true, new_identity: false, ..options.clone() };
        // What keeps it from being read is not what its owner asked about.
        let Ok(mut device) = Device::attach_as_asked(paths, &options, ring) else { return Err(error) };
        tracing::error!("{error}; until then it is attached to be read only");
        device.room.missing = Some(error);
        Ok(device)
    }

    fn attach_as_asked<P: AsRef<Path>>(
        paths: &[P],
        options: &AttachOptions,
        ring: &SharedRing,
    ) -> Result<Device, AttachError> {
        let files = open_files(paths, options)?;
        if files.moved_away && !options.new_identity {
            return Err(AttachError::MovedAway { path: files.paths[0].clone() });
        }
        if files.superblock.objects {
            return objects::attach_journal(files, options, ring);
        }
        let (mut superblock, read_only) = (files.superblock, options.read_only);
        admit(&mut superblock, options.secret.as_ref()).map_err(|refusal| match (refusal, &options.secret) {
            (Refusal::Key(NoKey::Wrong), Some(secret)) => {
                AttachError::WrongKey { path: files.paths[0].clone(), kind: secret.kind().name() }
            }
            (refusal, _) => refused(refusal, &files.paths[0]),
        })?;
        let mut backings = files.backings;
        let used = files.paths.iter().zip(&backings).filter(|(_, backing)| backing.is_some());
        let places = Places::of(used.map(|(path, _)| path));
        if options.new_identity {
            identity::renew(&mut superblock, &backings, &files.paths, Uuid::new_v4())?;
        }
        let taken = options.identity.filter(|identity| *identity != superblock.identity());
        if let Some(identity) = taken {
            identity::renew(&mut superblock, &backings, &files.paths, identity)?;
        }
        let witness = match &options.witness {
            None => None,
            Some(path) => {
                let failed = |what: WitnessError| AttachError::Witness { path: path.clone(), what: what.to_string() };
                let (witness, seen) = Witness::open(path, *superblock.identity().as_bytes(), ring).map_err(failed)?;
                superblock.witnessed = seen;
                // What is only read has nothing to tell.
                (!read_only).then_some(witness)
            }
        };
        let claim = Some(Claim::take(superblock.identity(), &files.paths)?);
        // What was left belongs to the device as it was; one that is made another is a copy.
        let identity = superblock.identity();
        let directory = options.staging.as_deref();
        // Whoever only reads leaves nothing, and makes no file.
        let directory = directory.filter(|directory| !read_only || staging_file(directory, &identity).exists());
        let staging = directory.and_then(|directory| Staging::open(directory, &superblock));
        if read_only && staging.as_ref().is_some_and(|staging| staging.left_by(&superblock).is_some()) {
            return Err(AttachError::Left { path: files.paths[0].clone() });
        }
        if superblock.emulation.is_some() {
            let clock = Box::new(WallClock::default());
            let (Some(Some(backing)), path) = (backings.pop(), &files.paths[0]) else {
                unreachable!("an emulated device has one file, and it was opened");
            };
            let (core, card) = emulated::open(backing, superblock, path, (read_only, staging), ring, clock)?;
            let path = files.paths[0].clone();
            let mut device = Device { _claim: claim, places, ..Device::with_card(core, files.paths, read_only, card) };
            device.find_zones().map_err(|refusal| refused(refusal, &path))?;
            device.core.witness = witness;
            // It goes through the page cache.
            device.core.ftl.sync_one_by_one();
            device.take_memory();
            device.go_on_with_drills(&options.drills);
            return Ok(device);
        }
        let file_options = FileOptions { read_only, ..FileOptions::default() };
        let media = FileMedia::new(backings, medium_geometry(&superblock), ring.clone(), file_options)?;
        // Of syncs that overlap, the page cache tells any one that something could not be written. A witness keeps one number.
        let overlaps = witness.is_none() && media.backings().all(|backing| backing.direct_alignment().is_some());
        let media = with_drills(Base::Plain(Box::new(media)), &superblock, &options.drills);
        let media = with_parity(media, &superblock);
        let (needed, unclean) = (room::needed(&superblock), !superblock.anchor.clean);
        let config = layer_config(&superblock, false);
        let core = attach(media, superblock, config, read_only, staging);
        let core = core.map_err(|refusal| {
            let no_room = room::no_room(&refusal, needed, unclean, &files.paths);
            no_room.unwrap_or_else(|| refused(refusal, &files.paths[0]))
        })?;
        let set_aside = files.set_aside;
        for (die, why) in &set_aside {
            tracing::error!(die, "a file is not used, the device goes on without it: {why}");
        }
        let path = files.paths[0].clone();
        let mut device = Device { _claim: claim, set_aside, places, ..Device::new(core, files.paths, read_only) };
        device.find_zones().map_err(|refusal| refused(refusal, &path))?;
        device.core.witness = witness;
        device.read_in_order();
        if !overlaps {
            device.core.ftl.sync_one_by_one();
        }
        device.take_memory();
        device.go_on_with_drills(&options.drills);
        Ok(device)
    }

    /// A throw-away device in memory, `bytes` large, over-provisioned by 28 % and at least 64 MiB.
    ///
    /// # Errors
    /// The size or the sector size is out of range.
    pub fn memory(bytes: u64, sector_bytes: u32) -> Result<Device, FormatError> {
        Device::memory_with(bytes, sector_bytes, None)
    }

    /// Like [`Device::memory`], with its sectors encrypted when there is a secret.
    ///
    /// # Errors
    /// As [`Device::memory`].
    pub fn memory_with(bytes: u64, sector_bytes: u32, secret: Option<&Secret>) -> Result<Device, FormatError> {
        let options = FormatOptions { sector_bytes, capacity: Capacity::Advertised, label: "memory".into() };
        let mut superblock = superblock(bytes, bytes + (bytes / 100 * 28).max(64 << 20), "", (1, 0), &options)?;
        if let Some(secret) = secret {
            encrypt(&mut superblock, secret)?;
            admit(&mut superblock, Some(secret)).map_err(|refusal| refused(refusal, &PathBuf::from("memory")))?;
        }
        let media = Memory::new(superblock.geometry);
        let config = layer_config(&superblock, false);
        let core = attach(Stack::Plain(Drilled::Plain(Base::Plain(Box::new(media)))), superblock, config, false, None);
        let path = PathBuf::from("memory");
        let core = core.map_err(|refusal| refused(refusal, &path))?;
        Ok(Device::new(core, vec![path], false))
    }

    /// Puts a format on an erased medium.
    ///
    /// # Errors
    /// The sizes do not fit together, or the medium failed.
    pub fn format_media(media: &mut dyn Media, format: &MediaFormat) -> Result<(), FormatError> {
        let superblock = media_superblock(layer_geometry(media.geometry()), format)?;
        put_format(media, superblock, format.key)
    }

    /// Puts a format with zones on an erased medium. Its sectors are those of the zones, whatever `format` says.
    ///
    /// # Errors
    /// As [`Device::format_media`].
    pub fn format_zoned(media: &mut dyn Media, format: &MediaFormat, zones: ZoneShape) -> Result<(), FormatError> {
        let layout = layer_geometry(media.geometry());
        let zoned = zones::formatted(layout, zones);
        let plain = media_superblock(layout, &MediaFormat { sectors: zoned.sectors, ..*format })?;
        put_format(media, Superblock { zones: zoned.zones, policy: zoned.policy, ..plain }, format.key)
    }

    /// A device on any medium that holds a format already. `erase_before_program` as on flash.
    ///
    /// # Errors
    /// There is no valid format, or it cannot be recovered.
    pub fn on_media(media: Box<dyn Media>, erase_before_program: bool) -> Result<Device, AttachError> {
        Device::on_media_with(media, erase_before_program, None)
    }

    /// Like [`Device::on_media`], where the format may be encrypted.
    ///
    /// # Errors
    /// As [`Device::on_media`]; or the secret does not open it.
    pub fn on_media_with(
        media: Box<dyn Media>,
        erase_before_program: bool,
        secret: Option<&Secret>,
    ) -> Result<Device, AttachError> {
        Device::on_media_staged(media, erase_before_program, secret, None)
    }

    /// Like [`Device::on_media_with`], with page buffers that outlive the process.
    ///
    /// # Errors
    /// As [`Device::on_media_with`].
    pub fn on_media_staged(
        mut media: Box<dyn Media>,
        erase_before_program: bool,
        secret: Option<&Secret>,
        staging: Option<Staging>,
    ) -> Result<Device, AttachError> {
        let path = PathBuf::from("media");
        let mut superblock =
            assemble(read_labels(&mut *media), true, false).map_err(|refusal| refused(refusal, &path))?;
        admit(&mut superblock, secret).map_err(|refusal| refused(refusal, &path))?;
        let media = with_parity(with_drills(media.into(), &superblock, &CarriedDrills::default()), &superblock);
        let config = layer_config(&superblock, erase_before_program);
        let core = attach(media, superblock, config, false, staging).map_err(|refusal| refused(refusal, &path))?;
        let mut device = Device::new(core, vec![path.clone()], false);
        device.find_zones().map_err(|refusal| refused(refusal, &path))?;
        device.read_in_order();
        Ok(device)
    }

    /// Reads ahead from now on. A device that is marked for drills shows a fault where it was made, not what was read before.
    fn read_in_order(&mut self) {
        if self.drills.is_none() {
            self.core.read_in_order();
        }
    }

    /// Makes a medium for an emulated device, of the shape that it needs, and formats it.
    ///
    /// # Errors
    /// There is no such flash card, the options do not fit it, or the medium failed.
    pub fn format_emulated(
        options: &EmulateOptions,
        medium: impl FnOnce(media::Geometry) -> Box<dyn Media>,
    ) -> Result<Box<dyn Media>, FormatError> {
        let mut superblock = emulated::superblock(&options.profile, options.emulation, &options.format)?;
        let mut inner = medium(media::nand::inner_geometry(&superblock.geometry));
        write_superblock(&mut *inner, &mut superblock)
            .map_err(|refusal| FormatError::Attach(refused(refusal, &PathBuf::from("media"))))?;
        Ok(inner)
    }

    /// An emulated device on a medium that [`Device::format_emulated`] made, with the time from `clock`.
    ///
    /// # Errors
    /// There is no valid format, or it cannot be recovered.
    pub fn emulated(mut inner: Box<dyn Media>, clock: Box<dyn Clock>) -> Result<Device, AttachError> {
        let path = PathBuf::from("media");
        let superblock = assemble(read_labels(&mut *inner), false, false).map_err(|refusal| refused(refusal, &path))?;
        let (core, card) = emulated::open_media(inner, superblock, &path, (false, None), clock, |_| 0)?;
        let mut device = Device::with_card(core, vec![path.clone()], false, card);
        device.find_zones().map_err(|refusal| refused(refusal, &path))?;
        Ok(device)
    }

    fn new(core: Core, paths: Vec<PathBuf>, read_only: bool) -> Device {
        let info = Info::of(&core.superblock, &paths);
        let mut core = core;
        let drills = core.media.drill().map(|_| Box::default());
        Device {
            core,
            info,
            paths,
            read_only,
            counts: Counts::default(),
            activity: Cell::new(Activity::new()),
            dirty: false,
            card: None,
            zoned: None,
            page_file: PageFile::default(),
            drills,
            _claim: None,
            set_aside: Vec::new(),
            places: Places::default(),
            room: Room::default(),
        }
    }

    /// A device on objects, attached for writing.
    pub(crate) fn on_core(core: Core, paths: Vec<PathBuf>, claim: Option<Claim>) -> Device {
        let places = if claim.is_some() { Places::of(paths.iter()) } else { Places::default() };
        let mut device = Device { _claim: claim, places, ..Device::new(core, paths, false) };
        device.read_in_order();
        device.take_memory();
        device
    }

    fn with_card(core: Core, paths: Vec<PathBuf>, read_only: bool, card: Card) -> Device {
        Device { card: Some(Box::new(card)), ..Device::new(core, paths, read_only) }
    }

    /// Looks how its zones stand.
    fn find_zones(&mut self) -> Result<(), Refusal> {
        self.zoned = Zoned::find(&mut self.core, self.read_only)?;
        Ok(())
    }

    /// What it is.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The superblock or the paths say something else now.
    pub(crate) fn renew_info(&mut self) {
        // A size counts when it is on record, and what a device that shrinks gives up is gone at once: the layer knows.
        let info = Info::of(&self.core.superblock, &self.paths);
        let sectors = if info.zones.is_some() { info.sectors } else { self.core.ftl.map().sectors() };
        self.info = Info { sectors, ..info };
    }

    /// How many placements of what hosts write are told apart: 1 where the groomer's policy goes by something else.
    pub fn placements(&self) -> u8 {
        self.core.ftl.placements()
    }

    /// What is reclaimed at once, bytes: an erase block without the slot that says what it is.
    pub fn reclaim_unit_bytes(&self) -> u64 {
        u64::from(self.core.ftl.config().geometry.slots_per_leb() - 1) * u64::from(self.info.sector_bytes)
    }

    /// Bytes that can be written to a placement until it begins another erase block.
    pub fn left_in_placement(&self, placement: u8) -> u64 {
        u64::from(self.core.ftl.left_in_placement(placement)) * u64::from(self.info.sector_bytes)
    }

    /// What the groomer moved out of an erase block since this was asked last, the oldest first; the latest 63 are kept.
    pub fn next_reclaimed(&mut self) -> Option<ftl::Reclaimed> {
        self.core.ftl.next_reclaimed()
    }

    /// What is written to a placement from now on goes to another erase block than what was written to it before.
    pub fn renew_placement(&mut self, placement: u8) {
        self.core.ftl.renew_placement(placement);
        self.core.carry_out(&[]);
    }

    /// Work was taken that is to be made durable in a quiet moment.
    pub(crate) fn mark_dirty(&mut self) {
        self.dirty = true;
    }

    /// Whether it takes no writes.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Takes a request under a tag of the caller's choice.
    pub fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        self.submit_in(None, tag, io)
    }

    /// The same for what a clone holds: writes, trims and batches are its own. Of a snapshot nothing is written. Reads name what they are of
    /// themselves.
    pub fn submit_in<'a>(&mut self, view: Option<SnapshotId>, tag: u64, io: Io<'a>) -> Submitted<'a> {
        self.submit_placed(view, 0, tag, io)
    }

    /// The same: what is written belongs together with other writes of the same placement, of [`Device::placements`]. 0 for those of which
    /// nothing is said.
    pub fn submit_placed<'a>(
        &mut self,
        view: Option<SnapshotId>,
        placement: u8,
        tag: u64,
        io: Io<'a>,
    ) -> Submitted<'a> {
        if self.core.fenced {
            // What is in memory could be answered still, and is no longer what the device holds.
            return Submitted::Done(Err(IoError::Media));
        }
        match self.core.answers() {
            Answers::Given => {}
            Answers::Held => return Submitted::Busy(io),
            Answers::Failed => return Submitted::Done(Err(IoError::Media)),
        }
        match self.check(&io) {
            Ok(true) => {}
            Ok(false) => {
                let buf = if let Io::Read { buf, .. } | Io::ReadSnapshot { buf, .. } = io { Some(buf) } else { None };
                return Submitted::Done(Ok(buf));
            }
            Err(error) => return Submitted::Done(Err(error)),
        }
        if self.zoned.is_none() {
            return self.hand_over(view, (placement, 0), tag, io);
        }
        self.submit_zoned(tag, io)
    }

    /// Hands a request that was checked to the layer, or to the card before it, which answers so many nanoseconds later than others.
    pub(crate) fn hand_over<'a>(
        &mut self,
        view: Option<SnapshotId>,
        (placement, later): (u8, u64),
        tag: u64,
        io: Io<'a>,
    ) -> Submitted<'a> {
        let Some(io) = self.core.superblock.durability.admit(io) else {
            self.counts.flushes += 1;
            return Submitted::Done(Ok(None));
        };
        let io = match &self.drills {
            None => io,
            Some(drills) => match drills.admit(io) {
                Ok(io) => io,
                Err(answer) => return Submitted::Done(answer),
            },
        };
        *self.counts.of(&io) += 1;
        let writes = !matches!(io, Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush);
        let base = match view.filter(|_| writes) {
            None => 0,
            Some(id) => match self.base_of(id) {
                Ok(base) => base,
                Err(error) => return Submitted::Done(Err(error)),
            },
        };
        let batch = matches!(io, Io::Batch { .. });
        self.dirty |= writes;
        let submitted = match &mut self.card {
            None => self.core.submit(To { base, placement }, tag, io),
            Some(card) => card.submit(&mut self.core, (placement, later), tag, io),
        };
        match &submitted {
            Submitted::Busy(io) => *self.counts.of(io) -= 1,
            _ if self.drills.is_some() && self.power_goes(writes) => return Submitted::Pending,
            _ => {}
        }
        if batch && self.info.format_version != self.core.superblock.version() {
            self.renew_info();
        }
        submitted
    }

    /// What a clone's addresses begin with.
    fn base_of(&self, id: SnapshotId) -> Result<u64, IoError> {
        match self.find_clone(id) {
            Some(clone) => Ok(clone.address(0)),
            None if self.snapshot(id).is_some() => Err(IoError::ReadOnly),
            None => Err(IoError::NoSnapshot),
        }
    }

    /// Whether a request is to be carried out; `false` where there is nothing to do.
    fn check(&self, io: &Io) -> Result<bool, IoError> {
        let sector = u64::from(self.info.sector_bytes);
        let bytes = |len: usize| match (len as u64).is_multiple_of(sector) {
            true => Ok(len as u64 / sector),
            false => Err(IoError::OutOfRange),
        };
        let (lba, count, writes) = match io {
            // An emulated card has none.
            Io::ReadSnapshot { .. } if self.card.is_some() => return Err(IoError::NoSnapshot),
            Io::Read { lba, buf } | Io::ReadSnapshot { lba, buf, .. } => (*lba, bytes(buf.len())?, false),
            Io::Write { lba, data, .. } => (*lba, bytes(data.len())?, true),
            Io::Flush => return Ok(!self.read_only),
            Io::Trim { lba, count, .. } | Io::WriteZeroes { lba, count, .. } => (*lba, *count, true),
            Io::Batch { .. } if self.read_only => return Err(IoError::ReadOnly),
            Io::Batch { ops, data, .. } => {
                let shape = (self.info.sectors, self.info.sector_bytes, self.info.max_request_bytes);
                return Ok(check_batch(shape, ops, data.len()).map(|()| true)?);
            }
        };
        if lba.checked_add(count).is_none_or(|end| end > self.info.sectors) {
            return Err(IoError::OutOfRange);
        }
        if writes && self.read_only {
            return Err(IoError::ReadOnly);
        }
        let sized = matches!(io, Io::Write { .. } | Io::WriteZeroes { allocate: true, .. });
        if sized && count * sector > u64::from(self.info.max_request_bytes) {
            return Err(IoError::TooLarge);
        }
        // A trim may be switched off; it then does nothing, which the protocol allows.
        let ignored = matches!(io, Io::Trim { .. }) && !self.core.superblock.trim;
        Ok(count > 0 && !ignored)
    }

    /// Why it takes no more just now, for whoever was told that it is busy.
    pub fn held_back(&self) -> &'static str {
        if self.core.answers() == Answers::Held {
            return "its lease is over, and the object store takes no new one";
        }
        let ftl = &self.core.ftl;
        match (ftl.space_failure(), ftl.is_short()) {
            (Some(_), _) => "the store under the device has no room",
            (None, true) => "free space is short, and writes go as fast as the groomer makes some",
            (None, false) => "the device had as many requests as it takes at once",
        }
    }

    /// The drills that are on, in words; empty where there are none.
    pub fn drills_in_words(&self) -> String {
        let drills = self.drills.as_ref().map(|_| self.drills()).unwrap_or_default();
        drills.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Drives the device and gives the next answer, never waiting.
    pub fn poll(&mut self) -> Option<Completion> {
        let done = match &mut self.card {
            None => self.core.poll(),
            Some(card) => card.poll(&mut self.core),
        };
        if let (Some(zoned), Some(done)) = (&mut self.zoned, &done) {
            zoned.answered(done.tag);
        }
        self.note_store();
        self.renew_size();
        // Once the power is cut nothing is answered any more; it may go with a program that nobody waits for.
        if self.drills.is_some() && self.power_goes(false) { None } else { done }
    }

    /// How long until [`Device::poll`] may have something although nothing comes from outside: only an emulated device has
    /// something of its own to wait for.
    #[inline]
    pub fn time_left(&mut self) -> Option<Duration> {
        let stalled =
            if self.drills.is_some() { self.core.media.drill().and_then(|drill| drill.time_left()) } else { None };
        let Some(card) = self.card.as_mut() else { return stalled };
        let card = card.time_left(&mut self.core).map(Duration::from_nanos);
        [stalled, card].into_iter().flatten().min()
    }

    /// Whether [`Device::poll`] can make progress now although no completion of the ring announces it: the groomer's reads of a
    /// medium in memory, for one.
    #[inline]
    pub fn can_go_on(&self) -> bool {
        self.core.media.has_done()
    }

    /// It is about to be detached: what waits for a lease that is over waits no longer, and fails.
    pub fn wait_for_no_lease(&mut self) {
        self.core.ending = true;
    }

    /// Whether the medium works at nothing and no answer waits in [`Device::poll`].
    pub fn is_idle(&self) -> bool {
        let nothing_waits = self.card.as_ref().is_none_or(|card| card.is_idle());
        nothing_waits && self.core.in_flight == 0 && !self.core.has_completions()
    }

    /// Waits until [`Device::poll`] can make progress (for users without an event loop of their own); returns at once
    /// when nothing is under way.
    pub fn wait(&mut self) {
        match &mut self.card {
            Some(card) => card.wait(&mut self.core),
            None if self.core.has_completions() => {}
            None => self.core.wait(),
        }
    }

    /// To be called now and then when no requests come: makes what was written durable, and gives space back that
    /// the log no longer needs. Returns whether there is more to do.
    pub fn idle(&mut self) -> bool {
        if let Some(ahead) = &mut self.core.ahead {
            ahead.rest();
        }
        if self.read_only {
            return false;
        }
        if let Some(card) = &mut self.card {
            let more = card.idle(&mut self.core);
            return std::mem::take(&mut self.dirty) || more;
        }
        let more = self.core.ftl.idle();
        self.core.carry_out(&[]);
        let was_dirty = std::mem::take(&mut self.dirty);
        was_dirty || more
    }

    /// Whether something was changed since it was last idle, by a client or by a call.
    #[inline]
    pub fn is_untidy(&self) -> bool {
        self.dirty
    }

    /// Begins the next step of what goes on beside requests, a rebuild, a scrub or bringing it into order, when none is under way. The steps end with
    /// [`Device::poll`], and how soon the next follows is the caller's to say.
    pub fn background(&mut self) -> Background {
        self.core.background()
    }

    /// Whether a rebuild, a scrub or bringing it into order is to go on.
    pub fn has_background(&self) -> bool {
        self.core.has_jobs()
    }

    /// Begins to read and check everything, or goes on where it stopped; or ends it.
    ///
    /// # Errors
    /// The device is attached read-only.
    pub fn scrub(&mut self, on: bool) -> Result<(), FormatError> {
        self.check_writable()?;
        match on {
            true => self.core.begin_scrub(self.core.superblock.scrub_position.saturating_sub(1)),
            false => self.core.end_scrub(),
        }
        Ok(())
    }

    /// Begins to write once more by address what lies scattered, at so many bytes a second, so that it is read in order as fast as the
    /// medium can; or ends it. It goes on while clients read and write.
    ///
    /// # Errors
    /// The device is attached read-only, or emulates a card, which does nothing of the kind.
    pub fn optimise(&mut self, rate: Option<u64>) -> Result<(), FormatError> {
        self.check_writable()?;
        if self.card.is_some() {
            return Err(FormatError::Invalid {
                name: "device",
                value: "an emulated card".into(),
                expected: "a device on files or disks: a card keeps its data where it wrote them".into(),
            });
        }
        match rate {
            Some(rate) => self.core.begin_to_optimise(rate),
            None => self.core.end_optimise(),
        }
        Ok(())
    }

    pub(crate) fn check_writable(&self) -> Result<(), FormatError> {
        match self.read_only {
            false => Ok(()),
            true => Err(FormatError::Invalid {
                name: "device",
                value: "attached read-only".into(),
                expected: "a device attached for writing".into(),
            }),
        }
    }

    /// Rebuilds a lost die: onto another file or block device, which must be new or blank, or onto the one that it had.
    ///
    /// # Errors
    /// The die is not lost, what is to take its place cannot be used, or the device is attached read-only.
    pub fn rebuild(&mut self, die: u32, onto: Option<&Path>) -> Result<(), CreateError> {
        self.check_writable()?;
        if self.card.is_some() {
            return Err(CreateError::Format(FormatError::Invalid {
                name: "device",
                value: "a card that is emulated".into(),
                expected: "a device on several files; a card with adaptive Flashback rebuilds what a lost chip held by itself, any other goes on without the chip".into(),
            }));
        }
        self.core.lost_die(die)?;
        self.check_rebuild(die, onto)?;
        let path = onto.unwrap_or(&self.paths[die as usize]).to_path_buf();
        if path.as_os_str().is_empty() {
            return Err(CreateError::Format(FormatError::Invalid {
                name: "onto",
                value: "no file".into(),
                expected:
                    "the file that takes the lost one's place, since the device was attached without it (--onto FILE)"
                        .into(),
            }));
        }
        if self.paths.iter().enumerate().any(|(other, known)| *known == path && other != die as usize) {
            let what = "another file of this device".into();
            return Err(CreateError::Exists { path, what });
        }
        if path == self.paths[die as usize] {
            self.core.lost_die(die)?.let_go_of_lost(die);
        }
        let backing = open_replacement(&path, &self.core.superblock, die)?;
        let replaced = self.core.lost_die(die)?.replace(die, backing);
        replaced
            .map_err(|error| FormatError::Attach(AttachError::Media { path: path.clone(), what: error.to_string() }))?;
        let before = std::mem::replace(&mut self.paths[die as usize], path);
        self.places.replace(&before, &self.paths[die as usize]);
        self.set_aside.retain(|(aside, _)| *aside != die);
        self.renew_info();
        self.die_has_another_file(die);
        self.core.begin_rebuild(die);
        self.core.note_losses();
        Ok(())
    }

    /// A lost die of the medium was replaced by a blank one: it is rebuilt.
    ///
    /// # Errors
    /// The die is not lost.
    pub fn die_replaced(&mut self, die: u32) -> Result<(), FormatError> {
        let flashback = self.core.lost_die(die)?;
        flashback.replaced(die);
        self.core.begin_rebuild(die);
        self.core.note_losses();
        Ok(())
    }

    /// The next run of sectors at `lba` that are all mapped or all not, at most `max` long.
    /// `max` is at least 1. What lies beyond the end, for somebody who does not know yet that the device shrank, holds nothing.
    pub fn extent(&self, lba: u64, max: u64) -> Extent {
        if lba >= self.info.sectors {
            return Extent { count: max, mapped: false };
        }
        let (count, mapped) = self.core.ftl.map().run(lba, max);
        Extent { count, mapped }
    }

    /// From now on the groomer may lose sectors before this one, those that are hardly read first, instead of moving them: they are copies of what
    /// stands elsewhere. With 0 it loses none, as after each attach.
    pub fn set_evictable(&mut self, below: u64) {
        self.core.ftl.set_evictable(below);
        self.core.carry_out(&[]);
    }

    /// Shares what the groomer may lose among volumes, until [`Device::set_evictable`] is called again; see [`ftl::Ftl::set_quotas`].
    pub fn set_quotas(&mut self, quotas: &[Quota]) {
        self.core.ftl.set_quotas(quotas);
        self.core.carry_out(&[]);
    }

    /// What a volume holds whose copies lie in these sectors, what may not be lost included.
    pub fn cached_sectors(&self, sectors: Range<u64>) -> u64 {
        self.core.ftl.cached_sectors(sectors)
    }

    /// Sectors that there is room for, where the address space is larger; otherwise nothing.
    pub fn room(&self) -> Option<u64> {
        self.core.ftl.live_limit()
    }

    /// Sectors that the groomer lost by leave of [`Device::set_evictable`] since the device was attached.
    pub fn evicted_sectors(&self) -> u64 {
        self.core.ftl.evicted_sectors()
    }

    /// What may be wrong with it.
    pub fn condition(&self) -> Condition {
        let core = &self.core;
        let controller = self.card.as_deref().map(|card| &card.controller);
        let worn_out = controller.is_some_and(|controller| controller.health() == Health::ReadOnly);
        let lost = core.lost_dies().next().is_some();
        Condition {
            reserve_percent: core.media.nand().map(|nand| nand.wear().reserve_percent()),
            celsius: controller.and_then(|controller| controller.governor.as_ref()).map(Governor::celsius),
            degraded: lost || !core.healing.unreadable.is_empty() || self.is_store_full(),
            read_only: core.ftl.failure().is_some() || worn_out,
        }
    }

    /// Every figure, without allocating anything.
    pub fn figures(&self) -> Figures {
        let state = if self.read_only { State::AttachedReadOnly } else { State::Attached };
        let controller = self.card.as_deref().map(|card| &card.controller);
        let governor = controller.and_then(|controller| controller.governor.as_ref());
        let figures = Figures::of(&self.core, self.counts, state);
        let mut activity = self.activity.get();
        let (reading, writing) = activity.look(&self.counts);
        self.activity.set(activity);
        let vanished_files = self.places.vanished().count() as u32;
        let others = || {
            let vanished = (vanished_files > 0).then_some(Trouble::Vanished);
            let card = || self.card.as_deref().and_then(Card::trouble).map(Trouble::Card);
            vanished.or_else(card).or_else(|| self.page_file.trouble().map(|_| Trouble::PageFile))
        };
        Figures {
            trouble: self.store_trouble().or(figures.trouble).or_else(others),
            vanished_files,
            pacing: self.card.as_deref().map(Card::pacing),
            celsius: governor.map(Governor::celsius),
            peak_celsius: governor.map(Governor::peak_celsius),
            reading,
            writing,
            hold_ns_per_byte: controller.map(Controller::hold),
            write_reduced: controller.map(|controller| controller.health() == Health::ReducedWrite),
            worn_out: controller.map(|controller| controller.health() == Health::ReadOnly),
            watts: governor.map(Governor::watts),
            power_limit_watts: governor.map(Governor::limit_watts).filter(|limit| limit.is_finite()),
            power_override: controller.and_then(|_| self.power_override()),
            durability: self.durability(),
            page_file: self.page_file.is_locked(),
            store_full: self.is_store_full(),
            // Zones end where the room for them does.
            room_sectors: figures.room_sectors.filter(|_| self.zoned.is_none()),
            sectors: self.info.sectors,
            over_provisioning_percent: self.over_provisioning_of_zones().unwrap_or(figures.over_provisioning_percent),
            zones: self.zones().map(|zones| (zones.counts(), self.zone_resets())),
            ..figures
        }
    }

    /// Every figure, with the words and lists that people read.
    pub fn status(&self) -> Status {
        let figures = self.figures();
        Status {
            members: Vec::new(),
            health: figures.trouble.map_or_else(|| "healthy".into(), |trouble| self.in_words(trouble, &figures)),
            lost_dies: self.core.lost_dies().collect(),
            given_up_chips: self.core.superblock.given_up.iter().map(|gone| gone.chip).collect(),
            set_aside: self.set_aside.iter().map(|(die, why)| format!("die {die}: {why}")).collect(),
            vanished: self.places.vanished().cloned().collect(),
            unreadable: self.core.healing.unreadable.iter().copied().collect(),
            drills: self.drills.is_some().then(|| self.drills().iter().map(ToString::to_string).collect()),
            figures,
        }
    }

    fn in_words(&self, trouble: Trouble, figures: &Figures) -> String {
        match trouble {
            Trouble::NoRoomToRecover | Trouble::StoreFull | Trouble::StoreFails(_) => self.store_in_words(trouble),
            Trouble::Fenced | Trouble::ObjectsBehind => self.objects_in_words(),
            Trouble::WritesFail(error) => format!("writes fail: {error}"),
            Trouble::Degraded => self.lost_in_words(figures),
            Trouble::Unreadable => format!("{} sectors cannot be read", figures.unreadable_sectors),
            Trouble::NearlyFull => {
                let room = figures.room_sectors.unwrap_or(u64::MAX).max(1);
                let percent = (figures.mapped_sectors + figures.kept_sectors) * 100 / room;
                let what = match figures.snapshots {
                    0 => "trim what is not needed",
                    _ => "delete snapshots, or trim what is not needed",
                };
                format!("{percent} % of the raw space hold data: {what}, before writes are refused")
            }
            Trouble::Vanished => self.places.vanished().next().map_or_else(String::new, |path| {
                let path = path.display();
                format!("{path} was deleted, moved or replaced while in use; its data is lost when the device is detached: copy the device's content first")
            }),
            Trouble::Card(words) => words.into(),
            Trouble::PageFile => self.page_file.trouble().unwrap_or_default().into(),
        }
    }

    /// What it means that dies are lost.
    fn lost_in_words(&self, figures: &Figures) -> String {
        let (nand, rebuilding) = (self.core.media.nand(), self.core.narrowing());
        let chips = nand.and_then(|nand| {
            let mut chips = nand.lost_chips()?;
            chips.retain(|chip| rebuilding.is_some_and(|(last, _)| last == *chip) || !nand.is_given_up(*chip));
            Some((chips, nand.chips()))
        });
        let out = match chips {
            Some((chips, of)) if chips.len() == 1 => format!("chip {} of {of} out of service", chips[0]),
            Some((chips, of)) => format!("{} of {of} chips out of service", chips.len()),
            None => format!("{} of {} dies out of service", figures.lost, figures.dies),
        };
        // What holds nothing loses nothing, but where the layout never shrank, a card that lost too much is broken all the same.
        let rigid = self.core.superblock.given_up.is_empty();
        let lebs = self.core.ftl.lebs().iter();
        let beyond = nand
            .is_some_and(|nand| lebs.into_iter().any(|(id, leb)| (rigid || leb.live > 0) && nand.is_beyond_parity(id)));
        match (beyond, rebuilding) {
            (true, _) => format!("failed: {out}, more than its parity makes up for"),
            (false, Some((_, percent))) => {
                format!("degraded: {out}; what it held is being rebuilt over the others, {percent:.0} % done")
            }
            (false, None) => format!("degraded: {out}"),
        }
    }

    /// Erases of each logical erase block as the model of an emulated card counts them; and how many it is rated for.
    pub fn wear(&self) -> Option<(Vec<u32>, u32)> {
        self.core.media.nand().map(|nand| (nand.wear().erases().to_vec(), nand.wear().rated()))
    }

    /// Checks the layer's books against each other: for tests, since it looks at every sector.
    ///
    /// # Errors
    /// What does not agree.
    pub fn verify(&self) -> Result<(), String> {
        self.core.ftl.verify()
    }

    /// Finishes what is under way, writes a checkpoint and lets go of the medium.
    ///
    /// # Errors
    /// The checkpoint could not be written; what was flushed is safe all the same.
    pub fn detach(self) -> Result<(), IoError> {
        self.detach_and_release(RELEASE_PATIENCE_MS).map(|_| ())
    }

    /// The same; a device on objects brings everything into the store and releases it, for so many milliseconds at most. Gives whether that was
    /// done: another host may take the device then, and nothing is lost.
    ///
    /// # Errors
    /// As [`Device::detach`].
    pub fn detach_and_release(mut self, patience_ms: u64) -> Result<bool, IoError> {
        self.close(patience_ms)
    }

    /// Detaches it in place, so that another device can be attached where this one still stands: its files, its identity and its stage are
    /// free. From then on it must be asked nothing but its [`Device::info`].
    ///
    /// # Errors
    /// As [`Device::detach`]; its files are free all the same.
    pub fn retire(&mut self) -> Result<(), IoError> {
        let closed = self.close(RELEASE_PATIENCE_MS);
        (self.read_only, self._claim, self.core.staging) = (true, None, None);
        let nothing = Memory::new(self.core.superblock.geometry);
        self.core.media = Stack::Plain(Drilled::Plain(Base::Plain(Box::new(nothing))));
        closed.map(drop)
    }

    fn close(&mut self, patience_ms: u64) -> Result<bool, IoError> {
        if self.read_only {
            return Ok(false);
        }
        if let Some(paced) = self.core.media.paced() {
            paced.be_lazy(false);
        }
        let idle = self.core.run_until(|core| !core.jobs.is_busy());
        self.core.leave_jobs();
        self.core.ftl.close();
        let is_closed = |core: &Core| core.ftl.is_closed() == Some(Ok(())) && core.in_flight == 0;
        let closed = idle.and_then(|()| self.core.run_until(is_closed));
        if closed.is_ok() {
            self.core.staging.iter_mut().for_each(Staging::discard);
        }
        let released = closed.is_ok() && self.core.media.objects().is_some_and(|objects| objects.leave(patience_ms));
        closed.map(|()| released).map_err(|refusal| {
            tracing::error!(%refusal, "the device could not be closed");
            let why = self.core.ftl.failure().or(self.core.ftl.space_failure());
            why.map_or(IoError::Media, crate::core::io_error)
        })
    }
}
