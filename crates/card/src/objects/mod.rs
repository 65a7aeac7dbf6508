//! A device on objects in virtual time: the translation layer and the plan that decides on uploads, both unchanged, before a model of
//! the store. Months of a device's life pass in minutes, and every request to the store is counted and paid for.
//!
//! No payload exists here, see [`ftl::Addressed`]. The journal is a local file that takes [`JOURNAL_NS`] and a gigabyte a second; its syncs take no
//! time. The store never fails.

mod journal;
mod report;
mod store;

use std::collections::{HashMap, VecDeque};

use ftl::{Addressed, Admission, Config, Engine, Ftl, Geometry, Policy, Recovery, TRAILER_BYTES, Tag};
use media::object::{Limits, Prices};

use crate::device::{Answer, Failure, Nanos, Op, Request, VirtualDevice};
use crate::report::Report;

use journal::{Event, Journal};
pub use report::{Bill, ObjectsReport};
pub use store::Store;

/// A millisecond.
const MS: Nanos = 1_000_000;
/// What the journal takes for a page, beside its bytes.
const JOURNAL_NS: Nanos = 50_000;
/// What a write takes, which is copied, and a read of what was never written.
const HOST_NS: Nanos = 10_000;
/// After so long without a request the groomer may work ahead, and so often while it does.
const QUIET: Nanos = 100 * MS;
const IDLE: Nanos = 10 * MS;
/// How often the groomer looks at what LEBs cost.
const LOOK: Nanos = 60_000 * MS;
/// Reads that the layer works on at once.
const READS: Tag = 1024;
/// As on a real device.
const MAX_REQUEST_BYTES: u32 = 1 << 20;
const PAGE_BYTES: u32 = 256 << 10;
const SECTOR_BYTES: u32 = 4096;
const CHECKPOINT_SLOTS: u64 = (512 << 20) / SECTOR_BYTES as u64;
const LEBS: u64 = 4096;
const LEB_BYTES: std::ops::RangeInclusive<u64> = (2 << 20)..=(256 << 20);

/// What a device on objects is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectsConfig {
    /// What the host sees, bytes.
    pub bytes: u64,
    /// Spare space on top of it, per cent.
    pub spare_percent: f64,
    /// What the store costs.
    pub prices: Prices,
    /// The groomer collects by price; otherwise by need alone.
    pub by_price: bool,
    /// Bounds, and how often the store is written to.
    pub limits: Limits,
    /// How fast the store is.
    pub store: Store,
    /// The groomer's policy.
    pub policy: Policy,
    /// Whether it grooms ahead of need in quiet times.
    pub grooms_ahead: bool,
    /// Seed of everything that varies.
    pub seed: u64,
}

/// There is no such device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoObjects(String);

/// A piece of a request that the layer takes at once.
struct Piece {
    tag: u32,
    op: Op,
    lba: u64,
    count: u32,
}

/// A device on objects in virtual time.
pub struct ObjectDevice {
    layer: Addressed<Journal>,
    config: ObjectsConfig,
    /// Pieces of reads, and of everything else, which the layer has not taken.
    reads: VecDeque<Piece>,
    changes: VecDeque<Piece>,
    /// Pieces of each request that are not answered.
    pieces: HashMap<u32, u32>,
    failed: Vec<u32>,
    /// Whose the layer's tags are.
    owners: Vec<u32>,
    free_tags: Vec<Tag>,
    answers: VecDeque<Answer>,
    /// When what the layer took is made durable, at which moment it last was, when accounts are looked at, and when nobody asked for long enough.
    sync_at: Option<Nanos>,
    synced: Nanos,
    look_at: Option<Nanos>,
    idle_at: Option<Nanos>,
}

/// The layout that a real device of this size has.
fn geometry(raw_bytes: u64) -> Geometry {
    let leb_bytes = (raw_bytes / LEBS).max(1).next_power_of_two().clamp(*LEB_BYTES.start(), *LEB_BYTES.end());
    Geometry {
        dies: 1,
        parity: 0,
        blocks: raw_bytes.div_ceil(leb_bytes) as u32,
        pages_per_block: (leb_bytes / u64::from(PAGE_BYTES)) as u32,
        slots_per_page: PAGE_BYTES / SECTOR_BYTES,
        sector_bytes: SECTOR_BYTES,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: SECTOR_BYTES,
    }
}

