//! An array that grows, over members in memory that say what is mapped and fail where they are told to.

use std::collections::{BTreeMap, BTreeSet};

use array::{
    Answer, Array, Condition, GrowError, Level, Member, MemberState, Shape, ShapeError, Superblock, What,
    superblock_sector,
};
use device::{BatchOp, Extent, Io, IoError, Snapshot, Submitted};
use uuid::Uuid;

const SECTOR: usize = 512;

/// A device that does at once what it is asked.
#[derive(Default)]
struct Disk {
    sectors: BTreeMap<u64, Vec<u8>>,
    unreadable: BTreeSet<u64>,
    /// It refuses writes of its superblock, or flushes.
    refuses: Option<fn(&What) -> bool>,
    written: u64,
}

impl Disk {
    fn write(&mut self, lba: u64, data: &[u8]) {
        for (lba, sector) in (lba..).zip(data.chunks_exact(SECTOR)) {
            self.sectors.insert(lba, sector.to_vec());
            self.unreadable.remove(&lba);
            self.written += 1;
        }
    }

    fn answer(&mut self, what: What) -> Result<Answer, IoError> {
        if self.refuses.is_some_and(|refuses| refuses(&what)) {
            return Err(IoError::NoSpace);
        }
        match what {
            What::Read { lba, mut buf } => {
                for (lba, sector) in (lba..).zip(buf.chunks_exact_mut(SECTOR)) {
                    if self.unreadable.contains(&lba) {
                        return Err(IoError::Media);
                    }
                    sector.copy_from_slice(self.sectors.get(&lba).map_or(&[0; SECTOR][..], |held| held));
                }
                return Ok(Answer::Done(Some(buf)));
            }
            What::Write { lba, data, part, .. } => self.write(lba, &data[part]),
            What::Batch { ops, data, .. } => {
                let mut data = &data[..];
                for op in ops.iter() {
                    match op {
                        BatchOp::Write { lba, count } => {
                            let (own, rest) = data.split_at(*count as usize * SECTOR);
                            self.write(*lba, own);
                            data = rest;
                        }
                        BatchOp::Trim { lba, count } => self.sectors.retain(|at, _| !(*lba..lba + count).contains(at)),
                    }
                }
            }
            What::Zeroes { lba, count, .. } => self.sectors.retain(|at, _| !(lba..lba + count).contains(at)),
            What::Flush => {}
            // These arrays have no snapshots.
            What::ReadSnapshot { .. } | What::Snapshot(_) => return Err(IoError::NoSnapshot),
            What::Extent { lba, max } => {
                let mapped = self.sectors.contains_key(&lba);
                let same = |at: &u64| self.sectors.contains_key(at) == mapped;
                return Ok(Answer::Extent(Extent { count: (lba..lba + max).take_while(same).count() as u64, mapped }));
            }
        }
        Ok(Answer::Done(None))
    }
}

struct Rig {
    members: Vec<Member>,
    disks: Vec<Disk>,
    array: Array,
}

fn member(number: usize, sectors: u64) -> Member {
    Member {
        uuid: Uuid::from_u128(number as u128 + 1),
        sectors,
        sector_bytes: SECTOR as u32,
        max_request_bytes: 64 << 10,
    }
}

impl Rig {
    fn new(level: Level, sizes: &[u64]) -> Rig {
        let members: Vec<Member> = sizes.iter().enumerate().map(|(number, sectors)| member(number, *sectors)).collect();
        let shape = Shape::new(level, &members, 8 << 10, 8 << 10).expect("fits");
        let superblocks = Array::format(Uuid::from_u128(99), "tested", &shape, &members);
        let mut disks: Vec<Disk> = members.iter().map(|_| Disk::default()).collect();
        for ((disk, member), superblock) in disks.iter_mut().zip(&members).zip(&superblocks) {
            disk.write(superblock_sector(member.sectors), &superblock.encode());
        }
        let array = assembled(&members, &disks);
        let mut rig = Rig { members, disks, array };
        rig.run(|_| false);
        rig
    }

