//! The transmission phase: a client's requests in the order in which they come, and their answers in the order in which they
//! are done.

use device::IoError;

use super::proto::{Errno, REQUEST_BYTES, command};
use super::reply::Form;
use super::request::{Asked, Header, Limits};
use super::status::{Context, describe};
use crate::jobs::{Core, Issued, Payload, Source, Transfer};
use crate::link::{Link, Step, cost};
use crate::request::{Command, Request};

/// Where in the stream of requests we are.
#[derive(Clone, Copy, Debug)]
enum Current {
    Header,
    /// A refused write: its payload goes by, then the error is answered.
    Refused {
        left: u32,
        cookie: u64,
        error: Errno,
    },
    /// Accepted and not yet wholly with the device.
    Request(Transfer),
}

/// A client in the transmission phase.
pub struct Session {
    limits: Limits,
    contexts: Vec<Context>,
    current: Current,
}

impl Session {
    /// Begins after the handshake, with what was agreed there.
    pub fn new(limits: Limits, contexts: Vec<Context>) -> Session {
        Session { limits, contexts, current: Current::Header }
    }

    /// The device has another host capacity: of a smaller one the rest is out of reach, of a larger one the client does not know.
    pub fn resized(&mut self, bytes: u64) {
        self.limits.bytes = self.limits.bytes.min(bytes);
    }

    /// Whether a request is read and not yet wholly with the device.
    #[inline]
    pub fn has_part(&self) -> bool {
        !matches!(self.current, Current::Header)
    }

    /// The request of which the device may have a part: it is not carried on with.
    pub fn give_up(&mut self) -> Option<Transfer> {
        match std::mem::replace(&mut self.current, Current::Header) {
            Current::Request(transfer) => Some(transfer),
            _ => None,
        }
    }

    fn form(&self, cookie: u64) -> Form {
        Form { structured: self.limits.structured, cookie }
    }

    /// Takes the next step with what was received.
    #[inline]
    pub fn step(&mut self, link: &mut Link, key: usize, core: &mut Core) -> Step {
        match self.current {
            Current::Header => self.header(link, core),
            Current::Refused { left, cookie, error } => {
                let count = link.input.bytes().len().min(left as usize);
                link.input.consume(count);
                let left = left - count as u32;
                self.current = Current::Refused { left, cookie, error };
                if left > 0 {
                    return Step::Need(1);
                }
                self.current = Current::Header;
                self.form(cookie).error(&mut link.output, error);
                Step::Done(1)
            }
            Current::Request(transfer) => self.transfer(link, key, core, transfer),
        }
    }

    #[inline]
    fn header(&mut self, link: &mut Link, core: &Core) -> Step {
        let Some(bytes) = link.input.bytes().first_chunk::<REQUEST_BYTES>() else {
            return Step::Need(REQUEST_BYTES);
        };
        let header = match Header::decode(bytes) {
            Ok(header) => header,
            Err(error) => {
                link.break_off(&error.to_string());
                return Step::Done(1);
            }
        };
        link.input.consume(REQUEST_BYTES);
        if header.kind == command::DISC {
            link.drain();
            return Step::Done(1);
        }
        link.request_came(core);
        let (offset, len) = (header.offset, header.len);
        match header.check(&self.limits) {
            Err(error) => {
                self.current = Current::Refused { left: header.payload(), cookie: header.cookie, error };
                Step::Done(0)
            }
            Ok(Asked::BlockStatus { one }) => {
                let shift = self.limits.sector_bytes.trailing_zeros();
                let (lba, count) = (offset >> shift, u64::from(len) >> shift);
                let share = self.contexts.len();
                let tell =
                    |context: &Context| describe(&core.device, (*context, share), (lba, count), &self.limits, one);
                let form = self.form(header.cookie);
                match self.contexts.iter().map(tell).collect::<Result<Vec<_>, _>>() {
                    Ok(told) => {
                        let looked: u32 = told.iter().map(|(_, runs)| runs).sum();
                        let contexts: Vec<_> = told.into_iter().map(|(extents, _)| extents).collect();
                        form.block_status(&mut link.output, &contexts);
                        Step::Done(1 + looked)
                    }
                    // A snapshot was deleted.
                    Err(_) => {
                        form.error(&mut link.output, Errno::Io);
                        Step::Done(1)
                    }
                }
            }
            Ok(Asked::Command(Command::Read)) if len == 0 => {
                self.form(header.cookie).read_header(&mut link.output, offset, 0);
                Step::Done(1)
            }
            Ok(Asked::Command(command)) if len > 0 || command == Command::Flush => {
                let view = self.limits.view;
                let request = Request { command, offset, len: u64::from(len), cookie: header.cookie, view };
                self.current = Current::Request(Transfer::new(request));
                Step::Done(0)
            }
            Ok(_) => {
                self.form(header.cookie).success(&mut link.output);
                Step::Done(1)
            }
        }
    }

    /// Hands the next piece of the present request to the device.
    #[inline]
    fn transfer(&mut self, link: &mut Link, key: usize, core: &mut Core, mut transfer: Transfer) -> Step {
        let request = transfer.request;
        let piece = transfer.piece(self.limits.max_request_bytes);
        let mut data = 0;
        if let Command::Write { .. } = request.command {
            data = piece as usize;
            if link.input.bytes().len() < data {
                return link.wait_for_data(core, data);
            }
            link.data_are_there(core);
        }
        let issued = link.issue(key, core, &mut transfer, if data > 0 { Source::Input(0) } else { Source::Nothing });
        self.current = match issued {
            Issued::Held(_) | Issued::More => Current::Request(transfer),
            _ => Current::Header,
        };
        if let Issued::Held(_) = issued {
            return Step::Busy;
        }
        if let Issued::Answered(result) = issued {
            self.answer(link, core, &request, result);
        }
        link.input.consume(data);
        Step::Done(if data > 0 || request.command.is_sized() { cost(piece) } else { 1 })
    }

    /// A request is done.
    #[inline]
    pub fn answer(&mut self, link: &mut Link, core: &mut Core, request: &Request, result: Result<Payload, IoError>) {
        let form = self.form(request.cookie);
        match result {
            Err(error) => form.error(&mut link.output, errno(error, request.command)),
            Ok(read) => {
                link.count(request);
                if request.command == Command::Read {
                    form.read_header(&mut link.output, request.offset, request.len as u32);
                    read.into_pieces().for_each(|piece| link.output.payload(piece, &mut core.pool));
                } else {
                    form.success(&mut link.output);
                }
            }
        }
    }
}

/// A device's error in the words of the specification.
fn errno(error: IoError, command: Command) -> Errno {
    match (error, command) {
        (IoError::OutOfRange, Command::Write { .. } | Command::WriteZeroes { .. }) => Errno::NoSpc,
        // There is no memory for it: none is above what a client may ask for.
        (IoError::TooLarge, Command::Read) => Errno::NoMem,
        (IoError::OutOfRange | IoError::TooLarge | IoError::Batch(_) | IoError::Scattered | IoError::Zone(_), _) => {
            Errno::Inval
        }
        (IoError::ReadOnly, _) => Errno::Perm,
        (IoError::NoSpace | IoError::Full, _) => Errno::NoSpc,
        (IoError::Media | IoError::NoSnapshot, _) => Errno::Io,
    }
}
