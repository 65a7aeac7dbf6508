//! Whether a batch can be carried out: told before anything of it is.

use ftl::{BatchOp, batch_slots};

use crate::{BatchError, Info};

/// Checks a batch against the device that is to carry it out.
pub(crate) fn check_batch(info: &Info, ops: &[BatchOp], data: usize) -> Result<(), BatchError> {
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    if ops.is_empty() {
        return Err(BatchError::Empty);
    }
    // Before the list is sorted, so that one that is far too long costs nothing.
    let most = info.max_request_bytes / info.sector_bytes;
    let slots = batch_slots(ops, info.sector_bytes);
    if slots > u64::from(most) {
        return Err(BatchError::TooLarge { sectors: short(slots), most });
    }
    let mut touched = Vec::with_capacity(ops.len());
    for (op, number) in ops.iter().zip(0..) {
        let sectors = op.sectors();
        if sectors.start >= info.sectors || sectors.end > info.sectors {
            return Err(BatchError::OutOfRange(number));
        }
        if sectors.is_empty() {
            return Err(BatchError::NoSectors(number));
        }
        touched.push((sectors.start, sectors.end, number));
    }
    touched.sort_unstable();
    for pair in touched.windows(2) {
        let ((_, end, one), (start, _, other)) = (pair[0], pair[1]);
        if start < end {
            return Err(BatchError::Overlap(one.min(other), one.max(other)));
        }
    }
    let written: u64 =
        ops.iter().map(|op| if let BatchOp::Write { count, .. } = op { u64::from(*count) } else { 0 }).sum();
    let expected = written * u64::from(info.sector_bytes);
    if data as u64 != expected {
        return Err(BatchError::Data { found: short(data as u64), expected: short(expected) });
    }
    Ok(())
}
