//! What a ring can be asked to do.

use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::{opcode, squeue, types};
use rustix::event::PollFlags;
use rustix::fs::FallocateFlags;

/// How long until a timer goes off, in the kernel's form and in ours.
#[derive(Debug)]
pub struct Timer {
    pub(super) after: Duration,
    spec: types::Timespec,
}

impl Timer {
    /// A timer that goes off after so long.
    pub const fn new(after: Duration) -> Timer {
        Timer { after, spec: types::Timespec::new().sec(after.as_secs()).nsec(after.subsec_nanos()) }
    }
}

/// One thing to do. Addresses are raw, because whoever pushes it vouches for them.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// Reads from a place of a file.
    Read {
        /// Which file.
        fd: RawFd,
        /// Where to.
        address: *mut u8,
        /// How much.
        bytes: u32,
        /// From where in the file.
        position: u64,
    },
    /// Writes to a place of a file.
    Write {
        /// Which file.
        fd: RawFd,
        /// Where from.
        address: *const u8,
        /// How much.
        bytes: u32,
        /// To where in the file.
        position: u64,
    },
    /// Makes a file's data durable.
    SyncData {
        /// Which file.
        fd: RawFd,
    },
    /// Reserves a file's space, or gives it back.
    Allocate {
        /// Which file.
        fd: RawFd,
        /// From where.
        position: u64,
        /// How much.
        bytes: u64,
        /// Reserve or give back.
        mode: FallocateFlags,
    },
    /// Receives from a socket.
    Receive {
        /// Which socket.
        fd: RawFd,
        /// Where to.
        address: *mut u8,
        /// How much at most.
        bytes: u32,
        /// Only the whole of it will do, unless the connection ends.
        whole: bool,
    },
    /// Waits until a descriptor is ready.
    Poll {
        /// Which descriptor.
        fd: RawFd,
        /// Ready for what.
        events: PollFlags,
        /// Completes each time that it becomes ready, not only once.
        multi: bool,
    },
    /// Completes with `ETIME` when so much time has passed.
    Timeout(&'static Timer),
}

impl Entry {
    /// The kernel's form of it.
    #[inline]
    pub(super) fn sqe(self) -> squeue::Entry {
        match self {
            Entry::Read { fd, address, bytes, position } => {
                opcode::Read::new(types::Fd(fd), address, bytes).offset(position).build()
            }
            Entry::Write { fd, address, bytes, position } => {
                opcode::Write::new(types::Fd(fd), address, bytes).offset(position).build()
            }
            Entry::SyncData { fd } => opcode::Fsync::new(types::Fd(fd)).flags(types::FsyncFlags::DATASYNC).build(),
            Entry::Allocate { fd, position, bytes, mode } => {
                opcode::Fallocate::new(types::Fd(fd), bytes).offset(position).mode(mode.bits() as i32).build()
            }
            Entry::Receive { fd, address, bytes, whole } => {
                let flags = if whole { rustix::net::RecvFlags::WAITALL.bits() as i32 } else { 0 };
                opcode::Recv::new(types::Fd(fd), address, bytes).flags(flags).build()
            }
            Entry::Poll { fd, events, multi } => {
                opcode::PollAdd::new(types::Fd(fd), u32::from(events.bits())).multi(multi).build()
            }
            Entry::Timeout(timer) => opcode::Timeout::new(&raw const timer.spec).build(),
        }
    }
}
