//! One flash module in virtual time: the translation layer, unchanged, on the NAND model, behind the card's [`Controller`].
//!
//! No payload exists here, see [`ftl::Addressed`].

mod chips;
mod flash;

use ftl::{Config, Ftl, Pacing, Policy, Recovery};
use media::nand::Nand;
use profile::{Card, Module as Sheet};

use crate::cache::cache_layout;
use crate::controller::{Back, Controller, READS};
use crate::device::{Answer, Nanos, Op, Request, VirtualDevice};
use crate::governor::{Governor, Surroundings};
use crate::layout::{Layout, LayoutError, buffer_pages, layout};
use crate::leds::{Activity, Leds};
use crate::report::{Busy, EraseCounts, Report};
use crate::snapshots::{Every, Schedule, Snapshots};

use chips::Chips;
use flash::Flash;

/// Larger writes are taken in pieces of this size, as an operating system's block layer would.
const PIECE_BYTES: u32 = 128 * 1024;
/// Slots appended between checkpoints: 2 GiB of 4 KiB sectors. With capacitors a checkpoint only shortens the next attach.
const CHECKPOINT_INTERVAL: u64 = 1 << 19;

/// What a module is made with.
#[derive(Clone, Debug)]
pub struct ModuleConfig<'a> {
    /// The data sheet.
    pub module: &'a Sheet,
    /// The card that it sits on, with how many others of its kind, if power and heat matter.
    pub card: Option<(&'a Card, u32)>,
    /// Capacity of the format at full size, bytes.
    pub capacity_bytes: u64,
    /// Sector size of the format, bytes.
    pub sector_bytes: u32,
    /// How many times smaller than the sheet says, about.
    pub scale: u32,
    /// What surrounds the card.
    pub surroundings: Surroundings,
    /// The groomer's policy; as the data sheet says where `None`.
    pub policy: Option<Policy>,
    /// How the groomer and host writes share the module; as the data sheet says where `None`.
    pub pacing: Option<Pacing>,
    /// Whether it grooms ahead of need in quiet times.
    pub grooms_ahead: bool,
    /// Seed of everything that varies.
    pub seed: u64,
}

/// A flash module in virtual time.
pub struct Module {
    flash: Flash,
    controller: Controller,
    layout: Layout,
    idle_watts: f64,
    rated_cycles: u32,
    activity: Activity,
    snapshots: Option<Snapshots>,
    chips: Chips,
}

impl Module {
    /// A module, formatted and empty.
    ///
    /// # Errors
    /// The format does not fit the module.
    pub fn new(config: &ModuleConfig) -> Result<Module, LayoutError> {
        Ok(Module::laid_out(config, layout(config.module, config.capacity_bytes, config.sector_bytes, config.scale)?))
    }

    /// A module as a cache, formatted and empty: its address space is far larger than its room, and its groomer may lose what lies in the
    /// lower half of it. `sectors` are as many as it must have addresses at least; capacity and scale of the configuration do not count.
    ///
    /// # Errors
    /// A cache with room for `room_bytes`, of all the flash where `None`, does not fit the module.
    pub fn caching(config: &ModuleConfig, room_bytes: Option<u64>, sectors: u64) -> Result<Module, LayoutError> {
        let layout = cache_layout(config.module, room_bytes, config.sector_bytes, sectors)?;
        let below = layout.sectors / 2;
        let mut module = Module::laid_out(config, layout);
        module.flash.change(|ftl| ftl.set_evictable(below));
        Ok(module)
    }

