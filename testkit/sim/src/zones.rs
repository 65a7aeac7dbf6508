//! Devices of zones: writes in order, resets, finishes and power cuts, against a model that knows of each zone what was written since it
//! was reset, how much of that is durable, and what is under way.

use device::{
    Completion, Device, Io, IoError, MediaFormat, Secret, Submitted, ZoneAction, ZoneError, ZoneShape, ZoneState,
};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::flashback::media_geometry;
use media::sim::{Cut, Knobs, SimMedia, SimStore};
use random::SplitMix64;
use uuid::Uuid;

use crate::mortal::Mortal;
use crate::payload;
use crate::run::{CALL, Failure, PATIENCE, Report};

const SECTOR: usize = 512;
/// The version of a sector of a finished zone that was found empty.
const HOLE: u64 = u64::MAX;

/// A zone, as the host knows it.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What was written since the last reset, by the numbers of the writes, a sector each.
    versions: Vec<u64>,
    /// How many of them survive a power cut.
    durable: usize,
    /// How many were answered.
    answered: usize,
    /// It was finished; whether that survives a power cut.
    finished: Option<bool>,
    /// It takes nothing: a reset or finish is under way.
    changing: bool,
    /// What it held before a reset that may not survive a power cut.
    before: Option<Box<Known>>,
    /// Resets so far.
    resets: u64,
    /// How it should stand.
    state: ZoneState,
}

impl Known {
    /// Everything up to here is durable, so that the reset before it is.
    fn is_durable(&mut self, up_to: usize) {
        self.durable = self.durable.max(up_to);
        self.before = None;
    }
}

/// What a flush covers of a zone.
#[derive(Clone, Copy, Debug)]
struct Covered {
    resets: u64,
    answered: usize,
    finished: bool,
}

/// A request under way.
#[derive(Clone, Debug)]
enum Asked {
    /// A durable write to a zone, after so many resets, up to here.
    Write(usize, u64, usize),
    Flush(Vec<Covered>),
    Reset(usize),
    Finish(usize),
}

struct Simulation {
    random: SplitMix64,
    cutter: SplitMix64,
    shape: ZoneShape,
    largest: u64,
    flash: bool,
    knobs: Knobs,
    key: Option<Secret>,
    store: SimStore,
    mortal: Mortal,
    device: Option<Device>,
    zones: Vec<Known>,
    asked: Vec<Option<Asked>>,
    next: u64,
    report: Report,
}

/// What a seed decides of the device.
fn drawn(random: &mut SplitMix64) -> (Geometry, MediaFormat, ZoneShape) {
    loop {
        let parity = u32::from(random.one_in(5));
        let geometry = Geometry {
            dies: parity + 1 + random.below(3) as u32,
            parity,
            blocks: 30 + random.below(60) as u32,
            pages_per_block: 2 + random.below(6) as u32,
            slots_per_page: 1 << random.below(4),
            sector_bytes: SECTOR as u32,
            trailer_bytes: TRAILER_BYTES,
            unit_bytes: 512 << random.below(3),
        };
        let leb = u64::from(geometry.slots_per_leb()) - 1;
        let active = 1 + random.below(if parity > 0 { 4 } else { 14 }) as u8;
        let capacity = leb * (1 + random.below(3));
        let room = ftl::room(&geometry, u64::MAX).saturating_sub(u64::from(active) * leb);
        let count = (room / (capacity + 1)).min(2 + random.below(30)) as u32;
        let size = (capacity + 1).next_power_of_two();
        let shape = ZoneShape { size, capacity, count, active };
        let largest = leb.saturating_sub(1).min(24);
        if count < 2 || largest < 2 || geometry.slots_per_leb() < 4 {
            continue;
        }
        let format = MediaFormat {
            sectors: 0,
            max_request_bytes: largest as u32 * SECTOR as u32,
            checkpoint_interval: 16 << random.below(10),
            policy: Policy::Zones,
            uuid: Uuid::from_u128(u128::from(random.bits())),
            key: None,
        };
        return (geometry, format, shape);
    }
}

