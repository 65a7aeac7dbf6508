//! Which sectors are mapped.

use std::ops::Range;

use crate::handles::{Failure, answer, device, invalid};
use crate::{nvm_block_range_t, nvm_handle_t, nvm_iter_filter_t, nvm_logical_range_iter_t, nvm_range_op_t};

/// Whether a sector was written, and not trimmed since. Returns 1 or 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn nvm_block_exists(handle: nvm_handle_t, block: u64) -> i32 {
    answer((|| Ok(device(handle)?.exists(block)?.into()))())
}

/// Finds the first mapped range within another. Returns 0, or -1.
///
/// # Safety
/// `range` is such a question.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_range_exists(handle: nvm_handle_t, range: *mut nvm_range_op_t) -> i32 {
    answer((|| {
        // SAFETY: the caller's promise.
        let range = unsafe { range.as_mut() }.ok_or_else(|| invalid("range: null"))?;
        let within = sectors(&range.check_range);
        let found = device(handle)?.ranges(within.clone()).next().transpose()?;
        range.range_found = block_range(&found.unwrap_or(within.end..within.end));
        Ok(0)
    })())
}

/// Gives the next mapped ranges, `max_ranges` at most, and moves the iterator behind them. Returns how many there are; fewer than
/// `max_ranges` when there are no more; or -1.
///
/// # Safety
/// `iterator` is one, with room for its ranges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_logical_range_iterator(
    handle: nvm_handle_t,
    iterator: *mut nvm_logical_range_iter_t,
) -> i32 {
    answer((|| {
        let device = device(handle)?;
        // SAFETY: the caller's promise.
        let iterator = unsafe { iterator.as_mut() }.ok_or_else(|| invalid("iterator: null"))?;
        let room = i32::try_from(iterator.max_ranges).map_err(|_| invalid("max_ranges: more than a result tells"))?;
        if iterator.ranges.is_null() {
            return Err(invalid("ranges: null"));
        }
        if iterator.filters.filter_expiry != 0 {
            return Err(Failure(libc::EOPNOTSUPP, "filter_expiry: expected 0: sectors have no age".into()));
        }
        // SAFETY: the caller's promise.
        let ranges = unsafe { std::slice::from_raw_parts_mut(iterator.ranges, room as usize) };
        let within = sectors(&iterator.range_to_iterate);
        let (mut found, mut next) = (0, within.start);
        let mut mapped = device.ranges(within.clone());
        'all: while found < ranges.len() {
            let Some(range) = mapped.next() else {
                next = within.end;
                break;
            };
            let range = range?;
            next = range.start;
            while let Some(part) = matching(next..range.end, &iterator.filters) {
                let Some(place) = ranges.get_mut(found) else { break 'all };
                *place = block_range(&part);
                (found, next) = (found + 1, part.end);
            }
        }
        iterator.range_to_iterate = block_range(&(next..within.end));
        Ok(found as i32)
    })())
}

/// The first run of sectors that a filter lets through.
fn matching(within: Range<u64>, filter: &nvm_iter_filter_t) -> Option<Range<u64>> {
    let nvm_iter_filter_t { filter_mask: mask, filter_pattern: pattern, .. } = *filter;
    if mask == 0 {
        return (!within.is_empty()).then_some(within);
    }
    let passes = |lba: &u64| lba & mask == pattern & mask;
    let start = within.clone().find(passes)?;
    let end = (start..within.end).find(|lba| !passes(lba)).unwrap_or(within.end);
    Some(start..end)
}

fn sectors(range: &nvm_block_range_t) -> Range<u64> {
    range.start_lba..range.start_lba.saturating_add(range.length)
}

fn block_range(range: &Range<u64>) -> nvm_block_range_t {
    nvm_block_range_t { start_lba: range.start, length: range.end.saturating_sub(range.start) }
}