    fn laid_out(config: &ModuleConfig, layout: Layout) -> Module {
        let sheet = config.module;
        let geometry = layout.geometry;
        let max_request = PIECE_BYTES / config.sector_bytes;
        let mut layer = Config {
            geometry,
            sectors: layout.sectors,
            max_request,
            buffers: buffer_pages(sheet, &geometry),
            requests: READS + 1,
            checkpoint_interval: CHECKPOINT_INTERVAL * 4096 / u64::from(config.sector_bytes),
            erase_before_program: true,
            power_protected: true,
            policy: config.policy.unwrap_or(layout.policy),
        };
        layer.buffers = layer.buffers.max(layer.min_buffers());
        let mut ftl = Recovery::new(layer, ftl::Anchor::default())
            .and_then(|recovery| recovery.finish(1))
            .expect("nothing stands on new flash that could be damaged");
        ftl.set_pacing(config.pacing.unwrap_or(Pacing::Rounds(sheet.controller.groom_round_bytes)));
        ftl.groom_ahead(config.grooms_ahead);
        let nand = Nand::new(&layout.shape, &sheet.nand, &sheet.controller, &sheet.energy, config.seed);
        let controller = Controller::new(sheet, config.card, &config.surroundings, &ftl, None);
        Module {
            flash: Flash::new(ftl, nand),
            controller,
            layout,
            idle_watts: sheet.energy.idle_watts,
            rated_cycles: sheet.nand.endurance_cycles,
            activity: Activity::default(),
            snapshots: None,
            chips: Chips::new(sheet.chips.adaptive),
        }
    }

    /// How the module is laid out.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The layer.
    pub fn ftl(&self) -> &Ftl {
        self.flash.ftl()
    }

    /// Power and heat, where the module sits on a card.
    pub fn governor(&self) -> Option<&Governor> {
        self.controller.governor.as_ref()
    }

    /// What its lights say now.
    pub fn leds(&self) -> Leds {
        self.activity.leds(self.flash.now(), self.controller.is_shut_down())
    }

    /// Lights all of them, or lets them be.
    pub fn beacon(&mut self, on: bool) {
        self.activity.beacon = on;
    }

    /// Makes the snapshots that are due.
    #[inline]
    fn make_snapshots(&mut self) {
        let now = self.flash.now();
        if let Some(snapshots) = &mut self.snapshots
            && snapshots.is_due(now, self.flash.ftl())
        {
            self.flash.change(|ftl| snapshots.make(now, ftl));
        }
    }

    /// Heap memory of the module's books, bytes.
    pub fn memory(&self) -> usize {
        self.flash.layer.memory()
    }

    /// Checks the layer's books. For tests: it looks at every sector.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self) -> Result<(), String> {
        self.flash.layer.verify()
    }
}

impl VirtualDevice for Module {
    fn sector_bytes(&self) -> u32 {
        self.layout.geometry.sector_bytes
    }

    fn bytes(&self) -> u64 {
        self.layout.sectors * u64::from(self.layout.geometry.sector_bytes)
    }

    fn placements(&self) -> u8 {
        self.ftl().placements()
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        self.advance(now);
        self.make_snapshots();
        let accepted = self.controller.submit(&mut self.flash, tag, request);
        match request.op {
            Op::Read if accepted => self.activity.read = Some(now),
            Op::Write | Op::Trim if accepted => self.activity.write = Some(now),
            _ => {}
        }
    }

    #[inline]
    fn next_event(&mut self) -> Option<Nanos> {
        let event = self.controller.next_event(&mut self.flash).unwrap_or(Nanos::MAX);
        let next = self.controller.next_answer().min(event).min(self.chips.next());
        (next < Nanos::MAX).then_some(next.max(self.flash.now()))
    }

    #[inline]
    fn advance(&mut self, now: Nanos) {
        while self.chips.next() <= now {
            let at = self.chips.next();
            self.controller.advance(&mut self.flash, at);
            self.chips.look(&mut self.flash, at);
        }
        self.controller.advance(&mut self.flash, now);
        if !self.chips.is_quiet() {
            self.chips.look(&mut self.flash, now);
        }
        self.make_snapshots();
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        let at = self.controller.advance_to_answer(&mut self.flash, limit.min(self.chips.next()));
        if !self.chips.is_quiet() {
            self.chips.look(&mut self.flash, at);
        }
        self.make_snapshots();
        at
    }