    /// Drives it until nothing more happens, or `until` says so.
    fn run(&mut self, until: impl Fn(&Array) -> bool) {
        while !until(&self.array) {
            let mut busy = false;
            while let Some(command) = self.array.next_command() {
                let outcome = self.disks[command.member].answer(command.what);
                self.array.finish(command.tag, outcome);
                busy = true;
                if until(&self.array) {
                    return;
                }
            }
            if !busy {
                self.array.background();
                if self.array.is_idle() {
                    return;
                }
            }
        }
    }

    fn assemble_anew(&mut self) {
        self.array = assembled(&self.members, &self.disks);
        self.run(|array| array.is_ready().expect("assembles"));
    }

    fn request(&mut self, io: Io<'_>) -> Result<Option<Vec<u8>>, IoError> {
        assert!(matches!(self.array.submit(7, io), Submitted::Pending));
        self.answer()
    }

    fn answer(&mut self) -> Result<Option<Vec<u8>>, IoError> {
        loop {
            if let Some(done) = self.array.poll() {
                return done.result;
            }
            let command = self.array.next_command().expect("an answer or something to do");
            let outcome = self.disks[command.member].answer(command.what);
            self.array.finish(command.tag, outcome);
        }
    }

    fn write(&mut self, lba: u64, count: u64) {
        for lba in lba..lba + count {
            self.request(Io::Write { lba, data: &[lba as u8 | 1; SECTOR], fua: false }).expect("is written");
        }
    }

    fn check(&mut self, written: &BTreeSet<u64>) {
        for lba in 0..self.array.sectors() {
            let read = self.request(Io::Read { lba, buf: vec![7; SECTOR] }).expect("can be read");
            let expected = if written.contains(&lba) { lba as u8 | 1 } else { 0 };
            assert_eq!(read, Some(vec![expected; SECTOR]), "sector {lba}");
        }
    }

    /// Sectors that members hold in their data areas.
    fn mapped(&self) -> usize {
        let shape = self.array.shape();
        let of = |(number, disk): (usize, &Disk)| disk.sectors.range(..shape.own_from(number)).count();
        self.disks.iter().enumerate().map(of).sum()
    }

    fn add(&mut self, sectors: u64) -> Member {
        let new = member(self.members.len() + 40, sectors);
        self.array.grow(new).expect("fits");
        self.members.push(new);
        self.disks.push(Disk::default());
        new
    }
}

fn assembled(members: &[Member], disks: &[Disk]) -> Array {
    let sector = |(member, disk): (&Member, &Disk)| {
        let held = disk.sectors.get(&superblock_sector(member.sectors));
        Some((*member, held.cloned().unwrap_or_else(|| vec![0; SECTOR])))
    };
    let given: Vec<_> = members.iter().zip(disks).map(sector).collect();
    Array::assemble(Uuid::from_u128(99), &given, false, false).expect("is an array")
}

/// Every third sector, and a run of them.
fn some(rig: &mut Rig) -> BTreeSet<u64> {
    let written: BTreeSet<u64> =
        (0..rig.array.sectors()).filter(|lba| lba % 3 == 0 || (40..90).contains(lba)).collect();
    for lba in written.clone() {
        rig.write(lba, 1);
    }
    written
}

#[test]
fn stripes_are_laid_out_over_one_more_member_and_holes_stay_holes() {
    let mut rig = Rig::new(Level::Raid0, &[700, 720]);
    let written = some(&mut rig);
    let (before, mapped) = (rig.array.sectors(), rig.mapped());
    rig.add(900);
    rig.run(|_| false);
    assert_eq!(rig.array.status().condition, Condition::Healthy);
    assert_eq!(rig.array.sectors(), before / 2 * 3);
    assert_eq!(rig.mapped(), mapped, "as much is mapped as before");
    rig.check(&written);
    rig.assemble_anew();
    rig.check(&written);
}

