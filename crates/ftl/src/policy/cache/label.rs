//! The note of a cached sector: how often it was used, and when it was used last.
//!
//! Time is counted in epochs, eighths of the time in which the host fills the cache once. Several uses in one epoch count once: a
//! request that is cut in pieces, or two requests that share a block, say nothing about the next hour.

/// Uses that are counted.
pub(super) const USES_MAX: u8 = 7;
/// Epochs in which the host fills the cache once.
pub(super) const EPOCHS: u64 = 8;
/// Epochs that are told apart; in the upper five bits of a note, where zero means that nothing is known.
const TOLD_APART: u64 = 31;
/// The greatest age. One epoch before the oldest that is told apart, so that it is noticed before it looks new.
pub(super) const AGE_MAX: u8 = TOLD_APART as u8 - 2;

/// The note of a sector that was used so often, and last in this epoch.
#[inline]
pub(super) fn label(epoch: u64, uses: u8) -> u8 {
    (epoch % TOLD_APART + 1) as u8 * (USES_MAX + 1) + uses.min(USES_MAX)
}

/// How often a sector was used.
#[inline]
pub(super) fn uses(note: u8) -> u8 {
    if is_known(note) { note % (USES_MAX + 1) } else { 0 }
}

/// Epochs since it was used last.
#[inline]
pub(super) fn age(note: u8, epoch: u64) -> u8 {
    if !is_known(note) {
        return EPOCHS as u8;
    }
    ((epoch % TOLD_APART + TOLD_APART + 1 - u64::from(note / (USES_MAX + 1))) % TOLD_APART) as u8
}

/// The note after another use.
#[inline]
pub(super) fn used(note: u8, epoch: u64) -> u8 {
    let again = is_known(note) && age(note, epoch) == 0;
    label(epoch, uses(note) + u8::from(!again))
}

/// The note from now on of what is not used: one that is so old that it would look new before long stays as old as it is.
#[inline]
pub(super) fn kept(note: u8, epoch: u64) -> u8 {
    if age(note, epoch) <= AGE_MAX { note } else { label(epoch - u64::from(AGE_MAX), uses(note)) }
}

fn is_known(note: u8) -> bool {
    note > USES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::UNNOTED;

    #[test]
    fn uses_in_one_epoch_count_once() {
        let mut note = label(100, 0);
        note = used(note, 101);
        note = used(note, 101);
        assert_eq!((uses(note), age(note, 101)), (1, 0));
        for epoch in 102..120 {
            note = used(note, epoch);
        }
        assert_eq!((uses(note), age(note, 125)), (USES_MAX, 6));
    }

    #[test]
    fn what_is_not_used_never_looks_new() {
        let mut note = label(40, 3);
        for epoch in 40..400 {
            note = kept(note, epoch);
            assert_eq!(u64::from(age(note, epoch)), (epoch - 40).min(AGE_MAX.into()), "in epoch {epoch}");
        }
        assert_eq!(uses(note), 3);
    }

    #[test]
    fn nothing_is_known_of_what_was_there_at_the_attach() {
        assert_eq!((uses(UNNOTED), age(UNNOTED, 3)), (0, EPOCHS as u8));
        assert_eq!((uses(used(UNNOTED, 3)), age(used(UNNOTED, 3), 4)), (1, 1));
        assert_eq!(kept(UNNOTED, 3), UNNOTED);
    }
}