/// Runs the simulation of a seed.
///
/// # Errors
/// The first broken promise.
pub(crate) fn run(seed: u64) -> Result<Report, Failure> {
    device::seed_entropy(seed);
    device::nonces::watch();
    let mut random = SplitMix64::new(seed);
    let (mut geometry, mut format, shape) = drawn(&mut random);
    let flash = random.one_in(2) && geometry.parity == 0;
    if random.one_in(4) {
        format.key = Some([7; 32]);
        geometry.trailer_bytes = device::SEALED_TRAILER_BYTES;
    }
    let media = if geometry.parity == 0 { geometry } else { media_geometry(&geometry) };
    let store = SimStore::new(media);
    let knobs = Knobs {
        must_erase: flash,
        least_polls: random.below(3) as u32,
        spread_polls: random.below(40) as u32,
        slow: if random.one_in(6) { 1_000 << random.below(6) } else { 0 },
        ..Knobs::default()
    };
    let mut medium = SimMedia::new(&store, random.bits(), knobs);
    Device::format_zoned(&mut medium, &format, shape).map_err(|error| Failure::Stuck(format!("format: {error}")))?;
    drop(medium);
    let mut simulation = Simulation {
        cutter: SplitMix64::from_state(random.bits()),
        mortal: Mortal::new(!flash && random.one_in(2), random.bits()),
        shape,
        largest: u64::from(format.max_request_bytes) / SECTOR as u64,
        flash,
        knobs,
        key: format.key.map(|key| Secret::key(&key)),
        store,
        device: None,
        zones: vec![Known::default(); shape.count as usize],
        asked: vec![None; 1 + random.below(8) as usize],
        next: 0,
        report: Report { hash: 0xcbf2_9ce4_8422_2325, ..Report::default() },
        random,
    };
    simulation.attach()?;
    simulation.traffic()?;
    simulation.report.overlapping_syncs = simulation.store.overlapping_syncs();
    Ok(simulation.report)
}

impl Simulation {
    fn device(&mut self) -> &mut Device {
        self.device.as_mut().expect("attached")
    }

    fn attach(&mut self) -> Result<(), Failure> {
        for _ in 0..50 {
            if self.random.one_in(4) {
                self.store.cut_at(self.store.commands() + 1 + self.random.below(60));
            }
            let media = SimMedia::new(&self.store, self.random.bits(), self.knobs);
            let (media, staging) = self.mortal.attach(media, &self.store);
            match Device::on_media_staged(media, self.flash, self.key.as_ref(), staging) {
                Ok(device) => {
                    self.device = Some(device);
                    self.report.left_pages += self.mortal.attached();
                    return Ok(());
                }
                Err(_) if self.store.is_off() => {
                    self.report.recovery_cuts += 1;
                    self.cut();
                }
                Err(error) => return Err(Failure::Wrong(format!("attach: {error}"))),
            }
        }
        Err(Failure::Stuck("fifty attaches in a row were cut".into()))
    }

    /// The process dies, or the power goes.
    fn cut(&mut self) {
        self.asked.iter_mut().for_each(|asked| *asked = None);
        if self.mortal.dies() {
            self.report.kills += 1;
            self.mortal.killed();
            self.device = None;
            self.store.kill(&mut self.cutter);
            return;
        }
        self.report.cuts += 1;
        self.mortal.power_cut();
        self.device = None;
        self.store.switch_off();
        let cut = if self.random.one_in(3) { Cut::LOSE_ALL } else { Cut::default() };
        self.store.power_cut_as(&mut self.cutter, &cut);
    }

    fn traffic(&mut self) -> Result<(), Failure> {
        let requests = 100 + self.random.below(900);
        let cut_once_in = 20 + self.random.below(300);
        let weights = [60, 6, 6, 4, 4, 10, 8].map(|most| self.random.below(most + 1));
        for _ in 0..requests {
            if self.random.one_in(cut_once_in) {
                match self.random.one_in(2) {
                    true => self.store.switch_off(),
                    false => self.store.cut_at(self.store.commands() + 1 + self.random.below(30)),
                }
            }
            while self.store.is_off() {
                self.crash()?;
            }
            self.request(&weights)?;
            for _ in 0..self.random.below(6) {
                self.poll()?;
            }
        }
        self.finish()
    }

