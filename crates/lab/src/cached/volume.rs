//! The cached volume on two devices in virtual time: what the service's threads do for one of bytes.

use std::collections::{HashMap, VecDeque};

use cache::{
    Answer as Told, BEHIND, CACHE, Command, Config, DIRTY_PART, Header, Layout, Mode, REGION_BYTES, Volume, What,
};
use card::{Answer, CacheReport, Failure, Members, Nanos, Op, Parents, Report, Request, VirtualDevice};
use device::{BatchOp, Extent, Io, IoError, Submitted};

use super::PLACEHOLDER;

/// Marks of quiet regions are taken back so often, and what is dirty goes behind: as in the service, where `crates/export` has the same.
const TICK: Nanos = 5_000_000_000;
/// The largest request of the volume, bytes; larger ones are cut, as operating systems do.
const REQUEST_BYTES: u32 = 512 << 10;
/// The largest request to a member, bytes: trims may be larger.
const PIECE_BYTES: u64 = 1 << 30;

/// Addresses that a cache device needs for a volume of so many sectors: its layout in each of two halves.
pub(super) fn addresses(sectors: u64) -> u64 {
    let head = Layout::place(u64::MAX, 1, 0, &[]).map_or(0, |layout| layout.base);
    2 * (head + 2 * sectors)
}

/// A part of a request of the host.
struct Piece {
    parent: u32,
    op: Op,
    lba: u64,
    count: u64,
}

/// A request of the volume that members work on.
struct Asked {
    /// Answers that are missing.
    left: u32,
    /// Comes back with the answer.
    buf: Option<Vec<u8>>,
    error: Option<IoError>,
}

/// A device behind a cache.
pub struct Cached {
    volume: Volume,
    members: Members<u64>,
    asked: HashMap<u64, Asked>,
    parents: Parents,
    /// Parts that the volume takes later, in order.
    waiting: VecDeque<Piece>,
    answers: VecDeque<Answer>,
    sector: u32,
    bytes: u64,
    /// What the volume's writes write.
    zeros: Vec<u8>,
    now: Nanos,
    /// The next tick; never while there is nothing to do then.
    tick: Nanos,
    room_bytes: u64,
    dirty_peak: u64,
    host_read: u64,
    host_written: u64,
}

impl Cached {
    /// A cold cache, with room for so many bytes, in front of a device.
    pub(super) fn new(
        module: Box<dyn VirtualDevice>,
        behind: Box<dyn VirtualDevice>,
        room_bytes: u64,
        mode: Mode,
    ) -> Cached {
        let sector = module.sector_bytes();
        let of = |bytes: u64| bytes / u64::from(sector);
        let (sectors, room, addresses) = (of(behind.bytes()), of(room_bytes), of(module.bytes()));
        let shift = Layout::region_shift(sectors, of(REGION_BYTES));
        let layout =
            Layout::place(addresses, sectors, shift, &[]).expect("the module was built with room for the layout");
        let max_request = REQUEST_BYTES / sector;
        let name = String::new();
        let header = Header { uuid: uuid::Uuid::nil(), name, mode, sector_bytes: PLACEHOLDER, layout, witness: None };
        let volume = Volume::open(Config {
            header,
            number: 0,
            max_request,
            room,
            dirty_limit: room / DIRTY_PART,
            changed: false,
            // The models take a request in at once and carry it out later.
            looks_at_once: false,
        });
        let mut cached = Cached {
            volume,
            members: Members::new(vec![module, behind]),
            asked: HashMap::new(),
            parents: Parents::default(),
            waiting: VecDeque::new(),
            answers: VecDeque::new(),
            sector,
            bytes: sectors * u64::from(sector),
            zeros: vec![0; (max_request * PLACEHOLDER) as usize],
            now: 0,
            tick: Nanos::MAX,
            room_bytes,
            dirty_peak: 0,
            host_read: 0,
            host_written: 0,
        };
        cached.pump();
        cached
    }

