//! An export of an NBD server behind a cached volume.

use std::io;

use super::store::{Store, witness_of, write_zeros};
use crate::nbd::client::{Address, Ask, Client};
use crate::nbd::proto::{command_flag, export_flag};

/// The most that one request makes zeros, bytes: servers may write them.
const ZEROS: u64 = 128 << 20;

/// An export that is connected to.
pub struct NbdStore {
    client: Client,
    name: String,
}

impl NbdStore {
    /// Connects to it.
    ///
    /// # Errors
    /// It cannot be reached, or takes no writes.
    pub fn connect(address: &Address) -> io::Result<NbdStore> {
        let client = Client::connect(address)?;
        if client.export().flags & export_flag::READ_ONLY != 0 {
            return Err(io::Error::other("the export is read-only; expected one that takes writes"));
        }
        Ok(NbdStore { client, name: address.to_string() })
    }

    fn has(&self, flag: u16) -> bool {
        self.client.export().flags & flag != 0
    }

    /// The flag of a request that is to be durable, and whether a flush must follow instead.
    fn durable(&self, fua: bool) -> (u16, bool) {
        match fua {
            true if self.has(export_flag::SEND_FUA) => (command_flag::FUA, false),
            fua => (0, fua),
        }
    }
}

impl Store for NbdStore {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn bytes(&self) -> u64 {
        self.client.export().bytes
    }

    fn block_bytes(&self) -> u32 {
        self.client.export().block_bytes
    }

    fn request_bytes(&self) -> u32 {
        self.client.export().payload_bytes.min(1 << 20)
    }

    /// How long it is: a server says nothing else.
    fn witness(&self) -> [u8; 32] {
        witness_of([self.bytes(), 0, 0, 0])
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(&self.client.request(Ask::Read(buffer.len() as u32), offset, 0)?);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let (flag, flush) = self.durable(fua);
        self.client.request(Ask::Write(data), offset, flag)?;
        if flush { self.flush() } else { Ok(()) }
    }

    fn zero(&self, offset: u64, bytes: u64, fua: bool) -> io::Result<()> {
        let (flag, flush) = self.durable(fua);
        if self.has(export_flag::SEND_WRITE_ZEROES) {
            let mut at = 0;
            while at < bytes {
                let count = (bytes - at).min(ZEROS);
                self.client.request(Ask::Zeroes(count as u32), offset + at, flag)?;
                at += count;
            }
        } else {
            write_zeros(offset, bytes, |at, zeros| self.client.request(Ask::Write(zeros), at, flag).map(drop))?;
        }
        if flush { self.flush() } else { Ok(()) }
    }

    /// A server that knows no flushes has made durable what it answered.
    fn flush(&self) -> io::Result<()> {
        if self.has(export_flag::SEND_FLUSH) { self.client.request(Ask::Flush, 0, 0).map(drop) } else { Ok(()) }
    }
}
