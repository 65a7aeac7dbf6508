//! What one seed decides: the shape of the device, the traffic and the faults.

use device::{MediaFormat, max_sectors};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::flashback::media_geometry;
use media::sim::Knobs;
use random::SplitMix64;
use uuid::Uuid;

/// What happens to a die.
#[derive(Clone, Copy, Debug)]
pub struct Faulty {
    /// Which die.
    pub die: u32,
    /// It fails as a whole; otherwise its sectors rot, cannot be read, or were never written where they should be.
    pub dies: bool,
    /// Once in so many requests.
    pub once_in: u64,
}

/// What a series of seeds is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Encrypt every format; otherwise about a third are.
    pub encrypted: bool,
    /// Parity everywhere, and dies that fail as a whole.
    pub die_loss: bool,
    /// Kill the process wherever that may be; otherwise only in seeds that also cut the power.
    pub kills: bool,
    /// Batches everywhere; otherwise about a fifth of the seeds have some.
    pub batches: bool,
    /// A sparse address space everywhere it can be; otherwise in about a seventh.
    pub sparse: bool,
    /// Snapshots everywhere they can be; otherwise nowhere.
    pub snapshots: bool,
    /// Other sizes in every seed; otherwise in none. Every other seed has snapshots besides, where they can be.
    pub resizes: bool,
    /// Devices on objects instead of everything else, see `objects`.
    pub objects: bool,
    /// Such devices have a lease, and a host stands by.
    pub leases: bool,
    /// Arrays of several devices instead of one.
    pub arrays: bool,
    /// Cached volumes: a device in front of another one.
    pub caches: bool,
    /// Moves of a device to another one, to and fro.
    pub moves: bool,
    /// Devices of zones.
    pub zones: bool,
    /// Say at the end what stands on the medium, see [`crate::Report::state`].
    pub digest: bool,
}

/// One simulation's choices. Swarm testing: each seed leaves some things out and overdoes others.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Shape of the medium.
    pub geometry: Geometry,
    /// The format.
    pub format: MediaFormat,
    /// Whether the medium must be erased before it is programmed again.
    pub flash: bool,
    /// Delays and faults of the medium.
    pub knobs: Knobs,
    /// Dies that something happens to; never more than there is parity.
    pub faulty: Vec<Faulty>,
    /// How often more of a stripe is damaged than redundancy makes up for. Then reads may fail, and an attach be refused, but nothing
    /// may be wrong.
    pub beyond: u32,
    /// Programs and syncs, or writes of superblocks, fail at times.
    pub errors: bool,
    /// Requests in all.
    pub requests: u32,
    /// Requests under way at once.
    pub depth: usize,
    /// A power cut once in so many requests; 0 for none.
    pub cut_once_in: u64,
    /// Two in three of them are no power cuts: the process dies, and the medium knows nothing of it.
    pub kills: bool,
    /// Clean detach once in so many requests; 0 for none.
    pub detach_once_in: u64,
    /// Weights of read, write, trim, flush, idle, zeroes.
    pub mix: [u64; 6],
    /// The host can address more than there is room for.
    pub sparse: bool,
    /// A batch of writes and trims once in so many requests; 0 for none.
    pub batch_once_in: u64,
    /// A snapshot is made, deleted, compared or rolled back to once in so many requests; 0 for never.
    pub snapshot_once_in: u64,
    /// The device gets another size once in so many requests; 0 for never.
    pub resize_once_in: u64,
    /// LEBs that it has at first.
    pub first_blocks: u32,
    /// There are clones, too: one in so many of these is about them; 0 for none.
    pub clone_once_in: u64,
    /// FUA once in so many changes; 0 for never.
    pub fua_once_in: u64,
    /// Largest request, sectors.
    pub largest: u32,
    /// Traffic goes to this many sectors at the beginning.
    pub span: u64,
}