    /// Cuts a request into parts that the volume takes.
    fn cut(&mut self, parent: u32, request: Request) {
        if request.op == Op::Flush {
            self.parents.part(parent);
            return self.waiting.push_back(Piece { parent, op: Op::Flush, lba: 0, count: 0 });
        }
        let sector = u64::from(self.sector);
        let (mut lba, end) = (request.offset / sector, (request.offset + u64::from(request.bytes)) / sector);
        let most = if request.op == Op::Trim { u64::MAX } else { u64::from(REQUEST_BYTES / self.sector) };
        while lba < end {
            let count = (end - lba).min(most);
            self.parents.part(parent);
            self.waiting.push_back(Piece { parent, op: request.op, lba, count });
            lba += count;
        }
    }

    /// Offers the first of what waits to the volume. Whether it was taken.
    fn offer(&mut self) -> bool {
        let Some(&Piece { parent, op, lba, count }) = self.waiting.front() else { return false };
        let bytes = count as usize * PLACEHOLDER as usize;
        let io = match op {
            Op::Read => Io::Read { lba, buf: vec![0; bytes] },
            Op::Write => Io::Write { lba, data: &self.zeros[..bytes], fua: false },
            Op::Trim => Io::Trim { lba, count, fua: false },
            Op::Flush => Io::Flush,
        };
        match self.volume.submit(u64::from(parent), io) {
            Submitted::Busy(_) => return false,
            Submitted::Pending => {}
            Submitted::Done(result) => self.done(parent, result.map(drop)),
        }
        self.waiting.pop_front();
        true
    }

    /// A part of a request of the host is answered.
    fn done(&mut self, parent: u32, result: Result<(), IoError>) {
        if let Some((tag, result)) = self.parents.done(parent, result.map_err(failure)) {
            self.answers.push_back(Answer { tag, at: self.now, result });
        }
    }

    /// Carries on until everybody waits for members.
    fn pump(&mut self) {
        loop {
            while let Some(answer) = self.members.answer() {
                self.told(answer.purpose, answer.result);
            }
            while let Some(done) = self.volume.poll() {
                self.done(done.tag as u32, done.result.map(drop));
            }
            // Also what the volume refuses for now may have it ask for something.
            let Some(command) = self.volume.next_command().or_else(|| {
                while self.offer() {}
                self.volume.next_command()
            }) else {
                break;
            };
            self.carry_out(command);
        }
        let status = self.volume.status();
        self.dirty_peak = self.dirty_peak.max(status.dirty_sectors);
        self.tick = match self.tick {
            _ if status.dirty_sectors + status.marked_regions == 0 => Nanos::MAX,
            Nanos::MAX => (self.now / TICK + 1) * TICK,
            tick => tick,
        };
    }

    /// Asks a member for what the volume wants of it.
    fn carry_out(&mut self, Command { member, tag, what }: Command) {
        let sector = u64::from(self.sector);
        let placeholders = |bytes: usize| bytes as u64 / u64::from(PLACEHOLDER);
        let (requests, buf) = match what {
            What::Extent { lba, max } => {
                let (bytes, mapped) =
                    self.members.device(member).extent(lba * sector, max * sector).unwrap_or((max * sector, false));
                let extent = Extent { count: bytes / sector, mapped };
                return self.volume.finish(tag, Ok(Told::Extent(extent)));
            }
            What::ReadSnapshot { .. } | What::Snapshot(_) => unreachable!("a cached volume has no snapshots"),
            What::Read { lba, buf } => (vec![(Op::Read, lba, placeholders(buf.len()))], Some(buf)),
            What::Write { lba, part, .. } => (vec![(Op::Write, lba, placeholders(part.len()))], None),
            What::Zeroes { lba, count, .. } => (vec![(Op::Trim, lba, count)], None),
            What::Flush => (vec![(Op::Flush, 0, 0)], None),
            What::Batch { ops, .. } => (ops.iter().filter_map(|op| self.of_batch(member, op)).collect(), None),
        };
        let mut left = 0;
        for (op, lba, count) in requests {
            let (mut offset, end) = (lba * sector, (lba + count) * sector);
            loop {
                let bytes = (end - offset).min(PIECE_BYTES);
                let request = Request::new(op, if op == Op::Flush { 0 } else { offset }, bytes as u32);
                self.members.submit(self.now, member, request, tag);
                left += 1;
                offset += bytes;
                if offset >= end {
                    break;
                }
            }
        }
        self.asked.insert(tag, Asked { left, buf, error: None });
    }

