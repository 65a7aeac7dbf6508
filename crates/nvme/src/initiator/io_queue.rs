//! An I/O queue, one call a command.

use std::io::{Read, Write};

use super::{Command, Error, Link, Namespace, Range};
use crate::vendor::{Mapped, Operation};

/// An I/O queue of a controller.
///
/// Each call sends one command and waits for its end. [`IoQueue::link`] sends many at a time.
pub struct IoQueue<S> {
    link: Link<S>,
}

impl<S: Read + Write> IoQueue<S> {
    pub(super) fn new(link: Link<S>) -> IoQueue<S> {
        IoQueue { link }
    }

    /// The queue itself, for any command, and for many at a time.
    pub fn link(&mut self) -> &mut Link<S> {
        &mut self.link
    }

    /// The queue itself, for those who send many commands at a time all along.
    pub fn into_link(self) -> Link<S> {
        self.link
    }

    /// Reads blocks.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn read(&mut self, namespace: &Namespace, first: u64, blocks: u32) -> Result<Vec<u8>, Error> {
        Ok(self.link.succeed("Read", Command::read(namespace, first, blocks))?.data)
    }

    /// Writes whole blocks.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn write(&mut self, namespace: &Namespace, first: u64, data: Vec<u8>) -> Result<(), Error> {
        self.link.succeed("Write", Command::write(namespace, first, data)).map(drop)
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn flush(&mut self, namespace: &Namespace) -> Result<(), Error> {
        self.link.succeed("Flush", Command::flush(namespace.nsid)).map(drop)
    }

    /// Compares blocks with what is stored.
    ///
    /// # Errors
    /// As [`Link::execute`], or they differ: [`Status::COMPARE_FAILED`](crate::Status::COMPARE_FAILED).
    pub fn compare(&mut self, namespace: &Namespace, first: u64, data: Vec<u8>) -> Result<(), Error> {
        self.link.succeed("Compare", Command::compare(namespace, first, data)).map(drop)
    }

    /// Writes blocks if what is stored there is as expected, as one: no other write comes between.
    ///
    /// # Errors
    /// As [`Link::execute`], or what is stored differs: [`Status::COMPARE_FAILED`](crate::Status::COMPARE_FAILED).
    pub fn compare_and_write(
        &mut self,
        namespace: &Namespace,
        first: u64,
        expected: Vec<u8>,
        data: Vec<u8>,
    ) -> Result<(), Error> {
        let (compare, write) = (Command::compare(namespace, first, expected), Command::write(namespace, first, data));
        let (compare, write) = self.link.submit_fused(compare, write)?;
        let compared = self.link.wait_for(&[compare])?;
        let written = self.link.wait_for(&[write])?;
        compared.succeeded("Compare")?;
        written.succeeded("Write").map(drop)
    }

    /// Makes blocks zeros.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn write_zeroes(
        &mut self,
        namespace: &Namespace,
        first: u64,
        blocks: u32,
        deallocate: bool,
    ) -> Result<(), Error> {
        self.link.succeed("Write Zeroes", Command::write_zeroes(namespace, first, blocks, deallocate)).map(drop)
    }

    /// Gives back the space of ranges, 256 at most.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn deallocate(&mut self, namespace: &Namespace, ranges: &[Range]) -> Result<(), Error> {
        self.link.succeed("Dataset Management", Command::deallocate(namespace, ranges)).map(drop)
    }

    /// Has the controller read and check blocks.
    ///
    /// # Errors
    /// As [`Link::execute`], or the blocks are not sound.
    pub fn verify(&mut self, namespace: &Namespace, first: u64, blocks: u32) -> Result<(), Error> {
        self.link.succeed("Verify", Command::verify(namespace, first, blocks)).map(drop)
    }

    /// Copies ranges, one behind the other, to where `first` begins.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn copy(&mut self, namespace: &Namespace, first: u64, sources: &[Range]) -> Result<(), Error> {
        self.link.succeed("Copy", Command::copy(namespace, first, sources)).map(drop)
    }

    /// Carries out all of these operations or none, whatever a power failure leaves. `data` is what the writes write, one behind another.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses; then nothing was changed. Operations that overlap:
    /// [`Status::BATCH_OVERLAP`](crate::Status::BATCH_OVERLAP).
    pub fn batch(&mut self, namespace: &Namespace, operations: &[Operation], data: &[u8]) -> Result<(), Error> {
        self.link.succeed("Batch", Command::batch(namespace, operations, data)).map(drop)
    }

    /// Which of so many blocks from `first` on hold data, 0 for all behind it; at most `most` ranges. The controller may stop earlier:
    /// [`Mapped::next`] says where to go on.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn mapped_ranges(
        &mut self,
        namespace: &Namespace,
        first: u64,
        blocks: u64,
        most: u32,
    ) -> Result<Mapped, Error> {
        let command = Command::mapped_ranges(namespace, first, blocks, most);
        Ok(Mapped::decode(&self.link.succeed("Mapped Ranges", command)?.data))
    }

    /// Has the controller end the queue, and hangs up.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn disconnect(mut self) -> Result<(), Error> {
        self.link.succeed("Disconnect", Command::disconnect()).map(drop)
    }
}
