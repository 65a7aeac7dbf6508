//! What stands between the host and the flash: the link, and the controller's front end.
//!
//! Each direction of the link and the front end carry one request at a time. What a request waits besides is a fixed time that any number
//! of requests wait side by side.
//!
//! A page that is read goes to the host as soon as it is there, while others of its request are still on their way: the link carries the last
//! one of them when all are there.

use profile::Controller;

use super::{Nanos, Rate, Server, micros};

/// Link and front end of one module.
#[derive(Clone, Debug)]
pub struct FrontEnd {
    link_rate: Rate,
    write_request: Nanos,
    write_latency: Nanos,
    read_latency: Nanos,
    /// What goes over the link in one piece.
    page_bytes: u32,
    /// From the host and to it.
    link_in: Server,
    link_out: Server,
    front_free: Nanos,
}

impl FrontEnd {
    /// As the data sheets of a controller and the flash behind it have it.
    pub fn new(controller: &Controller, nand: &profile::Nand) -> FrontEnd {
        FrontEnd {
            link_rate: Rate::bytes_per_s(controller.link_bytes_per_s),
            write_request: micros(controller.write_request_us),
            write_latency: micros(controller.write_latency_us),
            read_latency: micros(controller.read_latency_us),
            page_bytes: nand.page_bytes * nand.planes,
            link_in: Server::default(),
            link_out: Server::default(),
            front_free: 0,
        }
    }

    /// A write of `bytes` (0 for a trim) comes at `now` and is held back for `hold` on top; gives the moment when the layer may take it.
    #[inline]
    pub fn arrive(&mut self, now: Nanos, bytes: u32, hold: Nanos) -> Nanos {
        let through = self.link_in.serve(now, self.link_rate.of(bytes));
        self.front_free = (self.front_free.max(now) + self.write_request + hold).max(through);
        self.front_free
    }

    /// The layer took a write at `now`; gives the moment of the answer.
    #[inline]
    pub fn taken(&self, now: Nanos) -> Nanos {
        now + self.write_latency
    }

    /// All of a read of `bytes`, which began at `begin`, is there at `now`; gives the moment when the host has it.
    #[inline]
    pub fn leave(&mut self, begin: Nanos, now: Nanos, bytes: u32) -> Nanos {
        let last = self.link_rate.of(bytes.min(self.page_bytes));
        self.link_out.serve_since(begin, now, self.link_rate.of(bytes), last) + self.read_latency
    }

    /// Time that the link was taken, both directions added up.
    pub fn link_busy(&self) -> Nanos {
        self.link_in.busy() + self.link_out.busy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_and_front_end_carry_one_request_at_a_time() {
        let mut front = FrontEnd {
            link_rate: Rate::bytes_per_s(1_000_000_000),
            write_request: 2000,
            write_latency: 500,
            read_latency: 300,
            page_bytes: 1000,
            link_in: Server::default(),
            link_out: Server::default(),
            front_free: 0,
        };
        assert_eq!(front.arrive(100, 1000, 0), 2100);
        assert_eq!(front.arrive(100, 1000, 0), 4100, "the second waits for the front end");
        assert_eq!(front.arrive(100, 10_000, 0), 12_100, "the third for the link");
        assert_eq!(front.taken(12_100), 12_600);
        // What is read follows page by page; many reads keep the link busy all the same.
        assert_eq!((front.leave(5000, 10_000, 4000), front.leave(5000, 10_000, 4000)), (11_300, 15_300));
        assert_eq!(front.leave(5000, 10_000, 500), 15_800);
        // What was never written is there all at once, and goes over the link after that.
        assert_eq!(front.leave(20_000, 20_000, 4000), 24_300);
        assert_eq!(front.link_busy(), 24_500);
    }
}
