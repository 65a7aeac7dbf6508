//! Which placement each write of a thread names.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::place::below;
use crate::workload::Choose;

/// The placements of a thread's writes, one after the other.
#[derive(Clone, Debug)]
pub struct Placer {
    among: Box<[u8]>,
    next: usize,
    /// Of its own, so that the requests of a load are the same whether or not they name placements.
    random: Option<Xoshiro256PlusPlus>,
}

impl Placer {
    /// Of these. `None` where there are none.
    pub fn new(among: &[u8], choose: Choose, seed: u64) -> Option<Placer> {
        let random = (choose == Choose::Random).then(|| Xoshiro256PlusPlus::seed_from_u64(seed.rotate_left(32)));
        (!among.is_empty()).then(|| Placer { among: among.into(), next: 0, random })
    }

    /// That of the next write.
    pub fn of_next_write(&mut self) -> u8 {
        let at = match &mut self.random {
            Some(random) => below(random, self.among.len() as u64) as usize,
            None => {
                let next = (self.next + 1) % self.among.len();
                std::mem::replace(&mut self.next, next)
            }
        };
        self.among[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(choose: Choose, count: usize) -> Vec<u8> {
        let mut placer = Placer::new(&[4, 1, 2], choose, 1).expect("there are some");
        (0..count).map(|_| placer.of_next_write()).collect()
    }

    #[test]
    fn they_come_in_turn_or_at_random() {
        assert_eq!(first(Choose::InTurn, 7), [4, 1, 2, 4, 1, 2, 4]);
        let random = first(Choose::Random, 30_000);
        for placement in [4, 1, 2] {
            let count = random.iter().filter(|one| **one == placement).count();
            assert!((9_500..10_500).contains(&count), "{placement}: {count}");
        }
        assert!(random.windows(2).any(|pair| pair[0] == pair[1]), "none twice in a row");
        assert!(Placer::new(&[], Choose::Random, 1).is_none());
    }
}
