//! The array on its thread: hands the members what the state machine asks of them, and gives it their answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Array, Command, Condition, Member, MemberState, Status as ArrayStatus};
use device::{
    Background, Completion, Condition as DeviceCondition, Durability, Extent, Figures, Info, Io, IoError, Settings,
    State, Status, Submitted, Trouble,
};

use super::lane::{Lane, PAUSE};

/// How often marks of regions are taken back that were not written since.
const TICK: Duration = Duration::from_secs(5);
/// How long members may take when the array stops.
const PATIENCE: Duration = Duration::from_secs(60);

/// An array that is served.
pub struct Joined {
    pub(super) array: Array,
    pub(super) info: Info,
    /// By position; nothing where a member is missing.
    pub(super) lanes: Vec<Option<Arc<Lane>>>,
    pub(super) names: Vec<String>,
    pub(super) outbox: Vec<Vec<Command>>,
    pub(super) next_tick: Instant,
    pub(super) requests: device::Counts,
}

impl Joined {
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
        let submitted = self.array.submit(tag, io);
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
        let done = self.array.poll();
        if done.is_some() {
            return done;
        }
        self.pump();
        self.array.poll()
    }

    /// Hears the members and asks them.
    pub(super) fn pump(&mut self) {
        for position in 0..self.lanes.len() {
            let Some(lane) = &self.lanes[position] else { continue };
            let (replies, closed) = lane.replies();
            for (tag, answer) in replies {
                self.array.finish(tag, answer);
            }
            if closed {
                let name = &self.names[position];
                tracing::error!(array = %self.info.label, member = %name, "a member is gone");
                self.lanes[position] = None;
                self.outbox[position].clear();
                self.array.lost(position);
            }
        }
        let now = Instant::now();
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.array.tick();
        }
        while let Some(command) = self.array.next_command() {
            self.outbox[command.member].push(command);
        }
        for (lane, requests) in self.lanes.iter().zip(&mut self.outbox) {
            match lane {
                Some(lane) => lane.ask(requests),
                None => requests.clear(),
            }
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.array.is_idle()
    }

    pub(crate) fn has_background(&self) -> bool {
        self.array.has_background()
    }

    pub(crate) fn background(&mut self) -> Background {
        self.array.background();
        self.pump();
        Background::GoesOn
    }

    /// How far the sectors from `lba` on all hold data, or all hold none.
    pub(crate) fn extent(&self, lba: u64, max: u64) -> Extent {
        self.array.extent(lba, max)
    }

    /// Its members' names, with commas in between.
    pub(crate) fn members(&self) -> String {
        self.names.join(", ")
    }

    /// How the array stands.
    pub fn array_status(&self) -> ArrayStatus {
        self.array.status()
    }

    /// Takes a member in at the place of one that left. `sector` is what its superblock's sector holds; nothing for a new one.
    ///
    /// # Errors
    /// It is not the one that left, or does not fit.
    pub(crate) fn join(
        &mut self,
        position: usize,
        (name, lane): (String, Arc<Lane>),
        member: Member,
        sector: Option<&[u8]>,
    ) -> Result<(), array::Damage> {
        if !self.array.can_join(position) {
            return Err(array::Damage::Foreign(position));
        }
        self.lanes[position] = Some(lane);
        self.names[position] = name;
        let joined = self.array.join(position, member, sector);
        if joined.is_err() {
            self.lanes[position] = None;
        }
        self.pump();
        joined
    }

    /// Whether a member may come in this place now.
    pub fn can_join(&self, position: usize) -> bool {
        self.array.can_join(position)
    }

    fn mapped(&self) -> u64 {
        let mapped = self.lanes.iter().flatten().map(|lane| lane.mapped());
        match self.array.shape().level {
            array::Level::Raid1 => mapped.max().unwrap_or(0),
            _ => mapped.sum(),
        }
    }

    pub(crate) fn condition(&self) -> DeviceCondition {
        let condition = self.array.status().condition;
        DeviceCondition {
            reserve_percent: None,
            celsius: None,
            degraded: matches!(condition, Condition::Degraded | Condition::Failed),
            read_only: self.array.refuses_writes().is_some(),
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        let status = self.array.status();
        let missing = status.members.iter().filter(|state| **state == MemberState::Missing).count() as u32;
        let failed = status.condition == Condition::Failed;
        let rebuilding = status.members.iter().position(|state| *state == MemberState::Rebuilding);
        let percent = status.resync_percent.map(f64::from);
        Figures {
            state: if failed { State::Error } else { State::Attached },
            trouble: match status.condition {
                Condition::Degraded | Condition::Failed => Some(Trouble::Degraded),
                _ => None,
            },
            requests: self.requests,
            layer: ftl::Stats::default(),
            sector_bytes: self.info.sector_bytes,
            dies: status.members.len() as u32,
            lost: missing,
            vanished_files: 0,
            healed_sectors: status.repaired_sectors,
            degraded_reads: status.retried_reads,
            unreadable_sectors: 0,
            rebuilding: rebuilding.map(|member| (member as u32, percent.unwrap_or(100.0))),
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
            mapped_sectors: self.mapped().min(self.info.sectors),
            snapshots: 0,
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
        let status = self.array.status();
        let in_state = |wanted: MemberState| {
            let members = status.members.iter().zip(&self.names).filter(|(state, _)| **state == wanted);
            members.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (missing, rebuilding) = (in_state(MemberState::Missing), in_state(MemberState::Rebuilding));
        let health = match status.condition {
            Condition::Failed => format!(
                "failed: it needs all of its members, and {missing} is gone; attach it, then `vsl array assemble {}`",
                self.info.label
            ),
            Condition::Degraded if missing.is_empty() => "no member takes writes any more".into(),
            Condition::Degraded => format!("degraded: without {missing}"),
            Condition::Resyncing => {
                format!("healthy; {rebuilding} is being copied, {} % done", status.resync_percent.unwrap_or(100))
            }
            _ => "healthy".into(),
        };
        let lost = status.members.iter().zip(0..).filter(|(state, _)| **state == MemberState::Missing);
        Status {
            lost_dies: lost.map(|(_, at)| at).collect(),
            health,
            given_up_chips: Vec::new(),
            set_aside: Vec::new(),
            vanished: Vec::new(),
            unreadable: Vec::new(),
            drills: None,
            figures: self.figures(),
        }
    }

    /// Stops it: everything is durable, and the members are free again.
    ///
    /// # Errors
    /// A member failed, or did not answer in time; the next assembly brings copies into step.
    pub(crate) fn detach(mut self: Box<Self>) -> Result<(), IoError> {
        self.array.stop();
        let end = Instant::now() + PATIENCE;
        while !self.array.is_stopped() && Instant::now() < end {
            self.pump();
            std::thread::sleep(PAUSE);
        }
        match self.array.status().condition {
            Condition::Stopped => Ok(()),
            _ => Err(IoError::Media),
        }
    }
}

impl Drop for Joined {
    /// However it ends, its members are free.
    fn drop(&mut self) {
        self.lanes.iter().flatten().for_each(|lane| lane.close());
    }
}
