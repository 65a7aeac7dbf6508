//! What happens to dies and sectors while requests go on.

use device::Device;
use media::PageAddr;
use media::sim::LabelFault;

use crate::run::Simulation;

/// Once in so many requests a stripe is damaged beyond its redundancy, where the plan has that.
const BEYOND_ONCE_IN: u64 = 150;

impl Simulation {
    pub(crate) fn note_healing(&mut self) {
        if let Some(status) = self.device.as_ref().map(Device::status) {
            self.report.healed += status.healed_sectors;
            self.report.degraded_reads += status.degraded_reads;
            self.report.scrubbed += status.scrubbed_sectors;
        }
    }

    /// Lets happen to the faulty dies what the plan has for them, `often` times as likely as it says.
    pub(crate) fn trouble(&mut self, often: u64) {
        if self.plan.beyond > 0 && self.random.one_in(BEYOND_ONCE_IN) {
            self.plan.beyond -= 1;
            self.damage_stripe();
        }
        for faulty in self.plan.faulty.clone() {
            if !self.random.one_in((faulty.once_in / often).max(1)) {
                continue;
            }
            self.report.faults += 1;
            match faulty.dies {
                true => self.die_trouble(faulty.die),
                false => self.page_trouble(faulty.die),
            }
        }
    }

    /// Lets one of the two superblock copies go bad, on one die or on all.
    pub(crate) fn spoil_label(&mut self) {
        // A copy that could not be written is bad already.
        if self.plan.errors || self.label_is_bad || !self.random.one_in(3) {
            return;
        }
        let fault = match self.random.below(3) {
            0 => LabelFault::Rot { byte: self.random.below(300) as u32, mask: 1 << self.random.below(8) },
            1 => LabelFault::Blank,
            _ => LabelFault::Stale,
        };
        let dies = self.plan.geometry.dies;
        let dies = match self.random.one_in(2) {
            true => 0..dies,
            false => {
                let die = self.random.below(u64::from(dies)) as u32;
                die..die + 1
            }
        };
        self.store.spoil_label(dies, self.random.below(2) as u8, fault);
        self.label_is_bad = true;
        self.report.spoilt_labels += 1;
    }

    fn die_trouble(&mut self, die: u32) {
        if self.try_rebuild(die) {
            return;
        }
        match self.store.failed_dies().contains(&die) {
            // It comes back with what it held, and must not be believed.
            true => self.store.revive_die(die),
            false => {
                self.report.die_losses += 1;
                let command = self.store.commands() + 1 + self.random.below(60);
                self.store.fail_die_at(command, die);
                if self.plan.cut_once_in > 0 && self.random.one_in(4) {
                    // Whatever took the die may take the power soon behind it.
                    self.store.cut_at(command + 1 + self.random.below(15));
                }
            }
        }
    }

    fn somewhere(&mut self, die: u32, blocks: u32) -> PageAddr {
        PageAddr {
            die,
            block: self.random.below(u64::from(blocks)) as u32,
            page: self.random.below(u64::from(self.plan.geometry.pages_per_block)) as u32,
        }
    }

    fn page_trouble(&mut self, die: u32) {
        let at = self.somewhere(die, self.plan.media_geometry().blocks);
        let to = self.somewhere(die, self.plan.geometry.blocks);
        self.store.astray_only_on(die);
        match self.random.below(8) {
            0 => self.store.fail_page(at),
            1 => self.store.lose_next_program(),
            2 => self.store.misdirect_next_program(to),
            _ => self.rot(at),
        }
    }

    fn rot(&mut self, at: PageAddr) {
        let byte = self.random.below(u64::from(self.plan.geometry.page_bytes())) as u32;
        self.store.rot(at, byte, 1 << self.random.below(8));
    }

    /// Damages one more page of a stripe than there is parity.
    fn damage_stripe(&mut self) {
        self.report.faults += 1;
        let geometry = self.plan.geometry;
        let first = self.somewhere(0, geometry.blocks);
        if geometry.parity == 0 && !self.plan.flash && self.random.one_in(3) {
            return self.store.lose_next_program();
        }
        let turn = self.random.below(u64::from(geometry.dies)) as u32;
        for number in 0..=geometry.parity {
            let at = PageAddr { die: (turn + number) % geometry.dies, ..first };
            match self.random.one_in(3) {
                true => self.store.fail_page(at),
                // Several places, so that sectors of different pages meet.
                false => (0..8).for_each(|_| self.rot(at)),
            }
        }
    }

    /// Puts a blank die in the place of one that the device knows to be lost; another one may fail once it is rebuilt.
    fn try_rebuild(&mut self, die: u32) -> bool {
        if self.store.is_off() || self.random.one_in(2) {
            return false;
        }
        let Some(device) = &mut self.device else { return false };
        let status = device.status();
        if status.lost_dies.contains(&die) && status.rebuilding.is_none() {
            // A die that was just rebuilt stays out of service in the device's eyes until that is on record, and is not to be had.
            if device.die_replaced(die).is_err() {
                return false;
            }
            self.store.replace_die(die);
            self.report.rebuilds += 1;
            self.replaced.push(die);
            return true;
        }
        // Nobody may hold on to what the die did before it was replaced.
        let rebuilt = !status.lost_dies.contains(&die) && !self.store.may_fail(die);
        if rebuilt && self.replaced.contains(&die) {
            self.replaced.retain(|replaced| *replaced != die);
            let others: Vec<u32> = (0..self.plan.geometry.dies)
                .filter(|other| self.plan.faulty.iter().all(|faulty| faulty.die != *other))
                .collect();
            if !others.is_empty() {
                let other = others[self.random.below(others.len() as u64) as usize];
                self.plan.faulty.iter_mut().filter(|faulty| faulty.die == die).for_each(|faulty| faulty.die = other);
                return true;
            }
        }
        false
    }
}
