//! Something that serves one at a time.

use super::Nanos;

/// Something that serves one at a time, in the order of asking: a link, a processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Server {
    free_at: Nanos,
    busy: Nanos,
}

impl Server {
    /// Takes it for `time`, at `now` or as soon as it is free; gives the end.
    #[inline]
    pub fn serve(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.serve_since(now, now, time, 0)
    }

    /// Takes it for `time`, at any moment after `begin` at which it is free, but for its last `rest` at `now` or as soon as it is free; gives
    /// the end.
    #[inline]
    pub fn serve_since(&mut self, begin: Nanos, now: Nanos, time: Nanos, rest: Nanos) -> Nanos {
        self.free_at = (self.free_at.max(begin) + time).max(now + rest);
        self.busy += time;
        self.free_at
    }

    /// Time that it was taken so far, added up.
    pub fn busy(&self) -> Nanos {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_served_after_the_other() {
        let mut server = Server::default();
        assert_eq!(server.serve(10, 5), 15);
        assert_eq!(server.serve(11, 5), 20);
        assert_eq!(server.serve(100, 5), 105);
        assert_eq!(server.busy(), 15);
        // Most of it while it stood idle, the rest now.
        assert_eq!(server.serve_since(120, 200, 50, 5), 205);
        assert_eq!(server.serve_since(190, 206, 50, 5), 255);
        // What began only now could not use the time before.
        assert_eq!(server.serve_since(400, 400, 50, 5), 450);
        assert_eq!(server.busy(), 165);
    }
}