/// Wherever the mark stands, a write over it is one request to each member that it lies on, since nothing else keeps it whole.
#[test]
fn a_write_over_the_mark_is_one_request_to_a_member() {
    let mut on_one = 0;
    let mut rig = Rig::new(Level::Raid0, &[700, 720]);
    rig.add(900);
    rig.run(|array| array.shape().moved.is_some());
    for mark in 1..200 {
        rig.run(|array| array.shape().moved.is_none_or(|moved| moved >= mark));
        let Some(moved) = rig.array.shape().moved else { break };
        let lba = moved * rig.array.shape().stripe - 1;
        if lba + 2 > rig.array.sectors()
            || !matches!(rig.array.submit(7, Io::Write { lba, data: &[5; 2 * SECTOR], fua: false }), Submitted::Pending)
        {
            continue;
        }
        let mut asked = [0; 3];
        while rig.array.poll().is_none() {
            let command = rig.array.next_command().expect("an answer or something to do");
            let writes = matches!(&command.what, What::Write { fua: false, .. } | What::Batch { .. });
            asked[command.member] += u32::from(writes);
            let outcome = rig.disks[command.member].answer(command.what);
            rig.array.finish(command.tag, outcome);
        }
        assert!(asked.iter().all(|requests| *requests <= 1), "mark {moved}: {asked:?}");
        on_one += u32::from(asked.iter().sum::<u32>() == 1);
    }
    assert!(on_one > 0, "none of them lay on one member");
}

/// A stripe that cannot be read holds it up, and nothing else: what comes before is at its new place, and hosts write everywhere.
#[test]
fn a_sector_that_cannot_be_read_holds_it_up_until_it_can() {
    let mut rig = Rig::new(Level::Raid0, &[700, 720]);
    let written = some(&mut rig);
    let before = rig.array.sectors();
    let stripe = rig.array.shape().stripe;
    // Of stripe 21, which is the eleventh on the second member.
    rig.disks[1].unreadable.insert(10 * stripe + 1);
    rig.disks[1].sectors.insert(10 * stripe + 1, vec![0; SECTOR]);
    rig.add(900);
    rig.run(|_| false);
    let status = rig.array.status();
    assert_eq!((status.condition, status.reshape_trouble), (Condition::Reshaping, Some((1, IoError::Media))));
    assert_eq!((rig.array.shape().moved, rig.array.sectors()), (Some(21), before));
    // Nothing waits for what does not go on.
    let lba = 21 * stripe + 5;
    assert!(matches!(
        rig.array.submit(7, Io::Write { lba, data: &[lba as u8 | 1; SECTOR], fua: false }),
        Submitted::Pending
    ));
    rig.answer().expect("is written");
    rig.array.tick();
    rig.run(|_| false);
    assert_eq!(rig.array.shape().moved, Some(21), "it still cannot be read");
    rig.write(21 * stripe + 1, 1);
    rig.array.tick();
    rig.run(|_| false);
    assert_eq!(rig.array.status().condition, Condition::Healthy);
    let written = written.into_iter().chain([lba, 21 * stripe + 1]).collect();
    rig.check(&written);
}

/// Where a flush or a superblock fails while stripes are laid out, it is tried again, and nothing is lost.
#[test]
fn flushes_and_superblocks_that_fail_are_tried_again() {
    let refusals: [fn(&What) -> bool; 2] =
        [|what| matches!(what, What::Flush), |what| matches!(what, What::Write { fua: true, .. })];
    for refuses in refusals {
        let mut rig = Rig::new(Level::Raid0, &[700, 720]);
        let written = some(&mut rig);
        rig.add(900);
        rig.run(|array| array.shape().moved.is_some_and(|moved| moved > 5));
        rig.disks[0].refuses = Some(refuses);
        rig.run(|_| false);
        assert!(matches!(rig.array.status().reshape_trouble, Some((0, IoError::NoSpace))), "{:?}", rig.array.status());
        rig.array.tick();
        rig.run(|_| false);
        rig.disks[0].refuses = None;
        rig.array.tick();
        rig.run(|_| false);
        assert_eq!(rig.array.status().condition, Condition::Healthy);
        rig.check(&written);
        rig.assemble_anew();
        rig.check(&written);
    }
}

