//! Append points: where the next bytes of each stream go, and the page buffers that they fill.

use crate::layer::{Ftl, id};
use crate::leb::{LebState, Stream, Times};
use crate::trims;
use crate::types::{BufId, Command, Error, Header, Kind, LebId, PageAddr, Slot, Source};

/// Buffers that only the groomer and checkpoints may take, so that host writes cannot starve them.
const HOST_KEEPS_FREE: usize = 3;

/// On whose behalf something is appended: what may be taken for it when space is short.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Host,
    Groom,
    Checkpoint,
}

#[derive(Default)]
pub(crate) struct Append {
    leb: Option<LebId>,
    /// Data page of the LEB that is being filled.
    page: u32,
    /// Its buffer, once something was put there.
    buf: Option<BufId>,
    /// Slots used in the page.
    filled: u32,
    /// Slots used when the page was last sealed.
    sealed: u32,
}

/// A run of slots in one page, reserved by [`Ftl::reserve`].
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub buf: BufId,
    /// Slot in the page.
    pub at: u32,
    pub slot: Slot,
    pub count: u32,
}

/// What a page buffer holds.
#[derive(Clone, Copy)]
struct Buffer {
    leb: LebId,
    at: PageAddr,
    programmed: u32,
    in_flight: u32,
    closed: bool,
}

/// A program under way, kept until it succeeds.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    page: PageAddr,
    start: u32,
    end: u32,
    pub buf: BufId,
    /// It failed before and is tried again.
    pub failed: bool,
}

impl Program {
    pub fn command(&self, number: u64) -> Command {
        Command::Program { id: id::PROGRAM | number, page: self.page, start: self.start, end: self.end, buf: self.buf }
    }
}

/// The pool of page buffers.
pub(crate) struct Buffers {
    buffers: Vec<Option<Buffer>>,
    /// Number of the data page in each buffer over the whole module, for the look-up of reads.
    pages: Vec<u32>,
    free: Vec<BufId>,
}

const NO_PAGE: u32 = u32::MAX;

impl Buffers {
    pub fn new(count: u32) -> Buffers {
        Buffers {
            buffers: vec![None; count as usize],
            pages: vec![NO_PAGE; count as usize],
            free: (0..count).rev().collect(),
        }
    }

    /// The buffer that holds a data page, by its number over the whole module.
    pub fn find(&self, page: u32) -> Option<BufId> {
        self.pages.iter().position(|p| *p == page).map(|buf| buf as BufId)
    }
}

impl Ftl {
    /// How far durability lags behind an append.
    pub(crate) fn lag_of(&self, seq: u64) -> u32 {
        u32::try_from(seq.saturating_sub(self.durable())).unwrap_or(u32::MAX)
    }

    /// Whether `count` slots can be appended to a stream now. Where no further LEB is to be had, `spare` slots
    /// of the open one are left alone.
    pub(crate) fn room(&self, stream: Stream, writer: Writer, count: u32, spare: u32) -> bool {
        self.has_buffers(stream, writer, count) && self.has_slots(stream, writer, count, spare)
    }

    /// Whether there are buffers for `count` slots more.
    fn has_buffers(&self, stream: Stream, writer: Writer, count: u32) -> bool {
        let geometry = &self.config.geometry;
        let append = &self.appends[stream.code() as usize];
        let in_page = if append.buf.is_some() { geometry.slots_per_page - append.filled } else { 0 };
        if count > in_page {
            // One more for the header of a LEB that may have to be opened.
            let pages = (count - in_page + 1).div_ceil(geometry.slots_per_page) as usize;
            let kept = match writer {
                Writer::Host => HOST_KEEPS_FREE,
                Writer::Groom => 1,
                Writer::Checkpoint => 0,
            };
            return self.buffers.free.len() >= pages + kept;
        }
        true
    }

    /// Whether there are, or can be, slots for `count` more.
    fn has_slots(&self, stream: Stream, writer: Writer, count: u32, spare: u32) -> bool {
        if self.has_stake() && writer != Writer::Groom {
            return false;
        }
        self.can_open(writer) || self.left_in_open(stream) >= count + spare
    }

    /// The stream for a host write of `count` sectors: the one that the policy wants, or where that has no space left, another one.
    pub(crate) fn host_stream(&self, wanted: u8, count: u32) -> Option<Stream> {
        let (wanted, spare) = (Stream::Data(wanted), self.host_spare());
        if self.has_slots(wanted, Writer::Host, count, spare) {
            return self.has_buffers(wanted, Writer::Host, count).then_some(wanted);
        }
        if self.waits_for_leb() {
            return None;
        }
        self.host_stream_with_room(count, spare)
    }

