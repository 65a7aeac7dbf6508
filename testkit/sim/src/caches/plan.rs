//! What one seed decides.

use cache::{Header, Layout, Mode};
use device::Quota;
use ftl::Policy;
use random::SplitMix64;
use uuid::Uuid;

use crate::arrays::{MemberPlan, SECTOR};

/// Sectors of the cache device: far more than it has room for.
const CACHE_SECTORS: u64 = 1 << 17;

/// One simulation's choices.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub cache: MemberPlan,
    pub behind: MemberPlan,
    pub header: Header,
    /// Which of the cache device's headers the volume has.
    pub number: u64,
    pub max_request: u32,
    pub room: u64,
    pub dirty_limit: u64,
    pub looks_at_once: bool,
    pub requests: u32,
    pub depth: usize,
    /// Both lose power once in so many requests; 0 for never.
    pub cut_once_in: u64,
    /// One of them does.
    pub lose_once_in: u64,
    /// The service dies.
    pub kill_once_in: u64,
    /// The volume is stopped and opened again, now and then with another mode.
    pub stop_once_in: u64,
    /// Copies are lost.
    pub evict_once_in: u64,
    /// Weights of read, write, trim, flush, tick, write back.
    pub mix: [u64; 6],
    pub fua_once_in: u64,
    /// Traffic goes to this many sectors from `first` on.
    pub first: u64,
    pub span: u64,
}

impl Plan {
    /// What the volume may have of its cache, in some simulations; another volume has a share, too, and asks for nothing.
    pub fn quotas(&self) -> Vec<Quota> {
        let layout = self.header.layout;
        let own = layout.base..layout.base + layout.span();
        let limit = self.dirty_limit.is_multiple_of(4).then_some(4 * self.dirty_limit);
        match self.dirty_limit % 2 {
            0 => vec![
                Quota { sectors: own, share: 100, limit },
                Quota { sectors: 0..layout.base, share: 300, limit: None },
            ],
            _ => Vec::new(),
        }
    }

    pub fn new(random: &mut SplitMix64) -> Plan {
        loop {
            let mut cache = MemberPlan::new(random);
            let behind = MemberPlan::new(random);
            if ftl::room(&cache.geometry, u64::MAX) < 64 {
                continue;
            }
            cache.format.sectors = CACHE_SECTORS;
            if cache.format.policy.keeps_each_sector() {
                cache.format.policy = Policy::Lifetime;
            }
            let sectors = behind.format.sectors;
            // Marks take room, too.
            let room = ftl::room(&cache.geometry, CACHE_SECTORS);
            let shift = Layout::region_shift(sectors, (1 << random.below(8)).max(sectors.div_ceil(room / 8)));
            let other =
                Layout { half: CACHE_SECTORS / 2, base: 4096, sectors: 1 + random.below(5000), region_shift: 3 };
            let others = if random.one_in(2) { vec![other] } else { Vec::new() };
            let Some(layout) = Layout::place(CACHE_SECTORS, sectors, shift, &others) else { continue };
            let mode = Mode::ALL[random.below(3) as usize];
            let largest = |plan: &MemberPlan| plan.format.max_request_bytes / SECTOR as u32;
            let rarely = |random: &mut SplitMix64, never: u64, least: u64, more: u64| {
                if random.one_in(never) { 0 } else { least + random.below(more) }
            };
            let span = if random.one_in(3) { sectors } else { (1 + random.below(sectors)).clamp(8, 200).min(sectors) };
            let mut mix = [0; 6];
            mix.iter_mut().for_each(|weight| *weight = if random.one_in(4) { 0 } else { 1 + random.below(20) });
            mix[0] += 4 + random.below(40);
            mix[1] += 4 + random.below(40);
            return Plan {
                header: Header {
                    uuid: Uuid::from_u128(u128::from(random.bits())),
                    name: "simulated".into(),
                    mode,
                    sector_bytes: SECTOR as u32,
                    layout,
                    witness: None,
                },
                number: others.len() as u64,
                max_request: largest(&cache).min(largest(&behind) + 1) - 1,
                room,
                dirty_limit: 1 + random.below(room / 2),
                looks_at_once: random.one_in(2),
                requests: 150 + random.below(900) as u32,
                depth: 1 + random.below(12) as usize,
                cut_once_in: rarely(random, 8, 20, 300),
                lose_once_in: rarely(random, 3, 20, 300),
                kill_once_in: rarely(random, 2, 50, 500),
                stop_once_in: rarely(random, 2, 50, 500),
                evict_once_in: rarely(random, 4, 1, 30),
                mix,
                fua_once_in: rarely(random, 2, 1, 20),
                first: random.below(sectors - span + 1),
                span,
                cache,
                behind,
            };
        }
    }
}
