//! Zones: the host writes each from its front to its end, and has it forgotten as a whole.
//!
//! [`Zones`] knows how each zone stands and says what may be written where. It does no I/O and knows nothing of the log: whoever has both
//! gives each active zone the stream that it names, so that erase blocks hold the data of one zone only, and a reset leaves nothing to be
//! moved. Stream 0 is no zone's: trims go there.
//!
//! What is on media says how zones stand when nobody knows any more: a zone is written up to its first sector that is not mapped, and
//! finished where its last sector is, the *mark*, which lies behind its capacity. Which zones were open is forgotten.
//!
//! Source of states, transitions and errors: NVM Express Zoned Namespace Command Set Specification 1.1, 2.1.1 (zones, state machine),
//! 3.4.3 (zone management).

/// The shape of zones. All counts are in sectors of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// From the first sector of a zone to that of the next: a power of two.
    pub size: u64,
    /// How many of them can be written, from the first on; less than [`ZoneShape::size`].
    pub capacity: u64,
    /// How many zones there are.
    pub count: u32,
    /// Zones that may be active at once: open, or closed and written in part.
    pub active: u8,
}

impl ZoneShape {
    /// Sectors of the address space.
    pub fn sectors(&self) -> u64 {
        self.size * u64::from(self.count)
    }

    /// First sector of a zone.
    pub fn start(&self, zone: u32) -> u64 {
        self.size * u64::from(zone)
    }

    /// The sector that is mapped where a zone was finished before it was full.
    pub fn mark(&self, zone: u32) -> u64 {
        self.start(zone) + self.size - 1
    }

    /// The zone of a sector, if it is within the address space.
    pub fn zone_of(&self, lba: u64) -> Option<u32> {
        u32::try_from(lba / self.size).ok().filter(|zone| *zone < self.count)
    }

    /// Whether such zones can be.
    pub fn is_sound(&self) -> bool {
        let fits = self.size.checked_mul(u64::from(self.count)).is_some();
        let within = 0 < self.capacity && self.capacity < self.size;
        fits && within && self.size.is_power_of_two() && self.count > 0 && self.active > 0
    }
}

/// How a zone stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneState {
    /// Nothing is written.
    #[default]
    Empty,
    /// A write opened it.
    ImplicitlyOpen,
    /// The host opened it.
    ExplicitlyOpen,
    /// It is written in part, or was open, and is not open.
    Closed,
    /// Nothing more can be written.
    Full,
}

impl ZoneState {
    /// Whether it takes one of the places for active zones.
    pub fn is_active(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed)
    }

    /// Whether it is open.
    pub fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
    }
}

/// What a host does with a zone besides reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// Opens it.
    Open,
    /// Closes it.
    Close,
    /// Makes it full.
    Finish,
    /// Forgets what it holds.
    Reset,
}

/// Why a zone does not take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// It would go beyond the zone's capacity, or into the next zone.
    #[error("it goes beyond the end of its zone")]
    Boundary,
    /// The zone is full.
    #[error("the zone is full")]
    Full,
    /// It does not begin where the zone's data end.
    #[error("zones are written in order: it begins elsewhere than at the write pointer")]
    NotAtPointer,
    /// As many zones are active as may be.
    #[error("too many zones are active: finish or reset one")]
    TooManyActive,
    /// A zone in this state does not take the action.
    #[error("a zone in this state does not take that")]
    Transition,
    /// The device has no zones, or what is asked is none of theirs.
    #[error("a zone is forgotten as a whole, by a reset; the device takes no trims, batches or unwritten zeros")]
    Piecemeal,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    state: ZoneState,
    /// The stream that its data go to while it is active; otherwise 0.
    stream: u8,
    written: u64,
}

/// A zone as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneView {
    /// How it stands.
    pub state: ZoneState,
    /// First sector.
    pub start: u64,
    /// Where the next write goes; behind the capacity of a zone that is full.
    pub pointer: u64,
    /// Sectors written: of a zone that was finished those before it was.
    pub written: u64,
}

/// How many zones stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    /// All.
    pub zones: u32,
    /// Open.
    pub open: u32,
    /// Closed.
    pub closed: u32,
    /// Full.
    pub full: u32,
    /// The most that may be active.
    pub most_active: u32,
}

/// The zones of a device.
#[derive(Debug)]
pub struct Zones {
    shape: ZoneShape,
    zones: Vec<Zone>,
    /// Streams of active zones, a bit each.
    taken: u32,
    /// How many zones are active.
    active: u32,
}

