//! The composite on its thread: hands the members what the state machine asks of them, and gives it their answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Command, Condition, GrowError, Member, MemberState, Status as ArrayStatus};
use device::{
    Background, Completion, Condition as DeviceCondition, Durability, Extent, Figures, Info, Io, IoError, Settings,
    Snapshot, SnapshotChange, SnapshotError, SnapshotId, State, Status, Submitted, Trouble,
};

use uuid::Uuid;

use super::lane::{Lane, PAUSE};
use super::machine::Machine;
use crate::array::Part;

/// How often marks of regions are taken back that were not written since, and what is dirty in a cache is written behind.
const TICK: Duration = Duration::from_secs(5);
/// How long members may take when it stops.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the store behind a cached volume looks like.
pub(crate) type Witness = Box<dyn Fn() -> [u8; 32] + Send>;

/// Devices that are served as one.
pub struct Composite {
    machine: Machine,
    info: Info,
    /// By position; nothing where a member is missing.
    lanes: Vec<Option<Arc<Lane>>>,
    names: Vec<String>,
    outbox: Vec<Vec<Command>>,
    next_tick: Instant,
    requests: device::Counts,
    witness: Option<Witness>,
}

impl Composite {
    /// Members, by position, that a state machine drives from now on.
    pub(crate) fn new(machine: Machine, info: Info, lanes: Vec<Option<Arc<Lane>>>, names: Vec<String>) -> Composite {
        Composite {
            machine,
            info,
            outbox: lanes.iter().map(|_| Vec::new()).collect(),
            lanes,
            names,
            next_tick: Instant::now(),
            requests: device::Counts::default(),
            witness: None,
        }
    }

    /// The same, of a cached volume whose store behind is looked at when it is stopped.
    pub(crate) fn with_witness(mut self, witness: Witness) -> Composite {
        self.witness = Some(witness);
        self
    }

    /// Drives it until `ready` says so.
    pub(crate) fn until<E>(mut self, ready: impl Fn(&Machine) -> Result<bool, E>) -> Result<Composite, E> {
        while !ready(&self.machine)? {
            self.pump();
            std::thread::sleep(PAUSE);
        }
        Ok(self)
    }