    /// A part of a batch, which a module takes as a request of its own; the trim only where there is something to trim.
    fn of_batch(&self, member: usize, op: &BatchOp) -> Option<(Op, u64, u64)> {
        let sector = u64::from(self.sector);
        match *op {
            BatchOp::Write { lba, count } => Some((Op::Write, lba, u64::from(count))),
            BatchOp::Trim { lba, count } => {
                let nothing = (count * sector, false);
                let extent = self.members.device(member).extent(lba * sector, count * sector);
                (extent != Some(nothing)).then_some((Op::Trim, lba, count))
            }
        }
    }

    /// A member has answered.
    fn told(&mut self, tag: u64, result: Result<(), Failure>) {
        let Some(asked) = self.asked.get_mut(&tag) else { return };
        asked.left -= 1;
        asked.error = asked.error.or(result.err().map(error));
        if asked.left == 0
            && let Some(Asked { buf, error, .. }) = self.asked.remove(&tag)
        {
            self.volume.finish(tag, error.map_or(Ok(Told::Done(buf)), Err));
        }
    }

    /// Goes on to the next moment at which something happens, at most to `limit`.
    fn step(&mut self, limit: Nanos) {
        self.now = self.members.advance_to_answer(limit.min(self.tick));
        if self.now >= self.tick {
            self.tick = Nanos::MAX;
            self.volume.tick();
        }
        self.pump();
    }
}

/// What a member's failure is to the volume.
fn error(failure: Failure) -> IoError {
    match failure {
        Failure::OutOfRange => IoError::OutOfRange,
        Failure::ReadOnly => IoError::ReadOnly,
        Failure::Full => IoError::NoSpace,
        Failure::Shutdown | Failure::Media => IoError::Media,
    }
}

/// And what the volume's is to the host.
fn failure(error: IoError) -> Failure {
    match error {
        IoError::OutOfRange => Failure::OutOfRange,
        IoError::ReadOnly => Failure::ReadOnly,
        IoError::NoSpace | IoError::Full => Failure::Full,
        _ => Failure::Media,
    }
}

impl VirtualDevice for Cached {
    fn sector_bytes(&self) -> u32 {
        self.sector
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        self.advance(now);
        let parent = self.parents.begin(tag);
        let result = request.check(self.bytes, self.sector);
        if result.is_ok() {
            match request.op {
                Op::Read => self.host_read += u64::from(request.bytes),
                Op::Write => self.host_written += u64::from(request.bytes),
                Op::Trim | Op::Flush => {}
            }
            self.cut(parent, request);
        }
        if let Some((tag, result)) = self.parents.done(parent, result) {
            self.answers.push_back(Answer { tag, at: self.now, result });
        }
        self.pump();
    }

    fn next_event(&mut self) -> Option<Nanos> {
        if !self.answers.is_empty() {
            return Some(self.now);
        }
        let next = self.members.next_event().min(self.tick);
        (next < Nanos::MAX).then_some(next)
    }

    fn advance(&mut self, now: Nanos) {
        while self.now < now {
            self.step(now);
        }
        self.members.advance(now);
        self.pump();
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        while self.answers.is_empty() && self.now < limit {
            self.step(limit);
        }
        self.now
    }

    fn answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    fn report(&self) -> Report {
        let (module, behind) = (self.members.device(CACHE).report(), self.members.device(BEHIND).report());
        let status = self.volume.status();
        let bytes = |sectors: u64| sectors * u64::from(self.sector);
        Report {
            host_read_bytes: self.host_read,
            host_written_bytes: self.host_written,
            joules: behind.joules + module.joules,
            cache: Some(CacheReport {
                room_bytes: self.room_bytes,
                hit_bytes: bytes(status.hit_sectors),
                missed_bytes: bytes(status.missed_sectors),
                filled_bytes: bytes(status.filled_sectors),
                written_back_bytes: bytes(status.written_back_sectors),
                dirty_bytes: bytes(status.dirty_sectors),
                dirty_peak_bytes: bytes(self.dirty_peak),
                dirty_limit_bytes: bytes(status.dirty_limit),
                module: Box::new(module),
            }),
            ..behind
        }
    }
}
