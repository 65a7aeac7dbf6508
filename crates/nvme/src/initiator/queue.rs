//! One queue pair over one connection: bytes in, bytes out, and commands between.

use std::collections::VecDeque;

use super::unit::{Cutter, Step};
use super::{Broken, Command, Payload};
use crate::pdu::{self, Common, Digests, Fatal, INIT_BYTES, Init, Kind, Transfer, flag};
use crate::{Cqe, Data, Fuse, Status};

/// Commands outstanding at most: an identifier has 12 bits for the slot, and 4 that change when the slot is used again.
pub const MAX_DEPTH: u16 = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;
/// What a controller must take in one H2CData, bytes (3.6.2.3, MAXH2CDATA).
const MIN_DATA_LIMIT: u32 = 4096;
/// Where R2Ts of one command are answered: as they come, so one at a time.
const MAX_R2T: u32 = 1;

/// What a connection is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Commands outstanding at most, from 1 to [`MAX_DEPTH`].
    pub depth: u16,
    /// The digests to ask for; the controller may leave some out.
    pub digests: Digests,
    /// Data that a command's own capsule takes, bytes: see [`Queue::set_in_capsule`].
    pub in_capsule: u32,
}

impl QueueOptions {
    /// An admin queue, or one to connect with.
    pub fn new(depth: u16) -> QueueOptions {
        QueueOptions { depth, digests: Digests::default(), in_capsule: pdu::ADMIN_IN_CAPSULE_BYTES }
    }
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command, as [`Queue::submit`] named it.
    pub cid: u16,
    /// What the controller says of it.
    pub status: Status,
    /// What it gives back beside data: dwords 0 and 1.
    pub result: u64,
    /// The command's buffer: filled by what read, unchanged from what wrote.
    pub data: Vec<u8>,
}

/// The queue's commands are all outstanding: take a completion first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all commands of the queue are outstanding")]
pub struct Full;

struct Outstanding {
    payload: Payload,
    /// Bytes of the payload that have come, or were asked for.
    moved: u32,
    /// Data came with a wrong digest.
    spoiled: bool,
}

#[derive(Default)]
struct Slot {
    cid: u16,
    outstanding: Option<Outstanding>,
}

/// The host's end of a queue pair.
///
/// [`Queue::output`] has what is to be sent, [`Queue::receive`] takes what came, [`Queue::completion`] gives what ended.
/// Memory is bounded by the commands that are outstanding, whatever the controller sends.
pub struct Queue {
    wanted: Digests,
    agreed: Option<Init>,
    in_capsule: u32,
    slots: Vec<Slot>,
    free: Vec<u16>,
    cutter: Cutter,
    /// Slot, and offset, of the data that are coming in.
    filling: Option<(usize, usize)>,
    output: Vec<u8>,
    sent: usize,
    done: VecDeque<Completion>,
    broken: Option<Broken>,
}

impl Queue {
    /// A queue that wants to be connected: its output begins with ICReq.
    pub fn new(options: &QueueOptions) -> Queue {
        let depth = options.depth.clamp(1, MAX_DEPTH);
        let request = Init { align: 4, digests: options.digests, limit: MAX_R2T }.request();
        Queue {
            wanted: options.digests,
            agreed: None,
            in_capsule: options.in_capsule,
            slots: (0..depth).map(|slot| Slot { cid: slot, outstanding: None }).collect(),
            free: (0..depth).rev().collect(),
            cutter: Cutter::new(),
            filling: None,
            output: request.as_bytes().to_vec(),
            sent: 0,
            done: VecDeque::new(),
            broken: None,
        }
    }

    /// What the controller agreed to; nothing before its answer, ICResp, has come. Commands may be submitted then.
    pub fn agreed(&self) -> Option<Init> {
        self.agreed
    }

    /// Tells how much data a command's own capsule takes, bytes: larger writes wait until the controller is ready for them. On I/O
    /// queues IOCCSZ of Identify says it.
    pub fn set_in_capsule(&mut self, bytes: u32) {
        self.in_capsule = bytes;
    }

