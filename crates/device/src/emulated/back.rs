//! The layer with bytes, as it stands behind an emulated card's [`Controller`](card::Controller).

use card::{Back, Change, Ended, Fetched, Request};
use ftl::{Admission, BatchOp, Ftl, PageAddr};
use media::nand::{Nand, Nanos};
use slab::Slab;

use crate::core::{Core, To};
use crate::{Io, IoError, Submitted};

/// The tag of flushes that no client asked for.
const BACKGROUND: u64 = u64::MAX;

/// A request without what it borrows.
fn without_data(io: Io) -> Io<'static> {
    match io {
        Io::Read { lba, buf } => Io::Read { lba, buf },
        Io::ReadSnapshot { id, lba, buf } => Io::ReadSnapshot { id, lba, buf },
        Io::Write { lba, fua, .. } => Io::Write { lba, data: &[], fua },
        Io::Trim { lba, count, fua } => Io::Trim { lba, count, fua },
        Io::WriteZeroes { lba, count, fua, allocate } => Io::WriteZeroes { lba, count, fua, allocate },
        Io::Batch { fua, .. } => Io::Batch { ops: &[], data: &[], fua },
        Io::Flush => Io::Flush,
    }
}

/// A request that is not answered yet.
pub(crate) struct Held {
    /// The client's tag.
    pub tag: u64,
    /// When it came.
    pub arrived: Nanos,
    /// Bytes that go to the host, where it is a read.
    read: Option<u32>,
    /// It is a write that is answered when it is durable.
    durable: bool,
    /// What its host says that it belongs together with.
    placement: u8,
    /// What it asks for, while it waits for the layer; what it borrowed is beside it.
    ask: Option<Io<'static>>,
    data: Vec<u8>,
    ops: Vec<BatchOp>,
    /// What the layer said.
    pub result: Result<Option<Vec<u8>>, IoError>,
}

impl Held {
    fn fetched(&self) -> Option<Fetched> {
        self.read.map(|bytes| Fetched { bytes, begin: self.arrived })
    }
}

/// The requests that a card holds, by its tags; and what of them the disk has.
pub(crate) struct Requests {
    pub held: Slab<Held>,
    /// The model's time.
    pub now: Nanos,
    /// Something was trimmed since the last flush.
    trimmed: bool,
    /// A flush was answered of which the disk knows nothing yet.
    pub unsynced: bool,
    /// It is being told.
    pub syncing: bool,
}

impl Requests {
    /// None, at a moment of the model's time.
    pub fn new(now: Nanos) -> Requests {
        Requests { held: Slab::new(), now, trimmed: false, unsynced: false, syncing: false }
    }

    /// Holds a request that comes now; gives the card's tag for it. A write is durable when it is taken, behind capacitors, so that the
    /// layer need not hear of its FUA; trims are told to the media when somebody asks for it.
    pub fn hold(&mut self, placement: u8, tag: u64, io: &mut Io) -> u32 {
        let read = if let Io::Read { buf, .. } = io { Some(buf.len() as u32) } else { None };
        let durable = match io {
            Io::Write { fua, .. } | Io::WriteZeroes { fua, allocate: true, .. } | Io::Batch { fua, .. } => {
                std::mem::take(fua)
            }
            _ => false,
        };
        let (data, ops) = (Vec::new(), Vec::new());
        let held = Held { tag, arrived: self.now, read, durable, placement, ask: None, data, ops, result: Ok(None) };
        self.held.insert(held) as u32
    }

    fn get(&mut self, key: u32) -> &mut Held {
        &mut self.held[key as usize]
    }
}

/// The layer with bytes, for one call.
pub(crate) struct Bytes<'c, 'io> {
    core: &'c mut Core,
    requests: &'c mut Requests,
    /// The request that is being submitted, as long as nobody took it.
    current: Option<(u32, Io<'io>)>,
    /// The layer was told something that the controller does not know of.
    told: bool,
    passed: Option<u32>,
    map_page: Option<u32>,
    late: Nanos,
}

impl<'c, 'io> Bytes<'c, 'io> {
    pub fn new(core: &'c mut Core, requests: &'c mut Requests) -> Bytes<'c, 'io> {
        Bytes { core, requests, current: None, told: false, passed: None, map_page: None, late: 0 }
    }

    /// The same, with a request that is being submitted.
    pub fn with(core: &'c mut Core, requests: &'c mut Requests, key: u32, io: Io<'io>) -> Bytes<'c, 'io> {
        Bytes { current: Some((key, io)), ..Bytes::new(core, requests) }
    }

    /// Where the layer did not take what was submitted, its bytes are kept until it does.
    pub fn keep_current(&mut self) {
        if let Some((key, io)) = self.current.take() {
            let held = self.requests.get(key);
            if let Io::Write { data, .. } | Io::Batch { data, .. } = io {
                held.data = data.to_vec();
            }
            if let Io::Batch { ops, .. } = io {
                held.ops = ops.to_vec();
            }
            held.ask = Some(without_data(io));
        }
    }

    /// Has the layer make everything durable, with nobody waiting for it. False when it does already, or has no room for that now.
    pub fn sync(&mut self) -> bool {
        if self.requests.syncing {
            return false;
        }
        match self.core.submit(To::default(), BACKGROUND, Io::Flush) {
            Submitted::Busy(_) => return false,
            Submitted::Pending => self.requests.syncing = true,
            Submitted::Done(_) => {}
        }
        self.requests.unsynced = false;
        true
    }

