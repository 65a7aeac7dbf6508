//! Bringing bytes into the cache before they are needed.

/// Starts to bring bytes into the cache. It changes nothing and costs little when they are there already.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        ftl::prefetch_line(&line[0]);
    }
}
