//! How the array's sectors lie on its members, and where each member keeps what belongs to the array.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ShapeError;
use crate::wire::{BITMAP_HEAD, SUPERBLOCK_BYTES};

/// Members of RAID 0 and of a concatenation at most.
pub const MEMBERS_MAX: usize = 8;
/// Copies of a mirror at most.
pub const MIRRORS_MAX: usize = 3;

/// The largest request that an array takes, bytes. A member takes twice as much in a batch: its own piece and the record.
const REQUEST_MAX: u32 = 512 << 10;
/// The largest stripe, bytes.
const STRIPE_MAX: u64 = 64 << 20;
/// Regions of a mirror at most: the map of them stays in a few sectors.
const REGIONS_MAX: u64 = 1 << 16;
/// Records of the intent log at most.
const LOG_SLOTS: u64 = 64;

/// How members make one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Stripes in turn.
    Raid0,
    /// Each member holds everything.
    Raid1,
    /// One behind the other.
    Concat,
}

impl Level {
    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Raid0 => "raid0",
            Level::Raid1 => "raid1",
            Level::Concat => "concat",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Level::Raid0 => "RAID 0",
            Level::Raid1 => "RAID 1",
            Level::Concat => "a concatenation",
        }
    }

    /// From its name.
    pub fn from_name(name: &str) -> Option<Level> {
        [Level::Raid0, Level::Raid1, Level::Concat].into_iter().find(|level| level.name() == name)
    }

    /// The fewest and the most members.
    pub fn members(self) -> (usize, usize) {
        (2, if self == Level::Raid1 { MIRRORS_MAX } else { MEMBERS_MAX })
    }
}

/// What an array must know of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its identity.
    pub uuid: Uuid,
    /// Its host capacity.
    pub sectors: u64,
    /// Its sector size, bytes.
    pub sector_bytes: u32,
    /// The largest batch that it never tears, bytes.
    pub max_request_bytes: u32,
}

/// What changes only when members are added: everything follows from it where each sector lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How members make one device.
    pub level: Level,
    /// Sector size, bytes.
    pub sector_bytes: u32,
    /// Sectors of a stripe; of a concatenation and a mirror 0.
    pub stripe: u64,
    /// The largest request, sectors.
    pub largest: u32,
    /// Sectors of data on each member.
    pub data: Vec<u64>,
    /// Sectors of each member.
    pub members: Vec<u64>,
    /// Sectors of a region of a mirror, as a power of two.
    pub region_shift: u32,
    /// Records of the intent log.
    pub log_slots: u32,
    /// Of RAID 0 whose stripes are being laid out over one more member: how many are, from the first on. The others lie on all members
    /// but the last.
    pub moved: Option<u64>,
}

/// A part of a request that lies on one member in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub member: usize,
    pub lba: u64,
    /// Sectors of the request before it.
    pub before: u64,
    pub count: u64,
}

