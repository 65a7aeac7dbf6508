//! One read or write of a backing file, carried on until it is whole.

use std::os::fd::RawFd;

use rustix::io::Errno;

use crate::ring::Entry;
use crate::{MediaError, Page};

/// What a transfer is part of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// A read command; its bytes lie at `offset` of the transfer, which was widened for direct I/O.
    Read { id: u64, offset: u32, len: u32 },
    /// A program command.
    Program { id: u64 },
    /// One die's copy of a label.
    Label { group: usize },
}

/// One read or write. Holds the buffer as long as the kernel may use it.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub die: u32,
    pub purpose: Purpose,
    pub page: Page,
    /// Where in the buffer it begins.
    pub start: u32,
    /// How long it is.
    pub len: u32,
    /// Where in the backing file it begins.
    pub position: u64,
    /// How much of it is done.
    pub progress: u32,
}

/// What comes after a completion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Hand the rest to the kernel.
    Again,
    /// Finished.
    Done(Result<(), MediaError>),
}

impl Transfer {
    /// The entry for what is left.
    pub(crate) fn entry(&self, fd: RawFd) -> Entry {
        let position = self.position + u64::from(self.progress);
        let bytes = self.len - self.progress;
        // A raw address: the entry's pusher vouches that the buffer stays. `start + len` lies inside it.
        let address = self.page.as_ptr().wrapping_add((self.start + self.progress) as usize);
        match self.purpose {
            Purpose::Read { .. } => Entry::Read { fd, address, bytes, position },
            _ => Entry::Write { fd, address, bytes, position },
        }
    }

    /// Takes the kernel's result for the entry made last; `alignment` is what direct I/O asks for, or 1.
    pub(crate) fn complete(&mut self, result: i32, alignment: u32) -> Next {
        let moved = match kernel_result(result) {
            Ok(moved) => moved,
            Err(Errno::INTR | Errno::AGAIN) => return Next::Again,
            Err(error) => return Next::Done(Err(MediaError::from(error))),
        };
        if self.progress + moved >= self.len {
            return Next::Done(Ok(()));
        }
        if let Purpose::Read { offset, len, .. } = self.purpose
            && self.progress + moved >= offset + len
        {
            // The file ends inside the widened part.
            return Next::Done(Ok(()));
        }
        // Direct I/O goes on from an aligned place; what is left over is done once more.
        let whole = moved - moved % alignment;
        self.progress += whole;
        match (whole, self.purpose) {
            (0, Purpose::Read { .. }) => Next::Done(Err(MediaError::Truncated)),
            (0, _) => Next::Done(Err(MediaError::Os(Errno::IO))),
            _ => Next::Again,
        }
    }
}

/// A completion's result as the system call would have given it.
pub(crate) fn kernel_result(result: i32) -> Result<u32, Errno> {
    u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageBuf;

    fn read(offset: u32, len: u32) -> Transfer {
        let purpose = Purpose::Read { id: 1, offset, len };
        Transfer { die: 0, purpose, page: PageBuf::new(8192), start: 0, len: 8192, position: 0, progress: 0 }
    }

    #[test]
    fn a_short_read_goes_on_from_an_aligned_place() {
        let mut transfer = read(100, 8000);
        assert_eq!(transfer.complete(1000, 512), Next::Again);
        assert_eq!(transfer.progress, 512);
        assert_eq!(transfer.complete(7680, 512), Next::Done(Ok(())));
    }

    #[test]
    fn the_end_of_the_file_matters_only_in_front_of_the_bytes_asked_for() {
        assert_eq!(read(100, 500).complete(700, 512), Next::Done(Ok(())));
        let mut transfer = read(100, 5000);
        assert_eq!(transfer.complete(700, 512), Next::Again);
        assert_eq!(transfer.complete(188, 512), Next::Done(Err(MediaError::Truncated)));
        assert_eq!(read(0, 1).complete(0, 1), Next::Done(Err(MediaError::Truncated)));
    }

    #[test]
    fn a_short_write_goes_on_and_a_stuck_one_fails() {
        let page = PageBuf::new(8192);
        let purpose = Purpose::Program { id: 1 };
        let mut transfer = Transfer { die: 0, purpose, page, start: 4096, len: 4096, position: 4096, progress: 0 };
        assert_eq!(transfer.complete(-Errno::INTR.raw_os_error(), 1), Next::Again);
        assert_eq!(transfer.complete(4000, 1), Next::Again);
        assert_eq!(transfer.progress, 4000);
        assert_eq!(transfer.complete(0, 1), Next::Done(Err(MediaError::Os(Errno::IO))));
        assert_eq!(transfer.complete(-Errno::DQUOT.raw_os_error(), 1), Next::Done(Err(MediaError::NoSpace)));
    }
}