    /// The end: everything asked is answered, and everything is there after a clean detach.
    fn finish(&mut self) -> Result<(), Failure> {
        for _ in 0..PATIENCE {
            if self.asked.iter().all(Option::is_none) || self.store.is_off() {
                break;
            }
            self.poll()?;
        }
        if !self.store.is_off() {
            if self.asked.iter().any(Option::is_some) {
                return Err(Failure::Stuck("a request was never answered".into()));
            }
            self.device().verify().map_err(Failure::Wrong)?;
            let covered = self.covered();
            let detached = self.device.take().expect("attached").detach();
            if !self.store.is_off() {
                detached.map_err(|error| Failure::Wrong(format!("detach: {error}")))?;
                self.flushed(&covered);
            }
        }
        self.store.switch_off();
        while self.store.is_off() {
            self.crash()?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<(), Failure> {
        match self.device().poll() {
            Some(done) if !self.store.is_off() && done.tag != CALL => self.answered(done),
            _ => Ok(()),
        }
    }

    fn answered(&mut self, done: Completion) -> Result<(), Failure> {
        let asked = self.asked[done.tag as usize].take().expect("an answer to something that was asked");
        self.report.requests += 1;
        self.report.hash = (self.report.hash ^ done.tag).wrapping_mul(0x100_0000_01b3);
        if let Err(error) = done.result {
            return Err(Failure::Wrong(format!("{asked:?} failed: {error}")));
        }
        match asked {
            Asked::Write(zone, resets, end) => {
                let zone = &mut self.zones[zone];
                if zone.resets == resets {
                    zone.answered = zone.answered.max(end);
                    zone.is_durable(end);
                }
            }
            Asked::Flush(covered) => self.flushed(&covered),
            Asked::Reset(zone) => {
                let zone = &mut self.zones[zone];
                zone.changing = false;
                zone.is_durable(0);
            }
            Asked::Finish(zone) => {
                // What was written before is durable with it.
                let zone = &mut self.zones[zone];
                (zone.changing, zone.finished, zone.answered) = (false, Some(true), zone.versions.len());
                zone.is_durable(zone.answered);
            }
        }
        Ok(())
    }

    fn covered(&self) -> Vec<Covered> {
        let covered = |zone: &Known| Covered {
            resets: zone.resets,
            answered: zone.answered,
            finished: zone.finished.is_some() && !zone.changing,
        };
        self.zones.iter().map(covered).collect()
    }

    fn flushed(&mut self, covered: &[Covered]) {
        for (zone, covered) in self.zones.iter_mut().zip(covered) {
            // One that was reset meanwhile holds something else.
            if zone.resets == covered.resets {
                zone.is_durable(covered.answered);
                zone.finished = zone.finished.map(|sure| sure || covered.finished);
            }
        }
    }

    /// A request of the host's.
    fn request(&mut self, weights: &[u64; 7]) -> Result<(), Failure> {
        let Some(tag) = self.asked.iter().position(Option::is_none) else { return Ok(()) };
        let mut drawn = self.random.below(weights.iter().sum::<u64>() + 1);
        let kind = weights.iter().position(|weight| {
            let here = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            here
        });
        let number = self.random.below(u64::from(self.shape.count)) as usize;
        match kind {
            None | Some(0) => self.write(tag, number),
            Some(1) => self.act(tag, number, ZoneAction::Reset),
            Some(2) => self.act(tag, number, ZoneAction::Finish),
            Some(3) => self.act(tag, number, ZoneAction::Open),
            Some(4) => self.act(tag, number, ZoneAction::Close),
            Some(5) => self.flush(tag),
            Some(_) => self.read_some(number),
        }
    }

    fn flush(&mut self, tag: usize) -> Result<(), Failure> {
        let covered = self.covered();
        let submitted = self.device().submit(tag as u64, Io::Flush);
        match submitted {
            _ if self.store.is_off() => {}
            Submitted::Done(Ok(_)) => self.flushed(&covered),
            Submitted::Done(Err(error)) => return Err(Failure::Wrong(format!("a flush failed: {error}"))),
            Submitted::Pending => self.asked[tag] = Some(Asked::Flush(covered)),
            Submitted::Busy(_) => {}
        }
        Ok(())
    }

    fn active(&self) -> u8 {
        self.zones.iter().filter(|zone| zone.state.is_active()).count() as u8
    }

    fn write(&mut self, tag: usize, number: usize) -> Result<(), Failure> {
        let (start, capacity) = (self.shape.start(number as u32), self.shape.capacity);
        let Known { versions, state, changing, .. } = self.zones[number].clone();
        let written = versions.len() as u64;
        let count = 1 + self.random.below(self.largest);
        // Now and then elsewhere, or beyond the end.
        let at = if self.random.one_in(10) { self.random.below(self.shape.size) } else { written };
        // Behind the last zone the device ends.
        let at = if number + 1 == self.zones.len() { at.min(self.shape.size - count) } else { at };
        let op = self.next;
        let mut data = vec![0; count as usize * SECTOR];
        for (sector, lba) in data.chunks_exact_mut(SECTOR).zip(start + at..) {
            payload::fill(sector, lba, op, false);
        }
        let expected = match state {
            ZoneState::Full => Err(ZoneError::Full),
            _ if at + count > capacity => Err(ZoneError::Boundary),
            _ if at != written => Err(ZoneError::NotAtPointer),
            ZoneState::Empty if self.active() >= self.shape.active => Err(ZoneError::TooManyActive),
            _ => Ok(()),
        };
        let fua = self.random.one_in(6);
        let submitted = self.device().submit(tag as u64, Io::Write { lba: start + at, data: &data, fua });
        let (off, device) = (self.store.is_off(), self.device.as_ref().expect("attached"));
        match (&submitted, expected) {
            (Submitted::Busy(_), _) if off => return Ok(()),
            (Submitted::Busy(_), Ok(())) => {
                // What waits may have opened its zone.
                let opened = matches!(state, ZoneState::Empty | ZoneState::Closed) && !changing;
                let now = device.zones().expect("it has zones").view(number as u32).state;
                if opened && now == ZoneState::ImplicitlyOpen {
                    self.zones[number].state = now;
                }
                return self.stands(number);
            }
            // A zone that is changing may say so first.
            (Submitted::Busy(_), Err(_)) if changing => return Ok(()),
            (Submitted::Done(Err(IoError::Zone(error))), Err(expected)) if *error == expected => {
                self.report.refused += 1;
                return self.stands(number);
            }
            (Submitted::Pending | Submitted::Done(Ok(_)), Ok(())) if !changing => {}
            (Submitted::Done(Err(_)), Ok(())) if off => {}
            _ if off => return Ok(()),
            _ => {
                return Err(Failure::Wrong(format!(
                    "a write of {count} at {at} of zone {number} ({state:?}, {written} written): {submitted:?} instead of {expected:?}"
                )));
            }
        }
        self.next += 1;
        let zone = &mut self.zones[number];
        zone.versions.extend(std::iter::repeat_n(op, count as usize));
        let end = zone.versions.len();
        zone.state = match state {
            _ if end as u64 == capacity => ZoneState::Full,
            ZoneState::ExplicitlyOpen => ZoneState::ExplicitlyOpen,
            _ => ZoneState::ImplicitlyOpen,
        };
        match submitted {
            _ if off => return Ok(()),
            Submitted::Pending => self.asked[tag] = Some(Asked::Write(number, zone.resets, end)),
            _ => {
                zone.answered = zone.answered.max(end);
                if fua {
                    zone.is_durable(end);
                }
            }
        }
        self.stands(number)
    }

    fn act(&mut self, tag: usize, number: usize, action: ZoneAction) -> Result<(), Failure> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full};
        let Known { state, changing, .. } = self.zones[number];
        let expected = match (action, state) {
            (ZoneAction::Open, Empty) if self.active() >= self.shape.active => Err(ZoneError::TooManyActive),
            (ZoneAction::Open | ZoneAction::Close, Full) | (ZoneAction::Close, Empty) => Err(ZoneError::Transition),
            (ZoneAction::Open, _) => Ok(ExplicitlyOpen),
            (ZoneAction::Close, _) => Ok(Closed),
            (ZoneAction::Finish, _) => Ok(Full),
            (ZoneAction::Reset, _) => Ok(Empty),
        };
        let submitted = self.device().submit_zone(tag as u64, number as u32, action);
        let off = self.store.is_off();
        let then = match (&submitted, expected) {
            (Submitted::Busy(_), _) => return Ok(()),
            (Submitted::Done(Err(IoError::Zone(error))), Err(expected)) if *error == expected => return Ok(()),
            (Submitted::Pending | Submitted::Done(Ok(_)), Ok(then)) if !changing => then,
            (Submitted::Done(Err(_)), Ok(then)) if off => then,
            _ if off => return Ok(()),
            _ => {
                let what = format!("{action:?} of zone {number} ({state:?}): {submitted:?} instead of {expected:?}");
                return Err(Failure::Wrong(what));
            }
        };
        let answered = matches!(submitted, Submitted::Done(_)) && !off;
        let zone = &mut self.zones[number];
        match action {
            ZoneAction::Reset if state != Empty => {
                self.report.freed_lebs += 1;
                let before = std::mem::take(zone);
                let resets = before.resets + 1;
                *zone = Known {
                    resets,
                    changing: !answered,
                    before: (!answered).then(|| Box::new(before)),
                    ..Known::default()
                };
                self.asked[tag] = (!answered && !off).then_some(Asked::Reset(number));
            }
            ZoneAction::Finish if state != Full => {
                zone.finished = Some(answered);
                zone.changing = !answered;
                if answered {
                    zone.answered = zone.versions.len();
                    zone.is_durable(zone.answered);
                }
                self.asked[tag] = (!answered && !off).then_some(Asked::Finish(number));
            }
            _ => {}
        }
        self.zones[number].state = then;
        self.stands(number)
    }

