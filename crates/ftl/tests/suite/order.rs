//! What the layer must not do before something else is done, on a medium that finishes what it is given only when the test says so.
//!
//! The simulator meets most of these orders by chance; here stand those that it meets too rarely to rely on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ftl::{
    Admission, Anchor, Command, Completion, Config, Error, Ftl, Geometry, Header, Kind, LebHeader, LebId, LebState,
    Optimised, Policy, ReadFor, Recovery, Request, Slot, Source,
};

const SLOTS_PER_PAGE: u32 = 4;
const SLOT_BYTES: u32 = 4096 + ftl::TRAILER_BYTES;
const LEBS: u32 = 40;
const SECTORS: u64 = 1500;

fn config() -> Config {
    let geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: LEBS,
        pages_per_block: 16,
        slots_per_page: SLOTS_PER_PAGE,
        sector_bytes: 4096,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: SLOT_BYTES,
    };
    let mut config = Config {
        geometry,
        sectors: SECTORS,
        max_request: 1,
        buffers: 0,
        requests: 8,
        checkpoint_interval: 1 << 30,
        erase_before_program: false,
        power_protected: false,
        policy: Policy::Greedy,
    };
    config.buffers = config.min_buffers();
    config
}

/// What stands in a slot.
#[derive(Clone, Debug, PartialEq)]
enum Content {
    /// A sector, by the number of the write that it came with.
    Sector(u64),
    /// Bytes of the layer's own.
    Meta(Vec<u8>),
}

/// The layer, and a medium that survives it.
struct Device {
    ftl: Ftl,
    media: BTreeMap<Slot, (Header, Content)>,
    anchor: Anchor,
    epoch: u32,
    /// The groomer's, from the next recovery on.
    policy: Policy,
    /// What is in buffers.
    staged: HashMap<Slot, (Header, Content)>,
    /// Where each groom read under way began.
    grooming: HashMap<u64, Slot>,
    /// Commands that are to be held back, and those that are.
    hold: fn(&Command) -> bool,
    held: Vec<Command>,
    /// Commands to the medium that it still finishes; then the power is gone.
    left: u32,
    /// What is left once a checkpoint counts.
    left_then: Option<u32>,
    /// Recoveries that forgot the log behind the checkpoint.
    forgotten: u32,
    /// The newest write of each sector, and how many writes there were.
    newest: HashMap<u64, u64>,
    /// The same when it was flushed last.
    flushed: HashMap<u64, u64>,
    writes: u64,
    /// What the last read of the medium for a request found.
    found: Option<u64>,
    groom_reads: u32,
    /// LEBs that have all of their space.
    allocated: BTreeSet<LebId>,
    /// What an erase comes to, which gives space back all the same.
    erase: Result<(), Error>,
    erases: u32,
}

fn nothing(_: &Command) -> bool {
    false
}

fn anchors(command: &Command) -> bool {
    matches!(command, Command::Anchor { .. })
}

fn groom_reads(command: &Command) -> bool {
    matches!(command, Command::Read { purpose: ReadFor::Groom, .. })
}

fn moving_reads(command: &Command) -> bool {
    groom_reads(command) || matches!(command, Command::Read { purpose: ReadFor::Optimise, .. })
}

fn host_reads(command: &Command) -> bool {
    matches!(command, Command::Read { purpose: ReadFor::Request { .. }, .. })
}

impl Device {
    fn new() -> Device {
        let ftl =
            Recovery::new(config(), Anchor::default()).and_then(|recovery| recovery.finish(1)).expect("an empty layer");
        let mut device = Device {
            ftl,
            media: BTreeMap::new(),
            anchor: Anchor::default(),
            epoch: 1,
            policy: Policy::Greedy,
            staged: HashMap::new(),
            grooming: HashMap::new(),
            hold: nothing,
            held: Vec::new(),
            left: u32::MAX,
            left_then: None,
            forgotten: 0,
            newest: HashMap::new(),
            flushed: HashMap::new(),
            writes: 0,
            found: None,
            groom_reads: 0,
            allocated: BTreeSet::new(),
            erase: Ok(()),
            erases: 0,
        };
        device.ftl.start();
        device.carry_out();
        device
    }