impl Plan {
    /// The shape of the medium below.
    pub fn media_geometry(&self) -> Geometry {
        if self.geometry.parity == 0 { self.geometry } else { media_geometry(&self.geometry) }
    }

    /// Encrypts the format.
    fn encrypt(&mut self) {
        self.format.key = Some([7; 32]);
        self.geometry.trailer_bytes = device::SEALED_TRAILER_BYTES;
    }

    /// The plan of a seed.
    pub fn new(random: &mut SplitMix64, wish: &Wish) -> Plan {
        loop {
            let slots_per_page = 1 << random.below(5);
            let unit_bytes = 512 << random.below(4);
            let mut parity = [0, 0, 0, 0, 1, 1, 1, 2][random.below(8) as usize];
            if wish.die_loss {
                parity = parity.max(1);
            }
            let geometry = Geometry {
                dies: parity + 1 + random.below(4) as u32,
                parity,
                blocks: 24 + random.below(60) as u32,
                pages_per_block: 2 + random.below(8) as u32,
                slots_per_page,
                sector_bytes: 512,
                trailer_bytes: TRAILER_BYTES,
                unit_bytes,
            };
            let max_sectors = max_sectors(&geometry);
            let largest = geometry.slots_per_leb().saturating_sub(2).min(40);
            if largest == 0 || max_sectors < 8 {
                continue;
            }
            let largest = 1 + random.below(u64::from(largest)) as u32;
            // Often nearly full, since that is where things go wrong.
            let sectors = if random.one_in(2) { max_sectors } else { 8 + random.below(max_sectors - 7) };
            let largest = u64::from(largest).min(sectors) as u32;
            let format = MediaFormat {
                sectors,
                max_request_bytes: largest * 512,
                checkpoint_interval: 16 << random.below(10),
                policy: [Policy::Greedy, Policy::CostBenefit][random.below(2) as usize],
                uuid: Uuid::from_u128(u128::from(random.bits())),
                key: None,
            };
            // Half of the media are files: old content stands where a LEB is used again.
            // Parity of open stripes is written over and over, which flash does not take.
            let flash = random.one_in(2) && parity == 0;
            let beyond = if random.one_in(8) && !wish.die_loss { 1 + random.below(3) as u32 } else { 0 };
            // A program that failed is tried again at the same place, which flash does not take.
            let errors = random.one_in(5) && parity == 0 && !flash && beyond == 0;
            let knobs = Knobs {
                must_erase: flash,
                least_polls: random.below(3) as u32,
                spread_polls: random.below(40) as u32,
                slow: if random.one_in(6) { 1_000 << random.below(6) } else { 0 },
                no_space: if random.one_in(8) { 50_000 } else { 0 },
                program_error: if errors { 1 + random.below(3_000) as u32 } else { 0 },
                sync_error: if errors && random.one_in(2) { 10_000 } else { 0 },
                ..Knobs::default()
            };
            let mut mix = [0; 6];
            mix.iter_mut().for_each(|weight| *weight = if random.one_in(4) { 0 } else { 1 + random.below(20) });
            mix[1] += 4 + random.below(60);
            if random.one_in(12) {
                mix[2] += 200;
            }
            let mut faulty: Vec<Faulty> = Vec::new();
            while faulty.len() < parity as usize && !random.one_in(4) {
                let die = random.below(u64::from(geometry.dies)) as u32;
                if faulty.iter().all(|other| other.die != die) {
                    let dies = random.one_in(2);
                    faulty.push(Faulty { die, dies, once_in: 1 + random.below(if dies { 2000 } else { 60 }) });
                }
            }
            if wish.die_loss && !faulty.iter().any(|faulty| faulty.dies) {
                faulty.truncate(parity as usize - 1);
                let good = (0..geometry.dies).find(|die| faulty.iter().all(|other| other.die != *die));
                faulty.push(Faulty { die: good.unwrap_or(0), dies: true, once_in: 1 + random.below(200) });
            }
            if beyond > 0 {
                faulty.clear();
            }
            let mut plan = Plan {
                geometry,
                format,
                flash,
                knobs,
                faulty,
                beyond,
                errors,
                requests: if wish.die_loss { 100 + random.below(600) } else { 200 + random.below(2500) } as u32,
                depth: 1 + random.below(16) as usize,
                // What a power cut takes beyond redundancy cannot be told from what was damaged.
                cut_once_in: if random.one_in(8) || beyond > 0 { 0 } else { 20 + random.below(600) },
                kills: false,
                detach_once_in: if random.one_in(2) { 0 } else { 50 + random.below(1000) },
                mix,
                sparse: false,
                batch_once_in: 0,
                snapshot_once_in: 0,
                resize_once_in: 0,
                first_blocks: geometry.blocks,
                clone_once_in: 0,
                fua_once_in: if random.one_in(2) { 0 } else { 1 + random.below(20) },
                largest,
                span: if random.one_in(3) { sectors } else { 1 + random.below(sectors) },
            };
            // Chosen by what was drawn already, so that the rest of a seed's plan does not depend on it.
            let drawn = plan.format.uuid.as_u128() >> 32;
            let by_themselves = Policy::BY_THEMSELVES;
            plan.format.policy = by_themselves[(drawn % by_themselves.len() as u128) as usize];
            if (drawn / 17).is_multiple_of(9) {
                plan.format.policy = Policy::Placement;
            }
            // What a program under way left is written again at the same place, which flash does not take.
            let may_kill = !flash && !plan.errors && plan.beyond == 0;
            plan.kills = may_kill;
            // That a die is lost cannot always be put on record.
            if wish.die_loss && (drawn / 13).is_multiple_of(8) {
                (plan.errors, plan.kills) = (true, false);
                plan.knobs.label_error = 30_000;
            }
            if plan.kills && wish.kills && plan.cut_once_in == 0 {
                plan.cut_once_in = 200;
            }
            if wish.batches || drawn.is_multiple_of(5) {
                plan.batch_once_in = 2 + (drawn / 45 % 8) as u64;
            }
            if wish.resizes {
                plan.resize_once_in = 4 + (drawn / 7 % 60) as u64;
            }
            let snapshots = wish.snapshots || (wish.resizes && (drawn / 11).is_multiple_of(2));
            if snapshots && plan.beyond == 0 {
                plan.snapshot_once_in = 5 + (drawn / 360 % 60) as u64;
                // Half of them have something to spare.
                if (drawn / 21_600).is_multiple_of(2) {
                    plan.format.sectors = (plan.format.sectors / 2).max(8);
                    plan.span = plan.span.min(plan.format.sectors);
                    plan.largest = u64::from(plan.largest).min(plan.format.sectors) as u32;
                    plan.format.max_request_bytes = plan.largest * 512;
                }
            }
            // An address space of up to twice as many sectors as there are slots: it is full when the raw space is.
            if (wish.sparse || drawn % 7 == 3) && ftl::room(&geometry, u64::MAX) >= 8 {
                plan.sparse = true;
                plan.format.sectors = geometry.slots() + 1 + (drawn / 63) as u64 % geometry.slots();
                plan.span = if plan.span == sectors { plan.format.sectors } else { plan.span };
                if plan.format.policy.keeps_each_sector() {
                    plan.format.policy = Policy::Lifetime;
                }
            }
            // A device with clones keeps its size.
            if plan.snapshot_once_in > 0
                && plan.resize_once_in == 0
                && !plan.format.policy.keeps_each_sector()
                && !(drawn / 43_200).is_multiple_of(4)
            {
                plan.clone_once_in = 2 + (drawn / 172_800 % 3) as u64;
            }
            if wish.encrypted || plan.format.uuid.as_u128().is_multiple_of(3) {
                plan.encrypt();
            }
            return plan;
        }
    }
}