    /// Commands that were submitted, and whose completion was not taken yet.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len() + self.done.len()
    }

    /// Whether so many more commands may be submitted.
    #[inline]
    pub fn has_room(&self, commands: usize) -> bool {
        self.outstanding() + commands <= self.slots.len()
    }

    /// Commands that may be outstanding.
    pub fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Bytes to send, in this order.
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Tells that so many bytes of the output were sent.
    pub fn sent(&mut self, count: usize) {
        self.sent = self.output.len().min(self.sent + count);
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        } else if self.sent > self.output.len() / 2 {
            // Moves fewer bytes than were sent since it last did.
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// The next command that ended.
    #[inline]
    pub fn completion(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    /// Puts a command into the output, and gives it an identifier.
    ///
    /// # Errors
    /// All commands of the queue are outstanding.
    ///
    /// # Panics
    /// The connection is not agreed upon yet.
    #[inline]
    pub fn submit(&mut self, command: Command) -> Result<u16, Full> {
        if !self.has_room(1) {
            return Err(Full);
        }
        Ok(self.put(command))
    }

    /// Puts two commands into the output that the controller carries out as one, or not at all: Compare and Write, for example.
    ///
    /// # Errors
    /// The queue has no room for both.
    ///
    /// # Panics
    /// The connection is not agreed upon yet.
    pub fn submit_fused(&mut self, first: Command, second: Command) -> Result<(u16, u16), Full> {
        if !self.has_room(2) {
            return Err(Full);
        }
        let fused = |command: Command, fuse| Command { entry: command.entry.with_fuse(fuse), ..command };
        Ok((self.put(fused(first, Fuse::First)), self.put(fused(second, Fuse::Second))))
    }

    fn put(&mut self, command: Command) -> u16 {
        let agreed = self.agreed.expect("a connection that is agreed upon");
        let number = self.free.pop().expect("the caller looked");
        let slot = &mut self.slots[usize::from(number)];
        slot.cid = slot.cid.wrapping_add(1 << SLOT_BITS);
        let Command { entry, payload } = command;
        let len = payload.bytes();
        let is_in_capsule = matches!(payload, Payload::Out(_)) && len <= self.in_capsule;
        let data = if is_in_capsule && len > 0 { Data::InCapsule(len) } else { Data::Transport(len) };
        let entry = entry.with_cid(slot.cid).with_data(data);
        let mut moved = 0;
        match &payload {
            Payload::Out(bytes) if is_in_capsule => {
                let head = pdu::command(&entry, bytes.len(), agreed.digests, agreed.align);
                append(&mut self.output, head.as_bytes(), bytes, agreed.digests);
                moved = len;
            }
            _ => self.output.extend(pdu::command(&entry, 0, agreed.digests, agreed.align).as_bytes()),
        }
        slot.outstanding = Some(Outstanding { payload, moved, spoiled: false });
        slot.cid
    }

    /// Takes bytes that came from the controller.
    ///
    /// # Errors
    /// The connection is at an end: the controller ended it, or does not keep to the protocol. Then the output ends with the unit that
    /// tells it so. The error comes again with each further call.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        self.take(&mut bytes).map_err(|broken| {
            if let Broken::Protocol(why, field) = broken {
                let (len, unit) = self
                    .cutter
                    .unit()
                    .map_or((0, [0; INIT_BYTES]), |(common, unit)| (common.kind.header_bytes(), *unit));
                self.output.extend(pdu::terminate(Kind::H2CTermReq, why, field, &unit[..len]));
            }
            *self.broken.insert(broken)
        })
    }

    fn take(&mut self, bytes: &mut &[u8]) -> Result<(), Broken> {
        loop {
            let digests = self.agreed.map_or(Digests::default(), |agreed| agreed.digests);
            match self.cutter.next(bytes, digests)? {
                Step::Starved => return Ok(()),
                Step::Header => self.begin()?,
                Step::Data(piece) => self.fill(piece),
                Step::End { sound } => self.end(sound)?,
            }
        }
    }

    fn unit(&self) -> Result<(Common, &[u8; INIT_BYTES]), Broken> {
        self.cutter.unit().ok_or(Broken::Protocol(Fatal::Sequence, 0))
    }

    /// A unit's header has come: judges what it is about, before any of its data count.
    fn begin(&mut self) -> Result<(), Broken> {
        let (common, header) = self.unit()?;
        match (common.kind, self.agreed) {
            (Kind::C2HTermReq, _) => {
                let why = u16::from_le_bytes([header[8], header[9]]);
                let field = u32::from_le_bytes([header[10], header[11], header[12], header[13]]);
                Err(Broken::Terminated { why, field })
            }
            (Kind::IcResp, None) | (Kind::CapsuleResp | Kind::R2T, Some(_)) => Ok(()),
            (Kind::C2HData, Some(_)) => {
                let transfer = Transfer::decode(header);
                let (slot, outstanding) = self.find(transfer.cid)?;
                let moved = outstanding.moved;
                let room = outstanding.payload.room().ok_or(Broken::Protocol(Fatal::InvalidHeader, 8))? - moved;
                if transfer.offset != moved {
                    return Err(Broken::Protocol(Fatal::DataOutOfRange, 12));
                }
                if transfer.len > room || usize::try_from(transfer.len) != Ok(common.data_len) {
                    return Err(Broken::Protocol(Fatal::DataOutOfRange, 16));
                }
                outstanding.moved += transfer.len;
                self.filling = Some((slot, moved as usize));
                Ok(())
            }
            _ => Err(Broken::Protocol(Fatal::Sequence, 0)),
        }
    }

    fn fill(&mut self, piece: &[u8]) {
        let Some((slot, at)) = &mut self.filling else { return };
        if let Some(outstanding) = &mut self.slots[*slot].outstanding
            && let Some(space) = outstanding.payload.space(*at, piece.len())
        {
            space.copy_from_slice(piece);
            *at += piece.len();
        }
    }

    /// A unit is complete.
    fn end(&mut self, sound: bool) -> Result<(), Broken> {
        let (common, header) = self.unit()?;
        match common.kind {
            Kind::IcResp => {
                let header = *header;
                self.agree(&header)
            }
            Kind::CapsuleResp => self.complete(pdu::completion(header)),
            Kind::R2T => self.answer(Transfer::decode(header)),
            Kind::C2HData => {
                let cid = Transfer::decode(header).cid;
                self.filling = None;
                let (_, outstanding) = self.find(cid)?;
                outstanding.spoiled |= !sound;
                if common.flags & flag::SUCCESS == 0 {
                    return Ok(());
                }
                if common.flags & flag::LAST == 0 {
                    return Err(Broken::Protocol(Fatal::InvalidHeader, 1));
                }
                self.complete(Cqe::new(cid, Status::SUCCESS))
            }
            _ => Ok(()),
        }
    }

    fn agree(&mut self, unit: &[u8; INIT_BYTES]) -> Result<(), Broken> {
        let agreed = Init::decode(Kind::IcResp, unit)?;
        let forced = (agreed.digests.header && !self.wanted.header) || (agreed.digests.data && !self.wanted.data);
        if forced {
            return Err(Broken::Protocol(Fatal::InvalidHeader, 11));
        }
        if agreed.limit < MIN_DATA_LIMIT {
            return Err(Broken::Protocol(Fatal::InvalidHeader, 12));
        }
        self.agreed = Some(agreed);
        Ok(())
    }

    /// The slot of a command that is outstanding, by the identifier that the controller says.
    fn find(&mut self, cid: u16) -> Result<(usize, &mut Outstanding), Broken> {
        let number = usize::from(cid & (MAX_DEPTH - 1));
        match self.slots.get_mut(number) {
            Some(Slot { cid: own, outstanding: Some(outstanding) }) if *own == cid => Ok((number, outstanding)),
            _ => Err(Broken::Protocol(Fatal::InvalidHeader, 8)),
        }
    }

    /// The controller is ready for data: sends what it asks for.
    fn answer(&mut self, ready: Transfer) -> Result<(), Broken> {
        let agreed = self.agreed.ok_or(Broken::Protocol(Fatal::Sequence, 0))?;
        let (slot, outstanding) = self.find(ready.cid)?;
        if !matches!(outstanding.payload, Payload::Out(_)) {
            return Err(Broken::Protocol(Fatal::InvalidHeader, 8));
        }
        if ready.offset != outstanding.moved {
            return Err(Broken::Protocol(Fatal::DataOutOfRange, 12));
        }
        let left = outstanding.payload.bytes() - outstanding.moved;
        if ready.len == 0 || ready.len > left {
            return Err(Broken::Protocol(Fatal::DataOutOfRange, 16));
        }
        outstanding.moved += ready.len;
        let Some(Outstanding { payload: Payload::Out(bytes), .. }) = &self.slots[slot].outstanding else {
            return Ok(());
        };
        let range = ready.offset as usize..(ready.offset + ready.len) as usize;
        let limit = (agreed.limit & !3) as usize;
        let mut offset = ready.offset;
        let mut pieces = bytes[range].chunks(limit).peekable();
        while let Some(piece) = pieces.next() {
            let part = Transfer { offset, len: piece.len() as u32, ..ready };
            let head = part.from_host(pieces.peek().is_none(), agreed.digests, agreed.align);
            append(&mut self.output, head.as_bytes(), piece, agreed.digests);
            offset += part.len;
        }
        Ok(())
    }

    fn complete(&mut self, entry: Cqe) -> Result<(), Broken> {
        let (slot, outstanding) = self.find(entry.cid).map_err(|_| Broken::Protocol(Fatal::InvalidHeader, 20))?;
        let is_short =
            matches!(&outstanding.payload, Payload::In(buffer) if outstanding.moved as usize != buffer.len());
        if is_short && entry.status.is_success() {
            return Err(Broken::Short);
        }
        let status =
            if outstanding.spoiled && entry.status.is_success() { Status::TRANSPORT_ERROR } else { entry.status };
        let data = match self.slots[slot].outstanding.take() {
            Some(Outstanding { payload: Payload::UpTo(mut buffer), moved, .. }) => {
                buffer.truncate(moved as usize);
                buffer
            }
            Some(Outstanding { payload: Payload::In(buffer) | Payload::Out(buffer), .. }) => buffer,
            _ => Vec::new(),
        };
        self.free.push(slot as u16);
        self.done.push_back(Completion { cid: entry.cid, status, result: entry.result, data });
        Ok(())
    }
}

/// Data with their header and digest.
fn append(output: &mut Vec<u8>, head: &[u8], data: &[u8], digests: Digests) {
    output.reserve(head.len() + data.len() + pdu::DIGEST_BYTES);
    output.extend(head);
    output.extend(data);
    if digests.data && !data.is_empty() {
        output.extend(pdu::digest(data));
    }
}
