//! Shares and limits of volumes that use one cache.
//!
//! What a sector is worth is multiplied by the weight of its volume, and the weight follows from what the volume holds beside what it should
//! hold, whenever a LEB is taken. Nothing is reserved: a volume should hold what it has and what it added lately, if that is less than
//! what its share gives it, and the others have the rest in proportion to their shares. One that nobody used for as long as it takes to fill
//! the cache once should hold nothing.
//!
//! Two volumes are written to streams of their own where there are enough, and of more those whose sectors go soon. A LEB that holds sectors of a volume that
//! has too much and of one that has too little would have to be moved in part.

use super::label::EPOCHS;
use crate::owners::{Owners, Places, Quota};

/// A weight is the part of its target that a volume holds, inverted, to this power, ...
const POWER: f64 = 2.0;
/// ... and grows or falls besides by at most this power of e while the cache is filled once.
const RATE: f64 = 3.0;
/// The lowest weight is this power of e. A sector that was used often and just now is worth some hundred times one that was used once, long ago.
const LOWEST: f64 = -7.0;
/// Volumes whose weight is less are written apart, until it is more than the second one.
const APART: [f32; 2] = [0.6, 0.8];

struct Volume {
    quota: Quota,
    /// The weight, as a power of e, without what follows from this moment.
    pressure: f64,
    weight: f32,
    /// Its sectors are written apart.
    apart: bool,
    /// Sectors added in about the time in which the cache is filled once.
    added: f64,
    /// The epoch in which it was used last.
    used: u64,
}

impl Volume {
    /// Whether it is its limit that makes its sectors go.
    fn is_kept_small(&self, held: f64) -> bool {
        self.quota.limit.is_some_and(|limit| held + self.added > limit as f64 / 2.0)
    }
}

/// The volumes that share a cache.
pub(super) struct Quotas {
    places: Places,
    volumes: Vec<Volume>,
    epoch: u64,
    /// The mean weight of the sectors of each LEB when a LEB was chosen last.
    means: Vec<f32>,
    /// Only sectors of volumes that are over their limits are left behind of the LEB that was taken; these volumes.
    only: Option<Vec<bool>>,
}

impl Quotas {
    /// For these volumes, which keep their weights where they had some before.
    pub fn new(places: Places, quotas: Vec<Quota>, lebs: u32, epoch: u64, before: Option<Quotas>) -> Quotas {
        let mut before = before.map(|before| before.volumes).unwrap_or_default();
        let volume = |quota: Quota| match before.iter().position(|old| old.quota.sectors == quota.sectors) {
            Some(at) => Volume { quota, ..before.swap_remove(at) },
            None => {
                let apart = quota.limit.is_some();
                Volume { quota, pressure: 0.0, weight: 1.0, apart, added: 0.0, used: epoch }
            }
        };
        let mut volumes: Vec<Volume> = quotas.into_iter().map(volume).collect();
        if let [first, second] = &mut volumes[..] {
            (first.apart, second.apart) = (false, true);
        }
        Quotas { places, volumes, epoch, means: vec![1.0; lebs as usize], only: None }
    }

    pub fn grow(&mut self, lebs: u32) {
        self.means.resize(lebs as usize, 1.0);
    }

    pub fn memory(&self) -> usize {
        self.means.capacity() * size_of::<f32>()
    }

    fn volume(&self, lba: u64) -> Option<&Volume> {
        self.places.find(lba).map(|(at, _)| &self.volumes[at])
    }

    /// The weight of a sector; that of what belongs to no volume is the highest.
    pub fn weight(&self, lba: u64) -> f32 {
        self.volume(lba).map_or(1.0, |volume| volume.weight)
    }

    /// The mean weight of a LEB.
    pub fn mean(&self, leb: u32) -> f32 {
        self.means[leb as usize]
    }

    /// Whether a sector is to be written apart.
    pub fn is_apart(&self, lba: u64) -> bool {
        self.volume(lba).is_some_and(|volume| volume.apart)
    }

    /// Whether a sector stays though all that is worth little goes.
    pub fn stays(&self, lba: u64) -> bool {
        let Some(over) = &self.only else { return false };
        self.places.find(lba).is_none_or(|(at, _)| !over[at])
    }

    /// A sector was used, and added where it was not there.
    pub fn used(&mut self, lba: u64, added: bool) {
        if let Some((at, _)) = self.places.find(lba) {
            let volume = &mut self.volumes[at];
            volume.used = self.epoch;
            volume.added += f64::from(u8::from(added));
        }
    }