    fn keep_snapshots(&mut self, now: Nanos, schedule: Schedule) -> bool {
        self.advance(now);
        let scale = self.layout.scaled_by;
        // As much is written between two of them, for its size, as on the real one.
        let smaller = |amount: u64| ((amount as f64 / scale) as u64).max(1);
        let every = match schedule.every {
            Every::Time(nanos) => Every::Time(smaller(nanos)),
            Every::Bytes(bytes) => Every::Bytes(smaller(bytes)),
        };
        self.snapshots = Some(Snapshots::new(Schedule { every, ..schedule }, now, self.flash.ftl()));
        true
    }

    #[inline]
    fn answer(&mut self) -> Option<Answer> {
        let line = self.controller.next_line();
        self.controller.take_answer(line, self.flash.now()).map(|due| due.answer)
    }

    #[inline]
    fn hint(&self, offset: u64) {
        if !self.controller.has_long_line() {
            self.flash.ftl().hint(offset / u64::from(self.layout.geometry.sector_bytes));
        }
    }

    fn kill_chip(&mut self, chip: u32, at: Nanos) -> Result<(), String> {
        let nand = self.flash.nand();
        match () {
            () if nand.geometry().parity == 0 => Err("it has no chips of parity".into()),
            () if chip >= nand.chips() => Err(format!("it has chips 0 to {}", nand.chips() - 1)),
            () => {
                self.chips.fail(chip, at.max(self.flash.now()));
                Ok(())
            }
        }
    }

    fn extent(&self, offset: u64, bytes: u64) -> Option<(u64, bool)> {
        let sector = u64::from(self.layout.geometry.sector_bytes);
        let (count, mapped) = self.ftl().map().run(offset / sector, (bytes / sector).max(1));
        Some((count * sector, mapped))
    }

    fn report(&self) -> Report {
        let sector = u64::from(self.layout.geometry.sector_bytes);
        let nand = self.flash.nand();
        let (stats, counts, wear) = (self.ftl().stats(), nand.counts(), nand.wear());
        let erases = wear.erases().iter().map(|erases| f64::from(*erases));
        let lebs = wear.erases().len().max(1) as f64;
        let mean = erases.clone().sum::<f64>() / lebs;
        let deviation = (erases.map(|erases| (erases - mean).powi(2)).sum::<f64>() / lebs).sqrt();
        let raw = self.layout.geometry.blocks as u64
            * u64::from(self.layout.geometry.pages_per_block)
            * u64::from(self.layout.geometry.dies)
            * u64::from(self.layout.geometry.slots_per_page)
            * sector;
        Report {
            host_read_bytes: stats.host_read_sectors * sector,
            host_written_bytes: stats.host_written_sectors * sector,
            placed_bytes: self.flash.placed.iter().map(|sectors| sectors * sector).collect(),
            groomed_bytes: stats.groomed_sectors * sector,
            parity_bytes: counts.parity_bytes,
            padding_bytes: stats.padding_slots * sector,
            metadata_bytes: stats.metadata_slots * sector,
            read_retries: counts.retries,
            map_reads: self.controller.map_reads(),
            erases: counts.erases,
            erase_counts: Some(EraseCounts {
                min: wear.erases().iter().copied().min().unwrap_or(0),
                max: wear.erases().iter().copied().max().unwrap_or(0),
                mean,
                deviation,
            }),
            dies: Busy { nanos: counts.die_busy, count: self.layout.geometry.dies },
            data_path: Busy { nanos: nand.path_busy(), count: 1 },
            link: Busy { nanos: self.controller.front.link_busy(), count: 1 },
            joules: nand.joules() + self.idle_watts * self.flash.now() as f64 * 1e-9,
            celsius: self.governor().map(Governor::celsius),
            reserve_percent: Some(wear.reserve_percent()),
            health: Some(self.controller.health()),
            rated_cycles: Some(self.rated_cycles),
            raw_bytes: raw,
            snapshots: self.snapshots.as_ref().map(|snapshots| snapshots.used_by(self.flash.ftl())),
            chips: self.chips.events.clone(),
            cache: None,
            objects: None,
        }
    }
}