    /// What it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        self.machine.kind()
    }

    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            label: self.info.label.clone(),
            trim: true,
            beacon: false,
            drills: false,
            durability: Some(Durability::WriteBack),
            nvme_block_bytes: self.info.sector_bytes,
            queue_depth: None,
            power_override: None,
            page_file: false,
            groomer: "none".into(),
            checkpoint_interval_bytes: 0,
            object_prices: None,
        }
    }

    #[inline]
    pub(crate) fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        let kind = match &io {
            Io::Read { .. } | Io::ReadSnapshot { .. } => &mut self.requests.reads,
            Io::Write { .. } => &mut self.requests.writes,
            Io::Flush => &mut self.requests.flushes,
            Io::Trim { .. } | Io::WriteZeroes { .. } => &mut self.requests.trims,
            Io::Batch { .. } => &mut self.requests.batches,
        };
        *kind += 1;
        let submitted = self.machine.submit(tag, io);
        if let Submitted::Busy(io) = &submitted {
            match io {
                Io::Read { .. } | Io::ReadSnapshot { .. } => self.requests.reads -= 1,
                Io::Write { .. } => self.requests.writes -= 1,
                Io::Flush => self.requests.flushes -= 1,
                Io::Trim { .. } | Io::WriteZeroes { .. } => self.requests.trims -= 1,
                Io::Batch { .. } => self.requests.batches -= 1,
            }
        }
        submitted
    }

    /// The next answer; before it, members are heard and asked.
    pub(crate) fn poll(&mut self) -> Option<Completion> {
        let done = self.machine.poll();
        if done.is_some() {
            return done;
        }
        self.pump();
        self.machine.poll()
    }

    /// Hears the members and asks them.
    pub(super) fn pump(&mut self) {
        for position in 0..self.lanes.len() {
            let Some(lane) = &self.lanes[position] else { continue };
            let (replies, closed) = lane.replies();
            if let Machine::Array(array) = &mut self.machine {
                array.has_room(position, lane.room());
            }
            for (tag, answer) in replies {
                self.machine.finish(tag, answer);
            }
            if closed {
                let name = &self.names[position];
                tracing::error!(of = %self.info.label, member = %name, "a member is gone");
                self.lanes[position] = None;
                self.outbox[position].clear();
                if matches!(self.machine, Machine::Cached(_)) && position == cache::BEHIND {
                    // It holds the store open.
                    self.witness = None;
                }
                self.machine.lost(position);
            }
        }
        let now = Instant::now();
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.machine.tick();
        }
        self.look_at_members();
        while let Some(command) = self.machine.next_command() {
            self.outbox[command.member].push(command);
        }
        for (lane, requests) in self.lanes.iter().zip(&mut self.outbox) {
            match lane {
                Some(lane) => lane.ask(requests),
                None => requests.clear(),
            }
        }
    }

    /// An array may have become larger; or a device that was to be one more member came to nothing, and is given back.
    fn look_at_members(&mut self) {
        let Machine::Array(array) = &self.machine else { return };
        let sectors = array.sectors();
        if sectors != self.info.sectors {
            self.info.sectors = sectors;
            self.info.advertised_bytes = sectors * u64::from(self.info.sector_bytes);
        }
        let places = array.places();
        if places == self.names.len() {
            return;
        }
        self.info.raw_bytes = array.shape().raw_bytes();
        for lane in self.lanes.drain(places..).flatten() {
            lane.close();
        }
        self.names.truncate(places);
        self.outbox.truncate(places);
    }

    /// Whether a device can be one more member of the array now.
    ///
    /// # Errors
    /// It cannot, and why.
    pub(crate) fn can_grow(&self, member: &Member) -> Result<(), GrowError> {
        match &self.machine {
            Machine::Array(array) => array.can_grow(member).map(drop),
            Machine::Cached(_) => Err(GrowError::NotServing),
        }
    }

    /// Adds a device, which holds nothing, as one more member. See [`Composite::is_growing`].
    ///
    /// # Errors
    /// See [`Composite::can_grow`].
    pub(crate) fn grow(&mut self, (name, lane): (String, Arc<Lane>), member: Member) -> Result<(), GrowError> {
        let Machine::Array(array) = &mut self.machine else { return Err(GrowError::NotServing) };
        array.grow(member)?;
        self.lanes.push(Some(lane));
        self.names.push(name);
        self.outbox.push(Vec::new());
        self.info.raw_bytes += member.sectors * u64::from(member.sector_bytes);
        self.pump();
        Ok(())
    }

    /// Whether a device is just being added: then it either becomes a member, or is given back.
    pub fn is_growing(&self) -> bool {
        match &self.machine {
            Machine::Array(array) => array.places() > array.status().members.len(),
            Machine::Cached(_) => false,
        }
    }

    /// Its snapshots, from the oldest to the newest.
    pub fn snapshots(&self) -> &[Snapshot] {
        self.machine.snapshots()
    }

    /// Members' own numbers of an array's snapshot, by position.
    pub fn snapshot_on(&self, id: SnapshotId) -> Vec<Option<SnapshotId>> {
        match &self.machine {
            Machine::Array(array) => array.snapshot_on(id).to_vec(),
            Machine::Cached(_) => Vec::new(),
        }
    }

    /// Begins to change the snapshots, or goes on with it; true once it is done.
    ///
    /// # Errors
    /// It cannot be done.
    pub(crate) fn begin_snapshot_change(&mut self, change: &SnapshotChange) -> Result<bool, SnapshotError> {
        let begun = self.machine.begin_snapshot_change(change);
        self.pump();
        begun
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.machine.is_idle()
    }

    pub(crate) fn has_background(&self) -> bool {
        self.machine.has_background()
    }

    pub(crate) fn background(&mut self) -> Background {
        self.machine.background();
        self.pump();
        Background::GoesOn
    }

    /// How far the sectors from `lba` on all hold data, or all hold none.
    pub(crate) fn extent(&self, lba: u64, max: u64) -> Extent {
        self.machine.extent(lba, max)
    }

    /// Its members' names, with commas in between.
    pub(crate) fn members(&self) -> String {
        self.names.join(", ")
    }

    /// How the array stands, if it is one.
    pub fn array_status(&self) -> Option<ArrayStatus> {
        match &self.machine {
            Machine::Array(array) => Some(array.status()),
            Machine::Cached(_) => None,
        }
    }

    /// How the cached volume stands, if it is one.
    pub fn cache_status(&self) -> Option<cache::Status> {
        match &self.machine {
            Machine::Array(_) => None,
            Machine::Cached(volume) => Some(volume.status()),
        }
    }

    /// What the cached volume would do with other caches, if it is one.
    pub fn cache_estimates(&self) -> Option<cache::Estimates> {
        match &self.machine {
            Machine::Array(_) => None,
            Machine::Cached(volume) => Some(volume.estimates()),
        }
    }

    /// Has a cached volume write everything behind as soon as may be.
    pub fn write_back(&mut self) {
        if let Machine::Cached(volume) = &mut self.machine {
            volume.write_back();
            self.pump();
        }
    }

    /// Sectors of a cached volume that may be dirty at most, from now on.
    pub fn set_dirty_limit(&mut self, sectors: u64) {
        if let Machine::Cached(volume) = &mut self.machine {
            volume.set_dirty_limit(sectors);
            self.pump();
        }
    }

    /// Gives a cached volume that serves without its store that store back. Whether it waited for it.
    pub(crate) fn behind_returns(&mut self, lane: Arc<Lane>, witness: Witness) -> bool {
        let Machine::Cached(volume) = &mut self.machine else { return false };
        let waits = volume.behind_returns();
        if waits {
            if let Some(old) = self.lanes[cache::BEHIND].replace(lane) {
                old.close();
            }
            self.outbox[cache::BEHIND].clear();
            self.witness = Some(witness);
            tracing::info!(volume = %self.info.label, behind = %self.names[cache::BEHIND], "back");
            self.pump();
        }
        waits
    }

    /// Takes a member in at the place of one that left. With it comes what its superblock's sector holds, nothing for a new one, and the
    /// same of each of its snapshots.
    ///
    /// # Errors
    /// It is not the one that left, or does not fit.
    pub(crate) fn join(
        &mut self,
        position: usize,
        (name, lane): (String, Arc<Lane>),
        member: Member,
        (sector, snapshots): (Option<&[u8]>, &[Part]),
    ) -> Result<(), array::Damage> {
        let Machine::Array(array) = &mut self.machine else { return Err(array::Damage::Foreign(position)) };
        if !array.can_join(position) {
            return Err(array::Damage::Foreign(position));
        }
        self.lanes[position] = Some(lane);
        self.names[position] = name;
        let joined = array.join(position, member, sector);
        match &joined {
            Ok(()) => snapshots.iter().for_each(|(snapshot, sector)| array.brought(position, snapshot, sector)),
            Err(_) => self.lanes[position] = None,
        }
        self.pump();
        joined
    }

    /// Whether a member may come in this place now.
    pub fn can_join(&self, position: usize) -> bool {
        matches!(&self.machine, Machine::Array(array) if array.can_join(position))
    }

    fn mapped(&self) -> u64 {
        self.machine.mapped(self.lanes.iter().map(|lane| lane.as_ref().map_or(0, |lane| lane.mapped())))
    }

    pub(crate) fn condition(&self) -> DeviceCondition {
        DeviceCondition {
            reserve_percent: None,
            celsius: None,
            degraded: self.trouble().is_some(),
            read_only: self.machine.is_read_only(),
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        let degraded = match &self.machine {
            Machine::Array(array) => matches!(array.status().condition, Condition::Degraded | Condition::Failed),
            Machine::Cached(volume) => {
                matches!(volume.status().condition, cache::Condition::Alone | cache::Condition::Failed)
            }
        };
        degraded.then_some(Trouble::Degraded)
    }

    pub(crate) fn figures(&self) -> Figures {
        let status = self.array_status();
        let rebuilding = status.as_ref().and_then(|status| {
            if let Some(percent) = status.reshape_percent {
                return Some((status.members.len() as u32 - 1, f64::from(percent)));
            }
            let member = status.members.iter().position(|state| *state == MemberState::Rebuilding)?;
            Some((member as u32, status.resync_percent.map_or(100.0, f64::from)))
        });
        Figures {
            state: if self.machine.is_stopped() { State::Error } else { State::Attached },
            trouble: self.trouble(),
            requests: self.requests,
            layer: ftl::Stats::default(),
            sector_bytes: self.info.sector_bytes,
            dies: self.lanes.len() as u32,
            lost: self.lanes.iter().filter(|lane| lane.is_none()).count() as u32,
            vanished_files: 0,
            healed_sectors: status.as_ref().map_or(0, |status| status.repaired_sectors),
            degraded_reads: status.as_ref().map_or(0, |status| status.retried_reads),
            read_retries: None,
            unreadable_sectors: 0,
            rebuilding,
            chips: None,
            scrub_percent: None,
            scrubbed_sectors: 0,
            scrub_errors: 0,
            scrubs: 0,
            optimise_percent: None,
            optimised_sectors: 0,
            optimises: 0,
            pieces_per_mib: None,
            read_ahead_sectors: 0,
            read_ahead_used_sectors: 0,
            celsius: None,
            peak_celsius: None,
            rated_written_bytes: None,
            reading: false,
            writing: false,
            hold_ns_per_byte: None,
            watts: None,
            power_limit_watts: None,
            power_override: None,
            durability: Some(Durability::WriteBack),
            page_file: false,
            without_io_uring: None,
            reserve_percent: None,
            write_reduced: None,
            worn_out: None,
            objects: None,
            zones: None,
            cache: self.machine.cache_figures(),
            mapped_sectors: self.mapped().min(self.info.sectors),
            snapshots: self.machine.snapshots().len() as u32,
            clones: 0,
            cloned_sectors: 0,
            kept_sectors: 0,
            room_sectors: None,
            sectors: self.info.sectors,
            map_memory_bytes: 0,
            worst_memory_bytes: 0,
            memory_bytes: 0,
            free_lebs: 0,
            lebs: 0,
            leb_bytes: 0,
            groomer: "none",
            grooming: false,
            over_provisioning_percent: 0.0,
            allocated_bytes: None,
            store_free_bytes: None,
            store_full: false,
            pacing: None,
        }
    }

    pub(crate) fn status(&self) -> Status {
        let lost = self.lanes.iter().zip(0..).filter(|(lane, _)| lane.is_none());
        Status {
            lost_dies: lost.map(|(_, at)| at).collect(),
            members: self.names.clone(),
            health: match &self.machine {
                Machine::Array(array) => self.health_of_array(&array.status()),
                Machine::Cached(volume) => self.health_of_volume(&volume.status()),
            },
            given_up_chips: Vec::new(),
            set_aside: Vec::new(),
            vanished: Vec::new(),
            unreadable: Vec::new(),
            drills: None,
            figures: self.figures(),
        }
    }

    fn health_of_array(&self, status: &ArrayStatus) -> String {
        let in_state = |wanted: MemberState| {
            let members = status.members.iter().zip(&self.names).filter(|(state, _)| **state == wanted);
            members.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (missing, rebuilding) = (in_state(MemberState::Missing), in_state(MemberState::Rebuilding));
        match status.condition {
            Condition::Failed => format!(
                "failed: it needs all of its members, and {missing} is gone; attach it, then `vsl array assemble {}`",
                self.info.label
            ),
            Condition::Degraded if missing.is_empty() => "no member takes writes any more".into(),
            Condition::Degraded => format!("degraded: without {missing}"),
            Condition::Resyncing => {
                format!("healthy; {rebuilding} is being copied, {} % done", status.resync_percent.unwrap_or(100))
            }
            Condition::Reshaping => {
                let percent = status.reshape_percent.unwrap_or(100);
                let last = self.names.last().map_or("", String::as_str);
                let held_up = status.reshape_trouble.map(|(member, error)| {
                    let member = self.names.get(member).map_or("", String::as_str);
                    format!("; held up, because {member} failed: {error}; it is tried again")
                });
                format!(
                    "healthy; stripes are being laid out over {last}, {percent} % done{}",
                    held_up.unwrap_or_default()
                )
            }
            _ => "healthy".into(),
        }
    }

    fn health_of_volume(&self, status: &cache::Status) -> String {
        match (status.condition, status.failure) {
            (_, Some(failure)) => {
                format!("failed: {failure}; once it is there again: `vsl cache open {}`", self.info.label)
            }
            (cache::Condition::Alone, None) => format!(
                "degraded: without {}, only what is cached is served until it is there again",
                self.names[cache::BEHIND]
            ),
            _ => "healthy".into(),
        }
    }

    /// Stops it: everything is durable, and the members are free again.
    ///
    /// # Errors
    /// A member failed, or did not answer in time; the next assembly brings copies into step.
    pub(crate) fn detach(mut self: Box<Self>) -> Result<(), IoError> {
        let end = Instant::now() + PATIENCE;
        let mut told = false;
        while !self.machine.is_stopped() && Instant::now() < end {
            match &mut self.machine {
                Machine::Array(array) => array.stop(),
                // One whose store came back just now begins once it is open.
                Machine::Cached(volume) => volume.stop(),
            }
            self.pump();
            if let Machine::Cached(volume) = &mut self.machine
                && volume.is_settled()
                && !std::mem::replace(&mut told, true)
            {
                volume.say_goodbye(self.witness.as_ref().map(|witness| witness()));
                continue;
            }
            std::thread::sleep(PAUSE);
        }
        if self.machine.has_stopped() { Ok(()) } else { Err(IoError::Media) }
    }
}

impl Drop for Composite {
    /// However it ends, its members are free.
    fn drop(&mut self) {
        self.lanes.iter().flatten().for_each(|lane| lane.close());
    }
}

/// What is said of a composite as of a device: its sectors, their size and its largest request; `raw` is what its members have, bytes.
pub(crate) fn composite_info(
    name: &str,
    uuid: Uuid,
    (sectors, sector_bytes, max_request_bytes): (u64, u32, u32),
    raw: u64,
) -> Info {
    Info {
        zones: None,
        paths: Vec::new(),
        files: 0,
        parity_files: 0,
        parity_chips: None,
        file_number: 0,
        uuid,
        next_uuid: None,
        label: name.into(),
        format_version: 0,
        profile: None,
        sector_bytes,
        sectors,
        advertised_bytes: sectors * u64::from(sector_bytes),
        raw_bytes: raw,
        max_request_bytes,
        formatted: 0,
        attaches: 0,
        unsafe_shutdowns: 0,
        clean: true,
        emulation: None,
        encryption: None,
        key_slots: None,
        drill_device: false,
        erasing: None,
    }
}