    /// It is this epoch.
    pub fn epoch_is(&mut self, epoch: u64) {
        let left = (1.0 - 1.0 / EPOCHS as f64).powi((epoch - self.epoch).min(100) as i32);
        self.epoch = epoch;
        self.volumes.iter_mut().for_each(|volume| volume.added *= left);
    }

    /// What each volume should hold of so many sectors: as much as it can use, if its share is as much, else its share of what the others leave.
    fn targets(&self, held: &[f64], all: f64) -> Vec<f64> {
        let usable = |(volume, held): (&Volume, &f64)| {
            let idle = self.epoch - volume.used > EPOCHS;
            let wanted = if idle { 0.0 } else { held + volume.added };
            volume.quota.limit.map_or(wanted, |limit| wanted.min(limit as f64))
        };
        let mut targets: Vec<f64> = self.volumes.iter().zip(held).map(usable).collect();
        let share = |at: usize| f64::from(self.volumes[at].quota.share.max(1));
        // Those that can use less of what is left than their share of it, one after the other.
        let mut order: Vec<usize> = (0..targets.len()).collect();
        order.sort_by(|a, b| (targets[*a] / share(*a)).total_cmp(&(targets[*b] / share(*b))).then(a.cmp(b)));
        let (mut left, mut shares) = (all, order.iter().map(|at| share(*at)).sum::<f64>());
        for at in order {
            targets[at] = targets[at].min(left * share(at) / shares);
            left -= targets[at];
            shares -= share(at);
        }
        targets
    }

    /// Works out what sectors of each volume are worth, now that a LEB of so many is to be taken.
    pub fn weigh(&mut self, owners: &Owners, lebs: u32) {
        let held: Vec<f64> = (0..self.volumes.len()).map(|at| owners.held(at) as f64).collect();
        let targets = self.targets(&held, held.iter().sum());
        let mut now = Vec::with_capacity(held.len());
        for ((volume, target), held) in self.volumes.iter_mut().zip(targets).zip(&held) {
            let lacks = ((target + 1.0) / (held + 1.0)).ln();
            volume.pressure += RATE / f64::from(lebs.max(1)) * lacks.clamp(-1.0, 1.0);
            now.push(volume.pressure + POWER * lacks);
        }
        let highest = self.volumes.iter().map(|volume| volume.pressure).fold(f64::MIN, f64::max);
        let most = now.iter().copied().fold(f64::MIN, f64::max);
        let are_two = self.volumes.len() == 2;
        for ((volume, now), held) in self.volumes.iter_mut().zip(now).zip(held) {
            volume.pressure = (volume.pressure - highest).max(LOWEST);
            volume.weight = (now - most).max(LOWEST).exp() as f32;
            let goes_soon = volume.weight < APART[usize::from(volume.apart)] || volume.is_kept_small(held);
            volume.apart = if are_two { volume.apart } else { goes_soon };
        }
    }

    /// The mean weight of a LEB with so many live sectors, remembered.
    pub fn weigh_leb(&mut self, owners: &Owners, leb: u32, live: u32) -> f32 {
        let of_volumes = owners.copies(leb).zip(&self.volumes);
        let less: f32 = of_volumes.map(|(copies, volume)| copies as f32 * (1.0 - volume.weight)).sum();
        let mean = (1.0 - less / live.max(1) as f32).max(LOWEST.exp() as f32);
        self.means[leb as usize] = mean;
        mean
    }

    /// A LEB is taken for the sake of these quotas only, or for room.
    pub fn take_only(&mut self, over: Option<Vec<bool>>) {
        self.only = over;
    }