#[test]
fn a_mirror_copies_what_is_mapped_and_a_concatenation_nothing() {
    let mut rig = Rig::new(Level::Raid1, &[700, 720]);
    let written = some(&mut rig);
    // The first copy cannot read something that the second one can.
    rig.disks[0].unreadable.insert(42);
    rig.add(700);
    rig.run(|_| false);
    assert_eq!(rig.array.status().condition, Condition::Healthy);
    assert_eq!(rig.mapped(), 3 * written.len());
    rig.check(&written);
    let mut rig = Rig::new(Level::Concat, &[700, 720]);
    let written = some(&mut rig);
    let before = rig.array.sectors();
    rig.add(400);
    rig.run(|_| false);
    assert!(rig.array.sectors() > before && rig.array.sectors() < before + 400);
    assert_eq!(rig.disks[2].written, 2, "its superblock, by itself and with the others'");
    rig.check(&written);
    rig.assemble_anew();
    rig.check(&written);
}

/// The copies that have everything stay, whatever one does that is still being copied; and that one gets again what they hold.
#[test]
fn a_copy_without_room_does_not_leave_for_one_that_is_being_copied() {
    let mut rig = Rig::new(Level::Raid1, &[700, 720]);
    let written = some(&mut rig);
    rig.add(700);
    rig.run(|array| array.status().members.get(2) == Some(&MemberState::Rebuilding));
    for disk in &mut rig.disks[..2] {
        disk.refuses = Some(|what| matches!(what, What::Zeroes { .. } | What::Batch { .. }));
    }
    while !matches!(rig.array.submit(7, Io::Trim { lba: 42, count: 3, fua: false }), Submitted::Pending) {
        let command = rig.array.next_command().expect("something to do until changes are taken");
        let outcome = rig.disks[command.member].answer(command.what);
        rig.array.finish(command.tag, outcome);
    }
    assert_eq!(rig.answer(), Err(IoError::NoSpace));
    assert_eq!(rig.array.status().members[..2], [MemberState::InSync; 2]);
    rig.disks.iter_mut().for_each(|disk| disk.refuses = None);
    rig.run(|_| false);
    assert_eq!(rig.array.status().condition, Condition::Healthy);
    assert_eq!(rig.mapped(), 3 * written.len());
    rig.check(&written);
}

/// A member's snapshot of an array with more members than there are is none of this array's: nothing is asked about it.
#[test]
fn a_snapshot_of_more_members_than_there_are_is_left_alone() {
    let mut rig = Rig::new(Level::Raid0, &[700, 720]);
    let members: Vec<Member> = rig.members.iter().copied().chain([member(2, 700)]).collect();
    let shape = Shape::new(Level::Raid0, &members, 8 << 10, 8 << 10).expect("fits");
    for superblock in &Array::format(Uuid::from_u128(99), "tested", &shape, &members)[..2] {
        let snapshot = Snapshot { id: 5, name: "one".into(), ..Snapshot::default() };
        rig.array.brought(superblock.position, &snapshot, &superblock.encode());
    }
    rig.write(0, 1);
    rig.run(|_| false);
    assert_eq!((rig.array.snapshots(), rig.array.status().condition), (&[][..], Condition::Healthy));
}

