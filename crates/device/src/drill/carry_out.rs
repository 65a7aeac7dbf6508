//! How drills begin and end on an attached device.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use ftl::NO_SLOT;
use media::PageAddr;
use media::drill::{CutReport, DrillMedia, Unsynced};
use media::nand::DAY;
use random::SplitMix64;

use super::error::invalid;
use super::{CarriedDrills, Drill, DrillError, Drills, PowerCut};
use crate::core::Core;
use crate::emulated::Loss;
use crate::staging::Staging;
use crate::{Device, FormatError};

/// Longest stall, milliseconds.
const STALL_MAX_MS: u64 = 60_000;
/// The most by which data become older, days.
const AGE_MAX_DAYS: u32 = 3650;
/// Most sectors of one drill.
const SECTORS_MAX: u64 = 4096;

/// Where a sector lies: its page, and the bytes of its slot.
type Place = (PageAddr, Range<u32>);

impl Device {
    /// The drills that are on.
    pub fn drills(&self) -> &[Drill] {
        self.drills.as_deref().map_or(&[], |drills| &drills.active)
    }

    /// How the power was cut, once it is. Then nothing is answered any more, and the device is to be dropped; an attach
    /// goes on from what lies on the medium.
    pub fn power_cut(&self) -> Option<&PowerCut> {
        self.drills.as_deref()?.off.as_ref()
    }

    /// Begins a drill, and says in words what was done.
    ///
    /// # Errors
    /// See [`DrillError`].
    pub fn drill(&mut self, mut drill: Drill) -> Result<String, DrillError> {
        let on = self.admit_drill()?.active.iter().find(|on| on.excludes(&drill));
        if let Some(on) = on {
            return Err(DrillError::AlreadyOn { on: on.to_string() });
        }
        let said = self.begin(&mut drill)?;
        if let Some(drills) = self.drills.as_mut().filter(|drills| drills.off.is_none()) {
            drills.active.push(drill);
        }
        Ok(said)
    }

    /// Ends the drills of a name, or `all`; gives those that ended.
    ///
    /// # Errors
    /// See [`DrillError`].
    pub fn undo_drill(&mut self, name: &str) -> Result<Vec<Drill>, DrillError> {
        if name != "all" && !Drill::NAMES.contains(&name) {
            return Err(DrillError::Unknown { name: name.into() });
        }
        let active = &self.admit_drill()?.active;
        let ending: Vec<Drill> = active.iter().filter(|drill| name == "all" || drill.name() == name).cloned().collect();
        if ending.is_empty() && name != "all" {
            return Err(DrillError::NotOn { name: name.into() });
        }
        for drill in &ending {
            self.end(drill)?;
            if let Some(drills) = &mut self.drills {
                drills.active.retain(|on| on != drill);
            }
        }
        Ok(ending)
    }

    /// The drills, where there may be any.
    fn admit_drill(&self) -> Result<&Drills, DrillError> {
        match self.drills.as_deref() {
            _ if !self.core.superblock.drills => Err(DrillError::NotMarked),
            None => Err(DrillError::AttachAgain),
            Some(drills) if drills.off.is_some() => Err(DrillError::PoweredOff),
            Some(drills) => Ok(drills),
        }
    }