    /// The quotas that are over their limits, if any is.
    pub fn over(&self, owners: &Owners) -> Option<Vec<bool>> {
        let over: Vec<bool> = (0..self.volumes.len()).map(|at| owners.is_over(at)).collect();
        over.contains(&true).then_some(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: u64 = 1000;
    const SLOTS: u32 = 100;

    /// Volumes with these shares and limits, each of which holds so much and added so much lately.
    fn volumes(those: &[(u32, Option<u64>, u64, f64)]) -> (Quotas, Owners) {
        let at = |n: u64| n * SECTORS..(n + 1) * SECTORS;
        let quota =
            |(n, one): (u64, &(u32, Option<u64>, u64, f64))| Quota { sectors: at(n), share: one.0, limit: one.1 };
        let quotas: Vec<Quota> = (0..).zip(those).map(quota).collect();
        let mut owners = Owners::new(&quotas, 1 << 20, 100, SLOTS);
        let mut slot = 0;
        for (n, (_, _, held, _)) in (0..).zip(those) {
            owners.add(n * SECTORS, slot, *held as u32);
            slot += *held as u32;
        }
        let mut quotas = Quotas::new(owners.places().clone(), quotas, 100, 100, None);
        quotas.volumes.iter_mut().zip(those).for_each(|(volume, one)| volume.added = one.3);
        (quotas, owners)
    }

    fn targets(those: &[(u32, Option<u64>, u64, f64)]) -> Vec<u64> {
        let (quotas, owners) = volumes(those);
        let held: Vec<f64> = (0..those.len()).map(|at| owners.held(at) as f64).collect();
        quotas.targets(&held, held.iter().sum()).into_iter().map(|target| target.round() as u64).collect()
    }

    #[test]
    fn who_wants_more_gets_what_the_shares_say() {
        assert_eq!(targets(&[(100, None, 500, 900.0), (300, None, 500, 900.0)]), [250, 750]);
        assert_eq!(targets(&[(1, None, 900, 900.0), (1, None, 50, 900.0), (2, None, 50, 900.0)]), [250, 250, 500]);
    }

    #[test]
    fn what_one_cannot_use_the_others_have() {
        // It adds little, and had more than that.
        assert_eq!(
            targets(&[(300, None, 200, 10.0), (100, None, 400, 900.0), (300, None, 400, 900.0)]),
            [210, 198, 593]
        );
        assert_eq!(targets(&[(100, Some(100), 100, 900.0), (100, None, 900, 900.0)]), [100, 900]);
    }

    #[test]
    fn who_was_not_there_for_a_fill_of_the_cache_gets_nothing() {
        let (mut quotas, owners) = volumes(&[(100, None, 500, 0.0), (100, None, 500, 10.0)]);
        quotas.epoch_is(101 + EPOCHS);
        quotas.used(SECTORS, false);
        assert_eq!(quotas.targets(&[500.0, 500.0], 1000.0)[0], 0.0);
        let before = quotas.weight(0);
        quotas.weigh(&owners, 100);
        assert!(quotas.weight(0) < before / 4.0, "{}", quotas.weight(0));
        quotas.used(0, false);
        assert_eq!(quotas.targets(&[500.0, 500.0], 1000.0)[0], 500.0, "it was used");
    }

    #[test]
    fn who_has_too_much_weighs_less_and_less_and_is_written_apart() {
        let (mut quotas, owners) = volumes(&[(100, None, 500, 900.0), (300, None, 500, 900.0), (1, None, 0, 0.0)]);
        quotas.weigh(&owners, 100);
        let first = quotas.weight(0);
        assert!(first < 0.2 && quotas.weight(SECTORS) == 1.0 && quotas.weight(1 << 19) == 1.0, "{first}");
        assert!(quotas.is_apart(0) && !quotas.is_apart(SECTORS));
        let (two, _) = volumes(&[(100, None, 500, 0.0), (100, None, 500, 0.0)]);
        assert!(!two.is_apart(0) && two.is_apart(SECTORS), "two are always apart");
        (0..100).for_each(|_| quotas.weigh(&owners, 100));
        assert!(quotas.weight(0) < first / 4.0, "{}", quotas.weight(0));
        (0..10_000).for_each(|_| quotas.weigh(&owners, 100));
        assert_eq!(quotas.weight(0), LOWEST.exp() as f32, "there is an end to it");
    }

    #[test]
    fn a_leb_weighs_what_its_sectors_do() {
        let (mut quotas, owners) = volumes(&[(100, None, 150, 900.0), (300, None, 50, 900.0)]);
        quotas.weigh(&owners, 100);
        let light = quotas.weight(0);
        assert!((quotas.weigh_leb(&owners, 0, 100) - light).abs() < 1e-6, "all of the first volume's");
        assert!((quotas.weigh_leb(&owners, 1, 100) - (1.0 + light) / 2.0).abs() < 1e-6, "half of each");
        assert_eq!(quotas.mean(1), quotas.weigh_leb(&owners, 1, 100));
    }
}
