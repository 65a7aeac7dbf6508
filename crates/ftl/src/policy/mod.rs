//! What the groomer decides: which LEB it takes next, and in which stream each sector is written. One trait, one file for each policy.

mod cache;
mod cost_benefit;
mod d_choices;
mod dac;
mod fifo;
mod greedy;
mod lifetime;
mod midas;
mod placement;
mod sepbit;
mod victims;
mod view;

use std::ops::Range;

pub use cache::Cache;
pub use cost_benefit::CostBenefit;
pub use d_choices::DChoices;
pub use dac::Dac;
pub use fifo::Fifo;
pub use greedy::Greedy;
pub use lifetime::Lifetime;
pub use midas::Midas;
pub use placement::Placement;
pub use sepbit::SepBit;
pub use view::{Eligible, LebView};
pub(crate) use view::{gains, spare};

use crate::leb::{Times, ZONE_STREAMS};
use crate::owners::{Places, Quota};
use crate::slots::{NOTE_BITS, Notes, UNNOTED};
use crate::types::LebId;

/// What a policy is made for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Host sectors.
    pub sectors: u64,
    /// LEBs of the module.
    pub lebs: u32,
    /// Slots of a LEB.
    pub slots_per_leb: u32,
    /// The most streams that there is room for, at least 2. A policy that would use more folds its last ones together.
    pub streams: u8,
}

/// What is known of a sector before it is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old {
    /// When the host wrote it last, by the host's clock, if it did so where it lies now; right but for a few sectors.
    pub written: u64,
    /// The mean of these moments for what the groomer moved to the same LEB; where it moved nothing there, the same moment.
    pub moved: u64,
    /// The note of it: see [`GroomPolicy::note_bits`].
    pub note: u8,
}

/// A host write. The clock counts sectors that the host wrote.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// First sector.
    pub lba: u64,
    /// When.
    pub now: u64,
    /// With what the host says that it belongs together; 0 where it says nothing.
    pub placement: u8,
    /// What is known of each of its sectors; `None` where none is mapped.
    pub olds: &'a [Option<Old>],
}

/// A sector that the groomer moves.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// Which sector.
    pub lba: u64,
    /// When.
    pub now: u64,
    /// The note of it: see [`GroomPolicy::note_bits`].
    pub note: u8,
    /// The LEB that it leaves.
    pub leb: LebId,
    /// When that was written.
    pub times: &'a Times,
    /// The stream that wrote it.
    pub stream: u8,
}

/// Where a sector goes that the groomer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The stream.
    pub stream: u8,
    /// When the host wrote the sector last, as far as that is known.
    pub written: u64,
    /// The note of it from now on.
    pub note: u8,
}

impl Destination {
    /// This stream, for a sector of which nothing is known.
    pub fn of(stream: u8) -> Destination {
        Destination { stream, written: 0, note: UNNOTED }
    }
}

/// A policy: chooses LEBs to groom, and streams for what is written. Streams are numbered from 0.
pub trait GroomPolicy: Send {
    /// Its name in configuration.
    fn name(&self) -> &'static str;

    /// The module has another shape, with the same streams, and goes on. Whoever keeps something of each sector or LEB makes room.
    fn reshaped(&mut self, shape: &Shape) {
        let _ = shape;
    }

    /// The streams that host writes go to, from the first on.
    fn host_streams(&self) -> u8 {
        1
    }

    /// All streams that it uses.
    fn streams(&self) -> u8 {
        2
    }

    /// Whether it wants to hear of every write, move and trim: the methods from here on are called for nothing else.
    fn learns(&self) -> bool {
        false
    }

    /// Bits of the note that the layer keeps with every live sector for it, from 1 to [`NOTE_BITS`]. No note is zero. All are [`UNNOTED`] until
    /// it says otherwise, also those of what was there when the device was attached.
    fn note_bits(&self) -> u32 {
        1
    }

    /// Where a write goes, if it can be taken.
    fn place(&mut self, write: &Write) -> u8 {
        let _ = write;
        0
    }

    /// A write was taken: the one that [`GroomPolicy::place`] was asked about last. Who keeps notes fills in those of its sectors.
    fn wrote(&mut self, write: &Write, notes: &mut [u8]) {
        let _ = (write, notes);
    }

    /// Where a sector that the groomer moves goes. Asked once for each; of every policy.
    fn place_moved(&mut self, moved: &Moved) -> Destination {
        let _ = moved;
        Destination::of(1)
    }

    /// The host read a sector of a cache: the note of it from now on.
    fn read(&self, note: u8) -> u8 {
        note
    }

    /// Volumes share the cache from now on, by these places and quotas in their order; or none does.
    fn share(&mut self, among: Option<(Places, Vec<Quota>)>) {
        let _ = among;
    }

    /// A sector of one of them was read.
    fn asked(&mut self, lba: u64) {
        let _ = lba;
    }

    /// Whether a sector that may be lost is left behind instead of being moved.
    fn leaves_behind(&self, moved: &Moved) -> bool {
        let _ = moved;
        false
    }

    /// It was left behind, and had this note.
    fn left_behind(&mut self, lba: u64, note: u8) {
        let _ = (lba, note);
    }

    /// The LEBs of a cache that [`GroomPolicy::visit`] is called for, of so many: asked before each choice of a victim.
    fn to_visit(&mut self, lebs: u32) -> Range<LebId> {
        let _ = lebs;
        0..0
    }

    /// Looks through the notes of a LEB of a cache, written by this stream, and may change them.
    fn visit(&mut self, leb: LebId, stream: u8, notes: &mut Notes) {
        let _ = (leb, stream, notes);
    }