    /// The power goes and comes back: the layer begins anew with what is on the medium, and what is held back is lost.
    fn crash(&mut self) {
        self.epoch += 1;
        self.staged.clear();
        self.grooming.clear();
        self.held.clear();
        let mut recovery = self.begin_recovery(self.anchor.clone());
        self.anchor = recovery.anchor_for(self.epoch);
        if !recovery.is_clean() {
            let slots = config().geometry.slots_per_leb();
            for leb in 0..LEBS {
                let header = self.media.get(&(leb * slots)).and_then(|(_, content)| match content {
                    Content::Meta(bytes) => LebHeader::decode(bytes),
                    Content::Sector(_) => None,
                });
                recovery.leb_header(leb, header);
            }
            for leb in recovery.lebs_to_scan() {
                self.replay(&mut recovery, leb);
            }
        }
        recovery.replay(self.epoch).expect("nothing that was flushed is missing");
        if recovery.should_forget_moves() {
            self.forgotten += 1;
            recovery = self.begin_recovery(Anchor { clean: true, ..self.anchor.clone() });
            self.anchor = recovery.anchor_for(self.epoch);
        }
        self.ftl = recovery.finish(self.epoch).expect("nothing that was flushed is missing");
        self.ftl.start();
        self.carry_out();
    }

    fn begin_recovery(&self, anchor: Anchor) -> Recovery {
        let mut recovery = Recovery::new(Config { policy: self.policy, ..config() }, anchor).expect("a sound anchor");
        for leb in recovery.checkpoint_lebs() {
            self.replay(&mut recovery, leb);
            recovery.scanned(leb);
        }
        recovery
    }

    fn replay(&self, recovery: &mut Recovery, leb: LebId) {
        let slots = config().geometry.slots_per_leb();
        for (header, content) in self.media.range(leb * slots..(leb + 1) * slots).map(|(_, slot)| slot) {
            let bytes = match content {
                Content::Meta(bytes) => bytes.as_slice(),
                Content::Sector(_) => &[],
            };
            recovery.slot(header, bytes).expect("slots that make sense");
        }
    }

    fn carry_out(&mut self) {
        self.ftl.share_sync();
        while let Some(commands) = self.ftl.commands() {
            for command in commands {
                self.groom_reads += u32::from(groom_reads(&command));
                let changes = matches!(
                    command,
                    Command::Program { .. } | Command::Anchor { .. } | Command::Sync { .. } | Command::Erase { .. }
                );
                if (self.hold)(&command) || (changes && self.left == 0) {
                    self.held.push(command);
                } else {
                    self.left -= u32::from(changes && self.left < u32::MAX);
                    self.finish(command);
                }
            }
        }
    }

    /// Finishes what was held back, and holds nothing back from here on.
    fn release(&mut self) {
        self.hold = nothing;
        for command in std::mem::take(&mut self.held) {
            self.finish(command);
        }
        self.carry_out();
    }

