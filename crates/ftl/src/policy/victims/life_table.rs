//! How long the sectors of LEBs really live: a life table, as actuaries keep them.
//!
//! For LEBs of a kind, which is a row, and an age, live sectors and deaths are counted. From that follows at which rate a LEB is emptied from its age on, whatever
//! shape that takes: hot and cold together, so that what is left dies ever more slowly; or logs and files that are written anew, which die all at once at some age.

/// Ages: two steps to the octave, the last one for all that is older than 11 drive writes.
const AGES: usize = 30;
/// Octaves from the first step to a drive write.
const YOUNGEST: u32 = 11;
/// Deaths that it is worth what is said of a row.
const PRIOR: f32 = 32.0;
/// Deaths that the mean rate of a row is worth, at each age.
const PRIOR_AT_AGE: f32 = 100.0;
/// Drive writes in which what was counted fades to a third.
const WINDOW: f32 = 1.0;

/// What is looked up for a LEB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row(pub u8);

#[derive(Clone, Copy, Default)]
struct Seen {
    deaths: f32,
    /// Live sectors times time.
    exposure: f32,
}

/// What becomes of a live sector.
#[derive(Clone, Copy, Default)]
pub struct Outlook {
    /// The time in which one dies at the highest mean rate that lies ahead: see [`outlook_of`].
    pub wait: f32,
    /// Deaths for each that still lives, up to this age.
    pub past: f32,
}

pub struct LifeTable {
    /// Lifetimes that are expected where nothing was seen, by row.
    said: Vec<f32>,
    seen: Vec<[Seen; AGES]>,
    outlook: Vec<[Outlook; AGES]>,
    /// Ages at which the steps begin.
    edges: [f32; AGES + 1],
    /// What [`half_octave`] says before the first edge.
    young: i32,
    sectors: f32,
}

/// Two steps to the octave, straight lines in between.
#[inline]
fn half_octave(x: f32) -> i32 {
    (x.to_bits() >> 22) as i32
}

impl LifeTable {
    /// Of a device with so many sectors, with these lifetimes as long as nothing was seen, one a row.
    pub fn new(sectors: u64, said: Vec<f32>) -> LifeTable {
        let sectors = (sectors as f32).max(1.0);
        let first = (sectors.to_bits() - (YOUNGEST << 23)) & !((1 << 22) - 1);
        let mut edges = std::array::from_fn(|step| f32::from_bits(first + ((step as u32) << 22)));
        edges[0] = 0.0;
        let mut table = LifeTable {
            seen: vec![[Seen::default(); AGES]; said.len()],
            outlook: vec![[Outlook::default(); AGES]; said.len()],
            said,
            young: half_octave(edges[1]) - 1,
            edges,
            sectors,
        };
        table.work_out();
        table
    }

    #[inline]
    fn step(&self, age: f32) -> usize {
        (half_octave(age) - self.young).clamp(0, AGES as i32 - 1) as usize
    }

    #[inline]
    pub fn ask(&self, row: Row, age: f32) -> Outlook {
        let (outlook, step) = (&self.outlook[usize::from(row.0)], self.step(age));
        let next = (step + 1).min(AGES - 1);
        // In between: were that in steps too, LEBs would come to their turn all at once, and writes be slow and fast in turn.
        let part = ((age - self.edges[step]) / (self.edges[step + 1] - self.edges[step])).clamp(0.0, 1.0);
        Outlook {
            wait: outlook[step].wait,
            past: outlook[step].past + (outlook[next].past - outlook[step].past) * part,
        }
    }

    pub fn count(&mut self, row: Row, age: f32, deaths: f32, exposure: f32) {
        let step = self.step(age);
        let seen = &mut self.seen[usize::from(row.0)][step];
        seen.deaths += deaths;
        seen.exposure += exposure;
    }

    /// So much time went by: what was counted fades, and counts from now on.
    pub fn advance(&mut self, span: f32) {
        let keep = (-span / (self.sectors * WINDOW)).exp();
        for seen in self.seen.iter_mut().flatten() {
            seen.deaths *= keep;
            seen.exposure *= keep;
        }
        self.work_out();
    }

    fn work_out(&mut self) {
        for ((seen, said), outlook) in self.seen.iter().zip(&self.said).zip(&mut self.outlook) {
            let (deaths, exposure) = seen.iter().fold((0.0, 0.0), |sum, at| (sum.0 + at.deaths, sum.1 + at.exposure));
            let mean = (exposure + PRIOR * said) / (deaths + PRIOR);
            let rates = seen.map(|seen| (seen.deaths + PRIOR_AT_AGE) / (seen.exposure + PRIOR_AT_AGE * mean));
            *outlook = outlook_of(&rates, &self.edges);
        }
    }

