//! Where in its region a request of one size may go.

use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::choice::Choice;
use super::shuffle::shuffled;
use crate::workload::{Access, HotCold, Zone};

/// The places for requests of one size: multiples of the alignment at which one fits into the region.
#[derive(Clone, Debug)]
pub struct Places {
    /// How many there are.
    count: u64,
    /// Bytes from one to the next.
    align: u64,
    popularity: Popularity,
}

/// Which place is asked for how often.
#[derive(Clone, Debug)]
enum Popularity {
    Even,
    /// Each once, and then again in another order.
    Shuffled,
    /// By rank; ranks are scattered by a step that shares no divisor with the number of places.
    Zipf(Zipf<f64>, u64),
    /// First place and number of places of each part.
    Parts(Choice<(u64, u64)>),
}

/// How far a thread is through the places of which each comes once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    at: u64,
    key: u64,
}

impl Places {
    /// For requests of `bytes` in a region of `region` bytes. `None` if none fits.
    pub fn new(bytes: u64, align: u64, region: u64, access: &Access) -> Option<Places> {
        let count = region.checked_sub(bytes)? / align + 1;
        let popularity = match access {
            Access::Random | Access::Sequential | Access::Mixed(_) => Popularity::Even,
            Access::Shuffled => Popularity::Shuffled,
            Access::Zipf(theta) => match Zipf::new(count as f64, *theta) {
                Ok(zipf) => Popularity::Zipf(zipf, scattering_step(count)),
                // A theta that validation let pass never gets here.
                Err(_) => Popularity::Even,
            },
            Access::HotCold(HotCold { accesses, space }) => parts(
                &[
                    Zone { accesses: *accesses, space: *space },
                    Zone { accesses: 100.0 - accesses, space: 100.0 - space },
                ],
                count,
            ),
            Access::Zones(zones) => parts(zones, count),
        };
        Some(Places { count, align, popularity })
    }

    /// A place, as an offset within the region.
    #[inline]
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus, round: &mut Round) -> u64 {
        let place = match &self.popularity {
            Popularity::Shuffled => {
                if round.at == 0 {
                    round.key = random.next_u64();
                }
                let place = shuffled(round.at, self.count, round.key);
                round.at = (round.at + 1) % self.count;
                place
            }
            Popularity::Even => below(random, self.count),
            Popularity::Zipf(zipf, step) => {
                let rank = (zipf.sample(random) as u64).clamp(1, self.count) - 1;
                (u128::from(rank) * u128::from(*step) % u128::from(self.count)) as u64
            }
            Popularity::Parts(choice) => {
                let (first, count) = *choice.pick((random.next_u64() >> 32) as u32);
                first + below(random, count)
            }
        };
        place * self.align
    }
}

fn parts(zones: &[Zone], count: u64) -> Popularity {
    let mut from = 0.0;
    let parts = zones.iter().map(|zone| {
        let first = ((from / 100.0 * count as f64) as u64).min(count - 1);
        from += zone.space;
        let end = ((from / 100.0 * count as f64).round() as u64).clamp(first + 1, count);
        (zone.accesses, (first, end - first))
    });
    Popularity::Parts(Choice::new(parts.collect()))
}

/// A number below `count`, all alike as far as 64 bits allow.
#[inline]
pub(super) fn below(random: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}

/// Near the golden section of `count`, and without a divisor in common with it, so that multiples visit every place once.
fn scattering_step(count: u64) -> u64 {
    let mut step = ((count as f64 * 0.618_033_988_75) as u64).max(1);
    while divisor(step, count) != 1 {
        step += 1;
    }
    step
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    /// How often each place is drawn.
    fn drawn(access: &Access, count: u64, times: u64) -> Vec<u64> {
        let places = Places::new(4096, 4096, count * 4096, access).expect("room");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut counts, mut round) = (vec![0; count as usize], Round::default());
        for _ in 0..times {
            let offset = places.draw(&mut random, &mut round);
            assert!(offset.is_multiple_of(4096));
            counts[(offset / 4096) as usize] += 1;
        }
        counts
    }

    #[test]
    fn random_places_are_alike() {
        let counts = drawn(&Access::Random, 100, 1_000_000);
        // 10,000 expected each, standard deviation 100.
        assert!(counts.iter().all(|count| (9_400..10_600).contains(count)), "{counts:?}");
    }

    #[test]
    fn shuffled_places_come_once_before_any_comes_again() {
        let counts = drawn(&Access::Shuffled, 1000, 3500);
        assert!(counts.iter().all(|count| (3..=4).contains(count)), "{counts:?}");
    }

    #[test]
    fn zipf_gives_the_top_its_share_and_scatters_it() {
        let mut counts = drawn(&Access::Zipf(1.2), 1000, 1_000_000);
        let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank).powf(1.2)).sum();
        let top: Vec<usize> = {
            let mut order: Vec<usize> = (0..1000).collect();
            order.sort_by_key(|place| std::cmp::Reverse(counts[*place]));
            order
        };
        assert!(top[..4].windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1), "neighbours: {:?}", &top[..4]);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        for (rank, count) in counts.iter().take(5).enumerate() {
            let expected = 1e6 / harmonic / ((rank + 1) as f64).powf(1.2);
            assert!((*count as f64 / expected - 1.0).abs() < 0.03, "rank {rank}: {count} for {expected}");
        }
        assert_eq!(counts.iter().filter(|count| **count > 0).count(), 1000);
    }

    #[test]
    fn hot_and_cold_get_their_shares() {
        let counts = drawn(&Access::HotCold(HotCold { accesses: 80.0, space: 20.0 }), 1000, 1_000_000);
        let hot: u64 = counts[..200].iter().sum();
        assert!((798_000..802_000).contains(&hot), "{hot}");
        assert!(counts.iter().all(|count| *count > 0));
    }

    #[test]
    fn zones_may_leave_space_untouched() {
        let zones = vec![Zone { accesses: 60.0, space: 10.0 }, Zone { accesses: 40.0, space: 40.0 }];
        let counts = drawn(&Access::Zones(zones), 1000, 100_000);
        let first: u64 = counts[..100].iter().sum();
        assert!((59_000..61_000).contains(&first), "{first}");
        assert_eq!(counts[500..].iter().sum::<u64>(), 0);
    }

    #[test]
    fn tiny_regions_have_their_places() {
        assert!(Places::new(4096, 4096, 4095, &Access::Random).is_none());
        let counts = drawn(&Access::HotCold(HotCold { accesses: 90.0, space: 1.0 }), 1, 100);
        assert_eq!(counts, [100]);
        assert_eq!(drawn(&Access::Zipf(1.0), 1, 10), [10]);
    }
}