impl Shape {
    /// The shape of an array of these devices. `stripe_bytes` is of account for RAID 0 only; `least_region` is the smallest region of
    /// a mirror that is kept in step by itself, bytes, a power of two.
    ///
    /// # Errors
    /// What does not fit.
    pub fn new(level: Level, members: &[Member], stripe_bytes: u64, least_region: u64) -> Result<Shape, ShapeError> {
        let count = members.len();
        let (least, most) = level.members();
        if count < least || count > most {
            return Err(ShapeError::Count { level, count, least, most });
        }
        for (second, member) in members.iter().enumerate() {
            if let Some(first) = members[..second].iter().position(|other| other.uuid == member.uuid) {
                return Err(ShapeError::Twice { first, second });
            }
        }
        let sector_bytes = members[0].sector_bytes;
        let other = members.iter().position(|member| member.sector_bytes != sector_bytes);
        if let Some(member) = other {
            let found = members[member].sector_bytes;
            return Err(ShapeError::Sectors { member, found, expected: sector_bytes });
        }
        let sector = u64::from(sector_bytes);
        let stripe = match level {
            Level::Raid0 if stripe_bytes.is_power_of_two() && (sector..=STRIPE_MAX).contains(&stripe_bytes) => {
                stripe_bytes / sector
            }
            Level::Raid0 => return Err(ShapeError::Stripe { bytes: stripe_bytes, least: sector, most: STRIPE_MAX }),
            Level::Raid1 | Level::Concat => 0,
        };
        let (smallest, requests) = smallest_requests(members);
        let batch = u64::from(requests / sector_bytes);
        if batch < 4 {
            let needed = 4 * sector_bytes;
            return Err(ShapeError::Requests { member: smallest, found: requests, needed });
        }
        // In a batch stand the request and its record, or the request and the marks of two regions.
        let room = 1 << (batch - if level == Level::Raid1 { 2 } else { 1 }).ilog2();
        let largest = u64::from(REQUEST_MAX / sector_bytes).min(room);
        let largest = if stripe > 0 { largest.min(stripe) } else { largest };
        let mut shape = Shape {
            level,
            sector_bytes,
            stripe,
            largest: largest as u32,
            data: Vec::new(),
            members: members.iter().map(|member| member.sectors).collect(),
            region_shift: (least_region / sector).max(largest).max(1).ilog2(),
            log_slots: 0,
            moved: None,
        };
        let (member, sectors) =
            members.iter().map(|member| member.sectors).enumerate().min_by_key(|(_, n)| *n).unwrap_or((0, 0));
        if level == Level::Raid1 {
            // A batch of the largest size has room for all marks besides.
            let regions_max = REGIONS_MAX.min((batch - largest) * shape.bits_in_sector());
            while sectors.div_ceil(1 << shape.region_shift) > regions_max {
                shape.region_shift += 1;
            }
        } else {
            // A sixteenth of the smallest member at most.
            shape.log_slots = (sectors / 16 / (1 + largest)).clamp(2, LOG_SLOTS) as u32;
        }
        let grain = if stripe > 0 { stripe } else { largest };
        let own = shape.own_sectors(sectors);
        if sectors < own + grain {
            return Err(ShapeError::Small { member, sectors, needed: own + grain });
        }
        shape.data = match level {
            Level::Concat => members.iter().map(|one| (one.sectors - own) / grain * grain).collect(),
            Level::Raid0 => vec![(sectors - own) / grain * grain; count],
            Level::Raid1 => vec![sectors - own; count],
        };
        Ok(shape)
    }