    /// Sectors were trimmed.
    fn trimmed(&mut self, lba: u64, count: u64) {
        let _ = (lba, count);
    }

    /// One of them was there, and had this note.
    fn discarded(&mut self, note: u8) {
        let _ = note;
    }

    /// The stream opened a LEB.
    fn opened(&mut self, leb: LebId, stream: u8) {
        let _ = (leb, stream);
    }

    /// The stream's LEB is full, or was given up.
    fn closed(&mut self, leb: LebId, stream: u8) {
        let _ = (leb, stream);
    }

    /// The groomer takes a LEB.
    fn took(&mut self, victim: &LebView) {
        let _ = victim;
    }

    /// How much it is worth to groom this LEB now. It has live sectors.
    fn score(&self, leb: &LebView) -> f64;

    /// The LEB to groom next, of those that may be: one without live sectors, or else the one of the highest score.
    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        eligible.best(|leb| self.score(leb))
    }

    /// Takes all the memory that it can ever need now.
    fn preallocate(&mut self) {}

    /// Checks what it counted against how many live sectors there are of each note. For tests.
    ///
    /// # Errors
    /// What does not agree, in words.
    fn verify(&self, noted: &[u64; 1 << NOTE_BITS]) -> Result<(), String> {
        let _ = noted;
        Ok(())
    }

    /// What it holds in memory, bytes.
    fn memory(&self) -> usize {
        0
    }
}

/// The policies that can be configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Policy {
    /// [`Greedy`], with what the groomer moves in a stream of its own.
    Greedy = 0,
    /// [`CostBenefit`].
    CostBenefit = 1,
    /// [`Fifo`].
    Fifo = 2,
    /// [`Greedy`] with everything in one stream.
    GreedyOneStream = 3,
    /// [`DChoices`].
    DChoices = 4,
    /// [`Dac`].
    Dac = 5,
    /// [`SepBit`].
    SepBit = 6,
    /// [`Midas`].
    Midas = 7,
    /// [`Lifetime`].
    #[default]
    Lifetime = 8,
    /// [`Placement`], the layer's own.
    Placement = 9,
    /// [`Placement`], as the drives have it that can be bought.
    PlacementInitial = 10,
    /// The same, a handle for each active zone: of devices of zones, and of no others.
    Zones = 11,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 12] = [
        Policy::Greedy,
        Policy::CostBenefit,
        Policy::Fifo,
        Policy::GreedyOneStream,
        Policy::DChoices,
        Policy::Dac,
        Policy::SepBit,
        Policy::Midas,
        Policy::Lifetime,
        Policy::Placement,
        Policy::PlacementInitial,
        Policy::Zones,
    ];
    /// Those that need no word of the host's: all but the last three, which go by placements and zones.
    pub const BY_THEMSELVES: &[Policy] = Policy::ALL.split_at(Policy::ALL.len() - 3).0;

    /// Whether it goes by what the host says that belongs together.
    pub fn goes_by_placements(self) -> bool {
        matches!(self, Policy::Placement | Policy::PlacementInitial | Policy::Zones)
    }

    /// The policy of that name.
    pub fn from_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The policy of that number in the superblock.
    pub fn from_code(code: u8) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.code() == code)
    }

    /// Its number in the superblock.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The most streams of host sectors that it uses where there is room.
    pub fn streams(self) -> u8 {
        match self {
            Policy::GreedyOneStream => 1,
            Policy::Greedy | Policy::CostBenefit | Policy::Fifo | Policy::DChoices => 2,
            Policy::Dac | Policy::SepBit | Policy::Midas | Policy::Lifetime => 6,
            // Six handles and three streams of what is moved; and eight handles, as the drives have that can be bought, and one.
            Policy::Placement | Policy::PlacementInitial => 9,
            Policy::Zones => ZONE_STREAMS,
        }
    }

    /// Whether it keeps something of every sector that the host can address.
    pub fn keeps_each_sector(self) -> bool {
        matches!(self, Policy::Dac | Policy::SepBit)
    }

    pub(crate) fn build(self, shape: &Shape) -> Box<dyn GroomPolicy> {
        match self {
            Policy::Greedy => Box::new(Greedy { streams: 2 }),
            Policy::CostBenefit => Box::new(CostBenefit),
            Policy::Fifo => Box::new(Fifo),
            Policy::GreedyOneStream => Box::new(Greedy { streams: 1 }),
            Policy::DChoices => Box::new(DChoices::new()),
            Policy::Dac => Box::new(Dac::new(shape)),
            Policy::SepBit => Box::new(SepBit::new(shape)),
            Policy::Midas => Box::new(Midas::new(shape)),
            Policy::Lifetime => Box::new(Lifetime::new(shape)),
            Policy::Placement => Box::new(Placement::new(shape)),
            Policy::PlacementInitial => Box::new(Placement::initial(shape)),
            Policy::Zones => Box::new(Placement::zones(shape)),
        }
    }

    /// Its name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Greedy => "greedy",
            Policy::CostBenefit => "cost-benefit",
            Policy::Fifo => "fifo",
            Policy::GreedyOneStream => "greedy-one-stream",
            Policy::DChoices => "d-choices",
            Policy::Dac => "dac",
            Policy::SepBit => "sepbit",
            Policy::Midas => "midas",
            Policy::Lifetime => "lifetime",
            Policy::Placement => "placement",
            Policy::PlacementInitial => "placement-initial",
            Policy::Zones => "zones",
        }
    }
}