    /// The first stream of the host with room for `count` slots, besides `spare` that are left alone.
    pub(crate) fn host_stream_with_room(&self, count: u32, spare: u32) -> Option<Stream> {
        let mut streams = (0..self.groomer.host_streams).map(Stream::Data);
        streams.find(|stream| self.room(*stream, Writer::Host, count, spare))
    }

    /// Whether any stream has room for a host write.
    pub(crate) fn host_room(&self, count: u32) -> bool {
        self.host_stream_with_room(count, self.host_spare()).is_some()
    }

    /// Slots of an open LEB that host writes leave alone when no further LEB is to be had: a page for trims, and where the groomer writes
    /// to the same LEBs what it needs to finish the one at hand.
    fn host_spare(&self) -> u32 {
        self.config.geometry.slots_per_page + if self.groomer.shares_streams() { self.groomer.to_move() } else { 0 }
    }

    /// The stream for a sector that the groomer moves: the one that the policy wants. When LEBs are scarce, another one that the groomer
    /// writes and that is open goes before opening a LEB: with several streams the last LEBs would otherwise end up nearly empty. Where none
    /// can be opened, any stream of [`Ftl::groom_streams`] that has room.
    pub(crate) fn groom_stream(&self, wanted: u8) -> Option<Stream> {
        let wanted = Stream::Data(wanted);
        if self.open_leb_of(wanted).is_none() && self.free_lebs() as usize <= self.host_reserve() {
            let open = (1..self.groomer.streams).map(Stream::Data).find(|stream| self.left_in_open(*stream) > 0);
            if let Some(open) = open {
                return self.room(open, Writer::Groom, 1, 0).then_some(open);
            }
        }
        if self.has_slots(wanted, Writer::Groom, 1, 0) {
            return self.has_buffers(wanted, Writer::Groom, 1).then_some(wanted);
        }
        self.groom_streams().find(|stream| self.room(*stream, Writer::Groom, 1, 0))
    }

    /// Streams whose open LEBs the groomer may fill. The host's own is among them only where the policy has both write to it, or where the
    /// host writes nothing more.
    pub(crate) fn groom_streams(&self) -> impl Iterator<Item = Stream> {
        let all = self.groomer.shares_streams() || self.checkpointer.is_closing();
        (u8::from(!all)..self.groomer.streams).map(Stream::Data)
    }

    /// Slots left in a stream's open LEB.
    pub(crate) fn left_in_open(&self, stream: Stream) -> u32 {
        let geometry = &self.config.geometry;
        let append = &self.appends[stream.code() as usize];
        match append.leb {
            Some(_) => self.narrow.leb_slots - self.narrow.slots_before(geometry, append.page) - append.filled,
            None => 0,
        }
    }

    /// The LEB that a stream appends to.
    pub(crate) fn open_leb_of(&self, stream: Stream) -> Option<LebId> {
        self.appends[stream.code() as usize].leb
    }

    /// Takes up to `max` consecutive slots of one page. [`Ftl::room`] must have said yes. The caller pushes the
    /// `Stage` for them, then calls [`Ftl::commit`].
    #[inline(always)]
    pub(crate) fn reserve(&mut self, stream: Stream, max: u32) -> Run {
        let append = &self.appends[stream.code() as usize];
        if append.leb.is_none() || append.buf.is_none() {
            self.begin_page(stream);
        }
        let geometry = &self.config.geometry;
        let append = &self.appends[stream.code() as usize];
        let (leb, buf) = (append.leb.expect("opened"), append.buf.expect("begun"));
        let count = max.min(geometry.slots_per_page - append.filled);
        let slot = geometry.first_slot(leb, append.page) + append.filled;
        Run { buf, at: append.filled, slot, count }
    }

    /// Gives a stream a page to fill, in a new LEB where it has none.
    fn begin_page(&mut self, stream: Stream) {
        if self.appends[stream.code() as usize].leb.is_none() {
            self.open_leb(stream);
        }
        let geometry = self.config.geometry;
        let append = &mut self.appends[stream.code() as usize];
        if append.buf.is_some() {
            return;
        }
        let leb = append.leb.expect("just opened");
        let buf = self.buffers.free.pop().expect("room was asked for first");
        append.buf = Some(buf);
        let at = geometry.page_at(leb, append.page);
        self.buffers.buffers[buf as usize] = Some(Buffer { leb, at, programmed: 0, in_flight: 0, closed: false });
        self.buffers.pages[buf as usize] = leb * geometry.pages_per_leb() + append.page;
        let entry = &mut self.lebs[leb];
        entry.buffered += 1;
        self.commands.push(Command::Take { buf, page: at, opened: entry.opened });
    }