    /// The shape with one more member. RAID 0 has its stripes where they were, and none is laid out over all members yet.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn grown(&self, new: &Member) -> Result<Shape, ShapeError> {
        let member = self.count();
        let (least, most) = self.level.members();
        if member >= most {
            return Err(ShapeError::Count { level: self.level, count: member + 1, least, most });
        }
        self.takes(member, new)?;
        let mut shape = self.clone();
        shape.data.push(match self.level {
            Level::Concat => {
                let grain = u64::from(self.largest);
                (new.sectors - self.own_sectors(0)) / grain * grain
            }
            Level::Raid0 | Level::Raid1 => self.data[0],
        });
        shape.members.push(new.sectors);
        shape.moved = (self.level == Level::Raid0).then_some(0);
        Ok(shape)
    }

    /// Whether a device can be this member, of a mirror also in the place of another one.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn takes(&self, member: usize, new: &Member) -> Result<(), ShapeError> {
        if new.sector_bytes != self.sector_bytes {
            return Err(ShapeError::Sectors { member, found: new.sector_bytes, expected: self.sector_bytes });
        }
        // In a batch stand the largest request and its record, or the marks of two regions, or all marks.
        let beside = if self.level == Level::Raid1 { self.bitmap_sectors().max(2) } else { 1 };
        let needed = (u64::from(self.largest) + beside) as u32 * self.sector_bytes;
        if new.max_request_bytes < needed {
            return Err(ShapeError::Requests { member, found: new.max_request_bytes, needed });
        }
        let data = if self.level == Level::Concat { u64::from(self.largest) } else { self.data[0] };
        let needed = data + self.own_sectors(self.data[0]);
        if new.sectors < needed {
            return Err(ShapeError::Less { member, sectors: new.sectors, needed });
        }
        Ok(())
    }

    /// Sectors that the array keeps of a member.
    fn own_sectors(&self, smallest: u64) -> u64 {
        1 + self.bitmap_sectors_of(smallest) + u64::from(self.log_slots) * (1 + u64::from(self.largest))
    }

    fn bitmap_sectors_of(&self, data: u64) -> u64 {
        match self.level {
            Level::Raid1 => data.div_ceil(1 << self.region_shift).div_ceil(self.bits_in_sector()),
            _ => 0,
        }
    }

    /// Regions whose marks stand in one sector.
    pub(crate) fn bits_in_sector(&self) -> u64 {
        (u64::from(self.sector_bytes) - BITMAP_HEAD as u64) * 8
    }

    /// How many members.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Sectors that the host sees.
    pub fn sectors(&self) -> u64 {
        match self.level {
            Level::Raid1 => self.data[0],
            _ => self.data[..self.count() - usize::from(self.moved.is_some())].iter().sum(),
        }
    }

    /// What all members have, bytes.
    pub fn raw_bytes(&self) -> u64 {
        self.members.iter().sum::<u64>() * u64::from(self.sector_bytes)
    }

    /// Of RAID 0: stripes that the host sees.
    pub(crate) fn stripes(&self) -> u64 {
        self.sectors() / self.stripe.max(1)
    }

    /// Over how many members a stripe is laid out.
    fn width(&self, stripe: u64) -> u64 {
        let is_narrow = self.moved.is_some_and(|moved| stripe >= moved);
        (self.count() - usize::from(is_narrow)) as u64
    }

    /// Where a stripe begins that is laid out over so many members.
    pub(crate) fn stripe_at(&self, stripe: u64, width: u64) -> (usize, u64) {
        ((stripe % width) as usize, stripe / width * self.stripe)
    }

    /// Before which stripe those from the mark on may be laid out anew, until the mark is raised durably: their new places hold only
    /// stripes below the mark, which have been moved, or nothing, or those stripes themselves.
    pub(crate) fn window_end(&self, mark: u64) -> u64 {
        let before = self.count() as u64 - 1;
        let last = mark.saturating_sub(1);
        // The new place of this stripe holds the last one below the mark; behind each full row follows one on the new member.
        let end = last + last / before + 1 + u64::from(last % before == before - 1);
        end.max(before + 1).min(self.stripes())
    }

    /// How many regions.
    pub(crate) fn regions(&self) -> usize {
        match self.level {
            Level::Raid1 => self.data[0].div_ceil(1 << self.region_shift) as usize,
            _ => 0,
        }
    }

    /// How many sectors hold their marks.
    pub(crate) fn bitmap_sectors(&self) -> u64 {
        (self.regions() as u64).div_ceil(self.bits_in_sector())
    }

    /// Where the sector with those marks lies on a member.
    pub(crate) fn bitmap_at(&self, member: usize, index: u64) -> u64 {
        self.own_from(member) + index
    }

    /// Where a record of the log lies on a member: its head, and behind it the data.
    pub(crate) fn slot_at(&self, member: usize, slot: usize) -> u64 {
        self.own_from(member) + self.bitmap_sectors() + slot as u64 * (1 + u64::from(self.largest))
    }

    /// The first sector of a member that belongs to the array.
    pub fn own_from(&self, member: usize) -> u64 {
        let own = 1 + self.bitmap_sectors() + u64::from(self.log_slots) * (1 + u64::from(self.largest));
        self.members[member] - own
    }

    /// The pieces of a request that is not larger than a request may be, or of a read.
    pub(crate) fn pieces(&self, lba: u64, count: u64) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::with_capacity(2);
        let mut done = 0;
        while done < count {
            let (member, at, run) = self.place(lba + done);
            let run = run.min(count - done);
            match pieces.last_mut() {
                Some(last) if last.member == member && last.lba + last.count == at => last.count += run,
                _ => pieces.push(Piece { member, lba: at, before: done, count: run }),
            }
            done += run;
        }
        pieces
    }

    /// Where a sector lies, and how many follow it there.
    fn place(&self, lba: u64) -> (usize, u64, u64) {
        match self.level {
            Level::Raid0 => {
                let (number, within) = (lba / self.stripe, lba % self.stripe);
                let (member, at) = self.stripe_at(number, self.width(number));
                (member, at + within, self.stripe - within)
            }
            Level::Raid1 => (0, lba, self.data[0] - lba),
            Level::Concat => {
                let mut at = lba;
                for (member, sectors) in self.data.iter().enumerate() {
                    if at < *sectors {
                        return (member, at, sectors - at);
                    }
                    at -= sectors;
                }
                unreachable!("what lies beyond the end was refused")
            }
        }
    }

    /// What a range of any length covers of each member, which is one run on each. Where stripes are being laid out anew, it is one run
    /// before the mark and one behind it.
    pub(crate) fn runs(&self, lba: u64, count: u64) -> Vec<Piece> {
        let Some(moved) = self.moved else { return self.runs_over(self.count(), lba, count) };
        let (end, mark) = (lba + count, moved * self.stripe);
        let split = mark.clamp(lba, end);
        let mut runs = self.runs_over(self.count(), lba, split - lba);
        runs.extend(self.runs_over(self.count() - 1, split, end - split));
        runs
    }

    /// The same of what is laid out over so many members.
    pub(crate) fn runs_over(&self, width: usize, lba: u64, count: u64) -> Vec<Piece> {
        let part = |member: usize, at: u64| match self.level {
            Level::Raid0 => {
                let row = self.stripe * width as u64;
                let within = (at % row).saturating_sub(member as u64 * self.stripe).min(self.stripe);
                at / row * self.stripe + within
            }
            Level::Raid1 => at,
            Level::Concat => {
                let before: u64 = self.data[..member].iter().sum();
                at.saturating_sub(before).min(self.data[member])
            }
        };
        let run = |member| {
            let (from, to) = (part(member, lba), part(member, lba + count));
            (from < to).then_some(Piece { member, lba: from, before: 0, count: to - from })
        };
        (0..width).filter_map(run).collect()
    }
}

