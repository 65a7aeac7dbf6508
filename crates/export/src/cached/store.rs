//! What stands behind a cached volume and is no device of the service: something that threads read and write.

use std::io;
use std::sync::Arc;

use array::{Answer, What};
use device::IoError;

use crate::composite::lane::Lane;
use crate::nbd::client::is_gone;

/// Requests under way at once: what is behind is slow, and may do several.
const THREADS: usize = 16;
/// The largest request where a store does not say, bytes.
const REQUEST_BYTES: u32 = 1 << 20;

/// A store behind a cached volume. Offsets and lengths are bytes, and whole sectors of the volume.
///
/// Any number of threads use one at once. An error of the kind [`io::ErrorKind::NotConnected`] says that the store is gone: the volume goes on
/// without it, and is given one that is opened anew.
pub trait Store: Send + Sync {
    /// What it is called where people read it.
    fn name(&self) -> String;

    /// How long it is.
    fn bytes(&self) -> u64;

    /// Sectors of the volume must be at least this long.
    fn block_bytes(&self) -> u32 {
        1
    }

    /// The largest request.
    fn request_bytes(&self) -> u32 {
        REQUEST_BYTES
    }

    /// What it looks like: two that look different are not the same, or one was changed in between.
    fn witness(&self) -> [u8; 32];

    /// Reads what stands at an offset.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes; durably with `fua`.
    ///
    /// # Errors
    /// Not all of it may be written.
    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()>;

    /// Makes bytes read as zeros, with holes where it can; durably with `fua`.
    ///
    /// # Errors
    /// Not all of them may be.
    fn zero(&self, offset: u64, bytes: u64, fua: bool) -> io::Result<()>;

    /// Makes durable what was answered.
    ///
    /// # Errors
    /// It may not be.
    fn flush(&self) -> io::Result<()>;
}

/// A store that looks like this: numbers that tell.
pub fn witness_of(numbers: [u64; 4]) -> [u8; 32] {
    let mut out = [0; 32];
    for (out, number) in out.chunks_exact_mut(8).zip(numbers) {
        out.copy_from_slice(&number.to_le_bytes());
    }
    out
}

/// Writes zeros where they cannot be had otherwise.
///
/// # Errors
/// As the store's writes.
pub fn write_zeros(offset: u64, bytes: u64, mut write: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let zeros = vec![0; bytes.min(u64::from(REQUEST_BYTES)) as usize];
    let mut at = 0;
    while at < bytes {
        let count = zeros.len().min((bytes - at) as usize);
        write(offset + at, &zeros[..count])?;
        at += count as u64;
    }
    Ok(())
}

/// Serves what is asked over a lane until that is closed, or the store is gone.
pub(super) fn serve(store: &Arc<dyn Store>, lane: &Arc<Lane>, sector_bytes: u32) -> io::Result<()> {
    for number in 0..THREADS {
        let (lane, store) = (Arc::clone(lane), Arc::clone(store));
        let serve = move || {
            while let Some(command) = lane.wait_for_one() {
                let result = carry_out(&*store, command.what, u64::from(sector_bytes));
                let gone = result.as_ref().is_err_and(is_gone);
                if let Err(error) = &result {
                    tracing::error!(store = store.name(), "{error}");
                }
                lane.reply(&mut vec![(command.tag, result.map_err(|error| io_error(&error)))]);
                if gone {
                    lane.close();
                }
            }
        };
        std::thread::Builder::new().name(format!("behind-{number}")).spawn(serve)?;
    }
    Ok(())
}

fn io_error(error: &io::Error) -> IoError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoError::NoSpace,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => IoError::ReadOnly,
        _ => IoError::Media,
    }
}

fn carry_out(store: &dyn Store, what: What, sector: u64) -> io::Result<Answer> {
    match what {
        What::Read { lba, mut buf } => {
            store.read(lba * sector, &mut buf)?;
            return Ok(Answer::Done(Some(buf)));
        }
        What::Write { lba, data, part, fua } => store.write(lba * sector, &data[part], fua)?,
        What::Zeroes { lba, count, fua } => store.zero(lba * sector, count * sector, fua)?,
        What::Flush => store.flush()?,
        // A volume asks for none of these of what is behind.
        What::Batch { .. } | What::Extent { .. } | What::ReadSnapshot { .. } | What::Snapshot(_) => {
            return Err(io::ErrorKind::Unsupported.into());
        }
    }
    Ok(Answer::Done(None))
}
