//! Read buffers of one device thread, used again instead of allocated anew.

/// Buffers kept for one size at most.
const KEPT: usize = 256;
/// Bytes kept in all at most.
const KEPT_BYTES: usize = 64 << 20;

/// Buffers by the power of two that holds them.
#[derive(Debug, Default)]
pub struct Pool {
    classes: [Vec<Vec<u8>>; 32],
    bytes: usize,
}

fn class(len: usize) -> usize {
    len.max(1).next_power_of_two().trailing_zeros() as usize
}

impl Pool {
    /// A buffer of `len` bytes with unspecified content.
    #[inline]
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let class = class(len);
        let Some(mut buffer) = self.classes.get_mut(class).and_then(Vec::pop) else {
            let mut buffer = Vec::with_capacity(1 << class);
            buffer.resize(len, 0);
            return buffer;
        };
        self.bytes -= buffer.capacity();
        // Only the part that the last user did not have is cleared.
        buffer.resize(len, 0);
        buffer
    }

    /// Memory that it keeps, bytes.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// Gives everything back that it keeps.
    pub fn clear(&mut self) {
        *self = Pool::default();
    }

    /// Takes a buffer back.
    #[inline]
    pub fn put(&mut self, buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if !capacity.is_power_of_two() || self.bytes + capacity > KEPT_BYTES {
            return;
        }
        if let Some(kept) = self.classes.get_mut(class(capacity))
            && kept.len() < KEPT
        {
            self.bytes += capacity;
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_with_the_length_asked_for() {
        let mut pool = Pool::default();
        let buffer = pool.take(4096);
        let address = buffer.as_ptr();
        pool.put(buffer);
        let again = pool.take(3000);
        assert_eq!((again.as_ptr(), again.len()), (address, 3000));
        pool.put(again);
        assert_eq!(pool.take(4096).len(), 4096);
        assert_eq!(pool.take(0).len(), 0);
    }

    #[test]
    fn what_it_keeps_is_bounded() {
        let mut pool = Pool::default();
        let buffers: Vec<_> = (0..100).map(|_| pool.take(1 << 20)).collect();
        for buffer in buffers {
            pool.put(buffer);
        }
        assert!(pool.bytes <= KEPT_BYTES);
        pool.put(Vec::new());
        pool.clear();
        assert_eq!(pool.memory(), 0);
        pool.put(vec![0; 4096]);
        assert_eq!(pool.memory(), 4096);
    }
}