    fn finish(&mut self, command: Command) {
        match command {
            Command::Stage { count, header, source, .. } => self.stage(count, header, source),
            Command::Program { id, page, start, end, .. } => {
                assert!(self.allocated.contains(&page.block), "LEB {} has not all of its space", page.block);
                let first = page.block * config().geometry.slots_per_leb() + page.page * SLOTS_PER_PAGE;
                for slot in first + start / SLOT_BYTES..first + end / SLOT_BYTES {
                    if let Some(content) = self.staged.get(&slot) {
                        self.media.insert(slot, content.clone());
                    }
                }
                self.ftl.complete(id, Ok(()));
            }
            Command::Read { id, slot, count, purpose: ReadFor::Request { lba, .. }, .. } => {
                assert_eq!(count, 1);
                let (header, content) = self.media.get(&slot).expect("a slot that was written");
                assert_eq!(header.lba, lba, "sector {lba} is read where another stands");
                self.found = version(content);
                self.ftl.complete(id, Ok(()));
            }
            Command::Read { id, slot, count, .. } => {
                self.grooming.insert(id, slot);
                let headers: Vec<Option<Header>> =
                    (slot..slot + count).map(|slot| self.media.get(&slot).map(|(header, _)| *header)).collect();
                self.ftl.groomed(id, &headers);
            }
            Command::Forget { id } => drop(self.grooming.remove(&id)),
            Command::Anchor { id, anchor } => {
                self.anchor = *anchor;
                self.left = self.left_then.take().unwrap_or(self.left);
                self.ftl.complete(id, Ok(()));
            }
            Command::Allocate { id, leb, .. } => {
                self.allocated.insert(leb);
                self.ftl.complete(id, Ok(()));
            }
            Command::Sync { id } => self.ftl.complete(id, Ok(())),
            Command::Erase { id, leb } => {
                let slots = config().geometry.slots_per_leb();
                self.media.retain(|slot, _| slot / slots != leb);
                self.allocated.remove(&leb);
                self.erases += 1;
                self.ftl.complete(id, self.erase);
            }
            Command::Take { .. }
            | Command::Record { .. }
            | Command::Release { .. }
            | Command::Blank { .. }
            | Command::Finish { .. }
            | Command::Zero { .. }
            | Command::Copy { .. } => {}
        }
    }

    fn stage(&mut self, count: u32, header: Header, source: Source) {
        for i in 0..count {
            let content = match &source {
                Source::Request { .. } => Content::Sector(self.writes),
                Source::Groom { id, first } => self.media[&(self.grooming[id] + first + i)].1.clone(),
                Source::Meta(bytes) => Content::Meta(bytes.clone()),
            };
            let header = header.nth(i);
            self.staged.insert(header.slot, (header, content));
        }
    }

    /// Does a request to its end; `false` when there is no room for it as long as something is held back.
    fn request(&mut self, request: Request) -> bool {
        for _ in 0..20 {
            let admission = self.ftl.submit(0, request);
            self.carry_out();
            match admission {
                Admission::Done => return true,
                Admission::Pending => {
                    while let Some(completion) = self.ftl.completion() {
                        completion.result.expect("an answer without an error");
                    }
                    return true;
                }
                Admission::Busy => {}
                Admission::Refused(error) => panic!("{request:?}: {error}"),
            }
        }
        false
    }

    fn write(&mut self, lba: u64) -> bool {
        self.writes += 1;
        let taken = self.request(Request::Write { lba, count: 1, fua: false });
        if taken {
            self.newest.insert(lba, self.writes);
        }
        taken
    }

    fn trim(&mut self, lba: u64) {
        assert!(self.request(Request::Trim { lba, count: 1, fua: false }));
        self.newest.remove(&lba);
    }

    fn flush(&mut self) {
        assert!(self.request(Request::Flush));
        self.flushed.clone_from(&self.newest);
    }

    /// Finishes a groom read, and gives the sectors that the groomer could not move for all that.
    fn still_there_after(&mut self, read: Command) -> Vec<u64> {
        let Command::Read { slot, count, .. } = read else { panic!("{read:?} is no read") };
        self.finish(read);
        self.carry_out();
        (slot..slot + count)
            .filter_map(|slot| self.media.get(&slot).map(|(header, _)| header))
            .filter(|header| header.kind == Kind::Data && self.ftl.map().get(header.lba) == header.slot)
            .map(|header| header.lba)
            .collect()
    }

    /// After a power cut each sector holds what was durable, or something newer; that is what it is held against from now on.
    fn take_stock(&mut self) {
        for lba in 0..SECTORS {
            let slot = self.ftl.map().get(lba);
            let there = self.staged.get(&slot).or_else(|| self.media.get(&slot));
            let (header, content) = there.expect("every sector was written");
            assert_eq!(header.lba, lba, "sector {lba} in slot {slot}");
            let there = version(content).expect("a sector");
            assert!(there >= self.flushed[&lba], "sector {lba} in slot {slot} is older than what was flushed");
            self.newest.insert(lba, there);
        }
        self.ftl.verify().expect("the books agree");
    }

