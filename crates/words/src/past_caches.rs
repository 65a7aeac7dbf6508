//! Copies that leave the processor's caches alone.

/// Copies `from` to `to` without fetching what stands at `to` and without keeping it in the caches: for destinations that are written once and not
/// read soon. Where the processor offers nothing of the kind, or `to` does not begin and end on 16 bytes, it is an ordinary copy.
///
/// # Panics
/// When the lengths differ.
#[inline]
pub fn copy_past_caches(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len());
    #[cfg(target_arch = "x86_64")]
    if (to.as_ptr() as usize | to.len()).is_multiple_of(16) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        for (to, from) in to.chunks_exact_mut(16).zip(from.chunks_exact(16)) {
            // SAFETY: both are 16 bytes, and `to` is aligned to as many; every x86-64 has SSE2.
            unsafe { _mm_stream_si128(to.as_mut_ptr().cast::<__m128i>(), _mm_loadu_si128(from.as_ptr().cast())) };
        }
        // SAFETY: every x86-64 has SSE. Such stores are in no order with others until here.
        unsafe { _mm_sfence() };
        return;
    }
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_is_there_wherever_it_begins_and_ends() {
        let from: Vec<u8> = (0..200).collect();
        for (start, len) in [(0, 160), (16, 128), (3, 160), (0, 77), (5, 0)] {
            let mut to = [0; 200];
            copy_past_caches(&mut to[start..start + len], &from[..len]);
            assert_eq!((&to[start..start + len], to[start + len]), (&from[..len], 0), "{len} bytes at {start}");
        }
    }
}
