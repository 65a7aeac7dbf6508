//! Leases in the simulation: a host that stands by watches the owner's anchor, and takes the device over when the lease was not renewed.
//!
//! Clocks of hosts run at different speeds, owners sleep for longer than their lease and wake up, and the store hangs. What is checked: an owner
//! that was taken over from answers nothing any more, from the moment at which the other host's anchor is in the store.

use media::object::sim::{Bucket, SimNotes, SimOutside};
use media::object::{Anchor, AnchorId, Answer, Ask, Outside, Watch};
use random::SplitMix64;

/// What a seed decides of leases.
#[derive(Clone, Debug)]
pub struct LeasePlan {
    pub lease_ms: u64,
    /// An owner sleeps once in so many requests.
    pub sleep_once_in: u64,
    /// The store hangs once in so many requests.
    pub hang_once_in: u64,
}

/// How fast clocks run, parts per thousand of the right speed: the slowest, and by how much the fastest is faster.
const SLOWEST: u64 = 900;
const SPREAD: u64 = 201;

impl LeasePlan {
    pub fn new(random: &mut SplitMix64) -> LeasePlan {
        LeasePlan {
            lease_ms: 2000 + random.below(18_000),
            sleep_once_in: 20 + random.below(100),
            hang_once_in: 20 + random.below(200),
        }
    }
}

/// How fast a host's clock runs.
pub fn rate(random: &mut SplitMix64) -> u64 {
    SLOWEST + random.below(SPREAD)
}

/// The number of the request that is under way.
const ASKED: u64 = 7;

/// A host that stands by.
pub struct StandBy {
    outside: SimOutside,
    watch: Watch,
    asked: bool,
    pub rate: u64,
}

impl StandBy {
    pub fn new(bucket: &Bucket, random: &mut SplitMix64) -> StandBy {
        let rate = rate(random);
        StandBy { outside: bucket.client_at(&SimNotes::default(), rate), watch: Watch::default(), asked: false, rate }
    }

    /// Looks at the store, as far as that answers. Gives which anchor may be replaced now.
    pub fn look(&mut self) -> Option<AnchorId> {
        while let Some((_, answer)) = self.outside.answer() {
            self.asked = false;
            if let Answer::Anchor(bytes, _) = answer
                && let Ok(anchor) = Anchor::decode(&bytes)
            {
                self.watch.saw(&anchor, self.outside.steady_ms());
            }
        }
        if !self.asked {
            self.asked = true;
            self.outside.ask(ASKED, Ask::Fetch);
        }
        self.watch.lapsed(self.outside.steady_ms())
    }
}