    fn begin(&mut self, drill: &mut Drill) -> Result<String, DrillError> {
        let name = drill.name();
        match drill {
            Drill::PowerCut { at_write, at_program, unsynced, seed } => {
                let seed = *seed.get_or_insert_with(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 32);
                for (name, at) in [("at_write", *at_write), ("at_program", *at_program)] {
                    if at == Some(0) {
                        return Err(invalid(name, 0, "1 for the next one, or more"));
                    }
                }
                match (*at_write, *at_program) {
                    (Some(at), Some(_)) => Err(invalid("at_write", at, "no at_program beside it")),
                    (None, None) => {
                        self.cut_power(*unsynced, seed);
                        Ok(self.power_cut().map(PowerCut::to_string).unwrap_or_default())
                    }
                    (Some(at), None) => {
                        if let Some(drills) = &mut self.drills {
                            drills.cut_at_write = Some((at, *unsynced, seed));
                        }
                        Ok(format!("the power goes with write {at} from now; seed {seed}"))
                    }
                    (None, Some(at)) => {
                        self.media_drill(name)?.cut_power_at(at, *unsynced, seed);
                        Ok(format!("the power goes while the medium writes for the {at}. time from now; seed {seed}"))
                    }
                }
            }
            Drill::KillDie { die } => {
                self.check_die(*die)?;
                let lost: Vec<u32> = self.core.lost_dies().collect();
                let dies = self.core.ftl.config().geometry.dies;
                if self.card.is_some() && lost.len() as u32 + 1 >= dies && !lost.contains(die) {
                    return Err(invalid("die", *die, "one of several that still answer"));
                }
                self.media_drill(name)?.set_dead(*die, true);
                Ok(format!("die {die} answers nothing any more"))
            }
            Drill::KillChip { chip } => {
                let dies = self.dies_of_chip(*chip)?;
                let lost: Vec<u32> = self.core.lost_dies().collect();
                let left =
                    (0..self.core.ftl.config().geometry.dies).find(|die| !dies.contains(die) && !lost.contains(die));
                if left.is_none() {
                    return Err(invalid("chip", *chip, "one of several that still answer"));
                }
                let medium = self.media_drill(name)?;
                dies.iter().for_each(|die| medium.set_dead(*die, true));
                let loss = self.core.lose_chip(*chip);
                self.renew_info();
                let left = self.status().chips.map_or(0, |chips| chips.count - chips.given_up);
                let then = match loss {
                    Loss::GivenUp => format!("what it held is rebuilt over the {left} that are left"),
                    Loss::Known => "it was given up before".into(),
                    Loss::Rigid => "the layout of this card does not shrink, so it stays degraded".into(),
                    Loss::NoRoom => "with a chip less there is no room for the capacity, so it stays degraded".into(),
                    Loss::Another => "what another lost chip held is not rebuilt yet, so both are missed".into(),
                };
                Ok(format!("chip {chip} answers nothing any more, nor do its {} dies; {then}", dies.len()))
            }
            Drill::StallDie { die, ms } => {
                self.check_die(*die)?;
                if !(1..=STALL_MAX_MS).contains(ms) {
                    return Err(invalid("ms", *ms, format!("1 to {STALL_MAX_MS}")));
                }
                self.media_drill(name)?.set_stall(*die, Some(Duration::from_millis(*ms)));
                Ok(format!("die {die} answers {ms} ms later"))
            }
            Drill::Rot { lba, count } => {
                let (lba, count) = (*lba, *count);
                let places = self.places(name, lba, count)?;
                let before = self.media_drill(name)?.rotten();
                for (number, (at, bytes)) in places.iter().enumerate() {
                    let mut random = SplitMix64::new(lba + number as u64);
                    let bit = random.below(u64::from(bytes.end - bytes.start) * 8) as u32;
                    let rotted = self.media_drill(name)?.rot(*at, bytes.clone(), bit);
                    if let Err(error) = rotted {
                        // Nothing is on record to be undone: what was flipped is flipped back, as far as it can be.
                        let _ = self.media_drill(name)?.mend(before);
                        return Err(DrillError::Media { drill: name, error });
                    }
                }
                Ok(format!("a bit flipped in {} of {count} sectors", places.len()))
            }
            Drill::FailReads { lba, count } => {
                let (lba, count) = (*lba, *count);
                let places = self.places(name, lba, count)?;
                let medium = self.media_drill(name)?;
                places.iter().for_each(|(at, bytes)| medium.make_unreadable(*at, bytes.clone()));
                Ok(format!("the medium fails reads of {} of {count} sectors", places.len()))
            }
            Drill::IgnoreFlushes => {
                if let Some(drills) = &mut self.drills {
                    drills.ignore_flushes = true;
                }
                Ok("flushes are answered and do nothing".into())
            }
            Drill::FillReserve { read_only } => {
                let read_only = *read_only;
                let Some(card) = &mut self.card else {
                    let why = "there is no reserve of spare blocks on files and disks; an emulated card has one";
                    return Err(DrillError::Unfit { drill: name, why: why.into() });
                };
                card.use_up_reserve(&mut self.core, read_only);
                Ok(match read_only {
                    true => "the reserve is used up: writes are refused".into(),
                    false => "the reserve is used up: writes are held back".into(),
                })
            }
            Drill::Overheat { celsius } => {
                let Some(governor) = self.card.as_mut().and_then(|card| card.controller.governor.as_mut()) else {
                    let why = "it has no temperature; an emulated card has one, where its data sheet says how it warms";
                    return Err(DrillError::Unfit { drill: name, why: why.into() });
                };
                let to = *celsius.get_or_insert(governor.throttle_celsius() + 1.0);
                if !(-55.0..=200.0).contains(&to) {
                    return Err(invalid("celsius", to, "-55 to 200"));
                }
                governor.heat(Some(to));
                Ok(match (governor.is_shut_down(), to >= governor.throttle_celsius()) {
                    (true, _) => format!("{to} degrees Celsius inside: the card has switched itself off"),
                    (false, true) => format!("{to} degrees Celsius inside: writes are held back"),
                    (false, false) => format!("{to} degrees Celsius inside"),
                })
            }
            Drill::Age { days } => {
                let days = *days;
                if !(1..=AGE_MAX_DAYS).contains(&days) {
                    return Err(invalid("days", days, format!("1 to {AGE_MAX_DAYS}")));
                }
                let paced = self.core.media.paced();
                if !paced.is_some_and(|paced| paced.nand_mut().grow_older(u64::from(days) * DAY)) {
                    let why = "reads take as long whatever the age of data; an emulated card's do not, where its data sheet has read retries";
                    return Err(DrillError::Unfit { drill: name, why: why.into() });
                }
                Ok(format!("what stands on it is {days} days older; what is written from now on is new"))
            }
        }
    }

