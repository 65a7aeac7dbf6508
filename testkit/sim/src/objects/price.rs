//! Prices in the simulation: in every third seed LEBs are paid for, and the groomer collects by price.
//!
//! What is checked beside everything else: collecting by price never costs more than all garbage that there can have been has cost; and where
//! nobody asks anything, every LEB that owes more than its collection costs is collected.

use media::object::Prices;
use random::SplitMix64;

use super::Simulation;
use crate::Failure;

/// What a seed decides of prices.
#[derive(Clone, Copy, Debug)]
pub struct Priced {
    pub prices: Prices,
    /// How often accounts are looked at.
    pub look_ms: u64,
}

/// Clocks run by so many parts per thousand of the right speed at the most.
const FASTEST: f64 = 1.1;
/// Looks in which everything that is due must be collected for each LEB, where nobody asks anything.
const LOOKS_A_LEB: u32 = 4;
/// How often a device is polled between two of them.
const POLLS: u32 = 400;

impl Priced {
    /// The draws are apart from all others, so that what a seed did before there were prices it does still.
    pub fn new(seed: u64) -> Option<Priced> {
        let mut random = SplitMix64::new(seed ^ 0x7072_6963_6573);
        if !random.one_in(3) {
            return None;
        }
        let share = |random: &mut SplitMix64| random.below(1000) as f64 / 1000.0;
        let egress = if random.one_in(2) { 0.0 } else { share(&mut random) };
        // LEBs are small and times short here, so rents are high.
        let month = 1000.0 * 10f64.powi(random.below(4) as i32);
        let prices = Prices { puts: 0.005 * share(&mut random), gets: 0.002 * share(&mut random), month, egress };
        Some(Priced { prices, look_ms: 1 + random.below(2000) })
    }
}

impl Simulation {
    /// What was collected by price cost no more than keeping everything did.
    pub fn check_spent(&mut self) -> Result<(), Failure> {
        let Some(Priced { prices, .. }) = self.plan.priced else { return Ok(()) };
        let fees = prices.fees(&self.plan.geometry, self.plan.limits.behind_bytes);
        let kept = fees.keep * self.plan.geometry.slots() as f64 * self.bucket.steady_ms(1000) as f64 * FASTEST;
        let collected = self.device().collected();
        let spent = collected.moved as f64 * fees.append;
        match spent > kept {
            true => self.wrong(format!("collecting {collected:?} cost {spent}, and keeping everything at most {kept}")),
            false => Ok(()),
        }
    }

    /// Nobody asks anything for a while: what is due is collected.
    pub fn rest(&mut self) -> Result<(), Failure> {
        let Some(Priced { look_ms, .. }) = self.plan.priced else { return Ok(()) };
        let mut due = None;
        for _ in 0..LOOKS_A_LEB * self.plan.geometry.blocks {
            self.bucket.pass(look_ms);
            for _ in 0..POLLS {
                if self.host.disk.is_off() {
                    return Ok(());
                }
                self.poll()?;
                self.device().wait();
                self.bucket.pass(1);
            }
            let overdue = self.device().overdue();
            // What is due later is collected later, and so on for ever.
            due.get_or_insert_with(|| overdue.clone()).retain(|leb| overdue.contains(leb));
            if due.as_ref().is_some_and(Vec::is_empty) {
                self.report.collected += self.device().collected().lebs;
                return Ok(());
            }
        }
        self.wrong(format!("nobody asks anything, and these LEBs owe more than their collection costs: {due:?}"))
    }
}