    /// The run is staged: closes the page when it is full.
    pub(crate) fn commit(&mut self, stream: Stream, run: Run) {
        let append = &mut self.appends[stream.code() as usize];
        append.filled += run.count;
        let full = append.filled == self.config.geometry.slots_per_page;
        self.use_up(stream, run.count);
        if full {
            self.close_page(stream);
        }
    }

    fn open_leb(&mut self, stream: Stream) {
        let leb = self.take_ready(stream).expect("room was asked for first");
        let opened = self.batch.unwrap_or(self.seq);
        let entry = &mut self.lebs[leb];
        entry.state = LebState::Open;
        entry.stream = stream;
        entry.opened = opened;
        entry.times = Times::opened(self.stats.host_written_sectors);
        entry.host_only = true;
        entry.damaged = false;
        entry.unsound = false;
        entry.dirty = true;
        let bytes = LebHeader { leb, stream, erases: entry.erases, opened }.encode();
        self.appends[stream.code() as usize] = Append { leb: Some(leb), ..Append::default() };
        if self.is_of_host(stream) {
            self.host_left += u64::from(self.narrow.leb_slots);
        }
        match stream {
            Stream::Checkpoint => self.checkpointer.opened(leb),
            Stream::Data(stream) => {
                self.groomer.opened(leb, stream);
                self.note_stake(leb);
            }
        }
        self.append_meta(stream, Kind::LebHeader, bytes);
        self.prepare_lebs();
    }

    /// Appends one slot of the layer's own data.
    pub(crate) fn append_meta(&mut self, stream: Stream, kind: Kind, bytes: Vec<u8>) {
        let run = self.reserve(stream, 1);
        let header = self.meta_header(kind, run.slot);
        let source = Source::Meta(bytes);
        self.commands.push(Command::Stage { buf: run.buf, at: run.at, count: 1, header, source });
        self.commit(stream, run);
    }

    /// The header of a slot of the layer's own, with the next sequence number.
    pub(crate) fn meta_header(&mut self, kind: Kind, slot: Slot) -> Header {
        self.stats.metadata_slots += 1;
        let header = Header { slot, seq: self.seq, kind, lba: 0, index: 0, remaining: 0, lag: self.lag_of(self.seq) };
        self.seq += 1;
        header
    }

    /// Programs the rest of the current page and moves on.
    fn close_page(&mut self, stream: Stream) {
        let geometry = self.config.geometry;
        let append = &mut self.appends[stream.code() as usize];
        let (leb, buf) = (append.leb.expect("open"), append.buf.take().expect("a page with slots has a buffer"));
        append.page = self.narrow.page_after(&geometry, append.page);
        append.filled = 0;
        append.sealed = 0;
        let full = append.page == geometry.pages_per_leb();
        self.stage_trims(buf);
        self.program(buf, geometry.page_bytes(), true);
        if full {
            self.close_leb(stream, leb);
        }
    }

    /// So many slots of the LEB that a stream has open can be used no more.
    #[inline]
    fn use_up(&mut self, stream: Stream, slots: u32) {
        if self.is_of_host(stream) {
            self.host_left -= u64::from(slots);
        }
    }

    #[inline]
    fn is_of_host(&self, stream: Stream) -> bool {
        matches!(stream, Stream::Data(n) if n < self.groomer.host_streams)
    }

    fn close_leb(&mut self, stream: Stream, leb: LebId) {
        self.use_up(stream, self.left_in_open(stream));
        self.appends[stream.code() as usize] = Append::default();
        if let Stream::Data(stream) = stream {
            self.groomer.evict.found_more();
            self.groomer.closed(leb, stream);
        }
        let entry = &mut self.lebs[leb];
        entry.state = LebState::Closed;
        entry.times.close(self.stats.host_written_sectors, self.config.geometry.slots_per_leb());
        entry.closed = self.seq;
    }