    /// Tells the layer what the medium finished next.
    fn tell_next(&mut self) -> bool {
        self.core.share_sync();
        if let Some(done) = self.core.next_done() {
            self.late = self.core.media.paced().map_or(0, |paced| paced.lateness());
            self.core.finish_media(done);
            self.core.carry_out(&[]);
            return true;
        }
        let Some(paced) = self.core.media.paced() else { return false };
        self.passed = paced.passed();
        self.map_page = if self.passed.is_none() { paced.map_page() } else { None };
        self.passed.is_some() || self.map_page.is_some()
    }

    /// Hands a request to the layer. The one that has no room is given back.
    fn ask<'a>(&mut self, key: u32, io: Io<'a>) -> Result<Admission, Io<'a>> {
        let flush = matches!(io, Io::Flush);
        let trim = matches!(io, Io::Trim { fua: false, .. } | Io::WriteZeroes { fua: false, allocate: false, .. });
        // A trim is in no page yet; and where writes fail, the layer has to say so.
        if flush && !self.requests.trimmed && self.core.ftl.failure().is_none() {
            self.keep_open_pages();
            return Ok(Admission::Done);
        }
        let to = To { placement: self.requests.get(key).placement, ..To::default() };
        let admission = match self.core.submit(to, u64::from(key), io) {
            Submitted::Busy(io) => return Err(io),
            Submitted::Pending => Admission::Pending,
            Submitted::Done(result) => {
                let held = self.requests.get(key);
                held.result = result;
                if held.durable {
                    self.keep_open_pages();
                }
                Admission::Done
            }
        };
        self.requests.trimmed = (self.requests.trimmed && !flush) || trim;
        Ok(admission)
    }

    fn keep_open_pages(&mut self) {
        self.core.keep_open_pages();
        self.requests.unsynced = true;
    }

    /// Offers a request to the layer, wherever its bytes are.
    fn offer(&mut self, key: u32) -> Admission {
        if let Some((_, io)) = self.current.take_if(|(current, _)| *current == key) {
            return self.ask(key, io).unwrap_or_else(|io| {
                self.current = Some((key, io));
                Admission::Busy
            });
        }
        let held = self.requests.get(key);
        let Some(io) = held.ask.take() else { return Admission::Done };
        let (data, ops) = (std::mem::take(&mut held.data), std::mem::take(&mut held.ops));
        let io = match io {
            Io::Write { lba, fua, .. } => Io::Write { lba, data: &data, fua },
            Io::Batch { fua, .. } => Io::Batch { ops: &ops, data: &data, fua },
            io => io,
        };
        self.ask(key, io).map_err(without_data).unwrap_or_else(|ask| {
            let held = self.requests.get(key);
            (held.ask, held.data, held.ops) = (Some(ask), data, ops);
            Admission::Busy
        })
    }
}

impl Back for Bytes<'_, '_> {
    fn ftl(&self) -> &Ftl {
        &self.core.ftl
    }

    fn nand(&self) -> &Nand {
        self.core.media.nand().expect("an emulated device has chips")
    }

    fn now(&self) -> Nanos {
        self.requests.now
    }

    fn set_now(&mut self, now: Nanos) {
        self.requests.now = now;
        if let Some(paced) = self.core.media.paced() {
            paced.advance(now);
        }
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.core.media.paced()?.next_event()
    }

    fn run(&mut self, limit: Nanos) -> Option<Nanos> {
        while !self.tell_next() {
            let at = self.next_event().filter(|at| *at <= limit)?;
            self.set_now(at.max(self.requests.now));
        }
        self.told = true;
        Some(self.requests.now)
    }

    fn tell(&mut self) -> bool {
        std::mem::take(&mut self.told) || self.tell_next()
    }

    fn read(&mut self, tag: u32, request: &Request, passes: bool) -> Admission {
        let admission = self.offer(tag);
        if admission == Admission::Done
            && passes
            && let Some(paced) = self.core.media.paced()
        {
            paced.pass(tag, request.bytes);
            return Admission::Pending;
        }
        admission
    }

    fn read_map(&mut self, page: u32, at: PageAddr, bytes: u32) {
        if let Some(paced) = self.core.media.paced() {
            paced.read_map(page, at, bytes);
        }
    }

    fn map_page(&mut self) -> Option<u32> {
        self.map_page.take()
    }

    fn take(&mut self, change: &mut Change) -> Admission {
        self.offer(change.tag)
    }

    fn ended(&mut self) -> Option<Ended> {
        if let Some(tag) = self.passed.take() {
            return Some(Ended { tag, read: self.requests.get(tag).fetched(), result: Ok(()) });
        }
        loop {
            let Some(completion) = self.core.completion() else {
                self.late = 0;
                return None;
            };
            if completion.tag == BACKGROUND {
                self.requests.syncing = false;
                if let Err(error) = completion.result {
                    tracing::error!(%error, "what was flushed cannot be handed to the disk");
                }
                continue;
            }
            let tag = completion.tag as u32;
            let held = self.requests.get(tag);
            held.result = completion.result;
            return Some(Ended { tag, read: held.fetched(), result: Ok(()) });
        }
    }

    fn idle(&mut self) -> bool {
        let more = self.core.ftl.idle();
        self.core.carry_out(&[]);
        more
    }

    fn lateness(&self) -> Nanos {
        self.late
    }
}