    fn end(&mut self, drill: &Drill) -> Result<(), DrillError> {
        let name = drill.name();
        match drill {
            Drill::PowerCut { .. } => {
                self.media_drill(name)?.disarm();
                if let Some(drills) = &mut self.drills {
                    drills.cut_at_write = None;
                }
            }
            Drill::KillDie { .. } | Drill::KillChip { .. } => {
                let others = self.drills().iter().filter(|other| *other != drill);
                let dead: Vec<u32> = others.flat_map(|other| self.killed_by(other)).collect();
                let given_up =
                    |die: u32| self.core.media.nand().is_some_and(|nand| nand.is_given_up(nand.chip_of(die)));
                let back = self.killed_by(drill).into_iter().filter(|die| !dead.contains(die) && !given_up(*die));
                let back: Vec<u32> = back.collect();
                let medium = self.media_drill(name)?;
                back.into_iter().for_each(|die| medium.set_dead(die, false));
                self.core.chip_answers();
            }
            Drill::StallDie { die, .. } => self.media_drill(name)?.set_stall(*die, None),
            Drill::Rot { .. } => {
                let mended = self.media_drill(name)?.mend(0);
                mended.map_err(|error| DrillError::Media { drill: name, error })?;
            }
            Drill::FailReads { .. } => self.media_drill(name)?.make_readable(),
            Drill::IgnoreFlushes => {
                if let Some(drills) = &mut self.drills {
                    drills.ignore_flushes = false;
                }
            }
            Drill::FillReserve { .. } => {
                if let Some(card) = &mut self.card {
                    card.give_reserve_back(&mut self.core);
                }
            }
            Drill::Overheat { .. } => {
                if let Some(governor) = self.card.as_mut().and_then(|card| card.controller.governor.as_mut()) {
                    governor.heat(None);
                }
            }
            Drill::Age { days } => {
                if let Some(paced) = self.core.media.paced() {
                    paced.nand_mut().grow_younger(u64::from(*days) * DAY);
                }
            }
        }
        Ok(())
    }

    fn media_drill(&mut self, drill: &'static str) -> Result<&mut DrillMedia, DrillError> {
        let why = || "its medium takes no faults".to_string();
        self.core.media.drill().ok_or_else(|| DrillError::Unfit { drill, why: why() })
    }

