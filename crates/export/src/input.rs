//! A connection's receive buffer: filled in place by the kernel, parsed in place by us.

/// Size of a new buffer, bytes: dozens of pipelined requests in one system call, and a few large ones before their
/// bytes must be moved. It should stay in the processor's cache.
const INITIAL: usize = 512 << 10;

/// What a buffer grows by beyond what it must hold, bytes: less than this is moved to its front with each large request.
const BEYOND: usize = 64 << 10;

/// Room that is worth a system call, bytes.
const WORTHWHILE: usize = 16 << 10;

/// Received bytes that are not parsed yet, always in one piece.
pub struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How far it was ever filled: the rest takes no memory yet.
    touched: usize,
    /// The kernel may be writing into `buffer[end..]`: hands off.
    lent: bool,
}

impl Input {
    /// An empty buffer.
    pub fn new() -> Input {
        Input { buffer: vec![0; INITIAL], start: 0, end: 0, touched: 0, lent: false }
    }

    /// What was received and not consumed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Memory that it takes, bytes.
    pub fn memory(&self) -> usize {
        self.touched
    }

    /// Starts over with an untouched buffer, if nothing is in this one.
    pub fn shrink(&mut self) {
        if self.start == self.end && !self.lent && self.touched > 0 {
            *self = Input::new();
        }
    }

    /// Forgets `count` bytes from the front.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
        if self.start == self.end && !self.lent {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Makes room so that `need` bytes can stand in one piece, with at least `spare` bytes free
    /// behind those that are there. Moves or grows only when it must.
    pub fn reserve(&mut self, need: usize, spare: usize) {
        debug_assert!(!self.lent);
        let len = self.end - self.start;
        let wanted = need.max(len + spare);
        if self.start + wanted <= self.buffer.len() {
            return;
        }
        if wanted > self.buffer.len() {
            let mut larger = vec![0; wanted + BEYOND];
            larger[..len].copy_from_slice(&self.buffer[self.start..self.end]);
            self.buffer = larger;
            self.touched = len;
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        self.start = 0;
        self.end = len;
    }

    /// Where the kernel shall write the next bytes, when `need` of them must stand in one piece:
    /// address, length, and whether to wait until all of that length is there.
    /// The buffer stays put and untouched until [`Input::received`].
    ///
    /// With `wait` a large payload is received on its own: it is worth one wake-up. Without, everything that is there
    /// is taken, so that the client can send the next request while this one is carried out.
    pub fn lend(&mut self, need: usize, wait: bool) -> (*mut u8, usize, bool) {
        self.reserve(need, 0);
        let missing = need - (self.end - self.start);
        let exact = wait && missing >= WORTHWHILE;
        let spare = self.buffer.len() - self.end;
        if !exact && spare < WORTHWHILE {
            self.reserve(need, WORTHWHILE);
        }
        let len = if exact { missing } else { self.buffer.len() - self.end };
        self.lent = true;
        (self.buffer[self.end..].as_mut_ptr(), len, exact)
    }

    /// The kernel is done with what [`Input::lend`] lent, and wrote `count` bytes.
    #[inline]
    pub fn received(&mut self, count: usize) {
        self.lent = false;
        self.end += count.min(self.buffer.len() - self.end);
        self.touched = self.touched.max(self.end);
    }

    /// Free room behind the received bytes.
    pub fn spare(&mut self) -> &mut [u8] {
        debug_assert!(!self.lent);
        &mut self.buffer[self.end..]
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if self.lent {
            // A thread that unwinds gets here, and one whose ring failed or whose receives did not end in time. The kernel may
            // still write: never reuse the memory.
            std::mem::forget(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(input: &mut Input, need: usize, bytes: &[u8]) {
        let (_, len, _) = input.lend(need, true);
        assert!(len >= bytes.len());
        let end = input.end;
        input.buffer[end..end + bytes.len()].copy_from_slice(bytes);
        input.received(bytes.len());
    }

    #[test]
    fn bytes_survive_moves_and_growth() {
        let mut input = Input::new();
        receive(&mut input, 28, &vec![1; INITIAL - 10]);
        input.consume(INITIAL - 20);
        receive(&mut input, 28, &[2; 100]);
        assert_eq!(input.bytes()[..10], [1; 10]);
        assert_eq!(input.bytes()[10..], [2; 100]);
        let (_, len, exact) = input.lend(1 << 20, true);
        assert_eq!((len, exact), ((1 << 20) - 110, true));
        input.received(0);
        assert_eq!(input.bytes()[..10], [1; 10]);
        assert_eq!(input.bytes()[10..], [2; 100]);
    }

    #[test]
    fn a_large_payload_is_waited_for_alone_or_taken_with_what_follows() {
        let mut input = Input::new();
        receive(&mut input, 28, &[1; 100]);
        let (waiting, len, exact) = input.lend(100 + WORTHWHILE, true);
        assert_eq!((len, exact), (WORTHWHILE, true));
        input.received(0);
        assert_eq!(input.lend(100 + WORTHWHILE, false), (waiting, INITIAL - 100, false));
        input.received(0);
        assert!(!input.lend(99 + WORTHWHILE, true).2, "not worth a wait of its own");
        input.received(0);
    }

    #[test]
    fn it_takes_what_was_received_and_gives_it_back() {
        let mut input = Input::new();
        assert_eq!(input.memory(), 0);
        receive(&mut input, 28, &[1; 1000]);
        input.consume(999);
        input.shrink();
        assert_eq!((input.memory(), input.bytes()), (1000, &[1][..]), "something is in it");
        receive(&mut input, 1 << 20, &[1; 20_000]);
        assert!(input.buffer.len() <= (1 << 20) + BEYOND, "{}", input.buffer.len());
        input.consume(20_001);
        assert_eq!(input.memory(), 20_001);
        input.shrink();
        assert_eq!((input.memory(), input.buffer.len()), (0, INITIAL));
    }

    #[test]
    fn an_empty_buffer_starts_over() {
        let mut input = Input::new();
        receive(&mut input, 28, &[1; 1000]);
        input.consume(1000);
        assert_eq!((input.start, input.end), (0, 0));
    }
}