fn smallest_requests(members: &[Member]) -> (usize, u32) {
    let requests = members.iter().map(|member| member.max_request_bytes).enumerate();
    requests.min_by_key(|(_, bytes)| *bytes).unwrap_or((0, 0))
}

const _: () = assert!(SUPERBLOCK_BYTES <= 512, "it stands in one sector");

#[cfg(test)]
mod tests {
    use super::*;

    fn members(sizes: &[u64]) -> Vec<Member> {
        let member = |(number, sectors): (usize, &u64)| Member {
            uuid: Uuid::from_u128(number as u128 + 1),
            sectors: *sectors,
            sector_bytes: 4096,
            max_request_bytes: 1 << 20,
        };
        sizes.iter().enumerate().map(member).collect()
    }

    #[test]
    fn every_sector_lies_in_one_place() {
        for (level, sizes) in [
            (Level::Raid0, &[5_000, 4_000, 6_000][..]),
            (Level::Concat, &[5_000, 4_000, 6_000]),
            (Level::Raid0, &[3_000, 3_000]),
        ] {
            let shape = Shape::new(level, &members(sizes), 64 << 10, 4 << 20).expect("fits");
            let mut seen = std::collections::BTreeSet::new();
            for lba in 0..shape.sectors() {
                let piece = shape.pieces(lba, 1)[0];
                assert!(piece.lba < shape.own_from(piece.member), "{level:?}: {piece:?}");
                assert!(seen.insert((piece.member, piece.lba)), "{level:?}: {piece:?} twice");
            }
        }
    }

    #[test]
    fn a_request_lies_on_two_members_at_most_and_runs_cover_the_same() {
        for (level, stripe) in [(Level::Raid0, 16 << 10), (Level::Concat, 0)] {
            let shape = Shape::new(level, &members(&[2_000, 2_100, 2_200]), stripe, 4 << 20).expect("fits");
            let largest = u64::from(shape.largest);
            for lba in 0..shape.sectors() - largest {
                let pieces = shape.pieces(lba, largest);
                assert!(pieces.len() <= 2, "{pieces:?}");
                assert_eq!(pieces.iter().map(|piece| piece.count).sum::<u64>(), largest);
            }
            for (lba, count) in [(0, shape.sectors()), (3, 1), (5, 777), (largest - 1, 2)] {
                let mut covered: Vec<(usize, u64)> = Vec::new();
                for run in shape.runs(lba, count) {
                    covered.extend((run.lba..run.lba + run.count).map(|at| (run.member, at)));
                }
                let mut expected: Vec<(usize, u64)> = (lba..lba + count)
                    .map(|at| shape.pieces(at, 1)[0])
                    .map(|piece| (piece.member, piece.lba))
                    .collect();
                covered.sort_unstable();
                expected.sort_unstable();
                assert_eq!(covered, expected, "{level:?} {lba}+{count}");
            }
        }
    }

    /// Wherever the mark stands, the two layouts together have each sector once, and runs cover what pieces do.
    #[test]
    fn stripes_that_are_being_laid_out_anew_lie_in_one_place_each() {
        let known = members(&[600, 620, 640, 660]);
        let shape = Shape::new(Level::Raid0, &known[..3], 16 << 10, 4 << 20).expect("fits");
        let mut shape = shape.grown(&known[3]).expect("fits");
        assert_eq!(shape.sectors(), 3 * shape.data[0]);
        for mark in 0..=shape.stripes() {
            shape.moved = Some(mark);
            let places: Vec<(usize, u64)> = (0..shape.sectors())
                .map(|lba| shape.pieces(lba, 1)[0])
                .map(|piece| (piece.member, piece.lba))
                .collect();
            for (lba, count) in [(0, shape.sectors()), (1, shape.sectors() - 2), (mark * shape.stripe, 1), (7, 30)] {
                let count = count.min(shape.sectors().saturating_sub(lba));
                let mut covered: Vec<(usize, u64)> = Vec::new();
                for run in shape.runs(lba, count) {
                    covered.extend((run.lba..run.lba + run.count).map(|at| (run.member, at)));
                }
                let mut expected = places[lba as usize..(lba + count) as usize].to_vec();
                covered.sort_unstable();
                expected.sort_unstable();
                assert_eq!(covered, expected, "mark {mark}: {lba}+{count}");
            }
        }
        shape.moved = None;
        assert_eq!(shape.sectors(), 4 * shape.data[0]);
    }