impl Zones {
    /// All empty.
    pub fn new(shape: ZoneShape) -> Zones {
        assert!(shape.is_sound());
        let zones = vec![Zone { state: ZoneState::Empty, stream: 0, written: 0 }; shape.count as usize];
        Zones { shape, zones, taken: 0, active: 0 }
    }

    /// Their shape.
    pub fn shape(&self) -> &ZoneShape {
        &self.shape
    }

    /// What was found on media of a zone: sectors that are mapped from its first on, and whether it is marked as finished.
    pub fn found(&mut self, zone: u32, written: u64, finished: bool) {
        debug_assert_eq!(self.zones[zone as usize].state, ZoneState::Empty);
        let state = match written {
            _ if finished || written >= self.shape.capacity => ZoneState::Full,
            0 => return,
            _ => ZoneState::Closed,
        };
        self.zones[zone as usize].written = written.min(self.shape.capacity);
        self.enter(zone, state);
    }

    /// A zone comes to a state, and takes or gives back a stream with it. The stream that it gave back.
    fn enter(&mut self, zone: u32, state: ZoneState) -> Option<u8> {
        let Zone { state: before, stream, .. } = self.zones[zone as usize];
        self.zones[zone as usize].state = state;
        match (before.is_active(), state.is_active()) {
            (false, true) => {
                self.active += 1;
                let free = (1..=self.shape.active).find(|stream| self.taken & 1 << stream == 0);
                // More than may be active were found on media: they share one.
                let stream = free.unwrap_or(self.shape.active);
                self.taken |= 1 << stream;
                self.zones[zone as usize].stream = stream;
                None
            }
            (true, false) => {
                self.active -= 1;
                self.taken &= !(1 << stream);
                self.zones[zone as usize].stream = 0;
                Some(stream)
            }
            _ => None,
        }
    }

    fn admit_active(&self) -> Result<(), ZoneError> {
        if self.active >= u32::from(self.shape.active) { Err(ZoneError::TooManyActive) } else { Ok(()) }
    }

    /// A write of so many sectors is about to begin here: opens the zone, and gives the stream that the write goes to.
    ///
    /// # Errors
    /// The zone does not take it.
    pub fn begin_write(&mut self, lba: u64, count: u64) -> Result<u8, ZoneError> {
        let zone = self.shape.zone_of(lba).ok_or(ZoneError::Boundary)?;
        let Zone { state, written, .. } = self.zones[zone as usize];
        let at = lba - self.shape.start(zone);
        if at.checked_add(count).is_none_or(|end| end > self.shape.capacity) {
            return Err(if state == ZoneState::Full { ZoneError::Full } else { ZoneError::Boundary });
        }
        match state {
            ZoneState::Full => return Err(ZoneError::Full),
            _ if at != written => return Err(ZoneError::NotAtPointer),
            ZoneState::Empty => {
                self.admit_active()?;
                self.enter(zone, ZoneState::ImplicitlyOpen);
            }
            ZoneState::Closed => {
                self.enter(zone, ZoneState::ImplicitlyOpen);
            }
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => {}
        }
        Ok(self.zones[zone as usize].stream)
    }

    /// The write for which [`Zones::begin_write`] gave leave was taken. The stream that is nobody's from now on, where the zone is full.
    pub fn written(&mut self, lba: u64, count: u64) -> Option<u8> {
        let zone = self.shape.zone_of(lba)?;
        let written = &mut self.zones[zone as usize].written;
        *written += count;
        debug_assert!(*written <= self.shape.capacity);
        if *written < self.shape.capacity { None } else { self.enter(zone, ZoneState::Full) }
    }

    /// Where what is appended to a zone is to be written, by the first sector of the zone.
    ///
    /// # Errors
    /// There begins no zone, or it has no room for so many sectors.
    pub fn append_at(&self, start: u64, count: u64) -> Result<u64, ZoneError> {
        let zone = self.zone_at(start)?;
        let Zone { state, written, .. } = self.zones[zone as usize];
        match state {
            ZoneState::Full => Err(ZoneError::Full),
            _ if written + count > self.shape.capacity => Err(ZoneError::Boundary),
            _ => Ok(start + written),
        }
    }

    /// The zone that begins at a sector.
    ///
    /// # Errors
    /// There begins none.
    pub fn zone_at(&self, start: u64) -> Result<u32, ZoneError> {
        let zone = self.shape.zone_of(start).filter(|_| start.is_multiple_of(self.shape.size));
        zone.ok_or(ZoneError::Boundary)
    }

