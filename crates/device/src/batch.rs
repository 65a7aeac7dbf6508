//! Whether a batch can be carried out: told before anything of it is.

use ftl::{BatchOp, batch_slots};

use crate::BatchError;

/// Checks a batch with so many bytes of data against a device that has so many sectors of a size, and takes requests of so many bytes.
///
/// # Errors
/// What is wrong with it.
pub fn check_batch(
    (sectors, sector_bytes, max_request_bytes): (u64, u32, u32),
    ops: &[BatchOp],
    data: usize,
) -> Result<(), BatchError> {
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    if ops.is_empty() {
        return Err(BatchError::Empty);
    }
    // Before the list is sorted, so that one that is far too long costs nothing.
    let most = max_request_bytes / sector_bytes;
    let slots = batch_slots(ops, sector_bytes);
    if slots > u64::from(most) {
        return Err(BatchError::TooLarge { sectors: short(slots), most });
    }
    let mut touched = Vec::with_capacity(ops.len());
    for (op, number) in ops.iter().zip(0..) {
        let touches = op.sectors();
        if touches.start >= sectors || touches.end > sectors {
            return Err(BatchError::OutOfRange(number));
        }
        if touches.is_empty() {
            return Err(BatchError::NoSectors(number));
        }
        touched.push((touches.start, touches.end, number));
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
    let expected = written * u64::from(sector_bytes);
    if data as u64 != expected {
        return Err(BatchError::Data { found: short(data as u64), expected: short(expected) });
    }
    Ok(())
}