    /// The device says of a zone what the host knows.
    fn stands(&mut self, number: usize) -> Result<(), Failure> {
        if self.store.is_off() {
            return Ok(());
        }
        let view = self.device().zones().expect("it has zones").view(number as u32);
        let (known, start) = (&self.zones[number], self.shape.start(number as u32));
        let written = if known.state == ZoneState::Full { self.shape.capacity } else { known.versions.len() as u64 };
        if (view.state, view.pointer, view.start) == (known.state, start + written, start) {
            return Ok(());
        }
        Err(Failure::Wrong(format!("zone {number}: {view:?} instead of {:?} with {written} written", known.state)))
    }

    /// Some of a zone is read, and is what was written.
    fn read_some(&mut self, number: usize) -> Result<(), Failure> {
        let from = self.random.below(self.shape.size);
        let count = (1 + self.random.below(self.largest)).min(self.shape.size - from);
        let Some(buf) = self.read(self.shape.start(number as u32) + from, count)? else { return Ok(()) };
        let known = &self.zones[number];
        self.matches(number, from, &buf, known, known.versions.len()).map_err(Failure::Wrong)
    }

    /// Sectors of a zone are those that were written up to here, and zeros behind.
    fn matches(&self, number: usize, from: u64, buf: &[u8], known: &Known, written: usize) -> Result<(), String> {
        for (sector, at) in buf.chunks_exact(SECTOR).zip(from..) {
            let lba = self.shape.start(number as u32) + at;
            let version = known.versions[..written].get(at as usize).copied().unwrap_or(HOLE);
            if !payload::holds(sector, lba, version, version == HOLE) {
                return Err(format!("sector {at} of zone {number} does not give version {version:?}"));
            }
        }
        Ok(())
    }

