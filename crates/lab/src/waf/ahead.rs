//! Requests drawn ahead of their turn, so that what the layer needs for them is in the cache by then.

use std::collections::VecDeque;

use ftl::{Ftl, Request};

use super::workload::Source;

/// Requests drawn ahead.
const DRAWN: usize = 8;
/// Of these so many have their places in the map at hand; what is known of the slots that they leave is fetched then.
const NEAR: usize = 4;

/// A workload's requests, in their order.
pub struct Ahead {
    source: Source,
    drawn: VecDeque<Request<'static>>,
}

impl Ahead {
    /// Those of a source.
    pub fn new(mut source: Source) -> Ahead {
        let drawn = (0..DRAWN).map(|_| source.next()).collect();
        Ahead { source, drawn }
    }

    /// The next request, for this layer.
    pub fn take(&mut self, layer: &Ftl) -> Request<'static> {
        let last = self.source.next();
        if let Request::Write { lba, .. } = last {
            layer.hint(lba);
        }
        self.drawn.push_back(last);
        if let Some(Request::Write { lba, .. }) = self.drawn.get(NEAR) {
            layer.hint_write(*lba);
        }
        self.drawn.pop_front().unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waf::medium::{Instant, Shape};
    use crate::waf::workload::Workload;

    #[test]
    fn their_order_is_that_of_the_source() {
        let shape = Shape { sectors: 4096, over_provisioning: 0.5, as_published: false };
        let device = Instant::new(&shape, ftl::Policy::Lifetime, None).expect("a module");
        let mut ahead = Ahead::new(Workload::HotCold.source(4096, 7));
        let mut source = Workload::HotCold.source(4096, 7);
        for _ in 0..100 {
            assert_eq!(ahead.take(device.ftl()), source.next());
        }
    }
}