    /// Whether a zone takes an action.
    ///
    /// # Errors
    /// It does not.
    pub fn admits(&self, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        match (action, self.zones[zone as usize].state) {
            (ZoneAction::Open, ZoneState::Empty) => self.admit_active(),
            (ZoneAction::Open, ZoneState::Full) => Err(ZoneError::Transition),
            (ZoneAction::Close, ZoneState::Empty | ZoneState::Full) => Err(ZoneError::Transition),
            _ => Ok(()),
        }
    }

    /// Whether an action on all zones is about this one.
    pub fn is_meant(&self, zone: u32, action: ZoneAction) -> bool {
        let state = self.zones[zone as usize].state;
        match action {
            ZoneAction::Open => state == ZoneState::Closed,
            ZoneAction::Close => state.is_open(),
            ZoneAction::Finish => state.is_active(),
            ZoneAction::Reset => state != ZoneState::Empty,
        }
    }

    /// Carries out an action that a zone takes. The stream that is nobody's from now on.
    pub fn act(&mut self, zone: u32, action: ZoneAction) -> Option<u8> {
        debug_assert_eq!(self.admits(zone, action), Ok(()));
        let state = match action {
            ZoneAction::Open => ZoneState::ExplicitlyOpen,
            ZoneAction::Close => ZoneState::Closed,
            ZoneAction::Finish => ZoneState::Full,
            ZoneAction::Reset => ZoneState::Empty,
        };
        if action == ZoneAction::Reset {
            self.zones[zone as usize].written = 0;
        }
        self.enter(zone, state)
    }

    /// How a zone stands.
    pub fn view(&self, zone: u32) -> ZoneView {
        let Zone { state, written, .. } = self.zones[zone as usize];
        let start = self.shape.start(zone);
        let end = if state == ZoneState::Full { self.shape.capacity } else { written };
        ZoneView { state, start, pointer: start + end, written }
    }

