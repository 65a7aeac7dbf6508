//! What one seed decides.

use device::{MediaFormat, max_sectors};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::object::Limits;
use media::object::sim::Knobs as StoreKnobs;
use media::sim::Knobs;
use random::SplitMix64;
use uuid::Uuid;

use super::price::Priced;

/// One simulation's choices.
#[derive(Clone, Debug)]
pub struct ObjectsPlan {
    pub geometry: Geometry,
    pub format: MediaFormat,
    /// Of the hosts' disks.
    pub disk: Knobs,
    pub store: StoreKnobs,
    pub limits: Limits,
    /// Its LEBs are paid for.
    pub priced: Option<Priced>,
    pub requests: u32,
    /// How often each happens, once in so many requests; 0 for never.
    pub cut_once_in: u64,
    pub loss_once_in: u64,
    pub move_once_in: u64,
    /// The longest request, sectors.
    pub largest: u64,
    /// Traffic goes to this many sectors at the beginning.
    pub span: u64,
    /// Milliseconds between two requests at most.
    pub pace_ms: u64,
}

impl ObjectsPlan {
    pub fn new(random: &mut SplitMix64) -> ObjectsPlan {
        loop {
            let geometry = Geometry {
                dies: 1,
                parity: 0,
                blocks: 24 + random.below(40) as u32,
                pages_per_block: 2 + random.below(6) as u32,
                slots_per_page: 1 << (1 + random.below(4)),
                sector_bytes: 512,
                trailer_bytes: TRAILER_BYTES,
                unit_bytes: 512 << random.below(3),
            };
            let most = max_sectors(&geometry);
            let largest = u64::from(geometry.slots_per_leb().saturating_sub(2).min(24));
            if largest == 0 || most < 8 {
                continue;
            }
            let sectors = if random.one_in(2) { most } else { 8 + random.below(most - 7) };
            let largest = (1 + random.below(largest)).min(sectors);
            let often = |random: &mut SplitMix64, least: u64, spread: u64| match random.one_in(4) {
                true => 0,
                false => least + random.below(spread),
            };
            let rare = |random: &mut SplitMix64| match random.below(3) {
                0 => 0,
                _ => 1 + random.below(60_000) as u32,
            };
            return ObjectsPlan {
                format: MediaFormat {
                    sectors,
                    max_request_bytes: largest as u32 * 512,
                    checkpoint_interval: 16 << random.below(8),
                    policy: [Policy::Greedy, Policy::Lifetime, Policy::SepBit][random.below(3) as usize],
                    uuid: Uuid::from_u128(u128::from(random.bits())),
                    key: None,
                },
                disk: Knobs {
                    least_polls: random.below(3) as u32,
                    spread_polls: random.below(20) as u32,
                    ..Knobs::default()
                },
                store: StoreKnobs {
                    latency_ms: random.below(300),
                    refused: rare(random),
                    lost: rare(random),
                    delayed: rare(random),
                    doubled: rare(random),
                    hangs: if random.one_in(4) { 2000 } else { 0 },
                    slow: if random.one_in(4) { 10_000 } else { 0 },
                    careless: false,
                },
                priced: None,
                limits: super::limits(random, geometry.block_bytes()),
                requests: 60 + random.below(500) as u32,
                cut_once_in: often(random, 30, 300),
                loss_once_in: often(random, 30, 300),
                move_once_in: often(random, 60, 400),
                largest,
                span: if random.one_in(3) { sectors } else { 1 + random.below(sectors) },
                pace_ms: 1 + random.below(60),
                geometry,
            };
        }
    }
}