    /// Every sector reads as what was written to it last.
    fn check(&mut self) {
        self.flush();
        for lba in 0..SECTORS {
            let slot = self.ftl.map().get(lba);
            let there = self.staged.get(&slot).or_else(|| self.media.get(&slot));
            let there = if slot == ftl::NO_SLOT { None } else { there.and_then(|(_, content)| version(content)) };
            assert_eq!(there, self.newest.get(&lba).copied(), "sector {lba} in slot {slot}");
        }
        self.ftl.verify().expect("the books agree");
    }
}

fn version(content: &Content) -> Option<u64> {
    match content {
        Content::Sector(write) => Some(*write),
        Content::Meta(_) => None,
    }
}

/// A device that is full, and whose groomer has work.
fn full() -> Device {
    let mut device = Device::new();
    // In another order each time: LEBs of which nothing lives any more are not groomed.
    for step in [7, 13, 11, 7] {
        assert!((0..SECTORS).all(|n| device.write(n * step % SECTORS)));
    }
    assert!(device.groom_reads > 0, "the groomer never worked: the test is worth nothing");
    device
}

#[test]
fn what_is_trimmed_while_the_groomer_waits_for_room_stays_trimmed() {
    for policy in [Policy::Greedy, Policy::Lifetime] {
        trimmed_while_the_groomer_waits(policy, usize::MAX);
        // The rest of the page is moved.
        trimmed_while_the_groomer_waits(policy, 1);
    }
}

/// Trims up to so many of the sectors that wait.
fn trimmed_while_the_groomer_waits(policy: Policy, most: usize) {
    let mut device = full();
    device.ftl.set_policy(policy);
    // So that the policy knows them all, and what it knows differs.
    overwrite(&mut device);
    // What the groomer moved never becomes durable, so no LEB that it emptied can be used again.
    device.hold = |command| groom_reads(command) || matches!(command, Command::Sync { .. });
    device.trim(0);
    let mut n = 0;
    let being_moved = loop {
        assert!(n < 4 * SECTORS, "the groomer never waits for room: the test is worth nothing");
        // Refused in the end; the groomer goes on as long as it can.
        device.write(n * 13 % SECTORS);
        n += 1;
        let (reads, others): (Vec<Command>, Vec<Command>) =
            std::mem::take(&mut device.held).into_iter().partition(groom_reads);
        device.held = others;
        let waiting: Vec<u64> = reads.into_iter().flat_map(|read| device.still_there_after(read)).collect();
        if !waiting.is_empty() {
            break waiting;
        }
    };
    being_moved.into_iter().take(most).for_each(|lba| device.trim(lba));
    device.release();
    device.check();
}

/// A full device on which a sector is read, and everything is overwritten several times meanwhile: the device, the sector, the slot that is read, and what it
/// holds.
fn overwritten_while_it_is_read() -> (Device, u64, Slot, u64) {
    let mut device = full();
    device.flush();
    device.hold = host_reads;
    let lba = (0..SECTORS).find(|lba| !device.ftl.is_buffered(device.ftl.map().get(*lba))).expect("one on the medium");
    let expected = device.newest[&lba];
    assert_eq!(device.ftl.submit(7, Request::Read { lba, count: 1 }), Admission::Pending);
    device.carry_out();
    let Some(Command::Read { slot, .. }) = device.held.first().cloned() else { panic!("no read on the medium") };
    overwrite(&mut device);
    (device, lba, slot, expected)
}

fn overwrite(device: &mut Device) {
    for n in 0..4 * SECTORS {
        assert!(device.write(n * 11 % SECTORS));
    }
}

#[test]
fn a_leb_that_is_being_read_is_not_used_again() {
    let (mut device, lba, slot, expected) = overwritten_while_it_is_read();
    assert_ne!(device.ftl.map().get(lba), slot, "the sector was not overwritten: the test is worth nothing");
    device.release();
    assert_eq!(device.found, Some(expected), "a read that began before");
    device.check();
}

