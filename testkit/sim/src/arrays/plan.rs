//! What one seed decides.

use array::{Level, Member, Shape};
use device::{MediaFormat, max_sectors};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::sim::Knobs;
use random::SplitMix64;
use uuid::Uuid;

/// Sector size of all members, bytes.
pub(crate) const SECTOR: usize = 512;

/// A member's shape.
#[derive(Clone, Debug)]
pub(crate) struct MemberPlan {
    pub geometry: Geometry,
    pub format: MediaFormat,
    pub knobs: Knobs,
}

impl MemberPlan {
    pub fn new(random: &mut SplitMix64) -> MemberPlan {
        let geometry = Geometry {
            dies: 1 + random.below(2) as u32,
            parity: 0,
            blocks: 24 + random.below(30) as u32,
            pages_per_block: 4 + random.below(6) as u32,
            slots_per_page: 4 << random.below(2),
            sector_bytes: SECTOR as u32,
            trailer_bytes: TRAILER_BYTES,
            unit_bytes: 512 << random.below(3),
        };
        let largest = geometry.slots_per_leb().saturating_sub(2).min(24 + random.below(20) as u32);
        let format = MediaFormat {
            sectors: max_sectors(&geometry),
            max_request_bytes: largest * SECTOR as u32,
            checkpoint_interval: 16 << random.below(6),
            policy: Policy::BY_THEMSELVES[random.below(Policy::BY_THEMSELVES.len() as u64) as usize],
            uuid: Uuid::from_u128(u128::from(random.bits()) << 64 | u128::from(random.bits())),
            key: None,
        };
        let knobs = Knobs {
            must_erase: false,
            least_polls: random.below(2) as u32,
            spread_polls: random.below(30) as u32,
            slow: if random.one_in(6) { 1_000 << random.below(6) } else { 0 },
            ..Knobs::default()
        };
        MemberPlan { geometry, format, knobs }
    }

    /// Has room for several times as much as the host sees, for snapshots.
    pub fn with_room(mut self) -> MemberPlan {
        self.format.sectors /= 4;
        self
    }

    /// As the array is told of it.
    pub fn member(&self) -> Member {
        Member {
            uuid: self.format.uuid,
            sectors: self.format.sectors,
            sector_bytes: SECTOR as u32,
            max_request_bytes: self.format.max_request_bytes,
        }
    }
}

/// How an array grows. Its choices have a generator of their own, so that all else is the same with and without it.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    pub random: SplitMix64,
    /// Devices that may be added.
    pub devices: u32,
    /// One is, once in so many requests.
    pub once_in: u64,
    /// While one is, or stripes are laid out over it, all lose power once in so many requests; 0 for never.
    pub cut_once_in: u64,
    /// The service dies once in so many requests; 0 for never.
    pub kill_once_in: u64,
    /// The one that is being added goes once in so many requests; 0 for never.
    pub lose_once_in: u64,
}

impl Growth {
    /// Of a seed; half of them have an array that grows.
    fn new(seed: u64) -> Growth {
        let mut random = SplitMix64::new(!seed);
        let mut rarely = |least: u64, more: u64| if random.one_in(3) { 0 } else { least + random.below(more) };
        let (cut_once_in, kill_once_in, lose_once_in) = (rarely(4, 60), rarely(40, 400), rarely(2, 60));
        let devices = if random.one_in(2) { 1 + random.below(3) as u32 } else { 0 };
        let kill_once_in = if devices > 0 { kill_once_in } else { 0 };
        let once_in = 5 + random.below(120);
        Growth { random, devices, once_in, cut_once_in, kill_once_in, lose_once_in }
    }
}

/// One simulation's choices.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub growth: Growth,
    pub shape: Shape,
    pub members: Vec<MemberPlan>,
    pub requests: u32,
    pub depth: usize,
    /// All lose power once in so many requests; 0 for never.
    pub cut_once_in: u64,
    /// One member is lost once in so many requests; 0 for never.
    pub lose_once_in: u64,
    /// One that is gone comes back once in so many requests.
    pub return_once_in: u64,
    /// A member refuses what it is asked once in so many of its requests; 0 for never.
    pub error_once_in: u64,
    /// A sector of one copy becomes unreadable once in so many requests; 0 for never.
    pub spoil_once_in: u64,
    /// The array stops and is assembled again once in so many requests; 0 for never.
    pub stop_once_in: u64,
    /// Weights of read, write, trim, flush, tick, batch.
    pub mix: [u64; 6],
    pub fua_once_in: u64,
    /// Traffic goes to this many sectors from `first` on.
    pub first: u64,
    pub span: u64,
}

impl Plan {
    pub fn new(seed: u64, has_snapshots: bool, random: &mut SplitMix64) -> Plan {
        let growth = Growth::new(seed);
        loop {
            let level = [Level::Raid0, Level::Raid1, Level::Concat][random.below(3) as usize];
            let count = match level {
                Level::Raid1 => 2 + random.below(2),
                _ => 2 + random.below(3),
            };
            let mut members: Vec<MemberPlan> = (0..count).map(|_| MemberPlan::new(random)).collect();
            if has_snapshots {
                members = members.into_iter().map(MemberPlan::with_room).collect();
            }
            if random.one_in(2) {
                let alike = members[0].clone();
                members.iter_mut().for_each(|member| {
                    let uuid = member.format.uuid;
                    *member = alike.clone();
                    member.format.uuid = uuid;
                });
            }
            let known: Vec<Member> = members.iter().map(MemberPlan::member).collect();
            let stripe = (SECTOR as u64) << random.below(5);
            let region = (SECTOR as u64) << random.below(7);
            let Ok(shape) = Shape::new(level, &known, stripe, region) else { continue };
            let sectors = shape.sectors();
            // Often around the place where one member ends and the next begins.
            let edge = shape.data[0].min(sectors - 1);
            let span = if random.one_in(3) { sectors } else { (1 + random.below(sectors)).clamp(8, 200).min(sectors) };
            let first = match level {
                Level::Concat => edge.saturating_sub(span / 2).min(sectors - span),
                _ => random.below(sectors - span + 1),
            };
            let mut mix = [0; 6];
            mix.iter_mut().for_each(|weight| *weight = if random.one_in(4) { 0 } else { 1 + random.below(20) });
            mix[1] += 4 + random.below(60);
            let rarely = |random: &mut SplitMix64, never: u64, least: u64, more: u64| {
                if random.one_in(never) { 0 } else { least + random.below(more) }
            };
            return Plan {
                growth,
                shape,
                members,
                requests: 150 + random.below(900) as u32,
                depth: 1 + random.below(12) as usize,
                cut_once_in: rarely(random, 8, 20, 300),
                lose_once_in: rarely(random, 2, 30, 300),
                return_once_in: 1 + random.below(80),
                error_once_in: if level == Level::Raid1 { rarely(random, 2, 50, 900) } else { 0 },
                spoil_once_in: if level == Level::Raid1 { rarely(random, 2, 5, 60) } else { 0 },
                stop_once_in: rarely(random, 2, 50, 500),
                mix,
                fua_once_in: rarely(random, 2, 1, 20),
                first,
                span,
            };
        }
    }
}