    /// Programs what stands in a stream's page and was not programmed yet, up to a whole program unit; the slots
    /// that the unit cuts stay empty.
    pub(crate) fn seal(&mut self, stream: Stream) {
        let geometry = self.config.geometry;
        let append = &self.appends[stream.code() as usize];
        let Some(buf) = append.buf else { return };
        if append.filled == append.sealed {
            return;
        }
        let end = (append.filled * geometry.slot_bytes()).next_multiple_of(geometry.unit_bytes);
        let filled = end.div_ceil(geometry.slot_bytes()).min(geometry.slots_per_page);
        let padding = filled - append.filled;
        self.stats.padding_slots += u64::from(padding);
        if padding > 0 {
            self.commands.push(Command::Blank { buf, at: append.filled, count: padding });
        }
        let append = &mut self.appends[stream.code() as usize];
        (append.filled, append.sealed) = (filled, filled);
        self.use_up(stream, padding);
        if filled == geometry.slots_per_page {
            self.close_page(stream);
        } else {
            self.filling.cut_short();
            self.stage_trims(buf);
            self.program(buf, end, false);
        }
    }

    /// Seals every stream.
    pub(crate) fn seal_all(&mut self) {
        for stream in Stream::all() {
            self.seal(stream);
        }
    }

    /// Closes a stream's LEB where it stands.
    pub(crate) fn give_up(&mut self, stream: Stream) {
        self.seal(stream);
        let append = &mut self.appends[stream.code() as usize];
        let Some(leb) = append.leb else { return };
        if let Some(buf) = append.buf.take() {
            let buffer = self.buffers.buffers[buf as usize].as_mut().expect("in use");
            buffer.closed = true;
            self.release_if_done(buf);
        }
        self.commands.push(Command::Finish { leb });
        self.close_leb(stream, leb);
    }

    fn program(&mut self, buf: BufId, end: u32, close: bool) {
        let buffer = self.buffers.buffers[buf as usize].as_mut().expect("in use");
        buffer.closed |= close;
        let start = buffer.programmed;
        if start < end {
            buffer.programmed = end;
            buffer.in_flight += 1;
            let program = Program { page: buffer.at, start, end, buf, failed: false };
            self.stats.programmed_bytes += u64::from(end - start);
            let number = self.durability.begin_program(program);
            self.commands.push(program.command(number));
        } else {
            self.release_if_done(buf);
        }
    }

    pub(crate) fn program_done(&mut self, number: u64, result: Result<(), Error>) {
        if let Some(program) = self.durability.end_program(number, result) {
            self.buffers.buffers[program.buf as usize].as_mut().expect("in use").in_flight -= 1;
            self.release_if_done(program.buf);
        }
        if result.is_err() {
            self.fail_waiters();
        }
    }

    fn release_if_done(&mut self, buf: BufId) {
        let buffer = self.buffers.buffers[buf as usize].expect("in use");
        if buffer.closed && buffer.in_flight == 0 {
            self.buffers.buffers[buf as usize] = None;
            self.buffers.pages[buf as usize] = NO_PAGE;
            self.buffers.free.push(buf);
            self.commands.push(Command::Release { buf });
            self.lebs[buffer.leb].buffered -= 1;
        }
    }

    fn stage_trims(&mut self, buf: BufId) {
        if self.trims.as_ref().is_some_and(|trims| trims.buf == buf) {
            let open = self.trims.take().expect("just seen");
            let bytes = trims::encode(&open.records);
            let source = Source::Meta(bytes);
            self.commands.push(Command::Stage { buf, at: open.at, count: 1, header: open.header, source });
        }
    }
}

/// What the first slot of a LEB says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LebHeader {
    /// Its number.
    pub leb: LebId,
    /// Which stream wrote it.
    pub stream: Stream,
    /// Times it was erased before.
    pub erases: u32,
    /// Sequence number when it was opened.
    pub opened: u64,
}

impl LebHeader {
    /// Bytes on media: LEB u32, erases u32, opened u64, stream u8; little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(17);
        bytes.extend(self.leb.to_le_bytes());
        bytes.extend(self.erases.to_le_bytes());
        bytes.extend(self.opened.to_le_bytes());
        bytes.push(self.stream.code());
        bytes
    }

    /// The opposite of [`LebHeader::encode`]; `None` when the bytes make no sense.
    pub fn decode(bytes: &[u8]) -> Option<LebHeader> {
        Some(LebHeader {
            leb: u32::from_le_bytes(bytes.get(0..4)?.try_into().ok()?),
            erases: u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?),
            opened: u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?),
            stream: Stream::from_code(*bytes.get(16)?)?,
        })
    }
}