/// A rebuild restores what somebody still reads, or what a power cut would bring back, although nothing in it is live any more.
#[test]
fn a_leb_that_was_emptied_is_kept_for_who_pins_it() {
    let (mut device, _, slot, _) = overwritten_while_it_is_read();
    let leb = slot / device.ftl.config().geometry.slots_per_leb();
    assert_eq!(device.ftl.lebs()[leb].state, LebState::Emptied);
    assert!(device.ftl.pin(leb), "it is still read");
    device.release();
    device.hold = nothing;
    overwrite(&mut device);
    assert_eq!(device.ftl.lebs()[leb].state, LebState::Emptied, "somebody pinned it");
    let erases = device.ftl.lebs()[leb].erases;
    device.ftl.unpin(leb);
    device.carry_out();
    assert_ne!(device.ftl.lebs()[leb].erases, erases, "nobody needs it any more");
    device.check();
}

/// A device with two flushes that wait for a sync each, and the syncs.
#[test]
fn a_window_is_left_as_it_is_where_space_ran_short_while_it_was_read() {
    let mut device = Device::new();
    (0..SECTORS).for_each(|n| assert!(device.write(n * 7 % SECTORS)));
    device.flush();
    let window = SECTORS as u32 / 8;
    device.hold = moving_reads;
    assert_eq!(device.ftl.optimise(0, window), Optimised::Begun { left: 0 });
    device.carry_out();
    let reads = std::mem::take(&mut device.held);
    assert!(!reads.is_empty() && !reads.iter().any(groom_reads));
    for n in 0..SECTORS {
        if device.ftl.is_short() {
            break;
        }
        device.write(u64::from(window) + n * 7 % (SECTORS - u64::from(window)));
    }
    assert!(device.ftl.is_short(), "space never ran short: the test is worth nothing");
    let free = device.ftl.free_lebs();
    reads.into_iter().for_each(|read| device.finish(read));
    device.carry_out();
    assert!(!device.ftl.is_optimising());
    assert_eq!(device.ftl.free_lebs(), free, "what gains no space took some");
    device.release();
    device.check();
}

fn two_syncs() -> (Device, Command, Command) {
    let mut device = Device::new();
    device.flush();
    device.hold = |command| matches!(command, Command::Sync { .. });
    for tag in [1, 2] {
        assert!(device.write(u64::from(tag)));
        assert_eq!(device.ftl.submit(tag, Request::Flush), Admission::Pending);
        device.carry_out();
    }
    let [first, second] = <[Command; 2]>::try_from(std::mem::take(&mut device.held)).expect("two syncs under way");
    (device, first, second)
}

#[test]
fn of_syncs_that_overlap_each_counts_when_those_before_it_are_done() {
    let (mut device, first, second) = two_syncs();
    device.finish(second);
    assert_eq!(device.ftl.completion(), None, "the first may still fail");
    device.finish(first);
    assert_eq!(device.ftl.completion(), Some(Completion { tag: 1, result: Ok(()) }));
    assert_eq!(device.ftl.completion(), Some(Completion { tag: 2, result: Ok(()) }));
}

#[test]
fn of_syncs_that_overlap_none_counts_once_one_has_failed() {
    for fails in [0, 1] {
        let (mut device, first, second) = two_syncs();
        let mut order = [first, second];
        order.rotate_left(fails);
        for (sync, result) in order.into_iter().zip([Err(Error::Media), Ok(())]) {
            let Command::Sync { id } = sync else { panic!("{sync:?} is no sync") };
            device.ftl.complete(id, result);
        }
        for tag in [1, 2] {
            assert_eq!(device.ftl.completion(), Some(Completion { tag, result: Err(Error::Media) }));
        }
        assert!(device.ftl.doubted_from().is_some());
    }
}

#[test]
fn every_trim_is_on_the_medium_after_a_flush() {
    let mut device = Device::new();
    (0..SECTORS).for_each(|lba| assert!(device.write(lba)));
    device.flush();
    // No checkpoint that knows of the trims comes to count.
    device.hold = anchors;
    // More than two slots of records hold.
    (0..SECTORS).step_by(3).for_each(|lba| device.trim(lba));
    device.flush();
    device.hold = nothing;
    device.crash();
    device.check();
}