    /// Copying up to the end of a window overwrites nothing that is needed while the mark stands, and every window gets further.
    #[test]
    fn a_window_overwrites_only_what_was_moved_before() {
        let known = members(&[900; 8]);
        for old in 2..8 {
            let shape = Shape::new(Level::Raid0, &known[..old], 16 << 10, 4 << 20).expect("fits");
            let shape = shape.grown(&known[old]).expect("fits");
            let (width, new) = (old as u64, old as u64 + 1);
            let (stripes, mut mark) = (shape.stripes(), 0);
            while mark < stripes {
                let end = shape.window_end(mark);
                assert!(end > mark && end <= stripes, "{old} members, mark {mark}: {end}");
                let needed: std::collections::BTreeSet<(usize, u64)> =
                    (mark..stripes).map(|stripe| shape.stripe_at(stripe, width)).collect();
                for stripe in mark..end {
                    let target = shape.stripe_at(stripe, new);
                    assert!(target == shape.stripe_at(stripe, width) || !needed.contains(&target), "{mark}: {stripe}");
                }
                if end < stripes {
                    assert!(
                        needed.contains(&shape.stripe_at(end, new)),
                        "{old} members, mark {mark}: {end} is too early"
                    );
                }
                mark = if stripes % 2 == 0 { mark + 1 } else { end };
            }
        }
    }

    #[test]
    fn a_device_that_does_not_fit_in_is_named() {
        let known = members(&[4_000, 4_000, 4_000, 3_000]);
        let mirror = Shape::new(Level::Raid1, &known[..2], 0, 4 << 20).expect("fits");
        assert!(matches!(mirror.grown(&known[3]), Err(ShapeError::Less { member: 2, sectors: 3_000, .. })));
        let three = mirror.grown(&known[2]).expect("fits");
        let error = three.grown(&known[2]).expect_err("too many");
        assert_eq!(error.to_string(), "4 members: RAID 1 takes 2 to 3");
        let other = Member { sector_bytes: 512, ..known[2] };
        assert!(matches!(mirror.grown(&other), Err(ShapeError::Sectors { member: 2, .. })));
        let other = Member { max_request_bytes: 64 << 10, ..known[2] };
        assert!(matches!(mirror.grown(&other), Err(ShapeError::Requests { member: 2, .. })));
        let chain = Shape::new(Level::Concat, &known[..2], 0, 4 << 20).expect("fits");
        let grown = chain.grown(&known[3]).expect("a smaller one holds less");
        assert_eq!(grown.sectors(), chain.sectors() + grown.data[2]);
        assert!(grown.data[2] < grown.data[0]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let shape = |level, members: &[Member], stripe| Shape::new(level, members, stripe, 4 << 20).map(|_| ());
        let two = members(&[4_000, 4_000]);
        let error = shape(Level::Raid1, &members(&[4_000; 4]), 0).expect_err("too many");
        assert_eq!(error.to_string(), "4 members: RAID 1 takes 2 to 3");
        let error = shape(Level::Raid0, &two[..1], 65_536).expect_err("too few");
        assert_eq!(error.to_string(), "1 members: RAID 0 takes 2 to 8");
        let twice = shape(Level::Concat, &[two[0], two[1], two[0]], 0);
        assert_eq!(twice, Err(ShapeError::Twice { first: 0, second: 2 }));
        let mut other = two.clone();
        other[1].sector_bytes = 512;
        assert!(matches!(shape(Level::Raid1, &other, 0), Err(ShapeError::Sectors { member: 1, .. })));
        for bytes in [0, 2048, 65_537, 128 << 20] {
            assert!(matches!(shape(Level::Raid0, &two, bytes), Err(ShapeError::Stripe { .. })), "{bytes}");
        }
        let small = shape(Level::Raid1, &members(&[4_000, 100]), 0);
        assert!(matches!(small, Err(ShapeError::Small { member: 1, .. })), "{small:?}");
    }
}