    /// How many stand how.
    pub fn counts(&self) -> ZoneCounts {
        let count = |wanted: fn(ZoneState) -> bool| self.zones.iter().filter(|zone| wanted(zone.state)).count() as u32;
        ZoneCounts {
            zones: self.shape.count,
            open: count(ZoneState::is_open),
            closed: count(|state| state == ZoneState::Closed),
            full: count(|state| state == ZoneState::Full),
            most_active: self.shape.active.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ZoneShape = ZoneShape { size: 16, capacity: 10, count: 5, active: 2 };

    fn states(zones: &Zones) -> Vec<ZoneState> {
        (0..SHAPE.count).map(|zone| zones.view(zone).state).collect()
    }

    fn write(zones: &mut Zones, lba: u64, count: u64) -> Result<u8, ZoneError> {
        let stream = zones.begin_write(lba, count)?;
        zones.written(lba, count);
        Ok(stream)
    }

    #[test]
    fn a_zone_is_written_in_order_up_to_its_capacity() {
        let mut zones = Zones::new(SHAPE);
        assert_eq!(write(&mut zones, 17, 1), Err(ZoneError::NotAtPointer));
        assert_eq!(zones.view(1).state, ZoneState::Empty, "a refused write opens nothing");
        assert_eq!(write(&mut zones, 16, 4), Ok(1));
        assert_eq!(write(&mut zones, 16, 1), Err(ZoneError::NotAtPointer), "not again");
        assert_eq!(write(&mut zones, 20, 7), Err(ZoneError::Boundary));
        assert_eq!(zones.append_at(16, 6), Ok(20));
        assert_eq!(zones.append_at(16, 7), Err(ZoneError::Boundary));
        assert_eq!(zones.append_at(17, 1), Err(ZoneError::Boundary), "no zone begins there");
        assert_eq!(zones.view(1), ZoneView { state: ZoneState::ImplicitlyOpen, start: 16, pointer: 20, written: 4 });
        assert_eq!(zones.begin_write(20, 6), Ok(1));
        assert_eq!(zones.written(20, 6), Some(1), "its stream is free again");
        assert_eq!(zones.view(1), ZoneView { state: ZoneState::Full, start: 16, pointer: 26, written: 10 });
        for lba in [16, 26, 30] {
            assert_eq!(write(&mut zones, lba, 1), Err(ZoneError::Full));
        }
        assert_eq!(write(&mut zones, 5 * 16, 1), Err(ZoneError::Boundary), "behind the last zone");
        assert_eq!(write(&mut zones, u64::MAX, 2), Err(ZoneError::Boundary));
    }

    #[test]
    fn each_active_zone_has_a_stream_and_there_are_only_so_many() {
        let mut zones = Zones::new(SHAPE);
        assert_eq!((write(&mut zones, 0, 1), write(&mut zones, 16, 1)), (Ok(1), Ok(2)));
        assert_eq!(write(&mut zones, 32, 1), Err(ZoneError::TooManyActive));
        assert_eq!(zones.admits(2, ZoneAction::Open), Err(ZoneError::TooManyActive));
        assert_eq!(zones.act(0, ZoneAction::Close), None, "a closed zone that is written in part stays active");
        assert_eq!(write(&mut zones, 32, 1), Err(ZoneError::TooManyActive));
        assert_eq!(zones.act(0, ZoneAction::Finish), Some(1));
        assert_eq!(write(&mut zones, 32, 1), Ok(1));
        assert_eq!(zones.act(1, ZoneAction::Reset), Some(2));
        assert_eq!(zones.act(0, ZoneAction::Reset), None);
        assert_eq!((write(&mut zones, 0, 1), write(&mut zones, 1, 1)), (Ok(2), Ok(2)));
        let counts = ZoneCounts { zones: 5, open: 2, closed: 0, full: 0, most_active: 2 };
        assert_eq!(zones.counts(), counts);
    }

    #[test]
    fn transitions_are_those_of_the_specification() {
        use ZoneAction::{Close, Finish, Open, Reset};
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
        let reach = |state: ZoneState| {
            let mut zones = Zones::new(SHAPE);
            match state {
                Empty => {}
                ExplicitlyOpen => drop(zones.act(0, Open)),
                ImplicitlyOpen => drop(write(&mut zones, 0, 1)),
                Closed => zones.found(0, 3, false),
                Full => zones.found(0, 10, false),
            }
            assert_eq!(zones.view(0).state, state);
            zones
        };
        let refused = Err(ZoneError::Transition);
        for (state, action, then) in [
            (Empty, Open, Ok(ExplicitlyOpen)),
            (Empty, Close, refused),
            (Empty, Finish, Ok(Full)),
            (Empty, Reset, Ok(Empty)),
            (ImplicitlyOpen, Open, Ok(ExplicitlyOpen)),
            (ImplicitlyOpen, Close, Ok(Closed)),
            (ExplicitlyOpen, Close, Ok(Closed)),
            (ExplicitlyOpen, Open, Ok(ExplicitlyOpen)),
            (Closed, Open, Ok(ExplicitlyOpen)),
            (Closed, Close, Ok(Closed)),
            (Closed, Finish, Ok(Full)),
            (Closed, Reset, Ok(Empty)),
            (Full, Open, refused),
            (Full, Close, refused),
            (Full, Finish, Ok(Full)),
            (Full, Reset, Ok(Empty)),
        ] {
            let mut zones = reach(state);
            let found = zones.admits(0, action).map(|()| {
                zones.act(0, action);
                zones.view(0).state
            });
            assert_eq!(found, then, "{state:?} {action:?}");
        }
    }

    #[test]
    fn actions_on_all_zones_are_about_those_that_they_change() {
        let mut zones = Zones::new(ZoneShape { active: 3, ..SHAPE });
        zones.found(1, 4, false);
        zones.found(2, 4, true);
        write(&mut zones, 0, 1).expect("taken");
        zones.act(3, ZoneAction::Open);
        let meant = |action| (0..5).filter(|zone| zones.is_meant(*zone, action)).collect::<Vec<_>>();
        assert_eq!(meant(ZoneAction::Open), [1]);
        assert_eq!(meant(ZoneAction::Close), [0, 3]);
        assert_eq!(meant(ZoneAction::Finish), [0, 1, 3]);
        assert_eq!(meant(ZoneAction::Reset), [0, 1, 2, 3]);
    }

    #[test]
    fn more_active_zones_than_may_be_are_found_and_can_be_written() {
        let mut zones = Zones::new(SHAPE);
        (0..4).for_each(|zone| zones.found(zone, 2, false));
        assert_eq!(states(&zones)[..4], [ZoneState::Closed; 4]);
        assert_eq!(write(&mut zones, 3 * 16 + 2, 8), Ok(2));
        assert_eq!(write(&mut zones, 64, 1), Err(ZoneError::TooManyActive));
    }
}