#[test]
fn what_was_replayed_stays_until_the_next_checkpoint_counts() {
    let mut device = Device::new();
    (0..SECTORS / 2).for_each(|lba| assert!(device.write(lba)));
    device.flush();
    device.crash();
    // LEBs with nothing that is live but what they say about trims; too few for a checkpoint, which would free them.
    for lba in 0..30 {
        device.trim(lba);
        (0..20).for_each(|_| assert!(device.write(SECTORS - 1)));
    }
    device.flush();
    for _ in 0..3 {
        device.hold = anchors;
        device.crash();
        assert_eq!(
            device.held.len(),
            1,
            "the checkpoint that ends the recovery has no anchor: the test is worth nothing"
        );
        // What is free is used; without a checkpoint these writes do not outlast the next crash.
        (0..200).for_each(|_| assert!(device.write(SECTORS - 1)));
    }
    device.hold = nothing;
    device.crash();
    assert!(device.write(SECTORS - 1));
    device.check();
}

#[test]
fn a_checkpoint_stays_until_the_anchor_of_the_next_is_on_the_medium() {
    let mut device = full();
    device.hold = anchors;
    // All that becomes free meanwhile is used again.
    for n in 0..4 * SECTORS {
        device.write(n * 11 % SECTORS);
    }
    assert_eq!(device.held.len(), 1, "no checkpoint waits for its anchor: the test is worth nothing");
    device.flush();
    device.hold = nothing;
    device.crash();
    device.check();
}

#[test]
fn nothing_is_groomed_before_the_recovery_has_ended() {
    let mut device = full();
    device.flush();
    device.hold = anchors;
    device.crash();
    let before = device.groom_reads;
    (0..LEBS).for_each(|leb| device.ftl.evacuate(leb));
    device.ftl.work();
    device.carry_out();
    assert_eq!(device.groom_reads, before, "the groomer works before the checkpoint counts");
    device.release();
    device.ftl.work();
    device.carry_out();
    assert!(device.groom_reads > before, "the groomer had nothing to do: the test is worth nothing");
    device.check();
}

/// One of several dies may have given its space back before another failed.
#[test]
fn an_erase_that_failed_leaves_no_space_to_rely_on() {
    let mut device = Device::new();
    device.erase = Err(Error::Media);
    for round in 0..3 {
        (0..SECTORS).for_each(|lba| assert!(device.write(lba), "sector {lba} in round {round}"));
        (0..SECTORS).for_each(|lba| device.trim(lba));
        device.flush();
        let mut rounds = 0..10_000;
        while device.ftl.idle() {
            device.carry_out();
            assert!(rounds.next().is_some(), "quiet times do not end");
        }
        device.carry_out();
    }
    assert!(device.erases > LEBS / 2, "{} erases", device.erases);
}

/// Cuts one after another, each before the groomer could free much: every one closes the LEBs that were open. The policy is one that does not prefer
/// those, as little as they hold.
#[test]
fn no_series_of_cuts_leaves_a_device_that_takes_nothing() {
    let mut forgotten = 0;
    for seed in 1..=40u64 {
        let mut device = full();
        device.policy = Policy::Fifo;
        device.flush();
        let mut random = seed;
        let mut below = |most: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % most
        };
        for _ in 0..200 {
            device.left = u32::MAX;
            device.left_then = Some(below(10) as u32);
            device.crash();
            device.take_stock();
            for _ in 0..below(4) {
                if !device.write(below(SECTORS)) {
                    break;
                }
            }
            device.left_then = None;
        }
        device.left = u32::MAX;
        device.crash();
        device.take_stock();
        for lba in 0..SECTORS {
            assert!(
                device.write(lba),
                "seed {seed}: no room for sector {lba}, {} LEBs are free",
                device.ftl.free_lebs()
            );
        }
        device.check();
        forgotten += device.forgotten;
    }
    assert!(forgotten > 0, "no log was ever forgotten: the test is worth nothing");
}