/// A new member that fails before another one knows it leaves the array as it was.
#[test]
fn a_new_member_that_fails_is_none() {
    for level in [Level::Raid0, Level::Raid1, Level::Concat] {
        let mut rig = Rig::new(level, &[700, 720]);
        let written = some(&mut rig);
        let known = (rig.array.sectors(), rig.array.shape().clone());
        rig.add(800);
        rig.disks[2].refuses = Some(|_| true);
        rig.run(|_| false);
        assert_eq!((rig.array.places(), rig.array.status().condition), (2, Condition::Healthy), "{level:?}");
        assert_eq!((rig.array.sectors(), rig.array.shape().clone()), known);
        rig.check(&written);
        rig.assemble_anew();
        assert_eq!(rig.array.places(), 2);
        rig.check(&written);
    }
}

#[test]
fn what_cannot_be_added_is_named() {
    let mut rig = Rig::new(Level::Raid0, &[700, 720]);
    let twice = rig.array.grow(rig.members[1]);
    assert_eq!(twice, Err(GrowError::Shape(ShapeError::Twice { first: 1, second: 2 })));
    let small = rig.array.grow(member(9, 300));
    assert!(matches!(small, Err(GrowError::Shape(ShapeError::Less { member: 2, sectors: 300, .. }))), "{small:?}");
    rig.add(720);
    assert_eq!(rig.array.grow(member(9, 720)), Err(GrowError::UnderWay));
    rig.run(|array| array.shape().moved.is_some_and(|moved| moved > 0));
    assert_eq!(rig.array.grow(member(9, 720)), Err(GrowError::Reshaping));
    rig.array.stop();
    rig.run(Array::is_stopped);
    assert_eq!(rig.array.grow(member(9, 720)), Err(GrowError::NotServing));
}

/// What one member says by itself, which nobody else knows, makes no larger array.
#[test]
fn the_last_member_is_one_where_another_says_so() {
    let mut rig = Rig::new(Level::Raid0, &[700, 720]);
    let written = some(&mut rig);
    rig.add(800);
    // Power fails when the new member's superblock is written, and the others' are not.
    let command = rig.array.next_command().expect("its superblock");
    assert_eq!(command.member, 2);
    rig.disks[2].answer(command.what).expect("is written");
    let sector = &rig.disks[2].sectors[&superblock_sector(800)];
    assert_eq!(Superblock::decode(sector, 2).expect("is one").shape.count(), 3);
    rig.assemble_anew();
    assert_eq!(rig.array.places(), 2);
    rig.check(&written);
    // And when one of the others' is written, too.
    rig.members.truncate(2);
    rig.disks.truncate(2);
    rig.add(800);
    let command = rig.array.next_command().expect("its superblock");
    rig.disks[2].answer(command.what).map(|answer| rig.array.finish(command.tag, Ok(answer))).expect("is written");
    let command = rig.array.next_command().expect("another's superblock");
    rig.disks[command.member].answer(command.what).expect("is written");
    rig.assemble_anew();
    assert_eq!(rig.array.places(), 3);
    rig.run(|_| false);
    rig.check(&written);
    let few = Array::assemble(
        Uuid::from_u128(99),
        &[None, Some((rig.members[1], rig.disks[1].sectors[&719].clone()))],
        false,
        false,
    );
    assert_eq!(
        few.err().map(|error| error.to_string()),
        Some("the array has 3 members, and 2 were named; expected all of them, in their order".into())
    );
}

#[test]
fn a_change_that_a_member_has_no_room_for_is_refused_before_any_has_it() {
    let mut rig = Rig::new(Level::Raid1, &[400, 400]);
    rig.array.has_room(1, Some(1));
    let written = rig.disks[0].written;
    let refused = rig.array.submit(7, Io::Write { lba: 3, data: &[1; SECTOR], fua: false });
    assert!(matches!(refused, Submitted::Done(Err(IoError::Full))));
    assert_eq!(rig.disks[0].written, written);
    rig.array.has_room(1, None);
    rig.write(3, 1);
}