    /// Sectors, waited for; nothing when the power failed.
    fn read(&mut self, lba: u64, count: u64) -> Result<Option<Vec<u8>>, Failure> {
        let mut io = Some(Io::Read { lba, buf: vec![0xee; count as usize * SECTOR] });
        for _ in 0..PATIENCE {
            if self.store.is_off() {
                return Ok(None);
            }
            if let Some(request) = io.take() {
                match self.device().submit(CALL, request) {
                    Submitted::Done(Ok(buf)) => return Ok(buf.filter(|_| !self.store.is_off())),
                    Submitted::Done(Err(_)) if self.store.is_off() => return Ok(None),
                    Submitted::Done(Err(error)) => return Err(Failure::Wrong(format!("a read failed: {error}"))),
                    Submitted::Pending => {}
                    Submitted::Busy(request) => io = Some(request),
                }
            }
            match self.device().poll() {
                Some(done) if done.tag == CALL => {
                    let off = self.store.is_off();
                    return match done.result {
                        _ if off => Ok(None),
                        Ok(buf) => Ok(buf),
                        Err(error) => Err(Failure::Wrong(format!("a read failed: {error}"))),
                    };
                }
                Some(done) if !self.store.is_off() => self.answered(done)?,
                _ => {}
            }
        }
        Err(Failure::Stuck("a read was never answered".into()))
    }