    pub fn memory(&self) -> usize {
        self.seen.len() * (size_of::<[Seen; AGES]>() + size_of::<[Outlook; AGES]>() + size_of::<f32>())
    }
}

/// What rates of death at all ages mean from each age on.
///
/// A LEB that waits for a time t loses a share 1 - S(t) of its live sectors. What matters is the most that any waiting brings for its time, (1 - S(t)) / t: where sectors die
/// ever more slowly that is the rate now; where all die at once soon, the rate up to then.
fn outlook_of(rates: &[f32; AGES], edges: &[f32; AGES + 1]) -> [Outlook; AGES] {
    let mut past = 0.0;
    std::array::from_fn(|from| {
        let mut wait = 1.0 / rates[from];
        let (mut survive, mut time) = (1.0f32, 0.0);
        for step in from..AGES - 1 {
            let width = edges[step + 1] - edges[step];
            survive *= (-rates[step] * width).exp();
            time += width;
            wait = wait.min(time / (1.0 - survive).max(f32::EPSILON));
            if survive < 1e-3 {
                break;
            }
        }
        let outlook = Outlook { wait, past };
        past += rates[from] * (edges[from + 1] - edges[from]);
        outlook
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: u64 = 100_000;

    /// The table after LEBs that were said to live a drive write lost sectors at a rate for each age.
    fn table(rate: impl Fn(f32) -> f32) -> (LifeTable, Row) {
        let mut table = LifeTable::new(SECTORS, vec![1.0, SECTORS as f32]);
        let row = Row(1);
        let mut live = 1e6;
        for age in (500..400_000).step_by(1000).map(|age| age as f32) {
            let deaths = live * (rate(age) * 1000.0).min(1.0);
            table.count(row, age, deaths, (live - deaths / 2.0) * 1000.0);
            live -= deaths;
        }
        table.advance(0.0);
        (table, row)
    }

    #[test]
    fn nothing_seen_is_as_said() {
        let said: Vec<f32> = (-11..4).map(|octave| SECTORS as f32 * (octave as f32).exp2()).collect();
        let table = LifeTable::new(SECTORS, said.clone());
        for (row, lifetime) in said.iter().enumerate() {
            for age in [0.0, 1.0, 700.0, 1e5, 1e7] {
                let wait = table.ask(Row(row as u8), age).wait;
                assert!((wait / lifetime - 1.0).abs() < 0.01, "{row} {age}: {wait} {lifetime}");
            }
        }
    }

    #[test]
    fn a_constant_rate_is_found_whatever_was_said() {
        let (table, row) = table(|_| 1.0 / 30_000.0);
        for age in [2_000.0, 10_000.0, 50_000.0] {
            let outlook = table.ask(row, age);
            assert!((27_000.0..33_000.0).contains(&outlook.wait), "{age}: {}", outlook.wait);
            assert!((age / 30_000.0 * 0.6..age / 30_000.0 * 1.05).contains(&outlook.past), "{age}: {}", outlook.past);
        }
    }

    #[test]
    fn what_dies_at_once_is_worth_waiting_for_and_what_is_left_is_not() {
        let (cyclic, row) = table(|age| if age > 60_000.0 { 1e-3 } else { 1e-8 });
        let (early, late) = (cyclic.ask(row, 5_000.0).wait, cyclic.ask(row, 50_000.0).wait);
        assert!(late < 30_000.0 && early < 90_000.0 && late < early / 2.0, "{early} {late}");
        let (mixed, row) = table(|age| if age < 10_000.0 { 1e-4 } else { 1e-6 });
        let (early, late) = (mixed.ask(row, 2_000.0).wait, mixed.ask(row, 50_000.0).wait);
        assert!(early < 15_000.0 && late > 200_000.0, "{early} {late}");
    }

    #[test]
    fn tiny_devices_have_a_table() {
        for sectors in [0, 1, 8] {
            let table = LifeTable::new(sectors, vec![1e-3, 16.0]);
            for age in [0.0, 1.0, 1e9, f32::MAX] {
                assert!(table.ask(Row(0), age).wait.is_finite() && table.ask(Row(1), age).wait.is_finite());
            }
        }
    }
}
