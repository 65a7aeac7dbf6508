//! How many bytes of reads a device has at once, and whose turn is next.

/// So many at most: whoever asks later waits behind no more than these, and the medium needs buffers for no more.
const BYTES: usize = 64 << 20;

/// Reads that the device has.
#[derive(Debug, Default)]
pub struct Reading {
    bytes: usize,
    /// The connection whose read did not fit: nobody else's begins before it, or many small reads would keep a large one out
    /// for ever.
    next: Option<usize>,
}

impl Reading {
    /// Whether the device is to get a read of so many bytes from this connection now; one at least it always may have. Where
    /// it may not, the connection asks again or [gives up](Reading::give_up).
    #[inline]
    pub fn may_begin(&mut self, connection: usize, bytes: usize) -> bool {
        if self.next.is_some_and(|next| next != connection) {
            return false;
        }
        let fits = self.bytes == 0 || self.bytes + bytes <= BYTES;
        self.next = (!fits).then_some(connection);
        fits
    }

    /// A connection does not wait for its turn any more.
    pub fn give_up(&mut self, connection: usize) {
        self.next = self.next.filter(|next| *next != connection);
    }

    /// The device has a read of so many bytes.
    #[inline]
    pub fn began(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// It is done.
    #[inline]
    pub fn ended(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_read_gets_its_turn_among_small_ones() {
        let mut reading = Reading::default();
        let small = 1 << 20;
        for _ in 0..BYTES / small {
            assert!(reading.may_begin(1, small));
            reading.began(small);
        }
        assert!(!reading.may_begin(2, BYTES));
        for _ in 0..BYTES / small {
            reading.ended(small);
            assert!(!reading.may_begin(1, small), "the other is next");
            assert_eq!(reading.may_begin(2, BYTES), reading.bytes == 0);
        }
        reading.began(BYTES);
        assert!(!reading.may_begin(1, small));
        assert!(!reading.may_begin(2, small), "behind the first that waits");
        reading.give_up(1);
        reading.ended(BYTES);
        assert!(reading.may_begin(2, small));
    }
}