    /// The power failed, or the process died: every zone is what it was at its last durable moment or later, without holes.
    fn crash(&mut self) -> Result<(), Failure> {
        self.cut();
        self.attach()?;
        if self.store.is_off() {
            return Ok(());
        }
        if self.mortal.lost_nothing() {
            // Only the process died, so what was answered is there.
            for zone in self.zones.iter_mut().filter(|zone| !zone.changing) {
                zone.is_durable(zone.answered);
                zone.finished = zone.finished.map(|_| true);
            }
        }
        for number in 0..self.zones.len() {
            if !self.settle(number)? {
                return Ok(());
            }
        }
        self.mortal.compared();
        self.report.compared += 1;
        self.device().verify().map_err(Failure::Wrong)
    }

    /// Finds what a zone is after a crash; false when the power failed once more.
    fn settle(&mut self, number: usize) -> Result<bool, Failure> {
        let start = self.shape.start(number as u32);
        let mut image = Vec::new();
        let mut at = 0;
        while at < self.shape.size {
            let count = self.largest.min(self.shape.size - at);
            let Some(buf) = self.read(start + at, count)? else { return Ok(false) };
            image.extend(buf);
            at += count;
        }
        let view = self.device().zones().expect("it has zones").view(number as u32);
        let found = (view.pointer - start) as usize;
        let known = self.zones[number].clone();
        let before = known.before.as_deref().map(|before| Known { before: None, changing: false, ..before.clone() });
        let mut why = String::new();
        for candidate in [Some(known), before].into_iter().flatten() {
            if let Err(wrong) = self.fits(number, &candidate, (view.state, found), &image) {
                why = format!("{why}; {wrong}");
                continue;
            }
            let mut settled = candidate;
            match view.state == ZoneState::Full && settled.finished.is_some() {
                // Sectors of a zone that was finished may be empty between others.
                true => {
                    for (sector, version) in image.chunks_exact(SECTOR).zip(&mut settled.versions) {
                        *version = if payload::holds(sector, 0, 0, true) { HOLE } else { *version };
                    }
                }
                false => {
                    settled.versions.truncate(found);
                    settled.finished = None;
                }
            }
            (settled.answered, settled.changing, settled.state) = (settled.versions.len(), false, view.state);
            self.zones[number] = settled;
            return Ok(true);
        }
        let (cuts, kills) = (self.report.cuts, self.report.kills);
        Err(Failure::Wrong(format!("after power cut {cuts} and death {kills}: zone {number} is {view:?}{why}")))
    }

    /// Whether what was found of a zone can have become of what is known of it.
    fn fits(&self, number: usize, known: &Known, found: (ZoneState, usize), image: &[u8]) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what} ({found:?}, of {known:?})"));
        let (state, written) = found;
        let capacity = self.shape.capacity as usize;
        let versions = known.versions.len();
        match state {
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => return wrong("no zone is open after an attach"),
            ZoneState::Full if known.finished.is_some() => {
                // Up to the durable part everything is there; behind it sectors are what they were, or zeros.
                self.matches(number, 0, &image[..known.durable * SECTOR], known, versions)?;
                for at in known.durable..self.shape.size as usize {
                    let sector = &image[at * SECTOR..][..SECTOR];
                    let zero = payload::holds(sector, 0, 0, true);
                    let lba = self.shape.start(number as u32) + at as u64;
                    let same =
                        known.versions.get(at).is_some_and(|version| payload::holds(sector, lba, *version, false));
                    if !zero && !same {
                        return wrong("a sector behind the durable ones is neither old nor empty");
                    }
                }
                return Ok(());
            }
            ZoneState::Full if versions != capacity => return wrong("full"),
            ZoneState::Empty if written != 0 => return wrong("empty"),
            ZoneState::Closed if written == 0 || written == capacity => return wrong("closed"),
            _ => {}
        }
        if known.finished == Some(true) && state != ZoneState::Full {
            return wrong("a finished zone is not full");
        }
        if written < known.durable || written > versions {
            return wrong("its write pointer lies elsewhere than between what is durable and what was written");
        }
        self.matches(number, 0, image, known, written)
    }
}
