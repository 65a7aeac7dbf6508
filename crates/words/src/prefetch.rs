//! Bringing memory into the cache before it is needed.

/// Starts to bring the cache line in which a value begins into the cache. It changes nothing, and costs little when it is there already.
#[inline]
pub fn prefetch_line<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes nothing and cannot fault, and the address is that of a live value.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Starts to bring bytes into the cache.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        prefetch_line(&line[0]);
    }
}