impl ObjectDevice {
    /// A device, formatted and empty.
    ///
    /// # Errors
    /// It cannot be so small or so large.
    pub fn new(config: &ObjectsConfig) -> Result<ObjectDevice, NoObjects> {
        let raw_bytes = config.bytes as f64 * (1.0 + config.spare_percent / 100.0);
        if !(268_435_456.0..1.7e13).contains(&raw_bytes) {
            let what = format!("{} bytes with {} % to spare", config.bytes, config.spare_percent);
            return Err(NoObjects(format!("a device on objects of {what}: expected 256 MiB to 15 TiB in all")));
        }
        let geometry = geometry(raw_bytes as u64);
        let sectors = config.bytes / u64::from(SECTOR_BYTES);
        if sectors > ftl::max_sectors(&geometry) {
            let most = ftl::max_sectors(&geometry) * u64::from(SECTOR_BYTES);
            let what = format!("{} % to spare are too few for {} bytes", config.spare_percent, config.bytes);
            return Err(NoObjects(format!("{what}: with them there is room for {most}")));
        }
        let mut layer = Config {
            geometry,
            sectors,
            max_request: MAX_REQUEST_BYTES / SECTOR_BYTES,
            buffers: 0,
            requests: READS,
            checkpoint_interval: CHECKPOINT_SLOTS,
            erase_before_program: true,
            power_protected: false,
            policy: config.policy,
        };
        layer.buffers = layer.min_buffers() + 16;
        let mut ftl = Recovery::new(layer, ftl::Anchor::default())
            .and_then(|recovery| recovery.finish(1))
            .map_err(|error| NoObjects(format!("a new device: {error:?}")))?;
        ftl.groom_ahead(config.grooms_ahead);
        if config.by_price {
            ftl.set_fees(Some(config.prices.fees(&geometry, config.limits.behind_bytes)));
        }
        let journal = Journal::new(geometry, config).map_err(NoObjects)?;
        let mut device = ObjectDevice {
            layer: Addressed::new(ftl, journal),
            config: config.clone(),
            reads: VecDeque::new(),
            changes: VecDeque::new(),
            pieces: HashMap::new(),
            failed: Vec::new(),
            owners: vec![0; READS as usize],
            free_tags: (0..READS).rev().collect(),
            answers: VecDeque::new(),
            sync_at: None,
            synced: 0,
            look_at: config.by_price.then_some(LOOK),
            idle_at: None,
        };
        device.settle();
        Ok(device)
    }

    fn ftl(&self) -> &Ftl {
        &self.layer.ftl
    }

    fn now(&self) -> Nanos {
        self.layer.medium.now
    }