    /// The dies that a drill keeps dead.
    fn killed_by(&self, drill: &Drill) -> Vec<u32> {
        match drill {
            Drill::KillDie { die } => vec![*die],
            Drill::KillChip { chip } => self.dies_of_chip(*chip).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The dies of an emulated card's chip.
    fn dies_of_chip(&self, chip: u32) -> Result<Vec<u32>, DrillError> {
        let Some(nand) = self.core.media.nand() else {
            let why = "files and disks have no chips; an emulated card has them";
            return Err(DrillError::Unfit { drill: "kill-chip", why: why.into() });
        };
        if chip >= nand.chips() {
            return Err(invalid("chip", chip, format!("0 to {}", nand.chips() - 1)));
        }
        Ok((0..nand.geometry().dies).filter(|die| nand.chip_of(*die) == chip).collect())
    }

    fn check_die(&self, die: u32) -> Result<(), DrillError> {
        match self.core.ftl.config().geometry.dies {
            dies if die < dies => Ok(()),
            1 => Err(invalid("die", die, "0: it has one die")),
            dies => Err(invalid("die", die, format!("0 to {}", dies - 1))),
        }
    }

    /// Where sectors lie on the medium, those of them that do.
    fn places(&mut self, drill: &'static str, lba: u64, count: u64) -> Result<Vec<Place>, DrillError> {
        let sectors = self.info().sectors;
        if !(1..=SECTORS_MAX).contains(&count) {
            return Err(invalid("count", count, format!("1 to {SECTORS_MAX}")));
        }
        if lba >= sectors || count > sectors - lba {
            return Err(invalid("lba", format!("{lba}+{count}"), format!("sectors below {sectors}")));
        }
        let range = lba..lba + count;
        let buffered = |core: &Core| {
            let slots = range.clone().map(|lba| core.ftl.map().get(lba));
            slots.filter(|slot| *slot != NO_SLOT).any(|slot| core.ftl.is_buffered(slot))
        };
        if self.card.is_none() && !self.is_read_only() && buffered(&self.core) {
            // What is still in memory is read from there.
            self.core.ftl.close_open_lebs();
            let written = self.core.run_until(|core| !buffered(core));
            if written.is_err() {
                tracing::warn!(drill, "what is in memory could not be written: it is left out");
            }
        }
        let geometry = self.core.ftl.config().geometry;
        let slots = range.clone().map(|lba| self.core.ftl.map().get(lba)).filter(|slot| *slot != NO_SLOT);
        let places: Vec<Place> = slots
            .filter(|slot| !self.core.ftl.is_buffered(*slot))
            .map(|slot| {
                let (page, at) = geometry.locate(slot);
                (page, at * geometry.slot_bytes()..(at + 1) * geometry.slot_bytes())
            })
            .collect();
        match places.is_empty() {
            true => Err(DrillError::NothingThere { drill, lba, last: range.end - 1 }),
            false => Ok(places),
        }
    }

    /// After something was done: whether the power goes with it, or went. `wrote` says that a write was taken.
    pub(crate) fn power_goes(&mut self, wrote: bool) -> bool {
        let Some(drills) = &mut self.drills else { return false };
        if drills.off.is_some() {
            return true;
        }
        if let Some((left, unsynced, seed)) = drills.cut_at_write.as_mut().filter(|_| wrote) {
            *left -= 1;
            if *left == 0 {
                let (unsynced, seed) = (*unsynced, *seed);
                self.cut_power(unsynced, seed);
                return true;
            }
        }
        let Some(report) = self.core.media.drill().and_then(|drill| drill.cut_report()) else { return false };
        self.power_went(report);
        true
    }

    fn cut_power(&mut self, unsynced: Unsynced, seed: u64) {
        // Capacitors have time for what stands in the buffers.
        self.core.keep_open_pages();
        if let Some(drill) = self.core.media.drill() {
            let report = drill.cut_power(unsynced, seed);
            self.power_went(report);
        }
    }

    fn power_went(&mut self, report: CutReport) {
        self.core.keep_open_pages();
        self.core.staging.iter_mut().for_each(Staging::discard);
        let faults = self.core.media.drill().map(|drill| drill.faults().clone()).unwrap_or_default();
        if let Some(drills) = &mut self.drills {
            let mut active = std::mem::take(&mut drills.active);
            active.retain(|drill| !matches!(drill, Drill::PowerCut { .. }));
            drills.off = Some(PowerCut { report, drills: CarriedDrills { active, faults } });
        }
    }

    /// Goes on with the drills that were on when the power was cut.
    pub(crate) fn go_on_with_drills(&mut self, carried: &CarriedDrills) {
        if let Some(drill) = self.core.media.drill() {
            drill.set_faults(carried.faults.clone());
        }
        for mut drill in carried.active.iter().cloned() {
            // What the medium remembers by place must not be looked for anew.
            let by_place = matches!(drill, Drill::Rot { .. } | Drill::FailReads { .. });
            match if by_place { Ok(String::new()) } else { self.begin(&mut drill) } {
                Ok(_) => self.drills.iter_mut().for_each(|drills| drills.active.push(drill.clone())),
                Err(error) => tracing::warn!(%drill, %error, "it does not go on"),
            }
        }
    }

    /// Whether a die may be rebuilt: not onto itself while a drill keeps it dead.
    pub(crate) fn check_rebuild(&self, die: u32, onto: Option<&Path>) -> Result<(), FormatError> {
        let killed = self.drills().contains(&Drill::KillDie { die });
        if killed && onto.is_none_or(|onto| self.info().paths.get(die as usize).is_some_and(|path| path == onto)) {
            return Err(FormatError::Invalid {
                name: "die",
                value: die.to_string(),
                expected: "one that no drill keeps dead: `vsl drill DEVICE undo kill-die`, or another file with --onto"
                    .into(),
            });
        }
        Ok(())
    }

    /// A die has another file: the drill that killed the old one is over.
    pub(crate) fn die_has_another_file(&mut self, die: u32) {
        if let (Some(medium), Some(drills)) = (self.core.media.drill(), &mut self.drills) {
            medium.set_dead(die, false);
            drills.active.retain(|drill| *drill != Drill::KillDie { die });
        }
    }
}