    /// Checks the layer's books. For tests: it looks at every sector.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self) -> Result<(), String> {
        self.layer.verify()
    }

    /// When something happens next by itself.
    fn next_moment(&self) -> Option<Nanos> {
        let medium = [self.layer.medium.next_event(), self.layer.medium.wake];
        let own = [self.sync_at, self.look_at, self.idle_at];
        medium.into_iter().chain(own).flatten().min()
    }

    /// What happens at this moment.
    fn happen(&mut self) {
        let now = self.now();
        while let Some(tag) = self.layer.medium.happen() {
            self.piece_done(tag, true);
        }
        if self.sync_at.take_if(|at| *at <= now).is_some() {
            self.synced = now;
            self.layer.ftl.make_durable();
        }
        if self.look_at.take_if(|at| *at <= now).is_some() {
            self.look_at = Some(now + LOOK);
            let plan = &self.layer.medium.plan;
            self.layer.ftl.look_at_rent(now / MS, |leb| plan.is_local(leb));
        }
        if self.idle_at.take_if(|at| *at <= now).is_some() && self.layer.ftl.idle() {
            self.idle_at = Some(now + IDLE);
        }
        self.layer.carry_out(());
        self.settle();
    }

    /// Goes on until nothing more follows at this moment.
    fn settle(&mut self) {
        loop {
            let mut still = self.take_requests();
            while let Some((id, ok)) = self.layer.medium.finished() {
                still = false;
                self.layer.done(id, ok);
                self.layer.carry_out(());
            }
            while let Some(completion) = self.layer.ftl.completion() {
                still = false;
                self.free_tags.push(completion.tag);
                self.piece_done(self.owners[completion.tag as usize], completion.result.is_ok());
            }
            self.layer.medium.plan.durable_below(self.layer.ftl.durable());
            still &= !self.layer.medium.pump();
            if still {
                break;
            }
        }
        if self.sync_at.is_none() && self.ftl().durable() < self.ftl().next_seq() {
            self.sync_at = Some((self.synced + self.config.limits.commit_ms * MS).max(self.now()));
        }
    }

    /// Has the layer take what it can. Whether nothing was taken.
    fn take_requests(&mut self) -> bool {
        let mut still = true;
        while let Some(piece) = self.reads.pop_front() {
            if !self.take(&piece) {
                self.reads.push_front(piece);
                break;
            }
            still = false;
        }
        while let Some(piece) = self.changes.pop_front() {
            if !self.take(&piece) {
                self.changes.push_front(piece);
                break;
            }
            still = false;
        }
        still
    }

    fn take(&mut self, piece: &Piece) -> bool {
        let Some(tag) = self.free_tags.pop() else { return false };
        let Piece { op, lba, count, .. } = *piece;
        let request = match op {
            Op::Read => ftl::Request::Read { lba, count },
            Op::Write => ftl::Request::Write { lba, count, fua: false },
            Op::Trim => ftl::Request::Trim { lba, count: count.into(), fua: false },
            Op::Flush => ftl::Request::Flush,
        };
        self.owners[tag as usize] = piece.tag;
        let admission = self.layer.ftl.submit(tag, request);
        self.layer.carry_out(());
        match admission {
            Admission::Pending => return true,
            Admission::Done => self.layer.medium.later(HOST_NS, Event::Answer(piece.tag)),
            Admission::Refused(_) => self.piece_done(piece.tag, false),
            Admission::Busy => {}
        }
        self.free_tags.push(tag);
        admission != Admission::Busy
    }

    /// A piece of a request was done, well or not.
    fn piece_done(&mut self, tag: u32, ok: bool) {
        if !ok && !self.failed.contains(&tag) {
            self.failed.push(tag);
        }
        let Some(left) = self.pieces.get_mut(&tag) else { return };
        *left -= 1;
        if *left > 0 {
            return;
        }
        self.pieces.remove(&tag);
        let failed = self.failed.iter().position(|failed| *failed == tag);
        let result = failed.map_or(Ok(()), |at| {
            self.failed.swap_remove(at);
            Err(Failure::Media)
        });
        self.answers.push_back(Answer { tag, at: self.now(), result });
    }
}

impl VirtualDevice for ObjectDevice {
    fn sector_bytes(&self) -> u32 {
        SECTOR_BYTES
    }

    fn bytes(&self) -> u64 {
        self.ftl().config().sectors * u64::from(SECTOR_BYTES)
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        self.advance(now);
        self.idle_at = Some(now + QUIET);
        if let Err(failure) = request.check(self.bytes(), SECTOR_BYTES) {
            return self.answers.push_back(Answer { tag, at: now, result: Err(failure) });
        }
        let most = self.ftl().config().max_request;
        let (mut lba, mut left) = (request.offset / u64::from(SECTOR_BYTES), request.bytes / SECTOR_BYTES);
        let pieces = if request.op == Op::Flush { 1 } else { left.div_ceil(most) };
        self.pieces.insert(tag, pieces);
        let queue = if request.op == Op::Read { &mut self.reads } else { &mut self.changes };
        for _ in 0..pieces {
            let count = left.min(most);
            queue.push_back(Piece { tag, op: request.op, lba, count });
            (lba, left) = (lba + u64::from(count), left - count);
        }
        self.settle();
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let answered = self.answers.front().map(|_| self.now());
        answered.or_else(|| self.next_moment().map(|at| at.max(self.now())))
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.next_moment().filter(|at| *at <= now) {
            self.layer.medium.now = at.max(self.now());
            self.happen();
        }
        self.layer.medium.now = now.max(self.now());
    }

    fn answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    fn extent(&self, offset: u64, bytes: u64) -> Option<(u64, bool)> {
        let sector = u64::from(SECTOR_BYTES);
        let (count, mapped) = self.ftl().map().run(offset / sector, (bytes / sector).max(1));
        Some((count * sector, mapped))
    }

    fn report(&self) -> Report {
        let (stats, sector) = (self.ftl().stats(), u64::from(SECTOR_BYTES));
        Report {
            host_read_bytes: stats.host_read_sectors * sector,
            host_written_bytes: stats.host_written_sectors * sector,
            groomed_bytes: stats.groomed_sectors * sector,
            padding_bytes: stats.padding_slots * sector,
            metadata_bytes: stats.metadata_slots * sector,
            erases: stats.erased_lebs,
            raw_bytes: self.ftl().config().geometry.raw_bytes(),
            objects: Some(report::of(&self.layer.ftl, &self.layer.medium)),
            ..Report::default()
        }
    }
}
